//! Schemes whose barriers order and do not wait, on machines whose L1s combine stores: what leaves when, who waits for what,
//! and that everything gets on with one entry of each thing.

use crate::bench_machine::{Bench, Ran, machine};
use std::sync::Arc;

use durawarp::assemble::Persistency;
use durawarp::crash::CrashRequest;
use durawarp::engine::RunOptions;
use durawarp::kernel::memory::Medium;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::{CrashStates, Plan};
use durawarp::oracle::history::judge_history;
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::verdict::{Property, Verdict};
use durawarp::persist::promises::Promises;
use durawarp::persist::{
    Admission, Domain, Fact, FactKind, FenceKind, FenceRule, Handler, HandlerPlace, NonTemporalOrder, Outbox, PmImage,
    Route, Scheme, SmHandler, SmInterests, SmOffer, Store, StoreRule,
};
use durawarp::run::Experiment;

/// Schemes, with what is set.
const SCHEMES: [(&str, &str); 3] = [("epoch-tag", ""), ("epoch-tag", "epoch_tag.levels=l1"), ("sbrp", "")];
/// An L2 of 16 lines.
const SMALL_L2: &str = "l2.slice_kb=1 l2.ways=2";
/// Those whose lines are in order as they are performed.
const BEFORE_THE_L2: [(&str, &str); 2] = [SCHEMES[1], SCHEMES[2]];

/// `ctas` of `threads` on `scoped-table2`, with `%out` and `%a` in persistent memory and `%b` in DRAM.
fn bench(overrides: &str, ctas: u32, threads: u32, body: &str) -> (Bench, [u64; 3]) {
    let mut bench = Bench::new(machine("scoped-table2", overrides));
    let [out, a, b] = [Medium::Nvm, Medium::Nvm, Medium::Dram].map(|medium| bench.buffer(65536, medium));
    bench.launch(body, ctas, threads, (out, a, b, 0));
    (bench, [out, a, b])
}

fn facts(ran: &Ran, kind: FactKind) -> Vec<Fact> {
    ran.assembly.journal().facts().iter().copied().filter(|fact| fact.kind == kind).collect()
}

/// When a line was first the subject of a fact.
fn first(ran: &Ran, kind: FactKind, line: u64) -> u64 {
    facts(ran, kind).iter().find(|fact| fact.line == line).unwrap_or_else(|| panic!("{kind:?} of {line:#x}")).time
}

fn tally(ran: &Ran, wanted: &str) -> u64 {
    let mut sum = 0;
    ran.assembly.sms().for_each(|sm| sm.tally(&mut |name, count| sum += if name == wanted { count } else { 0 }));
    sum
}

/// P0, P2 and P9 hold along the run; how many states it left.
fn judged(bench: &Bench, ran: &Ran, scheme: (&str, &str)) -> u64 {
    let order = if scheme == SCHEMES[0] { NonTemporalOrder::EpochsInCaches } else { NonTemporalOrder::Epochs };
    let found = history(bench, ran, order);
    assert_eq!(found.failures, []);
    found.points
}

fn history(bench: &Bench, ran: &Ran, non_temporal: NonTemporalOrder) -> Verdict {
    let memory = bench.image();
    let nvm = || memory.ranges().filter(|(start, _)| Medium::of(*start) == Medium::Nvm);
    let start = nvm().map(|(start, _)| start).min().unwrap();
    let end = nvm().map(|(start, bytes)| start + bytes.len() as u64).max().unwrap();
    let initial = PmImage::new(start, vec![0; (end - start) as usize]);
    let journal = ran.assembly.journal();
    let domain = ran.spec.persist.domain;
    let promises = Promises { non_temporal, ..Promises::NONE };
    let order = RunOrder::new(&journal, &initial, Model { domain, promises });
    assert_eq!(order.faults(), []);
    let states = CrashStates::new(&journal, &initial, domain).unwrap();
    judge_history(&states, &order, 3)
}

/// Two stores of one thread with something between.
fn pair(between: &str) -> String {
    format!(
        "setp.ne.u32 %p0, %id, 0;\n@%p0 exit;\nmov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\n{between}\n\
         st.global.u32 [%a], %r1;\n"
    )
}

#[test]
fn a_line_is_sent_only_when_the_older_epoch_is_acknowledged() {
    for (scheme, set) in BEFORE_THE_L2 {
        for barrier in ["pm.sfence;", "pm.ofence;", "pm.barrier.wi;", "pm.barrier.wg;"] {
            for domain in ["adr", "media"] {
                let (bench, [out, a, _]) = bench(&format!("persist.domain={domain}"), 1, 1, &pair(barrier));
                let ran = bench.run_set(scheme, set);
                let durable = if domain == "adr" { FactKind::Accepted } else { FactKind::AtMedia };
                let settled = facts(&ran, FactKind::FenceSettled);
                assert_eq!(settled.len(), 1, "{scheme} {barrier}");
                assert!(first(&ran, durable, out) < settled[0].time, "{scheme} {barrier}");
                assert!(settled[0].time <= first(&ran, FactKind::Cleaned, a), "{scheme} {barrier}");
                assert_eq!(judged(&bench, &ran, (scheme, set)), 2);
            }
            let (without, [out, a, _]) = self::bench("", 1, 1, &pair(""));
            let ran = without.run_set(scheme, set);
            assert!(
                first(&ran, FactKind::Cleaned, a) < first(&ran, FactKind::Accepted, out),
                "{scheme}: no order asked"
            );
        }
    }
}

/// With tags in the L2 a line goes there when the older epoch is there, and is written when that is durable.
#[test]
fn the_l2_keeps_the_order_on_and_writes_nothing_that_nobody_waits_for() {
    for barrier in ["pm.sfence;", "pm.ofence;", "pm.barrier.wi;", "pm.barrier.wg;"] {
        for domain in ["adr", "media"] {
            let machine = format!("persist.domain={domain}");
            let (bench, [out, a, _]) = bench(&machine, 1, 1, &pair(barrier));
            let ran = bench.run_scheme("epoch-tag");
            assert!(first(&ran, FactKind::Performed, out) < first(&ran, FactKind::Cleaned, a), "{barrier}");
            assert_eq!(judged(&bench, &ran, SCHEMES[0]), 0, "both are dirty in the L2");
            let (bench, [out, a, _]) = self::bench(&machine, 1, 1, &format!("{}pm.dfence;", pair(barrier)));
            let ran = bench.run_scheme("epoch-tag");
            let durable = if domain == "adr" { FactKind::Accepted } else { FactKind::AtMedia };
            // Where cells are waited for, the second line comes to the L2 meanwhile.
            let comes = first(&ran, FactKind::Performed, a) < first(&ran, durable, out);
            assert!(comes || domain == "adr", "{barrier}");
            assert!(first(&ran, durable, out) < first(&ran, FactKind::Accepted, a), "{barrier}");
            assert_eq!(judged(&bench, &ran, SCHEMES[0]), 2);
        }
    }
}

#[test]
fn an_atomic_behind_a_fence_is_performed_when_what_is_before_is_durable() {
    let body = pair("pm.sfence;\natom.global.add.u32 %r2, [%a+1024], 1;");
    for (scheme, set) in SCHEMES {
        let (bench, [out, a, _]) = bench("persist.domain=media", 1, 1, &body);
        let ran = bench.run_set(scheme, set);
        assert!(first(&ran, FactKind::AtMedia, out) < first(&ran, FactKind::Performed, a + 1024), "{scheme}");
        // The last store stays in the L2.
        let durable = if (scheme, set) == SCHEMES[0] { 2 } else { 3 };
        assert_eq!(judged(&bench, &ran, (scheme, set)), durable, "{scheme}");
    }
}

#[test]
fn a_fence_of_order_does_not_wait_and_one_of_durability_does() {
    let waits = |scheme: &str, fence: &str| {
        let body = format!(
            "mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\nmov.u64 %d2, %clock64;\n{fence}\nmov.u64 %d3, %clock64;\n\
             sub.u64 %d4, %d3, %d2;\nst.global.u64 [%b], %d4;\n"
        );
        let (bench, [.., b]) = bench("", 1, 1, &body);
        bench.run_scheme(scheme).u64s(b, 1)[0]
    };
    for (scheme, _) in SCHEMES {
        for fence in ["pm.sfence;", "pm.ofence;", "pm.barrier.wi;", "pm.rel.cta;"] {
            assert_eq!(waits(scheme, fence), waits("base", fence), "{scheme} {fence}");
        }
        assert!(waits(scheme, "pm.dfence;") > 100, "{scheme}");
    }
    assert!(waits("sbrp", "pm.rel.gpu;") > 100);
    assert!(waits("nvw-fifo", "pm.sfence;") > 100, "which waits at every fence");
}

/// Each thread stores a word of a line of its own in `rounds` epochs, all warps meeting at a barrier between.
fn rounds(barrier: &str, rounds: u32) -> String {
    format!(
        "mov.u32 %r3, 0;\nmul.wide.u32 %d0, %id, 4;\nadd.u64 %d1, %out, %d0;\nadd.u64 %d2, %a, %d0;\n\
         AGAIN:\nadd.u32 %r4, %r3, %id;\nst.global.u32 [%d1], %r4;\n{barrier}\nst.global.u32 [%d2], %r4;\n{barrier}\n\
         add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p4, %r3, {rounds};\n@%p4 bra AGAIN;\n"
    )
}

#[test]
fn epochs_of_ctas_and_kernels_persist_in_order_without_a_wait_for_durability() {
    for (scheme, set) in SCHEMES {
        for barrier in ["pm.barrier.wi;", "pm.barrier.wg;", "pm.barrier.kr;", "pm.sfence;\nbar.sync 0;"] {
            // The second L2 has 16 lines, so that it evicts.
            for (l2, least) in [("", if (scheme, set) == SCHEMES[0] { 0 } else { 100 }), (SMALL_L2, 100)] {
                let (bench, [out, ..]) = bench(l2, 6, 256, &rounds(barrier, 3));
                let ran = bench.run_set(scheme, set);
                let points = judged(&bench, &ran, (scheme, set));
                assert!(points >= least, "{scheme} {set} {barrier} {l2}: {points}");
                assert_eq!(ran.u32s(out, 1536), (2..1538).collect::<Vec<_>>(), "{scheme} {set} {barrier} {l2}");
            }
        }
    }
}

/// What the barrier does not wait for, its warps do not: loads behind it need not wait for persists before it.
#[test]
fn work_behind_a_barrier_hides_what_persists_before_it() {
    let body = "mul.wide.u32 %d0, %id, 4;
        add.u64 %d1, %out, %d0;
        add.u64 %d2, %b, %d0;
        st.global.u32 [%d1], %id;
        pm.barrier.wg;
        mov.u32 %r3, 0;
        AGAIN:
        ld.global.cg.u32 %r4, [%d2];
        add.u32 %r3, %r3, 1;
        add.u32 %r3, %r3, %r4;
        setp.lt.u32 %p4, %r3, 8;
        @%p4 bra AGAIN;";
    let ticks = |scheme: &str, set: &str| bench("", 4, 256, body).0.run_set(scheme, set).ticks(0);
    let waiting = ticks("nvw-fifo", "");
    for (scheme, set) in SCHEMES {
        assert!(ticks(scheme, set) < waiting, "{scheme} {set}: {} {waiting}", ticks(scheme, set));
    }
}

#[test]
fn one_entry_of_each_thing_is_enough() {
    let small = "l1.sfifo_entries=1 l1.miss_queue_entries=3 sm.count=2 l2.slice_kb=1 l2.ways=2 l2.mshr_entries=4";
    for (scheme, sets) in [
        ("epoch-tag", ""),
        ("epoch-tag", "epoch_tag.levels=l1"),
        ("sbrp", "sbrp.window=1"),
        ("sbrp", "sbrp.pb_entries=1"),
        ("sbrp", "sbrp.pb_entries=1 sbrp.window=1"),
    ] {
        for barrier in ["pm.barrier.wi;", "pm.barrier.wg;", "pm.sfence;\nmembar.gl;"] {
            let (bench, [out, ..]) = bench(small, 4, 128, &rounds(barrier, 2));
            let ran = bench.run_set(scheme, sets);
            assert!(judged(&bench, &ran, (scheme, sets)) > 30, "{scheme} {sets} {barrier}");
            assert_eq!(ran.u32s(out, 512), (1..513).collect::<Vec<_>>(), "{scheme} {sets} {barrier}");
        }
    }
}

#[test]
fn a_wider_window_is_no_slower_and_a_small_buffer_keeps_stores_back() {
    let run = |sets: &str| bench("", 4, 256, &rounds("", 4)).0.run_set("sbrp", sets);
    let [one, six, many] = ["sbrp.window=1", "", "sbrp.window=64"].map(|sets| run(sets).ticks(0));
    assert!(one > six && six >= many, "{one} {six} {many}");
    let full = |sets| tally(&run(sets), "pb_full_stores");
    assert!(full("sbrp.pb_entries=2") > 0 && full("") == 0);
}

/// Threads of all CTAs on few lines: stores, loads of other bytes of the line, atomics, fences of every kind.
const CROWD: &str = "mov.u32 %r3, 0;
    AGAIN:
    mad.lo.u32 %r4, %r3, 37, %id;
    and.b32 %r4, %r4, 255;
    mul.wide.u32 %d0, %r4, 4;
    add.s64 %d1, %out, %d0;
    st.global.u32 [%d1], %id;
    and.b32 %r5, %r4, 7;
    setp.eq.u32 %p1, %r5, 0;
    @%p1 pm.st.nt.global.u32 [%d1], %r3;
    setp.eq.u32 %p2, %r5, 1;
    @%p2 pm.clflushopt.global [%d1];
    xor.b32 %r8, %r4, 32;
    mul.wide.u32 %d4, %r8, 4;
    add.s64 %d5, %out, %d4;
    ld.global.ca.u32 %r9, [%d5];
    ld.global.cg.u32 %r9, [%d1];
    and.b32 %r6, %id, 15;
    mul.wide.u32 %d2, %r6, 4;
    add.s64 %d3, %out, %d2;
    atom.global.add.u32 %r7, [%d3], 1;
    setp.eq.u32 %p3, %r5, 2;
    @%p3 pm.sfence;
    setp.eq.u32 %p5, %r5, 3;
    @%p5 pm.dfence;
    setp.eq.u32 %p6, %r5, 4;
    @%p6 membar.gl;
    setp.eq.u32 %p7, %r5, 5;
    @%p7 pm.rel.cta;
    @%p7 pm.acq.gpu;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p4, %r3, 6;
    @%p4 bra AGAIN;";

#[test]
fn a_crowd_on_few_lines_gets_on_and_keeps_every_order() {
    let small = format!("l1.sfifo_entries=2 l1.kb=1 l1.ways=2 {SMALL_L2}");
    for (scheme, set) in SCHEMES {
        for overrides in
            ["", &small, "l2.slices=4 l2.slice_kb=1 l2.ways=2", "persist.domain=media", "persist.domain=eadr"]
        {
            let (bench, _) = bench(overrides, 5, 128, CROWD);
            let ran = bench.run_set(scheme, set);
            judged(&bench, &ran, (scheme, set));
            assert!(ran.spec.persist.domain == Domain::Eadr || !facts(&ran, FactKind::Accepted).is_empty(), "{scheme}");
        }
    }
}

/// With undo logs under `pm.sfence`, which only orders here: recovery makes every state right, at every level.
#[test]
fn transactions_survive_on_a_combining_l1() {
    for (scheme, set) in SCHEMES {
        for (workload, domain) in [("atax", "media"), ("histogram", "adr"), ("vecadd", "eadr")] {
            let recipe = Experiment::of(workload).machine("scoped-table2").scheme(scheme).profile("ci");
            // An L2 that evicts: else all of these programs stay in it.
            let recipe =
                recipe.set("sm.count", 3).set("persist.domain", domain).set("l2.slice_kb", 2).set("l2.ways", 4);
            let recipe = set.split_once('=').into_iter().fold(recipe, |recipe, (key, value)| recipe.set(key, value));
            let budget = Budget { instants: 20, boundaries: 60, product: 64, random: 16, ..Budget::default() };
            let request = CrashRequest {
                plan: Plan::Count(150),
                allowed: Some(budget),
                overtaking: 200,
                ..CrashRequest::default()
            };
            let report = recipe.crash(&request).unwrap_or_else(|faults| panic!("{faults}"));
            for (level, judgement) in report.judgements() {
                let found = judgement.found.first();
                assert!(judgement.verdict.holds(), "{scheme} {workload} {domain}, {level}: {found:?}");
            }
            assert!(report.holds() && report.transactions > 0, "{scheme} {workload} {domain}");
        }
    }
}

/// A scheme that says it orders what leaves, and lets every line go at once.
#[derive(Debug)]
struct Disorder;

impl Handler for Disorder {}

impl SmHandler for Disorder {
    fn interests(&self) -> SmInterests {
        SmInterests { persist_order: true, ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, outbox: &mut Outbox) -> Admission {
        if let SmOffer::Join(store) = offer {
            outbox.persist(store.line, store.number);
        }
        Admission::Goes
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        StoreRule::new(Route::NonTemporal, store.atomic)
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        FenceRule::Ordered
    }
}

impl Scheme for Disorder {
    fn name(&self) -> &'static str {
        "disorder"
    }

    fn description(&self) -> &'static str {
        "a fault"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(Disorder))
    }

    fn promises(&self) -> Promises {
        Promises { non_temporal: NonTemporalOrder::Epochs, ..Promises::NONE }
    }

    fn logs(&self) -> bool {
        true
    }
}

#[test]
fn a_site_that_lets_lines_go_out_of_order_is_found() {
    // At a barrier of the kernel the machine itself has every line leave the L1, so that other CTAs see it.
    for barrier in ["pm.barrier.wi;", "pm.barrier.wg;"] {
        let (bench, _) = bench("", 6, 256, &rounds(barrier, 3));
        let under = Persistency { scheme: Arc::new(Disorder), journal: true, ..Persistency::default() };
        let ran = bench.run_under(&under, &RunOptions::default());
        let found = history(&bench, &ran, NonTemporalOrder::Epochs);
        assert!(found.failures.iter().any(|failure| failure.property == Property::Scope), "{barrier}: {found:?}");
    }
}
