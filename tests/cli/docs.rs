//! What the pages of the documentation show works as it stands: blocks of TOML load, commands are understood, sessions print
//! what is shown, links lead somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::cli_common::{durawarp, durawarp_in, ended, folder, text};
use durawarp::config::{AnyMachine, CpuMachine, MachineConfig, SchemeConfig};
use durawarp::schemes::catalogue;
use durawarp::sweep::{Plan, SweepFile};
use durawarp::workload::{Choice, Workload};

/// A page, with its path from the root of the repository.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    text: String,
}

/// The pages at the root, of `docs/`, and the references beside what they describe.
pub(crate) static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
    let mut paths: Vec<PathBuf> = vec![PathBuf::from("benches/RESULTS.md")];
    for folder in [".", "docs", "workloads", "benches/results"] {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    paths.sort();
    paths.into_iter().map(|path| Page { text: std::fs::read_to_string(&path).unwrap(), path }).collect()
});

pub(crate) fn page(name: &str) -> &'static Page {
    PAGES.iter().find(|page| page.path.ends_with(name)).unwrap_or_else(|| panic!("there is no page {name}"))
}

impl Page {
    /// The blocks of a language (`toml`, `sh`, or none), with the line on which each begins.
    pub(crate) fn blocks(&self, language: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut open: Option<(String, usize, Vec<&str>)> = None;
        for (index, line) in self.text.lines().enumerate() {
            match (line.trim_start().strip_prefix("```"), &mut open) {
                (Some(fence), None) => open = Some((fence.to_owned(), index + 2, Vec::new())),
                (Some(_), Some(_)) => {
                    let (opened, first, lines) = open.take().unwrap();
                    if opened == language {
                        found.push((first, lines.join("\n")));
                    }
                }
                (None, Some((.., lines))) => lines.push(line),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block has no end", self.path.display());
        found
    }

    /// The text outside blocks, line by line from 1.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut inside = false;
        self.text.lines().enumerate().filter_map(move |(index, line)| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            (!inside && !fence).then_some((index + 1, line))
        })
    }

    /// The spans of code in that text.
    fn spans(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose().flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |span| (number, span)))
    }

    /// Every command of the program that the page shows, as the line behind `durawarp`.
    pub(crate) fn command_lines(&self) -> Vec<(String, String)> {
        let shown = self.blocks("sh").into_iter().chain(self.blocks("")).flat_map(|(first, block)| {
            let lines = block.lines().enumerate();
            lines
                .map(|(index, line)| (first + index, line.trim_start().trim_start_matches("$ ").to_owned()))
                .collect::<Vec<_>>()
        });
        let named = self.spans().map(|(number, span)| (number, span.to_owned()));
        let mut found = Vec::new();
        for (number, line) in shown.chain(named) {
            let line = line.replace("cargo run --release -- ", "durawarp ");
            let Some(rest) = line.strip_prefix("durawarp ") else { continue };
            found.push((format!("{}:{number}", self.path.display()), rest.to_owned()));
        }
        found
    }

    /// These, as words.
    fn commands(&self) -> Vec<(String, Vec<String>)> {
        let words = |line: String| {
            let words = line.split_whitespace().take_while(|word| !["#", "|", "&&", ">"].contains(word));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        let found = self.command_lines().into_iter().map(|(place, line)| (place, words(line)));
        // `durawarp COMMAND --help` names none.
        found.filter(|(_, words)| !placeholder(&words[0])).collect()
    }
}

/// Stands for a name of the reader's: WORKLOAD, path/to/mine, ~/mine, my.toml.
pub(crate) fn placeholder(word: &str) -> bool {
    !word.rsplit('/').next().is_some_and(|name| name.chars().any(|c| c.is_lowercase()))
        || word.starts_with("path/to/")
        || word.starts_with(['.', '~'])
        || word.ends_with(".toml")
}

/// What stands behind an option.
fn values<'a>(words: &'a [String], option: &str) -> Vec<&'a str> {
    words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].as_str()).collect()
}

#[test]
fn the_options_of_every_command_that_a_page_shows_are_understood() {
    let commands: Vec<_> = PAGES.iter().flat_map(Page::commands).collect();
    assert!(commands.len() > 60, "{}", commands.len());
    for (place, words) in commands {
        // Behind an option or a value that is not understood, `--help` is not reached.
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        // What follows `--` is the simulated program's.
        words.truncate(words.iter().position(|word| *word == "--").unwrap_or(words.len()));
        words.push("--help");
        let output = durawarp(&words);
        assert!(output.status.success(), "{place}: {}", text(&output.stderr));
    }
}

#[test]
fn options_that_are_not_understood_are_noticed() {
    for words in [&["run", "gemm", "--bogus"][..], &["crash", "gemm", "--points", "none"], &["bogus"]] {
        ended(&durawarp(&[words, &["--help"]].concat()), 2, &[]);
    }
}

#[test]
fn names_and_keys_in_the_commands_of_pages_exist() {
    let mut keys = BTreeSet::new();
    for (place, words) in PAGES.iter().flat_map(Page::commands) {
        let named =
            |values: Vec<&'static str>| values.into_iter().filter(|name| !placeholder(name)).collect::<Vec<_>>();
        let words: &'static [String] = words.leak();
        for name in named(values(words, "--machine")) {
            assert!(AnyMachine::load(name, &[]).is_ok(), "{place}: no machine {name}");
        }
        for name in named(values(words, "--scheme").into_iter().flat_map(|list| list.split(',')).collect()) {
            assert!(SchemeConfig::load(name, &[]).is_ok(), "{place}: no scheme {name}");
        }
        let at = match words[0].as_str() {
            "run" | "crash" | "stalls" | "compare" | "regions" | "check" | "explain" => 1,
            _ => usize::MAX,
        };
        if let Some(name) = words.get(at).filter(|name| !placeholder(name) && !name.starts_with("--")) {
            assert!(Workload::load(name).is_ok(), "{place}: no workload {name}");
        }
        for set in values(words, "--set") {
            keys.extend(set.split_once('=').map(|(key, _)| (key, place.clone())));
        }
    }
    // Also in prose, and across the end of a line. What a changelog names was so at its time.
    let mut explained = 0;
    for page in PAGES.iter().filter(|page| !page.path.ends_with("CHANGELOG.md")) {
        for asked in ["`explain", "durawarp explain"].into_iter().flat_map(|command| page.text.split(command).skip(1)) {
            let Some(word) = asked.split_whitespace().next().map(|word| word.trim_matches('`')) else { continue };
            assert!(catalogue::find(word).is_err(), "{}: `explain {word}`, a scheme", page.path.display());
            explained += 1;
        }
    }
    assert!(explained > 15, "{explained}");
    keys.retain(|(key, _)| !key.starts_with("params.") && !placeholder(key) && !key.ends_with("KEY"));
    for (key, place) in keys {
        let output = durawarp(&["config", "explain", key]);
        assert!(output.status.success(), "{place}: {}", text(&output.stderr));
    }
}

#[test]
fn options_named_in_prose_exist() {
    let commands = [
        "run",
        "stalls",
        "compare",
        "explain",
        "crash",
        "regions",
        "check",
        "bench",
        "bisect",
        "reproduce",
        "sensitivity",
        "validate",
    ];
    let of_sweeps = ["run", "status", "table", "figures", "report", "lint"].map(|command| ["sweep", command]);
    let two = [["config", "diff"], ["ptx", "instrument"]].into_iter().chain(of_sweeps);
    let mut help = String::new();
    for command in commands {
        help += &text(&durawarp(&[command, "--help"]).stdout);
    }
    for [command, of] in two {
        help += &text(&durawarp(&[command, of, "--help"]).stdout);
    }
    for page in PAGES.iter().filter(|page| page.path.starts_with("docs") || page.path.ends_with("README.md")) {
        for (number, span) in page.spans().filter(|(_, span)| span.starts_with("--")) {
            let option = span.split([' ', '=']).next().unwrap();
            let known = help.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == option);
            // cargo's.
            assert!(known || option == "--features", "{}:{number}: no option {option}", page.path.display());
        }
    }
}

#[test]
fn what_the_page_says_that_python_lacks_is_what_it_lacks() {
    // How results are shown and where they go, keys of `set`, and what has another name there.
    let said_else = "help quiet human all-errors json svg out input kernels opcodes launches from no-reference figure \
                     no-readings strict no-store";
    let sources = ["_runs", "_studies", "_sweep"];
    let sources =
        sources.map(|name| std::fs::read_to_string(format!("python/durawarp/{name}.py")).unwrap().replace('_', "-"));
    let rows = page("docs/python.md").text.lines().skip_while(|line| !line.starts_with("What the command line has"));
    let rows: Vec<&str> = rows.take_while(|line| !line.starts_with("## ")).filter(|l| l.starts_with('|')).collect();
    for command in ["run", "crash", "compare", "stalls", "explain", "check", "bisect", "sweep run", "reproduce"] {
        let words: Vec<&str> = command.split(' ').collect();
        let head = format!("\ndef {}(", words[0]);
        let function = sources.iter().find_map(|source| source.split_once(&head)).unwrap().1;
        let function = function.split_once("\n) ->").unwrap().0;
        let help = text(&durawarp(&[&words[..], &["--help"]].concat()).stdout);
        let options = help.lines().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("-q, ").trim_start_matches("-h, ");
            line.strip_prefix("--")?.split(|c: char| !c.is_ascii_lowercase() && c != '-').next()
        });
        let there = |option: &str| function.contains(&format!("\n    {option}: "));
        let lacks: BTreeSet<&str> =
            options.filter(|option| !there(option) && said_else.split(' ').all(|known| known != *option)).collect();
        let of_it = |row: &&&str| row.contains(&format!("`{command}`")) || row.contains("all that run a workload");
        let mut said: BTreeSet<&str> = rows
            .iter()
            .filter(of_it)
            .flat_map(|row| row.split('`').filter_map(|span| span.strip_prefix("--")))
            .collect();
        if ["sweep run", "reproduce"].contains(&command) {
            said.remove("program");
        }
        assert_eq!(said, lacks, "durawarp.{}", words[0]);
    }
}

#[test]
fn sessions_print_what_is_shown() {
    for (_, block) in page("docs/power-failures.md").blocks("") {
        let mut lines = block.lines();
        assert!(lines.next().is_some_and(|line| line.starts_with("$ durawarp ")));
        for session in block.split("$ durawarp ").skip(1) {
            let (command, shown) = session.split_once('\n').unwrap();
            let output = durawarp(&command.split(' ').collect::<Vec<_>>());
            let printed = text(&output.stdout);
            let mut printed = printed.lines();
            for line in shown.lines().filter(|line| !line.is_empty() && *line != "...") {
                assert!(
                    printed.any(|found| found == line),
                    "durawarp {command} does not print, in this order:\n{line}"
                );
            }
        }
    }
}

/// Minutes that pages state for a build, beside the build that was recorded.
#[test]
fn a_build_takes_what_pages_say_within_twofold() {
    let recorded = page("benches/RESULTS.md");
    let row = recorded.text.lines().find(|line| line.starts_with("| release build |")).expect("a recorded build");
    let wall_s: f64 = row.split('|').nth(2).and_then(|cell| cell.trim().parse().ok()).expect("seconds of wall");
    let words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    for (name, before) in [("./README.md", "Build once ("), ("docs/python.md", "The second line takes ")] {
        let text = &page(name).text;
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{name} says how long a build takes"));
        let word = rest.split(' ').next().unwrap_or_default();
        let minutes = words.iter().position(|own| *own == word).expect("minutes in a word") as f64 + 1.0;
        let ratio = minutes * 60.0 / wall_s;
        assert!((0.5..=2.0).contains(&ratio), "{name}: {word} minutes, recorded are {wall_s} s");
    }
}

fn headings(text: &str) -> Vec<String> {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        fenced ^= line.trim_start().starts_with("```");
        !fenced
    });
    let titles = lines.filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    // As GitHub makes anchors of them.
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    titles.map(|title| title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut count = 0;
    for page in PAGES.iter() {
        for (number, line) in page.prose() {
            let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
            for link in links.filter(|link| !link.starts_with("http")) {
                let place = format!("{}:{number}: {link}", page.path.display());
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = page.path.parent().unwrap().join(path);
                let target = if path.is_empty() { page.path.clone() } else { target };
                assert!(target.exists(), "{place}: there is no such file");
                if !anchor.is_empty() {
                    let found = headings(&std::fs::read_to_string(&target).unwrap());
                    assert!(found.iter().any(|heading| heading == anchor), "{place}: no such heading in {found:?}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn files_named_in_pages_exist() {
    let tops = ["src/", "crates/", "tests/", "benches/", "workloads/", "docs/", ".ci/", ".github/"];
    let of_the_source = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
    let named =
        |page: &&Page| page.path.starts_with("docs") || of_the_source.iter().any(|name| page.path.ends_with(name));
    for page in PAGES.iter().filter(named) {
        for (number, span) in page.spans().filter(|(_, span)| tops.iter().any(|top| span.starts_with(top))) {
            // Names of the reader's are in capitals.
            let span = span.split(' ').next().unwrap();
            let known = span.contains("NAME") || Path::new(span).exists();
            assert!(known, "{}:{number}: there is no {span}", page.path.display());
        }
    }
}

#[test]
fn the_version_is_the_same_everywhere() {
    let citation = std::fs::read_to_string("CITATION.cff").unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(citation.contains(&format!("\nversion: {version}\n")), "CITATION.cff");
    assert!(page("CHANGELOG.md").text.contains(&format!("\n## {version}")), "CHANGELOG.md");
}

#[test]
fn pages_name_every_scheme_and_their_number() {
    let (all, of_gpus) = (catalogue::entries().len(), catalogue::all().len());
    let readme = page("./README.md").text.replace('\n', " ");
    assert!(readme.contains(&format!("{all} persistency schemes are built in, {of_gpus} of them for GPUs")));
    assert!(readme.contains(&format!("under {of_gpus} persistency schemes")), "the picture has those of GPUs");
    let digests = format!("results of {of_gpus} schemes on five workloads");
    assert!(page("CONTRIBUTING.md").text.contains(&digests));
    let table: Vec<&str> = page("docs/schemes.md")
        .text
        .lines()
        .skip_while(|line| *line != "| built in | |")
        .take_while(|l| l.starts_with('|'))
        .collect();
    for entry in catalogue::entries() {
        let name = format!("`{}`", entry.name());
        let rows = table.iter().filter(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(&name))).count();
        assert_eq!(rows, 1, "docs/schemes.md: rows of {name}");
    }
}

#[test]
fn the_readmes_sweep_shows_what_the_readme_says() {
    let folder = folder("docs_readme_sweep");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/sweeps/cells.toml");
    let file = file.to_str().unwrap();
    let points = ended(&durawarp_in(&folder, &["sweep", "run", file]), 0, &["done 64"]);
    let readme = page("./README.md").text.replace('\n', " ");
    assert!(points.contains("64 points") && readme.contains("**7. Sweep** 64 points"));
    ended(&durawarp_in(&folder, &["sweep", "figures", file, "--out", "f", "--only", "cells-lines"]), 0, &[]);
    let curve = std::fs::read_to_string(folder.join("f/cells-lines.csv")).unwrap();
    let at = |x: &str| {
        let row = curve.lines().find_map(|line| line.strip_prefix(&format!("store+clwb,{x},"))).unwrap();
        format!("{:.1}", row.trim_end_matches(',').parse::<f64>().unwrap())
    };
    let (slow, fast) = (at("1350.0"), at("50.0"));
    let said = format!("1350 ns to be written for 50 make `store+clwb` {slow} times as slow as `base` for {fast}");
    assert!(readme.contains(&said), "{said}");
}

#[test]
fn every_page_of_the_manual_is_reached_from_the_readme() {
    for page in PAGES.iter().filter(|page| page.path.starts_with("docs")) {
        let link = format!("]({})", page.path.display());
        assert!(self::page("./README.md").text.contains(&link), "README.md has no link to {}", page.path.display());
    }
}

#[test]
fn lines_of_prose_have_at_most_110_columns() {
    let pages = PAGES.iter().filter(|page| page.path.starts_with("docs") || page.path.starts_with("."));
    for page in pages {
        for (number, line) in page.prose().filter(|(_, line)| !line.starts_with('|')) {
            let columns = line.chars().count();
            assert!(columns <= 110, "{}:{number}: {columns} columns", page.path.display());
        }
    }
}

/// The only block of TOML of a page with a word in it.
fn block(name: &str, word: &str) -> String {
    let mut found = page(name).blocks("toml").into_iter().filter(|(_, block)| block.contains(word));
    let (_, block) = found.next().expect("the page has the example");
    assert!(found.next().is_none(), "the word tells them apart");
    block
}

#[test]
fn every_block_of_toml_in_the_manual_has_a_test() {
    let all: usize =
        PAGES.iter().filter(|page| page.path.starts_with("docs")).map(|page| page.blocks("toml").len()).sum();
    assert_eq!(all, 8, "the sweep, the workload, three of machines, the scheme, the labels, the opcodes: below");
}

#[test]
fn its_workload_loads_and_is_right() {
    let folder = folder("docs_workload");
    std::fs::write(folder.join("workload.toml"), block("docs/workloads.md", "vecadd")).unwrap();
    std::fs::copy("workloads/vecadd/kernel.ptx", folder.join("kernel.ptx")).unwrap();
    let workload = Workload::load(folder.to_str().unwrap()).unwrap_or_else(|faults| panic!("{faults}"));
    let choice = Choice::of_profile("ci");
    let resolved = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
    let run = resolved.run_functional(&Default::default()).unwrap();
    assert!(resolved.verify(run.memory(), run.bindings(), Default::default()).passed());
}

#[test]
fn its_machine_loads() {
    let file = folder("docs_machine").join("machine.toml");
    std::fs::write(&file, block("docs/machines.md", "inherits")).unwrap();
    let machine = MachineConfig::load(file.to_str().unwrap(), &[]).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((machine.spec.controller.channels, machine.spec.sm.count), (4, 20));
}

#[test]
fn its_memory_device_is_one() {
    let file = folder("docs_device").join("machine.toml");
    let text = format!("inherits = \"lightwsp-cpu\"\n{}", block("docs/machines.md", "3200AA"));
    std::fs::write(&file, text + "\n[clock]\nmemory_mhz = 1600\n[bus]\nbytes_per_cycle = 16\n").unwrap();
    let machine = CpuMachine::read(file.to_str().unwrap(), &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let dram = machine.devices[0].as_ref().unwrap();
    assert_eq!((dram.variant.join(" ").as_str(), dram.organisation.levels[0].1), ("3200AA 16Gb_x8", 2));
    assert!(dram.timing.contains(&("RFC".to_owned(), 472)), "295 ns of 0.625 ns");
}

#[test]
fn its_buffer_is_that_of_a_device() {
    let optane = std::fs::read_to_string("crates/simulation/src/config/devices/optane-100.toml").unwrap();
    let (before, _) = optane.split_once("[buffer]").expect("it is the last table");
    let file = folder("docs_buffer").join("mine.toml");
    std::fs::write(&file, format!("{before}{}", block("docs/machines.md", "[buffer]"))).unwrap();
    let [table, built_in] = [file.to_str().unwrap(), "optane-100"].map(|name| {
        let output = durawarp(&["config", "device", name]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    });
    assert_eq!(table, built_in);
    assert!(table.contains("256"), "{table}");
}

#[test]
fn its_scheme_loads() {
    let file = folder("docs_scheme").join("mine.toml");
    std::fs::write(&file, block("docs/schemes.md", "scheme =")).unwrap();
    let scheme = SchemeConfig::load(file.to_str().unwrap(), &[]).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((scheme.name.as_str(), scheme.built.name()), ("mine", "epoch-cta"));
}

#[test]
fn its_labels_and_its_table_of_opcodes_load() {
    let folder = folder("docs_labels");
    std::fs::write(folder.join("kernelslist.g"), "kernel-3.traceg\n").unwrap();
    std::fs::copy("tests/traces/small/kernel-3.traceg", folder.join("kernel-3.traceg")).unwrap();
    std::fs::write(folder.join("mine.toml"), block("docs/traces.md", "trace =")).unwrap();
    let workload =
        Workload::load(folder.join("mine.toml").to_str().unwrap()).unwrap_or_else(|faults| panic!("{faults}"));
    std::fs::write(folder.join("table.toml"), block("docs/traces.md", "QGMMA =")).unwrap();
    let choice = Choice { opcodes: Some(folder.join("table.toml")), ..Choice::default() };
    for choice in [Choice::default(), choice] {
        let resolved = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(resolved.is_trace() && resolved.has_persistent_memory());
    }
}

#[test]
fn its_sweep_is_planned() {
    let text = block("docs/sweeps.md", "[[axis]]");
    let file = SweepFile::read("docs/sweeps.md", text, Path::new("")).unwrap_or_else(|faults| panic!("{faults}"));
    let plan = Plan::new(file).unwrap_or_else(|faults| panic!("{faults}"));
    // Two workloads: base at three sizes, strict at one, agpm at three with two thresholds.
    assert_eq!(plan.points.len(), 2 * (3 + 1 + 3 * 2));
    assert!(plan.baselines().iter().all(Option::is_some));
}

#[test]
fn the_map_has_12_kilobytes() {
    let bytes = page("ARCHITECTURE.md").text.len();
    assert!(bytes <= 12 * 1024, "{bytes} bytes: what is said of one crate belongs into its head");
}

#[test]
fn the_readme_has_the_two_commands_and_150_lines() {
    let readme = &page("./README.md").text;
    assert!(readme.contains("cargo run --release -- run workloads/gemm --profile ci\n"));
    assert!(readme.contains("cargo test\n"));
    assert!(readme.lines().count() <= 150);
}

/// The command that drew the README's picture.
const DRAWN: [&str; 7] = ["compare", "atax", "--schemes", "all", "--svg", "docs/schemes.svg", "--quiet"];

#[test]
fn the_picture_of_the_readme_is_what_its_command_draws() {
    let readme = &page("./README.md").text;
    assert!(readme.contains("](docs/schemes.svg)") && readme.contains(&DRAWN[..6].join(" ")));
    let folder = folder("docs_picture");
    std::fs::create_dir(folder.join("docs")).unwrap();
    ended(&durawarp_in(&folder, &DRAWN), 0, &[]);
    let drawn = std::fs::read_to_string(folder.join("docs/schemes.svg")).unwrap();
    let shown = std::fs::read_to_string("docs/schemes.svg").unwrap();
    assert_eq!(drawn, shown, "draw it again: durawarp {}", DRAWN.join(" "));
}

/// Workflows run on no machine of ours: what can be wrong in them is looked at here.
#[test]
fn workflows_name_scripts_that_exist_and_actions_by_commit() {
    let mut actions = 0;
    for entry in std::fs::read_dir(".github/workflows").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            assert!(!line.contains('\t'), "{place}: YAML has no tabs");
            if let Some((_, action)) = line.split_once("uses: ") {
                let (_, version) = action.split_once('@').unwrap_or_else(|| panic!("{place}: {action}"));
                let (commit, told) = version.split_once(" # v").unwrap_or_else(|| panic!("{place}: which version?"));
                assert!(commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "{place}: {commit}");
                assert!(told.split('.').count() == 3, "{place}: {told}");
                actions += 1;
            }
            let words = line.split(['`', ' ', ',', '(', ')']).filter(|word| word.starts_with(".ci/"));
            for script in words {
                use std::os::unix::fs::PermissionsExt as _;
                let file = std::fs::metadata(script).unwrap_or_else(|_| panic!("{place}: no {script}"));
                assert!(file.permissions().mode() & 0o111 == 0o111, "{place}: {script} cannot be run");
            }
        }
    }
    assert!(actions >= 8, "{actions}");
}

#[test]
fn the_container_is_built_by_the_toolchain_of_the_tests() {
    let toolchain = std::fs::read_to_string("rust-toolchain.toml").unwrap();
    let version = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"');
    let container = std::fs::read_to_string("Containerfile").unwrap();
    assert!(container.contains(&format!("/rust:{version}-alpine")), "{container}");
    assert!(container.lines().count() <= 10);
}
