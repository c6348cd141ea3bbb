//! Tensor memory in the functional driver (`tcgen05`): a step is done at once, and nothing is left to wait
//! for.
//!
//! Source: PTX ISA 9.7.16. Not found: a step that does not wait for what it needs.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, TensorStep};
use super::super::launch::Launch;
use super::super::tensor_memory::TensorMemory;
use super::super::warp::Warp;
use super::access::tell_read;
use super::interface::Observer;

/// A step of a warp on `lanes`, which are some; it is warp `of.1` of CTA `of.0`. Does not move the pc.
///
/// # Errors
/// What the ISA leaves undefined, or is not supported.
pub(super) fn step_tensor(
    (warp, of): (&mut Warp, (u64, u32)),
    step: TensorStep,
    (inst, lanes): (&Inst, u64),
    launch: &Launch,
    (memory, shared): (&mut TensorMemory, &[u8]),
    observer: &mut Option<Observer<'_>>,
) -> Result<(), Box<ProgramFault>> {
    match step {
        TensorStep::Allocate => {
            let columns = warp.columns_to_allocate(inst, launch, lanes)?;
            let Some(address) = memory.allocate(columns) else {
                let what = format!("`tcgen05.alloc` of {columns} columns waits for columns that its own CTA has");
                return Err(Box::new(ProgramFault::new(FaultKind::Unsupported(what), launch, warp, warp.pc(), 0)));
            };
            warp.write_tensor_result(inst.dst[0], lanes, address);
        }
        TensorStep::Free => {
            warp.free_columns(inst, launch, lanes, memory)?;
        }
        TensorStep::Relinquish | TensorStep::WaitLoads | TensorStep::WaitStores => {
            warp.check_whole(launch, lanes, step.name())?;
        }
        // Registers and cells have their values at once.
        TensorStep::Load(shape) => warp.transfer_tensor(inst, (shape, true), launch, lanes, memory)?,
        TensorStep::Store(shape) => warp.transfer_tensor(inst, (shape, false), launch, lanes, memory)?,
        TensorStep::Multiply(kind) => {
            if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.accesses) {
                warp.each_tensor_read(inst, (kind, false), launch, lanes, |lanes, addresses, bytes| {
                    tell_read(observer, (of, of.0), warp.pc(), lanes, addresses, bytes);
                })?;
            }
            warp.multiply_tensor(inst, kind, launch, lanes, memory, shared)?;
        }
        // Products behind it find what it wrote.
        TensorStep::Copy(copy) => {
            if let Some(observer) = observer.as_mut().filter(|observer| observer.wanted.accesses) {
                warp.each_copy_read(inst, copy, launch, lanes, |lanes, addresses, bytes| {
                    tell_read(observer, (of, of.0), warp.pc(), lanes, addresses, bytes);
                })?;
            }
            warp.copy_to_tensor_memory(inst, copy, launch, lanes, memory, shared)?;
        }
        TensorStep::AllocatePair
        | TensorStep::FreePair
        | TensorStep::MultiplyPair(_)
        | TensorStep::CopyPair(_)
        | TensorStep::CommitTo => {
            unreachable!("`step_pair` has what is of several CTAs")
        }
        TensorStep::Traced(_) => unreachable!("a trace has no values, and no reference"),
    }
    Ok(())
}
