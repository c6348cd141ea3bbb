//! What a controller adds to a look of the host's outside simulated time (`machine/look`): the bytes that a read would
//! return, with no read.

use crate::engine::Ctx;
use crate::kernel::memory::Medium;
use crate::machine::look::Lines;
use crate::machine::msg::{MAX_LINE_BYTES, Msg};

use super::MemoryController;

impl MemoryController {
    /// Fills in the lines and sends them back.
    pub(super) fn look(&mut self, lines: Box<Lines>, cx: &mut Ctx<'_, Msg>) {
        let mut lines = lines;
        let length = lines.line_bytes as usize;
        let mask = u128::MAX >> (MAX_LINE_BYTES - length);
        for (line, bytes) in &mut lines.lines {
            let (medium, start) = self.image_place(*line);
            let there = length.min(self.images[medium].len() - start);
            self.images[medium].read(start, &mut bytes[..there]);
            if let Some(gated) = self.gated.as_deref_mut().filter(|_| Medium::of(*line) == Medium::Nvm) {
                gated.handler.overlay(*line, mask, bytes);
            }
        }
        cx.send(self.ports.to_own_slice(lines.slice), Msg::Lines(lines), 0);
    }
}
