//! Clusters of CTAs (PTX ISA 9.7.9.23, 9.7.9.24, 9.7.13.4): `mapa`, `getctarank`, `barrier.cluster`; and
//! accesses whose bytes complete at a barrier, `st.async` and `red.async`.
//!
//! The rank of the own CTA is a special register, which `mapa` and `getctarank` read besides their operands.
//! `barrier.cluster.arrive` is a fence and the arrival, unless it is `.relaxed`; `.wait` is the wait and a
//! fence. That fence waits for the thread's own stores, too, which an acquire need not.
//!
//! Not supported: `mapa` of 32-bit generic addresses, as generic addresses have 64 bits here; `st.async` to
//! global memory (`.mmio`, sm_100).

use super::super::super::alu::AluOp;
use super::super::super::ir::{
    AddressIn, AtomOp, CacheOp, Class, ClusterStep, Elem, Mem, MemKind, Op, Scope, Space, Special,
};
use super::super::ast::Instruction;
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] =
    &[(&["mapa"], |l, i, m| l.map_address(i, m)), (&["getctarank"], |l, i, m| l.rank_of(i, m))];

/// Operations of `red.async`, and of bulk reductions into shared memory of a CTA of the cluster; the types
/// that each has.
const REDUCTIONS: [(&str, (AtomOp, &[&str])); 8] = [
    ("add", (AtomOp::Add, &["u32", "s32", "u64"])),
    ("inc", (AtomOp::Inc, &["u32"])),
    ("dec", (AtomOp::Dec, &["u32"])),
    ("min", (AtomOp::Min, &["u32", "s32"])),
    ("max", (AtomOp::Max, &["u32", "s32"])),
    ("and", (AtomOp::And, &["b32"])),
    ("or", (AtomOp::Or, &["b32"])),
    ("xor", (AtomOp::Xor, &["b32"])),
];

impl<'a> Lower<'_, 'a> {
    /// The type of an address.
    fn address_type(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<Ty> {
        let shared = m.take("shared::cluster");
        let ty = self.ty(i, m)?;
        if ty == Ty::U32 && !shared {
            let message = format!("generic addresses have 64 bits here: `{}` needs `.u64`", i.opcode.text);
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        if ty == Ty::U32 || Some(ty) == Ty::parse("u64") { Ok(ty) } else { self.bad_type(i, ty) }
    }

    fn map_address(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.address_type(i, m)?;
        let [d, a, rank] = self.operands(i)?;
        let (a, rank, own) = (self.src(a, ty)?, self.src(rank, Ty::U32)?, self.body.special(Special::ClusterRank));
        let d = self.dst(d, ty.bank())?;
        self.emit(Op::Alu(AluOp::MapShared(ty.bits == 64)), Class::Logic, &[d], &[a, rank, own], 0);
        Ok(())
    }

    fn rank_of(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ty = self.address_type(i, m)?;
        let [d, a] = self.operands(i)?;
        let (a, own) = (self.src(a, ty)?, self.body.special(Special::ClusterRank));
        let d = self.dst(d, Bank::R32)?;
        self.emit(Op::Alu(AluOp::RankOf(ty.bits == 64)), Class::Logic, &[d], &[a, own], 0);
        Ok(())
    }

    /// `barrier.cluster`, whose words up to `.cluster` and `.aligned` are taken.
    pub(super) fn cluster_barrier(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let Some(step) = m.one_of(&[("arrive", ClusterStep::Arrive), ("wait", ClusterStep::Wait)]) else {
            return Err(self.fault(i.opcode.at.clone(), "`barrier.cluster` is `.arrive` or `.wait`"));
        };
        let arrives = step == ClusterStep::Arrive;
        let relaxed = arrives && m.take("relaxed");
        m.take(if arrives { "release" } else { "acquire" });
        let [] = self.operands(i)?;
        if arrives && !relaxed {
            self.emit(Op::Fence(Scope::Gpu), Class::Control, &[], &[], 0);
        }
        self.emit(Op::Cluster(step), Class::Control, &[], &[], 0);
        if !arrives {
            self.emit(Op::Fence(Scope::Gpu), Class::Control, &[], &[], 0);
        }
        Ok(())
    }

    /// `st.async`
    pub(super) fn store_async(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        self.completes(i, m)?;
        let access = self.access(i, m)?;
        let [to, data, barrier] = self.operands(i)?;
        if !matches!(access.space, Some(Space::Shared | Space::Generic)) || access.ty.bits < 32 {
            return self.bad_type(i, access.ty);
        }
        if access.half().is_some() {
            let message = format!("a vector of {} {} exceeds 16 bytes or four elements", access.vec, access.ty);
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let (data, wide) = self.data(data, &access)?;
        let (to, barrier) = (self.address(to, Space::Shared)?, self.shared_operand(barrier)?);
        let mem = Mem {
            vec: access.vec,
            wide,
            address: AddressIn::slot(to.wide),
            ..plain_access(MemKind::Store, Space::Shared, access.elem)
        };
        let src = [to.base, Arg::None, Arg::None, barrier];
        self.emit(Op::Mem(mem), Class::Mem, &data, &src, to.offset);
        Ok(())
    }

    /// `red.async`
    pub(super) fn reduce_async(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        self.completes(i, m)?;
        m.skip(|text| matches!(text, "relaxed" | "cluster" | "shared::cluster"));
        let (atom, ty, elem) = self.reduction_there(i, m, "red.async")?;
        let [to, a, barrier] = self.operands(i)?;
        let (a, to, barrier) = (self.src(a, ty)?, self.address(to, Space::Shared)?, self.shared_operand(barrier)?);
        let mem = Mem {
            atom,
            wide: elem == Elem::U64,
            address: AddressIn::slot(to.wide),
            cache: CacheOp::Volatile,
            ..plain_access(MemKind::Reduction, Space::Shared, elem)
        };
        self.emit(Op::Mem(mem), Class::Mem, &[], &[to.base, a, Arg::None, barrier], to.offset);
        Ok(())
    }

    /// The operation of a reduction in shared memory of a CTA of the cluster, and its type.
    pub(super) fn reduction_there(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
        name: &str,
    ) -> Lowered<(AtomOp, Ty, Elem)> {
        let Some((atom, types)) = m.one_of(&REDUCTIONS) else {
            return Err(self.fault(i.opcode.at.clone(), format!("`{name}` needs an operation such as `.add`")));
        };
        let ty = self.ty(i, m)?;
        match ty.elem().filter(|_| types.iter().any(|word| Ty::parse(word) == Some(ty))) {
            Some(elem) => Ok((atom, ty, elem)),
            None => self.bad_type(i, ty),
        }
    }

    fn completes(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.take("mbarrier::complete_tx::bytes") {
            return Ok(());
        }
        let message = format!("`{}.async` needs `.mbarrier::complete_tx::bytes`", i.opcode.text);
        Err(self.fault(i.opcode.at.clone(), message))
    }
}
