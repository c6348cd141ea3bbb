//! What is kept of a run on the way, as plain data: a checkpoint, who takes one, what a run goes on from, how
//! one begins whose parameters change, and beginnings that several runs share.
//!
//! What they are made of and what they fit is with [`checkpoint`](super::checkpoint).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::assemble::{Assembly, checkpoint};
use crate::outcome::FromCheckpoint;
use durawarp_checkpoint::LoadFault;
use durawarp_persist::Scheme;

/// A machine between two rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The core cycle before which everything is handled.
    pub cycle: u64,
    /// Writes to NVM are counted line by line.
    pub line_writes: bool,
    /// A hash of all that its experiment is made of, but for how long it runs and what it is compared with.
    pub(super) experiment: String,
    pub(super) state: Arc<Vec<u8>>,
}

/// When a checkpoint is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointWhen {
    /// As soon as everything before this core cycle is handled.
    Cycle(u64),
    /// When the launch before this one is over: launches count from 1.
    Launch(u64),
}

/// When to make a checkpoint of a run, and who takes it.
#[derive(Clone)]
pub struct CheckpointAt<'a> {
    pub(super) when: CheckpointWhen,
    pub(super) experiment: String,
    pub(super) keep: &'a (dyn Fn(Checkpoint) + Sync),
}

impl std::fmt::Debug for CheckpointAt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckpointAt").field("when", &self.when).finish_non_exhaustive()
    }
}

/// Of a machine that pauses before this core cycle; `experiment` is the hash of its own.
pub(super) fn checkpoint_of(
    machine: &Assembly,
    cycle: u64,
    line_writes: bool,
    experiment: String,
) -> Result<Checkpoint, LoadFault> {
    Ok(Checkpoint { cycle, line_writes, experiment, state: Arc::new(checkpoint::save(machine)?) })
}

/// A checkpoint that fits an experiment.
#[derive(Debug, Clone)]
pub struct Resumed {
    pub(super) state: Arc<Vec<u8>>,
    pub(super) line_writes: bool,
    /// Where and how it parts from the run that the checkpoint is of; none where it goes on as that run did.
    pub(super) forked: Option<FromCheckpoint>,
}

impl Resumed {
    /// Takes a machine that has not run to the checkpoint.
    pub(super) fn load(&self, machine: &mut Assembly, scheme: &Arc<dyn Scheme>) -> Result<(), LoadFault> {
        checkpoint::load(machine, scheme, &self.state)
    }

    /// Where and how its run parts from the one that the checkpoint is of.
    pub fn forked(&self) -> Option<&FromCheckpoint> {
        self.forked.as_ref()
    }
}

/// How an experiment begins whose parameters change on the way.
#[derive(Debug, Clone)]
pub struct Fork<E> {
    /// The core cycle from which on it has its own parameters.
    pub cycle: u64,
    /// The same with the parameters up to there.
    pub before: Box<E>,
}

/// Bytes of beginnings that are kept at a time, at most.
const KEPT_BYTES: usize = 1 << 30;

/// One beginning; locked while it is made.
type Kept = Arc<Mutex<Option<Checkpoint>>>;

/// What finds the beginning of a key where other processes keep theirs, or keeps there what it has made; none
/// where it could not be made.
pub(crate) type Exchange<'a> =
    dyn Fn(&str, &mut dyn FnMut() -> Option<Checkpoint>) -> Option<Checkpoint> + Send + Sync + 'a;

/// Beginnings that several runs share. The oldest make room.
#[derive(Default)]
pub struct Beginnings<'a> {
    /// By key, and the keys of those that are made, in their order.
    kept: Mutex<(BTreeMap<String, Kept>, VecDeque<String>)>,
    exchange: Option<Box<Exchange<'a>>>,
}

impl std::fmt::Debug for Beginnings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beginnings").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl<'a> Beginnings<'a> {
    /// None yet; what is made is shared with other processes, too.
    pub(crate) fn shared_by(exchange: Box<Exchange<'a>>) -> Beginnings<'a> {
        Beginnings { exchange: Some(exchange), ..Beginnings::default() }
    }

    /// The beginning that is known by a key, or what `make` makes.
    pub(super) fn of<E>(&self, key: &str, make: impl FnOnce() -> Result<Checkpoint, E>) -> Result<Checkpoint, E> {
        let place = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.0.entry(key.to_owned()).or_default().clone()
        };
        // Held while it is made: another run that begins so has nothing better to do than to wait for it.
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*place {
            return Ok(kept.clone());
        }
        let made = match &self.exchange {
            None => make()?,
            Some(exchange) => {
                let (mut make, mut why) = (Some(make), None);
                let mut once = || match make.take()?() {
                    Ok(made) => Some(made),
                    Err(fault) => {
                        why = Some(fault);
                        None
                    }
                };
                match (exchange(key, &mut once), why) {
                    (Some(made), _) => made,
                    (None, Some(why)) => return Err(why),
                    (None, None) => unreachable!("an exchange that finds nothing has it made"),
                }
            }
        };
        *place = Some(made.clone());
        drop(place);
        self.make_room(key);
        Ok(made)
    }

    /// Forgets the oldest beginnings until all together fit.
    fn make_room(&self, newest: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, order) = &mut *kept;
        order.push_back(newest.to_owned());
        // One that is being made counts nothing yet.
        let bytes_of =
            |kept: &Kept| kept.try_lock().ok().and_then(|kept| Some(kept.as_ref()?.state.len())).unwrap_or(0);
        while order.len() > 1 && all.values().map(bytes_of).sum::<usize>() > KEPT_BYTES {
            if let Some(oldest) = order.pop_front() {
                all.remove(&oldest);
            }
        }
    }
}

/// A checkpoint whose state is this many zeros.
#[cfg(test)]
pub(crate) fn of_zeros(experiment: &str, bytes: usize) -> Checkpoint {
    Checkpoint { cycle: 1, line_writes: false, experiment: experiment.to_owned(), state: Arc::new(vec![0; bytes]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_made_once_and_the_oldest_make_room() {
        let (shared, mut made) = (Beginnings::default(), 0);
        let mut of = |key: &str, bytes| {
            let make = || {
                made += 1;
                Ok::<_, ()>(of_zeros("", bytes))
            };
            assert_eq!(shared.of(key, make).unwrap().state.len(), bytes);
            made
        };
        assert_eq!([of("a", 10), of("a", 10), of("b", 20), of("a", 10)], [1, 1, 2, 2]);
        // Larger than all that may be kept: it stays alone, as the newest.
        assert_eq!([of("c", KEPT_BYTES + 1), of("c", KEPT_BYTES + 1)], [3, 3]);
        assert_eq!([of("a", 10), of("b", 20)], [4, 5]);
    }

    #[test]
    fn a_beginning_that_failed_is_tried_again() {
        let shared = Beginnings::default();
        assert_eq!(shared.of("a", || Err("stopped")), Err("stopped"));
        assert_eq!(shared.of("a", || Ok::<_, &str>(of_zeros("", 3))).map(|made| made.cycle), Ok(1));
    }
}
