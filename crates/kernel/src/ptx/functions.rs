//! The `.func`s of a file: their addresses, which of them an indirect call may reach, and which may call
//! themselves.
//!
//! Source: PTX ISA 8.x, `call` (section 9.7.12) and "Control Flow Directives" (`.calltargets`,
//! `.callprototype`).
//!
//! Addresses are made up. Function number `n`, in the order in which the text names functions first, has the
//! address [`CODE_WINDOW`] + 16 (n + 1), the same in every run. No code lies there: an access to it is out of
//! bounds. A function without a body has an address too (a vtable may hold that of `__cxa_pure_virtual`), but
//! no call reaches it.
//!
//! The address of a function counts as *taken* when the text names the function anywhere but as the callee of
//! a direct call: as an operand or in an initialiser. Dead code and functions without a call count, so the
//! set is never too small. The set of functions that may call themselves is never too small either: an
//! indirect call counts as a call of all functions that it may reach.

use std::cell::OnceCell;

use hashbrown::HashMap;

use super::super::dataflow::Edges;
use super::super::memory::CODE_WINDOW;
use super::ast::{File, Formal, Function, Init, Instruction, ModuleItem, Operand, OperandKind, PtxWord, Statement};
use super::size::size_of;

/// A `call`: its results, its callee, its arguments, and the name of its prototype or list of targets.
pub(super) struct Call<'i, 'a> {
    pub(super) results: &'i [Operand<'a>],
    pub(super) callee: &'i Operand<'a>,
    pub(super) arguments: &'i [Operand<'a>],
    /// At most one in a sound call.
    pub(super) rest: &'i [Operand<'a>],
}

impl<'i, 'a> Call<'i, 'a> {
    /// The parts of a `call`; `None` without a callee.
    pub(super) fn parse(inst: &'i Instruction<'a>) -> Option<Self> {
        let (results, rest): (&'i [Operand<'a>], _) = match inst.operands.as_slice() {
            [Operand { kind: OperandKind::List(results), .. }, rest @ ..] => (results, rest),
            rest => (&[], rest),
        };
        let (callee, rest) = rest.split_first()?;
        let (arguments, rest): (&'i [Operand<'a>], _) = match rest {
            [Operand { kind: OperandKind::List(arguments), .. }, rest @ ..] => (arguments, rest),
            // A parenthesised constant argument.
            [one @ Operand { kind: OperandKind::Int(_), .. }, rest @ ..] => (std::slice::from_ref(one), rest),
            rest => (&[], rest),
        };
        Some(Call { results, callee, arguments, rest })
    }

    /// The name of the callee: a function, or the register of an indirect call.
    pub(super) fn name(&self) -> Option<&'a str> {
        match self.callee.kind {
            OperandKind::Name { name, component: None, offset: 0 } => Some(name),
            _ => None,
        }
    }
}

/// Which functions an indirect call may reach.
#[derive(Debug, Clone, Copy)]
pub(super) enum Callees<'a> {
    /// Results and parameters of `.callprototype`: every function of this signature whose address is taken.
    Prototype(&'a [Formal<'a>], &'a [Formal<'a>]),
    /// `.calltargets`: these.
    Targets(&'a [PtxWord<'a>]),
}

impl<'a> Callees<'a> {
    /// What a statement declares, under which label.
    pub(super) fn declared(statement: &'a Statement<'a>) -> Option<(&'a PtxWord<'a>, Self)> {
        match statement {
            Statement::Prototype { label, returns, params } => Some((label, Callees::Prototype(returns, params))),
            Statement::Targets { label, targets } => Some((label, Callees::Targets(targets))),
            _ => None,
        }
    }
}

/// The `.func`s of a file.
#[derive(Default)]
pub(super) struct Functions<'a> {
    by_name: HashMap<&'a str, usize>,
    /// The kernels, in the order of their first mention.
    kernels: Vec<&'a str>,
    /// In the order of their first mention; a definition in the place of its declarations.
    all: Vec<&'a Function<'a>>,
    /// The address of each is taken.
    taken: Vec<bool>,
    /// The cycle of the call graph that each is on, `u32::MAX` for those on none.
    cycle: Vec<u32>,
    /// Their text.
    file: Option<&'a File<'a>>,
    /// Which are worth a subroutine where all functions inlined are too many: few files ask.
    outlined: OnceCell<Vec<bool>>,
}

/// Instructions of a function, with those that it inlines, that is worth a subroutine where all functions
/// inlined are too many: its call takes about as many as this, chosen.
const WORTH_A_CALL: u32 = 32;

impl<'a> Functions<'a> {
    pub(super) fn collect(file: &'a File<'a>) -> Self {
        let mut functions = Functions { file: Some(file), ..Functions::default() };
        for function in file.functions().filter(|function| !function.entry) {
            // A declaration may precede or follow its definition.
            let next = functions.all.len();
            let number = *functions.by_name.entry(function.name.text).or_insert(next);
            match functions.all.get_mut(number) {
                None => functions.all.push(function),
                Some(known) if known.body.is_none() => *known = function,
                Some(_) => {}
            }
        }
        // An alias is another name of a function, declared or not.
        for item in &file.items {
            if let ModuleItem::Alias(name, of) = item
                && let Some(&number) = functions.by_name.get(of.text)
            {
                functions.by_name.insert(name.text, number);
            }
        }
        for kernel in file.functions().filter(|function| function.entry) {
            if !functions.kernels.contains(&kernel.name.text) {
                functions.kernels.push(kernel.name.text);
            }
        }
        functions.taken = vec![false; functions.all.len()];
        for item in &file.items {
            match item {
                ModuleItem::Var(var) => {
                    if let Some(init) = &var.init {
                        functions.take_initialiser(init);
                    }
                }
                ModuleItem::Alias(..) => {}
                ModuleItem::Function(function) => {
                    functions.take_statements(function.body.as_deref().unwrap_or_default())
                }
            }
        }
        let reached: Vec<Vec<u32>> = functions.all.iter().map(|function| functions.calls_of(function)).collect();
        let mut edges = Edges { before: vec![Vec::new(); reached.len()], after: reached };
        for (number, after) in edges.after.iter().enumerate() {
            after.iter().for_each(|&to| edges.before[to as usize].push(number as u32));
        }
        functions.cycle = edges.cycles(&vec![false; edges.len()]);
        functions
    }

    /// Which functions have several callers and more instructions than a call of them takes.
    fn worth_a_call(&self) -> Vec<bool> {
        let count = self.all.len();
        // Of each its own instructions, what it calls, and how often the text calls it.
        let (mut own, mut callees, mut calls) = (vec![0; count], vec![Vec::new(); count], vec![0; count]);
        for function in self.file.into_iter().flat_map(File::functions) {
            let number = (!function.entry).then(|| self.by_name[function.name.text]);
            walk(function.body.as_deref().unwrap_or_default(), &mut |statement| {
                let Statement::Instruction(inst) = statement else { return };
                number.into_iter().for_each(|number| own[number] += 1);
                let callee = (inst.opcode.text == "call").then(|| Call::parse(inst)?.name()).flatten();
                if let Some(&callee) = callee.and_then(|name| self.by_name.get(name)) {
                    number.into_iter().for_each(|number: usize| callees[number].push(callee));
                    calls[callee] += 1;
                }
            });
        }
        // A function is looked at behind all that it inlines; what calls itself is a subroutine anyway.
        let mut outlined = vec![false; count];
        let mut sizes: Vec<Option<u64>> =
            self.cycle.iter().map(|&cycle| (cycle != u32::MAX).then_some(u64::from(WORTH_A_CALL))).collect();
        let mut stack: Vec<usize> = (0..count).collect();
        while let Some(&number) = stack.last() {
            let unknown = callees[number].iter().find(|&&callee| sizes[callee].is_none());
            if let (None, Some(&callee)) = (sizes[number], unknown) {
                stack.push(callee);
                continue;
            }
            stack.pop();
            if sizes[number].is_none() {
                let inlined = callees[number].iter().map(|&callee| sizes[callee].unwrap_or_default()).sum::<u64>();
                let size = own[number] + inlined;
                // An indirect call inlines all that it may reach.
                let often = calls[number] > 1 || self.taken[number];
                outlined[number] = often && size >= u64::from(WORTH_A_CALL);
                sizes[number] = Some(if outlined[number] { WORTH_A_CALL.into() } else { size });
            }
        }
        outlined
    }

    /// The numbers of the functions that a function's body may call.
    fn calls_of(&self, function: &'a Function<'a>) -> Vec<u32> {
        let body = function.body.as_deref().unwrap_or_default();
        let (mut callees, mut calls) = (Vec::new(), Vec::new());
        walk(body, &mut |statement| {
            callees.extend(Callees::declared(statement));
            if let Statement::Instruction(inst) = statement
                && inst.opcode.text == "call"
            {
                calls.extend(Call::parse(inst));
            }
        });
        let mut numbers = Vec::new();
        for call in calls {
            numbers.extend(call.name().and_then(|name| self.by_name.get(name)).copied());
            // A label that stands in several blocks means all of its lists here.
            let named = |label: &str| {
                call.rest.iter().any(|rest| matches!(rest.kind, OperandKind::Name { name, .. } if name == label))
            };
            for (_, callees) in callees.iter().filter(|(label, _)| named(label.text)) {
                numbers.extend(self.numbers(*callees).unwrap_or_default());
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| number as u32).collect()
    }

    /// The cycle of the call graph that a function is on: it may call itself, perhaps through others.
    pub(super) fn cycle(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).map(|&number| self.cycle[number]).filter(|cycle| *cycle != u32::MAX)
    }

    /// A number as of a cycle of its own for a function that is called from several places and is not
    /// small: to call it as a subroutine takes fewer instructions than to inline it.
    pub(super) fn outlined(&self, name: &str) -> Option<u32> {
        let &number = self.by_name.get(name)?;
        self.outlined.get_or_init(|| self.worth_a_call())[number].then(|| (self.all.len() + number) as u32)
    }

    fn take_initialiser(&mut self, init: &Init<'a>) {
        match init {
            Init::Value(operand) | Init::Generic(operand) | Init::Masked(_, operand) => self.take(operand),
            Init::List(list) => list.iter().for_each(|init| self.take_initialiser(init)),
        }
    }

    fn take_statements(&mut self, statements: &[Statement<'a>]) {
        for statement in statements {
            match statement {
                Statement::Block(block) => self.take_statements(block),
                Statement::Instruction(inst) => match Call::parse(inst).filter(|_| inst.opcode.text == "call") {
                    Some(call) => call.arguments.iter().for_each(|argument| self.take(argument)),
                    None => inst.operands.iter().for_each(|operand| self.take(operand)),
                },
                _ => {}
            }
        }
    }

    fn take(&mut self, operand: &Operand<'a>) {
        match &operand.kind {
            OperandKind::Name { name, .. } => {
                if let Some(&number) = self.by_name.get(name) {
                    self.taken[number] = true;
                }
            }
            OperandKind::Vector(parts) | OperandKind::Address(parts) | OperandKind::List(parts) => {
                parts.iter().for_each(|part| self.take(part));
            }
            OperandKind::Pair(a, b) => [a, b].into_iter().for_each(|part| self.take(part)),
            OperandKind::Not(inner) | OperandKind::Minus(inner) => self.take(inner),
            OperandKind::Int(_) | OperandKind::Single(_) | OperandKind::Double(_) => {}
        }
    }

    /// The definition of a function, or its declaration where it has no body.
    pub(super) fn get(&self, name: &str) -> Option<&'a Function<'a>> {
        self.by_name.get(name).map(|&number| self.all[number])
    }

    /// Their names, in the order of the text.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.all.iter().map(|function| function.name.text)
    }

    /// The address of a function.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).map(|&number| CODE_WINDOW + 16 * (number as u64 + 1))
    }

    /// The address of a kernel, behind those of the functions. Tables of them serve launches from kernels,
    /// which are not supported: nothing asks what lies there.
    pub(super) fn kernel_address(&self, name: &str) -> Option<u64> {
        let number = self.kernels.iter().position(|kernel| *kernel == name)?;
        Some(CODE_WINDOW + 16 * (self.all.len() + number + 1) as u64)
    }

    /// The functions that an indirect call may reach, without repetition.
    ///
    /// # Errors
    /// A name in `.calltargets` that is no function.
    pub(super) fn reached(&self, callees: Callees<'a>) -> Result<Vec<&'a Function<'a>>, &'a PtxWord<'a>> {
        let mut numbers = self.numbers(callees)?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers.into_iter().map(|number| self.all[number]).filter(|function| function.body.is_some()).collect())
    }

    fn numbers(&self, callees: Callees<'a>) -> Result<Vec<usize>, &'a PtxWord<'a>> {
        Ok(match callees {
            Callees::Prototype(returns, params) => {
                let fits = |function: &Function<'_>| {
                    same_shape(&function.returns, returns) && same_shape(&function.params, params)
                };
                (0..self.all.len()).filter(|&number| self.taken[number] && fits(self.all[number])).collect()
            }
            Callees::Targets(names) => {
                let number = |word: &'a PtxWord<'a>| self.by_name.get(word.text).copied().ok_or(word);
                names.iter().map(number).collect::<Result<_, _>>()?
            }
        })
    }
}

/// A function's own body takes memory from the stack, which its end gives back.
pub(super) fn allocates(function: &Function<'_>) -> bool {
    let mut found = false;
    walk(function.body.as_deref().unwrap_or_default(), &mut |statement| {
        found |= matches!(statement, Statement::Instruction(inst) if inst.opcode.text == "alloca");
    });
    found
}

/// Every statement, outer ones first.
fn walk<'a>(statements: &'a [Statement<'a>], see: &mut dyn FnMut(&'a Statement<'a>)) {
    for statement in statements {
        see(statement);
        if let Statement::Block(inner) = statement {
            walk(inner, see);
        }
    }
}

/// Two lists of parameters have the same sizes in the same places.
fn same_shape(a: &[Formal<'_>], b: &[Formal<'_>]) -> bool {
    let bytes = |formal: &Formal<'_>| size_of(&formal.var).map(|(bytes, _)| bytes).ok();
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.register == b.register && bytes(a) == bytes(b))
}
