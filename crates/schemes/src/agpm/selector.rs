//! AGPM's decision: periods, their threshold, and from the counts of a period the way of the next one's log
//! updates.
//!
//! ```text
//!   SMs report log updates ──threshold──> every buffer is asked ──all answered──> reason ──> way, told to all SMs
//!                                                                         CWPPR ──> threshold of the next period
//! ```
//! CWPPR, cycles waited per PM request: if it rose, the period was too short to show the pattern and the
//! threshold grows by a tenth; else it shrinks. A period lasts until its buffers have answered; log updates
//! in between belong to the next.
//!
//! The way is decided once a period, for all log updates of the next; the paper's "path selector in each SM"
//! may decide request by request, but its inputs change once a period only.
//!
//! Source: AGPM sections IV-A and IV-B. Readings: literally the threshold of a steady kernel shrinks for
//! ever, so by default it is clamped and a change within 2 % moves nothing (A9); a kernel that is known to
//! have fewer log updates than the first threshold gets a smaller one (A8), known from its last launch, or
//! from its text when no persist is in a loop; one of which nothing is known does not. Logs are counted by
//! half-warps, as in the table that the threshold comes from. A kernel launched again goes on with its
//! threshold and way. Launches in flight have a period each, with evidence of their own; those of one kernel
//! share its threshold and way (A19: the paper has one kernel at a time). Arithmetic is on whole numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::handlers::first_path;
use super::messages::{AgpmMessage, LogReport};
use super::parameters::{
    AgpmSpec, Counted, Decision, FewLogsOver, Flags, L1Buffers, LogUnit, SharedMemory, ThresholdRule, Uncovered,
};
use super::reason::{Evidence, Reason, Rules};
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::Time;
use durawarp_persist::selection::{Locality, Period, Selection};
use durawarp_persist::{
    Boundary, Handler, HandlerPlace, HandlerReport, HostHandler, KernelFacts, Outbox, Peer, Route, SchemeMessage,
};

/// The command processor tells the hub what runs.
#[derive(Debug)]
pub(super) struct AgpmHost;

impl Handler for AgpmHost {
    state_methods!(none);
}

impl HostHandler for AgpmHost {
    fn kernel_starts(&mut self, kernel: &KernelFacts, outbox: &mut Outbox) {
        outbox.send(Peer::Hub, AgpmMessage::KernelStart(kernel.clone()));
    }

    fn boundary(&mut self, place: u8, outbox: &mut Outbox) -> Boundary {
        outbox.send(Peer::Hub, AgpmMessage::KernelEnd(place));
        Boundary::None
    }
}

/// What is kept of a kernel from launch to launch.
#[derive(Debug, Clone)]
struct Known {
    threshold: u64,
    route: Route,
    /// Log updates of its last complete launch.
    logs: Option<u64>,
    /// Cycles and requests of its last period.
    last: Option<(u64, u64)>,
}

value!(record Known { threshold, route, logs, last });

/// The kernel that runs, or has just ended.
#[derive(Debug, Clone, Default)]
struct Running {
    facts: KernelFacts,
    /// Log updates so far.
    logs: u64,
    /// Reads so far, in shared memory, of what another warp wrote.
    exchanges: u64,
    periods: u32,
    /// From when until when its period counted log updates, in ticks.
    span: [Time; 2],
}

value!(record Running { facts, logs, exchanges, periods, span });

/// A period whose buffers are being asked.
#[derive(Debug)]
struct Asking {
    running: Running,
    period: LogReport,
    complete: bool,
    left: u32,
    l1: BTreeMap<u16, Locality>,
    l2: Locality,
    saturated: u64,
    spills: u64,
    refills: u64,
}

value!(record Asking { running, period, complete, left, l1, l2, saturated, spills, refills });

/// What belongs to a place among the launches in flight.
#[derive(Debug, Default)]
struct InFlight {
    running: Option<Running>,
    /// Reports since the last period ended.
    period: LogReport,
    asking: Option<Asking>,
    /// A kernel that ended while its last complete period was being asked for.
    ended: Option<(Running, LogReport)>,
}

value!(record InFlight { running, period, asking, ended });

/// AGPM's hub.
#[derive(Debug)]
pub(super) struct Selector {
    spec: Arc<AgpmSpec>,
    place: HandlerPlace,
    known: BTreeMap<String, Known>,
    /// By place; the first is there from the beginning.
    launches: BTreeMap<u8, InFlight>,
    selection: Selection,
}

state!(Selector { saved: known, launches, selection; kept: spec, place });

fn name(route: Route) -> String {
    if route == Route::Temporal { "temporal" } else { "non_temporal" }.to_owned()
}

/// The threshold after a period that had `was`, from cycles and requests of the one before and its own;
/// `first` bounds it below where the kernel began under the least.
pub(super) fn next_threshold(
    spec: &AgpmSpec,
    was: u64,
    before: Option<(u64, u64)>,
    now: (u64, u64),
    first: u64,
) -> u64 {
    let Some(before) = before else { return was };
    let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
    // CWPPR now and before, over a common denominator.
    let (now, before) = (wide(now.0, before.1), wide(before.0, now.1));
    let step = spec.step_percent;
    let grown = (was * (100 + step)).div_ceil(100);
    let shrunk = was * (100 - step) / 100;
    match spec.threshold_rule {
        ThresholdRule::Fixed => was,
        ThresholdRule::Literal if now > before => grown,
        ThresholdRule::Literal => shrunk.max(1),
        ThresholdRule::Clamped => {
            let band = before * u128::from(spec.dead_band_percent) / 100;
            let least = spec.threshold_min_logs.min(first);
            let most = spec.threshold_max_logs.max(first);
            match (now > before + band, now + band < before) {
                (true, _) => grown.min(most),
                (_, true) => shrunk.max(least),
                _ => was,
            }
        }
    }
}

/// The first threshold of a kernel with so many log updates, if that is known: a smaller one "when the number
/// of log updates to PM of the entire GPU kernel is less than 10000" only.
pub(super) fn first_threshold(spec: &AgpmSpec, logs: Option<u64>) -> u64 {
    let usual = spec.threshold_logs;
    match logs {
        Some(logs) if logs < usual => (logs / spec.small_divisor).max(spec.least_threshold_logs),
        _ => usual,
    }
}

/// Log updates of a kernel, as far as its text tells: none where some are in a loop. Write-backs of log
/// updates that go past the caches are dropped; the text does not know how accesses coalesce.
fn expected_logs(spec: &AgpmSpec, facts: &KernelFacts) -> Option<u64> {
    let dropped = spec.counted == Counted::LogUpdates || first_path(spec) == Route::NonTemporal;
    let write_backs = if dropped { 0 } else { facts.log_write_backs_per_warp };
    let units = if spec.log_unit == LogUnit::HalfWarps { facts.half_warps_per_warp } else { 1 };
    Some((facts.persists_per_warp? + write_backs) * units * facts.warps)
}

impl Selector {
    pub(super) fn new(spec: &Arc<AgpmSpec>, place: HandlerPlace) -> Self {
        Selector {
            spec: spec.clone(),
            place,
            known: BTreeMap::new(),
            launches: BTreeMap::from([(0, InFlight::default())]),
            selection: Selection::default(),
        }
    }

    fn start(&mut self, facts: KernelFacts, outbox: &mut Outbox) {
        if self.spec.flags == Flags::Untracked {
            for slice in 0..self.place.slices {
                let (launch, addresses) = (facts.place, facts.flags);
                outbox.send(Peer::Slice(slice), AgpmMessage::Flags { launch, addresses });
            }
        }
        let logs = self.known.get(&facts.kernel).and_then(|known| known.logs);
        let first = first_threshold(&self.spec, logs.or_else(|| expected_logs(&self.spec, &facts)));
        let known = self.known.entry(facts.kernel.clone()).or_insert_with(|| Known {
            threshold: first,
            route: first_path(&self.spec),
            logs: None,
            last: None,
        });
        known.threshold = known.threshold.min(first.max(1));
        let own = self.launches.entry(facts.place).or_default();
        own.running = Some(Running { facts, span: [outbox.now(); 2], ..Running::default() });
        own.period = LogReport::default();
    }

    fn end(&mut self, launch: u8, outbox: &mut Outbox) {
        let own = self.launches.entry(launch).or_default();
        let Some(mut running) = own.running.take() else { return };
        running.span[1] = outbox.now();
        if let Some(known) = self.known.get_mut(&running.facts.kernel) {
            known.logs = Some(running.logs);
        }
        let period = std::mem::take(&mut own.period);
        if own.asking.is_some() {
            own.ended = Some((running, period));
        } else {
            self.ask(running, period, false, outbox);
        }
    }

    /// An SM reports of the launch in a place.
    fn reported(&mut self, launch: u8, report: &LogReport, outbox: &mut Outbox) {
        self.selection.temporal_logs += report.temporal;
        self.selection.non_temporal_logs += report.non_temporal;
        self.selection.dropped_write_backs += report.dropped_write_backs;
        let InFlight { running, period, asking, .. } = self.launches.entry(launch).or_default();
        period.logs += report.logs;
        period.requests += report.requests;
        period.wait_cycles += report.wait_cycles;
        period.temporal += report.temporal;
        period.non_temporal += report.non_temporal;
        let Some(running) = running else { return };
        running.logs += report.logs;
        running.exchanges += report.exchanges;
        let threshold = self.known.get(&running.facts.kernel).map_or(u64::MAX, |known| known.threshold);
        if asking.is_none() && period.logs >= threshold {
            running.periods += 1;
            running.span[1] = outbox.now();
            let ended = running.clone();
            running.span[0] = outbox.now();
            let period = std::mem::take(period);
            self.ask(ended, period, true, outbox);
        }
    }

    /// SMs that have a buffer.
    fn sampled(&self) -> impl Iterator<Item = u16> + use<> {
        let (each, one) = (self.spec.l1_buffers == L1Buffers::Each, self.spec.sampled_sm);
        (0..self.place.sms).filter(move |&sm| each || u32::from(sm) == one)
    }

    fn ask(&mut self, running: Running, period: LogReport, complete: bool, outbox: &mut Outbox) {
        let (mut left, launch) = (0, running.facts.place);
        for peer in self.sampled().map(Peer::Sm).chain((0..self.place.slices).map(Peer::Slice)) {
            outbox.send(peer, AgpmMessage::Count(launch));
            left += 1;
        }
        let (l1, l2) = (BTreeMap::new(), Locality::default());
        let asking = Asking { running, period, complete, left, l1, l2, saturated: 0, spills: 0, refills: 0 };
        self.launches.entry(launch).or_default().asking = Some(asking);
    }

    fn evidence(&self, asking: &Asking, l1: Locality) -> Evidence {
        let facts = &asking.running.facts;
        let measured = asking.running.exchanges > 0;
        let shared_memory = match self.spec.shared_memory {
            SharedMemory::Declared => facts.shared_bytes > 0,
            SharedMemory::Communication => facts.communicates,
            SharedMemory::Measured => measured,
            SharedMemory::Stated => facts.stated_to_communicate.unwrap_or(measured),
            SharedMemory::Off => false,
        };
        let logs = match self.spec.few_logs_over {
            FewLogsOver::Kernel => asking.running.logs,
            FewLogsOver::Period => asking.period.logs,
        };
        Evidence { l1, l2: asking.l2, logs, shared_memory }
    }

    fn route(&self, reason: Reason, before: Route) -> Route {
        match (reason, self.spec.uncovered) {
            (Reason::None, Uncovered::Hold) => before,
            (Reason::None, Uncovered::Temporal) => Route::Temporal,
            (Reason::None, Uncovered::NonTemporal) => Route::NonTemporal,
            (other, _) => other.route(),
        }
    }

    /// Every buffer has answered.
    fn decide(&mut self, asking: Asking, outbox: &mut Outbox) {
        let rules = Rules::of(&self.spec);
        let kernel = asking.running.facts.kernel.clone();
        let Some(known) = self.known.get(&kernel).cloned() else { return };
        let mut sum = Locality::default();
        asking.l1.values().for_each(|l1| sum.add(l1));
        let shared = rules.reason(&self.evidence(&asking, sum));
        let route = if asking.complete { self.route(shared, known.route) } else { known.route };
        self.note(&asking, &known, sum, shared, route);
        // A period that its kernel's end cut short is noted, and decides nothing.
        if !asking.complete {
            return;
        }
        let mut tell =
            |sm: u16, route: Route| outbox.send(Peer::Sm(sm), AgpmMessage::Path { kernel: kernel.clone(), route });
        let mut reasons = Vec::new();
        match self.spec.decision {
            Decision::Shared => {
                reasons.push(shared);
                (0..self.place.sms).for_each(|sm| tell(sm, route));
            }
            Decision::Sm => {
                for (&sm, &l1) in &asking.l1 {
                    let own = rules.reason(&self.evidence(&asking, l1));
                    reasons.push(own);
                    tell(sm, self.route(own, known.route));
                }
            }
        }
        for reason in reasons {
            *self.selection.reasons.entry(reason.letter().to_owned()).or_insert(0) += 1;
        }
        self.selection.complete += 1;
        self.selection.changes += u64::from(route != known.route);
        // How CWPPR changed since the last period moves the threshold; this period's is kept for the next.
        let now = (asking.period.wait_cycles, asking.period.requests);
        let logs = known.logs.or_else(|| expected_logs(&self.spec, &asking.running.facts));
        let first = first_threshold(&self.spec, logs);
        let threshold = next_threshold(&self.spec, known.threshold, known.last, now, first);
        self.known.insert(kernel, Known { threshold, route, last: Some(now), ..known });
    }

    fn note(&mut self, asking: &Asking, known: &Known, l1: Locality, reason: Reason, route: Route) {
        self.selection.reservation_bytes += (asking.spills + asking.refills) * u64::from(self.spec.reservation_bytes);
        // Bytes are summed over all periods; of the periods only the first ones are kept.
        if self.selection.periods.len() >= Selection::KEPT {
            return;
        }
        let running = &asking.running;
        self.selection.periods.push(Period {
            kernel: running.facts.kernel.clone(),
            launch: running.facts.launch,
            number: running.periods - u32::from(asking.complete),
            complete: asking.complete,
            threshold_logs: known.threshold,
            logs: asking.period.logs,
            launch_logs: running.logs,
            begin_ticks: running.span[0],
            end_ticks: running.span[1],
            temporal_logs: asking.period.temporal,
            non_temporal_logs: asking.period.non_temporal,
            requests: asking.period.requests,
            wait_cycles: asking.period.wait_cycles,
            l1,
            l2: asking.l2,
            saturated: asking.saturated,
            spills: asking.spills,
            refills: asking.refills,
            path: name(known.route),
            reason: reason.letter().to_owned(),
            next_path: name(route),
        });
    }

    fn counts(&mut self, from: Peer, word: AgpmMessage, outbox: &mut Outbox) {
        let AgpmMessage::Counts { launch, locality, saturated, spills, refills } = word else {
            unreachable!("the caller looked")
        };
        let own = self.launches.entry(launch).or_default();
        let Some(asking) = &mut own.asking else { panic!("counts that nobody asked for") };
        match from {
            Peer::Sm(sm) => {
                asking.l1.insert(sm, locality);
            }
            _ => asking.l2.add(&locality),
        }
        asking.saturated += saturated;
        asking.spills += spills;
        asking.refills += refills;
        asking.left -= 1;
        if asking.left > 0 {
            return;
        }
        let (asked, ended) = (own.asking.take(), own.ended.take());
        if let Some(asking) = asked {
            self.decide(asking, outbox);
        }
        if let Some((running, period)) = ended {
            self.ask(running, period, false, outbox);
        }
    }
}

impl Handler for Selector {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match AgpmMessage::of(message) {
            AgpmMessage::KernelStart(facts) => self.start(facts, outbox),
            AgpmMessage::KernelEnd(launch) => self.end(launch, outbox),
            AgpmMessage::Report { launch, report } => self.reported(launch, &report, outbox),
            counts @ AgpmMessage::Counts { .. } => self.counts(from, counts, outbox),
            other => panic!("AGPM's hub received {other:?}"),
        }
    }

    fn state(&self, take: &mut dyn FnMut(u64)) {
        for Known { threshold, route, logs, last } in self.known.values() {
            let (cycles, requests) = last.unwrap_or_default();
            let path = u64::from(*route == Route::NonTemporal);
            [*threshold, path, logs.unwrap_or_default(), cycles, requests].into_iter().for_each(&mut *take);
        }
        for LogReport { logs, requests, wait_cycles, .. } in self.launches.values().map(|own| own.period) {
            [logs, requests, wait_cycles].into_iter().for_each(&mut *take);
        }
        take(self.selection.complete);
    }

    fn report(&self, report: &mut HandlerReport) {
        report.results = serde_json::to_value(&self.selection).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
