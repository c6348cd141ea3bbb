//! The bandwidths of `optane-100` on the controller of `lightwsp-cpu`, beside what was measured on one DIMM (Izraelevitz et
//! al. 2019, Yang et al. FAST '20): 64 B requests, more than it can serve. `tests/riscv/optane.rs` has the latencies.

use durawarp::MachineConfig;
use durawarp::config::{CpuMachine, Override};
use durawarp::engine::Time;
use durawarp::kernel::memory::NVM_BASE;
use durawarp::machine::media::{Devices, Media};
use durawarp::machine::msg::ControllerMsg;
use durawarp::persist::vocab::Domain;

use super::memory_controller::{Ran, Seen, read_of, run_media, write};

/// Requests of each run, all at once; what follows is counted from the time when half of them are served.
const REQUESTS: u64 = 4096;

/// The address of a request: one line of 64 B after another, or each in another line of the device, which it
/// has not had for long.
fn address(nth: u64, random: bool) -> u64 {
    // 128 KiB are 512 lines of the device.
    NVM_BASE + if random { nth * 7 % 512 * 256 } else { nth % 2048 * 64 }
}

/// GB/s, and what a run came to.
fn measured(density: &str, random: bool, request: impl Fn(u64) -> ControllerMsg) -> (f64, Ran) {
    let set = ["nvm.device=optane-100".to_owned(), format!("nvm.density={density}")];
    let set = set.map(|text| Override::parse(&text).unwrap());
    let machine: CpuMachine = MachineConfig::read("lightwsp-cpu", &set).unwrap();
    let spec = &machine.spec;
    let base = spec.timebase().unwrap();
    let clock = base.clock(spec.clock.memory_mhz.khz);
    let devices = Devices { dram: None, nvm: machine.devices[1].as_deref() };
    let media = Media::of(&devices, &spec.dram, &spec.nvm, &spec.bus, clock, base);
    let script = (0..REQUESTS).map(|nth| (0, request(address(nth, random)))).collect();
    let ran = run_media(spec.controller.clone(), media, (clock, base), Domain::Adr, None, script);
    let times: Vec<Time> = ran
        .seen
        .iter()
        .map(|seen| match seen {
            Seen::Data { at, .. } | Seen::Accepted { at } => *at,
            Seen::Durable { .. } => panic!("writes are durable when they are accepted"),
        })
        .collect();
    let half = times.len() / 2;
    let (bytes, ticks) = (64 * (times.len() - half) as u64, times.last().unwrap() - times[half - 1]);
    (bytes as f64 / (ticks as f64 / base.ticks_of_ps(1_000_000) as f64) / 1e3, ran)
}

fn read_bandwidth(density: &str, random: bool) -> f64 {
    measured(density, random, |line| read_of(line, 0, 0b0011)).0
}

fn write_bandwidth(density: &str, random: bool) -> (f64, Ran) {
    measured(density, random, |line| write(line, 7, u128::from(u64::MAX)))
}

/// Prints what was published beside ours, and asserts that they differ by less than a tenth.
fn check(what: &str, published: f64, ours: f64) {
    println!("| {what} | {published} | {ours:.3} |");
    assert!((ours / published - 1.0).abs() < 0.1, "{what}: {ours:.3} for {published}");
}

#[test]
fn bandwidths_are_what_was_measured_on_one_dimm() {
    check("sequential read, GB/s", 6.6, read_bandwidth("128GB", false));
    check("random read of 64 B, GB/s", 6.6 / 4.0, read_bandwidth("128GB", true));
    let (sequential, random) = (write_bandwidth("128GB", false), write_bandwidth("128GB", true));
    check("sequential write, GB/s", 2.3, sequential.0);
    check("random write of 64 B, GB/s", 2.3 / 4.0, random.0);
    let effective = |ran: &Ran| ran.counters.nvm_written_bytes as f64 / ran.wear.cell_bytes() as f64;
    check("bytes written for each of cells, sequential", 1.0, effective(&sequential.1));
    check("bytes written for each of cells, random 64 B", 0.25, effective(&random.1));
}

#[test]
fn two_modules_have_twice_the_bandwidth() {
    check("two modules, sequential read, GB/s", 13.2, read_bandwidth("2x128GB", false));
    check("two modules, random write, GB/s", 1.15, write_bandwidth("2x128GB", true).0);
}
