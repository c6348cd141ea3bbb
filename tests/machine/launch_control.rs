//! Clusters that are taken from the grid before they begin, on the timed machine: values and results of the kernels of
//! `tests/kernel/launch_control.rs`, equal at any number of threads; which clusters are taken, what an answer takes, what
//! it saves.

use super::clusters::{SYNC, goes_on, pair, ran, same_at_any_threads, small, workload};
use crate::bench_machine::SETTLE;
use durawarp::engine::RunEnd;
use durawarp::outcome::{End, Outcome};
use durawarp::run::{Conduct, Recipe, run};
use tempfile::TempDir;

const KERNELS: &str = include_str!("../kernel/ptx/launch_control.ptx");

/// CTAs of `steals` and of `shares`; clusters of these have four.
const CTAS: [u64; 2] = [300, 192];

/// Both one after another, on a machine of 16 SMs that hold `ctas` CTAs each.
fn both(ctas: u32) -> (TempDir, Recipe) {
    both_of(KERNELS, ctas)
}

fn both_of(text: &str, ctas: u32) -> (TempDir, Recipe) {
    let buffer = |name: &str, len: u64| format!("[buffer.{name}]\ntype = \"u32\"\nlen = {len}\n");
    let buffers = [
        buffer("stolen", 32 * CTAS[0]),
        buffer("shared", 32 * CTAS[1]),
        buffer("totals", 4),
        // What begins is up to time.
        "[buffer.began]\ntype = \"u32\"\nlen = 2\n".to_owned(),
    ];
    let steps = "[[step]]\nkernel = \"steals\"\ngrid = [10, 10, 3]\nblock = 32\nargs = [\"&stolen\", \"&totals\"]\n\
                 [[step]]\nkernel = \"shares\"\ngrid = [12, 16]\nblock = 32\ncluster = [2, 2, 1]\n\
                 args = [\"&shared\", \"&began\"]\n";
    let (folder, recipe) = workload(text, &buffers.concat(), steps, "\"stolen\", \"shared\"");
    (folder, small(recipe.machine("blackwell-b200")).set("sm.ctas", ctas).set("sm.gpcs", 2))
}

fn counted(outcome: &Outcome) -> [u64; 3] {
    let of = |name: &str| outcome.total("bulk", name);
    [of("cancel_requests"), of("clusters_cancelled"), outcome.total("sm", "ctas")]
}

#[test]
fn what_has_no_room_is_taken_by_a_cta_that_runs_and_every_item_is_worked_on_once() {
    for ctas in [2, 4] {
        let (_folder, recipe) = both(ctas);
        let outcome = ran(recipe);
        assert_eq!(outcome.end, End::Finished);
        let check = outcome.verification.as_ref().unwrap();
        assert!(check.passed, "{:?}", check.failures);
        let [requests, taken, began] = counted(&outcome);
        // As many begin as have room, since who ends makes room only when nothing is left to take.
        let room = u64::from(16 * ctas);
        assert_eq!(began, 2 * room, "{ctas} CTAs an SM");
        assert_eq!(taken, CTAS[0] - room + (CTAS[1] - room) / 4);
        // Each CTA, or cluster, asks once more than it gets.
        assert_eq!(requests, taken + room + room / 4);
    }
}

#[test]
fn all_that_has_room_begins_and_nothing_is_taken() {
    let (_folder, recipe) = both(32);
    let outcome = ran(recipe.set("sm.count", 32));
    assert_eq!(outcome.end, End::Finished);
    assert_eq!(counted(&outcome), [CTAS[0] + CTAS[1] / 4, 0, CTAS[0] + CTAS[1]]);
}

#[test]
fn taken_clusters_are_the_same_at_every_number_of_threads() {
    let (_folder, recipe) = both(4);
    same_at_any_threads(&recipe, "4 CTAs an SM");
}

#[test]
fn a_run_goes_on_from_a_checkpoint_with_requests_on_their_way() {
    let (_folder, recipe) = both(2);
    let resumed = goes_on(recipe.set("dispatch.command_ns", 2000), (5..100).step_by(30));
    assert!(resumed > 2, "{resumed}");
}

#[test]
fn the_answer_may_not_be_read_before_its_barrier_and_that_is_all_it_needs() {
    let races = |text: &str| {
        let (_folder, recipe) = both_of(text, 4);
        let experiment = recipe.build().unwrap_or_else(|faults| panic!("{faults}"));
        let outcome = run(&experiment, &Conduct { races: true, ..Conduct::default() }).outcome;
        outcome.races.expect("they are looked for").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(races(KERNELS), [""; 0]);
    // The functional driver has the answer at once, and finds that nobody waits for it.
    let wait = "$wait:\n    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r3], %r7;\n    @!%p2 bra $wait;\n    \
                xor.b32 %r7, %r7, 1;\n    ld.shared.b128";
    assert!(KERNELS.contains(wait));
    let found = races(&KERNELS.replace(wait, "    xor.b32 %r7, %r7, 1;\n    ld.shared.b128"));
    assert!(found.iter().any(|race| race.contains("kernel `steals`")), "{found:#?}");
}

/// Cycles from a request until its barrier is over, of the only two CTAs of a grid.
fn asks(overrides: &str) -> u64 {
    let body = format!(
        "setp.ne.u32 %p1, %laneid, 0;\n@%p1 bra BEGUN;\nmbarrier.init.shared.b64 [%r50], 1;\n\
         mbarrier.arrive.expect_tx.shared.b64 _, [%r50], 16;\nBEGUN:\n{SYNC}{SETTLE}mov.u64 %d1, %clock64;\n@!%p1 \
         clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r50+16], [%r50];\n\
         WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r50], 0;\n@!%p3 bra WAIT;\nmov.u64 %d2, %clock64;\n\
         sub.u64 %d3, %d2, %d1;\nst.global.u64 [%out], %d3;\nld.shared.u32 %r54, [%r50+28];\n\
         cvt.u64.u32 %d4, %r54;\nst.global.u64 [%out+8], %d4;\n{SYNC}"
    );
    let (words, end) = pair(overrides, &body);
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    assert_eq!(words[1], 0, "nothing was left to take");
    words[0]
}

#[test]
fn a_request_goes_to_the_command_processor_and_back() {
    let short = asks("dispatch.command_ns=100");
    // The core runs at 1.98 GHz, and looks at the barrier every few cycles.
    let more = asks("dispatch.command_ns=1100") - short;
    let expected = 2 * 1980;
    assert!(more.abs_diff(expected) <= 20, "{more} for {expected}");
}

#[test]
fn who_takes_work_saves_its_own_beginning() {
    // The same kernel with a prologue of some hundred cycles, as it is and where no request is made.
    let prologue = "    mov.u32 %r30, 0;\n$prologue:\n    add.u32 %r30, %r30, 1;\n    setp.lt.u32 %p7, %r30, 60;\n    \
                    @%p7 bra $prologue;\n    mov.u32 %r7, 0;\n$item:\n    bar.sync 0;";
    let begins = "    mov.u32 %r7, 0;\n$item:\n    bar.sync 0;";
    assert!(KERNELS.contains(begins));
    let text = KERNELS.replace(begins, prologue);
    let asks = "    @!%p2 bra $wait;\n    xor.b32 %r7, %r7, 1;\n    ld.shared.b128";
    assert!(text.contains(asks));
    let cycles = |text: &str| {
        let (_folder, recipe) = both_of(text, 2);
        let outcome = ran(recipe);
        assert_eq!(outcome.end, End::Finished);
        outcome.launches[0].length.ps
    };
    let alone =
        text.replace(asks, "    @!%p2 bra $wait;\n    bra $over;\n    xor.b32 %r7, %r7, 1;\n    ld.shared.b128");
    let alone = alone.replace(
        "    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r3];",
        "    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 16;",
    );
    let (taking, alone) = (cycles(&text), cycles(&alone));
    assert!(taking * 10 < alone * 9, "{taking} {alone}");
}
