//! The way to the L2 as a data sheet: coalescing, misses under way and their limits, the miss queue, serialisation in
//! the crossbar, credits. Every clock at 1 GHz, so that a cycle of any domain is a nanosecond.

use crate::bench_machine::{Bench, Ran, machine, one_gigahertz};
use durawarp::kernel::memory::{DRAM_BASE, Medium};
use durawarp::machine::MachineSpec;
use durawarp::machine::address::Interleave;

/// One load by one warp, lane `i` at `offset + i * stride` bytes: accesses and sectors that the L2 saw.
fn transactions(spec: &MachineSpec, load: &str, offset: u32, stride: u32) -> (u64, u64) {
    let mut bench = Bench::new(spec.clone());
    let (out, a) = (bench.buffer(256, Medium::Dram), bench.buffer(1 << 14, Medium::Dram));
    let body = format!(
        "mul.wide.u32 %d1, %tid, {stride};
add.s64 %d1, %d1, %a;
add.s64 %d1, %d1, {offset};
{load}
setp.eq.s32 %p1, %r1, 77;
@%p1 st.global.u32 [%out], %r1;"
    );
    bench.launch(&body, 1, 32, (out, a, 0, 0));
    let ran = bench.run();
    (ran.l2("reads"), ran.mc("dram_read_bytes") / 32)
}

#[test]
fn a_warp_is_coalesced_by_lines_and_sectors() {
    let spec = one_gigahertz("sm.coalescer=warp_sectored");
    let word = "ld.global.u32 %r1, [%d1];";
    assert_eq!(transactions(&spec, word, 0, 4), (1, 4), "consecutive words");
    assert_eq!(transactions(&spec, word, 0, 0), (1, 1), "one word for all");
    assert_eq!(transactions(&spec, word, 0, 8), (2, 8), "stride of two words");
    assert_eq!(transactions(&spec, word, 0, 128), (32, 32), "stride of a line");
    assert_eq!(transactions(&spec, word, 4, 4), (2, 5), "misaligned by a word");
    assert_eq!(transactions(&spec, word, 64, 4), (2, 4), "misaligned by half a line");
    assert_eq!(transactions(&spec, "ld.global.u8 %r1, [%d1];", 0, 1), (1, 1), "bytes");
    assert_eq!(transactions(&spec, "ld.global.v2.u32 {%r1, %r2}, [%d1];", 0, 8), (2, 8), "pairs");
    assert_eq!(transactions(&spec, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];", 0, 16), (4, 16), "quads");
}

#[test]
fn a_warp_is_coalesced_by_sectors() {
    let spec = one_gigahertz("sm.coalescer=warp_by_sector");
    let word = "ld.global.u32 %r1, [%d1];";
    assert_eq!(transactions(&spec, word, 0, 4), (4, 4), "consecutive words");
    assert_eq!(transactions(&spec, word, 0, 0), (1, 1), "one word for all");
    assert_eq!(transactions(&spec, word, 4, 4), (5, 5), "misaligned by a word");
    assert_eq!(transactions(&spec, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];", 0, 16), (16, 16), "quads");
}

#[test]
fn half_warps_are_coalesced_by_segments() {
    let spec = one_gigahertz("sm.coalescer=half_warp_legacy");
    let word = "ld.global.u32 %r1, [%d1];";
    assert_eq!(transactions(&spec, word, 0, 4), (2, 4), "two halves of one line");
    assert_eq!(transactions(&spec, word, 0, 0).0, 1, "both halves want one sector: the second joins the fill");
    assert_eq!(transactions(&spec, word, 0, 8), (2, 8), "a line a half-warp");
    assert_eq!(transactions(&spec, word, 0, 128), (32, 32), "32 B segments");
    // Each half spans 64 bytes from 4 on: in one 128 B segment, so all of it; the second half leaves the line by 4.
    assert_eq!(transactions(&spec, word, 4, 4).1, 5, "misaligned by a word");
    assert_eq!(transactions(&spec, word, 64, 4), (2, 4), "each half in its own line");
    assert_eq!(transactions(&spec, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];", 0, 16), (4, 16), "quads");
}

/// Writes to the L2 and cleanings of an L1, of a thread that loads a word of local memory and stores it `stores` times;
/// what it has at last.
fn local_stores(policy: &str, stores: u32, between: &str) -> (u64, u64, u32) {
    let mut bench = Bench::new(one_gigahertz(&format!("l1.local_writes={policy} l1.fence_invalidates=false")));
    let out = bench.buffer(256, Medium::Dram);
    let store = format!("ld.local.u32 %r2, [L];\nadd.s32 %r2, %r2, 1;\nst.local.u32 [L], %r2;\n{between}");
    let body = format!(
        ".local .align 4 .b8 L[4];\nmov.u32 %r1, 5;\nst.local.u32 [L], %r1;\n{}ld.local.u32 %r3, [L];\n\
        st.global.u32 [%out], %r3;",
        store.repeat(stores as usize)
    );
    bench.launch(&body, 1, 1, (out, 0, 0, 0));
    let ran = bench.run();
    (ran.l2("writes"), ran.sm("l1_cleanings"), ran.u32s(out, 1)[0])
}

#[test]
fn local_memory_is_written_back_only_where_that_is_asked_and_its_line_is_there() {
    // The first store finds nothing; the store to global memory is one more write.
    assert_eq!(local_stores("as_global", 6, ""), (8, 0, 11));
    assert_eq!(local_stores("write_back", 6, ""), (2, 0, 11));
    assert_eq!(local_stores("write_back", 6, "membar.gl;\n"), (2, 0, 11), "nobody else looks: a fence leaves it");
}

#[test]
fn stores_are_coalesced_like_loads() {
    for (rule, lines) in [("warp_sectored", 1), ("warp_by_sector", 4), ("half_warp_legacy", 2)] {
        let mut bench = Bench::new(one_gigahertz(&format!("sm.coalescer={rule}")));
        let out = bench.buffer(256, Medium::Dram);
        bench.launch(
            "mul.wide.u32 %d1, %tid, 4;\nadd.s64 %d1, %d1, %out;\nst.global.u32 [%d1], %tid;",
            1,
            32,
            (out, 0, 0, 0),
        );
        let ran = bench.run();
        assert_eq!((ran.l2("writes"), ran.l2("fetches")), (lines, 0), "{rule}");
        assert_eq!(ran.u32s(out, 32), (0..32).collect::<Vec<u32>>(), "{rule}");
    }
}

/// One thread's loads from these addresses, issued in consecutive cycles and found in the L2: cycles from the issue of
/// the first to the use of number `watched`, and the run.
fn burst(spec: &MachineSpec, load: &str, addresses: &[u64], watched: usize) -> (Ran, u64) {
    let mut bench = Bench::new(spec.clone());
    let out = bench.buffer(4096, Medium::Dram);
    assert_eq!(out, DRAM_BASE);
    bench.buffer(1 << 20, Medium::Dram);
    let mut body = String::from("mov.u32 %r60, 0;\n");
    for (i, address) in addresses.iter().enumerate() {
        body += &format!("ld.global.cg.u32 %r{i}, [{address}];\nadd.s32 %r60, %r60, %r{i};\n");
    }
    body += "membar.gl;\nmov.u64 %d40, %clock64;\n";
    for (i, address) in addresses.iter().enumerate() {
        body += &format!("{load} %r{i}, [{address}];\n");
    }
    body += &format!("add.s32 %r61, %r60, %r{watched};\nmov.u64 %d41, %clock64;\n");
    for i in 0..addresses.len() {
        body += &format!("add.s32 %r61, %r61, %r{i};\n");
    }
    body += "sub.s64 %d42, %d41, %d40;\nst.global.u64 [%out], %d42;\nst.global.u32 [%a], %r61;";
    bench.launch(&body, 1, 1, (out, out + 2048, 0, 0));
    let ran = bench.run();
    let used = ran.u64s(out, 1)[0] - 2;
    (ran, used)
}

/// `n` lines that one slice serves, or one line a slice in turn.
fn lines(spec: &MachineSpec, n: usize, one_slice: bool) -> Vec<u64> {
    let map = Interleave::new(spec.l2.slices, spec.controller.channels, spec.l2.interleave_bytes);
    let start = DRAM_BASE + 8192;
    let mut seen = std::collections::BTreeSet::new();
    let fits = |&address: &u64| {
        if one_slice { map.slice_of(address) == map.slice_of(start) } else { seen.insert(map.slice_of(address)) }
    };
    (start..).step_by(256).filter(fits).take(n).collect()
}

/// Issue to use of a load of one sector that hits in the L2.
fn l2_hit(s: &MachineSpec) -> u64 {
    u64::from(1 + 1 + 2 * s.crossbar.latency_cycles + s.l2.pipeline_cycles + s.l1.miss_cycles + 2 + s.l1.fill_cycles)
}

#[test]
fn loads_of_a_line_under_way_join_its_fill() {
    let spec = one_gigahertz("");
    let line = lines(&spec, 1, true)[0];
    let (ran, used) = burst(&spec, "ld.global.u32", &[line, line + 4, line + 8], 0);
    assert_eq!((ran.sm("l1_merges"), ran.sm("l1_loads"), ran.l2("reads")), (2, 3, 3 + 1));
    assert_eq!(used, l2_hit(&spec), "one way there and back");
    let (_, last) = burst(&spec, "ld.global.u32", &[line, line + 4, line + 8], 2);
    assert_eq!(last, used, "all answered at once");
    // Another sector of the line is a miss of its own.
    let (ran, _) = burst(&spec, "ld.global.u32", &[line, line + 32], 1);
    assert_eq!((ran.sm("l1_merges"), ran.l2("reads")), (0, 2 + 2));
}

#[test]
fn a_hit_passes_a_miss_under_way() {
    let spec = one_gigahertz("");
    let mut bench = Bench::new(spec.clone());
    let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(1 << 16, Medium::Dram));
    let body = "ld.global.u32 %r1, [%a];
add.s32 %r2, %r1, 1;
st.global.u32 [%out+8], %r2;
mov.u64 %d10, %clock64;
ld.global.u32 %r3, [%a+32768];
ld.global.u32 %r4, [%a+4];
add.s32 %r5, %r4, 1;
mov.u64 %d11, %clock64;
sub.s64 %d12, %d11, %d10;
st.global.u64 [%out], %d12;
st.global.u32 [%out+12], %r5;
st.global.u32 [%out+16], %r3;";
    bench.launch(body, 1, 1, (out, a, 0, 0));
    let ran = bench.run();
    assert_eq!((ran.sm("l1_hits"), ran.mc("dram_reads")), (1, 2));
    assert_eq!(ran.u64s(out, 1)[0], 2 + u64::from(spec.l1.hit_cycles) + 1);
}

#[test]
fn the_load_that_finds_no_mshr_waits_for_a_fill_and_the_one_before_it_does_not() {
    let spec = |entries: u32| one_gigahertz(&format!("l1.mshr_entries={entries}"));
    let addresses = lines(&spec(8), 4, false);
    let last = |entries: u32| burst(&spec(entries), "ld.global.u32", &addresses, 3).1;
    let hit = l2_hit(&spec(4));
    // Replies are two flits apart at the SM; requests a cycle.
    assert_eq!(last(4), hit + 3 * 2, "on time");
    // The first fill is there at 1 + hit; the fourth load's access starts in that cycle, not one after its issue.
    assert_eq!(last(3), 2 * hit - 1, "one MSHR short");
    assert_eq!(last(1), 4 * hit - 3, "one after another");
}

#[test]
fn an_mshr_merges_so_many_loads_and_the_next_waits() {
    let spec = |merges: u32| one_gigahertz(&format!("l1.mshr_merges={merges}"));
    let line = lines(&spec(8), 1, true)[0];
    let addresses = [line, line + 4, line + 8];
    let run = |merges: u32| burst(&spec(merges), "ld.global.u32", &addresses, 2);
    assert_eq!(run(3).0.sm("l1_merges"), 2, "on time");
    let (ran, used) = run(2);
    assert_eq!((ran.sm("l1_merges"), ran.sm("l1_hits")), (1, 1), "the third comes after the fill, and hits");
    let hit = l2_hit(&spec(2));
    assert_eq!(used, hit - 1 + u64::from(spec(2).l1.hit_cycles));
}

#[test]
fn replies_leave_the_crossbar_a_flit_a_cycle() {
    // A sector is 40 B with its header: two flits of 32 B; a whole line is 136 B: five.
    let spec = one_gigahertz("");
    let addresses = lines(&spec, 12, false);
    let (_, used) = burst(&spec, "ld.global.u32", &addresses, 11);
    assert_eq!(used, l2_hit(&spec) + 11 * 2);
    let wide = one_gigahertz("crossbar.flit_bytes=40");
    let (_, used) = burst(&wide, "ld.global.u32", &addresses, 11);
    assert_eq!(used, l2_hit(&wide) - 1 + 11, "one flit each: as fast as they are asked for");
}

#[test]
fn requests_to_one_slice_go_as_fast_as_its_data_port() {
    for (port_bytes, cycles) in [(32, 1), (16, 2), (8, 4)] {
        // Replies that do not queue behind each other: one flit a reply.
        let spec = one_gigahertz(&format!("crossbar.flit_bytes=40 l2.port_bytes={port_bytes}"));
        let (_, used) = burst(&spec, "ld.global.u32", &lines(&spec, 8, true), 7);
        assert_eq!(used, l2_hit(&spec) - 1 + 7 * cycles, "{port_bytes} bytes a cycle");
    }
}

#[test]
fn a_packet_without_a_credit_waits_for_one_to_come_back() {
    let spec = |packets: u32| one_gigahertz(&format!("crossbar.buffer_packets={packets} crossbar.flit_bytes=40"));
    let addresses = lines(&spec(4), 4, true);
    let last = |packets: u32| burst(&spec(packets), "ld.global.cg.u32", &addresses, 3).1;
    let s = spec(4);
    let hit = l2_hit(&s) - 1;
    // A credit is given when the slice takes the packet and travels as a reply does, but without flits.
    let request = u64::from(1 + s.crossbar.latency_cycles + s.l2.pipeline_cycles + s.l1.miss_cycles);
    let credit_loop = request + u64::from(s.crossbar.latency_cycles + s.l1.fill_cycles);
    assert_eq!(last(4), hit + 3, "on time");
    assert_eq!(last(3), hit + credit_loop, "one short: the fourth follows the first's credit");
    assert_eq!(last(2), hit + credit_loop + 1, "two short: the fourth follows the second's");
    assert_eq!(last(1), hit + 3 * credit_loop, "one at a time");
}

#[test]
fn a_full_miss_queue_stops_the_load_store_unit_and_that_the_warp() {
    // Without credits to spare, the miss queue of two fills: the fifth access waits in the load-store unit.
    let spec = one_gigahertz("crossbar.buffer_packets=1 l1.miss_queue_entries=2 sm.lsu_entries=1");
    let addresses = lines(&spec, 6, true);
    let (ran, used) = burst(&spec, "ld.global.u32", &addresses, 5);
    let (free, used_free) = burst(&one_gigahertz("crossbar.buffer_packets=1"), "ld.global.u32", &addresses, 5);
    assert!(ran.sm("slots_memory_full") > 0, "the warp itself was held back");
    assert_eq!(free.sm("slots_memory_full"), 0);
    assert_eq!(used, used_free, "credits, not the queue, set the pace");
}

#[test]
fn titan_x_sends_global_loads_past_the_l1_and_keeps_read_only_ones() {
    let spec = machine("titan-x", "");
    assert!(!spec.l1.global_loads);
    let twice = |load: &str| {
        let mut bench = Bench::new(spec.clone());
        let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(64, Medium::Dram));
        let body = format!(
            "{load} %r1, [%a];\nadd.s32 %r2, %r1, 1;\nst.global.u32 [%out], %r2;\nmembar.cta;
add.s64 %d1, %a, 0;\n{load} %r3, [%d1];\nadd.s32 %r3, %r3, %r2;\nst.global.u32 [%out+4], %r3;"
        );
        bench.launch(&body, 1, 1, (out, a, 0, 0));
        let ran = bench.run();
        (ran.l2("reads"), ran.sm("l1_loads"), ran.sm("l1_bypasses"))
    };
    assert_eq!(twice("ld.global.u32"), (2, 0, 2));
    assert_eq!(twice("ld.global.ca.u32"), (2, 0, 2));
    assert_eq!(twice("ld.global.nc.u32").2, 0);
    assert_eq!(twice("ld.global.nc.u32").1, 2);
}

#[test]
fn a_launch_takes_5000_core_cycles_and_the_way_to_the_sm_and_back() {
    for name in ["titan-x", "agpm-table4"] {
        let spec = machine(name, "");
        let base = spec.timebase().unwrap();
        let core = base.clock(spec.clock.core_mhz.khz);
        let run = |spec: &MachineSpec| {
            let mut bench = Bench::new(spec.clone());
            let out = bench.buffer(64, Medium::Dram);
            bench.launch("", 1, 32, (out, 0, 0, 0));
            bench.launch("", 1, 32, (out, 0, 0, 0));
            let ran = bench.run();
            let [first, second] = ran.assembly.command_processor().launches() else { panic!("two launches") };
            assert_eq!(first.start, 0);
            assert_eq!(second.start, first.end, "one after another");
            assert_eq!(ran.assembly.command_processor().ended(), Some(second.end));
            first.end
        };
        let whole = run(&spec);
        let mut immediate = spec.clone();
        immediate.dispatch.launch_ns.ps = 0;
        assert_eq!((whole - run(&immediate)) / core.period_ticks(), 5000, "{name}");
        // A longer way to the SM is paid there, in core cycles, and back.
        let mut far = spec.clone();
        far.dispatch.command_ns.ps = 2 * spec.dispatch.command_ns.ps;
        let way = base.ticks_of_ps(spec.dispatch.command_ns.ps);
        let more = run(&far) - whole;
        assert!(more.abs_diff(2 * way) < core.period_ticks(), "{name}: {more} ticks more for twice {way}");
    }
}
