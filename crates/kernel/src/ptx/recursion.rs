//! Calls of functions that may call themselves: each is a subroutine of its kernel, compiled once.
//!
//! ```text
//! caller:  read arguments; Enter; write parameters; Call; read results; Leave; write results
//! callee:  st.local [frame], return address; body; end: ld.local return address, [frame]; Return
//! ```
//! Which functions these are is found in the call graph (`functions.rs`). All others are inlined, but in a
//! kernel that this would make too large: there, those of some size with several callers are subroutines
//! too. Parameters and results of a subroutine are registers of its own, or lie in its frame where their
//! addresses are taken. Arguments go through registers of the call, for a function that calls itself with
//! its parameters in another order would overwrite them. `Enter` and `Leave` save what the callee may
//! overwrite and move the stack pointer (`stack.rs`).
//!
//! Not modelled: the calling convention of the CUDA driver, which is not published.

use super::super::ir::{Class, Elem, MemKind, Op, Space};
use super::ast::{Formal, Function, Operand, OperandKind};
use super::draft::{Arg, CallSite, DraftOp, RETURN_SITE_BYTES, Subroutine, VReg, plain_access};
use super::lower::{Lower, Lowered, LoweringScope, Name};
use super::parser::Reported;
use super::types::{Bank, Ty};

/// One value on its way into a parameter or out of a result.
struct Moved {
    to: Name,
    /// Byte offset in a parameter block.
    offset: u32,
    elem: Elem,
    through: VReg,
}

/// A value's type by its bytes alone.
fn bits(bytes: u32) -> (Elem, Bank) {
    match bytes {
        1 => (Elem::U8, Bank::R32),
        2 => (Elem::U16, Bank::R32),
        4 => (Elem::U32, Bank::R32),
        _ => (Elem::U64, Bank::R64),
    }
}

impl<'a> Lower<'_, 'a> {
    /// Lowers a call of a function that may call itself, whose counts of arguments and results are right.
    pub(super) fn call_subroutine(
        &mut self,
        function: &'a Function<'a>,
        (cycle, recursive): (u32, bool),
        results: &[Operand<'a>],
        arguments: &[Operand<'a>],
    ) -> Lowered {
        let callee = self.subroutine(function, (cycle, recursive))?;
        let bound = self.subroutines[callee as usize].1.clone();
        if bound.len() != function.params.len() + function.returns.len() {
            // Its parameters have faults, which its first call reported.
            return Err(Reported);
        }
        let (parameters, returned) = bound.split_at(function.params.len());
        let behind = self.body.label();
        let guard = self.guard.take();
        if let Some((register, negated)) = guard {
            self.guard = Some((register, !negated));
            self.branch(behind);
            self.guard = None;
        }
        // All arguments are read before `Enter`, which moves the stack pointer away from the caller's frame;
        // parameters are written after it, when what they overwrite is saved.
        let mut given = Vec::new();
        for ((formal, actual), &(_, to)) in function.params.iter().zip(arguments).zip(parameters) {
            self.read_argument(formal, actual, to, &mut given)?;
        }
        let stack = self.body.stack();
        let site = self.body.sites.len() as u32;
        self.body.sites.push(CallSite { caller: self.body.owner, callee, temporaries: Vec::new() });
        self.emit_draft(DraftOp::Enter(site), Class::Control, &[], &[], 0);
        given.iter().for_each(|moved| self.write(moved));
        let callee_frame = [Arg::Reg(stack.pointer)];
        self.emit_draft(DraftOp::Call(site), Class::Control, &[Arg::Reg(stack.link)], &callee_frame, 0);
        // The reverse: results are read before `Leave` brings the caller's registers back, and written after
        // it, or it would overwrite them.
        let mut taken = Vec::new();
        for ((formal, actual), &(_, from)) in function.returns.iter().zip(results).zip(returned) {
            self.read_result(formal, actual, from, &mut taken)?;
        }
        self.emit_draft(DraftOp::Leave(site), Class::Control, &[], &[], 0);
        taken.iter().for_each(|moved| self.write(moved));
        let temporaries = given.iter().chain(&taken).map(|moved| moved.through).collect();
        self.body.sites[site as usize].temporaries = temporaries;
        self.place_label(behind);
        self.guard = guard;
        Ok(())
    }

    /// The number of a function's subroutine; its parameters and results are declared with the first call.
    fn subroutine(&mut self, function: &'a Function<'a>, (cycle, recursive): (u32, bool)) -> Lowered<u32> {
        let known = self.subroutines.iter().position(|(known, _)| known.name.text == function.name.text);
        if let Some(known) = known {
            return Ok(known as u32);
        }
        let number = self.body.subroutines.len() as u32;
        let (start, end) = (self.body.label(), self.body.label());
        self.body.subroutines.push(Subroutine { cycle, recursive, start, end, bytes: RETURN_SITE_BYTES, align: 16 });
        self.subroutines.push((function, Vec::new()));
        let caller = self.body.owner.replace(number);
        let formals = function.params.iter().chain(&function.returns);
        let bound: Lowered<Vec<_>> = formals.map(|formal| self.declare_formal(formal)).collect();
        self.body.owner = caller;
        self.subroutines[number as usize].1 = bound?;
        Ok(number)
    }

    fn declare_formal(&mut self, formal: &'a Formal<'a>) -> Lowered<(&'a str, Name)> {
        let name = formal.var.name.text;
        if formal.register {
            let ty = self.scalar(formal)?;
            return Ok((name, Name::Register(self.body.register(ty.bank()))));
        }
        let (bytes, align) = self.size(&formal.var)?;
        Ok((name, Name::Block(self.body.block(bytes, align))))
    }

    /// The pieces in which a parameter block is copied: a scalar at once, an array by its alignment.
    fn pieces(&mut self, formal: &Formal<'a>) -> Lowered<Vec<(u32, u32)>> {
        let (bytes, align) = self.size(&formal.var)?;
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < bytes {
            let left = bytes - at;
            let size = align.min(8).min(1 << left.ilog2());
            pieces.push((at, size));
            at += size;
        }
        Ok(pieces)
    }

    /// Reads an argument into registers of the call.
    fn read_argument(
        &mut self,
        formal: &'a Formal<'a>,
        actual: &Operand<'a>,
        to: Name,
        moved: &mut Vec<Moved>,
    ) -> Lowered {
        if let Some(from) = self.block_named(actual)? {
            return self.read_block(formal, actual, from, to, moved);
        }
        let ty = self.scalar(formal)?;
        let Some(elem) = ty.elem() else {
            return Err(self.fault(actual.at.clone(), "not a parameter type"));
        };
        let value = self.src(actual, ty)?;
        let through = self.body.register(ty.bank());
        self.copy(through, value, ty);
        moved.push(Moved { to, offset: 0, elem, through });
        Ok(())
    }

    /// Reads a result of a subroutine into registers of the call, which go to where the call wants it.
    fn read_result(
        &mut self,
        formal: &'a Formal<'a>,
        actual: &Operand<'a>,
        from: Name,
        moved: &mut Vec<Moved>,
    ) -> Lowered {
        let OperandKind::Name { name, component: None, offset: 0 } = actual.kind else {
            return Err(self.fault(actual.at.clone(), "expected a result parameter"));
        };
        match (self.name(name)?, from) {
            (Some(to @ Name::Block(_)), Name::Block(from)) => self.read_block(formal, actual, from, to, moved),
            (Some(to @ Name::Register(_)), Name::Register(from)) => {
                let ty = self.scalar(formal)?;
                let through = self.body.register(ty.bank());
                self.copy(through, Arg::Reg(from), ty);
                moved.push(Moved { to, offset: 0, elem: Elem::U32, through });
                Ok(())
            }
            _ => Err(self.fault(actual.at.clone(), format!("`{name}` cannot take the result"))),
        }
    }

    fn block_named(&mut self, operand: &Operand<'a>) -> Lowered<Option<u32>> {
        let OperandKind::Name { name, component: None, offset: 0 } = operand.kind else { return Ok(None) };
        Ok(match self.name(name)? {
            Some(Name::Block(block)) => Some(block),
            _ => None,
        })
    }

    fn read_block(
        &mut self,
        formal: &'a Formal<'a>,
        actual: &Operand<'a>,
        from: u32,
        to: Name,
        moved: &mut Vec<Moved>,
    ) -> Lowered {
        let (bytes, _) = self.size(&formal.var)?;
        let smallest = [Some(from), if let Name::Block(to) = to { Some(to) } else { None }];
        let smallest = smallest.into_iter().flatten().map(|block| self.body.blocks[block as usize].bytes).min();
        if smallest.is_some_and(|found| found < bytes) || matches!(to, Name::Register(_)) {
            let message = format!("this parameter does not fit `{}`, which has {bytes} bytes", formal.var.name.text);
            return Err(self.fault(actual.at.clone(), message));
        }
        for (offset, size) in self.pieces(formal)? {
            let (elem, bank) = bits(size);
            let through = self.body.register(bank);
            let op = DraftOp::Param { store: false, block: from, offset, elem, vec: 1 };
            self.emit_draft(op, Class::Logic, &[Arg::Reg(through)], &[], 0);
            moved.push(Moved { to, offset, elem, through });
        }
        Ok(())
    }

    /// Writes a value where it goes.
    fn write(&mut self, moved: &Moved) {
        match moved.to {
            Name::Block(block) => {
                let op = DraftOp::Param { store: true, block, offset: moved.offset, elem: moved.elem, vec: 1 };
                self.emit_draft(op, Class::Logic, &[Arg::Reg(moved.through)], &[], 0);
            }
            Name::Register(to) => {
                let ty = match self.body.banks[to as usize] {
                    Bank::R32 => Ty::B32,
                    Bank::R64 => Ty::B64,
                    Bank::Pred => Ty::PRED,
                };
                self.copy(to, Arg::Reg(moved.through), ty);
            }
            _ => unreachable!("a parameter is a register or a block"),
        }
    }

    /// Lowers the bodies of the subroutines that were called, and of those that they call.
    pub(super) fn lower_subroutines(&mut self) {
        // By number, as a body may call subroutines that nothing called before: they are added at the end.
        let mut number = 0;
        while let Some((function, bound)) = self.subroutines.get(number).cloned() {
            let Subroutine { start, end, .. } = self.body.subroutines[number];
            let stack = self.body.stack();
            self.body.owner = Some(number as u32);
            self.guard = None;
            self.at = function.name.at.clone();
            self.place_label(start);
            let link = |kind| plain_access(kind, Space::Local, Elem::U32);
            let (pointer, site) = ([Arg::Reg(stack.pointer)], [Arg::Reg(stack.link)]);
            self.emit(Op::Mem(link(MemKind::Store)), Class::Mem, &site, &pointer, 0);
            let mut scope = LoweringScope::of_body();
            scope.names.extend(bound);
            self.scopes.push(scope);
            self.calls.push((function.name.text, end));
            self.statements(function.body.as_deref().unwrap_or_default());
            self.calls.pop();
            self.scopes.pop();
            self.guard = None;
            self.at = function.name.at.clone();
            self.place_label(end);
            self.emit(Op::Mem(link(MemKind::Load)), Class::Mem, &site, &pointer, 0);
            self.emit_draft(DraftOp::Return(number as u32), Class::Control, &[], &site, 0);
            self.body.owner = None;
            number += 1;
        }
    }
}
