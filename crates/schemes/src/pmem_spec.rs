//! PMEM-Spec: every store to persistent memory bypasses the caches on a path of its own, loads come through
//! them; hardware detects where the two, or stores of several cores, may have met in a wrong order.
//!
//! | order | stores of an SM | fences of order |
//! |---|---|---|
//! | `fence` (as AGPM ran it on a GPU) | unordered | wait |
//! | `fifo` (strict persistency, as the paper has it) | in the order of issue | pass |
//!
//! An atomic is performed at the L2: under `fence` the program's write-back of it is done, under `fifo` the
//! warp has it written back and waits. Other write-backs have nothing to do and are dropped.
//!
//! Source: "PMEM-Spec: Persistent Memory Speculation" (ASPLOS 2021); AGPM section V-B. Readings: the paper's
//! path is a FIFO to one controller, so nothing waits on it; ours end at many slices, so a store of a later
//! instruction leaves when earlier ones are acknowledged. Only a run of stores to one line goes on without:
//! two of one slice may be parted by a fill that one of them waits for, and, where the media alone survives,
//! by the banks. So `fifo` bounds the cost from above. Behind a fence that passed, atomics and stores to DRAM
//! wait too, so that other SMs are told nothing too early.
//!
//! Detection is in [`detection`]. **Not modelled: what follows it.** The paper takes a mis-speculation for a
//! power failure and restarts the failure-atomic sections under way; here no CTA is restarted, and the report
//! counts what would have been.

pub mod detection;
mod parameters;

use super::store_order::{StoreOrder, StoreOrderSpec};
use std::sync::Arc;

use durawarp_checkpoint::{LoadFault, StateReader, Storable, state, state_methods};
use durawarp_persist::non_temporal::NonTemporalStores;
use durawarp_persist::promises::{Fences, Promises};
use durawarp_persist::{
    Admission, Boundary, FenceKind, FenceRule, Handler, HandlerPlace, HandlerReport, HostHandler, NonTemporalOrder,
    Outbox, Peer, Route, Scheme, SchemeMessage, SliceHandler, SmEvent, SmHandler, SmInterests, SmOffer, Store,
    StoreRule, WriteBack, WriteBackClass, WriteBackRule,
};

use detection::{Counter, DetectionMessage, Detector};
pub use parameters::{Order, PmemSpecSpec};

/// The defaults, with sources, as a scheme file.
pub const DEFAULTS: &str = include_str!("pmem_spec/pmem_spec.toml");

/// The scheme.
#[derive(Debug, Clone)]
pub struct PmemSpec {
    spec: Arc<PmemSpecSpec>,
}

impl PmemSpec {
    /// PMEM-Spec with these parameters.
    pub fn new(spec: PmemSpecSpec) -> Self {
        PmemSpec { spec: Arc::new(spec) }
    }
}

#[derive(Debug)]
struct PmemSpecSm {
    spec: Arc<PmemSpecSpec>,
    non_temporal: NonTemporalStores,
    /// The latest speculation id that a lock gave this SM.
    id: u64,
    /// The path, where it is a FIFO.
    fifo: Option<StoreOrder>,
}

state!(PmemSpecSm { parts: non_temporal, fifo; saved: id; kept: spec });

impl PmemSpecSm {
    fn new(spec: &Arc<PmemSpecSpec>) -> Self {
        let entries = spec.path_entries;
        let (order, non_temporal_entries, held_entries) = (NonTemporalOrder::Fifo, entries, entries);
        let fifo = || StoreOrder::new(StoreOrderSpec { order, non_temporal_entries, held_entries });
        PmemSpecSm {
            spec: spec.clone(),
            non_temporal: NonTemporalStores::default(),
            id: 0,
            fifo: (spec.order == Order::Fifo).then(fifo),
        }
    }
}

impl Handler for PmemSpecSm {
    state_methods!();

    fn message(&mut self, _: Peer, message: Box<dyn SchemeMessage>, _: &mut Outbox) {
        match DetectionMessage::of(message) {
            DetectionMessage::Id(id) => self.id = self.id.max(id),
            other => panic!("PMEM-Spec's handler in an SM received {other:?}"),
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        if let Some(fifo) = &self.fifo {
            fifo.report(report);
        }
    }
}

impl SmHandler for PmemSpecSm {
    fn interests(&self) -> SmInterests {
        SmInterests { accesses: self.spec.detect, departures: self.fifo.is_some(), ..SmInterests::default() }
    }

    fn offer(&mut self, offer: &SmOffer<'_>, _: &mut Outbox) -> Admission {
        self.fifo.as_mut().map_or(Admission::Goes, |fifo| fifo.offer(offer))
    }

    fn event(&mut self, event: &SmEvent<'_>, outbox: &mut Outbox) {
        if let Some(fifo) = &mut self.fifo {
            fifo.event(event, outbox);
        }
        if let SmEvent::Atomic = event {
            outbox.send(Peer::Hub, DetectionMessage::Acquire);
        }
    }

    fn store(&mut self, store: &Store<'_>, _: &mut Outbox) -> StoreRule {
        let route = if store.atomic { Route::Temporal } else { Route::NonTemporal };
        self.non_temporal.stored(store, route);
        let order = self.fifo.as_mut().map(|fifo| fifo.issue(store, route));
        StoreRule { route, wait: store.atomic && order.is_some(), order, mark: self.id }
    }

    fn write_back(&mut self, write_back: &WriteBack<'_>, _: &mut Outbox) -> WriteBackRule {
        let nothing_left = write_back.class != WriteBackClass::Flush && self.non_temporal.covers(write_back);
        if nothing_left { WriteBackRule::Dropped } else { WriteBackRule::Written }
    }

    fn fence(&mut self, kind: FenceKind) -> FenceRule {
        match (self.spec.order, kind) {
            (Order::Fifo, FenceKind::Sfence | FenceKind::Ofence) => FenceRule::Ordered,
            _ => FenceRule::WaitDurable,
        }
    }
}

#[derive(Debug)]
struct PmemSpecHost {
    detects: bool,
}

impl Handler for PmemSpecHost {
    state_methods!(none);
}

impl HostHandler for PmemSpecHost {
    fn boundary(&mut self, _: u8, outbox: &mut Outbox) -> Boundary {
        if self.detects {
            outbox.send(Peer::Hub, DetectionMessage::KernelEnd);
        }
        Boundary::None
    }
}

impl Scheme for PmemSpec {
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        DetectionMessage::read(from).map(|message| Box::new(message) as _)
    }

    fn name(&self) -> &'static str {
        "pmem-spec"
    }

    fn description(&self) -> &'static str {
        "undo logging, all stores to persistent memory past the caches, loads through them (PMEM-Spec, as AGPM ran it)"
    }

    fn sm_handler(&self, _: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        Some(Box::new(PmemSpecSm::new(&self.spec)))
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        self.spec.detect.then(|| Box::new(Detector::new(&self.spec, place)) as Box<dyn SliceHandler>)
    }

    fn hub_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        let counter = || Box::new(Counter::new(place, self.spec.order == Order::Fence)) as Box<dyn Handler>;
        self.spec.detect.then(counter)
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(PmemSpecHost { detects: self.spec.detect })
    }

    /// Strict persistency where the path is a FIFO (ASPLOS 2021); as AGPM ran it, fences alone order.
    fn promises(&self) -> Promises {
        match self.spec.order {
            Order::Fifo => Promises {
                strict: true,
                fences: Fences::Dfence,
                non_temporal: NonTemporalOrder::Fifo,
                ..Promises::NONE
            },
            Order::Fence => Promises { fences: Fences::All, ..Promises::NONE },
        }
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
    use durawarp_persist::StoreClass;

    fn handler(order: Order) -> PmemSpecSm {
        let values = crate::entry::values_of::<PmemSpecSpec>(DEFAULTS);
        let spec: PmemSpecSpec = serde_json::from_value(values.into()).unwrap();
        PmemSpecSm::new(&Arc::new(PmemSpecSpec { order, ..spec }))
    }

    #[test]
    fn all_stores_go_past_the_caches_and_leave_nothing_to_write_back_but_atomics() {
        let mut handler = handler(Order::Fence);
        let mut asked = |class, atomic, write_back| {
            let store = Store { atomic, ..Store::to(class, &[128]) };
            let rule = handler.store(&store, &mut Outbox::default());
            assert!(!rule.wait);
            let write_back = WriteBack { class: write_back, warp: 0, launch: 0, lines: &[128] };
            (rule.route, handler.write_back(&write_back, &mut Outbox::default()))
        };
        let past = (Route::NonTemporal, WriteBackRule::Dropped);
        assert_eq!(asked(StoreClass::Log, false, WriteBackClass::Log), past);
        assert_eq!(asked(StoreClass::Data, false, WriteBackClass::Data), past);
        assert_eq!(asked(StoreClass::NonTemporal, false, WriteBackClass::Data), past);
        assert_eq!(asked(StoreClass::Data, true, WriteBackClass::Data), (Route::Temporal, WriteBackRule::Written));
        assert_eq!(
            asked(StoreClass::Data, false, WriteBackClass::Flush).1,
            WriteBackRule::Written,
            "loads want it gone"
        );
    }

    #[test]
    fn an_atomic_asks_for_an_id_and_the_newest_id_marks_stores() {
        let (mut handler, mut outbox) = (handler(Order::Fence), Outbox::default());
        handler.event(&SmEvent::Atomic, &mut outbox);
        let sent: Vec<(Peer, DetectionMessage)> =
            outbox.take().into_iter().map(|(to, message)| (to, DetectionMessage::of(message))).collect();
        assert!(matches!(sent[..], [(Peer::Hub, DetectionMessage::Acquire)]), "{sent:?}");
        for (id, mark) in [(7, 7), (3, 7), (8, 8)] {
            handler.message(Peer::Hub, Box::new(DetectionMessage::Id(id)), &mut outbox);
            assert_eq!(handler.store(&Store::of(StoreClass::Data), &mut outbox).mark, mark);
        }
    }

    #[test]
    fn fences_wait_unless_the_path_keeps_order_where_an_atomic_is_waited_for() {
        let mut fifo = handler(Order::Fifo);
        assert_eq!(
            (fifo.fence(FenceKind::Sfence), fifo.fence(FenceKind::Dfence)),
            (FenceRule::Ordered, FenceRule::WaitDurable)
        );
        assert!(fifo.interests().departures);
        let atomic = Store { atomic: true, ..Store::of(StoreClass::Data) };
        let rule = fifo.store(&atomic, &mut Outbox::default());
        assert_eq!((rule.route, rule.wait), (Route::Temporal, true));
        let mut fence = handler(Order::Fence);
        assert_eq!((fence.fence(FenceKind::Sfence), fence.interests().departures), (FenceRule::WaitDurable, false));
    }
}
