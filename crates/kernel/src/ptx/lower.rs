//! Syntax tree to draft instructions: scopes, registers, labels. Calls are in `calls.rs`.
//!
//! Every body, inlined or not, opens a scope of its own; braces nest further ones. A `.func` call becomes a
//! copy of the function's body: parameter blocks are shared between caller and callee by number, `ret`
//! becomes a branch after the copy, and the `call` itself stays one instruction. So instruction counts are
//! those of the PTX text.
//!
//! Over 450 lines: scopes and bodies are one walk over the tree, whose state every part of it needs.

use hashbrown::HashMap;

use super::super::alu::AluOp;
use super::super::ir::{Class, Op, Param};
use super::ast::{Function, Operand, OperandKind, PtxWord, Statement, Var};
use super::draft::{Arg, Body, Draft, DraftOp, Label, Place, VReg};
use super::functions::{Callees, Functions};
use super::layout::Symbol;
use super::parser::Reported;
use super::size::size_of;
use super::token::Bytes;
use super::types::{Bank, Ty};
use durawarp_base::diagnostic::Diagnostic;

/// The result of lowering something: done, or a fault was recorded.
pub(super) type Lowered<T = ()> = Result<T, Reported>;

/// Instructions after inlining, at most.
const MAX_CODE: usize = 1 << 20;

/// Virtual registers of a kernel, at most.
const MAX_REGISTERS: usize = 1 << 21;

/// Faults of one kernel that are reported, at most.
const MAX_FAULTS: usize = 100;

/// Told of the first hint of a file.
pub(super) const HINTS_IGNORED: &str = "cache policies and hints on evictions (`createpolicy`, `.L2::cache_hint`, `.L2::evict_...`, `discard`) have no effect";

/// Told of the first access to multicast memory of a file.
pub(super) const ONE_OF_A_TEAM: &str =
    "multicast memory is that of one GPU: `multimem` loads, stores and reduces in global memory";

/// What is told once a file.
pub(super) const TOLD_ONCE: [&str; 2] = [HINTS_IGNORED, ONE_OF_A_TEAM];

/// What a module offers to its kernels.
pub(super) struct Env<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    /// Addresses of shared variables as values name the CTA (`cluster`, on pairs).
    pub(super) names_ranks: bool,
    pub(super) symbols: HashMap<&'a str, Symbol<'a>>,
    pub(super) functions: Functions<'a>,
    /// Variables in global and constant memory that functions declare, by the place of their declaration.
    pub(super) statics: HashMap<usize, Symbol<'a>>,
    /// Names of the kernels.
    pub(super) kernels: Vec<&'a str>,
    /// Where a launch's constant bank holds the parameter block.
    pub(super) param_bank: u32,
    /// The workspace of `grid.sync()` among the module's globals, where its text asks for one.
    pub(super) grid_workspace: Option<u32>,
    /// Bytes of a thread's stack, in kernels with recursive functions.
    pub(super) stack_bytes: u32,
}

/// What a name in a body stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name {
    Register(VReg),
    /// Registers of a vector: the first, and how many.
    Vector(VReg, u8),
    /// A variable in global memory: index in [`super::super::ir::Module::globals`].
    Global(u32),
    /// A variable in constant memory: byte offset in the bank.
    Const(u32),
    /// A parameter block of a call.
    Block(u32),
    /// A parameter of the entry: byte offset in the parameter block.
    EntryParam(u32),
    /// Byte offset in static shared memory.
    Shared(u32),
    DynamicShared,
    /// A variable in local memory.
    Local(Place),
}

#[derive(Default)]
pub(super) struct LoweringScope<'a> {
    pub(super) names: HashMap<&'a str, Name>,
    /// `%r<5>`: prefix, count, first register, registers of each.
    ranges: Vec<(&'a str, u64, VReg, u8)>,
    labels: HashMap<&'a str, Label>,
    /// Labels of `.callprototype` and `.calltargets`.
    callees: Vec<(&'a str, Callees<'a>)>,
    /// Labels of `.branchtargets`.
    pub(super) branches: HashMap<&'a str, &'a [Operand<'a>]>,
    /// Names of outer scopes are out of sight: the body of a function.
    opaque: bool,
}

/// A register, or a vector of them.
fn registers_from(first: VReg, vector: u8) -> Name {
    if vector == 1 { Name::Register(first) } else { Name::Vector(first, vector) }
}

impl LoweringScope<'_> {
    /// That of a function's body, from which outer names are out of sight.
    pub(super) fn of_body() -> Self {
        LoweringScope { opaque: true, ..LoweringScope::default() }
    }
}

/// Which functions a kernel inlines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Inlining {
    /// All that do not call themselves.
    All,
    /// All, which was found to be too much.
    TooMuch,
    /// Small ones, and those called once; the others are subroutines.
    Small,
}

/// A kernel being lowered.
pub(super) struct Lower<'e, 'a> {
    pub(super) env: &'e Env<'a>,
    pub(super) body: Body,
    pub(super) faults: Vec<Diagnostic>,
    /// The carry flag, once it is used.
    pub(super) carry: Option<VReg>,
    /// Registers that hold the handle of a texture or a surface, and its name.
    pub(super) handles: HashMap<VReg, String>,
    /// Parameters of the entry.
    pub(super) params: Vec<Param>,
    pub(super) scopes: Vec<LoweringScope<'a>>,
    /// Shared variables by the place of their declaration: one each, however often the body is inlined.
    shared: HashMap<usize, Name>,
    /// Functions that call themselves, by the number of their subroutine, and the scopes of their parameters.
    pub(super) subroutines: Vec<(&'a Function<'a>, Vec<(&'a str, Name)>)>,
    /// Functions whose bodies are being lowered, and where their `ret` goes.
    pub(super) calls: Vec<(&'a str, Label)>,
    /// Of [`TOLD_ONCE`], by its place: the kernel was told.
    told: [bool; TOLD_ONCE.len()],
    pub(super) inlining: Inlining,
    /// Its `tcgen05` are of pairs of CTAs, as far as one said so.
    pub(super) paired: Option<bool>,
    pub(super) guard: Option<(VReg, bool)>,
    pub(super) at: Bytes,
}

impl<'e, 'a> Lower<'e, 'a> {
    pub(super) fn new(env: &'e Env<'a>, inlining: Inlining) -> Self {
        Lower {
            env,
            body: Body::default(),
            faults: Vec::new(),
            carry: None,
            handles: HashMap::new(),
            params: Vec::new(),
            scopes: Vec::new(),
            shared: HashMap::new(),
            subroutines: Vec::new(),
            calls: Vec::new(),
            told: [false; TOLD_ONCE.len()],
            inlining,
            paired: None,
            guard: None,
            at: 0..0,
        }
    }

    /// Records a fault at a place.
    pub(super) fn fault(&mut self, at: Bytes, message: impl Into<String>) -> Reported {
        self.record(at, message, |fault| fault)
    }

    fn record(
        &mut self,
        at: Bytes,
        message: impl Into<String>,
        advise: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> Reported {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(advise(Diagnostic::at(self.env.file, self.env.text, at, message)));
        }
        Reported
    }

    /// Records a fault with the nearest of `valid` as advice.
    pub(super) fn fault_near(&mut self, at: Bytes, message: String, found: &str, valid: &[&'static str]) -> Reported {
        self.record(at, message, |fault| fault.with_nearest(found, valid.iter().copied()))
    }

    /// Records that `found` is no name of its kind, with the nearest of those that are.
    pub(super) fn fault_among(
        &mut self,
        at: Bytes,
        message: String,
        found: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Reported {
        self.record(at, message, |fault| fault.with_nearest(found, names))
    }

    pub(super) fn warn(&mut self, at: Bytes, message: impl Into<String>) {
        self.body.warnings.push(Diagnostic::at(self.env.file, self.env.text, at, message));
    }

    /// Warns of one of [`TOLD_ONCE`], if the kernel was not told yet.
    pub(super) fn warn_once(&mut self, at: Bytes, message: &'static str) {
        let Some(told) = self.told.iter_mut().zip(TOLD_ONCE).find(|(_, of)| *of == message).map(|(told, _)| told)
        else {
            return self.warn(at, message);
        };
        if !std::mem::replace(told, true) {
            self.warn(at, message);
        }
    }

    /// More code or registers than a kernel may have.
    fn too_large(&mut self, at: Bytes) -> Reported {
        self.inlined_too_much();
        self.fault(at, "the kernel is too large once its calls are inlined")
    }

    fn inlined_too_much(&mut self) {
        if self.inlining == Inlining::All {
            self.inlining = Inlining::TooMuch;
        }
    }

    /// The place of the current instruction.
    pub(super) fn place(&self) -> Bytes {
        self.at.clone()
    }

    /// Lowers an entry's body.
    pub(super) fn entry(&mut self, function: &'a Function<'a>, params: &[Param]) {
        let mut scope = LoweringScope::of_body();
        for (formal, param) in function.params.iter().zip(params) {
            scope.names.insert(formal.var.name.text, Name::EntryParam(param.offset));
        }
        self.params = params.to_vec();
        self.scopes.push(scope);
        if let Some(body) = &function.body {
            self.statements(body);
        }
        self.scopes.pop();
        let falls_off =
            self.body.code.last().is_none_or(|last| {
                last.guard.is_some() || !matches!(last.op, DraftOp::Op(Op::Exit) | DraftOp::Branch(_))
            });
        // A label after the last instruction is where lanes end.
        let labelled = self.body.labels.contains(&Some(self.body.code.len() as u32));
        if falls_off || labelled {
            self.guard = None;
            self.at = function.name.at.clone();
            self.emit(Op::Exit, Class::Control, &[], &[], 0);
        }
        self.lower_subroutines();
        self.begin_stack();
    }

    /// Room for `alloca`, if the code has one: behind all other local memory, its address in a register from
    /// the start.
    fn begin_stack(&mut self) {
        let Some(top) = self.body.stack_top else { return };
        let Place::Fixed(at) = self.body.allocate_local(self.env.stack_bytes, 16, None) else { return };
        let base = self.body.literal(Bank::R64, u64::from(at));
        self.guard = None;
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[Arg::Reg(top)], &[base], 0);
        self.body.code.rotate_right(1);
        // A branch to the first instruction does not come by the new one.
        self.body.labels.iter_mut().flatten().for_each(|label| *label += 1);
    }

    pub(super) fn statements(&mut self, statements: &'a [Statement<'a>]) {
        // Labels may be used before they are placed.
        for statement in statements {
            if let Statement::Label(word) = statement {
                let label = self.body.label();
                let scope = self.scopes.last_mut().expect("a scope is open");
                if scope.labels.insert(word.text, label).is_some() {
                    self.fault(word.at.clone(), format!("label `{}` is defined twice", word.text));
                }
            } else if let Some((word, callees)) = Callees::declared(statement) {
                let scope = self.scopes.last_mut().expect("a scope is open");
                let known = scope.callees.iter().any(|(label, _)| *label == word.text);
                scope.callees.push((word.text, callees));
                if known {
                    self.fault(word.at.clone(), format!("label `{}` is defined twice", word.text));
                }
            } else if let Statement::BranchTargets { label, targets } = statement {
                let scope = self.scopes.last_mut().expect("a scope is open");
                if scope.branches.insert(label.text, targets).is_some() {
                    self.fault(label.at.clone(), format!("label `{}` is defined twice", label.text));
                }
            }
        }
        for statement in statements {
            // Faults are recorded; the rest is still worth a look.
            let _ = self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'a Statement<'a>) -> Lowered {
        match statement {
            Statement::Registers(vector, ty, names) => self.declare_registers(*vector, ty, names),
            Statement::Var(var) => self.declare(var),
            // Noted beforehand.
            Statement::Prototype { .. } | Statement::Targets { .. } | Statement::BranchTargets { .. } => Ok(()),
            Statement::Label(word) => {
                let label = self.scopes.last().and_then(|s| s.labels.get(word.text)).copied();
                if let Some(label) = label {
                    self.body.labels[label as usize] = Some(self.body.code.len() as u32);
                }
                Ok(())
            }
            Statement::Block(block) => {
                self.scopes.push(LoweringScope::default());
                self.statements(block);
                self.scopes.pop();
                Ok(())
            }
            Statement::Instruction(instruction) => {
                self.at = instruction.opcode.at.clone();
                if self.body.code.len() >= MAX_CODE {
                    return Err(Reported);
                }
                self.guard = match &instruction.guard {
                    None => None,
                    Some((word, negated)) => {
                        let register = self.register(word.text, word.at.clone(), Bank::Pred)?;
                        Some((register, *negated))
                    }
                };
                self.select(instruction)?;
                if self.body.code.len() >= MAX_CODE {
                    return Err(self.too_large(self.place()));
                }
                Ok(())
            }
        }
    }

    fn declare_registers(&mut self, vector: u8, ty: &PtxWord<'a>, names: &[(PtxWord<'a>, Option<u64>)]) -> Lowered {
        let (bank, vector) = match (Ty::parse(ty.text), ty.text) {
            (Some(ty), _) if ty.bits <= 64 => (ty.bank(), vector),
            // A register of 128 bits is a vector of its halves, the lower one first.
            (Some(Ty::B128), _) if vector == 1 => (Bank::R64, 2),
            // Types without arithmetic here still have registers.
            (_, "e4m3x2" | "e5m2x2" | "tf32") => (Bank::R32, vector),
            _ => return Err(self.fault(ty.at.clone(), format!("register type `.{}` is not supported", ty.text))),
        };
        for (name, count) in names {
            let each = count.unwrap_or(1);
            let n = each.saturating_mul(u64::from(vector));
            let first = self.body.banks.len() as VReg;
            if n > (MAX_REGISTERS - self.body.banks.len().min(MAX_REGISTERS)) as u64 {
                self.inlined_too_much();
                self.fault(name.at.clone(), format!("{n} registers are too many"));
                continue;
            }
            self.body.banks.extend(std::iter::repeat_n(bank, n as usize));
            let scope = self.scopes.last_mut().expect("a scope is open");
            if count.is_some() {
                scope.ranges.push((name.text, each, first, vector));
            } else {
                scope.names.insert(name.text, registers_from(first, vector));
            }
        }
        Ok(())
    }

    fn declare(&mut self, var: &'a Var<'a>) -> Lowered {
        let name = match var.space {
            "shared" => self.shared_variable(var)?,
            "local" => {
                let (bytes, align) = self.size(var)?;
                Name::Local(self.body.allocate_local(bytes, align, self.body.owner))
            }
            "param" => {
                let (bytes, align) = self.size(var)?;
                Name::Block(self.body.block(bytes, align))
            }
            // One whose declaration has a fault was reported with those of the module.
            _ => match self.env.statics.get(&var.name.at.start) {
                Some(&Symbol::Global(index)) => Name::Global(index),
                Some(&Symbol::Const(offset)) => Name::Const(offset),
                _ => return Err(Reported),
            },
        };
        self.scopes.last_mut().expect("a scope is open").names.insert(var.name.text, name);
        Ok(())
    }

    pub(super) fn size(&mut self, var: &Var<'_>) -> Lowered<(u32, u32)> {
        match size_of(var) {
            Ok((bytes, align)) if bytes <= 1 << 24 => Ok((bytes as u32, align as u32)),
            Ok((bytes, _)) => {
                Err(self.fault(var.name.at.clone(), format!("`{}` is too large: {bytes} bytes", var.name.text)))
            }
            Err((at, message)) => Err(self.fault(at, message)),
        }
    }

    /// Lays out a shared variable at its first use.
    fn shared_variable(&mut self, var: &Var<'_>) -> Lowered<Name> {
        let key = var.name.at.start;
        if let Some(&name) = self.shared.get(&key) {
            return Ok(name);
        }
        let (bytes, align) = self.size(var)?;
        let name = if var.external {
            self.body.dynamic_shared = true;
            Name::DynamicShared
        } else {
            Name::Shared(super::draft::append(&mut self.body.shared_bytes, bytes, align))
        };
        self.shared.insert(key, name);
        Ok(name)
    }

    /// What a name stands for in the scopes of the current body.
    fn local_name(&self, name: &str) -> Option<Name> {
        for scope in self.scopes.iter().rev() {
            if let Some(&found) = scope.names.get(name) {
                return Some(found);
            }
            let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
            // `%r<12>` declares %r0 to %r11; a prefix may itself end in digits.
            for split in digits..name.len() {
                let (prefix, number) = name.split_at(split);
                if number.len() > 1 && number.starts_with('0') {
                    continue;
                }
                let Ok(number) = number.parse::<u64>() else { continue };
                let range = scope.ranges.iter().find(|(p, n, ..)| *p == prefix && number < *n);
                if let Some(&(_, _, first, vector)) = range {
                    return Some(registers_from(first + number as VReg * VReg::from(vector), vector));
                }
            }
            if scope.opaque {
                return None;
            }
        }
        None
    }

    /// What a name stands for: in the body, or a shared variable of the module. Other module names are
    /// `None`.
    pub(super) fn name(&mut self, name: &str) -> Lowered<Option<Name>> {
        if let Some(found) = self.local_name(name) {
            return Ok(Some(found));
        }
        match self.env.symbols.get(name) {
            Some(Symbol::Shared(var)) => self.shared_variable(var).map(Some),
            _ => Ok(None),
        }
    }

    /// The register of this name, which must be in `bank`.
    pub(super) fn register(&mut self, name: &str, at: Bytes, bank: Bank) -> Lowered<VReg> {
        let register = self.any_register(name, at.clone())?;
        let found = self.body.banks[register as usize];
        if found == bank {
            return Ok(register);
        }
        let said = |bank| match bank {
            Bank::R32 => "a register of up to 32 bits",
            Bank::R64 => "a 64-bit register",
            Bank::Pred => "a predicate register",
        };
        Err(self.fault(at, format!("expected {}, but `{name}` is {}", said(bank), said(found))))
    }

    /// The register of this name, in whatever bank.
    pub(super) fn any_register(&mut self, name: &str, at: Bytes) -> Lowered<VReg> {
        match self.name(name)? {
            Some(Name::Register(register)) => Ok(register),
            Some(Name::Vector(_, elements)) => {
                let last = ["x", "y", "z", "w"][usize::from(elements) - 1];
                let message = format!("`{name}` is a vector of registers: one is `{name}.x` to `{name}.{last}`");
                Err(self.fault(at, message))
            }
            Some(_) => Err(self.fault(at, format!("`{name}` is not a register"))),
            None if self.env.symbols.contains_key(name) || self.env.functions.get(name).is_some() => {
                Err(self.fault(at, format!("`{name}` is not a register")))
            }
            None => Err(self.undeclared(name, at)),
        }
    }

    /// Records that a name is not declared.
    pub(super) fn undeclared(&mut self, name: &str, at: Bytes) -> Reported {
        let advice = self.register_advice(name);
        self.record(at, format!("`{name}` is not declared"), |fault| match advice {
            Some(advice) => fault.with_help(advice),
            None => fault,
        })
    }

    /// What is declared with the prefix of an undeclared register.
    pub(super) fn register_advice(&self, name: &str) -> Option<String> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        for scope in self.scopes.iter().rev() {
            if let Some((_, n, ..)) = scope.ranges.iter().find(|(p, n, ..)| *p == prefix && *n > 0) {
                return Some(format!("`{prefix}<{n}>` declares `{prefix}0` to `{prefix}{}`", n - 1));
            }
            if scope.opaque {
                return None;
            }
        }
        None
    }

    /// The label of this name.
    pub(super) fn label(&mut self, operand: &Operand<'a>) -> Lowered<Label> {
        let OperandKind::Name { name, component: None, offset: 0 } = operand.kind else {
            return Err(self.fault(operand.at.clone(), "expected a label"));
        };
        for scope in self.scopes.iter().rev() {
            if let Some(&label) = scope.labels.get(name) {
                return Ok(label);
            }
            if scope.opaque {
                break;
            }
        }
        Err(self.fault(operand.at.clone(), format!("label `{name}` is not defined here")))
    }

    /// The labels of a `.branchtargets` of this name.
    pub(super) fn branch_targets(&mut self, list: &Operand<'a>) -> Lowered<Vec<Label>> {
        let OperandKind::Name { name, component: None, offset: 0 } = list.kind else {
            return Err(self.fault(list.at.clone(), "expected the label of a `.branchtargets`"));
        };
        for scope in self.scopes.iter().rev() {
            if let Some(&targets) = scope.branches.get(name) {
                return targets.iter().map(|target| self.label(target)).collect();
            }
            if scope.opaque {
                break;
            }
        }
        Err(self.fault(list.at.clone(), format!("`{name}` is no `.branchtargets` here")))
    }

    /// What a `.callprototype` or `.calltargets` of this name says.
    pub(super) fn callees(&self, name: &str) -> Option<Callees<'a>> {
        for scope in self.scopes.iter().rev() {
            if let Some(&(_, callees)) = scope.callees.iter().find(|(label, _)| *label == name) {
                return Some(callees);
            }
            if scope.opaque {
                return None;
            }
        }
        None
    }

    /// Labels of `.callprototype` and `.calltargets` in sight.
    pub(super) fn callee_labels(&self) -> Vec<&'a str> {
        let outermost = self.scopes.iter().rposition(|scope| scope.opaque).unwrap_or(0);
        self.scopes[outermost..].iter().flat_map(|scope| &scope.callees).map(|(label, _)| *label).collect()
    }

    /// Places a label at the end of the code.
    pub(super) fn place_label(&mut self, label: Label) {
        self.body.labels[label as usize] = Some(self.body.code.len() as u32);
    }

    /// Appends an instruction with the current guard and place.
    pub(super) fn emit(&mut self, op: Op, class: Class, dst: &[Arg], src: &[Arg], imm: i32) {
        self.emit_draft(DraftOp::Op(op), class, dst, src, imm);
    }

    pub(super) fn emit_draft(&mut self, op: DraftOp, class: Class, dst: &[Arg], src: &[Arg], imm: i32) {
        let pad = |args: &[Arg]| std::array::from_fn(|i| args.get(i).copied().unwrap_or(Arg::None));
        let (dst, src) = (pad(dst), pad(src));
        self.body.code.push(Draft {
            op,
            guard: self.guard,
            dst,
            src,
            more: [Arg::None; 9],
            group: None,
            tensor: None,
            imm,
            class,
            at: self.at.start,
        });
    }

    /// The body being lowered is that of a function, not of the kernel.
    pub(super) fn inlined(&self) -> bool {
        !self.calls.is_empty()
    }

    /// `bra`
    pub(super) fn branch(&mut self, label: Label) {
        self.emit_draft(DraftOp::Branch(label), Class::Control, &[], &[], 0);
    }

    /// `ret`: the lanes end, or go after the inlined body.
    pub(super) fn ret(&mut self) {
        match self.calls.last() {
            Some(&(_, behind)) => self.branch(behind),
            None => self.emit(Op::Exit, Class::Control, &[], &[], 0),
        }
    }
}
