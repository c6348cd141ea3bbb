//! Reductions that a host program asks for: one number of the elements of a buffer.
//!
//! Integers are added in 128 bits and must come to 64; floats are `f64`, added from the first element to the
//! last, so that the sum has the same bits on every driver and host. A NaN makes a sum NaN; the other
//! operations pass it over. Not modelled: a tree of partial sums, as kernels that reduce have it.

use super::ir::Elem;
use durawarp_checkpoint::value;

/// What is made of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// All added up; 0 of none.
    Sum,
    /// The least.
    Min,
    /// The largest.
    Max,
    /// The number of the first that is the largest.
    ArgMax,
}

value!(choice Fold { Sum, Min, Max, ArgMax });

impl Fold {
    /// Every one, by its name in manifests.
    pub const ALL: [(&'static str, Fold); 4] =
        [("sum", Fold::Sum), ("min", Fold::Min), ("max", Fold::Max), ("argmax", Fold::ArgMax)];
}

/// A reduction over `count` elements in global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduction {
    /// What is made of them.
    pub fold: Fold,
    /// Their type.
    pub elem: Elem,
    /// Address of the first.
    pub address: u64,
    /// Bytes from element to element.
    pub stride: u64,
    /// How many there are; at least one, unless they are added up.
    pub count: u64,
    /// Number of the first in its buffer, which [`Fold::ArgMax`] counts from.
    pub first: u64,
    /// What is said where the result is no 64-bit integer.
    pub too_large: String,
}

value!(record Reduction { fold, elem, address, stride, count, first, too_large });

impl Reduction {
    /// Bytes from the first element to the end of the last.
    pub fn bytes(&self) -> u64 {
        self.count.saturating_sub(1) * self.stride + if self.count > 0 { u64::from(self.elem.bytes()) } else { 0 }
    }

    /// The result over these bytes, little-endian, from the first element on: the bits of an `i64`, or of an
    /// `f64` for elements that are floats.
    ///
    /// # Errors
    /// [`Reduction::too_large`].
    ///
    /// # Panics
    /// When there are fewer bytes than [`Reduction::bytes`].
    pub fn of(&self, bytes: &[u8]) -> Result<u64, String> {
        let size = self.elem.bytes() as usize;
        let elements = (0..self.count).map(|i| &bytes[(i * self.stride) as usize..][..size]);
        match self.elem {
            Elem::F32 | Elem::F64 => Ok(self.of_floats(elements.map(|bytes| float(self.elem, bytes)))),
            elem => {
                let result = self.of_integers(elements.map(|bytes| integer(elem, bytes)));
                i64::try_from(result).map(|value| value as u64).map_err(|_| self.too_large.clone())
            }
        }
    }

    fn of_integers(&self, elements: impl Iterator<Item = i128>) -> i128 {
        let mut elements = elements;
        match self.fold {
            Fold::Sum => elements.sum(),
            Fold::Min => elements.min().unwrap_or(0),
            Fold::Max => elements.max().unwrap_or(0),
            Fold::ArgMax => {
                let first = elements.next().unwrap_or(0);
                let later = (1..).zip(elements);
                let (at, _) = later.fold((0, first), |best, next| if next.1 > best.1 { next } else { best });
                i128::from(self.first) + at
            }
        }
    }

    fn of_floats(&self, elements: impl Iterator<Item = f64>) -> u64 {
        let best = |better: fn(f64, f64) -> bool| {
            move |best: (u64, f64), next: (u64, f64)| {
                if best.1.is_nan() && !next.1.is_nan() || better(next.1, best.1) { next } else { best }
            }
        };
        let none = (0, f64::NAN);
        let numbered = (0..).zip(elements);
        match self.fold {
            Fold::Sum => numbered.fold(0.0, |total, (_, value)| total + value).to_bits(),
            Fold::Min => numbered.fold(none, best(|next, best| next < best)).1.to_bits(),
            Fold::Max => numbered.fold(none, best(|next, best| next > best)).1.to_bits(),
            Fold::ArgMax => self.first + numbered.fold(none, best(|next, best| next > best)).0,
        }
    }
}

fn float(elem: Elem, bytes: &[u8]) -> f64 {
    match elem {
        Elem::F32 => f64::from(f32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        _ => f64::from_le_bytes(bytes.try_into().expect("eight bytes")),
    }
}

fn integer(elem: Elem, bytes: &[u8]) -> i128 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * elem.bytes();
    let raw = u64::from_le_bytes(word);
    match elem {
        Elem::S8 | Elem::S16 | Elem::S32 | Elem::S64 => i128::from((raw << unused) as i64 >> unused),
        _ => i128::from(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fold: Fold, elem: Elem, bytes: &[u8]) -> Result<u64, String> {
        let stride = u64::from(elem.bytes());
        let (count, too_large) = (bytes.len() as u64 / stride, "too large".to_owned());
        Reduction { fold, elem, address: 0, stride, count, first: 10, too_large }.of(bytes)
    }

    fn all(elem: Elem, bytes: &[u8]) -> [u64; 4] {
        Fold::ALL.map(|(_, fold)| of(fold, elem, bytes).unwrap())
    }

    #[test]
    fn integers_keep_their_sign_and_the_first_of_equals_is_the_largest() {
        let minus = (-3_i64) as u64;
        assert_eq!(all(Elem::S8, &[1, 0xfd, 7, 7]), [12, minus, 7, 12]);
        assert_eq!(all(Elem::U8, &[1, 0xfd, 7, 7]), [268, 1, 0xfd, 11]);
        assert_eq!(all(Elem::S16, &[0xff, 0xff, 0xfe, 0xff]), [minus, (-2_i64) as u64, (-1_i64) as u64, 10]);
    }

    #[test]
    fn a_sum_may_leave_64_bits_on_its_way_but_not_at_its_end() {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let (most, least) = (i64::MAX as u64, i64::MIN as u64);
        assert_eq!(of(Fold::Sum, Elem::S64, &words(&[most, most, least])), Ok(i64::MAX as u64 - 1));
        assert_eq!(of(Fold::Sum, Elem::S64, &words(&[most, 1])), Err("too large".to_owned()));
        assert_eq!(of(Fold::Max, Elem::U64, &words(&[1 << 63])), Err("too large".to_owned()));
        assert_eq!(of(Fold::ArgMax, Elem::U64, &words(&[5, 1 << 63])), Ok(11));
    }

    #[test]
    fn floats_are_added_in_order_and_comparisons_pass_over_nan() {
        let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
        let nan = f32::NAN;
        let [sum, min, max, at] = all(Elem::F32, &floats(&[nan, 2.0, -1.0, nan, 2.0]));
        assert!(f64::from_bits(sum).is_nan());
        assert_eq!((f64::from_bits(min), f64::from_bits(max), at), (-1.0, 2.0, 11));
        let doubles = [1e16, 1.0, -1e16, 1.0].iter().flat_map(|value: &f64| value.to_le_bytes()).collect::<Vec<_>>();
        assert_eq!(of(Fold::Sum, Elem::F64, &doubles), Ok(1.0_f64.to_bits()), "1e16 + 1 is 1e16");
        assert_eq!(of(Fold::ArgMax, Elem::F32, &floats(&[nan, nan])), Ok(10));
        assert_eq!(of(Fold::Sum, Elem::F64, &[]), Ok(0));
    }
}
