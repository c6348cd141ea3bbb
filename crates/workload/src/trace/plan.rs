//! A trace ready to run, as data: its commands, kernels and layout, and what is told of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::labels::{Labels, PersistentRange};
use super::layout::TraceLayout;
use super::list::TraceCommand;
use super::survey::KernelSurvey;
use crate::description::TraceDescription;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::memory::AddressMap;

/// A trace ready to run.
#[derive(Debug)]
pub(crate) struct TracePlan {
    pub(super) list: PathBuf,
    pub(super) commands: Arc<Vec<TraceCommand>>,
    /// Lines of the list that are no command, by their first word.
    pub(super) ignored: BTreeMap<String, u64>,
    /// Kernels of the list that were not chosen.
    pub(super) skipped: u64,
    pub(super) labels: Arc<Labels>,
    /// One a launch.
    pub(super) kernels: Vec<Arc<KernelSurvey>>,
    pub(super) layout: Arc<TraceLayout>,
    pub(crate) addresses: Arc<AddressMap>,
    /// Labels that may be wrong.
    pub(crate) warnings: Vec<Diagnostic>,
}

impl TracePlan {
    /// The kernel of every launch.
    pub(crate) fn launched(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        self.kernels.iter().map(|survey| &survey.kernel)
    }

    /// CTAs of all launches.
    pub(crate) fn ctas(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.ctas.len() as u64).sum()
    }

    /// Warp instructions of all launches.
    pub(crate) fn warp_instructions(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.instructions).sum()
    }

    /// Threads of the largest CTA.
    pub(crate) fn largest_cta(&self) -> u64 {
        self.kernels.iter().map(|kernel| u64::from(kernel.header.threads())).max().unwrap_or(0)
    }

    /// Local memory of a thread in bytes, at most.
    pub(crate) fn local_bytes(&self) -> u64 {
        self.kernels.iter().map(|kernel| u64::from(kernel.kernel.local_bytes)).max().unwrap_or(0)
    }

    /// Streams of all kernels.
    pub(super) fn streams(&self) -> u64 {
        let mut streams: Vec<u64> = self.kernels.iter().map(|kernel| kernel.header.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams.len() as u64
    }

    /// Everything that decides a run: labels, commands, and the text of every kernel.
    pub(crate) fn fingerprint(&self, take: &mut dyn FnMut(&str, &[u8])) {
        take("labels", format!("{:?}", self.labels).as_bytes());
        for command in &*self.commands {
            match command {
                TraceCommand::CopyIn(range) => take("copy", format!("{range:?}").as_bytes()),
                TraceCommand::Kernel(_) => take("launch", b""),
            }
        }
        self.kernels.iter().for_each(|kernel| take("kernel", &kernel.hash));
        self.addresses.ranges().iter().for_each(|range| take("range", &range.start.to_le_bytes()));
    }

    /// As plain data.
    pub(crate) fn describe(&self) -> TraceDescription {
        let sum = |counts: fn(&KernelSurvey) -> &BTreeMap<String, u64>| {
            let mut sum = BTreeMap::new();
            for (name, count) in self.kernels.iter().flat_map(|kernel| counts(kernel)) {
                *sum.entry(name.clone()).or_default() += count;
            }
            sum
        };
        let range = |range: &PersistentRange| (range.name.clone(), [range.start, range.bytes]);
        TraceDescription {
            list: self.list.display().to_string(),
            kernels: self.kernels.len() as u64,
            ctas: self.ctas(),
            warp_instructions: self.warp_instructions(),
            streams: self.streams(),
            persistent: self.labels.persistent.iter().map(range).collect(),
            stood_in: sum(|kernel| &kernel.stood_in),
            renamed: sum(|kernel| &kernel.renamed),
            chosen: self.labels.kernels.as_ref().map(ToString::to_string),
            skipped: self.skipped,
            empty_warps: self.kernels.iter().map(|kernel| kernel.added.empty).sum(),
            unended_warps: self.kernels.iter().map(|kernel| kernel.added.unended).sum(),
            barriers_unknown: self.kernels.iter().filter(|kernel| kernel.unknown.barriers).count() as u64,
            clusters_unknown: self.kernels.iter().filter(|kernel| kernel.unknown.clusters).count() as u64,
            ignored_lines: self.ignored.clone(),
        }
    }
}
