//! What to run: from figures to runs, each once, whatever number of figures and kernels need it.
//!
//! The protocol is that of the paper unless chosen otherwise: every update of data is a log update too (Fig. 1 writes the
//! log's location in its loop, and Table II counts it), and no barrier follows the flag. Figures that count line accesses
//! (Table II, Fig. 4) coalesce by half-warps, as the published counts do; the others as the machine says.

use super::figure::Figure;
use super::kernels::PaperKernel;
use crate::config::{MachineConfig, Override, SchemeConfig};
use crate::diagnostic::Diagnostics;
use crate::run::Experiment;
use crate::schemes::catalogue;
use crate::sweep::Point;
use crate::workload::{Choice, FlagBarrier, Mode, Overrides, Resolved, Workload};

/// The schemes of Fig. 7, `base` first.
pub const SCHEMES: [&str; 7] = ["base", "nt-store", "store+clwb", "themis", "pmem-spec", "bucl", "agpm"];

/// How undo logging is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    /// Every update is logged, not only the first.
    pub loop_log: bool,
    /// Whether CTAs wait for their flag.
    pub flag_barrier: FlagBarrier,
}

impl Default for Protocol {
    /// As published.
    fn default() -> Self {
        Protocol { loop_log: true, flag_barrier: FlagBarrier::Paper }
    }
}

/// What is to be reproduced, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// Figures, each once.
    pub figures: Vec<Figure>,
    /// Kernels of the paper.
    pub kernels: Vec<&'static PaperKernel>,
    /// Profile of the workloads.
    pub profile: String,
    /// Machine: a name or a file, and changes to it.
    pub machine: String,
    /// Changes to the machine.
    pub set: Vec<Override>,
    /// Changes to schemes.
    pub scheme_set: Vec<Override>,
    /// Seed of random contents.
    pub seed: u64,
    /// How undo logging is done.
    pub protocol: Protocol,
}

impl Request {
    /// In words: name and value of each setting.
    pub fn settings(&self) -> Vec<(String, String)> {
        let changes = |set: &[Override]| match set {
            [] => "none".to_owned(),
            set => set.iter().map(|over| format!("{}={}", over.key, over.value)).collect::<Vec<_>>().join(", "),
        };
        let kernels: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name).collect();
        let barrier = if self.protocol.flag_barrier == FlagBarrier::Paper { "paper" } else { "safe" };
        let pairs = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("machine", self.machine.clone()),
            ("changes to it", changes(&self.set)),
            ("changes to schemes", changes(&self.scheme_set)),
            ("profile", self.profile.clone()),
            ("seed", self.seed.to_string()),
            ("every update is logged", self.protocol.loop_log.to_string()),
            ("barrier behind the flag", barrier.to_owned()),
            ("kernels", kernels.join(", ")),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// A way to count localities: AGPM's buffers count whole launches, every SM has one, and nothing is ever too much for
/// them; the readings differ in which address a log update is found by, what counts as one, and what counts as a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What it is called.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// Parameters of `agpm`.
    set: [&'static str; 3],
}

/// Parameters of every reading: Table II is taken under store+clwb, over whole kernels.
const OBSERVED: [&str; 8] = [
    "agpm.path=temporal",
    "agpm.statistics=hits",
    "agpm.threshold_rule=fixed",
    "agpm.threshold_logs=1000000000",
    "agpm.small_threshold_logs=1000000000",
    "agpm.least_threshold_logs=1000000000",
    "agpm.l1_buffers=each",
    "agpm.entries=1048576",
];

/// Readings of Table II's localities, the specification's default first.
pub const READINGS: [Reading; 4] = [
    Reading {
        name: "home",
        meaning: "log updates by the address of the element they save; all stores to persistent memory are log updates",
        set: ["agpm.key=home", "agpm.counted=requests", "agpm.hit=shadow"],
    },
    Reading {
        name: "home, logs alone",
        meaning: "the same, but stores of data are no log updates",
        set: ["agpm.key=home", "agpm.counted=log_updates", "agpm.hit=shadow"],
    },
    Reading {
        name: "own address",
        meaning: "every store to persistent memory is a log update, by its own address",
        set: ["agpm.key=slot", "agpm.counted=requests", "agpm.hit=shadow"],
    },
    Reading {
        name: "own address, in the cache",
        meaning: "the same, and what does not hit in the cache of that level does not count",
        set: ["agpm.key=slot", "agpm.counted=requests", "agpm.hit=cache"],
    },
];

/// What tells a run from the others of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Workload.
    pub workload: &'static str,
    /// Scheme.
    pub scheme: &'static str,
    /// Half-warps are coalesced by themselves.
    pub legacy: bool,
    /// `agpm` counts localities, by this reading.
    pub reading: Option<&'static Reading>,
}

/// The runs of a request.
#[derive(Debug)]
pub struct Plan {
    request: Request,
    points: Vec<Point>,
    keys: Vec<Key>,
    notes: Vec<String>,
}

/// The runs that a figure needs of a workload.
fn needs(figure: Figure) -> (&'static [&'static str], bool) {
    match figure {
        Figure::Fig3 | Figure::Fig5 => (&SCHEMES[..3], false),
        Figure::Fig7 => (&SCHEMES, false),
        Figure::Fig4 | Figure::Table2 => (&["store+clwb"], true),
        Figure::Table3 | Figure::Overheads => (&[], false),
    }
}

/// A scheme as it is, or counting localities.
fn observing(scheme: &SchemeConfig, reading: Option<&Reading>) -> Result<SchemeConfig, Diagnostics> {
    let Some(reading) = reading else { return Ok(scheme.clone()) };
    let set = OBSERVED.iter().chain(&reading.set).filter_map(|text| Override::parse(text).ok());
    SchemeConfig::load(scheme.built.name(), &set.collect::<Vec<_>>())
}

impl Plan {
    /// Resolves everything that the request needs; every fault at once.
    ///
    /// # Errors
    /// The machine or a workload does not load.
    pub fn new(request: Request) -> Result<Self, Diagnostics> {
        let mut faults = Diagnostics::default();
        let mut load = |extra: &[&str]| {
            let more = extra.iter().filter_map(|text| Override::parse(text).ok());
            let set: Vec<Override> = request.set.iter().cloned().chain(more).collect();
            MachineConfig::load(&request.machine, &set).map_err(|found| faults.0.extend(found.0)).ok()
        };
        let machines = [load(&[]), load(&["sm.coalescer=half_warp_legacy"])];
        let [Some(plain), Some(legacy)] = machines else { return Err(faults) };
        let schemes = Self::schemes(&request.scheme_set)?;
        let mut plan = Plan { request, points: Vec::new(), keys: Vec::new(), notes: Vec::new() };
        for (name, work) in plan.workloads() {
            let loaded = match Workload::load(name) {
                Ok(loaded) => loaded,
                Err(found) => {
                    faults.0.extend(found.0);
                    continue;
                }
            };
            // Runs of a workload that log, and those that do not, share their contents.
            let mut resolved: [Option<Resolved>; 2] = [None, None];
            for key in plan.keys_of(name) {
                let known = schemes.iter().find(|scheme| scheme.built.name() == key.scheme);
                let Some(scheme) = known.map(|scheme| observing(scheme, key.reading)).transpose()? else {
                    plan.note(format!("scheme `{}` is not there yet: left out", key.scheme));
                    continue;
                };
                let logs = scheme.built.logs();
                let slot = &mut resolved[usize::from(logs)];
                if slot.is_none() {
                    match loaded.resolve(&plan.choice(&loaded, logs)) {
                        Ok(found) => *slot = Some(found),
                        Err(found) => {
                            faults.0.extend(found.0);
                            break;
                        }
                    }
                }
                let Some(workload) = slot.clone() else { continue };
                let machine = if key.legacy { legacy.clone() } else { plain.clone() };
                let experiment = Experiment { machine, workload, scheme, max_cycles: None, reference: false };
                let reading = key.reading.map_or_else(String::new, |reading| format!(" counting {}", reading.name));
                let label = format!("{name} {}{}{reading}", key.scheme, if key.legacy { " half-warps" } else { "" });
                plan.points.push(Point::new(label, experiment, work));
                plan.keys.push(key);
            }
        }
        faults.into_result(plan)
    }

    /// The schemes of the figures that the catalogue has, with changes to them.
    fn schemes(set: &[Override]) -> Result<Vec<SchemeConfig>, Diagnostics> {
        let there = SCHEMES.into_iter().filter(|name| catalogue::find(name).is_ok());
        SchemeConfig::load_each(&there.collect::<Vec<_>>(), set)
    }

    /// Workloads of the kernels, each once, with their work.
    fn workloads(&self) -> Vec<(&'static str, u64)> {
        let mut all: Vec<(&'static str, u64)> = Vec::new();
        for kernel in &self.request.kernels {
            if all.iter().all(|(name, ..)| *name != kernel.workload) {
                all.push((kernel.workload, kernel.work));
            }
        }
        all
    }

    /// Runs of a workload, each once.
    fn keys_of(&self, workload: &'static str) -> Vec<Key> {
        let mut keys = Vec::new();
        for &figure in &self.request.figures {
            let (schemes, legacy) = needs(figure);
            for &scheme in schemes {
                let key = Key { workload, scheme, legacy, reading: None };
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            if figure == Figure::Table2 {
                let counting = |reading| Key { workload, scheme: "agpm", legacy: false, reading: Some(reading) };
                keys.extend(READINGS.iter().map(counting));
            }
        }
        keys
    }

    fn choice(&self, workload: &Workload, logs: bool) -> Choice {
        let Protocol { loop_log, flag_barrier } = self.request.protocol;
        // What is not instrumented has nothing to change.
        let instrument = match workload.instrument() {
            Mode::None => Overrides::default(),
            _ => Overrides { mode: None, flag_barrier: Some(flag_barrier), loop_log: Some(loop_log) },
        };
        let profile = Some(self.request.profile.clone());
        Choice { profile, seed: self.request.seed, logs, instrument, ..Choice::default() }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What to run.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Which run each point is.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// What was left out.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels;
    use super::*;

    fn plan(figures: &[Figure], names: &[&str]) -> Plan {
        let kernels = names.iter().map(|name| kernels::find(name).unwrap()).collect();
        let request = Request {
            figures: figures.to_vec(),
            kernels,
            profile: "ci".to_owned(),
            machine: "agpm-table4".to_owned(),
            set: Vec::new(),
            scheme_set: Vec::new(),
            seed: 0,
            protocol: Protocol::default(),
        };
        Plan::new(request).unwrap_or_else(|faults| panic!("{faults}"))
    }

    #[test]
    fn figures_and_kernels_share_their_runs() {
        let both = plan(&[Figure::Fig3, Figure::Fig5], &["ATAX1", "ATAX2", "BFS"]);
        assert_eq!(both.points().len(), 2 * 3);
        let counted = plan(&[Figure::Fig3, Figure::Fig4, Figure::Table2], &["ATAX1"]);
        assert_eq!(counted.points().len(), 3 + 1 + READINGS.len());
        assert_eq!(counted.keys()[3], Key { workload: "atax", scheme: "store+clwb", legacy: true, reading: None });
        assert!(plan(&[Figure::Table3, Figure::Overheads], &["ATAX1"]).points().is_empty());
    }

    #[test]
    fn faults_are_told_before_anything_runs() {
        let mut request = plan(&[Figure::Fig3], &["ATAX1"]).request().clone();
        request.profile = "papper".to_owned();
        let faults = Plan::new(request).unwrap_err().to_string();
        assert!(faults.contains("papper"), "{faults}");
    }
}
