//! The component trait: how the engine calls a component, and what a component reports back.
//!
//! A component owns all of its state, receives one message or one wake-up at a time, and reaches outside only
//! through its [`Ctx`]. Events of one component are handled in the order
//! `(time, phase, origin, origin sequence number)`, a wake-up after every message of the same instant; that
//! order never depends on threads.

use std::any::Any;

use super::context::Ctx;
use super::message::{ComponentId, Message};
use super::time::Time;
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter};

/// A part of the simulated system.
pub trait Component<M: Message>: Any + Send {
    /// Receives one message, at `cx.now()`.
    fn handle(&mut self, message: M, cx: &mut Ctx<'_, M>);

    /// The time it asked for with [`Ctx::wake_at`] has come.
    fn wake(&mut self, cx: &mut Ctx<'_, M>);

    /// What it still waits for, asked when no event is left anywhere: nothing means it is done. Any wait left
    /// makes the run a deadlock, and the waits its report. Asked, too, of a run that was cut short.
    fn waits(&self, _out: &mut Vec<Wait>) {}

    /// A number that stands for the component's final state in the run's digest.
    fn digest(&self) -> u64 {
        0
    }

    /// Writes what of its state changes while it runs; without this, the simulation cannot be saved.
    fn save(&self, out: &mut StateWriter) {
        out.refuse("it has a component that cannot be saved");
    }

    /// Takes over the state that a component like this one saved.
    ///
    /// # Errors
    /// It was another one.
    fn load(&mut self, _from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        Err(LoadFault::new("it cannot be loaded"))
    }

    /// A promise of a component of the answering tier ([`Topology::let_answer`](super::Topology)), asked
    /// between rounds: of its sender's tier, a message that reaches it from now on concerns the sender alone.
    /// Whatever else it causes in that tier arrives no earlier than what the sender could cause there once it
    /// has the answer. Only how wide rounds are depends on it.
    fn answers_sender_only(&self) -> bool {
        false
    }

    /// Work done so far, for progress displays only; summed over components.
    fn progress(&self) -> Progress {
        Progress::default()
    }
}

/// Work done so far, in units of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Units of work done (for a GPU: warp instructions).
    pub work: u64,
    /// Steps finished of `steps_total` (for a GPU: CTAs of the current launch).
    pub steps_done: u64,
    /// Steps known to be needed.
    pub steps_total: u64,
}

/// One thing that a component waits for when nothing can happen any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Who waits within the component ("warp 3 of CTA 17 at gemm.ptx:41"), for the report.
    pub who: String,
    /// What for ("a reply to load 0x1_0000_0080", "barrier 0: 3 of 8 warps arrived").
    pub what: String,
    /// The component that would have to act, when it is known.
    pub on: Option<ComponentId>,
    /// Since when, in ticks.
    pub since: Time,
}
