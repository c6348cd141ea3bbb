//! Conversions in the five rounding modes: 0 to nearest even, 1 towards zero, 2 down, 3 up, 4 to nearest with
//! ties away from zero.
//!
//! To an integer: round, then saturate; a NaN becomes the largest. To a floating-point format: the host's
//! nearest even, then one step to the neighbour where the mode asks for that side.

fn rounded(value: f64, mode: u8) -> f64 {
    match mode {
        0 => value.round_ties_even(),
        1 => value.trunc(),
        2 => value.floor(),
        3 => value.ceil(),
        _ => value.round(),
    }
}

pub(super) fn to_i32(value: f64, mode: u8) -> u64 {
    let result = if value.is_nan() { i32::MAX } else { rounded(value, mode) as i32 };
    result as u64
}

/// The result of 32 bits is sign-extended, as that of any operation on words.
pub(super) fn to_u32(value: f64, mode: u8) -> u64 {
    let result = if value.is_nan() { u32::MAX } else { rounded(value, mode) as u32 };
    result as i32 as u64
}

pub(super) fn to_i64(value: f64, mode: u8) -> u64 {
    let result = if value.is_nan() { i64::MAX } else { rounded(value, mode) as i64 };
    result as u64
}

pub(super) fn to_u64(value: f64, mode: u8) -> u64 {
    if value.is_nan() { u64::MAX } else { rounded(value, mode) as u64 }
}

/// How the nearest value compares with the exact one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nearest {
    Exact,
    Below,
    Above,
}

impl Nearest {
    fn of<T: PartialOrd>(nearest: T, exact: T) -> Nearest {
        match nearest.partial_cmp(&exact) {
            Some(std::cmp::Ordering::Less) => Nearest::Below,
            Some(std::cmp::Ordering::Greater) => Nearest::Above,
            _ => Nearest::Exact,
        }
    }

    /// A mode that is not to nearest wants the neighbour on the other side of the exact value.
    fn to_step(self, negative: bool, mode: u8) -> bool {
        match self {
            Nearest::Exact => false,
            Nearest::Below => mode == 3 || mode == 1 && negative,
            Nearest::Above => mode == 2 || mode == 1 && !negative,
        }
    }

    /// The nearest even lies nearer to zero: had there been a tie, the other one would have been right.
    fn is_inward(self, negative: bool) -> bool {
        self == if negative { Nearest::Above } else { Nearest::Below }
    }
}

macro_rules! of_integer {
    ($name:ident, $float:ty) => {
        pub(super) fn $name(exact: i128, mode: u8) -> $float {
            let nearest = exact as $float;
            let side = Nearest::of(nearest as i128, exact);
            let neighbour = if side == Nearest::Below { nearest.next_up() } else { nearest.next_down() };
            let negative = exact < 0;
            let tie = mode == 4 && side.is_inward(negative) && nearest as i128 + neighbour as i128 == 2 * exact;
            if tie || side.to_step(negative, mode) { neighbour } else { nearest }
        }
    };
}
of_integer!(single_of, f32);
of_integer!(double_of, f64);

/// A double as a single.
pub(super) fn narrowed(exact: f64, mode: u8) -> f32 {
    let nearest = exact as f32;
    let side = Nearest::of(f64::from(nearest), exact);
    let neighbour = if side == Nearest::Below { nearest.next_up() } else { nearest.next_down() };
    let negative = exact.is_sign_negative();
    // Two neighbours' sum needs one bit more than a single has.
    let middle = (f64::from(nearest) + f64::from(neighbour)) / 2.0;
    let tie = mode == 4 && side.is_inward(negative) && middle == exact;
    if tie || side.to_step(negative, mode) { neighbour } else { nearest }
}
