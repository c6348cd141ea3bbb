//! Calls and returns of a warp: an activation is a path of its own on the SIMT stack.
//!
//! A call turns the current path into the one that continues after it, and puts a path at the callee above.
//! Lanes that diverge in the callee meet at its return at the latest, since post-dominators are found within
//! one activation (`ptx/finish.rs`). So all lanes of the path return together, whatever depth others of the
//! warp are at, and lanes on one path have the same chain of calls. Each lane's return address is also on its
//! stack in local memory, as on hardware; a return checks that it is the one of the call.
//!
//! Source: GPGPU-Sim's `simt_stack`, whose entries of type call do the same.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Inst, LANES};
use super::super::launch::Launch;
use super::super::semantics::get;
use super::{Path, RETURN, Warp, lanes_of};

impl Warp {
    /// Executes an [`Op::Call`](super::super::ir::Op::Call) of the subroutine at `target` by all lanes of the
    /// path.
    ///
    /// # Errors
    /// A frame that does not fit on the stack of some lane.
    pub fn call(&mut self, inst: &Inst, launch: &Launch, target: u32) -> Result<(), Box<ProgramFault>> {
        let Path { pc, mask, .. } = self.top;
        if mask == 0 {
            return Ok(());
        }
        for (i, group) in self.groups.iter_mut().enumerate() {
            let [frame, last] = [0, 1].map(|n| get(&group.r64, &launch.consts64, inst.src[n]));
            let full =
                lanes_of(mask >> (i * LANES) & 0xffff_ffff).find(|&lane| inst.imm != 0 || frame[lane] > last[lane]);
            if let Some(lane) = full {
                let (depth, bytes) = (self.depth() + 1, launch.kernel.stack_bytes);
                let lane = (i * LANES + lane) as u32;
                let kind = FaultKind::StackOverflow { depth, bytes };
                return Err(Box::new(ProgramFault::new(kind, launch, self, pc, lane)));
            }
            for lane in lanes_of(mask >> (i * LANES) & 0xffff_ffff) {
                group.r32[usize::from(inst.dst[0])][lane] = pc + 1;
            }
        }
        self.below.push(Path { pc: pc + 1, ..self.top });
        self.top = Path { pc: target, reconverge: RETURN, mask };
        Ok(())
    }

    /// Executes an [`Op::Return`](super::super::ir::Op::Return): the path that the call made ends.
    ///
    /// # Errors
    /// A return address that is not that of the call.
    ///
    /// # Panics
    /// When lanes that were called together return apart, which their reconvergence points exclude.
    pub fn ret(&mut self, inst: &Inst, launch: &Launch) -> Result<(), Box<ProgramFault>> {
        let (Some(&caller), top) = (self.below.last(), self.top) else { panic!("a return without a call") };
        assert_eq!((top.reconverge, top.mask), (RETURN, caller.mask), "lanes called together return together");
        for lane in lanes_of(top.mask) {
            let group = &self.groups[lane / LANES];
            let found = get(&group.r32, &launch.consts32, inst.src[0])[lane % LANES];
            if found != caller.pc {
                let kind = FaultKind::ReturnSite { found };
                return Err(Box::new(ProgramFault::new(kind, launch, self, top.pc, lane as u32)));
            }
        }
        self.below.pop();
        self.top = caller;
        self.settle();
        Ok(())
    }

    /// Calls under way on the current path.
    fn depth(&self) -> u32 {
        self.paths().filter(|path| path.reconverge == RETURN).count() as u32
    }
}
