//! What a program may rely on in simulated time: who sees which store when, what fences and barriers wait for, and how
//! many CTAs an SM holds.

use crate::bench_machine::{Bench, machine, one_gigahertz};
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;

#[test]
fn a_load_sees_its_threads_own_store_also_past_a_fill_of_the_line_under_way() {
    // The first load's fill, without the store, comes back after the second load has looked into the L1.
    for second in ["ld.global.u32", "ld.global.cg.u32", "ld.volatile.global.u32"] {
        let mut bench = Bench::new(one_gigahertz(""));
        let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(1024, Medium::Dram));
        bench.put_u32s(a, &[5; 32]);
        let body = format!(
            "mov.u32 %r9, 7;
ld.global.u32 %r1, [%a];
st.global.u32 [%a], %r9;
{second} %r2, [%a];
{second} %r3, [%a+4];
ld.global.u32 %r4, [%a];
st.global.u32 [%out], %r1;
st.global.u32 [%out+4], %r2;
st.global.u32 [%out+8], %r3;
st.global.u32 [%out+12], %r4;"
        );
        bench.launch(&body, 1, 1, (out, a, 0, 0));
        let ran = bench.run();
        assert_eq!(ran.u32s(out, 4), [5, 7, 5, 7], "{second}");
    }
}

#[test]
fn loads_that_look_into_the_l1_between_two_fills_of_a_line_see_the_store_between_them() {
    // Two loads share an MSHR; the next waits for any reply, which is the fill that left before the store.
    let mut bench = Bench::new(one_gigahertz("l1.mshr_merges=2"));
    let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(1024, Medium::Dram));
    bench.put_u32s(a, &[5; 32]);
    let mut body = String::from("mov.u32 %r40, 7;\nld.global.u32 %r0, [%a];\nst.global.u32 [%a], %r40;\n");
    for i in 1..12 {
        body += &format!("ld.global.u32 %r{i}, [%a];\n");
    }
    for i in 0..12 {
        body += &format!("st.global.u32 [%out+{}], %r{i};\n", 4 * i);
    }
    bench.launch(&body, 1, 1, (out, a, 0, 0));
    assert_eq!(bench.run().u32s(out, 12), [5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
}

/// CTA 0, on one SM, loads a word, waits until CTA 1, on another, has stored to it, and loads it again with `again`.
fn other_sms_store_seen_by(again: &str, between: &str) -> u32 {
    let mut bench = Bench::new(one_gigahertz("sm.count=2"));
    let (out, a) = (bench.buffer(256, Medium::Dram), bench.buffer(1024, Medium::Dram));
    bench.put_u32s(a, &[1]);
    // a[0] is the word, a[64] says that CTA 0 has loaded it, a[128] that CTA 1 has stored to it.
    let body = format!(
        "mov.u32 %r9, 1;
setp.ne.s32 %p1, %cta, 0;
@%p1 bra WRITER;
ld.global.ca.u32 %r1, [%a];
st.global.u32 [%out], %r1;
st.global.u32 [%a+256], %r1;
WAIT0:
ld.volatile.global.u32 %r2, [%a+512];
setp.eq.s32 %p2, %r2, 0;
@%p2 bra WAIT0;
{between}
{again} %r3, [%a];
st.global.u32 [%out+4], %r3;
bra END;
WRITER:
ld.volatile.global.u32 %r2, [%a+256];
setp.eq.s32 %p2, %r2, 0;
@%p2 bra WRITER;
mov.u32 %r4, 2;
st.global.u32 [%a], %r4;
membar.gl;
st.global.u32 [%a+512], %r9;
END:"
    );
    bench.launch(&body, 2, 1, (out, a, 0, 0));
    let ran = bench.run();
    assert_eq!(ran.u32s(out, 1), [1], "the first load");
    assert_eq!(ran.u32s(a, 1), [2], "memory");
    ran.u32s(out + 4, 1)[0]
}

#[test]
fn another_sms_store_is_seen_by_loads_past_the_l1_and_not_by_a_line_kept_there() {
    assert_eq!(other_sms_store_seen_by("ld.global.ca.u32", ""), 1, "a stale line");
    for past in ["ld.global.cg.u32", "ld.global.cv.u32", "ld.volatile.global.u32", "ld.relaxed.gpu.global.u32"] {
        assert_eq!(other_sms_store_seen_by(past, ""), 2, "{past}");
    }
    let after_past = other_sms_store_seen_by("ld.global.ca.u32", "ld.global.cg.u32 %r7, [%a];");
    assert_eq!(after_past, 2, "once seen past the L1, the older value in it must not come back");
    for fence in ["membar.gl;", "fence.acq_rel.gpu;", "membar.sys;"] {
        assert_eq!(other_sms_store_seen_by("ld.global.ca.u32", fence), 2, "after {fence}");
    }
    assert_eq!(other_sms_store_seen_by("ld.global.ca.u32", "membar.cta;"), 1, "a fence within the CTA promises less");
}

#[test]
fn a_fence_waits_until_stores_are_performed_at_the_l2() {
    let spec = one_gigahertz("");
    let time = |work: &str| {
        let mut bench = Bench::new(spec.clone());
        let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(1024, Medium::Dram));
        let body = format!("mov.u64 %d10, %clock64;\n{work}\nmov.u64 %d11, %clock64;\nsub.s64 %d12, %d11, %d10;");
        bench.launch(&format!("{body}\nst.global.u64 [%out], %d12;"), 1, 1, (out, a, 0, 0));
        bench.run().u64s(out, 1)[0]
    };
    let load_store_unit = 1;
    let request = u64::from(1 + spec.crossbar.latency_cycles + spec.l2.pipeline_cycles + spec.l1.miss_cycles);
    let acknowledgement = u64::from(1 + spec.crossbar.latency_cycles + spec.l1.fill_cycles);
    assert_eq!(time("st.global.u32 [%a], %tid;"), 2, "a store by itself is waited for by nobody");
    // The store issues 1 after the first clock, the fence 2 after it; the next instruction when the reply has come.
    let fenced = 1 + load_store_unit + request + acknowledgement;
    for fence in ["membar.gl;", "membar.sys;", "fence.sc.gpu;"] {
        assert_eq!(time(&format!("st.global.u32 [%a], %tid;\n{fence}")), fenced, "{fence}");
        assert_eq!(time(fence), 2, "{fence} with nothing to wait for");
    }
    assert_eq!(time("st.global.u32 [%a], %tid;\nmembar.cta;"), 3, "the L1 is all that a CTA shares");
}

#[test]
fn a_fence_waits_for_the_last_of_its_warps_loads_and_stores() {
    let spec = one_gigahertz("");
    let time = |work: &str, fence: &str| {
        let mut bench = Bench::new(spec.clone());
        let (out, a) = (bench.buffer(64, Medium::Dram), bench.buffer(1024, Medium::Dram));
        // The line that is loaded is in the L2, and no longer in the L1.
        let before = "ld.global.cg.u32 %r1, [%a];\nadd.u32 %r2, %r1, 1;\nmembar.gl;\nmov.u64 %d10, %clock64;";
        let after = "mov.u64 %d11, %clock64;\nsub.s64 %d12, %d11, %d10;\nst.global.u64 [%out], %d12;";
        let used = "add.u32 %r2, %r2, %r3;\nst.global.u32 [%out+8], %r2;";
        bench.launch(&format!("{before}\n{work}{fence}\n{after}\n{used}"), 1, 1, (out, a, 0, 0));
        bench.run().u64s(out, 1)[0]
    };
    let (load, store) = ("ld.global.cg.u32 %r3, [%a];\n", "st.global.u32 [%a+512], %r1;\n");
    let stores = store.repeat(4);
    for fence in ["membar.gl;", "membar.sys;"] {
        let [loaded, stored] = [load, &stores].map(|work| time(work, fence));
        assert_eq!((time(load, ""), loaded), (2, time(load, "add.u32 %r4, %r3, 1;") - 1), "{fence} as a use does");
        assert_eq!(time(&format!("{store}{load}"), fence), loaded + 1, "{fence} the load is the last");
        // The load's reply has one flit more than a store's, and comes first.
        assert_eq!(time(&format!("{load}{stores}"), fence), stored + 1 + 1, "{fence} the fourth store is the last");
    }
}

#[test]
fn a_barrier_waits_for_the_slowest_warp_and_not_for_warps_that_have_exited() {
    let mut bench = Bench::new(one_gigahertz(""));
    let (out, a) = (bench.buffer(1024, Medium::Dram), bench.buffer(1024, Medium::Dram));
    // Warp 3 exits; warp 1 comes late, by a load from memory; warp 0 stores the time after the barrier.
    let body = "shr.u32 %r1, %tid, 5;
mov.u64 %d10, %clock64;
setp.eq.s32 %p1, %r1, 3;
@%p1 exit;
setp.ne.s32 %p2, %r1, 1;
@%p2 bra HERE;
ld.global.u32 %r2, [%a];
add.s32 %r1, %r1, %r2;
HERE:
bar.sync 0;
mov.u64 %d11, %clock64;
sub.s64 %d12, %d11, %d10;
mul.wide.u32 %d1, %r1, 8;
add.s64 %d1, %d1, %out;
st.global.u64 [%d1], %d12;";
    bench.launch(body, 1, 128, (out, a, 0, 0));
    let ran = bench.run();
    let waited = ran.u64s(out, 4);
    assert!(waited[..3].iter().all(|&w| w > 300), "all waited for warp 1's load: {waited:?}");
    assert_eq!(waited[3], 0, "warp 3 was gone");
}

#[test]
fn a_barrier_makes_stores_of_the_cta_seen_by_its_other_warps() {
    // Three rounds: each thread stores into its word and reads its neighbour's, of another warp, through the L1.
    let mut bench = Bench::new(machine("agpm-table4", "sm.count=2"));
    let (threads, ctas) = (96u64, 4u64);
    let (out, a) = (bench.buffer(4 * threads * ctas, Medium::Dram), bench.buffer(4 * threads * ctas, Medium::Nvm));
    let body = "add.s32 %r1, %tid, 41;
rem.u32 %r1, %r1, %nt;
mad.lo.s32 %r1, %cta, %nt, %r1;
mul.wide.u32 %d1, %id, 4;
add.s64 %d3, %d1, %out;
add.s64 %d1, %d1, %a;
mul.wide.u32 %d2, %r1, 4;
add.s64 %d2, %d2, %a;
mov.u32 %r2, %id;
mov.u32 %r3, 0;
ROUND:
st.global.u32 [%d1], %r2;
bar.sync 0;
ld.global.ca.u32 %r4, [%d2];
bar.sync 0;
mad.lo.s32 %r2, %r2, 3, %r4;
add.s32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 3;
@%p1 bra ROUND;
st.global.u32 [%d3], %r2;";
    bench.launch(body, ctas as u32, threads as u32, (out, a, 0, 0));
    let mut expected: Vec<u32> = (0..(threads * ctas) as u32).collect();
    for _ in 0..3 {
        let old = expected.clone();
        for (i, value) in expected.iter_mut().enumerate() {
            let (cta, thread) = (i / threads as usize, i % threads as usize);
            let neighbour = old[cta * threads as usize + (thread + 41) % threads as usize];
            *value = value.wrapping_mul(3).wrapping_add(neighbour);
        }
    }
    assert_eq!(bench.run().u32s(out, expected.len()), expected);
}

#[test]
fn atomics_hand_out_every_ticket_once() {
    for scope in ["atom.global.add.u32", "atom.add.u32"] {
        let mut bench = Bench::new(machine("agpm-table4", ""));
        let (out, a) = (bench.buffer(4 * 40 * 64, Medium::Dram), bench.buffer(64, Medium::Nvm));
        let body = format!(
            "{scope} %r1, [%a], 1;\nmul.wide.u32 %d1, %id, 4;\nadd.s64 %d1, %d1, %out;\nst.global.u32 [%d1], %r1;"
        );
        bench.launch(&body, 40, 64, (out, a, 0, 0));
        let ran = bench.run();
        let mut tickets = ran.u32s(out, 40 * 64);
        tickets.sort_unstable();
        assert_eq!(tickets, (0..40 * 64).collect::<Vec<u32>>());
        assert_eq!(ran.u32s(a, 1), [40 * 64]);
    }
}

/// CTAs resident at once on the one SM, as the kernel sees it: each CTA counts itself in, waits, and counts itself out.
fn resident(spec: &MachineSpec, block: u32, shared: u32, registers: u32) -> (u32, String) {
    let mut bench = Bench::new(spec.clone());
    let counters = bench.buffer(256, Medium::Dram);
    let body = "setp.ne.s32 %p1, %tid, 0;
@%p1 bra WAIT;
atom.global.add.u32 %r1, [%out], 1;
add.s32 %r1, %r1, 1;
atom.global.max.u32 %r2, [%out+4], %r1;
WAIT:
bar.sync 0;
mov.u32 %r3, %clock;
LOOP:
mov.u32 %r4, %clock;
sub.s32 %r5, %r4, %r3;
setp.lt.u32 %p2, %r5, 3000;
@%p2 bra LOOP;
bar.sync 0;
@%p1 bra END;
atom.global.add.u32 %r6, [%out], -1;
END:";
    bench.launch(body, 70, block, (counters, 0, 0, 0)).with_shared(shared).with_registers(registers);
    let ran = bench.run();
    let [left, most] = ran.u32s(counters, 2)[..] else { unreachable!() };
    assert_eq!(left, 0);
    let launch = &ran.assembly.command_processor().launches()[0];
    assert_eq!(launch.occupancy.ctas, most, "what the report says");
    (most, launch.occupancy.limit.clone())
}

#[test]
fn each_resource_of_an_sm_limits_its_ctas_at_its_boundary() {
    // One SM that holds 16 warps, 8 CTAs, 448 threads, 4 x 4,096 registers given in units of 256, 32 KiB of
    // shared memory in units of 256 B.
    let overrides = "sm.count=1 sm.warps=16 sm.ctas=8 sm.threads=448 sm.registers=16384 shared.kb=32";
    let spec = machine("agpm-table4", overrides);
    let limit = |block, shared, registers| {
        let (ctas, limit) = resident(&spec, block, shared, registers);
        (ctas, limit)
    };
    let is = |ctas: u32, limit: &str| (ctas, limit.to_owned());
    assert_eq!(limit(32, 0, 8), is(8, "ctas"));
    // Two warps a CTA of 33 threads: 16 slots hold 8, three warps hold 5.
    assert_eq!(limit(33, 0, 8).0, 8);
    assert_eq!(limit(65, 0, 8), is(5, "warps"));
    assert_eq!(limit(56, 0, 8).0, 8, "448 threads");
    assert_eq!(limit(57, 0, 8), is(7, "threads"));
    // 32 lanes of 64 registers are 2,048: each part holds two warps. Of 65 they take nine units, 2,304: one, up to 128.
    assert_eq!(limit(32, 0, 64).0, 8);
    assert_eq!(limit(32, 0, 65), is(4, "registers"));
    assert_eq!(limit(32, 0, 128), is(4, "registers"));
    // A CTA of three warps: 12 of the 16 warps that fit without registers, 5 CTAs; with 64 registers 8 warps, 2 CTAs.
    assert_eq!(limit(96, 0, 64), is(2, "registers"));
    assert_eq!(limit(32, 4096, 8).0, 8, "8 x 4 KiB");
    assert_eq!(limit(32, 4097, 8), is(7, "shared memory"));
    assert_eq!(limit(32, 4608, 8), is(7, "shared memory"), "7 x 18 units of 256 B");
    assert_eq!(limit(32, 4609, 8), is(6, "shared memory"), "19 units");
    assert_eq!(limit(32, 32768, 8), is(1, "shared memory"));
}
