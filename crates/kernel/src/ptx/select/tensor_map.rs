//! Tensor maps that a program changes (PTX ISA 9.7.9.28): `tensormap.replace`, `tensormap.cp_fenceproxy`.
//!
//! | PTX | becomes |
//! |---|---|
//! | `tensormap.replace` | a store of the field, and one of the map's mark: 128 zeros become a map so |
//! | `tensormap.cp_fenceproxy` | a load and a store of a word by each lane, then a fence |
//!
//! Where fields lie is in `tensor_map`. Values are checked when a tile is copied, as a map may be wrong while
//! it is changed. Of the ISA's tables of immediates those are refused that a map here cannot have:
//! interleaved layouts, `.f32.ftz`, `.tf32`, elements of 4 and 6 bits, a swizzle of 96 bytes or of other
//! units than 16. `cp_fenceproxy` by a part of a warp, which the ISA leaves undefined, copies the words of
//! its lanes.

use super::super::super::alu::{AluOp, Cvt, IntOp, Num};
use super::super::super::ir::{AddressIn, Class, Elem, MemKind, Op, Scope, Space, Special};
use super::super::super::tensor_map::{MAP_BYTES, MARK, MOST_DIMENSIONS, fields};
use super::super::ast::{Instruction, Operand, OperandKind};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::operand::Address;
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["tensormap"], |l, i, m| l.change_map(i, m))];

/// A field of a map.
#[derive(Clone, Copy)]
enum MapField {
    Address,
    /// One less than the dimensions.
    Rank,
    /// One of a list: where it begins, and the type of its elements.
    Listed(u32, Elem),
    /// A stride, whose bits from 32 on have a place of their own.
    Stride,
    /// One of a table of immediates: where the byte lies, and what each immediate becomes there.
    Choice(u32, &'static [Option<u8>]),
}

/// Immediates of `.elemtype`: places in `TensorElem::ALL`.
const ELEMS: [Option<u8>; 14] = [
    Some(0),
    Some(1),
    Some(2),
    Some(3),
    Some(4),
    Some(5),
    Some(6),
    Some(7),
    None,
    Some(8),
    Some(9),
    None,
    None,
    Some(10),
];

/// The fields, as modifiers name them. No byte of a map has an interleaved layout or the units of a swizzle:
/// their one value is written over the mark's last byte, which it leaves as it is.
const FIELDS: [(&str, MapField); 11] = [
    ("global_address", MapField::Address),
    ("rank", MapField::Rank),
    ("box_dim", MapField::Listed(fields::BOX_SIZES, Elem::U8)),
    ("global_dim", MapField::Listed(fields::SIZES, Elem::U32)),
    ("global_stride", MapField::Stride),
    ("element_stride", MapField::Listed(fields::STEPS, Elem::U8)),
    ("elemtype", MapField::Choice(fields::ELEM, &ELEMS)),
    ("interleave_layout", MapField::Choice(fields::MARK_END, &[Some(b'M')])),
    ("swizzle_mode", MapField::Choice(fields::SWIZZLE, &[Some(0), Some(1), Some(2), Some(3)])),
    ("swizzle_atomicity", MapField::Choice(fields::MARK_END, &[Some(b'M')])),
    ("fill_mode", MapField::Choice(fields::FILL, &[Some(0), Some(1)])),
];

impl<'a> Lower<'_, 'a> {
    fn change_map(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        if m.take("cp_fenceproxy") {
            return self.copy_map(i, m);
        }
        if !m.take("replace") {
            let message = "`tensormap` is `tensormap.replace` or `tensormap.cp_fenceproxy`";
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        m.take("tile");
        // The field, and where the map lies.
        let Some(field) = m.one_of(&FIELDS) else {
            let message = "`tensormap.replace` needs a field such as `.global_address`";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        let space = m
            .one_of(&[("global", Space::Global), ("shared::cta", Space::Shared), ("shared", Space::Shared)])
            .unwrap_or(Space::Generic);
        m.take("b1024");
        let ty = self.ty(i, m)?;
        let wide = matches!(field, MapField::Address | MapField::Stride);
        if ty != if wide { Ty::B64 } else { Ty::B32 } {
            return self.bad_type(i, ty);
        }
        // A field of a list is named by its number besides.
        let (map, number, value) = match (field, i.operands.as_slice()) {
            (MapField::Listed(..) | MapField::Stride, [map, number, value]) => (map, Some(number), value),
            (MapField::Listed(..) | MapField::Stride, _) => return self.operands::<3>(i).map(|_| ()),
            (_, [map, value]) => (map, None, value),
            _ => return self.operands::<2>(i).map(|_| ()),
        };
        // The mark first: the field may be a part of it.
        let map = self.map_operand(map, space)?;
        let mark = self.body.literal(Bank::R32, MARK.into());
        self.store_field(&map, space, (fields::MARK, Elem::U16), mark);
        let (at, value) = match field {
            MapField::Address => ((fields::ADDRESS, Elem::U64), self.src(value, ty)?),
            MapField::Rank => {
                let (rank, one) = (self.src(value, ty)?, self.body.literal(Bank::R32, 1));
                let sum = Arg::Reg(self.body.register(Bank::R32));
                self.emit(Op::Alu(AluOp::Int32(IntOp::Add)), Class::Int, &[sum], &[rank, one], 0);
                ((fields::DIMENSIONS, Elem::U8), sum)
            }
            MapField::Listed(first, elem) => {
                let at = self.place_in_list(number, MOST_DIMENSIONS as u32)?;
                ((first + at * elem.bytes(), elem), self.src(value, ty)?)
            }
            MapField::Stride => {
                let at = self.place_in_list(number, MOST_DIMENSIONS as u32 - 1)?;
                let [lower, upper] = self.words_of(value)?;
                self.store_field(&map, space, (fields::UPPER_STRIDES + at, Elem::U8), upper);
                ((fields::STRIDES + 4 * at, Elem::U32), lower)
            }
            // Immediates are numbers of the ISA's tables.
            MapField::Choice(at, known) => {
                let OperandKind::Int(given) = value.kind else {
                    return Err(self.fault(value.at.clone(), "this field's value is an immediate"));
                };
                let Some(byte) = known.get(given as usize).copied().flatten() else {
                    let message = format!("a tensor map with the value {given} of this field is not supported");
                    return Err(self.fault(value.at.clone(), message));
                };
                ((at, Elem::U8), self.body.literal(Bank::R32, byte.into()))
            }
        };
        self.store_field(&map, space, at, value);
        Ok(())
    }

    /// The number of a field in its list of `most`.
    fn place_in_list(&mut self, number: Option<&'a Operand<'a>>, most: u32) -> Lowered<u32> {
        let Some(number) = number else { unreachable!("the number was found") };
        let at = self.number(number)?;
        if at < most {
            return Ok(at);
        }
        Err(self.fault(number.at.clone(), format!("the field has numbers 0 to {}, not {at}", most - 1)))
    }

    /// The lower and the upper 32 bits of a value.
    fn words_of(&mut self, value: &'a Operand<'a>) -> Lowered<[Arg; 2]> {
        let (value, far) = (self.src(value, Ty::B64)?, self.body.literal(Bank::R32, 32));
        let shifted = Arg::Reg(self.body.register(Bank::R64));
        self.emit(Op::Alu(AluOp::Int64(IntOp::ShrU)), Class::Int, &[shifted], &[value, far], 0);
        let narrow = Cvt { wide_from: true, ..Cvt::exact(Num::U64, Num::U32) };
        Ok([value, shifted].map(|of| {
            let half = Arg::Reg(self.body.register(Bank::R32));
            self.emit(Op::Alu(AluOp::Cvt(narrow)), Class::Convert, &[half], &[of], 0);
            half
        }))
    }

    /// `[map]`, by a generic address of 64 bits or one of a space.
    fn map_operand(&mut self, operand: &'a Operand<'a>, space: Space) -> Lowered<Address> {
        let address = self.address(operand, space)?;
        if space != Space::Shared && !address.wide {
            return Err(self.fault(operand.at.clone(), "the address of a tensor map has 64 bits"));
        }
        Ok(address)
    }

    fn store_field(&mut self, map: &Address, space: Space, (at, elem): (u32, Elem), value: Arg) {
        let mut mem = plain_access(MemKind::Store, space, elem);
        (mem.wide, mem.address) = (elem == Elem::U64, AddressIn::slot(map.wide));
        self.emit(Op::Mem(mem), Class::Mem, &[value], &[map.base], map.offset.wrapping_add(at as i32));
    }

    /// `tensormap.cp_fenceproxy`: the 128 bytes go from shared to global memory, and a fence follows.
    fn copy_map(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let named = ["global", "shared::cta", "tensormap::generic", "release"].map(|word| m.take(word));
        let scopes = [("cta", Scope::Cta), ("cluster", Scope::Gpu), ("gpu", Scope::Gpu), ("sys", Scope::Sys)];
        let (true, Some(scope)) = (named == [true; 4], m.one_of(&scopes)) else {
            let message = "`tensormap.cp_fenceproxy` is `.global.shared::cta.tensormap::generic.release`, with a scope";
            return Err(self.fault(i.opcode.at.clone(), message));
        };
        m.skip(|word| matches!(word, "sync" | "aligned"));
        let [to, from, size] = self.operands(i)?;
        if self.number(size)? as usize != MAP_BYTES {
            return Err(self.fault(size.at.clone(), "a tensor map has 128 bytes"));
        }
        let (from, (to, offset)) = (self.shared_operand(from)?, self.global_operand(to)?);
        // A word of each lane, of 32.
        let lane = self.body.special(Special::LaneId);
        let [mask, two] = [31, 2].map(|number| self.body.literal(Bank::R32, number));
        let [lane_of_32, bytes, shared, word] = [(); 4].map(|()| Arg::Reg(self.body.register(Bank::R32)));
        let [wide, global] = [(); 2].map(|()| Arg::Reg(self.body.register(Bank::R64)));
        self.emit(Op::Alu(AluOp::Int32(IntOp::And)), Class::Logic, &[lane_of_32], &[lane, mask], 0);
        self.emit(Op::Alu(AluOp::Int32(IntOp::Shl)), Class::Int, &[bytes], &[lane_of_32, two], 0);
        self.emit(Op::Alu(AluOp::Int32(IntOp::Add)), Class::Int, &[shared], &[from, bytes], 0);
        let cvt = Cvt { wide_to: true, ..Cvt::exact(Num::U32, Num::U64) };
        self.emit(Op::Alu(AluOp::Cvt(cvt)), Class::Convert, &[wide], &[bytes], 0);
        self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Class::Int, &[global], &[to, wide], 0);
        let mut load = plain_access(MemKind::Load, Space::Shared, Elem::U32);
        load.address = AddressIn::slot(false);
        self.emit(Op::Mem(load), Class::Mem, &[word], &[shared], 0);
        let store = plain_access(MemKind::Store, Space::Global, Elem::U32);
        self.emit(Op::Mem(store), Class::Mem, &[word], &[global], offset);
        self.emit(Op::Fence(scope), Class::Control, &[], &[], 0);
        Ok(())
    }
}
