//! `pm.barrier.wg` and `pm.barrier.kr` in the functional driver: who waits for whom.

use crate::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::fault::FaultKind;
use durawarp::kernel::functional::{Limits, RunError, run};
use durawarp::kernel::memory::FlatMemory;

/// A kernel of 64 threads a CTA: `%t` the thread in its CTA, `%c` the CTA, `%g` the thread in the grid.
fn kernel(body: &str) -> String {
    format!(
        "
.version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 p_in, .param .u64 p_out)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>, %t, %c, %g;
    .reg .b64 %d<16>, %in, %out;
    ld.param.u64 %in, [p_in];
    ld.param.u64 %out, [p_out];
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mad.lo.u32 %g, %c, 64, %t;
    mul.wide.u32 %d1, %g, 4;
    add.s64 %d2, %out, %d1;
    {body}
    ret;
}}"
    )
}

fn ran(ctas: u32, body: &str) -> Ran {
    let output = ctas as usize * 64 * 4;
    run_text(&kernel(body), &Setup { output, shape: (ctas, 64), ..Setup::default() })
}

/// Each of `threads` threads writes its own word, meets the others, and then takes over what the thread before it wrote.
fn pass_on(threads: u32, barrier: &str) -> String {
    format!(
        "add.u32 %r1, %g, 1000;
        st.global.u32 [%d2], %r1;
        {barrier};
        add.u32 %r2, %g, {};
        rem.u32 %r2, %r2, {threads};
        mul.wide.u32 %d3, %r2, 4;
        add.s64 %d4, %out, %d3;
        ld.global.u32 %r3, [%d4];
        {barrier};
        st.global.u32 [%d2], %r3;",
        threads - 1
    )
}

#[test]
fn wg_waits_for_all_warps_of_the_cta() {
    let ran = ran(1, &pass_on(64, "pm.barrier.wg"));
    assert_eq!(ran.result.as_ref().unwrap().pm_operations, 4);
    let expected: Vec<u32> = (0..64).map(|g| 1000 + (g + 63) % 64).collect();
    assert_eq!(ran.u32s(), expected);
}

#[test]
fn kr_waits_for_all_ctas_of_the_grid() {
    let ran = ran(9, &pass_on(576, "pm.barrier.kr"));
    ran.result.as_ref().unwrap();
    let expected: Vec<u32> = (0..576).map(|g| 1000 + (g + 575) % 576).collect();
    assert_eq!(ran.u32s(), expected);
    // The narrower barrier leaves a CTA ahead of the others.
    assert_ne!(self::ran(9, &pass_on(576, "pm.barrier.wg")).u32s(), expected);
}

#[test]
fn kr_gathers_more_ctas_than_may_be_under_way() {
    let ran = ran(9, &pass_on(576, "pm.barrier.kr"));
    let mut memory = FlatMemory::new(&ran.launch.addresses);
    let limits = Limits { resident_ctas: 2, ..Limits::default() };
    run(&ran.launch, &mut memory, &limits).unwrap();
    assert_eq!(memory.read(ran.addresses[1], ran.output.len()).unwrap(), ran.output);
}

#[test]
fn warps_and_ctas_that_have_ended_are_not_awaited() {
    // Warp 1 of each CTA, all of CTA 1, and half of warp 0 leave early.
    let body = "setp.ge.u32 %p1, %t, 16; @%p1 exit;
        setp.eq.u32 %p2, %c, 1; @%p2 exit;
        pm.barrier.wg; pm.barrier.kr;
        st.global.u32 [%d2], 7;";
    let ran = ran(3, body);
    ran.result.as_ref().unwrap();
    let left = |g: u32| if g % 64 < 16 && g / 64 != 1 { 7 } else { 0 };
    assert_eq!(ran.u32s(), (0..192).map(left).collect::<Vec<_>>());
}

#[test]
fn a_guard_that_holds_for_nobody_passes() {
    ran(2, "setp.gt.u32 %p1, %t, 99; @%p1 pm.barrier.kr; @%p1 pm.barrier.wg;").result.unwrap();
}

#[test]
fn a_part_of_a_warp_at_a_persist_barrier_is_a_fault() {
    for name in ["pm.barrier.wg", "pm.barrier.kr"] {
        let body = format!("setp.lt.u32 %p1, %t, 5; @%p1 bra SKIP; {name}; SKIP: {name};");
        let RunError::Fault(fault) = ran(1, &body).result.unwrap_err() else { panic!("no fault") };
        assert!(matches!(&fault.kind, FaultKind::DivergentBarrier { barrier, .. } if barrier == name), "{fault}");
    }
}

#[test]
fn different_barriers_do_not_meet() {
    for (low, high, part) in [
        ("bar.sync 0", "pm.barrier.wg", "pm.barrier.wg of every thread"),
        ("bar.sync 0", "pm.barrier.kr", "pm.barrier.kr of every CTA"),
        ("pm.barrier.wg", "pm.barrier.kr", "pm.barrier.kr of every CTA"),
    ] {
        let body = format!("setp.lt.u32 %p1, %t, 32; @%p1 bra LOW; {high}; bra END; LOW: {low}; END:");
        let error = ran(1, &body).result.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Deadlock { .. }) && text.contains(part), "{text}");
        assert!(text.contains("warps 0 wait at") && text.contains("warps 1 wait at"), "{text}");
    }
}
