//! What the handlers of tags tell each other.
//!
//! | message | from | to | when |
//! |---|---|---|---|
//! | `Done`, `Go` | SM, hub | hub, SMs | persist barriers of the kernel, at the L1s |
//! | `Beside` | SM 0 | slices | a launch starts beside others: their lines do not come first |
//! | `Tag` | SM | slice | a line leaves the L1; it goes ahead of the line's bytes, of which it is a part |
//! | `Flush` | SM | slices | something waits for stores of a CTA to be durable |
//! | `Durable` | slice | SM | what left the L1 under a name is durable |
//! | `Ask`, `Want`, `Drained`, `Open` | slice, hub | hub, slices | a slice waits for lines of others |
//!
//! Invariant: plain data; where the L2 has one slice, nobody asks.

use durawarp_checkpoint::{StateWriter, Storable, value};
use durawarp_persist::SchemeMessage;

/// What a line's bytes are tagged with: the persist barrier that it is behind, and its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineTag {
    pub(super) line: u64,
    /// The SM's number of the first store in it, by which it is known.
    pub(super) id: u64,
    /// Slot of the CTA: its scope instance, with the SM.
    pub(super) cta: u8,
    /// Stores of the instance up to here come first.
    pub(super) after: u64,
    /// Barriers of the kernel that it is behind: what is behind fewer comes first, of all SMs.
    pub(super) kernel: u64,
}

value!(record LineTag { line, id, cta, after, kernel });

/// What a line may have to wait for in other slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Earlier {
    /// An instance's stores up to a number.
    Cta { sm: u16, cta: u8, number: u64 },
    /// All behind fewer barriers of the kernel.
    Kernel(u64),
}

value!(choice Earlier { Cta { sm, cta, number }, Kernel(kernel) });

impl Earlier {
    fn word(self) -> u64 {
        match self {
            Earlier::Cta { sm, cta, number } => u64::from(sm) << 40 ^ u64::from(cta) << 32 ^ number,
            Earlier::Kernel(kernel) => 1 << 55 ^ kernel,
        }
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TagMessage {
    /// All that the SM stored before this barrier has come to where its L1's lines go.
    Done(u64),
    /// So it is everywhere.
    Go(u64),
    Tag(LineTag),
    /// Lines behind this barrier have no order with those behind `with` alone, of launches in flight.
    Beside {
        kernel: u64,
        with: Vec<u64>,
    },
    /// Stores of a CTA up to this number are to be written to memory.
    Flush {
        cta: u8,
        number: u64,
    },
    /// By its name.
    Durable(u64),
    /// A slice waits for this.
    Ask(Earlier),
    /// Slices are to write this.
    Want(Earlier),
    /// A slice has written all that it has of this.
    Drained(Earlier),
    /// All slices have.
    Open(Earlier),
}

value!(choice TagMessage {
    Done(kernel), Go(kernel), Tag(tag), Flush { cta, number }, Durable(id), Ask(earlier), Want(earlier),
    Drained(earlier), Open(earlier), Beside { kernel, with },
});

impl SchemeMessage for TagMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        let (kind, word) = match *self {
            TagMessage::Beside { kernel, ref with } => {
                (9, with.iter().fold(kernel, |word, of| word.rotate_left(7) ^ of))
            }
            TagMessage::Done(barrier) => (0, barrier),
            TagMessage::Go(barrier) => (1, barrier),
            TagMessage::Tag(LineTag { line, id, cta, after, kernel }) => {
                (2, line ^ id << 24 ^ u64::from(cta) << 48 ^ after << 12 ^ kernel)
            }
            TagMessage::Flush { cta, number } => (3, u64::from(cta) << 48 ^ number),
            TagMessage::Durable(id) => (4, id),
            TagMessage::Ask(earlier) => (5, earlier.word()),
            TagMessage::Want(earlier) => (6, earlier.word()),
            TagMessage::Drained(earlier) => (7, earlier.word()),
            TagMessage::Open(earlier) => (8, earlier.word()),
        };
        kind << 56 ^ word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_numbers_of_their_own() {
        let tag = LineTag { line: 128, id: 3, cta: 1, after: 2, kernel: 0 };
        let cta = Earlier::Cta { sm: 1, cta: 1, number: 3 };
        let messages = [
            TagMessage::Done(3),
            TagMessage::Go(3),
            TagMessage::Tag(tag),
            TagMessage::Flush { cta: 1, number: 3 },
            TagMessage::Durable(3),
            TagMessage::Ask(cta),
            TagMessage::Ask(Earlier::Kernel(3)),
            TagMessage::Want(cta),
            TagMessage::Drained(cta),
            TagMessage::Open(cta),
            TagMessage::Beside { kernel: 3, with: vec![1] },
            TagMessage::Beside { kernel: 3, with: vec![1, 2] },
        ];
        let mut numbers = messages.each_ref().map(|message| message.digest()).to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), messages.len());
        assert_eq!([TagMessage::Done(3), TagMessage::Go(3)].map(|word| word.digest()), [3, 1 << 56 | 3]);
    }
}
