//! What a command writes, and to what: files, links, pipes, devices, standard output; and what a signal leaves.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::cli_common::{command, durawarp_in, ended, folder, text};

const RUN: [&str; 6] = ["run", "vecadd", "--profile", "ci", "--threads", "1"];

/// A small run with these arguments more, in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    durawarp_in(folder, &[&RUN, arguments].concat())
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(bytes).is_ok_and(|value| value["end"]["kind"] == "finished")
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A FIFO; what was written to it comes from the reader.
fn fifo(folder: &Path, name: &str) -> (PathBuf, std::thread::JoinHandle<Vec<u8>>) {
    let path = folder.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let from = path.clone();
    let reader = std::thread::spawn(move || fs::read(from).unwrap());
    (path, reader)
}

#[test]
fn a_fifo_a_device_and_a_link_stay_what_they_are() {
    let folder = folder("outputs/kinds");
    let (pipe, reader) = fifo(&folder, "pipe");
    fs::write(folder.join("file.json"), "old").unwrap();
    symlink("file.json", folder.join("link")).unwrap();
    symlink("made.json", folder.join("to_nothing")).unwrap();
    ended(&run_in(&folder, &["-q", "--json", "pipe"]), 0, &[]);
    assert!(is_json(&reader.join().unwrap()) && fs::metadata(&pipe).unwrap().file_type().is_fifo());
    ended(&run_in(&folder, &["-q", "--json", "link", "--dump", "c=to_nothing"]), 0, &[]);
    assert!(fs::symlink_metadata(folder.join("link")).unwrap().file_type().is_symlink());
    assert!(is_json(&fs::read(folder.join("file.json")).unwrap()));
    assert_eq!(fs::metadata(folder.join("made.json")).unwrap().len(), 40_000);
    ended(&run_in(&folder, &["-q", "--json", "/dev/null", "--dump", "c=/dev/null"]), 0, &[]);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(names(&folder), ["file.json", "link", "made.json", "pipe", "to_nothing"]);
}

#[test]
fn a_shells_process_substitution_gets_everything() {
    let folder = folder("outputs/substitution");
    let program = env!("CARGO_BIN_EXE_durawarp");
    let line =
        format!("{program} {} -q --json >(cat > got.json; touch done); while [ ! -e done ]; do :; done", RUN.join(" "));
    let output = Command::new("bash").current_dir(&folder).args(["-c", &line]).output().unwrap();
    ended(&output, 0, &[]);
    assert!(is_json(&fs::read(folder.join("got.json")).unwrap()));
}

#[test]
fn a_dash_is_standard_output_and_the_table_makes_room() {
    let folder = folder("outputs/dash");
    let output = run_in(&folder, &["--json", "-"]);
    assert!(is_json(&output.stdout), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("warp instructions/s"), "the table");
    assert!(names(&folder).is_empty());
    ended(&run_in(&folder, &["--json", "-", "--dump", "c=-"]), 2, &["another output goes to standard output"]);
    // The file that standard output goes to is standard output.
    let out = fs::File::create(folder.join("out")).unwrap();
    let mut run = command(&folder, &[&RUN[..], &["--json", "out"]].concat());
    assert!(run.stdout(out).stderr(Stdio::null()).status().unwrap().success());
    assert!(is_json(&fs::read(folder.join("out")).unwrap()));
}

#[test]
fn two_outputs_of_one_file_a_folder_and_a_read_only_file_are_refused_at_once_before_the_run() {
    let folder = folder("outputs/refused");
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("kept"), "kept").unwrap();
    fs::set_permissions(folder.join("kept"), fs::Permissions::from_mode(0o444)).unwrap();
    let words = [
        "--dump: cannot write `./x`: another output goes to the same file",
        "--timeline: cannot write `sub`: it is a folder",
        "--dump: cannot write `kept`: it is read-only",
        "--dump: cannot write `no/such`: No such file",
    ];
    let arguments = ["--json", "x", "--dump", "c=./x", "--timeline", "sub", "--dump", "a=kept", "--dump", "b=no/such"];
    let output = run_in(&folder, &arguments);
    let plain = text(&output.stderr).replace("error: ", "");
    for word in words {
        let (option, what) = word.split_once(": ").unwrap();
        assert!(plain.contains(what) && plain.contains(option), "no `{word}` in:\n{plain}");
    }
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    assert_eq!(
        (names(&folder), fs::read_to_string(folder.join("kept")).unwrap()),
        (vec!["kept".into(), "sub".into()], "kept".into())
    );
}

#[test]
fn no_command_overwrites_its_inputs() {
    let folder = folder("outputs/inputs");
    let workload = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/vecadd");
    for file in ["workload.toml", "kernel.ptx"] {
        fs::copy(workload.join(file), folder.join(file)).unwrap();
    }
    fs::write(folder.join("m.toml"), "name = \"m\"\ninherits = \"agpm-table4\"\n").unwrap();
    fs::write(folder.join("s.toml"), "name = \"s\"\nscheme = \"strict\"\n").unwrap();
    fs::write(folder.join("a.bin"), [0; 40_000]).unwrap();
    let spec = "schema = 1\nname = \"x\"\n[base]\nworkload = \"vecadd\"\nprofile = \"ci\"\n\
                [[axis]]\nkey = \"seed\"\nvalues = [0]\n";
    fs::write(folder.join("spec.toml"), spec).unwrap();
    let before: Vec<Vec<u8>> = names(&folder).iter().map(|name| fs::read(folder.join(name)).unwrap()).collect();
    let refused = |arguments: &[&str]| ended(&durawarp_in(&folder, arguments), 2, &["it is an input of this command"]);
    let run = ["run", ".", "--profile", "ci", "--machine", "m.toml", "--scheme", "s.toml", "--input", "a=a.bin"];
    for output in ["workload.toml", "./kernel.ptx", "m.toml", "s.toml", "a.bin"] {
        refused(&[&run[..], &["--json", output]].concat());
        refused(&[&run[..], &["--dump", &format!("c={output}")]].concat());
    }
    for command in ["compare", "stalls"] {
        refused(&[command, ".", "--schemes", "s.toml", "--svg", "s.toml"]);
    }
    refused(&["crash", ".", "--json", "workload.toml"]);
    refused(&["regions", ".", "--json", "workload.toml"]);
    refused(&["regions", "kernel.ptx", "--json", "kernel.ptx"]);
    refused(&["sweep", "table", "spec.toml", "--csv", "spec.toml"]);
    refused(&["sweep", "report", "spec.toml", "--out", "spec.toml"]);
    let after: Vec<Vec<u8>> = names(&folder).iter().map(|name| fs::read(folder.join(name)).unwrap()).collect();
    assert_eq!(before, after);
}

#[test]
fn permissions_are_those_of_the_file_that_was_there_or_of_any_new_one() {
    let folder = folder("outputs/permissions");
    fs::write(folder.join("old"), "").unwrap();
    fs::set_permissions(folder.join("old"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(folder.join("any"), "").unwrap();
    ended(&run_in(&folder, &["-q", "--json", "old", "--dump", "c=new"]), 0, &[]);
    let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("old"), mode("new")), (0o640, mode("any")));
}

#[test]
fn a_standard_output_that_cannot_be_written_is_told_and_files_are_written_all_the_same() {
    let folder = folder("outputs/full");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let told = |arguments: &[&str]| {
        let output = command(&folder, arguments).stdout(full()).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        error
    };
    let error = told(&[&RUN[..], &["--json", "out.json"]].concat());
    assert_eq!(error.matches("cannot write to standard output").count(), 1, "{error}");
    assert!(is_json(&fs::read(folder.join("out.json")).unwrap()));
    for arguments in [&["list", "schemes"][..], &["config", "show", "titan-x"], &["--help"], &["--version"]] {
        told(arguments);
    }
    // A reader that has seen enough is no failure.
    let mut child = command(&folder, &["config", "show", "titan-x"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_run_that_is_terminated_or_interrupted_reports_what_it_knows() {
    let folder = folder("outputs/signals");
    for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
        let arguments = ["run", "gemm", "--threads", "1", "--json", "cut.json"];
        let mut child = command(&folder, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        send(signal, &child);
        let mut table = String::new();
        child.stdout.take().unwrap().read_to_string(&mut table).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        let outcome: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("cut.json")).unwrap()).unwrap();
        assert_eq!(outcome["end"]["kind"], "stopped", "{signal}");
        assert!(table.contains("cycles"), "{signal}: {table}");
        fs::remove_file(folder.join("cut.json")).unwrap();
    }
}

#[test]
fn a_sweep_that_is_terminated_keeps_what_is_done_and_goes_on_later() {
    let spec = "schema = 1\nname = \"x\"\n[base]\nprofile = \"ci\"\n\
                [[axis]]\nkeys = [\"workload\", \"profile\"]\nvalues = [[\"vecadd\", \"ci\"], [\"gemm\", \"default\"]]\n";
    let folder = crate::cli_common::sweep_folder("outputs/sweep", spec);
    let mut child = command(&folder, &["sweep", "run", "spec.toml", "--jobs", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("2 to run"));
    // The short point is done when a record of it is there; the other takes half a minute.
    let done = || {
        let results = fs::read_dir(folder.join("durawarp-results")).into_iter().flatten();
        results.filter_map(|file| fs::read_to_string(file.unwrap().path()).ok()).any(|text| text.contains("\"good\""))
    };
    while !done() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    ended(&durawarp_in(&folder, &["sweep", "status", "spec.toml"]), 0, &["1 done", "1 missing"]);
}
