//! What memory devices did, beside what controllers count: rows opened by medium, and what the cells of NVM
//! went through.
//!
//! A write of a line to cells is counted as the machine's `nvm.write_mode` has it
//! ([`CellWear`](durawarp_machine::memory_controller::CellWear)).

use serde::{Deserialize, Serialize};

/// What memory devices did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Devices {
    /// DRAM rows opened.
    pub dram_activates: u64,
    /// NVM rows opened.
    pub nvm_activates: u64,
    /// Bytes of NVM whose cells were written, each time.
    pub nvm_cell_bytes: u64,
    /// Lines written to the cells of NVM, by controller and bank.
    pub nvm_bank_writes: Vec<Vec<u64>>,
    /// The same by line, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvm_lines: Option<LineWrites>,
}

/// How often the cells of lines were written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineWrites {
    /// Lines that were written.
    pub lines: u64,
    /// Writes to all of them.
    pub writes: u64,
    /// Writes to the line that was written most.
    pub most: u64,
    /// Its address; of several the least.
    pub most_line: u64,
    /// Lines by their writes: the most writes that are counted together (1, 2, 4, 8, ...), and the lines.
    pub steps: Vec<(u64, u64)>,
}

impl LineWrites {
    /// Of addresses of lines and their writes, at least one each.
    ///
    /// # Example: three lines
    /// ```
    /// let of = durawarp_simulation::outcome::LineWrites::of([(0, 1), (128, 4), (256, 3)]);
    /// assert_eq!((of.lines, of.writes, of.most, of.most_line), (3, 8, 4, 128));
    /// assert_eq!(of.steps, [(1, 1), (2, 0), (4, 2)]);
    /// ```
    pub fn of(lines: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut all = LineWrites::default();
        for (line, writes) in lines {
            all.lines += 1;
            all.writes += writes;
            if writes > all.most || writes == all.most && line < all.most_line {
                (all.most, all.most_line) = (writes, line);
            }
            let step = writes.next_power_of_two().trailing_zeros();
            while all.steps.len() <= step as usize {
                all.steps.push((1 << all.steps.len(), 0));
            }
            all.steps[step as usize].1 += 1;
        }
        all
    }
}
