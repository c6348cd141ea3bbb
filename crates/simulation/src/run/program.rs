//! An experiment, and what its machine runs: the workload's host program as it is, or with formed kernels and
//! a checkpoint area under a scheme of recoverable regions.
//!
//! Here the words of the scheme (`persist`) become those of the compiler (`kernel::regions`), which do not
//! know each other.

use std::sync::atomic::AtomicBool;

use super::cpu_experiment::other_machines;
use super::kept::Fork;
use crate::assemble::first_place;
use crate::config::presets::MACHINES;
use crate::config::{MachineConfig, SchemeConfig, has_tensor_cores, has_tensor_memory, has_warp_groups};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::functional::Limits;
use durawarp_kernel::host::{HostAction, HostProgram};
use durawarp_kernel::ir::{BulkKind, Class, GroupProduct, GroupStep, Inst, Kernel, Op, TensorStep, TracedTensor};
use durawarp_kernel::memory::FlatMemory;
use durawarp_kernel::regions::RegionOptions;
use durawarp_machine::sm::TensorSpec;
use durawarp_persist::Scheme;
use durawarp_persist::vocab::{Domain, RegionRule};
use durawarp_schemes::catalogue::{self, Entry};
use durawarp_workload::{Bindings, Demands, FormedProgram, Resolved};

/// Lanes of a warp in a trace.
const TRACED_WARP: u32 = 32;

/// What to simulate, and how far. [`Experiment::of`] begins the [`Recipe`](super::Recipe) that makes one.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub machine: MachineConfig,
    /// The workload, with its profile, parameters, inputs and seed.
    pub workload: Resolved,
    /// The persistency scheme, with its parameters.
    pub scheme: SchemeConfig,
    /// Stop after this many core cycles, [`MAX_CORE_CYCLES`](durawarp_machine::MAX_CORE_CYCLES) at most;
    /// events at that cycle are still handled.
    pub max_cycles: Option<u64>,
    /// Compare the final memory with that of the functional driver.
    pub reference: bool,
    /// Count by launch, too ([`Conduct::launches`](super::Conduct::launches)).
    pub launches: bool,
    /// Simulate a sample in detail and predict the rest: so many samples of a launch of many waves of CTAs.
    pub sample: Option<u32>,
    /// It begins with other parameters.
    pub fork: Option<Fork<Experiment>>,
}

/// How a scheme of recoverable regions has kernels formed.
pub fn region_options(rule: RegionRule) -> RegionOptions {
    RegionOptions {
        threshold_stores: rule.threshold_stores,
        unroll: rule.unroll,
        speculative_unroll: rule.speculative_unroll,
        unroll_factor: rule.unroll_factor,
        prune: rule.prune,
        after_sync: rule.after_sync,
        // The paper's system has no memory that does not persist.
        scratch: true,
        uniform_once: rule.uniform_once,
    }
}

/// What a scheme makes of the programs that run under it.
pub fn demands(scheme: &dyn Scheme) -> Demands {
    Demands { undo_logs: scheme.logs(), persistent: scheme.regions().is_some() }
}

/// The first instruction of each kernel that is `wanted`, by its place in the text; a kernel of several
/// launches once.
fn first_of_each(workload: &Resolved, wanted: impl Fn(&Kernel, usize) -> bool) -> Vec<(&Kernel, String)> {
    let mut found: Vec<(&Kernel, String)> = Vec::new();
    for kernel in workload.kernels() {
        let pc = (0..kernel.code.len()).find(|&pc| wanted(kernel, pc));
        if let Some(pc) = pc.filter(|_| found.iter().all(|(seen, _)| seen.name != kernel.name)) {
            let pos = kernel.pos[pc];
            found.push((kernel, format!("{}:{}:{}", kernel.file, pos.line, pos.column)));
        }
    }
    found
}

/// What only some machines with tensor cores have.
#[derive(Clone, Copy)]
struct Rare {
    what: &'static str,
    /// The machine lacks what an instruction of a kernel takes.
    lacks: fn(&Kernel, &Inst, &TensorSpec) -> bool,
    has: fn(&str) -> bool,
    /// An opcode of a trace that a table lets pass.
    passes: &'static str,
}

const RARE: [Rare; 2] = [
    Rare {
        what: "a product of four warps (wgmma)",
        lacks: |kernel, inst, tensor| {
            let product = kernel.group_products.get(inst.imm as usize);
            let has = |product: &GroupProduct| tensor.has_groups() && tensor.group_rate(product.elements) > 0;
            inst.op == Op::WarpGroup(GroupStep::Multiply) && !product.is_some_and(has)
        },
        has: has_warp_groups,
        passes: "HGMMA",
    },
    Rare {
        what: "tensor memory (tcgen05)",
        lacks: |_, inst, tensor| match inst.op {
            Op::Tensor(step)
                if step.copies().is_some() || matches!(step, TensorStep::Traced(TracedTensor::Copy { .. })) =>
            {
                !tensor.has_memory() || tensor.memory_copy_bytes == 0
            }
            // Of a trace, where nothing is stored there either.
            Op::Tensor(TensorStep::Traced(TracedTensor::WaitStores)) => false,
            Op::Tensor(step) => {
                let has_rate = |elements| tensor.group_rate(elements) > 0;
                !tensor.has_memory() || !step.elements().is_none_or(has_rate)
            }
            _ => false,
        },
        has: has_tensor_memory,
        passes: "UTCHMMA",
    },
];

/// The first instruction of each kernel that takes something rare which the machine lacks; a kernel of
/// several launches once.
fn rare_missing(workload: &Resolved, machine: &MachineConfig, rare: Rare) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for (kernel, place) in
        first_of_each(workload, |kernel, pc| (rare.lacks)(kernel, &kernel.code[pc], &machine.spec.tensor))
    {
        // Only now: to ask the machines is to read them all.
        let names: Vec<&str> = MACHINES.iter().map(|(name, _)| *name).filter(|name| (rare.has)(name)).collect();
        let message = format!(
            "kernel `{}` has {} here, which {} has not; machines that have: {}",
            kernel.name,
            rare.what,
            machine.name,
            names.join(", ")
        );
        let fault = Diagnostic::nowhere(&place, message);
        faults.push(match workload.is_trace() {
            true => fault.with_help(format!(
                "`{} = \"NOP\"` in a file of `--opcodes` lets such products pass without time",
                rare.passes
            )),
            false => fault,
        });
    }
    faults
}

/// The first instruction of each kernel that takes tensor cores, or a copy past the registers, which the same
/// machines have; a kernel of several launches once.
fn tensor_cores_missing(workload: &Resolved, machine: &str) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for (kernel, place) in first_of_each(workload, |kernel, pc| {
        // An instruction of a trace has no operation, and its class says the unit.
        kernel.code[pc].op.is_of_tensor_cores() || matches!(kernel.class[pc], Class::Matrix | Class::MatrixHalf)
    }) {
        let names: Vec<&str> = MACHINES.iter().map(|(name, _)| *name).filter(|name| has_tensor_cores(name)).collect();
        let message = format!(
            "kernel `{}` multiplies matrices or copies asynchronously here, and {machine} has no tensor cores \
             (tensor.matrix_cycles is 0); machines that have: {}",
            kernel.name,
            names.join(", ")
        );
        let fault = Diagnostic::nowhere(&place, message);
        faults.push(match workload.is_trace() {
            true => fault.with_help("`HMMA = \"FFMA\"` in a file of `--opcodes` times such products on other units"),
            false => fault,
        });
    }
    faults
}

/// The first bulk reduction of each kernel. It is performed line by line after its region has its number:
/// with an order for each SM nobody keeps the lines for it meanwhile.
fn reductions_in_orders_of_sms(workload: &Resolved, scheme: &str) -> Vec<Diagnostic> {
    let mut faults: Vec<Diagnostic> = Vec::new();
    for (kernel, place) in first_of_each(
        workload,
        |kernel, pc| matches!(kernel.code[pc].op, Op::Bulk(bulk) if bulk.kind == BulkKind::Reduce),
    ) {
        let message = format!(
            "kernel `{}` reduces in bulk here, and `{scheme}` has an order of regions for each SM: atomics of others \
             on its lines may be performed in another order than their regions have",
            kernel.name
        );
        faults.push(
            Diagnostic::nowhere(&place, message).with_help("`light_wsp.order = \"global\"` keeps its lines for it"),
        );
    }
    faults
}

impl Experiment {
    /// An experiment of parts that are read, to its end and compared with the functional reference. The
    /// workload was resolved for what the scheme demands.
    ///
    /// # Errors
    /// It was resolved for something else; what keeps a run from starting.
    pub fn of_resolved(machine: MachineConfig, workload: Resolved, scheme: SchemeConfig) -> Result<Self, Diagnostics> {
        let (max_cycles, sample, fork) = (None, None, None);
        let experiment =
            Experiment { machine, workload, scheme, max_cycles, reference: true, launches: false, sample, fork };
        experiment.check()?;
        Ok(experiment)
    }

    /// Finds what would keep a run from starting: a machine or a domain that the scheme cannot do with,
    /// kernels that its compiler cannot form.
    ///
    /// # Errors
    /// All of them.
    pub fn check(&self) -> Result<(), Diagnostics> {
        let mut faults = Diagnostics::default();
        if self.workload.demands() != demands(&*self.scheme.built) {
            faults.push(self.other_demands());
            return faults.into_result(());
        }
        // Schemes of the caller's own are in no catalogue: they say themselves what they are for.
        if !self.scheme.built.machines().gpu {
            let names: Vec<&str> =
                catalogue::entries().iter().filter(|entry| entry.scheme.machines().gpu).map(Entry::name).collect();
            let (scheme, machine) = (self.scheme.built.name(), &self.machine.name);
            faults.push(other_machines(scheme, "machines of CPU cores", machine, &names));
        } else if let Some((key, why)) = self.scheme.built.unfit(first_place(&self.machine.spec)) {
            faults.push(Diagnostic::nowhere(&key, why));
        }
        if self.workload.is_trace() && self.machine.spec.sm.warp_size != TRACED_WARP {
            let message = format!(
                "is {}, and the warps of a trace have {TRACED_WARP} lanes, as those of NVIDIA's GPUs",
                self.machine.spec.sm.warp_size
            );
            faults.push(Diagnostic::nowhere("sm.warp_size", message));
        }
        if !self.machine.spec.tensor.is_present() {
            tensor_cores_missing(&self.workload, &self.machine.name).into_iter().for_each(|fault| faults.push(fault));
        } else {
            let missing = RARE.into_iter().flat_map(|rare| rare_missing(&self.workload, &self.machine, rare));
            missing.for_each(|fault| faults.push(fault));
        }
        // What follows is asked by schemes of recoverable regions alone.
        let Some(rule) = self.scheme.built.regions() else { return faults.into_result(()) };
        if rule.by_sm {
            let reductions = reductions_in_orders_of_sms(&self.workload, self.scheme.built.name());
            reductions.into_iter().for_each(|fault| faults.push(fault));
        }
        let domain = self.machine.spec.persist.domain;
        if domain != Domain::Adr {
            let message = format!(
                "is \"{}\", but {} builds on write-pending queues that survive a power failure, and on caches that do not: \"adr\"",
                domain.name(),
                self.scheme.built.name()
            );
            faults.push(Diagnostic::nowhere("persist.domain", message));
        }
        if let Err(unformed) = self.workload.form_kernels(&region_options(rule)) {
            unformed.0.into_iter().for_each(|fault| faults.push(fault));
        }
        faults.into_result(())
    }

    /// Finds what keeps a run of it from being sampled.
    ///
    /// # Errors
    /// All of it.
    pub(super) fn check_sample(&self) -> Result<(), Diagnostics> {
        let mut faults = Diagnostics::default();
        if self.sample.is_none() {
            return faults.into_result(());
        }
        if self.scheme.built.regions().is_some() {
            let message = format!(
                "under `{}` programs are formed into recoverable regions, which cannot be sampled: what a controller holds \
                 back at one point depends on all that came before",
                self.scheme.built.name()
            );
            faults.push(Diagnostic::nowhere("sample", message));
        }
        if self.workload.is_trace() {
            let message = "a trace cannot be sampled: it has no values that the functional driver could compute";
            faults.push(Diagnostic::nowhere("sample", message));
        }
        if self.max_cycles.is_some() {
            let message = "a sampled run has no cycles to stop after: its time is an estimate of the whole";
            faults.push(Diagnostic::nowhere("sample", message).with_help("take out `max_cycles`"));
        }
        faults.into_result(())
    }

    fn other_demands(&self) -> Diagnostic {
        let name = |demands: Demands| match demands {
            Demands { undo_logs: true, .. } => "a scheme that keeps undo logs",
            Demands { persistent: true, .. } => "a scheme under which all memory is persistent",
            _ => "a scheme that demands nothing of programs",
        };
        let (found, scheme) = (name(self.workload.demands()), self.scheme.built.name());
        let message =
            format!("the workload was resolved for {found}, `{scheme}` is {}", name(demands(&*self.scheme.built)));
        Diagnostic::nowhere(&self.workload.describe().workload, message).with_help("`Experiment::of` resolves it")
    }

    /// The program of formed kernels that runs under a scheme of recoverable regions; none under others.
    ///
    /// # Errors
    /// As [`formed`](durawarp_workload::Resolved::formed) of a workload.
    pub fn formed(&self, stop: Option<&AtomicBool>) -> Result<Option<FormedProgram>, Diagnostics> {
        let Some(rule) = self.scheme.built.regions() else { return Ok(None) };
        let limits = Limits { warp_size: self.machine.spec.sm.warp_size, stop, ..Limits::default() };
        self.workload.formed(&region_options(rule), &limits).map(Some)
    }
}

/// What the machine is given.
pub(super) struct Program {
    pub(super) formed: Option<FormedProgram>,
    pub(super) host: Box<dyn HostProgram>,
    pub(super) bindings: Bindings,
}

impl Experiment {
    /// What memory holds before the first step of its program, which may be one of kernels in regions.
    pub(super) fn image(&self, formed: Option<&FormedProgram>) -> FlatMemory {
        formed.map_or_else(|| self.workload.image(), FormedProgram::image)
    }
}

impl Program {
    pub(super) fn of(experiment: &Experiment, stop: Option<&AtomicBool>) -> Program {
        // Its parts may have been exchanged since it was made.
        let same = experiment.workload.demands() == demands(&*experiment.scheme.built);
        let formed = if same { experiment.formed(stop) } else { Err(experiment.other_demands().into()) };
        match formed {
            Ok(Some(formed)) => {
                let host = formed.host();
                Program { bindings: host.bindings(), host: Box::new(host), formed: Some(formed) }
            }
            Ok(None) => {
                let host = experiment.workload.host();
                let bindings = host.bindings();
                let host = experiment.workload.trace_host().unwrap_or_else(|| Box::new(host));
                Program { bindings, host, formed: None }
            }
            // An experiment whose parts were exchanged is refused by the run.
            Err(faults) => Program::refused(experiment, faults.to_string()),
        }
    }

    /// One that fails before its first step, as the experiment cannot be run: why.
    pub(super) fn refused(experiment: &Experiment, why: String) -> Program {
        Program { formed: None, host: Box::new(Refused(why)), bindings: experiment.workload.host().bindings() }
    }
}

/// A host program that cannot begin.
#[derive(Debug)]
struct Refused(String);

impl HostProgram for Refused {
    fn next(&mut self, _: Option<u64>) -> Result<HostAction, String> {
        Err(self.0.clone())
    }
}
