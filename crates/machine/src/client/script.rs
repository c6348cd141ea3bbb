//! What a client does: which transactions write, where, and what.
//!
//! Invariant: it follows from the parameters and the client's number alone. A transaction that writes has
//! `epochs_per_tx` runs of `bytes_per_epoch` bytes, each at a multiple of that size in the client's memory.
//! Source: the paper emulates persistence in its clients, too, by delays; its mixes give how many
//! transactions write. Addresses and bytes are ours.

use crate::address::mixed;
use durawarp_checkpoint::{state, value};

use super::parameters::{Addresses, ClientSpec};

/// A run of bytes that a verb writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// Its number, from 1.
    pub sequence: u64,
    /// Where, from the first byte of the client's memory.
    pub offset: u64,
}

value!(record Epoch { sequence, offset });

/// The transactions of a client, one after the other.
#[derive(Debug, Clone)]
pub struct Script {
    /// Transactions to come; without end where they are not counted.
    left: Option<u32>,
    write_percent: u64,
    epochs: u32,
    bytes: u64,
    /// Places for an epoch.
    places: u64,
    addresses: Addresses,
    draws: u64,
    sequence: u64,
    /// Of what is written.
    content: u64,
}

state!(Script {
    saved: left, draws, sequence; kept: write_percent, epochs, bytes, places, addresses, content
});

impl Script {
    /// That of a client, by its number among those of all servers.
    pub fn new(spec: &ClientSpec, client: u16) -> Script {
        let seed = mixed(u64::from(spec.seed) << 16 | u64::from(client));
        let bytes = u64::from(spec.bytes_per_epoch);
        Script {
            left: (spec.transactions > 0).then_some(spec.transactions),
            write_percent: spec.write_percent.into(),
            epochs: spec.epochs_per_tx,
            bytes,
            places: spec.region_bytes() / bytes,
            addresses: spec.addresses,
            draws: seed,
            sequence: 0,
            content: mixed(!seed),
        }
    }

    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.draws)
    }

    /// The epochs of the next transaction, none where it does not write; `None` after the last.
    pub fn next_transaction(&mut self) -> Option<Vec<Epoch>> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        if self.draw() % 100 >= self.write_percent {
            return Some(Vec::new());
        }
        let epochs = (0..self.epochs).map(|_| {
            self.sequence += 1;
            let place = match self.addresses {
                Addresses::Log => self.sequence - 1,
                Addresses::Random => self.draw(),
            };
            Epoch { sequence: self.sequence, offset: place % self.places * self.bytes }
        });
        Some(epochs.collect())
    }

    /// What an epoch writes.
    pub fn bytes_of(&self, epoch: Epoch) -> Vec<u8> {
        let words = (0..self.bytes / 8).map(|word| mixed(self.content ^ epoch.sequence << 24 ^ word));
        words.flat_map(u64::to_le_bytes).collect()
    }
}
