//! GPCs: groups of SMs, within which the CTAs of a cluster lie and shared memory of another SM is reached.
//!
//! SMs are numbered GPC by GPC, in pairs (TPCs). Where TPCs do not divide evenly, the first GPCs have one
//! more: 132 SMs in 8 GPCs are two of 18 and six of 16, as NVIDIA says of H100. Not modelled: that hardware
//! deals numbers of SMs out over GPCs.

use std::ops::Range;

/// SMs of a TPC.
const PAIR: u32 = 2;

/// The SMs of a machine, in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpcs {
    sms: u16,
    count: u16,
}

impl Gpcs {
    /// `sms` SMs in `count` GPCs; 0 GPCs on a machine without.
    pub fn new(sms: u16, count: u16) -> Self {
        Gpcs { sms, count }
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        self.count
    }

    /// The SMs of a GPC.
    pub fn sms_of(self, gpc: u16) -> Range<u16> {
        let tpcs = u32::from(self.sms).div_ceil(PAIR);
        let (each, more) = (tpcs / u32::from(self.count), tpcs % u32::from(self.count));
        let first = |gpc: u32| (PAIR * (each * gpc + more.min(gpc))).min(self.sms.into()) as u16;
        first(gpc.into())..first(u32::from(gpc) + 1)
    }

    /// The GPC of an SM. O(1).
    pub fn of(self, sm: u16) -> u16 {
        let (tpcs, tpc) = (u32::from(self.sms).div_ceil(PAIR), u32::from(sm) / PAIR);
        let (each, more) = (tpcs / u32::from(self.count), tpcs % u32::from(self.count));
        let of_larger = more * (each + 1);
        (if tpc < of_larger { tpc / (each + 1) } else { more + (tpc - of_larger) / each }) as u16
    }

    /// The SMs of all GPCs.
    pub fn iter(self) -> impl Iterator<Item = Range<u16>> {
        (0..self.count).map(move |gpc| self.sms_of(gpc))
    }

    /// The SMs of the GPC of an SM; none without GPCs.
    pub fn around(self, sm: u16) -> Option<Range<u16>> {
        self.iter().find(|sms| sms.contains(&sm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sms_are_dealt_out_in_pairs_and_the_first_gpcs_have_more() {
        let sizes = |sms, count| Gpcs::new(sms, count).iter().map(|sms| sms.len()).collect::<Vec<_>>();
        assert_eq!(sizes(132, 8), [18, 18, 16, 16, 16, 16, 16, 16]);
        assert_eq!((sizes(7, 2), sizes(2, 3), sizes(8, 0)), (vec![4, 3], vec![2, 0, 0], vec![]));
        let gpcs = Gpcs::new(132, 8);
        assert_eq!((gpcs.around(17), gpcs.around(18), gpcs.around(131)), (Some(0..18), Some(18..36), Some(116..132)));
        assert_eq!(Gpcs::new(8, 0).around(0), None);
        for gpcs in [gpcs, Gpcs::new(7, 2), Gpcs::new(2, 3), Gpcs::new(170, 11)] {
            (0..gpcs.sms).for_each(|sm| assert!(gpcs.sms_of(gpcs.of(sm)).contains(&sm), "{sm} of {gpcs:?}"));
        }
    }
}
