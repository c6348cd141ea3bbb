//! How a sampled run came by its time: plain data, and the sentence that every report of it tells.

use serde::{Deserialize, Serialize};

use super::Duration;

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
    /// Everything was simulated in detail.
    pub fn is_whole(&self) -> bool {
        self.ctas_in_detail == self.ctas
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
        format!(
            "{} of {} CTAs were simulated in detail, and the time is an estimate: {} to {} core cycles with 95 % confidence, \
             if samples share no bias over 2 %; counters are scaled up, and how long persists waited is not known{whole}",
            self.ctas_in_detail, self.ctas, self.low.core_cycles, self.high.core_cycles
        )
    }
}
