//! Registers whose value recovery can compute: constants, and the stack or global pointer plus a constant.
//!
//! Source: LightWSP, section IV-A, "checkpoint pruning": what can be reconstructed from what is stored is not
//! stored.
//!
//! Forward over a unit: the value of each register is a constant, or a *symbol* plus a constant. A symbol
//! stands for a value of the stack pointer: that at a function's beginning, behind a call, behind a system
//! call (a new thread has another stack), or where paths with different ones meet. A register can be computed
//! from the stack pointer where both have the same symbol. Behind a call nothing else is known, as no calling
//! convention is assumed. The global pointer is a symbol of its own if only the function that the program
//! begins in writes it.
//!
//! Nothing is computed in units with an indirect jump, which may come to any of their instructions, nor at
//! the beginning and the end of functions, where a caller would have to know.

use std::collections::BTreeSet;

use super::graph::{Flow, Graph};
use super::terms::{GP, RegisterSet};
use super::units::Unit;
use crate::instruction::{A0, Class, Op, REGISTERS, SP, TP, X0};
use crate::semantics;

/// How recovery gets a register that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// It is this.
    Constant(u64),
    /// It is the stack pointer plus this.
    FromStack(i64),
    /// It is the global pointer plus this.
    FromGlobal(i64),
}

impl Recipe {
    /// The register's value, from those that were stored.
    pub fn value(self, stored: impl Fn(u8) -> u64) -> u64 {
        match self {
            Recipe::Constant(value) => value,
            Recipe::FromStack(offset) => stored(SP).wrapping_add(offset as u64),
            Recipe::FromGlobal(offset) => stored(GP).wrapping_add(offset as u64),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownValue {
    Unknown,
    Constant(u64),
    /// A symbol plus a constant.
    Above(u32, i64),
}

type RegisterValues = [KnownValue; REGISTERS];

/// The symbol of the global pointer.
const GLOBAL: u32 = u32::MAX;

/// What is known of registers in a unit.
#[derive(Debug, Default)]
pub(super) struct KnownValues {
    /// By position in the unit's nodes.
    before: Vec<Option<Box<RegisterValues>>>,
}

/// Whether the global pointer has one value: only the first function writes it.
pub(super) fn one_global_pointer(graph: &Graph, entry: u64) -> bool {
    let first = graph.nodes.get(graph.at(entry) as usize).map(|node| node.function);
    first.is_some() && graph.nodes.iter().all(|node| node.inst.rd != GP || Some(node.function) == first)
}

impl KnownValues {
    /// Follows values through a unit. `global`: the global pointer has one value.
    pub(super) fn of(graph: &Graph, unit: &Unit, global: bool) -> KnownValues {
        let jumps = unit.nodes.iter().any(|node| graph.nodes[*node as usize].flow == Flow::JumpAny);
        if jumps {
            return KnownValues::default();
        }
        let mut known = KnownValues { before: vec![None; unit.nodes.len()] };
        // Where functions begin or are called, and what nothing leads to, which may be come to in any way.
        let successors = unit.nodes.iter().flat_map(|node| graph.nodes[*node as usize].successors());
        let led_to: BTreeSet<u32> = successors.collect();
        let mut left: Vec<u32> = Vec::new();
        for (at, &node) in unit.nodes.iter().enumerate() {
            let function = &graph.functions[graph.nodes[node as usize].function as usize];
            if function.nodes.start == node || graph.called.contains(&node) || !led_to.contains(&node) {
                known.before[at] = Some(Box::new(nothing(node, global)));
                left.push(at as u32);
            }
        }
        while let Some(at) = left.pop() {
            let node = unit.nodes[at as usize];
            let Some(before) = known.before[at as usize].clone() else { continue };
            let after = passed(graph, node, *before, global);
            for to in graph.nodes[node as usize].successors() {
                let Ok(place) = unit.nodes.binary_search(&to) else { continue };
                let grown = match &mut known.before[place] {
                    Some(into) => join(into, &after, to),
                    unknown => {
                        *unknown = Some(Box::new(after));
                        true
                    }
                };
                if grown {
                    left.push(place as u32);
                }
            }
        }
        known
    }

    /// How the registers of a set are computed before the node at a position of the unit; those that can be.
    pub(super) fn recipes(&self, at: usize, set: RegisterSet) -> impl Iterator<Item = (u8, Recipe)> {
        let values = self.before.get(at).and_then(Option::as_deref);
        let register = move |register: u8| {
            let values = values?;
            let recipe = match (values[usize::from(register)], values[usize::from(SP)]) {
                _ if register == X0 || register == SP || register == GP => return None,
                (KnownValue::Constant(value), _) => Recipe::Constant(value),
                (KnownValue::Above(GLOBAL, offset), _) => Recipe::FromGlobal(offset),
                (KnownValue::Above(symbol, offset), KnownValue::Above(of, stack)) if symbol == of => {
                    Recipe::FromStack(offset.wrapping_sub(stack))
                }
                _ => return None,
            };
            (set >> register & 1 == 1).then_some((register, recipe))
        };
        (0..REGISTERS as u8).filter_map(register)
    }
}

/// Symbols have the number of the node behind which, or before which, they begin.
const fn behind(node: u32) -> u32 {
    2 * node
}

const fn before(node: u32) -> u32 {
    2 * node + 1
}

fn nothing(node: u32, global: bool) -> RegisterValues {
    let mut values = [KnownValue::Unknown; REGISTERS];
    values[usize::from(X0)] = KnownValue::Constant(0);
    values[usize::from(SP)] = KnownValue::Above(before(node), 0);
    if global {
        values[usize::from(GP)] = KnownValue::Above(GLOBAL, 0);
    }
    values
}

/// Adds what another path knows. Whether anything changed.
fn join(into: &mut RegisterValues, other: &RegisterValues, node: u32) -> bool {
    let old = *into;
    // What was computed from the stack pointer when it was here the last time is not computed from this one.
    let own = before(node);
    let kept = |value: KnownValue| {
        if matches!(value, KnownValue::Above(symbol, _) if symbol == own) { KnownValue::Unknown } else { value }
    };
    for (register, value) in into.iter_mut().enumerate() {
        if register == usize::from(SP) {
            if *value != other[register] {
                *value = KnownValue::Above(own, 0);
            }
        } else if *value != kept(other[register]) {
            *value = KnownValue::Unknown;
        }
    }
    *into != old
}

/// What is known behind a node, from what is before it.
fn passed(graph: &Graph, at: u32, mut values: RegisterValues, global: bool) -> RegisterValues {
    let node = &graph.nodes[at as usize];
    let inst = &node.inst;
    if matches!(node.flow, Flow::Call | Flow::CallAny) {
        let mut values = nothing(at, global);
        values[usize::from(SP)] = KnownValue::Above(behind(at), 0);
        return values;
    }
    if inst.op == Op::Ecall {
        values[usize::from(A0)] = KnownValue::Unknown;
        values[usize::from(TP)] = KnownValue::Unknown;
        values[usize::from(SP)] = KnownValue::Above(behind(at), 0);
        return values;
    }
    let Some(rd) = inst.destination() else { return values };
    let [a, b] = [inst.rs1, inst.rs2].map(|source| values[usize::from(source)]);
    let computes = matches!(inst.class(), Class::Alu | Class::Mul | Class::Div);
    values[usize::from(rd)] = match (inst.op, a, b) {
        (Op::Addi, KnownValue::Above(symbol, offset), _) => {
            KnownValue::Above(symbol, offset.wrapping_add(inst.imm.into()))
        }
        (Op::Add, KnownValue::Above(symbol, offset), KnownValue::Constant(value))
        | (Op::Add, KnownValue::Constant(value), KnownValue::Above(symbol, offset)) => {
            KnownValue::Above(symbol, offset.wrapping_add(value as i64))
        }
        (_, KnownValue::Constant(a), KnownValue::Constant(b)) if computes => {
            KnownValue::Constant(semantics::integer(inst, node.pc, a, b))
        }
        _ => KnownValue::Unknown,
    };
    // The stack pointer has a symbol whatever it is.
    if rd == SP && values[usize::from(SP)] == KnownValue::Unknown {
        values[usize::from(SP)] = KnownValue::Above(behind(at), 0);
    }
    values
}
