//! The keys of a manifest as data.
//!
//! Invariant: `workloads/manifest.md` names every key, kind and word (a test compares the two). Not here:
//! meaning and compatibility of values, which the readers (`read`) check.

use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::Shape::{
    self, Any, Boolean, Expression, Forms, Kinds, List, Map, Number, OneOrMany, Text, Whole, Words,
};
use durawarp_base::document::{KeyRule, TomlTable, check_keys, not_yet, optional, required};
use durawarp_kernel::reduction::Fold;

/// Element types, as written.
pub(crate) const ELEMENT_TYPES: [&str; 14] =
    ["u8", "i8", "s8", "u16", "i16", "s16", "u32", "i32", "s32", "u64", "i64", "s64", "f32", "f64"];

/// Memory spaces of buffers.
pub(crate) const SPACES: [&str; 4] = ["dram", "pm", "const", "texture"];

/// Roles of buffers.
pub(crate) const ROLES: [&str; 6] = ["input", "output", "scratch", "undo_log", "tx_flag", "data"];

/// What a `reduce` step makes of elements.
const FOLDS: [&str; 4] = {
    let all = Fold::ALL;
    [all[0].0, all[1].0, all[2].0, all[3].0]
};

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
    optional("depth", Expression),
    optional("pitch", Expression),
    optional("channels", Expression),
    optional("normalized", Boolean),
]);

const SURFACE: Shape = Shape::Table(&[
    optional("name", OneOrMany(&Text)),
    required("width", Expression),
    optional("height", Expression),
    optional("depth", Expression),
    optional("pitch", Expression),
    optional("channels", Expression),
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
    optional("surface", SURFACE),
    optional("guard", Expression),
    optional("padding", Expression),
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

/// What is known of a kernel besides its text.
const KERNEL: Shape = Shape::Table(&[required("communicates", Boolean)]);

const LAUNCH: &[KeyRule] = &[
    required("kernel", Text),
    required("grid", EXTENT),
    required("block", EXTENT),
    optional("shared", Expression),
    optional("regs", Expression),
    optional("carveout_percent", Expression),
    optional("cluster", EXTENT),
    optional("stream", Whole),
    optional("programmatic", Boolean),
    optional("wait", OneOrMany(&Text)),
    optional("record", Text),
    required("args", List(&Any)),
];
const COPY: &[KeyRule] = &[
    required("copy", Text),
    required("to", Text),
    optional("from_index", Expression),
    optional("to_index", Expression),
    optional("count", Expression),
];
const FILL: &[KeyRule] = &[
    required("fill", Text),
    required("value", Expression),
    optional("index", Expression),
    optional("count", Expression),
];
const ENCODE: &[KeyRule] = &[required("encode", Text), required("map", Any), optional("index", Expression)];
const SWAP: &[KeyRule] = &[required("swap", List(&Text))];
const REDUCE: &[KeyRule] = &[
    required("reduce", Text),
    required("op", Words(&FOLDS)),
    required("into", Text),
    optional("field", Text),
    optional("index", Expression),
    optional("count", Expression),
];
const WARM: &[KeyRule] = &[required("warm", OneOrMany(&Text))];
const PERSIST: &[KeyRule] = &[required("persist", OneOrMany(&Text))];

/// A host step.
pub(crate) const STEP: Shape = Forms(&[
    ("kernel", LAUNCH),
    ("copy", COPY),
    ("fill", FILL),
    ("encode", ENCODE),
    ("swap", SWAP),
    ("reduce", REDUCE),
    ("warm", WARM),
    ("persist", PERSIST),
    ("checkpoint", &[not_yet("checkpoint")]),
    ("crash_at", &[not_yet("crash_at")]),
]);

static LOOP: [KeyRule; 8] = [
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

/// A step of recovery: as in the host program, or a loop, known by its list of steps.
static RECOVERY: Shape = Forms(&[
    ("kernel", LAUNCH),
    ("copy", COPY),
    ("fill", FILL),
    ("encode", ENCODE),
    ("swap", SWAP),
    ("reduce", REDUCE),
    ("warm", WARM),
    ("persist", PERSIST),
    ("step", &LOOP),
]);

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
    optional("reload", Boolean),
    optional(
        "outputs",
        List(&Shape::Table(&[
            required("buffer", Text),
            optional("log", Text),
            optional("log_index", Expression),
            optional("kernel", Text),
            optional("index", Expression),
            optional("guard", Expression),
            optional("repeat", Expression),
            optional("dynamic", Boolean),
        ])),
    ),
]);

/// Exactly one of `file` and `text`: the reader of programs sees to it.
const ISA: Shape = Shape::Table(&[
    required("kind", Words(&["ptx", "riscv"])),
    optional("file", OneOrMany(&Text)),
    optional("text", Text),
    optional("stack_bytes", Whole),
]);

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
    optional("kernel", Map(&KERNEL)),
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

/// Checks the top of a manifest.
pub(crate) fn check_manifest(table: TomlTable<'_>, faults: &mut Diagnostics) {
    if let Shape::Table(keys) = MANIFEST {
        check_keys(keys, table, "the manifest", faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word that a user can write because `shape` accepts it.
    fn words(shape: &Shape, out: &mut Vec<&'static str>) {
        let mut keys = |keys: &'static [KeyRule]| {
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
    fn the_pages_name_every_key_kind_word_reference_and_function() {
        let pages =
            concat!(include_str!("../../../../workloads/manifest.md"), include_str!("../../../../workloads/README.md"));
        let mut all = Vec::new();
        let of_cpus = crate::cpu::shapes();
        let fixed = [&MANIFEST, &LOOP_SHAPE, &CONDITION, &REFERENCE_KINDS, &crate::manifest::tensor::SHAPE];
        for shape in fixed.into_iter().chain(of_cpus) {
            words(shape, &mut all);
        }
        for reference in &crate::data::reference::ALL {
            all.push(reference.name);
            all.extend(reference.args.iter().map(|(name, _)| *name));
        }
        all.extend(crate::expr::function_names());
        let named: hashbrown::HashSet<&str> = pages.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        // Spelled as a range on the page.
        let missing: Vec<&str> =
            all.into_iter().filter(|word| !named.contains(word) && !["s16", "s32"].contains(word)).collect();
        assert!(
            missing.is_empty(),
            "workloads/manifest.md, and workloads/README.md of programs of CPUs, do not name {missing:?}"
        );
    }
}
