//! LightWSP's regions over kernels: formed kernels write what the kernels write, regions keep to the threshold, what a
//! restart loads was stored, and a restart from persisted regions alone ends in the same memory.

use crate::regions_common::{Case, check_code, cuts, kernel_of, text_of};
use durawarp::kernel::functional::{Limits, run};
use durawarp::kernel::host::{HostAction, HostProgram as _};
use durawarp::kernel::memory::{FlatMemory, Medium};
use durawarp::kernel::ptx;
use durawarp::kernel::regions::{Layout, Reason, RegionOptions, Role, form};
use durawarp::workload::{Choice, Workload};
use proptest::prelude::*;

fn variants() -> Vec<RegionOptions> {
    let all = RegionOptions::default();
    vec![
        all,
        RegionOptions { prune: false, ..all },
        RegionOptions { threshold_stores: 8, ..all },
        RegionOptions { uniform_once: true, ..all },
        RegionOptions { uniform_once: true, prune: false, threshold_stores: 8, ..all },
        RegionOptions { unroll: false, speculative_unroll: false, after_sync: false, scratch: false, ..all },
    ]
}

#[test]
fn formed_workloads_leave_the_same_memory_and_resume_from_any_cut() {
    for listing in Workload::builtin() {
        let workload = Workload::load(&listing.name).unwrap_or_else(|faults| panic!("{faults}"));
        let choice = Choice::of_profile("ci");
        let resolved = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
        let (mut host, mut memory) = (resolved.host(), resolved.image());
        let mut read = None;
        let mut resumed = 0;
        let mut seen = Vec::new();
        loop {
            match host.next(read.take()).unwrap() {
                HostAction::Launch(launch) => {
                    let before = memory.clone();
                    run(&launch, &mut memory, &Limits::default()).unwrap();
                    // Host programs launch the same kernels again and again: the first times tell.
                    let times = seen.iter().filter(|name| **name == launch.kernel.name).count();
                    seen.push(launch.kernel.name.clone());
                    if times < 2 {
                        for options in variants() {
                            let case = Case { name: &listing.name, launch: &launch, before: &before, options };
                            resumed += case.check(&memory, 3);
                        }
                    }
                }
                HostAction::Read { address, bytes } => {
                    let mut value = [0; 8];
                    value[..bytes as usize].copy_from_slice(memory.read(address, bytes as usize).unwrap());
                    read = Some(u64::from_le_bytes(value));
                }
                HostAction::Write { address, data } => memory.write(address, &data).unwrap(),
                HostAction::Copy { from, to, bytes } => {
                    let data = memory.read(from, bytes as usize).unwrap().to_vec();
                    memory.write(to, &data).unwrap();
                }
                HostAction::Reduce(reduction) => {
                    let bytes = memory.read(reduction.address, reduction.bytes() as usize).unwrap();
                    read = Some(reduction.of(bytes).unwrap());
                }
                HostAction::Warm(_) | HostAction::Sample(_) => {}
                HostAction::Done => break,
            }
        }
        println!("{}: {resumed} restarts", listing.name);
    }
}

#[test]
fn every_cut_of_a_divergent_kernel_can_be_resumed() {
    // Lanes take different numbers of turns, update memory in place, and talk to each other in between.
    let body = "and.b32 %r2, %id, 7;\nadd.s32 %r2, %r2, 1;\nmov.u32 %r3, 0;\nmov.u32 %r7, %id;\nL:\n\
        ld.global.u32 %r4, [%d1];\nadd.s32 %r4, %r4, %r7;\nst.global.u32 [%d1], %r4;\nadd.s32 %r7, %r7, %r4;\n\
        and.b32 %r5, %r7, 4;\nsetp.eq.s32 %p1, %r5, 0;\n@%p1 bra M;\nld.global.u32 %r6, [%d1+4];\n\
        add.s32 %r6, %r6, %r4;\nst.global.u32 [%d1+4], %r6;\natom.global.add.u32 %r8, [%d1+8], 3;\n\
        add.s32 %r7, %r7, %r8;\nM:\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %r2;\n@%p2 bra L;\n\
        shfl.sync.bfly.b32 %r9, %r7, 1, 31, -1;\nadd.s32 %r7, %r7, %r9;\nst.global.u32 [%d1+12], %r7;\n";
    for options in variants() {
        for threads in [32, 70] {
            let (launch, memory) = kernel_of(&text_of(body), 2, threads);
            let mut after = memory.clone();
            run(&launch, &mut after, &Limits::default()).unwrap();
            let case = Case { name: "divergent", launch: &launch, before: &memory, options };
            let restarts = case.check(&after, usize::MAX);
            assert!(restarts > 20, "{restarts} restarts");
        }
    }
}

#[test]
fn lanes_that_wait_do_not_repeat_a_shuffle_alone() {
    // The even lanes pass boundaries while the odd ones wait with what they got from them. Nothing needs a checkpoint,
    // so the shuffle alone asks for a boundary before the branch.
    let body = "ld.param.u64 %d3, [a];\nmov.u32 %r5, %id;\nand.b32 %r2, %id, 1;\nsetp.eq.s32 %p1, %r2, 1;\n\
        shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\n@%p1 bra ODD;\nst.global.u32 [%d3], %n;\nmembar.gl;\n\
        st.global.u32 [%d3+4], %n;\nbra END;\nODD:\nst.global.u32 [%d1+8], %r6;\nEND:\n";
    assert!(restarts_of(body, 5) > 10);
}

#[test]
fn lanes_that_wait_keep_in_step_with_a_loop_that_all_go_round() {
    // A fourth of the lanes stores in each turn, and sees who else does. The others have nothing to repeat but turns.
    let body = "mov.u32 %r2, 0;\nmov.u64 %d3, %d1;\nmembar.gl;\nL:\nsub.s32 %r4, %id, %r2;\nand.b32 %r4, %r4, 3;\n\
        setp.ne.s32 %p1, %r4, 0;\n@%p1 bra M;\nvote.sync.ballot.b32 %r7, 1, -1;\nst.global.u32 [%d3], %r7;\n\
        membar.gl;\nM:\nadd.s64 %d3, %d3, 4;\nadd.s32 %r2, %r2, 1;\nsetp.lt.s32 %p2, %r2, 8;\n@%p2 bra L;\n";
    assert!(restarts_of(body, 1) > 8);
}

#[test]
fn shared_and_local_memory_barriers_and_tickets_survive_every_cut() {
    // In turns: own words of shared memory change, neighbours read them between barriers, local memory keeps a sum, and
    // each thread draws a ticket, whose square counts: none is given out twice, none is lost.
    let body = ".shared .align 8 .b8 s[1024];\n.local .align 8 .b8 l[16];\n\
        shl.b32 %r10, %r3, 2;\nmov.u32 %r11, s;\nadd.s32 %r10, %r10, %r11;\nxor.b32 %r12, %r3, 1;\n\
        mul.wide.u32 %d2, %r12, 4;\nmov.u64 %d3, s;\nadd.s64 %d2, %d2, %d3;\nmov.u32 %r4, 0;\n\
        st.shared.u32 [%r10], %id;\nst.local.v2.u32 [l+8], {%r4, %id};\nsetp.eq.s32 %p1, %r3, 0;\n\
        @%p1 st.shared.u32 [s+1000], %r4;\n@%p1 st.shared.u32 [s+1004], %r4;\nmov.u32 %r5, 0;\nld.param.u64 %d3, [a];\n\
        bar.sync 0;\nL:\nld.shared.u32 %r6, [%d2];\nbar.sync 0;\nmad.lo.s32 %r6, %r6, 5, %r5;\n\
        st.shared.u32 [%r10], %r6;\natom.shared.add.u32 %r7, [s+1000], 1;\nmul.lo.s32 %r7, %r7, %r7;\n\
        red.global.add.u32 [%d3+8], %r7;\natom.shared.max.u32 %r8, [s+1004], %r6;\nld.local.u32 %r9, [l+8];\n\
        add.s32 %r9, %r9, %r6;\nst.local.u32 [l+8], %r9;\nbar.sync 0;\nadd.s32 %r5, %r5, 1;\n\
        setp.lt.u32 %p2, %r5, 3;\n@%p2 bra L;\nld.local.v2.u32 {%r6, %r7}, [l+8];\nst.global.u32 [%d1], %r6;\n\
        st.global.u32 [%d1+4], %r7;\nld.shared.u32 %r8, [s+1004];\nst.global.u32 [%d1+12], %r8;\n";
    for options in variants() {
        let (launch, memory) = kernel_of(&text_of(body), 2, 70);
        let mut after = memory.clone();
        run(&launch, &mut after, &Limits::default()).unwrap();
        let formed = form(&launch.kernel, &options).unwrap();
        assert_eq!(formed.obstacles.is_empty(), options.scratch, "{:?}", formed.obstacles);
        assert_eq!(formed.report.shadows, if options.scratch { 8 } else { 0 });
        let case = Case { name: "scratch", launch: &launch, before: &memory, options };
        let restarts = case.check(&after, usize::MAX);
        assert!(!options.scratch || restarts > 100, "{restarts} restarts");
    }
}

#[test]
fn what_cannot_be_resumed_is_said_with_its_reason() {
    let why = |body: &str| {
        let kernel = ptx::parse("k.ptx", &text_of(body)).unwrap().kernels[0].clone();
        form(&kernel, &RegionOptions::default()).unwrap().obstacles.join("; ")
    };
    let shared = ".shared .align 8 .b8 s[64];\n";
    assert!(why(&format!("{shared}atom.shared.exch.b32 %r5, [s], %id;\n")).contains("do not commute"));
    assert!(why(&format!("{shared}atom.shared.add.f32 %r5, [s], %r4;\n")).contains("do not commute"));
    assert!(why(&format!("{shared}st.u32 [%d1], %id;\n")).contains("through generic addresses"));
    assert!(why("bar.sync 1, 32;\n").contains("barriers of some threads"));
    assert!(why("mov.u32 %r5, 32;\nbar.sync 1, %r5;\n").contains("barriers of some threads"));
    assert!(why("mov.u32 %r5, 1;\nmov.u32 %r6, 32;\nbar.sync %r5, %r6;\n").contains("barriers of some threads"));
    // Clusters are those of the launch alone: the kernel has no directive and no barrier of them.
    let mapped = "mov.u32 %r5, s;\nmapa.shared::cluster.u32 %r6, %r5, %r4;\nst.shared::cluster.u32 [%r6], %id;\n";
    assert!(why(&format!("{shared}{mapped}")).contains("other CTAs of a cluster"));
    assert_eq!(why("mov.u32 %r5, 1;\nst.u32 [%d1], %id;\nbar.sync %r5;\n"), "");
    let ticket = "atom.shared.add.u32 %r5, [s], %id;\nbar.sync 0;\nst.global.u32 [%d1], %r5;\n";
    assert_eq!(why(&format!("{shared}{ticket}")), "");
    assert_eq!(why("st.u32 [%d1], %id;\nbar.sync 0;\nbar.sync 3;\n"), "");
}

#[test]
fn lanes_that_call_different_functions_survive_every_cut() {
    // Odd threads call one function and even ones the other, three times; both store and give back what they stored.
    let body = "mov.u64 %d2, first;\nand.b32 %r2, %id, 1;\nsetp.eq.s32 %p1, %r2, 1;\n@%p1 mov.u64 %d2, second;\n\
        mov.u32 %r4, 0;\nmov.u32 %r5, %id;\nL:\n{\n.param .b64 p0;\n.param .b32 p1;\n.param .b32 q;\n\
        st.param.b64 [p0], %d1;\nst.param.b32 [p1], %r5;\nt: .calltargets first, second;\n\
        call (q), %d2, (p0, p1), t;\nld.param.b32 %r5, [q];\n}\nadd.s32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, 3;\n\
        @%p2 bra L;\nst.global.u32 [%d1+12], %r5;\nret;\n}\n";
    let function = |name: &str, work: &str| {
        format!(
            ".func (.param .b32 r) {name}(.param .b64 p, .param .b32 v)\n{{\n.reg .b32 %x<3>;\n.reg .b64 %y<2>;\n\
            ld.param.u64 %y1, [p];\nld.param.u32 %x1, [v];\n{work}st.param.b32 [r], %x1;\n"
        )
    };
    let sums = "ld.global.u32 %x2, [%y1];\nadd.s32 %x1, %x1, %x2;\nst.global.u32 [%y1], %x1;\n";
    let atomics = "atom.global.add.u32 %x2, [%y1+4], %x1;\nadd.s32 %x1, %x1, %x2;\nst.global.u32 [%y1+8], %x1;\n";
    let functions = function("first", sums) + "ret;\n}\n" + &function("second", atomics);
    assert!(restarts_of(&format!("{body}{functions}"), 1) > 10);
}

/// Each lane keeps its words in shared memory, and two of each turn leave by bulk copies, one of which adds.
const BULK: &str = ".shared .align 128 .b8 s[1024];\nshl.b32 %r10, %r3, 4;\nmov.u32 %r11, s;\nadd.s32 %r10, %r10, %r11;\n\
    mov.u32 %r5, 0;\nld.param.u64 %d3, [a];\nL:\nst.shared.v4.u32 [%r10], {%id, %r5, %r3, %id};\n\
    fence.proxy.async.shared::cta;\ncp.async.bulk.global.shared::cta.bulk_group [%d1+16], [%r10], 16;\n\
    st.global.u32 [%d1+36], %id;\n\
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d3], [%r10], 16;\ncp.async.bulk.commit_group;\n\
    cp.async.bulk.wait_group 0;\nadd.s32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 2;\n@%p2 bra L;\n";

/// Of a machine that has them.
fn bulk_text(body: &str) -> String {
    text_of(body).replacen("sm_70", "sm_90", 1).replacen(".version 7.0", ".version 8.6", 1)
}

#[test]
fn bulk_stores_survive_every_cut_and_copies_to_shared_memory_are_told() {
    let (launch, memory) = kernel_of(&bulk_text(BULK), 2, 32);
    let mut after = memory.clone();
    run(&launch, &mut after, &Limits::default()).unwrap();
    for options in variants() {
        let formed = form(&launch.kernel, &options).unwrap();
        assert_eq!(formed.obstacles.is_empty(), options.scratch, "{:?}", formed.obstacles);
        let case = Case { name: "bulk", launch: &launch, before: &memory, options };
        let restarts = case.check(&after, usize::MAX);
        assert!(!options.scratch || restarts > 20, "{restarts} restarts");
    }
    let loads = ".shared .align 128 .b8 s[64];\nmov.u32 %r4, s;\n\
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d1], 16, [%r4+32];\n";
    let kernel = &ptx::parse("k.ptx", &bulk_text(loads)).unwrap().kernels[0];
    assert_eq!(form(kernel, &RegionOptions::default()).unwrap().obstacles, ["asynchronous copies are not saved"]);
}

#[test]
fn a_bulk_store_fills_a_region_and_a_reduction_has_one_to_itself() {
    use Reason::*;
    let plain = RegionOptions { unroll: false, speculative_unroll: false, ..RegionOptions::default() };
    let kernel = &ptx::parse("k.ptx", &bulk_text(BULK)).unwrap().kernels[0].clone();
    let formed = form(kernel, &plain).unwrap();
    // The fence, the store behind the first copy, and both sides of the reduction.
    let reasons: Vec<Reason> = formed.regions.iter().map(|region| region.reason).collect();
    assert_eq!(reasons, [Entry, Order, Threshold, Order, AfterOrder, Exit]);
    let of = |reason| formed.regions.iter().rposition(|region| region.reason == reason).unwrap();
    assert_eq!(formed.regions[of(Threshold) - 1].stores, plain.threshold_stores, "with the boundary's own");
    assert!(formed.report.oversize.is_empty());
}

/// Checks a body under every variant; the number of restarts under the first.
fn restarts_of(body: &str, ctas: u32) -> usize {
    let (launch, memory) = kernel_of(&text_of(body), ctas, 32);
    let mut after = memory.clone();
    run(&launch, &mut after, &Limits::default()).unwrap();
    let check = |options| Case { name: body, launch: &launch, before: &memory, options }.check(&after, usize::MAX);
    variants().into_iter().map(check).collect::<Vec<_>>()[0]
}

#[test]
fn boundaries_stand_where_the_paper_wants_them() {
    let body = "mov.u32 %r2, 0;\nL:\nst.global.u32 [%d1], %r2;\nadd.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %n;\n@%p1 bra L;\n\
        membar.gl;\natom.global.add.u32 %r3, [%d1+4], 1;\nst.global.u32 [%d1+8], %r3;\n";
    let kernel = &ptx::parse("k.ptx", &text_of(body)).unwrap().kernels[0].clone();
    let plain = RegionOptions { unroll: false, speculative_unroll: false, ..RegionOptions::default() };
    let reasons = |options| form(kernel, &options).unwrap().regions.iter().map(|r| r.reason).collect::<Vec<_>>();
    use Reason::*;
    assert_eq!(reasons(plain), [Entry, Loop, Order, Order, AfterOrder, Exit]);
    assert_eq!(reasons(RegionOptions { after_sync: false, ..plain }), [Entry, Loop, Order, Order, Exit]);
}

#[test]
fn unrolling_makes_fewer_boundaries_run_and_pruning_fewer_stores() {
    let body = "mov.u32 %r2, 0;\nL:\nmul.lo.s32 %r3, %r2, %id;\nst.global.u32 [%d1], %r3;\nadd.s32 %r2, %r2, 1;\n\
        setp.lt.u32 %p1, %r2, 16;\n@%p1 bra L;\n";
    let (launch, memory) = kernel_of(&text_of(body), 1, 32);
    let all = RegionOptions::default();
    let figures = |options| {
        let case = Case { name: "loop", launch: &launch, before: &memory, options };
        case.figures()
    };
    let rolled = figures(RegionOptions { unroll: false, speculative_unroll: false, ..all });
    let speculative = figures(RegionOptions { unroll: false, ..all });
    let counted = figures(all);
    assert!(speculative.regions < rolled.regions, "{speculative:?} {rolled:?}");
    assert_eq!(counted.regions, speculative.regions);
    assert!(counted.instructions < speculative.instructions, "{counted:?} {speculative:?}");
    assert!(counted.checkpoints < rolled.checkpoints, "{counted:?} {rolled:?}");
    let unpruned = figures(RegionOptions { prune: false, ..all });
    assert!(unpruned.checkpoints > counted.checkpoints, "{unpruned:?} {counted:?}");
}

#[test]
fn a_parameter_and_what_is_computed_from_it_is_not_stored() {
    // The sum has a register of its own, since the number is alive behind it.
    let body = "ld.param.u64 %d3, [a];\nadd.s32 %r2, %n, 7;\nmembar.gl;\nst.global.u32 [%d3], %r2;\n\
        st.global.u32 [%d3+4], %n;\n";
    let kernel = &ptx::parse("k.ptx", &text_of(body)).unwrap().kernels[0].clone();
    let pruned = form(kernel, &RegionOptions::default()).unwrap();
    assert_eq!(pruned.report.checkpoints, 0);
    let fence = pruned.regions.iter().find(|r| r.reason == Reason::Order).unwrap();
    assert!(fence.restore.loads.is_empty());
    assert!(!fence.restore.steps.is_empty());
    let stored = form(kernel, &RegionOptions { prune: false, ..RegionOptions::default() }).unwrap();
    assert!(stored.report.checkpoints >= 3, "the address, the number and the sum");
}

/// A kernel's regions with one word for what all lanes share, all its cuts resumed: how many registers each
/// region loads as lanes' words, and as one.
fn shared_words_of(body: &str) -> Vec<(usize, usize)> {
    let options = RegionOptions { uniform_once: true, ..RegionOptions::default() };
    let (launch, memory) = kernel_of(&text_of(body), 2, 70);
    let mut after = memory.clone();
    run(&launch, &mut after, &Limits::default()).unwrap();
    let case = Case { name: body, launch: &launch, before: &memory, options };
    assert!(case.check(&after, usize::MAX) > 5);
    let formed = form(&launch.kernel, &options).unwrap();
    let row = formed.checkpoint.group_bytes() as usize;
    assert_eq!(row % 256, 0);
    formed.regions.iter().map(|region| (region.restore.loads.len(), region.restore.once.len())).collect()
}

#[test]
fn what_all_lanes_share_is_checkpointed_in_one_word() {
    // A number that a load gave, the same for all, one of each lane, and its address are alive behind the
    // fence.
    let body = "ld.param.u64 %d3, [a];\nld.global.u32 %r5, [%d3+60];\nld.global.u32 %r6, [%d1+56];\nmembar.gl;\n\
        add.s32 %r6, %r6, %r5;\nst.global.u32 [%d1], %r6;\n";
    assert_eq!(shared_words_of(body), [(0, 0), (2, 1), (0, 0)]);
    let kernel = &ptx::parse("k.ptx", &text_of(body)).unwrap().kernels[0].clone();
    let once = form(kernel, &RegionOptions { uniform_once: true, ..RegionOptions::default() }).unwrap();
    let lanes = form(kernel, &RegionOptions::default()).unwrap();
    assert_eq!((once.report.once, once.report.checkpoints, lanes.report.once, lanes.report.checkpoints), (1, 3, 0, 3));
    assert_eq!(once.kernel.code.len(), lanes.kernel.code.len(), "no instruction more");
    // The program counter and three registers in rows of 256 bytes; or one of these in a word, which opens a
    // row of words.
    assert_eq!((lanes.checkpoint.group_bytes(), once.checkpoint.group_bytes()), (4 * 256, 4 * 256));
    let store = |formed: &durawarp::kernel::regions::Formed, lanes: u64| {
        let stores = (0..formed.roles.len()).filter(|&pc| formed.roles[pc] == Role::Checkpoint);
        stores.map(|pc| formed.checkpoint_bytes(pc as u32, lanes)).collect::<Vec<u64>>()
    };
    assert_eq!(store(&lanes, 0xffff_ffff), [256, 128, 128]);
    assert_eq!(store(&once, 0xffff_ffff), [256, 4, 128]);
    assert_eq!(
        (store(&once, 3 << 32), store(&once, u64::MAX)),
        (vec![16, 4, 8], vec![512, 8, 256]),
        "a word for each 32 threads"
    );
}

#[test]
fn a_loop_counter_is_one_word_where_all_lanes_go_round_together() {
    let turns = |bound: &str| {
        format!(
            "ld.global.u32 %r7, [%d1+60];\nand.b32 %r7, %r7, 3;\nadd.s32 %r7, %r7, 2;\nmov.u32 %r2, 0;\nL:\n\
             mul.lo.s32 %r3, %r2, %id;\nst.global.u32 [%d1], %r3;\nmembar.gl;\nadd.s32 %r2, %r2, 1;\n\
             setp.lt.u32 %p1, %r2, {bound};\n@%p1 bra L;\n"
        )
    };
    let most = |bound: &str| shared_words_of(&turns(bound)).into_iter().map(|(_, once)| once).max();
    assert_eq!(most("%n"), Some(1));
    // Lanes that have left wait with the counter that they had.
    assert_eq!(most("%r7"), Some(0));
}

#[test]
fn a_word_that_waiting_lanes_would_restart_with_is_not_shared() {
    // All lanes have one number. The even ones change theirs and pass boundaries while the odd ones wait with
    // the old one.
    let apart = "ld.param.u64 %d3, [a];\nld.global.u32 %r5, [%d3+60];\nand.b32 %r2, %id, 1;\nsetp.eq.s32 %p1, %r2, 1;\n\
        membar.gl;\n@%p1 bra ODD;\nadd.s32 %r5, %r5, 1;\nst.global.u32 [%d1], %r5;\nmembar.gl;\n\
        st.global.u32 [%d1+4], %r5;\nbra END;\nODD:\nst.global.u32 [%d1+8], %r5;\nEND:\n";
    let shared = shared_words_of(apart);
    assert!(shared.iter().any(|&(_, once)| once == 1), "before the branch, {shared:?}");
    // One path is empty, as where threads beyond the data are left out: nobody restarts with what changes on
    // the other.
    let guarded = "ld.param.u64 %d3, [a];\nmembar.gl;\nsetp.gt.u32 %p1, %id, 40;\n@%p1 bra END;\n\
        ld.global.u32 %r5, [%d3+60];\nmembar.gl;\nadd.s32 %r5, %r5, 1;\nst.global.u32 [%d1], %r5;\nmembar.gl;\n\
        st.global.u32 [%d1+4], %r5;\nEND:\n";
    let once: usize = shared_words_of(guarded).iter().map(|&(_, once)| once).sum();
    assert_eq!(once, 2, "behind both fences");
}

#[test]
fn lanes_that_have_exited_do_not_look_at_a_word_that_others_have_changed_since() {
    // The guard of the exit is computed from the number again when lanes restart there.
    let body = "ld.param.u64 %d3, [a];\nld.global.u32 %r5, [%d3+60];\nand.b32 %r5, %r5, 15;\nadd.s32 %r5, %r5, 8;\n\
        membar.gl;\nsetp.lt.u32 %p1, %id, %r5;\n@%p1 exit;\nmov.u32 %r6, %r5;\nxor.b32 %r5, %r5, %r6;\n\
        st.global.u32 [%d1], %r6;\nmembar.gl;\nst.global.u32 [%d1+4], %r5;\nst.global.u32 [%d1+8], %id;\n";
    shared_words_of(body);
}

#[test]
fn a_region_that_cannot_be_split_is_reported() {
    // Twelve values are alive behind the fence and change every turn without a store.
    let mut body = String::from("mov.u32 %r1, 0;\n");
    (2..10).for_each(|r| body += &format!("ld.global.u32 %r{r}, [%d1+{}];\n", 4 * r));
    body += "L:\n";
    (2..10).for_each(|r| body += &format!("add.s32 %r{r}, %r{r}, %r1;\n"));
    body += "add.s32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %n;\n@%p1 bra L;\nmembar.gl;\n";
    (2..10).for_each(|r| body += &format!("st.global.u32 [%d1+{}], %r{r};\n", 4 * r));
    let (launch, memory) = kernel_of(&text_of(&body), 1, 32);
    let options = RegionOptions { threshold_stores: 6, ..RegionOptions::default() };
    assert!(!form(&launch.kernel, &options).unwrap().report.oversize.is_empty());
    let case = Case { name: "wide", launch: &launch, before: &memory, options };
    let mut after = memory.clone();
    run(&launch, &mut after, &Limits::default()).unwrap();
    assert!(case.check(&after, usize::MAX) > 1);
    assert!(form(&launch.kernel, &RegionOptions::default()).unwrap().report.oversize.is_empty());
}

#[test]
fn a_cut_in_the_middle_really_loses_what_was_not_persisted() {
    let body = "ld.global.u32 %r1, [%d1];\nadd.s32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1;\nmembar.gl;\n\
        st.global.u32 [%d1+4], %r1;\n";
    let (launch, memory) = kernel_of(&text_of(body), 1, 32);
    let case = Case { name: "cut", launch: &launch, before: &memory, options: RegionOptions::default() };
    let formed = form(&launch.kernel, &case.options).unwrap();
    let images = cuts(&case, &formed);
    // Nothing; the entry; the first store; everything (the boundary at the exit).
    assert_eq!(images.len(), 4);
    let word =
        |image: &FlatMemory, at: u64| image.read_u32s(crate::regions_common::data_of(&launch) + at, 1).unwrap()[0];
    let firsts: Vec<u32> = images.iter().map(|image| word(image, 0)).collect();
    let seconds: Vec<u32> = images.iter().map(|image| word(image, 4)).collect();
    let (first, second) = (word(&memory, 0), word(&memory, 4));
    assert_eq!(firsts, [first, first, first + 1, first + 1]);
    assert_eq!(seconds, [second, second, second, first + 1]);
}

/// One step of a random kernel; every thread keeps to its own 64 bytes at `%d1`.
fn step() -> impl Strategy<Value = String> {
    let at = 0..16u32;
    prop_oneof![
        at.clone().prop_map(|at| format!("ld.global.u32 %r4, [%d1+{}];\nmad.lo.s32 %r1, %r1, 5, %r4;", 4 * at)),
        at.clone().prop_map(|at| format!("st.global.u32 [%d1+{}], %r1;", 4 * at)),
        at.clone().prop_map(|at| format!("@%p3 st.global.u32 [%d1+{}], %r5;", 4 * at)),
        (0..8u32).prop_map(|at| format!("mul.wide.u32 %d2, %r1, 77777;\nst.global.u64 [%d1+{}], %d2;", 8 * at)),
        (0..4u32).prop_map(|at| format!("st.global.v4.u32 [%d1+{}], {{%r1, %r5, %r6, %r1}};", 16 * at)),
        (0..4u32).prop_map(|at| format!("ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%d1+{}];", 16 * at)),
        at.clone().prop_map(|at| format!("atom.global.add.u32 %r6, [%d1+{}], %r1;", 4 * at)),
        at.prop_map(|at| format!("red.global.xor.b32 [%d1+{}], %r5;", 4 * at)),
        Just("membar.gl;".to_owned()),
        Just("pm.region;".to_owned()),
        Just("add.s32 %r5, %r5, %r1;".to_owned()),
        Just("@%p3 add.s32 %r6, %r5, %r1;".to_owned()),
        Just("and.b32 %r9, %r1, 2;\nsetp.ne.s32 %p3, %r9, 0;".to_owned()),
        Just("add.s32 %r7, %r6, 3;\nxor.b32 %r8, %r7, %id;".to_owned()),
        Just("sub.s32 %r1, %r1, %r8;".to_owned()),
        // One value in all lanes that come to it together.
        Just("mad.lo.s32 %r10, %r10, 5, %n;".to_owned()),
        Just("xor.b32 %r1, %r1, %r10;".to_owned()),
        Just("shfl.sync.down.b32 %r6, %r5, 1, 31, -1;".to_owned()),
        Just("vote.sync.ballot.b32 %r7, %p3, -1;".to_owned()),
    ]
}

/// How a step is wrapped: taken by all, by some lanes, repeated the same number of times by all, or by each lane as it
/// likes.
#[derive(Debug, Clone)]
enum Shape {
    One(String),
    Some(u32, Vec<Shape>),
    Either(u32, Vec<Shape>, Vec<Shape>),
    Counted(u32, Vec<Shape>),
    While(u32, Vec<Shape>),
    Leave(u32),
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![12 => step().prop_map(Shape::One), 1 => (0..6u32).prop_map(Shape::Leave)];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let some = prop::collection::vec(inner, 1..5);
        prop_oneof![
            (0..6u32, some.clone()).prop_map(|(bit, steps)| Shape::Some(bit, steps)),
            (0..6u32, some.clone(), some.clone()).prop_map(|(bit, a, b)| Shape::Either(bit, a, b)),
            (1..6u32, some.clone()).prop_map(|(turns, steps)| Shape::Counted(turns, steps)),
            (0..3u32, some).prop_map(|(bits, steps)| Shape::While(bits, steps)),
        ]
    })
}

/// Whether some lanes exit early.
fn leaves(shapes: &[Shape]) -> bool {
    shapes.iter().any(|shape| match shape {
        Shape::One(_) => false,
        Shape::Leave(_) => true,
        Shape::Either(_, a, b) => leaves(a) || leaves(b),
        Shape::Some(_, inner) | Shape::Counted(_, inner) | Shape::While(_, inner) => leaves(inner),
    })
}

/// Text of shapes. Each loop has a register of its own, `%c`. Shuffles are left out where lanes may be missing
/// (not `together`): what those would give is undefined.
fn write(shapes: &[Shape], together: bool, next: &mut u32, out: &mut String) {
    for shape in shapes {
        let own = *next;
        *next += 1;
        let test = |bit: &u32| {
            format!("shr.u32 %r9, %id, {bit};\nand.b32 %r9, %r9, 1;\nsetp.eq.s32 %p1, %r9, 0;\n@%p1 bra A{own};\n")
        };
        match shape {
            Shape::One(step) if step.starts_with("shfl") && !together => {}
            Shape::One(step) => *out += &format!("{step}\n"),
            Shape::Some(bit, steps) => {
                *out += &test(bit);
                write(steps, false, next, out);
                *out += &format!("A{own}:\n");
            }
            Shape::Either(bit, a, b) => {
                *out += &test(bit);
                write(a, false, next, out);
                *out += &format!("bra B{own};\nA{own}:\n");
                write(b, false, next, out);
                *out += &format!("B{own}:\n");
            }
            Shape::Counted(turns, steps) => {
                *out += &format!("mov.u32 %c{own}, 0;\nL{own}:\n");
                write(steps, together, next, out);
                *out +=
                    &format!("add.s32 %c{own}, %c{own}, 1;\nsetp.lt.u32 %p2, %c{own}, {turns};\n@%p2 bra L{own};\n");
            }
            Shape::While(bits, steps) => {
                *out += &format!("shr.u32 %c{own}, %id, {bits};\nand.b32 %c{own}, %c{own}, 3;\nL{own}:\n");
                write(steps, false, next, out);
                *out += &format!("sub.s32 %c{own}, %c{own}, 1;\nsetp.ge.s32 %p2, %c{own}, 0;\n@%p2 bra L{own};\n");
            }
            Shape::Leave(bit) => {
                *out +=
                    &format!("shr.u32 %r9, %id, {bit};\nand.b32 %r9, %r9, 3;\nsetp.eq.s32 %p1, %r9, 3;\n@%p1 exit;\n");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_keep_their_memory_and_resume_from_any_cut(
        shapes in prop::collection::vec(shape(), 2..8),
        threshold in prop::sample::select(&[6, 12, 32][..]),
        prune in any::<bool>(),
        unroll in any::<bool>(),
        uniform_once in any::<bool>(),
        threads in prop::sample::select(&[24, 32, 70][..]),
    ) {
        let mut body = String::from("mad.lo.s32 %r1, %id, 1103515245, 12345;\nmov.u32 %r5, %id;\nmov.u32 %r10, 1;\n");
        write(&shapes, !leaves(&shapes), &mut 0, &mut body);
        body += "st.global.u32 [%d1], %r1;\nst.global.u32 [%d1+4], %r5;\n";
        let (launch, memory) = kernel_of(&text_of(&body), 2, threads);
        let mut after = memory.clone();
        run(&launch, &mut after, &Limits::default()).unwrap();
        let options = RegionOptions {
            threshold_stores: threshold, prune, unroll, speculative_unroll: unroll, uniform_once, ..RegionOptions::default()
        };
        let case = Case { name: &body, launch: &launch, before: &memory, options };
        case.check(&after, 25);
    }
}

#[test]
fn every_added_instruction_has_a_role_and_a_place() {
    let (launch, _) = kernel_of(&text_of("st.global.u32 [%d1], %id;\n"), 1, 32);
    let formed = form(&launch.kernel, &RegionOptions::default()).unwrap();
    let own = formed.roles.iter().filter(|role| **role == Role::Program).count();
    assert_eq!(own, launch.kernel.code.len());
    assert_eq!(formed.roles.len(), formed.kernel.code.len());
    check_code(&formed, &RegionOptions::default());
    assert_eq!(formed.kernel.params.last().unwrap().ptx_type, ".u64");
    let mut map = durawarp::kernel::memory::AddressMap::default();
    let area = map.allocate("area", formed.checkpoint.bytes(&launch), Medium::Nvm);
    let area = formed.checkpoint.alone(&launch, area);
    let bound = formed.bind(&launch, &area);
    let last = Layout::address(&bound, &area, 0, 31) + u64::from(formed.checkpoint.group_bytes()) - 256 + 8;
    assert_eq!(last, area.address + formed.checkpoint.bytes(&bound));
}
