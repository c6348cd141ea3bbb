//! The forbidden directions between rooms (`ARCHITECTURE.md`), held by reading the sources.
//!
//! A room is a top-level module of `src/`. Every mention of `crate::ROOM` outside comments counts, tests included.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One source file: its module path ("machine/sm/issue"), and its lines without comments.
struct Source {
    path: String,
    code: Vec<String>,
}

impl Source {
    fn room(&self) -> &str {
        self.path.split('/').next().unwrap_or("")
    }

    /// Module paths mentioned after `crate::`, `durawarp::` left out: "machine::msg", "stats", ...
    fn mentions(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for line in &self.code {
            for (at, _) in line.match_indices("crate::") {
                let boundary =
                    line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '$');
                if boundary {
                    let rest = &line[at + "crate::".len()..];
                    assert!(!rest.starts_with(['{', '*']), "one `use` a room, so that rooms can be told: {line}");
                    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
                    found.insert(rest[..end].trim_end_matches(':').to_owned());
                }
            }
        }
        found
    }
}

fn without_comment(line: &str) -> &str {
    match line.find("//") {
        Some(at) if line[..at].matches('"').count().is_multiple_of(2) => &line[..at],
        _ => line,
    }
}

fn sources() -> Vec<Source> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("src is readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    assert!(files.len() > 20, "the sources were found");
    files
        .iter()
        .map(|file| {
            let relative = file.strip_prefix(&root).expect("below src").with_extension("");
            let text = std::fs::read_to_string(file).expect("a source file");
            Source {
                path: relative.to_string_lossy().replace('\\', "/"),
                code: text.lines().map(|l| without_comment(l).to_owned()).collect(),
            }
        })
        .collect()
}

/// Asserts that no file for which `from` holds mentions a module path for which `to` holds.
fn forbid(rule: &str, from: impl Fn(&Source) -> bool, to: impl Fn(&Source, &str) -> bool) {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| from(s)) {
        for mention in source.mentions() {
            if to(source, &mention) {
                faults.push(format!("src/{}.rs -> crate::{mention}", source.path));
            }
        }
    }
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}

fn room_of(mention: &str) -> &str {
    mention.split("::").next().unwrap_or("")
}

/// Macros of `stats` and `spec` live at the crate's root.
const MACROS: [&str; 3] = ["counters", "spec", "choice"];

#[test]
fn the_engine_knows_nothing_else() {
    forbid("engine -> any other room", |s| s.room() == "engine", |_, m| room_of(m) != "engine");
}

#[test]
fn programs_know_no_time_and_no_machine() {
    forbid(
        "kernel -> anything of ours but diagnostic",
        |s| s.room() == "kernel",
        |_, m| !["kernel", "diagnostic"].contains(&room_of(m)),
    );
}

#[test]
fn workloads_are_programs_and_data() {
    forbid(
        "workload -> anything but kernel, diagnostic and the layout of undo logs",
        |s| s.room() == "workload",
        |_, m| !["workload", "kernel", "diagnostic", "input"].contains(&room_of(m)) && !m.starts_with("persist::undo"),
    );
}

#[test]
fn reading_inputs_knows_nobody() {
    forbid("input -> any other room", |s| s.room() == "input", |_, m| room_of(m) != "input");
}

#[test]
fn machine_and_schemes_meet_only_at_the_site() {
    forbid("machine -> schemes", |s| s.room() == "machine", |_, m| room_of(m) == "schemes");
    forbid("schemes -> machine", |s| s.room() == "schemes", |_, m| room_of(m) == "machine");
}

#[test]
fn a_scheme_knows_no_other_scheme() {
    forbid(
        "scheme -> scheme",
        |s| s.room() == "schemes" && !["schemes", "schemes/catalogue", "schemes/entry"].contains(&s.path.as_str()),
        // An entry of the catalogue is no scheme.
        |s, m| {
            m.starts_with("schemes::")
                && !m.starts_with("schemes::entry")
                && !s.path.starts_with(&m.split("::").take(2).collect::<Vec<_>>().join("/"))
        },
    );
}

#[test]
fn the_oracle_shares_no_code_with_the_accused() {
    forbid(
        "oracle -> machine, schemes, or engine beyond time and event",
        |s| s.room() == "oracle",
        |_, m| {
            ["machine", "schemes"].contains(&room_of(m))
                || (room_of(m) == "engine" && !m.starts_with("engine::time") && m != "engine::Time")
        },
    );
}

#[test]
fn persistency_vocabulary_lies_below_who_uses_it() {
    forbid(
        "persist -> machine, schemes, stats, oracle",
        |s| s.room() == "persist",
        |_, m| ["machine", "schemes", "stats", "oracle"].contains(&room_of(m)),
    );
}

#[test]
fn parameters_describe_themselves_and_know_nobody() {
    forbid("spec -> any other room", |s| s.room() == "spec", |_, m| room_of(m) != "spec");
    let without = ["engine", "kernel", "workload", "persist", "stats", "oracle", "diagnostic"];
    forbid("who has no parameters -> spec", |s| without.contains(&s.room()), |_, m| room_of(m) == "spec");
}

#[test]
fn timelines_are_kept_for_whoever_has_one_and_know_nobody() {
    forbid("timeline -> any other room", |s| s.room() == "timeline", |_, m| room_of(m) != "timeline");
}

#[test]
fn nothing_at_or_below_the_machine_looks_up() {
    let low =
        ["engine", "kernel", "workload", "persist", "stats", "spec", "machine", "schemes", "oracle", "diagnostic"];
    let high = [
        "config",
        "assemble",
        "run",
        "crash",
        "determinism",
        "outcome",
        "experiment",
        "sweep",
        "report",
        "reproduce",
        "sensitivity",
        "cli",
    ];
    forbid("at or below machine -> above", |s| low.contains(&s.room()), |_, m| high.contains(&room_of(m)));
}

#[test]
fn a_sweep_runs_experiments_and_knows_no_paper() {
    forbid(
        "sweep -> anything but run, outcome, config, workload, diagnostic and the engine's snapshots",
        |s| s.room() == "sweep",
        |_, m| {
            !["sweep", "run", "outcome", "config", "workload", "diagnostic", "input"].contains(&room_of(m))
                && m != "engine::Snapshot"
        },
    );
    let beside = ["run", "crash", "determinism", "outcome", "config", "assemble", "report", "sweep"];
    let studies = ["reproduce", "sensitivity", "experiment"];
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
fn figures_and_pages_know_plain_data_only() {
    let plain = ["report/figure", "report/page", "report/markdown", "report/table"];
    forbid(
        "figures, pages -> any other room",
        |s| plain.iter().any(|path| s.path.starts_with(path)),
        |_, m| room_of(m) != "report",
    );
}

#[test]
fn components_meet_only_at_messages() {
    // Files that are one component each; across a wire they may know `machine::msg` and shared parts, not each other.
    let components = ["machine/sm", "machine/l2", "machine/memory_controller", "machine/dispatch"];
    let names = ["sm", "l2", "memory_controller", "dispatch"];
    let mut faults = Vec::new();
    for source in sources() {
        let Some(own) = components.iter().position(|c| source.path == *c || source.path.starts_with(&format!("{c}/")))
        else {
            continue;
        };
        for line in &source.code {
            for (other, name) in names.iter().enumerate().filter(|(other, _)| *other != own) {
                let _ = other;
                for prefix in ["use super::", "use super::super::", "use crate::machine::"] {
                    let Some(rest) = line.trim().strip_prefix(&format!("{prefix}{name}::")) else {
                        continue;
                    };
                    // A Spec is data that a neighbour may size itself by.
                    if !rest.trim_end_matches(';').ends_with("Spec") {
                        faults.push(format!("src/{}.rs: {}", source.path, line.trim()));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "component -> component across a wire:\n{}", faults.join("\n"));
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
    let low = ["engine", "kernel", "persist", "stats", "spec", "machine", "schemes", "oracle", "workload"];
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
            let random = bad("thread_rng") || bad("getrandom") || bad("RandomState");
            let maps = bad("std::collections::HashMap") || bad("std::collections::HashSet");
            if clock || files || print || random || maps || bad("static mut") {
                faults.push(format!("src/{}.rs:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "below run:\n{}", faults.join("\n"));
}

#[test]
fn macros_at_the_root_are_the_known_ones() {
    let rooms = [
        "engine",
        "kernel",
        "workload",
        "persist",
        "stats",
        "timeline",
        "machine",
        "schemes",
        "spec",
        "oracle",
        "diagnostic",
        "input",
        "config",
        "assemble",
        "run",
        "crash",
        "determinism",
        "outcome",
        "experiment",
        "sweep",
        "report",
        "reproduce",
        "sensitivity",
        "cli",
    ];
    forbid(
        "a path into no room",
        |_| true,
        |_, m| !m.is_empty() && !rooms.contains(&room_of(m)) && !MACROS.contains(&room_of(m)),
    );
}

#[test]
fn every_file_opens_with_what_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for source in sources() {
        let text = std::fs::read_to_string(root.join(format!("{}.rs", source.path))).expect("a source file");
        assert!(text.starts_with("//!"), "src/{}.rs does not open with //!", source.path);
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
