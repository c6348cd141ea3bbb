//! A memory channel as its controller sees it: read queue, WPQ, media and bytes, without what a scheme's
//! handler adds.

use std::collections::VecDeque;

use crate::image::Image;
use crate::media::{DeviceRow, Direction, Media};
use crate::msg::{MemoryData, MemoryRead, MemoryWrite, Msg, sectors_covered};
use crate::ports::Ports;
use crate::request_queue::{NO_SOURCE, RequestQueue};
use crate::requester::Requester;
use durawarp_checkpoint::state;
use durawarp_engine::{Clock, Ctx, Time};
use durawarp_kernel::memory::{Medium, NVM_BASE};

use super::arbiter::Arbiter;
use super::images::{ChannelImages, in_channel, is_log};
use super::notes::Notes;
use super::pages::Pages;
use super::parameters::{ControllerCounters, ControllerSpec};
use super::scheduler::Ranking;
use super::wear::CellWear;
use super::write_queue::WriteQueue;

/// Reads that the scheduler chooses from, and those that wait to be among them.
#[derive(Debug)]
pub(super) struct ReadQueue {
    pub(super) queue: RequestQueue<MemoryRead>,
    waiting: VecDeque<MemoryRead>,
    capacity: usize,
}

state!(ReadQueue { parts: queue; saved: waiting; kept: capacity });

impl ReadQueue {
    /// It has room; while any read waits for it, it has none.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.capacity
    }

    /// Reads that wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes in a read, which lies at `row`, when there is room for it.
    fn push(&mut self, row: DeviceRow, read: MemoryRead) {
        if self.has_room() {
            self.queue.push(row, read.line, source_of(&read), read);
        } else {
            self.waiting.push_back(read);
        }
    }

    pub(super) fn pop_waiting(&mut self) -> Option<MemoryRead> {
        self.waiting.pop_front()
    }
}

/// The source of a read, as the scheduler knows it.
pub(super) fn source_of(read: &MemoryRead) -> u16 {
    read.from.map_or(NO_SOURCE, Requester::number)
}

/// A memory channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) spec: ControllerSpec,
    pub(super) clock: Clock,
    pub(super) ports: Ports,
    pub(super) media: Media,
    pub(super) images: ChannelImages,
    pub(super) reads: ReadQueue,
    pub(super) writes: WriteQueue,
    pub(super) arbiter: Arbiter,
    pub(super) pages: Pages,
    /// Of sources of reads, where the scheduler looks at them.
    pub(super) ranking: Option<Box<Ranking>>,
    pub(super) notes: Notes,
    pub(super) counters: ControllerCounters,
    pub(super) wear: CellWear,
    /// Plain writes of a handler that reach the media: when, and their tokens. Taken by the handler's host.
    pub(super) finished: Vec<(Time, u64)>,
}

state!(Channel {
    parts: media, images, reads, writes, arbiter, pages, ranking, wear; saved: counters, finished; kept: spec, clock, ports, notes
});

impl Channel {
    /// An idle channel over its bytes.
    pub(super) fn new(spec: ControllerSpec, clock: Clock, ports: Ports, media: Media, images: [Image; 2]) -> Self {
        let banks = media.banks();
        let pages = Pages::new(spec.page, media.ticks(spec.page_timeout_ns), banks);
        Channel {
            wear: CellWear::new(&media),
            clock,
            ports,
            media,
            images: ChannelImages::new(*ports.map(), images),
            reads: ReadQueue {
                queue: RequestQueue::new(Direction::Read, spec.order(true), banks),
                waiting: VecDeque::new(),
                capacity: spec.read_queue_entries as usize,
            },
            writes: WriteQueue::new(spec.write_queue_entries, spec.order(false), banks),
            arbiter: Arbiter::new(spec.hit_cap(), banks),
            pages,
            ranking: Ranking::of(&spec, clock),
            notes: Notes::default(),
            counters: ControllerCounters::default(),
            finished: Vec::new(),
            spec,
        }
    }

    /// The row of the devices that has a line.
    pub(super) fn row_of(&self, line: u64) -> DeviceRow {
        self.media.place(Medium::of(line), in_channel(self.ports.map(), line))
    }

    /// What a write to a line wears: the line, or the first one in the line of the device's buffer.
    pub(super) fn cell_line(&self, line: u64) -> u64 {
        let Some(bytes) = self.media.buffer_line_bytes().map(u64::from) else { return line };
        if is_log(line) {
            return line & !(bytes - 1);
        }
        let map = self.ports.map();
        let first = map.in_channel(line) & !(bytes - 1);
        NVM_BASE + map.offset_of(map.channel_of(line) as u32, first)
    }

    /// No request waits for the media.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.queue.is_empty() && self.writes.queue.is_empty()
    }

    /// The WPQ has all that a read wants.
    pub(super) fn forwards(&mut self, line: u64, sectors: u8) -> bool {
        let row = self.row_of(line);
        sectors_covered(self.writes.pending(row, line)) & sectors == sectors
    }

    /// A read joins the queue of reads.
    pub(super) fn push_read(&mut self, read: MemoryRead) {
        let row = self.row_of(read.line);
        self.reads.push(row, read);
    }

    /// The data of a read leave, `delay` from now.
    pub(super) fn send_data(&self, read: MemoryRead, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let MemoryRead { tag, slice, sectors, room, .. } = read;
        self.ports.to_own(slice).send(MemoryData { tag, sectors, data: room }, delay, cx);
    }

    /// The WPQ takes a write, if it can.
    pub(super) fn accept(&mut self, write: &MemoryWrite, now: Time) -> bool {
        let row = self.row_of(write.line);
        self.writes.accept(row, write, now, &mut self.counters, &mut self.notes)
    }

    /// A write of the channel's own takes a free entry of the WPQ.
    pub(super) fn push_write(&mut self, row: DeviceRow, line: u64, mask: u128, now: Time) {
        self.writes.push(row, line, mask, now, &mut self.counters, &mut self.notes);
    }

    /// A write of a slice is accepted and acknowledged, or waits for an entry.
    pub(super) fn receive_write(&mut self, write: MemoryWrite, cx: &mut Ctx<'_, Msg>) {
        // Later reads must see it even while it waits for an entry.
        self.images.write(write.line, &write.data);
        self.queue_write(write, cx);
    }

    /// The same of a write whose bytes reads see already.
    pub(super) fn queue_write(&mut self, write: MemoryWrite, cx: &mut Ctx<'_, Msg>) {
        if self.writes.waiting() == 0 && self.accept(&write, cx.now()) {
            self.writes.acknowledge(write, &self.ports, cx);
        } else {
            self.counters.wpq_full_arrivals += 1;
            self.writes.push_waiting(write);
        }
    }

    /// Writes that waited for an entry take those that are free.
    pub(super) fn accept_waiting(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(write) = self.writes.pop_waiting() {
            if !self.accept(&write, cx.now()) {
                self.writes.unpop_waiting(write);
                break;
            }
            self.writes.acknowledge(write, &self.ports, cx);
        }
    }
}
