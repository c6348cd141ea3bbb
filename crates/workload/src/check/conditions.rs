//! Conditions on images after power failures: a manifest's `[[crash]]`, like `verify`'s `invariant` but on an
//! image.
//!
//! A condition is an expression over buffers in persistent memory, judged on every image of a crash test:
//! after recovery, or as it survived. For a scheme, a domain and a kind of instrumentation it *must hold*, or
//! *must be violated* by some image (a test of the tests, and of the models), or says nothing.
//!
//! Invariant: only persistent memory is read; an element outside its buffer is found before anything runs, as
//! far as its index does not depend on elements.

use std::sync::Arc;

use super::elements::{Named, WrongElement, literal};
use crate::expr::{Element, Elements, EvalFault, Expr, Miss, Reason, Value, Which};
use crate::manifest::checks::{CrashForm, Setting};
use crate::manifest::element::load;
use crate::manifest::instrument::FlagBarrier;
use crate::plan::RunPlan;
use durawarp_base::diagnostic::Diagnostics;

/// Values that a violation reports, at most.
const SHOWN: usize = 4;

impl Setting {
    fn has(&self, scheme: &str, domain: &str, barrier: Option<FlagBarrier>) -> bool {
        self.schemes.as_ref().is_none_or(|all| all.iter().any(|(name, _)| name == scheme))
            && self.domains.as_ref().is_none_or(|all| all.iter().any(|name| name == domain))
            && self.flag_barrier.is_none_or(|wanted| barrier == Some(wanted))
    }
}

/// Every condition has a value at the start: what it names exists.
pub(crate) fn check(plan: &RunPlan, faults: &mut Diagnostics) {
    for form in &plan.manifest.conditions {
        let image = Image { plan, bytes: None };
        if let Err(stop) = form.holds.evaluate(&mut plan.frame.clone(), &image) {
            faults.push(form.holds.fault(stop));
        }
    }
}

/// Unknown names of schemes, each once a place.
pub(crate) fn check_schemes(plan: &RunPlan, known: &[&str]) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    for form in &plan.manifest.conditions {
        let settings = std::iter::once(&form.binding).chain(&form.violated_by);
        for (name, place) in settings.filter_map(|setting| setting.schemes.as_ref()).flatten() {
            if !known.contains(&name.as_str()) {
                let fault = place.fault(format!("there is no scheme `{name}`"));
                let all = || Some(format!("there are {}", known.join(", ")));
                faults.push(fault.with_nearest_or(name, known.iter().copied(), all));
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
    Nothing,
}

/// A condition on what a power failure leaves.
#[derive(Debug, Clone)]
pub struct CrashCondition {
    plan: Arc<RunPlan>,
    number: usize,
    /// Its expression, for this plan alone.
    holds: Expr,
}

impl CrashCondition {
    pub(crate) fn new(plan: &Arc<RunPlan>, number: usize) -> CrashCondition {
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

    /// Whether it is judged on the image that survived, not on the one after recovery.
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

    /// Whether it holds on the bytes of persistent memory from address `base` on; without a value it does
    /// not.
    pub fn holds(&self, base: u64, bytes: &[u8]) -> bool {
        let image = Image { plan: &self.plan, bytes: Some((base, bytes)) };
        self.holds.evaluate(&mut self.plan.frame.clone(), &image).is_ok_and(|value| value != Value::Int(0))
    }

    /// The same, with what is wrong.
    ///
    /// # Errors
    /// It does not hold, or it has no value.
    pub fn judge(&self, base: u64, bytes: &[u8]) -> Result<(), Violation> {
        let image = Image { plan: &self.plan, bytes: Some((base, bytes)) };
        let mut frame = self.plan.frame.clone();
        match self.holds.evaluate(&mut frame, &image) {
            Ok(Value::Int(0)) => {
                let mut reasons = self.holds.reasons(&mut frame, &image, SHOWN + 1);
                let more = reasons.len() > SHOWN;
                reasons.truncate(SHOWN);
                let elements = reasons.into_iter().map(|reason| image.wrong_element(reason)).collect();
                Err(Violation { fault: None, elements, more })
            }
            Ok(_) => Ok(()),
            Err(stop) => {
                Err(Violation { fault: Some(self.holds.fault(stop).message), elements: Vec::new(), more: false })
            }
        }
    }
}

/// Why a condition does not hold on an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Why it has no value; none where its value is 0.
    pub fault: Option<String>,
    /// The values that decide it, each by itself.
    pub elements: Vec<WrongElement>,
    /// There are more of them.
    pub more: bool,
}

/// The elements of an image, or of the initial contents.
struct Image<'a> {
    plan: &'a RunPlan,
    bytes: Option<(u64, &'a [u8])>,
}

impl Image<'_> {
    /// The bytes of the buffer from an element on.
    fn bytes_of(&self, which: Which, element: Element) -> &[u8] {
        let number = usize::from(element.buffer);
        let address = Named::new(self.plan, element).address();
        let allocation = &self.plan.buffers[number];
        let found = match (which, self.bytes) {
            (Which::Current, Some((base, bytes))) => bytes.get((address - base) as usize..),
            _ => allocation.kept().map(|kept| &kept[(address - allocation.address) as usize..]),
        };
        found.unwrap_or(&[0; 8])
    }

    /// "flag[0] (u32) = 1".
    fn with_value(&self, element: Element) -> String {
        let named = Named::new(self.plan, element);
        let value = load(named.elem(), self.bytes_of(Which::Current, element));
        format!("{} ({}) = {}", named.name(), named.ty(), literal(named.elem(), value))
    }

    /// A reason in words.
    fn wrong_element(&self, reason: Reason) -> WrongElement {
        let named = reason.element.map(|element| Named::new(self.plan, element));
        let value = |value: Value| match &named {
            Some(named) => literal(named.elem(), Ok(value)),
            None => value.to_string(),
        };
        let of = match (reason.than_element, &reason.than_text) {
            (Some(element), _) => format!(", as {}", Named::new(self.plan, element).name()),
            (None, Some(text)) => format!(" (`{text}`)"),
            (None, None) => String::new(),
        };
        let bytes = reason.element.zip(named.as_ref()).map(|(element, named)| {
            let bytes = self.bytes_of(Which::Current, element);
            (named.address(), bytes[..named.elem().bytes() as usize].to_vec())
        });
        WrongElement {
            found: value(reason.found),
            expected: format!("{}{}{of}", reason.relation, value(reason.than)),
            given: reason.given.iter().map(|&element| self.with_value(element)).collect(),
            ty: named.as_ref().map(Named::ty),
            name: named.map_or_else(|| format!("`{}`", reason.text), |named| named.name()),
            bytes,
        }
    }
}

impl Elements for Image<'_> {
    fn len(&self, buffer: u16) -> u64 {
        self.plan.buffers[usize::from(buffer)].len
    }

    fn element(&self, which: Which, element: Element) -> Result<u64, Miss> {
        let elem = Named::new(self.plan, element).elem();
        load(elem, self.bytes_of(which, element))
            .map(Value::bits)
            .map_err(|large| Miss::Fault(EvalFault::TooLarge(large)))
    }
}
