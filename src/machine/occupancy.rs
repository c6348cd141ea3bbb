//! How many CTAs of a launch an SM holds at once, and which resource says so.
//!
//! Source: CUDA C++ Programming Guide, hardware implementation (warps, CTAs, threads, registers, shared
//! memory). Invariant: at least one resource is exhausted by one more CTA. Not modelled: register allocation
//! by warp pairs.

use crate::checkpoint::value;
use crate::kernel::launch::Launch;

use super::shared_memory::SharedSpec;
use super::sm::SmSpec;

/// How many CTAs of a launch an SM holds at once, and what limits it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Occupancy {
    /// CTAs.
    pub ctas: u32,
    /// The scarcest resource: "ctas", "warps", "threads", "registers" or "shared memory".
    pub limit: String,
}

value!(record Occupancy { ctas, limit });

impl Occupancy {
    /// The occupancy of a launch on an SM.
    ///
    /// # Errors
    /// A sentence that says what a single CTA needs and the SM lacks.
    pub fn of(launch: &Launch, sm: &SmSpec, shared: &SharedSpec) -> Result<Self, String> {
        let threads = launch.threads_per_cta();
        let warps = launch.warps_per_cta(sm.warp_size);
        let per_warp = (launch.registers_per_thread * sm.warp_size).next_multiple_of(sm.register_unit);
        let needs: [(&str, u32, u32); 5] = [
            ("ctas", 1, sm.ctas),
            ("warps", warps, sm.warps),
            ("threads", threads, sm.threads),
            ("registers", per_warp * warps, sm.registers),
            ("shared memory", launch.shared_bytes, shared.kb * 1024),
        ];
        let fits = |need: u32, has: u32| has.checked_div(need).unwrap_or(u32::MAX);
        let Some((name, need, has)) = needs.into_iter().min_by_key(|&(_, need, has)| fits(need, has)) else {
            unreachable!("there are five");
        };
        let ctas = fits(need, has);
        if ctas == 0 {
            return Err(format!(
                "a CTA of kernel `{}` needs {need} {name}{} and an SM has {has}",
                launch.kernel.name,
                if name == "shared memory" { " bytes" } else { "" }
            ));
        }
        Ok(Occupancy { ctas, limit: name.to_owned() })
    }
}
