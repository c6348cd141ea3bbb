//! Loads, stores, atomics, textures (PTX ISA 9.7.9, 9.7.10, 9.7.13).
//!
//! Cache hints (`.L1::...`, `.L2::...`, policies, `discard`, `applypriority`) are ignored; the first one that
//! is about evictions is told. `.acquire` is a fence of its scope behind an access that bypasses the L1,
//! `.release` one before it (PTX ISA 8.8, "Release and Acquire Patterns"): an acquire waits for the thread's
//! own stores, too, which it need not. Kernel parameters are launch constants, so `ld.param` of an entry is
//! a move.

use super::super::super::alu::{AluOp, Cvt};
use super::super::super::ir::{
    AddressIn, AtomOp, CacheOp, Class, ConstSource, Elem, Mem, MemKind, Op, Scope, Space, StoreHint, TexDims,
};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, Const, DraftOp, plain_access};
use super::super::layout::Symbol;
use super::super::lower::{HINTS_IGNORED, Lower, Lowered, Name};
use super::super::types::{Bank, Class as TyClass, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[
    (&["ld", "ldu"], |l, i, m| l.load(i, m)),
    (&["st"], |l, i, m| if m.take("async") { l.store_async(i, m) } else { l.store(i, m) }),
    (&["atom", "red"], |l, i, m| if m.take("async") { l.reduce_async(i, m) } else { l.atomic(i, m) }),
    (&["tex"], |l, i, m| l.texture(i, m)),
    (&["prefetch", "prefetchu", "discard", "applypriority"], |l, _, m| l.prefetch(m)),
    (&["createpolicy"], |l, i, m| l.create_policy(i, m)),
];

/// State spaces of memory instructions; parameters are apart.
const SPACES: [(&str, Option<Space>); 10] = [
    ("global", Some(Space::Global)),
    ("shared", Some(Space::Shared)),
    ("shared::cta", Some(Space::Shared)),
    ("shared::cluster", Some(Space::Shared)),
    ("local", Some(Space::Local)),
    ("const", Some(Space::Const)),
    ("param", None),
    ("param::entry", None),
    ("param::func", None),
    ("generic", Some(Space::Generic)),
];

/// The counts of a vector's elements.
const COUNTS: [(&str, u8); 3] = [("v2", 2), ("v4", 4), ("v8", 8)];

/// Cache operators and orders that bypass the L1.
const CACHE: [(&str, CacheOp); 15] = [
    ("ca", CacheOp::All),
    ("wb", CacheOp::All),
    ("cg", CacheOp::L2Only),
    ("cs", CacheOp::Streaming),
    ("lu", CacheOp::Streaming),
    ("cv", CacheOp::Volatile),
    ("wt", CacheOp::NonTemporal),
    ("nc", CacheOp::ReadOnly),
    ("volatile", CacheOp::Volatile),
    ("relaxed", CacheOp::Volatile),
    ("acquire", CacheOp::Volatile),
    ("release", CacheOp::Volatile),
    ("acq_rel", CacheOp::Volatile),
    ("mmio", CacheOp::Volatile),
    ("weak", CacheOp::All),
];

fn is_hint(text: &str) -> bool {
    text.starts_with("L1::")
        || text.starts_with("L2::")
        || matches!(text, "cta" | "gpu" | "sys" | "cluster" | "unified")
}

/// What `ld`, `st` and accesses of textures and surfaces have in common.
pub(super) struct Access {
    /// `None` for parameters.
    pub(super) space: Option<Space>,
    pub(super) cache: CacheOp,
    pub(super) vec: u8,
    pub(super) ty: Ty,
    pub(super) elem: Elem,
}

/// What a handle is of.
#[derive(Clone, Copy)]
pub(super) enum Handle {
    Texture,
    Surface,
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn access(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<Access> {
        let space = m.one_of(&SPACES).unwrap_or(Some(Space::Generic));
        let mut cache = CacheOp::All;
        while let Some(op) = m.one_of(&CACHE) {
            // The strongest word counts: `.global.nc.L1::...`, `.relaxed.gpu`.
            if op != CacheOp::All {
                cache = op;
            }
        }
        m.skip(is_hint);
        let vec = m.one_of(&COUNTS).unwrap_or(1);
        let ty = self.ty(i, m)?;
        // A register of 128 bits is two of 64.
        let (ty, vec) = if ty == Ty::B128 && vec == 1 { (Ty::B64, 2) } else { (ty, vec) };
        let Some(elem) = ty.elem() else {
            return self.bad_type(i, ty);
        };
        let access = Access { space, cache, vec, ty, elem };
        let most = if matches!(space, Some(Space::Global | Space::Generic)) { 32 } else { 16 };
        if access.bytes() > most {
            return Err(self.fault(i.opcode.at.clone(), format!("a vector of {vec} {ty} exceeds {most} bytes")));
        }
        Ok(access)
    }

    /// The registers of a scalar or vector operand of a load: slots, and whether they are 64-bit.
    pub(super) fn destinations(&mut self, operand: &Operand<'a>, access: &Access) -> Lowered<([Arg; 4], bool)> {
        let parts = &*self.elements(operand)?;
        self.vector_length(operand, parts.len(), access)?;
        let (mut dst, mut wide) = ([Arg::None; 4], None);
        // The bank of a sink follows that of its neighbours.
        for part in parts {
            if let OperandKind::Name { name, .. } = part.kind
                && name != "_"
            {
                wide = Some(self.dst_any(part, Bank::R32)?.1);
            }
        }
        let wide = wide.unwrap_or(access.ty.bits == 64);
        let bank = if wide { Bank::R64 } else { Bank::R32 };
        if access.ty.bits == 64 && !wide {
            return Err(self.fault(operand.at.clone(), format!("{} needs 64-bit registers", access.ty)));
        }
        for (dst, part) in dst.iter_mut().zip(parts) {
            *dst = self.dst(part, bank)?;
        }
        Ok((dst, wide))
    }

    /// The data of a store: slots, and whether they are 64-bit.
    pub(super) fn data(&mut self, operand: &Operand<'a>, access: &Access) -> Lowered<([Arg; 4], bool)> {
        let parts = &*self.elements(operand)?;
        self.vector_length(operand, parts.len(), access)?;
        let mut wide = access.ty.bits == 64;
        for part in parts {
            let register = match part.kind {
                OperandKind::Name { name, component, offset: 0 } => match (self.name(name)?, component) {
                    (Some(Name::Register(register)), None) | (Some(Name::Vector(register, _)), Some(_)) => {
                        Some(register)
                    }
                    _ => None,
                },
                _ => None,
            };
            if let Some(register) = register {
                wide = self.body.banks[register as usize] == Bank::R64;
            }
        }
        // A literal takes the width of the registers beside it.
        let ty = match (wide, access.ty.bits) {
            (true, 64) | (false, ..64) => access.ty,
            (true, _) => Ty::B64,
            (false, _) => {
                return Err(self.fault(operand.at.clone(), format!("{} needs 64-bit registers", access.ty)));
            }
        };
        let mut dst = [Arg::None; 4];
        for (dst, part) in dst.iter_mut().zip(parts) {
            *dst = self.src(part, ty)?;
        }
        Ok((dst, wide))
    }

    pub(super) fn vector_length(&mut self, operand: &Operand<'a>, found: usize, access: &Access) -> Lowered {
        if found == usize::from(access.vec) {
            return Ok(());
        }
        Err(self.fault(operand.at.clone(), format!("expected {} element(s), found {found}", access.vec)))
    }

    /// Drops a trailing cache-policy operand.
    fn without_policy(&self, i: &'a Instruction<'a>, operands: usize) -> &'a [Operand<'a>] {
        let has_policy = i.mods.iter().any(|w| w.text == "L2::cache_hint");
        let n = i.operands.len();
        if has_policy && n == operands + 1 { &i.operands[..operands] } else { &i.operands }
    }

    pub(super) fn load(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let access = self.access(i, m)?;
        self.emit_load(i, access, StoreHint::Plain)
    }

    /// `pm.ld.log`
    pub(super) fn hinted_load(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, hint: StoreHint) -> Lowered {
        let access = self.access(i, m)?;
        self.in_global(i, &access, "persistent")?;
        self.emit_load(i, access, hint)
    }

    /// Operations on such memory are global.
    pub(super) fn in_global(&mut self, i: &'a Instruction<'a>, access: &Access, memory: &str) -> Lowered {
        if matches!(access.space, Some(Space::Global | Space::Generic)) {
            return Ok(());
        }
        Err(self.fault(i.opcode.at.clone(), format!("{memory} memory is global: use `.global` or no space")))
    }

    pub(super) fn emit_load(&mut self, i: &'a Instruction<'a>, mut access: Access, hint: StoreHint) -> Lowered {
        if i.opcode.text == "ldu" {
            access.cache = CacheOp::ReadOnly;
        }
        let [d, a] = self.without_policy(i, 2) else {
            return self.operands::<2>(i).map(|_| ());
        };
        match access.half() {
            None => self.load_part(i, d, a, &access, hint, 0)?,
            Some(half) => {
                for (d, a, whole) in self.halves(d, a, &access)? {
                    self.load_part(i, &d, &a, &half, hint, whole)?;
                }
            }
        }
        if let Some(space) = access.space {
            self.fence_if(i, space, &["acquire"]);
        }
        Ok(())
    }

    /// One access of a load.
    fn load_part(
        &mut self,
        i: &'a Instruction<'a>,
        d: &Operand<'a>,
        a: &Operand<'a>,
        access: &Access,
        hint: StoreHint,
        whole: u8,
    ) -> Lowered {
        let Some(space) = access.space else {
            return self.load_param(i, d, a, access);
        };
        let (dst, wide) = self.destinations(d, access)?;
        let address = self.address(a, space)?;
        let mem = Mem {
            vec: access.vec,
            cache: access.cache,
            hint,
            wide,
            address: AddressIn::slot(address.wide),
            whole,
            ..plain_access(MemKind::Load, space, access.elem)
        };
        self.emit(Op::Mem(mem), Class::Mem, &dst, &[address.base], address.offset);
        Ok(())
    }

    pub(super) fn store(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let access = self.access(i, m)?;
        self.emit_store(i, access, StoreHint::Plain)
    }

    /// `pm.st.nt`, `pm.st.log`
    pub(super) fn hinted_store(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>, hint: StoreHint) -> Lowered {
        let access = self.access(i, m)?;
        self.in_global(i, &access, "persistent")?;
        self.emit_store(i, access, hint)
    }

    fn emit_store(&mut self, i: &'a Instruction<'a>, access: Access, hint: StoreHint) -> Lowered {
        let [a, b] = self.without_policy(i, 2) else {
            return self.operands::<2>(i).map(|_| ());
        };
        match access.space {
            Some(Space::Const) => {
                return Err(self.fault(i.opcode.at.clone(), "constant memory cannot be written"));
            }
            Some(space) => {
                self.note_release(i);
                self.fence_if(i, space, &["release"]);
            }
            None => {}
        }
        match access.half() {
            None => self.store_part(a, b, &access, hint, 0),
            Some(half) => {
                for (b, a, whole) in self.halves(b, a, &access)? {
                    self.store_part(&a, &b, &half, hint, whole)?;
                }
                Ok(())
            }
        }
    }

    /// One access of a store.
    fn store_part(&mut self, a: &Operand<'a>, b: &Operand<'a>, access: &Access, hint: StoreHint, whole: u8) -> Lowered {
        let Some(space) = access.space else {
            return self.store_param(a, b, access);
        };
        let (data, wide) = self.data(b, access)?;
        let address = self.address(a, space)?;
        let mem = Mem {
            vec: access.vec,
            cache: access.cache,
            hint,
            wide,
            address: AddressIn::slot(address.wide),
            whole,
            ..plain_access(MemKind::Store, space, access.elem)
        };
        self.emit(Op::Mem(mem), Class::Mem, &data, &[address.base], address.offset);
        Ok(())
    }

    /// Notes a store or an atomic that releases, for the search of races.
    fn note_release(&mut self, i: &Instruction<'a>) {
        if i.mods.iter().any(|word| matches!(word.text, "release" | "acq_rel")) {
            self.body.releases.push(self.at.start);
        }
    }

    /// The fence that an access is as well, if it has one of these words. Warps of a CTA share an L1 and, in
    /// order, shared memory: scope cta needs none.
    fn fence_if(&mut self, i: &Instruction<'a>, space: Space, orders: &[&str]) {
        let has = |words: &[&str]| i.mods.iter().any(|word| words.contains(&word.text));
        let scope = if has(&["sys"]) { Scope::Sys } else { Scope::Gpu };
        let elsewhere = matches!(space, Space::Global | Space::Generic) || has(&["shared::cluster"]);
        if elsewhere && has(orders) && !has(&["cta"]) {
            self.emit(Op::Fence(scope), Class::Control, &[], &[], 0);
        }
    }

    /// The parameter that an address names, and the offset in it.
    fn param(&mut self, a: &Operand<'a>) -> Lowered<Option<(Name, i64)>> {
        if let OperandKind::Address(parts) = &a.kind
            && let [Operand { kind: OperandKind::Name { name, component: None, offset }, .. }] = parts.as_slice()
        {
            return Ok(self.name(name)?.map(|n| (n, *offset)));
        }
        Ok(None)
    }

    fn load_param(&mut self, i: &'a Instruction<'a>, d: &Operand<'a>, a: &Operand<'a>, access: &Access) -> Lowered {
        let (dst, wide) = self.destinations(d, access)?;
        match self.param(a)? {
            Some((Name::EntryParam(base), offset)) => {
                self.in_parameter(a, base, offset, access)?;
                let bank = if wide { Bank::R64 } else { Bank::R32 };
                let mut src = [Arg::None; 4];
                for (e, src) in src.iter_mut().enumerate().take(usize::from(access.vec)) {
                    let at = i64::from(base) + offset + i64::from(access.elem.bytes()) * e as i64;
                    let Ok(offset) = u32::try_from(at) else {
                        return Err(self.fault(a.at.clone(), "the offset lies before the parameter"));
                    };
                    *src = self.body.constant(bank, Const::Source(ConstSource::Param { offset, elem: access.elem }));
                }
                if let (Arg::Reg(register), 1, 64) = (dst[0], access.vec, access.ty.bits)
                    && let Some(param) =
                        self.params.iter().find(|param| i64::from(param.offset) == i64::from(base) + offset)
                {
                    self.handles.insert(register, param.name.clone());
                }
                let op = match (access.vec, wide) {
                    (1, false) => AluOp::Mov32,
                    (1, true) => AluOp::Mov64,
                    (_, wide) => AluOp::MovVec(wide),
                };
                self.emit(Op::Alu(op), Class::Const, &dst, &src, 0);
                Ok(())
            }
            Some((Name::Block(block), offset)) => {
                let offset = self.block_offset(a, block, offset, access)?;
                let op = DraftOp::Param { store: false, block, offset, elem: access.elem, vec: access.vec };
                self.emit_draft(op, Class::Logic, &dst, &[], 0);
                Ok(())
            }
            Some((Name::Register(from), 0)) if !self.is_address(from) && self.inlined() => {
                // An old-style register parameter.
                self.register_param(dst[0], from, access, wide)
            }
            _ => {
                // The address of a parameter is computed: it lies in the constant bank, or in local memory.
                let space = if self.inlined() { Space::Local } else { Space::Const };
                self.body.uses_param_bank |= space == Space::Const;
                let address = self.address(a, space)?;
                let mem = Mem {
                    vec: access.vec,
                    wide,
                    address: AddressIn::slot(address.wide),
                    ..plain_access(MemKind::Load, space, access.elem)
                };
                self.emit(Op::Mem(mem), Class::Mem, &dst, &[address.base], address.offset);
                let _ = i;
                Ok(())
            }
        }
    }

    fn is_address(&self, register: u32) -> bool {
        self.body.banks[register as usize] == Bank::R64
    }

    fn register_param(&mut self, d: Arg, from: u32, access: &Access, wide: bool) -> Lowered {
        let Some(num) = Ty { class: TyClass::Unsigned, ..access.ty }.num() else {
            return Err(self.fault(self.place(), "not a parameter type"));
        };
        let cvt = Cvt { wide_to: wide, ..Cvt::exact(num, num) };
        self.emit(Op::Alu(AluOp::Cvt(cvt)), Class::Convert, &[d], &[Arg::Reg(from)], 0);
        Ok(())
    }

    fn store_param(&mut self, a: &Operand<'a>, b: &Operand<'a>, access: &Access) -> Lowered {
        let (data, wide) = self.data(b, access)?;
        match self.param(a)? {
            Some((Name::Block(block), offset)) => {
                let offset = self.block_offset(a, block, offset, access)?;
                let op = DraftOp::Param { store: true, block, offset, elem: access.elem, vec: access.vec };
                self.emit_draft(op, Class::Logic, &data, &[], 0);
                Ok(())
            }
            Some((Name::EntryParam(_), _)) => {
                Err(self.fault(a.at.clone(), "the parameters of a kernel cannot be written"))
            }
            _ => {
                let address = self.address(a, Space::Local)?;
                let mem = Mem {
                    vec: access.vec,
                    wide,
                    address: AddressIn::slot(address.wide),
                    ..plain_access(MemKind::Store, Space::Local, access.elem)
                };
                self.emit(Op::Mem(mem), Class::Mem, &data, &[address.base], address.offset);
                Ok(())
            }
        }
    }

    /// An access to a parameter of the kernel lies within it and is aligned. The layout of parameters among
    /// each other is the driver's.
    fn in_parameter(&mut self, a: &Operand<'a>, base: u32, offset: i64, access: &Access) -> Lowered {
        // An empty parameter shares its place with the next one.
        let bytes = self.params.iter().filter(|param| param.offset == base).map(|param| param.bytes).max();
        let bytes = bytes.unwrap_or(0);
        self.within(a, offset, u64::from(base), bytes, access)
    }

    fn block_offset(&mut self, a: &Operand<'a>, block: u32, offset: i64, access: &Access) -> Lowered<u32> {
        // What is no multiple of the access is misaligned wherever the block comes to lie.
        let bytes = self.body.blocks[block as usize].bytes;
        self.within(a, offset, 0, bytes, access)?;
        Ok(offset as u32)
    }

    /// An access at an offset of a parameter that lies at `base` and has `bytes`.
    fn within(&mut self, a: &Operand<'a>, offset: i64, base: u64, bytes: u32, access: &Access) -> Lowered {
        let size = u64::from(access.elem.bytes()) * u64::from(access.vec);
        let inside = u64::try_from(offset).ok().filter(|at| at.saturating_add(size) <= u64::from(bytes));
        let Some(at) = inside else {
            let message = format!("{size} bytes at offset {offset} exceed the {bytes} bytes of the parameter");
            return Err(self.fault(a.at.clone(), message));
        };
        if !(base + at).is_multiple_of(size) {
            let message = format!("{size} bytes at offset {offset} of the parameter are not aligned to their size");
            return Err(self.fault(a.at.clone(), message));
        }
        Ok(())
    }

    pub(super) fn atomic(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let returns = i.opcode.text == "atom";
        self.note_release(i);
        let space = m.one_of(&SPACES).unwrap_or(Some(Space::Generic));
        m.skip(|text| is_hint(text) || matches!(text, "relaxed" | "acquire" | "release" | "acq_rel"));
        // Multicast memory has one way to add halves, which has no word.
        let noftz = m.take("noftz") || i.opcode.text == "multimem";
        let op = m.one_of(&[
            ("add", AtomOp::Add),
            ("inc", AtomOp::Inc),
            ("dec", AtomOp::Dec),
            ("min", AtomOp::Min),
            ("max", AtomOp::Max),
            ("and", AtomOp::And),
            ("or", AtomOp::Or),
            ("xor", AtomOp::Xor),
            ("exch", AtomOp::Exch),
            ("cas", AtomOp::Cas),
        ]);
        let vector = m.one_of(&COUNTS);
        let ty = self.ty(i, m)?;
        let Some(op) = op else {
            return Err(
                self.fault(i.opcode.at.clone(), format!("`{}` needs an operation such as `.add`", i.opcode.text))
            );
        };
        let op = match (op, ty.half()) {
            (AtomOp::Add, Some(half)) if noftz => AtomOp::AddHalf(half),
            (AtomOp::Add, Some(_)) => {
                return Err(self.fault(i.opcode.at.clone(), format!("an addition of type {ty} needs `.noftz`")));
            }
            // Of vectors alone.
            (AtomOp::Min, Some(half)) if noftz && vector.is_some() && !half.is_pair() => AtomOp::MinHalf(half.format()),
            (AtomOp::Max, Some(half)) if noftz && vector.is_some() && !half.is_pair() => AtomOp::MaxHalf(half.format()),
            (_, Some(_)) => return self.bad_type(i, ty),
            (op, None) => op,
        };
        let swaps = matches!(op, AtomOp::Cas | AtomOp::Exch);
        let pair = ty == Ty::B128 && swaps && returns && vector.is_none();
        // Elements of less than 32 bits are for these operations only.
        let small = swaps || ty.half().is_some();
        let ty = if pair { Ty::B64 } else { ty };
        let elem = ty.elem().filter(|_| ty.bits >= 32 || small);
        let (Some(elem), Some(space @ (Space::Global | Space::Shared | Space::Generic))) = (elem, space) else {
            return self.bad_type(i, ty);
        };
        if ty.is_float() && !matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max | AtomOp::Exch) {
            return self.bad_type(i, ty);
        }
        let cas = op == AtomOp::Cas;
        let n = 2 + usize::from(returns) + usize::from(cas);
        // Counted without the cache policy, which may follow as one more operand.
        let operands = self.without_policy(i, n);
        if operands.len() != n {
            let message = format!("`{}` takes {n} operands here, found {}", i.opcode.text, i.operands.len());
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let rest = &operands[usize::from(returns)..];
        let address = self.address(&rest[0], space)?;
        let mem = Mem {
            atom: op,
            wide: ty.bits == 64,
            address: AddressIn::slot(address.wide),
            cache: CacheOp::Volatile,
            ..plain_access(MemKind::Reduction, space, elem)
        };
        if vector.is_some() || pair {
            self.fence_if(i, space, &["release", "acq_rel"]);
            let d = returns.then_some(&operands[0]);
            match vector {
                Some(count) => self.atomic_vector(i, (d, &rest[1]), &address, mem, (ty, count))?,
                None => self.atomic_pair(operands, &address, mem)?,
            }
            self.fence_if(i, space, &["acquire", "acq_rel"]);
            return Ok(());
        }
        let a = self.src(&rest[1], ty)?;
        let b = if cas { self.src(&rest[2], ty)? } else { Arg::None };
        let d = match (&operands[0].kind, returns) {
            (OperandKind::Name { name: "_", .. }, _) | (_, false) => Arg::None,
            _ => self.dst(&operands[0], ty.bank())?,
        };
        // An `atom` whose result goes nowhere is a reduction: it need not wait for the old value.
        let kind = if d == Arg::None { MemKind::Reduction } else { MemKind::Atomic };
        let mem = Mem { kind, ..mem };
        self.fence_if(i, space, &["release", "acq_rel"]);
        self.emit(Op::Mem(mem), Class::Mem, &[d], &[address.base, a, b], address.offset);
        self.fence_if(i, space, &["acquire", "acq_rel"]);
        Ok(())
    }

    /// Tells once that what an instruction says of evictions has no effect.
    pub(super) fn note_hint(&mut self, i: &Instruction<'a>) {
        let of_policy =
            |text: &str| text.starts_with("L1::evict") || text.starts_with("L2::evict") || text == "L2::cache_hint";
        let opcode = matches!(i.opcode.text, "createpolicy" | "applypriority" | "discard");
        if opcode || i.mods.iter().any(|word| of_policy(word.text)) {
            self.warn_once(i.opcode.at.clone(), HINTS_IGNORED);
        }
    }

    /// `createpolicy`: the policy is a number without a meaning here.
    pub(super) fn create_policy(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        m.skip(|text| {
            matches!(text, "fractional" | "range" | "cvt" | "global" | "L2") || text.starts_with("L2::evict")
        });
        let ty = self.ty(i, m)?;
        let Some((d, sources)) = i.operands.split_first().filter(|_| ty == Ty::B64) else {
            return self.bad_type(i, ty);
        };
        for source in sources {
            // Read by their kinds only: names must be known.
            match &source.kind {
                OperandKind::Address(_) => {
                    self.address(source, Space::Global)?;
                }
                OperandKind::Int(_) | OperandKind::Single(_) | OperandKind::Double(_) => {}
                _ => {
                    self.src_any(source, Ty::B32)?;
                }
            }
        }
        let (d, zero) = (self.dst(d, Bank::R64)?, self.body.literal(Bank::R64, 0));
        self.emit(Op::Alu(AluOp::Mov64), Class::Logic, &[d], &[zero], 0);
        Ok(())
    }

    pub(super) fn prefetch(&mut self, m: &mut Mods<'_, 'a>) -> Lowered {
        m.skip(|_| true);
        self.emit(Op::Nop, Class::Logic, &[], &[], 0);
        Ok(())
    }

    pub(super) fn texture(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        // How many coordinates, and whether a layer is before them.
        let geometry = m.one_of(&[
            ("1d", (1, false)),
            ("2d", (2, false)),
            ("3d", (3, false)),
            ("a1d", (1, true)),
            ("a2d", (2, true)),
        ]);
        let four = m.take("v4");
        // In the order of the text: the type of the result, then that of the coordinates.
        let (ty, at) = (self.ty(i, m)?, self.ty(i, m)?);
        let (Some((axes, layered)), true) = (geometry, four && ty.bits == 32) else {
            let message =
                "only `tex` of `.1d`, `.2d`, `.3d`, `.a1d` and `.a2d` with `.v4` and 32-bit results is supported";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let [d, a] = self.operands(i)?;
        let access = Access { space: None, cache: CacheOp::ReadOnly, vec: 4, ty, elem: Elem::U32 };
        let (dst, wide) = self.destinations(d, &access)?;
        if wide {
            return Err(self.fault(d.at.clone(), "texture fetches return 32-bit values"));
        }
        let OperandKind::Address(parts) = &a.kind else {
            return Err(self.fault(a.at.clone(), "expected `[texture, {coordinates}]`"));
        };
        let [texture, coordinates] = parts.as_slice() else {
            return Err(self.fault(a.at.clone(), "expected `[texture, {coordinates}]` (samplers are not supported)"));
        };
        let name = self.handle(texture, Handle::Texture)?;
        // A single coordinate may stand without braces.
        let list = self.elements(coordinates)?;
        let n = axes + usize::from(layered);
        if list.len() < n || at.bits != 32 {
            return Err(self.fault(coordinates.at.clone(), format!("expected {n} coordinate(s) of 32 bits")));
        }
        let (mut src, mut list) = ([Arg::None; 4], &list[..]);
        if layered {
            src[2] = self.src(&list[0], Ty::B32)?;
            list = &list[1..];
        }
        for (src, coordinate) in src.iter_mut().zip(&list[..axes]) {
            *src = self.src(coordinate, at)?;
        }
        let dims = TexDims::new(axes, at.is_float(), layered);
        let (Some(elem), Some(dims)) = (ty.elem(), dims) else {
            return self.bad_type(i, ty);
        };
        // Each texture is bound once a kernel, however many fetches name it: its number goes into the
        // instruction.
        let index = match self.body.textures.iter().position(|t| *t == name) {
            Some(index) => index,
            None => {
                self.body.textures.push(name);
                self.body.textures.len() - 1
            }
        };
        let mem = Mem {
            vec: 4,
            cache: CacheOp::ReadOnly,
            address: AddressIn::Narrow,
            ..plain_access(MemKind::Texture(dims), Space::Global, elem)
        };
        self.emit(Op::Mem(mem), Class::Mem, &dst, &src, index as i32);
        Ok(())
    }

    /// The name of the texture or surface that an operand stands for.
    pub(super) fn handle(&mut self, operand: &Operand<'a>, wanted: Handle) -> Lowered<String> {
        let (what, variable) = match wanted {
            Handle::Texture => ("texture", ".texref"),
            Handle::Surface => ("surface", ".surfref"),
        };
        let OperandKind::Name { name, component: None, offset: 0 } = operand.kind else {
            return Err(self.fault(operand.at.clone(), format!("expected a {what}")));
        };
        let meant = match self.name(name)? {
            Some(Name::Register(register)) => self.handles.get(&register).cloned(),
            _ if self.env.symbols.contains_key(name) => Some(name.to_owned()),
            _ => None,
        };
        let Some(meant) = meant else {
            let message = format!("the {what} must be a `{variable}` variable or a kernel parameter");
            return Err(self.fault(operand.at.clone(), message));
        };
        // A kernel parameter is what it is used as.
        match (self.env.symbols.get(meant.as_str()), wanted) {
            (None | Some(Symbol::Texture), Handle::Texture) | (None | Some(Symbol::Surface), Handle::Surface) => {
                Ok(meant)
            }
            _ => Err(self.fault(operand.at.clone(), format!("`{meant}` is not a {what}"))),
        }
    }
}
