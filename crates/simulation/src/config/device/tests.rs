//! Device files: each built-in one in every variant, and every fault that a file can have, at its place.

use durawarp_machine::device::{Command, Device, Effect, RefreshPolicy};

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

use super::file::of_text;
use super::*;

const DDR4: &str = include_str!("../devices/ddr4.toml");
const OPTANE: &str = include_str!("../devices/optane-100.toml");

/// What is asked for, of a name or a path; the faults of keys have no place.
fn asked<'a>(device: &'a str, bin: &'a str, density: &'a str, timing: &'a str) -> DeviceRequest<'a> {
    fn place(key: &str, why: &str) -> Diagnostic {
        Diagnostic::nowhere(key, why)
    }
    DeviceRequest { device, bin, density, timing, ranks: 1, place: &place }
}

fn loaded(device: &str, bin: &str, density: &str, timing: &str) -> Device {
    load(&asked(device, bin, density, timing))
        .unwrap_or_else(|faults| panic!("{device} {bin} {density}: {faults}"))
        .device
}

/// Every built-in device in every bin and density.
fn variants() -> Vec<Device> {
    let each = |of: BuiltinDevice| {
        let densities = of.densities;
        let of_bin = move |bin: String| {
            let own = densities.clone().into_iter();
            own.map(move |density| loaded(of.name, &bin, &density, "")).collect::<Vec<_>>()
        };
        of.bins.into_iter().flat_map(of_bin)
    };
    builtin().into_iter().flat_map(each).collect()
}

fn timing(device: &Device, names: &[&str]) -> Vec<u64> {
    let of = |name: &&str| device.timing.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("{name}")).1;
    names.iter().map(of).collect()
}

#[test]
fn every_built_in_device_loads_in_every_bin_and_density() {
    let all = builtin();
    assert!(all.iter().map(|device| device.name).eq(names()));
    assert!(all.iter().all(|device| !device.organisation.is_empty() && !device.source.is_empty()));
    let count: usize = all.iter().map(|device| device.bins.len() * device.densities.len()).sum();
    assert_eq!(variants().len(), count);
    for device in variants() {
        assert_eq!(all.iter().filter(|of| of.name == device.name).count(), 1, "a file is called as its device");
    }
}

#[test]
fn the_timings_of_the_comparison_can_be_selected() {
    let ddr4 = loaded("ddr4", "2400R", "8Gb_x8", "RFC = 433");
    assert_eq!(ddr4.t_ck_ps, 833);
    assert_eq!(timing(&ddr4, &["CL", "RCD", "RP", "CWL", "RAS", "RC", "BL"]), [16, 16, 16, 12, 39, 55, 4]);
    assert_eq!(timing(&ddr4, &["CCD_S", "CCD_L", "RRD_S", "RRD_L", "WTR_S", "WTR_L"]), [4, 6, 4, 6, 3, 9]);
    assert_eq!(timing(&ddr4, &["FAW", "RTP", "WR", "RFC", "REFI"]), [26, 9, 18, 433, 9363]);
    let hbm2 = loaded("hbm2", "2.0Gbps", "8Gb", "");
    assert_eq!((hbm2.t_ck_ps, hbm2.organisation.atom_bytes, hbm2.organisation.burst_cycles), (1000, 32, 2));
    assert_eq!(hbm2.organisation.bus_levels, 1);
    let levels = [("pseudo_channel", 2), ("bank_group", 4), ("bank", 4)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(hbm2.organisation.levels, levels);
    assert_eq!(timing(&hbm2, &["CL", "CWL", "RCDRD", "RCDWR", "RP", "RAS"]), [14, 5, 14, 12, 14, 34]);
    assert_eq!(timing(&hbm2, &["CCD_S", "CCD_L", "RRD_S", "WTR_S", "WTR_L"]), [2, 4, 4, 6, 8]);
    assert_eq!(timing(&hbm2, &["FAW", "RTP", "WR", "REFI"]), [15, 5, 16, 3900]);
}

/// What bounds one command after another: no pair that a bus or a bank could not do is free.
#[test]
fn every_built_in_table_is_complete_and_says_nothing_twice() {
    for device in variants() {
        let what = format!("{} {:?}", device.name, device.variant);
        let banks = device.organisation.levels.len() - 1;
        // Commands of one bank, or of what it lies in, share all scopes.
        let bound = |before: &Command, after: &Command| {
            let named = |nth: u8| &device.commands[usize::from(nth)];
            device.constraints.iter().any(|row| !row.other && named(row.before) == before && named(row.after) == after)
        };
        let is_column = |command: &Command| matches!(command.effect, Effect::Read | Effect::Write);
        for before in &device.commands {
            for after in &device.commands {
                let needed = match (before.effect, after.effect) {
                    _ if is_column(before) && is_column(after) => true,
                    (Effect::Open, effect) => effect != Effect::Refresh || device.refreshes.len() < 3,
                    (Effect::Close | Effect::Refresh, Effect::Open | Effect::Refresh) => true,
                    (Effect::Read | Effect::Write, Effect::Open | Effect::Refresh) => before.closes,
                    (Effect::Read | Effect::Write, Effect::Close) => !before.closes,
                    _ => false,
                };
                assert!(!needed || bound(before, after), "{what}: {} > {}", before.name, after.name);
            }
        }
        for (nth, row) in device.constraints.iter().enumerate() {
            let like = |one: &&durawarp_machine::device::Constraint| {
                (one.before, one.after, one.scope, one.other, one.window)
                    == (row.before, row.after, row.scope, row.other, row.window)
            };
            assert!(!device.constraints[..nth].iter().any(|one| like(&one)), "{what}: line {} again", row.line);
            assert!(row.line > 0 && usize::from(row.scope.unwrap_or(0)) <= banks);
        }
        assert!(device.refreshes.iter().all(|refresh| refresh.every_cycles > 1), "{what}");
    }
}

#[test]
fn slots_of_commands_count_between_the_first_of_each() {
    let hbm2 = loaded("hbm2", "2.0Gbps", "", "");
    let delay = |before: &str, after: &str| {
        let nth = |name: &str| hbm2.commands.iter().position(|command| command.name == name).unwrap() as u8;
        let found = hbm2.constraints.iter().rfind(|row| (row.before, row.after) == (nth(before), nth(after)));
        found.unwrap().delay_cycles
    };
    // An activate takes two slots: RCDRD is 14 after the second, RP is 14 before it.
    assert_eq!((delay("ACT", "RD"), delay("PRE", "ACT"), delay("ACT", "ACT")), (15, 13, 48));
    let ddr5 = loaded("ddr5", "", "", "");
    assert_eq!(ddr5.organisation.read_cycles, 40 + 1, "data follows the second slot of a read");
}

#[test]
fn a_density_may_be_built_otherwise_and_refresh_is_by_policy() {
    let of = |density: &str| loaded("ddr5", "", density, "").organisation.levels[2].1;
    assert_eq!((of("16Gb_x8"), of("8Gb_x8")), (4, 2));
    let ddr5 = loaded("ddr5", "3200AN", "8Gb_x8", "");
    let same = ddr5.refreshes.iter().find(|refresh| refresh.policy == RefreshPolicy::SameBank).unwrap();
    assert_eq!(same.every_cycles, 3120);
    assert!(ddr5.commands[usize::from(same.command)].same_bank);
}

/// Loads `DDR4` with changes; the text, and what came of it.
fn changed(changes: &[(&str, &str)]) -> (String, Result<LoadedDevice, Diagnostics>) {
    changed_of(DDR4, changes)
}

/// The same of another file.
fn changed_of(file: &str, changes: &[(&str, &str)]) -> (String, Result<LoadedDevice, Diagnostics>) {
    let mut text = file.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let loaded = of_text(text.clone(), &asked("my.toml", "", "", ""));
    (text, loaded)
}

/// `from` made `to` gives this one fault, at `at` in `to`.
fn check(from: &str, to: &str, at: &str, message: &str) {
    check_of(DDR4, from, to, at, message);
}

/// The same of another file.
fn check_of(file: &str, from: &str, to: &str, at: &str, message: &str) {
    let (text, loaded) = changed_of(file, &[(from, to)]);
    let faults = loaded.expect_err(to).0;
    let [fault] = &faults[..] else { panic!("{to}: {}", Diagnostics(faults)) };
    let place = file.find(from).unwrap() + to.find(at).unwrap();
    let (line, column) =
        (text[..place].matches('\n').count() + 1, place - text[..place].rfind('\n').map_or(0, |n| n + 1) + 1);
    assert_eq!((fault.file.as_str(), fault.span.line as usize), ("my.toml", line), "{fault}");
    assert_eq!(fault.span.column as usize, column, "{fault}");
    assert!(fault.to_string().contains(message), "{fault}");
}

#[test]
fn a_fault_of_a_constraint_is_told_where_it_is() {
    let row = "\"ACT > PRE : RAS\"";
    check(row, "\"ACT > PRE : RAZ\"", "RAZ", "unknown timing `RAZ` (did you mean `RAS`?)");
    check(row, "\"ACT > PER : RAS\"", "PER", "unknown command `PER` (did you mean `PRE`?)");
    check(row, "\"ACT > PRE RAS\"", "ACT > PRE RAS", "a constraint is \"BEFORE,.. > AFTER,.. : DELAY\"");
    check(row, "\"ACT > PRE : RAS + )\"", ")", "expected a number, a duration, a timing");
}

#[test]
fn a_scope_or_a_target_is_a_level() {
    check(
        "\nbank_group = [",
        "\nbankgroup = [",
        "bankgroup",
        "`bankgroup` is no level of the device (did you mean `bank_group`?)",
    );
    check(
        "effect = \"refresh\", target = \"rank\"",
        "effect = \"refresh\", target = \"rang\"",
        "\"rang\"",
        "did you mean `rank`?",
    );
    check("effect = \"open\", target = \"bank\"", "effect = \"open\", target = \"rank\"", "\"rank\"", "is for a bank");
}

#[test]
fn results_are_not_negative_and_follow_from_no_circle() {
    check("CL + BL + 2 - CWL\"", "CL - 2 * CWL\"", "CL - 2", "the result is negative: -8 cycles");
    check("\nRTP = \"max(4, 7.5ns)\"", "\nRTP = \"RTP + 1\"", "RTP +", "`RTP` follows from itself");
    check("\nWR = \"15ns\"", "\nWR = \"15nz\"", "15nz", "`nz` is no unit of a duration");
    check("\nWR = \"15ns\"", "\nWR = \"999999999 * 999999999\"", "999999999 *", "beyond all bounds");
}

#[test]
fn timings_that_contradict_each_other_are_faults() {
    check("CCD_L = \"max(5, 5ns)\"", "CCD_L = 3", "3", "`CCD_L` of 3 cycles is less than `CCD_S` of 4");
    check("RC = \"RAS + RP\"", "RC = \"RAS + RP - 1\"", "RAS", "`RC` of 54 cycles is less than `RAS + RP`, 55");
    check("RFC = \"350ns\"", "RFC = \"8us\"", "8us", "`RFC` of 9604 cycles leaves nothing of `REFI`, 9363");
    let (_, loaded) = changed(&[("FAW = \"max(20, 21ns)\"", "FAW = 15")]);
    let warnings = loaded.unwrap().warnings;
    assert!(warnings[0].to_string().contains("`FAW` of 15 cycles is of no effect: 4 `RRD_S` are 16"), "{warnings:?}");
    assert!(warnings[0].span.line > 0);
}

/// As [`check`], of faults that lie in another place than the change.
fn check_at(from: &str, to: &str, line: &str, message: &str) {
    let (text, loaded) = changed(&[(from, to)]);
    let faults = loaded.expect_err(to);
    let at = text.lines().position(|own| own == line).unwrap() + 1;
    assert!(faults.0.len() == 1 && faults.0[0].span.line as usize == at, "{faults}");
    assert!(faults.to_string().contains(message), "{faults}");
}

#[test]
fn a_row_can_be_opened_read_written_and_closed() {
    let rcd = "\"ACT > RD,WR,RDA,WRA : RCD\"";
    check_at(rcd, "\"ACT > WR,WRA : RCD\"", "[constraints]", "no path from open to read");
    check_at(rcd, "\"ACT > RD : RCD\"", "[constraints]", "no path from open to write");
    let (_, loaded) =
        changed(&[("effect = \"close\"", "effect = \"refresh\""), ("effect = \"close\"", "effect = \"refresh\"")]);
    assert!(loaded.unwrap_err().to_string().contains("no command has the effect close"));
}

#[test]
fn the_organisation_is_one_that_there_can_be() {
    let counts = "counts = { bank_group = 4, bank = 4 }";
    check(counts, "counts = { bank_group = 4, bank = 0 }", "0", "`bank` must be a whole number from 1 to 4096");
    check(counts, "counts = { bank_group = 4, bank = 4, bnak = 4 }", "bnak", "`bnak` is no level of the device");
    check(counts, "counts = { rank = 2, bank_group = 4, bank = 4 }", "2", "how many ranks there are is the machine's");
    check_at(counts, "counts = { bank = 4 }", LEVELS, "`counts` does not say how many `bank_group` there are");
    check_at(counts, "counts = { bank_group = 1025, bank = 4 }", LEVELS, "4100 banks, and 4096 at most");
    check(
        "row_bytes = 8192",
        "row_bytes = 8200",
        "8200",
        "a row of 8200 bytes is no multiple of the 64 bytes of a burst",
    );
    check("burst = 8", "burst = 7", "7", "448 bits, which are no power of two of bytes");
    check("buses = \"one\"", "buses = \"one\"\ndata_bus = \"rnak\"", "\"rnak\"", "`rnak` is no level");
    check("buses = \"one\"", "buses = \"two\"", "\"two\"", "must be one of `one`, `row_and_column`");
    let (_, loaded) = changed(&[("\"bank_group\", \"bank\"]", "\"bank\", \"bank_group\"]")]);
    assert!(loaded.unwrap_err().to_string().contains("the last of them `bank`"));
}

/// The line of `ddr4` that has its levels.
const LEVELS: &str = "levels = [\"rank\", \"bank_group\", \"bank\"]";

#[test]
fn commands_bins_and_refresh_are_checked() {
    check("ACT = { effect", "ACT = { cycles = 9, effect", "ACT", "takes 9 slots of the command bus");
    check("ACT = { effect", "ACT = { cycles = 0, effect", "ACT", "takes 0 slots of the command bus");
    check("PREA = { effect", "PREA = { closes = true, effect", "PREA", "`PREA` is no column command");
    check("tCK = \"0.833ns\"", "tCK = \"16\"", "16", "`tCK` is a duration (\"0.833ns\"), found `16`");
    check("name = \"1600K\"", "name = \"2400R\"", "\"2400R\"", "there is a bin `2400R` already");
    check("guard_thousandths = 26", "guard_thousandths = 1000", "1000", "must be less than 1000");
    check(
        "command = \"REFab\"",
        "command = \"REFpb\"",
        "\"REFpb\"",
        "no command that refreshes (did you mean `REFab`?)",
    );
    check("every = \"REFI\"", "every = \"REFY\"", "REFY", "unknown timing `REFY`");
    check_at("every = \"REFI\"", "every = 0", "[[refresh]]", "a refresh every 0 cycles");
    check_at("lasts = \"RFC\"\n", "", "[[refresh]]", "the energy of a refresh needs both `power_mw` and `lasts`");
    check("power_mw = 1987.2", "power_mw = -1", "-1", "a refresh draws 0 to 100000 mW");
    check("lasts = \"RFC\"", "lasts = \"RFD\"", "RFD", "unknown timing `RFD`");
    let window = "\"ACT > ACT : FAW ; window 4\"";
    check(window, "\"ACT > ACT : FAW ; window 1\"", " window 1", "expected `window N` from 2 to 64, or `other`");
    check(window, "\"ACT > PRE : FAW ; window 4\"", "ACT", "a window is of commands that open rows");
    check("\"WR,WRA > WR,WRA : BL\"", "\"WR,WRA > WR,WRA : BL ; other\"", "WR,WRA", "there is no other channel");
}

#[test]
fn what_has_no_end_is_refused() {
    let told = |from: &str, to: String| changed(&[(from, &to)]).1.unwrap_err().to_string();
    let chain: String = (0..300).map(|nth| format!("A{nth} = \"A{}\"\n", nth + 1)).collect();
    assert!(told("\n[timing]\n", format!("\n[timing]\n{chain}")).contains("up to 256 timings"));
    let sum = format!("\"{}1\"", "1 + ".repeat(60_000));
    assert!(told("\"RAS + RP\"", sum).contains("up to 256 characters"));
    let row = "\"ACT > PRE : RAS\"";
    assert!(told(row, format!("\"{}ACT > PRE : RAS\"", "ACT,".repeat(64))).contains("a list has up to 64 commands"));
    let wide = format!("\"{0}ACT > {0}ACT : 1\",\n", "ACT,".repeat(63));
    assert!(told(row, wide.repeat(3) + row).contains("up to 8192 constraints"));
    let levels = format!("levels = [{}\"rank\"", "\"x\", ".repeat(9));
    assert!(told("levels = [\"rank\"", levels).contains("`levels` are up to 6"));
}

#[test]
fn a_buffer_is_one_that_there_can_be() {
    let of = |from: &str, to: &str, at: &str, message: &str| check_of(OPTANE, from, to, at, message);
    of("\nlines = 64", "\nlines = 0", "0", "`lines` must be a whole number from 1 to 4096");
    of("\nlines = 64", "\nlines = 4097", "4097", "`lines` must be a whole number from 1 to 4096");
    of("line_bytes = 256", "line_bytes = 64", "64", "a line of 64 bytes is no power of two of at least 128");
    of("line_bytes = 256", "line_bytes = 384", "384", "a line of 384 bytes is no power of two of at least 128");
    of("line_bytes = 256", "line_bytes = 512", "512", "a line of 512 bytes: `row_bytes`, 256, must be as many");
    of("policy = \"lru\"", "policy = \"lfu\"", "\"lfu\"", "must be one of `lru`, `fifo`");
    of("miss = \"MISS\"", "miss = \"HIT - 1\"", "\"HIT", "a miss of 7 cycles is shorter than a hit of 8");
    of("hit = \"HIT\"", "hit = \"HITS\"", "HITS", "unknown timing `HITS` (did you mean `HIT`?)");
    of("read_bandwidth_mb_s = 6600", "read_bandwidth_mb_s = 0", "0", "`read_bandwidth_mb_s` must be a whole number");
    // Faults that lie in another place than the change.
    let at = |changes: &[(&str, &str)], line: &str, message: &str| {
        let (text, loaded) = changed_of(OPTANE, changes);
        let faults = loaded.expect_err(message);
        let nth = text.lines().position(|own| own == line).unwrap() + 1;
        assert!(faults.0.len() == 1 && faults.0[0].span.line as usize == nth, "{faults}");
        assert!(faults.to_string().contains(message), "{faults}");
    };
    at(&[("persistent = true", "persistent = false")], "[buffer]", "a buffer is of persistent devices");
    let row = "RD = { effect = \"read\", target = \"bank\" }";
    let more = format!("{row}\nACT = {{ effect = \"open\", target = \"bank\" }}");
    at(&[(row, &more)], "[commands]", "`ACT` is of rows: a device with a buffer has none");
    at(&[(row, &row.replace("read", "write"))], "[commands]", "no command has the effect read");
    let faults = changed_of(OPTANE, &[("\nlines = 64", ""), ("durable = true", "durable = 1")]).1.unwrap_err();
    assert!(faults.0.len() == 2 && faults.to_string().contains("lacks the key `lines`"), "{faults}");
}

#[test]
fn a_buffer_has_its_times_in_cycles_of_the_bin() {
    let of = |bin: &str, density: &str, timing: &str| loaded("optane-100", bin, density, timing);
    let own = of("", "", "").buffer.unwrap();
    assert_eq!((own.hit_ps, own.miss_ps, own.cell_write_ps), (8 * 833, 225 * 833, 361 * 833));
    assert_eq!((own.lines, own.line_bytes, own.durable), (64, 256, true));
    assert_eq!(of("2666", "", "MISS = 100").buffer.unwrap().miss_ps, 75_000);
    let banks = ["128GB", "2x128GB"].map(|density| of("", density, "").organisation.levels[0].1);
    assert_eq!(banks, [1, 2]);
    let printed = table(&of("", "", ""));
    for line in [
        "  buffer        64 lines of 256 B a bank, lru, durable",
        "  read          6.7 ns a hit, 187.4 ns a miss; 6600 MB/s a bank",
        "  cell write    300.7 ns a line; 2300 MB/s a bank",
    ] {
        assert!(printed.lines().any(|own| own == line), "{line}\n{printed}");
    }
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    let changes = [
        ("source = ", "sauce = "),
        ("row_bytes = 8192", "row_bytes = 8193"),
        ("\"ACT > PRE : RAS\"", "\"ACT > PRE : RAZ\""),
        ("FAW = \"max(20, 21ns)\"", "FAW = \"max(20, 21ns\""),
    ];
    let told = changed(&changes).1.unwrap_err();
    let lines: Vec<u32> = told.0.iter().map(|fault| fault.span.line).collect();
    assert!(told.0.len() == 5 && lines.is_sorted(), "{told}");
    for part in ["lacks the key `source`", "unknown key `sauce`", "8193 bytes", "`,` or `)`, found the end", "`RAZ`"] {
        assert!(told.to_string().contains(part), "{part}: {told}");
    }
    let broken = changed(&[("kind = \"device\"", "kind = \n")]).1.unwrap_err();
    assert!(broken.0.len() == 1 && broken.0[0].span.line > 0, "faults of the syntax come alone: {broken}");
}

#[test]
fn a_variant_that_there_is_not_is_told_with_the_nearest() {
    let told = |device: &str, bin: &str, density: &str, timing: &str| {
        load(&asked(device, bin, density, timing)).unwrap_err().to_string()
    };
    assert!(told("ddr4", "2400", "", "").contains("bin: device `ddr4` has no bin `2400`; there are 2400R, 1600K"));
    assert!(told("ddr4", "", "8Gb_x4", "").contains("did you mean `8Gb_x8`?"));
    assert!(told("ddr4", "", "", "RFK = 3").contains("timing: the device has no timing `RFK` (did you mean `RFC`?)"));
    assert!(told("ddr4", "", "", "RFC").contains("timing: expected NAME = VALUE between commas, found `RFC`"));
    assert!(told("ddr4", "", "", "RFC = 3 +").contains("timing: `3 +`: expected a number"));
    assert!(told("ddr4", "", "", "RC = 3").contains("timing: `3`: `RC` of 3 cycles is less than `RAS + RP`, 55"));
    assert!(told("ddr3", "", "", "").contains("device: there is no device `ddr3`; built in are ddr4"));
    assert!(told("no.toml", "", "", "").contains("device: cannot read device file `no.toml`"));
}

#[test]
fn the_printed_table_is_the_whole_device() {
    let printed = table(&loaded("ddr4", "2400R", "8Gb_x8", ""));
    for line in [
        "ddr4 2400R 8Gb_x8 (JESD79-4B)",
        "  clock         833 ps, 1200.5 MHz",
        "  organisation  1 rank x 4 bank_group x 4 bank, 64 B a burst, rows of 8192 B",
        "  peak          19208 MB/s a channel",
        "  RFC      421    350.693",
        "  WRA    write, then close, bank, 1",
        "  rank: ACT > ACT: 26, from the last but 3",
        "  other rank: WR > RDA: 2",
        "  bank: WRA > ACT: 50",
        "  all_bank: REFab every 9363 cycles, 7799.4 ns, 696897.13 pJ each",
    ] {
        assert!(printed.lines().any(|own| own == line), "{line}\n{printed}");
    }
    let ddr4 = loaded("ddr4", "2400R", "8Gb_x8", "");
    let rows = ddr4.constraints.len() + ddr4.timing.len() + ddr4.commands.len() + ddr4.refreshes.len();
    assert_eq!(printed.lines().count(), rows + 1 + 6 + 4);
}
