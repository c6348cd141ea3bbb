//! `nvw-fifo`: scoped persist barriers by non-volatile-write FIFOs beside the L1s and the L2.
//!
//! ```text
//!   store to NVM ──> L1, entry in the L1 FIFO ──full: head flushed──> L2, entry in the slice's FIFO ──full──> memory
//!   barrier of a scope ──> marker: entries ahead leave the L1 in order, then the marker goes to each slice;
//!                          there entries ahead are written back, and it waits until all that is on its way is durable
//! ```
//! The scope decides who has to arrive and who waits, which is the machine's part; a marker drains what is in
//! its FIFOs, whoever's it is (section 8.2: "conservative but correct"). A line that leaves the L2 by itself
//! is accounted to the next marker. Where the machine's L1s do not combine stores there is nothing dirty in
//! them, and their FIFOs stay empty.
//!
//! Fences (`pm.sfence` and its like) are barriers of thread scope, and write-backs are dropped, as the FIFOs
//! know what is dirty: programs written for clwb run unchanged.
//!
//! Source: Gope, Basu, Puthoor, Meswani, "Scoped persist barriers for GPUs" (section 6.1, Table 2; constants
//! of 7.2.5). Readings: an entry is a block's, not a store's; it is appended unless the block has one; a full
//! FIFO flushes its head; the L2's FIFO is cut by slices, since a line has one, and a marker goes to all of
//! them. Invariants: a dirty line of persistent memory has an entry, or is on its way; no entry of an L1's
//! FIFO names a line that is clean there, as when the S-FIFO or a release had it cleaned; a marker names
//! every line that was stored before it.
//!
//! Not modelled: time at the FIFOs themselves (they are updated beside the caches); preemption for
//! kernel-wide arrival; an S-FIFO of the L2. Table 2 gives S-FIFOs of 16 (L1) and 64 entries (L2) beside
//! NVW-FIFOs of the same sizes. The L1 has its S-FIFO (`l1.sfifo_entries`); the L2 has none: a release ends
//! at the L2, which all SMs share, so that nothing asks which of its lines are dirty. A full one would write
//! lines back early, which is left out with it.

mod fifo;

use std::sync::Arc;

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::promises::Promises;
use durawarp_persist::storage::StorageCost;
use durawarp_persist::{
    Access, AccessKind, Boundary, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, HostHandler, Marker,
    Outbox, PersistScope, Route, Scheme, SliceEvent, SliceHandler, SliceInterests, SmEvent, SmHandler, SmInterests,
    Store, StoreRule, WriteBack, WriteBackRule,
};

use fifo::Fifo;

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("nvw_fifo.toml");

/// Where areas and energies come from.
const COSTS: &str = "Gope et al. section 7.2.5 (FabMem, 45 nm)";

choice! {
    /// Whose entries the L2's FIFO holds.
    pub enum L2Fifo {
        /// All SMs share one: a marker drains the entries of all that are ahead of it.
        Shared = "shared",
        /// Each SM has its own part, of as many entries: a marker drains those of its SM.
        PerCu = "per_cu",
    }
}

choice! {
    /// What the end of a kernel makes durable.
    pub enum KernelEnd {
        /// Nothing.
        None = "none",
        /// All that the kernel has stored.
        WriteBack = "write_back",
    }
}

spec! {
    /// Parameters of the NVW-FIFOs.
    pub struct NvwFifoSpec {
        /// Entries of an L1's FIFO, each a line that is dirty there.
        l1_entries: u32 where 1..=65536,
        /// Entries of the L2's FIFO, all slices together; each slice has at least one.
        l2_entries: u32 where 1..=65536,
        /// Whose entries the L2's FIFO holds: shared, or per_cu (an ablation).
        l2_fifo: L2Fifo,
        /// What the end of a kernel makes durable: none, or write_back: everything.
        kernel_end: KernelEnd,
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct NvwFifo {
    spec: Arc<NvwFifoSpec>,
}

impl NvwFifo {
    /// FIFOs with these parameters.
    pub fn new(spec: NvwFifoSpec) -> Self {
        NvwFifo { spec: Arc::new(spec) }
    }
}

/// What markers found in a FIFO, and what it did by itself.
#[derive(Debug, Default)]
struct FifoTally {
    /// Of each scope: markers, entries of the marker's own instance, entries of others.
    markers: [[u64; 3]; 3],
    /// Entries whose flush a full FIFO brought forward.
    early: u64,
    /// Entries whose lines left by themselves.
    evicted: u64,
}

value!(record FifoTally { markers, early, evicted });

/// The FIFO of an L1.
#[derive(Debug)]
struct L1Fifo {
    fifo: Fifo<(u8, u8)>,
    combines: bool,
    tally: FifoTally,
}

state!(L1Fifo { parts: fifo; saved: tally; kept: combines });

impl L1Fifo {
    /// The L1 serves an access.
    fn access(&mut self, access: &Access, outbox: &mut Outbox) {
        match access.kind {
            AccessKind::Load => {}
            AccessKind::Store => {
                if let Some(head) = self.fifo.push(access.line, access.by) {
                    self.tally.early += 1;
                    outbox.clean(head);
                }
            }
            // It is performed at the L2, behind what the L1 had of its line.
            AccessKind::Atomic | AccessKind::WriteBack => {
                self.fifo.remove(access.line);
            }
        }
    }

    /// A marker comes: what is in the FIFO leaves the L1 before it.
    fn drain(&mut self, marker: &Marker, outbox: &mut Outbox) {
        let [markers, own, others] = &mut self.tally.markers[marker.scope as usize];
        *markers += 1;
        for (line, by) in self.fifo.drain(|_| true) {
            let is_own = match marker.scope {
                PersistScope::Thread => by == marker.by,
                PersistScope::Cta => by.1 == marker.by.1,
                PersistScope::Kernel => true,
            };
            *if is_own { &mut *own } else { &mut *others } += 1;
            outbox.clean(line);
        }
    }
}

impl Handler for L1Fifo {
    state_methods!();

    fn report(&self, report: &mut HandlerReport) {
        const NAMES: [[&str; 3]; 3] = [
            ["l1_wi_markers", "l1_wi_own_entries", "l1_wi_other_entries"],
            ["l1_wg_markers", "l1_wg_own_entries", "l1_wg_other_entries"],
            ["l1_kr_markers", "l1_kr_own_entries", "l1_kr_other_entries"],
        ];
        for (names, counts) in NAMES.iter().zip(&self.tally.markers) {
            names.iter().zip(counts).for_each(|(name, &count)| report.count(name, count));
        }
        report.count("l1_early_entries", self.tally.early);
        report.count("l1_evicted_entries", self.tally.evicted);
        report.count("l1_written_entries", self.fifo.written());
        report.count("l1_read_entries", self.fifo.read());
    }
}

impl SmHandler for L1Fifo {
    fn interests(&self) -> SmInterests {
        SmInterests { accesses: self.combines, ..SmInterests::default() }
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SmEvent::Accessed(access) => self.access(access, outbox),
            // A marker, or a full FIFO, has taken the entry out when it asked for this.
            SmEvent::Cleaned(line) => self.tally.evicted += u64::from(self.fifo.remove(line)),
            SmEvent::Marker(marker) => self.drain(marker, outbox),
            _ => {}
        }
    }

    fn store(&mut self, _: &Store<'_>, _: &mut Outbox) -> StoreRule {
        StoreRule::new(Route::Temporal, false)
    }

    fn write_back(&mut self, _: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        WriteBackRule::Dropped
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        FenceRule::Marker
    }
}

/// The FIFO of an L2 slice, and what has left it but is not durable.
#[derive(Debug)]
struct SliceFifo {
    fifo: Fifo<u16>,
    per_cu: bool,
    leaving: Vec<(u64, u16)>,
    markers: u64,
    own: u64,
    others: u64,
    early: u64,
    evicted: u64,
}

state!(SliceFifo { parts: fifo; saved: leaving, markers, own, others, early, evicted; kept: per_cu });

impl SliceFifo {
    /// The slice has performed a store of an SM.
    fn stored(&mut self, line: u64, from: u16, outbox: &mut Outbox) {
        // Each SM's own part is as large as the shared one.
        let head =
            if self.per_cu { self.fifo.push_part(line, from, |&of| of == from) } else { self.fifo.push(line, from) };
        if let Some(head) = head {
            self.early += 1;
            self.leaving.push((head, from));
            outbox.clean(head);
        }
    }

    fn replaced(&mut self, line: u64) {
        while let Some(of) = self.fifo.take(line) {
            self.evicted += 1;
            self.leaving.push((line, of));
        }
    }

    /// A marker of an SM empties the FIFO, or the SM's part of it.
    fn drain(&mut self, from: u16, outbox: &mut Outbox) {
        self.markers += 1;
        let per_cu = self.per_cu;
        for (line, of) in self.fifo.drain(|&of| !per_cu || of == from) {
            *if of == from { &mut self.own } else { &mut self.others } += 1;
            self.leaving.push((line, of));
        }
        let concerned = self.leaving.iter().filter(|(_, of)| !per_cu || *of == from);
        concerned.for_each(|(line, _)| outbox.clean(*line));
    }
}

impl Handler for SliceFifo {
    state_methods!();

    fn report(&self, report: &mut HandlerReport) {
        report.count("l2_markers", self.markers);
        report.count("l2_own_entries", self.own);
        report.count("l2_other_entries", self.others);
        report.count("l2_early_entries", self.early);
        report.count("l2_evicted_entries", self.evicted);
        report.count("l2_written_entries", self.fifo.written());
        report.count("l2_read_entries", self.fifo.read());
    }
}

impl SliceHandler for SliceFifo {
    fn interests(&self) -> SliceInterests {
        SliceInterests { durability: true, ..SliceInterests::default() }
    }

    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SliceEvent::Accessed(access) if matches!(access.kind, AccessKind::Store | AccessKind::Atomic) => {
                self.stored(access.line, access.from, outbox);
            }
            SliceEvent::Replaced(line) => self.replaced(line),
            SliceEvent::Drain(from) => self.drain(from, outbox),
            SliceEvent::Durable(line) => self.leaving.retain(|(leaving, _)| *leaving != line),
            SliceEvent::Accessed(_) => {}
        }
    }
}

#[derive(Debug)]
struct KernelEndHost {
    kernel_end: KernelEnd,
}

impl Handler for KernelEndHost {
    state_methods!(none);
}

impl HostHandler for KernelEndHost {
    fn boundary(&mut self, _: u8, _: &mut Outbox) -> Boundary {
        match self.kernel_end {
            KernelEnd::None => Boundary::None,
            KernelEnd::WriteBack => Boundary::WriteBackL2,
        }
    }
}

impl Scheme for NvwFifo {
    fn name(&self) -> &'static str {
        "nvw-fifo"
    }

    fn description(&self) -> &'static str {
        "scoped persist barriers: markers drain non-volatile-write FIFOs beside L1s and L2 (Gope et al.)"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        let fifo = Fifo::new(self.spec.l1_entries as usize);
        Some(Box::new(L1Fifo { fifo, combines: place.l1_combines, tally: FifoTally::default() }))
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        let entries = self.spec.l2_entries.div_ceil(u32::from(place.slices).max(1));
        Some(Box::new(SliceFifo {
            fifo: Fifo::new(entries as usize),
            per_cu: self.spec.l2_fifo == L2Fifo::PerCu,
            leaving: Vec::new(),
            markers: 0,
            own: 0,
            others: 0,
            early: 0,
            evicted: 0,
        }))
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(KernelEndHost { kernel_end: self.spec.kernel_end })
    }

    /// The end of a kernel, by request: the paper says nothing of it. Fences are barriers here, and those are
    /// judged by their definition.
    fn promises(&self) -> Promises {
        Promises { kernel_end: self.spec.kernel_end == KernelEnd::WriteBack, ..Promises::NONE }
    }

    fn storage(&self, place: HandlerPlace) -> Vec<StorageCost> {
        let (sms, slices) = (u32::from(place.sms), u32::from(place.slices).max(1));
        let parts = if self.spec.l2_fifo == L2Fifo::PerCu { sms } else { 1 };
        vec![
            StorageCost {
                name: "l1",
                entries: 16,
                area_um2: 2535.24,
                read_pj: 1.44,
                write_pj: 2.49,
                source: COSTS,
                built: (sms, self.spec.l1_entries),
            },
            StorageCost {
                name: "l2",
                entries: 64,
                area_um2: 9133.83,
                read_pj: 5.00,
                write_pj: 6.24,
                source: COSTS,
                built: (slices * parts, self.spec.l2_entries.div_ceil(slices)),
            },
        ]
    }

    fn one_by_one(&self) -> Option<&'static str> {
        None
    }

    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
