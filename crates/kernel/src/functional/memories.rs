//! The memories that a warp of the functional driver reaches, their bytes, and the faults of accesses that
//! miss them.
//!
//! | space | memory |
//! |---|---|
//! | global, generic | buffers of the launch |
//! | shared | the CTA's, or of a cluster another's ([`Peers`]) |
//! | local | a stretch for each thread of the CTA |
//! | const | the launch's bank, which nobody writes |
//!
//! Source: PTX ISA 5.1. Invariant: bytes are there all or not at all. Not modelled: texture memory of its
//! own.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::Space;
use super::super::launch::Launch;
use super::super::memory::FlatMemory;
use super::super::warp::{Warp, lanes_of};
use super::cluster::Peers;
use super::interface::Event;

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

/// Bytes from an address on, where all of them are there.
#[inline]
pub(super) fn read<'m>(
    memories: &'m Memories<'_>,
    launch: &'m Launch,
    space: Space,
    at: u64,
    bytes: usize,
) -> Option<&'m [u8]> {
    let of = |memory: &'m [u8]| memory.get(usize::try_from(at).ok()?..usize::try_from(at).ok()?.checked_add(bytes)?);
    match space {
        Space::Global | Space::Generic => memories.global.slice(at, bytes),
        Space::Shared => of(memories.shared),
        Space::Local => of(memories.local),
        Space::Const => of(&launch.const_bank),
    }
}

/// The same, to be written.
#[inline]
pub(super) fn write<'m>(memories: &'m mut Memories<'_>, space: Space, at: u64, bytes: usize) -> Option<&'m mut [u8]> {
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

/// The fault of the first lane whose address is no multiple of `bytes`.
#[cold]
pub(super) fn misaligned(
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

/// The fault of the first lane whose bytes do not fit into a thread's local memory.
#[cold]
pub(super) fn out_of_bounds(
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

/// The fault of a lane whose bytes are not there, or not to be written.
#[cold]
pub(super) fn unmapped(
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
