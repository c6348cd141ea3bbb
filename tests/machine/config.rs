//! Machine files and overrides: what is accepted, and that every fault is told at once, with its place.

use durawarp::config::{AnyMachine, Compute, CpuMachine, MachineConfig, Override, SchemeConfig, presets};
use durawarp::diagnostic::Diagnostics;
use durawarp::machine::MachineSpec;
use durawarp::machine::cpu::CpuSpec;
use durawarp::machine::media::WriteMode;
use durawarp::schemes::catalogue;
use durawarp::spec::{Key, Kind};
use proptest::prelude::*;

fn set(text: &str) -> Override {
    Override::parse(text).expect("KEY=VALUE")
}

/// Loads a machine file with this text.
fn load(name: &str, text: &str, overrides: &[Override]) -> Result<MachineConfig, Diagnostics> {
    let folder = std::env::temp_dir().join(format!("durawarp-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(name);
    std::fs::write(&file, text).expect("a file");
    MachineConfig::load(file.to_str().expect("UTF-8"), overrides)
}

/// Line, column and message of each fault.
fn faults(result: Result<MachineConfig, Diagnostics>) -> Vec<(u32, u32, String)> {
    let faults = result.expect_err("faults").0;
    faults
        .into_iter()
        .map(|f| (f.span.line, f.span.column, format!("{}{}", f.message, f.help.unwrap_or_default())))
        .collect()
}

#[test]
fn every_built_in_machine_is_valid_and_every_number_has_an_owner() {
    for name in presets::names() {
        let machine = AnyMachine::load(name, &[]).unwrap_or_else(|f| panic!("{name}:\n{f}"));
        assert_eq!(machine.name(), name);
        let unowned: Vec<_> = machine.assumptions().into_iter().filter(|(_, s)| !s.starts_with("chosen")).collect();
        assert!(unowned.is_empty(), "{name}: {unowned:?}");
    }
}

#[test]
fn every_number_says_where_it_comes_from_and_choices_are_listed() {
    for name in presets::names() {
        let machine = AnyMachine::load(name, &[]).unwrap_or_else(|f| panic!("{name}:\n{f}"));
        let tables = if machine.gpu().is_some() { MachineSpec::TABLES } else { CpuSpec::TABLES };
        let keys: usize = tables.iter().map(|(_, keys)| keys.len()).sum();
        assert_eq!(machine.sources().len(), keys, "{name}");
        for (key, source) in machine.sources() {
            assert!(source.len() >= 2 && !source.contains("TODO"), "{name}: {key} has the source `{source}`");
        }
        let chosen = machine.sources().values().filter(|source| source.starts_with("chosen")).count();
        assert_eq!(machine.assumptions().len(), chosen, "{name}: without overrides only choices are assumptions");
        assert!(chosen > 0, "{name}: some numbers are always chosen");
    }
}

#[test]
fn the_paper_machine_has_the_papers_numbers() {
    let machine = MachineConfig::load("agpm-table4", &[]).expect("built in");
    let spec = &machine.spec;
    assert_eq!((spec.sm.count, spec.sm.warps, spec.sm.ctas, spec.sm.threads), (20, 64, 32, 2048));
    assert_eq!(spec.peak_memory_bandwidth(), 307_200_000_000);
    assert_eq!(spec.l2.slices * spec.l2.slice_kb, 2048);
    assert_eq!(spec.nvm.cell_write_ns.ps, 480_000);
    assert_eq!(spec.dram.t_rcd_ns.ps + spec.dram.t_cl_ns.ps, 160_000);
}

#[test]
fn the_machines_of_cpu_cores_have_their_papers_numbers() {
    let spec = CpuMachine::read("lightwsp-cpu", &[]).unwrap().spec;
    assert_eq!((spec.core.count, spec.core.harts, spec.core.width, spec.clock.core_mhz.khz), (8, 1, 4, 2_000_000));
    let core = &spec.core;
    let window = (core.rob_entries, core.iq_entries, core.sq_entries, core.lq_entries);
    assert_eq!(window, (224, 97, 56, 72));
    // 16 MB in 44 cycles, those of the L1 included.
    let llc = &spec.llc;
    assert_eq!(llc.slices * llc.slice_kb, 16 << 10);
    assert_eq!(spec.l1d.hit_cycles + llc.request_cycles + llc.service_cycles + llc.reply_cycles, 44);
    let way = spec.controller.front_ns.ps + spec.controller.back_ns.ps;
    assert_eq!((way, way + spec.nvm.t_rcd_ns.ps + spec.nvm.t_cl_ns.ps), (90_000, 175_000));
    // 2 x 6.6 GB/s of reads, by banks of one line.
    let nvm = &spec.nvm;
    let read_gb_s = f64::from(nvm.banks * nvm.row_bytes) / (nvm.t_ras_ns.ps as f64 / 1e3);
    assert!((read_gb_s - 13.2).abs() < 0.01, "{read_gb_s}");

    let spec = CpuMachine::read("broi-cpu", &[]).unwrap().spec;
    assert_eq!((spec.core.count, spec.core.harts, spec.clock.core_mhz.khz), (4, 2, 2_500_000));
    let (llc, nvm) = (&spec.llc, &spec.nvm);
    // 8 MB in 4.4 ns: 11 cycles of 2.5 GHz.
    assert_eq!(llc.slices * llc.slice_kb, 8 << 10);
    assert_eq!(spec.l1d.hit_cycles + llc.request_cycles + llc.service_cycles + llc.reply_cycles, 11);
    assert_eq!((nvm.banks, nvm.row_bytes, nvm.write_mode), (8, 2048, WriteMode::RowBuffer));
    let (hit, miss) = (nvm.t_cl_ns.ps, nvm.t_rcd_ns.ps + nvm.t_cl_ns.ps);
    assert_eq!((hit, miss, nvm.row_write_ns.ps + nvm.t_rcd_ns.ps + nvm.t_wl_ns.ps), (36_000, 100_000, 300_000));
    assert_eq!((nvm.t_wl_ns.ps, nvm.write_hit_ns.ps), (36_000, 36_000));
}

#[test]
fn a_machine_starts_from_one_of_its_own_kind() {
    let of = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, text).unwrap();
        AnyMachine::load(file.to_str().unwrap(), &[]).map_err(|faults| faults.to_string())
    };
    let mine = of("inherits = \"broi-cpu\"\n[core]\ncount = 2\n").unwrap();
    assert_eq!(mine.cpu().unwrap().spec.harts(), 4);
    assert!(of("kind = \"cpu\"\ninherits = \"lightwsp-cpu\"\n").unwrap().cpu().is_some());
    assert!(of("kind = \"gpu\"\ninherits = \"titan-x\"\n").unwrap().gpu().is_some());
    for (kind, base, other) in [("gpu", "broi-cpu", "cpu"), ("cpu", "titan-x", "gpu")] {
        let told = of(&format!("kind = \"{kind}\"\ninherits = \"{base}\"\n[core]\ncount = 1\n")).unwrap_err();
        let words = format!("machine `{base}` is of kind `{other}`, and one of kind `{kind}` is wanted here");
        assert!(told.contains(&words) && told.matches("mine.toml:").count() == 1, "{told}");
    }
    let told = of("kind = \"cpus\"\ninherits = \"broi-cpu\"\n").unwrap_err();
    assert!(told.contains("did you mean `cpu`?"), "{told}");
    // A wrong key is told with the nearest of that kind.
    let told = of("inherits = \"broi-cpu\"\n[core]\nmshrs = 1\n[l1d]\nway = 1\n").unwrap_err();
    assert!(told.contains("did you mean `l1d.ways`?"), "{told}");
    let told = MachineConfig::load("broi-cpu", &[]).unwrap_err().to_string();
    assert!(told.contains("is of kind `cpu`, and one of kind `gpu` is wanted here"), "{told}");
    // What a machine says of itself is a file of its kind.
    let shown = mine.to_toml();
    assert_eq!(of(&shown).unwrap().values(), mine.values());
    let faults = AnyMachine::load("broi-cpu", &[set("core.batch_cycles=4"), set("llc.slices=3")]);
    assert!(faults.unwrap_err().to_string().contains("core.batch_cycles"));
}

/// LightWSP's Tables I and III: ns of a read and of a write, GB/s of a controller's reads and writes.
#[test]
fn lightwsp_s_memories_have_the_latencies_and_bandwidths_of_its_tables() {
    for (name, read_ns, write_ns, read_gb_s, write_gb_s) in [
        ("lightwsp-table1", 175.0, 90.0, 13.2, 4.6),
        ("cxl-i", 158.0, 120.0, 38.4, 38.4),
        ("cxl-ii", 223.0, 139.0, 19.2, 19.2),
        ("cxl-iii", 348.0, 241.0, 25.6, 25.6),
        ("cxl-pmem", 245.0, 160.0, 6.6, 2.3),
    ] {
        let spec = MachineConfig::load(name, &[]).unwrap_or_else(|f| panic!("{name}:\n{f}")).spec;
        let nvm = &spec.nvm;
        let way = (spec.controller.front_ns.ps + spec.controller.back_ns.ps) as f64 / 1000.0;
        let row_miss = (nvm.t_rcd_ns.ps + nvm.t_cl_ns.ps) as f64 / 1000.0;
        assert_eq!((way + row_miss, way), (read_ns, write_ns), "{name}");
        // A bank serves a row in its row cycle; writes have a bandwidth of their own; the bus serves all
        // banks.
        let bus = spec.peak_memory_bandwidth() as f64 / f64::from(spec.controller.channels) / 1e9;
        let of = |bytes: u32, ps: u64| f64::from(nvm.banks) * f64::from(bytes) / (ps as f64 / 1000.0);
        let read = of(nvm.row_bytes, nvm.t_ras_ns.ps + nvm.t_rp_ns.ps).min(bus);
        assert_ne!(nvm.write_mode, WriteMode::Through, "{name}: no bank bounds what is written");
        let write = (f64::from(nvm.write_bandwidth_mb_s) / 1000.0).min(bus);
        assert!((read - read_gb_s).abs() < 0.001 && (write - write_gb_s).abs() < 0.001, "{name}: {read} {write}");
    }
}

/// Table III behind the DRAM cache of Table I's cores: ns of a read, GB/s of a controller's bursts. Table I has
/// no bandwidth of writes, Table III one of Optane.
#[test]
fn memories_behind_a_dram_cache_have_the_read_latencies_of_the_table() {
    for (name, read_ns, gb_s) in [
        ("lightwsp-cpu", 175.0, 76.8),
        ("cxl-i-cpu", 158.0, 38.4),
        ("cxl-ii-cpu", 223.0, 19.2),
        ("cxl-iii-cpu", 348.0, 25.6),
        ("cxl-pmem-cpu", 245.0, 76.8),
    ] {
        let machine: CpuMachine = MachineConfig::read(name, &[]).unwrap_or_else(|f| panic!("{name}:\n{f}"));
        let (nvm, controller) = (&machine.spec.nvm, &machine.spec.controller);
        let read = controller.front_ns.ps + controller.back_ns.ps + nvm.t_rcd_ns.ps + nvm.t_cl_ns.ps;
        let bursts = 64.0 / (nvm.t_ccd_ns.ps as f64 / 1000.0);
        assert!(read as f64 / 1000.0 == read_ns && (bursts - gb_s).abs() < 0.05, "{name}: {read} {bursts}");
        let dram = machine.spec.dram.t_rcd_ns.ps + machine.spec.dram.t_cl_ns.ps;
        assert!(dram < nvm.t_rcd_ns.ps + nvm.t_cl_ns.ps, "{name}: the DRAM cache is nearer");
        let writes = if name == "cxl-pmem-cpu" { 2_300 } else { 10_000_000 };
        assert_eq!(nvm.write_bandwidth_mb_s, writes, "{name}");
    }
}

#[test]
fn controllers_of_the_machine_for_regions_are_a_setting() {
    for channels in [1, 2, 4, 8, 16] {
        let machine = MachineConfig::load("lightwsp-gpu", &[set(&format!("controller.channels={channels}"))]);
        assert_eq!(machine.unwrap_or_else(|f| panic!("{f}")).spec.controller.channels, channels);
    }
}

#[test]
fn a_file_inherits_and_overrides_win() {
    let text = "inherits = \"agpm-table4\"\nname = \"half\"\n[sm]\ncount = { value = 10, source = \"mine\" }\n";
    let machine = load("half.toml", text, &[set("l2.slice_kb=256KiB"), set("sm.policy=lrr")]).expect("valid");
    assert_eq!((machine.name.as_str(), machine.spec.sm.count, machine.spec.l2.slice_kb), ("half", 10, 256));
    assert_eq!(machine.sources["sm.count"], "mine");
    assert!(machine.assumptions().contains(&("l2.slice_kb", "user: --set")));
}

#[test]
fn all_faults_come_at_once_with_their_places() {
    let text = "inherits = \"agpm-table4\"\n[sm]\ncont = 10\npolicy = \"gtoo\"\n[l2]\nways = 0\nslice_kb = \"160ns\"\n[l3]\nkb = 1\n";
    let found = faults(load("bad.toml", text, &[]));
    let at = |line: u32, part: &str| {
        let hit = found.iter().find(|f| f.0 == line).unwrap_or_else(|| panic!("line {line} in {found:?}"));
        assert!(hit.2.contains(part), "{hit:?}");
    };
    assert_eq!(found.len(), 5, "{found:?}");
    at(3, "unknown key `sm.cont`did you mean `sm.count`?");
    at(4, "did you mean \"gto\"?");
    at(6, "from 1 to 64; got 0");
    at(7, "wrong unit");
    at(8, "unknown key `l3` in a machine filedid you mean `l1`?");
    assert_eq!(found[1].1, 10, "the column of the value");
}

#[test]
fn values_that_do_not_go_together_are_blamed_on_a_key() {
    let text = "inherits = \"agpm-table4\"\n[l2]\nslices = 15\n[l1]\nways = 7\n";
    let found = faults(load("together.toml", text, &[]));
    assert!(
        found.contains(&(3, 10, "`l2.slices`: 15 slices do not divide evenly over 8 channels".to_owned())),
        "{found:?}"
    );
    assert!(found.iter().any(|f| f.0 == 5 && f.2.contains("power of two of sets")), "{found:?}");
}

#[test]
fn overrides_report_unknown_keys_and_the_nearest_anywhere() {
    let result = MachineConfig::load("agpm-table4", &[set("l2.slize_kb=256"), set("slice_kb=1"), set("l2.ways=x")]);
    let found = faults(result);
    assert_eq!(found.len(), 3);
    assert!(
        found[0].2.contains("did you mean `l2.slice_kb`?") || found[1].2.contains("did you mean `l2.slice_kb`?"),
        "{found:?}"
    );
    assert!(Override::parse("l2.ways").is_err());
}

#[test]
fn a_missing_file_a_syntax_error_and_an_unknown_name_are_told() {
    assert!(faults(MachineConfig::load("nowhere.toml", &[]))[0].2.contains("cannot read"));
    assert!(faults(MachineConfig::load("agpm-tabel4", &[]))[0].2.contains("did you mean `agpm-table4`?"));
    let found = faults(load("syntax.toml", "[sm\ncount = 1\n", &[]));
    assert_eq!(found[0].0, 1);
    let found = faults(load("circle.toml", "inherits = \"circle.toml\"\n", &[]));
    assert!(found[0].2.contains("circle"), "{found:?}");
    let found = faults(load("empty.toml", "name = \"x\"\n", &[]));
    assert!(found[0].2.contains("lacks") && found[0].2.contains("inherits"), "{found:?}");
}

#[test]
fn faults_of_every_kind_of_value_say_what_is_expected() {
    let text = r#"inherits = "agpm-table4"
name = 3
[clock]
core_mhz = "1.8 furlongs"
crossbar_mhz = 0
[sm]
warps = { valeu = 64, source = "me" }
policy = 1
count = { value = 10, source = 7 }
[l1]
global_loads = "yes"
hit_cycles = 0x10
kb = 24.5
ways = [6]
[dram]
t_cl_ns = -1
banks = 16.0
"#;
    let found = faults(load("values.toml", text, &[]));
    let shown: Vec<String> = found.iter().map(|(line, column, text)| format!("{line}:{column} {text}")).collect();
    let expected = [
        "2:8 `name` expects a text; got the integer 3",
        "4:12 `core_mhz` has an unknown unit in \"1.8 furlongs\"",
        "5:16 `crossbar_mhz` expects a frequency in MHz up to 100000, for example 1400 or \"1.4GHz\"; got 0",
        "7:9 expected `{ value = ..., source = \"...\" }`; there is no `value`",
        "7:11 unexpected `valeu`: a value is `{ value = ..., source = \"...\" }`did you mean `value`?",
        "8:10 `policy` expects one of",
        "9:32 `source` expects a text; got the integer 7",
        "11:16 `global_loads` expects true or false; got \"yes\"",
        "13:6 `kb` expects a whole number of KiB",
        "14:8 `ways` expects a whole number",
        "16:11 `t_cl_ns` expects a time in ns",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (found, expected) in shown.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\nshould start with\n{expected}");
    }
}

#[test]
fn every_broken_line_of_a_machine_file_is_reported_and_nothing_that_follows_from_it() {
    let found = faults(load("broken.toml", "name = \n[sm]\ncount = 4 4\nwarpz = 1\n", &[]));
    let lines: Vec<u32> = found.iter().map(|(line, ..)| *line).collect();
    assert_eq!(lines, [1, 3], "{found:?}");
}

#[test]
fn what_inherits_names_wrongly_is_blamed_on_its_line() {
    let found = faults(load("heir.toml", "name = \"x\"\ninherits = \"titan-y\"\n", &[]));
    assert_eq!((found[0].0, found[0].1), (2, 12), "{found:?}");
    assert!(found[0].2.contains("did you mean `titan-x`?"), "{found:?}");
    let found = faults(load("heir.toml", "inherits = \"gone.toml\"\n", &[]));
    assert!(found[0].0 == 1 && found[0].2.contains("cannot read machine file `gone.toml`"), "{found:?}");
    let folder = std::env::temp_dir();
    let unreadable = folder.to_str().expect("UTF-8").to_owned() + "/";
    assert!(faults(MachineConfig::load(&unreadable, &[]))[0].2.contains("cannot read machine file"));
}

proptest! {
    /// `config show` of any valid machine is a machine file that means the same.
    #[test]
    fn any_valid_override_survives_being_written_out(pick in any::<prop::sample::Index>(), number in 1_u64..5000, thousandths in 0_u64..1000) {
        let all: Vec<_> = MachineSpec::TABLES.iter().flat_map(|(t, keys)| keys.iter().map(move |k| (*t, k))).collect();
        let (table, key) = pick.get(&all);
        let value = match key.kind {
            Kind::Whole { min, max } => (min + number % (max - min).clamp(1, 1 << 20)).to_string(),
            Kind::Nanos | Kind::Megahertz | Kind::Picojoules => format!("{number}.{thousandths:03}"),
            Kind::Sizes => format!("0,{number},{}", number + 1 + thousandths),
            Kind::Flag => (number % 2 == 0).to_string(),
            Kind::Text => ["", "plain", "ddr4", "RFC = 9"][number as usize % 4].to_owned(),
            Kind::Choice(names) => names[number as usize % names.len()].to_owned(),
        };
        // Most values do not go with the others (sizes that do not divide): such a machine is refused, with a
        // reason.
        match MachineConfig::load("agpm-table4", &[set(&format!("{table}.{}={value}", key.name))]) {
            Ok(machine) => {
                let again = load(&format!("again-{table}-{}.toml", key.name), &machine.to_toml(), &[]);
                prop_assert_eq!(again.map_err(|f| f.to_string()), Ok(machine));
            }
            Err(faults) => prop_assert!(faults.0.iter().all(|f| !f.message.is_empty())),
        }
    }
}

#[test]
fn a_resolved_machine_written_out_reads_back_the_same() {
    let machine = MachineConfig::load("titan-x", &[set("sm.count=4")]).expect("valid");
    let again = load("again.toml", &machine.to_toml(), &[]).expect("valid");
    assert_eq!(again, machine);
}

/// A value as it is typed and as a file has it, and what it is.
const VALUES: [(&str, &str, Said); 29] = [
    ("nan", "nan", Said::Wrong),
    ("-nan", "-nan", Said::Wrong),
    ("inf", "inf", Said::Wrong),
    ("-inf", "-inf", Said::Wrong),
    ("infinity", "\"infinity\"", Said::Wrong),
    ("nanns", "\"nanns\"", Said::Wrong),
    ("1e400", "1e400", Said::Wrong),
    ("-1e400", "-1e400", Said::Wrong),
    ("1e400", "\"1e400\"", Said::Wrong),
    ("", "\"\"", Said::Wrong),
    (" ", "\" \"", Said::Wrong),
    ("no word", "\"no word\"", Said::Wrong),
    ("[1]", "[1]", Said::Wrong),
    ("{}", "{ source = \"x\" }", Said::Wrong),
    ("1979-05-27", "1979-05-27", Said::Wrong),
    ("TRUE", "\"true\"", Said::Wrong),
    ("true", "true", Said::Flag),
    ("0", "0", Said::Number(0.0)),
    ("-0", "-0", Said::Number(0.0)),
    ("-0.0", "-0.0", Said::Number(0.0)),
    ("-1", "-1", Said::Number(-1.0)),
    ("0.5", "0.5", Said::Number(0.5)),
    ("1e-300", "1e-300", Said::Number(1e-300)),
    ("4294967295", "4294967295", Said::Number(4_294_967_295.0)),
    ("4294967296", "4294967296", Said::Number(4_294_967_296.0)),
    ("1e300", "1e300", Said::Number(1e300)),
    ("-9223372036854775808", "-9223372036854775808", Said::Number(-9.3e18)),
    ("18446744073709551616", "18446744073709551616", Said::Number(1.8e19)),
    ("1e19", "1e19", Said::Number(1e19)),
];

#[derive(Clone, Copy)]
enum Said {
    Wrong,
    Flag,
    Number(f64),
}

impl Said {
    /// Whether a key takes it, from the key's meaning.
    fn fits(self, kind: Kind) -> bool {
        let thousandths = |x: f64| (0.0..9e12).contains(&x) && (x * 1000.0).fract() == 0.0;
        match (kind, self) {
            (Kind::Flag, Said::Flag) => true,
            (Kind::Whole { min, max }, Said::Number(x)) => x.fract() == 0.0 && (min as f64..=max as f64).contains(&x),
            (Kind::Sizes, Said::Number(x)) => x.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&x),
            (Kind::Nanos | Kind::Picojoules, Said::Number(x)) => thousandths(x),
            (Kind::Megahertz, Said::Number(x)) => thousandths(x) && x > 0.0 && x <= 100_000.0,
            _ => false,
        }
    }
}

type Tables = Vec<(String, &'static [Key])>;

/// Every key gets the value, from a file and from `--set`: exactly those that do not take it are told of,
/// each in its line.
fn every_key_takes_only_its_values(
    what: &str,
    head: &str,
    tables: &Tables,
    load: impl Fn(&str, &[Override]) -> Result<(), Diagnostics>,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.toml");
    for (typed, written, said) in VALUES {
        let (mut text, mut refused_lines, mut sets, mut refused_sets) = (head.to_owned(), vec![], vec![], vec![]);
        for (table, keys) in tables {
            text += &format!("[{table}]\n");
            for key in *keys {
                text += &format!("{} = {written}\n", key.name);
                let over = set(&format!("{table}.{}={typed}", key.name));
                // A text is anything in quotes, and anything that is typed.
                let (fits, is_text) = (said.fits(key.kind), key.kind == Kind::Text);
                let [in_a_file, as_typed] = [fits || is_text && written.starts_with('"'), fits || is_text];
                if !in_a_file {
                    refused_lines.push(text.lines().count() as u32);
                }
                if !as_typed {
                    refused_sets.push(over.written());
                }
                sets.push(over);
            }
        }
        std::fs::write(&file, &text).unwrap();
        let name = file.to_str().unwrap();
        let told = |result: Result<(), Diagnostics>| result.err().unwrap_or_default().0;
        // Values that do not go together are told of only where each by itself is right.
        let lines: Vec<u32> = told(load(name, &[])).iter().map(|fault| fault.span.line).collect();
        assert!(lines == refused_lines || refused_lines.is_empty(), "{what}: {written} in a file\n{text}");
        std::fs::write(&file, head).unwrap();
        let mut by_set: Vec<String> = told(load(name, &sets)).into_iter().map(|fault| fault.file).collect();
        by_set.sort();
        refused_sets.sort();
        assert!(by_set == refused_sets || refused_sets.is_empty(), "{what}: --set KEY={typed}: {by_set:?}");
    }
}

#[test]
fn no_key_of_any_machine_takes_what_is_not_of_its_kind() {
    for name in presets::names() {
        let machine = AnyMachine::load(name, &[]).unwrap();
        let tables = if machine.gpu().is_some() { MachineSpec::TABLES } else { CpuSpec::TABLES };
        let tables: Tables = tables.iter().map(|(table, keys)| ((*table).to_owned(), *keys)).collect();
        let head = format!("inherits = {name:?}\n");
        let load = |file: &str, sets: &[Override]| AnyMachine::load(file, sets).map(drop);
        every_key_takes_only_its_values(name, &head, &tables, load);
    }
}

#[test]
fn no_key_of_any_scheme_takes_what_is_not_of_its_kind() {
    let mut keys = 0;
    for entry in catalogue::entries() {
        let tables: Tables = entry.parameters.iter().map(|of| (entry.table(), of.keys)).collect();
        keys += tables.iter().map(|(_, keys)| keys.len()).sum::<usize>();
        let head = format!("scheme = {:?}\n", entry.name());
        for compute in [Compute::Gpu, Compute::Cpu] {
            let load = |file: &str, sets: &[Override]| SchemeConfig::load_on(compute, file, sets).map(drop);
            every_key_takes_only_its_values(entry.name(), &head, &tables, load);
        }
    }
    assert!(keys > 20, "{keys}");
}
