//! Instructions of tensor memory (`tcgen05`) in an SM: what each does to the unit, to memory and to its warp.
//!
//! Source: PTX ISA 9.7.16; times are those of `tensor_memory.rs`. Invariant: cells and registers have their
//! values in the order of issue, whatever is under way.

use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{Inst, TensorStep};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::arrive_once;

use super::core::IssueCore;
use super::group::read_factors;
use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::parameters::TensorSpec;
use super::slots::Fault;
use super::wait::Wait;

/// An instruction of a warp, issued.
pub(super) struct TensorIssue<'a> {
    pub(super) warp: usize,
    pub(super) step: TensorStep,
    pub(super) inst: &'a Inst,
    pub(super) lanes: u64,
    pub(super) cycle: u32,
}

/// A step of tensor memory: values at once, and when the warp goes on. False where it waits.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
#[cold]
pub(super) fn step_tensor(
    core: &mut IssueCore,
    issue: TensorIssue<'_>,
    (launches, spec, latency): (&LaunchTable, &TensorSpec, u32),
    host: &mut SmHost,
) -> Result<bool, Fault> {
    let TensorIssue { warp, step, inst, lanes, cycle } = issue;
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
        TensorStep::Free => {
            let columns = slot.warp.free_columns(inst, launch, lanes, core.tensor.memory_mut(cta))?;
            for (other, columns) in core.tensor.give_back(columns) {
                let other = usize::from(other);
                let launch = launches.of(&core.slots[other]);
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
                warp.each_tensor_read(inst, kind, launch, lanes, read)
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
    }
    core.slots[warp].warp.advance();
    Ok(true)
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
        let cta = &mut core.ctas[usize::from(due.slot)];
        // A CTA that has ended does not hear of it.
        if cta.is_free() || cta.cta != due.cta {
            continue;
        }
        if let Err(misuse) = due.at.iter().try_for_each(|&at| arrive_once(&mut cta.shared, at)) {
            let warp = core.slots.iter().find(|slot| slot.cta == due.slot && slot.wait != Wait::NoWarp);
            let Some(slot) = warp else { continue };
            let lane = slot.warp.live().trailing_zeros().min(31);
            return Err(Box::new(slot.fault(lane, FaultKind::Asynchronous(misuse.to_string()), launches.of(slot))));
        }
    }
    Ok(())
}
