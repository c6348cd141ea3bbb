//! Instructions of a hart retire in the order of the program, as many a cycle as the core is wide.
//!
//! Those that regions insert are counted apart. Invariant: a fault of an instruction is one of the program
//! only when the instruction retires.

use super::commit;
use super::hart::{Hart, Moment};
use super::region;
use super::thread::Thread;
use super::window::Retires;

/// Retires what may in a cycle. False when the program has failed.
#[inline]
pub(super) fn retire(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> bool {
    // Most runs have none of these, and ask once a cycle.
    let heard = m.record.watch.is_some() || hart.regions.is_some() || m.host.policy.renaming;
    if heard || m.record.notes_retirement || hart.fault.is_some() {
        retire_each::<true>(hart, cycle, m)
    } else {
        retire_each::<false>(hart, cycle, m)
    }
}

/// Retires what may in a cycle. `HEARD`: somebody hears of single instructions, or one of them is a fault.
fn retire_each<const HEARD: bool>(hart: &mut Hart, cycle: u64, m: &mut Moment<'_, '_>) -> bool {
    for _ in 0..m.program.spec.width {
        let Some((number, retires)) = hart.window.retire(cycle) else { break };
        m.record.counters.instructions += 1;
        if HEARD {
            note_retired(hart, number, retires, cycle, m);
        }
        match retires {
            Retires::Plain | Retires::Load => {}
            // What regions insert is no instruction of the program.
            Retires::Checkpoint | Retires::StatusCheckpoint | Retires::RegionEnd => {
                m.record.counters.instructions -= 1;
                m.record.counters.inserted += 1;
                if retires == Retires::StatusCheckpoint {
                    hart.stores.set_value(number, hart.fcsr().into(), cycle);
                }
                hart.stores.retire();
            }
            Retires::Store => {
                hart.stores.retire();
                if HEARD {
                    commit::retired(hart.index, &hart.stores, cycle, m);
                }
            }
            Retires::Operation => m.record.counters.operations += 1,
        }
        if HEARD
            && let Some((faulty, kind)) = hart.fault
            && faulty == number
        {
            let pc = hart.window.entry(number).pc;
            let fault = m.program.fault(hart.index, pc, kind);
            hart.thread = Thread::Stopped;
            m.cx.fail(fault);
            return false;
        }
    }
    true
}

/// What is watched, regions and the scheme hear of an instruction that has retired.
fn note_retired(hart: &mut Hart, number: u64, retires: Retires, cycle: u64, m: &mut Moment<'_, '_>) {
    if let Some(watch) = &mut m.record.watch {
        watch.retired(hart.index, &hart.window, number, retires, cycle);
    }
    if let Some(regions) = &mut hart.regions {
        regions.retired(hart.window.entry(number));
    }
    if m.host.policy.renaming {
        region::retired(hart, number, cycle, m);
    }
}
