//! What a machine of cores is to run, and where in physical memory it lies.
//!
//! | physical memory | holds |
//! |---|---|
//! | from the base of DRAM, or of NVM where all memory is persistent | the main window, by virtual address |
//! | from the base of NVM, a page after a main window there | the persistent window |
//! | the next whole MiB of NVM | clients' memory, by their channel |
//! | the next whole MiB of NVM | checkpoints of harts, by their number, under a scheme of regions |
//!
//! Invariant: memory that nothing was written to costs neither host memory nor time.

use durawarp_kernel::memory::{DRAM_BASE, FlatMemory, Medium, NVM_BASE};
use durawarp_machine::address::offset_in_medium;
use durawarp_machine::cpu::CpuMemory;
use durawarp_riscv::memory::{Memory, PAGE_BYTES, Windows};
use durawarp_riscv::process::Process;
use durawarp_riscv::syscalls::File;

use super::formed_process::FormedProcess;

/// Where the clients' memory begins, and how it ends: a whole MiB.
const REMOTE_ALIGNMENT: u64 = 1 << 20;

/// What a machine of cores is to run.
#[derive(Debug, Clone, Copy)]
pub struct CpuLoad<'a> {
    pub process: &'a Process,
    /// Files that it may open.
    pub files: &'a [File],
    /// The main window lies in persistent memory, too.
    pub all_persistent: bool,
    /// Bytes of persistent memory that clients over the network have at a server, all of them together.
    pub remote_bytes: u64,
    /// The process formed into regions, under a scheme of these.
    pub regions: Option<&'a FormedProcess>,
}

impl CpuLoad<'_> {
    /// Where its windows lie in physical memory.
    pub fn memory(&self) -> CpuMemory {
        let windows = self.process.start.windows;
        let [main, persistent] = if self.all_persistent {
            [NVM_BASE, NVM_BASE + windows.memory_bytes + PAGE_BYTES]
        } else {
            [DRAM_BASE, NVM_BASE]
        };
        CpuMemory { windows, main, persistent }
    }

    /// Physical address of the clients' memory: behind the windows, at a whole MiB.
    pub fn remote(&self) -> u64 {
        let memory = self.memory();
        (memory.persistent + memory.windows.pm_bytes).next_multiple_of(REMOTE_ALIGNMENT)
    }

    /// Physical address of the harts' checkpoints, under a scheme of regions: behind all other memory.
    pub fn checkpoints(&self) -> u64 {
        (self.remote() + self.remote_bytes).next_multiple_of(REMOTE_ALIGNMENT)
    }

    /// What is used of physical memory: start and bytes of the windows, and of the clients' memory.
    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let memory = self.memory();
        let Windows { memory_bytes, pm_bytes } = memory.windows;
        let remote = (self.remote(), self.remote_bytes.next_multiple_of(REMOTE_ALIGNMENT));
        let checkpoints = (self.checkpoints(), self.regions.map_or(0, |regions| regions.checkpoints.len() as u64));
        let all = [(memory.main, memory_bytes), (memory.persistent, pm_bytes), remote, checkpoints];
        all.into_iter().filter(|&(_, bytes)| bytes > 0)
    }

    /// Both windows and the clients' memory as the process finds them, by physical address. Zeros are
    /// committed by the host when they are touched.
    pub fn image(&self) -> FlatMemory {
        self.image_of(self.contents())
    }

    /// The same of a process under way, or at its end, whose memory this is.
    pub(crate) fn image_midway(&self, memory: &Memory) -> FlatMemory {
        self.image_of(self.pages(memory))
    }

    fn image_of<'a>(&self, contents: impl Iterator<Item = (u64, &'a [u8])>) -> FlatMemory {
        let mut image = FlatMemory::default();
        for (start, bytes) in self.ranges() {
            image.place(start, vec![0; bytes as usize]);
        }
        for (address, bytes) in contents {
            if image.write(address, bytes).is_err() {
                unreachable!("{address:#x} lies in a window");
            }
        }
        image
    }

    /// The bytes that memory begins with, by physical address.
    pub(super) fn contents(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let memory = self.memory();
        let checkpoints = self.regions.map(|regions| (self.checkpoints(), &regions.checkpoints[..]));
        let of_windows = self.process.contents().filter(|(_, bytes)| !bytes.is_empty()).map(move |(address, bytes)| {
            match memory.physical(address, bytes.len() as u64) {
                Some(physical) => (physical, bytes),
                None => panic!("the process begins with {} bytes at {address:#x}, outside its memory", bytes.len()),
            }
        });
        of_windows.chain(checkpoints)
    }

    /// The pages of a process under way that are not zeros, by physical address.
    pub(crate) fn pages<'a>(&self, memory: &'a Memory) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let of = self.memory();
        memory.pages().map(move |(address, page)| match of.physical(address, page.len() as u64) {
            Some(physical) => (physical, page),
            None => unreachable!("{address:#x} is in a window"),
        })
    }

    /// Bytes of each medium, from its base, that the windows reach to.
    pub(super) fn extents(&self) -> [u64; 2] {
        let mut extents = [0; 2];
        for (start, bytes) in self.ranges() {
            let extent: &mut u64 = &mut extents[Medium::of(start) as usize];
            *extent = (*extent).max(offset_in_medium(start) + bytes);
        }
        extents
    }
}
