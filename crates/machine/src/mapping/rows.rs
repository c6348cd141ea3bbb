//! Bank and row of a channel's own address, as a mapping has them.

use super::fields::{Field, Mapping};
use super::layout::{FieldBits, Geometry, LOCAL_BITS};
use crate::address::parities;

/// Bank and row of every address of a channel, in one medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMap {
    row_shift: u32,
    banks: Banks,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Banks {
    /// Consecutive rows go to different banks, in this order, turned by a hash of the row so that no stride
    /// of a power of two stays on a bank.
    Turned(Box<[u16]>),
    /// By parities under these masks: a bank's number, and the least bits of a row; the rest of it is the
    /// address from `row_shift` on.
    Bits { bank: Box<[u64]>, row: Box<[u64]> },
}

impl RowMap {
    /// As in `ours`, over banks in an order.
    pub fn turned(order: Box<[u16]>, row_bytes: u32) -> RowMap {
        RowMap { row_shift: row_bytes.trailing_zeros(), banks: Banks::Turned(order) }
    }

    /// The bank and row of a channel's address.
    #[inline]
    pub fn place(&self, address: u64) -> (u16, u32) {
        let above = address >> self.row_shift;
        let order = match &self.banks {
            Banks::Turned(order) => order,
            Banks::Bits { bank, row } => {
                let least = parities(row, address);
                return (parities(bank, address) as u16, (above << row.len() | least) as u32);
            }
        };
        let banks = order.len() as u64;
        let turned = |row: u64| row ^ row >> 4 ^ row >> 8;
        let (row, bank) = if banks.is_power_of_two() {
            let row = above >> banks.trailing_zeros();
            (row, (above + turned(row)) & (banks - 1))
        } else {
            let (row, column) = (above / banks, above % banks);
            (row, (column + turned(row)) % banks)
        };
        (order[bank as usize], row as u32)
    }
}

/// Banks and rows of a channel's devices; none where the media turn banks by their row.
///
/// # Errors
/// The sizes do not suit the mapping.
pub(super) fn row_map(mapping: &Mapping, devices: &Geometry) -> Result<Option<RowMap>, String> {
    if mapping.turns_banks {
        return Ok(None);
    }
    let layout = FieldBits::new(mapping, devices)?;
    let bank = layout.bank_number(mapping, devices).into_iter().map(|(.., mask)| mask).collect();
    let row = layout.bits(Field::Row);
    // The longest end of a row's bits that the address has as they are.
    let (mut low, mut row_shift) = (row.len(), LOCAL_BITS);
    while low > 0 && row[low - 1] == 1 << (row_shift - 1) {
        (low, row_shift) = (low - 1, row_shift - 1);
    }
    Ok(Some(RowMap { row_shift, banks: Banks::Bits { bank, row: row[..low].into() } }))
}
