//! Power fails while threads make system calls: under schemes of recoverable regions a program goes on with the
//! break, mappings, threads, waits, places in files and output of the last committed region, once and twice.
//!
//! The sample is a program that makes the calls that its arguments name, a script for each thread, and checks
//! all that the system tells it. Every state that recovery leaves is resumed.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel, OutputCounts, Watching, crash_cpu};
use durawarp::outcome::End;
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, run_cpu};
use durawarp::workload::{CpuCheck, CpuCheckKind};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

const SCRIPT: &[u8] = include_bytes!("samples/system_state/script.elf");
const LETTERS: &[u8] = include_bytes!("samples/system_state/letters.txt");
const SCHEMES: [&str; 3] = ["light-wsp", "cwsp", "capri"];

/// Every state.
const ALL: u64 = 1 << 20;

/// The sample with these scripts, under a scheme.
pub(crate) fn experiment(scripts: &[&str], scheme: &str, set: &[(&str, &str)]) -> CpuExperiment {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("riscv/system_state").join(scripts.join("_"));
    let folder = folder.join(scheme);
    std::fs::create_dir_all(&folder).unwrap();
    let args: Vec<String> = scripts.iter().map(|script| format!("\"-{script}\"")).collect();
    let manifest = format!(
        "schema = 1\nname = \"script\"\ndescription = \"system calls\"\n\
        isa = {{ kind = \"riscv\", file = \"script.elf\" }}\nprofile.ci = {{}}\n\
        program = {{ args = [{}], threads = {}, memory_mb = 1, stack_kb = 64, files = [\"letters.txt\"] }}\n",
        args.join(", "),
        scripts.len()
    );
    std::fs::write(folder.join("workload.toml"), manifest).unwrap();
    std::fs::write(folder.join("script.elf"), SCRIPT).unwrap();
    std::fs::write(folder.join("letters.txt"), LETTERS).unwrap();
    let recipe = Experiment::of(folder.to_str().unwrap()).machine("lightwsp-cpu").profile("ci").scheme(scheme);
    let recipe = set.iter().fold(recipe, |recipe, &(key, value)| recipe.set(key, value));
    match recipe.build_any().unwrap_or_else(|faults| panic!("{faults}")) {
        AnyExperiment::Cpu(experiment) => *experiment,
        AnyExperiment::Gpu(_) => panic!("a program of CPUs"),
    }
}

fn crash(experiment: &CpuExperiment, request: &CrashRequest) -> CrashReport {
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    crash_cpu(experiment, request, &Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} }).unwrap()
}

/// Resumes these scripts from every state under a scheme. How output compared.
fn resumed(scripts: &[&str], scheme: &str, set: &[(&str, &str)]) -> OutputCounts {
    let report = crash(&experiment(scripts, scheme, set), &CrashRequest { resume: ALL, ..CrashRequest::default() });
    let resume = report.level(JudgedLevel::Resumed).map(|resume| (resume.verdict.judged, resume.found.first()));
    let end = &report.outcome.end;
    assert!(
        report.holds(),
        "{scripts:?} under {scheme}: {end:?}, {resume:#?}, {:#?}",
        report.level(JudgedLevel::History)
    );
    assert!(resume.is_some_and(|(judged, _)| judged > 20), "{scripts:?} under {scheme}: {resume:?}");
    report.output.unwrap()
}

/// The same, of a program whose output is decided.
fn comes_to_the_same(scripts: &[&str]) {
    for scheme in SCHEMES {
        let output = resumed(scripts, scheme, &[]);
        assert_eq!((output.other_order, output.differs), (0, 0), "{scripts:?} under {scheme}: {output:?}");
    }
}

#[test]
fn the_heap_s_end_is_that_of_the_last_committed_region() {
    comes_to_the_same(&["bb"]);
}

#[test]
fn two_mappings_are_never_the_same_pages_and_what_was_given_back_is_zeros_when_it_is_given_again() {
    comes_to_the_same(&["mmumuum"]);
}

#[test]
fn a_file_is_read_on_from_where_committed_regions_have_come_to() {
    comes_to_the_same(&["rrlrlr"]);
}

#[test]
fn what_a_committed_region_wrote_is_not_written_again_and_what_none_did_is() {
    comes_to_the_same(&["wewbwe"]);
}

#[test]
fn threads_begin_and_end_once_across_a_failure() {
    comes_to_the_same(&["btwbt"]);
    comes_to_the_same(&["ws", "hws", "hb"]);
}

#[test]
fn threads_that_wait_for_each_other_are_woken_once_and_sleepers_wake() {
    comes_to_the_same(&["mswns", "hbwhm"]);
    comes_to_the_same(&["nsbns", "hsrhs", "hwhe"]);
}

#[test]
fn a_program_ends_while_other_threads_store() {
    for scheme in SCHEMES {
        let scripts = ["wnx", "z", "mz"];
        let outcome = run_cpu(&experiment(&scripts, scheme, &[]), &Conduct::default()).outcome;
        assert_eq!(outcome.end, End::Finished, "under {scheme}");
        let output = resumed(&scripts, scheme, &[]);
        assert_eq!((output.other_order, output.differs), (0, 0), "under {scheme}: {output:?}");
    }
}

/// With IDs drawn where regions begin, one is drawn that a hart which waits, or has ended, stores nothing in.
#[test]
fn a_thread_that_ends_or_waits_holds_no_region_open_at_the_end_of_the_program() {
    for scripts in [&["wnx", "z", "mz"][..], &["mns", "hwb"], &["nx", "hw"]] {
        let experiment = experiment(scripts, "light-wsp", &[("light_wsp.id_draw", "paper")]);
        assert_eq!(run_cpu(&experiment, &Conduct::default()).outcome.end, End::Finished, "{scripts:?}");
    }
}

/// LightWSP's text gives a thread the ID of its next region at its boundary. A thread that waits for another
/// holds one then which is older than all that the other stores, and which no boundary follows: controllers
/// let in nothing else once they are full, and the other never comes to the wake.
#[test]
fn an_id_drawn_at_the_boundary_deadlocks_who_stores_much_before_waking_another() {
    let ended = |scripts: &[&str], set: &[(&str, &str)]| {
        run_cpu(&experiment(scripts, "light-wsp", set), &Conduct::default()).outcome.end
    };
    let (paper, much, little) = ([("light_wsp.id_draw", "paper")], ["mwbmwbmwbmwbs", "hb"], ["mwbs", "hb"]);
    let End::Deadlock { waits } = ended(&much, &paper) else { panic!("it ended") };
    for word in ["hart 1", "waits for a wake of futex", "stores wait for the gated WPQ"] {
        assert!(waits.iter().any(|wait| wait.contains(word)), "no {word} in {waits:#?}");
    }
    assert_eq!(ended(&much, &[]), End::Finished, "an ID is drawn with the region's first store");
    assert_eq!(ended(&little, &paper), End::Finished, "what fits into the queues");
}

#[test]
fn what_persists_late_is_what_calls_of_other_cores_wait_for() {
    for (scheme, key, value) in [
        ("light-wsp", "light_wsp.path_mb_s", "100"),
        ("cwsp", "cwsp.path_latency_ns", "1500"),
        ("capri", "capri.path_latency_ns", "1500"),
    ] {
        let output = resumed(&["mwbmsbw", "whbwm", "bmmw"], scheme, &[(key, value)]);
        assert_eq!(output.differs, 0, "under {scheme}: {output:?}");
    }
}

#[test]
fn another_order_of_threads_output_is_right_unless_the_same_bytes_are_asked_for() {
    for scheme in SCHEMES {
        let output = resumed(&["bw", "w"], scheme, &[]);
        assert!(output.same > 0 && output.other_order > 0 && output.differs == 0, "under {scheme}: {output:?}");
        let strict = CrashRequest { resume: ALL, strict_output: true, ..CrashRequest::default() };
        let report = crash(&experiment(&["bw", "w"], scheme, &[]), &strict);
        let found = &report.level(JudgedLevel::Resumed).unwrap().found[0];
        assert!(!report.holds() && found.failure.what.contains("standard output from byte 0 on is"), "{found:#?}");
        assert!(
            report.promises.iter().any(|promise| promise.to_string().contains("byte for byte")),
            "{:?}",
            report.promises
        );
    }
}

/// A check of the program leaves out the lines of its second thread: their order does not count, and what the
/// first thread writes does.
#[test]
fn output_that_no_check_looks_at_is_not_compared() {
    let strict = CrashRequest { resume: ALL, strict_output: true, ..CrashRequest::default() };
    let judged = |except: &str| {
        let mut experiment = experiment(&["bw", "w"], "light-wsp", &[]);
        let kind = CpuCheckKind::Stdout { text: "Aa\nBa\n".to_owned(), except: vec![except.to_owned()] };
        experiment.program.checks = vec![CpuCheck { name: "output".to_owned(), kind }];
        crash(&experiment, &strict)
    };
    let report = judged("B");
    let output = report.output.as_ref().unwrap();
    assert!(report.holds() && output.same > 20 && output.other_order == 0, "{output:?}");
    assert!(!judged("C").holds(), "no line has this text");
}

/// Scripts of some threads: what waits for a turn is given one by the thread before.
fn drawn(random: &mut Pcg64) -> Vec<String> {
    let threads = 1 + random.next_u64() as usize % 3;
    let mut scripts = vec![String::new(); threads];
    for _ in 0..3 + random.next_u64() % 4 {
        let at = random.next_u64() as usize % threads;
        match b"bmuwerlnts"[random.next_u64() as usize % 10] {
            b's' if at + 1 < threads => {
                scripts[at].push('s');
                scripts[at + 1].push('h');
            }
            b's' => scripts[at].push('m'),
            op => scripts[at].push(char::from(op)),
        }
    }
    // An option has a letter.
    scripts.iter_mut().filter(|script| script.is_empty()).for_each(|script| script.push('m'));
    scripts
}

#[test]
fn drawn_programs_come_to_their_end_from_every_state() {
    let mut random = Pcg64::new(7, 3);
    for turn in 0..12 {
        let scripts = drawn(&mut random);
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let output = resumed(&scripts, SCHEMES[turn % SCHEMES.len()], &[]);
        // Threads that nothing orders may write in any order, and each writes what it does.
        assert_eq!(output.differs, 0, "{scripts:?}: {output:?}");
    }
}
