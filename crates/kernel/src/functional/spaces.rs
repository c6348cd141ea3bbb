//! Accesses of a warp of the functional driver to one memory: addresses to bytes, with checks of alignment
//! and bounds. The memories are in `memories`, what an observer is told in `watched`.
//!
//! When the lanes of an access lie within 64 KiB of one range (nearly always), the warp reads or writes that
//! stretch of memory in place. Otherwise each lane's bytes are copied apart.
//!
//! Source: PTX ISA 5.1 (state spaces), 9.7.9. Invariants: lanes that store to one place do so in their order;
//! each lane of an atomic sees what those before it left; an observer is told before bytes change.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, Mem, MemKind, Space};
use super::super::semantics::atomic::complete_bytes;
use super::super::warp::{Warp, lanes_of};
use super::memories::{Memories, Site, misaligned, out_of_bounds, read, unmapped, write};
use super::watched::watch;

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: usize = 8;

/// Performs an access of these lanes to one space.
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
