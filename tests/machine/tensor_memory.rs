//! Tensor memory and products in it (`tcgen05`) as a data sheet: what a product takes, how far apart they are, what waits for
//! what, who has to wait for columns; and kernels that Triton compiled for Blackwell. Values of single products are looked
//! at in `tests/kernel/tcgen05.rs`.

use crate::bench_machine::{Bench, SETTLE, machine};
use crate::same_results::{check, threads};
use crate::streams::{assert_goes_on, assert_same_events};
use crate::triton::watched;
use durawarp::crash::CrashRequest;
use durawarp::engine::{Placement, RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::run::Experiment;

/// Kernels that Triton compiled.
pub(crate) const PROGRAMS: [&str; 4] = [
    "tests/machine/triton_blackwell_tma_matmul",
    "tests/machine/triton_blackwell_matmul",
    "tests/machine/triton_blackwell_attention",
    "tests/machine/triton_blackwell_scaled_matmul",
];

/// Declares descriptors of two tiles of zeros, a barrier, and columns of tensor memory of the CTA.
const MEMORY: &str = ".shared .align 1024 .b8 tile[32768];\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 place;\n\
    .reg .b32 %taddr, %own, %idesc;\n.reg .pred %warp0, %first;\n\
    mov.u32 %r1, tile;\nshr.u32 %r1, %r1, 4;\ncvt.u64.u32 %d1, %r1;\nor.b64 %d1, %d1, 0x4000404000010000;\n\
    setp.lt.u32 %warp0, %tid, 32;\nsetp.eq.u32 %first, %tid, 0;\nsetp.ge.u32 %p1, %tid, 0;\n\
    @%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 256;\n\
    @%first mbarrier.init.shared.b64 [done], 1;\nbar.sync 0;\nld.shared.b32 %taddr, [place];\n\
    shr.u32 %own, %tid, 5;\nshl.b32 %own, %own, 21;\nadd.u32 %own, %own, %taddr;\n";

const FREE: &str = "bar.sync 0;\n@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, 256;\n";

/// Cycles from one clock read to the next around `measured`, of the first of 128 threads.
pub(crate) fn cycles(spec: &MachineSpec, measured: &str) -> u64 {
    let mut bench = Bench::new(spec.clone());
    let out = bench.buffer(64, Medium::Dram);
    let body = format!(
        "{MEMORY}bar.sync 0;\n{SETTLE}mov.u64 %d60, %clock64;\n{measured}mov.u64 %d61, %clock64;\n\
         sub.s64 %d62, %d61, %d60;\n@%first st.global.u64 [%out], %d62;\n{FREE}"
    );
    bench.launch(&body, 1, 128, (out, 0, 0, 3));
    bench.run().u64s(out, 1)[0]
}

/// A product of 128 rows and this number of columns.
pub(crate) fn product(kind: &str, columns: u32) -> String {
    let types = match kind {
        "f16" => 1 << 4,
        "tf32" => 1 << 4 | 2 << 7 | 2 << 10,
        "f8f6f4" => 1 << 4,
        _ => 2 << 4 | 1 << 7 | 1 << 10,
    };
    let descriptor = types | (columns / 8) << 17 | 8 << 24;
    format!(
        "mov.u32 %idesc, {descriptor};\n@%first tcgen05.mma.cta_group::1.kind::{kind} [%taddr], %d1, %d1, %idesc, %p1;\n"
    )
}

pub(crate) const COMMIT: &str =
    "@%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n";
pub(crate) const WAIT: &str = "AGAIN: mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;\n@!%p3 bra AGAIN;\n";

/// Kinds, the rate of the B200's table, k.
const TABLE: [(&str, u64, u64); 4] = [("f16", 8192, 16), ("tf32", 4096, 8), ("f8f6f4", 16384, 32), ("i8", 16384, 32)];

#[test]
fn a_chain_of_products_has_the_table_s_rate_and_one_its_work_and_tail() {
    let spec = machine("blackwell-b200", "");
    let chain = |kind: &str, columns: u32, count: usize| {
        cycles(&spec, &format!("{}{COMMIT}{WAIT}", product(kind, columns).repeat(count)))
    };
    // A round of the loop that waits.
    let round = chain("f16", 128, 2) - chain("f16", 128, 1);
    for (kind, rate, k) in TABLE {
        for columns in [64, 256] {
            let work = 2 * 128 * u64::from(columns) * k / rate;
            let (one, many) = (chain(kind, columns, 1), chain(kind, columns, 65));
            // Waits end with a round.
            let apart = many - one;
            assert!(apart.abs_diff(64 * work) <= round.max(64), "{kind}, {columns} columns: {apart}, {}", 64 * work);
            let table = (65 * work + 160) as f64;
            if columns == 256 {
                assert!((many as f64 / table - 1.0).abs() < 0.02, "{kind}: {many}, {table}");
            }
            let expected = work + 160;
            assert!((expected..expected + 120).contains(&one), "{kind}, {columns} columns: {one}, {expected}");
        }
    }
}

#[test]
fn the_thread_goes_on_and_nobody_waits_who_does_not_ask() {
    let spec = machine("blackwell-b200", "");
    let of = |measured: &str| cycles(&spec, measured);
    let products = product("f16", 256).repeat(8);
    // Eight products take 1,024 cycles.
    assert!(of(&products) < 100, "{}", of(&products));
    assert!(of(&format!("{products}{COMMIT}")) < 140);
    assert!(of(&format!("{products}{COMMIT}{WAIT}")) >= 8 * 128 + 160);
}

#[test]
fn a_transfer_takes_a_cycle_a_register_and_a_wait_the_latency_of_shared_memory() {
    let spec = machine("blackwell-b200", "");
    let list = |count: u32| (0..count).map(|n| format!("%r{}", 8 + n)).collect::<Vec<_>>().join(", ");
    let load = |count: u32| format!("tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {{{}}}, [%own];\n", list(count));
    let store = |count: u32| format!("tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%own], {{{}}};\n", list(count));
    let (waits, stored) = ("tcgen05.wait::ld.sync.aligned;\n", "tcgen05.wait::st.sync.aligned;\n");
    let of = |measured: String| cycles(&spec, &measured);
    assert_eq!(of(load(32)) - of(load(8)), 24);
    assert_eq!(of(load(8) + waits) - of(load(8)), u64::from(spec.shared.latency_cycles));
    assert_eq!(of(load(8) + stored) - of(load(8)), u64::from(spec.interval.control_cycles), "of stores there are none");
    assert_eq!(of(store(8) + stored) - of(store(8)), u64::from(spec.shared.latency_cycles));
}

/// CTAs on one SM that each take `columns` columns for a while, and store the address of theirs.
fn takers(columns: u32, ctas: u32) -> Bench {
    let mut bench = Bench::new(machine("blackwell-b200", "sm.count=1"));
    let out = bench.buffer(4096, Medium::Dram);
    let body = format!(
        ".shared .align 4 .b32 place;\n.reg .b32 %taddr;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], {columns};\nld.shared.b32 %taddr, [place];\n\
         mov.u32 %r1, 0;\nAGAIN: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, %n;\n@%p1 bra AGAIN;\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, {columns};\n\
         mul.wide.u32 %d1, %cta, 4;\nadd.u64 %d1, %out, %d1;\nadd.u32 %taddr, %taddr, 7;\nst.global.u32 [%d1], %taddr;"
    );
    bench.launch(&body, ctas, 32, (out, 0, 0, 500));
    bench
}

#[test]
fn ctas_of_an_sm_share_its_columns_and_wait_for_them_in_turn() {
    let end = |columns: u32, ctas: u32| {
        let ran = takers(columns, ctas).run();
        ran.assembly.command_processor().ended().unwrap()
    };
    let alone = end(512, 1);
    let together = end(128, 4);
    assert!(together < alone + alone / 10, "512 columns for all four: {together}, {alone}");
    let in_turn = end(512, 4);
    // The launch is paid once.
    assert!(in_turn > 2 * alone + alone / 2 && in_turn < 4 * alone, "one after another: {in_turn}, {alone}");
    let in_pairs = end(256, 4);
    assert!(in_pairs > alone + alone / 2 && in_pairs < 2 * alone, "two and two: {in_pairs}, {alone}");
}

#[test]
fn waits_for_columns_are_the_same_at_any_number_of_threads_and_from_a_checkpoint() {
    let bench = takers(256, 6);
    assert_same_events("columns", &bench);
    assert_goes_on(&bench, [200, 3000, 6500]);
}

#[test]
fn who_waits_for_columns_that_nobody_frees_is_told() {
    let mut bench = Bench::new(machine("blackwell-b200", "sm.count=1 tensor.memory_columns=256"));
    let out = bench.buffer(64, Medium::Dram);
    bench.launch(
        ".shared .align 4 .b32 place;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 512;\n",
        1,
        32,
        (out, 0, 0, 0),
    );
    let ran = bench.run_with(&RunOptions::default());
    let RunEnd::Deadlock { waits, .. } = &ran.end else { panic!("{:?}", ran.end) };
    let told = format!("{waits:?}");
    assert!(told.contains("512 columns of tensor memory, of which 256 are free"), "{told}");
}

#[test]
fn machines_without_tensor_memory_refuse_it_before_the_run_and_name_the_one_that_has_some() {
    for name in ["ampere-a100", "hopper-h100", "blackwell-5090"] {
        let fault = Experiment::of(PROGRAMS[0]).machine(name).run().unwrap_err().to_string();
        assert!(fault.contains("kernel.ptx:") && fault.contains("has tensor memory (tcgen05) here"), "{fault}");
        assert!(fault.contains("machines that have: blackwell-b200"), "{fault}");
    }
}

#[test]
fn kernels_of_triton_have_the_values_of_their_manifests_and_bits_of_one_thread() {
    for program in PROGRAMS {
        check("blackwell-b200", program, &[threads(2, Placement::Shuffled(3)), threads(8, Placement::RoundRobin)]);
    }
}

#[test]
fn products_are_as_many_as_the_sizes_say() {
    let outcome = Experiment::of(PROGRAMS[0]).run().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.machine.name, "blackwell-b200", "the machine that such kernels have without a name");
    // One tile of 128 rows, two of 64 columns; k in steps of 16.
    assert_eq!(outcome.total("tensor", "tensor_products"), 2 * 256 / 16);
}

#[test]
fn kernels_of_triton_have_no_races_and_those_that_lost_a_fence_or_a_wait_have_some() {
    for program in PROGRAMS {
        assert_eq!(watched(program, |kernel| kernel), (Vec::new(), 0), "{program}");
    }
    // What `cp.async` wrote is of another proxy than what the product reads.
    let (races, _) = watched(PROGRAMS[1], |kernel| kernel.replace("fence.proxy.async.shared::cta;", ""));
    let across =
        |race: &String| race.contains(" and tcgen05.mma at ") && race.contains("without a `fence.proxy.async` between");
    assert!(!races.is_empty() && races.iter().all(across), "{races:?}");
    // Copies of a later stage write over what products read that nobody has waited for.
    let (races, _) = watched(PROGRAMS[1], |kernel| {
        let stays = |line: &&str| !line.contains("tcgen05.commit") && !line.contains("bra.uni waitLoop");
        kernel.lines().filter(stays).collect::<Vec<_>>().join("\n")
    });
    let over =
        |race: &String| race.contains("tcgen05.mma at ") && race.contains("without a wait for the end of the first");
    assert!(!races.is_empty() && races.iter().all(over), "{races:?}");
}

#[test]
fn a_result_in_persistent_memory_survives_power_failures() {
    let recipe = Experiment::of(PROGRAMS[0]).machine("blackwell-b200").scheme("strict");
    let recipe = recipe.param("N", 64).param("K", 64);
    let report = recipe.crash(&CrashRequest::default()).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.holds(), "{report:?}");
}
