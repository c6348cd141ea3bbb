//! Steps of sampled runs: a part of a grid, other bytes for all of memory, a pause.

use durawarp::assemble::{Assembly, Persistency};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::host::{HostAction, SampleStep};
use durawarp::kernel::memory::Medium;
use durawarp::machine::ports::Endpoint;

use crate::bench_machine::{Bench, machine, sum};

/// Elements of a buffer: four CTAs of 64 threads.
const ELEMENTS: u32 = 256;

/// `out[id] = a[id] + 1`, past the L1.
const ADD_ONE: &str = "
mul.wide.u32 %d1, %id, 4;
add.u64 %d2, %a, %d1;
add.u64 %d3, %out, %d1;
ld.global.cg.u32 %r1, [%d2];
add.u32 %r1, %r1, 1;
st.global.u32 [%d3], %r1;
";

/// A bench with two launches of that kernel, into one buffer and into another: buffer `a`, the first, the
/// second.
fn bench() -> (Bench, [u64; 3]) {
    let mut bench = Bench::new(machine("agpm-table4", "sm.count=2"));
    let buffers = [Medium::Dram, Medium::Nvm, Medium::Nvm].map(|medium| bench.buffer(u64::from(ELEMENTS) * 4, medium));
    bench.put_u32s(buffers[0], &vec![10; ELEMENTS as usize]);
    for &out in &buffers[1..] {
        bench.launch(ADD_ONE, 4, 64, (out, buffers[0], 0, ELEMENTS));
    }
    (bench, buffers)
}

fn run(bench: &Bench, actions: Vec<HostAction>) -> Assembly {
    let mut machine = bench.assemble(actions, 0, &Persistency::default());
    let end = durawarp::machine::run(&mut machine.simulation, &RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    machine
}

fn read(bench: &Bench, machine: &Assembly, buffer: u64) -> Vec<u32> {
    let mut memory = bench.image();
    machine.collect(&mut memory);
    memory.read_u32s(buffer, ELEMENTS as usize).unwrap()
}

fn fetches(machine: &Assembly) -> u64 {
    sum(machine.slices().map(|slice| *slice.counters()), "fetches")
}

#[test]
fn new_bytes_of_memory_reach_caches_which_keep_their_lines() {
    let (bench, [a, first, second]) = bench();
    let [one, two] = bench.launches().try_into().unwrap();
    let alone = run(&bench, vec![HostAction::Launch(one.clone())]);
    let mut memory = bench.image();
    memory.write_u32s(a, &vec![20; ELEMENTS as usize]).unwrap();
    memory.write_u32s(first, &vec![7; ELEMENTS as usize]).unwrap();
    let replace = HostAction::Sample(SampleStep::Replace(memory));
    let machine = run(&bench, vec![HostAction::Launch(one), replace, HostAction::Launch(two)]);
    assert_eq!(read(&bench, &machine, second), vec![21; ELEMENTS as usize]);
    assert_eq!(read(&bench, &machine, first), vec![7; ELEMENTS as usize], "dirty lines hold the new bytes, too");
    assert!(fetches(&alone) > 0);
    assert_eq!(fetches(&machine), fetches(&alone), "lines of `a` are still in the L2");
}

#[test]
fn a_part_of_a_grid_runs_alone_and_tells_when_its_ctas_ended() {
    let (bench, [_, first, _]) = bench();
    let part = SampleStep::Part(bench.launches().remove(0), vec![1..2, 3..4]);
    let machine = run(&bench, vec![HostAction::Sample(part)]);
    let written: Vec<bool> = read(&bench, &machine, first).chunks(64).map(|cta| cta == [11; 64]).collect();
    assert_eq!(written, [false, true, false, true]);
    let [record] = machine.command_processor().launches() else { panic!("one launch") };
    assert_eq!(record.grid, [4, 1, 1]);
    assert!(matches!(record.cta_ends[..], [one, two] if record.start < one && one <= two && two <= record.end));
}

#[test]
fn a_pause_halts_and_its_time_does_not_count() {
    let (bench, [_, _, second]) = bench();
    let [one, two] = bench.launches().try_into().unwrap();
    let through = run(&bench, vec![HostAction::Launch(one.clone()), HostAction::Launch(two.clone())]);
    let pause = HostAction::Sample(SampleStep::Pause);
    let actions = vec![HostAction::Launch(one), pause, HostAction::Launch(two)];
    let mut machine = bench.assemble(actions, 0, &Persistency::default());
    let end = durawarp::machine::run(&mut machine.simulation, &RunOptions::default());
    assert!(matches!(end, RunEnd::Halted { .. }), "{end:?}");
    assert_eq!(machine.ended(), Some(through.command_processor().launches()[0].end));
    let processor = machine.id(Endpoint::CommandProcessor).unwrap();
    machine.simulation.wake_at(processor, machine.simulation.reached() + 5000);
    let end = durawarp::machine::run(&mut machine.simulation, &RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    assert_eq!(machine.command_processor().launches()[1].start, through.command_processor().launches()[1].start);
    assert_eq!(read(&bench, &machine, second), vec![11; ELEMENTS as usize]);
}
