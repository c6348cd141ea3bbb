//! Where a thread would load again what it has stored, if its compiler could keep no value of memory in a
//! register over the store.
//!
//! ```text
//!   st [a], v; (clobber)  ->  stale: v is of before the clobber   ->  use of v: load it before
//! ```
//! Two facts are followed for each store of one register:
//!
//! | fact | true where |
//! |---|---|
//! | `held` | on every way here, memory has the register's value at the store's address |
//! | `stale` | on some way here, the store came after the last load |
//!
//! The load belongs before a use where both are true; after it the register is fresh. A use that is stale and
//! not held on every way stays as it is: some way to it brings a value that memory does not have.
//!
//! Source: inline assembly with a memory clobber, as GCC and LLVM define it; a compiler evaluates the right
//! side of `x += e` before it loads `x`. Invariant: a load changes no value, as no other thread writes what
//! this one updates. Not modelled: vectors of registers, guarded stores.

use std::collections::BTreeSet;

use super::ast::{Instruction, OperandKind};
use super::flow::Flow;

/// What is known of a store's register at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fact {
    held: bool,
    stale: bool,
}

/// The address operand of a load or a store: what is added to its register, and the type of the data.
fn place<'a>(inst: &'a Instruction<'a>) -> Option<(i64, &'a str)> {
    let address = inst.operands.iter().find_map(|operand| match &operand.kind {
        OperandKind::Address(address) => Some(address),
        _ => None,
    })?;
    match address.first().map(|operand| &operand.kind) {
        Some(OperandKind::Name { offset, .. }) => Some((*offset, inst.mods.last()?.text)),
        _ => None,
    }
}

/// The first bytes of the instructions before which the value of the store at `number` is to be loaded.
/// `may_overwrite` has the instructions that may store to the same output.
pub(super) fn reloads(flow: &Flow<'_>, number: usize, may_overwrite: &[usize]) -> Vec<usize> {
    let store = &flow.code[number];
    let data: Vec<usize> = store.reads.iter().copied().filter(|read| !store.address.0.contains(read)).collect();
    let ([value], [base], Some(at), None) = (&data[..], &store.address.0[..], place(store.inst), store.guard) else {
        return Vec::new();
    };
    let mut uses = BTreeSet::new();
    // What holds after a step, from what holds before it; uses are noted on the last pass only.
    let mut step = |number_here: usize, before: Fact, note: bool| -> Fact {
        let here = &flow.code[number_here];
        let same_address = here.address.0 == store.address.0 && place(here.inst) == Some(at);
        let mut fact = before;
        let reads = here.reads.iter().chain(&here.guard).chain(&here.address.0).any(|read| read == value);
        if reads && fact.stale && number_here != number {
            if note && fact.held {
                uses.insert(here.inst.at.start);
            }
            fact.stale = !fact.held;
        }
        if may_overwrite.contains(&number_here) {
            fact.held = false;
        }
        if here.writes.contains(value) || here.writes.contains(base) {
            fact = Fact { held: false, stale: fact.stale && !here.writes.contains(value) };
        }
        let is_load = here.inst.opcode.text == "ld" && here.writes == [*value] && here.guard.is_none();
        if is_load && same_address {
            fact = Fact { held: true, stale: false };
        }
        let stores_it = here.inst.opcode.text == "st" && here.guard.is_none() && same_address;
        if stores_it && here.reads.contains(value) {
            fact = Fact { held: true, stale: true };
        }
        fact
    };
    // `held` starts true everywhere but at the entry and falls, `stale` starts false and rises.
    let mut before = vec![Fact { held: true, stale: false }; flow.blocks()];
    before[0].held = false;
    let mut changed = true;
    while changed {
        changed = false;
        for block in 0..flow.blocks() {
            let after = flow.steps_of(block).fold(before[block], |fact, number| step(number, fact, false));
            for next in flow.after(block).0 {
                let merged = Fact { held: before[next].held && after.held, stale: before[next].stale || after.stale };
                changed |= merged != before[next];
                before[next] = merged;
            }
        }
    }
    for (block, fact) in before.iter().enumerate() {
        flow.steps_of(block).fold(*fact, |fact, number| step(number, fact, true));
    }
    uses.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::sites::{Pointer, sites};

    /// The instructions of the body before which something is loaded, up to their first comma.
    fn before(body: &str) -> Vec<String> {
        let text = format!(
            ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 y, .param .u64 z)\n{{\n\
             .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n\
             ld.param.u64 %rd1, [y];\nld.param.u64 %rd2, [z];\n{body}ret;\n}}\n"
        );
        super::super::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let pointers = [0, 1].map(|output| Pointer { offset: 8 * output as u32, output: Some(output) });
        let found = sites("k.ptx", &text, "k", &pointers).unwrap_or_else(|faults| panic!("{faults}"));
        let places = found.stores.iter().flat_map(|store| &store.reloads);
        places.map(|&at| text[at..].split(',').next().unwrap_or_default().to_owned()).collect()
    }

    const LOOP: &str = "L:\nadd.f32 %f1, %f1, 0f3f800000;\nst.global.f32 [%rd1+4], %f1;\n\
        setp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\n";

    #[test]
    fn a_sum_that_memory_has_on_every_way_is_loaded_before_it_is_used_again() {
        assert_eq!(before(&format!("ld.global.f32 %f1, [%rd1+4];\n{LOOP}")), ["add.f32 %f1"]);
        // Stored first, it is there as well.
        assert_eq!(before(&format!("mov.f32 %f1, 0f00000000;\nst.global.f32 [%rd1+4], %f1;\n{LOOP}")).len(), 2);
    }

    #[test]
    fn a_use_to_which_some_way_brings_another_value_stays_as_it_is() {
        let none = Vec::<String>::new();
        assert_eq!(before(&format!("mov.f32 %f1, 0f00000000;\n{LOOP}")), none);
        assert_eq!(before(&format!("ld.global.f32 %f1, [%rd1];\n{LOOP}")), none, "from another address");
        let moved = LOOP.replace("setp", "add.s64 %rd1, %rd1, 64;\nsetp");
        assert_eq!(before(&format!("ld.global.f32 %f1, [%rd1+4];\n{moved}")), none, "the address has moved on");
    }

    #[test]
    fn only_the_first_use_after_a_store_loads() {
        let twice = "st.global.f32 [%rd1], %f1;\nadd.f32 %f2, %f1, %f1;\nmul.f32 %f3, %f1, %f1;\n";
        assert_eq!(before(twice), ["add.f32 %f2"]);
        assert_eq!(before("st.global.f32 [%rd1], %f1;\n"), Vec::<String>::new());
        let loaded = "st.global.f32 [%rd1], %f1;\nld.global.f32 %f1, [%rd1];\nadd.f32 %f2, %f1, %f1;\n";
        assert_eq!(before(loaded), Vec::<String>::new(), "the program loads it itself");
    }

    #[test]
    fn a_store_to_the_same_output_in_between_may_have_changed_it_and_one_to_another_has_not() {
        let with = |other: &str| {
            before(&format!("st.global.f32 [%rd1], %f1;\nst.global.f32 [{other}], %f4;\nadd.f32 %f2, %f1, %f1;\n"))
        };
        assert_eq!(with("%rd2"), ["add.f32 %f2"]);
        assert_eq!(with("%rd1+8"), Vec::<String>::new());
    }
}
