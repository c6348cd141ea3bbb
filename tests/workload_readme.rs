//! The example of `workloads/README.md`, as a newcomer types it: it loads from a folder outside the project, runs, passes,
//! and its mistakes are answered as the page says.

mod workload_common;

use durawarp::kernel::functional::Limits;
use durawarp::workload::{Choice, Evidence, Workload};
use workload_common::{folder, load, shown};

const README: &str = include_str!("../workloads/README.md");
/// What `workloads/compile.sh` makes of the page's kernel.
const PTX: &str = include_str!("workload_readme/saxpy.ptx");

/// The page's manifest.
fn manifest() -> String {
    let block = README.split("```").find(|block| block.starts_with("toml") && block.contains("\"saxpy\""));
    let lines = block.expect("the page has the example").lines().skip(1);
    lines.map(|line| line.strip_prefix("   ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_runs_and_passes_with_every_profile() {
    let folder = folder("readme", &[("workload.toml", &manifest()), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    for profile in workload.listing().profiles {
        let choice = Choice { profile: Some(profile.clone()), ..Choice::default() };
        let resolved = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
        let run = resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        let evidence = Evidence { functional: Some(&run), metrics: None };
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
        assert!(README.contains(&line), "the page does not say:\n{line}");
    }
}
