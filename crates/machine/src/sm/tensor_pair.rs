//! Pairs of CTAs in an SM (`tcgen05` with `.cta_group::2`): what goes between the two, and arrivals at
//! barriers of other CTAs. Columns of both are in `tensor_columns`, products and copies of both in
//! `tensor_work`.
//!
//! ```text
//!            SM of lesser number       link     SM of greater number
//!   alloc                              <──────  asks
//!            takes columns, has        ──────>  takes columns, has, goes on
//!            goes on                   <──────
//!            who issues                         its peer
//!   mma      product, own columns of b ──────>  its rows
//!            its rows                  <──────  own columns of b
//!   cp       copy                      ──────>  its copy
//!            its copy                  <──────  done
//!   commit   all are done and answered ──────>  arrival
//! ```
//! Words take the link that all accesses between SMs take (`shared.cluster_cycles`).
//!
//! Source: PTX ISA 9.7.16 (what is done), CUTLASS's kernels of two SMs (who issues). Invariant: an SM changes
//! state of another only by messages. Not modelled: what other CTAs' barriers know of fences.

use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::semantics::atomic::arrive_once;

use super::core::IssueCore;
use super::launches::LaunchTable;
use super::slots::Fault;
use super::tensor_columns::{both_have, take};
use super::tensor_peers::PairScope;
use super::tensor_work::{answer, answered};
use super::wait::Wait;
use crate::remote::{PairMessage, PairWord};

/// Somebody arrives behind products at a barrier of the CTA in a slot.
///
/// # Errors
/// The barrier is not there, or awaits nobody.
pub(super) fn arrive_in(core: &mut IssueCore, cta: usize, at: u64, launches: &LaunchTable) -> Result<(), Fault> {
    let Err(misuse) = arrive_once(&mut core.ctas[cta].shared, at) else { return Ok(()) };
    let warp = core.slots.iter().find(|slot| usize::from(slot.cta) == cta && slot.wait != Wait::NoWarp);
    let Some(slot) = warp else { return Ok(()) };
    let lane = slot.warp.live().trailing_zeros().min(31);
    Err(Box::new(slot.fault(lane, FaultKind::Asynchronous(misuse.to_string()), launches.of(slot))))
}

/// A word for a CTA of this SM.
///
/// # Errors
/// What is wrong with a program, by the instruction whose part it is.
pub(super) fn receive(
    core: &mut IssueCore,
    message: PairMessage,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let PairMessage { to, from, word } = message;
    let found = core.find_cta(to, scope.record);
    match (word, found) {
        (PairWord::Begins(issue), found) => {
            let to = issue.from;
            let word = answer(core, found, issue, cycle, scope);
            core.tensor.pairs.leaving.push((from, Box::new(PairMessage { to, from: scope.here, word })));
            Ok(())
        }
        // A CTA that has ended does not hear of it.
        (_, None) => Ok(()),
        (PairWord::Asks { columns }, Some(cta)) => {
            let slot = &mut core.tensor.pairs.slots[cta];
            if slot.asks.is_some() {
                return take(core, cta, columns, cycle, scope);
            }
            slot.theirs = Some(columns);
            Ok(())
        }
        // The first one has waited for it, the second one takes its own behind it.
        (PairWord::Has { columns, address }, Some(cta)) => match core.tensor.pairs.slots[cta].at {
            Some(own) => both_have(core, cta, [own, address], cycle, scope),
            None => {
                core.tensor.pairs.slots[cta].at = Some(address);
                take(core, cta, columns, cycle, scope)
            }
        },
        (PairWord::Arrives { at }, Some(cta)) => arrive_in(core, cta, at.into(), scope.launches),
        (PairWord::Done { columns, done, fault }, Some(cta)) => {
            answered(core, cta, (columns, done, fault), cycle, scope)
        }
    }
}
