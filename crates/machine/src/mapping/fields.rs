//! The words of a mapping: fields, cuts of them, hashes over them.
//!
//! Source: `parse` reads them, `layout` gives them bits. Invariants, held by `parse`: rows come first and
//! have no end; every bit of a field is there once; `Ch` is in one piece.

/// A field of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Row of a bank.
    Row,
    /// Bank, or bank of a group.
    Bank,
    /// Bank group.
    BankGroup,
    /// Rank.
    Rank,
    /// Stack of a package (HBM's SID).
    Stack,
    /// Pseudo channel, or sub-channel of a DIMM.
    PseudoChannel,
    /// Chunk of a row.
    Column,
    /// Channel.
    Channel,
    /// Slice of a channel. Within rules only.
    Slice,
    /// The channel's own address above the slice. Within rules only.
    Rest,
}

impl Field {
    pub(super) const COUNT: usize = 10;

    /// Every field with its word.
    pub(super) const WORDS: [(&str, Field); Field::COUNT] = [
        ("Ro", Field::Row),
        ("Ba", Field::Bank),
        ("Bg", Field::BankGroup),
        ("Ra", Field::Rank),
        ("St", Field::Stack),
        ("Pc", Field::PseudoChannel),
        ("Co", Field::Column),
        ("Ch", Field::Channel),
        ("slice", Field::Slice),
        ("rest", Field::Rest),
    ];

    pub(super) fn word(self) -> &'static str {
        Field::WORDS[self as usize].0
    }

    /// The field of a level of a device's table; levels without a word are banks.
    pub fn of_level(name: &str) -> Field {
        match name {
            "bank_group" => Field::BankGroup,
            "rank" => Field::Rank,
            "stack" => Field::Stack,
            "pseudo_channel" | "sub_channel" => Field::PseudoChannel,
            _ => Field::Bank,
        }
    }
}

/// A field, or a cut of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) field: Field,
    pub(super) from: u32,
    /// The piece ends before this bit; `None`: at the end of the field.
    pub(super) to: Option<u32>,
}

impl Piece {
    /// Its bits, of a field that has `width`.
    pub(super) fn range(self, width: u32) -> std::ops::Range<u32> {
        self.from.min(width)..self.to.unwrap_or(width).min(width)
    }

    pub(super) fn is_whole(self) -> bool {
        self.from == 0 && self.to.is_none()
    }
}

/// What a rule does with its left side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hash {
    pub(super) left: Vec<Piece>,
    pub(super) source: Vec<Piece>,
    /// By the polynomial of the left side's width, not bit by bit.
    pub(super) by_polynomial: bool,
}

/// A mapping as its text says, for any sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Most significant first.
    pub(super) fields: Vec<Piece>,
    pub(super) hashes: Vec<Hash>,
    /// Slices are turned by splitmix64.
    pub(super) turns_slices: bool,
    /// Banks are turned by their row.
    pub(super) turns_banks: bool,
}

impl Mapping {
    /// The field that has a level: banks, where the text does not name it.
    pub(super) fn field_of(&self, level: Field) -> Field {
        if self.fields.iter().any(|piece| piece.field == level) { level } else { Field::Bank }
    }
}
