//! Random programs under `light-wsp` on the machine: they finish with the functional run's memory, and from every power
//! failure hardware recovers a prefix of regions from which the program goes on to the same end.
//!
//! Programs without races hand values from thread to thread in every way that a kernel has (`kernels`), under random
//! parameters of the scheme and of the machine. A state that leaves out what a later one is built on shows when the
//! program goes on from it. By default a few cases, the same each time; many, and others:
//!
//! ```text
//! PROPTEST_CASES=2000 cargo test --test persistency light_wsp_random -- --ignored
//! ```

mod kernels;

use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel};
use durawarp::oracle::crash::Plan;
use durawarp::run::{Conduct, Experiment, run};
use durawarp::workload::Workload;
use kernels::{Leaf, Poll, Program, Step, program};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A program, and what it runs on.
#[derive(Debug, Clone)]
struct Case {
    program: Program,
    warp_size: u32,
    /// `KEY=VALUE`.
    machine: Vec<String>,
    scheme: Vec<String>,
    threads: bool,
}

/// Powers of two and what lies between: small ones as often as large ones.
fn size(most: u32) -> impl Strategy<Value = u32> {
    (0..=most.ilog2(), any::<u32>()).prop_map(move |(bits, more)| (1 << bits | more & ((1 << bits) - 1)).min(most))
}

fn case() -> impl Strategy<Value = Case> {
    let machine = (
        prop::sample::select(&[32u32, 32, 32, 64][..]),
        2u32..4,
        1u32..4,
        prop::sample::select(&[1u32, 2, 4][..]),
        prop::sample::select(&[(3u32, 4u32), (24, 64)][..]),
        1u32..3,
        any::<bool>(),
    );
    // Of a controller: reads, writes, watermarks, writes that may idle.
    let queues = prop::sample::select(&[[64u32, 64, 51, 13, 0], [1, 1, 1, 0, 0], [2, 3, 3, 1, 2], [1, 8, 6, 2, 5]][..]);
    let entries = prop::sample::select(&[8u32, 32, 128][..]);
    let buffers = (size(64), size(64), entries, 4u32..17, 4u32..33, queues);
    let links = (size(100), size(500), size(500), prop::sample::select(&[0u32, 0, 30, 500][..]), 1000u32..64000);
    let choices = (
        prop::sample::select(&["warp", "cta"][..]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(&["acked", "pipelined"][..]),
        prop::sample::select(&["lanes", "uniform_once"][..]),
        prop::sample::select(&["full", "half", "zero"][..]),
    );
    (program(), machine, buffers, links, choices).prop_map(|(program, machine, buffers, links, choices)| {
        let (warp_size, sms, ctas, controllers, (l1, slice), width, threads) = machine;
        let (feb, wpq, entry, id_bits, threshold, [reads, writes, high, low, idle]) = buffers;
        let (path, ack, sequencer, step, bandwidth) = links;
        let (owner, of_sm, unroll, prune, commit, checkpoints, victims) = choices;
        let order = if of_sm && program.apart { "sm" } else { "global" };
        let machine = vec![
            format!("sm.count={sms}"),
            format!("sm.ctas={ctas}"),
            format!("sm.warp_size={warp_size}"),
            format!("sm.issue_width={width}"),
            format!("controller.channels={controllers}"),
            format!("l2.slices={}", controllers.max(2)),
            format!("l1.kb={l1}"),
            format!("l2.slice_kb={slice}"),
            format!("controller.read_queue_entries={reads}"),
            format!("controller.write_queue_entries={writes}"),
            format!("controller.drain_high_entries={high}"),
            format!("controller.drain_low_entries={low}"),
            format!("controller.drain_idle_entries={idle}"),
        ];
        let scheme = [
            format!("feb_entries={feb}"),
            format!("wpq_entries={wpq}"),
            format!("entry_bytes={entry}"),
            format!("id_bits={id_bits}"),
            format!("threshold_stores={threshold}"),
            format!("path_latency_ns={path}"),
            format!("ack_latency_ns={ack}"),
            format!("sequencer_latency_ns={sequencer}"),
            format!("controller_step_ns={step}"),
            format!("path_mb_s={bandwidth}"),
            format!("owner={owner}"),
            format!("order={order}"),
            format!("unroll={unroll}"),
            format!("speculative_unroll={unroll}"),
            format!("prune={prune}"),
            format!("victims={victims}"),
            format!("commit={commit}"),
            format!("checkpoints={checkpoints}"),
        ];
        let scheme = scheme.iter().map(|set| format!("light_wsp.{set}")).collect();
        Case { program, warp_size, machine, scheme, threads }
    })
}

impl Case {
    fn experiment(&self) -> Experiment {
        let workload = Workload::from_text(&self.program.manifest(self.warp_size));
        let recipe = Experiment::of(workload.unwrap_or_else(|faults| panic!("{faults}"))).scheme("light-wsp");
        let recipe = recipe.changes(&self.machine).changes(&self.scheme).max_cycles(20_000_000);
        recipe.build().unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// # Errors
    /// What is wrong, in words.
    fn check(&self) -> Result<CrashReport, String> {
        let experiment = self.experiment();
        let request = CrashRequest { plan: Plan::All, double: true, resume: 200, ..CrashRequest::default() };
        let report = experiment.crash(&request).map_err(|faults| faults.to_string())?;
        if !report.ended_well() {
            let failed = report.outcome.verification.as_ref().map(|verification| &verification.failures);
            return Err(format!("{:?}, {failed:?}", report.outcome.end));
        }
        if !report.holds() {
            let found = report
                .judgements()
                .flat_map(|(name, judgement)| judgement.found.iter().map(move |found| format!("{name}: {found:?}")));
            return Err(found.take(4).collect::<Vec<_>>().join("\n"));
        }
        if report.level(JudgedLevel::Resumed).is_none() {
            return Err(format!("not resumed: {:?}", report.promises));
        }
        if self.threads {
            let conduct = Conduct { threads: 3, oversubscribe: true, ..Conduct::default() };
            let other = run(&experiment, &conduct).outcome;
            let digests =
                |outcome: &durawarp::outcome::Outcome| (outcome.digest.clone(), outcome.memory_digest.clone());
            if digests(&other) != digests(&report.outcome) {
                return Err("another result at three threads".to_owned());
            }
        }
        Ok(report)
    }
}

fn holds(case: &Case) -> Result<(), TestCaseError> {
    match case.check() {
        Ok(_) => Ok(()),
        Err(what) => Err(TestCaseError::fail(format!("{what}\n{}", case.program.manifest(case.warp_size)))),
    }
}

/// A program on two SMs with room for two CTAs each.
fn fixed(steps: Vec<Step>, apart: bool, width: u32, sets: &[&str]) -> Case {
    let program = Program { grid: 5, workers: 4, block: 64, launches: 1, steps, apart };
    let machine = ["sm.count=2", "sm.ctas=2", "controller.channels=2", "l2.slices=2"].map(str::to_owned);
    let machine = machine.into_iter().chain([format!("sm.issue_width={width}")]).collect();
    let scheme = sets.iter().map(|set| format!("light_wsp.{set}")).collect();
    Case { program, warp_size: 32, machine, scheme, threads: true }
}

fn assert_holds(case: &Case) {
    case.check().unwrap_or_else(|what| panic!("{what}\n{case:?}"));
}

#[test]
fn atomics_of_warps_of_an_sm_are_in_its_order() {
    // Behind an atomic that is under way come checkpoints, and the program counter: they are no reason for an earlier ID.
    for sets in [["owner=warp", "id_bits=4"], ["owner=warp", "id_bits=16"], ["owner=cta", "id_bits=16"]] {
        let steps = vec![Step::Leaf(Leaf::Lock { fence: false })];
        assert_holds(&fixed(steps, true, 1, &["order=sm", sets[0], sets[1]]));
    }
}

#[test]
fn an_atomic_that_issues_beside_another_instruction_asks_for_leave_too() {
    for owner in ["owner=warp", "owner=cta"] {
        let steps = vec![Step::Leaf(Leaf::Ticket), Step::Last];
        assert_holds(&fixed(steps, false, 2, &[owner]));
    }
}

#[test]
fn a_warp_that_waits_for_a_flag_does_not_hold_up_who_is_to_set_it() {
    // Were its region to last as long as it waits, the queues would be full of younger ones' stores.
    for owner in ["owner=warp", "owner=cta"] {
        let steps = vec![Step::OfWarp { poll: Poll::Load }, Step::OfCta { poll: Poll::Load, by_add: true }];
        let sets = [owner, "wpq_entries=8", "feb_entries=1", "entry_bytes=8", "prune=false"];
        assert_holds(&fixed(steps, false, 1, &sets));
    }
}

#[test]
fn ids_of_few_bits_are_not_used_again_before_the_last_controller_has_committed() {
    // Acknowledgements among controllers take longer than a new ID, and a store with it.
    for sets in [["owner=cta", "order=global"], ["owner=warp", "order=sm"]] {
        let steps = vec![Step::Leaf(Leaf::Store { at: 0, bytes: 1 }), Step::Leaf(Leaf::Fence { cta: false })];
        let slow = ["id_bits=4", "ack_latency_ns=400", "sequencer_latency_ns=1", "path_latency_ns=1"];
        assert_holds(&fixed(steps, true, 1, &[&sets[..], &slow].concat()));
    }
}

#[test]
fn a_warp_that_polls_by_atomics_does_not_keep_others_reads_waiting() {
    // What it stores each turn is written with an undo log: old bytes read, two lines written, of one bank time and again.
    let polls = Step::OfCta { poll: Poll::Cas, by_add: false };
    let queues = ["wpq_entries=1", "feb_entries=3", "entry_bytes=8", "id_bits=6", "threshold_stores=26", "prune=false"];
    let links = ["path_latency_ns=7", "ack_latency_ns=3", "sequencer_latency_ns=225", "path_mb_s=2965"];
    let sets = [&["owner=cta"][..], &queues, &links].concat();
    let mut case = fixed(vec![polls, Step::Leaf(Leaf::Store { at: 32, bytes: 1 })], false, 2, &sets);
    (case.program.launches, case.program.workers) = (2, 5);
    case.warp_size = 64;
    let machine = ["sm.count=3", "sm.ctas=1", "sm.warp_size=64", "sm.issue_width=2", "controller.channels=1"];
    case.machine = machine.into_iter().chain(["l2.slices=2", "l2.slice_kb=4", "l1.kb=3"]).map(str::to_owned).collect();
    assert_holds(&case);
}

#[test]
fn with_an_order_for_each_sm_a_launch_is_in_memory_before_the_next_one_stores() {
    // A CTA of the second launch runs on another SM than in the first, and its checkpoints are at the same place. A far controller
    // and write queues of one entry: regions take long to commit.
    let queues = ["order=sm", "owner=warp", "feb_entries=14", "wpq_entries=42", "threshold_stores=18", "id_bits=13"];
    let links = ["path_latency_ns=42", "ack_latency_ns=70", "controller_step_ns=500", "path_mb_s=24078", "prune=false"];
    let steps = vec![Step::Leaf(Leaf::SharedAtomic), Step::Barrier, Step::Last, Step::Leaf(Leaf::Load { at: 16 })];
    let mut case = fixed(steps, true, 2, &[&queues[..], &links].concat());
    (case.program.grid, case.program.workers, case.program.launches) = (3, 3, 2);
    let sizes = ["sm.count=2", "sm.ctas=1", "controller.channels=4", "l2.slices=4", "l1.kb=24", "l2.slice_kb=64"];
    let queues = ["read_queue_entries=1", "write_queue_entries=1", "drain_high_entries=1", "drain_low_entries=0"];
    case.machine = sizes.map(str::to_owned).into_iter().chain(queues.map(|set| format!("controller.{set}"))).collect();
    assert_holds(&case);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn random_programs_go_on_from_every_power_failure(case in case()) {
        holds(&case)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "minutes: for many cases, PROPTEST_CASES of them"]
    fn many_random_programs_go_on_from_every_power_failure(case in case()) {
        holds(&case)?;
    }
}
