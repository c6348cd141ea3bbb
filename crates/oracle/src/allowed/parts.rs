//! Hashes of allowed images without the images: what each state of a line adds to the hash of what must be
//! durable.
//!
//! Invariants: lines begin at multiples of 8 and share no word, so that parts add up; a word's part is that
//! of its bytes in the image. Leaves out: parts are of one instant, as what must be durable is.

use std::ops::Range;

use super::super::crash::word_part;
use super::super::order::RunOrder;
use super::super::{LINE, WORDS, inside};
use super::choices::{Open, Pick};
use durawarp_persist::image::PmImage;

/// The bytes of a line that are in an image.
pub(super) fn bytes_inside(order: &RunOrder<'_>, image: &PmImage, line: usize) -> Range<usize> {
    inside(image, order.lines[line].address, order.extent(line))
}

/// What a state of a line adds to a hash: each word's part, and their sum.
type HashPart = ([u128; WORDS], u128);

/// What states of open lines add to the hash of what must be durable, word by word; worked out when first
/// asked for. Lines share no word, so that parts add up.
pub(super) struct HashParts<'w, 'a> {
    order: &'w RunOrder<'a>,
    /// Any image of the run: all have the same addresses.
    image: &'w PmImage,
    open: &'w [Open],
    /// By open line and state.
    known: Vec<Vec<Option<Box<HashPart>>>>,
}

impl<'w, 'a> HashParts<'w, 'a> {
    pub(super) fn new(order: &'w RunOrder<'a>, image: &'w PmImage, open: &'w [Open]) -> HashParts<'w, 'a> {
        let none = |open: &Open| vec![None; open.states() as usize];
        HashParts { order, image, open, known: open.iter().map(none).collect() }
    }

    fn state(&mut self, at: usize, state: u32) -> &HashPart {
        let (order, open) = (self.order, &self.open[at]);
        self.known[at][state as usize].get_or_insert_with(|| {
            let [durable, newer] = [0, state].map(|state| open.whole(order, state));
            let (base, line) = (self.image.base(), order.lines[open.line].address);
            let inside = bytes_inside(order, self.image, open.line);
            let part = |word: usize| {
                let bytes = (word * 8).max(inside.start)..(word * 8 + 8).min(inside.end);
                if bytes.is_empty() || durable[bytes.clone()] == newer[bytes.clone()] {
                    return 0;
                }
                let hash = |content: &[u8; LINE]| word_part(base, line + bytes.start as u64, &content[bytes.clone()]);
                hash(newer).wrapping_sub(hash(durable))
            };
            let words: [u128; WORDS] = std::array::from_fn(part);
            Box::new((words, words.iter().fold(0, |sum: u128, part| sum.wrapping_add(*part))))
        })
    }

    pub(super) fn whole(&mut self, at: usize, state: u32) -> u128 {
        if state == 0 { 0 } else { self.state(at, state).1 }
    }

    pub(super) fn sum(&mut self, at: usize, pick: &Pick) -> u128 {
        match pick {
            Pick::Whole(state) => self.whole(at, *state),
            Pick::Torn(states) => {
                let word = |sum: u128, (word, &state): (usize, &u32)| match state {
                    0 => sum,
                    _ => sum.wrapping_add(self.state(at, state).0[word]),
                };
                states.iter().enumerate().fold(0, word)
            }
        }
    }
}
