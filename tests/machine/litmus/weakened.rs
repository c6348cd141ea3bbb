//! A machine that lacks one rule of the memory order does what the order forbids, and the table sees it.

use durawarp::machine::core::{Consistency, OrderRule};

use super::table::named;

/// A rule, the order, and programs of which each finds that it is missing.
const RULES: &[(OrderRule, Consistency, &[&str])] = &[
    (OrderRule::SameAddressLoads, Consistency::Rvwmo, &["CoRR+addr", "CoRR+across-half", "RDW"]),
    (OrderRule::EarlyLoads, Consistency::Tso, &["MP", "IRIW", "WRC"]),
    (OrderRule::SecondLine, Consistency::Rvwmo, &["CoRR+across-half", "CoRR+half-across"]),
    (OrderRule::SecondLine, Consistency::Tso, &["MP+across+po"]),
    (OrderRule::Evictions, Consistency::Tso, &["MP+po-pos"]),
    (OrderRule::Evictions, Consistency::Rvwmo, &["CoRR+addr-pos"]),
    (OrderRule::Siblings, Consistency::Tso, &["MP"]),
    (OrderRule::Siblings, Consistency::Rvwmo, &["CoRR+addr"]),
    (OrderRule::Forwarding, Consistency::Tso, &["CoWR0"]),
    (OrderRule::UnknownStores, Consistency::Rvwmo, &["CoWR+addr", "CoWR+data"]),
    (OrderRule::FenceWritesReads, Consistency::Tso, &["SB+fence.w.rs", "R+fence.w.w+fence.w.r"]),
    (OrderRule::FenceReads, Consistency::Rvwmo, &["MP+fence.w.w+fence.r.r", "IRIW+fence.r.rs"]),
    (OrderRule::StoresInOrder, Consistency::Tso, &["MP", "2+2W"]),
    (OrderRule::StoresInOrder, Consistency::Rvwmo, &["MP+fence.w.w+addr", "2+2W+fence.w.ws"]),
    (OrderRule::StoresAfterLoads, Consistency::Tso, &["LB"]),
    (OrderRule::StoresAfterLoads, Consistency::Rvwmo, &["LB+addr-pos"]),
    (OrderRule::AtomicsAfterLoads, Consistency::Rvwmo, &["LB+amoswap.rls"]),
    (OrderRule::AtomicsAfterStores, Consistency::Rvwmo, &["MP+amoswap.rl+addr"]),
    (OrderRule::AtomicReadWrite, Consistency::Rvwmo, &["AMO+AMO"]),
    (OrderRule::Reservations, Consistency::Rvwmo, &["LRSC+LRSC", "SC"]),
];

#[test]
fn each_rule_that_a_machine_lacks_is_found() {
    let mut missed = Vec::new();
    for &(rule, consistency, names) in RULES {
        for name in names {
            // Until it is found, within ten thousand rounds.
            let found = (0..25).find(|&seed| named(name).run(consistency, Some(rule), 100, seed).forbidden.is_some());
            if found.is_none() {
                missed.push((rule, consistency, name));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
