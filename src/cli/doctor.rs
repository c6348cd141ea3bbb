//! `durawarp doctor`: what this host and this build offer to simulations, and what to do about what is
//! missing.
//!
//! It looks and changes nothing, and nothing of it is needed to simulate: each line that is not `ok` says
//! what would not work.

use std::process::Command;
use std::thread;

use durawarp::sweep::host::Memory;

use super::bench::round_trip::round_trip_ns;
use super::exit::{Exit, Stop};
use super::terminal;

/// A round trip of a cache line, in ns, from which on several threads seldom pay: a round of the engine is a
/// few.
const SLOW_TRIP_NS: f64 = 1000.0;

/// What was found out, and whether it is as it should be.
struct Finding {
    what: &'static str,
    good: bool,
    told: String,
}

pub(super) fn doctor() -> Result<Exit, Stop> {
    let findings = [build(), cores(), trip(), memory(), slurm(), parquet(), png()];
    for Finding { what, good, told } in findings {
        terminal::print(&format!("{}  {what:10}  {told}\n", if good { "ok  " } else { "note" }));
    }
    Ok(Exit::Good)
}

fn build() -> Finding {
    let version = env!("CARGO_PKG_VERSION");
    let debug = cfg!(debug_assertions);
    let told = match debug {
        true => format!("durawarp {version}, with debug checks: several times slower than --release"),
        false => format!("durawarp {version}, optimised"),
    };
    Finding { what: "build", good: !debug, told }
}

fn cores() -> Finding {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let told = format!("{cores} for this process: --threads and --jobs are up to it unless named");
    Finding { what: "cores", good: cores > 1, told }
}

fn trip() -> Finding {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return Finding { what: "round trip", good: false, told: "one core: no two to measure between".to_owned() };
    }
    let ns = round_trip_ns();
    let good = ns < SLOW_TRIP_NS;
    let advice = if good { "" } else { "; busy or shared cores: runs may be fastest with --threads 1" };
    Finding { what: "round trip", good, told: format!("{ns:.0} ns for a cache line between two cores{advice}") }
}

fn memory() -> Finding {
    let Memory { total_bytes, available_bytes } = Memory::of_host();
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let told = format!("{:.1} of {:.1} GiB available, control groups included", gib(available_bytes), gib(total_bytes));
    Finding { what: "memory", good: available_bytes >= 1 << 30, told }
}

fn slurm() -> Finding {
    let version = Command::new("sbatch").arg("--version").output().ok().filter(|output| output.status.success());
    let told = version.as_ref().map_or_else(
        || "no sbatch that answers: `sweep run --slurm` writes array jobs to be submitted elsewhere".to_owned(),
        |output| format!("{}: sweeps can be array jobs", String::from_utf8_lossy(&output.stdout).trim()),
    );
    Finding { what: "Slurm", good: version.is_some(), told }
}

fn parquet() -> Finding {
    let good = cfg!(feature = "parquet");
    let told = if good {
        "`sweep table --parquet` works"
    } else {
        "not built in: `cargo install --path . --features parquet`"
    };
    Finding { what: "parquet", good, told: told.to_owned() }
}

fn png() -> Finding {
    let good = cfg!(feature = "png");
    let told =
        if good { "`sweep figures --png` works" } else { "not built in: `cargo install --path . --features png`" };
    Finding { what: "png", good, told: told.to_owned() }
}
