//! The `durawarp` command: arguments and exit codes only.
//!
//! Exit codes: 0 all is well; 1 configurations or runs differ, or there are warnings and none are wanted; 2
//! the input is wrong, or an output cannot be written; 3 the simulated program failed or its result is wrong;
//! 4 runs that must be equal differ; 70 the simulator failed; 71 it aborted: memory ran out; 130 interrupted
//! by SIGINT; 143 by SIGTERM.

mod allocator;
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
