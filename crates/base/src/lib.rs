//! What every crate of Durawarp says: faults with their places, documents of parameters, counters and
//! timelines.
//!
//! | module | what it has |
//! |---|---|
//! | [`cell`] | cells of CSV that no spreadsheet works out |
//! | [`diagnostic`] | faults with file, line and column, all at once, and names that are near |
//! | [`input`] | files as text and bytes |
//! | [`document`] | documents in TOML: what may stand in them, drafts, overrides |
//! | [`sparse`] | copies of large memories that were hardly written |
//! | [`mod@spec`] | parameters as fields with meaning, unit and range |
//! | [`stats`] | counters with descriptions, histograms, tables |
//! | [`timeline`] | spans and levels over time, bounded in number |
//!
//! Invariant: nothing here knows a machine, a program or a scheme.

pub mod cell;
pub mod diagnostic;
pub mod document;
pub mod input;
pub mod sparse;
pub mod spec;
pub mod stats;
pub mod timeline;

#[doc(hidden)]
pub use durawarp_checkpoint as checkpoint;
