//! Level A: the durable states that a run really went through, and which of them to judge.
//!
//! ```text
//!  point   0      1      2           n
//!  image   I0 ─c1─> I1 ─c2─> I2 ... ─cn─> In     a change ci: acceptance by a write-pending queue (ADR),
//!                                                arrival at the media (media), performance at the L2 (eADR)
//! ```
//! Crash point k is the image after the first k changes. Memory is bounded by the changes, which stay in the
//! journal: no image is kept per point. Source: crash points at ordering points and their stratification as
//! in XFDetector (ASPLOS'20) and Witcher (SOSP'21), with a change for a point because a simulator knows them
//! all.
//!
//! Invariants: every change is inside the image (checked when the states are made); a hash depends on the
//! bytes alone, not on the way to them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Draw, line_overlaps, mix, runs};
use durawarp_engine::Time;
use durawarp_persist::image::{OutsideImage, PmImage};
use durawarp_persist::journal::{Fact, FactKind, Journal};
use durawarp_persist::vocab::Domain;

/// Up to this many changes every point is judged, by default.
pub const EXHAUSTIVE_CHANGES: u64 = 20_000;
/// Up to this many bytes of persistent memory every point is judged, by default.
pub const EXHAUSTIVE_BYTES: usize = 1 << 20;
/// Points kept at either end when not every point is judged.
const ENDS: u64 = 64;
/// Points drawn uniformly when not every point is judged.
const UNIFORM: u64 = 512;

/// A crash point that the run does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no crash point {asked}: the run changed persistent memory {changes} times, so points are 0 to {changes}"
)]
pub struct BeyondEnd {
    /// The point asked for.
    pub asked: u64,
    /// How many changes there are.
    pub changes: u64,
}

/// Which crash points to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// All of them when the run is small; else every change of metadata with its neighbours, both ends, and
    /// some drawn.
    #[default]
    Auto,
    /// All of them.
    All,
    /// As many, evenly spaced, first and last among them.
    Count(u64),
    /// Changes of metadata with their neighbours, and both ends.
    Boundaries,
    /// Just this one.
    Only(u64),
}

/// The crash points that a plan comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Points {
    /// The points, ascending.
    pub points: Vec<u64>,
    /// Whether they are all there are.
    pub exhaustive: bool,
}

/// The durable states of a run.
#[derive(Debug, Clone)]
pub struct CrashStates<'a> {
    journal: &'a Journal,
    initial: &'a PmImage,
    domain: Domain,
    /// Facts that change the durable state.
    changes: Vec<u32>,
    /// Facts that a launch began.
    launches: Vec<u32>,
}

/// Where in a journal launches began.
pub(super) fn launches(journal: &Journal) -> Vec<u32> {
    let numbered = journal.facts().iter().zip(0..);
    numbered.filter(|(fact, _)| fact.kind == FactKind::KernelStarted).map(|(_, at)| at).collect()
}

/// The facts that change what is durable in a domain.
pub fn change_kind(domain: Domain) -> FactKind {
    match domain {
        Domain::Media => FactKind::AtMedia,
        Domain::Adr => FactKind::Accepted,
        Domain::Eadr => FactKind::Performed,
    }
}

impl<'a> CrashStates<'a> {
    /// The durable states that the facts of a merged journal lead through, from an initial image.
    ///
    /// # Errors
    /// A change is not all inside the image.
    pub fn new(journal: &'a Journal, initial: &'a PmImage, domain: Domain) -> Result<CrashStates<'a>, OutsideImage> {
        let kind = change_kind(domain);
        let mut changes = Vec::new();
        for (at, fact) in journal.facts().iter().enumerate().filter(|(_, fact)| fact.kind == kind && fact.mask != 0) {
            for (start, bytes) in runs(fact.mask) {
                initial.read(fact.line + start as u64, bytes)?;
            }
            changes.push(at as u32);
        }
        Ok(CrashStates { journal, initial, domain, changes, launches: launches(journal) })
    }

    /// How many changes there are; the last crash point.
    pub fn changes(&self) -> u64 {
        self.changes.len() as u64
    }

    /// What survives.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// The image before the first change.
    pub fn initial(&self) -> &'a PmImage {
        self.initial
    }

    /// The facts that it was made from.
    pub fn journal(&self) -> &'a Journal {
        self.journal
    }

    fn check(&self, point: u64) -> Result<u64, BeyondEnd> {
        let changes = self.changes();
        if point <= changes { Ok(point) } else { Err(BeyondEnd { asked: point, changes }) }
    }

    /// When a point's last change was made, in ticks; 0 for point 0.
    ///
    /// # Errors
    /// There is no such point.
    pub fn time(&self, point: u64) -> Result<Time, BeyondEnd> {
        let point = self.check(point)?;
        Ok(point.checked_sub(1).map_or(0, |change| self.change(change).time))
    }

    /// The change that leads from point `change` to the next.
    pub(super) fn change(&self, change: u64) -> &'a Fact {
        &self.journal.facts()[self.changes[change as usize] as usize]
    }

    /// How many launches had begun when the image of a point was last there, just before the next change.
    pub fn launches_begun(&self, point: u64) -> u32 {
        let until = self.changes.get(point as usize).copied().unwrap_or(u32::MAX);
        self.launches.partition_point(|&launch| launch < until) as u32
    }

    /// A cursor at a point. Cost: all changes before it.
    ///
    /// # Errors
    /// There is no such point.
    pub fn cursor(&self, point: u64) -> Result<Cursor<'a, '_>, BeyondEnd> {
        self.check(point)?;
        let mut cursor = Cursor { states: self, point: 0, state: Hashed::new(self.initial.clone()) };
        cursor.advance_to(point);
        Ok(cursor)
    }

    /// The points of a plan. `metadata` are sorted, disjoint ranges of addresses.
    ///
    /// # Errors
    /// The plan names a point beyond the last one.
    pub fn points(&self, plan: Plan, metadata: &[Range<u64>], seed: u64) -> Result<Points, BeyondEnd> {
        let last = self.changes();
        let mut points = match plan {
            Plan::Auto if last <= EXHAUSTIVE_CHANGES && self.initial.bytes().len() <= EXHAUSTIVE_BYTES => {
                (0..=last).collect()
            }
            Plan::All => (0..=last).collect(),
            Plan::Only(point) => vec![self.check(point)?],
            Plan::Count(count) if count > last => (0..=last).collect(),
            Plan::Count(count) => {
                // Both ends are points, so there is one gap less. The product may be over 64 bits.
                let gaps = u128::from(count.saturating_sub(1).max(1));
                (0..count).map(|at| (u128::from(last) * u128::from(at) / gaps) as u64).collect()
            }
            Plan::Boundaries => self.boundaries(metadata),
            Plan::Auto => {
                let mut points = self.boundaries(metadata);
                points.extend((0..=last).take(ENDS as usize));
                points.extend((0..=last).rev().take(ENDS as usize));
                let mut draw = Draw::new(seed);
                points.extend((0..UNIFORM).map(|_| draw.below(last + 1)));
                points
            }
        };
        points.sort_unstable();
        points.dedup();
        let exhaustive = points.len() as u64 == last + 1;
        Ok(Points { points, exhaustive })
    }

    /// The point after each change of metadata, the points next to it, and both ends.
    fn boundaries(&self, metadata: &[Range<u64>]) -> Vec<u64> {
        let last = self.changes();
        let mut points = vec![0, last];
        for change in 0..last {
            let fact = self.change(change);
            if line_overlaps(metadata, fact.line, fact.mask) {
                points.extend((change..=change + 2).filter(|&point| point <= last));
            }
        }
        points
    }
}

/// A walk over crash points, forward only.
#[derive(Debug)]
pub struct Cursor<'a, 'b> {
    states: &'b CrashStates<'a>,
    point: u64,
    state: Hashed,
}

impl Cursor<'_, '_> {
    /// Where it is.
    pub fn point(&self) -> u64 {
        self.point
    }

    /// The image there.
    pub fn image(&self) -> &PmImage {
        &self.state.image
    }

    /// The image's hash.
    pub fn hash(&self) -> u128 {
        self.state.hash
    }

    /// Goes one point on; false at the end. Cost: the bytes that change.
    pub fn step(&mut self) -> bool {
        if self.point == self.states.changes() {
            return false;
        }
        let fact = self.states.change(self.point);
        self.state.write_masked(fact.line, fact.mask, self.states.journal.data(fact));
        self.point += 1;
        true
    }

    /// Goes on to a point, which lies ahead; stops at the last one.
    pub fn advance_to(&mut self, point: u64) {
        while self.point < point && self.step() {}
    }
}

/// An image with a hash of its bytes that is kept up with every write: a sum over words, each mixed with its
/// place.
#[derive(Debug, Clone)]
pub(super) struct Hashed {
    pub(super) image: PmImage,
    pub(super) hash: u128,
}

/// Part of an image's hash that one word makes: none, where it is 0.
fn word_hash(place: u64, word: u64) -> u128 {
    if word == 0 {
        return 0;
    }
    let key = mix(place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1357_9bdf);
    let low = mix(word ^ key);
    let high = mix(word.rotate_left(32).wrapping_add(key) ^ 0x2545_f491_4f6c_dd1d);
    u128::from(high) << 64 | u128::from(low)
}

/// The hash of an image, from nothing. Cost: the pages with a byte other than zero, and a look at the others.
pub fn hash_of(image: &PmImage) -> u128 {
    let skew = (image.base() % 8) as usize;
    if skew != 0 {
        return part_hash(image, 0..image.bytes().len());
    }
    image.pages().fold(0, |hash, (at, page)| hash.wrapping_add(part_hash(image, at..at + page.len())))
}

/// Part of an image's hash that the word makes of which these bytes, from an address on, are in the image.
/// `base` is the image's.
pub(super) fn word_part(base: u64, address: u64, bytes: &[u8]) -> u128 {
    let value = match bytes.first_chunk::<8>() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)),
    };
    word_hash(address / 8 - base / 8, value)
}

/// Hash of the words in which the bytes at these offsets lie. A word is at a multiple of 8; the first and
/// last may be short.
fn part_hash(image: &PmImage, offsets: Range<usize>) -> u128 {
    let (bytes, base) = (image.bytes(), image.base());
    let skew = (base % 8) as usize;
    let mut hash = 0_u128;
    let mut word = (offsets.start + skew) / 8 * 8;
    while word < offsets.end + skew {
        let start = word.saturating_sub(skew);
        let part = &bytes[start..(word + 8 - skew).min(bytes.len())];
        hash = hash.wrapping_add(word_part(base, base + start as u64, part));
        word += 8;
    }
    hash
}

impl Hashed {
    pub(super) fn new(image: PmImage) -> Hashed {
        let hash = hash_of(&image);
        Hashed { image, hash }
    }

    /// Writes bytes; they must lie inside the image.
    pub(super) fn write(&mut self, address: u64, data: &[u8]) {
        let start = (address - self.image.base()) as usize;
        let offsets = start..start + data.len();
        let before = part_hash(&self.image, offsets.clone());
        let written = self.image.write(address, data);
        assert!(written.is_ok(), "a change was checked when the states were made: {written:?}");
        self.hash = self.hash.wrapping_sub(before).wrapping_add(part_hash(&self.image, offsets));
    }

    /// Writes the bytes of a line that `mask` names; `data` has them one after the other.
    pub(super) fn write_masked(&mut self, line: u64, mask: u128, data: &[u8]) {
        let mut at = 0;
        for (start, bytes) in runs(mask) {
            self.write(line + start as u64, &data[at..at + bytes]);
            at += bytes;
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use proptest::prelude::*;

    use super::super::script::{Script, warp};
    use super::*;

    fn blank(bytes: usize) -> PmImage {
        PmImage::new(0, vec![0; bytes])
    }

    #[test]
    fn each_domain_has_its_own_changes() {
        let mut script = Script::default();
        script.store(warp(0), 0, 7).accepted(0, 7).store(warp(0), 4, 8).at_media(0, 7);
        let initial = blank(256);
        for (domain, words) in [
            (Domain::Eadr, vec![[0, 0], [7, 0], [7, 8]]),
            (Domain::Adr, vec![[0, 0], [7, 0]]),
            (Domain::Media, vec![[0, 0], [7, 0]]),
        ] {
            let states = CrashStates::new(&script.journal, &initial, domain).unwrap();
            let mut cursor = states.cursor(0).unwrap();
            let mut found = Vec::new();
            loop {
                found.push([cursor.image().word(0).unwrap(), cursor.image().word(4).unwrap()]);
                if !cursor.step() {
                    break;
                }
            }
            assert_eq!(found, words, "{domain:?}");
        }
        let time = |domain| CrashStates::new(&script.journal, &initial, domain).unwrap().time(1);
        assert_eq!((time(Domain::Eadr), time(Domain::Adr), time(Domain::Media)), (Ok(2), Ok(3), Ok(6)));
    }

    #[test]
    fn a_point_lasts_until_the_next_change_and_counts_launches_until_then() {
        let mut script = Script::default();
        script.accepted(0, 1).launch(0).accepted(0, 2).launch(1);
        let initial = blank(128);
        let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
        assert_eq!([0, 1, 2].map(|point| states.launches_begun(point)), [0, 1, 2]);
    }

    #[test]
    fn a_point_beyond_the_end_says_how_many_there_are() {
        let mut script = Script::default();
        script.accepted(0, 1).accepted(4, 1);
        let initial = blank(128);
        let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
        let beyond = BeyondEnd { asked: 3, changes: 2 };
        assert_eq!(states.cursor(3).err(), Some(beyond));
        assert_eq!(states.time(3), Err(beyond));
        assert_eq!(states.points(Plan::Only(3), &[], 0), Err(beyond));
        assert!(beyond.to_string().contains("2 times"));
        assert_eq!(states.points(Plan::Only(2), &[], 0).unwrap().points, [2]);
    }

    #[test]
    fn a_change_outside_of_the_image_is_refused() {
        let mut script = Script::default();
        script.accepted(124, 1);
        let short = blank(126);
        assert!(CrashStates::new(&script.journal, &short, Domain::Adr).is_err());
        assert!(CrashStates::new(&script.journal, &blank(128), Domain::Adr).is_ok());
    }

    /// `changes` changes at address 0, but those in `flags` at address 512.
    fn many(changes: u64, flags: &[u64]) -> Journal {
        let mut script = Script::default();
        for at in 0..changes {
            script.accepted(if flags.contains(&at) { 512 } else { 0 }, at as u32);
        }
        script.journal
    }

    #[test]
    fn a_thinned_plan_keeps_metadata_with_its_neighbours_and_both_ends() {
        let journal = many(EXHAUSTIVE_CHANGES + 1, &[9_000, 15_000]);
        let initial = blank(1024);
        let states = CrashStates::new(&journal, &initial, Domain::Adr).unwrap();
        let auto = states.points(Plan::Auto, &[512..516], 1).unwrap();
        assert!(!auto.exhaustive && auto.points.is_sorted());
        for point in (9_000..=9_002).chain(15_000..=15_002).chain(0..64).chain(19_938..=20_001) {
            assert!(auto.points.binary_search(&point).is_ok(), "{point}");
        }
        assert!((570..=646).contains(&auto.points.len()), "{}", auto.points.len());
        assert_ne!(auto, states.points(Plan::Auto, &[512..516], 2).unwrap());
        let boundaries = states.points(Plan::Boundaries, &[512..516], 1).unwrap().points;
        assert_eq!(boundaries, [0, 9_000, 9_001, 9_002, 15_000, 15_001, 15_002, 20_001]);
    }

    #[test]
    fn a_small_run_is_judged_at_every_point() {
        let journal = many(EXHAUSTIVE_CHANGES, &[]);
        let initial = blank(1024);
        let states = CrashStates::new(&journal, &initial, Domain::Adr).unwrap();
        let auto = states.points(Plan::Auto, &[], 1).unwrap();
        assert!(auto.exhaustive);
        assert_eq!(auto.points.len() as u64, EXHAUSTIVE_CHANGES + 1);
        assert_eq!(states.points(Plan::Count(5), &[], 1).unwrap().points, [0, 5_000, 10_000, 15_000, 20_000]);
        assert!(states.points(Plan::Count(u64::MAX), &[], 1).unwrap().exhaustive);
        let large = blank(EXHAUSTIVE_BYTES + 1);
        let states = CrashStates::new(&journal, &large, Domain::Adr).unwrap();
        assert!(!states.points(Plan::Auto, &[], 1).unwrap().exhaustive);
    }

    proptest! {
        #[test]
        fn a_cursor_is_a_naive_replay_with_the_hash_of_its_image(
            changes in prop::collection::vec((0u64..3, any::<u128>(), any::<u128>(), any::<u8>()), 0..20),
            start in 0usize..20,
            base in 33u64..41,
        ) {
            let mut journal = Journal::default();
            for &(line, mask, more, byte) in &changes {
                let bytes = std::array::from_fn(|at| byte.wrapping_add(at as u8));
                journal.note_data(1, FactKind::Accepted, 41 + line * 128, mask & more, Default::default(), &bytes);
            }
            let initial = PmImage::new(base, (0..395).map(|at| at as u8).collect());
            let states = CrashStates::new(&journal, &initial, Domain::Adr).unwrap();
            let mut naive = initial.clone();
            let mut images = vec![naive.clone()];
            for fact in journal.facts().iter().filter(|fact| fact.mask != 0) {
                for (nth, at) in (0..128).filter(|at| fact.mask >> at & 1 == 1).enumerate() {
                    naive.write(fact.line + at, &journal.data(fact)[nth..=nth]).unwrap();
                }
                images.push(naive.clone());
            }
            prop_assert_eq!(states.changes() as usize + 1, images.len());
            let start = start.min(images.len() - 1);
            let mut cursor = states.cursor(start as u64).unwrap();
            for image in &images[start..] {
                prop_assert_eq!(cursor.image(), image);
                prop_assert_eq!(cursor.hash(), hash_of(image));
                cursor.step();
            }
            // A change that writes what is there leaves the hash as it is; any other gives another one.
            for (one, other) in images.iter().zip(&images[1..]) {
                prop_assert_eq!(one == other, hash_of(one) == hash_of(other));
            }
        }
    }
}
