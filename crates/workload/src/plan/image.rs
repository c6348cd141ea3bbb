//! Global memory before the first step of a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::RunPlan;
use durawarp_kernel::memory::FlatMemory;

/// Every buffer as it is filled, every variable as its module has it, zeros elsewhere.
pub(crate) fn image(plan: &RunPlan) -> FlatMemory {
    let kept = plan.buffers.iter().filter(|buffer| buffer.address != 0);
    let mut kept: BTreeMap<u64, &Arc<Vec<u8>>> =
        kept.filter_map(|buffer| Some((buffer.address, buffer.kept()?))).collect();
    // A buffer with padding is a part of its range only.
    let whole = |start| plan.addresses.below(start).is_some_and(|range| range.front + range.behind == 0);
    let mut memory = FlatMemory::shared(&plan.addresses, |start| match whole(start) {
        true => kept.remove(&start).cloned(),
        false => None,
    });
    for (address, bytes) in kept {
        memory.write(address, bytes).expect("every buffer is allocated");
    }
    for (module, addresses) in plan.programs.modules.iter().zip(&plan.globals) {
        for (index, address) in addresses.iter().enumerate() {
            let bytes = module.initial_bytes(index, addresses);
            memory.write(*address, &bytes).expect("every variable is allocated");
        }
    }
    memory
}
