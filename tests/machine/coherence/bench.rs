//! Cores, the OS, home slices and a controller, joined: 1 GHz, a tick is a nanosecond.

use std::any::Any;
use std::collections::BTreeMap;

use durawarp::engine::*;
use durawarp::kernel::memory::{DRAM_BASE, Medium, NVM_BASE};
use durawarp::machine::address::Interleave;
use durawarp::machine::coherence::HomeMsg;
use durawarp::machine::home::{HomeCounters, HomeSlice, HomeWiring, LlcSpec};
use durawarp::machine::image::Image;
use durawarp::machine::media::{BusSpec, Media, NvmSpec};
use durawarp::machine::memory_controller::{ControllerSpec, MemoryController};
use durawarp::machine::msg::Msg;
use durawarp::machine::persistence::PersistSpec;
use durawarp::machine::ports::{Endpoint, Requester, Roster};
use durawarp::machine::replacement::Replacement;
use durawarp::persist::journal::{FactKind, Journal};
use durawarp::persist::vocab::Domain;

use super::core::{Act, Draw, Program, ScriptedCore, value_of};
use super::faults::{Fault, Tamper};
use super::l1::{ScriptedL1, State};
use super::log::{Durable, Noted, What};
use crate::memory_controller::{dram, ns, persist, spec};

const IMAGE: usize = 1 << 14;

/// From a home to memory and back with a line of a row that is closed.
pub(crate) const MEMORY: Time = 10 + 124 + 36 + 2 + 10;

/// The line of a message to a home.
pub(crate) fn line_of(message: &HomeMsg) -> u64 {
    match message {
        HomeMsg::Get { line, .. }
        | HomeMsg::ProbeAck { line, .. }
        | HomeMsg::Put { line, .. }
        | HomeMsg::Clean { line, .. } => *line,
        other => panic!("no message to a home: {other:?}"),
    }
}

/// Machine and programs.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) llc: LlcSpec,
    /// Of memory, for each slice.
    pub(crate) credits: (u32, u32),
    pub(crate) controller: ControllerSpec,
    pub(crate) persist: PersistSpec,
    /// Lines of an L1.
    pub(crate) l1_lines: usize,
    pub(crate) programs: Vec<Program>,
    /// What the OS looks at.
    pub(crate) os: Vec<(Time, Act)>,
    pub(crate) fault: Option<Fault>,
    /// Messages to the first home from nowhere.
    pub(crate) posts: Vec<(Time, HomeMsg)>,
    pub(crate) threads: usize,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: RunEnd,
    pub(crate) digest: u64,
    /// By core, then the OS.
    pub(crate) logs: Vec<Vec<Noted>>,
    pub(crate) counters: Vec<HomeCounters>,
    /// Acknowledgements of Puts that no core has sent.
    pub(crate) strays: u32,
    /// In order of time.
    pub(crate) durable: Vec<Durable>,
    /// The final value of each line that has one but 0: memory's, over it that of homes and cores.
    pub(crate) memory: BTreeMap<u64, Option<u64>>,
}

/// A home slice of 16 lines in sets of 4, 14 cycles from a core and 14 back, 12 of its own.
pub(crate) fn llc() -> LlcSpec {
    LlcSpec {
        slices: 1,
        slice_kb: 1,
        ways: 4,
        replacement: Replacement::Lru,
        replacement_seed: 0,
        mshr_entries: 4,
        request_cycles: 14,
        service_cycles: 12,
        reply_cycles: 14,
        interleave_bytes: 256,
    }
}

impl Bench {
    /// Cores with scripts.
    pub(crate) fn scripts(scripts: &[&[(Time, Act)]]) -> Bench {
        Bench {
            llc: llc(),
            credits: (8, 4),
            controller: ControllerSpec { front_ns: ns(10), back_ns: ns(10), ..spec() },
            persist: persist(Domain::Adr),
            l1_lines: 4,
            programs: scripts.iter().map(|script| Program::Script(script.to_vec())).collect(),
            os: Vec::new(),
            fault: None,
            posts: Vec::new(),
            threads: 1,
        }
    }

    /// Cores that draw `acts` acts each over `lines`.
    pub(crate) fn drawn(cores: u64, acts: u64, lines: &[u64], seed: u64) -> Bench {
        let drawn =
            |core| Program::Drawn { draw: Draw(seed << 8 | core), left: acts, lines: lines.to_vec(), pause: 20 };
        Bench { programs: (0..cores).map(drawn).collect(), ..Bench::scripts(&[]) }
    }

    fn controller(&self, map: Interleave) -> MemoryController {
        let clock = Clock::of_period(1);
        let base = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
        let nvm = NvmSpec::through(&dram(), ns(480));
        let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(2), write_to_read_ns: ns(6) };
        let media = Media::new(&dram(), &nvm, &bus, clock, base);
        let ports = Roster::of_cores(self.programs.len() as u16, map).ports(Endpoint::Controller(0));
        let forward = base.ticks_of_ps(self.controller.forward_ns.ps);
        let images = [Image::new(IMAGE), Image::new(IMAGE)];
        let mut controller = MemoryController::new(self.controller.clone(), clock, forward, ports, media, images);
        controller.set_persistence(&self.persist, true);
        controller
    }

    /// Runs to the end, whatever that is.
    pub(crate) fn run(mut self) -> Ran {
        let map = Interleave::new(self.llc.slices, 1, self.llc.interleave_bytes);
        let cores = self.programs.len() as u16;
        let roster = Roster::of_cores(cores, map);
        let mut t = Topology::new();
        let mc = t.add("mc", Box::new(self.controller(map)));
        let memory_link = Link { latency: self.controller.front_ns.ps / 1000, phase: 0 };
        let homes: Vec<ComponentId> = (0..self.llc.slices as u16)
            .map(|slice| {
                let ports = roster.ports(Endpoint::Home(slice));
                let wiring = HomeWiring { clock: Clock::of_period(1), ports, memory_credits: self.credits };
                let mut home = HomeSlice::new(self.llc.clone(), wiring);
                home.set_persistence(&self.persist, false);
                let home = t.add(format!("home{slice}"), Box::new(home));
                t.connect(home, ports.to(Endpoint::Controller(0)), mc, memory_link);
                t.connect(mc, roster.ports(Endpoint::Controller(0)).to(Endpoint::Home(slice)), home, memory_link);
                home
            })
            .collect();
        let request = Link { latency: u64::from(self.llc.request_cycles), phase: 0 };
        let reply = Link { latency: u64::from(self.llc.reply_cycles), phase: 0 };
        let mut ids = Vec::new();
        let os = Program::Script(std::mem::take(&mut self.os));
        let programs = std::mem::take(&mut self.programs).into_iter().chain([os]);
        for (number, program) in (0..).zip(programs) {
            let role = if number < cores { Endpoint::Core(number) } else { Endpoint::Os };
            let requester = if number < cores { Requester::core(number) } else { Requester::os(cores) };
            let l1 = ScriptedL1::new(requester, self.l1_lines);
            let core = ScriptedCore::new(u64::from(number) + 1, l1, map, program);
            let first = core.first();
            let core = t.add(role.to_string(), Box::new(core));
            first.into_iter().for_each(|at| t.wake_at(core, at));
            ids.push(core);
            // A fault sits between a core and its homes.
            let between = self.fault.map(|fault| {
                let tamper = t.add("tamper", Box::new(Tamper::new(fault, requester, map)));
                t.connect(tamper, Port(homes.len() as u16), core, Link { latency: 1, phase: 0 });
                tamper
            });
            for (slice, &home) in (0..).zip(&homes) {
                t.connect(core, Port(slice), between.unwrap_or(home), request);
                t.connect(home, roster.ports(Endpoint::Home(slice)).to(role), between.unwrap_or(core), reply);
                if let Some(between) = between {
                    t.connect(between, Port(slice), home, Link { latency: 1, phase: 0 });
                }
            }
        }
        self.posts.into_iter().for_each(|(at, message)| t.post(homes[0], at, message.into()));
        let mut sim = Simulation::new(t).expect("a valid topology");
        let options = RunOptions { threads: self.threads, oversubscribe: self.threads > 1, ..RunOptions::default() };
        let end = sim.run(&options);
        collect(&sim, end, mc, &homes, &ids, map, self.persist.domain)
    }

    /// Runs to the end, which is that everything was done.
    pub(crate) fn finish(self) -> Ran {
        let ran = self.run();
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:#?}", ran.end);
        ran
    }
}

impl Ran {
    /// What a core noted of a line, and when.
    pub(crate) fn of(&self, core: usize, line: u64) -> Vec<(Time, What)> {
        self.logs[core].iter().filter(|noted| noted.line == line).map(|noted| (noted.at, noted.what)).collect()
    }

    /// When a core first noted such a thing of a line from a time on.
    pub(crate) fn when(&self, core: usize, line: u64, from: Time, what: fn(&What) -> bool) -> Option<Time> {
        self.of(core, line).into_iter().find(|(at, noted)| *at >= from && what(noted)).map(|(at, _)| at)
    }

    /// When a line that a core asked for at a time or later came.
    pub(crate) fn granted(&self, core: usize, line: u64, from: Time) -> Option<Time> {
        self.when(core, line, from, |what| matches!(what, What::Granted(_)))
    }

    /// When a clean that began at a time or later was acknowledged.
    pub(crate) fn cleaned(&self, core: usize, line: u64, from: Time) -> Option<Time> {
        self.when(core, line, from, |what| matches!(what, What::Cleaned(_)))
    }

    /// The state of a core's copy at the end.
    pub(crate) fn state(&self, core: usize, line: u64) -> Option<State> {
        let state = |(_, what)| if let What::State(state) = what { Some(state) } else { None };
        self.of(core, line).into_iter().filter_map(state).next_back().flatten()
    }
}

fn of<T: 'static>(sim: &Simulation<Msg>, id: ComponentId) -> &T {
    let any: &dyn Any = sim.component(id);
    any.downcast_ref::<T>().expect("a component of its kind")
}

fn collect(
    sim: &Simulation<Msg>,
    end: RunEnd,
    mc: ComponentId,
    homes: &[ComponentId],
    cores: &[ComponentId],
    map: Interleave,
    domain: Domain,
) -> Ran {
    let mc = of::<MemoryController>(sim, mc);
    let homes: Vec<&HomeSlice> = homes.iter().map(|&id| of(sim, id)).collect();
    let cores: Vec<&ScriptedCore> = cores.iter().map(|&id| of(sim, id)).collect();
    let journal = Journal::merged(&[mc.journal().expect("it keeps one")]);
    let durable = |kind| {
        let facts = journal.facts().iter().filter(move |fact| fact.kind == kind);
        let value = |fact| value_of(journal.data(fact));
        facts.map(move |fact| Durable { at: fact.time, line: fact.line, value: value(fact) }).collect::<Vec<_>>()
    };
    let mut memory = BTreeMap::new();
    for (base, medium) in [(DRAM_BASE, Medium::Dram), (NVM_BASE, Medium::Nvm)] {
        for line in (base..base + IMAGE as u64).step_by(64) {
            let mut bytes = [0; 64];
            mc.image(medium).read(map.in_channel(line) as usize, &mut bytes);
            memory.insert(line, value_of(&bytes));
        }
    }
    memory.extend(homes.iter().flat_map(|home| home.dirty_lines()).map(|(line, bytes, _)| (line, value_of(bytes))));
    memory.extend(cores.iter().flat_map(|core| core.l1.dirty_lines()).map(|(line, bytes)| (line, value_of(&bytes))));
    memory.retain(|_, value| *value != Some(0));
    Ran {
        end,
        digest: sim.digest(),
        logs: cores.iter().map(|core| core.log.clone()).collect(),
        counters: homes.iter().map(|home| *home.counters()).collect(),
        strays: cores.iter().map(|core| core.l1.strays).sum(),
        durable: durable(if domain == Domain::Media { FactKind::AtMedia } else { FactKind::Accepted }),
        memory,
    }
}
