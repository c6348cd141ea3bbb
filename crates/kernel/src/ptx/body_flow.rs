//! Control flow of a body before register allocation: over calls and returns, and within one activation.
//!
//! Not here: blocks and post-dominators, which follow from the flow (`cfg`).

use super::super::cfg::Flow;
use super::super::ir::Op;
use super::draft::{Body, Draft, DraftOp, Label};

pub(super) fn target(labels: &[Option<u32>], label: Label) -> u32 {
    labels[label as usize].expect("every label of a body without faults is placed")
}

/// The first instruction of the subroutine that a call site calls.
pub(super) fn start_of(body: &Body, site: u32) -> u32 {
    target(&body.labels, body.subroutines[body.sites[site as usize].callee as usize].start)
}

/// Where control goes after an instruction. Where a subroutine returns to is in [`returns`].
pub(super) fn flow_of(draft: &Draft, body: &Body) -> Flow {
    let guarded = draft.guard.is_some();
    match draft.op {
        DraftOp::Branch(label) => Flow { falls: guarded, jumps: Some(target(&body.labels, label)) },
        DraftOp::Call(site) => Flow { falls: false, jumps: Some(start_of(body, site)) },
        DraftOp::Return(_) => Flow { falls: false, jumps: None },
        DraftOp::Op(Op::Exit | Op::Trap(_)) => Flow { falls: guarded, jumps: None },
        _ => Flow::NEXT,
    }
}

/// Each subroutine's return, and the places after its calls.
pub(super) fn returns(body: &Body) -> Vec<(u32, Vec<u32>)> {
    let mut returns: Vec<(u32, Vec<u32>)> = vec![(0, Vec::new()); body.subroutines.len()];
    for (pc, draft) in body.code.iter().enumerate() {
        match draft.op {
            DraftOp::Return(number) => returns[number as usize].0 = pc as u32,
            DraftOp::Call(site) => returns[body.sites[site as usize].callee as usize].1.push(pc as u32 + 1),
            _ => {}
        }
    }
    returns
}

/// Control flow within one activation: a call goes on after itself.
///
/// Lanes of a subroutine meet at its return at the latest, so that all that were called together return
/// together. Those that exit, or end the run, are not awaited: such an instruction counts as an endless loop
/// there.
pub(super) fn within(body: &Body) -> Vec<Flow> {
    let subroutines = body.subroutines.first().map_or(u32::MAX, |first| target(&body.labels, first.start));
    let flow = |(pc, draft): (usize, &Draft)| match draft.op {
        DraftOp::Call(_) => Flow::NEXT,
        DraftOp::Op(Op::Exit | Op::Trap(_)) if draft.guard.is_none() && pc as u32 >= subroutines => {
            Flow { falls: false, jumps: Some(pc as u32) }
        }
        _ => flow_of(draft, body),
    };
    body.code.iter().enumerate().map(flow).collect()
}
