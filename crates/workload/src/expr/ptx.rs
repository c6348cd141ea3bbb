//! From a compiled expression to PTX, which each thread of a kernel computes.
//!
//! What does not depend on a thread is computed now and becomes a literal; the rest is 64-bit integer
//! arithmetic. Invariant: where the evaluation of the same expression (`eval`) gives a value, the code gives
//! the same one. Where it gives a fault (overflow, a division by zero) the code computes some value: the
//! caller evaluates the expression first.
//!
//! Not modelled: floats, elements of buffers and sums that depend on a thread (faults at their place).

use super::{Code, Compare, Expr, NoElements, Node, eval};
use durawarp_base::diagnostic::Diagnostic;

/// Where code goes and where registers come from.
pub(crate) trait Emit {
    /// A new 64-bit register.
    fn long(&mut self) -> String;
    /// A new predicate register.
    fn predicate(&mut self) -> String;
    /// Appends an instruction, without its semicolon.
    fn push(&mut self, instruction: String);
    /// The register that an operation on these operands was put in already, if it still holds that everywhere
    /// here.
    fn computed(&self, operation: &str) -> Option<String>;
    /// Notes that `operation` is in `register`.
    fn remember(&mut self, operation: String, register: &str);
    /// The register that holds the variable in this slot of the frame, if it depends on the thread.
    fn variable(&self, slot: u16) -> Option<String>;
}

/// A condition: known now, or in a predicate register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Known for all threads.
    Known(bool),
    /// A predicate register.
    Register(String),
}

impl Expr {
    /// Emits code for the value: a 64-bit register or a literal.
    ///
    /// # Errors
    /// A part that depends on the thread and is no integer arithmetic, or a fault in a part that does not.
    pub(crate) fn emit(&self, frame: &[u64], out: &mut impl Emit) -> Result<String, Diagnostic> {
        Emitter { expr: self, frame, out }.long(self.code.nodes.len() as u32 - 1)
    }

    /// Emits code for "is not 0".
    ///
    /// # Errors
    /// As [`Expr::emit`].
    pub(crate) fn emit_condition(&self, frame: &[u64], out: &mut impl Emit) -> Result<Condition, Diagnostic> {
        Emitter { expr: self, frame, out }.condition(self.code.nodes.len() as u32 - 1)
    }
}

struct Emitter<'a, E> {
    expr: &'a Expr,
    frame: &'a [u64],
    out: &'a mut E,
}

impl<E: Emit> Emitter<'_, E> {
    fn node(&self, at: u32) -> Node {
        self.expr.code.nodes[at as usize]
    }

    fn varies(&self, at: u32) -> bool {
        match self.node(at) {
            Node::Var(slot) => self.out.variable(slot).is_some(),
            node => node.operands().into_iter().any(|operand| self.varies(operand)),
        }
    }

    /// The value of a part that no thread changes.
    fn constant(&self, at: u32) -> Result<i64, Diagnostic> {
        let code = &self.expr.code;
        let end = at as usize + 1;
        // The root of code is its last node.
        let part = Code { nodes: code.nodes[..end].to_vec(), places: code.places[..end].to_vec(), ..*code };
        let mut frame = self.frame.to_vec();
        frame.resize(frame.len().max(usize::from(code.slots)), 0);
        eval::run(&part, &mut frame, &NoElements).map(|bits| bits as i64).map_err(|stop| self.expr.fault(stop))
    }

    fn computed(&mut self, operation: &str, operands: &[&str]) -> String {
        let operands = operands.join(", ");
        let key = format!("{operation} {operands}");
        if let Some(register) = self.out.computed(&key) {
            return register;
        }
        let register = self.out.long();
        self.out.push(format!("{operation} {register}, {operands}"));
        self.out.remember(key, &register);
        register
    }

    fn binary(&mut self, operation: &str, a: u32, b: u32) -> Result<String, Diagnostic> {
        let (a, b) = (self.long(a)?, self.long(b)?);
        Ok(self.computed(operation, &[&a, &b]))
    }

    fn long(&mut self, at: u32) -> Result<String, Diagnostic> {
        // What no thread changes is computed here: this part may have any operator, only the rest must have a
        // PTX form.
        if !self.varies(at) {
            return self.constant(at).map(|value| value.to_string());
        }
        match self.node(at) {
            Node::Var(slot) => Ok(self.out.variable(slot).unwrap_or_default()),
            Node::NegInt(a) => {
                let a = self.long(a)?;
                Ok(self.computed("neg.s64", &[&a]))
            }
            Node::AbsInt(a) => {
                let a = self.long(a)?;
                Ok(self.computed("abs.s64", &[&a]))
            }
            Node::AddInt(a, b) => self.binary("add.s64", a, b),
            Node::SubInt(a, b) => self.binary("sub.s64", a, b),
            Node::MulInt(a, b) => self.binary("mul.lo.s64", a, b),
            Node::DivInt(a, b) => self.binary("div.s64", a, b),
            Node::RemInt(a, b) => self.binary("rem.s64", a, b),
            Node::MinInt(a, b) => self.binary("min.s64", a, b),
            Node::MaxInt(a, b) => self.binary("max.s64", a, b),
            Node::CeilDiv(a, b) => {
                let (a, b) = (self.long(a)?, self.long(b)?);
                let quotient = self.computed("div.s64", &[&a, &b]);
                let rest = self.computed("rem.s64", &[&a, &b]);
                // Rounded toward zero was down where the signs agree and something is left.
                let signs = self.computed("xor.b64", &[&a, &b]);
                let (left, same) = (self.out.predicate(), self.out.predicate());
                self.out.push(format!("setp.ge.s64 {same}, {signs}, 0"));
                self.out.push(format!("setp.ne.and.s64 {left}, {rest}, 0, {same}"));
                let up = self.out.long();
                self.out.push(format!("selp.b64 {up}, 1, 0, {left}"));
                Ok(self.computed("add.s64", &[&quotient, &up]))
            }
            Node::Select(condition, a, b) => {
                let condition = self.condition(condition)?;
                match condition {
                    Condition::Known(holds) => self.long(if holds { a } else { b }),
                    Condition::Register(p) => {
                        let (a, b) = (self.long(a)?, self.long(b)?);
                        Ok(self.computed("selp.b64", &[&a, &b, &p]))
                    }
                }
            }
            Node::Not(_) | Node::And(..) | Node::Or(..) | Node::CompareInt(..) => match self.condition(at)? {
                Condition::Known(holds) => Ok(i64::from(holds).to_string()),
                Condition::Register(p) => Ok(self.computed("selp.b64", &["1", "0", &p])),
            },
            _ => {
                let range = &self.expr.code.places[at as usize];
                let range = range.start as usize..range.end as usize;
                let shown = self.expr.text.get(range.clone()).unwrap_or(&self.expr.text).to_owned();
                let place = self.expr.place.inside(&self.expr.text, range);
                let message = format!("`{shown}` depends on the thread and is not integer arithmetic");
                let help =
                    "threads can compute + - * / % comparisons && || ! ?: abs, ceil_div, max and min of integers";
                Err(place.fault(message).with_help(help))
            }
        }
    }

    fn condition(&mut self, at: u32) -> Result<Condition, Diagnostic> {
        if !self.varies(at) {
            return self.constant(at).map(|value| Condition::Known(value != 0));
        }
        match self.node(at) {
            Node::CompareInt(compare, a, b) => {
                let (a, b) = (self.long(a)?, self.long(b)?);
                let word = match compare {
                    Compare::Eq => "eq",
                    Compare::Ne => "ne",
                    Compare::Lt => "lt",
                    Compare::Le => "le",
                    Compare::Gt => "gt",
                    Compare::Ge => "ge",
                };
                let p = self.out.predicate();
                self.out.push(format!("setp.{word}.s64 {p}, {a}, {b}"));
                Ok(Condition::Register(p))
            }
            Node::And(a, b) => self.both(a, b, "and.pred", false),
            Node::Or(a, b) => self.both(a, b, "or.pred", true),
            Node::Not(a) => match self.condition(a)? {
                Condition::Known(holds) => Ok(Condition::Known(!holds)),
                Condition::Register(a) => {
                    let p = self.out.predicate();
                    self.out.push(format!("not.pred {p}, {a}"));
                    Ok(Condition::Register(p))
                }
            },
            // Any other integer is a condition that holds unless it is 0, as in `eval`.
            _ => {
                let value = self.long(at)?;
                let p = self.out.predicate();
                self.out.push(format!("setp.ne.s64 {p}, {value}, 0"));
                Ok(Condition::Register(p))
            }
        }
    }

    /// `&&` or `||`; one side that is `decisive` decides.
    fn both(&mut self, a: u32, b: u32, operation: &str, decisive: bool) -> Result<Condition, Diagnostic> {
        let left = self.condition(a)?;
        if left == Condition::Known(decisive) {
            return Ok(left);
        }
        Ok(match (left, self.condition(b)?) {
            (Condition::Register(a), Condition::Register(b)) => {
                let p = self.out.predicate();
                self.out.push(format!("{operation} {p}, {a}, {b}"));
                Condition::Register(p)
            }
            (Condition::Known(_), other) => other,
            (_, Condition::Known(known)) if known == decisive => Condition::Known(known),
            (register, _) => register,
        })
    }
}
