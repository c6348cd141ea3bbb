//! Sweeps as a user meets them: what a sweep file may say, what is wrong with one, what the commands print
//! and write.

use std::path::Path;
use std::process::Command;

use crate::cli_common::{command, durawarp_in, ended, sweep_folder, wrong_from};
use durawarp::sweep::{Plan, SweepFile};

/// The start of every file here.
const HEAD: &str =
    "schema = 1\nname = \"it\"\n[base]\nworkload = \"vecadd\"\nprofile = \"ci\"\nset = { \"sm.count\" = 1 }\n";

fn plan(rest: &str) -> Result<Plan, String> {
    let text = format!("{HEAD}{rest}");
    let file = SweepFile::read("it.toml", text, Path::new("")).map_err(|faults| faults.to_string())?;
    Plan::new(file).map_err(|faults| faults.to_string())
}

fn labels(rest: &str) -> Vec<String> {
    plan(rest).unwrap_or_else(|faults| panic!("{faults}")).points.into_iter().map(|point| point.label).collect()
}

#[test]
fn every_fault_of_a_sweep_file_is_told_at_its_place() {
    // Line 7 is the first behind the head.
    let cases = [
        (
            "[[axis]]\nkey = \"l2.slice_kbs\"\nvalues = [64]\n",
            "it.toml:8:7: unknown key `l2.slice_kbs` (did you mean `l2.slice_kb`?)",
        ),
        ("[[axis]]\nkey = \"l3.slice_kb\"\nvalues = [64]\n", "it.toml:8:7: there is no table `l3`"),
        ("[[axis]]\nkey = \"agpm.treshold_logs\"\nvalues = [64]\n", "did you mean `agpm.threshold_logs`?"),
        (
            "[[axis]]\nkey = \"sceme\"\nvalues = [\"base\"]\n",
            "it.toml:8:7: unknown key `sceme` (did you mean `scheme`?)",
        ),
        ("[[axis]]\nkey = \"l2.slice_kb\"\nvalues = [64, 0]\n", "it.toml:9:15: `slice_kb` expects"),
        ("[[axis]]\nkey = \"l2.slice_kb\"\nvalues = [64, \"4ns\"]\n", "it.toml:9:15: `slice_kb` is a size in KiB"),
        ("[[axis]]\nkey = \"seed\"\nvalues = [-1]\n", "it.toml:9:11: `seed` expects a whole number from 0"),
        (
            "[[axis]]\nkey = \"l2.slice_kb\"\nvalues = [64, 128, \"64KiB\"]\n",
            "it.toml:9:20: duplicate points: 64 is here twice",
        ),
        ("[[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"strikt\"]\n", "it.toml:9:19: there is no scheme `strikt`"),
        ("[[axis]]\nkey = \"scheme\"\nvalues = [\"strikt\"]\n", "did you mean `strict`?"),
        ("[[axis]]\nkey = \"machine\"\nvalues = [\"titan-y\"]\n", "it.toml:9:11: there is no machine `titan-y`"),
        ("[[axis]]\nkey = \"workload\"\nvalues = [\"vecad\"]\n", "it.toml:9:11: there is no workload `vecad`"),
        (
            "[[axis]]\nkey = \"profile\"\nvalues = [\"c1\"]\n",
            "it.toml:9:11: no workload of this sweep has a profile `c1`",
        ),
        ("[[axis]]\nkey = \"params.M\"\nvalues = [3]\n", "it.toml:9:11: workload `vecadd` has no parameter `M`"),
        (
            "[[axis]]\nkey = \"agpm.threshold_logs\"\nvalues = [5]\n",
            "it.toml:8:7: `agpm.threshold_logs` is of scheme `agpm`, which no point runs",
        ),
        ("[[axis]]\nkey = \"seed\"\nvalues = []\n", "it.toml:8:7: this axis has no values: there would be no points"),
        (
            "[[axis]]\nkey = \"seed\"\nvalues = [1]\n[[exclude]]\nseed = 1\n",
            "it.toml:10:1: zero points: all 1 are excluded",
        ),
        (
            "[[axis]]\nkey = \"seed\"\nvalues = [1]\n[[exclude]]\nseed = 2\n",
            "it.toml:11:8: no point has `seed` = 2 (it has 1)",
        ),
        ("[[exclude]]\n\"l2.slice_kb\" = 2\n", "it.toml:8:1: `l2.slice_kb` is no axis of this sweep"),
        ("[[axis]]\nkey = \"seed\"\nrange = { from = 1, to = 4 }\n", "it.toml:9:9: a range needs `step`"),
        (
            "[[axis]]\nkey = \"seed\"\nrange = { from = 4, to = 1, step = 1 }\n",
            "it.toml:9:9: this range has no values or no end",
        ),
        (
            "[[axis]]\nkey = \"seed\"\nrange = { from = 0, to = 8, times = 2 }\n",
            "it.toml:9:9: this range has no values or no end",
        ),
        (
            "[[axis]]\nkeys = [\"seed\", \"scheme\"]\nvalues = [[1, \"base\"], [2]]\n",
            "it.toml:9:24: each of `values` is a list of 2 values",
        ),
        (
            "[[axis]]\nkey = \"seed\"\nvalues = [1]\n[[axis]]\nkey = \"seed\"\nvalues = [2]\n",
            "it.toml:11:7: `seed` varies in two axes",
        ),
        ("[[axis]]\nvalues = [2]\n", "it.toml:7:1: an axis needs `key`"),
        ("[[axis]]\nkey = \"seed\"\nvalus = [1]\n", "it.toml:9:1: unknown key `valus` in"),
        ("[baseline]\nscheme = \"strict\"\n", "it.toml:8:10: no point has `scheme` = \"strict\""),
        ("[[figure]]\nkind = \"lines\"\nx = \"seed\"\n", "lacks the key `y`"),
        (
            "[[axis]]\nkey = \"flag_barrier\"\nvalues = [\"safe\", \"papers\"]\n",
            "it.toml:9:19: `flag_barrier` expects one of paper, safe, found \"papers\" (did you mean `paper`?)",
        ),
        ("[[axis]]\nkey = \"loop_log\"\nvalues = [1]\n", "it.toml:9:11: `loop_log` expects true or false, found 1"),
        ("[[axis]]\nkey = \"inputs.a\"\nvalues = [1]\n", "it.toml:9:11: `inputs.a` expects the name of a file"),
        ("[[axis]]\nkey = \"inputs.a\"\nvalues = [\"no.bin\"]\n", "it.toml:9:11: cannot read the file"),
        ("[[axis]]\nkey = \"inputs.q\"\nvalues = [\"no.bin\"]\n", "it.toml:9:11: workload `vecadd` has no buffer `q`"),
        // Values that do not go together, each good by itself.
        ("[[axis]]\nkey = \"l2.slices\"\nvalues = [16, 3]\n", "it.toml:9:15:"),
    ];
    for (rest, expected) in cases {
        let found = plan(rest).err().unwrap_or_else(|| panic!("no fault in:\n{rest}"));
        assert!(found.contains(expected), "no\n  {expected}\nin\n  {found}\nof\n{rest}");
    }
    let read = |text: &str| SweepFile::read("it.toml", text.to_owned(), Path::new("")).unwrap_err().to_string();
    assert!(
        read("schema = 2\nname = \"a\"\n[base]\nworkload = \"vecadd\"\n").contains("it.toml:1:10: this program reads")
    );
    assert!(read("schema = 1\nname = \"a\"\n[base]\n").contains("no workload"));
    assert!(
        read("schema = 1\nname = \"a\"\nmetrics = [\"sm.l1_hit\"]\n[base]\nworkload = \"vecadd\"\n")
            .contains("it.toml:3:12: there is no metric `sm.l1_hit` (did you mean `sm.l1_hits`?)")
    );
    assert!(read("schema = 1\nname = \"a\n").contains("it.toml:2:"));
}

#[test]
fn all_faults_come_at_once_and_the_exit_code_is_2() {
    let text =
        format!("{HEAD}[[axis]]\nkey = \"l2.slice_kbs\"\nvalues = [1]\n[[axis]]\nkey = \"sm.count\"\nvalues = [0]\n");
    let folder = sweep_folder("cli_sweep/faults", &text);
    let output = durawarp_in(&folder, &["sweep", "run", "spec.toml"]);
    ended(&output, 2, &["slice_kbs", "spec.toml:8:7", "spec.toml:12:11", "2 errors"]);
    assert!(!folder.join("durawarp-results").exists(), "nothing was begun");
    ended(&durawarp_in(&folder, &["sweep", "run", "nothing.toml"]), 2, &["cannot read the sweep file"]);
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "--shard", "3/2"]), 2, &["I/N"]);
    ended(&durawarp_in(&folder, &["sweep", "table", "--columns"]), 0, &["sm.l1_hits", "accesses", "relative"]);
}

#[test]
fn points_are_the_product_of_axes_zips_and_ranges_without_exclusions() {
    let zip = "[[axis]]\nkeys = [\"scheme\", \"params.N\"]\nvalues = [[\"base\", 64], [\"strict\", 128]]\n\
        [[axis]]\nkey = \"seed\"\nrange = { from = 1, to = 8, times = 2 }\n\
        [[exclude]]\nscheme = \"strict\"\nseed = [2, 4]\n";
    let expected = ["base seed=1 params.N=64", "base seed=2 params.N=64", "base seed=4 params.N=64"];
    let labels = labels(zip);
    assert_eq!(labels.len(), 6);
    for (own, expected) in labels.iter().zip(expected) {
        assert_eq!(*own, format!("vecadd {expected}"));
    }
    assert_eq!(labels[5], "vecadd strict seed=8 params.N=128");
    let times = "[[axis]]\nkey = \"dram.t_cl_ns\"\nrange = { from = 0.1, to = 0.5, step = 0.1 }\n";
    let times: Vec<String> = self::labels(times);
    assert_eq!(times[2], "vecadd base dram.t_cl_ns=0.3");
    assert_eq!(times.len(), 5);
}

#[test]
fn a_parameter_of_a_scheme_does_not_multiply_points_of_others() {
    let both = "[[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"agpm\"]\n\
        [[axis]]\nkey = \"agpm.threshold_logs\"\nvalues = [1000, 5000]\n";
    assert_eq!(
        labels(both),
        ["vecadd base", "vecadd agpm agpm.threshold_logs=1000", "vecadd agpm agpm.threshold_logs=5000"]
    );
    let plan = plan(&format!("{both}[baseline]\nscheme = \"base\"\n")).unwrap();
    assert_eq!(plan.baselines(), [Some(0), Some(0), Some(0)]);
}

#[test]
fn keys_name_content_and_not_the_way_it_was_said() {
    let keys = |rest: &str| -> Vec<String> { plan(rest).unwrap().points.into_iter().map(|point| point.key).collect() };
    let axis = keys("[[axis]]\nkey = \"l2.slice_kb\"\nvalues = [128, 256]\n");
    assert_eq!(axis[1], keys("[[axis]]\nkey = \"l2.slice_kb\"\nvalues = [\"256KiB\"]\n")[0]);
    // The machine's own value said again.
    assert_eq!(axis[0], keys("")[0]);
    let twice =
        plan("[[axis]]\nkeys = [\"profile\", \"params.N\"]\nvalues = [[\"ci\", 64], [\"ci\", \"64\"]]\n").unwrap_err();
    assert!(twice.contains("are the same run"), "{twice}");
}

#[test]
fn files_of_buffers_and_how_logs_are_kept_can_vary() {
    let rest = "[[axis]]\nkey = \"inputs.a\"\nvalues = [\"zeros.bin\", \"ones.bin\"]\n";
    let folder =
        sweep_folder("cli_sweep/inputs", &format!("{HEAD}{rest}").replace("set = {", "set = { \"params.N\" = 64,"));
    std::fs::write(folder.join("zeros.bin"), [0; 256]).unwrap();
    std::fs::write(folder.join("ones.bin"), 1f32.to_le_bytes().repeat(64)).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "--jobs", "1"]), 0, &["done 2"]);
    let plan = Plan::load(&folder.join("spec.toml")).unwrap_or_else(|faults| panic!("{faults}"));
    assert_ne!(plan.points[0].key, plan.points[1].key, "another content, another run");
    let command = plan.batch.command(1);
    assert!(command.contains("--input a=") && command.contains("ones.bin"), "{command}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let dump = [&words[..], &["--dump", "a=a.bin", "-q"]].concat();
    ended(&durawarp_in(&folder, &dump), 0, &[]);
    assert_eq!(std::fs::read(folder.join("a.bin")).unwrap(), std::fs::read(folder.join("ones.bin")).unwrap());

    let logging = "schema = 1\nname = \"it\"\n[base]\nworkloads = [\"atax\", \"bfs\"]\nscheme = \"store+clwb\"\n\
        profile = \"ci\"\nloop_log = false\n[[axis]]\nkey = \"flag_barrier\"\nvalues = [\"paper\", \"safe\"]\n";
    let read = |text: &str| SweepFile::read("it.toml", text.to_owned(), Path::new("")).unwrap();
    let plan = Plan::new(read(logging)).unwrap_or_else(|faults| panic!("{faults}"));
    let told: Vec<(&str, bool)> = plan
        .points
        .iter()
        .enumerate()
        .map(|(at, p)| (p.label.as_str(), plan.batch.command(at).contains("--loop-log")))
        .collect();
    // One without an [instrument] has nothing to vary.
    let expected = [
        ("atax store+clwb flag_barrier=paper", true),
        ("atax store+clwb flag_barrier=safe", true),
        ("bfs store+clwb", false),
    ];
    assert_eq!(told, expected);
    assert!(plan.batch.command(0).contains("--flag-barrier paper --loop-log false"), "{}", plan.batch.command(0));
    let none = Plan::new(read(&logging.replace("\"atax\", ", ""))).unwrap_err().to_string();
    assert!(none.contains("it.toml:9:7: `flag_barrier` is of workloads with an `[instrument]`"), "{none}");
}

const RUNS: &str = "[[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"strict\"]\n[[axis]]\nkey = \"params.N\"\nvalues = [64, 4096]\n\
    [[figure]]\nkind = \"bars\"\nx = \"params.N\"\ny = \"cycles\"\ngroup = \"scheme\"\n[baseline]\nscheme = \"base\"\n";

#[test]
fn shards_run_every_point_once_and_status_and_tables_follow() {
    let folder = sweep_folder("cli_sweep/runs", &format!("{HEAD}{RUNS}"));
    let dry = ended(
        &durawarp_in(&folder, &["sweep", "run", "spec.toml", "--dry-run"]),
        0,
        &["4 points, 0 done, 4 to run", "not known"],
    );
    assert_eq!(dry.lines().count(), 5, "{dry}");
    assert!(!folder.join("durawarp-results").exists(), "a dry run leaves nothing");
    ended(&durawarp_in(&folder, &["sweep", "status", "spec.toml"]), 0, &["0 done, 0 failed, 4 missing"]);
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "--shard", "1/2"]), 0, &["of shard 1/2"]);
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "--shard", "2/2", "-q"]), 0, &[]);
    ended(
        &durawarp_in(&folder, &["sweep", "run", "spec.toml"]),
        0,
        &["4 points, 4 done, 0 to run", "done 4 (4 cached)"],
    );
    let status = ended(&durawarp_in(&folder, &["sweep", "status", "spec.toml"]), 0, &["4 done, 0 failed, 0 missing"]);
    let row = status.lines().find(|line| line.contains("strict")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["scheme", "strict", "2", "0", "0"]);

    let arguments =
        ["sweep", "table", "spec.toml", "--csv", "long.csv", "--json", "long.json", "--metrics", "cycles,sm.pm_stores"];
    ended(&durawarp_in(&folder, &arguments), 0, &[]);
    let mut reader = csv::Reader::from_path(folder.join("long.csv")).unwrap();
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let keys = ["sweep", "point", "machine", "workload", "scheme", "profile", "seed", "params.N"];
    assert_eq!(header, [&keys[..], &["metric", "value", "unit", "relative", "warnings"]].concat());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 8);
    let cell = |row: &csv::StringRecord, name: &str| row[header.iter().position(|own| own == name).unwrap()].to_owned();
    let number = |row: &csv::StringRecord, name: &str| cell(row, name).parse::<f64>().unwrap();
    for row in rows.iter().filter(|row| cell(row, "metric") == "cycles") {
        let base = rows.iter().find(|other| {
            cell(other, "scheme") == "base"
                && ["metric", "params.N"].iter().all(|key| cell(other, key) == cell(row, key))
        });
        let expected = number(row, "value") / number(base.unwrap(), "value");
        assert!((number(row, "relative") - expected).abs() < 1e-12 && cell(row, "unit") == "core cycles");
        assert_eq!(expected == 1.0, cell(row, "scheme") == "base", "strict is slower");
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("long.json")).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 8);
    assert_eq!(json[0]["value"].as_f64(), Some(number(&rows[0], "value")));

    ended(&durawarp_in(&folder, &["sweep", "table", "spec.toml", "--wide", "--csv", "wide.csv"]), 0, &[]);
    let mut reader = csv::Reader::from_path(folder.join("wide.csv")).unwrap();
    assert!(reader.headers().unwrap().iter().any(|name| name == "ipc.relative"));
    assert_eq!(reader.records().map(|row| row.unwrap()[8].to_owned()).collect::<Vec<_>>(), ["good"; 4]);
    ended(
        &durawarp_in(&folder, &["sweep", "table", "spec.toml", "--metrics", "cicles"]),
        2,
        &["did you mean `cycles`?"],
    );
    // vecadd's result stays in the L2: its NVM had no part.
    assert!(rows.iter().all(|row| cell(row, "warnings").starts_with("unsourced")), "{rows:?}");
    let small = rows.iter().find(|row| cell(row, "scheme") == "base" && cell(row, "params.N") == "64").unwrap();
    assert_eq!(cell(small, "warnings"), "unsourced unexercised");
    // Once the sweep has grown, an estimate follows from what was measured.
    std::fs::write(folder.join("spec.toml"), format!("{HEAD}{RUNS}").replace("4096]", "4096, 128]")).unwrap();
    ended(
        &durawarp_in(&folder, &["sweep", "run", "spec.toml", "--dry-run"]),
        0,
        &["6 points, 4 done, 2 to run; about 0:0"],
    );
    ended(&durawarp_in(&folder, &["sweep", "table", "spec.toml"]), 0, &["of 6 points 2 are missing"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_sweep_that_goes_on() {
    let text = format!("{HEAD}[[axis]]\nkey = \"seed\"\nrange = {{ from = 1, to = 400, step = 1 }}\n");
    let folder = sweep_folder("cli_sweep/ctrl_c", &text);
    let mut child = command(&folder, &["sweep", "run", "spec.toml", "--jobs", "1", "-q"]).spawn().unwrap();
    let results = || std::fs::read_dir(folder.join("durawarp-results")).into_iter().flatten().flatten();
    let bytes = || results().filter_map(|entry| entry.metadata().ok()).map(|about| about.len()).sum::<u64>();
    for _ in 0..6000 {
        if bytes() > 60_000 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let dry = ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "--dry-run"]), 0, &["400 points"]);
    let done: usize = dry.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((1..400).contains(&done), "{dry}");
}

#[test]
fn slurm_gets_a_script_of_shards() {
    let folder = sweep_folder("cli_sweep/slurm", &format!("{HEAD}{RUNS}"));
    let arguments = [
        "sweep",
        "run",
        "spec.toml",
        "--slurm",
        "4",
        "--sbatch-arg=--time=10",
        "--dry-run",
        "--results",
        "out",
        "--keep-failed",
    ];
    let script =
        ended(&durawarp_in(&folder, &arguments), 0, &["#SBATCH --array=0-3", "#SBATCH --time=10", "--keep-failed"]);
    let absolute = folder.canonicalize().unwrap().join("spec.toml");
    assert!(script.contains(&format!(" sweep run {}", absolute.display())), "{script}");
    assert!(!folder.join("out").exists());
}

/// Names and values of the user's that a spreadsheet would take for formulas are text in a table.
#[test]
fn a_table_has_no_cell_that_a_spreadsheet_would_work_out() {
    let spec = "schema = 1\nname = \"it\"\n[base]\nworkload = \"=1+1\"\nset = { \"params.N\" = 64 }\n[[axis]]\nkey = \"seed\"\n\
                values = [1]\n";
    let folder = sweep_folder("sweep/formulas", spec);
    wrong_from(&folder, u64::MAX >> 1);
    std::fs::rename(folder.join("wrong"), folder.join("=1+1")).unwrap();
    let manifest = folder.join("=1+1/workload.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("name = \"vecadd\"", "name = \"=1+1\"")).unwrap();
    let spec = std::fs::read_to_string(folder.join("spec.toml")).unwrap();
    std::fs::write(folder.join("spec.toml"), spec.replace("\"=1+1\"", "\"=1+1/workload.toml\"")).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "-q"]), 0, &[]);
    let table =
        ended(&durawarp_in(&folder, &["sweep", "table", "spec.toml", "--csv", "-"]), 0, &["'=1+1/workload.toml"]);
    assert!(!table.contains(",=") && !table.starts_with('='), "{table}");
}
