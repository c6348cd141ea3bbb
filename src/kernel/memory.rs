//! Device memory as a program sees it: address windows, allocated ranges, and a flat image.

/// First generic address of the shared-memory window (16 MiB long).
pub const SHARED_WINDOW: u64 = 1 << 44;
/// First generic address of the local-memory window (4 GiB long).
pub const LOCAL_WINDOW: u64 = 2 << 44;
/// First generic address of the constant-bank window (4 GiB long).
pub const CONST_WINDOW: u64 = 3 << 44;
/// First address of DRAM buffers.
pub const DRAM_BASE: u64 = 1 << 32;
/// First address of NVM (persistent memory) buffers.
pub const NVM_BASE: u64 = 1 << 40;
/// Buffers start at multiples of this many bytes, and at least as many unmapped bytes follow each.
pub const BUFFER_ALIGN: u64 = 256;

/// Which memory an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// Volatile.
    Dram,
    /// Persistent.
    Nvm,
}

impl Medium {
    /// The medium that a global address lies in.
    pub fn of(address: u64) -> Medium {
        if address >= NVM_BASE { Medium::Nvm } else { Medium::Dram }
    }
}

/// One allocated range of global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Name of the buffer or variable.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Every allocated range of global memory, sorted by address, not overlapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressMap {
    ranges: Vec<Range>,
}

impl AddressMap {
    /// Allocates `bytes` in `medium` after everything already there and returns the first address.
    pub fn allocate(&mut self, name: &str, bytes: u64, medium: Medium) -> u64 {
        let base = match medium {
            Medium::Dram => DRAM_BASE,
            Medium::Nvm => NVM_BASE,
        };
        let at = self.ranges.partition_point(|r| match medium {
            Medium::Dram => Medium::of(r.start) == Medium::Dram,
            Medium::Nvm => true,
        });
        let start = match at.checked_sub(1).map(|i| &self.ranges[i]) {
            Some(last) if Medium::of(last.start) == medium => {
                (last.start + last.bytes + BUFFER_ALIGN).next_multiple_of(BUFFER_ALIGN)
            }
            _ => base,
        };
        self.ranges.insert(
            at,
            Range {
                name: name.to_owned(),
                start,
                bytes,
            },
        );
        start
    }

    /// The range that holds all of `[first, last]` (inclusive addresses).
    pub fn containing(&self, first: u64, last: u64) -> Option<&Range> {
        let at = self.ranges.partition_point(|r| r.start <= first).checked_sub(1)?;
        let range = &self.ranges[at];
        (last < range.start + range.bytes).then_some(range)
    }

    /// The allocated range that starts nearest below `address`, for an error message.
    pub fn below(&self, address: u64) -> Option<&Range> {
        self.ranges
            .partition_point(|r| r.start <= address)
            .checked_sub(1)
            .map(|i| &self.ranges[i])
    }

    /// Every range, by address.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }
}
