//! `sync`: durability by the program's own means, on machines of CPU cores. A line that the program cleans
//! (`cbo.clean`, clwb) is written to memory, and every fence of persistency waits until all that its thread
//! cleaned is durable.
//!
//! Source: Intel's persistent memory programming model (clwb, sfence; SNIA NVM.PM), the synchronous
//! persistence that persistence parallelism (BROI) starts from. `pm.ofence` waits as `pm.dfence` does: this
//! scheme has no cheaper order. A non-temporal store takes its own way. Not here: any hardware.

use durawarp_persist::Handler;
use durawarp_persist::vocab::Machines;
use durawarp_persist::{FenceKind, FenceRule, HandlerPlace, Scheme, SmHandler};

/// The scheme.
#[derive(Debug, Clone, Copy)]
pub struct Sync;

/// Its handler in a core. What it leaves to the seam is as it should be: stores take their own way, cleaned
/// lines are written back.
#[derive(Debug)]
struct SyncCore;

impl Handler for SyncCore {}

impl SmHandler for SyncCore {
    fn fence(&mut self, _: FenceKind) -> FenceRule {
        FenceRule::WaitDurable
    }
}

impl Scheme for Sync {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn description(&self) -> &'static str {
        "cleaned lines are written back, and every fence waits until they are durable (clwb and sfence, on CPUs)"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Box<dyn SmHandler> {
        Box::new(SyncCore)
    }

    fn machines(&self) -> Machines {
        Machines::Cpu
    }

    /// The programs keep their own.
    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_persist::{Outbox, Route, Store, StoreClass, WriteBack, WriteBackClass, WriteBackRule};

    #[test]
    fn what_is_cleaned_is_written_back_and_every_fence_waits_for_it() {
        let (mut handler, outbox) = (Sync.sm_handler(HandlerPlace::default()), &mut Outbox::default());
        for kind in [FenceKind::Ofence, FenceKind::Dfence, FenceKind::Sfence] {
            assert_eq!(handler.fence(kind), FenceRule::WaitDurable);
        }
        let clean = WriteBack { class: WriteBackClass::Data, warp: 0, lines: &[64] };
        assert_eq!(handler.write_back(&clean, outbox), WriteBackRule::Written);
        for (class, route) in [(StoreClass::Data, Route::Temporal), (StoreClass::NonTemporal, Route::NonTemporal)] {
            let rule = handler.store(&Store::of(class), outbox);
            assert_eq!((rule.route, rule.wait), (route, false));
        }
        assert!(outbox.is_empty());
    }
}
