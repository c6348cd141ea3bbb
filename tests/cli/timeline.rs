//! Timelines: the run is the same with and without, spans say what counters say, and a file is whole at any
//! size.

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::cli_common::{durawarp, folder};
use durawarp::outcome::Outcome;
use durawarp::report::chrome_trace;
use durawarp::run::{Conduct, Experiment, Finished, run};
use durawarp::timeline::{Content, Label, Slice, Timeline};
use serde_json::Value;

/// Eight CTAs of two warps of 64 store and meet at persist barriers of every scope.
const BARRIERS: &str = r#"
schema = 1
name = "barriers"
description = "persist barriers of every scope"

[isa]
kind = "ptx"
text = '''
.version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 p_data)
{
    .reg .b32 %r<16>;
    .reg .b64 %d<16>, %data;
    ld.param.u64 %data, [p_data];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r1, 128, %r2;
    mul.wide.u32 %d1, %r3, 4;
    add.s64 %d2, %data, %d1;
    st.global.u32 [%d2], 1;
    pm.barrier.wi;
    st.global.u32 [%d2], 2;
    pm.barrier.wg;
    st.global.u32 [%d2], 3;
    pm.barrier.kr;
    st.global.u32 [%d2], 4;
    ret;
}
'''

[buffer.data]
type = "u32"
len = 1024
space = "pm"

[[step]]
kernel = "k"
grid = 8
block = 128
args = ["&data"]

[[step]]
kernel = "k"
grid = 8
block = 128
args = ["&data"]
"#;

fn barriers(test: &str) -> String {
    let path = folder(test).join("barriers.toml");
    std::fs::write(&path, BARRIERS).unwrap();
    path.display().to_string()
}

fn ran(workload: &str, scheme: &str, machine: &str, conduct: &Conduct<'_>, max_cycles: Option<u64>) -> Finished {
    let recipe = Experiment::of(workload).machine(machine).scheme(scheme).profile_if_any("ci").max_cycles(max_cycles);
    run(&recipe.build().unwrap_or_else(|faults| panic!("{faults}")), conduct)
}

fn kept(threads: usize) -> Conduct<'static> {
    Conduct { threads, oversubscribe: true, timeline: Some(64 << 20), ..Conduct::default() }
}

fn slices<'a>(timeline: &'a Timeline, class: &str) -> Vec<&'a Slice> {
    let tracks = timeline.processes.iter().flat_map(|process| &process.tracks);
    let of = tracks.filter(|track| track.class == class);
    of.flat_map(|track| match &track.content {
        Content::Slices(slices) => slices.iter().collect::<Vec<_>>(),
        _ => panic!("{class} has no spans"),
    })
    .collect()
}

fn file(timeline: &Timeline, outcome: &Outcome, budget: u64) -> Vec<u8> {
    let mut out = Vec::new();
    chrome_trace(timeline, outcome, budget, &mut out).unwrap();
    out
}

/// Time in ps.
fn ps(value: &Value) -> u64 {
    let text = value.to_string();
    let (micros, rest) = text.split_once('.').unwrap_or((&text, "0"));
    let digits = format!("{rest:0<6}");
    micros.parse::<u64>().unwrap() * 1_000_000 + digits.parse::<u64>().unwrap()
}

/// Reads a file as a viewer does, by the rules of the trace event format: every event has its fields, spans of
/// a track follow one another (so that they nest), values of a counter come by time, and who has events was
/// named before.
fn checked(bytes: &[u8]) -> Value {
    let file: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(file["displayTimeUnit"], "ns");
    let mut ends: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut counted: BTreeMap<(u64, &str), u64> = BTreeMap::new();
    let (mut processes, mut threads) = (BTreeMap::new(), BTreeMap::new());
    let mut events = 0u64;
    for event in file["traceEvents"].as_array().unwrap() {
        let pid = event["pid"].as_u64().unwrap();
        match event["ph"].as_str().unwrap() {
            "X" => {
                let (ts, dur) = (ps(&event["ts"]), ps(&event["dur"]));
                assert!(threads.contains_key(&(pid, event["tid"].as_u64().unwrap())), "{event} of an unnamed track");
                assert!(event["name"].as_str().is_some_and(|name| !name.is_empty()), "{event}");
                let end = ends.entry((pid, event["tid"].as_u64().unwrap())).or_default();
                assert!(*end <= ts, "{event} begins before {end}");
                *end = ts + dur;
                let args = &event["args"];
                assert!(args["start_ticks"].as_u64().unwrap() <= args["end_ticks"].as_u64().unwrap());
                events += 1;
            }
            "C" => {
                assert!(processes.contains_key(&pid) && event["args"]["value"].is_number(), "{event}");
                let (name, ts) = (event["name"].as_str().unwrap(), ps(&event["ts"]));
                let before = counted.insert((pid, name), ts);
                assert!(before.is_none_or(|before| before < ts), "{event} comes after {before:?}");
                events += 1;
            }
            "M" => {
                let name = event["args"]["name"].as_str();
                match (event["name"].as_str().unwrap(), event["tid"].as_u64()) {
                    ("process_name", None) => assert_eq!(processes.insert(pid, name.unwrap()), None, "{event}"),
                    ("thread_name", Some(tid)) => {
                        assert_eq!(threads.insert((pid, tid), name.unwrap()), None, "{event}")
                    }
                    ("process_sort_index", None) | ("thread_sort_index", Some(_)) => {
                        assert!(event["args"]["sort_index"].is_u64());
                    }
                    ("process_labels", None) => assert!(event["args"]["labels"].is_string()),
                    other => panic!("metadata {other:?}"),
                }
            }
            other => panic!("an event of kind {other}"),
        }
    }
    let told = file["otherData"]["events"].as_object().unwrap();
    assert_eq!(told.values().map(|class| class["kept"].as_u64().unwrap()).sum::<u64>(), events);
    file
}

/// What a rate of the whole machine comes to over a run, in its unit times ticks: a rate lasts until the next,
/// the last until the end.
fn whole(timeline: &Timeline, outcome: &Outcome, name: &str) -> f64 {
    let machine = timeline.processes.iter().find(|process| process.name == "machine").unwrap();
    let track = machine.tracks.iter().find(|track| track.name == name).unwrap_or_else(|| panic!("no {name}"));
    let Content::Thousandths(values) = &track.content else { panic!("{name} is no rate") };
    assert!((4..=512).contains(&values.len()), "{name}: {}", values.len());
    let ends = values.iter().skip(1).map(|value| value.0).chain([outcome.time.ticks]);
    values.iter().zip(ends).map(|((start, rate), end)| (end - start) as f64 * *rate as f64 / 1e3).sum::<f64>()
}

/// Ticks of a core cycle and of a second.
fn ticks_of(timeline: &Timeline, outcome: &Outcome) -> (f64, f64) {
    (outcome.time.ticks as f64 / outcome.time.core_cycles as f64, timeline.tick_khz as f64 * 1e3)
}

/// Bytes that controllers counted of a medium.
fn moved(outcome: &Outcome, medium: &str) -> f64 {
    let of = |way: &str| outcome.total("memory_controller", &format!("{medium}_{way}_bytes")) as f64;
    of("read") + of("written")
}

#[test]
fn rates_of_programs_of_cpus_add_up_to_what_was_counted() {
    let recipe = Experiment::of("hash").scheme("sync").profile("ci");
    let finished = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(&kept(2));
    let (outcome, timeline) = (finished.outcome, finished.timeline.unwrap());
    let whole = |name: &str| whole(&timeline, &outcome, name);
    let (cycle, second) = ticks_of(&timeline, &outcome);
    let core = |name| outcome.total("core", name) as f64;
    let moved = |medium| moved(&outcome, medium);
    // Percent of all slots: eight cores of four a cycle.
    let slots = |name: &str| whole(&format!("dispatch slots {name} (%)")) / 100.0 / cycle * 8.0 * 4.0;
    for (name, whole, counted) in [
        ("IPC", whole("IPC (instructions/cycle)") / cycle, core("instructions")),
        ("used", slots("used"), core("used_slots")),
        ("memory", slots("lost to memory"), core("memory_slots")),
        ("fences", slots("lost to durable fences"), core("persist_slots")),
        ("DRAM", whole("DRAM (GB/s)") / second * 1e9, moved("dram")),
        ("NVM", whole("NVM (GB/s)") / second * 1e9, moved("nvm")),
    ] {
        // What is written after the program's end is counted, and in no rate.
        let least = if ["DRAM", "NVM"].contains(&name) { 0.8 } else { 0.98 };
        assert!(counted > 0.0 && (least..1.02).contains(&(whole / counted)), "{name}: {whole} of {counted}");
    }
    // Hit rates are shares of windows: between the least and the most, and not all alike.
    let machine = timeline.processes.iter().find(|process| process.name == "machine").unwrap();
    for name in ["L1D load hits (%)", "shared cache hits (%)"] {
        let track = machine.tracks.iter().find(|track| track.name == name).unwrap();
        let Content::Thousandths(values) = &track.content else { panic!("{name} is no rate") };
        let most = values.iter().map(|value| value.1).max().unwrap();
        assert!(most > 0 && most <= 100_000 && values.iter().any(|value| value.1 < most), "{name}: {values:?}");
    }
}

#[test]
fn rates_over_time_add_up_to_what_was_counted() {
    let Finished { outcome, timeline, .. } = ran("gemm", "nt-store", "agpm-table4", &kept(2), None);
    let timeline = timeline.unwrap();
    let whole = |name: &str| whole(&timeline, &outcome, name);
    let (cycle, second) = ticks_of(&timeline, &outcome);
    let sm = |name| outcome.total("sm", name) as f64;
    let moved = |medium| moved(&outcome, medium);
    for (name, whole, counted) in [
        ("IPC", whole("IPC (warp instructions/cycle)") / cycle, sm("warp_instructions")),
        ("resident", whole("resident warps") / cycle, sm("slots_resident")),
        ("waiting", whole("warps waiting for memory") / cycle, sm("slots_memory")),
        ("DRAM", whole("DRAM (GB/s)") / second * 1e9, moved("dram")),
        ("NVM", whole("NVM (GB/s)") / second * 1e9, moved("nvm")),
    ] {
        // What is written after the program's end is counted, and in no rate.
        let least = if ["DRAM", "NVM"].contains(&name) { 0.8 } else { 0.99 };
        assert!(counted > 0.0 && (least..1.01).contains(&(whole / counted)), "{name}: {whole} of {counted}");
    }
    // Each SM has its own, and CTAs are named by their kernels.
    let of_sms = timeline.processes.iter().filter(|process| process.name.starts_with("SM "));
    assert!(of_sms.flat_map(|sm| &sm.tracks).any(|track| track.name == "warps waiting for memory"));
    let bytes = file(&timeline, &outcome, 64 << 20);
    let read = checked(&bytes);
    let mut names = read["traceEvents"].as_array().unwrap().iter().filter_map(|event| event["name"].as_str());
    assert!(names.any(|name| name.starts_with("gemm") && name.contains(" CTA ")));
}

#[test]
fn a_timeline_changes_no_bit_of_a_run_and_is_the_same_at_any_number_of_threads() {
    let workload = barriers("timeline_same");
    for (workload, scheme, machine) in [
        (workload.as_str(), "nvw-fifo", "scoped-table2"),
        ("atax", "nvw-fifo", "scoped-table2"),
        ("histogram", "store+clwb", "agpm-table4"),
        ("atax", "strict", "agpm-table4"),
    ] {
        let without = ran(workload, scheme, machine, &Conduct::default(), None);
        assert!(without.timeline.is_none());
        let (one, three) =
            (ran(workload, scheme, machine, &kept(1), None), ran(workload, scheme, machine, &kept(3), None));
        for with in [&one, &three] {
            assert_eq!(with.outcome.digest, without.outcome.digest, "{workload} {scheme}");
            assert_eq!(with.outcome.memory_digest, without.outcome.memory_digest);
            assert_eq!(with.outcome.counters, without.outcome.counters);
            assert_eq!(with.outcome.engine, without.outcome.engine);
        }
        let of = |finished: &Finished| file(finished.timeline.as_ref().unwrap(), &finished.outcome, 1 << 20);
        assert_eq!(of(&one), of(&three), "{workload} {scheme}");
        checked(&of(&one));
    }
}

#[test]
fn spans_say_what_counters_say() {
    let finished = ran(&barriers("timeline_counters"), "nvw-fifo", "scoped-table2", &kept(1), None);
    let (timeline, outcome) = (finished.timeline.unwrap(), finished.outcome);
    assert_eq!(outcome.verification.as_ref().map(|check| check.passed), Some(true));
    let kernels: Vec<(u64, u64)> = slices(&timeline, "kernels").iter().map(|k| (k.start, k.end - k.start)).collect();
    let launches: Vec<(u64, u64)> = outcome.launches.iter().map(|l| (l.start.ticks, l.length.ticks)).collect();
    assert_eq!(kernels, launches);

    let ctas = slices(&timeline, "CTAs");
    assert_eq!(ctas.len() as u64, outcome.total("sm", "ctas"));
    for cta in ctas {
        let Label::Cta { launch, .. } = cta.label else { panic!("{cta:?}") };
        let (start, length) = launches[launch as usize];
        assert!(!cta.cut && start <= cta.start && cta.end <= start + length, "{cta:?}");
    }

    let cycle = outcome.machine.tick_khz / outcome.machine.core_khz;
    let stalls = slices(&timeline, "warp stalls");
    for scope in ["wi", "wg", "kr"] {
        let name = format!("pm.barrier.{scope}");
        let of: Vec<_> = stalls.iter().filter(|s| matches!(s.label, Label::Stall { at, .. } if at == name)).collect();
        assert_eq!(of.len() as u64, outcome.total("sm", &format!("pm_barriers_{scope}")), "{scope}");
        assert_eq!(of.len(), 32, "two launches of eight CTAs of two warps");
        let ticks: u64 = of.iter().map(|s| s.end - s.start).sum();
        assert_eq!(ticks, cycle * outcome.total("sm", &format!("pm_barriers_{scope}_stall")), "{scope}");
    }

    let count = |class: &str| slices(&timeline, class).len();
    assert_eq!((count("barriers of threads"), count("barriers of CTAs"), count("barriers of kernels")), (32, 16, 2));
    // A barrier lasts from its first warp's arrival until its warps go on.
    for barrier in slices(&timeline, "barriers of kernels") {
        let inside = stalls.iter().filter(|s| matches!(s.label, Label::Stall { at, .. } if at == "pm.barrier.kr"));
        let inside: Vec<_> = inside.filter(|s| s.end >= barrier.start && s.start <= barrier.end).collect();
        assert_eq!(inside.len(), 16);
        assert_eq!(inside.iter().map(|s| s.start).min(), Some(barrier.start));
        assert!(inside.iter().all(|s| s.end.abs_diff(barrier.end) <= cycle), "{barrier:?} {inside:?}");
    }

    let mc = |name: &str| outcome.total("memory_controller", name);
    let writes = mc("dram_writes") + mc("nvm_writes");
    assert_eq!(count("L2 writes") as u64, writes);
    let at_media = count("media writes") as u64;
    assert!(at_media <= writes - mc("merged_writes") && at_media > 0);
    let levels = timeline.processes.iter().flat_map(|p| p.tracks.iter().filter(|t| t.name == "WPQ entries"));
    for track in levels {
        let Content::Level(values) = &track.content else { panic!("{track:?}") };
        let most = outcome.machine.parameters["controller.write_queue_entries"].value.as_u64().unwrap();
        assert!(values.iter().all(|(_, entries)| *entries <= most) && values.is_sorted_by_key(|(time, _)| *time));
    }
}

#[test]
fn a_selector_has_a_span_a_period_and_levels_of_its_threshold_and_waits() {
    let finished = ran("grid_binning", "agpm", "agpm-table4", &kept(1), None);
    let (timeline, outcome) = (finished.timeline.unwrap(), finished.outcome);
    let periods = outcome.selection().unwrap().periods;
    let spans = slices(&timeline, "periods");
    let command_ns = outcome.machine.parameters["dispatch.command_ns"].value.as_u64().unwrap();
    let link = command_ns * outcome.machine.tick_khz / 1_000_000;
    assert_eq!(spans.len(), periods.len());
    for (at, (span, period)) in spans.iter().zip(&periods).enumerate() {
        assert_eq!((span.start, span.end), (period.begin_ticks, period.end_ticks));
        assert_eq!(span.label, Label::Period { index: at as u32 });
        // The selector hears of a launch's begin and end one link later.
        let launch = &outcome.launches[period.launch as usize];
        let begin = launch.start.ticks + link;
        let within = begin <= span.start && span.start < span.end && span.end <= begin + launch.length.ticks;
        assert!(within, "{period:?}");
        assert!(period.number > 0 || span.start == begin, "{period:?}");
    }
    let after = periods.windows(2).filter(|pair| pair[0].complete);
    assert!(after.clone().count() > 3 && after.clone().all(|pair| pair[0].end_ticks == pair[1].begin_ticks));
    let level = |name: &str| {
        let tracks = timeline.processes.iter().filter(|process| process.name == "path selector");
        let track = tracks.flat_map(|process| &process.tracks).find(|track| track.name == name).unwrap();
        let Content::Level(values) = &track.content else { panic!("{track:?}") };
        values.clone()
    };
    let thresholds: Vec<(u64, u64)> = periods.iter().map(|p| (p.begin_ticks, p.threshold_logs)).collect();
    assert_eq!(level("threshold (log updates)"), thresholds);
    let waits: Vec<(u64, u64)> = periods.iter().map(|p| (p.begin_ticks, p.cwppr().round() as u64)).collect();
    assert_eq!(level("CWPPR (core cycles)"), waits);
    let file = checked(&file(&timeline, &outcome, 1 << 24));
    let named = |name: &str| file["traceEvents"].as_array().unwrap().iter().filter(|e| e["name"] == name).count();
    let b = periods.iter().filter(|p| p.complete && p.reason == "b" && p.path == "non_temporal").count();
    assert!(b > 0 && named("b, past the caches") == b, "{b}");
    assert!(named("(e), past the caches") > 0, "launches that copy are too short for a period");
}

#[test]
fn harts_run_and_wait_and_a_timeline_changes_no_bit_of_a_program_of_cpus() {
    let ran = |conduct: &Conduct<'_>| {
        let recipe = Experiment::of("hash").scheme("sync").profile("ci");
        recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(conduct)
    };
    let (without, one, three) = (ran(&Conduct::default()), ran(&kept(1)), ran(&kept(3)));
    let places = ran(&Conduct { places: true, ..Conduct::default() });
    assert!(without.timeline.is_none());
    for with in [&one, &three, &places] {
        assert_eq!(with.outcome.digest, without.outcome.digest);
        assert_eq!(with.outcome.memory_digest, without.outcome.memory_digest);
        assert_eq!(with.outcome.counters, without.outcome.counters);
        assert_eq!(with.outcome.engine, without.outcome.engine);
    }
    let of = |finished: &Finished| file(finished.timeline.as_ref().unwrap(), &finished.outcome, 64 << 20);
    assert_eq!(of(&one), of(&three));
    checked(&of(&one));

    let (timeline, outcome) = (one.timeline.unwrap(), one.outcome);
    let names: Vec<&str> = timeline.processes.iter().map(|process| process.name.as_str()).collect();
    for name in ["core 0", "core 7", "home slice 0", "memory controller 1"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    let tracks = |process: &str| -> Vec<&str> {
        let of = timeline.processes.iter().find(|other| other.name == process).unwrap();
        of.tracks.iter().map(|track| track.name.as_str()).collect()
    };
    assert_eq!(tracks("core 3"), ["hart 3 runs", "hart 3 waits", "IPC (instructions/cycle)"]);
    assert_eq!(tracks("core 4").len(), 0, "four threads run");

    // What a hart waited at a fence are its lost slots, but for some of the cycle in which it came there.
    let what = |slice: &Slice| if let Label::Hart { what, .. } = slice.label { what } else { "?" };
    let waits = slices(&timeline, "waits of harts");
    let cycle = outcome.machine.tick_khz / outcome.machine.core_khz;
    let fences = waits.iter().filter(|slice| what(slice) == "durable fence");
    let slots = fences.clone().map(|slice| (slice.end - slice.start) / cycle * 4).sum::<u64>();
    let counted = outcome.total("core", "persist_slots");
    assert!(slots <= counted && counted - slots <= 4 * fences.count() as u64, "{slots} of {counted}");
    // The first thread waits for the others' end, all make calls.
    assert!(waits.iter().any(|slice| what(slice) == "waits for a futex"));
    assert!(waits.iter().any(|slice| what(slice) == "in a call"));
    assert!(waits.iter().all(|slice| what(slice) != "running" && !slice.cut));
    assert!(slices(&timeline, "runs of harts").iter().all(|slice| what(slice) == "running"));
    assert_eq!(slices(&timeline, "writes of home slices").len() as u64, outcome.total("llc", "writebacks"));
}

#[test]
fn a_file_keeps_its_budget_and_says_what_is_left_out() {
    let finished = ran("atax", "nvw-fifo", "scoped-table2", &kept(1), None);
    let (timeline, outcome) = (finished.timeline.unwrap(), finished.outcome);
    let whole = file(&timeline, &outcome, u64::MAX);
    let all = checked(&whole);
    for (class, count) in all["otherData"]["events"].as_object().unwrap() {
        assert_eq!(count["kept"], count["of"], "{class}");
    }
    let mut last = u64::MAX;
    for budget in [whole.len() as u64 - 1, whole.len() as u64 / 2, 50_000, 10_000, 5_000] {
        let bytes = file(&timeline, &outcome, budget);
        assert!(bytes.len() as u64 <= budget, "{} of {budget}", bytes.len());
        let value = checked(&bytes);
        let kept = value["otherData"]["events"].as_object().unwrap().values();
        let kept: u64 = kept.map(|class| class["kept"].as_u64().unwrap()).sum();
        assert!(kept < last, "{budget}");
        last = kept;
        if budget >= 50_000 {
            assert_eq!(value["otherData"]["events"]["kernels"], all["otherData"]["events"]["kernels"], "the few stay");
        }
    }
}

#[test]
fn what_is_under_way_when_a_run_is_cut_short_lasts_until_then() {
    let workload = barriers("timeline_cut");
    let whole = ran(&workload, "nvw-fifo", "scoped-table2", &kept(1), None);
    let barrier = *slices(whole.timeline.as_ref().unwrap(), "barriers of CTAs")[0];
    let cycle = whole.outcome.machine.tick_khz / whole.outcome.machine.core_khz;
    let cut = (barrier.start + (barrier.end - barrier.start) / 2) / cycle;
    let finished = ran(&workload, "nvw-fifo", "scoped-table2", &kept(1), Some(cut));
    let timeline = finished.timeline.as_ref().unwrap();
    checked(&file(timeline, &finished.outcome, 1 << 20));
    for class in ["kernels", "CTAs", "warp stalls", "barriers of CTAs"] {
        let cut_short: Vec<_> = slices(timeline, class).into_iter().filter(|slice| slice.cut).collect();
        assert!(!cut_short.is_empty(), "{class}");
        assert!(cut_short.iter().all(|slice| slice.end == finished.outcome.time.ticks), "{class}: {cut_short:?}");
    }
}

#[test]
fn files_of_either_kind_of_machine_say_which_kernels_components_and_counters_there_are() {
    let folder = folder("timeline_names");
    let of = |arguments: &[&str]| {
        let path = folder.join(arguments[0]).display().to_string();
        let output = durawarp(&[&["run"], arguments, &["--profile", "ci", "-q", "--timeline", &path]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        checked(&std::fs::read(&path).unwrap())
    };
    let (gpu, cpu) = (of(&["vecadd"]), of(&["hash", "--scheme", "sync"]));
    // As a query would: names of events of a kind, in a process.
    let names = |file: &Value, kind: &str, process: &str| -> Vec<String> {
        let events = file["traceEvents"].as_array().unwrap();
        let named = events.iter().find(|e| e["name"] == "process_name" && e["args"]["name"] == process);
        let pid = &named.unwrap_or_else(|| panic!("no process {process}"))["pid"];
        let of = events.iter().filter(|event| event["ph"] == kind && event["pid"] == *pid);
        let mut names: Vec<String> = of.map(|event| event["name"].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(names(&gpu, "X", "command processor"), ["vecadd"]);
    assert!(names(&gpu, "X", "SM 0").iter().any(|name| name.starts_with("vecadd CTA ")));
    assert_eq!(names(&gpu, "C", "machine").len(), 7);
    assert_eq!(names(&cpu, "C", "machine").len(), 8);
    assert!(names(&cpu, "X", "core 0").contains(&"running".to_owned()));
    assert_eq!(names(&cpu, "C", "memory controller 1"), ["WPQ entries"]);
    let ctas = gpu["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["args"]["cta"].is_u64() && e["args"]["warp"].is_null());
    assert_eq!(ctas.count() as u64, gpu["otherData"]["events"]["CTAs"]["of"].as_u64().unwrap());
}

#[test]
fn the_command_writes_a_file_and_its_compressed_twin_and_refuses_what_it_cannot_write() {
    let folder = folder("timeline_command");
    let path = |name: &str| folder.join(name).display().to_string();
    let run = |extra: &[&str]| {
        // One SM, for more waits than it keeps for a file this small.
        let base = ["run", "vecadd", "--set", "params.N=60000", "--set", "sm.count=1", "-q", "--scheme", "strict"];
        durawarp(&[&base[..], extra].concat())
    };
    let (plain, packed) = (path("run.json"), path("run.json.gz"));
    for file in [&plain, &packed] {
        let output = run(&["--timeline", file, "--timeline-budget-mib", "1"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(told.contains("the timeline holds") && told.contains("warp stalls"), "{told}");
    }
    let text = std::fs::read(&plain).unwrap();
    assert!(text.len() <= 1 << 20 && text.len() > 1 << 18, "{}", text.len());
    let stalls = &checked(&text)["otherData"]["events"]["warp stalls"];
    assert!(stalls["kept"].as_u64() < stalls["of"].as_u64() && stalls["of"].as_u64() > Some(1024), "{stalls}");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&packed).unwrap()).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == text && std::fs::metadata(&packed).unwrap().len() < text.len() as u64 / 4);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "no partial file is left");
    for (extra, word) in [
        (&["--timeline", "/nowhere/at/all.json"][..], "/nowhere/at/all.json"),
        (&["--timeline-budget-mib", "5"], "--timeline"),
        (&["--timeline", "x.json", "--timeline-budget-mib", "0"], "1..=65536"),
    ] {
        let output = run(extra);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(word), "{told}");
    }
}

#[test]
fn regions_and_what_controllers_do_to_commit_them_are_tracks() {
    let of = |conduct: &Conduct<'_>| ran("atax", "light-wsp", "lightwsp-gpu", conduct, None);
    let (plain, finished) = (of(&Conduct::default()), of(&kept(1)));
    let outcome = &finished.outcome;
    assert_eq!(plain.outcome.digest, outcome.digest);
    let timeline = finished.timeline.as_ref().unwrap();
    let regions = outcome.scheme_counters["regions"];
    assert_eq!((slices(timeline, "regions").len() as u64, timeline.noted["regions"]), (regions, regions));
    let levels = |name: &str| -> Vec<&Vec<(u64, u64)>> {
        let tracks = timeline.processes.iter().flat_map(|process| &process.tracks);
        let of = tracks.filter(|track| track.name == name).map(|track| match &track.content {
            Content::Level(values) => values,
            _ => panic!("{name} is no level"),
        });
        of.collect()
    };
    // Every controller has every region commit, and holds nothing in the end.
    let flush_ids = levels("flush ID");
    assert_eq!(flush_ids.len(), 8);
    assert!(flush_ids.iter().all(|values| values.last().unwrap().1 == regions), "{regions}");
    let gated = levels("gated entries");
    assert!(gated.iter().all(|values| values.last().unwrap().1 == 0));
    assert!(gated.iter().any(|values| values.iter().any(|(_, entries)| *entries > 0)));
    let waits = slices(timeline, "ACKs and flushes of regions");
    let count = |word: &str| {
        let is = |slice: &&&Slice| matches!(slice.label, Label::Region { what, .. } if what == word);
        waits.iter().filter(is).count() as u64
    };
    assert_eq!([count("bdry-ACKs"), count("flush-ACKs")], [8 * regions; 2]);
    assert!((1..=8 * regions).contains(&count("flush")));
    let file = checked(&file(timeline, outcome, 64 << 20));
    let named = |name: &str| file["traceEvents"].as_array().unwrap().iter().any(|event| event["name"] == name);
    assert!(named("region 0") && named("flush-ACKs 0") && named("flush ID"));
}

#[test]
fn regions_of_harts_are_tracks_and_change_no_bit() {
    let ran = |conduct: &Conduct<'_>| {
        let recipe = Experiment::of("kvlog").machine("lightwsp-cpu").scheme("light-wsp").profile("ci");
        recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(conduct)
    };
    let (plain, one, three) = (ran(&Conduct::default()), ran(&kept(1)), ran(&kept(3)));
    let outcome = &one.outcome;
    assert_eq!((&plain.outcome.digest, &plain.outcome.counters), (&outcome.digest, &outcome.counters));
    assert_eq!(plain.outcome.scheme_report, outcome.scheme_report);
    let of = |finished: &Finished| file(finished.timeline.as_ref().unwrap(), &finished.outcome, 64 << 20);
    assert_eq!(of(&one), of(&three));
    checked(&of(&one));

    let timeline = one.timeline.as_ref().unwrap();
    let spans = slices(timeline, "regions");
    assert_eq!(spans.len() as u64, outcome.scheme_counters["regions"]);
    assert!(spans.iter().all(|slice| slice.start <= slice.end && slice.end <= outcome.time.ticks));
    // Each number is of one region; those of a hart are in its core's tracks.
    let numbers = |process: &str| -> Vec<u32> {
        let of = timeline.processes.iter().find(|other| other.name == process).unwrap();
        let tracks = of.tracks.iter().filter(|track| track.class == "regions");
        let spans = tracks.flat_map(|track| match &track.content {
            Content::Slices(slices) => slices.iter(),
            Content::Level(_) | Content::Thousandths(_) => panic!("a number"),
        });
        let number = |slice: &Slice| if let Label::Region { region, .. } = slice.label { region } else { u32::MAX };
        spans.map(number).collect()
    };
    let mut all: Vec<u32> = (0..8).flat_map(|core| numbers(&format!("core {core}"))).collect();
    all.sort_unstable();
    assert_eq!(all, (0..spans.len() as u32).collect::<Vec<_>>());
    assert!(numbers("core 1").len() > 1 && numbers("core 7").is_empty(), "four threads run");
}

#[test]
fn regions_that_each_core_orders_are_tracks_beside_what_its_buffer_holds() {
    for scheme in ["capri", "cwsp"] {
        let ran = |conduct: &Conduct<'_>| {
            let recipe = Experiment::of("kvlog").machine("lightwsp-cpu").scheme(scheme).profile("ci");
            recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(conduct)
        };
        let (plain, kept) = (ran(&Conduct::default()), ran(&kept(1)));
        assert_eq!((&plain.outcome.digest, &plain.outcome.counters), (&kept.outcome.digest, &kept.outcome.counters));
        let (timeline, outcome) = (kept.timeline.as_ref().unwrap(), &kept.outcome);
        checked(&file(timeline, outcome, 64 << 20));
        assert_eq!(slices(timeline, "regions").len() as u64, outcome.scheme_counters["regions"], "{scheme}");
        let tracks = |process: &str, name: &str| {
            let of = timeline.processes.iter().find(|other| other.name == process).unwrap();
            of.tracks.iter().filter(|track| track.name.starts_with(name)).count()
        };
        // The first core has a hart that runs, the last has none.
        let buffers = ["core 0", "core 7"].map(|core| tracks(core, "persist buffer of hart"));
        assert_eq!(buffers, [1, 0], "{scheme}");
        // What regions wait for at a controller: ACKs, then their own writes.
        let waits = ["bdry-ACKs", "flush"].map(|wait| {
            let spans = timeline.processes.iter().flat_map(|process| &process.tracks);
            let labels = spans.filter_map(|track| match &track.content {
                Content::Slices(slices) => Some(slices.iter().map(|slice| slice.label)),
                _ => None,
            });
            labels.flatten().filter(|label| matches!(label, Label::Region { what, .. } if *what == wait)).count()
        });
        assert!(waits.iter().all(|&spans| spans > 100), "{scheme}: {waits:?}");
    }
}

#[test]
fn persist_buffers_queues_of_the_controller_and_verbs_are_tracks() {
    let ran = |conduct: &Conduct<'_>| {
        let recipe = Experiment::of("hash").machine("broi-cluster").scheme("broi").profile("ci").reference(false);
        let recipe = recipe.set("client.transactions", 10).set("nodes.clients", 2);
        recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")).run(conduct)
    };
    let (plain, one, three) = (ran(&Conduct::default()), ran(&kept(1)), ran(&kept(3)));
    let outcome = &one.outcome;
    assert_eq!((&plain.outcome.digest, &plain.outcome.counters), (&outcome.digest, &outcome.counters));
    let of = |finished: &Finished| file(finished.timeline.as_ref().unwrap(), &finished.outcome, 64 << 20);
    assert_eq!(of(&one), of(&three));
    checked(&of(&one));

    let timeline = one.timeline.as_ref().unwrap();
    let tracks =
        || timeline.processes.iter().flat_map(|process| process.tracks.iter().map(move |track| (process, track)));
    let levels = |process: &str, name: &str| -> Vec<&Vec<(u64, u64)>> {
        let of = tracks().filter(|(of, track)| of.name == process && track.name.starts_with(name));
        let values = of.map(|(_, track)| match &track.content {
            Content::Level(values) => values,
            _ => panic!("{name} is no level"),
        });
        values.collect()
    };
    // 4 harts persist, and 2 channels; nothing is left in the end, and no buffer has more than its 8 entries.
    let buffers: Vec<_> = (0..4).flat_map(|core| levels(&format!("core {core}"), "persist buffer of hart")).collect();
    let channels = levels("NIC", "persist buffer of channel");
    let queues = levels("memory controller 0", "persist requests of hart");
    assert_eq!((buffers.len(), channels.len(), queues.len()), (4, 2, 4 + 2));
    for values in buffers.iter().chain(&channels).chain(&queues) {
        assert_eq!(values.last().unwrap().1, 0);
    }
    let most = |of: &[&Vec<(u64, u64)>]| of.iter().flat_map(|values| values.iter()).map(|value| value.1).max();
    assert!((2..=8).contains(&most(&buffers).unwrap()) && most(&channels) == Some(8) && most(&queues) >= Some(2));
    // A verb lasts until it, or one behind it, is acknowledged: 6 us and more, of 6 in a transaction at once.
    let verbs = slices(timeline, "verbs");
    assert_eq!(verbs.len() as u64, outcome.total("client", "verbs"));
    assert_eq!(timeline.noted["verbs"], verbs.len() as u64);
    let six_us = 6 * outcome.machine.tick_khz / 1000;
    assert!(verbs.iter().all(|verb| !verb.cut && verb.end - verb.start > six_us - six_us / 10));
    let rows = |client: &str| tracks().filter(|(process, _)| process.name == client).count();
    assert_eq!((rows("client 0"), rows("client 1")), (6, 6));
    assert!(verbs.iter().any(|verb| matches!(verb.label, Label::Verb { number: 6 })));
}
