//! Power fails on a machine of cores: programs recover from every state under `sync`, and where a fence is
//! missing, or nothing is made durable, a state is found that they do not recover from.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use durawarp::Experiment;
use durawarp::crash::{CPU_BUDGET, CrashReport, CrashRequest, JudgedLevel, Watching, crash_cpu};
use durawarp::diagnostic::Diagnostics;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::verdict::Property;
use durawarp::persist::Domain;
use durawarp::run::{AnyExperiment, Conduct};

const MISSING_FENCE: &[u8] = include_bytes!("samples/missing_fence/rbtree.elf");
const TWICE: &[u8] = include_bytes!("samples/recovery_twice/pair.elf");

/// Little enough to be judged in a second.
const SOME: Budget = Budget { instants: 16, boundaries: 64, ..CPU_BUDGET };

fn crash(workload: &str, scheme: &str, domain: &str, request: &CrashRequest) -> Result<CrashReport, Diagnostics> {
    let recipe = Experiment::of(workload).machine("lightwsp-cpu").profile("ci").scheme(scheme);
    let recipe = recipe.set("params.THREADS", 2).set("params.OPS", 12).set("persist.domain", domain);
    let AnyExperiment::Cpu(experiment) = recipe.build_any()? else { panic!("a program of CPUs") };
    let (conduct, stop) = (Conduct::default(), AtomicBool::new(false));
    crash_cpu(&experiment, request, &Watching { conduct: &conduct, stop: &stop, progress: &|_, _, _| {} })
}

fn some() -> CrashRequest {
    CrashRequest { allowed: Some(SOME), ..CrashRequest::default() }
}

/// The red-black trees without the fence between log and data.
fn without_fence() -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("riscv/missing_fence");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/rbtree/workload.toml");
    std::fs::copy(manifest, folder.join("workload.toml")).unwrap();
    std::fs::write(folder.join("rbtree.elf"), MISSING_FENCE).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn programs_recover_from_every_state_that_durable_fences_leave() {
    for (name, domain) in [("rbtree", "adr"), ("hash", "media"), ("sps", "adr"), ("kvlog", "adr")] {
        let report = crash(name, "sync", domain, &some()).unwrap();
        assert!(report.holds() && report.changes > 20, "{name} under {domain}: {report:#?}");
        let judged = |judgement: Option<&durawarp::crash::Judgement>| judgement.map_or(0, |j| j.verdict.judged);
        assert!(
            judged(report.level(JudgedLevel::Actual)) > 20 && judged(report.level(JudgedLevel::Allowed)) > 200,
            "{name}: {report:#?}"
        );
    }
}

#[test]
fn without_durable_fences_programs_recover_only_where_caches_survive() {
    let of = |domain| crash("hash", "base", domain, &some()).unwrap();
    let (adr, eadr) = (of("adr"), of("eadr"));
    assert!(!adr.holds(), "{adr:#?}");
    assert!(eadr.holds(), "{eadr:#?}");
    // That is what this scheme is, whatever the machine says.
    let psp = crash("hash", "psp-ideal", "adr", &some()).unwrap();
    assert!(psp.holds() && psp.domain == Domain::Eadr, "{psp:#?}");
    let domain = &psp.outcome.machine.parameters["persist.domain"];
    assert_eq!((domain.value.as_str(), &domain.source[..]), (Some("eadr"), "scheme psp-ideal: caches survive"));
}

#[test]
fn a_missing_fence_is_found_and_its_stores_are_named() {
    let workload = without_fence();
    let report = crash(&workload, "sync", "adr", &some()).unwrap();
    let allowed = report.level(JudgedLevel::Allowed).unwrap();
    assert!(allowed.verdict.failed > 0, "{allowed:#?}");
    let found = &allowed.found[0];
    assert!(found.failure.what.contains("wrong: "), "{found:#?}");
    let named = |placed: &Option<durawarp::crash::Placed>| {
        placed.as_ref().and_then(|placed| placed.function.clone()).is_some_and(|function| function.contains("+0x"))
    };
    assert!(named(&found.missing) && named(&found.present), "{found:#?}");
    let in_file = |placed: &Option<durawarp::crash::Placed>| {
        placed
            .as_ref()
            .is_some_and(|placed| placed.buffer.as_ref().is_some_and(|(file, at)| file == "/pm" && *at < 64 << 20))
    };
    assert!(in_file(&found.missing) && in_file(&found.present), "{found:#?}");
    // The same state alone.
    let one = CrashRequest { only_allowed: Some((found.failure.point, found.failure.choice.unwrap())), ..some() };
    let again = crash(&workload, "sync", "adr", &one).unwrap();
    assert_eq!(again.level(JudgedLevel::Allowed).unwrap().verdict.failed, 1);
}

/// The pair of words whose recovery has these arguments.
fn pair(name: &str, recovery: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("riscv").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "schema = 1\nname = \"pair\"\ndescription = \"two words\"\nisa = {{ kind = \"riscv\", file = \"pair.elf\" }}\n\
        params = {{ OPS = 3, THREADS = 1 }}\nprofile.ci = {{}}\n\
        program = {{ args = [\"--changes\", \"OPS\"], threads = \"THREADS\", memory_mb = 2, pm_mb = 1 }}\n\
        recovery = {{ args = [{recovery}] }}\n"
    );
    std::fs::write(folder.join("workload.toml"), manifest).unwrap();
    std::fs::write(folder.join("pair.elf"), TWICE).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn recovery_that_gives_its_log_up_too_early_fails_only_where_power_fails_in_it() {
    let of = |workload: &str, domain, double| {
        crash(workload, "sync", domain, &CrashRequest { double, ..some() }).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let (right, early) = (pair("pair_right", "\"--recover\""), pair("pair_early", "\"--recover\", \"--early\""));
    assert!(of(&right, "adr", false).holds() && of(&early, "adr", false).holds(), "one failure alone does no harm");
    for domain in ["adr", "media", "eadr"] {
        assert!(of(&right, domain, true).holds(), "under {domain}");
        let report = of(&early, domain, true);
        let actual = report.level(JudgedLevel::Actual).unwrap();
        // With one word changed, giving the log up is too late to take back; with both, undoing one of them.
        let cut = |steps: u32| {
            let what = format!(
                "recovery cut off after {steps} of 4 steps does not end well when it starts again: the program's \
                 recovery exited with "
            );
            let mut failures = actual.found.iter().map(|found| &found.failure);
            failures.any(|failure| {
                let told = failure.what.starts_with(&what) && failure.what.ends_with("both words are of one change");
                told && failure.property == Property::Idempotent
            })
        };
        assert!(cut(1) && cut(2), "under {domain}: {actual:#?}");
        assert!(report.promises.iter().any(|promise| promise.to_string().ends_with("(P8)")), "{:?}", report.promises);
    }
}

#[test]
fn programs_recover_though_power_fails_in_recovery() {
    for name in ["rbtree", "hash", "sps"] {
        let request = CrashRequest { double: true, allowed: None, ..CrashRequest::default() };
        let report = crash(name, "sync", "adr", &request).unwrap();
        assert!(report.holds() && report.changes > 20, "{name}: {report:#?}");
    }
}

#[test]
fn what_cannot_be_judged_is_refused_before_the_run() {
    let refused = |workload: &str, request: &CrashRequest| match crash(workload, "sync", "adr", request) {
        Ok(report) => panic!("{report:#?}"),
        Err(faults) => faults.to_string(),
    };
    let told = refused("spin_counter", &some());
    assert!(told.contains("no persistent memory") && told.contains("how the program recovers"), "{told}");
}
