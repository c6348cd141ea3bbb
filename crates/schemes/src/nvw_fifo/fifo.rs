//! A non-volatile-write FIFO: lines in the order in which they were first stored to, each with whose it is.
//!
//! Source: Gope et al. section 6. Invariants: a line has one entry for each owner part at most; a marker
//! drains all entries ahead at once, so none is ever kept behind one. Entries are few: lines are looked up
//! one after the other.

use std::collections::VecDeque;

use durawarp_checkpoint::{Storable, state};

/// A FIFO whose entries belong to owners `O`.
#[derive(Debug)]
pub(super) struct Fifo<O> {
    capacity: usize,
    entries: VecDeque<(u64, O)>,
    written: u64,
    read: u64,
}

state!(Fifo<O: Storable> { saved: entries, written, read; kept: capacity });

impl<O: Copy> Fifo<O> {
    /// An empty FIFO.
    pub(super) fn new(capacity: usize) -> Self {
        Fifo { capacity, entries: VecDeque::new(), written: 0, read: 0 }
    }

    /// A line is stored to: it gets an entry unless it has one, whose owner it becomes. Returns the head,
    /// where it had to make room.
    pub(super) fn push(&mut self, line: u64, owner: O) -> Option<u64> {
        self.push_part(line, owner, |_| true)
    }

    /// The same among the entries of a part, which has the whole capacity to itself.
    pub(super) fn push_part(&mut self, line: u64, owner: O, part: impl Fn(&O) -> bool) -> Option<u64> {
        if let Some(entry) = self.entries.iter_mut().rev().find(|(other, of)| *other == line && part(of)) {
            entry.1 = owner;
            return None;
        }
        self.written += 1;
        self.entries.push_back((line, owner));
        if self.entries.iter().filter(|(_, of)| part(of)).count() <= self.capacity {
            return None;
        }
        let head = self.entries.iter().position(|(_, of)| part(of))?;
        self.read += 1;
        self.entries.remove(head).map(|(line, _)| line)
    }

    /// Takes an entry of a line out, wherever it is.
    pub(super) fn take(&mut self, line: u64) -> Option<O> {
        let at = self.entries.iter().position(|(other, _)| *other == line)?;
        self.entries.remove(at).map(|(_, owner)| owner)
    }

    /// The same; whether there was one.
    pub(super) fn remove(&mut self, line: u64) -> bool {
        self.take(line).is_some()
    }

    /// Takes the entries of a part, in order.
    pub(super) fn drain(&mut self, part: impl Fn(&O) -> bool) -> Vec<(u64, O)> {
        let (taken, left): (Vec<_>, Vec<_>) = self.entries.drain(..).partition(|(_, of)| part(of));
        self.entries.extend(left);
        self.read += taken.len() as u64;
        taken
    }

    /// Entries written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Entries read so far.
    pub(super) fn read(&self) -> u64 {
        self.read
    }
}
