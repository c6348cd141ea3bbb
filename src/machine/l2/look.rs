//! How a slice takes part in what the host does outside simulated time (`machine/look`).
//!
//! Lines that a warm start brings are clean, whole, and used in the order of their coming; they never displace a dirty line
//! nor one with a fill under way. Of more lines than the slice has room for only the last are brought. Not modelled: what a
//! scheme's handler would learn of an access; it learns only that a line was replaced,
//! and when what that line had is durable.

use crate::engine::Ctx;
use crate::machine::look::{Lines, Look};
use crate::machine::msg::{MAX_LINE_BYTES, Msg, SECTOR_BYTES, copy_masked};
use crate::machine::ports::Role;

use super::{L2Slice, NO_MSHR};

impl L2Slice {
    /// Asks the controller for the slice's lines, behind all writes that are on their way.
    pub(super) fn look(&mut self, look: &Look, cx: &mut Ctx<'_, Msg>) {
        let own = |line: &u64| self.map.slice_of(*line) == u32::from(self.slice);
        let mut lines: Vec<_> =
            look.lines(u64::from(self.line_bytes)).filter(own).map(|line| (line, [0; MAX_LINE_BYTES])).collect();
        if look.warm {
            lines.drain(..lines.len().saturating_sub(self.tags.places()));
        }
        let lines = Lines { slice: self.at_controller, warm: look.warm, line_bytes: self.line_bytes, lines };
        self.send_to_memory(Msg::Lines(Box::new(lines)), cx);
    }

    /// The lines as memory has them: takes them in, or answers with what the slice knows better.
    pub(super) fn looked(&mut self, lines: Box<Lines>, cx: &mut Ctx<'_, Msg>) {
        let mut lines = lines;
        if lines.warm {
            for (line, bytes) in std::mem::take(&mut lines.lines) {
                self.take_in(line, &bytes, cx);
            }
        } else {
            for (line, bytes) in &mut lines.lines {
                if let Some(place) = self.tags.find(self.line_number(*line)) {
                    copy_masked(bytes, &self.data[place], self.dirty[place]);
                }
            }
        }
        cx.send(self.ports.to(Role::CommandProcessor), Msg::Lines(lines), 0);
    }

    fn take_in(&mut self, line: u64, bytes: &[u8; MAX_LINE_BYTES], cx: &mut Ctx<'_, Msg>) {
        let number = self.line_number(line);
        let place = match self.tags.find(number) {
            Some(place) if self.mshr_of[place] != NO_MSHR => return,
            Some(place) => {
                self.tags.touch(place);
                place
            }
            None => {
                let Some(place) = self.tags.victims(number).find(|&place| self.dirty[place] == 0) else { return };
                self.tell_replaced(place);
                self.give_up_above(place, cx);
                self.tell_durable(self.address[place]);
                self.tags.replace(place, number);
                self.address[place] = line;
                place
            }
        };
        copy_masked(&mut self.data[place], bytes, !self.dirty[place]);
        self.valid[place] = (1 << (self.line_bytes / SECTOR_BYTES)) - 1;
        self.counters.warmed_lines += 1;
    }

    /// The L1s of an inclusive L2 give up a line, without traffic.
    fn give_up_above(&self, place: usize, cx: &mut Ctx<'_, Msg>) {
        if self.spec.inclusive && self.tags.line_at(place).is_some() {
            let line = self.address[place];
            self.ports.sms().for_each(|sm| cx.send(self.ports.to(sm), Msg::Invalidate { line }, 0));
        }
    }
}
