//! What regions insert into a program: at a boundary, stores of registers into the hart's slots, and at last
//! one of the program counter, with which the region ends.
//!
//! ```text
//!   ... ──[ slot of r ◀─ r, for each register of the boundary; slot of pc ◀─ pc ]── instruction at pc ──> ...
//! ```
//! They take dispatch slots, places in the window and in the store queue, and are performed in the order of
//! stores, as the paper's instructions of the compiler do; the binary is not rewritten. Source: LightWSP,
//! sections III-C and IV-A. Invariant: what a wrong path inserts is squashed with it. Not modelled: their
//! fetch.

use durawarp_riscv::instruction::{Inst, NOWHERE, Op};
use durawarp_riscv::regions::PC_SLOT;

use super::cause::Cause;
use super::hart::{Hart, Moment, Stall};
use super::hart_regions::Insertion;
use super::store_queue::{StoreEntry, StoreKind};
use super::window::{Retires, Source};

/// Dispatches the next store of the boundary at the head of dispatch.
pub(super) fn dispatch(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> Result<(), Stall> {
    let insertion = hart.regions.as_ref().map(|regions| regions.insertion);
    let Some(Insertion::Left(left, pc_value)) = insertion else { unreachable!("there is something to insert") };
    if hart.stores.is_full() {
        return Err(Stall { cause: Cause::Stores, until: hart.retires_at(cycle) });
    }
    if hart.window.is_full() {
        return Err(hart.behind_oldest(cycle));
    }
    let (slot, source) = match left.trailing_zeros() {
        64 => (PC_SLOT, Source::Ready(pc_value, 0)),
        // The slot of x0 has `fcsr`. Its value is read when this store retires.
        0 => (0, Source::Ready(0, 0)),
        register => (register as usize, hart.window.source(register as u8)),
    };
    let (kind, retires) = match slot {
        PC_SLOT => (StoreKind::RegionEnd, Retires::RegionEnd),
        0 => (StoreKind::Checkpoint, Retires::StatusCheckpoint),
        _ => (StoreKind::Checkpoint, Retires::Checkpoint),
    };
    let pc = hart.front.pc;
    let (number, value) = match source {
        Source::Ready(value, ready) => (hart.window.push(pc, NOWHERE, retires, 0, ready.max(cycle) + 1), Some(value)),
        Source::Pending(_) => {
            let inst = Inst { rs2: slot as u8, ..Inst::new(Op::PmRegion) };
            let sources = [Source::Ready(0, 0), source, Source::Ready(0, 0)];
            (hart.wait(pc, &inst, sources, cycle, retires)?, None)
        }
    };
    let id = m.program.first_hart + u32::from(hart.index);
    let address = Some(m.program.slot(id, slot));
    hart.stores.push(StoreEntry { number, pc, address, value, ready: cycle, width: 8, kind });
    if let Some(regions) = &mut hart.regions {
        match kind {
            StoreKind::RegionEnd => regions.ended(pc),
            _ => regions.insertion = Insertion::Left(left & (left - 1), pc_value),
        }
    }
    Ok(())
}
