//! Warps whose way is known beforehand: which instruction each executes next, with which lanes, at which
//! addresses. What an instruction trace says, and nothing of values.
//!
//! A traced warp has no branches to decide: its SIMT stack *is* its way, one path an instruction, each of
//! which joins the next below it at once. Scheduler, scoreboard and memory see a warp like any other.
//! An instruction's lanes are its active lanes for which its guard held.
//!
//! Invariants: the steps of a warp end with the exit of its last lane; a lane that has exited is in no later
//! step. Not modelled: values. Loads give zeros, stores write zeros, atomics add zeros; but barriers in
//! shared memory count what the trace says, since steps wait for them.

mod copies;

use std::fmt;

pub use copies::TracedCopy;

use durawarp_checkpoint::value;

/// Why the instructions of a CTA are not to be had: its file has changed, or cannot be read any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TraceFault(pub String);

/// The instructions of every CTA of a launch, read when a CTA starts.
pub trait CtaSource: Send + Sync + fmt::Debug {
    /// How many CTAs there are.
    fn ctas(&self) -> u64;

    /// The index of a CTA in the grid of the traced launch.
    fn index(&self, cta: u64) -> [u32; 3];

    /// What the warps of a CTA execute, in order. A CTA is asked for once.
    ///
    /// # Errors
    /// Its file cannot be read, or is not what it was.
    fn warps(&self, cta: u64) -> Result<Vec<WarpTrace>, TraceFault>;
}

/// The addresses of an instruction's lanes, in the order of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressForm {
    /// One after the other, this far apart.
    Stride { base: u64, stride: i64 },
    /// One by one, from this place of the list on.
    Each { from: u32 },
}

value!(choice AddressForm { Stride { base, stride }, Each { from } });

/// The memory access of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StepAccess {
    step: u32,
    form: AddressForm,
}

value!(record StepAccess { step, form });

/// The addresses of a warp's steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Accesses {
    steps: u32,
    accesses: Vec<StepAccess>,
    listed: Vec<u64>,
    /// Copies of the copy engine, and their steps.
    copies: Vec<StepCopy>,
}

value!(record Accesses { steps, accesses, listed, copies });

/// The copy of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StepCopy {
    step: u32,
    copy: TracedCopy,
}

value!(record StepCopy { step, copy });

impl Accesses {
    fn step(&self, left: usize) -> u32 {
        self.steps - 1 - left as u32
    }

    /// The copy of the step after which `left` steps follow; none where that has none.
    pub(super) fn copy_of_step(&self, left: usize) -> Option<&TracedCopy> {
        let at = self.copies.binary_search_by_key(&self.step(left), |copy| copy.step).ok()?;
        Some(&self.copies[at].copy)
    }

    /// The addresses of the step after which `left` steps follow.
    fn form(&self, left: usize) -> AddressForm {
        let step = self.step(left);
        let Ok(at) = self.accesses.binary_search_by_key(&step, |access| access.step) else {
            panic!("step {step} of a trace has no addresses");
        };
        self.accesses[at].form
    }

    /// The address of the lane before which `before` others execute that step.
    pub(super) fn of_lane(&self, left: usize, before: usize) -> u64 {
        match self.form(left) {
            AddressForm::Stride { base, stride } => base.wrapping_add_signed(stride.wrapping_mul(before as i64)),
            AddressForm::Each { from } => self.listed[from as usize + before],
        }
    }

    /// Sets the addresses of lanes, ascending, in the step after which `left` steps follow.
    pub(super) fn of_step(&self, left: usize, lanes: impl Iterator<Item = usize>, out: &mut [u64; 64]) {
        match self.form(left) {
            AddressForm::Stride { base, stride } => {
                let mut address = base;
                for lane in lanes {
                    out[lane] = address;
                    address = address.wrapping_add_signed(stride);
                }
            }
            AddressForm::Each { from } => {
                let listed = &self.listed[from as usize..];
                lanes.zip(listed).for_each(|(lane, address)| out[lane] = *address);
            }
        }
    }
}

/// What one warp executes, from its first instruction to its last.
///
/// # Example: two lanes load, then exit
/// ```
/// use durawarp_kernel::traced::WarpTrace;
/// let mut trace = WarpTrace::default();
/// trace.step(0, 0b11);
/// trace.access(&[0x1000, 0x1004]);
/// trace.step(1, 0b11);
/// assert_eq!(trace.steps(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarpTrace {
    /// Instruction and lanes of each step.
    way: Vec<(u32, u32)>,
    accesses: Accesses,
    lanes: u32,
}

impl WarpTrace {
    /// Its next instruction, by its place in the kernel's code, and the lanes that execute it: one at least.
    pub fn step(&mut self, instruction: u32, lanes: u32) {
        self.lanes |= lanes;
        self.way.push((instruction, lanes));
    }

    /// The address of each lane of the last step, in the order of lanes.
    ///
    /// # Panics
    /// Without a step, or an address.
    pub fn access(&mut self, addresses: &[u64]) {
        let step = self.way.len() as u32 - 1;
        let base = addresses[0];
        let stride = addresses.get(1).map_or(0, |second| second.wrapping_sub(base) as i64);
        let even = addresses.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) as i64 == stride);
        let form = if even {
            AddressForm::Stride { base, stride }
        } else {
            let from = self.accesses.listed.len() as u32;
            self.accesses.listed.extend_from_slice(addresses);
            AddressForm::Each { from }
        };
        self.accesses.accesses.push(StepAccess { step, form });
    }

    /// What the copy engine moves for the last step.
    ///
    /// # Panics
    /// Without a step.
    pub fn copy(&mut self, copy: TracedCopy) {
        let step = self.way.len() as u32 - 1;
        self.accesses.copies.push(StepCopy { step, copy });
    }

    /// Puts another instruction in the place of a step's.
    ///
    /// # Panics
    /// Without such a step.
    pub fn replace(&mut self, step: usize, instruction: u32) {
        self.way[step].0 = instruction;
    }

    /// The instruction of each step.
    pub fn instructions(&self) -> impl Iterator<Item = u32> {
        self.way.iter().map(|&(instruction, _)| instruction)
    }

    /// How many instructions it has.
    pub fn steps(&self) -> usize {
        self.way.len()
    }

    /// Instruction and lanes of each step, the lanes of the whole warp, and the addresses of its steps.
    pub(super) fn into_parts(mut self) -> (Vec<(u32, u32)>, u32, Accesses) {
        self.accesses.steps = self.way.len() as u32;
        (self.way, self.lanes, self.accesses)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ir::NEVER;
    use super::super::warp::Warp;
    use super::*;

    /// Lanes 0 and 1 load at `addresses`, lane 0 exits, lane 1 goes on and exits.
    fn warp(addresses: [u64; 2]) -> Warp {
        let mut trace = WarpTrace::default();
        trace.step(5, 0b11);
        trace.access(&addresses);
        for (instruction, lanes) in [(9, 0b01), (2, 0b10), (9, 0b10)] {
            trace.step(instruction, lanes);
        }
        let mut warp = Warp::default();
        warp.follow(trace);
        warp
    }

    #[test]
    fn a_traced_warp_executes_its_steps_in_order_and_exits_by_parts() {
        let mut warp = warp([64, 68]);
        assert_eq!((warp.pc(), warp.active(), warp.live()), (5, 0b11, 0b11));
        warp.advance();
        assert_eq!((warp.pc(), warp.active()), (9, 0b01));
        warp.exit(0b01);
        assert_eq!((warp.pc(), warp.active(), warp.live()), (2, 0b10, 0b10));
        // A branch goes where the trace goes, whatever its target.
        warp.branch(0b10, 3, NEVER);
        assert_eq!((warp.pc(), warp.active()), (9, 0b10));
        warp.exit(0b10);
        assert!(warp.is_done());
    }

    #[test]
    fn addresses_are_those_of_the_step_at_hand() {
        for addresses in [[64, 68], [64, 4096], [4096, 64]] {
            let mut trace = WarpTrace::default();
            trace.step(0, 1);
            trace.step(1, 0b110);
            trace.access(&addresses);
            trace.step(2, 0b111);
            trace.access(&[7, 9, 13]);
            let (way, lanes, accesses) = trace.into_parts();
            assert_eq!((way.len(), lanes), (3, 0b111));
            let mut out = [0; 64];
            accesses.of_step(1, 1..=2, &mut out);
            assert_eq!(out[..3], [0, addresses[0], addresses[1]]);
            accesses.of_step(0, 0..=2, &mut out);
            assert_eq!(out[..3], [7, 9, 13]);
            assert_eq!([0, 1].map(|before| accesses.of_lane(1, before)), addresses);
            assert_eq!([0, 1, 2].map(|before| accesses.of_lane(0, before)), [7, 9, 13]);
        }
    }
}
