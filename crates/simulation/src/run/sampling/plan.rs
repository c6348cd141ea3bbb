//! Which launches and which waves of CTAs a sampled run simulates in detail. Pure decisions over counts, so
//! that they are the same on every host.
//!
//! ```text
//!   launches of one kernel and size:   D D D D D . . w D . . . w D . . . . . w D
//!   waves of a launch of many waves:   H H H a . . w S S a . . . w S S a . . w T
//!
//!   D detail, w warm-up, a under way after what counts, . functional, H head, S sample, T tail
//! ```
//! *Launches* of the same kernel, grid and block form a group. The first few run in detail, then one after
//! each growth of the group by half, where what lies between is worth it; of launches that are cut the first
//! two, then one after each doubling. *A launch of many waves* that runs in detail is cut: its first waves,
//! samples, and its last one or two waves with what follows. The machine runs these CTAs one after the other,
//! as if there were none between: it stays full, and its caches, queues and open rows stay as they are. So
//! one wave of warm-up is enough. What is under way when the last CTAs of a sample end has to be of its
//! place, too: CTAs from elsewhere there made estimates 3 to 4 % too slow (measured without the wave `a`).
//!
//! The unit of lengths is the *turnover*: the waves that fill the L2 once, counted by a probe, the first two
//! waves of the group's first cut launch on a machine of its own. Lines of one wave leave the L2 together, a
//! turnover after they came, and those that are dirty are written then: what is bound by writes is fast and
//! slow in turns of a turnover (measured of `stream_triad`: three waves in four take 0.83 of the mean, the
//! fourth 1.43). A sample is one turnover long, so that it has all of a turn. A machine that begins empty
//! writes nothing back at first; its first head is two turnovers long, later ones one.
//!
//! The launch between head and tail is divided into as many equal parts as there are samples. Where in its
//! part a sample lies goes by steps of the golden ratio, so that no period of the program meets that of
//! samples.
//!
//! Kernels whose CTAs may wait for each other are not cut: [`waits_for_ctas`] says why.

use std::ops::Range;

use super::detail::CountedPart;
use durawarp_kernel::ir::{CacheOp, Gathering, Kernel, MemKind, Op, Space};

/// Launches of a group that run in detail before any is skipped. Chosen: a line needs five units.
const FIRST_LAUNCHES: u64 = 5;

/// What it costs to go on in detail after a launch that was skipped, in warp instructions of detail: new
/// contents of the machine's caches, and copying memory, by its bytes. Chosen: some 400 ns an instruction,
/// 20 ms for caches and queues of a large machine, 2 ns a byte.
const DETAIL_INSTRUCTIONS: u64 = 50_000;
const BYTES_AN_INSTRUCTION: u64 = 200;

/// Waves that a sampled launch has at least, in units of the waves that it simulates. Chosen.
const WORTH_CUTTING: f64 = 1.5;

/// Waves of a probe: the first fills the SMs.
pub(super) const PROBE_WAVES: u64 = 2;

/// Waves of a sample: two at least, as CTAs of one wave end together; at most so many, as a kernel whose
/// turnover is longer brings little into the L2. Chosen.
const LEAST_SAMPLE_WAVES: u64 = 2;
const MOST_SAMPLE_WAVES: u64 = 8;

/// In thousandths.
const GOLDEN_RATIO: u64 = 618;

/// Waves before a sample, and before the tail, that are not counted. Chosen: two made estimates no better.
const WARM_WAVES: u64 = 1;

/// The launches of one kernel, grid and block.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) kernel: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Why its launches are not cut, where that is so.
    pub(super) uncut: Option<&'static str>,
    /// Waves that fill the L2, once that was probed.
    pub(super) turnover: Option<u64>,
    /// Launches so far.
    pub(super) count: u64,
    /// The next that runs in detail.
    pick: u64,
}

impl Group {
    pub(super) fn new(kernel: &Kernel, grid: [u32; 3], block: [u32; 3]) -> Self {
        Group {
            kernel: kernel.name.clone(),
            grid,
            block,
            uncut: waits_for_ctas(kernel),
            turnover: None,
            count: 0,
            pick: 0,
        }
    }

    /// Whether launch `index` of the group, from 0, runs in detail.
    pub(super) fn picks(&self, index: u64) -> bool {
        index == self.pick
    }

    /// The picked launch had so many warp instructions, and was cut or not; memory has `bytes` bytes.
    pub(super) fn learn(&mut self, instructions: u64, was_cut: bool, bytes: u64) {
        let gap = match was_cut {
            true => self.pick + 1,
            false if self.pick < FIRST_LAUNCHES - 1 => 1,
            false => self.pick / 2,
        };
        // Of a gap the last launch warms up the next; what is cut warms up by itself.
        let skipped = if was_cut { gap - 1 } else { gap.saturating_sub(2) };
        let saved = instructions.saturating_mul(skipped);
        let worth = saved > DETAIL_INSTRUCTIONS + bytes / BYTES_AN_INSTRUCTION;
        self.pick += if worth { gap } else { 1 };
    }
}

/// How a launch of many waves is cut. Waves are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// CTAs that all SMs hold at once.
    pub(super) wave_ctas: u64,
    /// Waves of the head.
    pub(super) head: u64,
    /// Waves before each sample, and before the tail, that are not counted.
    pub(super) warm: u64,
    /// The first wave of each sample, rising.
    pub(super) samples: Vec<u64>,
    pub(super) sample_waves: u64,
    /// The first wave of the tail, which has one to two.
    pub(super) tail: u64,
    /// All CTAs.
    pub(super) ctas: u64,
}

impl Cut {
    /// The longest cut that may be worth it: whether a probe is.
    pub(super) fn may_be(ctas: u64, wave_ctas: u64, samples: u64) -> bool {
        Cut::of(ctas, wave_ctas, LEAST_SAMPLE_WAVES, false, samples).is_some()
    }

    /// The cut of a launch of `ctas` CTAs, of which `turnover` waves fill the L2, with so many samples; none
    /// where it is not worth it.
    pub(super) fn of(ctas: u64, wave_ctas: u64, turnover: u64, begins_empty: bool, samples: u64) -> Option<Cut> {
        let turnover = turnover.clamp(LEAST_SAMPLE_WAVES, MOST_SAMPLE_WAVES);
        let head = if begins_empty { 2 * turnover } else { turnover };
        let (warm, sample_waves) = (WARM_WAVES, turnover);
        // After what is counted comes a wave of its own place, which is under way when the last CTAs counted
        // end.
        let of_sample = warm + sample_waves + 1;
        let detail = head + 1 + samples * of_sample + warm + 2;
        if (ctas as f64) < WORTH_CUTTING * (detail * wave_ctas) as f64 {
            return None;
        }
        let tail = ctas / wave_ctas - 1;
        let (first, last) = (head + 1 + warm, tail - warm);
        let stratum = (last - first) / samples;
        let within = |sample: u64| (stratum - of_sample) * (sample * GOLDEN_RATIO % 1000) / 1000;
        let samples = (0..samples).map(|sample| first + sample * stratum + within(sample)).collect();
        Some(Cut { wave_ctas, head, warm, samples, sample_waves, tail, ctas })
    }

    /// The CTAs that run, in their order, and what counts of them.
    pub(super) fn parts(&self) -> (Vec<Range<u64>>, CountedPart) {
        let &Cut { wave_ctas, head, warm, ref samples, sample_waves, tail, ctas } = self;
        let mut before = (head + 1) * wave_ctas;
        let first = 0..before;
        let mut ranges = vec![first];
        let mut windows = Vec::new();
        for &sample in samples {
            let range = (sample - warm) * wave_ctas..(sample + sample_waves + 1) * wave_ctas;
            let first = before + warm * wave_ctas;
            windows.push(first..first + sample_waves * wave_ctas);
            before += range.end - range.start;
            ranges.push(range);
        }
        ranges.push((tail - warm) * wave_ctas..ctas);
        let tail = before + warm * wave_ctas;
        (ranges, CountedPart::Cut { head: head * wave_ctas, samples: windows, tail })
    }
}

/// Waves that fill an L2 of so many lines, where a probe brought `lines` lines in.
pub(super) fn turnover(l2_lines: u64, lines: u64) -> u64 {
    let of_wave = (lines as f64 / PROBE_WAVES as f64).max(1.0);
    (l2_lines as f64 / of_wave).round() as u64
}

/// Why CTAs of a kernel may wait for each other, so that a part of them may never end by itself; none where
/// they cannot.
///
/// Conservative: a loop anywhere in a kernel that reads global memory past the L1, or takes the old value
/// of an atomic, may be one that waits.
fn waits_for_ctas(kernel: &Kernel) -> Option<&'static str> {
    let gathers = |op: &Op| matches!(op, Op::Pm(pm) if pm.gathers() == Some(Gathering::Grid));
    if kernel.code.iter().any(|inst| gathers(&inst.op)) {
        return Some("its CTAs meet at persist barriers of the kernel");
    }
    if kernel.code.iter().any(|inst| matches!(inst.op, Op::Cluster(_))) {
        return Some("its CTAs meet at barriers of clusters");
    }
    let backward = |(pc, op): (usize, &Op)| matches!(op, Op::Branch { target, .. } if *target as usize <= pc);
    let loops = kernel.code.iter().map(|inst| &inst.op).enumerate().any(backward);
    let reads_others = |op: &Op| match op {
        Op::Mem(mem) if matches!(mem.space, Space::Global | Space::Generic) => match mem.kind {
            MemKind::Atomic => true,
            MemKind::Load => mem.cache == CacheOp::Volatile,
            _ => false,
        },
        _ => false,
    };
    (loops && kernel.code.iter().any(|inst| reads_others(&inst.op))).then_some(
        "it has a loop, and reads what other CTAs may write meanwhile (atomics with a result, volatile loads)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::ptx;

    /// Launches of 200 that run in detail.
    fn picked(instructions: u64, cut: bool, bytes: u64) -> Vec<u64> {
        let module = ptx::parse("k.ptx", ".version 8.0 .visible .entry k() { ret; }").unwrap();
        let mut group = Group::new(&module.kernels[0], [1; 3], [32, 1, 1]);
        let mut picked = Vec::new();
        for index in 0..200 {
            if group.picks(index) {
                picked.push(index);
                group.learn(instructions, cut, bytes);
            }
        }
        picked
    }

    #[test]
    fn samples_of_a_group_are_ever_rarer() {
        assert_eq!(picked(1 << 20, true, 0), [0, 1, 3, 7, 15, 31, 63, 127]);
        assert_eq!(picked(1 << 20, false, 0), [0, 1, 2, 3, 4, 5, 6, 9, 13, 19, 28, 42, 63, 94, 141]);
    }

    #[test]
    fn launches_that_cost_less_than_going_on_in_detail_are_not_skipped() {
        assert_eq!(picked(10, false, 0).len(), 200);
        // 100 MB to copy stand for half a million instructions: skipping begins where a gap holds more.
        let large = picked(100_000, false, 100 << 20);
        assert!(large.len() < 40 && large.starts_with(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]));
    }

    #[test]
    fn a_cut_has_head_samples_and_tail_and_nothing_overlaps() {
        let cut = Cut::of(1036, 10, 3, true, 4).unwrap();
        let samples = vec![8, 42, 58, 92];
        assert_eq!(cut, Cut { wave_ctas: 10, head: 6, warm: 1, samples, sample_waves: 3, tail: 102, ctas: 1036 });
        let (ranges, counted) = cut.parts();
        assert_eq!(ranges, [0..70, 70..120, 410..460, 570..620, 910..960, 1010..1036]);
        let samples = [80, 130, 180, 230].map(|from| from..from + 30).to_vec();
        assert_eq!(counted, CountedPart::Cut { head: 60, samples, tail: 280 });
        assert_eq!(Cut::of(440, 10, 3, true, 4), None, "30 waves of detail for 44");
    }

    #[test]
    fn no_cut_has_parts_that_overlap_or_come_out_of_order() {
        for (ctas, turnover, samples) in (40..900).flat_map(|ctas| [(ctas, 1, 2), (ctas, 5, 4), (ctas, 99, 7)]) {
            let Some(cut) = Cut::of(ctas * 7 + 3, 7, turnover, ctas % 2 == 0, samples) else { continue };
            let (ranges, _) = cut.parts();
            assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{cut:?}");
            assert_eq!((cut.samples.len() as u64, ranges.last().unwrap().end), (samples, ctas * 7 + 3));
        }
    }

    #[test]
    fn a_turnover_is_what_fills_the_l2() {
        assert_eq!(turnover(16_384, 7_680), 4, "3,840 lines a wave");
        assert_eq!(turnover(16_384, 0), 16_384);
    }

    #[test]
    fn kernels_that_may_wait_for_others_are_told_by_their_code() {
        let why = |body: &str| {
            let text = format!(
                ".version 8.0 .visible .entry k(.param .u64 a) {{ .reg .u64 %a; .reg .u32 %v; .reg .pred %p;
                 ld.param.u64 %a, [a]; {body} ret; }}"
            );
            let module = ptx::parse("k.ptx", &text).unwrap();
            waits_for_ctas(&module.kernels[0])
        };
        let spin = "L: ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 0; @%p bra L;";
        assert!(why(spin).is_some());
        assert!(why("pm.barrier.kr;").is_some());
        assert_eq!(why(&spin.replace(".volatile", "")), None, "a loop over plain loads");
        assert_eq!(why("atom.global.add.u32 %v, [%a], 1;"), None, "no loop");
        assert_eq!(why("L: red.global.add.u32 [%a], 1; setp.eq.u32 %p, %v, 0; @%p bra L;"), None, "no result");
    }
}
