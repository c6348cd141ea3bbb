//! A program of CPUs that goes on after a power failure, on the functional driver: how far it may, and
//! whether it ends as the run without a failure did.

use crate::outcome::{Outcome, ProcessOutcome};
use durawarp_riscv::elf::Executable;
use durawarp_riscv::functional::{self, End};

/// How many times as many instructions as the run had it may take, and how many more.
const EXTRA: (u64, u64) = (4, 1 << 24);

/// Instructions that it may take.
pub(super) fn most_instructions(run: &Outcome) -> u64 {
    run.total("core", "instructions") * EXTRA.0 + EXTRA.1
}

/// Says that it has taken more.
pub(super) fn takes_too_long(instructions: u64) -> String {
    format!("gone on, it does not end in {instructions} instructions")
}

/// Its exit code, if that is the run's; none where it was stopped.
///
/// # Errors
/// It ended otherwise than the run.
pub(super) fn exit_code(
    end: End,
    image: &Executable,
    instructions: u64,
    run: Option<&ProcessOutcome>,
) -> Result<Option<i32>, String> {
    let found = match end {
        End::Exited(code) => code,
        End::Stopped => return Ok(None),
        End::Fault(fault) => return Err(format!("gone on, it fails: {fault}")),
        End::Deadlock(harts) => {
            let waits = functional::waits_in_words(&harts, image);
            return Err(format!("gone on, its threads wait for ever: {waits}"));
        }
        End::Repeats(harts) => {
            let told = functional::repeats_in_words(&harts, image);
            return Err(format!("gone on, it repeats itself for ever: {told}"));
        }
        End::Limit => return Err(takes_too_long(instructions)),
    };
    let expected = run.and_then(|process| process.exit_code);
    if expected != Some(found) {
        let expected = expected.map_or("none".to_owned(), |code| code.to_string());
        return Err(format!("gone on, it exits with {found}, expected {expected}"));
    }
    Ok(Some(found))
}
