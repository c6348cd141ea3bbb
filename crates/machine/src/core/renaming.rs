//! What a hart has of registers that are renamed, under a scheme that holds registers of stores: how many are
//! in flight, and whether its region is about to end ([`super::region`]).
//!
//! Instructions are counted when they are looked at, from the window: after a squash from its beginning.

use durawarp_checkpoint::value;
use durawarp_riscv::instruction::NOWHERE;

use super::window::Window;

/// What a hart has of renaming. Registers of integers come first, those of floating-point after them.
#[derive(Debug, Default)]
pub(super) struct Renaming {
    /// Instructions in the window, of those counted, that write a register of each kind.
    in_flight: [u32; 2],
    /// Instructions before this number are counted.
    counted: u64,
    /// The region ends for lack of a register before the instruction at this address: since which cycle.
    pub(super) ending: Option<(u64, u64)>,
    /// Since when an instruction that is executed alone waits for the end of the region.
    pub(super) since: Option<u64>,
}

value!(record Renaming { in_flight, counted, ending, since });

impl Renaming {
    fn place(register: u8) -> usize {
        usize::from(usize::from(register) >= 32)
    }

    /// Instructions in flight that write a register of the kind of `register`.
    pub(super) fn in_flight(&mut self, window: &Window, register: u8) -> u32 {
        let (head, next) = (window.retired_count() + 1, window.next());
        if next < self.counted {
            // Some that were counted have been squashed.
            (self.in_flight, self.counted) = ([0; 2], head);
        }
        for number in self.counted.max(head)..next {
            let writes = window.entry(number).rd;
            if writes != NOWHERE {
                self.in_flight[Self::place(writes)] += 1;
            }
        }
        self.counted = next;
        self.in_flight[Self::place(register)]
    }

    /// An instruction retires that writes a register, or none.
    pub(super) fn retired(&mut self, number: u64, writes: u8) {
        if number < self.counted && writes != NOWHERE {
            let count = &mut self.in_flight[Self::place(writes)];
            *count = count.saturating_sub(1);
        }
    }
}
