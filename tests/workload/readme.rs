//! The examples of `workloads/README.md` and `workloads/manifest.md`, as a newcomer types them: they load from a folder
//! outside the project, run, pass, and their mistakes are answered as the page says.

use crate::workload_common::{folder, load, shown};
use durawarp::crash::{CrashReport, CrashRequest};
use durawarp::kernel::functional::Limits;
use durawarp::run::Experiment;
use durawarp::schemes::catalogue;
use durawarp::workload::{Choice, Evidence, Workload};

const PAGES: &str = concat!(include_str!("../../workloads/README.md"), include_str!("../../workloads/manifest.md"));
/// What `workloads/compile.sh` makes of the page's kernel.
const PTX: &str = include_str!("readme/saxpy.ptx");

/// The page's manifest.
fn manifest() -> String {
    let block = block("\"saxpy\"");
    block.lines().map(|line| line.strip_prefix("   ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The pages' block of TOML with a word in it.
fn block(word: &str) -> String {
    let block = PAGES.split("```").find(|block| block.starts_with("toml") && block.contains(word));
    let lines = block.expect("the page has the example").lines().skip(1);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_runs_and_passes_with_every_profile() {
    let folder = folder("readme", &[("workload.toml", &manifest()), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    for profile in workload.listing().profiles {
        let choice = Choice::of_profile(&profile);
        let resolved = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
        let run = resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        let evidence = Evidence { functional: Some(&run), ..Evidence::default() };
        let verdict = resolved.verify(run.memory(), run.bindings(), evidence);
        assert!(verdict.passed(), "{profile}: {verdict:#?}");
    }
    // The manifest's own path works as well, and so does a path with a slash at its end.
    for path in [folder.join("workload.toml").display().to_string(), format!("{}/", folder.display())] {
        assert_eq!(Workload::load(&path).unwrap_or_else(|faults| panic!("{faults}")).name(), "saxpy");
    }
}

#[test]
fn mistakes_in_the_example_are_answered_as_the_page_says() {
    let wrong =
        manifest().replace("len = \"N\"\ninit = { kind = \"uniform\"", "len = \"M\"\ninit = { kind = \"uniform\"");
    let wrong = wrong.replace("kernel = \"saxpy\"", "kernel = \"saxpi\"");
    let few = manifest().replace(", \"N\"]", "]");
    let folder = folder("readme-wrong", &[("workload.toml", &wrong), ("kernel.ptx", PTX)]);
    let faults = |text: &str| {
        std::fs::write(folder.join("workload.toml"), text).unwrap();
        let faults = Workload::load(&folder.display().to_string()).unwrap_err();
        shown(&folder, &faults).lines().map(|line| format!("saxpy/workload.toml:{line}")).collect::<Vec<_>>()
    };
    let all = [faults(&wrong), faults(&few)].concat();
    assert_eq!(all.len(), 3);
    for line in all {
        assert!(PAGES.contains(&line), "the page does not say:\n{line}");
    }
}

fn judged(text: &str, scheme: &str, domain: &str) -> CrashReport {
    let folder = folder("readme-transfer", &[("workload.toml", text)]);
    let workload = load(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    let request = CrashRequest { double: true, ..CrashRequest::default() };
    let report = Experiment::of(workload).scheme(scheme).set("persist.domain", domain).crash(&request);
    report.unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn the_example_with_recovery_recovers_every_image_and_needs_its_fence() {
    let text = block("\"transfer\"");
    for scheme in catalogue::all() {
        // Regions need queues that survive and caches that do not; others are refused.
        let fits = |domain: &&str| scheme.regions().is_none() || *domain == "adr";
        for domain in ["media", "adr", "eadr"].into_iter().filter(fits) {
            let report = judged(&text, scheme.name(), domain);
            assert!(report.holds(), "{} in {domain}: {:?}", scheme.name(), report.conditions);
        }
    }
    let fence = "pm.sfence;\n    sub";
    assert!(text.contains(fence));
    let report = judged(&text.replace(fence, "\n    sub"), "store+clwb", "adr");
    assert!(!report.holds() && report.conditions[0].violated[1] > 0, "{:?}", report.conditions);
    // The page shows the tables of this very example.
    let table = block("source = \"undo logging");
    for line in table.lines().filter(|line| line.starts_with("name =") || line.starts_with("holds =")) {
        assert!(text.contains(line), "{line}");
    }
}
