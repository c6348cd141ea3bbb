//! Faults of an L2 that keeps the order of epochs on: the oracle finds each in what a run made durable.

use std::sync::Arc;

use crate::bench_machine::{Bench, Ran, machine};
use crate::decorated::{Decorated, Decorator};
use durawarp::assemble::Persistency;
use durawarp::engine::{Fallback, RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::oracle::crash::CrashStates;
use durawarp::oracle::history::judge_history;
use durawarp::oracle::order::{Model, RunOrder};
use durawarp::oracle::verdict::Property;
use durawarp::persist::{
    Access, Handler, HandlerPlace, HandlerReport, Outbox, Peer, PmImage, Scheme, SchemeMessage, SliceEvent,
    SliceHandler, SliceInterests,
};
use durawarp::schemes::catalogue;

#[derive(Debug, Clone, Copy, PartialEq)]
enum L2Fault {
    None,
    /// Evicts a line whatever comes before it.
    EvictsInAnyOrder,
    /// Writes a line back for another CTA's atomic, whatever comes before it.
    WritesBackInAnyOrder,
}

#[derive(Debug)]
struct FaultyL2 {
    of: Arc<dyn Scheme>,
    fault: L2Fault,
}

#[derive(Debug)]
struct FaultySlice {
    of: Box<dyn SliceHandler>,
    fault: L2Fault,
}

impl Handler for FaultySlice {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl SliceHandler for FaultySlice {
    fn interests(&self) -> SliceInterests {
        self.of.interests()
    }

    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        self.of.event(event, outbox);
    }

    fn keeps(&mut self, line: u64, outbox: &mut Outbox) -> bool {
        self.fault != L2Fault::EvictsInAnyOrder && self.of.keeps(line, outbox)
    }

    fn admits(&mut self, access: &Access, outbox: &mut Outbox) -> bool {
        self.fault == L2Fault::WritesBackInAnyOrder && access.mark == 0 || self.of.admits(access, outbox)
    }
}

impl Decorator for FaultyL2 {
    fn of(&self) -> &dyn Scheme {
        &*self.of
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        let of = self.of.slice_handler(place)?;
        Some(Box::new(FaultySlice { of, fault: self.fault }))
    }
}

/// L2s that evict, of 16 lines, and L2s that have room for all.
const L2S: [&str; 4] = [
    "l2.slices=1 l2.slice_kb=1 l2.ways=2",
    "l2.slices=2 l2.slice_kb=1 l2.ways=2",
    "l2.slices=1 l2.slice_kb=8",
    "l2.slices=2 l2.slice_kb=4",
];

/// Epochs of two lines a warp; in the second the first CTA has an atomic on a line that another has there, too.
fn run(fault: L2Fault, l2: &str, options: &RunOptions<'_>) -> (Ran, [u64; 2]) {
    let body = "setp.eq.u32 %p1, %cta, 0;
        mov.u32 %r3, 0;
        mul.wide.u32 %d0, %id, 4;
        add.u64 %d1, %out, %d0;
        add.u64 %d2, %a, %d0;
        add.u32 %r5, %id, 128;
        and.b32 %r5, %r5, 511;
        mul.wide.u32 %d3, %r5, 4;
        add.u64 %d3, %a, %d3;
        AGAIN:
        add.u32 %r4, %r3, %id;
        st.global.u32 [%d1], %r4;
        pm.barrier.wg;
        st.global.u32 [%d2], %r4;
        membar.gl;
        @%p1 atom.global.add.u32 %r6, [%d3], 0;
        pm.barrier.wg;
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p4, %r3, 3;
        @%p4 bra AGAIN;";
    let mut bench = Bench::new(machine("scoped-table2", l2));
    let [out, a, b] = [Medium::Nvm, Medium::Nvm, Medium::Dram].map(|medium| bench.buffer(65536, medium));
    bench.launch(body, 4, 128, (out, a, b, 0));
    let of = catalogue::find("epoch-tag").unwrap();
    let scheme = Arc::new(Decorated(FaultyL2 { of, fault }));
    (bench.run_under(&Persistency { scheme, journal: true, ..Persistency::default() }, options), [out, a])
}

/// What the oracle finds in such a run.
fn found(fault: L2Fault, l2: &str) -> Vec<Property> {
    let promises = catalogue::find("epoch-tag").unwrap().promises();
    let (ran, buffers) = run(fault, l2, &RunOptions::default());
    assert!(matches!(ran.end, RunEnd::Finished { .. }), "{fault:?}: {:?}", ran.end);
    let nvm = buffers.map(|start| start..start + 65536);
    let (start, end) = (nvm[0].start.min(nvm[1].start), nvm[0].end.max(nvm[1].end));
    let initial = PmImage::new(start, vec![0; (end - start) as usize]);
    let (journal, domain) = (ran.assembly.journal(), ran.spec.persist.domain);
    let order = RunOrder::new(&journal, &initial, Model { domain, promises });
    assert_eq!(order.faults(), []);
    let states = CrashStates::new(&journal, &initial, domain).unwrap();
    let verdict = judge_history(&states, &order, 3);
    assert!(verdict.points > 30, "{fault:?}: something is durable");
    verdict.failures.into_iter().map(|failure| failure.property).collect()
}

#[test]
fn without_a_fault_the_l2_writes_in_order() {
    for l2 in L2S {
        assert_eq!(found(L2Fault::None, l2), [], "{l2}");
    }
}

#[test]
fn an_l2_that_writes_in_the_wrong_order_is_found() {
    for (fault, l2s) in [(L2Fault::EvictsInAnyOrder, &L2S[..2]), (L2Fault::WritesBackInAnyOrder, &L2S[2..])] {
        for l2 in l2s {
            assert!(found(fault, l2).contains(&Property::Scope), "{fault:?}, {l2}");
        }
    }
}

/// Whatever drives it, with one slice and with slices that ask each other.
#[test]
fn tags_in_the_l2_do_not_depend_on_threads() {
    for (at, l2) in L2S.into_iter().enumerate() {
        let of = |threads: usize| {
            let options =
                RunOptions { threads, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
            let (ran, _) = run(L2Fault::None, l2, &options);
            let evicting: &[&str] = &["l2_evicted_versions", "l2_kept_victims", "l2_forced_versions"];
            let counts = if at < 2 { evicting } else { &["l2_conflicting_requests", "l2_forced_versions"] };
            counts.iter().for_each(|name| assert!(ran.scheme(name) > 0, "{l2}: no {name}"));
            assert_eq!(ran.scheme("l2_asked_slices") > 0, l2.contains("l2.slices=2"), "{l2}");
            let simulation = &ran.assembly.simulation;
            (simulation.digest(), simulation.stats().events(), ran.assembly.journal())
        };
        let first = of(1);
        assert!(first == of(2) && first == of(8), "{l2}");
    }
}
