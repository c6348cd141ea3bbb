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

/// Figure 7: Capri, PPA, LightWSP, Capri with its own bandwidth. LightWSP's own overhead is asked as the
/// port's. Schemes that cost nothing meet no order.
pub(crate) fn systems([capri, ppa, light_wsp, fast]: [Option<f64>; 4]) -> Vec<Ask> {
    let (capri, ppa, light_wsp) = (("Capri", capri), ("PPA", ppa), ("light-wsp", light_wsp));
    vec![
        of("Capri's overhead is more than twice LightWSP's", [capri, light_wsp], |[capri, own]| {
            own > 0.0 && capri > 2.0 * own
        }),
        of("LightWSP's overhead is half to twice PPA's", [ppa, light_wsp], |[ppa, own]| {
            own > 0.0 && (0.5..=2.0).contains(&(own / ppa))
        }),
        of(
            "with 32 GB/s Capri has a tenth to a half of its overhead",
            [capri, ("Capri at 32 GB/s", fast)],
            |[capri, fast]| capri > 0.0 && (0.1..=0.5).contains(&(fast / capri)),
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
    let by_how_much = "these lose 20 to 100 % under the ideal PSP, and less than 10 % under LightWSP";
    let worst = "libquantum's stand-in, qsim, loses most without a DRAM cache";
    if hits == 0 {
        let why = "no read hit the DRAM cache: these sizes say nothing about it";
        return [slower, by_how_much, worst].map(|text| Ask::unjudged(text, why)).to_vec();
    }
    let [psp, own] = means;
    let named = [("ideal PSP", psp), ("light-wsp", own)];
    let order = of(slower, named, |[psp, own]| psp > own);
    let losses = of(by_how_much, named, |[psp, own]| (0.2..=1.0).contains(&psp) && (0.0..0.1).contains(&own));
    let qsim = programs.iter().find(|(name, _)| *name == "qsim").and_then(|(_, overhead)| *overhead);
    let others =
        programs.iter().filter(|(name, _)| *name != "qsim").map(|(name, overhead)| Some((*name, (*overhead)?)));
    let others = others.collect::<Option<Vec<_>>>();
    let next = others.and_then(|others| others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)));
    let (name, overhead) = next.map_or(("the next", None), |(name, overhead)| (name, Some(overhead)));
    vec![order, losses, of(worst, [("qsim", qsim), (name, overhead)], |[qsim, next]| qsim > next)]
}

/// Figure 10.
pub(crate) fn speculative(cwsp: Option<f64>, light_wsp: Option<f64>) -> Ask {
    let text = "cWSP's overhead is below LightWSP's, and a third of it at least";
    of(text, [("cWSP", cwsp), ("light-wsp", light_wsp)], |[cwsp, own]| cwsp < own && cwsp * 3.0 >= own)
}

/// Figure 14: by how much of the misses with stale loads each policy has fewer; so many victims conflicted.
pub(crate) fn misses(fewer: [Option<f64>; 3], conflicts: u64) -> Ask {
    let text = "each policy of victims has fewer misses than stale loads, by at most 18.05 %";
    if conflicts == 0 {
        return Ask::unjudged(text, "no victim conflicted: there was nothing to choose");
    }
    let [full, half, zero] = fewer;
    of(text, [("full", full), ("half", half), ("zero", zero)], |fewer| {
        fewer.iter().all(|fewer| *fewer > 0.0 && *fewer <= 0.1805)
    })
}

/// Figure 16, from the fewest threads.
pub(crate) fn threads(bars: &Bars) -> Ask {
    bars.ask("the overhead rises with the threads", |overheads| overheads.is_sorted_by(|fewer, more| fewer < more))
}

/// Section V-F5: overheads of vacation's stand-in, of low contention with 8 threads and of high contention
/// with 16, 32 and 64 (published: around 13 and 14 %).
pub(crate) fn contended(overheads: Option<Vec<f64>>) -> Ask {
    let text = "reserve costs 5 to 25 % with 8 threads, and with 16 to 64 that contend less than 5 points more";
    Ask::about(text, overheads, "reserve was not run with all of them", |overheads| {
        let (least, most) = (overheads[0], overheads.iter().copied().fold(f64::MIN, f64::max));
        let told: Vec<String> = overheads.iter().copied().map(percent).collect();
        ((0.05..=0.25).contains(&least) && most - least < 5.0 * POINT, told.join(", "))
    })
}

/// Share of a bound that a run has to come to, for the bound to say anything of the machine.
const NEAR: f64 = 0.5;

/// `limits`: the run that comes nearest to a bound of its own parameters, and its share of that. A machine
/// that does nothing is within every bound.
pub(crate) fn within_bounds(nearest: Option<(String, f64)>) -> Ask {
    let text = "no run does more than its own parameters allow, and one comes near";
    let Some((of, share)) = nearest else { return Ask::unjudged(text, "nothing of it was run") };
    let evidence = format!("nearest: {of}, {} of what is allowed", percent(share));
    if share < NEAR { Ask::unjudged(text, evidence) } else { Ask::of(text, share <= 1.0, evidence) }
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

#[cfg(test)]
pub(in crate::papers) mod tests;
