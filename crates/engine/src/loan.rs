//! Components that a partition lends for a round, so that a worker that is done early runs them.
//!
//! ```text
//!   worker 0:  open ─ lend #7 #9 ─ run #0 #3 #5, slices ─ run #7 (nobody took it) ───────────── meet, #9 comes home
//!   worker 1:  open ─ lend #16   ─ run #11 ... ─ run #16 ─ nothing left here: take #9, run it ─ meet
//! ```
//! A loan is the component with the messages of its round. The worker that runs it puts what it sends into
//! its own queue or outboxes. So a borrowed component needs nothing of its owner until the round is over, and
//! no lock is held while it runs.
//!
//! Only a part of a partition's components is lent, always the same: a component that changes cores finds
//! its state in no cache. Not lent: what is fused, since those talk within a round; components of the
//! answering tier, which are asked for promises at home.
//!
//! Source: work stealing (Blumofe and Leiserson, 1999), with a shelf for each worker in place of a deque.
//! Invariants: what a component does in a round depends on its state and its messages only, hence results
//! do not depend on who runs it; every loan is home before the next round.

use super::agenda::RoundKey;
use super::cell::Cell;
use super::tiers::MAX_TIERS;
use super::time::Time;

/// One of this many components of a tier is lent, at least.
const ONE_IN: usize = 3;

/// A component that may be run by another worker, with its messages of the round.
#[derive(Debug)]
pub(crate) struct Loan<M> {
    /// The partition that it is of, and its index there.
    pub(crate) owner: u32,
    pub(super) index: u32,
    /// The component; empty while the loan is not in use.
    pub(super) cell: Cell<M>,
    pub(super) keys: Vec<RoundKey>,
    /// In the order of `keys`.
    pub(super) messages: Vec<M>,
    /// Where the round begins that offsets of `keys` are of.
    pub(super) from: Time,
}

/// Where loans are laid out.
pub(crate) trait Lend<M> {
    /// Whether anybody could take them.
    fn lends(&self) -> bool;
    /// Lays out loans; leaves the list empty.
    fn lend(&mut self, loans: &mut Vec<Loan<M>>);
}

/// Marks the components of a partition that are lent.
pub(crate) fn mark<M>(cells: &mut [Cell<M>]) {
    let each: Vec<_> = cells.iter().map(|cell| cell.may_be_lent().then_some((0, cell.tier))).collect();
    for (cell, lent) in cells.iter_mut().zip(lent(&each, 1)) {
        cell.lent = lent;
    }
}

/// Which components are lent: of each tier of a partition the last of those that may be. `each` has the
/// partition and the tier of a component that may, in id order.
pub(crate) fn lent(each: &[Option<(u32, u8)>], partitions: usize) -> Vec<bool> {
    let place = |(partition, tier): (u32, u8)| partition as usize * MAX_TIERS + usize::from(tier);
    let (mut sizes, mut seen) = (vec![0usize; partitions * MAX_TIERS], vec![0; partitions * MAX_TIERS]);
    each.iter().flatten().for_each(|&of| sizes[place(of)] += 1);
    let mut is_lent = |of| {
        let (size, at) = (sizes[place(of)], seen[place(of)]);
        seen[place(of)] += 1;
        at >= size - size.div_ceil(ONE_IN)
    };
    each.iter().map(|of| of.is_some_and(&mut is_lent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Absent, Standing};
    use crate::message::{ComponentId, Message};
    use crate::wires::Wires;

    #[derive(Debug)]
    struct Nothing;

    impl Message for Nothing {}

    #[test]
    fn a_third_is_lent_and_what_is_fused_or_answers_is_not() {
        let place = |fused, answers| Standing { block: 0, fused, answers };
        let places =
            [(0, place(false, false)); 4].into_iter().chain([(1, place(true, false)), (2, place(false, true))]);
        let absent = |(i, (tier, place))| Cell::new(ComponentId(i), tier, place, Box::new(Absent), Wires::default());
        let mut cells: Vec<Cell<Nothing>> = (0..).zip(places).map(absent).collect();
        mark(&mut cells);
        assert_eq!(cells.iter().map(|cell| cell.lent).collect::<Vec<_>>(), [false, false, true, true, false, false]);
    }
}
