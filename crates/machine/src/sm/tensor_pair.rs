//! Pairs of CTAs in an SM (`tcgen05` with `.cta_group::2`): columns that both CTAs have, products of both
//! tensor cores, and arrivals at barriers of other CTAs.
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
//! Each SM reads and writes its own memories alone; what it lacks of b comes by a message of the link that
//! all accesses between SMs take (`shared.cluster_cycles`). A product occupies both tensor cores from the
//! cycle in which it begins where it was issued, or in which the other is free. It is done when both are; a
//! program counts on its results behind an arrival only, which waits for the answer.
//!
//! A copy is done here behind the products before it, whose rows wait for their answers, and before those
//! after it, so that each finds the scale factors of its turn.
//!
//! SMs take columns for a pair in the order of their numbers, so that no two pairs wait for each other.
//!
//! Source: PTX ISA 9.7.16 (what is done), CUTLASS's kernels of two SMs (who issues). Chosen, for lack of a
//! source: that both cores work in step; that what comes of b takes no time of the link, as it goes with the
//! product. Invariants: answers of a CTA's work come in the order of its issue; an SM changes state of
//! another only by messages. Not modelled: a product that waits here because the tensor core there is busy;
//! what other CTAs' barriers know of fences.

use durawarp_kernel::cluster::ClusterMisuse;
use durawarp_kernel::fault::{FaultKind, ProgramFault};
use durawarp_kernel::ir::{Inst, TensorCopy, TensorKind};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::arrive_once;
use durawarp_kernel::semantics::{CopyValues, PairColumns, TensorValues};
use durawarp_kernel::tensor_memory::PairMisuse;
use durawarp_kernel::warp::{copy_pair, multiply_pair, pair_columns, pair_work};

use super::core::IssueCore;
use super::launches::LaunchTable;
use super::parameters::TensorTimes;
use super::slots::Fault;
use super::tensor_peers::{PairPlace, PairScope, PendingWork, WaitingCommit};
use super::wait::Wait;
use crate::remote::{PairIssue, PairMessage, PairWord, PairWork};

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

/// A fault of a warp slot's instruction.
fn fault_of(core: &IssueCore, warp: usize, kind: FaultKind, scope: PairScope<'_>) -> Fault {
    let slot = &core.slots[warp];
    let lane = slot.warp.live().trailing_zeros().min(31);
    Box::new(ProgramFault::new(kind, scope.launches.of(slot), &slot.warp, slot.warp.pc(), lane))
}

/// The CTA slot of a warp, and where it and its peer are.
fn place_of(core: &IssueCore, warp: usize, scope: PairScope<'_>) -> Result<(usize, PairPlace), Fault> {
    let cta = usize::from(core.slots[warp].cta);
    let place = scope.place(&core.ctas[cta]).map_err(|kind| fault_of(core, warp, kind, scope))?;
    Ok((cta, place))
}

/// A fault of a warp slot that allocates for a pair.
fn misused(core: &IssueCore, warp: usize, misuse: PairMisuse, scope: PairScope<'_>) -> Fault {
    fault_of(core, warp, FaultKind::Unsupported(misuse.to_string()), scope)
}

fn send(core: &mut IssueCore, place: PairPlace, from: u16, word: PairWord) {
    core.tensor.pairs.leaving.push((place.sm, Box::new(PairMessage { to: place.peer, from, word })));
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
    let (cta, place) = place_of(core, warp, scope)?;
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
            send(core, place, scope.here, PairWord::Asks { columns });
            Ok(())
        }
    }
}

/// It is the turn of this SM to take columns for the CTA of a slot, whose peer asks for `theirs`.
fn take(core: &mut IssueCore, cta: usize, theirs: u32, cycle: u32, scope: PairScope<'_>) -> Result<(), Fault> {
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
    let (cta, place) = place_of(core, warp, scope)?;
    let Some(address) = core.tensor.memory_mut(cta).allocate(columns) else {
        let what = format!("`tcgen05.alloc` of {columns} columns, which do not fit between others of its CTA");
        return Err(fault_of(core, warp, FaultKind::Unsupported(what), scope));
    };
    send(core, place, scope.here, PairWord::Has { columns, address });
    // The second one ends it: the first's are had.
    match core.tensor.pairs.slots[cta].at.replace(address) {
        Some(theirs) => both_have(core, cta, [address, theirs], cycle, scope),
        None => Ok(()),
    }
}

/// Both CTAs have their columns, here and there at these addresses: the warp goes on.
fn both_have(
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
    let (cta, place) = place_of(core, warp, scope)?;
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
    let (cta, place) = place_of(core, warp, scope)?;
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
    let (cta, place) = place_of(core, warp, scope)?;
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
    send(core, place, scope.here, PairWord::Begins(PairIssue { from: place.own, work: work.clone(), start }));
    let of = &mut core.tensor.pairs.slots[cta];
    of.issued += 1;
    of.pending.push_back(PendingWork { warp: warp as u8, pc, lane, work });
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

/// Does the part of the CTA in a slot of what its peer has issued.
fn answer(core: &mut IssueCore, found: Option<usize>, issue: PairIssue, cycle: u32, scope: PairScope<'_>) -> PairWord {
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
fn answered(
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
