//! Products and copies of both CTAs of a pair (`tcgen05.mma` and `tcgen05.cp` with `.cta_group::2`).
//!
//! Each SM reads and writes its own memories alone; what it lacks of b comes by a message of the link. A
//! product occupies both tensor cores from the cycle in which it begins where it was issued, or in which the
//! other is free. It is done when both are; a program counts on its results behind an arrival only, which
//! waits for the answer.
//!
//! A copy is done here behind the products before it, whose rows wait for their answers, and before those
//! after it, so that each finds the scale factors of its turn.
//!
//! Source: PTX ISA 9.7.16.9, 9.7.16.10; CUTLASS's kernels of two SMs (who issues). Chosen, for lack of a
//! source: that both cores work in step; that what comes of b takes no time of the link, as it goes with the
//! product. Invariant: answers of a CTA's work come in the order of its issue. Not modelled: a product that
//! waits here because the tensor core there is busy.

use durawarp_kernel::cluster::ClusterMisuse;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Inst, TensorCopy, TensorKind};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::{CopyValues, PairColumns, TensorValues};
use durawarp_kernel::warp::{copy_pair, multiply_pair, pair_columns, pair_work};

use super::core::IssueCore;
use super::parameters::TensorTimes;
use super::slots::Fault;
use super::tensor_peers::{PairPlace, PairScope, PendingWork, WaitingCommit};
use crate::remote::{PairIssue, PairWord, PairWork};

/// A warp issues products of a pair.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
pub(super) fn multiply(
    core: &mut IssueCore,
    warp: usize,
    (inst, kind, lanes): (&Inst, TensorKind, u64),
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let (cta, place) = scope.place_of(warp, &core.slots, &core.ctas)?;
    let slot = &core.slots[warp];
    let launch = scope.launches.of(slot);
    let pc = slot.warp.pc();
    for (lane, values) in slot.warp.pair_products(inst, kind, launch, lanes) {
        let fault = |kind| Box::new(ProgramFault::new(kind, launch, &core.slots[warp].warp, pc, lane));
        let work = pair_work(&values, launch).map_err(fault)?;
        let columns = pair_columns(&values, &core.ctas[cta].shared, launch).map_err(fault)?;
        let work = (PairWork::Product { values, columns }, scope.spec.tensor_times(work));
        begin(core, (cta, place), work, (warp, pc, lane), cycle, scope);
    }
    Ok(())
}

/// A warp issues copies from shared memory to tensor memory in both CTAs.
///
/// # Errors
/// The cluster has no peer.
pub(super) fn copy(
    core: &mut IssueCore,
    warp: usize,
    (inst, copy, lanes): (&Inst, TensorCopy, u64),
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let (cta, place) = scope.place_of(warp, &core.slots, &core.ctas)?;
    let slot = &core.slots[warp];
    let pc = slot.warp.pc();
    for (lane, values) in slot.warp.pair_copies(inst, copy, scope.launches.of(slot), lanes) {
        let work = (PairWork::Copy { values }, scope.spec.copy_times(values.bytes(), scope.latency));
        begin(core, (cta, place), work, (warp, pc, lane), cycle, scope);
    }
    Ok(())
}

/// A warp of a trace issues a product, or a copy, of a pair, which takes these times of both tensor cores.
///
/// # Errors
/// The CTA has no peer.
pub(super) fn occupy(
    core: &mut IssueCore,
    warp: usize,
    times: TensorTimes,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let (cta, place) = scope.place_of(warp, &core.slots, &core.ctas)?;
    let TensorTimes { work, tail } = times;
    let issued = (warp, core.slots[warp].warp.pc(), 0);
    begin(core, (cta, place), (PairWork::Traced { work, tail }, times), issued, cycle, scope);
    Ok(())
}

/// Work of both CTAs begins: the own core is taken at once, the own part done when the peer has answered.
fn begin(
    core: &mut IssueCore,
    (cta, place): (usize, PairPlace),
    (work, times): (PairWork, TensorTimes),
    (warp, pc, lane): (usize, u32, u32),
    cycle: u32,
    scope: PairScope<'_>,
) {
    let start = core.tensor.multiply(cta, times, cycle);
    core.tensor.pairs.tell(
        place,
        scope.here,
        PairWord::Begins(PairIssue { from: place.own, work: work.clone(), start }),
    );
    let of = &mut core.tensor.pairs.slots[cta];
    of.issued += 1;
    of.pending.push_back(PendingWork { warp: warp as u8, pc, lane, work });
}

/// Does the part of the CTA in a slot of what its peer has issued.
pub(super) fn answer(
    core: &mut IssueCore,
    found: Option<usize>,
    issue: PairIssue,
    cycle: u32,
    scope: PairScope<'_>,
) -> PairWord {
    let wrong = |what: String| PairWord::Done { columns: PairColumns::new(), done: cycle, fault: Some(what) };
    // What is wrong here is told where the work was issued.
    let done = match (&issue.work, found) {
        // Whether a CTA of a trace has ended is not asked: on the card it had not.
        (&PairWork::Traced { work, tail }, _) => Ok((TensorTimes { work, tail }, PairColumns::new())),
        (_, None) => return wrong(ClusterMisuse::Ended(issue.from.rank ^ 1).to_string()),
        (PairWork::Product { values, columns: theirs }, Some(cta)) => {
            let launch = scope.launches.at(core.ctas[cta].launch);
            pair_work(values, launch).and_then(|work| {
                let columns = pair_columns(values, &core.ctas[cta].shared, launch)?;
                multiply_here(core, cta, values, (issue.from.rank ^ 1, [&columns, theirs]), launch)?;
                Ok((scope.spec.tensor_times(work), columns))
            })
        }
        (PairWork::Copy { values }, Some(cta)) => {
            let times = scope.spec.copy_times(values.bytes(), scope.latency);
            let launch = scope.launches.at(core.ctas[cta].launch);
            copy_here(core, cta, values, launch).map(|()| (times, PairColumns::new()))
        }
    };
    match done {
        Ok((times, columns)) => {
            // It began there some cycles ago, as the word has come over the link.
            let done = core.tensor.occupy(times, issue.start).max(cycle);
            PairWord::Done { columns, done, fault: None }
        }
        Err(FaultKind::Unsupported(what) | FaultKind::Asynchronous(what)) => wrong(what),
        Err(FaultKind::OutOfBounds { address, bytes, hint, .. }) => {
            wrong(format!("{bytes} bytes at {address:#x} of shared memory: {hint}"))
        }
        Err(other) => wrong(format!("{other:?}")),
    }
}

/// The rows of the CTA in a slot of a product of a pair, by its own columns of b and the peer's.
fn multiply_here(
    core: &mut IssueCore,
    cta: usize,
    values: &TensorValues,
    (rank, [own, theirs]): (u32, [&PairColumns; 2]),
    launch: &Launch,
) -> Result<(), FaultKind> {
    let b = if rank.is_multiple_of(2) { [own, theirs] } else { [theirs, own] };
    multiply_pair(values, rank % 2, b, core.tensor.memory_mut(cta), &core.ctas[cta].shared, launch)
}

/// The copy of the CTA in a slot.
fn copy_here(core: &mut IssueCore, cta: usize, values: &CopyValues, launch: &Launch) -> Result<(), FaultKind> {
    copy_pair(values, core.tensor.memory_mut(cta), &core.ctas[cta].shared, launch)
}

/// The peer has answered the oldest work of a CTA: its own part follows, and what waits for it.
pub(super) fn answered(
    core: &mut IssueCore,
    cta: usize,
    (columns, done, fault): (PairColumns, u32, Option<String>),
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let slot = &mut core.tensor.pairs.slots[cta];
    let Some(PendingWork { warp, pc, lane, work }) = slot.pending.pop_front() else {
        unreachable!("an answer belongs to what was issued")
    };
    slot.answered += 1;
    let (answered, rank) = (slot.answered, core.ctas[cta].seat.as_ref().map_or(0, |seat| seat.rank));
    let launch = scope.launches.at(core.ctas[cta].launch);
    let made = match (fault, &work) {
        (Some(what), PairWork::Product { .. }) => {
            Err(FaultKind::Asynchronous(format!("a product's part in the peer CTA: {what}")))
        }
        (Some(what), PairWork::Copy { .. }) => {
            Err(FaultKind::Asynchronous(format!("a copy's part in the peer CTA: {what}")))
        }
        (None, PairWork::Product { values, columns: own }) => {
            multiply_here(core, cta, values, (rank, [own, &columns]), launch)
        }
        (None, PairWork::Copy { values }) => copy_here(core, cta, values, launch),
        (_, PairWork::Traced { .. }) => Ok(()),
    };
    if let Err(kind) = made {
        return Err(Box::new(ProgramFault::new(kind, launch, &core.slots[usize::from(warp)].warp, pc, lane)));
    }
    core.tensor.done_by(cta, done.max(cycle));
    // Arrivals that waited for this answer have their cycle now.
    let is_due = |commit: &mut WaitingCommit| usize::from(commit.slot) == cta && commit.behind <= answered;
    let due: Vec<WaitingCommit> = core.tensor.pairs.commits.extract_if(.., is_due).collect();
    for WaitingCommit { slot, cta, at, others, .. } in due {
        core.tensor.arrive_at_end((slot, cta), at, others);
    }
    Ok(())
}
