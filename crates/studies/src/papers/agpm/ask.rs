//! What may be asked of AGPM's figures, as pure functions of their numbers.
//!
//! The paper's headline is in percentage points of normalised time, not a relative gain; neither is asked
//! for. An ask about all 22 kernels is not applicable to fewer.

mod counts;
mod reasons;
mod times;

pub(crate) use counts::{CountedRow, coalescing, counts, localities, rows, traffic};
pub(crate) use reasons::{Judged, reasons};
pub(crate) use times::{Times, every_scheme, static_paths};
