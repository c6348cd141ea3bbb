//! What the warps of an SM, its L1 and its miss queue wait for, said when nothing moves any more.
use durawarp_kernel::ir::Op;
use durawarp_kernel::launch::Launch;

use super::core::IssueCore;
use super::handler_host::SmHost;
use super::launches::LaunchTable;
use super::memory_side::MemorySide;
use super::record::Record;
use super::slots::WarpSlot;
use super::wait::Wait;

/// Reports every resident warp.
pub(super) fn report_warps(
    core: &IssueCore,
    launches: &LaunchTable,
    record: &Record,
    out: &mut Vec<durawarp_engine::Wait>,
) {
    for (index, slot) in core.slots.iter().enumerate().filter(|(_, s)| s.wait != Wait::NoWarp) {
        let launch = launches.of(slot);
        let kernel = &launch.kernel;
        let pos = kernel.pos.get(slot.warp.pc() as usize).copied().unwrap_or_default();
        let cta = core.ctas[usize::from(slot.cta)].cta;
        let who = format!("warp {index} of CTA {cta} at {}:{}:{}", kernel.file, pos.line, pos.column);
        let what = describe(core, index, slot, launch);
        out.push(durawarp_engine::Wait { who, what, on: None, since: record.time_of(slot.since) });
    }
}

fn describe(core: &IssueCore, index: usize, slot: &WarpSlot, launch: &Launch) -> String {
    let under_way = slot.under_way;
    match slot.wait {
        Wait::NoWarp => String::new(),
        Wait::Issue => match launch.kernel.code.get(slot.warp.pc() as usize).map(|i| i.op) {
            Some(Op::Mem(_) | Op::Bulk(_)) => "room in the load-store unit".to_owned(),
            _ => "its unit".to_owned(),
        },
        Wait::Latency => "a result of fixed latency".to_owned(),
        Wait::Register => "memory data for its next instruction's registers".to_owned(),
        // What goes on beside it, by groups.
        Wait::Copies(kept) => format!("its groups of asynchronous copies but the last {kept}"),
        Wait::Bulk(kept) => format!("its groups of bulk copies but the last {kept}"),
        Wait::BulkDurable => format!("{} bulk copies to be durable", under_way.bulk),
        Wait::BulkReads(kept) => format!("its groups of bulk copies but the last {kept} to read shared memory"),
        Wait::TensorMemory => core.tensor.describe(index),
        Wait::Phase => "the end of a phase of an `mbarrier`, which its trace awaits".to_owned(),
        Wait::Registers => core.ctas[usize::from(slot.cta)].registers.describe(index),
        Wait::Prerequisites => "the launches before its own in the stream to be over".to_owned(),
        Wait::Cluster => core.ctas[usize::from(slot.cta)].describe_cluster(),
        Wait::Barrier => core.ctas[usize::from(slot.cta)].describe_barrier(index, core.warp_size),
        // The warp's own accesses come first, then what its SM has combined for others, too.
        Wait::Performed(_) if under_way.is_performed() => {
            let storing = core.ctas[usize::from(slot.cta)].storing.count_ones();
            format!("what {storing} other warps stored before a barrier to be performed")
        }
        Wait::Performed(_) => {
            format!("{} stores and {} loads to be performed", under_way.stores, under_way.loads)
        }
        Wait::Released(_) => "what the L1 has combined to be performed".to_owned(),
        Wait::Durable { ordered, .. } => format!("{} persists to be durable", under_way.awaited(ordered)),
        Wait::Marker(_) => format!("{} persists to be durable", under_way.persists),
        Wait::Peers(_) => "a marker of its CTA or kernel".to_owned(),
        Wait::FrontEnd if under_way.copying > 0 => {
            format!("{} line accesses of its atomics and bulk stores, before its region ends", under_way.copying)
        }
        Wait::FrontEnd => "the front-end buffer: room, a region's ID, or its atomic's turn".to_owned(),
        Wait::Drained => {
            let (stores, loads, persists) = (under_way.stores, under_way.loads, under_way.persists);
            let bulk = if under_way.bulk > 0 { format!("{} bulk copies, ", under_way.bulk) } else { String::new() };
            format!("{bulk}{stores} stores, {loads} loads and {persists} persists after its exit")
        }
    }
}

/// Reports the handler, the L1 and the miss queue.
pub(super) fn report_memory(host: &SmHost, memory: &MemorySide, out: &mut Vec<durawarp_engine::Wait>) {
    for (who, what) in host.report().waits {
        out.push(durawarp_engine::Wait { who, what, on: None, since: 0 });
    }
    if let Some((dirty, left, stores)) = memory.leaving.order.as_ref().and_then(|order| order.waiting()) {
        out.push(durawarp_engine::Wait {
            who: format!("L1, {dirty} lines that leave in order"),
            what: format!("{left} of them on their way, with {stores} stores, to be durable"),
            on: None,
            since: 0,
        });
    }
    if let Some((requests, line)) = memory.port.network.waiting() {
        out.push(durawarp_engine::Wait {
            who: format!("miss queue, {requests} requests"),
            what: format!("a credit or the injection port, for line {line:#x}"),
            on: None,
            since: 0,
        });
    }
}
