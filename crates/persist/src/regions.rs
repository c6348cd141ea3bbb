//! What a scheme of recoverable regions tells about them: plain data for outcomes and reports.
//!
//! Every handler of the scheme fills in what it sees; [`RegionReport::merge`] adds the handlers of a machine
//! up. Source: LightWSP sections III and IV. A region's *stores* are line accesses of its warps, its
//! *entries* what these take in buffers. Times are in ticks. Invariant: nothing here is read by the model.

use std::collections::BTreeMap;

use durawarp_checkpoint::value;

use serde::{Deserialize, Serialize};

/// How large regions were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionSizes {
    /// Regions that have ended.
    pub regions: u64,
    /// Their stores.
    pub stores: u64,
    /// Entries of these.
    pub entries: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Regions by how many stores they had.
    pub by_stores: BTreeMap<u64, u64>,
    /// The most entries that one controller got of a region.
    pub largest_entries: u64,
    /// Regions of which one controller got more entries than its gated queue has, once for each such
    /// controller.
    pub beyond_queue: u64,
}

value!(record RegionSizes { regions, stores, entries, bytes, by_stores, largest_entries, beyond_queue });

/// Stores to the checkpoint area: registers, program counters, what repeats shared and local memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Stores.
    pub stores: u64,
    /// Bytes of these.
    pub bytes: u64,
}

value!(record Checkpoints { stores, bytes });

/// What warps waited for at their front-end buffer. How long is among the counters of SMs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarpWaits {
    /// Waits for room: for controllers to take what the buffer has.
    pub room: u64,
    /// Waits for an ID: for older regions to commit.
    pub ids: u64,
    /// Waits of an atomic for its turn: for others' atomics on its lines.
    pub turns: u64,
    /// Ticks of these.
    pub turn_ticks: u64,
}

value!(record WarpWaits { room, ids, turns, turn_ticks });

/// What kept a controller's oldest region from committing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerWaits {
    /// Ticks for the region's boundary, and the stores before it, to come.
    pub boundary_ticks: u64,
    /// Ticks for the other controllers' bdry-ACKs.
    pub boundary_ack_ticks: u64,
    /// Ticks for its stores to enter the write-pending queue.
    pub flush_ticks: u64,
    /// Ticks for the other controllers' flush-ACKs.
    pub flush_ack_ticks: u64,
    /// Of the waits for ACKs, ticks by the controller whose ACK came last.
    pub for_controller_ticks: Vec<u64>,
    /// Ticks of those that ACKs of several controllers ended at one instant.
    pub for_several_ticks: u64,
}

value!(record ControllerWaits {
    boundary_ticks, boundary_ack_ticks, flush_ticks, flush_ack_ticks, for_controller_ticks, for_several_ticks,
});

/// An episode of the fallback: a full gated queue, whose oldest region is written before its boundary has
/// come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overflow {
    /// When it began.
    pub at_ticks: u64,
    /// Controller.
    pub controller: u16,
    /// Order of the region: 0, or its SM.
    pub order: u16,
    /// Number of the region in its order.
    pub region: u32,
    /// Stores of it that were written at once.
    pub stores: u64,
    /// Stores of others that waited for room then.
    pub waiting: u64,
}

value!(record Overflow { at_ticks, controller, order, region, stores, waiting });

/// The regions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionReport {
    /// How large they were.
    pub sizes: RegionSizes,
    /// Stores of them that are checkpoints.
    pub checkpoints: Checkpoints,
    /// What warps waited for.
    pub warps: WarpWaits,
    /// What each controller's oldest regions waited for.
    pub controllers: Vec<ControllerWaits>,
    /// Episodes of the fallback, controller by controller; of each the first [`RegionReport::KEPT`].
    pub overflows: Vec<Overflow>,
    /// All of them.
    pub overflow_episodes: u64,
    /// IDs that the sequencer gave.
    #[serde(default)]
    pub regions_numbered: u64,
    /// Atomics that waited for others on their lines.
    #[serde(default)]
    pub atomics_waited_for_lines: u64,
}

value!(record RegionReport {
    sizes, checkpoints, warps, controllers, overflows, overflow_episodes, regions_numbered, atomics_waited_for_lines,
});

impl RegionSizes {
    /// A region of so many stores has ended.
    pub fn ended(&mut self, stores: u64) {
        self.regions += 1;
        *self.by_stores.entry(stores).or_default() += 1;
    }
}

impl RegionReport {
    /// Episodes that a controller keeps.
    pub const KEPT: usize = 1_000;

    /// Adds what another handler saw; controllers come one behind another.
    pub fn merge(&mut self, other: RegionReport) {
        let (sizes, of) = (&mut self.sizes, other.sizes);
        sizes.regions += of.regions;
        sizes.stores += of.stores;
        sizes.entries += of.entries;
        sizes.bytes += of.bytes;
        for (stores, regions) in of.by_stores {
            *sizes.by_stores.entry(stores).or_default() += regions;
        }
        sizes.largest_entries = sizes.largest_entries.max(of.largest_entries);
        sizes.beyond_queue += of.beyond_queue;
        self.checkpoints.stores += other.checkpoints.stores;
        self.checkpoints.bytes += other.checkpoints.bytes;
        let (warps, of) = (&mut self.warps, other.warps);
        warps.room += of.room;
        warps.ids += of.ids;
        warps.turns += of.turns;
        warps.turn_ticks += of.turn_ticks;
        self.controllers.extend(other.controllers);
        self.overflows.extend(other.overflows);
        self.overflow_episodes += other.overflow_episodes;
        self.regions_numbered += other.regions_numbered;
        self.atomics_waited_for_lines += other.atomics_waited_for_lines;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_add_up_and_the_largest_region_stays_the_largest() {
        let of = |stores: u64, largest_entries: u64| {
            let mut report = RegionReport::default();
            report.sizes.ended(stores);
            report.sizes.largest_entries = largest_entries;
            report.warps = WarpWaits { room: 1, ids: 2, turns: 3, turn_ticks: 4 };
            report.controllers.push(ControllerWaits { flush_ticks: stores, ..ControllerWaits::default() });
            report
        };
        let mut sum = of(5, 9);
        sum.merge(of(5, 8));
        sum.merge(of(1, 0));
        assert_eq!(sum.sizes.by_stores, BTreeMap::from([(1, 1), (5, 2)]));
        assert_eq!((sum.sizes.regions, sum.sizes.largest_entries), (3, 9));
        assert_eq!(sum.warps, WarpWaits { room: 3, ids: 6, turns: 9, turn_ticks: 12 });
        assert_eq!(sum.controllers.iter().map(|of| of.flush_ticks).collect::<Vec<_>>(), [5, 5, 1]);
        let written = serde_json::to_value(&sum).unwrap();
        assert_eq!(serde_json::from_value::<RegionReport>(written).unwrap(), sum);
    }
}
