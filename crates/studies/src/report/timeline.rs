//! A timeline in the JSON of Chrome's trace viewer, which Perfetto reads.
//!
//! ```text
//!   {"displayTimeUnit":"ns","otherData":{...},"traceEvents":[
//!   {"ph":"M",...}   names of processes (components) and of their threads (tracks)
//!   {"ph":"X",...}   a span: `ts` and `dur` in µs of simulated time, exact to the ps; ticks in `args`
//!   {"ph":"C",...}   a level from `ts` on
//! ```
//! The file is never larger than the budget: while it would be, of the class of tracks that takes up the most
//! one span of two is left out, and so on (levels: one value a stretch of time, twice as long each time; the
//! last resort is a class left out). What is left out is counted in `otherData`. Invariant: the bytes follow
//! from timeline, outcome and budget.
//!
//! Source: "Trace Event Format" (the Chromium project's document), events M, X and C. Not used: flows, nested
//! spans.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::numbers::count;
use durawarp_base::timeline::{Content, Label, Slice, Timeline, Track, last_of_stretches};
use durawarp_persist::selection::{Period, Selection};
use durawarp_simulation::outcome::Outcome;

/// How much of a class is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What, in the plural.
    pub class: &'static str,
    /// Spans or values that are in the file.
    pub kept: u64,
    /// That there were.
    pub noted: u64,
}

impl Kept {
    /// That some of the class are left out, if any are.
    pub fn told(&self) -> Option<String> {
        let Kept { class, kept, noted } = *self;
        let [kept, noted] = (kept < noted).then(|| [kept, noted].map(count))?;
        Some(format!(
            "the timeline holds {kept} of {noted} {class}, evenly spread; --timeline-budget-mib raises its size"
        ))
    }
}

/// One of so many spans of each class is in; 0 for none.
type Thinning = BTreeMap<&'static str, u64>;

/// As [`chrome_trace`], packed by gzip where asked for.
///
/// # Errors
/// `out` cannot be written to.
pub fn write_timeline(
    timeline: &Timeline,
    outcome: &Outcome,
    budget: u64,
    compressed: bool,
    mut out: impl Write,
) -> io::Result<Vec<Kept>> {
    let kept = if compressed {
        let mut packed = GzEncoder::new(&mut out, Compression::default());
        let kept = chrome_trace(timeline, outcome, budget, &mut packed)?;
        packed.finish()?;
        kept
    } else {
        chrome_trace(timeline, outcome, budget, &mut out)?
    };
    out.flush()?;
    Ok(kept)
}

/// Writes a timeline as a file of up to `budget` bytes, a few KiB at least, and tells how much of each class
/// is in it.
///
/// # Errors
/// `out` cannot be written to.
pub fn chrome_trace(timeline: &Timeline, outcome: &Outcome, budget: u64, out: &mut dyn Write) -> io::Result<Vec<Kept>> {
    let selection = outcome.selection().unwrap_or_default();
    let trace = Trace { timeline, outcome, selection };
    let mut thinning: Thinning = timeline.noted.keys().map(|&class| (class, 1)).collect();
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for &class in thinning.keys() {
        sizes.insert(class, trace.size(class, &thinning)?);
    }
    loop {
        let mut head = Counting::default();
        trace.head(&trace.kept(&thinning), &mut head)?;
        let total = head.0 + TAIL.len() as u64 + sizes.values().sum::<u64>();
        let largest = sizes.iter().max_by_key(|(_, size)| **size).map(|(&class, &size)| (class, size));
        let Some((class, _)) = largest.filter(|(_, size)| total > budget && *size > 0) else { break };
        let longest = trace.of_class(class).map(|(.., track)| track.content.len()).max().unwrap_or_default();
        let every = thinning[class] * 2;
        thinning.insert(class, if every < 2 * longest { every } else { 0 });
        sizes.insert(class, trace.size(class, &thinning)?);
    }
    let kept = trace.kept(&thinning);
    trace.head(&kept, out)?;
    for &class in thinning.keys() {
        trace.class(class, &thinning, out)?;
    }
    out.write_all(TAIL)?;
    Ok(kept)
}

const TAIL: &[u8] = b"\n]}\n";

/// Counts bytes.
#[derive(Debug, Default)]
struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is left of a track.
fn thinned(track: &Track, every: u64) -> Content {
    match (&track.content, every) {
        (_, 0) => Content::Slices(Vec::new()),
        (Content::Slices(slices), _) => Content::Slices(slices.iter().step_by(every as usize).copied().collect()),
        (Content::Level(values), _) => Content::Level(thinned_values(values, every)),
        (Content::Thousandths(values), _) => Content::Thousandths(thinned_values(values, every)),
    }
}

fn thinned_values(values: &[(u64, u64)], every: u64) -> Vec<(u64, u64)> {
    if every == 1 {
        return values.to_vec();
    }
    let (first, last) = (values.first().map_or(0, |value| value.0), values.last().map_or(0, |value| value.0));
    let stretch = ((last - first) / values.len().max(1) as u64).max(1) * every;
    last_of_stretches(values, stretch)
}

struct Trace<'a> {
    timeline: &'a Timeline,
    outcome: &'a Outcome,
    selection: Selection,
}

impl Trace<'_> {
    /// Tracks of a class with the numbers of their process and of themselves in it.
    fn of_class(&self, class: &str) -> impl Iterator<Item = (usize, usize, &Track)> {
        let processes = self.timeline.processes.iter().enumerate();
        let tracks = processes.flat_map(|(at, process)| {
            process.tracks.iter().enumerate().map(move |(row, track)| (at + 1, row + 1, track))
        });
        tracks.filter(move |(.., track)| track.class == class)
    }

    fn kept(&self, thinning: &Thinning) -> Vec<Kept> {
        let of = |(&class, &every): (&&'static str, &u64)| {
            let kept = self.of_class(class).map(|(.., track)| thinned(track, every).len()).sum();
            Kept { class, kept, noted: self.timeline.noted.get(class).copied().unwrap_or_default() }
        };
        thinning.iter().map(of).collect()
    }

    fn head(&self, kept: &[Kept], out: &mut dyn Write) -> io::Result<()> {
        let text = |name: &str| self.outcome.workload[name].clone();
        let counted = |class: &Kept| (class.class.to_owned(), json!({ "kept": class.kept, "of": class.noted }));
        let about = json!({
            "about": "simulated time; ts and dur in microseconds, exact ticks in args; read with ui.perfetto.dev",
            "durawarp": self.outcome.version,
            "machine": self.outcome.machine.name,
            "scheme": self.outcome.scheme_name(),
            "workload": text("workload"),
            "profile": text("profile"),
            "digest": self.outcome.digest,
            "tick_khz": self.timeline.tick_khz,
            "events": kept.iter().map(counted).collect::<serde_json::Map<_, _>>(),
        });
        writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
        // The first event: all others begin with a comma.
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_labels\",\"args\":{{\"labels\":\"simulated time\"}}}}"
        )?;
        for (at, process) in self.timeline.processes.iter().enumerate() {
            name(out, "process", at + 1, None, &process.name)?;
        }
        Ok(())
    }

    fn size(&self, class: &str, thinning: &Thinning) -> io::Result<u64> {
        let mut size = Counting::default();
        self.class(class, thinning, &mut size)?;
        Ok(size.0)
    }

    fn class(&self, class: &str, thinning: &Thinning, out: &mut dyn Write) -> io::Result<()> {
        let every = thinning.get(class).copied().unwrap_or(1);
        for (pid, tid, track) in self.of_class(class) {
            match thinned(track, every) {
                Content::Slices(slices) if slices.is_empty() => {}
                Content::Slices(slices) => {
                    name(out, "thread", pid, Some(tid), &track.name)?;
                    for slice in &slices {
                        self.slice(pid, tid, slice, out)?;
                    }
                }
                Content::Level(values) => self.values(pid, track, &values, |value| value.to_string(), out)?,
                Content::Thousandths(values) => {
                    let decimal = |value: u64| format!("{}.{:03}", value / 1000, value % 1000);
                    self.values(pid, track, &values, decimal, out)?;
                }
            }
        }
        Ok(())
    }

    /// A number over time, each value in the words of JSON.
    fn values(
        &self,
        pid: usize,
        track: &Track,
        values: &[(u64, u64)],
        in_words: impl Fn(u64) -> String,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let label = json!(track.name);
        for &(time, value) in values {
            let (ts, value) = (Micros(self.timeline.ps_of_ticks(time)), in_words(value));
            let head = format_args!("{{\"ph\":\"C\",\"pid\":{pid},\"ts\":{ts},\"name\":{label}");
            write!(out, ",\n{head},\"args\":{{\"value\":{value}}}}}")?;
        }
        Ok(())
    }

    fn slice(&self, pid: usize, tid: usize, slice: &Slice, out: &mut dyn Write) -> io::Result<()> {
        let (start, end) = (self.timeline.ps_of_ticks(slice.start), self.timeline.ps_of_ticks(slice.end));
        let (ts, dur) = (Micros(start), Micros(end - start));
        write!(out, ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\"name\":")?;
        // Each arm leaves `args` open: the times in ticks, which all slices have, close it below.
        match slice.label {
            Label::Kernel { launch } => {
                let record = self.outcome.launches.get(launch as usize);
                let kernel = json!(record.map_or("", |record| &record.kernel));
                let (grid, block) = record.map_or(([0; 3], [0; 3]), |record| (record.grid, record.block));
                write!(out, "{kernel},\"args\":{{\"launch\":{launch},\"grid\":{grid:?},\"block\":{block:?}")?;
            }
            // Named by its kernel: rows of CTA slots show which kernel an SM runs.
            Label::Cta { launch, cta } => {
                let kernel = self.outcome.launches.get(launch as usize).map_or("", |record| &record.kernel);
                let label = json!(format!("{kernel} CTA {cta}"));
                write!(out, "{label},\"args\":{{\"launch\":{launch},\"cta\":{cta}")?;
            }
            Label::Stall { at, launch, cta, warp } => {
                write!(out, "\"{at}\",\"args\":{{\"launch\":{launch},\"cta\":{cta},\"warp\":{warp}")?;
            }
            Label::Barrier { at, launch, cta: Some(cta) } => {
                write!(out, "\"{at}\",\"args\":{{\"launch\":{launch},\"cta\":{cta}")?;
            }
            Label::Barrier { at, launch, cta: None } => write!(out, "\"{at}\",\"args\":{{\"launch\":{launch}")?,
            // A period that a thinned report does not have is drawn without words.
            Label::Period { index } => {
                let none = Period::default();
                let period = self.selection.periods.get(index as usize).unwrap_or(&none);
                let (label, kernel, launch) = (json!(label_of(period)), json!(period.kernel), period.launch);
                write!(out, "{label},\"args\":{{\"kernel\":{kernel},\"launch\":{launch},\"period\":{}", period.number)?;
                write!(out, ",\"log_updates\":{},\"threshold\":{}", period.logs, period.threshold_logs)?;
            }
            Label::Region { what, order, region } => {
                write!(out, "\"{what} {region}\",\"args\":{{\"order\":{order},\"region\":{region}")?;
            }
            Label::Hart { what, pc } => write!(out, "\"{what}\",\"args\":{{\"pc\":\"{pc:#x}\"")?,
            Label::Verb { number } => write!(out, "\"verb {number}\",\"args\":{{\"verb\":{number}")?,
            Label::Write { line, persistent } => {
                let medium = if persistent { "NVM" } else { "DRAM" };
                write!(out, "\"{medium} write\",\"args\":{{\"line\":\"{line:#x}\"")?;
            }
        }
        let cut = if slice.cut { ",\"cut\":true" } else { "" };
        write!(out, ",\"start_ticks\":{},\"end_ticks\":{}{cut}}}}}", slice.start, slice.end)
    }
}

/// A period's reason, in brackets where it decided nothing, and the way of its log updates.
fn label_of(period: &Period) -> String {
    let way = if period.path == "temporal" { "through the caches" } else { "past the caches" };
    if period.complete { format!("{}, {way}", period.reason) } else { format!("({}), {way}", period.reason) }
}

/// Names a process or a thread and keeps its place.
fn name(out: &mut dyn Write, kind: &str, pid: usize, tid: Option<usize>, name: &str) -> io::Result<()> {
    let thread = tid.map_or_else(String::new, |tid| format!(",\"tid\":{tid}"));
    let (label, at) = (json!(name), tid.unwrap_or(pid));
    write!(out, ",\n{{\"ph\":\"M\",\"pid\":{pid}{thread},\"name\":\"{kind}_name\",\"args\":{{\"name\":{label}}}}}")?;
    write!(
        out,
        ",\n{{\"ph\":\"M\",\"pid\":{pid}{thread},\"name\":\"{kind}_sort_index\",\"args\":{{\"sort_index\":{at}}}}}"
    )
}

/// Picoseconds, written in µs.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
