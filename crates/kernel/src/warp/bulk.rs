//! A warp's bulk copies (PTX ISA 9.7.9.25.5; of tiles 9.7.9.27): from the registers of its lanes to what each
//! copies, with the CTAs of a cluster that its addresses name.
//!
//! Of an instruction, lanes with the same operands copy once, as on cards: `ptxas` 12.9 makes one `UBLKCP` or
//! `UTMASTG` of operands that are uniform, and of others a loop over those that differ.
//!
//! | tensor's map in | |
//! |---|---|
//! | kernel parameters, constant memory | known when the copy is issued |
//! | global memory | read first, as it is there then; the rest is checked when it has come |
//!
//! Source: PTX ISA, `cp.async.bulk`, `clusterlaunchcontrol.try_cancel`: a load to several CTAs has its bytes,
//! and its barrier, at the same offsets in each of them; a store reads the own CTA. Of a load of a tile for
//! pairs of CTAs (`.cta_group::2`) the barrier is that of the CTA in each pair whose rank has the last bit of
//! the barrier's CTA. Invariant: what is handed out is checked (`checks`), but where a map is to be read.
//! Not modelled: hints of caches, which are passed over.

mod checks;
mod operands;

pub use operands::{BulkOperands, MovedBytes, SharedPiece, UnreadMap};

use super::super::cluster::{ClusterMisuse, owner_of};
use super::super::fault::FaultKind;
use super::super::ir::{Bulk, BulkBytes, BulkKind, Inst, NONE, Space, TileMode};
use super::super::launch::Launch;
use super::super::launch_control::ANSWER_BYTES;
use super::super::memory::resolve_generic;
use super::super::tensor_map::{MAP_ALIGN, MAP_BYTES, TilePlace};
use super::{Warp, lanes_of};
use checks::in_global;
use operands::ALIGN;
use smallvec::SmallVec;

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
