//! Operations across the lanes of a group: shuffles, votes, matches, reductions (PTX ISA 9.7.9, 9.7.13), and
//! the address-space test.
//!
//! A group is 32 lanes. With 64-wide warps each half is a group of its own, as if it were a warp of 32: lane
//! numbers in shuffles, masks and ballots are those within the group. Member masks of the `.sync` forms are
//! not enforced: the lanes that execute take part. A shuffle that reads a lane that does not execute gets
//! that lane's register as it is (the ISA leaves it undefined; here it is at least the same on every host).

use super::super::alu::{IntExtreme, ReduxOp, ShflMode, SpaceTest, VoteOp};
use super::super::cluster::{map_address, owner_of};
use super::super::ir::{Inst, LANES, NONE};
use super::super::memory::{CONST_WINDOW, LOCAL_WINDOW, SHARED_WINDOW};
use super::{Frame, V32, bits_of, negation};

#[inline(always)]
pub(super) fn shuffle(f: &mut Frame<'_>, inst: &Inst, mode: ShflMode) {
    let [a, b, c, _] = inst.src;
    let (a, b, c) = (*f.get32(a), *f.get32(b), *f.get32(c));
    let mut out: V32 = [0; LANES];
    let mut in_range = 0;
    for lane in 0..LANES as u32 {
        let (b, c) = (b[lane as usize] & 31, c[lane as usize]);
        let segment = c >> 8 & 31;
        let (first, last) = (lane & segment, (lane & segment) | (c & 31 & !segment));
        let from = match mode {
            ShflMode::Up => lane.wrapping_sub(b),
            ShflMode::Down => lane + b,
            ShflMode::Bfly => lane ^ b,
            ShflMode::Idx => first | (b & !segment),
        };
        let ok = match mode {
            // For `.up` the clamp is a lower bound.
            ShflMode::Up => from as i32 >= last as i32,
            ShflMode::Down | ShflMode::Bfly | ShflMode::Idx => from <= last,
        };
        out[lane as usize] = a[if ok { from as usize & 31 } else { lane as usize }];
        in_range |= u32::from(ok) << lane;
    }
    if inst.dst[0] != NONE {
        f.put32(inst.dst[0], &out);
    }
    f.put_p_optional(inst.dst[1], in_range);
}

#[inline(always)]
pub(super) fn vote(f: &mut Frame<'_>, inst: &Inst, op: VoteOp) {
    let votes = (f.get_p(inst.src[0]) ^ negation(inst)) & f.mask;
    let every = |b: bool| if b { u32::MAX } else { 0 };
    match op {
        VoteOp::All => f.put_p(inst.dst[0], every(votes == f.mask)),
        VoteOp::Any => f.put_p(inst.dst[0], every(votes != 0)),
        VoteOp::Uni => f.put_p(inst.dst[0], every(votes == 0 || votes == f.mask)),
        VoteOp::Ballot => f.put32(inst.dst[0], &[votes; LANES]),
    }
}

#[inline(always)]
pub(super) fn matching(f: &mut Frame<'_>, inst: &Inst, all: bool, wide: bool) {
    let a: [u64; LANES] = if wide { *f.get64(inst.src[0]) } else { super::map(f.get32(inst.src[0]), u64::from) };
    let same = |lane: usize| bits_of(|i| a[i] == a[lane]) & f.mask;
    if all {
        let holds = f.mask != 0 && same(f.mask.trailing_zeros() as usize) == f.mask;
        let value = if holds { f.mask } else { 0 };
        f.put32(inst.dst[0], &[value; LANES]);
        f.put_p_optional(inst.dst[1], if holds { u32::MAX } else { 0 });
    } else {
        let out: V32 = std::array::from_fn(same);
        f.put32(inst.dst[0], &out);
    }
}

#[inline(always)]
pub(super) fn reduce(f: &mut Frame<'_>, inst: &Inst, op: ReduxOp) {
    let a = *f.get32(inst.src[0]);
    let join = |x: u32, y: u32| match op {
        ReduxOp::Add => x.wrapping_add(y),
        ReduxOp::Extreme(IntExtreme::MinS) => (x as i32).min(y as i32) as u32,
        ReduxOp::Extreme(IntExtreme::MinU) => x.min(y),
        ReduxOp::Extreme(IntExtreme::MaxS) => (x as i32).max(y as i32) as u32,
        ReduxOp::Extreme(IntExtreme::MaxU) => x.max(y),
        ReduxOp::And => x & y,
        ReduxOp::Or => x | y,
        ReduxOp::Xor => x ^ y,
    };
    let mask = f.mask;
    let out = (0..LANES).filter(|i| mask >> i & 1 != 0).map(|i| a[i]).reduce(join).unwrap_or(0);
    f.put32(inst.dst[0], &[out; LANES]);
}

/// p = this is the lowest of the members that execute, d = its number.
#[inline(always)]
pub(super) fn elect(f: &mut Frame<'_>, inst: &Inst) {
    let [d, p, ..] = inst.dst;
    // The ISA asks that every lane that executes names the same members, itself among them.
    let first = f.mask.trailing_zeros() & 31;
    let members = f.mask & f.get32(inst.src[0])[first as usize];
    let leader = if members == 0 { first } else { members.trailing_zeros() };
    f.put32(d, &[leader; LANES]);
    f.put_p(p, 1 << leader);
}

/// d = the fragment of the transposed 8 x 8 matrix of 16-bit elements whose fragment is a: lane 4 g + t has
/// elements 2 t and 2 t + 1 of row g.
#[inline(always)]
pub(super) fn transpose(f: &mut Frame<'_>, inst: &Inst) {
    let a = *f.get32(inst.src[0]);
    let element = |row: usize, column: usize| a[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    let out = std::array::from_fn(|lane| {
        let (g, t) = (lane / 4, lane % 4);
        element(2 * t, g) | element(2 * t + 1, g) << 16
    });
    f.put32(inst.dst[0], &out);
}

/// The rows that lanes store of 8 x 8 matrices of 16-bit elements, whose fragments are the sources.
#[inline(always)]
pub(super) fn matrix_rows(f: &mut Frame<'_>, inst: &Inst, transposed: bool) {
    let fragments = inst.src.map(|slot| if slot == NONE { [0; LANES] } else { *f.get32(slot) });
    let element = |matrix: usize, row: usize, column: usize| {
        fragments[matrix][4 * row + column / 2] >> (16 * (column % 2)) & 0xffff
    };
    for (word, &d) in inst.dst.iter().enumerate() {
        let out = std::array::from_fn(|lane| {
            let (matrix, row) = (lane / 8, lane % 8);
            let [low, high] = [2 * word, 2 * word + 1].map(|column| match transposed {
                true => element(matrix, column, row),
                false => element(matrix, row, column),
            });
            low | high << 16
        });
        f.put32(d, &out);
    }
}

#[inline(always)]
pub(super) fn is_space(f: &mut Frame<'_>, inst: &Inst, space: SpaceTest) {
    let a = f.get64(inst.src[0]);
    let window = |base: u64, bytes: u64| bits_of(|i| a[i].wrapping_sub(base) < bytes);
    let (shared, local, constant) = (1 << 32, 1 << 32, 1 << 32);
    let out = match space {
        SpaceTest::Shared => window(SHARED_WINDOW, shared),
        SpaceTest::SharedCta => window(SHARED_WINDOW, 1 << 24),
        SpaceTest::Local => window(LOCAL_WINDOW, local),
        SpaceTest::Const => window(CONST_WINDOW, constant),
        SpaceTest::Global => {
            !(window(SHARED_WINDOW, shared) | window(LOCAL_WINDOW, local) | window(CONST_WINDOW, constant))
        }
    };
    f.put_p(inst.dst[0], out);
}

pub(super) fn map_shared(f: &mut Frame<'_>, inst: &Inst, wide: bool) {
    let [a, rank, own, _] = inst.src;
    let (rank, own) = (*f.get32(rank), *f.get32(own));
    if wide {
        let a = f.get64(a);
        let out = std::array::from_fn(|i| a[i] >> 32 << 32 | u64::from(map_address(a[i] as u32, rank[i], own[i])));
        f.put64(inst.dst[0], &out);
    } else {
        let a = f.get32(a);
        let out = std::array::from_fn(|i| map_address(a[i], rank[i], own[i]));
        f.put32(inst.dst[0], &out);
    }
}

pub(super) fn rank_of(f: &mut Frame<'_>, inst: &Inst, wide: bool) {
    let [a, own, ..] = inst.src;
    let own = *f.get32(own);
    let out = if wide {
        let a = f.get64(a);
        std::array::from_fn(|i| owner_of(a[i] & 0xffff_ffff, own[i]).0)
    } else {
        let a = f.get32(a);
        std::array::from_fn(|i| owner_of(a[i].into(), own[i]).0)
    };
    f.put32(inst.dst[0], &out);
}
