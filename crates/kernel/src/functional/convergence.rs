//! Barriers that a part of a warp executes: a fault of the program where one of the other lanes has a barrier
//! still to come.
//!
//! Each path of the program from an absent lane's place on is followed, whatever its guards would be. Not
//! modelled: which way a lane would go.

use super::super::fault::{FaultKind, ProgramFault};
use super::super::ir::{Guard, Inst, Op};
use super::super::launch::Launch;
use super::super::warp::{RETURN, Warp};

/// A barrier that only some lanes of a warp execute is in order if none of the others meets a barrier any
/// more.
#[cold]
pub(super) fn whole(warp: &Warp, launch: &Launch, name: impl Fn() -> String, lanes: u64) -> Result<(), ProgramFault> {
    let kernel = &*launch.kernel;
    let pc = warp.pc();
    if lanes == 0 {
        return Ok(());
    }
    let mut seen = vec![false; kernel.code.len()];
    let mut here = lanes;
    let paths: Vec<_> = warp.paths().collect();
    for (i, path) in paths.iter().enumerate().rev() {
        let absent = path.mask & !here;
        here |= path.mask;
        // Lanes of the current path that skip the barrier go on after it.
        let top = i + 1 == paths.len();
        let start = if top { pc + 1 } else { path.pc };
        // Lanes in a subroutine may return, and go on after each call on the way.
        let behind_calls = (1..=i).filter(|&n| paths[n].reconverge == RETURN).map(|n| paths[n - 1].pc);
        let mut starts = std::iter::once(start).chain(behind_calls);
        if absent != 0 && starts.any(|start| reaches_barrier(&kernel.code, start, &mut seen)) {
            let (_, thread) = warp.thread_of(absent.trailing_zeros());
            let kind = FaultKind::DivergentBarrier {
                barrier: name(),
                absent: launch.thread_index(thread),
                elsewhere: kernel.pos[start as usize],
            };
            return Err(ProgramFault::new(kind, launch, warp, pc, lanes.trailing_zeros()));
        }
    }
    Ok(())
}

/// Some way from `pc` on meets a barrier. `seen` marks what was looked at before, without finding one.
fn reaches_barrier(code: &[Inst], pc: u32, seen: &mut [bool]) -> bool {
    let mut todo = vec![pc];
    while let Some(pc) = todo.pop() {
        let Some(inst) = code.get(pc as usize).filter(|_| !seen[pc as usize]) else { continue };
        seen[pc as usize] = true;
        let guarded = inst.guard != Guard::ALWAYS;
        match inst.op {
            Op::Barrier(_) => return true,
            Op::Pm(op) if op.gathers().is_some() => return true,
            Op::Branch { target, .. } => {
                todo.push(target);
                if guarded {
                    todo.push(pc + 1);
                }
            }
            Op::Exit | Op::Trap(_) if !guarded => {}
            Op::Return => {}
            Op::Call { target } => todo.extend([target, pc + 1]),
            _ => todo.push(pc + 1),
        }
    }
    false
}
