//! Elements of buffers in words, for conditions: name, index and type, and values as literals of the type.
//!
//! Invariant: a name is the one that the manifest gives, whatever was swapped in the run: after a power
//! failure names stand for their own buffers again.

use crate::expr::{Element, Value};
use crate::manifest::buffers::{Buffer, Space};
use crate::manifest::element::{elem_name, load};
use crate::plan::RunPlan;
use durawarp_kernel::ir::Elem;

/// A value that is not what it should be, in the words of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongElement {
    /// `buffer[index]` or `buffer.field[index]`; an expression, where that has the value and no element
    /// alone.
    pub name: String,
    /// Its type, as manifests write it; none of an expression.
    pub ty: Option<&'static str>,
    /// Its value.
    pub found: String,
    /// What it should be: a value, or a relation to one.
    pub expected: String,
    /// The elements that its expected value depends on, each with its type and value.
    pub given: Vec<String>,
    /// Address of its first byte, and its bytes; none of an expression.
    pub bytes: Option<(u64, Vec<u8>)>,
}

/// A value as a literal of its type.
pub(crate) fn literal(elem: Elem, value: Result<Value, u64>) -> String {
    match value {
        Ok(Value::Float(value)) if elem == Elem::F32 => format!("{:?}", value as f32),
        Ok(value) => value.to_string(),
        Err(large) => large.to_string(),
    }
}

/// An element of the program: where it lies, and its name.
pub(crate) struct Named<'a> {
    plan: &'a RunPlan,
    element: Element,
}

impl<'a> Named<'a> {
    pub(crate) fn new(plan: &'a RunPlan, element: Element) -> Self {
        Named { plan, element }
    }

    fn form(&self) -> &'a Buffer {
        &self.plan.manifest.buffers[usize::from(self.element.buffer)]
    }

    pub(crate) fn elem(&self) -> Elem {
        self.form().fields[usize::from(self.element.field)].elem
    }

    /// `buffer[index]`, or `buffer.field[index]`.
    pub(crate) fn name(&self) -> String {
        let field = &self.form().fields[usize::from(self.element.field)].name;
        let dot = if field.is_empty() { "" } else { "." };
        format!("{}{dot}{field}[{}]", self.form().name, self.element.index)
    }

    /// The name of its type.
    pub(crate) fn ty(&self) -> &'static str {
        elem_name(self.elem())
    }

    /// Address of its first byte.
    pub(crate) fn address(&self) -> u64 {
        let form = self.form();
        let start = self.plan.buffers[usize::from(self.element.buffer)].address;
        start + self.element.index * form.stride + form.fields[usize::from(self.element.field)].offset
    }

    /// Its own bytes of those that begin at an address.
    pub(crate) fn of<'b>(&self, from: u64, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let at = usize::try_from(self.address().checked_sub(from)?).ok()?;
        bytes.get(at..at.checked_add(self.elem().bytes() as usize)?)
    }
}

/// The first element of the program that lies within bytes at an address and differs from those that are
/// expected there.
pub(crate) fn wrong_element(plan: &RunPlan, address: u64, found: &[u8], expected: &[u8]) -> Option<WrongElement> {
    let end = address.checked_add(found.len() as u64)?;
    let buffers = plan.manifest.buffers.iter().zip(&plan.buffers).enumerate();
    let mut touched = buffers.filter(|(_, (form, allocation))| {
        form.space != Space::Const && allocation.address < end && address < allocation.address + allocation.bytes
    });
    let (number, (form, allocation)) = touched.next()?;
    let first = address.saturating_sub(allocation.address) / form.stride;
    let last = ((end - 1 - allocation.address) / form.stride).min(allocation.len.checked_sub(1)?);
    for index in first..=last {
        for field in 0..form.fields.len() {
            let element = Element { buffer: number as u16, field: field as u16, index };
            let named = Named::new(plan, element);
            // An element that sticks out of the bytes is passed over.
            let (Some(is), Some(should)) = (named.of(address, found), named.of(address, expected)) else { continue };
            if is == should {
                continue;
            }
            let value = |bytes| literal(named.elem(), load(named.elem(), bytes));
            return Some(WrongElement {
                name: named.name(),
                ty: Some(named.ty()),
                found: value(is),
                expected: value(should),
                given: Vec::new(),
                bytes: Some((named.address(), is.to_vec())),
            });
        }
    }
    None
}
