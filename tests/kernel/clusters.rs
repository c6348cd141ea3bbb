//! Clusters of CTAs on the functional driver: registers, shared memory of other CTAs, the barrier of a cluster, what
//! completes at other CTAs' barriers, and what the ISA leaves undefined. `tests/kernel/ptx/clusters.ptx` is run on the
//! timed machine by `tests/machine/clusters.rs`, too.

use std::sync::Arc;

use durawarp::kernel::functional::{Limits, run};
use durawarp::kernel::launch::{Binding, Launch, ParamBlock};
use durawarp::kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp::kernel::ptx;
use durawarp::kernel::tensor_map::TensorMap;

use crate::ptx_common::{Setup, run_text};

const KERNELS: &str = include_str!("ptx/clusters.ptx");

/// An argument.
pub(crate) enum Arg<'a> {
    /// A buffer.
    Words(&'a [u32]),
    Number(u32),
    /// A map of a tensor in the buffer of this number.
    Map(usize, TensorMap),
    /// A buffer of maps of tensors in the buffer of this number, whose addresses count from its first byte.
    Maps(usize, Vec<TensorMap>),
}

/// The buffers after a launch of a kernel of [`KERNELS`].
fn launched(kernel: &str, shape: [[u32; 3]; 3], shared: u32, args: &[Arg<'_>]) -> Result<Vec<Vec<u32>>, String> {
    launch_of(KERNELS, kernel, shape, shared, args)
}

/// The same of another text; the shape is the grid, a cluster (of `[0; 3]` the kernel says it), a block.
pub(crate) fn launch_of(
    text: &str,
    kernel: &str,
    [grid, cluster, block]: [[u32; 3]; 3],
    shared: u32,
    args: &[Arg<'_>],
) -> Result<Vec<Vec<u32>>, String> {
    let module = ptx::parse("clusters.ptx", text).unwrap_or_else(|faults| panic!("{faults}"));
    let kernel = module.kernel(kernel).unwrap();
    let mut map = AddressMap::default();
    let mut params = ParamBlock::new(kernel);
    let mut buffers: Vec<(u64, Vec<u32>)> = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        params = match arg {
            Arg::Number(number) => params.u32(*number),
            Arg::Maps(_, maps) => {
                let address = map.allocate(&format!("buffer {at}"), 128 * maps.len() as u64, Medium::Dram);
                buffers.push((address, vec![0; 32 * maps.len()]));
                params.u64(address)
            }
            Arg::Map(of, map) => params.bytes(&TensorMap { address: buffers[*of].0, ..*map }.encode()),
            Arg::Words(words) => {
                let address = map.allocate(&format!("buffer {at}"), 4 * words.len() as u64, Medium::Dram);
                buffers.push((address, words.to_vec()));
                params.u64(address)
            }
        };
    }
    // Where tensors lie is known now.
    let mut number = 0;
    for arg in args {
        if let Arg::Maps(of, maps) = arg {
            let first = buffers[*of].0;
            let bytes = maps.iter().flat_map(|map| TensorMap { address: first + map.address, ..*map }.encode());
            let bytes: Vec<u8> = bytes.collect();
            buffers[number].1 = bytes.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        }
        number += usize::from(matches!(arg, Arg::Words(_) | Arg::Maps(..)));
    }
    let mut memory = FlatMemory::new(&map);
    buffers.iter().for_each(|(address, words)| memory.write_u32s(*address, words).unwrap());
    let binding = Binding {
        grid,
        block,
        dynamic_shared: shared,
        params: &params.finish(),
        globals: &[],
        const_bank: None,
        textures: &[],
        surfaces: &[],
        registers: None,
        cluster: (cluster != [0; 3]).then_some(cluster),
        addresses: Arc::new(map),
    };
    let bound = Launch::bind(&module, kernel, &binding).map_err(|faults| faults[0].to_string())?;
    let limits = Limits { warp_instructions: 1_000_000, ..Limits::default() };
    run(&bound, &mut memory, &limits).map_err(|error| error.to_string())?;
    Ok(buffers.iter().map(|(address, words)| memory.read_u32s(*address, words.len()).unwrap()).collect())
}

#[test]
fn a_histogram_in_the_shared_memory_of_a_cluster_counts_every_value_once() {
    let (bins, cluster, ctas, threads) = (96u32, 4u32, 8u32, 64u32);
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Some are beyond both ends.
        (state >> 16) % (bins + 20)
    };
    let input: Vec<u32> = (0..3000).map(|_| next().wrapping_sub(10)).collect();
    let mut expected = vec![0; bins as usize];
    for &value in &input {
        expected[(value as i32).clamp(0, bins as i32 - 1) as usize] += 1;
    }
    let zeros = vec![0; bins as usize];
    let args = [
        Arg::Words(&zeros),
        Arg::Number(bins),
        Arg::Number(bins / cluster),
        Arg::Words(&input),
        Arg::Number(input.len() as u32),
    ];
    let shape = [[ctas, 1, 1], [cluster, 1, 1], [threads, 1, 1]];
    let found = launched("histogram", shape, 4 * bins / cluster, &args).unwrap();
    assert_eq!(found[0], expected);
}

/// What `ring` leaves, step by step as its text says.
fn ring(ctas: u32, cluster: u32, threads: u32, rounds: u32) -> Vec<u32> {
    let all = (ctas * threads) as usize;
    let (mut sums, mut sent): (Vec<u32>, Vec<u32>) = (vec![0; all], (0..all as u32).collect());
    // The thread of the same number in the CTA so many ranks on.
    let on = |thread: usize, by: u32| {
        let (cta, tid) = (thread as u32 / threads, thread as u32 % threads);
        ((cta / cluster * cluster + (cta % cluster + by) % cluster) * threads + tid) as usize
    };
    for _ in 0..rounds {
        let mut got = vec![0; all];
        (0..all).for_each(|thread| got[on(thread, 1)] = sent[thread]);
        for thread in 0..all {
            let [own, second] = [0, 2].map(|by| got[on(thread, by)]);
            sums[thread] = sums[thread].wrapping_add(own).wrapping_add(second * 3).wrapping_add(own * 5);
        }
        (0..all).for_each(|thread| sent[thread] = sums[thread].wrapping_mul(7).wrapping_add(sent[thread]));
    }
    sums
}

#[test]
fn what_a_cta_stores_in_another_is_there_behind_the_barrier_of_the_cluster() {
    for (ctas, cluster, threads) in [(4, 4, 64), (6, 2, 32), (16, 8, 96), (16, 16, 40), (3, 1, 32)] {
        let zeros = vec![0; (ctas * threads) as usize];
        let args = [Arg::Words(&zeros), Arg::Words(&zeros), Arg::Number(2)];
        let shape = [[ctas, 1, 1], [cluster, 1, 1], [threads, 1, 1]];
        let found = launched("ring", shape, 0, &args).unwrap();
        assert_eq!(found[0], ring(ctas, cluster, threads, 2), "{ctas} CTAs in clusters of {cluster}");
    }
}

#[test]
fn asynchronous_stores_and_reductions_complete_at_the_barrier_of_the_cta_that_they_reach() {
    let (ctas, cluster, threads) = (8, 4, 64);
    let (sums, counts) = (vec![0; (ctas * threads) as usize], vec![0; ctas as usize]);
    let args = [Arg::Words(&sums), Arg::Words(&counts)];
    let shape = [[ctas, 1, 1], [cluster, 1, 1], [threads, 1, 1]];
    let found = launched("sends", shape, 0, &args).unwrap();
    for cta in 0..ctas {
        let (first, rank) = (cta / cluster * cluster, cta % cluster);
        let value = |sender: u32, tid: u32| (first + sender) * threads + tid + 1000 * rank;
        let all: u32 = (0..cluster).flat_map(|sender| (0..threads).map(move |tid| value(sender, tid))).sum();
        assert_eq!(found[1][cta as usize], all, "CTA {cta}");
        for tid in 0..threads {
            let of = |sender| {
                let sent = value(sender, tid);
                sent + 3 * (sent + 1) + 5 * (sent + 2) + 7 * (sent + 3)
            };
            let expected: u32 = (0..cluster).map(of).sum();
            assert_eq!(found[0][(cta * threads + tid) as usize], expected, "CTA {cta}, thread {tid}");
        }
    }
}

#[test]
fn a_cta_knows_its_place_in_its_cluster_and_in_the_grid_of_clusters() {
    let registers = [
        "%cluster_ctaid.x",
        "%cluster_ctaid.y",
        "%cluster_ctaid.z",
        "%cluster_nctaid.x",
        "%cluster_nctaid.y",
        "%cluster_nctaid.z",
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%clusterid.x",
        "%clusterid.y",
        "%clusterid.z",
        "%nclusterid.x",
        "%nclusterid.y",
        "%nclusterid.z",
    ];
    let stores: String = registers
        .iter()
        .enumerate()
        .map(|(at, name)| format!("mov.u32 %r9, {name};\nst.global.u32 [%rd1+{}], %r9;\n", 4 * at))
        .collect();
    let text = format!(
        ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<3>;\nld.param.u64 %rd1, [out];\n\
         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mov.u32 %r4, %nctaid.x;\n\
         mov.u32 %r5, %nctaid.y; mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\n\
         mul.wide.u32 %rd2, %r6, 64; add.u64 %rd1, %rd1, %rd2;\n{stores}\
         mov.pred %p1, %is_explicit_cluster; selp.u32 %r9, 1, 0, %p1; st.global.u32 [%rd1+56], %r9;\nret; }}\n"
    );
    let (grid, cluster) = ([4, 6, 2], [2, 3, 1]);
    let zeros = vec![0; 16 * 48];
    let found = launch_of(&text, "k", [grid, cluster, [1, 1, 1]], 0, &[Arg::Words(&zeros)]).unwrap().remove(0);
    for (number, words) in found.chunks_exact(16).enumerate() {
        let number = number as u32;
        let index = [number % 4, number / 4 % 6, number / 24];
        let within = [index[0] % 2, index[1] % 3, 0];
        let of = [index[0] / 2, index[1] / 3, index[2]];
        let expected = [&within[..], &cluster, &[within[0] + 2 * within[1], 6], &of, &[2, 2, 2], &[1]].concat();
        assert_eq!(words[..15], expected, "CTA {index:?}");
    }
    let alone = launch_of(&text, "k", [[2, 1, 1], [0; 3], [1, 1, 1]], 0, &[Arg::Words(&zeros)]).unwrap().remove(0);
    assert_eq!(
        alone[16..31],
        [0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 2, 1, 1, 0],
        "a CTA is a cluster where none is asked for"
    );
}

/// One warp a CTA in clusters of two; the words of the output, of which a CTA has 16 from `%mine` on. `%r1` is the
/// rank, `%r2` the other's, `%r3` an address in `slot` (64 bytes), `%r4` the same in the other CTA.
pub(crate) fn pair(body: &str) -> Result<Vec<u32>, String> {
    let text = format!(
        ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 out) \
         .reqnctapercluster 2, 1, 1 {{\n.reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b64 %mine; .reg .pred %p<9>;\n\
         .shared .align 16 .b8 slot[64];\nld.param.u64 %mine, [out];\nmov.u32 %r1, %cluster_ctarank;\n\
         xor.b32 %r2, %r1, 1;\nmov.u32 %r3, slot;\nmapa.shared::cluster.u32 %r4, %r3, %r2;\n\
         mul.wide.u32 %rd1, %r1, 64; add.u64 %mine, %mine, %rd1;\n{body}\nret;\n}}\n"
    );
    let ran = run_text(&text, &Setup { output: 128, shape: (2, 32), ..Setup::default() });
    ran.result.as_ref().map(|_| ran.u32s()).map_err(ToString::to_string)
}

pub(crate) const SYNC: &str = "barrier.cluster.arrive; barrier.cluster.wait;\n";

#[test]
fn addresses_of_other_ctas_are_shared_memory_and_tell_their_rank() {
    let found = pair(&format!(
        "add.u32 %r9, %r1, 70; st.shared.u32 [slot+4], %r9;\n{SYNC}\
         cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r2; mapa.u64 %rd4, %rd3, %r1;\n\
         ld.u32 %r10, [%rd3+4]; st.global.u32 [%mine], %r10;\n\
         getctarank.u64 %r11, %rd3; getctarank.u64 %r12, %rd2; st.global.v2.u32 [%mine+8], {{%r11, %r12}};\n\
         getctarank.shared::cluster.u32 %r11, %r4; st.global.u32 [%mine+4], %r11;\n\
         isspacep.shared::cluster %p1, %rd3; isspacep.shared::cta %p2, %rd3; isspacep.shared::cta %p3, %rd2;\n\
         isspacep.global %p4, %rd3; selp.u32 %r13, 1, 0, %p1; selp.u32 %r14, 1, 0, %p2; selp.u32 %r15, 1, 0, %p3;\n\
         selp.u32 %r16, 1, 0, %p4; st.global.v4.u32 [%mine+16], {{%r13, %r14, %r15, %r16}};\n\
         setp.eq.u64 %p5, %rd4, %rd2; selp.u32 %r17, 1, 0, %p5; st.global.u32 [%mine+32], %r17;\n{SYNC}"
    ));
    let found = found.unwrap();
    for rank in 0..2u32 {
        let other = 1 - rank;
        let expected = [70 + other, other, other, rank, 1, 0, 1, 0, 1];
        assert_eq!(found[16 * rank as usize..][..9], expected, "rank {rank}");
    }
}

#[test]
fn atomics_and_loads_of_every_width_reach_the_other_cta() {
    let found = pair(&format!(
        "mov.u32 %r9, %laneid; st.shared.u32 [slot], 0; st.shared.u64 [slot+8], 5; st.shared.u32 [slot+16], 9;\n{SYNC}\
         red.shared::cluster.add.u32 [%r4], %r9;\nsetp.eq.u32 %p1, %r9, 0;\n\
         @%p1 atom.relaxed.cluster.shared::cluster.add.u64 %rd2, [%r4+8], 7;\n\
         @%p1 atom.shared::cluster.cas.b32 %r10, [%r4+16], 9, 11;\n@%p1 st.shared::cluster.v2.u32 [%r4+24], {{%r1, 3}};\n\
         @%p1 st.shared::cluster.u8 [%r4+32], 255;\n{SYNC}\
         ld.shared::cluster.v4.u32 {{%r11, %r12, %r13, %r14}}, [%r4];\n\
         ld.shared.u32 %r15, [slot+16]; ld.shared.v2.u32 {{%r16, %r17}}, [slot+24]; ld.shared.s8 %r18, [slot+32];\n\
         @%p1 st.global.u64 [%mine], %rd2; @%p1 st.global.u32 [%mine+8], %r10; @%p1 st.global.u32 [%mine+12], %r11;\n\
         @%p1 st.global.u32 [%mine+16], %r13; @%p1 st.global.u32 [%mine+20], %r15;\n\
         @%p1 st.global.v2.u32 [%mine+24], {{%r16, %r17}}; @%p1 st.global.u32 [%mine+32], %r18;\n{SYNC}"
    ));
    let found = found.unwrap();
    for rank in 0..2u32 {
        let expected = [5, 0, 9, 496, 12, 11, 1 - rank, 3, u32::MAX];
        assert_eq!(found[16 * rank as usize..][..9], expected, "rank {rank}");
    }
}

#[test]
fn sixteen_bytes_of_the_other_cta_are_swapped_as_a_whole() {
    let found = pair(&format!(
        ".reg .b128 %q<4>; setp.eq.u32 %p1, %laneid, 0; mov.b64 %rd1, 7; mov.b64 %rd2, 8; mov.b64 %rd3, 9;\n\
         @%p1 st.shared.v2.u64 [slot], {{%rd1, %rd2}};\n{SYNC}\
         mov.b128 %q0, {{%rd1, %rd2}}; mov.b128 %q1, {{%rd3, %rd1}}; mov.b128 %q2, {{%rd3, %rd2}};\n\
         @%p1 atom.shared::cluster.cas.b128 %q3, [%r4], %q2, %q1;\n\
         @%p1 atom.shared::cluster.cas.b128 %q3, [%r4], %q0, %q1;\n\
         @%p1 atom.shared::cluster.exch.b128 %q0, [%r4], %q2;\n{SYNC}\
         ld.shared.v2.u64 {{%rd1, %rd2}}, [slot]; @%p1 st.global.b128 [%mine], %q3;\n\
         @%p1 st.global.b128 [%mine+16], %q0; @%p1 st.global.v2.u64 [%mine+32], {{%rd1, %rd2}};\n{SYNC}"
    ));
    let found = found.unwrap();
    for rank in 0..2usize {
        assert_eq!(found[16 * rank..][..12], [7, 0, 8, 0, 9, 0, 7, 0, 9, 0, 8, 0], "rank {rank}");
    }
}

#[test]
fn what_the_isa_leaves_undefined_is_told() {
    let fault = |body: &str| pair(body).expect_err(body);
    for (body, expected) in [
        ("barrier.cluster.wait;", "`barrier.cluster.wait` without `barrier.cluster.arrive` before it"),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "a second `barrier.cluster.arrive` before the wait"),
        (
            "mapa.shared::cluster.u32 %r9, %r3, 2; ld.shared::cluster.u32 %r9, [%r9];",
            "of rank 2, and the cluster has 2",
        ),
        ("ld.shared::cluster.u32 %r9, [%r4+64];", "4-byte shared access at 0x40 is out of bounds"),
        ("ld.shared::cluster.u32 %r9, [%r4+2];", "shared access at 0x2 is not aligned to its 4 bytes"),
        (
            "setp.eq.u32 %p1, %r1, 1; @%p1 exit; barrier.cluster.arrive; barrier.cluster.wait;\n\
             ld.shared::cluster.u32 %r9, [%r4];",
            "the CTA of rank 1, which has ended",
        ),
        (
            "mbarrier.init.shared.b64 [slot], 1;\n\
             st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4+8], %r1, [%r3];",
            "the barrier of an asynchronous access lies in another CTA",
        ),
        (
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r4+8], %r1, [%r4];",
            "there is no `mbarrier` here",
        ),
        ("setp.eq.u32 %p1, %r1, 1; @%p1 bra DONE; barrier.cluster.arrive; barrier.cluster.wait; DONE: bar.sync 0;", ""),
    ] {
        if expected.is_empty() {
            assert!(pair(body).is_ok(), "a CTA that has ended is not awaited: {body}");
            continue;
        }
        let told = fault(body);
        assert!(told.contains(expected), "{body}: {told}");
    }
}

#[test]
fn a_cluster_whose_warps_wait_for_each_other_is_a_deadlock() {
    let text = ".version 8.3 .target sm_90 .address_size 64 .visible .entry k() .reqnctapercluster 2 {
        .reg .b32 %r1; .reg .pred %p1; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32;
        @%p1 bar.sync 1, 128;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        ret; }";
    let told = launch_of(text, "k", [[4, 1, 1], [0; 3], [64, 1, 1]], 0, &[]).unwrap_err();
    for expected in
        ["deadlock", "warps 1 wait at", "barrier 1 of 128 threads", "warps 0 wait at", "barrier.cluster of 2"]
    {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn clusters_that_a_launch_cannot_have_are_refused() {
    let refused = |directives: &str, grid: u32, cluster: [u32; 3]| {
        let text = format!(".version 8.3 .target sm_90 .address_size 64 .visible .entry k() {directives} {{ ret; }}");
        launch_of(&text, "k", [[grid, 1, 1], cluster, [32, 1, 1]], 0, &[]).err().unwrap_or_default()
    };
    assert_eq!(refused("", 4, [2, 1, 1]), "");
    assert_eq!(refused("", 3, [2, 1, 1]), "the grid [3, 1, 1] is no multiple of the clusters of kernel `k`: [2, 1, 1]");
    assert_eq!(refused("", 32, [32, 1, 1]), "a cluster of kernel `k` has 1 to 16 CTAs, not [32, 1, 1]");
    assert_eq!(refused(".maxclusterrank 4", 8, [8, 1, 1]), "a cluster of kernel `k` has 1 to 4 CTAs, not [8, 1, 1]");
    assert_eq!(refused(".maxclusterrank 4", 8, [4, 1, 1]), "");
    let other = "clusters of [2, 1, 1] are not those of `.reqnctapercluster`, which kernel `k` has: [4, 1, 1]";
    assert_eq!(refused(".reqnctapercluster 4", 8, [2, 1, 1]), other);
    assert_eq!(refused(".reqnctapercluster 4", 8, [4, 1, 1]), "");
    assert_eq!(
        refused(".explicitcluster", 8, [0; 3]),
        "kernel `k` has `.explicitcluster`: its launch states `cluster`"
    );
    assert_eq!(refused(".explicitcluster", 8, [4, 1, 1]), "");
    assert_eq!(refused(".explicitcluster .reqnctapercluster 4", 8, [0; 3]), "");
}
