//! Control flow, calls, barriers and fences (PTX ISA 9.7.12, 9.7.13).

use super::super::super::alu::{AluOp, Combine, Compare, CompareKind, IntCmp};
use super::super::super::ir::{Barrier, BarrierRed, Class, GridStep, Op, Scope, Trap};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::Arg;
use super::super::functions::Call;
use super::super::lower::{Lower, Lowered, Name};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["bra"], |l, i, m| l.bra(i, m)),
    (&["brx"], |l, i, m| l.branch_indexed(i, m)),
    (&["ret", "exit", "trap", "brkpt", "nanosleep", "pmevent", "griddepcontrol"], |l, i, m| l.ending(i, m)),
    (&["call"], |l, i, m| l.call(i, m)),
    (&["bar", "barrier"], |l, i, m| l.barrier(i, m)),
    (&["membar", "fence"], |l, _, m| l.fence(m)),
];

impl<'a> Lower<'_, 'a> {
    pub(super) fn bra(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("uni");
        let [target] = self.operands(i)?;
        let label = self.label(target)?;
        self.branch(label);
        Ok(())
    }

    /// `brx.idx`: a branch to each target in turn, then a fault for lanes whose index is beyond the list.
    pub(super) fn branch_indexed(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("uni");
        if !m.take("idx") {
            return Err(self.fault(i.opcode.at.clone(), "only `brx.idx` is supported"));
        }
        let [index, list] = self.operands(i)?;
        let index = self.src(index, Ty::U32)?;
        let targets = self.branch_targets(list)?;
        // Lanes that do not branch go to the end first, so that each branch below may have a guard of its
        // own.
        let guard = self.guard.take();
        let end = self.body.label();
        if let Some((register, negated)) = guard {
            self.guard = Some((register, !negated));
            self.branch(end);
        }
        let equal = Compare { kind: CompareKind::Int32(IntCmp::Eq), combine: Combine::None };
        for (number, target) in targets.iter().enumerate() {
            let (number, hit) = (self.body.literal(Bank::R32, number as u64), self.body.register(Bank::Pred));
            self.guard = None;
            self.emit(Op::Alu(AluOp::Setp(equal)), Class::Compare, &[Arg::Reg(hit)], &[index, number], 0);
            self.guard = Some((hit, false));
            self.branch(*target);
        }
        self.guard = None;
        self.emit(Op::Trap(Trap::Target(targets.len() as u32)), Class::Control, &[], &[index], 0);
        self.place_label(end);
        self.guard = guard;
        Ok(())
    }

    /// `ret`, `exit`, `trap`, `brkpt`, and instructions that do nothing here.
    pub(super) fn ending(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("uni");
        match i.opcode.text {
            "ret" => self.ret(),
            "exit" => self.emit(Op::Exit, Class::Control, &[], &[], 0),
            "trap" | "brkpt" => self.emit(Op::Trap(Trap::Asked), Class::Control, &[], &[], 0),
            "griddepcontrol" => {
                let steps = [("wait", GridStep::Wait), ("launch_dependents", GridStep::LaunchDependents)];
                let Some(step) = m.one_of(&steps) else {
                    return Err(self.fault(i.opcode.at.clone(), "`griddepcontrol` is `.wait` or `.launch_dependents`"));
                };
                self.emit(Op::Grid(step), Class::Control, &[], &[], 0);
            }
            _ => {
                m.skip(|_| true);
                self.emit(Op::Nop, Class::Control, &[], &[], 0);
            }
        }
        Ok(())
    }

    pub(super) fn call(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("uni");
        let Some(call) = Call::parse(i) else {
            return Err(self.fault(i.opcode.at.clone(), "`call` needs a function"));
        };
        let at = call.callee.at.clone();
        let Some(name) = call.name() else {
            return Err(self.fault(at, "expected the name of a function, or a register that holds its address"));
        };
        if let Some(Name::Register(_)) = self.name(name)? {
            return self.call_indirect(i, name, &call);
        }
        match self.env.functions.get(name) {
            Some(function) if function.body.is_some() => self.call_function(function, &call),
            Some(_) => self.call_external(name, &call),
            None => {
                let (message, env) = (format!("function `{name}` is not declared"), self.env);
                Err(self.fault_among(at, message, name, env.functions.names()))
            }
        }
    }

    pub(super) fn barrier(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.take("cta");
        m.take("aligned");
        if m.take("cluster") {
            return self.cluster_barrier(i, m);
        }
        if m.take("warp") {
            // The lanes of a path are in step anyway.
            m.take("sync");
            self.emit(Op::Nop, Class::Control, &[], &[], 0);
            return Ok(());
        }
        let what = m.one_of(&[("sync", 0), ("arrive", 1), ("red", 2)]).unwrap_or(0);
        let at = i.opcode.at.clone();
        let mut barrier = Barrier { id: 0, wait: what != 1, threads: 0, red: BarrierRed::None, in_registers: false };
        let (mut d, mut p, mut negated) = (Arg::None, Arg::None, 0);
        let mut rest = i.operands.as_slice();
        if what == 2 {
            barrier.red =
                match m.one_of(&[("popc", BarrierRed::Popc), ("and", BarrierRed::And), ("or", BarrierRed::Or)]) {
                    Some(red) => red,
                    None => return Err(self.fault(at, "`bar.red` needs `.popc`, `.and` or `.or`")),
                };
            let bank = self.ty(i, m)?.bank();
            let [first, middle @ .., last] = rest else {
                return Err(self.fault(at, "`bar.red` needs more operands"));
            };
            d = self.dst(first, bank)?;
            (p, negated) = self.src_pred(last)?;
            rest = middle;
        }
        // What is left of the operands is the same for all forms. The instruction holds constants by value.
        let mut numbers = [0u64; 2];
        let mut registers = [Arg::None; 2];
        if rest.is_empty() || rest.len() > 2 {
            return Err(self.fault(at, "a barrier takes a number and optionally a count of threads"));
        }
        for ((number, register), operand) in numbers.iter_mut().zip(&mut registers).zip(rest) {
            match operand.kind {
                OperandKind::Int(value) => *number = value,
                _ => {
                    *register = self.src(operand, Ty::U32)?;
                    barrier.in_registers = true;
                }
            }
        }
        let [id, threads] = numbers;
        if id > 15 {
            return Err(self.fault(rest[0].at.clone(), format!("barrier {id} does not exist (0 to 15 do)")));
        }
        if threads > 1024 || threads % 32 != 0 {
            let message = format!("{threads} threads are not a multiple of 32 up to 1024");
            return Err(self.fault(rest[1].at.clone(), message));
        }
        (barrier.id, barrier.threads) = (id as u8, threads as u16);
        let [id, threads] = registers;
        self.emit(Op::Barrier(barrier), Class::Control, &[d], &[p, id, threads], negated);
        Ok(())
    }

    /// `membar`, `fence`
    pub(super) fn fence(&mut self, m: &mut Mods<'_, 'a>) -> Lowered {
        m.skip(|text| matches!(text, "sc" | "acq_rel" | "acquire" | "release" | "sync_restrict" | "level"));
        m.skip(|text| text.starts_with("sync_restrict::"));
        if m.take("mbarrier_init") {
            // The warps of a CTA share its memory, in which accesses happen in order.
            m.take("cluster");
            self.emit(Op::Fence(Scope::Cta), Class::Control, &[], &[], 0);
            return Ok(());
        }
        if m.take("proxy") {
            // Bulk copies read shared memory as it is, global memory behind the stores that are performed.
            let is_async = m.find(|text| text.starts_with("async").then_some(text)).map(|text| text == "async");
            let scope = if is_async == Some(true) && m.take("shared::cta") { Scope::Cta } else { Scope::Gpu };
            m.skip(|_| true);
            // Fences of other proxies (`.tensormap::generic`, `.alias`) order nothing for bulk copies' bytes.
            if is_async.is_some() {
                self.body.proxy_fences.push(self.at.start);
            }
            self.emit(Op::Fence(scope), Class::Control, &[], &[], 0);
            return Ok(());
        }
        let scope = m.one_of(&[
            ("cta", Scope::Cta),
            ("cluster", Scope::Gpu),
            ("gl", Scope::Gpu),
            ("gpu", Scope::Gpu),
            ("sys", Scope::Sys),
        ]);
        let Some(scope) = scope else {
            return Err(self.fault(self.place(), "a fence needs a scope such as `.gpu`"));
        };
        self.emit(Op::Fence(scope), Class::Control, &[], &[], 0);
        Ok(())
    }

    /// A `.b32` operand that is only checked (member masks).
    pub(super) fn mask(&mut self, operand: &Operand<'a>) -> Lowered<Arg> {
        self.src(operand, Ty::B32)
    }
}
