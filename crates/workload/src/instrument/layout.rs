//! The addresses of every transaction's flag and log: the expressions of the kernels, evaluated for every
//! thread of every launch.
//!
//! Invariants: transactions are in the order of their launches, CTAs of a launch by number (x fastest); a
//! slot is listed once a transaction, in the order of threads; in CTA modes no element belongs to two CTAs of
//! a launch.
//!
//! A log mirrors its buffer, so the slot of an element is where it would be in the log. A kernel's own
//! transaction has whole buffers, in slots of up to a cache line.

use std::sync::Arc;

use crate::expr::Expr;
use crate::host::functional::{FunctionalError, When};
use crate::host::{Begun, WorkloadHost, functional};
use crate::manifest::instrument::{Mode, Output};
use crate::plan::RunPlan;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::functional::Limits;
use durawarp_kernel::host::{HostAction, HostProgram};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::FlatMemory;
use durawarp_persist::undo::{LogSlot, Transaction, UndoLog};

/// Bytes of a slot of a whole buffer, at most.
const SLOT_BYTES: u64 = 128;

/// Where transactions keep what they need, computed when it is first asked for.
pub(crate) fn undo(plan: &Arc<RunPlan>) -> Result<Option<Arc<UndoLog>>, Diagnostic> {
    if plan.settings.is_none_or(|settings| !settings.logs) {
        return Ok(None);
    }
    let computed = || match compute(plan, u64::MAX) {
        Ok(log) => Ok(Arc::new(log.unwrap_or_default())),
        Err(fault) => Err(fault),
    };
    plan.undo.get_or_init(computed).clone().map(Some).map_err(|fault| *fault)
}

/// The layout, unless more than `most` elements are to be looked at.
pub(crate) fn compute(plan: &Arc<RunPlan>, most: u64) -> Result<Option<UndoLog>, Box<Diagnostic>> {
    let mut layout =
        Layout { plan, left: most, transactions: Vec::new(), owners: vec![Vec::new(); plan.buffers.len()] };
    let mut host = WorkloadHost::new(plan.clone());
    let mut number = 0;
    loop {
        match host.next(None).map_err(|message| Box::new(Diagnostic::nowhere("", message)))? {
            HostAction::Launch(launch) => {
                if let Some(begun) = host.begun()
                    && !layout.launch(number, &launch, &begun)?
                {
                    return Ok(None);
                }
                number += 1;
            }
            HostAction::Done => return Ok(Some(UndoLog { transactions: layout.transactions })),
            // Nothing is read: `apply` has seen the whole program.
            HostAction::Read { .. }
            | HostAction::Reduce(_)
            | HostAction::Warm(_)
            | HostAction::Sample(_)
            | HostAction::Write { .. }
            | HostAction::Copy { .. } => {}
        }
    }
}

/// The bytes of a transaction's slots, one after the other: before its launch, and after.
pub type OldAndNew = (Vec<u8>, Vec<u8>);

struct Layout<'a> {
    plan: &'a RunPlan,
    left: u64,
    transactions: Vec<Transaction>,
    /// By buffer and element: the CTA of the launch at hand that has it, plus 1.
    owners: Vec<Vec<u32>>,
}

/// The number of `at` in a box of `size`, x fastest, and back.
fn unflat(number: u64, size: [u32; 3]) -> [u64; 3] {
    let [x, y] = [size[0], size[1]].map(u64::from);
    [number % x, number / x % y, number / x / y]
}

impl Layout<'_> {
    /// Adds the transactions of a launch; `false` if there were too many elements.
    fn launch(&mut self, number: u32, launch: &Launch, begun: &Begun) -> Result<bool, Box<Diagnostic>> {
        let undo = &begun.undo;
        // A kernel's own transaction has whole buffers: no expression is evaluated, no element has an owner.
        if undo.mode == Mode::KernelUndo {
            let mut slots = Vec::new();
            for ((home, _), (at, log)) in undo.buffers.iter().zip(&begun.buffers) {
                let bytes = self.plan.buffers[*home].bytes;
                self.left = self.left.saturating_sub(bytes / SLOT_BYTES);
                for from in (0..bytes).step_by(SLOT_BYTES as usize) {
                    let bytes = SLOT_BYTES.min(bytes - from) as u32;
                    slots.push(LogSlot { home: at + from, log: log + from, bytes });
                }
            }
            self.transactions.push(Transaction { launch: number, cta: None, flag: begun.flag, slots });
            return Ok(self.left > 0);
        }
        // Owners are of one launch. 0 is none, else it is the CTA's number plus 1.
        for (home, _) in &undo.buffers {
            let elements = self.plan.buffers[*home].len as usize;
            self.owners[*home].clear();
            self.owners[*home].resize(elements, 0);
        }
        let threads = launch.block.iter().map(|n| u64::from(*n)).product::<u64>();
        let mut frame = self.plan.frame.clone();
        let slots = self.plan.manifest.names.threads();
        frame.resize(slots.end, 0);
        let set = |frame: &mut [u64], first: usize, values: [u64; 3]| {
            frame[slots.start + first..slots.start + first + 3].copy_from_slice(&values);
        };
        set(&mut frame, 6, launch.block.map(u64::from));
        set(&mut frame, 9, launch.grid.map(u64::from));
        for cta in 0..launch.ctas() {
            set(&mut frame, 3, unflat(cta, launch.grid));
            let mut slots = Vec::new();
            // Without a log a CTA still has its flag.
            if undo.mode != Mode::IdempotentCta {
                for thread in 0..threads {
                    set(&mut frame, 0, unflat(thread, launch.block));
                    for output in &undo.outputs {
                        if !self.elements(*output, &mut frame, cta as u32, begun, &mut slots)? {
                            return Ok(false);
                        }
                    }
                }
            }
            let flag = begun.flag + 4 * cta;
            self.transactions.push(Transaction { launch: number, cta: Some(cta as u32), flag, slots });
        }
        Ok(true)
    }

    /// Adds the elements of one thread and output.
    fn elements(
        &mut self,
        output: usize,
        frame: &mut Vec<u64>,
        cta: u32,
        begun: &Begun,
        slots: &mut Vec<LogSlot>,
    ) -> Result<bool, Box<Diagnostic>> {
        let plan = self.plan;
        let Some(output) = plan.manifest.instrument.as_ref().and_then(|all| all.outputs.get(output)) else {
            return Ok(true);
        };
        let integer = |expr: &Expr, frame: &mut Vec<u64>| expr.integer(frame, "an index");
        let place = begun.undo.buffers.iter().position(|(home, _)| *home == output.buffer);
        let (Some(index), Some(place)) = (&output.index, place) else {
            return Ok(true);
        };
        let (home, log) = begun.buffers[place];
        let stride = plan.manifest.buffers[output.buffer].stride;
        let r = plan.manifest.names.threads().end - 1;
        let repeat = output.repeat.as_ref().map_or(Ok(1), |repeat| integer(repeat, frame))?;
        for number in 0..repeat {
            // The budget goes down even for elements that the guard leaves out: it bounds the work, not the
            // list.
            let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
            self.left = left;
            frame[r] = number as u64;
            if let Some(guard) = &output.guard
                && integer(guard, frame)? == 0
            {
                continue;
            }
            let element = integer(index, frame)?;
            let owners = &mut self.owners[output.buffer];
            let Some(owner) = usize::try_from(element).ok().and_then(|element| owners.get_mut(element)) else {
                return Err(outside(plan, output, index, element, frame));
            };
            // `owners` finds two CTAs at one element, which no order of rollbacks makes right.
            match std::mem::replace(owner, cta + 1) {
                0 => {
                    let slot = match &output.log_index {
                        None => element,
                        Some(log_index) => {
                            frame[plan.manifest.names.indices()[0]] = element as u64;
                            slot_of(plan, output, log_index, element, integer(log_index, frame)?)?
                        }
                    };
                    let [home, log] =
                        [(home, element), (log, slot)].map(|(area, number)| area + number as u64 * stride);
                    slots.push(LogSlot { home, log, bytes: stride as u32 });
                }
                // Threads of one CTA may share an element: both log the same value.
                other if other == cta + 1 => {}
                other => {
                    let name = &plan.manifest.buffers[output.buffer].name;
                    let message = format!(
                        "CTAs {} and {cta} both update element {element} of `{name}`: rolling one back would undo the \
                         other's work",
                        other - 1
                    );
                    let fault = index.place().fault(message).with_help("`mode = \"kernel_undo\"` logs whole buffers");
                    return Err(Box::new(fault));
                }
            }
        }
        Ok(true)
    }
}

/// The slot of an element, which must be one of the log.
fn slot_of(plan: &RunPlan, output: &Output, log_index: &Expr, element: i64, slot: i64) -> Result<i64, Box<Diagnostic>> {
    let len = plan.buffers[output.buffer].len;
    if (0..len as i64).contains(&slot) {
        return Ok(slot);
    }
    let name = &plan.manifest.buffers[output.buffer].name;
    let message = format!("element {element} of `{name}` is logged in element {slot} of its log, which has {len}");
    Err(Box::new(log_index.place().fault(message)))
}

fn outside(plan: &RunPlan, output: &Output, index: &Expr, element: i64, frame: &[u64]) -> Box<Diagnostic> {
    let first = plan.manifest.names.threads().start;
    let shown = |at: usize| format!("({}, {}, {})", frame[first + at], frame[first + at + 1], frame[first + at + 2]);
    let name = &plan.manifest.buffers[output.buffer].name;
    let len = plan.buffers[output.buffer].len;
    let message = format!(
        "thread {} of CTA {} updates element {element}, outside the {len} elements of `{name}`",
        shown(0),
        shown(3)
    );
    Box::new(index.place().fault(message).with_help("`guard` says which threads update one"))
}

/// The outputs before a launch, to see that it changes only what is logged.
struct Outputs<'a> {
    plan: &'a RunPlan,
    before: Vec<(usize, Vec<u8>)>,
}

impl Outputs<'_> {
    fn remember(&mut self, memory: &FlatMemory) -> Result<(), FunctionalError> {
        self.before.clear();
        let mut buffers: Vec<usize> = self.outputs().map(|output| output.buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        for number in buffers {
            let form = &self.plan.buffers[number];
            self.before.push((number, memory.read(form.address, form.bytes as usize)?.to_vec()));
        }
        Ok(())
    }

    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.plan.manifest.instrument.iter().flat_map(|instrument| &instrument.outputs)
    }

    /// Bytes outside of `logged` (sorted by address) that have changed are a fault of the manifest.
    fn compare(&self, launch: u32, logged: &[LogSlot], memory: &FlatMemory) -> Result<(), FunctionalError> {
        for (number, before) in &self.before {
            let address = self.plan.buffers[*number].address;
            let now = memory.read(address, before.len())?;
            let changed = (0..before.len()).filter(|at| before[*at] != now[*at]);
            for at in changed {
                let byte = address + at as u64;
                let slot = logged.partition_point(|slot| slot.home <= byte).checked_sub(1).map(|slot| logged[slot]);
                if slot.is_some_and(|slot| byte < slot.home + u64::from(slot.bytes)) {
                    continue;
                }
                let form = &self.plan.manifest.buffers[*number];
                let place = self.outputs().find(|output| output.buffer == *number).map(|output| &output.place);
                let message = format!(
                    "launch {launch} updates element {} of `{}`, which no thread logs",
                    at as u64 / form.stride,
                    form.name
                );
                let fault = place.map_or_else(|| Diagnostic::nowhere("", &message), |place| place.fault(&message));
                return Err(FunctionalError::Host(fault.to_string()));
            }
        }
        Ok(())
    }
}

/// Old and new bytes of every transaction. A launch that changes an output where no transaction logs it is a
/// fault.
pub(crate) fn expected(plan: &Arc<RunPlan>, limits: &Limits<'_>) -> Result<Vec<OldAndNew>, FunctionalError> {
    let undo = undo(plan).map_err(|fault| FunctionalError::Host(fault.to_string()))?.unwrap_or_default();
    let mut out: Vec<OldAndNew> = vec![Default::default(); undo.transactions.len()];
    let has_log = plan.settings.is_some_and(|settings| settings.mode.has_log());
    let mut outputs = Outputs { plan, before: Vec::new() };
    functional::run_observed(plan, limits, &mut |launch, when, memory| {
        let first = undo.transactions.partition_point(|transaction| transaction.launch < launch);
        let own = undo.transactions[first..].iter().take_while(|transaction| transaction.launch == launch);
        // The order of slots in a transaction stays; only the copy that finds what no slot covers is sorted.
        let mut logged: Vec<LogSlot> = own.flat_map(|transaction| transaction.slots.iter().copied()).collect();
        logged.sort_unstable_by_key(|slot| slot.home);
        match when {
            When::Before => outputs.remember(memory)?,
            When::After if has_log && !logged.is_empty() => outputs.compare(launch, &logged, memory)?,
            When::After => {}
        }
        for (transaction, (old, new)) in undo.transactions.iter().zip(&mut out).skip(first) {
            if transaction.launch != launch {
                break;
            }
            let bytes = if when == When::Before { &mut *old } else { &mut *new };
            for slot in &transaction.slots {
                bytes.extend_from_slice(memory.read(slot.home, slot.bytes as usize)?);
            }
        }
        Ok(())
    })?;
    Ok(out)
}
