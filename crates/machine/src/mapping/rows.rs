//! Bank and row of a channel's own address, as a mapping has them.

use super::layout::{Devices, Layout};
use super::{Field, Mapping};
use crate::address::parities;

/// Bank and row of every address of a channel, in one medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMap {
    row_shift: u32,
    banks: u32,
    /// By parities of these bits; none where banks are turned by their row.
    bits: Option<Box<Parities>>,
}

/// A mask for each bit of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parities {
    bank: Vec<u64>,
    /// Of a row, the least bits; the rest is the address from `row_shift` on.
    row: Vec<u64>,
}

impl RowMap {
    /// As in `ours`: consecutive rows go to different banks, turned by a hash of the row so that
    /// power-of-two strides do not share a bank.
    pub fn turned(banks: u32, row_bytes: u32) -> RowMap {
        RowMap { row_shift: row_bytes.trailing_zeros(), banks, bits: None }
    }

    /// The bank and row of a channel's address.
    #[inline]
    pub fn place(&self, address: u64) -> (u64, u32) {
        let above = address >> self.row_shift;
        if let Some(bits) = &self.bits {
            let row = above << bits.row.len() | parities(&bits.row, address);
            return (parities(&bits.bank, address), row as u32);
        }
        let banks = u64::from(self.banks);
        let turned = |row: u64| row ^ row >> 4 ^ row >> 8;
        let (row, bank) = if self.banks.is_power_of_two() {
            let row = above >> self.banks.trailing_zeros();
            (row, (above + turned(row)) & (banks - 1))
        } else {
            let (row, column) = (above / banks, above % banks);
            (row, (column + turned(row)) % banks)
        };
        (bank, row as u32)
    }
}

impl Mapping {
    /// Banks and rows of a channel's devices.
    ///
    /// # Errors
    /// The sizes do not suit the mapping.
    pub fn rows(&self, devices: &Devices) -> Result<RowMap, String> {
        if self.turns_banks {
            return Ok(RowMap::turned(devices.banks(), devices.row_bytes));
        }
        let layout = Layout::new(self, devices)?;
        let bank = layout.bank_number(self, devices).into_iter().map(|(.., mask)| mask).collect();
        let row = layout.bits(Field::Row);
        // The longest end of a row's bits that the address has as they are.
        let (mut low, mut row_shift) = (row.len(), super::layout::LOCAL_BITS);
        while low > 0 && row_shift > 0 && row[low - 1] == 1 << (row_shift - 1) {
            (low, row_shift) = (low - 1, row_shift - 1);
        }
        let bits = Parities { bank, row: row[..low].to_vec() };
        Ok(RowMap { row_shift, banks: devices.banks(), bits: Some(Box::new(bits)) })
    }
}
