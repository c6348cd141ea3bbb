//! The random bytes of a process: a sequence that follows from the workload's seed.
//!
//! Saved is how many words were drawn, and not the generator, which a process that was made anew begins with.
//! Invariant: bytes are drawn a word of 8 at a time, so that what a call does not take of its last word is
//! dropped.

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Stateful, Storable};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// The stream of the seed that random bytes come from.
const RANDOM_STREAM: u128 = 2;

/// Bytes of a word of the generator.
const WORD_BYTES: usize = 8;

/// Where the sequence is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RandomBytes {
    generator: Pcg64,
    /// Words that were drawn.
    drawn: u64,
}

impl RandomBytes {
    /// The beginning of the sequence of a seed.
    pub(super) fn new(seed: u64) -> RandomBytes {
        RandomBytes { generator: Pcg64::new(seed.into(), RANDOM_STREAM), drawn: 0 }
    }

    /// Draws the next bytes.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        self.generator.fill_bytes(bytes);
        self.drawn += bytes.len().div_ceil(WORD_BYTES) as u64;
    }
}

impl Stateful for RandomBytes {
    fn save(&self, out: &mut StateWriter) {
        self.drawn.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        let drawn = u64::read(from)?;
        self.generator.advance(u128::from(drawn).wrapping_sub(self.drawn.into()));
        self.drawn = drawn;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_checkpoint::Context;

    #[test]
    fn a_sequence_goes_on_where_it_was_saved_whatever_was_drawn_at_a_time() {
        let mut whole = RandomBytes::new(5);
        for length in [3, 8, 16, 1, 0, 4, 27] {
            whole.fill(&mut vec![0; length]);
            let mut out = StateWriter::default();
            whole.save(&mut out);
            let bytes = out.finish().unwrap();
            let mut loaded = RandomBytes::new(5);
            loaded.load(&mut StateReader::new(&bytes, Context::default())).unwrap();
            assert_eq!(loaded, whole, "after {length} bytes");
        }
    }
}
