//! Peaks: how close kernels come to what the machine can do at most, and that nothing ever exceeds it.
//!
//! Bandwidths are bytes that the devices moved over the whole run, drain included and launch latency not.

use crate::bench_machine::{Bench, Ran, machine};
use durawarp::engine::RunEnd;
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::workload::{Choice, Workload};

/// Every thread handles every so-manieth word, `n` of them: `[%d1]` of `a`, `[%d2]` of `b`, `[%d3]` of `out`.
fn grid_stride(work: &str) -> String {
    format!(
        "mov.u32 %r20, %nctaid.x;
mul.lo.s32 %r20, %r20, %nt;
mul.wide.u32 %d20, %r20, 4;
mul.wide.u32 %d1, %id, 4;
add.s64 %d3, %out, %d1;
add.s64 %d2, %b, %d1;
add.s64 %d1, %a, %d1;
mov.u32 %r40, 0;
mov.u32 %r41, 0;
LOOP:
{work}
add.s32 %r41, %r41, 1;
add.s64 %d1, %d1, %d20;
add.s64 %d2, %d2, %d20;
add.s64 %d3, %d3, %d20;
setp.lt.u32 %p1, %r41, %n;
@%p1 bra LOOP;
setp.eq.s32 %p2, %r40, 1;
@%p2 st.global.u32 [%d3], %r40;
"
    )
}

const READ: &str = "ld.global.u32 %r1, [%d1];
add.s32 %r40, %r40, %r1;";
const WRITE: &str = "st.global.u32 [%d3], %r41;";
const TRIAD: &str = "ld.global.f32 %f1, [%d1];
ld.global.f32 %f2, [%d2];
fma.rn.f32 %f3, %f2, 0f40400000, %f1;
st.global.f32 [%d3], %f3;";

/// Streams `n` words a thread through every SM; buffers are in `medium`.
fn stream(spec: &MachineSpec, work: &str, medium: Medium, n: u32) -> Ran {
    let (grid, block) = (spec.sm.count * 4, 512);
    let bytes = u64::from(grid * block * n * 4);
    let mut bench = Bench::new(spec.clone());
    let [out, a, b] = [(); 3].map(|()| bench.buffer(bytes, medium));
    bench.launch(&grid_stride(work), grid, block, (out, a, b, n));
    bench.run()
}

/// Bytes a second that the devices moved, by these counters of the controllers.
fn bandwidth(ran: &Ran, counters: &[&str]) -> f64 {
    let RunEnd::Finished { at } = ran.end else { unreachable!("Bench::run checks") };
    let ticks_a_second = ran.spec.timebase().unwrap().tick_khz() as f64 * 1e3;
    let seconds = at as f64 / ticks_a_second - ran.spec.dispatch.launch_ns.ps as f64 * 1e-12;
    counters.iter().map(|c| ran.mc(c)).sum::<u64>() as f64 / seconds
}

const MOVED: [&str; 4] = ["dram_read_bytes", "nvm_read_bytes", "dram_written_bytes", "nvm_written_bytes"];

#[track_caller]
fn assert_share(what: &str, share: f64, least: f64) {
    println!("{what}: {share:.3} of the peak");
    assert!((least..=1.0).contains(&share), "{what}: {share:.3} of the peak, expected {least} to 1");
}

#[test]
fn a_stream_of_reads_reaches_the_peak_of_the_buses() {
    let spec = machine("agpm-table4", "");
    let peak = spec.peak_memory_bandwidth() as f64;
    assert_eq!(peak, 307.2e9, "8 channels x 32 B x 1.2 GHz");
    for medium in [Medium::Dram, Medium::Nvm] {
        let ran = stream(&spec, READ, medium, 48);
        assert_share("reads", bandwidth(&ran, &MOVED) / peak, 0.8);
    }
}

/// What a stream of reads of this many words a thread reaches of a card's data sheet.
fn reached(name: &str, set: &str, words: u32, data_sheet: f64) -> f64 {
    let spec = machine(name, set);
    let peak = spec.peak_memory_bandwidth() as f64;
    assert!((0.96..1.01).contains(&(peak / data_sheet)), "{name}: {peak} B/s at most");
    let share = bandwidth(&stream(&spec, READ, Medium::Dram, words), &MOVED) / data_sheet;
    println!("{name} {set}: {share:.3} of the data sheet's");
    share
}

/// Bytes a second by the V100's data sheet, of which the configuration has 870 GB/s.
const V100: f64 = 900e9;
/// Bytes a second by the data sheet of the A100 (PCIe) with 80 GB.
const A100: f64 = 1935e9;

#[test]
fn streams_of_reads_on_the_cards_reach_what_was_measured_on_them() {
    // Copies and reads on cards reach 0.88 of the data sheets: 790 GB/s on a V100, 1.80 of 2.04 TB/s on an A100 (SXM).
    // A refresh of all banks takes 9 % of HBM2's time, with the requests that its end finds waiting more.
    assert!((0.76..0.92).contains(&reached("volta-v100", "", 24, V100)));
    assert!((0.84..0.95).contains(&reached("ampere-a100", "", 12, A100)));
}

#[test]
#[ignore = "twice as long as the one above, of the same cards: 10 s"]
fn streams_of_reads_on_the_cards_lose_what_refreshes_and_short_queues_take() {
    // A refresh of one bank after another takes most of it back.
    assert!((0.82..0.92).contains(&reached("volta-v100", "dram.refresh=per_bank", 24, V100)));
    assert!((0.84..0.92).contains(&reached("volta-v100", "dram.refresh=none", 24, V100)));
    // With 64 credits for the way to a controller, which its delay uses up, and 64 reads in its queue the half is lost, where a
    // request is of a sector.
    assert!((0.84..0.95).contains(&reached("ampere-a100", "sm.coalescer=warp_by_sector", 12, A100)));
    let few = "sm.coalescer=warp_by_sector controller.read_queue_entries=64 controller.ingress_reads=64";
    assert!((0.44..0.6).contains(&reached("ampere-a100", few, 24, A100)));
}

#[test]
fn a_triad_is_held_back_by_rows_only() {
    // A row miss of 124 ns holds its bank for so long that 16 banks cannot keep the bus busy with three streams; with
    // the row timing of GDDR5 the same queues, crossbar and caches fill it.
    let slow = machine("agpm-table4", "");
    let fast = machine("agpm-table4", "dram.t_rcd_ns=6.4 dram.t_ras_ns=14.8 dram.t_rp_ns=6.4");
    let share = |spec: &MachineSpec| {
        bandwidth(&stream(spec, TRIAD, Medium::Dram, 24), &MOVED) / spec.peak_memory_bandwidth() as f64
    };
    assert_share("triad", share(&slow), 0.4);
    assert_share("triad with rows of GDDR5", share(&fast), 0.8);
}

/// What the cells of all NVM banks can take: a line each `cell_write`.
fn nvm_write_limit(spec: &MachineSpec) -> f64 {
    let banks = f64::from(spec.nvm.banks * spec.controller.channels);
    banks * f64::from(spec.l2.line_bytes) / (spec.nvm.cell_write_ns.ps as f64 * 1e-12)
}

#[test]
fn writes_to_nvm_reach_the_limit_of_its_cells_and_never_exceed_it() {
    // Neighbouring lines in different banks, so that the WPQ sees all of them; and long rows, where it sees few.
    for (row_bytes, least) in [(256, 0.8), (2048, 0.5)] {
        let spec = machine("agpm-table4", &format!("nvm.write_mode=through nvm.row_bytes={row_bytes}"));
        let limit = nvm_write_limit(&spec);
        assert!((34.1e9..34.2e9).contains(&limit), "8 channels x 16 banks x 128 B / 480 ns");
        let ran = stream(&spec, WRITE, Medium::Nvm, 48);
        assert_share(&format!("NVM rows of {row_bytes} B"), bandwidth(&ran, &["nvm_written_bytes"]) / limit, least);
    }
}

#[test]
fn as_many_writes_to_cells_go_on_at_a_time_as_there_are_banks() {
    // Cells so slow that their banks are all that counts, and a queue that sees every bank.
    let share = |banks: u32| {
        let queue =
            "controller.write_queue_entries=1024 controller.drain_high_entries=768 controller.drain_low_entries=512";
        let cells = "nvm.write_mode=through nvm.cell_write_ns=7680";
        let spec = machine("agpm-table4", &format!("nvm.row_bytes=256 {cells} nvm.banks={banks} {queue}"));
        bandwidth(&stream(&spec, WRITE, Medium::Nvm, 48), &["nvm_written_bytes"]) / nvm_write_limit(&spec)
    };
    for banks in [16, 64, 256] {
        assert_share(&format!("{banks} banks"), share(banks), 0.5);
    }
}

#[test]
fn writes_that_hold_no_bank_reach_the_bus_and_with_a_bandwidth_that() {
    let written = |set: &str| {
        let spec = machine("agpm-table4", &format!("nvm.write_mode=latency {set}"));
        let ran = stream(&spec, WRITE, Medium::Nvm, 48);
        (bandwidth(&ran, &["nvm_written_bytes"]), spec.peak_memory_bandwidth() as f64)
    };
    let (reached, bus) = written("");
    assert_share("overlapping writes", reached / bus, 0.6);
    // Of 8 channels.
    assert_share("2.3 GB/s a channel", written("nvm.write_bandwidth_mb_s=2300").0 / (8.0 * 2.3e9), 0.9);
}

#[test]
fn writes_to_row_buffers_reach_a_row_a_row_write() {
    // Between a line an activation, as lines leave the L2 in no order of rows, and 2 KiB.
    for row_write_ns in [320, 3200] {
        let set = format!("nvm.write_mode=row_buffer nvm.row_write_ns={row_write_ns} nvm.row_write_when=close");
        let spec = machine("agpm-table4", &set);
        let ran = stream(&spec, WRITE, Medium::Nvm, 48);
        let banks = f64::from(spec.nvm.banks * spec.controller.channels);
        let moved = |bytes: f64| banks * bytes / ((f64::from(row_write_ns) + 124.0 + 36.0 + bytes / 38.4) * 1e-9);
        let written = bandwidth(&ran, &["nvm_written_bytes"]);
        assert!((0.8 * moved(128.0)..moved(2048.0)).contains(&written), "{row_write_ns} ns: {written}");
    }
}

/// Eight independent chains of fused multiply-adds, 16 deep in each round of the loop.
fn fma_loop() -> String {
    let mut body = String::from("mov.u32 %r41, 0;\ncvt.rn.f32.u32 %f0, %tid;\n");
    for chain in 1..8 {
        body += &format!("add.f32 %f{chain}, %f{}, %f0;\n", chain - 1);
    }
    body += "LOOP:\n";
    for i in 0..128 {
        let chain = i % 8;
        body += &format!("fma.rn.f32 %f{chain}, %f{chain}, 0f3F000000, 0f3F800000;\n");
    }
    body += "add.s32 %r41, %r41, 1;\nsetp.lt.u32 %p1, %r41, %n;\n@%p1 bra LOOP;\n";
    for chain in 1..8 {
        body += &format!("add.f32 %f0, %f0, %f{chain};\n");
    }
    body + "mul.wide.u32 %d1, %id, 4;\nadd.s64 %d1, %out, %d1;\nst.global.f32 [%d1], %f0;"
}

#[test]
fn fused_multiply_adds_reach_the_issue_peak() {
    for warp_size in [32u32, 64] {
        for policy in ["gto", "gty", "lrr"] {
            let warps = 2048 / warp_size;
            let overrides = format!("sm.count=1 sm.warp_size={warp_size} sm.warps={warps} sm.policy={policy}");
            let spec = machine("agpm-table4", &overrides);
            let mut bench = Bench::new(spec.clone());
            let out = bench.buffer(2048 * 4, Medium::Dram);
            bench.launch(&fma_loop(), 4, 512, (out, 0, 0, 24));
            let ran = bench.run();
            let core = spec.timebase().unwrap().clock(spec.clock.core_mhz.khz);
            let cycles = ran.sm("active_cycles");
            assert!(cycles <= ran.ticks(0) / core.period_ticks(), "active for longer than it ran");
            let peak = cycles * u64::from(spec.issue_peak());
            let share = ran.sm("warp_instructions") as f64 / peak as f64;
            assert_share(&format!("warps of {warp_size}, {policy}"), share, 0.95);
            assert_eq!(ran.sm("fp32_instructions") / u64::from(warps), 24 * 128 + 14, "instructions a warp");
        }
    }
}

/// Ticks until the host program was over, digest, and the tick rate.
fn run_workload(spec: &MachineSpec, name: &str) -> (u64, u64, u64) {
    let choice = Choice::of_profile("ci");
    let workload = Workload::load(name).unwrap().resolve(&choice).unwrap();
    let mut assembly = durawarp::assemble::assemble(spec, workload.image(), 64, Box::new(workload.host()));
    let end = durawarp::machine::run(&mut assembly.simulation, &durawarp::engine::RunOptions::default());
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    let ended = assembly.command_processor().ended().unwrap();
    (ended, assembly.simulation.digest(), spec.timebase().unwrap().tick_khz())
}

#[test]
fn twice_the_clocks_and_half_the_times_take_half_the_time() {
    // A picosecond is the least unit of a machine's times: make them even.
    let even = "dram.t_ccd_ns=0.834 nvm.t_ccd_ns=0.834 dram.t_ccd_l_ns=0.834 nvm.t_ccd_l_ns=0.834 \
                nvm.write_hold_ns=3.332 bus.read_to_write_ns=1.666 bus.write_to_read_ns=5.834";
    let spec = machine("agpm-table4", &format!("{even} dispatch.launch_ns=2777.776"));
    let mut fast = spec.clone();
    let c = &mut fast.clock;
    for clock in [&mut c.core_mhz, &mut c.crossbar_mhz, &mut c.l2_mhz, &mut c.memory_mhz] {
        clock.khz *= 2;
    }
    let mut times = vec![&mut fast.dispatch.launch_ns, &mut fast.dispatch.command_ns];
    times.extend([&mut fast.controller.front_ns, &mut fast.controller.back_ns, &mut fast.controller.forward_ns]);
    times.extend([&mut fast.bus.read_to_write_ns, &mut fast.bus.write_to_read_ns]);
    let m = &mut fast.dram;
    times.extend([&mut m.t_rcd_ns, &mut m.t_cl_ns, &mut m.t_wl_ns, &mut m.t_rp_ns, &mut m.t_ras_ns]);
    times.extend([&mut m.t_ccd_ns, &mut m.t_ccd_l_ns, &mut m.t_rrd_ns, &mut m.t_wr_ns]);
    let m = &mut fast.nvm;
    times.extend([&mut m.t_rcd_ns, &mut m.t_cl_ns, &mut m.t_wl_ns, &mut m.t_rp_ns, &mut m.t_ras_ns]);
    times.extend([&mut m.t_ccd_ns, &mut m.t_ccd_l_ns, &mut m.t_rrd_ns, &mut m.t_wr_ns]);
    times.extend([&mut m.cell_write_ns, &mut m.write_hold_ns, &mut m.row_write_ns, &mut m.write_hit_ns]);
    for time in times {
        assert!(time.ps.is_multiple_of(2), "{time} ns is odd");
        time.ps /= 2;
    }
    for name in ["backprop", "histogram", "pointer_chase", "stream_triad"] {
        let (ticks, digest, rate) = run_workload(&spec, name);
        let (fast_ticks, fast_digest, fast_rate) = run_workload(&fast, name);
        assert_eq!(fast_rate, 2 * rate);
        assert_eq!((fast_ticks, fast_digest), (ticks, digest), "{name}: as many ticks, each half as long");
    }
}
