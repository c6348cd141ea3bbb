//! A write in the write-pending queue, and the messages that follow when its cells are written.
//!
//! Invariant: a slice hears of a write that is durable late exactly once, when the cells hold all of it.

use smallvec::SmallVec;

use crate::msg::{Line, MemoryDurable, Msg};
use crate::ports::Ports;
use durawarp_checkpoint::value;
use durawarp_engine::{Ctx, Time};
use durawarp_persist::journal::{Author, FactKind};

use super::notes::Notes;

/// Instead of a slice's place at the controller: a read or write of a handler, which concerns no slice.
pub(super) const NOBODY: u8 = u8::MAX;

/// Instead of a slice's place at the controller: a read or write of the DRAM cache. Unlike those of a
/// handler, its writes to persistent memory are in the journal.
pub(super) const DRAM_CACHE: u8 = u8::MAX - 1;

/// A write in the WPQ.
#[derive(Debug, Default)]
pub(super) struct PendingWrite {
    pub(super) mask: u128,
    /// Writes that are durable only when this entry has reached the media, and are told then: slice and
    /// token.
    pub(super) told_later: SmallVec<[(u8, u16); 2]>,
    /// Plain writes of a handler: by whom, and their tokens.
    pub(super) flushes: SmallVec<[(Author, u64); 1]>,
    /// What was accepted, where reads may already see younger bytes and the journal needs the accepted ones.
    pub(super) accepted: Option<Box<Line>>,
}

value!(record PendingWrite { mask, told_later, flushes, accepted });

impl PendingWrite {
    /// The cells of an entry to persistent memory are written at `done`.
    /// Tokens of a handler's plain writes go to `finished`, with the time.
    pub(super) fn reach_media(
        &self,
        line: u64,
        done: Time,
        ports: &Ports,
        notes: &mut Notes,
        finished: &mut Vec<(Time, u64)>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        for &(slice, token) in &self.told_later {
            ports.to_own(slice).send(MemoryDurable { token, at: done }, done - cx.now(), cx);
        }
        if let Some(accepted) = &self.accepted {
            if self.flushes.is_empty() {
                notes.data(done, FactKind::AtMedia, line, self.mask, &accepted.bytes);
            }
            for &(author, _) in &self.flushes {
                notes.data_of(author, done, FactKind::AtMedia, line, self.mask, &accepted.bytes);
            }
        }
        finished.extend(self.flushes.iter().map(|&(_, token)| (done, token)));
    }
}
