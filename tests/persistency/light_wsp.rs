//! `light-wsp` on the machine: regions marked by hand (`pm.region`), whatever the size of its buffers and the number of
//! controllers; when their stores are written; what loads see; how long a warp waits.

use std::collections::BTreeMap;

use crate::bench_machine::{Bench, Ran, machine, one_gigahertz};
use durawarp::assemble::Persistency;
use durawarp::config::{Override, SchemeConfig};
use durawarp::engine::{Fallback, RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::persist::regions::RegionReport;
use durawarp::persist::{Author, Fact, FactKind, RegionStep};

/// `%out` and `%a` in persistent memory.
fn bench(overrides: &str, grid: u32, block: u32, body: &str) -> (Bench, [u64; 2]) {
    let mut bench = Bench::new(machine("agpm-table4", overrides));
    let buffers = [(); 2].map(|()| bench.buffer(1 << 17, Medium::Nvm));
    bench.launch(body, grid, block, (buffers[0], buffers[1], 0, 0));
    (bench, buffers)
}

/// Every thread stores eight times, two a region, near and far, reads elsewhere, and reads the far one back before and after its
/// region's end; then adds to one of four counters.
const REGIONS: &str = "
mul.wide.u32 %d1, %id, 4;
add.u64 %d2, %out, %d1;
mul.wide.u32 %d3, %id, 64;
add.u64 %d4, %a, %d3;
mov.u32 %r1, 0;
mov.u32 %r7, 0;
LOOP:
add.u32 %r2, %r1, %id;
add.u32 %r2, %r2, %r7;
st.global.u32 [%d2], %r2;
st.global.u32 [%d4+4], %r2;
ld.global.cg.u32 %r9, [%d2+4096];
ld.global.cg.u32 %r10, [%d2+8192];
ld.global.cg.u32 %r11, [%d2+16384];
add.u32 %r9, %r9, %r10;
add.u32 %r9, %r9, %r11;
ld.global.cg.u32 %r7, [%d4+4];
add.u32 %r7, %r7, %r9;
pm.region;
ld.global.cg.u32 %r8, [%d4+4];
add.u32 %r7, %r7, %r8;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 4;
@%p1 bra LOOP;
and.b32 %r3, %id, 3;
mul.wide.u32 %d5, %r3, 4;
add.u64 %d6, %out, %d5;
atom.global.add.u32 %r4, [%d6+65536], 1;
pm.region;
";

fn steps(ran: &Ran, step: RegionStep) -> Vec<Fact> {
    let journal = ran.assembly.journal();
    journal.facts().iter().filter(|fact| fact.kind == FactKind::Region(step)).copied().collect()
}

/// The number of the region that a step is of.
fn region(fact: &Fact) -> u32 {
    fact.author.region().unwrap()
}

/// By region, when a step was done last, and how often.
fn last(ran: &Ran, step: RegionStep) -> BTreeMap<u32, (u64, usize)> {
    let mut last = BTreeMap::new();
    for fact in steps(ran, step) {
        let entry: &mut (u64, usize) = last.entry(region(&fact)).or_default();
        *entry = (fact.time.max(entry.0), entry.1 + 1);
    }
    last
}

/// The protocol's order, read off the journal.
fn assert_in_order(ran: &Ran, controllers: usize, commit: &str) {
    let (bounded, done) = (last(ran, RegionStep::Bounded), last(ran, RegionStep::Done));
    for flushed in steps(ran, RegionStep::Flushed) {
        let (time, count) = bounded[&region(&flushed)];
        assert!(count == controllers && time <= flushed.time, "region {} is written too early", region(&flushed));
    }
    let mut next = vec![0; controllers];
    for committed in steps(ran, RegionStep::Committed) {
        let (time, count) = done[&region(&committed)];
        let all = time <= committed.time;
        assert!(
            count == controllers && (all || commit == "pipelined"),
            "region {} is committed too early",
            region(&committed)
        );
        let Author::HeldRegion { controller, region, .. } = committed.author else { panic!("{committed:?}") };
        let next = &mut next[usize::from(controller)];
        assert_eq!(region, *next, "in the order of IDs");
        *next += 1;
    }
    let regions = steps(ran, RegionStep::Ended).len() as u32;
    assert!(next.iter().all(|&committed| committed == regions), "all {regions} regions commit: {next:?}");
}

#[test]
fn buffers_of_any_size_and_any_number_of_controllers_finish_with_every_store_written_in_order() {
    let (mut waited, mut merged, mut fallbacks) = (0, 0, 0);
    for controllers in [1, 2, 4, 8] {
        // An L2 of a few lines, so that loads find stores in the WPQs.
        let l2 = format!("l2.slices={} l2.slice_kb=2 l2.ways=4", controllers.max(2));
        let overrides = format!("sm.count=4 controller.channels={controllers} {l2}");
        let (bench, [out, a]) = bench(&overrides, 8, 64, REGIONS);
        let expected = bench.functional();
        let sizes = [(1, 1), (2, 64), (17, 4), (4096, 64)];
        let acked = [("warp", "merge"), ("cta", "merge"), ("warp", "wait"), ("cta", "wait")].map(|way| (way, "acked"));
        let pipelined = [acked[0], acked[3]].map(|(way, _)| (way, "pipelined"));
        let ways = [&acked[..], &pipelined].concat();
        let all = sizes.into_iter().flat_map(|size| ways.iter().map(move |&way| (size, way)));
        for ((wpq, feb), ((owner, hit), commit)) in all {
            let sets = format!(
                "light_wsp.wpq_entries={wpq} light_wsp.feb_entries={feb} light_wsp.owner={owner} light_wsp.wpq_hit={hit} \
                 light_wsp.commit={commit}"
            );
            let ran = bench.run_set("light-wsp", &sets);
            for (buffer, words) in [(out, 16 * 1024 + 4), (a, 8192)] {
                assert_eq!(ran.u32s(buffer, words), expected.read_u32s(buffer, words).unwrap(), "{overrides} {sets}");
            }
            assert_in_order(&ran, controllers, commit);
            assert!(ran.scheme("wpq_overflows") > 0 || wpq > 1, "{overrides} {sets}");
            assert_eq!(ran.assembly.controllers().map(|mc| mc.held_lines().count()).sum::<usize>(), 0);
            // Nothing but the WPQs has written persistent memory. Line accesses: of each warp 4 x (1 + 16), and an atomic.
            assert_eq!((ran.l2("writebacks"), ran.scheme("feb_stores")), (0, 16 * 4 * (1 + 16) + 16));
            let [hits, waits, merges] = ["wpq_hits", "wpq_hits_waited", "wpq_hits_merged"].map(|name| ran.scheme(name));
            assert!(hits == waits + merges && (waits == 0 || hit == "wait"), "{sets}: {hits} = {waits} + {merges}");
            if hit == "wait" {
                (waited, merged) = (waited + waits, merged + merges);
                fallbacks += ran.scheme("wpq_hit_fallbacks");
            }
        }
    }
    assert!(waited > 0 && merged > 0 && fallbacks > 0, "{waited} waited, {merged} merged, {fallbacks} fallbacks");
}

#[test]
fn an_order_for_each_sm_and_ids_of_few_bits_finish_too() {
    let small = "sm.count=4 l2.slice_kb=2 l2.ways=4";
    let mut waited = 0;
    for (overrides, sets) in [
        (small, "light_wsp.order=sm"),
        (small, "light_wsp.order=sm light_wsp.wpq_entries=1 light_wsp.feb_entries=1"),
        (small, "light_wsp.order=sm light_wsp.id_bits=4"),
        (small, "light_wsp.id_bits=4"),
        (small, "light_wsp.id_bits=4 light_wsp.wpq_entries=3"),
        (small, "light_wsp.owner=cta light_wsp.id_bits=4 light_wsp.wpq_entries=3"),
        (small, "light_wsp.owner=cta light_wsp.order=sm light_wsp.wpq_entries=1 light_wsp.feb_entries=1"),
        (small, "light_wsp.controller_step_ns=900 light_wsp.wpq_entries=2"),
        (small, "light_wsp.id_draw=paper"),
        (small, "light_wsp.id_draw=paper light_wsp.wpq_entries=1"),
        (small, "light_wsp.entry_bytes=8 light_wsp.wpq_entries=64 light_wsp.path_mb_s=4000"),
    ] {
        let (bench, [out, _]) = bench(overrides, 8, 64, REGIONS);
        let expected = bench.functional().read_u32s(out, 16 * 1024 + 4).unwrap();
        for hit in ["merge", "wait"] {
            let ran = bench.run_set("light-wsp", &format!("{sets} light_wsp.wpq_hit={hit}"));
            assert_eq!(ran.u32s(out, 16 * 1024 + 4), expected, "{sets} {hit}");
            waited += ran.scheme("wpq_hits_waited");
        }
    }
    assert!(waited > 0);
}

/// Thread 0 stores to a line, reads `lines` others of its set until the line has left both caches, and reads it again.
fn evicted(between: &str, lines: u32) -> String {
    format!(
        "setp.ne.u32 %p1, %id, 0;\n@%p1 ret;\nmov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\n{between}\nmov.u32 %r2, 0;\n\
         mov.u64 %d1, %a;\nNEXT:\nld.global.cg.u32 %r3, [%d1];\nadd.u32 %r4, %r4, %r3;\nadd.u64 %d1, %d1, 128;\n\
         add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, {lines};\n@%p2 bra NEXT;\nadd.u32 %r4, %r4, 5;\n\
         st.global.u32 [%out+65536], %r4;\nmembar.gl;\nld.global.cg.u32 %r5, [%out];\nst.global.u32 [%out+65664], %r5;\n"
    )
}

#[test]
fn a_load_sees_what_its_own_open_region_has_in_the_wpq() {
    let (bench, [out, _]) = bench("sm.count=1 l2.slice_kb=2 l2.ways=4", 1, 32, &evicted("", 1000));
    let ran = bench.run_scheme("light-wsp");
    assert!(ran.l2("dropped_lines") > 0, "the line left the L2 without being written");
    assert!(ran.scheme("wpq_hits") > 0);
    assert_eq!(ran.u32s(out + 65664, 1), [7]);
    // It waits for itself where its region, the oldest, is written with an undo log.
    let ran = bench.run_set("light-wsp", "light_wsp.wpq_hit=wait");
    let counted = ["wpq_hits_waited", "wpq_hits_merged", "wpq_hit_fallbacks"].map(|name| ran.scheme(name));
    assert_eq!((counted, ran.u32s(out + 65664, 1)), ([1, 0, 1], vec![7]));
}

/// A thread of each of two warps stores to a line, reads others until the line has left the L2, and reads it again; the first one
/// begins later, and reads less.
const TWO_OPEN: &str = "
and.b32 %r10, %id, 31;
setp.ne.u32 %p1, %r10, 0;
@%p1 ret;
setp.ne.u32 %p3, %id, 0;
mov.u32 %r11, 900;
mov.u64 %d1, %a;
@%p3 bra BEGIN;
mov.u32 %r11, 400;
ld.global.cg.u32 %r3, [%a+2048];
add.u32 %r4, %r4, %r3;
ld.global.cg.u32 %r3, [%a+4096];
add.u32 %r4, %r4, %r3;
BEGIN:
mul.wide.u32 %d7, %id, 128;
add.u64 %d8, %out, %d7;
mov.u32 %r1, 7;
st.global.u32 [%d8], %r1;
mov.u32 %r2, 0;
NEXT:
ld.global.cg.u32 %r3, [%d1];
add.u32 %r4, %r4, %r3;
add.u64 %d1, %d1, 128;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p2, %r2, %r11;
@%p2 bra NEXT;
ld.global.cg.u32 %r5, [%d8];
st.global.u32 [%d8+65536], %r5;
";

#[test]
fn a_load_of_its_own_open_region_that_is_not_the_oldest_does_not_wait() {
    let (bench, [out, _]) = bench("sm.count=1 l2.slice_kb=2 l2.ways=4", 1, 64, TWO_OPEN);
    let ran = bench.run_set("light-wsp", "light_wsp.wpq_hit=wait");
    let counted = ["wpq_hits_waited", "wpq_hits_merged", "wpq_hit_fallbacks"].map(|name| ran.scheme(name));
    assert_eq!((counted, [0, 32].map(|id| ran.u32s(out + 65536 + 128 * id, 1)[0])), ([1, 1, 1], [7, 7]));
}

/// A thread stores ever greater numbers to a word, a region each; another reads it again and again while its line
/// leaves the L2, and counts how often a number is less than the one before.
const GREATER: &str = "
and.b32 %r10, %id, 31;
setp.ne.u32 %p1, %r10, 0;
@%p1 ret;
mov.u32 %r1, 0;
mov.u32 %r2, 0;
mov.u32 %r5, 0;
mov.u64 %d1, %a;
setp.ne.u32 %p2, %id, 0;
@%p2 bra READ;
WRITE:
add.u32 %r1, %r1, 1;
st.global.u32 [%out], %r1;
pm.region;
mov.u32 %r6, 0;
PAUSE:
ld.global.cg.u32 %r7, [%d1];
add.u32 %r8, %r8, %r7;
add.u64 %d1, %d1, 128;
add.u32 %r6, %r6, 1;
setp.lt.u32 %p5, %r6, 40;
@%p5 bra PAUSE;
and.b64 %d2, %d1, 32767;
add.u64 %d1, %a, %d2;
setp.lt.u32 %p3, %r1, 100;
@%p3 bra WRITE;
ret;
READ:
ld.global.cg.u32 %r3, [%out];
setp.lt.u32 %p4, %r3, %r1;
@%p4 add.u32 %r5, %r5, 1;
mov.u32 %r1, %r3;
mov.u64 %d1, %a;
mov.u32 %r6, 0;
TOUCH:
ld.global.cg.u32 %r7, [%d1];
add.u32 %r8, %r8, %r7;
add.u64 %d1, %d1, 128;
add.u32 %r6, %r6, 1;
setp.lt.u32 %p5, %r6, 20;
@%p5 bra TOUCH;
add.u32 %r2, %r2, 1;
setp.lt.u32 %p6, %r2, 200;
@%p6 bra READ;
st.global.u32 [%out+65536], %r5;
st.global.u32 [%out+65664], %r1;
";

#[test]
fn reads_of_a_word_never_go_back() {
    let (bench, [out, _]) =
        bench("sm.count=2 l2.slices=2 controller.channels=2 l2.slice_kb=2 l2.ways=4", 1, 64, GREATER);
    for (ack_ns, hit) in [1000, 5000, 20000].into_iter().flat_map(|ack_ns| ["merge", "wait"].map(|hit| (ack_ns, hit))) {
        let ran = bench.run_set("light-wsp", &format!("light_wsp.ack_latency_ns={ack_ns} light_wsp.wpq_hit={hit}"));
        let [backwards, last] = [65536, 65664].map(|at| ran.u32s(out + at, 1)[0]);
        assert!(backwards == 0 && last > 50, "{hit}, {ack_ns} ns: {backwards} times, to {last}");
        assert_eq!(ran.u32s(out, 1), [100]);
        let [waited, merged] = ["wpq_hits_waited", "wpq_hits_merged"].map(|name| ran.scheme(name));
        assert!(if hit == "wait" { waited > 4 } else { merged > 10 }, "{hit}, {ack_ns} ns: {waited}, {merged}");
    }
}

#[test]
fn reads_that_wait_are_the_same_at_any_number_of_threads() {
    let (bench, [out, _]) =
        bench("sm.count=4 l2.slices=8 controller.channels=4 l2.slice_kb=2 l2.ways=4", 8, 64, REGIONS);
    let sets = ["light_wsp.wpq_hit=wait", "light_wsp.ack_latency_ns=500", "light_wsp.wpq_entries=17"];
    let overrides = sets.map(|text| Override::parse(text).unwrap());
    let scheme = SchemeConfig::load("light-wsp", &overrides).unwrap().built;
    let ran = |threads: usize| {
        let persistency = Persistency { scheme: scheme.clone(), journal: true, ..Persistency::default() };
        let options = RunOptions { threads, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
        let ran = bench.run_under(&persistency, &options);
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
        assert!(ran.scheme("wpq_hits_waited") > 0 && ran.scheme("wpq_hits_merged") > 0);
        let simulation = &ran.assembly.simulation;
        (simulation.digest(), simulation.stats().events(), ran.u32s(out, 16 * 1024 + 4), ran.assembly.journal())
    };
    let first = ran(1);
    assert!(first == ran(2) && first == ran(3));
}

#[test]
fn what_sites_tell_of_regions_is_what_the_machine_counted() {
    let (bench, _) = bench("sm.count=4 l2.slices=4 controller.channels=4", 8, 64, REGIONS);
    for sets in ["light_wsp.wpq_entries=4", "light_wsp.owner=cta light_wsp.order=sm"] {
        let ran = bench.run_set("light-wsp", sets);
        let report: RegionReport = serde_json::from_value(ran.assembly.scheme_report().unwrap()).unwrap();
        let sizes = &report.sizes;
        assert_eq!((sizes.regions, sizes.stores), (ran.scheme("regions"), ran.scheme("feb_stores")), "{sets}");
        assert_eq!(sizes.entries, ran.scheme("feb_entries"));
        assert_eq!(sizes.by_stores.values().sum::<u64>(), sizes.regions);
        assert_eq!(sizes.by_stores.iter().map(|(stores, regions)| stores * regions).sum::<u64>(), sizes.stores);
        assert_eq!((report.overflow_episodes, report.checkpoints.stores), (ran.scheme("wpq_overflows"), 0));
        assert_eq!(report.overflow_episodes > 0, sets.contains("wpq_entries"));
        assert_eq!(report.controllers.len(), 4);
        for (own, waits) in report.controllers.iter().enumerate() {
            let of_others: u64 = waits.for_controller_ticks.iter().sum();
            assert_eq!(waits.for_controller_ticks[own], 0, "nobody waits for its own ACK");
            let for_acks = waits.boundary_ack_ticks + waits.flush_ack_ticks;
            assert!(for_acks > 0 && of_others + waits.for_several_ticks == for_acks, "{waits:?}");
        }
    }
}

#[test]
fn a_run_that_halts_when_its_program_is_over_goes_on_as_if_it_had_not() {
    let (bench, _) = bench("sm.count=4 l2.slices=8 controller.channels=4", 8, 64, REGIONS);
    let scheme = SchemeConfig::load("light-wsp", &[Override::parse("light_wsp.ack_latency_ns=5000").unwrap()]).unwrap();
    let ran = |halts_at_end: bool, threads: usize| {
        let scheme = scheme.built.clone();
        let options = RunOptions { threads, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
        let persistency = Persistency { scheme, journal: false, halts_at_end, ..Persistency::default() };
        bench.run_under(&persistency, &options)
    };
    let whole = ran(false, 1);
    assert!(matches!(whole.end, RunEnd::Finished { .. }), "{:?}", whole.end);
    let mut left = Vec::new();
    for threads in [1, 3] {
        let mut halted = ran(true, threads);
        let RunEnd::Halted { at, .. } = halted.end else { panic!("{:?}", halted.end) };
        assert_eq!(Some(at), whole.assembly.command_processor().ended());
        left.push(halted.assembly.controllers().map(|mc| mc.held().stores).sum::<u64>());
        let end = halted.assembly.simulation.run(&RunOptions::default());
        assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
        assert_eq!(halted.assembly.simulation.digest(), whole.assembly.simulation.digest());
        assert_eq!(halted.assembly.controllers().map(|mc| mc.held().stores).sum::<u64>(), 0);
    }
    assert!(left[0] > 0 && left[0] == left[1], "{left:?}");
}

#[test]
fn without_snooping_a_load_is_stale_where_the_persist_path_is_slow() {
    // Figure 6 of the paper: the copy is on its way for longer than its line is in the L2.
    let (bench, [out, _]) = bench("sm.count=1 l2.slice_kb=2 l2.ways=4", 1, 32, &evicted("", 1000));
    let far = "light_wsp.path_latency_ns=2000000";
    let seen = |victims: &str| {
        let ran = bench.run_set("light-wsp", &format!("{far} light_wsp.victims={victims}"));
        (ran.u32s(out + 65664, 1)[0], ran.scheme("victim_conflicts_lines") > 0)
    };
    assert_eq!(seen("stale"), (0, false));
    for victims in ["full", "half", "zero"] {
        assert_eq!(seen(victims), (7, true), "{victims}");
    }
}

#[test]
fn warps_of_a_cta_share_regions_and_those_commit_in_fewer_steps() {
    // 4 warps that store in step: a region of each turn, where every warp would have one.
    let (bench, [out, _]) = bench("sm.count=1", 1, 128, REGIONS);
    let regions = |owner: &str| {
        let ran = bench.run_set("light-wsp", &format!("light_wsp.owner={owner}"));
        assert_eq!(ran.u32s(out, 16 * 1024 + 4), bench.functional().read_u32s(out, 16 * 1024 + 4).unwrap());
        (ran.scheme("regions"), ran.scheme("regions_joined"))
    };
    assert_eq!(regions("warp"), (4 * 5, 0));
    let (shared, joined) = regions("cta");
    // Whoever is ahead opens the next one, which not all of the others are in time for; an atomic's is its warp's alone.
    assert!((8..16).contains(&shared) && shared + joined == 20, "{shared} {joined}");
}

#[test]
fn a_warp_waits_for_room_alone_and_never_for_durability() {
    let body = "mul.wide.u32 %d1, %id, 128;\nadd.u64 %d2, %out, %d1;\nmov.u32 %r1, 0;\nL:\nst.global.u32 [%d2], %r1;\n\
                pm.region;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 50;\n@%p1 bra L;\n";
    let cycles = |sets: &str, controller: &str| {
        let mut bench = Bench::new(one_gigahertz(&format!("sm.count=1 {controller}")));
        let out = bench.buffer(1 << 17, Medium::Nvm);
        bench.launch(body, 1, 32, (out, 0, 0, 0));
        let ran = bench.run_set("light-wsp", sets);
        (ran.ticks(0), ran.sm("path_full_cycles"))
    };
    let large = "light_wsp.feb_entries=65536 light_wsp.wpq_entries=1048576";
    let (fast, waited) = cycles(large, "");
    assert_eq!(waited, 0);
    let (slow_media, waited) = cycles(large, "nvm.write_mode=through nvm.cell_write_ns=2000");
    assert_eq!((slow_media, waited), (fast, 0), "durability is nobody's wait");
    let (_, waited) = cycles("light_wsp.feb_entries=32 light_wsp.path_mb_s=100", "");
    assert!(waited > 0, "a full front-end buffer is");
}
