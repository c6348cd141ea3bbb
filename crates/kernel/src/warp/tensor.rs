//! What warps do with the tensor memory of their CTA (`tcgen05`, PTX ISA 9.7.16): transfers of registers, and
//! products, which a single thread begins.
//!
//! Invariant: functional driver and timed machine both compute here. Source: PTX ISA 9.7.16.2.3.1 (images of
//! transfers), 9.7.16.2.3 (a warp accesses the quarter of the lanes that its rank among four has).
//!
//! Not found: a transfer that does not wait for a product that is under way, or a use of registers before the
//! wait for their load: values are there at once.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{GroupElements, Inst, LANES, Op, Slot, TensorCopy, TensorKind, TensorShape};
use super::super::launch::Launch;
use super::super::semantics::{
    CopyOperands, CopyValues, Frame, TensorMisfit, TensorValues, get, merge, multiply_in_tensor_memory, multiply_scaled,
};
use super::super::tensor_memory::TensorMemory;
use super::group::tell_chunks;
use super::{Warp, lanes_of};

/// What a product takes of the tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorWork {
    /// Elements of a and b.
    pub elements: GroupElements,
    /// Multiplications and additions.
    pub operations: u32,
}

impl Warp {
    pub(super) fn tensor_fault(&self, what: String, launch: &Launch, lane: usize) -> Box<ProgramFault> {
        Box::new(ProgramFault::new(FaultKind::Unsupported(what), launch, self, self.pc(), lane as u32))
    }

    /// A 32-bit operand that all lanes have alike.
    ///
    /// # Errors
    /// They do not.
    pub fn tensor_operand(&self, slot: Slot, launch: &Launch, lanes: u64) -> Result<u32, Box<ProgramFault>> {
        let value = |lane: usize| {
            let group = &self.groups[lane / LANES];
            get(&group.r32, &launch.consts32, slot)[lane % LANES]
        };
        let first = lanes.trailing_zeros() as usize;
        let found = value(first);
        match lanes_of(lanes).find(|&lane| value(lane) != found) {
            None => Ok(found),
            Some(lane) => Err(self.tensor_fault(
                "the lanes of a warp have several operands of `tcgen05`".to_owned(),
                launch,
                lane,
            )),
        }
    }

    /// How many columns a warp asks for.
    ///
    /// # Errors
    /// No such number can be had, or lanes do not agree.
    pub fn columns_to_allocate(&self, inst: &Inst, launch: &Launch, lanes: u64) -> Result<u32, Box<ProgramFault>> {
        self.check_whole(launch, lanes, "tcgen05.alloc")?;
        let columns = self.tensor_operand(inst.src[0], launch, lanes)?;
        if TensorMemory::is_size(columns) {
            return Ok(columns);
        }
        let what = format!("`tcgen05.alloc` of {columns} columns: it takes a power of two from 32 to 512");
        Err(self.tensor_fault(what, launch, lanes.trailing_zeros() as usize))
    }

    /// A warp frees columns of its CTA; how many.
    ///
    /// # Errors
    /// They were not allocated so, or lanes do not agree.
    pub fn free_columns(
        &self,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
        memory: &mut TensorMemory,
    ) -> Result<u32, Box<ProgramFault>> {
        self.check_whole(launch, lanes, "tcgen05.dealloc")?;
        let [address, columns] = [inst.src[0], inst.src[1]].map(|slot| self.tensor_operand(slot, launch, lanes));
        let (address, columns) = (address?, columns?);
        memory
            .free(address, columns)
            .map_err(|what| self.tensor_fault(what, launch, lanes.trailing_zeros() as usize))?;
        Ok(columns)
    }

    /// Finds that the CTA of a warp, the last to end, has freed its columns.
    ///
    /// # Errors
    /// It has some left: the ISA asks for that.
    pub fn check_columns_freed(&self, memory: &TensorMemory, launch: &Launch) -> Result<(), Box<ProgramFault>> {
        match memory.columns() {
            0 => Ok(()),
            columns => {
                let what = format!("the CTA ends with {columns} columns of tensor memory that it has not freed");
                Err(self.tensor_fault(what, launch, 0))
            }
        }
    }

    /// Writes a 32-bit result to all lanes.
    pub fn write_tensor_result(&mut self, slot: Slot, lanes: u64, value: u32) {
        for (i, regs) in self.groups.iter_mut().enumerate() {
            let mask = (lanes >> (i * LANES)) as u32;
            merge(&mut regs.r32[usize::from(slot)], &[value; LANES], mask, u32::MAX, 0);
        }
    }

    /// Loads registers from tensor memory, or stores them there.
    ///
    /// # Errors
    /// Lanes or columns that are not the warp's.
    #[cold]
    pub fn transfer_tensor(
        &mut self,
        inst: &Inst,
        (shape, loads): (TensorShape, bool),
        launch: &Launch,
        lanes: u64,
        memory: &mut TensorMemory,
    ) -> Result<(), Box<ProgramFault>> {
        let name = if loads { "tcgen05.ld" } else { "tcgen05.st" };
        self.check_whole(launch, lanes, name)?;
        let vector = &launch.kernel.tensor.vectors[inst.imm as usize];
        // A register that packs has the halves of two columns.
        let per_register = if vector.packs { 2 } else { 1 };
        for i in (0..self.groups.len()).filter(|i| lanes >> (i * LANES) as u32 & 1 == 1) {
            let address = self.tensor_operand(inst.src[0], launch, lanes & (u64::from(u32::MAX) << (i * LANES)))?;
            let (lane, column) = (address >> 16, address & 0xffff);
            let rank = (self.first_thread / LANES as u32 + i as u32) % 4;
            let half = lane == 32 * rank + 16 && shape != TensorShape::Lanes32;
            let place = |thread: u32, register: u32, part: u32| {
                let [row, further] = shape.place(thread, register * per_register + part);
                [lane + row, column + further]
            };
            let cells = (0..LANES as u32).flat_map(|t| (0..vector.registers.len() as u32).map(move |r| (t, r)));
            let last = cells.map(|(t, r)| place(t, r, per_register - 1)[1]).max().unwrap_or(column);
            // A warp has a quarter of the lanes, of which 16 at a time may be the upper half.
            let misfit = if lane != 32 * rank && !half {
                Some(format!("lane {lane} by a warp of rank {rank} of four, whose lanes begin at {}", 32 * rank))
            } else if !memory.owns(column..last + 1) {
                Some(format!("columns {column} to {last}, of which its CTA has not all"))
            } else {
                None
            };
            if let Some(what) = misfit {
                return Err(self.tensor_fault(format!("`{name}` accesses tensor memory at {what}"), launch, i * LANES));
            }
            let regs = &mut self.groups[i];
            for (r, &slot) in (0..).zip(&vector.registers) {
                let mut value = if loads { [0; LANES] } else { *get(&regs.r32, &launch.consts32, slot) };
                for (t, word) in (0..).zip(&mut value) {
                    for part in 0..per_register {
                        let [lane, column] = place(t, r, part);
                        let (cell, bits) = (memory.cell(lane, column), 32 / per_register);
                        match loads {
                            true if vector.packs => *word |= (*cell & 0xffff) << (bits * part),
                            true => *word = *cell,
                            false if vector.packs => *cell = *word >> (bits * part) & 0xffff,
                            false => *cell = *word,
                        }
                    }
                }
                if loads {
                    regs.r32[usize::from(slot)] = value;
                }
            }
        }
        Ok(())
    }

    /// Multiplies for each lane, one after another; what each takes.
    ///
    /// # Errors
    /// What is not supported, or not there.
    #[cold]
    pub fn multiply_tensor(
        &self,
        inst: &Inst,
        kind: TensorKind,
        launch: &Launch,
        lanes: u64,
        memory: &mut TensorMemory,
        shared: &[u8],
    ) -> Result<Vec<TensorWork>, Box<ProgramFault>> {
        let mut works = Vec::new();
        for lane in lanes_of(lanes) {
            let values = self.tensor_values(inst, (kind, false), launch, lane);
            let work = match kind {
                TensorKind::Scaled(kind) => multiply_scaled(&values, kind, memory, shared),
                _ => multiply_in_tensor_memory(&values, memory, shared),
            }
            .and_then(|()| values.work());
            let (elements, operations) = work.map_err(|misfit| self.tensor_misfit(misfit, lane, launch))?;
            works.push(TensorWork { elements, operations });
        }
        Ok(works)
    }

    /// Names the chunks of shared memory that products read: lanes, their addresses, and bytes of each.
    ///
    /// # Errors
    /// What is not supported.
    #[cold]
    pub fn each_tensor_read(
        &self,
        inst: &Inst,
        kind: (TensorKind, bool),
        launch: &Launch,
        lanes: u64,
        mut read: impl FnMut(u64, &[u64; 64], u32),
    ) -> Result<(), Box<ProgramFault>> {
        for lane in lanes_of(lanes) {
            let chunks = self.tensor_values(inst, kind, launch, lane).chunks();
            tell_chunks(&chunks.map_err(|misfit| self.tensor_misfit(misfit, lane, launch))?, &mut read);
        }
        Ok(())
    }

    /// Copies from shared to tensor memory for each lane, one after another; how many bytes each reads.
    ///
    /// # Errors
    /// What is not supported, or not there.
    #[cold]
    pub fn copy_to_tensor_memory(
        &self,
        inst: &Inst,
        copy: TensorCopy,
        launch: &Launch,
        lanes: u64,
        memory: &mut TensorMemory,
        shared: &[u8],
    ) -> Result<Vec<u32>, Box<ProgramFault>> {
        let mut bytes = Vec::new();
        for lane in lanes_of(lanes) {
            let operands = self.copy_operands(inst, copy, launch, lane)?;
            operands.copy(memory, shared).map_err(|misfit| self.tensor_misfit(misfit, lane, launch))?;
            bytes.push(copy.shape.bytes());
        }
        Ok(bytes)
    }

    /// Names the chunks of shared memory that copies to tensor memory read, as
    /// [`each_tensor_read`](Self::each_tensor_read) does those of products.
    ///
    /// # Errors
    /// What is not supported.
    #[cold]
    pub fn each_copy_read(
        &self,
        inst: &Inst,
        copy: TensorCopy,
        launch: &Launch,
        lanes: u64,
        mut read: impl FnMut(u64, &[u64; 64], u32),
    ) -> Result<(), Box<ProgramFault>> {
        for lane in lanes_of(lanes) {
            tell_chunks(&self.copy_operands(inst, copy, launch, lane)?.chunks(), &mut read);
        }
        Ok(())
    }

    fn copy_operands(
        &self,
        inst: &Inst,
        copy: TensorCopy,
        launch: &Launch,
        lane: usize,
    ) -> Result<CopyOperands, Box<ProgramFault>> {
        CopyOperands::of(&self.copy_values(inst, copy, launch, lane))
            .map_err(|misfit| self.tensor_misfit(misfit, lane, launch))
    }

    /// The operands of a copy of a lane.
    pub(super) fn copy_values(&self, inst: &Inst, copy: TensorCopy, launch: &Launch, lane: usize) -> CopyValues {
        self.in_frame(lane, launch, |frame, within| CopyValues::of(frame, within, copy, inst))
    }

    /// The operands of a product of a lane, and of a pair of CTAs or not.
    pub(super) fn tensor_values(
        &self,
        inst: &Inst,
        kind: (TensorKind, bool),
        launch: &Launch,
        lane: usize,
    ) -> TensorValues {
        let product = &launch.kernel.tensor.products[inst.imm as usize];
        self.in_frame(lane, launch, |frame, within| TensorValues::of(frame, within, kind, product))
    }

    /// What `act` makes of the registers of a lane, which it is told among those of its group.
    fn in_frame<T>(&self, lane: usize, launch: &Launch, act: impl FnOnce(&Frame<'_>, usize) -> T) -> T {
        let regs = &mut self.groups[lane / LANES].clone();
        let frame = Frame { regs, consts32: &launch.consts32, consts64: &launch.consts64, mask: u32::MAX };
        act(&frame, lane % LANES)
    }

    pub(super) fn tensor_misfit(&self, misfit: TensorMisfit, lane: usize, launch: &Launch) -> Box<ProgramFault> {
        let name = match launch.kernel.code[self.pc() as usize].op {
            Op::Tensor(step) => step.name(),
            _ => "tcgen05",
        };
        let kind = misfit.fault(launch.shared_bytes, name);
        Box::new(ProgramFault::new(kind, launch, self, self.pc(), lane as u32))
    }
}
