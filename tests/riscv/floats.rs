//! Floating point: worked corner cases, and any operands against an exact software model.

use durawarp::riscv::instruction::{Inst, Op};
use durawarp::riscv::semantics::{self, CANONICAL_NAN_D, CANONICAL_NAN_S, UnsupportedRounding};
use proptest::prelude::*;
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::common::operation;

fn compute(op: Op, mode: u8, operands: [u64; 3]) -> u64 {
    let [a, b, c] = operands;
    semantics::float(&Inst { rm: mode, ..operation(op) }, a, b, c, 0).unwrap()
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
fn arithmetic_is_refused_in_other_modes_than_to_nearest() {
    let one = 1.0f64.to_bits();
    let add = |rm, frm| semantics::float(&Inst { rm, ..operation(Op::FaddD) }, one, one, 0, frm);
    assert_eq!(add(7, 0), Ok(2.0f64.to_bits()));
    assert_eq!((add(7, 3), add(1, 0)), (Err(UnsupportedRounding(3)), Err(UnsupportedRounding(1))));
    let convert = |frm| semantics::float(&Inst { rm: 7, ..operation(Op::FcvtLD) }, 2.5f64.to_bits(), 0, 0, frm);
    assert_eq!((convert(3), convert(5)), (Ok(3), Err(UnsupportedRounding(5))));
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

proptest! {
    #[test]
    fn double_arithmetic_is_exact(a in doubles(), b in doubles(), c in doubles()) {
        let [x, y, z] = [a, b, c].map(|bits| Double::from_bits(bits.into()));
        let even = Round::NearestTiesToEven;
        prop_assert_eq!(compute(Op::FaddD, 0, [a, b, 0]), of_model(x.add_r(y, even).value));
        prop_assert_eq!(compute(Op::FmulD, 0, [a, b, 0]), of_model(x.mul_r(y, even).value));
        prop_assert_eq!(compute(Op::FdivD, 0, [a, b, 0]), of_model(x.div_r(y, even).value));
        prop_assert_eq!(compute(Op::FmaddD, 0, [a, b, c]), of_model(x.mul_add_r(y, z, even).value));
    }

    #[test]
    fn single_arithmetic_is_exact(a: u32, b: u32, c: u32) {
        let [x, y, z] = [a, b, c].map(|bits| Single::from_bits(bits.into()));
        let operands = [a, b, c].map(bits_boxed);
        let even = Round::NearestTiesToEven;
        prop_assert_eq!(compute(Op::FsubS, 0, operands), of_single_model(x.sub_r(y, even).value));
        prop_assert_eq!(compute(Op::FdivS, 0, operands), of_single_model(x.div_r(y, even).value));
        prop_assert_eq!(compute(Op::FnmaddS, 0, operands), of_single_model((-x).mul_add_r(y, -z, even).value));
    }

    #[test]
    fn doubles_become_singles_in_every_mode(a in doubles()) {
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            let model: Single = Double::from_bits(a.into()).convert_r(round, &mut false).value;
            prop_assert_eq!(compute(Op::FcvtSD, mode as u8, [a, 0, 0]), of_single_model(model), "mode {}", mode);
        }
    }

    #[test]
    fn integers_become_floats_in_every_mode(value: u64, shift in 0..64u32) {
        let value = value >> shift;
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            let mode = mode as u8;
            let signed = i128::from(value as i64);
            prop_assert_eq!(compute(Op::FcvtDLu, mode, [value, 0, 0]), of_model(Double::from_u128_r(value.into(), round).value));
            prop_assert_eq!(compute(Op::FcvtDL, mode, [value, 0, 0]), of_model(Double::from_i128_r(signed, round).value));
            prop_assert_eq!(compute(Op::FcvtSLu, mode, [value, 0, 0]), of_single_model(Single::from_u128_r(value.into(), round).value));
            prop_assert_eq!(compute(Op::FcvtSL, mode, [value, 0, 0]), of_single_model(Single::from_i128_r(signed, round).value));
        }
    }

    #[test]
    fn floats_become_integers_in_every_mode(a in doubles()) {
        let value = Double::from_bits(a.into());
        prop_assume!(!value.is_nan());
        for (mode, round) in ROUNDS.into_iter().enumerate() {
            let mode = mode as u8;
            prop_assert_eq!(compute(Op::FcvtLD, mode, [a, 0, 0]), value.to_i128_r(64, round, &mut false).value as u64);
            prop_assert_eq!(compute(Op::FcvtLuD, mode, [a, 0, 0]), value.to_u128_r(64, round, &mut false).value as u64);
            prop_assert_eq!(compute(Op::FcvtWD, mode, [a, 0, 0]), value.to_i128_r(32, round, &mut false).value as u64);
            prop_assert_eq!(compute(Op::FcvtWuD, mode, [a, 0, 0]), value.to_u128_r(32, round, &mut false).value as u32 as i32 as u64);
        }
    }
}
