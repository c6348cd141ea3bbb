//! The promise of the engine: the same events, in the same order, whatever runs them.

use std::sync::atomic::AtomicBool;

use crate::chatter::Model;
use durawarp_engine::{Fallback, Placement, Rebalance, RunEnd, RunOptions, first_difference};
use proptest::prelude::*;

/// Real threads from the first round on.
fn threads(threads: usize) -> RunOptions<'static> {
    RunOptions {
        threads,
        oversubscribe: true,
        fallback: Fallback::Never,
        rebalance: Rebalance::Never,
        placement: Placement::RoundRobin,
        ..RunOptions::default()
    }
}

/// Everything that can change how a run is driven.
pub(crate) fn all_ways() -> Vec<RunOptions<'static>> {
    let placements = [Placement::Auto, Placement::Blocks, Placement::Shuffled(11)];
    let explicit = Placement::Explicit(vec![1, 1, 0, 1, 2, 0, 0, 1]);
    let mut ways = vec![RunOptions::default(), threads(2), threads(3), threads(8)];
    ways.extend(placements.into_iter().chain([explicit]).map(|placement| RunOptions { placement, ..threads(3) }));
    for rounds in [1, 3] {
        ways.push(RunOptions { rebalance: Rebalance::Forced { rounds }, ..threads(3) });
        ways.push(RunOptions { fallback: Fallback::Forced { rounds }, ..threads(2) });
        ways.push(RunOptions {
            rebalance: Rebalance::Forced { rounds: 2 },
            fallback: Fallback::Forced { rounds },
            ..threads(3)
        });
    }
    ways.extend(
        [2, 3, 8].map(|workers| RunOptions { rebalance: Rebalance::Dice { seed: workers as u64 }, ..threads(workers) }),
    );
    ways.push(RunOptions { trace: true, ..threads(2) });
    ways.push(RunOptions { auto: true, ..threads(4) });
    ways.push(RunOptions { fallback: Fallback::Measured, rebalance: Rebalance::Measured, ..threads(2) });
    ways
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_driver_agrees_with_the_reference(model in Model::any()) {
        let mut reference = model.reference();
        let last = reference.run(None);
        let mut totals = None;
        for options in all_ways() {
            let mut simulation = model.simulation();
            let end = simulation.run(&options);
            prop_assert!(matches!(end, RunEnd::Finished { at } if at == last), "{end:?}, not {last}: {options:?}");
            prop_assert_eq!(simulation.stats().events(), reference.events(), "{:?}", options);
            prop_assert_eq!(simulation.digest(), reference.digest(), "{:?}", options);
            // What the model makes of rounds does not depend on the driver either.
            let stats = simulation.stats();
            prop_assert_eq!(stats.totals.events, stats.events());
            prop_assert_eq!(*totals.get_or_insert(stats.totals), stats.totals, "{:?}", options);
        }
    }

    /// What the wall clock decides in a run on a loaded host, each time another way.
    #[test]
    fn whatever_dice_decide_of_legs_placements_and_loans_results_are_the_references(
        model in Model::any(), seeds in proptest::collection::vec(any::<u64>(), 8), workers in 2usize..6, epoch in 1u64..3000
    ) {
        let options = |base: RunOptions<'static>| RunOptions { epoch_ticks: Some(epoch), ..base };
        let one = model.run(&options(RunOptions::default()));
        let mut reference = model.reference();
        reference.run(None);
        for seed in seeds {
            let many = model.run(&options(RunOptions { rebalance: Rebalance::Dice { seed }, ..threads(workers) }));
            prop_assert_eq!(many.digest(), reference.digest(), "{} workers, seed {}", workers, seed);
            prop_assert_eq!(many.stats().totals, one.stats().totals, "{} workers, seed {}", workers, seed);
            let difference = first_difference(one.epoch_digests().unwrap(), many.epoch_digests().unwrap());
            prop_assert_eq!(difference, None, "{} workers, seed {}", workers, seed);
        }
    }

    #[test]
    fn a_run_in_pieces_is_the_same_run(model in Model::any(), cuts in proptest::collection::vec(0u64..200_000, 1..5)) {
        let whole = model.run(&RunOptions::default());
        let mut cuts = cuts;
        cuts.sort_unstable();
        for base in [threads(1), threads(2)] {
            let mut pieces = model.simulation();
            let mut reference = model.reference();
            for &cut in &cuts {
                let end = pieces.run(&RunOptions { time_limit: Some(cut), ..base.clone() });
                reference.run(Some(cut));
                // Exactly the events up to the limit are handled.
                prop_assert_eq!(pieces.stats().events(), reference.events(), "cut at {}", cut);
                prop_assert_eq!(pieces.digest(), reference.digest(), "cut at {}", cut);
                match end {
                    RunEnd::TimeLimit { at } => prop_assert_eq!(at, cut),
                    RunEnd::Finished { at } => prop_assert!(at <= cut),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            pieces.run(&threads(3));
            prop_assert_eq!(pieces.digest(), whole.digest());
            prop_assert_eq!(pieces.stats().events(), whole.stats().events());
        }
    }

    #[test]
    fn a_stopped_run_has_handled_everything_before_an_instant_and_nothing_after(model in Model::any()) {
        let stop = AtomicBool::new(true);
        for base in [threads(1), threads(3)] {
            let mut pieces = model.simulation();
            let mut reference = model.reference();
            for _ in 0..40 {
                let end = pieces.run(&RunOptions { stop: Some(&stop), ..base.clone() });
                let RunEnd::Stopped { at } = end else { break };
                prop_assert_eq!(at >= pieces.reached(), true);
                reference.run(Some(pieces.reached() - 1));
                prop_assert_eq!(pieces.digest(), reference.digest(), "stopped at {}", at);
            }
        }
    }

    #[test]
    fn epochs_are_the_same_whatever_runs_them(model in Model::any(), epoch in 1u64..3000) {
        let options = |base: RunOptions<'static>| RunOptions { epoch_ticks: Some(epoch), ..base };
        let one = model.run(&options(threads(1)));
        let three = model.run(&options(threads(3)));
        let moved = RunOptions { rebalance: Rebalance::Forced { rounds: 2 }, ..threads(2) };
        let moved = model.run(&options(moved));
        let mut cut = model.simulation();
        cut.run(&RunOptions { time_limit: Some(epoch * 3 / 2), ..options(threads(2)) });
        cut.run(&options(threads(1)));
        let epochs = one.epoch_digests().unwrap();
        prop_assert_eq!(one.digest(), model.run(&threads(1)).digest());
        for other in [&three, &moved, &cut] {
            prop_assert_eq!(first_difference(epochs, other.epoch_digests().unwrap()), None);
        }
        // The last row is the end of the run.
        let last = epochs.rows().last().map(|(_, row)| row.to_vec());
        let ids = (0..model.components).map(durawarp_engine::ComponentId);
        prop_assert_eq!(last, Some(ids.map(|id| one.component_digest(id)).collect::<Vec<_>>()));
    }
}

#[test]
fn sixty_four_threads_agree_with_one() {
    let mut links = Vec::new();
    for i in 0..70 {
        links.push((i, i + 1, 20, 0));
        links.push((i, i + 9, 25, 1));
    }
    let model = Model {
        components: 70,
        links,
        wakes: (0..70).map(|i| (i, 0)).collect(),
        posts: vec![],
        together: vec![],
        tiers: vec![],
        fused: vec![],
        wakes_left: 20,
        talk: 10,
    };
    let one = model.run(&RunOptions::default());
    let many = model.run(&threads(64));
    assert_eq!(many.digest(), one.digest());
    assert_eq!(many.stats().workers, 64);
    // Without oversubscription there are never more than cores.
    let capped = model.run(&RunOptions { threads: 64, ..RunOptions::default() });
    assert_eq!(capped.digest(), one.digest());
    assert!(capped.stats().workers <= std::thread::available_parallelism().unwrap().get());
}

#[test]
fn the_first_difference_of_two_runs_is_found() {
    let model = |posts: Vec<(u32, u64)>| Model {
        components: 3,
        links: vec![(0, 1, 10, 0), (1, 2, 10, 0)],
        wakes: vec![(0, 5)],
        posts,
        together: vec![],
        tiers: vec![],
        fused: vec![],
        wakes_left: 0,
        talk: 0,
    };
    let options = RunOptions { epoch_ticks: Some(100), ..RunOptions::default() };
    let a = model(vec![(1, 250), (2, 777)]).run(&options);
    let b = model(vec![(1, 250), (2, 778)]).run(&options);
    let found = first_difference(a.epoch_digests().unwrap(), b.epoch_digests().unwrap());
    assert_eq!(found, Some((7, durawarp_engine::ComponentId(2))));
}
