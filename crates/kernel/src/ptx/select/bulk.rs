//! Bulk copies (PTX ISA 9.7.9.25.5): `cp.async.bulk`, `cp.reduce.async.bulk`, their groups, and
//! `cp.async.bulk.prefetch`; those of tiles are in `tensor`.
//!
//! Addresses in shared memory become 32-bit registers with their offsets added, by instructions of their own
//! where they are something else. An address of `.shared::cluster` may name another CTA of the cluster. The
//! mask of `.multicast::cluster` lies behind the coordinates of a tile, and behind that the operands of
//! `.ignore_oob` or `.cp_mask`. A cache policy is dropped; that is told once.

use super::super::super::alu::{AluOp, Cvt, HalfFormat, HalfType, IntOp, Num};
use super::super::super::ir::{AtomOp, Bulk, BulkBytes, BulkKind, BulkStep, Class, Elem, Op, Space, TileMode};
use super::super::ast::{Instruction, Operand};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::Mods;

/// A side of a copy, as a modifier names it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    Global,
    Cta,
    Cluster,
}

pub(super) const SIDES: [(&str, Side); 3] =
    [("global", Side::Global), ("shared::cta", Side::Cta), ("shared::cluster", Side::Cluster)];

/// A reduction's operation on elements that are no halves.
pub(super) const REDUCTIONS: [(&str, AtomOp); 8] = [
    ("add", AtomOp::Add),
    ("min", AtomOp::Min),
    ("max", AtomOp::Max),
    ("inc", AtomOp::Inc),
    ("dec", AtomOp::Dec),
    ("and", AtomOp::And),
    ("or", AtomOp::Or),
    ("xor", AtomOp::Xor),
];

/// Where a draft has the mask of CTAs among its fragments: behind the coordinates of a tile.
const MASK: usize = 5;
/// Where it has what says which bytes are copied.
const BYTES: usize = 6;

/// A copy that moves bytes as they are.
pub(super) fn plain(kind: BulkKind) -> Bulk {
    let (atom, elem, mode, moves) = (AtomOp::None, Elem::U8, TileMode::Box, BulkBytes::All);
    Bulk { kind, atom, elem, dimensions: 0, mode, multicast: false, moves, paired: false }
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn bulk(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let reduces = m.take("reduce");
        m.take("async");
        m.take("bulk");
        if m.take("tensor") {
            return self.tile(i, m, reduces);
        }
        // Groups and prefetches name no two sides.
        if m.take("commit_group") {
            let [] = self.operands(i)?;
            self.emit(Op::BulkGroups(BulkStep::Commit), Class::Control, &[], &[], 0);
            return Ok(());
        }
        if m.take("wait_group") {
            let [number] = self.operands(i)?;
            let kept = self.number(number)?;
            let step = if m.take("read") { BulkStep::WaitRead(kept) } else { BulkStep::Wait(kept) };
            self.emit(Op::BulkGroups(step), Class::Control, &[], &[], 0);
            return Ok(());
        }
        if m.take("prefetch") {
            if !(m.take("L2") && m.one_of(&SIDES) == Some(Side::Global)) {
                return Err(self.fault(i.opcode.at.clone(), "`cp.async.bulk.prefetch` needs `.L2.global`"));
            }
            let [from, size] = self.without_hint(i, m)?;
            let from = self.global_operand(from)?;
            let size = self.src(size, Ty::U32)?;
            return self.emit_bulk(plain(BulkKind::Prefetch), from, [Arg::None, size, Arg::None]);
        }
        // The destination is named first.
        let (to, from) = (m.one_of(&SIDES), m.one_of(&SIDES));
        match (to, from) {
            (Some(Side::Cta | Side::Cluster), Some(Side::Global)) if !reduces => {
                if !m.take("mbarrier::complete_tx::bytes") {
                    let message = "a bulk copy to shared memory needs `.mbarrier::complete_tx::bytes`";
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                if to == Some(Side::Cta) && m.take("ignore_oob") {
                    return self.load_within(i, m);
                }
                let (operands, mask) = self.without_mask(i, m, to == Some(Side::Cluster))?;
                let [to, from, size, barrier] = operands;
                let (shared, from) = (self.shared_operand(to)?, self.global_operand(from)?);
                let (size, barrier) = (self.src(size, Ty::U32)?, self.shared_operand(barrier)?);
                let (bulk, rest) = (plain(BulkKind::Load), [shared, size, barrier]);
                // The place of the offset is that of the fragments, which have the mask.
                let Some(mask) = mask else { return self.emit_bulk(bulk, from, rest) };
                let from = self.at_offset(Bank::R64, from);
                self.emit_bulk(Bulk { multicast: true, ..bulk }, (from, 0), rest)?;
                self.with_mask(mask);
                Ok(())
            }
            (Some(Side::Global), Some(Side::Cta)) => {
                if !m.take("bulk_group") {
                    let message = "a bulk copy to global memory needs `.bulk_group`";
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                if !reduces && m.take("cp_mask") {
                    return self.store_masked(i, m);
                }
                let bulk = if reduces { self.reduction(i, m)? } else { plain(BulkKind::Store) };
                let [to, from, size] = self.without_hint(i, m)?;
                let (to, shared) = (self.global_operand(to)?, self.shared_operand(from)?);
                let size = self.src(size, Ty::U32)?;
                self.emit_bulk(bulk, to, [shared, size, Arg::None])
            }
            // From one CTA to another.
            (Some(Side::Cluster), Some(Side::Cta)) => {
                if !m.take("mbarrier::complete_tx::bytes") {
                    let message = "a bulk copy to another CTA needs `.mbarrier::complete_tx::bytes`";
                    return Err(self.fault(i.opcode.at.clone(), message));
                }
                let mut bulk = plain(BulkKind::Send);
                if reduces {
                    (bulk.atom, _, bulk.elem) = self.reduction_there(i, m, "cp.reduce.async.bulk")?;
                }
                let [to, from, size, barrier] = self.operands(i)?;
                let (shared, from) = (self.shared_operand(to)?, self.shared_operand(from)?);
                let (size, barrier) = (self.src(size, Ty::U32)?, self.shared_operand(barrier)?);
                self.emit_bulk(bulk, (from, 0), [shared, size, barrier])
            }
            _ => {
                let message = "a bulk copy is `.shared::cta.global`, `.shared::cluster.global`, \
                               `.global.shared::cta` or `.shared::cluster.shared::cta`";
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// A load whose first and last bytes may lie outside an allocation: two operands say how many of them.
    fn load_within(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let [to, from, size, left, right, barrier] = self.without_hint(i, m)?;
        let (shared, from) = (self.shared_operand(to)?, self.global_operand(from)?);
        let (size, barrier) = (self.src(size, Ty::U32)?, self.shared_operand(barrier)?);
        let ignored = [self.src(left, Ty::U32)?, self.src(right, Ty::U32)?];
        let bulk = Bulk { moves: BulkBytes::Within, ..plain(BulkKind::Load) };
        self.emit_some(bulk, from, [shared, size, barrier], &ignored)
    }

    /// A store of the bytes of each 16 whose bits are set.
    fn store_masked(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        // The mask comes behind the cache policy.
        let hint = usize::from(m.take("L2::cache_hint") && i.operands.len() == 5);
        let Some((operands, rest)) = i.operands.split_first_chunk().filter(|(_, rest)| rest.len() == 1 + hint) else {
            return Err(self.fault(i.opcode.at.clone(), "expected 4 operands, the last of them a mask of bytes"));
        };
        let [to, from, size] = operands;
        let (to, shared) = (self.global_operand(to)?, self.shared_operand(from)?);
        let (size, mask) = (self.src(size, Ty::U32)?, self.src(&rest[hint], Ty::B32)?);
        let bulk = Bulk { moves: BulkBytes::Masked, ..plain(BulkKind::Store) };
        self.emit_some(bulk, to, [shared, size, Arg::None], &[mask])
    }

    /// A copy of some bytes, and what says which.
    fn emit_some(&mut self, bulk: Bulk, global: (Arg, i32), rest: [Arg; 3], which: &[Arg]) -> Lowered {
        // The place of the offset is that of the fragments.
        let global = self.at_offset(Bank::R64, global);
        self.emit_bulk(bulk, (global, 0), rest)?;
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[BYTES..][..which.len()].copy_from_slice(which);
        }
        Ok(())
    }

    /// The operation and the elements of `cp.reduce.async.bulk` to global memory.
    fn reduction(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<Bulk> {
        let Some(atom) = m.one_of(&REDUCTIONS) else {
            return Err(self.fault(i.opcode.at.clone(), "`cp.reduce.async.bulk` needs an operation such as `.add`"));
        };
        let noftz = m.take("noftz");
        let ty = self.ty(i, m)?;
        let half = match (atom, ty.half()) {
            (AtomOp::Add, Some(HalfType::F16 | HalfType::Bf16)) if !noftz => {
                return Err(self.fault(i.opcode.at.clone(), format!("an addition of type {ty} needs `.noftz`")));
            }
            (AtomOp::Add, Some(half @ (HalfType::F16 | HalfType::Bf16))) => Some(AtomOp::AddHalf(half)),
            (AtomOp::Min, Some(HalfType::F16)) => Some(AtomOp::MinHalf(HalfFormat::F16)),
            (AtomOp::Max, Some(HalfType::F16)) => Some(AtomOp::MaxHalf(HalfFormat::F16)),
            (AtomOp::Min, Some(HalfType::Bf16)) => Some(AtomOp::MinHalf(HalfFormat::Bf16)),
            (AtomOp::Max, Some(HalfType::Bf16)) => Some(AtomOp::MaxHalf(HalfFormat::Bf16)),
            _ => None,
        };
        if let Some(atom) = half {
            return Ok(Bulk { atom, elem: Elem::U16, ..plain(BulkKind::Reduce) });
        }
        // The table of operations and types in the ISA.
        let types: &[&str] = match atom {
            AtomOp::Add => &["u32", "s32", "u64", "f32", "f64"],
            AtomOp::Min | AtomOp::Max => &["u32", "s32", "u64", "s64"],
            AtomOp::Inc | AtomOp::Dec => &["u32"],
            _ => &["b32", "b64"],
        };
        match ty.elem().filter(|_| types.iter().any(|word| Ty::parse(word) == Some(ty))) {
            Some(elem) => Ok(Bulk { atom, elem, ..plain(BulkKind::Reduce) }),
            None => self.bad_type(i, ty),
        }
    }

    fn emit_bulk(&mut self, bulk: Bulk, (global, offset): (Arg, i32), [shared, size, barrier]: [Arg; 3]) -> Lowered {
        self.emit(Op::Bulk(bulk), Class::Mem, &[], &[global, shared, size, barrier], offset);
        Ok(())
    }

    /// The operands, without the cache policy that may follow.
    pub(super) fn without_hint<const N: usize>(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
    ) -> Lowered<&'a [Operand<'a>; N]> {
        if !m.take("L2::cache_hint") || i.operands.len() != N + 1 {
            return self.operands(i);
        }
        Ok(i.operands[..N].try_into().expect("N operands"))
    }

    /// The operands of a load to shared memory, without a cache policy, and the mask of
    /// `.multicast::cluster`, where it has one.
    pub(super) fn without_mask<const N: usize>(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
        to_cluster: bool,
    ) -> Lowered<(&'a [Operand<'a>; N], Option<Arg>)> {
        if !m.take("multicast::cluster") {
            return Ok((self.without_hint(i, m)?, None));
        }
        if !to_cluster {
            let message = "`.multicast::cluster` needs `.shared::cluster` as the destination";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let hint = usize::from(m.take("L2::cache_hint") && i.operands.len() == N + 2);
        let Some((operands, rest)) = i.operands.split_first_chunk().filter(|(_, rest)| rest.len() == 1 + hint) else {
            let message = format!("expected {} operands, the last of them a mask of CTAs", N + 1);
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let mask = self.src(&rest[0], Ty::B32)?;
        Ok((operands, Some(mask)))
    }

    /// The copy that was emitted last goes to the CTAs of a mask.
    pub(super) fn with_mask(&mut self, mask: Arg) {
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[MASK] = mask;
        }
    }

    /// The sum of an address and its offset.
    pub(super) fn at_offset(&mut self, bank: Bank, (base, offset): (Arg, i32)) -> Arg {
        if offset == 0 {
            return base;
        }
        let op = if bank == Bank::R64 { AluOp::Int64(IntOp::Add) } else { AluOp::Int32(IntOp::Add) };
        let by = self.body.literal(bank, i64::from(offset) as u64);
        let sum = Arg::Reg(self.body.register(bank));
        self.emit(Op::Alu(op), Class::Int, &[sum], &[base, by], 0);
        sum
    }

    /// An address in global memory: 64 bits, and the offset.
    pub(super) fn global_operand(&mut self, operand: &'a Operand<'a>) -> Lowered<(Arg, i32)> {
        let address = self.address(operand, Space::Global)?;
        if address.wide {
            return Ok((address.base, address.offset));
        }
        let wide = Arg::Reg(self.body.register(Bank::R64));
        let cvt = Cvt { wide_to: true, ..Cvt::exact(Num::U32, Num::U64) };
        self.emit(Op::Alu(AluOp::Cvt(cvt)), Class::Convert, &[wide], &[address.base], 0);
        Ok((wide, address.offset))
    }

    /// An address in shared memory: 32 bits.
    pub(super) fn shared_operand(&mut self, operand: &'a Operand<'a>) -> Lowered<Arg> {
        let address = self.address(operand, Space::Shared)?;
        let mut base = address.base;
        if address.wide {
            let narrow = Arg::Reg(self.body.register(Bank::R32));
            let cvt = Cvt { wide_from: true, ..Cvt::exact(Num::U64, Num::U32) };
            self.emit(Op::Alu(AluOp::Cvt(cvt)), Class::Convert, &[narrow], &[base], 0);
            base = narrow;
        }
        Ok(self.at_offset(Bank::R32, (base, address.offset)))
    }
}
