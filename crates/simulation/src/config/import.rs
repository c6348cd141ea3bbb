//! A machine file from the configuration of GPGPU-Sim (`gpgpusim.config`) and Accel-Sim (`trace.config`).
//!
//! | an option (`options.tsv`) | becomes |
//! |---|---|
//! | *mapped*: has a counterpart | keys, of the files' value, else of GPGPU-Sim's default |
//! | *told*: describes a machine, without a counterpart | a comment that says why |
//! | *ignored*: describes no machine | a comment that says why |
//! | not known of GPGPU-Sim | a comment, with the nearest name |
//!
//! What no option describes is as on `titan-x`, our reading of SM6_TITANX. Units are converted once: cycles
//! of a clock to ns with three decimals. GPGPU-Sim's result latencies leave out 5 stages of its pipeline,
//! which ours have. Invariant: what comes out passes `config check`; a value that no machine takes is a fault
//! of its option.
//!
//! Source: option parsers and tested configurations of GPGPU-Sim 4; the options' own help. Left out: the
//! interconnect's file (`-inter_config_file`), power and UVM.

mod cache;
mod known;
mod map;
mod mapping;
mod options;

use std::fmt::Write as _;

use super::MachineConfig;
use durawarp_base::diagnostic::{Diagnostics, nearest};
use durawarp_base::document::Override;
use known::Fate;
use map::Set;
use options::{Given, Options};

/// The machine that an imported one starts from.
const BASE: &str = "titan-x";

/// Options without a counterpart whose default is not what is modelled here: told also where no file has
/// them.
const TOLD_BY_DEFAULT: [&str; 1] = ["gpgpu_cache:dl2_texture_only"];

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The machine file.
    pub toml: String,
    /// Options that set keys.
    pub mapped: usize,
    /// Options that say nothing of a machine.
    pub ignored: usize,
    /// Options without a counterpart.
    pub unmapped: usize,
    /// Of `unmapped`, options of no version of GPGPU-Sim that is known here: a line each, with the nearest
    /// name.
    pub unknown: Vec<String>,
}

/// The machine called `name` of these files, each with its name and text; of an option that two files have
/// the later counts.
///
/// # Errors
/// Values that are not what their options take, or that no machine takes, each with its place.
pub fn import(name: &str, files: &[(String, String)]) -> Result<Import, Diagnostics> {
    let options = Options::read(files);
    let keys = map::keys(&options);
    // Used is what a mapping asked for: options of the simulator are told apart from those we lack.
    let mapped = options.all().filter(|option| option.used).count();
    if options.faults().0.is_empty() && mapped > 0 {
        refuse(&options, &keys);
    }
    let faults = options.faults();
    let listed: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
    let mut toml = format!("# Imported by `durawarp config import {}`.\n", listed.join(" "));
    let _ = writeln!(
        toml,
        "# An option that these files leave out has GPGPU-Sim's default. What no option describes is as on"
    );
    let _ = writeln!(toml, "# {BASE}, NVM included.");
    let _ = writeln!(toml, "name = {name:?}\ndescription = {:?}\ninherits = {BASE:?}", listed.join(", "));
    // Keys come table by table, so that each heading is written once.
    let mut table = "";
    for Set { key, value, source, .. } in &keys {
        let (its, name) = key.split_once('.').unwrap_or(("", key));
        if table != its {
            let _ = writeln!(toml, "\n[{its}]");
            table = its;
        }
        let _ = writeln!(toml, "{name} = {{ value = {value}, source = {source:?} }}");
    }
    let (ignored, unmapped): (Vec<Given>, Vec<Given>) = options
        .all()
        .filter(|option| !option.used)
        .partition(|option| option.known.is_some_and(|known| known.fate == Fate::Ignored));
    let why = |option: &Given| match option.known {
        None => format!("{option}: {}", unknown_words(option)),
        Some(known) if known.fate == Fate::Mapped => format!("{option}: of no effect in these files ({})", known.note),
        Some(known) => format!("{option}: {}", known.note),
    };
    list(&mut toml, "Parts of options without a counterpart", options.told().into_iter());
    list(&mut toml, "Without a counterpart here", unmapped.iter().map(why));
    let by_default = TOLD_BY_DEFAULT.iter().filter(|name| !options.gives(name)).filter_map(|name| known::find(name));
    let why_default = |known: &known::KnownOption| format!("-{}: {}", known.name, known.note);
    list(&mut toml, "Defaults without a counterpart here", by_default.map(why_default));
    list(&mut toml, "Of no machine, so left out", ignored.iter().map(why));
    list(&mut toml, "Lines that are no options", options.strays().map(str::to_owned));
    let unknown = unmapped.iter().filter(|option| option.known.is_none());
    let unknown = unknown.map(|option| format!("-{}: {}", option.name, unknown_words(option))).collect();
    faults.into_result(Import { toml, mapped, ignored: ignored.len(), unmapped: unmapped.len(), unknown })
}

/// What is said of an option that GPGPU-Sim does not have.
fn unknown_words(option: &Given) -> String {
    let near = nearest(&option.name, known::all().iter().map(|known| known.name));
    let near = near.map_or_else(String::new, |near| format!("; the nearest is -{near}"));
    format!("no option that is known of GPGPU-Sim{near}")
}

/// Notes values that no machine takes as faults of their options.
fn refuse(options: &Options<'_>, keys: &[Set]) {
    let overrides: Vec<Override> = keys
        .iter()
        .map(|set| Override { key: set.key.clone(), value: set.value.trim_matches('"').to_owned() })
        .collect();
    let mut sound = true;
    for (set, over) in keys.iter().zip(&overrides) {
        let faults = MachineConfig::<durawarp_machine::MachineSpec>::check(over).err().unwrap_or_default();
        for fault in faults.0 {
            sound = false;
            options.blame(&set.option, format!("-{} sets {}: {}", set.option, set.key, fault.message));
        }
    }
    // Only values that are taken one by one can be looked at together.
    let faults =
        if sound { MachineConfig::load(BASE, &overrides).err().unwrap_or_default() } else { Diagnostics::default() };
    for fault in faults.0 {
        let of = keys.iter().zip(&overrides).find(|(_, over)| fault.file == over.written()).map(|(set, _)| set);
        let (option, key) = of.map_or(("", ""), |set| (set.option.as_str(), set.key.as_str()));
        options.blame(option, format!("-{option} sets {key}: {}", fault.message));
    }
}

/// A list as comments.
fn list(out: &mut String, heading: &str, entries: impl Iterator<Item = String>) {
    let entries: Vec<String> = entries.collect();
    if !entries.is_empty() {
        let _ = writeln!(out, "\n# {heading} ({}):", entries.len());
    }
    for entry in entries {
        let _ = writeln!(out, "#   {entry}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping of 4 banks, which are GPGPU-Sim's by default.
    const LETTERS: &str = "dramid@8;00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RRRBBCCC.CCCSSSSS";

    /// A file with one option.
    fn of(option: &str) -> Import {
        import("one", &[("one.config".to_owned(), option.to_owned())])
            .unwrap_or_else(|faults| panic!("{option}: {faults}"))
    }

    #[test]
    fn every_option_becomes_what_its_row_says() {
        for known in known::all() {
            let without = if known.name == "gpgpu_mem_addr_mapping" { LETTERS } else { "1" };
            let line = format!("-gpgpu_n_clusters 20\n-{} {}\n", known.name, known.default.unwrap_or(without));
            let line =
                if known.name == "gpgpu_n_clusters" { format!("-gpgpu_n_mem 8\n-{} 20\n", known.name) } else { line };
            // Options that count only beside others.
            let beside = match known.name {
                "gpgpu_adaptive_cache_config" | "gpgpu_shmem_option" | "gpgpu_unified_l1d_size" => {
                    "-gpgpu_adaptive_cache_config 1\n-gpgpu_cache:dl1 S:4:128:64,L:T:m:L:L,A:512:8,16:0,32\n\
                     -gpgpu_shmem_size 98304\n-gpgpu_shmem_option 0,96\n-gpgpu_unified_l1d_size 128\n"
                }
                _ => "",
            };
            let made = of(&format!("{beside}{}", if beside.is_empty() { &line } else { "" }));
            let given = if beside.is_empty() { 2 } else { 5 };
            let expected = match known.fate {
                Fate::Mapped => [given, 0, 0],
                Fate::Told => [given - 1, 1, 0],
                Fate::Ignored => [given - 1, 0, 1],
            };
            assert_eq!([made.mapped, made.unmapped, made.ignored], expected, "-{}", known.name);
            if known.fate != Fate::Mapped {
                assert!(made.toml.contains(known.note), "-{}: {}", known.name, made.toml);
            }
        }
    }

    #[test]
    fn the_keys_that_a_row_names_are_those_that_its_option_sets() {
        let adaptive = "-gpgpu_adaptive_cache_config 1\n-gpgpu_cache:dl1 S:4:128:64,L:T:m:L:L,A:512:8,16:0,32\n\
                        -gpgpu_shmem_size 98304\n-gpgpu_shmem_option 0,96\n-gpgpu_unified_l1d_size 128\n\
                        -trace_opcode_latency_initiation_tensor 4,1\n-gpgpu_gmem_skip_L1D 0\n";
        let fixed = "-gpgpu_cache:dl1 S:4:128:64,L:T:m:L:L,A:512:8,16:0,32\n";
        let letters = format!("-gpgpu_mem_addr_mapping {LETTERS}\n");
        let halves = "-network_mode 2\n-gpgpu_l2_partition_count 2\n-gpgpu_l2_partition_extra_latency 150\n";
        let simple = "-gpgpu_simple_dram_model 1\n-gpgpu_simple_dram_clock_multiplier 2\n";
        let served = "-gpgpu_simple_dram_model 1\n-gpgpu_simple_dram_service_rate_num 15\n\
                      -gpgpu_simple_dram_service_rate_den 4\n-gpgpu_tma_max_inflight 192\n\
                      -gpgpu_mbarrier_arrive_latency 29\n-ptx_opcode_initiation_tma 32\n";
        let mut set: Vec<Set> = Vec::new();
        for text in ["-gpgpu_n_clusters 20\n", fixed, adaptive, &letters, halves, simple, served] {
            let files = [("gpgpusim.config".to_owned(), text.to_owned())];
            set.extend(map::keys(&Options::read(&files)));
        }
        // `sm.*_cycles` stands for several.
        let names = |word: &str, key: &str| {
            let (start, end) = word.split_once('*').unwrap_or((word, word));
            key.starts_with(start) && key.ends_with(end)
        };
        let words = |known: &known::KnownOption| {
            known.note.split([' ', ',', ';', ':']).filter(|word| word.contains('.')).collect::<Vec<_>>()
        };
        for known in known::all().iter().filter(|known| known.fate == Fate::Mapped) {
            for word in words(known) {
                // The source of a key that several options give names them all.
                let gives = |set: &Set| {
                    set.source
                        .split([' ', ','])
                        .any(|word| word.trim_end_matches(':').strip_prefix('-') == Some(known.name))
                };
                let found = set.iter().any(|set| gives(set) && names(word, &set.key));
                assert!(found, "-{} sets no {word}", known.name);
            }
        }
        for Set { key, option, .. } in &set {
            let known = known::find(option).unwrap_or_else(|| panic!("-{option} is in no row"));
            assert!(words(known).iter().any(|word| names(word, key)), "the row of -{option} does not name {key}");
        }
    }

    #[test]
    fn the_scheduler_of_memory_is_the_one_of_the_number() {
        for (number, name) in [(0, "fcfs"), (1, "frfcfs")] {
            let made = of(&format!("-gpgpu_n_clusters 20\n-gpgpu_dram_scheduler {number}\n"));
            let line = format!("scheduler = {{ value = \"{name}\"");
            assert!(made.toml.lines().any(|own| own.starts_with(&line)), "{number}: {}", made.toml);
        }
    }

    /// Accel-Sim's H200 and FlashGPU-Sim's B200 have 4.8 and 7.7 TB/s by their rates, not by their pins.
    #[test]
    fn memory_without_banks_has_the_bandwidth_of_its_requests() {
        let pins = "-gpgpu_dram_buswidth 8\n-dram_data_command_freq_ratio 2\n";
        let l2 = |kind: char| format!("-gpgpu_cache:dl2 {kind}:64:128:8,L:B:m:N:L,A:16:4,4\n");
        let rate = "-gpgpu_simple_dram_service_rate_num 15\n-gpgpu_simple_dram_service_rate_den 4\n";
        for (more, bytes) in [
            (l2('S'), 16),
            (l2('S') + "-gpgpu_simple_dram_model 0\n", 16),
            (l2('S') + "-gpgpu_simple_dram_model 1\n", 32),
            (l2('N') + "-gpgpu_simple_dram_model 1\n", 128),
            (l2('S') + "-gpgpu_simple_dram_model 1\n-gpgpu_simple_dram_clock_multiplier 2\n", 64),
            (l2('S') + "-gpgpu_simple_dram_model 1\n" + rate, 120),
            (l2('S') + rate, 16),
        ] {
            let made = of(&format!("{pins}{more}"));
            let line = format!("bytes_per_cycle = {{ value = {bytes}, ");
            assert!(made.toml.lines().any(|own| own.starts_with(&line)), "{more}: {}", made.toml);
        }
    }

    #[test]
    fn an_option_that_nobody_has_is_told_apart_with_the_nearest() {
        let made = of("-gpgpu_n_clusters 20\n-gpgpu_l2_rop_latncy 200\n-gpgpu_tma_tx_quota 48\n");
        let told = "-gpgpu_l2_rop_latncy: no option that is known of GPGPU-Sim; the nearest is -gpgpu_l2_rop_latency";
        assert_eq!((made.unmapped, made.unknown), (2, vec![told.to_owned()]));
    }

    #[test]
    fn the_manual_shows_the_table_as_it_is() {
        let manual = include_str!("../../../../docs/coming-from-gpgpu-sim.md");
        let row = |known: &known::KnownOption| {
            let fate = match known.fate {
                Fate::Mapped => known.note.to_owned(),
                Fate::Told => format!("told: {}", known.note),
                Fate::Ignored => format!("ignored: {}", known.note),
            };
            format!(
                "| `-{}` | {} | {fate} |",
                known.name,
                known.default.map_or("not known".to_owned(), |d| format!("`{d}`"))
            )
        };
        let rows: Vec<String> = known::all().iter().map(row).collect();
        let (_, shown) = manual.split_once("## Every option").unwrap_or_default();
        let shown: Vec<&str> = shown.lines().filter(|line| line.starts_with("| `-")).collect();
        assert!(rows == shown, "the table under `Every option` is to be:\n{}", rows.join("\n"));
    }
}
