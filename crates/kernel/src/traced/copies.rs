//! What the copy engine moves for a step of a trace: stretches of global memory, the barrier at which its
//! bytes complete, and the CTAs that get them.
//!
//! A trace names addresses in global memory and no place in shared memory, so that such a copy has its
//! traffic and its time, and writes no shared memory.
//!
//! Invariant: stretches lie one behind the other in the copy; what no stretch has is at its end, and lies
//! outside of the tensor.

use durawarp_checkpoint::value;

/// Bytes of a copy that lie one behind the other in global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    /// Bytes of the copy before it.
    at: u32,
    address: u64,
    bytes: u32,
}

value!(record Stretch { at, address, bytes });

/// A copy of a trace.
///
/// # Example: two rows of 128 bytes, in pieces of 64, and 64 bytes outside
/// ```
/// use durawarp_kernel::traced::TracedCopy;
/// let mut copy = TracedCopy::new(1, 0x400, 320);
/// for address in [0x1000, 0x1040, 0x2000, 0x2040] {
///     copy.lies_at(address, 64);
/// }
/// assert_eq!([0, 128, 256].map(|at| copy.run(at)), [(Some(0x1000), 128), (Some(0x2000), 128), (None, 64)]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCopy {
    /// Ranks of the CTAs that get it, a bit each.
    pub ranks: u16,
    /// The byte of their shared memory where the barrier lies at which it completes.
    pub barrier: u32,
    /// Its bytes complete, of each CTA that gets them, in the CTA of its pair whose rank ends in this bit; of
    /// copies that are none of pairs, in the CTA itself.
    pub barrier_of_pair: Option<u8>,
    /// Bytes that complete, those outside of the tensor too.
    pub bytes: u32,
    stretches: Vec<Stretch>,
}

value!(record TracedCopy { ranks, barrier, barrier_of_pair, bytes, stretches });

impl TracedCopy {
    /// A copy of `bytes` bytes to the CTAs of these ranks. All of it lies outside until
    /// [`TracedCopy::lies_at`] says where.
    pub fn new(ranks: u16, barrier: u32, bytes: u32) -> TracedCopy {
        TracedCopy { ranks, barrier, barrier_of_pair: None, bytes, stretches: Vec::new() }
    }

    /// The next `bytes` of it lie at this address.
    pub fn lies_at(&mut self, address: u64, bytes: u32) {
        match self.stretches.last_mut() {
            Some(last) if last.address + u64::from(last.bytes) == address => last.bytes += bytes,
            last => {
                let at = last.map_or(0, |last| last.at + last.bytes);
                self.stretches.push(Stretch { at, address, bytes });
            }
        }
    }

    /// The first address in global memory; none where all of it lies outside.
    pub fn first(&self) -> Option<u64> {
        self.stretches.first().map(|first| first.address)
    }

    /// Bytes from byte `from` on that are one stretch of global memory, or outside of the tensor: the address
    /// of the first where they have one, and how many.
    pub fn run(&self, from: u32) -> (Option<u64>, u32) {
        let behind = self.stretches.partition_point(|stretch| stretch.at <= from);
        let stretch = behind.checked_sub(1).map(|before| self.stretches[before]);
        match stretch.filter(|stretch| from < stretch.at + stretch.bytes) {
            Some(Stretch { at, address, bytes }) => (Some(address + u64::from(from - at)), at + bytes - from),
            None => (None, self.bytes - from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(copy: &TracedCopy) -> Vec<(Option<u64>, u32)> {
        let (mut runs, mut at) = (Vec::new(), 0);
        while at < copy.bytes {
            let (global, bytes) = copy.run(at);
            runs.push((global, bytes));
            at += bytes;
        }
        runs
    }

    #[test]
    fn addresses_side_by_side_are_one_stretch_and_the_rest_is_outside() {
        let mut copy = TracedCopy::new(1, 0, 100);
        for (address, bytes) in [(64, 27), (91, 27), (256, 26)] {
            copy.lies_at(address, bytes);
        }
        assert_eq!(runs(&copy), [(Some(64), 54), (Some(256), 26), (None, 20)]);
        assert_eq!(copy.run(53), (Some(64 + 53), 1));
    }

    #[test]
    fn a_copy_without_addresses_is_all_outside() {
        let copy = TracedCopy::new(1, 0, 16);
        assert_eq!((copy.first(), runs(&copy)), (None, vec![(None, 16)]));
    }
}
