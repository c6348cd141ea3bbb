//! A simulation between two rounds as bytes, and back into one of the same topology.
//!
//! ```text
//!   totals | by tier: reached | pending events by (time, tie) | by component: the engine's state, its own
//! ```
//! Notes of wake-ups are pending events like any other: they decide which rounds there are. Invariants: the
//! bytes do not depend on threads or placement; a simulation that was loaded runs the rounds that the saved one
//! would have run. Not saved: what measures cost, epochs, traces.

use std::sync::atomic::AtomicBool;

use super::event::Key;
use super::message::Message;
use super::options::{RunEnd, RunOptions};
use super::partition::{Cell, Partition};
use super::queue::Queue;
use super::simulation::Simulation;
use super::stats::RoundTotals;
use super::tiers::PerTier;
use super::time::Time;
use crate::checkpoint::{Fault, Reader, Value, Writer, value};

value!(struct RoundTotals { rounds, events, critical_path, beyond });

/// Something pending, as it is saved.
struct Pending<M> {
    time: Time,
    tie: u64,
    to: u32,
    /// None of a wake-up.
    message: Option<M>,
}

impl<M: Message> Simulation<M> {
    /// Writes the state of all components and everything that is pending.
    pub fn save(&self, out: &mut Writer) {
        if self.poisoned.is_some() {
            out.refuse("a component of it has panicked");
        }
        let home = &self.home;
        self.names.len().save(out);
        self.posted.save(out);
        self.stats.totals.save(out);
        home.last_event.save(out);
        home.reached.save(out);
        let mut pending: Vec<(Key, Option<&M>)> = home.sink.queues.iter().flat_map(Queue::pending).collect();
        // Where a message lay says nothing.
        pending.sort_unstable_by_key(|(key, _)| (key.time, key.tie, key.to));
        pending.len().save(out);
        for (key, message) in pending {
            (key.time, key.tie, key.to, message.is_some()).save(out);
            message.iter().for_each(|message| message.save(out));
        }
        for cell in &home.cells {
            cell.wires.wires.iter().map(|wire| wire.latency).collect::<Vec<Time>>().save(out);
            (cell.wake, cell.noted, cell.tie, cell.digest).save(out);
            (cell.messages, cell.wakes).save(out);
            cell.component.save(out);
        }
    }

    /// Runs on until every event before one instant is handled, and none at or after it: the earliest such
    /// instant. Then links may become longer ([`Simulation::load`]).
    pub fn align(&mut self) -> RunEnd {
        let stop = AtomicBool::new(true);
        self.run(&RunOptions { stop: Some(&stop), ..RunOptions::default() })
    }

    /// Takes over the state that a simulation of the same components saved. Links may be longer here than there
    /// if the other was aligned.
    ///
    /// # Errors
    /// The bytes are of other components or links. The simulation is of no use then.
    pub fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        let components = usize::read(from)?;
        if components != self.names.len() {
            return Err(Fault::length(components, self.names.len()).within("components"));
        }
        self.posted = Value::read(from)?;
        self.stats.totals = Value::read(from)?;
        let last_event: Time = Value::read(from)?;
        let reached: PerTier = Value::read(from)?;
        let mut pending: Vec<Pending<M>> = Vec::new();
        for _ in 0..from.count()? {
            let (time, tie, to, carries): (Time, u64, u32, bool) = Value::read(from)?;
            if to as usize >= components || time < reached.iter().copied().min().unwrap_or(0) {
                return Err(Fault::new("it goes to no component, or is past").within("a pending event"));
            }
            let message = if carries { Some(M::read(from)?) } else { None };
            pending.push(Pending { time, tie, to, message });
        }
        // What was pending at the start is gone: queues are made anew, and brought to where the saved ones were
        // before anything is pushed.
        let cells = std::mem::take(&mut self.home.cells);
        let queues = Queue::of_tiers(&self.tiers, self.longest_latency);
        self.home = Partition::new(0, 1, cells, queues);
        (self.home.last_event, self.home.reached) = (last_event, reached);
        for (queue, reached) in self.home.sink.queues.iter_mut().zip(reached) {
            queue.advance(reached);
        }
        for Pending { time, tie, to, message } in pending {
            let queue = &mut self.home.sink.queues[usize::from(self.home.cells[to as usize].tier)];
            match message {
                Some(message) => queue.push(time, tie, to, message),
                None => queue.push_wake(time, to),
            }
        }
        let aligned = self.home.sink.queues.iter().all(|queue| queue.earliest_slot_start() >= self.home.furthest());
        for (cell, name) in self.home.cells.iter_mut().zip(&self.names) {
            let longer = check_links(cell, from, &self.names).map_err(|fault| fault.within(name))?;
            if longer && !aligned {
                return Err(Fault::new("links are longer, and the simulation was not aligned").within(name));
            }
            load_cell(cell, from).map_err(|fault| fault.within(name))?;
        }
        self.stats.messages = self.home.cells.iter().map(|cell| cell.messages).sum();
        self.stats.wakes = self.home.cells.iter().map(|cell| cell.wakes).sum();
        Ok(())
    }
}

/// Whether a component has links that are longer than those that were saved.
fn check_links<M>(cell: &Cell<M>, from: &mut Reader<'_>, names: &[String]) -> Result<bool, Fault> {
    let saved: Vec<Time> = Value::read(from)?;
    let links = &cell.wires.wires;
    if saved.len() != links.len() {
        return Err(Fault::length(saved.len(), links.len()).within("links"));
    }
    for ((link, to), saved) in links.iter().zip(&cell.wires.ends).zip(&saved) {
        if link.latency < *saved {
            return Err(Fault::new(format!(
                "the link to {} would take {} ticks in place of {saved}, so that new messages would overtake those \
                 under way: a link may only become longer",
                names[to.0 as usize], link.latency
            )));
        }
    }
    Ok(links.iter().zip(&saved).any(|(link, saved)| link.latency > *saved))
}

fn load_cell<M: Message>(cell: &mut Cell<M>, from: &mut Reader<'_>) -> Result<(), Fault> {
    (cell.wake, cell.noted, cell.tie, cell.digest) = Value::read(from)?;
    (cell.messages, cell.wakes) = Value::read(from)?;
    cell.component.load(from)
}
