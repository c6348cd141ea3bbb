//! Address mappings by name: which channel, bank and row an address lies in, as text.
//!
//! ```text
//!   Ro Ba[1:] Co Ba[:1] Ch ; Ch slice = ipoly(Ch slice, rest) ; Ba ^= Ro
//!   fields, most significant first     rules: hashes over bits of the address
//! ```
//! | field | counts |
//! |---|---|
//! | `Ro` | rows; first, without an end |
//! | `Ba` | banks, and levels that the text does not name |
//! | `Bg` `Ra` `St` `Pc` | bank groups, ranks, stacks, pseudo channels |
//! | `Co` | chunks of a row |
//! | `Ch` | channels |
//!
//! | rule | meaning |
//! |---|---|
//! | `F ^= G` | each bit of F and that of G with its number |
//! | `F = ipoly(F, G)` | F ^ (G x^n mod the polynomial of degree n) |
//! | `slice = splitmix(chunk)` | slices turned by a hash of the group of chunks |
//! | `Ba = rotate(Ba, Ro)` | banks turned by the row: Ba + (Ro ^ Ro>>4 ^ Ro>>8) |
//!
//! A field may be cut: `Co[2:]`, `Co[:2]`, `Ba[1:3]`; a cut takes as much of it as there is. Sides of a rule
//! may be several fields, most significant first; they meet at their least bits. Sources are bits of the
//! address, not yet hashed. Within rules `slice` is the slice of a channel, and `rest` is all of the
//! channel's address above the slice.
//!
//! Below the fields lie the bytes of a chunk (the machine's `interleave_bytes`), which is never split: the
//! least columns. The slice of a channel is the least part of the channel's own address above the chunk,
//! whichever field has it (columns, where `Co Ch` end the text; the least bank in GPGPU-Sim's). Sizes are
//! those of DRAM where channels are concerned; within a channel each medium has its own.
//!
//! Source: the orders of Ramulator 2 (`RoBaRaCoCh`, `MOP4CLXOR`), gem5 (`RoRaBaChCo`, `RoCoRaBaCh`) and
//! GPGPU-Sim (`gpgpu-ipoly`: SM7_QV100), the last after Rau, ISCA 1991. Invariants: what is compiled is a
//! bijection, seen to by rank over GF(2); `ours` is what machines had before they could choose. Not modelled:
//! a mapping by bits over a number of banks that is no power of two; tables of remapped rows.

mod bits;
mod fields;
mod layout;
mod parse;
mod rows;

use super::address::Interleave;
use durawarp_base::diagnostic::nearest;

pub use fields::{Field, Mapping};
pub use layout::Geometry;
pub use rows::RowMap;

use layout::interleave;
use rows::row_map;

/// The mapping of machines that name none.
pub const OURS: &str = "ours";

/// Mappings that have a name.
pub const NAMED: [(&str, &str); 6] = [
    (OURS, "Ro Ba Co Ch; slice = splitmix(chunk); Ba = rotate(Ba, Ro)"),
    ("RoBaRaCoCh", "Ro Ba Bg Ra St Pc Co Ch"),
    ("RoRaBaChCo", "Ro St Ra Ba Bg Pc Ch Co"),
    ("RoCoRaBaCh", "Ro Co St Ra Ba Bg Pc Ch"),
    ("MOP4CLXOR", "Ro Co[2:] Ba Bg Ra St Pc Co[:2] Ch; Ro Ba Bg Ra St Pc ^= Co"),
    ("gpgpu-ipoly", "Ro Ba[1:] Co Ba[:1] Ch; Ch slice = ipoly(Ch slice, rest)"),
];

impl Mapping {
    /// Of a name, or of a text.
    ///
    /// # Errors
    /// What is wrong, and where in the text.
    pub fn new(text: &str) -> Result<Mapping, String> {
        if let Some(definition) = definition(text) {
            return parse::parse(definition);
        }
        // One word that is no field was meant as a name.
        let is_name = text.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
        if is_name && Field::WORDS.iter().all(|(word, _)| *word != text) {
            let names = NAMED.map(|(name, _)| name);
            let near = nearest(text, names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(format!("there is no mapping `{text}`: names are {}{near}", names.join(", ")));
        }
        parse::parse(text)
    }
}

/// The text of a mapping that has a name.
fn definition(name: &str) -> Option<&'static str> {
    NAMED.iter().find(|(named, _)| *named == name).map(|(_, text)| *text)
}

/// A mapping on a machine.
#[derive(Debug, Clone)]
pub struct AddressMap {
    /// Slices and channels.
    pub interleave: Interleave,
    /// Banks and rows, of DRAM and of NVM; none where the media turn banks by their row.
    pub rows: [Option<RowMap>; 2],
    mapping: Mapping,
    /// Its text, where it was asked for by a name.
    definition: Option<&'static str>,
    devices: [Geometry; 2],
}

impl AddressMap {
    /// The mapping of a name or a text, on these devices of DRAM and of NVM.
    ///
    /// # Errors
    /// What is wrong with the text, or with it on this machine.
    pub fn new(text: &str, devices: [Geometry; 2]) -> Result<AddressMap, String> {
        let mapping = Mapping::new(text)?;
        let [dram, nvm] = &devices;
        let of_nvm = |why| format!("of NVM: {why}");
        let rows = [row_map(&mapping, dram)?, row_map(&mapping, nvm).map_err(of_nvm)?];
        Ok(AddressMap { interleave: interleave(&mapping, dram)?, rows, mapping, definition: definition(text), devices })
    }

    /// What each bit of an address decides, in words, after the text of a name.
    pub fn bits(&self) -> Vec<String> {
        let text = self.definition.iter().map(|text| format!("is {text}"));
        text.chain(bits::lines(&self.mapping, &self.devices[0], &self.devices[1]).unwrap_or_default()).collect()
    }
}

#[cfg(test)]
mod tests;
