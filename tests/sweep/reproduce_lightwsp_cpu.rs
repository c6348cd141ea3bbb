//! `reproduce lightwsp-cpu` through the library, at small sizes: tables are those of the runs, asks are judged,
//! and what is not there is named.

use durawarp::config::Override;
use durawarp::outcome::Outcome;
use durawarp::papers::lightwsp_cpu::{self, runs};
use durawarp::papers::{Asked, Cell, Finding, PaperPlan, Reproduction, Request, Verdict};

use crate::reproduced::{judged, number, outcome, run};

/// One of one thread, one of four.
const PROGRAMS: [&str; 2] = ["viterbi", "kvlog"];

fn plan(figures: &[&str], programs: &[&str], bracket: bool) -> PaperPlan {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let request = Request::new(&lightwsp_cpu::PAPER).only(&owned(figures), &owned(programs)).unwrap();
    PaperPlan::new(Request { profile: "ci".to_owned(), bracket, ..request }).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn every_figure_is_found_of_runs_that_are_right() {
    let plan = plan(&[], &PROGRAMS, false);
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    // A program that does not end as its manifest says is no good run.
    assert!(found.complete(), "{:?}", found.records);
    let of = |name: &str| &found.findings.iter().find(|(figure, _)| figure.name == name).unwrap().1;
    let there = |variants: Vec<runs::Variant>| -> Vec<(usize, runs::Variant)> {
        let all = variants.into_iter().enumerate();
        all.filter(|(_, of)| plan.runs().iter().any(|run| run.scheme == of.scheme)).collect()
    };

    // Schemes that are not there have no bars, and are named.
    for (figure, programs, variants) in [
        ("fig7", &PROGRAMS[..], runs::by_system()),
        ("fig9", &PROGRAMS[..], runs::by_ideal()),
        ("fig10", &PROGRAMS[..], runs::by_speculation()),
        ("fig11", &PROGRAMS[..], runs::by_queue()),
        ("fig12", &PROGRAMS[..], runs::by_threshold()),
        ("fig13", &PROGRAMS[..], runs::by_victim()),
        ("fig15", &PROGRAMS[..], runs::by_bandwidth()),
        ("fig16", &PROGRAMS[1..], runs::by_threads()),
        ("fig17", &PROGRAMS[..], runs::by_memory()),
    ] {
        let table = &of(figure).tables[0];
        assert_eq!(table.columns.len(), variants.len() + 1, "{figure}");
        let absent = variants.len() - there(variants.clone()).len();
        let notes = of(figure).notes.iter().filter(|note| note.starts_with("absent: ")).count();
        assert_eq!(notes, absent, "{figure}: {:?}", of(figure).notes);
        for row in &table.rows[..programs.len()] {
            let program = programs.iter().find(|program| row[0] == Cell::from(**program)).unwrap();
            for (at, variant) in there(variants.clone()) {
                let ticks = |run| outcome(&plan, &results, &run).time.ticks as f64;
                let time = ticks(variant.run(program)) / ticks(variant.base(program));
                assert_eq!(number(&row[1 + at]), time, "{figure} {program} {}", variant.name);
            }
        }
    }
    for (figure, asks) in
        [("fig8", 2), ("fig12", 1), ("fig15", 2), ("fig17", 1), ("fig18", 0), ("limits", 2), ("g3", 3), ("g4", 0)]
    {
        assert_eq!(judged(of(figure)), asks, "{figure}: {:?}", of(figure).asks);
    }
    for (figure, finding) in &found.findings {
        assert!(finding.notes.iter().any(|note| note.contains("where the paper ran x86 binaries")), "{}", figure.name);
    }

    // The base is memory mode; threads have a core each.
    let ran = |run| outcome(&plan, &results, &run);
    let default = runs::default();
    let base = ran(default.base("kvlog"));
    assert!(base.count_of("dram_cache", "read_misses") > Some(0) && base.total("memory_controller", "nvm_reads") > 0);
    for (of, threads) in runs::by_threads().iter().zip([8, 16, 32, 64]) {
        for outcome in [ran(of.run("kvlog")), ran(of.base("kvlog"))] {
            assert_eq!(
                (outcome.table("core").rows.len(), outcome.total("os", "threads")),
                (threads, threads as u64 - 1)
            );
        }
    }

    // A thread that begins is one region of 64 registers, program counter, steps of the system and its number.
    let beyond = of("fig16").notes.iter().find(|note| note.contains("more stores than the threshold")).unwrap();
    assert!(beyond.contains("up to 70") && beyond.contains("63 threads were begun"), "{beyond}");

    // Section V-G3 by hand, and what harts waited.
    let scheme = ran(default.run("viterbi"));
    let count = |outcome: &Outcome, name| outcome.total("core", name) as f64;
    let row = &of("g3").tables[0].rows[0];
    let all = count(scheme, "instructions") + count(scheme, "inserted");
    assert_eq!(number(&row[3]), all / count(scheme, "regions"));
    let waited = |of: &Outcome| of.total("core", "path_full_cycles");
    assert!(waited(scheme) > 0 && waited(scheme) < scheme.time.core_cycles && waited(base) == 0);
    let regions = scheme.regions().unwrap();
    assert_eq!(
        (regions.sizes.stores, regions.sizes.regions),
        (scheme.scheme_counters["feb_stores"], scheme.scheme_counters["regions"])
    );

    let page = &found.files().into_iter().find(|(name, _)| name == "lightwsp-cpu.md").unwrap().1;
    for word in ["# LightWSP on CPU cores, reproduced", "91.33", "cause: a region ends every"] {
        assert!(page.contains(word), "no `{word}` in:\n{page}");
    }
}

/// A folder with a program, which has no profile `ci`.
fn others() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/riscv/counter.elf");
    std::fs::create_dir(folder.path().join("counter")).unwrap();
    std::fs::copy(source, folder.path().join("counter/counter.elf")).unwrap();
    let manifest = r#"schema = 1
name = "threads that count"
description = "in place of a program of others"
isa = { kind = "riscv", file = "counter.elf" }
program = { args = ["--threads", "4", "--steps", "20"], threads = 4 }
verify = { ref = { kind = "stdout", text = "lock 80\naddition 80\nexchange 80" } }
"#;
    std::fs::write(folder.path().join("counter/workload.toml"), manifest).unwrap();
    folder
}

#[test]
fn programs_of_others_are_a_group_of_their_own_with_a_mean_of_their_own() {
    let folder = others();
    let asked = |programs: bool, figure: &str| Asked {
        paper: "lightwsp-cpu".to_owned(),
        figures: vec![figure.to_owned()],
        kernels: vec!["viterbi".to_owned()],
        programs: programs.then(|| folder.path().to_owned()),
        profile: "ci".to_owned(),
        no_readings: true,
        ..Asked::default()
    };
    let found = |programs| {
        let plan =
            PaperPlan::new(asked(programs, "fig7").request().unwrap()).unwrap_or_else(|faults| panic!("{faults}"));
        let results = run(&plan);
        (Reproduction::of(&plan, &results), plan, results)
    };
    let (with, plan, results) = found(true);
    assert!(with.complete(), "{:?}", with.records);
    let (figure, finding) = &with.findings[0];
    let table = |name: &str| finding.tables.iter().find(|table| table.name == name).unwrap();
    let (ours, others) = (table("fig7"), table("fig7_others"));
    assert_eq!(others.columns[1..ours.columns.len()], ours.columns[1..]);
    assert_eq!(others.columns.last().map(String::as_str), Some("cWSP"));
    assert_eq!(others.rows.iter().map(|row| row[0].shown()).collect::<Vec<_>>(), ["counter", "mean"]);
    assert_eq!(others.rows[0][1..], others.rows[1][1..], "a mean of one program is its time");
    let path: &'static str = plan.request().programs[0];
    let run = |variant: &runs::Variant| outcome(&plan, &results, &variant.run(path));
    let default = runs::default();
    let base = outcome(&plan, &results, &default.base(path));
    let column = others.columns.iter().position(|name| name == runs::SCHEME).unwrap();
    let time = run(&default).time.ticks as f64 / base.time.ticks as f64;
    assert_eq!(number(&others.rows[0][column]), time);
    let regions = table("fig7_others_regions");
    assert_eq!(regions.rows[0][1], Cell::from("default"), "it has no profile `ci`");
    let core = |name| run(&default).total("core", name);
    let checkpoints = core("inserted") as f64 / (core("inserted") + core("stores")) as f64;
    assert!((number(regions.rows[0].last().unwrap()) - 100.0 * checkpoints).abs() < 1e-9);
    let page = &with.files().into_iter().find(|(name, _)| name == "lightwsp-cpu.md").unwrap().1;
    assert!(page.contains("programs of others: counter"), "{page}");
    let svg = figure.picture(finding).unwrap().svg().unwrap();
    assert!(svg.contains("counter") && svg.contains("mean of others"));

    // Without them nothing is otherwise.
    let (without, ..) = found(false);
    let own = &without.findings[0].1;
    assert_eq!((&own.tables[..], &own.asks), (&finding.tables[..own.tables.len()], &finding.asks));
    assert_eq!(own.tables.len() + 2, finding.tables.len());

    // What shows none of them says so.
    let fault = |asked: Asked| asked.request().and_then(PaperPlan::new).map(|_| ()).unwrap_err().to_string();
    let told = fault(asked(true, "fig18"));
    assert!(
        told.contains("no program of others is shown by fig18") && told.contains("figures that show some: fig7"),
        "{told}"
    );
    let told = fault(Asked { paper: "agpm".to_owned(), kernels: Vec::new(), ..asked(true, "fig3") });
    assert!(told.contains("`durawarp reproduce lightwsp-cpu --figure fig7` shows some"), "{told}");
    std::fs::write(folder.path().join("counter/workload.toml"), "schema = 1\n").unwrap();
    let told = fault(Asked { machine: Some("lightwsp-cpus".to_owned()), ..asked(true, "fig7") });
    assert!(told.contains("counter/workload.toml"), "{told}");
}

#[test]
fn figures_share_their_runs_and_a_reading_is_for_the_scheme_alone() {
    let points = |figures: &[&str], bracket| plan(figures, &PROGRAMS, bracket).batch().points().len();
    assert_eq!(points(&["g4"], true), 0);
    assert_eq!(points(&["fig18", "g3"], false), 2 * 2);
    // A reading of the scheme leaves the base as it is; one of the memory changes both.
    assert_eq!(points(&["fig18", "g3"], true), (2 + 1 + 2 + 2) * 2);
    // Memories of Table III are what their files say, and the scheme is read on them as well.
    assert_eq!((points(&["fig17"], false), points(&["fig17"], true)), (4 * 2 * 2, 4 * (2 + 1) * 2));
    // Table II has the search of the L1s that Figure 13 has first.
    assert_eq!(points(&["fig18", "g3", "table2"], false), 3 * 2);
    assert_eq!(points(&["fig13", "table2"], false), points(&["fig13"], false));
    // The last bandwidth, the first queue and the middle threshold are the scheme's own.
    assert_eq!(points(&["fig11", "fig12", "fig15"], false), (2 + 2 + 4 + 2) * 2);
    // At `ci` one program of each suite, unless programs are named.
    assert_eq!(plan(&["fig15"], &[], false).batch().points().len(), 6 * (1 + 3));
}

#[test]
fn bounds_are_those_of_the_numbers_of_machine_scheme_and_readings() {
    let most = |scheme_set: &[&str]| {
        let finding = found("limits", "viterbi", &[], scheme_set);
        let ipc = |row: &Vec<Cell>| if let Cell::Number(ipc, _) = row[3] { (ipc * 100.0).round() / 100.0 } else { 0.0 };
        finding.tables[1].rows.iter().map(ipc).collect::<Vec<_>>()
    };
    // Serial ACKs, those of `qpi`, overlapped; PMEM with 8, 32 and 256 B a store; a path each, and one for all.
    assert_eq!(most(&[]), [0.29, 2.28, 0.0, 0.58, 0.15, 0.02, 2.02, 0.25]);
    let slow = most(&["light_wsp.ack_latency_ns=40", "light_wsp.path_mb_s=2000"]);
    assert_eq!((slow[0], &slow[6..]), (0.14, &[1.01, 0.13][..]));
}

/// A program's finding of a figure with changes of machine or scheme.
fn found(figure: &str, program: &str, set: &[&str], scheme_set: &[&str]) -> Finding {
    let over = |texts: &[&str]| texts.iter().map(|text| Override::parse(text).unwrap()).collect::<Vec<_>>();
    let request = plan(&[figure], &[program], false).request().clone();
    let request = Request { set: over(set), scheme_set: over(scheme_set), ..request };
    let plan = PaperPlan::new(request).unwrap_or_else(|faults| panic!("{faults}"));
    let found = Reproduction::of(&plan, &run(&plan));
    assert!(found.complete(), "{:?}", found.records);
    found.findings[0].1.clone()
}

#[test]
fn slower_acks_never_raise_the_efficiency() {
    for program in ["is", "viterbi"] {
        let of = |ack: &str| {
            let finding = found("fig8", program, &[], &[&format!("light_wsp.ack_latency_ns={ack}")]);
            let row = &finding.tables[0].rows[0];
            (number(&row[1]), number(&row[2]), 1.0 - number(&row[1]) / number(&row[2]))
        };
        let rows = ["2.5", "20", "80"].map(of);
        assert!(rows.is_sorted_by(|fast, slow| slow.2 < fast.2), "{program} waits for ACKs: {rows:?}");
    }
}

#[test]
fn no_run_is_above_the_bounds_of_its_parameters_and_a_tight_one_is_almost_met() {
    // Shares of serial ACKs, of paths and of PMEM, first of the scheme as it is, then pipelined.
    let shares = |program: &str, set: &[&str], scheme_set: &[&str]| {
        let finding = found("limits", program, set, scheme_set);
        assert_eq!(finding.asks[0].verdict, Verdict::Met, "{:?}", finding.asks);
        let of = |row: usize| {
            let number = |cell: &Cell| if let Cell::Number(value, _) = cell { Some(*value) } else { None };
            [8, 9, 10].map(|column: usize| number(&finding.tables[2].rows[row][column]))
        };
        [of(0), of(1)]
    };
    let [acked, pipelined] = shares("is", &[], &[]);
    assert!(acked[0] > Some(60.0) && acked[0] <= Some(100.0), "is ends regions faster than ACKs are: {acked:?}");
    assert_eq!((acked[2], pipelined[0], pipelined[2]), (None, None, None), "what is no bound has no share");
    let [_, slow_path] = shares("lattice", &[], &["light_wsp.path_mb_s=500"]);
    assert!(slow_path[1] > Some(80.0), "{slow_path:?}");
    let bound = ["nvm.write_bandwidth_mb_s=100", "nvm.write_charge=bytes"];
    let [_, slow_memory] = shares("kvlog", &bound, &[]);
    assert!(slow_memory[2] > Some(60.0), "{slow_memory:?}");
}
