//! Tensor memory and the products that sum in it (PTX ISA 9.7.16): `tcgen05`, of one CTA or of a pair.
//!
//! | instruction | becomes |
//! |---|---|
//! | `.alloc` | columns for the CTA, whose address a store to shared memory follows with |
//! | `.dealloc`, `.relinquish_alloc_permit` | a step each |
//! | `.ld`, `.st` | a transfer of registers, which are in a table of the kernel |
//! | `.wait::ld`, `.wait::st` | a wait of the warp |
//! | `.mma` | a product, of which the types and sizes are known when it runs; with `.block_scale` in `scaled.rs` |
//! | `.cp` | a copy of a lane from shared memory (`scaled.rs`) |
//! | `.commit` | an arrival at a barrier behind the products so far, or at one in each CTA of a mask |
//! | `.fence` | nothing: products and transfers have their values in program order |
//!
//! All instructions of a kernel are of as many CTAs, as the ISA asks (`launch` looks for clusters of pairs).
//! Not supported: `.ws`, `.sp`, `.ashift`, `.shift`.

use super::super::super::ir::{
    AddressIn, AtomOp, CacheOp, Class, Elem, Mem, MemKind, Op, PhaseOp, Space, TensorKind, TensorShape, TensorStep,
};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, TensorDraft, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

mod scaled;

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["tcgen05"], |l, i, m| l.tcgen05(i, m))];

/// An instruction, by its first modifier.
#[derive(Clone, Copy, PartialEq)]
enum Tcgen05 {
    Allocate,
    Free,
    Relinquish,
    Load,
    Store,
    Wait(TensorStep),
    Multiply,
    Copy,
    Commit,
    Fence,
}

const INSTRUCTIONS: [(&str, Tcgen05); 12] = [
    ("alloc", Tcgen05::Allocate),
    ("dealloc", Tcgen05::Free),
    ("relinquish_alloc_permit", Tcgen05::Relinquish),
    ("ld", Tcgen05::Load),
    ("st", Tcgen05::Store),
    ("wait::ld", Tcgen05::Wait(TensorStep::WaitLoads)),
    ("wait::st", Tcgen05::Wait(TensorStep::WaitStores)),
    ("mma", Tcgen05::Multiply),
    ("cp", Tcgen05::Copy),
    ("commit", Tcgen05::Commit),
    ("fence::before_thread_sync", Tcgen05::Fence),
    ("fence::after_thread_sync", Tcgen05::Fence),
];

/// Modifiers of the family that are known and not supported.
const REFUSED: [(&str, &str); 4] = [
    ("ws", "products with a stationary b"),
    ("sp", "products with a sparse a"),
    ("ashift", "products with shifted rows"),
    ("shift", "shifts of rows"),
];

impl<'a> Lower<'_, 'a> {
    fn tcgen05(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if let Some((word, what)) =
            i.mods.iter().find_map(|word| REFUSED.iter().find(|(name, _)| *name == word.text).map(|of| (word, of.1)))
        {
            return Err(
                self.fault(word.at.clone(), format!("{what} (`tcgen05` with `.{}`) are not supported", word.text))
            );
        }
        let Some(what) = m.one_of(&INSTRUCTIONS) else {
            let names: Vec<String> = INSTRUCTIONS.iter().map(|(name, _)| format!("`.{name}`")).collect();
            return Err(self.fault(i.opcode.at.clone(), format!("`tcgen05` is {}", names.join(", "))));
        };
        // What a thread does by itself names no lanes.
        let of_warps = !matches!(what, Tcgen05::Multiply | Tcgen05::Copy | Tcgen05::Commit | Tcgen05::Fence);
        for word in ["sync", "aligned"] {
            if of_warps && !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("this `tcgen05` needs `.{word}`")));
            }
        }
        // Only what may be of two CTAs says of how many.
        let grouped = !matches!(what, Tcgen05::Load | Tcgen05::Store | Tcgen05::Wait(_) | Tcgen05::Fence);
        let paired = if grouped { self.cta_group(i, m)? } else { false };
        match what {
            Tcgen05::Allocate => self.allocate_columns(i, m, paired),
            Tcgen05::Free => {
                m.take("b32");
                let [address, columns] = self.operands(i)?;
                let (address, columns) = (self.src(address, Ty::B32)?, self.src(columns, Ty::U32)?);
                let step = if paired { TensorStep::FreePair } else { TensorStep::Free };
                self.tensor_step(step, &[], &[address, columns])
            }
            Tcgen05::Relinquish => {
                let [] = self.operands(i)?;
                self.tensor_step(TensorStep::Relinquish, &[], &[])
            }
            Tcgen05::Load | Tcgen05::Store => self.tensor_transfer(i, m, what == Tcgen05::Load),
            Tcgen05::Wait(step) => {
                let [] = self.operands(i)?;
                self.tensor_step(step, &[], &[])
            }
            Tcgen05::Multiply => self.tensor_product(i, m, paired),
            Tcgen05::Copy => self.tensor_copy(i, m, paired),
            Tcgen05::Commit => self.commit_products(i, m),
            Tcgen05::Fence => {
                let [] = self.operands(i)?;
                self.emit(Op::Nop, Class::Control, &[], &[], 0);
                Ok(())
            }
        }
    }

    /// Whether an instruction is one of a pair of CTAs.
    fn cta_group(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<bool> {
        let found = m.one_of(&[("cta_group::1", false), ("cta_group::2", true)]);
        let message = "this `tcgen05` needs `.cta_group::1` or `.cta_group::2`";
        let Some(paired) = found else { return Err(self.fault(i.opcode.at.clone(), message)) };
        if self.paired.replace(paired).is_some_and(|before| before != paired) {
            let message = "all `tcgen05` of a kernel have the same `.cta_group`, and this differs from those before it";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        Ok(paired)
    }

    fn tensor_step(&mut self, step: TensorStep, dst: &[Arg], src: &[Arg]) -> Lowered {
        self.emit(Op::Tensor(step), Class::Control, dst, src, 0);
        Ok(())
    }

    /// Columns, and a store of their address, which all lanes make alike.
    fn allocate_columns(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, paired: bool) -> Lowered {
        m.take("shared::cta");
        m.take("b32");
        let [to, columns] = self.operands(i)?;
        let columns = self.src(columns, Ty::U32)?;
        let to = self.address(to, Space::Shared)?;
        let address = Arg::Reg(self.body.register(Bank::R32));
        let step = if paired { TensorStep::AllocatePair } else { TensorStep::Allocate };
        self.tensor_step(step, &[address], &[columns])?;
        let mem = Mem { address: AddressIn::slot(to.wide), ..plain_access(MemKind::Store, Space::Shared, Elem::U32) };
        self.emit(Op::Mem(mem), Class::Mem, &[address], &[to.base], to.offset);
        Ok(())
    }

    /// An address in tensor memory: 32 bits, with its offset added.
    fn tensor_address(&mut self, operand: &'a Operand<'a>) -> Lowered<Arg> {
        let address = self.address(operand, Space::Shared)?;
        if address.wide {
            return Err(self.fault(operand.at.clone(), "an address in tensor memory has 32 bits"));
        }
        Ok(self.at_offset(Bank::R32, (address.base, address.offset)))
    }

    fn tensor_transfer(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, loads: bool) -> Lowered {
        const SHAPES: [(&str, TensorShape); 5] = [
            ("32x32b", TensorShape::Lanes32),
            ("16x64b", TensorShape::Bits64),
            ("16x128b", TensorShape::Bits128),
            ("16x256b", TensorShape::Bits256),
            ("16x32bx2", TensorShape::Halves(0)),
        ];
        let shape = m.one_of(&SHAPES);
        let times = m.find(|word| word.strip_prefix('x')?.parse::<usize>().ok());
        let packs = m.take(if loads { "pack::16b" } else { "unpack::16b" });
        let (Some(mut shape), Some(times), true) = (shape, times, m.take("b32")) else {
            let message = "a transfer of tensor memory needs a shape, `.x1` to `.x128`, and `.b32`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        // Which columns share a register is plain of this shape alone.
        if packs && shape != TensorShape::Lanes32 {
            let message = "halves of two columns in a register are supported of `.32x32b` alone";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        // The offset of the halves is a number behind the address.
        let mut operands: Vec<&Operand<'a>> = i.operands.iter().collect();
        if let TensorShape::Halves(apart) = &mut shape {
            let at = if loads { 2 } else { 1 };
            if operands.len() != 3 {
                return self.operands::<3>(i).map(|_| ());
            }
            *apart = self.number(operands.remove(at))? as u16;
        }
        // A load names its registers first, a store its address.
        let [first, second] = operands[..] else { return self.operands::<2>(i).map(|_| ()) };
        let (address, vector) = if loads { (second, first) } else { (first, second) };
        let address = self.tensor_address(address)?;
        let parts = self.elements(vector)?;
        let registers = times * shape.registers();
        if parts.len() != registers || !times.is_power_of_two() || registers > 128 {
            let message = format!("this shape has {registers} register(s), found {}", parts.len());
            return Err(self.fault(vector.at.clone(), message));
        }
        let mut args = Vec::with_capacity(registers);
        for part in parts.iter() {
            args.push(if loads { self.dst(part, Bank::R32)? } else { self.src(part, Ty::B32)? });
        }
        let step = if loads { TensorStep::Load(shape) } else { TensorStep::Store(shape) };
        self.tensor_step(step, &[], &[address])?;
        if let Some(draft) = self.body.code.last_mut() {
            draft.tensor = Some(Box::new(TensorDraft::Vector { registers: args, loads, packs }));
        }
        Ok(())
    }

    fn tensor_product(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, paired: bool) -> Lowered {
        if m.take("block_scale") {
            return self.scaled_product(i, m, paired);
        }
        const KINDS: [(&str, TensorKind); 4] = [
            ("kind::f16", TensorKind::Half),
            ("kind::tf32", TensorKind::Tf32),
            ("kind::f8f6f4", TensorKind::Fp8),
            ("kind::i8", TensorKind::Bytes),
        ];
        let Some(kind) = m.one_of(&KINDS) else {
            let message = "`tcgen05.mma` of `.kind::f16`, `.kind::tf32`, `.kind::f8f6f4` and `.kind::i8` is supported, and with \
                           `.block_scale` that of `.kind::mxf8f6f4`, `.kind::mxf4` and `.kind::mxf4nvf4`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        // How long a is kept near the tensor cores changes no value.
        m.skip(|word| word.starts_with("collector::a"));
        let [d, a, b, instruction, rest @ ..] = i.operands.as_slice() else {
            return self.operands::<5>(i).map(|_| ());
        };
        let d = self.tensor_address(d)?;
        let in_tensor_memory = matches!(a.kind, OperandKind::Address(_));
        let a = if in_tensor_memory { self.tensor_address(a)? } else { self.src(a, Ty::B64)? };
        let (b, instruction) = (self.src(b, Ty::B64)?, self.src(instruction, Ty::B32)?);
        // Masks of lanes may stand before the predicate, a power of two behind it.
        let (mut disabled, masks_of) = ([Arg::None; 8], if paired { 8 } else { 4 });
        let rest = match rest {
            [masks, rest @ ..] if matches!(masks.kind, OperandKind::Vector(_)) => {
                let parts = self.elements(masks)?;
                if parts.len() != masks_of {
                    let message = format!("the lanes to be left alone have {masks_of} masks, found {}", parts.len());
                    return Err(self.fault(masks.at.clone(), message));
                }
                for (mask, part) in disabled.iter_mut().zip(parts.iter()) {
                    *mask = self.src(part, Ty::B32)?;
                }
                rest
            }
            rest => rest,
        };
        let (adds, scale) = match rest {
            [adds] => (adds, 0),
            [adds, scale] => (adds, self.number(scale)?),
            _ => return self.operands::<5>(i).map(|_| ()),
        };
        if scale > 15 {
            return Err(self.fault(i.opcode.at.clone(), "`scale-input-d` is 0 to 15"));
        }
        let (adds, negated) = self.src_pred(adds)?;
        let step = if paired { TensorStep::MultiplyPair(kind) } else { TensorStep::Multiply(kind) };
        self.tensor_step(step, &[], &[d, a, b, instruction])?;
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[0] = adds;
            draft.more[1..].copy_from_slice(&disabled);
            let product = TensorDraft::Product { in_tensor_memory, adds: negated == 0, scale: scale as u8 };
            draft.tensor = Some(Box::new(product));
        }
        Ok(())
    }

    /// An arrival behind the products of the CTA so far.
    fn commit_products(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if !m.take("mbarrier::arrive::one") {
            return Err(self.fault(i.opcode.at.clone(), "`tcgen05.commit` needs `.mbarrier::arrive::one`"));
        }
        m.skip(|word| matches!(word, "shared::cluster" | "b64"));
        if m.take("multicast::cluster") {
            return self.commit_to(i);
        }
        let [object] = self.operands(i)?;
        let address = self.address(object, Space::Shared)?;
        let one = self.body.literal(Bank::R64, 1);
        let mem = Mem {
            atom: AtomOp::Phase(PhaseOp::ArriveBehindProducts),
            wide: true,
            address: AddressIn::slot(address.wide),
            cache: CacheOp::Volatile,
            ..plain_access(MemKind::Reduction, Space::Shared, Elem::U64)
        };
        self.emit(Op::Mem(mem), Class::Mem, &[Arg::None], &[address.base, one, Arg::None], address.offset);
        Ok(())
    }

    /// The same, in each CTA of a mask.
    fn commit_to(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let [object, mask] = self.operands(i)?;
        let (at, mask) = (self.shared_operand(object)?, self.src(mask, Ty::B32)?);
        self.tensor_step(TensorStep::CommitTo, &[], &[at, mask])
    }
}
