//! Walks a program on the functional driver and simulates stretches of it in detail as the plan picks them.
//!
//! Every launch is executed functionally, so that values and final memory are those of the reference. Where
//! the plan wants detail, memory of that moment is copied and a machine begins with it; what it computes is
//! thrown away, what it takes is kept.

use std::ops::Range;
use std::sync::Arc;

use super::super::conduct::Conduct;
use super::super::end::Clocks;
use super::super::program::Experiment;
use super::super::simulated::Simulated;
use super::estimate::{Model, Predicted, Unit};
use super::plan::{Cut, Group, warm_waves};
use super::stretch::{CountedPart, Detail, Stretch, Took};
use crate::engine::Time;
use crate::kernel::functional::{self, Counts, Limits};
use crate::kernel::host::{HostAction, HostProgram as _};
use crate::kernel::launch::Launch;
use crate::kernel::memory::FlatMemory;
use crate::machine::command_processor::LaunchPart;
use crate::machine::occupancy::Occupancy;
use crate::workload::{FunctionalError, apply};

/// How a launch came by its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LaunchWay {
    /// Predicted from others of its group.
    Skipped,
    /// Simulated as a whole.
    Whole,
    /// Head, some waves and tail were simulated; `rest` is predicted.
    Cut {
        /// Of the waves between.
        rest: Predicted,
        /// CTAs whose time was counted in detail.
        ctas: u64,
    },
}

/// A launch of a sampled run.
#[derive(Debug, Clone)]
pub(super) struct SampledLaunch {
    pub(super) group: usize,
    pub(super) occupancy: Occupancy,
    /// Warp instructions.
    pub(super) instructions: u64,
    pub(super) way: LaunchWay,
    /// From its start to that of the next, as far as it was simulated; the same without what the host did
    /// after it.
    pub(super) ticks: Time,
    pub(super) own_ticks: Time,
    /// Ticks from the end of one CTA to that of the next in the second half of its head.
    pub(super) head_pace: Time,
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
    stretch: Option<Stretch>,
    pub(super) groups: Vec<Group>,
    pub(super) launches: Vec<SampledLaunch>,
    /// Until the first launch; all of a program without launches. In ticks.
    pub(super) before_ticks: Time,
    /// What each stretch left.
    pub(super) sums: super::sums::Sums,
    /// The machine of the last stretch.
    pub(super) last: Option<Simulated>,
}

/// Why a walk ended early.
pub(super) enum Ended {
    /// On the functional driver.
    Functional(FunctionalError),
    /// In a stretch, whose machine is kept.
    Detail,
}

/// Lines that accesses brought into the L2: each that was not there.
fn lines_brought_in(ran: &Simulated) -> u64 {
    let missed = ran.machine.slices().map(|slice| {
        let counted = slice.counters();
        (counted.reads - counted.read_hits) + (counted.writes - counted.write_hits)
    });
    missed.sum()
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
            stretch: Some(Stretch::new(memory.clone())),
            memory,
            groups: Vec::new(),
            launches: Vec::new(),
            before_ticks: 0,
            sums: super::sums::Sums::default(),
            last: None,
        }
    }

    /// Walks to the program's end; the host program then has its final bindings.
    pub(super) fn walk(&mut self, host: &mut crate::workload::WorkloadHost) -> Result<(), Ended> {
        let mut read = None;
        loop {
            match host.next(read.take()).map_err(FunctionalError::Host)? {
                HostAction::Launch(launch) => self.launch(launch)?,
                HostAction::Done => return self.close(),
                action => {
                    read = apply(&action, &mut self.memory)?;
                    if let Some(stretch) = &mut self.stretch {
                        stretch.push(action);
                    }
                }
            }
        }
    }

    fn launch(&mut self, launch: Arc<Launch>) -> Result<(), Ended> {
        let spec = &self.experiment.machine.spec;
        let occupancy = Occupancy::of(&launch, &spec.sm, &spec.shared).map_err(FunctionalError::Host)?;
        let wave = u64::from(occupancy.ctas) * u64::from(spec.sm.count);
        let group = self.group(&launch);
        let index = self.groups[group].count;
        self.groups[group].count += 1;
        let picked = self.groups[group].picks(index);
        // A large launch warms up by itself.
        let warms_next = self.groups[group].picks(index + 1) && launch.ctas() <= 4 * wave;
        let number = self.launches.len();
        let way = LaunchWay::Skipped;
        let instructions = 0;
        self.launches.push(SampledLaunch { group, occupancy, instructions, way, ticks: 0, own_ticks: 0, head_pace: 0 });
        if !picked && !warms_next {
            self.close()?;
            self.launches[number].instructions = self.execute(&launch, 0..launch.ctas())?.warp_instructions;
            return Ok(());
        }
        let cold = self.stretch.is_none();
        let cut = if picked { self.plan_cut(&launch, group, wave)? } else { None };
        match &cut {
            Some(cut) => self.cut(&launch, number, cut)?,
            None => {
                let counted = if picked || !cold { CountedPart::Whole } else { CountedPart::Nothing };
                self.open().launch(launch.clone(), number, counted, None);
                self.launches[number].instructions = self.execute(&launch, 0..launch.ctas())?.warp_instructions;
            }
        }
        if picked {
            self.groups[group].learn(self.launches[number].instructions, cut.is_some(), self.memory_bytes);
        }
        Ok(())
    }

    /// Runs a launch of many waves by head, samples and tail.
    fn cut(&mut self, launch: &Arc<Launch>, number: usize, cut: &Cut) -> Result<(), Ended> {
        let Cut { wave_ctas, warm, ref sampled, tail, ctas } = *cut;
        let warm_ctas = warm * wave_ctas;
        // A wave more keeps the machine full until the last that counts has ended.
        let head = LaunchPart { halt_after: Some(warm_ctas), ..LaunchPart::whole(warm_ctas + wave_ctas) };
        self.open().launch(launch.clone(), number, CountedPart::Head(warm_ctas), Some(head));
        self.close()?;
        // By Little's law a CTA takes as long as a wave of them needs to end: so far apart they begin.
        let fill_interval = self.launches[number].head_pace;
        let (mut sizes, mut units) = (Vec::new(), Vec::new());
        for wave in 0..tail {
            // From here on waves warm up a sampled one, or the tail.
            let first = wave * wave_ctas;
            if wave + warm == tail {
                let part = LaunchPart { first, ctas: ctas - first, fill_interval, halt_after: None };
                self.open().launch(launch.clone(), number, CountedPart::Tail(warm_ctas), Some(part));
            } else if sampled.contains(&(wave + warm)) {
                let counted = CountedPart::Window(warm_ctas, warm_ctas + wave_ctas);
                let most = (warm + 2) * wave_ctas;
                let halt_after = Some(warm_ctas + wave_ctas);
                let part = LaunchPart { first, ctas: most.min(ctas - first), fill_interval, halt_after };
                let mut stretch = Stretch::new(self.memory.clone());
                stretch.launch(launch.clone(), number, counted, Some(part));
                units.push((wave + warm, self.simulate(stretch)?));
            }
            sizes.push(self.execute(launch, first..first + wave_ctas)?.warp_instructions);
        }
        let last = self.execute(launch, tail * wave_ctas..ctas)?.warp_instructions;
        let size = |wave: u64| sizes[wave as usize] as f64;
        let known: Vec<Unit> =
            units.iter().map(|&(wave, ticks)| Unit { size: size(wave), ticks: ticks as f64 }).collect();
        let others = (warm..tail).filter(|wave| !sampled.contains(wave)).map(size);
        let rest = Model::of(&known).map_or_else(Predicted::default, |model| model.sum(others));
        let record = &mut self.launches[number];
        record.instructions = sizes.iter().sum::<u64>() + last;
        let ctas = warm_ctas + sampled.len() as u64 * wave_ctas + ctas - tail * wave_ctas;
        record.way = LaunchWay::Cut { rest, ctas };
        Ok(())
    }

    /// How a launch in detail is cut, if it is; the first of its group that may be is probed for that.
    fn plan_cut(&mut self, launch: &Arc<Launch>, group: usize, wave_ctas: u64) -> Result<Option<Cut>, Ended> {
        let cut = |warm| Cut::of(launch.ctas(), wave_ctas, warm, self.windows);
        if self.groups[group].uncut.is_some() || !Cut::may_be(launch.ctas(), wave_ctas, self.windows) {
            return Ok(None);
        }
        if let Some(warm) = self.groups[group].warm {
            return Ok(cut(warm));
        }
        let part = LaunchPart { halt_after: Some(wave_ctas), ..LaunchPart::whole(2 * wave_ctas) };
        let mut probe = Stretch::new(self.memory.clone());
        probe.launch(launch.clone(), self.launches.len() - 1, CountedPart::Nothing, Some(part));
        let ran = probe.simulate(self.experiment, self.clocks, self.conduct).ran;
        let l2 = &self.experiment.machine.spec.l2;
        let lines = u64::from(l2.slices) * u64::from(l2.slice_kb) * 1024 / u64::from(l2.line_bytes);
        // Half of the CTAs that follow the first wave are as good as done, too.
        let warm = warm_waves(lines, 1.5, lines_brought_in(&ran));
        self.groups[group].warm = Some(warm);
        Ok(Cut::of(launch.ctas(), wave_ctas, warm, self.windows))
    }

    /// The machine of the last stretch; one that has done nothing where there was none.
    pub(super) fn last_machine(&mut self) -> Simulated {
        self.last.take().unwrap_or_else(|| {
            Stretch::new(self.experiment.workload.image()).simulate(self.experiment, self.clocks, self.conduct).ran
        })
    }

    /// The stretch under way, or one that begins here.
    fn open(&mut self) -> &mut Stretch {
        self.stretch.get_or_insert_with(|| Stretch::new(self.memory.clone()))
    }

    /// Simulates the stretch under way, if there is one.
    fn close(&mut self) -> Result<(), Ended> {
        match self.stretch.take() {
            Some(stretch) => self.simulate(stretch).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Simulates a stretch; what its last launch took, in ticks.
    fn simulate(&mut self, stretch: Stretch) -> Result<Time, Ended> {
        let detail = stretch.simulate(self.experiment, self.clocks, self.conduct);
        let whole = detail.is_whole();
        let Detail { first_start, ended, took, ran } = detail;
        if self.last.is_none() {
            self.before_ticks = first_start.unwrap_or(ended);
        }
        self.sums.add(&ran);
        self.last = Some(ran);
        if !whole {
            return Err(Ended::Detail);
        }
        for &Took { launch, counted, ticks, own_ticks, pace } in &took {
            let launch = &mut self.launches[launch];
            if counted != CountedPart::Nothing {
                launch.ticks += ticks;
                launch.own_ticks += own_ticks;
            }
            match counted {
                CountedPart::Whole => launch.way = LaunchWay::Whole,
                CountedPart::Head(_) => launch.head_pace = pace,
                _ => {}
            }
        }
        Ok(took.last().map_or(0, |took| took.ticks))
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
