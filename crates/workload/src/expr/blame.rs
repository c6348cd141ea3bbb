//! Why a condition does not hold: the elements that decide it, and what each should be.
//!
//! | form that should hold | blamed |
//! |---|---|
//! | `a && b` | the first of the two that does not hold |
//! | `a \|\| b`, `c ? a : b` | `b`, or the branch that was taken, given the elements of `a` or `c` |
//! | `sum(i, .., condition) == n`, n the number of its terms | terms that do not hold |
//! | `sum(i, .., condition) == 0` | terms that hold |
//! | any other comparison | its left side if that is an element, else its right side, else its text |
//!
//! What should not hold is its negation. A sum over one value names that value: where the name is compared,
//! what it stands for is blamed.
//!
//! Invariants: an element is blamed for its value in the image at hand, never for an initial one. Cost: as an
//! evaluation of the condition, times its depth. Not covered: which of several equally good repairs the
//! program needs.

use super::eval::{Element, Elements, Evaluation, MOST_TERMS, Stop};
use super::{Code, Compare, Expr, Node, Type, Value, Which};

/// Elements that a reason is given by, at most.
const MOST_GIVEN: usize = 8;

/// A value that keeps a condition from holding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reason {
    /// The element that has it; none where the expression `text` has.
    pub(crate) element: Option<Element>,
    /// What has the value, as the condition says it.
    pub(crate) text: String,
    /// The value.
    pub(crate) found: Value,
    /// How it should stand to `than`: "", "not ", "less than ", ...
    pub(crate) relation: &'static str,
    /// What it is compared with.
    pub(crate) than: Value,
    /// The element that `than` is the value of.
    pub(crate) than_element: Option<Element>,
    /// The expression that `than` is the value of, if it is not written as a number.
    pub(crate) than_text: Option<String>,
    /// The elements that `than` depends on.
    pub(crate) given: Vec<Element>,
}

impl Expr {
    /// Why it is 0, as far as that is known: at most `most` values, each decisive by itself.
    pub(crate) fn reasons<E: Elements>(&self, frame: &mut Vec<u64>, elements: &E, most: usize) -> Vec<Reason> {
        frame.resize(frame.len().max(usize::from(self.code.slots)), 0);
        let code = &self.code;
        let eval = Evaluation { nodes: &code.nodes, frame, elements, terms_left: MOST_TERMS };
        let mut blame =
            Blame { code, text: &self.text, eval, names: Vec::new(), given: Vec::new(), out: Vec::new(), most };
        // What has no value gives no reason: the caller tells that fault.
        let _ = blame.should(code.nodes.len() as u32 - 1, true);
        blame.out
    }
}

struct Blame<'a, E> {
    code: &'a Code,
    text: &'a str,
    eval: Evaluation<'a, E>,
    /// Variables of sums over one value, with the node of that value.
    names: Vec<(u16, u32)>,
    /// Elements of the conditions that were met on the way.
    given: Vec<Element>,
    out: Vec<Reason>,
    most: usize,
}

impl<E: Elements> Blame<'_, E> {
    fn node(&self, at: u32) -> Node {
        self.code.nodes[at as usize]
    }

    /// Notes why the condition at a node is not `wanted`.
    fn should(&mut self, at: u32, wanted: bool) -> Result<(), Stop> {
        if self.out.len() >= self.most {
            return Ok(());
        }
        match (self.node(at), wanted) {
            (Node::Not(a), _) => self.should(a, !wanted),
            // Both would have to come out as wanted: one that does not is reason enough.
            (Node::And(a, b), true) | (Node::Or(a, b), false) => {
                let first = (self.eval.int(a)? != 0) != wanted;
                self.should(if first { a } else { b }, wanted)
            }
            (Node::And(a, b) | Node::Or(a, b), _) => self.blame_given(a, b, wanted),
            (Node::Select(condition, yes, no), _) => {
                let taken = if self.eval.int(condition)? != 0 { yes } else { no };
                self.blame_given(condition, taken, wanted)
            }
            (Node::CompareInt(compare, a, b), _) => {
                let compare = if wanted { compare } else { negated(compare) };
                match self.terms_to_blame(compare, a, b)? {
                    Some((sum, wanted)) => self.terms(sum, wanted),
                    None => self.compared(compare, a, b, Type::Int),
                }
            }
            (Node::CompareFloat(compare, a, b), _) => {
                self.compared(if wanted { compare } else { negated(compare) }, a, b, Type::Float)
            }
            (Node::Sum { body, float: false, .. }, false) if self.is_condition(body) => self.terms(at, false),
            (_, wanted) => self.tell(at, Type::Int, if wanted { "not " } else { "" }, Value::Int(0), None),
        }
    }

    /// Blames `at`, given the elements of `given`.
    fn blame_given(&mut self, given: u32, at: u32, wanted: bool) -> Result<(), Stop> {
        let before = self.given.len();
        let mut read = std::mem::take(&mut self.given);
        self.loads(given, &mut read)?;
        self.given = read;
        let done = self.should(at, wanted);
        self.given.truncate(before);
        done
    }

    /// Whether a node is 0 or 1, or a sum of such.
    fn is_condition(&self, at: u32) -> bool {
        match self.node(at) {
            Node::CompareInt(..) | Node::CompareFloat(..) | Node::And(..) | Node::Or(..) | Node::Not(_) => true,
            Node::Sum { body, float: false, .. } => self.is_condition(body),
            Node::Select(_, yes, no) => self.is_condition(yes) && self.is_condition(no),
            _ => false,
        }
    }

    /// A side of a comparison that is a sum of conditions, and whether all of them should hold or none.
    fn terms_to_blame(&mut self, compare: Compare, a: u32, b: u32) -> Result<Option<(u32, bool)>, Stop> {
        let of = |blame: &Self, at: u32| match blame.node(at) {
            Node::Sum { body, float: false, .. } => blame.is_condition(body),
            _ => false,
        };
        let (sum, other, compare) = match (of(self, a), of(self, b)) {
            (true, false) => (a, b, compare),
            (false, true) => (b, a, mirrored(compare)),
            _ => return Ok(None),
        };
        let other = self.eval.int(other)?;
        let all = self.count(sum)?;
        Ok(match compare {
            Compare::Eq | Compare::Ge if other == all => Some((sum, true)),
            Compare::Eq | Compare::Le if other == 0 => Some((sum, false)),
            Compare::Lt if other == 1 => Some((sum, false)),
            _ => None,
        })
    }

    /// Conditions that a sum adds up, through the sums in it.
    fn count(&mut self, sum: u32) -> Result<i64, Stop> {
        let Node::Sum { slot, low, high, body, .. } = self.node(sum) else { return Ok(1) };
        let (low, high) = (self.eval.int(low)?, self.eval.int(high)?);
        if !matches!(self.node(body), Node::Sum { .. }) {
            return Ok(high.saturating_sub(low).max(0));
        }
        let mut all = 0_i64;
        for value in low..high {
            self.eval.frame[usize::from(slot)] = value as u64;
            all = all.saturating_add(self.count(body)?);
        }
        Ok(all)
    }

    /// Blames terms that are not `wanted`.
    fn terms(&mut self, sum: u32, wanted: bool) -> Result<(), Stop> {
        let Node::Sum { slot, low, high, body, .. } = self.node(sum) else { return self.should(sum, wanted) };
        let (first, end) = (self.eval.int(low)?, self.eval.int(high)?);
        let one = end.checked_sub(first) == Some(1);
        if one {
            self.names.push((slot, low));
        }
        for value in first..end {
            self.eval.frame[usize::from(slot)] = value as u64;
            if self.out.len() >= self.most {
                break;
            }
            match self.node(body) {
                Node::Sum { .. } => self.terms(body, wanted)?,
                _ if (self.eval.int(body)? != 0) != wanted => self.should(body, wanted)?,
                _ => {}
            }
        }
        if one {
            self.names.pop();
        }
        Ok(())
    }

    /// What a node stands for: a name's value, an element before it was made a float.
    fn resolved(&self, at: u32) -> u32 {
        let stands_for = match self.node(at) {
            Node::Var(slot) => self.names.iter().rev().find(|(name, _)| *name == slot).map(|(_, value)| *value),
            Node::ToFloat(a) => Some(a),
            _ => None,
        };
        stands_for.map_or(at, |value| self.resolved(value))
    }

    /// The element that a node is the value of.
    fn element(&mut self, at: u32) -> Result<Option<Element>, Stop> {
        let Node::Load { which: Which::Current, buffer, field, index } = self.node(self.resolved(at)) else {
            return Ok(None);
        };
        let index = self.eval.int(index)? as u64;
        Ok(Some(Element { buffer, field, index }))
    }

    /// Blames a side of a comparison that does not hold.
    fn compared(&mut self, compare: Compare, a: u32, b: u32, ty: Type) -> Result<(), Stop> {
        let (blamed, other, compare) = match (self.element(a)?, self.element(b)?) {
            (None, Some(_)) => (b, a, mirrored(compare)),
            _ => (a, b, compare),
        };
        let than = Value::of_bits(self.eval.node(other)?, ty);
        self.tell(blamed, ty, words(compare), than, Some(other))
    }

    fn tell(
        &mut self,
        blamed: u32,
        ty: Type,
        relation: &'static str,
        than: Value,
        other: Option<u32>,
    ) -> Result<(), Stop> {
        let element = self.element(blamed)?;
        let found = match self.node(blamed) {
            // An integer that was only converted is shown as the integer.
            Node::ToFloat(integer) => Value::Int(self.eval.int(integer)?),
            _ => Value::of_bits(self.eval.node(blamed)?, ty),
        };
        let mut given = self.given.clone();
        let (mut than_element, mut than_text) = (None, None);
        if let Some(other) = other {
            than_element = self.element(other)?;
            let number = matches!(self.node(other), Node::Int(_) | Node::Float(_));
            // An element speaks for itself; of anything else the elements that it was computed from are
            // given.
            than_text = (!number && than_element.is_none()).then(|| self.text_of(other));
            if than_element.is_none() {
                self.loads(other, &mut given)?;
            }
        }
        if element.is_none() {
            self.loads(blamed, &mut given)?;
        }
        given.truncate(MOST_GIVEN);
        let text = self.text_of(blamed);
        self.out.push(Reason { element, text, found, relation, than, than_element, than_text, given });
        Ok(())
    }

    /// Adds the elements that a node's value depends on, up to `MOST_GIVEN`.
    fn loads(&mut self, at: u32, out: &mut Vec<Element>) -> Result<(), Stop> {
        if out.len() >= MOST_GIVEN {
            return Ok(());
        }
        let at = self.resolved(at);
        match self.node(at) {
            Node::Load { .. } => {
                if let Some(element) = self.element(at)?.filter(|element| !out.contains(element)) {
                    out.push(element);
                }
                Ok(())
            }
            // The branch that was not taken has no part in the value.
            Node::Select(condition, yes, no) => {
                self.loads(condition, out)?;
                let taken = if self.eval.int(condition)? != 0 { yes } else { no };
                self.loads(taken, out)
            }
            Node::Sum { slot, low, high, body, .. } => {
                for value in self.eval.int(low)?..self.eval.int(high)? {
                    self.eval.frame[usize::from(slot)] = value as u64;
                    self.loads(body, out)?;
                    if out.len() >= MOST_GIVEN {
                        break;
                    }
                }
                Ok(())
            }
            node => node.operands().into_iter().try_for_each(|operand| self.loads(operand, out)),
        }
    }

    /// A node's text, on one line.
    fn text_of(&self, at: u32) -> String {
        let place = &self.code.places[at as usize];
        let text = self.text.get(place.start as usize..place.end as usize).unwrap_or(self.text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let initial = matches!(self.node(at), Node::Load { which: Which::Initial, .. });
        if initial && !text.starts_with("initial") { format!("initial({text})") } else { text }
    }
}

fn negated(compare: Compare) -> Compare {
    match compare {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Le => Compare::Gt,
        Compare::Gt => Compare::Le,
        Compare::Ge => Compare::Lt,
    }
}

/// The comparison with its sides exchanged.
fn mirrored(compare: Compare) -> Compare {
    match compare {
        Compare::Eq | Compare::Ne => compare,
        Compare::Lt => Compare::Gt,
        Compare::Le => Compare::Ge,
        Compare::Gt => Compare::Lt,
        Compare::Ge => Compare::Le,
    }
}

fn words(compare: Compare) -> &'static str {
    match compare {
        Compare::Eq => "",
        Compare::Ne => "not ",
        Compare::Lt => "less than ",
        Compare::Le => "at most ",
        Compare::Gt => "more than ",
        Compare::Ge => "at least ",
    }
}
