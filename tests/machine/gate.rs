//! What an SM keeps in order under a scheme whose fences do not wait for non-temporal stores, as a data sheet: who waits
//! for what, and no longer.

use crate::bench_machine::{Bench, Ran, one_gigahertz};
use durawarp::kernel::memory::Medium;
use durawarp::persist::{Fact, FactKind};

/// A launch of `body` by `block` threads whose `%out` and `%a` are in persistent memory, `%b` in DRAM.
fn bench(block: u32, body: &str) -> (Bench, [u64; 3]) {
    let mut bench = Bench::new(one_gigahertz(""));
    let buffers = [Medium::Nvm, Medium::Nvm, Medium::Dram].map(|medium| bench.buffer(4096, medium));
    let [out, a, b] = buffers;
    bench.launch(body, 1, block, (out, a, b, 0));
    (bench, buffers)
}

/// When the only fact of a kind on a line was noted.
fn when(ran: &Ran, kind: FactKind, line: u64) -> u64 {
    let journal = ran.assembly.journal();
    let facts: Vec<&Fact> = journal.facts().iter().filter(|fact| (fact.kind, fact.line) == (kind, line)).collect();
    assert_eq!(facts.len(), 1, "{kind:?} on {line:#x}: {facts:?}");
    facts[0].time
}

fn count(ran: &Ran, kind: FactKind) -> usize {
    ran.assembly.journal().facts().iter().filter(|fact| fact.kind == kind).count()
}

/// Persistent memory 4 KiB on is behind another controller; a log update first, of this line.
const LOG: &str = "mov.u32 %r1, 7;\npm.st.log.global.u32 [%out], %r1;\npm.clwb.log.global [%out];\n";
/// Core cycles of `inside`, to `[%b]`.
fn timed(inside: &str) -> String {
    format!(
        "mov.u64 %d2, %clock64;\n{inside}\nmov.u64 %d3, %clock64;\nsub.u64 %d4, %d3, %d2;\nst.global.u64 [%b], %d4;\n"
    )
}

#[test]
fn a_fence_behind_log_updates_past_the_caches_passes_at_once_and_one_behind_a_write_back_waits() {
    let wait = |scheme: &str, before: &str, fence: &str| {
        let (bench, [.., b]) = bench(1, &format!("{before}\n{}", timed(fence)));
        bench.run_scheme(scheme).u64s(b, 1)[0]
    };
    let waits = wait("nt-store", LOG, "pm.sfence;");
    assert!(waits > 100, "{waits}");
    assert_eq!(wait("themis", LOG, "pm.sfence;"), 2, "two issues apart");
    assert_eq!(wait("themis", LOG, "pm.ofence;"), 2);
    assert_eq!(wait("themis", LOG, "pm.dfence;"), waits, "durability is waited for where the program names it");
    let cached = "mov.u32 %r1, 7;\nst.global.u32 [%a], %r1;\npm.clwb.global [%a];\n";
    assert_eq!(wait("themis", cached, "pm.sfence;"), wait("nt-store", cached, "pm.sfence;"));
}

#[test]
fn a_store_through_the_caches_is_performed_when_the_log_update_before_it_is_acknowledged_and_not_before() {
    let times = |scheme: &str, fence: &str| {
        let (bench, [out, a, _]) = bench(1, &format!("{LOG}{fence}st.global.u32 [%a], %r1;\n"));
        let ran = bench.run_scheme(scheme);
        (when(&ran, FactKind::Accepted, out), when(&ran, FactKind::Performed, a), ran.sm("pm_held"))
    };
    let (accepted, unordered, _) = times("nt-store", "");
    assert!(unordered < accepted, "without a gate it overtakes");
    let (_, waited, _) = times("nt-store", "pm.sfence;\n");
    for fence in ["", "pm.sfence;\n"] {
        let (accepted, performed, held) = times("themis", fence);
        assert!(accepted < performed, "one early");
        assert_eq!(held, 1);
        // A warp that waited has to issue the store and take it through the load-store unit yet.
        let late = waited - performed;
        assert!(performed <= waited && late <= waited / 100, "on time: {performed} against {waited}");
    }
}

#[test]
fn behind_a_fence_that_passed_stores_past_the_caches_and_to_dram_wait_too() {
    let gap = |fence: &str, store: &str| {
        let (bench, [out, a, _]) = bench(1, &format!("{LOG}{fence}{store}"));
        let ran = bench.run_scheme("themis");
        let accepted = when(&ran, FactKind::Accepted, out);
        (when(&ran, FactKind::Performed, a) > accepted, ran.sm("pm_held"), count(&ran, FactKind::FenceOrdered))
    };
    let past = "pm.st.nt.global.u32 [%a], %r1;\n";
    assert_eq!(gap("", past), (false, 0, 0), "two stores past the caches have no order");
    assert_eq!(gap("pm.sfence;\n", past), (true, 1, 1));
    // An atomic on DRAM passes a message to other SMs: its answer comes after the log update is durable.
    let atomic = |fence: &str| {
        let inside = format!("{fence}atom.global.add.u32 %r2, [%b+8], 1;\nadd.u32 %r3, %r2, 1;");
        let (bench, [.., b]) = bench(1, &format!("{LOG}{}", timed(&inside)));
        bench.run_scheme("themis").u64s(b, 1)[0]
    };
    assert!(atomic("pm.sfence;") > atomic("") + 40, "{} against {}", atomic("pm.sfence;"), atomic(""));
}

#[test]
fn another_warp_behind_a_barrier_waits_for_the_log_update_of_the_first() {
    let body = format!(
        "setp.lt.u32 %p1, %tid, 32;\n@!%p1 bra meet;\n{LOG}pm.sfence;\nmeet:\nbar.sync 0;\n@%p1 bra done;\nmov.u32 %r2, 9;\npm.st.nt.global.u32 [%a], %r2;\ndone:\n"
    );
    let (bench, [out, a, _]) = bench(64, &body);
    let ran = bench.run_scheme("themis");
    assert!(when(&ran, FactKind::Accepted, out) < when(&ran, FactKind::Performed, a));
}

#[test]
fn a_warp_that_cannot_know_of_the_fence_does_not_wait_and_one_that_was_told_in_shared_memory_does() {
    let held = |tell: &str, hear: &str| {
        let body = format!(
            "mov.u32 %r9, 0;\nsetp.lt.u32 %p2, %tid, 32;\n@!%p2 bra OTHER;\n{LOG}pm.sfence;\n{tell}bra DONE;\nOTHER:\n{}{hear}mov.u32 %r2, 9;\npm.st.nt.global.u32 [%a], %r2;\nDONE:\n",
            pause("WHILE", 60)
        );
        let (mut bench, _) = bench(64, &body);
        bench.with_shared(4);
        bench.run_scheme("themis").sm("pm_held")
    };
    assert_eq!(held("", ""), 0);
    let (tell, hear) = ("st.shared.u32 [%r9], %r1;\n", "ld.shared.u32 %r3, [%r9];\nadd.u32 %r3, %r3, 1;\n");
    assert_eq!(held(tell, ""), 0);
    assert_eq!(held(tell, hear), 1);
    // A barrier does not wait for a warp that has exited; what that knew counts all the same.
    assert_eq!((held("ret;\n", "bar.sync 0;\n"), held("", "bar.sync 0;\n")), (1, 1));
}

#[test]
fn what_goes_to_the_line_of_a_held_store_follows_it_and_other_lines_pass() {
    // The load must return what the held store writes; a write-back must cover it; another line's load does not wait.
    let body = format!(
        "{LOG}st.global.u32 [%a], %r1;\npm.clwb.global [%a];\n{}ld.global.ca.u32 %r4, [%a];\nst.global.u32 [%b+8], %r4;\npm.sfence;\n",
        timed("ld.global.ca.u32 %r2, [%b+2048];\nadd.u32 %r3, %r2, 1;")
    );
    let (bench, [out, a, b]) = bench(1, &body);
    let ran = bench.run_scheme("themis");
    assert_eq!(ran.u32s(b + 8, 1), [7]);
    assert_eq!(ran.sm("pm_held"), 2, "the store, and the write-back behind it");
    assert!(when(&ran, FactKind::Accepted, out) < when(&ran, FactKind::Accepted, a));
    assert_eq!(count(&ran, FactKind::FencePassed), 1, "behind a write-back that waits for all");
    let alone = bench.run_scheme("nt-store").u64s(b, 1)[0];
    // Other replies at the ejection port may cost it a cycle or two; an acknowledgement would cost it a hundred.
    assert!(ran.u64s(b, 1)[0].abs_diff(alone) <= 2, "a load of another line: {} against {alone}", ran.u64s(b, 1)[0]);
}

#[test]
fn a_full_buffer_and_full_gate_stall_and_come_to_an_end() {
    let stores = |count: u32| (0..count).map(|i| format!("pm.st.nt.global.u32 [%out+{}], %r1;\n", 128 * i)).collect();
    let body: String = format!("mov.u32 %r1, 7;\n{}", Vec::from_iter::<Vec<String>>(stores(4)).concat());
    let time = |entries: u32| {
        let ran = bench(1, &body).0.run_set("themis", &format!("themis.wcb_entries={entries}"));
        ran.ticks(0)
    };
    assert!(time(1) > time(2) && time(2) > time(4), "{} {} {}", time(1), time(2), time(4));
    assert_eq!(time(4), time(64));
    let held =
        format!("{body}{}", (0..8).map(|i| format!("st.global.u32 [%a+{}], %r1;\n", 128 * i)).collect::<String>());
    let ran = bench(1, &held).0.run_set("themis", "themis.write_back_entries=1");
    assert!(ran.sm("pm_held") >= 1);
}

#[test]
fn on_a_fifo_path_a_store_waits_for_the_one_before_unless_both_are_of_one_line() {
    let gap = |second: &str, order: &str| {
        let body = format!("mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\nst.global.u32 [{second}], %r1;\n");
        let (bench, [out, ..]) = bench(1, &body);
        let ran = bench.run_set("pmem-spec", &format!("pmem_spec.order={order}"));
        let journal = ran.assembly.journal();
        let of = |kind: FactKind| journal.facts().iter().filter(move |fact| fact.kind == kind);
        let performed = of(FactKind::Performed).map(|fact| fact.time).max().unwrap();
        let accepted = of(FactKind::Accepted).find(|fact| fact.line == out).unwrap().time;
        (performed > accepted, ran.sm("pm_held"))
    };
    assert_eq!(gap("%a", "fence"), (false, 0));
    assert_eq!(gap("%a", "fifo"), (true, 1));
    assert_eq!(gap("%out+128", "fifo"), (true, 1));
    assert_eq!(gap("%out+4", "fifo"), (false, 0), "coherence orders these");
}

#[test]
fn on_a_fifo_path_fences_pass_and_an_atomic_is_made_durable() {
    let body = |inside: &str| format!("mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\n{}", timed(inside));
    let wait = |order: &str, inside: &str| {
        let (bench, [.., b]) = bench(1, &body(inside));
        let ran = bench.run_set("pmem-spec", &format!("pmem_spec.order={order}"));
        (ran.u64s(b, 1)[0], ran.mc("nvm_writes"))
    };
    assert_eq!(wait("fifo", "pm.sfence;").0, 2);
    assert!(wait("fence", "pm.sfence;").0 > 100);
    let atomic = "atom.global.add.u32 %r2, [%a], 3;";
    assert_eq!((wait("fence", atomic).1, wait("fifo", atomic).1), (1, 2), "written back without being asked");
}

/// Waits for so many core cycles.
fn pause(label: &str, cycles: u32) -> String {
    format!(
        "mov.u64 %d2, %clock64;\n{label}:\nmov.u64 %d3, %clock64;\nsub.u64 %d4, %d3, %d2;\nsetp.lt.u64 %p1, %d4, {cycles};\n@%p1 bra {label};\n"
    )
}

#[test]
fn pmem_spec_detects_a_late_store_behind_an_eviction_and_a_read() {
    // Eight lines a slice: the line, 256 others in all slices, the line again from memory, a store to it.
    let evict = "mov.u32 %r4, 0;\nAGAIN:\nmul.wide.u32 %d2, %r4, 128;\nadd.u64 %d2, %d2, %d1;
ld.global.cg.u32 %r2, [%d2+128];\nadd.u32 %r4, %r4, 1;\nadd.u32 %r2, %r2, 1;
setp.lt.u32 %p1, %r4, 256;\n@%p1 bra AGAIN;\n";
    let body = |evict: &str| {
        format!(
            "add.u64 %d1, %out, 0;\nld.global.cg.u32 %r1, [%d1];\nadd.u32 %r1, %r1, 1;\n{evict}ld.global.cg.u32 %r3, [%d1];\nadd.u32 %r3, %r3, 1;\nst.global.u32 [%d1], %r3;\n"
        )
    };
    let found = |evict: &str, window: u32| {
        let mut bench = Bench::new(one_gigahertz("l2.slice_kb=1 l2.ways=4"));
        let (out, b) = (bench.buffer(1 << 20, Medium::Nvm), bench.buffer(4096, Medium::Dram));
        bench.launch(&body(evict), 1, 1, (out, out, b, 0));
        let ran = bench.run_set("pmem-spec", &format!("pmem_spec.window_ns={window}"));
        assert_eq!(ran.u32s(out, 1), [1]);
        ran.assembly.scheme_report().unwrap()["load_mis_speculations"].clone()
    };
    let once = serde_json::json!({ "detected": 1, "false_positives": 1 });
    assert_eq!(found(evict, 1_000_000), once, "a false positive: the load was right");
    let none = serde_json::json!({ "detected": 0, "false_positives": 0 });
    assert_eq!(found(evict, 20), none, "no store is so late on our paths");
    assert_eq!(found("", 1_000_000), none);
}

#[test]
fn pmem_spec_detects_stores_of_two_cores_against_the_order_of_their_locks() {
    // CTA 0 takes the lock first and stores last.
    let acquire = "atom.global.add.u32 %r1, [%b], 1;\nadd.u32 %r1, %r1, 1;\n";
    let found = |first_stores_late: bool| {
        let (late, early) = (pause("LATE", 9000), pause("EARLY", 1000));
        let first = if first_stores_late { &late } else { &early };
        let body = format!(
            "setp.eq.u32 %p0, %cta, 1;\n@%p0 bra SECOND;\n{acquire}{first}st.global.u32 [%out], %r1;\nbra DONE;\nSECOND:\n{}{acquire}{}st.global.u32 [%out+4], %r1;\nDONE:\n",
            pause("BEFORE", 3000),
            pause("BETWEEN", 2000)
        );
        let mut bench = Bench::new(one_gigahertz(""));
        let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
        bench.launch(&body, 2, 1, (out, out, b, 0));
        let report = bench.run_set("pmem-spec", "").assembly.scheme_report().unwrap();
        assert_eq!(report["acquires"], 2);
        report["store_mis_speculations"]["detected"].clone()
    };
    assert_eq!((found(true), found(false)), (1.into(), 0.into()));
}
