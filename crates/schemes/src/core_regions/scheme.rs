//! A scheme whose cores commit regions each in an order of its own, as data: its path, its links, how regions
//! are formed, and the handler of its controllers, by which such schemes differ.
//!
//! Lines that leave the shared cache are dropped, as what persists comes by the path; programs keep no logs.

use std::fmt;

use durawarp_base::spec::Nanos;
use durawarp_checkpoint::{LoadFault, StateReader, Storable};
use durawarp_persist::vocab::{BoundaryAt, CommitRule, RegionRule};
use durawarp_persist::{ControllerHandler, CoreHandler, HandlerPlace, HomeHandler, PathLinks, Scheme, SchemeMessage};

use super::buffer::{CoreBuffer, PathRule};
use super::lines::HomeLines;
use super::messages::CoreRegionMessage;

/// How such schemes have regions formed, where their parameters do not say it.
pub const REGIONS: RegionRule = RegionRule {
    threshold_stores: 2,
    unroll: false,
    speculative_unroll: false,
    unroll_factor: 1,
    prune: false,
    uniform_once: false,
    after_sync: true,
    boundary_at: BoundaryAt::Acquires,
    of_ctas: false,
    commit: CommitRule::Pipelined,
    by_sm: false,
};

/// Makes the handler of a controller.
type MakeController = Box<dyn Fn(HandlerPlace) -> Box<dyn ControllerHandler> + Send + Sync>;

/// The scheme.
pub struct CoreRegions {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) path: PathRule,
    /// From a core to a controller and back, and from a controller to another.
    pub(crate) latencies: (Nanos, Nanos),
    pub(crate) regions: RegionRule,
    pub(crate) controller: MakeController,
}

impl fmt::Debug for CoreRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name).field("path", &self.path).field("regions", &self.regions).finish_non_exhaustive()
    }
}

impl Scheme for CoreRegions {
    fn read_message(&self, from: &mut StateReader<'_>) -> Result<Box<dyn SchemeMessage>, LoadFault> {
        CoreRegionMessage::read(from).map(|message| Box::new(message) as _)
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn core_handler(&self, place: HandlerPlace) -> Option<Box<dyn CoreHandler>> {
        Some(Box::new(CoreBuffer::new(self.path, place)))
    }

    fn home_handler(&self, place: HandlerPlace) -> Option<Box<dyn HomeHandler>> {
        Some(Box::new(HomeLines::new(place)))
    }

    fn controller_handler(&self, place: HandlerPlace) -> Option<Box<dyn ControllerHandler>> {
        Some((self.controller)(place))
    }

    /// There is no hub.
    fn path_links(&self) -> Option<PathLinks> {
        let (path, ack) = self.latencies;
        Some(PathLinks { path_ps: path.ps, ack_ps: ack.ps, step_ps: 0, hub_ps: path.ps })
    }

    fn drops_evictions(&self) -> bool {
        true
    }

    fn unfit(&self, place: HandlerPlace) -> Option<(String, String)> {
        (place.harts > 1).then(|| {
            let why = format!("a core's regions are those of one hart, and a core has {}", place.harts);
            ("core.harts".to_owned(), why)
        })
    }

    fn regions(&self) -> Option<RegionRule> {
        Some(self.regions)
    }

    fn logs(&self) -> bool {
        false
    }
}
