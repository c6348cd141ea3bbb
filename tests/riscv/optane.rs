//! What a core of `lightwsp-cpu` sees of `optane-100`, beside what was measured on the DIMMs: loads that depend on each
//! other, on an idle machine.

use durawarp::MachineConfig;
use durawarp::assemble::{CpuLoad, Persistency, assemble_cpu};
use durawarp::config::{CpuMachine, Override};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::riscv::memory::PM_START;

use crate::common::program;
use crate::encoding::{addi, b_type, i_type, li, r_type};

/// A load of 64 bits.
fn ld(rd: u32, rs1: u32) -> u32 {
    i_type(0x03, 3, rd, rs1, 0)
}

/// Nanoseconds of a program that loads `count` times from persistent memory, each `stride` bytes after what
/// the one before loaded: 0 everywhere.
fn loads(device: &str, count: i32, stride: i32) -> f64 {
    let (address, left, value) = (10, 11, 5);
    let mut words = vec![
        li(address, 1),
        i_type(0x13, 1, address, address, PM_START.trailing_zeros() as i32),
        li(left, count),
        ld(value, address),
        r_type(0x33, 0, 0, address, address, value),
        addi(address, address, stride),
        addi(left, left, -1),
        b_type(1, left, 0, -16),
    ];
    // exit_group(0)
    words.extend([li(10, 0), li(17, 94), 0x0000_0073]);
    let device = Override::parse(&format!("nvm.device={device}")).unwrap();
    let machine: CpuMachine = MachineConfig::read("lightwsp-cpu", &[device]).unwrap();
    let process = program(&words);
    let load = CpuLoad { process: &process, files: &[], all_persistent: false, remote_bytes: 0, regions: None };
    let persistency = Persistency { devices: machine.devices.clone(), ..Persistency::default() };
    let end = assemble_cpu(&machine.spec, load, &persistency).simulation.run(&RunOptions::default());
    let RunEnd::Finished { at: time } = end else { panic!("{end:?}") };
    let base = machine.spec.timebase().unwrap();
    time as f64 / base.ticks_of_ps(1_000_000) as f64 * 1000.0
}

/// The mean latency of a load.
fn latency(device: &str, stride: i32) -> f64 {
    let count = 256;
    (loads(device, 2 * count, stride) - loads(device, count, stride)) / f64::from(count)
}

#[test]
fn idle_loads_take_what_was_measured() {
    // Random: each from another line of the device. Sequential: each line of the core once.
    for (what, stride, published) in [("random", 1024, 305.0), ("sequential", 64, 169.0)] {
        let ours = latency("optane-100", stride);
        println!("{what}: {published} ns published, {ours:.1} ns here");
        assert!((ours / published - 1.0).abs() < 0.1, "{what}: {ours:.1} ns for {published}");
    }
    // The device whose parameters are LightWSP's knows no such difference.
    let [random, sequential] = [1024, 64].map(|stride| latency("plain", stride));
    println!("plain: random {random:.1} ns, sequential {sequential:.1} ns");
    assert!((random - sequential).abs() < 5.0, "{random} {sequential}");
}
