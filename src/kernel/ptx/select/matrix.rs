//! Matrices across a warp (PTX ISA 9.7.14): `mma.sync` and `ldmatrix`.
//!
//! Supported are products with m = 16, n = 8, a by rows and b by columns: k = 16 and 8 of `.f16` and `.bf16`,
//! 8 and 4 of `.tf32`, 32 and 16 of bytes. Others of the ISA (`m8n8k4`, sparse, double precision, single
//! bits, 8-bit floats, `wmma`) are faults by name.

use super::super::super::alu::{HalfFormat, MatrixFactors, MatrixOp, MatrixSums};
use super::super::super::ir::{AddressIn, Class, Elem, Mem, MemKind, Op, Space};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::Mods;

/// Types of elements, in the order in which `mma` names those of d, a, b and c.
const TYPES: [(&str, &str); 7] =
    [("f16", "f16"), ("f32", "f32"), ("bf16", "bf16"), ("tf32", "tf32"), ("s8", "s8"), ("u8", "u8"), ("s32", "s32")];

impl<'a> Lower<'_, 'a> {
    pub(super) fn mma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        for word in ["sync", "aligned", "row", "col"] {
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
        let (mut src, mut more) = ([Arg::None; 4], [Arg::None; 6]);
        self.fragment(a, if deep { 4 } else { 2 }, Ty::B32, &mut src)?;
        self.fragment(b, if deep { 2 } else { 1 }, Ty::B32, &mut more[..2])?;
        self.fragment(c, registers, sum_ty, &mut more[2..])?;
        let parts = self.parts(d, registers)?;
        let mut dst = [Arg::None; 4];
        for (dst, part) in dst.iter_mut().zip(parts) {
            *dst = self.dst(part, Bank::R32)?;
        }
        let class = if deep { Class::Matrix } else { Class::MatrixHalf };
        self.emit(Op::Matrix(MatrixOp { factors, sums, deep }), class, &dst, &src, 0);
        // The rest of the sources: an instruction has room for those of a only.
        if let Some(draft) = self.body.code.last_mut() {
            draft.more = more;
        }
        Ok(())
    }

    fn unsupported_product(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let message = "this `mma` is not supported: supported are m16n8k16 and m16n8k8 of f16 and bf16, m16n8k8 and \
                       m16n8k4 of tf32 (c and d f32, of f16 also f16), m16n8k32 and m16n8k16 of s8 and u8 (c and d s32)";
        Err(self.fault(i.opcode.at.clone(), message))
    }

    /// The registers of a fragment.
    fn fragment(&mut self, operand: &'a Operand<'a>, registers: usize, ty: Ty, out: &mut [Arg]) -> Lowered {
        for (out, part) in out.iter_mut().zip(self.parts(operand, registers)?) {
            *out = self.src(part, ty)?;
        }
        Ok(())
    }

    fn parts(&mut self, operand: &'a Operand<'a>, registers: usize) -> Lowered<&'a [Operand<'a>]> {
        let parts = match &operand.kind {
            OperandKind::Vector(parts) => parts.as_slice(),
            _ => std::slice::from_ref(operand),
        };
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
        let shared = m.one_of(&[("shared", ()), ("shared::cta", ())]).is_some();
        let matrices = m.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]);
        if !m.take("m8n8") || !m.take("b16") {
            return Err(self.fault(i.opcode.at.clone(), "only `ldmatrix` with `.m8n8` and `.b16` is supported"));
        }
        let (Some(matrices), true) = (matrices, shared) else {
            let message = "`ldmatrix` needs a number of matrices such as `.x4`, and `.shared`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let [d, a] = self.operands(i)?;
        let parts = self.parts(d, matrices)?;
        let mut dst = [Arg::None; 4];
        for (dst, part) in dst.iter_mut().zip(parts) {
            *dst = self.dst(part, Bank::R32)?;
        }
        let address = self.address(a, Space::Shared)?;
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
