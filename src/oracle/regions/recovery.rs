//! What the hardware does when power has failed: steps 1 to 6 of LightWSP's section IV-F, on what each controller knows.
//!
//! 1. Acknowledgements under way arrive: a controller has another's for a region when that one noted its boundary, or that it
//!    is done. 2. Each has its flush ID. 3. It flushes the entries of that region if the boundary is here and acknowledged by
//!    all others. 4. It tells the others that it is done, and commits when all are. 5. Again, until nothing moves.
//! 6. What is left is discarded; bytes that a region which did not commit wrote over are taken from the undo log, the
//!    last saved first (IV-D).
//!
//! The log stays valid until all of it is back, so that writing back can start again. Invariants: nothing is used
//! that a controller has not noted or been told; steps are in an order in which hardware could take them.

use std::collections::BTreeMap;

use super::RegionFacts;
use super::gate::{Gates, Held, Memory};

/// What a controller knows of the region that its flush ID names, when power has failed and acknowledgements have arrived.
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
}

/// The steps as they are published.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsPublished;

impl AtPowerFailure for AsPublished {}

/// One step of recovery. A gate is a controller's, of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
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
    pub(super) steps: Vec<Step>,
    /// Flush IDs, by gate.
    pub(super) next: Vec<u32>,
}

/// Recovers from the states of controllers.
pub(super) fn recover(facts: &RegionFacts<'_>, gates: &Gates, hardware: &dyn AtPowerFailure) -> Recovered {
    let (mut steps, mut next) = (Vec::new(), Vec::with_capacity(gates.gates.len()));
    for (order, regions) in facts.regions.iter().enumerate() {
        let (own, first) = (gates.of_order(order), order * gates.controllers);
        let mut at: Vec<u32> = own.iter().map(|gate| gate.next).collect();
        // Of each controller, up to which region it is done since the failure.
        let mut until = vec![0; own.len()];
        loop {
            let before = steps.len();
            for here in 0..own.len() {
                let region = at[here];
                if region as usize >= regions.len() {
                    continue;
                }
                let is_done = |of: usize, until: &[u32]| own[of].done.contains(&region) || until[of] > region;
                if !is_done(here, &until) {
                    let others = || own.iter().enumerate().filter(|(other, _)| *other != here);
                    let known = Knowledge {
                        bounded: own[here].bounded.contains(&region),
                        acknowledged: others().all(|(_, other)| other.bounded.contains(&region)),
                    };
                    if hardware.flushes(&known) {
                        let gate = first + here;
                        let entries = own[here].held.get(&region).into_iter().flatten();
                        steps.extend(entries.map(|&held| Step::Flush { gate, region, held }));
                        steps.push(Step::Done { gate, region });
                        until[here] = region + 1;
                    }
                }
                if (0..own.len()).all(|of| is_done(of, &until)) {
                    steps.push(Step::Commit { gate: first + here, region });
                    at[here] += 1;
                }
            }
            if steps.len() == before {
                break;
            }
        }
        for (here, gate) in own.iter().enumerate() {
            if gate.held.last_key_value().is_some_and(|(&last, _)| last >= at[here]) {
                steps.push(Step::Discard { gate: first + here });
            }
            let undone = |fact: &&u32| facts.fact(**fact).author.pc >= at[here];
            if hardware.rolls_back() {
                steps.extend(gate.log.iter().rev().filter(undone).map(|&fact| Step::Restore { fact }));
            }
            if !gate.log.is_empty() {
                steps.push(Step::Forget { gate: first + here });
            }
        }
        next.extend(at);
    }
    Recovered { steps, next }
}

impl Step {
    /// Makes the step so in the controllers' states.
    pub(super) fn take(&self, facts: &RegionFacts<'_>, gates: &mut Gates) {
        match *self {
            Step::Flush { gate, region, held } => {
                if let Some(entries) = gates.gates[gate].held.get_mut(&region) {
                    entries.retain(|entry| *entry != held);
                }
            }
            Step::Done { gate, region } => {
                gates.gates[gate].done.insert(region);
            }
            Step::Commit { gate, region } => {
                let gate = &mut gates.gates[gate];
                gate.next = region + 1;
                gate.log.retain(|&log| facts.fact(log).author.pc > region);
            }
            Step::Discard { gate } => gates.gates[gate].held.clear(),
            Step::Restore { .. } => {}
            Step::Forget { gate } => gates.gates[gate].log.clear(),
        }
    }

    /// Lays what the step writes over memory.
    pub(super) fn write(&self, facts: &RegionFacts<'_>, memory: &Memory, over: &mut BTreeMap<u32, u64>) {
        let (fact, mask) = match *self {
            Step::Flush { held, .. } => (held.fact, held.mask),
            Step::Restore { fact } => (fact, facts.fact(fact).mask),
            _ => return,
        };
        let fact = facts.fact(fact);
        memory.lay(over, fact.line, mask, &facts.bytes(fact));
    }
}
