//! Counters of instructions and of the L1, from programs in which each count follows from the text: one kind of
//! instruction more, and what else the counters say of it.

use std::collections::BTreeMap;

use crate::bench_machine::{Bench, one_gigahertz};
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::machine::sm::SmCounters;
use durawarp::stats::Counters as _;

/// Every counter of the SMs after a kernel of one warp.
fn counted(spec: &MachineSpec, body: &str) -> BTreeMap<&'static str, u64> {
    let mut bench = Bench::new(spec.clone());
    let (out, a) = (bench.buffer(1024, Medium::Dram), bench.buffer(4096, Medium::Dram));
    bench.launch(body, 1, 32, (out, a, a, 1));
    let ran = bench.run();
    SmCounters::DESCRIPTIONS.iter().map(|described| (described.name, ran.sm(described.name))).collect()
}

/// Counters of warp instructions by class, and an instruction of each.
const CLASSES: [(&str, &str); 17] = [
    ("int_instructions", "add.s32 %r1, %n, %n;"),
    ("int_mul_instructions", "mul.lo.s32 %r1, %n, %n;"),
    ("int_div_instructions", "div.s32 %r1, %n, %n;"),
    ("logic_instructions", "xor.b32 %r1, %n, %n;"),
    ("compare_instructions", "setp.lt.s32 %p1, %n, %n;"),
    ("min_max_instructions", "min.s32 %r1, %n, %n;"),
    ("convert_instructions", "cvt.rn.f32.s32 %f1, %n;"),
    ("fp32_instructions", "add.f32 %f1, %f2, %f2;"),
    ("fp32_div_instructions", "div.rn.f32 %f1, %f2, %f2;"),
    ("fp64_instructions", "add.f64 %g1, %g2, %g2;"),
    ("fp64_div_instructions", "div.rn.f64 %g1, %g2, %g2;"),
    ("sfu_instructions", "ex2.approx.f32 %f1, %f2;"),
    ("shuffle_instructions", "shfl.sync.idx.b32 %r1, %n, 0, 31, 0xffffffff;"),
    ("vote_instructions", "vote.sync.ballot.b32 %r1, %p1, 0xffffffff;"),
    ("const_instructions", "ld.param.u32 %r1, [p_n];"),
    ("memory_instructions", "ld.global.u32 %r1, [%a];"),
    ("control_instructions", "bar.sync 0;"),
];

/// What every class needs once: registers that are read.
const BEFORE: &str = "mov.f32 %f2, 0f3f800000;\nmov.f64 %g2, 0d3ff0000000000000;\nsetp.eq.s32 %p1, %n, 1;\n";

#[test]
fn each_instruction_is_counted_in_its_class_alone() {
    let spec = one_gigahertz("");
    let without = counted(&spec, BEFORE);
    for (nth, (class, instruction)) in (1..).zip(CLASSES) {
        let with = counted(&spec, &format!("{BEFORE}{}", format!("{instruction}\n").repeat(nth)));
        let grown = |name: &str| with[name] - without[name];
        for (other, _) in CLASSES {
            let expected = if other == class { nth as u64 } else { 0 };
            assert_eq!(grown(other), expected, "{other} after {nth} of `{instruction}`");
        }
        assert_eq!(grown("warp_instructions"), nth as u64, "{instruction}");
        assert_eq!(grown("thread_instructions"), 32 * nth as u64, "{instruction}");
    }
    // Classes are all of the instructions.
    let classes: u64 = CLASSES.iter().map(|(class, _)| without[class]).sum();
    assert_eq!(classes, without["warp_instructions"]);
}

#[test]
fn a_store_is_counted_where_it_finds_its_line() {
    // A load fills the line, the first store evicts it, the second finds none. Stores wait for what they store.
    let load = "ld.global.u32 %r1, [%a];\nadd.s32 %r2, %r1, 0;\n";
    let of =
        |stores: usize| counted(&one_gigahertz(""), &format!("{load}{}", "st.global.u32 [%a], %r2;\n".repeat(stores)));
    for (stores, evictions) in [(0, 0), (1, 1), (2, 1)] {
        let found = of(stores);
        assert_eq!((found["l1_loads"], found["l1_hits"], found["l1_merges"]), (1, 0, 0), "{stores}");
        assert_eq!((found["l1_stores"], found["l1_store_evictions"]), (stores as u64, evictions), "{stores}");
    }
}

#[test]
fn a_write_hits_in_the_l2_where_its_line_is() {
    let of = |body: &str| {
        let mut bench = Bench::new(one_gigahertz(""));
        let (out, a) = (bench.buffer(1024, Medium::Dram), bench.buffer(4096, Medium::Dram));
        bench.launch(body, 1, 1, (out, a, a, 1));
        let ran = bench.run();
        ["reads", "read_hits", "writes", "write_hits"].map(|name| ran.l2(name))
    };
    let load = "ld.global.cg.u32 %r1, [%a];\nadd.s32 %r2, %r1, 0;\nst.global.u32 [%a], %r2;\nmembar.gl;\n";
    assert_eq!(of(load), [1, 0, 1, 1], "the load has fetched the line");
    let store = "st.global.u32 [%a], %n;\nmembar.gl;\n";
    assert_eq!(of(store), [0, 0, 1, 0], "nobody has");
    assert_eq!(of(&store.repeat(3)), [0, 0, 3, 2], "the first store has");
}
