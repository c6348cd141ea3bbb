//! A write-combining L1, as a data sheet: what joins a line, when it leaves, and who waits for that.

use crate::accounts::assert_conserved;
use crate::bench_machine::{Bench, Ran, machine, sum};
use durawarp::assemble::Persistency;
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::host::{GlobalRange, HostAction};
use durawarp::kernel::memory::Medium;
use durawarp::persist::FactKind;
use proptest::prelude::*;

/// `%out` in persistent memory, `%a` and `%b` in DRAM, on four CUs of 64 lanes.
fn bench(overrides: &str, grid: u32, block: u32, body: &str) -> (Bench, [u64; 3]) {
    let mut bench = Bench::new(machine("scoped-table2", overrides));
    let buffers = [Medium::Nvm, Medium::Dram, Medium::Dram].map(|medium| bench.buffer(1 << 16, medium));
    let [out, a, b] = buffers;
    bench.launch(body, grid, block, (out, a, b, 0));
    (bench, buffers)
}

/// Writes of an L2 slice that stores to one line make.
fn writes(stores: u32, between: &str) -> Ran {
    let store: String =
        (0..stores).map(|n| format!("mov.u32 %r1, {n};\nst.global.u32 [%out+{}], %r1;\n{between}", 4 * n)).collect();
    bench("", 1, 1, &store).0.run_scheme("base")
}

#[test]
fn stores_to_a_line_leave_in_one_write_and_a_fence_between_them_makes_it_two() {
    let ran = writes(8, "");
    assert_eq!((ran.l2("writes"), ran.sm("l1_stores"), ran.sm("l1_stores_combined")), (1, 8, 7));
    assert_eq!(writes(2, "membar.gl;\n").l2("writes"), 2);
    assert_eq!(writes(2, "membar.cta;\n").l2("writes"), 1, "a CTA shares its L1: nothing has to leave");
    assert_eq!(writes(2, "bar.sync 0;\n").l2("writes"), 1);
}

#[test]
fn a_full_s_fifo_cleans_its_head_and_only_then() {
    let lines = |count: u32| {
        let store: String = (0..count).map(|n| format!("st.global.u32 [%out+{}], %tid;\n", 64 * n)).collect();
        bench("", 1, 1, &store).0.run_scheme("base").sm("l1_cleanings_early")
    };
    assert_eq!((lines(16), lines(17), lines(20)), (0, 1, 4));
}

#[test]
fn a_load_of_combined_bytes_hits_and_one_of_bytes_beside_them_sees_them() {
    let body = "mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\nst.global.u32 [%out+4], %r1;\nld.global.u64 %d1, [%out];\n\
        ld.global.u64 %d2, [%out+8];\nst.global.u64 [%b], %d1;\nst.global.u64 [%b+8], %d2;\n";
    let (mut bench, [out, _, b]) = bench("", 1, 1, body);
    bench.put_u64s(out, &[1, 2]);
    let ran = bench.run_scheme("base");
    assert_eq!(ran.u64s(b, 2), [7 | 7 << 32, 2]);
}

#[test]
fn an_atomic_and_a_write_back_find_what_was_combined_before_them() {
    let body =
        "mov.u32 %r1, 40;\nst.global.u32 [%out], %r1;\natom.global.add.u32 %r2, [%out], 2;\nst.global.u32 [%b], %r2;\n";
    let (bench_of, [out, _, b]) = bench("", 1, 1, body);
    let ran = bench_of.run_scheme("base");
    assert_eq!((ran.u32s(b, 1)[0], ran.u32s(out, 1)[0]), (40, 42));
    let body = "mov.u32 %r1, 5;\nst.global.u32 [%out], %r1;\npm.clwb.global [%out];\npm.sfence;\n";
    let ran = bench("", 1, 1, body).0.run_scheme("store+clwb");
    let kinds: Vec<FactKind> = ran.assembly.journal().facts().iter().map(|fact| fact.kind).collect();
    let at = |kind| kinds.iter().position(|&k| k == kind).unwrap();
    assert!(at(FactKind::AtMedia) < at(FactKind::FencePassed));
}

#[test]
fn what_one_sm_stored_is_seen_by_another_when_both_have_fenced() {
    // CTA 0 stores a line and then a flag behind a fence; CTA 1 waits for the flag.
    let body = "setp.ne.u32 %p1, %cta, 0;\n@%p1 bra READ;\nmov.u32 %r1, 9;\nst.global.u32 [%out], %r1;\nmembar.gl;\n\
        atom.global.exch.b32 %r2, [%a], 1;\nbra END;\nREAD:\nSPIN:\natom.global.or.b32 %r3, [%a], 0;\nsetp.eq.u32 %p2, %r3, 0;\n\
        @%p2 bra SPIN;\nmembar.gl;\nld.global.u32 %r4, [%out];\nst.global.u32 [%b], %r4;\nEND:\n";
    let (bench, [.., b]) = bench("", 2, 1, body);
    assert_eq!(bench.run_scheme("base").u32s(b, 1), [9]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Each thread reads and writes words of its own in few lines, in any order, with fences: time or not, the same bytes;
    /// and the same at two threads.
    #[test]
    fn memory_is_as_in_the_functional_run(
        steps in prop::collection::vec((0u32..6, 0u32..8, 0u32..40), 1..30),
        sfifo in 1u32..4,
        threads in 1usize..3,
    ) {
        let mut body = "shl.b32 %r1, %id, 2;\ncvt.u64.u32 %d1, %r1;\nadd.u64 %d2, %out, %d1;\nadd.u64 %d3, %a, %d1;\nmov.u32 %r9, 1;\n".to_owned();
        for (op, word, value) in steps {
            let at = word * 512;
            body += &match op {
                0 | 1 => format!("add.u32 %r9, %r9, {value};\nst.global.u32 [%d2+{at}], %r9;\n"),
                2 => format!("ld.global.u32 %r8, [%d2+{at}];\nadd.u32 %r9, %r9, %r8;\n"),
                3 => format!("st.global.u32 [%d3+{at}], %r9;\n"),
                4 => format!("atom.global.add.u32 %r8, [%d2+{at}], {value};\nadd.u32 %r9, %r9, %r8;\n"),
                _ => "membar.gl;\n".to_owned(),
            };
        }
        let (bench, [out, a, _]) = bench(&format!("l1.sfifo_entries={sfifo} l1.kb=1 l1.ways=2"), 2, 64, &body);
        let functional = bench.functional();
        let ran = bench.run_with(&RunOptions { threads, ..RunOptions::default() });
        for buffer in [out, a] {
            prop_assert_eq!(ran.u32s(buffer, 2048), functional.read_u32s(buffer, 2048).unwrap());
        }
    }
}

#[test]
fn an_inclusive_l2_has_the_l1s_give_up_what_leaves_it() {
    // A line is read, and so are a hundred others of its set in the L2, past the L1; then it is read again.
    let body =
        "setp.ne.u32 %p1, %id, 0;\n@%p1 ret;\nld.global.u32 %r1, [%b];\nmov.u32 %r2, 0;\nmov.u64 %d1, %a;\nNEXT:\n\
                ld.global.cg.u32 %r3, [%d1];\nadd.u32 %r4, %r4, %r3;\nadd.u64 %d1, %d1, 64;\nadd.u32 %r2, %r2, 1;\n\
                setp.lt.u32 %p2, %r2, 1000;\n@%p2 bra NEXT;\nadd.u32 %r4, %r4, %r1;\nadd.u64 %d2, %b, %r5x;\n\
                ld.global.u32 %r6, [%d2];\nadd.u32 %r6, %r6, %r4;\nst.global.u32 [%out], %r6;\n"
            .replace(
                "add.u64 %d2, %b, %r5x;\n",
                "and.b32 %r5, %r4, 0;\ncvt.u64.u32 %d3, %r5;\nadd.u64 %d2, %b, %d3;\n",
            );
    for (inclusive, hits) in [(true, 0), (false, 1)] {
        let overrides = format!("sm.count=2 l2.slice_kb=4 l2.ways=4 l2.inclusive={inclusive}");
        let mut bench = Bench::new(machine("scoped-table2", &overrides));
        let [out, a, b] = [(); 3].map(|()| bench.buffer(1 << 17, Medium::Dram));
        bench.put_u32s(b, &[5]);
        bench.launch(&body, 1, 64, (out, a, b, 0));
        let ran = bench.run();
        assert_eq!(ran.sm("l1_hits"), hits, "inclusive: {inclusive}");
        assert_eq!(ran.l2("back_invalidations") > 900 * 2, inclusive, "each SM hears of each line");
        assert_eq!(ran.u32s(out, 1), [10]);
        assert_conserved(&format!("inclusive: {inclusive}"), &ran.spec, &ran.assembly);
    }
}

#[test]
fn bytes_that_an_l1_has_combined_survive_their_lines_leaving_an_inclusive_l2() {
    // Each thread stores to its own word, reads much, and adds to what it stored.
    let body = "mul.wide.u32 %d1, %id, 4;\nadd.u64 %d2, %out, %d1;\nst.global.u32 [%d2], %id;\nmul.wide.u32 %d5, %tid, 4;\n\
                add.u64 %d3, %a, %d5;\nmov.u32 %r2, 0;\nNEXT:\nld.global.u32 %r3, [%d3];\nadd.u64 %d3, %d3, 1024;\n\
                add.u32 %r4, %r4, %r3;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 60;\n@%p2 bra NEXT;\n\
                ld.global.u32 %r5, [%d2];\nadd.u32 %r5, %r5, 1;\nadd.u32 %r5, %r5, %r4;\nst.global.u32 [%d2], %r5;\n";
    for (scheme, out_in) in [("base", Medium::Dram), ("nvw-fifo", Medium::Nvm), ("epoch-tag", Medium::Nvm)] {
        let mut bench = Bench::new(machine("scoped-table2", "l2.slice_kb=4 l2.ways=4 l1.kb=4"));
        let (out, a) = (bench.buffer(1 << 17, out_in), bench.buffer(1 << 17, Medium::Dram));
        bench.launch(body, 8, 256, (out, a, 0, 0));
        let ran = bench.run_scheme(scheme);
        assert_eq!(ran.u32s(out, 2048), (1..=2048).collect::<Vec<u32>>(), "{scheme}");
        assert!(ran.l2("back_invalidations") > 0);
        assert_conserved(scheme, &ran.spec, &ran.assembly);
    }
}

#[test]
fn what_a_warm_step_displaces_leaves_the_l1s_without_a_packet() {
    let mut bench = Bench::new(machine("scoped-table2", "sm.count=2 l2.slice_kb=4 l2.ways=4"));
    let [out, a, b] = [(); 3].map(|()| bench.buffer(1 << 13, Medium::Dram));
    bench.launch("mul.wide.u32 %d1, %id, 4;\nadd.u64 %d1, %a, %d1;\nld.global.u32 %r1, [%d1];", 1, 64, (out, a, b, 0));
    let launch = HostAction::Launch(bench.launches().remove(0));
    // As many lines as the L2 has: those that the launch read make room.
    let warm = HostAction::Warm(vec![GlobalRange { start: b, bytes: 1 << 12 }]);
    let mut assembly = bench.assemble(vec![launch, warm], 0, &Persistency::default());
    let end = durawarp::machine::run(&mut assembly.simulation, &RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let l2 = |counter: &str| sum(assembly.slices().map(|slice| *slice.counters()), counter);
    assert_eq!([l2("reads"), l2("warmed_lines"), l2("back_invalidations")], [4, 64, 0]);
    assert_conserved("warm", &bench.spec, &assembly);
}
