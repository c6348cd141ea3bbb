//! Real cores, home slices and a controller run a litmus program many times, at times drawn by a seed.
//!
//! A thread comes to its operations in a round when the cycle counter says so, plus what the seed adds, with
//! copies of some of the locations in its L1. A round has lines of its own.

use std::any::Any;
use std::sync::Arc;

use durawarp::engine::*;
use durawarp::kernel::memory::{DRAM_BASE, Medium, NVM_BASE};
use durawarp::machine::address::Interleave;
use durawarp::machine::coherence::{CpuMsg, HartState};
use durawarp::machine::core::{Consistency, Core, CoreSpec, CoreWiring, L1dSpec};
use durawarp::machine::cpu::CpuMemory;
use durawarp::machine::home::{HomeSlice, HomeWiring, LlcSpec};
use durawarp::machine::image::Image;
use durawarp::machine::media::{BusSpec, Media, NvmSpec};
use durawarp::machine::memory_controller::MemoryController;
use durawarp::machine::msg::Msg;
use durawarp::machine::ports::{Endpoint, Roster};
use durawarp::persist::vocab::Domain;
use durawarp::persist::{Handler, SmHandler};
use durawarp::riscv::code::CodeTable;
use durawarp::riscv::elf::Executable;
use durawarp::riscv::memory::Windows;
use durawarp::riscv::syscalls::{Reply, Then};

use super::tso::{Act, Outcome};
use crate::memory_controller::{dram, ns, persist, spec as controller_spec};

/// Cycles of a round.
const ROUND_CYCLES: u64 = 600;
const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x10_0000;
const RESULTS: u64 = 0x20_0000;
const SCHEDULE: u64 = 0x30_0000;
const MEMORY_BYTES: u64 = 1 << 22;
/// Bytes from a thread's results, or schedule, to the next one's.
const OF_THREAD: u64 = 0x2_0000;

/// What runs it.
#[derive(Debug, Clone)]
pub(crate) struct Cores {
    pub(crate) count: u32,
    pub(crate) harts: u32,
    pub(crate) consistency: Consistency,
    pub(crate) batch_cycles: u32,
}

#[derive(Debug)]
struct Plain;
impl Handler for Plain {}
impl SmHandler for Plain {}

/// Every thread exits.
#[derive(Debug)]
struct Exits {
    roster: Roster,
    harts: u32,
}

impl Component<Msg> for Exits {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Cpu(CpuMsg::Call(call)) = message else { panic!("{message:?}") };
        let hart = call.hart;
        let reply = Box::new(Reply { writes: Vec::new(), then: Then::Exit(0), wakes: Vec::new() });
        let to = self.roster.ports(Endpoint::Os).to(Endpoint::Core((hart / self.harts) as u16));
        cx.send(to, Msg::Cpu(CpuMsg::Return { hart, reply }), 0);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

/// A generator of the tests: a step of a linear congruence, mixed.
#[derive(Debug, Clone)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

fn i(imm: i64, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn addi(rd: u32, rs1: u32, imm: i64) -> u32 {
    i(imm, rs1, 0, rd, 0x13)
}

fn ld(rd: u32, rs1: u32, imm: i64) -> u32 {
    i(imm, rs1, 3, rd, 0x03)
}

fn sd(rs2: u32, rs1: u32, imm: i64) -> u32 {
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | 3 << 12 | (imm & 31) << 7 | 0x23
}

fn branch(funct3: u32, rs1: u32, rs2: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let (high, low) = ((o >> 12 & 1) << 31 | (o >> 5 & 0x3f) << 25, (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7);
    high | rs2 << 20 | rs1 << 15 | funct3 << 12 | low | 0x63
}

const FENCE: u32 = 0x0ff0_000f;
const ECALL: u32 = 0x73;
const RDCYCLE_X7: u32 = 0xc000_2073 | 7 << 7;

/// Bytes from a location to the next one: another line.
const LOCATION_BYTES: i64 = 64;

/// The program of a thread. x10: locations of the round, x11: its results, x13: its schedule, x14: rounds
/// left.
fn code(acts: &[Act], locations: usize) -> Vec<u32> {
    let mut words = vec![ld(5, 13, 0), ld(6, 13, 8)];
    for location in 0..locations {
        // A copy to read, where the schedule says so.
        words.extend([
            i(1 << location, 6, 7, 7, 0x13),
            branch(0, 7, 0, 8),
            ld(8, 10, LOCATION_BYTES * location as i64),
        ]);
    }
    words.extend([RDCYCLE_X7, branch(6, 7, 5, -4)]);
    let mut result = 0;
    for act in acts {
        match *act {
            Act::Store(location, value) => {
                words.extend([addi(9, 0, value as i64), sd(9, 10, LOCATION_BYTES * location as i64)]);
            }
            Act::Load(location) => {
                words.push(ld(16 + result, 10, LOCATION_BYTES * location as i64));
                result += 1;
            }
            Act::Fence => words.push(FENCE),
        }
    }
    words.extend((0..result).map(|result| sd(16 + result, 11, 8 * i64::from(result))));
    words.extend([
        addi(10, 10, LOCATION_BYTES * locations as i64),
        addi(11, 11, 64),
        addi(13, 13, 16),
        addi(14, 14, -1),
    ]);
    words.push(branch(1, 14, 0, -4 * words.len() as i64));
    words.extend([addi(17, 0, 93), ECALL]);
    words
}

/// Runs a program for some rounds: the outcome of each, and what the cores counted of loads executed again.
pub(crate) fn outcomes(
    cores: &Cores,
    threads: &[Vec<Act>],
    locations: usize,
    rounds: u64,
    seed: u64,
) -> (Vec<Outcome>, u64) {
    let mut draw = Draw(seed);
    let timebase = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
    let clock = timebase.clock(1_000_000);
    let map = Interleave::new(2, 1, 64);
    let roster = Roster::of_cores(cores.count as u16, map);
    let window = |address: u64| (address - 0x1000) as usize;
    // Code of each thread, one behind the other, and its schedule.
    let mut image = vec![0; window(MEMORY_BYTES)];
    let mut starts = Vec::new();
    let mut words = Vec::new();
    for (thread, acts) in (0..).zip(threads) {
        starts.push(CODE + 4 * words.len() as u64);
        words.extend(code(acts, locations));
        for round in 0..rounds {
            let at = SCHEDULE + OF_THREAD * thread + 16 * round;
            let cycle = (round + 1) * ROUND_CYCLES + draw.below(60);
            image[window(at)..][..8].copy_from_slice(&cycle.to_le_bytes());
            image[window(at + 8)..][..8].copy_from_slice(&draw.below(1 << locations).to_le_bytes());
        }
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
    let memory = CpuMemory {
        windows: Windows { memory_bytes: MEMORY_BYTES, pm_bytes: 4096 },
        main: DRAM_BASE,
        persistent: NVM_BASE,
    };

    let mut t = Topology::new();
    let core_spec = CoreSpec {
        count: cores.count,
        harts: cores.harts,
        width: 4,
        rob_entries: 64,
        iq_entries: 32,
        lq_entries: 24,
        sq_entries: 16,
        mshr_entries: 8,
        predictor_entries: 256,
        redirect_cycles: 12,
        amo_cycles: 18,
        mul_cycles: 3,
        div_cycles: 20,
        fp_cycles: 4,
        consistency: cores.consistency,
        fence_persists: false,
        batch_cycles: cores.batch_cycles,
    };
    let l1d = L1dSpec { kb: 4, ways: 4, hit_cycles: 4 };
    let mut ids = Vec::new();
    for index in 0..cores.count as u16 {
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
        let mut core = Core::new(core_spec.clone(), l1d.clone(), wiring, Box::new(Plain), false);
        for hart in u32::from(index) * cores.harts..(u32::from(index) + 1) * cores.harts {
            let Some(&pc) = starts.get(hart as usize) else { continue };
            let mut registers = [0; 64];
            registers[10] = DATA;
            registers[11] = RESULTS + OF_THREAD * u64::from(hart);
            registers[13] = SCHEDULE + OF_THREAD * u64::from(hart);
            registers[14] = rounds;
            core.begin(hart, HartState { registers, pc, fcsr: 0 });
        }
        ids.push((Endpoint::Core(index), t.add(format!("core{index}"), Box::new(core))));
    }
    let llc = LlcSpec {
        slices: 2,
        slice_kb: 512,
        ways: 16,
        mshr_entries: 16,
        request_cycles: 14,
        service_cycles: 12,
        reply_cycles: 14,
        interleave_bytes: 64,
    };
    for slice in 0..2 {
        let role = Endpoint::Slice(slice);
        let wiring = HomeWiring { clock, ports: roster.ports(role), memory_credits: (16, 16) };
        let home = HomeSlice::new(llc.clone(), wiring);
        ids.push((role, t.add(format!("home{slice}"), Box::new(home))));
    }
    let base = Timebase::of_khz(&[1_000_000]).expect("1 GHz");
    let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(2), write_to_read_ns: ns(6) };
    let media = Media::new(&dram(), &NvmSpec::through(&dram(), ns(480)), &bus, clock, base);
    let mut dram_image = Image::new(MEMORY_BYTES as usize);
    dram_image.write(0x1000, &image);
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
                (Endpoint::Slice(_), Endpoint::Slice(_)) | (Endpoint::Core(_), Endpoint::Core(_)) => continue,
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
    read(&simulation, &ids, map, threads, locations, rounds)
}

/// The outcome of every round, from where the newest bytes are.
fn read(
    simulation: &Simulation<Msg>,
    ids: &[(Endpoint, ComponentId)],
    map: Interleave,
    threads: &[Vec<Act>],
    locations: usize,
    rounds: u64,
) -> (Vec<Outcome>, u64) {
    let component = |id: ComponentId| -> &dyn Any { simulation.component(id) };
    let mut memory = vec![0; MEMORY_BYTES as usize];
    let controllers = ids.iter().filter_map(|&(_, id)| component(id).downcast_ref::<MemoryController>());
    for controller in controllers {
        for line in (0..MEMORY_BYTES as usize).step_by(64) {
            let at = map.in_channel(DRAM_BASE + line as u64) as usize;
            controller.image(Medium::Dram).read(at, &mut memory[line..line + 64]);
        }
    }
    let mut put = |line: u64, bytes: &[u8]| memory[(line - DRAM_BASE) as usize..][..64].copy_from_slice(&bytes[..64]);
    for home in ids.iter().filter_map(|&(_, id)| component(id).downcast_ref::<HomeSlice>()) {
        home.dirty_lines().for_each(|(line, bytes, _)| put(line, bytes));
    }
    let cores: Vec<&Core> = ids.iter().filter_map(|&(_, id)| component(id).downcast_ref()).collect();
    for core in &cores {
        core.dirty_lines().for_each(|(line, bytes, _)| put(line, bytes));
    }
    let word = |at: u64| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&memory[at as usize..][..8]);
        u64::from_le_bytes(bytes)
    };
    let of_round = |round: u64| {
        let mut outcome = Vec::new();
        for (thread, acts) in (0..).zip(threads) {
            let loads = acts.iter().filter(|act| matches!(act, Act::Load(_))).count() as u64;
            outcome.extend((0..loads).map(|load| word(RESULTS + OF_THREAD * thread + 64 * round + 8 * load)));
        }
        let stride = locations as u64 * LOCATION_BYTES as u64;
        let place = |location: u64| DATA + stride * round + LOCATION_BYTES as u64 * location;
        outcome.extend((0..locations as u64).map(|location| word(place(location))));
        outcome
    };
    ((0..rounds).map(of_round).collect(), cores.iter().map(|core| core.counters().order_squashes).sum())
}
