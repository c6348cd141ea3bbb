//! Evaluation of an expression for many indices at once: node by node, each over all lanes, so that what an
//! operation is gets asked once a batch.
//!
//! ```text
//!   lanes            0  1  2  3 ...
//!   idx              8  9 10 11 ...
//!   idx * 3         24 27 30 33 ...
//!   idx * 3 % 17     7 10 13 16 ...
//! ```
//! Invariant: a lane's value has the bits of [`Expr::evaluate`] with the lane's indices. Both sides of `&&`,
//! `||` and `? :` are evaluated; where any lane faults, perhaps on a side that does not count, the batch has
//! no values, and its lanes are to be evaluated one by one. Not covered: expressions that read elements or
//! have sums.

use super::Expr;
use super::code::Node;
use super::eval::{apply, ceil_div, holds, maximum, minimum, power, to_int};

/// Indices of a batch. A node's values are 1 KiB, so that those of usual expressions stay in a core's L1.
pub(crate) const LANES: usize = 128;

/// A value for each lane, by its bits.
pub(crate) type Lanes = [u64; LANES];

/// An expression, to be evaluated batch by batch.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    expr: &'a Expr,
    /// Nodes that are evaluated for each batch, operands first.
    steps: Vec<u32>,
    /// Nodes that are an index, and which.
    indices: Vec<(u32, usize)>,
    /// By node.
    values: Vec<Lanes>,
}

impl Expr {
    /// For batches in which the variables in the slots `indices` differ, and all others are those of `frame`.
    /// None for an expression that has no batches.
    pub(crate) fn batch(&self, frame: &[u64], indices: [usize; 3]) -> Option<Batch<'_>> {
        let nodes = &self.code.nodes;
        let mut batch = Batch { expr: self, steps: Vec::new(), indices: Vec::new(), values: Vec::new() };
        batch.values.resize(nodes.len(), [0; LANES]);
        let mut live = vec![false; nodes.len()];
        *live.last_mut()? = true;
        // Operands come before their node.
        for (at, node) in nodes.iter().enumerate().rev() {
            match *node {
                _ if !live[at] => {}
                Node::Load { .. } | Node::Sum { .. } => return None,
                Node::Int(value) => batch.values[at] = [value as u64; LANES],
                Node::Float(value) => batch.values[at] = [value.to_bits(); LANES],
                Node::Var(slot) => match indices.iter().position(|&index| index == usize::from(slot)) {
                    Some(index) => batch.indices.push((at as u32, index)),
                    None => batch.values[at] = [frame[usize::from(slot)]; LANES],
                },
                node => {
                    node.operands().into_iter().for_each(|operand| live[operand as usize] = true);
                    batch.steps.push(at as u32);
                }
            }
        }
        batch.steps.reverse();
        Some(batch)
    }
}

impl Batch<'_> {
    /// Evaluates all lanes; whether all have a value. `fill` sets an index, which it gets the number of, in
    /// all lanes; it is asked only for those that the expression has.
    pub(crate) fn run(&mut self, mut fill: impl FnMut(usize, &mut Lanes)) -> bool {
        for &(node, index) in &self.indices {
            fill(index, &mut self.values[node as usize]);
        }
        (0..self.steps.len()).all(|step| self.step(self.steps[step]))
    }

    /// The values of the last batch, by their bits.
    #[inline]
    pub(crate) fn values(&self) -> &Lanes {
        &self.values[self.values.len() - 1]
    }

    /// Evaluates a node; whether all lanes have a value.
    fn step(&mut self, at: u32) -> bool {
        let nodes = &self.expr.code.nodes;
        let (before, rest) = self.values.split_at_mut(at as usize);
        let mut lanes = Evaluated { before, to: &mut rest[0] };
        match nodes[at as usize] {
            Node::Int(_) | Node::Float(_) | Node::Var(_) | Node::Load { .. } | Node::Sum { .. } => {
                unreachable!("no step of a batch")
            }
            Node::NegInt(a) => lanes.ints1(a, i64::checked_neg),
            Node::AbsInt(a) => lanes.ints1(a, i64::checked_abs),
            Node::Not(a) => lanes.ints1(a, |a| Some(i64::from(a == 0))),
            Node::Log2Int(a) => lanes.ints1(a, |a| a.checked_ilog2().map(i64::from)),
            // Both sides have been evaluated: had one faulted, the batch would have ended there.
            Node::And(a, b) => lanes.ints(a, b, |a, b| Some(i64::from(a != 0 && b != 0))),
            Node::Or(a, b) => lanes.ints(a, b, |a, b| Some(i64::from(a != 0 || b != 0))),
            Node::AddInt(a, b) => lanes.ints(a, b, i64::checked_add),
            Node::SubInt(a, b) => lanes.ints(a, b, i64::checked_sub),
            Node::MulInt(a, b) => lanes.ints(a, b, i64::checked_mul),
            Node::DivInt(a, b) => lanes.ints(a, b, i64::checked_div),
            Node::RemInt(a, b) => lanes.ints(a, b, i64::checked_rem),
            Node::CeilDiv(a, b) => lanes.ints(a, b, ceil_div),
            Node::MinInt(a, b) => lanes.ints(a, b, |a, b| Some(a.min(b))),
            Node::MaxInt(a, b) => lanes.ints(a, b, |a, b| Some(a.max(b))),
            Node::PowInt(a, b) => lanes.ints(a, b, |a, b| if b < 0 { None } else { power(a, b) }),
            Node::CompareInt(compare, a, b) => lanes.ints(a, b, |a, b| Some(i64::from(holds(compare, &a, &b)))),
            Node::NegFloat(a) => lanes.floats1(a, |a| -a),
            Node::Function(function, a) => lanes.floats1(a, |a| apply(function, a)),
            Node::AddFloat(a, b) => lanes.floats(a, b, |a, b| a + b),
            Node::SubFloat(a, b) => lanes.floats(a, b, |a, b| a - b),
            Node::MulFloat(a, b) => lanes.floats(a, b, |a, b| a * b),
            Node::DivFloat(a, b) => lanes.floats(a, b, |a, b| a / b),
            Node::RemFloat(a, b) => lanes.floats(a, b, libm::fmod),
            Node::MinFloat(a, b) => lanes.floats(a, b, minimum),
            Node::MaxFloat(a, b) => lanes.floats(a, b, maximum),
            Node::PowFloat(a, b) => lanes.floats(a, b, libm::pow),
            // Kinds change here: operands are floats, or the value is one.
            Node::CompareFloat(compare, a, b) => {
                lanes.each(a, b, |a, b| Some(u64::from(holds(compare, &f64::from_bits(a), &f64::from_bits(b)))))
            }
            Node::Select(condition, yes, no) => lanes.select(condition, yes, no),
            Node::ToFloat(a) => lanes.each(a, a, |a, _| Some((a as i64 as f64).to_bits())),
            Node::ToInt(a) => lanes.each(a, a, |a, _| to_int(f64::from_bits(a)).map(|value| value as u64)),
        }
    }
}

/// Values of the nodes before one, and room for its own. Each verb says whether all lanes have a value.
struct Evaluated<'v> {
    before: &'v [Lanes],
    to: &'v mut Lanes,
}

impl Evaluated<'_> {
    #[inline(always)]
    fn each(&mut self, a: u32, b: u32, operation: impl Fn(u64, u64) -> Option<u64>) -> bool {
        let (a, b) = (&self.before[a as usize], &self.before[b as usize]);
        let mut whole = true;
        for ((to, &a), &b) in self.to.iter_mut().zip(a).zip(b) {
            let value = operation(a, b);
            whole &= value.is_some();
            *to = value.unwrap_or(0);
        }
        whole
    }

    #[inline(always)]
    fn ints(&mut self, a: u32, b: u32, operation: impl Fn(i64, i64) -> Option<i64>) -> bool {
        self.each(a, b, |a, b| operation(a as i64, b as i64).map(|value| value as u64))
    }

    #[inline(always)]
    fn ints1(&mut self, a: u32, operation: impl Fn(i64) -> Option<i64>) -> bool {
        self.ints(a, a, |a, _| operation(a))
    }

    #[inline(always)]
    fn floats(&mut self, a: u32, b: u32, operation: impl Fn(f64, f64) -> f64) -> bool {
        self.each(a, b, |a, b| Some(operation(f64::from_bits(a), f64::from_bits(b)).to_bits()))
    }

    #[inline(always)]
    fn floats1(&mut self, a: u32, operation: impl Fn(f64) -> f64) -> bool {
        self.floats(a, a, |a, _| operation(a))
    }

    fn select(&mut self, condition: u32, yes: u32, no: u32) -> bool {
        let of = |node: u32| &self.before[node as usize];
        let taken = of(condition).iter().zip(of(yes)).zip(of(no));
        for (to, ((&condition, &yes), &no)) in self.to.iter_mut().zip(taken) {
            *to = if condition != 0 { yes } else { no };
        }
        true
    }
}
