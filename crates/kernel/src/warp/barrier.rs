//! Barriers whose number and count of threads are in registers (PTX ISA 9.7.13, `bar`, `barrier`).
//!
//! All lanes that arrive must name one barrier and one count.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Barrier, Inst, NONE, Slot};
use super::super::launch::Launch;
use super::{Warp, lanes_of};

impl Warp {
    /// The barrier at the pc, with what registers say of it in `lanes`, of which there is one at least.
    ///
    /// # Errors
    /// A number that no barrier has, or one that differs between lanes: the ISA leaves undefined what
    /// happens.
    #[inline]
    pub fn barrier_at(
        &self,
        barrier: Barrier,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
    ) -> Result<Barrier, Box<ProgramFault>> {
        if barrier.in_registers { self.barrier_in_registers(barrier, inst, launch, lanes) } else { Ok(barrier) }
    }

    #[cold]
    fn barrier_in_registers(
        &self,
        mut barrier: Barrier,
        inst: &Inst,
        launch: &Launch,
        lanes: u64,
    ) -> Result<Barrier, Box<ProgramFault>> {
        // The first lane speaks for all, if the others agree.
        let value = |slot: Slot, what: &'static str, sound: fn(u32) -> bool| {
            let first = self.operand32(slot, launch, lanes.trailing_zeros());
            match lanes_of(lanes).find(|lane| {
                let value = self.operand32(slot, launch, *lane as u32);
                value != first || !sound(value)
            }) {
                None => Ok(first),
                Some(lane) => {
                    let value = self.operand32(slot, launch, lane as u32);
                    let kind = FaultKind::BarrierOperand { what, value };
                    Err(Box::new(ProgramFault::new(kind, launch, self, self.pc(), lane as u32)))
                }
            }
        };
        if inst.src[1] != NONE {
            barrier.id = value(inst.src[1], "barrier", |id| id < 16)? as u8;
        }
        if inst.src[2] != NONE {
            let count = |threads: u32| threads > 0 && threads <= 1024 && threads.is_multiple_of(32);
            barrier.threads = value(inst.src[2], "count of threads", count)? as u16;
        }
        Ok(barrier)
    }
}
