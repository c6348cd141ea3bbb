//! What persist buffers, home slices and the controller tell each other.

use durawarp_checkpoint::{StateWriter, Storable, value};
use durawarp_persist::SchemeMessage;
use durawarp_persist::journal::Author;

/// Bytes of a line on their way to be durable.
#[derive(Debug, Clone)]
pub struct Persist {
    /// Whose buffer it comes from, by its number among all harts.
    pub hart: u16,
    /// Its entry there.
    pub id: u64,
    /// The entry and how many of its stores were sent, these among them. Of a channel, the verb.
    pub author: Author,
    /// Address of the line's first byte.
    pub line: u64,
    /// Bytes of the line.
    pub mask: u128,
    /// Their content.
    pub bytes: Box<[u8; 128]>,
}

value!(record Persist { hart, id, author, line, mask, bytes });

/// A message between handlers of delegated ordering.
#[derive(Debug)]
pub enum DelegatedMessage {
    /// To the controller: bytes of a line.
    Persist(Persist),
    /// To the controller: an ordering fence of the hart; what follows of it comes after what came before.
    Barrier { hart: u16 },
    /// From the controller: what came of an entry is durable.
    Drained {
        hart: u16,
        /// Its entry.
        id: u64,
        /// In so many messages.
        persists: u32,
    },
    /// To the home of a line that was passed on, and from there to all that got it: entries of a buffer up to
    /// this one are durable.
    Resolved {
        hart: u16,
        /// The entry.
        id: u64,
    },
}

value!(choice DelegatedMessage {
    Persist(persist), Barrier { hart }, Drained { hart, id, persists }, Resolved { hart, id },
});

impl SchemeMessage for DelegatedMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        let of = |kind: u64, hart: u16, id: u64| kind << 60 ^ u64::from(hart) << 44 ^ id;
        match self {
            DelegatedMessage::Persist(persist) => of(1, persist.hart, persist.id) ^ persist.line.rotate_left(9),
            DelegatedMessage::Barrier { hart } => of(2, *hart, 0),
            DelegatedMessage::Drained { hart, id, persists } => of(3, *hart, *id) ^ u64::from(*persists) << 30,
            DelegatedMessage::Resolved { hart, id } => of(4, *hart, *id),
        }
    }
}
