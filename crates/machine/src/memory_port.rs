//! The way from a slice (of an L2, or a home slice) to its memory controller: messages in the order of their
//! causes, credits, boxes for lines.
//!
//! A write that finds no credit waits, and every later message with it. Invariant: a read never overtakes a
//! write of the same line, since messages leave in the order in which they were sent.

use std::collections::VecDeque;

use durawarp_checkpoint::state;
use durawarp_engine::Ctx;

use super::msg::{ControllerMsg, Line, LinePool, MemoryRead, MemoryWrite, Msg};
use super::ports::{Endpoint, Ports};
use super::requester::Requester;

/// The port to the controller.
#[derive(Debug)]
pub(super) struct MemoryPort {
    ports: Ports,
    /// The slice's place at its controller.
    at_controller: u8,
    read_credits: u32,
    write_credits: u32,
    /// Messages that wait for a write credit, and all that came after them.
    outbox: VecDeque<ControllerMsg>,
    /// Boxes that the slice has at hand.
    pub(super) line_pool: LinePool,
}

state!(MemoryPort { saved: read_credits, write_credits, outbox; kept: ports, at_controller, line_pool });

impl MemoryPort {
    /// A port with credits for reads and for writes.
    ///
    /// # Panics
    /// When the ports are those of another component.
    pub(super) fn new(ports: Ports, (read_credits, write_credits): (u32, u32)) -> Self {
        let (Endpoint::Slice(slice) | Endpoint::Home(slice)) = ports.owner() else {
            panic!("the ports of {}", ports.owner())
        };
        let at_controller = (u32::from(slice) % ports.map().slices_per_channel()) as u8;
        let line_pool = LinePool::default();
        MemoryPort { ports, at_controller, read_credits, write_credits, outbox: VecDeque::new(), line_pool }
    }

    /// The slice's place at its controller.
    pub(super) fn at_controller(&self) -> u8 {
        self.at_controller
    }

    /// A read may be sent.
    pub(super) fn may_read(&self) -> bool {
        self.read_credits > 0
    }

    /// A write would leave at once.
    pub(super) fn may_write(&self) -> bool {
        self.write_credits > 0
    }

    /// Messages wait for a write credit.
    pub(super) fn is_held_up(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Reads sectors of a line for a requester, under the number of an MSHR. Takes a read credit.
    pub(super) fn read(&mut self, line: u64, tag: u16, sectors: u8, from: Option<Requester>, cx: &mut Ctx<'_, Msg>) {
        self.read_credits -= 1;
        let room = self.line_pool.take();
        let read = MemoryRead { line, tag, slice: self.at_controller, sectors, from, room };
        self.send(ControllerMsg::MemoryRead(read), cx);
    }

    /// Writes the masked bytes of a line; where `late`, the controller answers only when the cells are
    /// written.
    pub(super) fn write(&mut self, line: u64, token: u16, late: bool, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        let write = MemoryWrite { line, slice: self.at_controller, token, late, through: false, data };
        self.send(ControllerMsg::MemoryWrite(write), cx);
    }

    /// Writes the masked bytes of a line, through a DRAM cache; without bytes the line alone is cleaned
    /// there.
    pub(super) fn write_through(&mut self, line: u64, token: u16, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        let write = MemoryWrite { line, slice: self.at_controller, token, late: false, through: true, data };
        self.send(ControllerMsg::MemoryWrite(write), cx);
    }

    /// Sends a message after those that wait for a credit.
    pub(super) fn send(&mut self, message: ControllerMsg, cx: &mut Ctx<'_, Msg>) {
        self.outbox.push_back(message);
        self.pump(cx);
    }

    /// Writes that wait for a credit, in the order in which they will leave.
    pub(super) fn held_writes(&self) -> impl Iterator<Item = &MemoryWrite> {
        self.outbox.iter().filter_map(|message| match message {
            ControllerMsg::MemoryWrite(write) => Some(write),
            _ => None,
        })
    }

    /// A read credit came back.
    pub(super) fn read_done(&mut self) {
        self.read_credits += 1;
    }

    /// A write credit came back with the emptied box.
    pub(super) fn write_accepted(&mut self, room: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        self.write_credits += 1;
        self.line_pool.give(room);
        self.pump(cx);
    }

    /// Sends as far as credits allow.
    fn pump(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(head) = self.outbox.front() {
            if matches!(head, ControllerMsg::MemoryWrite(_)) {
                if self.write_credits == 0 {
                    return;
                }
                self.write_credits -= 1;
            }
            if let Some(message) = self.outbox.pop_front() {
                self.ports.to_memory().send(message, 0, cx);
            }
        }
    }
}
