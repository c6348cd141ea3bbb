//! The window of a hart: registers, and the reorder buffer of what has been dispatched and not retired.
//!
//! Instructions have numbers in program order, from 1 on. A register holds a value and the cycle from which
//! it may be used, or the number of the instruction that memory keeps from writing it. What follows a wrong
//! prediction is forgotten by walking the buffer from the registers of retirement; numbers are used again.
//!
//! Invariant: retirement is in order, at most `width` a cycle; a register whose producer is known in the
//! buffer is pending exactly when that entry is.

use durawarp_checkpoint::{state, value};
use durawarp_riscv::instruction::{NOWHERE, REGISTERS};

/// The cycle of a result that memory has yet to bring.
pub(super) const PENDING: u64 = u64::MAX;

/// What an instruction is to retirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retires {
    /// Nothing but itself.
    Plain,
    /// It frees a place in the load queue.
    Load,
    /// Its store may be performed.
    Store,
    /// The same, of a checkpoint that a region inserts: it is no instruction of the program.
    Checkpoint,
    /// The same, of `fcsr`, whose exceptions are known as it retires.
    StatusCheckpoint,
    /// The same, of the program counter, with which a region ends.
    RegionEnd,
    /// An operation of the workload is done (`pm.op`).
    Operation,
}

value!(choice Retires { Plain, Load, Store, Checkpoint, StatusCheckpoint, RegionEnd, Operation });

/// An instruction in the reorder buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct RobEntry {
    pub(super) value: u64,
    /// Cycle from which its result may be used, or [`PENDING`].
    pub(super) complete: u64,
    pub(super) pc: u64,
    pub(super) rd: u8,
    pub(super) retires: Retires,
    /// Exceptions of floating point that it raises.
    pub(super) flags: u8,
}

value!(record RobEntry { value, complete, pc, rd, retires, flags });

const _: () = assert!(size_of::<RobEntry>() <= 32);

/// The value of a source register, or who writes it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// A value, and the cycle from which it is there.
    Ready(u64, u64),
    /// The number of its instruction.
    Pending(u64),
}

value!(choice Source { Ready(value, cycle), Pending(number) });

#[derive(Debug, Clone, Copy, Default)]
struct Register {
    value: u64,
    /// Cycle from which it may be used, or [`PENDING`].
    ready: u64,
    producer: u64,
}

value!(record Register { value, ready, producer });

/// Registers and reorder buffer.
#[derive(Debug)]
pub(super) struct Window {
    rob: Vec<RobEntry>,
    mask: u64,
    entries: u64,
    /// The oldest instruction that has not retired; `next` when there is none.
    head: u64,
    /// Number of the next instruction.
    next: u64,
    /// With a last one that takes what is written nowhere.
    registers: [Register; REGISTERS + 1],
    /// As of retirement.
    retired: [u64; REGISTERS + 1],
    /// Loads in the buffer.
    pub(super) loads: u32,
    /// Exceptions of floating point, as of retirement: those of a wrong path are never among them.
    pub(super) accrued: u8,
}

state!(Window {
    sized: rob; saved: head, next, registers, retired, loads, accrued; kept: mask, entries
});

impl Window {
    /// Registers of zeros, an empty buffer.
    pub(super) fn new(entries: u32) -> Window {
        let empty = RobEntry { value: 0, complete: 0, pc: 0, rd: NOWHERE, retires: Retires::Plain, flags: 0 };
        let places = u64::from(entries).next_power_of_two();
        Window {
            rob: vec![empty; places as usize],
            mask: places - 1,
            entries: entries.into(),
            head: 1,
            next: 1,
            registers: [Register::default(); REGISTERS + 1],
            retired: [0; REGISTERS + 1],
            loads: 0,
            accrued: 0,
        }
    }

    /// Begins with these registers; the buffer is empty.
    pub(super) fn begin(&mut self, registers: &[u64; REGISTERS]) {
        self.retired[..REGISTERS].copy_from_slice(registers);
        for (register, &value) in self.registers.iter_mut().zip(registers) {
            *register = Register { value, ..Register::default() };
        }
    }

    /// The registers of a hart whose buffer is empty.
    pub(super) fn values(&self) -> [u64; REGISTERS] {
        std::array::from_fn(|register| self.registers[register].value)
    }

    /// The registers as of retirement.
    pub(super) fn retired_values(&self) -> [u64; REGISTERS] {
        std::array::from_fn(|register| self.retired[register])
    }

    /// Writes a register of a hart whose buffer is empty.
    pub(super) fn set(&mut self, register: u8, value: u64) {
        self.retired[usize::from(register)] = value;
        self.registers[usize::from(register)] = Register { value, ..Register::default() };
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.next - self.head >= self.entries
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.head
    }

    /// Entries in use, of how many.
    pub(super) fn level(&self) -> (u64, u64) {
        (self.next - self.head, self.entries)
    }

    /// Instructions that have retired.
    pub(super) fn retired_count(&self) -> u64 {
        self.head - 1
    }

    /// Number of the next instruction.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub(super) fn entry(&self, number: u64) -> &RobEntry {
        &self.rob[(number & self.mask) as usize]
    }

    /// The oldest instruction.
    #[inline]
    pub(super) fn oldest(&self) -> Option<&RobEntry> {
        (!self.is_empty()).then(|| self.entry(self.head))
    }

    #[inline]
    pub(super) fn source(&self, register: u8) -> Source {
        let register = &self.registers[usize::from(register)];
        if register.ready == PENDING {
            Source::Pending(register.producer)
        } else {
            Source::Ready(register.value, register.ready)
        }
    }

    /// The values of two registers, and the cycle from which both may be used: [`PENDING`] where one is.
    #[inline]
    pub(super) fn operands(&self, registers: [u8; 2]) -> ([u64; 2], u64) {
        let [first, second] = registers.map(|register| &self.registers[usize::from(register)]);
        ([first.value, second.value], first.ready.max(second.ready))
    }

    /// The result of an instruction that has not retired, if it is there.
    #[inline]
    pub(super) fn result(&self, number: u64) -> Source {
        let entry = self.entry(number);
        if entry.complete == PENDING { Source::Pending(number) } else { Source::Ready(entry.value, entry.complete) }
    }

    /// Dispatches an instruction; its result may be [`PENDING`]. Its number.
    #[inline]
    pub(super) fn push(&mut self, pc: u64, rd: u8, retires: Retires, value: u64, complete: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.loads += u32::from(retires == Retires::Load);
        self.rob[(number & self.mask) as usize] = RobEntry { value, complete, pc, rd, retires, flags: 0 };
        self.registers[usize::from(rd)] = Register { value, ready: complete, producer: number };
        number
    }

    /// A pending instruction raises exceptions of floating point.
    #[inline]
    pub(super) fn raise(&mut self, number: u64, flags: u8) {
        self.rob[(number & self.mask) as usize].flags = flags;
    }

    /// The result of a pending instruction.
    #[inline]
    pub(super) fn complete(&mut self, number: u64, value: u64, complete: u64) {
        let entry = &mut self.rob[(number & self.mask) as usize];
        (entry.value, entry.complete) = (value, complete);
        let register = &mut self.registers[usize::from(entry.rd)];
        if register.producer == number && register.ready == PENDING {
            *register = Register { value, ready: complete, producer: number };
        }
    }

    /// Retires the oldest instruction if its result is there in this cycle: its number, and what it was.
    #[inline]
    pub(super) fn retire(&mut self, cycle: u64) -> Option<(u64, Retires)> {
        let number = self.head;
        if number == self.next {
            return None;
        }
        let entry = &self.rob[(number & self.mask) as usize];
        if entry.complete > cycle {
            return None;
        }
        self.head += 1;
        self.retired[usize::from(entry.rd)] = entry.value;
        self.accrued |= entry.flags;
        self.loads -= u32::from(entry.retires == Retires::Load);
        Some((number, entry.retires))
    }

    /// The instructions before `first` that have not retired, in their order.
    pub(super) fn before(&self, first: u64) -> impl Iterator<Item = &RobEntry> {
        (self.head..first).map(|number| self.entry(number))
    }

    /// Forgets every instruction from `first` on.
    pub(super) fn squash(&mut self, first: u64) {
        self.next = first;
        self.loads = 0;
        for (register, &value) in self.registers.iter_mut().zip(&self.retired) {
            *register = Register { value, ..Register::default() };
        }
        for number in self.head..first {
            let entry = self.rob[(number & self.mask) as usize];
            self.loads += u32::from(entry.retires == Retires::Load);
            self.registers[usize::from(entry.rd)] =
                Register { value: entry.value, ready: entry.complete, producer: number };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(source: Source) -> Result<u64, u64> {
        match source {
            Source::Ready(value, _) => Ok(value),
            Source::Pending(number) => Err(number),
        }
    }

    #[test]
    fn retirement_is_in_order_and_not_before_the_result_is_there() {
        let mut window = Window::new(4);
        let load = window.push(0, 5, Retires::Load, 0, PENDING);
        window.push(4, 6, Retires::Plain, 7, 3);
        assert_eq!((window.retire(9), window.loads), (None, 1));
        window.complete(load, 11, 10);
        assert_eq!(window.retire(9), None);
        assert_eq!(window.retire(10), Some((1, Retires::Load)));
        assert_eq!((window.retire(10), window.loads), (Some((2, Retires::Plain)), 0));
        assert!(window.is_empty());
    }

    #[test]
    fn a_squash_brings_registers_back_to_what_was_before() {
        let mut window = Window::new(8);
        window.push(0, 5, Retires::Plain, 1, 0);
        assert!(window.retire(0).is_some());
        let load = window.push(4, 6, Retires::Load, 0, PENDING);
        window.push(8, 5, Retires::Plain, 2, 1);
        window.push(12, 6, Retires::Plain, 3, 1);
        window.push(16, 7, Retires::Load, 0, PENDING);
        window.squash(3);
        assert_eq!((value(window.source(5)), value(window.source(6)), window.loads), (Ok(1), Err(load), 1));
        window.complete(load, 9, 5);
        assert_eq!((value(window.source(6)), value(window.source(7))), (Ok(9), Ok(0)));
        assert_eq!(window.next(), 3);
    }

    #[test]
    fn exceptions_accrue_in_order_and_never_from_what_is_squashed() {
        let mut window = Window::new(8);
        let load = window.push(0, 5, Retires::Load, 0, PENDING);
        let sum = window.push(4, 33, Retires::Plain, 0, PENDING);
        window.raise(sum, 1);
        window.complete(sum, 9, 1);
        let wrong = window.push(8, 34, Retires::Plain, 0, PENDING);
        window.raise(wrong, 16);
        window.complete(wrong, 9, 1);
        assert_eq!((window.retire(9), window.accrued), (None, 0));
        window.squash(wrong);
        window.complete(load, 0, 2);
        assert!(window.retire(9).is_some() && window.accrued == 0);
        assert!(window.retire(9).is_some() && window.accrued == 1);
        // Its place in the buffer is used again.
        window.push(8, 5, Retires::Plain, 0, 1);
        assert!(window.retire(9).is_some() && window.accrued == 1);
    }

    #[test]
    fn an_older_result_does_not_overwrite_a_younger_one() {
        let mut window = Window::new(8);
        let load = window.push(0, 5, Retires::Load, 0, PENDING);
        window.push(4, 5, Retires::Plain, 2, 1);
        window.complete(load, 9, 5);
        assert_eq!(value(window.source(5)), Ok(2));
    }

    #[test]
    fn the_buffer_is_full_with_as_many_as_it_has_entries() {
        let mut window = Window::new(3);
        for i in 0..3 {
            assert!(!window.is_full());
            window.push(4 * i, 5, Retires::Plain, i, 1);
        }
        assert!(window.is_full());
        assert_eq!(window.retire(0), None);
        assert!(window.retire(1).is_some() && !window.is_full());
    }
}
