//! A mapping for sizes, told bit by bit: `bit 13: bank 0 = a13 ^ a17`.
//!
//! `a` is the distance from the base of a medium; `r`, where channels are no power of two, what of it is left
//! of the division by them.

use super::fields::{Field, Mapping};
use super::layout::{FieldBits, Geometry, LOCAL_BITS, interleave};

/// A bit of a field, and what it is the parity of.
struct Told {
    /// Its place in the address.
    at: u32,
    name: &'static str,
    bit: usize,
    mask: u64,
}

/// The channel's bits in an address: from which on, and how many.
#[derive(Clone, Copy)]
struct Channels {
    from: u32,
    bits: u32,
    letter: char,
}

impl Channels {
    /// Bits of a channel's own address as bits of the whole one.
    fn widen(self, own: u64) -> u64 {
        let low = (1 << self.from) - 1;
        (own & !low) << self.bits | own & low
    }

    fn sum(self, mask: u64) -> String {
        let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
        let bits: Vec<String> = bits.map(|bit| format!("{}{bit}", self.letter)).collect();
        bits.join(" ^ ")
    }
}

/// What each bit of an address decides, a line each, on a machine with these devices.
///
/// # Errors
/// The sizes do not suit the mapping.
pub(super) fn lines(mapping: &Mapping, dram: &Geometry, nvm: &Geometry) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let mut channels = Channels { from: 0, bits: 0, letter: 'a' };
    let chunk = dram.chunk_bytes.trailing_zeros();
    // What cannot be compiled is not told either.
    interleave(mapping, dram)?;
    if mapping.turns_slices {
        let (slices, each) = (dram.channels * dram.slices_per_channel, dram.slices_per_channel);
        lines.push(format!("chunk = a >> {chunk}; slice = (chunk + splitmix64(chunk / {slices})) mod {slices}"));
        lines.push(format!(
            "channel = slice / {each}; its address c: chunk / {slices} x {each} + slice mod {each}, then {chunk} \
             bits of a"
        ));
        channels.letter = 'c';
    } else {
        let layout = FieldBits::new(mapping, dram)?;
        channels.from = layout.below_channel;
        let own = layout.bits(Field::Channel);
        if dram.channels.is_power_of_two() {
            channels.bits = own.len() as u32;
        } else {
            channels.letter = 'r';
            lines.push(format!(
                "above = a >> {0}; channel = above mod {1}; r: above / {1}, then {0} bits of a",
                channels.from, dram.channels
            ));
        }
        // Masks are of the channel's own address: its bits make room for the channel's.
        let of_channel = own.iter().zip(channels.from..).map(|(hash, at)| channels.widen(*hash) | 1 << at);
        let told = of_channel.enumerate().map(|(bit, mask)| {
            let at = channels.from + bit as u32;
            Told { at, name: "channel", bit, mask }
        });
        lines.extend(channels.lines(told.collect()));
        for (bit, mask) in layout.bits(Field::Slice).iter().enumerate() {
            lines.push(format!("slice {bit} of the channel = {}", channels.sum(channels.widen(*mask))));
        }
    }
    for (medium, devices) in [("dram", dram), ("nvm", nvm)] {
        lines.push(format!("{medium}:"));
        let of_medium = lines_of(mapping, devices, channels)?;
        lines.extend(of_medium.into_iter().map(|line| format!("  {line}")));
    }
    Ok(lines)
}

/// What each bit of a channel's address decides in a medium.
fn lines_of(mapping: &Mapping, devices: &Geometry, channels: Channels) -> Result<Vec<String>, String> {
    if mapping.turns_banks {
        let (row, banks) = (devices.row_bytes.trailing_zeros(), devices.banks());
        let letter = if channels.letter == 'c' { "c" } else { "c (a without its channel)" };
        return Ok(vec![
            format!("n = {letter} >> {row}; row = n / {banks}"),
            format!("bank = (n + (row ^ row >> 4 ^ row >> 8)) mod {banks}"),
        ]);
    }
    let layout = FieldBits::new(mapping, devices)?;
    let of = |name, number: usize, field: Field, bit: usize, mask: u64| {
        let at = channels.widen(layout.plain(field)[bit]).trailing_zeros();
        Told { at, name, bit: number, mask: channels.widen(mask) }
    };
    let banks = layout.bank_number(mapping, devices).into_iter().enumerate();
    let mut told: Vec<Told> = banks.map(|(number, (field, bit, mask))| of("bank", number, field, bit, mask)).collect();
    for (name, field) in [("column", Field::Column), ("row", Field::Row)] {
        told.extend(layout.bits(field).iter().enumerate().map(|(bit, mask)| of(name, bit, field, bit, *mask)));
    }
    let mut lines = vec![format!("bits 0 to {}: bytes", devices.unit_shift().saturating_sub(1))];
    lines.extend(channels.lines(told));
    Ok(lines)
}

impl Channels {
    /// Lines of bits, from the least on; neighbours that nothing is hashed into share one.
    fn lines(self, mut told: Vec<Told>) -> Vec<String> {
        told.sort_by_key(|told| told.at);
        let plain = |told: &Told| told.mask == 1 << told.at;
        let follows = |one: &Told, next: &Told| {
            plain(one) && plain(next) && one.name == next.name && (one.at + 1, one.bit + 1) == (next.at, next.bit)
        };
        let line = |run: &[Told]| {
            let (first, last) = (&run[0], &run[run.len() - 1]);
            let top = last.at + 1 == LOCAL_BITS + if last.at >= self.from { self.bits } else { 0 };
            match run {
                _ if top && run.len() > 1 => format!("bits from {}: {} from bit {}", first.at, first.name, first.bit),
                [only] if plain(only) => format!("bit {}: {} {}", only.at, only.name, only.bit),
                [only] => format!("bit {}: {} {} = {}", only.at, only.name, only.bit, self.sum(only.mask)),
                _ => format!("bits {} to {}: {} {} to {}", first.at, last.at, first.name, first.bit, last.bit),
            }
        };
        told.chunk_by(follows).map(line).collect()
    }
}
