//! A program of CPUs formed into the recoverable regions that a scheme wants.

use crate::assemble::FormedProcess;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::persist::vocab::RegionRule;
use crate::riscv::process::Process;
use crate::riscv::regions::{RegionOptions, UNROLL_MAX, form};

/// A process as a scheme of regions runs it on so many harts; none under another scheme.
///
/// # Errors
/// The program has no symbols; the threshold is too small.
pub(crate) fn formed_process(
    process: &Process,
    rule: Option<RegionRule>,
    harts: u32,
) -> Result<Option<FormedProcess>, Diagnostics> {
    let Some(rule) = rule else { return Ok(None) };
    let unrolls = rule.unroll || rule.speculative_unroll;
    let options = RegionOptions {
        threshold_stores: rule.threshold_stores,
        // A loop whose number of turns is known is unrolled as any other is.
        unroll_factor: if unrolls { rule.unroll_factor.min(UNROLL_MAX) } else { 1 },
        prune: rule.prune,
        after_sync: rule.after_sync,
        ..RegionOptions::default()
    };
    match form(&process.image, &process.code, &options) {
        Ok(table) => Ok(Some(FormedProcess::new(table, process, harts))),
        Err(why) => Err(Diagnostic::nowhere("regions", why.to_string()).into()),
    }
}
