//! What may be asked of the figures, as pure functions of their numbers: exactness where the paper works a
//! schedule, signs and broad bands elsewhere. An ask about what was not run whole is not applicable.

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

/// Section III: shares of requests stalled by their bank, and of entries with conflicts between threads.
pub(crate) fn motivation(stalled: Option<f64>, conflicts: Option<f64>) -> Vec<Ask> {
    vec![
        share("20 to 60 % of requests are stalled by bank conflicts", stalled, |share| (0.2..=0.6).contains(&share)),
        share("fewer than 3 % of entries have conflicts between threads", conflicts, |share| share < 0.03),
    ]
}

/// Fig. 9: memory throughput of BROI over that of Epoch.
pub(crate) fn memory(ratios: &Bars, mean: Option<f64>) -> Vec<Ask> {
    let evidence = || format!("mean {:.3}; {}", mean.unwrap_or(0.0), words(ratios, 3));
    vec![
        of_all("the mean memory throughput rises", ratios, evidence(), |_| mean.is_some_and(|mean| mean > 1.0)),
        of_all("no program's memory throughput falls below 0.97", ratios, evidence(), |ratios| {
            ratios.iter().all(|ratio| *ratio >= 0.97)
        }),
    ]
}

/// Figures 9 and 10: mean gains of BROI over Epoch.
pub(crate) fn hybrid_gain(local: Option<f64>, hybrid: Option<f64>) -> Ask {
    let text = "the hybrid scenario gains no less than the local one";
    Ask::about(text, local.zip(hybrid), NOT_RUN, |(local, hybrid)| {
        (hybrid >= local - EQUAL, format!("hybrid {hybrid:.3}, local {local:.3}"))
    })
}

/// Fig. 9: mean memory throughput under Epoch and BROI.
pub(crate) fn hybrid_throughput(local: [Option<f64>; 2], hybrid: [Option<f64>; 2]) -> Ask {
    let text = "memory throughput is larger in the hybrid scenario, under either scheme";
    let both = local[0].zip(local[1]).zip(hybrid[0].zip(hybrid[1]));
    Ask::about(text, both, NOT_RUN, |((local_epoch, local_broi), (epoch, broi))| {
        let evidence = format!("epoch {local_epoch:.2} to {epoch:.2}, broi {local_broi:.2} to {broi:.2} GB/s");
        (epoch > local_epoch && broi > local_broi, evidence)
    })
}

/// Fig. 4, of the network alone, and the share of the network in a transaction under Sync.
pub(crate) fn calibration(ratio: Option<f64>, published: Option<f64>, share: Option<f64>) -> Vec<Ask> {
    let fits = "the calibrated network is within 5 % of the paper's 4.6 (an input, no evidence)";
    let trips = "over 90 % of the time to persist is round trips (an input, no evidence)";
    vec![
        Ask::about(fits, ratio.zip(published), NOT_RUN, |(ratio, published)| {
            ((ratio / published - 1.0).abs() <= 0.05, format!("{ratio:.3}, published {published}"))
        }),
        self::share(trips, share, |share| share > 0.9),
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
    let mean_text = "the mean gain is 1.5 to 2.6";
    vec![
        of_rest(least, &|gain, memcached| gain > memcached),
        of_rest(others, &|gain, _| gain > 1.5),
        Ask::about(mean_text, mean.filter(|_| gains.len() == 5), NOT_RUN, |mean| {
            ((1.5..=2.6).contains(&mean), format!("{mean:.3}, published 1.93"))
        }),
    ]
}

/// Bytes from which on the gain of Fig. 13 may not rise.
const LARGE_BYTES: u32 = 512;

/// Fig. 13: gains by bytes of an epoch.
pub(crate) fn elements(points: &[(u32, Option<f64>)]) -> Vec<Ask> {
    let (gains, falls) = ("BSP gains at every size", "the gain does not rise beyond 512 B");
    let all: Option<Vec<(u32, f64)>> = points.iter().map(|(bytes, gain)| gain.map(|gain| (*bytes, gain))).collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else {
        return [gains, falls].map(|text| Ask::unjudged(text, NOT_RUN)).to_vec();
    };
    let evidence: Vec<String> = all.iter().map(|(bytes, gain)| format!("{bytes} B {gain:.3}")).collect();
    let evidence = evidence.join("; ");
    let falling = all.windows(2).all(|pair| pair[0].0 < LARGE_BYTES || pair[1].1 <= pair[0].1 + EQUAL);
    vec![Ask::of(gains, all.iter().all(|(_, gain)| *gain > 1.0), evidence.clone()), Ask::of(falls, falling, evidence)]
}

/// Fig. 10: operational throughput of BROI over that of Epoch, and BROI's by program, in Mops.
pub(crate) fn operations(ratios: &Bars, mean: Option<f64>, mops: &Bars) -> Vec<Ask> {
    let evidence = format!("mean {:.3}; {}", mean.unwrap_or(0.0), words(ratios, 3));
    let whole = mops.iter().any(|(name, _)| *name == "ssca2") && mops.len() > 1;
    let highest = "ssca2 has the highest operational throughput";
    vec![
        of_all("the mean operational throughput rises by 5 to 60 %", ratios, evidence, |_| {
            mean.is_some_and(|mean| (1.05..=1.6).contains(&mean))
        }),
        if whole {
            of_all(highest, mops, format!("Mops: {}", words(mops, 3)), |_| {
                let best = mops.iter().max_by(|(_, a), (_, b)| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
                best.is_some_and(|(name, _)| *name == "ssca2")
            })
        } else {
            Ask::unjudged(highest, NOT_RUN)
        },
    ]
}

/// Fig. 11, of BROI: Mops by cores, and the share of banks that were busy.
pub(crate) fn scaling(points: &[(u32, Option<[f64; 2]>)]) -> Ask {
    let text = "throughput never falls with more cores until more than 90 % of the banks are busy";
    let all: Option<Vec<(u32, [f64; 2])>> = points.iter().map(|(cores, of)| of.map(|of| (*cores, of))).collect();
    let Some(all) = all.filter(|all| !all.is_empty()) else { return Ask::unjudged(text, NOT_RUN) };
    let told = all.iter().map(|(cores, [mops, busy])| format!("{cores} cores {mops:.3} Mops, {:.0} %", busy * 100.0));
    let evidence = told.collect::<Vec<_>>().join("; ");
    let holds = all.windows(2).all(|pair| pair[0].1[1] > 0.9 || pair[1].1[0] >= pair[0].1[0] - EQUAL);
    Ask::of(text, holds, evidence)
}

#[cfg(test)]
mod tests;
