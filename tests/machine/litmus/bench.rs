//! Real cores, home slices and a controller run a litmus program many times, at times drawn by a seed.
//!
//! A hart comes to its statements in a round when the cycle counter says so, plus what the seed adds, with
//! copies of some of the locations in its L1. Each access takes its address from a pointer of its own, which
//! is in the L1 or in memory, so that accesses of one hart know their addresses in any order. A round has
//! locations of its own: in lines of their own, in one line, or in lines of one set.

use std::any::Any;
use std::sync::Arc;

use durawarp::engine::*;
use durawarp::kernel::memory::{DRAM_BASE, Medium, NVM_BASE};
use durawarp::machine::address::Interleave;
use durawarp::machine::coherence::{CoreMsg, OsMsg, SystemStep};
use durawarp::machine::core::{Consistency, Core, CoreSpec, CoreWiring, L1dSpec, OrderRule};
use durawarp::machine::cpu::CpuMemory;
use durawarp::machine::home::{HomeSlice, HomeWiring, LlcSpec};
use durawarp::machine::image::Image;
use durawarp::machine::media::{BusSpec, Media, NvmSpec};
use durawarp::machine::memory_controller::MemoryController;
use durawarp::machine::msg::Msg;
use durawarp::machine::ports::{Endpoint, Roster};
use durawarp::machine::replacement::Replacement;
use durawarp::persist::CorePolicy;
use durawarp::persist::vocab::Domain;
use durawarp::riscv::code::CodeTable;
use durawarp::riscv::elf::Executable;
use durawarp::riscv::hart_state::HartState;
use durawarp::riscv::memory::Windows;
use durawarp::riscv::syscalls::{Reply, Then};

use super::code::{ACCESSES, BLOCK_BYTES, POINTERS, SPIN_CYCLES, WARM, code};
use super::notation::{Outcome, Program};
use crate::memory_controller::{dram, ns, persist, spec as controller_spec};

/// Cycles of a round.
const ROUND_CYCLES: u64 = 900;
const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x4_0000;
/// Bytes of a location in a round: it has two lines.
const SLOT_BYTES: u64 = 128;

/// What runs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    /// Harts of a core.
    pub(crate) harts: u32,
    pub(crate) consistency: Consistency,
    pub(crate) batch_cycles: u32,
    /// Caches of a few lines: lines leave all the time.
    pub(crate) small: bool,
    /// A rule that the cores lack.
    pub(crate) without: Option<OrderRule>,
}

/// Every thread exits.
#[derive(Debug)]
struct Exits {
    roster: Roster,
    harts: u32,
}

impl Component<Msg> for Exits {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Os(OsMsg::Call { call, .. }) = message else { panic!("{message:?}") };
        let hart = call.hart;
        let reply = Box::new(Reply { writes: Vec::new(), then: Then::Exit(0), wakes: Vec::new() });
        let core = self.roster.ports(Endpoint::Os).to_core((hart / self.harts) as u16);
        core.send(CoreMsg::Return { hart, reply, step: SystemStep::default() }, 0, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

/// A generator of the tests: a step of a linear congruence, mixed.
#[derive(Debug, Clone)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// Where everything of a run lies.
#[derive(Debug, Clone, Copy)]
struct Places {
    rounds: u64,
    locations: u64,
    harts: u64,
}

impl Places {
    /// Bytes of a location over all rounds: lines of one round's locations are in one set of any small cache.
    fn region(&self) -> u64 {
        (self.rounds * SLOT_BYTES).next_multiple_of(4096)
    }

    fn blocks(&self) -> u64 {
        DATA + self.region() * self.locations
    }

    /// The schedule of a hart in a round.
    fn block(&self, hart: u64, round: u64) -> u64 {
        self.blocks() + (hart * self.rounds + round) * BLOCK_BYTES
    }

    fn cold(&self) -> u64 {
        self.block(self.harts, 0)
    }

    /// A pointer that is in no cache.
    fn cold_pointer(&self, hart: u64, round: u64, access: u64) -> u64 {
        self.cold() + ((hart * self.rounds + round) * ACCESSES as u64 + access) * 64
    }

    fn result(&self, hart: u64, round: u64) -> u64 {
        self.cold_pointer(self.harts, 0, 0) + (hart * self.rounds + round) * 64
    }

    /// A line that a hart reads instead of a location.
    fn idle(&self, hart: u64) -> u64 {
        self.result(self.harts, 0) + hart * 64
    }

    fn end(&self) -> u64 {
        self.idle(self.harts).next_multiple_of(1 << 16)
    }
}

/// The addresses of a round's locations.
fn addresses(program: &Program, places: &Places, round: u64, draw: &mut Draw) -> Vec<u64> {
    let kind = draw.below(8);
    let of = |location: u64| DATA + location * places.region() + round * SLOT_BYTES;
    let mut at = Vec::new();
    for location in 0..program.locations.len() as u64 {
        at.push(match (program.is_across(location as usize), kind) {
            // All in one line, but for those across lines.
            (false, 0) => of(0) + 8 * location,
            (true, _) => of(location) + 60,
            (false, 1 | 2) => of(location) + 8 * draw.below(8),
            // Every other one in another set.
            (false, _) => of(location) + 64 * (location & 1) + 8 * draw.below(8),
        });
    }
    at
}

/// The schedule of a hart in a round, as bytes and where they lie.
fn schedule(
    program: &Program,
    places: &Places,
    (hart, round): (u64, u64),
    addresses: &[u64],
    draw: &mut Draw,
) -> Vec<(u64, u64)> {
    let block = places.block(hart, round);
    let begins = (round + 1) * ROUND_CYCLES;
    let mut words = vec![(block, begins - SPIN_CYCLES), (block + 8, begins + draw.below(80))];
    // Lines that the hart reads before.
    let mut lines: Vec<u64> = Vec::new();
    for (location, &address) in addresses.iter().enumerate() {
        lines.push(address & !63);
        if program.is_across(location) {
            lines.push((address & !63) + 64);
        }
    }
    let copies = draw.below(1 << lines.len());
    let mut warm: Vec<u64> = (0..lines.len()).filter(|line| copies >> line & 1 == 1).map(|line| lines[line]).collect();
    warm.resize(WARM.max(warm.len()), places.idle(hart));
    words.extend((0..).zip(&warm[..WARM]).map(|(nth, &line)| (block + 64 + 8 * nth, line)));
    // One pointer in eight rounds, half of them in another: some rounds are fast.
    let cold = [0, 1, 2, 4, 4, 1, 2, 0][draw.below(8) as usize];
    for (nth, access) in (0..).zip(program.accesses(hart as usize)) {
        let far = cold > 0 && draw.below(cold) == 0;
        let pointer = if far { places.cold_pointer(hart, round, nth) } else { block + POINTERS + 8 * nth };
        words.push((block + 16 + 8 * nth, pointer));
        words.push((pointer, addresses[access.location] + 4 * access.half as u64));
    }
    words
}

/// Runs a program for some rounds: the outcome of each, and what the cores counted of loads executed again.
pub(crate) fn outcomes(cores: &Cores, program: &Program, rounds: u64, seed: u64) -> (Vec<Outcome>, u64) {
    let mut draw = Draw(seed);
    let harts = program.harts.len() as u64;
    let places = Places { rounds, locations: program.locations.len() as u64, harts };
    let timebase = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
    let clock = timebase.clock(1_000_000);
    let map = Interleave::new(2, 1, 64);
    // With several harts a core, who shares one is drawn.
    let count = (harts as u32).div_ceil(cores.harts).max(2);
    let mut seats: Vec<u32> = (0..count * cores.harts).collect();
    for last in (1..seats.len()).rev() {
        seats.swap(last, draw.below(last as u64 + 1) as usize);
    }
    let roster = Roster::of_cores(count as u16, map);
    let memory_bytes = places.end();
    let window = |address: u64| (address - 0x1000) as usize;
    let mut image = vec![0; window(memory_bytes)];
    let mut starts = Vec::new();
    let mut words: Vec<u32> = Vec::new();
    for hart in 0..program.harts.len() {
        starts.push(CODE + 4 * words.len() as u64);
        words.extend(code(program, hart));
    }
    let mut located = Vec::new();
    for round in 0..rounds {
        let addresses = addresses(program, &places, round, &mut draw);
        for hart in 0..harts {
            for (at, word) in schedule(program, &places, (hart, round), &addresses, &mut draw) {
                image[window(at)..][..8].copy_from_slice(&u64::to_le_bytes(word));
            }
        }
        located.push(addresses);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    let code = Arc::new(CodeTable::new([(CODE, bytes.as_slice())]));
    let executable = Arc::new(Executable {
        entry: CODE,
        segments: vec![],
        functions: vec![],
        objects: vec![],
        headers: None,
        header_count: 0,
    });
    let memory = CpuMemory { windows: Windows { memory_bytes, pm_bytes: 4096 }, main: DRAM_BASE, persistent: NVM_BASE };

    let mut t = Topology::new();
    let core_spec = CoreSpec {
        count,
        harts: cores.harts,
        width: 4,
        rob_entries: 64 * cores.harts,
        iq_entries: 32 * cores.harts,
        lq_entries: 24 * cores.harts,
        sq_entries: 16 * cores.harts,
        mshr_entries: 8,
        predictor_entries: 256,
        redirect_cycles: 12,
        amo_cycles: 18,
        lr_hold_cycles: 80,
        forward_cycles: 4,
        mul_cycles: 3,
        div_cycles: 20,
        fp_cycles: 4,
        consistency: cores.consistency,
        fence_persists: false,
        batch_cycles: cores.batch_cycles,
    };
    let (kb, ways) = if cores.small { (1, 2) } else { (16, 4) };
    let l1d = L1dSpec { kb, ways, replacement: Replacement::Lru, replacement_seed: 0, hit_cycles: 4 };
    let mut ids = Vec::new();
    for index in 0..count as u16 {
        let wiring = CoreWiring {
            regions: None,
            index,
            clock,
            timebase,
            ports: roster.ports(Endpoint::Core(index)),
            memory,
            code: code.clone(),
            image: executable.clone(),
        };
        let mut core = Core::new(core_spec.clone(), l1d.clone(), wiring, Box::new(CorePolicy::default()), false);
        cores.without.into_iter().for_each(|rule| core.weaken(rule));
        for (hart, (&seat, &pc)) in (0..).zip(seats.iter().zip(&starts)) {
            if seat / cores.harts != u32::from(index) {
                continue;
            }
            let mut registers = [0; 64];
            registers[11] = places.result(hart, 0);
            registers[13] = places.block(hart, 0);
            registers[14] = rounds;
            core.begin(seat, HartState { registers, pc, fcsr: 0 });
        }
        ids.push((Endpoint::Core(index), t.add(format!("core{index}"), Box::new(core))));
    }
    let (slice_kb, ways) = if cores.small { (4, 4) } else { (512, 16) };
    let llc = LlcSpec {
        slices: 2,
        slice_kb,
        ways,
        replacement: Replacement::Lru,
        replacement_seed: 0,
        mshr_entries: 16,
        request_cycles: 14,
        service_cycles: 12,
        reply_cycles: 14,
        interleave_bytes: 64,
    };
    for slice in 0..2 {
        let role = Endpoint::Home(slice);
        let wiring = HomeWiring { clock, ports: roster.ports(role), memory_credits: (16, 16) };
        let home = HomeSlice::new(llc.clone(), wiring);
        ids.push((role, t.add(format!("home{slice}"), Box::new(home))));
    }
    let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(2), write_to_read_ns: ns(6) };
    let media = Media::new(&dram(), &NvmSpec::through(&dram(), ns(480)), &bus, clock, timebase);
    let mut dram_image = Image::new(memory_bytes as usize);
    // Where the mapping has each line of the image.
    for (nth, line) in image.chunks(64).enumerate() {
        dram_image.write(map.in_channel(DRAM_BASE + 0x1000 + 64 * nth as u64) as usize, line);
    }
    let mut controller = MemoryController::new(
        controller_spec(),
        clock,
        10,
        roster.ports(Endpoint::Controller(0)),
        media,
        [dram_image, Image::new(4096)],
    );
    controller.set_persistence(&persist(Domain::Adr), false);
    ids.push((Endpoint::Controller(0), t.add("mc0", Box::new(controller))));
    ids.push((Endpoint::Os, t.add("os", Box::new(Exits { roster, harts: cores.harts }))));
    for &(from, from_id) in &ids {
        for &(to, to_id) in &ids {
            let latency = match (from, to) {
                _ if from == to => continue,
                (Endpoint::Home(_), Endpoint::Home(_)) | (Endpoint::Core(_), Endpoint::Core(_)) => continue,
                (Endpoint::Controller(_), Endpoint::Core(_) | Endpoint::Os) => continue,
                (Endpoint::Core(_) | Endpoint::Os, Endpoint::Controller(_)) => continue,
                // Some links are longer than others: so are ways on a chip.
                _ => 14 + draw.below(8),
            };
            t.connect(from_id, roster.ports(from).to(to), to_id, Link { latency, phase: 0 });
        }
    }
    ids.iter().filter(|(role, _)| matches!(role, Endpoint::Core(_))).for_each(|&(_, id)| t.wake_at(id, 0));
    let mut simulation = Simulation::new(t).expect("a valid topology");
    let end = simulation.run(&RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    read(&simulation, &ids, map, program, &places, &located)
}

/// The outcome of every round, from where the newest bytes are.
fn read(
    simulation: &Simulation<Msg>,
    ids: &[(Endpoint, ComponentId)],
    map: Interleave,
    program: &Program,
    places: &Places,
    located: &[Vec<u64>],
) -> (Vec<Outcome>, u64) {
    let component = |id: ComponentId| -> &dyn Any { simulation.component(id) };
    let mut memory = vec![0; places.end() as usize];
    let controllers = ids.iter().filter_map(|&(_, id)| component(id).downcast_ref::<MemoryController>());
    for controller in controllers {
        for line in (DATA as usize..memory.len()).step_by(64) {
            let at = map.in_channel(DRAM_BASE + line as u64) as usize;
            controller.image(Medium::Dram).read(at, &mut memory[line..line + 64]);
        }
    }
    let mut put = |line: u64, bytes: &[u8]| memory[(line - DRAM_BASE) as usize..][..64].copy_from_slice(&bytes[..64]);
    for home in ids.iter().filter_map(|&(_, id)| component(id).downcast_ref::<HomeSlice>()) {
        for (line, bytes, _) in home.dirty_lines() {
            put(line, bytes);
        }
    }
    let cores: Vec<&Core> = ids.iter().filter_map(|&(_, id)| component(id).downcast_ref()).collect();
    for core in &cores {
        core.dirty_lines().for_each(|(line, bytes, _)| put(line, bytes));
    }
    let half = |at: u64| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&memory[at as usize..][..4]);
        u32::from_le_bytes(bytes)
    };
    let mut outcomes = Vec::new();
    for (round, addresses) in (0..).zip(located) {
        let mut outcome = Outcome::new();
        for (number, register) in program.registers.iter().enumerate() {
            let of_hart = |&(_, other): &(usize, &super::notation::Register)| other.hart == register.hart;
            let nth = program.registers.iter().enumerate().filter(of_hart).position(|(at, _)| at == number).unwrap();
            let at = places.result(register.hart as u64, round) + 8 * nth as u64;
            outcome.extend((0..register.halves as u64).map(|of| half(at + 4 * of)));
        }
        outcome.extend(addresses.iter().flat_map(|&at| [half(at), half(at + 4)]));
        outcomes.push(outcome);
    }
    (outcomes, cores.iter().map(|core| core.counters().order_squashes).sum())
}
