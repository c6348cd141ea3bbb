//! How a program's faults end a run of the timed machine: who did it, on which line of the PTX, and at which address;
//! the same at any number of threads.

use crate::bench_machine::{Bench, Ran, machine};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::fault::{FaultKind, ProgramFault};
use durawarp::kernel::memory::{DRAM_BASE, Medium};
use durawarp::machine::command_processor::HostFault;

#[test]
fn a_cta_that_no_sm_can_hold_ends_the_run_with_what_it_needs() {
    let mut bench = Bench::new(machine("agpm-table4", "shared.kb=32"));
    let out = bench.buffer(64, Medium::Dram);
    bench.launch("st.global.u32 [%out], %tid;", 1, 32, (out, 0, 0, 0)).with_shared(32769);
    let ran = bench.run_with(&RunOptions::default());
    let RunEnd::Failed { error, .. } = &ran.end else { panic!("{:?}", ran.end) };
    assert!(error.downcast_ref::<HostFault>().is_some());
    assert_eq!(
        error.to_string(),
        "a CTA of kernel `k` needs 33024 shared memory bytes (32769, and 0 reserved, in units of 256) and an SM has 32768"
    );
}

/// Runs a faulty kernel at one and three threads; the fault, equal at both.
fn fault_of(body: &str, grid: u32, block: u32) -> (ProgramFault, String, u64) {
    let mut bench = Bench::new(machine("agpm-table4", ""));
    let (out, a) = (bench.buffer(256, Medium::Dram), bench.buffer(256, Medium::Nvm));
    bench.launch(body, grid, block, (out, a, 0, 0));
    let of = |ran: Ran| match ran.end {
        RunEnd::Failed { error, at, .. } => {
            let text = error.to_string();
            (*error.downcast::<ProgramFault>().expect("a fault of the program"), text, at)
        }
        other => panic!("{other:?}"),
    };
    let one = of(bench.run_with(&RunOptions::default()));
    let three = of(bench.run_with(&RunOptions { threads: 3, oversubscribe: true, ..RunOptions::default() }));
    assert_eq!(one, three);
    one
}

/// The line of `bench.ptx` on which a piece of the body stands.
fn line_of(body: &str, piece: &str) -> u32 {
    let text = crate::bench_machine::kernel(body);
    1 + text.lines().position(|line| line.contains(piece)).unwrap() as u32
}

#[test]
fn an_access_out_of_bounds_ends_the_run_naming_kernel_line_thread_and_address() {
    // Thread 5 of CTA 2 is the first past the end.
    let body = "setp.ne.s32 %p1, %id, 69;
@%p1 bra END;
ld.global.u32 %r1, [%out+256];
st.global.u32 [%out], %r1;
END:";
    let (fault, text, _) = fault_of(body, 4, 32);
    assert_eq!((fault.kernel.as_str(), &*fault.file), ("k", "bench.ptx"));
    assert_eq!(fault.pos.line, line_of(body, "[%out+256]"));
    assert_eq!((fault.cta, fault.thread), ([2, 0, 0], [5, 0, 0]));
    let FaultKind::OutOfBounds { address, bytes: 4, space: "global", .. } = fault.kind else { panic!("{fault:?}") };
    assert_eq!(address, DRAM_BASE + 256);
    assert!(text.contains("kernel `k`, CTA (2,0,0) thread (5,0,0): 4-byte global access at 0x100000100"), "{text}");
    assert!(text.contains("0 bytes past the end of `buffer`, which has 256 bytes"), "{text}");
}

#[test]
fn every_kind_of_faulty_access_is_told_apart() {
    let kind = |body: &str| fault_of(body, 1, 32).0.kind;
    let misaligned = kind("add.s64 %d1, %a, 2;\nst.global.u32 [%d1], %tid;");
    assert!(matches!(misaligned, FaultKind::Misaligned { bytes: 4, space: "global", .. }), "{misaligned:?}");
    let vector = kind("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%a+8];\nst.global.u32 [%out], %r1;");
    assert!(matches!(vector, FaultKind::Misaligned { bytes: 16, .. }), "{vector:?}");
    // By halves, which are aligned.
    let halves = kind("ld.global.v4.u64 {%d1,%d2,%d3,%d4}, [%a+16];\nst.global.u64 [%out], %d1;");
    assert!(matches!(halves, FaultKind::Misaligned { bytes: 32, .. }), "{halves:?}");
    let null = kind("mov.u64 %d1, 0;\nst.global.u32 [%d1], %tid;");
    assert!(matches!(null, FaultKind::OutOfBounds { address: 0, .. }), "{null:?}");
    let shared = kind(".shared .align 4 .b8 s[64];\nst.shared.u32 [s+64], %tid;");
    assert!(matches!(shared, FaultKind::OutOfBounds { address: 64, space: "shared", .. }), "{shared:?}");
    let atomic = kind("atom.global.add.u32 %r1, [%a+256], 1;\nst.global.u32 [%out], %r1;");
    assert!(matches!(atomic, FaultKind::OutOfBounds { space: "global", .. }), "{atomic:?}");
    assert_eq!(kind("trap;"), FaultKind::Trap);
}

#[test]
fn an_endless_loop_ends_at_the_time_limit() {
    let mut bench = Bench::new(machine("agpm-table4", ""));
    let out = bench.buffer(64, Medium::Dram);
    bench.launch("LOOP:\nadd.s32 %r1, %r1, 1;\nbra LOOP;", 1, 32, (out, 0, 0, 0));
    let limit = 1_000_000;
    for threads in [1, 2] {
        let options = RunOptions { threads, oversubscribe: true, time_limit: Some(limit), ..RunOptions::default() };
        let ran = bench.run_with(&options);
        assert!(matches!(ran.end, RunEnd::TimeLimit { at } if at == limit), "{:?}", ran.end);
    }
}

#[test]
fn a_cta_that_can_never_pass_its_barrier_is_reported_warp_by_warp() {
    // Warp 0 waits for two warps at barrier 1, warp 1 for two warps at barrier 2.
    let body = "setp.lt.u32 %p1, %tid, 32;
@%p1 bra FIRST;
bar.sync 2, 64;
bra END;
FIRST:
bar.sync 1, 64;
END:";
    let mut bench = Bench::new(machine("agpm-table4", ""));
    let out = bench.buffer(64, Medium::Dram);
    bench.launch(body, 1, 64, (out, 0, 0, 0));
    for threads in [1, 3] {
        let ran = bench.run_with(&RunOptions { threads, oversubscribe: true, ..RunOptions::default() });
        let RunEnd::Deadlock { waits, .. } = &ran.end else { panic!("{:?}", ran.end) };
        let told: Vec<String> =
            waits.iter().map(|(_, name, w)| format!("{name}: {} waits for {}", w.who, w.what)).collect();
        let expect = |warp: u32, piece: &str, barrier: u32| {
            let line = line_of(body, piece);
            let start = format!("sm0: warp {warp} of CTA 0 at bench.ptx:{line}:");
            let end = format!("waits for barrier {barrier}: 1 of 2 warps have arrived");
            assert!(told.iter().any(|t| t.starts_with(&start) && t.ends_with(&end)), "{start} {end}: {told:#?}");
        };
        expect(0, "bar.sync 1", 1);
        expect(1, "bar.sync 2", 2);
        assert!(told.iter().any(|t| t.contains("CTAs of kernel `k`: 0 of 1 have ended")), "{told:#?}");
    }
}
