//! Unloaded latencies as a data sheet: a stopwatch in the kernel reads the cycle in which a load issues and the cycle in
//! which its result is used, and their difference is the sum of the configured parts, exactly.
//!
//! Most tests run with every clock at 1 GHz, where a cycle of any domain is a nanosecond; one runs on `agpm-table4` as it
//! is and waits for every clock edge on the way.

use crate::bench_machine::{Bench, Ran, machine, one_gigahertz};
use durawarp::engine::{Clock, Time};
use durawarp::kernel::memory::{DRAM_BASE, Medium, NVM_BASE};
use durawarp::machine::MachineSpec;
use durawarp::machine::address::Interleave;
use durawarp::machine::media::Media;

/// Issue cycle and first use of each access, one after another by one thread. An access is an instruction that puts
/// zero into `%d1` from `[%d0]`, and the address that `%d0` holds; what it finds in memory is zero.
fn stopwatch(bench: &mut Bench, accesses: &[(&str, u64)]) -> Vec<(u64, u64)> {
    let out = bench.buffer(16 * accesses.len() as u64 + 8, Medium::Dram);
    let mut body = String::from("mov.u64 %d1, 0;\nmov.u64 %d63, 0;\n");
    for (i, (instruction, address)) in accesses.iter().enumerate() {
        let (start, stop) = (10 + 2 * i, 11 + 2 * i);
        body += &format!(
            "add.s64 %d0, %d1, {address};
or.b64 %d63, %d63, %d0;
mov.u64 %d{start}, %clock64;
{instruction}
or.b64 %d63, %d63, %d1;
mov.u64 %d{stop}, %clock64;
"
        );
    }
    for i in 0..2 * accesses.len() {
        body += &format!("st.global.u64 [%out+{}], %d{};\n", 8 * i, 10 + i);
    }
    body += &format!("st.global.u64 [%out+{}], %d63;\n", 16 * accesses.len());
    bench.launch(&body, 1, 1, (out, 0, 0, 0));
    let ran: Ran = bench.run();
    ran.u64s(out, 2 * accesses.len()).chunks(2).map(|c| (c[0] + 1, c[1] - 1)).collect()
}

/// Cycles from issue to use of each access.
fn latencies(bench: &mut Bench, accesses: &[(&str, u64)]) -> Vec<u64> {
    stopwatch(bench, accesses).iter().map(|(issue, used)| used - issue).collect()
}

/// Addresses of a medium: one, another of its row, and one of another row of the same bank; all on one channel, the
/// first two in one slice.
fn row_neighbours(spec: &MachineSpec, base: u64) -> (u64, u64, u64) {
    let timebase = spec.timebase().unwrap();
    let map = Interleave::new(spec.l2.slices, spec.controller.channels, spec.l2.interleave_bytes);
    let media = Media::new(&spec.dram, &spec.nvm, &spec.bus, timebase.clock(spec.clock.memory_mhz.khz), timebase);
    let channel = |address| map.slice_of(address) / map.slices_per_channel();
    let place = |address| media.place(Medium::of(address), map.in_channel(address));
    let same_bank = |&a: &u64| channel(a) == channel(base) && place(a).bank == place(base).bank;
    let conflict = (base..).step_by(256).skip(1).filter(same_bank).find(|&a| place(a).row != place(base).row);
    assert_eq!((channel(base + 128), place(base + 128)), (channel(base), place(base)));
    (base, base + 128, conflict.unwrap())
}

/// From the issue of a load of one sector to its arrival at the tags of the L2, in ns at 1 GHz.
fn to_l2(s: &MachineSpec) -> u64 {
    let load_store_unit = 1;
    let header_flit = 1;
    load_store_unit + header_flit + u64::from(s.crossbar.latency_cycles + s.l2.pipeline_cycles + s.l1.miss_cycles)
}

/// From the data in the L2 to the use of a reply with `bytes` bytes, in ns at 1 GHz.
fn from_l2(s: &MachineSpec, bytes: u32) -> u64 {
    let flits = (8 + bytes).div_ceil(s.crossbar.flit_bytes);
    u64::from(flits + s.crossbar.latency_cycles + s.l1.fill_cycles)
}

/// The controller's two ends.
fn controller_ends(s: &MachineSpec) -> u64 {
    (s.controller.front_ns.ps + s.controller.back_ns.ps) / 1000
}

fn ns(nanos: durawarp::spec::Nanos) -> u64 {
    nanos.ps / 1000
}

#[test]
fn a_load_takes_the_sum_of_its_parts_at_every_level_of_either_medium() {
    // A precharge and a row time that differ from zero and from t_rcd, to tell the parts apart.
    let rows = "dram.t_rp_ns=15 nvm.t_rp_ns=17 nvm.t_rcd_ns=130 nvm.t_cl_ns=40";
    let spec = one_gigahertz(rows);
    for (base, medium) in [(DRAM_BASE, Medium::Dram), (NVM_BASE, Medium::Nvm)] {
        let mut bench = Bench::new(spec.clone());
        assert_eq!(bench.buffer(1 << 20, medium), base);
        let (first, same_row, other_row) = row_neighbours(&spec, base);
        let got = latencies(
            &mut bench,
            &[
                ("ld.global.u64 %d1, [%d0];", first),
                ("ld.global.u64 %d1, [%d0];", first),
                ("ld.global.cg.u64 %d1, [%d0];", first),
                ("ld.global.u64 %d1, [%d0];", same_row),
                ("ld.global.u64 %d1, [%d0];", other_row),
                ("ld.global.u64 %d1, [%d0];", first + 64),
            ],
        );
        let m = if medium == Medium::Dram { spec.dram.clone() } else { spec.nvm.rows() };
        let l1 = u64::from(spec.l1.hit_cycles);
        let l2 = to_l2(&spec) + from_l2(&spec, 32);
        let row_hit = l2 + controller_ends(&spec) + ns(m.t_cl_ns) + 1; // one bus cycle a sector
        let row_closed = row_hit + ns(m.t_rcd_ns);
        let row_conflict = row_closed + ns(m.t_rp_ns);
        assert_eq!(got, [row_closed, l1, l2, row_hit, row_conflict, row_conflict], "{medium:?}");
    }
}

#[test]
fn a_whole_line_adds_three_flits_and_three_bus_cycles() {
    let spec = one_gigahertz("");
    let mut bench = Bench::new(spec.clone());
    let (a, out) = (bench.buffer(4096, Medium::Dram), bench.buffer(4096, Medium::Dram));
    let body = "mul.wide.u32 %d5, %tid, 4;
add.s64 %d0, %a, %d5;
or.b64 %d63, %d63, %d0;
mov.u64 %d10, %clock64;
ld.global.u32 %r1, [%d0];
or.b32 %r2, %r1, %r1;
mov.u64 %d11, %clock64;
sub.s64 %d12, %d11, %d10;
add.s64 %d5, %d5, %d5;
add.s64 %d5, %d5, %out;
st.global.u64 [%d5], %d12;";
    bench.launch(body, 1, 32, (out, a, 0, 0));
    let ran = bench.run();
    let line = to_l2(&spec) + from_l2(&spec, 128) + controller_ends(&spec);
    let expected = line + ns(spec.dram.t_rcd_ns) + ns(spec.dram.t_cl_ns) + 4;
    assert_eq!(ran.u64s(out, 1)[0] - 2, expected);
    assert_eq!(from_l2(&spec, 128) - from_l2(&spec, 32), 3);
}

#[test]
fn the_real_clocks_add_the_wait_for_each_edge_and_nothing_else() {
    let spec = machine("agpm-table4", "");
    let base = spec.timebase().unwrap();
    let [core, crossbar, l2, memory] =
        [spec.clock.core_mhz, spec.clock.crossbar_mhz, spec.clock.l2_mhz, spec.clock.memory_mhz]
            .map(|mhz| base.clock(mhz.khz));
    let t = |nanos: durawarp::spec::Nanos| base.ticks_of_ps(nanos.ps);
    let cycles = |clock: Clock, n: u32| clock.cycles(u64::from(n));
    let mut bench = Bench::new(spec.clone());
    let a = bench.buffer(1 << 20, Medium::Nvm);
    let accesses =
        [("ld.global.u64 %d1, [%d0];", a), ("ld.global.u64 %d1, [%d0];", a + 128), ("ld.global.cg.u64 %d1, [%d0];", a)];
    let got = stopwatch(&mut bench, &accesses);
    let at_tags = |issue: u64| -> Time {
        let leaves = crossbar.edge_at_or_after(core.cycles(issue + 1)) + crossbar.cycles(1);
        let hop = cycles(crossbar, spec.crossbar.latency_cycles);
        leaves + hop + cycles(l2, spec.l2.pipeline_cycles) + cycles(core, spec.l1.miss_cycles)
    };
    let back = |ready: Time| -> u64 {
        let leaves = crossbar.edge_at_or_after(ready) + crossbar.cycles(2);
        let arrives = leaves + cycles(crossbar, spec.crossbar.latency_cycles) + cycles(core, spec.l1.fill_cycles);
        arrives.div_ceil(core.period_ticks())
    };
    let memory_data = |at_tags: Time, row_open: bool| -> Time {
        let command = memory.edge_at_or_after(at_tags + t(spec.controller.front_ns));
        let column = if row_open { command } else { memory.edge_at_or_after(command + t(spec.nvm.t_rcd_ns)) };
        column + t(spec.nvm.t_cl_ns) + memory.cycles(1) + t(spec.controller.back_ns)
    };
    let expected: Vec<(u64, u64)> = [Some(false), Some(true), None]
        .iter()
        .zip(&got)
        .map(|(row_open, &(issue, _))| {
            let tags = at_tags(issue);
            (issue, back(row_open.map_or(tags, |open| memory_data(tags, open))))
        })
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn shared_memory_and_constants_answer_after_their_latency() {
    let spec = one_gigahertz("shared.latency_cycles=31 latency.const_cycles=12");
    let mut bench = Bench::new(spec.clone());
    let out = bench.buffer(64, Medium::Dram);
    let body = ".shared .align 8 .b8 s[64];
mov.u64 %d0, 8;
mov.u64 %d63, 0;
st.shared.u64 [%d0], %d0;
or.b64 %d63, %d63, %d0;
mov.u64 %d10, %clock64;
ld.shared.u64 %d1, [%d0];
or.b64 %d63, %d63, %d1;
mov.u64 %d11, %clock64;
atom.shared.add.u64 %d4, [%d0], 1;
or.b64 %d63, %d63, %d4;
mov.u64 %d12, %clock64;
st.global.u64 [%out], %d10;
st.global.u64 [%out+8], %d11;
st.global.u64 [%out+16], %d12;
st.global.u64 [%out+24], %d4;
st.global.u64 [%out+32], %d63;";
    bench.launch(body, 1, 1, (out, 0, 0, 0));
    let ran = bench.run();
    let [start, loaded, added, value] = ran.u64s(out, 4)[..] else { unreachable!() };
    assert_eq!(loaded - start - 2, 31);
    assert_eq!(added - loaded - 2, 31);
    assert_eq!(value, 8);
}

#[test]
fn an_atomic_takes_the_way_to_the_l2_its_lanes_and_the_way_back() {
    for lane_cycles in [0, 3] {
        let spec = one_gigahertz(&format!("l2.atomic_pass_cycles={lane_cycles}"));
        let mut bench = Bench::new(spec.clone());
        let a = bench.buffer(4096, Medium::Dram);
        let got = latencies(&mut bench, &[("ld.global.u64 %d1, [%d0];", a), ("atom.global.add.u64 %d1, [%d0], 0;", a)]);
        assert_eq!(got[1], to_l2(&spec) + lane_cycles + from_l2(&spec, 8), "{lane_cycles}");
    }
}

#[test]
fn the_cards_answer_after_the_latencies_that_were_measured_on_them() {
    // Jia et al. (2018) for the V100, Abdelkhalik et al. (2022) for the A100; Huerta et al. (2025) for the L1 of the 3070, whose
    // L2 is its configuration's; Dewing for the 4090, the H100, the B200 and the 5090; an H200: L1, L2, shared memory, a dependent add. Last
    // memory, with clock edges on the way, where it was measured.
    for (name, published, of_memory) in [
        ("volta-v100", [28, 193, 19, 4], None),
        ("ampere-a100", [33, 200, 23, 4], Some(290)),
        ("ampere-3070", [32, 205, 24, 4], None),
        ("ada-4090", [40, 296, 24, 4], Some(636)),
        ("hopper-h100", [40, 291, 23, 4], Some(700)),
        ("hopper-h200", [33, 281, 23, 4], Some(690)),
        ("blackwell-b200", [40, 295, 19, 4], Some(860)),
        ("blackwell-5090", [44, 360, 24, 4], Some(936)),
    ] {
        let spec = machine(name, "");
        let mut bench = Bench::new(spec.clone());
        let a = bench.buffer(4096, Medium::Dram);
        let load = |cached| (if cached { "ld.global.ca.u64 %d1, [%d0];" } else { "ld.global.cg.u64 %d1, [%d0];" }, a);
        let [memory, l1, l2] = latencies(&mut bench, &[load(true), load(true), load(false)])[..] else { panic!() };
        let mut bench = Bench::new(spec.clone());
        let out = bench.buffer(64, Medium::Dram);
        let adds = |count: usize| "add.u32 %r1, %r1, %r1;\n".repeat(count);
        let body = format!(
            ".shared .align 8 .b8 s[64];
mov.u64 %d0, 8;
mov.u64 %d63, 0;
st.shared.u64 [%d0], %d0;
or.b64 %d63, %d63, %d0;
mov.u64 %d10, %clock64;
ld.shared.u64 %d1, [%d0];
or.b64 %d63, %d63, %d1;
mov.u64 %d11, %clock64;
mov.u32 %r1, 1;
{}mov.u64 %d12, %clock64;
{}mov.u64 %d13, %clock64;
st.global.u64 [%out], %d10;
st.global.u64 [%out+8], %d11;
st.global.u64 [%out+16], %d12;
st.global.u64 [%out+24], %d13;
st.global.u64 [%out+32], %d63;",
            adds(1),
            adds(17)
        );
        bench.launch(&body, 1, 1, (out, 0, 0, 0));
        let ran = bench.run();
        let [start, loaded, one, all] = ran.u64s(out, 4)[..] else { panic!() };
        // The clock is read a unit's interval after the use of what came; the stopwatch knows of one cycle.
        let interval = u64::from(spec.interval.logic_cycles);
        let [memory, l1, l2] = [memory, l1, l2].map(|cycles| cycles + 1 - interval);
        assert_eq!([l1, l2, loaded - start - 1 - interval, (all - one) / 17], published, "{name}");
        if let Some(measured) = of_memory {
            // A chase through the card's memory, whose hops close rows; here one access to rows that are closed.
            let measured: u64 = measured;
            assert!(memory.abs_diff(measured) * 100 <= 3 * measured, "{name}: {memory}");
        }
    }
}
