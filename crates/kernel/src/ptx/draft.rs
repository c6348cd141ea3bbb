//! Instructions before register allocation: operations are final, operands are virtual registers.
//!
//! A [`Body`] is one kernel: its code with calls inlined, then the subroutines of functions that call
//! themselves ([`Subroutine`]). Branch targets are labels, parameter blocks of calls are accesses to a
//! numbered block; both are resolved in [`super::finish`], subroutines' frames in [`super::stack`].

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::super::alu::MatrixOp;
use super::super::ir::{
    AddressIn, AtomOp, CONST, CacheOp, Class, ConstSource, Elem, GroupElements, Mem, MemKind, Op, Slot, Space, Special,
    StoreHint,
};
use super::types::Bank;
use durawarp_base::diagnostic::Diagnostic;

/// A virtual register: an index into [`Body::banks`].
pub(super) type VReg = u32;

/// A label: an index into [`Body::labels`].
pub(super) type Label = u32;

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arg {
    None,
    Reg(VReg),
    /// An entry of the constant pool of the operand's width (or a constant predicate), [`CONST`] set.
    Const(Slot),
}

/// What a draft instruction does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DraftOp {
    Op(Op),
    Branch(Label),
    /// An access to a parameter block of an inlined call: the elements of `elem` at `offset`.
    Param {
        store: bool,
        block: u32,
        offset: u32,
        elem: Elem,
        vec: u8,
    },
    /// The caller's part before call site number: registers saved, the stack pointer moved to the callee's
    /// frame.
    Enter(u32),
    /// The call of a subroutine at a call site; the return address goes to `dst[0]`.
    Call(u32),
    /// The caller's part after a call site: what [`DraftOp::Enter`] did, undone.
    Leave(u32),
    /// A subroutine returns to the address in `src[0]`.
    Return(u32),
}

/// An instruction before register allocation.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) op: DraftOp,
    pub(super) guard: Option<(VReg, bool)>,
    pub(super) dst: [Arg; 4],
    pub(super) src: [Arg; 4],
    /// Fragments of b and c, four registers each, and metadata of a matrix instruction, which are read too.
    pub(super) more: [Arg; 9],
    /// Of a product of four warps.
    pub(super) group: Option<Box<GroupDraft>>,
    /// Of a transfer or a product of tensor memory.
    pub(super) tensor: Option<Box<TensorDraft>>,
    pub(super) imm: i32,
    pub(super) class: Class,
    /// Byte offset in the text.
    pub(super) at: usize,
}

/// What a product of four warps has besides: descriptors of b and a are `src[0]` and `src[1]`, `scale-d` is
/// `src[2]`, and the registers of a are the first of `more`.
#[derive(Debug, Clone)]
pub(super) struct GroupDraft {
    pub(super) op: MatrixOp,
    pub(super) elements: GroupElements,
    pub(super) columns: u16,
    /// a lies by columns, b by rows.
    pub(super) across: [bool; 2],
    /// What `scale-d` is where d is added to.
    pub(super) adds: bool,
    pub(super) subtracts: bool,
    /// Registers of d.
    pub(super) d: Vec<Arg>,
}

/// What a transfer or a product of tensor memory has besides.
#[derive(Debug, Clone)]
pub(super) enum TensorDraft {
    /// Registers, to be loaded or to be stored.
    Vector { registers: Vec<Arg>, loads: bool, packs: bool },
    /// d, a, b and the descriptor are `src`; the predicate that d is added to by, where it is `adds`, masks
    /// of lanes, and addresses of scale factors are the first of `more`.
    Product { in_tensor_memory: bool, adds: bool, scale: u8 },
}

impl GroupDraft {
    /// The registers of d that are read: none, where `scale-d` is a constant that says so.
    fn summands(&self, scale: Arg) -> &[Arg] {
        let constant = |value: bool| Arg::Const(CONST | u16::from(value));
        if scale == constant(!self.adds) { &[] } else { &self.d }
    }
}

impl Draft {
    /// Registers that are in a table of their own, those read and those written: d of a product of four
    /// warps, and those of a transfer of tensor memory.
    pub(super) fn listed(&self) -> [&[Arg]; 2] {
        match self.tensor.as_deref() {
            Some(TensorDraft::Vector { registers, loads: true, .. }) => return [&[], registers],
            Some(TensorDraft::Vector { registers, loads: false, .. }) => return [registers, &[]],
            Some(TensorDraft::Product { .. }) | None => {}
        }
        self.group.as_ref().map_or([&[], &[]], |group| [group.summands(self.src[2]), &group.d])
    }

    /// The destination operands that are read, and those that are written.
    pub(super) fn data_and_results(&self) -> (&[Arg], &[Arg]) {
        match self.op {
            DraftOp::Op(Op::Mem(Mem { kind: MemKind::Store, .. })) | DraftOp::Param { store: true, .. } => {
                (&self.dst, &[])
            }
            DraftOp::Op(Op::Mem(mem)) if mem.is_pair() => (&self.dst[2..], &self.dst[..2]),
            _ => (&[], &self.dst),
        }
    }
}

/// A constant whose value may depend on the size of static shared memory, unknown until the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Const {
    Source(ConstSource),
    /// The first byte of dynamic shared memory, plus this.
    DynamicShared(i64),
    /// The same as a generic address.
    DynamicSharedGeneric(i64),
}

/// A constant pool in the making.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) entries: Vec<Const>,
    index: HashMap<Const, u16>,
}

impl Pool {
    fn intern(&mut self, c: Const) -> Arg {
        let next = self.entries.len() as u16;
        let index = *self.index.entry(c).or_insert(next);
        if index == next {
            self.entries.push(c);
        }
        // More constants than this are reported by `finish`.
        Arg::Const(CONST | index.min(0x7ffe))
    }
}

/// Where a variable lies in local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At this address.
    Fixed(u32),
    /// This far above the stack pointer: in the frame of a subroutine.
    Frame(u32),
}

/// A parameter block of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) bytes: u32,
    pub(super) align: u32,
    /// Its address was taken, or it is accessed at a computed address: it lives in local memory, here.
    pub(super) local: Option<Place>,
    /// The subroutine whose frame it would lie in.
    pub(super) owner: Option<u32>,
}

/// A function that may call itself, or is too much to be inlined: compiled once a kernel, called with a
/// frame on the stack of the thread.
#[derive(Debug, Clone)]
pub(super) struct Subroutine {
    /// The cycle of the call graph that it is on.
    pub(super) cycle: u32,
    /// It may call itself; else a thread is in it once at a time.
    pub(super) recursive: bool,
    /// Its first instruction, and where its lanes return.
    pub(super) start: Label,
    pub(super) end: Label,
    /// Bytes of its frame that are laid out, the return address included, and their alignment.
    pub(super) bytes: u32,
    pub(super) align: u32,
}

/// A call of a subroutine.
#[derive(Debug, Clone)]
pub(super) struct CallSite {
    /// The subroutine that calls; `None` for the kernel.
    pub(super) caller: Option<u32>,
    pub(super) callee: u32,
    /// Registers of the call itself, which are never saved.
    pub(super) temporaries: Vec<VReg>,
}

/// What calls of subroutines have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackRegisters {
    /// The 64-bit address of the current frame in local memory.
    pub(super) pointer: VReg,
    /// The return address of a call, which its return reads: 32 bits.
    pub(super) link: VReg,
}

/// Bytes at the start of a frame for the return address.
pub(super) const RETURN_SITE_BYTES: u32 = 8;

/// One kernel.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) code: Vec<Draft>,
    pub(super) banks: Vec<Bank>,
    /// The pc of each label once it is placed.
    pub(super) labels: Vec<Option<u32>>,
    pub(super) pool32: Pool,
    pub(super) pool64: Pool,
    pub(super) specials: BTreeMap<Special, VReg>,
    pub(super) blocks: Vec<Block>,
    /// Functions that call themselves, in the order of their code.
    pub(super) subroutines: Vec<Subroutine>,
    pub(super) sites: Vec<CallSite>,
    /// Made with the first subroutine.
    pub(super) stack: Option<StackRegisters>,
    /// The address of the first byte of the thread's stack that `alloca` may give: 64 bits. Made with the
    /// first `alloca`.
    pub(super) stack_top: Option<VReg>,
    /// The subroutine whose code is being lowered; its variables go into its frame.
    pub(super) owner: Option<u32>,
    pub(super) shared_bytes: u32,
    pub(super) dynamic_shared: bool,
    pub(super) local_bytes: u32,
    pub(super) textures: Vec<String>,
    pub(super) surfaces: Vec<String>,
    pub(super) uses_param_bank: bool,
    /// Places in the text of stores and atomics that release.
    pub(super) releases: Vec<usize>,
    /// Places of fences between proxies.
    pub(super) proxy_fences: Vec<usize>,
    pub(super) warnings: Vec<Diagnostic>,
    /// Registers of a thread, at most, as the kernel's directives have it.
    pub(super) most_registers: Option<u32>,
    /// Warps change how many they have of these.
    pub(super) moves_registers: bool,
}

impl Body {
    pub(super) fn register(&mut self, bank: Bank) -> VReg {
        self.banks.push(bank);
        self.banks.len() as VReg - 1
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        self.labels.len() as Label - 1
    }

    pub(super) fn constant(&mut self, bank: Bank, c: Const) -> Arg {
        match bank {
            Bank::R32 => self.pool32.intern(c),
            Bank::R64 => self.pool64.intern(c),
            Bank::Pred => match c {
                Const::Source(ConstSource::Literal(0)) => Arg::Const(CONST),
                _ => Arg::Const(CONST | 1),
            },
        }
    }

    pub(super) fn literal(&mut self, bank: Bank, value: u64) -> Arg {
        let value = if bank == Bank::R32 { value & 0xffff_ffff } else { value };
        self.constant(bank, Const::Source(ConstSource::Literal(value)))
    }

    /// The register that holds a special value from the start.
    pub(super) fn special(&mut self, special: Special) -> Arg {
        if let Some(&register) = self.specials.get(&special) {
            return Arg::Reg(register);
        }
        let register = self.register(Bank::R32);
        self.specials.insert(special, register);
        Arg::Reg(register)
    }

    /// Room in the thread's local memory, or in the frame of a subroutine.
    pub(super) fn allocate_local(&mut self, bytes: u32, align: u32, owner: Option<u32>) -> Place {
        match owner {
            None => Place::Fixed(append(&mut self.local_bytes, bytes, align)),
            Some(number) => {
                let subroutine = &mut self.subroutines[number as usize];
                subroutine.align = subroutine.align.max(align);
                Place::Frame(append(&mut subroutine.bytes, bytes, align))
            }
        }
    }

    /// A parameter block of the code being lowered.
    pub(super) fn block(&mut self, bytes: u32, align: u32) -> u32 {
        self.blocks.push(Block { bytes, align, local: None, owner: self.owner });
        self.blocks.len() as u32 - 1
    }

    /// The registers of the stack.
    pub(super) fn stack(&mut self) -> StackRegisters {
        if let Some(stack) = self.stack {
            return stack;
        }
        let stack = StackRegisters { pointer: self.register(Bank::R64), link: self.register(Bank::R32) };
        self.stack = Some(stack);
        stack
    }

    /// Moves a parameter block to local memory and says where.
    pub(super) fn block_in_memory(&mut self, block: u32) -> Place {
        let Block { bytes, align, local, owner } = self.blocks[block as usize];
        if let Some(at) = local {
            return at;
        }
        let at = self.allocate_local(bytes, align.max(8), owner);
        self.blocks[block as usize].local = Some(at);
        at
    }
}

/// Appends a variable to a stretch of `total` bytes and says where it starts. `total` saturates far above
/// what `finish` accepts.
pub(super) fn append(total: &mut u32, bytes: u32, align: u32) -> u32 {
    const MOST: u64 = 1 << 30;
    let at = u64::from(*total).next_multiple_of(u64::from(align.max(1))).min(MOST);
    *total = (at + u64::from(bytes)).min(MOST) as u32;
    at as u32
}

/// An ordinary memory access; the caller adjusts what differs.
pub(super) fn plain_access(kind: MemKind, space: Space, elem: Elem) -> Mem {
    Mem {
        kind,
        space,
        elem,
        vec: 1,
        cache: CacheOp::All,
        hint: StoreHint::Plain,
        atom: AtomOp::None,
        wide: false,
        address: AddressIn::Wide,
        whole: 0,
    }
}
