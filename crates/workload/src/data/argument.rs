//! Arguments of references: integers, and buffers of integers as they were before the run.

use std::borrow::Cow;

use crate::expr::Value;
use crate::manifest::element::load;
use durawarp_kernel::ir::Elem;

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    /// The initial content of a buffer of integers, by its name.
    Integers,
    /// An integer expression.
    Integer,
}

/// An argument's value.
#[derive(Debug, Clone)]
pub(crate) enum Argument<'a> {
    Integers(IntegerBuffer<'a>),
    Integer(i64),
}

/// The initial content of a buffer of integers.
#[derive(Debug, Clone)]
pub(crate) struct IntegerBuffer<'a> {
    elem: Elem,
    bytes: Cow<'a, [u8]>,
}

impl<'a> IntegerBuffer<'a> {
    pub(crate) fn new(elem: Elem, bytes: Cow<'a, [u8]>) -> Self {
        IntegerBuffer { elem, bytes }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.elem.bytes() as usize
    }

    /// Every element.
    pub(crate) fn all(&self) -> Result<Vec<i64>, String> {
        (0..self.len()).map(|index| self.at(index as i64, "element")).collect()
    }

    /// Element `index`; a fault naming `what` when there is none.
    pub(crate) fn at(&self, index: i64, what: &str) -> Result<i64, String> {
        let number = usize::try_from(index).ok().filter(|number| *number < self.len());
        let number = number.ok_or_else(|| missing(index, what, self.len()))?;
        match load(self.elem, &self.bytes[number * self.elem.bytes() as usize..]) {
            Ok(Value::Int(value)) => Ok(value),
            Ok(Value::Float(value)) => Err(format!("element {index} is the float {value}")),
            Err(large) => Err(format!("element {index} is {large}, beyond 2^63")),
        }
    }
}

pub(crate) fn missing(index: i64, what: &str, len: usize) -> String {
    format!("{what} {index} does not exist ({len} do)")
}
