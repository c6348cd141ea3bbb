//! The examples of the engine as models with known results: equal digests at any number of threads, a queueing
//! network beside its theory, a ring worked by hand.
//!
//! Each example's `main` is run as it stands: what the guide points at works.

#[path = "../examples/phold.rs"]
mod phold;
#[path = "../examples/queueing_network.rs"]
mod queueing_network;
#[path = "../examples/ring.rs"]
mod ring;

use durawarp_engine::{Fallback, Message, Reference, RunOptions, Simulation, Topology};

/// Events and digest at 1, 2, 3 and 8 threads, all at work, are those of the reference driver.
fn agrees<M: Message>(topology: impl Fn() -> Topology<M>, time_limit: Option<u64>) {
    let mut reference = Reference::new(topology()).expect("a sound topology");
    reference.run(time_limit);
    assert!(reference.events() > 1_000, "{} events: the model does something", reference.events());
    for threads in [1, 2, 3, 8] {
        let mut simulation = Simulation::new(topology()).expect("a sound topology");
        let options =
            RunOptions { threads, time_limit, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() };
        simulation.run(&options);
        assert_eq!(simulation.stats().workers, threads.min(simulation.components()));
        assert_eq!(simulation.stats().events(), reference.events(), "{threads} threads");
        assert_eq!(simulation.digest(), reference.digest(), "{threads} threads");
    }
}

#[test]
fn phold_is_the_same_at_any_number_of_threads() {
    agrees(|| phold::MODEL.topology(), None);
    let uneven = phold::Phold { work: 10, heavy: 1, until: 20_000, ..phold::MODEL };
    agrees(|| uneven.topology(), None);
}

#[test]
fn phold_makes_the_expected_number_of_events() {
    phold::main();
}

#[test]
fn the_queueing_network_is_the_same_at_any_number_of_threads() {
    agrees(queueing_network::topology, Some(2_000_000));
}

/// The example asserts it.
#[test]
fn the_queueing_network_has_the_means_of_theory() {
    queueing_network::main();
}

/// Two equal stations in a cycle without delay between them: of `n` jobs each has half, and is idle where the other
/// has all of them, which `n + 1` equally likely states make a probability of 1/(n + 1).
#[test]
fn theory_knows_two_equal_stations() {
    let means = queueing_network::mean_values([1.0, 1.0], [700.0, 700.0], 0.0, 5);
    for mean in means {
        assert!((mean.jobs - 2.5).abs() < 1e-9 && (mean.utilisation - 5.0 / 6.0).abs() < 1e-9, "{mean:?}");
    }
}

#[test]
fn the_ring_is_the_same_at_any_number_of_threads() {
    agrees(|| ring::topology(None), None);
    agrees(|| ring::topology(Some(ring::LOST)), None);
}

/// The example asserts its ends and digests.
#[test]
fn the_ring_ends_as_worked_by_hand() {
    ring::main();
}
