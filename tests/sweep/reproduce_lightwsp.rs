//! `reproduce lightwsp` through the library, at small sizes: tables are those of the runs, asks are judged, every page says that it
//! is a port.

use durawarp::config::Override;
use durawarp::outcome::Outcome;
use durawarp::papers::lightwsp::{self, runs};
use durawarp::papers::{Cell, PaperPlan, Reproduction, Request, Run};

use crate::reproduced::{judged, outcome, run};

/// Two kernels: loops that store, and many small CTAs with a barrier each.
const KERNELS: [&str; 2] = ["atax", "nw"];

fn plan(figures: &[&str], set: &[&str]) -> PaperPlan {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let set = set.iter().map(|text| Override::parse(text).unwrap()).collect();
    let request = Request::new(&lightwsp::PAPER).only(&owned(figures), &owned(&KERNELS)).unwrap();
    PaperPlan::new(Request { profile: "ci".to_owned(), set, bracket: false, ..request })
        .unwrap_or_else(|faults| panic!("{faults}"))
}

fn ticks(outcome: &Outcome) -> f64 {
    outcome.kernels.iter().map(|kernel| kernel.time.ticks).sum::<u64>() as f64
}

fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Number(value, _) | Cell::Share(value) => *value,
        Cell::Count(count) => *count as f64,
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn every_figure_is_found_of_runs_that_are_right() {
    let plan = plan(&[], &[]);
    assert!(plan.notes().is_empty(), "{:?}", plan.notes());
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    // A run whose memory is not the reference's is no good run.
    assert!(found.complete(), "{:?}", found.records);
    let of = |name: &str| &found.findings.iter().find(|(figure, _)| figure.name == name).unwrap().1;

    for (figure, variants) in [
        ("fig7", vec![runs::default()]),
        ("fig11", runs::by_queue(plan.request())),
        ("fig12", runs::by_threshold(plan.request())),
        ("fig13", runs::by_victim()),
        ("fig15", runs::by_bandwidth(plan.request())),
        ("fig16", runs::by_warps()),
        ("fig17", runs::by_memory()),
    ] {
        let table = &of(figure).tables[0];
        assert_eq!(table.columns.len(), variants.len() + 1, "{figure}");
        // Of Fig. 7 alone the paper's text has the mean under the scheme.
        let published = [Cell::from("mean, published"), Cell::Number(1.09, 3)];
        let last = if figure == "fig7" { Some(published.to_vec()) } else { None };
        assert_eq!(table.rows.get(KERNELS.len() + 1), last.as_ref(), "{figure}: a row a kernel, and the mean");
        for (row, kernel) in table.rows.iter().zip(KERNELS) {
            for (cell, variant) in row[1..].iter().zip(&variants) {
                let time = |run| ticks(outcome(&plan, &results, &run));
                assert_eq!(number(cell), time(variant.run(kernel)) / time(variant.base(kernel)), "{figure} {kernel}");
            }
        }
        let [first, second, mean] = [0, 1, 2].map(|row| number(&table.rows[row][1]));
        assert!((mean - (first * second).sqrt()).abs() < 1e-9, "{figure}: {mean}");
    }
    for (figure, asks) in
        [("fig7", 1), ("fig11", 1), ("fig12", 1), ("fig15", 2), ("fig17", 1), ("efficiency", 1), ("regions", 4)]
    {
        assert_eq!(judged(of(figure)), asks, "{figure}: {:?}", of(figure).asks);
    }
    for (figure, finding) in &found.findings {
        assert!(finding.notes.iter().any(|note| note.contains("GPU port of a CPU scheme")), "{}", figure.name);
    }

    // Both runs have everything in persistent memory, and what the controllers get around the caches is the scheme's alone.
    let [scheme, base] = [runs::default().run("atax"), runs::default().base("atax")];
    for run in [&scheme, &base] {
        let outcome = outcome(&plan, &results, run);
        assert_eq!(outcome.total("memory_controller", "dram_reads"), 0, "{run:?}");
        assert!(outcome.total("memory_controller", "nvm_reads") > 0, "{run:?}");
    }
    let regions = |run: &Run| outcome(&plan, &results, run).scheme_counters.get("regions").copied().unwrap_or(0);
    assert!(regions(&scheme) > 0 && regions(&base) == 0);
    // The machine of a figure is the one that ran.
    let on = |run: Run| outcome(&plan, &results, &run).machine.name.clone();
    assert_eq!(
        runs::by_memory().iter().map(|of| on(of.run("nw"))).collect::<Vec<_>>(),
        ["cxl-i", "cxl-ii", "cxl-iii", "cxl-pmem"]
    );

    // Published numbers stand beside ours, and only where there is one of ours.
    let told = &of("regions").tables[1];
    let stores = told.rows.iter().find(|row| row[1] == Cell::from("stores a region")).unwrap();
    assert_eq!(stores[2], Cell::from("11.29"));
    let all = of("regions").tables[0].rows.last().unwrap();
    assert_eq!(number(&stores[3]), number(&all[4]));
    assert_eq!(of("fig7").tables[1].rows[0][3], Cell::None, "Capri is not modelled");

    // The overflows of a queue of 64 entries are those of its runs.
    let pressed = &of("fig16").tables[3];
    let names: Vec<String> = pressed.rows.iter().map(|row| row[0].shown()).collect();
    let own: Vec<String> =
        [4, 64, 128, 256, 512, 1024, 2048, 4096].map(|entries| format!("64 warps, WPQ {entries}")).to_vec();
    assert_eq!(names, own);
    let of_64 = runs::overflowing(plan.request()).remove(1);
    let counted = |name: &str| -> u64 {
        KERNELS.iter().map(|kernel| outcome(&plan, &results, &of_64.run(kernel)).scheme_counters[name]).sum()
    };
    assert!(counted("wpq_full_stores") > 0);
    assert_eq!(pressed.rows[1][3], Cell::Count(counted("wpq_full_stores")));
    assert_eq!(pressed.rows[1][7], Cell::Count(counted("wpq_overflows")));
    assert_eq!(pressed.rows[0][1..2], [Cell::Count(512)], "the paper's bytes");
    assert_eq!(number(&of("cost").tables[0].rows[1][3]), 524_288.0);

    let files = found.files();
    let file = |name: &str| &files.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1;
    assert!(file("fig15.svg").starts_with("<svg") && file("fig12.csv").starts_with("kernel,threshold 8,threshold 16"));
    for word in ["# LightWSP, as a GPU port of a CPU scheme, reproduced", "11.29", "section V-G3"] {
        assert!(file("lightwsp.md").contains(word), "no `{word}` in:\n{}", file("lightwsp.md"));
    }
}

#[test]
fn figures_share_their_runs_and_what_is_as_it_is_anyway_is_run_once() {
    let points = |figures: &[&str], set: &[&str]| plan(figures, set).batch().points().len();
    let kernels = KERNELS.len();
    assert_eq!(points(&["regions"], &[]), 0);
    assert_eq!(points(&["fig7", "fig18", "efficiency"], &[]), 2 * kernels);
    // The last bandwidth, the last queue, the middle threshold and the first policy are the scheme's own.
    assert_eq!(points(&["fig7", "fig11", "fig12", "fig13", "fig15"], &[]), (2 + 7 + 4 + 2 + 2) * kernels);
    // So are 64 warps the machine's. With a queue of 64 entries four numbers of warps; with 64 warps six more
    // queues.
    assert_eq!(points(&["fig7", "fig16"], &[]), (8 + 4 + 6) * kernels);
    assert_eq!(points(&["fig17"], &[]), 8 * kernels);
    assert_eq!(points(&["fig7"], &["sm.count=2"]), 2 * kernels);
}
