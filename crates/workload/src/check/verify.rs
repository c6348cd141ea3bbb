//! The verdict on a final memory: every check of the manifest, inputs unchanged, expected figures.
//!
//! Compared are elements as numbers: `|got - expected| <= atol + rtol * |expected|`, where `expected` was
//! first rounded to the buffer's type. NaN equals NaN and nothing else; an infinity equals itself only.
//! Checks against the functional run compare bits, but for floats with a tolerance. What the functional run
//! cannot know is told ([`reasons`](super::reasons)).

use std::borrow::Cow;
use std::sync::Arc;

use super::elements::literal;
use super::reasons::{FloatOrder, MachineValues};
use super::verdict;
use super::verdict::{CheckResult, Evidence, Mismatch, Outcome, Verification};
use crate::data::argument::{Argument, IntegerBuffer};
use crate::data::{data_file, reference};
use crate::expr::{Element, Elements, EvalFault, Expr, Miss, Value, Which};
use crate::host::view::Bindings;
use crate::manifest::buffers::{Field, Role, Space};
use crate::manifest::checks::{Check, CheckKind, ReferenceArg};
use crate::manifest::element::{load, store};
use crate::plan::RunPlan;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::ir::Elem;
use durawarp_kernel::memory::FlatMemory;

/// Bytes of buffer `number` in `memory`, as its name is bound now; what it held before the run where `memory`
/// was made to forget it.
fn bytes_of<'m>(plan: &'m RunPlan, memory: &'m FlatMemory, bindings: &Bindings, number: usize) -> Cow<'m, [u8]> {
    let allocation = &plan.buffers[bindings.of(number)];
    match memory.slice(allocation.address, allocation.bytes as usize) {
        Some(bytes) => Cow::Borrowed(bytes),
        None => plan.buffers[number].initial(),
    }
}

/// Buffer `number` began as zeros, and nobody wrote to it: there is nothing to compare.
fn is_blank(plan: &RunPlan, memory: &FlatMemory, bindings: &Bindings, number: usize) -> bool {
    let began_blank = plan.buffers[number].kept().is_none();
    let address = plan.buffers[bindings.of(number)].address;
    // What is not there was forgotten, as it was what it had been.
    began_blank && (memory.is_blank(address) || !memory.is_there(address))
}

/// The buffers that some check compares with the functional run's.
fn compared(plan: &RunPlan) -> Vec<usize> {
    if plan.manifest.checks.is_empty() {
        return crate::manifest::buffers::determined(&plan.manifest.buffers);
    }
    let of_check = |check: &Check| match &check.kind {
        CheckKind::Functional { buffers } => buffers.clone(),
        _ => Vec::new(),
    };
    plan.manifest.checks.iter().flat_map(of_check).collect()
}

/// Frees what no check needs of a reference run's memory: buffers that are not compared, or are as they were.
pub(crate) fn forget_unneeded(plan: &RunPlan, memory: &mut FlatMemory, bindings: &Bindings) {
    let changed = |number: &usize| {
        !is_blank(plan, memory, bindings, *number)
            && !plan.buffers[*number].began_as(&bytes_of(plan, memory, bindings, *number))
    };
    let start = |address: u64| plan.addresses.below(address).map_or(address, |range| range.start);
    let addresses = compared(plan).into_iter().filter(changed);
    let needed = addresses.map(|number| start(plan.buffers[bindings.of(number)].address));
    let needed: Vec<u64> = needed.collect();
    memory.retain(|start| needed.contains(&start));
}

/// Compares a final memory with what it should be.
pub(crate) fn verify(plan: &RunPlan, memory: &FlatMemory, bindings: &Bindings, evidence: Evidence<'_>) -> Verification {
    let judge = Judge { plan, memory, bindings, evidence };
    let mut checks = Vec::new();
    checks.extend(judge.inputs_unchanged());
    checks.extend(plan.manifest.checks.iter().map(|check| judge.check(check)));
    if plan.manifest.checks.is_empty() {
        let buffers = crate::manifest::buffers::determined(&plan.manifest.buffers);
        let mut tally = CheckTally::new("functional");
        judge.functional(&buffers, Tolerance::NONE, &mut tally);
        checks.push(tally.result);
    }
    Verification { checks, expectations: verdict::expectations(plan, evidence.metrics) }
}

/// A check against the functional run failed.
pub(crate) fn differs_from_functional(plan: &RunPlan, verification: &Verification) -> bool {
    let failed = |result: &CheckResult| result.outcome == Outcome::Failed;
    let (checks, results) = (&plan.manifest.checks, &verification.checks);
    if checks.is_empty() {
        return results.last().is_some_and(failed);
    }
    // Results are in the order of the manifest; that of the inputs is before them.
    let of_checks = checks.iter().zip(&results[results.len() - checks.len()..]);
    of_checks.into_iter().any(|(check, result)| matches!(check.kind, CheckKind::Functional { .. }) && failed(result))
}

/// A check's result in the making.
struct CheckTally {
    result: CheckResult,
}

impl CheckTally {
    fn new(name: &str) -> Self {
        let (name, outcome) = (name.to_owned(), Outcome::Passed);
        CheckTally { result: CheckResult { name, outcome, compared: 0, mismatches: 0, first: None, message: None } }
    }

    fn differs(&mut self, mismatch: impl FnOnce() -> Mismatch) {
        self.result.outcome = Outcome::Failed;
        self.result.mismatches += 1;
        if self.result.first.is_none() {
            self.result.first = Some(mismatch());
        }
    }

    /// Adds a sentence that may explain a failure.
    fn explains(&mut self, reason: Option<String>) {
        if let Some(reason) = reason {
            let before = self.result.message.take().map_or_else(String::new, |message| format!("{message}; "));
            self.result.message = Some(before + &reason);
        }
    }

    fn ends(&mut self, outcome: Outcome, message: impl Into<String>) {
        self.result.outcome = outcome;
        self.result.message = Some(message.into());
    }
}

/// How far a float may lie from what it should be.
#[derive(Debug, Clone, Copy)]
struct Tolerance {
    rtol: f64,
    atol: f64,
}

impl Tolerance {
    const NONE: Tolerance = Tolerance { rtol: 0.0, atol: 0.0 };

    /// A float that differs in its bits is near enough.
    fn takes(self, got: f64, expected: f64) -> bool {
        let Tolerance { rtol, atol } = self;
        (rtol > 0.0 || atol > 0.0) && close(got, expected, rtol, atol)
    }
}

/// The elements of a buffer, and what they should be.
struct ElementBits<'a> {
    number: usize,
    got: &'a [u8],
    expected: &'a [u8],
}

struct Judge<'a> {
    plan: &'a RunPlan,
    memory: &'a FlatMemory,
    bindings: &'a Bindings,
    evidence: Evidence<'a>,
}

/// Elements of buffers at the end of a run, and before it.
struct Contents<'a>(&'a Judge<'a>);

impl Elements for Contents<'_> {
    fn len(&self, buffer: u16) -> u64 {
        self.0.plan.buffers[self.0.bindings.of(usize::from(buffer))].len
    }

    fn element(&self, which: Which, element: Element) -> Result<u64, Miss> {
        let number = usize::from(element.buffer);
        let form = &self.0.plan.manifest.buffers[number];
        let field = &form.fields[usize::from(element.field)];
        let bytes = match which {
            Which::Current if form.space != Space::Const => Some(self.0.bytes(number)),
            _ => self.0.plan.buffers[number].kept().map(|bytes| bytes.as_slice()),
        };
        let at = (element.index * form.stride + field.offset) as usize;
        match load(field.elem, bytes.map_or(&[0; 8], |bytes| &bytes[at..])) {
            Ok(value) => Ok(value.bits()),
            Err(large) => Err(Miss::Fault(EvalFault::TooLarge(large))),
        }
    }
}

impl<'a> Judge<'a> {
    fn bytes(&self, number: usize) -> &'a [u8] {
        let allocation = &self.plan.buffers[self.bindings.of(number)];
        let bytes = self.memory.slice(allocation.address, allocation.bytes as usize);
        bytes.expect("the memory of a run has every buffer of its workload")
    }

    /// Buffers with the role `input` hold what they held before.
    fn inputs_unchanged(&self) -> Option<CheckResult> {
        let manifest = &self.plan.manifest;
        let is_input =
            |n: &usize| manifest.buffers[*n].role == Role::Input && manifest.buffers[*n].space != Space::Const;
        let inputs: Vec<usize> = (0..manifest.buffers.len()).filter(is_input).collect();
        if inputs.is_empty() {
            return None;
        }
        let mut tally = CheckTally::new("inputs unchanged");
        for number in inputs {
            match is_blank(self.plan, self.memory, self.bindings, number) {
                true => tally.result.compared += self.plan.buffers[number].len,
                false => self.same_bits(number, self.bytes(number), &self.plan.buffers[number].initial(), &mut tally),
            }
        }
        Some(tally.result)
    }

    fn check(&self, check: &Check) -> CheckResult {
        let mut tally = CheckTally::new(&check.name);
        if let Err(fault) = self.run(check, &mut tally) {
            tally.ends(Outcome::Failed, fault.to_string());
        }
        // Of other kinds the order of additions explains floats alone.
        let of_floats = match check.kind {
            CheckKind::Expr { buffer, field, .. } | CheckKind::File { buffer, field, .. } => {
                is_float(self.plan.manifest.buffers[buffer].fields[field].elem)
            }
            _ => false,
        };
        if of_floats && tally.result.mismatches > 0 {
            let order = FloatOrder::of(self.plan.program.kernels());
            tally.explains(order.map(|order| order.told()));
        }
        tally.result
    }

    fn run(&self, check: &Check, tally: &mut CheckTally) -> Result<(), Diagnostic> {
        match &check.kind {
            CheckKind::Expr { buffer, field, expr } => self.against_expr(check, *buffer, *field, expr, tally),
            CheckKind::Functional { buffers } => {
                self.functional(buffers, Tolerance { rtol: check.rtol, atol: check.atol }, tally);
                Ok(())
            }
            CheckKind::Invariant(expr) => {
                // An invariant is one comparison, which fails as a whole.
                let mut frame = self.plan.frame.clone();
                let value = expr.evaluate(&mut frame, &Contents(self)).map_err(|stop| expr.fault(stop))?;
                tally.result.compared = 1;
                if value == Value::Int(0) {
                    tally.result.mismatches = 1;
                    tally.ends(Outcome::Failed, format!("`{}` does not hold", expr.text()));
                }
                Ok(())
            }
            // A file of expected values is read only when its check runs.
            CheckKind::File { buffer, field, file, place } => {
                let elem = self.plan.manifest.buffers[*buffer].fields[*field].elem;
                let content = self.plan.folder.read(file).map_err(|error| place.fault(error))?;
                let data =
                    data_file::elements(content, elem).map_err(|error| place.fault(format!("`{file}`: {error}")))?;
                let expected = data.chunks_exact(elem.bytes() as usize).map(|bytes| load(elem, bytes));
                self.against(check, *buffer, *field, expected, tally)
            }
            CheckKind::Reference { buffer, field, name, args } => {
                let values = self.reference(name, args).map_err(|error| check.place.fault(error))?;
                let expected = values.into_iter().map(|value| Ok(Value::Int(value)));
                self.against(check, *buffer, *field, expected, tally)
            }
        }
    }

    /// Every element, or `sample` of them evenly spread, the first and the last included.
    fn against_expr(
        &self,
        check: &Check,
        buffer: usize,
        field: usize,
        expr: &Expr,
        tally: &mut CheckTally,
    ) -> Result<(), Diagnostic> {
        let len = self.plan.buffers[self.bindings.of(buffer)].len;
        let sample = match &check.sample {
            None => len,
            Some(sample) => match self.plan.value(sample)? {
                Value::Int(count @ 1..) => (count as u64).min(len),
                found => {
                    return Err(sample.place().fault(format!("`sample` must be positive, found {found}")));
                }
            },
        };
        let mut frame = self.plan.frame.clone();
        let idx = self.plan.manifest.names.indices()[0];
        let (form, bytes) = (&self.plan.manifest.buffers[buffer], self.bytes(buffer));
        let contents = Contents(self);
        // From two elements on, the first and the last are among them. The product of two lengths may not fit
        // 64 bits.
        let nth = |number: u64| match sample {
            1 => 0,
            _ => (u128::from(number) * u128::from(len - 1) / u128::from(sample - 1)) as u64,
        };
        // Hours of work are told at once.
        expr.bound_terms(&mut frame, &contents, sample, |frame, number| frame[idx] = nth(number))
            .map_err(|fault| fault.with_help("`sample` has fewer elements compared"))?;
        for number in 0..sample {
            let index = nth(number);
            frame[idx] = index;
            let expected = expr.evaluate(&mut frame, &contents).map_err(|stop| {
                let mut fault = expr.fault(stop);
                fault.message = format!("element {index}: {}", fault.message);
                fault
            })?;
            let got = &bytes[(index * form.stride + form.fields[field].offset) as usize..];
            self.element(check, buffer, field, index, got, Ok(expected), tally);
        }
        Ok(())
    }

    fn against(
        &self,
        check: &Check,
        buffer: usize,
        field: usize,
        expected: impl ExactSizeIterator<Item = Result<Value, u64>>,
        tally: &mut CheckTally,
    ) -> Result<(), Diagnostic> {
        let (form, bytes) = (&self.plan.manifest.buffers[buffer], self.bytes(buffer));
        let len = bytes.len() as u64 / form.stride;
        if expected.len() as u64 != len {
            let message = format!("{} elements are expected, buffer `{}` has {len}", expected.len(), form.name);
            return Err(check.place.fault(message));
        }
        for (index, expected) in (0..).zip(expected) {
            let got = &bytes[(index * form.stride + form.fields[field].offset) as usize..];
            self.element(check, buffer, field, index, got, expected, tally);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one element with everything that judges it")]
    fn element(
        &self,
        check: &Check,
        buffer: usize,
        field: usize,
        index: u64,
        got: &[u8],
        expected: Result<Value, u64>,
        tally: &mut CheckTally,
    ) {
        let form = &self.plan.manifest.buffers[buffer];
        let field = &form.fields[field];
        tally.result.compared += 1;
        let found = load(field.elem, got);
        // An `Err` is a `u64` that no value can hold: such elements are compared by their bits.
        let same = match (found, expected) {
            (Ok(got), Ok(expected)) => near(field.elem, got, expected, check.rtol, check.atol),
            (Err(got), Err(expected)) => got == expected,
            _ => false,
        };
        if !same {
            let literal = |value| literal(field.elem, value);
            tally.differs(|| Mismatch {
                buffer: full_name(&form.name, field),
                index,
                got: literal(found),
                expected: literal(expected.map(|value| rounded(field.elem, value).unwrap_or(value))),
            });
        }
    }

    fn functional(&self, buffers: &[usize], tolerance: Tolerance, tally: &mut CheckTally) {
        let Some(run) = self.evidence.functional else {
            tally.ends(Outcome::Skipped, "there is no functional run to compare with");
            return;
        };
        // Elements that differ between two functional runs of different machines are nobody's fault.
        let (mut unknown, mut largest) = (0, 0f64);
        for number in buffers {
            // Zeros of both sides are not even read: they may be gigabytes.
            let blank = |memory, bindings| is_blank(self.plan, memory, bindings, *number);
            if blank(self.memory, self.bindings) && blank(run.memory(), run.bindings()) {
                tally.result.compared += self.plan.buffers[self.bindings.of(*number)].len;
                continue;
            }
            let expected = bytes_of(self.plan, run.memory(), run.bindings(), *number);
            let other =
                self.evidence.other_machine.map(|run| bytes_of(self.plan, run.memory(), run.bindings(), *number));
            let elements = ElementBits { number: *number, got: self.bytes(*number), expected: &expected };
            unknown += self.same(elements, other.as_deref(), tolerance, &mut largest, tally);
        }
        if tally.result.mismatches == 0 && unknown == 0 {
            return;
        }
        // Nothing wrong, and something that was not judged, is no failure.
        let values = MachineValues::of(self.plan.program.kernels());
        match tally.result.mismatches {
            0 => {
                let told = values.map_or_else(String::new, |values| values.told_of(unknown, tally.result.compared));
                tally.ends(Outcome::Skipped, told);
            }
            _ => {
                let order = FloatOrder::of(self.plan.program.kernels());
                tally.explains(order.map(|order| order.told_within(largest)));
                tally.explains(values.map(|values| values.told(unknown)));
            }
        }
    }

    fn same_bits(&self, number: usize, got: &[u8], expected: &[u8], tally: &mut CheckTally) {
        self.same(ElementBits { number, got, expected }, None, Tolerance::NONE, &mut 0.0, tally);
    }

    /// Compares the elements of a buffer, and gives the number of those that cannot be judged, as they differ
    /// from machine to machine. `largest` becomes the largest difference of floats, relative to the value.
    fn same(
        &self,
        elements: ElementBits<'_>,
        other: Option<&[u8]>,
        tolerance: Tolerance,
        largest: &mut f64,
        tally: &mut CheckTally,
    ) -> u64 {
        let ElementBits { number, got, expected } = elements;
        let form = &self.plan.manifest.buffers[number];
        let stride = form.stride as usize;
        tally.result.compared += (got.len() / stride) as u64;
        if got == expected {
            return 0;
        }
        let mut unknown = 0;
        for (index, (got, expected)) in (0..).zip(got.chunks_exact(stride).zip(expected.chunks_exact(stride))) {
            if got == expected {
                continue;
            }
            let bytes = |field: &Field| field.offset as usize..field.offset as usize + field.elem.bytes() as usize;
            // Of fields that differ the first one is told that no tolerance takes.
            let mut differs = None;
            for field in form.fields.iter().filter(|field| got[bytes(field)] != expected[bytes(field)]) {
                if is_float(field.elem) {
                    let [is, should] = [got, expected].map(|of| load(field.elem, &of[bytes(field)]).map(Value::as_f64));
                    let (is, should) = (is.unwrap_or(f64::NAN), should.unwrap_or(f64::NAN));
                    if tolerance.takes(is, should) {
                        continue;
                    }
                    let relative = (is - should).abs() / should.abs();
                    *largest = if relative.is_finite() { largest.max(relative) } else { *largest };
                }
                differs = differs.or(Some(field));
            }
            // Without such a field what differs lies between fields, unless all of it is near enough.
            let padding = || {
                let in_a_field = |at: &usize| form.fields.iter().any(|field| bytes(field).contains(at));
                (0..stride).filter(|at| !in_a_field(at)).any(|at| got[at] != expected[at])
            };
            if differs.is_none() && !padding() {
                continue;
            }
            // One that another machine has otherwise, too, says nothing about this one.
            let at = index as usize * stride;
            if other.is_some_and(|other| other[at..at + stride] != *expected) {
                unknown += 1;
                continue;
            }
            let field = differs.unwrap_or(&form.fields[0]);
            tally.differs(|| Mismatch {
                buffer: full_name(&form.name, field),
                index,
                got: shown_bits(field.elem, &got[bytes(field)], &expected[bytes(field)]),
                expected: shown_bits(field.elem, &expected[bytes(field)], &got[bytes(field)]),
            });
        }
        unknown
    }

    fn reference(&self, name: &str, args: &[ReferenceArg]) -> Result<Vec<i64>, String> {
        let found = reference::ALL.iter().find(|reference| reference.name == name);
        let found = found.ok_or_else(|| format!("there is no reference `{name}`"))?;
        let mut values = Vec::new();
        for arg in args {
            values.push(match arg {
                ReferenceArg::Number(expr) => match self.plan.value(expr).map_err(|fault| fault.to_string())? {
                    Value::Int(value) => Argument::Integer(value),
                    Value::Float(value) => return Err(format!("{value} is not an integer")),
                },
                ReferenceArg::Buffer(number) => {
                    let elem = self.plan.manifest.buffers[*number].fields[0].elem;
                    Argument::Integers(IntegerBuffer::new(elem, self.plan.buffers[*number].initial()))
                }
            });
        }
        (found.run)(&values)
    }
}

fn full_name(buffer: &str, field: &Field) -> String {
    if field.name.is_empty() { buffer.to_owned() } else { format!("{buffer}.{}", field.name) }
}

/// `value` as its type holds it.
fn rounded(elem: Elem, value: Value) -> Option<Value> {
    let mut bytes = [0; 8];
    store(elem, value, &mut bytes).ok()?;
    load(elem, &bytes).ok()
}

/// Whether an element of type `elem` is near enough to what it should be.
fn near(elem: Elem, got: Value, expected: Value, rtol: f64, atol: f64) -> bool {
    // What the type cannot hold can never be right.
    let Some(expected) = rounded(elem, expected) else {
        return false;
    };
    if let (Value::Int(got), Value::Int(expected)) = (got, expected)
        && rtol == 0.0
        && atol == 0.0
    {
        return got == expected;
    }
    close(got.as_f64(), expected.as_f64(), rtol, atol)
}

fn is_float(elem: Elem) -> bool {
    matches!(elem, Elem::F32 | Elem::F64)
}

/// Whether a number is near enough to what it should be.
fn close(got: f64, expected: f64, rtol: f64, atol: f64) -> bool {
    if got.is_nan() || expected.is_nan() {
        return got.is_nan() && expected.is_nan();
    }
    if got.is_infinite() || expected.is_infinite() {
        return got == expected;
    }
    (got - expected).abs() <= atol + rtol * expected.abs()
}

/// A number, with its bits where the number alone looks like `other`'s.
fn shown_bits(elem: Elem, bytes: &[u8], other: &[u8]) -> String {
    let number = |bytes: &[u8]| literal(elem, load(elem, bytes));
    let text = number(bytes);
    if text != number(other) {
        return text;
    }
    let bits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("{text} (0x{bits})")
}

/// The content of the buffer called `name`, as its name is bound at the end of a run.
///
/// # Errors
/// There is no such buffer, or it lies in the constant bank.
pub(crate) fn dump(
    plan: &Arc<RunPlan>,
    name: &str,
    memory: &FlatMemory,
    bindings: &Bindings,
) -> Result<Vec<u8>, Diagnostic> {
    let literal = format!("--dump {name}");
    let Some(number) = plan.manifest.buffers.iter().position(|buffer| buffer.name == name) else {
        let fault = Diagnostic::nowhere(&literal, format!("workload `{}` has no buffer `{name}`", plan.manifest.name));
        return Err(fault.with_nearest_or(name, plan.manifest.names.buffer_names(), || None));
    };
    let bytes: Cow<'_, [u8]> = match plan.manifest.buffers[number].space {
        Space::Const => plan.buffers[number].initial(),
        _ => bytes_of(plan, memory, bindings, number),
    };
    Ok(bytes.into_owned())
}
