//! The memory pipeline in front of the L1 and of shared memory, as Huerta et al. (MICRO 2025) measured it on a card of
//! compute capability 8.6: in which cycles memory instructions issue (table 1), what loads take by their width (table 2).

use durawarp::kernel::memory::Medium;

use crate::bench_machine::{Bench, SETTLE, machine};

/// Cycles after the first of `count` consecutive loads in which the last one issues: of each warp, one a scheduler.
fn issues(machine_name: &str, set: &str, warps: u32, load: &str, count: usize) -> Vec<u64> {
    let mut bench = Bench::new(machine(machine_name, set));
    let (out, a) = (bench.buffer(4096, Medium::Dram), bench.buffer(65_536, Medium::Dram));
    let loads: String = (0..count).map(|nth| load.replace("%r0", &format!("%r{}", 10 + nth)) + "\n").collect();
    // Results that are used lie in registers of their own.
    let used: String = (0..count).map(|nth| format!("or.b32 %r63, %r63, %r{};\n", 10 + nth)).collect();
    let body = format!(
        ".shared .align 16 .b8 s[2048];
mul.wide.u32 %d0, %tid, 4;
add.s64 %d1, %a, %d0;
mul.wide.u32 %d3, %tid, 16;
ld.global.ca.u32 %r1, [%d1];
or.b32 %r63, %r1, %r1;
{SETTLE}bar.sync 0;
mov.u64 %d10, %clock64;
{loads}mov.u64 %d11, %clock64;
{used}mul.wide.u32 %d0, %tid, 16;
add.s64 %d2, %out, %d0;
st.global.u64 [%d2], %d10;
st.global.u64 [%d2+8], %d11;
st.global.u32 [%a], %r63;"
    );
    bench.launch(&body, 1, 32 * warps, (out, a, 0, 0));
    let ran = bench.run();
    let read = ran.u64s(out, 64 * warps as usize);
    let of_warp = |warp: usize| (read[64 * warp], read[64 * warp + 1]);
    let began = of_warp(0).0;
    // Clocks are read in the cycles before the first load and after the last.
    let after = |warp| {
        let (start, stop) = of_warp(warp);
        assert_eq!(start, began, "all begin at once");
        stop - start - 2
    };
    (0..warps as usize).map(after).collect()
}

#[test]
fn memory_instructions_issue_in_the_cycles_that_were_measured() {
    let load = "ld.global.ca.u32 %r0, [%d1];";
    for warps in 1..=4 {
        let measured = |count: u64, warp: u64| match count {
            1..=5 => count - 1,
            // The sixth issues in cycle 13, 15, 17 or 19 where the first does in cycle 2; the next when the pipeline that
            // all share has served every scheduler, and an address unit is free.
            _ => 11 + (count - 6) * 4.max(2 * u64::from(warps)) + 2 * warp,
        };
        for count in [1, 5, 6, 7, 8, 9] {
            let expected: Vec<u64> = (0..u64::from(warps)).map(|warp| measured(count as u64, warp)).collect();
            assert_eq!(issues("ampere-3070", "", warps, load, count), expected, "{warps} warps, load {count}");
        }
    }
    // Loads of shared memory and stores hold places as well.
    assert_eq!(issues("ampere-3070", "", 1, "ld.shared.u32 %r0, [%d3];", 6), [11]);
    assert_eq!(issues("ampere-3070", "", 1, "st.global.u32 [%d1], %r63;", 6), [11]);
}

#[test]
fn one_place_more_lets_one_instruction_more_issue_and_without_places_the_load_store_unit_decides() {
    let load = "ld.global.ca.u32 %r0, [%d1];";
    assert_eq!(issues("ampere-3070", "sm.memory_entries=6", 1, load, 6), [5]);
    assert_eq!(issues("ampere-3070", "sm.memory_entries=6", 1, load, 7), [11]);
    // A request leaves every cycle: there is always room.
    assert_eq!(issues("ampere-3070", "sm.memory_entries=0 interval.request_cycles=1", 1, load, 40), [39]);
    // Each scheduler computes an address in eight cycles: the second is served at 9, and its place is free ten later.
    assert_eq!(issues("ampere-3070", "sm.memory_entries=1 interval.address_cycles=8", 1, load, 3), [22]);
}

/// Cycles from the issue of a load by a whole warp to that of what uses the last register, where its bytes are near.
fn used_after(load: &str) -> u64 {
    let spec = machine("ampere-3070", "");
    let interval = u64::from(spec.interval.logic_cycles);
    let mut bench = Bench::new(spec);
    let (out, a) = (bench.buffer(4096, Medium::Dram), bench.buffer(4096, Medium::Dram));
    let body = format!(
        ".shared .align 16 .b8 s[2048];
mul.wide.u32 %d0, %tid, 4;
add.s64 %d1, %a, %d0;
mul.wide.u32 %d2, %tid, 8;
add.s64 %d3, %a, %d2;
mul.wide.u32 %d4, %tid, 16;
add.s64 %d5, %a, %d4;
ld.global.ca.v4.u32 {{%r1, %r2, %r3, %r4}}, [%d5];
or.b32 %r63, %r1, %r4;
{SETTLE}mov.u64 %d10, %clock64;
{load}
or.b32 %r63, %r63, %r7;
mov.u64 %d11, %clock64;
st.global.u64 [%out], %d10;
st.global.u64 [%out+8], %d11;"
    );
    bench.launch(&body, 1, 32, (out, a, 0, 0));
    let ran = bench.run();
    let [start, stop] = ran.u64s(out, 2)[..] else { panic!() };
    stop - interval - (start + 1)
}

#[test]
fn loads_take_what_was_measured_by_their_width() {
    for (load, published) in [
        ("ld.global.ca.u32 %r7, [%d1];", 32),
        ("ld.global.ca.v2.u32 {%r6, %r7}, [%d3];", 34),
        ("ld.global.ca.v4.u32 {%r4, %r5, %r6, %r7}, [%d5];", 38),
        ("ld.shared.u32 %r7, [%d0];", 24),
        ("ld.shared.v2.u32 {%r6, %r7}, [%d2];", 24),
        ("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%d4];", 26),
    ] {
        assert_eq!(used_after(load), published, "{load}");
    }
}
