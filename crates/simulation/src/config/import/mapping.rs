//! GPGPU-Sim's mapping of addresses as one of ours: `dramid@8;0...0RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS`.
//!
//! ```text
//!   RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS      letters of the address without its channel, bit 0 last
//!                        ^ dramid@8      where the channel's bits go in, or a remainder is taken
//!   Ro Ba[1:] Co Ba[:1] Ch               what that is here: columns count from the chunk, CCCSSSSS
//! ```
//! Source: `linear_to_raw_address_translation` and `dram_req_t` of GPGPU-Sim: masks by number, hashes of
//! partitions and of banks. What hashes take of an address ends with GPGPU-Sim's rows (28 bits and the
//! channel's), and goes on here.

use std::fmt::Write as _;

/// The channel's place and the letters of an address, from bit 0 on.
pub(super) struct Letters {
    /// Bit from which on the channel is, in the address without it.
    channel_at: usize,
    letters: Vec<char>,
}

impl Letters {
    /// Of `-gpgpu_mem_addr_mapping`.
    pub(super) fn parse(text: &str) -> Result<Letters, String> {
        let (place, map) = match text.split_once(';') {
            Some((place, map)) => (place.trim().strip_prefix("dramid@"), map),
            None => (None, text),
        };
        let mut letters: Vec<char> =
            map.chars().filter(|c| !"|. ".contains(*c)).map(|c| c.to_ascii_uppercase()).collect();
        // Written from bit 63 on.
        letters.reverse();
        if let Some(wrong) = letters.iter().find(|letter| !"RBCSD0".contains(**letter)) {
            return Err(format!("`{wrong}` is none of R, B, C, S, D and 0"));
        }
        if letters.len() != 64 {
            return Err(format!("it has {} bits, not 64", letters.len()));
        }
        // The channel has a place of its own, or letters among the others: these are taken out, as it is.
        let own = letters.iter().position(|&letter| letter == 'D');
        let channel_at = match (place, own) {
            (Some(place), None) => place.parse().ok().filter(|&at| at < 64),
            (None, own) => own,
            (Some(_), Some(_)) => return Err("it has both `dramid@` and D".to_owned()),
        };
        let channel_at = channel_at.ok_or("it has no place for the channel: `dramid@BIT;` or D")?;
        let of_channel = letters.iter().skip(channel_at).take_while(|&&letter| letter == 'D').count();
        letters.drain(channel_at..channel_at + of_channel);
        if letters.contains(&'D') {
            return Err("its D are not together".to_owned());
        }
        Ok(Letters { channel_at, letters })
    }

    /// Of a number of `-gpgpu_mem_address_mask`.
    pub(super) fn of_mask(mask: u32) -> Option<Letters> {
        let (channel_at, banks, columns) = match mask {
            0 => (10, 0x300, 0x1cff),
            1 => (13, 0x1800, 0x7ff),
            2 | 3 => (11, 0x1800, 0x7ff),
            5 | 6 | 14 | 15 | 16 => (mask as usize, 0x1800, 0x7ff),
            100 => (1, 0x3, 0x1ffc),
            103 => (3, 0x3, 0x1ffc),
            106 => (6, 0x1800, 0x7ff),
            160 => (6, 0x300, 0x1cff),
            _ => return None,
        };
        let letter = |bit: u32| match () {
            () if banks >> bit & 1 == 1 => 'B',
            () if columns >> bit & 1 == 1 => 'C',
            () if (13..27).contains(&bit) => 'R',
            () => '0',
        };
        Some(Letters { channel_at, letters: (0..32).map(letter).collect() })
    }
}

/// The options of addresses: letters, and hashes of channels and of banks.
pub(super) const MAP: &str = "gpgpu_mem_addr_mapping";
pub(super) const PARTITIONS: &str = "gpgpu_memory_partition_indexing";
pub(super) const BANKS: &str = "dram_bnk_indexing_policy";

/// What else decides where an address lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hashes {
    /// Of [`PARTITIONS`].
    pub(super) partitions: u32,
    /// Of [`BANKS`].
    pub(super) banks: u32,
}

/// Sizes of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) channels: u32,
    /// Of a channel.
    pub(super) slices: u32,
    pub(super) banks: u32,
    pub(super) line_bytes: u64,
}

/// A mapping of ours, and the sizes that go with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) text: String,
    pub(super) chunk_bytes: u64,
    pub(super) row_bytes: u64,
    /// What is otherwise here, and of which option.
    pub(super) otherwise: Vec<(&'static str, &'static str)>,
}

/// The mapping of an address as letters, hashed.
///
/// # Errors
/// What of it has no counterpart.
pub(super) fn mapped(asked: &Letters, hashes: Hashes, sizes: Sizes) -> Result<Mapped, String> {
    let field = |letter: &char| match letter {
        'S' => 'C',
        other => *other,
    };
    let used = asked.letters.iter().rposition(|&letter| letter != '0').map_or(0, |last| last + 1);
    let letters: Vec<char> = asked.letters[..used].iter().map(field).collect();
    let count = |letter: char| letters.iter().filter(|&&other| other == letter).count();
    if letters.contains(&'0') || letters.last() != Some(&'R') {
        return Err("bits that count for nothing, or other than rows on top, have no counterpart".to_owned());
    }
    let reached = 1u128 << count('B');
    if reached != u128::from(sizes.banks) {
        return Err(format!("it reaches {reached} banks of {}: here all are used", sizes.banks));
    }
    // The columns below everything else are never split.
    let chunk = letters.iter().take(asked.channel_at).take_while(|&&letter| letter == 'C').count();
    if 1 << chunk < sizes.line_bytes {
        return Err(format!("it splits lines of {} bytes", sizes.line_bytes));
    }
    let of_slice = sizes.slices.trailing_zeros() as usize;
    let slices_are_banks = letters.iter().skip(chunk).take(of_slice).all(|&letter| letter == 'B');
    let is_power = sizes.channels.is_power_of_two();
    // A hash of any number of channels: that of ours, whose channels lie directly above the chunk.
    let turned = hashes.partitions == 4 || hashes.partitions == 2 && !is_power;
    let channel_at = if turned { chunk } else { asked.channel_at };
    let fields = Fields { letters: &letters, chunk };
    let (above, below) = (fields.written(channel_at..used, true), fields.written(chunk..channel_at, false));
    let columns = if letters[chunk..].contains(&'C') { "" } else { " Co" };
    let mut text = [above.as_str(), columns, " Ch ", below.as_str()].concat().trim_end().to_owned();
    let rest = fields.written(asked.channel_at + of_slice..used, true);
    let mut otherwise = Vec::new();
    match hashes.partitions {
        0 => {}
        _ if turned => text += "; slice = splitmix(chunk)",
        1 if is_power => {
            let _ = write!(text, "; Ch ^= {rest}");
        }
        2 => {
            let _ = write!(text, "; Ch slice = ipoly(Ch slice, {rest})");
        }
        _ => otherwise.push((PARTITIONS, "no counterpart: here channels are not hashed")),
    }
    match hashes.banks {
        0 => {}
        1 => text += "; Ba ^= Ro",
        2 => text += "; Ba = ipoly(Ba, Ro)",
        _ => otherwise.push((BANKS, "no counterpart: here banks are not hashed")),
    }
    if !slices_are_banks {
        otherwise.push((MAP, "slices of a channel follow from the lowest bits above the chunk, not from banks"));
    }
    if turned {
        otherwise.push((PARTITIONS, "here by splitmix64, which takes any number of channels"));
    }
    Ok(Mapped { text, chunk_bytes: 1 << chunk, row_bytes: 1 << count('C'), otherwise })
}

/// Letters as fields of ours.
struct Fields<'a> {
    letters: &'a [char],
    /// Bits of the chunk.
    chunk: usize,
}

impl Fields<'_> {
    /// Bits of the address as pieces of fields, most significant first; the rows on `top` have no end.
    fn written(&self, bits: std::ops::Range<usize>, top: bool) -> String {
        let mut pieces: Vec<String> = Vec::new();
        let mut end = bits.end;
        while end > bits.start {
            let letter = self.letters[end - 1];
            let start = (bits.start..end).rev().take_while(|&bit| self.letters[bit] == letter).last().unwrap_or(end);
            let number = |at: usize| self.letters[self.chunk..at].iter().filter(|&&other| other == letter).count();
            let (from, to, all) = (number(start), number(end), number(self.letters.len()));
            let word = match letter {
                'R' => "Ro",
                'B' => "Ba",
                _ => "Co",
            };
            pieces.push(match (from, to) {
                (0, to) if to == all => word.to_owned(),
                (from, to) if to == all || top && letter == 'R' && end == bits.end => format!("{word}[{from}:]"),
                (0, to) => format!("{word}[:{to}]"),
                (from, to) => format!("{word}[{from}:{to}]"),
            });
            end = start;
        }
        pieces.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V100: &str = "dramid@8;00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS";
    const TITAN: &str = "dramid@8;00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS";

    fn of(text: &str, channels: u32, partitions: u32, banks: u32) -> Result<Mapped, String> {
        let sizes = Sizes { channels, slices: 2, banks: 16, line_bytes: 128 };
        mapped(&Letters::parse(text)?, Hashes { partitions, banks }, sizes)
    }

    #[test]
    fn letters_and_hashes_become_fields_and_rules() {
        for (text, channels, partitions, banks, expected, sizes) in [
            (V100, 32, 0, 0, "Ro Ba[1:] Co Ba[:1] Ch", (256, 2048)),
            (V100, 32, 2, 1, "Ro Ba[1:] Co Ba[:1] Ch; Ch slice = ipoly(Ch slice, Ro Ba[1:] Co); Ba ^= Ro", (256, 2048)),
            (V100, 24, 2, 0, "Ro Ba[1:] Co Ba[:1] Ch; slice = splitmix(chunk)", (256, 2048)),
            (TITAN, 12, 0, 2, "Ro Ba[1:] Co Ch Ba[:1]; Ba = ipoly(Ba, Ro)", (128, 2048)),
            (TITAN, 12, 4, 0, "Ro Ba[1:] Co Ba[:1] Ch; slice = splitmix(chunk)", (128, 2048)),
            (TITAN, 16, 1, 0, "Ro Ba[1:] Co Ch Ba[:1]; Ch ^= Ro Ba[1:] Co[1:]", (128, 2048)),
        ] {
            let found = of(text, channels, partitions, banks).unwrap();
            assert_eq!((found.text.as_str(), (found.chunk_bytes, found.row_bytes)), (expected, sizes));
        }
        let explicit = TITAN.replace("dramid@8;0000", "").replace("BBBCCCC.B", "BBBCCCC.DDDD.B");
        assert_eq!(of(&explicit, 16, 0, 0).unwrap().text, "Ro Ba[1:] Co Ch Ba[:1]");
    }

    #[test]
    fn masks_by_number_are_those_of_the_source() {
        let sizes = Sizes { channels: 8, slices: 1, banks: 4, line_bytes: 128 };
        let of = |mask| {
            let found = mapped(&Letters::of_mask(mask).unwrap(), Hashes { partitions: 0, banks: 0 }, sizes);
            found.map(|found| (found.text, found.chunk_bytes, found.row_bytes))
        };
        assert_eq!(of(0), Ok(("Ro Co Ch Ba".to_owned(), 256, 2048)));
        assert_eq!(of(1), Ok(("Ro Co Ch Ba".to_owned(), 2048, 2048)));
        assert_eq!(of(2), Ok(("Ro Ba Co Ch".to_owned(), 2048, 2048)));
        assert!(of(5).unwrap_err().contains("splits lines"));
        assert!(Letters::of_mask(4).is_none());
    }

    #[test]
    fn what_has_no_counterpart_is_told() {
        for (text, expected) in [
            (V100.replace("RBBB", "R0BB"), "count for nothing"),
            (V100.replace("RBBB", "RRBB"), "8 banks of 16"),
            (V100.replace("@8", "@5"), "splits lines"),
            (V100.replace("RBBB", "RXBB"), "`X` is none of"),
            (V100.replace("RBBB", "RBB"), "63 bits, not 64"),
            (V100.replace("dramid@8;", ""), "no place for the channel"),
            (V100.replace("RBBB", "DBBB"), "both `dramid@` and D"),
        ] {
            assert!(of(&text, 32, 0, 0).unwrap_err().contains(expected), "{text}");
        }
        let custom = of(V100, 32, 3, 3).unwrap();
        assert_eq!(custom.otherwise.len(), 2, "{custom:?}");
    }
}
