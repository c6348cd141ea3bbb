//! Host steps that cost no simulated time: `reduce`, which leaves a number of a buffer's elements in a
//! variable of the host program, and `warm`.
//!
//! A variable exists from the first step on, with the value 0, in all steps of its list (those of the run,
//! those of recovery), also in the conditions of loops around the step that sets it: so variables are known
//! before steps are read.

use super::reader::{Reader, unknown};
use crate::expr::{Scope, Type};
use crate::manifest::element::type_of;
use crate::manifest::steps::{HostStep, ReduceStep};
use durawarp_base::document::{Item, Place, TomlTable, quoted};
use durawarp_kernel::reduction::Fold;

/// The `reduce` steps of a table and of its loops.
fn reductions<'t>(table: TomlTable<'t>, out: &mut Vec<TomlTable<'t>>) {
    if table.get("reduce").is_some() {
        out.push(table);
    }
    for inner in ["before", "step", "loop"].into_iter().flat_map(|key| table.tables(key)) {
        reductions(inner, out);
    }
}

fn fold_of(table: TomlTable<'_>) -> Option<Fold> {
    let (word, _) = table.text("op")?;
    Fold::ALL.into_iter().find(|(name, _)| *name == word).map(|(_, fold)| fold)
}

impl Reader<'_> {
    /// Defines the variables that steps of these tables reduce into.
    pub(crate) fn variables(&mut self, tables: &[TomlTable<'_>], scope: &mut Scope) {
        let (mut steps, first) = (Vec::new(), scope.variables.len());
        tables.iter().for_each(|table| reductions(*table, &mut steps));
        for step in steps {
            let (Some((name, place)), Some(ty)) = (step.text("into"), self.type_of_result(step)) else { continue };
            match scope.variables[first..].iter().find(|variable| variable.name == name) {
                Some(known) if known.ty != ty => {
                    let fault = place.fault(format!("`{name}` is an integer in one step and a float in another"));
                    self.fault(fault.with_help("two names keep them apart"));
                }
                Some(_) => {}
                None if self.is_taken(name, scope) => {
                    let fault = place.fault(format!("`{name}` already has a meaning here"));
                    self.fault(fault.with_help("choose another name for the variable"));
                }
                None => {
                    scope.define(name, ty);
                }
            }
        }
    }

    /// Whether expressions of `scope` give a name a meaning, or could not name it.
    pub(crate) fn is_taken(&self, name: &str, scope: &Scope) -> bool {
        scope.variable(name).is_some() || self.names.find(name).is_some() || name.contains(['(', '.'])
    }

    /// Kind of what a `reduce` step leaves; none where the step has faults, which are reported elsewhere.
    fn type_of_result(&self, table: TomlTable<'_>) -> Option<Type> {
        let (name, _) = table.text("reduce")?;
        let buffer = self.buffers.iter().find(|buffer| buffer.name == name)?;
        let field = match table.text("field") {
            Some((name, _)) => buffer.fields.iter().find(|field| field.name == name)?,
            None => &buffer.fields[0],
        };
        let fold = fold_of(table)?;
        Some(if fold == Fold::ArgMax { Type::Int } else { type_of(field.elem) })
    }

    /// A `reduce` step.
    pub(crate) fn reduce(&mut self, table: TomlTable<'_>, scope: &Scope) -> Option<HostStep> {
        let place = table.place();
        let from = self.span(table, "reduce", "index", scope);
        let count = self.integer_at(table, "count", scope);
        let (name, name_place) = table.text("into")?;
        if !is_name(name) {
            let message = format!("`{name}` is not a name: a letter or `_`, then letters, digits and `_`");
            self.fault(name_place.fault(message));
            return None;
        }
        let from = from?;
        let field = self.reduced_field(table, from.buffer, &place)?;
        let (fold, slot) = (fold_of(table)?, scope.variable(name)?.slot);
        Some(HostStep::Reduce(Box::new(ReduceStep { place, from, field, count, fold, slot })))
    }

    fn reduced_field(&mut self, table: TomlTable<'_>, buffer: usize, place: &Place) -> Option<usize> {
        let form = &self.buffers[buffer];
        let names: Vec<String> = form.fields.iter().map(|field| field.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match (form.is_structured(), table.text("field")) {
            (false, None) => Some(0),
            (false, Some((_, place))) => {
                let fault = place.fault(format!("buffer `{}` has no fields", form.name));
                self.fault(fault);
                None
            }
            (true, None) => {
                let fault = place.fault("a buffer of structures is reduced field by field: the key `field` is missing");
                self.fault(fault.with_help(format!("one of {}", quoted(&names))));
                None
            }
            (true, Some((name, place))) => {
                let found = names.iter().position(|field| *field == name);
                if found.is_none() {
                    let fault = unknown("field", name, &place, names.iter().copied());
                    self.fault(fault);
                }
                found
            }
        }
    }

    /// A `warm` step.
    pub(crate) fn warm(&mut self, item: Item<'_>) -> Option<HostStep> {
        let items = item.list().unwrap_or_else(|| vec![item]);
        let mut buffers = Vec::new();
        for name in &items {
            let Some(number) = name.text().and_then(|text| self.buffer(text, &name.place())) else { continue };
            self.not_const(number, &name.place());
            buffers.push(number);
        }
        (buffers.len() == items.len()).then_some(HostStep::Warm(buffers))
    }
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
