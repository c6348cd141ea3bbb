//! What the host does outside simulated time: reductions, and warm starts of the L2 (`machine/look`).
//!
//! Every slice is asked at once, and answers a few 100 ns later, which is no time of the program's: it is given back. The
//! next launch starts that much sooner after it was asked for, and counts as asked for that much earlier; what no launch can
//! give back is not part of the program's end. So CTAs leave when they would have left without the look, and a run takes as
//! long as without it.
//!
//! Not modelled: overlap with a launch, since a host that waits for a number does nothing else.

use std::sync::Arc;

use crate::engine::{Ctx, Time};
use crate::kernel::host::GlobalRange;
use crate::kernel::reduction::Reduction;
use crate::machine::look::{Lines, Look};
use crate::machine::msg::Msg;

use super::{CommandProcessor, HostFault, Step};

/// A look under way.
#[derive(Debug)]
pub(super) struct Looking {
    /// Slices that have not answered.
    pub(super) left: u32,
    since: Time,
    /// What is to be computed, and the bytes it is to be computed of.
    wanted: Option<(Box<Reduction>, Vec<u8>)>,
}

impl CommandProcessor {
    pub(super) fn reduce(&mut self, reduction: Box<Reduction>, cx: &mut Ctx<'_, Msg>) {
        let range = GlobalRange { start: reduction.address, bytes: reduction.bytes() };
        let data = vec![0; range.bytes as usize];
        self.look(Look { ranges: vec![range], warm: false }, Some((reduction, data)), cx);
    }

    pub(super) fn warm(&mut self, ranges: Vec<GlobalRange>, cx: &mut Ctx<'_, Msg>) {
        self.look(Look { ranges, warm: true }, None, cx);
    }

    fn look(&mut self, look: Look, wanted: Option<(Box<Reduction>, Vec<u8>)>, cx: &mut Ctx<'_, Msg>) {
        let look = Arc::new(look);
        self.ports.slices().for_each(|slice| cx.send(self.ports.to(slice), Msg::Look(look.clone()), 0));
        self.step = Step::Looking(Looking { left: self.ports.map().slices(), since: cx.now(), wanted });
    }

    /// A slice has answered; the last answer ends the step.
    pub(super) fn looked(&mut self, lines: &Lines, cx: &mut Ctx<'_, Msg>) {
        let line_bytes = u64::from(self.line_bytes);
        let Step::Looking(Looking { left, since, wanted }) = &mut self.step else {
            panic!("lines of no look");
        };
        if let Some((reduction, data)) = wanted {
            let (start, end) = (reduction.address, reduction.address + data.len() as u64);
            for (line, bytes) in &lines.lines {
                let (from, to) = (start.max(*line), end.min(line + line_bytes));
                let target = &mut data[(from - start) as usize..(to - start) as usize];
                target.copy_from_slice(&bytes[(from - line) as usize..(to - line) as usize]);
            }
        }
        *left -= 1;
        if *left > 0 {
            return;
        }
        self.excused += cx.now() - *since;
        match wanted.as_ref().map(|(reduction, data)| reduction.of(data)) {
            Some(Err(fault)) => {
                self.step = Step::Over;
                cx.fail(Box::new(HostFault(fault)));
            }
            result => {
                self.read = result.and_then(Result::ok);
                self.step = Step::Idle;
                self.advance(cx);
            }
        }
    }
}
