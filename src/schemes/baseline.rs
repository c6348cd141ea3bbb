//! Schemes that need no hardware of their own: the denominators and static choices that others are compared with.
//!
//! | scheme | log updates | data | fences | boundaries |
//! |---|---|---|---|---|
//! | `base` | none | as without persistency | none | none |
//! | `strict` | none | past the caches, the warp waits for each | none needed | none |
//! | `epoch-cta` | none | cached | none | L2 written back at the end of each CTA |
//! | `epoch-kernel` | none | cached | none | L2 written back at the end of each kernel |
//! | `nt-store` | past the caches | cached, written back by the program | wait | none |
//! | `store+clwb` | cached, written back by the program | the same | wait | none |
//!
//! Sources: AGPM section V-A (base, nt-store, store+clwb); Lin et al., "Exploring Memory Persistency Models for GPUs"
//! (PACT 2019) for strict and epoch persistency. What they keep of a program's own persistency operations differs: the
//! first four replace them, the last two rely on them.

use crate::persist::{
    Boundary, FenceKind, FenceRule, HostSite, Route, Scheme, SmSite, StoreClass, StoreRule, WriteBackClass,
    WriteBackRule,
};

/// The command processor does nothing of its own.
#[derive(Debug)]
struct QuietHost;

impl HostSite for QuietHost {}

/// Persistent memory without persistency: operations on it and logs are taken out of the program.
#[derive(Debug, Clone, Copy)]
pub struct Base;

/// The program without its persistency operations and logs.
#[derive(Debug)]
struct Stripped;

/// A store of a program whose logs are taken out.
fn stripped(class: StoreClass) -> StoreRule {
    let route = if class == StoreClass::Log { Route::Dropped } else { Route::Temporal };
    StoreRule { route, wait: false }
}

impl SmSite for Stripped {
    fn store(&mut self, class: StoreClass) -> StoreRule {
        stripped(class)
    }

    fn write_back(&mut self, _: WriteBackClass) -> WriteBackRule {
        WriteBackRule::Dropped
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        FenceRule::Pass
    }
}

impl Scheme for Base {
    fn name(&self) -> &'static str {
        "base"
    }

    fn description(&self) -> &'static str {
        "NVM without persistency: logs, write-backs and fences are taken out (AGPM's denominator)"
    }

    fn sm_site(&self, _: u16) -> Box<dyn SmSite> {
        Box::new(Stripped)
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        Box::new(QuietHost)
    }

    fn logs(&self) -> bool {
        false
    }
}

/// Strict persistency: every store is durable before the warp's next instruction.
#[derive(Debug, Clone, Copy)]
pub struct Strict;

#[derive(Debug)]
struct StrictSm;

impl SmSite for StrictSm {
    fn store(&mut self, class: StoreClass) -> StoreRule {
        match class {
            StoreClass::Log => stripped(class),
            StoreClass::Data | StoreClass::NonTemporal => StoreRule { route: Route::NonTemporal, wait: true },
        }
    }

    fn write_back(&mut self, _: WriteBackClass) -> WriteBackRule {
        WriteBackRule::Dropped
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        FenceRule::Pass
    }
}

impl Scheme for Strict {
    fn name(&self) -> &'static str {
        "strict"
    }

    fn description(&self) -> &'static str {
        "each store goes past the caches and is durable before the warp goes on (PACT'19 strict persistency)"
    }

    fn sm_site(&self, _: u16) -> Box<dyn SmSite> {
        Box::new(StrictSm)
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        Box::new(QuietHost)
    }

    fn logs(&self) -> bool {
        false
    }
}

/// Epoch persistency by writing back the L2 at boundaries: no order within an epoch.
#[derive(Debug, Clone, Copy)]
pub struct Epoch {
    name: &'static str,
    cta: bool,
}

impl Epoch {
    /// An epoch is a CTA.
    pub const CTA: Epoch = Epoch { name: "epoch-cta", cta: true };
    /// An epoch is a kernel.
    pub const KERNEL: Epoch = Epoch { name: "epoch-kernel", cta: false };
}

#[derive(Debug)]
struct EpochSm {
    cta: bool,
}

impl SmSite for EpochSm {
    fn store(&mut self, class: StoreClass) -> StoreRule {
        stripped(class)
    }

    fn write_back(&mut self, _: WriteBackClass) -> WriteBackRule {
        WriteBackRule::Dropped
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        FenceRule::Pass
    }

    fn cta_end(&mut self) -> Boundary {
        if self.cta { Boundary::WriteBackL2 } else { Boundary::None }
    }
}

#[derive(Debug)]
struct EpochHost;

impl HostSite for EpochHost {
    fn kernel_end(&mut self) -> Boundary {
        Boundary::WriteBackL2
    }
}

impl Scheme for Epoch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        if self.cta {
            "the L2's dirty lines are written back at the end of each CTA (PACT'19 epoch persistency, CTA)"
        } else {
            "the L2's dirty lines are written back at the end of each kernel (PACT'19 epoch persistency, kernel)"
        }
    }

    fn sm_site(&self, _: u16) -> Box<dyn SmSite> {
        Box::new(EpochSm { cta: self.cta })
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        if self.cta { Box::new(QuietHost) } else { Box::new(EpochHost) }
    }

    fn logs(&self) -> bool {
        false
    }
}

/// Undo logging with log updates past the caches; data is written back by the program.
#[derive(Debug, Clone, Copy)]
pub struct NtStore;

#[derive(Debug)]
struct NtStoreSm;

impl SmSite for NtStoreSm {
    fn store(&mut self, class: StoreClass) -> StoreRule {
        let route = if class == StoreClass::Data { Route::Temporal } else { Route::NonTemporal };
        StoreRule { route, wait: false }
    }

    fn write_back(&mut self, class: WriteBackClass) -> WriteBackRule {
        // A log update that went past the caches left nothing to write back.
        if class == WriteBackClass::Log { WriteBackRule::Dropped } else { WriteBackRule::Done }
    }
}

impl Scheme for NtStore {
    fn name(&self) -> &'static str {
        "nt-store"
    }

    fn description(&self) -> &'static str {
        "undo logging, log updates past the caches (AGPM's nt-store)"
    }

    fn sm_site(&self, _: u16) -> Box<dyn SmSite> {
        Box::new(NtStoreSm)
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        Box::new(QuietHost)
    }

    fn logs(&self) -> bool {
        true
    }
}

/// Undo logging with log updates through the caches, written back by the program like data.
#[derive(Debug, Clone, Copy)]
pub struct StoreClwb;

#[derive(Debug)]
struct StoreClwbSm;

impl SmSite for StoreClwbSm {}

impl Scheme for StoreClwb {
    fn name(&self) -> &'static str {
        "store+clwb"
    }

    fn description(&self) -> &'static str {
        "undo logging, log updates through the caches and written back (AGPM's store+clwb)"
    }

    fn sm_site(&self, _: u16) -> Box<dyn SmSite> {
        Box::new(StoreClwbSm)
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        Box::new(QuietHost)
    }

    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_paths_differ_in_log_updates_only() {
        let (mut nt, mut temporal) = (NtStore.sm_site(0), StoreClwb.sm_site(0));
        assert_eq!(nt.store(StoreClass::Data), temporal.store(StoreClass::Data));
        assert_eq!(nt.store(StoreClass::NonTemporal), temporal.store(StoreClass::NonTemporal));
        assert_eq!(nt.store(StoreClass::Log).route, Route::NonTemporal);
        assert_eq!(temporal.store(StoreClass::Log).route, Route::Temporal);
        assert_eq!(nt.write_back(WriteBackClass::Log), WriteBackRule::Dropped);
        assert_eq!(temporal.write_back(WriteBackClass::Log), WriteBackRule::Done);
        assert_eq!(nt.fence(FenceKind::Sfence), FenceRule::WaitDurable);
    }

    #[test]
    fn epochs_end_where_they_say() {
        assert_eq!(Epoch::CTA.sm_site(0).cta_end(), Boundary::WriteBackL2);
        assert_eq!(Epoch::CTA.host_site().kernel_end(), Boundary::None);
        assert_eq!(Epoch::KERNEL.sm_site(0).cta_end(), Boundary::None);
        assert_eq!(Epoch::KERNEL.host_site().kernel_end(), Boundary::WriteBackL2);
    }
}
