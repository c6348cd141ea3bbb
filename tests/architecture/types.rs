//! Types own their state: the `impl` of a type lies in at most two files, and a component's struct has at
//! most 16 fields.
//!
//! A file that adds methods to a type of another file splits the text and not the state: each of its methods
//! may touch every field. A type that needs a third file is two types. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::circles::{House, Module, Path};

/// Types with inherent `impl` in more files, and why. The list only shrinks: a type that keeps the rule
/// leaves it.
const IN_MANY_FILES: &[&str] = &[
    // One verb a family of opcodes; the state is small, and a family is what one looks for.
    "kernel/ptx/lower::Lower",
    // A warp's registers, its stack of calls and its memory operations: the semantics of one thing over three
    // topics.
    "kernel/warp::Warp",
    // What an expression is worth, why it is 0, its PTX: a verb over the same tree each.
    "workload/expr::Expr",
    // One verb a section of the manifest; the state is the document and its faults.
    "workload/read/reader::Reader",
];

/// Files in which a type may have inherent `impl`.
const MOST_FILES: usize = 2;

/// Structs with more fields, and why. The list only shrinks.
const WIDE: &[&str] = &[];

/// Fields that a struct of these modules may have.
const MOST_FIELDS: usize = 16;
const COMPOSED: [&str; 3] = ["machine", "engine", "schemes"];

/// A type's name as an `impl` header writes it, without its parameters; none of the `impl` of a trait.
fn inherent(header: &str) -> Option<&str> {
    let mut rest = header.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let (mut depth, mut before) = (0, ' ');
        let end = rest.find(|c: char| {
            // The head of an arrow closes nothing.
            depth += i32::from(c == '<') - i32::from(c == '>' && before != '-');
            before = c;
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let rest = rest.strip_prefix(' ')?;
    let name = rest.split(['<', ' ', '{', '\n']).next()?;
    let body = rest[..rest.find('{')?].split(" where").next()?;
    (!body.contains(" for ") && !name.is_empty()).then_some(name)
}

/// The types that a file has inherent `impl` of, as the code there names them.
fn implemented(module: &Module) -> BTreeSet<&str> {
    let starts = module.body.match_indices("impl").map(|(at, _)| at);
    let headers = starts.filter(|&at| at == 0 || module.body[..at].ends_with('\n')).map(|at| &module.body[at..]);
    headers.filter_map(inherent).collect()
}

/// The file that defines a type, and its name: `machine/sm::Sm`.
fn defined(house: &House, module: &Module, name: &str) -> String {
    let path: Path = name.split("::").map(str::to_owned).collect();
    let imported = module.imports.iter().find(|import| import.name == path[0]).map(|import| import.path.clone());
    let found = imported.or((path.len() > 1).then_some(path.clone())).and_then(|path| module.absolute(&path));
    let file = found.and_then(|path| house.lookup(&path, 0)).unwrap_or(&module.path);
    format!("{}::{}", file.join("/"), path.last().expect("a name"))
}

#[test]
fn the_impl_of_a_type_lies_in_at_most_two_files() {
    let house = House::read();
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in house.modules.values() {
        for name in implemented(module) {
            files.entry(defined(&house, module, name)).or_default().insert(module.path.join("/"));
        }
    }
    assert!(files.len() > 300, "the types were found: {}", files.len());
    let many: BTreeMap<&str, &BTreeSet<String>> = files
        .iter()
        .filter(|(_, files)| files.len() > MOST_FILES)
        .map(|(name, files)| (name.as_str(), files))
        .collect();
    let fresh: Vec<_> = many.iter().filter(|(name, _)| !IN_MANY_FILES.contains(name)).collect();
    assert!(fresh.is_empty(), "types with `impl` in more than {MOST_FILES} files: {fresh:#?}");
    let kept = IN_MANY_FILES.iter().filter(|name| !many.contains_key(*name)).collect::<Vec<_>>();
    assert!(kept.is_empty(), "these keep the rule now; take them off the list: {kept:?}");
}

/// Structs of a file with the number of their fields. Tables made by `spec!` and `counters!` are left out:
/// their fields describe themselves, a row each, and have no meaning together.
fn structs(body: &str) -> Vec<(&str, usize)> {
    let (mut found, mut table, mut open) = (Vec::new(), false, None);
    for line in body.lines() {
        table |= line.starts_with("spec! {") || line.starts_with("counters! {");
        table &= line != "}";
        let code = line.trim_start();
        let visible = code.strip_prefix("pub").map_or(code, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest));
        if let Some(rest) = visible.strip_prefix("struct ")
            && line.ends_with('{')
            && !table
        {
            let name = rest.split(['<', ' ', '{']).next().unwrap_or("");
            open = Some((name, line.len() - code.len(), 0));
        } else if let Some((name, indent, fields)) = &mut open {
            let depth = line.len() - code.len();
            if depth == *indent && code.starts_with('}') {
                found.push((*name, *fields));
                open = None;
            } else if depth == *indent + 4 && code.split_once(':').is_some_and(|(name, _)| !name.contains(['#', '!'])) {
                *fields += 1;
            }
        }
    }
    found
}

#[test]
fn a_struct_of_the_machine_the_engine_or_a_scheme_has_at_most_sixteen_fields() {
    let house = House::read();
    let of = |module: &&Module| module.path.first().is_some_and(|first| COMPOSED.contains(&first.as_str()));
    let (mut seen, mut wide) = (0, BTreeMap::new());
    for module in house.modules.values().filter(of) {
        for (name, fields) in structs(&module.body) {
            seen += 1;
            if fields > MOST_FIELDS {
                wide.insert(format!("{}::{name}", module.path.join("/")), fields);
            }
        }
    }
    assert!(seen > 100, "the structs were found: {seen}");
    let fresh: Vec<_> = wide.iter().filter(|(name, _)| !WIDE.contains(&name.as_str())).collect();
    assert!(fresh.is_empty(), "structs with more than {MOST_FIELDS} fields: {fresh:?}");
    let kept = WIDE.iter().filter(|name| !wide.contains_key(**name)).collect::<Vec<_>>();
    assert!(kept.is_empty(), "these keep the rule now; take them off the list: {kept:?}");
}

#[test]
fn headers_of_impl_are_read_as_they_are_written() {
    let read = |header: &str| inherent(header).map(str::to_owned);
    assert_eq!(read("impl Sm {"), Some("Sm".into()));
    assert_eq!(read("impl<'a, F: Fn(u8) -> bool> Walk<'a, F> {"), Some("Walk".into()));
    assert_eq!(read("impl<'a, T: Into<u8>> super::Walk<'a, T>\nwhere\n    T: Copy,\n{"), Some("super::Walk".into()));
    assert_eq!(read("impl Component<Msg> for Sm {"), None);
    assert_eq!(read("impl<M> From<M> for Sm {"), None);
}

#[test]
fn fields_are_counted_and_tables_are_left_out() {
    let body = "pub struct A<'a> {\n    a: u8,\n    #[serde(rename = \"x: y\")]\n    pub(super) b: fn(u8) -> u8,\n}\n\
                spec! {\n    pub struct B {\n        c: u8 where 1..=2,\n    }\n}\nstruct C(u8);\nstruct D {\n    e: u8,\n}\n";
    assert_eq!(structs(body), [("A", 2), ("D", 1)]);
}
