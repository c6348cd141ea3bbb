//! Which instructions of a program of CPUs were simulated, where that is not all of them: plain data.

use serde::{Deserialize, Serialize};

/// What of a program of CPUs was simulated in detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledProcess {
    /// Instructions of an interval; the last one may have more.
    pub interval_instructions: u64,
    /// Instructions before an interval that are simulated and not counted.
    pub warm_up_instructions: u64,
    pub intervals: u64,
    pub intervals_in_detail: u64,
    /// Instructions of the whole program.
    pub instructions: u64,
    /// Those that were simulated, warm-ups included.
    pub instructions_in_detail: u64,
    /// Intervals that execute alike, in the order of their first ones.
    pub phases: Vec<SampledPhase>,
}

/// A phase of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledPhase {
    pub intervals: u64,
    pub intervals_in_detail: u64,
    pub instructions: u64,
}

/// A region of interest. Instructions count from 0, in the order in which the program executes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedRegion {
    /// As it was asked for.
    pub of: String,
    /// The first instruction of the region.
    pub from_instruction: u64,
    /// The first one after it.
    pub to_instruction: u64,
    /// Instructions before the region that were simulated and not counted.
    pub warm_up_instructions: u64,
    /// Instructions whose cycles are the run's time: those of the region, to a cycle's at both ends.
    pub instructions: u64,
    /// Instructions of the whole program.
    pub program_instructions: u64,
}

impl SimulatedRegion {
    /// As a caveat says it; none of a region that is everything.
    pub(crate) fn told(&self) -> Option<String> {
        let SimulatedRegion {
            of, from_instruction, to_instruction, warm_up_instructions, program_instructions, ..
        } = self;
        (to_instruction - from_instruction < *program_instructions).then(|| {
            format!(
                "times and counters are of instructions {from_instruction} to {to_instruction} of {program_instructions} \
                 ({of}), after a warm-up of {warm_up_instructions}; the rest was executed and not timed"
            )
        })
    }
}
