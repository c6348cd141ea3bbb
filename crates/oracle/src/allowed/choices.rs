//! The images of one instant, by number: in which state each open line is.
//!
//! ```text
//!  number   0 .. product                 every combination of whole lines, when they are few; then torn ones, drawn
//!  else     0, 1                         everything at its oldest, everything at its newest
//!           2 per line, 2 per pair       that line or pair newest among oldest lines, oldest among newest ones
//!           the rest                     drawn, every second with torn lines
//! ```
//! Invariant: the same seed and number give the same states.

use std::cell::OnceCell;

use super::super::order::{Bounds, RunOrder};
use super::super::{Draw, LINE, WORDS, mix};

/// At most how many states of one line in which non-temporal stores are ahead of others.
pub(super) const AHEAD: usize = 64;

/// A line that may be in several states, which are numbered: first its versions, oldest first, then those in
/// which non-temporal stores are ahead of others.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) line: usize,
    bounds: Bounds,
    /// (prefix, through)
    pub(super) ahead: Vec<(u32, u32)>,
    /// By state, its bytes, once they are asked for.
    contents: Vec<OnceCell<Box<[u8; LINE]>>>,
}

impl Open {
    pub(super) fn new(order: &RunOrder<'_>, line: usize, bounds: Bounds) -> Open {
        let Bounds { must, through, may } = bounds;
        let past = |version: &u32| order.lines[line].versions[*version as usize - 1].through;
        // Where the version after the prefix bypassed the caches itself, a longer prefix is the same.
        let left_behind: Vec<u32> = (must..may).filter(|prefix| !past(&(prefix + 1))).collect();
        let late = (through.max(must) + 1..=may).rev().filter(past);
        let behind = |late: u32| left_behind.iter().take_while(move |&&prefix| prefix < late);
        let ahead = late.flat_map(|late| behind(late).map(move |&prefix| (prefix, late)));
        let ahead: Vec<(u32, u32)> = ahead.take(AHEAD).collect();
        let contents = vec![OnceCell::new(); (may - must) as usize + 1 + ahead.len()];
        Open { line, bounds, ahead, contents }
    }

    pub(super) fn newest(&self) -> u32 {
        self.bounds.may - self.bounds.must
    }

    pub(super) fn states(&self) -> u64 {
        u64::from(self.newest()) + 1 + self.ahead.len() as u64
    }

    /// Prefix and non-temporal stores of a state.
    fn state(&self, number: u32) -> (u32, u32) {
        let Bounds { must, through, .. } = self.bounds;
        match number.checked_sub(self.newest() + 1) {
            None => (must + number, through),
            Some(ahead) => self.ahead[ahead as usize],
        }
    }

    /// The bytes of a state. Cost: little, after the first time.
    pub(super) fn whole(&self, order: &RunOrder<'_>, state: u32) -> &[u8; LINE] {
        self.contents[state as usize].get_or_init(|| {
            let (prefix, through) = self.state(state);
            Box::new(order.content(self.line, prefix, through))
        })
    }

    pub(super) fn content(&self, order: &RunOrder<'_>, pick: &Pick) -> [u8; LINE] {
        match pick {
            Pick::Whole(state) => *self.whole(order, *state),
            Pick::Torn(states) => {
                let mut bytes = [0; LINE];
                for (word, &state) in states.iter().enumerate() {
                    let word = word * 8..word * 8 + 8;
                    bytes[word.clone()].copy_from_slice(&self.whole(order, state)[word]);
                }
                bytes
            }
        }
    }
}

/// What a line is in an image: one of its states, or one for each word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    Whole(u32),
    Torn([u32; WORDS]),
}

/// The images to judge at one instant, by number.
#[derive(Debug, Clone)]
pub struct Choices {
    pub(super) open: Vec<Open>,
    /// All combinations of whole lines, when these are all judged.
    pub(super) product: Option<u64>,
    pub(super) singles: Vec<Vec<usize>>,
    pub(super) pairs: Vec<Vec<usize>>,
    /// How many images.
    pub(super) count: u64,
    pub(super) tear: bool,
    pub(super) seed: u64,
}

impl Choices {
    /// How many images.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether every combination of whole lines is among them.
    pub fn is_exhaustive(&self) -> bool {
        self.product.is_some()
    }

    fn uniform(&self, mut pick: impl FnMut(&Open) -> u32) -> Vec<Pick> {
        self.open.iter().map(|open| Pick::Whole(pick(open))).collect()
    }

    /// All lines newest but these, or all oldest but these.
    fn but(&self, lines: &[usize], newest: bool) -> Vec<Pick> {
        let end = |open: &Open, newest: bool| if newest { open.newest() } else { 0 };
        let mut picks = self.uniform(|open| end(open, newest));
        for &line in lines {
            picks[line] = Pick::Whole(end(&self.open[line], !newest));
        }
        picks
    }

    pub(super) fn picks(&self, choice: u64) -> Vec<Pick> {
        let mut left = choice;
        if let Some(product) = self.product {
            if choice >= product {
                return self.drawn(choice - product, false);
            }
            return self.uniform(|open| {
                let pick = left % open.states();
                left /= open.states();
                pick as u32
            });
        }
        match left {
            0 => return self.but(&[], false),
            1 => return self.but(&[], true),
            _ => left -= 2,
        }
        for lines in [&self.singles, &self.pairs] {
            if left < 2 * lines.len() as u64 {
                return self.but(&lines[left as usize / 2], left.is_multiple_of(2));
            }
            left -= 2 * lines.len() as u64;
        }
        self.drawn(left, true)
    }

    /// A combination drawn: ends of intervals more often than what is between; every one with torn lines, or
    /// every second.
    pub(super) fn drawn(&self, number: u64, whole_too: bool) -> Vec<Pick> {
        let mut draw = Draw::new(self.seed ^ mix(number + 1));
        let tear = self.tear && (!whole_too || number % 2 == 1);
        let state = |draw: &mut Draw, open: &Open| match draw.below(3) {
            0 => 0,
            1 => open.newest(),
            _ => draw.below(open.states()) as u32,
        };
        let pick = |open: &Open| {
            if tear && draw.below(2) == 0 {
                let mut states = [0; WORDS];
                states.iter_mut().for_each(|word| *word = state(&mut draw, open));
                Pick::Torn(states)
            } else {
                Pick::Whole(state(&mut draw, open))
            }
        };
        self.open.iter().map(pick).collect()
    }
}
