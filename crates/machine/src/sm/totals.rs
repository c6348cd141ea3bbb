//! Everything that an SM has counted, in one place: the parts count for themselves.

use durawarp_kernel::ir::Class;

use super::SmCounters;
use super::core::IssueCore;
use super::memory_side::MemorySide;
use super::record::Record;
use super::wait::Account;

/// What an SM has counted.
pub(super) fn counted(core: &IssueCore, memory: &MemorySide, record: &Record) -> SmCounters {
    let n = &core.class_counts;
    let of = |class: Class| n[class as usize];
    let a = &core.accounts;
    let total = |account: Account| a.total(account, &core.slots);
    SmCounters {
        warp_instructions: n.iter().sum(),
        int_instructions: of(Class::Int),
        int_mul_instructions: of(Class::IntMul),
        int_div_instructions: of(Class::IntDiv),
        logic_instructions: of(Class::Logic),
        compare_instructions: of(Class::Compare),
        min_max_instructions: of(Class::MinMax),
        convert_instructions: of(Class::Convert),
        fp32_instructions: of(Class::Fp32),
        fp32_div_instructions: of(Class::Fp32Div),
        fp64_instructions: of(Class::Fp64),
        fp64_div_instructions: of(Class::Fp64Div),
        sfu_instructions: of(Class::Sfu),
        shuffle_instructions: of(Class::Shuffle),
        vote_instructions: of(Class::Vote),
        const_instructions: of(Class::Const),
        memory_instructions: of(Class::Mem),
        control_instructions: of(Class::Control),
        // What the parts count themselves: the network its bytes, the accounts the cycles and issue slots.
        bytes_out: memory.port.network.bytes_out,
        bytes_in: memory.port.network.bytes_in,
        active_cycles: a.active_cycles(),
        slots_resident: a.resident(&core.slots),
        slots_issued: a.issued,
        slots_not_selected: a.not_selected,
        slots_unit_busy: a.unit_busy,
        slots_memory_full: a.memory_full,
        slots_execution: total(Account::Execution),
        slots_memory: total(Account::Memory),
        slots_barrier: total(Account::Barrier),
        slots_fence: total(Account::Fence),
        slots_persist: total(Account::Persist),
        slots_draining: total(Account::Draining),
        // All others are counted in the record, where they happen.
        ..record.counters
    }
}

/// The CTA that has just ended may have been the last of the launch that the SM counts for: it counts for the
/// earliest of the others from now on.
pub(super) fn count_for_resident(core: &IssueCore, memory: &MemorySide, record: &mut Record) {
    let resident = || core.ctas.iter().filter(|cta| !cta.is_free()).map(|cta| cta.launch);
    if !record.by_kernel.has_several() || resident().any(|place| record.by_kernel.counts_for(place)) {
        return;
    }
    if let Some(place) = resident().min_by_key(|&place| record.launch(place)) {
        let now = counted(core, memory, record);
        record.by_kernel.count_for(place, now);
    }
}
