//! Products of four warps (`wgmma.mma_async`, PTX ISA 9.7.15): one warp's part of a and d, 16 rows, with a
//! from registers or shared memory and b from shared memory.
//!
//! The part is a product of [`matrix`](super::matrix) for each 8 columns: registers of a and d are laid out
//! as those of `mma` with m = 16, and sums are taken as there. Words of a and b that lie in shared memory are
//! brought into that layout first ([`SharedMatrix`] says where they are).
//!
//! Invariants: all registers of a are read before one of d is written; d is written at once, although a
//! program may count on it only behind a `wgmma.wait_group`.

use super::super::alu::{MatrixFactors, MatrixOp, Sparsity};
use super::super::ir::{GROUP_ROWS, GroupFactor, GroupOperands, LANES, Slot, group_registers};
use super::matrix::{MatrixTile, product};
use super::matrix_sparse::Misfit;
use super::shared_matrix::SharedMatrix;
use super::{Frame, V32};

/// Rows of a warp's part.
const ROWS: u32 = 16;

/// Bytes of a chunk of shared memory.
pub(crate) const CHUNK_BYTES: u32 = 16;

/// Why a product is not defined.
#[derive(Debug)]
pub(crate) enum GroupMisfit {
    /// The lanes of a warp have several of these.
    Several(&'static str),
    /// A lane's element of this address is not in shared memory.
    Outside { lane: u32, address: u32 },
    /// A lane's metadata name no elements.
    Metadata(Misfit),
}

/// The matrices of a product in shared memory, as a warp's lanes have their descriptors.
pub(crate) struct SharedFactors {
    /// a, where it is not in registers.
    a: Option<SharedMatrix>,
    b: SharedMatrix,
}

impl SharedFactors {
    /// Those that all lanes name.
    ///
    /// # Errors
    /// Lanes name several.
    pub(crate) fn of(f: &Frame<'_>, operands: &GroupOperands) -> Result<SharedFactors, GroupMisfit> {
        let descriptor = |slot: Slot| {
            let lanes = f.get64(slot);
            let same = lanes.iter().all(|lane| *lane == lanes[0]);
            same.then_some(lanes[0]).ok_or(GroupMisfit::Several("descriptors of one matrix"))
        };
        let a = match operands.a {
            GroupFactor::Registers(_) => None,
            GroupFactor::Shared { descriptor: slot, by_columns } => {
                Some(SharedMatrix::of(descriptor(slot)?, by_columns))
            }
        };
        Ok(SharedFactors { a, b: SharedMatrix::of(descriptor(operands.b)?, operands.b_by_rows) })
    }

    /// The address of each chunk that warp `rank` of the group reads.
    pub(crate) fn chunks(&self, operands: &GroupOperands, columns: u32, rank: u32) -> Vec<u32> {
        let rows = ROWS * rank..ROWS * (rank + 1);
        let a = self.a.iter().flat_map(|a| a.chunks(rows.clone()));
        debug_assert_eq!(self.a.is_some(), matches!(operands.a, GroupFactor::Shared { .. }));
        let is_sparse = operands.op.sparsity != Sparsity::Dense;
        let behind = is_sparse.then(|| self.b.next_chunks(0..columns)).into_iter().flatten();
        a.chain(self.b.chunks(0..columns)).chain(behind).collect()
    }
}

/// d = a b + d of warp `rank` of its group, all lanes of which take part.
///
/// # Errors
/// What the ISA leaves undefined.
pub(crate) fn multiply_group(
    f: &mut Frame<'_>,
    operands: &GroupOperands,
    rank: u32,
    shared: &[u8],
) -> Result<(), GroupMisfit> {
    debug_assert!(rank < GROUP_ROWS / ROWS, "a warp of four");
    let factors = SharedFactors::of(f, operands)?;
    let (adds, when) = operands.adds;
    let adds = match f.get_p(adds) {
        0 => !when,
        u32::MAX => when,
        _ => return Err(GroupMisfit::Several("values of `scale-d`")),
    };
    let mut a: [V32; 4] = match (&factors.a, operands.a) {
        (Some(a), _) => loaded(a, operands.op, ROWS * rank, [0, 0, 1, 1], [0, 8, 0, 8], shared)?,
        (None, GroupFactor::Registers(slots)) => slots.map(|slot| *f.get32(slot)),
        (None, GroupFactor::Shared { .. }) => unreachable!("a matrix with a descriptor is in shared memory"),
    };
    if operands.subtracts {
        let signs = signs_of(operands.op.factors);
        a.iter_mut().flatten().for_each(|word| *word ^= signs);
    }
    let registers = group_registers(operands.op.sums);
    // They are the same for all columns.
    let metadata = (operands.op.sparsity != Sparsity::Dense).then(|| *f.get32(operands.metadata));
    for (tile, d) in (0..).zip(operands.d.chunks(registers)) {
        // Two registers of b: its halves along k; of a sparse a k is twice as much.
        let b: [V32; 2] = loaded(&factors.b, operands.op, 8 * tile, [0, 1], [0; 2], shared)?;
        let more: Option<[V32; 2]> = match metadata {
            None => None,
            Some(_) => Some(loaded(&factors.b, operands.op, 8 * tile, [2, 3], [0; 2], shared)?),
        };
        let [third, fourth] = more.as_ref().map_or([None; 2], |more| more.each_ref().map(Some));
        let mut c = [[0; LANES]; 4];
        if adds {
            c.iter_mut().zip(d).for_each(|(c, &slot)| *c = *f.get32(slot));
        }
        let b = [Some(&b[0]), Some(&b[1]), third, fourth];
        let tile = MatrixTile { a: a.each_ref().map(Some), b, c, metadata: metadata.as_ref() };
        let out = product(operands.op, &tile).map_err(GroupMisfit::Metadata)?;
        d.iter().zip(&out).for_each(|(&slot, value)| f.put32(slot, value));
    }
    Ok(())
}

/// The signs of all elements of a register.
pub(super) fn signs_of(factors: MatrixFactors) -> u32 {
    match factors {
        MatrixFactors::Half(_) => 0x8000_8000,
        MatrixFactors::Tf32 => 0x8000_0000,
        MatrixFactors::Fp8(..) => 0x8080_8080,
        MatrixFactors::Bytes(..)
        | MatrixFactors::Nibbles(..)
        | MatrixFactors::Tiny(..)
        | MatrixFactors::Scaled(_)
        | MatrixFactors::Bits(_)
        | MatrixFactors::Double
        | MatrixFactors::Quads(_) => unreachable!("integers and bits have no `imm-scale`"),
    }
}

/// Registers of a fragment from shared memory: register n has step `steps[n]` along k of lines from
/// `first + lines[n]` on.
///
/// # Errors
/// An element that is not there.
pub(super) fn loaded<const N: usize>(
    matrix: &SharedMatrix,
    op: MatrixOp,
    first: u32,
    steps: [u32; N],
    lines: [u32; N],
    shared: &[u8],
) -> Result<[V32; N], GroupMisfit> {
    debug_assert!(op.deep, "a product of four warps has 32 bytes of each line");
    let mut registers = [[0; LANES]; N];
    for (n, register) in registers.iter_mut().enumerate() {
        for (lane, word) in (0..).zip(register.iter_mut()) {
            let (line, t) = (first + lines[n] + lane / 4, lane % 4);
            let read = |k: u32, bytes: u32| {
                let address = matrix.byte(line, k, bytes);
                let found = shared.get(address as usize..(address + bytes) as usize);
                found.ok_or(GroupMisfit::Outside { lane, address })
            };
            // A word lies in one piece along a line; across lines its elements do not.
            *word = match matrix.across() {
                None => u32::from_le_bytes(read(4 * steps[n] + t, 4)?.try_into().expect("a word")),
                Some(bytes) => {
                    let each = 4 / bytes;
                    let mut parts = [0; 4];
                    for i in 0..each {
                        let element = read(4 * each * steps[n] + each * t + i, bytes)?;
                        parts[(i * bytes) as usize..][..bytes as usize].copy_from_slice(element);
                    }
                    u32::from_le_bytes(parts)
                }
            };
        }
    }
    Ok(registers)
}
