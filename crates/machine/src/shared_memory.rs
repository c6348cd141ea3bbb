//! Shared memory: banks, and how many passes an access takes through them.
//!
//! Source: CUDA's description of 32 banks of 4-byte words; lanes that read one word are served together.
//! Accesses of 8 (16) bytes a lane are served a half (quarter) warp at a time. `SM6_TITANX` measures +31
//! cycles for a 32-way conflict. For schemes that ask whether warps communicate, a CTA's memory remembers its
//! writers, word by word. A reduction counts as a read. Warps of other CTAs of a cluster are one writer.
//!
//! Invariants: an access without conflict takes one pass a lane group; never more passes than lanes.

use durawarp_base::spec;
use durawarp_base::spec::Sizes;
use durawarp_checkpoint::value;
use durawarp_kernel::ir::MemKind;

use super::coalescer::lanes_of;

spec! {
    /// Parameters of shared memory.
    pub struct SharedSpec {
        /// Capacity of one SM, in KiB; of memory that is one with the L1, the most that a launch may take.
        kb: u32 where 1..=1024,
        /// Of memory that is one with the L1 (`l1.unified_kb`): the sizes between which a launch chooses.
        steps_kb: Sizes,
        /// Shared memory is given to a CTA in multiples of this, in bytes.
        unit_bytes: u32 where 1..=65536,
        /// Taken by the system for each CTA beside what the CTA asks for, in bytes.
        reserved_bytes: u32 where 0..=65536,
        /// Banks, each one 4-byte word wide.
        banks: u32 where 1..=64,
        /// Issue of a conflict-free load to issue of what uses it, in core cycles.
        latency_cycles: u32 where 1..=1000,
        /// From an SM to another of its GPC, one way, for accesses to shared memory of another CTA of the
        /// cluster.
        cluster_cycles: u32 where 1..=10000,
        /// Bytes of shared memory that an SM sends to others of its GPC in a core cycle.
        cluster_bytes: u32 where 1..=65536,
        /// Of a bulk copy's first line to that of the next copy, at least.
        bulk_issue_cycles: u32 where 1..=10000,
        /// Requests of bulk copies under way at once, of an SM.
        bulk_lines: u32 where 1..=65535,
        /// From a bulk copy's last byte to the count at its barrier.
        bulk_arrive_cycles: u32 where 0..=10000,
    }
}

impl SharedSpec {
    /// What a CTA takes that asks for `bytes`.
    pub(super) fn taken_bytes(&self, bytes: u32) -> u32 {
        (bytes + self.reserved_bytes).next_multiple_of(self.unit_bytes)
    }

    /// The capacity in KiB, in whole steps, that a program's wish leaves CTAs which ask for `bytes` each: at
    /// least that of one of them. None where no step is as large.
    pub(super) fn wished_kb(&self, percent: u32, bytes: u32) -> Option<u32> {
        let wish_kb = (self.kb * 1024 * percent / 100).div_ceil(1024);
        self.steps_kb.at_least(wish_kb.max(self.taken_bytes(bytes).div_ceil(1024)))
    }
}

/// The warp slot that stands for all warps of other CTAs of the cluster.
pub(super) const OF_OTHER_CTAS: u8 = 254;

/// Which warp wrote each word of a CTA's shared memory last, kept for a scheme that wants to know whether
/// warps communicate.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// A word's last writer, its warp slot and 1; 0 where none has written. Empty where it is not recorded.
    of_word: Vec<u8>,
}

value!(record Writers { of_word });

impl Writers {
    /// A CTA begins, with memory of `bytes` to watch.
    pub(super) fn begin(&mut self, bytes: u32) {
        self.of_word.clear();
        self.of_word.resize(bytes.div_ceil(4) as usize, 0);
    }

    /// There is memory to watch.
    pub(super) fn are_watched(&self) -> bool {
        !self.of_word.is_empty()
    }

    /// A warp accesses `bytes` at each address. True when it reads what another warp wrote.
    pub(super) fn access(&mut self, warp: u8, kind: MemKind, addresses: impl Iterator<Item = u64>, bytes: u32) -> bool {
        if self.of_word.is_empty() {
            return false;
        }
        let mut read = false;
        for address in addresses {
            for writer in &mut self.of_word[(address / 4) as usize..=((address + u64::from(bytes) - 1) / 4) as usize] {
                read |= kind != MemKind::Store && ![0, warp + 1].contains(writer);
                if !matches!(kind, MemKind::Load | MemKind::Matrix(_)) {
                    *writer = warp + 1;
                }
            }
        }
        read
    }
}

/// Passes through the banks for the words that `lanes` access, `bytes` each.
///
/// Loads and stores of one word by several lanes take one pass together; with `exclusive` (atomics) one each.
pub fn passes(address: &[u64; 64], lanes: u64, bytes: u32, banks: u32, exclusive: bool) -> u32 {
    // The 32 words of an aligned stretch of 128 bytes lie in 32 banks, so that none of them conflict. Rows of
    // a tile are mostly such a stretch.
    if lanes == u64::from(u32::MAX) && bytes <= 4 && banks >= 32 && !exclusive {
        let lanes = &address[..32];
        let (all, any) = lanes.iter().fold((u64::MAX, 0), |(all, any), &a| (all & a, any | a));
        if all ^ any < 128 {
            return 1;
        }
    }
    // Lanes served together: as many as a pass over all banks can satisfy.
    let group = match bytes {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let (mut total, mut first, mut left) = (0, 0, lanes);
    while left != 0 {
        let members = left & ((1u64 << group) - 1);
        if members != 0 {
            total += group_passes(&address[first..first + group], members, bytes, banks, exclusive);
        }
        left >>= group;
        first += group;
    }
    total.max(1)
}

fn group_passes(address: &[u64], members: u64, bytes: u32, banks: u32, exclusive: bool) -> u32 {
    // The words of the group: 32 at most, since a wider access has fewer lanes in a group.
    let each = bytes.div_ceil(4);
    let mut words = [0; 32];
    let mut count = address.len();
    if each == 1 && members == u64::from(u32::MAX) {
        for (word, &a) in words.iter_mut().zip(address) {
            *word = (a / 4) as u32;
        }
    } else {
        count = 0;
        for lane in lanes_of(members) {
            for word in 0..each {
                words[count] = (address[lane] / 4) as u32 + word;
                count += 1;
            }
        }
    }
    let words = &mut words[..count];
    if exclusive {
        let mut depth = [0; 64];
        for &word in &*words {
            depth[(word % banks) as usize] += 1;
        }
        depth.into_iter().max().unwrap_or(0)
    } else if banks == 32 {
        rounds(words, |word| word % 32)
    } else {
        rounds(words, |word| word % banks)
    }
}

/// Rounds in which each bank serves one word, to all who access it, until all `words` are served.
#[inline]
fn rounds(words: &mut [u32], bank: impl Fn(u32) -> u32) -> u32 {
    let (mut served, mut left, mut rounds) = ([0; 64], words.len(), 0);
    loop {
        // Of the words that want a bank, the last to claim it is served.
        let words = &mut words[..left];
        for &word in &*words {
            served[bank(word) as usize % 64] = word;
        }
        rounds += 1;
        if words.iter().fold(0, |missed, &word| missed | word ^ served[bank(word) as usize % 64]) == 0 {
            return rounds;
        }
        // Who was not moves to the front, which those before it have left.
        left = 0;
        for at in 0..words.len() {
            let word = words[at];
            words[left] = word;
            left += usize::from(served[bank(word) as usize % 64] != word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(stride: u64, bytes: u32) -> u32 {
        let address = std::array::from_fn(|i| i as u64 * stride);
        passes(&address, u64::from(u32::MAX), bytes, 32, false)
    }

    #[test]
    fn the_textbook_strides() {
        assert_eq!(of(4, 4), 1, "consecutive words");
        assert_eq!(of(0, 4), 1, "broadcast");
        assert_eq!(of(8, 4), 2, "stride of two words");
        assert_eq!(of(128, 4), 32, "every lane in one bank");
        assert_eq!(of(132, 4), 1, "padded by one word");
        assert_eq!(of(1, 1), 1, "bytes of eight words");
        assert_eq!(of(8, 8), 2, "doubles: two half-warps");
        assert_eq!(of(16, 16), 4, "float4: four quarter-warps");
        let rows = |apart: u64| {
            let address = std::array::from_fn(|i| i as u64 / 16 * apart + i as u64 % 16 * 4);
            passes(&address, u64::from(u32::MAX), 4, 32, false)
        };
        assert_eq!([64, 128, 192].map(rows), [1, 2, 1], "two rows of a tile");
    }

    #[test]
    fn warps_communicate_where_one_reads_a_word_that_another_wrote() {
        let (load, store, atomic) = (MemKind::Load, MemKind::Store, MemKind::Atomic);
        let mut writers = Writers::default();
        assert!(!writers.access(0, store, [0].into_iter(), 4), "nobody wants to know");
        assert!(!writers.access(1, load, [0].into_iter(), 4));
        writers.begin(64);
        let mut access = |warp, kind, address, bytes| writers.access(warp, kind, [address].into_iter(), bytes);
        assert!(!access(1, load, 8, 4), "nobody wrote it");
        assert!(!access(0, store, 8, 4) && !access(0, load, 8, 4), "its own");
        assert!(access(1, load, 8, 4));
        assert!(!access(1, load, 4, 4) && access(1, load, 4, 8) && access(1, load, 11, 1), "by words");
        assert!(!access(1, store, 8, 8) && !access(1, load, 8, 8), "to write is not to read");
        assert!(access(0, load, 12, 4) && access(2, atomic, 12, 4), "an atomic reads");
        assert!(!access(2, load, 12, 4) && access(0, load, 12, 4), "and writes");
        writers.begin(64);
        assert!(!writers.access(0, load, [12].into_iter(), 4), "a CTA's alone");
    }

    #[test]
    fn atomics_on_one_word_go_one_by_one() {
        assert_eq!(passes(&[64; 64], u64::from(u32::MAX), 4, 32, true), 32);
        assert_eq!(passes(&[64; 64], 0b101, 4, 32, true), 2);
    }

    proptest! {
        /// Against counting distinct words bank by bank.
        #[test]
        fn a_group_takes_as_many_passes_as_its_fullest_bank(
            words in prop::array::uniform32(0u64..200), lanes in 1u32..
        ) {
            let mut address = [0; 64];
            for (a, w) in address.iter_mut().zip(words) {
                *a = w * 4;
            }
            let mut by_bank = vec![std::collections::BTreeSet::new(); 32];
            for (lane, &w) in words.iter().enumerate().filter(|(lane, _)| lanes >> lane & 1 == 1) {
                let _ = lane;
                by_bank[(w % 32) as usize].insert(w);
            }
            let expected = by_bank.iter().map(|b| b.len()).max().unwrap() as u32;
            prop_assert_eq!(passes(&address, u64::from(lanes), 4, 32, false), expected);
        }
    }
}
