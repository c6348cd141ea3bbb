//! `reproduce broi` through the library, at small sizes: every run is right, tables are those of the runs,
//! asks are judged, and a reading of a scheme changes that scheme alone.

use durawarp::config::Override;
use durawarp::outcome::Outcome;
use durawarp::papers::broi::{self, runs};
use durawarp::papers::{Cell, PaperPlan, Reproduction, Request, Verdict};

use crate::reproduced::{judged, number, outcome, run};

fn plan(figures: &[&str], programs: &[&str], scheme_set: &[&str], bracket: bool) -> PaperPlan {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let request = Request::new(&broi::PAPER).only(&owned(figures), &owned(programs)).unwrap();
    let scheme_set = scheme_set.iter().map(|text| Override::parse(text).unwrap()).collect();
    PaperPlan::new(Request { profile: "ci".to_owned(), scheme_set, bracket, ..request })
        .unwrap_or_else(|faults| panic!("{faults}"))
}

fn mops(outcome: &Outcome) -> f64 {
    outcome.total("core", "operations") as f64 / (outcome.time.ps as f64 / 1e3) * 1e3
}

#[test]
fn every_figure_is_found_of_runs_that_are_right() {
    let plan = plan(&[], &[], &[], false);
    // Five programs under two schemes, alone, beside clients and beside such as do not wait; four sizes of the machine, with operations
    // and without; three sizes of hash, with operations and without; five mixes of clients, two of which are one;
    // 8 and 5 other points of hashmap, one client alone on two servers, each under two protocols.
    let points = 5 * 2 * 3 + 4 * 2 * 2 + 3 * 2 + (5 + 8 + 5 + 2) * 2;
    assert_eq!((plan.batch().points().len(), plan.notes().len()), (points, 0));
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    // A program that does not end as its manifest says is no good run.
    assert!(found.complete(), "{:?}", found.records);
    let of = |name: &str| &found.findings.iter().find(|(figure, _)| figure.name == name).unwrap().1;
    for (figure, asks) in [
        ("fig3", 4),
        ("motivation", 2),
        ("fig4", 0),
        ("fig9", 5),
        ("fig10", 5),
        ("fig11", 1),
        ("fig12", 4),
        ("fig13", 2),
        ("table2", 0),
    ] {
        assert_eq!(judged(of(figure)), asks, "{figure}: {:?}", of(figure).asks);
    }
    // What is exact, and what follows from round trips, holds at any size.
    for figure in ["fig3", "fig12", "fig13"] {
        assert!(of(figure).asks.iter().all(|ask| ask.verdict == Verdict::Met), "{:?}", of(figure).asks);
    }
    // What is calibrated is no ask, and fits.
    let [over, trips] = [0, 1].map(|at| &of("fig4").tables[at].rows[0]);
    assert!((number(&over[1]) / 4.6 - 1.0).abs() < 0.05 && number(&trips[0]) > 90.0, "{over:?} {trips:?}");

    // Entries of operations are those beyond the same run without; threads meet less often at more locks.
    let sizes = &of("motivation").tables[1];
    let counted = |operations| {
        let run = outcome(&plan, &results, &runs::conflicting([64, 16], operations));
        ["persist_entries", "persist_fence_entries"].map(|name| run.scheme_counters[name]).iter().sum::<u64>() as f64
    };
    assert_eq!(number(&sizes.rows[0][2]), counted(true) - counted(false));
    let shares: Vec<f64> = sizes.rows.iter().map(|row| number(&row[4])).collect();
    assert!(shares.is_sorted_by(|few, many| few > many) && shares[0] > 10.0 && shares[2] < 3.0, "{shares:?}");

    // Figure 10 by hand.
    let fig10 = &of("fig10").tables[0];
    assert_eq!(fig10.rows.len(), 5 + 2, "two means");
    for (row, &program) in fig10.rows.iter().zip(&runs::PROGRAMS) {
        let [epoch, broi] = runs::SCHEMES.map(|scheme| mops(outcome(&plan, &results, &runs::local(program, scheme))));
        let close = |cell: &Cell, value: f64| assert!((number(cell) / value - 1.0).abs() < 1e-9, "{row:?}");
        close(&row[1], broi / epoch);
        close(&row[2], epoch);
        close(&row[3], broi);
    }
    // Beside clients, operations are of the program's own time, and bytes of all.
    let hybrid = &of("fig10").tables[1].rows[0];
    let beside = outcome(&plan, &results, &runs::hybrid("hash", "broi"));
    let ended = beside.process.as_ref().unwrap().ended.unwrap();
    assert!(ended.ps < beside.time.ps && beside.total("client", "transactions") > 0);
    let expected = beside.total("core", "operations") as f64 / (ended.ps as f64 / 1e3) * 1e3;
    assert!((number(&hybrid[3]) / expected - 1.0).abs() < 1e-9, "{hybrid:?}");
    // Figure 12 by hand: transactions of each client over its time.
    for (row, mix) in of("fig12").tables[0].rows.iter().zip(runs::MIXES) {
        let [sync, bsp] = runs::PROTOCOLS.map(|protocol| {
            let outcome = outcome(&plan, &results, &runs::remote(mix, protocol));
            let table = outcome.counters.iter().find(|table| table.kind == "client").unwrap();
            let at = |name: &str| table.names.iter().position(|of| of == name).unwrap();
            let (transactions, busy) = (at("transactions"), at("busy_ns"));
            table.rows.iter().map(|row| row[transactions] as f64 / row[busy] as f64 * 1e3).sum::<f64>()
        });
        assert!((number(&row[1]) / (bsp / sync) - 1.0).abs() < 1e-9, "{row:?}");
        assert!((number(&row[3]) / sync - 1.0).abs() < 1e-9, "{row:?}");
    }
    // A run without operations is shorter, so that the operations alone are more a second.
    for row in &of("fig11").tables[0].rows {
        assert!(number(&row[4]) > number(&row[2]) && number(&row[5]) > number(&row[3]), "{row:?}");
    }
    // Shares of all programs lie between those of single ones.
    let stalled: Vec<f64> = of("motivation").tables[0].rows.iter().map(|row| number(&row[2])).collect();
    let (own, all) = (&stalled[..5], stalled[5]);
    assert!(own.iter().any(|share| *share <= all) && own.iter().any(|share| *share >= all), "{stalled:?}");

    // The page and the drawings.
    let files = found.files();
    let file = |name: &str| &files.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1;
    for drawn in ["fig9.svg", "fig10.svg", "fig11.svg", "fig12.svg", "fig13.svg"] {
        assert!(file(drawn).starts_with("<svg"), "{drawn}");
    }
    for word in ["# Persistence parallelism (BROI), reproduced", "disagrees with itself", "CALIBRATED, no evidence"] {
        assert!(file("broi.md").contains(word), "no `{word}`");
    }
}

#[test]
fn a_reading_of_a_scheme_is_for_its_runs_alone() {
    let plan = plan(&["fig10"], &["sps"], &[], true);
    let points = |name: &str| &plan.readings().iter().find(|(reading, _)| reading.name == name).unwrap().1;
    let own = plan.points();
    let scheme = |number: usize| plan.runs()[number].scheme;
    // Each alone, beside clients, of whom a reading is as well, and beside such as do not wait.
    let of_scheme = |name: &str| (0..6).filter(|number| scheme(*number) == name).collect::<Vec<_>>();
    assert_eq!((of_scheme("epoch"), of_scheme("broi")), (vec![0, 1, 2], vec![3, 4, 5]));
    assert!(points("global")[1] == own[1] && points("global")[4] != own[4]);
    // Global barriers are of `broi`: what is run under `epoch` is the same run.
    assert!(points("global")[0] == own[0] && points("global")[3] != own[3]);
    for name in ["bloom", "fences"] {
        assert!(points(name).iter().zip(own).all(|(other, own)| other != own), "{name}");
    }
    let command = plan.batch().command(points("global")[4]);
    assert!(command.contains("--machine broi-cpu") && command.contains("--set broi.barrier_scope=global"), "{command}");
    assert!(command.contains("--set client.transactions=0"), "{command}");
}

#[test]
fn whoever_changes_a_scheme_has_its_change_in_place_of_readings() {
    let changed = plan(&["fig3", "fig9"], &["sps"], &["broi.units=1"], true);
    assert!(changed.readings().is_empty() && changed.notes()[0].contains("left out"), "{:?}", changed.notes());
    let scaled = plan(&["fig11"], &["sps"], &[], false);
    assert_eq!(scaled.batch().points().len(), 0, "Figure 11 is of hash");
    let found = Reproduction::of(&scaled, &[]);
    assert_eq!(judged(&found.findings[0].1), 0);
}
