//! Instructions of tensor cores that go on by themselves, in an SM: those of tensor memory (`tcgen05`) and
//! products of four warps (`wgmma`). What each does to the unit, to memory and to its warp.
//!
//! Source: PTX ISA 9.7.15 and 9.7.16; times are those of `tensor_memory.rs` and `group.rs`. Invariant: cells
//! and registers have their values in the order of issue, whatever is under way.

use crate::scheduler::Unit;
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{GroupStep, Inst, Op, TensorStep, TracedTensor};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::warp::TensorWork;

use super::core::IssueCore;
use super::group::read_factors;
use super::launches::LaunchTable;
use super::moment::Moment;
use super::slots::Fault;
use super::tensor_memory::DueArrival;
use super::tensor_pair::arrive_in;
use super::tensor_peers::PairScope;
use super::wait::Wait;
use super::{tensor_columns, tensor_work};

/// An instruction of a warp, issued.
pub(super) struct TensorIssue<'a> {
    pub(super) warp: usize,
    pub(super) step: TensorStep,
    pub(super) inst: &'a Inst,
    pub(super) lanes: u64,
}

/// A step of tensor memory: values at once, and when the warp goes on. False where it waits.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
#[cold]
pub(super) fn step_tensor(core: &mut IssueCore, issue: TensorIssue<'_>, m: &mut Moment<'_>) -> Result<bool, Fault> {
    let TensorIssue { warp, step, inst, lanes } = issue;
    if lanes == 0 {
        core.slots[warp].warp.advance();
        return Ok(true);
    }
    m.record.tensor.tensor_products += u64::from(step.elements().is_some());
    let (scope, host, cycle) = (PairScope::new(m.p, m.w, m.record, m.launches), &mut *m.host, m.cycle);
    let PairScope { launches, spec, latency, .. } = scope;
    let launch = launches.of(&core.slots[warp]);
    let slot = &mut core.slots[warp];
    let cta = usize::from(slot.cta);
    match step {
        TensorStep::Allocate => {
            let columns = slot.warp.columns_to_allocate(inst, launch, lanes)?;
            if !core.tensor.take(warp as u8, columns) {
                core.enter(warp, Wait::TensorMemory, cycle + 1);
                return Ok(false);
            }
            allocate_columns(core, warp, columns, launch)?;
        }
        // Warps that wait stand at their own instruction, which is done for them here.
        TensorStep::Free | TensorStep::FreePair => {
            let columns = slot.warp.free_columns(inst, launch, lanes, core.tensor.memory_mut(cta))?;
            for (other, columns) in core.tensor.give_back(columns) {
                let other = usize::from(other);
                let launch = launches.of(&core.slots[other]);
                if launch.kernel.code[core.slots[other].warp.pc() as usize].op == Op::Tensor(TensorStep::AllocatePair) {
                    tensor_columns::had(core, other, columns, cycle, scope)?;
                    continue;
                }
                allocate_columns(core, other, columns, launch)?;
                core.slots[other].warp.advance();
                core.slots[other].not_before = cycle + 1;
                core.settle(other, cycle, launch);
            }
        }
        TensorStep::Relinquish => slot.warp.check_whole(launch, lanes, step.name())?,
        TensorStep::Load(shape) | TensorStep::Store(shape) => {
            let loads = matches!(step, TensorStep::Load(_));
            slot.warp.transfer_tensor(inst, (shape, loads), launch, lanes, core.tensor.memory_mut(cta))?;
            let registers = launch.kernel.tensor.vectors[inst.imm as usize].registers.len() as u32;
            slot.not_before = core.tensor.transfer(warp, loads, registers, latency, cycle);
        }
        // When transfers are done is known when they issue.
        TensorStep::WaitLoads | TensorStep::WaitStores => {
            slot.warp.check_whole(launch, lanes, step.name())?;
            let done = core.tensor.transferred(warp, step == TensorStep::WaitLoads);
            slot.not_before = done.max(cycle + 1);
        }
        TensorStep::Multiply(kind) => {
            let of = &mut core.ctas[cta];
            read_factors(warp, slot, of, launch, host, |warp, read| {
                warp.each_tensor_read(inst, (kind, false), launch, lanes, read)
            })?;
            let memory = core.tensor.memory_mut(cta);
            let works = slot.warp.multiply_tensor(inst, kind, launch, lanes, memory, &of.shared)?;
            for work in works {
                core.tensor.multiply(cta, spec.tensor_times(work), cycle);
            }
        }
        // It holds the way of the products behind it, which wait for it so.
        TensorStep::Copy(copy) => {
            let of = &mut core.ctas[cta];
            read_factors(warp, slot, of, launch, host, |warp, read| {
                warp.each_copy_read(inst, copy, launch, lanes, read)
            })?;
            let memory = core.tensor.memory_mut(cta);
            let copies = slot.warp.copy_to_tensor_memory(inst, copy, launch, lanes, memory, &of.shared)?;
            for bytes in copies {
                core.tensor.multiply(cta, spec.copy_times(bytes, latency), cycle);
            }
        }
        // It waits in any case: the peer's answer comes over the link.
        TensorStep::AllocatePair => {
            let columns = slot.warp.columns_to_allocate(inst, launch, lanes)?;
            tensor_columns::ask(core, warp, columns, cycle, scope)?;
            return Ok(false);
        }
        TensorStep::MultiplyPair(kind) => {
            read_factors(warp, slot, &mut core.ctas[cta], launch, host, |warp, read| {
                warp.each_tensor_read(inst, (kind, true), launch, lanes, read)
            })?;
            tensor_work::multiply(core, warp, (inst, kind, lanes), cycle, scope)?;
        }
        TensorStep::CopyPair(copy) => {
            read_factors(warp, slot, &mut core.ctas[cta], launch, host, |warp, read| {
                warp.each_copy_read(inst, copy, launch, lanes, read)
            })?;
            tensor_work::copy(core, warp, (inst, copy, lanes), cycle, scope)?;
        }
        TensorStep::CommitTo => commit(core, warp, inst, lanes, cycle, scope)?,
        TensorStep::Traced(step) => step_traced(core, (warp, step, inst.imm as u32), (cycle, latency), scope)?,
    }
    core.slots[warp].warp.advance();
    Ok(true)
}

/// A step of products of four warps (`wgmma`): values at once, and when the warp goes on.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
pub(super) fn step_group(
    core: &mut IssueCore,
    (warp, step): (usize, GroupStep),
    (inst, lanes): (&Inst, u64),
    m: &mut Moment<'_>,
) -> Result<(), Fault> {
    let slot = &mut core.slots[warp];
    let launch = m.launches.of(slot);
    if step != GroupStep::Multiply {
        slot.warp.check_whole(launch, lanes, step.name())?;
        slot.not_before = core.products[warp].step(step, m.cycle);
        return Ok(());
    }
    let cta = &mut core.ctas[usize::from(slot.cta)];
    read_factors(warp, slot, cta, launch, m.host, |warp, read| warp.each_group_read(inst, launch, lanes, read))?;
    slot.warp.multiply_group(inst, launch, lanes, &cta.shared)?;
    m.record.tensor.group_products += 1;
    // The tensor cores of its scheduler are taken in the order of issue, whenever the work begins.
    let product = &launch.kernel.group_products[inst.imm as usize];
    let times = m.p.tensor.group_times(product, m.p.sm.schedulers);
    let free_at = &mut core.schedulers[usize::from(slot.scheduler)].free_at[Unit::Tensor as usize];
    let depth = m.p.tensor.group_depth;
    let queue = &mut core.products[warp];
    slot.not_before = queue.begin(product.accumulator, times, depth, m.cycle, free_at);
    if product.ends_group {
        queue.step(GroupStep::Commit, m.cycle);
    }
    Ok(())
}

/// A step of a trace, which takes so much: nothing is read or written but its registers' times.
///
/// # Errors
/// The CTA has no peer.
fn step_traced(
    core: &mut IssueCore,
    (warp, step, count): (usize, TracedTensor, u32),
    (cycle, latency): (u32, u32),
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let (slot, spec) = (&core.slots[warp], scope.spec);
    let (cta, pc, launch) = (usize::from(slot.cta), slot.warp.pc() as usize, scope.launches.of(slot));
    let times = match step {
        TracedTensor::Multiply { elements, .. } => spec.tensor_times(TensorWork { elements, operations: count }),
        TracedTensor::Copy { .. } => spec.copy_times(count, latency),
        // It is known when its registers are there: who reads one waits until then.
        TracedTensor::Transfer { loads } => {
            let next = core.tensor.transfer(warp, loads, count, latency, cycle);
            core.slots[warp].not_before = next;
            core.write_from(warp, pc, next + latency, launch);
            return Ok(());
        }
        TracedTensor::WaitStores => {
            core.slots[warp].not_before = core.tensor.transferred(warp, false).max(cycle + 1);
            return Ok(());
        }
    };
    if step.is_paired() {
        return tensor_work::occupy(core, warp, times, cycle, scope);
    }
    core.tensor.multiply(cta, times, cycle);
    Ok(())
}

/// Lanes arrive at barriers in several CTAs, behind all products so far.
fn commit(
    core: &mut IssueCore,
    warp: usize,
    inst: &Inst,
    lanes: u64,
    cycle: u32,
    scope: PairScope<'_>,
) -> Result<(), Fault> {
    let slot = &core.slots[warp];
    let (launch, place) = (scope.launches.of(slot), slot.cta);
    let targets = slot.warp.commit_targets(inst, launch, lanes)?;
    let under_way = core.tensor.is_under_way(place, cycle);
    for target in targets {
        let cta = &mut core.ctas[usize::from(place)];
        let own = cta.seat.as_ref().map_or(0, |seat| seat.rank);
        let others = scope.others(cta, target.ranks, target.at);
        let at: Vec<u64> = (target.ranks >> own & 1 == 1).then_some(target.at).into_iter().collect();
        // Its writes carry what the warp knows of fences, as a store's do.
        cta.fenced = cta.fenced.max(core.slots[warp].order.fenced);
        if under_way {
            core.tensor.arrive_in_turn((place, cta.cta), at, others);
            continue;
        }
        core.tensor.pairs.arrive(others);
        for at in at {
            arrive_in(core, place.into(), at, scope.launches)?;
        }
    }
    Ok(())
}

/// A warp has its columns: their address goes to its register.
fn allocate_columns(core: &mut IssueCore, warp: usize, columns: u32, launch: &Launch) -> Result<(), Fault> {
    let slot = &mut core.slots[warp];
    let memory = core.tensor.memory_mut(usize::from(slot.cta));
    let Some(address) = memory.allocate(columns) else {
        let what = format!("`tcgen05.alloc` of {columns} columns, which do not fit between others of its CTA");
        return Err(Box::new(slot.fault(0, FaultKind::Unsupported(what), launch)));
    };
    let inst = &launch.kernel.code[slot.warp.pc() as usize];
    let lanes = slot.warp.guarded(inst);
    slot.warp.write_tensor_result(inst.dst[0], lanes, address);
    Ok(())
}

/// Arrivals that are due at `cycle` happen.
///
/// # Errors
/// A barrier that is not there, or awaits nobody.
#[cold]
pub(super) fn arrive_behind_products(core: &mut IssueCore, cycle: u32, launches: &LaunchTable) -> Result<(), Fault> {
    while let Some(due) = core.tensor.take_due(cycle) {
        let DueArrival { slot, cta: number, at, others, .. } = due;
        core.tensor.pairs.arrive(others);
        let cta = &core.ctas[usize::from(slot)];
        // A CTA that has ended does not hear of it.
        if cta.is_free() || cta.cta != number {
            continue;
        }
        at.into_iter().try_for_each(|at| arrive_in(core, slot.into(), at, launches))?;
    }
    Ok(())
}
