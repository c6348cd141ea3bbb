//! `durawarp crash` as a user meets it.

use std::process::Output;

use crate::cli_common::{durawarp, ended, folder, text};

const SMALL: [&str; 6] = ["--set", "params.NX=40", "--set", "params.NY=48", "--set", "sm.count=2"];

fn crash(more: &[&str]) -> Output {
    durawarp(&[&["crash", "atax"][..], &SMALL, more].concat())
}

#[test]
fn undo_logging_with_the_barrier_survives_every_failure() {
    for scheme in ["store+clwb", "nt-store"] {
        let output = crash(&["--scheme", scheme, "--double", "--points", "all"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report = text(&output.stdout);
        for words in
            ["domain adr", "recovery by undo log", "2 transactions", "(P3)", "(P8)", "level A", "level B", "level C"]
        {
            assert!(report.contains(words), "no `{words}` in:\n{report}");
        }
        assert!(!report.contains("FAILED"), "{report}");
    }
}

#[test]
fn the_published_transaction_has_a_hole_and_the_report_says_where_and_how_to_see_it_again() {
    let output = crash(&["--scheme", "store+clwb", "--flag-barrier", "paper"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{report}");
    for words in [
        "not durable: flag at tx_flag+0",
        "durable:     data at tmp+",
        "kernel.ptx:",
        "warp 0",
        "warp 1",
        "between warps of a CTA",
    ] {
        assert!(report.contains(words), "no `{words}` in:\n{report}");
    }
    let replay = report.lines().find_map(|line| line.split("just this state: durawarp ").nth(1)).expect("a command");
    let again = durawarp(&replay.split_whitespace().collect::<Vec<_>>());
    let again_report = text(&again.stdout);
    assert_eq!(again.status.code(), Some(3), "{again_report}");
    let failure =
        |report: &str| report.lines().find(|line| line.contains("is wrong after recovery")).map(str::to_owned);
    assert_eq!(failure(&again_report), failure(&report));
}

#[test]
fn a_report_is_the_same_at_any_number_of_threads_and_has_everything_in_json() {
    let folder = folder("crash_json");
    let run = |threads: &str| {
        let file = folder.join(format!("{threads}.json"));
        let more = ["--scheme", "nt-store", "--flag-barrier", "paper", "--threads", threads, "-q", "--json"];
        let output = crash(&[&more[..], &[file.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        let mut value: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let object = value.as_object_mut().unwrap();
        object.remove("wall_s");
        object["outcome"].as_object_mut().unwrap().remove("host");
        value
    };
    let one = run("1");
    assert_eq!(one, run("3"));
    assert_eq!(one["history"]["failed"], 0);
    assert!(one["actual"]["points"].as_u64().unwrap() > 50);
    let found = &one["overtaking"]["found"][0];
    assert_eq!((&found["missing"]["buffer"][0], &found["level"]), (&"tx_flag".into(), &"overtaking".into()));
}

#[test]
fn wrong_requests_are_told() {
    let fails = |more: &[&str], words: &[&str]| {
        let output = crash(&[&["--scheme", "store+clwb"][..], more].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {error}");
        for word in words {
            assert!(error.contains(word), "{more:?}: no `{word}` in {error}");
        }
    };
    fails(&["--only", "A:999999"], &["there is no crash point 999999", "points are 0 to"]);
    fails(&["--only", "B:7:999999"], &["there is no state 999999 at instant 7"]);
    fails(&["--only", "C:0"], &["not a store"]);
    fails(&["--only", "X:1"], &["A:POINT"]);
    fails(&["--points", "some"], &["auto, all, boundaries"]);
    fails(&["--flag-barrier", "safest"], &["did you mean `safe`"]);
    fails(&["--instrument", "cta_und"], &["did you mean `cta_undo`"]);
}

#[test]
fn a_crash_test_with_nothing_to_judge_says_so_and_why() {
    let unjudged = |arguments: &[&str], why: &str| {
        let told = ended(&durawarp(&[&["crash"][..], arguments].concat()), 2, &["nothing was judged", why]);
        assert!(told.contains("NOTHING WAS JUDGED") && !told.contains("  ok\n"), "{told}");
        assert!(told.contains("nothing to judge") && !told.contains("level B"), "{told}");
    };
    unjudged(&["vecadd", "--scheme", "base"], "scheme base keeps no logs and orders nothing");
    unjudged(&["atax", "--scheme", "base"], "no [[crash]] condition is expected to hold or not");
    let nothing = "the program stored nothing to persistent memory";
    unjudged(&["pointer_chase", "--scheme", "nt-store", "--set", "sm.count=2"], nothing);
    let folder = folder("crash/unjudged");
    let vecadd = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/vecadd");
    let manifest = std::fs::read_to_string(vecadd.join("workload.toml")).unwrap();
    let (plain, _) = manifest.split_once("[instrument]").unwrap();
    std::fs::write(folder.join("workload.toml"), plain).unwrap();
    std::fs::copy(vecadd.join("kernel.ptx"), folder.join("kernel.ptx")).unwrap();
    let why = "scheme nt-store keeps undo logs, but the workload has no [instrument]";
    unjudged(&[folder.to_str().unwrap(), "--scheme", "nt-store"], why);
    unjudged(&["vecadd", "--scheme", "nt-store", "--instrument", "none"], "but this program has none");
    // A promise of the scheme, of its program, or of the manifest is something to judge.
    for (workload, scheme) in [("vecadd", "strict"), ("vecadd", "epoch-kernel"), ("litmus/message_passing", "nvw-fifo")]
    {
        let output = durawarp(&["crash", workload, "--scheme", scheme, "--actual-only", "--points", "5"]);
        let told = ended(&output, 0, &["  ok\n"]);
        assert!(!told.contains("NOTHING"), "{told}");
    }
    // An atomic is a store.
    let output = durawarp(&["crash", "litmus/torn_swap", "--scheme", "store+clwb"]);
    ended(&output, 0, &["level B", "violated, as the manifest says"]);
}

#[test]
fn the_printed_command_judges_the_same_state_of_a_program_with_arguments() {
    let folder = folder("crash/replayed");
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/riscv/samples/system_state");
    let manifest = "schema = 1\nname = \"script\"\ndescription = \"two threads that write\"\n\
        isa = { kind = \"riscv\", file = \"script.elf\" }\nprofile.ci = {}\n\
        program = { threads = 2, memory_mb = 1, stack_kb = 64 }\n";
    std::fs::write(folder.join("workload.toml"), manifest).unwrap();
    std::fs::copy(samples.join("script.elf"), folder.join("script.elf")).unwrap();
    let crash = |more: &[&str]| {
        let subject = ["crash", folder.to_str().unwrap(), "--machine", "lightwsp-cpu", "--scheme", "light-wsp"];
        durawarp(&[&subject[..], more].concat())
    };
    let told = ended(&crash(&["--resume", "1000", "--", "-bw", "-w"]), 0, &[]);
    assert!(!told.contains("warning"), "{told}");
    let strict = ["--strict-output", "--resume", "1000", "--points=all", "--", "-bw", "-w"];
    let output = crash(&strict);
    ended(&output, 3, &["a power failure can leave"]);
    let report = text(&output.stdout);
    let (_, printed) = report.split_once("judge just this state: durawarp ").unwrap_or_else(|| panic!("{report}"));
    let printed: Vec<&str> = printed.lines().next().unwrap().split(' ').collect();
    assert_eq!(printed[printed.len() - 3..], ["--", "-bw", "-w"], "{printed:?}");
    let again = durawarp(&printed);
    ended(&again, 3, &["a power failure can leave"]);
    let first = |report: &str| report.split_once("first failure of").unwrap().1.lines().nth(1).unwrap().to_owned();
    let again = text(&again.stdout);
    assert!(again.contains("level A, actual states       1         1"), "{again}");
    assert_eq!(first(&again), first(&report));
}
