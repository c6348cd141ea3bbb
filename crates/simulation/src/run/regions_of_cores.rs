//! A program of CPUs formed into the recoverable regions that a scheme wants.

use crate::assemble::FormedProcess;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_persist::vocab::{BoundaryAt, RegionRule};
use durawarp_riscv::process::Process;
use durawarp_riscv::regions::{RegionOptions, SyncPlacement, check, form};

fn options(rule: RegionRule) -> RegionOptions {
    let unrolls = rule.unroll || rule.speculative_unroll;
    RegionOptions {
        threshold_stores: rule.threshold_stores,
        // A loop whose number of turns is known is unrolled as any other is.
        unroll_factor: if unrolls { rule.unroll_factor } else { 1 },
        prune: rule.prune,
        after_sync: rule.after_sync,
        sync: match rule.boundary_at {
            BoundaryAt::X86 => SyncPlacement::X86,
            BoundaryAt::Acquires => SyncPlacement::Acquires,
            BoundaryAt::Fences => SyncPlacement::Fences,
        },
        ..RegionOptions::default()
    }
}

fn fault(why: impl ToString) -> Diagnostic {
    Diagnostic::nowhere("regions", why.to_string())
}

/// Finds what would keep a process from being formed, without forming it.
///
/// # Errors
/// All of it.
pub(super) fn check_process(process: &Process, rule: RegionRule) -> Result<(), Diagnostics> {
    let faults = check(&process.image, &process.code, &options(rule)).into_iter().map(fault);
    Diagnostics(faults.collect()).into_result(())
}

/// A process as a scheme of regions runs it on so many harts; none under another scheme.
///
/// # Errors
/// The first of what [`check_process`] finds.
pub(crate) fn formed_process(
    process: &Process,
    rule: Option<RegionRule>,
    harts: u32,
) -> Result<Option<FormedProcess>, Diagnostics> {
    let Some(rule) = rule else { return Ok(None) };
    match form(&process.image, &process.code, &options(rule)) {
        Ok(table) => Ok(Some(FormedProcess::new(table, process, harts))),
        Err(why) => Err(fault(why).into()),
    }
}
