//! What all lanes of a warp do together with matrices: products of fragments, and loads of fragments.
//!
//! Source: PTX ISA 9.7.14. A group of 32 lanes takes part as a whole or not at all; with 64-wide warps each
//! half is a group of its own. The layouts of products are in `semantics/matrix.rs`.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, LANES, Mem, MemKind, NONE, Op};
use super::super::launch::Launch;
use super::super::semantics::{Frame, Misfit, multiply};
use super::Warp;

impl Warp {
    /// Executes a matrix instruction on `lanes` (already guarded). Does not move the pc.
    ///
    /// # Errors
    /// A lane of a group of 32 does not take part, or metadata name no elements: the ISA leaves undefined
    /// what happens.
    #[cold]
    pub fn multiply(&mut self, inst: &Inst, launch: &Launch, lanes: u64) -> Result<(), Box<ProgramFault>> {
        let Op::Matrix(op) = inst.op else { panic!("not a matrix instruction: {:?}", inst.op) };
        self.check_whole(launch, lanes, "mma")?;
        let fragments = &launch.kernel.fragments[inst.imm as usize];
        for (i, regs) in self.groups.iter_mut().enumerate() {
            let mask = (lanes >> (i * LANES)) as u32;
            if mask != 0 {
                let mut frame = Frame { regs, consts32: &launch.consts32, consts64: &launch.consts64, mask };
                if let Err(Misfit { lane, what }) = multiply(&mut frame, inst, op, fragments) {
                    let (kind, lane) = (FaultKind::Unsupported(what), lane + (i * LANES) as u32);
                    return Err(Box::new(ProgramFault::new(kind, launch, self, self.pc(), lane)));
                }
            }
        }
        Ok(())
    }

    /// Finds that whole groups of 32 lanes execute an instruction that all of them take part in.
    ///
    /// # Errors
    /// A lane that does not, of a group that has others.
    pub fn check_whole(&self, launch: &Launch, lanes: u64, name: &str) -> Result<(), Box<ProgramFault>> {
        for first in (0..64).step_by(LANES) {
            let group = lanes >> first & u64::from(u32::MAX);
            if group != 0 && group != u64::from(u32::MAX) {
                let what = format!(
                    "`{name}` is executed by {} of 32 lanes of a warp, and all of them take part in it",
                    group.count_ones()
                );
                let lane = first as u32 + group.trailing_zeros();
                return Err(Box::new(ProgramFault::new(FaultKind::Unsupported(what), launch, self, self.pc(), lane)));
            }
        }
        Ok(())
    }

    /// Writes the matrices of an `ldmatrix` that `lanes` execute to its destinations; rows have their
    /// addresses, all of which lie inside of `memory`.
    ///
    /// Lane 4 g + t gets elements 2 t and 2 t + 1 of row g; transposed, rows 2 t and 2 t + 1 of column g (PTX
    /// ISA 9.7.14, "Warp-level matrix load instruction: ldmatrix").
    #[cold]
    pub fn write_matrices(&mut self, inst: &Inst, lanes: u64, address: &[u64; 64], memory: &[u8]) {
        let Op::Mem(Mem { kind: MemKind::Matrix(transposed), .. }) = inst.op else {
            panic!("not a load of matrices: {:?}", inst.op)
        };
        for (i, group) in self.groups.iter_mut().enumerate().filter(|(i, _)| lanes >> (i * LANES) as u32 & 1 == 1) {
            for (matrix, &slot) in inst.dst.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                let rows = &address[i * LANES + 8 * matrix..][..8];
                let element = |row: usize, column: usize| {
                    let at = rows[row] as usize + 2 * column;
                    u32::from(u16::from_le_bytes([memory[at], memory[at + 1]]))
                };
                group.r32[usize::from(slot)] = std::array::from_fn(|lane| {
                    let (g, t) = (lane / 4, lane % 4);
                    let [low, high] =
                        [2 * t, 2 * t + 1].map(|n| if transposed { element(n, g) } else { element(g, n) });
                    low | high << 16
                });
            }
        }
    }

    /// The lanes whose addresses an `ldmatrix` of `lanes` reads: eight a matrix.
    pub fn row_lanes(inst: &Inst, lanes: u64) -> u64 {
        let rows = 8 * inst.dst.iter().filter(|slot| **slot != NONE).count();
        lanes & ((u64::MAX >> (64 - rows)) * 0x1_0000_0001)
    }
}
