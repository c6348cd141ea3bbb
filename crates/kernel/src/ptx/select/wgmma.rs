//! Products of four warps (PTX ISA 9.7.15): `wgmma.mma_async`, `wgmma.fence`, `wgmma.commit_group` and
//! `wgmma.wait_group`.
//!
//! | a, b | k | d | columns |
//! |---|---|---|---|
//! | `.f16` | 16 | `.f16`, `.f32` | every multiple of 8 up to 256 |
//! | `.bf16` | 16 | `.f32` | the same |
//! | `.tf32` | 8 | `.f32` | the same |
//! | `.e4m3`, `.e5m2`, in any pair | 32 | `.f16`, `.f32` | the same |
//! | `.s8`, `.u8`, in any pair | 32 | `.s32`, `.satfinite` or not | 8, 24, and every multiple of 16 |
//! | `.b1`, `.and.popc` | 256 | `.s32` | the same |
//!
//! Of a sparse a (`.sp`) k is twice that, of all but single bits; metadata and their selector come behind b.

use super::super::super::alu::{BitProduct, MatrixOp, MatrixSums};
use super::super::super::ir::{Class, GroupElements, GroupStep, Op, group_registers};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, GroupDraft};
use super::super::lower::{Lower, Lowered};
use super::super::types::Ty;
use super::mma::{TYPES, factors_of, sums_of};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["wgmma"], |l, i, m| l.wgmma(i, m))];

/// Columns and k of a shape such as `m64n256k16`.
fn shape(word: &str) -> Option<(u16, u32)> {
    let (columns, k) = word.strip_prefix("m64n")?.split_once('k')?;
    Some((columns.parse().ok()?, k.parse().ok()?))
}

/// The ISA has a product with this number of columns.
fn has_columns(columns: u16, elements: GroupElements) -> bool {
    let of_integers = matches!(elements, GroupElements::Bytes | GroupElements::Bits);
    let there = (8..=256).contains(&columns) && columns.is_multiple_of(8);
    there && (!of_integers || columns.is_multiple_of(16) || columns <= 24)
}

impl<'a> Lower<'_, 'a> {
    fn wgmma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        const STEPS: [(&str, GroupStep); 4] = [
            ("mma_async", GroupStep::Multiply),
            ("fence", GroupStep::Fence),
            ("commit_group", GroupStep::Commit),
            ("wait_group", GroupStep::Wait(0)),
        ];
        let Some(step) = m.one_of(&STEPS) else {
            let message = "`wgmma` is `.mma_async`, `.fence`, `.commit_group` or `.wait_group`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let sparse = step == GroupStep::Multiply && m.take("sp");
        for word in ["sync", "aligned"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`{}` needs `.{word}`", step.name())));
            }
        }
        // All but a product name no registers.
        let step = match step {
            GroupStep::Multiply => return self.group_product(i, m, sparse),
            GroupStep::Wait(_) => {
                let [number] = self.operands(i)?;
                GroupStep::Wait(self.number(number)?)
            }
            step => {
                let [] = self.operands(i)?;
                step
            }
        };
        self.emit(Op::WarpGroup(step), Class::Control, &[], &[], 0);
        Ok(())
    }

    fn group_product(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, sparse: bool) -> Lowered {
        let unsupported = |l: &mut Self| {
            let words: Vec<&str> = i.mods.iter().map(|word| word.text).collect();
            Err(l.fault(i.opcode.at.clone(), format!("there is no product `wgmma.{}`", words.join("."))))
        };
        let Some((columns, k)) = m.find(shape) else { return unsupported(self) };
        let saturates = m.take("satfinite");
        // The types of d, a and b, in this order: what is taken once is not found again.
        let [d, a, b] = std::array::from_fn(|_| m.one_of(&TYPES).unwrap_or_default());
        let bits = (m.take("and") && m.take("popc")).then_some(BitProduct::And);
        let Some((factors, deep)) = factors_of(a, b, bits) else { return unsupported(self) };
        let Some(elements) = GroupElements::of(factors) else { return unsupported(self) };
        let deep = if sparse { 2 * deep } else { deep };
        let sums = sums_of(d, d, factors, saturates).filter(|_| k == deep && has_columns(columns, elements));
        let is_bits = elements == GroupElements::Bits;
        let (Some(sums), true) = (sums, bits.is_some() == is_bits && !(sparse && is_bits)) else {
            return unsupported(self);
        };
        // Signs and, of 16-bit elements, orders follow the operands of all products.
        let of_halves = elements == GroupElements::Half;
        let (with_signs, in_registers) = (!matches!(sums, MatrixSums::S32(_)), self.is_fragment(i.operands.get(1))?);
        let orders = if of_halves { 2 - usize::from(in_registers) } else { 0 };
        let before_scale = if sparse { 5 } else { 3 };
        let count = before_scale + 1 + if with_signs { 2 } else { 0 } + orders;
        if i.operands.len() != count {
            let message = format!("`wgmma.mma_async` takes {count} operands here, found {}", i.operands.len());
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let ([d, a, b, of_metadata @ ..], [scale, rest @ ..]) = i.operands.split_at(before_scale) else {
            unreachable!("four operands at least")
        };
        let mut op = MatrixOp::dense(factors, sums, true);
        let mut metadata = Arg::None;
        if let [words, selector] = of_metadata {
            (metadata, op.sparsity) = self.metadata(words, selector, op, false)?;
        }
        let ty = if sums == MatrixSums::F32 { Ty::F32 } else { Ty::B32 };
        // d is read as well as written: its registers are looked at as sources, whose type is known.
        let mut results = vec![Arg::None; usize::from(columns) / 8 * group_registers(sums)];
        self.fragment(d, ty, &mut results)?;
        if let Some(constant) = results.iter().position(|arg| !matches!(arg, Arg::Reg(_))) {
            return Err(self.fault(d.at.clone(), format!("element {constant} of d is no register")));
        }
        let (mut fragment, mut descriptor) = ([Arg::None; 4], Arg::None);
        match in_registers {
            true => self.fragment(a, Ty::B32, &mut fragment)?,
            false => descriptor = self.src(a, Ty::B64)?,
        }
        let b = self.src(b, Ty::B64)?;
        let (scale, negated) = self.src_pred(scale)?;
        let (signs, orders) = rest.split_at(if with_signs { 2 } else { 0 });
        let mut subtracts = false;
        for sign in signs {
            subtracts ^= self.one_of_numbers(sign, [1, u64::MAX], "`imm-scale` is 1 or -1")?;
        }
        let mut across = [false; 2];
        // Where a is in registers the order of b stands alone.
        for (place, order) in across.iter_mut().rev().zip(orders.iter().rev()) {
            *place = self.one_of_numbers(order, [0, 1], "`imm-trans` is 0 or 1")?;
        }
        self.emit(Op::WarpGroup(GroupStep::Multiply), Class::Control, &[], &[b, descriptor, scale], 0);
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[..4].copy_from_slice(&fragment);
            draft.more[8] = metadata;
            let group = GroupDraft { op, elements, columns, across, adds: negated == 0, subtracts, d: results };
            draft.group = Some(Box::new(group));
        }
        Ok(())
    }

    /// An operand is a list of registers, or a vector of them.
    fn is_fragment(&mut self, operand: Option<&'a Operand<'a>>) -> Lowered<bool> {
        let Some(operand) = operand else { return Ok(false) };
        Ok(matches!(operand.kind, OperandKind::Vector(_)) || self.elements(operand)?.len() > 1)
    }

    /// A number that is one of two: whether it is the second.
    fn one_of_numbers(&mut self, operand: &'a Operand<'a>, numbers: [u64; 2], what: &str) -> Lowered<bool> {
        match operand.kind {
            OperandKind::Int(value) if numbers.contains(&value) => Ok(value == numbers[1]),
            _ => Err(self.fault(operand.at.clone(), what)),
        }
    }
}
