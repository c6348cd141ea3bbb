//! BUCL: un-coalesced accesses bypass the caches, and so do loads that the L1 has no room for.
//!
//! | access | way |
//! |---|---|
//! | load by the read-only path (`.nc`), texture | the cache; or as other loads |
//! | global load of more than `tucd` line accesses | past the L1 |
//! | line access of another load that stalls in the L1 | past the L1, if its slice takes requests |
//! | log update of more than `tucd` line accesses | bypasses the caches; the program's write-back of it is dropped |
//! | other log updates, data | through the caches, written back by the program |
//!
//! Source: "Bypassing un-coalesced loads" (ICPADS 2016) for loads, at instructions and at accesses; AGPM
//! section V-B for log updates, which BUCL itself does not know. Readings: data is taken for low in locality
//! when its line is not in the L1. A load past our L1 takes an MSHR, so what can go past is a load that finds
//! every way of its set waiting for a fill; one that finds no MSHR waits, as it does when the MSHR of its own
//! line has no room. A slice is busy when it has no room for a request of this SM. A load past the L1 takes
//! its line out of it. Not modelled: a predictor of locality.

use super::baseline::FENCES_WAIT;
use std::sync::Arc;

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::non_temporal::NonTemporalStores;
use durawarp_persist::promises::Promises;
use durawarp_persist::{
    Handler, HandlerPlace, Load, Outbox, Route, Scheme, SmHandler, SmInterests, Store, StoreClass, StoreRule,
    WriteBack, WriteBackClass, WriteBackRule,
};

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("bucl.toml");

choice! {
    /// Which stores the degree decides about.
    pub enum Routed {
        /// Log updates, as AGPM's text has it.
        LogUpdates = "log_updates",
        /// All stores to persistent memory, as its counts of log updates have it.
        Requests = "requests",
    }
}

choice! {
    /// What becomes of loads by the read-only path.
    pub enum ReadOnly {
        /// They stay in their cache.
        Cached = "cached",
        /// They go as other loads.
        Steered = "steered",
    }
}

spec! {
    /// Parameters of BUCL.
    pub struct BuclSpec {
        /// Threshold of the coalescing degree: an instruction of more line accesses is un-coalesced.
        tucd: u32 where 1..=32,
        /// A load that stalls in the L1 goes past it.
        stall_bypass: bool,
        /// What becomes of loads by the read-only path (`ld.global.nc`): cached or steered. Textures are
        /// never steered.
        read_only: ReadOnly,
        /// Which stores bypass the caches when they are un-coalesced.
        routed: Routed,
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct Bucl {
    spec: Arc<BuclSpec>,
}

impl Bucl {
    /// BUCL with these parameters.
    pub fn new(spec: BuclSpec) -> Self {
        Bucl { spec: Arc::new(spec) }
    }
}

#[derive(Debug)]
struct BuclSm {
    spec: Arc<BuclSpec>,
    non_temporal: NonTemporalStores,
}

state!(BuclSm { parts: non_temporal; kept: spec });

impl Handler for BuclSm {
    state_methods!();
}

impl SmHandler for BuclSm {
    fn interests(&self) -> SmInterests {
        SmInterests { loads: true, ..SmInterests::default() }
    }

    fn bypasses_l1(&mut self, load: &Load) -> bool {
        if load.read_only && self.spec.read_only == ReadOnly::Cached {
            return false;
        }
        if load.stalled { self.spec.stall_bypass && !load.slice_busy } else { load.degree > self.spec.tucd }
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let decided = match store.class {
            StoreClass::Log => true,
            StoreClass::Data => !store.atomic && self.spec.routed == Routed::Requests,
            StoreClass::NonTemporal => return StoreRule::new(Route::NonTemporal, false),
        };
        let route = if decided && store.degree > self.spec.tucd { Route::NonTemporal } else { Route::Temporal };
        self.non_temporal.stored(store, route);
        StoreRule::new(route, false)
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        let nothing_left = write_back.class != WriteBackClass::Flush && self.non_temporal.covers(write_back);
        if nothing_left { WriteBackRule::Dropped } else { WriteBackRule::Written }
    }
}

impl Scheme for Bucl {
    fn name(&self) -> &'static str {
        "bucl"
    }

    fn description(&self) -> &'static str {
        "undo logging, un-coalesced loads past the L1 and un-coalesced log updates past the caches (BUCL, as AGPM ran it)"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(BuclSm { spec: self.spec.clone(), non_temporal: NonTemporalStores::default() }))
    }

    /// As `store+clwb` and `nt-store`, between which it chooses (AGPM section V-B).
    fn promises(&self) -> Promises {
        FENCES_WAIT
    }

    fn one_by_one(&self) -> Option<&'static str> {
        None
    }

    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(stall_bypass: bool, routed: Routed) -> BuclSm {
        let read_only = ReadOnly::Cached;
        BuclSm {
            spec: Arc::new(BuclSpec { tucd: 4, stall_bypass, read_only, routed }),
            non_temporal: NonTemporalStores::default(),
        }
    }

    const LOAD: Load = Load { degree: 1, read_only: false, stalled: false, slice_busy: false };

    fn route(handler: &mut BuclSm, class: StoreClass, degree: u32, atomic: bool) -> Route {
        handler.store(&Store { degree, atomic, ..Store::to(class, &[128]) }, &mut Outbox::default()).route
    }

    #[test]
    fn the_degree_decides_about_loads_and_log_updates() {
        let mut handler = handler(true, Routed::LogUpdates);
        for (degree, past) in [(1, false), (4, false), (5, true), (32, true)] {
            assert_eq!(handler.bypasses_l1(&Load { degree, ..LOAD }), past);
            let expected = if past { Route::NonTemporal } else { Route::Temporal };
            assert_eq!(route(&mut handler, StoreClass::Log, degree, false), expected);
            assert_eq!(route(&mut handler, StoreClass::Data, degree, false), Route::Temporal);
            assert_eq!(
                route(&mut handler, StoreClass::NonTemporal, degree, false),
                Route::NonTemporal,
                "the program's own"
            );
        }
    }

    #[test]
    fn data_follows_the_degree_by_request_but_an_atomic_never() {
        let mut handler = handler(true, Routed::Requests);
        assert_eq!(route(&mut handler, StoreClass::Data, 5, false), Route::NonTemporal);
        assert_eq!(route(&mut handler, StoreClass::Data, 4, false), Route::Temporal);
        assert_eq!(route(&mut handler, StoreClass::Data, 32, true), Route::Temporal);
    }

    #[test]
    fn a_stalled_load_goes_past_where_its_slice_takes_it() {
        let stalled = |slice_busy| Load { stalled: true, slice_busy, ..LOAD };
        assert!(handler(true, Routed::LogUpdates).bypasses_l1(&stalled(false)));
        assert!(!handler(true, Routed::LogUpdates).bypasses_l1(&stalled(true)));
        assert!(!handler(false, Routed::LogUpdates).bypasses_l1(&stalled(false)));
    }

    #[test]
    fn a_load_by_the_read_only_path_stays_in_its_cache_unless_it_is_steered_too() {
        for load in [Load { degree: 32, ..LOAD }, Load { stalled: true, ..LOAD }] {
            let mut handler = handler(true, Routed::LogUpdates);
            assert!(handler.bypasses_l1(&load) && !handler.bypasses_l1(&Load { read_only: true, ..load }));
            handler.spec = Arc::new(BuclSpec { read_only: ReadOnly::Steered, ..*handler.spec });
            assert!(handler.bypasses_l1(&Load { read_only: true, ..load }));
        }
    }

    #[test]
    fn the_write_back_of_what_went_past_is_dropped_and_no_other() {
        let mut handler = handler(true, Routed::LogUpdates);
        let mut asked = |degree| {
            route(&mut handler, StoreClass::Log, degree, false);
            handler.write_back(
                &WriteBack { class: WriteBackClass::Log, warp: 0, launch: 0, lines: &[128] },
                &mut Outbox::default(),
            )
        };
        assert_eq!(asked(5), WriteBackRule::Dropped);
        assert_eq!(asked(4), WriteBackRule::Written);
    }
}
