//! Bulk copies to shared memory of other CTAs of a cluster on the timed machine: values and results of the kernels of
//! `tests/kernel/multicast.rs`, equal at any number of threads; how often a line is read; when another CTA's barrier
//! counts; faults.

use super::clusters::{SYNC, goes_on, pair, ran, same_at_any_threads, small, workload};
use crate::bench_machine::SETTLE;
use durawarp::engine::RunEnd;
use durawarp::outcome::End;
use durawarp::run::{Conduct, Recipe, run};
use tempfile::TempDir;

const KERNELS: &str = include_str!("../kernel/ptx/multicast.ptx");

/// CTAs of a launch, and of a cluster.
const CTAS: u64 = 16;
const CLUSTER: u64 = 4;

/// All kernels one after another, in clusters of four.
fn all_of(text: &str) -> (TempDir, Recipe) {
    let buffer = |name: &str, len: u32, init: &str| format!("[buffer.{name}]\ntype = \"u32\"\nlen = {len}\n{init}");
    let init = "init = { kind = \"expr\", expr = \"(idx * 7919 + idx / 3) % 100003\" }\n";
    let buffers = [
        buffer("input", 4096, init),
        buffer("sums", 1024, ""),
        buffer("tensor", 48 * 26, init),
        buffer("tiles", 512, ""),
        buffer("words", 1024, ""),
    ];
    let steps = "[[step]]\nkernel = \"gathers\"\ngrid = 16\nblock = 64\ncluster = 4\n\
                 args = [\"&input\", \"&sums\", \"3\"]\n\
                 [[step]]\nkernel = \"tiles\"\ngrid = 16\nblock = 32\ncluster = [4, 1, 1]\n\
                 args = [{ tensor_map = \"tensor\", sizes = [40, 26], strides_bytes = [192], box = [32, 8], swizzle = \"128B\" }, \
                 \"&tiles\"]\n\
                 [[step]]\nkernel = \"passes\"\ngrid = 16\nblock = 64\ncluster = 4\nargs = [\"&input\", \"&words\"]\n";
    workload(text, &buffers.concat(), steps, "\"sums\", \"tiles\", \"words\"")
}

#[test]
fn a_line_is_read_once_and_goes_to_every_cta_of_the_mask() {
    let (_folder, recipe) = all_of(KERNELS);
    let outcome = ran(small(recipe).set("sm.gpcs", 2));
    assert_eq!(outcome.end, End::Finished);
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    let counted = |name: &str| outcome.total("bulk", name);
    // `gathers` has 3 rounds; `passes` loads and sends once.
    assert_eq!([counted("bulk_loads"), counted("bulk_sends")], [CTAS * (3 + 1 + 1), CTAS]);
    assert_eq!(counted("bulk_multicasts"), CTAS * (3 + 1));
    // 20 columns from the 20th on are in the tensor, from byte 80 of a row of 192: of every other row in two lines.
    let lines = |row: u64| (192 * row + 159) / 128 - (192 * row + 80) / 128 + 1;
    let tiles: u64 = (0..26).map(lines).sum();
    assert_eq!(counted("bulk_reads"), CTAS * (3 + 1) * 2 + CTAS / CLUSTER * tiles);
    // Every CTA of `gathers` sends 2 lines and a count to 3 others, 3 times; of `passes` 2 and a count to one, twice.
    // Each CTA of `tiles` to one: besides lines a part of 12 words outside a row, and 3 rows before and behind the tensor.
    let parts = CTAS / CLUSTER * (tiles + 26 + 3 + 3 + 4);
    assert_eq!(counted("bulk_parts_served"), CTAS * (3 * 3 * 3 + 2 * 3) + parts);
    assert_eq!(counted("bulk_peer_bytes"), CTAS * (3 * 3 * 256 + 1024 + 2 * 256));
}

#[test]
fn races_are_found_where_a_cta_is_not_ready_for_the_bytes_of_another() {
    let races = |text: &str| {
        let (_folder, recipe) = all_of(text);
        let experiment = small(recipe).build().unwrap_or_else(|faults| panic!("{faults}"));
        let outcome = run(&experiment, &Conduct { races: true, ..Conduct::default() }).outcome;
        outcome.races.expect("they are looked for").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(races(KERNELS), [""; 0]);
    // Between the reads of a round and the copies of the next one.
    let barrier = "    barrier.cluster.arrive.release;\n    barrier.cluster.wait.acquire;\n    bra $round;";
    assert!(KERNELS.contains(barrier));
    let found = races(&KERNELS.replace(barrier, "    bra $round;"));
    let told = |race: &String| {
        race.contains("kernel `gathers`") && race.contains("bulk copy at") && race.contains("shared memory + ")
    };
    assert!(found.iter().any(told), "{found:#?}");
    // Between the stores of `passes` and the copy of what they stored.
    let found = races(&KERNELS.replace("    fence.proxy.async.shared::cta;\n", ""));
    let told = |race: &String| race.contains("kernel `passes`") && race.contains("without a `fence.proxy.async`");
    assert!(found.iter().any(told), "{found:#?}");
}

#[test]
fn copies_to_other_ctas_are_the_same_at_every_number_of_threads() {
    let (_folder, recipe) = all_of(KERNELS);
    for gpcs in [1, 4] {
        same_at_any_threads(&small(recipe.clone()).set("sm.gpcs", gpcs), &format!("{gpcs} GPCs"));
    }
}

#[test]
fn reductions_into_other_ctas_are_the_same_at_every_number_of_threads_and_from_checkpoints() {
    let steps = "[[step]]\nkernel = \"combines\"\ngrid = 16\nblock = 64\ncluster = 4\nargs = [\"&words\"]\n";
    let (_folder, recipe) = workload(KERNELS, "[buffer.words]\ntype = \"u32\"\nlen = 1024\n", steps, "\"words\"");
    let recipe = small(recipe).set("sm.gpcs", 1);
    let outcome = ran(recipe.clone());
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    // Each CTA reduces twice into each of its cluster; 256 bytes are two lines.
    assert_eq!(outcome.total("bulk", "bulk_sends"), CTAS * CLUSTER * 2);
    assert_eq!(outcome.total("bulk", "bulk_parts_served"), CTAS * (CLUSTER - 1) * 2 * 3);
    same_at_any_threads(&recipe, "reductions");
    let resumed = goes_on(recipe.set("shared.cluster_cycles", 2000), (10..100).step_by(30));
    assert!(resumed > 1, "{resumed}");
}

#[test]
fn a_run_goes_on_from_a_checkpoint_with_parts_on_their_way() {
    let (_folder, recipe) = all_of(KERNELS);
    let recipe = small(recipe).set("sm.gpcs", 1).set("shared.cluster_cycles", 2000);
    let resumed = goes_on(recipe, (10..100).step_by(20));
    assert!(resumed > 3, "{resumed}");
}

/// Cycles from the issue of a copy by the CTA of rank 0 until the barrier of the other one is over; the first CTA finds
/// `slot` at `%r50` and the other's at `%r51`, barriers of one arrival that await 128 bytes lie at both, and 128 bytes at
/// `%out` are the source of loads.
fn over_there(overrides: &str, copy: &str) -> u64 {
    let body = format!(
        ".reg .b16 %both;\nmov.b16 %both, 3;\nsetp.ne.u32 %p1, %laneid, 0;\n@%p1 bra BEGUN;\n\
         mbarrier.init.shared.b64 [%r50], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r50], 128;\nBEGUN:\n{SYNC}\
         setp.eq.u32 %p2, %r52, 1;\n@%p2 bra OTHER;\n{SETTLE}mov.u64 %d1, %clock64;\n@!%p1 {copy};\nbra OVER;\n\
         OTHER: mbarrier.try_wait.parity.shared.b64 %p3, [%r50], 0;\n@!%p3 bra OTHER;\nmov.u64 %d2, %clock64;\n\
         st.shared::cluster.u64 [%r51+16], %d2;\nOVER:\n{SYNC}@%p2 bra DONE;\nld.shared.u64 %d2, [%r50+16];\n\
         sub.u64 %d3, %d2, %d1;\nst.global.u64 [%out], %d3;\nDONE:"
    );
    let (words, end) = pair(overrides, &body);
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    words[0]
}

#[test]
fn bytes_come_to_another_cta_one_way_between_two_sms_later() {
    let both = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r50+128], [%out], 128, \
                [%r50], %both";
    let other = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r51+128], [%out], 128, [%r51]";
    let sent =
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r51+128], [%r50+256], 128, [%r51]";
    for copy in [both, other, sent] {
        let (near, far) = (over_there("", copy), over_there("shared.cluster_cycles=1078", copy));
        // Tests of the barrier are some cycles apart.
        assert!((980..=1020).contains(&(far - near)), "{near} and {far}: {copy}");
        let late = over_there("shared.bulk_arrive_cycles=1000", copy);
        assert!(late > near + 900, "{near} and {late}: {copy}");
    }
    // A copy between shared memories does not ask the L2.
    let (global, shared) = (over_there("", other), over_there("", sent));
    assert!(shared + 100 < global, "{shared} and {global}");
}

#[test]
fn a_cta_that_has_ended_and_a_barrier_that_is_gone_are_told() {
    let told = |body: &str| match pair("", body).1 {
        RunEnd::Failed { error, .. } => error.to_string(),
        other => panic!("{other:?}"),
    };
    let load = ".reg .b16 %two;\nmov.b16 %two, 2;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \
                [%r50+128], [%out], 128, [%r50], %two;\n";
    let late = format!("{SYNC}setp.eq.u32 %p1, %r52, 1;\n@%p1 exit;\n{SETTLE}{load}");
    assert!(told(&late).contains("the CTA of rank 1, which has ended"), "{}", told(&late));
    let without = format!("{SYNC}setp.eq.u32 %p1, %r52, 1;\n@%p1 bra WAIT;\n{load}WAIT:\n{SETTLE}{SYNC}");
    assert!(told(&without).contains("there is no `mbarrier` here"), "{}", told(&without));
}
