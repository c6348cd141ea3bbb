//! The layout of the checkpoint area of formed kernels. Each group of 32 threads has rows of registers,
//! program counters and counts of barriers; shadows of shared and local memory follow all groups.
//!
//! ```text
//! area:   group 0 | group 1 | ...            | shared memory of CTA 0 | CTA 1 | ... | local memory of thread 0 | ...
//! group:  program counters | register | register | ... | barriers of the CTA | of the grid   rows of 32 8-byte words
//!         | words of registers that all lanes share the value of                              an 8-byte word each
//! ```
//! The paper gives every register of the machine a slot; here only registers that are ever stored have one.
//! All launches of a program use one area, group by group at the same places ([`Area::group_bytes`] is that
//! of the kernel that needs most), so a word is a program counter in every launch or in none. Program
//! counters and counts carry the number of their launch plus one in their upper 32 bits: words of an earlier
//! launch are not taken for this one's.

use super::super::ir::{Gathering, LANES};
use super::super::launch::Launch;

/// Shadows of shared memory start at multiples of this, so that two CTAs' never share a line of 128 bytes.
const SHADOW_ALIGN: u64 = 128;

/// What a kernel keeps in its checkpoint area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The register of each slot from 1 on, as a scoreboard index of the formed kernel.
    pub registers: Vec<u16>,
    /// Registers with one word for all lanes of a group, as scoreboard indices of the formed kernel.
    pub once: Vec<u16>,
    /// Barriers of the CTA are counted; barriers of the grid are.
    pub counts: [bool; 2],
    /// Shared memory has a shadow.
    pub shared: bool,
    /// Bytes of a thread's local memory that have a shadow.
    pub local_bytes: u32,
}

/// The checkpoint area of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// First address, in persistent memory.
    pub address: u64,
    /// Bytes from one group of 32 threads to the next.
    pub group_bytes: u32,
    /// Where shadows begin, after all groups.
    pub shadows: u64,
    /// The number of the launch among all that use the area, from 0.
    pub launch: u32,
}

impl Area {
    /// What the upper half of program counters and counts of this launch is.
    pub fn tag(&self) -> u64 {
        (u64::from(self.launch) + 1) << 32
    }
}

impl Layout {
    /// Bytes of one row of a group of 32 threads.
    pub const ROW_BYTES: u32 = 8 * LANES as u32;

    /// Bytes of a group of 32 threads.
    pub fn group_bytes(&self) -> u32 {
        (self.rows() * Layout::ROW_BYTES + 8 * self.once.len() as u32).next_multiple_of(Layout::ROW_BYTES)
    }

    /// Rows of a group.
    fn rows(&self) -> u32 {
        let counts = self.counts.iter().filter(|&&counts| counts).count();
        (1 + self.registers.len() + counts) as u32
    }

    /// Byte offset of a register's row in its group.
    pub fn offset_of(&self, register: u16) -> Option<u32> {
        let slot = self.registers.iter().position(|&r| r == register)?;
        Some((slot as u32 + 1) * Layout::ROW_BYTES)
    }

    /// Byte offset of the one word of a register in its group.
    pub fn word_of(&self, register: u16) -> Option<u32> {
        let place = self.once.iter().position(|&r| r == register)?;
        Some(self.rows() * Layout::ROW_BYTES + 8 * place as u32)
    }

    /// Byte offset of the row that counts barriers of a kind.
    pub fn count_of(&self, kind: Gathering) -> Option<u32> {
        let row = 1 + self.registers.len() as u32;
        match (kind, self.counts) {
            (Gathering::Cta, [true, _]) | (Gathering::Grid, [false, true]) => Some(row * Layout::ROW_BYTES),
            (Gathering::Grid, [true, true]) => Some((row + 1) * Layout::ROW_BYTES),
            _ => None,
        }
    }

    /// Groups of 32 threads of a launch; each CTA starts one.
    pub fn groups(launch: &Launch) -> u64 {
        launch.ctas() * u64::from(launch.threads_per_cta().div_ceil(LANES as u32))
    }

    /// Bytes of a CTA's shadow of shared memory.
    pub fn shared_stride(&self, launch: &Launch) -> u64 {
        self.stride_of(u64::from(launch.shared_bytes))
    }

    fn stride_of(&self, shared_bytes: u64) -> u64 {
        if self.shared { shared_bytes.next_multiple_of(SHADOW_ALIGN) } else { 0 }
    }

    /// Bytes of a thread's shadow of local memory.
    pub fn local_stride(&self) -> u32 {
        self.local_bytes.next_multiple_of(16)
    }

    /// Bytes of the shadows of a launch.
    pub fn shadow_bytes(&self, launch: &Launch) -> u64 {
        self.shadow_bytes_of(launch.ctas(), Layout::groups(launch), u64::from(launch.shared_bytes))
    }

    /// Bytes of the shadows of `ctas` CTAs and `groups` groups, with `shared_bytes` of shared memory a CTA.
    pub fn shadow_bytes_of(&self, ctas: u64, groups: u64, shared_bytes: u64) -> u64 {
        ctas * self.stride_of(shared_bytes) + groups * LANES as u64 * u64::from(self.local_stride())
    }

    /// Bytes of the area of a launch that has one to itself.
    pub fn bytes(&self, launch: &Launch) -> u64 {
        Layout::groups(launch) * u64::from(self.group_bytes()) + self.shadow_bytes(launch)
    }

    /// The area of a launch that has one to itself, from `address` on.
    pub fn alone(&self, launch: &Launch, address: u64) -> Area {
        let group_bytes = self.group_bytes();
        Area { address, group_bytes, shadows: address + Layout::groups(launch) * u64::from(group_bytes), launch: 0 }
    }

    /// Address of a thread's program counter; its other words are as much higher as their rows.
    pub fn address(launch: &Launch, area: &Area, cta: u64, thread: u32) -> u64 {
        Layout::group_address(launch, area, cta, thread) + u64::from(thread % LANES as u32) * 8
    }

    /// Address of the group of a thread.
    pub fn group_address(launch: &Launch, area: &Area, cta: u64, thread: u32) -> u64 {
        let group = launch.first_group(cta) + thread / LANES as u32;
        area.address + u64::from(group) * u64::from(area.group_bytes)
    }

    /// Address of a CTA's shadow of shared memory.
    pub fn shared_shadow(&self, launch: &Launch, area: &Area, cta: u64) -> u64 {
        area.shadows + cta * self.shared_stride(launch)
    }

    /// Address of the shadow of the local memory of the first thread of a launch.
    pub fn local_shadows(&self, launch: &Launch, area: &Area) -> u64 {
        area.shadows + launch.ctas() * self.shared_stride(launch)
    }

    /// Address of a thread's shadow of local memory.
    pub fn local_shadow(&self, launch: &Launch, area: &Area, cta: u64, thread: u32) -> u64 {
        let lane = u64::from(launch.first_group(cta)) * LANES as u64 + u64::from(thread);
        self.local_shadows(launch, area) + lane * u64::from(self.local_stride())
    }
}
