//! Programs of CPUs as workloads: manifests that name a RISC-V executable, executables by themselves, and what
//! is wrong with either.

use std::path::{Path, PathBuf};

use durawarp::diagnostic::Diagnostics;
use durawarp::riscv::functional::{End, Options, run};
use durawarp::riscv::verbs::Peers;
use durawarp::workload::{Choice, CpuCheckKind, CpuProgram, Workload};
use durawarp::{Experiment, SchemeConfig};
use tempfile::TempDir;

use crate::cli_common::{durawarp, ended};

const MANIFEST: &str = r#"schema = 1
name = "count"
description = "threads that count"
isa = { kind = "riscv", file = "counter.elf" }
params = { THREADS = 4, STEPS = 1000 }
profile.ci = { STEPS = 100 }
program = { args = ["--threads", "THREADS", "--steps", "STEPS * 2"], threads = "THREADS", memory_mb = 64, pm_mb = 2 }
verify = [
    { ref = { kind = "exit_code", value = 0 } },
    { name = "output", profile = "ci", ref = { kind = "stdout", text = "lock 800\naddition 800\nexchange 800" } },
    { ref = { kind = "functional" } },
]
recovery = { args = ["--recover", "STEPS"] }
"#;

fn executable(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/riscv").join(name)
}

/// A folder with this manifest and the executable beside it.
fn folder(manifest: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("workload.toml"), manifest).unwrap();
    std::fs::copy(executable("counter.elf"), folder.path().join("counter.elf")).unwrap();
    folder
}

fn program(manifest: &str, choice: &Choice) -> Result<CpuProgram, Diagnostics> {
    Workload::load(&folder(manifest).path().display().to_string())?.program(choice)
}

/// Line, column and text of each fault of a manifest in which `from` is `to`.
fn told(from: &str, to: &str) -> Vec<(u32, u32, String)> {
    assert!(MANIFEST.contains(from), "{from}");
    let faults = program(&MANIFEST.replace(from, to), &Choice::default()).expect_err(to).0;
    let text = |help: Option<String>| help.unwrap_or_default();
    faults.into_iter().map(|f| (f.span.line, f.span.column, format!("{} {}", f.message, text(f.help)))).collect()
}

/// The only fault is there, and says this.
#[track_caller]
fn one(from: &str, to: &str, line: u32, column: u32, words: &str) {
    let faults = told(from, to);
    let [(found_line, found_column, text)] = &faults[..] else { panic!("{faults:?}") };
    assert!(text.contains(words), "{text}");
    assert_eq!((*found_line, *found_column), (line, column), "{text}");
}

#[test]
fn a_program_has_the_arguments_memory_and_checks_of_its_manifest() {
    let choice = Choice { profile: Some("ci".to_owned()), seed: 6, ..Choice::default() };
    let found = program(MANIFEST, &choice).unwrap();
    assert_eq!(found.start.args, ["--threads", "4", "--steps", "200"]);
    assert_eq!((found.start.windows.memory_bytes, found.start.windows.pm_bytes), (64 << 20, 2 << 20));
    assert_eq!((found.start.name.as_str(), found.threads, found.start.seed), ("count", 4, 7));
    assert_eq!(found.checks.len(), 3);
    assert_eq!(found.recovery, Some(vec!["--recover".to_owned(), "100".to_owned()]));
    assert!(found.needs_reference());
    // It is what runs.
    let process = found.process().unwrap();
    let ran = run(&process, process.memory(), &Options { harts: 4, ..Options::default() });
    assert_eq!(ran.end, End::Exited(0));
    let left = |stdout| durawarp::workload::Ran {
        exit_code: 0,
        stdout,
        files: &ran.files,
        persistent: ran.memory.persistent(),
        logs: &[],
    };
    assert!(found.verify(&left(&ran.stdout), Some(&left(&ran.stdout))).passed());
    assert!(!found.verify(&left(b"lock 7\n"), None).passed());
}

#[test]
fn an_argument_is_an_expression_or_any_word() {
    let with = |args: &str| {
        let manifest = MANIFEST.replace("args = [\"--recover\", \"STEPS\"]", &format!("args = [{args}]"));
        program(&manifest, &Choice::default())
    };
    let plain = with(r#""PER", "recover", "/pm/log", "STEPS + 1", 7, "'STEPS'", "a-b""#).unwrap();
    let expected = ["PER", "recover", "/pm/log", "1001", "7", "STEPS", "a-b"].map(str::to_owned);
    assert_eq!(plain.recovery.as_deref(), Some(&expected[..]));
    // A parameter that is misspelt is no word.
    let misspelt = with(r#""STEP""#).unwrap_err().to_string();
    assert!(misspelt.contains("STEP") && misspelt.contains("did you mean"), "{misspelt}");
    let unfinished = with(r#""STEPS *""#).unwrap_err().to_string();
    assert!(unfinished.contains("single quotes"), "{unfinished}");
}

#[test]
fn an_argument_may_have_values_in_braces() {
    let with = |args: &str| {
        let manifest = MANIFEST.replace("args = [\"--recover\", \"STEPS\"]", &format!("args = [{args}]"));
        program(&manifest, &Choice::default())
    };
    let joined = with(r#""-n{STEPS}", "in-{STEPS / 10}x{THREADS}.txt", "'{STEPS}'", "--of={2 * THREADS}""#).unwrap();
    let expected = ["-n1000", "in-100x4.txt", "{STEPS}", "--of=8"].map(str::to_owned);
    assert_eq!(joined.recovery.as_deref(), Some(&expected[..]));
    for (wrong, place, words) in [
        (r#""-n{STEP}""#, (13, 26), "did you mean"),
        (r#""-n{STEPS""#, (13, 25), "a brace without its other one"),
        (r#""-nSTEPS}""#, (13, 30), "stands in single quotes: \"'-nSTEPS}'\""),
        (r#""-n{}""#, (13, 26), "single quotes"),
    ] {
        let fault = with(wrong).unwrap_err().0.remove(0);
        let text = format!("{} {}", fault.message, fault.help.unwrap_or_default());
        assert!(text.contains(words), "{wrong}: {text}");
        assert_eq!((fault.span.line, fault.span.column), place, "{wrong}: {text}");
    }
}

/// The program of a manifest with a file beside it.
fn beside(manifest: &str, file: &str, content: &[u8]) -> Result<CpuProgram, Diagnostics> {
    let folder = folder(manifest);
    std::fs::write(folder.path().join(file), content).unwrap();
    Workload::load(&folder.path().display().to_string())?.program(&Choice::default())
}

#[test]
fn expected_output_lies_in_a_file_beside_the_manifest() {
    let (head, _) = MANIFEST.split_once("verify").unwrap();
    let with = |keys: &str| format!("{head}verify = [{{ ref = {{ kind = \"stdout\", {keys} }} }}]\n");
    let found =
        beside(&with("file = \"wanted.txt\", except = \"took\""), "wanted.txt", b"took 3 s\nlock 8000\n").unwrap();
    let left = |stdout| durawarp::workload::Ran { exit_code: 0, stdout, files: &[], persistent: &[], logs: &[] };
    assert!(found.verify(&left(b"took 4 s\nlock 8000\n"), None).passed());
    assert!(!found.verify(&left(b"took 3 s\nlock 7999\n"), None).passed());
    let told = |keys: &str| beside(&with(keys), "wanted.txt", b"\xff").unwrap_err().to_string();
    assert!(told("file = \"wante.txt\"").contains("no such file (did you mean `wanted.txt`?)"));
    assert!(told("file = \"wanted.txt\"").contains("`wanted.txt` is not UTF-8 text"));
    assert!(told("except = \"took\"").contains("lacks the key `text`, or `file`"));
    assert!(told("text = \"a\", file = \"wanted.txt\"").contains("has both `text` and `file`"));
}

#[test]
fn standard_input_is_a_file_of_the_program() {
    let with = |keys: &str| MANIFEST.replace("pm_mb = 2 }", &format!("pm_mb = 2, {keys} }}"));
    let found = beside(&with("stdin = \"in.txt\""), "in.txt", b"12").unwrap();
    assert_eq!((found.start.stdin.as_deref(), found.files.len()), (Some("in.txt"), 1));
    let named = beside(&with("stdin = \"in.txt\", files = [\"in.txt\"]"), "in.txt", b"12").unwrap();
    assert_eq!(named.files, found.files, "once");
    let told = beside(&with("stdin = \"im.txt\""), "in.txt", b"12").unwrap_err().to_string();
    assert!(told.contains("no such file (did you mean `in.txt`?)"), "{told}");
}

#[test]
fn variables_of_the_environment_are_words_and_values_of_parameters() {
    let with = |env: &str| MANIFEST.replace("pm_mb = 2 }", &format!("pm_mb = 2, env = {{ {env} }} }}"));
    let made = |env: &str| beside(&with(env), "in.txt", b"").map(|program| program.start.env);
    let found = made("OMP_NUM_THREADS = \"THREADS\", LANG = \"'THREADS'\", OUT = \"-n{THREADS}\"").unwrap();
    assert_eq!(found, ["OMP_NUM_THREADS=4", "LANG=THREADS", "OUT=-n4"]);
    let told = |env: &str| made(env).unwrap_err().to_string();
    assert!(told("LANG = \"THREAD\"").contains("did you mean `THREADS`?"), "{}", told("LANG = \"THREAD\""));
    assert!(told("\"A=B\" = 1").contains("the name of a variable of the environment is empty or has a `=`"));
    // The environment decides what a run prints: a result of another one is not reused.
    let fingerprint = |env: &str| {
        let mut parts = Vec::new();
        let program = beside(&with(env), "in.txt", b"").unwrap();
        program.fingerprint(&mut |name, bytes| parts.push((name.to_owned(), bytes.to_vec())));
        parts
    };
    assert_ne!(fingerprint("A = 1"), fingerprint("A = 2"));
}

#[test]
fn a_folder_tells_its_workloads_by_name() {
    let top = folder(MANIFEST);
    let paths = |folder: &Path| {
        let found = Workload::paths_in(folder).map_err(|faults| faults.to_string())?;
        Ok::<Vec<String>, String>(found.iter().map(|path| path.file_name().unwrap().display().to_string()).collect())
    };
    std::fs::create_dir_all(top.path().join("lu/inputs")).unwrap();
    std::fs::write(top.path().join("lu/workload.toml"), MANIFEST).unwrap();
    std::fs::write(top.path().join("fft.toml"), MANIFEST).unwrap();
    assert_eq!(paths(top.path()), Ok(["fft.toml", "lu", "workload.toml"].map(str::to_owned).to_vec()));
    std::fs::write(top.path().join("lu.toml"), MANIFEST).unwrap();
    assert!(paths(top.path()).unwrap_err().contains("have one name"));
    assert!(paths(&top.path().join("lu/inputs")).unwrap_err().contains("the folder holds no workload"));
    assert!(paths(&top.path().join("lv")).unwrap_err().contains("cannot read the folder"));
}

#[test]
fn a_choice_changes_parameters_arguments_and_which_checks_hold() {
    let params = vec![("THREADS".to_owned(), "2".to_owned())];
    let choice = Choice { profile: Some("ci".to_owned()), params, args: vec!["-v".to_owned()], ..Choice::default() };
    let found = program(MANIFEST, &choice).unwrap();
    assert_eq!(found.start.args, ["--threads", "2", "--steps", "200", "-v"]);
    // The expected output is that of the profile as it is.
    assert!(found.checks.iter().all(|check| !matches!(check.kind, CpuCheckKind::Stdout { .. })));
    let unknown = Choice { params: vec![("TREADS".to_owned(), "2".to_owned())], ..Choice::default() };
    assert!(program(MANIFEST, &unknown).unwrap_err().to_string().contains("did you mean"));
    let parts = |choice: &Choice| {
        let mut parts = Vec::new();
        program(MANIFEST, choice)
            .unwrap()
            .fingerprint(&mut |name, bytes| parts.push((name.to_owned(), bytes.to_vec())));
        parts
    };
    let plain = parts(&Choice::default());
    assert_eq!(plain, parts(&Choice::default()));
    for other in [choice, Choice { seed: 1, ..Choice::default() }] {
        assert_ne!(plain, parts(&other));
    }
}

#[test]
fn a_program_without_checks_is_to_end_with_exit_code_0() {
    let (without, _) = MANIFEST.split_once("verify").unwrap();
    let found = program(without, &Choice::default()).unwrap();
    assert_eq!(found.checks.iter().map(|check| &check.kind).collect::<Vec<_>>(), [&CpuCheckKind::ExitCode(0)]);
}

#[test]
fn what_is_wrong_with_a_manifest_is_told_at_its_place() {
    one("counter.elf", "countre.elf", 4, 32, "no such file (did you mean `counter.elf`?)");
    one("threads = \"THREADS\"", "treads = \"THREADS\"", 7, 70, "unknown key `treads` in `program` did you mean");
    one("\"STEPS * 2\"", "\"STEPZ * 2\"", 7, 57, "`STEPZ` is not defined here");
    one("\"STEPS * 2\"", "\"STEPS / 0\"", 7, 57, "`STEPS / 0`: integer division by zero");
    one("memory_mb = 64", "memory_mb = 0", 7, 103, "`memory_mb` must be 1 to 65536, found 0");
    one("pm_mb = 2", "pm_mb = 0.5", 7, 115, "must be an integer");
    one("kind = \"functional\"", "kind = \"functionl\"", 11, 22, "found `functionl` did you mean `functional`?");
    one("profile = \"ci\"", "profile = \"cii\"", 10, 34, "no profile `cii` did you mean `ci`?");
    one("kind = \"riscv\"", "kind = \"riscw\"", 4, 16, "did you mean `riscv`?");
    let steps =
        told("recovery = { args", "step = [{ kernel = \"k\", grid = 1, block = 1, args = [] }]\nrecovery = { args");
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(steps[0].2.contains("a RISC-V program runs by itself"), "{steps:?}");
    // Faults of all parts at once.
    let many = told("schema = 1", "schema = 2\nbuffer = { a = { type = \"u8\", len = 1 } }\nsead = 3");
    assert_eq!(many.iter().map(|fault| fault.0).collect::<Vec<_>>(), [1, 2, 3], "{many:?}");
}

#[test]
fn what_is_no_static_risc_v_executable_is_refused() {
    let folder = folder(MANIFEST);
    let path = folder.path().display().to_string();
    let of = |content: &[u8]| {
        std::fs::write(folder.path().join("counter.elf"), content).unwrap();
        let loaded = Workload::load(&path).and_then(|workload| workload.program(&Choice::default()));
        loaded.map(|_| ()).unwrap_err().to_string()
    };
    let mut elf = std::fs::read(executable("counter.elf")).unwrap();
    assert!(of(b"#!/bin/sh\n").contains("not an ELF executable"));
    assert!(of(b"").contains("not an ELF executable"));
    // e_machine, then class, for which the rest is too long.
    elf[18] = 62;
    assert!(of(&elf).contains("a program for 64-bit x86, not for 64-bit RISC-V"));
    elf[18] = 243;
    elf[4] = 1;
    assert!(of(&elf).contains("a damaged ELF file"));
    // Memory that is too small is told where the manifest names the executable.
    let small = program(&MANIFEST.replace("memory_mb = 64", "memory_mb = 1"), &Choice::default()).unwrap_err();
    assert_eq!((small.0[0].span.line, small.0[0].span.column), (4, 32), "{small}");
}

#[test]
fn an_executable_by_itself_is_a_workload() {
    let path = executable("counter.elf").display().to_string();
    let workload = Workload::load(&path).unwrap();
    assert!(workload.is_of_a_cpu());
    let choice = Choice { args: ["--threads", "2"].map(str::to_owned).to_vec(), ..Choice::default() };
    let found = workload.program(&choice).unwrap();
    assert_eq!((found.name.as_str(), found.start.windows.memory_bytes), ("counter.elf", 256 << 20));
    assert_eq!(found.checks.iter().map(|check| &check.kind).collect::<Vec<_>>(), [&CpuCheckKind::ExitCode(0)]);
    let larger = Choice { params: vec![("memory_mb".to_owned(), "512".to_owned())], ..Choice::default() };
    assert_eq!(workload.program(&larger).unwrap().start.windows.memory_bytes, 512 << 20);
    let none = Choice { params: vec![("memory_mb".to_owned(), "0".to_owned())], ..Choice::default() };
    assert!(workload.program(&none).unwrap_err().to_string().contains("--set params.memory_mb=0: `memory_mb` must be"));
}

#[test]
fn program_machine_and_scheme_are_of_one_kind_and_threads_have_harts() {
    let folder = folder(MANIFEST);
    let path = folder.path().display().to_string();
    let refused = |recipe: durawarp::Recipe| recipe.build_any().map(|_| ()).unwrap_err().to_string();
    assert!(Experiment::of(&path).build_any().is_ok());
    assert!(Experiment::of(&path).scheme("sync").machine("broi-cpu").build_any().is_ok());
    let told = refused(Experiment::of(&path).machine("titan-x"));
    assert!(told.contains("a program of CPUs") && told.contains("lightwsp-cpu, cxl-i-cpu"), "{told}");
    let told = refused(Experiment::of("vecadd").machine("broi-cpu"));
    assert!(told.contains("made of kernels") && told.contains("agpm-table4"), "{told}");
    let told = refused(Experiment::of(&path).scheme("agpm"));
    assert!(
        told.contains("scheme `agpm` is for machines with GPUs") && told.contains("base, light-wsp, sync"),
        "{told}"
    );
    let told = refused(Experiment::of("vecadd").scheme("sync"));
    assert!(told.contains("for machines of CPU cores") && told.contains("nt-store"), "{told}");
    // One thread more than harts is refused at its place where threads keep their harts; as many are not.
    let kept = || Experiment::of(&path).scheme("ppa");
    assert!(kept().set("params.THREADS", 8).build_any().is_ok());
    assert!(Experiment::of(&path).set("params.THREADS", 9).build_any().is_ok());
    let told = refused(kept().set("params.THREADS", 9));
    assert!(told.contains("workload.toml:7:") && told.contains("9 threads are more than the 8 harts"), "{told}");
    assert!(kept().set("params.THREADS", 9).set("core.count", 9).build_any().is_ok());
    let built = SchemeConfig::load("sync", &[]).unwrap().built;
    assert!(built.machines().cpu && !built.machines().gpu);
}

#[test]
fn the_example_of_the_page_is_right() {
    let page = include_str!("../../workloads/README.md");
    let block = page.split("```").find(|block| block.starts_with("toml") && block.contains("counter.elf")).unwrap();
    let text = block.lines().skip(1).collect::<Vec<_>>().join("\n");
    let found = program(&text, &Choice::of_profile("ci")).unwrap();
    assert_eq!(found.checks.len(), 2);
    let process = found.process().unwrap();
    let ran = run(&process, process.memory(), &Options { harts: 4, ..Options::default() });
    let left = durawarp::workload::Ran {
        exit_code: 0,
        stdout: &ran.stdout,
        files: &ran.files,
        persistent: ran.memory.persistent(),
        logs: &[],
    };
    assert!(ran.end == End::Exited(0) && found.verify(&left, None).passed());
}

#[test]
fn a_program_runs_on_cores_and_is_told_with_its_exit_code_output_and_slots() {
    let path = executable("counter.elf").display().to_string();
    let run = ["run", &path, "--threads", "2", "--", "--threads", "2", "--steps", "100"];
    let told = ended(&durawarp(&run), 0, &["on lightwsp-cpu, scheme base", "MPKI", "exit code        0", "lock 200"]);
    let slots = told.split("Dispatch slots\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let share = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    let sum: f64 = slots.lines().filter_map(share).sum();
    assert!((sum - 100.0).abs() < 1e-6 && slots.lines().count() > 3, "{sum}: {slots}");
    // A wrong result is a failure of the program.
    let folder = folder(&MANIFEST.replace("value = 0", "value = 1"));
    let path = folder.path().display().to_string();
    ended(&durawarp(&["run", &path, "--profile", "ci", "-q"]), 3, &["the exit code is 0, expected 1"]);
}

#[test]
fn every_built_in_program_is_named_on_the_page_and_right_when_it_is_small() {
    let page = include_str!("../../workloads/README.md");
    let all = Workload::builtin_of_cpus();
    assert!(all.len() >= 8, "{all:?}");
    for listing in all {
        assert!(page.contains(&format!("`{}`", listing.name)), "{} is not on the page", listing.name);
        let found = Workload::load(&listing.name).unwrap().program(&Choice::of_profile("ci")).unwrap();
        let process = found.process().unwrap();
        // A program that posts verbs has another server, with the logs of its manifest.
        let peers = Peers { count: 1, log_bytes: 64 << 10 };
        let ran = run(&process, process.memory(), &Options { harts: found.threads, peers, ..Options::default() });
        let End::Exited(exit_code) = ran.end else { panic!("{}: {:?}", listing.name, ran.end) };
        let left = durawarp::workload::Ran {
            exit_code,
            stdout: &ran.stdout,
            files: &ran.files,
            persistent: ran.memory.persistent(),
            logs: &[],
        };
        let verdict = found.verify(&left, Some(&left));
        assert!(verdict.passed(), "{}: {verdict:?}", listing.name);
    }
}

#[test]
fn commands_refuse_what_does_not_fit_with_exit_code_2() {
    let path = executable("counter.elf").display().to_string();
    ended(&durawarp(&["run", &path, "--machine", "titan-x"]), 2, &["machines with CPU cores: lightwsp-cpu, cxl-i-cpu"]);
    ended(&durawarp(&["run", "vecadd", "--machine", "broi-cpu"]), 2, &["machines with a GPU: agpm-table4"]);
    ended(&durawarp(&["run", &path, "--scheme", "agpm"]), 2, &["for `lightwsp-cpu` there are base, light-wsp, sync"]);
    ended(&durawarp(&["run", &path, "--dump", "x=y"]), 2, &["a program of CPUs has none"]);
    ended(&durawarp(&["run", "vecadd", "--", "3"]), 2, &["takes no arguments"]);
    ended(&durawarp(&["explain", &path, "--scheme", "agpm"]), 2, &["is for machines with GPUs"]);
}
