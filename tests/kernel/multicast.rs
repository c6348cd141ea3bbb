//! Bulk copies to shared memory of other CTAs of a cluster, on the functional driver: values beside statements of the
//! test's own, and what is a fault. `tests/kernel/ptx/multicast.ptx` is run on the timed machine by
//! `tests/machine/multicast.rs`, too.

use durawarp::kernel::ptx;
use durawarp::kernel::tensor_map::{Fill, Swizzle, TensorElem, TensorMap};

use crate::clusters::{Arg, SYNC, launch_of, pair};

const KERNELS: &str = include_str!("ptx/multicast.ptx");

fn pattern(words: u32) -> Vec<u32> {
    (0..words).map(|i| i.wrapping_mul(2_654_435_761) >> 7 | 1).collect()
}

fn launched(kernel: &str, [ctas, cluster, threads]: [u32; 3], args: &[Arg<'_>]) -> Vec<Vec<u32>> {
    let shape = [[ctas, 1, 1], [cluster, 1, 1], [threads, 1, 1]];
    launch_of(KERNELS, kernel, shape, 0, args).unwrap_or_else(|fault| panic!("{kernel} of {shape:?}: {fault}"))
}

/// What a thread makes of words that it has one after another.
fn combined(words: impl Iterator<Item = u32>) -> u32 {
    words.fold(0, |sum: u32, word| sum.wrapping_mul(31).wrapping_add(word))
}

#[test]
fn a_load_to_all_ctas_of_a_cluster_is_in_each_of_them_and_counted_at_each_barrier() {
    let rounds = 3;
    for (ctas, cluster) in [(4, 4), (6, 2), (16, 16), (3, 1), (16, 8)] {
        let (input, sums) = (pattern(ctas * rounds * 64), vec![0; 64 * ctas as usize]);
        let args = [Arg::Words(&input), Arg::Words(&sums), Arg::Number(rounds)];
        let found = launched("gathers", [ctas, cluster, 64], &args).remove(1);
        for (thread, &sum) in found.iter().enumerate() {
            // Slices of its cluster, round by round, by rank.
            let first = thread as u32 / 64 / cluster * rounds * cluster;
            let slices = first..first + rounds * cluster;
            let expected = combined(slices.map(|slice| input[slice as usize * 64 + thread % 64]));
            assert_eq!(sum, expected, "{ctas} CTAs in clusters of {cluster}, thread {thread}");
        }
    }
}

/// 40 columns of words in rows of 192 bytes.
fn tensor(rows: u32) -> TensorMap {
    TensorMap {
        dimensions: 2,
        elem: TensorElem::U32,
        swizzle: Swizzle::B128,
        fill: Fill::Zeros,
        address: 0,
        strides: [192, 0, 0, 0],
        sizes: [40, rows, 1, 1, 1],
        box_sizes: [32, 8, 1, 1, 1],
        steps: [1; 5],
        im2col: None,
    }
}

#[test]
fn a_tile_to_some_ctas_is_in_those_of_its_mask_with_zeros_outside() {
    for (ctas, cluster) in [(4, 4), (4, 2), (16, 8)] {
        let (rows, sums) = (8 * cluster - 6, vec![0; 32 * ctas as usize]);
        let input = pattern(48 * rows);
        // The kernel's parameters are the map and the sums; the words of the tensor are a buffer without one.
        let text = KERNELS.replace("map[128], .param .u64 sums", "map[128], .param .u64 sums, .param .u64 tensor");
        let shape = [[ctas, 1, 1], [cluster, 1, 1], [32, 1, 1]];
        let text = text.replace(
            ".visible .entry tiles(.param .align 64 .b8 map[128], .param .u64 sums, .param .u64 tensor)",
            ".visible .entry tiles(.param .u64 tensor, .param .align 64 .b8 map[128], .param .u64 sums)",
        );
        let args = [Arg::Words(&input), Arg::Map(0, tensor(rows)), Arg::Words(&sums)];
        let found = launch_of(&text, "tiles", shape, 0, &args).unwrap_or_else(|fault| panic!("{fault}")).remove(1);
        for (thread, &sum) in found.iter().enumerate() {
            let (rank, column) = (thread as u32 / 32 % cluster, 20 + thread % 32);
            // The tiles of the ranks of its parity, row by row.
            let tiles =
                (rank % 2..cluster).step_by(2).flat_map(|from| (0..8).map(move |row| i64::from(8 * from + row) - 3));
            let word = |row: i64| match (0..i64::from(rows)).contains(&row) && column < 40 {
                true => input[row as usize * 48 + column],
                false => 0,
            };
            assert_eq!(sum, combined(tiles.map(word)), "{ctas} CTAs in clusters of {cluster}, thread {thread}");
        }
    }
}

#[test]
fn copies_from_shared_memory_and_loads_reach_the_cta_that_an_address_names() {
    for (ctas, cluster) in [(4, 4), (6, 2), (16, 16), (3, 1)] {
        let (input, words) = (pattern(64 * ctas), vec![0; 64 * ctas as usize]);
        let found = launched("passes", [ctas, cluster, 64], &[Arg::Words(&input), Arg::Words(&words)]).remove(1);
        for (thread, &word) in found.iter().enumerate() {
            let (cta, tid) = (thread as u32 / 64, thread as u32 % 64);
            let before = |by: u32| cta / cluster * cluster + (cta % cluster + 2 * cluster - by) % cluster;
            let (sent, loaded) = (before(1) * 1000 + tid, input[(before(2) * 64 + tid) as usize]);
            assert_eq!(
                word,
                sent.wrapping_add(loaded.wrapping_mul(7)),
                "{ctas} CTAs in clusters of {cluster}, {thread}"
            );
        }
    }
}

#[test]
fn reductions_of_all_ctas_into_the_shared_memory_of_each_are_all_in_it() {
    for (ctas, cluster) in [(4, 4), (6, 2), (16, 16), (3, 1)] {
        let words = vec![0; 64 * ctas as usize];
        let found = launched("combines", [ctas, cluster, 64], &[Arg::Words(&words)]).remove(0);
        for (thread, &word) in found.iter().enumerate() {
            let (cta, tid) = (thread as i32 / 64, thread as i32 % 64);
            let first = cta / cluster as i32 * cluster as i32;
            let given = (first..first + cluster as i32).map(|cta| 1000 * cta + tid - 2030);
            let (sum, largest) = (5 + given.clone().sum::<i32>(), given.max().unwrap().max(-40));
            assert_eq!(word as i32, sum + 7 * largest, "{ctas} CTAs in clusters of {cluster}, {thread}");
        }
    }
}

#[test]
fn misuse_of_other_ctas_is_a_fault_at_its_place() {
    let begun = "mbarrier.init.shared.b64 [%r3], 1; mov.u16 %h1, 7; mov.u16 %h2, 3; mov.u16 %h3, 0;\n";
    let load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    for (body, expected) in [
        (
            format!("{load}.multicast::cluster [%r3+16], [%rd9], 16, [%r3], %h1;"),
            "a mask of CTAs with bit 2, and the cluster has 2, whose ranks begin at 0",
        ),
        (
            format!("{load}.multicast::cluster [%r3+16], [%rd9], 16, [%r3], %h3;"),
            "a bulk copy to several CTAs whose mask has none",
        ),
        (
            format!("{load}.multicast::cluster [%r3+64], [%rd9], 16, [%r3], %h2;"),
            "16-byte shared access at 0x40 is out of bounds",
        ),
        (format!("{load}.multicast::cluster [%r3+16], [%rd9+8], 16, [%r3], %h2;"), "is not aligned to its 16 bytes"),
        // The other CTA has no barrier there yet: the first one runs first.
        (format!("{load}.multicast::cluster [%r3+16], [%rd9], 16, [%r3], %h2;"), "there is no `mbarrier` here"),
        (
            format!("{load} [%r4+16], [%rd9], 16, [%r3];"),
            "the barrier of an asynchronous access lies in another CTA than what it accesses",
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [%rd9], [%r4], 16;".to_owned(),
            "a bulk copy to global memory that reads shared memory of the CTA of rank 1: it reads its own",
        ),
        (
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+16], [%r3+56], 16, [%r4];"
                .to_owned(),
            "shared access at 0x38 is not aligned to its 16 bytes",
        ),
        (
            format!("setp.eq.u32 %p1, %r1, 1; @%p1 exit;\n{SYNC}{load} [%r4+16], [%rd9], 16, [%r4];"),
            "the CTA of rank 1, which has ended",
        ),
    ] {
        let told = pair(&format!(".reg .b16 %h<4>; mov.u64 %rd9, %mine;\n{begun}{body}")).expect_err(&body);
        assert!(told.contains(expected), "{body}: {told}");
    }
}

#[test]
fn forms_that_the_isa_has_not_are_refused() {
    let refused = |instruction: &str| {
        let text = format!(
            ".version 8.7 .target sm_90 .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; .reg .b16 h1;\n\
             {instruction}; ret; }}"
        );
        ptx::parse("k.ptx", &text).err().map(|faults| faults.to_string()).unwrap_or_default()
    };
    let (load, complete) = ("cp.async.bulk.shared::cluster.global", "mbarrier::complete_tx::bytes");
    for (instruction, message) in [
        (
            format!("cp.async.bulk.shared::cta.global.{complete}.multicast::cluster [r1], [l1], 16, [r2], h1"),
            "needs `.shared::cluster`",
        ),
        (format!("{load}.{complete}.multicast::cluster [r1], [l1], 16, [r2]"), "the last of them a mask of CTAs"),
        (format!("{load}.multicast::cluster [r1], [l1], 16, [r2], h1"), "needs `.mbarrier::complete_tx::bytes`"),
        ("cp.async.bulk.shared::cluster.shared::cta [r1], [r2], 16, [r3]".to_owned(), "needs `.mbarrier::complete_tx"),
        (
            format!("cp.reduce.async.bulk.shared::cluster.shared::cta.{complete}.add.f32 [r1], [r2], 16, [r3]"),
            "on type .f32 is not supported",
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group.multicast::cluster [l1], [r1], 16".to_owned(),
            "multicast::cluster",
        ),
        (format!("{load}.{complete}.multicast::cluster.L2::cache_hint [r1], [l1], 16, [r2], h1, l2"), ""),
        (
            format!(
                "cp.async.bulk.tensor.1d.shared::cluster.global.{complete}.multicast::cluster.L2::cache_hint [r1], [l1, {{r3}}], [r2], h1, l2"
            ),
            "",
        ),
        (
            format!(
                "cp.async.bulk.tensor.1d.shared::cluster.global.tile.{complete}.multicast::cluster [r1], [l1, r3], [r2], 3"
            ),
            "",
        ),
    ] {
        let told = refused(&instruction);
        assert!(if message.is_empty() { told.is_empty() } else { told.contains(message) }, "{instruction}: {told}");
    }
}
