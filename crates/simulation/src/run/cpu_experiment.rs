//! A program of CPUs on a machine of CPU cores under a scheme: what to simulate, and how far.

use crate::assemble::{first_place_of_cores, keeps_harts};
use crate::config::presets::DEFAULT_CLUSTER;
use crate::config::{CpuMachine, SchemeConfig};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_persist::Domain;
use durawarp_persist::promises::Survives;
use durawarp_schemes::catalogue;
use durawarp_workload::CpuProgram;

use super::end::Clocks;
use super::extent::Extent;
use super::kept::Fork;
use super::region_of_interest::RegionOfInterest;
use super::regions_of_cores::check_process;

/// What to simulate on a machine of CPU cores, and how far.
#[derive(Debug, Clone)]
pub struct CpuExperiment {
    pub machine: CpuMachine,
    /// The program, with its profile, parameters, arguments and seed.
    pub program: CpuProgram,
    /// The persistency scheme, with its parameters.
    pub scheme: SchemeConfig,
    /// All of its memory is persistent: its main window lies in NVM.
    pub persistent: bool,
    pub extent: Extent,
    /// Stop after this many core cycles.
    pub max_cycles: Option<u64>,
    /// Run the functional driver for checks that compare with it.
    pub reference: bool,
    /// It begins with other parameters.
    pub fork: Option<Fork<CpuExperiment>>,
}

impl CpuExperiment {
    /// An experiment of parts that are read, to its end.
    ///
    /// # Errors
    /// What keeps a run from starting.
    pub fn of_parts(machine: CpuMachine, program: CpuProgram, scheme: SchemeConfig) -> Result<Self, Diagnostics> {
        let machine = under(machine, &scheme);
        let experiment = CpuExperiment {
            machine,
            program,
            persistent: scheme.built.promises().survives == Survives::Registers,
            scheme,
            extent: Extent::Whole,
            max_cycles: None,
            reference: true,
            fork: None,
        };
        experiment.check()?;
        Ok(experiment)
    }

    pub(super) fn clocks(&self) -> Clocks {
        Clocks::of(self.machine.spec.timebase(), self.machine.spec.clock.core_mhz)
    }

    /// Finds what would keep a run from starting: a scheme of other machines, more threads than harts
    /// where they do not share them, clients without a server.
    ///
    /// # Errors
    /// All of them.
    pub fn check(&self) -> Result<(), Diagnostics> {
        let mut faults = Diagnostics::default();
        let scheme = &self.scheme.built;
        if !scheme.machines().cpu {
            let names: Vec<&str> = catalogue::of_cpus().iter().map(|scheme| scheme.name()).collect();
            faults.push(other_machines(scheme.name(), "machines with GPUs", &self.machine.name, &names));
        } else if let Some((key, why)) = scheme.unfit(first_place_of_cores(&self.machine.spec)) {
            faults.push(Diagnostic::nowhere(&key, why));
        }
        self.check_clients(&mut faults);
        if let Some(rule) = scheme.regions().filter(|_| scheme.machines().cpu) {
            let checked = self.program.process().and_then(|process| check_process(&process, rule));
            checked.unwrap_or_else(|found| faults.0.extend(found.0));
        }
        if let Some(why) = keeps_harts(&self.machine.spec, scheme.as_ref())
            && let Err(found) = self.program.fits(&self.machine.name, self.machine.spec.harts(), &why)
        {
            faults.0.extend(found.0);
        }
        faults.into_result(())
    }

    /// Finds what keeps a part of the program from being simulated without the rest.
    ///
    /// # Errors
    /// Several threads; a scheme whose handlers know of every store; several servers, clients; a limit of
    /// cycles; a function that is not there.
    pub(super) fn check_extent(&self) -> Result<(), Diagnostics> {
        let word = match &self.extent {
            Extent::Whole => return Ok(()),
            Extent::Region(_) => "roi",
            Extent::Samples(_) => "sample",
        };
        let mut faults = Diagnostics::default();
        let mut refuse = |message: String, help: &str| {
            faults.push(Diagnostic::nowhere(word, message).with_help(help));
        };
        let (scheme, spec) = (&self.scheme.built, &self.machine.spec);
        if self.program.threads > 1 {
            refuse(
                format!(
                    "`{}` has {} threads: a part of it cannot be simulated without the rest, as its threads wait for each other",
                    self.program.name, self.program.threads
                ),
                "programs of one thread can be: with built-in ones --set params.THREADS=1",
            );
        }
        // Controllers hold stores back there, and registers and undo logs are of all that came before.
        if self.persistent || scheme.regions().is_some() {
            let name = scheme.name();
            let message = format!(
                "under `{name}` all memory is persistent, and what controllers hold of stores before a part is not known"
            );
            refuse(message, "schemes for persistent memory beside main memory can be simulated in part");
        }
        if spec.nodes.servers > 1 || spec.nodes.clients > 0 {
            refuse(
                "servers and clients that others wait for cannot be simulated in part".to_owned(),
                "machines of one server without clients can be",
            );
        }
        if self.max_cycles.is_some() {
            refuse("a part of a program ends with it, and not after cycles".to_owned(), "take out `max_cycles`");
        }
        // What a function is called is known before anything runs.
        if let Extent::Region(RegionOfInterest::Function(name)) = &self.extent {
            let functions = &self.program.image.functions;
            if !functions.iter().any(|function| function.name == *name) {
                let message =
                    format!("`{}` has no function `{name}`, or its compiler has inlined it", self.program.name);
                let names = functions.iter().map(|function| function.name.as_str());
                faults.push(Diagnostic::nowhere(word, message).with_nearest(name, names));
            }
        }
        faults.into_result(())
    }

    /// Clients are there where the workload is of clients, and somebody persists what they post.
    fn check_clients(&self, faults: &mut Diagnostics) {
        let scheme = &self.scheme.built;
        let nodes = &self.machine.spec.nodes;
        let (place, clients) = (first_place_of_cores(&self.machine.spec), nodes.clients);
        let of_clients = self.program.clients.iter().any(|setting| setting.over.key.starts_with("client."));
        if clients == 0 && of_clients {
            let message = format!(
                "workload `{}` is of clients over the network, and machine `{}` has none",
                self.program.name, self.machine.name
            );
            let help = format!("{DEFAULT_CLUSTER} has clients: --machine {DEFAULT_CLUSTER}");
            faults.push(Diagnostic::nowhere("--machine", message).with_help(help));
        }
        if place.channels > 0 && scheme.nic_handler(place).is_none() {
            let posting = match clients {
                0 => "links between its servers".to_owned(),
                _ => format!("{clients} clients"),
            };
            let message = format!(
                "`{}` has {posting}, and under `{}` no server persists what they post",
                self.machine.name,
                scheme.name()
            );
            let help = "persist buffers for clients and peers have the schemes epoch and broi; nodes.clients=0 is the machine alone";
            faults.push(Diagnostic::nowhere("--scheme", message).with_help(help));
        }
    }
}

/// The machine as the scheme has it: where caches survive a power failure, that is the machine's domain.
fn under(mut machine: CpuMachine, scheme: &SchemeConfig) -> CpuMachine {
    if scheme.built.promises().survives == Survives::Caches && machine.spec.persist.domain != Domain::Eadr {
        machine.spec.persist.domain = Domain::Eadr;
        let source = format!("scheme {}: caches survive", scheme.built.name());
        machine.sources.insert("persist.domain".to_owned(), source);
    }
    machine
}

/// A scheme that is not for the machine, and those that are.
pub(super) fn other_machines(scheme: &str, of: &str, machine: &str, fitting: &[&str]) -> Diagnostic {
    let message = format!("scheme `{scheme}` is for {of}, which `{machine}` is not");
    Diagnostic::nowhere("--scheme", message).with_help(format!("for `{machine}` there are {}", fitting.join(", ")))
}
