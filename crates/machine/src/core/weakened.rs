//! Rules of the memory order that a test takes from a core, one at a time, to see that litmus programs find
//! each missing one. A machine has all of them.
//!
//! | rule | what a core without it does | what it keeps of RVWMO |
//! |---|---|---|
//! | `SameAddressLoads` | `rvwmo`: an early load keeps older bytes than an older load has | rule 2 |
//! | `EarlyLoads` | `tso`: an early load whose line is lost keeps its bytes | loads in order |
//! | `SecondLine` | of a load across lines, the first line only is watched | both |
//! | `Evictions` | a line that another one replaces is no lost line | both |
//! | `Siblings` | a line that another hart of the core writes is no lost line | both |
//! | `Forwarding` | loads take no bytes of older stores in the store queue | load value axiom |
//! | `UnknownStores` | loads pass older stores whose address, or bytes, are not known | load value axiom |
//! | `FenceWritesReads` | a fence of stores before loads does not wait | rule 4 |
//! | `FenceReads` | `rvwmo`: a fence of loads before others does not wait | rule 4 |
//! | `StoresInOrder` | a store whose line is there is performed before older ones of other bytes | rules 4, 6, 13 |
//! | `StoresAfterLoads` | a store whose line is there is performed when it is dispatched | rules 4, 6, 11, 13 |
//! | `AtomicsAfterLoads` | atomics do not wait for older loads | rules 4 to 8, release |
//! | `AtomicsAfterStores` | atomics do not wait for older stores | rules 1, 4 to 8, release |
//! | `AtomicReadWrite` | an AMO is a load and a later store | atomicity axiom |
//! | `Reservations` | `sc` succeeds without a reservation | atomicity axiom |
//!
//! Not here, since no part of a core could be left out for them. Address and data dependencies (rules 9, 10,
//! 12): an instruction is executed when its operands have values, and no value is guessed. Acquire (rule 5):
//! nothing behind an atomic is dispatched before it is performed. The bits `aq` and `rl`: every atomic has
//! both, whatever they say. Fences of stores before stores and of loads before stores: they have nothing to
//! wait for, as `StoresInOrder` and `StoresAfterLoads` hold without them.

use super::store_queue::Forwarded;

/// A rule: see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table of the module says what each is")]
pub enum OrderRule {
    SameAddressLoads,
    EarlyLoads,
    SecondLine,
    Evictions,
    Siblings,
    Forwarding,
    UnknownStores,
    FenceWritesReads,
    FenceReads,
    StoresInOrder,
    StoresAfterLoads,
    AtomicsAfterLoads,
    AtomicsAfterStores,
    AtomicReadWrite,
    Reservations,
}

/// The rules that a core lacks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weakened(u16);

impl Weakened {
    /// Takes a rule away.
    pub(super) fn lose(&mut self, rule: OrderRule) {
        self.0 |= 1 << rule as u16;
    }

    #[inline]
    pub(super) fn lacks(self, rule: OrderRule) -> bool {
        self.0 >> rule as u16 & 1 == 1
    }

    /// What a load may know of what older stores write of its bytes.
    #[inline]
    pub(super) fn forwarded(self, found: Forwarded) -> Forwarded {
        let rule = match found {
            Forwarded::Bytes { mask: 0, .. } => return found,
            Forwarded::Bytes { .. } => OrderRule::Forwarding,
            Forwarded::Unknown => OrderRule::UnknownStores,
        };
        if self.lacks(rule) { Forwarded::Bytes { value: 0, mask: 0, ready: 0 } } else { found }
    }
}
