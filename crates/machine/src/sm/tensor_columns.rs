//! Columns of tensor memory that both CTAs of a pair have (`tcgen05.alloc.cta_group::2`).
//!
//! | state of a CTA's slot | next |
//! |---|---|
//! | a warp asks, the SM is first | takes columns when the peer asks, too |
//! | a warp asks, the SM is second | takes columns when the first has them |
//! | has columns | the warp goes on when the peer has them |
//!
//! SMs take columns for a pair in the order of their numbers, so that no two pairs wait for each other.
//!
//! Source: PTX ISA 9.7.16.7 (allocation). Chosen: the order of SMs. Invariants: both CTAs have columns at one
//! address, or the program fails; a warp's wait ends when both have them.

use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::tensor_memory::PairMisuse;

use super::core::IssueCore;
use super::slots::Fault;
use super::tensor_peers::PairScope;
use super::wait::Wait;
use crate::remote::PairWord;

/// A fault of a warp slot that allocates for a pair.
fn misused(core: &IssueCore, warp: usize, misuse: PairMisuse, scope: PairScope<'_>) -> Fault {
    scope.fault(&core.slots[warp], FaultKind::Unsupported(misuse.to_string()))
}

/// A warp allocates columns in both CTAs of its pair: it waits.
///
/// # Errors
/// What the ISA leaves undefined.
pub(super) fn ask(
    core: &mut IssueCore,
    warp: usize,
    columns: u32,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let (cta, place) = scope.place_of(warp, &core.slots, &core.ctas)?;
    let slot = &mut core.tensor.pairs.slots[cta];
    if slot.asks.replace((warp as u8, columns)).is_some() {
        return Err(misused(core, warp, PairMisuse::Twice, scope));
    }
    let theirs = slot.theirs.take();
    // Whose turn it is follows from the numbers of the SMs.
    core.enter(warp, Wait::TensorMemory, cycle + 1);
    match (place.first, theirs) {
        (true, Some(theirs)) => take(core, cta, theirs, cycle, scope),
        (true, None) => Ok(()),
        (false, _) => {
            core.tensor.pairs.tell(place, scope.here, PairWord::Asks { columns });
            Ok(())
        }
    }
}

/// It is the turn of this SM to take columns for the CTA of a slot, whose peer asks for `theirs`.
pub(super) fn take(
    core: &mut IssueCore,
    cta: usize,
    theirs: u32,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let Some((warp, columns)) = core.tensor.pairs.slots[cta].asks else { unreachable!("a warp asks") };
    if theirs != columns {
        return Err(misused(core, warp.into(), PairMisuse::Columns { columns, theirs }, scope));
    }
    if core.tensor.take(warp, columns) { had(core, warp.into(), columns, cycle, scope) } else { Ok(()) }
}

/// A warp that allocates for a pair has its columns in this SM.
///
/// # Errors
/// They lie elsewhere than the peer's, or have no room between others.
pub(super) fn had(
    core: &mut IssueCore,
    warp: usize,
    columns: u32,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let (cta, place) = scope.place_of(warp, &core.slots, &core.ctas)?;
    let Some(address) = core.tensor.memory_mut(cta).allocate(columns) else {
        let what = format!("`tcgen05.alloc` of {columns} columns, which do not fit between others of its CTA");
        return Err(scope.fault(&core.slots[warp], FaultKind::Unsupported(what)));
    };
    core.tensor.pairs.tell(place, scope.here, PairWord::Has { columns, address });
    // The second one ends it: the first's are had.
    match core.tensor.pairs.slots[cta].at.replace(address) {
        Some(theirs) => both_have(core, cta, [address, theirs], cycle, scope),
        None => Ok(()),
    }
}

/// Both CTAs have their columns, here and there at these addresses: the warp goes on.
pub(super) fn both_have(
    core: &mut IssueCore,
    cta: usize,
    [address, theirs]: [u32; 2],
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let slot = &mut core.tensor.pairs.slots[cta];
    slot.at = None;
    let Some((warp, _)) = slot.asks.take() else { unreachable!("a warp asks") };
    let warp = usize::from(warp);
    // Columns are numbered alike where both CTAs allocate and free in one order.
    if address != theirs {
        return Err(misused(core, warp, PairMisuse::Apart { address, theirs }, scope));
    }
    let slot = &mut core.slots[warp];
    let launch = scope.launches.of(slot);
    let inst = &launch.kernel.code[slot.warp.pc() as usize];
    let lanes = slot.warp.guarded(inst);
    slot.warp.write_tensor_result(inst.dst[0], lanes, address);
    slot.warp.advance();
    slot.not_before = cycle + 1;
    core.settle(warp, cycle, launch);
    Ok(())
}
