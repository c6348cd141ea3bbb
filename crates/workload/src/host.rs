//! The host program as a state machine: it takes the result of its last read and returns its next action.
//!
//! Steps are laid out as a list of operations with jumps (`program`), so that the state is a position and one
//! counter a loop. An expression that reads the device is evaluated again after each read, with what was read
//! so far remembered; so reads happen in the order the expression asks for them, and only those on the path
//! it takes.
//!
//! Invariant: an operation changes state only when all of its expressions have values; until then it can be
//! repeated.

pub(crate) mod functional;
mod launch;
pub(crate) mod position;
pub(crate) mod recovery;
mod tensor;
pub(crate) mod view;

use std::sync::Arc;

use super::expr::{Element, Expr};
use super::plan::{ProgramPart, RunPlan};
use crate::manifest::element::store;
use crate::manifest::instrument::Undo;
use crate::manifest::steps::{LaunchOrder, LoopKind};
use crate::plan::program::{Loop, Operation};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_kernel::host::{GlobalRange, HostAction, HostProgram};
use durawarp_kernel::launch::Launch;
use position::Position;
use tensor::{map_address, tensor_map};
use view::{Bindings, Interrupt, View};

/// Launches that [`total_ctas`] and [`largest_cta`] follow before it gives up.
const MAX_COUNTED_LAUNCHES: u64 = 100_000;

/// A read that the device has not answered yet.
#[derive(Debug)]
enum PendingRead {
    Element(Element),
    Reduction,
}

/// The flags and logs of the transactions of a launch that begins now.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) undo: Arc<Undo>,
    /// Address of the first flag.
    pub(crate) flag: u64,
    /// Addresses of the buffers that change, and of their logs.
    pub(crate) buffers: Vec<(u64, u64)>,
}

/// The host program of a run.
#[derive(Debug)]
pub struct WorkloadHost {
    view: View,
    part: ProgramPart,
    /// Operations that it may still do.
    left: u64,
    at: usize,
    /// Iterations done and, for counted loops, to do.
    loops: Vec<(i64, i64)>,
    waiting: Option<PendingRead>,
    /// Launches so far, and of each event the launch that recorded it last.
    launched: u32,
    recorded: Vec<Option<u32>>,
    begun: Option<Begun>,
    /// Whether, and where it was before the operation that gave the last action.
    notes: bool,
    before: Position,
}

impl WorkloadHost {
    pub(crate) fn new(plan: Arc<RunPlan>) -> Self {
        WorkloadHost::for_part(plan, ProgramPart::Steps, u64::MAX)
    }

    /// One of the plan's programs, which ends with a fault after `most` operations.
    pub(crate) fn for_part(plan: Arc<RunPlan>, part: ProgramPart, most: u64) -> Self {
        let loops = vec![(0, 0); plan.part(part).loops.len()];
        let before = Position::default();
        let mut view = View::new(plan);
        let frame = view.plan.part(part).variables.last().map_or(0, |slot| slot + 1);
        view.frame.resize(view.frame.len().max(frame), 0);
        let (launched, recorded) = (0, Vec::new());
        let (waiting, begun, notes) = (None, None, false);
        WorkloadHost { view, part, left: most, at: 0, loops, waiting, launched, recorded, begun, notes, before }
    }

    /// Which memory each buffer's name stands for, now and later.
    pub fn bindings(&self) -> Bindings {
        self.view.bindings.clone()
    }

    /// Where it is.
    pub(crate) fn position(&self) -> Position {
        let (view, slots) = (&self.view, self.view.plan.manifest.names.extents());
        Position {
            at: self.at as u64,
            flags: view.flags,
            loops: self.loops.clone(),
            bindings: (0..view.plan.buffers.len()).map(|number| view.bindings.of(number) as u64).collect(),
            extents: std::array::from_fn(|i| view.frame[slots[i]]),
            variables: view.plan.part(self.part).variables.iter().map(|&slot| view.frame[slot]).collect(),
        }
    }

    /// From now on it notes where it was ([`WorkloadHost::before`]).
    pub(crate) fn note_positions(&mut self) {
        self.notes = true;
    }

    /// Where it was before the operation that gave the last action.
    pub(crate) fn before(&self) -> &Position {
        &self.before
    }

    /// Goes on at a position of a host program of the same plan.
    pub(crate) fn go_to(&mut self, position: &Position) {
        self.at = position.at as usize;
        self.view.flags = position.flags;
        self.loops.clone_from(&position.loops);
        let slots = self.view.plan.manifest.names.extents();
        slots.iter().zip(position.extents).for_each(|(&slot, extent)| self.view.frame[slot] = extent);
        let program = self.view.plan.clone();
        for (form, (done, _)) in program.part(self.part).loops.iter().zip(&self.loops) {
            self.view.frame.resize(self.view.frame.len().max(form.slot + 1), 0);
            self.view.frame[form.slot] = *done as u64;
        }
        for (&slot, &value) in program.part(self.part).variables.iter().zip(&position.variables) {
            self.view.frame[slot] = value;
        }
        self.view.bindings.set(&position.bindings);
    }

    /// The transactions of the launch that was asked for last, if it has any; once.
    pub(crate) fn begun(&mut self) -> Option<Begun> {
        self.begun.take()
    }

    /// Notes the transactions of a launch, whose flags are used now.
    fn begin(&mut self, undo: &Arc<Undo>, ctas: u64) {
        let address = |number: usize| self.view.address(number, 0);
        let flag = address(undo.flag) + 4 * self.view.flags;
        let buffers = undo.buffers.iter().map(|(home, log)| (address(*home), log.map_or(0, address))).collect();
        self.begun = Some(Begun { undo: undo.clone(), flag, buffers });
        // The host ends a kernel's own transaction when it is over.
        self.view.flags += undo.flags_at_launch(ctas);
    }

    /// The launches that the next one waits for, which records its event.
    fn ordered(&mut self, order: &LaunchOrder) -> Vec<u32> {
        let after = order.waits.iter().filter_map(|&event| *self.recorded.get(event)?).collect();
        if let Some(event) = order.records {
            self.recorded.resize(self.recorded.len().max(event + 1), None);
            self.recorded[event] = Some(self.launched);
        }
        self.launched += 1;
        after
    }

    /// Does the operation at hand; an action, or nothing that the device takes part in.
    fn operation(&mut self) -> Result<Option<HostAction>, Interrupt> {
        let plan = self.view.plan.clone();
        let program = plan.part(self.part);
        let Some(operation) = program.operations.get(self.at) else {
            return Ok(Some(HostAction::Done));
        };
        let mut next = self.at + 1;
        let action = match operation {
            Operation::Launch(step) => {
                // The launch is bound first: an interrupt in one of its expressions repeats the operation,
                // and its transaction must begin once only.
                let launch = self.view.launch(step)?;
                let launch = Arc::new(Launch { after: self.ordered(&step.order), ..launch });
                if let Some(undo) = &step.undo {
                    self.begin(undo, launch.ctas());
                }
                Some(HostAction::Launch(launch))
            }
            Operation::Copy { from, to, count, place } => {
                let (source, target) = (self.view.index(from)?, self.view.index(to)?);
                let count = self.view.count(count.as_ref(), from.buffer, source, place)?;
                let room = self.view.count(None, to.buffer, target, place)?;
                if count > room {
                    let name = &plan.manifest.buffers[to.buffer].name;
                    let message = format!("{count} elements from element {target} do not fit buffer `{name}`");
                    return Err(place.fault(message).into());
                }
                let bytes = count * plan.manifest.buffers[from.buffer].stride;
                let from = self.view.address(from.buffer, source);
                (bytes > 0).then(|| HostAction::Copy { from, to: self.view.address(to.buffer, target), bytes })
            }
            Operation::Fill { to, value, count, place } => {
                let first = self.view.index(to)?;
                let count = self.view.count(count.as_ref(), to.buffer, first, place)?;
                let number = self.view.value(value)?;
                let elem = plan.manifest.buffers[to.buffer].fields[0].elem;
                let mut bytes = [0; 8];
                store(elem, number, &mut bytes).map_err(|error| value.place().fault(error))?;
                let data = bytes[..elem.bytes() as usize].repeat(count as usize);
                let address = self.view.address(to.buffer, first);
                (count > 0).then_some(HostAction::Write { address, data })
            }
            Operation::Encode(step) => {
                let data = tensor_map(&mut self.view, &step.map)?.encode().to_vec();
                let address = map_address(&mut self.view, step, data.len() as u64)?;
                Some(HostAction::Write { address, data })
            }
            Operation::Swap(a, b) => {
                self.view.bindings.swap(*a, *b);
                None
            }
            Operation::Reduce(step) => {
                // The first time there is no result and the device is asked for one; repeated, the operation
                // finds it.
                self.view.frame[usize::from(step.slot)] = match self.view.reduced {
                    Some(bits) => bits,
                    None => return Err(Interrupt::Reduce(Box::new(self.view.reduction(step)?))),
                };
                None
            }
            Operation::Warm(buffers) => {
                let range = |&buffer: &usize| GlobalRange {
                    start: self.view.address(buffer, 0),
                    bytes: plan.buffers[self.view.bindings.of(buffer)].bytes,
                };
                Some(HostAction::Warm(buffers.iter().map(range).collect()))
            }
            Operation::Flag { buffer, value, ends } => {
                let address = self.view.address(*buffer, 0) + 4 * self.view.flags;
                self.view.flags += u64::from(*ends);
                Some(HostAction::Write { address, data: value.to_le_bytes().to_vec() })
            }
            Operation::Enter { number, exit } => {
                let form = &program.loops[*number];
                let count = match &form.kind {
                    LoopKind::Count(expr) => match self.view.integer(expr, "`count`")? {
                        count @ 0.. => count,
                        count => return Err(expr.place().fault(format!("`count` is negative: {count}")).into()),
                    },
                    // A `while` loop tests `max` only when it would go on.
                    LoopKind::Until { max, .. } | LoopKind::While { max, .. } => {
                        let count = self.view.integer(max, "`max`")?;
                        if count < 1 {
                            return Err(max.place().fault(format!("`max` must be positive, found {count}")).into());
                        }
                        count
                    }
                };
                // From here on nothing interrupts: the state of the loop may change.
                self.loops[*number] = (0, count);
                self.view.frame.resize(self.view.frame.len().max(form.slot + 1), 0);
                self.view.frame[form.slot] = 0;
                if count == 0 {
                    next = *exit;
                }
                None
            }
            Operation::Test { number, exit } => {
                let form = &program.loops[*number];
                // `until` loops are tested after their body, in `Next`.
                if let LoopKind::While { condition, .. } = &form.kind {
                    if self.view.integer(condition, "`while`")? == 0 {
                        next = *exit;
                    } else if self.loops[*number].0 >= self.loops[*number].1 {
                        return Err(not_converged(form, condition, self.loops[*number].1));
                    }
                }
                None
            }
            Operation::Next { number, start } => {
                let form = &program.loops[*number];
                let (done, limit) = self.loops[*number];
                let again = match &form.kind {
                    LoopKind::Count(_) => done + 1 < limit,
                    LoopKind::While { .. } => true,
                    // The condition has its value before the count of iterations changes: a read in it
                    // repeats the operation.
                    LoopKind::Until { condition, .. } => {
                        let again = self.view.integer(condition, "`until`")? == 0;
                        if again && done + 1 >= limit {
                            return Err(not_converged(form, condition, limit));
                        }
                        again
                    }
                };
                if again {
                    next = *start;
                    self.loops[*number].0 += 1;
                    self.view.frame[form.slot] = (done + 1) as u64;
                }
                None
            }
        };
        self.at = next;
        Ok(action)
    }
}

fn not_converged(form: &Loop, condition: &Expr, limit: i64) -> Interrupt {
    let message = format!("the loop did not converge: `{}` after {limit} iterations", condition.text());
    form.place.fault(message).with_help("`max` is the limit").into()
}

impl HostProgram for WorkloadHost {
    fn overlaps(&self) -> bool {
        self.view.plan.part(self.part).overlaps()
    }

    fn has_clusters(&self) -> bool {
        self.view.plan.part(self.part).has_clusters()
    }

    fn next(&mut self, read: Option<u64>) -> Result<HostAction, String> {
        if let Some(wanted) = self.waiting.take() {
            let raw = read.ok_or("the device did not return what the host program read")?;
            match wanted {
                PendingRead::Reduction => self.view.reduced = Some(raw),
                PendingRead::Element(element) => self.view.answer(element, raw),
            }
        }
        loop {
            self.left = self.left.checked_sub(1).ok_or("the host program does not come to an end")?;
            if self.notes {
                self.before = self.position();
            }
            match self.operation() {
                Ok(action) => {
                    // Answers are good for one operation only: memory may change before the next.
                    self.view.forget_answers();
                    if let Some(action) = action {
                        return Ok(action);
                    }
                }
                Err(Interrupt::Read(element)) => {
                    self.waiting = Some(PendingRead::Element(element));
                    let field = usize::from(element.field);
                    let field = &self.view.plan.manifest.buffers[usize::from(element.buffer)].fields[field];
                    let (offset, bytes) = (field.offset, field.elem.bytes());
                    let address = self.view.address(usize::from(element.buffer), element.index) + offset;
                    return Ok(HostAction::Read { address, bytes });
                }
                Err(Interrupt::Reduce(reduction)) => {
                    self.waiting = Some(PendingRead::Reduction);
                    return Ok(HostAction::Reduce(reduction));
                }
                Err(Interrupt::Fault(fault)) => return Err(fault.to_string()),
            }
        }
    }
}

/// Finds what is wrong with the steps as far as it can be seen before the run: launches and loops whose
/// expressions name no loop variable and read nothing from the device.
pub(crate) fn check_steps(plan: &Arc<RunPlan>, faults: &mut Diagnostics) {
    let mut view = View::new(plan.clone());
    for operation in plan.program.operations.iter().chain(&plan.recovery.operations) {
        match operation {
            Operation::Launch(step) => view.check_launch(step, faults),
            Operation::Swap(a, b) => {
                let [left, right] = [*a, *b].map(|number| (&plan.manifest.buffers[number], plan.buffers[number].len));
                if left.1 != right.1 {
                    let message = format!(
                        "`{}` ({} elements) and `{}` ({}) cannot be swapped",
                        left.0.name, left.1, right.0.name, right.1
                    );
                    faults.push(right.0.place.fault(message));
                }
            }
            _ => {}
        }
    }
}

/// CTAs of all launches, where that is known before the run.
pub(crate) fn total_ctas(plan: &Arc<RunPlan>) -> Option<u64> {
    over_launches(plan, |total, launch| total + launch.ctas())
}

/// Threads of the largest CTA of all launches, where that is known before the run.
pub(crate) fn largest_cta(plan: &Arc<RunPlan>) -> Option<u64> {
    let threads = |launch: &Launch| launch.block.iter().map(|&side| u64::from(side)).product();
    over_launches(plan, |most, launch| most.max(threads(launch)))
}

/// A number over all launches of the host program; none where a value of the run decides what is launched.
fn over_launches(plan: &Arc<RunPlan>, add: impl Fn(u64, &Launch) -> u64) -> Option<u64> {
    let mut host = WorkloadHost::new(plan.clone());
    let (mut number, mut launches) = (0, 0);
    loop {
        match host.next(None).ok()? {
            HostAction::Launch(launch) => {
                number = add(number, &launch);
                launches += 1;
                if launches > MAX_COUNTED_LAUNCHES {
                    return None;
                }
            }
            HostAction::Read { .. } | HostAction::Reduce(_) => return None,
            HostAction::Done => return Some(number),
            HostAction::Write { .. } | HostAction::Copy { .. } | HostAction::Warm(_) | HostAction::Sample(_) => {}
        }
    }
}
