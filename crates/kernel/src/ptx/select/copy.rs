//! Asynchronous copies from global to shared memory (PTX ISA 9.7.9.25): `cp.async` and its groups.
//!
//! Bulk copies are in `bulk.rs`. Not supported: copies of tensors, `ignore-src`. Cache hints and prefetched
//! sizes (`.L2::128B`) are ignored, as for loads.

use super::super::super::ir::{AddressIn, CacheOp, Class, CopyStep, Elem, Mem, MemKind, Op, Space};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["cp"], |l, i, m| l.async_copy(i, m))];

impl<'a> Lower<'_, 'a> {
    pub(super) fn async_copy(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if i.mods.iter().any(|word| word.text == "bulk") {
            return self.bulk(i, m);
        }
        if !m.take("async") {
            let message = "`cp` is `cp.async` or `cp.reduce.async.bulk`";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        if m.take("mbarrier") {
            return self.arrive_behind_copies(i, m);
        }
        if m.take("commit_group") {
            return self.copy_step(i, CopyStep::Commit);
        }
        if m.take("wait_all") {
            return self.copy_step(i, CopyStep::WaitAll);
        }
        if m.take("wait_group") {
            let [number] = self.operands(i)?;
            // Hardware holds six bits of it: a negative number is a large one, and waits for nothing.
            let kept = match number.kind {
                OperandKind::Int(value) if (value as i64) < 0 => (value & 63) as u32,
                _ => self.number(number)?,
            };
            self.emit(Op::Copies(CopyStep::Wait(kept)), Class::Control, &[], &[], 0);
            return Ok(());
        }
        let cache = m.one_of(&[("ca", CacheOp::All), ("cg", CacheOp::L2Only)]);
        let shared = m.one_of(&[("shared", ()), ("shared::cta", ())]).is_some();
        let (Some(cache), true, true) = (cache, shared, m.take("global")) else {
            return Err(self.fault(i.opcode.at.clone(), "`cp.async` needs `.ca` or `.cg`, and `.shared.global`"));
        };
        // Hints, and the policy that follows as one more operand, change no value.
        m.skip(|text| text.starts_with("L2::"));
        let has_policy = i.mods.iter().any(|word| word.text == "L2::cache_hint");
        let operands = &i.operands[..i.operands.len() - usize::from(has_policy && i.operands.len() > 3)];
        let (to, from, size, read) = match operands {
            [to, from, size] => (to, from, size, None),
            [to, from, size, read] => (to, from, size, Some(read)),
            _ => return self.operands::<3>(i).map(|_| ()),
        };
        let bytes = self.number(size)?;
        let vec = match (bytes, cache) {
            (4, CacheOp::All) => 1,
            (8, CacheOp::All) => 2,
            (16, _) => 4,
            _ => {
                let message = "`cp.async.ca` copies 4, 8 or 16 bytes, `cp.async.cg` copies 16";
                return Err(self.fault(size.at.clone(), message));
            }
        };
        let to = self.address(to, Space::Shared)?;
        let from = self.address(from, Space::Global)?;
        let read = match read {
            Some(read) => self.src(read, Ty::U32)?,
            None => Arg::None,
        };
        let mem = Mem {
            vec,
            cache,
            wide: to.wide,
            address: AddressIn::slot(from.wide),
            ..plain_access(MemKind::Copy, Space::Global, Elem::U32)
        };
        // The instruction has room for one offset, that of global memory: the other is a constant.
        let offset = self.body.literal(Bank::R32, u64::from(to.offset as u32));
        self.emit(Op::Mem(mem), Class::Mem, &[], &[from.base, to.base, read, offset], from.offset);
        Ok(())
    }

    fn copy_step(&mut self, i: &'a Instruction<'a>, step: CopyStep) -> Lowered {
        let [] = self.operands(i)?;
        self.emit(Op::Copies(step), Class::Control, &[], &[], 0);
        Ok(())
    }

    /// A number that the text states.
    pub(super) fn number(&mut self, operand: &'a Operand<'a>) -> Lowered<u32> {
        match operand.kind {
            OperandKind::Int(value) if u32::try_from(value).is_ok() => Ok(value as u32),
            _ => Err(self.fault(operand.at.clone(), "expected a number")),
        }
    }
}
