//! Verbs of a core's harts: they are handed to the poster, and what is acknowledged is told back.
//!
//! `rdma.post` is executed alone: all that its hart stored before is performed when the poster hears of
//! it, so that it posts these bytes. `rdma.poll` is, too, and reads what the poster told last. Not modelled:
//! doorbells and completions as memory.

use crate::verbs::PosterMsg;
use durawarp_riscv::fault::FaultKind;
use durawarp_riscv::instruction::{Inst, NOWHERE, Op};
use durawarp_riscv::verbs::DESCRIPTOR_BYTES;

use super::hart::{Hart, Moment};
use super::window::{Retires, Source};

/// Performs a verb's instruction, all before which is done and seen.
pub(super) fn perform(hart: &mut Hart, inst: &Inst, cycle: u64, m: &mut Moment<'_, '_>) {
    let pc = hart.front.pc;
    let value = if let Source::Ready(value, _) = hart.window.source(inst.rs1) { value } else { 0 };
    let done = if inst.op == Op::RdmaPoll { polled(hart, value, m) } else { post(hart, value, cycle, m) };
    match done {
        Ok(value) => {
            let to = if inst.op == Op::RdmaPoll { inst.rd } else { NOWHERE };
            hart.window.push(pc, to, Retires::Plain, value, cycle + 1);
        }
        Err(fault) => {
            let number = hart.window.push(pc, NOWHERE, Retires::Plain, 0, cycle + 1);
            hart.note_fault(number, fault);
        }
    }
}

fn polled(hart: &Hart, peer: u64, m: &Moment<'_, '_>) -> Result<u64, FaultKind> {
    let peer = m.remote.peers.peer(peer).map_err(FaultKind::Verb)?;
    Ok(m.remote.acknowledged(hart.index.into(), peer))
}

fn post(hart: &Hart, descriptor: u64, cycle: u64, m: &mut Moment<'_, '_>) -> Result<u64, FaultKind> {
    m.remote.peers.peer(1).map_err(FaultKind::Verb)?;
    let Some(poster) = m.remote.to_poster else { unreachable!("a peer that nothing is posted to") };
    if m.program.memory.physical(descriptor, DESCRIPTOR_BYTES).is_none() {
        return Err(FaultKind::Unmapped { address: descriptor, bytes: DESCRIPTOR_BYTES, write: false });
    }
    let id = m.program.first_hart + u32::from(hart.index);
    let delay = m.program.until(cycle, m.cx);
    poster.send(PosterMsg::Post { hart: id, descriptor, pc: hart.front.pc }, delay, m.cx);
    Ok(0)
}
