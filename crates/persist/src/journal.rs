//! Physical facts about writes to persistent memory, as the components that see them note them down.
//!
//! A component that keeps a journal appends to a [`Notebook`] of its own; nobody reads one while the
//! simulation runs, so that keeping them changes no result. Afterwards [`Journal::merged`] puts all facts in
//! one order: by time, then component, then the order in which the component noted them. That order is the
//! same at any number of threads.
//!
//! Invariants: a fact is never changed. Data of a fact is what the mask names; other bytes are not kept.

use std::borrow::Cow;
use std::sync::Arc;

use durawarp_engine::Time;

pub use super::author::{Author, Thread};

use super::promises::{Fences, Promises};
use super::vocab::{FenceKind, PersistScope, RegionStep};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// A store or atomic was performed at the L2: all SMs can see it. In program order for each SM and line.
    Performed,
    /// A write was accepted by a controller's write-pending queue.
    Accepted,
    /// A write reached what of the media survives a power failure: its cells; or an open row, or a buffer in
    /// front of them, that is durable.
    AtMedia,
    /// A warp's fence let it go on: every persist of the warp before it was acknowledged.
    FencePassed,
    /// A warp's fence let it go on: every write-back of the warp before it was acknowledged, non-temporal
    /// stores were not all.
    FenceOrdered,
    /// A warp's fence let it go on at once, as its handler had nothing to wait for. What the fence should
    /// have come to, if anything, the scheme's promises say ([`Journal::held_to`]).
    FenceSkipped(FenceKind),
    /// What was stored non-temporally before a warp's first such fence that this was not said of yet is
    /// durable, as its SM knows.
    FenceSettled,
    /// A warp issued a store through the caches (program order within a warp). Of cores it is noted when the
    /// store is performed.
    Stored,
    /// A hart retired a store, or performed an atomic (program order within a hart). Noted where caches
    /// survive a power failure.
    Retired,
    /// A warp issued a non-temporal store, which a fence of the warp covers without a write-back.
    StoredNonTemporal,
    /// A warp issued an atomic on the line; what it wrote is in the [`FactKind::Performed`] that follows from
    /// it.
    Updated,
    /// A warp issued a write-back of the line (program order within a warp).
    WroteBack,
    /// A warp came to a barrier of its CTA.
    BarrierReached,
    /// A barrier that the warp waited at opened.
    BarrierPassed,
    /// A warp did something by which warps of a CTA may pass messages: an atomic, or a memory fence.
    Synchronised,
    /// A store joined the bytes that its line has in a write-combining L1 (program order within an SM and
    /// line).
    Merged,
    /// What an SM had combined of a line left its L1 in one write: a [`FactKind::Performed`] of it follows.
    Cleaned,
    /// A warp came to a persist barrier of a scope.
    PersistReached(PersistScope),
    /// A persist barrier let a warp go on: all that its scope stored before is durable.
    PersistPassed(PersistScope),
    /// A CTA started.
    CtaStarted,
    /// A CTA ended: all that it had to make durable is.
    CtaEnded,
    /// The command processor began a launch; its own writes before are durable.
    KernelStarted,
    /// A launch ended: all that it had to make durable is.
    KernelEnded,
    /// A hart stored to memory that is not persistent. Noted, as the three that follow, under schemes whose
    /// handlers follow dependencies.
    PerformedVolatile,
    /// A hart loaded bytes of the line that its L1 had.
    Observed,
    /// An ordering fence of a hart stands behind its stores before it.
    EpochEnded,
    /// The store that was performed just before, of the same hart, is in an entry of the hart's persist
    /// buffer. A write of such an entry that is accepted, or at the media, names the entry.
    Buffered,
    /// A core need not replay its stores to the line any more: they are durable, as it knows.
    Forgotten,
    /// A client posted a verb; this is a line of it, with what it is to have. What is accepted, or at the
    /// media, of a verb names the verb.
    VerbPosted,
    /// A client posted a verb that is not persistent. What becomes durable of it has no author.
    VerbWritten,
    /// The server's NIC acknowledged a verb: it and all verbs before it in its channel are durable.
    VerbAcknowledged,
    /// A step of a recoverable region, as a warp, a hart or a controller took it.
    Region(RegionStep),
    /// What a programmatic launch depended on is over, as the command processor told the SMs.
    PrerequisitesOver,
    /// A warp passed `griddepcontrol.wait`.
    PrerequisitesPassed,
}

impl FactKind {
    /// The author is of a kind that can have done this.
    pub fn may_be_of(self, author: Author) -> bool {
        match self {
            // A slice knows the requester alone, a core its hart.
            FactKind::Performed => matches!(author, Author::Sm(_) | Author::Host | Author::Hart { .. }),
            FactKind::Accepted | FactKind::AtMedia => {
                matches!(author, Author::Unknown | Author::Entry { .. } | Author::Verb { .. })
            }
            FactKind::FencePassed
            | FactKind::FenceOrdered
            | FactKind::FenceSkipped(_)
            | FactKind::FenceSettled
            | FactKind::Stored
            | FactKind::StoredNonTemporal
            | FactKind::Updated
            | FactKind::WroteBack
            | FactKind::BarrierReached
            | FactKind::BarrierPassed
            | FactKind::PrerequisitesPassed
            | FactKind::Synchronised
            | FactKind::PersistReached(_)
            | FactKind::PersistPassed(_) => matches!(author, Author::Warp { .. } | Author::Hart { .. }),
            FactKind::Retired | FactKind::PerformedVolatile | FactKind::Observed | FactKind::EpochEnded => {
                matches!(author, Author::Hart { .. })
            }
            FactKind::Merged | FactKind::Cleaned => matches!(author, Author::Sm(_)),
            FactKind::CtaStarted | FactKind::CtaEnded => matches!(author, Author::Cta { .. }),
            FactKind::KernelStarted | FactKind::KernelEnded | FactKind::PrerequisitesOver => {
                matches!(author, Author::Launch(_))
            }
            FactKind::Buffered => matches!(author, Author::Entry { .. }),
            FactKind::Forgotten => matches!(author, Author::Core { .. }),
            FactKind::VerbPosted | FactKind::VerbWritten => matches!(author, Author::PostedVerb { .. }),
            FactKind::VerbAcknowledged => matches!(author, Author::Verb { .. }),
            // These two steps are taken where the program runs, all others at controllers.
            FactKind::Region(RegionStep::Stored | RegionStep::Ended) => {
                matches!(author, Author::WarpRegion { .. } | Author::HartRegion { .. })
            }
            FactKind::Region(_) => matches!(author, Author::HeldRegion { .. }),
        }
    }
}

/// One fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// When, in ticks.
    pub time: Time,
    /// What.
    pub kind: FactKind,
    /// Address of the line's first byte; 0 where no line is concerned.
    pub line: u64,
    /// Bytes of the line concerned.
    pub mask: u128,
    /// Who.
    pub author: Author,
    /// Where its data lies in the journal.
    data: u32,
}

/// Bytes of a chunk of data; no fact's data crosses a chunk's end.
const CHUNK: usize = 1 << 16;

/// Facts of a chunk.
const RECORDS: usize = 1 << 10;

/// A fact as it is noted: its mask lies before its data, unless it names every byte or none.
#[derive(Debug, Clone, Copy)]
struct Record {
    time: Time,
    line: u64,
    author: Author,
    data: u32,
    kind: FactKind,
    bytes: Bytes,
}

const _: () = assert!(size_of::<Record>() == 40, "a component notes one a fact");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    None,
    Some,
    All,
}

/// What one component notes down: chunks that never move, so that a long run pays for each fact once.
#[derive(Debug, Clone, Default)]
pub struct Notebook {
    records: Vec<Vec<Record>>,
    full: Vec<Arc<Vec<u8>>>,
    open: Vec<u8>,
}

/// Appends the bytes that `mask` names.
fn append(to: &mut Vec<u8>, mask: u128, line_bytes: &[u8; 128]) {
    if mask == u128::MAX {
        to.extend_from_slice(line_bytes);
        return;
    }
    let mut left = mask;
    while left != 0 {
        let start = left.trailing_zeros() as usize;
        let run = (left >> start).trailing_ones() as usize;
        to.extend_from_slice(&line_bytes[start..start + run]);
        left &= u128::MAX.checked_shl((start + run) as u32).unwrap_or(0);
    }
}

impl Notebook {
    /// Notes a fact without data.
    ///
    /// # Panics
    /// In a debug build, as all that note: when such an author cannot have done it.
    #[inline]
    pub fn note(&mut self, time: Time, kind: FactKind, line: u64, author: Author) {
        self.record(Record { time, line, author, data: 0, kind, bytes: Bytes::None });
    }

    /// Notes a fact with the bytes of `line_bytes` (by offset in the line) that `mask` names.
    ///
    /// # Panics
    /// At 4 GiB of data.
    pub fn note_data(
        &mut self,
        time: Time,
        kind: FactKind,
        line: u64,
        mask: u128,
        author: Author,
        line_bytes: &[u8; 128],
    ) {
        if self.open.capacity() == 0 || self.open.len() + 16 + 128 > CHUNK {
            let full = std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK));
            // The first time there is none.
            self.full.extend((!full.is_empty()).then(|| Arc::new(full)));
        }
        let bytes = if mask == u128::MAX { Bytes::All } else { Bytes::Some };
        if bytes == Bytes::Some {
            self.open.extend_from_slice(&mask.to_le_bytes());
        }
        let data = place(self.full.len(), self.open.len());
        append(&mut self.open, mask, line_bytes);
        self.record(Record { time, line, author, data, kind, bytes });
    }

    fn record(&mut self, record: Record) {
        debug_assert!(record.kind.may_be_of(record.author), "{:?} of {:?}", record.kind, record.author);
        match self.records.last_mut() {
            Some(chunk) if chunk.len() < RECORDS => chunk.push(record),
            _ => {
                let mut chunk = Vec::with_capacity(RECORDS);
                chunk.push(record);
                self.records.push(chunk);
            }
        }
    }

    fn facts(&self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }
}

/// Where data lies: the chunk's number, then the place in it.
fn place(chunk: usize, at: usize) -> u32 {
    match u32::try_from(chunk * CHUNK + at) {
        Ok(place) => place,
        Err(_) => panic!("a journal of 4 GiB"),
    }
}

/// Facts in order, with their data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    facts: Vec<Fact>,
    /// Shared with the notebooks that it was merged from.
    chunks: Vec<Arc<Vec<u8>>>,
}

impl Journal {
    /// Appends a fact without data.
    #[inline]
    pub fn note(&mut self, time: Time, kind: FactKind, line: u64, mask: u128, author: Author) {
        self.facts.push(Fact { time, kind, line, mask, author, data: 0 });
    }

    /// Appends a fact with the bytes of `line_bytes` (by offset in the line) that `mask` names.
    ///
    /// # Panics
    /// At 4 GiB of data.
    pub fn note_data(
        &mut self,
        time: Time,
        kind: FactKind,
        line: u64,
        mask: u128,
        author: Author,
        line_bytes: &[u8; 128],
    ) {
        if self.chunks.last().is_none_or(|chunk| chunk.len() + 128 > CHUNK) {
            self.chunks.push(Arc::default());
        }
        let number = self.chunks.len() - 1;
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        let data = place(number, chunk.len());
        append(chunk, mask, line_bytes);
        self.facts.push(Fact { time, kind, line, mask, author, data });
    }

    /// The facts.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// The facts that `of` names, and all others, each in their order. Data is shared, not copied.
    pub fn parted(&self, of: impl Fn(&Fact) -> bool) -> [Journal; 2] {
        let (named, others) = self.facts.iter().partition(|fact| of(fact));
        [named, others].map(|facts| Journal { facts, chunks: self.chunks.clone() })
    }

    /// The facts with each fence that was skipped as what the scheme promised that it would be, so that a
    /// handler that does not keep a promise is judged by it all the same.
    pub fn held_to(&self, promises: &Promises) -> Cow<'_, Journal> {
        if !self.facts.iter().any(|fact| matches!(fact.kind, FactKind::FenceSkipped(_))) {
            return Cow::Borrowed(self);
        }
        let as_promised = |fact: &Fact| match (fact.kind, promises.fences) {
            (FactKind::FenceSkipped(_), Fences::None) => None,
            (FactKind::FenceSkipped(kind), Fences::Dfence) if kind != FenceKind::Dfence => {
                Some(Fact { kind: FactKind::FenceOrdered, ..*fact })
            }
            (FactKind::FenceSkipped(_), _) => Some(Fact { kind: FactKind::FencePassed, ..*fact }),
            _ => Some(*fact),
        };
        let facts = self.facts.iter().filter_map(as_promised);
        Cow::Owned(Journal { facts: facts.collect(), chunks: self.chunks.clone() })
    }

    /// The bytes of a fact, those of its mask one after the other; empty for one noted without.
    pub fn data(&self, fact: &Fact) -> &[u8] {
        let bytes = fact.mask.count_ones() as usize;
        // The bytes of a fact lie in one chunk, so that they are a slice.
        let (chunk, start) = (fact.data as usize / CHUNK, fact.data as usize % CHUNK);
        match fact.kind {
            FactKind::Performed
            | FactKind::Accepted
            | FactKind::AtMedia
            | FactKind::Stored
            | FactKind::Retired
            | FactKind::StoredNonTemporal
            | FactKind::VerbPosted
            | FactKind::VerbWritten
            | FactKind::Region(_) => {
                self.chunks.get(chunk).and_then(|chunk| chunk.get(start..start + bytes)).unwrap_or_default()
            }
            // Listed one by one: a new kind of fact must say here whether it carries data.
            FactKind::Updated
            | FactKind::FencePassed
            | FactKind::FenceOrdered
            | FactKind::FenceSkipped(_)
            | FactKind::FenceSettled
            | FactKind::BarrierReached
            | FactKind::BarrierPassed
            | FactKind::Synchronised
            | FactKind::WroteBack
            | FactKind::Merged
            | FactKind::PerformedVolatile
            | FactKind::Observed
            | FactKind::EpochEnded
            | FactKind::Buffered
            | FactKind::Forgotten
            | FactKind::VerbAcknowledged
            | FactKind::Cleaned
            | FactKind::PersistReached(_)
            | FactKind::PersistPassed(_)
            | FactKind::CtaStarted
            | FactKind::CtaEnded
            | FactKind::KernelStarted
            | FactKind::KernelEnded
            | FactKind::PrerequisitesOver
            | FactKind::PrerequisitesPassed => &[],
        }
    }

    /// All facts of several notebooks in one: by time, then by notebook, then by the order in it. Data is
    /// shared, not copied.
    ///
    /// # Panics
    /// When there are 4 GiB of data or more.
    pub fn merged(notebooks: &[&Notebook]) -> Journal {
        let facts = notebooks.iter().map(|notebook| notebook.facts()).sum();
        let mut order: Vec<(Time, u32, u32)> = Vec::with_capacity(facts);
        let (mut chunks, mut first_chunk) = (Vec::new(), Vec::with_capacity(notebooks.len()));
        for (which, notebook) in notebooks.iter().enumerate() {
            let records = notebook.records.iter().flatten().enumerate();
            order.extend(records.map(|(at, record)| (record.time, which as u32, at as u32)));
            first_chunk.push(chunks.len());
            chunks.extend(notebook.full.iter().cloned());
            chunks.push(Arc::new(notebook.open.clone()));
        }
        // The key is unique: facts of the same time are in an order that does not depend on threads.
        order.sort_unstable();
        let mut merged = Journal { facts: Vec::with_capacity(facts), chunks };
        for (_, which, at) in order {
            let at = at as usize;
            let record = notebooks[which as usize].records[at / RECORDS][at % RECORDS];
            let mut fact = Fact {
                time: record.time,
                kind: record.kind,
                line: record.line,
                mask: 0,
                author: record.author,
                data: 0,
            };
            if record.bytes != Bytes::None {
                let (chunk, start) = (record.data as usize / CHUNK, record.data as usize % CHUNK);
                let chunk = first_chunk[which as usize] + chunk;
                fact.data = place(chunk, start);
                fact.mask = match record.bytes {
                    Bytes::All => u128::MAX,
                    _ => before(&merged.chunks[chunk], start),
                };
            }
            merged.facts.push(fact);
        }
        merged
    }
}

/// The mask that lies before the data at `start`.
fn before(chunk: &[u8], start: usize) -> u128 {
    let mut mask = [0; 16];
    mask.copy_from_slice(&chunk[start - 16..start]);
    u128::from_le_bytes(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> [u8; 128] {
        std::array::from_fn(|i| i as u8)
    }

    #[test]
    fn data_is_what_the_mask_names() {
        let mut journal = Journal::default();
        let mask = 0b111 << 4 | 1 << 127;
        journal.note_data(5, FactKind::Accepted, 256, mask, Author::default(), &line());
        journal.note(6, FactKind::FencePassed, 0, 0, Author::default());
        journal.note_data(7, FactKind::Accepted, 512, u128::MAX, Author::default(), &line());
        let facts = journal.facts();
        assert_eq!(journal.data(&facts[0]), [4, 5, 6, 127]);
        assert!(journal.data(&facts[1]).is_empty());
        assert_eq!(journal.data(&facts[2]), line());
    }

    #[test]
    fn merging_orders_by_time_then_component() {
        let (mut a, mut b) = (Notebook::default(), Notebook::default());
        let note = |journal: &mut Notebook, time: Time, line_address: u64, mask: u128| {
            journal.note_data(time, FactKind::Performed, line_address, mask, Author::Host, &line());
        };
        note(&mut a, 10, 1, 0b1);
        note(&mut a, 20, 2, 0b10);
        note(&mut b, 5, 3, 0b100);
        note(&mut b, 10, 4, 0b1000);
        let merged = Journal::merged(&[&a, &b]);
        let found: Vec<(u64, &[u8])> = merged.facts().iter().map(|f| (f.line, merged.data(f))).collect();
        assert_eq!(found, [(3, &[2][..]), (1, &[0]), (4, &[3]), (2, &[1])]);
    }

    #[test]
    fn a_merged_notebook_is_the_journal_of_the_same_facts_however_many_chunks_they_fill() {
        let (mut notebook, mut journal) = (Notebook::default(), Journal::default());
        let author = Author::Hart { core: 0, hart: 1, pc: 2 };
        for i in 0..3000u64 {
            let mask = u128::MAX.checked_shr((i % 130) as u32).unwrap_or(0) | u128::from(i % 7) << 64;
            let bytes = std::array::from_fn(|at| (at as u64 * 3 + i) as u8);
            notebook.note_data(i, FactKind::Stored, 128 * i, mask, author, &bytes);
            notebook.note(i, FactKind::WroteBack, 128 * i, author);
            journal.note_data(i, FactKind::Stored, 128 * i, mask, author, &bytes);
            journal.note(i, FactKind::WroteBack, 128 * i, 0, author);
        }
        let merged = Journal::merged(&[&notebook]);
        assert!(merged.chunks.len() > 3);
        assert_eq!(merged.facts().len(), journal.facts().len());
        for (found, expected) in merged.facts().iter().zip(journal.facts()) {
            assert_eq!(
                (found.time, found.kind, found.line, found.mask, found.author),
                (expected.time, expected.kind, expected.line, expected.mask, expected.author)
            );
            assert_eq!(merged.data(found), journal.data(expected));
        }
    }

    #[test]
    fn a_fence_that_was_skipped_counts_as_what_was_promised_of_it() {
        let mut journal = Journal::default();
        for kind in [FenceKind::Sfence, FenceKind::Dfence] {
            journal.note(1, FactKind::FenceSkipped(kind), 0, 0, Author::Hart { core: 0, hart: 0, pc: 0 });
        }
        journal.note_data(2, FactKind::Accepted, 0, 1, Author::default(), &[7; 128]);
        let held_to = |fences| {
            let held = journal.held_to(&Promises { fences, ..Promises::NONE }).into_owned();
            let kinds: Vec<FactKind> = held.facts().iter().map(|fact| fact.kind).collect();
            assert_eq!(held.data(held.facts().last().unwrap()), [7]);
            kinds
        };
        assert_eq!(held_to(Fences::All), [FactKind::FencePassed, FactKind::FencePassed, FactKind::Accepted]);
        assert_eq!(held_to(Fences::Dfence), [FactKind::FenceOrdered, FactKind::FencePassed, FactKind::Accepted]);
        assert_eq!(held_to(Fences::None), [FactKind::Accepted]);
    }
}
