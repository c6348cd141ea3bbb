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

mod choices;
mod parts;

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::crash::Hashed;
use super::order::{Bounds, Instant, RunOrder};
use super::{Draw, Regions, line_overlaps, mix, overlaps};
pub use choices::Choices;
use choices::{AHEAD, Open, Pick};
use durawarp_engine::Time;
use durawarp_persist::image::PmImage;
use durawarp_persist::journal::FactKind;
use parts::{HashParts, bytes_inside};

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
    order: &'a RunOrder<'a>,
    initial: &'a PmImage,
    regions: Regions,
    budget: Budget,
    /// Facts that a launch began.
    launches: Vec<u32>,
}

impl<'a> Allowed<'a> {
    /// The states that `order` allows from an initial image on. What is outside of the image is not looked
    /// at.
    pub fn new(order: &'a RunOrder<'a>, initial: &'a PmImage, regions: Regions, budget: Budget) -> Allowed<'a> {
        Allowed { order, initial, regions, budget, launches: super::crash::launches(order.journal) }
    }

    /// The order that allows them.
    pub fn order(&self) -> &'a RunOrder<'a> {
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
        // Both sides of a guarantee come first, with a budget of their own: there an interval becomes narrow,
        // and a missing fence shows. The other changes of intervals share what is left.
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
        bytes_inside(self.allowed.order, self.allowed.initial, line)
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
        // Too many combinations: all lines at their oldest, all at their newest (the 2), and lines and pairs
        // that differ from either.
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
        let (base, mut parts) =
            (self.must.hash, HashParts::new(self.allowed.order, self.allowed.initial, &choices.open));
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
