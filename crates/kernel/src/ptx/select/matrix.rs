//! Matrices across a warp (PTX ISA 9.7.14): `mma.sync`, `ldmatrix`, `stmatrix` and `movmatrix`.
//!
//! Supported are products with m = 16, n = 8, a by rows and b by columns: k = 16 and 8 of `.f16` and `.bf16`,
//! 8 and 4 of `.tf32`, 32 and 16 of bytes; and m8n8k4 of `.f64`, and of `.f16` in any order. Others of the
//! ISA (sparse, single bits, 8-bit floats) are faults by name.

use std::borrow::Cow;

use super::super::super::alu::{
    AluOp, Combine, Compare, CompareKind, HalfFormat, IntCmp, IntOp, MatrixFactors, MatrixOp, MatrixSums, QuadFactors,
};
use super::super::super::ir::{AddressIn, Class, Elem, Mem, MemKind, Op, Space, Special};
use super::super::super::memory::SHARED_WINDOW;
use super::super::ast::{Instruction, Operand};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["mma"], |l, i, m| l.mma(i, m)),
    (&["ldmatrix"], |l, i, m| l.ldmatrix(i, m)),
    (&["stmatrix"], |l, i, m| l.stmatrix(i, m)),
    (&["movmatrix"], |l, i, m| l.movmatrix(i, m)),
];

/// Types of elements, in the order in which `mma` names those of d, a, b and c.
const TYPES: [(&str, &str); 7] =
    [("f16", "f16"), ("f32", "f32"), ("bf16", "bf16"), ("tf32", "tf32"), ("s8", "s8"), ("u8", "u8"), ("s32", "s32")];

impl<'a> Lower<'_, 'a> {
    pub(super) fn mma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        for word in ["sync", "aligned"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`mma` needs `.{word}`")));
            }
        }
        if m.take("m8n8k4") {
            return self.small_product(i, m);
        }
        for word in ["row", "col"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`mma` needs `.{word}`")));
            }
        }
        let saturates = m.take("satfinite");
        let depth = m.one_of(&[("m16n8k4", 4), ("m16n8k8", 8), ("m16n8k16", 16), ("m16n8k32", 32)]);
        // The types of d, a, b and c, in this order: what is taken once is not found again.
        let types = std::array::from_fn(|_| m.one_of(&TYPES));
        let factors = match types {
            [_, Some("f16"), Some("f16"), _] => Some((MatrixFactors::Half(HalfFormat::F16), 16)),
            [_, Some("bf16"), Some("bf16"), _] => Some((MatrixFactors::Half(HalfFormat::Bf16), 16)),
            [_, Some("tf32"), Some("tf32"), _] => Some((MatrixFactors::Tf32, 8)),
            [_, Some(a @ ("s8" | "u8")), Some(b @ ("s8" | "u8")), _] => {
                Some((MatrixFactors::Bytes(a == "s8", b == "s8"), 32))
            }
            _ => None,
        };
        let sums = match (types[0], types[3], factors) {
            (Some("f16"), Some("f16"), Some((MatrixFactors::Half(HalfFormat::F16), _))) => Some(MatrixSums::F16),
            (Some("s32"), Some("s32"), Some((MatrixFactors::Bytes(..), _))) => Some(MatrixSums::S32(saturates)),
            (Some("f32"), Some("f32"), Some((MatrixFactors::Half(_) | MatrixFactors::Tf32, _))) => {
                Some(MatrixSums::F32)
            }
            _ => None,
        };
        let (Some((factors, deep)), Some(sums), Some(depth)) = (factors, sums, depth) else {
            return self.unsupported_product(i);
        };
        if depth != deep && depth != deep / 2 || saturates && !matches!(sums, MatrixSums::S32(_)) {
            return self.unsupported_product(i);
        }
        // Of two depths of a type the greater has twice the registers.
        let deep = depth == deep;
        let registers = if sums == MatrixSums::F16 { 2 } else { 4 };
        let sum_ty = if sums == MatrixSums::F32 { Ty::F32 } else { Ty::B32 };
        let [d, a, b, c] = self.operands(i)?;
        let (mut left, mut right, mut start) = ([Arg::None; 4], [Arg::None; 2], [Arg::None; 4]);
        let (of_a, of_b) = if deep { (4, 2) } else { (2, 1) };
        let mut dst = [Arg::None; 4];
        self.fragment(a, Ty::B32, &mut left[..of_a])?;
        self.fragment(b, Ty::B32, &mut right[..of_b])?;
        self.fragment(c, sum_ty, &mut start[..registers])?;
        self.results(d, Bank::R32, &mut dst[..registers])?;
        let op = MatrixOp { factors, sums, deep };
        self.product(op, &dst, &left, &right, &start);
        Ok(())
    }

    /// Appends one product: registers of d, a, b and c, four of a and of the sums and two of b at most.
    pub(super) fn product(&mut self, op: MatrixOp, d: &[Arg], a: &[Arg], b: &[Arg], c: &[Arg]) {
        let class = if op.deep { Class::Matrix } else { Class::MatrixHalf };
        self.emit(Op::Matrix(op), class, d, a, 0);
        // The rest of the sources: an instruction has room for those of a only.
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[..b.len()].copy_from_slice(b);
            draft.more[2..2 + c.len()].copy_from_slice(c);
        }
    }

    /// `mma.m8n8k4` of doubles, and of halves by quads of lanes in any order of rows and columns.
    fn small_product(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        const ORDERS: [(&str, bool); 2] = [("row", true), ("col", false)];
        let orders = (m.one_of(&ORDERS), m.one_of(&ORDERS));
        m.take("rn");
        // Those of d, a, b and c, in this order.
        let types: [Option<&str>; 4] =
            std::array::from_fn(|_| m.one_of(&[("f16", "f16"), ("f32", "f32"), ("f64", "f64")]));
        let [d, a, b, c] = self.operands(i)?;
        let (sums, deep) = match (types.map(Option::unwrap_or_default), orders) {
            (["f64", "f64", "f64", "f64"], (Some(true), Some(false))) => {
                let (mut left, mut right, mut start) = ([Arg::None; 1], [Arg::None; 1], [Arg::None; 2]);
                let mut dst = [Arg::None; 2];
                self.fragment(a, Ty::B64, &mut left)?;
                self.fragment(b, Ty::B64, &mut right)?;
                self.fragment(c, Ty::B64, &mut start)?;
                self.results(d, Bank::R64, &mut dst)?;
                let op = MatrixOp { factors: MatrixFactors::Double, sums: MatrixSums::F64, deep: false };
                self.product(op, &dst, &left, &right, &start);
                return Ok(());
            }
            (["f32", "f16", "f16", "f32"], _) => (MatrixSums::F32, false),
            (["f16", "f16", "f16", "f16"], _) => (MatrixSums::F16, false),
            _ => return self.unsupported_product(i),
        };
        let (Some(a_by_rows), Some(b_by_rows)) = orders else {
            return Err(self.fault(i.opcode.at.clone(), "`mma.m8n8k4` needs `.row` or `.col` of a and of b"));
        };
        // Eight sums a lane: singles one a register, halves two.
        let registers = if sums == MatrixSums::F32 { 8 } else { 4 };
        let sum_ty = if sums == MatrixSums::F32 { Ty::F32 } else { Ty::B32 };
        let (mut left, mut right, mut start) = ([Arg::None; 2], [Arg::None; 2], [Arg::None; 8]);
        let mut dst = [Arg::None; 8];
        self.fragment(a, Ty::B32, &mut left)?;
        self.fragment(b, Ty::B32, &mut right)?;
        self.fragment(c, sum_ty, &mut start[..registers])?;
        self.results(d, Bank::R32, &mut dst[..registers])?;
        let results = &dst[..registers];
        let targets = self.targets(results, Bank::R32, 4, [&left, &right, &start[..registers]]);
        for half in 0..registers / 4 {
            let of = QuadFactors { a_by_columns: !a_by_rows, b_by_rows, upper: half == 1 };
            let op = MatrixOp { factors: MatrixFactors::Quads(of), sums, deep };
            self.product(op, &targets[4 * half..][..4], &left, &right, &start[4 * half..][..4]);
        }
        self.bring_back(results, &targets, Bank::R32);
        Ok(())
    }

    /// Where products leave their results, `of_one` registers each, one product after another: in `results`,
    /// or in others, if a later product reads what an earlier one would overwrite. `read` has the registers
    /// of both factors and of the sums.
    pub(super) fn targets(&mut self, results: &[Arg], bank: Bank, of_one: usize, read: [&[Arg]; 3]) -> Vec<Arg> {
        let [rows, columns, sums] = read;
        let overwritten = &results[..results.len() - of_one];
        let read_later = [rows, columns, &sums[of_one..]].concat();
        if !overwritten.iter().any(|register| read_later.contains(register)) {
            return results.to_vec();
        }
        results.iter().map(|_| Arg::Reg(self.body.register(bank))).collect()
    }

    /// Moves results from where [`Self::targets`] had them left.
    pub(super) fn bring_back(&mut self, results: &[Arg], targets: &[Arg], bank: Bank) {
        if results == targets {
            return;
        }
        for (to, from) in results.chunks(4).zip(targets.chunks(4)) {
            self.emit(Op::Alu(AluOp::MovVec(bank == Bank::R64)), Class::Logic, to, from, 0);
        }
    }

    /// `stmatrix`: lanes exchange elements, so that each that has an address holds a row; then these store.
    pub(super) fn stmatrix(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("sync");
        m.take("aligned");
        let transposed = m.take("trans");
        let space = m.one_of(&[("shared", Space::Shared), ("shared::cta", Space::Shared)]).unwrap_or(Space::Generic);
        let matrices = m.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]);
        let (Some(matrices), true, true) = (matrices, m.take("m8n8"), m.take("b16")) else {
            let message = "only `stmatrix` with `.m8n8`, a number of matrices such as `.x4`, and `.b16` is supported";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let [a, r] = self.operands(i)?;
        let mut src = [Arg::None; 4];
        self.fragment(r, Ty::B32, &mut src[..matrices])?;
        let address = self.address(a, space)?;
        let rows: [Arg; 4] = std::array::from_fn(|_| Arg::Reg(self.body.register(Bank::R32)));
        self.emit(Op::Alu(AluOp::MatrixRows(transposed)), Class::Shuffle, &rows, &src, 0);
        let guard = self.guard;
        if matrices < 4 {
            // Eight lanes a matrix have addresses.
            let lane = self.body.special(Special::LaneOfGroup);
            let (inside, count) = (self.body.register(Bank::Pred), self.body.literal(Bank::R32, 8 * matrices as u64));
            let less = Compare { kind: CompareKind::Int32(IntCmp::LtU), combine: Combine::None };
            self.guard = None;
            if guard.is_some() {
                // Lanes that the guard leaves out do not store either.
                let no = self.body.literal(Bank::Pred, 0);
                self.emit(Op::Alu(AluOp::MovPred), Class::Logic, &[Arg::Reg(inside)], &[no], 0);
                self.guard = guard;
            }
            self.emit(Op::Alu(AluOp::Setp(less)), Class::Compare, &[Arg::Reg(inside)], &[lane, count], 0);
            self.guard = Some((inside, false));
        }
        let mem =
            Mem { vec: 4, address: AddressIn::slot(address.wide), ..plain_access(MemKind::Store, space, Elem::U32) };
        self.emit(Op::Mem(mem), Class::Mem, &rows, &[address.base], address.offset);
        self.guard = guard;
        Ok(())
    }

    /// `movmatrix`
    pub(super) fn movmatrix(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        for word in ["sync", "aligned", "m8n8", "trans", "b16"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`movmatrix` needs `.{word}`")));
            }
        }
        self.uniform(i, AluOp::Transpose, Class::Shuffle, Ty::B32, 1)
    }

    fn unsupported_product(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let message = "this `mma` is not supported: supported are m16n8k16 and m16n8k8 of f16 and bf16, m16n8k8 and \
                       m16n8k4 of tf32 (c and d f32, of f16 also f16), m16n8k32 and m16n8k16 of s8 and u8 (c and d s32), m8n8k4 of f64 \
                       and of f16 (c and d both f16 or both f32)";
        Err(self.fault(i.opcode.at.clone(), message))
    }

    /// The registers of a fragment that is read.
    pub(super) fn fragment(&mut self, operand: &Operand<'a>, ty: Ty, out: &mut [Arg]) -> Lowered {
        let parts = self.parts(operand, out.len())?;
        for (out, part) in out.iter_mut().zip(&*parts) {
            *out = self.src(part, ty)?;
        }
        Ok(())
    }

    /// The registers of a fragment that is written.
    pub(super) fn results(&mut self, operand: &Operand<'a>, bank: Bank, out: &mut [Arg]) -> Lowered {
        let parts = self.parts(operand, out.len())?;
        for (out, part) in out.iter_mut().zip(&*parts) {
            *out = self.dst(part, bank)?;
        }
        Ok(())
    }

    fn parts<'o>(&mut self, operand: &'o Operand<'a>, registers: usize) -> Lowered<Cow<'o, [Operand<'a>]>> {
        let parts = self.elements(operand)?;
        if parts.len() != registers {
            let found = parts.len();
            return Err(self.fault(operand.at.clone(), format!("expected {registers} register(s), found {found}")));
        }
        Ok(parts)
    }

    pub(super) fn ldmatrix(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("sync");
        m.take("aligned");
        let transposed = m.take("trans");
        let space = m.one_of(&[("shared", Space::Shared), ("shared::cta", Space::Shared)]).unwrap_or(Space::Generic);
        let matrices = m.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]);
        if !m.take("m8n8") || !m.take("b16") {
            return Err(self.fault(i.opcode.at.clone(), "only `ldmatrix` with `.m8n8` and `.b16` is supported"));
        }
        let Some(matrices) = matrices else {
            return Err(self.fault(i.opcode.at.clone(), "`ldmatrix` needs a number of matrices such as `.x4`"));
        };
        let [d, a] = self.operands(i)?;
        let mut dst = [Arg::None; 4];
        self.results(d, Bank::R32, &mut dst[..matrices])?;
        let mut address = self.address(a, space)?;
        if space == Space::Generic {
            if !address.wide {
                return Err(self.fault(a.at.clone(), "a generic address has 64 bits; `.shared` is missing?"));
            }
            // It must lie in shared memory; one that does not is out of its bounds.
            let (base, by) = (Arg::Reg(self.body.register(Bank::R64)), SHARED_WINDOW.wrapping_neg());
            let by = self.body.literal(Bank::R64, by);
            self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Class::Int, &[base], &[address.base, by], 0);
            address.base = base;
        }
        // A lane's part is a row of 16 bytes.
        let mem = Mem {
            vec: 4,
            address: AddressIn::slot(address.wide),
            ..plain_access(MemKind::Matrix(transposed), Space::Shared, Elem::U32)
        };
        self.emit(Op::Mem(mem), Class::Mem, &dst, &[address.base], address.offset);
        Ok(())
    }
}
