//! Partitions of the chip: what lies in another one takes longer, there and back, for every SM and every slice; and what
//! cannot be is refused.

use std::collections::BTreeSet;

use crate::bench_machine::{Bench, one_gigahertz};
use durawarp::config::{MachineConfig, Override};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;

const SMS: u32 = 8;
const LINES: u32 = 64;

/// One CTA after another reads a line after another past its L1, and writes how many cycles each took.
const TIME_LINES: &str = "mov.u32 %r40, %smid;
mul.lo.s32 %r41, %cta, 30000;
WAIT:
mov.u32 %r1, %clock;
setp.lt.u32 %p1, %r1, %r41;
@%p1 bra WAIT;
mul.lo.s32 %r42, %r40, %n;
mov.u32 %r43, 0;
LOOP:
mul.wide.u32 %d0, %r43, 256;
add.s64 %d0, %a, %d0;
mov.u32 %r2, %clock;
ld.global.cg.u32 %r3, [%d0];
and.b32 %r4, %r3, 0;
add.s32 %r4, %r4, %r2;
mov.u32 %r5, %clock;
sub.s32 %r5, %r5, %r4;
add.s32 %r6, %r42, %r43;
mul.wide.u32 %d1, %r6, 4;
add.s64 %d1, %out, %d1;
st.global.u32 [%d1], %r5;
add.s32 %r43, %r43, 1;
setp.lt.u32 %p2, %r43, %n;
@%p2 bra LOOP;";

/// Cycles of each line for each SM, from an L2 that has them, on so many threads.
fn times(set: &str, threads: usize) -> Vec<u32> {
    let mut bench = Bench::new(one_gigahertz(&format!("sm.count={SMS} sm.ctas=1 {set}")));
    let a = bench.buffer(u64::from(LINES) * 256, Medium::Dram);
    let out = bench.buffer(u64::from(SMS * LINES) * 4, Medium::Dram);
    let warm = "mul.wide.u32 %d0, %id, 256;
add.s64 %d0, %a, %d0;
ld.global.cg.u32 %r1, [%d0];";
    bench.launch(warm, 1, LINES, (out, a, a, LINES));
    bench.launch(TIME_LINES, SMS, 1, (out, a, a, LINES));
    let ran = bench.run_with(&RunOptions { threads, oversubscribe: true, ..RunOptions::default() });
    assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
    let times = ran.u32s(out, (SMS * LINES) as usize);
    assert!(times.iter().all(|&cycles| cycles > 0), "every SM has a CTA: {times:?}");
    times
}

#[test]
fn slices_of_the_other_partition_are_further_both_ways_and_each_line_is_far_from_half_of_the_sms() {
    let gpcs = "crossbar.gpcs=2 crossbar.gpc_bytes=272 l2.inclusive=false";
    for (what, rest) in [("SMs", "l2.inclusive=false"), ("ports of GPCs", gpcs), ("inclusive", "l2.inclusive=true")] {
        let near = times(rest, 1);
        let halves = times(&format!("{rest} crossbar.partitions=2 crossbar.far_cycles=35"), 1);
        let more: Vec<u32> = halves.iter().zip(&near).map(|(far, near)| far - near).collect();
        assert_eq!(more.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&0, &70]), "{what}");
        let of_sm: Vec<&[u32]> = more.chunks(LINES as usize).collect();
        for sm in 1..SMS as usize {
            let alike = of_sm[sm] == of_sm[0];
            assert_eq!(alike, sm < 4, "{what}: SMs 0 to 3 are in one partition, SM {sm}");
            assert!((0..LINES as usize).all(|line| alike || of_sm[sm][line] != of_sm[0][line]), "{what}: SM {sm}");
        }
        let far = of_sm[0].iter().filter(|&&more| more > 0).count();
        assert!((20..=44).contains(&far), "{what}: {far} of {LINES} lines are far");
    }
}

#[test]
fn four_partitions_have_a_quarter_of_the_slices_each() {
    let near = times("l2.inclusive=false", 1);
    let quarters = times("l2.inclusive=false crossbar.partitions=4 crossbar.far_cycles=9", 1);
    for line in 0..LINES as usize {
        let near_to = (0..SMS as usize).filter(|sm| {
            let at = sm * LINES as usize + line;
            quarters[at] == near[at]
        });
        let near_to: Vec<usize> = near_to.collect();
        assert!(
            near_to.len() == 2 && near_to[0].is_multiple_of(2) && near_to[1] == near_to[0] + 1,
            "{line}: {near_to:?}"
        );
    }
}

#[test]
fn the_same_at_every_number_of_threads_and_far_cycles_alone_do_nothing() {
    let set = "l2.inclusive=false crossbar.partitions=2 crossbar.far_cycles=35";
    let one = times(set, 1);
    assert_eq!(one, times(set, 2), "two threads");
    assert_eq!(one, times(set, 8), "eight threads");
    let near = times("l2.inclusive=false", 1);
    assert_eq!(near, times("l2.inclusive=false crossbar.far_cycles=35", 1), "one partition");
    assert_eq!(near, times("l2.inclusive=false crossbar.partitions=2", 1), "none is further");
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let fault = |set: &str| {
        let overrides: Vec<Override> = set.split(' ').map(|text| Override::parse(text).unwrap()).collect();
        MachineConfig::load("agpm-table4", &overrides).map(drop).unwrap_err().to_string()
    };
    for (set, expected) in [
        ("crossbar.partitions=3", "8 channels, with their slices, do not divide evenly over 3 partitions"),
        ("crossbar.partitions=2 crossbar.switch=input_queued l2.inclusive=false", "is as far from all slices"),
        ("crossbar.partitions=4 crossbar.gpcs=2 crossbar.gpc_bytes=64 l2.inclusive=false", "2 GPCs (crossbar.gpcs)"),
        ("crossbar.partitions=0", "a whole number from 1 to 8"),
    ] {
        let fault = fault(set);
        assert!(fault.contains(expected), "{set}: {fault}");
    }
}
