//! What a persistency scheme learns of a kernel that starts: what the driver and the compiler know of it.
//!
//! Facts are static, from the launch and the program's text: nothing is known of branches, so a persist that
//! some warps skip counts as if all executed it, and of a trace their number is not known. Source: AGPM
//! sections III (reason h: shared memory) and IV-A (the number of log updates sets the first threshold).

use crate::coalescer::HALF_WARP;
use durawarp_kernel::ir::{ClusterStep, MemKind, Op, PmOp, Space, StoreHint};
use durawarp_kernel::launch::Launch;
use durawarp_persist::handler::KernelFacts;

/// The facts of a launch in a place, the `number`th of the program from 0.
pub(super) fn kernel_facts(launch: &Launch, (place, number): (u8, u32), warp_size: u32) -> KernelFacts {
    let code = &launch.kernel.code;
    let (mut writes, mut waits, mut reads) = (false, false, false);
    let (mut persists, mut log_write_backs) = (Vec::new(), Vec::new());
    let mut loops = Vec::new();
    for (pc, inst) in code.iter().enumerate() {
        match inst.op {
            Op::Mem(mem) if mem.space == Space::Shared => {
                writes |= !matches!(mem.kind, MemKind::Load | MemKind::Matrix(_));
                reads |= mem.kind != MemKind::Store;
            }
            Op::Mem(mem) if mem.kind == MemKind::Copy => writes = true,
            Op::Mem(mem) if mem.kind == MemKind::Store && mem.hint != StoreHint::Plain => persists.push(pc),
            Op::Pm(PmOp::Clwb | PmOp::ClflushOpt) => persists.push(pc),
            Op::Pm(PmOp::ClwbLog) => log_write_backs.push(pc),
            Op::Bulk(bulk) => {
                writes |= bulk.kind.completes();
                reads |= bulk.kind.reads_shared();
            }
            Op::Barrier(_) | Op::Cluster(ClusterStep::Wait) => waits = true,
            Op::Branch { target, .. } if target as usize <= pc => loops.push(target as usize..=pc),
            // A subroutine may run any number of times, and lies after the kernel's own code.
            Op::Call { target } => loops.push(target as usize..=code.len()),
            _ => {}
        }
    }
    // A trace has an instruction once in its code, however often its warps execute it.
    let repeated = launch.traced.is_some()
        || persists.iter().chain(&log_write_backs).any(|pc| loops.iter().any(|around| around.contains(pc)));
    KernelFacts {
        kernel: launch.kernel.name.clone(),
        place,
        launch: number,
        warps: launch.ctas() * u64::from(launch.warps_per_cta(warp_size)),
        shared_bytes: launch.shared_bytes,
        communicates: writes && waits && reads,
        stated_to_communicate: launch.communicates,
        flags: launch.flags.as_ref().map_or([0; 2], |flags| [flags.start, flags.end]),
        half_warps_per_warp: u64::from(warp_size.div_ceil(HALF_WARP)),
        persists_per_warp: (!repeated).then_some(persists.len() as u64),
        log_write_backs_per_warp: log_write_backs.len() as u64,
    }
}
