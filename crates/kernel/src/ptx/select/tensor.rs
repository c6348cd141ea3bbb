//! Bulk copies of tiles of tensors (PTX ISA 9.7.9.27): `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`,
//! `cp.async.bulk.prefetch.tensor`.
//!
//! The address of the tensor's map is generic, and becomes a 64-bit register or constant. Coordinates are up
//! to five 32-bit registers, which lie where a matrix instruction has its fragments. What is copied, and of
//! which type the elements of a reduction are, is in the map.
//!
//! Not supported: `im2col`, `gather4` and `scatter4`, copies for two CTAs (`.cta_group`).

use super::super::super::ir::{Bulk, BulkKind, Class, Op, Space};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::bulk::{REDUCTIONS, SIDES, Side, plain};
use super::words::Mods;

/// Dimensions of a tensor.
const DIMENSIONS: [(&str, u8); 5] = [("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];

/// A tensor's map and the coordinates of a tile.
struct TileAt {
    map: Arg,
    coordinates: [Arg; 5],
}

impl<'a> Lower<'_, 'a> {
    /// The instruction whose opcode and `bulk.tensor` are read.
    pub(super) fn tile(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, reduces: bool) -> Lowered {
        let modes = ["im2col", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4", "im2col_no_offs"];
        let words = modes.into_iter().chain(["cta_group::1", "cta_group::2"]);
        for word in words {
            if let Some(found) = i.mods.iter().find(|found| found.text == word) {
                let message = format!("copies of tiles with `.{word}` are not supported");
                return Err(self.fault(found.at.clone(), message));
            }
        }
        let Some(dimensions) = m.one_of(&DIMENSIONS) else {
            return Err(self.fault(i.opcode.at.clone(), "a copy of a tile needs `.1d` to `.5d`"));
        };
        m.take("tile");
        // A prefetch names no two sides.
        if m.take("prefetch") {
            if !(m.take("L2") && m.one_of(&SIDES) == Some(Side::Global)) {
                let message = "`cp.async.bulk.prefetch.tensor` needs `.L2.global`";
                return Err(self.fault(i.opcode.at.clone(), message));
            }
            let [tile] = self.without_hint(i, m)?;
            let tile = self.tile_at(tile, dimensions)?;
            return self.emit_tile(Bulk { dimensions, ..plain(BulkKind::Prefetch) }, tile, [Arg::None; 2]);
        }
        // The destination is named first.
        let (to, from) = (m.one_of(&SIDES), m.one_of(&SIDES));
        match (to, from) {
            (Some(Side::Cta | Side::Cluster), Some(Side::Global)) if !reduces => {
                if !m.take("mbarrier::complete_tx::bytes") {
                    let message = "a copy of a tile to shared memory needs `.mbarrier::complete_tx::bytes`";
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                let ([to, tile, barrier], mask) = self.without_mask(i, m, to == Some(Side::Cluster))?;
                let (shared, tile) = (self.shared_operand(to)?, self.tile_at(tile, dimensions)?);
                let barrier = self.shared_operand(barrier)?;
                let bulk = Bulk { dimensions, multicast: mask.is_some(), ..plain(BulkKind::Load) };
                self.emit_tile(bulk, tile, [shared, barrier])?;
                mask.into_iter().for_each(|mask| self.with_mask(mask));
                Ok(())
            }
            (Some(Side::Global), Some(Side::Cta)) => {
                // A reduction's operation is here, the type of its elements in the map.
                let mut bulk = Bulk { dimensions, ..plain(BulkKind::Store) };
                if reduces {
                    let Some(atom) = m.one_of(&REDUCTIONS) else {
                        let message = "`cp.reduce.async.bulk.tensor` needs an operation such as `.add`";
                        return Err(self.fault(i.opcode.at.clone(), message));
                    };
                    (bulk.kind, bulk.atom) = (BulkKind::Reduce, atom);
                }
                if !m.take("bulk_group") {
                    let message = "a copy of a tile to global memory needs `.bulk_group`";
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                let [tile, from] = self.without_hint(i, m)?;
                let (tile, shared) = (self.tile_at(tile, dimensions)?, self.shared_operand(from)?);
                self.emit_tile(bulk, tile, [shared, Arg::None])
            }
            _ => {
                let message = "a copy of a tile is `.shared::cta.global`, `.shared::cluster.global` or \
                               `.global.shared::cta`";
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// `[map, {coordinates}]`.
    fn tile_at(&mut self, operand: &'a Operand<'a>, dimensions: u8) -> Lowered<TileAt> {
        let wanted = "expected `[map, {coordinates}]`";
        let OperandKind::Address(parts) = &operand.kind else {
            return Err(self.fault(operand.at.clone(), wanted));
        };
        let [map, list] = parts.as_slice() else {
            return Err(self.fault(operand.at.clone(), wanted));
        };
        let address = self.address_at(map, Space::Generic)?;
        if !address.wide {
            return Err(self.fault(map.at.clone(), "the address of a tensor map has 64 bits"));
        }
        let base = self.at_offset(Bank::R64, (address.base, address.offset));
        // A single coordinate may stand without braces.
        let list = self.elements(list)?;
        if list.len() != usize::from(dimensions) {
            let message = format!("expected {dimensions} coordinate(s), found {}", list.len());
            return Err(self.fault(operand.at.clone(), message));
        }
        let mut coordinates = [Arg::None; 5];
        for (coordinate, operand) in coordinates.iter_mut().zip(&*list) {
            *coordinate = self.src(operand, Ty::B32)?;
        }
        Ok(TileAt { map: base, coordinates })
    }

    fn emit_tile(&mut self, bulk: Bulk, tile: TileAt, [shared, barrier]: [Arg; 2]) -> Lowered {
        self.emit(Op::Bulk(bulk), Class::Mem, &[], &[tile.map, shared, Arg::None, barrier], 0);
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[..5].copy_from_slice(&tile.coordinates);
        }
        Ok(())
    }
}
