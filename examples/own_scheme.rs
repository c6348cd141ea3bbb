//! A persistency scheme of one's own, by policy: `cargo run --example own_scheme`.
//!
//! | store | way | why |
//! |---|---|---|
//! | one line a warp | around the caches | it fills its burst of the memory, and nothing is gained by keeping it |
//! | scattered | through the caches | its lines may gather more bytes before they are written |
//!
//! Where a kernel ends, the L2 writes back its dirty lines: then all of its stores are durable. The handlers decide; the
//! machine does the rest, counts it, and the oracle judges what the scheme promises. The scheme is an example, not a
//! published one.

use durawarp::persist::{
    Boundary, Handler, HandlerPlace, HandlerReport, HostHandler, Outbox, Route, Scheme, SmHandler, Store, StoreRule,
};
use durawarp::{CrashRequest, Diagnostics, Experiment};

/// The scheme: its parameter, which every SM's handler has a copy of.
#[derive(Debug, Clone, Copy)]
struct BypassNarrow {
    /// A store of a warp to so many lines or fewer bypasses the caches.
    most_lines: u32,
}

/// In each SM.
#[derive(Debug)]
struct NarrowStores {
    most_lines: u32,
    bypassed: u64,
}

impl Handler for NarrowStores {
    /// Counted in the outcome's `scheme_counters`.
    fn report(&self, report: &mut HandlerReport) {
        report.count("narrow_stores", self.bypassed);
    }
}

impl SmHandler for NarrowStores {
    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let bypasses = store.degree <= self.most_lines && !store.atomic;
        self.bypassed += u64::from(bypasses);
        StoreRule::new(if bypasses { Route::NonTemporal } else { Route::Temporal }, false)
    }
}

/// In the command processor.
#[derive(Debug)]
struct AtKernelEnd;

impl HostHandler for AtKernelEnd {
    fn kernel_end(&mut self, _: &mut Outbox) -> Boundary {
        Boundary::WriteBackL2
    }
}

impl Scheme for BypassNarrow {
    fn name(&self) -> &'static str {
        "bypass-narrow"
    }

    fn description(&self) -> &'static str {
        "stores to few lines bypass the caches; the L2 is written back where a kernel ends"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Box<dyn SmHandler> {
        Box::new(NarrowStores { most_lines: self.most_lines, bypassed: 0 })
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(AtKernelEnd)
    }

    /// Programs keep no undo logs under it.
    fn logs(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Diagnostics> {
    let recipe = Experiment::of("gemm").profile("ci").set("sm.count", 4);
    for most_lines in [0, 1, 32] {
        let outcome = recipe.clone().scheme(BypassNarrow { most_lines }).run()?;
        assert!(outcome.verification.as_ref().is_some_and(|verification| verification.passed));
        let bypassed = outcome.scheme_counters["narrow_stores"];
        assert_eq!(bypassed > 0, most_lines > 0);
        println!("at most {most_lines:2} lines: {:7} cycles, {bypassed:6} stores bypass", outcome.time.core_cycles);
    }

    // A kernel whose stores all go through the caches is `epoch-kernel`: cycle by cycle, and bit by bit.
    let (none, epoch) = (recipe.clone().scheme(BypassNarrow { most_lines: 0 }), recipe.clone().scheme("epoch-kernel"));
    assert_eq!(none.run()?.digest, epoch.run()?.digest);

    // What the oracle makes of it: a kernel's stores are durable when it ends, in every state that power failures leave.
    let small = Experiment::of("atax").params([("NX", 32), ("NY", 32)]).set("sm.count", 2);
    let report = small.scheme(BypassNarrow { most_lines: 1 }).crash(&CrashRequest::default())?;
    let promised = "all stores of a kernel are durable when it ends (P2)";
    assert!(report.holds() && report.promises.iter().any(|promise| promise == promised), "{:?}", report.promises);
    println!("{promised}: holds in {} states", report.judgements().map(|(_, one)| one.verdict.judged).sum::<u64>());
    Ok(())
}
