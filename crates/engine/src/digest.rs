//! Digests by which two runs are compared: a rolling one for each component, and one of the whole run.
//!
//! Every handled event folds `(time, tie, message digest)` into its component's digest, one multiplication
//! each; the digest of the run folds the components' in id order, with their final states. With epochs, the
//! rolling digests are kept at each epoch boundary, so that two runs that differ can be taken to the first
//! epoch and component that did.
//!
//! Source: the folded 64 x 64 -> 128 bit multiplication of wyhash. Not a cryptographic digest, and not a
//! stored format: equal runs of one build give equal digests, other builds may give others.

use super::message::ComponentId;
use super::time::Time;

const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;

/// The rolling digest of a component that has handled nothing.
pub(crate) const START: u64 = 0x8ebc_6af0_9c88_c6e3;

/// Folds one event into a rolling digest. About 1 ns.
#[inline]
pub(crate) fn fold(digest: u64, time: Time, tie: u64, content: u64) -> u64 {
    let product = u128::from(digest ^ time ^ A) * u128::from(content.rotate_left(32) ^ tie ^ B);
    product as u64 ^ (product >> 64) as u64 ^ tie
}

/// Folds a component's final state into a number, for [`Component::digest`](super::Component::digest).
///
/// # Example: a state is words and bytes in order
/// ```
/// use durawarp_engine::StateDigest;
/// let of = |words: &[u64], bytes: &[u8]| {
///     let mut digest = StateDigest::default();
///     words.iter().for_each(|word| digest.word(*word));
///     digest.bytes(bytes);
///     digest.value()
/// };
/// assert_eq!(of(&[1, 2], b"abc"), of(&[1, 2], b"abc"));
/// assert_ne!(of(&[1, 2], b"abc"), of(&[2, 1], b"abc"));
/// assert_ne!(of(&[1, 2], b"abc"), of(&[1, 2], b"abc\0"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateDigest(u64);

impl Default for StateDigest {
    fn default() -> Self {
        StateDigest(START)
    }
}

impl StateDigest {
    /// A word.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0 = fold(self.0, 0, 0, word);
    }

    /// Bytes, and how many.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.words(bytes);
        if bytes.len().is_multiple_of(8) {
            self.word(0);
        }
    }

    /// Words, little-endian, the last one filled up with zeros.
    pub fn words(&mut self, bytes: &[u8]) {
        // A count of words in the loop that is known makes it a third shorter.
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut digest = *self;
        for block in blocks {
            block.as_chunks::<8>().0.iter().for_each(|word| digest.word(u64::from_le_bytes(*word)));
        }
        for rest in rest.chunks(8) {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            digest.word(u64::from_le_bytes(word));
        }
        *self = digest;
    }

    /// The digest of everything that was fed.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The digests of all components at the end of each epoch in which anything happened.
///
/// # Example: the first difference of two runs
/// ```
/// use durawarp_engine::{ComponentId, EpochDigests, first_difference};
/// let mut a = EpochDigests::new(1000);
/// a.record(0, vec![1, 2]);
/// a.record(4, vec![1, 3]);
/// let mut b = EpochDigests::new(1000);
/// b.record(0, vec![1, 2]);
/// b.record(2, vec![1, 3]); // the same event, but in epoch 2
/// assert_eq!(first_difference(&a, &b), Some((2, ComponentId(1))));
/// assert_eq!(first_difference(&a, &a), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochDigests {
    epoch_ticks: Time,
    /// In order of epochs; a missing epoch is as the one before.
    rows: Vec<(u64, Vec<u64>)>,
}

impl EpochDigests {
    /// No epochs yet; each is `epoch_ticks` long.
    pub fn new(epoch_ticks: Time) -> Self {
        EpochDigests { epoch_ticks, rows: Vec::new() }
    }

    /// The length of an epoch, in ticks.
    pub fn epoch_ticks(&self) -> Time {
        self.epoch_ticks
    }

    /// Appends the digests of all components at the end of `epoch`.
    ///
    /// # Panics
    /// When the epoch is not after those recorded.
    pub fn record(&mut self, epoch: u64, digests: Vec<u64>) {
        if let Some(&(last, _)) = self.rows.last() {
            assert!(epoch > last, "epoch {epoch} was recorded after {last}");
        }
        self.rows.push((epoch, digests));
    }

    /// The recorded epochs in order, each with the digests of all components at its end, in id order.
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.rows.iter().map(|(epoch, digests)| (*epoch, &digests[..]))
    }

    /// The digests of one component at the ends of the recorded epochs.
    pub fn of_component(&self, id: ComponentId) -> Vec<u64> {
        self.rows.iter().map(|(_, digests)| digests[id.0 as usize]).collect()
    }
}

/// The first epoch after which two runs differ, and the first component in it that does. Both need epochs of
/// the same length; an epoch that one run did not record is taken as unchanged.
///
/// # Panics
/// When the lengths of the epochs differ.
pub fn first_difference(a: &EpochDigests, b: &EpochDigests) -> Option<(u64, ComponentId)> {
    assert_eq!(a.epoch_ticks, b.epoch_ticks, "only runs with epochs of the same length can be compared");
    let (mut in_a, mut in_b) = (a.rows.iter().peekable(), b.rows.iter().peekable());
    let (mut row_a, mut row_b): (&[u64], &[u64]) = (&[], &[]);
    loop {
        let epoch = match (in_a.peek(), in_b.peek()) {
            (None, None) => return None,
            (Some((x, _)), Some((y, _))) => *x.min(y),
            (Some((x, _)), None) | (None, Some((x, _))) => *x,
        };
        if let Some((_, row)) = in_a.next_if(|(e, _)| *e == epoch) {
            row_a = row;
        }
        if let Some((_, row)) = in_b.next_if(|(e, _)| *e == epoch) {
            row_b = row;
        }
        for id in 0..row_a.len().max(row_b.len()) {
            let digest = |row: &[u64]| row.get(id).copied().unwrap_or(START);
            if digest(row_a) != digest(row_b) {
                return Some((epoch, ComponentId(id as u32)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_event_counts() {
        let base = fold(START, 10, 20, 30);
        for other in [fold(START, 11, 20, 30), fold(START, 10, 21, 30), fold(START, 10, 20, 31), fold(1, 10, 20, 30)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn bytes_are_their_number_and_their_words_piece_by_piece() {
        let bytes: Vec<u8> = (0..200).collect();
        for (length, cut) in [(200, 8), (200, 72), (197, 128), (64, 0), (7, 0), (0, 0)] {
            let (mut whole, mut pieces) = (StateDigest::default(), StateDigest::default());
            whole.bytes(&bytes[..length]);
            pieces.word(length as u64);
            [&bytes[..cut], &bytes[cut..length]].into_iter().for_each(|piece| pieces.words(piece));
            if length % 8 == 0 {
                pieces.word(0);
            }
            assert_eq!(whole, pieces, "{length} bytes cut at {cut}");
        }
    }

    #[test]
    fn the_order_of_events_counts() {
        let ab = fold(fold(START, 1, 2, 3), 4, 5, 6);
        let ba = fold(fold(START, 4, 5, 6), 1, 2, 3);
        assert_ne!(ab, ba);
    }

    #[test]
    fn a_run_that_ends_early_differs_in_the_first_epoch_it_lacks() {
        let mut long = EpochDigests::new(10);
        long.record(0, vec![7]);
        long.record(1, vec![8]);
        let mut short = EpochDigests::new(10);
        short.record(0, vec![7]);
        assert_eq!(first_difference(&long, &short), Some((1, ComponentId(0))));
        assert_eq!(first_difference(&short, &long), Some((1, ComponentId(0))));
    }

    #[test]
    fn an_epoch_in_which_nothing_changed_may_be_missing() {
        let mut a = EpochDigests::new(10);
        a.record(0, vec![START, 5]);
        a.record(3, vec![START, 5]);
        let mut b = EpochDigests::new(10);
        b.record(0, vec![START, 5]);
        assert_eq!(first_difference(&a, &b), None);
    }
}
