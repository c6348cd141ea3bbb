//! Calls of functions that have no body in the file: what the CUDA device runtime provides, and what the
//! assembler does.
//!
//! | function | does |
//! |---|---|
//! | `vprintf` | nothing, and returns 0 |
//! | `__assertfail`, `__assert_fail`, `abort` | ends the kernel with a fault |
//! | `__nv_ptx_builtin_ocg_fmax3`, `_fmin3` | `max.f32` and `min.f32` of three |
//!
//! Source: CUDA's device runtime. The builtins are in no manual; kernels of cuEquivariance for `sm_100`
//! have them, and `ptxas` (CUDA 12.9 and 13) makes the same `FMNMX3` of them as of `max.f32` and `min.f32`
//! of three. Not supported: `malloc`, `free`.

use super::super::super::alu::{FloatMode, FloatOp, Round};
use super::super::super::ir::{Class, Elem, Op, Trap};
use super::super::ast::{Operand, OperandKind};
use super::super::draft::{Arg, DraftOp};
use super::super::functions::Call;
use super::super::lower::{Lower, Lowered, Name};
use super::super::types::Bank;

impl<'a> Lower<'_, 'a> {
    /// Functions that the CUDA device runtime provides, or the assembler.
    pub(super) fn call_external(&mut self, name: &str, call: &Call<'_, 'a>) -> Lowered {
        let (callee, results) = (call.callee, call.results);
        match name {
            // One instruction of `sm_100`, before PTX had a word for it.
            "__nv_ptx_builtin_ocg_fmax3" => self.call_extreme_of_three(FloatOp::Max, call),
            "__nv_ptx_builtin_ocg_fmin3" => self.call_extreme_of_three(FloatOp::Min, call),
            "vprintf" => {
                self.warn(callee.at.clone(), "`vprintf` prints nothing and returns 0");
                let block = match results.first().map(|r| &r.kind) {
                    Some(OperandKind::Name { name, .. }) => self.name(name)?,
                    _ => None,
                };
                match block {
                    Some(Name::Block(block)) if self.body.blocks[block as usize].bytes >= 4 => {
                        let zero = self.body.literal(Bank::R32, 0);
                        let op = DraftOp::Param { store: true, block, offset: 0, elem: Elem::U32, vec: 1 };
                        self.emit_draft(op, Class::Control, &[zero], &[], 0);
                    }
                    _ => self.emit(Op::Nop, Class::Control, &[], &[], 0),
                }
                Ok(())
            }
            "__assertfail" | "__assert_fail" | "abort" => {
                self.emit(Op::Trap(Trap::Asked), Class::Control, &[], &[], 0);
                Ok(())
            }
            "malloc" | "free" => Err(self.fault(callee.at.clone(), format!("device `{name}` is not supported"))),
            _ => Err(self.fault(callee.at.clone(), format!("function `{name}` has no body in this file"))),
        }
    }

    /// The extreme of three singles, as `max.f32` and `min.f32` of three have it: NaNs are left out.
    fn call_extreme_of_three(&mut self, op: FloatOp, call: &Call<'_, 'a>) -> Lowered {
        let ([result], [a, b, c]) = (call.results, call.arguments) else {
            return Err(self.fault(call.callee.at.clone(), "this function takes three singles and returns one"));
        };
        let moved = |store: bool, block: u32| DraftOp::Param { store, block, offset: 0, elem: Elem::F32, vec: 1 };
        let mut values = [Arg::None; 3];
        for (value, from) in values.iter_mut().zip([a, b, c]) {
            let block = self.block_of_a_single(from)?;
            *value = Arg::Reg(self.body.register(Bank::R32));
            self.emit_draft(moved(false, block), Class::Logic, &[*value], &[], 0);
        }
        let found = Arg::Reg(self.body.register(Bank::R32));
        let mode = FloatMode { round: Round::Nearest, ftz: false, sat: false };
        self.emit_extreme_of_three(op, mode, found, values);
        let block = self.block_of_a_single(result)?;
        self.emit_draft(moved(true, block), Class::Logic, &[found], &[], 0);
        Ok(())
    }

    /// The parameter block that an operand of a call names, of four bytes at least.
    fn block_of_a_single(&mut self, operand: &Operand<'a>) -> Lowered<u32> {
        if let OperandKind::Name { name, .. } = operand.kind
            && let Some(Name::Block(block)) = self.name(name)?
            && self.body.blocks[block as usize].bytes >= 4
        {
            return Ok(block);
        }
        Err(self.fault(operand.at.clone(), "expected a parameter of 4 bytes"))
    }
}
