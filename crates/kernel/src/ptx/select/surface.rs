//! Surfaces (PTX ISA 9.7.11): unformatted loads and stores, and queries of sizes.
//!
//! An access is lowered to the address of its bytes and to a load or store of global memory there, so that
//! stores to surfaces are stores to memory for caches, persistency and region formation. Outside the bounds:
//!
//! | mode | `suld` | `sust` | how |
//! |---|---|---|---|
//! | `.trap` (default) | a fault of the program | the same | an address where nothing is |
//! | `.clamp` | the nearest place | the same | the address |
//! | `.zero` | zeros | nothing | a predicate; zeros are moved first |
//!
//! As with textures, a handle is a `.surfref` variable or a kernel parameter, known when the kernel is
//! lowered.
//!
//! Not supported, and refused: formatted stores (`sust.p`), `sured`, queries of formats.

use super::super::super::alu::{AluOp, SurfaceAccess};
use super::super::super::ir::{CacheOp, Class, ConstSource, Mem, MemKind, Op, Space, SurfaceSize};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, Const, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Class as TyClass, Ty};
use super::memory::{Access, Handle};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] =
    &[(&["suld", "sust"], |l, i, m| l.surface(i, m)), (&["suq"], |l, i, m| l.surface_query(i, m))];

/// `.1d` to `.a2d`: coordinates, and the layer is before them.
const GEOMETRIES: [(&str, (usize, bool)); 5] =
    [("1d", (1, false)), ("2d", (2, false)), ("3d", (3, false)), ("a1d", (1, true)), ("a2d", (2, true))];

const LOAD_OPERATORS: [(&str, CacheOp); 4] =
    [("ca", CacheOp::All), ("cg", CacheOp::L2Only), ("cs", CacheOp::Streaming), ("cv", CacheOp::Volatile)];

const STORE_OPERATORS: [(&str, CacheOp); 4] =
    [("wb", CacheOp::All), ("cg", CacheOp::L2Only), ("cs", CacheOp::Streaming), ("wt", CacheOp::NonTemporal)];

/// What an access outside the bounds does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Trap,
    Clamp,
    Zero,
}

impl<'a> Lower<'_, 'a> {
    /// `suld.b`, `sust.b`
    pub(super) fn surface(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let opcode = i.opcode.text;
        if !m.take("b") {
            let message = format!("only unformatted accesses (`{opcode}.b`) are supported");
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let Some((dims, layered)) = m.one_of(&GEOMETRIES) else {
            let message = format!("`{opcode}` needs a geometry such as `.2d`");
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let stores = opcode == "sust";
        // `.ca` and `.wb`, the defaults, cache everywhere.
        let operators = if stores { STORE_OPERATORS } else { LOAD_OPERATORS };
        let cache = m.one_of(&operators).unwrap_or(CacheOp::All);
        let vec = m.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
        let ty = self.ty(i, m)?;
        let outside = m
            .one_of(&[("trap", Outside::Trap), ("clamp", Outside::Clamp), ("zero", Outside::Zero)])
            .unwrap_or(Outside::Trap);
        let Some(elem) = ty.elem().filter(|_| ty.class == TyClass::Untyped) else {
            return self.bad_type(i, ty);
        };
        if elem.bytes() * u32::from(vec) > 16 {
            return Err(self.fault(i.opcode.at.clone(), format!("a vector of {vec} {ty} exceeds 16 bytes")));
        }
        let access = Access { space: Some(Space::Global), cache, vec, ty, elem };
        let [first, second] = self.operands(i)?;
        let (place, value) = if stores { (first, second) } else { (second, first) };
        let (data, wide) = if stores { self.data(value, &access)? } else { self.destinations(value, &access)? };
        let src = self.surface_place(place, dims, layered)?;

        let guard = self.guard;
        let address = Arg::Reg(self.body.register(Bank::R64));
        let bytes = (elem.bytes() * u32::from(vec)) as u8;
        let op = SurfaceAccess { bytes, layered, clamp: outside == Outside::Clamp };
        let mut dst = [address, Arg::None];
        if outside == Outside::Zero {
            let inside = self.body.register(Bank::Pred);
            dst[1] = Arg::Reg(inside);
            if guard.is_some() {
                // Lanes that the guard leaves out do not access either.
                self.guard = None;
                let no = self.body.literal(Bank::Pred, 0);
                self.emit(Op::Alu(AluOp::MovPred), Class::Logic, &[dst[1]], &[no], 0);
                self.guard = guard;
            }
        }
        self.emit(Op::Alu(AluOp::Surface(op)), Class::IntMul, &dst, &src, 0);
        if let Arg::Reg(inside) = dst[1] {
            if !stores {
                let bank = if wide { Bank::R64 } else { Bank::R32 };
                let zeros: [Arg; 4] = data.map(|d| match d {
                    Arg::None => Arg::None,
                    _ => self.body.literal(bank, 0),
                });
                self.emit(Op::Alu(AluOp::MovVec(wide)), Class::Logic, &data, &zeros, 0);
            }
            // It stands in for the guard: lanes that the guard leaves out hold false in it.
            self.guard = Some((inside, false));
        }
        let kind = if stores { MemKind::Store } else { MemKind::Load };
        let mem = Mem { vec, cache, wide, ..plain_access(kind, Space::Global, elem) };
        self.emit(Op::Mem(mem), Class::Mem, &data, &[address], 0);
        self.guard = guard;
        Ok(())
    }

    /// `[surface, {coordinates}]`: x, y, z or the layer, and the descriptor.
    fn surface_place(&mut self, place: &Operand<'a>, dims: usize, layered: bool) -> Lowered<[Arg; 4]> {
        let OperandKind::Address(parts) = &place.kind else {
            return Err(self.fault(place.at.clone(), "expected `[surface, {coordinates}]`"));
        };
        let [surface, coordinates] = parts.as_slice() else {
            return Err(self.fault(place.at.clone(), "expected `[surface, {coordinates}]`"));
        };
        let index = self.surface_index(surface)?;
        let list = self.elements(coordinates)?;
        let wanted = dims + usize::from(layered);
        // Vectors of three have a fourth element, which is ignored.
        if list.len() != wanted && !(wanted == 3 && list.len() == 4) {
            let message = format!("expected {wanted} coordinate(s), found {}", list.len());
            return Err(self.fault(coordinates.at.clone(), message));
        }
        let (layer, list) = if layered { (Some(&list[0]), &list[1..]) } else { (None, &*list) };
        let mut src = [Arg::None; 4];
        for (src, coordinate) in src.iter_mut().zip(&list[..dims]) {
            *src = self.src(coordinate, Ty::B32)?;
        }
        if let Some(layer) = layer {
            src[2] = self.src(layer, Ty::B32)?;
        }
        src[3] = self.body.constant(Bank::R64, Const::Source(ConstSource::Surface(index)));
        Ok(src)
    }

    fn surface_index(&mut self, surface: &Operand<'a>) -> Lowered<u32> {
        let name = self.handle(surface, Handle::Surface)?;
        let surfaces = &mut self.body.surfaces;
        let index = surfaces.iter().position(|known| *known == name).unwrap_or_else(|| {
            surfaces.push(name);
            surfaces.len() - 1
        });
        Ok(index as u32)
    }

    /// `suq`
    pub(super) fn surface_query(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let size = m.one_of(&[
            ("width", SurfaceSize::Width),
            ("height", SurfaceSize::Height),
            ("depth", SurfaceSize::Depth),
            ("array_size", SurfaceSize::Depth),
        ]);
        let Some(size) = size else {
            let message = "`suq` asks for `.width`, `.height`, `.depth` or `.array_size` here";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let ty = self.ty(i, m)?;
        if ty != Ty::B32 {
            return self.bad_type(i, ty);
        }
        let [d, a] = self.operands(i)?;
        let surface = match &a.kind {
            OperandKind::Address(parts) if parts.len() == 1 => &parts[0],
            _ => return Err(self.fault(a.at.clone(), "expected `[surface]`")),
        };
        let index = self.surface_index(surface)?;
        let d = self.dst(d, Bank::R32)?;
        let size = self.body.constant(Bank::R32, Const::Source(ConstSource::SurfaceSize { index, size }));
        self.emit(Op::Alu(AluOp::Mov32), Class::Const, &[d], &[size], 0);
        Ok(())
    }
}
