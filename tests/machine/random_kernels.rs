//! Random kernels without races give the functional run's memory on the timed machine: loads, stores and atomics of
//! every width and cache operator, vectors, local and shared memory, divergence, fences and barriers.
//!
//! Each thread works on 48 bytes of its own; they do not line up with lines or sectors, so threads of several warps,
//! CTAs and SMs share almost every line, and a byte too many or too few anywhere changes somebody's value.

use crate::bench_machine::{Bench, machine};
use durawarp::kernel::memory::Medium;
use proptest::prelude::*;

/// Bytes of a thread in global memory.
const OWN: u32 = 48;

/// One step of a kernel, as PTX. `%d1` is the thread's memory, `%d2` its slot of shared memory, `%r1` its value.
fn step() -> impl Strategy<Value = String> {
    let widths = prop::sample::select(&[1u32, 2, 4, 8][..]);
    let loads = prop::sample::select(&["ld.global", "ld.global.ca", "ld.global.cg", "ld.volatile.global", "ld"][..]);
    let at = 0..OWN;
    let load = (loads, widths.clone(), at.clone()).prop_map(|(load, bytes, at)| {
        let at = at / bytes * bytes;
        match bytes {
            8 => format!("{load}.u64 %d9, [%d1+{at}];\ncvt.u32.u64 %r9, %d9;\nmad.lo.s32 %r1, %r1, 5, %r9;"),
            _ => format!("{load}.u{} %r9, [%d1+{at}];\nmad.lo.s32 %r1, %r1, 5, %r9;", 8 * bytes),
        }
    });
    let stores = prop::sample::select(&["st.global", "st.global.cg", "st.volatile.global", "st"][..]);
    let store = (stores, widths.clone(), at.clone()).prop_map(|(store, bytes, at)| {
        let at = at / bytes * bytes;
        match bytes {
            8 => format!("mul.wide.u32 %d9, %r1, 77777;\n{store}.u64 [%d1+{at}], %d9;"),
            _ => format!("{store}.u{} [%d1+{at}], %r1;", 8 * bytes),
        }
    });
    let vector = (0..OWN / 16, any::<bool>()).prop_map(|(at, load)| {
        if load {
            format!(
                "ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%d1+{}];\nxor.b32 %r1, %r1, %r5;\nadd.s32 %r1, %r1, %r8;",
                16 * at
            )
        } else {
            format!("add.s32 %r5, %r1, 9;\nst.global.v4.u32 [%d1+{}], {{%r1, %r5, %r5, %r1}};", 16 * at)
        }
    });
    let atomics = prop::sample::select(&["add", "xor", "max", "exch", "add.noftz"][..]);
    let atomic = (atomics, 0..OWN / 4, any::<bool>()).prop_map(|(op, at, returns)| {
        if returns {
            format!("atom.global.{op}.{} %r9, [%d1+{}], %r1;\nadd.s32 %r1, %r1, %r9;", kind(op), 4 * at)
        } else {
            let op = if op == "exch" { "add" } else { op };
            format!("red.global.{op}.{} [%d1+{}], %r1;", kind(op), 4 * at)
        }
    });
    let local =
        (prop::sample::select(&[1u32, 2, 4, 8, 16][..]), 0u32..64, any::<bool>()).prop_map(|(bytes, at, load)| {
            let at = at / bytes * bytes;
            match (bytes, load) {
                (16, true) => format!("ld.local.v4.u32 {{%r5, %r6, %r7, %r8}}, [L+{at}];\nadd.s32 %r1, %r6, %r8;"),
                (16, false) => format!("st.local.v4.u32 [L+{at}], {{%r1, %id, %tid, %r1}};"),
                (8, true) => format!("ld.local.u64 %d9, [L+{at}];\ncvt.u32.u64 %r9, %d9;\nadd.s32 %r1, %r1, %r9;"),
                (8, false) => format!("mul.wide.u32 %d9, %r1, 999;\nst.local.u64 [L+{at}], %d9;"),
                (_, true) => format!("ld.local.u{} %r9, [L+{at}];\nadd.s32 %r1, %r1, %r9;", 8 * bytes),
                (_, false) => format!("st.local.u{} [L+{at}], %r1;", 8 * bytes),
            }
        });
    let shared = (0u32..4, 0u32..3).prop_map(|(at, what)| match what {
        0 => format!("ld.shared.u32 %r9, [%r2+{}];\nadd.s32 %r1, %r1, %r9;", 4 * at),
        1 => format!("st.shared.u32 [%r2+{}], %r1;", 4 * at),
        _ => format!("atom.shared.add.u32 %r9, [%r2+{}], %r1;\nxor.b32 %r1, %r1, %r9;", 4 * at),
    });
    let order = prop::sample::select(&["membar.gl;", "membar.cta;", "bar.sync 0;"][..]).prop_map(str::to_owned);
    prop_oneof![4 => load, 4 => store, 1 => vector, 1 => atomic, 2 => local, 1 => shared, 1 => order]
}

fn kind(op: &str) -> &'static str {
    match op {
        "xor" | "exch" => "b32",
        "add.noftz" => "f16x2",
        _ => "u32",
    }
}

/// A body: some steps are taken by some lanes only.
fn body(steps: &[(String, Option<u32>)]) -> String {
    let mut body = format!(
        ".local .align 16 .b8 L[64];
.shared .align 16 .b8 s[4096];
mul.wide.u32 %d1, %id, {OWN};
add.s64 %d1, %d1, %a;
add.s64 %d1, %d1, 16;
mul.lo.s32 %r2, %tid, 16;
mov.u32 %r3, s;
add.s32 %r2, %r2, %r3;
mad.lo.s32 %r1, %id, 1103515245, 12345;
mov.u32 %r4, 0;
st.local.v4.u32 [L], {{%r1, %r1, %r1, %r1}};
st.local.v4.u32 [L+16], {{%r1, %r1, %r1, %r1}};
st.local.v4.u32 [L+32], {{%r1, %r1, %r1, %r1}};
st.local.v4.u32 [L+48], {{%r1, %r1, %r1, %r1}};
st.shared.v4.u32 [%r2], {{%r1, %r1, %r1, %r1}};
ROUND:
"
    );
    for (i, (step, lanes)) in steps.iter().enumerate() {
        match lanes {
            Some(bit) if !step.starts_with("bar") => {
                body += &format!("shr.u32 %r10, %tid, {bit};\nand.b32 %r10, %r10, 1;\nsetp.eq.s32 %p1, %r10, 0;\n");
                body += &format!("@%p1 bra SKIP{i};\n{step}\nSKIP{i}:\n");
            }
            _ => body += &format!("{step}\n"),
        }
    }
    body + "add.s32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 2;
@%p2 bra ROUND;
mul.wide.u32 %d3, %id, 4;
add.s64 %d3, %d3, %out;
st.global.u32 [%d3], %r1;"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_kernel_leaves_the_functional_memory(
        steps in prop::collection::vec((step(), prop::option::weighted(0.3, 0u32..6)), 5..40),
        warp_size in prop::sample::select(&[32, 64][..]),
        rule in prop::sample::select(&["warp_sectored", "warp_by_sector", "half_warp_legacy"][..]),
        l1_kb in prop::sample::select(&[3, 24][..]),
        switch in prop::sample::select(&["ports", "input_queued"][..]),
        local in prop::sample::select(&["as_global", "write_back"][..]),
        medium in prop::sample::select(&[Medium::Dram, Medium::Nvm][..]),
    ) {
        let overrides = format!(
            "sm.count=3 sm.warp_size={warp_size} sm.coalescer={rule} l1.kb={l1_kb} l1.local_writes={local} \
             crossbar.switch={switch} l2.slice_kb=4"
        );
        let mut bench = Bench::new(machine("agpm-table4", &overrides));
        let (grid, block) = (7, 100);
        let out = bench.buffer(4 * grid * block, Medium::Dram);
        let a = bench.buffer(u64::from(OWN) * grid * block + 64, medium);
        let initial: Vec<u32> = (0..grid as u32 * block as u32 * OWN / 4 + 16).map(|i| i.wrapping_mul(2654435761)).collect();
        bench.put_u32s(a, &initial);
        let body = body(&steps);
        bench.launch(&body, grid as u32, block as u32, (out, a, 0, 0));
        let ran = bench.run();
        let expected = bench.functional();
        let [got, want] = [&ran.memory, &expected].map(|m| m.read_u32s(out, (grid * block) as usize).unwrap());
        prop_assert_eq!(got, want, "values of threads:\n{}", body);
        prop_assert!(ran.memory == expected, "memory:\n{}", body);
    }
}
