//! The DRAM cache in front of persistent memory as a data sheet, and its bytes in random sequences.
//!
//! A probe stands in for a home slice. Clock 1 GHz, a tick is a nanosecond, links take 1 ns. A row of NVM opens in 300
//! ns, of DRAM in 124; the column takes 36 ns and a line of 64 B two. The cache has 1,024 sets, NVM four times as much.

use std::any::Any;
use std::collections::BTreeMap;

use durawarp::engine::*;
use durawarp::kernel::memory::{Medium, NVM_BASE};
use durawarp::machine::address::Interleave;
use durawarp::machine::coherence::HomeMsg;
use durawarp::machine::image::Image;
use durawarp::machine::media::{BusSpec, Media, NvmSpec};
use durawarp::machine::memory_controller::{ControllerCounters, DramCacheCounters, MemoryController};
use durawarp::machine::msg::{
    ControllerMsg, Line, MemoryAccepted, MemoryData, MemoryDurable, MemoryRead, MemoryWrite, Msg,
};
use durawarp::machine::ports::{Endpoint, Roster};
use durawarp::persist::journal::{FactKind, Journal};
use durawarp::persist::vocab::Domain;
use durawarp::persist::{ControllerHandler, Handler, Outbox};
use smallvec::SmallVec;

use crate::memory_controller::{bank0, dram, ns, persist, spec};

const CACHE: u64 = 1 << 16;
const NVM: usize = 1 << 18;
const WHOLE: u128 = u64::MAX as u128;
const DRAM_ROW: Time = 124;
const NVM_ROW: Time = 300;
/// Links, column and transfer.
const HIT: Time = 1 + 36 + 2 + 1;

/// What a home asks for; its place in the script is its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Read(u64),
    Evict(u64, u8),
    Clean(u64, u8),
    /// Of a line of which the home has nothing new.
    CleanBelow(u64),
}

impl Ask {
    fn message(self, tag: u16) -> ControllerMsg {
        let write = |line, through, byte, mask| {
            let data = Box::new(Line { bytes: [byte; 128], mask, log: false, launch: 0 });
            ControllerMsg::MemoryWrite(MemoryWrite {
                line: NVM_BASE + line,
                slice: 0,
                token: tag,
                late: false,
                through,
                data,
            })
        };
        match self {
            Ask::Read(line) => {
                let room = Box::default();
                ControllerMsg::MemoryRead(MemoryRead {
                    line: NVM_BASE + line,
                    tag,
                    slice: 0,
                    sectors: 0b11,
                    from: None,
                    room,
                })
            }
            Ask::Evict(line, byte) => write(line, false, byte, WHOLE),
            Ask::Clean(line, byte) => write(line, true, byte, WHOLE),
            Ask::CleanBelow(line) => write(line, true, 0, 0),
        }
    }
}

/// When an answer came, and the first and last byte of a read.
type Answers = BTreeMap<u16, (Time, [u8; 2])>;

#[derive(Debug)]
struct Home {
    script: Vec<(Time, Ask)>,
    next: usize,
    data: Answers,
    durable: Answers,
}

impl Component<Msg> for Home {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let new = match message {
            Msg::Home(HomeMsg::MemoryData(MemoryData { tag, data, .. })) => {
                self.data.insert(tag, (cx.now(), [data.bytes[0], data.bytes[63]]))
            }
            Msg::Home(HomeMsg::MemoryAccepted(MemoryAccepted { token, durable: true, .. })) => {
                self.durable.insert(token, (cx.now(), [0; 2]))
            }
            Msg::Home(HomeMsg::MemoryAccepted(_)) => None,
            Msg::Home(HomeMsg::MemoryDurable(MemoryDurable { token, .. })) => {
                self.durable.insert(token, (cx.now(), [0; 2]))
            }
            other => panic!("unexpected {other:?}"),
        };
        assert!(new.is_none(), "one answer each");
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.next < self.script.len() && self.script[self.next].0 == cx.now() {
            cx.send(Port(0), self.script[self.next].1.message(self.next as u16).into(), 0);
            self.next += 1;
        }
        if let Some((next, _)) = self.script.get(self.next) {
            cx.wake_at(*next);
        }
    }
}

struct Ran {
    data: Answers,
    durable: Answers,
    /// What became of lines of NVM, in order: when it was accepted or in its cells, line, first byte.
    persisted: Vec<(Time, u64, u8)>,
    cache: Option<DramCacheCounters>,
    controller: ControllerCounters,
    /// The last bytes, by line: NVM's, over them the cache's.
    last: Vec<[u8; 2]>,
}

fn run(cache: Option<u64>, domain: Domain, script: &[(Time, Ask)]) -> Ran {
    run_under(None, cache, domain, script)
}

fn run_under(
    handler: Option<Box<dyn ControllerHandler>>,
    cache: Option<u64>,
    domain: Domain,
    script: &[(Time, Ask)],
) -> Ran {
    let clock = Clock::of_period(1);
    let base = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
    let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(2), write_to_read_ns: ns(6) };
    let nvm = NvmSpec { t_rcd_ns: ns(NVM_ROW), ..NvmSpec::through(&dram(), ns(480)) };
    let media = Media::new(&dram(), &nvm, &bus, clock, base);
    let ports = Roster::of_cores(1, Interleave::new(1, 1, 64)).ports(Endpoint::Controller(0));
    let images = [Image::new(0), Image::new(NVM)];
    let mut controller = MemoryController::new(spec(), clock, 10, ports, media, images);
    controller.set_persistence(&persist(domain), true);
    controller.host(handler);
    cache.into_iter().for_each(|bytes| controller.cache_in_dram(bytes));
    let mut t = Topology::new();
    let home = Home { script: script.to_vec(), next: 0, data: Answers::new(), durable: Answers::new() };
    let home = t.add("home", Box::new(home));
    let mc = t.add("mc", Box::new(controller));
    t.connect(home, Port(0), mc, Link { latency: 1, phase: 0 });
    t.connect(mc, Port(0), home, Link { latency: 1, phase: 0 });
    t.wake_at(home, script[0].0);
    let mut sim = Simulation::new(t).expect("a valid topology");
    let end = sim.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let (home, mc): (&dyn Any, &dyn Any) = (sim.component(home), sim.component(mc));
    let home = home.downcast_ref::<Home>().expect("the home");
    let mc = mc.downcast_ref::<MemoryController>().expect("the controller");
    let journal = Journal::merged(&[mc.journal().expect("it keeps one")]);
    let kind = if domain == Domain::Media { FactKind::AtMedia } else { FactKind::Accepted };
    let facts = journal.facts().iter().filter(|fact| fact.kind == kind);
    let persisted = facts.map(|fact| (fact.time, fact.line - NVM_BASE, journal.data(fact)[0])).collect();
    let bytes = mc.image(Medium::Nvm).to_vec();
    let mut last: Vec<[u8; 2]> = bytes.chunks(64).map(|line| [line[0], line[63]]).collect();
    for (line, data) in mc.dirty_lines() {
        last[((line - NVM_BASE) / 64) as usize] = [data.bytes[0], data.bytes[63]];
    }
    let cache = mc.dram_cache_counters().copied();
    let (data, durable) = (home.data.clone(), home.durable.clone());
    Ran { data, durable, persisted, cache, controller: *mc.counters(), last }
}

fn times(answers: &Answers) -> Vec<(u16, Time)> {
    answers.iter().map(|(tag, (at, _))| (*tag, *at)).collect()
}

#[test]
fn a_miss_takes_a_read_of_nvm_and_a_hit_one_of_dram() {
    let (a, b) = (0, bank0(1));
    let script = [(0, Ask::Read(a)), (5000, Ask::Read(b)), (10_000, Ask::Read(a)), (15_000, Ask::Read(a))];
    let ran = run(Some(CACHE), Domain::Adr, &script);
    let expected = [(0, NVM_ROW + HIT), (1, 5000 + NVM_ROW + HIT), (2, 10_000 + DRAM_ROW + HIT), (3, 15_000 + HIT)];
    assert_eq!(times(&ran.data), expected, "the fill of b has closed a's row of DRAM");
    let cache = ran.cache.expect("it has one");
    assert_eq!((cache.read_hits, cache.read_misses, cache.dirty_victims), (2, 2, 0));
    let c = ran.controller;
    assert_eq!((c.dram_read_bytes, c.nvm_read_bytes, c.dram_written_bytes, c.nvm_written_bytes), (128, 128, 128, 0));
}

#[test]
fn without_the_cache_nothing_is_kept_in_dram() {
    let script = [(0, Ask::Read(0)), (5000, Ask::Read(bank0(1))), (10_000, Ask::Read(0)), (15_000, Ask::Evict(0, 1))];
    let ran = run(None, Domain::Adr, &script);
    let expected = [0, 5000, 10_000].map(|at| at + NVM_ROW + HIT);
    assert_eq!(times(&ran.data), [(0, expected[0]), (1, expected[1]), (2, expected[2])]);
    assert_eq!((ran.persisted, ran.cache.is_none()), (vec![(15_001, 0, 1)], true));
    assert_eq!((ran.controller.dram_read_bytes, ran.controller.dram_written_bytes), (0, 0));
}

#[test]
fn a_dirty_victim_is_read_from_dram_and_written_to_nvm() {
    let (a, b) = (0, CACHE);
    let script = [(0, Ask::Evict(a, 7)), (5000, Ask::Evict(b, 8)), (10_000, Ask::Read(a)), (15_000, Ask::Read(b))];
    let ran = run(Some(CACHE), Domain::Adr, &script);
    assert_eq!(times(&ran.durable), [(0, 2), (1, 5002)], "at once, as DRAM");
    assert_eq!([ran.data[&2].1, ran.data[&3].1], [[7; 2], [8; 2]]);
    let column = 10_000 + 1 + NVM_ROW;
    // The read of b waits until the bus has a's two beats; a is clean when b takes its place again.
    assert_eq!(ran.persisted, [(5001, a, 7), (column + 2, b, 8)]);
    let cache = ran.cache.expect("it has one");
    assert_eq!((cache.write_misses, cache.read_misses, cache.dirty_victims), (2, 2, 2));
}

#[test]
fn a_clean_reaches_nvm_also_of_bytes_that_the_cache_has_alone() {
    for (domain, after) in [(Domain::Adr, 0), (Domain::Media, 480)] {
        let script = [
            (0, Ask::Evict(0, 7)),
            (5000, Ask::CleanBelow(0)),
            (10_000, Ask::Clean(64, 8)),
            (15_000, Ask::Clean(0, 9)),
            (20_000, Ask::Read(0)),
            (25_000, Ask::Evict(CACHE, 1)),
        ];
        let ran = run(Some(CACHE), domain, &script);
        assert!(ran.durable[&1].0 >= 5002 + after && ran.durable[&1].0 < 5010 + after, "{:?}", ran.durable);
        assert!(ran.durable[&3].0 >= 15_002 + after, "{:?}", ran.durable);
        let persisted: Vec<_> = ran.persisted.iter().map(|&(_, line, byte)| (line, byte)).collect();
        assert_eq!(persisted, [(0, 7), (64, 8), (0, 9)], "and the victim at the end is clean");
        assert_eq!(ran.data[&4], (20_000 + HIT, [9; 2]), "the copy in DRAM is the newer one");
        let cache = ran.cache.expect("it has one");
        assert_eq!((cache.dirty_cleans, cache.dirty_victims), (1, 0));
    }
}

/// A scheme that holds the first byte of line 0, for ever.
#[derive(Debug)]
struct Holds(u8);

impl Handler for Holds {}

impl ControllerHandler for Holds {
    fn overlay(&self, line: u64, _: u128, bytes: &mut [u8; 128]) -> bool {
        let found = line == NVM_BASE;
        if found {
            bytes[0] = self.0;
        }
        found
    }

    fn awaited(&mut self, _: u64, _: u128, _: &mut Outbox) -> SmallVec<[u64; 2]> {
        SmallVec::new()
    }

    fn holds(&self, line: u64) -> bool {
        line == NVM_BASE
    }

    fn lines(&self) -> BTreeMap<u64, u128> {
        BTreeMap::new()
    }
}

#[test]
fn under_a_scheme_that_writes_memory_itself_dirty_victims_are_dropped_and_misses_see_what_it_holds() {
    let script = [
        (0, Ask::Read(0)),
        (5000, Ask::Read(0)),
        (10_000, Ask::Evict(0, 7)),
        (15_000, Ask::Read(0)),
        (20_000, Ask::Evict(CACHE, 8)),
        (25_000, Ask::Read(0)),
        (30_000, Ask::Read(CACHE)),
    ];
    let ran = run_under(Some(Box::new(Holds(5))), Some(CACHE), Domain::Adr, &script);
    let bytes = [0, 1, 3, 5, 6].map(|tag| ran.data[&tag].1);
    assert_eq!(bytes, [[5, 0], [5, 0], [7, 7], [5, 0], [0, 0]], "what the cache has is newer; what it dropped is gone");
    // A miss; two hits; two misses, of which the first finds its row of NVM open.
    let waited = [0, 1, 3, 5, 6].map(|tag: u16| ran.data[&tag].0 - script[usize::from(tag)].0);
    assert_eq!([waited[0], waited[3], waited[4]], [NVM_ROW + HIT, HIT, NVM_ROW + HIT]);
    assert!(waited[1] <= DRAM_ROW + HIT && waited[2] <= DRAM_ROW + HIT, "{waited:?}");
    let cache = ran.cache.expect("it has one");
    assert_eq!((cache.read_hits, cache.read_misses, cache.dirty_victims), (2, 3, 2));
    assert_eq!((ran.persisted.len(), ran.controller.nvm_written_bytes), (0, 0), "{:?}", ran.persisted);
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}

/// A script over 12 lines of three sets, under which no line is asked for while it is read, as homes do.
fn drawn(seed: u64) -> Vec<(Time, Ask)> {
    let mut draw = Draw(seed);
    let mut free_at: BTreeMap<u64, Time> = BTreeMap::new();
    let (mut now, mut script) = (0, Vec::new());
    while script.len() < 400 {
        // Bursts of each kind: the WPQ of eight entries is full and empty by turns.
        now += if seed.is_multiple_of(2) { draw.below(40) } else { draw.below(600) };
        let line = 64 * draw.below(3) + CACHE * draw.below(4);
        if free_at.get(&line).is_some_and(|&at| at > now) {
            continue;
        }
        let byte = (script.len() % 255 + 1) as u8;
        let ask = match draw.below(8) {
            0..3 => Ask::Read(line),
            3..6 => Ask::Evict(line, byte),
            6 => Ask::Clean(line, byte),
            _ => Ask::CleanBelow(line),
        };
        if matches!(ask, Ask::Read(_)) {
            free_at.insert(line, now + 20_000);
        }
        script.push((now, ask));
    }
    script
}

#[test]
fn reads_see_the_last_write_and_cleans_are_durable_in_random_sequences() {
    let mut held = 0;
    for seed in 0..40 {
        let domain = if seed % 4 < 2 { Domain::Adr } else { Domain::Media };
        let script = drawn(seed);
        let ran = run(Some(CACHE), domain, &script);
        held += ran.cache.expect("it has one").held_misses;
        let mut flat: BTreeMap<u64, (usize, u8)> = BTreeMap::new();
        let mut order: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (tag, (at, ask)) in script.iter().enumerate() {
            match *ask {
                Ask::Read(line) => {
                    let (read_at, bytes) = ran.data[&(tag as u16)];
                    let last = flat.get(&line).map_or(0, |(_, byte)| *byte);
                    assert_eq!(bytes, [last; 2], "seed {seed}: read {tag}");
                    assert!(read_at < at + 20_000, "seed {seed}: read {tag} after {} ns", read_at - at);
                }
                Ask::Evict(line, byte) | Ask::Clean(line, byte) => {
                    flat.insert(line, (tag, byte));
                    order.entry(line).or_default().push(byte);
                }
                Ask::CleanBelow(_) => {}
            }
            if let Ask::Clean(line, _) | Ask::CleanBelow(line) = *ask {
                let (durable_at, _) = ran.durable[&(tag as u16)];
                let kept = ran.persisted.iter().rfind(|fact| fact.0 <= durable_at && fact.1 == line).map(|fact| fact.2);
                let written = &order.get(&line).map(Vec::as_slice).unwrap_or_default();
                // What is kept is the last write before the clean, or one after it.
                let allowed = script[tag + 1..].iter().filter_map(|(_, later)| match *later {
                    Ask::Evict(of, byte) | Ask::Clean(of, byte) if of == line => Some(byte),
                    _ => None,
                });
                let mut allowed = [written.last().copied().unwrap_or_default()].into_iter().chain(allowed);
                assert!(
                    kept.map_or(written.is_empty(), |kept| allowed.any(|byte| byte == kept)),
                    "seed {seed}: clean {tag} at {at} of {line:#x}, durable at {durable_at}: kept {kept:?}"
                );
            }
        }
        for (line, (_, byte)) in flat {
            assert_eq!(ran.last[(line / 64) as usize], [byte; 2], "seed {seed}: line {line:#x}");
        }
    }
    assert!(held > 0, "misses have waited for the WPQ");
}
