//! Reads memory for the OS and for posted verbs: ranges of bytes, line by line from the homes.
//!
//! Invariants: at most [`UNDER_WAY`] lines at a time; a box comes back with every line, so that no more boxes
//! exist than lines were under way at once. A range of one line is one instant of memory; a longer one is
//! not.

use crate::coherence::{CPU_LINE_BYTES, HomeMsg, Want};
use crate::cpu::CpuMemory;
use crate::msg::{Line, LinePool, Msg};
use crate::ports::Ports;
use durawarp_checkpoint::state;
use durawarp_engine::Ctx;

/// Lines that are read at a time: chosen, as many as a core of the built-in machines.
const UNDER_WAY: u16 = 16;

/// Readings of a task (a call, a verb): those that are complete, and the one that is under way.
#[derive(Debug)]
pub(super) struct LineReader {
    ports: Ports,
    memory: CpuMemory,
    pool: LinePool,
    /// The complete ones, in their order.
    read: Vec<Vec<u8>>,
    /// The bytes under way, and their physical address.
    bytes: Vec<u8>,
    start: u64,
    /// Lines of it: all, asked for, arrived.
    all: u16,
    asked: u16,
    arrived: u16,
    /// Lines of all tasks so far.
    lines: u64,
}

state!(LineReader {
    saved: read, bytes, start, all, asked, arrived, lines; kept: ports, memory, pool
});

impl LineReader {
    pub(super) fn new(ports: Ports, memory: CpuMemory) -> LineReader {
        LineReader {
            ports,
            memory,
            pool: LinePool::default(),
            read: Vec::new(),
            bytes: Vec::new(),
            start: 0,
            all: 0,
            asked: 0,
            arrived: 0,
            lines: 0,
        }
    }

    /// Lines read so far.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// What was read for the task so far.
    pub(super) fn read(&self) -> &[Vec<u8>] {
        &self.read
    }

    /// Something was read for the task.
    pub(super) fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    /// The task is done.
    pub(super) fn clear(&mut self) {
        self.read.clear();
    }

    fn first_line(&self) -> u64 {
        self.start & !(CPU_LINE_BYTES - 1)
    }

    /// Reads one more range, which lies in one window.
    pub(super) fn begin(&mut self, address: u64, bytes: u64, cx: &mut Ctx<'_, Msg>) {
        let Some(start) = self.memory.physical(address, bytes) else {
            panic!("a task reads {bytes} bytes at {address:#x}, which no window has")
        };
        self.start = start;
        self.bytes = vec![0; bytes as usize];
        // A call, or a verb, reads 1 MiB at most.
        self.all = ((start + bytes).div_ceil(CPU_LINE_BYTES) - start / CPU_LINE_BYTES) as u16;
        (self.asked, self.arrived) = (0, 0);
        self.ask(cx);
    }

    /// Asks for lines while there is room.
    fn ask(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.asked < self.all && self.asked - self.arrived < UNDER_WAY {
            let line = self.first_line() + u64::from(self.asked) * CPU_LINE_BYTES;
            let (from, tag, room) = (self.ports.requester(), self.asked, self.pool.take());
            let get = HomeMsg::Get { line, from, tag, want: Want::Once, room };
            self.ports.to_home_of(line).send(get, 0, cx);
            (self.asked, self.lines) = (self.asked + 1, self.lines + 1);
        }
    }

    /// A line has come. Whether the range is complete.
    pub(super) fn receive(&mut self, tag: u16, data: Box<Line>, cx: &mut Ctx<'_, Msg>) -> bool {
        let line = self.first_line() + u64::from(tag) * CPU_LINE_BYTES;
        let end = self.start + self.bytes.len() as u64;
        let (from, to) = (line.max(self.start), (line + CPU_LINE_BYTES).min(end));
        let source = &data.bytes[(from - line) as usize..(to - line) as usize];
        self.bytes[(from - self.start) as usize..(to - self.start) as usize].copy_from_slice(source);
        self.pool.give(data);
        self.arrived += 1;
        self.ask(cx);
        let complete = self.arrived == self.all;
        if complete {
            self.read.push(std::mem::take(&mut self.bytes));
        }
        complete
    }
}
