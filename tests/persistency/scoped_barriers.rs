//! Persist barriers under `nvw-fifo`, as a data sheet: who arrives, who waits, what a marker brings to durability, and
//! what the oracle makes of a scope that is too narrow.

use crate::bench_machine::{Bench, Ran, machine, one_gigahertz};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::oracle::crash::CrashStates;
use durawarp::oracle::history::{judge_claim, judge_history};
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::verdict::Property;
use durawarp::persist::promises::Promises;
use durawarp::persist::{Author, Domain, Fact, FactKind, PersistScope, PmImage};

/// `%out` in persistent memory, `%a` and `%b` in DRAM.
fn bench(overrides: &str, grid: u32, block: u32, body: &str) -> (Bench, [u64; 3]) {
    let mut bench = Bench::new(machine("scoped-table2", overrides));
    let buffers = [Medium::Nvm, Medium::Dram, Medium::Dram].map(|medium| bench.buffer(1 << 17, medium));
    let [out, a, b] = buffers;
    bench.launch(body, grid, block, (out, a, b, 0));
    (bench, buffers)
}

/// Every thread stores to a line of its own (64 B apart), then `barrier`, then to another, 64 KiB on.
fn two_epochs(barrier: &str) -> String {
    format!(
        "mul.wide.u32 %d1, %id, 64;\nadd.u64 %d2, %out, %d1;\nst.global.u32 [%d2], %id;\n{barrier}\n\
         st.global.u32 [%d2+65536], %id;\npm.barrier.wi;\n"
    )
}

fn facts(ran: &Ran, kind: FactKind) -> Vec<Fact> {
    ran.assembly.journal().facts().iter().filter(|fact| fact.kind == kind).copied().collect()
}

/// The last time that one of these lines became durable.
fn durable_by(ran: &Ran, lines: std::ops::Range<u64>) -> u64 {
    facts(ran, FactKind::AtMedia).iter().filter(|fact| lines.contains(&fact.line)).map(|fact| fact.time).max().unwrap()
}

#[test]
fn nobody_passes_before_what_its_scope_stored_is_durable() {
    for (scope, name) in PersistScope::ALL.into_iter().zip(["wi", "wg", "kr"]) {
        let (bench, [out, ..]) = bench("", 4, 128, &two_epochs(&format!("pm.barrier.{name};")));
        let ran = bench.run_scheme("nvw-fifo");
        let passes = facts(&ran, FactKind::PersistPassed(scope));
        assert!(passes.len() >= 8, "{} warps pass", passes.len());
        for pass in passes.iter().take(8) {
            // Threads whose stores the warp has to wait for, 64 a warp, 128 a CTA.
            let Author::Warp { cta, warp, .. } = pass.author else { panic!("{pass:?}") };
            let (first, count) = match scope {
                PersistScope::Thread => (cta * 128 + u32::from(warp) * 64, 64),
                PersistScope::Cta => (cta * 128, 128),
                PersistScope::Kernel => (0, 512),
            };
            let lines = out + u64::from(first) * 64..out + u64::from(first + count) * 64;
            assert!(durable_by(&ran, lines) <= pass.time, "{name}");
        }
    }
}

#[test]
fn a_marker_finds_no_entry_of_a_line_that_the_s_fifo_had_cleaned() {
    // 40 lines; the S-FIFO holds 8 and has the others cleaned early, before the NVW-FIFO of 16 is full.
    let stores: String = (0..40).map(|n| format!("st.global.u32 [%out+{}], %tid;\n", 64 * n)).collect();
    let (bench, _) = bench("l1.sfifo_entries=8", 1, 1, &format!("{stores}pm.barrier.wg;\n"));
    let ran = bench.run_scheme("nvw-fifo");
    let counts = ["l1_wg_own_entries", "l1_evicted_entries", "l1_early_entries"].map(|name| ran.scheme(name));
    assert_eq!((counts, ran.sm("l1_cleanings_early")), ([8, 32, 0], 32));
}

#[test]
fn a_line_whose_store_waits_for_a_fill_is_written_when_a_full_fifo_has_asked_for_it() {
    // The first line's fill, for the load, is under way when the store to it comes to the L2, and when the next
    // line takes its entry in the FIFO.
    let stores: String = (0..4).map(|n| format!("st.global.u32 [%out+{}], %r2;\n", 64 * n)).collect();
    let body = format!("mov.u32 %r2, 7;\nld.global.cg.u32 %r1, [%out+32];\n{stores}pm.barrier.wi;\n");
    let (bench, [out, ..]) = bench("", 1, 1, &body);
    let ran = bench.run_set("nvw-fifo", "nvw_fifo.l1_entries=1 nvw_fifo.l2_entries=1");
    let performed = facts(&ran, FactKind::Performed);
    let [first, last] = [out, out + 64].map(|line| performed.iter().find(|fact| fact.line == line).unwrap().time);
    assert!(first > last, "it waited for the fill");
    let passes = facts(&ran, FactKind::PersistPassed(PersistScope::Thread));
    assert!(durable_by(&ran, out..out + 64) <= passes[0].time);
}

#[test]
fn a_cta_waits_for_its_own_warps_and_a_kernel_for_every_cta() {
    // CTA 3 comes late: when does CTA 0 pass?
    let late = "setp.ne.u32 %p1, %cta, 3;\n@%p1 bra GO;\nmov.u32 %r20, 2000;\nWAIT:\nsub.u32 %r20, %r20, 1;\n\
        setp.gt.s32 %p5, %r20, 0;\n@%p5 bra WAIT;\nGO:\n";
    let times = |barrier: &str| {
        let (bench, _) = bench("", 4, 128, &format!("{late}{}", two_epochs(barrier)));
        let ran = bench.run_scheme("nvw-fifo");
        let of =
            |kind, cta: u32| facts(&ran, kind).iter().find(|fact| fact.author.cta() == Some((0, cta))).unwrap().time;
        let scope = if barrier.contains("wg") { PersistScope::Cta } else { PersistScope::Kernel };
        (of(FactKind::PersistPassed(scope), 0), of(FactKind::PersistReached(scope), 3))
    };
    let (passed, reached) = times("pm.barrier.wg;");
    assert!(passed < reached, "{passed} {reached}");
    let (passed, reached) = times("pm.barrier.kr;");
    assert!(passed > reached, "{passed} {reached}");
}

#[test]
fn a_marker_waits_for_fills_that_hold_stores_back() {
    // L1s do not combine here: a store meets the fill of its line, which a load has asked for, in the L2.
    let (load, store) = ("ld.global.cg.u32 %r2, [%out+4];\n", "st.global.u32 [%out], %r1;\n");
    let again = "ld.global.cg.u32 %r3, [%out];\nst.global.u32 [%b], %r3;\nst.global.u32 [%b+4], %r2;\n";
    // The marker comes at any time of the fill, also after the media have answered it.
    for (pause, first) in (0..25).flat_map(|pause| [(pause, load), (pause, store)]) {
        let second = if first == load { store } else { load };
        let pause = "add.u32 %r4, %r4, 1;\n".repeat(pause);
        let body = format!("mov.u32 %r1, 7;\nmov.u32 %r4, 0;\n{first}{second}{pause}pm.barrier.wi;\n{again}");
        let mut bench = Bench::new(one_gigahertz("sm.count=1"));
        let (out, b) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
        bench.put_u32s(out, &[5; 32]);
        bench.launch(&body, 1, 1, (out, out, b, 0));
        let ran = bench.run_scheme("nvw-fifo");
        let passed = facts(&ran, FactKind::PersistPassed(PersistScope::Thread))[0].time;
        let accepted = facts(&ran, FactKind::Accepted);
        assert_eq!(accepted.len(), 1, "{body}");
        assert!(accepted[0].line == out && accepted[0].time < passed, "{accepted:?}, passed at {passed}: {body}");
        assert_eq!(ran.u32s(b, 2), [7, 5], "the fill leaves the store's bytes alone: {body}");
    }
}

#[test]
fn without_a_scheme_a_barrier_is_arrival_alone() {
    let time = |scheme: &str| bench("", 4, 256, &two_epochs("pm.barrier.kr;")).0.run_scheme(scheme).ticks(0);
    assert!(time("base") < time("nvw-fifo"));
}

#[test]
fn a_barrier_lets_other_warps_run_on() {
    // Warp 0 waits at its barrier; warp 1 counts its own cycles meanwhile.
    let body = |barrier: &str| {
        format!(
            "setp.ge.u32 %p1, %tid, 64;\n@%p1 bra OTHER;\nst.global.u32 [%out], %tid;\n{barrier}\nbra END;\nOTHER:\n\
             mov.u64 %d2, %clock64;\nadd.u32 %r1, %r1, 1;\nmov.u64 %d3, %clock64;\nsub.u64 %d4, %d3, %d2;\nst.global.u64 [%b], %d4;\nEND:\n"
        )
    };
    let cycles = |barrier: &str| {
        let (bench, [.., b]) = bench("", 1, 128, &body(barrier));
        bench.run_scheme("nvw-fifo").u64s(b, 1)[0]
    };
    assert_eq!(cycles("pm.barrier.wi;"), cycles(""));
}

#[test]
fn fifos_of_one_entry_work_and_flush_early() {
    for l2_fifo in ["shared", "per_cu"] {
        let (bench, [out, ..]) = bench("", 4, 128, &two_epochs("pm.barrier.wg;"));
        let sets = format!("nvw_fifo.l1_entries=1 nvw_fifo.l2_entries=1 nvw_fifo.l2_fifo={l2_fifo}");
        let ran = bench.run_set("nvw-fifo", &sets);
        let mut early = 0;
        let mut add = |name: &'static str, count: u64| early += if name.ends_with("early_entries") { count } else { 0 };
        ran.assembly.sms().for_each(|sm| sm.tally(&mut add));
        ran.assembly.slices().for_each(|slice| slice.tally(&mut add));
        assert!(early > 100, "{early}");
        assert_eq!(ran.u32s(out, 17)[16], 1);
        assert!(judged(&ran, out, None).is_empty());
    }
}

/// What is wrong with a run's persists, with barriers as they are or as of a scope.
fn judged(ran: &Ran, out: u64, claim: Option<PersistScope>) -> Vec<Property> {
    let journal = ran.assembly.journal();
    let initial = PmImage::new(out, vec![0; 1 << 17]);
    let states = CrashStates::new(&journal, &initial, Domain::Media).unwrap();
    let model = Model { domain: Domain::Media, promises: Promises::NONE };
    let order = RunOrder::new(&journal, &initial, model);
    let verdict = match claim {
        None => judge_history(&states, &order, 100),
        Some(claim) => judge_claim(&states, &order, claim, 100),
    };
    assert!(verdict.failures.iter().all(|failure| failure.property != Property::Scope || failure.witness.is_some()));
    verdict.failures.into_iter().map(|failure| failure.property).collect()
}

#[test]
fn equations_1_to_3_hold_for_the_scope_used_and_not_for_a_wider_one() {
    use PersistScope::{Cta, Kernel, Thread};
    for (name, scope) in [("wi", Thread), ("wg", Cta), ("kr", Kernel)] {
        let mut body = two_epochs(&format!("pm.barrier.{name};"));
        // The last barrier is of the same scope, so that a claim is about nothing else.
        body = body.replace("pm.barrier.wi;\n", &format!("pm.barrier.{name};\n"));
        // Warps come at different times.
        let body = format!(
            "shr.u32 %r20, %id, 6;\nmul.lo.u32 %r20, %r20, 40;\nWAIT:\nsub.u32 %r20, %r20, 1;\nsetp.gt.s32 %p5, %r20, 0;\n@%p5 bra WAIT;\n{body}"
        );
        let (bench, [out, ..]) = bench("", 4, 256, &body);
        let ran = bench.run_scheme("nvw-fifo");
        assert_eq!(judged(&ran, out, None), [], "{name}");
        for claim in PersistScope::ALL {
            let found = judged(&ran, out, Some(claim));
            if claim <= scope {
                assert_eq!(found, [], "{name} as {claim:?}");
            } else {
                assert!(
                    !found.is_empty() && found.iter().all(|property| *property == Property::Scope),
                    "{name} as {claim:?}"
                );
            }
        }
    }
}

#[test]
fn a_grid_that_is_not_resident_is_a_deadlock_that_says_so() {
    let (bench, _) = bench("sm.count=1 sm.ctas=2", 3, 64, "pm.barrier.kr;\n");
    let scheme = durawarp::schemes::catalogue::find("nvw-fifo").unwrap();
    let persistency =
        durawarp::assemble::Persistency { scheme, journal: false, ..durawarp::assemble::Persistency::default() };
    let ran = bench.run_under(&persistency, &RunOptions::default());
    let report = &ran.end;
    assert!(matches!(report, RunEnd::Deadlock { .. }), "{report:?}");
    let text = format!("{report:?}");
    assert!(text.contains("2 of 3 are there, and 1 have no room"), "{text}");
}

#[test]
fn exited_warps_and_ctas_are_not_waited_for() {
    // Warp 1 of each CTA, and all of CTA 3, are gone before the barriers.
    let body = "setp.ge.u32 %p1, %tid, 64;\n@%p1 bra END;\nsetp.eq.u32 %p2, %cta, 3;\n@%p2 bra END;\nst.global.u32 [%out], %tid;\n\
        pm.barrier.wg;\npm.barrier.kr;\nEND:\n";
    let (bench, _) = bench("", 4, 128, body);
    let ran = bench.run_scheme("nvw-fifo");
    assert_eq!(facts(&ran, FactKind::PersistPassed(PersistScope::Kernel)).len(), 3);
}

#[test]
fn a_power_domain_that_holds_the_l2_makes_markers_cheap() {
    let time = |domain: &str| {
        let overrides = format!("persist.domain={domain}");
        bench(&overrides, 4, 128, &two_epochs("pm.barrier.wg;")).0.run_scheme("nvw-fifo").ticks(0)
    };
    let [media, adr, eadr] = ["media", "adr", "eadr"].map(time);
    assert!(eadr < adr && adr < media, "{eadr} {adr} {media}");
}
