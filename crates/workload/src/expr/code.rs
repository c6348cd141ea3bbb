//! Compiled expressions as data: typed nodes, and the scope of names that they are compiled against.
//!
//! Invariants: operands come before their node, and the root is the last node; a node is 16 bytes.

use std::ops::Range;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use durawarp_base::document::Type;

/// A variable that expressions may name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variable {
    /// Name; `len(buffer)` for the length of a buffer.
    pub(crate) name: String,
    /// Its place in the frame.
    pub(crate) slot: u16,
    /// Kind of its value.
    pub(crate) ty: Type,
}

/// A buffer, or a field of a buffer of structures, that expressions may read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Readable {
    /// `buffer` or `buffer.field`.
    pub(crate) name: String,
    /// Buffer number.
    pub(crate) buffer: u16,
    /// Field number.
    pub(crate) field: u16,
    /// Kind of an element; `None` for a buffer of structures as a whole.
    pub(crate) ty: Option<Type>,
}

/// What an expression may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) variables: Vec<Variable>,
    /// Slots of a frame that holds them; the variables of sums come after.
    pub(crate) slots: u16,
    /// Buffers, readable or not.
    pub(crate) buffers: Arc<[Readable]>,
    /// `@buffer[i]` is allowed.
    pub(crate) device_reads: bool,
    /// `buffer[i]` and `initial(..)` are allowed.
    pub(crate) element_reads: bool,
}

impl Scope {
    /// Adds a variable in a new slot and returns the slot.
    pub(crate) fn define(&mut self, name: impl Into<String>, ty: Type) -> u16 {
        let slot = self.slots;
        self.slots += 1;
        self.variables.push(Variable { name: name.into(), slot, ty });
        slot
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|variable| variable.name == name)
    }

    pub(crate) fn buffer(&self, name: &str) -> Option<&Readable> {
        self.buffers.iter().find(|buffer| buffer.name == name)
    }

    /// Names of variables as messages list them, without lengths.
    pub(super) fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|v| v.name.as_str()).filter(|name| !name.contains('('))
    }
}

/// Which content of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// What it holds now (when the program is over, in verification).
    Current,
    /// What it held before the first step.
    Initial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log2,
    Sin,
    Sqrt,
}

/// One typed operation; operands are node numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Node {
    Int(i64),
    Float(f64),
    Var(u16),
    NegInt(u32),
    NegFloat(u32),
    AbsInt(u32),
    Not(u32),
    And(u32, u32),
    Or(u32, u32),
    AddInt(u32, u32),
    SubInt(u32, u32),
    MulInt(u32, u32),
    DivInt(u32, u32),
    RemInt(u32, u32),
    CeilDiv(u32, u32),
    MinInt(u32, u32),
    MaxInt(u32, u32),
    PowInt(u32, u32),
    Log2Int(u32),
    AddFloat(u32, u32),
    SubFloat(u32, u32),
    MulFloat(u32, u32),
    DivFloat(u32, u32),
    RemFloat(u32, u32),
    MinFloat(u32, u32),
    MaxFloat(u32, u32),
    PowFloat(u32, u32),
    CompareInt(Compare, u32, u32),
    CompareFloat(Compare, u32, u32),
    Select(u32, u32, u32),
    ToFloat(u32),
    ToInt(u32),
    Function(Function, u32),
    Load { which: Which, buffer: u16, field: u16, index: u32 },
    Sum { slot: u16, float: bool, low: u32, high: u32, body: u32 },
}

impl Node {
    /// The nodes whose values it takes.
    pub(super) fn operands(self) -> SmallVec<[u32; 3]> {
        match self {
            Node::Int(_) | Node::Float(_) | Node::Var(_) => smallvec![],
            // Listed one by one: a new node must say here what it takes.
            Node::NegInt(a)
            | Node::NegFloat(a)
            | Node::AbsInt(a)
            | Node::Not(a)
            | Node::Log2Int(a)
            | Node::ToFloat(a)
            | Node::ToInt(a)
            | Node::Function(_, a)
            | Node::Load { index: a, .. } => smallvec![a],
            Node::And(a, b)
            | Node::Or(a, b)
            | Node::AddInt(a, b)
            | Node::SubInt(a, b)
            | Node::MulInt(a, b)
            | Node::DivInt(a, b)
            | Node::RemInt(a, b)
            | Node::CeilDiv(a, b)
            | Node::MinInt(a, b)
            | Node::MaxInt(a, b)
            | Node::PowInt(a, b)
            | Node::AddFloat(a, b)
            | Node::SubFloat(a, b)
            | Node::MulFloat(a, b)
            | Node::DivFloat(a, b)
            | Node::RemFloat(a, b)
            | Node::MinFloat(a, b)
            | Node::MaxFloat(a, b)
            | Node::PowFloat(a, b)
            | Node::CompareInt(_, a, b)
            | Node::CompareFloat(_, a, b) => smallvec![a, b],
            Node::Select(a, b, c) | Node::Sum { low: a, high: b, body: c, .. } => smallvec![a, b, c],
        }
    }
}

const _: () = assert!(size_of::<Node>() <= 16, "a node is 16 bytes: four to a cache line");

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Code {
    pub(super) nodes: Vec<Node>,
    /// Byte range of each node in the expression's text.
    pub(super) places: Vec<Range<u32>>,
    pub(super) ty: Type,
    /// Slots of the scope it was compiled in; variables of sums come after.
    pub(super) scope_slots: u16,
    /// Slots it needs in all.
    pub(super) slots: u16,
    pub(super) reads_device: bool,
}
