//! The control flow of a program: its functions by their symbols, and where each instruction goes on.
//!
//! A function lasts from its symbol to its size, or to the next symbol where it has none (labels of
//! assembly). Its instructions are found one after the other. What no symbol has is *unknown code*: nothing
//! is said of it but whether it calls.
//!
//! | instruction | goes on |
//! |---|---|
//! | branch, `jal x0` | at its target and, a branch, behind itself |
//! | `jal` with a link | in a function, then behind itself |
//! | `jalr` with a link | in any function, then behind itself |
//! | `jalr` behind the `auipc` that wrote its register | as `jal` |
//! | `jr ra`, `jr t0` | behind a call: a return |
//! | any other `jr` | anywhere |
//!
//! `jr ra` is a return where its function gets ra from calls and from its stack frame only; `jr t0` where its
//! function does not write t0. Elsewhere (`longjmp`, for one) they go anywhere. Invariant: successors of a
//! node that is not in the graph are [`NONE`].

use std::collections::BTreeSet;

use crate::code::CodeTable;
use crate::elf::Executable;
use crate::instruction::{Class, Inst, NOWHERE, Op, RA, SP};

use super::places::PcMap;
use super::terms::reads_exceptions;

/// The alternate link register.
const T0: u8 = 5;
/// No node: unknown code.
pub(super) const NONE: u32 = u32::MAX;

/// Where an instruction goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Behind itself.
    Next,
    /// Behind itself or at its target.
    Branch,
    /// At its target.
    Jump,
    /// At its target; what it calls returns behind it.
    Call,
    /// In any function, which returns behind it.
    CallAny,
    /// Anywhere.
    JumpAny,
    /// Behind the call of this function.
    Return,
    /// Nowhere: the program is at fault.
    End,
}

/// An instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeNode {
    pub(super) pc: u64,
    pub(super) inst: Inst,
    pub(super) function: u32,
    pub(super) flow: Flow,
    /// The node behind it.
    pub(super) next: u32,
    /// The node at its target.
    pub(super) target: u32,
}

impl CodeNode {
    /// Where it goes on without a boundary in between, in its own function or one that it shares code with.
    pub(super) fn successors(&self) -> impl Iterator<Item = u32> {
        let (next, target) = match self.flow {
            // What is called has returned.
            Flow::Next | Flow::Call | Flow::CallAny => (self.next, NONE),
            Flow::Branch => (self.next, self.target),
            Flow::Jump => (NONE, self.target),
            Flow::JumpAny | Flow::Return | Flow::End => (NONE, NONE),
        };
        [next, target].into_iter().filter(|node| *node != NONE)
    }

    /// Whether it may go on in unknown code without a call.
    pub(super) fn enters_unknown_code(&self) -> bool {
        match self.flow {
            Flow::Next => self.next == NONE,
            Flow::Branch => self.next == NONE || self.target == NONE,
            Flow::Jump => self.target == NONE,
            _ => false,
        }
    }
}

/// A function.
#[derive(Debug, Clone)]
pub(super) struct FunctionNodes {
    pub(super) name: String,
    /// Its first node and the one behind its last.
    pub(super) nodes: std::ops::Range<u32>,
    /// The file says how large it is: it is no label.
    pub(super) sized: bool,
}

/// The program.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<CodeNode>,
    pub(super) functions: Vec<FunctionNodes>,
    pub(super) places: PcMap,
    /// Nodes that are called by their address.
    pub(super) called: BTreeSet<u32>,
    /// Nodes that branches and jumps name.
    pub(super) targets: BTreeSet<u32>,
    /// Unknown code calls functions.
    pub(super) unknown_calls: bool,
    /// Some instruction reads accrued exceptions of floating point.
    pub(super) exceptions: bool,
}

impl Graph {
    pub(super) fn of(image: &Executable, code: &CodeTable) -> Graph {
        let segments = || image.segments.iter().filter(|segment| segment.executable);
        let mut places = PcMap::new(segments().map(|segment| (segment.address, segment.bytes.len() as u64)));
        let (mut nodes, mut functions) = (Vec::new(), Vec::new());
        let (mut unknown_calls, mut exceptions) = (false, false);
        for segment in segments() {
            let end = segment.address + segment.bytes.len() as u64;
            let starts = image.functions.iter().filter(|f| (segment.address..end).contains(&f.address));
            // Of several symbols at one place the last is the one with a size.
            let mut starts: Vec<_> = starts.filter(|f| f.address % 2 == 0).collect();
            starts.reverse();
            starts.dedup_by_key(|function| function.address);
            starts.reverse();
            let mut known_to = segment.address;
            for (at, function) in starts.iter().enumerate() {
                for inst in instructions(code, known_to, function.address) {
                    unknown_calls |= calls(inst);
                    exceptions |= reads_exceptions(inst);
                }
                let next = starts.get(at + 1).map_or(end, |next| next.address);
                let to = if function.bytes == 0 { next } else { next.min(function.address + function.bytes) };
                let first = nodes.len() as u32;
                let mut pc = function.address;
                while pc < to
                    && let Some(&inst) = code.at(pc)
                {
                    places.set(pc, nodes.len() as u32);
                    exceptions |= reads_exceptions(&inst);
                    let function = functions.len() as u32;
                    nodes.push(CodeNode { pc, inst, function, flow: Flow::Next, next: NONE, target: NONE });
                    pc += u64::from(inst.length);
                }
                known_to = pc;
                let (name, sized) = (function.name.clone(), function.bytes > 0);
                functions.push(FunctionNodes { name, nodes: first..nodes.len() as u32, sized });
            }
            for inst in instructions(code, known_to, end) {
                unknown_calls |= calls(inst);
                exceptions |= reads_exceptions(inst);
            }
        }
        let mut graph = Graph {
            nodes,
            functions,
            places,
            called: BTreeSet::new(),
            targets: BTreeSet::new(),
            unknown_calls,
            exceptions,
        };
        graph.link();
        graph.trust_returns();
        graph
    }

    /// The node at an address.
    pub(super) fn at(&self, pc: u64) -> u32 {
        self.places.get(pc)
    }

    /// Finds where each instruction goes on.
    fn link(&mut self) {
        for node in &mut self.nodes {
            let inst = &node.inst;
            node.next = self.places.get(node.pc + u64::from(inst.length));
            if inst.class() == Class::Branch || inst.op == Op::Jal {
                node.target = self.places.get(node.pc.wrapping_add(inst.imm as u64));
            }
        }
        let targets: BTreeSet<u32> = self.nodes.iter().map(|node| node.target).collect();
        for at in 0..self.nodes.len() {
            let known = self.known_jump(at, &targets);
            let node = &mut self.nodes[at];
            let inst = &node.inst;
            if let Some(target) = known {
                node.target = self.places.get(target);
            }
            let links = inst.rd != NOWHERE;
            let returns = [RA, T0].contains(&inst.rs1) && inst.imm == 0;
            node.flow = match inst.op {
                Op::Jal if links => Flow::Call,
                Op::Jal => Flow::Jump,
                Op::Jalr if known.is_some() => {
                    if links {
                        Flow::Call
                    } else {
                        Flow::Jump
                    }
                }
                Op::Jalr if links => Flow::CallAny,
                Op::Jalr if returns => Flow::Return,
                Op::Jalr => Flow::JumpAny,
                Op::Ebreak | Op::Illegal => Flow::End,
                _ if inst.class() == Class::Branch => Flow::Branch,
                _ => Flow::Next,
            };
        }
        self.targets = targets;
        self.called = self.nodes.iter().filter(|node| node.flow == Flow::Call).map(|node| node.target).collect();
    }

    /// Where a `jalr` goes whose register the `auipc` before it wrote, an `addi` between them or not: the
    /// linker leaves calls of far functions so. Nothing may jump between them.
    fn known_jump(&self, at: usize, targets: &BTreeSet<u32>) -> Option<u64> {
        let jump = &self.nodes[at];
        if jump.inst.op != Op::Jalr {
            return None;
        }
        let register = jump.inst.rs1;
        let before = |at: usize| {
            let node = self.nodes.get(at)?;
            let falls = node.next == at as u32 + 1 && !targets.contains(&(at as u32 + 1));
            let same = node.function == jump.function && node.inst.rd == register;
            (falls && same).then_some(node)
        };
        let last = before(at.checked_sub(1)?)?;
        let (first, offset) = match last.inst.op {
            Op::Addi if last.inst.rs1 == register => (before(at.checked_sub(2)?)?, last.inst.imm),
            _ => (last, 0),
        };
        let relative = i64::from(first.inst.imm) + i64::from(offset) + i64::from(jump.inst.imm);
        (first.inst.op == Op::Auipc).then(|| first.pc.wrapping_add(relative as u64) & !1)
    }

    /// Returns of functions that get their return address in a way of their own go anywhere, and so do those
    /// of functions that such a function goes on in.
    fn trust_returns(&mut self) {
        let mut own_way = vec![[false; 2]; self.functions.len()];
        for node in &self.nodes {
            let inst = &node.inst;
            let from_frame = inst.op == Op::Ld && inst.rs1 == SP;
            let links = matches!(node.flow, Flow::Call | Flow::CallAny);
            let own = &mut own_way[node.function as usize];
            own[0] |= inst.rd == RA && !from_frame && !links;
            own[1] |= inst.rd == T0;
        }
        while self.crossings().any(|(from, to)| {
            let grown: [bool; 2] = std::array::from_fn(|at| own_way[from][at] | own_way[to][at]);
            std::mem::replace(&mut own_way[to], grown) != grown
        }) {}
        for node in &mut self.nodes {
            let own = own_way[node.function as usize][usize::from(node.inst.rs1 == T0)];
            if node.flow == Flow::Return && own {
                node.flow = Flow::JumpAny;
            }
        }
    }

    /// Pairs of functions, the second of which the first goes on in without a call.
    pub(super) fn crossings(&self) -> impl Iterator<Item = (usize, usize)> {
        self.nodes.iter().flat_map(move |node| {
            let to = node.successors().map(|to| self.nodes[to as usize].function);
            to.filter(|to| *to != node.function).map(|to| (node.function as usize, to as usize))
        })
    }
}

/// Whether it is a call.
fn calls(inst: &Inst) -> bool {
    inst.class() == Class::Jump && inst.rd == RA
}

/// The instructions of unknown code, one after the other.
fn instructions(code: &CodeTable, from: u64, to: u64) -> impl Iterator<Item = &Inst> {
    let mut pc = from;
    std::iter::from_fn(move || {
        let inst = code.at(pc).filter(|_| pc < to)?;
        pc += u64::from(inst.length);
        Some(inst)
    })
}
