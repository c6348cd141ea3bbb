//! Tensor maps in global memory on the timed machine: the kernel of `tests/kernel/tensor_maps.rs` with a list of maps that its
//! manifest makes, equal at any number of threads; what a map's way costs; what is a fault.

use super::clusters::{goes_on, ran, same_at_any_threads, small, workload};
use crate::bench_machine::{Bench, SETTLE, machine, sum};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::kernel::tensor_map::{Fill, Swizzle, TensorElem, TensorMap};
use durawarp::outcome::End;
use durawarp::run::Recipe;
use tempfile::TempDir;

const KERNELS: &str = include_str!("../kernel/ptx/tensor_maps.ptx");

/// 24 CTAs, each of which has a map.
fn grouped(first: &str) -> (TempDir, Recipe) {
    let buffers = "[buffer.maps]\ntype = \"u64\"\nlen = 384\n[buffer.made]\ntype = \"u64\"\nlen = 384\n\
                   [buffer.tensors]\ntype = \"u32\"\nlen = 3200\ninit = { kind = \"expr\", expr = \"idx * 7919 % 100003\" }\n\
                   [buffer.sums]\ntype = \"u32\"\nlen = 768\n";
    let steps = format!(
        "[[loop]]\ncount = 24\nvar = \"n\"\n[[loop.step]]\nencode = \"maps\"\nindex = \"{first}\"\n\
         map = {{ tensor_map = \"tensors\", index = \"128 * n\", sizes = [32, 4], box = [32, 4] }}\n\
         [[step]]\nkernel = \"grouped\"\ngrid = 24\nblock = 32\n\
         args = [\"&maps\", \"&made\", \"&tensors\", \"&sums\", \"2\"]\n"
    );
    workload(KERNELS, buffers, &steps, "\"sums\", \"maps\", \"made\"")
}

#[test]
fn a_list_of_maps_is_made_by_the_manifest_and_read_for_each_copy() {
    let (_folder, recipe) = grouped("16 * n");
    let outcome = ran(small(recipe));
    assert_eq!(outcome.end, End::Finished);
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    let counted = |name: &str| outcome.total("bulk", name);
    // Two copies a CTA, 4 and 2 rows of a line; a map is a line.
    assert_eq!([counted("bulk_loads"), counted("bulk_map_reads"), counted("bulk_reads")], [48, 48, 24 * 6]);
    assert_eq!(counted("bulk_bytes"), 48 * 512);
}

#[test]
fn maps_in_global_memory_are_the_same_at_every_number_of_threads_and_from_checkpoints() {
    let (_folder, recipe) = grouped("16 * n");
    same_at_any_threads(&small(recipe.clone()), "maps in global memory");
    let resumed = goes_on(small(recipe), (40..100).step_by(10));
    assert!(resumed > 3, "{resumed}");
}

#[test]
fn a_map_that_does_not_lie_where_maps_may_is_told_with_its_step() {
    let told = |first: &str| {
        let (_folder, recipe) = grouped(first);
        match ran(small(recipe)).end {
            End::Finished => panic!("{first} has no fault"),
            end => format!("{end:?}"),
        }
    };
    assert!(told("16 * n + 4").contains("lies at no multiple of 64 bytes, as maps do"), "{}", told("16 * n + 4"));
    assert!(told("16 * n + 16").contains("ends behind buffer `maps`"), "{}", told("16 * n + 16"));
}

/// A thread copies 64 bytes from `%b` on to shared memory: by a map `offset` bytes from a line's begin on, whose
/// mark begins with `mark`, or without one. Cycles to the barrier, the last word, reads of maps; how it ended.
fn copied(by: Option<(u64, u8)>) -> ([u64; 3], RunEnd) {
    let mut bench = Bench::new(machine("hopper-h100", "sm.count=2 l2.slices=16 controller.channels=16"));
    let [out, a, b] = [256, 512, 64].map(|bytes| bench.buffer(bytes, Medium::Dram));
    bench.put_u32s(b, &(1..=16).collect::<Vec<u32>>());
    let copy = match by {
        None => "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r51], [%b], 64, [%r50];".to_owned(),
        Some((offset, mark)) => {
            let map = TensorMap {
                dimensions: 2,
                elem: TensorElem::U32,
                swizzle: Swizzle::None,
                fill: Fill::Zeros,
                address: b,
                strides: [64, 0, 0, 0],
                sizes: [16, 1, 1, 1, 1],
                box_sizes: [16, 1, 1, 1, 1],
                steps: [1; 5],
                im2col: None,
            };
            let mut bytes = map.encode();
            bytes[62] = mark;
            let words: Vec<u32> = bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
            bench.put_u32s(a + offset, &words);
            format!(
                "add.u64 %d9, %a, {offset};\n\
                 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r51], [%d9, {{%r52, %r52}}], [%r50];"
            )
        }
    };
    // Every sector of both is in the L2.
    let sectors = (0..256).step_by(32).map(|at| format!("ld.global.u32 %r40, [%a+{at}];\n"));
    let warm = sectors.collect::<String>() + "ld.global.u32 %r40, [%b];\nld.global.u32 %r41, [%b+32];\n";
    let body = format!(
        ".shared .align 128 .b8 tile[128];\n.shared .align 8 .b64 bar;\nmov.u32 %r50, bar;\nmov.u32 %r51, tile;\n\
         mbarrier.init.shared.b64 [%r50], 1;\nmov.u32 %r52, 0;\n{warm}{SETTLE}mov.u64 %d1, %clock64;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r50], 64;\n\
         {copy}\nW: mbarrier.try_wait.parity.shared.b64 %p1, [%r50], 0;\n@!%p1 bra W;\nmov.u64 %d2, %clock64;\n\
         sub.u64 %d3, %d2, %d1;\nst.global.u64 [%out], %d3;\nld.shared.u32 %r54, [%r51+60];\ncvt.u64.u32 %d4, %r54;\n\
         st.global.u64 [%out+8], %d4;"
    );
    bench.launch(&body, 1, 1, (out, a, b, 0));
    let ran = bench.run_with(&RunOptions::default());
    let words = ran.u64s(out, 2);
    let reads = sum(ran.assembly.sms().map(|sm| sm.bulk_counters()), "bulk_map_reads");
    ([words[0], words[1], reads], ran.end)
}

#[test]
fn a_map_takes_its_way_from_the_l2_before_the_tile_and_may_lie_in_two_lines() {
    let mark = b'T';
    let ([plain, last, none], _) = copied(None);
    assert_eq!((last, none), (16, 0));
    let ([whole, last, one], _) = copied(Some((128, mark)));
    assert_eq!((last, one), (16, 1));
    // Another way there and back; tests of the barrier are some cycles apart.
    assert!(whole > plain + plain / 2 && whole < 2 * plain + 100, "{plain} and {whole}");
    let ([cut, last, two], _) = copied(Some((64, mark)));
    assert_eq!((last, two), (16, 2));
    assert!(cut >= whole && cut < whole + whole / 2, "{whole} and {cut}");
}

#[test]
fn bytes_that_are_no_map_are_a_fault_of_the_copy_when_they_come() {
    let RunEnd::Failed { error, .. } = copied(Some((128, b'X'))).1 else { panic!("it has a map") };
    let told = error.to_string();
    assert!(told.contains("what the address names is no tensor map: it begins with 00 0"), "{told}");
}
