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
//! Bulk copies and reads of `wgmma` are of another proxy: `copies` has what orders them. `beside` has what
//! orders launches that may run at once.
//!
//! Where a write leaves the bytes as they are, the race is told apart: whichever comes first, all see the
//! same value.
//!
//! Not found: races between lanes of one warp; between copies of `cp.async` and what runs beside them later
//! (such a copy happens when it is issued); with more than `READERS` unordered readers of a word, or atomics
//! on it, those beyond. Local memory is a thread's own.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::super::ir::{AtomOp, CacheOp, GridStep, MemKind, Op, PhaseOp, PmOp, Scope, Space};
use super::super::launch::Launch;
use super::super::undetermined::place;
use super::super::warp::lanes_of;
use super::beside::{Beside, PastLaunch, WAITED};
use super::clocks::{Clocks, PastAccess, Shadow, WORD};
use super::interface::{AccessKind, Event, Wanted, WarpAccess};
use super::under_way::{Party, UnderWay};

/// Gates of a CTA: 16 barriers, and that of `pm.barrier.wg`.
const GATES: usize = 17;

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
    /// The first is of another launch, which may run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<RaceLaunch>,
    /// How many such pairs of accesses there are of these two instructions.
    pub times: u64,
}

/// A launch beside which another may run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RaceLaunch {
    pub kernel: String,
    /// The launch, from 0.
    pub launch: u32,
    /// The other one is programmatic, and may do so until its `griddepcontrol.wait`.
    pub until_wait: bool,
}

/// One side of a race.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RaceAccess {
    /// `load`, `store`, `atomic`, `bulk copy`, `wgmma`, `tcgen05.mma` or `tcgen05.cp`.
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
        write!(f, "kernel `{}`, {}: {access} at {place} by warp {warp} of CTA ({x},{y},{z})", self.kernel, self.word)?;
        if let Some(RaceLaunch { kernel, launch, .. }) = &self.beside {
            write!(f, " of launch {launch}, `{kernel}`,")?;
        }
        let RaceAccess { access, place, cta: [x, y, z], warp } = &self.second;
        let lacks = match (self.across_proxies, self.unwaited, &self.beside) {
            (true, ..) => "a `fence.proxy.async` between them",
            (_, true, _) => "a wait for the end of the first",
            (.., Some(RaceLaunch { until_wait: true, .. })) => "a `griddepcontrol.wait` before the second",
            (.., Some(_)) => "order: the launches may run at once",
            _ => "order",
        };
        write!(f, " and {access} at {place} by warp {warp} of CTA ({x},{y},{z}), without {lacks}")?;
        if self.same_value {
            write!(f, "; the value stays the same")?;
        }
        if self.times > 1 { write!(f, "; {} times", self.times) } else { Ok(()) }
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
    /// The end of another launch, of this number, before the second.
    End(u32),
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
    /// Launches that this one may run beside.
    pub(super) beside: Vec<Beside>,
    /// A CTA lets the next launch begin, or ends, before it has waited for those before this.
    lets_go_early: bool,
    found: BTreeMap<Pair, Race>,
}

impl<'a> RaceWatch<'a> {
    /// Watches launch `number` of a host program, which may run beside others.
    pub(super) fn new(launch: &'a Launch, number: u32, warp_size: u32, beside: Vec<Beside>) -> RaceWatch<'a> {
        let warps = launch.warps_per_cta(warp_size) as usize;
        let goes_on = |op| matches!(op, Op::Bulk(_) | Op::BulkGroups(_) | Op::WarpGroup(_) | Op::Tensor(_));
        let any_goes_on = launch.kernel.code.iter().any(|inst| goes_on(inst.op));
        RaceWatch {
            launch,
            number,
            warps,
            parties: if any_goes_on { Party::COUNT * warps } else { warps },
            global: Shadow::default(),
            ctas: HashMap::new(),
            clusters: BTreeMap::new(),
            beside,
            lets_go_early: false,
            found: BTreeMap::new(),
        }
    }

    /// The events that it wants.
    pub(crate) const WANTED: Wanted = Wanted { issued: true, accesses: true, changes: true, writes: false };

    /// The races, by their instructions, and the launch as later ones see it.
    pub(super) fn end(self) -> (impl Iterator<Item = Race>, PastLaunch) {
        let RaceWatch { launch, number, warps, global, found, lets_go_early, .. } = self;
        (found.into_values(), PastLaunch { launch: launch.clone(), number, warps, global, lets_go_early })
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Issued { cta, warp, pc, lanes, .. } if lanes != 0 => self.issued(cta, warp, pc),
            Event::Accessed(access) => self.accessed(access),
            Event::Completes { cta, warp, owner, barrier } => self.completes(cta, warp, owner, barrier),
            Event::Commits { cta, warp, owner, barrier } => self.commits_to(cta, warp, owner, barrier),
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
            Event::Ended { cta } => {
                let warps = self.ctas.remove(&cta).map(|of_cta| of_cta.warps).unwrap_or_default();
                self.lets_go_early |= warps.iter().all(|warp| warp.seen.of(WAITED, 0) == 0);
            }
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
            Op::Bulk(_) | Op::BulkGroups(_) | Op::WarpGroup(_) | Op::Tensor(_) => return self.goes_on(cta, warp, op),
            Op::Grid(step) => {
                let seen = &mut self.cta(cta).warps[warp as usize].seen;
                return match step {
                    GridStep::Wait => seen.raise(WAITED, 0, 1, 1),
                    GridStep::LaunchDependents => self.lets_go_early |= seen.of(WAITED, 0) == 0,
                };
            }
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
            Op::Bulk(_) | Op::WarpGroup(_) | Op::Tensor(_) => return self.copied(access),
            _ => return,
        };
        if !matches!(access.space, Space::Global | Space::Shared) {
            return;
        }
        if mem.atom == AtomOp::Phase(PhaseOp::ArriveBehindProducts) {
            let at = lanes_of(access.lanes).map(|lane| access.addresses[lane]);
            at.for_each(|at| self.commits(access.cta, access.warp, access.owner, at));
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
        let beside = if access.space == Space::Global { &self.beside[..] } else { &[] };
        // Told after the loop, which has borrowed what a report needs.
        let mut pairs: SmallVec<[(u64, [PastAccess; 2], Lack); 2]> = SmallVec::new();
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
                if acquires {
                    beside.iter().for_each(|other| other.past.acquire(word, &mut known.seen));
                }
                let clock = known.seen.of(access.cta, access.warp);
                let (cta, warp, pc, kind) = (access.cta, access.warp, access.pc, access.kind);
                let record = PastAccess { cta, warp, clock, pc, bytes, strong, kind, changes };
                let past = shadow.cells.entry(word).or_default();
                past.take(record, &known.seen, &mut |other| {
                    let lack = if other.warp < warps { Lack::Order } else { Lack::Wait };
                    pairs.push((word, [other, record], lack));
                });
                for other in beside {
                    let lack = Lack::End(other.past.number);
                    other.against(word, &record, &known.seen, |first| pairs.push((word, [first, record], lack)));
                }
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
        pairs.into_iter().for_each(|(word, pair, lack)| self.race(access.space, word, pair, lack));
    }

    #[cold]
    pub(super) fn race(&mut self, space: Space, word: u64, [first, second]: [PastAccess; 2], lack: Lack) {
        let &mut RaceWatch { launch, number, warps, ref beside, ref mut found, .. } = self;
        // The write that comes last decides whether any order shows.
        let deciding = if second.kind == AccessKind::Read { first } else { second };
        let same_value = !deciding.changes;
        let other = beside.iter().find(|other| lack == Lack::End(other.past.number));
        // Instructions of one launch are a pair in either order.
        let swapped = other.is_none() && first.pc > second.pc;
        let (from, to) = if swapped { (second.pc, first.pc) } else { (first.pc, second.pc) };
        let race = found.entry((from, to, same_value, lack)).or_insert_with(|| {
            let address = word * WORD + u64::from((first.bytes & second.bytes).trailing_zeros());
            let of_first = other.map_or((launch, warps), |other| (&other.past.launch, other.past.warps));
            let beside = other.map(|Beside { past, until_wait }| RaceLaunch {
                kernel: past.launch.kernel.name.clone(),
                launch: past.number,
                until_wait: *until_wait,
            });
            Race {
                kernel: launch.kernel.name.clone(),
                launch: number,
                word: word_of(launch, space, address),
                first: access_of(of_first, first),
                second: access_of((launch, warps), second),
                same_value,
                across_proxies: lack == Lack::Proxy,
                unwaited: lack == Lack::Wait,
                beside,
                times: 0,
            }
        });
        race.times += 1;
    }
}

/// An address as its reader knows it.
fn word_of(launch: &Launch, space: Space, address: u64) -> String {
    if space == Space::Shared {
        return format!("shared memory + {address}");
    }
    match launch.addresses.containing(address, address) {
        Some(range) => {
            let (part, byte) = range.part(address);
            format!("`{part}` + {byte}")
        }
        None => format!("{address:#x}"),
    }
}

/// One side of a race, of a launch with this number of warps a CTA.
fn access_of((launch, warps): (&Launch, usize), record: PastAccess) -> RaceAccess {
    RaceAccess {
        access: match launch.kernel.code[record.pc as usize].op {
            Op::Bulk(_) => "bulk copy".to_owned(),
            Op::WarpGroup(_) => "wgmma".to_owned(),
            Op::Tensor(step) => step.name().to_owned(),
            _ => record.kind.name().to_owned(),
        },
        place: place(&launch.kernel, record.pc),
        cta: launch.cta_index(record.cta),
        warp: record.warp % warps as u32,
    }
}
