//! Workloads: what runs on the simulated machine. A folder with a manifest (`workload.toml`) and PTX, or with
//! a RISC-V executable for a machine of CPU cores (`cpu`); no Rust. Or an instruction trace (`trace`).
//!
//! ```text
//! workload.toml ─ document ─> read ─> Manifest ─┐
//! kernel.ptx ──── kernel::ptx ─────> Programs ──┼─ Choice ─> RunPlan ┬─> image, host program ─> a machine
//!                                               │                    └─> verification <─ final memory
//! ```
//!
//! | module | what it has, from the user down; each uses those below it only |
//! |---|---|
//! | this file | [`Workload`], [`Resolved`]: the facade; nothing below takes it |
//! | `instrument` | undo logging added to plain kernels: a plan of plain launches becomes one of transactions |
//! | `formed` | programs of kernels in recoverable regions, and how they go on after a power failure |
//! | `cpu` | programs of CPUs: their manifests, what a run starts from, their checks |
//! | `trace` | instruction traces of real GPUs: timing without values |
//! | `check` | verdicts: final memory, expected figures, conditions on crash images |
//! | `host` | the host program as a state machine, on the functional driver; recovery kernels |
//! | `plan` | everything about a run that is known before it starts, as data |
//! | `read` | from a well-formed document to a manifest |
//! | `data` | generators, files, references |
//! | `description` | a resolved workload as plain data |
//! | `manifest` | the manifest as data, its keys, its files |
//! | `expr` | the expressions of manifests |
//!
//! [`Workload::load`] finds and reads a workload and reports every fault of its text at once.
//! [`Workload::resolve`] applies a [`Choice`] and allocates and fills every buffer. A [`Resolved`] workload
//! gives the initial memory and the host program to its driver (the functional driver here, a timed machine
//! elsewhere) and judges the final memory. `workloads/manifest.md` describes the format.
//!
//! [`Workload::program`] applies a choice to a program of CPUs: a [`CpuProgram`].
//!
//! Invariants: the same choice gives the same bytes on every host; nothing here knows time or a machine.
//! Not modelled: host time between steps, host-side persistence (host writes are durable at once).

mod check;
mod cpu;
mod data;
mod description;
mod expr;
mod formed;
mod host;
mod instrument;
mod manifest;
mod plan;
mod read;
mod trace;

use std::sync::Arc;

pub use check::conditions::{CrashCondition, Expected, Violation};
pub use check::elements::WrongElement;
pub use check::verdict::{CheckResult, Evidence, ExpectationResult, Mismatch, Outcome, Verification};
pub use cpu::{CpuCheck, CpuCheckKind, CpuProgram, Ran};
pub use description::{BufferDescription, Description, ProgramDescription, TraceDescription};
pub use formed::regions::{KernelRegions, RegionRun};
pub use formed::resume::Resumed;
pub use formed::{FormedHost, FormedProgram};
pub use host::WorkloadHost;
pub use host::functional::apply;
pub use host::functional::{EpochWrites, FunctionalError, FunctionalRun, LaunchCount};
pub use host::recovery::Recovery;
pub use host::view::Bindings;
pub use instrument::layout::OldAndNew;
pub use manifest::buffers::{Role, Space};
pub use manifest::instrument::{FlagBarrier, Mode, Overrides, Settings};
pub use plan::{Choice, Demands, KernelChoice};

pub use durawarp_base::document::Value;

use durawarp_kernel::ir::Op;

use check::{conditions, elements, verdict, verify};
use cpu::CpuManifest;
use formed::regions;
use host::functional;
pub(crate) use instrument::{apply, layout};
use manifest::source::{self, Folder, Programs};
use manifest::steps::HostStep;
use manifest::{Manifest, schema};
use plan::{RunPlan, fingerprint, image, resolve};
use trace::{Trace, TraceHost, TracePlan};

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Setting, SourceText, TomlTable, parse};
use durawarp_kernel::functional::Limits;
use durawarp_kernel::functional::scrutiny::Scrutiny;
use durawarp_kernel::host::HostProgram;
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp_kernel::regions::{Formed, RegionOptions};
use durawarp_kernel::undetermined::machine_reads;
use durawarp_persist::Part;
use durawarp_persist::undo::UndoLog;

/// A workload that was read and found sound, whatever the profile.
#[derive(Debug, Clone)]
pub struct Workload {
    of: WorkloadKind,
}

#[derive(Debug, Clone)]
enum WorkloadKind {
    Kernels { manifest: Arc<Manifest>, programs: Arc<Programs>, folder: Folder },
    Process(Arc<CpuManifest>),
    Trace(Arc<Trace>),
}

/// A line of the list of built-in workloads.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listing {
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Profiles it can run with, `default` first.
    pub profiles: Vec<String>,
}

impl Workload {
    /// Finds and reads a workload: a path of its folder or manifest, of a RISC-V executable, of the list of a
    /// trace (`kernelslist.g`) or of one of its kernels, or the name of a built-in one. A path that exists
    /// wins over a name.
    ///
    /// # Errors
    /// Everything that is wrong with the manifest and its program, each with file, line and column.
    pub fn load(name_or_path: &str) -> Result<Workload, Diagnostics> {
        let path = std::path::Path::new(name_or_path);
        if cpu::is_executable(path) {
            return Ok(Workload { of: WorkloadKind::Process(Arc::new(cpu::of_executable(path)?)) });
        }
        let list = if trace::is_traced(path) { Some(path.to_owned()) } else { trace::list_of(path) };
        if let Some(list) = list.filter(|_| !path.join(source::MANIFEST_FILE).is_file()) {
            return Ok(Workload { of: WorkloadKind::Trace(Arc::new(Trace::of_list(&list)?)) });
        }
        let folder = Folder::find(name_or_path)?;
        let file = folder.display_name(folder.manifest());
        let text = folder.read_text(folder.manifest()).map_err(|error| Diagnostic::nowhere(&file, error))?;
        Self::read(folder, file, text)
    }

    /// Paths of the workloads that a folder holds, by name: manifests `NAME.toml`, and folders `NAME` with
    /// one.
    ///
    /// # Errors
    /// The folder cannot be read, or holds none; two have one name.
    pub fn paths_in(folder: &std::path::Path) -> Result<Vec<std::path::PathBuf>, Diagnostics> {
        source::workloads_in(folder)
    }

    /// Reads the text of a manifest. Files that it names are relative to the current folder.
    ///
    /// # Errors
    /// Everything that is wrong with the manifest and its PTX, each with line and column.
    pub fn from_text(text: &str) -> Result<Workload, Diagnostics> {
        let folder = Folder::Text(text.into());
        let file = folder.display_name(folder.manifest());
        Self::read(folder, file, text.to_owned())
    }

    fn read(folder: Folder, file: String, text: String) -> Result<Workload, Diagnostics> {
        let source = Arc::new(SourceText::new(&file, text));
        let mut faults = Diagnostics::default();
        let document = parse(&source, &mut faults);
        // What follows a broken line can mean anything: the faults of the syntax come alone.
        faults = faults.into_result(Diagnostics::default())?;
        let root = TomlTable::root(&source, &document);
        if root.get(trace::TRACE_KEY).is_some() {
            let trace = Trace::of_document(root, folder.path())?;
            return Ok(Workload { of: WorkloadKind::Trace(Arc::new(trace)) });
        }
        if cpu::is_of_a_cpu(root) {
            let manifest = cpu::of_document(root, &folder, &mut faults);
            return faults.into_result(Workload { of: WorkloadKind::Process(Arc::new(manifest)) });
        }
        schema::check_manifest(root, &mut faults);
        let programs = Programs::read(root, &folder, &mut faults);
        let manifest = read::manifest(root, &programs, &mut faults);
        faults.into_result(())?;
        let (manifest, programs) = (Arc::new(manifest), Arc::new(programs));
        Ok(Workload { of: WorkloadKind::Kernels { manifest, programs, folder } })
    }

    /// The built-in workloads of kernels, by name.
    pub fn builtin() -> Vec<Listing> {
        Self::embedded().filter(|found| !found.is_of_a_cpu()).map(|found| found.listing()).collect()
    }

    /// The built-in programs of CPUs, by name.
    pub fn builtin_of_cpus() -> Vec<Listing> {
        Self::embedded().filter(Workload::is_of_a_cpu).map(|found| found.listing()).collect()
    }

    fn embedded() -> impl Iterator<Item = Workload> {
        source::builtin_names().filter_map(|name| Workload::load(name).ok())
    }

    /// The built-in litmus programs of kernels, by name: small programs of persistency with conditions on
    /// what power failures leave.
    pub fn litmus() -> Vec<Listing> {
        Self::embedded_litmus().filter(|found| !found.is_of_a_cpu()).map(|found| found.listing()).collect()
    }

    /// The built-in litmus programs of CPUs, by name: each checks itself.
    pub fn litmus_of_cpus() -> Vec<Listing> {
        Self::embedded_litmus().filter(Workload::is_of_a_cpu).map(|found| found.listing()).collect()
    }

    fn embedded_litmus() -> impl Iterator<Item = Workload> {
        source::litmus_names().filter_map(|name| Workload::load(&name).ok())
    }

    /// Name, description, profiles.
    pub fn listing(&self) -> Listing {
        let (profiles, description) = match &self.of {
            WorkloadKind::Kernels { manifest, .. } => (&manifest.profiles[..], &manifest.description),
            WorkloadKind::Process(manifest) => (&manifest.profiles[..], &manifest.description),
            WorkloadKind::Trace(trace) => (&[][..], &trace.description),
        };
        let named = profiles.iter().map(|profile| profile.name.clone()).filter(|name| name != "default");
        let profiles = ["default".to_owned()].into_iter().chain(named).collect();
        Listing { name: self.name().to_owned(), description: description.clone(), profiles }
    }

    /// It can run with this profile.
    pub fn has_profile(&self, name: &str) -> bool {
        self.listing().profiles.iter().any(|profile| profile == name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match &self.of {
            WorkloadKind::Kernels { manifest, .. } => &manifest.name,
            WorkloadKind::Process(manifest) => &manifest.name,
            WorkloadKind::Trace(trace) => &trace.name,
        }
    }

    /// Names of its parameters.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        let params = match &self.of {
            WorkloadKind::Kernels { manifest, .. } => &manifest.params[..],
            WorkloadKind::Process(manifest) => &manifest.params[..],
            WorkloadKind::Trace(_) => &[][..],
        };
        params.iter().map(|param| param.name.as_str())
    }

    /// What the manifest's `[instrument]` makes of the kernels; [`Mode::None`] without one.
    pub fn instrument(&self) -> Mode {
        match &self.of {
            WorkloadKind::Kernels { manifest, .. } => {
                manifest.instrument.as_ref().map_or(Mode::None, |instrument| instrument.mode)
            }
            WorkloadKind::Process(_) | WorkloadKind::Trace(_) => Mode::None,
        }
    }

    /// It is a program of CPUs, not of kernels.
    pub fn is_of_a_cpu(&self) -> bool {
        matches!(self.of, WorkloadKind::Process(_))
    }

    /// The kernels of its modules; none, where it is no program of kernels.
    fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let modules = match &self.of {
            WorkloadKind::Kernels { programs, .. } => &programs.modules[..],
            WorkloadKind::Process(_) | WorkloadKind::Trace(_) => &[][..],
        };
        modules.iter().flat_map(|module| &module.kernels).map(|kernel| &**kernel)
    }

    /// It multiplies matrices or copies asynchronously: it needs a machine with tensor cores.
    pub fn needs_tensor_cores(&self) -> bool {
        self.kernels().flat_map(|kernel| &kernel.code).any(|inst| inst.op.is_of_tensor_cores())
    }

    /// It has products of four warps (`wgmma`).
    pub fn needs_warp_groups(&self) -> bool {
        self.kernels().any(|kernel| !kernel.group_products.is_empty())
    }

    /// One of its kernels has tensor memory (`tcgen05`): it needs a machine with that.
    pub fn needs_tensor_memory(&self) -> bool {
        self.kernels().flat_map(|kernel| &kernel.code).any(|inst| matches!(inst.op, Op::Tensor(_)))
    }

    /// One of its launches has clusters of CTAs: it needs a machine with GPCs.
    pub fn has_clusters(&self) -> bool {
        let WorkloadKind::Kernels { manifest, .. } = &self.of else { return false };
        manifest.steps.iter().any(HostStep::has_clusters)
    }

    /// Applies a choice to a program of CPUs: arguments and sizes are computed, its executable is looked at
    /// in its memory.
    ///
    /// # Errors
    /// Everything that is wrong with the choice, or with the manifest under it; it has kernels.
    pub fn program(&self, choice: &Choice) -> Result<CpuProgram, Diagnostics> {
        match &self.of {
            WorkloadKind::Process(manifest) => {
                choice.refuse_choice_of_traces(&manifest.name)?;
                CpuProgram::new(manifest, choice)
            }
            WorkloadKind::Kernels { manifest, .. } => {
                let message = format!("workload `{}` has kernels: it is no program of CPUs", manifest.name);
                Err(Diagnostic::nowhere("", message).into())
            }
            WorkloadKind::Trace(trace) => {
                let message = format!("workload `{}` is a trace of a GPU: it is no program of CPUs", trace.name);
                Err(Diagnostic::nowhere("", message).into())
            }
        }
    }

    /// What it sets of the clients of its machine, in the machine's table `client`; nothing where it is a
    /// program alone.
    pub fn settings(&self, choice: &Choice) -> Vec<Setting> {
        match &self.of {
            WorkloadKind::Process(manifest) => CpuProgram::settings_of(manifest, choice),
            WorkloadKind::Kernels { .. } | WorkloadKind::Trace(_) => Vec::new(),
        }
    }

    /// It is of clients that persist in a server's memory: it needs a machine that has some.
    pub fn has_clients(&self) -> bool {
        matches!(&self.of, WorkloadKind::Process(manifest) if !manifest.clients.is_empty())
    }

    /// Applies a choice: every size is computed, every buffer allocated and filled, every launch that does
    /// not depend on the run checked.
    ///
    /// # Errors
    /// Everything that is wrong with the choice, or with the manifest under it.
    pub fn resolve(&self, choice: &Choice) -> Result<Resolved, Diagnostics> {
        self.resolve_under(choice, Demands::default())
    }

    /// As [`Workload::resolve`], for a scheme that demands something. Experiments are made by
    /// `Experiment::of` of the crate `simulation`, which knows what their scheme demands.
    ///
    /// # Errors
    /// As [`Workload::resolve`]; what stands in the way of the instrumentation.
    pub fn resolve_under(&self, choice: &Choice, demands: Demands) -> Result<Resolved, Diagnostics> {
        if let WorkloadKind::Trace(trace) = &self.of {
            trace::choice::check(trace, choice, demands)?;
            let plan = trace.plan(choice)?;
            let empty = trace::choice::empty_plan(&trace.name, choice, demands)?;
            let empty = RunPlan { addresses: plan.addresses.clone(), ..empty };
            return Ok(Resolved { plan: Arc::new(empty), trace: Some(Arc::new(plan)) });
        }
        let WorkloadKind::Kernels { manifest, programs, folder } = &self.of else {
            let message = format!("workload `{}` is a program of CPUs: it has no kernels", self.name());
            return Err(Diagnostic::nowhere("", message).with_help("it runs on a machine of CPU cores").into());
        };
        if let Some(first) = choice.args.first() {
            let message = format!("workload `{}` has kernels and takes no arguments", manifest.name);
            return Err(Diagnostic::nowhere(first, message).with_help("--set params.NAME=VALUE").into());
        }
        choice.refuse_choice_of_traces(&manifest.name)?;
        let plan = resolve::resolve(manifest, programs, folder, choice, demands)?;
        let plan = Arc::new(plan);
        let mut faults = Diagnostics::default();
        host::check_steps(&plan, &mut faults);
        conditions::check(&plan, &mut faults);
        faults.into_result(())?;
        Ok(Resolved { plan: apply::apply(plan, choice.instrument)?, trace: None })
    }
}

/// A workload ready to run.
#[derive(Debug, Clone)]
pub struct Resolved {
    plan: Arc<RunPlan>,
    /// What runs in place of the plan's steps, which there are none of then.
    trace: Option<Arc<TracePlan>>,
}

impl Resolved {
    /// Everything that decides a run and its verdict, except machine and scheme: name and bytes of each part.
    /// Stores of results use it as a key.
    pub fn fingerprint(&self, take: &mut dyn FnMut(&str, &[u8])) {
        fingerprint::feed(&self.plan, take);
        if let Some(trace) = &self.trace {
            trace.fingerprint(take);
        }
    }

    /// It is a trace: timing without values.
    pub fn is_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// What it was resolved for.
    pub fn demands(&self) -> Demands {
        self.plan.demands
    }

    /// What is allocated in global memory.
    pub fn addresses(&self) -> &Arc<AddressMap> {
        &self.plan.addresses
    }

    /// Bytes of buffers that hold something before the first step. The others are zeros, and take memory of
    /// the host as they are written to.
    pub fn filled_bytes(&self) -> u64 {
        let filled = self.plan.buffers.iter().filter(|buffer| buffer.address != 0);
        filled.filter(|buffer| buffer.kept().is_some()).map(|buffer| buffer.bytes).sum()
    }

    /// Global memory before the first step.
    pub fn image(&self) -> FlatMemory {
        image::image(&self.plan)
    }

    /// The host program, at its start. Keep its [`WorkloadHost::bindings`] to verify the memory that comes
    /// out. That of a trace is another one, which `run` of the crate `simulation` gives its machine.
    pub fn host(&self) -> WorkloadHost {
        WorkloadHost::new(self.plan.clone())
    }

    /// The host program of a trace, at its start.
    pub fn trace_host(&self) -> Option<Box<dyn HostProgram>> {
        self.trace.as_ref().map(|trace| Box::new(TraceHost::new(trace.clone())) as Box<dyn HostProgram>)
    }

    /// Warp instructions of a trace.
    pub fn traced_instructions(&self) -> Option<u64> {
        self.trace.as_ref().map(|trace| trace.warp_instructions())
    }

    /// CTAs of all launches, for a progress display; `None` where the run decides (a loop until converged).
    pub fn total_ctas(&self) -> Option<u64> {
        match &self.trace {
            Some(trace) => Some(trace.ctas()),
            None => host::total_ctas(&self.plan),
        }
    }

    /// Threads of the largest CTA of all launches; `None` where the run decides.
    pub fn largest_cta(&self) -> Option<u64> {
        match &self.trace {
            Some(trace) => Some(trace.largest_cta()),
            None => host::largest_cta(&self.plan),
        }
    }

    /// The kernel of every launch of the host program, or of a trace.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        self.plan.program.kernels().chain(self.trace.iter().flat_map(|trace| trace.launched()))
    }

    /// Local memory of a thread in bytes: the most that a kernel of the host program needs. A machine
    /// reserves it for every thread it can hold at once.
    pub fn local_bytes(&self) -> u64 {
        let own = self.plan.program.kernels().map(|kernel| u64::from(kernel.local_bytes)).max();
        self.trace.as_ref().map(|trace| trace.local_bytes()).or(own).unwrap_or(0)
    }

    /// Names of the buffers, in manifest order: what can be dumped, and given an input file.
    pub fn buffer_names(&self) -> impl Iterator<Item = &str> {
        self.plan.manifest.buffers.iter().map(|buffer| buffer.name.as_str())
    }

    /// What is accepted in the PTX files but worth a word, in the order of the files.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        let modules = &self.plan.programs.modules;
        // An instrumented copy of a module warns of the same.
        let earlier =
            |warning: &Diagnostic, number: usize| modules[..number].iter().any(|m| m.warnings.contains(warning));
        let all =
            modules.iter().enumerate().flat_map(|(number, m)| m.warnings.iter().map(move |found| (number, found)));
        let of_trace = self.trace.iter().flat_map(|trace| &trace.warnings);
        all.filter(move |(number, found)| !earlier(found, *number)).map(|(_, found)| found).chain(of_trace)
    }

    /// Names of the figures that the profile's `[expect]`s compare, each once: a run that offers them as
    /// [`Evidence::metrics`] has them judged.
    pub fn metrics(&self) -> Vec<&str> {
        let mut names: Vec<&str> = verdict::expected(&self.plan).map(|expected| expected.metric.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Runs the host program on the functional driver: no time, every kernel to completion.
    ///
    /// # Errors
    /// A fault of the simulated program or of the host program, or `limits` reached; a trace has no values.
    pub fn run_functional(&self, limits: &Limits<'_>) -> Result<FunctionalRun, FunctionalError> {
        self.run_under(limits, Scrutiny::default())
    }

    /// The same, watched for what a program may do wrong without a fault.
    ///
    /// # Errors
    /// As [`Resolved::run_functional`].
    pub fn run_under(&self, limits: &Limits<'_>, scrutiny: Scrutiny) -> Result<FunctionalRun, FunctionalError> {
        if self.is_trace() {
            return Err(FunctionalError::Host("a trace has no values: it cannot be executed".to_owned()));
        }
        functional::run(&self.plan, limits, scrutiny)
    }

    /// What each CTA writes to persistent memory between its persist barriers, on the functional driver.
    ///
    /// # Errors
    /// As [`Resolved::run_functional`].
    pub fn persistent_writes(&self, limits: &Limits<'_>) -> Result<Vec<EpochWrites>, FunctionalError> {
        functional::run_counted(&self.plan, limits)
    }

    /// Forms every kernel that the host program may launch.
    ///
    /// # Errors
    /// All kernels that cannot be formed.
    pub fn form_kernels(&self, options: &RegionOptions) -> Result<Vec<Arc<Formed>>, Diagnostics> {
        Ok(formed::formed_kernels(&self.plan, options)?.iter().map(|(_, formed)| formed.clone()).collect())
    }

    /// The program of formed kernels. Where the extents of a launch follow from what the host reads from the
    /// device, it runs on the functional driver first, under `limits`, to see how large the checkpoint area
    /// must be.
    ///
    /// # Errors
    /// All kernels that cannot be formed; a functional run that fails.
    pub fn formed(&self, options: &RegionOptions, limits: &Limits<'_>) -> Result<FormedProgram, Diagnostics> {
        FormedProgram::new(&self.plan, options, limits)
    }

    /// Takes what a power failure left of a run of formed kernels to the end of the program: final memory,
    /// checkpoint area included. `durable` holds persistent memory as it was recovered; what it lacks is as
    /// before the first step. For many images, [`Resolved::formed`] once and [`FormedProgram::resume`] save
    /// work.
    ///
    /// # Errors
    /// Faults of forming; as [`FormedProgram::resume`].
    pub fn resume(
        &self,
        options: &RegionOptions,
        durable: &FlatMemory,
        limits: &Limits<'_>,
    ) -> Result<FlatMemory, FunctionalError> {
        Ok(self.formed(options, limits)?.resume(durable, limits)?.memory)
    }

    /// Runs the host program with its kernels formed into regions, and as it is.
    ///
    /// # Errors
    /// As [`Resolved::run_functional`]; a kernel that cannot be formed.
    pub fn run_regions(&self, limits: &Limits<'_>, options: &RegionOptions) -> Result<RegionRun, FunctionalError> {
        regions::run_regions(&self.plan, limits, options)
    }

    /// Frees the memory of a functional run that [`Resolved::verify`] can do without when the run is its
    /// evidence: buffers that are not compared, or hold what they held before. [`FunctionalRun::memory`] does
    /// not have them afterwards.
    pub fn forget_unneeded(&self, run: &mut FunctionalRun) {
        let bindings = run.bindings().clone();
        verify::forget_unneeded(&self.plan, run.memory_mut(), &bindings);
    }

    /// Where instruction `pc` of a kernel stands: PTX file, line.
    pub fn source_of(&self, kernel: &str, pc: u32) -> Option<(String, u32)> {
        let kernel = self.plan.program.kernels().find(|candidate| candidate.name == kernel)?;
        Some((kernel.file.to_string(), kernel.pos.get(pc as usize)?.line))
    }

    /// How the kernels were instrumented; `None` where the manifest has no `[instrument]`.
    pub fn settings(&self) -> Option<&Settings> {
        self.plan.settings.as_ref()
    }

    /// What runs at boot after a power failure, if the manifest says so.
    pub fn recovery(&self) -> Option<Recovery> {
        Recovery::new(&self.plan)
    }

    /// The manifest's conditions on what power failures leave.
    pub fn conditions(&self) -> impl Iterator<Item = CrashCondition> {
        (0..self.plan.manifest.conditions.len()).map(|number| CrashCondition::new(&self.plan, number))
    }

    /// The first element within the bytes `found` at an address that differs from those `expected` there;
    /// none where they are of no buffer, or of parts of elements only.
    pub fn wrong_element(&self, address: u64, found: &[u8], expected: &[u8]) -> Option<WrongElement> {
        elements::wrong_element(&self.plan, address, found, expected)
    }

    /// Faults in the names of schemes that conditions give, of which `known` are all there are.
    ///
    /// # Errors
    /// Every unknown name, at its place.
    pub fn check_schemes(&self, known: &[&str]) -> Result<(), Diagnostics> {
        conditions::check_schemes(&self.plan, known)
    }

    /// Whether it has a buffer in persistent memory.
    pub fn has_persistent_memory(&self) -> bool {
        self.plan.addresses.ranges().iter().any(|range| Medium::of(range.start) == Medium::Nvm)
    }

    /// Where transactions keep flags and logs; `None` where none are kept: the manifest has no
    /// `[instrument]`, or no scheme demands it ([`Demands::undo_logs`]). A transaction's `launch` counts the
    /// launches of the host program as it runs, those of generated kernels that log whole buffers too: it is
    /// the number that a machine gives the launch.
    ///
    /// # Errors
    /// An index outside its buffer, or two CTAs that update one element; seen by [`Workload::resolve`]
    /// already unless there are millions of elements.
    pub fn undo(&self) -> Result<Option<Arc<UndoLog>>, Diagnostic> {
        layout::undo(&self.plan)
    }

    /// The bytes that each transaction of [`Resolved::undo`] finds and leaves: those of its slots, one after
    /// the other, before and after its launch on the functional driver.
    ///
    /// # Errors
    /// As [`Resolved::run_functional`] and [`Resolved::undo`].
    pub fn expected(&self, limits: &Limits<'_>) -> Result<Vec<OldAndNew>, FunctionalError> {
        layout::expected(&self.plan, limits)
    }

    /// Name and text of each PTX file as it runs: with its instrumentation, and with generated kernels.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.plan.programs.texts.iter().map(|(file, text)| (file.as_str(), text.as_str()))
    }

    /// The first kernel whose results follow from numbers that only a machine knows, and where it reads one:
    /// two functional runs of machines that differ tell which results.
    pub fn first_machine_read(&self) -> Option<(&Arc<Kernel>, u32)> {
        self.kernels().find_map(|kernel| Some((kernel, machine_reads(kernel).first()?.1)))
    }

    /// Judges the memory at the end of a run.
    pub fn verify(&self, memory: &FlatMemory, bindings: &Bindings, evidence: Evidence<'_>) -> Verification {
        verify::verify(&self.plan, memory, bindings, evidence)
    }

    /// A check against the functional run failed in [`Resolved::verify`].
    pub fn differs_from_functional(&self, verification: &Verification) -> bool {
        verify::differs_from_functional(&self.plan, verification)
    }

    /// The content of the buffer called `name` in `memory`, little-endian.
    ///
    /// # Errors
    /// There is no buffer of that name.
    pub fn dump(&self, name: &str, memory: &FlatMemory, bindings: &Bindings) -> Result<Vec<u8>, Diagnostic> {
        verify::dump(&self.plan, name, memory, bindings)
    }

    /// The workload as it was resolved, for a result file.
    pub fn describe(&self) -> Description {
        let plan = &self.plan;
        let names = &plan.manifest.names;
        let params = plan.manifest.params.iter().enumerate().map(|(number, param)| {
            let value = Value::of_bits(plan.frame[names.param(number)], param.value.ty());
            (param.name.clone(), value)
        });
        let buffers = plan.manifest.buffers.iter().zip(&plan.buffers).map(|(form, allocation)| BufferDescription {
            name: form.name.clone(),
            elements: allocation.len,
            bytes: allocation.bytes,
            space: match form.space {
                // Space as it was in the run: a buffer declared in DRAM lies in persistent memory where the
                // run asked for that.
                Space::Dram if Medium::of(allocation.address) == Medium::Nvm => Space::Pm,
                space => space,
            },
            role: form.role,
            address: allocation.address,
            undo_log_of: form.of.map(|number| plan.manifest.buffers[number].name.clone()),
        });
        Description {
            workload: plan.manifest.name.clone(),
            profile: plan.profile.clone(),
            seed: plan.seed,
            params: params.collect(),
            buffers: buffers.collect(),
            instrument: plan.settings,
            program: None,
            trace: self.trace.as_ref().map(|trace| trace.describe()),
        }
    }
}

impl From<Workload> for Part<Workload> {
    fn from(workload: Workload) -> Self {
        Part::Value(Box::new(workload))
    }
}

impl From<&Workload> for Part<Workload> {
    fn from(workload: &Workload) -> Self {
        workload.clone().into()
    }
}
