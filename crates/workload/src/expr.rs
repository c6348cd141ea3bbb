//! The manifest's expression language: integers, floats, parameters, elements of buffers, sums.
//!
//! Text is parsed to a tree (`syntax`), compiled to typed nodes against a [`Scope`] (`compile`) and evaluated
//! many times with a frame of variables (`eval`), or for many indices at once (`batch`); a condition that
//! does not hold tells why (`blame`). An [`Expr`] remembers its place in the manifest, so that a fault at any
//! time (unknown name, overflow in element 17 of a buffer) points into the text between the quotes.
//!
//! Invariants: the root of a [`Code`] is its last node; operands come before their node; a slot of a frame
//! holds the bits of an `i64` or an `f64` as its variable's type says.

mod batch;
mod blame;
mod code;
mod compile;
mod eval;
mod ptx;
mod syntax;
#[cfg(test)]
mod tests;

pub(crate) use batch::{LANES, Lanes};
pub(crate) use blame::Reason;
pub(crate) use code::{Readable, Scope, Variable, Which};
pub(crate) use eval::{Element, Elements, EvalFault, Miss, NoElements, Stop};
pub(crate) use ptx::{Condition, Emit};

pub(crate) use durawarp_base::document::Value;

pub(crate) use durawarp_base::document::Type;

use code::{Code, Compare, Function, Node};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::Place;

/// Names of all functions.
#[cfg(test)]
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    compile::FUNCTIONS.into_iter().map(|(name, _)| name)
}

/// A compiled expression and its place in the manifest.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    code: Code,
    text: String,
    place: Place,
}

impl Expr {
    /// Compiles `text`, which lies at `place`.
    ///
    /// # Errors
    /// A syntax fault, an unknown name or a wrong type, at its place inside the text.
    pub(crate) fn compile(text: &str, place: &Place, scope: &Scope) -> Result<Expr, Diagnostic> {
        let code = syntax::parse(text).and_then(|tree| compile::compile(&tree, scope)).map_err(|fault| {
            let found = place.inside(text, fault.at).fault(fault.message);
            match fault.help {
                Some(help) => found.with_help(help),
                None => found,
            }
        })?;
        Ok(Expr { code, text: text.to_owned(), place: place.clone() })
    }

    /// A number written as a number.
    pub(crate) fn constant(value: Value, place: &Place) -> Expr {
        let node = match value {
            Value::Int(value) => Node::Int(value),
            Value::Float(value) => Node::Float(value),
        };
        let text = value.to_string();
        let places = std::iter::once(0..text.len() as u32).collect();
        let code = Code { nodes: vec![node], places, ty: value.ty(), scope_slots: 0, slots: 0, reads_device: false };
        Expr { code, text, place: place.clone() }
    }

    /// Kind of its value.
    pub(crate) fn ty(&self) -> Type {
        self.code.ty
    }

    /// Where it is in the manifest.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The buffers whose elements it reads, each with its place in the manifest.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (usize, Place)> {
        let read = |(at, node): (usize, &Node)| match node {
            Node::Load { buffer, .. } => {
                let range = &self.code.places[at];
                let place = self.place.inside(&self.text, range.start as usize..range.end as usize);
                Some((usize::from(*buffer), place))
            }
            _ => None,
        };
        self.code.nodes.iter().enumerate().filter_map(read)
    }

    /// Whether its value can change while the host program runs.
    pub(crate) fn reads_device(&self) -> bool {
        self.code.reads_device
    }

    /// Whether it names the variable in `slot`.
    pub(crate) fn names(&self, slot: usize) -> bool {
        self.code.nodes.iter().any(|node| matches!(node, Node::Var(named) if usize::from(*named) == slot))
    }

    /// Whether it names a variable of its scope in `first` or a later slot.
    pub(crate) fn names_from(&self, first: usize) -> bool {
        let slots = first..usize::from(self.code.scope_slots);
        self.code.nodes.iter().any(|node| matches!(node, Node::Var(slot) if slots.contains(&usize::from(*slot))))
    }

    /// Its value. The frame grows if the expression's sums need it to.
    ///
    /// # Errors
    /// See [`Stop`].
    pub(crate) fn evaluate<E: Elements>(&self, frame: &mut Vec<u64>, elements: &E) -> Result<Value, Stop> {
        if frame.len() < usize::from(self.code.slots) {
            frame.resize(usize::from(self.code.slots), 0);
        }
        eval::run(&self.code, frame, elements).map(|bits| Value::of_bits(bits, self.code.ty))
    }

    /// The same, for one frame of its scope's variables only: what follows from these alone is worked out.
    /// What has no value keeps its fault for when it is evaluated.
    pub(crate) fn fixed(&self, frame: &[u64]) -> Expr {
        Expr { code: eval::fixed(&self.code, frame), ..self.clone() }
    }

    /// Checks, before any of them is worked out, that the sums of `count` elements of one buffer have no more
    /// terms than are added up. `set` makes the frame of an element of its number.
    ///
    /// # Errors
    /// There are more, at the place of a sum.
    pub(crate) fn bound_terms<E: Elements>(
        &self,
        frame: &mut Vec<u64>,
        elements: &E,
        count: u64,
        set: impl FnMut(&mut [u64], u64),
    ) -> Result<(), Diagnostic> {
        if frame.len() < usize::from(self.code.slots) {
            frame.resize(usize::from(self.code.slots), 0);
        }
        eval::bound_terms(&self.code, frame, elements, count, set).map_err(|stop| self.fault(stop))
    }

    /// Its value where nothing can be read.
    ///
    /// # Errors
    /// The fault at its place.
    pub(crate) fn value(&self, frame: &mut Vec<u64>) -> Result<Value, Diagnostic> {
        self.evaluate(frame, &NoElements).map_err(|stop| self.fault(stop))
    }

    /// Its value where nothing can be read, as an integer.
    ///
    /// # Errors
    /// The fault at its place; a float is one.
    pub(crate) fn integer(&self, frame: &mut Vec<u64>, what: &str) -> Result<i64, Diagnostic> {
        match self.value(frame)? {
            Value::Int(value) => Ok(value),
            Value::Float(_) => Err(self.not_an_integer(what)),
        }
    }

    /// "`what` must be an integer".
    pub(crate) fn not_an_integer(&self, what: &str) -> Diagnostic {
        self.place
            .fault(format!("{what} must be an integer, `{}` is a float", self.text))
            .with_help("`int(x)` rounds toward zero, `/` between integers already does")
    }

    /// What ended an evaluation, at its place.
    pub(crate) fn fault(&self, stop: Stop) -> Diagnostic {
        match stop {
            Stop::Fault(node, fault) => {
                let at = &self.code.places[node as usize];
                let at = at.start as usize..at.end as usize;
                let shown = self.text.get(at.clone()).unwrap_or(&self.text).to_owned();
                self.place.inside(&self.text, at).fault(format!("`{shown}`: {fault}"))
            }
            Stop::Pending(_) => {
                self.place.fault(format!("`{}` reads the device, which is not possible here", self.text))
            }
        }
    }
}
