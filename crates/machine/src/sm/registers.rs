//! The registers of a CTA that its warps pass on (`setmaxnreg`).
//!
//! Each warp begins with those that the launch gives its threads, and the pool of its CTA is empty. Counts
//! are registers of one thread: a warp's threads have as many each.
//!
//! | step | effect |
//! |---|---|
//! | `.dec n` | the warp has n; the others are in the pool at once |
//! | `.inc n` | the warp has n when the pool has those that it lacks; until then it waits |
//!
//! Of warps that wait, those go on whose request fits, in the order in which they came. A `.dec` above what
//! the warp has, or an `.inc` below, is a fault of the program: the ISA leaves it undefined.
//!
//! Source: PTX ISA 9.7.19.5. It does not say who goes first, nor what becomes of registers of a warp that
//! ends: chosen are the order above, and that they stay with it. Invariant: what warps have and the pool has
//! is what the CTA began with. Not modelled: what a step costs beyond its issue; spilling of values that do
//! not fit.

use durawarp_checkpoint::value;
use durawarp_kernel::ir::RegisterStep;

/// The registers of a CTA's warps, and those of none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct RegisterPool {
    free: u32,
    /// Warp slots and what each has, in the order of the slots.
    owners: Vec<(u8, u16)>,
    /// Warp slots that wait and what each is to have, in the order in which they came.
    waiting: Vec<(u8, u16)>,
}

value!(record RegisterPool { free, owners, waiting });

/// What becomes of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Taken {
    /// The warp goes on, and those that waited.
    Passes(Vec<u8>),
    /// The warp waits.
    Waits,
}

impl RegisterPool {
    /// A CTA without warps.
    pub(super) fn clear(&mut self) {
        self.free = 0;
        self.owners.clear();
        self.waiting.clear();
    }

    /// A warp of the CTA begins with this many registers a thread.
    pub(super) fn admit(&mut self, warp: u8, registers: u16) {
        self.owners.push((warp, registers));
    }

    fn owned(&mut self, warp: u8) -> &mut u16 {
        let owner = self.owners.iter_mut().find(|(slot, _)| *slot == warp);
        &mut owner.unwrap_or_else(|| panic!("warp {warp} is not of this CTA")).1
    }

    /// A step of a warp.
    ///
    /// # Errors
    /// The warp has less than it would keep, or more than it asks for.
    pub(super) fn step(&mut self, warp: u8, step: RegisterStep) -> Result<Taken, String> {
        let has = *self.owned(warp);
        match step {
            RegisterStep::Release(registers) if registers <= has => {
                self.free += u32::from(has - registers);
                *self.owned(warp) = registers;
                Ok(Taken::Passes(self.serve()))
            }
            RegisterStep::Request(registers) if registers >= has => {
                self.waiting.push((warp, registers));
                // The pool has nothing for the others: it has not grown.
                let served = self.serve();
                Ok(if served.contains(&warp) { Taken::Passes(Vec::new()) } else { Taken::Waits })
            }
            RegisterStep::Release(registers) => {
                Err(format!("`setmaxnreg.dec` to {registers} registers by a warp that has {has}"))
            }
            RegisterStep::Request(registers) => {
                Err(format!("`setmaxnreg.inc` to {registers} registers by a warp that has {has}"))
            }
        }
    }

    /// Gives registers to those that wait and whose request fits; these.
    fn serve(&mut self) -> Vec<u8> {
        let mut served = Vec::new();
        for (warp, registers) in std::mem::take(&mut self.waiting) {
            let lacks = u32::from(registers - *self.owned(warp));
            if lacks <= self.free {
                self.free -= lacks;
                *self.owned(warp) = registers;
                served.push(warp);
            } else {
                self.waiting.push((warp, registers));
            }
        }
        served
    }

    /// What a warp waits for.
    pub(super) fn describe(&self, warp: usize) -> String {
        let of = |list: &[(u8, u16)]| list.iter().find(|(slot, _)| usize::from(*slot) == warp).map_or(0, |one| one.1);
        let lacks = of(&self.waiting).saturating_sub(of(&self.owners));
        format!("{lacks} registers a thread of its CTA's pool, which has {}", self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RegisterStep::{Release, Request};

    fn pool() -> RegisterPool {
        let mut pool = RegisterPool::default();
        (0..3).for_each(|warp| pool.admit(warp, 168));
        pool
    }

    #[test]
    fn a_request_waits_until_others_have_released_enough_and_no_longer() {
        let mut pool = pool();
        assert_eq!(pool.step(1, Request(240)), Ok(Taken::Waits));
        assert_eq!(pool.describe(1), "72 registers a thread of its CTA's pool, which has 0");
        assert_eq!(pool.step(0, Release(104)), Ok(Taken::Passes(vec![])), "64 are not 72");
        assert_eq!(pool.step(0, Release(96)), Ok(Taken::Passes(vec![1])), "72 are");
        assert_eq!((pool.free, pool.owned(0).to_owned(), pool.owned(1).to_owned()), (0, 96, 240));
        assert_eq!(pool.step(1, Request(240)), Ok(Taken::Passes(vec![])), "it has them");
    }

    #[test]
    fn of_those_that_wait_the_first_that_fit_go_on() {
        let mut pool = pool();
        assert_eq!(pool.step(2, Request(248)), Ok(Taken::Waits));
        assert_eq!(pool.step(1, Request(200)), Ok(Taken::Waits));
        assert_eq!(pool.step(0, Release(128)), Ok(Taken::Passes(vec![1])), "40 do for the second alone");
        assert_eq!(pool.step(0, Release(24)), Ok(Taken::Passes(vec![2])));
        assert_eq!(pool.free, 168 * 3 - 24 - 200 - 248);
    }

    #[test]
    fn what_the_isa_leaves_undefined_is_told() {
        let mut pool = pool();
        assert_eq!(pool.step(0, Release(176)).unwrap_err(), "`setmaxnreg.dec` to 176 registers by a warp that has 168");
        assert_eq!(pool.step(0, Request(160)).unwrap_err(), "`setmaxnreg.inc` to 160 registers by a warp that has 168");
        assert_eq!(pool.step(0, Release(168)), Ok(Taken::Passes(vec![])));
    }
}
