//! The keys of a sweep file as data; [`schema`](durawarp_workload::schema) checks a document against them.
//!
//! Left out: keys whose names the user chooses (of `set`, `exclude`, `baseline`), which [`keys`](super::keys)
//! checks.

use durawarp_base::document::{KeyRule, Shape, optional, required};

/// A sweep file.
pub(super) const FILE: &[KeyRule] = &[
    required("schema", Shape::Whole),
    required("name", Shape::Text),
    optional("description", Shape::Text),
    required("base", Shape::Table(BASE)),
    optional("axis", Shape::OneOrMany(&Shape::Table(AXIS))),
    optional("exclude", Shape::OneOrMany(&Shape::Any)),
    optional("baseline", Shape::Any),
    optional("metrics", Shape::List(&Shape::Text)),
    optional("figure", Shape::OneOrMany(&FIGURE)),
];

/// What every run has.
const BASE: &[KeyRule] = &[
    optional("machine", Shape::Text),
    optional("workload", Shape::Text),
    optional("workloads", Shape::List(&Shape::Text)),
    optional("scheme", Shape::Text),
    optional("schemes", Shape::List(&Shape::Text)),
    optional("profile", Shape::Text),
    optional("seed", Shape::Whole),
    optional("set", Shape::Any),
    optional("reference", Shape::Boolean),
    optional("launches", Shape::Boolean),
    optional("max_cycles", Shape::Whole),
    optional("sample", Shape::Whole),
    optional("fork_at_cycle", Shape::Whole),
    optional("instrument", Shape::Words(&["none", "cta_undo", "kernel_undo", "idempotent_cta"])),
    optional("flag_barrier", Shape::Words(&["paper", "safe"])),
    optional("loop_log", Shape::Boolean),
    optional("reload", Shape::Boolean),
];

const AXIS: &[KeyRule] = &[
    optional("key", Shape::Text),
    optional("keys", Shape::List(&Shape::Text)),
    optional("values", Shape::List(&Shape::Any)),
    optional(
        "range",
        Shape::Table(&[
            required("from", Shape::Number),
            required("to", Shape::Number),
            optional("step", Shape::Number),
            optional("times", Shape::Number),
        ]),
    ),
];

/// The keys of a kind of figure: its own, then those that all have.
macro_rules! kind {
    ($($own:expr),*) => {
        &[
            $($own,)*
            optional("name", Shape::Text),
            optional("where", Shape::Any),
            optional("each", KEYS),
            optional("title", Shape::Text),
            optional("x_label", Shape::Text),
            optional("y_label", Shape::Text),
            optional("columns", Shape::Whole),
            optional("height_pt", Shape::Number),
        ]
    };
}

/// Keys of points: one or several.
const KEYS: Shape = Shape::OneOrMany(&Shape::Text);
const BETTER: KeyRule = optional("better", Shape::Words(&["lower", "higher"]));
const SCALE: Shape = Shape::Words(&["linear", "log2", "log10"]);

/// A figure, by its kind.
const FIGURE: Shape = Shape::Kinds(&[
    (
        "bars",
        kind!(
            required("x", Shape::Text),
            required("y", Shape::Text),
            optional("group", KEYS),
            optional("normalise", Shape::Boolean),
            optional("mean", KEYS),
            BETTER
        ),
    ),
    (
        "lines",
        kind!(
            required("x", Shape::Text),
            required("y", Shape::Text),
            optional("group", KEYS),
            optional("normalise", Shape::Boolean),
            optional("mean", KEYS),
            optional("x_scale", SCALE),
            optional("y_scale", SCALE),
            BETTER
        ),
    ),
    (
        "heat",
        kind!(
            required("x", Shape::Text),
            required("y", KEYS),
            required("value", Shape::Text),
            optional("normalise", Shape::Boolean),
            optional("mean", KEYS),
            optional("y_scale", SCALE),
            BETTER
        ),
    ),
    (
        "stacked",
        kind!(
            required("x", Shape::Text),
            required("y", Shape::OneOrMany(&Shape::Text)),
            optional("group", KEYS),
            optional("normalise", Shape::Boolean)
        ),
    ),
    ("cdf", kind!(required("y", Shape::Text), optional("group", KEYS), optional("x_scale", SCALE))),
    (
        "scaling",
        kind!(
            required("x", Shape::Text),
            required("y", Shape::Text),
            optional("group", KEYS),
            optional("mean", KEYS),
            BETTER
        ),
    ),
]);
