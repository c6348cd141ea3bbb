//! `sync`: durability by the program's own means, on machines of CPU cores. A line that the program cleans
//! (`cbo.clean`, clwb) is written to memory, and every fence of persistency waits until all that its thread
//! cleaned is durable.
//!
//! Source: Intel's persistent memory programming model (clwb, sfence; SNIA NVM.PM), the synchronous
//! persistence that persistence parallelism (BROI) starts from. `pm.ofence` waits as `pm.dfence` does: this
//! scheme has no cheaper order. A non-temporal store takes its own way. Not here: any hardware.

use durawarp_persist::{CoreHandler, CorePolicy, HandlerPlace, Scheme};

/// The scheme.
#[derive(Debug, Clone, Copy)]
pub struct Sync;

impl Scheme for Sync {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn description(&self) -> &'static str {
        "cleaned lines are written back, and every fence waits until they are durable (clwb and sfence, on CPUs)"
    }

    fn core_handler(&self, _: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(CorePolicy::default()))
    }

    /// The programs keep their own.
    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_persist::CoreFences;

    #[test]
    fn what_is_cleaned_is_written_back_and_every_fence_waits_for_it() {
        let policy = Sync.core_handler(HandlerPlace::default()).unwrap().policy();
        assert_eq!(policy.fences, CoreFences::Wait);
    }
}
