//! The protocol's part of a core: copies in states S, E and M, lines that leave, what is asked for. It knows
//! no time and no engine: it hears messages and says what is to be sent.

use std::collections::BTreeMap;

use durawarp::machine::coherence::{CPU_LINE_MASK, CoreMsg, Grant, HomeMsg, LineData, Want};
use durawarp::machine::line::Line;
use durawarp::machine::ports::Requester;

/// Bytes of a line.
pub(crate) type Bytes = [u8; 64];

/// What a core may do with its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Shared,
    Exclusive,
    Modified,
}

#[derive(Debug, Clone)]
struct Copy {
    state: State,
    bytes: Bytes,
    used: u64,
}

/// What a message from a home came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A line came; the bytes of one asked for `Once`, of which no copy is kept.
    Granted { line: u64, want: Want, bytes: Bytes },
    /// A probe was obeyed.
    Obeyed { line: u64 },
    /// A line that left has arrived.
    Left { line: u64 },
    /// A clean is done.
    Cleaned { tag: u16, line: u64 },
}

/// An L1 of some lines, as far as the protocol goes.
#[derive(Debug)]
pub(crate) struct ScriptedL1 {
    me: Requester,
    capacity: usize,
    copies: BTreeMap<u64, Copy>,
    leaving: BTreeMap<u64, Bytes>,
    /// By tag.
    gets: BTreeMap<u16, (u64, Want)>,
    cleans: BTreeMap<u16, u64>,
    next_tag: u16,
    uses: u64,
    /// Acknowledgements of Puts that it has not sent.
    pub(crate) strays: u32,
    /// To be sent, in this order.
    pub(crate) out: Vec<HomeMsg>,
}

fn line_of(bytes: &Bytes) -> Box<Line> {
    let mut line = Line { mask: CPU_LINE_MASK, ..Line::default() };
    line.bytes[..64].copy_from_slice(bytes);
    Box::new(line)
}

fn bytes_of(line: &Line) -> Bytes {
    line.bytes[..64].try_into().expect("64 bytes")
}

impl ScriptedL1 {
    pub(crate) fn new(me: Requester, capacity: usize) -> ScriptedL1 {
        ScriptedL1 {
            me,
            capacity,
            copies: BTreeMap::new(),
            leaving: BTreeMap::new(),
            gets: BTreeMap::new(),
            cleans: BTreeMap::new(),
            next_tag: 0,
            uses: 0,
            strays: 0,
            out: Vec::new(),
        }
    }

    /// The state of its copy; none is I.
    pub(crate) fn state(&self, line: u64) -> Option<State> {
        self.copies.get(&line).map(|copy| copy.state)
    }

    /// All its copies.
    pub(crate) fn states(&self) -> BTreeMap<u64, State> {
        self.copies.iter().map(|(line, copy)| (*line, copy.state)).collect()
    }

    /// It has asked for the line.
    pub(crate) fn wants(&self, line: u64) -> bool {
        self.gets.values().any(|(of, _)| *of == line)
    }

    /// Lines that it has asked for.
    pub(crate) fn wanted(&self) -> usize {
        self.gets.len()
    }

    /// Nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.gets.is_empty() && self.leaving.is_empty() && self.cleans.is_empty()
    }

    /// The bytes of its copy, if it has one.
    pub(crate) fn load(&mut self, line: u64) -> Option<Bytes> {
        self.uses += 1;
        let copy = self.copies.get_mut(&line)?;
        copy.used = self.uses;
        Some(copy.bytes)
    }

    /// Changes the line, if it may.
    pub(crate) fn store(&mut self, line: u64, bytes: Bytes) -> bool {
        self.uses += 1;
        let Some(copy) = self.copies.get_mut(&line).filter(|copy| copy.state != State::Shared) else { return false };
        *copy = Copy { state: State::Modified, bytes, used: self.uses };
        true
    }

    fn tag(&mut self) -> u16 {
        self.next_tag = self.next_tag.wrapping_add(1);
        self.next_tag
    }

    /// Asks for a line.
    pub(crate) fn get(&mut self, line: u64, want: Want) {
        assert!(!self.wants(line), "line {line:#x} is asked for twice");
        let tag = self.tag();
        self.gets.insert(tag, (line, want));
        self.out.push(HomeMsg::Get { line, from: self.me, tag, want, room: Box::default() });
    }

    /// Gives a line up: silently unless it was changed.
    pub(crate) fn evict(&mut self, line: u64) {
        if let Some(Copy { state: State::Modified, bytes, .. }) = self.copies.remove(&line) {
            assert!(self.leaving.insert(line, bytes).is_none(), "line {line:#x} leaves twice");
            self.out.push(HomeMsg::Put { line, from: self.me, data: line_of(&bytes), dependencies: None });
        }
    }

    /// Has a line made durable; returns the clean's tag.
    pub(crate) fn clean(&mut self, line: u64, flush: bool) -> u16 {
        let tag = self.tag();
        self.cleans.insert(tag, line);
        let copy = self.copies.get_mut(&line).filter(|copy| copy.state == State::Modified);
        let (dirty, room) = match copy {
            Some(copy) => {
                copy.state = State::Exclusive;
                (true, line_of(&copy.bytes))
            }
            None => (false, Box::default()),
        };
        if flush {
            self.copies.remove(&line);
        }
        self.out.push(HomeMsg::Clean {
            line,
            from: self.me,
            tag,
            flush,
            at_once: false,
            dirty,
            room,
            dependencies: None,
        });
        tag
    }

    /// A message from a home.
    pub(crate) fn hear(&mut self, message: CoreMsg) -> Heard {
        match message {
            CoreMsg::Data(LineData { tag, grant, data, .. }) => self.granted(tag, grant, bytes_of(&data)),
            CoreMsg::Probe { line, invalidate, room, .. } => {
                let answer = self.obey(line, invalidate);
                let (dirty, room) = answer.map_or((false, room), |bytes| (true, line_of(&bytes)));
                self.out.push(HomeMsg::ProbeAck { line, from: self.me, dirty, room, dependencies: None });
                Heard::Obeyed { line }
            }
            CoreMsg::PutAck { line, .. } => {
                self.strays += u32::from(self.leaving.remove(&line).is_none());
                Heard::Left { line }
            }
            CoreMsg::Cleaned { tag, .. } => {
                Heard::Cleaned { tag, line: self.cleans.remove(&tag).expect("a clean that was asked for") }
            }
            other => panic!("a core received {other:?}"),
        }
    }

    fn granted(&mut self, tag: u16, grant: Grant, bytes: Bytes) -> Heard {
        let (line, want) = self.gets.remove(&tag).expect("a line that was asked for");
        let state = match (want, grant) {
            (Want::Shared, Grant::Shared) => State::Shared,
            (Want::Shared, Grant::Exclusive) => State::Exclusive,
            (Want::Exclusive, Grant::Modified) => State::Modified,
            (Want::Once, Grant::Once) => return Heard::Granted { line, want, bytes },
            other => panic!("line {line:#x} is granted as {other:?}"),
        };
        if !self.copies.contains_key(&line) && self.copies.len() == self.capacity {
            let oldest = self.copies.iter().min_by_key(|(_, copy)| copy.used).map(|(line, _)| *line);
            self.evict(oldest.expect("a line to make room"));
        }
        self.uses += 1;
        self.copies.insert(line, Copy { state, bytes, used: self.uses });
        Heard::Granted { line, want, bytes }
    }

    /// What a probe gets of a line: the bytes, if they were changed here.
    fn obey(&mut self, line: u64, invalidate: bool) -> Option<Bytes> {
        let Some(copy) = self.copies.get_mut(&line) else { return self.leaving.get(&line).copied() };
        let changed = (copy.state == State::Modified).then_some(copy.bytes);
        copy.state = State::Shared;
        if invalidate {
            self.copies.remove(&line);
        }
        changed
    }

    /// Every changed line that its home may not have: copies, and lines that leave.
    pub(crate) fn dirty_lines(&self) -> impl Iterator<Item = (u64, Bytes)> {
        let changed = self.copies.iter().filter(|(_, copy)| copy.state == State::Modified);
        let leaving = self.leaving.iter().map(|(line, bytes)| (*line, *bytes));
        leaving.chain(changed.map(|(line, copy)| (*line, copy.bytes)))
    }
}
