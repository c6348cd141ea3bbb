//! A run that is watched event by event, epoch by epoch: what each component has handled so far as a number,
//! and the events of an epoch in words.
//!
//! ```text
//!   component ──around it──> Watched: notes (time, message), then hands the event on
//! ```
//! Trails know components by name and times in ps, so that runs of different machines can be compared, which
//! the engine's own digests cannot: these hold ids and ticks. Invariant: a run that is watched handles the
//! events of one that is not. Not in a trail: who sent a message, and bytes of lines, as
//! [`Message::digest`](durawarp_engine::Message::digest) leaves them out; final states
//! ([`TracedRun::state`]) have these.

mod words;

use std::any::Any;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::cpu::{assembled, load_of, process_of};
use super::end::{Clocks, end_of};
use super::whole::machine_of;
use super::{AnyExperiment, Conduct, Program};
use crate::assemble::Assembly;
use crate::outcome::End;
use durawarp_engine::{Component, ComponentId, Ctx, Message as _, Progress, RunEnd, RunOptions, Time, Timebase, Wait};
use durawarp_machine::MAX_CORE_CYCLES;
use durawarp_machine::msg::Msg;

use words::in_words;

/// Characters that are shown of a message.
const TEXT_SHOWN: usize = 240;

/// What a component has handled so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trail {
    /// Events: messages and wake-ups.
    pub events: u64,
    /// Stands for their times and contents, in order.
    pub digest: u64,
}

/// An event that a component handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedEvent {
    /// When, in ps.
    pub ps: u64,
    /// The message as text, its kind first; "wake-up" of one.
    pub what: String,
    /// Stands for the content of the message.
    pub digest: u64,
}

/// Stretches of simulated time, all of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epochs {
    /// Length in ticks.
    pub ticks: Time,
    /// Ticks a millisecond.
    pub tick_khz: u64,
}

impl Epochs {
    /// Epochs of this length on an experiment's machine.
    pub fn of(experiment: &AnyExperiment, core_cycles: u64) -> Self {
        let tick_khz = experiment.clocks().0.map_or(1, |base| base.tick_khz());
        Epochs { ticks: experiment.cycle_ticks() * core_cycles, tick_khz }
    }

    /// When an epoch begins, in ticks of a machine with such a tick rate.
    fn start(self, epoch: u64, tick_khz: u64) -> Time {
        let ticks = u128::from(epoch) * u128::from(self.ticks);
        let own = if tick_khz == self.tick_khz {
            ticks
        } else {
            ticks * u128::from(tick_khz) / u128::from(self.tick_khz.max(1))
        };
        Time::try_from(own).unwrap_or(Time::MAX)
    }

    /// The epoch of a time in ps.
    pub fn of_ps(self, ps: u64) -> u64 {
        // A tick is 1e9 / tick_khz ps, and times were rounded to whole ps: the nearest tick.
        let ticks = (u128::from(ps) * u128::from(self.tick_khz) + 500_000_000) / 1_000_000_000;
        (ticks / u128::from(self.ticks.max(1))) as u64
    }
}

/// A run that is watched.
#[derive(Debug)]
pub struct TracedRun<'a> {
    machine: Assembly,
    clocks: Clocks,
    epochs: Epochs,
    limit: Time,
    stop: Option<&'a AtomicBool>,
    end: Option<End>,
}

impl<'a> TracedRun<'a> {
    /// A run before its first event, of which trails are kept from the first on.
    pub fn new(experiment: &AnyExperiment, epochs: Epochs, stop: Option<&'a AtomicBool>) -> Self {
        let mut run = Self::unwatched(experiment, epochs, stop);
        run.watch(false);
        run
    }

    /// A run that is at the beginning of an epoch, from where events are kept in words.
    pub fn told_from(experiment: &AnyExperiment, epochs: Epochs, epoch: u64, stop: Option<&'a AtomicBool>) -> Self {
        let mut run = Self::unwatched(experiment, epochs, stop);
        if epoch > 0 {
            run.go_on(epoch);
        }
        run.watch(true);
        run
    }

    fn unwatched(experiment: &AnyExperiment, epochs: Epochs, stop: Option<&'a AtomicBool>) -> Self {
        let conduct = Conduct { stop, ..Conduct::default() };
        let (machine, base, core_khz, most) = match experiment {
            AnyExperiment::Gpu(experiment) => {
                assert!(experiment.fork.is_none(), "a run that is watched has one set of parameters");
                let Program { formed, host, .. } = Program::of(experiment, stop);
                let image = experiment.image(formed.as_ref());
                let spec = &experiment.machine.spec;
                let machine = machine_of(experiment, image, host, &conduct);
                (machine, spec.timebase(), spec.clock.core_mhz.khz, experiment.max_cycles)
            }
            AnyExperiment::Cpu(experiment) => {
                let (process, formed) = process_of(experiment);
                let load = load_of(experiment, &process, formed.as_ref());
                let spec = &experiment.machine.spec;
                let machine = assembled(experiment, load, &conduct);
                (machine, spec.timebase(), spec.clock.core_mhz.khz, experiment.max_cycles)
            }
        };
        let Some(base) = base else { unreachable!("a machine that was loaded has a timebase") };
        let clocks = Clocks { base, core: base.clock(core_khz) };
        let limit = clocks.core.cycles(most.unwrap_or(u64::MAX).min(MAX_CORE_CYCLES));
        TracedRun { machine, clocks, epochs, limit, stop, end: None }
    }

    fn watch(&mut self, in_words: bool) {
        let base = self.clocks.base;
        let watched = |inner| Watched { inner, base, trail: Trail::default(), told: in_words.then(Vec::new) };
        self.machine.simulation.surround(|inner| Box::new(watched(inner)));
    }

    /// Simulates up to the beginning of an epoch. Returns whether the run goes on after that.
    pub fn go_on(&mut self, epoch: u64) -> bool {
        if self.end.is_some() {
            return false;
        }
        let before = self.epochs.start(epoch, self.clocks.base.tick_khz()).saturating_sub(1);
        let options = RunOptions { time_limit: Some(before.min(self.limit)), stop: self.stop, ..RunOptions::default() };
        let simulation = &mut self.machine.simulation;
        let end = loop {
            match durawarp_machine::run(simulation, &options) {
                // The program is over; what it left to be written is of the run.
                RunEnd::Halted { .. } => {}
                end => break end,
            }
        };
        if !matches!(end, RunEnd::TimeLimit { at } if at < self.limit) {
            self.end = Some(end_of(&end, &self.machine, self.clocks));
        }
        self.end.is_none()
    }

    /// How it ended, when it has.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Names of the components, in the order of their ids.
    pub fn names(&self) -> Vec<String> {
        self.machine.component_names()
    }

    fn all<T>(&self, of: impl Fn(&Watched) -> T) -> Vec<T> {
        let watched = |id: usize| -> &dyn Any { self.machine.simulation.component(ComponentId(id as u32)) };
        let ids = 0..self.machine.simulation.components();
        ids.filter_map(|id| watched(id).downcast_ref::<Watched>()).map(of).collect()
    }

    /// What each component has handled since it is watched, in the order of their ids.
    pub fn trails(&self) -> Vec<Trail> {
        self.all(|watched| watched.trail)
    }

    /// The events of each component since they are kept in words, in the order of their ids.
    pub fn events(&self) -> Vec<Vec<TracedEvent>> {
        self.all(|watched| watched.told.clone().unwrap_or_default())
    }

    /// A number for the state of each component, bytes of memory included.
    pub fn state(&self) -> Vec<u64> {
        self.all(|watched| watched.inner.digest())
    }
}

/// A component, and what it has handled.
struct Watched {
    inner: Box<dyn Component<Msg>>,
    base: Timebase,
    trail: Trail,
    told: Option<Vec<TracedEvent>>,
}

impl Watched {
    fn note(&mut self, now: Time, message: Option<&Msg>) {
        let ps = self.base.ps_of_ticks(now);
        let content = message.map_or(u64::MAX, Msg::digest);
        // Files hold it: FNV-1a, as no other version may have it otherwise.
        let fold = |digest: u64, word: u64| (digest ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29);
        self.trail.events += 1;
        self.trail.digest = fold(fold(self.trail.digest, ps), content);
        if let Some(told) = &mut self.told {
            let what =
                message.map_or_else(|| "wake-up".to_owned(), |message| shortened(&in_words(&format!("{message:?}"))));
            told.push(TracedEvent { ps, what, digest: content });
        }
    }
}

impl Component<Msg> for Watched {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        self.note(cx.now(), Some(&message));
        self.inner.handle(message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.note(cx.now(), None);
        self.inner.wake(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        self.inner.waits(out);
    }

    fn digest(&self) -> u64 {
        self.inner.digest()
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}

/// The text of a message, cut where it is long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_SHOWN) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("Cta 3"), "Cta 3");
        assert_eq!(shortened(&"x".repeat(300)).len(), TEXT_SHOWN + 3);
    }

    #[test]
    fn an_epoch_begins_at_one_time_whatever_the_ticks() {
        // 9 ticks of 1.8 GHz are 5 ns.
        let epochs = Epochs { ticks: 9, tick_khz: 1_800_000 };
        assert_eq!([0, 1, 2].map(|epoch| epochs.start(epoch, 1_800_000)), [0, 9, 18]);
        assert_eq!([0, 1, 2].map(|epoch| epochs.start(epoch, 1_000_000)), [0, 5, 10]);
        assert_eq!([0, 4_444, 5_000, 10_000].map(|ps| epochs.of_ps(ps)), [0, 0, 1, 2]);
    }
}
