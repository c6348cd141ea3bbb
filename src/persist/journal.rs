//! Physical facts about writes to persistent memory, as the components that see them note them down.
//!
//! A component that keeps a journal appends to its own; nobody reads one while the simulation runs, so that keeping them
//! changes no result. Afterwards [`Journal::merged`] puts all facts in one order: by time, then component, then the
//! order in which the component noted them. That order is the same at any number of threads.
//!
//! Invariants: a fact is never changed. Data of a fact is what the mask names; other bytes are not kept.

use crate::engine::Time;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// A store or atomic was performed at the L2: all SMs can see it. In program order for each SM and line.
    Performed,
    /// A write was accepted by a controller's write-pending queue.
    Accepted,
    /// A write reached the cells of the media.
    AtMedia,
    /// A warp's fence let it go on: every persist of the warp before it was acknowledged.
    FencePassed,
    /// A warp issued a store through the caches (program order within a warp).
    Stored,
    /// A warp issued a store past the caches, which a fence of the warp covers without a write-back.
    StoredThrough,
    /// A warp issued an atomic on the line; what it wrote is in the [`FactKind::Performed`] that follows from it.
    Updated,
    /// A warp issued a write-back of the line (program order within a warp).
    WroteBack,
    /// A warp came to a barrier of its CTA.
    BarrierReached,
    /// A barrier that the warp waited at opened.
    BarrierPassed,
    /// A warp did something by which warps of a CTA may pass messages: an atomic, or a memory fence.
    Synchronised,
    /// A CTA started.
    CtaStarted,
    /// A CTA ended: all that it had to make durable is.
    CtaEnded,
    /// The command processor began a launch; its own writes before are durable.
    KernelStarted,
    /// A launch ended: all that it had to make durable is.
    KernelEnded,
}

/// Who in the program did it, as far as the component that noted the fact knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Author {
    /// SM (or the number of SMs for the command processor).
    pub sm: u16,
    /// Launch number, from 0.
    pub launch: u32,
    /// CTA of the launch.
    pub cta: u32,
    /// Warp of the CTA.
    pub warp: u16,
    /// Instruction.
    pub pc: u32,
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

/// Facts in the order they were noted, with their data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    facts: Vec<Fact>,
    bytes: Vec<u8>,
}

impl Journal {
    /// Notes a fact without data.
    pub fn note(&mut self, time: Time, kind: FactKind, line: u64, mask: u128, author: Author) {
        let data = self.bytes.len() as u32;
        self.facts.push(Fact { time, kind, line, mask, author, data });
    }

    /// Notes a fact with the bytes of `line_bytes` (by offset in the line) that `mask` names.
    pub fn note_data(
        &mut self,
        time: Time,
        kind: FactKind,
        line: u64,
        mask: u128,
        author: Author,
        line_bytes: &[u8; 128],
    ) {
        self.note(time, kind, line, mask, author);
        let mut left = mask;
        while left != 0 {
            let start = left.trailing_zeros() as usize;
            let run = (left >> start).trailing_ones() as usize;
            self.bytes.extend_from_slice(&line_bytes[start..start + run]);
            left &= u128::MAX.checked_shl((start + run) as u32).unwrap_or(0);
        }
    }

    /// The facts.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// The bytes of a fact, those of its mask one after the other; empty for one noted without.
    pub fn data(&self, fact: &Fact) -> &[u8] {
        let bytes = fact.mask.count_ones() as usize;
        let start = fact.data as usize;
        match fact.kind {
            FactKind::Performed
            | FactKind::Accepted
            | FactKind::AtMedia
            | FactKind::Stored
            | FactKind::StoredThrough => self.bytes.get(start..start + bytes).unwrap_or_default(),
            FactKind::Updated
            | FactKind::FencePassed
            | FactKind::BarrierReached
            | FactKind::BarrierPassed
            | FactKind::Synchronised
            | FactKind::WroteBack
            | FactKind::CtaStarted
            | FactKind::CtaEnded
            | FactKind::KernelStarted
            | FactKind::KernelEnded => &[],
        }
    }

    /// All facts of several journals in one: by time, then by journal, then by the order in it.
    ///
    /// # Panics
    /// When there are 4 GiB of data or more.
    pub fn merged(journals: &[&Journal]) -> Journal {
        let facts = journals.iter().map(|journal| journal.facts.len()).sum();
        let mut order: Vec<(Time, u32, u32)> = Vec::with_capacity(facts);
        for (which, journal) in journals.iter().enumerate() {
            order.extend(journal.facts.iter().enumerate().map(|(at, fact)| (fact.time, which as u32, at as u32)));
        }
        order.sort_unstable();
        let bytes = journals.iter().map(|journal| journal.bytes.len()).sum();
        assert!(u32::try_from(bytes).is_ok(), "{bytes} bytes of journal");
        let mut merged = Journal { facts: Vec::with_capacity(facts), bytes: Vec::with_capacity(bytes) };
        for (_, which, at) in order {
            let journal = journals[which as usize];
            let fact = journal.facts[at as usize];
            let data = merged.bytes.len() as u32;
            merged.bytes.extend_from_slice(journal.data(&fact));
            merged.facts.push(Fact { data, ..fact });
        }
        merged
    }
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
        let (mut a, mut b) = (Journal::default(), Journal::default());
        let note = |journal: &mut Journal, time: Time, line_address: u64, mask: u128| {
            journal.note_data(time, FactKind::Performed, line_address, mask, Author::default(), &line());
        };
        note(&mut a, 10, 1, 0b1);
        note(&mut a, 20, 2, 0b10);
        note(&mut b, 5, 3, 0b100);
        note(&mut b, 10, 4, 0b1000);
        let merged = Journal::merged(&[&a, &b]);
        let found: Vec<(u64, &[u8])> = merged.facts().iter().map(|f| (f.line, merged.data(f))).collect();
        assert_eq!(found, [(3, &[2][..]), (1, &[0]), (4, &[3]), (2, &[1])]);
    }
}
