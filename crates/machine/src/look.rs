//! What the host does outside simulated time: it reads global memory at once, fills the L2, and in sampled
//! runs brings memory to what the functional driver has.
//!
//! ```text
//!  command processor ──Look──> every slice ──Lines──> its controller     after all messages on that way
//!                    <──Lines──            <──Lines── with their bytes
//! ```
//! A slice names its lines, its controller adds what memory holds, the slice lays its dirty bytes over that.
//! Links are the ordinary ones, so no look overtakes a write. Ports, buffers, credits, banks, LRU order and
//! counters of accesses take no part. New bytes of memory go the same way: each cached line takes its own,
//! what is dirty stays dirty, and the controller has them after every write that left the slice before. The
//! links take a few 100 ns, which the command processor gives back (`command_processor/look`).
//!
//! Not modelled, on purpose: the cost of such a look, which a real host has.

use std::sync::Arc;

use super::contents::Contents;
use super::line::MAX_LINE_BYTES;
use durawarp_checkpoint::{LoadFault, SharedState, StateReader, StateWriter, Storable, value};
use durawarp_kernel::host::GlobalRange;

/// What the host asks every slice for.
#[derive(Debug)]
pub struct Look {
    /// Global memory, in this order.
    pub ranges: Vec<GlobalRange>,
    /// What becomes of them.
    pub kind: LookKind,
}

/// What a look is for.
#[derive(Debug, Clone)]
pub enum LookKind {
    /// Slices answer with the lines.
    Read,
    /// Slices take the lines in as clean ones, and answer without them.
    Warm,
    /// Slices and controllers take over these bytes for all that they have, and answer without lines.
    Replace(Arc<Contents>),
}

value!(record Look { ranges, kind });

impl Storable for LookKind {
    fn save(&self, out: &mut StateWriter) {
        let tag = match self {
            LookKind::Read => 0,
            LookKind::Warm => 1,
            LookKind::Replace(_) => return out.refuse("it is a sampled run"),
        };
        out.bytes(&[tag]);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        match from.bytes(1)?[0] {
            0 => Ok(LookKind::Read),
            1 => Ok(LookKind::Warm),
            tag => Err(LoadFault::new(format!("{tag} names no LookKind"))),
        }
    }
}

impl SharedState for Look {
    fn save_shared(this: &Arc<Self>, out: &mut StateWriter) {
        this.save(out);
    }

    fn read_shared(from: &mut StateReader<'_>) -> Result<Arc<Self>, LoadFault> {
        Look::read(from).map(Arc::new)
    }
}

/// Lines of one slice, on their way to its controller and back.
#[derive(Debug)]
pub struct Lines {
    /// The slice's place at its controller.
    pub slice: u8,
    /// What the look is for.
    pub kind: LookKind,
    pub line_bytes: u32,
    /// Addresses and contents.
    pub lines: Vec<(u64, [u8; MAX_LINE_BYTES])>,
}

value!(record Lines { slice, kind, line_bytes, lines });

impl Lines {
    /// A number that stands for its content, for digests; bytes do not enter.
    pub fn digest(&self) -> u64 {
        15 << 60 | self.lines.len() as u64
    }
}

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
        let look = |ranges| Look { ranges, kind: LookKind::Read }.lines(128).collect::<Vec<_>>();
        assert_eq!(look(vec![range(256, 128), range(100, 29), range(0, 0)]), [256, 0, 128]);
        assert_eq!(look(vec![range(100, 28)]), [0]);
    }
}
