//! A program of CPUs ready to run: every argument and size known, its executable read for its memory.

use std::collections::BTreeMap;

use super::manifest::{Argument, CheckForm, CpuManifest};
use crate::description::{Description, ProgramDescription};
use crate::expr::{Expr, Value};
use crate::manifest::instrument::Mode;
use crate::plan::Choice;
use crate::plan::params::Parameters;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Override, Place, Setting};
use durawarp_riscv::elf::{self, Executable};
use durawarp_riscv::memory::{MEMORY_MAX_BYTES, PM_MAX_BYTES, Windows};
use durawarp_riscv::process::{Process, Start};
use durawarp_riscv::syscalls::File;

/// Sizes where the manifest says none.
const MEMORY_MB: u64 = 64;
const STACK_KB: u64 = 1024;

/// A program of CPUs with its profile, parameters and seed.
#[derive(Debug, Clone)]
pub struct CpuProgram {
    /// What the workload is called.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    pub profile: String,
    /// Every parameter and its value.
    pub params: BTreeMap<String, Value>,
    /// The run's seed.
    pub seed: u64,
    /// The program.
    pub image: Executable,
    /// How it is started.
    pub start: Start,
    /// Threads that it runs at once, as its manifest says.
    pub threads: u32,
    /// Files that it may open.
    pub files: Vec<File>,
    /// What a run is judged by.
    pub checks: Vec<CpuCheck>,
    /// Arguments with which the same program recovers what a power failure left: exit code 0 then.
    pub recovery: Option<Vec<String>>,
    /// What it sets of clients and servers of its machine; none where it is a program of one.
    pub clients: Vec<Setting>,
    /// Where the manifest says how many threads there are.
    threads_place: Option<Place>,
    /// Bytes of the executable's file.
    elf: std::sync::Arc<Vec<u8>>,
}

/// A check of what a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuCheck {
    pub name: String,
    /// What it compares.
    pub kind: CpuCheckKind,
}

/// What a check compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuCheckKind {
    ExitCode(i32),
    /// Standard output is this, but for an end of line at its end and for lines that contain one of these
    /// texts.
    Stdout {
        text: String,
        except: Vec<String>,
    },
    /// Exit code, standard output, files, persistent memory and logs at other servers are those of the
    /// functional driver.
    Functional,
}

impl CpuProgram {
    /// The program that this choice makes of a manifest.
    ///
    /// # Errors
    /// Everything that is wrong with the choice, or with the manifest under it.
    pub(crate) fn new(manifest: &CpuManifest, choice: &Choice) -> Result<Self, Diagnostics> {
        let mut faults = Diagnostics::default();
        let CpuManifest { name, params, profiles, .. } = manifest;
        let profile = choice.profile.clone().unwrap_or_else(|| "default".to_owned());
        let values = Parameters { workload: name, params, profiles }.values(&profile, &choice.params, &mut faults);
        for (buffer, file) in &choice.inputs {
            let message = format!("workload `{name}` is a program of CPUs and has no buffers");
            faults.push(Diagnostic::nowhere(&format!("--input {buffer}={}", file.display()), message));
        }
        if choice.instrument.mode.is_some_and(|mode| mode != Mode::None) {
            let message = format!("workload `{name}` is a program of CPUs: it has no kernels to instrument");
            faults.push(Diagnostic::nowhere("--instrument", message));
        }
        // Wrong parameters would bring faults of everything that follows from them.
        faults = faults.into_result(Diagnostics::default())?;
        let mut making = Making::new(manifest, choice, &values, faults);
        let made = making.program(choice, profile, &values);
        if let Some(most) = choice.most_bytes.filter(|most| made.bytes() > *most) {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let (own, host) = (gib(made.bytes()), gib(most));
            let message = format!("its memory has {own:.1} GiB, and this host has {host:.1} GiB");
            making
                .faults
                .push(Diagnostic::nowhere(name, message).with_help("choose a smaller profile, or less memory"));
        }
        making.faults.into_result(())?;
        Ok(made)
    }

    /// What a manifest sets of the clients of its machine under a choice. What is wrong with the choice is
    /// told when the program is made.
    pub(crate) fn settings_of(manifest: &CpuManifest, choice: &Choice) -> Vec<Setting> {
        let CpuManifest { name, params, profiles, .. } = manifest;
        let mut faults = Diagnostics::default();
        let profile = choice.profile.as_deref().unwrap_or("default");
        let values = Parameters { workload: name, params, profiles }.values(profile, &choice.params, &mut faults);
        Making::new(manifest, choice, &values, faults).clients(choice)
    }

    /// What memory, registers and code are before the first instruction.
    ///
    /// # Errors
    /// None of a program that was resolved: that looked already.
    pub fn process(&self) -> Result<Process, Diagnostics> {
        Process::new(self.image.clone(), self.start.clone())
    }

    /// The same process, started to recover what a power failure left; `None` where the manifest says nothing
    /// of recovery.
    pub fn recovery_process(&self) -> Option<Result<Process, Diagnostics>> {
        let start = Start { args: self.recovery.clone()?, ..self.start.clone() };
        Some(Process::new(self.image.clone(), start))
    }

    /// It has at most as many threads as the machine has harts, where threads do not share harts for this
    /// reason.
    ///
    /// # Errors
    /// It has more.
    pub fn fits(&self, machine: &str, harts: u32, why: &str) -> Result<(), Diagnostics> {
        if self.threads <= harts {
            return Ok(());
        }
        let message = format!(
            "{} threads are more than the {harts} harts of machine `{machine}`, and threads do not share harts: {why}",
            self.threads
        );
        let fault = match &self.threads_place {
            Some(place) => place.fault(message),
            None => Diagnostic::nowhere(&self.name, message),
        };
        Err(fault.with_help("fewer threads, or --set core.count=N").into())
    }

    /// The program as it was resolved, for a result file.
    pub fn describe(&self) -> Description {
        let Windows { memory_bytes, pm_bytes } = self.start.windows;
        let (args, env) = (self.start.args.clone(), self.start.env.clone());
        Description {
            workload: self.name.clone(),
            profile: self.profile.clone(),
            seed: self.seed,
            params: self.params.clone(),
            buffers: Vec::new(),
            instrument: None,
            program: Some(ProgramDescription { args, env, threads: self.threads, memory_bytes, pm_bytes }),
            trace: None,
        }
    }

    /// Bytes of memory that it may touch: both windows.
    pub fn bytes(&self) -> u64 {
        self.start.windows.memory_bytes + self.start.windows.pm_bytes
    }

    /// A check needs the functional driver's run.
    pub fn needs_reference(&self) -> bool {
        self.checks.iter().any(|check| check.kind == CpuCheckKind::Functional)
    }

    /// Texts whose lines of standard output no check looks at: `except` of all its checks of `stdout`.
    #[must_use]
    pub fn lines_not_judged(&self) -> Vec<String> {
        let of = |check: &CpuCheck| match &check.kind {
            CpuCheckKind::Stdout { except, .. } => except.clone(),
            _ => Vec::new(),
        };
        self.checks.iter().flat_map(of).collect()
    }

    /// Everything that decides its runs and their verdicts, except machine and scheme: name and bytes of each
    /// part.
    pub fn fingerprint(&self, take: &mut dyn FnMut(&str, &[u8])) {
        // The file's bytes, not the image's: symbols are part of what a run may print.
        take("elf", &self.elf);
        take("name", self.start.name.as_bytes());
        take("profile", self.profile.as_bytes());
        self.start.args.iter().for_each(|arg| take("argument", arg.as_bytes()));
        self.start.env.iter().for_each(|variable| take("variable", variable.as_bytes()));
        let Windows { memory_bytes, pm_bytes } = self.start.windows;
        for (name, value) in [
            ("memory", memory_bytes),
            ("persistent", pm_bytes),
            ("stack", self.start.stack_bytes),
            ("seed", self.start.seed),
            ("threads", self.threads.into()),
        ] {
            take(name, &value.to_le_bytes());
        }
        for File { path, content } in &self.files {
            take("file", path.as_bytes());
            take("content", content);
        }
        for check in &self.checks {
            take("check", format!("{check:?}").as_bytes());
        }
        self.recovery.iter().flatten().for_each(|arg| take("recovery", arg.as_bytes()));
        self.start.stdin.iter().for_each(|path| take("stdin", path.as_bytes()));
        for (name, value) in &self.params {
            take("param", name.as_bytes());
            take("value", &value.bits().to_le_bytes());
        }
    }
}

struct Making<'a> {
    manifest: &'a CpuManifest,
    frame: Vec<u64>,
    altered: bool,
    faults: Diagnostics,
}

impl<'a> Making<'a> {
    fn new(manifest: &'a CpuManifest, choice: &Choice, values: &[Value], faults: Diagnostics) -> Self {
        let mut frame = vec![0; manifest.names.slots()];
        for (number, value) in values.iter().enumerate() {
            frame[manifest.names.param(number)] = value.bits();
        }
        let altered = !choice.params.is_empty() || !choice.args.is_empty();
        Making { manifest, frame, altered, faults }
    }

    fn program(&mut self, choice: &Choice, profile: String, values: &[Value]) -> CpuProgram {
        let manifest = self.manifest;
        let sizes = &manifest.sizes;
        const MB: u64 = 1 << 20;
        let memory_mb = self.size(sizes.memory_mb.as_ref(), "memory_mb", 1, MEMORY_MAX_BYTES / MB, MEMORY_MB);
        let pm_mb = self.size(sizes.pm_mb.as_ref(), "pm_mb", 0, PM_MAX_BYTES / MB, 0);
        let stack_kb = self.size(sizes.stack_kb.as_ref(), "stack_kb", 4, MEMORY_MAX_BYTES / 1024, STACK_KB);
        let threads = self.size(sizes.threads.as_ref(), "threads", 1, u64::from(u16::MAX), 1) as u32;
        // What the user adds comes last: of an option that is there twice most programs take the last.
        let mut args = self.arguments(&manifest.start.args);
        args.extend(choice.args.iter().cloned());
        let windows = Windows { memory_bytes: memory_mb * MB, pm_bytes: pm_mb * MB };
        let start = Start {
            name: manifest.name.clone(),
            args,
            env: self.environment(),
            windows,
            stack_bytes: stack_kb * 1024,
            seed: manifest.seed.wrapping_add(choice.seed),
            stdin: manifest.start.stdin.clone(),
        };
        let image = self.image(&start);
        let params = manifest.params.iter().map(|param| param.name.clone()).zip(values.iter().copied()).collect();
        let recovery = manifest.recovery.as_ref().map(|recovery| self.arguments(recovery));
        CpuProgram {
            name: manifest.name.clone(),
            description: manifest.description.clone(),
            params,
            seed: choice.seed,
            image,
            start,
            threads,
            files: manifest.start.files.clone(),
            checks: self.checks(&profile),
            recovery,
            clients: self.clients(choice),
            threads_place: sizes.threads.as_ref().map(|expr| expr.place().clone()),
            elf: manifest.elf.clone(),
            profile,
        }
    }

    fn keep<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|fault| self.faults.push(fault)).ok()
    }

    fn size(&mut self, expr: Option<&Expr>, key: &str, least: u64, most: u64, default: u64) -> u64 {
        let Some(expr) = expr else { return default };
        let value = expr.integer(&mut self.frame, &format!("`{key}`"));
        match self.keep(value).map(u64::try_from) {
            Some(Ok(value)) if (least..=most).contains(&value) => value,
            None => default,
            Some(_) => {
                let found = expr.value(&mut self.frame).map_or_else(|_| String::new(), |value| value.to_string());
                let message = format!("`{key}` must be {least} to {most}, found {found}");
                // The manifest of an executable alone is none that the user wrote.
                self.faults.push(match &self.manifest.elf_place {
                    Some(_) => expr.place().fault(message),
                    None => Diagnostic::nowhere(&format!("--set params.{key}={found}"), message),
                });
                default
            }
        }
    }

    /// Variables as `NAME=value`.
    fn environment(&mut self) -> Vec<String> {
        let manifest = self.manifest;
        let mut variable = |name: &str, value| self.argument(value).map(|value| format!("{name}={value}"));
        manifest.start.env.iter().filter_map(|(name, value)| variable(name, value)).collect()
    }

    fn arguments(&mut self, args: &[Argument]) -> Vec<String> {
        args.iter().filter_map(|arg| self.argument(arg)).collect()
    }

    fn argument(&mut self, arg: &Argument) -> Option<String> {
        match arg {
            Argument::Word(word) => Some(word.clone()),
            Argument::Value(expr) => {
                let value = expr.value(&mut self.frame);
                self.keep(value).map(|value| value.to_string())
            }
            Argument::Joined(parts) => parts.iter().map(|part| self.argument(part)).collect(),
        }
    }

    /// A parameter that a value names and the user has set.
    fn param_of_user<'c>(&self, value: &Argument, choice: &'c Choice) -> Option<&'c str> {
        let CpuManifest { params, names, .. } = self.manifest;
        let is_named = |name: &str| {
            let number = params.iter().position(|param| param.name == name);
            matches!((value, number), (Argument::Value(expr), Some(number)) if expr.names(names.param(number)))
        };
        choice.params.iter().map(|(name, _)| name.as_str()).find(|name| is_named(name))
    }

    /// What the clients do, and which servers there are; a value that the user's parameters decide is the
    /// user's.
    fn clients(&mut self, choice: &Choice) -> Vec<Setting> {
        let mut settings = Vec::new();
        for key in &self.manifest.clients {
            let texts = self.arguments(std::slice::from_ref(&key.value));
            let over = texts.into_iter().map(|value| Override { key: key.key.clone(), value });
            let source = match self.param_of_user(&key.value, choice) {
                Some(name) => format!("chosen by the user: params.{name}"),
                None => key.source.clone(),
            };
            settings.extend(over.map(|over| Setting { over, source: source.clone(), written: key.place.fault("") }));
        }
        settings
    }

    /// The executable in its memory; what is wrong is told where the manifest names it, else of its file.
    fn image(&mut self, start: &Start) -> Executable {
        let CpuManifest { elf, elf_file, elf_place, .. } = self.manifest;
        let loaded = elf::load(elf_file, elf, start.windows.memory_bytes);
        let whole = loaded.and_then(|image| Process::new(image.clone(), start.clone()).map(|_| image));
        match whole {
            Ok(image) => image,
            Err(found) => {
                let at = |fault: Diagnostic| match elf_place {
                    Some(place) => Diagnostic { help: fault.help, ..place.fault(fault.message) },
                    None => fault,
                };
                self.faults.0.extend(found.0.into_iter().map(at));
                Executable {
                    entry: 0,
                    segments: vec![],
                    functions: vec![],
                    objects: vec![],
                    headers: None,
                    header_count: 0,
                }
            }
        }
    }

    /// The checks of a profile; a run with parameters or arguments of its own keeps those of every profile.
    fn checks(&mut self, profile: &String) -> Vec<CpuCheck> {
        let mut checks = Vec::new();
        for check in &self.manifest.checks {
            let kind = match &check.form {
                CheckForm::ExitCode(expr) => {
                    let value = expr.integer(&mut self.frame, "`value`");
                    self.keep(value).map(|value| CpuCheckKind::ExitCode(value as i32))
                }
                CheckForm::Stdout { text, except } => {
                    Some(CpuCheckKind::Stdout { text: text.clone(), except: except.clone() })
                }
                CheckForm::Functional => Some(CpuCheckKind::Functional),
            };
            let is_of_it = check.profiles.is_empty() || check.profiles.contains(profile) && !self.altered;
            checks.extend(kind.filter(|_| is_of_it).map(|kind| CpuCheck { name: check.name.clone(), kind }));
        }
        // A program that says it failed has failed.
        if !checks.iter().any(|check| matches!(check.kind, CpuCheckKind::ExitCode(_))) {
            checks.insert(0, CpuCheck { name: "exit_code".to_owned(), kind: CpuCheckKind::ExitCode(0) });
        }
        checks
    }
}
