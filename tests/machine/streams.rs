//! Launches of several streams: when they begin and end, which SMs they share, what they see of each other's
//! stores, and that it is the same at any number of threads.

use crate::bench_machine::{Bench, Ran, machine, one_gigahertz};
use durawarp::assemble::checkpoint::{load, save};
use durawarp::engine::{Fallback, Placement, Rebalance, RunEnd, RunOptions, Time};
use durawarp::kernel::host::HostAction;
use durawarp::kernel::memory::Medium;
use durawarp::machine::command_processor::LaunchRecord;
use durawarp::outcome::Outcome;
use durawarp::run::Experiment;

/// Counts to `n` and stores it for each thread.
const SPIN: &str = "mov.u32 %r1, 0;
AGAIN:
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, %n;
@%p1 bra AGAIN;
mul.wide.u32 %d1, %id, 4;
add.s64 %d1, %d1, %out;
st.global.u32 [%d1], %r1;";

/// Adds 1 to what lies at `a` and stores it at `out`.
const NEXT: &str = "ld.global.u32 %r1, [%a];
add.u32 %r1, %r1, 1;
st.global.u32 [%out], %r1;";

/// Loads `a` through the L1, `n` times, and stores it at `out`.
const REREAD: &str = "mov.u32 %r1, 0;
AGAIN:
ld.global.ca.u32 %r2, [%a];
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, %n;
@%p1 bra AGAIN;
st.global.u32 [%out], %r2;";

/// Counts to `n`, then stores 7 at `out`.
const LATE: &str = "mov.u32 %r1, 0;
AGAIN:
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, %n;
@%p1 bra AGAIN;
mov.u32 %r2, 7;
st.global.u32 [%out], %r2;";

/// A bench with a launch of `SPIN` for each: CTAs, threads of a CTA, how far it counts, stream.
fn spins(overrides: &str, launches: &[(u32, u32, u32, u64)]) -> (Bench, u64) {
    let mut bench = Bench::new(one_gigahertz(overrides));
    let out = bench.buffer(65536 * launches.len() as u64, Medium::Dram);
    for (number, &(ctas, threads, n, stream)) in (0..).zip(launches) {
        bench.launch(SPIN, ctas, threads, (out + 65536 * number, 0, 0, n)).in_stream(stream, &[]);
    }
    (bench, out)
}

fn records(ran: &Ran) -> &[LaunchRecord] {
    ran.assembly.command_processor().launches()
}

/// When each launch began and ended, in cycles.
pub(crate) fn intervals(ran: &Ran) -> Vec<(Time, Time)> {
    let tick = ran.spec.timebase().unwrap().tick_khz() / ran.spec.clock.core_mhz.khz;
    records(ran).iter().map(|launch| (launch.start / tick, launch.end / tick)).collect()
}

fn end(ran: &Ran) -> Time {
    intervals(ran).iter().map(|(_, end)| *end).max().unwrap()
}

pub(crate) fn overlapped(bench: &Bench) -> Ran {
    bench.run_overlapped(&RunOptions::default())
}

#[test]
fn two_kernels_of_a_cta_each_end_in_the_longer_time_on_two_streams_and_in_the_sum_on_one() {
    let alone = [(1, 32, 3000, 1), (1, 32, 5000, 2)].map(|launch| end(&spins("", &[launch]).0.run()));
    let [short, long] = alone;
    let (on_two, out) = spins("", &[(1, 32, 3000, 1), (1, 32, 5000, 2)]);
    let ran = overlapped(&on_two);
    // The second CTA leaves a cycle after the first.
    assert_eq!(intervals(&ran), [(0, short), (0, long + 1)]);
    assert_eq!(ran.assembly.command_processor().most_at_once(), 2);
    assert_eq!([ran.u32s(out, 1), ran.u32s(out + 65536, 1)], [[3000], [5000]]);
    let on_one = overlapped(&spins("", &[(1, 32, 3000, 1), (1, 32, 5000, 1)]).0);
    assert_eq!(intervals(&on_one), [(0, short), (short, short + long)]);
    assert_eq!(on_one.assembly.command_processor().most_at_once(), 1);
    // A machine that takes one launch at a time has them one after another in any case.
    let mut one = on_two;
    one.spec.dispatch.concurrent_launches = 1;
    assert_eq!(intervals(&overlapped(&one)), intervals(&on_one));
}

#[test]
fn a_program_with_one_stream_runs_as_ever() {
    let launches = [(3, 64, 300, 5), (40, 128, 50, 5), (1, 32, 700, 5)];
    let (bench, _) = spins("sm.count=2", &launches);
    let (plain, asked) = (bench.run(), overlapped(&bench));
    assert_eq!(records(&plain), records(&asked));
    assert_eq!(plain.assembly.simulation.digest(), asked.assembly.simulation.digest());
}

#[test]
fn ctas_of_two_kernels_share_an_sm_where_both_fit_and_take_turns_where_they_do_not() {
    let one_sm = |shared: u32| {
        let (mut bench, out) = spins("sm.count=1", &[(1, 32, 3000, 1)]);
        bench.with_shared(shared);
        bench.launch(SPIN, 1, 32, (out + 4096, 0, 0, 3000)).in_stream(2, &[]).with_shared(shared);
        let ran = overlapped(&bench);
        assert_eq!([ran.u32s(out, 1), ran.u32s(out + 4096, 1)], [[3000]; 2]);
        ran
    };
    let alone = end(&spins("sm.count=1", &[(1, 32, 3000, 1)]).0.run());
    let [beside, behind] = [1024, 60 * 1024].map(one_sm);
    let slots = |ran: &Ran| ran.sm("slots_resident") as f64 / ran.sm("active_cycles") as f64;
    // Two warps of a kernel that waits for its own results most of the time hardly disturb each other.
    assert!(end(&beside) < alone + alone / 10, "{} and {alone}", end(&beside));
    assert!(slots(&beside) > 1.9, "{}", slots(&beside));
    // 96 KiB hold one CTA of 60 KiB. The second kernel was launched at once, so that its latency is not paid.
    let launch = behind.spec.dispatch.launch_ns.ps / 1000;
    let expected = 2 * alone - launch;
    assert!(end(&behind).abs_diff(expected) < alone / 50, "{} and {expected}", end(&behind));
    assert!(slots(&behind) < 1.01, "{}", slots(&behind));
}

#[test]
fn ctas_of_the_earlier_launch_go_first_and_those_of_the_next_fill_what_is_left() {
    // An SM holds 2 CTAs of 1024 threads: three SMs take 5 CTAs of the first launch, then 1 of the second.
    let (bench, _) = spins("sm.count=3", &[(5, 1024, 200, 1), (4, 1024, 200, 2)]);
    let ran = overlapped(&bench);
    let held = ran.assembly.sms().map(|sm| sm.counters_by_kernel().len()).collect::<Vec<_>>();
    assert_eq!(held, [1; 3], "one kernel, launched twice");
    assert_eq!(ran.sm("ctas"), 9);
    let [(0, first), (0, second)] = intervals(&ran)[..] else { panic!("two launches at once") };
    let alone = [(5, 1024, 200, 1), (4, 1024, 200, 2)].map(|launch| end(&spins("sm.count=3", &[launch]).0.run()));
    assert!(first < alone[0] + alone[0] / 10, "the first launch has its SMs: {first} and {}", alone[0]);
    assert!(second > first && second < alone[0] + alone[1] + 100, "{second}");
}

#[test]
fn a_launch_sees_what_its_stream_and_its_events_have_stored() {
    let mut bench = Bench::new(one_gigahertz("sm.count=2"));
    let words = bench.buffer(4096, Medium::Dram);
    let at = |word: u64| words + 256 * word;
    // Stream 1: word 0 = 7, late; word 1 = word 0 + 1. Stream 2 after that: word 2 = word 1 + 1.
    bench.launch(LATE, 1, 1, (at(0), 0, 0, 2000)).in_stream(1, &[]);
    bench.launch(NEXT, 1, 1, (at(1), at(0), 0, 0)).in_stream(1, &[]);
    bench.launch(NEXT, 1, 1, (at(2), at(1), 0, 0)).in_stream(2, &[1]);
    // Another stream, which waits for nothing, sees nothing of it.
    bench.launch(NEXT, 1, 1, (at(3), at(0), 0, 0)).in_stream(3, &[]);
    let ran = overlapped(&bench);
    assert_eq!([0, 1, 2, 3].map(|word| ran.u32s(at(word), 1)[0]), [7, 8, 9, 1]);
    let of = intervals(&ran);
    assert_eq!((of[1].0, of[2].0, of[3].0), (of[0].1, of[1].1, 0));
}

#[test]
fn a_line_that_another_kernel_keeps_in_the_l1_does_not_hide_a_store_that_was_waited_for() {
    let mut bench = Bench::new(one_gigahertz("sm.count=2"));
    let words = bench.buffer(4096, Medium::Dram);
    // SM 0 reads the line all the time; SM 1 stores to it; the launch after that reads it on SM 0.
    bench.launch(REREAD, 1, 1, (words + 1024, words, 0, 4000)).in_stream(1, &[]);
    bench.launch(LATE, 1, 1, (words, 0, 0, 500)).in_stream(2, &[]);
    bench.launch(REREAD, 1, 1, (words + 2048, words, 0, 1)).in_stream(2, &[]);
    let ran = overlapped(&bench);
    let of = intervals(&ran);
    assert!(of[2].1 < of[0].1, "the reader outlasts both: {of:?}");
    assert!(ran.sm("l1_hits") > 1000);
    assert_eq!(ran.u32s(words + 2048, 1), [7]);
}

#[test]
fn a_step_of_the_host_waits_for_all_launches_before_it() {
    let (bench, out) = spins("", &[(1, 32, 900, 1), (1, 32, 2000, 2), (1, 32, 100, 1)]);
    let mut actions: Vec<HostAction> = bench.launches().into_iter().map(HostAction::Launch).collect();
    actions.insert(2, HostAction::Write { address: out, data: vec![9; 4] });
    let mut assembly = bench.assemble(actions, 0, &bench.overlapping());
    let end = durawarp::machine::run(&mut assembly.simulation, &RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let [first, second, third] = assembly.command_processor().launches() else { panic!("three launches") };
    assert!(first.end < second.end && second.end < third.start, "the write comes between");
    let mut memory = bench.image();
    assembly.collect(&mut memory);
    assert_eq!(memory.read_u32s(out, 1).unwrap(), [0x0909_0909]);
}

#[test]
fn a_kernel_with_a_barrier_of_all_its_ctas_runs_alone() {
    let (mut bench, out) = spins("sm.count=2", &[(1, 32, 900, 1)]);
    bench.launch("pm.barrier.kr;", 4, 32, (out, 0, 0, 0)).in_stream(2, &[]);
    bench.launch(SPIN, 1, 32, (out + 4096, 0, 0, 100)).in_stream(3, &[]);
    let of = intervals(&overlapped(&bench));
    assert_eq!((of[1].0, of[2].0), (of[0].1, of[1].1));
}

#[test]
fn an_sm_splits_l1_and_shared_memory_anew_only_when_it_is_empty() {
    let run = |sms: u32| {
        let mut bench = Bench::new(machine("volta-v100", &format!("sm.count={sms}")));
        let out = bench.buffer(65536, Medium::Dram);
        // The first takes no shared memory, so that its split leaves none; the second takes 64 KiB.
        bench.launch(SPIN, 1, 32, (out, 0, 0, 3000)).in_stream(1, &[]);
        bench.launch(SPIN, 1, 32, (out + 4096, 0, 0, 1000)).in_stream(2, &[]).with_shared(64 * 1024);
        let ran = overlapped(&bench);
        assert_eq!([ran.u32s(out, 1), ran.u32s(out + 4096, 1)], [[3000], [1000]]);
        let ends: Vec<Time> = records(&ran).iter().map(|launch| launch.end).collect();
        (ends[0], ends[1])
    };
    let (first, second) = run(1);
    assert!(second > first, "one SM: the second waits until it is empty");
    let (first, second) = run(2);
    assert!(second < first, "two SMs: the second has one of its own");
}

/// Kernels of several sizes on three streams, with an event, where one has to wait for room.
fn mixed() -> Bench {
    let (mut bench, out) = spins("sm.count=4", &[(9, 256, 120, 1), (20, 512, 60, 2), (3, 96, 400, 3)]);
    let words = bench.buffer(4096, Medium::Dram);
    bench.launch(REREAD, 6, 64, (words, out, 0, 50)).in_stream(2, &[0]);
    bench.launch(LATE, 1, 1, (words + 64, 0, 0, 300)).in_stream(3, &[]);
    bench.launch(NEXT, 1, 1, (words + 128, words + 64, 0, 0)).in_stream(1, &[4]);
    bench
}

#[test]
fn any_number_of_threads_and_any_partitioning_have_the_same_events() {
    let bench = mixed();
    assert_eq!(overlapped(&bench).assembly.command_processor().most_at_once(), 3);
    assert_same_events("streams", &bench);
}

/// Nothing is lost, and every number of threads and partitioning has the same events.
pub(crate) fn assert_same_events(name: &str, bench: &Bench) {
    let first = overlapped(bench);
    crate::accounts::assert_conserved(name, &bench.spec, &first.assembly);
    assert_same_at_any_threads(bench, &first);
}

/// At 2 and 8 threads, in several placements, it runs as it `first` ran.
pub(crate) fn assert_same_at_any_threads(bench: &Bench, first: &Ran) {
    let threads = |threads: usize, placement: Placement, rebalance: Rebalance| RunOptions {
        threads,
        oversubscribe: true,
        fallback: Fallback::Never,
        rebalance,
        placement,
        ..RunOptions::default()
    };
    for options in [
        threads(2, Placement::Auto, Rebalance::Never),
        threads(2, Placement::Shuffled(99), Rebalance::Forced { rounds: 7 }),
        threads(8, Placement::RoundRobin, Rebalance::Never),
        threads(8, Placement::Shuffled(5), Rebalance::Never),
    ] {
        let other = bench.run_overlapped(&options);
        let of = |ran: &Ran| (ran.assembly.simulation.digest(), ran.assembly.simulation.stats().events());
        assert_eq!(of(&other), of(first), "{options:?}");
        assert_eq!(records(&other), records(first), "{options:?}");
        assert!(other.memory == first.memory, "{options:?}: memory");
    }
}

#[test]
fn what_kernels_counted_adds_up_to_what_sms_counted() {
    let mut bench = mixed();
    bench.spec.sm.count = 2;
    let ran = overlapped(&bench);
    for sm in ran.assembly.sms() {
        let by_kernel: u64 = sm.counters_by_kernel().iter().map(|(_, counted)| counted.warp_instructions).sum();
        assert_eq!(by_kernel, sm.counters().warp_instructions);
    }
}

#[test]
fn a_machine_that_is_saved_while_launches_overlap_goes_on_as_if_it_had_not_been() {
    assert_goes_on(&mixed(), [90, 300, 700, 1500]);
}

/// A machine that is saved at any of these cycles, and loaded, goes on as if it had not been.
pub(crate) fn assert_goes_on(bench: &Bench, cycles: impl IntoIterator<Item = Time>) {
    let assemble = || {
        let actions = bench.launches().into_iter().map(HostAction::Launch).collect();
        bench.assemble(actions, 0, &bench.overlapping())
    };
    let run = |assembly: &mut durawarp::assemble::Assembly, options: &RunOptions<'_>| {
        durawarp::machine::run(&mut assembly.simulation, options)
    };
    let mut whole = assemble();
    assert!(matches!(run(&mut whole, &RunOptions::default()), RunEnd::Finished { .. }));
    let tick = bench.spec.timebase().unwrap().tick_khz() / bench.spec.clock.core_mhz.khz;
    for cycle in cycles {
        let mut before = assemble();
        let paused = run(&mut before, &RunOptions { pause_at: Some(cycle * tick), ..RunOptions::default() });
        assert!(matches!(paused, RunEnd::Paused { .. }), "{paused:?}");
        let saved = save(&before).unwrap_or_else(|fault| panic!("{fault}"));
        let mut after = assemble();
        load(&mut after, &bench.overlapping().scheme, &saved).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(matches!(run(&mut after, &RunOptions::default()), RunEnd::Finished { .. }));
        assert_eq!(after.simulation.digest(), whole.simulation.digest(), "saved at {cycle}");
        assert_eq!(after.command_processor().launches(), whole.command_processor().launches(), "saved at {cycle}");
    }
}

/// A trace of two kernels of `tests/traces/small` in these streams, with a copy before each.
fn trace(streams: [u32; 2]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let kernel = std::fs::read_to_string("tests/traces/small/kernel-3.traceg").unwrap();
    let mut list = String::new();
    for (number, stream) in (1..).zip(streams) {
        let text = kernel.replace("-cuda stream id = 0", &format!("-cuda stream id = {stream}"));
        let text = text.replace("-kernel id = 3", &format!("-kernel id = {number}"));
        std::fs::write(folder.path().join(format!("kernel-{number}.traceg")), text).unwrap();
        list += &format!("MemcpyHtoD,0x00007f2b0000{number}000,4096\nkernel-{number}.traceg\n");
    }
    std::fs::write(folder.path().join("kernelslist.g"), list).unwrap();
    let recipe = Experiment::of(folder.path().join("kernelslist.g").display().to_string());
    recipe.machine("titan-x").run().unwrap()
}

#[test]
fn kernels_of_a_trace_overlap_by_their_streams_and_copies_take_no_time() {
    let of = |outcome: &Outcome| -> Vec<(u64, u64)> {
        outcome.launches.iter().map(|one| (one.start.ticks, one.start.ticks + one.length.ticks)).collect()
    };
    let (apart, one) = (trace([7, 9]), trace([7, 7]));
    let ([(0, first), (0, second)], [(0, end), (next, last)]) = (&of(&apart)[..], &of(&one)[..]) else {
        panic!("{:?} {:?}", of(&apart), of(&one))
    };
    assert!(first.abs_diff(*end) < end / 10 && second.abs_diff(*end) < end / 10, "{first} {second} {end}");
    assert_eq!((next, apart.streams.as_ref().map(|streams| streams.most_at_once)), (end, Some(2)));
    assert!(*last > end + end / 2 && one.streams.is_none());
    // What the host copied lies in the L2, in both.
    assert_eq!([&apart, &one].map(|outcome| outcome.total("l2", "warmed_lines")), [64, 64]);
}
