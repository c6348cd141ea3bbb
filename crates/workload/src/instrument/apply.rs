//! From a plan of plain launches to one with logs, flags and, where the scheme keeps undo logs, instrumented
//! launches.
//!
//! ```text
//! base plan ─ which launch changes which output ─ logs allocated ─ walk: flags counted, allocated ─ loop logs ─┐
//!                                                        (logs) texts, modules, arguments, steps <─┘
//! ```
//! Buffers that are not declared are allocated after everything else in persistent memory, in this order, so
//! that all others lie where they would without. `launches` makes the kernels and the steps.

use std::sync::Arc;

use super::layout;
use crate::expr::Expr;
use crate::host::WorkloadHost;
use crate::manifest::Manifest;
use crate::manifest::buffers::{Buffer, Field, Init, Role, Space};
use crate::manifest::instrument::{Instrument, Mode, Overrides, Settings, Undo};
use crate::manifest::steps::{Arg, HostStep, LaunchStep, LoopStep};
use crate::plan::RunPlan;
use crate::plan::allocation::Allocation;
use crate::plan::program::Program;
use crate::read::instrument as reading;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::quoted;
use durawarp_kernel::host::{HostAction, HostProgram};
use durawarp_kernel::ir::Elem;
use durawarp_kernel::memory::{AddressMap, Medium};

/// Elements of all threads up to which the layout is computed, and checked, before the run.
const CHECKED_ELEMENTS: u64 = 4 << 20;

/// Applies the manifest's `[instrument]`, but for what is chosen otherwise, to a plan of plain launches.
///
/// # Errors
/// What stands in the way of the instrumentation, as far as it can be seen before the run.
pub(crate) fn apply(base: Arc<RunPlan>, over: Overrides) -> Result<Arc<RunPlan>, Diagnostics> {
    let manifest = base.manifest.clone();
    let Some(instrument) = &manifest.instrument else {
        if over != Overrides::default() {
            let message = format!("workload `{}` has no `[instrument]` to change", manifest.name);
            return Err(Diagnostic::nowhere("", message).into());
        }
        return Ok(base);
    };
    let mode = over.mode.unwrap_or(instrument.mode);
    let settings = Settings {
        mode,
        flag_barrier: over.flag_barrier.unwrap_or(instrument.flag_barrier),
        loop_log: over.loop_log.unwrap_or(instrument.loop_log),
        reload: over.reload.unwrap_or(instrument.reload),
        logs: base.demands.undo_logs && mode != Mode::None,
    };
    let mut plan = owned(base)?;
    // The settings are kept for the result file, though nothing is done.
    if mode == Mode::None {
        plan.settings = Some(settings);
        return Ok(Arc::new(plan));
    }
    let mut faults = Diagnostics::default();
    // The manifest's own mode was checked when it was read; another one has demands of its own.
    if mode != instrument.mode {
        faults.0.extend(reading::check(instrument, mode, &manifest.buffers));
        faults.0.extend(reading::converging(instrument, &manifest.steps));
        faults = faults.into_result(Diagnostics::default())?;
    }
    outputs_are_changed(instrument, &manifest)?;
    let (plan, count) = transactions(plan, instrument, mode)?;
    let mut work = Work { instrument, settings, plan, faults, logs: Vec::new(), loops: Vec::new(), flag: 0 };
    // The order of allocation is fixed, so that a workload's addresses do not depend on the scheme.
    work.allocate_logs();
    work.allocate_flags(count);
    work.allocate_loop_logs();
    work.sound()?;
    work.plan.settings = Some(settings);
    // Without logs the buffers are there and the kernels stay plain: the same addresses under every scheme.
    if !settings.logs {
        return Ok(Arc::new(work.plan));
    }
    let steps = work.instrumented()?;
    work.plan.program = Program::new(&steps);
    let plan = Arc::new(work.plan);
    if let Some(log) = layout::compute(&plan, CHECKED_ELEMENTS).map_err(|fault| Diagnostics::from(*fault))? {
        plan.undo.get_or_init(|| Ok(Arc::new(log)));
    }
    Ok(plan)
}

/// An instrumented plan in the making.
pub(crate) struct Work<'a> {
    pub(crate) instrument: &'a Instrument,
    pub(crate) settings: Settings,
    pub(crate) plan: RunPlan,
    faults: Diagnostics,
    /// Buffers that change and their logs, each once.
    logs: Vec<(usize, Option<usize>)>,
    /// Buffers that change and their loop logs.
    pub(crate) loops: Vec<(usize, usize)>,
    pub(crate) flag: usize,
}

/// The launch steps in `steps`, loops' too.
pub(crate) fn launches<'s>(steps: &'s [HostStep], out: &mut Vec<&'s LaunchStep>) {
    for step in steps {
        match step {
            HostStep::Launch(launch) => out.push(launch),
            HostStep::Loop(inner) => {
                launches(&inner.before, out);
                launches(&inner.body, out);
            }
            _ => {}
        }
    }
}

/// Offsets in the parameter block and the buffers whose addresses are there.
pub(crate) fn pointers(launch: &LaunchStep) -> Vec<(u32, usize)> {
    fn of(arg: &Arg, at: u32, out: &mut Vec<(u32, usize)>) {
        match arg {
            Arg::Address { to, .. } => out.push((at, to.buffer)),
            Arg::Struct(parts) => parts.iter().for_each(|(offset, part)| of(part, at + offset, out)),
            Arg::Number { .. } | Arg::Generated(_) | Arg::Texture(_) | Arg::Tensor(_) => {}
        }
    }
    let mut out = Vec::new();
    for (arg, param) in launch.args.iter().zip(&launch.kernel.params) {
        of(arg, param.offset, &mut out);
    }
    out
}

/// The same steps with each launch replaced by what `each` makes of it.
pub(crate) fn rewritten(steps: &[HostStep], each: &mut dyn FnMut(&LaunchStep) -> Vec<HostStep>) -> Vec<HostStep> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            HostStep::Launch(launch) => out.extend(each(launch)),
            HostStep::Loop(inner) => {
                let (before, body) = (rewritten(&inner.before, each), rewritten(&inner.body, each));
                let (place, kind) = (inner.place.clone(), inner.kind.clone());
                out.push(HostStep::Loop(Box::new(LoopStep { place, kind, before, body, slot: inner.slot })));
            }
            other => out.push(other.clone()),
        }
    }
    out
}

/// Every output is given to the kernel that changes it, and says which one that is.
fn outputs_are_changed(instrument: &Instrument, manifest: &Manifest) -> Result<(), Diagnostics> {
    let mut all = Vec::new();
    launches(&manifest.steps, &mut all);
    let mut faults = Diagnostics::default();
    for output in &instrument.outputs {
        let name = &manifest.buffers[output.buffer].name;
        let taken = |launch: &LaunchStep| pointers(launch).iter().any(|(_, buffer)| *buffer == output.buffer);
        let taking = all.iter().filter(|launch| taken(launch));
        let mut kernels: Vec<&str> = taking.map(|launch| launch.kernel.name.as_str()).collect();
        kernels.sort_unstable();
        kernels.dedup();
        let message = match (&output.kernel, &kernels[..]) {
            (Some(kernel), found) if !found.contains(&kernel.as_str()) => {
                format!("no launch of kernel `{kernel}` is given `{name}`")
            }
            (None, []) => format!("no launch is given `{name}`"),
            (None, [_, _, ..]) => format!("several kernels are given `{name}`: say which `kernel` updates it"),
            _ => continue,
        };
        let fault = output.place.fault(message);
        faults.push(match kernels.is_empty() {
            true => fault,
            false => fault.with_help(format!("given to {}", quoted(&kernels))),
        });
    }
    faults.into_result(())
}

/// Numbers of the outputs that a launch changes.
fn changed_by(instrument: &Instrument, launch: &LaunchStep) -> Vec<usize> {
    let given = pointers(launch);
    let outputs = instrument.outputs.iter().enumerate().filter(|(_, output)| {
        let named = output.kernel.as_ref().is_none_or(|kernel| *kernel == launch.kernel.name);
        named && given.iter().any(|(_, buffer)| *buffer == output.buffer)
    });
    outputs.map(|(number, _)| number).collect()
}

/// Transactions of the whole host program, which is walked to count them.
fn transactions(mut plan: RunPlan, instrument: &Instrument, mode: Mode) -> Result<(RunPlan, u64), Diagnostics> {
    let manifest = plan.manifest.clone();
    let steps = rewritten(&manifest.steps, &mut |launch| {
        let outputs = changed_by(instrument, launch);
        let undo = (!outputs.is_empty()).then(|| Arc::new(Undo { mode, outputs, buffers: Vec::new(), flag: 0 }));
        vec![HostStep::Launch(Box::new(LaunchStep { undo, ..launch.clone() }))]
    });
    // The launches marked with their transactions stand in for the plain ones while the host program is
    // walked.
    let plain = std::mem::replace(&mut plan.program, Program::new(&steps));
    let plan = Arc::new(plan);
    let mut count = 0;
    let mut host = WorkloadHost::new(plan.clone());
    loop {
        match host.next(None).map_err(|message| Diagnostic::nowhere("", message))? {
            HostAction::Launch(launch) => {
                let begun = host.begun();
                count += begun.map_or(0, |begun| if begun.undo.mode.by_cta() { launch.ctas() } else { 1 });
            }
            HostAction::Read { .. } | HostAction::Reduce(_) => {
                return Err(reading::unknown_count(&instrument.place).into());
            }
            HostAction::Done => break,
            HostAction::Write { .. } | HostAction::Copy { .. } | HostAction::Warm(_) | HostAction::Sample(_) => {}
        }
    }
    drop(host);
    let mut plan = owned(plan)?;
    plan.program = plain;
    Ok((plan, count))
}

fn owned(plan: Arc<RunPlan>) -> Result<RunPlan, Diagnostics> {
    Arc::try_unwrap(plan).map_err(|_| Diagnostic::nowhere("", "internal: the plan is in use while it is made").into())
}

impl Work<'_> {
    fn sound(&mut self) -> Result<(), Diagnostics> {
        std::mem::take(&mut self.faults).into_result(())
    }

    pub(crate) fn manifest(&self) -> Arc<Manifest> {
        self.plan.manifest.clone()
    }

    /// Appends a buffer in persistent memory.
    fn append(&mut self, name: String, role: Role, of: Option<usize>, elem: (Elem, u64), len: u64) -> usize {
        let (place, field) =
            (self.instrument.place.clone(), Field { name: String::new(), elem: elem.0, offset: 0, init: Init::Zero });
        let number = self.plan.buffers.len();
        let mut allocation = Allocation::zeros(len, elem.1);
        let addresses = Arc::make_mut(&mut self.plan.addresses);
        allocation.address = AddressMap::allocate(addresses, &name, allocation.bytes, Medium::Nvm);
        let buffer = Buffer {
            name,
            place,
            fields: vec![field],
            stride: elem.1,
            len: None,
            space: Space::Pm,
            role,
            of,
            symbol: None,
            texture: None,
            surface: None,
            guard: None,
            padding: None,
        };
        Arc::make_mut(&mut self.plan.manifest).buffers.push(buffer);
        self.plan.buffers.push(allocation);
        number
    }

    /// A buffer of the same elements as `of`.
    fn append_like(&mut self, of: usize, what: &str) -> usize {
        let form = &self.plan.manifest.buffers[of];
        let (name, elem) = (format!("{}.{what}", form.name), (form.fields[0].elem, form.stride));
        self.append(name, Role::UndoLog, Some(of), elem, self.plan.buffers[of].len)
    }

    fn allocate_logs(&mut self) {
        for output in &self.instrument.outputs {
            if self.logs.iter().any(|(home, _)| *home == output.buffer) {
                continue;
            }
            let log = match output.log {
                _ if !self.settings.mode.has_log() => None,
                Some(log) => {
                    self.holds(log, output.buffer);
                    Some(log)
                }
                None => Some(self.append_like(output.buffer, "log")),
            };
            self.logs.push((output.buffer, log));
        }
    }

    /// A declared log holds every element.
    fn holds(&mut self, log: usize, home: usize) {
        let (forms, buffers) = (&self.plan.manifest.buffers, &self.plan.buffers);
        let (found, wanted) = (buffers[log].bytes, buffers[home].bytes);
        if found < wanted {
            let place = forms[log].len.as_ref().map_or(&forms[log].place, Expr::place);
            let name = &forms[home].name;
            let message = format!("log `{}` has {found} bytes, `{name}` has {wanted}", forms[log].name);
            self.faults.push(
                place
                    .fault(message)
                    .with_help(format!("a log mirrors its buffer: `len(\"{name}\")` elements of the same type")),
            );
        }
    }

    /// One flag a transaction.
    fn allocate_flags(&mut self, count: u64) {
        self.flag = match self.instrument.flag {
            None => self.append("tx_flag".to_owned(), Role::TxFlag, None, (Elem::U32, 4), count),
            Some(flag) => {
                let (form, found) = (&self.plan.manifest.buffers[flag], self.plan.buffers[flag].len);
                if found < count {
                    let place = form.len.as_ref().map_or(&form.place, Expr::place);
                    let message = format!("`{}` has {found} flags, there are {count} transactions", form.name);
                    let help = "one a CTA and launch (`kernel_undo`: one a launch)";
                    self.faults.push(place.fault(message).with_help(help));
                }
                flag
            }
        };
    }

    pub(crate) fn undo(&self, launch: &LaunchStep, flag: usize) -> Option<Arc<Undo>> {
        let outputs = changed_by(self.instrument, launch);
        let changed = |home: &usize| outputs.iter().any(|output| self.instrument.outputs[*output].buffer == *home);
        let buffers: Vec<_> = self.logs.iter().copied().filter(|(home, _)| changed(home)).collect();
        (!outputs.is_empty()).then(|| Arc::new(Undo { mode: self.settings.mode, outputs, buffers, flag }))
    }

    fn allocate_loop_logs(&mut self) {
        if self.settings.loop_log && self.settings.mode != Mode::Manual {
            for (home, _) in self.logs.clone() {
                let area = self.append_like(home, "loop");
                self.loops.push((home, area));
            }
        }
    }
}
