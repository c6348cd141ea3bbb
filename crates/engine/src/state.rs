//! A simulation between two rounds as bytes, and back into one of the same topology.
//!
//! ```text
//!   totals | by tier: reached | pending events by (time, tie) | by component: the engine's state, its own
//! ```
//! Notes of wake-ups are pending events like any other: they decide which rounds there are. Invariants: the
//! bytes do not depend on threads or placement; a simulation that was loaded runs the rounds that the saved
//! one would have run. Not saved: what measures cost, epochs, traces.

use std::sync::atomic::AtomicBool;

use super::cell::Cell;
use super::event::Key;
use super::message::Message;
use super::options::{RunEnd, RunOptions};
use super::partition::Partition;
use super::queue::Queue;
use super::simulation::Simulation;
use super::stats::RoundTotals;
use super::tiers::{PerTier, least};
use super::time::Time;
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable, value};

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
    // Components may be behind their tier.
    least(&home.earliest()).save(out);
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
    let behind: Time = Storable::read(from)?;
    let mut pending: Vec<SavedEvent<M>> = Vec::new();
    for _ in 0..from.count()? {
        let (time, tie, to, carries): (Time, u64, u32, bool) = Storable::read(from)?;
        if to as usize >= components || time < behind.min(least(&reached)) {
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
        queue.advance(reached.min(behind));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Component, ComponentId, Ctx, Link, Port, Topology};
    use durawarp_checkpoint::{Context, state};

    struct Ball(u64);

    value!(wrapper Ball);

    impl Message for Ball {
        fn digest(&self) -> u64 {
            self.0
        }

        fn save(&self, out: &mut StateWriter) {
            Storable::save(self, out);
        }

        fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
            Storable::read(from)
        }
    }

    /// Throws balls on, to others by turns, after times that depend on all it has seen.
    struct Player {
        seen: u64,
        left: u64,
        ports: u16,
    }

    state!(Player { saved: seen, left; kept: ports });

    impl Component<Ball> for Player {
        fn handle(&mut self, Ball(ball): Ball, cx: &mut Ctx<'_, Ball>) {
            self.seen = self.seen.rotate_left(5) ^ ball.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if self.left > 0 {
                self.left -= 1;
                cx.send(Port((self.seen >> 7) as u16 % self.ports), Ball(self.seen), self.seen >> 20 & 0x1ff);
                // Notes of wake-ups that are earlier or later than those before.
                cx.wake_at(cx.now() + (self.seen >> 40 & 0x3ff));
            }
        }

        fn wake(&mut self, cx: &mut Ctx<'_, Ball>) {
            self.seen += 1;
            cx.send(Port(0), Ball(self.seen), 3);
        }

        fn digest(&self) -> u64 {
            self.seen
        }

        fn save(&self, out: &mut StateWriter) {
            durawarp_checkpoint::Stateful::save(self, out);
        }

        fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
            durawarp_checkpoint::Stateful::load(self, from)
        }
    }

    /// Five players in two tiers, whose links take `more` ticks more.
    fn players(more: Time) -> Simulation<Ball> {
        let mut topology = Topology::new();
        let ids: Vec<ComponentId> = (0..5)
            .map(|nth| topology.add(format!("p{nth}"), Box::new(Player { seen: nth, left: 400, ports: 4 })))
            .collect();
        topology.put_in_tier(1, &ids[3..]);
        for (nth, &from) in ids.iter().enumerate() {
            for port in 0..4 {
                let to = (nth + usize::from(port) + 1) % ids.len();
                // The way from one tier to the other is long, and short back.
                let latency = if nth < 3 && to >= 3 { 900 } else { 100 + 10 * nth as Time } + more;
                topology.connect(from, Port(port), ids[to], Link { latency, phase: 0 });
            }
            topology.wake_at(from, 7 * nth as Time);
        }
        Simulation::new(topology).expect("a topology without faults")
    }

    fn saved(simulation: &Simulation<Ball>) -> Vec<u8> {
        let mut out = StateWriter::default();
        save_simulation(simulation, &mut out);
        out.finish().expect("every player can be saved")
    }

    fn load(simulation: &mut Simulation<Ball>, bytes: &[u8]) -> Result<(), LoadFault> {
        let mut from = StateReader::new(bytes, Context::default());
        load_simulation(simulation, &mut from)?;
        from.end()
    }

    #[test]
    fn a_pause_changes_nothing_and_a_loaded_simulation_goes_on_alike() {
        let mut whole = players(0);
        let end = whole.run(&RunOptions::default());
        let RunEnd::Finished { at } = end else { panic!("{end:?}") };
        let mut pauses = 0;
        for nth in 0..20 {
            let (mut paused, pause_at) = (players(0), Some(at * nth / 20));
            let threads = 1 + nth as usize % 3;
            let options = || RunOptions { threads, oversubscribe: true, ..RunOptions::default() };
            match paused.run(&RunOptions { pause_at, ..options() }) {
                RunEnd::Paused { .. } => pauses += 1,
                // The round of the last pause may be the run's last.
                end => assert!(matches!(end, RunEnd::Finished { at: end } if end == at), "{end:?} at {nth}"),
            }
            let bytes = saved(&paused);
            let mut loaded = players(0);
            load(&mut loaded, &bytes).expect("the same players");
            assert_eq!(saved(&loaded), bytes);
            for mut simulation in [paused, loaded] {
                assert!(matches!(simulation.run(&options()), RunEnd::Finished { at: end } if end == at));
                assert_eq!(simulation.digest(), whole.digest());
                assert_eq!(simulation.stats().totals, whole.stats().totals, "the same rounds");
            }
        }
        assert!(pauses > 15, "{pauses} of 20");
    }

    #[test]
    fn links_become_longer_where_all_are_at_one_instant_and_never_shorter() {
        let mut paused = players(5);
        paused.run(&RunOptions { pause_at: Some(4000), ..RunOptions::default() });
        let apart = saved(&paused);
        assert!(load(&mut players(9), &apart).expect_err("tiers are apart").to_string().contains("not aligned"));
        let RunEnd::Stopped { at } = align(&mut paused) else { panic!("it is not over") };
        let aligned = saved(&paused);
        let mut longer = players(9);
        load(&mut longer, &aligned).expect("links may be longer");
        assert!(at >= 4000 && matches!(longer.run(&RunOptions::default()), RunEnd::Finished { .. }));
        let shorter = load(&mut players(4), &aligned).expect_err("a shorter link").to_string();
        assert!(shorter.starts_with("p0: the link to p1 would take 104 ticks in place of 105"), "{shorter}");
    }

    #[test]
    fn other_components_are_refused() {
        let bytes = saved(&players(0));
        let mut other = Topology::new();
        other.add("alone", Box::new(Player { seen: 0, left: 0, ports: 0 }));
        let fault = load(&mut Simulation::new(other).expect("no links"), &bytes).expect_err("one player");
        assert_eq!(fault.to_string(), "components: 5 entries were saved, and this machine has 1");
        assert!(load(&mut players(0), &bytes[..bytes.len() / 2]).is_err());
    }
}
