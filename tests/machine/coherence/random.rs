//! Many acts of a few cores with tiny L1s on a few lines, over a home with less room than the cores have: every load
//! has the last store, one owner or sharers, cleans tell the truth, and everything ends.

use durawarp::engine::RunEnd;
use durawarp::kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp::machine::home::LlcSpec;
use durawarp::machine::memory_controller::ControllerSpec;
use durawarp::machine::replacement::Replacement::{Fifo, Lru, Random, Srrip, TreePlru};
use durawarp::persist::vocab::Domain;

use super::bench::{Bench, Ran, llc};
use super::core::{Act, Draw};
use super::log::{What, check_cleans, check_coherence, last_values};
use crate::memory_controller::{ns, persist};

/// So many lines, of DRAM and of NVM in turns.
pub(crate) fn lines(count: u64) -> Vec<u64> {
    (0..count).map(|i| [DRAM_BASE, NVM_BASE][i as usize % 2] + 64 * (i / 2)).collect()
}

/// Everything that is to hold of a run.
pub(crate) fn check(ran: &Ran) -> Result<(), String> {
    check_coherence(&ran.logs)?;
    check_cleans(&ran.logs, &ran.durable, |line| line >= NVM_BASE)?;
    if !matches!(ran.end, RunEnd::Finished { .. }) {
        return Err(format!("the run ends with {:?}", ran.end));
    }
    if ran.strays > 0 {
        return Err(format!("{} Puts are acknowledged that were not sent", ran.strays));
    }
    let stored = last_values(&ran.logs).into_iter().map(|(line, value)| (line, Some(value))).collect();
    if ran.memory == stored { Ok(()) } else { Err(format!("memory has {:x?}, not {stored:x?}", ran.memory)) }
}

/// Draws a machine, and acts on it.
fn drawn(seed: u64, acts: u64) -> Bench {
    let mut draw = Draw(seed);
    let cores = 2 + draw.below(7);
    let ways = [1, 2, 4, 16][draw.below(4) as usize];
    let llc = LlcSpec {
        slices: 1 + draw.below(2) as u32,
        ways,
        replacement: [Lru, Fifo, Random, Srrip, TreePlru][seed as usize % 5],
        mshr_entries: 1 + draw.below(4) as u32,
        request_cycles: 1 + draw.below(20) as u32,
        service_cycles: draw.below(6) as u32,
        reply_cycles: 1 + draw.below(20) as u32,
        ..llc()
    };
    let credits = (1 + draw.below(4) as u32, 1 + draw.below(3) as u32);
    let lines = lines([4, 24, 40, 60][draw.below(4) as usize]);
    let domain = [Domain::Media, Domain::Adr][draw.below(2) as usize];
    let looks = acts.min(1000);
    let os = (0..looks).map(|i| (100 * i, Act::Once(lines[(i * 7 % lines.len() as u64) as usize]))).collect();
    let bench = Bench::drawn(cores, acts, &lines, seed);
    let controller = ControllerSpec { front_ns: ns(1 + draw.below(20)), back_ns: ns(10), ..bench.controller };
    Bench { llc, credits, controller, persist: persist(domain), os, ..bench }
}

fn runs(seeds: std::ops::Range<u64>, acts: u64) {
    let (mut fetches, mut recalls, mut queued, mut held, mut looked, mut cleaned) = (0, 0, 0, 0, 0, 0);
    for seed in seeds {
        let ran = drawn(seed, acts).run();
        check(&ran).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for counters in &ran.counters {
            fetches += counters.fetches;
            recalls += counters.recalls;
            queued += counters.queued;
            held += counters.held_fetches;
            assert_eq!(counters.stale_bytes, 0, "links are FIFO");
        }
        let noted = |what: fn(&What) -> bool| ran.logs.iter().flatten().filter(|noted| what(&noted.what)).count();
        looked += noted(|what| matches!(what, What::Looked(_)));
        cleaned += noted(|what| matches!(what, What::Cleaned(_)));
    }
    println!("{fetches} fetches, {recalls} recalls, {queued} queued, {held} held, {looked} looks, {cleaned} cleans");
    assert!([fetches, recalls, queued, held, looked as u64, cleaned as u64].into_iter().all(|count| count > 1000));
}

#[test]
fn a_hundred_thousand_acts_are_those_of_one_memory() {
    runs(0..40, 500);
}

#[test]
#[ignore = "ten times as long as the one above: ten seconds"]
fn a_million_acts_are_those_of_one_memory() {
    runs(100..140, 5000);
}

#[test]
fn runs_are_the_same_on_several_threads() {
    let of = |threads| Bench { threads, ..drawn(3, 300) }.finish().digest;
    assert_eq!(of(1), of(2));
}
