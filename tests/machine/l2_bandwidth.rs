//! Bandwidth from the L2: all SMs read a buffer that it holds, past their L1s, beside what was measured on cards; and the
//! ports that SMs of a GPC share.
//!
//! CTAs read for a given time: SMs of small GPCs read more bytes in it than others. A bandwidth is that of two runs, a short
//! and a long one: the difference of their bytes over the difference of their times.

use crate::bench_machine::{Bench, machine, one_gigahertz, sum};
use durawarp::config::{MachineConfig, Override};
use durawarp::engine::RunEnd;
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::machine::msg::HEADER_BYTES;

const CHUNK_BYTES: u32 = 8 * 1024;
const CTA: u32 = 512;

/// Each CTA reads for `n` cycles chunks of the buffer at `%a`, two at a time, 16 B a thread; CTAs are elsewhere in it at a
/// time. The mask of the number of chunks is in `%b`.
const READ: &str = "mul.wide.u32 %d0, %tid, 16;
add.s64 %d0, %a, %d0;
cvt.u32.u64 %r10, %b;
mul.lo.s32 %r11, %cta, 7;
mov.u32 %r12, %clock;
LOOP:
and.b32 %r13, %r11, %r10;
mul.wide.u32 %d1, %r13, 8192;
add.s64 %d1, %d0, %d1;
add.s32 %r11, %r11, 29;
and.b32 %r13, %r11, %r10;
mul.wide.u32 %d2, %r13, 8192;
add.s64 %d2, %d0, %d2;
add.s32 %r11, %r11, 29;
ld.global.cg.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];
ld.global.cg.v4.u32 {%r5, %r6, %r7, %r8}, [%d2];
xor.b32 %r14, %r1, %r5;
mov.u32 %r15, %clock;
sub.s32 %r15, %r15, %r12;
setp.lt.u32 %p1, %r15, %n;
@%p1 bra LOOP;";

/// Bytes that all SMs read in so many cycles and a little more of what has come to the L2 before, up to half of it, and when
/// they are done, in core cycles. Each CTA of an SM has 16 KB under way.
fn read(spec: &MachineSpec, ctas: u32, cycles: u32) -> [f64; 2] {
    let half = spec.l2.slices * spec.l2.slice_kb * 512 / CHUNK_BYTES;
    let chunks = 1 << half.ilog2().min(9);
    let mut bench = Bench::new(spec.clone());
    let a = bench.buffer(u64::from(chunks * CHUNK_BYTES), Medium::Dram);
    let warm = "mul.wide.u32 %d0, %id, 16;
add.s64 %d0, %a, %d0;
ld.global.cg.v4.u32 {%r1, %r2, %r3, %r4}, [%d0];";
    bench.launch(warm, chunks, CTA, (a, a, 0, 0));
    bench.launch(READ, spec.sm.count * ctas, CTA, (a, a, u64::from(chunks - 1), cycles));
    let ran = bench.run();
    assert_eq!(ran.mc("dram_read_bytes"), u64::from(chunks * CHUNK_BYTES), "all of it is in the L2");
    if spec.crossbar.gpcs > 0 {
        let of_gpcs = |name| sum(ran.assembly.gpc_ports().map(|port| *port.counters()), name);
        assert_eq!(of_gpcs("bytes"), ran.sm("bytes_in"), "what SMs get comes through the ports of their GPCs");
        assert_eq!(of_gpcs("packets"), ran.l2("reads"));
        assert!(of_gpcs("wait_ticks") > 0, "replies of several slices come at a time");
    }
    let bytes = ran.l2("bytes_out") - ran.l2("reads") * u64::from(HEADER_BYTES);
    let RunEnd::Finished { at } = ran.end else { unreachable!("Bench::run checks") };
    let core = spec.timebase().unwrap().clock(spec.clock.core_mhz.khz);
    [bytes as f64, at as f64 / core.period_ticks() as f64]
}

/// Bytes a core cycle that SMs with so many CTAs each read. `cycles` are those of many times 16 KB of each CTA.
fn bandwidth(spec: &MachineSpec, ctas: u32, cycles: u32) -> f64 {
    let [less, more] = [cycles, 3 * cycles].map(|cycles| read(spec, ctas, cycles));
    (more[0] - less[0]) / (more[1] - less[1])
}

#[track_caller]
fn assert_near(what: &str, ours: f64, published: f64) {
    println!("{what}: {ours:.0} B a cycle, published {published:.0}: {:+.1} %", 100.0 * (ours / published - 1.0));
    assert!((0.9..1.1).contains(&(ours / published)), "{what}: {ours:.0} B a cycle, published {published:.0}");
}

// Each on the card that was measured: where a preset is another of the same chip, with its SMs and GPCs.

#[test]
fn an_a100_reads_from_its_l2_what_was_measured() {
    // RRZE-HPC's gpu-benches, gpu-l2-cache/a100_80.txt: 5.40 TB/s at 1,410 MHz from 4 to 25 MB.
    assert_near("A100", bandwidth(&machine("ampere-a100", ""), 2, 2000), 5.40e6 / 1410.0);
}

#[test]
fn an_h100_of_pcie_reads_from_its_l2_what_was_measured() {
    // Luo et al. (arXiv 2402.13499), table V, by a digest: 3,942 B a cycle on an H800 of 114 SMs; gpu-benches,
    // gpu-l2-cache/h100_pcie.txt: 6.92 TB/s, at 1,755 MHz as much. GPUNetBench has its seven GPCs.
    let spec = machine("hopper-h100", "sm.count=114 sm.gpcs=7 crossbar.gpcs=7");
    assert_near("H100 PCIe", bandwidth(&spec, 2, 2000), 3942.0);
}

#[test]
fn an_h200_reads_from_its_l2_what_was_measured() {
    // gpu-benches, gpu-l2-cache/h200.txt: 9.75 TB/s from 12 to 40 MB; 1,980 MHz, as on the card of h200.csv.
    assert_near("H200", bandwidth(&machine("hopper-h200", ""), 2, 2000), 9.75e6 / 1980.0);
}

#[test]
fn cards_of_ad102_read_from_their_l2_what_was_measured() {
    // cuda_microbenchmark, analysis_RTX4090.md: 1,946 B a cycle, 4.9 TB/s; Chips and Cheese: about 5 TB/s.
    assert_near("RTX 4090", bandwidth(&machine("ada-4090", ""), 1, 4000), 1946.0);
    // gpu-benches, gpu-l2-cache/l40.txt: 5.24 TB/s at 2,490 MHz.
    let l40 = machine("ada-4090", "sm.count=142 crossbar.gpcs=12");
    assert_near("L40", bandwidth(&l40, 1, 4000), 5.24e6 / 2490.0);
}

#[test]
fn a_card_of_gb202_reads_from_its_l2_what_was_measured() {
    // Chips and Cheese, "Blackwell: Nvidia's Massive GPU": an RTX PRO 6000 of 188 SMs reads 48 B a cycle of each of 64 banks.
    let spec = machine("blackwell-5090", "sm.count=188 crossbar.gpcs=12");
    assert_near("RTX PRO 6000", bandwidth(&spec, 2, 2000), 64.0 * 48.0);
}

#[test]
fn a_b200_reads_from_its_l2_what_was_measured() {
    // Chips and Cheese, "Nvidia's B200": 21 TB/s within one of the two halves.
    let spec = machine("blackwell-b200", "");
    assert_near("B200", bandwidth(&spec, 4, 2000), 21e9 / spec.clock.core_mhz.khz as f64);
}

#[test]
fn a_v100_reads_from_its_l2_what_its_slices_can() {
    // NVIDIA, "Ampere Architecture In-Depth": 2,048 B a cycle.
    assert_near("V100", bandwidth(&machine("volta-v100", ""), 2, 2000), 2048.0);
}

#[test]
fn gpcs_share_ports_and_their_sms_are_not_slower_alone() {
    // Eight SMs whose ports move a line in two cycles; the slices give as much to all of them.
    let read = |sms: u32, gpcs: u32, bytes: u32| {
        let gpc = format!("sm.count={sms} crossbar.gpcs={gpcs} crossbar.gpc_bytes={bytes}");
        let rest =
            "l2.inclusive=false sm.threads=1024 crossbar.flit_bytes=72 l2.port_bytes=64 sm.coalescer=warp_sectored";
        bandwidth(&one_gigahertz(&format!("{rest} {gpc}")), 2, 2000)
    };
    let without = read(8, 0, 0);
    println!("{without:.0} B a cycle without GPCs");
    assert!(without > 3.0 * 96.0, "{without}: no port of a GPC bounds them");
    for gpcs in [1, 2] {
        // Of 102 B of a reply 96 are of a line.
        let (ours, most) = (read(8, gpcs, 102), f64::from(96 * gpcs));
        assert!((0.97..=1.001).contains(&(ours / most)), "{gpcs} GPCs: {ours} of {most}");
    }
    // One SM alone is as fast as without GPCs: its own port bounds it.
    let (alone, free) = (read(1, 1, 102), read(1, 0, 0));
    assert!((alone / free - 1.0).abs() < 0.01, "{alone} with a port of a GPC, {free} without");
}

#[test]
fn ports_of_gpcs_that_cannot_be_are_refused() {
    let fault = |set: &str| {
        let overrides: Vec<Override> = set.split(' ').map(|text| Override::parse(text).unwrap()).collect();
        MachineConfig::load("hopper-h100", &overrides).map(drop).unwrap_err().to_string()
    };
    for (set, expected) in [
        ("crossbar.gpc_bytes=0", "the ports of 8 GPCs (crossbar.gpcs) would move nothing"),
        ("crossbar.switch=input_queued", "through a switch (crossbar.switch) or through ports of GPCs, not both"),
        ("crossbar.latency_cycles=1", "a port of a GPC need a cycle on both of their sides"),
        ("l2.inclusive=true", "would overtake replies that wait in a switch"),
    ] {
        let fault = fault(set);
        assert!(fault.contains(expected), "{set}: {fault}");
    }
}
