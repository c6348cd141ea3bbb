//! What a launch needs of the machine before it begins: that CTAs which wait for each other can all be
//! resident.
//!
//! Source: CUDA C++ Programming Guide, "Grid Synchronization" and "Thread Block Clusters". Not modelled:
//! CTAs that wait for each other otherwise, which end as a deadlock where they are not all resident.

use durawarp_kernel::launch::Launch;

use super::cta_dispatch::CtaDispatch;
use crate::occupancy::Occupancy;

/// A launch that is about to begin, and what the machine has for it.
pub(super) struct Admission<'a> {
    pub(super) launch: &'a Launch,
    pub(super) occupancy: &'a Occupancy,
    pub(super) ctas: &'a CtaDispatch,
}

impl Admission<'_> {
    /// Whether it may begin on a machine of `sms` SMs; `alone`: no other launch runs.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn admit(&self, sms: u32, alone: bool) -> Result<(), String> {
        if self.launch.kernel.is_cooperative() {
            self.admit_cooperative(sms, alone)?;
        }
        if self.launch.cluster_ctas() > 1 { self.admit_clusters() } else { Ok(()) }
    }

    /// CTAs that wait for each other by `grid.sync()` must all be resident, and count in one workspace.
    fn admit_cooperative(&self, sms: u32, alone: bool) -> Result<(), String> {
        let (name, grid) = (&self.launch.kernel.name, self.launch.ctas());
        let Occupancy { ctas, limit } = self.occupancy;
        let at_once = match self.launch.cluster_ctas() {
            1 => u64::from(*ctas) * u64::from(sms),
            of_cluster => self.ctas.most_in_clusters(of_cluster, *ctas),
        };
        if grid > at_once {
            let room = format!("{at_once} are resident at once ({sms} SMs with {ctas} each, limited by {limit})");
            return Err(format!("kernel `{name}` has a `grid.sync()` and {grid} CTAs, of which {room}"));
        }
        if alone {
            return Ok(());
        }
        Err(format!("kernel `{name}` has a `grid.sync()`, and another launch runs: let it begin after that"))
    }

    /// The CTAs of a cluster must all be resident, in one GPC.
    fn admit_clusters(&self) -> Result<(), String> {
        let (name, ctas) = (&self.launch.kernel.name, self.launch.cluster_ctas());
        if !self.ctas.has_gpcs() {
            return Err(format!(
                "kernel `{name}` has clusters of {ctas} CTAs, and this machine has no GPCs (`sm.gpcs` is 0): \
                 `hopper-h100` has"
            ));
        }
        if self.launch.kernel.is_of_pairs() && !self.ctas.have_two_sms() {
            return Err(format!("kernel `{name}` has pairs of CTAs (`.cta_group::2`), and no GPC has two SMs for one"));
        }
        let Occupancy { ctas: each, limit } = self.occupancy;
        if self.ctas.most_in_clusters(ctas, *each) > 0 {
            return Ok(());
        }
        Err(format!(
            "no GPC has room for a cluster of {ctas} CTAs of kernel `{name}`: an SM holds {each}, limited by {limit}"
        ))
    }
}
