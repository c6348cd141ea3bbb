//! Where the warps of an SM stand between two events, for who asks whether they get on. The model reads none
//! of it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::msg::MAX_LINE_BYTES;
use durawarp_kernel::launch::Launch;
use durawarp_kernel::warp::Warp;

use super::core::IssueCore;
use super::launches::LaunchTable;
use super::lsu::Lsu;
use super::memory_side::MemorySide;
use super::wait::Wait;

/// What a resident warp does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// It issues instructions, or waits for something that comes by itself: a result, its unit, its fence.
    Runs,
    /// It waits at a barrier for others.
    Waits,
    /// It has exited and waits for the end of what it issued, or a persist barrier is on its way.
    Ends,
}

/// A load or an atomic whose result has not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenLoad {
    /// Its instruction.
    pub pc: u32,
    pub lanes: u64,
    /// It is an asynchronous copy.
    pub copies: bool,
}

/// A resident warp.
#[derive(Debug)]
pub struct ResidentWarp<'a> {
    pub cta: u64,
    /// Registers and paths; results under way are missing.
    pub warp: Cow<'a, Warp>,
    /// What it does.
    pub stands: Stands,
    /// Stores or persists of it are under way.
    pub stores: bool,
    /// Results under way.
    pub loads: Vec<OpenLoad>,
    /// Its CTA's shared memory.
    pub shared: &'a [u8],
}

/// Lines of the L1 that loads may hit: address, valid sectors, bytes.
pub type CachedLine<'a> = (u64, u8, &'a [u8; MAX_LINE_BYTES]);

/// All resident warps of an SM, with the launch of the first.
#[derive(Debug)]
pub struct Residents<'a> {
    /// What they execute.
    pub launch: &'a Arc<Launch>,
    /// In the order of slots.
    pub warps: Vec<ResidentWarp<'a>>,
    /// What their cached loads find in place of memory.
    pub lines: Vec<CachedLine<'a>>,
    /// Ordinary loads go through the L1.
    pub caches_loads: bool,
}

/// The resident warps of an SM; none where there is no warp.
pub(super) fn residents<'a>(
    launches: &'a LaunchTable,
    (core, lsu, memory): (&'a IssueCore, &Lsu, &'a MemorySide),
    caches_loads: bool,
) -> Option<Residents<'a>> {
    let launch = core.slots.iter().find(|slot| slot.wait != Wait::NoWarp).map(|slot| launches.at(slot.launch))?;
    let resident = |slot: usize| resident(slot, launches, core, lsu);
    let warps: Vec<ResidentWarp<'_>> = (0..core.slots.len()).filter_map(resident).collect();
    let lines = memory.l1.lines().collect();
    (!warps.is_empty()).then_some(Residents { launch, warps, lines, caches_loads })
}

fn resident<'a>(slot: usize, launches: &LaunchTable, core: &'a IssueCore, lsu: &Lsu) -> Option<ResidentWarp<'a>> {
    let at = &core.slots[slot];
    let stands = match at.wait {
        Wait::NoWarp => return None,
        Wait::Barrier => Stands::Waits,
        Wait::Drained | Wait::Marker(_) | Wait::Peers(_) => Stands::Ends,
        Wait::Issue | Wait::Latency | Wait::Register | Wait::Copies(_) | Wait::FrontEnd => Stands::Runs,
        // The instruction behind the fence is its next.
        Wait::Performed(_) | Wait::Released(_) | Wait::Durable { .. } => Stands::Runs,
        Wait::Bulk(_) | Wait::BulkReads(_) | Wait::BulkDurable | Wait::Registers | Wait::TensorMemory => Stands::Runs,
        // Words of other CTAs, or of the command processor, may be on their way.
        Wait::Cluster | Wait::Prerequisites | Wait::Phase => Stands::Runs,
    };
    let cta = &core.ctas[usize::from(at.cta)];
    let open = lsu.open_loads().filter(|load| usize::from(load.warp) == slot);
    let loads = open.map(|load| OpenLoad { pc: load.pc, lanes: load.lanes, copies: load.copy.is_some() });
    // A bulk copy is under way as another is, wherever its lines are.
    let bulk = (at.under_way.bulk > 0).then_some(OpenLoad { pc: 0, lanes: 0, copies: true });
    let loads = loads.chain(bulk).collect();
    let stores = at.under_way.stores + at.under_way.persists > 0;
    // What it has deferred is in its registers here, as in any look from outside.
    let warp = at.warp.caught_up(Some(launches.of(at)));
    Some(ResidentWarp { cta: cta.cta, warp, stands, stores, loads, shared: &cta.shared })
}
