//! What the host does outside simulated time: reductions, warm starts of the L2, and in sampled runs new
//! bytes for all of memory (`machine/look`).
//!
//! Every slice is asked at once, and answers a few 100 ns later. The program does not pay for that time: the
//! next launch starts that much sooner after the host asked for it, and counts as asked for that much
//! earlier; what no launch can give back is not part of the program's end (`host_program`). So CTAs leave
//! when they would have left without the look, and a run takes as long as without it.
//!
//! Only a trace's copies are looks while launches run. What such a look takes is given back to launches that
//! begin when it is over, and is lost otherwise.
//!
//! Not modelled: other looks while launches run, since a host that waits for a number does nothing else.

use std::sync::Arc;

use crate::contents::Contents;
use crate::look::{Lines, Look, LookKind};
use durawarp_checkpoint::value;
use durawarp_engine::Time;
use durawarp_kernel::host::GlobalRange;
use durawarp_kernel::reduction::Reduction;

/// A look under way.
#[derive(Debug)]
pub(super) struct HostLook {
    /// Slices that have not answered.
    left: u32,
    since: Time,
    /// The function, and the bytes of its argument as they come in; none for what reads nothing.
    reduction: Option<(Box<Reduction>, Vec<u8>)>,
}

value!(record HostLook { left, since, reduction });

impl HostLook {
    /// A look at the operand of a reduction, and the question to every one of `slices` slices.
    pub(super) fn reduce(reduction: Box<Reduction>, slices: u32, now: Time) -> (Self, Look) {
        let range = GlobalRange { start: reduction.address, bytes: reduction.bytes() };
        let data = vec![0; range.bytes as usize];
        let look = HostLook { left: slices, since: now, reduction: Some((reduction, data)) };
        (look, Look { ranges: vec![range], kind: LookKind::Read })
    }

    /// A warm start of the L2, and the request to every one of `slices` slices.
    pub(super) fn warm(ranges: Vec<GlobalRange>, slices: u32, now: Time) -> (Self, Look) {
        (HostLook { left: slices, since: now, reduction: None }, Look { ranges, kind: LookKind::Warm })
    }

    /// New bytes for all of global memory, and the request to every one of `slices` slices.
    pub(super) fn replace(contents: Arc<Contents>, slices: u32, now: Time) -> (Self, Look) {
        let look = Look { ranges: Vec::new(), kind: LookKind::Replace(contents) };
        (HostLook { left: slices, since: now, reduction: None }, look)
    }

    /// Slices that have not answered.
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// A slice has answered; true with the last answer.
    pub(super) fn answer(&mut self, lines: &Lines) -> bool {
        if let Some((reduction, data)) = &mut self.reduction {
            let (start, end) = (reduction.address, reduction.address + data.len() as u64);
            for (line, bytes) in &lines.lines {
                let (from, to) = (start.max(*line), end.min(line + u64::from(lines.line_bytes)));
                let target = &mut data[(from - start) as usize..(to - start) as usize];
                target.copy_from_slice(&bytes[(from - line) as usize..(to - line) as usize]);
            }
        }
        self.left -= 1;
        self.left == 0
    }

    /// What it takes counts from `now` on.
    pub(super) fn begin_anew(&mut self, now: Time) {
        self.since = now;
    }

    /// Ticks that the look has taken by now.
    pub(super) fn ticks(&self, now: Time) -> Time {
        now - self.since
    }

    /// The value of the reduction, if it is one.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub(super) fn value(&self) -> Result<Option<u64>, String> {
        self.reduction.as_ref().map(|(reduction, data)| reduction.of(data)).transpose()
    }
}
