//! The host program's view: its variables, the allocation of each name, and its reads for the current
//! operation.
//!
//! Invariant: a value that needs an element which was not read yet interrupts its operation, which is
//! repeated when the element is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::expr::{Element, Elements, EvalFault, Expr, Miss, Stop, Value, Which};
use crate::manifest::buffers::BufferStart;
use crate::manifest::element::load;
use crate::manifest::steps::ReduceStep;
use crate::plan::RunPlan;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::Place;
use durawarp_kernel::reduction::{Fold, Reduction};

/// Which memory each buffer's name stands for now: `swap` exchanges two. Cheap to clone; all clones see the
/// swaps.
#[derive(Debug, Clone, Default)]
pub struct Bindings(Arc<[AtomicUsize]>);

impl Bindings {
    fn new(buffers: usize) -> Self {
        Bindings((0..buffers).map(AtomicUsize::new).collect())
    }

    /// The number of the allocation that buffer `number` stands for.
    pub(crate) fn of(&self, number: usize) -> usize {
        self.0[number].load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, bindings: &[u64]) {
        self.0.iter().zip(bindings).for_each(|(to, &binding)| to.store(binding as usize, Ordering::Release));
    }

    pub(crate) fn swap(&self, a: usize, b: usize) {
        let (to_a, to_b) = (self.of(a), self.of(b));
        self.0[a].store(to_b, Ordering::Release);
        self.0[b].store(to_a, Ordering::Release);
    }
}

/// Why an operation cannot be done now.
pub(crate) enum Interrupt {
    /// An element must be read first.
    Read(Element),
    /// Elements must be reduced first.
    Reduce(Box<Reduction>),
    /// Never.
    Fault(Box<Diagnostic>),
}

impl From<Diagnostic> for Interrupt {
    fn from(fault: Diagnostic) -> Self {
        Interrupt::Fault(Box::new(fault))
    }
}

/// Elements read from the device for the operation at hand.
#[derive(Debug, Default)]
struct Reads(Vec<(Element, Result<u64, u64>)>);

struct Device<'a> {
    plan: &'a RunPlan,
    bindings: &'a Bindings,
    reads: &'a Reads,
}

impl Elements for Device<'_> {
    fn len(&self, buffer: u16) -> u64 {
        self.plan.buffers[self.bindings.of(usize::from(buffer))].len
    }

    fn element(&self, _which: Which, element: Element) -> Result<u64, Miss> {
        match self.reads.0.iter().find(|(read, _)| *read == element) {
            Some((_, Ok(bits))) => Ok(*bits),
            Some((_, Err(large))) => Err(Miss::Fault(EvalFault::TooLarge(*large))),
            None => Err(Miss::Pending),
        }
    }
}

/// What expressions of the host program see: variables, bindings, and what was read from the device.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) plan: Arc<RunPlan>,
    pub(crate) bindings: Bindings,
    pub(crate) frame: Vec<u64>,
    /// Flags of transactions that are over: the number of the next one.
    pub(crate) flags: u64,
    reads: Reads,
    /// What a reduction came to, for the operation at hand.
    pub(crate) reduced: Option<u64>,
}

impl View {
    pub(crate) fn new(plan: Arc<RunPlan>) -> Self {
        let (bindings, frame) = (Bindings::new(plan.buffers.len()), plan.frame.clone());
        View { plan, bindings, frame, flags: 0, reads: Reads::default(), reduced: None }
    }

    /// The device has returned an element.
    pub(crate) fn answer(&mut self, element: Element, raw: u64) {
        let buffer = &self.plan.manifest.buffers[usize::from(element.buffer)];
        let elem = buffer.fields[usize::from(element.field)].elem;
        self.reads.0.push((element, load(elem, &raw.to_le_bytes()).map(Value::bits)));
    }

    /// The operation at hand is done: what it has read is forgotten.
    pub(crate) fn forget_answers(&mut self) {
        self.reads.0.clear();
        self.reduced = None;
    }

    pub(crate) fn value(&mut self, expr: &Expr) -> Result<Value, Interrupt> {
        let device = Device { plan: &self.plan, bindings: &self.bindings, reads: &self.reads };
        expr.evaluate(&mut self.frame, &device).map_err(|stop| match stop {
            Stop::Pending(element) => Interrupt::Read(element),
            Stop::Fault(..) => expr.fault(stop).into(),
        })
    }

    pub(crate) fn integer(&mut self, expr: &Expr, what: &str) -> Result<i64, Interrupt> {
        match self.value(expr)? {
            Value::Int(value) => Ok(value),
            Value::Float(_) => Err(expr.not_an_integer(what).into()),
        }
    }

    /// The first element of a span, which must exist (or be the one past the end, for an address).
    pub(crate) fn index(&mut self, span: &BufferStart) -> Result<u64, Interrupt> {
        let Some(expr) = &span.index else { return Ok(0) };
        let index = self.integer(expr, "an index")?;
        let len = self.plan.buffers[self.bindings.of(span.buffer)].len;
        match u64::try_from(index) {
            Ok(index) if index <= len => Ok(index),
            _ => {
                let name = &self.plan.manifest.buffers[span.buffer].name;
                Err(expr.place().fault(format!("index {index} is outside the {len} elements of `{name}`")).into())
            }
        }
    }

    /// Address of an element of a buffer.
    pub(crate) fn address(&self, buffer: usize, index: u64) -> u64 {
        let allocation = &self.plan.buffers[self.bindings.of(buffer)];
        allocation.address + index * self.plan.manifest.buffers[buffer].stride
    }

    /// `count` elements, or all from `index` on; they must exist.
    pub(crate) fn count(
        &mut self,
        expr: Option<&Expr>,
        buffer: usize,
        index: u64,
        place: &Place,
    ) -> Result<u64, Interrupt> {
        let rest = self.plan.buffers[self.bindings.of(buffer)].len - index;
        let Some(expr) = expr else { return Ok(rest) };
        let count = self.integer(expr, "`count`")?;
        match u64::try_from(count) {
            Ok(count) if count <= rest => Ok(count),
            _ => {
                let name = &self.plan.manifest.buffers[buffer].name;
                Err(place.fault(format!("{count} elements from element {index} do not fit buffer `{name}`")).into())
            }
        }
    }

    /// The reduction that a step asks for.
    pub(crate) fn reduction(&mut self, step: &ReduceStep) -> Result<Reduction, Interrupt> {
        let ReduceStep { place, from, field, count, fold, .. } = step;
        let first = self.index(from)?;
        let count = self.count(count.as_ref(), from.buffer, first, place)?;
        let form = &self.plan.manifest.buffers[from.buffer];
        if count == 0 && *fold != Fold::Sum {
            return Err(place.fault(format!("there is no element of `{}` to choose from", form.name)).into());
        }
        let field = &form.fields[*field];
        Ok(Reduction {
            fold: *fold,
            elem: field.elem,
            address: self.address(from.buffer, first) + field.offset,
            stride: form.stride,
            count,
            first,
            too_large: place
                .fault(format!("the result over `{}` does not fit a signed 64-bit integer", form.name))
                .to_string(),
        })
    }
}
