//! A slice of the shared cache, the home of its lines: their directory, and the way to memory.

mod parameters;

pub use parameters::LlcSpec;
