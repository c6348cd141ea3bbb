//! P4: the judge of schemes whose hardware commits recoverable regions, whole and in order.
//!
//! ```text
//!  SM           Stored Stored Ended                                    region 7 of warp w: its stores
//!  controller 0   Buffered       Bounded ──ack──┐ Flushed Done ──ack──┐ Committed
//!  controller 1          Buffered     Bounded ──┴ Flushed   Done ─────┴ Committed
//!                                        ^ power fails: recovery from what each controller knows (`recovery`)
//!                                          = initial image + regions < f, byte for byte (`actual`)
//! ```
//! Three judgements. *History*: the facts of the protocol come in its order, and the order in which regions
//! commit does not contradict what the program orders (`history`). *Level A*: at every instant at which a
//! controller's state changes power may fail; the hardware's recovery runs on the controllers' states, and
//! what it leaves must be the initial image with the stores of exactly the regions before one number f, on
//! which all controllers agree; cut off after any of its steps it comes to the same (`actual`). *Resume*:
//! from that image the program must run on to the result of a run without a failure ([`Resumes`] runs it).
//!
//! Source: LightWSP (Zhou, Zeng, Jung), sections IV-B to IV-F; P4 of the oracle's design. Invariants: facts
//! and images are all that it reads. Region numbers are counted from 0 without a wrap. Not modelled: a
//! battery that ends before recovery's steps that it feeds do; acknowledgements that are lost.

mod actual;
mod gate;
mod history;
mod recovery;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

pub use actual::{JudgeOptions, Resumes, TwiceResumed, judge_checks, judge_recovery, judge_resume};
pub use history::judge_regions;
pub use recovery::{AsPublished, AtPowerFailure, Knowledge};

use super::order::{RunOrder, byte_mask, is_store, word_of};
use super::verdict::Persist;
use super::{LINE, WORDS, runs};
use durawarp_engine::Time;
use durawarp_persist::image::{OutsideImage, PmImage};
use durawarp_persist::journal::{Author, Fact, FactKind, Journal, Thread};
use durawarp_persist::vocab::{CommitRule, RegionStep};

const NONE: u32 = u32::MAX;

/// A store of a region, as it left its SM.
#[derive(Debug, Clone, Copy)]
struct RegionStore {
    /// The fact that it left, by its place in the journal.
    fact: u32,
    /// The fact that its warp issued it; none where none fits.
    program: u32,
}

/// What SMs noted of a region.
#[derive(Debug, Clone, Default)]
struct NotedRegion {
    author: Option<Author>,
    /// In program order.
    stores: Vec<RegionStore>,
    ended: bool,
    /// From which crash point on all controllers know its end, and that of every region before it.
    persisted: u32,
}

/// Bytes of an issued store that left in a region.
#[derive(Debug, Clone, Copy)]
struct Issued {
    program: u32,
    mask: u128,
    /// The fact that they left.
    store: u32,
}

/// A contradiction among facts.
#[derive(Debug, Clone)]
struct Contradiction {
    fact: u32,
    what: String,
}

/// The regions of a run: the stores of each, by warp, and the instants at which controllers' states changed.
#[derive(Debug)]
pub struct RegionFacts<'a> {
    journal: &'a Journal,
    initial: &'a PmImage,
    order: &'a RunOrder<'a>,
    controllers: usize,
    of_ctas: bool,
    commit: CommitRule,
    /// The orders in which regions commit, by the name that facts have for them: one, or one an SM.
    names: Vec<u16>,
    /// By order and number.
    regions: Vec<Vec<NotedRegion>>,
    /// What issued stores left in, by the facts that warps issued them.
    issued: Vec<Issued>,
    /// Facts that change a controller's state, or are the host's writes.
    changes: Vec<u32>,
    /// Of each crash point but the first: how many changes have been made.
    points: Vec<u32>,
    contradictions: Vec<Contradiction>,
}

/// Whether a fact is one of controllers; those of SMs name a region by its warp.
fn at_controller(step: RegionStep) -> bool {
    !matches!(step, RegionStep::Stored | RegionStep::Ended)
}

/// A fact's bytes, each in its place in the line.
fn bytes_of(journal: &Journal, fact: &Fact) -> [u8; LINE] {
    let (mut bytes, mut at) = ([0; LINE], 0);
    let data = journal.data(fact);
    for (start, count) in runs(fact.mask) {
        bytes[start..start + count].copy_from_slice(&data[at..at + count]);
        at += count;
    }
    bytes
}

/// The words of a line that a mask touches: number in the line, bits, value.
fn words_of(mask: u128, bytes: &[u8; LINE]) -> impl Iterator<Item = (usize, u64, u64)> {
    let touched = (0..WORDS).map(move |word| (word, byte_mask(mask, word))).filter(|(_, bits)| *bits != 0);
    touched.map(|(word, bits)| (word, bits, word_of(bytes, word) & bits))
}

impl<'a> RegionFacts<'a> {
    /// Reads the facts of a run that began with `initial`, on a machine of `controllers` controllers. A
    /// region is of a warp or, `of_ctas`, of the warps of a CTA. Controllers go on to the next region when
    /// all have written one ([`committed_by`](Self::committed_by) says otherwise).
    ///
    /// # Errors
    /// A store or write is not all inside the image.
    pub fn new(
        order: &'a RunOrder<'a>,
        initial: &'a PmImage,
        controllers: usize,
        of_ctas: bool,
    ) -> Result<RegionFacts<'a>, OutsideImage> {
        let journal = order.journal;
        let mut read = RegionFacts {
            journal,
            initial,
            order,
            controllers,
            of_ctas,
            commit: CommitRule::default(),
            names: names(journal),
            regions: Vec::new(),
            issued: Vec::new(),
            changes: Vec::new(),
            points: Vec::new(),
            contradictions: Vec::new(),
        };
        read.regions = vec![Vec::new(); read.names.len()];
        let mut programs = Programs::default();
        // The host's writes that no controller has accepted yet, by line.
        let mut of_host: BTreeMap<u64, VecDeque<u32>> = BTreeMap::new();
        for (fact, at) in journal.facts().iter().zip(0..) {
            match fact.kind {
                FactKind::Region(step) => {
                    for (start, bytes) in runs(fact.mask) {
                        initial.read(fact.line + start as u64, bytes)?;
                    }
                    // Controllers change the durable state; SMs say only what the program did.
                    if at_controller(step) {
                        read.of_controller(at, fact);
                    } else {
                        read.of_sm(at, fact, step, &mut programs);
                    }
                }
                FactKind::Performed if fact.author == Author::Host => {
                    of_host.entry(fact.line).or_default().push_back(at);
                }
                FactKind::Accepted => {
                    let waiting = of_host.entry(fact.line).or_default();
                    let same = |&write: &u32| {
                        let write = &journal.facts()[write as usize];
                        (write.mask, journal.data(write)) == (fact.mask, journal.data(fact))
                    };
                    if let Some(found) = waiting.iter().position(same) {
                        for (start, bytes) in runs(fact.mask) {
                            initial.read(fact.line + start as u64, bytes)?;
                        }
                        waiting.remove(found);
                        read.changes.push(at);
                    }
                }
                kind if is_store(kind) => programs.issue(order, at, fact),
                _ => {}
            }
        }
        // Sorted once, when all facts are in: what left for a store of the program is then found by
        // bisection.
        read.issued.sort_unstable_by_key(|issued| (issued.program, issued.store));
        read.find_left_behind(&programs);
        read.find_points();
        read.find_persisted();
        Ok(read)
    }

    /// The same facts of a machine whose controllers go on to the next region by another rule.
    pub fn committed_by(self, commit: CommitRule) -> RegionFacts<'a> {
        RegionFacts { commit, ..self }
    }

    /// Notes that facts contradict each other.
    fn contradict(&mut self, fact: u32, what: String) {
        self.contradictions.push(Contradiction { fact, what });
    }

    /// The number of an order.
    fn order_named(&self, name: u16) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }

    /// The order and number of the region of a fact of an SM, or of a core.
    fn region_of_sm(&self, author: Author) -> Option<(usize, u32)> {
        let order = author.processor().and_then(|name| self.order_named(name)).filter(|_| self.names.len() > 1);
        Some((order.unwrap_or_default(), author.region()?))
    }

    fn of_controller(&mut self, at: u32, fact: &Fact) {
        let Author::HeldRegion { controller, order: name, region: number } = fact.author else { return };
        if usize::from(controller) >= self.controllers {
            self.contradict(at, format!("there is no controller {controller}"));
        } else if number as usize > self.journal.facts().len() {
            self.contradict(at, format!("region {number} of order {name} is beyond all that were drawn"));
        } else {
            self.changes.push(at);
        }
    }

    fn of_sm(&mut self, at: u32, fact: &Fact, step: RegionStep, programs: &mut Programs) {
        let Some((order, number)) = self.region_of_sm(fact.author) else { return };
        let regions = &mut self.regions[order];
        // A journal may be corrupt: a number beyond all facts would allocate without bound below.
        if number as usize > self.journal.facts().len() {
            self.contradict(at, format!("region {number} is beyond all that were drawn"));
            return;
        }
        if regions.len() <= number as usize {
            regions.resize_with(number as usize + 1, NotedRegion::default);
        }
        let region = &mut regions[number as usize];
        let (owner, by) = (*region.author.get_or_insert(fact.author), fact.author);
        let (same, whose) = match self.of_ctas {
            true => ((owner.processor(), owner.cta()) == (by.processor(), by.cta()), "CTAs"),
            false => (owner.thread() == by.thread(), "warps"),
        };
        if !same {
            self.contradict(at, format!("region {number} belongs to two {whose}"));
            return;
        }
        if step == RegionStep::Ended {
            region.ended = true;
            return;
        }
        // A contradiction does not drop the store: whatever is wrong with it, it is noted below.
        let behind = region.ended;
        let mut program = NONE;
        let (mut other, bytes) = (0, bytes_of(self.journal, fact));
        // What leaves is matched to the stores that its warp issued; several of them may leave in one fact.
        let unknown = programs.leave(at, fact, |issued, source| {
            program = if program == NONE { issued.program } else { program };
            let source = bytes_of(self.journal, &self.journal.facts()[source as usize]);
            let differs = |&byte: &usize| issued.mask >> byte & 1 == 1 && bytes[byte] != source[byte];
            other += (0..LINE).filter(differs).count();
            self.issued.push(issued);
        });
        region.stores.push(RegionStore { fact: at, program });
        if behind {
            self.contradict(at, format!("a store of region {number} left its SM behind the region's end"));
        }
        if unknown != 0 {
            let what = format!("what left in region {number} to line {:#x} is nothing that its warp stored", fact.line);
            self.contradict(at, what);
        }
        if other != 0 {
            let what = format!("{other} bytes left in region {number} to line {:#x} with other values", fact.line);
            self.contradict(at, what);
        }
    }

    /// A warp's stores leave in its order: one that has not left by the time a later one has never will.
    fn find_left_behind(&mut self, programs: &Programs) {
        let mut last: BTreeMap<Option<Thread>, u32> = BTreeMap::new();
        for issued in &self.issued {
            let warp = self.journal.facts()[issued.program as usize].author.thread();
            let program = last.entry(warp).or_default();
            *program = issued.program.max(*program);
        }
        for ((warp, line), waiting) in &programs.waiting {
            let last = last.get(warp).copied().unwrap_or_default();
            for own in waiting.iter().filter(|own| own.program < last) {
                let what = format!("a store to line {line:#x} left in no region, and a later one of its warp did");
                self.contradict(own.program, what);
            }
        }
    }

    /// Facts of the same time make one crash point.
    fn find_points(&mut self) {
        let time = |&change: &u32| self.journal.facts()[change as usize].time;
        let groups = self.changes.chunk_by(|one, other| time(one) == time(other));
        let ends = groups.scan(0, |end, group| {
            *end += group.len() as u32;
            Some(*end)
        });
        self.points = ends.collect();
    }

    /// From which point on each region, and all before it, is known to all controllers to have ended.
    fn find_persisted(&mut self) {
        let mut bounded: Vec<Vec<usize>> = self.regions.iter().map(|regions| vec![0; regions.len()]).collect();
        let mut prefix = vec![0; self.names.len()];
        for region in self.regions.iter_mut().flatten() {
            region.persisted = NONE;
        }
        for (at, &change) in self.changes.iter().enumerate() {
            let fact = &self.journal.facts()[change as usize];
            if fact.kind != FactKind::Region(RegionStep::Bounded) {
                continue;
            }
            let Author::HeldRegion { order: name, region, .. } = fact.author else { continue };
            let Ok(order) = self.names.binary_search(&name) else { continue };
            let Some(count) = bounded[order].get_mut(region as usize) else { continue };
            *count += 1;
            let point = self.points.partition_point(|&end| end as usize <= at) as u32 + 1;
            while bounded[order].get(prefix[order]).is_some_and(|&count| count >= self.controllers) {
                self.regions[order][prefix[order]].persisted = point;
                prefix[order] += 1;
            }
        }
    }

    /// How many times controllers' states changed: the last crash point.
    pub fn changes(&self) -> u64 {
        self.points.len() as u64
    }

    /// Regions that were drawn.
    pub fn regions(&self) -> u64 {
        self.regions.iter().map(|regions| regions.len() as u64).sum()
    }

    /// Orders in which regions commit: one for the machine, or one for each SM.
    pub fn orders(&self) -> usize {
        self.names.len()
    }

    /// When a point's last change was made, in ticks.
    fn time(&self, point: u64) -> Time {
        let last = point.checked_sub(1).map(|point| self.points[point as usize] as usize - 1);
        last.map_or(0, |change| self.journal.facts()[self.changes[change] as usize].time)
    }

    /// The first crash point at which a fact has been noted.
    fn point_of(&self, fact: u32) -> u64 {
        let changes = self.changes.partition_point(|&change| change < fact) as u32;
        (self.points.partition_point(|&end| end <= changes) as u64 + 1).min(self.changes())
    }

    fn fact(&self, at: u32) -> &'a Fact {
        &self.journal.facts()[at as usize]
    }

    /// A fact's bytes, each in its place in the line.
    fn bytes(&self, fact: &Fact) -> [u8; LINE] {
        bytes_of(self.journal, fact)
    }

    /// What issued stores left in.
    fn left_in(&self, program: u32) -> &[Issued] {
        let start = self.issued.partition_point(|issued| issued.program < program);
        let count = self.issued[start..].partition_point(|issued| issued.program == program);
        &self.issued[start..start + count]
    }

    /// The order of a number, where there are several.
    fn of_order(&self, order: usize) -> String {
        if self.names.len() > 1 { format!(" of SM {}", self.names[order]) } else { String::new() }
    }

    /// A store of a region as a witness: the program's own, where it is known.
    fn persist(&self, store: RegionStore, address: u64) -> Persist {
        let fact = self.fact(if store.program == NONE { store.fact } else { store.program });
        Persist::new("store", fact.author, fact.line, address)
    }
}

/// The orders that facts name: where it is not 0 alone, which stands for the machine, those of all SMs with
/// regions.
fn names(journal: &Journal) -> Vec<u16> {
    let authors =
        || journal.facts().iter().filter(|fact| matches!(fact.kind, FactKind::Region(_))).map(|fact| fact.author);
    if !authors().any(|author| matches!(author, Author::HeldRegion { order: 1.., .. })) {
        return vec![0];
    }
    let named = |author: Author| match author {
        Author::HeldRegion { order, .. } => Some(order),
        _ => author.processor(),
    };
    let mut names: Vec<u16> = authors().filter_map(named).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A store that a warp issued.
struct Waiting {
    program: u32,
    /// The fact that has its bytes.
    source: u32,
    /// Those that did not leave in a region yet.
    mask: u128,
}

/// Stores that did not leave in a region yet, in program order, by warp and line.
#[derive(Default)]
struct Programs {
    waiting: BTreeMap<(Option<Thread>, u64), VecDeque<Waiting>>,
}

impl Programs {
    fn issue(&mut self, order: &RunOrder<'_>, at: u32, fact: &Fact) {
        let source = match fact.kind {
            // The value of an atomic is known when it was performed.
            FactKind::Updated => {
                let Some((line, version)) = order.version_of(at as usize) else { return };
                order.lines()[line].versions[version as usize - 1].performed
            }
            _ => at,
        };
        let mask = order.journal.facts()[source as usize].mask;
        if mask != 0 {
            let waiting = self.waiting.entry((fact.author.thread(), fact.line)).or_default();
            waiting.push_back(Waiting { program: at, source, mask });
        }
    }

    /// Bytes leave in a region: tells where they came from, and the fact that has them; returns those that
    /// were never issued.
    fn leave(&mut self, at: u32, fact: &Fact, mut matched: impl FnMut(Issued, u32)) -> u128 {
        let mut left = fact.mask;
        let Some(waiting) = self.waiting.get_mut(&(fact.author.thread(), fact.line)) else { return left };
        for own in waiting.iter_mut() {
            let mask = own.mask & left;
            if mask != 0 {
                matched(Issued { program: own.program, mask, store: at }, own.source);
                own.mask &= !mask;
                left &= !mask;
            }
            if left == 0 {
                break;
            }
        }
        while waiting.front().is_some_and(|own| own.mask == 0) {
            waiting.pop_front();
        }
        left
    }
}
