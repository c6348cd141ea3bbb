//! Video instructions against the pseudocode of the ISA, written again with wide integers, on random and on awkward
//! operands; and on values worked by hand (PTX ISA 9.7.16, 9.7.17).

use crate::floats::{Operands, Unit};

const ROUNDS: usize = 4;

/// The value of an instruction on one set of operands.
fn value(instruction: &str, sources: &[u32]) -> u32 {
    let sources: Vec<[u64; 32]> = sources.iter().map(|v| [u64::from(*v); 32]).collect();
    Unit::new(instruction, &[32; 4][..=sources.len()]).run(&sources)[0] as u32
}

/// Compares an instruction on `d`, `a`, `b`, `c` with `expected`.
fn check(instruction: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let mut unit = Unit::new(instruction, &[32; 4]);
    let mut operands = Operands(instruction.len() as u64);
    for _ in 0..ROUNDS {
        let sources: Vec<[u64; 32]> = (0..3).map(|_| operands.lanes(word)).collect();
        let found = unit.run(&sources);
        for (lane, found) in found.iter().enumerate() {
            let [a, b, c] = [0, 1, 2].map(|i: usize| sources[i][lane] as u32);
            let wanted = expected(a, b, c);
            assert_eq!(*found as u32, wanted, "`{instruction}` of {a:#x}, {b:#x}, {c:#x}: {found:#x}, not {wanted:#x}");
        }
    }
}

/// Random bits, small numbers, and words whose parts are at the ends of their ranges.
fn word(operands: &mut Operands) -> u64 {
    let random = operands.bits();
    match random & 7 {
        0 => random >> 60,
        1 => 0xffff_ffff - (random >> 60),
        2 => 0x7fff_ffff + (random >> 63),
        3 => [0x7f80_00ff, 0x8000_7fff, 0x8080_7f7f, 0xff00_ff01][(random >> 60) as usize & 3],
        _ => random >> 32,
    }
}

const PARTS: [(&str, u32, u32); 7] =
    [("", 0, 32), (".b0", 0, 8), (".b1", 8, 8), (".b2", 16, 8), (".b3", 24, 8), (".h0", 0, 16), (".h1", 16, 16)];

fn extend(value: u32, first: u32, bits: u32, signed: bool) -> i128 {
    let v = i128::from(value >> first) & ((1 << bits) - 1);
    if signed && v >> (bits - 1) != 0 { v - (1 << bits) } else { v }
}

fn clamp(v: i128, bits: u32, signed: bool) -> i128 {
    if signed { v.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { v.clamp(0, (1 << bits) - 1) }
}

/// The first operation of a mnemonic such as `vadd` or `vset.lt`.
fn operate(name: &str, a: i128, b: i128) -> i128 {
    match name {
        "vadd" => a + b,
        "vsub" => a - b,
        "vabsdiff" => (a - b).abs(),
        "vavrg" if a + b >= 0 => (a + b + 1) / 2,
        "vavrg" => (a + b).div_euclid(2),
        "vmin" => a.min(b),
        "vmax" => a.max(b),
        "vshl.clamp" => a * (1 << b.min(32)),
        "vshl.wrap" => a * (1 << (b % 32)),
        "vshr.clamp" => a.div_euclid(1 << b.min(32)),
        "vshr.wrap" => a.div_euclid(1 << (b % 32)),
        "vset.eq" => i128::from(a == b),
        "vset.ne" => i128::from(a != b),
        "vset.lt" => i128::from(a < b),
        "vset.le" => i128::from(a <= b),
        "vset.gt" => i128::from(a > b),
        "vset.ge" => i128::from(a >= b),
        _ => panic!("{name}"),
    }
}

/// `v` as a signed integer of 33 bits.
fn s33(v: i128) -> i128 {
    let low = v & ((1 << 33) - 1);
    if low >> 32 != 0 { low - (1 << 33) } else { low }
}

const SIGNS: [(&str, bool); 2] = [("u32", false), ("s32", true)];

/// Every combination of types, saturation and second operation, with parts that change from one to the next.
fn scalar(name: &str) {
    let (opcode, mode) = name.split_once('.').map_or((name, String::new()), |(o, m)| (o, format!(".{m}")));
    let compares = opcode == "vset";
    let shifts = opcode.starts_with("vsh");
    let mut n = 0;
    for (dtype, signed) in SIGNS.into_iter().filter(|d| !compares || d.0 == "u32") {
        for (atype, a_signed) in SIGNS {
            for (btype, b_signed) in SIGNS.into_iter().filter(|b| !shifts || !b.1) {
                for sat in [false, true].into_iter().filter(|sat| !compares || !sat) {
                    for second in ["", ".add", ".min", ".max", "merge"] {
                        n += 1;
                        let [a_part, b_part] = [n % 7, (n / 2 + 3) % 7].map(|i: usize| PARTS[i]);
                        let d_part = if second == "merge" { PARTS[1 + n % 6] } else { PARTS[0] };
                        let types = if compares { String::new() } else { format!(".{dtype}") };
                        let (op2, tail) = match second {
                            "merge" => ("", ", c"),
                            "" => ("", ""),
                            other => (other, ", c"),
                        };
                        let saturates = if sat { ".sat" } else { "" };
                        let instruction = format!(
                            "{opcode}{types}.{atype}.{btype}{saturates}{mode}{op2} d{}, a{}, b{}{tail}",
                            d_part.0, a_part.0, b_part.0
                        );
                        let reference = |a: u32, b: u32, c: u32| {
                            let a = extend(a, a_part.1, a_part.2, a_signed);
                            let b = extend(b, b_part.1, b_part.2, b_signed);
                            let exact = operate(name, a, b);
                            let t = if sat { clamp(exact, d_part.2, signed) } else { s33(exact) };
                            let wide = extend(c, 0, 32, signed);
                            match second {
                                "" => t as u32,
                                ".add" => (t + wide) as u32,
                                ".min" => t.min(wide) as u32,
                                ".max" => t.max(wide) as u32,
                                _ => {
                                    let ones = ((1u64 << d_part.2) - 1) as u32;
                                    c & !(ones << d_part.1) | (t as u32 & ones) << d_part.1
                                }
                            }
                        };
                        if tail.is_empty() {
                            // No third operand: the test's `c` is not declared then.
                            let mut unit = Unit::new(&instruction, &[32; 3]);
                            let mut operands = Operands(3);
                            for _ in 0..ROUNDS {
                                let sources = [operands.lanes(word), operands.lanes(word)];
                                let found = unit.run(&sources);
                                for i in 0..32 {
                                    let (a, b) = (sources[0][i] as u32, sources[1][i] as u32);
                                    let wanted = reference(a, b, 0);
                                    assert_eq!(found[i] as u32, wanted, "`{instruction}` of {a:#x}, {b:#x}");
                                }
                            }
                        } else {
                            check(&instruction, reference);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn scalar_video_instructions_are_those_of_the_pseudocode() {
    for name in ["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl.clamp", "vshl.wrap", "vshr.clamp", "vshr.wrap"] {
        scalar(name);
    }
    for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
        scalar(&format!("vset.{cmp}"));
    }
}

#[test]
fn scalar_video_instructions_extend_clamp_and_merge() {
    // -1 (byte 0, signed) + 0x8000 (upper half, unsigned).
    assert_eq!(value("vadd.s32.s32.u32 d, a.b0, b.h1", &[0x1234_56ff, 0x8000_1234]), 0x7fff);
    // 2^32 - 1 + 1 is too large for 32 bits.
    assert_eq!(value("vadd.u32.u32.u32 d, a, b", &[u32::MAX, 1]), 0);
    assert_eq!(value("vadd.u32.u32.u32.sat d, a, b", &[u32::MAX, 1]), u32::MAX);
    assert_eq!(value("vsub.u32.u32.u32.sat d, a, b", &[1, 2]), 0);
    // 200 - (-100) = 300 in a signed byte is 127; the other bytes are those of c.
    assert_eq!(value("vsub.s32.u32.s32.sat d.b2, a.b0, b.b0, c", &[200, 0x9c, 0x1122_3344]), 0x117f_3344);
    // The sum of absolute differences, as motion estimation has it.
    assert_eq!(value("vabsdiff.u32.u32.u32.add d, a.b3, b.b0, c", &[0x0a00_0000, 0x20, 100]), 122);
    // Negative amounts of shifts do not exist; 32 clears all but a sign.
    assert_eq!(value("vshl.u32.u32.u32.clamp d, a, b", &[1, 40]), 0);
    assert_eq!(value("vshl.u32.u32.u32.wrap d, a, b", &[1, 40]), 256);
    assert_eq!(value("vshr.s32.s32.u32.clamp d, a, b", &[0x8000_0000, 99]), u32::MAX);
    // -1 < 1 signed, not unsigned; counted up in c.
    assert_eq!(value("vset.s32.s32.lt.add d, a, b, c", &[u32::MAX, 1, 5]), 6);
    assert_eq!(value("vset.u32.u32.lt.add d, a, b, c", &[u32::MAX, 1, 5]), 5);
}

#[test]
fn vmad_is_that_of_the_pseudocode() {
    for (scale, shift) in [("", 0), (".shr7", 7), (".shr15", 15)] {
        for (atype, a_signed) in SIGNS {
            for (btype, b_signed) in SIGNS {
                for sat in ["", ".sat"] {
                    for (mode, [ma, mb, mc]) in [
                        ("", [""; 3]),
                        (".po", [""; 3]),
                        ("", ["-", "", ""]),
                        ("", ["-", "-", "-"]),
                        ("", ["", "", "-"]),
                    ] {
                        let instruction =
                            format!("vmad.s32.{atype}.{btype}{mode}{sat}{scale} d, {ma}a.h1, {mb}b.b1, {mc}c");
                        let (minus_product, minus_c) = (ma != mb, mc == "-");
                        let signed = a_signed || b_signed || minus_product || minus_c;
                        check(&instruction, |a, b, c| {
                            let product = extend(a, 16, 16, a_signed) * extend(b, 8, 8, b_signed);
                            let product = if minus_product { -product } else { product };
                            // c is complemented as a word, extended, and then one more.
                            let c = if minus_c { extend(!c, 0, 32, true) + 1 } else { extend(c, 0, 32, signed) };
                            let sum = product + c + i128::from(mode == ".po");
                            let result = sum >> shift;
                            if sat.is_empty() { result as u32 } else { clamp(result, 32, signed) as u32 }
                        });
                    }
                }
            }
        }
    }
    // 3 * 1 + 4 + 1; and (255 * 255 + 1) / 128.
    assert_eq!(value("vmad.u32.u32.u32.po d, a, b, c", &[3, 1, 4]), 8);
    assert_eq!(value("vmad.u32.u32.u32.po.shr7 d, a.b0, b.b0, c", &[255, 255, 0]), 508);
    // -(5 * 7) + 3, and the ends of the range.
    assert_eq!(value("vmad.s32.u32.u32 d, -a, b, c", &[5, 7, 3]), -32i32 as u32);
    assert_eq!(value("vmad.s32.s32.s32.sat d, a, b, c", &[0x8000_0000, 0x8000_0000, 0]), 0x7fff_ffff);
    assert_eq!(value("vmad.s32.s32.s32.sat d, a, -b, c", &[0x8000_0000, 0x8000_0000, 0]), 0x8000_0000);
}

/// A SIMD instruction on elements of `bits` bits, with selectors (element numbers, lowest first) and a mask.
fn simd(name: &str, bits: u32, a_select: &[u32], b_select: &[u32], mask: u32) {
    let n = 32 / bits;
    let letter = if n == 2 { 'h' } else { 'b' };
    let (opcode, mode) = name.split_once('.').map_or((name, String::new()), |(o, m)| (o, format!(".{m}")));
    let compares = opcode == "vset";
    let digits = |select: &[u32]| select.iter().rev().map(u32::to_string).collect::<String>();
    let named: String = (0..n).rev().filter(|i| mask >> i & 1 != 0).map(|i| i.to_string()).collect();
    let element =
        |a: u32, b: u32, at: u32, signed: bool| extend(if at < n { a } else { b }, at % n * bits, bits, signed);
    for (dtype, signed) in SIGNS.into_iter().filter(|d| !compares || d.0 == "u32") {
        for (atype, a_signed) in SIGNS {
            for (btype, b_signed) in SIGNS {
                for how in ["", ".sat", ".add"].into_iter().filter(|how| !compares || *how != ".sat") {
                    let types = if compares { String::new() } else { format!(".{dtype}") };
                    let instruction = format!(
                        "{opcode}{n}{types}.{atype}.{btype}{mode}{how} d.{letter}{named}, a.{letter}{}, b.{letter}{}, c",
                        digits(a_select),
                        digits(b_select)
                    );
                    check(&instruction, |a, b, c| {
                        let mut d = if how == ".add" { i128::from(c) } else { 0 };
                        for i in 0..n {
                            let x = element(a, b, a_select[i as usize], a_signed);
                            let y = element(a, b, b_select[i as usize], b_signed);
                            let exact = operate(name, x, y);
                            let t = if how == ".sat" { clamp(exact, bits, signed) } else { exact };
                            if how == ".add" {
                                d += if mask >> i & 1 != 0 { t } else { 0 };
                            } else {
                                let t = if mask >> i & 1 != 0 { t } else { extend(c, i * bits, bits, false) };
                                d |= (t & ((1 << bits) - 1)) << (i * bits);
                            }
                        }
                        d as u32
                    });
                }
            }
        }
    }
}

#[test]
fn simd_video_instructions_are_those_of_the_pseudocode() {
    for name in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset.lt", "vset.eq", "vset.ge"] {
        simd(name, 16, &[0, 1], &[2, 3], 3);
        simd(name, 16, &[3, 0], &[1, 1], 2);
        simd(name, 8, &[0, 1, 2, 3], &[4, 5, 6, 7], 15);
        simd(name, 8, &[7, 0, 6, 1], &[5, 5, 3, 4], 5);
    }
    for cmp in ["ne", "le", "gt"] {
        simd(&format!("vset.{cmp}"), 8, &[0, 1, 2, 3], &[4, 5, 6, 7], 15);
    }
}

#[test]
fn simd_video_instructions_select_mask_and_accumulate() {
    // Without selectors: element by element, all of them.
    assert_eq!(value("vadd4.u32.u32.u32 d, a, b, c", &[0x01ff_0203, 0x0102_0304, 9]), 0x0201_0507);
    assert_eq!(value("vadd4.u32.u32.u32.sat d, a, b, c", &[0x01ff_0203, 0x0102_0304, 9]), 0x02ff_0507);
    // -1 + -1 is below 0: rounded towards minus infinity. 1 + 2 is rounded up.
    assert_eq!(value("vavrg2.s32.s32.s32 d, a, b, c", &[0xffff_0001, 0xfffe_0002, 0]), 0xfffe_0002);
    // The differences of four bytes, added to a sum.
    assert_eq!(value("vabsdiff4.u32.u32.u32.add d, a, b, c", &[0x0102_0304, 0x0403_0201, 1000]), 1008);
    // Only the upper half is written, from element 0 of a and element 3, b's upper one.
    assert_eq!(value("vmax2.u32.u32.u32 d.h1, a.h00, b.h33, c", &[5, 0x0007_0000, 0x1111_2222]), 0x0007_2222);
    assert_eq!(value("vset4.u32.u32.ne d, a, b, c", &[0x0102_0304, 0x0102_0004, 0xffff_ffff]), 0x0000_0100);
}
