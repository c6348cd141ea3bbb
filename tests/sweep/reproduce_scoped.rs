//! `reproduce scoped` through the library, at small sizes: every run is right, tables are those of the runs,
//! asks are judged.

use durawarp::config::Override;
use durawarp::outcome::Outcome;
use durawarp::papers::scoped::runs::{self, BarrierScope, SCHEMES};
use durawarp::papers::{Cell, PaperPlan, Reproduction, Request, scoped};
use durawarp::schemes::catalogue;
use durawarp::sweep::Done;

use crate::reproduced::{judged, number, outcome, run};

fn request(figures: &[&str], set: &[&str]) -> Request {
    let figures: Vec<String> = figures.iter().map(|&name| name.to_owned()).collect();
    let set = set.iter().map(|text| Override::parse(text).unwrap()).collect();
    let request = Request::new(&scoped::PAPER).only(&figures, &[]).unwrap();
    Request { profile: "ci".to_owned(), set, bracket: false, ..request }
}

fn plan(figures: &[&str], set: &[&str]) -> PaperPlan {
    PaperPlan::new(request(figures, set)).unwrap_or_else(|faults| panic!("{faults}"))
}

fn ticks(outcome: &Outcome) -> f64 {
    outcome.kernel(runs::KERNEL).unwrap().time.ticks as f64
}

#[test]
fn every_figure_is_found_of_runs_that_are_right() {
    let plan = plan(&[], &[]);
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    // A run whose tree is not the reference's is no good run.
    assert!(found.complete(), "{:?}", found.records);
    let of = |name: &str| &found.findings.iter().find(|(figure, _)| figure.name == name).unwrap().1;

    let fig5 = &of("fig5").tables[0];
    assert_eq!(fig5.columns, ["CTAs", "tree (MB)", "wg", "kr", "wg, DRAM latencies", "wg, in DRAM", "kr, in DRAM"]);
    let sizes = runs::sizes(plan.request());
    assert_eq!(fig5.rows.len(), sizes.len());
    for (row, &ctas) in fig5.rows.iter().zip(sizes) {
        let base = ticks(outcome(&plan, &results, &runs::baseline(ctas)));
        let all = [
            runs::tree(SCHEMES[0], BarrierScope::Workgroup, ctas),
            runs::tree(SCHEMES[0], BarrierScope::Kernel, ctas),
            runs::dram_latencies(plan.request(), ctas),
            runs::synchronised(BarrierScope::Workgroup, ctas),
            runs::synchronised(BarrierScope::Kernel, ctas),
        ];
        for (cell, run) in row[2..].iter().zip(&all) {
            assert_eq!(number(cell), ticks(outcome(&plan, &results, run)) / base, "{run:?}");
        }
    }
    // The middle of Figures 6 and 7 is what the machine and the scheme are anyway.
    assert_eq!(of("fig6").tables[0].rows.iter().map(|row| &row[2]).collect::<Vec<_>>(), wg(fig5));
    assert_eq!(of("fig7").tables[0].rows.iter().map(|row| &row[3]).collect::<Vec<_>>(), wg(fig5));
    // Above and below the bar stands one machine, whatever its S-FIFOs have.
    let wide = &of("fig7").tables[1];
    for (row, &ctas) in wide.rows.iter().zip(sizes) {
        let base = ticks(outcome(&plan, &results, &runs::baseline_of_fifos(256, ctas)));
        let all = ticks(outcome(&plan, &results, &runs::fifo([16, 64], 256, ctas)));
        assert_eq!(number(&row[3]), all / base);
    }
    for (figure, asks) in [("fig5", 6), ("fig6", 3), ("fig7", 4), ("table3", 1), ("area", 0)] {
        assert_eq!(judged(of(figure)), asks, "{figure}: {:?}", of(figure).asks);
    }
    let sbrp = of("sbrp");
    assert_eq!(judged(sbrp), 6, "{:?}", sbrp.asks);
    let names = ["4 CUs, 75/250 ns", "30 SMs, near", "30 SMs, far"].map(Cell::from);
    assert_eq!(sbrp.tables[0].rows.iter().map(|row| &row[0]).collect::<Vec<_>>(), names.each_ref());
    assert!(of("area").unmeasured.is_some(), "published constants are no measurement");

    let there = catalogue::find(SCHEMES[1]).is_ok();
    assert_eq!(of("alternative").notes.iter().any(|note| note.contains("not in the catalogue")), !there);
    assert_eq!(judged(of("alternative")), if there { 2 } else { 0 });
    assert!(plan.notes().is_empty(), "{:?}", plan.notes());
}

fn wg(fig5: &durawarp::papers::FigureTable) -> Vec<&Cell> {
    fig5.rows.iter().map(|row| &row[2]).collect()
}

#[test]
fn figures_share_their_runs_and_latencies_are_those_of_the_request_s_machine() {
    let points = |figures: &[&str]| plan(figures, &[]).batch().points().len();
    let sizes = runs::sizes(&request(&[], &[])).len();
    assert_eq!((points(&["fig5"]), points(&["fig6"]), points(&["table3"])), (6 * sizes, 4 * sizes, 0));
    // Baseline and wg are shared; 250 ns and 16/64 entries are wg's.
    // Figure 7 has S-FIFOs of 256 once more, with a baseline of their own.
    assert_eq!(points(&["fig5", "fig6", "fig7", "area"]), (6 + 2 + 3 + 5) * sizes);
    let run = runs::dram_latencies(&request(&["fig5"], &["dram.t_cl_ns=12"]), 2);
    assert!(
        run.set.contains(&"nvm.t_cl_ns=12".to_owned()) && run.set.contains(&"nvm.write_mode=row_buffer".to_owned()),
        "{run:?}"
    );
}

#[test]
fn table_3_is_what_the_kernel_s_writes_come_to_and_energy_follows_the_accesses() {
    let plan = plan(&["table3", "area"], &[]);
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    let (table, energy) = (&found.findings[0].1.tables[0], &found.findings[1].1.tables[1]);
    assert!(table.rows.len() >= 4 && table.rows[0][0] == Cell::from("Leaf"), "{table:?}");
    // Every workgroup has keys; all their writes together are the kernel's, which splits the same nodes.
    let (workgroups, own, all) = (number(&table.rows[0][1]), number(&table.rows[0][2]), number(&table.rows[0][3]));
    assert_eq!((workgroups, workgroups * own), (8.0, all));
    assert!(table.rows.is_sorted_by(|below, above| number(&below[3]) > number(&above[3])), "{table:?}");
    // The ratio is the number of workgroups that write: fewer with fewer keys, and towards the root where
    // nodes have room.
    let writers = &found.findings[0].1.tables[1];
    let levels = |row: usize| writers.rows[row][2..].iter().map(number).collect::<Vec<_>>();
    assert_eq!((writers.name.as_str(), writers.rows.len()), ("table3_writers", 6));
    assert_eq!(levels(0), [0, 1, 2].map(|level| number(&table.rows[level][4])));
    assert_eq!([levels(0), levels(2)], [[8.0, 8.0, 8.0], [8.0, 1.0, 1.0]]);
    assert_eq!([levels(3), levels(4)], [[8.0, 8.0, 5.0], [8.0, 7.0, 0.0]]);
    let row = &energy.rows[0];
    let [l1_reads, l1_writes, l1_nj] = [2, 3, 6].map(|column| number(&row[column]));
    assert!(l1_writes > 0.0 && (l1_nj * 1000.0 - l1_reads * 1.44 - l1_writes * 2.49).abs() < 1e-6, "{row:?}");
}

#[test]
fn files_hold_tables_verdicts_pictures_and_a_page() {
    let plan = plan(&["fig6", "table3", "area"], &[]);
    let mut results = run(&plan);
    let whole = Reproduction::of(&plan, &results).files();
    let file = |name: &str| &whole.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1;
    let origin = format!(">durawarp {}, machine scoped-table2, profile ci</text>", env!("CARGO_PKG_VERSION"));
    assert!(file("fig6.svg").contains(&origin), "of what the figure is");
    assert!(file("fig6.svg").starts_with("<svg") && file("fig6.csv").starts_with("CTAs,tree (MB),write 250 ns"));
    assert!(file("table3.csv").contains("Leaf,") && file("area_energy.csv").contains("wg,"));
    assert!(file("asks.csv").contains("fig6,met,the overhead of wg rises"), "{}", file("asks.csv"));
    let left_out = ["left out: the instruction cache", "left out: the L2's S-FIFO"];
    for word in ["# Scoped persist barriers, reproduced", "* profile: ci", "fig6.svg", "section 7.2.2"]
        .into_iter()
        .chain(left_out)
    {
        assert!(file("scoped.md").contains(word), "no `{word}` in:\n{}", file("scoped.md"));
    }
    // A baseline that failed leaves its size out.
    let base = plan.point_of(&runs::baseline(4)).unwrap();
    results[base] = Done::Failed { why: "made up".to_owned(), outcome: None };
    let found = Reproduction::of(&plan, &results);
    assert!(!found.complete());
    assert_eq!(found.findings[0].1.tables[0].rows.len(), runs::sizes(plan.request()).len() - 1);
}
