//! The code of a traced kernel: each instruction once, by its text without mask and addresses.
//!
//! An instruction of the trace is executed in a *variant*: its guard held for no lane, its store goes to a
//! range of persistent memory, it is one of several copies under way. Each variant is an instruction of the
//! kernel's code, so that the machine meets traced kernels as it meets any other.
//!
//! What goes on beside a warp has its rows from version 6 of a trace on. A kernel of whose barriers in shared
//! memory not all is known has none: loads of its copy engine have their traffic, and complete nowhere.
//!
//! Registers stand on the scoreboard as predicates, which take a word each, and no register file is kept.
//! Predicate 0 is never true: it guards instructions whose mask was empty. Registers of the trace follow, and
//! then places for copies past the registers (`LDGSTS`), which `DEPBAR` waits for.
//!
//! Invariant: the code does not change once a kernel was made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::asynchronous::{AsyncStep, copy_instruction, copy_wait};
use super::barrier_steps::{BarrierStep, BarrierUse, place_of};
use super::group_products::GroupShape;
use super::header::TraceHeader;
use super::instruction::{TraceLine, register_after};
use super::labels::{Labels, StoresAre};
use super::opcode_table::OpcodeTable;
use super::opcodes::{Operation, operation_of, registers_written, width_of};
use super::operands::operand_reads;
use super::products::MatrixProduct;
use super::sends::send_instruction;
use super::tensor_memory::{TensorUse, Transfer};
use durawarp_kernel::ir::{
    AddressIn, AtomOp, Barrier, BarrierRed, BulkKind, BulkStep, CONST, CacheOp, Class, ConstSource, CopyStep, Elem,
    GroupElements, GroupProduct, GroupStep, Guard, Hazards, Inst, Kernel, LaunchBounds, MOST_CHECKS, Mem, MemKind,
    NEVER, NONE, Op, OperandReads, PmOp, Scope, Slot, SourcePos, Space, StoreHint, TensorStep, TensorTables,
    TracedTensor,
};

/// Groups of copies past the registers that a warp may have under way; a wait for an older one passes.
/// Chosen: what an instruction may check.
pub(crate) const COPIES: u32 = 8;

/// Registers from this one on are uniform registers and predicates.
const UNIFORM: u16 = 256;

/// The predicate that never holds.
const NEVER_TRUE: Slot = 0;

/// An instruction as its text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    /// With modifiers. Where the user's table says it, another name than the trace has.
    pub(crate) opcode: Box<str>,
    /// The name in the trace and the one that it is timed as, where the user's table says another.
    pub(crate) renamed: Option<Box<str>>,
    /// The same, where the machine has no unit for it, or no time for its shape.
    pub(crate) stood_in: Option<Box<str>>,
    pub(crate) operation: Operation,
    /// Bytes that a lane accesses; 0 without an access.
    pub(crate) bytes: u32,
    dst: SmallVec<[u16; 2]>,
    src: SmallVec<[u16; 6]>,
    /// What it reads of the register file.
    operands: OperandReads,
    /// A product of four warps ends a group.
    ends_group: bool,
    /// The line on which it stands first.
    line: u32,
}

impl Template {
    /// Registers that it reads. A product names the first of each operand, the factors before the sums.
    fn read(&self) -> impl Iterator<Item = u16> {
        let counts = match self.operation {
            Operation::Product(product) => [product.factors[0], product.factors[1], product.sums],
            _ => [1; 3],
        };
        let stored = self.transfer().filter(|transfer| !transfer.loads).map(|transfer| transfer.registers);
        // Sums of four warps are under way from product to product.
        let sums = if matches!(self.operation, Operation::GroupProduct(_)) { &self.dst[..] } else { &[] };
        let factor = if sums.is_empty() { None } else { self.group_factor() };
        let sources = self.src.iter().filter(move |register| !sums.contains(register));
        let counted = sources.zip(counts.into_iter().chain(std::iter::repeat(1)));
        let counted = counted.map(move |(first, count)| (first, if Some(*first) == factor { 4 } else { count }));
        let counted = counted.map(move |(first, count)| match stored {
            Some(registers) if *first < UNIFORM => (first, registers),
            _ => (first, count),
        });
        counted.flat_map(|(&first, count)| (0..count).map(move |n| register_after(first, n)))
    }

    /// What it moves between registers and tensor memory.
    fn transfer(&self) -> Option<Transfer> {
        match self.operation {
            Operation::Beside(AsyncStep::Tensor(TensorUse::Transfer(transfer))) => Some(transfer),
            _ => None,
        }
    }

    /// Registers that the named one is the first of: four of others at most.
    fn results(&self) -> u8 {
        self.transfer().map_or(4, |transfer| transfer.registers.max(4))
    }

    /// The product of four warps that it is, where its opcode names a shape.
    fn group_product(&self) -> Option<GroupProduct> {
        let Operation::GroupProduct(Some(GroupShape { elements, columns })) = self.operation else { return None };
        let accumulator = self.dst.first().copied().unwrap_or(NONE);
        let (a_in_registers, ends_group) = (self.group_factor().is_some(), self.ends_group);
        Some(GroupProduct { elements, columns, a_in_registers, accumulator, ends_group, operands: None })
    }

    /// The first register of the first factor, where that is in registers: one that is no result.
    fn group_factor(&self) -> Option<u16> {
        let vectors = self.src.iter().find(|register| **register < UNIFORM);
        vectors.filter(|register| !self.dst.contains(register)).copied()
    }

    /// The scope of a fence.
    pub(crate) fn scope(&self) -> Scope {
        let has = |words: &[&str]| self.opcode.split('.').any(|own| words.contains(&own));
        match (has(&["CTA"]), has(&["SYS"])) {
            (true, _) => Scope::Cta,
            (_, true) => Scope::Sys,
            _ => Scope::Gpu,
        }
    }
}

/// How an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TraceVariant {
    /// As it stands.
    Plain,
    /// By no lane.
    Off,
    /// A store that is `pm.st.nt` or `pm.st.log`.
    Store(StoresAre),
    /// The write-back after a store.
    WriteBack,
    /// The fence of persistency after a fence.
    Persist,
    /// The last copy of a group, at one of [`COPIES`] places.
    Copy(u8),
    /// A wait for the copies at these places, one bit each.
    Wait(u8),
    /// A wait for all groups of products of four warps but the last ones, of this number.
    GroupWait(u8),
    /// A wait for all groups of stores of the copy engine but the last ones, of this number.
    CopyWait(u8),
    /// The same of copies past the registers, which are known one by one.
    GroupsWait(u8),
    /// A step at a barrier in shared memory.
    Barrier(BarrierStep),
    /// A product in tensor memory, with its operations.
    Multiply { elements: GroupElements, operations: u32 },
    /// An arrival behind such products, at the barriers at this byte of CTAs of these ranks.
    CommitTo { at: u32, ranks: u16 },
    /// The barrier `id` of the CTA, for `threads` threads, or for all where that is 0. The warp waits, or
    /// only arrives.
    Named { id: u8, threads: u16, waits: bool },
}

/// What is known of that which goes on beside the warps of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Beside {
    /// Nothing: the trace is older.
    #[default]
    Nothing,
    /// Copies and clusters; of barriers in shared memory too little.
    Copies,
    All,
}

/// The instructions of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TraceCode {
    knows: Beside,
    /// Copies past the registers are known one by one, as arrivals at barriers wait for them.
    arrives: bool,
    templates: Vec<Template>,
    by_text: BTreeMap<Box<[u8]>, u32>,
    variants: Vec<(u32, TraceVariant)>,
    by_variant: BTreeMap<(u32, TraceVariant), u32>,
}

impl TraceCode {
    /// None so far.
    pub(crate) fn new(knows: Beside, arrives: bool) -> TraceCode {
        TraceCode { knows, arrives, ..TraceCode::default() }
    }

    /// Copies past the registers are known one by one.
    pub(crate) fn arrives(&self) -> bool {
        self.arrives
    }

    /// Something arrives at a barrier behind copies past the registers.
    pub(crate) fn has_arrivals(&self) -> bool {
        let behind = AsyncStep::Barrier(BarrierUse::ArriveBehindCopies);
        self.templates.iter().any(|template| AsyncStep::of(&template.opcode) == Some(behind))
    }

    /// What an opcode does beside its warp, as far as that is known.
    fn beside(&self, opcode: &str) -> Option<AsyncStep> {
        match (self.knows, AsyncStep::of(opcode)?) {
            (Beside::Nothing, _) => None,
            (Beside::Copies, AsyncStep::Barrier(_) | AsyncStep::Send(_)) => None,
            (Beside::Copies, AsyncStep::Tensor(TensorUse::CommitTo)) => None,
            (_, AsyncStep::Barrier(BarrierUse::ArriveBehindCopies)) if !self.arrives => None,
            (_, step) => Some(step),
        }
    }

    /// The template of a line, if it is known.
    pub(crate) fn find(&self, line: &TraceLine<'_>) -> Option<u32> {
        self.by_text.get(line.text).copied()
    }

    /// Takes in the template of a line that stands on line `number`; none when its opcode is not known.
    pub(crate) fn add(&mut self, line: &TraceLine<'_>, number: u32, table: &OpcodeTable) -> Option<u32> {
        // The user's table decides the name; modifiers stay.
        let name = line.opcode.split('.').next().unwrap_or_default();
        let known = table.known(name)?;
        let opcode = format!("{known}{}", &line.opcode[name.len()..]);
        // What another opcode is timed as, the user's table says.
        let beside = if name == known { self.beside(&opcode) } else { None };
        let operation = match (operation_of(known)?, beside) {
            (Operation::Unserved(_), Some(step)) => Operation::Beside(step),
            // Order between proxies, and a test that goes on whatever it finds, have the time of their issue.
            (Operation::Unserved(_), None) if self.knows == Beside::All && ["FENCE", "SYNCS"].contains(&known) => {
                Operation::Compute(Class::Control)
            }
            (Operation::Product(_), _) => Operation::Product(MatrixProduct::of(&opcode)),
            (Operation::GroupProduct(_), _) => Operation::GroupProduct(GroupShape::of(&opcode)),
            (operation, _) => operation,
        };
        let accesses = !matches!(
            operation,
            Operation::Compute(_)
                | Operation::Product(_)
                | Operation::GroupProduct(_)
                | Operation::GroupStep
                | Operation::Unserved(_)
                | Operation::Branch
                | Operation::Exit
                | Operation::Barrier
                | Operation::Beside(_)
                | Operation::Fence
                | Operation::AsyncGroup
                | Operation::AsyncWait
        );
        // The modifiers say it; where they do not, the tracer's width does.
        let of_tracer = if [1, 2, 8, 16].contains(&line.width) { line.width } else { 4 };
        let bytes = match (accesses, operation) {
            // A tracer may take the pair of addresses for what is accessed.
            (_, Operation::Beside(AsyncStep::Send(_))) => width_of(&opcode).unwrap_or(4),
            (false, _) => 0,
            (_, Operation::Atomic(_) | Operation::Reduction) => {
                if width_of(&opcode).unwrap_or(of_tracer) >= 8 {
                    8
                } else {
                    4
                }
            }
            _ => width_of(&opcode).unwrap_or(of_tracer),
        };
        let template = Template {
            renamed: (name != known).then(|| format!("{name} as {known}").into()),
            stood_in: stand(&opcode, operation).map(Into::into),
            operands: operand_reads(line.text, &opcode, operation),
            opcode: opcode.into(),
            operation,
            bytes,
            dst: line.dst.clone(),
            src: line.src.clone(),
            ends_group: line.ends_group,
            line: number,
        };
        let at = self.templates.len() as u32;
        self.templates.push(template);
        self.by_text.insert(line.text.into(), at);
        Some(at)
    }

    /// A template.
    pub(crate) fn template(&self, at: u32) -> &Template {
        &self.templates[at as usize]
    }

    /// The template of each instruction of the code, and how it is executed.
    pub(crate) fn executed(&self) -> impl Iterator<Item = (&Template, TraceVariant)> {
        self.variants.iter().map(|&(template, variant)| (self.template(template), variant))
    }

    /// The place in the code of a variant, if it is known.
    pub(crate) fn find_variant(&self, template: u32, variant: TraceVariant) -> Option<u32> {
        self.by_variant.get(&(template, variant)).copied()
    }

    /// The place in the code of a variant.
    pub(crate) fn add_variant(&mut self, template: u32, variant: TraceVariant) -> u32 {
        *self.by_variant.entry((template, variant)).or_insert_with(|| {
            self.variants.push((template, variant));
            self.variants.len() as u32 - 1
        })
    }

    /// The instruction of a copy past the registers, or of its group, where these are known one by one; of an
    /// asynchronous store or reduction; of tensor memory, where `pairs` of CTAs are known or not.
    fn exact(&self, template: &Template, variant: TraceVariant, pairs: bool) -> Option<(Inst, Class)> {
        let guard = if variant == TraceVariant::Off { Guard::new(NEVER_TRUE, false) } else { Guard::ALWAYS };
        let inst = |op| Inst { op, guard, dst: [NONE; 4], src: [NONE; 4], imm: 0 };
        match (variant, template.operation) {
            (_, Operation::Beside(AsyncStep::Send(kind))) => {
                let (op, dst, src) = send_instruction(kind, template.bytes);
                Some((Inst { op, guard, dst, src, imm: 0 }, Class::Mem))
            }
            (TraceVariant::Multiply { elements, operations }, Operation::Beside(AsyncStep::Tensor(of))) => {
                let paired = pairs && matches!(of, TensorUse::Multiply(product) if product.paired);
                let op = Op::Tensor(TensorStep::Traced(TracedTensor::Multiply { elements, paired }));
                Some((Inst { imm: operations as i32, ..inst(op) }, Class::Control))
            }
            (_, Operation::Beside(AsyncStep::Tensor(of))) => {
                let (op, imm) = of.instruction(pairs)?;
                Some((Inst { imm, ..inst(op) }, Class::Control))
            }
            (TraceVariant::GroupsWait(kept), _) => {
                Some((inst(Op::Copies(CopyStep::Wait(kept.into()))), Class::Control))
            }
            (_, Operation::AsyncCopy) if self.arrives => {
                Some((inst(Op::Mem(mem(template, MemKind::Copy, Space::Global, variant))), Class::Mem))
            }
            (_, Operation::AsyncGroup) if self.arrives => Some((inst(Op::Copies(CopyStep::Commit)), Class::Control)),
            _ => None,
        }
    }

    /// The kernel of this code.
    pub(crate) fn kernel(&self, header: &TraceHeader, labels: &Labels, file: &str, needs: KernelNeeds) -> Kernel {
        // A result may take four registers from the named one on.
        let named =
            |template: &Template| template.dst.iter().map(|&first| register_after(first, template.results() - 1)).max();
        let registers = self.templates.iter().filter_map(|t| named(t).max(t.read().max())).max();
        let registers = registers.unwrap_or(0) + 1;
        let mut kernel = Kernel {
            name: header.name.clone(),
            file: Arc::from(file),
            code: Vec::new(),
            class: Vec::new(),
            hazards: Vec::new(),
            operand_reads: Vec::new(),
            pos: Vec::new(),
            slots32: 0,
            slots64: 0,
            predicates: 1 + registers + COPIES as u16,
            // Stores write zeros.
            consts32: vec![ConstSource::Literal(0)],
            consts64: Vec::new(),
            fragments: Vec::new(),
            group_products: Vec::new(),
            tensor: TensorTables::default(),
            specials: Vec::new(),
            params: Vec::new(),
            param_bytes: 0,
            shared_bytes: needs.shared_bytes,
            dynamic_shared: false,
            local_bytes: needs.local_bytes,
            stack_bytes: 0,
            registers_per_thread: header.registers_per_thread,
            bounds: LaunchBounds { cluster: needs.cluster, ..LaunchBounds::default() },
            textures: Vec::new(),
            surfaces: Vec::new(),
            releases: Vec::new(),
            proxy_fences: Vec::new(),
            param_bank: None,
            virtual_registers: [0; 3],
        };
        let board = Scoreboard { registers, none: kernel.no_register() };
        let (mut numbers, mut words) = (Vec::new(), vec![0]);
        let pairs = needs.cluster.is_some_and(|of| of.iter().product::<u32>().is_multiple_of(2));
        for (at, &(template, variant)) in self.variants.iter().enumerate() {
            let template = self.template(template);
            let (mut inst, class) = match variant {
                TraceVariant::Barrier(step) => {
                    let (op, class, src) = step.instruction(&mut numbers);
                    (Inst { op, guard: Guard::ALWAYS, dst: [NONE; 4], src, imm: 0 }, class)
                }
                TraceVariant::CommitTo { at, ranks } => {
                    let [at, ranks] = [at, ranks.into()].map(|word| CONST | place_of(&mut words, word));
                    let (op, src) = (Op::Tensor(TensorStep::CommitTo), [at, ranks, NONE, NONE]);
                    (Inst { op, guard: Guard::ALWAYS, dst: [NONE; 4], src, imm: 0 }, Class::Control)
                }
                _ => match self.exact(template, variant, pairs) {
                    Some(found) => found,
                    None => instruction(template, variant, labels, (at as u32, self.knows)),
                },
            };
            if let Some(product) = template.group_product() {
                inst.imm = kernel.group_products.len() as i32;
                kernel.group_products.push(product);
            }
            kernel.code.push(inst);
            kernel.class.push(class);
            kernel.hazards.push(board.hazards(template, variant));
            // What labels add reads nothing of its own.
            let added = matches!(variant, TraceVariant::WriteBack | TraceVariant::Persist);
            kernel.operand_reads.push(if added { OperandReads::default() } else { template.operands });
            kernel.pos.push(SourcePos { line: template.line, column: 1 });
        }
        kernel.consts32 = words.into_iter().map(|word| ConstSource::Literal(word.into())).collect();
        kernel.consts64 = numbers.into_iter().map(ConstSource::Literal).collect();
        kernel
    }
}

/// An opcode and the one whose time stands in for it, if one does.
fn stand(opcode: &str, operation: Operation) -> Option<String> {
    let mut tokens = opcode.split('.');
    let name = tokens.next().unwrap_or_default();
    match operation {
        Operation::Product(product) => {
            let digits = |token: &&str| token.bytes().all(|byte| byte.is_ascii_digit());
            let shape = tokens.find(digits).map_or_else(String::new, |shape| format!(".{shape}"));
            product.stand().map(|stand| format!("{name}{shape} as {stand}"))
        }
        Operation::Unserved(other) => Some(format!("{name} as {other}")),
        Operation::GroupProduct(None) => Some(format!("{name} as NOP")),
        // Where its line does not say how large it is.
        Operation::Beside(AsyncStep::Tensor(TensorUse::Multiply(_))) => Some(format!("{name} as NOP")),
        _ => None,
    }
}

/// What a CTA and a thread need beside registers, and the CTAs of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KernelNeeds {
    pub(crate) shared_bytes: u32,
    pub(crate) local_bytes: u32,
    pub(crate) cluster: Option<[u32; 3]>,
}

/// Where registers stand on the scoreboard.
struct Scoreboard {
    registers: u16,
    none: u16,
}

impl Scoreboard {
    fn register(&self, register: u16) -> u16 {
        1 + register
    }

    fn copy(&self, place: u8) -> u16 {
        1 + self.registers + u16::from(place)
    }

    /// Of a load from tensor memory, or a store there, which may have more registers than others.
    fn transfer_hazards(&self, template: &Template, transfer: Transfer) -> Hazards {
        let read: Vec<u16> = template.read().map(|register| self.register(register)).collect();
        let first = template.dst.iter().find(|first| **first < UNIFORM);
        let written =
            first.into_iter().flat_map(|&first| (0..transfer.awaited()).map(move |n| register_after(first, n)));
        let written: Vec<u16> = written.map(|register| self.register(register)).collect();
        Hazards::of(self.none, &read, &written)
    }

    fn hazards(&self, template: &Template, variant: TraceVariant) -> Hazards {
        if let Some(transfer) = template.transfer() {
            return self.transfer_hazards(template, transfer);
        }
        let mut hazards = Hazards::of(self.none, &[], &[]);
        let mut read = |register: u16| {
            if usize::from(hazards.reads) < MOST_CHECKS {
                hazards.check[usize::from(hazards.reads)] = register;
                hazards.reads += 1;
            }
        };
        match variant {
            TraceVariant::WriteBack | TraceVariant::Persist => {}
            TraceVariant::CopyWait(_) | TraceVariant::GroupsWait(_) => {}
            TraceVariant::Wait(places) => {
                (0..8).filter(|place| places >> place & 1 == 1).for_each(|p| read(self.copy(p)))
            }
            _ => template.read().for_each(|register| read(self.register(register))),
        }
        hazards.checks = hazards.reads;
        if matches!(variant, TraceVariant::WriteBack | TraceVariant::Persist) {
            return hazards;
        }
        if let TraceVariant::Copy(place) = variant {
            // It is not checked: a copy does not wait for that of an older group at its place.
            hazards.set[0] = self.copy(place);
            hazards.sets = 1;
            return hazards;
        }
        let several = registers_written(&template.opcode, template.operation, template.bytes);
        let written = template.dst.iter().flat_map(|&first| (0..several).map(move |n| register_after(first, n)));
        for register in written.take(hazards.set.len()) {
            let register = self.register(register);
            hazards.set[usize::from(hazards.sets)] = register;
            hazards.sets += 1;
            if usize::from(hazards.checks) < MOST_CHECKS {
                hazards.check[usize::from(hazards.checks)] = register;
                hazards.checks += 1;
            }
        }
        hazards
    }
}

/// The instruction of a variant, which stands at `at` in the code, and its class.
fn instruction(
    template: &Template,
    variant: TraceVariant,
    labels: &Labels,
    (at, knows): (u32, Beside),
) -> (Inst, Class) {
    let zero = [CONST; 4];
    let none = [NONE; 4];
    let (op, class, dst) = match (variant, template.operation) {
        (TraceVariant::WriteBack, _) => (Op::Pm(PmOp::Clwb), Class::Mem, none),
        (TraceVariant::Persist, _) => {
            let fence = labels.behind_fence(template.scope()).unwrap_or(PmOp::Sfence);
            (Op::Pm(fence), Class::Control, none)
        }
        (_, Operation::Load(space)) => (Op::Mem(mem(template, MemKind::Load, space, variant)), Class::Mem, none),
        (_, Operation::AsyncCopy) => (Op::Mem(mem(template, MemKind::Load, Space::Global, variant)), Class::Mem, none),
        (_, Operation::Store(space)) => (Op::Mem(mem(template, MemKind::Store, space, variant)), Class::Mem, zero),
        (_, Operation::Atomic(space)) => {
            let kind = if template.dst.is_empty() { MemKind::Reduction } else { MemKind::Atomic };
            (Op::Mem(mem(template, kind, space, variant)), Class::Mem, none)
        }
        (_, Operation::Reduction) => {
            (Op::Mem(mem(template, MemKind::Reduction, Space::Generic, variant)), Class::Mem, none)
        }
        (_, Operation::Fence) => (Op::Fence(template.scope()), Class::Control, none),
        (_, Operation::Beside(AsyncStep::Copy(kind))) => {
            // Without barriers a load has its traffic.
            let kind = if knows != Beside::All && kind == BulkKind::Load { BulkKind::Prefetch } else { kind };
            (copy_instruction(kind, &template.opcode), Class::Mem, none)
        }
        (_, Operation::Beside(AsyncStep::CommitCopies)) => (Op::BulkGroups(BulkStep::Commit), Class::Control, none),
        (_, Operation::Beside(AsyncStep::Cluster(step))) => (Op::Cluster(step), Class::Control, none),
        (_, Operation::Beside(AsyncStep::Barrier(_) | AsyncStep::Send(_))) => (Op::Nop, Class::Control, none),
        (_, Operation::Beside(AsyncStep::Tensor(_))) => (Op::Nop, Class::Logic, none),
        (TraceVariant::CopyWait(kept), _) => (copy_wait(kept), Class::Control, none),
        (_, Operation::Barrier) if labels.persists_at_barriers => (Op::Pm(PmOp::BarrierWg), Class::Control, none),
        (_, Operation::Barrier) => {
            let (id, threads, wait) = match variant {
                TraceVariant::Named { id, threads, waits } => (id, threads, waits),
                _ => (0, 0, true),
            };
            let barrier = Barrier { id, wait, threads, red: BarrierRed::None, in_registers: false };
            (Op::Barrier(barrier), Class::Control, none)
        }
        // Where it leads is the trace's affair: the path on the stack ends at the next instruction.
        (_, Operation::Branch) => (Op::Branch { target: at + 1, reconverge: NEVER }, Class::Control, none),
        (_, Operation::Exit) => (Op::Exit, Class::Control, none),
        (_, Operation::AsyncGroup | Operation::AsyncWait) => (Op::Nop, Class::Control, none),
        (_, Operation::Compute(class)) => (Op::Nop, class, none),
        (_, Operation::Product(product)) => (Op::Nop, product.class, none),
        (_, Operation::GroupProduct(Some(_))) => (Op::WarpGroup(GroupStep::Multiply), Class::Control, none),
        (TraceVariant::GroupWait(kept), _) => (Op::WarpGroup(GroupStep::Wait(kept.into())), Class::Control, none),
        (_, Operation::GroupStep) => (Op::Nop, Class::Control, none),
        (_, Operation::Unserved(_) | Operation::GroupProduct(None)) => (Op::Nop, Class::Logic, none),
    };
    let guard = if variant == TraceVariant::Off { Guard::new(NEVER_TRUE, false) } else { Guard::ALWAYS };
    (Inst { op, guard, dst, src: none, imm: 0 }, class)
}

fn mem(template: &Template, kind: MemKind, space: Space, variant: TraceVariant) -> Mem {
    let atomic = matches!(kind, MemKind::Atomic | MemKind::Reduction);
    let (elem, vec) = match template.bytes {
        1 => (Elem::U8, 1),
        2 => (Elem::U16, 1),
        8 if atomic => (Elem::U64, 1),
        16 if atomic => (Elem::U64, 2),
        8 => (Elem::U32, 2),
        16 => (Elem::U32, 4),
        _ => (Elem::U32, 1),
    };
    let has = |words: &[&str]| template.opcode.split('.').skip(1).any(|own| words.contains(&own));
    let cache = match kind {
        MemKind::Load if has(&["CONSTANT", "CI"]) => CacheOp::ReadOnly,
        MemKind::Load | MemKind::Copy if has(&["BYPASS"]) => CacheOp::L2Only,
        MemKind::Load | MemKind::Store if has(&["STRONG", "VOLATILE", "MMIO"]) => CacheOp::Volatile,
        MemKind::Load | MemKind::Store if has(&["EF"]) => CacheOp::Streaming,
        _ => CacheOp::All,
    };
    let hint = match variant {
        TraceVariant::Store(StoresAre::NonTemporal) => StoreHint::NonTemporal,
        TraceVariant::Store(StoresAre::Log) => StoreHint::Log,
        _ => StoreHint::Plain,
    };
    // With operands of 0 both leave memory as it is.
    let atom = match (atomic, vec) {
        (false, _) => AtomOp::None,
        (true, 2) => AtomOp::Cas,
        (true, _) => AtomOp::Add,
    };
    // Values come from no register: zeros are stored, and what is loaded goes nowhere.
    let wide = elem == Elem::U64;
    Mem { kind, space, elem, vec, cache, hint, atom, wide, address: AddressIn::Trace, whole: 0 }
}
