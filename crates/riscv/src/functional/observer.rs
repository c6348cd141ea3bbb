//! What a run on the functional driver shows of itself while it goes on: instructions, stores, cleaned lines
//! and fences of persistency, in the order in which they are performed. A model of what is durable follows
//! from these, and the least time in which a program can be executed.
//!
//! The driver is generic over its observer. A run without one, which `()` stands for, has no call and no
//! branch for it.

use crate::instruction::Inst;

/// A fence of persistency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistFence {
    /// `pm.ofence`: what the hart stored before is durable before what it stores afterwards.
    Order,
    /// `pm.dfence`: the hart waits until what it stored before is durable.
    Durability,
}

/// What is shown of a run. Each method of an access is called after it is performed. None does anything
/// unless it is defined.
///
/// # Example: bytes that are stored
/// ```
/// use durawarp_riscv::elf::{Executable, Segment};
/// use durawarp_riscv::functional::{Observer, Options, run_observed};
/// use durawarp_riscv::process::{Process, Start};
///
/// struct StoredBytes(usize);
///
/// impl Observer for StoredBytes {
///     fn store(&mut self, _hart: u32, _address: u64, bytes: &[u8]) {
///         self.0 += bytes.len();
///     }
/// }
///
/// // sd x0, -8(sp); sw x0, -16(sp); li a0, 0; li a7, 93 (exit); ecall
/// let words = [0xfe01_3c23u32, 0xfe01_2823, 0x0000_0513, 0x05d0_0893, 0x0000_0073];
/// let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let segments = vec![Segment { address: 0x10000, memory_bytes: 20, bytes, executable: true }];
/// let (functions, objects) = (vec![], vec![]);
/// let image = Executable { entry: 0x10000, segments, functions, objects, headers: None, header_count: 0 };
/// let process = Process::new(image, Start::default()).unwrap();
/// let mut stored = StoredBytes(0);
/// run_observed(&process, process.memory(), &Options::default(), &mut stored);
/// assert_eq!(stored.0, 12);
/// ```
pub trait Observer {
    /// A hart is to execute an instruction at an address, whose first source has a value: the address of a
    /// memory operation, less its immediate. Called before it is performed.
    #[inline]
    fn executes(&mut self, _hart: u32, _pc: u64, _inst: &Inst, _base: u64) {}

    /// A hart has stored bytes from an address on: by an instruction, or by a system call of its own. They
    /// need not be aligned.
    #[inline]
    fn store(&mut self, _hart: u32, _address: u64, _bytes: &[u8]) {}

    /// A hart has cleaned or flushed the line of 64 bytes at an address.
    #[inline]
    fn clean(&mut self, _hart: u32, _line: u64) {}

    /// A hart has passed a fence of persistency.
    #[inline]
    fn fence(&mut self, _hart: u32, _fence: PersistFence) {}
}

/// Sees nothing.
impl Observer for () {}

/// Sees what another one sees.
impl<O: Observer> Observer for &mut O {
    #[inline]
    fn executes(&mut self, hart: u32, pc: u64, inst: &Inst, base: u64) {
        O::executes(self, hart, pc, inst, base);
    }

    #[inline]
    fn store(&mut self, hart: u32, address: u64, bytes: &[u8]) {
        O::store(self, hart, address, bytes);
    }

    #[inline]
    fn clean(&mut self, hart: u32, line: u64) {
        O::clean(self, hart, line);
    }

    #[inline]
    fn fence(&mut self, hart: u32, fence: PersistFence) {
        O::fence(self, hart, fence);
    }
}
