//! What may be asked of the figures, as pure functions of their numbers: exactness where the paper works a
//! schedule, signs and broad bands elsewhere. An ask about what was not run whole is not applicable. Of what
//! was calibrated (Fig. 4) nothing is asked.

pub(crate) use crate::papers::Ask;

/// Rounding, where equal values meet an order.
const EQUAL: f64 = 1e-9;

const NOT_RUN: &str = "not all of it was run";

/// Values by program.
pub(crate) type Bars = [(&'static str, Option<f64>)];

fn words(bars: &Bars, digits: usize) -> String {
    let word = |(name, value): &(&str, Option<f64>)| match value {
        Some(value) => format!("{name} {value:.digits$}"),
        None => format!("{name}: not run"),
    };
    bars.iter().map(word).collect::<Vec<_>>().join("; ")
}

/// An ask about values all of which are there.
fn of_all(text: &'static str, bars: &Bars, evidence: String, holds: impl Fn(&[f64]) -> bool) -> Ask {
    let values: Option<Vec<f64>> = bars.iter().map(|(_, value)| *value).collect();
    Ask::about(text, values.filter(|values| !values.is_empty()), NOT_RUN, |values| (holds(&values), evidence))
}

/// A schedule is what the paper says.
pub(crate) fn exactly(text: &'static str, ours: &str, printed: &str) -> Ask {
    let evidence = if ours == printed { ours.to_owned() } else { format!("{ours}; the paper has {printed}") };
    Ask::of(text, ours == printed, evidence)
}

/// Fig. 3 (b): the steps at which the second bank has its first request, under the global epochs and BROI.
pub(crate) fn second_bank(epoch: Option<usize>, broi: Option<usize>) -> Ask {
    let text = "BROI brings a request of the second bank into the very next step, sooner than the epochs";
    Ask::about(text, epoch.zip(broi), "no request of the second bank was served", |(epoch, broi)| {
        (broi == 2 && broi < epoch, format!("step {broi}, of the epochs step {epoch}"))
    })
}

fn share(text: &'static str, share: Option<f64>, holds: fn(f64) -> bool) -> Ask {
    Ask::about(text, share, NOT_RUN, |share| (holds(share), format!("{:.1} %", share * 100.0)))
}

/// Section III: the share of requests stalled by their bank, and of entries of operations that have conflicts
/// between threads, where these seldom meet.
pub(crate) fn motivation(stalled: Option<f64>, conflicts: Option<f64>) -> Vec<Ask> {
    let of_operations = "of hash's operations with 8,192 keys behind 256 locks 0.06 to 3 % of entries have conflicts";
    vec![
        share("20 to 60 % of requests are stalled by bank conflicts", stalled, |share| (0.2..=0.6).contains(&share)),
        share(of_operations, conflicts, |share| (0.0006..=0.03).contains(&share)),
    ]
}

/// What a mean gain may be: published are 16 and 28 %.
fn is_a_gain(mean: f64) -> bool {
    (1.05..=1.6).contains(&mean)
}

/// Fig. 9: memory throughput of BROI over that of Epoch.
pub(crate) fn memory(ratios: &Bars, mean: Option<f64>) -> Ask {
    let evidence = format!("mean {:.3}; {}", mean.unwrap_or(0.0), words(ratios, 3));
    of_all("the mean memory throughput rises by 5 to 60 %", ratios, evidence, |_| mean.is_some_and(is_a_gain))
}

/// Figures 9 and 10: mean gains of BROI over Epoch, beside clients that wait, and beside such as do not, as
/// traces are replayed in the paper.
pub(crate) fn hybrid_gains(local: Option<f64>, hybrid: Option<f64>, open: Option<f64>) -> [Ask; 2] {
    let wait = "both scenarios gain, the hybrid one no less than the local one";
    let replay = "so do both where clients do not wait, as the paper replays traces";
    [hybrid_gain(wait, local, hybrid), hybrid_gain(replay, local, open)]
}

fn hybrid_gain(text: &'static str, local: Option<f64>, hybrid: Option<f64>) -> Ask {
    Ask::about(text, local.zip(hybrid), NOT_RUN, |(local, hybrid)| {
        let holds = local > 1.0 && hybrid >= local - EQUAL;
        (holds, format!("hybrid {hybrid:.3}, local {local:.3}"))
    })
}

/// A mean under Epoch and under BROI.
pub(crate) type OfSchemes = [Option<f64>; 2];

/// Fig. 9: mean memory throughput, and rows opened for each access, local and hybrid. That clients add bytes
/// does not say why: they write in sequence, as the paper has it, where they find open rows.
pub(crate) fn hybrid_throughput(gb_s: [OfSchemes; 2], rows: [OfSchemes; 2]) -> Vec<Ask> {
    let larger = "memory throughput is larger in the hybrid scenario, under either scheme";
    let fewer = "the hybrid scenario opens fewer rows for each access, under either scheme";
    let ask = |text, [local, hybrid]: [OfSchemes; 2], digits: usize, unit, holds: &dyn Fn(f64, f64) -> bool| {
        let both = local[0].zip(local[1]).zip(hybrid[0].zip(hybrid[1]));
        Ask::about(text, both, NOT_RUN, |((epoch, broi), (of_epoch, of_broi))| {
            let told =
                format!("epoch {epoch:.digits$} to {of_epoch:.digits$}, broi {broi:.digits$} to {of_broi:.digits$}");
            (holds(epoch, of_epoch) && holds(broi, of_broi), format!("{told} {unit}"))
        })
    };
    vec![
        ask(larger, gb_s, 2, "GB/s", &|local, hybrid| hybrid > local),
        ask(fewer, rows, 3, "rows", &|local, hybrid| hybrid < local),
    ]
}

/// Fig. 12: throughput under BSP over that under Sync, by mix.
pub(crate) fn mixes(gains: &Bars, mean: Option<f64>) -> Vec<Ask> {
    let evidence = || format!("mean {:.3}; {}", mean.unwrap_or(0.0), words(gains, 3));
    let (least, others) = ("memcached gains least", "tpcc, ycsb, ctree and hashmap gain more than 1.5");
    let memcached = gains.iter().find(|(name, _)| *name == "memcached").and_then(|(_, gain)| *gain);
    let rest: Vec<_> = gains.iter().filter(|(name, _)| *name != "memcached").copied().collect();
    let of_rest = |text, holds: &dyn Fn(f64, f64) -> bool| match memcached {
        Some(memcached) if rest.len() == 4 => {
            of_all(text, &rest, evidence(), |gains| gains.iter().all(|gain| holds(*gain, memcached)))
        }
        _ => Ask::unjudged(text, NOT_RUN),
    };
    let (mean_text, read) =
        ("the mean gain is 1.5 to 2.6", "memcached, of which few transactions write, gains 5 to 40 %");
    vec![
        of_rest(least, &|gain, memcached| gain > memcached),
        of_rest(others, &|gain, _| gain > 1.5),
        Ask::about(read, memcached, NOT_RUN, |gain| {
            ((1.05..=1.4).contains(&gain), format!("{gain:.3}, published 1.15"))
        }),
        Ask::about(mean_text, mean.filter(|_| gains.len() == 5), NOT_RUN, |mean| {
            ((1.5..=2.6).contains(&mean), format!("{mean:.3}, published 1.93"))
        }),
    ]
}

/// Bytes from which on the gain of Fig. 13 falls.
const LARGE_BYTES: u32 = 512;

/// Fig. 13: gains by bytes of an epoch.
pub(crate) fn elements(points: &[(u32, Option<f64>)]) -> Vec<Ask> {
    let (gains, falls) = ("BSP gains at every size", "beyond 512 B the gain falls from size to size");
    let all: Option<Vec<(u32, f64)>> = points.iter().map(|(bytes, gain)| gain.map(|gain| (*bytes, gain))).collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else {
        return [gains, falls].map(|text| Ask::unjudged(text, NOT_RUN)).to_vec();
    };
    let evidence: Vec<String> = all.iter().map(|(bytes, gain)| format!("{bytes} B {gain:.3}")).collect();
    let evidence = evidence.join("; ");
    let falling = all.windows(2).all(|pair| pair[0].0 < LARGE_BYTES || pair[0].1 - pair[1].1 > EQUAL);
    vec![Ask::of(gains, all.iter().all(|(_, gain)| *gain > 1.0), evidence.clone()), Ask::of(falls, falling, evidence)]
}

/// What is much higher than the next.
const MUCH: f64 = 1.5;

/// Fig. 10: operational throughput of BROI over that of Epoch, and BROI's by program, in Mops.
pub(crate) fn operations(ratios: &Bars, mean: Option<f64>, mops: &Bars) -> Vec<Ask> {
    let evidence = || format!("mean {:.3}; {}", mean.unwrap_or(0.0), words(ratios, 3));
    let highest = "ssca2 has 1.5 times the operational throughput of any other at least";
    let of_ssca2 = mops.iter().find(|(name, _)| *name == "ssca2").and_then(|(_, mops)| *mops);
    let others: Vec<_> = mops.iter().filter(|(name, _)| *name != "ssca2").copied().collect();
    vec![
        of_all("the mean operational throughput rises by 5 to 60 %", ratios, evidence(), |_| {
            mean.is_some_and(is_a_gain)
        }),
        of_all("each program gains, whether it is memory-intensive or not", ratios, evidence(), |ratios| {
            ratios.iter().all(|ratio| *ratio > 1.0)
        }),
        match of_ssca2 {
            Some(own) => of_all(highest, &others, format!("Mops: {}", words(mops, 3)), |others| {
                others.iter().all(|other| own >= MUCH * other)
            }),
            None => Ask::unjudged(highest, NOT_RUN),
        },
    ]
}

/// What a doubling of cores adds at least, where throughput scales.
const SCALES: f64 = 1.1;

/// Fig. 11, of BROI: Mops by cores, and the share of banks that were busy.
pub(crate) fn scaling(points: &[(u32, Option<[f64; 2]>)]) -> Ask {
    let text = "each doubling of cores adds a tenth of throughput, until more than 90 % of the banks are busy";
    let all: Option<Vec<(u32, [f64; 2])>> = points.iter().map(|(cores, of)| of.map(|of| (*cores, of))).collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else { return Ask::unjudged(text, NOT_RUN) };
    let told = all.iter().map(|(cores, [mops, busy])| format!("{cores} cores {mops:.3} Mops, {:.0} %", busy * 100.0));
    let evidence = told.collect::<Vec<_>>().join("; ");
    let holds = all.windows(2).all(|pair| pair[0].1[1] > 0.9 || pair[1].1[0] >= SCALES * pair[0].1[0]);
    Ask::of(text, holds, evidence)
}

#[cfg(test)]
pub(in crate::papers) mod tests;
