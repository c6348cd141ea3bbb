//! From a plan of plain launches to one with logs, flags and, where the scheme keeps undo logs, instrumented launches.
//!
//! ```text
//! base plan ─ which launch changes which output ─ logs allocated ─ walk: flags counted, allocated ─ loop logs ─┐
//!                                                        (logs) texts, modules, arguments, steps <─┘
//! ```
//! Buffers that are not declared are allocated behind everything else in persistent memory, in this order, so that all
//! others lie where they would without. Each form of a launch (its kernel, and which parameters hold outputs) has one
//! instrumented kernel; further forms of a kernel go into further copies of its module.

use std::sync::Arc;

use super::super::expr::{Expr, Value};
use super::super::host::{Host, Program};
use super::super::manifest::{Arg, Buffer, Field, Init, LaunchStep, LoopStep, Manifest, Role, Space, Step};
use super::super::resolve::{Allocation, Choice, Plan};
use super::super::schema::quoted;
use super::super::source::Programs;
use super::text::{self, Home, Job, copy_kernel, copy_kernel_name};
use super::{Generated, Instrument, Mode, Overrides, Settings, Undo, layout, read};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::kernel::host::{HostAction, HostProgram};
use crate::kernel::ir::{Elem, Kernel};
use crate::kernel::memory::{AddressMap, Medium};
use crate::kernel::ptx;
use crate::kernel::ptx::sites::Pointer;

/// Threads of a CTA of the kernel that logs whole buffers.
const COPY_BLOCK: u64 = 256;
/// Elements of all threads up to which the layout is computed, and checked, before the run.
const CHECKED_ELEMENTS: u64 = 4 << 20;

/// Applies `choice` to a plan of plain launches.
///
/// # Errors
/// What stands in the way of the instrumentation, as far as it can be seen before the run.
pub(in crate::workload) fn apply(base: Arc<Plan>, choice: &Choice) -> Result<Arc<Plan>, Diagnostics> {
    let manifest = base.manifest.clone();
    let Some(instrument) = &manifest.instrument else {
        if choice.instrument != Overrides::default() {
            let message = format!("workload `{}` has no `[instrument]` to change", manifest.name);
            return Err(Diagnostic::nowhere("", message).into());
        }
        return Ok(base);
    };
    let over = choice.instrument;
    let mode = over.mode.unwrap_or(instrument.mode);
    let settings = Settings {
        mode,
        flag_barrier: over.flag_barrier.unwrap_or(instrument.flag_barrier),
        loop_log: over.loop_log.unwrap_or(instrument.loop_log),
        logs: choice.logs && mode != Mode::None,
    };
    let mut plan = owned(base)?;
    if mode == Mode::None {
        plan.settings = Some(settings);
        return Ok(Arc::new(plan));
    }
    let mut faults = Diagnostics::default();
    if mode != instrument.mode {
        faults.0.extend(read::check(instrument, mode, &manifest.buffers));
        faults.0.extend(read::converging(instrument, &manifest.steps));
        faults = faults.into_result(Diagnostics::default())?;
    }
    outputs_are_changed(instrument, &manifest)?;
    let (plan, count) = transactions(plan, instrument, mode)?;
    let mut work = Work { instrument, settings, plan, faults, logs: Vec::new(), loops: Vec::new(), flag: 0 };
    work.allocate_logs();
    work.allocate_flags(count);
    work.allocate_loop_logs();
    work.sound()?;
    work.plan.settings = Some(settings);
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
struct Work<'a> {
    instrument: &'a Instrument,
    settings: Settings,
    plan: Plan,
    faults: Diagnostics,
    /// Buffers that change and their logs, each once.
    logs: Vec<(usize, Option<usize>)>,
    /// Buffers that change and their loop logs.
    loops: Vec<(usize, usize)>,
    flag: usize,
}

/// The launch steps in `steps`, loops' too.
fn launches<'s>(steps: &'s [Step], out: &mut Vec<&'s LaunchStep>) {
    for step in steps {
        match step {
            Step::Launch(launch) => out.push(launch),
            Step::Loop(inner) => {
                launches(&inner.before, out);
                launches(&inner.body, out);
            }
            _ => {}
        }
    }
}

/// Offsets in the parameter block and the buffers whose addresses are there.
fn pointers(launch: &LaunchStep) -> Vec<(u32, usize)> {
    fn of(arg: &Arg, at: u32, out: &mut Vec<(u32, usize)>) {
        match arg {
            Arg::Address { to } => out.push((at, to.buffer)),
            Arg::Struct(parts) => parts.iter().for_each(|(offset, part)| of(part, at + offset, out)),
            Arg::Number { .. } | Arg::Generated(_) => {}
        }
    }
    let mut out = Vec::new();
    for (arg, param) in launch.args.iter().zip(&launch.kernel.params) {
        of(arg, param.offset, &mut out);
    }
    out
}

/// The same steps with each launch replaced by what `each` makes of it.
fn rewritten(steps: &[Step], each: &mut dyn FnMut(&LaunchStep) -> Vec<Step>) -> Vec<Step> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Launch(launch) => out.extend(each(launch)),
            Step::Loop(inner) => {
                let (before, body) = (rewritten(&inner.before, each), rewritten(&inner.body, each));
                let (place, kind) = (inner.place.clone(), inner.kind.clone());
                out.push(Step::Loop(Box::new(LoopStep { place, kind, before, body, slot: inner.slot })));
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
fn transactions(mut plan: Plan, instrument: &Instrument, mode: Mode) -> Result<(Plan, u64), Diagnostics> {
    let manifest = plan.manifest.clone();
    let steps = rewritten(&manifest.steps, &mut |launch| {
        let outputs = changed_by(instrument, launch);
        let undo = (!outputs.is_empty()).then(|| Arc::new(Undo { mode, outputs, buffers: Vec::new(), flag: 0 }));
        vec![Step::Launch(Box::new(LaunchStep { undo, ..launch.clone() }))]
    });
    let plain = std::mem::replace(&mut plan.program, Program::new(&steps));
    let plan = Arc::new(plan);
    let mut count = 0;
    let mut host = Host::new(plan.clone());
    loop {
        match host.next(None).map_err(|message| Diagnostic::nowhere("", message))? {
            HostAction::Launch(launch) => {
                let begun = host.begun();
                count += begun.map_or(0, |begun| if begun.undo.mode.by_cta() { launch.ctas() } else { 1 });
            }
            HostAction::Read { .. } => return Err(read::unknown_count(&instrument.place).into()),
            HostAction::Done => break,
            HostAction::Write { .. } | HostAction::Copy { .. } => {}
        }
    }
    drop(host);
    let mut plan = owned(plan)?;
    plan.program = plain;
    Ok((plan, count))
}

fn owned(plan: Arc<Plan>) -> Result<Plan, Diagnostics> {
    Arc::try_unwrap(plan).map_err(|_| Diagnostic::nowhere("", "internal: the plan is in use while it is made").into())
}

impl Work<'_> {
    fn sound(&mut self) -> Result<(), Diagnostics> {
        std::mem::take(&mut self.faults).into_result(())
    }

    fn manifest(&self) -> Arc<Manifest> {
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

    /// A declared log has room for every element.
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

    fn undo(&self, launch: &LaunchStep, flag: usize) -> Option<Arc<Undo>> {
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

    /// The steps with instrumented launches; their modules replace the plain ones.
    fn instrumented(&mut self) -> Result<Vec<Step>, Diagnostics> {
        let manifest = self.manifest();
        let mut all = Vec::new();
        launches(&manifest.steps, &mut all);
        let mut forms = Vec::new();
        for launch in all {
            forms.extend(self.form(launch, &forms));
        }
        let mut programs = (*self.plan.programs).clone();
        if self.settings.mode != Mode::Manual {
            self.modules(&mut programs, &mut forms)?;
        }
        let copies = match self.settings.mode {
            Mode::KernelUndo => Some(self.copy_module(&mut programs)?),
            _ => None,
        };
        let steps = rewritten(&manifest.steps, &mut |launch| self.steps_of(launch, &forms, &programs, copies));
        self.plan.programs = Arc::new(programs);
        Ok(steps)
    }

    /// What is done to the kernel of a launch, unless `known` has it.
    fn form(&self, launch: &LaunchStep, known: &[Form]) -> Option<Form> {
        let undo = self.undo(launch, self.flag)?;
        let number = |buffer: usize| undo.buffers.iter().position(|(home, _)| *home == buffer);
        let pointers = pointers(launch).into_iter().map(|(offset, buffer)| Pointer { offset, output: number(buffer) });
        let form = Form {
            module: launch.module,
            kernel: launch.kernel.name.clone(),
            pointers: pointers.collect(),
            undo,
            made: None,
        };
        (!known.iter().any(|other| other.same(&form))).then_some(form)
    }

    /// Makes the modules of all forms: the first form of each kernel in place, others in copies.
    fn modules(&mut self, programs: &mut Programs, forms: &mut [Form]) -> Result<(), Diagnostics> {
        for module in 0..programs.modules.len() {
            for round in 0.. {
                let numbers: Vec<usize> = (0..forms.len())
                    .filter(|number| {
                        let form = &forms[*number];
                        let earlier = forms[..*number].iter().filter(|other| other.kernel == form.kernel).count();
                        form.module == module && earlier == round
                    })
                    .collect();
                if numbers.is_empty() {
                    break;
                }
                let (file, text) = self.plan.programs.texts[module].clone();
                let text = self.text(&file, &text, numbers.iter().map(|number| &forms[*number]))?;
                let made = ptx::parse(&file, &text)?;
                let number = if round == 0 { module } else { programs.modules.len() };
                if round == 0 {
                    programs.modules[number] = made;
                    programs.texts[number] = (file, text);
                } else {
                    programs.modules.push(made);
                    programs.texts.push((file, text));
                    self.plan.globals.push(self.plan.globals[module].clone());
                    self.plan.const_banks.push(self.plan.const_banks[module].clone());
                }
                numbers.iter().for_each(|form| forms[*form].made = Some(number));
            }
        }
        Ok(())
    }

    fn text<'f>(&self, file: &str, text: &str, forms: impl Iterator<Item = &'f Form>) -> Result<String, Diagnostics> {
        let stem = text::stem(text);
        let parts: Vec<_> = forms.map(|form| (form, self.homes(form, &stem), self.params(form, &stem))).collect();
        let outputs: Vec<Vec<_>> = parts.iter().map(|(form, ..)| self.outputs(form)).collect();
        let jobs: Vec<Job<'_>> = parts
            .iter()
            .zip(&outputs)
            .map(|((form, homes, params), outputs)| Job {
                kernel: &form.kernel,
                pointers: &form.pointers,
                mode: self.settings.mode,
                barrier: self.settings.flag_barrier,
                params,
                homes,
                outputs,
                frame: &self.plan.frame,
                threads: self.plan.manifest.names.threads(),
                stem: &stem,
            })
            .collect();
        text::instrument(file, text, &jobs)
    }

    fn outputs(&self, form: &Form) -> Vec<(usize, &super::Output)> {
        let home = |buffer: usize| form.undo.buffers.iter().position(|(home, _)| *home == buffer);
        let outputs = form.undo.outputs.iter().map(|number| &self.instrument.outputs[*number]);
        outputs.filter_map(|output| Some((home(output.buffer)?, output))).collect()
    }

    fn homes(&self, form: &Form, stem: &str) -> Vec<Home> {
        let home = |(number, (buffer, _)): (usize, &(usize, Option<usize>))| {
            let shape = &self.plan.manifest.buffers[*buffer];
            let has_loop = self.loops.iter().any(|(home, _)| home == buffer);
            Home {
                name: shape.name.clone(),
                stride: shape.stride,
                align: shape.fields.iter().map(|field| u64::from(field.elem.bytes())).max().unwrap_or(1),
                home: format!("{stem}home{number}"),
                shift: format!("{stem}shift{number}"),
                loop_shift: has_loop.then(|| format!("{stem}loop{number}")),
            }
        };
        form.undo.buffers.iter().enumerate().map(home).collect()
    }

    /// The parameters that a form of a kernel has more than the plain one.
    fn params(&self, form: &Form, stem: &str) -> Vec<(String, Generated)> {
        let mut params = Vec::new();
        for (number, (home, log)) in form.undo.buffers.iter().enumerate() {
            if let (Mode::CtaUndo, Some(log)) = (self.settings.mode, log) {
                params.push((format!("{stem}home{number}"), Generated::Home(*home)));
                params.push((format!("{stem}shift{number}"), Generated::Shift(*home, *log)));
            }
            if let Some((_, area)) = self.loops.iter().find(|(of, _)| of == home) {
                params.push((format!("{stem}loop{number}"), Generated::Shift(*home, *area)));
            }
        }
        if self.settings.mode.by_cta() {
            params.push((format!("{stem}flag"), Generated::Flag(self.flag)));
        }
        params
    }

    /// The module of the kernels that log whole buffers.
    fn copy_module(&mut self, programs: &mut Programs) -> Result<usize, Diagnostics> {
        let (file, text) = ("generated:undo_log_copy.ptx".to_owned(), copy_kernel());
        programs.modules.push(ptx::parse(&file, &text)?);
        programs.texts.push((file, text));
        self.plan.globals.push(Vec::new());
        self.plan.const_banks.push(None);
        Ok(programs.modules.len() - 1)
    }

    /// What becomes of a launch.
    fn steps_of(&self, launch: &LaunchStep, forms: &[Form], programs: &Programs, copies: Option<usize>) -> Vec<Step> {
        let mut step = launch.clone();
        let Some(form) = self.form(launch, &[]) else {
            return vec![Step::Launch(Box::new(step))];
        };
        let made = forms.iter().find(|other| other.same(&form)).and_then(|form| form.made);
        if let Some(made) = made
            && let Some(kernel) = kernel(programs, made, &launch.kernel.name)
        {
            let stem = text::stem(&self.plan.programs.texts[launch.module].1);
            step.args.extend(self.params(&form, &stem).into_iter().map(|(_, generated)| Arg::Generated(generated)));
            (step.kernel, step.module) = (kernel, made);
        }
        step.undo = Some(form.undo.clone());
        let flag = |value: u32, ends: bool| Step::Flag { buffer: self.flag, value, ends };
        let mut steps = Vec::new();
        if let Some(copies) = copies {
            for (home, log) in &form.undo.buffers {
                steps.extend(log.and_then(|log| self.copy_step(launch, programs, copies, (*home, log))));
            }
            steps.push(flag(crate::persist::undo::IN_TX, false));
        }
        steps.push(Step::Launch(Box::new(step)));
        if copies.is_some() {
            steps.push(flag(crate::persist::undo::COMPLETE, true));
        }
        steps
    }

    /// A launch that logs all of a buffer.
    fn copy_step(
        &self,
        launch: &LaunchStep,
        programs: &Programs,
        module: usize,
        (home, log): (usize, usize),
    ) -> Option<Step> {
        let bytes = self.plan.buffers[home].bytes;
        let word = if bytes.is_multiple_of(4) { 4 } else { 1 };
        let words = bytes / word;
        let number = |value: u64| Expr::constant(Value::Int(value as i64), &launch.place);
        let generated = [Generated::Home(home), Generated::Shift(home, log)].map(Arg::Generated);
        let mut args = generated.to_vec();
        args.push(Arg::Number { value: number(words), elem: Elem::U64 });
        Some(Step::Launch(Box::new(LaunchStep {
            place: launch.place.clone(),
            kernel: kernel(programs, module, &copy_kernel_name(word as u32))?,
            module,
            grid: vec![number(words.div_ceil(COPY_BLOCK))],
            block: vec![number(COPY_BLOCK)],
            shared: None,
            regs: None,
            args,
            undo: None,
        })))
    }
}

/// A kernel with the parameters that hold outputs: what one instrumented text serves.
#[derive(Debug)]
struct Form {
    module: usize,
    kernel: String,
    pointers: Vec<Pointer>,
    undo: Arc<Undo>,
    /// The module that holds the instrumented kernel.
    made: Option<usize>,
}

impl Form {
    fn same(&self, other: &Form) -> bool {
        self.kernel == other.kernel && self.pointers == other.pointers && self.undo.buffers == other.undo.buffers
    }
}

fn kernel(programs: &Programs, module: usize, name: &str) -> Option<Arc<Kernel>> {
    programs.modules[module].kernels.iter().find(|kernel| kernel.name == name).cloned()
}
