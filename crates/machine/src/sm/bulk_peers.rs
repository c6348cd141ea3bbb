//! Bulk copies to shared memory of other CTAs of a cluster: loads to several CTAs or to another one, and
//! copies from shared memory to shared memory.
//!
//! ```text
//!   line of global memory, or of the own shared memory
//!     └─ a part for each CTA ── link ──> shared memory there ── link ──> answer
//!   behind the last part: a count ── link ──> barrier there ── link ──> answer
//! ```
//! Each line is read once, whatever the number of CTAs. A part is in the other shared memory when its message
//! comes; the count of all bytes leaves when it would be made at home, and comes behind the parts, since a
//! link keeps its order. A copy is over when all of its messages are answered: until then its warp's slot
//! stays.
//!
//! Source: PTX ISA 9.7.9.25.5.2, 9.7.9.27.1.2; the latency of a link is that of all accesses between SMs
//! (`shared.cluster_cycles`). Invariant: a CTA that has ended gets no part: that is a fault of the program.
//! Parts of shared memory wait for each other, as their link has a width; those of global memory do not.
//! Not modelled: passes through the banks of the other SM; what schemes would make of it, which are told of
//! the own CTA alone.

use durawarp_kernel::launch::Launch;
use durawarp_kernel::semantics::atomic::{complete_bytes, put_elements};
use durawarp_kernel::warp::{BulkOperands, SharedPiece};
use smallvec::SmallVec;

use super::bulk_copy::BulkCopy;
use super::cta::CtaSlot;
use super::record::Record;
use crate::remote::{ClusterCta, CopySource, RemotePart};

/// Whether bytes go to shared memory at home, and the other CTAs to which they go.
pub(super) fn destinations(
    operands: &BulkOperands,
    cta: &CtaSlot,
    launch: &Launch,
    record: &Record,
) -> (bool, SmallVec<[ClusterCta; 2]>) {
    let Some(seat) = cta.seat.as_ref().filter(|_| launch.cluster_ctas() > 1) else { return (true, SmallVec::new()) };
    let others = operands.ranks().filter(|&rank| rank != seat.rank);
    let peers = others.map(|rank| seat.peer(launch, record.launch(cta.launch), cta.cta, rank)).collect();
    (operands.ranks().any(|rank| rank == seat.rank), peers)
}

/// How often bytes complete at a barrier at home, and the other CTAs at whose barriers they do: once for each
/// CTA to which they go, at its own barrier but where a copy is one for pairs.
pub(super) fn barriers(
    operands: &BulkOperands,
    (home, peers): (bool, &SmallVec<[ClusterCta; 2]>),
    cta: &CtaSlot,
    launch: &Launch,
    record: &Record,
) -> (u8, SmallVec<[ClusterCta; 2]>) {
    let (Some(seat), Some(_)) = (cta.seat.as_ref(), operands.barrier_of_pair) else {
        return (home.into(), peers.clone());
    };
    let at_home = operands.barrier_ranks().filter(|&rank| rank == seat.rank).count();
    let others = operands.barrier_ranks().filter(|&rank| rank != seat.rank);
    (at_home as u8, others.map(|rank| seat.peer(launch, record.launch(cta.launch), cta.cta, rank)).collect())
}

/// Parts that leave in this event, and boxes to be used again.
#[derive(Debug, Default)]
pub(super) struct PartQueue {
    #[allow(clippy::vec_box, reason = "boxes travel in messages")]
    pub(super) leaving: Vec<Box<RemotePart>>,
    #[allow(clippy::vec_box, reason = "boxes are what is recycled")]
    spare: Vec<Box<RemotePart>>,
}

impl PartQueue {
    /// A part without bytes.
    fn part(&mut self, from: CopySource, to: ClusterCta, completes: Option<(u32, u32)>) -> Box<RemotePart> {
        let mut part = self.spare.pop().unwrap_or_default();
        (part.from, part.to, part.completes) = (from, to, completes);
        part.pieces.clear();
        part
    }

    /// Bytes of a copy from its byte `at` on, to each of its other CTAs.
    pub(super) fn send(&mut self, copy: &mut BulkCopy, from: CopySource, at: u32, found: &[u8]) {
        for &to in &copy.peers {
            let mut part = self.part(from, to, None);
            for SharedPiece { shared, bytes, .. } in copy.pieces(at, found.len() as u32) {
                part.pieces.push((shared as u32, bytes as u8));
            }
            part.data[..found.len()].copy_from_slice(found);
            (part.atom, part.elem) = (copy.bulk.atom, copy.bulk.elem);
            copy.apart += 1;
            self.leaving.push(part);
        }
    }

    /// All bytes of a copy have left: they complete at the barriers of other CTAs.
    pub(super) fn complete(&mut self, copy: &mut BulkCopy, from: CopySource) {
        for &to in &copy.barriers {
            let completes = (copy.operands.barrier as u32, copy.operands.bytes);
            let part = self.part(from, to, Some(completes));
            copy.apart += 1;
            self.leaving.push(part);
        }
    }

    /// An answered part, to be used again.
    pub(super) fn recycle(&mut self, part: Box<RemotePart>) {
        self.spare.push(part);
    }

    /// No part is to leave.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }
}

/// Writes a part into shared memory; bounds were checked where it was issued.
///
/// # Errors
/// What is wrong with its barrier.
pub(super) fn perform_part(shared: &mut [u8], part: &RemotePart) -> Result<(), String> {
    let mut data = &part.data[..];
    for &(at, bytes) in &part.pieces {
        let (here, rest) = data.split_at(usize::from(bytes));
        put_elements(part.atom, part.elem, &mut shared[at as usize..][..here.len()], here);
        data = rest;
    }
    let Some((barrier, bytes)) = part.completes else { return Ok(()) };
    complete_bytes(shared, barrier.into(), bytes).map_err(|misuse| misuse.to_string())
}
