//! `reproduce agpm` through the library: from a request to tables, verdicts and files.

use durawarp::config::Override;
use durawarp::reproduce::kernels;
use durawarp::reproduce::{Cell, Figure, Plan, Protocol, Reproduction, Request, Verdict};
use durawarp::sweep::{Done, Sweep, run};
use durawarp::workload::FlagBarrier;

fn plan(figures: &[&str], names: &[&str], protocol: Protocol) -> Plan {
    let figures: Vec<String> = figures.iter().map(|name| (*name).to_owned()).collect();
    let request = Request {
        figures: Figure::parse(&figures).unwrap(),
        kernels: names.iter().map(|name| kernels::find(name).unwrap()).collect(),
        profile: "ci".to_owned(),
        machine: "agpm-table4".to_owned(),
        set: vec![Override::parse("sm.count=4").unwrap()],
        scheme_set: Vec::new(),
        seed: 0,
        protocol,
    };
    Plan::new(request).unwrap_or_else(|faults| panic!("{faults}"))
}

fn number(cell: &Cell) -> f64 {
    match cell {
        Cell::Number(value, _) => *value,
        Cell::Count(count) => *count as f64,
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn figure_3_of_two_kernels_has_their_times_over_base() {
    let plan = plan(&["fig3"], &["StreamTriad", "SSSP1"], Protocol::default());
    let results = run(plan.points(), &Sweep { jobs: 2, ..Sweep::default() });
    let found = Reproduction::of(&plan, &results);
    assert!(found.complete(), "{:?}", found.records);
    let finding = &found.findings[0];
    let table = &finding.tables[0];
    assert_eq!(table.columns, ["kernel", "type", "base", "nt-store", "store+clwb"]);
    let outcome = |scheme: &str| {
        let at = plan.keys().iter().position(|key| key.workload == "stream_triad" && key.scheme == scheme).unwrap();
        results[at].good().unwrap()
    };
    let ticks = |scheme: &str| outcome(scheme).kernel("triad").unwrap().time.ticks as f64;
    for (column, scheme) in [(2, "base"), (3, "nt-store"), (4, "store+clwb")] {
        assert_eq!(number(&table.rows[0][column]), ticks(scheme) / ticks("base"), "{scheme}");
    }
    // The launch that logs all lengths belongs to the time of the kernel behind it.
    let sssp = results[plan.keys().iter().position(|k| k.workload == "sssp" && k.scheme == "nt-store").unwrap()]
        .good()
        .unwrap();
    let [copy, start] = [&sssp.launches[0], &sssp.launches[1]];
    assert!(copy.kernel.starts_with("undo_log_copy") && start.kernel == "sssp_start");
    let base =
        results[plan.keys().iter().position(|k| k.workload == "sssp" && k.scheme == "base").unwrap()].good().unwrap();
    let expected =
        (copy.length.ticks + start.length.ticks) as f64 / base.kernel("sssp_start").unwrap().time.ticks as f64;
    assert_eq!(number(&table.rows[1][3]), expected);
    // Two kernels say nothing about means of 22, but that none is faster than base can be judged.
    let judged: Vec<&str> =
        finding.asks.iter().filter(|ask| ask.verdict != Verdict::NotApplicable).map(|ask| ask.text).collect();
    assert_eq!(judged, ["no kernel is faster with undo logging than without"]);
    assert!(finding.notes.iter().any(|note| note.contains("`ci`")), "{:?}", finding.notes);
}

#[test]
fn both_ways_to_count_log_updates_agree() {
    let logs = |loop_log| {
        let protocol = Protocol { loop_log, flag_barrier: FlagBarrier::Paper };
        let plan = plan(&["table2"], &["StreamTriad", "ATAX1", "ATAX2", "Backprop1", "2DCONV", "SSSP1"], protocol);
        let found = Reproduction::of(&plan, &run(plan.points(), &Sweep::default()));
        let table = &found.findings[0].tables[0];
        table.rows.iter().map(|row| number(&row[1])).collect::<Vec<f64>>()
    };
    let every = logs(true);
    assert_eq!(every, logs(false));
    assert!(every.iter().all(|&count| count > 0.0));
}

#[test]
fn files_hold_tables_verdicts_runs_and_a_page() {
    let plan = plan(&["fig7", "fig5", "fig4", "table3", "overheads"], &["StreamTriad"], Protocol::default());
    let results = run(plan.points(), &Sweep::default());
    let found = Reproduction::of(&plan, &results);
    let files = found.files();
    let file = |name: &str| &files.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1;
    assert!(file("fig7.csv").starts_with("kernel,type,base,nt-store"));
    assert!(file("fig4.csv").contains("StreamTriad,") && file("fig5.csv").contains("StreamTriad"));
    assert!(file("asks.csv").contains("overheads,met,an entry has 707 bits"), "{}", file("asks.csv"));
    assert!(file("asks.csv").contains("table3,met,the rules give every row"));
    assert_eq!(file("runs.csv").lines().count(), 1 + plan.points().len());
    for name in ["fig4.svg", "fig5.svg", "fig7.svg"] {
        assert!(file(name).starts_with("<svg") && file("agpm.md").contains(name), "{name}");
    }
    let page = file("agpm.md");
    for word in
        ["# AGPM, reproduced", "* profile: ci", "* seed: 0", "## fig7", "## Parameters without a source", "best static"]
    {
        assert!(page.contains(word), "no `{word}` in:\n{page}");
    }
    for (_, record) in found.records.iter().map(|record| (&record.label, &record.result)) {
        assert!(page.contains(&record.as_ref().unwrap()[0]), "every digest is on the page");
    }
    assert!(found.text().contains("percentage points"));
}

#[test]
fn a_run_that_failed_leaves_gaps_and_is_told() {
    let plan = plan(&["fig3"], &["StreamTriad", "2DCONV"], Protocol::default());
    let mut results = run(plan.points(), &Sweep::default());
    results[1] = Done::Failed { why: "made up".to_owned(), outcome: None };
    let found = Reproduction::of(&plan, &results);
    assert!(!found.complete());
    assert!(found.text().contains("made up"));
    let table = &found.findings[0].tables[0];
    let conv = table.rows.iter().find(|row| row[0] == Cell::from("2DCONV")).unwrap();
    let triad = table.rows.iter().find(|row| row[0] == Cell::from("StreamTriad")).unwrap();
    let gaps = |row: &[Cell]| row.iter().filter(|cell| **cell == Cell::None).count();
    assert_eq!(gaps(conv) + gaps(triad), 1);
}
