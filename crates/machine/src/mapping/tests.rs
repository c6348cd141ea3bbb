//! Mappings against plain models written from their definitions, and as bijections over random sizes.

use super::*;
use crate::address::Interleave;
use durawarp_kernel::memory::{DRAM_BASE, NVM_BASE};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Logarithms of counts.
#[derive(Debug, Clone, Copy)]
struct Logs {
    channels: u32,
    slices: u32,
    chunk: u32,
    columns: u32,
    rank: u32,
    group: u32,
    bank: u32,
}

impl Logs {
    fn devices(self) -> Geometry {
        Geometry {
            levels: vec![
                (Field::Rank, 1 << self.rank),
                (Field::BankGroup, 1 << self.group),
                (Field::Bank, 1 << self.bank),
            ],
            row_bytes: 1 << (self.chunk + self.columns),
            channels: 1 << self.channels,
            slices_per_channel: 1 << self.slices,
            chunk_bytes: 1 << self.chunk,
        }
    }
}

fn sizes() -> impl Strategy<Value = Logs> {
    (0u32..6, 0u32..3, 6u32..10, 0u32..7, 0u32..2, 0u32..3, 0u32..5).prop_map(
        |(channels, slices, chunk, columns, rank, group, bank)| Logs {
            channels,
            slices,
            chunk,
            columns,
            rank,
            group,
            bank,
        },
    )
}

/// Mappings that have a name, some others, and some of rules that are drawn.
fn texts() -> impl Strategy<Value = String> {
    let sound = prop::sample::select(&[
        OURS,
        "RoBaRaCoCh",
        "RoRaBaChCo",
        "RoCoRaBaCh",
        "MOP4CLXOR",
        "gpgpu-ipoly",
        "Ro[2:] Ba Bg Ch Ro[:2] Ra Co; Ba ^= Ro; Bg = ipoly(Bg, Ro Co); Ch ^= Ro Ba",
        "Ro Ba Co Ch; slice = splitmix(chunk); Ba = ipoly(Ba, Ro)",
        "Ro Ba Co Ch; Ba = rotate(Ba, Ro); Ch slice ^= rest",
    ]);
    let rules = prop::sample::select(&[
        "; Ba ^= Ro",
        "; Ba ^= Bg Ra",
        "; Bg ^= Ba",
        "; Bg Ra ^= Ro[:3] Ba",
        "; Ro[:2] ^= Ba",
        "; Ra = ipoly(Ra, Ba Bg)",
        "; Ch slice ^= Ba Ro",
        "; Bg Ba ^= Co",
    ]);
    let drawn = prop::collection::vec(rules, 0..5).prop_map(|rules| format!("Ro Ba Bg Ra Co Ch;{}", rules.concat()));
    let drawn = drawn.prop_map(|text| text.replace(";;", ";").trim_end_matches(';').to_owned());
    prop_oneof![sound.prop_map(str::to_owned), drawn]
}

/// A mapping for one machine.
#[derive(Debug)]
struct Compiled {
    map: Interleave,
    rows: RowMap,
}

impl Compiled {
    fn new(text: &str, devices: &Geometry) -> Result<Compiled, String> {
        let mapping = Mapping::new(text)?;
        let turned = RowMap::turned((0..devices.banks() as u16).collect(), devices.row_bytes);
        Ok(Compiled { map: interleave(&mapping, devices)?, rows: row_map(&mapping, devices)?.unwrap_or(turned) })
    }

    /// Channel, bank and row.
    fn place(&self, address: u64) -> (u64, u64, u64) {
        let (bank, row) = self.rows.place(self.map.in_channel(address));
        (self.map.channel_of(address) as u64, u64::from(bank), u64::from(row))
    }
}

/// Takes the least bits of a word away.
fn cut(word: &mut u64, bits: u32) -> u64 {
    let cut = *word & ((1 << bits) - 1);
    *word >>= bits;
    cut
}

/// Rank, group and bank as one number, as `Logs::devices` has its levels.
fn number(sizes: Logs, rank: u64, group: u64, bank: u64) -> u64 {
    (rank << sizes.group | group) << sizes.bank | bank
}

/// Ramulator 2: channels by lines, then the least bits are cut off one field after another.
fn ramulator(sizes: Logs, offset: u64, xor: bool) -> (u64, u64, u64) {
    let mut word = offset >> sizes.chunk;
    let channel = cut(&mut word, sizes.channels);
    let low = if xor { 2.min(sizes.columns) } else { sizes.columns };
    let mut column = cut(&mut word, low);
    let [mut rank, mut group, mut bank] = [sizes.rank, sizes.group, sizes.bank].map(|bits| cut(&mut word, bits));
    column |= cut(&mut word, sizes.columns - low) << low;
    let mut row = word;
    if xor {
        let mut left = column;
        rank ^= cut(&mut left, sizes.rank);
        group ^= cut(&mut left, sizes.group);
        bank ^= cut(&mut left, sizes.bank);
        row ^= left;
    }
    (channel, number(sizes, rank, group, bank), row)
}

/// gem5: a stripe is a chunk; its bank numbers have the group as their least part.
fn gem5(sizes: Logs, offset: u64, columns_last: bool) -> (u64, u64, u64) {
    let mut word = offset >> sizes.chunk;
    if columns_last {
        cut(&mut word, sizes.columns);
    }
    let channel = cut(&mut word, sizes.channels);
    let [group, bank, rank] = [sizes.group, sizes.bank, sizes.rank].map(|bits| cut(&mut word, bits));
    if !columns_last {
        cut(&mut word, sizes.columns);
    }
    (channel, number(sizes, rank, group, bank), word)
}

/// GPGPU-Sim's hash of 64 partitions: each bit as its source spells it.
fn gpgpu_64(high: u64, index: u64) -> u64 {
    let bits: [&[u32]; 6] = [
        &[18, 17, 16, 15, 12, 10, 6, 5, 0],
        &[15, 13, 12, 11, 10, 7, 5, 1, 0],
        &[16, 14, 13, 12, 11, 8, 6, 2, 1],
        &[17, 15, 14, 13, 12, 9, 7, 3, 2],
        &[18, 16, 15, 14, 13, 10, 8, 4, 3],
        &[17, 16, 15, 14, 11, 9, 5, 4],
    ];
    let sum = |of: &[u32]| of.iter().fold(0, |sum, bit| sum ^ high >> bit & 1);
    (0..).zip(bits).fold(index, |index, (nth, of)| index ^ sum(of) << nth)
}

proptest! {
    #[test]
    fn ours_is_what_machines_had(
        (slices, channels) in prop::sample::select(&[(16u32, 8u32), (24, 12), (160, 40), (4, 1), (3, 3), (64, 32)]),
        banks in prop::sample::select(&[1u32, 8, 12, 16, 80]),
        row_shift in 6u32..14,
        offset in 0u64..1 << 38,
    ) {
        let devices = Geometry {
            levels: vec![(Field::Bank, banks)],
            row_bytes: 1 << row_shift,
            channels,
            slices_per_channel: slices / channels,
            chunk_bytes: 256,
        };
        let compiled = Compiled::new(OURS, &devices).unwrap();
        prop_assert_eq!(compiled.map, Interleave::new(slices, channels, 256));
        let (slices, each) = (u64::from(slices), u64::from(slices / channels));
        let (group, nth) = (offset / 256 / slices, offset / 256 % slices);
        let slice = (nth + crate::address::mixed(group) % slices) % slices;
        prop_assert_eq!(u64::from(compiled.map.slice_of(NVM_BASE + offset)), slice);
        let own = (group * each + slice % each) * 256 + offset % 256;
        prop_assert_eq!(compiled.map.in_channel(NVM_BASE + offset), own);
        let banks = u64::from(banks);
        let row = (own >> row_shift) / banks;
        let bank = ((own >> row_shift) % banks + (row ^ row >> 4 ^ row >> 8)) % banks;
        prop_assert_eq!(compiled.rows.place(own), (bank as u16, row as u32));
    }

    #[test]
    fn those_of_other_simulators_are_as_they_define_them(sizes in sizes(), offset in 0u64..1 << 38) {
        let devices = sizes.devices();
        let place = |name| Compiled::new(name, &devices).unwrap().place(DRAM_BASE + offset);
        prop_assert_eq!(place("RoBaRaCoCh"), ramulator(sizes, offset, false));
        prop_assert_eq!(place("MOP4CLXOR"), ramulator(sizes, offset, true));
        prop_assert_eq!(place("RoRaBaChCo"), gem5(sizes, offset, true));
        prop_assert_eq!(place("RoCoRaBaCh"), gem5(sizes, offset, false));
    }

    #[test]
    fn the_hash_of_partitions_is_gpgpu_sims(offset in 0u64..1 << 33) {
        // SM7_QV100: dramid@8, `RBBBCCCB.CCCSSSSS`, 32 channels of 2 slices, 16 banks.
        let sizes = Logs { channels: 5, slices: 1, chunk: 8, columns: 3, rank: 0, group: 0, bank: 4 };
        let compiled = Compiled::new("gpgpu-ipoly", &sizes.devices()).unwrap();
        let bits = |from: u32, count: u32| offset >> from & ((1 << count) - 1);
        let (bank, row) = (bits(17, 3) << 1 | bits(13, 1), offset >> 20);
        let partition = gpgpu_64(offset >> 14, bits(8, 5) << 1 | bank & 1);
        prop_assert_eq!(u64::from(compiled.map.slice_of(DRAM_BASE + offset)), partition);
        prop_assert_eq!(compiled.place(DRAM_BASE + offset), (partition / 2, bank, row));
    }

    #[test]
    fn every_channel_has_its_share_and_finds_each_address_again(
        sizes in sizes(),
        text in texts(),
        offset in 0u64..1 << 38,
    ) {
        let devices = sizes.devices();
        let compiled = Compiled::new(&text, &devices);
        // Rules that were drawn may cancel bits of each other.
        let Ok(Compiled { map, rows }) = compiled else {
            prop_assert!(text.starts_with("Ro Ba Bg Ra Co Ch"), "{compiled:?}");
            prop_assert!(compiled.unwrap_err().contains("would share a place"));
            return Ok(());
        };
        let address = NVM_BASE + offset;
        let channel = map.channel_of(address) as u32;
        prop_assert_eq!(map.offset_of(channel, map.in_channel(address)), offset);
        let (from, to) = map.in_channels(address, 64);
        prop_assert!((from..to).contains(&map.in_channel(address)));
        let (from, to) = map.offsets_of(map.in_channel(address), 64);
        prop_assert!((from..to).contains(&offset));
        let slice = map.slice_of(address);
        prop_assert_eq!(map.slice_of(map.some_line_of(slice)), slice);
        // All chunks of some first rows: every row of every bank has as many as it has columns, no slice has
        // an address twice, and a channel's share has no hole.
        // As many rows as any hash of rows or banks has bits.
        let Logs { channels, columns, rank, group, bank, .. } = sizes;
        let chunks = 1u64 << (channels + columns + rank + group + bank + columns.max(5));
        if chunks > 1 << 15 {
            return Ok(());
        }
        let (mut of_row, mut of_slice) = (BTreeMap::new(), BTreeMap::new());
        let share = map.channel_share(chunks << sizes.chunk);
        for chunk in 0..chunks {
            let address = DRAM_BASE + (chunk << sizes.chunk);
            let own = map.in_channel(address);
            prop_assert!(own < share, "{own:#x} of {share:#x}");
            *of_row.entry((map.channel_of(address), rows.place(own))).or_insert(0) += 1;
            *of_slice.entry((map.slice_of(address), map.in_slice(address))).or_insert(0) += 1;
        }
        prop_assert!(of_row.values().all(|&count| count == 1 << sizes.columns), "{of_row:?}");
        prop_assert!(of_slice.values().all(|&count| count == 1), "{of_slice:?}");
    }

    #[test]
    fn any_number_of_channels_is_divided_by(
        channels in 1u32..50,
        each in 1u32..4,
        text in prop::sample::select(&["Ro Ba[1:] Co Ba[:1] Ch", "Ro Ba Ch Co"]),
        offset in 0u64..1 << 38,
    ) {
        let sizes = Logs { channels: 0, slices: 0, chunk: 8, columns: 3, rank: 0, group: 2, bank: 2 };
        let devices = Geometry { channels, slices_per_channel: each, ..sizes.devices() };
        let Compiled { map, rows } = Compiled::new(text, &devices).unwrap();
        let address = DRAM_BASE + offset;
        let below = if text.ends_with("Ch") { 8 } else { 11 };
        let (own, low) = ((offset >> below) / u64::from(channels), offset & ((1 << below) - 1));
        prop_assert_eq!(map.channel_of(address) as u64, (offset >> below) % u64::from(channels));
        prop_assert_eq!(map.in_channel(address), own << below | low);
        prop_assert_eq!(u64::from(map.slice_of(address) % each), (own << below | low) / 256 % u64::from(each));
        prop_assert_eq!(map.offset_of(map.channel_of(address) as u32, map.in_channel(address)), offset);
        prop_assert_eq!(rows.place(map.in_channel(address)).1 as u64, map.in_channel(address) >> 15);
    }
}

#[test]
fn a_fault_says_what_is_wrong_and_where() {
    let sizes = Logs { channels: 3, slices: 1, chunk: 8, columns: 3, rank: 1, group: 2, bank: 2 };
    let devices = sizes.devices();
    let odd = Geometry { channels: 12, ..devices.clone() };
    let banks = Geometry { levels: vec![(Field::Bank, 48)], ..devices.clone() };
    let short = Geometry { row_bytes: 128, ..devices.clone() };
    for (text, devices, expected) in [
        ("RoBaRaCoCg", &devices, "there is no mapping `RoBaRaCoCg`: names are ours, "),
        ("RoBaRaCoCg", &devices, "did you mean `RoBaRaCoCh`?"),
        ("Ro Xo Ba Co Ch", &devices, "at character 4 (`Xo`): no field has this name: fields are Ro, Ba, Bg,"),
        ("Ro Ba Co slice Ch", &devices, "at character 10 (`slice`): no field"),
        ("Ro Ba § Co Ch", &devices, "at character 7 (`§`): this is no part of a mapping"),
        ("Ba Ro Co Ch", &devices, "at character 1 (`Ba`): rows come first"),
        ("Ro[:4] Ba Co Ch", &devices, "at character 1 (`Ro`): rows come first"),
        ("Ro Ba Ch", &devices, "`Co` is missing"),
        ("Ro Ba Co Co Ch", &devices, "at character 7 (`Co`): bit 0 of `Co` is here twice"),
        ("Ro Ba Co[3:] Co[:2] Ch", &devices, "at character 7 (`Co`): bit 2 of `Co` is missing"),
        ("Ro Ba Co[:1] Ch", &devices, "`Co` has 3 bits here, and 1 of them have a place"),
        ("Ro Ba Co[2:2] Ch", &devices, "at character 7 (`Co`): this cut has no bit"),
        ("Ro Ba Co[2) Ch", &devices, "at character 11 (`)`): `:` is expected here"),
        ("Ro Ba Co Ch[1:]", &devices, "at character 10 (`Ch`): `Ch` cannot be cut"),
        ("Ro Ba Co Ch = 5", &devices, "at character 13 (`=`): a rule begins with `;`"),
        ("Ro Ba Co Ch; Ba ^=", &devices, "at its end: a field is expected here"),
        ("Ro Ba Co Ch; Ba = poly(Ba, Ro)", &devices, "at character 19 (`poly`): there is no such rule"),
        ("Ro Ba Co Ch; Ba = ipoly(Co, Ro)", &devices, "at character 25 (`Co`): `ipoly` has its left side first"),
        ("Ro Ba Co Ch; Ba ^= Ch", &devices, "at character 20 (`Ch`): a hash cannot have bits of `Ch`"),
        ("Ro Ba Co Ch; rest ^= Ba", &devices, "at character 14 (`rest`): `rest` is no field of its own"),
        ("Ro Ba Ch Co; slice = splitmix(chunk)", &devices, "slices are turned where `Ch` comes last"),
        ("Ro Co Ba Ch; Ba = rotate(Ba, Ro)", &devices, "banks are turned where the fields but `Ch` are `Ro Ba Co`"),
        ("Ro Ba Co Ch; Ch ^= Ro; slice = splitmix(chunk)", &devices, "turned by splitmix64 or hashed, not both"),
        // A bit that vanishes; two that become one.
        ("Ro Ba Co Ch; Ba ^= Ba", &devices, "addresses 0 and 0x800 of a channel would share a place"),
        ("Ro Ba Co Ch; Ba ^= Ro; Ro ^= Ba", &devices, "addresses 0 and 0x10800 of a channel would share a place"),
        ("Ro Ba Co Ch; slice ^= Co", &devices, "a slice is hashed with its own bits"),
        ("RoBaRaCoCh", &banks, "48 banks (or groups of them) are no power of two, which only `slice"),
        ("gpgpu-ipoly", &odd, "12 channels are no power of two, so that `Ch` cannot be hashed"),
        ("RoBaRaCoCh", &short, "rows of 128 bytes (dram.row_bytes) are shorter than what is never split (256 bytes"),
    ] {
        let fault = Compiled::new(text, devices).unwrap_err();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
}

#[test]
fn what_a_text_does_not_name_is_in_banks() {
    let sizes = Logs { channels: 2, slices: 0, chunk: 6, columns: 2, rank: 1, group: 2, bank: 2 };
    let all = Compiled::new("Ro Ba Co Ch", &sizes.devices()).unwrap();
    let each = Compiled::new("Ro Ra Bg Ba Co Ch", &sizes.devices()).unwrap();
    for chunk in 0..4096 {
        assert_eq!(all.place(DRAM_BASE + chunk * 64), each.place(DRAM_BASE + chunk * 64));
    }
    let other = Compiled::new("Ro Bg Ba Co Ch", &sizes.devices()).unwrap();
    // Banks first, then the rank that is theirs, then groups; in a bank's number the rank comes first.
    assert_eq!([2u64, 4, 8].map(|row| other.rows.place(row << 8)), [(0b10, 0), (0b1_00_00, 0), (0b100, 0)]);
}

#[test]
fn nvm_has_rows_of_its_own_below_the_channels_of_dram() {
    let dram = Logs { channels: 3, slices: 1, chunk: 8, columns: 3, rank: 0, group: 0, bank: 4 }.devices();
    let nvm = Geometry { row_bytes: 128, ..dram.clone() };
    let rows = row_map(&Mapping::new("RoRaBaChCo").unwrap(), &nvm).unwrap().unwrap();
    assert_eq!([0u64, 127, 128, 256, 2048].map(|at| rows.place(at)), [(0, 0), (0, 0), (1, 0), (2, 0), (0, 1)]);
}

#[test]
fn bits_are_told_one_by_one() {
    let dram = Logs { channels: 5, slices: 1, chunk: 8, columns: 3, rank: 0, group: 0, bank: 4 }.devices();
    let told = |text: &str, dram: &Geometry| bits::lines(&Mapping::new(text).unwrap(), dram, dram).unwrap().join("\n");
    let found = told("Ro Ba[1:] Co Ba[:1] Ch; Ch ^= Ro; Ba ^= Ro[0:1]", &dram);
    for line in [
        "bit 8: channel 0 = a8 ^ a20\nbit 9: channel 1 = a9 ^ a21\n",
        "slice 0 of the channel = a13\ndram:\n  bits 0 to 7: bytes\n  bit 13: bank 0 = a13 ^ a20\n",
        "  bits 14 to 16: column 0 to 2\n  bits 17 to 19: bank 1 to 3\n  bits from 20: row from bit 0\nnvm:\n",
    ] {
        assert!(found.contains(line), "{found}");
    }
    let found = told(OURS, &dram);
    assert!(found.contains("slice = (chunk + splitmix64(chunk / 64)) mod 64"), "{found}");
    assert!(found.contains("bank = (n + (row ^ row >> 4 ^ row >> 8)) mod 16"), "{found}");
    let found = told("Ro Ba Co Ch", &Geometry { channels: 12, ..dram });
    assert!(found.contains("above = a >> 8; channel = above mod 12; r: above / 12, then 8 bits of a"), "{found}");
}

#[test]
fn the_manual_has_the_mappings_that_have_a_name() {
    let manual = include_str!("../../../../docs/machines.md");
    for (name, text) in NAMED {
        let row = manual.lines().find(|line| line.starts_with(&format!("| `{name}`")));
        assert!(row.is_some_and(|row| row.ends_with(&format!("| `{text}` |"))), "{name}: {row:?}");
    }
}
