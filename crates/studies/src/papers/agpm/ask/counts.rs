//! Asks of Figures 4 and 5, Tables II and III, and section IV-C: counts, patterns and arithmetic.

use crate::papers::Ask;
use crate::papers::agpm::kernels::KERNELS;
use crate::papers::agpm::published::PUBLISHED;
use durawarp_schemes::agpm::reason::Reason;

/// Kernels whose count of log updates is to be exact.
const EXACT: [&str; 3] = ["ATAX1", "ATAX2", "StreamTriad"];
/// Kernels whose count of log updates is to be within [`NEAR`].
const CLOSE: [&str; 6] = ["Backprop1", "Backprop2", "GRID1", "GRID2", "2DCONV", "SSSP2"];
const NEAR: f64 = 0.05;

/// Share of instructions of more than two accesses above which a kernel is not coalesced.
const UNCOALESCED: f64 = 0.0;

/// Asks of Figure 4: each kernel's share of loads and stores of more than two accesses.
pub(crate) fn coalescing(over_two: &[(&'static str, f64)]) -> Vec<Ask> {
    let named = |value: &str| {
        PUBLISHED
            .all()
            .filter(|row| row.experiment == "fig4")
            .filter(|row| row.value == value)
            .map(|row| row.kernel)
            .collect::<Vec<_>>()
    };
    let judge = |text, names: Vec<&str>, right: &dyn Fn(f64) -> bool| {
        let found: Vec<(&str, f64)> =
            names.iter().filter_map(|name| over_two.iter().find(|(kernel, _)| kernel == name)).copied().collect();
        // The claims are about all kernels named: with one left out, there is no verdict.
        if found.len() < names.len() {
            return Ask::unjudged(text, format!("{} of {} were run", found.len(), names.len()));
        }
        let told: Vec<String> = found.iter().map(|(name, share)| format!("{name} {:.1} %", share * 100.0)).collect();
        Ask::of(
            text,
            found.iter().all(|(_, share)| right(*share)),
            format!("more than two accesses: {}", told.join(", ")),
        )
    };
    vec![
        judge("StreamTriad, ATAX2 and 3MM1 have degrees of 1 and 2 only", named("1"), &|share| share <= UNCOALESCED),
        judge("the 11 kernels that section V-B calls un-coalesced have higher ones", named("0"), &|share| {
            share > UNCOALESCED
        }),
    ]
}

/// Asks of Figure 5: mean bytes over those of `base` under store+clwb and under nt-store, from and to the
/// L1s, for kernels of reason b and for those of reason f, which have no locality; `None` when not all were
/// run.
///
/// A write-back is a message more, whatever the kernel: that alone must not meet the ask.
pub(crate) fn traffic(strong: Option<[[f64; 2]; 2]>, without: Option<[[f64; 2]; 2]>) -> Vec<Ask> {
    let texts = [
        "what store+clwb moves more than nt-store from L1 to L2 is more for reason b than without locality (f)",
        "what store+clwb moves more than nt-store from L2 to L1 is more for reason b than without locality (f)",
    ];
    let judge = |(text, direction): (&'static str, usize)| {
        Ask::about(text, strong.zip(without), "not all kernels of reasons b and f were run", |both| {
            let [of_b, of_f] = [both.0, both.1].map(|[t, nt]| t[direction] / nt[direction] - 1.0);
            (of_b > of_f.max(0.0), format!("b {:+.2} %, f {:+.2} %", of_b * 100.0, of_f * 100.0))
        })
    };
    texts.into_iter().zip(0..).map(judge).collect()
}

/// Asks of Table II: each kernel's counts of log updates and of all accesses; the sizes are those of the
/// paper or not.
pub(crate) fn counts(found: &[(&'static str, u64, u64)], sized: bool) -> Vec<Ask> {
    let of = |names: &[&str]| -> Option<Vec<(&'static str, u64, u64)>> {
        names.iter().map(|name| found.iter().find(|(kernel, ..)| kernel == name).copied()).collect()
    };
    let off = |kernel: &str, quantity: &str, ours: u64| {
        ours as f64 / PUBLISHED.number("table2", kernel, quantity).unwrap_or(f64::NAN) - 1.0
    };
    let judge = |text, names: &[&str], quantity: &'static str, most: f64| match of(names) {
        _ if !sized => Ask::unjudged(text, "the profile is not `paper`"),
        None => Ask::unjudged(text, "not all of them were run"),
        Some(rows) => {
            let offs: Vec<(&str, f64)> = rows
                .iter()
                .map(|&(name, log, all)| (name, off(name, quantity, if quantity == "log" { log } else { all })))
                .collect();
            let told: Vec<String> = offs.iter().map(|(name, off)| format!("{name} {:+.2} %", off * 100.0)).collect();
            Ask::of(text, offs.iter().all(|(_, off)| off.abs() <= most), told.join(", "))
        }
    };
    vec![
        judge("`log` of ATAX1, ATAX2 and StreamTriad is exact", &EXACT, "log", 0.0),
        judge("`all` of ATAX1, ATAX2 and StreamTriad is within 5 %", &EXACT, "all", NEAR),
        judge("`log` of Backprop1, Backprop2, GRID1, GRID2, 2DCONV and SSSP2 is within 5 %", &CLOSE, "log", NEAR),
    ]
}

/// A kernel's row of Table II by the first reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedRow {
    pub kernel: &'static str,
    /// How many of its eight localities are near the published ones.
    pub localities: usize,
    /// The reason by its counts, and the published one.
    pub reason: [Reason; 2],
}

/// Kernels whose eight localities are to be near the published ones: the arithmetic is theirs.
const DERIVED: [&str; 2] = ["ATAX1", "ATAX2"];

/// Least kernels whose reason by the counts is to be the published one, and whose way.
const LEAST: [usize; 2] = [13, 18];

/// Asks of Table II's rows by the first reading.
pub(crate) fn rows(found: &[CountedRow], sized: bool) -> Vec<Ask> {
    let text = "the eight localities of ATAX1 and ATAX2 are within 5 %";
    let derived: Vec<&CountedRow> = found.iter().filter(|row| DERIVED.contains(&row.kernel)).collect();
    let told: Vec<String> = derived.iter().map(|row| format!("{} {} of 8", row.kernel, row.localities)).collect();
    let of_atax = match derived.len() == DERIVED.len() && sized {
        true => Ask::of(text, derived.iter().all(|row| row.localities == 8), told.join(", ")),
        false => Ask::unjudged(text, "they were not run in the paper's size"),
    };
    // Sums over all kernels say nothing with one left out.
    let judge = |text, least, same: &dyn Fn(&CountedRow) -> bool| {
        if !sized {
            return Ask::unjudged(text, "the profile is not `paper`");
        }
        if found.len() < KERNELS.len() {
            return Ask::unjudged(text, format!("{} of {} kernels were run", found.len(), KERNELS.len()));
        }
        let differs = found.iter().filter(|row| !same(row));
        let others: Vec<String> = differs
            .map(|row| format!("{} {} ({})", row.kernel, row.reason[0].letter(), row.reason[1].letter()))
            .collect();
        let told = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        let right = found.len() - others.len();
        Ask::of(text, right >= least, format!("{right} of {}; otherwise: {told}", found.len()))
    };
    let [reasons, ways] = LEAST;
    vec![
        of_atax,
        judge("the reason by the counts is the published one for at least 13 of 22 kernels", reasons, &|row| {
            row.reason[0] == row.reason[1]
        }),
        judge("the way by the counts is that of the published reason for at least 18 of 22 kernels", ways, &|row| {
            row.reason[0].route() == row.reason[1].route()
        }),
    ]
}

/// Asks of Table II's columns of localities: by reading, how many of how many kernels have their zeros where
/// the paper has them. The first reading is the one that is asked.
pub(crate) fn localities(same: &[(&'static str, usize, usize)]) -> Ask {
    let text = "the localities are zero where the paper's are, for at least 18 of 22 kernels";
    let told: Vec<String> = same.iter().map(|(reading, same, of)| format!("{reading}: {same} of {of}")).collect();
    match same.first() {
        Some(&(_, right, of)) if of == KERNELS.len() => Ask::of(text, right >= 18, told.join("; ")),
        _ => Ask::unjudged(text, format!("not all kernels were run; {}", told.join("; "))),
    }
}

#[cfg(test)]
pub(super) mod tests;
