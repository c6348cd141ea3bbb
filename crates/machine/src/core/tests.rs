//! A core with a home of constant latency and an OS that answers at once: what instructions cost, to the
//! cycle.

mod dataflow;
mod kept;
mod leave;
mod order;
mod reserved;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::*;
use crate::address::Interleave;
use crate::coherence::{CPU_LINE_MASK, Grant, HomeMsg, OsMsg, SystemStep, Want};
use crate::cpu::CpuMemory;
use crate::line::Line;
use crate::ports::{Endpoint, Roster};
use crate::replacement::Replacement;
use durawarp_engine::{Clock, Timebase};
use durawarp_engine::{Link, RunOptions, Simulation, Time, Topology};
use durawarp_kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp_persist::handler::CorePolicy;
use durawarp_riscv::code::CodeTable;
use durawarp_riscv::elf::Executable;
use durawarp_riscv::memory::Windows;
use durawarp_riscv::syscalls::{Call, Reply, Then};

const REQUEST: u64 = 14;
const SERVICE: u64 = 12;
const REPLY: u64 = 14;
/// First instruction of a program.
const CODE: u64 = 0x1_0000;
/// Data of a program, and a line of it.
const DATA: u64 = 0x4_0000;

fn roster() -> Roster {
    Roster::of_cores(1, Interleave::new(1, 1, 256))
}

/// A home of every line, for one core: whatever is asked for comes after a constant time, as the only copy.
#[derive(Debug, Default)]
struct FlatHome {
    lines: BTreeMap<u64, Box<Line>>,
    service: Time,
    gets: Vec<(Time, u64)>,
    /// What it sends by itself, and when.
    sends: VecDeque<(Time, CoreMsg)>,
    /// When changed lines came home.
    came: Vec<(Time, u64)>,
}

impl Component<Msg> for FlatHome {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Home(message) = message else { panic!("{message:?}") };
        let to = roster().ports(Endpoint::Home(0)).to_core(0);
        match message {
            HomeMsg::Get { line, tag, want, mut room, .. } => {
                self.gets.push((cx.now(), line));
                *room = self.lines.get(&line).map(|line| (**line).clone()).unwrap_or_default();
                room.mask = CPU_LINE_MASK;
                let grant = if want == Want::Exclusive { Grant::Modified } else { Grant::Exclusive };
                to.send(LineData { tag, grant, data: room, dependencies: None }, self.service, cx);
            }
            HomeMsg::Put { line, data, .. } => {
                self.came.push((cx.now(), line));
                self.lines.insert(line, data.clone());
                to.send(CoreMsg::PutAck { line, room: data }, self.service, cx);
            }
            HomeMsg::Clean { line, tag, room, dirty, .. } => {
                if dirty {
                    self.lines.insert(line, room.clone());
                }
                to.send(CoreMsg::Cleaned { tag, room }, self.service, cx);
            }
            HomeMsg::ProbeAck { line, dirty: true, room, .. } => {
                self.came.push((cx.now(), line));
                self.lines.insert(line, room);
            }
            // It had the line as it came.
            HomeMsg::ProbeAck { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some((_, message)) = self.sends.pop_front_if(|(at, _)| *at == cx.now()) {
            roster().ports(Endpoint::Home(0)).to_core(0).send(message, 0, cx);
        }
        if let Some(&(next, _)) = self.sends.front() {
            cx.wake_at(next);
        }
    }
}

/// Ticks after which a thread that has left its hart goes on there.
const AWAY: Time = 500;

/// Notes each call and ends the process at the first `exit`. A thread that leaves its hart goes on after
/// [`AWAY`], with 7 in a0 if it has waited.
#[derive(Debug, Default)]
struct CallNotes {
    calls: Vec<(Time, Call)>,
    left: Vec<(Time, HartState)>,
}

impl Component<Msg> for CallNotes {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let to = roster().ports(Endpoint::Os).to_core(0);
        let call = match message {
            Msg::Os(OsMsg::Call { call, .. }) => call,
            Msg::Os(OsMsg::Left { hart, waits, mut state }) => {
                self.left.push((cx.now(), (*state).clone()));
                if waits {
                    state.registers[10] = 7;
                }
                let begin = Begin { hart, state, dependencies: None };
                return to.send(CoreMsg::Begin(begin), AWAY, cx);
            }
            other => panic!("{other:?}"),
        };
        let (hart, number) = (call.hart, call.number);
        self.calls.push((cx.now(), *call));
        let then = match number {
            93 => Then::Exit(0),
            // Nobody wakes it but by [`OsMsg::Left`].
            101 => Then::Wait,
            _ => Then::Return(7),
        };
        let reply = Box::new(Reply { writes: Vec::new(), then, wakes: Vec::new() });
        to.send(CoreMsg::Return { hart, reply, step: SystemStep::default() }, 0, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

/// `addi rd, rs1, imm`.
fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | rd << 7 | 0x13
}

fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | rd << 7 | 0x33
}

fn ld(rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x03
}

fn sd(rs2: u32, rs1: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | 3 << 12 | (imm & 31) << 7 | 0x23
}

/// `bne rs1, rs2, offset`, forward or backward.
fn bne(rs1: u32, rs2: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 12 & 1) << 31
        | (o >> 5 & 0x3f) << 25
        | rs2 << 20
        | rs1 << 15
        | 1 << 12
        | (o >> 1 & 15) << 8
        | (o >> 11 & 1) << 7
        | 0x63
}

/// `amoadd.d rd, rs2, (rs1)`.
fn amoadd(rd: u32, rs2: u32, rs1: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

fn rdcycle(rd: u32) -> u32 {
    0xc000_2073 | rd << 7
}

const ECALL: u32 = 0x73;
const FENCE: u32 = 0x0ff0_000f;
const DFENCE: u32 = 0x0000_100b;

/// `cbo.clean (rs1)`.
fn clean(rs1: u32) -> u32 {
    1 << 20 | rs1 << 15 | 2 << 12 | 0x0f
}

/// `li a7, 93; ecall`.
fn exit() -> [u32; 2] {
    [addi(17, 0, 93), ECALL]
}

pub(super) fn spec() -> CoreSpec {
    CoreSpec {
        count: 1,
        harts: 1,
        width: 4,
        rob_entries: 224,
        iq_entries: 97,
        lq_entries: 72,
        sq_entries: 56,
        mshr_entries: 16,
        predictor_entries: 4096,
        redirect_cycles: 12,
        amo_cycles: 18,
        lr_hold_cycles: 80,
        forward_cycles: 4,
        mul_cycles: 3,
        div_cycles: 20,
        fp_cycles: 4,
        consistency: Consistency::Tso,
        fence_persists: false,
        batch_cycles: 1,
    }
}

/// A run of a program on one core.
struct World {
    simulation: Simulation<Msg>,
    clock: Clock,
}

impl World {
    fn run(spec: CoreSpec, words: &[u32]) -> World {
        World::with_registers(spec, words, &[])
    }

    fn with_registers(spec: CoreSpec, words: &[u32], registers: &[(usize, u64)]) -> World {
        World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec, words, registers, VecDeque::new())
    }

    /// Under a scheme, with memory from `main` on; the home sends something by itself.
    fn under(
        handler: Box<dyn CoreHandler>,
        main: u64,
        spec: CoreSpec,
        words: &[u32],
        registers: &[(usize, u64)],
        sends: VecDeque<(Time, CoreMsg)>,
    ) -> World {
        let timebase = Timebase::of_khz(&[2_000_000]).unwrap();
        let clock = timebase.clock(2_000_000);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Arc::new(CodeTable::new([(CODE, bytes.as_slice())]));
        let image = Executable {
            entry: CODE,
            segments: vec![],
            functions: vec![],
            objects: vec![],
            headers: None,
            header_count: 0,
        };
        let windows = Windows { memory_bytes: 1 << 24, pm_bytes: 1 << 20 };
        let wiring = CoreWiring {
            regions: None,
            index: 0,
            clock,
            timebase,
            ports: roster().ports(Endpoint::Core(0)),
            memory: CpuMemory { windows, main, persistent: NVM_BASE },
            code,
            image: Arc::new(image),
        };
        let l1d = L1dSpec { kb: 64, ways: 8, replacement: Replacement::Lru, replacement_seed: 0, hit_cycles: 4 };
        let harts = spec.harts;
        let mut core = Core::new(spec, l1d, wiring, handler, true);
        for hart in 0..harts {
            let mut state = HartState { registers: [0; 64], pc: CODE, fcsr: 0 };
            registers.iter().for_each(|&(register, value)| state.registers[register] = value);
            // Where a hart has its own data.
            state.registers[4] = hart.into();
            core.begin(hart, state);
        }
        let mut topology = Topology::new();
        let core = topology.add("core0", Box::new(core));
        let first = sends.front().map(|&(at, _)| at);
        let home = FlatHome { service: clock.cycles(SERVICE), sends, ..FlatHome::default() };
        let home = topology.add("home", Box::new(home));
        let os = topology.add("os", Box::new(CallNotes::default()));
        let link = |cycles| Link { latency: clock.cycles(cycles), phase: 0 };
        let ids = [(Endpoint::Core(0), core), (Endpoint::Home(0), home), (Endpoint::Os, os)];
        for (from, from_id) in ids {
            for (to, to_id) in ids.into_iter().filter(|&(to, _)| to != from) {
                let cycles = match (from, to) {
                    (Endpoint::Home(_), _) => REPLY,
                    (_, Endpoint::Home(_)) => REQUEST,
                    _ => 10,
                };
                topology.connect(from_id, roster().ports(from).to(to), to_id, link(cycles));
            }
        }
        topology.wake_at(core, 0);
        first.into_iter().for_each(|at| topology.wake_at(home, at));
        let mut simulation = Simulation::new(topology).unwrap();
        let end = simulation.run(&RunOptions { time_limit: Some(clock.cycles(1_000_000)), ..RunOptions::default() });
        assert!(matches!(end, durawarp_engine::RunEnd::Finished { .. }), "{end:?}");
        World { simulation, clock }
    }

    fn component<T: 'static>(&self, at: u32) -> &T {
        (self.simulation.component(durawarp_engine::ComponentId(at)) as &dyn Any).downcast_ref().unwrap()
    }

    fn core(&self) -> &Core {
        self.component(0)
    }

    fn register(&self, register: u8) -> u64 {
        self.core().harts[0].window.values()[usize::from(register)]
    }

    /// The cycle in which the last call left the core.
    fn exit_cycle(&self) -> u64 {
        let (time, _) = self.component::<CallNotes>(2).calls.last().cloned().unwrap();
        self.clock.cycle_of(time) - 10
    }
}

fn program(parts: &[&[u32]]) -> Vec<u32> {
    parts.concat()
}

/// `fdiv.d f1, f0, f2`: f2 is zero.
const DIVIDE_BY_ZERO: u32 = 0x1a20_70d3;
/// `frflags x7`.
const READ_EXCEPTIONS: u32 = 0x0010_23f3;

#[test]
fn exceptions_are_those_of_the_instructions_before_and_of_no_wrong_path() {
    // ld x6, 0(x10); beq x6, x0, over a division; bne x6, x0, to another one; frflags x7; exit; division; j
    // exit
    let load = 0x0005_3303;
    let words =
        program(&[&[load, 0x0003_0463, DIVIDE_BY_ZERO, 0x0003_1863, READ_EXCEPTIONS], &exit(), &[DIVIDE_BY_ZERO]]);
    let one = 1.0f64.to_bits();
    let registers = [(10, DATA), (32, one)];
    let world = World::with_registers(spec(), &words, &registers);
    assert_eq!(world.register(7), 0);
    assert!(world.core().counters().mispredictions > 0, "one of both is predicted wrong");
    // fcvt.d.l f2, x6 of what is loaded; the division; frflags x7
    let words = program(&[&[load, 0xd223_7153, DIVIDE_BY_ZERO, READ_EXCEPTIONS], &exit()]);
    assert_eq!(World::with_registers(spec(), &words, &registers).register(7), 8);
}

#[test]
fn independent_additions_are_dispatched_four_a_cycle() {
    let body: Vec<u32> = (0..400).map(|i| addi(5 + i % 8, 0, 1)).collect();
    let world = World::run(spec(), &program(&[&body, &exit()]));
    // 401 instructions before the call: 101 cycles, and the last one retires a cycle later.
    assert_eq!(world.core().counters().instructions, 401);
    assert_eq!(world.exit_cycle(), 101);
}

#[test]
fn dependent_loads_that_hit_take_four_cycles_each() {
    let chain = |n: usize| {
        let warm = [ld(5, 10, 0), add(10, 10, 5)];
        let body: Vec<u32> = (0..n).flat_map(|_| [ld(5, 10, 0), add(10, 10, 5)]).collect();
        World::with_registers(spec(), &program(&[&warm, &body, &exit()]), &[(10, DATA)]).exit_cycle()
    };
    // A load of 4 cycles and the addition to its address: 5 a link of the chain.
    assert_eq!(chain(30) - chain(10), 20 * 5);
}

#[test]
fn a_miss_takes_the_l1_and_the_way_to_the_home_and_back() {
    // The time of the addition that needs the line: 4 + 14 + 12 + 14 cycles after the load.
    let world = World::with_registers(spec(), &program(&[&[ld(5, 10, 0), add(6, 5, 5)], &exit()]), &[(10, DATA)]);
    let hit = 4 + REQUEST + SERVICE + REPLY;
    // The addition is executed when the line is there, retires a cycle later, and the call leaves then.
    assert_eq!(world.exit_cycle(), hit + 1);
    assert_eq!(world.core().counters().l1_load_misses, 1);
}

#[test]
fn sixteen_misses_overlap_and_the_seventeenth_waits_for_an_mshr() {
    let misses = |n: i32| {
        let body: Vec<u32> = (0..n).map(|i| ld(5 + i as u32 % 4, 10, 64 * i)).collect();
        World::with_registers(spec(), &program(&[&body, &exit()]), &[(10, DATA)]).exit_cycle()
    };
    let (one, sixteen, seventeen) = (misses(1), misses(16), misses(17));
    // The last four are dispatched three cycles after the first; what follows retires in a cycle of its own.
    assert_eq!(sixteen, one + 3 + 1);
    assert!(seventeen > one + 40, "{one} {seventeen}");
}

#[test]
fn the_window_holds_as_many_as_its_entries_behind_a_miss() {
    let behind = |n: usize| {
        let body: Vec<u32> = std::iter::once(ld(5, 10, 0)).chain((0..n).map(|_| addi(6, 0, 1))).collect();
        let world = World::with_registers(spec(), &program(&[&body, &[rdcycle(7)], &exit()]), &[(10, DATA)]);
        world.register(7)
    };
    // The load and 223 additions fill the buffer of 224; the next one waits until the load retires.
    assert_eq!(behind(222), 223 / 4);
    assert!(behind(223) >= 44, "{}", behind(223));
}

#[test]
fn a_load_behind_a_store_to_its_address_gets_the_stores_bytes() {
    let body = [addi(5, 0, 77), sd(5, 10, 8), ld(6, 10, 8)];
    let world = World::with_registers(spec(), &program(&[&body, &exit()]), &[(10, DATA)]);
    assert_eq!((world.register(6), world.core().counters().forwarded_loads), (77, 1));
}

#[test]
fn a_wrong_prediction_costs_its_resolution_and_the_redirect() {
    // Not taken is what is predicted first: the branch is taken.
    let taken = [bne(0, 1, 8), addi(5, 0, 1), rdcycle(6)];
    let world = World::with_registers(spec(), &program(&[&taken, &exit()]), &[(1, 1)]);
    assert_eq!((world.register(5), world.register(6)), (0, 1 + 12));
    let not = World::with_registers(spec(), &program(&[&[bne(0, 0, 8), addi(5, 0, 1), rdcycle(6)], &exit()]), &[]);
    assert_eq!((not.register(5), not.register(6)), (1, 0));
}

#[test]
fn a_branch_on_a_missing_line_is_predicted_and_squashed_when_wrong() {
    // x5 is 0 in memory: `bne x5, x1` is taken, and predicted not to be.
    let body = [ld(5, 10, 0), bne(5, 1, 12), addi(6, 0, 1), sd(6, 10, 8), rdcycle(7)];
    let world = World::with_registers(spec(), &program(&[&body, &exit()]), &[(1, 1), (10, DATA)]);
    let hit = 4 + REQUEST + SERVICE + REPLY;
    assert_eq!((world.register(6), world.register(7)), (0, hit + 1 + 12));
    assert_eq!(world.core().counters().mispredictions, 1);
    assert_eq!(world.core().counters().stores, 0, "a store of the wrong path is not performed");
}

#[test]
fn an_atomic_takes_its_cycles_once_its_line_is_there() {
    let body = [amoadd(5, 1, 10), addi(6, 5, 0), amoadd(7, 1, 10)];
    let world = World::with_registers(spec(), &program(&[&body, &exit()]), &[(1, 3), (10, DATA)]);
    let hit = 4 + REQUEST + SERVICE + REPLY;
    assert_eq!((world.register(5), world.register(7)), (0, 3));
    // The first is performed when its line comes, the second when the first and the addition have retired.
    assert_eq!(world.exit_cycle(), hit + 18 + 1 + 18);
}

#[test]
fn stores_leave_one_a_cycle_and_the_queue_holds_its_entries() {
    let stores = |n: i32| {
        let warm = [sd(0, 10, 0), FENCE];
        let body: Vec<u32> = (0..n).map(|_| sd(1, 10, 8)).collect();
        let world = World::with_registers(spec(), &program(&[&warm, &body, &[rdcycle(7)], &exit()]), &[(10, DATA)]);
        (world.register(7), world.core().counters().store_slots)
    };
    // One enters at 4 a cycle and leaves at 1 a cycle, from the cycle after the next on.
    assert_eq!(stores(56).1, 0);
    assert!(stores(100).1 > 0);
}

#[test]
fn a_fence_of_durability_waits_for_its_clean() {
    let base = 1u64 << 38;
    let body = [sd(1, 10, 0), clean(10), DFENCE, rdcycle(7)];
    let world = World::with_registers(spec(), &program(&[&body, &exit()]), &[(1, 9), (10, base)]);
    let hit = 4 + REQUEST + SERVICE + REPLY;
    // The store asks for its line as it is dispatched; the clean goes the same way a cycle after the store.
    assert_eq!(world.register(7), (hit - 4) + 1 + (hit - 4));
    let c = world.core().counters();
    assert_eq!((c.cleans, c.durable_fences, c.stores), (1, 1, 1));
}

#[test]
fn two_harts_share_the_width() {
    let body: Vec<u32> = (0..4000).map(|i| addi(5 + i % 8, 0, 1)).collect();
    let spec = CoreSpec { harts: 2, ..spec() };
    let world = World::run(spec, &program(&[&body, &exit()]));
    let counters = world.core().counters();
    assert_eq!(counters.instructions, 2 * 4001);
    assert!((2001..2010).contains(&world.exit_cycle()), "{}", world.exit_cycle());
}

#[test]
fn accounts_add_up_to_all_slots() {
    let body: Vec<u32> = (0..200).flat_map(|i| [ld(5, 10, 64 * (i % 30)), bne(5, 1, 4), sd(5, 10, 8)]).collect();
    for batch_cycles in [1, 8, 14] {
        let spec = CoreSpec { batch_cycles, ..spec() };
        let world = World::with_registers(spec, &program(&[&body, &exit()]), &[(1, 1), (10, DATA)]);
        let c = world.core().counters();
        let sum = c.used_slots
            + c.memory_slots
            + c.execution_slots
            + c.store_slots
            + c.redirect_slots
            + c.atomic_slots
            + c.fence_slots
            + c.persist_slots
            + c.call_slots
            + c.idle_slots;
        assert_eq!(sum, 4 * c.cycles);
        assert_eq!(c.instructions, 601);
    }
}
