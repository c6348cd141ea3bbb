//! `reproduce agpm` through the library: from a request to tables, verdicts and files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use durawarp::config::Override;
use durawarp::outcome::Outcome;
use durawarp::papers::{Cell, PAPERS, PaperPlan, Reproduction, Request, Run, Verdict, agpm};
use durawarp::sweep::campaign::without_store;
use durawarp::sweep::{Done, SweepFile, Workers};
use durawarp::workload::{FlagBarrier, Overrides};

fn plan(figures: &[&str], kernels: &[&str], instrument: Overrides) -> PaperPlan {
    plan_on(&["sm.count=4"], figures, kernels, instrument)
}

fn plan_on(set: &[&str], figures: &[&str], kernels: &[&str], instrument: Overrides) -> PaperPlan {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let request = Request::new(&agpm::PAPER).only(&owned(figures), &owned(kernels)).unwrap();
    let set = set.iter().map(|text| Override::parse(text).unwrap()).collect();
    let request = Request { profile: "ci".to_owned(), set, instrument, bracket: false, ..request };
    PaperPlan::new(request).unwrap_or_else(|faults| panic!("{faults}"))
}

/// As published.
const PUBLISHED: Overrides = agpm::PAPER.instrument;

fn run(plan: &PaperPlan) -> Vec<Done> {
    without_store(plan.batch(), &Workers { jobs: 2, ..Workers::default() })
}

fn outcome<'r>(plan: &PaperPlan, results: &'r [Done], workload: &'static str, scheme: &'static str) -> &'r Outcome {
    let wanted = Run::new(workload, scheme);
    let point = plan.point_of(&wanted).unwrap();
    results[point].good().unwrap()
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
    let plan = plan(&["fig3"], &["StreamTriad", "SSSP1"], PUBLISHED);
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    assert!(found.complete(), "{:?}", found.records);
    let (_, finding) = &found.findings[0];
    let table = &finding.tables[0];
    assert_eq!(table.columns, ["kernel", "type", "base", "nt-store", "store+clwb"]);
    let ticks = |scheme| outcome(&plan, &results, "stream_triad", scheme).kernel("triad").unwrap().time.ticks as f64;
    for (column, scheme) in [(2, "base"), (3, "nt-store"), (4, "store+clwb")] {
        assert_eq!(number(&table.rows[0][column]), ticks(scheme) / ticks("base"), "{scheme}");
    }
    // The launch that logs all lengths belongs to the time of the kernel behind it.
    let sssp = outcome(&plan, &results, "sssp", "nt-store");
    let [copy, start] = [&sssp.launches[0], &sssp.launches[1]];
    assert!(copy.kernel.starts_with("undo_log_copy") && start.kernel == "sssp_start");
    let base = outcome(&plan, &results, "sssp", "base");
    let expected =
        (copy.length.ticks + start.length.ticks) as f64 / base.kernel("sssp_start").unwrap().time.ticks as f64;
    assert_eq!(number(&table.rows[1][3]), expected);
    // Two kernels say nothing about means of 22, but that each is slower than base can be judged.
    let judged: Vec<&str> =
        finding.asks.iter().filter(|ask| ask.verdict != Verdict::NotApplicable).map(|ask| ask.text).collect();
    assert_eq!(judged, ["every kernel is slower with undo logging than without"]);
    assert!(finding.notes.iter().any(|note| note.contains("`ci`")), "{:?}", finding.notes);
}

#[test]
fn a_figure_of_runs_in_which_write_backs_end_at_the_l2_says_that_nothing_is_durable_by_them() {
    let told = |set: &[&str]| {
        let plan = plan_on(set, &["fig3"], &["StreamTriad"], PUBLISHED);
        let results = run(&plan);
        let found = Reproduction::of(&plan, &results);
        found.findings[0]
            .1
            .notes
            .iter()
            .filter(|note| note.contains("make nothing durable"))
            .cloned()
            .collect::<Vec<_>>()
    };
    let found = told(&["sm.count=4", "persist.clwb=l2"]);
    assert!(matches!(&found[..], [note] if note.starts_with("in 2 of 3 runs")), "{found:?}");
    assert_eq!(told(&["sm.count=4"]), Vec::<String>::new());
}

#[test]
fn both_ways_to_count_log_updates_agree() {
    let logs = |loop_log| {
        let instrument =
            Overrides { loop_log: Some(loop_log), flag_barrier: Some(FlagBarrier::Paper), ..Overrides::default() };
        let plan = plan(&["table2"], &["StreamTriad", "ATAX1", "ATAX2", "Backprop1", "2DCONV", "SSSP1"], instrument);
        let found = Reproduction::of(&plan, &run(&plan));
        let table = found.findings[0].1.tables.iter().find(|table| table.name == "table2_accesses").unwrap();
        table.rows.iter().map(|row| number(&row[1])).collect::<Vec<f64>>()
    };
    let every = logs(true);
    assert_eq!(every, logs(false));
    assert!(every.iter().all(|&count| count > 0.0));
}

#[test]
fn reasons_are_those_of_a_kernels_own_launches_and_log_updates_those_of_its_copies_too() {
    let plan = plan(&["reasons"], &["GRID1", "ATAX1", "ATAX2"], PUBLISHED);
    assert_eq!(plan.batch().points().len(), 2, "the runs of Fig. 7, one a workload");
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    let finding = &found.findings[0].1;
    for (row, kernel, workload, copies) in
        [(0, "binning", "grid_binning", 3), (1, "atax_kernel1", "atax", 0), (2, "atax_kernel2", "atax", 0)]
    {
        let selection = outcome(&plan, &results, workload, "agpm").selection().unwrap();
        let of = |complete| selection.periods.iter().filter(move |p| p.complete == complete && p.kernel == kernel);
        let decided = of(true).count() > 0;
        let cells = &finding.tables[1].rows[row];
        assert_eq!(cells[2], Cell::from(if decided { "complete" } else { "cut short" }));
        for (letter, cell) in finding.tables[1].columns.iter().zip(cells).skip(3) {
            assert_eq!(*cell, Cell::Count(of(decided).filter(|p| p.reason == *letter).count() as u64), "{letter}");
        }
        let is_copy = |kernel: &str| kernel.starts_with("undo_log_copy_");
        let of_copies = selection.periods.iter().filter(|p| is_copy(&p.kernel));
        assert_eq!(of_copies.clone().count(), copies);
        let past: u64 = of(true).chain(of(false)).chain(of_copies).map(|p| p.non_temporal_logs).sum();
        assert_eq!(number(&finding.tables[0].rows[row][9]), past as f64);
        assert!(past > 0, "{kernel}");
    }
    let verdicts: Vec<Verdict> = finding.asks.iter().map(|ask| ask.verdict).collect();
    assert_eq!(verdicts, [Verdict::NotApplicable; 2], "three kernels are not 22");
    assert!(found.files().iter().any(|(name, text)| name == "reasons.svg" && text.contains("GRID1 (a)")));
}

#[test]
fn files_hold_tables_verdicts_runs_and_a_page() {
    let plan = plan(&["fig7", "fig5", "fig4", "table3", "overheads"], &["StreamTriad"], PUBLISHED);
    let results = run(&plan);
    let found = Reproduction::of(&plan, &results);
    let files = found.files();
    let file = |name: &str| &files.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1;
    assert!(file("fig7.csv").starts_with("kernel,type,base,nt-store"));
    assert!(file("fig4.csv").contains("StreamTriad,") && file("fig5.csv").contains("StreamTriad"));
    for row in ["overheads,no verdict,-,", "table3,no verdict,-,"] {
        assert!(file("asks.csv").contains(row), "{}", file("asks.csv"));
    }
    assert_eq!(file("runs.csv").lines().count(), 1 + plan.batch().points().len());
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
    let plan = plan(&["fig3"], &["StreamTriad", "2DCONV"], PUBLISHED);
    let mut results = run(&plan);
    results[1] = Done::Failed { why: "made up".to_owned(), outcome: None };
    let found = Reproduction::of(&plan, &results);
    assert!(!found.complete());
    assert!(found.text().contains("made up"));
    let table = &found.findings[0].1.tables[0];
    let conv = table.rows.iter().find(|row| row[0] == Cell::from("2DCONV")).unwrap();
    let triad = table.rows.iter().find(|row| row[0] == Cell::from("StreamTriad")).unwrap();
    let gaps = |row: &[Cell]| row.iter().filter(|cell| **cell == Cell::None).count();
    assert_eq!(gaps(conv) + gaps(triad), 1);
}

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reproduce").join(name);
    // Left from an earlier run.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durawarp"));
    command.current_dir(folder).args(arguments);
    command
}

#[track_caller]
fn good(output: &Output, words: &[&str]) -> String {
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{all}");
    for word in words {
        assert!(all.contains(word), "no `{word}` in:\n{all}");
    }
    out
}

/// Good results in a folder, of whatever process.
fn records(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let lines = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    files.map(|entry| lines(entry.path()).matches(r#""state":"good""#).count()).sum()
}

const FIG3: [&str; 10] = [
    "reproduce",
    "agpm",
    "--no-readings",
    "--figure",
    "fig3",
    "--kernels",
    "StreamTriad,SSSP1",
    "--profile",
    "ci",
    "--set=sm.count=4",
];

#[test]
fn what_was_run_once_is_not_run_again_and_sweeps_have_it_too() {
    let folder = folder("twice");
    let first = good(&command(&folder, &FIG3).output().unwrap(), &["agpm: 6 runs", "0 done, 6 to run"]);
    assert_eq!(records(&folder.join("durawarp-results")), 6);
    let second = good(&command(&folder, &FIG3).output().unwrap(), &["agpm: 6 runs", "6 done, 0 to run"]);
    let tables = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(tables(&first), tables(&second));
    let without = good(&command(&folder, &[&FIG3[..], &["--no-store"]].concat()).output().unwrap(), &["fig3"]);
    assert_eq!(without, tables(&first), "figures out of records are those of runs");
    assert_eq!(records(&folder.join("durawarp-results")), 6);
    // Another figure of the same kernels has them already, and one more.
    let fig5 = [&FIG3[..4], &["fig5,fig4"], &FIG3[5..]].concat();
    good(&command(&folder, &fig5).output().unwrap(), &["agpm: 8 runs", "6 done, 2 to run"]);
    let spec = "schema = 1\nname = \"the-same\"\n[base]\nworkloads = [\"stream_triad\", \"sssp\"]\nprofile = \"ci\"\n\
        set = { \"sm.count\" = 4 }\nreference = false\nloop_log = true\nflag_barrier = \"paper\"\n\
        [[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"nt-store\", \"store+clwb\"]\n";
    std::fs::write(folder.join("same.toml"), spec).unwrap();
    good(
        &command(&folder, &["sweep", "run", "same.toml", "--dry-run"]).output().unwrap(),
        &["6 points, 6 done, 0 to run"],
    );
}

#[test]
fn the_command_that_repeats_a_run_has_its_digests_and_one_option_its_program() {
    let folder = folder("repeat");
    let fig3 = [&FIG3[..], &["--no-store", "--set", "agpm.key=slot", "--out", "out"]].concat();
    let figures = fig3.iter().map(|word| if *word == "fig3" { "reasons,fig4" } else { word }).collect::<Vec<_>>();
    let program = "program: cta_undo, every update logged, flag barrier paper (2 runs, ";
    good(&command(&folder, &figures).output().unwrap(), &[program, "kernel_undo, every update logged"]);
    let mut runs = csv::Reader::from_path(folder.join("out/runs.csv")).unwrap();
    let runs: Vec<Vec<String>> = runs.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(runs.len(), 4, "agpm, and store+clwb counted by half-warps");
    let digests = |arguments: &[&str]| {
        let text = good(&command(&folder, arguments).output().unwrap(), &[]);
        let outcome: serde_json::Value = serde_json::from_str(&text).unwrap();
        let logs = outcome["workload"]["instrument"]["loop_log"].clone();
        (["digest", "memory_digest"].map(|name| outcome[name].as_str().unwrap().to_owned()), logs)
    };
    for run in &runs {
        let words: Vec<&str> = run[4].split(' ').collect();
        assert_eq!((words[0], words[1]), ("durawarp", "run"));
        let repeated = digests(&[&words[1..], &["-q", "--json", "-"]].concat());
        assert_eq!(repeated.0, [run[1].clone(), run[2].clone()], "{}", run[4]);
    }
    // The same program by hand: the option instead of those that the command spells out.
    let of_agpm = runs.iter().find(|run| run[0] == "stream_triad agpm").unwrap();
    let by_hand = ["run", "stream_triad", "--scheme", "agpm", "--profile", "ci", "--set=sm.count=4"];
    let by_hand = [&by_hand[..], &["--set=agpm.key=slot", "-q", "--json", "-"]].concat();
    let named = digests(&[&by_hand[..], &["--program", "agpm"]].concat());
    assert_eq!((&named.0[..], named.1), (&of_agpm[1..3], serde_json::Value::Bool(true)));
    let plain = digests(&by_hand);
    assert_ne!(plain.0[0], of_agpm[1], "the manifest's own logging is another program");
    let first = digests(&[&by_hand[..], &["--program", "agpm", "--loop-log", "false"]].concat());
    assert_eq!(first.1, serde_json::Value::Bool(false), "what is said of it comes first");
    let wrong = command(&folder, &[&by_hand[..], &["--program", "agmp"]].concat()).output().unwrap();
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && told.contains("did you mean `agpm`?"), "{told}");
}

#[test]
fn a_point_of_a_sweep_file_that_is_one_of_a_paper_has_its_key() {
    let plan = plan(&["fig3", "table2"], &["ATAX1"], PUBLISHED);
    let spec = |scheme: &str, set: &str| {
        let text = format!(
            "schema = 1\nname = \"it\"\n[base]\nworkload = \"atax\"\nprofile = \"ci\"\nscheme = \"{scheme}\"\n\
             set = {{ \"sm.count\" = 4{set} }}\nreference = false\nloop_log = true\nflag_barrier = \"paper\"\n"
        );
        let file = SweepFile::read("it.toml", text, Path::new("")).unwrap_or_else(|faults| panic!("{faults}"));
        durawarp::sweep::Plan::new(file).unwrap_or_else(|faults| panic!("{faults}")).points[0].key.clone()
    };
    let key = |run: &Run| {
        let point = plan.point_of(run).unwrap();
        plan.batch().points()[point].key.clone()
    };
    for scheme in ["base", "nt-store", "store+clwb"] {
        assert_eq!(key(&Run::new("atax", scheme)), spec(scheme, ""));
    }
    let atax = agpm::kernels::find("ATAX1").unwrap();
    let legacy = ", \"sm.coalescer\" = \"half_warp_legacy\"";
    assert_eq!(key(&agpm::runs::counted(atax)), spec("store+clwb", legacy));
    assert_ne!(key(&agpm::runs::counted(atax)), spec("store+clwb", ""));
}

#[test]
#[cfg(unix)]
fn a_reproduction_that_is_killed_or_stopped_goes_on_where_it_was() {
    for signal in ["-KILL", "-INT"] {
        let folder = folder(signal);
        let results = folder.join("kept");
        let fig7 = ["reproduce", "agpm", "--figure", "fig7", "--kernels", "ATAX1,BFS,SSSP1,GEMM", "--profile", "ci"];
        let fig7 = [&fig7[..], &["--results", "kept", "--jobs", "1", "--no-readings"]].concat();
        let mut child = command(&folder, &fig7).stdout(std::process::Stdio::null()).spawn().unwrap();
        while records(&results) < 2 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let ended = child.wait().unwrap();
        let done = records(&results);
        assert!(!ended.success() && (2..28).contains(&done), "{ended:?} with {done} of 28");
        let rest = format!("agpm: 28 runs, in `kept`, {done} done, {} to run", 28 - done);
        good(&command(&folder, &fig7).output().unwrap(), &[&rest, "fig7"]);
        assert_eq!(records(&results), 28);
    }
}

#[test]
fn a_comparison_goes_on_where_it_was_and_is_never_of_another_kernel() {
    let folder = folder("compare");
    let manifest = "schema = 1\nname = \"own\"\ndescription = \"d\"\nisa = { kind = \"ptx\", file = \"own.ptx\" }\n\
        buffer.out = { type = \"u32\", len = \"256\", space = \"pm\", role = \"output\" }\n\
        step = [{ kernel = \"k\", block = 64, grid = \"4\", args = [\"&out\"] }]\n";
    let kernel = |times: usize| {
        let body = "add.u32 %r1, %r1, 1;\n".repeat(times);
        let text = format!(
            ".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .u32 %r<4>;\n.reg .u64 %rd<4>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n\
             mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r1, %r2, %r3, %r1;\n\
             mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd3, %rd1, %rd2;\n{body}st.global.u32 [%rd3], %r1;\nret;\n}}\n"
        );
        std::fs::write(folder.join("own.ptx"), text).unwrap();
    };
    std::fs::write(folder.join("workload.toml"), manifest).unwrap();
    kernel(1);
    let compare = |schemes: &str, more: &[&str]| {
        let arguments = [&["compare", ".", "--schemes", schemes, "--results", "kept"], more].concat();
        command(&folder, &arguments).output().unwrap()
    };
    let few = good(&compare("strict", &[]), &["2 runs, in `kept`, 0 done, 2 to run"]);
    let more = good(&compare("strict,nt-store,epoch-cta", &[]), &["4 runs", "2 done, 2 to run"]);
    let again = good(&compare("strict,nt-store,epoch-cta", &["--json", "all.json"]), &["4 done, 0 to run"]);
    // What stands behind a scheme's name.
    let row = |text: &str, scheme: &str| -> Vec<String> {
        let mut rows = text.lines().map(|line| line.split_whitespace().map(str::to_owned));
        let row = rows.find_map(|mut words| (words.next().as_deref() == Some(scheme)).then(|| words.collect()));
        row.unwrap_or_else(|| panic!("no {scheme} in:\n{text}"))
    };
    assert_eq!(row(&few, "strict"), row(&more, "strict"));
    assert_eq!(row(&more, "nt-store"), row(&again, "nt-store"));
    let json = std::fs::read_to_string(folder.join("all.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap().as_array().unwrap().len(), 3);
    // A file that starts from a scheme and changes nothing is the same run under its own name.
    std::fs::write(folder.join("mine.toml"), "scheme = \"strict\"\nname = \"mine\"\n").unwrap();
    let named = good(&compare("mine.toml", &[]), &["2 runs", "2 done, 0 to run"]);
    assert_eq!(row(&named, "mine"), row(&few, "strict"));
    kernel(9);
    let edited = good(&compare("strict", &[]), &["2 runs", "0 done, 2 to run"]);
    assert_ne!(row(&edited, "strict"), row(&few, "strict"));
    // Nothing is kept unless a folder is named.
    good(&command(&folder, &["compare", ".", "--schemes", "strict"]).output().unwrap(), &["strict"]);
    assert!(!folder.join("durawarp-results").exists());
}

#[test]
fn every_paper_can_be_planned_at_small_sizes() {
    for paper in PAPERS {
        let request = Request { profile: "ci".to_owned(), ..Request::new(paper) };
        let plan = PaperPlan::new(request).unwrap_or_else(|faults| panic!("{}: {faults}", paper.name));
        assert!(!plan.runs().is_empty() && plan.notes().is_empty(), "{}: {:?}", paper.name, plan.notes());
    }
}

#[test]
fn figures_are_made_of_every_reading_of_the_memory_and_asks_answered_under_each() {
    let request = |set: &[&str]| {
        let figures = ["fig3", "fig7", "table3"].map(str::to_owned);
        let set = set.iter().map(|text| Override::parse(text).unwrap()).collect();
        let request = Request::new(&agpm::PAPER).only(&figures, &["StreamTriad".to_owned()]).unwrap();
        Request { profile: "ci".to_owned(), set, ..request }
    };
    let plan = |set: &[&str]| PaperPlan::new(request(set)).unwrap_or_else(|faults| panic!("{faults}"));
    let whole = plan(&["sm.count=4"]);
    assert_eq!(whole.batch().points().len(), 3 * whole.runs().len());
    let results = run(&whole);
    let found = Reproduction::of(&whole, &results);
    assert!(found.complete(), "{:?}", found.records);
    let names: Vec<&str> = found.readings.iter().map(|(reading, _)| reading.name).collect();
    assert_eq!(names, ["row_buffer", "through"]);
    let bar = |finding: &durawarp::papers::Finding| number(&finding.tables[0].rows[0][3]);
    let own = bar(&found.findings[0].1);
    let through = bar(&found.readings[1].1[0].1);
    assert_ne!(through, own, "writes that hold their banks");
    let files = found.files();
    let has = |name: &str| files.iter().any(|(other, _)| other == name);
    assert!(has("fig7.row_buffer.csv") && has("fig3.through.csv") && !has("table3.through.csv"));
    let file = |name: &str| &files.iter().find(|(other, _)| other == name).unwrap().1;
    let asks = ["machine", "row_buffer", "through"]
        .map(|reading| file("asks.csv").lines().filter(|row| row.ends_with(&format!(",{reading}"))).count());
    // What is no measurement is said once.
    assert!(asks[1] > 0 && asks == [asks[1] + 1, asks[1], asks[1]], "{asks:?}");
    for word in ["## Reading through: what differs", "=through: gem5's NVMInterface", "## Readings beside each other"] {
        assert!(file("agpm.md").contains(word), "no `{word}`");
    }
    assert!(found.text().contains("gem5's NVMInterface"));
    // Who decides about the memory has decided.
    let decided = plan(&["nvm.write_mode=through"]);
    assert_eq!((decided.readings().len(), decided.batch().points().len()), (0, decided.runs().len()));
    assert!(decided.notes().iter().any(|note| note.contains("other readings")), "{:?}", decided.notes());
}
