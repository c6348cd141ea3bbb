//! A core that is a script, or draws what it does: a component around [`ScriptedL1`].

use std::collections::{BTreeMap, BTreeSet};

use durawarp::engine::{Component, Ctx, Port, Time, Wait};
use durawarp::machine::address::Interleave;
use durawarp::machine::coherence::{CoreMsg, OsMsg, Want};
use durawarp::machine::msg::Msg;

use super::l1::{Bytes, Heard, ScriptedL1, State};
use super::log::{Noted, What};

/// What a core does to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Load(u64),
    /// All words of the line become this value.
    Store(u64, u64),
    /// The line leaves the L1.
    Evict(u64),
    Clean(u64),
    Flush(u64),
    /// The OS looks at the line.
    Once(u64),
}

impl Act {
    /// It may ask for the line.
    fn needs_line(self) -> bool {
        matches!(self, Act::Load(_) | Act::Store(..) | Act::Once(_))
    }

    fn line(self) -> u64 {
        match self {
            Act::Load(line)
            | Act::Store(line, _)
            | Act::Evict(line)
            | Act::Clean(line)
            | Act::Flush(line)
            | Act::Once(line) => line,
        }
    }
}

/// Pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }
}

/// Where a core's acts come from.
#[derive(Debug)]
pub(crate) enum Program {
    /// At given times, in order.
    Script(Vec<(Time, Act)>),
    /// `left` acts, drawn over these lines, with pauses below `pause`.
    Drawn { draw: Draw, left: u64, lines: Vec<u64>, pause: u64 },
}

/// Gets that a drawing core has under way at once.
const OUTSTANDING: usize = 3;

#[derive(Debug)]
pub(crate) struct ScriptedCore {
    pub(crate) l1: ScriptedL1,
    map: Interleave,
    program: Program,
    next: usize,
    /// Values that it stores are its own: its number, then how many it has drawn.
    number: u64,
    stored: u64,
    /// By line: what waits for it.
    waiting: BTreeMap<u64, Act>,
    pub(crate) log: Vec<Noted>,
}

pub(crate) fn bytes_of(value: u64) -> Bytes {
    let mut bytes = [0; 64];
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&value.to_le_bytes()));
    bytes
}

/// The value of a line; none of one whose words differ.
pub(crate) fn value_of(bytes: &[u8]) -> Option<u64> {
    let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    let first = words.next()?;
    words.all(|word| word == first).then_some(first)
}

impl ScriptedCore {
    pub(crate) fn new(number: u64, l1: ScriptedL1, map: Interleave, program: Program) -> ScriptedCore {
        let (waiting, log) = (BTreeMap::new(), Vec::new());
        ScriptedCore { l1, map, program, next: 0, number, stored: 0, waiting, log }
    }

    pub(crate) fn first(&self) -> Option<Time> {
        match &self.program {
            Program::Script(acts) => acts.first().map(|(at, _)| *at),
            Program::Drawn { .. } => Some(0),
        }
    }

    fn note(&mut self, line: u64, what: What, now: Time) {
        self.log.push(Noted { at: now, line, what });
    }

    /// Does it now, or asks for the line first.
    fn act(&mut self, act: Act, now: Time) {
        let line = act.line();
        let before = self.l1.state(line);
        match act {
            Act::Load(_) => match self.l1.load(line) {
                Some(bytes) => self.note(line, What::Loaded(value_of(&bytes)), now),
                None => self.ask(act, Want::Shared),
            },
            Act::Store(_, value) => match self.l1.store(line, bytes_of(value)) {
                true => self.note(line, What::Stored(value), now),
                false => self.ask(act, Want::Exclusive),
            },
            Act::Once(_) => {
                self.note(line, What::Looking, now);
                self.ask(act, Want::Once);
            }
            Act::Evict(_) => self.l1.evict(line),
            Act::Clean(_) | Act::Flush(_) => {
                let tag = self.l1.clean(line, matches!(act, Act::Flush(_)));
                self.note(line, What::Cleaning(tag), now);
            }
        }
        self.note_state(line, before, now);
    }

    fn ask(&mut self, act: Act, want: Want) {
        self.waiting.insert(act.line(), act);
        self.l1.get(act.line(), want);
    }

    fn note_state(&mut self, line: u64, before: Option<State>, now: Time) {
        let state = self.l1.state(line);
        if state != before {
            self.note(line, What::State(state), now);
        }
    }

    fn hear(&mut self, message: CoreMsg, now: Time) {
        let before = self.l1.states();
        let heard = self.l1.hear(message);
        // A line that comes may have another leave.
        for line in self.l1.states().keys().chain(before.keys()).copied().collect::<BTreeSet<_>>() {
            self.note_state(line, before.get(&line).copied(), now);
        }
        match heard {
            Heard::Granted { line, want, bytes } => {
                let act = self.waiting.remove(&line).expect("something that waits for the line");
                match want {
                    Want::Once => self.note(line, What::Looked(value_of(&bytes)), now),
                    Want::Shared | Want::Exclusive => {
                        self.note(line, What::Granted(value_of(&bytes)), now);
                        self.act(act, now);
                    }
                }
            }
            Heard::Cleaned { tag, line } => self.note(line, What::Cleaned(tag), now),
            Heard::Obeyed { line } => self.note(line, What::Obeyed, now),
            Heard::Left { .. } => {}
        }
    }

    /// The next act, if it is due; and when to look again.
    fn next_act(&mut self, now: Time) -> (Option<Act>, Option<Time>) {
        let full = self.l1.wanted() >= OUTSTANDING;
        match &mut self.program {
            Program::Script(acts) => {
                let Some(&(at, act)) = acts.get(self.next) else { return (None, None) };
                // An act that needs a line which is on its way waits for it.
                if at > now || act.needs_line() && self.l1.wants(act.line()) {
                    return (None, Some(at.max(now + 1)));
                }
                self.next += 1;
                (Some(act), acts.get(self.next).map(|(at, _)| *at))
            }
            Program::Drawn { left: 0, .. } => (None, None),
            Program::Drawn { draw, left, lines, pause } => {
                let again = Some(now + 1 + draw.below(*pause));
                if full {
                    return (None, again);
                }
                let line = lines[draw.below(lines.len() as u64) as usize];
                let act = match draw.below(100) {
                    0..45 => Act::Load(line),
                    45..80 => Act::Store(line, self.number << 32 | (self.stored + 1)),
                    80..88 => Act::Evict(line),
                    88..96 => Act::Clean(line),
                    _ => Act::Flush(line),
                };
                if act.needs_line() && self.l1.wants(line) {
                    return (None, again);
                }
                *left -= 1;
                self.stored += 1;
                (Some(act), again)
            }
        }
    }

    fn send_all(&mut self, cx: &mut Ctx<'_, Msg>) {
        for message in std::mem::take(&mut self.l1.out) {
            let line = super::bench::line_of(&message);
            cx.send(Port(self.map.slice_of(line) as u16), message.into(), 0);
        }
    }
}

impl Component<Msg> for ScriptedCore {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let message = match message {
            Msg::Core(message) => message,
            // The OS hears of lines alone.
            Msg::Os(OsMsg::Data(line)) => CoreMsg::Data(line),
            other => panic!("a core received {other:?}"),
        };
        self.hear(message, cx.now());
        self.send_all(cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        let (act, again) = self.next_act(cx.now());
        if let Some(act) = act {
            self.act(act, cx.now());
            self.send_all(cx);
        }
        again.into_iter().for_each(|at| cx.wake_at(at.max(cx.now())));
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        if !self.l1.is_idle() {
            out.push(Wait { who: "script".into(), what: format!("{:?}", self.waiting), on: None, since: 0 });
        }
    }
}
