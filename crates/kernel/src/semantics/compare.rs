//! Comparisons and selection (PTX ISA 9.7.6): setp, set, slct, testp, and logic on predicates.

use super::super::alu::{Combine, Compare, CompareKind, FloatCmp, HalfType, IntCmp, PredOp, TestOp, Truth};
use super::super::ir::{Inst, NONE};
use super::canonical::flush;
use super::{Frame, V32, V64, bits_of, half, map, negation, phase};

macro_rules! int_compare {
    ($name:ident, $array:ty, $signed:ty) => {
        #[inline(always)]
        fn $name(a: &$array, b: &$array, cmp: IntCmp) -> u32 {
            match cmp {
                IntCmp::Eq => bits_of(|i| a[i] == b[i]),
                IntCmp::Ne => bits_of(|i| a[i] != b[i]),
                IntCmp::LtS => bits_of(|i| (a[i] as $signed) < b[i] as $signed),
                IntCmp::LeS => bits_of(|i| a[i] as $signed <= b[i] as $signed),
                IntCmp::GtS => bits_of(|i| a[i] as $signed > b[i] as $signed),
                IntCmp::GeS => bits_of(|i| a[i] as $signed >= b[i] as $signed),
                IntCmp::LtU => bits_of(|i| a[i] < b[i]),
                IntCmp::LeU => bits_of(|i| a[i] <= b[i]),
                IntCmp::GtU => bits_of(|i| a[i] > b[i]),
                IntCmp::GeU => bits_of(|i| a[i] >= b[i]),
            }
        }
    };
}
int_compare!(compare32, V32, i32);
int_compare!(compare64, V64, i64);

macro_rules! float_compare {
    ($name:ident, $array:ty, $float:ty) => {
        #[inline(always)]
        fn $name(a: &$array, b: &$array, cmp: FloatCmp) -> u32 {
            let x = |i: usize| <$float>::from_bits(a[i]);
            let y = |i: usize| <$float>::from_bits(b[i]);
            let unordered = |i: usize| x(i).is_nan() | y(i).is_nan();
            match cmp {
                FloatCmp::Eq => bits_of(|i| x(i) == y(i)),
                FloatCmp::Ne => bits_of(|i| (x(i) < y(i)) | (x(i) > y(i))),
                FloatCmp::Lt => bits_of(|i| x(i) < y(i)),
                FloatCmp::Le => bits_of(|i| x(i) <= y(i)),
                FloatCmp::Gt => bits_of(|i| x(i) > y(i)),
                FloatCmp::Ge => bits_of(|i| x(i) >= y(i)),
                FloatCmp::Equ => !bits_of(|i| (x(i) < y(i)) | (x(i) > y(i))),
                FloatCmp::Neu => bits_of(|i| x(i) != y(i)),
                FloatCmp::Ltu => !bits_of(|i| x(i) >= y(i)),
                FloatCmp::Leu => !bits_of(|i| x(i) > y(i)),
                FloatCmp::Gtu => !bits_of(|i| x(i) <= y(i)),
                FloatCmp::Geu => !bits_of(|i| x(i) < y(i)),
                FloatCmp::Num => !bits_of(unordered),
                FloatCmp::Nan => bits_of(unordered),
            }
        }
    };
}
float_compare!(compare_f32, V32, f32);
float_compare!(compare_f64, V64, f64);

#[inline(always)]
fn compared(f: &Frame<'_>, inst: &Inst, kind: CompareKind) -> u32 {
    let [a, b, ..] = inst.src;
    match kind {
        CompareKind::Int32(cmp) => compare32(f.get32(a), f.get32(b), cmp),
        CompareKind::Int64(cmp) => compare64(f.get64(a), f.get64(b), cmp),
        // Moving the value to the top keeps both the signed and the unsigned order.
        CompareKind::Int16(cmp) => compare32(&map(f.get32(a), |v| v << 16), &map(f.get32(b), |v| v << 16), cmp),
        CompareKind::F32(cmp, false) => compare_f32(f.get32(a), f.get32(b), cmp),
        CompareKind::F32(cmp, true) => compare_f32(&map(f.get32(a), flush), &map(f.get32(b), flush), cmp),
        CompareKind::F64(cmp) => compare_f64(f.get64(a), f.get64(b), cmp),
        CompareKind::Half(cmp, ty, ftz) => compared_halves(f, inst, cmp, ty, ftz, 0),
    }
}

/// The comparison of the halves from bit `shift` on.
#[inline(always)]
fn compared_halves(f: &Frame<'_>, inst: &Inst, cmp: FloatCmp, ty: HalfType, ftz: bool, shift: u32) -> u32 {
    let single = |v: &V32| map(v, |v| half::to_single(ty.format(), (v >> shift) as u16, ftz).to_bits());
    compare_f32(&single(f.get32(inst.src[0])), &single(f.get32(inst.src[1])), cmp)
}

/// The comparison of upper halves, if the operands are pairs.
#[inline(always)]
fn compared_upper(f: &Frame<'_>, inst: &Inst, kind: CompareKind) -> Option<u32> {
    match kind {
        CompareKind::Half(cmp, ty, ftz) if ty.is_pair() => Some(compared_halves(f, inst, cmp, ty, ftz, 16)),
        CompareKind::Int16(_) | CompareKind::Int32(_) | CompareKind::Int64(_) => None,
        CompareKind::F32(..) | CompareKind::F64(_) | CompareKind::Half(..) => None,
    }
}

#[inline(always)]
fn combined(holds: u32, combine: Combine, with: u32) -> u32 {
    match combine {
        Combine::None => holds,
        Combine::And => holds & with,
        Combine::Or => holds | with,
        Combine::Xor => holds ^ with,
    }
}

#[inline(always)]
pub(super) fn setp(f: &mut Frame<'_>, inst: &Inst, compare: Compare) {
    let holds = compared(f, inst, compare.kind);
    let second = compared_upper(f, inst, compare.kind).unwrap_or(!holds);
    let [p, q, ..] = inst.dst;
    if compare.combine == Combine::None {
        f.put_p(p, holds);
        f.put_p_optional(q, second);
    } else {
        let with = f.get_p(inst.src[2]) ^ negation(inst);
        if p != NONE {
            f.put_p(p, combined(holds, compare.combine, with));
        }
        f.put_p_optional(q, combined(second, compare.combine, with));
    }
}

#[inline(always)]
pub(super) fn set(f: &mut Frame<'_>, inst: &Inst, compare: Compare, truth: Truth) {
    let mut holds = compared(f, inst, compare.kind);
    let mut upper = compared_upper(f, inst, compare.kind);
    if compare.combine != Combine::None {
        let with = f.get_p(inst.src[2]) ^ negation(inst);
        holds = combined(holds, compare.combine, with);
        upper = upper.map(|upper| combined(upper, compare.combine, with));
    }
    let yes = match truth {
        Truth::Ones => u32::MAX,
        Truth::Single => 0x3f80_0000,
        Truth::Half(format) => u32::from(half::one(format)),
    };
    let choose = |holds: u32, lane: usize, yes: u32| if holds >> lane & 1 != 0 { yes } else { 0 };
    let out: V32 = match upper {
        None => std::array::from_fn(|i| choose(holds, i, yes)),
        Some(upper) => std::array::from_fn(|i| choose(holds, i, yes & 0xffff) | choose(upper, i, yes << 16)),
    };
    f.put32(inst.dst[0], &out);
}

#[inline(always)]
pub(super) fn slct(f: &mut Frame<'_>, inst: &Inst, wide: bool, float: bool, ftz: bool) {
    let [a, b, c, _] = inst.src;
    let c = f.get32(c);
    let first = if float {
        // -0 and a flushed negative denormal are >= 0, a NaN is not.
        let floor = if ftz { -f32::MIN_POSITIVE } else { -0.0 };
        if ftz { bits_of(|i| f32::from_bits(c[i]) > floor) } else { bits_of(|i| f32::from_bits(c[i]) >= floor) }
    } else {
        bits_of(|i| c[i] as i32 >= 0)
    };
    let pick = |i: usize| first >> i & 1 != 0;
    if wide {
        let (a, b) = (f.get64(a), f.get64(b));
        let out: V64 = std::array::from_fn(|i| if pick(i) { a[i] } else { b[i] });
        f.put64(inst.dst[0], &out);
    } else {
        let (a, b) = (f.get32(a), f.get32(b));
        let out: V32 = std::array::from_fn(|i| if pick(i) { a[i] } else { b[i] });
        f.put32(inst.dst[0], &out);
    }
}

#[inline(always)]
pub(super) fn predicate(f: &mut Frame<'_>, inst: &Inst, op: PredOp) {
    let [a, b, ..] = inst.src;
    let a = f.get_p(a);
    let out = match op {
        PredOp::And => a & f.get_p(b),
        PredOp::Or => a | f.get_p(b),
        PredOp::Xor => a ^ f.get_p(b),
        PredOp::Not => !a,
    };
    f.put_p(inst.dst[0], out);
}

#[inline(always)]
pub(super) fn testp32(f: &mut Frame<'_>, inst: &Inst, test: TestOp) {
    let a = f.get32(inst.src[0]);
    let magnitude = |i: usize| a[i] & 0x7fff_ffff;
    let out = match test {
        TestOp::Finite => bits_of(|i| magnitude(i) < 0x7f80_0000),
        TestOp::Infinite => bits_of(|i| magnitude(i) == 0x7f80_0000),
        TestOp::Number => bits_of(|i| magnitude(i) <= 0x7f80_0000),
        TestOp::NotANumber => bits_of(|i| magnitude(i) > 0x7f80_0000),
        TestOp::Normal => bits_of(|i| (0x0080_0000..0x7f80_0000).contains(&magnitude(i))),
        TestOp::Subnormal => bits_of(|i| (1..0x0080_0000).contains(&magnitude(i))),
    };
    f.put_p(inst.dst[0], out);
}

#[inline(always)]
pub(super) fn phase_over(f: &mut Frame<'_>, inst: &Inst, parity: bool) {
    let [word, state, ..] = inst.src;
    let words = f.get64(word);
    let out = if parity {
        let parities = f.get32(state);
        bits_of(|i| phase::is_over_by_parity(words[i], parities[i]))
    } else {
        let states = f.get64(state);
        bits_of(|i| phase::is_over(words[i], states[i]))
    };
    f.put_p(inst.dst[0], out);
}

#[inline(always)]
pub(super) fn testp64(f: &mut Frame<'_>, inst: &Inst, test: TestOp) {
    const INFINITY: u64 = 0x7ff << 52;
    const NORMAL: u64 = 1 << 52;
    let a = f.get64(inst.src[0]);
    let magnitude = |i: usize| a[i] & (u64::MAX >> 1);
    let out = match test {
        TestOp::Finite => bits_of(|i| magnitude(i) < INFINITY),
        TestOp::Infinite => bits_of(|i| magnitude(i) == INFINITY),
        TestOp::Number => bits_of(|i| magnitude(i) <= INFINITY),
        TestOp::NotANumber => bits_of(|i| magnitude(i) > INFINITY),
        TestOp::Normal => bits_of(|i| (NORMAL..INFINITY).contains(&magnitude(i))),
        TestOp::Subnormal => bits_of(|i| (1..NORMAL).contains(&magnitude(i))),
    };
    f.put_p(inst.dst[0], out);
}
