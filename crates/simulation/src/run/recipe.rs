//! The recipe of an experiment: machine, scheme and workload by name or by value, and what is changed of
//! them.
//!
//! Everybody who runs something - the command line, sweeps, papers, tests, a program of one's own - states a
//! [`Recipe`] and builds it. What follows from the scheme (undo logs, buffers that must be persistent) is
//! derived in [`Recipe::resolve`] and nowhere else, so that it can be neither forgotten nor contradicted.
//!
//! Invariants: setters never fail; what was wrong with them is told by [`Recipe::build`], together with the
//! faults of all parts. Two equal recipes give equal outcomes: threads change nothing but `host`.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use super::default_machine::default_machine;
use super::extent::Extent;
use super::forked;
use super::kept::Fork;
use super::region_of_interest::RegionOfInterest;
use super::{AnyExperiment, AnyResolved, CpuExperiment, Experiment, demands};
use crate::config::{AnyMachine, Compute, CpuMachine, MachineConfig, Override, SchemeConfig, is_of_a_scheme};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::Setting;
use durawarp_persist::Part;
use durawarp_schemes::catalogue::{self, DEFAULT_CLUSTER_SCHEME, DEFAULT_SCHEME};
use durawarp_workload::{Choice, Demands, FlagBarrier, Overrides, Workload};

impl From<AnyMachine> for Part<AnyMachine> {
    fn from(machine: AnyMachine) -> Self {
        Part::Value(Box::new(machine))
    }
}

impl From<MachineConfig> for Part<AnyMachine> {
    fn from(machine: MachineConfig) -> Self {
        AnyMachine::from(machine).into()
    }
}

impl From<CpuMachine> for Part<AnyMachine> {
    fn from(machine: CpuMachine) -> Self {
        AnyMachine::from(machine).into()
    }
}

impl From<SchemeConfig> for Part<SchemeConfig> {
    fn from(scheme: SchemeConfig) -> Self {
        Part::Value(Box::new(scheme))
    }
}

/// What an experiment is made of; [`Experiment::of`] begins one.
#[derive(Debug, Clone)]
#[must_use]
pub struct Recipe {
    /// `None`: the default of the workload's kind.
    pub(crate) machine: Option<Part<AnyMachine>>,
    pub(crate) machine_set: Vec<Override>,
    /// `None`: the default of the workload's kind.
    pub(crate) scheme: Option<Part<SchemeConfig>>,
    pub(crate) scheme_set: Vec<Override>,
    pub(crate) workload: Part<Workload>,
    pub(crate) choice: Choice,
    pub(crate) max_cycles: Option<u64>,
    pub(crate) reference: bool,
    pub(crate) launches: bool,
    pub(crate) sample: Option<u32>,
    pub(crate) roi: Option<RegionOfInterest>,
    /// It begins as another one, up to this core cycle.
    pub(crate) fork: Option<(u64, Box<Recipe>)>,
    pub(crate) threads: usize,
    /// What is wrong with what was set.
    pub(crate) faults: Diagnostics,
}

/// Keys of [`Recipe::set`] that are no parameters.
const WORDS: [&str; 15] = [
    "machine",
    "scheme",
    "workload",
    "profile",
    "seed",
    "instrument",
    "flag_barrier",
    "loop_log",
    "reload",
    "kernels",
    "opcodes",
    "launches",
    "max_cycles",
    "sample",
    "roi",
];

impl Recipe {
    /// As [`Experiment::of`], which says what is chosen here.
    pub fn of(workload: impl Into<Part<Workload>>) -> Self {
        Recipe {
            machine: None,
            machine_set: Vec::new(),
            scheme: None,
            scheme_set: Vec::new(),
            workload: workload.into(),
            choice: Choice::default(),
            max_cycles: None,
            reference: true,
            launches: false,
            sample: None,
            roi: None,
            fork: None,
            threads: 1,
            faults: Diagnostics::default(),
        }
    }

    /// The machine: a built-in name, a path of a file, or a [`MachineConfig`]. Without it, the default one
    /// with a GPU, for a program of CPUs with CPU cores.
    pub fn machine(mut self, machine: impl Into<Part<AnyMachine>>) -> Self {
        self.machine = Some(machine.into());
        self
    }

    /// The persistency scheme: a built-in name, a path of a file, a [`SchemeConfig`], or a scheme of one's
    /// own.
    pub fn scheme(mut self, scheme: impl Into<Part<SchemeConfig>>) -> Self {
        self.scheme = Some(scheme.into());
        self
    }

    /// Sets a key: a parameter of the machine (`l2.slice_kb`), of the scheme
    /// (`agpm.threshold_logs`) or of the workload (`params.N`), the file of a buffer (`inputs.BUFFER`), or
    /// one of the words `machine`, `scheme`, `workload`, `profile`, `seed`, `instrument`, `flag_barrier`,
    /// `loop_log`, `reload`, `kernels`, `opcodes`, `launches`, `max_cycles`, `sample`, `roi`. These are the
    /// keys of sweep files. A wrong key is a fault that [`Recipe::build`] tells with the nearest valid one.
    ///
    /// # Example: a key that does not exist
    /// ```
    /// use durawarp_simulation::Experiment;
    /// let faults = Experiment::of("vecadd").set("l2.slice_k", 256).set("profil", "ci").build().unwrap_err();
    /// assert!(faults.to_string().contains("did you mean `l2.slice_kb`?"));
    /// assert!(faults.to_string().contains("did you mean `profile`?"));
    /// ```
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        // Words first: all others are parameters, by their table.
        match key {
            "machine" => self.machine(value),
            "scheme" => self.scheme(value),
            "workload" => Recipe { workload: value.into(), ..self },
            "profile" => self.profile(&value),
            "seed" => self.read(key, &value, "a whole number", |recipe, seed| recipe.choice.seed = seed),
            "max_cycles" => self.read(key, &value, "a whole number from 1", |recipe, most: NonZeroU64| {
                recipe.max_cycles = Some(most.get());
            }),
            "sample" => self.read(key, &value, "a whole number from 2 to 64", |recipe, windows: Windows| {
                recipe.sample = Some(windows.0);
            }),
            "roi" => self.parse(key, &value, |recipe, roi| recipe.roi = Some(roi)),
            "loop_log" => {
                self.read(key, &value, "true or false", |recipe, log| recipe.choice.instrument.loop_log = Some(log))
            }
            "reload" => {
                self.read(key, &value, "true or false", |recipe, again| recipe.choice.instrument.reload = Some(again))
            }
            "instrument" => self.parse(key, &value, |recipe, mode| recipe.choice.instrument.mode = Some(mode)),
            "flag_barrier" => {
                self.parse(key, &value, |recipe, barrier| recipe.choice.instrument.flag_barrier = Some(barrier))
            }
            "launches" => self.read(key, &value, "true or false", |recipe, counted| recipe.launches = counted),
            "kernels" => self.parse(key, &value, |recipe, kernels| recipe.choice.kernels = Some(kernels)),
            "opcodes" => {
                self.choice.opcodes = Some(value.into());
                self
            }
            // A parameter of the machine, the scheme or the workload, or a word that is misspelt.
            _ => match (key.strip_prefix("inputs."), Self::near_a_word(key)) {
                (Some(buffer), _) => self.input(buffer, value),
                (None, Some(fault)) => self.fault(fault),
                (None, None) => self.change(Override { key: key.to_owned(), value }),
            },
        }
    }

    fn near_a_word(key: &str) -> Option<Diagnostic> {
        let near = Diagnostic::nowhere(key, format!("unknown key `{key}`")).with_nearest(key, WORDS);
        (!key.contains('.') && near.help.is_some()).then_some(near)
    }

    /// Parses a value of a word, or notes what it should have been.
    fn read<T: std::str::FromStr>(self, key: &str, text: &str, what: &str, put: impl FnOnce(&mut Self, T)) -> Self {
        let read = text.parse().map_err(|_| format!("expected {what}; got `{text}`"));
        self.put(key, read, put)
    }

    fn parse<T: std::str::FromStr<Err = String>>(self, key: &str, text: &str, put: impl FnOnce(&mut Self, T)) -> Self {
        self.put(key, text.parse(), put)
    }

    fn put<T>(mut self, key: &str, read: Result<T, String>, put: impl FnOnce(&mut Self, T)) -> Self {
        match read {
            Ok(value) => put(&mut self, value),
            Err(message) => self.faults.push(Diagnostic::nowhere(key, message)),
        }
        self
    }

    /// Changes a parameter of the machine, of the scheme, or of the workload (`params.NAME`).
    pub fn change(mut self, over: Override) -> Self {
        match over.key.strip_prefix("params.") {
            Some(name) => self.choice.params.push((name.to_owned(), over.value)),
            None if is_of_a_scheme(&over) => self.scheme_set.push(over),
            None => self.machine_set.push(over),
        }
        self
    }

    /// As [`Recipe::change`], of texts like `l2.slice_kb=256`.
    pub fn changes(self, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        texts.into_iter().fold(self, |mut recipe, text| match Override::parse(text.as_ref()) {
            Ok(over) => recipe.change(over),
            Err(message) => {
                recipe.faults.push(Diagnostic::nowhere("--set", message));
                recipe
            }
        })
    }

    /// The workload's profile: the size of its problem.
    pub fn profile(mut self, name: &str) -> Self {
        self.choice.profile = Some(name.to_owned());
        self
    }

    /// A profile for workloads that have it, unless another is named: small programs have none.
    pub fn profile_if_any(mut self, name: &str) -> Self {
        let has = |workload: Workload| workload.has_profile(name);
        if self.choice.profile.is_none() && self.load_workload().is_ok_and(has) {
            self.choice.profile = Some(name.to_owned());
        }
        self
    }

    /// A parameter of the workload.
    pub fn param(self, name: &str, value: impl ToString) -> Self {
        self.change(Override { key: format!("params.{name}"), value: value.to_string() })
    }

    /// Parameters of the workload.
    pub fn params<'a, V: ToString>(self, params: impl IntoIterator<Item = (&'a str, V)>) -> Self {
        params.into_iter().fold(self, |recipe, (name, value)| recipe.param(name, value))
    }

    /// The run's seed: changes every random content.
    pub fn seed(mut self, seed: u64) -> Self {
        self.choice.seed = seed;
        self
    }

    /// Fills a buffer from a file, raw little-endian or `.npy`.
    pub fn input(mut self, buffer: &str, file: impl Into<PathBuf>) -> Self {
        self.choice.inputs.push((buffer.to_owned(), file.into()));
        self
    }

    /// How undo logging differs from what the manifest's `[instrument]` says. Whether logs are kept follows
    /// from the scheme.
    pub fn instrument(mut self, instrument: Overrides) -> Self {
        self.choice.instrument = instrument;
        self
    }

    /// Every buffer in persistent memory, as under schemes of recoverable regions: for comparisons with them.
    pub fn persistent(mut self, persistent: bool) -> Self {
        self.choice.persistent = persistent;
        self
    }

    /// Most bytes that the workload's buffers may have together, and that a run may hold before its first
    /// step: full caches, and what buffers begin with.
    pub fn most_bytes(mut self, bytes: u64) -> Self {
        self.choice.most_bytes = Some(bytes);
        self
    }

    /// Everything that is chosen of the workload at once.
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Stop after this many core cycles.
    pub fn max_cycles(mut self, cycles: impl Into<Option<u64>>) -> Self {
        self.max_cycles = cycles.into();
        self
    }

    /// Whether every counter is read at the end of each launch, too
    /// ([`Launch::counters`](crate::outcome::Launch::counters)). A program of CPUs is refused then.
    pub fn launches(mut self, counted: bool) -> Self {
        self.launches = counted;
        self
    }

    /// Simulates a sample in detail and predicts the rest: `windows` samples (2 to 64) of each launch of many
    /// waves, and launches of which there are many ever more rarely. Cycles are an estimate with an interval
    /// then ([`Outcome::sampling`](crate::outcome::Outcome)).
    pub fn sample(mut self, windows: impl Into<Option<u32>>) -> Self {
        self.sample = windows.into();
        if self.sample.is_some_and(|windows| !Windows::RANGE.contains(&windows)) {
            self.faults.push(Diagnostic::nowhere("sample", "expected a whole number from 2 to 64"));
        }
        self
    }

    /// Simulates only this region of a program of CPUs in detail: times and counters are those of the region.
    pub fn roi(mut self, region: impl Into<Option<RegionOfInterest>>) -> Self {
        self.roi = region.into();
        self
    }

    /// Begins as `before`, the same but for parameters that may change on the way
    /// ([`may_change`](super::checkpoint::may_change)), and has its own ones from core cycle `cycle` on.
    /// Times and counters are of both parts together.
    ///
    /// # Example: memory gets slower at cycle 1000
    /// ```
    /// use durawarp_simulation::Experiment;
    ///
    /// let before = Experiment::of("gemm").profile("ci");
    /// let slower = before.clone().set("dram.t_cl_ns", 80).fork_from(1000, before).run().unwrap();
    /// assert_eq!(slower.from_checkpoint.unwrap().set, ["dram.t_cl_ns=80"]);
    /// assert!(slower.verification.unwrap().passed);
    /// ```
    pub fn fork_from(mut self, cycle: u64, before: Recipe) -> Self {
        self.fork = Some((cycle, Box::new(before)));
        self
    }

    /// After how many core cycles it stops, if it was said.
    pub fn most_cycles(&self) -> Option<u64> {
        self.max_cycles
    }

    /// Whether the final memory is compared with that of the functional driver.
    pub fn reference(mut self, compared: bool) -> Self {
        self.reference = compared;
        self
    }

    /// Threads: 0 for one a core, 1 for the sequential driver. They change no result.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Notes a fault of the caller's input, to be told with all others.
    pub fn fault(mut self, fault: Diagnostic) -> Self {
        self.faults.push(fault);
        self
    }

    /// Arguments of a program of CPUs, after those of its manifest.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.choice.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// What it is made of, as keys and values of [`Recipe::set`]: set in this order on another recipe they
    /// make the same one, but for `reference`, `persistent`, `args` and how it begins, which are no keys.
    /// `...` stands for a part that is given as a value and has no name.
    ///
    /// # Example: the same recipe again
    /// ```
    /// let recipe = durawarp_simulation::Experiment::of("vecadd").scheme("strict").set("params.N", 64);
    /// let set = |all: durawarp_simulation::Recipe, (key, value): (String, String)| all.set(&key, value);
    /// let again = recipe.keys().into_iter().fold(durawarp_simulation::Experiment::of(""), set);
    /// assert_eq!(again.keys(), recipe.keys());
    /// ```
    pub fn keys(&self) -> Vec<(String, String)> {
        let Recipe { choice, .. } = self;
        let named = |name: Option<&str>| name.unwrap_or("...").to_owned();
        let mut keys = vec![("workload".to_owned(), named(self.workload.name()))];
        let mut put = |key: &str, value: Option<String>| keys.extend(value.map(|value| (key.to_owned(), value)));
        // What the recipe leaves open is left out: it is resolved in the same way again.
        put("machine", self.machine.as_ref().map(|machine| named(machine.name())));
        put("scheme", self.scheme.as_ref().map(|scheme| named(scheme.name())));
        put("profile", choice.profile.clone());
        put("seed", Some(choice.seed.to_string()));
        for Override { key, value } in self.machine_set.iter().chain(&self.scheme_set) {
            put(key, Some(value.clone()));
        }
        for (name, value) in &choice.params {
            put(&format!("params.{name}"), Some(value.clone()));
        }
        for (buffer, file) in &choice.inputs {
            put(&format!("inputs.{buffer}"), Some(file.display().to_string()));
        }
        let Overrides { mode, flag_barrier, loop_log, reload } = choice.instrument;
        put("instrument", mode.map(|mode| mode.to_string()));
        let word = |barrier| FlagBarrier::ALL.iter().find(|(_, of)| *of == barrier).map(|(word, _)| (*word).to_owned());
        put("flag_barrier", flag_barrier.and_then(word));
        put("loop_log", loop_log.map(|log| log.to_string()));
        put("reload", reload.map(|again| again.to_string()));
        put("kernels", choice.kernels.as_ref().map(ToString::to_string));
        put("opcodes", choice.opcodes.as_ref().map(|file| file.display().to_string()));
        put("launches", self.launches.then(|| true.to_string()));
        put("max_cycles", self.max_cycles.map(|cycles| cycles.to_string()));
        put("roi", self.roi.as_ref().map(ToString::to_string));
        keys
    }

    /// As [`Recipe::build_any`], of kernels on a machine with a GPU.
    ///
    /// # Errors
    /// As [`Recipe::build_any`]; a program of CPUs.
    pub fn build(&self) -> Result<Experiment, Diagnostics> {
        match self.build_any()? {
            AnyExperiment::Gpu(experiment) => Ok(*experiment),
            AnyExperiment::Cpu(experiment) => {
                let message = format!("workload `{}` is a program of CPUs", experiment.program.name);
                Err(Diagnostic::nowhere("", message).with_help("a workload of kernels is wanted here").into())
            }
        }
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// All faults of the machine, the scheme, the workload and of what was set; what keeps a run from
    /// starting.
    pub fn build_any(&self) -> Result<AnyExperiment, Diagnostics> {
        let mut faults = self.faults.clone();
        let mut keep = |found: Diagnostics| faults.0.extend(found.0);
        let workload = self.load_workload();
        let machine = self.load_machine(workload.as_ref().ok());
        let compute = machine.as_ref().map_or(Compute::Gpu, AnyMachine::compute);
        let scheme = self.load_scheme(workload.as_ref().ok(), compute);
        let machine = machine.map_err(|found| keep(self.advised(found, workload.as_ref().ok()))).ok();
        let scheme = scheme.map_err(&mut keep).ok();
        let resolved = workload.and_then(|workload| self.resolve(&workload, scheme.as_ref()));
        let resolved = resolved.map_err(&mut keep).ok();
        match (machine, resolved, scheme) {
            (Some(machine), Some(resolved), Some(scheme)) if faults.0.is_empty() => {
                self.of_parts(machine, resolved, scheme, Recipe::build_any)
            }
            _ => Err(faults),
        }
    }

    /// The machine's faults. A key that it does not have may be a parameter of the workload, which is told
    /// then.
    pub(crate) fn advised(&self, mut found: Diagnostics, workload: Option<&Workload>) -> Diagnostics {
        for over in &self.machine_set {
            let is_param = |workload: &Workload| workload.params().any(|name| name == over.key);
            if workload.is_some_and(is_param) {
                let of_key = found.0.iter_mut().filter(|fault| fault.file == over.written());
                of_key.for_each(|fault| fault.help = Some(format!("did you mean `params.{}`?", over.key)));
            }
        }
        found
    }

    /// The machine, with what the workload says of its clients, and with its changes. One that is given as a
    /// value stays as it is.
    pub(crate) fn load_machine(&self, workload: Option<&Workload>) -> Result<AnyMachine, Diagnostics> {
        let machine = self.machine_for(workload);
        given_is_not_changed("machine", machine.name(), &self.machine_set)?;
        machine.load(|name| AnyMachine::load_with(name, &self.settings(workload), &self.machine_set))
    }

    /// What the workload says of the machine's clients.
    pub(crate) fn settings(&self, workload: Option<&Workload>) -> Vec<Setting> {
        workload.map_or_else(Vec::new, |workload| workload.settings(&self.choice))
    }

    /// The machine and the scheme; the workload is read where one of them follows from it.
    pub(crate) fn load_own_parts(&self) -> Result<(AnyMachine, SchemeConfig), Diagnostics> {
        let needs = match &self.machine {
            Some(Part::Named(name)) => self.scheme.is_none() || Compute::of(name) == Compute::Cpu,
            Some(Part::Value(_)) => self.scheme.is_none(),
            None => true,
        };
        let workload = if needs { Some(self.load_workload()?) } else { None };
        let machine = self.load_machine(workload.as_ref())?;
        let scheme = self.load_scheme(workload.as_ref(), machine.compute())?;
        Ok((machine, scheme))
    }

    /// Whether it is of a program of CPUs: its machine says, else its workload. What cannot be read is told
    /// when it is built.
    pub fn is_of_a_cpu(&self) -> bool {
        let compute = match &self.machine {
            Some(Part::Named(name)) => Compute::of(name),
            Some(Part::Value(machine)) => machine.compute(),
            None => return self.load_workload().is_ok_and(|workload| workload.is_of_a_cpu()),
        };
        compute == Compute::Cpu
    }

    /// Names of the built-in schemes for machines of its kind, the default one first.
    pub fn schemes(&self) -> Vec<&'static str> {
        let fitting = if self.is_of_a_cpu() { catalogue::of_cpus() } else { catalogue::all() };
        let mut names: Vec<&str> = fitting.iter().map(|scheme| scheme.name()).collect();
        names.sort_by_key(|name| *name != DEFAULT_SCHEME);
        names
    }

    /// The machine for a workload.
    pub(crate) fn machine_for(&self, workload: Option<&Workload>) -> Part<AnyMachine> {
        match &self.machine {
            Some(machine) => machine.clone(),
            None => default_machine(workload.into_iter()).into(),
        }
    }

    /// The scheme for a workload.
    pub(crate) fn scheme_for(&self, workload: Option<&Workload>) -> Part<SchemeConfig> {
        match &self.scheme {
            Some(scheme) => scheme.clone(),
            None if workload.is_some_and(Workload::has_clients) => DEFAULT_CLUSTER_SCHEME.into(),
            None => DEFAULT_SCHEME.into(),
        }
    }

    /// The scheme, with its changes, as it is on machines that compute so.
    pub(crate) fn load_scheme(
        &self,
        workload: Option<&Workload>,
        compute: Compute,
    ) -> Result<SchemeConfig, Diagnostics> {
        let scheme = self.scheme_for(workload);
        given_is_not_changed("scheme", scheme.name(), &self.scheme_set)?;
        scheme.load(|name| SchemeConfig::load_on(compute, name, &self.scheme_set))
    }

    /// The workload, before anything is chosen of it.
    pub(crate) fn load_workload(&self) -> Result<Workload, Diagnostics> {
        self.workload.load(Workload::load)
    }

    /// The workload as it runs under the scheme; without one, as under a scheme that demands nothing.
    pub(crate) fn resolve(
        &self,
        workload: &Workload,
        scheme: Option<&SchemeConfig>,
    ) -> Result<AnyResolved, Diagnostics> {
        if workload.is_of_a_cpu() {
            return Ok(workload.program(&self.choice)?.into());
        }
        let demands = scheme.map_or_else(Demands::default, |scheme| demands(&*scheme.built));
        Ok(workload.resolve_under(&self.choice, demands)?.into())
    }

    /// The experiment of these parts. `before` builds how it begins, where it begins as another one.
    pub(crate) fn of_parts(
        &self,
        machine: AnyMachine,
        workload: AnyResolved,
        scheme: SchemeConfig,
        before: impl FnOnce(&Recipe) -> Result<AnyExperiment, Diagnostics>,
    ) -> Result<AnyExperiment, Diagnostics> {
        let &Recipe { max_cycles, reference, launches, sample, .. } = self;
        // A machine and a workload of different kinds fit nothing: they come last.
        let experiment = match (machine, workload) {
            (AnyMachine::Gpu(machine), AnyResolved::Kernels(workload)) => {
                let experiment = Experiment::of_resolved(*machine, *workload, scheme)?;
                // A sample is checked with the parts that may forbid it.
                let experiment = Experiment { max_cycles, reference, launches, sample, ..experiment };
                if launches && (sample.is_some() || self.fork.is_some()) {
                    let message = "a run that is sampled, or that changes its parameters on the way, has no counters by \
                                   launch";
                    return Err(Diagnostic::nowhere("launches", message).into());
                }
                experiment.check_sample()?;
                if self.roi.is_some() {
                    let message = "regions of interest are of programs of CPUs, and this one has kernels";
                    return Err(Diagnostic::nowhere("roi", message)
                        .with_help("`sample` simulates a part of it")
                        .into());
                }
                let fork = self.load_fork(before, |before| match before {
                    AnyExperiment::Gpu(before) => Some(*before),
                    AnyExperiment::Cpu(_) => None,
                })?;
                let experiment = Experiment { fork, ..experiment };
                experiment.fork.as_ref().map_or(Ok(()), |fork| forked::check(&*fork.before, &experiment))?;
                AnyExperiment::Gpu(Box::new(experiment))
            }
            (AnyMachine::Cpu(machine), AnyResolved::Process(program)) => {
                if launches {
                    let message = "counters by launch are of kernels, and this is a program of CPUs";
                    return Err(Diagnostic::nowhere("launches", message).into());
                }
                let experiment = CpuExperiment::of_parts(*machine, *program, scheme)?;
                let persistent = self.choice.persistent || experiment.persistent;
                let extent = self.extent()?;
                let experiment = CpuExperiment { max_cycles, reference, persistent, extent, ..experiment };
                experiment.check_extent()?;
                let fork = self.load_fork(before, |before| match before {
                    AnyExperiment::Cpu(before) => Some(*before),
                    AnyExperiment::Gpu(_) => None,
                })?;
                let experiment = CpuExperiment { fork, ..experiment };
                experiment.fork.as_ref().map_or(Ok(()), |fork| forked::check(&*fork.before, &experiment))?;
                AnyExperiment::Cpu(Box::new(experiment))
            }
            (machine, workload) => return Err(unfit(&machine, &workload.describe().workload).into()),
        };
        if let Some(most) = self.choice.most_bytes {
            experiment.fits(most)?;
        }
        Ok(experiment)
    }
}

impl Recipe {
    /// What of a program of CPUs is simulated in detail.
    fn extent(&self) -> Result<Extent, Diagnostics> {
        match (self.sample, &self.roi) {
            (None, None) => Ok(Extent::Whole),
            (Some(samples), None) => Ok(Extent::Samples(samples)),
            (None, Some(region)) => Ok(Extent::Region(region.clone())),
            (Some(_), Some(_)) => {
                let message = "a region of interest is simulated whole, and a sampled run has all of the program";
                Err(Diagnostic::nowhere("roi", message).with_help("take out `roi` or `sample`").into())
            }
        }
    }

    /// How it begins, where it begins as another one, which is to be of its own kind and which `build` makes.
    fn load_fork<E>(
        &self,
        build: impl FnOnce(&Recipe) -> Result<AnyExperiment, Diagnostics>,
        own: fn(AnyExperiment) -> Option<E>,
    ) -> Result<Option<Fork<E>>, Diagnostics> {
        let Some((cycle, before)) = &self.fork else { return Ok(None) };
        let before = own(build(before)?).ok_or_else(|| {
            let message = "kernels cannot go on as a program of CPUs, nor the other way round";
            Diagnostic::nowhere("fork_at_cycle", message)
        })?;
        Ok(Some(Fork { cycle: *cycle, before: Box::new(before) }))
    }
}

/// Samples of a launch: two at least, as one says nothing of their spread.
struct Windows(u32);

impl Windows {
    const RANGE: RangeInclusive<u32> = 2..=64;
}

impl FromStr for Windows {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().filter(|windows| Self::RANGE.contains(windows)).map(Windows).ok_or(())
    }
}

/// A machine that does not compute with what a workload is a program of.
fn unfit(machine: &AnyMachine, workload: &str) -> Diagnostic {
    let (of, wanted) = match machine.compute() {
        Compute::Gpu => ("a program of CPUs", Compute::Cpu),
        Compute::Cpu => ("made of kernels", Compute::Gpu),
    };
    let message =
        format!("workload `{workload}` is {of}, and machine `{}` computes with {}", machine.name(), machine.compute());
    let names: Vec<&str> = wanted.builtin().iter().map(|(name, _)| *name).collect();
    let fault = Diagnostic::nowhere("--machine", message);
    fault.with_help(format!("machines with {wanted}: {}", names.join(", ")))
}

/// A part that is a value has its parameters already.
fn given_is_not_changed(what: &str, name: Option<&str>, set: &[Override]) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    for over in set.iter().filter(|_| name.is_none()) {
        let message = format!("the {what} is given as a value, and `{}` would change it", over.key);
        faults.push(Diagnostic::nowhere(&over.written(), message).with_help("change it where it is loaded"));
    }
    faults.into_result(())
}
