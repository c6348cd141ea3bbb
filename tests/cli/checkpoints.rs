//! Checkpoints on the command line: the file, the run that goes on from it, errors and exit codes.

use std::path::Path;

use serde_json::Value;

use crate::cli_common::{durawarp_in, ended, folder, sweep_folder};

const RUN: [&str; 5] = ["run", "gemm", "--profile", "ci", "-q"];

/// The outcome of a run without what its host has to do with.
fn outcome(folder: &Path, arguments: &[&str]) -> Value {
    let output = durawarp_in(folder, &[arguments, &["--json", "-"]].concat());
    let mut outcome: Value = serde_json::from_str(&ended(&output, 0, &[])).unwrap();
    outcome.as_object_mut().unwrap().remove("host");
    outcome
}

/// A folder with the checkpoint `it.ckpt` of a run at cycle 5000, and the outcome of the run.
fn saved(name: &str) -> (std::path::PathBuf, Value) {
    let folder = folder(name);
    let whole = outcome(&folder, &[&RUN[..], &["--checkpoint-at", "5000", "it.ckpt"]].concat());
    (folder, whole)
}

#[test]
fn a_run_goes_on_from_its_file_with_the_same_results() {
    let (folder, whole) = saved("checkpoint-goes-on");
    assert_eq!(outcome(&folder, &RUN), whole, "a checkpoint changes nothing");
    for threads in ["1", "2"] {
        assert_eq!(outcome(&folder, &["run", "--from", "it.ckpt", "-q", "--threads", threads]), whole);
    }
    // Cut at the same cycle: a run for the sake of its checkpoint.
    let cut = [&RUN[..], &["--max-cycles", "5000", "--checkpoint-at", "5000", "cut.ckpt"]].concat();
    assert_eq!(outcome(&folder, &cut)["end"]["kind"], "cut");
    assert_eq!(outcome(&folder, &["run", "--from", "cut.ckpt", "-q"]), whole);
    // A chain: the checkpoint of a run that went on.
    let chained = ["run", "--from", "it.ckpt", "-q", "--checkpoint-at", "9000", "later.ckpt"];
    assert_eq!(outcome(&folder, &chained), whole);
    assert_eq!(outcome(&folder, &["run", "--from", "later.ckpt", "-q"]), whole);
}

#[test]
fn parameters_change_from_there_on_and_the_outcome_says_so() {
    let (folder, whole) = saved("checkpoint-forks");
    let slower = outcome(&folder, &["run", "--from", "it.ckpt", "-q", "--set", "dram.t_cl_ns=80"]);
    assert!(slower["time"]["ticks"].as_u64() > whole["time"]["ticks"].as_u64());
    assert_eq!(slower["memory_digest"], whole["memory_digest"]);
    assert_eq!(slower["from_checkpoint"]["set"][0], "dram.t_cl_ns=80");
    assert_eq!(slower["validity"][0]["kind"], "forked");
    assert!(whole.get("from_checkpoint").is_none());
    for (set, words) in [
        ("l2.slice_kb=64", ["l2.slice_kb", "the state is made for it"]),
        ("params.NI=64", ["params.NI", "which has begun"]),
        ("dram.t_cl=80", ["dram.t_cl", "did you mean `dram.t_cl_ns`?"]),
    ] {
        ended(&durawarp_in(&folder, &["run", "--from", "it.ckpt", "--set", set]), 2, &words);
    }
    let again = ["run", "--from", "it.ckpt", "--set=dram.t_cl_ns=80", "--checkpoint-at", "9000", "no.ckpt"];
    ended(&durawarp_in(&folder, &again), 2, &["--checkpoint-at", "leave out --set"]);
}

#[test]
fn wrong_files_and_cycles_are_told_with_exit_code_2() {
    let (folder, _) = saved("checkpoint-errors");
    let from = |file: &str, words: &[&str]| {
        ended(&durawarp_in(&folder, &["run", "--from", file]), 2, words);
    };
    from("none.ckpt", &["cannot read `none.ckpt`"]);
    std::fs::write(folder.join("text"), "a text\n").unwrap();
    from("text", &["`text` is no checkpoint"]);
    let mut bytes = std::fs::read(folder.join("it.ckpt")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join("broken.ckpt"), &bytes).unwrap();
    from("broken.ckpt", &["`broken.ckpt` is damaged"]);
    let late = [&RUN[..], &["--checkpoint-at", "900000000", "late.ckpt"]].concat();
    ended(&durawarp_in(&folder, &late), 2, &["`late.ckpt` is not written: the run was over at cycle"]);
    assert!(!folder.join("late.ckpt").exists());
    let word = [&RUN[..], &["--checkpoint-at", "soon", "it.ckpt"]].concat();
    ended(&durawarp_in(&folder, &word), 2, &["expected a core cycle", "soon"]);
    ended(&durawarp_in(&folder, &["run", "gemm", "--from", "it.ckpt"]), 2, &["cannot be used with"]);
    ended(&durawarp_in(&folder, &["run", "--from", "it.ckpt", "--timeline", "t.json"]), 2, &["cannot be used with"]);
    ended(&durawarp_in(&folder, &["run"]), 2, &["<WORKLOAD>"]);
    let cpus = ["run", "hash", "--profile", "ci", "--checkpoint-at-kernel", "2", "cpu.ckpt"];
    ended(&durawarp_in(&folder, &cpus), 2, &["launches are of kernels", "--checkpoint-at takes a core cycle"]);
    // The file is an input now.
    let onto = ["run", "--from", "it.ckpt", "--json", "it.ckpt"];
    ended(&durawarp_in(&folder, &onto), 2, &["it is an input of this command"]);
}

#[test]
fn a_file_that_the_run_named_and_that_has_changed_is_told() {
    let folder = folder("checkpoint-changed");
    let machine = "inherits = \"agpm-table4\"\nname = \"mine\"\n[dram]\nt_cl_ns = { value = 21, source = \"mine\" }\n";
    std::fs::write(folder.join("mine.toml"), machine).unwrap();
    let run = [&RUN[..], &["--machine", "mine.toml", "--checkpoint-at", "5000", "it.ckpt"]].concat();
    let whole = outcome(&folder, &run);
    assert_eq!(outcome(&folder, &["run", "--from", "it.ckpt", "-q"]), whole);
    std::fs::write(folder.join("mine.toml"), machine.replace("21", "22")).unwrap();
    ended(&durawarp_in(&folder, &["run", "--from", "it.ckpt"]), 2, &["of another experiment", "has changed since"]);
}

#[test]
fn a_program_of_cpus_goes_on_with_its_arguments_and_from_its_own_executable_alone() {
    let folder = folder("checkpoint-of-cpus");
    let executable = |name: &str| Path::new("workloads/riscv").join(name).canonicalize().unwrap();
    std::fs::copy(executable("written.elf"), folder.join("mine.elf")).unwrap();
    let run = ["run", "mine.elf", "-q", "--checkpoint-at", "10000", "it.ckpt", "--json", "-"];
    let arguments = ["--", "--threads", "3", "--records", "5"];
    let told = ended(&durawarp_in(&folder, &[&run[..], &arguments].concat()), 0, &[]);
    let mut whole: Value = serde_json::from_str(&told).unwrap();
    whole.as_object_mut().unwrap().remove("host");
    assert_eq!(whole["process"]["files"][0]["bytes"], 75);
    assert_eq!(outcome(&folder, &["run", "--from", "it.ckpt", "-q", "--threads", "2", "--file-out", "out"]), whole);
    let text = whole["process"]["files"][0]["text"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("out/records.txt")).unwrap(), text);
    std::fs::copy(executable("counter.elf"), folder.join("mine.elf")).unwrap();
    ended(&durawarp_in(&folder, &["run", "--from", "it.ckpt"]), 2, &["of another experiment", "has changed since"]);
}

#[test]
fn a_sweep_of_programs_of_cpus_forks_too() {
    let spec = "schema = 1\nname = \"late\"\nmetrics = [\"cycles\"]\n[base]\nworkload = \"hash\"\nprofile = \"ci\"\n\
                scheme = \"sync\"\nfork_at_cycle = 20000\n[[axis]]\nkey = \"nvm.t_rcd_ns\"\nvalues = [300, 400]\n";
    let folder = sweep_folder("checkpoint-sweep-of-cpus", spec);
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "-q"]), 0, &[]);
    let table = ended(&durawarp_in(&folder, &["sweep", "table", "spec.toml"]), 0, &["forked"]);
    let hash = ["run", "hash", "--profile", "ci", "--scheme", "sync", "-q", "--checkpoint-at", "20000", "it.ckpt"];
    outcome(&folder, &hash);
    for latency in ["300", "400"] {
        let set = format!("--set=nvm.t_rcd_ns={latency}");
        let cycles = outcome(&folder, &["run", "--from", "it.ckpt", "-q", &set])["time"]["core_cycles"].to_string();
        assert!(table.contains(&cycles), "{cycles} is not in\n{table}");
    }
}

#[test]
fn a_sweep_runs_the_common_beginning_once_and_forks() {
    let spec = "schema = 1\nname = \"late\"\nmetrics = [\"cycles\"]\n[base]\nworkload = \"gemm\"\nprofile = \"ci\"\n\
                fork_at_cycle = 5000\n[[axis]]\nkey = \"dram.t_cl_ns\"\nvalues = [40, 80]\n";
    let folder = sweep_folder("checkpoint-sweep", spec);
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "-q"]), 0, &[]);
    let table = ended(&durawarp_in(&folder, &["sweep", "table", "spec.toml"]), 0, &["forked"]);
    // The same by hand.
    outcome(&folder, &[&RUN[..], &["--checkpoint-at", "5000", "it.ckpt"]].concat());
    for latency in ["40", "80"] {
        let set = format!("--set=dram.t_cl_ns={latency}");
        let cycles = outcome(&folder, &["run", "--from", "it.ckpt", "-q", &set])["time"]["core_cycles"].to_string();
        assert!(table.contains(&cycles), "{cycles} is not in\n{table}");
    }
    // The beginning is a file, which another process takes: it made nothing when the file is as it was.
    let beginnings = || -> Vec<_> {
        let all = std::fs::read_dir(folder.join("shared/beginnings")).unwrap().map(Result::unwrap);
        all.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect()
    };
    std::fs::write(folder.join("half.toml"), spec.replace("[40, 80]", "[40]")).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "half.toml", "-q", "--results", "shared"]), 0, &[]);
    let first = beginnings();
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml", "-q", "--results", "shared"]), 0, &[]);
    assert_eq!((beginnings(), first.len()), (first, 1));
    let shared = durawarp_in(&folder, &["sweep", "table", "spec.toml", "--results", "shared"]);
    assert_eq!(ended(&shared, 0, &[]), table);
    let without = spec.replace("dram.t_cl_ns", "l2.slice_kb");
    std::fs::write(folder.join("spec.toml"), without).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "spec.toml"]), 2, &["`fork_at_cycle` without an axis"]);
}
