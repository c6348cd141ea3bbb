//! The host program as the command processor runs it: its next step, what its last read returned, when it
//! ended.
//!
//! What the host does outside simulated time (`look`) takes ticks of the links all the same. They are
//! *excused* here: the next launch starts that much sooner, and what no launch has given back is not part of
//! the program's end.
//!
//! Not modelled: streams; the program has one step under way.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable, state};
use durawarp_engine::Time;
use durawarp_kernel::host::{HostAction, HostProgram};
use durawarp_kernel::launch::{Launch, LiveLaunches};

/// The host program asked for something impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostFault(pub String);

/// The thread of the host that runs the program.
#[derive(Debug)]
pub(super) struct HostThread {
    program: Box<dyn HostProgram>,
    /// What each of its steps so far received. The program says the same again to whoever tells it the same.
    received: Vec<Option<u64>>,
    /// Its latest launches, by their numbers; those that are over are dropped with the next.
    launches: Vec<(u32, Weak<Launch>)>,
    launched: u32,
    /// The value of the last read; the next step takes it.
    read: Option<u64>,
    /// Ticks of looks outside simulated time that no launch has given back.
    excused: Time,
    ended: Option<Time>,
    /// Since when the program has had no next step.
    paused: Option<Time>,
    /// The simulation halts at the program's end.
    pub(super) halts: bool,
    /// It halts whenever a launch is over, too.
    pub(super) halts_after_launches: bool,
}

// How far the program is comes first, before all components: launches follow from it.
state!(HostThread {
    saved: read, excused, ended, paused; kept: program, received, launches, launched, halts, halts_after_launches
});

impl HostThread {
    /// A thread before the first step of `program`.
    pub(super) fn new(program: Box<dyn HostProgram>) -> Self {
        HostThread {
            program,
            received: Vec::new(),
            launches: Vec::new(),
            launched: 0,
            read: None,
            excused: 0,
            ended: None,
            paused: None,
            halts: false,
            halts_after_launches: false,
        }
    }

    /// The next step. The program receives the value of its last read.
    pub(super) fn next(&mut self) -> Result<HostAction, HostFault> {
        let read = self.read.take();
        self.step(read)
    }

    fn step(&mut self, read: Option<u64>) -> Result<HostAction, HostFault> {
        self.received.push(read);
        let action = self.program.next(read).map_err(HostFault)?;
        if let HostAction::Launch(launch) = &action {
            self.launches.retain(|(_, of)| of.strong_count() > 0);
            self.launches.push((self.launched, Arc::downgrade(launch)));
            self.launched += 1;
        }
        Ok(action)
    }

    /// The launches that something still holds.
    pub(super) fn live(&self) -> LiveLaunches {
        let held = self.launches.iter().filter_map(|(number, launch)| Some((*number, launch.upgrade()?)));
        LiveLaunches(held.collect())
    }

    /// Writes how far the program is: what its steps received.
    pub(super) fn save_program(&self, out: &mut StateWriter) {
        self.received.save(out);
    }

    /// Takes a program that has not begun as far as one that was saved, and hands out its launches: the
    /// program keeps none.
    ///
    /// # Errors
    /// The program has begun, or is another one.
    pub(super) fn load_program(&mut self, from: &mut StateReader<'_>) -> Result<LiveLaunches, LoadFault> {
        if !self.received.is_empty() {
            return Err(LoadFault::new("the host program has begun"));
        }
        let received: Vec<Option<u64>> = Storable::read(from)?;
        let mut last = VecDeque::new();
        for read in received {
            let action = self.step(read).map_err(|fault| LoadFault::new(fault.to_string()))?;
            if let HostAction::Launch(launch) = action {
                // The next one may be on its way to SMs that still know the one before.
                last.truncate(1);
                last.push_front((self.launched - 1, launch));
            }
        }
        Ok(LiveLaunches(last.into()))
    }

    /// A read has returned a value.
    pub(super) fn receive(&mut self, value: Option<u64>) {
        self.read = value;
    }

    /// A step outside simulated time took `ticks`.
    pub(super) fn excuse(&mut self, ticks: Time) {
        self.excused += ticks;
    }

    /// Ticks that are to be given back.
    pub(super) fn excused(&self) -> Time {
        self.excused
    }

    /// Gives back up to `most` of the excused ticks.
    pub(super) fn give_back(&mut self, most: Time) -> Time {
        let given = self.excused.min(most);
        self.excused -= given;
        given
    }

    /// The next step is not known yet.
    pub(super) fn pause(&mut self, now: Time) {
        self.end(now);
        self.paused = Some(now);
    }

    /// The simulation goes on; what a pause took is excused.
    pub(super) fn go_on(&mut self, now: Time) {
        if let Some(since) = self.paused.take() {
            self.excuse(now - since);
        }
    }

    /// The program is over at `now`, or as far as it is known.
    pub(super) fn end(&mut self, now: Time) {
        self.ended = Some(now - self.excused);
    }

    /// When the last step was complete, in ticks, without what is excused.
    pub(super) fn ended(&self) -> Option<Time> {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a word, then ends.
    #[derive(Debug, Default)]
    struct ReadsOnce {
        received: Vec<Option<u64>>,
    }

    impl HostProgram for ReadsOnce {
        fn next(&mut self, read: Option<u64>) -> Result<HostAction, String> {
            self.received.push(read);
            match self.received.as_slice() {
                [None] => Ok(HostAction::Read { address: 0, bytes: 4 }),
                [None, Some(7)] => Ok(HostAction::Done),
                received => Err(format!("{received:?}")),
            }
        }
    }

    #[test]
    fn a_value_reaches_the_next_step_and_no_other() {
        let mut thread = HostThread::new(Box::<ReadsOnce>::default());
        assert!(matches!(thread.next(), Ok(HostAction::Read { .. })));
        thread.receive(Some(7));
        assert!(matches!(thread.next(), Ok(HostAction::Done)));
        let Err(fault) = thread.next() else { panic!("a third step") };
        assert_eq!(fault.to_string(), "[None, Some(7), None]");
    }

    #[test]
    fn excused_ticks_are_given_back_once_and_the_rest_shortens_the_program() {
        let mut thread = HostThread::new(Box::<ReadsOnce>::default());
        thread.excuse(100);
        assert_eq!([70, 70, 70].map(|most| thread.give_back(most)), [70, 30, 0]);
        thread.excuse(5);
        thread.end(1000);
        assert_eq!(thread.ended(), Some(995));
    }
}
