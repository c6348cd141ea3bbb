//! What the operands of a bulk copy must be, found before a byte moves.
//!
//! | what | multiple of | where |
//! |---|---|---|
//! | addresses and size of a copy | 16 bytes | in buffers of global memory, in the CTA's shared memory |
//! | a tile in shared memory | 128 bytes | with the span of its swizzle |
//! | an `mbarrier` | 8 bytes | in the CTA's shared memory |
//!
//! Source: PTX ISA, `cp.async.bulk` and `cp.async.bulk.tensor`. Invariant: functional driver and timed
//! machine check here alone; where a map is to be read, when it has come. Bytes that a copy does not move
//! need not be there. Not checked: that copies under way do not overlap.

use super::super::super::cluster::ClusterMisuse;
use super::super::super::fault::FaultKind;
use super::super::super::ir::{Bulk, BulkKind};
use super::super::super::launch::Launch;
use super::super::super::tensor_map::{MAP_BYTES, TensorMap, Tile, TilePlace};
use super::operands::{ALIGN, BulkOperands, UnreadMap};

/// A tile in shared memory lies at a multiple of this.
const TILE_ALIGN: u64 = 128;

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: u32 = 8;

impl BulkOperands {
    /// What is copied, checked, and how: by the map that was to be read, whose bytes these are.
    ///
    /// # Errors
    /// What is wrong with the map, or with the operands.
    pub fn with_map(
        mut self,
        bulk: Bulk,
        bytes: &[u8; MAP_BYTES],
        launch: &Launch,
    ) -> Result<(Bulk, BulkOperands), FaultKind> {
        let Some(UnreadMap { place, .. }) = self.unread.take() else { return Ok((bulk, self)) };
        self.of_tile(bulk, bytes, place, launch)
    }

    /// The tile at this place of the tensor that a map describes. Of a reduction, the map says of what type
    /// the elements are.
    pub(super) fn of_tile(
        self,
        mut bulk: Bulk,
        bytes: &[u8; MAP_BYTES],
        place: TilePlace,
        launch: &Launch,
    ) -> Result<(Bulk, BulkOperands), FaultKind> {
        let wrong = |what: String| Err(FaultKind::Asynchronous(what));
        let map = match TensorMap::decode(bytes) {
            Ok(map) => map,
            Err(what) => return wrong(what),
        };
        if map.dimensions != bulk.dimensions {
            let (tensor, copy) = (map.dimensions, bulk.dimensions);
            return wrong(format!("a copy of {copy} dimensions of a tensor that has {tensor}"));
        }
        if bulk.kind == BulkKind::Reduce {
            let Some((atom, elem)) = map.elem.reduction(bulk.atom) else {
                return wrong(format!("a tensor of {:?} has no such reduction", map.elem).to_lowercase());
            };
            (bulk.atom, bulk.elem) = (atom, elem);
        }
        // A map of tiles has no pixels, and the other way round.
        let tile = Tile { map, place };
        if let Err(what) = tile.check() {
            return wrong(what);
        }
        let operands = BulkOperands { global: map.address, bytes: tile.bytes(), tile: Some(tile), ..self };
        operands.check(bulk, launch)?;
        Ok((bulk, operands))
    }

    /// What is moved of global memory is there.
    fn moved_in_global(&self, launch: &Launch) -> Result<(), FaultKind> {
        // As a rule all of a tensor is.
        if let Some(Tile { map, .. }) = &self.tile
            && launch.addresses.containing(map.address, map.end() - 1).is_some()
        {
            return Ok(());
        }
        self.runs().try_for_each(|(_, run)| run.global.map_or(Ok(()), |global| in_global(global, run.bytes, launch)))
    }

    /// Finds that both ends are there and aligned.
    ///
    /// # Errors
    /// What is wrong with the first that is not.
    pub(super) fn check(&self, bulk: Bulk, launch: &Launch) -> Result<(), FaultKind> {
        let &BulkOperands { global, shared, bytes, barrier, ranks, tile, .. } = self;
        // A cluster has 16 CTAs at most: a higher rank has no bit.
        let ctas = launch.cluster_ctas();
        if let Some(rank) = self.ranks().chain(self.barrier_ranks()).find(|&rank| rank >= ctas) {
            return Err(FaultKind::Asynchronous(ClusterMisuse::NoBit { rank, ctas }.to_string()));
        }
        if ranks == 0 {
            return Err(FaultKind::Asynchronous("a bulk copy to several CTAs whose mask has none".to_owned()));
        }
        match tile {
            // The machine's answer comes from no memory.
            _ if bulk.kind == BulkKind::Cancel => {}
            Some(_) => self.moved_in_global(launch)?,
            None => {
                if !u64::from(bytes).is_multiple_of(ALIGN) {
                    let what = format!("a bulk copy of {bytes} bytes, which is no multiple of {ALIGN}");
                    return Err(FaultKind::Asynchronous(what));
                }
                if bulk.kind == BulkKind::Send {
                    in_shared(global, bytes, ALIGN, launch)?;
                } else if !global.is_multiple_of(ALIGN) {
                    return Err(FaultKind::Misaligned { address: global, bytes: ALIGN as u32, space: "global" });
                } else {
                    self.moved_in_global(launch)?;
                }
            }
        }
        if bulk.kind != BulkKind::Prefetch {
            let (align, swizzled) = match tile {
                None => (ALIGN, bytes),
                // A swizzle moves chunks within stretches of its span.
                Some(tile) => (TILE_ALIGN, bytes.next_multiple_of(tile.map.swizzle.span_bytes().unwrap_or(1))),
            };
            in_shared(shared, swizzled, align, launch)?;
        }
        if bulk.kind.completes() { in_shared(barrier, BARRIER_BYTES, 8, launch) } else { Ok(()) }
    }
}

/// Bytes from an address on lie in a buffer of global memory.
pub(super) fn in_global(address: u64, bytes: u32, launch: &Launch) -> Result<(), FaultKind> {
    let last = address.checked_add(u64::from(bytes.max(1)) - 1);
    if bytes > 0 && last.is_none_or(|last| launch.addresses.containing(address, last).is_none()) {
        let hint = launch.addresses.describe(address);
        return Err(FaultKind::OutOfBounds { address, bytes, space: "global", hint });
    }
    Ok(())
}

/// Bytes from an address on lie in the shared memory of a CTA.
fn in_shared(address: u64, bytes: u32, align: u64, launch: &Launch) -> Result<(), FaultKind> {
    if !address.is_multiple_of(align) {
        return Err(FaultKind::Misaligned { address, bytes: align as u32, space: "shared" });
    }
    if address + u64::from(bytes) > u64::from(launch.shared_bytes) {
        let hint = format!("the CTA has {} bytes", launch.shared_bytes);
        return Err(FaultKind::OutOfBounds { address, bytes, space: "shared", hint });
    }
    Ok(())
}
