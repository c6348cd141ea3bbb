//! A memory device as data: its organisation, its commands, and the least times between them.
//!
//! Source: the device files of the configuration, each of which names its standard; the shape is that of the
//! tables of JEDEC's standards and of Ramulator's constraint lists. `media` interprets one.
//!
//! Invariants, held by who reads the file: indices lie in their lists; delays are whole cycles of the
//! device's clock; a bank is opened before it is read. Not here: what a write to NVM costs, and queues.

use durawarp_base::choice;
use durawarp_base::spec::Picojoules;

choice! {
    /// How DRAM is refreshed.
    pub enum RefreshPolicy {
        /// Not at all.
        None = "none",
        /// All banks of a rank at once.
        AllBank = "all_bank",
        /// One bank after another.
        PerBank = "per_bank",
        /// The same bank of every group, one after another (DDR5).
        SameBank = "same_bank",
    }
}

choice! {
    /// Which line of a device's buffer makes room for another.
    pub enum BufferPolicy {
        /// That which was used longest ago.
        Lru = "lru",
        /// That which came first.
        Fifo = "fifo",
    }
}

/// The device of a machine whose own keys say what it is, which has no table.
pub const PLAIN: &str = "plain";

/// A device, of one bin and density.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// As machines name it.
    pub name: String,
    /// Its standard or data sheet.
    pub source: String,
    /// The bin's name and the density's.
    pub variant: [String; 2],
    /// The period of its clock in picoseconds.
    pub t_ck_ps: u64,
    /// How it is built.
    pub organisation: Organisation,
    /// Its commands.
    pub commands: Vec<Command>,
    /// Least times between commands.
    pub constraints: Vec<Constraint>,
    /// How it is refreshed, by policy; empty for one that needs none.
    pub refreshes: Vec<Refresh>,
    /// What stands between the bus and the cells, where there is something: then no request needs a row.
    pub buffer: Option<DeviceBuffer>,
    /// Every timing by name, in cycles, in the order of the file: those of the bin, of the density, derived
    /// ones, and overrides.
    pub timing: Vec<(String, u64)>,
}

impl Device {
    /// So many of its channels side by side, each with buses of its own, as one channel that is as much
    /// wider. Requests go to one of them each.
    #[must_use]
    pub fn widened(mut self, channels: u32) -> Device {
        let own = &mut self.organisation;
        own.levels.insert(0, ("sub_channel".to_owned(), channels));
        own.bus_levels += 1;
        own.two_command_buses |= channels > 1;
        self.commands.iter_mut().for_each(|command| command.target += 1);
        // What was said of the channel is said of each of them.
        self.constraints.iter_mut().for_each(|own| own.scope = Some(own.scope.map_or(0, |scope| scope + 1)));
        self
    }
}

/// How a device is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organisation {
    /// What lies below a channel, the outermost first, and how many are in one of the level above. The last
    /// one is the bank.
    pub levels: Vec<(String, u32)>,
    /// How many of `levels`, from the outermost, have a data bus of their own (HBM's pseudo channels: 1).
    pub bus_levels: u32,
    /// Bytes of one column command.
    pub atom_bytes: u32,
    /// Cycles of the data bus that one column command takes.
    pub burst_cycles: u32,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Column read to its first data, in cycles.
    pub read_cycles: u32,
    /// Column write to its first data, in cycles.
    pub write_cycles: u32,
    /// Row commands have a bus of their own beside that of column commands.
    pub two_command_buses: bool,
    /// What it holds outlives a power failure.
    pub persistent: bool,
}

impl Organisation {
    /// What the data buses of a channel move in a cycle at most.
    pub fn bytes_per_cycle(&self) -> f64 {
        let buses: u32 = self.levels[..self.bus_levels as usize].iter().map(|(_, count)| count).product();
        f64::from(self.atom_bytes * buses) / f64::from(self.burst_cycles)
    }
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Opens a row.
    Open,
    /// Closes what is open in its target.
    Close,
    /// Column read.
    Read,
    /// Column write.
    Write,
    /// Refreshes its target.
    Refresh,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// As the file has it.
    pub name: String,
    /// What it does.
    pub effect: Effect,
    /// The level that it is for: an index into the levels.
    pub target: u8,
    /// Of banks: the same bank of all groups of the target (DDR5's same-bank refresh).
    pub same_bank: bool,
    /// Slots of the command bus.
    pub cycles: u32,
    /// The row is closed behind the column access.
    pub closes: bool,
}

/// A least time between two commands that share a node of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraint {
    /// Index of the earlier command.
    pub before: u8,
    /// Index of the later one.
    pub after: u8,
    /// The level whose node they share: `None` for the channel, or an index into the levels.
    pub scope: Option<u8>,
    /// They share what lies above the node, but not the node itself.
    pub other: bool,
    /// From the first slot of the earlier to the first of the later, in cycles.
    pub delay_cycles: u32,
    /// It holds from the so manieth last of the earlier commands: 1 for the last.
    pub window: u8,
    /// The line of the file that has it.
    pub line: u32,
}

/// A way to refresh a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refresh {
    /// By which machines ask for it.
    pub policy: RefreshPolicy,
    /// Index of the command.
    pub command: u8,
    /// From one such command of a rank (of a pseudo channel) to its next, in cycles: under `all_bank` each is
    /// for all banks, otherwise they go from one target to the next.
    pub every_cycles: u32,
    /// What one draws above an open bank, of all devices of its target; `None` where the file does not say.
    pub energy: Option<Picojoules>,
}

/// Lines between the bus and the cells of NVM, those of one bank of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceBuffer {
    /// How many.
    pub lines: u32,
    /// Bytes of one: what the cells read and write at once.
    pub line_bytes: u32,
    /// What it holds outlives a power failure as the cells do, where the media alone are the domain.
    pub durable: bool,
    /// Which line makes room.
    pub policy: BufferPolicy,
    /// From the command of a read to its data, where the line is there.
    pub hit_ps: u64,
    /// The same where it is not.
    pub miss_ps: u64,
    /// From the beginning of the write of a line until it is in its cells.
    pub cell_write_ps: u64,
    /// What the cells of a bank give of whole lines.
    pub read_bandwidth_mb_s: u32,
    /// What they take.
    pub write_bandwidth_mb_s: u32,
}
