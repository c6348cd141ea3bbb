//! Multicast memory (PTX ISA 9.7.9.15): `multimem`.
//!
//! A multicast object has a copy of its memory on each GPU of a team. `multimem.st` and `.red` go to all
//! copies, and `.ld_reduce` reads all of them and reduces what it found. A machine here is one GPU, so that
//! a team is of one and its one copy is where the address says:
//!
//! | instruction | becomes |
//! |---|---|
//! | `.ld_reduce` | a load: one value is its own sum, minimum and so on |
//! | `.st` | a store |
//! | `.red` | a reduction in global memory |
//!
//! A caveat says so. Not modelled: other GPUs, the switch that reduces between them. Refused: copies
//! (`multimem.cp.async.bulk`, `multimem.cp.reduce.async.bulk`).

use super::super::ast::Instruction;
use super::super::lower::{Lower, Lowered, ONE_OF_A_TEAM};
use super::super::types::Ty;
use super::words::{Family, Mods};
use crate::ir::StoreHint;

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["multimem"], |l, i, m| l.multimem(i, m))];

/// What a reduction over the copies does.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    /// Of integers and floats.
    Arithmetic,
    /// Of bits.
    Logic,
}

const REDUCTIONS: [(&str, Reduction); 6] = [
    ("add", Reduction::Arithmetic),
    ("min", Reduction::Arithmetic),
    ("max", Reduction::Arithmetic),
    ("and", Reduction::Logic),
    ("or", Reduction::Logic),
    ("xor", Reduction::Logic),
];

impl<'a> Lower<'_, 'a> {
    fn multimem(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        self.warn_once(i.opcode.at.clone(), ONE_OF_A_TEAM);
        if m.take("ld_reduce") {
            self.load_reduced(i, m)
        } else if m.take("st") {
            self.store(i, m)
        } else if m.take("red") {
            self.atomic(i, m)
        } else {
            let what = i.mods.first().map_or_else(String::new, |word| format!(", found `.{}`", word.text));
            Err(self.fault(i.opcode.at.clone(), format!("`multimem` is `.ld_reduce`, `.st` or `.red` here{what}")))
        }
    }

    fn load_reduced(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let Some(reduction) = m.one_of(&REDUCTIONS) else {
            return Err(self.fault(i.opcode.at.clone(), "`multimem.ld_reduce` needs an operation such as `.add`"));
        };
        // The width in which copies are summed up.
        m.skip(|text| text.starts_with("acc::"));
        let access = self.access(i, m)?;
        let bits = matches!(access.ty, Ty::B32 | Ty::B64);
        if bits != (reduction == Reduction::Logic) {
            return self.bad_type(i, access.ty);
        }
        self.in_global(i, &access, "multicast")?;
        self.emit_load(i, access, StoreHint::Plain)
    }
}
