//! Products of four warps (`wgmma.mma_async`, PTX ISA 9.7.15): a warp's part, and what it reads.
//!
//! Source: PTX ISA, "Warpgroup": four warps with contiguous ranks, the first a multiple of 4. A group of 32
//! lanes is a warp there; a 64-wide warp is two of them. What is computed is in `semantics/matrix_group.rs`.
//! Invariant: functional driver and timed machine both multiply here.
//!
//! Not found: warps of a group that execute different instructions, or name different descriptors, and what
//! uses d between a product and the wait for it. The ISA leaves all three undefined; here each warp does what
//! it says, and d is there at once.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{GroupProduct, Inst, LANES};
use super::super::launch::Launch;
use super::super::semantics::{CHUNK_BYTES, Frame, GroupMisfit, Misfit, SharedFactors, multiply_group};
use super::Warp;

/// Threads of a warp group.
const GROUP_THREADS: u32 = 4 * LANES as u32;

impl Warp {
    /// Multiplies its part of a product on `lanes` (already guarded), with the CTA's shared memory. Of a
    /// trace nothing is computed. Does not move the pc.
    ///
    /// # Errors
    /// A warp of the group is not there, a lane of the warp does not take part, lanes do not agree, or a
    /// matrix lies beyond shared memory.
    #[cold]
    pub fn multiply_group(
        &mut self,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
        shared: &[u8],
    ) -> Result<(), Box<ProgramFault>> {
        let Some(operands) = &launch.kernel.group_products[inst.imm as usize].operands else { return Ok(()) };
        self.check_group(launch, lanes)?;
        let first = self.first_thread / LANES as u32;
        for i in 0..self.groups.len() {
            let mask = (lanes >> (i * LANES)) as u32;
            if mask != 0 {
                let regs = &mut self.groups[i];
                let mut frame = Frame { regs, consts32: &launch.consts32, consts64: &launch.consts64, mask };
                let rank = (first + i as u32) % 4;
                multiply_group(&mut frame, operands, rank, shared)
                    .map_err(|misfit| self.group_fault(misfit, i, launch))?;
            }
        }
        Ok(())
    }

    /// Names the chunks of shared memory that a product reads: lanes, their addresses, and bytes of each.
    ///
    /// # Errors
    /// As of [`Warp::multiply_group`].
    #[cold]
    pub fn each_group_read(
        &self,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
        mut read: impl FnMut(u64, &[u64; 64], u32),
    ) -> Result<(), Box<ProgramFault>> {
        let GroupProduct { columns, operands: Some(operands), .. } = &launch.kernel.group_products[inst.imm as usize]
        else {
            return Ok(());
        };
        self.check_group(launch, lanes)?;
        for (i, group) in self.groups.iter().enumerate().filter(|(i, _)| lanes >> (i * LANES) as u32 & 1 == 1) {
            let regs = &mut group.clone();
            let frame = Frame { regs, consts32: &launch.consts32, consts64: &launch.consts64, mask: u32::MAX };
            let factors = SharedFactors::of(&frame, operands).map_err(|misfit| self.group_fault(misfit, i, launch))?;
            let rank = (self.first_thread / LANES as u32 + i as u32) % 4;
            tell_chunks(&factors.chunks(operands, u32::from(*columns), rank), &mut read);
        }
        Ok(())
    }

    /// Finds that all warps of the group are there, and all lanes of this one.
    fn check_group(&self, launch: &Launch, lanes: u64) -> Result<(), Box<ProgramFault>> {
        self.check_whole(launch, lanes, "wgmma.mma_async")?;
        let threads = launch.threads_per_cta();
        let last = self.first_thread + 63 - lanes.leading_zeros();
        if last / GROUP_THREADS * GROUP_THREADS + GROUP_THREADS <= threads {
            return Ok(());
        }
        let what = format!(
            "`wgmma.mma_async` is executed by a warp of an incomplete group of four: a CTA here has {threads} threads, \
             which is no multiple of {GROUP_THREADS}"
        );
        let fault = ProgramFault::new(FaultKind::Unsupported(what), launch, self, self.pc(), lanes.trailing_zeros());
        Err(Box::new(fault))
    }

    fn group_fault(&self, misfit: GroupMisfit, group: usize, launch: &Launch) -> Box<ProgramFault> {
        let first = (group * LANES) as u32;
        let (lane, kind) = match misfit {
            GroupMisfit::Several(what) => {
                let what =
                    format!("the lanes of a warp have several {what} of `wgmma.mma_async`, and the ISA asks for one");
                (first, FaultKind::Unsupported(what))
            }
            GroupMisfit::Metadata(Misfit { lane, what }) => (first + lane, FaultKind::Unsupported(what)),
            GroupMisfit::Outside { lane, address } => {
                let hint = format!("the CTA has {} bytes; it is in a matrix of `wgmma.mma_async`", launch.shared_bytes);
                let (address, bytes) = (address.into(), CHUNK_BYTES);
                (first + lane, FaultKind::OutOfBounds { address, bytes, space: "shared", hint })
            }
        };
        Box::new(ProgramFault::new(kind, launch, self, self.pc(), lane))
    }
}

/// Names chunks of shared memory as if each lane read one.
pub(super) fn tell_chunks(chunks: &[u32], mut read: impl FnMut(u64, &[u64; 64], u32)) {
    for chunks in chunks.chunks(LANES) {
        let mut addresses = [0; 64];
        addresses.iter_mut().zip(chunks).for_each(|(address, &chunk)| *address = chunk.into());
        read(u64::MAX >> (64 - chunks.len()), &addresses, CHUNK_BYTES);
    }
}
