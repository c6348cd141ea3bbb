//! How much a sweep gains by more runs at a time: `cargo bench --bench sweep [runs at a time, default 2]`.
//!
//! 40 points of profile `ci`, then 200 (five sizes of the L2), through the command line into a fresh folder of results, one
//! at a time and N at a time in turns; the best of each counts. Planning is done by one core and each result is synced to
//! the disk, which small points feel. Beside the wall clock stands processor time, user and system: on a host that is shared
//! the wall clock says little, but N times the ratio of processor times is what N idle cores could give, the wait for the
//! last points apart. Linux only: processor time is read from `/proc`.

#![allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]

#[path = "../src/allocator.rs"]
mod allocator;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const TURNS: usize = 3;

const SPEC: &str = r#"
schema = 1
name = "throughput"
[base]
workloads = ["atax", "backprop", "bfs", "conv2d", "gemm", "mm2", "pathfinder", "sad", "sgemm", "stencil"]
profile = "ci"
[[axis]]
key = "scheme"
values = ["base", "nt-store", "store+clwb", "agpm"]
[[axis]]
key = "l2.slice_kb"
"#;

/// Sizes of the L2, and points.
const SIZES: [(&str, usize); 2] = [("[128]", 40), ("[32, 64, 128, 256, 512]", 200)];

/// Processor time of children that ended, in s: `/proc` counts in hundredths.
fn children_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    // Behind the name, which may have blanks: state is field 3, times of children are 16 and 17.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    fields[13..15].iter().map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
}

/// Wall clock and processor time of the sweep.
fn timed(folder: &Path, jobs: usize) -> [f64; 2] {
    let results = folder.join("results");
    let _ = std::fs::remove_dir_all(&results);
    let (since, before) = (Instant::now(), children_s());
    let mut command = Command::new(env!("CARGO_BIN_EXE_durawarp"));
    command.current_dir(folder).args(["sweep", "spec.toml", "--results", "results", "-q", "--jobs", &jobs.to_string()]);
    let status = command.stdout(Stdio::null()).status().expect("the program starts");
    assert!(status.success(), "{status}");
    [since.elapsed().as_secs_f64(), children_s() - before]
}

fn main() {
    let jobs = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(2);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench_sweep");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (sizes, points) in SIZES {
        std::fs::write(folder.join("spec.toml"), format!("{SPEC}values = {sizes}\n")).expect("a file");
        let [mut one, mut many] = [[f64::MAX; 2]; 2];
        for _ in 0..TURNS {
            for (best, jobs) in [(&mut one, 1), (&mut many, jobs)] {
                let now = timed(&folder, jobs);
                *best = [best[0].min(now[0]), best[1].min(now[1])];
            }
        }
        println!("{points} points, profile ci, best of {TURNS}");
        for (jobs, [wall, cpu]) in [(1, one), (jobs, many)] {
            let speed = points as f64 / wall * 3600.0;
            println!("{jobs:>3} at a time: {wall:7.2} s, {cpu:7.2} s of processor time, {speed:6.0} points/h");
        }
        println!("throughput: {:.2} x (target for 2 cores: 1.90 x)", one[0] / many[0]);
        println!("by processor time: {:.2} x on {jobs} idle cores\n", jobs as f64 * one[1] / many[1]);
    }
}
