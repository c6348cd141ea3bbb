//! How many CTAs of a launch an SM holds at once, and which resource says so.
//!
//! | resource | a CTA takes | an SM has |
//! |---|---|---|
//! | CTA slots | 1 | `sm.ctas` |
//! | warps, threads | its own | `sm.warps`, `sm.threads` |
//! | registers | its warps | (registers of a part / registers of a warp) x parts, in warps |
//! | shared memory | its bytes and `reserved_bytes`, in whole `unit_bytes` | `shared.kb`, or what the program wishes |
//!
//! Registers of a warp are those of its lanes, in whole `register_unit`; all of them lie in one part of the
//! register file, so that the rest of each part is lost. Source: NVIDIA's occupancy rules
//! (`cuda_occupancy.h`: granularities of registers and shared memory, sub-partitions, reserved shared
//! memory), and CUDA C++ Programming Guide, hardware implementation; an H200 answers the same
//! (`tests/machine/occupancy.rs`). Invariant: at least one resource is exhausted by one more CTA. Not
//! modelled: partitioned global caching of Maxwell and Pascal.

use durawarp_checkpoint::value;
use durawarp_kernel::launch::Launch;

use super::l1::L1Spec;
use super::shared_memory::SharedSpec;
use super::sm::SmSpec;

/// How many CTAs of a launch an SM holds at once, and what limits it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Occupancy {
    pub ctas: u32,
    /// The scarcest resource: "ctas", "warps", "threads", "registers" or "shared memory".
    pub limit: String,
}

value!(record Occupancy { ctas, limit });

/// Resources of an SM, in the order of the table.
const RESOURCES: usize = 5;

/// What a CTA of a launch takes of an SM, and what there is of it for the launch.
#[derive(Debug, Clone, Default)]
pub struct Demand {
    taken: [u32; RESOURCES],
    available: [u32; RESOURCES],
    /// Of memory that L1 and shared memory have together: KiB of shared memory in the launch's own split, and
    /// ways that are left to the L1.
    split: Option<(u32, u32)>,
}

value!(record Demand { taken, available, split });

/// What CTAs have taken of an SM.
#[derive(Debug, Clone, Default)]
pub struct SmLoad {
    taken: [u32; RESOURCES],
    /// KiB of shared memory as the SM splits its memory now, and ways of the L1.
    split: Option<(u32, u32)>,
}

value!(record SmLoad { taken, split });

/// A resource of an SM: what a CTA takes of it, and what there is.
struct Resource {
    name: &'static str,
    taken: u32,
    available: u32,
}

impl Resource {
    fn ctas(&self) -> u32 {
        self.available.checked_div(self.taken).unwrap_or(u32::MAX)
    }
}

impl Occupancy {
    /// The occupancy of a launch on an SM.
    ///
    /// # Errors
    /// A sentence that says what a single CTA needs and the SM lacks.
    pub fn of(launch: &Launch, sm: &SmSpec, shared: &SharedSpec, l1: &L1Spec) -> Result<Self, String> {
        Occupancy::with_demand(launch, sm, shared, l1).map(|(occupancy, _)| occupancy)
    }

    /// The same, with what each CTA takes.
    ///
    /// # Errors
    /// As for [`Occupancy::of`].
    pub fn with_demand(
        launch: &Launch,
        sm: &SmSpec,
        shared: &SharedSpec,
        l1: &L1Spec,
    ) -> Result<(Self, Demand), String> {
        let warps = launch.warps_per_cta(sm.warp_size);
        let per_warp = (launch.registers_per_thread * sm.warp_size).next_multiple_of(sm.register_unit);
        // What is left of a part when it holds no further warp is lost.
        let part = sm.registers / sm.register_partitions;
        let usable = part.checked_div(per_warp).unwrap_or(0) * per_warp * sm.register_partitions;
        // A program's wish bounds shared memory where that is one with the L1.
        let wish = launch.carveout_percent.filter(|_| l1.kb == 0);
        let wished = wish.and_then(|percent| shared.wished_kb(percent, launch.shared_bytes));
        let shared_kb = wished.unwrap_or(shared.kb).min(shared.kb);
        let of = |name, taken, available| Resource { name, taken, available };
        let resources = [
            of("ctas", 1, sm.ctas),
            of("warps", warps, sm.warps),
            of("threads", launch.threads_per_cta(), sm.threads),
            of("registers", warps * per_warp, usable),
            of("shared memory", shared.taken_bytes(launch.shared_bytes), shared_kb * 1024),
        ];
        let Some(scarcest) = resources.iter().min_by_key(|resource| resource.ctas()) else {
            unreachable!("there are five");
        };
        if scarcest.ctas() > 0 {
            let demand = Demand {
                taken: resources.each_ref().map(|resource| resource.taken),
                available: resources.each_ref().map(|resource| resource.available),
                split: None,
            };
            return Ok((Occupancy { ctas: scarcest.ctas(), limit: scarcest.name.to_owned() }, demand));
        }
        let Resource { name, taken, available } = scarcest;
        let note = match *name {
            "shared memory" => {
                let (asked, reserved, unit) = (launch.shared_bytes, shared.reserved_bytes, shared.unit_bytes);
                format!(" bytes ({asked}, and {reserved} reserved, in units of {unit})")
            }
            "registers" => format!(" in {warps} warps of {per_warp}"),
            _ => String::new(),
        };
        let has = match *name {
            "registers" => format!("{} parts of {part}", sm.register_partitions),
            _ => available.to_string(),
        };
        Err(format!("a CTA of kernel `{}` needs {taken} {name}{note} and an SM has {has}", launch.kernel.name))
    }
}

impl Demand {
    /// What a CTA takes of each resource, and what there is.
    #[cfg(test)]
    pub(super) fn of_shares(taken: [u32; RESOURCES], available: [u32; RESOURCES]) -> Self {
        Demand { taken, available, split: None }
    }

    /// The same of a launch that has an SM split its memory: KiB of shared memory, and ways of the L1.
    #[must_use]
    pub fn with_split(self, shared_kb: u32, l1_ways: u32) -> Self {
        Demand { split: Some((shared_kb, l1_ways)), ..self }
    }

    /// Ways of the L1 in its own split, where it has one.
    pub fn l1_ways(&self) -> Option<u32> {
        self.split.map(|(_, ways)| ways)
    }
}

impl SmLoad {
    fn is_empty(&self) -> bool {
        self.taken[0] == 0
    }

    /// Another CTA has room.
    pub fn fits(&self, demand: &Demand) -> bool {
        // Shared memory is the last: of it there is what the split leaves, which an empty SM may change.
        let split = if self.is_empty() { demand.split } else { self.split };
        let mut available = demand.available;
        if let Some((shared_kb, _)) = split {
            available[RESOURCES - 1] = shared_kb * 1024;
        }
        (0..RESOURCES).all(|of| demand.taken[of] == 0 || self.taken[of] + demand.taken[of] <= available[of])
    }

    /// An SM without CTAs splits its memory as a launch has it.
    pub fn split(&mut self, demand: &Demand) {
        self.split = demand.split;
    }

    /// A CTA takes its share. True where the SM splits its memory anew for it.
    pub fn take(&mut self, demand: &Demand) -> bool {
        let splits = self.is_empty() && self.split != demand.split;
        if splits {
            self.split = demand.split;
        }
        (0..RESOURCES).for_each(|of| self.taken[of] += demand.taken[of]);
        splits
    }

    /// A CTA gives its share back.
    pub fn give(&mut self, demand: &Demand) {
        (0..RESOURCES).for_each(|of| self.taken[of] -= demand.taken[of]);
    }
}
