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
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::agenda::{Agenda, NO_KEY, RoundKey, offset_of, payload_of, tie_of};
use super::cell::Cell;
use super::context::{Answer, Ctx, Sink};
use super::digest;
use super::event::{Event, Key, NEVER, SEQUENCE_LIMIT, Tie};
use super::horizon::Window;
use super::loan::{self, Lend, Loan};
use super::message::{ComponentId, Message};
use super::queue::Queue;
use super::tiers::{MAX_TIERS, PerTier, Tiers, Windows, least};
use super::time::Time;

/// More wake-ups at one instant than this are taken for a component that never lets time pass.
const MAX_WAKES_AT_ONCE: u32 = 1 << 20;

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
    /// Those of the answering tier.
    answering: Vec<u32>,
    pub(super) agenda: Agenda,
    /// Loans on their way out, and those that are not in use.
    pub(super) loans: Vec<Loan<M>>,
    pub(super) spare_loans: Vec<Loan<M>>,
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
    pub(crate) fn new(index: u32, partitions: usize, mut cells: Vec<Cell<M>>, queues: Vec<Queue<M>>) -> Self {
        loan::mark(&mut cells);
        let blocks = cells.iter().map(|cell| cell.standing.block as usize + 1).max().unwrap_or(0);
        Partition {
            index,
            answering: (0..).zip(&cells).filter(|(_, cell)| cell.standing.answers).map(|(index, _)| index).collect(),
            agenda: Agenda::new(cells.len()),
            loans: Vec::new(),
            spare_loans: Vec::new(),
            cells,
            in_round: vec![(0, 0); blocks],
            sink: Sink::new(queues, partitions),
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
            earliest[tier] = queue.earliest(self.reached[tier]);
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
                *earliest = slots.earliest(slots.slot_start(slots.slot_of(sent)), self.reached[tier]);
            }
        }
        earliest
    }

    /// Whether a component of the answering tier does not promise to answer senders only.
    #[inline]
    pub(crate) fn is_restless(&self) -> bool {
        self.answering.iter().any(|&index| !self.cells[index as usize].component.answers_sender_only())
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
            if cell.lacks_note() {
                cell.noted = cell.wake;
                self.sink.queues[usize::from(cell.tier)].push_wake(cell.wake, index as u32);
            }
        }
    }

    /// Runs every component that has something to do to the bound of its tier, but those that it lends.
    pub(crate) fn run_round(
        &mut self,
        tiers: &Tiers,
        windows: &Windows,
        lender: &mut impl Lend<M>,
        meter: &mut impl Meter,
    ) -> RoundCount {
        self.rounds += 1;
        self.sink.least_sent = [NEVER; MAX_TIERS];
        for (bound, window) in self.sink.bounds.iter_mut().zip(windows.of) {
            *bound = window.bound;
        }
        let mut count = RoundCount::default();
        for (tier, &window) in windows.of.iter().enumerate().take(self.sink.queues.len()) {
            self.sink.answer = answer(tier, tiers, windows.promised);
            if window.from < window.bound {
                self.run_tier(tier, tiers, window, lender, &mut count, meter);
            }
            self.reached[tier] = self.reached[tier].max(window.bound);
        }
        count
    }

    fn run_tier(
        &mut self,
        tier: usize,
        tiers: &Tiers,
        window: Window,
        lender: &mut impl Lend<M>,
        count: &mut RoundCount,
        meter: &mut impl Meter,
    ) {
        let mut earliest = window.from;
        while let Some(mut step) = tiers.step(tier, earliest, window) {
            let queue = &mut self.sink.queues[tier];
            queue.advance(step.from);
            step.bound = step.bound.min(queue.end());
            queue.open(step.bound, &mut self.agenda.opened);
            self.agenda.arrange(step.from);
            self.sink.bounds[tier] = step.bound;
            // What is lent runs to the end of the window at once.
            let own = if lender.lends() && step == window { self.lend(tier, lender) } else { self.agenda.len() };
            let mut next = 0;
            while next < own {
                // One net under all of them; only after a panic is it spread again, for the rest.
                let rest = AssertUnwindSafe(|| self.run_groups(tier, &mut next, own, step, count, meter));
                if let Err(payload) = catch_unwind(rest) {
                    let (to, _) = self.agenda.group(next - 1);
                    self.note_crash(self.cells[to as usize].id, payload.as_ref());
                }
            }
            earliest = self.sink.queues[tier].earliest_slot_start().max(step.bound);
        }
    }

    fn run_groups(
        &mut self,
        tier: usize,
        next: &mut usize,
        end: usize,
        window: Window,
        count: &mut RoundCount,
        meter: &mut impl Meter,
    ) {
        meter.lap();
        while *next < end {
            let (to, keys) = self.agenda.group(*next);
            *next += 1;
            let cell = &mut self.cells[to as usize];
            let last = run_cell(cell, self.index, keys, window, &mut self.sink);
            if !self.sink.left.is_empty() {
                self.sink.put_back(tier, to, window.from);
            }
            if let Some((last, events)) = last {
                self.last_event = self.last_event.max(last);
                count.events += events;
                // A round may be run in several steps, and no split of it parts what is fused: the heaviest
                // counts all events of the round of a component and of those fused with it.
                let of_block = &mut self.in_round[cell.standing.block as usize];
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
            if cell.lacks_note() {
                cell.noted = cell.wake;
                self.sink.queues[tier].push_wake(cell.wake, to);
            }
        }
    }

    #[cold]
    pub(super) fn note_crash(&mut self, id: ComponentId, payload: &(dyn std::any::Any + Send)) {
        self.sink.early.clear();
        self.sink.left.clear();
        if self.crash.as_ref().is_none_or(|crash| id < crash.id) {
            let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
            self.crash = Some(Crash { id, message: message.unwrap_or_else(|| "a panic without a text".to_owned()) });
        }
    }
}

/// Where components of a tier stop that send to the answering one.
pub(super) fn answer(tier: usize, tiers: &Tiers, promised: bool) -> Answer {
    match (tiers.answering(), tiers.answer_after(tier)) {
        (Some(answering), Some(after)) if promised => {
            Answer { tier: answering, after, slot_mask: tiers.slots(tier).slot_ticks() - 1 }
        }
        _ => Answer::NONE,
    }
}

impl<M> Sink<M> {
    /// Puts what a component stopped before back into the queue.
    #[cold]
    fn put_back(&mut self, tier: usize, to: u32, from: Time) {
        for key in self.left.drain(..) {
            let time = from + offset_of(key);
            self.queues[tier].put_back(Key { time, tie: tie_of(key), to, payload: payload_of(key) });
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
    // Components may be behind their tier, and get messages from there on.
    let behind = old.iter().map(|partition| least(&partition.earliest())).min().unwrap_or(NEVER);
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
            queue.advance(reached.min(behind));
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
pub(super) fn run_cell<M: Message>(
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
        stop: window.bound,
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
            if cx.wake >= cx.stop {
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
        } else if due < cx.stop {
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
    if cx.stop < window.bound {
        let early = cx.sink.early.drain().map(|Reverse(key)| key);
        cx.sink.left.extend([posted].into_iter().filter(|&key| key != NO_KEY).chain(keys).chain(early));
    }
    // Once here instead of at every send: a sequence number that overflowed has become a lesser one.
    assert!(Tie(cx.tie).sequence() >= Tie(cell.tie).sequence(), "it sent more than {SEQUENCE_LIMIT} messages");
    (cell.wake, cell.tie, cell.digest) = (cx.wake, cx.tie, rolling);
    cell.messages += messages;
    cell.wakes += wakes;
    (messages + wakes > 0).then_some((cx.now, messages + wakes))
}
