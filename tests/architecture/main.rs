//! The forbidden directions that the compiler does not hold (`ARCHITECTURE.md`), held by reading the sources.
//!
//! Which crate may use which stands in the manifests: what is not in a crate's `[dependencies]` does not compile
//! there. `manifests` holds them to the table of ARCHITECTURE.md. Here are directions within a crate, and those
//! that are finer than a crate. A room is a module at the top of the tree (`source`). Every mention of
//! `crate::ROOM` outside comments counts, tests included.

mod circles;
mod counted;
mod manifests;
mod prose;
mod source;
mod types;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use source::{Source, sources};

/// Asserts that no file for which `from` holds mentions a module path for which `to` holds.
fn forbid(rule: &str, from: impl Fn(&Source) -> bool, to: impl Fn(&Source, &str) -> bool) {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| from(s)) {
        for mention in source.mentions() {
            if to(source, &mention) {
                faults.push(format!("{} -> crate::{mention}", source.file));
            }
        }
    }
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}

fn room_of(mention: &str) -> &str {
    mention.split("::").next().unwrap_or("")
}

#[test]
fn of_what_all_crates_say_each_uses_its_part() {
    // Modules of the crate `base`, and paths below `persist`, that a crate may use.
    let allowed: [(&str, &[&str]); 5] = [
        ("kernel", &["diagnostic"]),
        ("riscv", &["diagnostic"]),
        ("persist", &["spec"]),
        ("oracle", &[]),
        // A manifest says where transactions keep their logs: the layout is plain data that recovery works on.
        ("workload", &["diagnostic", "document", "input"]),
    ];
    let base = ["cell", "diagnostic", "document", "input", "spec", "stats", "timeline"];
    for (room, allowed) in allowed {
        forbid(
            &format!("{room} -> more of base than {allowed:?}"),
            |s| s.room() == room,
            |_, m| base.contains(&room_of(m)) && !allowed.contains(&room_of(m)),
        );
    }
    forbid(
        "workload -> more of persist than the layout of undo logs, and what a recipe is made of",
        |s| s.room() == "workload",
        |_, m| room_of(m) == "persist" && !m.starts_with("persist::undo") && m != "persist::Part",
    );
}

#[test]
fn parameters_describe_themselves_and_know_nobody() {
    forbid("spec -> any other room", |s| s.room() == "spec", |_, m| room_of(m) != "spec");
}

#[test]
fn reading_inputs_knows_nobody() {
    forbid("input -> any other room", |s| s.room() == "input", |_, m| room_of(m) != "input");
}

#[test]
fn documents_know_their_texts_and_not_what_they_describe() {
    forbid(
        "document -> anything but spec, diagnostic and input",
        |s| s.room() == "document",
        |_, m| !["document", "spec", "diagnostic", "input"].contains(&room_of(m)),
    );
}

#[test]
fn a_scheme_knows_no_other_scheme() {
    forbid(
        "scheme -> scheme",
        |s| s.room() == "schemes" && !["schemes", "schemes/catalogue", "schemes/entry"].contains(&s.path.as_str()),
        // An entry of the catalogue is no scheme, nor is what two of them share.
        |s, m| {
            m.starts_with("schemes::")
                && !["schemes::entry", "schemes::core_regions"].iter().any(|shared| m.starts_with(shared))
                && !s.path.starts_with(&m.split("::").take(2).collect::<Vec<_>>().join("/"))
        },
    );
}

#[test]
fn the_oracle_shares_no_code_with_the_accused() {
    forbid(
        "oracle -> engine beyond time",
        |s| s.room() == "oracle",
        |_, m| room_of(m) == "engine" && !m.starts_with("engine::time") && m != "engine::Time",
    );
}

#[test]
fn timelines_are_kept_for_whoever_has_one_and_know_nobody() {
    forbid("timeline -> any other room", |s| s.room() == "timeline", |_, m| room_of(m) != "timeline");
}

#[test]
fn a_sweep_runs_experiments_and_knows_no_paper() {
    forbid(
        "sweep -> anything but run, outcome, config, workload, document, diagnostic, the engine's snapshots and a CSV's cells",
        |s| s.room() == "sweep",
        |_, m| {
            !["sweep", "run", "outcome", "config", "workload", "document", "diagnostic", "input"].contains(&room_of(m))
                && m != "engine::Snapshot"
                // What a cell of CSV is, for tables as for the data of figures.
                && m != "cell::inert"
        },
    );
    let beside = ["run", "crash", "determinism", "outcome", "config", "assemble", "report", "sweep"];
    let studies = ["papers", "sensitivity", "experiment"];
    forbid(
        "what they are built of -> studies and the facade",
        |s| beside.contains(&s.room()),
        |_, m| studies.contains(&room_of(m)),
    );
}

#[test]
fn reports_read_outcomes_only() {
    forbid(
        "report -> machine, schemes, engine",
        |s| s.room() == "report",
        |_, m| ["machine", "schemes", "engine"].contains(&room_of(m)),
    );
}

#[test]
fn figures_are_drawn_in_one_module() {
    let draws = |line: &str| ["<svg", "<rect", "<polyline", "<path"].iter().any(|element| line.contains(element));
    let elsewhere: Vec<String> = sources()
        .iter()
        .filter(|source| source.room() != "plot" && source.without_tests().lines().any(draws))
        .map(|source| source.path.clone())
        .collect();
    assert!(elsewhere.is_empty(), "SVG is written outside plot: {elsewhere:?}");
}

#[test]
fn pages_know_plain_data_only() {
    let plain = ["report/page", "report/markdown", "report/table"];
    forbid(
        "pages -> any module but report and plot",
        |s| plain.iter().any(|path| s.path.starts_with(path)),
        |_, m| !["report", "plot"].contains(&room_of(m)),
    );
}

#[test]
fn components_meet_only_at_messages() {
    // Files that are one component each; across a wire they may know `machine::msg` and shared parts, not
    // each other.
    let names = ["sm", "l2", "memory_controller", "command_processor", "core", "home", "os", "nic", "client"];
    let components = names.map(|name| format!("machine/{name}"));
    let mut faults = Vec::new();
    for source in sources() {
        let Some(own) = components.iter().position(|c| source.path == *c || source.path.starts_with(&format!("{c}/")))
        else {
            continue;
        };
        for line in &source.code {
            for (other, name) in names.iter().enumerate().filter(|(other, _)| *other != own) {
                let _ = other;
                // `machine` as this file sees it: a part of its own may be called as another component is.
                let up = "super::".repeat(source.path.matches('/').count());
                for prefix in [format!("use {up}"), "use crate::machine::".to_owned()] {
                    let Some(rest) = line.trim().strip_prefix(&format!("{prefix}{name}::")) else {
                        continue;
                    };
                    // A Spec is data that a neighbour may size itself by.
                    if !rest.trim_end_matches(';').ends_with("Spec") {
                        faults.push(format!("{}: {}", source.file, line.trim()));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "component -> component across a wire:\n{}", faults.join("\n"));
}

#[test]
fn ports_are_numbered_in_one_place() {
    // Elsewhere a host asks `machine::ports` for the port to a role.
    let hosts = |path: &str| path == "assemble" || path.starts_with("machine/") && path != "machine/ports";
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| hosts(&s.path)) {
        for (number, line) in source.code.iter().enumerate() {
            let made = line.match_indices("Port(").any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric));
            if made {
                faults.push(format!("{}:{}: {}", source.file, number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "ports made outside machine/ports:\n{}", faults.join("\n"));
}

#[test]
fn a_component_sends_by_typed_ports_alone() {
    // `Ctx::send` takes any message to any port; `machine::ports::To` takes what the far end takes.
    let of_components = |s: &&Source| s.room() == "machine" && s.path != "machine/ports" && !s.is_of_tests();
    let raw = |s: &Source| {
        let code = s.without_tests();
        let sends =
            code.lines().filter(|line| line.contains("cx.send(")).map(|line| format!("{}: {}", s.file, line.trim()));
        sends.collect::<Vec<_>>()
    };
    let faults: Vec<String> = sources().iter().filter(of_components).flat_map(raw).collect();
    assert!(faults.is_empty(), "sent past the type of the port:\n{}", faults.join("\n"));
}

#[test]
fn the_model_never_reads_statistics() {
    forbid(
        "machine -> stats (beyond the counters! macro and histograms)",
        |s| s.room() == "machine",
        |_, m| room_of(m) == "stats" && m != "stats::Histogram",
    );
}

#[test]
fn below_run_there_is_no_wall_clock_no_randomness_no_print_no_file() {
    let low = [
        "checkpoint",
        "engine",
        "kernel",
        "riscv",
        "persist",
        "stats",
        "spec",
        "machine",
        "schemes",
        "oracle",
        "workload",
        "document",
    ];
    // The driver measures threads to place work; results cannot depend on it (its head says so). A workload's
    // folder is read when it is loaded, before anything is simulated.
    let clock_allowed = |path: &str| path.starts_with("engine/driver");
    let files_allowed = |path: &str| path.starts_with("workload");
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| low.contains(&s.room())) {
        for (number, line) in source.code.iter().enumerate() {
            let bad = |word: &str| line.contains(word);
            let clock = (bad("Instant::now") || bad("SystemTime")) && !clock_allowed(&source.path);
            let files = (bad("std::fs") || bad("File::open") || bad("File::create")) && !files_allowed(&source.path);
            let print = bad("println!") || bad("eprint!") || bad("dbg!");
            let random = bad("thread_rng") || bad("getrandom::") || bad("RandomState");
            let maps = bad("std::collections::HashMap") || bad("std::collections::HashSet");
            if clock || files || print || random || maps || bad("static mut") {
                faults.push(format!("{}:{}: {}", source.file, number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "below run:\n{}", faults.join("\n"));
}

#[test]
fn every_file_opens_with_what_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for source in sources() {
        let text = std::fs::read_to_string(root.join(&source.file)).expect("a source file");
        assert!(text.starts_with("//!"), "{} does not open with //!", source.file);
    }
}

#[test]
fn benches_measure_with_the_allocator_of_the_binary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |path: &Path| std::fs::read_to_string(path).expect("a source file");
    assert!(text(&root.join("src/main.rs")).contains("mod allocator;\n"));
    let benches =
        std::fs::read_dir(root.join("benches")).expect("benches is readable").map(|entry| entry.unwrap().path());
    let benches: Vec<PathBuf> = benches.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    assert!(benches.len() > 5, "the benches were found");
    for bench in benches {
        let same = "#[path = \"../src/allocator.rs\"]\nmod allocator;\n";
        assert!(text(&bench).contains(same), "{} has another allocator than the binary", bench.display());
    }
}

/// Names of types that are still defined more than three times, and how often. The list only shrinks.
const SHARED_NAMES: &[(&str, usize)] = &[("Kind", 4)];

#[test]
fn a_name_of_a_type_is_defined_three_times_at_most() {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources() {
        for line in &source.code {
            let (line, inside) = (line.trim_start(), line.starts_with(' '));
            let visible = line.strip_prefix("pub").map_or(line, |rest| {
                rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.1)).unwrap_or(rest).trim_start()
            });
            // A `type` without `pub` inside a block is that of a trait, or of one function.
            let of_block = inside && line.starts_with("type ");
            let kinds = ["struct ", "enum ", "trait ", "type "];
            let named = kinds.iter().find_map(|kind| visible.strip_prefix(kind)).filter(|_| !of_block);
            if let Some(named) = named.filter(|named| named.starts_with(char::is_uppercase)) {
                let end = named.find(|c: char| !c.is_alphanumeric()).unwrap_or(named.len());
                *count.entry(named[..end].to_owned()).or_default() += 1;
            }
        }
    }
    let most = |name: &str| SHARED_NAMES.iter().find(|(known, _)| *known == name).map_or(3, |(_, most)| *most);
    let often: Vec<_> = count.iter().filter(|(name, times)| **times > most(name)).collect();
    assert!(often.is_empty(), "give types names that tell them apart: {often:?}");
    let fewer: Vec<_> =
        SHARED_NAMES.iter().filter(|(name, most)| count.get(*name).is_none_or(|times| times < most)).collect();
    assert!(fewer.is_empty(), "lower these numbers, or take them off the list at 3: {fewer:?}");
}
