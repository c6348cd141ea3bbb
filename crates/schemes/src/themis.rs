//! Themis: hardware orders non-temporal stores before later stores through the caches, so that fences between
//! the two do not wait.
//!
//! ```text
//!   log updates ──non-temporal────> write-combining buffer, FIFO ──> controllers, which acknowledge
//!   data, flags ──temporal────────> held in the SM until all earlier ones in the buffer are acknowledged
//! ```
//! What a fence does not wait for is kept in order by [`store_order`](super::store_order): a store through
//! the caches waits for all earlier non-temporal ones, and so does every store and atomic of a warp that can
//! know of such a fence, non-temporal ones and those to DRAM too. A fence waits for write-backs. One that
//! names durability (`pm.dfence`), or a scope, waits for all.
//!
//! | mode | log updates |
//! |---|---|
//! | `paper` | non-temporal |
//! | `agpm` | through the caches if a line of theirs is among the last `wcb_entries` lines stored; else non-temporal |
//!
//! Source: "(Almost) Fence-less Persist Ordering" (MICRO 2020) for the order; AGPM section V-B for mode
//! `agpm`: its Themis selects paths by the temporal locality of stores. Readings: Themis has its check where
//! dirty lines leave an L1; ours holds none, so it is where stores leave the SM, and one buffer serves all
//! warps of an SM. Its order is a core's, so a thread's; an SM has many CTAs, which nothing of AGPM's
//! protocol orders, so that by default each has an order of its own (`order_scope`). The program's write-back
//! of a log update that bypassed the caches is dropped. Left out: what the host leaves out (combining, bits
//! that wrap).

use super::store_order::{StoreOrder, StoreOrderSpec};
use std::collections::VecDeque;
use std::sync::Arc;

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::non_temporal::NonTemporalStores;
use durawarp_persist::promises::{Fences, Promises};
use durawarp_persist::{
    Admission, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, NonTemporalOrder, Outbox, Route, Scheme,
    SmEvent, SmHandler, SmInterests, SmOffer, Store, StoreClass, StoreRule, WriteBack, WriteBackClass, WriteBackRule,
};

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("themis.toml");

choice! {
    /// Which way log updates take.
    pub enum Mode {
        /// Past the caches.
        Paper = "paper",
        /// By the temporal locality of stores, as AGPM ran it.
        Agpm = "agpm",
    }
}

choice! {
    /// Among whose stores hardware keeps order.
    pub enum OrderScope {
        /// Those of a CTA.
        Cta = "cta",
        /// Those of an SM.
        Sm = "sm",
    }
}

spec! {
    /// Parameters of Themis.
    pub struct ThemisSpec {
        /// Which way log updates take.
        mode: Mode,
        /// Among whose stores order is kept: cta or sm.
        order_scope: OrderScope,
        /// Write-combining buffer of an SM: non-temporal stores that are not durable yet.
        wcb_entries: u32 where 1..=4096,
        /// Requests of an SM that may be held until earlier non-temporal stores are durable.
        write_back_entries: u32 where 1..=4096,
    }
}

impl ThemisSpec {
    fn order(&self) -> NonTemporalOrder {
        match self.order_scope {
            OrderScope::Cta => NonTemporalOrder::BeforeCachedOfCta,
            OrderScope::Sm => NonTemporalOrder::BeforeCached,
        }
    }
}

/// The scheme.
#[derive(Debug, Clone)]
pub struct Themis {
    spec: Arc<ThemisSpec>,
}

impl Themis {
    /// Themis with these parameters.
    pub fn new(spec: ThemisSpec) -> Self {
        Themis { spec: Arc::new(spec) }
    }
}

#[derive(Debug)]
struct ThemisSm {
    spec: Arc<ThemisSpec>,
    non_temporal: NonTemporalStores,
    /// The lines of the SM's last stores, each once, the latest last.
    window: VecDeque<u64>,
    order: StoreOrder,
}

state!(ThemisSm { parts: non_temporal, order; saved: window; kept: spec });

impl ThemisSm {
    fn new(spec: &Arc<ThemisSpec>) -> Self {
        let ThemisSpec { wcb_entries, write_back_entries, .. } = **spec;
        let order =
            StoreOrderSpec { order: spec.order(), non_temporal_entries: wcb_entries, held_entries: write_back_entries };
        ThemisSm {
            spec: spec.clone(),
            non_temporal: NonTemporalStores::default(),
            window: VecDeque::new(),
            order: StoreOrder::new(order),
        }
    }

    /// Notes the lines of a store; true when one of them is in the window.
    fn touch(&mut self, lines: &[u64]) -> bool {
        let again = lines.iter().any(|line| self.window.contains(line));
        for line in lines {
            if let Some(at) = self.window.iter().position(|kept| kept == line) {
                self.window.remove(at);
            } else if self.window.len() == self.spec.wcb_entries as usize {
                self.window.pop_front();
            }
            self.window.push_back(*line);
        }
        again
    }
}

impl Handler for ThemisSm {
    state_methods!();

    fn report(&self, report: &mut HandlerReport) {
        self.order.report(report);
    }
}

impl SmHandler for ThemisSm {
    fn interests(&self) -> SmInterests {
        SmInterests { departures: true, ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, _: &mut Outbox) -> Admission {
        self.order.offer(offer)
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        self.order.event(event, outbox);
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let again = self.spec.mode == Mode::Agpm && self.touch(store.lines);
        let route = match store.class {
            StoreClass::NonTemporal => Route::NonTemporal,
            StoreClass::Log if !again => Route::NonTemporal,
            StoreClass::Log | StoreClass::Data => Route::Temporal,
        };
        if store.class != StoreClass::NonTemporal {
            self.non_temporal.stored(store, route);
        }
        StoreRule { order: Some(self.order.issue(store, route)), ..StoreRule::new(route, false) }
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        let nothing_left = write_back.class != WriteBackClass::Flush && self.non_temporal.covers(write_back);
        if nothing_left { WriteBackRule::Dropped } else { WriteBackRule::Written }
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        match kind {
            FenceKind::Sfence | FenceKind::Ofence => FenceRule::Ordered,
            _ => FenceRule::WaitDurable,
        }
    }
}

impl Scheme for Themis {
    fn name(&self) -> &'static str {
        "themis"
    }

    fn description(&self) -> &'static str {
        "undo logging, hardware orders stores past the caches before later ones, so fences seldom wait (Themis)"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(ThemisSm::new(&self.spec)))
    }

    /// MICRO 2020: what hardware keeps in order needs no fence that waits.
    fn promises(&self) -> Promises {
        Promises { fences: Fences::Dfence, non_temporal: self.spec.order(), ..Promises::NONE }
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

    fn handler(mode: Mode) -> ThemisSm {
        let spec = ThemisSpec { mode, order_scope: OrderScope::Cta, wcb_entries: 2, write_back_entries: 4 };
        ThemisSm::new(&Arc::new(spec))
    }

    fn route(handler: &mut ThemisSm, class: StoreClass, lines: &[u64]) -> Route {
        handler.store(&Store::to(class, lines), &mut Outbox::default()).route
    }

    #[test]
    fn a_log_update_whose_line_was_stored_to_lately_goes_through_the_caches() {
        let mut handler = handler(Mode::Agpm);
        assert_eq!(route(&mut handler, StoreClass::Log, &[0]), Route::NonTemporal);
        assert_eq!(route(&mut handler, StoreClass::Log, &[0]), Route::Temporal, "again");
        assert_eq!(route(&mut handler, StoreClass::Log, &[128]), Route::NonTemporal);
        // The window of two holds 0 and 128; data counts, too.
        assert_eq!(route(&mut handler, StoreClass::Data, &[256]), Route::Temporal);
        assert_eq!(route(&mut handler, StoreClass::Log, &[0]), Route::NonTemporal, "0 has left the window");
        assert_eq!(route(&mut handler, StoreClass::Log, &[512, 256]), Route::Temporal, "one line of two");
    }

    #[test]
    fn in_the_papers_mode_log_updates_go_past_the_caches() {
        let mut handler = handler(Mode::Paper);
        for _ in 0..2 {
            assert_eq!(route(&mut handler, StoreClass::Log, &[0]), Route::NonTemporal);
            let write_back = WriteBack { class: WriteBackClass::Log, warp: 0, launch: 0, lines: &[0] };
            assert_eq!(handler.write_back(&write_back, &mut Outbox::default()), WriteBackRule::Dropped);
        }
        assert_eq!(route(&mut handler, StoreClass::Data, &[0]), Route::Temporal);
        let write_back = WriteBack { class: WriteBackClass::Data, warp: 0, launch: 0, lines: &[0] };
        assert_eq!(handler.write_back(&write_back, &mut Outbox::default()), WriteBackRule::Written);
    }

    #[test]
    fn fences_of_order_leave_order_to_departures_and_others_wait() {
        let mut handler = handler(Mode::Paper);
        assert_eq!(handler.fence(FenceKind::Sfence), FenceRule::Ordered);
        assert_eq!(handler.fence(FenceKind::Ofence), FenceRule::Ordered);
        for kind in [FenceKind::Dfence, FenceKind::BarrierThread, FenceKind::BarrierCta, FenceKind::BarrierKernel] {
            assert_eq!(handler.fence(kind), FenceRule::WaitDurable);
        }
        assert!(handler.interests().departures, "what does not wait must be kept in order");
    }
}
