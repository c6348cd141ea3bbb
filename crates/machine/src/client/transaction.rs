//! The transaction that a client has under way: which of its epochs is posted next, and what an
//! acknowledgement says of it.
//!
//! | what is acknowledged | while it waits for | and then |
//! |---|---|---|
//! | the last epoch, of any attempt | any | the transaction is over |
//! | epoch i, of any attempt | epoch j, not behind i | the one behind i is next |
//! | epoch i | epoch j, behind i | late |
//! | a verb of a transaction before | any | late |
//!
//! An attempt that has waited too long is given up, and the transaction begins anew with other verbs, which
//! write the same bytes at the same places. Verbs of a channel are durable in their order, so that an
//! acknowledgement of epoch i, of whichever attempt, says that all epochs up to i are durable: an
//! acknowledgement that comes late is of use, and a transaction ends though each comes late.
//!
//! Source: persistence parallelism, section V and Fig. 8: without an acknowledgement the system does log
//! abort and tries to persist the transaction again. What a late one is worth is ours.

use durawarp_checkpoint::value;
use durawarp_engine::Time;

use super::script::Epoch;

/// What an acknowledgement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing new.
    Late,
    /// The next epoch may be posted.
    Next,
    /// All epochs are acknowledged.
    Over,
}

/// A transaction that writes.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    epochs: Vec<Epoch>,
    /// The place of the epoch that is posted next.
    next: usize,
    /// The place of the epoch whose acknowledgement is awaited.
    awaited: Option<usize>,
    /// Verbs that ask for an acknowledgement, of all attempts: their numbers, and the places of their epochs.
    asked: Vec<(u64, usize)>,
    /// When its first epoch was posted.
    began: Time,
}

value!(record Transaction { epochs, next, awaited, asked, began });

impl Transaction {
    /// One whose epochs are all to be posted.
    pub(super) fn new(epochs: Vec<Epoch>, now: Time) -> Transaction {
        Transaction { epochs, began: now, ..Transaction::default() }
    }

    /// When its first epoch was posted.
    pub(super) fn began(&self) -> Time {
        self.began
    }

    /// How many epochs it has.
    pub(super) fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// The epoch to be posted now, with its place.
    pub(super) fn post(&mut self) -> Option<(usize, Epoch)> {
        let at = self.next;
        let epoch = *self.epochs.get(at)?;
        self.next += 1;
        Some((at, epoch))
    }

    /// All epochs of the attempt are posted.
    pub(super) fn is_posted(&self) -> bool {
        self.next == self.epochs.len()
    }

    /// The epoch that was posted last asks for an acknowledgement, under this number.
    pub(super) fn asks(&mut self, number: u64) {
        self.awaited = Some(self.next - 1);
        self.asked.push((number, self.next - 1));
    }

    /// The number of the verb whose acknowledgement is awaited.
    pub(super) fn awaited(&self) -> Option<u64> {
        self.awaited.and(self.asked.last()).map(|&(number, _)| number)
    }

    /// A verb is acknowledged.
    pub(super) fn hear(&mut self, number: u64) -> Heard {
        let asked = self.asked.iter().find(|&&(of, _)| of == number);
        let (Some(&(_, at)), Some(awaited)) = (asked, self.awaited) else { return Heard::Late };
        if at < awaited {
            return Heard::Late;
        }
        self.awaited = None;
        self.next = at + 1;
        if self.is_posted() { Heard::Over } else { Heard::Next }
    }

    /// It is given up, and begins anew.
    pub(super) fn begin_anew(&mut self) {
        (self.next, self.awaited) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction of so many epochs; all ask.
    fn of(epochs: u64) -> Transaction {
        let epochs = (1..=epochs).map(|sequence| Epoch { sequence, offset: 64 * sequence });
        Transaction::new(epochs.collect(), 0)
    }

    fn posts(transaction: &mut Transaction, number: u64) -> usize {
        let (at, _) = transaction.post().unwrap();
        transaction.asks(number);
        at
    }

    #[test]
    fn epochs_follow_their_acknowledgements_and_the_last_one_ends_it() {
        let mut transaction = of(2);
        assert_eq!((posts(&mut transaction, 7), transaction.awaited()), (0, Some(7)));
        assert_eq!(
            (transaction.hear(6), transaction.hear(7), transaction.hear(7)),
            (Heard::Late, Heard::Next, Heard::Late)
        );
        assert_eq!((posts(&mut transaction, 8), transaction.is_posted()), (1, true));
        assert_eq!((transaction.hear(8), transaction.awaited(), transaction.hear(8)), (Heard::Over, None, Heard::Late));
    }

    #[test]
    fn an_acknowledgement_of_an_attempt_that_was_given_up_is_of_its_epoch() {
        let mut transaction = of(3);
        assert_eq!((posts(&mut transaction, 1), transaction.hear(1)), (0, Heard::Next));
        assert_eq!(posts(&mut transaction, 2), 1);
        transaction.begin_anew();
        assert_eq!(posts(&mut transaction, 3), 0);
        // The second epoch is durable by the first attempt: the third is next, and the first is behind.
        assert_eq!((transaction.hear(2), transaction.hear(3)), (Heard::Next, Heard::Late));
        assert_eq!(posts(&mut transaction, 4), 2);
        transaction.begin_anew();
        assert_eq!(posts(&mut transaction, 5), 0);
        assert_eq!((transaction.hear(4), transaction.hear(5)), (Heard::Over, Heard::Late));
    }
}
