//! What may be asked of LightWSP on cores, as pure functions of numbers: bounds and orders about what the
//! paper's text says. Asks that a GPU port answers as well are those of [`crate::papers::lightwsp::ask`].
//!
//! An ask about what was not run whole is not applicable, nor is one whose cause never arose in the runs.

pub(crate) use crate::papers::Ask;
use crate::papers::lightwsp::ask::Bars;

/// A hundredth.
const POINT: f64 = 0.01;

/// A share as the evidence has it.
fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// An ask about overheads of several names.
fn of<const N: usize>(text: &'static str, named: [(&str, Option<f64>); N], holds: impl Fn([f64; N]) -> bool) -> Ask {
    let missing: Vec<&str> = named.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        return Ask::unjudged(text, format!("not run whole: {}", missing.join(", ")));
    }
    let values = named.map(|(_, value)| value.unwrap_or_default());
    let words = named.iter().zip(values).map(|((name, _), value)| format!("{name}: {}", percent(value)));
    Ask::of(text, holds(values), words.collect::<Vec<_>>().join("; "))
}

/// Figure 7: Capri, PPA, LightWSP, Capri with its own bandwidth.
pub(crate) fn systems([capri, ppa, light_wsp, fast]: [Option<f64>; 4]) -> Vec<Ask> {
    let (capri, ppa, light_wsp) = (("Capri", capri), ("PPA", ppa), ("light-wsp", light_wsp));
    vec![
        of("Capri's overhead is more than twice LightWSP's", [capri, light_wsp], |[capri, own]| capri > 2.0 * own),
        of("LightWSP and PPA differ by less than 8 points", [ppa, light_wsp], |[ppa, own]| {
            (own - ppa).abs() < 8.0 * POINT
        }),
        of("LightWSP's mean overhead is below 20 %", [light_wsp], |[own]| own < 0.20),
        of(
            "with 32 GB/s Capri has less than half the overhead",
            [capri, ("Capri at 32 GB/s", fast)],
            |[capri, fast]| fast < capri / 2.0,
        ),
    ]
}

/// Figure 8: LightWSP over PPA.
pub(crate) fn hidden(ppa: Option<f64>, light_wsp: Option<f64>) -> Ask {
    of("LightWSP hides more of persistence than PPA", [("PPA", ppa), ("light-wsp", light_wsp)], |[ppa, own]| own > ppa)
}

/// Figure 9: overheads of programs under the ideal PSP; reads that hit the DRAM cache of the base, of all of
/// them; both means.
pub(crate) fn ideal(programs: &[(&'static str, Option<f64>)], hits: u64, means: [Option<f64>; 2]) -> Vec<Ask> {
    let slower = "the ideal PSP is slower than LightWSP for memory-intensive programs";
    let worst = "libquantum's stand-in, qsim, loses most without a DRAM cache";
    if hits == 0 {
        let why = "no read hit the DRAM cache: these sizes say nothing about it";
        return vec![Ask::unjudged(slower, why), Ask::unjudged(worst, why)];
    }
    let [psp, own] = means;
    let order = of(slower, [("ideal PSP", psp), ("light-wsp", own)], |[psp, own]| psp > own);
    let qsim = programs.iter().find(|(name, _)| *name == "qsim").and_then(|(_, overhead)| *overhead);
    let others =
        programs.iter().filter(|(name, _)| *name != "qsim").map(|(name, overhead)| Some((*name, (*overhead)?)));
    let others = others.collect::<Option<Vec<_>>>();
    let next = others.and_then(|others| others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)));
    let (name, overhead) = next.map_or(("the next", None), |(name, overhead)| (name, Some(overhead)));
    vec![order, of(worst, [("qsim", qsim), (name, overhead)], |[qsim, next]| qsim > next)]
}

/// Figure 10.
pub(crate) fn speculative(cwsp: Option<f64>, light_wsp: Option<f64>) -> Ask {
    let text = "cWSP and LightWSP differ by less than 6 points";
    of(text, [("cWSP", cwsp), ("light-wsp", light_wsp)], |[cwsp, own]| (cwsp - own).abs() < 6.0 * POINT)
}

/// Figure 16, from the fewest threads.
pub(crate) fn threads(bars: &Bars) -> Ask {
    bars.ask("the overhead rises with the threads", |overheads| overheads.is_sorted_by(|fewer, more| fewer < more))
}

/// Figure 17.
pub(crate) fn memories(bars: &Bars) -> Ask {
    bars.ask("the overhead is below 30 % with each memory", |overheads| overheads.iter().all(|o| *o < 0.30))
}

/// `limits`: the run that comes nearest to a bound of its own parameters, and its share of that.
pub(crate) fn within_bounds(nearest: Option<(String, f64)>) -> Ask {
    let text = "no run does more than its own parameters allow";
    Ask::about(text, nearest, "nothing of it was run", |(of, share)| {
        (share <= 1.0, format!("nearest: {of}, {} of what is allowed", percent(share)))
    })
}

/// `limits`: programs with threads, their instructions a cycle of a core under `base`, and the most that
/// serial ACKs allow them (section IV-B: LRPO hides the ACKs).
pub(crate) fn hidden_acks(programs: &[(&'static str, f64, f64)]) -> Ask {
    let text = "serial ACKs leave each program with threads the speed that it has under base";
    if programs.is_empty() {
        return Ask::unjudged(text, "no program with threads was run with serial ACKs");
    }
    let slower: Vec<String> = programs
        .iter()
        .filter(|(_, base, most)| most < base)
        .map(|(name, base, most)| format!("{name} {most:.2} of {base:.2}"))
        .collect();
    let evidence = match slower.len() {
        0 => format!("all of {}", programs.len()),
        _ => format!("instructions a cycle of a core at most: {}", slower.join(", ")),
    };
    Ask::of(text, slower.is_empty(), evidence)
}

/// Section V-G3: instructions more as a share, instructions and stores of a region.
pub(crate) fn regions([more, instructions, stores]: [Option<f64>; 3]) -> Vec<Ask> {
    let band = |text, value: Option<f64>, [least, most]: [f64; 2]| {
        let judge = |value| ((least..=most).contains(&value), format!("{value:.2}"));
        Ask::about(text, value, "nothing of it was run", judge)
    };
    vec![
        band("regions have 20 to 200 instructions", instructions, [20.0, 200.0]),
        band("regions have 3 to 25 stores", stores, [3.0, 25.0]),
        band("2 to 30 % more instructions", more.map(|share| share * 100.0), [2.0, 30.0]),
    ]
}

#[cfg(test)]
mod tests;
