//! Input without an end, numbers that are slips of the hand, and what does not fit into this host: refused at
//! once, with a message.

#![expect(clippy::disallowed_methods, reason = "that a command ends soon is what is tested")]

use std::time::{Duration, Instant};

use crate::cli_common::{durawarp, durawarp_in, ended, folder, sweep_folder, text};

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let began = Instant::now();
    ended(&durawarp(arguments), 2, words);
    assert!(began.elapsed() < Duration::from_secs(20), "{arguments:?} took {:?}", began.elapsed());
}

#[test]
#[cfg(unix)]
fn inputs_that_never_end_are_refused() {
    let folder = folder("bounds/pipes");
    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let told = "it is a device or a pipe";
    for path in ["/dev/zero", pipe.to_str().unwrap()] {
        refused(&["run", "vecadd", "--machine", path], &[told]);
        refused(&["run", "vecadd", "--scheme", path], &[told]);
        refused(&["run", "vecadd", "--profile", "ci", "--input", &format!("a={path}")], &[told]);
        refused(&["run", path], &["no such file or folder"]);
        refused(&["ptx", "check", path], &[told]);
        refused(&["regions", path], &["no such file or folder"]);
        refused(&["sweep", "run", path], &[told]);
        refused(&["config", "check", path], &[told]);
    }
    // A pipe among results is none.
    let sweep =
        sweep_folder("bounds/results", "schema = 1\nname = \"x\"\n[base]\nworkload = \"vecadd\"\nprofile = \"ci\"\n");
    ended(&durawarp_in(&sweep, &["sweep", "run", "spec.toml"]), 0, &["done 1"]);
    let pipe = sweep.join("durawarp-results/a-1-1.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    ended(&durawarp_in(&sweep, &["sweep", "run", "spec.toml"]), 0, &["1 done, 0 to run"]);
}

#[test]
fn more_jobs_or_threads_than_any_host_has_cores_are_refused_and_many_are_bounded() {
    let expected = "expected a number from 0 to 4096";
    refused(&["run", "vecadd", "--threads", "1000000"], &[expected]);
    refused(&["check", "vecadd", "--threads", "1,4097"], &[expected]);
    refused(&["compare", "vecadd", "--jobs", "1000000"], &[expected]);
    let spec = "schema = 1\nname = \"x\"\n[base]\nworkload = \"vecadd\"\nprofile = \"ci\"\n[[axis]]\nkey = \"seed\"\nvalues = [0, 1, 2]\n";
    let sweep = sweep_folder("bounds/jobs", spec);
    ended(&durawarp_in(&sweep, &["sweep", "run", "spec.toml", "--jobs", "1000000"]), 2, &[expected]);
    ended(&durawarp_in(&sweep, &["sweep", "run", "spec.toml", "--jobs", "4096"]), 0, &["done 3"]);
    ended(&durawarp(&["run", "vecadd", "--profile", "ci", "--threads", "4096", "-q"]), 0, &[]);
}

#[test]
fn what_this_hosts_memory_cannot_hold_is_refused_before_it_is_filled() {
    let told = ["its buffers have ", " GiB together, and this host has ", "choose a smaller profile"];
    // 1.2 TB of random numbers.
    let large = ["--set", "params.N=100000000000"];
    refused(&[&["run", "vecadd"], &large[..]].concat(), &told);
    refused(&[&["crash", "vecadd"], &large[..]].concat(), &told);
    refused(&[&["compare", "vecadd", "--schemes", "strict"], &large[..]].concat(), &told);
    let spec = "schema = 1\nname = \"x\"\n[base]\nworkload = \"vecadd\"\n[[axis]]\nkey = \"params.N\"\nvalues = [64, 100_000_000_000]\n";
    let sweep = sweep_folder("bounds/memory", spec);
    ended(&durawarp_in(&sweep, &["sweep", "run", "spec.toml", "--dry-run"]), 2, &told);
    let help = text(&durawarp(&["sweep", "run", "--help"]).stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("what the host has available unless named"), "{help}");
}

/// `vecadd` in a folder of its own, with a part of its manifest replaced.
fn vecadd_with(name: &str, part: &str, by: &str) -> std::path::PathBuf {
    let folder = folder(name);
    let vecadd = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/vecadd");
    let manifest = std::fs::read_to_string(vecadd.join("workload.toml")).unwrap();
    std::fs::copy(vecadd.join("kernel.ptx"), folder.join("kernel.ptx")).unwrap();
    assert!(manifest.contains(part));
    std::fs::write(folder.join("workload.toml"), manifest.replacen(part, by, 1)).unwrap();
    folder
}

#[test]
fn sums_that_would_never_end_are_refused_at_their_place() {
    // Each value by itself is within its bound.
    let sum = "sum(k, N, 1073741825, N + k)";
    let init = format!("expr = \"{sum}\"");
    let init =
        vecadd_with("bounds/init", "kind = \"uniform\", lo = 0.0, hi = 1.0", &format!("kind = \"expr\", {init}"));
    let told = ["workload.toml:", sum, "sums of over 17179869184 terms for the elements of one buffer"];
    refused(&["run", init.to_str().unwrap(), "--set", "params.N=500"], &told);
    let check = vecadd_with("bounds/check", "a[idx] + b[idx]", &format!("float({sum})"));
    let began = Instant::now();
    let run = ["run", check.to_str().unwrap(), "--set", "params.N=500", "-q"];
    ended(&durawarp(&run), 3, &["terms for the elements of one buffer", "`sample` has fewer elements compared"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // What is worked out in minutes is no slip: as many terms as there may be for one element.
    let few = vecadd_with("bounds/few", "a[idx] + b[idx]", "a[idx] + b[idx] + 0.0 * float(sum(k, 0, 10 * idx, k))");
    ended(&durawarp(&["run", few.to_str().unwrap(), "--set", "params.N=500", "-q"]), 0, &[]);
}

#[test]
fn a_run_tells_what_memory_it_takes_before_it_takes_it() {
    // 16 MB a server.
    let subject = ["hash", "--profile", "ci", "--machine", "broi-cluster"];
    let set = ["--set", "nodes.servers=80000", "--set", "nodes.clients=0"];
    let told = ["this run needs about ", " GiB of memory, and this host has ", "a machine of fewer nodes"];
    for (command, scheme) in [
        ("run", ["--scheme", "broi"]),
        ("check", ["--scheme", "broi"]),
        ("crash", ["--scheme", "broi"]),
        ("explain", ["--scheme", "broi"]),
        ("compare", ["--schemes", "sync,broi"]),
    ] {
        refused(&[&[command], &subject[..], &scheme, &set].concat(), &told);
    }
    let spec = "schema = 1\nname = \"x\"\n[base]\nworkload = \"hash\"\nprofile = \"ci\"\nmachine = \"broi-cluster\"\n\
                scheme = \"broi\"\n[base.set]\n\"nodes.clients\" = 0\n[[axis]]\nkey = \"nodes.servers\"\nvalues = [1, 80_000]\n";
    let sweep = sweep_folder("bounds/servers", spec);
    ended(&durawarp_in(&sweep, &["sweep", "run", "spec.toml", "--dry-run"]), 2, &told);
    // Zeros that are never written to take nothing: no time either.
    let buffer = "[buffer.unused]\ntype = \"u8\"\nlen = \"536870912\"\n\n[[step]]";
    let zeros = vecadd_with("bounds/zeros", "[[step]]", buffer);
    let began = Instant::now();
    ended(&durawarp(&["run", zeros.to_str().unwrap(), "--set", "params.N=64", "-q"]), 0, &[]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_runs_out_has_an_exit_code() {
    let run = format!(
        "ulimit -v 600000; exec {} run lzpack --profile ci --set llc.slice_kb=262144 -q --no-reference",
        env!("CARGO_BIN_EXE_durawarp")
    );
    let output = std::process::Command::new("sh").args(["-c", &run]).output().unwrap();
    ended(&output, 71, &["memory allocation of ", " bytes failed"]);
}

/// Each fault costs the same, however many there are: 200 KB in which everything is wrong once took
/// gigabytes.
#[test]
fn a_file_of_many_faults_is_told_of_as_soon_as_one_of_few() {
    let folder = folder("bounds/faults");
    let file = folder.join("m.toml");
    let lines: String = (0..5_000).map(|n| format!("a{n} = = {n}\n")).collect();
    let keys: String = (0..3_000).map(|n| format!("k{n} = 1\n")).collect();
    for (text, told) in [
        ("1+".repeat(100_000), "m.toml:1:2"),
        (lines, "m.toml:1:6"),
        (format!("inherits = \"agpm-table4\"\n{keys}"), "unknown key `k0`"),
        (
            format!("inherits = \"agpm-table4\"\nsm = {{ {} }}", keys.trim_end().replace('\n', ", ")),
            "unknown key `sm.k0`",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        refused(&["config", "check", file.to_str().unwrap()], &[told, " errors; the first 20 are above"]);
    }
}

#[test]
fn a_check_that_would_never_end_is_refused() {
    let folder = vecadd_with("bounds/sum", "a[idx] + b[idx]", "float(sum(i, 0, 1000000000000, i))");
    let began = Instant::now();
    let output = durawarp(&["run", folder.to_str().unwrap(), "--profile", "ci", "-q"]);
    ended(&output, 3, &["sums of over 17179869184 terms for the elements of one buffer"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
