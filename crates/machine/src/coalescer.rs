//! The coalescer: which lines and sectors one warp instruction accesses, and which lanes share them.
//!
//! Three rules. `warp_sectored`: all lanes together, one access a line with the 32 B sectors touched.
//! `warp_by_sector`: all lanes together, one access a 32 B sector (GPGPU-Sim's `coalesce_arch` 40 and later:
//! "all requests should be 32 bytes"). `half_warp_legacy`: each half-warp by itself, one access a 128 B
//! segment for words of 4 bytes or more (64 B for 2-byte, 32 B for 1-byte words), the segment halved while
//! only one half of it is used (compute capability 1.2, as GPGPU-Sim's `coalesce_arch 13`, which is what
//! AGPM's Table II counts).
//!
//! Invariants: every lane is in exactly one access; accesses come in the order of their first lanes; an
//! access's sectors cover every byte its lanes touch.

use durawarp_base::choice;
use durawarp_checkpoint::value;

use super::msg::SECTOR_BYTES;

choice! {
    /// How lanes are merged into accesses.
    pub enum Rule {
        /// A whole warp, an access a line, with its sectors.
        WarpSectored = "warp_sectored",
        /// A whole warp, an access a sector.
        WarpBySector = "warp_by_sector",
        /// Half-warps, by segments.
        HalfWarpLegacy = "half_warp_legacy",
    }
}

/// Lanes of a half-warp.
pub const HALF_WARP: u32 = 16;

/// One access to one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineAccess {
    /// Address of the line's first byte.
    pub line: u64,
    /// Lanes served by it.
    pub lanes: u64,
    /// Sectors to fetch or write.
    pub sectors: u8,
}

value!(record LineAccess { line, lanes, sectors });

impl LineAccess {
    /// Half-warps that it serves.
    pub fn half_warps(&self) -> u8 {
        (0..64 / HALF_WARP).map(|half| u8::from(self.lanes >> (HALF_WARP * half) & 0xffff != 0)).sum()
    }
}

/// Lanes of a mask, in order.
pub(super) fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}

/// What the addresses of a warp's lanes look like together. Most instructions of most kernels are of the two
/// simple forms, of which accesses follow by arithmetic, without a look at each lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 32 lanes, and no others, access one and the same address.
    Uniform,
    /// 32 lanes, and no others, access one stretch of memory in the order of lanes, from an address that is a
    /// multiple of the bytes a lane.
    Consecutive,
    /// Anything else.
    Any,
}

impl Form {
    /// The form of the accesses of `lanes`, `bytes` each.
    #[inline]
    pub fn of(address: &[u64; 64], lanes: u64, bytes: u32) -> Form {
        if lanes != u64::from(u32::MAX) || !bytes.is_power_of_two() {
            return Form::Any;
        }
        let (first, bytes) = (address[0], u64::from(bytes));
        // Two lanes tell which form it can be at all. The loop over all is without a branch, so that it
        // becomes vector code; only equality is asked for, which even SSE2 has.
        let step = address[1].wrapping_sub(first);
        if step != 0 && step != bytes || address[31] != first.wrapping_add(31 * step) {
            return Form::Any;
        }
        let apart = address[..32].iter().zip(0..).fold(0, |apart, (a, i)| apart | a ^ first.wrapping_add(i * step));
        if apart != 0 {
            Form::Any
        } else if step == 0 {
            Form::Uniform
        } else if first & (bytes - 1) == 0 && first.checked_add(32 * bytes).is_some() {
            Form::Consecutive
        } else {
            Form::Any
        }
    }
}

/// [`coalesce`] for accesses whose form is known.
#[inline]
pub fn coalesce_form(
    form: Form,
    rule: Rule,
    address: &[u64; 64],
    lanes: u64,
    bytes: u32,
    line_bytes: u32,
    out: &mut Vec<LineAccess>,
) {
    let (first, in_line) = (address[0], u64::from(line_bytes) - 1);
    let unit_bytes = match rule {
        Rule::WarpSectored => line_bytes,
        Rule::WarpBySector => SECTOR_BYTES,
        Rule::HalfWarpLegacy => return coalesce(rule, address, lanes, bytes, line_bytes, out),
    };
    match form {
        Form::Uniform => {
            out.push(LineAccess { line: first & !in_line, lanes, sectors: sectors_at(first & in_line, bytes) });
        }
        Form::Consecutive => {
            let (bytes, in_unit) = (u64::from(bytes), u64::from(unit_bytes) - 1);
            let end = first + 32 * bytes;
            let mut at = first;
            // A unit at a time: consecutive lanes fall into units in order, so that no lane is looked at by
            // itself.
            while at < end {
                let line = at & !in_line;
                let next = ((at | in_unit) + 1).min(end);
                let (from_lane, to_lane) = ((at - first) / bytes, (next - first) / bytes);
                let lanes = (u64::MAX >> (64 - (to_lane - from_lane))) << from_lane;
                out.push(LineAccess { line, lanes, sectors: sectors_at(at - line, (next - at) as u32) });
                at = next;
            }
        }
        Form::Any => coalesce(rule, address, lanes, bytes, line_bytes, out),
    }
}

/// Splits the accesses of `lanes`, `bytes` each (aligned), into line accesses appended to `out`.
pub fn coalesce(rule: Rule, address: &[u64; 64], lanes: u64, bytes: u32, line_bytes: u32, out: &mut Vec<LineAccess>) {
    match rule {
        Rule::WarpSectored => by_unit(line_bytes, address, lanes, bytes, line_bytes, out),
        // No access is wider than 16 bytes and each is aligned: none is in two sectors.
        Rule::WarpBySector => by_unit(SECTOR_BYTES, address, lanes, bytes, line_bytes, out),
        Rule::HalfWarpLegacy => {
            for half in 0..4 {
                let members = lanes & 0xffff << (16 * half);
                let first = out.len();
                by_unit(line_bytes, address, members, bytes, line_bytes, out);
                widen_to_segments(bytes, line_bytes, first, out);
            }
        }
    }
}

/// The sectors that `bytes` bytes at `offset` of a line touch.
pub(super) fn sectors_at(offset: u64, bytes: u32) -> u8 {
    let first = offset / u64::from(SECTOR_BYTES);
    let last = (offset + u64::from(bytes) - 1) / u64::from(SECTOR_BYTES);
    ((2u32 << last) - (1u32 << first)) as u8
}

/// An access for each unit, a line or a sector, that lanes touch.
fn by_unit(unit_bytes: u32, address: &[u64; 64], lanes: u64, bytes: u32, line_bytes: u32, out: &mut Vec<LineAccess>) {
    let (in_line, in_unit) = (u64::from(line_bytes) - 1, u64::from(unit_bytes) - 1);
    let mut left = lanes;
    while left != 0 {
        let first = address[left.trailing_zeros() as usize];
        let unit = first & !in_unit;
        let mut access = LineAccess { line: first & !in_line, lanes: 0, sectors: 0 };
        // Branch-free over all lanes: garbage in unused lanes is masked afterwards.
        for half in 0..2 {
            let lanes_here = (left >> (32 * half)) as u32;
            if lanes_here == 0 {
                continue;
            }
            let part: &[u64] = &address[32 * half..32 * half + 32];
            let mut same = 0u32;
            for (i, &a) in part.iter().enumerate() {
                same |= u32::from(a & !in_unit == unit) << i;
            }
            same &= lanes_here;
            access.lanes |= u64::from(same) << (32 * half);
            let mut sectors = 0;
            for (i, &a) in part.iter().enumerate() {
                let touched = sectors_at(a & in_line, bytes);
                sectors |= if same >> i & 1 == 1 { touched } else { 0 };
            }
            access.sectors |= sectors;
        }
        left &= !access.lanes;
        out.push(access);
    }
}

/// Makes each access of `out[first..]` the legacy segment that serves it.
fn widen_to_segments(bytes: u32, line_bytes: u32, first: usize, out: &mut [LineAccess]) {
    let segment_sectors = match bytes {
        1 => 1,
        2 => 2,
        _ => 4,
    }
    .min(line_bytes / SECTOR_BYTES);
    for access in &mut out[first..] {
        // Segments smaller than the line stay one access here; their sectors tell them apart.
        let mut width = segment_sectors;
        let mut sectors = 0u8;
        let mut at = 0;
        while at < line_bytes / SECTOR_BYTES {
            let used = access.sectors >> at & ((1u32 << width) - 1) as u8;
            if used != 0 {
                let (mut start, mut len) = (0, width);
                while len > 1 {
                    let half = len / 2;
                    let low = (((1u32 << half) - 1) << start) as u8;
                    let high = (((1u32 << half) - 1) << (start + half)) as u8;
                    if used & high == 0 {
                        len = half;
                    } else if used & low == 0 {
                        start += half;
                        len = half;
                    } else {
                        break;
                    }
                }
                sectors |= ((((1u32 << len) - 1) << start) as u8) << at;
            }
            at += width;
            width = segment_sectors;
        }
        access.sectors = sectors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WARP: u64 = u32::MAX as u64;

    fn run(rule: Rule, address: impl Fn(u64) -> u64, lanes: u64, bytes: u32) -> Vec<LineAccess> {
        let address = std::array::from_fn(|i| address(i as u64));
        let mut out = Vec::new();
        coalesce(rule, &address, lanes, bytes, 128, &mut out);
        out
    }

    #[test]
    fn consecutive_words_are_one_line_of_four_sectors() {
        let out = run(Rule::WarpSectored, |i| 0x1000 + 4 * i, WARP, 4);
        assert_eq!(out, [LineAccess { line: 0x1000, lanes: WARP, sectors: 0b1111 }]);
    }

    #[test]
    fn an_access_serves_the_half_warps_of_its_lanes() {
        let half_warps = |address: fn(u64) -> u64, lanes: u64| {
            let out = run(Rule::WarpSectored, address, lanes, 4);
            out.iter().map(LineAccess::half_warps).collect::<Vec<_>>()
        };
        assert_eq!(half_warps(|i| 0x1000 + 4 * i, WARP), [2]);
        assert_eq!(half_warps(|i| 0x1000 + 4 * i, 0xffff), [1]);
        assert_eq!(half_warps(|i| 0x1000 + 8 * i, WARP), [1, 1]);
        assert_eq!(half_warps(|_| 0x1000, u64::MAX), [4], "64 lanes");
        // As many as the legacy rule has accesses.
        for stride in [0, 4, 8, 12, 16, 128] {
            let address = std::array::from_fn(|i| 0x1000 + stride * i as u64);
            let count = |rule| {
                let mut out = Vec::new();
                coalesce(rule, &address, WARP, 4, 128, &mut out);
                out
            };
            let whole: u8 = count(Rule::WarpSectored).iter().map(LineAccess::half_warps).sum();
            assert_eq!(usize::from(whole), count(Rule::HalfWarpLegacy).len(), "stride of {stride} B");
        }
    }

    #[test]
    fn a_misaligned_warp_touches_two_lines() {
        let out = run(Rule::WarpSectored, |i| 0x1000 + 64 + 4 * i, WARP, 4);
        assert_eq!(out[0], LineAccess { line: 0x1000, lanes: 0xffff, sectors: 0b1100 });
        assert_eq!(out[1], LineAccess { line: 0x1080, lanes: 0xffff_0000, sectors: 0b0011 });
    }

    #[test]
    fn by_sector_a_line_of_words_is_four_accesses_of_eight_lanes() {
        let out = run(Rule::WarpBySector, |i| 0x1000 + 4 * i, WARP, 4);
        let sector = |i: u32| LineAccess { line: 0x1000, lanes: 0xff << (8 * i), sectors: 1 << i };
        assert_eq!(out, [0, 1, 2, 3].map(sector));
        let strided = run(Rule::WarpBySector, |i| 0x1000 + 8 * i, 0xff, 4);
        assert_eq!(strided.iter().map(|a| (a.lanes, a.sectors)).collect::<Vec<_>>(), [(0xf, 1), (0xf0, 2)]);
        assert_eq!(
            run(Rule::WarpBySector, |_| 0x1044, WARP, 4),
            [LineAccess { line: 0x1000, lanes: WARP, sectors: 4 }]
        );
    }

    #[test]
    fn a_line_stride_is_one_access_a_lane() {
        let out = run(Rule::WarpSectored, |i| 4096 * i, WARP, 4);
        assert_eq!(out.len(), 32);
        assert!(out.iter().all(|a| a.sectors == 1));
    }

    #[test]
    fn the_legacy_rule_serves_each_half_warp_by_itself() {
        let out = run(Rule::HalfWarpLegacy, |i| 0x1000 + 4 * i, WARP, 4);
        assert_eq!(out.len(), 2);
        assert_eq!((out[0].sectors, out[1].sectors), (0b0011, 0b1100), "each half is a 64 B segment");
        let broadcast = run(Rule::HalfWarpLegacy, |_| 0x1000, WARP, 4);
        assert_eq!(broadcast.len(), 2);
        assert_eq!(broadcast[0].sectors, 0b0001, "halved twice");
        let straddling = run(Rule::HalfWarpLegacy, |i| 0x1000 + 32 + 4 * i, 0xffff, 4);
        assert_eq!(straddling[0].sectors, 0b1111, "both halves used: the whole segment");
    }

    /// Sectors of the access of lanes that use one sector of `pattern` each.
    fn legacy_sectors(pattern: u8, bytes: u32, line_bytes: u32) -> u8 {
        let (mut address, mut lanes) = ([0; 64], 0);
        for sector in (0..4).filter(|sector| pattern >> sector & 1 == 1) {
            address[sector] = 0x1000 + 32 * sector as u64;
            lanes |= 1 << sector;
        }
        let mut out = Vec::new();
        coalesce(Rule::HalfWarpLegacy, &address, lanes, bytes, line_bytes, &mut out);
        assert_eq!((out.len(), out[0].line, out[0].lanes), (1, 0x1000, lanes));
        out[0].sectors
    }

    #[test]
    fn a_legacy_segment_is_as_large_as_its_words_want() {
        // Words of 4 bytes and more: the smallest of 128, 64 and 32 B, aligned, that has all used sectors.
        let of_128 = [1, 2, 3, 4, 15, 15, 15, 8, 15, 15, 15, 12, 15, 15, 15];
        for (pattern, expected) in (1..16).zip(of_128) {
            for bytes in [4, 8, 16] {
                assert_eq!(legacy_sectors(pattern, bytes, 128), expected, "{pattern:04b}, {bytes} B");
            }
            // A segment of 64 B is halved when only one half is used: no unused sector is left.
            for bytes in [1, 2] {
                assert_eq!(legacy_sectors(pattern, bytes, 128), pattern, "{pattern:04b}, {bytes} B");
            }
        }
        // No segment is larger than the line.
        for pattern in 1..4 {
            assert_eq!(legacy_sectors(pattern, 4, 64), pattern, "{pattern:02b} of a line of 64 B");
        }
    }

    #[test]
    fn a_half_warp_of_shorts_fetches_nothing_between_two_segments() {
        // Lanes 0 to 7 in the first 64 B, lanes 8 to 15 at the line's end.
        let far = |i: u64| 0x1000 + 2 * i + if i < 8 { 0 } else { 96 - 16 };
        assert_eq!(run(Rule::HalfWarpLegacy, far, 0xffff, 2)[0].sectors, 0b1001);
        let words = |i: u64| 0x1000 + 4 * i + if i < 8 { 0 } else { 96 - 32 };
        assert_eq!(run(Rule::HalfWarpLegacy, words, 0xffff, 4)[0].sectors, 0b1111, "one 128 B segment");
    }

    #[test]
    fn legacy_counts_match_the_published_scatter_of_doubles() {
        let out = run(Rule::HalfWarpLegacy, |i| 0x1000 + 8 * i, WARP, 8);
        assert_eq!(out.len(), 2);
        assert!(out.iter().all(|a| a.sectors == 0b1111));
    }

    #[test]
    fn simple_forms_come_to_the_same_accesses() {
        for (line_bytes, bytes, start) in [32, 64, 128].into_iter().flat_map(|line| {
            [1, 2, 4, 8, 16].into_iter().flat_map(move |bytes| (0..300).step_by(3).map(move |at| (line, bytes, at)))
        }) {
            for stride in [0, u64::from(bytes)] {
                for rule in [Rule::WarpSectored, Rule::WarpBySector, Rule::HalfWarpLegacy] {
                    let start = 0x1000 + start / u64::from(bytes) * u64::from(bytes);
                    let address = std::array::from_fn(|i| start + stride * i as u64);
                    let form = Form::of(&address, WARP, bytes);
                    assert_eq!(form, if stride == 0 { Form::Uniform } else { Form::Consecutive });
                    let (mut expected, mut found) = (Vec::new(), Vec::new());
                    coalesce(rule, &address, WARP, bytes, line_bytes, &mut expected);
                    coalesce_form(form, rule, &address, WARP, bytes, line_bytes, &mut found);
                    assert_eq!(found, expected, "{bytes} B at {start:#x}, lines of {line_bytes} B");
                }
            }
        }
    }

    #[test]
    fn other_forms_are_told_apart() {
        let line = |i: usize| 0x1000 + 4 * i as u64;
        assert_eq!(Form::of(&std::array::from_fn(line), WARP >> 1, 4), Form::Any, "not every lane");
        assert_eq!(Form::of(&std::array::from_fn(line), u64::MAX, 4), Form::Any, "64 lanes");
        assert_eq!(Form::of(&std::array::from_fn(|i| line(i) + 2), WARP, 4), Form::Any, "misaligned");
        assert_eq!(Form::of(&std::array::from_fn(|i| line(i ^ 1)), WARP, 4), Form::Any, "permuted");
        assert_eq!(
            Form::of(&std::array::from_fn(|i| line(i).wrapping_sub(0x1040)), WARP, 4),
            Form::Any,
            "over the end"
        );
    }

    proptest! {
        #[test]
        fn every_lane_is_served_once_and_its_bytes_are_covered(
            base in prop::array::uniform32(0u64..64), lanes in 1u32.., shift in 0u32..5,
            rule in prop::sample::select(&[Rule::WarpSectored, Rule::WarpBySector, Rule::HalfWarpLegacy][..])
        ) {
            let bytes = 1 << shift;
            let mut address = [u64::MAX; 64];
            for (a, b) in address.iter_mut().zip(base) {
                *a = 0x4000 + b * 16 / u64::from(bytes) * u64::from(bytes);
            }
            let mut out = Vec::new();
            coalesce(rule, &address, u64::from(lanes), bytes, 128, &mut out);
            let mut served = 0u64;
            for access in &out {
                prop_assert_eq!(served & access.lanes, 0);
                prop_assert!(rule != Rule::WarpBySector || access.sectors.count_ones() == 1);
                served |= access.lanes;
                for lane in (0..64).filter(|l| access.lanes >> l & 1 == 1) {
                    let touched = sectors_at(address[lane] - access.line, bytes);
                    prop_assert_eq!(address[lane] & !127, access.line);
                    prop_assert_eq!(touched & !access.sectors, 0);
                }
            }
            prop_assert_eq!(served, u64::from(lanes));
        }
    }
}
