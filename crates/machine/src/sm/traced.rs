//! What steps of a trace need beside those of a kernel: waits for phases of barriers in shared memory, and
//! copies of the copy engine whose addresses the trace lists.
//!
//! A kernel asks a barrier again and again (`mbarrier.try_wait`), and how often depends on the machine. A
//! trace has the asking of the card that it was made on; here its warp waits at the first, and the others
//! find the phase over. A wait passes when what an instruction reads of shared memory would be there, from
//! the cycle on in which the phase has ended.
//!
//! Source: PTX ISA 9.7.13.15.16 (`try_wait` may suspend until the phase completes). Invariant: each event
//! that may end a phase is followed by a look at those who wait. Not modelled: the time limit of `try_wait`.

use durawarp_kernel::ir::Op;
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::phase_is_over;
use durawarp_kernel::traced::TracedCopy;
use durawarp_kernel::warp::{BulkOperands, MovedBytes};

use super::core::IssueCore;
use super::launches::LaunchTable;
use super::slots::WarpSlot;
use super::wait::Wait;
use crate::coalescer::lanes_of;

/// What the copy engine makes of a trace's copy.
pub(super) fn operands_of(copy: &TracedCopy) -> BulkOperands {
    BulkOperands {
        global: copy.first().unwrap_or_default(),
        shared: 0,
        bytes: copy.bytes,
        barrier: copy.barrier.into(),
        barrier_of_pair: copy.barrier_of_pair,
        moved: MovedBytes::All,
        ranks: copy.ranks,
        tile: None,
        unread: None,
    }
}

/// The phase of this parity is over at the barrier of each lane of the step at hand.
fn are_over(slot: &WarpSlot, shared: &[u8], lanes: u64, parity: bool) -> bool {
    let mut barriers = [0; 64];
    slot.warp.traced_addresses(lanes, &mut barriers);
    lanes_of(lanes).all(|lane| phase_is_over(shared, barriers[lane], parity))
}

/// A warp comes to a wait for phases of this parity: it goes on after `latency` cycles, or waits. True
/// where it goes on.
pub(super) fn await_phase(
    core: &mut IssueCore,
    warp: usize,
    (lanes, parity): (u64, bool),
    (cycle, latency): (u32, u32),
    launches: &LaunchTable,
) -> bool {
    let slot = &mut core.slots[warp];
    if lanes != 0 && !are_over(slot, &core.ctas[usize::from(slot.cta)].shared, lanes, parity) {
        core.awaiting |= 1 << warp;
        core.enter(warp, Wait::Phase, cycle + 1);
        return false;
    }
    pass(slot, launches.of(slot), cycle + latency);
    true
}

/// A warp goes on behind its wait from cycle `from` on.
fn pass(slot: &mut WarpSlot, launch: &Launch, from: u32) {
    let hazards = &launch.kernel.hazards[slot.warp.pc() as usize];
    slot.warp.advance();
    slot.write_from(hazards, from);
    // The branch behind it is on what it has found, whether the trace says so or not.
    slot.not_before = from;
}

/// Lets warps go on whose phases are over.
#[cold]
pub(super) fn end_phases(core: &mut IssueCore, cycle: u32, latency: u32, launches: &LaunchTable) {
    let mut waiting = core.awaiting;
    while waiting != 0 {
        let warp = waiting.trailing_zeros() as usize;
        waiting &= waiting - 1;
        let slot = &mut core.slots[warp];
        let launch = launches.of(slot);
        let inst = &launch.kernel.code[slot.warp.pc() as usize];
        let Op::AwaitPhase(parity) = inst.op else { unreachable!("a warp waits for a phase at another instruction") };
        let lanes = slot.warp.guarded(inst);
        if !are_over(slot, &core.ctas[usize::from(slot.cta)].shared, lanes, parity) {
            continue;
        }
        core.awaiting &= !(1 << warp);
        pass(slot, launch, cycle + latency);
        core.settle(warp, cycle + 1, launch);
    }
}
