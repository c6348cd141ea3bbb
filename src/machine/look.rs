//! What the host does outside simulated time: it reads global memory at once, and fills the L2.
//!
//! ```text
//!  command processor ──Look──> every slice ──Lines──> its controller     after all messages on that way
//!                    <──Lines──            <──Lines── with their bytes
//! ```
//! A slice names its lines, its controller adds what memory holds, the slice lays its dirty bytes over that.
//! Links are the ordinary ones, so no look overtakes a write. Ports, buffers, credits, banks, LRU order and
//! counters of accesses take no part. The links take a few 100 ns, which the command processor gives back
//! (`command_processor/look`).
//!
//! Not modelled, on purpose: the cost of such a look, which a real host has.

use super::line::MAX_LINE_BYTES;
use std::sync::Arc;

use crate::checkpoint::{LoadFault, StateReader, StateWriter, Storable, value};
use crate::kernel::host::GlobalRange;

/// What the host asks every slice for.
#[derive(Debug)]
pub struct Look {
    /// Global memory, in this order.
    pub ranges: Vec<GlobalRange>,
    /// Slices take the lines in as clean ones, and answer without them.
    pub warm: bool,
}

value!(record Look { ranges, warm });

impl Storable for Arc<Look> {
    fn save(&self, out: &mut StateWriter) {
        (**self).save(out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Look::read(from).map(Arc::new)
    }
}

/// Lines of one slice, on their way to its controller and back.
#[derive(Debug)]
pub struct Lines {
    /// The slice's place at its controller.
    pub slice: u8,
    /// The slice keeps them.
    pub warm: bool,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Addresses and contents.
    pub lines: Vec<(u64, [u8; MAX_LINE_BYTES])>,
}

value!(record Lines { slice, warm, line_bytes, lines });

impl Look {
    /// Addresses of the lines that the ranges touch, in their order; one that two ranges share comes twice.
    pub fn lines(&self, line_bytes: u64) -> impl Iterator<Item = u64> {
        self.ranges.iter().filter(|range| range.bytes > 0).flat_map(move |range| {
            let first = range.start - range.start % line_bytes;
            (first..range.start + range.bytes).step_by(line_bytes as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cover_their_ranges_and_no_more() {
        let range = |start, bytes| GlobalRange { start, bytes };
        let look = |ranges| Look { ranges, warm: false }.lines(128).collect::<Vec<_>>();
        assert_eq!(look(vec![range(256, 128), range(100, 29), range(0, 0)]), [256, 0, 128]);
        assert_eq!(look(vec![range(100, 28)]), [0]);
    }
}
