//! Conditions on what a power failure leaves: a manifest's `[[crash]]`, as `verify`'s `invariant` but on an image.
//!
//! A condition is an expression over buffers in persistent memory, judged on every image that a crash test looks at: on
//! what recovery made of it, or on what survived. For a scheme, a domain and a kind of instrumentation it *must hold*,
//! or *must be violated* by some image (a test of the tests, and of the models), or says nothing.
//!
//! Invariant: only persistent memory is read; an element outside its buffer is found before anything runs, as far as
//! its index does not depend on elements.

use std::cell::RefCell;
use std::sync::Arc;

use super::document::{Item, Table, advised};
use super::element::load;
use super::expr::{Element, Elements, Expr, Fault, Miss, Value, Which};
use super::instrument::FlagBarrier;
use super::manifest::{CrashForm, Setting, Space};
use super::read::Reader;
use super::resolve::Plan;
use crate::diagnostic::Diagnostics;

/// Elements that are told of a violation, at most.
const SHOWN: usize = 8;

impl Reader<'_> {
    /// `[[crash]]`.
    pub(super) fn conditions(&mut self, root: Table<'_>) -> Vec<CrashForm> {
        let mut out: Vec<CrashForm> = Vec::new();
        let scope = self.names.in_verify(false);
        for table in root.tables("crash") {
            let holds = table.get("holds").and_then(|item| self.integer(item, &scope, "a condition"));
            let (Some(holds), Some((name, place))) = (holds, table.text("name")) else { continue };
            if out.iter().any(|other| other.name == name) {
                self.fault(place.fault(format!("there already is a condition `{name}`")));
            }
            for (buffer, place) in holds.reads() {
                let form = &self.buffers[buffer];
                let lost = match form.space {
                    Space::Pm => continue,
                    Space::Const => "the constant bank is",
                    Space::Dram | Space::Texture => "DRAM is",
                };
                let message = format!("`{}` is not in persistent memory: {lost} lost in a power failure", form.name);
                let fault = place.fault(message).with_help("conditions read buffers with `space = \"pm\"`");
                self.fault(fault);
            }
            out.push(CrashForm {
                name: name.to_owned(),
                holds,
                on_survived: table.text("on").is_some_and(|(word, _)| word == "survived"),
                source: table.text("source").map(|(text, _)| text.to_owned()),
                binding: setting(table),
                violated_by: table.tables("violated_by").into_iter().map(setting).collect(),
            });
        }
        out
    }
}

fn setting(table: Table<'_>) -> Setting {
    let items = |key| table.get(key).and_then(Item::list);
    let text = |item: Item<'_>| item.text().map(|text| (text.to_owned(), item.place()));
    Setting {
        schemes: items("schemes").map(|items| items.into_iter().filter_map(text).collect()),
        domains: items("domains")
            .map(|items| items.into_iter().filter_map(|item| item.text().map(str::to_owned)).collect()),
        flag_barrier: table.text("flag_barrier").and_then(|(word, _)| word.parse().ok()),
    }
}

impl Setting {
    fn has(&self, scheme: &str, domain: &str, barrier: Option<FlagBarrier>) -> bool {
        self.schemes.as_ref().is_none_or(|all| all.iter().any(|(name, _)| name == scheme))
            && self.domains.as_ref().is_none_or(|all| all.iter().any(|name| name == domain))
            && self.flag_barrier.is_none_or(|wanted| barrier == Some(wanted))
    }
}

/// Every condition has a value at the start: what it names exists.
pub(super) fn check(plan: &Plan, faults: &mut Diagnostics) {
    for form in &plan.manifest.conditions {
        let image = Image { plan, bytes: None, read: None };
        if let Err(stop) = form.holds.evaluate(&mut plan.frame.clone(), &image) {
            faults.push(form.holds.fault(stop));
        }
    }
}

/// Unknown names of schemes, each once a place.
pub(super) fn check_schemes(plan: &Plan, known: &[&str]) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    for form in &plan.manifest.conditions {
        let settings = std::iter::once(&form.binding).chain(&form.violated_by);
        for (name, place) in settings.filter_map(|setting| setting.schemes.as_ref()).flatten() {
            if !known.contains(&name.as_str()) {
                let fault = place.fault(format!("there is no scheme `{name}`"));
                let all = || Some(format!("there are {}", known.join(", ")));
                faults.push(advised(fault, name, known.iter().copied(), all));
            }
        }
    }
    faults.into_result(())
}

/// What is expected of a condition under a scheme and a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// It holds on every image.
    Holds,
    /// Some image violates it.
    Violated,
    /// Nothing.
    Nothing,
}

/// A condition on what a power failure leaves.
#[derive(Debug, Clone)]
pub struct CrashCondition {
    plan: Arc<Plan>,
    number: usize,
    /// Its expression, for this plan alone.
    holds: Expr,
}

impl CrashCondition {
    pub(super) fn new(plan: &Arc<Plan>, number: usize) -> CrashCondition {
        let holds = plan.manifest.conditions[number].holds.fixed(&plan.frame);
        CrashCondition { plan: plan.clone(), number, holds }
    }

    fn form(&self) -> &CrashForm {
        &self.plan.manifest.conditions[self.number]
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.form().name
    }

    /// Its expression.
    pub fn text(&self) -> &str {
        self.holds.text()
    }

    /// The passage it stands for.
    pub fn source(&self) -> Option<&str> {
        self.form().source.as_deref()
    }

    /// Whether it is about what survived, not about what recovery made of it.
    pub fn on_survived(&self) -> bool {
        self.form().on_survived
    }

    /// What is expected of it under a scheme and a domain, with the run's own instrumentation.
    pub fn expected(&self, scheme: &str, domain: &str) -> Expected {
        let barrier = self.plan.settings.map(|settings| settings.flag_barrier);
        let form = self.form();
        if form.violated_by.iter().any(|setting| setting.has(scheme, domain, barrier)) {
            Expected::Violated
        } else if form.binding.has(scheme, domain, barrier) {
            Expected::Holds
        } else {
            Expected::Nothing
        }
    }

    /// Whether it holds on the bytes of persistent memory from address `base` on; without a value it does not.
    pub fn holds(&self, base: u64, bytes: &[u8]) -> bool {
        let image = Image { plan: &self.plan, bytes: Some((base, bytes)), read: None };
        self.holds.evaluate(&mut self.plan.frame.clone(), &image).is_ok_and(|value| value != Value::Int(0))
    }

    /// The same, with what is wrong in words.
    ///
    /// # Errors
    /// It does not hold, with the elements that it read, or it has no value.
    pub fn judge(&self, base: u64, bytes: &[u8]) -> Result<(), String> {
        let holds = &self.holds;
        let image = Image { plan: &self.plan, bytes: Some((base, bytes)), read: Some(RefCell::default()) };
        match holds.evaluate(&mut self.plan.frame.clone(), &image) {
            Ok(Value::Int(0)) => {
                let read = image.read.map(RefCell::into_inner).unwrap_or_default();
                let more = if read.len() > SHOWN { ", ..." } else { "" };
                let read = read[..read.len().min(SHOWN)].join(", ");
                Err(format!("`{}` does not hold: {read}{more}", holds.text()))
            }
            Ok(_) => Ok(()),
            Err(stop) => Err(holds.fault(stop).message),
        }
    }
}

/// The elements of an image, or of the initial contents; notes what was read of the image if asked to.
struct Image<'a> {
    plan: &'a Plan,
    bytes: Option<(u64, &'a [u8])>,
    read: Option<RefCell<Vec<String>>>,
}

impl Elements for Image<'_> {
    fn len(&self, buffer: u16) -> u64 {
        self.plan.buffers[usize::from(buffer)].len
    }

    fn element(&self, which: Which, element: Element) -> Result<u64, Miss> {
        let number = usize::from(element.buffer);
        let (form, allocation) = (&self.plan.manifest.buffers[number], &self.plan.buffers[number]);
        let field = &form.fields[usize::from(element.field)];
        let at = element.index * form.stride + field.offset;
        let found = match (which, self.bytes) {
            (Which::Current, Some((base, bytes))) => bytes.get((allocation.address + at - base) as usize..),
            _ => allocation.kept().map(|kept| &kept[at as usize..]),
        };
        match load(field.elem, found.unwrap_or(&[0; 8])) {
            Ok(value) => {
                if let (Which::Current, Some(read)) = (which, &self.read) {
                    let mut read = read.borrow_mut();
                    if read.len() <= SHOWN {
                        let field = if field.name.is_empty() { String::new() } else { format!(".{}", field.name) };
                        let told = format!("{}{field}[{}] = {value}", form.name, element.index);
                        if !read.contains(&told) {
                            read.push(told);
                        }
                    }
                }
                Ok(value.bits())
            }
            Err(large) => Err(Miss::Fault(Fault::TooLarge(large))),
        }
    }
}
