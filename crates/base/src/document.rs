//! Inputs written in TOML: machines, schemes, workloads and sweeps are read here, and TOML is parsed nowhere
//! else.
//!
//! | file | what it has |
//! |---|---|
//! | `toml` | a text as items with places, all syntax faults at once |
//! | `place` | a range of a text, at which a fault is reported |
//! | `schema` | the keys that a document may have, as data, and the check of one against them |
//! | `value` | an integer or a float |
//! | `form` | which tables and keys a document of parameters (a machine, a scheme) may have |
//! | `draft` | the values of such a document, from its base, the file and overrides, with their sources |
//! | `scalar` | one value of a parameter, checked and converted to its key's unit |
//! | `overrides` | `--set TABLE.KEY=VALUE` as typed; what another document sets |
//!
//! Invariants: all faults of a text are found before any is reported; every fault has a file, a line and a
//! column. Not here: what keys mean and which values go together; the owners of the documents know.

mod draft;
mod form;
mod overrides;
mod place;
mod scalar;
mod schema;
mod toml;
mod value;

pub use overrides::Override;
pub use value::Value;

pub use draft::{Draft, ParameterDocument, parameters_of, top_keys, top_texts};
pub use form::{Form, FormKind, ParameterTable, USER_SOURCE, assumptions, is_path, is_unowned, written};
pub use overrides::Setting;
pub use place::{Place, SourceText};
pub use scalar::{expectation, unit_of};
pub use schema::{KeyRule, Shape, check, check_keys, not_yet, optional, quoted, required};
pub use toml::{Item, TomlTable, parse};
pub use value::Type;
