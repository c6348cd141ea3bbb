//! What persistent memory may hold after a power failure, when only lines that were cleaned and then fenced are
//! sure to be durable (asynchronous DRAM refresh). Each aligned word of 8 bytes that was stored since may hold any
//! of the values that it had since, whatever its neighbours hold: lines are evicted at any time, and writes of
//! lines may be torn between words.

use std::collections::BTreeMap;

use durawarp::riscv::functional::{Observer, PersistFence};
use durawarp::riscv::memory::PM_START;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// How the values of words that may be durable are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Only what is sure to be durable.
    Sure,
    /// All that was stored.
    Newest,
    /// Each word by itself.
    Words,
    /// Each line as a whole as it is sure to be, or as it was stored last.
    Lines,
}

pub(crate) const DRAWS: [Draw; 4] = [Draw::Sure, Draw::Newest, Draw::Words, Draw::Lines];

/// The values that a word may have, the one that is sure to be durable first.
#[derive(Debug)]
struct Word {
    values: Vec<u64>,
    /// Values that are gone from the front of `values`.
    gone: usize,
}

/// A run's persistent memory: the observer of the run.
pub(crate) struct PowerFailures<F> {
    /// What is sure to be durable, but for `words`.
    durable: Vec<u8>,
    /// What loads see.
    current: Vec<u8>,
    /// Words that may have several values, by their numbers.
    words: BTreeMap<u64, Word>,
    /// What each hart has cleaned since its last fence: a word, and its value's number then.
    cleaned: BTreeMap<u32, Vec<(u64, usize)>>,
    /// Stores to persistent memory, lines of it that were cleaned, and fences.
    events: u64,
    /// The events after which power fails, in order.
    fails_after: Vec<u64>,
    random: Pcg64,
    /// Takes an image for each of [`DRAWS`] after each of these events.
    image_taken: F,
}

impl<F: FnMut(u64, Draw, &[u8])> PowerFailures<F> {
    pub(crate) fn new(pm_bytes: u64, mut fails_after: Vec<u64>, seed: u64, image_taken: F) -> PowerFailures<F> {
        fails_after.sort_unstable();
        let zeros = vec![0; pm_bytes as usize];
        PowerFailures {
            durable: zeros.clone(),
            current: zeros,
            words: BTreeMap::new(),
            cleaned: BTreeMap::new(),
            events: 0,
            fails_after,
            random: Pcg64::new(seed.into(), 7),
            image_taken,
        }
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    fn event(&mut self) {
        self.events += 1;
        let due = self.fails_after.partition_point(|at| *at <= self.events);
        if self.fails_after.drain(..due).next().is_some() {
            for draw in DRAWS {
                let image = self.image(draw);
                (self.image_taken)(self.events, draw, &image);
            }
        }
    }

    fn image(&mut self, draw: Draw) -> Vec<u8> {
        let mut image = self.durable.clone();
        let (mut line, mut line_is_newest) = (None, false);
        for (&number, word) in &self.words {
            if line != Some(number / 8) {
                line = Some(number / 8);
                line_is_newest = self.random.next_u64() & 1 == 1;
            }
            let newest = word.values.len() - 1;
            let value = match draw {
                Draw::Sure => 0,
                Draw::Newest => newest,
                Draw::Words => (self.random.next_u64() % word.values.len() as u64) as usize,
                Draw::Lines => newest * usize::from(line_is_newest),
            };
            write(&mut image, number, word.values[value]);
        }
        image
    }
}

fn write(bytes: &mut [u8], word: u64, value: u64) {
    bytes[8 * word as usize..][..8].copy_from_slice(&value.to_le_bytes());
}

fn read(bytes: &[u8], word: u64) -> u64 {
    u64::from_le_bytes(*bytes[8 * word as usize..].first_chunk().unwrap())
}

impl<F: FnMut(u64, Draw, &[u8])> Observer for PowerFailures<F> {
    fn store(&mut self, _hart: u32, address: u64, bytes: &[u8]) {
        let Some(offset) = address.checked_sub(PM_START) else { return };
        self.current[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        for number in offset / 8..=(offset + bytes.len() as u64 - 1) / 8 {
            let durable = &self.durable;
            let word =
                self.words.entry(number).or_insert_with(|| Word { values: vec![read(durable, number)], gone: 0 });
            word.values.push(read(&self.current, number));
        }
        self.event();
    }

    fn clean(&mut self, hart: u32, line: u64) {
        let Some(offset) = line.checked_sub(PM_START) else { return };
        let cleaned = self.cleaned.entry(hart).or_default();
        for (&number, word) in self.words.range(offset / 8..offset / 8 + 8) {
            cleaned.push((number, word.gone + word.values.len() - 1));
        }
        self.event();
    }

    fn fence(&mut self, hart: u32, _fence: PersistFence) {
        for (number, value) in self.cleaned.remove(&hart).unwrap_or_default() {
            // Another hart's fence may have made a later value sure.
            let Some(word) = self.words.get_mut(&number) else { continue };
            let sure = value.saturating_sub(word.gone);
            word.values.drain(..sure);
            word.gone += sure;
            write(&mut self.durable, number, word.values[0]);
        }
        self.event();
    }
}
