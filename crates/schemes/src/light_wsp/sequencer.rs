//! LightWSP's sequencer: the one counter of region IDs.
//!
//! IDs are given in the order in which draws come. A draw of an atomic's region names the atomic's lines, and
//! gets its ID when no earlier atomic on one of these is under way: so IDs and atomics have the same order,
//! whichever lines of several an atomic reaches first. Source: LightWSP section IV-B (the counter), readings
//! L1 to L3. Invariant: whoever waits for lines waits for earlier draws alone. That not too many IDs are in
//! use is SMs' business.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::handler::{Handler, HandlerReport, Outbox, Peer, SchemeMessage, opened};

use super::messages::RegionMessage;
use super::parameters::LightWspSpec;

/// An atomic that has lines or waits for them.
#[derive(Debug)]
struct Keeper {
    by: Peer,
    warp: u8,
    lines: Vec<u64>,
    /// Lines that earlier ones have.
    blocked: usize,
    /// It needs no ID.
    has_id: bool,
}

value!(record Keeper { by, warp, lines, blocked, has_id });

/// The handler.
#[derive(Debug)]
pub(super) struct RegionSequencer {
    spec: Arc<LightWspSpec>,
    /// Regions that have an ID, or had one.
    numbered: u32,
    keepers: HashMap<u64, Keeper>,
    next_keeper: u64,
    /// By SM, or core, and warp: its keeper.
    keeper_of: HashMap<(Peer, u8), u64>,
    /// By line: keepers in order; the first has it.
    lines: HashMap<u64, VecDeque<u64>>,
    waited_for_lines: u64,
}

state!(RegionSequencer { saved: numbered, keepers, next_keeper, keeper_of, lines, waited_for_lines; kept: spec });

impl RegionSequencer {
    pub(super) fn new(spec: Arc<LightWspSpec>) -> Self {
        RegionSequencer {
            spec,
            numbered: 0,
            keepers: HashMap::new(),
            next_keeper: 0,
            keeper_of: HashMap::new(),
            lines: HashMap::new(),
            waited_for_lines: 0,
        }
    }

    fn give(&mut self, to: Peer, warp: u8, outbox: &mut Outbox) {
        outbox.send(to, RegionMessage::Granted(warp, self.spec.tag(0, self.numbered)));
        self.numbered += 1;
    }

    fn keep(&mut self, keeper: Keeper, outbox: &mut Outbox) {
        let number = self.next_keeper;
        self.next_keeper += 1;
        let mut keeper = keeper;
        for line in &keeper.lines {
            let queue = self.lines.entry(*line).or_default();
            keeper.blocked += usize::from(!queue.is_empty());
            queue.push_back(number);
        }
        self.keeper_of.insert((keeper.by, keeper.warp), number);
        let free = keeper.blocked == 0;
        self.waited_for_lines += u64::from(!free);
        self.keepers.insert(number, keeper);
        if free {
            self.let_go(number, outbox);
        }
    }

    /// A keeper has all its lines.
    fn let_go(&mut self, number: u64, outbox: &mut Outbox) {
        let Some(&Keeper { by, warp, has_id, .. }) = self.keepers.get(&number) else { return };
        if has_id {
            outbox.send(by, RegionMessage::Kept(warp));
        } else {
            self.give(by, warp, outbox);
        }
    }

    fn performed(&mut self, by: Peer, warp: u8, outbox: &mut Outbox) {
        let keeper = self.keeper_of.remove(&(by, warp)).and_then(|number| self.keepers.remove(&number));
        let Some(keeper) = keeper else { unreachable!("an atomic that had no leave") };
        for line in keeper.lines {
            let Some(queue) = self.lines.get_mut(&line) else { continue };
            queue.pop_front();
            let next = queue.front().copied();
            if next.is_none() {
                self.lines.remove(&line);
            }
            if let Some(next) = next
                && let Some(keeper) = self.keepers.get_mut(&next)
            {
                keeper.blocked -= 1;
                if keeper.blocked == 0 {
                    self.let_go(next, outbox);
                }
            }
        }
    }
}

impl Handler for RegionSequencer {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            RegionMessage::Draw(warp, lines) if lines.is_empty() => self.give(from, warp, outbox),
            RegionMessage::Draw(warp, lines) => {
                self.keep(Keeper { by: from, warp, lines, blocked: 0, has_id: false }, outbox);
            }
            RegionMessage::Keep(warp, lines) => {
                self.keep(Keeper { by: from, warp, lines, blocked: 0, has_id: true }, outbox);
            }
            RegionMessage::Performed(warp) => self.performed(from, warp, outbox),
            other => panic!("the sequencer received {other:?} from {from:?}"),
        }
    }

    fn state(&self, take: &mut dyn FnMut(u64)) {
        let keepers = self.keepers.len() as u64;
        [u64::from(self.numbered), self.next_keeper, keepers, self.waited_for_lines].into_iter().for_each(take);
    }

    fn report(&self, report: &mut HandlerReport) {
        report.results = serde_json::json!({
            "regions_numbered": self.numbered,
            "atomics_waited_for_lines": self.waited_for_lines,
        });
    }
}
