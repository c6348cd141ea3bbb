//! Partitions of the chip: each has GPCs one after another, and slices one after another with their
//! controllers.
//!
//! ```text
//!   SM ── hop ────────────────────> slice of its partition
//!   SM ── hop, crossbar.far_cycles ──> slice of another, and as much more on the way back
//! ```
//! Everything between an SM and a slice takes the longer way, so that links stay FIFO. The command processor
//! is as near to all slices.
//!
//! Source: FlashGPU-Sim (`-gpgpu_l2_partition_count`, `-gpgpu_l2_partition_extra_latency`): SMs and slices in
//! two contiguous parts. "Dissecting the Ampere GPU Architecture through Microbenchmarking" (GTC 2021, by
//! notes of the talk): a read from the far partition of an A100 takes 1.75 times as long.
//! Invariant: an SM and the port of its GPC are in one partition. Not modelled: copies of far lines in the
//! near partition, which an A100 makes; a bound on what goes from one to the other.

use durawarp_engine::Time;

use super::gpc::Gpcs;

/// The partitions of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions {
    count: u16,
    slices: u16,
    gpcs: Gpcs,
    far: Time,
}

impl Partitions {
    /// `count` partitions of the slices and of the GPCs; without GPCs, of the SMs. The way to another one,
    /// and the way back, are `far` longer.
    pub fn new(count: u16, slices: u16, sms: u16, gpcs: u16, far: Time) -> Self {
        Partitions { count, slices, gpcs: Gpcs::new(sms, if gpcs == 0 { count } else { gpcs }), far }
    }

    /// By how much the way between an SM and a slice is longer.
    pub fn between(self, sm: u16, slice: u16) -> Time {
        self.from_gpc(self.gpcs.of(sm), slice)
    }

    /// By how much the way between the port of a GPC and a slice is longer.
    pub fn from_gpc(self, gpc: u16, slice: u16) -> Time {
        if self.nth(gpc, self.gpcs.count()) == self.nth(slice, self.slices) { 0 } else { self.far }
    }

    /// The partition of number `index` of `of` GPCs, or of as many slices.
    fn nth(self, index: u16, of: u16) -> u16 {
        (u32::from(index) * u32::from(self.count) / u32::from(of)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpcs_and_slices_are_dealt_out_one_after_another() {
        // 132 SMs in 8 GPCs, two of 18 and six of 16: the first four GPCs have 68.
        let halves = Partitions::new(2, 80, 132, 8, 7);
        assert_eq!((halves.between(0, 39), halves.between(0, 40)), (0, 7));
        assert_eq!(
            (halves.between(67, 39), halves.between(68, 39)),
            (0, 7),
            "the last SM of GPC 3, the first of GPC 4"
        );
        assert_eq!((halves.between(131, 39), halves.between(131, 79)), (7, 0));
        assert_eq!((halves.from_gpc(3, 39), halves.from_gpc(4, 39)), (0, 7));
        // Every SM is where its GPC is, and near to one partition's slices only.
        for sm in 0..132 {
            let gpc = Gpcs::new(132, 8).of(sm);
            let near: Vec<u16> = (0..80).filter(|&slice| halves.between(sm, slice) == 0).collect();
            assert!((0..80).all(|slice| halves.between(sm, slice) == halves.from_gpc(gpc, slice)));
            assert_eq!(near, (0..40).map(|nth| gpc / 4 * 40 + nth).collect::<Vec<_>>(), "sm{sm}");
        }
    }

    #[test]
    fn sms_without_gpcs_are_dealt_out_in_pairs_and_one_partition_is_near() {
        let halves = Partitions::new(2, 4, 8, 0, 7);
        assert_eq!([0, 3, 4, 7].map(|sm| halves.between(sm, 0)), [0, 0, 7, 7]);
        let one = Partitions::new(1, 4, 8, 0, 7);
        assert!((0..8).all(|sm| (0..4).all(|slice| one.between(sm, slice) == 0)));
    }
}
