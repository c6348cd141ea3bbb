//! What the README shows works as it stands.

use std::path::Path;

use durawarp::config::MachineConfig;
use durawarp::sweep::{Plan, SweepFile};
use durawarp::workload::{Choice, Workload};

const README: &str = include_str!("../../README.md");

/// The README's blocks of TOML: the sweep, the workload, the machine, the scheme.
fn blocks() -> Vec<&'static str> {
    let blocks: Vec<&str> =
        README.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect();
    assert_eq!(blocks.len(), 4);
    blocks
}

#[test]
fn its_workload_loads_and_is_right() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme_workload");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("workload.toml"), blocks()[1]).unwrap();
    std::fs::copy("workloads/vecadd/kernel.ptx", folder.join("kernel.ptx")).unwrap();
    let workload = Workload::load(folder.to_str().unwrap()).unwrap_or_else(|faults| panic!("{faults}"));
    let choice = Choice::of_profile("ci");
    let resolved = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
    let run = resolved.run_functional(&Default::default()).unwrap();
    assert!(resolved.verify(run.memory(), run.bindings(), Default::default()).passed());
}

#[test]
fn its_machine_loads() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme_machine.toml");
    std::fs::write(&file, blocks()[2]).unwrap();
    let machine = MachineConfig::load(file.to_str().unwrap(), &[]).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((machine.spec.controller.channels, machine.spec.sm.count), (4, 20));
}

#[test]
fn its_sweep_is_planned() {
    let file = SweepFile::read("README.md", blocks()[0].to_owned(), Path::new("")).unwrap_or_else(|f| panic!("{f}"));
    let plan = Plan::new(file).unwrap_or_else(|faults| panic!("{faults}"));
    // Two workloads: base at three sizes, strict at one, agpm at three with two thresholds.
    assert_eq!(plan.points.len(), 2 * (3 + 1 + 3 * 2));
    assert!(plan.baselines().iter().all(Option::is_some));
}

#[test]
fn its_two_commands_are_there() {
    assert!(README.contains("cargo run --release -- run workloads/gemm\n"));
    assert!(README.contains("cargo test\n"));
}
