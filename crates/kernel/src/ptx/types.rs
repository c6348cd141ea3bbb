//! PTX fundamental types (PTX ISA 5.2) and how they map to register banks, memory elements and conversions.

use super::super::alu::{HalfType, Num};
use super::super::ir::Elem;

/// A register bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bank {
    /// Up to 32 bits.
    R32,
    /// 64 bits.
    R64,
    /// Predicates.
    Pred,
}

/// The class of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Unsigned,
    Signed,
    Untyped,
    /// Single or double precision.
    Float,
    /// Half precision, one value or two.
    Half(HalfType),
    Pred,
}

/// A PTX type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ty {
    pub(super) class: Class,
    pub(super) bits: u32,
}

impl Ty {
    pub(super) const PRED: Ty = Ty { class: Class::Pred, bits: 1 };
    pub(super) const U32: Ty = Ty { class: Class::Unsigned, bits: 32 };
    pub(super) const B32: Ty = Ty { class: Class::Untyped, bits: 32 };
    pub(super) const F32: Ty = Ty { class: Class::Float, bits: 32 };
    pub(super) const B64: Ty = Ty { class: Class::Untyped, bits: 64 };
    pub(super) const B128: Ty = Ty { class: Class::Untyped, bits: 128 };

    /// The type of this name (without its dot); `None` if it is not one we know.
    pub(super) fn parse(name: &str) -> Option<Ty> {
        let (class, bits) = match name {
            "pred" => return Some(Ty::PRED),
            "f16" => (Class::Half(HalfType::F16), "16"),
            "f16x2" => (Class::Half(HalfType::F16x2), "32"),
            "bf16" => (Class::Half(HalfType::Bf16), "16"),
            "bf16x2" => (Class::Half(HalfType::Bf16x2), "32"),
            _ => match name.split_at_checked(1)? {
                ("u", bits) => (Class::Unsigned, bits),
                ("s", bits) => (Class::Signed, bits),
                ("b", bits) => (Class::Untyped, bits),
                ("f", bits) => (Class::Float, bits),
                _ => return None,
            },
        };
        let bits = match bits {
            "8" if class != Class::Float => 8,
            "16" if class != Class::Float => 16,
            "32" => 32,
            "64" => 64,
            "128" if class == Class::Untyped => 128,
            _ => return None,
        };
        Some(Ty { class, bits })
    }

    pub(super) fn bank(self) -> Bank {
        match (self.class, self.bits) {
            (Class::Pred, _) => Bank::Pred,
            (_, 64) => Bank::R64,
            _ => Bank::R32,
        }
    }

    /// Single or double precision. Half precision has instructions of its own: see [`Ty::half`].
    pub(super) fn is_float(self) -> bool {
        self.class == Class::Float
    }

    pub(super) fn half(self) -> Option<HalfType> {
        match self.class {
            Class::Half(half) => Some(half),
            _ => None,
        }
    }

    pub(super) fn is_signed(self) -> bool {
        self.class == Class::Signed
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self.class, Class::Unsigned | Class::Signed)
    }

    pub(super) fn bytes(self) -> u32 {
        self.bits.div_ceil(8)
    }

    /// The memory element of this type; untyped counts as unsigned.
    pub(super) fn elem(self) -> Option<Elem> {
        Some(match (self.class, self.bits) {
            (Class::Unsigned | Class::Untyped, 8) => Elem::U8,
            (Class::Signed, 8) => Elem::S8,
            (Class::Unsigned | Class::Untyped | Class::Half(_), 16) => Elem::U16,
            (Class::Signed, 16) => Elem::S16,
            (Class::Unsigned | Class::Untyped | Class::Half(_), 32) => Elem::U32,
            (Class::Signed, 32) => Elem::S32,
            (Class::Float, 32) => Elem::F32,
            (Class::Unsigned | Class::Untyped, 64) => Elem::U64,
            (Class::Signed, 64) => Elem::S64,
            (Class::Float, 64) => Elem::F64,
            _ => return None,
        })
    }

    /// The number type of a conversion.
    pub(super) fn num(self) -> Option<Num> {
        Some(match (self.class, self.bits) {
            (Class::Unsigned, 8) => Num::U8,
            (Class::Signed, 8) => Num::S8,
            (Class::Unsigned, 16) => Num::U16,
            (Class::Signed, 16) => Num::S16,
            (Class::Unsigned, 32) => Num::U32,
            (Class::Signed, 32) => Num::S32,
            (Class::Unsigned, 64) => Num::U64,
            (Class::Signed, 64) => Num::S64,
            (Class::Half(HalfType::F16), _) => Num::F16,
            (Class::Half(HalfType::Bf16), _) => Num::Bf16,
            (Class::Float, 32) => Num::F32,
            (Class::Float, 64) => Num::F64,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = match self.class {
            Class::Unsigned => 'u',
            Class::Signed => 's',
            Class::Untyped => 'b',
            Class::Float => 'f',
            Class::Half(HalfType::F16) => return write!(f, ".f16"),
            Class::Half(HalfType::F16x2) => return write!(f, ".f16x2"),
            Class::Half(HalfType::Bf16) => return write!(f, ".bf16"),
            Class::Half(HalfType::Bf16x2) => return write!(f, ".bf16x2"),
            Class::Pred => return write!(f, ".pred"),
        };
        write!(f, ".{letter}{}", self.bits)
    }
}
