//! What may be asked of AGPM's figures, as pure functions of their numbers.
//!
//! The paper's headline is in percentage points of normalised time, not a relative gain; neither is asked for. An ask about
//! all 22 kernels is not applicable to fewer.

mod counts;
mod reasons;
mod times;

pub use counts::{coalescing, counts, localities, traffic};
pub use reasons::{Judged, reasons};
pub use times::{Times, every_scheme, static_paths};
