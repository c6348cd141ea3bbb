//! Floating point: worked corner cases, and any operands against an exact software model.

use durawarp::riscv::instruction::{Inst, Op};
use durawarp::riscv::semantics::{self, CANONICAL_NAN_D, CANONICAL_NAN_S, Flagged, ReservedRounding, flag};
use proptest::prelude::*;
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status, StatusAnd};

use crate::common::operation;

fn flagged(op: Op, mode: u8, operands: [u64; 3]) -> Flagged {
    let [a, b, c] = operands;
    semantics::float(&Inst { rm: mode, ..operation(op) }, a, b, c, 0).unwrap()
}

fn compute(op: Op, mode: u8, operands: [u64; 3]) -> u64 {
    flagged(op, mode, operands).value
}

fn boxed(value: f32) -> u64 {
    bits_boxed(value.to_bits())
}

fn bits_boxed(bits: u32) -> u64 {
    u64::from(bits) | 0xffff_ffff_0000_0000
}

/// The result of an operation on two doubles.
fn double(op: Op, a: f64, b: f64) -> u64 {
    compute(op, 0, [a.to_bits(), b.to_bits(), 0])
}

#[test]
fn results_that_are_nan_are_canonical() {
    let payload = f64::from_bits(0xfff8_0000_0000_1234);
    for (op, a, b) in [
        (Op::FaddD, payload, 1.0),
        (Op::FsubD, f64::INFINITY, f64::INFINITY),
        (Op::FmulD, 0.0, f64::INFINITY),
        (Op::FdivD, 0.0, 0.0),
        (Op::FsqrtD, -1.0, 0.0),
        (Op::FminD, payload, f64::NAN),
    ] {
        assert_eq!(double(op, a, b), CANONICAL_NAN_D, "{}", op.name());
    }
    // Signs move without a look at what they belong to.
    assert_eq!(double(Op::FsgnjnD, payload, 1.0), 0xfff8_0000_0000_1234);
}

#[test]
fn a_single_that_is_not_boxed_reads_as_nan() {
    let one = boxed(1.0);
    assert_eq!(compute(Op::FaddS, 0, [one, one, 0]), boxed(2.0));
    assert_eq!(compute(Op::FaddS, 0, [one & 0xffff_ffff, one, 0]), bits_boxed(CANONICAL_NAN_S));
    assert_eq!(compute(Op::FsgnjS, 0, [one & 0xffff_ffff, one, 0]), bits_boxed(CANONICAL_NAN_S));
    assert_eq!(compute(Op::FclassS, 0, [1.0f64.to_bits(), 0, 0]), 1 << 9);
    // A move of bits does not look.
    assert_eq!(compute(Op::FmvXW, 0, [0x8000_0000, 0, 0]), 0xffff_ffff_8000_0000);
}

#[test]
fn minimum_and_maximum_order_zeros_and_prefer_numbers() {
    assert_eq!(double(Op::FminD, 0.0, -0.0), (-0.0f64).to_bits());
    assert_eq!(double(Op::FmaxD, -0.0, 0.0), 0.0f64.to_bits());
    assert_eq!(double(Op::FmaxD, f64::NAN, -3.0), (-3.0f64).to_bits());
    assert_eq!(double(Op::FminD, 2.0, f64::NAN), 2.0f64.to_bits());
}

#[test]
fn comparisons_with_nan_are_false() {
    for op in [Op::FeqD, Op::FltD, Op::FleD] {
        assert_eq!((double(op, f64::NAN, 1.0), double(op, 1.0, f64::NAN)), (0, 0));
    }
    assert_eq!((double(Op::FeqD, 0.0, -0.0), double(Op::FltD, -0.0, 0.0)), (1, 0));
}

#[test]
fn every_class_has_its_bit() {
    let classes = [
        f64::NEG_INFINITY,
        -1.5,
        -5e-324,
        -0.0,
        0.0,
        5e-324,
        1.5,
        f64::INFINITY,
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::NAN,
    ];
    for (bit, value) in classes.into_iter().enumerate() {
        assert_eq!(compute(Op::FclassD, 0, [value.to_bits(), 0, 0]), 1 << bit, "{value}");
    }
}

#[test]
fn conversions_to_integers_saturate_and_nan_is_the_largest() {
    let word_max = 0x7fff_ffff;
    for (op, value, expected) in [
        (Op::FcvtWD, 3e9, word_max),
        (Op::FcvtWD, -3e9, 0xffff_ffff_8000_0000),
        (Op::FcvtWD, f64::NAN, word_max),
        (Op::FcvtWuD, 3e9, 0xffff_ffff_b2d0_5e00),
        (Op::FcvtWuD, -1.0, 0),
        (Op::FcvtWuD, f64::NAN, u64::MAX),
        (Op::FcvtLD, f64::INFINITY, i64::MAX as u64),
        (Op::FcvtLD, -1e30, i64::MIN as u64),
        (Op::FcvtLuD, 1e30, u64::MAX),
        (Op::FcvtLuD, f64::NEG_INFINITY, 0),
    ] {
        assert_eq!(compute(op, 1, [value.to_bits(), 0, 0]), expected, "{} {value}", op.name());
    }
}

#[test]
fn conversions_have_five_rounding_modes() {
    for (value, expected) in
        [(2.5, [2, 2, 2, 3, 3]), (-2.5, [-2, -2, -3, -2, -3]), (3.5, [4, 3, 3, 4, 4]), (-0.4, [0, 0, -1, 0, 0])]
    {
        let found = [0, 1, 2, 3, 4].map(|mode| compute(Op::FcvtLD, mode, [f64::to_bits(value), 0, 0]) as i64);
        assert_eq!(found, expected, "{value}");
    }
    // Halfway between two singles: 2^24 + 1.
    let found = [0, 1, 2, 3, 4].map(|mode| compute(Op::FcvtSL, mode, [(1 << 24) + 1, 0, 0]));
    assert_eq!(found, [0.0, 0.0, 0.0, 2.0, 2.0].map(|more| boxed(16_777_216.0 + more)));
}

#[test]
fn the_mode_is_that_of_the_instruction_or_of_the_register_and_reserved_ones_are_refused() {
    let [one, tiny] = [1.0, f64::EPSILON / 4.0].map(f64::to_bits);
    let add = |rm, frm: u8| {
        let sum = semantics::float(&Inst { rm, ..operation(Op::FaddD) }, one, tiny, 0, frm << 5 | flag::ALL);
        sum.map(|sum| (f64::from_bits(sum.value), sum.flags))
    };
    let above = 1.0f64.next_up();
    // Exceptions that have accrued are no part of the mode, nor of the result.
    assert_eq!((add(0, 3), add(3, 0)), (Ok((1.0, flag::NX)), Ok((above, flag::NX))));
    assert_eq!((add(7, 0), add(7, 3)), (Ok((1.0, flag::NX)), Ok((above, flag::NX))));
    for frm in 5..8 {
        assert_eq!((add(7, frm), add(1, frm)), (Err(ReservedRounding(frm)), Ok((1.0, flag::NX))));
    }
    let convert =
        |frm: u8| semantics::float(&Inst { rm: 7, ..operation(Op::FcvtLD) }, 2.5f64.to_bits(), 0, 0, frm << 5);
    assert_eq!(convert(3), Ok(Flagged { value: 3, flags: flag::NX }));
    assert_eq!(convert(5), Err(ReservedRounding(5)));
}

#[test]
fn each_exception_is_raised_by_what_the_manual_says() {
    use flag::{DZ, NV, NX, OF, UF};
    let [quiet, signalling] = [0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001u64].map(f64::from_bits);
    let (infinity, max, min) = (f64::INFINITY, f64::MAX, f64::MIN_POSITIVE);
    for (op, a, b, c, flags) in [
        (Op::FaddD, 1.0, 2.0, 0.0, 0),
        (Op::FaddD, 1.0, 1e-30, 0.0, NX),
        (Op::FaddD, max, max, 0.0, OF | NX),
        // A sum that is subnormal is exact.
        (Op::FsubD, min, min.next_up(), 0.0, 0),
        (Op::FsubD, infinity, infinity, 0.0, NV),
        (Op::FaddD, quiet, 1.0, 0.0, 0),
        (Op::FaddD, signalling, 1.0, 0.0, NV),
        (Op::FmulD, 0.0, infinity, 0.0, NV),
        (Op::FmulD, min, 0.3, 0.0, UF | NX),
        (Op::FmulD, min, 0.25, 0.0, 0),
        // Tiny before rounding, normal after it; and tiny after it, though the result is normal.
        (Op::FmulD, min.next_up(), 1.0 - f64::EPSILON / 2.0, 0.0, NX),
        (Op::FmulD, min, 1.0 - f64::EPSILON / 2.0, 0.0, UF | NX),
        (Op::FdivD, 1.0, 0.0, 0.0, DZ),
        (Op::FdivD, infinity, 0.0, 0.0, 0),
        (Op::FdivD, 0.0, 0.0, 0.0, NV),
        (Op::FdivD, 1.0, 3.0, 0.0, NX),
        (Op::FdivD, 3.0, 1.5, 0.0, 0),
        (Op::FsqrtD, 2.0, 0.0, 0.0, NX),
        (Op::FsqrtD, 2.25, 0.0, 0.0, 0),
        (Op::FsqrtD, -1.0, 0.0, 0.0, NV),
        (Op::FsqrtD, -0.0, 0.0, 0.0, 0),
        // Infinity times zero is invalid whatever is added.
        (Op::FmaddD, infinity, 0.0, quiet, NV),
        (Op::FmaddD, 0.1, 0.1, 1.0, NX),
        (Op::FminD, quiet, 1.0, 0.0, 0),
        (Op::FmaxD, signalling, 1.0, 0.0, NV),
        (Op::FeqD, quiet, 1.0, 0.0, 0),
        (Op::FeqD, signalling, 1.0, 0.0, NV),
        (Op::FltD, quiet, 1.0, 0.0, NV),
        (Op::FleD, 1.0, quiet, 0.0, NV),
        (Op::FclassD, signalling, 0.0, 0.0, 0),
        (Op::FsgnjD, signalling, 1.0, 0.0, 0),
        (Op::FcvtLD, 2.5, 0.0, 0.0, NX),
        (Op::FcvtLD, 1e30, 0.0, 0.0, NV),
        (Op::FcvtWuD, -0.25, 0.0, 0.0, NX),
        (Op::FcvtWuD, -1.0, 0.0, 0.0, NV),
        (Op::FcvtLuD, quiet, 0.0, 0.0, NV),
        (Op::FcvtSD, 1e300, 0.0, 0.0, OF | NX),
        (Op::FcvtSD, 1e-300, 0.0, 0.0, UF | NX),
        (Op::FcvtSD, 0.1, 0.0, 0.0, NX),
        (Op::FcvtSD, signalling, 0.0, 0.0, NV),
    ] {
        let found = flagged(op, 0, [a, b, c].map(f64::to_bits)).flags;
        assert_eq!(found, flags, "{} {a:e}, {b:e}, {c:e}", op.name());
    }
    assert_eq!(flagged(Op::FcvtDS, 0, [bits_boxed(0x7f80_0001), 0, 0]).flags, NV);
    assert_eq!(flagged(Op::FcvtDLu, 0, [u64::MAX, 0, 0]).flags, NX);
    // What is not boxed is a quiet NaN.
    assert_eq!(flagged(Op::FeqS, 0, [1, 1, 0]).flags, 0);
}

#[test]
fn a_fused_multiply_add_rounds_once() {
    let x = 1.0 + f64::EPSILON;
    // x * x - (1 + 2 eps) is eps^2, which a product rounded by itself loses.
    let exact = compute(Op::FmsubD, 0, [x.to_bits(), x.to_bits(), (1.0 + 2.0 * f64::EPSILON).to_bits()]);
    assert_eq!(f64::from_bits(exact), f64::EPSILON * f64::EPSILON);
    let signs = [Op::FmaddD, Op::FmsubD, Op::FnmsubD, Op::FnmaddD]
        .map(|op| f64::from_bits(compute(op, 0, [2.0f64.to_bits(), 3.0f64.to_bits(), 1.0f64.to_bits()])));
    assert_eq!(signs, [7.0, 5.0, -5.0, -7.0]);
}

const ROUNDS: [Round; 5] = [
    Round::NearestTiesToEven,
    Round::TowardZero,
    Round::TowardNegative,
    Round::TowardPositive,
    Round::NearestTiesToAway,
];

/// Doubles of all kinds, many of them near the limits and the ties of singles.
fn doubles() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<f64>().prop_map(f64::to_bits),
        (any::<f32>(), 0..4u64).prop_map(|(value, quarter)| f64::from(value).to_bits().wrapping_add(quarter << 27)),
    ]
}

fn of_model(value: Double) -> u64 {
    if value.is_nan() { CANONICAL_NAN_D } else { value.to_bits() as u64 }
}

fn of_single_model(value: Single) -> u64 {
    bits_boxed(if value.is_nan() { CANONICAL_NAN_S } else { value.to_bits() as u32 })
}

/// Values whose results are often exact, ties, or at the border of subnormal numbers: few bits, any exponent.
fn short_doubles() -> impl Strategy<Value = u64> {
    (
        0..1u64 << 6,
        0..53u32,
        prop_oneof![0..2047u64, 1000..1050u64, 0..60u64, 500..530u64, 1990..2047u64],
        any::<bool>(),
    )
        .prop_map(|(bits, at, exponent, sign)| (bits << at) & ((1 << 52) - 1) | exponent << 52 | u64::from(sign) << 63)
}

fn short_singles() -> impl Strategy<Value = u32> {
    (0..1u32 << 6, 0..24u32, prop_oneof![0..255u32, 120..134u32, 0..30u32, 55..70u32, 230..255u32], any::<bool>())
        .prop_map(|(bits, at, exponent, sign)| (bits << at) & ((1 << 23) - 1) | exponent << 23 | u32::from(sign) << 31)
}

/// Compares with the model but for exceptions that it tells in another way, by its result. Underflow: the
/// manual looks at a result with all bits of a normal number, which differs where it is the smallest normal
/// number. Overflow: the model has none where the result is the largest number. Both are compared with qemu.
fn matches<T: Float>(ours: Flagged, model: StatusAnd<T>, value: u64) -> Result<(), String> {
    let bits = [
        (Status::INEXACT, flag::NX),
        (Status::UNDERFLOW, flag::UF),
        (Status::OVERFLOW, flag::OF),
        (Status::DIV_BY_ZERO, flag::DZ),
        (Status::INVALID_OP, flag::NV),
    ];
    let expected: u8 = bits.iter().filter(|(status, _)| model.status.intersects(*status)).map(|(_, bit)| bit).sum();
    let magnitude = if model.value.is_negative() { -model.value } else { model.value };
    let but = |at: T, flag: u8| if magnitude == at { flag } else { 0 };
    let compared = !(but(T::smallest_normalized(), flag::UF) | but(T::largest(), flag::OF));
    if ours.value != value || (ours.flags ^ expected) & compared != 0 {
        return Err(format!("{ours:x?}, the model {value:x} with {expected:x}"));
    }
    Ok(())
}

fn check_double(op: Op, mode: usize, operands: [u64; 3], model: StatusAnd<Double>) {
    let found = matches(flagged(op, mode as u8, operands), model, of_model(model.value));
    assert!(found.is_ok(), "{} in mode {mode} of {operands:x?}: {}", op.name(), found.unwrap_err());
}

fn check_single(op: Op, mode: usize, operands: [u32; 3], model: StatusAnd<Single>) {
    let found = matches(flagged(op, mode as u8, operands.map(bits_boxed)), model, of_single_model(model.value));
    assert!(found.is_ok(), "{} in mode {mode} of {operands:x?}: {}", op.name(), found.unwrap_err());
}

/// A root rounds its operand: the model has none, but multiplies exactly in a format that is wide enough.
fn check_root(a: u64, mode: u8) {
    let root = flagged(Op::FsqrtD, mode, [a, 0, 0]);
    let square = |value: f64| {
        let bits = value.to_bits();
        (u128::from(bits & ((1 << 52) - 1) | 1 << 52), (bits >> 52) as i32)
    };
    // Roots are normal: as integers of one exponent, r^2 against a.
    let (value, exponent) = square(f64::from_bits(root.value));
    let scaled = f64::from_bits(a);
    let (operand, of) = if scaled < f64::MIN_POSITIVE { square(scaled * 2f64.powi(128)) } else { square(scaled) };
    let of = if scaled < f64::MIN_POSITIVE { of - 128 } else { of };
    let shift = of - 2 * exponent + 1023 + 52;
    let exact = operand << shift;
    let (least, most) = (value * value - value, value * value + value);
    let is_so = match mode {
        0 | 4 => least < exact && exact <= most,
        1 | 2 => value * value <= exact && exact < (value + 1) * (value + 1),
        _ => value * value >= exact && exact > (value - 1) * (value - 1),
    };
    assert!(is_so, "root of {a:x} in mode {mode}: {:x}", root.value);
    assert_eq!(root.flags, if value * value == exact { 0 } else { flag::NX }, "{a:x}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn double_arithmetic_is_exact_in_every_mode(
        a in prop_oneof![doubles(), short_doubles()],
        b in prop_oneof![doubles(), short_doubles()],
        c in prop_oneof![doubles(), short_doubles()],
    ) {
        let [x, y, z] = [a, b, c].map(|bits| Double::from_bits(bits.into()));
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            check_double(Op::FaddD, mode, [a, b, 0], x.add_r(y, round));
            check_double(Op::FsubD, mode, [a, b, 0], x.sub_r(y, round));
            check_double(Op::FmulD, mode, [a, b, 0], x.mul_r(y, round));
            check_double(Op::FdivD, mode, [a, b, 0], x.div_r(y, round));
            // Near to where a sum cancels, and anywhere.
            let product = x.mul_r(y, Round::TowardZero).value.to_bits() as u64;
            for c in [c, product ^ 1 << 63, product.wrapping_add(c & 3) ^ 1 << 63] {
                let z = Double::from_bits(c.into());
                // Infinity times zero is invalid with a NaN, too: the model does not say so.
                if !z.is_nan() {
                    check_double(Op::FmaddD, mode, [a, b, c], x.mul_add_r(y, z, round));
                }
            }
            if !z.is_nan() {
                check_double(Op::FnmsubD, mode, [a, b, c], (-x).mul_add_r(y, z, round));
            }
        }
    }

    #[test]
    fn single_arithmetic_is_exact_in_every_mode(
        a in prop_oneof![any::<u32>(), short_singles()],
        b in prop_oneof![any::<u32>(), short_singles()],
        c in prop_oneof![any::<u32>(), short_singles()],
    ) {
        let [x, y, z] = [a, b, c].map(|bits| Single::from_bits(bits.into()));
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            check_single(Op::FaddS, mode, [a, b, 0], x.add_r(y, round));
            check_single(Op::FsubS, mode, [a, b, 0], x.sub_r(y, round));
            check_single(Op::FmulS, mode, [a, b, 0], x.mul_r(y, round));
            check_single(Op::FdivS, mode, [a, b, 0], x.div_r(y, round));
            let product = x.mul_r(y, Round::TowardZero).value.to_bits() as u32;
            for c in [c, product ^ 1 << 31, product.wrapping_add(c & 3) ^ 1 << 31] {
                let z = Single::from_bits(c.into());
                if !z.is_nan() {
                    check_single(Op::FmaddS, mode, [a, b, c], x.mul_add_r(y, z, round));
                }
            }
            if !z.is_nan() {
                check_single(Op::FnmaddS, mode, [a, b, c], (-x).mul_add_r(y, -z, round));
            }
        }
    }

    #[test]
    fn roots_are_exact_in_every_mode(a in prop_oneof![doubles(), short_doubles()], square: u32, exponent in -500..500i32) {
        let exact = f64::from(square >> 6).powi(2) * 4f64.powi(exponent);
        for a in [a & !(1 << 63), exact.to_bits(), exact.next_up().to_bits()] {
            if a != 0 && a < f64::INFINITY.to_bits() {
                (0..5).for_each(|mode| check_root(a, mode));
            }
        }
    }

    #[test]
    fn doubles_become_singles_in_every_mode(a in doubles()) {
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            let model: StatusAnd<Single> = Double::from_bits(a.into()).convert_r(round, &mut false);
            let ours = flagged(Op::FcvtSD, mode as u8, [a, 0, 0]);
            let found = matches(ours, model, of_single_model(model.value));
            prop_assert!(found.is_ok(), "mode {} of {:x}: {:?}", mode, a, found);
        }
    }

    #[test]
    fn integers_become_floats_in_every_mode(value: u64, shift in 0..64u32) {
        let value = value >> shift;
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            let mode = mode as u8;
            let signed = i128::from(value as i64);
            let inexact = |status: Status| if status.intersects(Status::INEXACT) { flag::NX } else { 0 };
            for (op, model) in [(Op::FcvtDLu, Double::from_u128_r(value.into(), round)), (Op::FcvtDL, Double::from_i128_r(signed, round))] {
                let expected = Flagged { value: of_model(model.value), flags: inexact(model.status) };
                prop_assert_eq!(flagged(op, mode, [value, 0, 0]), expected);
            }
            for (op, model) in [(Op::FcvtSLu, Single::from_u128_r(value.into(), round)), (Op::FcvtSL, Single::from_i128_r(signed, round))] {
                let expected = Flagged { value: of_single_model(model.value), flags: inexact(model.status) };
                prop_assert_eq!(flagged(op, mode, [value, 0, 0]), expected);
            }
        }
    }

    #[test]
    fn floats_become_integers_in_every_mode(a in doubles()) {
        let value = Double::from_bits(a.into());
        prop_assume!(!value.is_nan());
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            let mode = mode as u8;
            let check = |op: Op, expected: u64, status: Status| {
                let flags = if status.intersects(Status::INVALID_OP) {
                    flag::NV
                } else if status.intersects(Status::INEXACT) {
                    flag::NX
                } else {
                    0
                };
                assert_eq!(flagged(op, mode, [a, 0, 0]), Flagged { value: expected, flags }, "{} of {a:x}", op.name());
            };
            let [long, word] = [64, 32].map(|bits| value.to_i128_r(bits, round, &mut false));
            let [unsigned_long, unsigned_word] = [64, 32].map(|bits| value.to_u128_r(bits, round, &mut false));
            check(Op::FcvtLD, long.value as u64, long.status);
            check(Op::FcvtWD, word.value as u64, word.status);
            check(Op::FcvtLuD, unsigned_long.value as u64, unsigned_long.status);
            check(Op::FcvtWuD, unsigned_word.value as u32 as i32 as u64, unsigned_word.status);
        }
    }
}
