//! Schemes that need no hardware of their own: the denominators and static choices that others are compared
//! with.
//!
//! | scheme | log updates | data | fences | boundaries |
//! |---|---|---|---|---|
//! | `base` | none | as without persistency | none | none |
//! | `strict` | none | around the caches, the warp waits for each | none needed | none |
//! | `epoch-cta` | none | cached | none | L2 written back at the end of each CTA |
//! | `epoch-kernel` | none | cached | none | L2 written back at the end of each kernel |
//! | `nt-store` | non-temporal | cached, written back by the program | wait | none |
//! | `store+clwb` | cached, written back by the program | the same | wait | none |
//!
//! Sources: AGPM section V-A (base, nt-store, store+clwb); Lin et al., "Exploring Memory Persistency Models
//! for GPUs" (PACT 2019) for strict and epoch persistency. What they keep of a program's own persistency
//! operations differs: the first four replace them, the last two rely on them.

use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::Handler;
use durawarp_persist::handler::SmInterests;
use durawarp_persist::non_temporal::NonTemporalStores;
use durawarp_persist::promises::{Fences, Promises};
use durawarp_persist::{
    Boundary, CoreFences, CoreHandler, CorePolicy, FenceKind, FenceRule, HandlerPlace, HostHandler, Outbox, Route,
    Scheme, SmHandler, Store, StoreClass, StoreRule, WriteBack, WriteBackClass, WriteBackRule,
};

use durawarp_base::choice;
use durawarp_base::spec;

/// A scheme that is a choice of answers.
#[derive(Debug, Clone, Copy)]
pub struct Baseline {
    name: &'static str,
    description: &'static str,
    /// Programs keep undo logs, and their own write-backs and fences act.
    logs: bool,
    /// Ways of ordinary stores, of stores that the program sends around the caches, of log updates.
    data: Route,
    non_temporal: Route,
    log: Route,
    /// A warp waits until its store is durable.
    wait: bool,
    cta_end: Boundary,
    kernel_end: Boundary,
    /// It is for CPUs, too.
    cores: bool,
    promises: Promises,
}

/// Persistent memory without persistency: operations on it and logs are taken out of the program.
pub const BASE: Baseline = Baseline {
    name: "base",
    description: "NVM without persistency: logs, write-backs and fences are taken out (AGPM's denominator)",
    logs: false,
    data: Route::Temporal,
    non_temporal: Route::Temporal,
    log: Route::Dropped,
    wait: false,
    cta_end: Boundary::None,
    kernel_end: Boundary::None,
    cores: true,
    promises: Promises::NONE,
};

/// Strict persistency: every store is durable before the warp's next instruction.
pub const STRICT: Baseline = Baseline {
    name: "strict",
    description: "each store goes past the caches and is durable before the warp goes on (PACT'19 strict persistency)",
    data: Route::NonTemporal,
    non_temporal: Route::NonTemporal,
    wait: true,
    cores: false,
    promises: Promises { strict: true, ..Promises::NONE },
    ..BASE
};

/// Epoch persistency by writing back the L2: no order within a CTA.
pub const EPOCH_CTA: Baseline = Baseline {
    name: "epoch-cta",
    description: "the L2's dirty lines are written back at the end of each CTA (PACT'19 epoch persistency, CTA)",
    cta_end: Boundary::WriteBackL2,
    cores: false,
    promises: Promises { cta_end: true, ..Promises::NONE },
    ..BASE
};

/// Epoch persistency by writing back the L2: no order within a kernel.
pub const EPOCH_KERNEL: Baseline = Baseline {
    name: "epoch-kernel",
    description: "the L2's dirty lines are written back at the end of each kernel (PACT'19 epoch persistency, kernel)",
    kernel_end: Boundary::WriteBackL2,
    cores: false,
    promises: Promises { kernel_end: true, ..Promises::NONE },
    ..BASE
};

/// A fence waits for what was written back or went past the caches (AGPM section II, transactions).
pub(super) const FENCES_WAIT: Promises = Promises { fences: Fences::All, ..Promises::NONE };

/// Undo logging with non-temporal log updates; data is written back by the program. [`nt_store`] has data
/// past them too, by request.
pub const NT_STORE: Baseline = Baseline {
    name: "nt-store",
    description: "undo logging, log updates past the caches (AGPM's nt-store)",
    logs: true,
    non_temporal: Route::NonTemporal,
    log: Route::NonTemporal,
    cores: false,
    promises: FENCES_WAIT,
    ..BASE
};

/// Undo logging with log updates through the caches, written back by the program like data.
pub const STORE_CLWB: Baseline = Baseline {
    name: "store+clwb",
    description: "undo logging, log updates through the caches and written back (AGPM's store+clwb)",
    log: Route::Temporal,
    ..NT_STORE
};

choice! {
    /// Which stores bypass the caches under `nt-store`.
    pub enum Routed {
        /// Log updates.
        LogUpdates = "log_updates",
        /// All stores to persistent memory.
        Requests = "requests",
    }
}

spec! {
    /// Parameters of `nt-store`.
    pub struct NtStoreSpec {
        /// Which stores bypass the caches: log updates, as AGPM's text has it, or requests: all stores to
        /// persistent memory, as its counts of log updates have it.
        routed: Routed,
    }
}

/// The defaults of `nt-store`, with sources, as a scheme file.
pub const NT_STORE_DEFAULTS: &str = "scheme = \"nt-store\"\n[nt_store]\n\
    routed = { value = \"log_updates\", source = \"AGPM section V-A: data goes through the caches\" }\n";

/// `nt-store` with these parameters.
pub fn nt_store(spec: &NtStoreSpec) -> Baseline {
    match spec.routed {
        Routed::LogUpdates => NT_STORE,
        Routed::Requests => Baseline { data: Route::NonTemporal, ..NT_STORE },
    }
}

/// A baseline's handler in an SM.
#[derive(Debug)]
struct BaselineSm {
    of: Baseline,
    non_temporal: NonTemporalStores,
}

state!(BaselineSm { parts: non_temporal; kept: of });

impl Handler for BaselineSm {
    state_methods!();
}

impl SmHandler for BaselineSm {
    fn interests(&self) -> SmInterests {
        SmInterests { stores_wait: self.of.wait, ..SmInterests::default() }
    }

    fn boundary(&mut self, _: &mut Outbox) -> Boundary {
        self.of.cta_end
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let rule = match store.class {
            StoreClass::Data => StoreRule::new(self.of.data, self.of.wait),
            StoreClass::NonTemporal => StoreRule::new(self.of.non_temporal, self.of.wait),
            StoreClass::Log => StoreRule::new(self.of.log, false),
        };
        if store.class == StoreClass::Data && self.of.logs {
            self.non_temporal.stored(store, if store.atomic { Route::Temporal } else { rule.route });
        }
        rule
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        // A store that bypassed the caches left nothing to write back.
        let nothing_left = match write_back.class {
            WriteBackClass::Log => self.of.log != Route::Temporal,
            WriteBackClass::Data => self.non_temporal.covers(write_back),
            WriteBackClass::Flush => false,
        };
        if self.of.logs && !nothing_left { WriteBackRule::Written } else { WriteBackRule::Dropped }
    }

    fn fence(&mut self, _: FenceKind) -> FenceRule {
        if self.of.logs { FenceRule::WaitDurable } else { FenceRule::Pass }
    }
}

impl Handler for Baseline {
    state_methods!(none);
}

impl HostHandler for Baseline {
    fn boundary(&mut self, _: u8, _: &mut Outbox) -> Boundary {
        self.kernel_end
    }
}

impl Scheme for Baseline {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(BaselineSm { of: *self, non_temporal: NonTemporalStores::default() }))
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(*self)
    }

    fn core_handler(&self, _: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        self.cores.then(|| Box::new(CorePolicy { fences: CoreFences::Pass, ..CorePolicy::default() }) as _)
    }

    fn promises(&self) -> Promises {
        self.promises
    }

    fn one_by_one(&self) -> Option<&'static str> {
        None
    }

    fn logs(&self) -> bool {
        self.logs
    }

    fn drops_log_stores(&self) -> bool {
        self.log == Route::Dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(handler: &mut dyn SmHandler, class: StoreClass) -> StoreRule {
        handler.store(&Store::of(class), &mut Outbox::default())
    }

    fn written_back(handler: &mut dyn SmHandler, class: WriteBackClass) -> WriteBackRule {
        handler.write_back(&WriteBack { class, warp: 0, launch: 0, lines: &[] }, &mut Outbox::default())
    }

    #[test]
    fn static_paths_differ_in_log_updates_only() {
        let (mut nt, mut temporal) = (
            NT_STORE.sm_handler(HandlerPlace::default()).unwrap(),
            STORE_CLWB.sm_handler(HandlerPlace::default()).unwrap(),
        );
        let (nt, temporal) = (&mut *nt, &mut *temporal);
        assert_eq!(stored(nt, StoreClass::Data), stored(temporal, StoreClass::Data));
        assert_eq!(stored(nt, StoreClass::NonTemporal), stored(temporal, StoreClass::NonTemporal));
        assert_eq!(stored(nt, StoreClass::Log).route, Route::NonTemporal);
        assert_eq!(stored(temporal, StoreClass::Log).route, Route::Temporal);
        assert_eq!(written_back(nt, WriteBackClass::Log), WriteBackRule::Dropped);
        assert_eq!(written_back(temporal, WriteBackClass::Log), WriteBackRule::Written);
        assert_eq!(nt.fence(FenceKind::Sfence), FenceRule::WaitDurable);
    }

    #[test]
    fn data_that_went_past_the_caches_needs_no_write_back_and_log_updates_say_nothing_of_data() {
        let requests = nt_store(&NtStoreSpec { routed: Routed::Requests });
        let after = |stored: StoreClass, atomic: bool| {
            let (mut handler, outbox) = (requests.sm_handler(HandlerPlace::default()).unwrap(), &mut Outbox::default());
            handler.store(&Store { atomic, ..Store::to(stored, &[128]) }, outbox);
            handler.write_back(&WriteBack { class: WriteBackClass::Data, warp: 0, launch: 0, lines: &[128] }, outbox)
        };
        assert_eq!(after(StoreClass::Data, false), WriteBackRule::Dropped);
        assert_eq!(after(StoreClass::Data, true), WriteBackRule::Written, "an atomic's bytes are in the L2");
        assert_eq!(after(StoreClass::Log, false), WriteBackRule::Written);
    }

    #[test]
    fn epochs_end_where_they_say() {
        let outbox = &mut Outbox::default();
        assert_eq!(EPOCH_CTA.sm_handler(HandlerPlace::default()).unwrap().boundary(outbox), Boundary::WriteBackL2);
        assert_eq!(EPOCH_CTA.host_handler().boundary(0, outbox), Boundary::None);
        assert_eq!(EPOCH_KERNEL.sm_handler(HandlerPlace::default()).unwrap().boundary(outbox), Boundary::None);
        assert_eq!(EPOCH_KERNEL.host_handler().boundary(0, outbox), Boundary::WriteBackL2);
    }
}
