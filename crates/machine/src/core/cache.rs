//! What a core's harts share: its L1, the lines under way to it, what has left it and is not acknowledged,
//! and the messages to home slices.
//!
//! | line is | Probe, a copy may stay | Probe, none may | eviction |
//! |---|---|---|---|
//! | S, E | stays, S | leaves | leaves silently |
//! | M | stays, S, its bytes go home | leaves, its bytes go home | `Put` with its bytes |
//! | put, not acknowledged | its bytes once more | its bytes once more | - |
//! | none of these | acknowledged | acknowledged | - |
//!
//! Invariant: a line has at most one request under way; probes are answered in the event in which they come,
//! but for those that [`super::kept`] and [`super::region`] hold.

use crate::coherence::{CPU_LINE_BYTES, CPU_LINE_MASK, Grant, HomeMsg, Want};
use crate::line::{Line, LinePool};
use crate::msg::Msg;
use crate::ports::{Ports, Requester};
use durawarp_checkpoint::{state, value};
use durawarp_engine::{Ctx, Time};
use durawarp_persist::handler::CoreOffer;
use durawarp_riscv::instruction::Op;

use super::counters::CoreCounters;
use super::handler_host::CoreHost;
use super::kept::{ArrivedLine, Filled, KeptLines};
use super::l1d::{L1d, LineBytes, LineState};

/// No line begins here.
const NO_LINE: u64 = u64::MAX;

/// A load that waits for its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadWaiter {
    pub(super) hart: u8,
    pub(super) op: Op,
    pub(super) width: u8,
    /// Number of its instruction.
    pub(super) number: u64,
    /// Physical address.
    pub(super) address: u64,
    /// The first cycle in which it may have its value: its own address and its own way through the L1 count,
    /// though the line was asked for by another load before.
    pub(super) earliest: u64,
}

value!(record LoadWaiter { hart, op, width, number, address, earliest });

/// A line under way.
#[derive(Debug)]
struct Mshr {
    line: u64,
    waiters: Vec<LoadWaiter>,
}

value!(record Mshr { line, waiters });

/// A line operation that is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Cleaning {
    hart: u8,
    tag: u16,
    line: u64,
    /// When it was sent.
    sent: Time,
}

value!(record Cleaning { hart, tag, line, sent });

/// What came of asking for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is asked for now; loads may wait for it here.
    Sent(u16),
    /// It is under way already; loads may wait for it here.
    UnderWay(u16),
    /// No more lines can be under way.
    Full,
}

/// The L1 of a core and its requests.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) l1: L1d,
    mshrs: Vec<Mshr>,
    /// Lines under way.
    busy: usize,
    /// Lines that have left and are not acknowledged.
    puts: Vec<(u64, LineBytes)>,
    cleanings: Vec<Cleaning>,
    /// What waits for lines that a scheme has stay.
    pub(super) kept: KeptLines,
    /// Probes that are not answered yet, under a scheme that has lines stay.
    held_probes: Vec<(u64, Box<Line>)>,
    next_cleaning: u16,
    /// When the last line operation with bytes leaves: nothing overtakes it.
    bytes_leave: Time,
    pool: LinePool,
    ports: Ports,
    pub(super) from: Requester,
}

state!(Cache {
    parts: l1; sized: mshrs; saved: busy, puts, cleanings, kept, held_probes, next_cleaning, bytes_leave;
    kept: pool, ports, from
});

impl Cache {
    /// An empty cache with room for this many lines under way.
    pub(super) fn new(l1: L1d, mshr_entries: u32, ports: Ports) -> Cache {
        let free = || Mshr { line: NO_LINE, waiters: Vec::new() };
        Cache {
            l1,
            mshrs: (0..mshr_entries).map(|_| free()).collect(),
            busy: 0,
            puts: Vec::new(),
            cleanings: Vec::new(),
            kept: KeptLines::default(),
            held_probes: Vec::new(),
            next_cleaning: 0,
            bytes_leave: 0,
            pool: LinePool::default(),
            from: ports.requester(),
            ports,
        }
    }

    /// Sends a message about a line. It leaves after `delay` ticks, and not before earlier bytes: a request
    /// that overtook them would be answered with older ones.
    pub(super) fn send(&self, line: u64, message: HomeMsg, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let delay = delay.max(self.bytes_leave.saturating_sub(cx.now()));
        self.ports.to_home_of(line).send(message, delay, cx);
    }

    /// Asks for a line, unless it is under way. The request leaves after `delay` ticks.
    pub(super) fn ask(
        &mut self,
        line: u64,
        want: Want,
        delay: Time,
        counters: &mut CoreCounters,
        cx: &mut Ctx<'_, Msg>,
    ) -> Asked {
        if self.busy > 0
            && let Some(tag) = self.mshrs.iter().position(|mshr| mshr.line == line)
        {
            return Asked::UnderWay(tag as u16);
        }
        if self.busy == self.mshrs.len() {
            return Asked::Full;
        }
        let Some(tag) = self.mshrs.iter().position(|mshr| mshr.line == NO_LINE) else { return Asked::Full };
        self.busy += 1;
        self.mshrs[tag].line = line;
        *(if want == Want::Exclusive { &mut counters.gets_exclusive } else { &mut counters.gets_shared }) += 1;
        let room = self.pool.take();
        self.send(line, HomeMsg::Get { line, from: self.from, tag: tag as u16, want, room }, delay, cx);
        Asked::Sent(tag as u16)
    }

    /// A load waits for a line that is under way.
    pub(super) fn wait(&mut self, tag: u16, waiter: LoadWaiter) {
        self.mshrs[usize::from(tag)].waiters.push(waiter);
    }

    /// Loads of a hart from this number on wait no more.
    pub(super) fn squash(&mut self, hart: u8, first: u64) {
        for mshr in &mut self.mshrs {
            mshr.waiters.retain(|waiter| waiter.hart != hart || waiter.number < first);
        }
    }

    /// The line that is asked for under a tag.
    pub(super) fn line_of(&self, tag: u16) -> u64 {
        self.mshrs[usize::from(tag)].line
    }

    /// A line has come: it gets its place, if there is one.
    ///
    /// # Errors
    /// The line, which has to wait.
    pub(super) fn fill(
        &mut self,
        arrival: ArrivedLine,
        counters: &mut CoreCounters,
        host: &mut CoreHost,
        cx: &mut Ctx<'_, Msg>,
    ) -> Result<Filled, ArrivedLine> {
        let Some(place) = self.place_for(self.line_of(arrival.tag), host) else { return Err(arrival) };
        let ArrivedLine { tag, grant, data, probe } = arrival;
        let line = std::mem::replace(&mut self.mshrs[usize::from(tag)].line, NO_LINE);
        self.busy -= 1;
        let evicted = self.l1.occupant(place).filter(|&(old, _)| old != line);
        if host.policy.renaming {
            if let Some((old, LineState::Modified)) = evicted {
                // Its bytes go home as a write-back, and it leaves silently: probes come for it still.
                host.offer(&CoreOffer::GiveUp(old));
                self.write_back_asked(0, host, cx);
            }
        } else if let Some((old, LineState::Modified)) = evicted {
            counters.puts += 1;
            let bytes = *self.l1.line(place);
            self.puts.push((old, bytes));
            let mut room = self.pool.take();
            put_bytes(&mut room, &bytes);
            let dependencies = host.dependencies(old);
            self.send(old, HomeMsg::Put { line: old, from: self.from, data: room, dependencies }, 0, cx);
        }
        let state = match grant {
            Grant::Shared | Grant::Once => LineState::Shared,
            Grant::Exclusive => LineState::Exclusive,
            // It is written next, or else goes home as it came: its home has its bytes.
            Grant::Modified => LineState::Exclusive,
        };
        self.l1.install(place, line, state, &data.bytes);
        self.pool.give(data);
        Ok(Filled { tag, evicted: evicted.map(|(old, _)| old), probe })
    }

    /// The loads that waited for a line that has come, to be given back by [`Cache::return_waiters`].
    pub(super) fn take_waiters(&mut self, tag: u16) -> Vec<LoadWaiter> {
        std::mem::take(&mut self.mshrs[usize::from(tag)].waiters)
    }

    /// Gives room for waiters back.
    pub(super) fn return_waiters(&mut self, tag: u16, mut waiters: Vec<LoadWaiter>) {
        waiters.clear();
        self.mshrs[usize::from(tag)].waiters = waiters;
    }

    /// A home asks for a line. True when the L1 has lost it.
    pub(super) fn probe(
        &mut self,
        line: u64,
        invalidate: bool,
        mut room: Box<Line>,
        host: &mut CoreHost,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let place = self.l1.find(line);
        let mut dirty = false;
        if let Some(place) = place {
            let modified = matches!(self.l1.occupant(place), Some((_, LineState::Modified)));
            if modified {
                dirty = true;
                put_bytes(&mut room, self.l1.line(place));
            }
            if invalidate {
                self.l1.remove(place);
            } else {
                self.l1.set_state(place, LineState::Shared);
            }
        } else if let Some((_, bytes)) = self.puts.iter().find(|(put, _)| *put == line) {
            // Its put has crossed the probe.
            dirty = true;
            put_bytes(&mut room, bytes);
        }
        let dependencies = host.dependencies(line);
        self.send(line, HomeMsg::ProbeAck { line, from: self.from, dirty, room, dependencies }, 0, cx);
        invalidate && place.is_some()
    }

    /// A line that has left is at its home.
    pub(super) fn put_is_acknowledged(&mut self, line: u64, room: Box<Line>) {
        if let Some(at) = self.puts.iter().position(|(put, _)| *put == line) {
            self.puts.remove(at);
        }
        self.pool.give(room);
    }

    /// Sends a line operation of a hart. True when the L1 has lost the line.
    pub(super) fn clean(
        &mut self,
        hart: u8,
        line: u64,
        flush: bool,
        delay: Time,
        host: &mut CoreHost,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let mut room = self.pool.take();
        let place = self.l1.find(line);
        let mut dirty = false;
        if let Some(place) = place {
            dirty = matches!(self.l1.occupant(place), Some((_, LineState::Modified)));
            if dirty {
                put_bytes(&mut room, self.l1.line(place));
                // The home has them, and the core may write on. It may drop the line without a word now, so
                // that what the bytes depend on goes with them.
                self.l1.set_state(place, LineState::Exclusive);
                self.bytes_leave = self.bytes_leave.max(cx.now() + delay);
            }
            if flush {
                self.l1.remove(place);
            }
        }
        let tag = self.next_cleaning;
        self.next_cleaning = tag.wrapping_add(1);
        self.cleanings.push(Cleaning { hart, tag, line, sent: cx.now() + delay });
        let dependencies = host.dependencies(line);
        let (from, at_once) = (self.from, host.policy.renaming);
        self.send(line, HomeMsg::Clean { line, from, tag, flush, at_once, dirty, room, dependencies }, delay, cx);
        flush && place.is_some()
    }

    /// Lines are written back at the handler's word, after `delay` ticks.
    pub(super) fn write_back_asked(&mut self, delay: Time, host: &mut CoreHost, cx: &mut Ctx<'_, Msg>) {
        for line in host.take_cleans() {
            self.clean(0, line, false, delay, host, cx);
        }
    }

    /// A line operation is acknowledged: its line, and when it was sent.
    pub(super) fn cleaned(&mut self, tag: u16, room: Box<Line>) -> Option<(u64, Time)> {
        self.pool.give(room);
        let at = self.cleanings.iter().position(|cleaning| cleaning.tag == tag)?;
        let Cleaning { line, sent, .. } = self.cleanings.remove(at);
        Some((line, sent))
    }

    /// A probe that takes a line is answered later; the core may read the line until then.
    pub(super) fn hold_probe(&mut self, line: u64, room: Box<Line>) {
        if let Some(place) = self.l1.find(line) {
            self.l1.set_state(place, LineState::Shared);
        }
        self.held_probes.push((line, room));
    }

    /// The probe of a line that waits.
    pub(super) fn take_probe(&mut self, line: u64) -> Option<Box<Line>> {
        let at = self.held_probes.iter().position(|&(held, _)| held == line)?;
        Some(self.held_probes.remove(at).1)
    }

    /// Line operations of a hart that are not acknowledged.
    pub(super) fn cleanings_of(&self, hart: u8) -> usize {
        self.cleanings.iter().filter(|cleaning| cleaning.hart == hart).count()
    }

    /// No more line operations can be told apart.
    pub(super) fn cleanings_are_full(&self) -> bool {
        self.cleanings.len() >= usize::from(u16::MAX)
    }

    /// The lines under way, for reports.
    pub(super) fn under_way(&self) -> impl Iterator<Item = u64> {
        self.mshrs.iter().map(|mshr| mshr.line).filter(|&line| line != NO_LINE)
    }

    /// Lines that their homes lack, with their bytes: in the L1, then on their way home.
    pub(super) fn dirty_lines(&self) -> impl Iterator<Item = (u64, &[u8], u128)> {
        let in_l1 = self.l1.modified();
        // What is under way comes first: a line that has come back since is newer.
        let put = self.puts.iter().map(|(line, bytes)| (*line, bytes));
        let here = put.chain(in_l1).map(|(line, bytes)| (line, &bytes[..], CPU_LINE_MASK));
        here.chain(self.recalled_lines().map(|(line, bytes)| (line, bytes, CPU_LINE_MASK)))
    }
}

pub(super) fn put_bytes(room: &mut Line, bytes: &LineBytes) {
    room.bytes[..CPU_LINE_BYTES as usize].copy_from_slice(bytes);
    room.mask = CPU_LINE_MASK;
}
