//! The keys of a sweep file as data; [`schema`](crate::workload::schema) checks a document against them.
//!
//! Left out: keys whose names the user chooses (of `set`, `exclude`, `baseline`), which [`keys`](super::keys) checks.

use crate::workload::schema::Key;
use crate::workload::schema::Shape;
use crate::workload::schema::optional;
use crate::workload::schema::required;

/// A sweep file.
pub(super) const FILE: &[Key] = &[
    required("schema", Shape::Whole),
    required("name", Shape::Text),
    optional("description", Shape::Text),
    required("base", Shape::Table(BASE)),
    optional("axis", Shape::OneOrMany(&Shape::Table(AXIS))),
    optional("exclude", Shape::OneOrMany(&Shape::Any)),
    optional("baseline", Shape::Any),
    optional("metrics", Shape::List(&Shape::Text)),
    optional("figure", Shape::OneOrMany(&Shape::Table(FIGURE))),
];

/// What every run has.
const BASE: &[Key] = &[
    optional("machine", Shape::Text),
    optional("workload", Shape::Text),
    optional("workloads", Shape::List(&Shape::Text)),
    optional("scheme", Shape::Text),
    optional("schemes", Shape::List(&Shape::Text)),
    optional("profile", Shape::Text),
    optional("seed", Shape::Whole),
    optional("set", Shape::Any),
    optional("reference", Shape::Boolean),
    optional("max_cycles", Shape::Whole),
    optional("instrument", Shape::Words(&["none", "cta_undo", "kernel_undo", "idempotent_cta"])),
    optional("flag_barrier", Shape::Words(&["paper", "safe"])),
    optional("loop_log", Shape::Boolean),
];

const AXIS: &[Key] = &[
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

const FIGURE: &[Key] = &[
    required("kind", Shape::Text),
    required("x", Shape::Text),
    required("y", Shape::Text),
    optional("group", Shape::Text),
    optional("title", Shape::Text),
];
