//! Walks a program on the functional driver and feeds a machine the parts of it that the plan picks.
//!
//! Every launch is executed functionally, so that values and final memory are those of the reference. After
//! what the machine does not run, its memory is brought to what the functional driver has.

use std::ops::Range;
use std::sync::Arc;

use super::super::conduct::Conduct;
use super::super::end::Clocks;
use super::super::estimate::{Model, Predicted, Unit};
use super::super::program::Experiment;
use super::detail::{CountedPart, Detail};
use super::plan::{Cut, Group, PROBE_WAVES, turnover};
use crate::outcome::End;
use durawarp_engine::Time;
use durawarp_kernel::functional::{self, Counts, Limits};
use durawarp_kernel::host::{HostAction, HostProgram as _};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::carveout::Carveout;
use durawarp_machine::occupancy::Occupancy;
use durawarp_workload::{FunctionalError, apply};

/// How a launch came by its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LaunchWay {
    /// Predicted from others of its group.
    Skipped,
    /// Simulated as a whole.
    Whole,
    /// Head, samples and tail were simulated; waves between them are predicted.
    Cut(Box<CutLaunch>),
}

/// A launch of which head, samples and tail were simulated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CutLaunch {
    pub(super) cut: Cut,
    /// Warp instructions of each wave before the tail.
    pub(super) waves: Vec<u64>,
    /// Ticks of each sample.
    pub(super) samples: Vec<Time>,
}

impl CutLaunch {
    /// CTAs whose time was counted in detail.
    pub(super) fn ctas(&self) -> u64 {
        let Cut { wave_ctas, head, ref samples, sample_waves, tail, ctas, .. } = self.cut;
        (head + samples.len() as u64 * sample_waves) * wave_ctas + ctas - tail * wave_ctas
    }

    /// The time of the waves that were not counted, from those of the samples; the samples' own beside it.
    pub(super) fn rest(&self) -> Predicted {
        let Cut { head, ref samples, sample_waves, tail, .. } = self.cut;
        let size = |wave: u64| self.waves[wave as usize] as f64;
        let unit = |(&first, &ticks): (&u64, &Time)| {
            let waves = first..first + sample_waves;
            Unit { size: waves.map(size).sum::<f64>() / sample_waves as f64, ticks: ticks as f64 / sample_waves as f64 }
        };
        let known: Vec<Unit> = samples.iter().zip(&self.samples).map(unit).collect();
        let sampled = |wave: &u64| samples.iter().any(|first| (*first..first + sample_waves).contains(wave));
        let others = (head..tail).filter(|wave| !sampled(wave)).map(size);
        let own: Time = self.samples.iter().sum();
        let rest = Model::of(&known, sample_waves).map_or_else(Predicted::default, |model| model.sum(others));
        rest.plus(Predicted { ticks: own as f64, ..Predicted::default() })
    }
}

/// A launch of a sampled run.
#[derive(Debug, Clone)]
pub(super) struct SampledLaunch {
    pub(super) group: usize,
    pub(super) occupancy: Occupancy,
    pub(super) carveout: Option<Carveout>,
    /// Warp instructions.
    pub(super) instructions: u64,
    pub(super) way: LaunchWay,
    /// From its start to that of the next, as far as it was simulated, but for samples; the same without what
    /// the host did after it.
    pub(super) ticks: Time,
    pub(super) own_ticks: Time,
}

/// What the walk has come to.
pub(super) struct SampledWalk<'a> {
    experiment: &'a Experiment,
    conduct: &'a Conduct<'a>,
    clocks: Clocks,
    windows: u64,
    limits: Limits<'a>,
    pub(super) memory: FlatMemory,
    memory_bytes: u64,
    pub(super) detail: Detail,
    /// The machine's memory is not that of the program: something was skipped.
    stale: bool,
    pub(super) groups: Vec<Group>,
    pub(super) launches: Vec<SampledLaunch>,
    /// Until the first launch; all of a program without launches. In ticks.
    pub(super) before_ticks: Time,
    /// Stretches of detail, with something skipped between them.
    pub(super) stretches: u64,
}

/// Why a walk ended early.
pub(super) enum Ended {
    /// On the functional driver.
    Functional(FunctionalError),
    /// In detail, on the machine of the run or of a probe.
    Detail(End),
}

impl From<FunctionalError> for Ended {
    fn from(error: FunctionalError) -> Self {
        Ended::Functional(error)
    }
}

impl<'a> SampledWalk<'a> {
    pub(super) fn new(experiment: &'a Experiment, conduct: &'a Conduct<'a>, clocks: Clocks, windows: u32) -> Self {
        let limits = Limits {
            warp_size: experiment.machine.spec.sm.warp_size,
            stop: conduct.stop,
            drops_log_stores: experiment.scheme.built.drops_log_stores(),
            ..Limits::default()
        };
        let memory = experiment.workload.image();
        SampledWalk {
            experiment,
            conduct,
            clocks,
            windows: u64::from(windows),
            limits,
            memory_bytes: experiment.workload.addresses().ranges().iter().map(|range| range.bytes).sum(),
            detail: Detail::new(experiment, memory.clone(), clocks),
            stale: false,
            memory,
            groups: Vec::new(),
            launches: Vec::new(),
            before_ticks: 0,
            stretches: 1,
        }
    }

    /// Walks to the program's end; the host program then has its final bindings.
    pub(super) fn walk(&mut self, host: &mut durawarp_workload::WorkloadHost) -> Result<(), Ended> {
        let mut read = None;
        loop {
            match host.next(read.take()).map_err(FunctionalError::Host)? {
                HostAction::Launch(launch) => self.launch(launch)?,
                HostAction::Done => return self.finish(),
                action => {
                    read = apply(&action, &mut self.memory)?;
                    // What launches were skipped before is part of their time.
                    if !self.stale {
                        self.detail.push(action);
                    }
                }
            }
        }
    }

    fn launch(&mut self, launch: Arc<Launch>) -> Result<(), Ended> {
        let spec = &self.experiment.machine.spec;
        let occupancy = Occupancy::of(&launch, &spec.sm, &spec.shared, &spec.l1).map_err(FunctionalError::Host)?;
        let carveout = Carveout::of(&launch, occupancy.ctas, &spec.shared, &spec.l1);
        let wave = u64::from(occupancy.ctas) * u64::from(spec.sm.count);
        let group = self.group(&launch);
        let index = self.groups[group].count;
        self.groups[group].count += 1;
        let picked = self.groups[group].picks(index);
        // A large launch warms up by itself.
        let warms_next = self.groups[group].picks(index + 1) && launch.ctas() <= 4 * wave;
        let number = self.launches.len();
        let way = LaunchWay::Skipped;
        self.launches.push(SampledLaunch { group, occupancy, carveout, instructions: 0, way, ticks: 0, own_ticks: 0 });
        if !picked && !warms_next {
            if !std::mem::replace(&mut self.stale, true) {
                self.came_through(|detail, conduct| detail.close(conduct))?;
            }
            self.launches[number].instructions = self.execute(&launch, 0..launch.ctas())?.warp_instructions;
            return Ok(());
        }
        // What was skipped has changed memory: the machine takes that over before it goes on.
        let cold = std::mem::take(&mut self.stale);
        if cold {
            self.detail.replace(self.memory.clone());
            self.stretches += 1;
        }
        let cut = if picked { self.plan_cut(&launch, group, wave)? } else { None };
        let was_cut = cut.is_some();
        match cut {
            Some(cut) => self.cut(&launch, number, cut)?,
            None => {
                // Right after something skipped, a launch that only warms up the next is not as in the
                // program.
                let counted = if picked || !cold { CountedPart::Whole } else { CountedPart::Nothing };
                if counted == CountedPart::Whole {
                    self.launches[number].way = LaunchWay::Whole;
                }
                self.detail.launch(launch.clone(), number, counted);
                self.launches[number].instructions = self.execute(&launch, 0..launch.ctas())?.warp_instructions;
            }
        }
        if picked {
            self.groups[group].learn(self.launches[number].instructions, was_cut, self.memory_bytes);
        }
        Ok(())
    }

    /// Runs a launch of many waves by head, samples and tail.
    fn cut(&mut self, launch: &Arc<Launch>, number: usize, cut: Cut) -> Result<(), Ended> {
        let (ranges, counted) = cut.parts();
        self.stretches += ranges.len() as u64 - 1;
        self.detail.launch_part(launch.clone(), number, counted, ranges);
        let Cut { wave_ctas, tail, ctas, .. } = cut;
        let mut waves = Vec::new();
        for wave in 0..tail {
            let first = wave * wave_ctas;
            waves.push(self.execute(launch, first..first + wave_ctas)?.warp_instructions);
        }
        let last = self.execute(launch, tail * wave_ctas..ctas)?.warp_instructions;
        let record = &mut self.launches[number];
        record.instructions = waves.iter().sum::<u64>() + last;
        record.way = LaunchWay::Cut(Box::new(CutLaunch { cut, waves, samples: Vec::new() }));
        self.detail.replace(self.memory.clone());
        self.came_through(|detail, conduct| detail.go_on(conduct))
    }

    /// How a launch in detail is cut, if it is; the first of its group that may be is probed for that.
    fn plan_cut(&mut self, launch: &Arc<Launch>, group: usize, wave_ctas: u64) -> Result<Option<Cut>, Ended> {
        if launch.cluster_ctas() > 1
            || self.groups[group].uncut.is_some()
            || !Cut::may_be(launch.ctas(), wave_ctas, self.windows)
        {
            return Ok(None);
        }
        let (begins_empty, turnover) = match self.groups[group].turnover {
            Some(turnover) => (false, turnover),
            None => (true, self.probe(launch, wave_ctas)?),
        };
        self.groups[group].turnover = Some(turnover);
        Ok(Cut::of(launch.ctas(), wave_ctas, turnover, begins_empty, self.windows))
    }

    /// Waves of a launch that fill the L2.
    fn probe(&self, launch: &Arc<Launch>, wave_ctas: u64) -> Result<u64, Ended> {
        let mut probe = Detail::new(self.experiment, self.memory.clone(), self.clocks);
        let waves = 0..PROBE_WAVES * wave_ctas;
        probe.launch_part(launch.clone(), 0, CountedPart::Nothing, vec![waves]);
        if !probe.finish(self.conduct) {
            return Err(Ended::Detail(probe.end()));
        }
        let l2 = &self.experiment.machine.spec.l2;
        let lines = u64::from(l2.slices) * u64::from(l2.slice_kb) * 1024 / u64::from(l2.line_bytes);
        Ok(turnover(lines, probe.lines_brought_in()))
    }

    /// Simulates, and stops the walk where that did not come to its end.
    fn came_through(&mut self, simulate: impl FnOnce(&mut Detail, &Conduct<'_>) -> bool) -> Result<(), Ended> {
        if simulate(&mut self.detail, self.conduct) { Ok(()) } else { Err(Ended::Detail(self.detail.end())) }
    }

    /// Simulates what is left.
    fn finish(&mut self) -> Result<(), Ended> {
        if self.stale {
            return Ok(());
        }
        self.came_through(|detail, conduct| detail.finish(conduct))
    }

    /// Notes what the machine's launches took.
    pub(super) fn note_times(&mut self) {
        self.before_ticks = self.detail.first_start();
        for took in self.detail.took() {
            let launch = &mut self.launches[took.launch];
            (launch.ticks, launch.own_ticks) = (took.ticks, took.own_ticks);
            if let LaunchWay::Cut(cut) = &mut launch.way {
                cut.samples = took.samples;
            }
        }
    }

    fn execute(&mut self, launch: &Launch, ctas: Range<u64>) -> Result<Counts, Ended> {
        let counts = functional::run_ctas(launch, &mut self.memory, &self.limits, ctas);
        counts.map_err(|error| Ended::Functional(error.into()))
    }

    fn group(&mut self, launch: &Launch) -> usize {
        let (kernel, grid, block) = (&launch.kernel.name, launch.grid, launch.block);
        let is = |group: &Group| group.kernel == *kernel && (group.grid, group.block) == (grid, block);
        self.groups.iter().position(is).unwrap_or_else(|| {
            self.groups.push(Group::new(&launch.kernel, grid, block));
            self.groups.len() - 1
        })
    }
}
