//! PMEM-Spec: every store to persistent memory goes past the caches, loads come through them.
//!
//! As AGPM ran it on a GPU, the program's fences stay and wait. The program's write-backs of what went past have nothing to
//! do and are dropped. An atomic is performed at the L2, so its write-back is done.
//!
//! Source: "PMEM-Spec: Persistent Memory Speculation" (ASPLOS 2021); AGPM section V-B. Its persist path, on which stores of
//! a core become durable in order without fences, and the detection of mis-speculation, are not modelled here.

use crate::persist::past::PastStores;
use crate::persist::{
    HostSite, Post, Route, Scheme, Seat, SmSite, Store, StoreRule, WriteBack, WriteBackClass, WriteBackRule,
};

/// The scheme.
#[derive(Debug, Clone, Copy)]
pub struct PmemSpec;

#[derive(Debug, Default)]
struct Site {
    past: PastStores,
}

impl SmSite for Site {
    fn store(&mut self, store: &Store<'_>, _: &mut Post) -> StoreRule {
        let route = if store.atomic { Route::Temporal } else { Route::NonTemporal };
        self.past.stored(store, route);
        StoreRule { route, wait: false }
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Post) -> WriteBackRule {
        let nothing_left = write_back.class != WriteBackClass::Flush && self.past.covers(write_back);
        if nothing_left { WriteBackRule::Dropped } else { WriteBackRule::Done }
    }
}

#[derive(Debug)]
struct Host;

impl HostSite for Host {}

impl Scheme for PmemSpec {
    fn name(&self) -> &'static str {
        "pmem-spec"
    }

    fn description(&self) -> &'static str {
        "undo logging, all stores to persistent memory past the caches, loads through them (PMEM-Spec, as AGPM ran it)"
    }

    fn sm_site(&self, _: Seat) -> Box<dyn SmSite> {
        Box::new(Site::default())
    }

    fn host_site(&self) -> Box<dyn HostSite> {
        Box::new(Host)
    }

    fn logs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::StoreClass;

    #[test]
    fn all_stores_go_past_the_caches_and_leave_nothing_to_write_back_but_atomics() {
        let mut site = Site::default();
        let mut asked = |class, atomic, write_back| {
            let store = Store { class, warp: 0, degree: 1, atomic, lines: &[128] };
            let route = site.store(&store, &mut Post::default()).route;
            let write_back = WriteBack { class: write_back, warp: 0, lines: &[128] };
            (route, site.write_back(&write_back, &mut Post::default()))
        };
        let past = (Route::NonTemporal, WriteBackRule::Dropped);
        assert_eq!(asked(StoreClass::Log, false, WriteBackClass::Log), past);
        assert_eq!(asked(StoreClass::Data, false, WriteBackClass::Data), past);
        assert_eq!(asked(StoreClass::NonTemporal, false, WriteBackClass::Data), past);
        assert_eq!(asked(StoreClass::Data, true, WriteBackClass::Data), (Route::Temporal, WriteBackRule::Done));
        assert_eq!(asked(StoreClass::Data, false, WriteBackClass::Flush).1, WriteBackRule::Done, "loads want it gone");
    }
}
