//! Persistency in the machine, as a data sheet: which way stores take, what write-backs and fences wait for, what is
//! durable when, in which domain.

use crate::bench_machine::{Bench, Ran, kernel, one_gigahertz};
use durawarp::assemble::Persistency;
use durawarp::engine::{ComponentId, RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::persist::{Fact, FactKind, Journal};
use durawarp::schemes::catalogue;
use proptest::prelude::*;

/// One launch of `body` by `block` threads of one CTA, whose `%out` and `%a` are in persistent memory, `%b` in DRAM.
fn one_cta(overrides: &str, block: u32, body: &str) -> (Bench, u64, u64) {
    let mut bench = Bench::new(one_gigahertz(overrides));
    let (out, a) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Nvm));
    let b = bench.buffer(4096, Medium::Dram);
    bench.launch(body, 1, block, (out, a, b, 0));
    (bench, out, a)
}

fn of_kind(journal: &Journal, kind: FactKind) -> Vec<Fact> {
    journal.facts().iter().copied().filter(|fact| fact.kind == kind).collect()
}

/// When the only fact of a kind was noted.
fn when(ran: &Ran, kind: FactKind) -> u64 {
    let journal = ran.assembly.journal();
    let facts = of_kind(&journal, kind);
    assert_eq!(facts.len(), 1, "{kind:?}: {facts:?}");
    facts[0].time
}

#[test]
fn a_plain_store_is_durable_only_when_its_line_is_written_back() {
    let body = "mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\n";
    let stored = one_cta("", 1, body).0.run_scheme("store+clwb");
    assert_eq!((stored.mc("nvm_writes"), stored.l2("writebacks")), (0, 0));
    assert!(of_kind(&stored.assembly.journal(), FactKind::Accepted).is_empty());
    let (bench, out, _) = one_cta("", 1, &format!("{body}pm.clwb.global [%out];\npm.sfence;\n"));
    let written = bench.run_scheme("store+clwb");
    assert_eq!((written.mc("nvm_writes"), written.l2("writebacks")), (1, 1));
    let journal = written.assembly.journal();
    let accepted = of_kind(&journal, FactKind::Accepted);
    assert_eq!((accepted[0].line, accepted[0].mask), (out, 0xf), "the dirty bytes, no others");
    assert_eq!(journal.data(&accepted[0]), [7, 0, 0, 0]);
}

#[test]
fn a_store_past_the_caches_is_durable_without_a_write_back() {
    let (bench, out, _) = one_cta(
        "",
        32,
        "mad.lo.u32 %r2, %tid, 4, 0;\ncvt.u64.u32 %d0, %r2;\nadd.u64 %d1, %out, %d0;\npm.st.nt.global.u32 [%d1], %tid;\npm.sfence;\n",
    );
    let ran = bench.run_scheme("store+clwb");
    assert_eq!((ran.mc("nvm_writes"), ran.l2("writebacks"), ran.l2("write_throughs")), (1, 0, 1));
    assert!(when(&ran, FactKind::StoredNonTemporal) < when(&ran, FactKind::Performed));
    assert!(when(&ran, FactKind::Performed) < when(&ran, FactKind::Accepted));
    assert!(when(&ran, FactKind::Accepted) < when(&ran, FactKind::FencePassed));
    assert_eq!(ran.u32s(out, 32), (0..32).collect::<Vec<_>>());
}

#[test]
fn a_write_back_leaves_the_line_clean_in_the_l2() {
    let again = "pm.clwb.global [%out];\npm.sfence;\nld.global.cg.u32 %r2, [%out];\nst.global.u32 [%b], %r2;\n";
    let body = format!(
        "mov.u32 %r1, 7;\nst.global.v4.u32 [%out], {{%r1, %r1, %r1, %r1}};\nst.global.v4.u32 [%out+16], {{%r1, %r1, %r1, %r1}};\npm.clwb.global [%out];\npm.sfence;\n{again}"
    );
    let (bench, ..) = one_cta("", 1, &body);
    let ran = bench.run_scheme("store+clwb");
    assert_eq!(ran.l2("write_backs_asked"), 2);
    assert_eq!(ran.mc("nvm_writes"), 1, "nothing is left to write the second time");
    assert_eq!((ran.l2("read_hits"), ran.mc("nvm_reads")), (1, 0), "the line is still there");
}

#[test]
fn a_flush_takes_the_line_out_of_both_caches() {
    let body = |op: &str| {
        format!(
            "ld.global.ca.u32 %r1, [%out];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%a], %r1;\n{op}\npm.sfence;\nld.global.ca.u32 %r2, [%out];\nst.global.u32 [%a+4], %r2;\n"
        )
    };
    let reads = |op: &str| {
        let ran = one_cta("", 1, &body(op)).0.run_scheme("store+clwb");
        (ran.sm("l1_hits"), ran.mc("nvm_reads"))
    };
    assert_eq!(reads("pm.clwb.global [%out];"), (1, 1));
    assert_eq!(reads("pm.clflushopt.global [%out];"), (0, 2));
}

#[test]
fn lanes_of_a_warp_ask_for_each_line_once() {
    let body = "mul.wide.u32 %d0, %tid, 8;\nadd.u64 %d1, %out, %d0;\nst.global.u32 [%d1], %tid;\npm.clwb.global [%d1];\npm.sfence;\n";
    let ran = one_cta("", 32, body).0.run_scheme("store+clwb");
    assert_eq!((ran.l2("write_backs_asked"), ran.sm("pm_write_backs")), (2, 1), "32 lanes, 8 bytes apart: two lines");
}

#[test]
fn a_fence_without_persists_passes_at_once_and_with_one_waits_for_its_acknowledgement() {
    // The clock before the fence and after it.
    let body = |store: &str| {
        format!(
            "mov.u32 %r1, 7;\n{store}\nmov.u64 %d2, %clock64;\npm.sfence;\nmov.u64 %d3, %clock64;\nsub.u64 %d4, %d3, %d2;\nst.global.u64 [%b], %d4;\n"
        )
    };
    let wait = |overrides: &str, store: &str, scheme: &str| {
        let mut bench = Bench::new(one_gigahertz(overrides));
        let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
        bench.launch(&body(store), 1, 1, (out, out, b, 0));
        bench.run_scheme(scheme).u64s(b, 1)[0]
    };
    let through = "pm.st.nt.global.u32 [%out], %r1;";
    // Two issues apart.
    assert_eq!(wait("", "", "store+clwb"), 2);
    assert_eq!(wait("", "st.global.u32 [%out], %r1;", "store+clwb"), 2, "a store without a write-back is no persist");
    assert_eq!(wait("", through, "base"), 2, "base has no fences");
    let adr = wait("", through, "store+clwb");
    let longer = wait("controller.front_ns=30 controller.back_ns=17", through, "store+clwb");
    assert_eq!(longer - adr, 20 + 7, "to the controller, and the acknowledgement back");
    let eadr = wait("persist.domain=eadr", through, "store+clwb");
    assert_eq!(adr - eadr, 20, "with a surviving L2, the slice answers at once");
    // The cells: sensing and column read of the partial granule, then the write itself.
    let media = wait("persist.domain=media", through, "store+clwb");
    let slower = wait("persist.domain=media nvm.cell_write_ns=580", through, "store+clwb");
    assert_eq!(slower - media, 100);
    assert!(media - adr >= 480, "{media} against {adr}");
}

#[test]
fn other_warps_go_on_while_one_waits_at_a_fence() {
    let body = "setp.lt.u32 %p1, %tid, 32;
@%p1 pm.st.nt.global.u32 [%out], %tid;
@%p1 pm.sfence;
mov.u64 %d2, %clock64;
shr.u32 %r2, %tid, 5;
mul.wide.u32 %d0, %r2, 8;
add.u64 %d1, %b, %d0;
st.global.u64 [%d1], %d2;
";
    let mut bench = Bench::new(one_gigahertz(""));
    let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
    bench.launch(body, 1, 64, (out, out, b, 0));
    let clocks = bench.run_scheme("store+clwb").u64s(b, 2);
    assert!(clocks[0] > clocks[1] + 50, "warp 0 waits, warp 1 does not: {clocks:?}");
}

#[test]
fn a_store_past_the_caches_never_gives_way_to_an_older_cached_copy() {
    let body = "mov.u32 %r1, 1;
mov.u32 %r2, 2;
st.global.u32 [%out], %r1;
st.global.u32 [%out+4], %r1;
pm.st.nt.global.u32 [%out], %r2;
ld.global.cg.u32 %r3, [%out];
st.global.u32 [%b], %r3;
pm.clwb.global [%out];
pm.sfence;
";
    let mut bench = Bench::new(one_gigahertz(""));
    let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
    bench.launch(body, 1, 1, (out, out, b, 0));
    let ran = bench.run_scheme("store+clwb");
    assert_eq!((ran.u32s(b, 1), ran.u32s(out, 2)), (vec![2], vec![2, 1]));
    let journal = ran.assembly.journal();
    let accepted = of_kind(&journal, FactKind::Accepted);
    let written: Vec<_> = accepted.iter().map(|fact| (fact.mask, journal.data(fact).to_vec())).collect();
    assert_eq!(
        written,
        [(0xf, vec![2, 0, 0, 0]), (0xf0, vec![1, 0, 0, 0])],
        "the write-back leaves the newer bytes out"
    );
}

#[test]
fn base_takes_logs_out_and_other_schemes_send_them_their_way() {
    let body = "mov.u32 %r1, 7;\npm.st.log.global.u32 [%out], %r1;\npm.clwb.log.global [%out];\npm.sfence;\n";
    let path = |scheme: &str| {
        let (bench, out, _) = one_cta("", 1, body);
        let ran = bench.run_scheme(scheme);
        (ran.u32s(out, 1)[0], ran.l2("write_throughs"), ran.l2("write_backs_asked"), ran.sm("pm_log_stores"))
    };
    assert_eq!(path("base"), (0, 0, 0, 1));
    assert_eq!(path("strict"), (0, 0, 0, 1));
    assert_eq!(path("nt-store"), (7, 1, 0, 1));
    assert_eq!(path("store+clwb"), (7, 0, 1, 1));
}

#[test]
fn strict_makes_each_store_durable_before_the_next() {
    let body = "mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\nst.global.u32 [%out+512], %r1;\natom.global.add.u32 %r2, [%a], 3;\nst.global.u32 [%out+1024], %r1;\n";
    let (bench, ..) = one_cta("", 1, body);
    let journal = bench.run_scheme("strict").assembly.journal();
    let kinds =
        |fact: &&Fact| matches!(fact.kind, FactKind::StoredNonTemporal | FactKind::Updated | FactKind::Accepted);
    let order: Vec<FactKind> = journal.facts().iter().filter(kinds).map(|fact| fact.kind).collect();
    use FactKind::{Accepted, StoredNonTemporal, Updated};
    assert_eq!(
        order,
        [StoredNonTemporal, Accepted, StoredNonTemporal, Accepted, Updated, Accepted, StoredNonTemporal, Accepted]
    );
}

#[test]
fn epochs_write_the_l2_back_at_their_ends() {
    let body =
        "mad.lo.u32 %r1, %id, 128, 0;\ncvt.u64.u32 %d0, %r1;\nadd.u64 %d1, %out, %d0;\nst.global.u32 [%d1], %id;\n";
    let run = |scheme: &str| {
        let mut bench = Bench::new(one_gigahertz(""));
        let out = bench.buffer(128 * 256, Medium::Nvm);
        for _ in 0..2 {
            bench.launch(body, 4, 32, (out, out, out, 0));
        }
        let ran = bench.run_scheme(scheme);
        let journal = ran.assembly.journal();
        let ends = of_kind(&journal, FactKind::KernelEnded);
        let before = |t: u64| of_kind(&journal, FactKind::Accepted).iter().filter(|fact| fact.time <= t).count();
        (ran.mc("nvm_writes"), before(ends[0].time), before(ends[1].time))
    };
    assert_eq!(run("base").0, 0);
    assert_eq!(run("epoch-kernel"), (256, 128, 256));
    assert_eq!(run("epoch-cta"), (256, 128, 256));
}

#[test]
fn a_cta_epoch_ends_only_when_its_stores_are_durable() {
    let body =
        "mad.lo.u32 %r1, %id, 128, 0;\ncvt.u64.u32 %d0, %r1;\nadd.u64 %d1, %out, %d0;\nst.global.u32 [%d1], %id;\n";
    let mut bench = Bench::new(one_gigahertz(""));
    let out = bench.buffer(128 * 256, Medium::Nvm);
    bench.launch(body, 8, 32, (out, out, out, 0));
    let journal = bench.run_scheme("epoch-cta").assembly.journal();
    for end in of_kind(&journal, FactKind::CtaEnded) {
        let (_, cta) = end.author.cta().unwrap();
        for lane in 0..32 {
            let line = out + 128 * (32 * u64::from(cta) + lane);
            let durable = of_kind(&journal, FactKind::Accepted).iter().any(|f| f.line == line && f.time <= end.time);
            assert!(durable, "CTA {cta} ended before line {line:#x} was durable");
        }
    }
}

#[test]
fn ordinary_fences_persist_only_where_the_machine_says_so() {
    let waits = |overrides: &str, fence: &str| {
        let body = format!("mov.u32 %r1, 7;\npm.st.nt.global.u32 [%out], %r1;\n{fence}\n");
        let ran = one_cta(overrides, 1, &body).0.run_scheme("store+clwb");
        of_kind(&ran.assembly.journal(), FactKind::FencePassed).len()
    };
    assert_eq!(waits("", "membar.sys;"), 0);
    assert_eq!(waits("persist.membar_sys=sfence", "membar.sys;"), 1);
    assert_eq!(waits("persist.membar_sys=sfence", "membar.gl;"), 0);
    assert_eq!(waits("persist.membar_gl=sfence", "membar.gl;"), 1);
    assert_eq!(waits("persist.membar_gl=sfence", "membar.cta;"), 0);
}

#[test]
fn persistency_operations_on_dram_are_plain_and_counted() {
    let body = "mov.u32 %r1, 7;\npm.st.nt.global.u32 [%b], %r1;\npm.st.log.global.u32 [%b+4], %r1;\npm.clwb.global [%b];\npm.sfence;\n";
    let mut bench = Bench::new(one_gigahertz(""));
    let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
    bench.launch(body, 1, 1, (out, out, b, 0));
    let ran = bench.run_scheme("nt-store");
    assert_eq!((ran.u32s(b, 2), ran.sm("pm_on_dram"), ran.sm("persists")), (vec![7, 7], 3, 0));
}

#[test]
fn a_write_of_a_part_of_a_granule_reads_it_first() {
    // Sixteen writes to one bank, around the caches: what each costs is how long it holds the bank.
    let time = |bytes: u32, granule: u32| {
        let store = if bytes == 16 {
            "pm.st.nt.global.v4.u32 [%d1], {%r1, %r1, %r1, %r1};"
        } else {
            "pm.st.nt.global.u32 [%d1], %r1;"
        };
        let body = format!(
            "mov.u32 %r1, 7;\nmad.lo.u32 %r2, %tid, {bytes}, 0;\ncvt.u64.u32 %d0, %r2;\nadd.u64 %d1, %out, %d0;\n{store}\npm.sfence;\n"
        );
        let overrides =
            format!("persist.domain=media nvm.write_mode=through nvm.write_granule_bytes={granule} nvm.banks=1");
        let ran = one_cta(&overrides, 8, &body).0.run_scheme("nt-store");
        when(&ran, FactKind::AtMedia) - when(&ran, FactKind::Accepted)
    };
    let full = time(16, 128);
    assert_eq!(time(4, 32), full, "32 of 32 bytes: whole granules");
    assert!(time(4, 128) > full + 100, "32 of 128 bytes: the rest is read first");
}

/// Each lane loads a word of a line of its own from DRAM, and the warp waits for all; the sum goes to `%out`.
const UNCOALESCED: &str = "mul.wide.u32 %d0, %tid, 128;\nadd.u64 %d1, %b, %d0;\nmov.u64 %d2, %clock64;
ld.global.u32 %r1, [%d1];\nadd.u32 %r1, %r1, 1;\nmov.u64 %d3, %clock64;\nsub.u64 %d4, %d3, %d2;
mul.wide.u32 %d5, %tid, 8;\nadd.u64 %d5, %out, %d5;\nst.global.u64 [%d5], %d4;\n";

#[test]
fn bucl_sends_uncoalesced_loads_past_the_l1_and_so_it_does_stalled_ones() {
    // One set of eight ways: sixteen lines of one warp do not fit while they are being fetched.
    let mut bench = Bench::new(one_gigahertz("l1.kb=1 l1.ways=8"));
    let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
    bench.launch(UNCOALESCED, 1, 16, (out, out, b, 0));
    let run = |sets: &str| {
        let ran = bench.run_set("bucl", sets);
        let cycles = ran.u64s(out, 1)[0];
        (ran.sm("l1_loads_steered"), ran.sm("l1_stalls_past"), ran.sm("l1_bypasses"), cycles)
    };
    let (steered, stalled) = (run("bucl.tucd=15"), run("bucl.tucd=16"));
    assert_eq!((steered.0, steered.1, steered.2), (16, 0, 16), "16 line accesses are more than 15");
    assert_eq!((stalled.0, stalled.1, stalled.2), (0, 8, 8), "eight ways take eight of them");
    let waits = run("bucl.tucd=16 bucl.stall_bypass=false");
    assert_eq!((waits.0, waits.1, waits.2), (0, 0, 0));
    assert!(waits.3 > stalled.3 + 100, "the others wait for a fill: {} against {}", waits.3, stalled.3);
    let plain = bench.run_set("store+clwb", "");
    assert_eq!((plain.sm("l1_bypasses"), plain.u64s(out, 1)[0]), (0, waits.3));
}

#[test]
fn bucl_sends_uncoalesced_log_updates_past_the_caches_without_their_write_backs() {
    let body = "mul.wide.u32 %d0, %tid, 64;\nadd.u64 %d1, %out, %d0;\npm.st.log.global.u32 [%d1], %tid;
pm.clwb.log.global [%d1];\npm.sfence;\n";
    let run = |threads: u32| {
        let ran = one_cta("", threads, body).0.run_set("bucl", "");
        (ran.l2("write_throughs"), ran.l2("write_backs_asked"))
    };
    assert_eq!(run(4), (0, 2), "two lines: coalesced");
    assert_eq!(run(6), (3, 0), "three lines are more than two");
}

/// A random kernel of stores, write-backs and fences on 16 lines that four warps share out among themselves.
fn random_body(steps: &[(u8, u8)]) -> String {
    let mut body = String::from(
        "shr.u32 %r1, %id, 5;\nand.b32 %r2, %id, 31;\nmad.lo.u32 %r3, %r1, 2048, 0;\nmad.lo.u32 %r3, %r2, 4, %r3;\ncvt.u64.u32 %d0, %r3;\nadd.u64 %d1, %out, %d0;\n",
    );
    for (i, (what, line)) in steps.iter().enumerate() {
        let at = 128 * u64::from(line % 16);
        body += &format!("mov.u32 %r4, {};\n", 1000 * (i + 1));
        body += &match what % 6 {
            0 | 1 => format!("st.global.u32 [%d1+{at}], %r4;\n"),
            2 => format!("pm.st.nt.global.u32 [%d1+{at}], %r4;\n"),
            3 => format!("pm.clwb.global [%d1+{at}];\n"),
            4 => format!("pm.st.log.global.u32 [%d1+{at}], %r4;\npm.clwb.log.global [%d1+{at}];\n"),
            _ => "pm.sfence;\n".to_owned(),
        };
    }
    body
}

fn random_bench(steps: &[(u8, u8)], domain: &str) -> Bench {
    let mut bench = Bench::new(one_gigahertz(&format!("sm.count=2 persist.domain={domain} l2.slice_kb=16")));
    let out = bench.buffer(4 * 2048, Medium::Nvm);
    bench.launch(&random_body(steps), 2, 64, (out, out, out, 0));
    bench
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn threads_and_journals_change_nothing(steps in prop::collection::vec((0u8..6, 0u8..16), 1..40), scheme in 0..catalogue::all().len()) {
        let scheme = catalogue::all()[scheme].clone();
        let bench = random_bench(&steps, "adr");
        let run = |journal: bool, threads: usize| {
            let options = RunOptions { threads, oversubscribe: true, ..RunOptions::default() };
            let ran = bench.run_under(&Persistency { scheme: scheme.clone(), journal, ..Persistency::default() }, &options);
            assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
            (ran.assembly.simulation.digest(), ran.assembly.journal())
        };
        let (digest, journal) = run(true, 1);
        prop_assert_eq!(run(false, 1).0, digest);
        let (other, theirs) = run(true, 3);
        prop_assert_eq!(other, digest);
        prop_assert!(theirs == journal, "journals differ");
    }

    #[test]
    fn what_a_fence_let_pass_is_durable(steps in prop::collection::vec((0u8..6, 0u8..16), 1..40), media: bool, nt: bool) {
        let (domain, durable) = if media { ("media", FactKind::AtMedia) } else { ("adr", FactKind::Accepted) };
        let ran = random_bench(&steps, domain).run_scheme(if nt { "nt-store" } else { "store+clwb" });
        let journal = ran.assembly.journal();
        let facts = journal.facts();
        for (at, fence) in facts.iter().enumerate().filter(|(_, fact)| fact.kind == FactKind::FencePassed) {
            let of_warp = |fact: &&Fact| fact.author.thread() == fence.author.thread();
            let mine: Vec<&Fact> = facts[..at].iter().filter(of_warp).collect();
            for (i, store) in mine.iter().enumerate() {
                let asked = match store.kind {
                    FactKind::StoredNonTemporal => true,
                    FactKind::Stored => mine[i..].iter().any(|f| f.kind == FactKind::WroteBack && f.line == store.line),
                    _ => false,
                };
                // Values only grow, and no two warps share a line: durable means a value of at least this one.
                let value = |fact: &Fact| u32::from_le_bytes(journal.data(fact)[..4].try_into().unwrap());
                let reached = |f: &Fact| f.kind == durable && f.line == store.line && f.time <= fence.time && value(f) >= value(store);
                prop_assert!(!asked || facts.iter().any(reached), "{store:?} is not durable at {fence:?}");
            }
        }
    }

    #[test]
    fn every_scheme_ends_with_the_values_of_the_program(steps in prop::collection::vec((0u8..4, 0u8..16), 1..40), scheme in 0..catalogue::all().len()) {
        let bench = random_bench(&steps, "adr");
        let ran = bench.run_scheme(catalogue::all()[scheme].name());
        prop_assert!(ran.memory == bench.functional(), "memory differs from the functional run");
    }
}

#[test]
fn the_kernels_of_these_tests_are_real_ptx() {
    assert!(
        durawarp::kernel::ptx::parse("bench.ptx", &kernel(&random_body(&[(0, 0), (2, 1), (3, 2), (4, 3), (5, 0)])))
            .is_ok()
    );
}

#[test]
fn the_digest_of_a_run_covers_the_final_state_of_every_component() {
    let mut bench = Bench::new(one_gigahertz("sm.count=1 l2.slices=2 controller.channels=2"));
    let (out, a) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
    bench.put_u32s(a, &[3; 1024]);
    let at = "shl.b32 %r2, %tid, 4;\ncvt.u64.u32 %d0, %r2;\nadd.u64 %d1, %a, %d0;\nadd.u64 %d2, %out, %d0;\n";
    let body = format!("{at}ld.global.u32 %r1, [%d1];\npm.st.log.global.u32 [%d2], %r1;\n");
    bench.launch(&body, 1, 256, (out, a, a, 0));
    let scheme = catalogue::find("agpm").unwrap();
    let states = |time_limit: Option<u64>| -> Vec<(String, u64)> {
        let persistency = Persistency { scheme: scheme.clone(), journal: false, ..Persistency::default() };
        let assembly = bench.run_under(&persistency, &RunOptions { time_limit, ..RunOptions::default() }).assembly;
        let digest = |(id, name): (u32, String)| (name, assembly.simulation.component(ComponentId(id)).digest());
        (0..).zip(assembly.component_names()).map(digest).collect()
    };
    let (idle, over, again) = (states(Some(0)), states(None), states(None));
    assert_eq!(over, again);
    assert_eq!(over.len(), 1 + 2 + 2 + 1 + 1, "an SM, slices, controllers, the command processor, AGPM's hub");
    for ((name, idle), (_, over)) in idle.iter().zip(&over) {
        assert_ne!(idle, over, "{name}");
    }
    // Of a run that is cut short, the registers of warps that have not ended.
    let sm = |time: u64| states(Some(time))[0].1;
    let cut: Vec<u64> = [400, 500, 600].map(sm).into();
    assert!(cut[0] != cut[1] || cut[1] != cut[2], "{cut:?}");
}
