//! `setmaxnreg` on the timed machine: a request waits for a release of its CTA and goes on a control latency later; one
//! that can never be met is a deadlock; the same at any number of threads.

use crate::bench_machine::{Bench, SETTLE, machine};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;

/// A CTA of two warps with 64 registers a thread: the first settles and does `first`, the second does `second`. Each stores
/// its clock, the first before and the second after that.
fn bench(first: &str, second: &str) -> (Bench, u64) {
    let mut bench = Bench::new(machine("hopper-h100", "sm.count=1"));
    let out = bench.buffer(16, Medium::Dram);
    let body = format!(
        "setp.ge.u32 %p1, %tid, 32;\n@%p1 bra SECOND;\n{SETTLE}mov.u64 %d1, %clock64;\n{first}\nst.global.u64 [%out], %d1;\n\
         bra END;\nSECOND: {second}\nmov.u64 %d1, %clock64;\nst.global.u64 [%out+8], %d1;\nEND:"
    );
    bench.launch(&body, 1, 64, (out, 0, 0, 0)).with_directives(".maxnreg 64");
    (bench, out)
}

const RELEASE: &str = "setmaxnreg.dec.sync.aligned.u32 32;";

#[test]
fn a_request_goes_on_a_control_latency_after_the_release_that_meets_it() {
    let (waiting, out) = bench(RELEASE, "setmaxnreg.inc.sync.aligned.u32 96;");
    let words = waiting.run().u64s(out, 2);
    // The release issues when the read of the clock leaves their unit free.
    let spec = machine("hopper-h100", "");
    let [logic, control] = [spec.interval.logic_cycles, spec.latency.control_cycles].map(u64::from);
    assert_eq!(words[1] - words[0], logic + control, "{words:?}");
    let (free, out) = bench(RELEASE, "setmaxnreg.inc.sync.aligned.u32 64;");
    let words = free.run().u64s(out, 2);
    assert!(words[1] + 1000 < words[0], "what the warp has already is not waited for: {words:?}");
}

#[test]
fn a_request_that_no_release_meets_is_a_deadlock_that_says_what_it_lacks() {
    let (bench, _) = bench(RELEASE, "setmaxnreg.inc.sync.aligned.u32 104;");
    for threads in [1, 2] {
        let ran = bench.run_with(&RunOptions { threads, oversubscribe: true, ..RunOptions::default() });
        let RunEnd::Deadlock { waits, .. } = &ran.end else { panic!("{:?}", ran.end) };
        let told: Vec<String> =
            waits.iter().map(|(_, name, w)| format!("{name}: {} waits for {}", w.who, w.what)).collect();
        let wanted = "waits for 40 registers a thread of its CTA's pool, which has 32";
        assert!(
            told.iter().any(|one| one.starts_with("sm0: warp 1 of CTA 0 at") && one.ends_with(wanted)),
            "{told:#?}"
        );
    }
}

#[test]
fn what_the_isa_leaves_undefined_is_a_fault() {
    let fault = |first: &str, second: &str| {
        let (bench, _) = bench(first, second);
        let RunEnd::Failed { error, .. } = bench.run_with(&RunOptions::default()).end else { panic!("it has a fault") };
        error.to_string()
    };
    let told = fault("setmaxnreg.dec.sync.aligned.u32 72;", "");
    assert!(told.contains("thread (0,0,0): `setmaxnreg.dec` to 72 registers by a warp that has 64"), "{told}");
    let told = fault("", "setmaxnreg.inc.sync.aligned.u32 56;");
    assert!(told.contains("thread (32,0,0): `setmaxnreg.inc` to 56 registers by a warp that has 64"), "{told}");
    let told = fault("", "setp.eq.u32 %p2, %tid, 40;\n@!%p2 setmaxnreg.inc.sync.aligned.u32 72;");
    assert!(told.contains("`setmaxnreg` is executed by 31 of 32 lanes"), "{told}");
}

/// Three warps ask in turn for what the first releases, and pass it on; the bound of registers is what directives allow.
#[test]
fn warps_that_pass_registers_on_are_the_same_at_any_number_of_threads() {
    let mut bench = Bench::new(machine("hopper-h100", "sm.count=3"));
    let out = bench.buffer(8 * 128 * 9, Medium::Dram);
    let body = "shr.u32 %r1, %tid, 5;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra FIRST;\n\
                setmaxnreg.inc.sync.aligned.u32 224;\nmul.lo.u32 %r2, %id, 3;\nsetmaxnreg.dec.sync.aligned.u32 168;\nbra END;\n\
                FIRST: setmaxnreg.dec.sync.aligned.u32 112;\nmov.u32 %r2, %id;\n\
                END: mul.wide.u32 %d1, %id, 8;\nadd.u64 %d1, %out, %d1;\nmov.u64 %d2, %clock64;\ncvt.u64.u32 %d3, %r2;\n\
                st.global.u32 [%d1], %r2;\ncvt.u32.u64 %r3, %d2;\nst.global.u32 [%d1+4], %r3;";
    bench.launch(body, 9, 128, (out, 0, 0, 0)).with_directives(".maxntid 384");
    // 65,536 of an SM by 384 threads, in multiples of 8.
    assert_eq!(bench.launches()[0].registers_per_thread, 168);
    let one = bench.run();
    for thread in 0..9 * 128 {
        let expected = if thread % 128 < 32 { thread } else { 3 * thread };
        assert_eq!(one.u32s(out + 8 * u64::from(thread), 1), [expected]);
    }
    // Who asked later went on later: clocks of the three warps of a CTA differ.
    let clocks: Vec<u32> = (1..4).map(|warp| one.u32s(out + 8 * 32 * warp + 4, 1)[0]).collect();
    assert!(clocks[0] != clocks[1] && clocks[1] != clocks[2] && clocks[0] != clocks[2], "{clocks:?}");
    for threads in [2, 8] {
        let more = bench.run_with(&RunOptions { threads, oversubscribe: true, ..RunOptions::default() });
        assert!(matches!(more.end, RunEnd::Finished { .. }) && more.memory == one.memory, "{threads} threads");
        assert_eq!((more.ticks(0), more.sm("warp_instructions")), (one.ticks(0), one.sm("warp_instructions")));
    }
}

#[test]
fn without_a_bound_of_registers_it_has_no_effect_and_is_told() {
    let text = |directives: &str| {
        format!(
            ".version 8.0 .target sm_90a .address_size 64 .entry k() {directives} {{ setmaxnreg.dec.sync.aligned.u32 40; ret; }}"
        )
    };
    let parsed = |directives: &str| durawarp::kernel::ptx::parse("k.ptx", &text(directives)).unwrap();
    let told = parsed("").warnings[0].to_string();
    assert!(told.contains("`setmaxnreg` has no effect: no `.maxnreg`, `.maxntid` or `.reqntid` says"), "{told}");
    let bounded = parsed(".reqntid 256");
    assert!(bounded.warnings.is_empty());
    assert_eq!((bounded.kernels[0].registers_per_thread, parsed("").kernels[0].registers_per_thread), (256, 4));
}

/// Triton compiles a loop of specialised warps to this: the kernel may have all registers, and its warps ask for them.
#[test]
fn a_kernel_of_the_most_registers_may_ask_for_256() {
    let mut bench = Bench::new(machine("hopper-h100", ""));
    let out = bench.buffer(512, Medium::Dram);
    let body = "setmaxnreg.inc.sync.aligned.u32 256;\nmul.wide.u32 %d1, %id, 4;\nadd.u64 %d1, %out, %d1;\n\
                st.global.u32 [%d1], %id;";
    bench.launch(body, 1, 128, (out, 0, 0, 0)).with_directives(".maxnreg 256");
    assert_eq!(bench.run().u32s(out, 128), (0..128).collect::<Vec<u32>>());
}
