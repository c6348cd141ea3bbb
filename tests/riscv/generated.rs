//! Generated sequences of instructions leave the registers and the memory that qemu-riscv64 left, on the
//! functional driver and on a core of a machine.
//!
//! `samples/sequences.digests` has a digest of 8 bytes, little-endian, of each sequence's scratch memory, 64
//! registers and `fcsr` at its end, in the order of their numbers. qemu-riscv64 7.2 gave them once: see
//! [`digests_are_taken_from_qemu`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use durawarp::Experiment;
use durawarp::assemble::CpuLoad;
use durawarp::riscv::code::CodeTable;
use durawarp::riscv::elf;
use durawarp::riscv::functional::{self, End, Options};
use durawarp::riscv::instruction::{Class, Op};
use durawarp::run::{AnyExperiment, Conduct, run_cpu};

use crate::common::{WINDOWS, executable};
use crate::generator::{self, CONTEXT, SCRATCH};

const SEQUENCES: u64 = 20_000;
/// Sequences of an executable.
const BATCH: u64 = 500;

fn batches() -> impl Iterator<Item = Range<u64>> {
    (0..SEQUENCES / BATCH).map(|at| at * BATCH..(at + 1) * BATCH)
}

/// What an executable of sequences writes: their contexts.
fn ours(program: &[u8]) -> Vec<u64> {
    let process = executable("sequences", program, &[]);
    let outcome = functional::run(&process, process.memory(), &Options::default());
    assert_eq!(outcome.end, End::Exited(0));
    words(&outcome.stdout)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// FNV-1a of whole words, with a last mix, over what a sequence can change.
fn digest(context: &[u64]) -> u64 {
    let changed = context[..SCRATCH / 8].iter().chain(&context[CONTEXT - 64..]);
    let hash = changed.fold(0xcbf2_9ce4_8422_2325u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
        mixed ^ mixed >> 29
    });
    hash.wrapping_mul(0x100_0000_01b3)
}

#[test]
fn twenty_thousand_sequences_end_as_they_do_in_qemu() {
    let expected = words(include_bytes!("samples/sequences.digests"));
    assert_eq!(expected.len() as u64, SEQUENCES);
    for numbers in batches() {
        let contexts = ours(&generator::program(numbers.clone()));
        for (number, context) in numbers.zip(contexts.chunks(CONTEXT)) {
            assert_eq!(digest(context), expected[number as usize], "sequence {number}: {context:x?}");
        }
    }
}

/// Compares with qemu-riscv64 register by register, then writes the digests that it gives:
/// `cargo test --test riscv -- --ignored digests_are_taken_from_qemu`.
#[test]
fn a_core_of_a_machine_ends_sequences_as_qemu_does() {
    let expected = words(include_bytes!("samples/sequences.digests"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("timed_sequences.elf");
    std::fs::write(&path, generator::program(0..BATCH)).unwrap();
    let recipe = Experiment::of(path.display().to_string()).machine("lightwsp-cpu");
    let AnyExperiment::Cpu(experiment) = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) else {
        panic!("a program of CPUs")
    };
    let timed = run_cpu(&experiment, &Conduct::default());
    assert_eq!(timed.outcome.process.unwrap().exit_code, Some(0));
    let process = experiment.program.process().unwrap();
    let memory =
        CpuLoad { process: &process, files: &[], all_persistent: false, remote_bytes: 0, regions: None }.memory();
    let bytes = timed.memory.slice(memory.main + generator::DATA, 8 * CONTEXT * BATCH as usize).unwrap();
    for (number, context) in words(bytes).chunks(CONTEXT).enumerate() {
        assert_eq!(digest(context), expected[number], "sequence {number}: {context:x?}");
    }
}

#[test]
fn the_sequences_have_every_operation_that_computes() {
    let image = elf::load("sequences", &generator::program(0..BATCH), WINDOWS.memory_bytes).unwrap();
    let code = &image.segments[0];
    let table = CodeTable::new([(code.address, &code.bytes[..])]);
    let (mut pc, mut found) = (code.address, BTreeSet::new());
    while let Some(inst) = table.at(pc) {
        found.insert(inst.op);
        pc += u64::from(inst.length);
    }
    let missing = Op::ALL.iter().filter(|op| !found.contains(op) && !matches!(op.class(), Class::Csr));
    let missing: Vec<&str> = missing.map(|op| op.name()).collect();
    let others = "czero.eqz czero.nez cbo.clean cbo.flush ebreak pm.ofence pm.dfence pm.region pm.tx pm.op pm.nt rdma.post rdma.poll";
    assert_eq!(missing.join(" "), format!("{others} illegal instruction"));
}

#[cfg(unix)]
#[test]
#[ignore = "needs qemu-riscv64; writes samples/sequences.digests"]
fn digests_are_taken_from_qemu() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};

    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sequences.elf");
    let mut digests = Vec::new();
    let mut different = Vec::new();
    for numbers in batches() {
        let program = generator::program(numbers.clone());
        std::fs::write(&path, &program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let run = Command::new("qemu-riscv64").arg(&path).stderr(Stdio::inherit()).output().unwrap();
        assert!(run.status.success(), "sequences {numbers:?}: {}", run.status);
        let (qemu, ours) = (words(&run.stdout), ours(&program));
        for ((number, qemu), ours) in numbers.zip(qemu.chunks(CONTEXT)).zip(ours.chunks(CONTEXT)) {
            digests.extend(digest(qemu).to_le_bytes());
            for (at, (qemu, ours)) in qemu.iter().zip(ours).enumerate().filter(|(_, (qemu, ours))| qemu != ours) {
                different.push(format!("sequence {number}, word {at} of its context: {qemu:x} in qemu, {ours:x} here"));
            }
        }
    }
    assert_eq!(digests.len() as u64, 8 * SEQUENCES);
    assert!(different.is_empty(), "{} words: {:#?}", different.len(), &different[..different.len().min(20)]);
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/riscv/samples/sequences.digests"), digests)
        .unwrap();
}
