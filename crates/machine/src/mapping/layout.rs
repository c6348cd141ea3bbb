//! A mapping for sizes: which bits of a channel's own address make up each bit of each field.
//!
//! A bit of a field is the parity of some bits of the address; those that a mask has. The channel's own
//! address is the offset in its medium with the channel's bits taken out.

use super::fields::{Field, Mapping, Piece};
use crate::address::{Interleave, MOST_HASHED, Spread};

/// Bits of a channel's address that mappings look at: those above are of the row.
pub(super) const LOCAL_BITS: u32 = 40;

/// The polynomial of each degree, without its highest term: primitive ones, the sparsest; those of degrees
/// 4, 5 and 6 are GPGPU-Sim's.
const POLYNOMIALS: [u64; MOST_HASHED + 1] = [0, 1, 3, 3, 3, 5, 3, 3, 0b1_1101, 0b1_0001, 0b1001];

/// How the devices of a medium in one channel are built, and what of a machine its mapping depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// What lies below the channel, the outermost first; a bank's number has the first as its most
    /// significant part.
    pub levels: Vec<(Field, u32)>,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Channels of the machine.
    pub channels: u32,
    /// Slices of a channel.
    pub slices_per_channel: u32,
    /// Bytes that are never split.
    pub chunk_bytes: u32,
}

impl Geometry {
    /// Banks of the channel.
    pub fn banks(&self) -> u32 {
        self.levels.iter().map(|(_, count)| count).product()
    }

    /// Bits of a channel's address below the least field.
    pub(super) fn unit_shift(&self) -> u32 {
        self.chunk_bytes.min(self.row_bytes).trailing_zeros()
    }
}

/// Every field by masks over the channel's address.
#[derive(Debug)]
pub(super) struct FieldBits {
    /// As the address has them, and as they are after hashing; those of `Ch` are only what is hashed in.
    plain: [Vec<u64>; Field::COUNT],
    hashed: [Vec<u64>; Field::COUNT],
    /// Bits of the channel's address below the channel's.
    pub(super) below_channel: u32,
}

impl FieldBits {
    /// # Errors
    /// The sizes do not suit the mapping, or addresses would share a place.
    pub(super) fn new(mapping: &Mapping, devices: &Geometry) -> Result<FieldBits, String> {
        let log2 = |count: u32, what: &str| {
            let why = "which only `slice = splitmix(chunk)` with `Ba = rotate(Ba, Ro)` takes, as in `ours`";
            if count.is_power_of_two() {
                Ok(count.trailing_zeros())
            } else {
                Err(format!("{count} {what} are no power of two, {why}"))
            }
        };
        let unit = devices.unit_shift();
        let mut plain: [Vec<u64>; Field::COUNT] = Default::default();
        // Levels that the text does not name are banks.
        let mut widths = [0; Field::COUNT];
        for &(field, count) in &devices.levels {
            widths[mapping.field_of(field) as usize] += log2(count, "banks (or groups of them)")?;
        }
        widths[Field::Column as usize] = devices.row_bytes.trailing_zeros() - unit;
        // Fields from the least on: each takes the next bits of the address, those of `Ch` none.
        let (mut at, mut below_channel) = (unit, 0);
        for &piece in mapping.fields.iter().rev() {
            let masks = &mut plain[piece.field as usize];
            let range = match piece.field {
                Field::Channel => {
                    below_channel = at;
                    continue;
                }
                Field::Row => piece.range(piece.to.unwrap_or(piece.from + LOCAL_BITS - at)),
                field => piece.range(widths[field as usize]),
            };
            masks.resize(masks.len().max(range.end as usize), 0);
            for bit in range {
                masks[bit as usize] = 1 << at;
                at += 1;
            }
        }
        // A cut with an end may leave bits of a field that is longer here without a place.
        for field in Field::WORDS.map(|(_, field)| field) {
            let (placed, width) = (plain[field as usize].len() as u32, widths[field as usize]);
            if placed < width {
                return Err(format!("`{}` has {width} bits here, and {placed} of them have a place", field.word()));
            }
        }
        let chunk = devices.chunk_bytes.trailing_zeros();
        let of_slices = devices.slices_per_channel;
        let slice_bits = if of_slices.is_power_of_two() { of_slices.trailing_zeros() } else { 0 };
        plain[Field::Slice as usize] = (chunk..chunk + slice_bits).map(|bit| 1 << bit).collect();
        plain[Field::Rest as usize] = (chunk + slice_bits..LOCAL_BITS).map(|bit| 1 << bit).collect();
        if devices.channels.is_power_of_two() {
            plain[Field::Channel as usize] = vec![0; devices.channels.trailing_zeros() as usize];
        }
        // Hashes add to what the address has; their sources are that, not each other's sums.
        let hashed = plain.clone();
        let mut layout = FieldBits { plain, hashed, below_channel };
        layout.hash(mapping, devices)?;
        layout.check(devices)?;
        Ok(layout)
    }

    /// Bits of a field before hashing: one of the address each, but for `Ch`.
    pub(super) fn plain(&self, field: Field) -> &[u64] {
        &self.plain[field as usize]
    }

    /// Bits of a field after hashing.
    pub(super) fn bits(&self, field: Field) -> &[u64] {
        &self.hashed[field as usize]
    }

    /// The bits of some fields, the least first.
    fn places(&self, pieces: &[Piece]) -> Vec<(Field, usize)> {
        let of = |piece: &Piece| {
            let range = piece.range(self.plain[piece.field as usize].len() as u32);
            let field = piece.field;
            range.map(move |bit| (field, bit as usize))
        };
        pieces.iter().rev().flat_map(of).collect()
    }

    fn hash(&mut self, mapping: &Mapping, devices: &Geometry) -> Result<(), String> {
        for hash in &mapping.hashes {
            for (field, count) in [(Field::Channel, devices.channels), (Field::Slice, devices.slices_per_channel)] {
                if !count.is_power_of_two() && hash.left.iter().any(|piece| piece.field == field) {
                    let what = if field == Field::Channel { "channels" } else { "slices of a channel" };
                    return Err(format!(
                        "{count} {what} are no power of two, so that `{}` cannot be hashed; `slice = \
                         splitmix(chunk)` takes any number, as in `ours`",
                        field.word()
                    ));
                }
            }
            let left = self.places(&hash.left);
            let source: Vec<u64> =
                self.places(&hash.source).into_iter().map(|(field, bit)| self.plain[field as usize][bit]).collect();
            if !hash.by_polynomial {
                for (&(field, bit), mask) in left.iter().zip(source) {
                    self.hashed[field as usize][bit] ^= mask;
                }
                continue;
            }
            let Some(&polynomial) = POLYNOMIALS.get(left.len()) else {
                return Err(format!("`ipoly` takes at most {MOST_HASHED} bits on its left side; here {}", left.len()));
            };
            // x^n modulo the polynomial, and on.
            let (mut power, top) = (polynomial, 1u64 << left.len());
            for mask in source {
                for (nth, &(field, bit)) in left.iter().enumerate() {
                    if power >> nth & 1 == 1 {
                        self.hashed[field as usize][bit] ^= mask;
                    }
                }
                power <<= 1;
                if power & top != 0 {
                    power ^= top | polynomial;
                }
            }
        }
        Ok(())
    }

    /// No two addresses share a place.
    fn check(&self, devices: &Geometry) -> Result<(), String> {
        let own: u64 = self.plain[Field::Slice as usize].iter().sum();
        let (plain, hashed) = (&self.plain[Field::Slice as usize], &self.hashed[Field::Slice as usize]);
        if plain.iter().zip(hashed).any(|(plain, hashed)| (plain ^ hashed) & own != 0) {
            return Err("a slice is hashed with its own bits, so that lines would share a place".to_owned());
        }
        let fields = [Field::Row, Field::Bank, Field::BankGroup, Field::Rank, Field::Stack, Field::PseudoChannel];
        let outputs = fields.into_iter().chain([Field::Column]).flat_map(|field| self.bits(field)).copied();
        match share_a_place(outputs.collect(), devices.unit_shift()) {
            Some(other) => {
                Err(format!("addresses 0 and {other:#x} of a channel would share a place: hashes cancel bits"))
            }
            None => Ok(()),
        }
    }

    /// The bits of a bank's number, the least first.
    pub(super) fn bank_number(&self, mapping: &Mapping, devices: &Geometry) -> Vec<(Field, usize, u64)> {
        let mut taken = [0; Field::COUNT];
        let mut bits = Vec::new();
        for &(level, count) in devices.levels.iter().rev() {
            let field = mapping.field_of(level);
            for _ in 0..count.trailing_zeros() {
                let bit = taken[field as usize];
                bits.push((field, bit, self.bits(field)[bit]));
                taken[field as usize] += 1;
            }
        }
        bits
    }
}

/// An address that differs from 0 in bits from `unit` on, and in no output; none where outputs tell all
/// addresses apart.
fn share_a_place(mut outputs: Vec<u64>, unit: u32) -> Option<u64> {
    // Gauss and Jordan over GF(2): a row for each bit that some output decides.
    let mut decided: Vec<(u32, u64)> = Vec::new();
    let mut open = None;
    for bit in unit..LOCAL_BITS {
        let Some(at) = outputs.iter().position(|row| row >> bit & 1 == 1) else {
            open = open.or(Some(bit));
            continue;
        };
        let pivot = outputs.swap_remove(at);
        let clear = |row: &mut u64| *row ^= if *row >> bit & 1 == 1 { pivot } else { 0 };
        outputs.iter_mut().for_each(clear);
        decided.iter_mut().for_each(|(_, row)| clear(row));
        decided.push((bit, pivot));
    }
    let open = open?;
    Some(decided.iter().filter(|(_, row)| row >> open & 1 == 1).fold(1 << open, |all, (bit, _)| all | 1 << bit))
}

/// Slices and channels of a machine, by the sizes of its DRAM.
///
/// # Errors
/// The sizes do not suit the mapping.
pub(super) fn interleave(mapping: &Mapping, dram: &Geometry) -> Result<Interleave, String> {
    let slices = dram.channels * dram.slices_per_channel;
    let ours = Interleave::new(slices, dram.channels, dram.chunk_bytes);
    if mapping.turns_slices {
        return Ok(ours);
    }
    if dram.row_bytes < dram.chunk_bytes {
        return Err(format!(
            "rows of {} bytes (dram.row_bytes) are shorter than what is never split ({} bytes, interleave_bytes); \
             `slice = splitmix(chunk)` takes them, as in `ours`",
            dram.row_bytes, dram.chunk_bytes
        ));
    }
    let layout = FieldBits::new(mapping, dram)?;
    // A slice's number has the channel above the slice of it; what is hashed in is the channel's own address,
    // by chunks.
    let chunk = dram.chunk_bytes.trailing_zeros();
    let slice_bits = layout.plain[Field::Slice as usize].iter().zip(layout.bits(Field::Slice));
    let of_slice = slice_bits.map(|(plain, hashed)| plain ^ hashed);
    let masks: Vec<u64> =
        of_slice.chain(layout.bits(Field::Channel).iter().copied()).map(|mask| mask >> chunk).collect();
    let hashes = masks.iter().any(|&mask| mask != 0);
    if hashes && masks.len() > MOST_HASHED {
        return Err(format!("{slices} slices are too many to be hashed: at most {}", 1 << MOST_HASHED));
    }
    let mut hash = [0; MOST_HASHED];
    if hashes {
        hash[..masks.len()].copy_from_slice(&masks);
    }
    Ok(ours.with(Spread::new(dram.channels, layout.below_channel - chunk, hash)))
}
