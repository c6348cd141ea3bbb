//! Calls of functions (PTX ISA 9.7.12, `call`): bodies inlined, indirect calls as a choice among their
//! targets.
//!
//! ```text
//! call (r), %rd1, (a), proto;      setp.eq %p1, %rd1, address of f     f: body; bra end
//!                              ->  @%p1 bra f                      ->  g: body
//!                                  setp.eq %p2, %rd1, address of g     end:
//!                                  @%p2 bra g;  fault
//! ```
//! Each target runs with its lanes, then all meet at the end. A value that is none of the targets is a fault
//! of the run. The targets of `.calltargets` are those listed. Those of `.callprototype` are the functions of
//! its signature whose address is taken somewhere in the file (`functions.rs`). So virtual calls work: a
//! vtable is a variable that holds functions' addresses.
//!
//! Functions that may call themselves are called as subroutines instead (`recursion.rs`); so are larger ones
//! with several callers in a kernel that inlined all would be too large.

use super::super::alu::{AluOp, Combine, Compare, CompareKind, IntCmp};
use super::super::ir::{Class, Op, Trap};
use super::ast::{Formal, Function, Instruction, Operand, OperandKind};
use super::draft::{Arg, DraftOp, VReg};
use super::functions::{Call, allocates};
use super::lower::{Inlining, Lower, Lowered, LoweringScope, Name};
use super::types::{Bank, Ty};

impl<'a> Lower<'_, 'a> {
    /// Lowers a direct call of `function`.
    pub(super) fn call_function(&mut self, function: &'a Function<'a>, call: &Call<'_, 'a>) -> Lowered {
        if let Some(extra) = call.rest.first() {
            return Err(
                self.fault(extra.at.clone(), "a direct call takes results, a function and arguments in parentheses")
            );
        }
        self.call_of(function, call.results, call.arguments)
    }

    /// Lowers a call of the function whose address is in register `callee`.
    pub(super) fn call_indirect(&mut self, i: &'a Instruction<'a>, callee: &str, call: &Call<'_, 'a>) -> Lowered {
        let target = Arg::Reg(self.register(callee, call.callee.at.clone(), Bank::R64)?);
        let list = match call.rest {
            [Operand { kind: OperandKind::Name { name, component: None, offset: 0 }, at }] => {
                match self.callees(name) {
                    Some(list) => list,
                    None => {
                        let message = format!("`{name}` is no `.callprototype` or `.calltargets` here");
                        let known = self.callee_labels();
                        return Err(self.fault_among(at.clone(), message, name, known));
                    }
                }
            }
            [] => {
                let message = "an indirect call names a `.callprototype` or `.calltargets`";
                return Err(self.fault(i.opcode.at.clone(), message));
            }
            [first, ..] => {
                let message = "expected the label of a `.callprototype` or `.calltargets`";
                return Err(self.fault(first.at.clone(), message));
            }
        };
        let env = self.env;
        let reached = env.functions.reached(list).map_err(|word| {
            let message = format!("`{}` is not a function of this file", word.text);
            self.fault_among(word.at.clone(), message, word.text, env.functions.names())
        })?;
        // Lanes that do not call go to the end first, so that each branch below may have a guard of its own.
        let guard = self.guard.take();
        let end = self.body.label();
        if let Some((register, negated)) = guard {
            self.guard = Some((register, !negated));
            self.branch(end);
        }
        let mut starts = Vec::new();
        for function in &reached {
            let address = self.env.functions.address(function.name.text).expect("it is a function of the file");
            let address = self.body.literal(Bank::R64, address);
            let hit = self.body.register(Bank::Pred);
            let equal = Compare { kind: CompareKind::Int64(IntCmp::Eq), combine: Combine::None };
            self.guard = None;
            self.emit(Op::Alu(AluOp::Setp(equal)), Class::Compare, &[Arg::Reg(hit)], &[target, address], 0);
            self.guard = Some((hit, false));
            let start = self.body.label();
            self.branch(start);
            starts.push(start);
        }
        // Lanes that are still here hit no target.
        self.guard = None;
        self.emit(Op::Trap(Trap::Callee), Class::Control, &[], &[target], 0);
        // The bodies come after all tests. Each goes on to the end; the last one falls through to it.
        for (number, (function, start)) in reached.iter().zip(starts).enumerate() {
            self.place_label(start);
            self.call_of(function, call.results, call.arguments)?;
            if number + 1 < reached.len() {
                self.branch(end);
            }
        }
        self.place_label(end);
        self.guard = guard;
        Ok(())
    }

    /// Calls `function` with these argument and result names: its body is inlined, unless it may call itself.
    fn call_of(&mut self, function: &'a Function<'a>, results: &[Operand<'a>], arguments: &[Operand<'a>]) -> Lowered {
        let name = function.name.text;
        let at = self.place();
        if self.calls.len() >= 64 {
            return Err(self.fault(at, "calls nest too deep"));
        }
        for (what, formals, actuals) in
            [("results", &function.returns, results), ("arguments", &function.params, arguments)]
        {
            if formals.len() != actuals.len() {
                let message = format!("`{name}` has {} {what}, the call gives {}", formals.len(), actuals.len());
                return Err(self.fault(at, message));
            }
        }
        if let Some(cycle) = self.env.functions.cycle(name) {
            return self.call_subroutine(function, (cycle, true), results, arguments);
        }
        if self.inlining == Inlining::Small
            && let Some(cycle) = self.env.functions.outlined(name)
        {
            return self.call_subroutine(function, (cycle, false), results, arguments);
        }
        // Arguments and results are names of the caller, so they are bound before the callee's scope, which
        // hides those, is opened.
        let mut scope = LoweringScope::of_body();
        for (formal, actual) in function.params.iter().zip(arguments) {
            let bound = self.bind(formal, actual)?;
            scope.names.insert(formal.var.name.text, bound);
        }
        let mut copies = Vec::new();
        for (formal, actual) in function.returns.iter().zip(results) {
            let bound = self.bind_result(formal, actual, &mut copies)?;
            scope.names.insert(formal.var.name.text, bound);
        }
        let behind = self.body.label();
        let (guard, place) = (self.guard, self.place());
        // All lanes save the top of their stacks: those that go round the body meet the others behind it, and
        // restore what they have.
        self.guard = None;
        let saved_top = allocates(function).then(|| self.save_stack_top());
        match guard {
            None => self.emit(Op::Nop, Class::Control, &[], &[], 0),
            // Lanes that do not call go round the body.
            Some((register, negated)) => {
                self.guard = Some((register, !negated));
                self.branch(behind);
            }
        }
        self.guard = None;
        self.calls.push((name, behind));
        self.scopes.push(scope);
        if let Some(body) = &function.body {
            self.statements(body);
        }
        self.scopes.pop();
        self.calls.pop();
        self.place_label(behind);
        self.at = place;
        if let Some(saved) = saved_top {
            self.restore_stack_top(saved);
        }
        self.guard = guard;
        // Under the caller's guard again: lanes that did not call keep what their result registers hold.
        for (to, from, ty) in copies {
            self.copy(to, from, ty);
        }
        Ok(())
    }

    /// What a formal argument is in the callee's copy.
    fn bind(&mut self, formal: &'a Formal<'a>, actual: &Operand<'a>) -> Lowered<Name> {
        if let OperandKind::Name { name, component: None, offset: 0 } = actual.kind
            && let Some(Name::Block(block)) = self.name(name)?
        {
            return Ok(Name::Block(block));
        }
        let ty = self.scalar(formal)?;
        let value = self.src(actual, ty)?;
        if formal.register {
            let register = self.body.register(ty.bank());
            self.copy(register, value, ty);
            return Ok(Name::Register(register));
        }
        let block = self.body.block(ty.bytes(), ty.bytes());
        let Some(elem) = ty.elem() else {
            return Err(self.fault(actual.at.clone(), "not a parameter type"));
        };
        let op = DraftOp::Param { store: true, block, offset: 0, elem, vec: 1 };
        self.emit_draft(op, Class::Logic, &[value], &[], 0);
        Ok(Name::Block(block))
    }

    fn bind_result(
        &mut self,
        formal: &'a Formal<'a>,
        actual: &Operand<'a>,
        copies: &mut Vec<(VReg, Arg, Ty)>,
    ) -> Lowered<Name> {
        let OperandKind::Name { name, component: None, offset: 0 } = actual.kind else {
            return Err(self.fault(actual.at.clone(), "expected a result parameter"));
        };
        match self.name(name)? {
            Some(Name::Block(block)) if !formal.register => Ok(Name::Block(block)),
            Some(Name::Register(to)) if formal.register => {
                let ty = self.scalar(formal)?;
                let register = self.body.register(ty.bank());
                copies.push((to, Arg::Reg(register), ty));
                Ok(Name::Register(register))
            }
            _ => Err(self.fault(actual.at.clone(), format!("`{name}` cannot take the result"))),
        }
    }

    pub(super) fn scalar(&mut self, formal: &Formal<'a>) -> Lowered<Ty> {
        match Ty::parse(formal.var.ty.text) {
            Some(ty) if formal.var.dims.is_empty() && formal.var.vector == 1 && ty.bits <= 64 => Ok(ty),
            _ => Err(self.fault(self.place(), format!("`{}` needs a parameter block", formal.var.name.text))),
        }
    }

    pub(super) fn copy(&mut self, to: VReg, from: Arg, ty: Ty) {
        let op = match ty.bank() {
            Bank::R32 => AluOp::Mov32,
            Bank::R64 => AluOp::Mov64,
            Bank::Pred => AluOp::MovPred,
        };
        self.emit(Op::Alu(op), Class::Logic, &[Arg::Reg(to)], &[from], 0);
    }
}
