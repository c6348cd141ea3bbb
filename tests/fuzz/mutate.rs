//! Changed inputs: a valid file, some of whose bytes, words or lines become others.
//!
//! Invariant: what comes of a reader's name and a number is always the same.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};

/// What stands where a number stood.
const NUMBERS: [&str; 27] = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "31",
    "65",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0xffffffffffffffff",
    "1e400",
    "1e-400",
    "nan",
    "inf",
    "0.1",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999",
];

/// What is put anywhere.
const PARTS: [&str; 26] = [
    "\"", "'", "\"\"\"", "\\", "\0", "\r\n", "\u{feff}", "\u{fffd}", "µ", "=", "[", "]", "{", "}", "(", ")", ",", ";",
    "#", "/*", "//", "@", "%", "..", "*", "\t",
];

/// Nested deeper than any file that means something.
const NESTED: [&str; 8] = ["(", "[", "{", "-", "!", "{a=", "[[", "sum(i,0,1,"];

/// Longer inputs say nothing that shorter ones do not.
const MOST_BYTES: usize = 1 << 20;

/// Changes of one input.
pub(crate) struct Mutator {
    random: Pcg64,
}

impl Mutator {
    pub(crate) fn new(name: &str, number: u64) -> Mutator {
        let of_name = name.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Mutator { random: Pcg64::seed_from_u64(of_name ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) }
    }

    /// Less than `bound`; 0 for 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound.max(1) as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// One of the samples, changed once or a few times.
    pub(crate) fn input(&mut self, samples: &[Vec<u8>]) -> Vec<u8> {
        let mut input = samples[self.below(samples.len())].clone();
        for _ in 0..1 + self.below(4) {
            let other = &samples[self.below(samples.len())];
            input = self.changed(input, other);
            input.truncate(MOST_BYTES);
        }
        input
    }

    fn changed(&mut self, mut input: Vec<u8>, other: &[u8]) -> Vec<u8> {
        let at = self.below(input.len() + 1);
        match self.below(16) {
            // Bytes.
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.random.next_u64() as u8,
            2 => input.truncate(at),
            3 => {
                let end = (at + self.below(40)).min(input.len());
                input.drain(at..end);
            }
            4 => {
                let bytes: Vec<u8> = (0..self.below(9)).map(|_| self.random.next_u64() as u8).collect();
                input.splice(at..at, bytes);
            }
            5 => {
                let from = self.below(other.len() + 1);
                let end = (from + self.below(200)).min(other.len());
                input.splice(at..at, other[from..end].iter().copied());
            }
            6 => {
                let bytes = if self.below(2) == 0 { 4 } else { 8 };
                let extreme = [0, u64::MAX, i64::MAX as u64, 1 << 31, u64::from(u32::MAX), 1][self.below(6)];
                for (to, byte) in input.iter_mut().skip(at / bytes * bytes).zip(&extreme.to_le_bytes()[..bytes]) {
                    *to = *byte;
                }
            }
            // Words.
            7..=9 => self.word(&mut input, at, |own| own.of(&NUMBERS), |byte| byte.is_ascii_digit() || byte == b'.'),
            10 => {
                let word = word_near(other, self.below(other.len() + 1), is_of_word);
                let word = other[word].to_vec();
                let range = word_near(&input, at, is_of_word);
                input.splice(range, word);
            }
            11 => {
                let part = self.of(&PARTS);
                input.splice(at..at, part.bytes());
            }
            12 if self.below(4) == 0 => {
                let times = [10, 200, 20_000][self.below(3)];
                let nested = self.of(&NESTED).repeat(times);
                input.splice(at..at, nested.bytes());
            }
            // Lines.
            _ => self.lines(&mut input),
        }
        input
    }

    /// Replaces the word of such bytes that is nearest from `at` on.
    fn word(
        &mut self,
        input: &mut Vec<u8>,
        at: usize,
        by: impl FnOnce(&mut Self) -> &'static str,
        is_of: impl Fn(u8) -> bool,
    ) {
        let range = word_near(input, at, is_of);
        let by = by(self);
        input.splice(range, by.bytes());
    }

    fn lines(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.is_empty() {
            return;
        }
        let (one, another) = (self.below(lines.len()), self.below(lines.len()));
        match self.below(4) {
            0 => _ = lines.remove(one),
            1 => lines.insert(another, lines[one]),
            2 => lines.swap(one, another),
            _ => {
                let end = (one + 1 + self.below(8)).min(lines.len());
                _ = lines.drain(one..end);
            }
        }
        *input = lines.concat();
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.%$".contains(&byte)
}

/// The first word at or after `at`, whole.
fn word_near(text: &[u8], at: usize, is_of: impl Fn(u8) -> bool) -> std::ops::Range<usize> {
    let Some(found) = (at..text.len()).find(|&at| is_of(text[at])) else { return text.len()..text.len() };
    let start = (0..found).rev().take_while(|&at| is_of(text[at])).last().unwrap_or(found);
    let end = (found..text.len()).find(|&at| !is_of(text[at])).unwrap_or(text.len());
    start..end
}
