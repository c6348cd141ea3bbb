//! The host program of a trace: its commands, one after the other.
//!
//! What the host copied in lies in the L2 then, outside simulated time, as Accel-Sim has it
//! (`-gpgpu_perf_sim_memcpy`); labels may say that it does not. Kernels have the streams of their headers.
//! Not modelled: the time of copies.

use std::sync::Arc;

use super::list::TraceCommand;
use super::plan::TracePlan;
use super::source::CtaFile;
use durawarp_kernel::host::{GlobalRange, HostAction, HostProgram};
use durawarp_kernel::launch::Launch;

/// The last bytes of a copy that are put into the L2: more than that of any GPU holds. Chosen.
const MOST_WARM_BYTES: u64 = 64 << 20;

/// The host program of a traced program.
#[derive(Debug)]
pub(crate) struct TraceHost {
    plan: Arc<TracePlan>,
    /// Commands done, and kernels launched.
    at: usize,
    launched: usize,
}

impl TraceHost {
    /// At its start.
    pub(crate) fn new(plan: Arc<TracePlan>) -> TraceHost {
        TraceHost { plan, at: 0, launched: 0 }
    }

    fn launch(&mut self) -> Launch {
        let plan = &*self.plan;
        let survey = &plan.kernels[self.launched];
        self.launched += 1;
        let extents = [survey.header.grid, survey.header.block];
        let file = CtaFile::new(survey.clone(), plan.labels.clone(), plan.layout.clone());
        let launch = Launch::of_trace(survey.kernel.clone(), extents, plan.addresses.clone());
        Launch { traced: Some(Arc::new(file)), stream: survey.header.stream, ..launch }
    }
}

impl HostProgram for TraceHost {
    fn overlaps(&self) -> bool {
        self.plan.streams() > 1
    }

    fn has_clusters(&self) -> bool {
        self.plan.launched().any(|kernel| kernel.bounds.has_clusters())
    }

    fn next(&mut self, _: Option<u64>) -> Result<HostAction, String> {
        loop {
            let plan = self.plan.clone();
            let Some(command) = plan.commands.get(self.at) else { return Ok(HostAction::Done) };
            self.at += 1;
            match command {
                TraceCommand::Kernel(_) => return Ok(HostAction::Launch(Arc::new(self.launch()))),
                TraceCommand::CopyIn(range) if plan.labels.warms => {
                    let skipped = range.bytes.saturating_sub(MOST_WARM_BYTES);
                    let last = GlobalRange { start: range.start + skipped, bytes: range.bytes - skipped };
                    return Ok(HostAction::Warm(plan.layout.pieces(last)));
                }
                TraceCommand::CopyIn(_) => {}
            }
        }
    }
}
