//! Many experiments over the cores of a host.
//!
//! Runs of a sweep are independent, so each gets one thread and as many run at a time as there are cores: that is faster
//! than any number of threads in one run. What a point came to does not depend on the others, on their order or on how many
//! run at a time.

mod book;
pub mod runner;

pub use runner::{Done, Point, Progress, Results, Sweep, run};
