//! The words of instructions: opcodes that are not supported, and modifiers, which families take one by one.
//!
//! Source: PTX ISA 8.x, section 9.7. Invariant: a modifier is taken at most once; those left over are faults.

use super::super::super::alu::Round;
use super::super::ast::{Instruction, PtxWord};
use super::super::lower::{Lower, Lowered};
use super::super::types::Ty;

/// Lowers an instruction: the modifiers that it understands are taken.
pub(super) type Select = for<'l, 'a, 'm> fn(&mut Lower<'l, 'a>, &'a Instruction<'a>, &mut Mods<'m, 'a>) -> Lowered;

/// Opcodes, and what lowers them.
pub(super) type Family = (&'static [&'static str], Select);

/// Modifiers and types worth suggesting.
#[rustfmt::skip]
pub(in crate::ptx) const MODIFIERS: [&str; 76] = [
    "acq_rel", "acquire", "add", "all", "and", "any", "approx", "ballot", "bfly", "cas", "cc", "clamp", "const",
    "cta", "down", "eq", "exch", "ftz", "full", "ge", "global", "gpu", "gt", "hi", "idx", "le", "lo", "local", "lt",
    "ne", "or", "param", "relaxed", "release", "rm", "rmi", "rn", "rni", "rp", "rpi", "rz", "rzi", "sat", "shared",
    "sync", "sys", "uni", "up", "v2", "v4", "volatile", "wide", "wrap", "xor", "pred", "b8", "b16", "b32", "b64",
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "noftz",
    "relu", "NaN",
];

/// Opcodes of the ISA that are deliberately not supported, and why.
pub(super) const UNSUPPORTED: [(&str, &str); 4] = [
    ("sured", "reductions on surfaces"),
    ("txq", "texture queries"),
    ("tld4", "texture gathers"),
    ("istypep", "opaque handles"),
];

/// The modifiers of an instruction, each to be taken once.
pub(in crate::ptx) struct Mods<'i, 'a> {
    list: &'i [PtxWord<'a>],
    taken: u64,
}

impl<'i, 'a> Mods<'i, 'a> {
    /// All modifiers of an instruction, none taken.
    pub(super) fn new(list: &'i [PtxWord<'a>]) -> Self {
        Mods { list, taken: 0 }
    }

    /// Takes the first modifier for which `f` gives a value.
    pub(super) fn find<T>(&mut self, f: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        for (i, word) in self.list.iter().enumerate().take(64) {
            if self.taken >> i & 1 == 0
                && let Some(found) = f(word.text)
            {
                self.taken |= 1 << i;
                return Some(found);
            }
        }
        None
    }

    /// Takes this modifier, if it is there.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.find(|text| (text == name).then_some(())).is_some()
    }

    /// Takes the first of these that is there.
    pub(super) fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        self.find(|text| table.iter().find(|(name, _)| *name == text).map(|(_, value)| *value))
    }

    /// Takes the next type.
    pub(super) fn ty(&mut self) -> Option<Ty> {
        self.find(Ty::parse)
    }

    /// Takes every modifier that `f` accepts.
    pub(super) fn skip(&mut self, f: impl Fn(&str) -> bool) {
        while self.find(|text| f(text).then_some(())).is_some() {}
    }

    /// `.rn`, `.rz`, `.rm`, `.rp`
    pub(super) fn rounding(&mut self) -> Option<Round> {
        self.one_of(&[("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)])
    }

    /// The first modifier that nothing took.
    pub(super) fn left_over(&self) -> Option<&'i PtxWord<'a>> {
        self.list.iter().enumerate().find(|(i, _)| *i >= 64 || self.taken >> i & 1 == 0).map(|(_, word)| word)
    }
}
