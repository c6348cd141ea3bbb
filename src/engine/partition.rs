//! A set of components that one thread runs, with everything that is pending for them.
//!
//! ```text
//!   round [from, bound) of a tier:   queue ──open──> agenda: #3 [e e e]  #0 [e]  #7 []
//!                                            │
//!          component-major: run #3 alone to the bound, then #0, then #7; its state stays in the cache
//!                                            │
//!          #3:  keys of the round ┐
//!               early messages    ├─ least (time, tie) first; a wake-up after the messages of its instant
//!               its wake slot     ┘
//! ```
//! A component's wake-up is one number beside it. Wakes inside the round never touch the queue; one after the
//! round leaves a note in the queue, so that the round of its time finds the component. A note may be stale
//! (the component woke earlier meanwhile): then it runs nothing. Notes depend on the component's own history
//! only, so rounds do too.
//!
//! Invariants: a partition is plain movable data. What a component does in a round depends on nothing but its
//! state and its pending events; a panic of a component is kept and does not keep the others from their
//! round. Not here: clocks (see [`Meter`]), other partitions (see `exchange.rs`).

use std::cmp::Reverse;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::agenda::{Agenda, NO_KEY, RoundKey, offset_of, payload_of, tie_of};
use super::component::Component;
use super::context::{Ctx, Sink, Verdict};
use super::digest;
use super::event::{Event, Key, NEVER, SEQUENCE_LIMIT, Tie};
use super::horizon::Window;
use super::message::{ComponentId, Message};
use super::queue::Queue;
use super::tiers::{MAX_TIERS, PerTier, Tiers};
use super::time::Time;
use super::wires::Wires;

/// More wake-ups at one instant than this are taken for a component that never lets time pass.
const MAX_WAKES_AT_ONCE: u32 = 1 << 20;

/// A component, with the engine's state for it.
pub(crate) struct Cell<M> {
    pub(crate) id: ComponentId,
    pub(crate) tier: u8,
    /// What it is fused with, by number; alone where it is fused with nothing.
    block: u32,
    pub(crate) component: Box<dyn Component<M>>,
    pub(crate) wires: Wires,
    /// Its pending wake-up, or [`NEVER`].
    pub(crate) wake: Time,
    /// The time of its latest note in the queue, or [`NEVER`] once that was opened.
    pub(crate) noted: Time,
    /// The tie of its next message, less the phase: its id, and how many messages it has sent.
    pub(crate) tie: u64,
    pub(crate) digest: u64,
    pub(crate) messages: u64,
    pub(crate) wakes: u64,
    pub(crate) cost: Cost,
}

/// What running a component costs, measured now and then. Serves placement only: results never depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    sampled_ns: f32,
    sampled_events: f32,
    /// Its events when its load was last taken.
    pub(crate) events_before: u64,
}

impl Cost {
    /// Takes in one sample. The average is over the last few thousand events; an outlier (the thread was
    /// descheduled) counts as a few usual events only.
    fn sample(&mut self, ns: u64, events: u64) {
        let (ns, events) = (ns as f32, events as f32);
        if self.sampled_events == 0.0 {
            (self.sampled_ns, self.sampled_events) = (ns, events);
        } else {
            self.sampled_ns += ns.min(4.0 * self.ns_per_event() * events);
            self.sampled_events += events;
        }
        if self.sampled_events > 4096.0 {
            self.sampled_ns /= 2.0;
            self.sampled_events /= 2.0;
        }
    }

    /// What an event of it costs, in ns; 0 when it was never sampled.
    pub(crate) fn ns_per_event(&self) -> f32 {
        if self.sampled_events > 0.0 { self.sampled_ns / self.sampled_events } else { 0.0 }
    }
}

impl<M> Cell<M> {
    /// A component that has not run yet.
    pub(crate) fn new(
        id: ComponentId,
        (tier, block): (u8, u32),
        component: Box<dyn Component<M>>,
        wires: Wires,
    ) -> Self {
        Cell {
            id,
            tier,
            block,
            component,
            wires,
            wake: NEVER,
            noted: NEVER,
            tie: Tie::new(0, id, 0).0,
            digest: digest::START,
            messages: 0,
            wakes: 0,
            cost: Cost::default(),
        }
    }

    pub(crate) fn events(&self) -> u64 {
        self.messages + self.wakes
    }
}

impl<M> fmt::Debug for Cell<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("id", &self.id).field("wake", &self.wake).finish_non_exhaustive()
    }
}

/// Reads a clock around component-rounds; nothing below the driver reads one itself.
pub(crate) trait Meter {
    /// Nanoseconds since the last call (or since the meter was made); `None` when this round is not sampled.
    fn lap(&mut self) -> Option<u64>;
    /// What the lap was of.
    #[inline]
    fn note(&mut self, _component: ComponentId, _events: u64, _ns: u64) {}
}

/// The meter of a round that is not sampled. Costs nothing.
#[derive(Debug)]
pub(crate) struct NoMeter;

impl Meter for NoMeter {
    #[inline]
    fn lap(&mut self) -> Option<u64> {
        None
    }
}

/// What a round of one partition came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RoundCount {
    /// Messages and wakes handled.
    pub(crate) events: u64,
    /// The most of them at one component, or at those fused with it: the least that any split of the round
    /// takes.
    pub(crate) heaviest: u64,
}

/// A component that panicked.
#[derive(Debug)]
pub(crate) struct Crash {
    pub(crate) id: ComponentId,
    pub(crate) message: String,
}

/// A set of components and their pending events.
#[derive(Debug)]
pub(crate) struct Partition<M> {
    /// Its index among the partitions.
    pub(crate) index: u32,
    /// In id order.
    pub(crate) cells: Vec<Cell<M>>,
    pub(crate) sink: Sink<M>,
    agenda: Agenda,
    /// The time of the latest event handled.
    pub(crate) last_event: Time,
    /// By tier: nothing is pending before. The same in every partition.
    pub(crate) reached: PerTier,
    /// Rounds run.
    rounds: u64,
    /// By what is fused: the latest round in which anything of it ran, and its events in that.
    in_round: Vec<(u64, u64)>,
    /// Messages sent to other partitions.
    pub(crate) sent_away: u64,
    /// The panicked component of the least id.
    pub(crate) crash: Option<Crash>,
}

impl<M: Message> Partition<M> {
    /// A partition, one of `partitions`, of these cells, with nothing pending: a queue for each tier.
    pub(crate) fn new(index: u32, partitions: usize, cells: Vec<Cell<M>>, queues: Vec<Queue<M>>) -> Self {
        let blocks = cells.iter().map(|cell| cell.block as usize + 1).max().unwrap_or(0);
        Partition {
            index,
            agenda: Agenda::new(cells.len()),
            cells,
            in_round: vec![(0, 0); blocks],
            sink: Sink {
                queues,
                bounds: [0; MAX_TIERS],
                early: Default::default(),
                outboxes: (0..partitions).map(|_| Vec::new()).collect(),
                least_sent: [NEVER; MAX_TIERS],
                verdict: Verdict::default(),
            },
            last_event: 0,
            reached: [0; MAX_TIERS],
            rounds: 0,
            sent_away: 0,
            crash: None,
        }
    }

    /// By tier: a lower bound of the earliest time at which anything can happen here. The least of all
    /// partitions is the same however components are placed.
    #[inline]
    pub(crate) fn earliest(&self) -> PerTier {
        let mut earliest = [NEVER; MAX_TIERS];
        for (tier, queue) in self.sink.queues.iter().enumerate() {
            earliest[tier] = queue.earliest_slot_start().max(self.reached[tier]);
        }
        earliest
    }

    /// How far the furthest tier is.
    pub(crate) fn furthest(&self) -> Time {
        self.reached.iter().copied().take(self.sink.queues.len()).fold(0, Time::max)
    }

    /// As [`Partition::earliest`], for what it sent to others in the round, as if that lay in their queues
    /// already.
    #[inline]
    pub(crate) fn earliest_sent(&self, tiers: &Tiers) -> PerTier {
        let mut earliest = [NEVER; MAX_TIERS];
        for (tier, earliest) in earliest.iter_mut().enumerate().take(self.sink.queues.len()) {
            let sent = self.sink.least_sent[tier];
            if sent != NEVER {
                let slots = tiers.slots(tier);
                *earliest = slots.slot_start(slots.slot_of(sent)).max(self.reached[tier]);
            }
        }
        earliest
    }

    /// Takes in messages from another partition.
    pub(crate) fn deliver(&mut self, batch: &mut Vec<Event<M>>) {
        for event in batch.drain(..) {
            let tier = usize::from(self.cells[event.to as usize].tier);
            self.sink.queues[tier].push(event.time, event.tie.0, event.to, event.message);
        }
    }

    /// Leaves notes for wake-ups that have none: before the first round, and after the caller changed some.
    pub(crate) fn note_wakes(&mut self) {
        for (index, cell) in self.cells.iter_mut().enumerate() {
            if cell.wake != NEVER && cell.wake != cell.noted {
                cell.noted = cell.wake;
                self.sink.queues[usize::from(cell.tier)].push_wake(cell.wake, index as u32);
            }
        }
    }

    /// Runs every component that has something to do to the bound of its tier.
    pub(crate) fn run_round(
        &mut self,
        tiers: &Tiers,
        windows: &[Window; MAX_TIERS],
        meter: &mut impl Meter,
    ) -> RoundCount {
        self.rounds += 1;
        self.sink.least_sent = [NEVER; MAX_TIERS];
        for (bound, window) in self.sink.bounds.iter_mut().zip(windows) {
            *bound = window.bound;
        }
        let mut count = RoundCount::default();
        for (tier, &window) in windows.iter().enumerate().take(self.sink.queues.len()) {
            if window.from < window.bound {
                self.run_tier(tier, tiers, window, &mut count, meter);
            }
            self.reached[tier] = self.reached[tier].max(window.bound);
        }
        count
    }

    fn run_tier(&mut self, tier: usize, tiers: &Tiers, window: Window, count: &mut RoundCount, meter: &mut impl Meter) {
        let mut earliest = window.from;
        while let Some(mut step) = tiers.step(tier, earliest, window) {
            let queue = &mut self.sink.queues[tier];
            queue.advance(step.from);
            step.bound = step.bound.min(queue.end());
            queue.open(step.bound, &mut self.agenda.opened);
            self.agenda.arrange(step.from);
            self.sink.bounds[tier] = step.bound;
            let mut next = 0;
            while next < self.agenda.len() {
                // One net under all of them; only after a panic is it spread again, for the rest.
                let rest = AssertUnwindSafe(|| self.run_groups(tier, &mut next, step, count, meter));
                if let Err(payload) = catch_unwind(rest) {
                    self.note_crash(next - 1, payload.as_ref());
                }
            }
            earliest = self.sink.queues[tier].earliest_slot_start().max(step.bound);
        }
    }

    fn run_groups(
        &mut self,
        tier: usize,
        next: &mut usize,
        window: Window,
        count: &mut RoundCount,
        meter: &mut impl Meter,
    ) {
        meter.lap();
        while *next < self.agenda.len() {
            let (to, keys) = self.agenda.group(*next);
            *next += 1;
            let cell = &mut self.cells[to as usize];
            let last = run_cell(cell, self.index, keys, window, &mut self.sink);
            if let Some((last, events)) = last {
                self.last_event = self.last_event.max(last);
                count.events += events;
                // A round may be run in several steps, and no split of it parts what is fused: the heaviest
                // counts all events of the round of a component and of those fused with it.
                let of_block = &mut self.in_round[cell.block as usize];
                let before = if of_block.0 == self.rounds { of_block.1 } else { 0 };
                *of_block = (self.rounds, before + events);
                count.heaviest = count.heaviest.max(before + events);
                if let Some(ns) = meter.lap() {
                    cell.cost.sample(ns, events);
                    meter.note(cell.id, events, ns);
                }
            }
            // A wake-up after the bound needs a note, or the round of its time would not find the component.
            // One that is noted already needs no second note.
            if cell.wake != cell.noted && cell.wake != NEVER {
                cell.noted = cell.wake;
                self.sink.queues[tier].push_wake(cell.wake, to);
            }
        }
    }

    #[cold]
    fn note_crash(&mut self, group: usize, payload: &(dyn std::any::Any + Send)) {
        let (to, _) = self.agenda.group(group);
        let id = self.cells[to as usize].id;
        self.sink.early.clear();
        if self.crash.as_ref().is_none_or(|crash| id < crash.id) {
            let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
            self.crash = Some(Crash { id, message: message.unwrap_or_else(|| "a panic without a text".to_owned()) });
        }
    }
}

/// Forms partitions anew: all components, where `placed` says, with everything that is pending for them.
///
/// `queues` are empty ones to be used, a set of one a tier for each partition, and those no longer used are
/// left there; `fresh` makes more.
pub(crate) fn rearrange<M: Message>(
    old: Vec<Partition<M>>,
    placed: &[u32],
    partitions: usize,
    queues: &mut Vec<Vec<Queue<M>>>,
    fresh: impl Fn() -> Vec<Queue<M>>,
) -> Vec<Partition<M>> {
    let mut sizes = vec![0; partitions];
    let mut index_of = Vec::with_capacity(placed.len());
    for &partition in placed {
        let size = &mut sizes[partition as usize];
        index_of.push(*size);
        *size += 1;
    }
    // By new partition, so that the memory of one queue does not lie between that of another.
    let mut pending: Vec<Vec<(Key, Option<M>)>> = (0..partitions).map(|_| Vec::new()).collect();
    let mut cells: Vec<Option<Cell<M>>> = placed.iter().map(|_| None).collect();
    let (mut last_event, mut reached, mut sent_away, mut rounds) = (0, [0; MAX_TIERS], 0, 0);
    for mut partition in old {
        debug_assert!(partition.sink.outboxes.iter().all(Vec::is_empty), "messages are under way");
        let of = &partition.cells;
        for queue in &mut partition.sink.queues {
            queue.drain(|key, message| {
                let id = of[key.to as usize].id.0 as usize;
                pending[placed[id] as usize].push((Key { to: index_of[id], ..key }, message));
            });
        }
        // Drained, hence fit for another partition.
        queues.push(partition.sink.queues);
        last_event = last_event.max(partition.last_event);
        for (reached, of) in reached.iter_mut().zip(partition.reached) {
            *reached = of.max(*reached);
        }
        sent_away += partition.sent_away;
        rounds = rounds.max(partition.rounds);
        for cell in partition.cells {
            let id = cell.id.0 as usize;
            cells[id] = Some(cell);
        }
    }
    let mut lists: Vec<Vec<Cell<M>>> = sizes.iter().map(|&size| Vec::with_capacity(size as usize)).collect();
    // In id order, as the indices above were given.
    for mut cell in cells.into_iter().flatten() {
        for (wire, end) in cell.wires.wires.iter_mut().zip(&cell.wires.ends) {
            wire.partition = placed[end.0 as usize] as u16;
            wire.index = index_of[end.0 as usize];
        }
        lists[placed[cell.id.0 as usize] as usize].push(cell);
    }
    let mut new: Vec<Partition<M>> = Vec::with_capacity(partitions);
    for (index, (list, pending)) in lists.into_iter().zip(pending).enumerate() {
        let mut partition = Partition::new(index as u32, partitions, list, queues.pop().unwrap_or_else(&fresh));
        (partition.last_event, partition.reached, partition.rounds) = (last_event, reached, rounds);
        // Queues are brought to where the old ones were before anything is pushed, so that near and far
        // events are told apart from there.
        for (queue, reached) in partition.sink.queues.iter_mut().zip(reached) {
            queue.advance(reached);
        }
        for (key, message) in pending {
            let queue = &mut partition.sink.queues[usize::from(partition.cells[key.to as usize].tier)];
            match message {
                Some(message) => queue.push(key.time, key.tie, key.to, message),
                None => queue.push_wake(key.time, key.to),
            }
        }
        new.push(partition);
    }
    new[0].sent_away = sent_away;
    new
}

/// Runs one component to the bound: its messages, what it sends itself, and its wake-ups, in order. Returns
/// the time of its last event and their number, if there was any.
#[inline]
fn run_cell<M: Message>(
    cell: &mut Cell<M>,
    partition: u32,
    keys: &[RoundKey],
    window: Window,
    sink: &mut Sink<M>,
) -> Option<(Time, u64)> {
    let component = &mut *cell.component;
    let mut cx = Ctx {
        now: window.from,
        wake: cell.wake,
        tie: cell.tie,
        from: window.from,
        tier: usize::from(cell.tier),
        id: cell.id,
        partition,
        wires: &cell.wires,
        sink,
    };
    // Opening the round took the notes before its bound out of the queue.
    if cell.noted < window.bound {
        cell.noted = NEVER;
    }
    let mut rolling = cell.digest;
    let (mut messages, mut wakes) = (0, 0);
    let mut wakes_at_once = 0;
    let mut keys = keys.iter().copied();
    let mut posted = keys.next().unwrap_or(NO_KEY);
    loop {
        let early = cx.sink.early.peek().map_or(NO_KEY, |&Reverse(key)| key);
        let next = posted.min(early);
        let due = window.from.saturating_add(offset_of(next));
        // Strictly earlier: a wake-up follows all messages of its instant, those included that the component
        // sends itself meanwhile.
        if cx.wake < due {
            if cx.wake >= window.bound {
                break;
            }
            // A component that asks for the present again and again would keep the round from ending: a bug
            // of the model, reported instead of a hang.
            if cx.wake == cx.now && wakes > 0 {
                wakes_at_once += 1;
                assert!(
                    wakes_at_once < MAX_WAKES_AT_ONCE,
                    "it wakes again and again at {} and never lets time pass",
                    cx.now
                );
            } else {
                wakes_at_once = 0;
            }
            cx.now = cx.wake;
            cx.wake = NEVER;
            rolling = digest::fold(rolling, cx.now, Tie::WAKE.0, 0);
            component.wake(&mut cx);
            wakes += 1;
        } else if next != NO_KEY {
            // What the component sent itself inside the round never went through the queue, so the two
            // sources are merged here; keys hold time and tie, hence their order is that of events.
            if early < posted {
                cx.sink.early.pop();
            } else {
                posted = keys.next().unwrap_or(NO_KEY);
            }
            cx.now = due;
            let message = cx.sink.queues[cx.tier].take(payload_of(next));
            rolling = digest::fold(rolling, due, tie_of(next), message.digest());
            component.handle(message, &mut cx);
            messages += 1;
        } else {
            break;
        }
    }
    // Once here instead of at every send: a sequence number that overflowed has become a lesser one.
    assert!(Tie(cx.tie).sequence() >= Tie(cell.tie).sequence(), "it sent more than {SEQUENCE_LIMIT} messages");
    (cell.wake, cell.tie, cell.digest) = (cx.wake, cx.tie, rolling);
    cell.messages += messages;
    cell.wakes += wakes;
    (messages + wakes > 0).then_some((cx.now, messages + wakes))
}
