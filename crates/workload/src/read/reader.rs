//! The state that all readers of a manifest share: names, buffers, faults, and the reading of expressions.

use std::sync::Arc;

use crate::expr::{Expr, Scope, Type};
use crate::manifest::buffers::Buffer;
use crate::manifest::names::Names;
use crate::manifest::source::Programs;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Item, Place, TomlTable, quoted};
use durawarp_kernel::ir::Kernel;

/// `[kernel.NAME]`: what the manifest states of a kernel.
pub(crate) struct KernelFact {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) communicates: bool,
}

/// An event that steps name.
pub(crate) struct NamedEvent {
    pub(crate) name: String,
    /// A step records it.
    pub(crate) recorded: bool,
    /// Where it was named first.
    pub(crate) place: Place,
}

/// What every part of the reading shares.
pub(crate) struct Reader<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) names: Names,
    pub(crate) buffers: Vec<Buffer>,
    /// Buffers that launches are given as texture objects.
    pub(crate) texture_objects: Vec<usize>,
    /// What is stated of kernels.
    pub(crate) facts: Vec<KernelFact>,
    /// Events between launches of several streams.
    pub(crate) events: Vec<NamedEvent>,
    pub(crate) faults: &'a mut Diagnostics,
}

impl Reader<'_> {
    pub(crate) fn fault(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    /// Compiles an expression of either kind.
    pub(crate) fn expr(&mut self, item: Item<'_>, scope: &Scope) -> Option<Expr> {
        if let Some(value) = item.number() {
            return Some(Expr::constant(value, &item.place()));
        }
        match Expr::compile(item.text()?, &item.place(), scope) {
            Ok(expr) => Some(expr),
            Err(fault) => {
                self.fault(fault);
                None
            }
        }
    }

    /// Compiles an expression that must be an integer.
    pub(crate) fn integer(&mut self, item: Item<'_>, scope: &Scope, what: &str) -> Option<Expr> {
        let expr = self.expr(item, scope)?;
        if expr.ty() == Type::Float {
            self.fault(expr.not_an_integer(what));
            return None;
        }
        Some(expr)
    }

    /// The integer expression at `key`, if there is one.
    pub(crate) fn integer_at(&mut self, table: TomlTable<'_>, key: &str, scope: &Scope) -> Option<Expr> {
        self.integer(table.get(key)?, scope, &format!("`{key}`"))
    }

    /// The number of the buffer called `name`.
    pub(crate) fn buffer(&mut self, name: &str, place: &Place) -> Option<usize> {
        let found = self.buffers.iter().position(|buffer| buffer.name == name);
        if found.is_none() {
            let fault = unknown("buffer", name, place, self.names.buffer_names());
            self.fault(fault);
        }
        found
    }

    /// The number of the buffer named by the string at `key`.
    pub(crate) fn buffer_at(&mut self, table: TomlTable<'_>, key: &str) -> Option<usize> {
        let (name, place) = table.text(key)?;
        self.buffer(name, &place)
    }
}

/// "there is no `what` `name`", with the nearest name or all of them.
pub(crate) fn unknown<'n>(
    what: &str,
    name: &str,
    place: &Place,
    valid: impl IntoIterator<Item = &'n str>,
) -> Diagnostic {
    let valid: Vec<&str> = valid.into_iter().collect();
    let fault = place.fault(format!("there is no {what} `{name}`"));
    fault.with_nearest_or(name, valid.iter().copied(), || match valid.is_empty() {
        true => Some(format!("no {what} is declared")),
        false => Some(format!("declared: {}", quoted(&valid))),
    })
}
