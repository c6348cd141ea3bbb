//! The manifest's schema as data, and the check of a document against it.
//!
//! The check finds every unknown key, missing key and wrong TOML type at once; the readers (`read`, `read_steps`, ...)
//! then take what is well-formed and stay silent about the rest. `workloads/README.md` documents every key; a test
//! compares the two. Over 500 lines with that test: the table of keys is best read in one piece.

use super::document::{Item, Table, advised, nearest};
use crate::diagnostic::Diagnostics;

/// The form of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// A string.
    Text,
    /// `true` or `false`.
    Boolean,
    /// An integer from 0.
    Whole,
    /// An integer or a float.
    Number,
    /// An integer, a float, or an expression in quotes.
    Expression,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list.
    List(&'static Shape),
    /// A value, or a list of such values.
    OneOrMany(&'static Shape),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table whose keys are names that the user chose, each of the same form.
    Map(&'static Shape),
    /// A table whose key `kind` decides which other keys it has.
    Kinds(&'static [(&'static str, &'static [Key])]),
    /// A table in which exactly one of these first keys is present, which decides the other keys.
    Forms(&'static [(&'static str, &'static [Key])]),
    /// Read by hand.
    Any,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
    /// Specified, but nothing acts on it yet: refused rather than ignored.
    NotYet,
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    pub(crate) shape: Shape,
}

use Shape::{Any, Boolean, Expression, Forms, Kinds, List, Map, Number, OneOrMany, Text, Whole, Words};

pub(crate) const fn required(name: &'static str, shape: Shape) -> Key {
    Key { name, need: Need::Required, shape }
}

pub(crate) const fn optional(name: &'static str, shape: Shape) -> Key {
    Key { name, need: Need::Optional, shape }
}

const fn not_yet(name: &'static str) -> Key {
    Key { name, need: Need::NotYet, shape: Shape::Any }
}

/// Element types, as written.
pub(crate) const ELEMENT_TYPES: [&str; 14] =
    ["u8", "i8", "s8", "u16", "i16", "s16", "u32", "i32", "s32", "u64", "i64", "s64", "f32", "f64"];

/// Memory spaces of buffers.
pub(crate) const SPACES: [&str; 4] = ["dram", "pm", "const", "texture"];

/// Roles of buffers.
pub(crate) const ROLES: [&str; 6] = ["input", "output", "scratch", "undo_log", "tx_flag", "data"];

/// Parts of a graph that a buffer can hold.
pub(crate) const GRAPH_PARTS: [&str; 5] = ["row_ptr", "col", "weight", "degree", "source"];

const INIT: Shape = Kinds(&[
    ("const", &[required("value", Expression)]),
    ("iota", &[optional("start", Expression), optional("step", Expression)]),
    ("uniform", &[required("lo", Expression), required("hi", Expression), optional("seed", Whole)]),
    ("lcg", &[optional("modulo", Expression), optional("seed", Whole)]),
    ("expr", &[required("expr", Expression), optional("cols", Expression)]),
    ("affine2d", &[required("expr", Expression), required("cols", Expression)]),
    ("file", &[required("file", Text)]),
    ("csr_graph", &[required("graph", Text), required("part", Words(&GRAPH_PARTS))]),
    ("permutation", &[optional("seed", Whole)]),
    (
        "bplus_tree",
        &[
            required("leaves", Expression),
            required("fan", Expression),
            required("order", Expression),
            required("span", Expression),
        ],
    ),
    (
        "chase",
        &[optional("order", Words(&["random", "stride"])), optional("stride", Expression), optional("seed", Whole)],
    ),
]);

const FIELD: Shape =
    Shape::Table(&[required("name", Text), required("type", Words(&ELEMENT_TYPES)), optional("init", INIT)]);

const TEXTURE: Shape = Shape::Table(&[
    optional("name", Text),
    required("width", Expression),
    optional("height", Expression),
    optional("pitch", Expression),
    optional("channels", Expression),
    optional("normalized", Boolean),
]);

const BUFFER: Shape = Shape::Table(&[
    optional("type", Words(&ELEMENT_TYPES)),
    optional("fields", List(&FIELD)),
    optional("len", Expression),
    optional("space", Words(&SPACES)),
    optional("init", INIT),
    optional("role", Words(&ROLES)),
    optional("of", Text),
    optional("symbol", Text),
    optional("texture", TEXTURE),
    not_yet("align"),
    not_yet("placement"),
]);

const GRAPH: Shape = Kinds(&[
    (
        "rmat",
        &[
            required("nodes", Expression),
            required("edges", Expression),
            optional("a", Expression),
            optional("b", Expression),
            optional("c", Expression),
            optional("max_weight", Expression),
            optional("seed", Whole),
        ],
    ),
    (
        "uniform",
        &[
            required("nodes", Expression),
            required("edges", Expression),
            optional("max_weight", Expression),
            optional("seed", Whole),
        ],
    ),
    (
        "road_grid",
        &[
            required("width", Expression),
            required("height", Expression),
            optional("max_weight", Expression),
            optional("seed", Whole),
        ],
    ),
    ("file", &[required("file", Text)]),
]);

/// The table form of `until` and `while`; they may be expressions as well, so the reader applies it.
pub(crate) const CONDITION: Shape = Shape::Table(&[
    required("buffer", Text),
    optional("index", Expression),
    optional("eq", Expression),
    optional("ne", Expression),
    optional("lt", Expression),
    optional("le", Expression),
    optional("gt", Expression),
    optional("ge", Expression),
]);
const EXTENT: Shape = OneOrMany(&Expression);

const LAUNCH: &[Key] = &[
    required("kernel", Text),
    required("grid", EXTENT),
    required("block", EXTENT),
    optional("shared", Expression),
    optional("regs", Expression),
    required("args", List(&Any)),
];
const COPY: &[Key] = &[
    required("copy", Text),
    required("to", Text),
    optional("from_index", Expression),
    optional("to_index", Expression),
    optional("count", Expression),
];
const FILL: &[Key] = &[
    required("fill", Text),
    required("value", Expression),
    optional("index", Expression),
    optional("count", Expression),
];
const SWAP: &[Key] = &[required("swap", List(&Text))];
const PERSIST: &[Key] = &[required("persist", OneOrMany(&Text))];

/// A host step.
pub(crate) const STEP: Shape = Forms(&[
    ("kernel", LAUNCH),
    ("copy", COPY),
    ("fill", FILL),
    ("swap", SWAP),
    ("persist", PERSIST),
    ("checkpoint", &[not_yet("checkpoint")]),
    ("crash_at", &[not_yet("crash_at")]),
]);

static LOOP: [Key; 8] = [
    optional("count", Expression),
    optional("var", Text),
    optional("until", Any),
    optional("while", Any),
    optional("max", Expression),
    optional("before", List(&STEP)),
    optional("step", List(&STEP)),
    optional("loop", List(&LOOP_SHAPE)),
];
static LOOP_SHAPE: Shape = Shape::Table(&LOOP);

/// A step of recovery: as in the host program, or a loop, told by the steps that it has.
static RECOVERY: Shape =
    Forms(&[("kernel", LAUNCH), ("copy", COPY), ("fill", FILL), ("swap", SWAP), ("persist", PERSIST), ("step", &LOOP)]);

const CHECK: Shape = Shape::Table(&[
    optional("name", Text),
    optional("buffer", Text),
    optional("field", Text),
    required("ref", Any),
    optional("rtol", Number),
    optional("atol", Number),
    optional("sample", Expression),
    optional("buffers", List(&Text)),
    not_yet("crash"),
]);

/// The keys of `ref` in a check, by its `kind`; `rust:NAME` takes the arguments of that reference.
pub(crate) const REFERENCE_KINDS: Shape = Kinds(&[
    ("expr", &[required("expr", Expression)]),
    ("file", &[required("file", Text)]),
    ("functional", &[]),
    ("invariant", &[required("expr", Expression)]),
]);

const EXPECTATION: Shape = Shape::Table(&[
    required("value", Expression),
    optional("tol", Number),
    optional("source", Text),
    optional("profile", OneOrMany(&Text)),
]);

const INSTRUMENT: Shape = Shape::Table(&[
    required("mode", Words(&["none", "cta_undo", "kernel_undo", "idempotent_cta", "manual"])),
    optional("flag_barrier", Words(&["paper", "safe"])),
    optional("loop_log", Boolean),
    optional(
        "outputs",
        List(&Shape::Table(&[
            required("buffer", Text),
            optional("log", Text),
            optional("kernel", Text),
            optional("index", Expression),
            optional("guard", Expression),
            optional("repeat", Expression),
            optional("dynamic", Boolean),
        ])),
    ),
]);

/// Exactly one of `file` and `text`: the reader of programs sees to it.
const ISA: Shape =
    Shape::Table(&[required("kind", Words(&["ptx"])), optional("file", OneOrMany(&Text)), optional("text", Text)]);

/// Domains of persistency, as a machine file has them.
pub(crate) const DOMAINS: [&str; 3] = ["media", "adr", "eadr"];

/// A condition on what a power failure leaves.
const CRASH: Shape = Shape::Table(&[
    required("name", Text),
    required("holds", Expression),
    optional("on", Words(&["recovered", "survived"])),
    optional("source", Text),
    optional("schemes", List(&Text)),
    optional("domains", List(&Words(&DOMAINS))),
    optional(
        "violated_by",
        OneOrMany(&Shape::Table(&[
            optional("schemes", List(&Text)),
            optional("domains", List(&Words(&DOMAINS))),
            optional("flag_barrier", Words(&["paper", "safe"])),
        ])),
    ),
]);

/// A whole manifest.
pub(crate) const MANIFEST: Shape = Shape::Table(&[
    required("schema", Whole),
    required("name", Text),
    required("description", Text),
    optional("seed", Whole),
    required("isa", ISA),
    optional("params", Map(&Number)),
    optional("profile", Map(&Map(&Number))),
    optional("graph", Map(&GRAPH)),
    required("buffer", Map(&BUFFER)),
    optional("step", List(&STEP)),
    optional("loop", List(&LOOP_SHAPE)),
    optional("verify", OneOrMany(&CHECK)),
    optional("expect", Map(&EXPECTATION)),
    optional("instrument", INSTRUMENT),
    optional("recovery", List(&RECOVERY)),
    optional("recovery_limit", Whole),
    optional("crash", OneOrMany(&CRASH)),
    not_yet("measure"),
    not_yet("warmup"),
    not_yet("max_ctas"),
    not_yet("max_cycles"),
    not_yet("max_insts"),
]);

/// Checks `item` against `shape`; `what` names it in messages (`` `len` ``, "a launch step").
pub(crate) fn check(shape: &Shape, item: Item<'_>, what: &str, faults: &mut Diagnostics) {
    let mut wrong = |expected: &str| {
        faults.push(item.place().fault(format!("{what} must be {expected}, found {}", item.described())));
    };
    match shape {
        Shape::Any => {}
        Shape::Text if item.text().is_none() => wrong("a string in quotes"),
        Shape::Boolean if item.boolean().is_none() => wrong("`true` or `false`"),
        Shape::Whole if !matches!(item.number(), Some(super::expr::Value::Int(0..))) => wrong("an integer from 0"),
        Shape::Number if item.number().is_none() => wrong("a number"),
        Shape::Expression if item.number().is_none() && item.text().is_none() => {
            wrong("a number or an expression in quotes");
        }
        Shape::Words(words) => match item.text() {
            None => wrong(&format!("one of {}", quoted(words))),
            Some(found) if !words.contains(&found) => {
                let fault = item.place().fault(format!("{what} must be one of {}, found `{found}`", quoted(words)));
                faults.push(advised(fault, found, words.iter().copied(), || None));
            }
            Some(_) => {}
        },
        Shape::List(shape) => match item.list() {
            None => wrong("a list"),
            Some(items) => items.into_iter().for_each(|item| check(shape, item, &element(what, shape), faults)),
        },
        Shape::OneOrMany(shape) => match item.list() {
            None => check(shape, item, what, faults),
            Some(items) => items.into_iter().for_each(|item| check(shape, item, &element(what, shape), faults)),
        },
        Shape::Table(keys) => match item.table() {
            None => wrong("a table"),
            Some(table) => check_keys(keys, table, what, faults),
        },
        Shape::Map(shape) => match item.table() {
            None => wrong("a table"),
            Some(table) => check_map(shape, table, what, faults),
        },
        Shape::Kinds(kinds) => match item.table() {
            None => wrong("a table with the key `kind`"),
            Some(table) => check_kinds(kinds, table, what, faults),
        },
        Shape::Forms(forms) => match item.table() {
            None => wrong("a table"),
            Some(table) => check_forms(forms, table, what, faults),
        },
        _ => {}
    }
}

/// Checks the top of a manifest.
pub(crate) fn check_manifest(table: Table<'_>, faults: &mut Diagnostics) {
    if let Shape::Table(keys) = MANIFEST {
        check_keys(keys, table, "the manifest", faults);
    }
}

fn element(what: &str, shape: &Shape) -> String {
    match shape {
        Shape::Forms(_) => "a step".to_owned(),
        Shape::Table(_) | Shape::Kinds(_) => match what {
            "`loop`" => "a loop".to_owned(),
            "`verify`" => "a check".to_owned(),
            "`crash`" => "a condition".to_owned(),
            "`figure`" => "a figure".to_owned(),
            _ => format!("an element of {what}"),
        },
        _ => format!("an element of {what}"),
    }
}

/// `` `a`, `b`, `c` ``.
pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Checks a table against its keys.
pub(crate) fn check_keys(keys: &[Key], table: Table<'_>, what: &str, faults: &mut Diagnostics) {
    for (name, place, item) in table.entries() {
        match keys.iter().find(|key| key.name == name) {
            None => {
                let names: Vec<&str> = keys.iter().filter(|key| key.need != Need::NotYet).map(|k| k.name).collect();
                let fault = place.fault(format!("unknown key `{name}` in {what}"));
                faults.push(advised(fault, name, names.iter().copied(), || match names.is_empty() {
                    true => Some("it has no keys".to_owned()),
                    false => Some(format!("its keys are {}", quoted(&names))),
                }));
            }
            Some(key) if key.need == Need::NotYet => {
                faults.push(place.fault(format!("`{name}` in {what} is not supported yet")));
            }
            Some(key) => check(&key.shape, item, &format!("`{name}`"), faults),
        }
    }
    for key in keys.iter().filter(|key| key.need == Need::Required) {
        if table.get(key.name).is_none() {
            faults.push(table.place().fault(format!("{what} lacks the key `{}`", key.name)));
        }
    }
}

fn check_map(shape: &Shape, table: Table<'_>, what: &str, faults: &mut Diagnostics) {
    let noun = match what.trim_matches('`') {
        "params" => "parameter",
        "expect" => "expectation",
        // A map in a map: the parameters of a profile.
        noun if noun.contains('`') => "parameter",
        noun => noun,
    };
    for (name, place, item) in table.entries() {
        let mut characters = name.chars();
        let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !first || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = format!("`{name}` is not a name: a letter or `_`, then letters, digits and `_`");
            faults.push(place.fault(message));
        }
        check(shape, item, &format!("{noun} `{name}`"), faults);
    }
}

fn check_kinds(kinds: &[(&str, &[Key])], table: Table<'_>, what: &str, faults: &mut Diagnostics) {
    let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    let Some(item) = table.get("kind") else {
        let fault = table.place().fault(format!("{what} lacks the key `kind`"));
        faults.push(fault.with_help(format!("one of {}", quoted(&names))));
        return;
    };
    let Some(found) = item.text() else {
        let message = format!("`kind` must be one of {}, found {}", quoted(&names), item.described());
        faults.push(item.place().fault(message));
        return;
    };
    let Some((_, keys)) = kinds.iter().find(|(kind, _)| *kind == found) else {
        let fault = item.place().fault(format!("`kind` must be one of {}, found `{found}`", quoted(&names)));
        faults.push(advised(fault, found, names, || None));
        return;
    };
    let mut all = vec![required("kind", Text)];
    all.extend_from_slice(keys);
    check_keys(&all, table, &format!("{what} of kind `{found}`"), faults);
}

fn check_forms(forms: &[(&str, &[Key])], table: Table<'_>, what: &str, faults: &mut Diagnostics) {
    let present: Vec<_> = forms.iter().filter(|(key, _)| table.get(key).is_some()).collect();
    let names: Vec<&str> = forms.iter().filter(|f| f.1[0].need != Need::NotYet).map(|(key, _)| *key).collect();
    match present[..] {
        [(name, [Key { need: Need::NotYet, .. }, ..])] => {
            let place =
                table.entries().find(|(key, ..)| key == name).map_or_else(|| table.place(), |(_, place, _)| place);
            faults.push(place.fault(format!("a `{name}` step is not supported yet")));
        }
        [(name, keys)] => {
            let what = match *name {
                "kernel" => "a launch step".to_owned(),
                "step" => "a loop".to_owned(),
                name => format!("a `{name}` step"),
            };
            check_keys(keys, table, &what, faults);
        }
        [] => {
            let first = table.entries().next();
            let guess = table.entries().find_map(|(key, ..)| nearest(key, names.iter().copied()));
            let place = first.map_or_else(|| table.place(), |(_, place, _)| place);
            let fault = place.fault(format!("{what} needs one of the keys {}", quoted(&names)));
            faults.push(match guess {
                Some(near) => fault.with_help(format!("did you mean `{near}`?")),
                None => fault,
            });
        }
        [(first, _), (second, _), ..] => {
            let message = format!("{what} has both `{first}` and `{second}`: make it two steps");
            faults.push(table.place().fault(message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word that a user can write because `shape` accepts it.
    fn words(shape: &Shape, out: &mut Vec<&'static str>) {
        let mut keys = |keys: &'static [Key]| {
            for key in keys {
                out.push(key.name);
                // The shape of a loop holds itself.
                if key.name != "loop" {
                    words(&key.shape, out);
                }
            }
        };
        match shape {
            Shape::Table(table) => keys(table),
            Shape::Kinds(forms) | Shape::Forms(forms) => {
                forms.iter().for_each(|(_, form)| keys(form));
                out.extend(forms.iter().map(|(name, _)| *name));
            }
            Shape::Words(found) => out.extend(*found),
            Shape::List(inner) | Shape::OneOrMany(inner) | Shape::Map(inner) => words(inner, out),
            _ => {}
        }
    }

    #[test]
    fn the_readme_names_every_key_kind_word_reference_and_function() {
        let readme = include_str!("../../workloads/README.md");
        let mut all = Vec::new();
        for shape in [&MANIFEST, &LOOP_SHAPE, &CONDITION, &REFERENCE_KINDS] {
            words(shape, &mut all);
        }
        for reference in &crate::workload::reference::ALL {
            all.push(reference.name);
            all.extend(reference.args.iter().map(|(name, _)| *name));
        }
        all.extend(crate::workload::expr::function_names());
        let named: hashbrown::HashSet<&str> = readme.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        // Spelled as a range in the README.
        let missing: Vec<&str> =
            all.into_iter().filter(|word| !named.contains(word) && !["s16", "s32"].contains(word)).collect();
        assert!(missing.is_empty(), "workloads/README.md does not name {missing:?}");
    }
}
