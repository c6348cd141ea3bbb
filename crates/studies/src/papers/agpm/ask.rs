//! What may be asked of AGPM's figures, as pure functions of their numbers.
//!
//! The paper's headline, 24.37 to 66.44 %, is in percentage points of normalised time, no relative gain: it
//! is asked for in points. An ask about all 22 kernels is not applicable to fewer.

mod counts;
mod reasons;
mod times;

pub(crate) use counts::{CountedRow, coalescing, counts, localities, rows, traffic};
pub(crate) use reasons::{Judged, reasons};
pub(crate) use times::{SAME, Times, every_scheme, static_paths};

#[cfg(test)]
pub(in crate::papers) mod tests;
