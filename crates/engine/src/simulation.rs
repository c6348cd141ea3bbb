//! A topology that runs: to its end, to a limit, and on from there, at any number of threads with the same
//! results.

use std::mem;

use super::cell::{Absent, Cell, Standing};
use super::component::{Component, Wait};
use super::digest::{self, EpochDigests};
use super::event::{NEVER, OUTSIDE, Tie};
use super::horizon::Horizon;
use super::message::{ComponentId, Message};
use super::partition::Partition;
use super::placement::Blocks;
use super::queue::Queue;
use super::scaling::{Scaling, Traced};
use super::stats::EngineStats;
use super::tiers::Tiers;
use super::time::Time;
use super::topology::{Topology, TopologyError};
use super::trace::RoundTrace;

/// A topology that runs.
///
/// # Example: two components that count each other down
/// ```
/// use durawarp_engine::*;
///
/// struct Countdown(u32); // the message
/// impl Message for Countdown {
///     fn digest(&self) -> u64 { u64::from(self.0) }
/// }
/// struct Player;
/// impl Component<Countdown> for Player {
///     fn handle(&mut self, ball: Countdown, cx: &mut Ctx<'_, Countdown>) {
///         if ball.0 > 0 {
///             cx.send(Port(0), Countdown(ball.0 - 1), 0);
///         }
///     }
///     fn wake(&mut self, cx: &mut Ctx<'_, Countdown>) {
///         cx.send(Port(0), Countdown(9), 0);
///     }
/// }
///
/// let build = || {
///     let mut t = Topology::new();
///     let [a, b] = ["a", "b"].map(|name| t.add(name, Box::new(Player)));
///     t.connect(a, Port(0), b, Link { latency: 100, phase: 0 });
///     t.connect(b, Port(0), a, Link { latency: 100, phase: 0 });
///     t.wake_at(a, 0);
///     Simulation::new(t).unwrap()
/// };
/// let mut one = build();
/// assert!(matches!(one.run(&RunOptions::default()), RunEnd::Finished { at: 1000 }));
/// let mut two = build();
/// two.run(&RunOptions { threads: 2, ..RunOptions::default() });
/// assert_eq!(one.digest(), two.digest());
/// ```
#[derive(Debug)]
pub struct Simulation<M> {
    pub(crate) names: Vec<String>,
    pub(crate) blocks: Blocks,
    pub(crate) tiers: Tiers,
    pub(crate) longest_latency: Time,
    /// Everything, while no run is on.
    pub(crate) home: Partition<M>,
    /// Queues of partitions that are not there just now, to be used again.
    pub(crate) spare_queues: Vec<Vec<Queue<M>>>,
    pub(crate) stats: EngineStats,
    pub(crate) epochs: Option<EpochDigests>,
    pub(crate) open_epoch: Option<u64>,
    pub(crate) poisoned: Option<(ComponentId, String)>,
    /// What components cost in each round, where a run was traced.
    pub(crate) trace: Option<RoundTrace>,
    pub(super) posted: u64,
}

impl<M: Message> Simulation<M> {
    /// Checks the topology and makes it ready to run.
    ///
    /// # Errors
    /// All faults of the topology: latencies of 0, ports with gaps or doubles, components that were not
    /// added.
    pub fn new(topology: Topology<M>) -> Result<Self, TopologyError> {
        let parts = topology.assemble()?;
        let components = parts.components.len();
        let ids = |sets: &[Vec<ComponentId>]| -> Vec<Vec<u32>> {
            sets.iter().map(|set| set.iter().map(|id| id.0).collect()).collect()
        };
        let fused = ids(&parts.fused);
        let answers = |tier: u8| parts.tiers.answering() == Some(usize::from(tier));
        let mut places: Vec<Standing> =
            parts.tier_of.iter().map(|&tier| Standing { block: 0, fused: false, answers: answers(tier) }).collect();
        Blocks::new(components, &[], &fused).each(|block, component| places[component as usize].block = block);
        for &component in fused.iter().flatten() {
            places[component as usize].fused = true;
        }
        let all = parts.components.into_iter().zip(parts.wires).zip(parts.tier_of.iter().zip(places)).enumerate();
        let cells = all.map(|(id, ((component, wires), (&tier, place)))| {
            Cell::new(ComponentId(id as u32), tier, place, component, wires)
        });
        let cells = cells.collect();
        let mut simulation = Simulation {
            names: parts.names,
            blocks: Blocks::new(components, &ids(&parts.together), &fused),
            tiers: parts.tiers,
            longest_latency: parts.longest_latency,
            home: Partition::new(0, 1, cells, Queue::of_tiers(&parts.tiers, parts.longest_latency)),
            spare_queues: Vec::new(),
            stats: EngineStats::default(),
            epochs: None,
            open_epoch: None,
            poisoned: None,
            trace: None,
            posted: 0,
        };
        // Starts go the way of those that a caller makes later: the same checks, notes and sequence numbers.
        for (id, time) in parts.wakes {
            simulation.wake_at(id, time);
        }
        for (to, time, message) in parts.posts {
            simulation.post(to, time, message);
        }
        Ok(simulation)
    }

    /// Wakes a component at `time`; the earlier of this and its pending wake-up is kept.
    ///
    /// # Panics
    /// When events of that time were handled already, or there is no such component.
    pub fn wake_at(&mut self, component: ComponentId, time: Time) {
        self.check_start(component, time);
        let cell = &mut self.home.cells[component.0 as usize];
        cell.wake = cell.wake.min(time);
        self.home.note_wakes();
    }

    /// Has a message arrive at `time` from outside, after the messages of phase 0 of that instant from
    /// components.
    ///
    /// # Panics
    /// When events of that time were handled already, or there is no such component.
    pub fn post(&mut self, to: ComponentId, time: Time, message: M) {
        self.check_start(to, time);
        let tie = Tie::new(0, ComponentId(OUTSIDE), self.posted);
        self.posted += 1;
        let tier = usize::from(self.home.cells[to.0 as usize].tier);
        self.home.sink.queues[tier].push(time, tie.0, to.0, message);
    }

    fn check_start(&self, component: ComponentId, time: Time) {
        assert!((component.0 as usize) < self.names.len(), "there is no component {component}");
        let reached = self.reached();
        assert!(time >= reached, "a start at {time}, but everything before {reached} is past");
    }

    /// Hands out everything, for a run.
    pub(crate) fn leave_home(&mut self) -> Partition<M> {
        let queues = self.fresh_queues();
        mem::replace(&mut self.home, Partition::new(0, 1, Vec::new(), queues))
    }

    /// Takes everything back, after a run.
    pub(crate) fn come_home(&mut self, mut home: Partition<M>) {
        home.sent_away = 0;
        let away = mem::replace(&mut self.home, home);
        self.spare_queues.push(away.sink.queues);
    }

    /// Empty queues, used before if there are any.
    pub(crate) fn fresh_queues(&mut self) -> Vec<Queue<M>> {
        self.spare_queues.pop().unwrap_or_else(|| Queue::of_tiers(&self.tiers, self.longest_latency))
    }

    /// Records an epoch that is complete.
    pub(crate) fn keep_epoch(&mut self, epoch: u64, digests: Vec<u64>) {
        if let Some(epochs) = &mut self.epochs {
            epochs.record(epoch, digests);
        }
    }

    /// Every event before this time is handled, and none at or after it.
    pub fn reached(&self) -> Time {
        self.home.furthest()
    }

    /// What the engine did so far.
    pub fn stats(&self) -> &EngineStats {
        &self.stats
    }

    /// What the runs so far would come to on these numbers of threads, where they were traced
    /// ([`RunOptions::trace`](super::RunOptions)); `barrier_ns` is the cost of a round's barrier by threads.
    pub fn scaling(&self, threads: &[usize], barrier_ns: impl Fn(usize) -> f64) -> Option<Scaling> {
        let trace = self.trace.as_ref()?;
        Some(Traced::new(trace, &self.blocks, &self.home.cells).scaling(&self.names, threads, barrier_ns))
    }

    /// The windows of this topology's first tier when nothing else holds it back.
    pub fn horizon(&self) -> Horizon {
        self.tiers.slots(0)
    }

    /// A number that stands for every event handled so far, in order, and for the state of all components.
    pub fn digest(&self) -> u64 {
        self.home.cells.iter().fold(digest::START, |whole, cell| {
            let whole = digest::fold(whole, cell.digest, cell.messages, cell.wakes);
            digest::fold(whole, cell.component.digest(), u64::from(cell.id.0), 0)
        })
    }

    /// A number that stands for every event that one component handled so far.
    pub fn component_digest(&self, id: ComponentId) -> u64 {
        self.home.cells[id.0 as usize].digest
    }

    /// The digests at the ends of epochs, if the last run kept any. The last epoch is added when the run is
    /// over.
    pub fn epoch_digests(&self) -> Option<&EpochDigests> {
        self.epochs.as_ref()
    }

    /// How many components there are.
    pub fn components(&self) -> usize {
        self.names.len()
    }

    /// One component; cast it through `dyn Any` to its own type.
    pub fn component(&self, id: ComponentId) -> &dyn Component<M> {
        &*self.home.cells[id.0 as usize].component
    }

    /// The time for which a component has asked to be woken; none where it has not.
    pub fn pending_wake(&self, id: ComponentId) -> Option<Time> {
        Some(self.home.cells[id.0 as usize].wake).filter(|&wake| wake != NEVER)
    }

    /// One component, to be changed between two runs.
    pub fn component_mut(&mut self, id: ComponentId) -> &mut dyn Component<M> {
        &mut *self.home.cells[id.0 as usize].component
    }

    /// Messages under way between two runs, in the order of their arrival. Cost: all that is pending.
    pub fn under_way(&self) -> Vec<&M> {
        let mut pending: Vec<_> = self.home.sink.queues.iter().flat_map(Queue::messages).collect();
        pending.sort_unstable_by_key(|(key, _)| *key);
        pending.into_iter().map(|(_, message)| message).collect()
    }

    /// Puts something around every component: `around` gets each in id order and returns what takes its
    /// place, which must do to events what the component would. For tools that watch a run from outside.
    pub fn surround(&mut self, mut around: impl FnMut(Box<dyn Component<M>>) -> Box<dyn Component<M>>) {
        for cell in &mut self.home.cells {
            let inner = mem::replace(&mut cell.component, Box::new(Absent));
            cell.component = around(inner);
        }
    }

    /// What components wait for, in order of components: id, name, wait.
    pub fn waits(&self) -> Vec<(ComponentId, String, Wait)> {
        self.waits_of(&self.home.cells)
    }

    /// The same of these, which may be away from home.
    pub(super) fn waits_of<'a>(&self, cells: impl IntoIterator<Item = &'a Cell<M>>) -> Vec<(ComponentId, String, Wait)>
    where
        M: 'a,
    {
        let mut waits = Vec::new();
        for cell in cells {
            let mut own = Vec::new();
            cell.component.waits(&mut own);
            waits.extend(own.into_iter().map(|wait| (cell.id, self.name(cell.id).to_owned(), wait)));
        }
        waits.sort_by_key(|(id, ..)| *id);
        waits
    }

    /// The name of a component.
    pub fn name(&self, id: ComponentId) -> &str {
        &self.names[id.0 as usize]
    }

    /// Takes the simulation apart: names and components, in id order.
    pub fn into_components(self) -> Vec<(String, Box<dyn Component<M>>)> {
        self.names.into_iter().zip(self.home.cells.into_iter().map(|cell| cell.component)).collect()
    }
}
