//! What a scheme that saves registers has of a hart when power fails: registers and pc of retirement, and
//! stores that have retired and are not performed. An atomic has retired here as soon as it is performed. The
//! model reads none of it.

use durawarp_riscv::code::CodeTable;
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::instruction::Class;

use super::hart::Hart;
use super::store_queue::StoreKind;
use super::thread::Thread;

/// What a hart does between two instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has no thread.
    Idle,
    /// It executes instructions.
    Runs,
    /// Its call waits.
    Waits,
    /// A call of it is under way.
    Calls,
}

/// A hart as of its last retired instruction.
#[derive(Debug, Clone)]
pub struct SavedThread {
    /// Registers, and the next instruction to retire.
    pub state: HartState,
    /// What it does.
    pub standing: Standing,
    /// Stores that have retired and are not performed, in program order: physical address, bytes,
    /// little-endian, and how many.
    pub stores: Vec<(u64, u64, u8)>,
}

/// What is saved of a hart that runs `code`.
pub(super) fn of(hart: &Hart, code: &CodeTable) -> SavedThread {
    let standing = match hart.thread {
        Thread::None | Thread::Stopped => Standing::Idle,
        Thread::Running => Standing::Runs,
        Thread::Waiting => Standing::Waits,
        Thread::Calling(_) | Thread::Writing(..) => Standing::Calls,
    };
    let (window, mut registers) = (&hart.window, hart.window.retired_values());
    let mut next = window.retired_count() + 1;
    // An instruction that is executed alone has had its effect when it is dispatched.
    if let Some(oldest) = window.oldest()
        && let Some(inst) = code.at(oldest.pc)
        && matches!(inst.class(), Class::Amo | Class::StoreConditional | Class::Csr)
    {
        if let Some(register) = registers.get_mut(usize::from(oldest.rd)) {
            *register = oldest.value;
        }
        next += 1;
    }
    let pc = if next < window.next() { window.entry(next).pc } else { hart.front.pc };
    let stores = hart.stores.retired().filter(|store| store.kind == StoreKind::Store);
    SavedThread {
        state: HartState { registers, pc, fcsr: hart.fcsr() },
        standing,
        stores: stores.filter_map(|store| Some((store.address?, store.value?, store.width))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::super::window::{PENDING, Retires};
    use super::*;

    #[test]
    fn an_atomic_has_retired_when_it_is_performed_and_a_load_when_its_bytes_are_there() {
        // amoadd.d x5, x6, (x10) at 0x1000; ld x5, 0(x10) behind it.
        let words: Vec<u8> = [0x0065_32afu32, 0x0005_3283].iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = CodeTable::new([(0x1000, words.as_slice())]);
        for (pc, complete, saved) in [(0x1000, 100, (7, 0x2000)), (0x1004, PENDING, (0, 0x1004))] {
            let mut hart = Hart::new(0, &spec());
            hart.thread = Thread::Running;
            hart.window.push(pc, 5, Retires::Plain, 7, complete);
            hart.front.pc = 0x2000;
            let found = of(&hart, &code);
            assert_eq!((found.state.registers[5], found.state.pc), saved);
            assert_eq!(found.standing, Standing::Runs);
        }
    }
}
