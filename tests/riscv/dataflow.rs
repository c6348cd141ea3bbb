//! No program finishes before its dataflow: the cycles of a run are at least the longest path through registers
//! and memory of the instructions that were executed, each with its latency.
//!
//! The path is taken from the functional driver, which knows no time. What the machine may do without is left
//! out of it: control, structure, and order of memory. So the bound holds for every width and every size of the
//! window, and is the tighter the larger these are.

use std::collections::BTreeMap;

use durawarp::Experiment;
use durawarp::machine::core::CoreSpec;
use durawarp::riscv::functional::{self, End, Observer, Options};
use durawarp::riscv::instruction::{Class, Inst, Op};
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};

use crate::encoding::{b_type, i_type, opcode, r_type, s_type, u_type};
use crate::generator;
use crate::workloads::{ALONE, THREADED};

/// The longest path so far, in cycles.
struct Dataflow<'a> {
    core: &'a CoreSpec,
    hit_cycles: u64,
    /// When the value of each register is there.
    registers: [u64; 128],
    /// The same of each byte in memory, by words of 8.
    memory: BTreeMap<u64, [u64; 8]>,
    longest: u64,
}

impl Dataflow<'_> {
    fn bytes(address: u64, width: u8) -> impl Iterator<Item = (u64, usize)> {
        (address..address + u64::from(width)).map(|byte| (byte / 8, byte as usize % 8))
    }

    fn stored(&self, address: u64, width: u8) -> u64 {
        let at = |(word, byte)| self.memory.get(&word).map_or(0, |bytes| bytes[byte]);
        Self::bytes(address, width).map(at).max().unwrap_or(0)
    }

    fn store(&mut self, address: u64, width: u8, ready: u64) {
        for (word, byte) in Self::bytes(address, width) {
            self.memory.entry(word).or_default()[byte] = ready;
        }
    }
}

impl Observer for Dataflow<'_> {
    fn executes(&mut self, _: u32, _: u64, inst: &Inst, base: u64) {
        let [a, b, c] = inst.sources().map(|register| self.registers[usize::from(register)]);
        let all = a.max(b).max(c);
        let (width, cycles) = (inst.width(), |cycles: u32| u64::from(cycles));
        let done = match inst.class() {
            Class::Alu | Class::Branch | Class::Jump | Class::CacheLine | Class::Csr => all + 1,
            Class::Mul => all + cycles(self.core.mul_cycles),
            Class::Div | Class::FpDiv => all + cycles(self.core.div_cycles),
            Class::Fp | Class::FpMove | Class::FpConvert => all + cycles(self.core.fp_cycles),
            Class::Load => {
                // A store that is performed is in the L1, where a load finds it in the time of a hit.
                let stored = self.stored(base.wrapping_add(inst.imm as u64), width);
                let forward = cycles(self.core.forward_cycles).min(self.hit_cycles);
                (a + self.hit_cycles).max(if stored > 0 { stored + forward } else { 0 })
            }
            Class::Store => {
                self.store(base.wrapping_add(inst.imm as u64), width, b);
                all + 1
            }
            Class::Amo | Class::LoadReserved | Class::StoreConditional => {
                let from = all.max(self.stored(base, width));
                if inst.class() != Class::LoadReserved {
                    self.store(base, width, from);
                }
                from + cycles(self.core.amo_cycles)
            }
            _ => 0,
        };
        if let Some(destination) = inst.destination() {
            self.registers[usize::from(destination)] = done;
        }
        self.longest = self.longest.max(done);
    }
}

/// Cycles of a run, and the longest path of its program, which has one thread.
fn cycles_and_path(experiment: &CpuExperiment) -> (u64, u64) {
    let process = experiment.program.process().unwrap();
    let core = &experiment.machine.spec.core;
    let hit_cycles = experiment.machine.spec.l1d.hit_cycles.into();
    let mut path = Dataflow { core, hit_cycles, registers: [0; 128], memory: BTreeMap::new(), longest: 0 };
    let options = Options { harts: 1, files: experiment.program.files.clone(), ..Options::default() };
    let reference = functional::run_observed(&process, process.memory(), &options, &mut path);
    let timed = run_cpu(experiment, &Conduct::default()).outcome;
    let End::Exited(code) = reference.end else { panic!("{:?}", reference.end) };
    assert_eq!(timed.process.as_ref().unwrap().exit_code, Some(code), "{:?}", timed.end);
    (timed.time.core_cycles, path.longest)
}

/// The machine with every width and queue at its limit, and these latencies.
const WIDEST: [(&str, u64); 12] = [
    ("core.count", 1),
    ("core.width", 16),
    ("core.rob_entries", 1024),
    ("core.iq_entries", 1024),
    ("core.lq_entries", 1024),
    ("core.sq_entries", 1024),
    ("core.mshr_entries", 256),
    ("core.predictor_entries", 1 << 20),
    ("core.redirect_cycles", 1),
    ("llc.request_cycles", 14),
    ("llc.service_cycles", 1),
    ("llc.reply_cycles", 1),
];

/// amo, mul, div, fp, hit, forward, batch.
type Latencies = [u64; 7];

fn set(latencies: Latencies) -> impl Iterator<Item = (&'static str, u64)> {
    let [amo, mul, div, fp, hit, forward, batch] = latencies;
    let latencies = [
        ("core.amo_cycles", amo),
        ("core.mul_cycles", mul),
        ("core.div_cycles", div),
        ("core.fp_cycles", fp),
        ("l1d.hit_cycles", hit),
        ("core.forward_cycles", forward),
        ("core.batch_cycles", batch),
    ];
    WIDEST.into_iter().chain(latencies)
}

fn experiment(of: &str, sets: impl Iterator<Item = (&'static str, u64)>) -> CpuExperiment {
    let recipe = Experiment::of(of).machine("lightwsp-cpu").reference(false);
    let recipe = if of.ends_with(".elf") { recipe } else { recipe.profile("ci") };
    let recipe = sets.fold(recipe, |recipe, (key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("{of} is a program of CPUs"),
    }
}

const LATENCIES: [Latencies; 4] =
    [[18, 3, 20, 4, 4, 4, 14], [1, 1, 1, 1, 1, 1, 1], [40, 7, 90, 11, 2, 9, 8], [3, 2, 5, 30, 60, 5, 14]];

/// A program of the words, as a file that a recipe names.
fn file(name: &str, words: &[u32]) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.elf"));
    std::fs::write(&path, generator::executable_of(words)).unwrap();
    path.display().to_string()
}

/// A chain: every step follows from the one before, through registers, through memory, or through the address
/// of an access.
fn chain(seed: u64, steps: usize) -> Vec<u32> {
    let mut random = generator::random(seed);
    let (value, base, zero, address) = (5, 10, 6, 7);
    let mut words =
        vec![u_type(opcode::LUI, base, (generator::DATA >> 12) as i32), i_type(opcode::IMMEDIATE, 0, value, 0, 7)];
    for _ in 0..steps {
        // Lines that are there and lines that are not; within one, and across two.
        let at = 8 * random.below(64) as i32 + if random.below(6) == 0 { 4 } else { 0 };
        // The value times 0 makes an address depend on it.
        let depends =
            [r_type(opcode::REGISTER, 0, 7, zero, value, 0), r_type(opcode::REGISTER, 0, 0, address, base, zero)];
        match random.below(12) {
            0..=2 => words.push(i_type(opcode::IMMEDIATE, 0, value, value, 1)),
            3 => words.push(r_type(opcode::REGISTER, 1, 0, value, value, value)),
            4 => words.push(r_type(opcode::REGISTER, 1, 5, value, value, base)),
            5 => words.extend([
                r_type(opcode::FLOAT, 0x79, 0, 1, value, 0),
                r_type(opcode::FLOAT, 1, 0, 1, 1, 1),
                r_type(opcode::FLOAT, 0x71, 0, value, 1, 0),
            ]),
            6 | 7 => {
                words.extend([s_type(opcode::STORE, 3, base, value, at), i_type(opcode::LOAD, 3, value, base, at)])
            }
            // A load of half the bytes, or of some more.
            8 => words.extend([s_type(opcode::STORE, 3, base, value, at), i_type(opcode::LOAD, 2, value, base, at)]),
            9 => words.extend([s_type(opcode::STORE, 2, base, value, at), i_type(opcode::LOAD, 3, value, base, at)]),
            10 => {
                // Another load has asked for the line, which is a new one.
                words.push(i_type(opcode::IMMEDIATE, 0, base, base, 64));
                words.push(i_type(opcode::LOAD, 3, 8, base, 512));
                words.extend(depends);
                words.push(i_type(opcode::LOAD, 3, value, address, 520));
            }
            _ => {
                let (funct5, at) = (random.below(3), at & !7);
                words.extend(depends);
                words.push(i_type(opcode::IMMEDIATE, 0, address, address, at));
                match funct5 {
                    0 => words.push(r_type(opcode::ATOMIC, 0, 3, value, address, value)),
                    _ => words.extend([
                        r_type(opcode::ATOMIC, 2 << 2, 3, 9, address, 0),
                        r_type(opcode::ATOMIC, 3 << 2, 3, 9, address, value),
                        r_type(opcode::REGISTER, 0, 0, value, value, 9),
                    ]),
                }
            }
        }
        if random.below(8) == 0 {
            // Not taken: a branch that waits is no part of the path.
            words.push(b_type(1, 0, 0, 8));
        }
    }
    // exit_group(0), which waits for all.
    words.extend([i_type(opcode::IMMEDIATE, 0, 17, 0, 94), i_type(opcode::IMMEDIATE, 0, 10, 0, 0), opcode::SYSTEM]);
    words
}

#[test]
fn a_chain_through_registers_and_memory_takes_its_latencies() {
    let mut tight = 0;
    for seed in 0..40 {
        let file = file("chain", &chain(seed, 400));
        for latencies in LATENCIES {
            let (cycles, path) = cycles_and_path(&experiment(&file, set(latencies)));
            assert!(cycles >= path, "seed {seed}, latencies {latencies:?}: {cycles} cycles, a path of {path}");
            tight += u32::from(cycles < 3 * path);
        }
    }
    assert!(tight > 60, "{tight} runs of 160 are near their path: the others wait for lines");
}

#[test]
fn generated_sequences_take_their_longest_path() {
    for batch in 0..6 {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("dataflow_sequences.elf");
        std::fs::write(&path, generator::program(batch * 48..(batch + 1) * 48)).unwrap();
        for latencies in LATENCIES {
            let of = path.display().to_string();
            let (cycles, path) = cycles_and_path(&experiment(&of, set(latencies)));
            assert!(cycles >= path, "sequences {batch}, {latencies:?}: {cycles} cycles, a path of {path}");
        }
    }
}

#[test]
fn the_built_in_programs_take_their_longest_path() {
    for name in THREADED.into_iter().chain(ALONE) {
        let threads = (!ALONE.contains(&name)).then_some(("params.THREADS", 1));
        for latencies in &LATENCIES[..2] {
            let (cycles, path) = cycles_and_path(&experiment(name, set(*latencies).chain(threads)));
            assert!(cycles >= path && path > 0, "{name}, {latencies:?}: {cycles} cycles, a path of {path}");
        }
    }
}

#[test]
fn a_value_that_goes_through_memory_each_turn_takes_its_additions() {
    // 100 turns of 40 additions, a store of the sum, a load of it.
    let mut words = vec![
        u_type(opcode::LUI, 11, (generator::DATA >> 12) as i32),
        i_type(opcode::IMMEDIATE, 0, 10, 0, 0),
        i_type(opcode::IMMEDIATE, 0, 12, 0, 100),
    ];
    words.resize(words.len() + 40, i_type(opcode::IMMEDIATE, 0, 10, 10, 1));
    words.extend([s_type(opcode::STORE, 3, 11, 10, 0), i_type(opcode::LOAD, 3, 10, 11, 0)]);
    words.extend([i_type(opcode::IMMEDIATE, 0, 12, 12, -1), b_type(1, 12, 0, -4 * 43)]);
    words.extend([i_type(opcode::IMMEDIATE, 0, 17, 0, 94), opcode::SYSTEM]);
    let file = file("forward", &words);
    let of = |latencies: Latencies| cycles_and_path(&experiment(&file, set(latencies)));
    let forward = 9;
    let (cycles, path) = of([18, 3, 20, 4, 4, forward, 14]);
    assert!(path >= 100 * 40 + 99 * 4, "{path}");
    assert!((100 * (40 + forward)..100 * (40 + forward) + 1000).contains(&cycles), "{cycles}");
    assert_eq!(Op::Ecall.class(), Class::System);
}
