//! Level B: the images that the model of persist order allows at an instant, and which of them to judge.
//!
//! ```text
//!  line a   must ├────────┤ may        an image takes one version of each line, any in its interval,
//!  line b        ├──┤                  or, torn, one of each 8-byte word
//!  line c        ┤                     (nothing to choose)
//! ```
//! A non-temporal store may also be durable while older bytes of its line still lie in a cache.
//!
//! All combinations are judged when they are few; else everything at its oldest, everything at its newest,
//! each line alone, pairs of a log, a flag and data, and some drawn. Each image is a number: the same
//! instant, number and budget give the same image again.
//!
//! Source: enumeration of crash states as in pmreorder and Yat (ATC'14); choosing by roles as in Witcher
//! (SOSP'21). Invariants: every image is allowed by [`order`](super::order); the first is the one in which
//! nothing is durable that need not be. Not modelled: choices that recovery narrows while it reads (Jaaru).

mod parts;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::crash::Hashed;
use super::order::{Bounds, Instant, Order};
use super::{Draw, LINE, Regions, WORDS, inside, line_overlaps, mix, overlaps};
use crate::engine::Time;
use crate::persist::image::PmImage;
use crate::persist::journal::FactKind;
use parts::Parts;

/// At most how many states of one line in which non-temporal stores are ahead of others.
const AHEAD: usize = 64;

/// How much of what is allowed to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Instants besides those before and after fences, starts of kernels and writes of flags.
    pub instants: u64,
    /// Instants before and after fences, starts of kernels and writes of flags.
    pub boundaries: u64,
    /// Up to how many combinations all are judged.
    pub product: u64,
    /// Lines judged alone, each twice, when not all combinations are.
    pub singles: u64,
    /// Pairs of lines, each twice, when not all combinations are.
    pub pairs: u64,
    /// Combinations drawn when not all are judged.
    pub random: u64,
    /// Combinations with torn lines drawn beside all whole ones; 0 for no torn line at all.
    pub torn: u64,
    /// What is drawn.
    pub seed: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            instants: 256,
            boundaries: 4096,
            product: 4096,
            singles: 512,
            pairs: 1024,
            random: 256,
            torn: 32,
            seed: 0,
        }
    }
}

/// The states that a model allows in the course of a run.
#[derive(Debug)]
pub struct Allowed<'a> {
    order: &'a Order<'a>,
    initial: &'a PmImage,
    regions: Regions,
    budget: Budget,
    /// Facts that a launch began.
    launches: Vec<u32>,
}

impl<'a> Allowed<'a> {
    /// The states that `order` allows from an initial image on. What is outside of the image is not looked
    /// at.
    pub fn new(order: &'a Order<'a>, initial: &'a PmImage, regions: Regions, budget: Budget) -> Allowed<'a> {
        Allowed { order, initial, regions, budget, launches: super::crash::launches(order.journal) }
    }

    /// The order that allows them.
    pub fn order(&self) -> &'a Order<'a> {
        self.order
    }

    /// The image before the first fact.
    pub fn initial(&self) -> &'a PmImage {
        self.initial
    }

    /// How many launches had begun at an instant.
    pub fn launches_begun(&self, instant: usize) -> u32 {
        self.launches.partition_point(|&launch| (launch as usize) < instant) as u32
    }

    /// When the last fact before an instant was noted, in ticks.
    pub fn time(&self, instant: usize) -> Time {
        let facts = self.order.journal.facts();
        instant.min(facts.len()).checked_sub(1).map_or(0, |at| facts[at].time)
    }

    /// The instants to judge, and how many that change an interval are left out.
    pub fn instants(&self) -> (Vec<usize>, u64) {
        let facts = self.order.journal.facts();
        let flag = |line, mask| line_overlaps(&self.regions.flag, line, mask);
        let mut boundaries = vec![facts.len()];
        for (at, fact) in facts.iter().enumerate() {
            let always = matches!(
                fact.kind,
                FactKind::FencePassed
                    | FactKind::FenceOrdered
                    | FactKind::FenceSettled
                    | FactKind::PersistPassed(_)
                    | FactKind::KernelStarted
            );
            if always || fact.kind == FactKind::Performed && flag(fact.line, fact.mask) {
                boundaries.extend([at, at + 1]);
            }
        }
        boundaries.sort_unstable();
        boundaries.dedup();
        let mut others: Vec<usize> = self.order.events.iter().map(|event| event.fact as usize + 1).collect();
        others.dedup();
        others.retain(|at| boundaries.binary_search(at).is_err());
        let all = boundaries.len() + others.len();
        let mut draw = Draw::new(self.budget.seed);
        draw.thin(&mut others, self.budget.instants as usize);
        draw.thin(&mut boundaries, self.budget.boundaries as usize);
        boundaries.append(&mut others);
        boundaries.sort_unstable();
        let left_out = (all - boundaries.len()) as u64;
        (boundaries, left_out)
    }

    /// A walk over instants, from the first.
    pub fn walk(&self) -> Walk<'_> {
        let must = Hashed::new(self.initial.clone());
        let image = self.initial.clone();
        Walk { allowed: self, instant: self.order.instants(), must, image, open: BTreeSet::new() }
    }

    /// The number of images at an instant; none beyond the last instant.
    pub fn count(&self, instant: usize) -> Option<u64> {
        let mut walk = self.walk();
        (instant <= self.order.journal.facts().len()).then(|| {
            walk.advance_to(instant);
            walk.choices().count()
        })
    }

    /// One image by its instant and number; none beyond the last instant or number.
    pub fn image(&self, instant: usize, choice: u64) -> Option<PmImage> {
        let mut walk = self.walk();
        walk.advance_to(instant);
        let choices = walk.choices();
        (choice < choices.count).then(|| walk.with(&choices, choice, PmImage::clone))
    }
}

/// A line that may be in several states, which are numbered: first its versions, oldest first, then those in
/// which non-temporal stores are ahead of others.
#[derive(Debug, Clone)]
struct Open {
    line: usize,
    bounds: Bounds,
    /// (prefix, through)
    ahead: Vec<(u32, u32)>,
    /// By state, its bytes, once they are asked for.
    contents: Vec<OnceCell<Box<[u8; LINE]>>>,
}

impl Open {
    fn new(order: &Order<'_>, line: usize, bounds: Bounds) -> Open {
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

    fn newest(&self) -> u32 {
        self.bounds.may - self.bounds.must
    }

    fn states(&self) -> u64 {
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
    fn whole(&self, order: &Order<'_>, state: u32) -> &[u8; LINE] {
        self.contents[state as usize].get_or_init(|| {
            let (prefix, through) = self.state(state);
            Box::new(order.content(self.line, prefix, through))
        })
    }

    fn content(&self, order: &Order<'_>, pick: &Pick) -> [u8; LINE] {
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
enum Pick {
    Whole(u32),
    Torn([u32; WORDS]),
}

/// The images to judge at one instant, by number.
#[derive(Debug, Clone)]
pub struct Choices {
    open: Vec<Open>,
    /// All combinations of whole lines, when these are all judged.
    product: Option<u64>,
    singles: Vec<Vec<usize>>,
    pairs: Vec<Vec<usize>>,
    /// How many images.
    count: u64,
    tear: bool,
    seed: u64,
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

    fn picks(&self, choice: u64) -> Vec<Pick> {
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
    fn drawn(&self, number: u64, whole_too: bool) -> Vec<Pick> {
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

/// A walk over instants with the image of what must be durable, forward only.
#[derive(Debug)]
pub struct Walk<'a> {
    allowed: &'a Allowed<'a>,
    instant: Instant<'a>,
    must: Hashed,
    /// The same bytes, and while a choice is looked at, that choice's.
    image: PmImage,
    open: BTreeSet<usize>,
}

impl Walk<'_> {
    /// Goes on to an instant, which lies ahead.
    pub fn advance_to(&mut self, at: usize) {
        let order = self.allowed.order;
        for line in self.instant.advance_to(at) {
            let Bounds { must, through, may } = self.instant.bounds()[line];
            let content = order.content(line, must, through);
            let inside = self.inside(line);
            if !inside.is_empty() {
                let address = order.lines[line].address + inside.start as u64;
                self.must.write(address, &content[inside.clone()]);
                self.write(address, &content[inside]);
                if must < may {
                    self.open.insert(line)
                } else {
                    self.open.remove(&line)
                };
            }
        }
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let written = self.image.write(address, data);
        assert!(written.is_ok(), "only bytes of the image are written: {written:?}");
    }

    /// The bytes of a line that are in the image.
    fn inside(&self, line: usize) -> Range<usize> {
        let order = self.allowed.order;
        inside(self.allowed.initial, order.lines[line].address, order.extent(line))
    }

    /// What there is to choose from here.
    pub fn choices(&self) -> Choices {
        let Budget { product, singles, pairs, random, torn, seed, .. } = self.allowed.budget;
        let bounds = self.instant.bounds();
        let open = |&line: &usize| Open::new(self.allowed.order, line, bounds[line]);
        let open: Vec<Open> = self.open.iter().map(open).collect();
        let all = open.iter().try_fold(1_u64, |all, open| {
            all.checked_mul(open.states()).filter(|&all| all <= product && open.ahead.len() < AHEAD)
        });
        let mut choices = Choices {
            product: all,
            singles: Vec::new(),
            pairs: Vec::new(),
            count: 0,
            tear: torn != 0,
            seed: seed ^ mix(self.instant.at() as u64),
            open,
        };
        let Some(all) = all else {
            let mut draw = Draw::new(choices.seed);
            choices.singles = (0..choices.open.len()).map(|line| vec![line]).collect();
            draw.thin(&mut choices.singles, singles as usize);
            choices.pairs = self.pairs(&choices.open, pairs, &mut draw);
            choices.count = 2 + 2 * (choices.singles.len() + choices.pairs.len()) as u64 + random;
            return choices;
        };
        choices.count = all + if choices.open.is_empty() { 0 } else { torn };
        choices
    }

    /// Pairs of open lines with different roles.
    fn pairs(&self, open: &[Open], count: u64, draw: &mut Draw) -> Vec<Vec<usize>> {
        let Regions { flag, log, data } = &self.allowed.regions;
        let with = |ranges: &[Range<u64>]| -> Vec<usize> {
            let order = self.allowed.order;
            let has = |open: &Open| {
                let address = order.lines[open.line].address;
                overlaps(ranges, &(address..address + order.extent(open.line) as u64))
            };
            (0..open.len()).filter(|&at| has(&open[at])).collect()
        };
        let (flag, log, data) = (with(flag), with(log), with(data));
        let mut pairs = BTreeSet::new();
        for (ones, others) in [(&flag, &log), (&flag, &data), (&log, &data)] {
            let all = ones.len() as u64 * others.len() as u64;
            let pair = |number: u64| (ones[number as usize / others.len()], others[number as usize % others.len()]);
            // Of very many pairs, not all are looked at.
            let numbers = 0..all.min(4 * count);
            let mut chosen: Vec<u64> =
                if all <= 4 * count { numbers.collect() } else { numbers.map(|_| draw.below(all)).collect() };
            draw.thin(&mut chosen, (count / 3) as usize);
            pairs.extend(chosen.into_iter().map(pair).filter(|(one, other)| one != other));
        }
        pairs.into_iter().map(|(one, other)| vec![one, other]).collect()
    }

    /// The hashes of all images, by number. Cost: of each state of a line its words once; then for all
    /// combinations of few lines, and for single lines and pairs, a sum each; for others a sum over open
    /// lines.
    pub fn hashes(&self, choices: &Choices) -> Vec<u128> {
        let (base, mut parts) = (self.must.hash, Parts::new(self, &choices.open));
        let mut hashes = vec![base];
        if choices.product.is_some() {
            for (at, open) in choices.open.iter().enumerate() {
                let states: Vec<u128> = (0..open.states() as u32).map(|state| parts.whole(at, state)).collect();
                let with = |part: &u128| hashes.iter().map(|hash| hash.wrapping_add(*part)).collect::<Vec<_>>();
                hashes = states.iter().flat_map(with).collect();
            }
        } else {
            let newest: Vec<u128> =
                choices.open.iter().enumerate().map(|(at, open)| parts.whole(at, open.newest())).collect();
            let sum = |lines: &[usize]| lines.iter().fold(0_u128, |sum, &line| sum.wrapping_add(newest[line]));
            let all = newest.iter().fold(base, |sum, part| sum.wrapping_add(*part));
            hashes.push(all);
            for lines in choices.singles.iter().chain(&choices.pairs) {
                hashes.extend([all.wrapping_sub(sum(lines)), base.wrapping_add(sum(lines))]);
            }
        }
        let drawn = hashes.len() as u64..choices.count;
        hashes.extend(drawn.map(|choice| {
            let picks = choices.picks(choice);
            picks.iter().enumerate().fold(base, |hash, (at, pick)| hash.wrapping_add(parts.sum(at, pick)))
        }));
        hashes
    }

    /// Calls `judge` with one image. Cost: the lines that differ.
    pub fn with<R>(&mut self, choices: &Choices, choice: u64, judge: impl FnOnce(&PmImage) -> R) -> R {
        let picks = choices.picks(choice);
        let differ = || choices.open.iter().zip(&picks).filter(|(_, pick)| **pick != Pick::Whole(0));
        for (open, pick) in differ() {
            let inside = self.inside(open.line);
            let address = self.allowed.order.lines[open.line].address + inside.start as u64;
            self.write(address, &open.content(self.allowed.order, pick)[inside]);
        }
        let result = judge(&self.image);
        for (open, _) in differ() {
            let inside = self.inside(open.line);
            let address = self.allowed.order.lines[open.line].address + inside.start as u64;
            let durable = self.must.image.read(address, inside.len());
            let restored = durable.and_then(|durable| self.image.write(address, durable));
            assert!(restored.is_ok(), "it was written before: {restored:?}");
        }
        result
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests;
