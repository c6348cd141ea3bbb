//! A crash test as text: what was promised, what was judged, and for each failure the two persists whose
//! order is missing.

use super::console::{align_right, lines, plain_table};
use super::numbers::{count, seconds};
use durawarp_oracle::verdict::{Level, Property, WrongBytes, WrongElement, WrongValue};
use durawarp_simulation::crash::{CrashReport, Found, JudgedLevel, OutputCounts, Placed};
use durawarp_workload::Expected;

/// What level B does not reach: orders of another timing.
const BOUND_OF_ALLOWED: &str = "  level B: what this run's order of durability leaves open; a slower memory or a smaller \
    persistence domain leaves open more\n";

/// The text of a crash test. `replay` makes the command that judges one state again, from what names it.
pub fn crash_summary(report: &CrashReport, replay: &dyn Fn(&str) -> String) -> String {
    let o = &report.outcome;
    let name = |value: &serde_json::Value| value.as_str().unwrap_or("?").to_owned();
    let mut out = format!(
        "{} ({}) on {}, scheme {}, domain {}, recovery by {}\n",
        name(&o.workload["workload"]),
        name(&o.workload["profile"]),
        o.machine.name,
        o.scheme_name(),
        serde_json::to_value(report.domain).ok().as_ref().map_or_else(String::new, name),
        report.recovery,
    );
    // What the program has none of is not named.
    let transactions = match report.transactions {
        0 => String::new(),
        some => format!(", {} transactions", count(some)),
    };
    let verbs = report.levels.channels.map_or_else(String::new, |of| {
        let (channels, acks) = (count(of.channels), count(of.acknowledgements));
        format!(", {} verbs of {channels} channels with {acks} acknowledgements", count(of.verbs))
    });
    let regions = report.regions.map_or_else(String::new, |regions| format!(", {} regions", count(regions)));
    out += &format!(
        "{} cycles, {} changes of {} B of persistent memory{transactions}{regions}{verbs}\n\npromised\n",
        count(o.time.core_cycles),
        count(report.changes),
        count(report.image_bytes)
    );
    for promise in &report.promises {
        out += &format!("  {promise}\n");
    }
    out += "\njudged\n";
    let mut table = plain_table();
    table.set_header(["", "states", "distinct", "consistent", "failures", "", ""]);
    align_right(&mut table, 1..=4);
    for judgement in &report.levels.judgements {
        let (what, v) = (judgement.level.name(), &judgement.verdict);
        // How much of all states the numbers speak for: a verdict must not look like more than it is.
        let all = match (v.exhaustive, v.left_out, v.stopped) {
            (_, _, true) => format!("stopped after {}", count(v.judged)),
            (true, ..) => "all there are".to_owned(),
            (false, 0, _) => "a choice of combinations".to_owned(),
            (false, left_out, _) => format!("a choice, {} left out", count(left_out)),
        };
        let verdict = match (v.holds(), &report.unjudged) {
            (false, _) => "FAILED",
            (true, None) => "ok",
            (true, Some(_)) => "nothing to judge",
        };
        table.add_row([what, &count(v.points), &count(v.distinct), &count(v.passed), &count(v.failed), &all, verdict]);
    }
    out += &lines(&table, 1);
    if report.levels.of(JudgedLevel::Allowed).is_some() {
        out += BOUND_OF_ALLOWED;
    }
    if let Some(output) = &report.output {
        out += &format!("\n{}\n", output_of(output));
    }
    // Nothing to judge is not a success: it is said aloud.
    if let Some(why) = &report.unjudged {
        out += &format!("\nNOTHING WAS JUDGED: {why}\n");
    }
    if !report.conditions.is_empty() {
        out += &format!("\nconditions\n{}", conditions(report, replay));
    }
    let (simulated, judged) = (seconds(report.wall_s[0]), seconds(report.wall_s[1]));
    out += &format!("\nsimulated in {simulated}, judged in {judged}, seed {}\n", report.seed);
    for judgement in &report.levels.judgements {
        if let Some(first) = judgement.found.first() {
            out += &failure(first, judgement.verdict.failed, replay);
        }
    }
    out
}

/// How output compared.
fn output_of(output: &OutputCounts) -> String {
    let OutputCounts { same, other_order, differs, example, .. } = output;
    let mut out = format!("output of resumed programs: {} times the same", count(*same));
    if *other_order > 0 {
        out += &format!(", {} times in another order of threads", count(*other_order));
    }
    if *differs > 0 {
        out += &format!(", {} times another, and either may be right", count(*differs));
    }
    example.iter().for_each(|example| out += &format!("\n  {example}"));
    out
}

/// Each condition with how many images it held on.
fn conditions(report: &CrashReport, replay: &dyn Fn(&str) -> String) -> String {
    let mut out = String::new();
    for condition in &report.conditions {
        let (held, violated) = (condition.held.iter().sum::<u64>(), condition.violated.iter().sum::<u64>());
        let verdict = match (condition.expected, condition.as_expected, violated) {
            (Expected::Holds, true, _) => "ok",
            (Expected::Holds, false, _) => "FAILED",
            (Expected::Violated, true, 0) => "violated by none so far",
            (Expected::Violated, true, _) => "violated, as the manifest says",
            (Expected::Violated, false, _) => "FAILED: the manifest says that it is violated",
            (Expected::Nothing, ..) => "not promised here",
        };
        let all = count(held + violated);
        out += &format!("  {}: held on {} of {all} images: {verdict}\n", condition.name, count(held));
        let holds: Vec<&str> = condition.holds.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        out += &format!("    {} image: {}\n", condition.on, holds.join("\n      "));
        if let Some(source) = &condition.source {
            out += &format!("    {source}\n");
        }
        // A failure is told with the others.
        if let Some(first) = condition.first.as_ref().filter(|_| condition.expected != Expected::Holds) {
            let state = state_name(first);
            let cycle = count(first.core_cycle);
            out += &format!("    first at cycle {cycle}: {}\n", replay(&state));
            for value in &first.failure.values {
                out += &format!("      {}\n", wrong(value));
            }
            if first.failure.values.is_empty() {
                out += &format!("      {}\n", first.failure.what);
            }
        }
    }
    out
}

/// The name by which a state can be asked for again.
pub fn state_name(found: &Found) -> String {
    match (found.failure.level, found.failure.choice) {
        (Level::Allowed, Some(choice)) => format!("B:{}:{choice}", found.failure.point),
        (Level::Overtaking, _) => format!("C:{}", found.failure.point),
        _ => format!("A:{}", found.failure.point),
    }
}

fn failure(found: &Found, failed: u64, replay: &dyn Fn(&str) -> String) -> String {
    let f = &found.failure;
    let mut out = format!(
        "\nfirst failure of {}, at cycle {} ({})\n",
        count(failed),
        count(found.core_cycle),
        property(&f.property)
    );
    let server = found.server.map(|server| format!("server {server}: ")).unwrap_or_default();
    out += &format!("  {server}{}\n", f.what);
    for value in &f.values {
        out += &format!("  {}\n", wrong(value));
    }
    if let Some(missing) = &found.missing {
        out += &format!("  not durable: {}\n", placed(missing));
    }
    if let Some(present) = &found.present {
        out += &format!("  durable:     {}\n", placed(present));
    }
    // Only two persists have an order that was broken.
    if let (Some(missing), Some(present)) = (&found.missing, &found.present) {
        out += &format!("  their order is one {}\n", scope(missing, present));
    }
    // A state of verbs, or of one of several servers, is no state that can be asked for by itself.
    if found.server.is_some()
        || f.property == Property::Verbs
        || found.missing.as_ref().is_some_and(|missing| missing.channel.is_some())
    {
        return out;
    }
    let level = match f.level {
        Level::Program | Level::Actual => "seen in this run",
        Level::Allowed => "allowed by the model, not seen in this run",
        Level::Overtaking => "left when this warp runs ahead of the others, not seen in this run",
    };
    out += &format!("  {level}; judge just this state: {}\n", replay(&state_name(found)));
    out
}

/// A wrong value: as an element of the program, or as bytes where no buffer is known.
fn wrong(value: &WrongValue) -> String {
    if let Some(WrongElement { name, ty, found, expected, given }) = &value.element {
        let ty = ty.as_ref().map_or_else(String::new, |ty| format!(" ({ty})"));
        let given = if given.is_empty() { String::new() } else { format!(", given {}", given.join(", ")) };
        return format!("{name}{ty}: found {found}, expected {expected}{given}");
    }
    let Some(WrongBytes { address, found, expected }) = &value.bytes else { return "no value".to_owned() };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let expected = expected.as_ref().map_or_else(String::new, |bytes| format!(", expected {}", hex(bytes)));
    format!("{} bytes at {address:#x}: found {}{expected}", found.len(), hex(found))
}

fn property(property: &Property) -> &str {
    match property {
        Property::Facts => "the facts disagree",
        Property::Value => "P0",
        Property::Strict => "P1",
        Property::Epoch | Property::Scope => "P2",
        Property::Undo => "P3",
        Property::Disjoint => "P3, logs or data shared",
        Property::Regions => "P4",
        Property::Resume => "P4, resuming",
        Property::Replay => "P4', replay",
        Property::Visible => "order of visibility",
        Property::Ordered | Property::Epochs => "P5",
        Property::Verbs => "P6",
        Property::Idempotent => "P8",
        Property::Acknowledged => "P9",
        Property::Recovery => "recovery",
        Property::Check(name) => name,
    }
}

/// How far apart the authors of two persists are: what a fence or barrier between them would have to span.
fn scope(one: &Placed, other: &Placed) -> &'static str {
    let (a, b) = (&one.persist, &other.persist);
    if one.channel.is_some() {
        return "of a channel's verbs";
    }
    if one.function.is_some() {
        return if (a.sm, a.warp) == (b.sm, b.warp) { "within a hart: a fence's" } else { "between harts" };
    }
    match (&one.kernel, &other.kernel) {
        (Some(_), Some(_)) if (a.launch, a.cta, a.warp) == (b.launch, b.cta, b.warp) => "within a warp: a fence's",
        (Some(_), Some(_)) if (a.launch, a.cta) == (b.launch, b.cta) => {
            "between warps of a CTA: a barrier's behind a fence"
        }
        (Some(_), Some(_)) if a.launch == b.launch => "between CTAs of a launch",
        _ => "between launches or with the host",
    }
}

fn placed(placed: &Placed) -> String {
    let p = &placed.persist;
    let what = match &placed.buffer {
        Some((buffer, offset)) => format!("{} at {buffer}+{offset}", p.role),
        None => format!("{} at {:#x}", p.role, p.address),
    };
    if let Some(channel) = placed.channel {
        return format!("a line at {:#x}, of {} of channel {channel}", p.address, p.role);
    }
    if let Some(function) = &placed.function {
        return format!("{what}, by {function}, core {}, hart {} of it", p.sm, p.warp);
    }
    match (&placed.kernel, &placed.source) {
        (Some(kernel), Some((file, line))) => format!(
            "{what}, by kernel `{kernel}` ({file}:{line}), launch {}, CTA {}, warp {}, SM {}",
            p.launch, p.cta, p.warp, p.sm
        ),
        (Some(kernel), None) => {
            format!("{what}, by kernel `{kernel}`, launch {}, CTA {}, warp {}", p.launch, p.cta, p.warp)
        }
        _ => format!("{what}, by the host"),
    }
}

#[cfg(test)]
mod tests;
