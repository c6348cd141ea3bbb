//! Where persists wait, as a data sheet: an unloaded persist's stages are the configured latencies, a loaded one's show
//! the queue that it waited in; and the histogram that they are kept in.

use crate::bench_machine::{Bench, Ran, one_gigahertz};
use durawarp::assemble::Persistency;
use durawarp::engine::RunOptions;
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::machine::stalls::{PersistStalls, STAGES};
use durawarp::persist::FactKind;
use durawarp::schemes::catalogue;
use durawarp::stats::Histogram;
use proptest::prelude::*;

/// One CTA of `block` threads; `%out` in persistent memory, `%b` in DRAM.
fn bench(overrides: &str, block: u32, body: &str) -> Bench {
    let mut bench = Bench::new(one_gigahertz(overrides));
    let out = bench.buffer(1 << 20, Medium::Nvm);
    let b = bench.buffer(4096, Medium::Dram);
    bench.launch(body, 1, block, (out, out, b, 0));
    bench
}

/// The sum of a stage, in ns at 1 GHz.
fn sum(stalls: &PersistStalls, stage: &str) -> u64 {
    stalls.stages[STAGES.iter().position(|(name, _)| *name == stage).expect("a stage")].sum()
}

/// Stalls of a run, checked: the stages' sums add up, all are counted alike.
fn stalls(ran: &Ran) -> PersistStalls {
    let stalls = ran.assembly.persist_stalls();
    assert_eq!(stalls.stages.iter().map(Histogram::sum).sum::<u64>(), stalls.total.sum(), "stages add up");
    assert!(stalls.stages.iter().all(|stage| stage.count() == stalls.total.count()));
    assert_eq!(stalls.total.count(), ran.sm("persists"), "every persist is booked once");
    stalls
}

/// Stages of the only persist of a kernel, in order.
fn only(overrides: &str, body: &str) -> (Vec<u64>, PersistStalls, MachineSpec) {
    let ran = bench(overrides, 1, body).run_scheme("store+clwb");
    let stalls = stalls(&ran);
    assert_eq!(stalls.total.count(), 1);
    (stalls.stages.iter().map(Histogram::sum).collect(), stalls, ran.spec)
}

const THROUGH: &str = "mov.u32 %r1, 7;\npm.st.nt.global.u32 [%out], %r1;\npm.sfence;\n";

#[test]
fn an_unloaded_persist_takes_the_configured_latencies() {
    let longer = "l1.miss_cycles=11 l2.pipeline_cycles=13 crossbar.latency_cycles=7 l1.fill_cycles=5 controller.front_ns=30 controller.back_ns=17";
    for overrides in ["", longer] {
        let (found, stalls, s) = only(overrides, THROUGH);
        let ns = |nanos: durawarp::spec::Nanos| nanos.ps / 1000;
        let crossbar = u64::from(s.crossbar.latency_cycles);
        let expected = [
            1,                                                                     // the load-store unit's turn
            1 + u64::from(s.l1.miss_cycles),                                       // one flit
            crossbar,                                                              //
            u64::from(s.l2.pipeline_cycles),                                       //
            ns(s.controller.front_ns),                                             //
            0,                                                                     // ADR: durable when accepted
            ns(s.controller.back_ns) + 1 + crossbar + u64::from(s.l1.fill_cycles), // one flit back
        ];
        assert_eq!(found, expected, "{overrides}");
        // The fence issues a cycle after the store and waits from the cycle behind it.
        assert_eq!(stalls.fences.sum(), stalls.total.sum() - 2);
        assert_eq!((stalls.fences.count(), stalls.fences.percentile(50)), (1, stalls.fences.sum()));
    }
}

#[test]
fn a_write_back_takes_the_same_way_and_waits_in_the_slice_for_the_store_before_it() {
    let body = "mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\npm.clwb.global [%out];\npm.sfence;\n";
    let (through, ..) = only("", THROUGH);
    let (found, ..) = only("", body);
    assert_eq!(found, through);
    // Nothing to write: neither a controller nor the media on its way.
    let again = "mov.u32 %r1, 7;\npm.clwb.global [%out];\npm.sfence;\n";
    let (clean, _, spec) = only("", again);
    let back = spec.controller.back_ns.ps / 1000;
    assert_eq!((clean[..4].to_vec(), clean[4], clean[5], clean[6]), (through[..4].to_vec(), 0, 0, through[6] - back));
}

#[test]
fn the_domain_decides_which_stage_ends_the_way() {
    let (adr, ..) = only("", THROUGH);
    let (eadr, _, spec) = only("persist.domain=eadr", THROUGH);
    let back = spec.controller.back_ns.ps / 1000;
    assert_eq!((eadr[4], eadr[5], eadr[6]), (0, 0, adr[6] - back), "the slice answers at once");
    let media = |overrides: &str| only(&format!("persist.domain=media {overrides}"), THROUGH).0;
    let usual = media("");
    assert_eq!((usual[..5].to_vec(), usual[6]), (adr[..5].to_vec(), adr[6]));
    assert!(usual[5] >= 480, "{usual:?}");
    assert_eq!(media("nvm.cell_write_ns=580")[5], usual[5] + 100);
    // What the controller's own journal says.
    let ran = bench("persist.domain=media", 1, THROUGH).run_scheme("store+clwb");
    let journal = ran.assembly.journal();
    let at = |kind| journal.facts().iter().find(|fact| fact.kind == kind).expect("noted").time;
    assert_eq!(usual[5], at(FactKind::AtMedia) - at(FactKind::Accepted));
}

/// A warp that writes `lines` lines, `apart` bytes apart, around the caches, on a machine of one channel.
fn lines(overrides: &str, lines: u32, apart: u32) -> PersistStalls {
    let body = format!(
        "mul.wide.u32 %d0, %tid, {apart};\nadd.u64 %d1, %out, %d0;\npm.st.nt.global.u32 [%d1], %tid;\npm.sfence;\n"
    );
    let overrides = format!("controller.channels=1 l2.slices=1 {overrides}");
    stalls(&bench(&overrides, lines, &body).run_scheme("nt-store"))
}

#[test]
fn persists_to_one_bank_queue_for_its_media() {
    let one = lines("persist.domain=media nvm.write_mode=through nvm.banks=1", 1, 2048);
    let sixteen = lines("persist.domain=media nvm.write_mode=through nvm.banks=1", 16, 4096);
    let media = |stalls: &PersistStalls| sum(stalls, "media");
    let cells = 480;
    // The k-th waits for k writes of its bank before it.
    assert!(media(&sixteen) >= 16 * media(&one) + cells * (0..16).sum::<u64>(), "{} {}", media(&sixteen), media(&one));
    let stage = &sixteen.stages[5];
    assert!(stage.max() >= 16 * cells && stage.percentile(50) >= 8 * cells);
    assert!(sum(&sixteen, "accept") <= 16 * (sum(&one, "accept") + 16), "the WPQ took them all at once");
    let spread = lines("persist.domain=media nvm.write_mode=through nvm.banks=16", 16, 4096 + 2048);
    assert!(media(&spread) < media(&sixteen) / 4, "{} on many banks", media(&spread));
}

#[test]
fn a_full_write_pending_queue_shows_in_acceptance() {
    let small = "controller.write_queue_entries=2 controller.drain_high_entries=2 controller.drain_low_entries=0 controller.drain_min_writes=1 nvm.write_mode=through nvm.banks=1";
    let one = lines(small, 1, 4096);
    assert_eq!(sum(&one, "media"), 0, "ADR");
    let sixteen = lines(small, 16, 4096);
    assert_eq!(sum(&sixteen, "media"), 0, "ADR");
    // All but the two with an entry, and the one that takes the first's, wait for cells to be written.
    let accept = &sixteen.stages[4];
    assert!(accept.max() >= 12 * 480, "{}", accept.max());
    assert_eq!(accept.min(), sum(&one, "accept"), "the first waits for nobody");
    let wide = lines("nvm.write_mode=through nvm.banks=1", 16, 4096);
    assert!(sum(&wide, "accept") * 10 < accept.sum(), "a WPQ with room: {}", sum(&wide, "accept"));
}

#[test]
fn strict_stores_wait_and_epochs_end_at_boundaries() {
    let body = "mov.u32 %r1, 7;\nst.global.u32 [%out], %r1;\nst.global.u32 [%out+512], %r1;\n";
    let of = |scheme: &str| stalls(&bench("", 1, body).run_scheme(scheme));
    let base = of("base");
    assert_eq!(base, PersistStalls::default(), "nothing persists, nothing is kept");
    let strict = of("strict");
    assert_eq!((strict.total.count(), strict.fences.count(), strict.boundaries.count()), (2, 2, 0));
    for (scheme, boundaries) in [("epoch-cta", 1), ("epoch-kernel", 1)] {
        let epoch = of(scheme);
        assert_eq!((epoch.total.count(), epoch.boundaries.count()), (0, boundaries), "{scheme}");
        assert!(epoch.boundaries.sum() > 0);
    }
}

/// Four CTAs that persist all ways under contention.
fn busy() -> Bench {
    let mut bench = Bench::new(one_gigahertz("sm.count=3 persist.domain=media clock.core_mhz=1800 clock.l2_mhz=1400"));
    let out = bench.buffer(1 << 20, Medium::Nvm);
    let body = "mul.wide.u32 %d0, %id, 96;\nadd.u64 %d1, %out, %d0;\nst.global.u32 [%d1], %id;\npm.clwb.global [%d1];\npm.st.nt.global.u32 [%d1+32], %id;\npm.sfence;\nst.global.u32 [%d1+64], %id;\npm.clflushopt.global [%d1+64];\npm.sfence;\n";
    bench.launch(body, 6, 64, (out, out, out, 0));
    bench
}

#[test]
fn figures_are_the_same_at_any_number_of_threads() {
    let run = |threads: usize| {
        let scheme = catalogue::find("store+clwb").unwrap_or_else(|faults| panic!("{faults}"));
        let options = RunOptions { threads, oversubscribe: true, ..RunOptions::default() };
        let ran = busy().run_under(&Persistency { scheme, journal: false, ..Persistency::default() }, &options);
        stalls(&ran)
    };
    let one = run(1);
    assert!(one.total.count() > 500 && one.stages.iter().all(|stage| stage.sum() > 0));
    assert!(one == run(2) && one == run(3));
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

/// Values of every magnitude.
fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec((0u32..50, any::<u64>()).prop_map(|(bits, value)| value >> (63 - bits)), 0..300)
}

proptest! {
    #[test]
    fn percentiles_are_those_of_the_sorted_values_within_the_resolution(mut values in values(), percent in 1u32..=100) {
        let histogram = histogram(&values);
        values.sort_unstable();
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.sum(), values.iter().sum::<u64>());
        prop_assert_eq!(histogram.min(), values.first().copied().unwrap_or(0));
        prop_assert_eq!(histogram.max(), values.last().copied().unwrap_or(0));
        for percent in [percent, 50, 90, 99] {
            let rank = (values.len() * percent as usize).div_ceil(100).max(1);
            let exact = values.get(rank - 1).copied().unwrap_or(0);
            let found = histogram.percentile(percent);
            prop_assert!(found >= exact && found - exact <= exact / 64, "p{}: {} for {}", percent, found, exact);
        }
    }

    #[test]
    fn merging_equals_concatenation(a in values(), b in values()) {
        let both = histogram(&[a.clone(), b.clone()].concat());
        for (first, second) in [(&a, &b), (&b, &a)] {
            let mut merged = histogram(first);
            merged.add(&histogram(second));
            prop_assert!(merged == both);
        }
    }
}
