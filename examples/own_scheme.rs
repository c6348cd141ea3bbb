//! A persistency scheme of one's own, with a mechanism of its own: `cargo run --example own_scheme`.
//!
//! Every store to persistent memory bypasses the caches. An SM has a *persist window* of some entries: each
//! store on its way to durability takes one, which bounds what a power failure can take from the SM. No file
//! of the simulator knows of it.
//!
//! | what the host says | what the window does |
//! |---|---|
//! | offers a departure: a store is about to leave the SM | lets it go while an entry is free, else has it wait |
//! | a store has departed | takes an entry |
//! | a store is acknowledged as durable | frees its entry |
//!
//! Where a kernel ends, the L2 writes back what atomics left dirty there: then all stores of the kernel are
//! durable. The handlers decide; the machine does the rest, and counts it. What the scheme promises it
//! declares ([`Scheme::promises`]): by that the oracle judges what its handlers do. A scheme that declares
//! nothing promises nothing. The scheme is an example, not a published one.

use durawarp::persist::{
    Admission, Boundary, Handler, HandlerPlace, HandlerReport, HostHandler, Outbox, Promises, Route, Scheme, SmEvent,
    SmHandler, SmInterests, SmOffer, Store, StoreRule,
};
use durawarp::{CrashRequest, Diagnostics, Experiment};

/// The scheme: its parameter.
#[derive(Debug, Clone, Copy)]
struct PersistWindow {
    /// Stores of an SM that may be on their way at a time.
    entries: usize,
}

/// In each SM.
#[derive(Debug)]
struct Window {
    entries: usize,
    /// Departures that are not durable.
    open: Vec<u64>,
    most_open: usize,
}

impl Handler for Window {
    /// Counted in the outcome's `scheme_counters`, summed over SMs.
    fn report(&self, report: &mut HandlerReport) {
        report.count("window_most_open_summed", self.most_open as u64);
    }
}

impl SmHandler for Window {
    fn interests(&self) -> SmInterests {
        SmInterests { accesses: true, departures: true, ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, _: &mut Outbox) -> Admission {
        match offer {
            SmOffer::Departure(departure) if departure.is_non_temporal => {
                Admission::goes_if(self.open.len() < self.entries)
            }
            _ => Admission::Goes,
        }
    }

    fn event(&mut self, event: &SmEvent<'_>, _: &mut Outbox) {
        match *event {
            SmEvent::Departed { departure, number, .. } if departure.is_non_temporal => {
                self.open.push(number);
                self.most_open = self.most_open.max(self.open.len());
            }
            SmEvent::Acknowledged { number, .. } => self.open.retain(|&open| open != number),
            _ => {}
        }
    }

    fn store(&mut self, _: &Store<'_>, _: &mut Outbox) -> StoreRule {
        StoreRule::new(Route::NonTemporal, false)
    }
}

/// In the command processor.
#[derive(Debug)]
struct AtKernelEnd;

impl Handler for AtKernelEnd {}

impl HostHandler for AtKernelEnd {
    fn boundary(&mut self, _: u8, _: &mut Outbox) -> Boundary {
        Boundary::WriteBackL2
    }
}

impl Scheme for PersistWindow {
    fn name(&self) -> &'static str {
        "persist-window"
    }

    fn description(&self) -> &'static str {
        "stores bypass the caches through a window in each SM; the L2 is written back where a kernel ends"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(Window { entries: self.entries, open: Vec::new(), most_open: 0 }))
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(AtKernelEnd)
    }

    /// What the command processor's handler has to see to.
    fn promises(&self) -> Promises {
        Promises { kernel_end: true, ..Promises::NONE }
    }

    /// Programs keep no undo logs under it.
    fn logs(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Diagnostics> {
    const SMS: u64 = 4;
    let recipe = Experiment::of("gemm").profile("ci").set("sm.count", SMS);
    let mut slower = u64::MAX;
    for entries in [1, 4, 16, 64] {
        let outcome = recipe.clone().scheme(PersistWindow { entries }).run()?;
        assert!(outcome.verification.as_ref().is_some_and(|verification| verification.passed));
        let (cycles, open) = (outcome.time.core_cycles, outcome.scheme_counters["window_most_open_summed"]);
        assert!(open <= SMS * entries as u64, "the window was overrun");
        assert!(cycles <= slower, "a wider window is not slower");
        slower = cycles;
        println!(
            "{entries:2} entries: {cycles:7} cycles, at most {:4.1} stores of an SM open",
            open as f64 / SMS as f64
        );
    }

    // What the oracle makes of it: a kernel's stores are durable when it ends, in every state that power
    // failures leave.
    let small = Experiment::of("atax").params([("NX", 32), ("NY", 32)]).set("sm.count", 2);
    let report = small.scheme(PersistWindow { entries: 4 }).crash(&CrashRequest::default())?;
    let promised = "all stores of a kernel are durable when it ends (P2)";
    assert!(
        report.holds() && report.promises.iter().any(|promise| promise.to_string() == promised),
        "{:?}",
        report.promises
    );
    println!("{promised}: holds in {} states", report.judgements().map(|(_, one)| one.verdict.judged).sum::<u64>());
    Ok(())
}
