//! No circle among files: which file uses which, followed to where a name is defined.
//!
//! An arrow is a path that begins with `crate`, `super`, `self` or a child's name, in a `use` or in code. A
//! name that a module hands on by `use` is looked up where that leads, so that an arrow ends in the file that
//! defines the name. A module file has an arrow to its own child only where it does more with it than `mod`
//! and `pub use`. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{COMPOSED, Source, sources};

/// Circles that are still there. The list only shrinks: a circle that is mended leaves it.
const CIRCLES: &[&[&str]] = &[];

pub(crate) type Path = Vec<String>;

/// One name that a `use` binds: the name, the path it stands for, whether others may use it from here.
pub(crate) struct Import {
    pub(crate) name: String,
    pub(crate) path: Path,
    public: bool,
}

/// A file, read as a module.
pub(crate) struct Module {
    pub(crate) path: Path,
    children: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// The code without its `use` declarations.
    pub(crate) body: String,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Paths of a `use` tree: `a::{b, c::d as e}` is `a::b` and `a::c::d`.
fn expand(prefix: &[String], tree: &str, out: &mut Vec<(String, Path)>) {
    let tree = tree.trim();
    if tree.is_empty() {
        return;
    }
    if let Some(open) = tree.find('{') {
        let mut path = prefix.to_vec();
        path.extend(tree[..open].split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        let (mut depth, mut start) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&path, &inner[start..at], out);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand(&path, &inner[start..], out);
        return;
    }
    let (written, renamed) = match tree.split_once(" as ") {
        Some((written, renamed)) => (written, Some(renamed.trim().to_owned())),
        None => (tree, None),
    };
    let mut path = prefix.to_vec();
    path.extend(written.split("::").map(|part| part.trim().to_owned()));
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
    out.push((name, path));
}

impl Module {
    fn read(source: &Source) -> Module {
        let path: Path = match source.path.as_str() {
            "lib" | "main" => Vec::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        let code = source.without_tests();
        let (mut children, mut imports, mut body) = (BTreeSet::new(), Vec::new(), String::new());
        let mut rest = code.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            let public = line.trim_start().starts_with("pub");
            let visible = line.trim_start().strip_prefix("pub").map_or(line.trim_start(), |rest| {
                rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.1)).unwrap_or(rest).trim_start()
            });
            if visible.starts_with("use ") {
                let from = line.find("use ").expect("a use") + 4;
                let end = rest.find(';').expect("a use ends");
                let mut found = Vec::new();
                expand(&[], &rest[from..end], &mut found);
                imports.extend(found.into_iter().map(|(name, path)| Import { name, path, public }));
                rest = &rest[end + 1..];
                continue;
            }
            match visible.strip_prefix("mod ").and_then(|rest| rest.trim_end().strip_suffix(';')) {
                Some(child) => _ = children.insert(child.to_owned()),
                None => {
                    body.push_str(line);
                    body.push('\n');
                }
            }
            rest = after;
        }
        Module { path, children, imports, body }
    }

    /// The path from the root of the crate, or none for one of another crate.
    pub(crate) fn absolute(&self, path: &[String]) -> Option<Path> {
        let mut at: Path = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.path.clone(),
            first if self.children.contains(first) => {
                let mut at = self.path.clone();
                at.push(first.to_owned());
                at
            }
            _ => return None,
        };
        let mut rest = path[1..].iter().peekable();
        if path[0] == "super" {
            at.pop();
            while rest.next_if(|part| *part == "super").is_some() {
                at.pop();
            }
        }
        at.extend(rest.cloned());
        Some(at)
    }

    /// Paths in the code.
    fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let starts = ["crate", "super", "self"].into_iter().chain(self.children.iter().map(String::as_str));
        for start in starts {
            for (at, _) in self.body.match_indices(start) {
                let rest = &self.body[at..];
                let before = self.body[..at].chars().next_back();
                if before.is_some_and(|c| is_word(c) || c == ':' || c == '.' || c == '$')
                    || !rest[start.len()..].starts_with("::")
                {
                    continue;
                }
                let end = rest.find(|c: char| !is_word(c) && c != ':').unwrap_or(rest.len());
                found.push(rest[..end].split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect());
            }
        }
        found
    }

    fn mentions(&self, name: &str) -> bool {
        self.body.match_indices(name).any(|(at, _)| {
            let around = [self.body[..at].chars().next_back(), self.body[at + name.len()..].chars().next()];
            !around.into_iter().flatten().any(is_word)
        })
    }
}

/// Modules by path, and where paths lead.
pub(crate) struct House {
    pub(crate) modules: BTreeMap<Path, Module>,
}

impl House {
    pub(crate) fn read() -> House {
        let all = sources();
        let kept = all.iter().filter(|source| {
            !source.is_of_tests() && source.path != "main" && !COMPOSED.contains(&source.path.as_str())
        });
        House { modules: kept.map(Module::read).map(|module| (module.path.clone(), module)).collect() }
    }

    /// The file that defines what `path` names, followed through `use` declarations.
    pub(crate) fn lookup(&self, path: &[String], depth: u32) -> Option<&Path> {
        let (length, module) = (0..=path.len()).rev().find_map(|n| Some((n, self.modules.get(&path[..n])?)))?;
        let Some(name) = path.get(length) else { return Some(&module.path) };
        let handed = module.imports.iter().find(|import| import.name == *name);
        match handed.filter(|_| depth < 8).and_then(|import| module.absolute(&import.path)) {
            Some(mut onward) => {
                onward.extend_from_slice(&path[length + 1..]);
                self.lookup(&onward, depth + 1)
            }
            None => Some(&module.path),
        }
    }

    fn arrows(&self, module: &Module) -> BTreeSet<&Path> {
        let used = module.imports.iter().filter(|import| !import.public || module.mentions(&import.name));
        let paths = used.map(|import| import.path.clone()).chain(module.paths());
        let found = paths.filter_map(|path| self.lookup(&module.absolute(&path)?, 0));
        found.filter(|path| !path.is_empty() && **path != module.path).collect()
    }

    /// Files that can reach each other, more than one, in the order of their names.
    fn circles(&self) -> Vec<Vec<String>> {
        let names: Vec<&Path> = self.modules.keys().collect();
        let number: BTreeMap<&Path, usize> = names.iter().enumerate().map(|(n, path)| (*path, n)).collect();
        let arrows: Vec<Vec<usize>> =
            self.modules.values().map(|m| self.arrows(m).into_iter().map(|to| number[to]).collect()).collect();
        let reach = |from: usize| {
            let (mut seen, mut open) = (vec![false; names.len()], arrows[from].clone());
            while let Some(at) = open.pop() {
                if !std::mem::replace(&mut seen[at], true) {
                    open.extend(&arrows[at]);
                }
            }
            seen
        };
        let reached: Vec<Vec<bool>> = (0..names.len()).map(reach).collect();
        let mut circles = Vec::new();
        for (one, to) in reached.iter().enumerate() {
            let circle: Vec<usize> = (0..names.len()).filter(|&n| to[n] && reached[n][one]).collect();
            if circle.first() == Some(&one) && circle.len() > 1 {
                circles.push(circle.into_iter().map(|n| names[n].join("/")).collect());
            }
        }
        circles
    }
}

#[test]
fn no_circle_among_files() {
    let house = House::read();
    let circles = house.circles();
    let listed =
        |circle: &Vec<String>| CIRCLES.iter().any(|known| circle.iter().all(|file| known.contains(&file.as_str())));
    let arrows_of = |circle: &Vec<String>| {
        let inside = house.modules.values().filter(|module| circle.contains(&module.path.join("/")));
        let arrows = inside.flat_map(|m| house.arrows(m).into_iter().map(|to| (m.path.join("/"), to.join("/"))));
        let inner = arrows.filter(|(_, to)| circle.contains(to)).map(|(from, to)| format!("  {from} -> {to}\n"));
        format!("{}\n{}", circle.join(", "), inner.collect::<String>())
    };
    let fresh: Vec<String> = circles.iter().filter(|circle| !listed(circle)).map(arrows_of).collect();
    assert!(fresh.is_empty(), "{} circles among files:\n{}", fresh.len(), fresh.join("\n"));
    for known in CIRCLES {
        let there = circles.iter().any(|circle| circle.iter().all(|file| known.contains(&file.as_str())));
        assert!(there, "this circle is mended; take it off the list: {}", known.join(", "));
    }
}

#[test]
fn modules_of_workload_lie_on_floors() {
    let floors = [
        "expr",
        "manifest",
        "description",
        "data",
        "read",
        "plan",
        "trace",
        "host",
        "check",
        "cpu",
        "formed",
        "instrument",
    ];
    let floor = |path: &Path| match path.get(1) {
        Some(module) => floors.iter().position(|name| name == module).expect("a module of workload has a floor"),
        None => floors.len(),
    };
    let house = House::read();
    let of_workload = |path: &Path| path.first().is_some_and(|first| first == "workload");
    let mut upward = Vec::new();
    for module in house.modules.values().filter(|module| of_workload(&module.path)) {
        let arrows = house.arrows(module).into_iter().filter(|to| of_workload(to));
        let up = arrows.filter(|to| floor(to) > floor(&module.path));
        upward.extend(up.map(|to| format!("{} -> {}", module.path.join("/"), to.join("/"))));
    }
    assert!(upward.is_empty(), "upward in workload:\n{}", upward.join("\n"));
}
