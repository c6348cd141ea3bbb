//! The books of stores that leave a combining L1 in a scheme's order: which are not durable, and who waits
//! for them.
//!
//! Source and rules: `ordered.rs`. Invariant: a store is pending from its issue until what it left with is
//! durable.

use std::collections::{BTreeMap, BTreeSet};

use durawarp_checkpoint::value;
use durawarp_persist::journal::Author;

/// A store: its CTA's slot and its number.
type Numbered = (u8, u64);

/// What left together.
#[derive(Debug, Default)]
struct Left {
    stores: Vec<Numbered>,
    /// Cleanings that are performed with it.
    cleanings: Vec<u64>,
}

value!(record Left { stores, cleanings });

/// The books of stores to persistent memory that are not durable yet.
#[derive(Debug, Default)]
pub(super) struct PersistOrder {
    issued: u64,
    joined: u64,
    pending: BTreeSet<Numbered>,
    /// By line, the stores in its dirty bytes.
    dirty: BTreeMap<u64, Vec<Numbered>>,
    /// By the handler's name for it, what is under way.
    left: BTreeMap<u64, Left>,
    /// Lines that are to be cleaned, with the numbers of the cleanings.
    wanted: Vec<(u64, u64)>,
    /// Fences that did not wait: CTA, up to which number, who.
    unsettled: Vec<(u8, u64, Author)>,
}

value!(record PersistOrder { issued, joined, pending, dirty, left, wanted, unsettled });

impl PersistOrder {
    /// A warp of a CTA issues so many stores: the number of the last.
    pub(super) fn issue(&mut self, cta: u8, count: u64) -> u64 {
        self.pending.extend((1..=count).map(|nth| (cta, self.issued + nth)));
        self.issued += count;
        self.issued
    }

    /// Stores issued so far.
    pub(super) fn issued(&self) -> u64 {
        self.issued
    }

    /// Some of a CTA's stores up to a number are not durable.
    pub(super) fn is_pending(&self, cta: u8, number: u64) -> bool {
        self.pending.range((cta, 0)..=(cta, number)).next().is_some()
    }

    /// A fence lets its warp go on without having waited.
    pub(super) fn fence(&mut self, cta: u8, number: u64, author: Author) {
        self.unsettled.push((cta, number, author));
    }

    /// A line must leave for a cleaning.
    pub(super) fn want(&mut self, line: u64, cleaning: u64) {
        self.wanted.push((line, cleaning));
    }

    /// The number of the next store that joins its line.
    pub(super) fn next_join(&self) -> u64 {
        self.joined + 1
    }

    /// The next store joins its line.
    pub(super) fn join(&mut self, line: u64, cta: u8) {
        self.joined += 1;
        self.dirty.entry(line).or_default().push((cta, self.joined));
    }

    /// A line leaves under the handler's name for it, as a cleaning; others asked for of it are performed
    /// with it.
    pub(super) fn leave(&mut self, line: u64, id: u64, cleaning: u64) {
        let mut left = Left { stores: self.dirty.remove(&line).unwrap_or_default(), cleanings: vec![cleaning] };
        self.wanted.retain(|&(wanted, cleaning)| {
            left.cleanings.extend((wanted == line).then_some(cleaning));
            wanted != line
        });
        self.left.insert(id, left);
    }

    /// What left is performed at the L2: the cleanings performed with it.
    pub(super) fn perform(&mut self, id: u64) -> Vec<u64> {
        self.left.get_mut(&id).map(|left| std::mem::take(&mut left.cleanings)).unwrap_or_default()
    }

    /// What left is durable: the cleanings performed with it, and who fenced what is settled now.
    pub(super) fn arrive(&mut self, id: u64) -> (Vec<u64>, Vec<Author>) {
        let left = self.left.remove(&id).unwrap_or_default();
        for store in &left.stores {
            self.pending.remove(store);
        }
        let unsettled = std::mem::take(&mut self.unsettled);
        let (open, settled): (Vec<_>, Vec<_>) =
            unsettled.into_iter().partition(|&(cta, number, _)| self.is_pending(cta, number));
        self.unsettled = open;
        (left.cleanings, settled.into_iter().map(|(.., author)| author).collect())
    }

    /// Who waits, for a report: lines that must leave, writes under way, stores not durable. What is
    /// performed at the L2 may stay there.
    pub(super) fn waiting(&self) -> Option<(usize, usize, usize)> {
        let on_their_way = self.left.values().any(|left| !left.cleanings.is_empty());
        (on_their_way || !self.dirty.is_empty()).then_some((self.dirty.len(), self.left.len(), self.pending.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_settled_when_its_ctas_stores_before_it_are_durable_in_whatever_order() {
        let mut books = PersistOrder::default();
        let author = Author::Warp { sm: 0, launch: 0, cta: 0, warp: 3, pc: 0 };
        assert_eq!((books.issue(0, 2), books.issue(1, 1), books.issue(0, 1)), (2, 3, 4));
        books.fence(0, 2, author);
        for (line, cta) in [(0, 0), (128, 0), (256, 1), (128, 0)] {
            books.join(line, cta);
        }
        books.want(128, 7);
        books.leave(128, 50, 8);
        books.leave(0, 51, 9);
        assert_eq!(books.arrive(50), (vec![8, 7], vec![]));
        assert!(books.is_pending(0, 2) && books.is_pending(1, 3));
        assert_eq!(books.arrive(51), (vec![9], vec![author]), "the other CTA's store is not waited for");
        assert!(!books.is_pending(0, 4) && books.is_pending(1, 3));
    }

    #[test]
    fn what_is_performed_at_the_l2_has_cleaned_its_lines_and_is_pending_until_it_is_durable() {
        let mut books = PersistOrder::default();
        books.issue(0, 1);
        books.join(0, 0);
        books.leave(0, 50, 8);
        assert_eq!((books.perform(50), books.perform(50)), (vec![8], vec![]));
        assert!(books.is_pending(0, 1));
        assert_eq!(books.arrive(50), (vec![], vec![]));
        assert!(!books.is_pending(0, 1));
    }
}
