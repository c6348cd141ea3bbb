//! Bulk copies of tiles of tensors (PTX ISA 9.7.9.27): `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`,
//! `cp.async.bulk.prefetch.tensor`.
//!
//! The address of the tensor's map is generic, and becomes a 64-bit register or constant. Coordinates are up
//! to five 32-bit registers, which lie where a matrix instruction has its fragments; offsets of `im2col` lie
//! behind them and the mask of CTAs. What is copied, and of which type the elements of a reduction are, is in
//! the map. Which words and operands there are is what `ptxas` 12.9 takes.
//!
//! Of a load for a pair of CTAs (`.cta_group::2`) the barrier may be the peer's. Not supported: `im2col::w`
//! and `im2col::w::128`.

use super::super::super::ir::{Bulk, BulkKind, Class, Op, Space, TileMode};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::bulk::{REDUCTIONS, SIDES, Side, plain};
use super::words::Mods;

/// Dimensions of a tensor.
const DIMENSIONS: [(&str, u8); 5] = [("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];

/// Whether a load is one for a pair of CTAs.
const CTA_GROUPS: [(&str, bool); 2] = [("cta_group::1", false), ("cta_group::2", true)];

/// What a load, or a prefetch, may have of its tensor.
const LOADED: [(&str, TileMode); 3] =
    [("tile", TileMode::Box), ("tile::gather4", TileMode::Rows), ("im2col", TileMode::Pixels)];

/// What a store, or a reduction, may have of it.
const STORED: [(&str, TileMode); 3] =
    [("tile", TileMode::Box), ("tile::scatter4", TileMode::Rows), ("im2col_no_offs", TileMode::Pixels)];

/// Where a draft has offsets among its fragments: behind the coordinates of a tile and the mask of CTAs.
const OFFSETS: usize = 6;

/// A tensor's map, and the coordinates and offsets of a tile.
struct TileAt {
    map: Arg,
    coordinates: [Arg; 5],
    offsets: [Arg; 3],
}

impl<'a> Lower<'_, 'a> {
    /// The instruction whose opcode and `bulk.tensor` are read.
    pub(super) fn tile(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, reduces: bool) -> Lowered {
        for word in ["im2col::w", "im2col::w::128"] {
            if let Some(found) = i.mods.iter().find(|found| found.text == word) {
                let message = format!("copies of tiles with `.{word}` are not supported");
                return Err(self.fault(found.at.clone(), message));
            }
        }
        let Some(dimensions) = m.one_of(&DIMENSIONS) else {
            return Err(self.fault(i.opcode.at.clone(), "a copy of a tile needs `.1d` to `.5d`"));
        };
        // A prefetch names no two sides.
        if m.take("prefetch") {
            if !(m.take("L2") && m.one_of(&SIDES) == Some(Side::Global)) {
                let message = "`cp.async.bulk.prefetch.tensor` needs `.L2.global`";
                return Err(self.fault(i.opcode.at.clone(), message));
            }
            let mode = self.mode(i, m, &LOADED, dimensions)?;
            let bulk = Bulk { dimensions, mode, ..plain(BulkKind::Prefetch) };
            let (tile, offsets) = match mode {
                TileMode::Pixels => {
                    let [tile, offsets] = self.without_hint(i, m)?;
                    (tile, Some(offsets))
                }
                _ => {
                    let [tile] = self.without_hint(i, m)?;
                    (tile, None)
                }
            };
            let tile = self.tile_at(tile, offsets, bulk)?;
            return self.emit_tile(bulk, tile, [Arg::None; 2]);
        }
        // The destination is named first.
        let (to, from) = (m.one_of(&SIDES), m.one_of(&SIDES));
        match (to, from) {
            (Some(Side::Cta | Side::Cluster), Some(Side::Global)) if !reduces => {
                if !m.take("mbarrier::complete_tx::bytes") {
                    let message = "a copy of a tile to shared memory needs `.mbarrier::complete_tx::bytes`";
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                let mode = self.mode(i, m, &LOADED, dimensions)?;
                let to_cluster = to == Some(Side::Cluster);
                let ([to, tile, barrier], offsets, mask) = match mode {
                    TileMode::Pixels => {
                        let ([to, tile, barrier, offsets], mask) = self.without_mask(i, m, to_cluster)?;
                        ([to, tile, barrier], Some(offsets), mask)
                    }
                    _ => {
                        let (operands, mask) = self.without_mask::<3>(i, m, to_cluster)?;
                        (operands.each_ref(), None, mask)
                    }
                };
                // Without the word the barrier is that of the destination.
                let paired = m.one_of(&CTA_GROUPS).unwrap_or(false);
                let bulk = Bulk { dimensions, mode, multicast: mask.is_some(), paired, ..plain(BulkKind::Load) };
                let (shared, tile) = (self.shared_operand(to)?, self.tile_at(tile, offsets, bulk)?);
                let barrier = self.shared_operand(barrier)?;
                self.emit_tile(bulk, tile, [shared, barrier])?;
                mask.into_iter().for_each(|mask| self.with_mask(mask));
                Ok(())
            }
            (Some(Side::Global), Some(Side::Cta)) => {
                // A reduction's operation is here, the type of its elements in the map.
                let mode = self.mode(i, m, &STORED, dimensions)?;
                let mut bulk = Bulk { dimensions, mode, ..plain(BulkKind::Store) };
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
                let (tile, shared) = (self.tile_at(tile, None, bulk)?, self.shared_operand(from)?);
                self.emit_tile(bulk, tile, [shared, Arg::None])
            }
            _ => {
                let message = "a copy of a tile is `.shared::cta.global`, `.shared::cluster.global` or \
                               `.global.shared::cta`";
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// What a copy has of its tensor: a box where no word says so.
    fn mode(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
        modes: &[(&'static str, TileMode); 3],
        dimensions: u8,
    ) -> Lowered<TileMode> {
        let mode = m.one_of(modes).unwrap_or(TileMode::Box);
        let other = |word: &str| LOADED.iter().chain(&STORED).any(|(name, _)| *name == word);
        if let Some(word) = m.find(|word| other(word).then_some(word)) {
            let [_, rows, pixels] = modes.map(|(name, _)| name);
            let message = format!("`.{word}` is none of this copy's modes: `.tile`, `.{rows}` or `.{pixels}`");
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let message = match mode {
            TileMode::Rows if dimensions != 2 => format!("four rows are those of `.2d`, not of `.{dimensions}d`"),
            TileMode::Pixels if dimensions < 3 => format!("`im2col` has `.3d` to `.5d`, not `.{dimensions}d`"),
            _ => return Ok(mode),
        };
        Err(self.fault(i.opcode.at.clone(), message))
    }

    /// `[map, {coordinates}]`, and `{offsets}` of pixels.
    fn tile_at(&mut self, operand: &'a Operand<'a>, offsets: Option<&'a Operand<'a>>, bulk: Bulk) -> Lowered<TileAt> {
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
        // Of four rows: a column, and their numbers.
        let wanted = if bulk.mode == TileMode::Rows { 5 } else { bulk.dimensions };
        let coordinates = self.listed(list, (operand, "coordinate"), wanted)?;
        let offsets = match offsets {
            Some(list) => self.listed(list, (list, "offset"), bulk.dimensions - 2)?,
            None => [Arg::None; 3],
        };
        Ok(TileAt { map: base, coordinates, offsets })
    }

    /// So many registers or numbers in braces; a single one may stand without.
    fn listed<const N: usize>(
        &mut self,
        list: &'a Operand<'a>,
        (told_at, what): (&'a Operand<'a>, &str),
        wanted: u8,
    ) -> Lowered<[Arg; N]> {
        let list = self.elements(list)?;
        if list.len() != usize::from(wanted) {
            let message = format!("expected {wanted} {what}(s), found {}", list.len());
            return Err(self.fault(told_at.at.clone(), message));
        }
        let mut found = [Arg::None; N];
        for (arg, operand) in found.iter_mut().zip(&*list) {
            *arg = self.src(operand, Ty::B32)?;
        }
        Ok(found)
    }

    fn emit_tile(&mut self, bulk: Bulk, tile: TileAt, [shared, barrier]: [Arg; 2]) -> Lowered {
        self.emit(Op::Bulk(bulk), Class::Mem, &[], &[tile.map, shared, Arg::None, barrier], 0);
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[..5].copy_from_slice(&tile.coordinates);
            draft.more[OFFSETS..].copy_from_slice(&tile.offsets);
        }
        Ok(())
    }
}
