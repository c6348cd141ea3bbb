//! The memories that a warp of the functional driver reaches, and accesses to one of them: addresses to
//! bytes, with bounds and alignment checks.
//!
//! When the lanes of an access lie within 64 KiB of one range (nearly always), the warp reads or writes that
//! stretch of memory in place. Otherwise each lane's bytes are copied apart.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{AtomOp, Inst, Mem, MemKind, PhaseOp, Space};
use super::super::launch::Launch;
use super::super::memory::FlatMemory;
use super::super::semantics::atomic::complete_bytes;
use super::super::warp::{Warp, lanes_of};
use super::cluster::Peers;
use super::interface::{AccessKind, Event, WarpAccess};

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: usize = 8;

/// The memories that a warp can reach.
pub(super) struct Memories<'a> {
    pub(super) global: &'a mut FlatMemory,
    pub(super) shared: &'a mut [u8],
    /// `local_bytes` of each thread of the CTA in turn.
    pub(super) local: &'a mut [u8],
    /// Who is told of accesses.
    pub(super) watcher: Option<Watcher<'a>>,
    /// Other CTAs of the cluster, whose shared memory it reaches.
    pub(super) peers: Option<Peers<'a>>,
}

/// An observer, and whose accesses it is told of.
pub(super) struct Watcher<'a> {
    pub(super) observer: &'a mut dyn FnMut(Event<'_>),
    /// It wants to know which writes change something.
    pub(super) changes: bool,
    pub(super) cta: u64,
    pub(super) warp: u32,
    /// The CTA whose shared memory it is.
    pub(super) owner: u64,
}

/// Where an access happens, for a fault.
pub(super) struct Site<'a> {
    pub(super) launch: &'a Launch,
    pub(super) pc: u32,
}

#[allow(clippy::too_many_arguments)]
pub(super) fn in_space(
    warp: &mut Warp,
    inst: &Inst,
    mem: Mem,
    space: Space,
    lanes: u64,
    addresses: &mut [u64; 64],
    site: &Site<'_>,
    memories: &mut Memories<'_>,
) -> Result<(), ProgramFault> {
    let launch = site.launch;
    let bytes = launch.access_bytes(inst, mem) as usize;
    let (mut low, mut high, all) = extent(lanes, addresses);
    // One test for all lanes: `all` is the OR of their addresses.
    let aligned = bytes.max(mem.whole.into());
    if all & (aligned as u64 - 1) != 0 && aligned.is_power_of_two() {
        return Err(misaligned(warp, lanes, addresses, aligned, space, site));
    }
    if space == Space::Local {
        // Each thread has its own stretch of the CTA's local memory.
        let size = u64::from(launch.kernel.local_bytes);
        if high.saturating_add(bytes as u64) > size {
            return Err(out_of_bounds(
                warp,
                lanes,
                bytes,
                space,
                site,
                |lane| addresses[lane].saturating_add(bytes as u64) <= size,
                addresses,
            ));
        }
        for lane in lanes_of(lanes) {
            let (_, thread) = warp.thread_of(lane as u32);
            addresses[lane] += u64::from(thread) * size;
        }
        (low, high, _) = extent(lanes, addresses);
    }
    // Local memory is a thread's own.
    if memories.watcher.is_some() && space != Space::Local {
        watch(warp, inst, mem, space, lanes, addresses, site, memories);
    }
    // Wild addresses may lie almost a whole address space apart.
    let span = ((high - low) as usize).saturating_add(bytes);
    match mem.kind {
        MemKind::Load | MemKind::Texture(_) => {
            // The stretch may cover a gap between two buffers that no lane touches. So if it is not there as
            // a whole, lanes are tried one by one, and only a lane that misses is a fault.
            if span <= 1 << 16
                && let Some(data) = read(memories, launch, space, low, span)
            {
                let offset = offsets(addresses, low);
                warp.write_back(inst, launch, lanes, &offset, data);
                return Ok(());
            }
            let mut data = [0; 64 * 16];
            let mut offset = [0; 64];
            for lane in lanes_of(lanes) {
                offset[lane] = (lane * 16) as u16;
                match read(memories, launch, space, addresses[lane], bytes) {
                    Some(found) => data[lane * 16..lane * 16 + bytes].copy_from_slice(found),
                    None => return Err(unmapped(warp, lane, addresses[lane], bytes, space, site, memories)),
                }
            }
            warp.write_back(inst, launch, lanes, &offset, &data);
        }
        MemKind::Matrix(_) => {
            for lane in lanes_of(lanes) {
                if read(memories, launch, space, addresses[lane], bytes).is_none() {
                    return Err(unmapped(warp, lane, addresses[lane], bytes, space, site, memories));
                }
            }
            warp.write_matrices(inst, lanes, addresses, memories.shared);
        }
        MemKind::Copy => {
            let targets = warp.copy_targets(inst, launch, lanes);
            if lanes_of(lanes).any(|lane| !targets.to[lane].is_multiple_of(bytes as u64)) {
                return Err(misaligned(warp, lanes, &targets.to, bytes, Space::Shared, site));
            }
            for lane in lanes_of(lanes) {
                let (mut word, read_bytes) = ([0; 16], usize::from(targets.bytes[lane]));
                if read_bytes > 0 {
                    let Some(found) = read(memories, launch, space, addresses[lane], read_bytes) else {
                        return Err(unmapped(warp, lane, addresses[lane], read_bytes, space, site, memories));
                    };
                    word[..read_bytes].copy_from_slice(found);
                }
                let Some(found) = write(memories, Space::Shared, targets.to[lane], bytes) else {
                    return Err(unmapped(warp, lane, targets.to[lane], bytes, Space::Shared, site, memories));
                };
                found.copy_from_slice(&word[..bytes]);
            }
        }
        MemKind::Store => {
            if span <= 1 << 16
                && let Some(data) = write(memories, space, low, span)
            {
                let offset = offsets(addresses, low);
                warp.gather(inst, launch, lanes, &offset, data);
                return complete(warp, inst, mem, lanes, bytes, site, memories);
            }
            let mut data = [0; 64 * 16];
            let offset: [u16; 64] = std::array::from_fn(|lane| (lane * 16) as u16);
            warp.gather(inst, launch, lanes, &offset, &mut data);
            // In the order of lanes, as `gather` writes them: of two lanes that store to one place the higher
            // wins.
            for lane in lanes_of(lanes) {
                match write(memories, space, addresses[lane], bytes) {
                    Some(found) => found.copy_from_slice(&data[lane * 16..lane * 16 + bytes]),
                    None => return Err(unmapped(warp, lane, addresses[lane], bytes, space, site, memories)),
                }
            }
        }
        MemKind::Atomic | MemKind::Reduction => {
            // Never all at once: a lane must see what the lanes before it left at the same address.
            for lane in lanes_of(lanes) {
                let Some(found) = write(memories, space, addresses[lane], bytes) else {
                    return Err(unmapped(warp, lane, addresses[lane], bytes, space, site, memories));
                };
                warp.perform_atomic(inst, mem, launch, lane as u32, found).map_err(|misuse| {
                    let kind = FaultKind::Asynchronous(misuse.to_string());
                    ProgramFault::new(kind, launch, warp, site.pc, lane as u32)
                })?;
            }
        }
    }
    complete(warp, inst, mem, lanes, bytes, site, memories)
}

/// What an asynchronous store or reduction has written completes at the barrier of each lane, which lies in
/// the same shared memory.
fn complete(
    warp: &Warp,
    inst: &Inst,
    mem: Mem,
    lanes: u64,
    bytes: usize,
    site: &Site<'_>,
    memories: &mut Memories<'_>,
) -> Result<(), ProgramFault> {
    if !inst.completes(mem) {
        return Ok(());
    }
    for lane in lanes_of(lanes) {
        let (_, at) = warp.completes_at(inst, site.launch, lane as u32, 0);
        let fault = |kind| ProgramFault::new(kind, site.launch, warp, site.pc, lane as u32);
        if !at.is_multiple_of(BARRIER_BYTES as u64) {
            return Err(fault(FaultKind::Misaligned { address: at, bytes: BARRIER_BYTES as u32, space: "shared" }));
        }
        if write(memories, Space::Shared, at, BARRIER_BYTES).is_none() {
            return Err(unmapped(warp, lane, at, BARRIER_BYTES, Space::Shared, site, memories));
        }
        complete_bytes(memories.shared, at, bytes as u32)
            .map_err(|misuse| fault(FaultKind::Asynchronous(misuse.to_string())))?;
    }
    Ok(())
}

/// Tells the observer of an access that is about to happen; of an asynchronous copy both of its sides.
#[cold]
#[allow(clippy::too_many_arguments)]
fn watch(
    warp: &Warp,
    inst: &Inst,
    mem: Mem,
    space: Space,
    lanes: u64,
    addresses: &[u64; 64],
    site: &Site<'_>,
    memories: &mut Memories<'_>,
) {
    let (launch, pc) = (site.launch, site.pc);
    let bytes = launch.access_bytes(inst, mem);
    let wants_changes = memories.watcher.as_ref().is_some_and(|watcher| watcher.changes);
    let (kind, changes) = match mem.kind {
        MemKind::Load | MemKind::Texture(_) | MemKind::Matrix(_) | MemKind::Copy => (AccessKind::Read, 0),
        MemKind::Store if !wants_changes => (AccessKind::Write, lanes),
        MemKind::Store => {
            // Compared before it happens: afterwards nobody knows what was there.
            let mut data = [0; 64 * 16];
            let offset: [u16; 64] = std::array::from_fn(|lane| (lane * 16) as u16);
            warp.gather(inst, launch, lanes, &offset, &mut data);
            let stays = |lane: usize| {
                let there = read(memories, launch, space, addresses[lane], bytes as usize);
                there == Some(&data[lane * 16..lane * 16 + bytes as usize])
            };
            let changes = lanes_of(lanes).filter(|&lane| !stays(lane)).fold(0, |all, lane| all | 1 << lane);
            (AccessKind::Write, changes)
        }
        // A barrier begins whatever was there.
        MemKind::Reduction if mem.atom == AtomOp::Phase(PhaseOp::Begin) => (AccessKind::Write, lanes),
        MemKind::Atomic | MemKind::Reduction => (AccessKind::Atomic, lanes),
    };
    // Borrowed last, since `read` takes all memories.
    let Some(Watcher { observer, cta, warp: number, owner, .. }) = &mut memories.watcher else { return };
    let space = if space == Space::Generic { Space::Global } else { space };
    let (cta, number, owner) = (*cta, *number, *owner);
    let access = WarpAccess { cta, warp: number, owner, pc, space, kind, lanes, addresses, bytes, changes };
    let MemKind::Copy = mem.kind else { return observer(Event::Accessed(&access)) };
    let targets = warp.copy_targets(inst, launch, lanes);
    // A lane may read fewer bytes than it writes, or none.
    let mut left = targets.reading(lanes);
    while left != 0 {
        let bytes = targets.bytes[left.trailing_zeros() as usize];
        let alike = lanes_of(left).filter(|&lane| targets.bytes[lane] == bytes).fold(0, |all, lane| all | 1 << lane);
        observer(Event::Accessed(&WarpAccess { lanes: alike, bytes: u32::from(bytes), ..access }));
        left &= !alike;
    }
    let (space, kind, changes) = (Space::Shared, AccessKind::Write, lanes);
    observer(Event::Accessed(&WarpAccess { space, kind, addresses: &targets.to, changes, ..access }));
}

/// The least and the greatest address of `lanes`, and the union of their bits.
fn extent(lanes: u64, addresses: &[u64; 64]) -> (u64, u64, u64) {
    let (mut low, mut high, mut all) = (u64::MAX, 0, 0);
    let mut include = |address: u64| {
        low = low.min(address);
        high = high.max(address);
        all |= address;
    };
    if lanes == u64::from(u32::MAX) {
        addresses[..32].iter().for_each(|&address| include(address));
    } else {
        lanes_of(lanes).for_each(|lane| include(addresses[lane]));
    }
    (low, high, all)
}

/// Addresses relative to the lowest; those of other lanes mean nothing.
fn offsets(addresses: &[u64; 64], low: u64) -> [u16; 64] {
    addresses.map(|address| address.wrapping_sub(low) as u16)
}

fn read<'m>(memories: &'m Memories<'_>, launch: &'m Launch, space: Space, at: u64, bytes: usize) -> Option<&'m [u8]> {
    let of = |memory: &'m [u8]| memory.get(usize::try_from(at).ok()?..usize::try_from(at).ok()?.checked_add(bytes)?);
    match space {
        Space::Global | Space::Generic => memories.global.slice(at, bytes),
        Space::Shared => of(memories.shared),
        Space::Local => of(memories.local),
        Space::Const => of(&launch.const_bank),
    }
}

fn write<'m>(memories: &'m mut Memories<'_>, space: Space, at: u64, bytes: usize) -> Option<&'m mut [u8]> {
    let start = usize::try_from(at).ok()?;
    let range = start..start.checked_add(bytes)?;
    match space {
        Space::Global | Space::Generic => memories.global.slice_mut(at, bytes),
        Space::Shared => memories.shared.get_mut(range),
        Space::Local => memories.local.get_mut(range),
        Space::Const => None,
    }
}

fn name(space: Space) -> &'static str {
    match space {
        Space::Global | Space::Generic => "global",
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Const => "const",
    }
}

#[cold]
fn misaligned(
    warp: &Warp,
    lanes: u64,
    addresses: &[u64; 64],
    bytes: usize,
    space: Space,
    site: &Site<'_>,
) -> ProgramFault {
    let lane = lanes_of(lanes).find(|&lane| addresses[lane] & (bytes as u64 - 1) != 0).unwrap_or(0);
    let kind = FaultKind::Misaligned { address: addresses[lane], bytes: bytes as u32, space: name(space) };
    ProgramFault::new(kind, site.launch, warp, site.pc, lane as u32)
}

#[cold]
fn out_of_bounds(
    warp: &Warp,
    lanes: u64,
    bytes: usize,
    space: Space,
    site: &Site<'_>,
    fits: impl Fn(usize) -> bool,
    addresses: &[u64; 64],
) -> ProgramFault {
    let lane = lanes_of(lanes).find(|&lane| !fits(lane)).unwrap_or(0);
    let hint = format!("a thread has {} bytes", site.launch.kernel.local_bytes);
    let kind = FaultKind::OutOfBounds { address: addresses[lane], bytes: bytes as u32, space: name(space), hint };
    ProgramFault::new(kind, site.launch, warp, site.pc, lane as u32)
}

#[cold]
fn unmapped(
    warp: &Warp,
    lane: usize,
    address: u64,
    bytes: usize,
    space: Space,
    site: &Site<'_>,
    memories: &Memories<'_>,
) -> ProgramFault {
    let kind = match space {
        Space::Const if (address as usize).saturating_add(bytes) <= site.launch.const_bank.len() => {
            FaultKind::Unsupported("constant memory cannot be written".to_owned())
        }
        _ => {
            let hint = match space {
                Space::Global | Space::Generic => site.launch.addresses.describe(address),
                Space::Shared => format!("the CTA has {} bytes", memories.shared.len()),
                Space::Local => format!("a thread has {} bytes", site.launch.kernel.local_bytes),
                Space::Const => format!("the constant bank has {} bytes", site.launch.const_bank.len()),
            };
            FaultKind::OutOfBounds { address, bytes: bytes as u32, space: name(space), hint }
        }
    };
    ProgramFault::new(kind, site.launch, warp, site.pc, lane as u32)
}
