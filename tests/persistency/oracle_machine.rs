//! The oracle on runs of the machine itself: every scheme, every domain, and the transaction of AGPM Fig. 1 with and
//! without the barrier that its figure leaves out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::bench_machine::{Bench, machine};
use durawarp::assemble::Persistency;
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::oracle::Regions;
use durawarp::oracle::allowed::{Allowed, Budget};
use durawarp::oracle::crash::{CrashStates, Plan};
use durawarp::oracle::history::judge_history;
use durawarp::oracle::judge::{Rules, Watch, judge_actual, judge_allowed};
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::undo::{Expected, UndoRule};
use durawarp::oracle::verdict::Verdict;
use durawarp::persist::Scheme;
use durawarp::persist::image::PmImage;
use durawarp::persist::journal::Journal;
use durawarp::persist::promises::Promises;
use durawarp::persist::undo::{LogSlot, Transaction, UndoLog};
use durawarp::persist::vocab::Domain;
use durawarp::schemes::catalogue;

const CTAS: u32 = 3;
const THREADS: u32 = 64;
const DOMAINS: [(&str, Domain); 3] = [("media", Domain::Media), ("adr", Domain::Adr), ("eadr", Domain::Eadr)];

/// Undo logging of one word a thread, a CTA a transaction; `barrier` comes after the flag is durable.
fn transaction(barrier: &str) -> String {
    let flag = |label: &str, value: u32| {
        format!(
            "@!%p0 bra {label};
            mov.u32 %r1, {value};
            st.global.u32 [%d4], %r1;
            pm.clwb.global [%d4];
            pm.sfence;
            {label}:"
        )
    };
    let (begin, end) = (flag("BEGUN", 1), flag("ENDED", 2));
    format!(
        "mul.wide.u32 %d0, %id, 4;
        add.s64 %d1, %out, %d0;
        add.s64 %d2, %a, %d0;
        mul.wide.u32 %d3, %cta, 128;
        add.s64 %d4, %b, %d3;
        setp.eq.u32 %p0, %tid, 0;
        ld.global.u32 %r0, [%d1];
        pm.st.log.global.u32 [%d2], %r0;
        pm.clwb.log.global [%d2];
        pm.sfence;
        bar.sync 0;
        {begin}
        {barrier}
        add.u32 %r2, %r0, 100;
        st.global.u32 [%d1], %r2;
        pm.clwb.global [%d1];
        pm.sfence;
        bar.sync 0;
        {end}"
    )
}

/// Many threads on few lines: stores of both ways, atomics, write-backs and fences, in a loop.
const CROWD: &str = "mov.u32 %r3, 0;
    AGAIN:
    mad.lo.u32 %r4, %r3, 37, %id;
    and.b32 %r4, %r4, 255;
    mul.wide.u32 %d0, %r4, 4;
    add.s64 %d1, %out, %d0;
    st.global.u32 [%d1], %id;
    and.b32 %r5, %r4, 3;
    setp.eq.u32 %p1, %r5, 0;
    @%p1 pm.st.nt.global.u32 [%d1], %r3;
    setp.eq.u32 %p2, %r5, 1;
    @%p2 pm.clwb.global [%d1];
    and.b32 %r6, %id, 15;
    mul.wide.u32 %d2, %r6, 4;
    add.s64 %d3, %a, %d2;
    atom.global.add.u32 %r7, [%d3], 1;
    setp.eq.u32 %p3, %r5, 2;
    @%p3 pm.clwb.global [%d3];
    @%p3 pm.sfence;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p4, %r3, 8;
    @%p4 bra AGAIN;";

/// A run and where its data, log and flags are.
fn run(body: &str, overrides: &str, scheme: Arc<dyn Scheme>) -> (PmImage, Journal, [u64; 3]) {
    let mut bench = Bench::new(machine("agpm-table4", overrides));
    let words = u64::from(CTAS * THREADS);
    let [data, log, flag] = [1024, words * 4, 128 * u64::from(CTAS)].map(|bytes| bench.buffer(bytes, Medium::Nvm));
    bench.put_u32s(data, &(1..=words as u32).collect::<Vec<_>>());
    bench.launch(body, CTAS, THREADS, (data, log, flag, 0));
    let memory = bench.image();
    let end = memory.ranges().map(|(start, bytes)| start + bytes.len() as u64).max().expect("buffers");
    let mut initial = PmImage::new(data, vec![0; (end - data) as usize]);
    for (start, bytes) in memory.ranges().filter(|(start, _)| *start >= data) {
        initial.write(start, bytes).expect("inside");
    }
    let ran = bench.run_under(&Persistency { scheme, journal: true, ..Persistency::default() }, &RunOptions::default());
    assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
    (initial, ran.assembly.journal(), [data, log, flag])
}

#[test]
fn the_history_of_every_scheme_in_every_domain_is_without_fault() {
    for scheme in catalogue::all() {
        // Regions need queues that survive and caches that do not.
        let fits = |domain: Domain| scheme.regions().is_none() || domain == Domain::Adr;
        for (name, domain) in DOMAINS.into_iter().filter(|&(_, domain)| fits(domain)) {
            for (body, l2) in [(CROWD.to_owned(), "l2.slice_kb=2"), (transaction(""), "l2.slice_kb=128")] {
                let overrides = format!("persist.domain={name} {l2}");
                let (initial, journal, _) = run(&body, &overrides, scheme.clone());
                let promises = scheme.promises();
                let order = RunOrder::new(&journal, &initial, Model { domain, promises });
                assert_eq!(order.faults(), [], "{} {overrides}", scheme.name());
                let states = CrashStates::new(&journal, &initial, domain).expect("all inside");
                let found = judge_history(&states, &order, 3);
                assert_eq!(found.failures, [], "{} {overrides}", scheme.name());
                // Regions have a history of their own (`crash_regions.rs`).
                let none = scheme.name() == "base" || scheme.regions().is_some();
                assert!(found.points > 0 || none, "{} {overrides}: nothing happened", scheme.name());
            }
        }
    }
}

/// Both levels on the transaction of AGPM Fig. 1.
fn judge(barrier: &str, scheme: &str) -> [Verdict; 2] {
    let (initial, journal, [data, log, flag]) =
        run(&transaction(barrier), "", catalogue::find(scheme).expect("a scheme"));
    let word = |cta: u32, at: u32| u64::from(cta * THREADS + at) * 4;
    let transaction = |cta: u32| {
        let slot = |at: u32| LogSlot { home: data + word(cta, at), log: log + word(cta, at), bytes: 4 };
        let slots = (0..THREADS).map(slot).collect();
        Transaction { launch: 0, cta: Some(cta), flag: flag + 128 * u64::from(cta), slots }
    };
    let words = |cta: u32, more: u32| {
        (1..=THREADS).flat_map(|at| (cta * THREADS + at + more).to_le_bytes()).collect::<Vec<u8>>()
    };
    let expected = (0..CTAS).map(|cta| Expected { old: words(cta, 0), new: words(cta, 100) }).collect();
    let rule = UndoRule::new(UndoLog { transactions: (0..CTAS).map(transaction).collect() }, expected, true);
    let domain = Domain::Adr;
    let order = RunOrder::new(&journal, &initial, Model { domain, promises: Promises::NONE });
    let states = CrashStates::new(&journal, &initial, domain).expect("all inside");
    let regions = Regions::of(rule.log());
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, progress: &|_, _| {} };
    let rules = Rules { undo: Some(&rule), keep: 5, launches: 1, ..Rules::default() };
    let actual = judge_actual(&states, &order, &rules, &regions, Plan::All, 0, &watch).expect("all points");
    [actual, judge_allowed(&Allowed::new(&order, &initial, regions, Budget::default()), &rules, &watch)]
}

#[test]
fn the_transaction_of_agpm_figure_1_needs_a_barrier_after_its_flag() {
    for scheme in ["store+clwb", "nt-store"] {
        let [actual, allowed] = judge("bar.sync 0;", scheme);
        assert_eq!((actual.failures, allowed.failures), (vec![], vec![]), "{scheme}");
        let [_, allowed] = judge("", scheme);
        let witness = allowed.failures[0].witness.as_ref().expect("a witness");
        let (missing, present) = (witness.missing.as_ref().expect("a flag"), witness.present.as_ref().expect("data"));
        assert_eq!((missing.role.as_str(), present.role.as_str()), ("flag", "data"), "{scheme}");
        assert_eq!((missing.cta, missing.warp, present.warp), (present.cta, 0, 1), "{scheme}");
    }
}

#[test]
fn without_logs_and_write_backs_the_model_allows_what_cannot_be_recovered() {
    let [_, allowed] = judge("bar.sync 0;", "base");
    assert!(!allowed.holds());
}
