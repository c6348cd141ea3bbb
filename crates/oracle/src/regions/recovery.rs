//! Hardware recovery after a power failure: steps 1 to 6 of LightWSP's section IV-F, on the state of each
//! controller.
//!
//! 1. Acknowledgements under way arrive: a controller has another's for a region when that one noted its
//!    boundary, or that it is done. 2. Each has its flush ID. 3. It flushes the entries of that region if the
//!    boundary is here and acknowledged by all others. 4. It tells the others that it is done, and commits
//!    when all are. 5. Again, until nothing moves.
//! 6. What is left is discarded; bytes that a region which did not commit wrote over are taken from the undo
//!    log, the last saved first (IV-D).
//!
//! Under [`CommitRule::Pipelined`](durawarp_persist::vocab::CommitRule) flush IDs differ when power fails,
//! and step 2 is each controller's own: it goes on from there by steps 3 to 5, in which those ahead are done
//! already.
//!
//! The log stays valid until all of it is back, so that writing back can start again. Invariants: a
//! controller uses only its own notes and messages that reached it; steps are in an order in which hardware
//! could take them.

use hashbrown::HashMap;

use super::super::{LINE, runs};
use super::RegionFacts;
use super::gate::{Gate, Gates, Held, Memory};

/// What a controller knows of the region that its flush ID names, when power has failed and acknowledgements
/// have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knowledge {
    /// The region's boundary has come.
    pub bounded: bool,
    /// All other controllers have acknowledged its boundary.
    pub acknowledged: bool,
}

/// What controllers decide at a power failure; the default is what is published.
pub trait AtPowerFailure: Sync {
    /// Step 3: whether a controller's entries of the region are flushed.
    fn flushes(&self, known: &Knowledge) -> bool {
        known.bounded && known.acknowledged
    }

    /// Whether what a region that did not commit has written over is taken from the undo log.
    fn rolls_back(&self) -> bool {
        true
    }

    /// Whether that is the last saved first.
    fn youngest_first(&self) -> bool {
        true
    }
}

/// The steps as they are published.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsPublished;

impl AtPowerFailure for AsPublished {}

/// One step of recovery. A gate is a controller's, of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateStep {
    /// An entry went to memory.
    Flush { gate: usize, region: u32, held: Held },
    /// All of the region's entries are flushed here.
    Done { gate: usize, region: u32 },
    /// The flush ID is the next region's.
    Commit { gate: usize, region: u32 },
    /// Entries of regions that did not commit are gone.
    Discard { gate: usize },
    /// Old bytes, of this fact, went back to memory.
    Restore { fact: u32 },
    /// The undo log is no longer valid.
    Forget { gate: usize },
}

/// What recovery comes to.
#[derive(Debug, Clone)]
pub(super) struct Recovered {
    pub(super) steps: Vec<GateStep>,
    /// Flush IDs, by gate.
    pub(super) next: Vec<u32>,
}

/// How far recovery goes, by gate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Flush IDs.
    pub(super) next: Vec<u32>,
    /// Entries of the regions from its flush ID to this one are flushed.
    pub(super) until: Vec<u32>,
}

/// Steps 1 to 5, without the entries: `flushed` is called for each region that a gate flushes, `committed`
/// for each that it commits. `from` is how far recovery went from an earlier state of the same run: what
/// could be committed then can be now.
fn go(
    facts: &RegionFacts<'_>,
    gates: &Gates,
    hardware: &dyn AtPowerFailure,
    from: Option<&Reach>,
    told: &mut dyn FnMut(usize, u32, bool),
) -> Reach {
    let mut reach = Reach::default();
    for (order, regions) in facts.regions.iter().enumerate() {
        let (own, first) = (gates.of_order(order), order * gates.controllers);
        // Orders do not depend on each other: each is taken to its end by itself.
        let begin = |(here, gate): (usize, &Gate)| from.map_or(0, |from| from.next[first + here]).max(gate.next);
        let mut at: Vec<u32> = own.iter().enumerate().map(begin).collect();
        let mut until = at.clone();
        loop {
            let mut moves = false;
            for here in 0..own.len() {
                let region = at[here];
                if region as usize >= regions.len() {
                    continue;
                }
                // A controller is done with a region that it noted so before the failure, or has flushed
                // since.
                let is_done = |of: usize, until: &[u32]| until[of] > region || own[of].done.contains(&region);
                if !is_done(here, &until) {
                    let others = || own.iter().enumerate().filter(|(other, _)| *other != here);
                    let known = Knowledge {
                        bounded: own[here].bounded.contains(&region),
                        acknowledged: others().all(|(_, other)| other.bounded.contains(&region)),
                    };
                    if hardware.flushes(&known) {
                        told(first + here, region, false);
                        until[here] = region + 1;
                        moves = true;
                    }
                }
                if (0..own.len()).all(|of| is_done(of, &until)) {
                    told(first + here, region, true);
                    at[here] += 1;
                    until[here] = until[here].max(at[here]);
                    moves = true;
                }
            }
            // No step takes anything back, so the state in which nothing moves does not depend on who goes
            // first.
            if !moves {
                break;
            }
        }
        reach.next.extend(at);
        reach.until.extend(until);
    }
    reach
}

/// How far recovery goes from the states of controllers, and from no less far than `from`.
pub(super) fn reach(facts: &RegionFacts<'_>, gates: &Gates, hardware: &dyn AtPowerFailure, from: &Reach) -> Reach {
    go(facts, gates, hardware, Some(from).filter(|from| !from.next.is_empty()), &mut |_, _, _| {})
}

/// A gate's undo log in the order in which it is taken back. The last saved first: bytes that were saved
/// twice end as they were before the first.
fn undone(gate: &Gate, hardware: &dyn AtPowerFailure) -> impl Iterator<Item = u32> {
    let (count, youngest_first) = (gate.log.len(), hardware.youngest_first());
    (0..count).map(move |at| gate.log[if youngest_first { count - 1 - at } else { at }])
}

/// Recovers from the states of controllers, step by step.
pub(super) fn recover(facts: &RegionFacts<'_>, gates: &Gates, hardware: &dyn AtPowerFailure) -> Recovered {
    let mut steps = Vec::new();
    let Reach { next, .. } = go(facts, gates, hardware, None, &mut |gate, region, commits| {
        if commits {
            steps.push(GateStep::Commit { gate, region });
            return;
        }
        let entries = gates.gates[gate].held.get(&region).into_iter().flatten();
        steps.extend(entries.map(|&held| GateStep::Flush { gate, region, held }));
        steps.push(GateStep::Done { gate, region });
    });
    for (number, gate) in gates.gates.iter().enumerate() {
        if gate.held.last_key_value().is_some_and(|(&last, _)| last >= next[number]) {
            steps.push(GateStep::Discard { gate: number });
        }
        if hardware.rolls_back() {
            let undone = undone(gate, hardware).filter(|&fact| facts.fact(fact).author.region() >= Some(next[number]));
            steps.extend(undone.map(|fact| GateStep::Restore { fact }));
        }
        if !gate.log.is_empty() {
            steps.push(GateStep::Forget { gate: number });
        }
    }
    Recovered { steps, next }
}

/// The bytes of a line after recovery, of which `line` has what is durable.
pub(super) fn recovered_line(
    facts: &RegionFacts<'_>,
    gates: &Gates,
    reach: &Reach,
    hardware: &dyn AtPowerFailure,
    address: u64,
    line: &mut [u8; LINE],
) {
    let mut lay = |at: u32, mask: u128| {
        let bytes = facts.bytes(facts.fact(at));
        for (start, count) in runs(mask) {
            line[start..start + count].copy_from_slice(&bytes[start..start + count]);
        }
    };
    // In the order of the steps: entries that step 3 flushes, then the undo log of step 6 over them.
    for &(gate, region) in gates.by_line.get(&address).into_iter().flatten() {
        let own = &gates.gates[gate];
        if (own.next..reach.until[gate]).contains(&region) && !own.done.contains(&region) {
            for held in own.held.get(&region).into_iter().flatten() {
                if facts.fact(held.fact).line == address {
                    lay(held.fact, held.mask);
                }
            }
        }
    }
    if hardware.rolls_back() {
        for (number, gate) in gates.gates.iter().enumerate() {
            for log in undone(gate, hardware) {
                let fact = facts.fact(log);
                if fact.line == address && fact.author.region() >= Some(reach.next[number]) {
                    lay(log, fact.mask);
                }
            }
        }
    }
}

impl GateStep {
    /// Makes the step so in the controllers' states.
    pub(super) fn take(&self, facts: &RegionFacts<'_>, gates: &mut Gates) {
        match *self {
            GateStep::Flush { gate, region, held } => {
                if let Some(entries) = gates.gates[gate].held.get_mut(&region) {
                    entries.retain(|entry| *entry != held);
                }
            }
            GateStep::Done { gate, region } => {
                gates.gates[gate].done.insert(region);
            }
            GateStep::Commit { gate, region } => {
                let gate = &mut gates.gates[gate];
                gate.next = region + 1;
                gate.log.retain(|&log| facts.fact(log).author.region() > Some(region));
            }
            GateStep::Discard { gate } => gates.gates[gate].held.clear(),
            GateStep::Restore { .. } => {}
            GateStep::Forget { gate } => gates.gates[gate].log.clear(),
        }
    }

    /// Lays what the step writes over memory.
    pub(super) fn write(&self, facts: &RegionFacts<'_>, memory: &Memory, over: &mut HashMap<u32, u64>) {
        let (fact, mask) = match *self {
            GateStep::Flush { held, .. } => (held.fact, held.mask),
            GateStep::Restore { fact } => (fact, facts.fact(fact).mask),
            _ => return,
        };
        let fact = facts.fact(fact);
        memory.lay(over, fact.line, mask, &facts.bytes(fact));
    }
}
