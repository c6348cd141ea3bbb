//! How a sampled run came by its time: plain data, and the sentence that every report of it tells.

use serde::{Deserialize, Serialize};

use super::{Duration, SampledProcess};

/// What a sampled run simulated in detail, and how sure its time is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Samples of a launch that was cut.
    pub windows: u32,
    /// The 95 % confidence interval of the run's time: from the spread of samples, and 2 % of what is
    /// predicted for a bias that all samples share, as of caches that what was skipped would have filled.
    pub low: Duration,
    /// Its upper end.
    pub high: Duration,
    /// Kernels in the order of their first launches.
    pub kernels: Vec<SampledKernel>,
    /// CTAs of all launches.
    pub ctas: u64,
    /// Those whose time was counted in detail.
    pub ctas_in_detail: u64,
    /// Warp instructions of the whole program.
    pub warp_instructions: u64,
    /// Those that were simulated in detail, warm-ups included. Counters are scaled up from these.
    pub warp_instructions_in_detail: u64,
    /// Stretches of detail, with something skipped between them.
    pub stretches: u64,
    /// Of a program of CPUs, which has neither kernels nor CTAs nor warps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<SampledProcess>,
}

/// A kernel of a sampled run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledKernel {
    /// Kernel name.
    pub kernel: String,
    /// How often it was launched.
    pub launches: u64,
    /// Launches that were simulated, as a whole or in part.
    pub in_detail: u64,
    /// Those of which only some waves of CTAs were.
    pub cut: u64,
    /// Why no launch of it may be cut, where that is so.
    pub whole_because: Option<String>,
}

impl Sampling {
    /// Of a program of CPUs, between these times.
    pub(crate) fn of_process(windows: u32, [low, high]: [Duration; 2], process: SampledProcess) -> Sampling {
        Sampling {
            windows,
            low,
            high,
            kernels: Vec::new(),
            ctas: 0,
            ctas_in_detail: 0,
            warp_instructions: 0,
            warp_instructions_in_detail: 0,
            stretches: 0,
            process: Some(process),
        }
    }

    /// Everything was simulated in detail.
    pub fn is_whole(&self) -> bool {
        match &self.process {
            Some(process) => process.intervals_in_detail == process.intervals,
            None => self.ctas_in_detail == self.ctas,
        }
    }

    /// Half of the interval over the time, in percent.
    pub fn half_width_percent(&self) -> f64 {
        let (low, high) = (self.low.ticks as f64, self.high.ticks as f64);
        if high + low > 0.0 { 100.0 * (high - low) / (high + low) } else { 0.0 }
    }

    /// What a reader has to know.
    pub(crate) fn told(&self) -> String {
        let whole: Vec<String> = self
            .kernels
            .iter()
            .filter_map(|of| Some(format!("launches of `{}` are not cut: {}", of.kernel, of.whole_because.as_ref()?)))
            .collect();
        let whole = if whole.is_empty() { String::new() } else { format!("; {}", whole.join("; ")) };
        if self.is_whole() {
            return format!("the run was to be sampled, and nothing was worth skipping: times are exact{whole}");
        }
        let (simulated, told) = match &self.process {
            Some(process) => {
                let SampledProcess { intervals, intervals_in_detail, interval_instructions, phases, .. } = process;
                let of = format!("intervals of {interval_instructions} instructions, in {} phases,", phases.len());
                (format!("{intervals_in_detail} of {intervals} {of}"), "counters are scaled up")
            }
            None => (
                format!("{} of {} CTAs", self.ctas_in_detail, self.ctas),
                "counters are scaled up, and how long persists waited is not known",
            ),
        };
        format!(
            "{simulated} were simulated in detail, and the time is an estimate: {} to {} core cycles with 95 % confidence, \
             if samples share no bias over 2 %; {told}{whole}",
            self.low.core_cycles, self.high.core_cycles
        )
    }
}
