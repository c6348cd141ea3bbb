//! Which launches and which waves of CTAs a sampled run simulates in detail. Pure decisions over counts, so
//! that they are the same on every host.
//!
//! ```text
//!   launches of one kernel and size:   D D D D D . . w D . . . w D . . . . . w D
//!   waves of a launch of many waves:   H H . . w w S . . . w w S . . . w w S . . w w T
//!
//!   D detail, w warm-up, . functional, H head, S sample, T tail
//! ```
//! *Launches* of the same kernel, grid and block form a group. The first few run in detail, then one after
//! each growth of the group by half (of launches that are cut: each doubling), where what lies between is
//! worth it. *A launch of many waves* that runs in detail is cut: its first waves, evenly spaced sampled
//! waves, and its last one or two with what follows. Samples and tail begin some waves early, which are not
//! counted.
//!
//! How many waves warm up follows from a probe, the first wave of the group's first cut launch on an empty
//! machine: as many as fill the L2 `FILLS` times with the lines that a wave brings into it. An L2 that is not
//! full of dirty lines writes nothing back, so that a kernel that streams would look faster than it is. The
//! head has as many: it is what happens before.
//!
//! Kernels whose CTAs may wait for each other are not cut: [`waits_for_ctas`] says why.

use crate::kernel::ir::{CacheOp, Gathering, Kernel, MemKind, Op, Space};

/// Launches of a group that run in detail before any is skipped. Chosen: a line needs five units.
const FIRST_LAUNCHES: u64 = 5;

/// What a stretch of detail costs beside its instructions, in warp instructions of detail: assembling a
/// machine, and copying memory, by its bytes. Chosen: some 400 ns an instruction, 20 ms a machine, 2 ns a
/// byte.
const MACHINE_INSTRUCTIONS: u64 = 50_000;
const BYTES_AN_INSTRUCTION: u64 = 200;

/// Waves that a sampled launch has at least, in units of the waves that it simulates. Chosen.
const WORTH_CUTTING: f64 = 1.5;

/// How often the warm-up fills the L2. Chosen.
const FILLS: f64 = 2.5;

/// Waves that warm up: two at least, as the first fills the SMs and says nothing of how fast CTAs end; at
/// most so many, as a kernel that needs more brings little into the L2. Chosen.
const LEAST_WARM_WAVES: u64 = 2;
const MOST_WARM_WAVES: u64 = 16;

/// The launches of one kernel, grid and block.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) kernel: String,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Why its launches are not cut, where that is so.
    pub(super) uncut: Option<&'static str>,
    /// Waves that warm up its launches, once that was probed.
    pub(super) warm: Option<u64>,
    /// Launches so far.
    pub(super) count: u64,
    /// The next that runs in detail.
    pick: u64,
}

impl Group {
    pub(super) fn new(kernel: &Kernel, grid: [u32; 3], block: [u32; 3]) -> Self {
        Group { kernel: kernel.name.clone(), grid, block, uncut: waits_for_ctas(kernel), warm: None, count: 0, pick: 0 }
    }

    /// Whether launch `index` of the group, from 0, runs in detail.
    pub(super) fn picks(&self, index: u64) -> bool {
        index == self.pick
    }

    /// The picked launch had so many warp instructions, and was cut or not; memory has `bytes` bytes.
    pub(super) fn learn(&mut self, instructions: u64, was_cut: bool, bytes: u64) {
        let gap = match was_cut {
            true => self.pick.max(1),
            false if self.pick < FIRST_LAUNCHES - 1 => 1,
            false => self.pick / 2,
        };
        // Of a gap the last launch warms up the next; what is cut warms up by itself.
        let skipped = if was_cut { gap - 1 } else { gap.saturating_sub(2) };
        let saved = instructions.saturating_mul(skipped);
        let worth = saved > MACHINE_INSTRUCTIONS + bytes / BYTES_AN_INSTRUCTION;
        self.pick += if worth { gap } else { 1 };
    }
}

/// How a launch of many waves is cut. Waves are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// CTAs that all SMs hold at once.
    pub(super) wave_ctas: u64,
    /// Waves of the head, and of each warm-up.
    pub(super) warm: u64,
    /// Waves that are sampled, rising.
    pub(super) sampled: Vec<u64>,
    /// The first wave of the tail, which has one to two.
    pub(super) tail: u64,
    /// All CTAs.
    pub(super) ctas: u64,
}

impl Cut {
    /// The longest cut that may be worth it: whether a probe is.
    pub(super) fn may_be(ctas: u64, wave_ctas: u64, windows: u64) -> bool {
        Cut::of(ctas, wave_ctas, LEAST_WARM_WAVES, windows).is_some()
    }

    /// The cut of a launch of `ctas` CTAs with `windows` samples; none where it is not worth it.
    pub(super) fn of(ctas: u64, wave_ctas: u64, warm: u64, windows: u64) -> Option<Cut> {
        // Of each part the machine stays full until the last counted CTA has ended: half a wave more.
        let head_and_tail = (warm as f64 + 0.5) + (warm as f64 + 2.5);
        let detail = head_and_tail + windows as f64 * (warm as f64 + 1.5);
        if (ctas as f64) < WORTH_CUTTING * detail * wave_ctas as f64 {
            return None;
        }
        let tail = ctas / wave_ctas - 1;
        let between = tail - warm;
        let sampled = (0..windows).map(|window| warm + (2 * window + 1) * between / (2 * windows)).collect();
        Some(Cut { wave_ctas, warm, sampled, tail, ctas })
    }
}

/// Waves that fill an L2 of so many lines, where a probe of `waves` waves brought `lines` of them in.
pub(super) fn warm_waves(l2_lines: u64, waves: f64, lines: u64) -> u64 {
    let of_wave = (lines as f64 / waves).max(1.0);
    ((FILLS * l2_lines as f64 / of_wave).ceil() as u64).clamp(LEAST_WARM_WAVES, MOST_WARM_WAVES)
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
    use crate::kernel::ptx;

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
        assert_eq!(picked(1 << 20, true, 0), [0, 1, 2, 4, 8, 16, 32, 64, 128]);
        assert_eq!(picked(1 << 20, false, 0), [0, 1, 2, 3, 4, 5, 6, 9, 13, 19, 28, 42, 63, 94, 141]);
    }

    #[test]
    fn launches_that_cost_less_than_a_machine_are_not_skipped() {
        assert_eq!(picked(10, false, 0).len(), 200);
        // 100 MB to copy stand for half a million instructions: skipping begins where a gap holds more.
        let large = picked(100_000, false, 100 << 20);
        assert!(large.len() < 40 && large.starts_with(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]));
    }

    #[test]
    fn a_cut_has_head_samples_and_tail_and_nothing_overlaps() {
        let cut = Cut::of(1036, 10, 3, 4).unwrap();
        assert_eq!(cut, Cut { wave_ctas: 10, warm: 3, sampled: vec![15, 40, 64, 89], tail: 102, ctas: 1036 });
        assert_eq!(Cut::of(400, 10, 3, 4), None, "27 waves of detail for 40");
    }

    #[test]
    fn as_many_waves_warm_up_as_fill_the_l2() {
        assert_eq!(warm_waves(16_384, 1.5, 6_000), 11, "4,000 lines a wave");
        assert_eq!([warm_waves(16_384, 1.0, 100_000), warm_waves(16_384, 1.0, 0)], [LEAST_WARM_WAVES, MOST_WARM_WAVES]);
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
