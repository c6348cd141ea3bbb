//! Addresses of shared memory as a trace has them, and registers that go there: `STAS`, `REDAS` (PTX
//! `st.async`, `red.async`), which complete at a barrier of the CTA to which they go.
//!
//! ```text
//!   address of shared memory   31-24 rank of the CTA in its cluster   23-0 byte
//!   STAS [R12.64], R4          R12 the data's address, R13 the barrier's, R4 the data
//! ```
//! Source: what `ptxas` 12.9 makes of the PTX instructions. Invariant: no barrier is at byte 0, where the
//! system has its own, so that 0 says that a trace has no barrier's address. Not modelled: values, of which a
//! trace has none: zeros are stored, and added.

use durawarp_kernel::cluster::map_address;
use durawarp_kernel::ir::{AddressIn, AtomOp, CONST, CacheOp, Elem, Mem, MemKind, NONE, Op, Slot, Space, StoreHint};

/// Where the rank of a CTA begins in an address of shared memory.
const RANK: u32 = 24;

/// Operations of `REDAS`.
const REDUCTIONS: [&str; 8] = [".ADD", ".INC", ".DEC", ".MIN", ".MAX", ".AND", ".OR", ".XOR"];

/// What registers do to the elements where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendKind {
    Store,
    Reduce,
}

impl SendKind {
    /// What an opcode does, with its modifiers.
    pub(crate) fn of(opcode: &str) -> Option<SendKind> {
        let (name, modifiers) = opcode.split_at(opcode.find('.').unwrap_or(opcode.len()));
        match name {
            "STAS" => ["", ".64", ".128"].contains(&modifiers).then_some(SendKind::Store),
            "REDAS" => REDUCTIONS.iter().any(|operation| modifiers.starts_with(operation)).then_some(SendKind::Reduce),
            _ => None,
        }
    }
}

/// The instruction of an asynchronous store or reduction of `bytes` a lane. Its addresses are those of
/// [`send_address`].
pub(crate) fn send_instruction(kind: SendKind, bytes: u32) -> (Op, [Slot; 4], [Slot; 4]) {
    let (kind, atom) = match kind {
        SendKind::Store => (MemKind::Store, AtomOp::None),
        SendKind::Reduce => (MemKind::Reduction, AtomOp::Add),
    };
    let (elem, vec) = match (kind, bytes) {
        (MemKind::Reduction, 8) => (Elem::U64, 1),
        (_, 4) => (Elem::U32, 1),
        _ => (Elem::U32, bytes as u8 / 4),
    };
    let mem = Mem {
        kind,
        space: Space::Shared,
        elem,
        vec,
        cache: if kind == MemKind::Reduction { CacheOp::Volatile } else { CacheOp::All },
        hint: StoreHint::Plain,
        atom,
        wide: elem == Elem::U64,
        address: AddressIn::TraceWithBarrier,
        whole: 0,
    };
    // Zeros are stored, and added; that it completes anywhere shows by its last source.
    (Op::Mem(mem), [CONST; 4], [NONE, NONE, NONE, CONST])
}

/// The address of registers that go to shared memory, and that of the barrier at which they complete, as
/// kernels name both ([`shared_address`]).
pub(crate) fn send_address(data: u64, barrier: u64, own: Option<u32>) -> u64 {
    shared_address(barrier, own) << 32 | shared_address(data, own)
}

/// Both addresses of a lane: `STAS [R12.64], R4` has that of its data in R12 and that of its barrier in R13.
/// The tracer writes what both come to, or that of the data alone, which leaves the barrier to the values of
/// registers. None where neither has it: no barrier is at byte 0, where the system has its own.
pub(crate) fn sent_to(address: u64, register: Option<u64>) -> Option<[u64; 2]> {
    let barrier = [address >> 32, register.unwrap_or(0) >> 32].into_iter().find(|&barrier| barrier != 0)?;
    Some([u64::from(address as u32), barrier])
}

/// Where an address of shared memory lies for a CTA of this rank, as the kernel names it: the rank that the
/// address names counts where the CTA is of a cluster.
pub(crate) fn shared_address(address: u64, own: Option<u32>) -> u64 {
    let (rank, byte) = rank_and_byte(address);
    own.map_or(byte, |own| map_address(byte as u32, rank, own).into())
}

/// The rank of the CTA that an address of shared memory names, and the byte there.
pub(crate) fn rank_and_byte(address: u64) -> (u32, u64) {
    ((address as u32) >> RANK, address & ((1 << RANK) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_rank_of_its_cta() {
        assert_eq!(shared_address(0x0100_0400, Some(1)), 0x400, "the own one");
        assert_eq!(shared_address(0x0100_0400, Some(0)), 0x1100_0400, "the other one's, as kernels name it");
        assert_eq!(shared_address(0x0100_0400, None), 0x400, "there are no clusters");
        assert_eq!(rank_and_byte(0x0300_0408), (3, 0x408));
        // What goes to the other CTA, by a pair of registers or by one whose neighbour has the barrier.
        let both = Some([0x0100_0400, 0x0100_0800]);
        assert_eq!(sent_to(0x0100_0800_0100_0400, None), both);
        assert_eq!(sent_to(0x0100_0400, Some(0x0100_0800_0100_0400)), both);
        assert_eq!((sent_to(0x0100_0400, Some(0x0100_0400)), sent_to(0x400, None)), (None, None));
        assert_eq!(send_address(0x0100_0400, 0x0100_0800, Some(0)), 0x1100_0800_1100_0400);
        assert_eq!(send_address(0x0100_0400, 0x0100_0800, None), 0x800_0000_0400);
    }
}
