//! The host program as the command processor runs it: its next step, what its last read returned, when it
//! ended.
//!
//! What the host does outside simulated time (`look`) takes ticks of the links all the same. They are
//! *excused* here: the next launch starts that much sooner, and what no launch has given back is not part of
//! the program's end.
//!
//! A program whose launches overlap is read ahead while launches run. Its next step that is no launch is
//! *held* here until it may be done.

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
    /// The step that has been read and not been done.
    held: Option<HostAction>,
    /// There is one: a program that was loaded gives it again.
    holds: bool,
    /// Ticks of looks while launches ran: given back to launches that begin at once, or not at all.
    hidden: Time,
    /// The simulation halts at the program's end.
    pub(super) halts: bool,
    /// It halts whenever a launch is over, too.
    pub(super) halts_after_launches: bool,
}

// How far the program is comes first, before all components: launches follow from it.
state!(HostThread {
    saved: read, excused, ended, paused, holds, hidden; kept: program, received, launches, launched, held, halts,
    halts_after_launches
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
            held: None,
            holds: false,
            hidden: 0,
            halts: false,
            halts_after_launches: false,
        }
    }

    /// Launches of the program may run at once.
    pub(super) fn overlaps(&self) -> bool {
        self.program.overlaps()
    }

    /// A step that waits is there.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// The step that waits.
    pub(super) fn held(&self) -> Option<&HostAction> {
        self.held.as_ref().filter(|_| self.holds)
    }

    /// A step has been read that is to wait.
    pub(super) fn hold(&mut self, action: HostAction) {
        self.held = Some(action);
        self.holds = true;
    }

    /// The step that waits is done now.
    pub(super) fn take_held(&mut self) -> Option<HostAction> {
        std::mem::take(&mut self.holds).then(|| self.held.take()).flatten()
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
                // The next one may be on its way to SMs that still know the one before. Where launches
                // overlap, any of them may wait or run.
                if !self.overlaps() {
                    last.truncate(1);
                }
                last.push_front((self.launched - 1, launch));
            } else {
                self.held = Some(action);
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

    /// A step outside simulated time took `ticks` while launches ran.
    pub(super) fn hide(&mut self, ticks: Time) {
        self.hidden += ticks;
    }

    /// What launches that began at once have not been given back is lost: the program went on meanwhile.
    pub(super) fn drop_hidden(&mut self) {
        self.hidden = 0;
    }

    /// Ticks that are to be given back.
    pub(super) fn excused(&self) -> Time {
        self.excused + self.hidden
    }

    /// Gives back up to `most` of the excused ticks.
    pub(super) fn give_back(&mut self, most: Time) -> Time {
        let hidden = self.hidden.min(most);
        let given = self.excused.min(most - hidden);
        self.hidden -= hidden;
        self.excused -= given;
        hidden + given
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
        thread.hide(20);
        assert_eq!((thread.excused(), thread.give_back(10)), (25, 10));
        thread.drop_hidden();
        thread.end(1000);
        assert_eq!(thread.ended(), Some(995), "what launches hid is no part of it");
    }
}
