//! Integer instructions, branches, atomics and control registers: worked corner cases, and laws for any
//! operands.

use durawarp::riscv::decode::decode;
use durawarp::riscv::instruction::{Inst, Op};
use durawarp::riscv::semantics::{self, atomic};
use proptest::prelude::*;

use crate::common::operation;

const MIN: u64 = i64::MIN as u64;
const MINUS_1: u64 = u64::MAX;

/// The result of an operation on two registers.
fn result(op: Op, a: u64, b: u64) -> u64 {
    semantics::integer(&operation(op), 0, a, b)
}

/// The result of an operation with an immediate.
fn immediate(op: Op, a: u64, imm: i32) -> u64 {
    semantics::integer(&Inst { imm, ..operation(op) }, 0, a, 0)
}

#[test]
fn division_by_zero_and_overflow_have_results_and_do_not_trap() {
    for (op, a, b, expected) in [
        (Op::Div, 7, 0, MINUS_1),
        (Op::Divu, 7, 0, MINUS_1),
        (Op::Rem, 7, 0, 7),
        (Op::Remu, 7, 0, 7),
        (Op::Div, MIN, MINUS_1, MIN),
        (Op::Rem, MIN, MINUS_1, 0),
        (Op::Divw, 7, 1 << 32, MINUS_1),
        (Op::Divuw, 7, 1 << 32, MINUS_1),
        (Op::Remw, 0xffff_ffff_8000_0000, 0, 0xffff_ffff_8000_0000),
        (Op::Remuw, 0x8000_0000, 0, 0xffff_ffff_8000_0000),
        (Op::Divw, 0x8000_0000, MINUS_1, 0xffff_ffff_8000_0000),
        (Op::Remw, 0x8000_0000, MINUS_1, 0),
        (Op::Div, -7i64 as u64, 2, -3i64 as u64),
        (Op::Rem, -7i64 as u64, 2, MINUS_1),
    ] {
        assert_eq!(result(op, a, b), expected, "{} {a:#x}, {b:#x}", op.name());
    }
}

#[test]
fn operations_on_bits_are_those_of_the_manual() {
    for (op, a, b, expected) in [
        (Op::AddUw, MINUS_1, 1, 0x1_0000_0000),
        (Op::Sh3add, 3, MINUS_1, 23),
        (Op::Sh2addUw, MINUS_1, 4, 0x4_0000_0000),
        (Op::Andn, 0xff, 0x0f, 0xf0),
        (Op::Orn, 0, 0, MINUS_1),
        (Op::Xnor, 5, 5, MINUS_1),
        (Op::Clz, 0, 0, 64),
        (Op::Clzw, 1 << 40, 0, 32),
        (Op::Ctz, 0, 0, 64),
        (Op::Ctzw, MIN, 0, 32),
        (Op::Ctzw, 0xff_8000_0000, 0, 31),
        (Op::Cpopw, MINUS_1, 0, 32),
        (Op::Max, MINUS_1, 0, 0),
        (Op::Maxu, MINUS_1, 0, MINUS_1),
        (Op::Min, MINUS_1, 0, MINUS_1),
        (Op::SextB, 0x80, 0, 0xffff_ffff_ffff_ff80),
        (Op::ZextH, MINUS_1, 0, 0xffff),
        (Op::Rol, MIN, 65, 1),
        (Op::Rorw, 1, 33, 0xffff_ffff_8000_0000),
        (Op::Rolw, 0xdead_0000_4000_0000, 1, 0xffff_ffff_8000_0000),
        (Op::OrcB, 0x0100_8000_0000_0010, 0, 0xff00_ff00_0000_00ff),
        (Op::Rev8, 0x0102_0304_0506_0708, 0, 0x0807_0605_0403_0201),
        (Op::Bclr, MINUS_1, 64, MINUS_1 - 1),
        (Op::Bext, 4, 66, 1),
        (Op::Binv, 0, 63, MIN),
        (Op::Bset, 0, 127, MIN),
        (Op::CzeroEqz, 7, 0, 0),
        (Op::CzeroEqz, 7, MIN, 7),
        (Op::CzeroNez, 7, 0, 7),
        (Op::CzeroNez, 7, 1, 0),
    ] {
        assert_eq!(result(op, a, b), expected, "{} {a:#x}, {b:#x}", op.name());
    }
    assert_eq!(immediate(Op::SlliUw, MINUS_1, 32), 0xffff_ffff_0000_0000);
    assert_eq!((immediate(Op::Rori, 1, 1), immediate(Op::Roriw, 1, 31)), (MIN, 2));
    assert_eq!((immediate(Op::Bexti, MIN, 63), immediate(Op::Bclri, MINUS_1, 63)), (1, MIN - 1));
}

#[test]
fn operations_on_words_ignore_upper_halves_and_sign_extend() {
    for (op, a, b, expected) in [
        (Op::Addw, 0x7fff_ffff, 1, 0xffff_ffff_8000_0000),
        (Op::Subw, 0xdead_0000_0000_0000, 1, MINUS_1),
        (Op::Mulw, 0x1_0001_0000, 0x1_0000, 0),
        (Op::Sllw, 1, 31, 0xffff_ffff_8000_0000),
        (Op::Sllw, 3, 32, 3),
        (Op::Srlw, 0xffff_ffff_8000_0000, 31, 1),
        (Op::Sraw, 0x8000_0000, 33, 0xffff_ffff_c000_0000),
        (Op::Sll, 1, 64 + 3, 8),
        (Op::Sra, MIN, 63, MINUS_1),
    ] {
        assert_eq!(result(op, a, b), expected, "{} {a:#x}, {b:#x}", op.name());
    }
    assert_eq!(immediate(Op::Addiw, 0x7fff_ffff, 1), 0xffff_ffff_8000_0000);
    assert_eq!(immediate(Op::Sraiw, 0x1_8000_0000, 4), 0xffff_ffff_f800_0000);
    assert_eq!(immediate(Op::Srliw, 0xffff_ffff_8000_0000, 4), 0x0800_0000);
}

#[test]
fn immediates_are_sign_extended_before_an_unsigned_comparison() {
    assert_eq!((immediate(Op::Sltiu, 5, -1), immediate(Op::Slti, 5, -1)), (1, 0));
    assert_eq!(immediate(Op::Lui, 0, i32::MIN), 0xffff_ffff_8000_0000);
    assert_eq!(semantics::integer(&Inst { imm: -4096, ..operation(Op::Auipc) }, 0x1_0000, 0, 0), 0xf000);
}

#[test]
fn branches_compare_as_their_names_say() {
    for (op, a, b, taken) in [
        (Op::Blt, MINUS_1, 0, true),
        (Op::Bltu, MINUS_1, 0, false),
        (Op::Bge, 0, 0, true),
        (Op::Bgeu, 0, MINUS_1, false),
        (Op::Beq, 3, 3, true),
        (Op::Bne, 3, 3, false),
    ] {
        assert_eq!(semantics::taken(op, a, b), taken, "{}", op.name());
    }
}

#[test]
fn an_indirect_jump_clears_the_lowest_bit_and_links_behind_itself() {
    let long = Inst { imm: 3, ..operation(Op::Jalr) };
    assert_eq!(semantics::target(&long, 0x1000, 0x2000), 0x2002);
    assert_eq!(semantics::integer(&long, 0x1000, 0, 0), 0x1004);
    // c.jalr a0
    assert_eq!(semantics::integer(&decode(0x9502), 0x1000, 0, 0), 0x1002);
}

#[test]
fn loads_extend_as_their_names_say() {
    for (op, raw, expected) in [
        (Op::Lb, 0x80, 0xffff_ffff_ffff_ff80),
        (Op::Lbu, 0x80, 0x80),
        (Op::Lh, 0x8000, 0xffff_ffff_ffff_8000),
        (Op::Lhu, 0x8000, 0x8000),
        (Op::Lw, 0x8000_0000, 0xffff_ffff_8000_0000),
        (Op::Lwu, 0x8000_0000, 0x8000_0000),
        (Op::LrW, 0x8000_0000, 0xffff_ffff_8000_0000),
        (Op::Ld, MIN, MIN),
        (Op::Flw, 0x3f80_0000, 0xffff_ffff_3f80_0000),
    ] {
        assert_eq!(semantics::loaded(op, raw), expected, "{}", op.name());
    }
}

#[test]
fn control_registers_are_written_only_when_an_operand_says_so() {
    // csrrw a0, fcsr, a1; csrrs a0, fcsr, a1; csrrs a0, fcsr, x0; csrrci a0, fcsr, 3; csrrsi a0, fcsr, 0
    for (word, a, written) in [
        (0x0035_9573, 0xe0, Some(0xe0)),
        (0x0035_a573, 0x20, Some(0x6f)),
        (0x0030_2573, 0, None),
        (0x0031_f573, 0, Some(0x4c)),
        (0x0030_6573, 0, None),
    ] {
        assert_eq!(semantics::csr_written(&decode(word), 0x4f, a), written, "{word:#x}");
    }
}

proptest! {
    #[test]
    fn high_and_low_halves_make_the_whole_product(a: u64, b: u64) {
        let whole = |high: u64| (u128::from(high) << 64) | u128::from(result(Op::Mul, a, b));
        prop_assert_eq!(whole(result(Op::Mulhu, a, b)), u128::from(a) * u128::from(b));
        prop_assert_eq!(whole(result(Op::Mulh, a, b)) as i128, i128::from(a as i64) * i128::from(b as i64));
        prop_assert_eq!(whole(result(Op::Mulhsu, a, b)) as i128, i128::from(a as i64).wrapping_mul(i128::from(b)));
    }

    #[test]
    fn quotient_and_remainder_make_the_dividend(a: u64, b: u64, shift in 0..64u32) {
        let b = b >> shift;
        for (quotient, remainder) in [(Op::Div, Op::Rem), (Op::Divu, Op::Remu)] {
            let (q, r) = (result(quotient, a, b), result(remainder, a, b));
            prop_assert_eq!(q.wrapping_mul(b).wrapping_add(r), a);
        }
        prop_assert!(b == 0 || result(Op::Remu, a, b) < b);
        prop_assert!(b == 0 || (result(Op::Rem, a, b) as i64).unsigned_abs() < (b as i64).unsigned_abs());
    }

    #[test]
    fn an_operation_on_words_is_that_on_double_words_cut(a: u64, b: u64) {
        for (word, double) in [(Op::Addw, Op::Add), (Op::Subw, Op::Sub), (Op::Mulw, Op::Mul)] {
            prop_assert_eq!(result(word, a, b), result(double, a, b) as i32 as u64);
        }
    }

    #[test]
    fn atomics_on_words_are_those_on_double_words_of_extended_operands(old: u32, operand: u64) {
        let (signed, unsigned) = (|v: u64| v as i32 as u64, |v: u64| u64::from(v as u32));
        for (word, double, extend) in [
            (Op::AmoswapW, Op::AmoswapD, signed as fn(u64) -> u64),
            (Op::AmoaddW, Op::AmoaddD, signed),
            (Op::AmoxorW, Op::AmoxorD, signed),
            (Op::AmoandW, Op::AmoandD, signed),
            (Op::AmoorW, Op::AmoorD, signed),
            (Op::AmominW, Op::AmominD, signed),
            (Op::AmomaxW, Op::AmomaxD, signed),
            (Op::AmominuW, Op::AmominuD, unsigned),
            (Op::AmomaxuW, Op::AmomaxuD, unsigned),
        ] {
            let narrow = atomic::stored(word, u64::from(old), operand) as u32;
            prop_assert_eq!(narrow, atomic::stored(double, extend(u64::from(old)), extend(operand)) as u32, "{}", word.name());
        }
        prop_assert_eq!(atomic::fetched(4, u64::from(old)), old as i32 as u64);
    }
}
