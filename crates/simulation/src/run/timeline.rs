//! From what the components of a machine kept to the tracks of a timeline, from the top down: the command
//! processor, a selector of data paths, persist barriers by scope, SMs; or cores with a track a hart; then
//! slices and controllers, which machines of either kind have.
//!
//! A selector's tracks are of the periods that it reports (`persist::selection`), from when until when it
//! counted each. The period that a run cut short is none of them.

use std::collections::BTreeMap;

use super::rates;
use crate::assemble::Assembly;
use crate::outcome::Launch;
use durawarp_base::timeline::{Content, Label, Level, Process, Recorder, Slice, Timeline, Track, packed};
use durawarp_engine::{Clock, Time};
use durawarp_machine::handler_levels::HandlerLevels;
use durawarp_machine::memory_controller::RegionTimeline;
use durawarp_machine::slice_timeline::SliceTimeline;
use durawarp_persist::selection::{Period, Selection};
use durawarp_persist::vocab::{FenceKind, PersistScope};

/// Bytes of a file that a span takes up, about; components keep as many of each kind as would fill twice
/// their share.
const BYTES_A_SPAN: u64 = 128;

/// The fewest that are kept of each kind.
const FEWEST: u64 = 1024;

/// How many spans of each kind each of so many components keeps for a file of this many bytes.
pub(super) fn spans_each(budget_bytes: u64, components: u32) -> usize {
    (2 * budget_bytes / BYTES_A_SPAN / u64::from(components)).max(FEWEST) as usize
}

/// The tracks of a machine that kept timelines, until `now`; `open_ticks` from the command processor's word
/// to an SM.
pub(super) fn timeline(
    machine: &Assembly,
    launches: &[Launch],
    selection: Option<&Selection>,
    now: Time,
    (tick_khz, core): (u64, Clock),
    open_ticks: Time,
) -> Timeline {
    let cycle_ticks = core.period_ticks();
    let mut noted = BTreeMap::new();
    let mut processes = Vec::new();
    // A launch whose end is 0 was still running at the end of the run: its slice is marked as cut.
    let kernel = |(launch, record): (usize, &Launch)| Slice {
        start: record.start.ticks,
        end: record.start.ticks + record.length.ticks,
        label: Label::Kernel { launch: launch as u32 },
        cut: machine.command_processor().launches()[launch].end == 0,
    };
    let kernels: Vec<Slice> = launches.iter().enumerate().map(kernel).collect();
    noted.insert("kernels", kernels.len() as u64);
    // Launches of several streams may overlap.
    let mut tracks = rows(kernels, "kernels", "kernels");
    if tracks.len() < 2 {
        let content = tracks.pop().map_or_else(|| Content::Slices(Vec::new()), |track| track.content);
        tracks = vec![Track { name: "kernels".to_owned(), class: "kernels", content }];
    }
    processes.push(Process { name: "command processor".to_owned(), tracks });

    let (rates, values) = rates::of_gpu(machine, now, cycle_ticks, tick_khz);
    noted.insert("rates", values);
    processes.push(rates);
    // Tracks are drawn in the order in which they are pushed: from the command processor down to memory.
    processes.extend(selection.and_then(|selection| selector(selection, &mut noted)));
    processes.extend(barriers(machine, now, open_ticks, &mut noted));
    for (index, sm) in machine.sms().enumerate() {
        let Some(kept) = sm.timeline() else { continue };
        let mut tracks = by_lane(&kept.ctas, "CTA slot", "CTAs", now, &mut noted);
        tracks.extend(by_lane(&kept.stalls, "warp slot", "warp stalls", now, &mut noted));
        tracks.extend(regions(kept.regions.spans(), "warp slot", 0, now, &mut noted));
        if let Some(growth) = sm.growth(now) {
            let rates = rates::of_sm(&growth, now, cycle_ticks);
            *noted.entry("rates of SMs").or_default() += rates.iter().map(|track| track.content.len()).sum::<u64>();
            tracks.extend(rates);
        }
        processes.push(Process { name: format!("SM {index}"), tracks });
    }
    for (index, slice) in machine.slices().enumerate() {
        let tracks = slice.timeline().map(|kept| writes(kept, "L2 writes", now, &mut noted));
        processes.extend(tracks.map(|tracks| Process { name: format!("L2 slice {index}"), tracks }));
    }
    processes.extend(controllers(machine, now, &mut noted));
    Timeline { tick_khz, processes, noted }
}

/// The name of a component: of the machine, or of its server where there are several.
fn named(what: &str, index: usize, all: usize, servers: usize) -> String {
    let each = all / servers;
    if servers > 1 { format!("s{} {what} {}", index / each, index % each) } else { format!("{what} {index}") }
}

/// The tracks of a machine of cores, with so many harts each and so wide, that kept timelines, until `now`.
/// Harts are numbered over all servers.
pub(super) fn of_cores(
    machine: &Assembly,
    (harts, width): (u32, u32),
    now: Time,
    (tick_khz, clock): (u64, Clock),
) -> Timeline {
    let mut noted = BTreeMap::new();
    let cycle_ticks = clock.period_ticks();
    // First, as on machines with a GPU: what all did, then who did what.
    let (rates, values) = rates::of_cores(machine, width, now, cycle_ticks, tick_khz);
    noted.insert("rates", values);
    let mut processes = vec![rates];
    let servers = machine.systems().count();
    let [cores, homes] = [machine.cores().count(), machine.homes().count()];
    for (index, core) in machine.cores().enumerate() {
        let Some(kept) = core.timeline() else { continue };
        let mut tracks = Vec::new();
        for (kept, what, class) in [(&kept.runs, "runs", "runs of harts"), (&kept.waits, "waits", "waits of harts")] {
            *noted.entry(class).or_default() += kept.noted();
            tracks.extend(kept.lanes(now).into_iter().map(|(lane, slices)| {
                let hart = index * harts as usize + lane;
                Track { name: format!("hart {hart} {what}"), class, content: Content::Slices(slices) }
            }));
        }
        if let Some(kept) = core.region_spans() {
            tracks.extend(regions(kept.spans(), "hart", index * harts as usize, now, &mut noted));
        }
        // A scheme without persist buffers says nothing of them.
        if let Some(kept) = core.handler_levels() {
            tracks.extend(lanes(kept, index * harts as usize, "persist buffer of hart", &mut noted));
        }
        if let Some(growth) = core.growth(now) {
            let rate = rates::of_core(&growth, now, cycle_ticks);
            *noted.entry("rates of cores").or_default() += rate.iter().map(|track| track.content.len()).sum::<u64>();
            tracks.extend(rate);
        }
        processes.push(Process { name: named("core", index, cores, servers), tracks });
    }
    // Below cores what they share, down to memory; then what comes over the network.
    for (index, home) in machine.homes().enumerate() {
        let tracks = home.timeline().map(|kept| writes(kept, "writes of home slices", now, &mut noted));
        processes.extend(tracks.map(|tracks| Process { name: named("home slice", index, homes, servers), tracks }));
    }
    processes.extend(controllers(machine, now, &mut noted));
    for (index, nic) in machine.nics().enumerate() {
        let Some(kept) = nic.handler_levels() else { continue };
        let tracks = lanes(kept, 0, "persist buffer of channel", &mut noted).collect();
        let name = if servers > 1 { format!("s{index} NIC") } else { "NIC".to_owned() };
        processes.push(Process { name, tracks });
    }
    for client in machine.clients() {
        let number = client.number();
        let tracks = client.timeline().map(|kept| in_rows(kept, "verbs", "verbs", now, &mut noted));
        processes.extend(tracks.map(|tracks| Process { name: format!("client {number}"), tracks }));
    }
    Timeline { tick_khz, processes, noted }
}

/// What a handler held, lane by lane, numbered from `first` on.
fn lanes<'k>(
    kept: &'k HandlerLevels,
    first: usize,
    name: &'k str,
    noted: &'k mut Noted,
) -> impl Iterator<Item = Track> + 'k {
    let track = move |(lane, values): (usize, &Level)| {
        level(values, &format!("{name} {}", first + lane), "values of levels", noted)
    };
    kept.levels().iter().enumerate().filter(|(_, values)| !values.samples().is_empty()).map(track)
}

/// Writes of a slice to memory.
fn writes(kept: &SliceTimeline, class: &'static str, now: Time, noted: &mut Noted) -> Vec<Track> {
    let mut tracks = vec![level(&kept.under_way, "writes under way", "values of levels", noted)];
    tracks.extend(in_rows(&kept.writes, "to durability", class, now, noted));
    tracks
}

fn controllers(machine: &Assembly, now: Time, noted: &mut Noted) -> Vec<Process> {
    let mut processes = Vec::new();
    let (servers, all) = (machine.systems().count().max(1), machine.controllers().count());
    for (index, controller) in machine.controllers().enumerate() {
        let Some(kept) = controller.timeline() else { continue };
        let mut tracks = vec![level(&kept.wpq, "WPQ entries", "values of levels", noted)];
        tracks.extend(in_rows(&kept.media, "media writes", "media writes", now, noted));
        tracks.extend(lanes(&kept.queues, 0, "persist requests of hart", noted));
        tracks.extend(protocol(&kept.regions, now, noted));
        processes.push(Process { name: named("memory controller", index, all, servers), tracks });
    }
    processes
}

type Noted = BTreeMap<&'static str, u64>;

/// A track for each lane.
fn by_lane(kept: &Recorder, name: &str, class: &'static str, now: Time, noted: &mut Noted) -> Vec<Track> {
    *noted.entry(class).or_default() += kept.noted();
    let track = |(lane, slices)| Track { name: format!("{name} {lane}"), class, content: Content::Slices(slices) };
    kept.lanes(now).into_iter().map(track).collect()
}

/// As few tracks as they need.
fn in_rows(kept: &Recorder, name: &str, class: &'static str, now: Time, noted: &mut Noted) -> Vec<Track> {
    *noted.entry(class).or_default() += kept.noted();
    rows(kept.slices(now).map(|(_, slice)| slice).collect(), name, class)
}

/// Regions by warp slot, or by hart, numbered from `first` on; where those of one overlap, as CTAs' may, in
/// rows.
fn regions(kept: &Recorder, whose: &str, first: usize, now: Time, noted: &mut Noted) -> Vec<Track> {
    if kept.noted() == 0 {
        return Vec::new();
    }
    const CLASS: &str = "regions";
    *noted.entry(CLASS).or_default() += kept.noted();
    let of_lane = |(lane, slices)| rows(slices, &format!("regions, {whose} {}, row", first + lane), CLASS);
    kept.lanes(now).into_iter().flat_map(of_lane).collect()
}

/// What a controller did to have regions committed.
fn protocol(kept: &RegionTimeline, now: Time, noted: &mut Noted) -> Vec<Track> {
    if kept.waits.noted() == 0 {
        return Vec::new();
    }
    const LEVELS: &str = "values of levels";
    let mut tracks = vec![level(&kept.gated, "gated entries", LEVELS, noted)];
    for (order, numbers) in &kept.flush_ids {
        let name = if kept.flush_ids.len() == 1 { "flush ID".to_owned() } else { format!("flush ID of SM {order}") };
        tracks.push(level(numbers, &name, LEVELS, noted));
    }
    tracks.extend(in_rows(&kept.waits, "regions to commit", "ACKs and flushes of regions", now, noted));
    tracks
}

fn rows(slices: Vec<Slice>, name: &str, class: &'static str) -> Vec<Track> {
    let track = |(row, slices)| Track { name: format!("{name} {row}"), class, content: Content::Slices(slices) };
    packed(slices).into_iter().enumerate().map(track).collect()
}

fn level(kept: &Level, name: &str, class: &'static str, noted: &mut Noted) -> Track {
    *noted.entry(class).or_default() += kept.noted();
    Track { name: name.to_owned(), class, content: Content::Level(kept.samples().to_vec()) }
}

/// A selector's periods, and its threshold and CWPPR over them; `None` where it had no period.
fn selector(selection: &Selection, noted: &mut Noted) -> Option<Process> {
    let periods = &selection.periods;
    if periods.is_empty() {
        return None;
    }
    let slice = |(index, period): (usize, &Period)| Slice {
        start: period.begin_ticks,
        end: period.end_ticks,
        label: Label::Period { index: index as u32 },
        cut: false,
    };
    let slices: Vec<Slice> = periods.iter().enumerate().map(slice).collect();
    noted.insert("periods", slices.len() as u64);
    let mut level = |name: &str, value: &dyn Fn(&Period) -> u64| {
        let values: Vec<(Time, u64)> = periods.iter().map(|period| (period.begin_ticks, value(period))).collect();
        *noted.entry("values of periods").or_default() += values.len() as u64;
        Track { name: name.to_owned(), class: "values of periods", content: Content::Level(values) }
    };
    let threshold = level("threshold (log updates)", &|period| period.threshold_logs);
    let wait = level("CWPPR (core cycles)", &|period| period.cwppr().round() as u64);
    let periods = Track { name: "periods".to_owned(), class: "periods", content: Content::Slices(slices) };
    Some(Process { name: "path selector".to_owned(), tracks: vec![periods, threshold, wait] })
}

/// Persist barriers by scope. One of thread scope is its warp's wait.
fn barriers(machine: &Assembly, now: Time, open_ticks: Time, noted: &mut Noted) -> Vec<Process> {
    let name = |scope: PersistScope| format!("pm.barrier.{}", scope.name());
    let mut threads = Vec::new();
    let mut ctas = Vec::new();
    for kept in machine.sms().filter_map(|sm| sm.timeline()) {
        for (_, slice) in kept.stalls.slices(now) {
            if let Label::Stall { at, launch, cta, .. } = slice.label
                && at == FenceKind::BarrierThread.name()
            {
                threads.push(Slice { label: Label::Barrier { at, launch, cta: Some(cta) }, ..slice });
            }
        }
        *noted.entry("barriers of CTAs").or_default() += kept.barriers.noted();
        ctas.extend(kept.barriers.slices(now).map(|(_, slice)| slice));
    }
    let mut kernels = Vec::new();
    if let Some(kept) = machine.command_processor().timeline() {
        *noted.entry("barriers of kernels").or_default() += kept.noted();
        kernels.extend(
            kept.slices(now)
                .map(|(_, slice)| Slice { end: slice.end + if slice.cut { 0 } else { open_ticks }, ..slice }),
        );
    }
    // Of those of threads it is not known how many there were where stalls were thinned.
    noted.insert("barriers of threads", threads.len() as u64);
    let of = |scope, slices, class| Process { name: name(scope), tracks: rows(slices, &name(scope), class) };
    let processes = [
        of(PersistScope::Kernel, kernels, "barriers of kernels"),
        of(PersistScope::Cta, ctas, "barriers of CTAs"),
        of(PersistScope::Thread, threads, "barriers of threads"),
    ];
    processes.into_iter().filter(|process| !process.tracks.is_empty()).collect()
}
