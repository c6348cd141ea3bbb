//! Scoped synchronisation and scoped persist barriers on write-combining L1s: who sees what when, and what is durable.
//!
//! Source: Gope et al., "Scoped persist barriers for GPUs", section 6.2 and Fig. 4: `wi1` writes X in DRAM and Y in
//! NVRAM, a persist barrier of its workgroup, a release of that scope; `wi2` of the same workgroup acquires; `wi3` of
//! another does not. Warps stand for workitems; the machine is the paper's Table 2.

use crate::bench_machine::{Bench, Ran, machine};
use durawarp::assemble::Persistency;
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::oracle::crash::CrashStates;
use durawarp::persist::{FactKind, PmImage};
use durawarp::schemes::catalogue;

/// Waits until core cycle `%clock64` is so far; the label has to be new.
fn until(cycle: u32, label: &str) -> String {
    format!("{label}: mov.u64 %d60, %clock64;\nsetp.lt.u64 %p15, %d60, {cycle};\n@%p15 bra {label};\n")
}

/// Y is `%out` in NVM, X `%a` in DRAM; what others see goes to `%b`, a line each.
fn bench(grid: u32, body: &str) -> (Bench, [u64; 3]) {
    let mut bench = Bench::new(machine("scoped-table2", ""));
    let (y, x) = (bench.buffer(4096, Medium::Nvm), bench.buffer(4096, Medium::Dram));
    let seen = bench.buffer(4096, Medium::Dram);
    bench.launch(body, grid, 128, (y, x, seen, 0));
    (bench, [x, y, seen])
}

/// Runs until a core cycle.
fn cut(bench: &Bench, cycle: u64) -> Ran {
    let scheme = catalogue::find("nvw-fifo").unwrap();
    let persistency = Persistency { scheme, journal: true, ..Persistency::default() };
    let base = bench.spec.timebase().unwrap();
    let time_limit = Some(base.clock(bench.spec.clock.core_mhz.khz).cycles(cycle));
    let ran = bench.run_under(&persistency, &RunOptions { time_limit, ..RunOptions::default() });
    assert!(matches!(ran.end, RunEnd::TimeLimit { .. }), "{:?}", ran.end);
    ran
}

/// How often a kind of fact was noted of a line.
fn facts(ran: &Ran, kind: FactKind, line: u64) -> usize {
    ran.assembly.journal().facts().iter().filter(|fact| fact.kind == kind && fact.line == line).count()
}

/// Fig. 4. `%p1`: wi1, warp 0 of CTA 0; `%p2`: wi2, warp 1 of CTA 0; `%p3`: wi3, of CTA 1, on another SM. CTA 0 does not end
/// before wi3 has looked, and wi2 looks last: a load that needs more of X's line than was stored makes it leave the L1.
fn figure_4(barrier: &str, after: &str) -> String {
    let [wait, early, late, last] = [("A", 6000), ("B", 8000), ("C", 20000), ("D", 24000)].map(|(l, c)| until(c, l));
    format!(
        "setp.ne.u32 %p10, %cta, 0;
        @%p10 bra OTHER;
        setp.eq.u32 %p1, %tid, 0;
        setp.eq.u32 %p2, %tid, 64;
        mov.u32 %r1, 1;
        @%p1 st.global.u32 [%a], %r1;
        @%p1 st.global.u32 [%out], %r1;
        {barrier}
        @%p1 membar.cta;
        @%p1 st.global.u32 [%a+1024], %r1;
        {early}
        {after}
        {late}
        setp.lt.u32 %p5, %tid, 64;
        @%p5 bra END;
        SPIN: ld.global.u32 %r2, [%a+1024];
        setp.eq.u32 %p6, %r2, 0;
        @%p6 bra SPIN;
        membar.cta;
        ld.global.u32 %r3, [%a];
        ld.global.u32 %r4, [%out];
        @%p2 st.global.u32 [%b], %r3;
        @%p2 st.global.u32 [%b+4], %r4;
        bra END;
        OTHER:
        setp.eq.u32 %p3, %tid, 0;
        {wait}
        ld.global.cg.u32 %r3, [%a];
        ld.global.cg.u32 %r4, [%out];
        @%p3 st.global.u32 [%b+1024], %r3;
        @%p3 st.global.u32 [%b+1028], %r4;
        {}
        ld.global.cg.u32 %r3, [%a];
        ld.global.cg.u32 %r4, [%out];
        @%p3 st.global.u32 [%b+1032], %r3;
        @%p3 st.global.u32 [%b+1036], %r4;
        {last}
        END:",
        until(16000, "E"),
    )
}

#[test]
fn a_release_of_cta_scope_is_seen_in_the_cta_whether_or_not_a_persist_barrier_intervenes() {
    for barrier in ["", "pm.barrier.wg;"] {
        let (bench, [_, _, seen]) = bench(2, &figure_4(barrier, ""));
        assert_eq!(bench.run_scheme("nvw-fifo").u32s(seen, 2), [1, 1], "wi2 acquires: R2 is the new value ({barrier})");
    }
}

#[test]
fn a_racy_reader_stays_racy_and_a_persist_barrier_shows_it_the_nvram_only() {
    // X, Y at 6000 cycles, then at 16000.
    for (barrier, after, expected) in [
        ("", "", [0, 0, 0, 0]),
        ("pm.barrier.wg;", "", [0, 1, 0, 1]),
        // A release of scope gpu, at 8000, shows both.
        ("pm.barrier.wg;", "membar.gl;", [0, 1, 1, 1]),
        ("", "membar.gl;", [0, 0, 1, 1]),
    ] {
        let (bench, [_, _, seen]) = bench(2, &figure_4(barrier, after));
        let ran = bench.run_scheme("nvw-fifo");
        assert_eq!(ran.u32s(seen + 1024, 4), expected, "{barrier} {after}");
    }
}

/// One CTA stores to X and Y, does something, and waits to be cut off.
fn stored_then(step: &str) -> (Ran, [u64; 3]) {
    let body = format!(
        "setp.eq.u32 %p1, %tid, 0;\nmov.u32 %r1, 7;\n@%p1 st.global.u32 [%a], %r1;\n@%p1 st.global.u32 [%out], %r1;\n{step}\n{}",
        until(20000, "W")
    );
    let (bench, buffers) = bench(1, &body);
    (cut(&bench, 10000), buffers)
}

/// Y as a power failure leaves it that comes when the run is cut off.
fn durable(ran: &Ran, y: u64) -> u32 {
    let (journal, initial) = (ran.assembly.journal(), PmImage::new(y, vec![0; 4096]));
    let states = CrashStates::new(&journal, &initial, ran.spec.persist.domain).unwrap();
    let mut cursor = states.cursor(0).unwrap();
    cursor.advance_to(states.changes());
    cursor.image().word(y).unwrap()
}

#[test]
fn a_release_makes_nothing_durable_and_a_barrier_of_a_scope_within_an_sm_makes_no_dram_line_leave_the_l1() {
    let cases = [
        // Step; lines out of the L1; Y performed at the L2; Y in the cells of its memory.
        ("", 0, 0, 0),
        ("membar.cta;", 0, 0, 0),
        ("membar.gl;", 2, 1, 0),
        ("pm.barrier.wi;", 1, 1, 1),
        ("pm.barrier.wg;", 1, 1, 1),
        // All CTAs of the grid meet there, and see each other's stores from then on.
        ("pm.barrier.kr;", 2, 1, 1),
        ("pm.barrier.wg; membar.gl;", 2, 1, 1),
    ];
    for (step, cleaned, performed, at_media) in cases {
        let (ran, [_, y, _]) = stored_then(step);
        assert_eq!(ran.sm("l1_cleanings"), cleaned, "{step}");
        assert_eq!(ran.sm("l1_cleanings_early"), 0, "{step}: the S-FIFO has room");
        assert_eq!(facts(&ran, FactKind::Performed, y), performed, "{step}: visible to all");
        assert_eq!(facts(&ran, FactKind::AtMedia, y), at_media, "{step}: durable");
        assert_eq!(ran.mc("dram_writes"), 0, "{step}: X stays in the caches");
        assert_eq!(durable(&ran, y), if at_media == 1 { 7 } else { 0 }, "{step}: what a power failure leaves");
    }
}

#[test]
fn a_full_s_fifo_cleans_its_oldest_line_early() {
    let sfifo = machine("scoped-table2", "").l1.sfifo_entries;
    for (lines, early) in [(sfifo, 0), (sfifo + 1, 1), (sfifo + 5, 5)] {
        let stores: String = (0..lines).map(|line| format!("@%p1 st.global.u32 [%a+{}], %r1;\n", 64 * line)).collect();
        let body = format!("setp.eq.u32 %p1, %tid, 0;\nmov.u32 %r1, 7;\n{stores}{}", until(20000, "W"));
        let ran = cut(&bench(1, &body).0, 10000);
        assert_eq!((ran.sm("l1_cleanings_early"), ran.sm("l1_cleanings")), (early, early), "{lines} lines");
    }
}
