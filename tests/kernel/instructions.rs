//! Every register-to-register instruction that is supported, one line a case (`cases.rs` says how to read one).
//! Conversions are in `conversions.rs`. Meaning: PTX ISA 8.x, section 9.7.
//!
//! Over 500 lines: a case a line, by table.

use crate::cases::{M1, MIN32, MIN64, W, check, d, f};

#[test]
fn integer_arithmetic_of_32_bits() {
    check(
        "32 = 32, 32",
        &[
            ("add.s32 d, a, b", &[W, 2], 1),
            ("add.u32 d, a, -3", &[1, 0], 0xffff_fffe),
            ("add.sat.s32 d, a, b", &[0x7fff_ffff, 1], 0x7fff_ffff),
            ("sub.sat.s32 d, a, b", &[MIN32, 1], MIN32),
            ("sub.s32 d, a, b", &[1, 2], W),
            ("mul.lo.s32 d, a, b", &[0x1_0001, 0x1_0001], 0x2_0001),
            ("mul.hi.s32 d, a, b", &[W, 2], W),
            ("mul.hi.u32 d, a, b", &[W, 2], 1),
            ("mul24.lo.s32 d, a, b", &[0xff_ffff, 5], 0xffff_fffb),
            ("mul24.lo.u32 d, a, b", &[0xff00_0003, 5], 15),
            ("mul24.hi.u32 d, a, b", &[0x80_0000, 0x80_0000], 0x4000_0000),
            ("mul24.hi.s32 d, a, b", &[0xff_ffff, 1], W),
            ("div.s32 d, a, b", &[0xffff_fff9, 2], 0xffff_fffd),
            ("div.s32 d, a, b", &[MIN32, W], MIN32),
            ("div.u32 d, a, b", &[0xffff_fff9, 2], 0x7fff_fffc),
            ("div.u32 d, a, b", &[7, 0], W),
            ("rem.s32 d, a, b", &[0xffff_fff9, 2], W),
            ("rem.s32 d, a, b", &[MIN32, W], 0),
            ("rem.u32 d, a, b", &[0xffff_fff9, 4], 1),
            ("min.s32 d, a, b", &[W, 1], W),
            ("min.u32 d, a, b", &[W, 1], 1),
            ("max.s32 d, a, b", &[W, 1], 1),
            ("max.u32 d, a, b", &[W, 1], W),
            ("abs.s32 d, a", &[0xffff_fffb, 0], 5),
            ("abs.s32 d, a", &[MIN32, 0], MIN32),
            ("neg.s32 d, a", &[5, 0], 0xffff_fffb),
            ("popc.b32 d, a", &[0xf0f0, 0], 8),
            ("clz.b32 d, a", &[1, 0], 31),
            ("clz.b32 d, a", &[0, 0], 32),
            ("brev.b32 d, a", &[1, 0], MIN32),
            ("bfind.u32 d, a", &[0x100, 0], 8),
            ("bfind.u32 d, a", &[0, 0], W),
            ("bfind.s32 d, a", &[0xffff_ff00, 0], 7),
            ("bfind.shiftamt.u32 d, a", &[0x100, 0], 23),
            ("bfind.shiftamt.s32 d, a", &[W, 0], W),
            ("bmsk.clamp.b32 d, a, b", &[4, 8], 0xff0),
            ("bmsk.clamp.b32 d, a, b", &[28, 40], 0xf000_0000),
            ("bmsk.clamp.b32 d, a, b", &[32, 4], 0),
            ("bmsk.wrap.b32 d, a, b", &[36, 33], 0x10),
        ],
    );
    check(
        "32 = 32, 32, 32",
        &[
            ("mad.lo.s32 d, a, b, c", &[3, 4, 5], 17),
            ("mad.hi.s32 d, a, b, c", &[W, 2, 5], 4),
            ("mad.hi.u32 d, a, b, c", &[W, 2, 5], 6),
            ("mad.hi.sat.s32 d, a, b, c", &[0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff], 0x7fff_ffff),
            ("mad24.lo.s32 d, a, b, c", &[0xff_ffff, 5, 6], 1),
            ("mad24.hi.sat.s32 d, a, b, c", &[0x7f_ffff, 0x7f_ffff, 0x7fff_ffff], 0x7fff_ffff),
            ("sad.s32 d, a, b, c", &[W, 4, 10], 15),
            ("sad.u32 d, a, b, c", &[W, 4, 10], 5),
            ("dp4a.s32.s32 d, a, b, c", &[0xff01_02fe, 0x0203_04ff, 100], 100 + 8 + 3 + 2 - 2),
            ("dp4a.u32.u32 d, a, b, c", &[0xff00_0000, 0xff00_0000, 1], 255 * 255 + 1),
            ("dp4a.u32.s32 d, a, b, c", &[0xff, 0xff, 0], 0xffff_ff01),
            ("dp2a.lo.s32.s32 d, a, b, c", &[0xffff_0003, 0x0807_0605, 1], 10),
            ("dp2a.hi.u32.u32 d, a, b, c", &[0x0001_0003, 0x0807_0605, 1], 3 * 7 + 8 + 1),
        ],
    );
}

#[test]
fn integer_arithmetic_of_64_bits() {
    check(
        "64 = 64, 64",
        &[
            ("add.s64 d, a, b", &[M1, 2], 1),
            ("sub.u64 d, a, b", &[1, 2], M1),
            ("mul.lo.s64 d, a, b", &[1 << 33, 1 << 31], 0),
            ("mul.hi.u64 d, a, b", &[M1, M1], M1 - 1),
            ("mul.hi.s64 d, a, b", &[M1, M1], 0),
            ("div.s64 d, a, b", &[M1 - 8, 2], M1 - 3),
            ("div.u64 d, a, b", &[M1, 1 << 32], W),
            ("div.u64 d, a, b", &[1, 0], M1),
            ("div.s64 d, a, b", &[MIN64, M1], MIN64),
            ("rem.s64 d, a, b", &[M1 - 8, 2], M1),
            ("rem.u64 d, a, b", &[M1, 16], 15),
            ("min.s64 d, a, b", &[M1, 1], M1),
            ("min.u64 d, a, b", &[M1, 1], 1),
            ("max.s64 d, a, b", &[M1, 1], 1),
            ("max.u64 d, a, b", &[M1, 1], M1),
            ("abs.s64 d, a", &[M1 - 4, 0], 5),
            ("neg.s64 d, a", &[1, 0], M1),
            ("brev.b64 d, a", &[2, 0], 1 << 62),
            ("and.b64 d, a, b", &[0xff00, 0x0ff0], 0x0f00),
            ("or.b64 d, a, b", &[0xff00, 0x0ff0], 0xfff0),
            ("xor.b64 d, a, b", &[0xff00, 0x0ff0], 0xf0f0),
            ("not.b64 d, a", &[0, 0], M1),
            ("cnot.b64 d, a", &[0, 0], 1),
        ],
    );
    check(
        "64 = 64, 64, 64",
        &[
            ("mad.lo.s64 d, a, b, c", &[3, M1, 5], 2),
            ("mad.hi.u64 d, a, b, c", &[M1, 2, 5], 6),
            ("mad.hi.s64 d, a, b, c", &[M1, 2, 5], 4),
            ("sad.s64 d, a, b, c", &[M1, 4, 10], 15),
            ("sad.u64 d, a, b, c", &[3, 4, 10], 11),
        ],
    );
    check(
        "64 = 32, 32",
        &[
            ("mul.wide.s32 d, a, b", &[W, 2], M1 - 1),
            ("mul.wide.u32 d, a, b", &[W, 2], 0x1_ffff_fffe),
            ("mul.wide.u32 d, a, 8", &[MIN32, 0], 0x4_0000_0000),
        ],
    );
    check(
        "64 = 32, 32, 64",
        &[("mad.wide.s32 d, a, b, c", &[W, 2, 3], 1), ("mad.wide.u32 d, a, b, c", &[W, 2, 3], 0x2_0000_0001)],
    );
    check("32 = 64", &[("popc.b64 d, a", &[M1], 64), ("clz.b64 d, a", &[1], 63), ("bfind.u64 d, a", &[1 << 40], 40)]);
}

#[test]
fn integer_arithmetic_of_16_bits_ignores_the_upper_half_of_its_registers() {
    check(
        "16 = 16, 16",
        &[
            ("add.s16 d, a, b", &[0xffff, 2], 1),
            ("sub.u16 d, a, b", &[1, 2], 0xffff),
            ("mul.lo.u16 d, a, b", &[0x101, 0x101], 0x0201),
            ("mul.hi.u16 d, a, b", &[0xffff, 2], 1),
            ("mul.hi.s16 d, a, b", &[0xffff, 2], 0xffff),
            ("div.s16 d, a, b", &[0xfff9, 2], 0xfffd),
            ("div.u16 d, a, b", &[0xfff9, 2], 0x7ffc),
            ("rem.s16 d, a, b", &[0xfff9, 2], 0xffff),
            ("rem.u16 d, a, b", &[0xfff9, 4], 1),
            ("min.s16 d, a, b", &[0xffff, 1], 0xffff),
            ("min.u16 d, a, b", &[0xffff, 1], 1),
            ("max.s16 d, a, b", &[0xffff, 1], 1),
            ("max.u16 d, a, b", &[0xffff, 1], 0xffff),
            ("abs.s16 d, a", &[0xfffb, 0], 5),
            ("neg.s16 d, a", &[1, 0], 0xffff),
            ("and.b16 d, a, b", &[0xff0, 0xff], 0xf0),
            ("or.b16 d, a, b", &[0xf00, 0xff], 0xfff),
            ("xor.b16 d, a, b", &[0xff0, 0xff], 0xf0f),
            ("not.b16 d, a", &[0xff, 0], 0xff00),
            ("cnot.b16 d, a", &[0, 0], 1),
            ("mad.lo.u16 d, a, b, 7", &[3, 4], 19),
            ("mad.hi.u16 d, a, b, 7", &[0xffff, 2], 8),
            ("sad.s16 d, a, b, 7", &[0xffff, 4], 12),
            ("sad.u16 d, a, b, 7", &[0xffff, 0xfffe], 8),
        ],
    );
    check(
        "16 = 16, 32",
        &[
            ("shl.b16 d, a, b", &[0x8001, 1], 2),
            ("shl.b16 d, a, b", &[0x8001, 16], 0),
            ("shr.u16 d, a, b", &[0x8000, 15], 1),
            ("shr.u16 d, a, b", &[0x8000, 16], 0),
            ("shr.s16 d, a, b", &[0x8000, 15], 0xffff),
            ("shr.s16 d, a, b", &[0x8000, 99], 0xffff),
            ("shr.b16 d, a, b", &[0x8000, 4], 0x800),
        ],
    );
    check(
        "32 = 16, 16",
        &[
            ("mul.wide.u16 d, a, b", &[0xffff, 2], 0x1_fffe),
            ("mul.wide.s16 d, a, b", &[0xffff, 2], 0xffff_fffe),
            ("mad.wide.u16 d, a, b, 5", &[0xffff, 2], 0x2_0003),
            ("mad.wide.s16 d, a, b, 5", &[0xffff, 2], 3),
        ],
    );
}

#[test]
fn logic_shifts_and_bit_fields() {
    check(
        "32 = 32, 32",
        &[
            ("and.b32 d, a, b", &[0xff0, 0xff], 0xf0),
            ("or.b32 d, a, b", &[0xf00, 0xff], 0xfff),
            ("xor.b32 d, a, b", &[0xff0, 0xff], 0xf0f),
            ("not.b32 d, a", &[0xff, 0], 0xffff_ff00),
            ("cnot.b32 d, a", &[0, 0], 1),
            ("cnot.b32 d, a", &[9, 0], 0),
            ("shl.b32 d, a, b", &[1, 31], MIN32),
            ("shl.b32 d, a, b", &[1, 32], 0),
            ("shr.u32 d, a, b", &[MIN32, 31], 1),
            ("shr.u32 d, a, b", &[MIN32, 64], 0),
            ("shr.s32 d, a, b", &[MIN32, 31], W),
            ("shr.s32 d, a, b", &[MIN32, 1000], W),
            ("shr.b32 d, a, b", &[MIN32, 4], 0x0800_0000),
        ],
    );
    check(
        "64 = 64, 32",
        &[
            ("shl.b64 d, a, b", &[1, 63], MIN64),
            ("shl.b64 d, a, b", &[1, 64], 0),
            ("shr.u64 d, a, b", &[MIN64, 63], 1),
            ("shr.s64 d, a, b", &[MIN64, 63], M1),
            ("shr.s64 d, a, b", &[MIN64, 200], M1),
        ],
    );
    check(
        "32 = 32, 32, 32",
        &[
            ("bfe.u32 d, a, b, c", &[0xabcd_1234, 8, 8], 0x12),
            ("bfe.s32 d, a, b, c", &[0xabcd_1234, 28, 4], 0xffff_fffa),
            ("bfe.s32 d, a, b, c", &[0xabcd_1234, 28, 10], 0xffff_fffa),
            ("bfe.u32 d, a, b, c", &[0xabcd_1234, 28, 10], 0xa),
            ("bfe.u32 d, a, b, c", &[W, 5, 0], 0),
            ("bfe.u32 d, a, b, c", &[W, 40, 5], 0),
            ("bfe.s32 d, a, b, c", &[W, 40, 5], W),
            ("lop3.b32 d, a, b, c, 0x80", &[0xf0, 0xcc, 0xaa], 0x80),
            ("lop3.b32 d, a, b, c, 0x96", &[0xf0, 0xcc, 0xaa], 0x96),
            ("lop3.b32 d, a, b, c, 0x1e", &[0xf0, 0xcc, 0xaa], 0x1e),
            ("lop3.b32 d, a, b, c, 255", &[0, 0, 0], W),
            ("setp.eq.u32 p1, 0, 0; lop3.and.b32 d|p2, a, b, c, 0x80, p1; @p2 add.u32 d, d, 1", &[6, 3, 7], 3),
            ("setp.eq.u32 p1, 0, 0; lop3.and.b32 d|p2, a, b, c, 0x80, p1; @p2 add.u32 d, d, 1", &[4, 3, 7], 0),
            ("setp.eq.u32 p1, 0, 1; lop3.and.b32 d|p2, a, b, c, 0x80, p1; @p2 add.u32 d, d, 1", &[6, 3, 7], 2),
            ("setp.eq.u32 p1, 0, 1; lop3.or.b32 d|p2, a, b, c, 0x80, p1; @p2 add.u32 d, d, 1", &[6, 3, 7], 3),
            ("setp.eq.u32 p1, 0, 0; lop3.or.b32 d|p2, a, b, c, 0x80, p1; @p2 add.u32 d, d, 1", &[4, 3, 7], 1),
            (
                "mov.u32 d, 9; setp.eq.u32 p1, 0, 1; lop3.or.b32 _|p2, a, b, c, 0x80, p1; @p2 add.u32 d, d, 1",
                &[6, 3, 7],
                10,
            ),
            ("prmt.b32 d, a, b, c", &[0x0302_0100, 0x0706_0504, 0x7531], 0x0705_0301),
            ("prmt.b32 d, a, b, c", &[0x80, 0, 0x8888], W),
            ("prmt.b32.f4e d, a, b, c", &[0x0302_0100, 0x0706_0504, 1], 0x0403_0201),
            ("prmt.b32.b4e d, a, b, c", &[0x0302_0100, 0x0706_0504, 1], 0x0607_0001),
            ("prmt.b32.rc8 d, a, b, c", &[0x0302_0100, 0, 2], 0x0202_0202),
            ("prmt.b32.ecl d, a, b, c", &[0x0302_0100, 0, 2], 0x0302_0202),
            ("prmt.b32.ecr d, a, b, c", &[0x0302_0100, 0, 2], 0x0202_0100),
            ("prmt.b32.rc16 d, a, b, c", &[0x0302_0100, 0, 1], 0x0302_0302),
            ("shf.l.wrap.b32 d, a, b, c", &[0x8000_0000, 1, 33], 3),
            ("shf.l.clamp.b32 d, a, b, c", &[0x8000_0000, 1, 33], 0x8000_0000),
            ("shf.r.wrap.b32 d, a, b, c", &[2, 1, 33], 0x8000_0001),
            ("shf.r.clamp.b32 d, a, b, c", &[2, 7, 40], 7),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 0, 2], 3),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 3, 1], 3),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 5, W], 5),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 5, 0xffff_fffe], 3),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 5, 0], 5),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 4, 0], W),
            ("fns.b32 d, a, b, c", &[0b1010_1010, 0, 5], W),
        ],
    );
    check(
        "32 = 32, 32, 32, 32",
        &[
            ("bfi.b32 d, a, b, c, e", &[0x5, W, 4, 4], 0xffff_ff5f),
            ("bfi.b32 d, a, b, c, e", &[0x5, 0, 30, 8], 0x4000_0000),
            ("bfi.b32 d, a, b, c, e", &[0x5, 7, 32, 8], 7),
        ],
    );
    check(
        "64 = 64, 32, 32",
        &[("bfe.u64 d, a, b, c", &[0xabcd_0000_0000, 32, 16], 0xabcd), ("bfe.s64 d, a, b, c", &[MIN64, 60, 4], M1 - 7)],
    );
    check("64 = 64, 64, 32, 32", &[("bfi.b64 d, a, b, c, e", &[0xff, 0, 56, 4], 0xf << 56)]);
}

#[test]
fn pairs_of_16_bits() {
    check(
        "32 = 32, 32",
        &[
            ("add.u16x2 d, a, b", &[0xffff_0001, 0x0002_ffff], 0x0001_0000),
            ("add.s16x2 d, a, b", &[0x7fff_8000, 0x0001_8000], 0x8000_0000),
            ("min.u16x2 d, a, b", &[0x8000_7fff, 0x0001_8000], 0x0001_7fff),
            ("min.s16x2 d, a, b", &[0x8000_7fff, 0x0001_8000], 0x8000_8000),
            ("max.u16x2 d, a, b", &[0x8000_7fff, 0x0001_8000], 0x8000_8000),
            ("max.s16x2 d, a, b", &[0x8000_7fff, 0x0001_8000], 0x0001_7fff),
            ("min.relu.s16x2 d, a, b", &[0x8000_0005, 0x0001_0003], 0x0000_0003),
            ("max.relu.s16x2 d, a, b", &[0xffff_fffe, 0xfff0_0003], 0x0000_0003),
            ("min.relu.s32 d, a, b", &[0xffff_ffff, 5], 0),
            ("min.s32.relu d, a, b", &[7, 5], 5),
            ("max.relu.s32 d, a, b", &[0xffff_ffff, 0xffff_fff0], 0),
        ],
    );
}

#[test]
fn fields_are_extended_from_any_bit() {
    check(
        "32 = 32, 32",
        &[
            ("szext.wrap.s32 d, a, b", &[0x8f, 8], 0xffff_ff8f),
            ("szext.wrap.u32 d, a, b", &[0x8f8f, 8], 0x8f),
            ("szext.wrap.s32 d, a, b", &[0x8f, 7], 0xf),
            ("szext.wrap.s32 d, a, b", &[0x8f, 0], 0),
            ("szext.wrap.u32 d, a, b", &[0x8f, 36], 0xf),
            ("szext.clamp.u32 d, a, b", &[0x8000_008f, 36], 0x8000_008f),
            ("szext.clamp.s32 d, a, b", &[0x8000_008f, W], 0x8000_008f),
            ("szext.clamp.s32 d, a, b", &[0x8f, 4], W),
        ],
    );
}

#[test]
fn integers_are_clamped_and_packed() {
    check(
        "32 = 32, 32",
        &[
            ("cvt.pack.sat.u16.s32 d, a, b", &[70_000, W], 0xffff_0000),
            ("cvt.pack.sat.s16.s32 d, a, b", &[70_000, 0xffff_0000], 0x7fff_8000),
            ("cvt.pack.sat.s16.s32 d, a, b", &[1, 2], 0x0001_0002),
        ],
    );
    check(
        "32 = 32, 32, 32",
        &[
            ("cvt.pack.sat.u8.s32.b32 d, a, b, c", &[300, W, 0x89ab_cdef], 0xcdef_ff00),
            ("cvt.pack.sat.s8.s32.b32 d, a, b, c", &[300, 0xffff_0000, 0x89ab_cdef], 0xcdef_7f80),
            ("cvt.pack.sat.u4.s32.b32 d, a, b, c", &[16, 3, 0x89ab_cdef], 0xabcd_eff3),
            ("cvt.pack.sat.s4.s32.b32 d, a, b, c", &[16, W, 0x89ab_cdef], 0xabcd_ef7f),
            ("cvt.pack.sat.u2.s32.b32 d, a, b, c", &[4, 1, 0x89ab_cdef], 0x9abc_defd),
            ("cvt.pack.sat.s2.s32.b32 d, a, b, c", &[4, 0xffff_0000, 0x89ab_cdef], 0x9abc_def6),
        ],
    );
}

#[test]
fn extended_precision_carries_and_borrows() {
    check(
        "32 = 32, 32, 32",
        &[
            ("add.cc.u32 r1, a, b; addc.u32 d, c, 0", &[W, 1, 5], 6),
            ("add.cc.u32 r1, a, b; addc.u32 d, c, 0", &[W - 1, 1, 5], 5),
            ("add.cc.u32 r1, a, b; addc.cc.u32 r2, c, c; addc.u32 d, 0, 0", &[W, W, W], 1),
            ("sub.cc.u32 r1, a, b; subc.u32 d, c, 0", &[0, 1, 5], 4),
            ("sub.cc.s32 r1, a, b; subc.cc.s32 r2, c, 0; subc.s32 d, 0, 0", &[0, 1, 0], W),
            ("mad.lo.cc.u32 r1, a, b, c; madc.hi.u32 d, a, b, 0", &[W, W, W], W),
            // The flag is a carry: a subtraction that borrows clears it, and one after an addition takes it so.
            ("sub.cc.u32 r1, a, b; addc.u32 d, 0, 0", &[4, 5, 0], 0),
            ("sub.cc.u32 r1, a, b; addc.u32 d, 0, 0", &[5, 5, 0], 1),
            ("add.cc.u32 r1, a, b; subc.u32 d, c, 1", &[W, 1, 5], 4),
            ("add.cc.u32 r1, a, b; subc.u32 d, c, 1", &[1, 1, 5], 3),
            ("sub.cc.u32 r1, a, b; madc.lo.u32 d, c, 2, 1", &[1, 0, 5], 12),
            ("sub.cc.u32 r1, a, b; subc.cc.u32 r2, c, c; addc.u32 d, 0, 0", &[0, 1, 5], 0),
            ("mad.hi.cc.u32 r1, a, b, c; addc.u32 d, 0, 0", &[W, W, 2], 1),
            ("mad.lo.cc.u32 r1, a, b, c; madc.lo.cc.u32 r2, a, 0, -1; addc.u32 d, 0, 0", &[1, W, 1], 1),
        ],
    );
    check(
        "64 = 64, 64, 64",
        &[
            ("add.cc.u64 l1, a, b; addc.u64 d, c, 0", &[M1, 1, 5], 6),
            ("sub.cc.u64 l1, a, b; subc.u64 d, c, 0", &[0, 1, 5], 4),
            ("mad.lo.cc.u64 l1, a, b, c; madc.hi.u64 d, a, b, 0", &[M1, M1, M1], M1),
        ],
    );
}

#[test]
fn comparisons_and_selections() {
    let nan = f(f32::NAN);
    check(
        "p = 32, 32",
        &[
            ("setp.eq.s32 d, a, b", &[3, 3], 1),
            ("setp.ne.b32 d, a, b", &[3, 3], 0),
            ("setp.lt.s32 d, a, b", &[W, 0], 1),
            ("setp.lt.u32 d, a, b", &[W, 0], 0),
            ("setp.lo.u32 d, a, b", &[0, W], 1),
            ("setp.le.s32 d, a, b", &[0, 0], 1),
            ("setp.ls.u32 d, a, b", &[1, 0], 0),
            ("setp.gt.s32 d, a, b", &[0, W], 1),
            ("setp.hi.u32 d, a, b", &[W, 0], 1),
            ("setp.ge.s32 d, a, b", &[W, 0], 0),
            ("setp.hs.u32 d, a, b", &[W, 0], 1),
            ("setp.lt.f32 d, a, b", &[f(1.0), f(2.0)], 1),
            ("setp.eq.f32 d, a, b", &[f(-0.0), f(0.0)], 1),
            ("setp.eq.f32 d, a, b", &[nan, nan], 0),
            ("setp.ne.f32 d, a, b", &[nan, f(1.0)], 0),
            ("setp.neu.f32 d, a, b", &[nan, f(1.0)], 1),
            ("setp.equ.f32 d, a, b", &[nan, f(1.0)], 1),
            ("setp.ltu.f32 d, a, b", &[f(2.0), f(1.0)], 0),
            ("setp.leu.f32 d, a, b", &[f(1.0), nan], 1),
            ("setp.gtu.f32 d, a, b", &[f(1.0), nan], 1),
            ("setp.geu.f32 d, a, b", &[f(1.0), f(2.0)], 0),
            ("setp.gt.f32 d, a, b", &[f(1.0), nan], 0),
            ("setp.num.f32 d, a, b", &[f(1.0), nan], 0),
            ("setp.nan.f32 d, a, b", &[f(1.0), nan], 1),
            ("setp.eq.ftz.f32 d, a, b", &[1, 0], 1),
            ("setp.eq.f32 d, a, b", &[1, 0], 0),
            ("setp.lt.s32 p1|d, a, b", &[1, 2], 0),
            ("setp.eq.s32 p1, a, a; setp.lt.and.s32 d, a, b, p1", &[1, 2], 1),
            ("setp.eq.s32 p1, a, a; setp.lt.and.s32 d, a, b, !p1", &[1, 2], 0),
            ("setp.eq.s32 p1, a, a; setp.gt.or.s32 d, a, b, p1", &[1, 2], 1),
            ("setp.eq.s32 p1, a, a; setp.lt.xor.s32 d, a, b, p1", &[1, 2], 0),
            ("setp.eq.s32 p1, a, a; setp.gt.and.s32 _|d, a, b, p1", &[1, 2], 1),
            ("testp.finite.f32 d, a", &[f(1.0), 0], 1),
            ("testp.infinite.f32 d, a", &[f(f32::NEG_INFINITY), 0], 1),
            ("testp.number.f32 d, a", &[f(f32::INFINITY), 0], 1),
            ("testp.notanumber.f32 d, a", &[nan, 0], 1),
            ("testp.normal.f32 d, a", &[1, 0], 0),
            ("testp.subnormal.f32 d, a", &[0x8000_0001, 0], 1),
        ],
    );
    check(
        "p = 64, 64",
        &[
            ("setp.lt.s64 d, a, b", &[M1, 0], 1),
            ("setp.lt.u64 d, a, b", &[M1, 0], 0),
            ("setp.ne.b64 d, a, b", &[M1, M1 - (1 << 40)], 1),
            ("setp.gt.f64 d, a, b", &[d(2.0), d(1.0)], 1),
            ("setp.neu.f64 d, a, b", &[d(f64::NAN), d(1.0)], 1),
            ("setp.leu.f64 d, a, b", &[d(3.0), d(1.0)], 0),
            ("testp.normal.f64 d, a", &[d(1.0), 0], 1),
            ("testp.subnormal.f64 d, a", &[1, 0], 1),
            ("testp.notanumber.f64 d, a", &[d(f64::INFINITY), 0], 0),
        ],
    );
    check(
        "p = 16, 16",
        &[
            ("setp.eq.b16 d, a, b", &[3, 3], 1),
            ("setp.lt.s16 d, a, b", &[0xffff, 0], 1),
            ("setp.gt.u16 d, a, b", &[0xffff, 0], 1),
            ("setp.ne.s16 d, a, b", &[0x8000, 0x8000], 0),
        ],
    );
    check(
        "p = p, p",
        &[
            ("and.pred d, a, b", &[1, 0], 0),
            ("or.pred d, a, b", &[1, 0], 1),
            ("xor.pred d, a, b", &[1, 1], 0),
            ("not.pred d, a", &[0, 0], 1),
            ("mov.pred d, a", &[1, 0], 1),
            ("mov.pred d, 1", &[0, 0], 1),
            ("mov.pred d, a; @b mov.pred d, 0", &[1, 1], 0),
            ("mov.pred d, a; @!b mov.pred d, 0", &[1, 1], 1),
        ],
    );
    check(
        "32 = 32, 32",
        &[
            ("set.lt.u32.s32 d, a, b", &[W, 0], W),
            ("set.gt.s32.s32 d, a, b", &[W, 0], 0),
            ("set.lt.f32.u32 d, a, b", &[0, W], f(1.0)),
            ("set.eq.u32.f32 d, a, b", &[f(-0.0), 0], W),
            ("setp.ne.u32 p1, a, a; set.lt.and.u32.s32 d, a, b, p1", &[0, 1], 0),
        ],
    );
    check(
        "32 = 32, 32, p",
        &[
            ("selp.b32 d, a, b, c", &[1, 2, 1], 1),
            ("selp.f32 d, a, b, c", &[1, 2, 0], 2),
            ("selp.s32 d, a, -1, c", &[1, 2, 0], W),
        ],
    );
    check("64 = 64, 64, p", &[("selp.b64 d, a, b, c", &[1, M1, 0], M1), ("selp.f64 d, a, b, c", &[1, M1, 1], 1)]);
    check("16 = 16, 16, p", &[("selp.u16 d, a, b, c", &[1, 2, 0], 2), ("selp.b16 d, a, b, c", &[1, 2, 1], 1)]);
    check(
        "32 = 32, 32, 32",
        &[
            ("slct.u32.s32 d, a, b, c", &[1, 2, 0], 1),
            ("slct.u32.s32 d, a, b, c", &[1, 2, W], 2),
            ("slct.f32.f32 d, a, b, c", &[1, 2, f(-0.0)], 1),
            ("slct.f32.f32 d, a, b, c", &[1, 2, nan], 2),
            ("slct.ftz.f32.f32 d, a, b, c", &[1, 2, 0x8000_0001], 1),
            ("slct.f32.f32 d, a, b, c", &[1, 2, 0x8000_0001], 2),
        ],
    );
}

#[test]
fn float_arithmetic_of_single_precision() {
    let nan = 0x7fff_ffff;
    check(
        "32 = 32, 32",
        &[
            ("add.f32 d, a, b", &[f(1.5), f(2.0)], f(3.5)),
            ("add.rn.f32 d, a, 0f3F800000", &[f(1.5), 0], f(2.5)),
            ("add.rz.f32 d, a, b", &[f(1.0), f(1e-10)], f(1.0)),
            ("add.rp.f32 d, a, b", &[f(1.0), f(1e-10)], f(1.0) + 1),
            ("add.rm.f32 d, a, b", &[f(1.0), f(-1e-10)], f(1.0) - 1),
            ("add.ftz.f32 d, a, b", &[1, 1], 0),
            ("add.sat.f32 d, a, b", &[f(1.5), f(2.0)], f(1.0)),
            ("add.sat.f32 d, a, b", &[f(f32::NAN), f(2.0)], 0),
            ("sub.f32 d, a, b", &[f(1.5), f(2.0)], f(-0.5)),
            ("sub.f32 d, a, b", &[f(f32::INFINITY), f(f32::INFINITY)], nan),
            ("mul.f32 d, a, b", &[f(1.5), f(2.0)], f(3.0)),
            ("mul.ftz.f32 d, a, b", &[f(1e-30), f(1e-10)], 0),
            ("mul.ftz.f32 d, a, b", &[f(-1e-30), f(1e-10)], MIN32),
            ("mul.rz.sat.f32 d, a, b", &[f(-3.0), f(1.0)], 0),
            ("mad.f32 d, a, b, a", &[f(2.0), f(3.0)], f(8.0)),
            ("div.rn.f32 d, a, b", &[f(1.0), f(3.0)], f(1.0 / 3.0)),
            ("div.rz.f32 d, a, b", &[f(2.0), f(3.0)], f(2.0 / 3.0) - 1),
            ("div.approx.f32 d, a, b", &[f(6.0), f(2.0)], f(3.0)),
            ("div.full.f32 d, a, b", &[f(6.0), f(2.0)], f(3.0)),
            ("div.approx.ftz.f32 d, a, b", &[f(6.0), 1], f(f32::INFINITY)),
            ("div.rn.f32 d, a, b", &[f(1.0), f(-0.0)], f(f32::NEG_INFINITY)),
            ("rcp.rn.f32 d, a", &[f(4.0), 0], f(0.25)),
            ("rcp.rp.f32 d, a", &[f(3.0), 0], f(1.0 / 3.0)),
            ("rcp.rm.f32 d, a", &[f(3.0), 0], f(1.0 / 3.0) - 1),
            ("rcp.approx.ftz.f32 d, a", &[1, 0], f(f32::INFINITY)),
            ("sqrt.rn.f32 d, a", &[f(2.0), 0], f(2f32.sqrt())),
            ("sqrt.rp.f32 d, a", &[f(4.0), 0], f(2.0)),
            ("sqrt.rn.f32 d, a", &[f(-1.0), 0], nan),
            ("sqrt.rn.f32 d, a", &[f(-0.0), 0], f(-0.0)),
            ("sqrt.approx.f32 d, a", &[f(9.0), 0], f(3.0)),
            ("sqrt.approx.ftz.f32 d, a", &[1, 0], 0),
            ("rsqrt.approx.f32 d, a", &[f(4.0), 0], f(0.5)),
            ("rsqrt.approx.f32 d, a", &[0, 0], f(f32::INFINITY)),
            ("ex2.approx.f32 d, a", &[f(3.0), 0], f(8.0)),
            ("ex2.approx.ftz.f32 d, a", &[f(-127.0), 0], 0),
            ("lg2.approx.f32 d, a", &[f(8.0), 0], f(3.0)),
            ("lg2.approx.ftz.f32 d, a", &[1, 0], f(f32::NEG_INFINITY)),
            ("sin.approx.f32 d, a", &[0, 0], 0),
            ("cos.approx.f32 d, a", &[0, 0], f(1.0)),
            ("tanh.approx.f32 d, a", &[f(100.0), 0], f(1.0)),
            ("min.f32 d, a, b", &[f(f32::NAN), f(2.0)], f(2.0)),
            ("min.f32 d, a, b", &[0, MIN32], MIN32),
            ("max.f32 d, a, b", &[MIN32, 0], 0),
            ("max.f32 d, a, b", &[f(1.0), f(f32::NAN)], f(1.0)),
            ("min.NaN.f32 d, a, b", &[f(1.0), f(f32::NAN)], nan),
            ("max.NaN.f32 d, a, b", &[f(1.0), f(2.0)], f(2.0)),
            ("min.ftz.f32 d, a, b", &[1, f(1.0)], 0),
            ("min.f32 d, a, b", &[0xffc0_0001, 0x7f80_0001], nan),
            ("abs.f32 d, a", &[f(-2.0), 0], f(2.0)),
            ("abs.ftz.f32 d, a", &[0x8000_0001, 0], 0),
            ("neg.f32 d, a", &[f(2.0), 0], f(-2.0)),
            ("copysign.f32 d, a, b", &[f(-1.0), f(2.0)], f(-2.0)),
        ],
    );
    check(
        "32 = 32, 32, 32",
        &[
            (
                "fma.rn.f32 d, a, b, c",
                &[f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON), f(-1.0)],
                f(-f32::EPSILON * f32::EPSILON),
            ),
            ("fma.rz.f32 d, a, b, c", &[f(1.0), f(1.0), f(1e-10)], f(1.0)),
            ("fma.rm.f32 d, a, b, c", &[f(1.0), f(1.0), f(-1e-10)], f(1.0) - 1),
            ("fma.rp.f32 d, a, b, c", &[f(1.0), f(1.0), f(1e-10)], f(1.0) + 1),
            ("fma.rn.ftz.sat.f32 d, a, b, c", &[f(2.0), f(1.0), 1], f(1.0)),
            ("fma.rn.f32 d, a, b, c", &[0, f(f32::INFINITY), f(1.0)], nan),
        ],
    );
}

#[test]
fn float_arithmetic_of_double_precision() {
    check(
        "64 = 64, 64",
        &[
            ("add.f64 d, a, b", &[d(1.5), d(2.0)], d(3.5)),
            ("add.rp.f64 d, a, b", &[d(1.0), d(1e-30)], d(1.0) + 1),
            ("sub.rz.f64 d, a, b", &[d(1.0), d(1e-30)], d(1.0) - 1),
            ("mul.f64 d, a, 0d4000000000000000", &[d(1.5), 0], d(3.0)),
            ("mul.rm.f64 d, a, b", &[d(0.1), d(0.1)], d(0.010000000000000002) - 1),
            ("div.rn.f64 d, a, b", &[d(1.0), d(3.0)], d(1.0 / 3.0)),
            ("div.rp.f64 d, a, b", &[d(1.0), d(3.0)], d(1.0 / 3.0) + 1),
            ("rcp.rn.f64 d, a", &[d(8.0), 0], d(0.125)),
            ("sqrt.rn.f64 d, a", &[d(2.0), 0], d(2f64.sqrt())),
            ("sqrt.rz.f64 d, a", &[d(9.0), 0], d(3.0)),
            ("rcp.approx.ftz.f64 d, a", &[d(4.0), 0], d(0.25)),
            ("rsqrt.approx.f64 d, a", &[d(16.0), 0], d(0.25)),
            ("min.f64 d, a, b", &[d(f64::NAN), d(2.0)], d(2.0)),
            ("max.f64 d, a, b", &[MIN64, 0], 0),
            ("abs.f64 d, a", &[d(-2.0), 0], d(2.0)),
            ("neg.f64 d, a", &[d(2.0), 0], d(-2.0)),
            ("copysign.f64 d, a, b", &[d(-1.0), d(2.0)], d(-2.0)),
            ("add.f64 d, a, b", &[d(f64::INFINITY), d(f64::NEG_INFINITY)], 0xfff8 << 48),
        ],
    );
    check(
        "64 = 64, 64, 64",
        &[
            ("fma.rn.f64 d, a, b, c", &[d(2.0), d(3.0), d(4.0)], d(10.0)),
            ("fma.rm.f64 d, a, b, c", &[d(1.0), d(1.0), d(-1e-30)], d(1.0) - 1),
            ("mad.rn.f64 d, a, b, c", &[d(2.0), d(3.0), d(4.0)], d(10.0)),
        ],
    );
}

#[test]
fn moves_pack_and_unpack() {
    check(
        "64 = 32, 32",
        &[
            ("mov.b64 d, {a, b}", &[1, 2], 0x2_0000_0001),
            ("mov.b64 l1, {a, b}; mov.b64 {r1, r2}, l1; mov.b64 d, {r2, r1}", &[1, 2], 0x1_0000_0002),
            ("mov.b64 l1, {a, b}; mov.b64 {_, r2}, l1; cvt.u64.u32 d, r2", &[1, 2], 2),
        ],
    );
    check(
        "32 = 16, 16",
        &[
            ("mov.b32 d, {a, b}", &[0x1234, 0x5678], 0x5678_1234),
            ("mov.b32 r1, {a, b}; mov.b32 {h1, h2}, r1; mov.b32 d, {h2, h1}", &[0x1234, 0x5678], 0x1234_5678),
        ],
    );
    check(
        "64 = 16, 16",
        &[
            ("mov.b64 d, {a, b, b, a}", &[1, 2], 0x1_0002_0002_0001),
            (
                "mov.b64 l1, {a, b, b, a}; mov.b64 {h1, h2, h3, h4}, l1; mov.b64 d, {h2, h1, h4, h3}",
                &[1, 2],
                0x2_0001_0001_0002,
            ),
        ],
    );
    check(
        "32 = 32",
        &[
            ("mov.u32 d, 0xffffffff", &[0], W),
            ("mov.f32 d, 0fBF800000", &[0], f(-1.0)),
            ("mov.f32 d, 1.5", &[0], f(1.5)),
            ("mov.b32 d, a", &[7], 7),
        ],
    );
    check(
        "64 = 64",
        &[
            ("mov.f64 d, 0d3FF0000000000000", &[0], d(1.0)),
            ("mov.u64 d, a", &[M1], M1),
            ("mov.s64 d, -2", &[0], M1 - 1),
        ],
    );
}

#[test]
fn addresses_move_between_spaces() {
    check(
        "p = 64",
        &[
            ("isspacep.global d, in", &[0], 1),
            ("isspacep.param::entry d, in", &[0], 0),
            ("isspacep.shared d, in", &[0], 0),
            (".shared .b32 s[4]; mov.u64 l1, s; cvta.shared.u64 l2, l1; isspacep.shared d, l2", &[0], 1),
            (".local .b32 s[4]; mov.u64 l1, s; cvta.local.u64 l2, l1; isspacep.local d, l2", &[0], 1),
            (".local .b32 s[4]; mov.u64 l1, s; cvta.local.u64 l2, l1; isspacep.const d, l2", &[0], 0),
        ],
    );
    check(
        "64 = 64",
        &[
            (".shared .b32 s[4]; mov.u64 l1, s+4; cvta.shared.u64 l2, l1; cvta.to.shared.u64 d, l2", &[0], 4),
            ("cvta.global.u64 l1, a; cvta.to.global.u64 d, l1", &[77], 77),
        ],
    );
}
