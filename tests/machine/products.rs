//! Products of matrices on the timed machine: the functional driver's memory at 1, 2 and 8 threads, and how long a type's
//! products take. Their values are tested in `tests/kernel/products.rs`.

use crate::bench_machine::{Bench, SETTLE, machine};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;

/// What follows `mma.`, registers of a, b and c, what follows the fragments.
type Product = (&'static str, [usize; 3], &'static str);

const PRODUCTS: &[Product] = &[
    ("sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", [4, 2, 4], ""),
    ("sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16", [4, 2, 2], ""),
    ("sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", [2, 1, 4], ""),
    ("sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32", [1, 1, 2], ""),
    ("sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", [1, 1, 2], ""),
    ("sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", [4, 2, 4], ""),
    ("sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", [1, 1, 2], ""),
    ("sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", [4, 2, 4], ""),
    ("sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [2, 2, 4], ", %r50, 3"),
    ("sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", [4, 4, 4], ", %r50, 1"),
    ("sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", [4, 4, 4], ", %r50, 0"),
    ("sp.sync.aligned.m16n8k128.row.col.satfinite.s32.s4.u4.s32", [4, 4, 4], ", %r50, 0"),
];

/// Metadata of which every four bits name elements, in ascending order, of any type.
const METADATA: &str = "mov.u32 %r50, 0xe4e4ee44;\n";

/// The instruction: its results in `%r20` and on, a from `%r1`, b from `%r5`, c from `%r9` on.
fn instruction(&(name, [a, b, c], after): &Product) -> String {
    let list = |first: usize, count: usize| {
        let all: Vec<String> = (first..first + count).map(|i| format!("%r{i}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    format!("mma.{name} {}, {}, {}, {}{after};", list(20, c), list(1, a), list(5, b), list(9, c))
}

#[test]
fn every_product_leaves_the_functional_memory_at_any_number_of_threads() {
    let mut bench = Bench::new(machine("hopper-h100", "sm.count=4"));
    let lanes = 4 * 64;
    let words: Vec<u32> = (0..16 * lanes).map(|i: u32| i.wrapping_mul(0x9e37_79b9) ^ i << 7).collect();
    let a = bench.buffer(4 * words.len() as u64, Medium::Dram);
    let size = 16 * PRODUCTS.len() as u64 * u64::from(lanes);
    let out = bench.buffer(size, Medium::Dram);
    bench.put_u32s(a, &words);
    let load = |register: usize, at: usize| {
        let all: Vec<String> = (register..register + 4).map(|i| format!("%r{i}")).collect();
        format!("ld.global.v4.u32 {{{}}}, [%d1+{at}];\n", all.join(", "))
    };
    let mut body = format!("{METADATA}mul.wide.u32 %d1, %id, 64;\nadd.u64 %d1, %a, %d1;\n");
    body += &[(1, 0), (5, 16), (9, 32), (13, 48)].map(|(register, at)| load(register, at)).concat();
    body += &format!("mul.wide.u32 %d2, %id, {};\nadd.u64 %d2, %out, %d2;\n", 16 * PRODUCTS.len());
    for (number, product) in PRODUCTS.iter().enumerate() {
        body += &format!(
            "mov.u32 %r22, 0;\nmov.u32 %r23, 0;\n{}\nst.global.v4.u32 [%d2+{}], {{%r20, %r21, %r22, %r23}};\n",
            instruction(product),
            16 * number
        );
    }
    bench.launch(&body, 4, 64, (out, a, 0, 0));
    let one = bench.run();
    assert!(one.memory == bench.functional());
    let results = one.u32s(out, size as usize / 4);
    for (number, (name, ..)) in PRODUCTS.iter().enumerate() {
        let of_lane = |lane: usize| &results[4 * (PRODUCTS.len() * lane + number)..][..4];
        assert!((0..lanes as usize).any(|lane| of_lane(lane) != of_lane(0)), "{name}: every lane has the same");
    }
    for threads in [2, 8] {
        let more = bench.run_with(&RunOptions { threads, oversubscribe: true, ..RunOptions::default() });
        assert!(matches!(more.end, RunEnd::Finished { .. }) && more.memory == one.memory, "{threads} threads");
        assert_eq!((more.ticks(0), more.sm("warp_instructions")), (one.ticks(0), one.sm("warp_instructions")));
    }
}

/// Cycles from the issue of a product to that of what uses its result, and to that of another product.
fn cycles(product: &Product) -> [u64; 2] {
    const TENSOR: &str = "tensor.matrix_cycles=40 tensor.matrix_interval_cycles=9 tensor.half_cycles=23 \
                          tensor.half_interval_cycles=5";
    let first = instruction(product);
    let second = first.replacen("{%r20, %r21", "{%r30, %r31", 1).replacen("%r22, %r23}", "%r32, %r33}", 1);
    // Every result is used, so that none shares its register with another.
    let (zeros, used): (String, String) = (20..24)
        .chain(30..34)
        .map(|i| (format!("mov.u32 %r{i}, 0;\n"), format!("add.u32 %r40, %r40, %r{i};\n")))
        .unzip();
    ["mov.b32 %r40, %r21;", &second].map(|next| {
        let mut bench = Bench::new(machine("agpm-table4", TENSOR));
        let out = bench.buffer(16, Medium::Dram);
        let registers: String = (1..=16).map(|i| format!("add.s32 %r{i}, %n, {i};\n")).collect();
        let body = format!(
            "{registers}{METADATA}{zeros}mov.u32 %r40, 0;\n{SETTLE}mov.u64 %d60, %clock64;\n{first}\n{next}\nmov.u64 %d61, %clock64;\n\
             sub.s64 %d62, %d61, %d60;\nst.global.u64 [%out], %d62;\n{used}st.global.u32 [%out+8], %r40;"
        );
        bench.launch(&body, 1, 32, (out, 0, 0, 3));
        bench.run().u64s(out, 1)[0]
    })
}

#[test]
fn registers_of_a_say_how_long_a_product_takes() {
    for product in PRODUCTS {
        let [latency, interval] = if product.1[0] == 4 { [40, 9] } else { [23, 5] };
        // A clock is read by a move, which takes a cycle.
        assert_eq!(cycles(product), [1 + latency + 1, 1 + interval + 1], "{product:?}");
    }
}
