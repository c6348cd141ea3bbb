//! Invented data of the sizes that figures have to bear: 22 kernels, 7 schemes, bars far beyond a cut-off.

use durawarp::plot::*;

pub(crate) const KERNELS: [&str; 22] = [
    "SAD1",
    "Stencil1",
    "SGEMM",
    "GRID1",
    "GRID2",
    "2DCONV",
    "Backprop1",
    "Backprop2",
    "Pathfinder",
    "StreamTriad",
    "RA",
    "ATAX1",
    "ATAX2",
    "NW",
    "BFS",
    "SSSP1",
    "SSSP2",
    "MVT1",
    "GESUMMV",
    "2MM1",
    "3MM1",
    "GEMM",
];
pub(crate) const SCHEMES: [&str; 7] = ["base", "nt-store", "store+clwb", "themis", "pmem-spec", "bucl", "agpm"];

/// Numbers from 0 to 1 that look random and are the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }
}

pub(crate) fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

/// Execution times of 22 kernels under 7 schemes, base first.
pub(crate) fn slowdowns() -> GroupedBars {
    let mut dice = Dice::new(7);
    let base: Vec<f64> = KERNELS.iter().map(|_| 1e5 + 4e6 * dice.roll()).collect();
    let mut series = Vec::new();
    for (s, scheme) in SCHEMES.iter().enumerate() {
        let bars = base.iter().enumerate().map(|(k, base)| {
            let typical = [1.0, 2.2, 2.9, 1.5, 1.7, 1.25, 1.08][s];
            let spread: f64 = dice.roll();
            let heavy = if [10, 14].contains(&k) && [1, 2, 4].contains(&s) || (s == 2 && dice.roll() > 0.8) {
                5.0
            } else {
                1.0
            };
            let over = if s == 0 { 1.0 } else { (typical * (0.65 + 0.7 * spread) * heavy).clamp(0.93, 17.0) };
            let published = (s == 3 || s == 6).then_some(over * (0.92 + 0.16 * dice.roll()));
            Bar { value: Some(base * over), error: None, published }
        });
        series.push(BarSeries::new(scheme, bars.collect()));
    }
    GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns().better(Better::Lower),
        axis: Axis::new("execution time normalised to base", ""),
        groups: names(&KERNELS),
        series,
        baseline: Baseline::Series { name: "base".to_owned(), drawn: false },
        mean: Mean::Geometric,
        cut_off: Some(4.0),
    }
}

/// The same with base drawn, error bars, and values missing: one, a kernel's, a scheme's half.
pub(crate) fn slowdowns_with_gaps() -> GroupedBars {
    let mut bars = slowdowns();
    bars.baseline = Baseline::Series { name: "base".to_owned(), drawn: true };
    bars.sheet = bars.sheet.titled("Slow-down of persistency schemes <measured & published>");
    for series in &mut bars.series {
        for bar in &mut series.bars {
            bar.error = bar.value.map(|value| value * 0.06);
        }
        series.bars[7] = Bar::default();
    }
    bars.series[4].bars[2].value = None;
    bars.series[3].bars[12].value = Some(f64::NAN);
    bars.series[6].bars[17].value = Some(f64::INFINITY);
    bars
}

/// Few groups in one column.
pub(crate) fn few_bars() -> GroupedBars {
    let all = slowdowns();
    let take = |s: &usize| BarSeries::new(&all.series[*s].name, all.series[*s].bars[9..14].to_vec());
    GroupedBars {
        groups_name: String::new(),
        sheet: Sheet::one_column().better(Better::Lower),
        groups: all.groups[9..14].to_vec(),
        series: [0, 2, 3, 6].iter().map(take).collect(),
        cut_off: Some(3.0),
        ..all.clone()
    }
}

fn stacks(schemes: &[&str], kernels: &[&str], parts: usize) -> Vec<StackGroup> {
    let mut dice = Dice::new(3);
    let mut group = |kernel: &&str| {
        let mut bar = |scheme: &&str| {
            let values: Vec<f64> = (0..parts).map(|p| 3.0 + 30.0 * dice.roll() / (1.0 + p as f64 * 0.3)).collect();
            let sum: f64 = values.iter().sum();
            Stack::of(scheme, &values.iter().map(|v| v / sum * 100.0).collect::<Vec<_>>())
        };
        StackGroup { name: (*kernel).to_owned(), bars: schemes.iter().map(&mut bar).collect() }
    };
    kernels.iter().map(&mut group).collect()
}

/// What warps wait for, by kernel and scheme: too narrow for names of bars.
pub(crate) fn stalls() -> StackedBars {
    let mut groups = stacks(&["base", "themis", "agpm"], &KERNELS, 6);
    groups[4].bars[1].values[2] = None;
    groups[8].bars[2] = Stack { name: "agpm".to_owned(), values: vec![None; 6] };
    StackedBars {
        groups_name: String::new(),
        sheet: Sheet::two_columns(),
        axis: Axis::new("resident warp cycles", "%"),
        parts: names(&["issue", "memory", "barrier", "persist", "fence", "other"]),
        groups,
    }
}

/// Traffic of few kernels, bars with names.
pub(crate) fn traffic() -> StackedBars {
    StackedBars {
        groups_name: String::new(),
        sheet: Sheet::one_column().better(Better::Lower).height(160.0),
        axis: Axis::new("traffic", "MB"),
        parts: names(&["loads", "stores", "logs", "write-backs"]),
        groups: stacks(&["base", "themis", "bucl", "agpm"], &KERNELS[..4], 4),
    }
}

/// Strong scaling, with a gap and error bars.
pub(crate) fn scaling() -> Lines {
    let threads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let line = |(i, name): (usize, &&str)| {
        let serial = 0.01 + 0.025 * i as f64;
        let point = |t: &f64| {
            let y = 1.0 / (serial + (1.0 - serial) / t);
            LinePoint { x: *t, y: Some(y), error: Some(y * 0.2) }
        };
        LineSeries::new(name, threads.iter().map(point).collect())
    };
    let mut series: Vec<LineSeries> = ["SGEMM", "StreamTriad", "BFS", "NW"].iter().enumerate().map(line).collect();
    series[1].points[4].y = None;
    series[2].points[4].y = Some(f64::NAN);
    Lines {
        sheet: Sheet::one_column().better(Better::Higher),
        x: Axis::new("threads", "").scale(Scale::Log2),
        y: Axis::new("speed-up over one thread", "").scale(Scale::Log2),
        series,
        ideal: Some(LineSeries::of("ideal", &threads.map(|t| (t, t)))),
    }
}

/// Sensitivity of seven schemes.
pub(crate) fn sensitivity() -> Lines {
    let line = |(i, name): (usize, &&str)| {
        let points: Vec<(f64, f64)> = [16.0, 32.0, 64.0, 96.0, 128.0, 192.0, 256.0]
            .iter()
            .map(|x| (*x, 1.0 + 0.05 * i as f64 + (7.0 - i as f64) * 6.0 / x))
            .collect();
        LineSeries::of(name, &points)
    };
    Lines {
        sheet: Sheet::one_column().better(Better::Lower),
        x: Axis::new("write-pending queue", "entries"),
        y: Axis::new("time over base", ""),
        series: SCHEMES.iter().enumerate().map(line).collect(),
        ideal: None,
    }
}

/// Slow-downs by two parameters.
pub(crate) fn heat() -> HeatMap {
    let mut dice = Dice::new(11);
    let row = |i: usize| (0..12).map(|j| Some(0.95 + (i * j) as f64 * 0.09 + 0.2 * dice.roll())).collect();
    let mut values: Vec<Vec<Option<f64>>> = (0..8).map(row).collect();
    values[3][5] = None;
    HeatMap {
        sheet: Sheet::two_columns().height(150.0),
        axis: Axis::new("slow-down over base", ""),
        rows_name: "WPQ entries".to_owned(),
        rows: (0..8).map(|i| (8 << i).to_string()).collect(),
        columns_name: "write latency of the NVM (ns)".to_owned(),
        columns: (1..=12).map(|j| (j * 160).to_string()).collect(),
        values,
    }
}

/// Kernels by schemes on a logarithmic scale of colours.
pub(crate) fn heat_kernels() -> HeatMap {
    let all = slowdowns();
    let base = all.series[0].bars.clone();
    let values = all.series.iter().map(|s| s.bars.iter().zip(&base).map(|(b, o)| Some(b.value? / o.value?)).collect());
    HeatMap {
        sheet: Sheet::two_columns().height(130.0).titled("Slow-down, kernels by schemes"),
        axis: Axis::new("time over base", "").scale(Scale::Log10),
        rows_name: String::new(),
        rows: names(&SCHEMES),
        columns_name: String::new(),
        columns: names(&KERNELS),
        values: values.collect(),
    }
}

/// Latencies of persists.
pub(crate) fn latencies() -> Cdf {
    let mut dice = Dice::new(5);
    let mut series: Vec<CdfSeries> = (0..5)
        .map(|i| {
            let samples: Vec<f64> =
                (0..3000).map(|_| (80.0 + 60.0 * f64::from(i)) * 30f64.powf(dice.roll() * dice.roll())).collect();
            CdfSeries::of(SCHEMES[i as usize + 1], &samples)
        })
        .collect();
    series[4] = CdfSeries::of("bucl", &[100.0, 200.0, f64::NAN, 200.0, 900.0]);
    Cdf {
        sheet: Sheet::one_column(),
        x: Axis::new("latency of a persist", "ns").scale(Scale::Log10),
        of: "persists".to_owned(),
        series,
    }
}

/// Lines touched by accesses.
pub(crate) fn degrees() -> Distribution {
    let mut dice = Dice::new(9);
    let mut row = |kernel: &&str| {
        let counts: Vec<f64> = (0..6).map(|_| (1e6 * dice.roll() * dice.roll()).round()).collect();
        DistributionRow::of(kernel, &counts)
    };
    let mut rows: Vec<DistributionRow> = KERNELS.iter().map(&mut row).collect();
    rows[5].counts[2] = None;
    Distribution {
        sheet: Sheet::two_columns(),
        of: "accesses to global memory".to_owned(),
        class: "lines touched:".to_owned(),
        classes: names(&["1", "2", "3-4", "5-8", "9-16", "17-32"]),
        rows,
    }
}

/// Thresholds and waits of 40 periods of two kernels, the second launched twice.
pub(crate) fn periods() -> Steps {
    let mut dice = Dice::new(11);
    let mut threshold = 10_000.0;
    let step = |at: usize| {
        let begins = [0, 14, 30].contains(&at);
        threshold = if at == 14 { 10_000.0 } else { threshold * [0.9, 1.0, 1.1][(dice.roll() * 3.0) as usize] };
        let wait = (at != 20).then(|| 400.0 + 300.0 * dice.roll());
        let state = if (3..=33).contains(&at) { "through the caches" } else { "past them" };
        let series = if at < 14 { "layer_forward" } else { "adjust_weights" };
        Step { series: series.into(), state: state.into(), begins, values: vec![Some(threshold), wait] }
    };
    Steps {
        sheet: Sheet::two_columns().height(216.0),
        x: Axis::new("period", ""),
        panels: vec![Axis::new("threshold", "log updates"), Axis::new("CWPPR", "core cycles")],
        states: "way".to_owned(),
        steps: (0..40).map(step).collect(),
    }
}

/// All of them, by name.
pub(crate) fn all() -> Vec<(&'static str, Figure)> {
    vec![
        ("slowdowns", slowdowns().into()),
        ("slowdowns_with_gaps", slowdowns_with_gaps().into()),
        ("few_bars", few_bars().into()),
        ("stalls", stalls().into()),
        ("traffic", traffic().into()),
        ("scaling", scaling().into()),
        ("sensitivity", sensitivity().into()),
        ("heat", heat().into()),
        ("heat_kernels", heat_kernels().into()),
        ("latencies", latencies().into()),
        ("degrees", degrees().into()),
        ("periods", periods().into()),
    ]
}
