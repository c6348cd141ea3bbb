//! Bytes of a line by a mask, which has one bit a byte: what caches, handlers and buffers all do with them.

/// Room for the largest line, in bytes.
const LINE: usize = 128;

/// Copies the bytes of `from` that `mask` names onto `to`.
#[inline]
pub fn copy_masked(to: &mut [u8; LINE], from: &[u8; LINE], mask: u128) {
    if mask == u128::MAX {
        *to = *from;
    } else {
        copy_parts(to, from, mask);
    }
}

/// Whether bytes that `mask` names are not the same in both.
#[inline]
pub fn differ_masked(one: &[u8; LINE], other: &[u8; LINE], mask: u128) -> bool {
    if mask == u128::MAX { one != other } else { differ_in_parts(one, other, mask) }
}

fn differ_in_parts(one: &[u8; LINE], other: &[u8; LINE], mask: u128) -> bool {
    (0..4).any(|sector| {
        let bits = (mask >> (32 * sector)) as u32;
        let range = 32 * sector..32 * sector + 32;
        match bits {
            0 => false,
            u32::MAX => one[range.clone()] != other[range],
            _ => range.enumerate().any(|(i, at)| bits >> i & 1 == 1 && one[at] != other[at]),
        }
    })
}

fn copy_parts(to: &mut [u8; LINE], from: &[u8; LINE], mask: u128) {
    for sector in 0..4 {
        let bits = (mask >> (32 * sector)) as u32;
        let range = 32 * sector..32 * sector + 32;
        if bits == u32::MAX {
            to[range.clone()].copy_from_slice(&from[range]);
        } else if bits != 0 {
            for (i, at) in range.enumerate() {
                if bits >> i & 1 == 1 {
                    to[at] = from[at];
                }
            }
        }
    }
}
