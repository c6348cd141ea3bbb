//! The copy engine as a data sheet: when bulk copies complete, how far apart they begin, what waits for what. Values are
//! those of `bulk_stream`, which `same_results.rs` and `checkpoints.rs` run in every way.

use super::clusters::{ran, same_at_any_threads, small, workload};
use crate::bench_machine::{Bench, SETTLE, machine};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::run::{Conduct, Experiment, run};

/// What the first thread of a kernel stored to `out`, as 64-bit words. `body` finds 4096 bytes from `%a` on, the word at
/// `4 i` is `i + 1`, 4096 zeros from `%b` on, `tile` of 4096 zeros and two barriers of one arrival, at `%r50` and 8 behind.
fn stored(spec: &MachineSpec, body: &str) -> Vec<u64> {
    let (bench, out) = bench(spec, body);
    bench.run().u64s(out, 4)
}

fn bench(spec: &MachineSpec, body: &str) -> (Bench, u64) {
    let mut bench = Bench::new(spec.clone());
    let [out, a, b] = [64, 4096, 4096].map(|bytes| bench.buffer(bytes, Medium::Dram));
    bench.put_u32s(a, &(1..=1024).collect::<Vec<u32>>());
    let body = format!(
        ".shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bars[2];\nmov.u32 %r50, bars;\nmov.u32 %r51, tile;\n\
         mbarrier.init.shared.b64 [%r50], 1;\nmbarrier.init.shared.b64 [%r50+8], 1;\n{body}"
    );
    bench.launch(&body, 1, 1, (out, a, b, 3));
    (bench, out)
}

fn spec(overrides: &str) -> MachineSpec {
    machine("agpm-table4", &format!("sm.count=1 l1.global_loads=true {overrides}"))
}

/// A bulk load of this many bytes, which a barrier counts.
fn load(bytes: u32, barrier: u32) -> String {
    format!(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r50+{barrier}], {bytes};\n\
         cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r51], [%a], {bytes}, [%r50+{barrier}];\n"
    )
}

/// The first cycle after `issue` in which a test of a barrier's first phase finds it over. Each run tests once, some
/// cycles later than the one before: the answer must be the same on either side of that cycle.
fn over_from(spec: &MachineSpec, issue: &str, barrier: u32) -> u64 {
    let warm = "ld.global.u32 %r40, [%a];\nld.global.u32 %r41, [%a+128];\nadd.u32 %r40, %r40, %r41;\n";
    let tested = |until: u64| {
        let words = stored(
            spec,
            &format!(
                "{warm}{SETTLE}mov.u64 %d60, %clock64;\n{issue}add.u64 %d59, %d60, {until};\n\
                 LATER: mov.u64 %d61, %clock64;\nsetp.lt.u64 %p1, %d61, %d59;\n@%p1 bra LATER;\nmov.u64 %d61, %clock64;\n\
                 mbarrier.test_wait.parity.shared.b64 %p2, [%r50+{barrier}], 0;\nselp.u64 %d63, 1, 0, %p2;\n\
                 sub.u64 %d62, %d61, %d60;\nst.global.u64 [%out], %d62;\nst.global.u64 [%out+8], %d63;\n\
                 cp.async.bulk.wait_group 0;"
            ),
        );
        (words[0], words[1] == 1)
    };
    // By halves, then every cycle around it.
    let (mut before, mut after) = (0, 40_000);
    while after - before > 1 {
        let middle = (before + after) / 2;
        if tested(middle).1 { after = middle } else { before = middle }
    }
    let seen: Vec<(u64, bool)> = (after.saturating_sub(20)..after + 20).map(tested).collect();
    let first = seen.iter().filter(|(_, over)| *over).map(|(at, _)| *at).min().expect("it ends");
    assert!(seen.iter().all(|(at, over)| *over == (*at >= first)), "{seen:?}");
    first
}

#[test]
fn a_load_is_counted_some_cycles_after_its_last_line_and_not_a_cycle_earlier() {
    let at = |arrive: u32| over_from(&spec(&format!("shared.bulk_arrive_cycles={arrive}")), &load(128, 0), 0);
    // Tests are some cycles apart, so that a shift by many of them is what shows exactly.
    let (early, late) = (at(0), at(500));
    let apart = late - early;
    assert!((490..=510).contains(&apart), "{early} and {late}");
    let hit = u64::from(spec("").l2.pipeline_cycles);
    assert!(early > hit / 2 && early < 2000, "{early}: the way to the L2 and back");
}

#[test]
fn copies_begin_their_gap_apart() {
    let both = load(128, 0) + &load(128, 8);
    let second = |gap: u32| over_from(&spec(&format!("shared.bulk_issue_cycles={gap}")), &both, 8);
    let (near, far) = (second(1000), second(3000));
    assert!((1990..=2010).contains(&(far - near)), "{near} and {far}");
}

#[test]
fn lines_wait_for_those_under_way_where_these_are_all_that_may_be() {
    let of = |lines: u32, bytes: u32| over_from(&spec(&format!("shared.bulk_lines={lines}")), &load(bytes, 0), 0);
    let (one, alone, together) = (of(384, 128), of(1, 512), of(384, 512));
    assert!(together < one + 200, "four lines in a row: {together}, one {one}");
    assert!(alone > 3 * (one - 29), "four lines one after the other: {alone}, one {one}");
}

#[test]
fn a_wait_for_reads_of_shared_memory_is_shorter_than_one_for_the_copy() {
    let store = "cp.async.bulk.global.shared::cta.bulk_group [%b], [%r51], 2048;\ncp.async.bulk.commit_group;\n";
    let wait = |wait: &str| {
        stored(
            &spec(""),
            &format!(
                "{SETTLE}{store}mov.u64 %d60, %clock64;\n{wait}\nmov.u64 %d61, %clock64;\nsub.u64 %d62, %d61, %d60;\n\
                 st.global.u64 [%out], %d62;\ncp.async.bulk.wait_group 0;"
            ),
        )[0]
    };
    let read = wait("cp.async.bulk.wait_group.read 0;");
    let whole = wait("cp.async.bulk.wait_group 0;");
    // Sixteen lines, one a cycle at best.
    assert!((10..200).contains(&read) && whole > read + 50, "{read} and {whole}");
    assert!(wait("cp.async.bulk.wait_group 1;") < 10, "the last group may be under way");
}

/// A store reads shared memory when its lines leave: what is written there before the wait may be copied.
#[test]
fn shared_memory_may_be_written_again_after_the_wait_for_reads_and_not_before() {
    let copied = |wait: &str| {
        stored(
            &spec("shared.bulk_issue_cycles=500"),
            &format!(
                "mov.u32 %r1, 7;\nst.shared.u32 [%r51+1024], %r1;\n{SETTLE}\
                 cp.async.bulk.global.shared::cta.bulk_group [%b], [%r51], 128;\n\
                 cp.async.bulk.global.shared::cta.bulk_group [%b+128], [%r51+1024], 128;\ncp.async.bulk.commit_group;\n\
                 {wait}mov.u32 %r1, 9;\nst.shared.u32 [%r51+1024], %r1;\ncp.async.bulk.wait_group 0;\n\
                 ld.global.cv.u32 %r2, [%b+128];\ncvt.u64.u32 %d1, %r2;\nst.global.u64 [%out], %d1;"
            ),
        )[0]
    };
    assert_eq!([copied("cp.async.bulk.wait_group.read 0;\n"), copied("")], [7, 9]);
}

#[test]
fn a_barrier_that_is_gone_when_bytes_come_is_a_fault_at_the_copy() {
    let issue = load(128, 0);
    let (bench, _) = bench(&spec(""), &format!("{issue}mbarrier.inval.shared.b64 [%r50];\n{SETTLE}"));
    let ran = bench.run_with(&RunOptions::default());
    let RunEnd::Failed { error, .. } = &ran.end else { panic!("{:?}", ran.end) };
    let told = error.to_string();
    assert!(told.contains("there is no `mbarrier` here"), "{told}");
}

#[test]
fn what_is_copied_in_bulk_is_counted() {
    let outcome = Experiment::of("bulk_stream").profile("ci").set("sm.count", 4).run();
    let outcome = outcome.unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.machine.name, "ampere-a100");
    assert!(outcome.verification.as_ref().is_some_and(|check| check.passed));
    // 6 CTAs with 5 tiles of 2 KB: two are loaded, one is stored and added.
    let tiles = 6 * 5;
    assert_eq!(outcome.total("bulk", "bulk_loads"), 2 * tiles);
    assert_eq!([outcome.total("bulk", "bulk_stores"), outcome.total("bulk", "bulk_reductions")], [tiles; 2]);
    assert_eq!(outcome.total("bulk", "bulk_prefetches"), 0);
    assert_eq!(outcome.total("bulk", "bulk_bytes"), 4 * 2048 * tiles);
    // Lines of 128 bytes go past the L1, once each.
    assert_eq!([outcome.total("l2", "reads"), outcome.total("sm", "l1_loads")], [2 * 16 * tiles, 0]);
}

#[test]
fn a_tile_asks_once_for_each_line_of_each_row_that_its_tensor_has() {
    let outcome = Experiment::of("tensor_transpose").profile("ci").machine("hopper-h100").run();
    let outcome = outcome.unwrap_or_else(|faults| panic!("{faults}"));
    assert!(outcome.verification.as_ref().is_some_and(|check| check.passed));
    // Tiles of 32 x 32 words, of rows of so many columns, which lie one behind the other.
    let lines_of = |columns: u64, rows: u64| -> u64 {
        let parts = (0..rows).flat_map(|row| (0..columns).step_by(32).map(move |first| (row, first)));
        let lines = parts.map(|(row, first)| {
            let (from, to) = (row * columns + first, row * columns + columns.min(first + 32) - 1);
            to / 32 - from / 32 + 1
        });
        lines.sum()
    };
    let tiles = 5 * 4;
    let counts = ["bulk_loads", "bulk_stores", "bulk_reductions", "bulk_prefetches"];
    assert_eq!(counts.map(|name| outcome.total("bulk", name)), [tiles, tiles, tiles, 0]);
    assert_eq!(outcome.total("bulk", "bulk_bytes"), 3 * 4096 * tiles, "what is outside is counted, too");
    assert_eq!(outcome.total("bulk", "bulk_reads"), lines_of(140, 100));
    // A reduction has all 32 lines.
    assert_eq!(outcome.total("sm", "l1_stores"), lines_of(100, 140) + 32 * tiles);
}

#[test]
fn slices_of_any_alignment_are_moved_without_a_race_and_the_same_at_every_number_of_threads() {
    let text = include_str!("../kernel/ptx/some_bytes.ptx");
    let (ctas, step, total) = (40u64, 100u64, 3_963u64);
    let buffer = |name: &str, init: &str| format!("[buffer.{name}]\ntype = \"u8\"\nlen = {total}\n{init}");
    let init = "init = { kind = \"expr\", expr = \"idx * 31 % 251 + 1\" }\n";
    let steps = format!(
        "[[step]]\nkernel = \"slices\"\ngrid = {ctas}\nblock = 1\nargs = [\"&src\", \"&dst\", \"{step}\", \"{total}\"]\n"
    );
    let buffers = [buffer("src", init), buffer("dst", "space = \"pm\"\n")].concat();
    let (_folder, recipe) = workload(text, &buffers, &steps, "\"dst\"");
    let recipe = small(recipe);
    let experiment = recipe.clone().build().unwrap_or_else(|faults| panic!("{faults}"));
    let outcome = run(&experiment, &Conduct { races: true, ..Conduct::default() }).outcome;
    assert!(outcome.verification.as_ref().unwrap().passed, "{:?}", outcome.verification);
    let races: Vec<String> = outcome.races.as_ref().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(races, [""; 0], "a CTA leaves what is another's");
    // Units of 16 bytes that a CTA has: all but those at its ends are one store.
    let units = |cta: u64| (cta * step / 16, ((cta + 1) * step).min(total).div_ceil(16));
    let stores = (0..ctas).map(|cta| (units(cta).1 - units(cta).0).min(3)).sum::<u64>();
    assert_eq!([outcome.total("bulk", "bulk_loads"), outcome.total("bulk", "bulk_stores")], [ctas, stores]);
    same_at_any_threads(&recipe, "slices");
    // Every line is durable in the end, whatever the scheme.
    let durable = ran(recipe.scheme("strict"));
    assert!(durable.verification.as_ref().unwrap().passed);
}
