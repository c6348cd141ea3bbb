//! The store of results under what happens to it: processes that are killed, that share a folder, torn and foreign files,
//! a full disk. And what it is for: the same table, whatever happened on the way.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::cli_common::{command, durawarp_in, ended, sweep_folder, wrong_from};
use durawarp::sweep::record::State;
use durawarp::sweep::{Plan, Store, table};

/// 512 points of a few hundred warp instructions each.
const MANY: &str = r#"
schema = 1
name = "many"
metrics = ["cycles", "warp_instructions", "sm.l1_hits", "l2.reads"]
[base]
workload = "vecadd"
profile = "ci"
set = { "sm.count" = 1, "l2.slices" = 8 }
[[axis]]
key = "params.N"
range = { from = 32, to = 512, step = 32 }
[[axis]]
key = "l2.slice_kb"
values = [64, 128]
[[axis]]
key = "seed"
range = { from = 0, to = 15, step = 1 }
"#;

/// 12 points.
const FEW: &str = r#"
schema = 1
name = "few"
[base]
workload = "vecadd"
profile = "ci"
set = { "sm.count" = 1, "l2.slices" = 8 }
[[axis]]
key = "params.N"
range = { from = 32, to = 128, step = 32 }
[[axis]]
key = "scheme"
values = ["base", "strict", "epoch-cta"]
"#;

fn sweeping(folder: &Path, results: &str, more: &[&str]) -> Command {
    command(folder, &[&["sweep", "run", "spec.toml", "--results", results], more].concat())
}

fn sweep(folder: &Path, results: &str, more: &[&str]) -> Output {
    sweeping(folder, results, more).output().unwrap()
}

fn spawn(folder: &Path, results: &str) -> Child {
    sweeping(folder, results, &["--jobs", "2"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Whole records of a folder: results, and what was begun.
fn records(folder: &Path) -> (usize, usize) {
    let (mut results, mut begun) = (0, 0);
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            begun += whole.lines().filter(|line| line.contains(r#""state":"begun""#)).count();
            results += whole.lines().filter(|line| !line.contains(r#""state":"begun""#)).count();
        }
    }
    (results, begun)
}

fn csv(folder: &Path, results: &str) -> Vec<u8> {
    let plan = Plan::load(&folder.join("spec.toml")).unwrap_or_else(|faults| panic!("{faults}"));
    let store = Store::open_existing(&folder.join(results)).unwrap();
    assert!(plan.points.iter().all(|point| store.result(&point.key).is_some()), "every point has a result");
    table::of(&plan, &store, &plan.file.metrics, false).unwrap().csv()
}

/// The only file of records in a folder.
fn file_of(results: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "jsonl")).unwrap()
}

/// A record as a line with a checksum that fits what it says now.
fn resealed(record: &serde_json::Value) -> String {
    let mut record = record.clone();
    record.as_object_mut().unwrap().remove("sum");
    String::from_utf8(durawarp::sweep::record::sealed(record.to_string().into_bytes())).unwrap()
}

#[test]
fn killed_at_three_moments_or_run_by_two_processes_the_table_is_that_of_one_run() {
    let folder = sweep_folder("sweep_store/killed", MANY);
    ended(&sweep(&folder, "whole", &["--jobs", "2"]), 0, &["512 points, 0 done, 512 to run", "done 512 (0 cached)"]);
    let table = csv(&folder, "whole");
    assert_eq!(records(&folder.join("whole")), (512, 512));

    // Killed when so many results are there: moments that are the same on a fast and on a slow host.
    let mut random = 0x5eed_u64;
    let mut least = 0;
    for _ in 0..3 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        least += 20 + (random >> 40) as usize % 120;
        let mut child = spawn(&folder, "killed");
        let mut waited_ms = 0;
        while records(&folder.join("killed")).0 < least {
            assert!(waited_ms < 60_000, "it makes progress");
            std::thread::sleep(Duration::from_millis(2));
            waited_ms += 2;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = records(&folder.join("killed")).0;
    assert!(before < 512, "it was killed in the middle: {before}");
    let output = sweep(&folder, "killed", &["--jobs", "2"]);
    ended(&output, 0, &[&format!("{before} done, {} to run", 512 - before), "done 512"]);
    // What was done was never run again.
    assert_eq!(records(&folder.join("killed")).0, 512);
    assert!(csv(&folder, "killed") == table, "killed and resumed: another table");

    let mut two = [spawn(&folder, "shared"), spawn(&folder, "shared")];
    for child in &mut two {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let (results, _) = records(&folder.join("shared"));
    assert!((512..=512 + 8).contains(&results), "{results} runs for 512 points");
    assert!(csv(&folder, "shared") == table, "run by two: another table");
}

#[test]
fn two_processes_run_no_point_twice_in_a_folder_that_takes_long_to_look_at() {
    let folder = sweep_folder("sweep_store/slow", MANY);
    let results = folder.join("shared");
    ended(&sweep(&folder, "shared", &["--shard", "1/64"]), 0, &["shard 1/64"]);
    let before = records(&results).0;
    // Each look goes over these: more than 20 ms on any host of today.
    for nth in 0..20_000 {
        std::fs::File::create(results.join(format!("elsewhere-{nth}-1.jsonl"))).unwrap();
    }
    let mut two = [spawn(&folder, "shared"), spawn(&folder, "shared")];
    for child in &mut two {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let (done, begun) = records(&results);
    assert!(before < 64 && (512..=512 + 2).contains(&done), "{done} runs for 512 points");
    // They go on while a folder is looked at: a few of what both claim is put off by both.
    assert!(begun >= done, "{begun} claims for {done} runs");
}

#[test]
#[cfg(unix)]
fn what_another_process_has_begun_is_waited_for_as_long_as_that_lives_and_no_longer() {
    let folder = sweep_folder("sweep_store/waits", FEW);
    ended(&sweep(&folder, "whole", &["--jobs", "1"]), 0, &["done 12"]);
    let whole = std::fs::read_to_string(file_of(&folder.join("whole"))).unwrap();
    // Another process of this program, alive and doing nothing: what it writes is written here in its name.
    let other_folder = self::sweep_folder("sweep_store/waits_other", MANY);
    let mut other = spawn(&other_folder, "other");
    while records(&other_folder.join("other")).0 == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let signal =
        |name: &str, pid: u32| assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
    signal("-STOP", other.id());
    let of_other = |state: &str, after_ms: u64| {
        let mut records = whole.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let mut record = records.find(|record| record["state"] == state).unwrap();
        record["pid"] = other.id().into();
        record["unix_ms"] = (record["unix_ms"].as_u64().unwrap() + after_ms).into();
        resealed(&record)
    };
    let host = serde_json::from_str::<serde_json::Value>(whole.lines().next().unwrap()).unwrap()["host"].clone();
    let waits = |name: &str| {
        let results = folder.join(name);
        std::fs::create_dir_all(&results).unwrap();
        std::fs::copy(folder.join("whole/durawarp-results.json"), results.join("durawarp-results.json")).unwrap();
        let theirs = results.join(format!("{}-{}-1.jsonl", host.as_str().unwrap(), other.id()));
        std::fs::write(&theirs, of_other("begun", 0)).unwrap();
        let mut child = spawn(&folder, name);
        while records(&results).0 < 11 {
            assert!(child.try_wait().unwrap().is_none(), "it waits");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "it waits for the point that another has begun");
        (child, theirs, results)
    };
    let ends = |child: &mut Child| {
        let ended = (0..2000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            child.try_wait().unwrap()
        });
        assert_eq!(ended.unwrap_or_else(|| panic!("it waits for ever")).code(), Some(0));
    };
    // The other ends the point and lives on.
    let (mut child, theirs, results) = waits("done");
    std::fs::OpenOptions::new().append(true).open(theirs).unwrap().write_all(of_other("good", 1).as_bytes()).unwrap();
    ends(&mut child);
    assert_eq!(records(&results).0, 12, "it was not run again");
    assert!(csv(&folder, "done") == csv(&folder, "whole"));
    // The other is gone.
    let (mut child, _, results) = waits("gone");
    other.kill().unwrap();
    other.wait().unwrap();
    ends(&mut child);
    assert_eq!(records(&results).0, 12, "now it was run here");
}

#[test]
fn a_torn_last_line_is_passed_over_and_its_point_run_again() {
    let folder = sweep_folder("sweep_store/torn", FEW);
    ended(&sweep(&folder, "results", &[]), 0, &["done 12"]);
    let file = file_of(&folder.join("results"));
    let whole = std::fs::read(&file).unwrap();
    let table = csv(&folder, "results");
    std::fs::write(&file, &whole[..whole.len() - 100]).unwrap();
    ended(&sweep(&folder, "results", &["--dry-run"]), 0, &["11 done, 1 to run"]);
    // A line in the middle that is no record: told, and nothing else is lost.
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut damaged = lines[..4].concat();
    damaged.extend_from_slice(b"\0\0\0\0\n");
    damaged.extend(lines[4..].concat());
    std::fs::write(&file, &damaged).unwrap();
    ended(&sweep(&folder, "results", &["--dry-run"]), 0, &["12 done, 0 to run", "passed over"]);
    std::fs::write(&file, &whole[..whole.len() - 100]).unwrap();
    ended(&sweep(&folder, "results", &[]), 0, &["done 12 (11 cached)"]);
    assert!(std::fs::read(&file).unwrap() == whole[..whole.len() - 100], "an old file is never written to");
    assert!(csv(&folder, "results") == table);
}

#[test]
fn a_record_in_which_a_digit_was_changed_is_told_and_its_point_run_again() {
    let folder = sweep_folder("sweep_store/changed", FEW);
    ended(&sweep(&folder, "results", &[]), 0, &["done 12"]);
    let (file, table) = (file_of(&folder.join("results")), csv(&folder, "results"));
    let whole = std::fs::read_to_string(&file).unwrap();
    let cycles = whole.split("\"core_cycles\":").nth(1).unwrap().split([',', '}']).next().unwrap();
    let other = if cycles.ends_with('7') { "8" } else { "7" };
    let changed = format!("{}{other}", &cycles[..cycles.len() - 1]);
    std::fs::write(
        &file,
        whole.replacen(&format!("\"core_cycles\":{cycles}"), &format!("\"core_cycles\":{changed}"), 1),
    )
    .unwrap();
    let told = ["its checksum does not fit", "run again"];
    ended(&sweep(&folder, "results", &["--dry-run"]), 0, &[&told[..], &["11 done, 1 to run"]].concat());
    let output = durawarp_in(&folder, &["sweep", "table", "spec.toml", "--results", "results"]);
    ended(&output, 0, &[&told[..], &["missing"]].concat());
    ended(&sweep(&folder, "results", &[]), 0, &["done 12 (11 cached)"]);
    assert!(csv(&folder, "results") == table);
}

#[test]
fn another_schema_or_another_folder_is_refused() {
    let folder = sweep_folder("sweep_store/schema", FEW);
    ended(&sweep(&folder, "results", &["--shard", "1/4"]), 0, &["shard 1/4"]);
    let foreign = folder.join("results/other-1-1.jsonl");
    std::fs::write(&foreign, "{\"record\":1,\"verdict\":\"good\"}\n").unwrap();
    for arguments in [&["--dry-run"][..], &[]] {
        ended(&sweep(&folder, "results", arguments), 2, &["other-1-1.jsonl", "schema 1", "reads 3", "another folder"]);
    }
    std::fs::remove_file(foreign).unwrap();
    std::fs::write(folder.join("results/durawarp-results.json"), "{\"schema\": 7}").unwrap();
    ended(&sweep(&folder, "results", &[]), 2, &["durawarp-results.json", "schema 7"]);
    std::fs::create_dir(folder.join("photos")).unwrap();
    std::fs::write(folder.join("photos/cat.png"), "").unwrap();
    ended(&sweep(&folder, "photos", &[]), 2, &["no folder of results", "cat.png"]);
    ended(&sweep(&folder, "spec.toml", &[]), 2, &["cannot make the folder"]);
}

#[test]
#[cfg(unix)]
fn a_full_disk_ends_the_sweep_and_loses_nothing() {
    let folder = sweep_folder("sweep_store/full", FEW);
    // A limit on the size of files stands for it: 60 KiB are two or three records.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 120; exec '{}' sweep run spec.toml --results results --jobs 1",
        env!("CARGO_BIN_EXE_durawarp")
    );
    let output = Command::new("sh").current_dir(&folder).args(["-c", &limited]).output().unwrap();
    ended(&output, 2, &["cannot write", "points are left", "run the same command again"]);
    let done = records(&folder.join("results")).0;
    assert!((1..12).contains(&done), "{done}");
    for entry in std::fs::read_dir(folder.join("results")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(text.ends_with('\n'), "a record that was not written whole is cut off");
    }
    ended(&sweep(&folder, "results", &[]), 0, &[&format!("{done} done, {} to run", 12 - done), "done 12"]);

    // A table that does not fit leaves the one that was there, and no part of itself.
    std::fs::write(folder.join("table.csv"), "old").unwrap();
    let limited = format!(
        "trap '' XFSZ; ulimit -f 2; exec '{}' sweep table spec.toml --results results --csv table.csv",
        env!("CARGO_BIN_EXE_durawarp")
    );
    let output = Command::new("sh").current_dir(&folder).args(["-c", &limited]).output().unwrap();
    ended(&output, 2, &["cannot write `table.csv`"]);
    assert_eq!(std::fs::read_to_string(folder.join("table.csv")).unwrap(), "old");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.contains("partial")));
}

#[test]
fn failed_points_are_kept_with_their_reason_and_run_again() {
    let folder = sweep_folder("sweep_store/failed", &FEW.replace("\"vecadd\"", "\"wrong\""));
    wrong_from(&folder, 0);
    let output = sweep(&folder, "results", &["--jobs", "2"]);
    ended(&output, 3, &["12 failed", "the result is wrong", "durawarp run wrong"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = error.lines().find_map(|line| line.trim().strip_prefix("run it by itself: durawarp ")).unwrap();
    let alone = durawarp_in(&folder, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(alone.status.code(), Some(3), "the command repeats the point: {line}");
    assert_eq!(records(&folder.join("results")).0, 12);
    ended(&sweep(&folder, "results", &["--keep-failed"]), 3, &["0 to run", "12 failed before"]);
    assert_eq!(records(&folder.join("results")).0, 12, "nothing was run");
    ended(&sweep(&folder, "results", &[]), 3, &["12 to run", "12 failed before"]);
    assert_eq!(records(&folder.join("results")).0, 24, "all were run again");
    let store = Store::open_existing(&folder.join("results")).unwrap();
    assert!(store.results().all(|entry| entry.head.state == State::Failed && entry.head.why.is_some()));
    let outcome = store.outcome(store.results().next().unwrap()).unwrap().expect("what it came to is kept");
    assert!(!outcome.verification.unwrap().passed);
}

#[test]
fn what_a_cycle_limit_cuts_is_marked_and_has_its_metrics_in_a_run_and_in_a_sweep() {
    let text = FEW
        .replace("[base]", "metrics = [\"cycles\", \"warp_instructions\"]\nbaseline = { scheme = \"base\" }\n[base]");
    let folder = sweep_folder("sweep_store/cut", &text.replace("profile", "max_cycles = 3000\nprofile"));
    ended(&sweep(&folder, "results", &["--jobs", "2"]), 0, &["done 12 (0 cached), 12 cut by their cycle limit"]);
    ended(&sweep(&folder, "results", &[]), 0, &["12 done (12 cut by their cycle limit), 0 to run"]);
    let status = durawarp_in(&folder, &["sweep", "status", "spec.toml", "--results", "results"]);
    ended(&status, 0, &["12 done (12 cut by their cycle limit), 0 failed"]);
    let table = durawarp_in(&folder, &["sweep", "table", "spec.toml", "--results", "results", "--wide"]);
    let table = ended(&table, 0, &["few,"]);
    let (head, rows) = table.split_once('\n').unwrap();
    let column = |name: &str| head.trim().split(',').position(|column| column == name).unwrap();
    let (state, cycles, relative) = (column("state"), column("cycles"), column("cycles.relative"));
    assert_eq!(rows.lines().count(), 12);
    for row in rows.lines() {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!((cells[state], cells[relative]), ("cut", ""), "{row}");
        assert!(cells[cycles].parse::<u64>().unwrap() >= 3000, "{row}");
    }
    let store = Store::open_existing(&folder.join("results")).unwrap();
    let entry = store.results().next().unwrap();
    let outcome = store.outcome(entry).unwrap().expect("the part that ran is kept");
    assert!(outcome.verification.is_none() && entry.head.state == State::Cut);
    // The same by itself: the same end, exit code and mark.
    let plan = Plan::load(&folder.join("spec.toml")).unwrap();
    let point = plan.points.iter().position(|point| point.key == entry.head.key).unwrap();
    let alone = format!("{} --json alone.json", plan.batch.command(point).strip_prefix("durawarp ").unwrap());
    let alone = durawarp_in(&folder, &alone.split(' ').collect::<Vec<_>>());
    ended(&alone, 0, &["cut: the cycle limit was reached", "cut at its cycle limit, after 3000", "not checked"]);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("alone.json")).unwrap()).unwrap();
    assert_eq!((&json["end"]["kind"], &json["digest"]), (&"cut".into(), &outcome.digest.into()));
}

#[test]
fn a_result_holds_its_resolved_configuration_and_the_newest_counts() {
    let folder = sweep_folder("sweep_store/record", FEW);
    ended(&sweep(&folder, "results", &[]), 0, &[]);
    let plan = Plan::load(&folder.join("spec.toml")).unwrap();
    let store = Store::open_existing(&folder.join("results")).unwrap();
    let entry = store.result(&plan.points[4].key).unwrap();
    let outcome = store.outcome(entry).unwrap().unwrap();
    assert_eq!(outcome.scheme, plan.points[4].values[2]);
    assert_eq!(outcome.machine.parameters["sm.count"].value, 1);
    assert_eq!(outcome.workload["params"]["N"], 64);
    // The same key again, older: another host's clock, or another process that was slower.
    let file = file_of(&folder.join("results"));
    let text = std::fs::read_to_string(&file).unwrap();
    let line = text.lines().find(|line| line.contains(&plan.points[4].key) && line.contains("good")).unwrap();
    let older = line.replace(&format!("\"unix_ms\":{}", entry.head.unix_ms), "\"unix_ms\":5").replace("good", "failed");
    std::fs::write(folder.join("results/zz-1-1.jsonl"), resealed(&serde_json::from_str(&older).unwrap())).unwrap();
    let store = Store::open_existing(&folder.join("results")).unwrap();
    assert_eq!(store.result(&plan.points[4].key).unwrap().head.state, State::Good);
}
