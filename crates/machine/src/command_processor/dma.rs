//! Host transfers: reads of a word, writes and copies, a line at a time through the crossbar.
//!
//! A transfer is cut into *pieces* that lie within one line at either side. Up to `host_requests` pieces are
//! under way, each under a tag of its own; the piece of a copy is read, then written under the same tag.
//! Invariant: a transfer is over when no piece is left and no tag is taken. Not modelled: the bus between
//! host and device.

use std::collections::VecDeque;

use crate::msg::{LinePool, Payload, Reply, Request, RequestKind, sectors_touched};
use crate::ports::Requester;
use durawarp_checkpoint::{state, value};
use durawarp_kernel::memory::Medium;

/// A piece of a host transfer, within one line at either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    /// The source, of a copy or a read.
    from: Option<u64>,
    /// The target, of a copy or a write.
    to: Option<u64>,
    bytes: u32,
    /// Where a write's bytes lie in the transfer's data.
    data_at: usize,
}

value!(record Piece { from, to, bytes, data_at });

/// Moves host data.
#[derive(Debug)]
pub(super) struct Dma {
    requester: Requester,
    line_bytes: u32,
    /// Pieces that have not left.
    waiting: VecDeque<Piece>,
    /// Bytes of a write.
    data: Vec<u8>,
    /// By tag.
    in_flight: Vec<Option<Piece>>,
    line_pool: LinePool,
    reads: u64,
    writes: u64,
}

state!(Dma { saved: waiting, data, reads, writes; sized: in_flight; kept: requester, line_bytes, line_pool });

impl Dma {
    /// An idle one, for up to `requests` pieces at once.
    pub(super) fn new(requester: Requester, line_bytes: u32, requests: u32) -> Self {
        Dma {
            requester,
            line_bytes,
            waiting: VecDeque::new(),
            data: Vec::new(),
            in_flight: vec![None; requests as usize],
            line_pool: LinePool::default(),
            reads: 0,
            writes: 0,
        }
    }

    /// Begins the read of a word.
    pub(super) fn read(&mut self, address: u64, bytes: u32) {
        self.waiting = [Piece { from: Some(address), to: None, bytes, data_at: 0 }].into();
    }

    /// Begins a write.
    pub(super) fn write(&mut self, address: u64, data: Vec<u8>) {
        self.waiting = self.pieces(None, Some(address), data.len() as u64);
        self.data = data;
    }

    /// Begins a copy.
    pub(super) fn copy(&mut self, from: u64, to: u64, bytes: u64) {
        self.waiting = self.pieces(Some(from), Some(to), bytes);
    }

    /// Cuts a transfer so that no piece crosses a line at either side.
    fn pieces(&self, from: Option<u64>, to: Option<u64>, bytes: u64) -> VecDeque<Piece> {
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

    /// Pieces that have not left.
    pub(super) fn left(&self) -> usize {
        self.waiting.len()
    }

    /// Every piece has been moved.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.iter().all(Option::is_none)
    }

    /// Line accesses that were read and that were written.
    pub(super) fn accesses(&self) -> (u64, u64) {
        (self.reads, self.writes)
    }

    /// The request of the next piece; none while every tag is taken, and when no piece is left.
    pub(super) fn next_request(&mut self) -> Option<Request> {
        let tag = self.in_flight.iter().position(Option::is_none)?;
        let piece = self.waiting.pop_front()?;
        self.in_flight[tag] = Some(piece);
        let mut line = self.line_pool.take();
        Some(match (piece.from, piece.to) {
            (Some(from), _) => {
                self.reads += 1;
                let touched = sectors_touched(self.mask_of(from, piece.bytes));
                self.request(from, tag, RequestKind::Read, touched, Payload::Line(line))
            }
            (None, Some(to)) => {
                self.writes += 1;
                let at = self.offset(to);
                let bytes = piece.bytes as usize;
                line.bytes[at..at + bytes].copy_from_slice(&self.data[piece.data_at..piece.data_at + bytes]);
                line.mask = self.mask_of(to, piece.bytes);
                let touched = sectors_touched(line.mask);
                self.request(to, tag, host_write(to), touched, Payload::Line(line))
            }
            (None, None) => unreachable!("a piece reads or writes"),
        })
    }

    /// A piece's reply: the value of a word that was read, and the request to write what a copy has read.
    pub(super) fn reply(&mut self, reply: Reply) -> (Option<u64>, Option<Request>) {
        let tag = reply.tag as usize;
        let Some(piece) = self.in_flight[tag] else { panic!("a reply for no piece") };
        let Payload::Line(mut line) = reply.payload else { panic!("a host transfer moves lines") };
        let bytes = piece.bytes as usize;
        let (word, request) = match (reply.kind, piece.from, piece.to) {
            (RequestKind::Read, Some(from), Some(to)) => {
                self.writes += 1;
                let (at, target) = (self.offset(from), self.offset(to));
                line.bytes.copy_within(at..at + bytes, target);
                line.mask = self.mask_of(to, piece.bytes);
                let touched = sectors_touched(line.mask);
                // The tag stays taken: the piece is half done.
                return (None, Some(self.request(to, tag, host_write(to), touched, Payload::Line(line))));
            }
            (RequestKind::Read, Some(from), None) => {
                let at = self.offset(from);
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(&line.bytes[at..at + bytes]);
                (Some(u64::from_le_bytes(word)), None)
            }
            _ => (None, None),
        };
        self.line_pool.give(line);
        self.in_flight[tag] = None;
        (word, request)
    }

    fn offset(&self, address: u64) -> usize {
        (address % u64::from(self.line_bytes)) as usize
    }

    /// The bytes of its line that a piece at `address` concerns.
    fn mask_of(&self, address: u64, bytes: u32) -> u128 {
        // Two shifts, since a shift by all 128 bits of a whole line is none.
        ((1u128 << (bytes - 1) << 1).wrapping_sub(1)) << self.offset(address)
    }

    fn request(&self, address: u64, tag: usize, kind: RequestKind, sectors: u8, payload: Payload) -> Request {
        let line = address - address % u64::from(self.line_bytes);
        Request { line, tag: tag as u32, from: self.requester, kind, sectors, payload }
    }
}

/// The host's writes to persistent memory are durable when its step is done.
fn host_write(address: u64) -> RequestKind {
    match Medium::of(address) {
        Medium::Dram => RequestKind::Write,
        Medium::Nvm => RequestKind::NonTemporal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dma(requests: u32) -> Dma {
        Dma::new(Requester::command_processor(2), 128, requests)
    }

    #[test]
    fn no_piece_crosses_a_line_at_either_side() {
        let mut dma = dma(4);
        // 100 bytes to the end of the source's line, then 20 to the end of the target's, then the rest.
        dma.copy(28, 1024 + 8, 130);
        let pieces: Vec<_> = dma.waiting.iter().map(|piece| (piece.from, piece.to, piece.bytes)).collect();
        let piece = |from: u64, to: u64, bytes: u32| (Some(from), Some(1024 + to), bytes);
        assert_eq!(pieces, [piece(28, 8, 100), piece(128, 108, 20), piece(148, 128, 10)]);
    }

    #[test]
    fn a_copy_is_read_then_written_under_one_tag_and_over_with_the_write() {
        let mut dma = dma(1);
        dma.copy(0, 256 + 64, 4);
        let request = dma.next_request().unwrap();
        assert_eq!((request.line, request.kind, request.sectors), (0, RequestKind::Read, 0b0001));
        assert!(dma.next_request().is_none() && !dma.is_over());
        let Payload::Line(mut line) = request.payload else { panic!("a line") };
        line.bytes[..4].copy_from_slice(&[1, 2, 3, 4]);
        let reply = |kind, line| Reply { tag: 0, kind, sectors: 1, payload: Payload::Line(line) };
        let (word, request) = dma.reply(reply(RequestKind::Read, line));
        let request = request.unwrap();
        assert_eq!((word, request.line, request.kind, request.sectors), (None, 256, RequestKind::Write, 0b0100));
        let Payload::Line(line) = request.payload else { panic!("a line") };
        assert_eq!((line.mask, &line.bytes[64..68]), (0b1111 << 64, &[1, 2, 3, 4][..]));
        assert!(!dma.is_over());
        assert_eq!(dma.reply(reply(RequestKind::Write, line)).0, None);
        assert_eq!((dma.is_over(), dma.accesses()), (true, (1, 1)));
    }

    #[test]
    fn a_piece_leaves_when_a_tag_is_free_and_not_before() {
        let mut dma = dma(2);
        dma.write(0, vec![9; 3 * 128]);
        let requests: Vec<Request> = std::iter::from_fn(|| dma.next_request()).collect();
        assert_eq!((requests.iter().map(|r| r.line).collect::<Vec<_>>(), dma.left()), (vec![0, 128], 1));
        let payload = requests.into_iter().nth(1).unwrap().payload;
        dma.reply(Reply { tag: 1, kind: RequestKind::Write, sectors: 15, payload });
        let request = dma.next_request().unwrap();
        assert_eq!((request.line, request.tag, dma.left()), (256, 1, 0));
        assert!(!dma.is_over());
    }

    #[test]
    fn a_read_returns_its_word() {
        let mut dma = dma(1);
        dma.read(130, 2);
        let Payload::Line(mut line) = dma.next_request().unwrap().payload else { panic!("a line") };
        line.bytes[2..4].copy_from_slice(&[0x34, 0x12]);
        let reply = Reply { tag: 0, kind: RequestKind::Read, sectors: 1, payload: Payload::Line(line) };
        assert_eq!(dma.reply(reply).0, Some(0x1234));
        assert!(dma.is_over());
    }
}
