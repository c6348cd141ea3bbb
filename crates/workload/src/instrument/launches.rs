//! The launches of an instrumented plan: forms of kernels, the modules that hold them, and the steps around a
//! launch.
//!
//! ```text
//! kernel_undo:  log kernel a buffer; host: flag 1; launch; host: flag 2        CTA modes: launch, with more arguments
//! ```
//! Each form of a launch (its kernel, and which parameters hold which outputs) has one instrumented kernel.
//! The first forms of a file's kernels replace its module, so that plain kernels beside them stay; further
//! forms of a kernel go into further copies of the module, which share its variables.

use std::sync::Arc;

use super::apply::{Work, launches, pointers, rewritten};
use super::text;
use super::text::{Home, Job, copy_kernel, copy_kernel_name};
use crate::expr::{Expr, Value};
use crate::manifest::instrument::{Generated, Mode, Undo};
use crate::manifest::source::Programs;
use crate::manifest::steps::{Arg, HostStep, LaunchOrder, LaunchStep};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_kernel::ir::{Elem, Kernel};
use durawarp_kernel::ptx;
use durawarp_kernel::ptx::sites::Pointer;
use durawarp_persist::undo::{COMPLETE, IN_TX};

/// Threads of a CTA of the kernel that logs whole buffers.
const COPY_BLOCK: u64 = 256;

impl Work<'_> {
    /// The steps with instrumented launches; their modules replace the plain ones.
    pub(crate) fn instrumented(&mut self) -> Result<Vec<HostStep>, Diagnostics> {
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
            // A module has one kernel of a name: in each round one more form of each kernel gets a module.
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
                let made = ptx::parse_with_stack(&file, &text, programs.stack_bytes)?;
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
                reload: self.settings.reload,
                params,
                homes,
                outputs,
                frame: &self.plan.frame,
                threads: self.plan.manifest.names.threads(),
                element: self.plan.manifest.names.indices()[0],
                stem: &stem,
            })
            .collect();
        text::instrument(file, text, &jobs)
    }

    fn outputs(&self, form: &Form) -> Vec<(usize, &crate::manifest::instrument::Output)> {
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
    fn steps_of(
        &self,
        launch: &LaunchStep,
        forms: &[Form],
        programs: &Programs,
        copies: Option<usize>,
    ) -> Vec<HostStep> {
        let mut step = launch.clone();
        let Some(form) = self.form(launch, &[]) else {
            return vec![HostStep::Launch(Box::new(step))];
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
        let flag = |value: u32, ends: bool| HostStep::Flag { buffer: self.flag, value, ends };
        let mut steps = Vec::new();
        // A whole log before the flag: recovery rolls back from the log as soon as the flag is set.
        if let Some(copies) = copies {
            for (home, log) in &form.undo.buffers {
                steps.extend(log.and_then(|log| self.copy_step(launch, programs, copies, (*home, log))));
            }
            steps.push(flag(IN_TX, false));
        }
        steps.push(HostStep::Launch(Box::new(step)));
        if copies.is_some() {
            steps.push(flag(COMPLETE, true));
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
    ) -> Option<HostStep> {
        let bytes = self.plan.buffers[home].bytes;
        let word = if bytes.is_multiple_of(4) { 4 } else { 1 };
        let words = bytes / word;
        let number = |value: u64| Expr::constant(Value::Int(value as i64), &launch.place);
        let generated = [Generated::Home(home), Generated::Shift(home, log)].map(Arg::Generated);
        let mut args = generated.to_vec();
        args.push(Arg::Number { value: number(words), elem: Elem::U64 });
        Some(HostStep::Launch(Box::new(LaunchStep {
            place: launch.place.clone(),
            kernel: kernel(programs, module, &copy_kernel_name(word as u32))?,
            module,
            grid: vec![number(words.div_ceil(COPY_BLOCK))],
            block: vec![number(COPY_BLOCK)],
            // A kernel of its own, which asks for nothing.
            shared: None,
            regs: None,
            carveout_percent: None,
            cluster: None,
            args,
            communicates: None,
            undo: None,
            order: LaunchOrder::default(),
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
