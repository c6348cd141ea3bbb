//! A scheme as it is but for some of its handlers: what a test changes is all that it writes down.

use std::fmt::Debug;

use durawarp::persist::{
    ControllerHandler, CoreHandler, Handler, HandlerPlace, HomeHandler, HostHandler, NicHandler, PathLinks, Promises,
    RegionRule, Scheme, SliceHandler, SmHandler, StorageCost,
};

/// What is put around the handlers of a scheme.
pub(crate) trait Decorator: Send + Sync + Debug {
    /// The scheme.
    fn of(&self) -> &dyn Scheme;

    /// The handler of an SM.
    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        self.of().sm_handler(place)
    }

    /// The handler of an L2 slice.
    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        self.of().slice_handler(place)
    }

    /// The handler of a core.
    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        self.of().core_handler(place)
    }

    /// The handler of a home slice.
    fn home_handler(&self, place: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        self.of().home_handler(place)
    }

    /// The handler of a NIC.
    fn nic_handler(&self, place: HandlerPlace) -> Option<Box<dyn NicHandler>> {
        self.of().nic_handler(place)
    }

    /// The handler of a memory controller.
    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        self.of().controller_handler(place)
    }
}

/// A decorated scheme.
#[derive(Debug)]
pub(crate) struct Decorated<D>(pub(crate) D);

impl<D: Decorator> Scheme for Decorated<D> {
    fn name(&self) -> &'static str {
        self.0.of().name()
    }

    fn description(&self) -> &'static str {
        self.0.of().description()
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        self.0.sm_handler(place)
    }

    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        self.0.core_handler(place)
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        self.0.slice_handler(place)
    }

    fn home_handler(&self, place: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        self.0.home_handler(place)
    }

    fn nic_handler(&self, place: HandlerPlace) -> Option<Box<dyn NicHandler>> {
        self.0.nic_handler(place)
    }

    fn hub_handler(&self, place: HandlerPlace) -> Option<Box<dyn Handler>> {
        self.0.of().hub_handler(place)
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        self.0.controller_handler(place)
    }

    fn path_links(&self) -> Option<PathLinks> {
        self.0.of().path_links()
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        self.0.of().host_handler()
    }

    fn reserves_memory(&self) -> bool {
        self.0.of().reserves_memory()
    }

    fn unfit(&self, place: HandlerPlace) -> Option<(String, String)> {
        self.0.of().unfit(place)
    }

    fn drops_evictions(&self) -> bool {
        self.0.of().drops_evictions()
    }

    fn promises(&self) -> Promises {
        self.0.of().promises()
    }

    fn storage(&self, place: HandlerPlace) -> Vec<StorageCost> {
        self.0.of().storage(place)
    }

    fn regions(&self) -> Option<RegionRule> {
        self.0.of().regions()
    }

    fn logs(&self) -> bool {
        self.0.of().logs()
    }

    fn drops_log_stores(&self) -> bool {
        self.0.of().drops_log_stores()
    }
}
