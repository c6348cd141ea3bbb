//! The reference model of persist order: which version of each line must be durable at an instant, and which
//! may be. Over 500 lines: one pass over the facts, whose cases are only sound together.
//!
//! ```text
//!  versions of a line, in the order of coherence:   0 ── 1 ── 2 ── 3 ── 4 ── 5
//!                                                   initial   │         │    not performed yet
//!      covered by write-back and fence ───────────────────  must       may
//! ```
//! A line's content is a prefix of its versions: where version v is durable, so is what came before it. A
//! version is *guaranteed* when its own warp stored it in the caches, wrote the line back later, and then
//! passed a fence; or made a non-temporal store and then passed a fence. A durable non-temporal store implies
//! that earlier non-temporal stores of the line are durable, but nothing that still lies in a cache: such
//! versions are kept apart (`through`) and laid over the prefix. The host's writes bypass the caches and are
//! guaranteed when a kernel starts. Anything performed may be durable, since a cache may evict at any time.
//!
//! A persist barrier guarantees what all warps of its scope stored before they came to it. Stores that an L1
//! combined are one version: they are performed together.
//!
//! Hardware may order non-temporal stores without a fence that waits ([`NonTemporalOrder`]): where a scheme
//! promises it, the performance of a later store of the SM guarantees them. A fence that did not wait for
//! them guarantees what was written back; the rest is guaranteed when it is noted to be settled.
//!
//! Sources: the rules of clwb, non-temporal stores and sfence in Intel's persistent-memory programming model;
//! intervals as in PMTest (ASPLOS'19) and Jaaru (ASPLOS'21). Invariants: must <= may; neither goes back. Not
//! modelled: that a barrier between warps makes one warp's write-back cover another's stores (a warp covers
//! its own); values that loads returned.

use std::collections::{BTreeMap, VecDeque};

use super::authors::{ShownAuthor, misattributed};
use super::open_fences::OpenFences;
use super::{LINE, WORDS, runs};
use durawarp_persist::image::PmImage;
use durawarp_persist::journal::{Author, Fact, FactKind, Journal, Thread};
use durawarp_persist::promises::Promises;
use durawarp_persist::vocab::{Domain, NonTemporalOrder, PersistScope};

const NONE: u32 = u32::MAX;

/// What the model has to know besides the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// What survives.
    pub domain: Domain,
    /// What the scheme promises.
    pub promises: Promises,
}

/// One version of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The fact that it was performed, by its place in the journal.
    pub performed: u32,
    /// The fact that a warp issued it; none for the host's. Of several that an L1 combined: the last.
    pub program: Option<u32>,
    /// Where the others that were combined into it lie in the order's list, and how many.
    pub(super) combined: (u32, u32),
    /// It bypassed the caches.
    pub through: bool,
}

/// A word of a line from a version on, until the next entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionEntry {
    pub(super) version: u32,
    pub(super) value: u64,
}

/// A line's history: version v is `versions[v - 1]`, version 0 is the initial content.
#[derive(Debug, Clone)]
pub struct Line {
    /// Address of its first byte.
    pub address: u64,
    /// Its versions, in the order of coherence.
    pub versions: Vec<Version>,
    pub(super) words: [Vec<VersionEntry>; WORDS],
}

/// A warp, or a hart, and what it stored.
#[derive(Debug, Clone)]
pub(super) struct WarpStores {
    pub(super) thread: Option<Thread>,
    /// Its stores and atomics, in program order.
    pub(super) stores: Vec<u32>,
}

/// What an instant does to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The version may be durable.
    May,
    /// All versions up to this one must be.
    Prefix,
    /// All versions up to this one that bypassed the caches must be.
    NonTemporal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IntervalEvent {
    /// The fact that brings it.
    pub(super) fact: u32,
    pub(super) line: u32,
    pub(super) version: u32,
    pub(super) effect: Effect,
}

/// Facts that contradict each other or the machine's own rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The fact at which it shows, by its place in the journal.
    pub fact: usize,
    /// What is wrong.
    pub what: String,
}

/// Where a line stands at an instant: version numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Every version up to this one is durable.
    pub must: u32,
    /// Every non-temporal version up to this one is durable.
    pub through: u32,
    /// No later version is durable.
    pub may: u32,
}

/// The persist order of a run.
#[derive(Debug, Clone)]
pub struct RunOrder<'a> {
    pub(super) journal: &'a Journal,
    pub(super) lines: Vec<Line>,
    pub(super) warps: Vec<WarpStores>,
    pub(super) events: Vec<IntervalEvent>,
    /// What the scheme promises.
    pub(super) promises: Promises,
    /// Line and version of each fact that is a store, an atomic or a performance.
    place: Vec<(u32, u32)>,
    /// Stores that were combined with a later one, by version.
    combined: Vec<u32>,
    faults: Vec<Fault>,
}

/// What a warp has under way while facts are read.
#[derive(Default)]
struct Pending {
    /// All its stores so far.
    stores: Vec<u32>,
    /// By line, the last store through the caches that no write-back covers yet.
    cached: BTreeMap<u32, u32>,
    /// What the next fence guarantees: stores, and whether they bypassed the caches.
    covered: Vec<(u32, bool)>,
    /// For each fence that did not wait, and is not settled, the stores that it did not wait for.
    unsettled: VecDeque<(u32, Vec<(u32, bool)>)>,
    /// Its stores that no persist barrier covers yet, and whether they bypassed the caches.
    open: Vec<(u32, bool)>,
    /// Of each scope, how many persist barriers it has come to, and passed.
    barriers: [(u32, u32); 3],
}

pub(super) fn is_store(kind: FactKind) -> bool {
    matches!(kind, FactKind::Stored | FactKind::StoredNonTemporal | FactKind::Updated)
}

/// A line's bytes in an image; those outside are 0.
pub(super) fn read_line(image: &PmImage, address: u64) -> [u8; LINE] {
    std::array::from_fn(|at| image.read(address + at as u64, 1).map_or(0, |byte| byte[0]))
}

pub(super) fn word_of(bytes: &[u8; LINE], word: usize) -> u64 {
    let word = &bytes[word * 8..word * 8 + 8];
    word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

impl<'a> RunOrder<'a> {
    /// Reads the facts of a merged journal of a run that began with `initial`. Cost: facts × log(lines).
    pub fn new(journal: &'a Journal, initial: &PmImage, model: Model) -> RunOrder<'a> {
        let concerned = |fact: &&Fact| {
            is_store(fact.kind)
                || matches!(
                    fact.kind,
                    FactKind::Performed | FactKind::WroteBack | FactKind::Accepted | FactKind::AtMedia
                )
        };
        let mut addresses: Vec<u64> = journal.facts().iter().filter(concerned).map(|fact| fact.line).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let line = |&address: &u64| {
            let bytes = read_line(initial, address);
            let words = std::array::from_fn(|word| vec![VersionEntry { version: 0, value: word_of(&bytes, word) }]);
            Line { address, versions: Vec::new(), words }
        };
        // Every line has its number and its initial version before the first fact is read.
        let mut order = RunOrder {
            journal,
            lines: addresses.iter().map(line).collect(),
            warps: Vec::new(),
            events: Vec::new(),
            promises: model.promises,
            place: vec![(NONE, NONE); journal.facts().len()],
            combined: Vec::new(),
            faults: Vec::new(),
        };
        let reader = Reader {
            order: &mut order,
            model,
            issued: BTreeMap::new(),
            merged: BTreeMap::new(),
            cleaned: BTreeMap::new(),
            barriers: BTreeMap::new(),
            warps: BTreeMap::new(),
            epochs: BTreeMap::new(),
            paths: BTreeMap::new(),
            fences: OpenFences::default(),
        };
        reader.read();
        order
    }

    /// Contradictions among the facts.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The lines' histories, by address.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Bytes of a line: up to the next one, as lines of a machine may be shorter than [`LINE`].
    pub(super) fn extent(&self, line: usize) -> usize {
        let next = self.lines.get(line + 1).map_or(u64::MAX, |next| next.address);
        (next - self.lines[line].address).min(LINE as u64) as usize
    }

    /// The number of the line that has an address.
    pub(super) fn line_with(&self, address: u64) -> Option<usize> {
        let line = self.lines.partition_point(|line| line.address <= address).checked_sub(1)?;
        (address - self.lines[line].address < self.extent(line) as u64).then_some(line)
    }

    /// The number of a line.
    pub fn line_at(&self, address: u64) -> Option<usize> {
        self.lines.binary_search_by_key(&address, |line| line.address).ok()
    }

    /// Line and version that a store, an atomic or a performance made; none when it was never performed.
    pub fn version_of(&self, fact: usize) -> Option<(usize, u32)> {
        let (line, version) = self.place[fact];
        (version != NONE).then_some((line as usize, version))
    }

    /// Who in the program wrote a version; the host's own and the initial one have none.
    pub fn author(&self, line: usize, version: u32) -> Option<Author> {
        let version = self.lines[line].versions.get(version.checked_sub(1)? as usize)?;
        Some(self.journal.facts()[version.program? as usize].author)
    }

    /// The facts that warps issued a version: several where an L1 combined them.
    pub(super) fn programs(&self, version: &Version) -> impl Iterator<Item = u32> {
        let (first, count) = version.combined;
        self.combined[first as usize..(first + count) as usize].iter().copied().chain(version.program)
    }

    /// A line's content with all versions up to `prefix`, and the non-temporal ones up to `through`.
    pub fn content(&self, line: usize, prefix: u32, through: u32) -> [u8; LINE] {
        let Line { words, versions, .. } = &self.lines[line];
        let mut bytes = [0; LINE];
        for (word, entries) in words.iter().enumerate() {
            // Most words have few versions, and mostly the last is asked for.
            let mut at = entries.len() - 1;
            if entries[at].version > prefix {
                at = entries.partition_point(|entry| entry.version <= prefix) - 1;
            }
            bytes[word * 8..word * 8 + 8].copy_from_slice(&entries[at].value.to_le_bytes());
        }
        for version in prefix..through {
            let version = versions[version as usize];
            if version.through {
                let fact = &self.journal.facts()[version.performed as usize];
                copy(&mut bytes, fact.mask, self.journal.data(fact));
            }
        }
        bytes
    }

    /// A walk over instants, from the first.
    pub fn instants(&self) -> Instant<'_> {
        Instant { order: self, at: 0, next: 0, bounds: vec![Bounds::default(); self.lines.len()] }
    }
}

/// Copies the data of `mask`, bytes one after the other.
fn copy(bytes: &mut [u8; LINE], mask: u128, data: &[u8]) {
    let mut at = 0;
    for (start, count) in runs(mask) {
        // A fact may be without data.
        let count = count.min(data.len() - at);
        bytes[start..start + count].copy_from_slice(&data[at..at + count]);
        at += count;
    }
}

/// Reads facts in order.
struct Reader<'o, 'a> {
    order: &'o mut RunOrder<'a>,
    model: Model,
    /// Stores of an SM to a line that are not performed yet.
    issued: BTreeMap<LineOfSm, VecDeque<u32>>,
    /// Of these, what has joined its line in the SM's L1; and what has left it together.
    merged: BTreeMap<LineOfSm, Vec<u32>>,
    cleaned: BTreeMap<LineOfSm, VecDeque<Vec<u32>>>,
    /// What a persist barrier of a scope, by its number, makes durable.
    barriers: BTreeMap<(PersistScope, Instance, u32), Vec<(u32, bool)>>,
    warps: BTreeMap<Option<Thread>, Pending>,
    /// Stores that the end of an epoch guarantees.
    epochs: BTreeMap<Epoch, Vec<u32>>,
    /// By SM, where the machine orders them: non-temporal stores that nothing guarantees yet, in the order of
    /// issue.
    paths: BTreeMap<Path, VecDeque<u32>>,
    /// Where caches keep the order on.
    fences: OpenFences,
}

/// An SM, or a core, which the host is not; and a line.
type LineOfSm = (Option<u16>, u32);

/// Whose non-temporal stores are kept in order: an SM's, or those of one launch and CTA there.
type Path = (Option<u16>, Option<(u32, u32)>);

/// What ends with all its stores durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Epoch {
    /// The host's, when a launch starts.
    Host,
    Launch(u32),
    /// A launch's CTA.
    Cta(u32, u32),
}

impl Reader<'_, '_> {
    fn read(mut self) {
        for (at, fact) in self.order.journal.facts().iter().enumerate() {
            let at = at as u32;
            if let Some(what) = misattributed(fact) {
                self.fault(at, what);
                continue;
            }
            self.fences.launches.take(at, fact);
            match (fact.kind, fact.author) {
                (FactKind::Stored | FactKind::StoredNonTemporal | FactKind::Updated, _) => self.issue(at, fact),
                (FactKind::Performed, _) => self.perform(at, fact),
                // A write-back covers what its own warp stored before it; a fence of the warp then guarantees
                // it.
                (FactKind::WroteBack, _) => {
                    let line = self.line(fact.line);
                    let pending = self.warps.entry(fact.author.thread()).or_default();
                    pending.covered.extend(pending.cached.remove(&line).map(|store| (store, false)));
                }
                (FactKind::FencePassed, _) => {
                    let pending = self.warps.entry(fact.author.thread()).or_default();
                    let mut covered = std::mem::take(&mut pending.covered);
                    covered.extend(pending.unsettled.iter().flat_map(|(_, stores)| stores));
                    self.guarantee(at, &covered);
                }
                // A fence that did not wait guarantees what was written back. Non-temporal stores wait in a
                // queue, since such fences are settled in their order.
                (FactKind::FenceOrdered, _) => {
                    let pending = self.warps.entry(fact.author.thread()).or_default();
                    let (non_temporal, covered) =
                        std::mem::take(&mut pending.covered).into_iter().partition(|(_, nt)| *nt);
                    pending.unsettled.push_back((at, non_temporal));
                    self.fences.opens(at, fact);
                    self.guarantee(at, &covered);
                }
                (FactKind::FenceSettled, _) => {
                    let pending = self.warps.entry(fact.author.thread()).or_default();
                    let (fence, covered) = pending.unsettled.pop_front().unwrap_or_default();
                    self.guarantee(at, &covered);
                    self.fences.settles(fence, fact);
                    self.release(at);
                }
                // Epochs end for the host always, for CTAs and kernels where the machine promises it.
                (FactKind::KernelStarted, _) => self.end_epoch(at, Epoch::Host),
                (FactKind::CtaEnded, Author::Cta { launch, cta, .. }) if self.model.promises.cta_end => {
                    self.end_epoch(at, Epoch::Cta(launch, cta));
                }
                (FactKind::KernelEnded, Author::Launch(launch)) if self.model.promises.kernel_end => {
                    self.end_epoch(at, Epoch::Launch(launch));
                }
                // A line's combined stores are collected until it leaves the L1; then they are one version.
                (FactKind::Merged, Author::Sm(sm)) => {
                    let key = (Some(sm), self.line(fact.line));
                    match self.take_merged(key) {
                        Some(store) => self.merged.entry(key).or_default().push(store),
                        None => self.fault(at, format!("SM {sm} combined a store that it never issued")),
                    }
                }
                (FactKind::Cleaned, Author::Sm(sm)) => {
                    let key = (Some(sm), self.line(fact.line));
                    let stores = self.merged.remove(&key).unwrap_or_default();
                    self.cleaned.entry(key).or_default().push_back(stores);
                }
                (FactKind::PersistReached(scope), _) => {
                    self.fences.wide |= scope == PersistScope::Kernel;
                    self.reach(fact, scope);
                }
                (FactKind::PersistPassed(scope), _) => self.pass(at, fact, scope),
                (
                    FactKind::BarrierReached
                    | FactKind::BarrierPassed
                    | FactKind::Merged
                    | FactKind::Cleaned
                    | FactKind::Synchronised
                    | FactKind::CtaStarted
                    | FactKind::CtaEnded
                    | FactKind::KernelEnded
                    | FactKind::PrerequisitesOver
                    | FactKind::PrerequisitesPassed
                    | FactKind::Accepted
                    | FactKind::AtMedia
                    | FactKind::PerformedVolatile
                    | FactKind::Observed
                    | FactKind::EpochEnded
                    | FactKind::FenceSkipped(_)
                    | FactKind::Buffered
                    | FactKind::Forgotten
                    | FactKind::Retired
                    | FactKind::VerbPosted
                    | FactKind::VerbWritten
                    | FactKind::VerbAcknowledged
                    | FactKind::Region(_),
                    _,
                ) => {}
            }
        }
        self.order.warps =
            self.warps.into_iter().map(|(thread, Pending { stores, .. })| WarpStores { thread, stores }).collect();
    }

    fn line(&self, address: u64) -> u32 {
        self.order.line_at(address).map_or(NONE, |line| line as u32)
    }

    fn issue(&mut self, at: u32, fact: &Fact) {
        let line = self.line(fact.line);
        self.issued.entry((fact.author.processor(), line)).or_default().push_back(at);
        let pending = self.warps.entry(fact.author.thread()).or_default();
        pending.stores.push(at);
        pending.open.push((at, fact.kind == FactKind::StoredNonTemporal));
        if fact.kind == FactKind::StoredNonTemporal {
            pending.covered.push((at, true));
            if self.model.promises.non_temporal != NonTemporalOrder::ByFences {
                self.paths.entry(self.path_of(fact)).or_default().push_back(at);
            }
        } else {
            pending.cached.insert(line, at);
        }
        let Some((launch, cta)) = fact.author.cta() else { return };
        if self.model.promises.cta_end {
            self.epochs.entry(Epoch::Cta(launch, cta)).or_default().push(at);
        }
        if self.model.promises.kernel_end {
            self.epochs.entry(Epoch::Launch(launch)).or_default().push(at);
        }
    }

    fn perform(&mut self, at: u32, fact: &Fact) {
        let line = self.line(fact.line);
        // The host's writes have no fact of their issue.
        let by = fact.author.processor();
        let by_host = by.is_none();
        let (program, combined) = self.take_issued((by, line));
        let journal = self.order.journal;
        if !combined.is_empty() {
            self.compare_combined(at, fact, combined.iter().copied().chain(program));
        }
        match program.map(|program| &journal.facts()[program as usize]) {
            None => {
                if let Some(sm) = by {
                    self.fault(at, format!("SM {sm} performed a store that it never issued"));
                }
            }
            Some(issued) if issued.kind == FactKind::Updated || !combined.is_empty() => {}
            Some(issued) => {
                if (issued.mask, journal.data(issued)) != (fact.mask, journal.data(fact)) {
                    let pc = ShownAuthor::from(issued.author).pc;
                    self.fault(at, format!("what was performed is not what pc {pc} stored"));
                }
            }
        }
        // The version joins the line's history, and in it each word that it touches. Words keep their other
        // bytes.
        let through =
            program.map_or(by_host, |program| journal.facts()[program as usize].kind == FactKind::StoredNonTemporal);
        let history = &mut self.order.lines[line as usize];
        let list = (self.order.combined.len() as u32, combined.len() as u32);
        self.order.combined.extend_from_slice(&combined);
        history.versions.push(Version { performed: at, program, combined: list, through });
        let version = history.versions.len() as u32;
        let mut bytes = [0; LINE];
        copy(&mut bytes, fact.mask, journal.data(fact));
        for (word, entries) in history.words.iter_mut().enumerate() {
            let mask = byte_mask(fact.mask, word);
            if mask != 0 {
                let before = entries[entries.len() - 1].value;
                entries.push(VersionEntry { version, value: before & !mask | word_of(&bytes, word) });
            }
        }
        // The facts of the performance and of every store in it now lead to the version.
        self.order.place[at as usize] = (line, version);
        for program in combined.iter().copied().chain(program) {
            self.order.place[program as usize] = (line, version);
        }
        // Where caches keep the order on, a version may be durable only once what comes before it is.
        let waits = self.model.promises.non_temporal == NonTemporalOrder::EpochsInCaches
            && self.model.domain != Domain::Eadr
            && self.fences.keep(line, version, program.map(|program| (program, &journal.facts()[program as usize])));
        if !waits {
            self.order.events.push(IntervalEvent { fact: at, line, version, effect: Effect::May });
        }
        if self.model.domain == Domain::Eadr {
            self.order.events.push(IntervalEvent { fact: at, line, version, effect: Effect::Prefix });
        } else if by_host {
            self.epochs.entry(Epoch::Host).or_default().push(at);
        }
        // The store has its version by now, and guarantees what the machine orders before it.
        if let Some(program) = program.filter(|_| self.model.promises.non_temporal != NonTemporalOrder::ByFences) {
            self.come_before(at, program);
        }
    }

    /// The store that joins its line in an SM's L1. What goes past the L1, atomics and mostly non-temporal
    /// stores, may be on its way still: these do not join, unless the scheme has all of the latter join.
    fn take_merged(&mut self, key: LineOfSm) -> Option<u32> {
        let issued = self.issued.get_mut(&key)?;
        let facts = self.order.journal.facts();
        let first = |kind: FactKind| issued.iter().position(|&store| facts[store as usize].kind == kind);
        let at = first(FactKind::Stored).or_else(|| first(FactKind::StoredNonTemporal))?;
        issued.remove(at)
    }

    /// What an SM's next performance on a line performs: one store, or the last and the others of those that
    /// left its L1 together. Stores leave an SM in the order of issue.
    fn take_issued(&mut self, key: LineOfSm) -> (Option<u32>, Vec<u32>) {
        let one = self.issued.get_mut(&key);
        let together = self.cleaned.get_mut(&key);
        let first = one.as_ref().and_then(|one| one.front().copied());
        match together.and_then(|cleaned| {
            let earlier = cleaned.front()?.first().is_some_and(|&store| first.is_none_or(|first| store < first));
            if earlier { cleaned.pop_front() } else { None }
        }) {
            Some(mut stores) => (stores.pop(), stores),
            None => (one.and_then(VecDeque::pop_front), Vec::new()),
        }
    }

    /// What was performed must be what was combined, later stores over earlier ones.
    fn compare_combined(&mut self, at: u32, fact: &Fact, stores: impl Iterator<Item = u32>) {
        let (mut bytes, mut mask) = ([0; LINE], 0);
        for store in stores {
            let store = &self.order.journal.facts()[store as usize];
            copy(&mut bytes, store.mask, self.order.journal.data(store));
            mask |= store.mask;
        }
        let mut performed = [0; LINE];
        copy(&mut performed, fact.mask, self.order.journal.data(fact));
        if (mask, bytes) != (fact.mask, performed) {
            let sm = ShownAuthor::from(fact.author).sm;
            self.fault(at, format!("what was performed on line {:#x} is not what SM {sm} combined", fact.line));
        }
    }

    /// A warp comes to a persist barrier: what it stored before is the barrier's.
    fn reach(&mut self, fact: &Fact, scope: PersistScope) {
        let pending = self.warps.entry(fact.author.thread()).or_default();
        let number = &mut pending.barriers[scope as usize].0;
        *number += 1;
        let key = (scope, instance(scope, fact.author), *number);
        let open = std::mem::take(&mut pending.open);
        self.barriers.entry(key).or_default().extend(open);
    }

    /// A warp passes a persist barrier: what its scope stored before is guaranteed, as the first to pass
    /// shows.
    fn pass(&mut self, at: u32, fact: &Fact, scope: PersistScope) {
        let pending = self.warps.entry(fact.author.thread()).or_default();
        let number = &mut pending.barriers[scope as usize].1;
        *number += 1;
        let key = (scope, instance(scope, fact.author), *number);
        if let Some(covered) = self.barriers.remove(&key) {
            self.guarantee(at, &covered);
        }
    }

    /// Among which non-temporal stores the machine keeps a store in order: those of its SM, or of its CTA
    /// alone.
    fn path_of(&self, fact: &Fact) -> Path {
        let alone = self.model.promises.non_temporal == NonTemporalOrder::BeforeCachedOfCta;
        (fact.author.processor(), fact.author.cta().filter(|_| alone))
    }

    /// What the machine orders before a store is guaranteed when that is performed.
    fn come_before(&mut self, at: u32, store: u32) {
        let facts = self.order.journal.facts();
        let own = &facts[store as usize];
        let path = self.path_of(own);
        let Some(waiting) = self.paths.get_mut(&path) else { return };
        let mut count = match (own.kind, self.model.promises.non_temporal) {
            (
                FactKind::StoredNonTemporal,
                NonTemporalOrder::ByFences | NonTemporalOrder::BeforeCached | NonTemporalOrder::BeforeCachedOfCta,
            )
            | (_, NonTemporalOrder::Epochs | NonTemporalOrder::EpochsInCaches) => 0,
            _ => waiting.partition_point(|&waits| waits < store),
        };
        if own.kind == FactKind::StoredNonTemporal {
            let last = |count: usize| &facts[waiting[count - 1] as usize];
            while count > 0 && same_instruction(last(count), own) {
                count -= 1;
            }
            while count > 0 && last(count).line == own.line {
                count -= 1;
            }
        }
        let covered: Vec<(u32, bool)> = waiting.drain(..count).map(|store| (store, true)).collect();
        self.guarantee(at, &covered);
    }

    /// A fence is settled: versions that waited for it may be durable.
    fn release(&mut self, at: u32) {
        for (line, version) in self.fences.released() {
            self.order.events.push(IntervalEvent { fact: at, line, version, effect: Effect::May });
        }
    }

    /// The stores and host writes of an epoch are guaranteed.
    fn end_epoch(&mut self, at: u32, epoch: Epoch) {
        let facts = self.epochs.remove(&epoch).unwrap_or_default();
        let through = |fact: u32| match self.order.place[fact as usize] {
            (line, version) if version != NONE => {
                self.order.lines[line as usize].versions[version as usize - 1].through
            }
            _ => false,
        };
        let covered: Vec<(u32, bool)> = facts.into_iter().map(|fact| (fact, through(fact))).collect();
        self.guarantee(at, &covered);
    }

    fn guarantee(&mut self, at: u32, covered: &[(u32, bool)]) {
        let mut latest: BTreeMap<(u32, bool), u32> = BTreeMap::new();
        for &(store, through) in covered {
            let (line, version) = self.order.place[store as usize];
            if version == NONE {
                let store = self.order.journal.facts()[store as usize];
                let what = format!(
                    "the store of pc {} to line {:#x} counts as durable and was not performed before",
                    ShownAuthor::from(store.author).pc,
                    store.line
                );
                self.fault(at, what);
            } else {
                let known = latest.entry((line, through)).or_default();
                *known = version.max(*known);
            }
        }
        for ((line, through), version) in latest {
            let effect = if through { Effect::NonTemporal } else { Effect::Prefix };
            self.order.events.push(IntervalEvent { fact: at, line, version, effect });
        }
    }

    fn fault(&mut self, at: u32, what: String) {
        self.order.faults.push(Fault { fact: at as usize, what });
    }
}

/// An instance of a scope: launch, CTA, warp, as far as they matter.
pub(super) type Instance = (Option<u32>, Option<u32>, Option<Thread>);

/// The instance of a scope that an author belongs to; of a kernel, and of a CTA, without its parts.
pub(super) fn instance(scope: PersistScope, author: Author) -> Instance {
    let (launch, cta) = author.cta().unzip();
    match scope {
        PersistScope::Thread => (launch, cta, author.thread()),
        PersistScope::Cta => (launch, cta, None),
        PersistScope::Kernel => (launch, None, None),
    }
}

/// Two stores are lanes of one instruction of a warp, which have no order.
pub(super) fn same_instruction(one: &Fact, other: &Fact) -> bool {
    (one.time, one.author) == (other.time, other.author)
}

/// The bits of a word whose bytes a line's mask names.
pub(super) fn byte_mask(mask: u128, word: usize) -> u64 {
    let bytes = (mask >> (word * 8)) as u8;
    (0..8).filter(|byte| bytes >> byte & 1 == 1).fold(0, |bits, byte| bits | 0xff << (byte * 8))
}

/// A walk over the instants of a journal, forward only. Instant t is when the first t facts have been noted.
#[derive(Debug, Clone)]
pub struct Instant<'a> {
    order: &'a RunOrder<'a>,
    at: usize,
    next: usize,
    bounds: Vec<Bounds>,
}

impl Instant<'_> {
    /// Where it is: how many facts have been noted.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Where each line stands.
    pub fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// Goes on to an instant, which lies ahead; returns the lines that changed, each once, in order.
    pub fn advance_to(&mut self, at: usize) -> Vec<usize> {
        let mut changed = Vec::new();
        while let Some(event) = self.order.events.get(self.next).filter(|event| (event.fact as usize) < at) {
            let bounds = &mut self.bounds[event.line as usize];
            match event.effect {
                Effect::May => bounds.may = bounds.may.max(event.version),
                Effect::Prefix => bounds.must = bounds.must.max(event.version),
                Effect::NonTemporal => bounds.through = bounds.through.max(event.version),
            }
            // What is guaranteed may be durable, though another warp's fence keeps it back.
            bounds.may = bounds.may.max(bounds.must).max(bounds.through);
            let versions = &self.order.lines[event.line as usize].versions;
            while bounds.must < bounds.through && versions[bounds.must as usize].through {
                bounds.must += 1;
            }
            changed.push(event.line as usize);
            self.next += 1;
        }
        self.at = self.at.max(at);
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

#[cfg(test)]
mod tests;
