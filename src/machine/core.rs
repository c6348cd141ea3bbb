//! An out-of-order CPU core with its L1 data cache.

mod parameters;

pub use parameters::{Consistency, CoreSpec, L1dSpec};
