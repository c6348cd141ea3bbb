//! The operands of a bulk copy (PTX ISA 9.7.9.25.5; of a tile 9.7.9.27): one lane's addresses and size, what
//! they must be, and which byte in shared memory belongs to which in global memory.
//!
//! Of an instruction, lanes with the same operands copy once, as on cards: `ptxas` 12.9 makes one `UBLKCP` or
//! `UTMASTG` of operands that are uniform, and of others a loop over those that differ.
//!
//! Source: PTX ISA, `cp.async.bulk`: both addresses and the size are multiples of 16; an `mbarrier` lies at a
//! multiple of 8; a tile in shared memory at a multiple of 128; a load to several CTAs has its bytes, and its
//! barrier, at the same offsets in each of them. Of a load of a tile for pairs of CTAs (`.cta_group::2`) the
//! barrier is that of the CTA in each pair whose rank has the last bit of the barrier's CTA. Invariant:
//! functional driver and timed machine check here, before a byte moves. Maps of parameters and constants are
//! known when a copy is issued; one in global memory is read first, as it is there then, and the rest is
//! checked when it has come.

use super::super::cluster::{ClusterMisuse, owner_of};
use super::super::fault::FaultKind;
use super::super::ir::{Bulk, BulkBytes, BulkKind, Inst, NONE, Space, TileMode};
use super::super::launch::Launch;
use super::super::launch_control::ANSWER_BYTES;
use super::super::memory::resolve_generic;
use super::super::tensor_map::{MAP_ALIGN, MAP_BYTES, TensorMap, Tile, TilePlace, TileRun};
use super::{Warp, lanes_of};
use durawarp_checkpoint::value;
use smallvec::SmallVec;

/// Addresses and sizes are multiples of this.
const ALIGN: u64 = 16;

/// A tile in shared memory lies at a multiple of this.
const TILE_ALIGN: u64 = 128;

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: u32 = 8;

/// What one lane copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkOperands {
    /// First address in global memory; of a tile, that of its tensor; of a copy between shared memories, that
    /// in the own one which it reads; of a request for a cluster, 0.
    pub global: u64,
    /// First address in shared memory, the same in every CTA that gets the bytes.
    pub shared: u64,
    pub bytes: u32,
    /// Address in shared memory of the barrier at which bytes complete, in these CTAs too.
    pub barrier: u64,
    /// Of a copy for pairs of CTAs: the last bit of the rank of that one of each pair whose barrier it is.
    pub barrier_of_pair: Option<u8>,
    /// Which of these bytes are moved.
    pub moved: MovedBytes,
    /// Ranks of the CTAs whose shared memory it is, a bit each: the own one's alone where bytes leave it.
    pub ranks: u16,
    /// Whose bytes they are, where they are not one stretch of global memory.
    pub tile: Option<Tile>,
    /// The tile's map is to be read first. Until then `global` and `bytes` are 0.
    pub unread: Option<UnreadMap>,
}

value!(record BulkOperands { global, shared, bytes, barrier, barrier_of_pair, moved, ranks, tile, unread });

/// The bytes of a copy that are moved; the others stay as they are where they would come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedBytes {
    All,
    /// All but some at the beginning and at the end: how many there.
    Within {
        left: u8,
        right: u8,
    },
    /// Those of each 16 whose bits are set.
    Masked(u16),
}

value!(choice MovedBytes { All, Within { left, right }, Masked(mask) });

impl MovedBytes {
    /// Bytes of a copy of `bytes` from byte `from` on that are all moved, or all are not: whether they are,
    /// and how many.
    fn run(self, from: u32, bytes: u32) -> (bool, u32) {
        match self {
            MovedBytes::All => (true, bytes - from),
            MovedBytes::Within { left, right } => {
                let (begin, end) = (u32::from(left).min(bytes), bytes.saturating_sub(right.into()));
                match from {
                    _ if from < begin => (false, begin - from),
                    _ if from < end => (true, end - from),
                    _ => (false, bytes - from),
                }
            }
            MovedBytes::Masked(0) => (false, bytes - from),
            MovedBytes::Masked(u16::MAX) => (true, bytes - from),
            MovedBytes::Masked(mask) => {
                let rotated = mask.rotate_right(from % 16);
                let (moved, same) = match rotated & 1 {
                    1 => (true, rotated.trailing_ones()),
                    _ => (false, rotated.trailing_zeros()),
                };
                (moved, same.min(bytes - from))
            }
        }
    }
}

/// A tensor's map in global memory, and where a tile of the tensor lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadMap {
    pub address: u64,
    pub place: TilePlace,
}

value!(record UnreadMap { address, place });

/// Bytes of a copy that lie one behind the other in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPiece {
    /// How many bytes of the part that was asked for lie before them.
    pub from: usize,
    /// Where they are in shared memory.
    pub shared: usize,
    pub bytes: usize,
}

impl BulkOperands {
    /// Bytes from byte `from` of the copy on that are one stretch of global memory, or elements that are not
    /// there, or bytes that stay as they are: as many as there are, or `most` at least.
    #[inline]
    pub fn run(&self, from: u32, most: u32) -> TileRun {
        match &self.tile {
            None => {
                let (moved, bytes) = self.moved.run(from, self.bytes);
                TileRun { global: moved.then_some(self.global + u64::from(from)), bytes }
            }
            Some(tile) => tile.run(from, most),
        }
    }

    /// All of these, each with the number of its first byte in the copy.
    pub fn runs(&self) -> impl Iterator<Item = (u32, TileRun)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            if from == self.bytes {
                return None;
            }
            let (at, run) = (from, self.run(from, self.bytes));
            from += run.bytes;
            Some((at, run))
        })
    }

    /// Where `bytes` bytes of the copy from byte `from` on lie in shared memory.
    #[inline]
    pub fn pieces(&self, from: u32, bytes: u32) -> impl Iterator<Item = SharedPiece> + use<> {
        let swizzle = self.tile.and_then(|tile| tile.map.swizzle.span_bytes().map(|_| tile.map.swizzle));
        let first = self.shared + u64::from(from);
        let mut at = 0;
        std::iter::from_fn(move || {
            let left = u64::from(bytes) - at;
            if left == 0 {
                return None;
            }
            let (place, length) = match swizzle {
                None => (first + at, left),
                // Units of 16 bytes stay whole.
                Some(swizzle) => (swizzle.place(first + at), left.min(ALIGN - (first + at) % ALIGN)),
            };
            let piece = SharedPiece { from: at as usize, shared: place as usize, bytes: length as usize };
            at += length;
            Some(piece)
        })
    }

    /// The ranks of the CTAs whose shared memory it writes, or reads.
    #[inline]
    pub fn ranks(&self) -> impl Iterator<Item = u32> + use<> {
        lanes_of(self.ranks.into()).map(|rank| rank as u32)
    }

    /// For each of these, the rank of the CTA at whose barrier its bytes complete.
    #[inline]
    pub fn barrier_ranks(&self) -> impl Iterator<Item = u32> + use<> {
        let parity = self.barrier_of_pair;
        self.ranks().map(move |rank| parity.map_or(rank, |parity| rank & !1 | u32::from(parity)))
    }

    /// Fills shared memory with what a load has where its tensor has no elements.
    #[cold]
    pub fn fill(&self, from: u32, bytes: u32, memory: &mut [u8]) {
        let Some(tile) = &self.tile else { return };
        // Elements are whole: a run ends where one does.
        let (filling, size) = (tile.map.filling(), tile.map.elem.bytes() as usize);
        for SharedPiece { shared, bytes, .. } in self.pieces(from, bytes) {
            memory[shared..shared + bytes]
                .chunks_mut(size)
                .for_each(|element| element.copy_from_slice(&filling[..element.len()]));
        }
    }

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
    fn of_tile(
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
    fn check(&self, bulk: Bulk, launch: &Launch) -> Result<(), FaultKind> {
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

/// The rank of the CTA that an address of shared memory names, and the byte there. Without clusters all of it
/// is an address of the own CTA's.
fn place_of(address: u64, own: u32, launch: &Launch) -> (u32, u64) {
    if launch.cluster_ctas() > 1 { owner_of(address, own) } else { (own, address) }
}

/// Which bytes a copy moves, by the operands that say so: those of its fragments from 2 on.
fn moved_bytes(moves: BulkBytes, which: impl Fn(usize) -> u32) -> Result<MovedBytes, FaultKind> {
    match moves {
        BulkBytes::All => Ok(MovedBytes::All),
        // The mask has 16 bits of its register.
        BulkBytes::Masked => Ok(MovedBytes::Masked(which(2) as u16)),
        BulkBytes::Within => {
            let ignored = [2, 3].map(which);
            if let Some(bytes) = ignored.iter().find(|bytes| **bytes >= ALIGN as u32) {
                let what = format!("a bulk copy that ignores {bytes} bytes at an end: 15 are the most");
                return Err(FaultKind::Asynchronous(what));
            }
            let [left, right] = ignored.map(|bytes| bytes as u8);
            Ok(MovedBytes::Within { left, right })
        }
    }
}

fn in_global(address: u64, bytes: u32, launch: &Launch) -> Result<(), FaultKind> {
    let last = address.checked_add(u64::from(bytes.max(1)) - 1);
    if bytes > 0 && last.is_none_or(|last| launch.addresses.containing(address, last).is_none()) {
        let hint = launch.addresses.describe(address);
        return Err(FaultKind::OutOfBounds { address, bytes, space: "global", hint });
    }
    Ok(())
}

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

impl Warp {
    /// The copies of a bulk copy by these lanes: the first lane of each, how, and what, which a map may say
    /// that is to be read. Lanes with the same operands copy once.
    ///
    /// # Errors
    /// Each lane's fault, in the place of its copy.
    pub fn bulk_copies(
        &self,
        inst: &Inst,
        bulk: Bulk,
        launch: &Launch,
        lanes: u64,
    ) -> impl Iterator<Item = Result<(u32, Bulk, BulkOperands), (u32, FaultKind)>> {
        let mut before: SmallVec<[BulkOperands; 2]> = SmallVec::new();
        lanes_of(lanes).filter_map(move |lane| {
            let lane = lane as u32;
            match self.bulk(inst, bulk, launch, lane) {
                Ok((_, operands)) if before.contains(&operands) => None,
                Ok((bulk, operands)) => {
                    before.push(operands);
                    Some(Ok((lane, bulk, operands)))
                }
                Err(kind) => Some(Err((lane, kind))),
            }
        })
    }

    /// What a lane of a bulk copy copies, checked, and how.
    ///
    /// # Errors
    /// What is wrong with the operands.
    fn bulk(&self, inst: &Inst, bulk: Bulk, launch: &Launch, lane: u32) -> Result<(Bulk, BulkOperands), FaultKind> {
        let [global, shared, bytes, barrier] = inst.src;
        let narrow = |slot| if slot == NONE { 0 } else { self.operand32(slot, launch, lane) };
        let own = if launch.cluster_ctas() > 1 { launch.cluster_of(self.cta).1 } else { 0 };
        let (to, shared) = place_of(narrow(shared).into(), own, launch);
        let (at, barrier) = place_of(narrow(barrier).into(), own, launch);
        // A request for a cluster names no global memory.
        if bulk.kind == BulkKind::Cancel {
            return self.cancel(bulk, [(to, shared), (at, barrier)], own, launch);
        }
        let ranks = match bulk.multicast {
            true => narrow(launch.kernel.fragments[inst.imm as usize].c[1]) as u16,
            false => self.only(bulk, [to, at], own, launch)?,
        };
        let which = |at: usize| narrow(launch.kernel.fragments[inst.imm as usize].c[at]);
        let moved = moved_bytes(bulk.moves, which)?;
        // Of a tile this first address is that of its map.
        let first =
            if bulk.kind == BulkKind::Send { narrow(global).into() } else { self.operand64(global, launch, lane) };
        let mut operands = BulkOperands {
            global: first,
            shared,
            bytes: narrow(bytes),
            barrier,
            barrier_of_pair: bulk.paired.then_some((at & 1) as u8),
            moved,
            ranks,
            tile: None,
            unread: None,
        };
        if bulk.is_tile() {
            let place = self.tile_place(inst, bulk.mode, launch, lane);
            let (space, address) = resolve_generic(operands.global);
            (operands.global, operands.bytes) = (0, 0);
            return match space {
                Space::Const => operands.of_tile(bulk, constant_map(address, launch)?, place, launch),
                Space::Global if !address.is_multiple_of(MAP_ALIGN) => {
                    Err(FaultKind::Misaligned { address, bytes: MAP_ALIGN as u32, space: "global" })
                }
                Space::Global => {
                    in_global(address, MAP_BYTES as u32, launch)?;
                    operands.unread = Some(UnreadMap { address, place });
                    Ok((bulk, operands))
                }
                _ => Err(FaultKind::Asynchronous(format!(
                    "a tensor map at {first:#x}: maps lie in kernel parameters, in constant and in global memory"
                ))),
            };
        }
        if !bulk.has_fragments() {
            operands.global = operands.global.wrapping_add_signed(i64::from(inst.imm));
        }
        operands.check(bulk, launch)?;
        Ok((bulk, operands))
    }

    /// What a request for a cluster that has not begun brings: the CTAs and addresses of the answer and of
    /// its barrier are checked.
    fn cancel(
        &self,
        bulk: Bulk,
        [(to, shared), (at, barrier)]: [(u32, u64); 2],
        own: u32,
        launch: &Launch,
    ) -> Result<(Bulk, BulkOperands), FaultKind> {
        if [to, at] != [own; 2] {
            let what = "`clusterlaunchcontrol.try_cancel` names shared memory of another CTA: answer and barrier lie \
                        in its own";
            return Err(FaultKind::Asynchronous(what.to_owned()));
        }
        // An answer to all lies at the same place in each.
        let ranks = if bulk.multicast { u16::MAX >> (u16::BITS - launch.cluster_ctas()) } else { 1 << own };
        let (global, bytes, moved) = (0, ANSWER_BYTES, MovedBytes::All);
        let operands = BulkOperands {
            global,
            shared,
            bytes,
            barrier,
            barrier_of_pair: None,
            moved,
            ranks,
            tile: None,
            unread: None,
        };
        operands.check(bulk, launch)?;
        Ok((bulk, operands))
    }

    /// The one CTA whose shared memory a copy has, where its addresses name these: a bit.
    fn only(&self, bulk: Bulk, [to, at]: [u32; 2], own: u32, launch: &Launch) -> Result<u16, FaultKind> {
        let wrong = |misuse: ClusterMisuse| Err(FaultKind::Asynchronous(misuse.to_string()));
        let ctas = launch.cluster_ctas();
        if to >= ctas {
            return wrong(ClusterMisuse::NoRank { rank: to, ctas });
        }
        match bulk.kind {
            BulkKind::Load if bulk.paired && at == to ^ 1 && at < ctas => Ok(1 << to),
            BulkKind::Load | BulkKind::Send if at != to => wrong(ClusterMisuse::Apart),
            BulkKind::Store | BulkKind::Reduce if to != own => wrong(ClusterMisuse::Reads(to)),
            _ => Ok(1 << to),
        }
    }

    /// Where a lane's tile lies.
    fn tile_place(&self, inst: &Inst, mode: TileMode, launch: &Launch, lane: u32) -> TilePlace {
        let fragments = &launch.kernel.fragments[inst.imm as usize];
        let value = |slot| if slot == NONE { 0 } else { self.operand32(slot, launch, lane) };
        let ([x, y, z, w], [v, _, first, second]) = (fragments.b, fragments.c);
        let at = [x, y, z, w, v].map(|slot| value(slot) as i32);
        match mode {
            TileMode::Box => TilePlace::Box(at),
            TileMode::Rows => {
                let [column, rows @ ..] = at;
                TilePlace::Rows { column, rows }
            }
            TileMode::Pixels => {
                let offsets = [first, second, fragments.metadata].map(|slot| value(slot) as u16);
                TilePlace::Pixels { first: at, offsets }
            }
        }
    }
}

/// The bytes of a map in the constant bank.
fn constant_map(address: u64, launch: &Launch) -> Result<&[u8; MAP_BYTES], FaultKind> {
    let bytes = launch.const_bank.get(address as usize..).and_then(|bytes| bytes.first_chunk());
    bytes.ok_or_else(|| {
        let hint = format!("the constant bank has {} bytes", launch.const_bank.len());
        FaultKind::OutOfBounds { address, bytes: MAP_BYTES as u32, space: "const", hint }
    })
}
