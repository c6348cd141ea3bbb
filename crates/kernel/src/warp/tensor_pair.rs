//! What a warp does with the tensor memories of a pair of CTAs (`tcgen05` with `.cta_group::2`), and arrivals
//! behind products and copies in several CTAs.
//!
//! A product of a pair is begun by a thread of either CTA ([`Warp::pair_products`]) and done apart for each
//! CTA: it reads its columns of b ([`pair_columns`]), and with those of both it makes its rows
//! ([`multiply_pair`]). A copy to the tensor memories of both CTAs is one of each ([`copy_pair`]). Each step
//! needs one CTA's memories alone, so that the two may lie in two SMs.
//!
//! Source: PTX ISA 9.7.16. Invariant: functional driver and timed machine both compute here.

use super::super::cluster::{ClusterMisuse, owner_of};
use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, LANES, TensorCopy, TensorKind, TensorStep};
use super::super::launch::Launch;
use super::super::semantics::{
    CopyOperands, CopyValues, PairColumns, TensorValues, columns_of_pair, get, multiply_for_pair,
};
use super::super::tensor_memory::TensorMemory;
use super::tensor::TensorWork;
use super::{Warp, lanes_of};

/// The instruction that faults of a product of a pair name.
const NAME: &str = TensorStep::MultiplyPair(TensorKind::Half).name();

/// The same of copies.
const COPY_NAME: &str = "tcgen05.cp.cta_group::2";

/// Bytes of an `mbarrier`.
const BARRIER_BYTES: u64 = 8;

/// Barriers at which a thread arrives: a CTA's bit each, and the address in its shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitTargets {
    pub lane: u32,
    pub ranks: u16,
    pub at: u64,
}

/// A CTA's columns of b of a product of a pair, from its shared memory.
///
/// # Errors
/// What is wrong with the product.
pub fn pair_columns(values: &TensorValues, shared: &[u8], launch: &Launch) -> Result<PairColumns, FaultKind> {
    columns_of_pair(values, shared).map_err(|misfit| misfit.fault(launch.shared_bytes, NAME))
}

/// A CTA's rows of a product of a pair, by its own memories and the columns of b of the even CTA and the odd
/// one. `parity` is the last bit of its rank.
///
/// # Errors
/// What is wrong with the product.
pub fn multiply_pair(
    values: &TensorValues,
    parity: u32,
    b: [&PairColumns; 2],
    memory: &mut TensorMemory,
    shared: &[u8],
    launch: &Launch,
) -> Result<(), FaultKind> {
    multiply_for_pair(values, parity, b, memory, shared).map_err(|misfit| misfit.fault(launch.shared_bytes, NAME))
}

/// A CTA's copy, of one of a pair: from its own shared memory to its own tensor memory.
///
/// # Errors
/// What is wrong with the copy.
pub fn copy_pair(
    values: &CopyValues,
    memory: &mut TensorMemory,
    shared: &[u8],
    launch: &Launch,
) -> Result<(), FaultKind> {
    let done = CopyOperands::of(values).and_then(|operands| operands.copy(memory, shared));
    done.map_err(|misfit| misfit.fault(launch.shared_bytes, COPY_NAME))
}

/// What the part of one CTA takes of its tensor cores.
///
/// # Errors
/// What is wrong with the product.
pub fn pair_work(values: &TensorValues, launch: &Launch) -> Result<TensorWork, FaultKind> {
    let work = values.work().map_err(|misfit| misfit.fault(launch.shared_bytes, NAME));
    work.map(|(elements, operations)| TensorWork { elements, operations })
}

impl Warp {
    /// The products of these lanes, each with its lane.
    #[cold]
    pub fn pair_products(
        &self,
        inst: &Inst,
        kind: TensorKind,
        launch: &Launch,
        lanes: u64,
    ) -> Vec<(u32, TensorValues)> {
        lanes_of(lanes).map(|lane| (lane as u32, self.tensor_values(inst, (kind, true), launch, lane))).collect()
    }

    /// The copies of these lanes, each with its lane.
    #[cold]
    pub fn pair_copies(&self, inst: &Inst, copy: TensorCopy, launch: &Launch, lanes: u64) -> Vec<(u32, CopyValues)> {
        lanes_of(lanes).map(|lane| (lane as u32, self.copy_values(inst, copy, launch, lane))).collect()
    }

    /// The barriers at which these lanes arrive.
    ///
    /// # Errors
    /// What is wrong with an address or with a mask.
    #[cold]
    pub fn commit_targets(
        &self,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
    ) -> Result<Vec<CommitTargets>, Box<ProgramFault>> {
        let ctas = launch.cluster_ctas();
        let mut targets = Vec::new();
        for lane in lanes_of(lanes) {
            let value = |slot| get(&self.groups[lane / LANES].r32, &launch.consts32, slot)[lane % LANES];
            // Only the lower 16 bits of the mask count.
            let (ranks, address) = (value(inst.src[1]) as u16, u64::from(value(inst.src[0])));
            let at = if ctas > 1 { owner_of(address, 0).1 } else { address };
            let kind = if let Some(rank) = lanes_of(ranks.into()).map(|rank| rank as u32).find(|&rank| rank >= ctas) {
                FaultKind::Asynchronous(ClusterMisuse::NoBit { rank, ctas }.to_string())
            } else if !at.is_multiple_of(BARRIER_BYTES) {
                FaultKind::Misaligned { address: at, bytes: BARRIER_BYTES as u32, space: "shared" }
            } else if at + BARRIER_BYTES > launch.shared_bytes.into() {
                let hint = format!("the CTA has {} bytes", launch.shared_bytes);
                FaultKind::OutOfBounds { address: at, bytes: BARRIER_BYTES as u32, space: "shared", hint }
            } else {
                targets.push(CommitTargets { lane: lane as u32, ranks, at });
                continue;
            };
            return Err(Box::new(ProgramFault::new(kind, launch, self, self.pc(), lane as u32)));
        }
        Ok(targets)
    }
}
