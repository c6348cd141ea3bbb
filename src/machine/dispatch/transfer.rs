//! Host transfers: reads of a word, writes and copies, a line at a time through the crossbar.
//!
//! Up to `host_requests` pieces are under way; a copy's piece is read, then written. Not modelled: the bus between host and
//! device.

use std::collections::VecDeque;

use crate::engine::Ctx;
use crate::kernel::memory::Medium;
use crate::machine::msg::{Msg, Payload, Reply, RequestKind, sectors_touched};

use super::{CommandProcessor, Step};

/// A piece of a host transfer, within one line at either side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Read from here first, if it is a copy or a read.
    pub(super) from: Option<u64>,
    /// Write to here, if it is a copy or a write.
    pub(super) to: Option<u64>,
    pub(super) bytes: u32,
    /// Where a write's bytes lie in the transfer's data.
    pub(super) data_at: usize,
}

impl CommandProcessor {
    /// Cuts a transfer so that no piece crosses a line at either side.
    pub(super) fn pieces(&self, from: Option<u64>, to: Option<u64>, bytes: u64) -> VecDeque<Piece> {
        let line = u64::from(self.line_bytes);
        let mut pieces = VecDeque::new();
        let mut at = 0;
        while at < bytes {
            let room = |start: Option<u64>| start.map_or(line, |s| line - (s + at) % line);
            let length = room(from).min(room(to)).min(bytes - at);
            pieces.push_back(Piece {
                from: from.map(|s| s + at),
                to: to.map(|s| s + at),
                bytes: length as u32,
                data_at: at as usize,
            });
            at += length;
        }
        pieces
    }

    /// Sends pieces while tags are free; ends the step when none is left.
    pub(super) fn move_on(&mut self, cx: &mut Ctx<'_, Msg>) {
        loop {
            let Step::Moving { waiting, data } = &mut self.step else {
                return;
            };
            let Some(tag) = self.in_flight.iter().position(Option::is_none) else {
                return;
            };
            let Some(piece) = waiting.pop_front() else {
                if self.in_flight.iter().all(Option::is_none) {
                    self.step = Step::Idle;
                }
                return;
            };
            self.in_flight[tag] = Some(piece);
            let mut room = self.line_pool.take();
            let request = match (piece.from, piece.to) {
                (Some(from), _) => {
                    let at = (from % u64::from(self.line_bytes)) as u32;
                    let touched = sectors_touched(((1u128 << (piece.bytes - 1) << 1).wrapping_sub(1)) << at);
                    self.request(from, tag, RequestKind::Read, touched, Payload::Line(room))
                }
                (None, Some(to)) => {
                    let at = (to % u64::from(self.line_bytes)) as usize;
                    let bytes = piece.bytes as usize;
                    room.bytes[at..at + bytes].copy_from_slice(&data[piece.data_at..piece.data_at + bytes]);
                    room.mask = ((1u128 << (bytes - 1) << 1).wrapping_sub(1)) << at;
                    let touched = sectors_touched(room.mask);
                    self.request(to, tag, host_write(to), touched, Payload::Line(room))
                }
                (None, None) => unreachable!("a piece reads or writes"),
            };
            match request.kind {
                RequestKind::Read => self.counters.host_reads += 1,
                _ => self.counters.host_writes += 1,
            }
            self.network.push(request, cx);
        }
    }

    /// A piece's reply.
    pub(super) fn moved(&mut self, reply: Reply, cx: &mut Ctx<'_, Msg>) {
        let tag = reply.tag as usize;
        let Some(piece) = self.in_flight[tag] else { panic!("a reply for no piece") };
        let Payload::Line(mut line) = reply.payload else { panic!("a host transfer moves lines") };
        let bytes = piece.bytes as usize;
        match (reply.kind, piece.from, piece.to) {
            (RequestKind::Read, Some(from), None) => {
                let at = (from % u64::from(self.line_bytes)) as usize;
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(&line.bytes[at..at + bytes]);
                self.read = Some(u64::from_le_bytes(word));
                self.line_pool.give(line);
                self.in_flight[tag] = None;
            }
            (RequestKind::Read, Some(from), Some(to)) => {
                let at = (from % u64::from(self.line_bytes)) as usize;
                let target = (to % u64::from(self.line_bytes)) as usize;
                line.bytes.copy_within(at..at + bytes, target);
                line.mask = ((1u128 << (bytes - 1) << 1).wrapping_sub(1)) << target;
                let touched = sectors_touched(line.mask);
                let request = self.request(to, tag, host_write(to), touched, Payload::Line(line));
                self.counters.host_writes += 1;
                self.network.push(request, cx);
            }
            _ => {
                self.line_pool.give(line);
                self.in_flight[tag] = None;
            }
        }
        self.move_on(cx);
        self.advance(cx);
    }
}

/// The host's writes to persistent memory are durable when its step is done.
fn host_write(address: u64) -> RequestKind {
    match Medium::of(address) {
        Medium::Dram => RequestKind::Write,
        Medium::Nvm => RequestKind::NonTemporal,
    }
}
