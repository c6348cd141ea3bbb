//! A simulation between two rounds as bytes, and back into one of the same topology.
//!
//! ```text
//!   totals | by tier: reached | pending events by (time, tie) | by component: the engine's state, its own
//! ```
//! Notes of wake-ups are pending events like any other: they decide which rounds there are. Invariants: the
//! bytes do not depend on threads or placement; a simulation that was loaded runs the rounds that the saved
//! one would have run. Not saved: what measures cost, epochs, traces.

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
use crate::checkpoint::{LoadFault, StateReader, StateWriter, Storable, value};

value!(record RoundTotals { rounds, events, critical_path, beyond });

/// Something pending, as it is saved.
struct SavedEvent<M> {
    time: Time,
    tie: u64,
    to: u32,
    /// None of a wake-up.
    message: Option<M>,
}

/// Writes the state of all components and everything that is pending.
pub fn save_simulation<M: Message>(simulation: &Simulation<M>, out: &mut StateWriter) {
    if simulation.poisoned.is_some() {
        out.refuse("a component of it has panicked");
    }
    let home = &simulation.home;
    simulation.names.len().save(out);
    simulation.posted.save(out);
    simulation.stats.totals.save(out);
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
/// instant. Then links may become longer ([`load_simulation`]).
pub fn align<M: Message>(simulation: &mut Simulation<M>) -> RunEnd {
    let stop = AtomicBool::new(true);
    simulation.run(&RunOptions { stop: Some(&stop), ..RunOptions::default() })
}

/// Takes over the state that a simulation of the same components saved. Links may be longer here than there
/// if the other was aligned.
///
/// # Errors
/// The bytes are of other components or links. The simulation is of no use then.
pub fn load_simulation<M: Message>(
    simulation: &mut Simulation<M>,
    from: &mut StateReader<'_>,
) -> Result<(), LoadFault> {
    let components = usize::read(from)?;
    if components != simulation.names.len() {
        return Err(LoadFault::length(components, simulation.names.len()).within("components"));
    }
    // The order is that of `save_simulation`; components come last, as they are the most.
    simulation.posted = Storable::read(from)?;
    simulation.stats.totals = Storable::read(from)?;
    let last_event: Time = Storable::read(from)?;
    let reached: PerTier = Storable::read(from)?;
    let mut pending: Vec<SavedEvent<M>> = Vec::new();
    for _ in 0..from.count()? {
        let (time, tie, to, carries): (Time, u64, u32, bool) = Storable::read(from)?;
        if to as usize >= components || time < reached.iter().copied().min().unwrap_or(0) {
            return Err(LoadFault::new("it goes to no component, or is past").within("a pending event"));
        }
        let message = if carries { Some(M::read(from)?) } else { None };
        pending.push(SavedEvent { time, tie, to, message });
    }
    let furthest = reached.iter().copied().max().unwrap_or(0);
    let aligned = pending.iter().all(|event| event.time >= furthest);
    // What was pending at the start is gone: queues are made anew, and brought to where the saved ones were
    // before anything is pushed.
    let cells = std::mem::take(&mut simulation.home.cells);
    let queues = Queue::of_tiers(&simulation.tiers, simulation.longest_latency);
    simulation.home = Partition::new(0, 1, cells, queues);
    (simulation.home.last_event, simulation.home.reached) = (last_event, reached);
    for (queue, reached) in simulation.home.sink.queues.iter_mut().zip(reached) {
        queue.advance(reached);
    }
    for SavedEvent { time, tie, to, message } in pending {
        let queue = &mut simulation.home.sink.queues[usize::from(simulation.home.cells[to as usize].tier)];
        match message {
            Some(message) => queue.push(time, tie, to, message),
            None => queue.push_wake(time, to),
        }
    }
    for (cell, name) in simulation.home.cells.iter_mut().zip(&simulation.names) {
        let longer = check_links(cell, from, &simulation.names).map_err(|fault| fault.within(name))?;
        if longer && !aligned {
            return Err(LoadFault::new("links are longer, and the simulation was not aligned").within(name));
        }
        load_cell(cell, from).map_err(|fault| fault.within(name))?;
    }
    simulation.stats.messages = simulation.home.cells.iter().map(|cell| cell.messages).sum();
    simulation.stats.wakes = simulation.home.cells.iter().map(|cell| cell.wakes).sum();
    Ok(())
}

/// Whether a component has links that are longer than those that were saved.
fn check_links<M>(cell: &Cell<M>, from: &mut StateReader<'_>, names: &[String]) -> Result<bool, LoadFault> {
    let saved: Vec<Time> = Storable::read(from)?;
    let links = &cell.wires.wires;
    if saved.len() != links.len() {
        return Err(LoadFault::length(saved.len(), links.len()).within("links"));
    }
    for ((link, to), saved) in links.iter().zip(&cell.wires.ends).zip(&saved) {
        if link.latency < *saved {
            return Err(LoadFault::new(format!(
                "the link to {} would take {} ticks in place of {saved}, so that new messages would overtake those \
                 under way: a link may only become longer",
                names[to.0 as usize], link.latency
            )));
        }
    }
    Ok(links.iter().zip(&saved).any(|(link, saved)| link.latency > *saved))
}

fn load_cell<M: Message>(cell: &mut Cell<M>, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
    (cell.wake, cell.noted, cell.tie, cell.digest) = Storable::read(from)?;
    (cell.messages, cell.wakes) = Storable::read(from)?;
    cell.component.load(from)
}
