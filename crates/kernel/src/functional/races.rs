//! Races: two warps access one word without order, and one of them writes. Watched on the functional driver,
//! whose order of warps is one of many: a race is found in any order in which both accesses happen.
//!
//! Happens-before by vector clocks (Lamport, "Time, Clocks", CACM 1978; Flanagan and Freund, "FastTrack",
//! PLDI 2009), one entry a warp. A warp knows how far it is ordered after each other one. What orders:
//!
//! | | orders |
//! |---|---|
//! | program order | a warp's instructions, whichever lanes execute them |
//! | `bar`, `pm.barrier.wg` | what arriving warps did before what waiting warps do after |
//! | `barrier.cluster` | what arriving warps did before their last fence before what waiting warps do after |
//! | `pm.barrier.kr`, the end of a launch | all before it before all after it |
//! | a flag | what its writer did before a fence before what a reader of the flag does after |
//!
//! A *flag* is a word that is accessed by atomics or by strong loads and stores (`.volatile`, `.relaxed`,
//! `.acquire`, `.release`). A strong store or an atomic publishes what its warp knew at its last fence
//! (`membar`, `fence`, fences of persistency), or knows now where it has `.release` or `.acq_rel`. What other
//! warps of the CTA had fenced before a barrier counts, too. A fence of scope `.cta` publishes to warps of
//! the CTA alone. A strong load, or an atomic that returns a value, acquires at once: a fence after it is not
//! asked for, as programs rely on control dependence there. Accesses that are both strong are no race. An
//! atomic that returns a value has observed the atomics before it on its word: what comes after it comes
//! after them (PTX ISA 8.x, "Causality Order"). So the last CTA that counts may reset the counter.
//! Arrivals at an `mbarrier` release, tests of it acquire.
//!
//! Bulk copies and reads of `wgmma` are of another proxy: `copies` has what orders them.
//!
//! Where a write leaves the bytes as they are, the race is told apart: whichever comes first, all see the
//! same value.
//!
//! Not found: races between lanes of one warp; between copies of `cp.async` and what runs beside them later
//! (such a copy happens when it is issued); with more than `READERS` unordered readers of a word, or atomics
//! on it, those beyond. Local memory is a thread's own.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::ir::{AtomOp, CacheOp, MemKind, Op, PmOp, Scope, Space};
use super::super::launch::Launch;
use super::super::undetermined::place;
use super::super::warp::lanes_of;
use super::interface::{AccessKind, Event, Wanted, WarpAccess};
use super::under_way::{Party, UnderWay};

/// Unordered readers of a word that are remembered at a time, and unordered atomics on it.
const READERS: usize = 16;

/// Gates of a CTA: 16 barriers, and that of `pm.barrier.wg`.
const GATES: usize = 17;

/// Bytes of a word.
pub(super) const WORD: u64 = 4;

/// Two accesses without order: the first pair of two instructions.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Race {
    pub kernel: String,
    /// The launch, from 0.
    pub launch: u32,
    /// Where: `buffer + offset`, `shared memory + offset`.
    pub word: String,
    /// The access that came first here.
    pub first: RaceAccess,
    /// The one that came second.
    pub second: RaceAccess,
    /// The write among them that comes second leaves the bytes as they are.
    pub same_value: bool,
    /// They are ordered, but no `fence.proxy.async` stands between the store and what reads asynchronously.
    #[serde(default)]
    pub across_proxies: bool,
    /// The first is a bulk copy, or a product of four warps, whose end the second does not wait for.
    #[serde(default)]
    pub unwaited: bool,
    /// How many such pairs of accesses there are of these two instructions.
    pub times: u64,
}

/// One side of a race.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RaceAccess {
    /// `load`, `store`, `atomic`, `bulk copy` or `wgmma`.
    pub access: String,
    /// Its place: `file:line:column`.
    pub place: String,
    pub cta: [u32; 3],
    /// Warp of that CTA.
    pub warp: u32,
}

impl std::fmt::Display for Race {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RaceAccess { access, place, cta: [x, y, z], warp } = &self.first;
        write!(
            f,
            "kernel `{}`, {}: {access} at {place} by warp {warp} of CTA ({x},{y},{z}) and ",
            self.kernel, self.word
        )?;
        let RaceAccess { access, place, cta: [x, y, z], warp } = &self.second;
        let lacks = match (self.across_proxies, self.unwaited) {
            (true, _) => "a `fence.proxy.async` between them",
            (_, true) => "a wait for the end of the first",
            _ => "order",
        };
        write!(f, "{access} at {place} by warp {warp} of CTA ({x},{y},{z}), without {lacks}")?;
        if self.same_value {
            write!(f, "; the value stays the same")?;
        }
        if self.times > 1 { write!(f, "; {} times", self.times) } else { Ok(()) }
    }
}

/// How far each warp of some CTAs has come, by CTA; 0 where nothing is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks(Rc<BTreeMap<u64, Rc<[u32]>>>);

impl Clocks {
    pub(super) fn of(&self, cta: u64, warp: u32) -> u32 {
        self.0.get(&cta).map_or(0, |warps| warps[warp as usize])
    }

    pub(super) fn join(&mut self, other: &Clocks) {
        if Rc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return;
        }
        if self.0.is_empty() {
            self.0 = other.0.clone();
            return;
        }
        // Copied only if something changes: most waiting is for what is known already.
        for (cta, theirs) in &*other.0 {
            match self.0.get(cta) {
                Some(own) if Rc::ptr_eq(own, theirs) || own.iter().zip(&**theirs).all(|(own, their)| own >= their) => {}
                Some(own) => {
                    let joined = own.iter().zip(&**theirs).map(|(own, their)| *own.max(their)).collect();
                    Rc::make_mut(&mut self.0).insert(*cta, joined);
                }
                None => {
                    Rc::make_mut(&mut self.0).insert(*cta, theirs.clone());
                }
            }
        }
    }

    /// At least so far: what does something in that CTA, of `parties`.
    pub(super) fn raise(&mut self, cta: u64, party: u32, clock: u32, parties: usize) {
        if self.0.get(&cta).is_some_and(|known| known[party as usize] >= clock) {
            return;
        }
        let own = Rc::make_mut(&mut self.0).entry(cta).or_insert_with(|| vec![0; parties].into());
        let mut next = own.to_vec();
        next[party as usize] = clock;
        *own = next.into();
    }

    /// One step more of a warp among `parties`.
    fn advance(&mut self, cta: u64, warp: u32, parties: usize) {
        self.raise(cta, warp, self.of(cta, warp) + 1, parties);
    }
}

/// What is ordered before what a warp does next.
#[derive(Debug, Clone, Default)]
pub(super) struct WarpClocks {
    pub(super) seen: Clocks,
    /// What it knew at its last fence, of the scope of the CTA at least, and of the device.
    fenced: [Clocks; 2],
    /// What fences between proxies stand behind, in shared memory and in global memory.
    pub(super) proxied: [Clocks; 2],
}

impl WarpClocks {
    fn join(&mut self, other: &WarpClocks) {
        self.seen.join(&other.seen);
        self.fenced.iter_mut().zip(&other.fenced).for_each(|(own, other)| own.join(other));
        self.proxied.iter_mut().zip(&other.proxied).for_each(|(own, other)| own.join(other));
    }
}

/// A word that warps communicate by.
#[derive(Debug, Clone, Default)]
pub(super) struct Flag {
    /// What is published to the device.
    pub(super) device: Clocks,
    /// What is published to one CTA.
    cta: Option<(u64, Clocks)>,
    /// What fences between proxies of those who published stand behind, in shared and in global memory.
    proxied: [Clocks; 2],
    /// It is part of an `mbarrier`: plain loads test it.
    pub(super) phases: bool,
}

/// An access that is remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastAccess {
    pub(super) cta: u64,
    pub(super) warp: u32,
    pub(super) clock: u32,
    pub(super) pc: u32,
    /// Bytes of the word.
    pub(super) bytes: u8,
    pub(super) strong: bool,
    pub(super) kind: AccessKind,
    /// A write that changed bytes.
    pub(super) changes: bool,
}

/// What has happened to a word, as far as it may still race.
#[derive(Debug, Default)]
pub(super) struct WordPast {
    pub(super) writes: SmallVec<[PastAccess; 1]>,
    pub(super) reads: SmallVec<[PastAccess; 1]>,
}

/// What has happened to a memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    pub(super) cells: HashMap<u64, WordPast>,
    pub(super) flags: HashMap<u64, Flag>,
}

#[derive(Debug)]
pub(super) struct OfCta {
    pub(super) warps: Vec<WarpClocks>,
    gates: [WarpClocks; GATES],
    pub(super) shared: Shadow,
    /// What its warps have under way; none where the kernel has no such instruction.
    pub(super) under_way: Vec<UnderWay>,
}

/// What two accesses lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    Order,
    /// A wait for the first one, which goes on beside its warp.
    Wait,
    /// A fence between a plain store and a bulk copy, or a product of four warps.
    Proxy,
}

/// Two instructions in either order, by pc, whether the value stays the same, and what they lack.
type Pair = (u32, u32, bool, Lack);

/// Watches one launch.
#[derive(Debug)]
pub(crate) struct RaceWatch<'a> {
    pub(super) launch: &'a Launch,
    number: u32,
    pub(super) warps: usize,
    /// Warps of a CTA, and what goes on beside them.
    pub(super) parties: usize,
    pub(super) global: Shadow,
    pub(super) ctas: HashMap<u64, OfCta>,
    /// What was published at the barrier of a cluster, by cluster and phase.
    clusters: BTreeMap<(u64, u32), WarpClocks>,
    found: BTreeMap<Pair, Race>,
}

impl<'a> RaceWatch<'a> {
    /// Watches launch `number` of a host program.
    pub(crate) fn new(launch: &'a Launch, number: u32, warp_size: u32) -> RaceWatch<'a> {
        let warps = launch.warps_per_cta(warp_size) as usize;
        let goes_on = |op| matches!(op, Op::Bulk(_) | Op::BulkGroups(_) | Op::WarpGroup(_));
        let beside = launch.kernel.code.iter().any(|inst| goes_on(inst.op));
        RaceWatch {
            launch,
            number,
            warps,
            parties: if beside { Party::COUNT * warps } else { warps },
            global: Shadow::default(),
            ctas: HashMap::new(),
            clusters: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// The events that it wants.
    pub(crate) const WANTED: Wanted = Wanted { issued: true, accesses: true, changes: true, writes: false };

    /// The races, by their instructions.
    pub(crate) fn found(self) -> impl Iterator<Item = Race> {
        self.found.into_values()
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Issued { cta, warp, pc, lanes, .. } if lanes != 0 => self.issued(cta, warp, pc),
            Event::Accessed(access) => self.accessed(access),
            Event::Completes { cta, warp, owner, barrier } => self.completes(cta, warp, owner, barrier),
            Event::Arrived { cta, warp, barrier } => {
                let parties = self.parties;
                let of_cta = self.cta(cta);
                let known = &mut of_cta.warps[warp as usize];
                of_cta.gates[usize::from(barrier)].join(known);
                // What it does from here on is not known to those that wait.
                known.seen.advance(cta, warp, parties);
            }
            Event::Opened { cta, barrier, waiting } => {
                let of_cta = self.cta(cta);
                let gate = std::mem::take(&mut of_cta.gates[usize::from(barrier)]);
                for warp in lanes_of(waiting) {
                    let known = &mut of_cta.warps[warp];
                    known.join(&gate);
                    known.fenced[0].join(&gate.seen);
                }
            }
            Event::Gathered => {
                self.global = Shadow::default();
                self.ctas.values_mut().for_each(|of_cta| of_cta.shared = Shadow::default());
            }
            Event::AtCluster { cta, warp, passes, phase } => {
                let (gate, parties) = ((self.launch.cluster_of(cta).0, phase), self.parties);
                let mut gathered = std::mem::take(self.clusters.entry(gate).or_default());
                let known = &mut self.cta(cta).warps[warp as usize];
                if passes {
                    known.join(&gathered);
                } else {
                    // What a fence before it has published: all, unless it is relaxed.
                    gathered.seen.join(&known.fenced[1]);
                    gathered.proxied.iter_mut().zip(&known.proxied).for_each(|(all, own)| all.join(own));
                    known.seen.advance(cta, warp, parties);
                }
                self.clusters.insert(gate, gathered);
            }
            Event::Ended { cta } => drop(self.ctas.remove(&cta)),
            _ => {}
        }
    }

    pub(super) fn cta(&mut self, cta: u64) -> &mut OfCta {
        let (warps, parties) = (self.warps, self.parties);
        self.ctas.entry(cta).or_insert_with(|| {
            let known = |warp: usize| {
                let mut known = WarpClocks::default();
                known.seen.advance(cta, warp as u32, parties);
                known
            };
            let under_way = if parties > warps { vec![UnderWay::default(); warps] } else { Vec::new() };
            let (warps, gates) = ((0..warps).map(known).collect(), Default::default());
            OfCta { warps, gates, shared: Shadow::default(), under_way }
        })
    }

    /// A warp comes to an instruction that may be a fence.
    fn issued(&mut self, cta: u64, warp: u32, pc: u32) {
        let (parties, kernel) = (self.parties, &self.launch.kernel);
        let (op, of_proxies) = (kernel.code[pc as usize].op, kernel.proxy_fences.binary_search(&pc).is_ok());
        let scope = match op {
            Op::Fence(scope) | Op::Pm(PmOp::Acquire(scope) | PmOp::Release(scope)) => scope,
            Op::Pm(
                PmOp::Sfence | PmOp::Ofence | PmOp::Dfence | PmOp::BarrierWi | PmOp::BarrierWg | PmOp::BarrierKr,
            ) => Scope::Gpu,
            Op::Bulk(_) | Op::BulkGroups(_) | Op::WarpGroup(_) => return self.goes_on(cta, warp, op),
            _ => return,
        };
        let known = &mut self.cta(cta).warps[warp as usize];
        known.fenced[0] = known.seen.clone();
        if scope != Scope::Cta {
            known.fenced[1] = known.seen.clone();
        }
        if of_proxies {
            known.proxied[0] = known.seen.clone();
            if scope != Scope::Cta {
                known.proxied[1] = known.seen.clone();
            }
        }
        // What it does from here on is not published.
        known.seen.advance(cta, warp, parties);
    }

    fn accessed(&mut self, access: &WarpAccess<'_>) {
        let mem = match self.launch.kernel.code[access.pc as usize].op {
            Op::Mem(mem) => mem,
            Op::Bulk(_) | Op::WarpGroup(_) => return self.copied(access),
            _ => return,
        };
        if !matches!(access.space, Space::Global | Space::Shared) {
            return;
        }
        let (warps, parties) = (self.warps as u32, self.parties);
        self.cta(access.cta);
        // Shared memory of another CTA is looked at while it is taken out, as the warp's own CTA changes,
        // too.
        let elsewhere = access.space == Space::Shared && access.owner != access.cta;
        let mut theirs = elsewhere.then(|| std::mem::take(&mut self.cta(access.owner).shared));
        let (shadow, of_cta) = match (access.space, self.ctas.get_mut(&access.cta)) {
            (Space::Shared, Some(OfCta { warps, shared, .. })) => (theirs.as_mut().unwrap_or(shared), warps),
            (_, Some(OfCta { warps, .. })) => (&mut self.global, warps),
            (_, None) => return,
        };
        // What the access is to the memory model.
        let known = &mut of_cta[access.warp as usize];
        let is_atomic = access.kind == AccessKind::Atomic;
        let of_phases = matches!(mem.atom, AtomOp::Phase(_));
        let strong = is_atomic || mem.cache == CacheOp::Volatile;
        let releases = of_phases || self.launch.kernel.releases.binary_search(&access.pc).is_ok();
        // An atomic without a result has nothing that a later access could depend on.
        let acquires = strong && access.kind != AccessKind::Write && mem.kind != MemKind::Reduction;
        // Told after the loop, which has borrowed what a report needs.
        let mut pairs: SmallVec<[(PastAccess, PastAccess, u64); 2]> = SmallVec::new();
        let mut last = None;
        for lane in lanes_of(access.lanes) {
            let at = access.addresses[lane];
            // Past the end of the address space nothing is: a fault of the program, which the driver reports.
            let Some(end) = at.checked_add(u64::from(access.bytes)) else { continue };
            for word in at / WORD..end.div_ceil(WORD) {
                let from = at.saturating_sub(word * WORD);
                let to = (end - word * WORD).min(WORD);
                let bytes = ((1u16 << to) - (1 << from)) as u8;
                let changes = access.changes >> lane & 1 != 0;
                // Most broadcasts are of one word for lanes side by side.
                let this = Some((word, bytes, changes));
                if std::mem::replace(&mut last, this) == this {
                    continue;
                }
                // Acquired before the access itself is looked at, which may be ordered by it.
                let mut strong = strong;
                if let Some(flag) = shadow.flags.get(&word) {
                    if acquires || (flag.phases && access.kind == AccessKind::Read) {
                        known.seen.join(&flag.device);
                        flag.cta
                            .iter()
                            .filter(|(of, _)| *of == access.cta)
                            .for_each(|(_, clocks)| known.seen.join(clocks));
                        known.proxied.iter_mut().zip(&flag.proxied).for_each(|(own, other)| own.join(other));
                    }
                    strong |= flag.phases;
                }
                let clock = known.seen.of(access.cta, access.warp);
                let (cta, warp, pc, kind) = (access.cta, access.warp, access.pc, access.kind);
                let record = PastAccess { cta, warp, clock, pc, bytes, strong, kind, changes };
                let past = shadow.cells.entry(word).or_default();
                past.take(record, &known.seen, &mut |other| pairs.push((other, record, word)));
                if is_atomic && acquires {
                    past.observe();
                }
                // Published last: no later access of this warp goes with it.
                if strong && kind != AccessKind::Read {
                    let flag = shadow.flags.entry(word).or_default();
                    flag.phases |= of_phases;
                    let [of_cta, of_device] =
                        if releases { [&known.seen; 2] } else { [&known.fenced[0], &known.fenced[1]] };
                    flag.device.join(of_device);
                    flag.proxied.iter_mut().zip(&known.proxied).for_each(|(all, own)| all.join(own));
                    match &mut flag.cta {
                        Some((of, clocks)) if *of == cta => clocks.join(of_cta),
                        other => *other = Some((cta, of_cta.clone())),
                    }
                }
            }
        }
        if releases {
            known.seen.advance(access.cta, access.warp, parties);
        }
        if let Some(shared) = theirs {
            self.cta(access.owner).shared = shared;
        }
        for (first, second, word) in pairs {
            let lack = if first.warp < warps { Lack::Order } else { Lack::Wait };
            self.race(access.space, word, [first, second], lack);
        }
    }

    #[cold]
    pub(super) fn race(&mut self, space: Space, word: u64, [first, second]: [PastAccess; 2], lack: Lack) {
        // The write that comes last decides whether any order shows.
        let deciding = if second.kind == AccessKind::Read { first } else { second };
        let same_value = !deciding.changes;
        let pair = (first.pc.min(second.pc), first.pc.max(second.pc), same_value, lack);
        let launch = self.launch;
        let race = self.found.entry(pair).or_insert_with(|| {
            let address = word * WORD + u64::from((first.bytes & second.bytes).trailing_zeros());
            let word = match space {
                Space::Shared => format!("shared memory + {address}"),
                _ => match launch.addresses.containing(address, address) {
                    Some(range) => {
                        let (part, byte) = range.part(address);
                        format!("`{part}` + {byte}")
                    }
                    None => format!("{address:#x}"),
                },
            };
            let of = |record: PastAccess| RaceAccess {
                access: match launch.kernel.code[record.pc as usize].op {
                    Op::Bulk(_) => "bulk copy".to_owned(),
                    Op::WarpGroup(_) => "wgmma".to_owned(),
                    _ => record.kind.name().to_owned(),
                },
                place: place(&launch.kernel, record.pc),
                cta: launch.cta_index(record.cta),
                warp: record.warp % self.warps as u32,
            };
            let (kernel, first, second) = (launch.kernel.name.clone(), of(first), of(second));
            let (across_proxies, unwaited, launch) = (lack == Lack::Proxy, lack == Lack::Wait, self.number);
            Race { kernel, launch, word, first, second, same_value, across_proxies, unwaited, times: 0 }
        });
        race.times += 1;
    }
}

impl WordPast {
    /// An access happens: what it races with is told, and forgotten where another would race with this one
    /// first.
    pub(super) fn take(&mut self, own: PastAccess, seen: &Clocks, race: &mut dyn FnMut(PastAccess)) {
        let reads = own.kind == AccessKind::Read;
        let is_own = |other: &PastAccess| (other.cta, other.warp) == (own.cta, own.warp);
        let ordered = |other: &PastAccess| is_own(other) || seen.of(other.cta, other.warp) >= other.clock;
        let races =
            |other: &PastAccess| other.bytes & own.bytes != 0 && !(other.strong && own.strong) && !ordered(other);
        let against = self.writes.iter().chain(self.reads.iter().filter(|_| !reads));
        against.filter(|other| races(other)).for_each(|other| race(*other));
        // What races later with one that this one covers races with this one, too: nothing is ordered after
        // this one alone.
        let covered =
            |other: &PastAccess| other.bytes & !own.bytes == 0 && (other.strong || !own.strong) && ordered(other);
        if reads {
            self.reads.retain(|other| !covered(other));
            if self.reads.len() < READERS {
                self.reads.push(own);
            }
        } else {
            self.reads.retain(|other| !covered(other) && !races(other));
            self.writes.retain(|other| !covered(other) && !races(other));
            // Atomics of many warps on one word are unordered and no races.
            if self.writes.len() == READERS {
                self.writes.remove(0);
            }
            self.writes.push(own);
        }
    }

    /// The last write is an atomic whose result a program has: what comes after it comes after the write that
    /// it has seen, too, and after those that the atomics between them have seen. It stands for all of these:
    /// what is unordered with it races with it.
    fn observe(&mut self) {
        let Some(own) = self.writes.pop() else { return };
        while let Some(seen) = self.writes.last().copied()
            && seen.strong
            && seen.bytes & !own.bytes == 0
        {
            self.writes.pop();
            if seen.kind != AccessKind::Atomic {
                break;
            }
        }
        self.writes.push(own);
    }
}
