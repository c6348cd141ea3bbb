//! Litmus programs on cores: what the memory order forbids is never seen, and what it allows is seen where
//! the machine does it.

mod bench;
mod tso;

use std::collections::{BTreeMap, BTreeSet};

use durawarp::machine::core::Consistency;

use bench::{Cores, outcomes};
use tso::{Act, Outcome, allowed};

use Act::{Fence, Load, Store};

fn two(consistency: Consistency) -> Cores {
    Cores { count: 2, harts: 1, consistency, batch_cycles: 8 }
}

/// Name, threads, locations.
fn programs() -> Vec<(&'static str, Vec<Vec<Act>>, usize)> {
    let (x, y) = (0, 1);
    vec![
        ("SB", vec![vec![Store(x, 1), Load(y)], vec![Store(y, 1), Load(x)]], 2),
        ("SB+fences", vec![vec![Store(x, 1), Fence, Load(y)], vec![Store(y, 1), Fence, Load(x)]], 2),
        ("MP", vec![vec![Store(x, 1), Store(y, 1)], vec![Load(y), Load(x)]], 2),
        ("LB", vec![vec![Load(x), Store(y, 1)], vec![Load(y), Store(x, 1)]], 2),
        ("2+2W", vec![vec![Store(x, 1), Store(y, 2)], vec![Store(y, 1), Store(x, 2)]], 2),
        ("CoRR", vec![vec![Store(x, 1), Store(x, 2)], vec![Load(x), Load(x), Load(x)]], 1),
        ("WRC", vec![vec![Store(x, 1)], vec![Load(x), Store(y, 1)], vec![Load(y), Load(x)]], 2),
        ("IRIW", vec![vec![Store(x, 1)], vec![Store(y, 1)], vec![Load(x), Load(y)], vec![Load(y), Load(x)]], 2),
        ("own store", vec![vec![Store(x, 1), Load(x), Load(y)], vec![Store(y, 1), Load(y), Load(x)]], 2),
        ("R", vec![vec![Store(x, 1), Store(y, 1)], vec![Store(y, 2), Load(x)]], 2),
    ]
}

/// How often each outcome was seen, and how many loads were executed again.
fn seen(
    cores: &Cores,
    threads: &[Vec<Act>],
    locations: usize,
    rounds: u64,
    seeds: u64,
) -> (BTreeMap<Outcome, u64>, u64) {
    let (mut seen, mut again) = (BTreeMap::new(), 0);
    for seed in 0..seeds {
        let (rounds, squashes) = outcomes(cores, threads, locations, rounds, seed);
        rounds.into_iter().for_each(|outcome| *seen.entry(outcome).or_default() += 1);
        again += squashes;
    }
    (seen, again)
}

/// Runs every program on cores, and compares with the enumeration.
fn all_are_allowed(cores_of: impl Fn(usize) -> Cores, rounds: u64, seeds: u64) {
    for (name, threads, locations) in programs() {
        let allowed = allowed(&threads, locations);
        let (seen, _) = seen(&cores_of(threads.len()), &threads, locations, rounds, seeds);
        let forbidden: Vec<_> = seen.iter().filter(|(outcome, _)| !allowed.contains(*outcome)).collect();
        assert!(forbidden.is_empty(), "{name}: {forbidden:?}; allowed {allowed:?}");
        assert!(seen.len() > 1, "{name}: {seen:?}");
    }
}

fn a_core_each(consistency: Consistency) -> impl Fn(usize) -> Cores {
    move |threads| Cores { count: threads as u32, ..two(consistency) }
}

#[test]
fn total_store_order_allows_what_is_seen() {
    all_are_allowed(a_core_each(Consistency::Tso), 300, 2);
}

#[test]
fn harts_of_one_core_keep_total_store_order() {
    let two_harts = |threads: usize| Cores { count: threads.div_ceil(2) as u32, harts: 2, ..two(Consistency::Tso) };
    all_are_allowed(two_harts, 300, 2);
}

#[test]
#[ignore = "a hundred thousand rounds of each program: minutes"]
fn total_store_order_allows_what_is_seen_in_a_hundred_thousand_rounds() {
    all_are_allowed(a_core_each(Consistency::Tso), 2000, 50);
}

#[test]
fn store_buffering_is_seen() {
    let (_, threads, locations) = programs().swap_remove(0);
    let (seen, _) = seen(&two(Consistency::Tso), &threads, locations, 300, 1);
    assert!(seen.get(&vec![0, 0, 1, 1]).is_some_and(|&rounds| rounds > 10), "{seen:?}");
}

#[test]
fn message_passing_needs_the_rule_of_early_loads() {
    let (_, threads, locations) = programs().swap_remove(2);
    let weak = vec![1, 0, 1, 1];
    let (tso, again) = seen(&two(Consistency::Tso), &threads, locations, 600, 2);
    assert!(!tso.contains_key(&weak) && again > 10, "{tso:?}, {again} executed again");
    let (rvwmo, _) = seen(&two(Consistency::Rvwmo), &threads, locations, 600, 2);
    assert!(rvwmo.get(&weak).is_some_and(|&rounds| rounds > 10), "{rvwmo:?}");
}

#[test]
fn fences_forbid_message_passing_under_the_weak_order() {
    let threads = vec![vec![Store(0, 1), Fence, Store(1, 1)], vec![Load(1), Fence, Load(0)]];
    let (seen, _) = seen(&two(Consistency::Rvwmo), &threads, 2, 600, 2);
    assert!(!seen.contains_key(&vec![1, 0, 1, 1]) && seen.len() > 1, "{seen:?}");
}

#[test]
fn loads_of_one_address_are_in_order_under_the_weak_order() {
    let (_, threads, locations) = programs().swap_remove(5);
    let allowed: BTreeSet<Outcome> = allowed(&threads, locations);
    let (seen, _) = seen(&two(Consistency::Rvwmo), &threads, locations, 600, 2);
    assert!(seen.keys().all(|outcome| allowed.contains(outcome)), "{seen:?}");
}
