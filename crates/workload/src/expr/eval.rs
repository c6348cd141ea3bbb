//! Evaluation of compiled expressions.
//!
//! A value is 64 bits whose kind the compiler knows: an `i64`, or the bits of an `f64`. Integers are checked:
//! overflow and division by zero end the evaluation. Floats follow IEEE 754 and come out the same on every
//! host: `exp`, `log2`, `pow`, `sin` and `cos` are the `libm` crate's software versions, never the host's.

use super::{Code, Compare, Function, Node, Which};

/// Why an evaluation ended without a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Stop {
    /// The expression is at fault, at this node.
    Fault(u32, EvalFault),
    /// An element must be read from the device first; then evaluate again.
    Pending(Element),
}

/// What an expression did wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EvalFault {
    /// An integer operation left the range of `i64`.
    Overflow,
    /// An integer was divided by zero.
    DivisionByZero,
    /// The integer logarithm of a number that is not positive.
    Logarithm(i64),
    /// An integer raised to a negative power.
    NegativePower(i64),
    /// A float that no `i64` stands for.
    NotAnInteger(f64),
    /// An index outside the buffer.
    OutOfRange {
        index: i64,
        /// Elements of the buffer.
        len: u64,
    },
    /// An element of a `u64` buffer above the largest `i64`.
    TooLarge(u64),
    /// More terms of sums than are added up for one value.
    TooManyTerms,
    /// More terms of sums than are added up for all elements of a buffer.
    TooManyTermsInAll,
}

impl std::fmt::Display for EvalFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EvalFault::Overflow => write!(f, "integer overflow (beyond 64 bits)"),
            EvalFault::DivisionByZero => write!(f, "integer division by zero"),
            EvalFault::Logarithm(x) => write!(f, "`log2` of {x}, which is not positive"),
            EvalFault::NegativePower(x) => write!(f, "integer power with the negative exponent {x}"),
            EvalFault::NotAnInteger(x) => write!(f, "{x:?} cannot be made an integer"),
            EvalFault::OutOfRange { index, len } => write!(f, "index {index} is outside the buffer's {len} elements"),
            EvalFault::TooManyTerms => write!(f, "sums of over {MOST_TERMS} terms for one value"),
            EvalFault::TooManyTermsInAll => {
                write!(f, "sums of over {MOST_TERMS_IN_ALL} terms for the elements of one buffer: hours of work")
            }
            EvalFault::TooLarge(x) => write!(f, "the element's value {x} is larger than 2^63 - 1"),
        }
    }
}

/// One element of a buffer (of one field of its structures).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    /// Buffer number.
    pub(crate) buffer: u16,
    /// Field number in the buffer's structure.
    pub(crate) field: u16,
    /// Element number.
    pub(crate) index: u64,
}

/// What can go wrong when an element is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Miss {
    /// See [`EvalFault`].
    Fault(EvalFault),
    /// See [`Stop::Pending`].
    Pending,
}

/// Where elements come from. A value is an `i64`, or the bits of an `f64` if the field is of a float type.
pub(crate) trait Elements {
    /// Elements of a buffer.
    fn len(&self, buffer: u16) -> u64;
    /// An element that exists.
    fn element(&self, which: Which, element: Element) -> Result<u64, Miss>;
}

/// No elements: expressions that the compiler let read nothing.
#[derive(Debug)]
pub(crate) struct NoElements;

impl Elements for NoElements {
    fn len(&self, _buffer: u16) -> u64 {
        0
    }

    fn element(&self, _which: Which, _element: Element) -> Result<u64, Miss> {
        Err(Miss::Pending)
    }
}

/// Terms of all sums of one value: seconds of work.
pub(crate) const MOST_TERMS: u64 = 1 << 30;

/// Terms of all sums of the elements of one buffer: minutes of work. Chosen: the product of two matrices of
/// 2,500 x 2,500.
pub(crate) const MOST_TERMS_IN_ALL: u64 = 1 << 34;

/// Adds up the terms of all sums of `count` values, each with the frame that `set` makes for its number.
/// Their bounds say how many there are: no term is worked out. A value that has none counts for nothing here:
/// its evaluation tells why.
///
/// # Errors
/// There are more than [`MOST_TERMS_IN_ALL`].
pub(crate) fn bound_terms<E: Elements>(
    code: &Code,
    frame: &mut [u64],
    elements: &E,
    count: u64,
    mut set: impl FnMut(&mut [u64], u64),
) -> Result<(), Stop> {
    let sums = sums_below(&code.nodes);
    let root = code.nodes.len() as u32 - 1;
    if !sums[root as usize] {
        return Ok(());
    }
    let mut terms = 0;
    for number in 0..count {
        set(frame, number);
        let evaluation = Evaluation { nodes: &code.nodes, frame: &mut *frame, elements, terms_left: MOST_TERMS };
        let counted = TermCount { evaluation, sums: &sums }.node(root, &mut terms);
        if let Err(stop @ Stop::Fault(_, EvalFault::TooManyTermsInAll)) = counted {
            return Err(stop);
        }
    }
    Ok(())
}

/// Of each node, whether it has a sum in it or is one.
fn sums_below(nodes: &[Node]) -> Vec<bool> {
    let mut sums: Vec<bool> = Vec::with_capacity(nodes.len());
    // Operands come before their node.
    for node in nodes {
        let below = node.operands().into_iter().any(|operand| sums[operand as usize]);
        sums.push(below || matches!(node, Node::Sum { .. }));
    }
    sums
}

struct TermCount<'a, E> {
    evaluation: Evaluation<'a, E>,
    sums: &'a [bool],
}

impl<E: Elements> TermCount<'_, E> {
    fn node(&mut self, at: u32, terms: &mut u64) -> Result<(), Stop> {
        if !self.sums[at as usize] {
            return Ok(());
        }
        match self.evaluation.nodes[at as usize] {
            Node::Sum { slot, low, high, body, .. } => {
                self.node(low, terms)?;
                self.node(high, terms)?;
                let (low, high) = (self.evaluation.int(low)?, self.evaluation.int(high)?);
                *terms = terms.saturating_add(high.saturating_sub(low).max(0) as u64);
                if *terms > MOST_TERMS_IN_ALL {
                    return Err(Stop::Fault(at, EvalFault::TooManyTermsInAll));
                }
                // Only sums within the body can have other terms for each value.
                if self.sums[body as usize] {
                    for value in low..high {
                        self.evaluation.frame[usize::from(slot)] = value as u64;
                        self.node(body, terms)?;
                    }
                }
                Ok(())
            }
            Node::Select(condition, yes, no) => {
                self.node(condition, terms)?;
                let taken = if self.evaluation.int(condition)? != 0 { yes } else { no };
                self.node(taken, terms)
            }
            node => node.operands().into_iter().try_for_each(|operand| self.node(operand, terms)),
        }
    }
}

/// Evaluates `code` with `frame` as its variables.
pub(crate) fn run<E: Elements>(code: &Code, frame: &mut [u64], elements: &E) -> Result<u64, Stop> {
    run_within(code, frame, elements, MOST_TERMS)
}

/// As [`run`], with a bound on the terms of all sums.
pub(crate) fn run_within<E: Elements>(
    code: &Code,
    frame: &mut [u64],
    elements: &E,
    most_terms: u64,
) -> Result<u64, Stop> {
    Evaluation { nodes: &code.nodes, frame, elements, terms_left: most_terms }.node(code.nodes.len() as u32 - 1)
}

/// `code` with the values of its scope's variables, and of operations on these alone, in their places.
pub(crate) fn fixed(code: &Code, frame: &[u64]) -> Code {
    let (mut nodes, mut frame) = (code.nodes.clone(), frame.to_vec());
    for at in 0..nodes.len() {
        // Operands come before their node. Elements are not known, nor are the variables of sums.
        let known = match nodes[at] {
            Node::Var(slot) => slot < code.scope_slots,
            Node::Load { .. } | Node::Sum { .. } => false,
            node => node
                .operands()
                .into_iter()
                .all(|operand| matches!(nodes[operand as usize], Node::Int(_) | Node::Float(_))),
        };
        let value = known.then(|| {
            Evaluation { nodes: &nodes, frame: &mut frame, elements: &NoElements, terms_left: MOST_TERMS }
                .node(at as u32)
        });
        if let (Some(Ok(bits)), false) = (value, matches!(nodes[at], Node::Int(_) | Node::Float(_))) {
            // Whoever takes it knows of which type it is; these are the bits.
            nodes[at] = Node::Int(bits as i64);
        }
    }
    Code { nodes, places: code.places.clone(), ..*code }
}

/// An evaluation under way.
pub(crate) struct Evaluation<'a, E> {
    pub(crate) nodes: &'a [Node],
    pub(crate) frame: &'a mut [u64],
    pub(crate) elements: &'a E,
    /// Terms that sums may still have.
    pub(crate) terms_left: u64,
}

impl<E: Elements> Evaluation<'_, E> {
    pub(crate) fn int(&mut self, at: u32) -> Result<i64, Stop> {
        self.node(at).map(|value| value as i64)
    }

    fn float(&mut self, at: u32) -> Result<f64, Stop> {
        self.node(at).map(f64::from_bits)
    }

    fn ints(&mut self, at: u32, (a, b): (u32, u32), operation: impl Fn(i64, i64) -> Option<i64>) -> Result<u64, Stop> {
        let (a, b) = (self.int(a)?, self.int(b)?);
        operation(a, b).map(|value| value as u64).ok_or(Stop::Fault(at, EvalFault::Overflow))
    }

    fn floats(&mut self, (a, b): (u32, u32), operation: impl Fn(f64, f64) -> f64) -> Result<u64, Stop> {
        let (a, b) = (self.float(a)?, self.float(b)?);
        Ok(operation(a, b).to_bits())
    }

    fn divided(
        &mut self,
        at: u32,
        (a, b): (u32, u32),
        operation: impl Fn(i64, i64) -> Option<i64>,
    ) -> Result<u64, Stop> {
        let (a, b) = (self.int(a)?, self.int(b)?);
        if b == 0 {
            return Err(Stop::Fault(at, EvalFault::DivisionByZero));
        }
        operation(a, b).map(|value| value as u64).ok_or(Stop::Fault(at, EvalFault::Overflow))
    }

    pub(crate) fn node(&mut self, at: u32) -> Result<u64, Stop> {
        match self.nodes[at as usize] {
            Node::Int(value) => Ok(value as u64),
            Node::Float(value) => Ok(value.to_bits()),
            Node::Var(slot) => Ok(self.frame[usize::from(slot)]),
            Node::NegInt(a) => {
                let value = self.int(a)?;
                value.checked_neg().map(|v| v as u64).ok_or(Stop::Fault(at, EvalFault::Overflow))
            }
            Node::NegFloat(a) => Ok((-self.float(a)?).to_bits()),
            Node::AbsInt(a) => {
                let value = self.int(a)?;
                value.checked_abs().map(|v| v as u64).ok_or(Stop::Fault(at, EvalFault::Overflow))
            }
            Node::Not(a) => Ok(u64::from(self.int(a)? == 0)),
            // The right operand is evaluated only where it decides, so that the left one can guard it against
            // a fault.
            Node::And(a, b) => Ok(u64::from(self.int(a)? != 0 && self.int(b)? != 0)),
            Node::Or(a, b) => Ok(u64::from(self.int(a)? != 0 || self.int(b)? != 0)),
            Node::AddInt(a, b) => self.ints(at, (a, b), i64::checked_add),
            Node::SubInt(a, b) => self.ints(at, (a, b), i64::checked_sub),
            Node::MulInt(a, b) => self.ints(at, (a, b), i64::checked_mul),
            Node::DivInt(a, b) => self.divided(at, (a, b), i64::checked_div),
            Node::RemInt(a, b) => self.divided(at, (a, b), i64::checked_rem),
            Node::CeilDiv(a, b) => self.divided(at, (a, b), ceil_div),
            Node::MinInt(a, b) => self.ints(at, (a, b), |a, b| Some(a.min(b))),
            Node::MaxInt(a, b) => self.ints(at, (a, b), |a, b| Some(a.max(b))),
            // A negative exponent is a fault of its own, told before the base is looked at.
            Node::PowInt(a, b) => {
                let exponent = self.int(b)?;
                if exponent < 0 {
                    return Err(Stop::Fault(at, EvalFault::NegativePower(exponent)));
                }
                self.ints(at, (a, b), power)
            }
            Node::Log2Int(a) => match self.int(a)? {
                x if x > 0 => Ok(u64::from(x.ilog2())),
                x => Err(Stop::Fault(at, EvalFault::Logarithm(x))),
            },
            // Floats do not fault: they overflow to infinities and NaN, as IEEE 754 says.
            Node::AddFloat(a, b) => self.floats((a, b), |a, b| a + b),
            Node::SubFloat(a, b) => self.floats((a, b), |a, b| a - b),
            Node::MulFloat(a, b) => self.floats((a, b), |a, b| a * b),
            Node::DivFloat(a, b) => self.floats((a, b), |a, b| a / b),
            Node::RemFloat(a, b) => self.floats((a, b), libm::fmod),
            Node::MinFloat(a, b) => self.floats((a, b), minimum),
            Node::MaxFloat(a, b) => self.floats((a, b), maximum),
            Node::PowFloat(a, b) => self.floats((a, b), libm::pow),
            Node::CompareInt(compare, a, b) => {
                let (a, b) = (self.int(a)?, self.int(b)?);
                Ok(u64::from(holds(compare, &a, &b)))
            }
            Node::CompareFloat(compare, a, b) => {
                let (a, b) = (self.float(a)?, self.float(b)?);
                Ok(u64::from(holds(compare, &a, &b)))
            }
            Node::Select(condition, yes, no) => {
                let taken = if self.int(condition)? != 0 { yes } else { no };
                self.node(taken)
            }
            Node::ToFloat(a) => Ok((self.int(a)? as f64).to_bits()),
            Node::ToInt(a) => {
                let value = self.float(a)?;
                let whole = to_int(value).ok_or(Stop::Fault(at, EvalFault::NotAnInteger(value)));
                whole.map(|whole| whole as u64)
            }
            Node::Function(function, a) => {
                let x = self.float(a)?;
                Ok(apply(function, x).to_bits())
            }
            Node::Load { which, buffer, field, index } => self.load(at, which, buffer, field, index),
            Node::Sum { slot, float, low, high, body } => self.sum(at, slot, float, (low, high), body),
        }
    }

    fn load(&mut self, at: u32, which: Which, buffer: u16, field: u16, index: u32) -> Result<u64, Stop> {
        let index = self.int(index)?;
        let len = self.elements.len(buffer);
        if index < 0 || index as u64 >= len {
            return Err(Stop::Fault(at, EvalFault::OutOfRange { index, len }));
        }
        let element = Element { buffer, field, index: index as u64 };
        self.elements.element(which, element).map_err(|miss| match miss {
            Miss::Fault(fault) => Stop::Fault(at, fault),
            Miss::Pending => Stop::Pending(element),
        })
    }

    fn sum(&mut self, at: u32, slot: u16, float: bool, bounds: (u32, u32), body: u32) -> Result<u64, Stop> {
        let (low, high) = (self.int(bounds.0)?, self.int(bounds.1)?);
        let terms = high.saturating_sub(low).max(0) as u64;
        self.terms_left = self.terms_left.checked_sub(terms).ok_or(Stop::Fault(at, EvalFault::TooManyTerms))?;
        if float {
            let mut total = 0.0;
            for value in low..high {
                self.frame[usize::from(slot)] = value as u64;
                total += self.float(body)?;
            }
            return Ok(f64::to_bits(total));
        }
        let mut total = 0_i64;
        for value in low..high {
            self.frame[usize::from(slot)] = value as u64;
            total = total.checked_add(self.int(body)?).ok_or(Stop::Fault(at, EvalFault::Overflow))?;
        }
        Ok(total as u64)
    }
}

/// Division that rounds up; none by zero, or beyond 64 bits.
pub(super) fn ceil_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let up = a % b != 0 && (a < 0) == (b < 0);
    Some(quotient + i64::from(up))
}

/// The smaller; a number wins over NaN, on either side.
pub(super) fn minimum(a: f64, b: f64) -> f64 {
    if a < b || b.is_nan() { a } else { b }
}

/// The larger; a number wins over NaN, on either side.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a > b || b.is_nan() { a } else { b }
}

/// A float rounded toward zero, where an `i64` can hold that.
pub(super) fn to_int(value: f64) -> Option<i64> {
    // The bounds are exact: -2^63 and 2^63 are floats.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    fits.then_some(value as i64)
}

/// An integer power; none beyond 64 bits. The exponent is not negative.
pub(super) fn power(base: i64, exponent: i64) -> Option<i64> {
    match (base, u32::try_from(exponent)) {
        (_, Ok(exponent)) => base.checked_pow(exponent),
        (0 | 1, Err(_)) => Some(base),
        (-1, Err(_)) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => None,
    }
}

/// Whether a comparison holds.
pub(super) fn holds<T: PartialOrd>(compare: Compare, a: &T, b: &T) -> bool {
    match compare {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
    }
}

/// A function's value.
pub(super) fn apply(function: Function, x: f64) -> f64 {
    match function {
        Function::Abs => x.abs(),
        Function::Ceil => x.ceil(),
        Function::Cos => libm::cos(x),
        Function::Exp => libm::exp(x),
        Function::Floor => x.floor(),
        Function::Log2 => libm::log2(x),
        Function::Sin => libm::sin(x),
        Function::Sqrt => x.sqrt(),
    }
}
