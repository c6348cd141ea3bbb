//! The engine through its public interface: order, ends of runs, and the same results whatever runs it.

mod chatter;

mod order;
mod promises;
mod run_ends;
mod same_results;
