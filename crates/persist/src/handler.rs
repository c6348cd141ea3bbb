//! The seam between a persistency scheme and the components that host it.
//!
//! A scheme is a factory of *handlers*, each of the kind of its host. What a host tells and asks is its own:
//! a GPU's in [`event`](super::event), a CPU's in [`cpu_event`](super::cpu_event). A scheme is for the
//! machines for whose SMs, or cores, it makes handlers ([`Scheme::sm_handler`], [`Scheme::core_handler`]).
//!
//! A handler belongs to its host, hence to one partition. It decides only what the schemes differ in: the way
//! of a store, what a fence waits for, what a boundary brings to durability; and what it tells its peers. The
//! host does the rest: traffic, acknowledgements, credits. A scheme has no other state and no other way to
//! act, so it cannot break the engine's order.
//!
//! ```text
//!   SM or core ──messages──> hub <──messages── slices or homes        command processor ──> hub
//!              <──messages──     ──messages──>              SM or core, NIC ──> slice or home
//!   SM or core, NIC <──messages──> controllers <──messages──> controllers; ──> slices or homes
//! ```
//! Messages travel over links of their own latency and take no bandwidth of the crossbar; a slice's handler
//! may have bytes moved to memory reserved for it and back, as traffic of its slice. Invariant: a host asks a
//! handler about accesses to persistent memory only; a handler that steers loads is asked about global loads
//! of either memory.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Stateful, Storable, state_methods};

pub use super::access::{
    Access, AccessKind, Held, Joining, KernelFacts, LaunchSet, Load, Marker, PathStore, Store, Synchronisation,
    SynchronisationRule, WriteBack,
};
pub use super::cpu_event::{CoreEvent, CoreFences, CoreOffer, CorePolicy, HomeEvent, NicEvent};
pub use super::dependency::{Dependencies, Dependency};
pub use super::event::{
    Admission, ControllerEvent, Departure, HandlerReport, SliceEvent, SliceInterests, SmEvent, SmInterests, SmOffer,
    VictimSearch,
};
pub use super::outbox::{Flush, Move, Outbox, Peer, SchemeMessage, opened};
use super::promises::Promises;
use super::storage::StorageCost;
use super::vocab::{Boundary, FenceKind, FenceRule, Machines, RegionRule, Route, StoreClass, StoreRule, WriteBackRule};

/// Where a handler sits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandlerPlace {
    /// Number of its host among those of its kind.
    pub index: u16,
    /// SMs of a GPU; 0 on a machine of CPUs.
    pub sms: u16,
    /// Cores of a CPU; 0 on a GPU.
    pub cores: u16,
    /// Harts of each core.
    pub harts: u16,
    /// L2 slices, or home slices.
    pub slices: u16,
    /// Memory controllers of the machine.
    pub controllers: u16,
    /// Ticks in a ms.
    pub tick_khz: u64,
    /// The machine's L1s combine stores: what is stored stays there until it is cleaned.
    pub l1_combines: bool,
    /// Channels of the NIC: one a client over the network, and one a hart of another server.
    pub channels: u16,
}

impl HandlerPlace {
    /// SMs, or cores, whichever the machine has.
    pub fn computes(&self) -> u16 {
        self.sms + self.cores
    }

    /// The handler of the slice, or home slice, of a line.
    pub fn slice_of(&self, line: u64) -> Peer {
        if self.cores > 0 { Peer::HomeOf(line) } else { Peer::SliceOf(line) }
    }
}

/// The banks of a controller's persistent memory, for handlers that choose among them.
pub struct Banks {
    /// How many.
    pub count: u16,
    /// The bank of a line, from 0.
    pub of: Box<dyn Fn(u64) -> u16 + Send>,
}

impl Debug for Banks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Banks").field("count", &self.count).finish_non_exhaustive()
    }
}

/// A scheme's handler in a component: what those of all components have alike. That of a hub has no more.
pub trait Handler: Send + Debug {
    /// A peer has written.
    fn message(&mut self, _from: Peer, _message: Box<dyn SchemeMessage>, _outbox: &mut Outbox) {}

    /// How many entries it holds of a lane, for timelines: of a hart of its core, a channel of its NIC; at a
    /// controller of a hart of the machine, then of channels. None where there is no such lane.
    fn occupancy(&self, _lane: usize) -> Option<u64> {
        None
    }

    /// Adds what it has to tell to a report.
    fn report(&self, _report: &mut HandlerReport) {}

    /// Every word of its state in order, for the run's digest. Asked of a hub.
    fn state(&self, _take: &mut dyn FnMut(u64)) {}

    /// Writes what of its state changes while it runs; without this, a run with it cannot be saved.
    fn save(&self, out: &mut StateWriter) {
        out.refuse("a handler of the scheme has state that cannot be saved");
    }

    /// Takes over what a handler like this one saved.
    ///
    /// # Errors
    /// It was another one.
    fn load(&mut self, _from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        Err(LoadFault::new("a handler that cannot be loaded"))
    }
}

macro_rules! state_of_handlers {
    ($($name:ident),*) => {$(
        impl Stateful for dyn $name {
            fn save(&self, out: &mut StateWriter) {
                Handler::save(self, out);
            }

            fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
                Handler::load(self, from)
            }
        }
    )*};
}

state_of_handlers!(
    Handler,
    SmHandler,
    SliceHandler,
    HostHandler,
    CoreHandler,
    HomeHandler,
    NicHandler,
    ControllerHandler
);

/// A scheme's handler in an SM: its policy, beside its mechanism.
pub trait SmHandler: Handler {
    /// What it wants to hear of. Asked once.
    fn interests(&self) -> SmInterests {
        SmInterests::default()
    }

    /// Something is about to happen.
    fn offer(&mut self, _offer: &SmOffer<'_>, _outbox: &mut Outbox) -> Admission {
        Admission::Goes
    }

    /// Something has happened.
    fn event(&mut self, _event: &SmEvent<'_>, _outbox: &mut Outbox) {}

    /// A CTA has ended, and all its stores are performed.
    fn boundary(&mut self, _outbox: &mut Outbox) -> Boundary {
        Boundary::None
    }

    /// A warp stores to persistent memory.
    fn store(&mut self, store: &Store<'_>, _outbox: &mut Outbox) -> StoreRule {
        let non_temporal = store.class == StoreClass::NonTemporal;
        StoreRule::new(if non_temporal { Route::NonTemporal } else { Route::Temporal }, false)
    }

    /// A load that would use the L1 goes past it. Asked when a warp issues it, and in each cycle that it
    /// stalls.
    fn bypasses_l1(&mut self, _load: &Load) -> bool {
        false
    }

    /// A warp asks for the write-back of lines of persistent memory.
    fn write_back(&mut self, _write_back: &WriteBack<'_>, _outbox: &mut Outbox) -> WriteBackRule {
        WriteBackRule::Written
    }

    /// A warp issues a fence.
    fn fence(&mut self, _kind: FenceKind) -> FenceRule {
        FenceRule::WaitDurable
    }

    /// A warp releases or acquires. Asked of a handler that orders persists.
    fn synchronise(&mut self, _by: Synchronisation) -> SynchronisationRule {
        SynchronisationRule { fence: FenceRule::Pass, forgets: false }
    }
}

/// A scheme's handler in an L2 slice.
pub trait SliceHandler: Handler {
    /// What it wants to hear of. Asked once.
    fn interests(&self) -> SliceInterests {
        SliceInterests::default()
    }

    /// Something has happened.
    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox);

    /// A dirty line that is to make room for another stays. It is asked again.
    fn keeps(&mut self, _line: u64, _outbox: &mut Outbox) -> bool {
        false
    }

    /// The slice serves a store, an atomic or a write-back of an SM now; else this waits at the head of the
    /// input, and is asked about again.
    fn admits(&mut self, _access: &Access, _outbox: &mut Outbox) -> bool {
        true
    }
}

/// A scheme's handler in the command processor.
pub trait HostHandler: Handler {
    /// A kernel starts; its CTAs follow.
    fn kernel_starts(&mut self, _kernel: &KernelFacts, _outbox: &mut Outbox) {}

    /// A kernel has ended, and all its stores are performed: that of the launch in a place among those in
    /// flight.
    fn boundary(&mut self, _place: u8, _outbox: &mut Outbox) -> Boundary {
        Boundary::None
    }
}

/// A scheme's handler in a core: its policy, beside its mechanism.
pub trait CoreHandler: Handler {
    /// What the core does for it. Asked once.
    fn policy(&self) -> CorePolicy;

    /// Something is about to happen.
    fn offer(&mut self, _offer: &CoreOffer, _outbox: &mut Outbox) -> Admission {
        Admission::Goes
    }

    /// Something has happened.
    fn event(&mut self, _event: &CoreEvent<'_>, _outbox: &mut Outbox) {}
}

/// A scheme's handler in a home slice: then lines of persistent memory leave the shared cache without being
/// written, or to the DRAM caches.
pub trait HomeHandler: Handler {
    /// Of the ways of a set, how many are looked at for a line that it lets go.
    fn search(&self) -> VictimSearch {
        VictimSearch::Full
    }

    /// Something has happened.
    fn event(&mut self, event: &HomeEvent<'_>, outbox: &mut Outbox);

    /// A line of persistent memory that is to leave stays. It is asked again.
    fn keeps(&mut self, line: u64) -> bool;
}

/// A scheme's handler in the network interface, which persists what clients post: a buffer for each channel.
/// Its messages go to controllers, by the links of paths, and to the homes of lines that are there.
pub trait NicHandler: Handler {
    /// A channel's buffer has room for a line, or for the end of a verb.
    fn has_room(&mut self, channel: u8) -> bool;

    /// Something has happened.
    fn event(&mut self, event: &NicEvent<'_>, outbox: &mut Outbox);
}

/// A scheme's handler in a memory controller of either machine, for a scheme that writes persistent memory by
/// itself: dirty lines of persistent memory leave the L2 without being written then. Its flushes
/// ([`Outbox::flush`]) enter the write queue in their order.
pub trait ControllerHandler: Handler {
    /// Something has happened.
    fn event(&mut self, _event: &ControllerEvent, _outbox: &mut Outbox) {}

    /// Which banks lie below. Told once, before anything else.
    fn banks(&mut self, _banks: Banks) {}

    /// Puts what it holds of a line's bytes over what memory has; true where it holds any of `mask`.
    fn overlay(&self, line: u64, mask: u128, bytes: &mut [u8; 128]) -> bool;

    /// Which stores a read waits for that found bytes here, by the tokens of their flushes. The host repeats
    /// the read once these are written, and does not ask again then. None: the read returns what is held.
    ///
    /// Invariant: they will be written though the read has not been answered; the handler may see to that
    /// now.
    fn awaited(&mut self, _line: u64, _mask: u128, _outbox: &mut Outbox) -> SmallVec<[u64; 2]> {
        SmallVec::new()
    }

    /// It holds something of a line.
    fn holds(&self, line: u64) -> bool;

    /// Lines of which it holds something, and which of their bytes.
    fn lines(&self) -> BTreeMap<u64, u128>;

    /// How much it holds.
    fn held(&self) -> Held {
        Held::default()
    }
}

/// What a handler has to tell.
pub fn report_of(handler: &(impl Handler + ?Sized)) -> HandlerReport {
    let mut report = HandlerReport::default();
    handler.report(&mut report);
    report
}

/// A handler that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Idle;

impl Handler for Idle {
    state_methods!(none);
}

impl HostHandler for Idle {}

/// A policy by itself: a handler in a core that does nothing else.
impl Handler for CorePolicy {
    state_methods!(none);
}

impl CoreHandler for CorePolicy {
    fn policy(&self) -> CorePolicy {
        *self
    }
}

/// Latencies of links between handlers, in ps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathLinks {
    /// Between an SM and the first controller.
    pub path_ps: u64,
    /// Between two controllers beside each other.
    pub ack_ps: u64,
    /// More for every controller that lies between: the machine's controllers stand in a row, SMs before the
    /// first.
    pub step_ps: u64,
    /// Between the hub and SMs or controllers.
    pub hub_ps: u64,
}

/// A persistency scheme: what it is called, and a handler for every host.
pub trait Scheme: Send + Sync + Debug {
    /// Its name, as typed.
    fn name(&self) -> &'static str;

    /// What it is, in a sentence, with its source.
    fn description(&self) -> &'static str;

    /// The handler of an SM, for a scheme of GPUs.
    fn sm_handler(&self, _place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        None
    }

    /// The handler of a core, for a scheme of CPUs.
    fn core_handler(&self, _place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        None
    }

    /// The handler of an L2 slice, for a scheme that has one there.
    fn slice_handler(&self, _place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        None
    }

    /// The handler of a home slice, for a scheme that has one there.
    fn home_handler(&self, _place: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        None
    }

    /// The handler of the scheme's own component, the hub, for a scheme that has one.
    fn hub_handler(&self, _place: HandlerPlace) -> Option<Box<dyn Handler>> {
        None
    }

    /// The handler of a memory controller, for a scheme that has one there.
    fn controller_handler(&self, _place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        None
    }

    /// The handler of the network interface, for a scheme that persists what clients post.
    fn nic_handler(&self, _place: HandlerPlace) -> Option<Box<dyn NicHandler>> {
        None
    }

    /// Latencies of the links that a scheme with controllers' handlers has.
    fn path_links(&self) -> Option<PathLinks> {
        None
    }

    /// The handler of the command processor.
    fn host_handler(&self) -> Box<dyn HostHandler> {
        Box::new(Idle)
    }

    /// Its slices' handlers move bytes to memory of their own and back, which takes bandwidth.
    fn reserves_memory(&self) -> bool {
        false
    }

    /// Reads a message of its handlers' that was under way when a run was saved.
    ///
    /// # Errors
    /// It has no messages, or the bytes are of something else.
    fn read_message(&self, _from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        Err(LoadFault::new("the scheme has no messages that can be saved"))
    }

    /// What it cannot do on a machine of so many components: the parameter to blame, and why.
    fn unfit(&self, _: HandlerPlace) -> Option<(String, String)> {
        None
    }

    /// Persistent memory has all that is stored from its handlers: dirty lines that leave caches are dropped,
    /// and a DRAM cache may lie in front. Asked of a scheme of CPUs.
    fn drops_evictions(&self) -> bool {
        false
    }

    /// What it promises of a power failure, by which its handlers are judged. A scheme that declares nothing
    /// promises nothing.
    fn promises(&self) -> Promises {
        Promises::NONE
    }

    /// What the storage that it adds to a machine of these SMs and slices costs, where its paper says so.
    fn storage(&self, _: HandlerPlace) -> Vec<StorageCost> {
        Vec::new()
    }

    /// Kernels run formed into recoverable regions under it, with checkpoints, and everything is in
    /// persistent memory.
    fn regions(&self) -> Option<RegionRule> {
        None
    }

    /// Why launches of a GPU run one after another under it, though the program lets them overlap; none where
    /// its handlers take the CTAs of several launches as those of one, or tell them apart.
    fn one_by_one(&self) -> Option<&'static str> {
        Some("hears of one kernel at a time")
    }

    /// Programs keep undo logs under it: automatic instrumentation applies, and log updates are performed.
    fn logs(&self) -> bool;

    /// Its SM handlers drop every log update ([`Route::Dropped`]): one that a program makes itself is not
    /// performed.
    fn drops_log_stores(&self) -> bool {
        false
    }
}

impl dyn Scheme + '_ {
    /// On which machines it is: those for whose SMs, or cores, it makes handlers.
    pub fn machines(&self) -> Machines {
        let one = HandlerPlace { slices: 1, controllers: 1, tick_khz: 1, ..HandlerPlace::default() };
        Machines {
            gpu: self.sm_handler(HandlerPlace { sms: 1, ..one }).is_some(),
            cpu: self.core_handler(HandlerPlace { cores: 1, harts: 1, ..one }).is_some(),
        }
    }
}

/// Read by the scheme that is known to the reader.
impl Storable for Box<dyn SchemeMessage> {
    fn save(&self, out: &mut StateWriter) {
        SchemeMessage::save(&**self, out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let Some(scheme) = from.known::<Arc<dyn Scheme>>().cloned() else {
            return Err(LoadFault::new("a message of a scheme, and the scheme is not known"));
        };
        scheme.read_message(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::WriteBackClass;

    /// A handler that decides nothing.
    #[derive(Debug)]
    struct Plain;

    impl Handler for Plain {}
    impl SmHandler for Plain {}

    #[test]
    fn a_handler_of_an_sm_that_decides_nothing_has_stores_take_their_own_way_and_fences_wait() {
        let (mut handler, outbox) = (Plain, &mut Outbox::default());
        assert_eq!(handler.interests(), SmInterests::default());
        for (class, route) in [
            (StoreClass::Data, Route::Temporal),
            (StoreClass::Log, Route::Temporal),
            (StoreClass::NonTemporal, Route::NonTemporal),
        ] {
            assert_eq!(SmHandler::store(&mut handler, &Store::of(class), outbox), StoreRule::new(route, false));
        }
        let of = Store::of(StoreClass::Log);
        assert_eq!((of.class, of.warp, of.degree, of.atomic, of.lines), (StoreClass::Log, 0, 1, false, &[][..]));
        let join = SmOffer::Join(Joining { line: 0, by: (0, 0), launch: 0, number: 1, after: 0 });
        assert_eq!(handler.offer(&join, outbox), Admission::Goes);
        assert!(!handler.bypasses_l1(&Load { degree: 32, read_only: false, stalled: true, slice_busy: true }));
        let write_back = WriteBack { class: WriteBackClass::Log, warp: 0, launch: 0, lines: &[] };
        assert_eq!(handler.write_back(&write_back, outbox), WriteBackRule::Written);
        assert_eq!(handler.fence(FenceKind::Ofence), FenceRule::WaitDurable);
        let passes = SynchronisationRule { fence: FenceRule::Pass, forgets: false };
        assert_eq!(handler.synchronise(Synchronisation::Acquire { wide: true }), passes);
        assert_eq!(handler.boundary(outbox), Boundary::None);
        assert!(outbox.is_empty());
    }
}
