//! Every litmus program under every scheme and in every domain: conditions hold where its manifest says that they must,
//! and what it says to be violated is seen to be.

use std::path::Path;
use std::sync::Arc;

use durawarp::crash::{Basis, CrashReport, CrashRequest, JudgedLevel};
use durawarp::persist::Scheme;
use durawarp::run::Experiment;
use durawarp::schemes::catalogue;
use durawarp::workload::{Choice, Expected, Workload};
use rayon::prelude::*;

const DOMAINS: [&str; 3] = ["media", "adr", "eadr"];

/// Paths of all programs, by name.
fn programs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/litmus");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let mut paths: Vec<String> = entries.filter(|path| path.ends_with(".toml")).collect();
    paths.sort();
    paths
}

fn judged(path: &str, scheme: &str, domain: &str, double: bool) -> CrashReport {
    judged_with(path, scheme, &[&format!("persist.domain={domain}")], double)
}

/// With changes of the machine and of the scheme.
fn judged_with(path: &str, scheme: &str, set: &[&str], double: bool) -> CrashReport {
    // Programs of clusters need GPCs, and barriers that bytes complete at: of a machine that copies asynchronously.
    let of_clusters = ["/cluster_", "/async_store_"].iter().any(|part| path.contains(part));
    let more = ["sm.gpcs=1", "tensor.matrix_cycles=16", "tensor.matrix_interval_cycles=8"];
    let more = if of_clusters { &more[..] } else { &[] };
    judged_on("agpm-table4", path, &[], scheme, &[more, set].concat(), double)
}

/// On a machine, with parameters of the program.
fn judged_on(
    machine: &str,
    path: &str,
    params: &[(&str, u32)],
    scheme: &str,
    set: &[&str],
    double: bool,
) -> CrashReport {
    let recipe = Experiment::of(path).machine(machine).scheme(scheme).params(params.iter().copied()).changes(set);
    let request = CrashRequest { double, ..CrashRequest::default() };
    recipe.crash(&request).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn every_program_is_built_in_by_its_name_and_says_what_it_stands_for() {
    let name = |path: &String| format!("litmus/{}", Path::new(path).file_stem().unwrap().display());
    let names: Vec<String> = programs().iter().map(name).collect();
    let listed: Vec<String> = Workload::litmus().into_iter().map(|listing| listing.name).collect();
    assert_eq!(listed, names);
    for (name, path) in names.iter().zip(programs()) {
        assert_eq!(Workload::load(&path).unwrap().name(), name);
        let resolved = Workload::load(name).and_then(|found| found.resolve(&Choice::default()));
        let resolved = resolved.unwrap_or_else(|faults| panic!("{faults}"));
        assert!(resolved.conditions().count() > 0, "{name} has no condition");
        assert!(resolved.conditions().all(|condition| condition.source().is_some()), "{name} has no source");
        let text = std::fs::read_to_string(&path).unwrap();
        let head = || text.lines().take_while(|line| line.starts_with('#'));
        let says = |words: &[&str]| head().any(|line| words.iter().any(|word| line.contains(word)));
        assert!(says(&["# Source: "]) && says(&["allowed", "forbidden"]), "the head of {name}");
    }
}

/// Schemes whose programs keep their own order find the bugs of a program; none may be found in a sound one.
#[test]
fn bugs_show_at_the_level_that_the_page_says() {
    let readme = include_str!("../../workloads/README.md");
    for (name, levels) in [
        ("message_passing_no_fence", [false, true, true]),
        ("message_passing_no_write_back", [true, true, true]),
        ("bulk_no_wait", [true, true, true]),
        ("tensor_no_wait", [true, true, true]),
        ("cluster_no_fence", [false, true, true]),
        ("async_store_no_fence", [false, true, true]),
        ("stream_no_event", [true, true, true]),
        ("programmatic_no_wait", [true, true, true]),
        ("wrong_line", [true, true, true]),
        ("flag_before_log", [true, true, true]),
        ("data_before_flag", [true, true, true]),
        ("cta_log_paper", [false, true, true]),
        ("cta_log_late", [false, false, true]),
        ("shared_log_slots", [true, true, true]),
        ("wrong_log_slot", [true, true, true]),
    ] {
        assert!(readme.contains(&format!("`{name}`")), "the page does not name {name}");
        let report = judged(&format!("litmus/{name}"), "store+clwb", "adr", false);
        let condition = &report.conditions[0];
        assert_eq!(condition.violated.map(|images| images > 0), levels, "{name}: {:?}", condition.violated);
        assert_eq!(condition.expected, Expected::Violated, "{name}");
    }
}

/// Where L1s combine stores, tags order what launches leave in the caches: it is in the order of streams, events and waits
/// that lines become durable, and launches in flight together have none.
#[test]
fn tags_order_launches_by_streams_events_and_waits_alone_where_l1s_combine_stores() {
    for (program, lost) in [
        ("stream_event", false),
        ("stream_no_event", true),
        ("programmatic_wait", false),
        ("programmatic_no_wait", true),
    ] {
        let report = judged_on("scoped-table2", &format!("litmus/{program}"), &[], "epoch-tag", &[], false);
        let streams = report.outcome.streams.as_ref().expect("launches that may overlap");
        assert_eq!(streams.one_by_one, None, "{program}");
        assert_eq!(report.conditions[0].violated.map(|images| images > 0)[2], lost, "{program}: overtaking");
        assert!(lost || report.holds(), "{program}");
        // Nothing waits for lines to leave the caches.
        assert!(!report.conditions[0].violated.map(|images| images > 0)[0], "{program}: in the run");
    }
}

/// The paper's negative example, on its own machine (wavefronts of 64) and on one with warps of 32: the
/// program with barriers of the thread, and that with barriers of the workgroup at the same size.
#[test]
fn a_persist_barrier_of_too_narrow_a_scope_is_found_whatever_the_lanes_of_a_warp() {
    let size = [("CTAS", 1), ("BLOCK", 128), ("KEYS", 6), ("BELOW", 3), ("FAN", 5), ("ORDER", 5), ("SPAN", 60)];
    let right = [&size[..], &[("BARRIER", 2), ("LOGS", 0)]].concat();
    for machine in ["titan-x", "scoped-table2"] {
        let wrong = judged_on(machine, "litmus/tree_wi_barrier", &[], "nvw-fifo", &[], false);
        let params = &wrong.outcome.workload["params"];
        for (name, value) in size {
            assert_eq!(params[name], value, "the two programs differ in more than their barriers");
        }
        let parents = &wrong.conditions[0];
        assert_eq!((parents.expected, parents.as_expected), (Expected::Violated, true), "{machine}");
        assert!(parents.violated.iter().sum::<u64>() > 0 && wrong.holds(), "{machine}: {:?}", parents.violated);

        let right = judged_on(machine, "bplus_tree", &right, "nvw-fifo", &[], false);
        let judged: u64 = right.conditions[0].held.iter().sum();
        assert!(right.conditions.iter().all(|condition| condition.violated == [0; 3]), "{machine}");
        assert!(right.holds() && judged > 5_000, "{machine}: {judged} images");
    }
}

/// The definition allows what no machine here leaves, and no more than that.
#[test]
fn a_program_that_relies_on_what_barriers_wait_for_is_found_by_their_definition() {
    let judged = |program: &str, scheme: &str, by| {
        let recipe = Experiment::of(format!("litmus/{program}")).machine("scoped-table2").scheme(scheme);
        recipe.crash(&CrashRequest { by, ..CrashRequest::default() }).unwrap_or_else(|faults| panic!("{faults}"))
    };
    for scheme in ["nvw-fifo", "epoch-tag", "sbrp"] {
        let machine = judged("message_cta_barrier", scheme, Basis::Machine);
        // Barriers of epoch-tag do not wait, and with tags in the L2 no fence waits for memory.
        let held = machine.conditions[0].violated == [0; 3];
        assert_eq!((machine.holds(), held), (true, scheme != "epoch-tag"), "{scheme}: {:?}", machine.conditions);
        let definition = judged("message_cta_barrier", scheme, Basis::Definition);
        assert_eq!(definition.conditions[0].violated, [0, 0, 1], "{scheme}");
        // Of epoch-tag its manifest expects nothing.
        assert_eq!(definition.holds(), !held, "{scheme}");
        assert!(definition.level(JudgedLevel::Allowed).is_none(), "{scheme}");
        // A barrier between two stores of one CTA orders these by definition.
        let within = judged("scoped_release", scheme, Basis::Definition);
        let condition = &within.conditions[1];
        assert!(condition.violated == [0; 3] && condition.held[2] > 2, "{scheme}: {condition:?}");
    }
    // A program without barriers, and a scheme that knows no scopes.
    for (program, scheme) in [("word_atomic", "nvw-fifo"), ("scoped_release", "base")] {
        let recipe = Experiment::of(format!("litmus/{program}")).scheme(scheme);
        let told = recipe.crash(&CrashRequest { by: Basis::Definition, ..CrashRequest::default() });
        let told = told.map(|report| report.changes).unwrap_err().to_string();
        assert!(told.contains("has no persist barrier"), "{told}");
    }
}

/// What the programs of LightWSP's figures say of parameters other than the scheme's own.
#[test]
fn recoverable_regions_hold_with_any_hardware_but_not_with_the_paper_s_holes() {
    let violated = |program: &str, set: &[&str]| {
        let report = judged_with(&format!("litmus/lightwsp_{program}"), "light-wsp", set, true);
        let condition = &report.conditions[0];
        assert!(condition.held[0] > 0, "{program} {set:?}");
        (condition.violated[0] > 0, report.holds(), report)
    };
    for set in [
        &["controller.channels=2"][..],
        &["light_wsp.wpq_entries=2"],
        &["light_wsp.entry_bytes=8", "light_wsp.wpq_entries=8"],
        &["light_wsp.feb_entries=1"],
        &["light_wsp.path_mb_s=10"],
        &["light_wsp.id_bits=4", "sm.count=7"],
        &["light_wsp.owner=cta"],
        // Controllers at very different distances: the last has everything microseconds later.
        &["light_wsp.controller_step_ns=700"],
        &["light_wsp.controller_step_ns=700", "light_wsp.wpq_entries=2", "light_wsp.owner=cta"],
    ] {
        for program in ["spread", "lock", "id_inversion"] {
            let (violated, holds, report) = violated(program, set);
            assert!(!violated && holds, "{program} {set:?}: {:?}", report.level(JudgedLevel::Actual));
        }
    }
    // Fig. 6: without the search of buffers a load is stale. A slow path keeps the store on its way long enough.
    let slow = "light_wsp.path_mb_s=1";
    assert!(violated("stale_load", &[slow, "light_wsp.victims=stale"]).0);
    for policy in ["full", "half", "zero"] {
        let (violated, holds, report) = violated("stale_load", &[slow, &format!("light_wsp.victims={policy}")]);
        assert!(!violated && holds, "{policy}");
        assert!(report.outcome.scheme_counters["victim_conflicts_lines"] > 0, "{policy}");
    }
    let (_, holds, report) = violated("own_hit", &[]);
    assert!(holds && report.outcome.scheme_counters["wpq_hits"] > 0, "{:?}", report.outcome.scheme_counters);
    // The load's region is the oldest, which has not ended: the store is written with an undo log before the load is repeated.
    let (_, holds, report) = violated("own_hit", &["light_wsp.wpq_hit=wait"]);
    let counted = ["wpq_hits_waited", "wpq_hit_fallbacks"].map(|name| report.outcome.scheme_counters[name]);
    assert!(holds && counted.iter().all(|&count| count > 0), "{counted:?}");
    // L2 of the readings: IDs drawn at the boundary before the atomic invert critical sections. A slow path makes one thread late.
    let slow = "light_wsp.path_mb_s=1000";
    assert!(!violated("id_inversion", &[slow]).0);
    let (violated, _, report) = violated("id_inversion", &[slow, "light_wsp.id_draw=paper"]);
    assert!(violated && report.level(JudgedLevel::History).unwrap().verdict.failed > 0, "{:?}", report.conditions);
}

/// What a program does under a scheme that its manifest does not say.
fn unexpected(path: &str, scheme: &str, set: &[&str]) -> Vec<String> {
    let report = judged_with(path, scheme, set, scheme.starts_with("store"));
    let name = Path::new(path).file_stem().unwrap().display().to_string();
    let at = format!("{name} under {scheme} with {}", set.join(" "));
    let mut faults = Vec::new();
    if !report.ended_well() {
        faults.push(format!("{at}: {:?} {:?}", report.outcome.end, report.outcome.verification));
    }
    for condition in &report.conditions {
        let told = format!("{at}: {} ({:?})", condition.name, condition.expected);
        println!("{told}: held on {:?}, violated by {:?}", condition.held, condition.violated);
        if !condition.as_expected {
            let first = condition.first.as_ref().map(|first| first.failure.what.as_str());
            faults.push(format!("{told}: {:?} {:?} {first:?}", condition.held, condition.violated));
        }
    }
    if !report.holds() && faults.is_empty() {
        let first = report.judgements().find_map(|(_, judgement)| judgement.found.first());
        faults.push(format!("{at}: {:?}", first.map(|first| &first.failure)));
    }
    faults
}

/// Trees have thousands of states to judge under most schemes.
fn is_of_trees(path: &str) -> bool {
    path.contains("/tree_")
}

/// Schemes of which the manifests of trees expect something: only the whole product judges them under the others.
const OF_TREES: [&str; 3] = ["base", "nvw-fifo", "strict"];

/// Schemes under which a program meets other memories. Under every scheme trees are judged on one memory.
fn schemes_of(path: &str, product: Product) -> &'static [&'static str] {
    match product {
        Product::Whole if is_of_trees(path) => &["store+clwb", "strict"],
        Product::InTurn if is_of_trees(path) => &["strict"],
        _ => &["nt-store", "store+clwb", "strict"],
    }
}

/// How much of a product is tried.
#[derive(Clone, Copy, PartialEq)]
enum Product {
    /// All of it: minutes.
    Whole,
    /// Each program with each of the second factor, and of the third with the one whose turn it is.
    InTurn,
}

impl Product {
    /// Of the third factor.
    fn of<T>(self, turn: usize, third: &[T]) -> &[T] {
        let one = turn % third.len();
        if self == Product::Whole { third } else { &third[one..=one] }
    }
}

/// What the programs did on memories under their schemes that they do not say.
fn faults_on(memories: &[Vec<&str>], product: Product) -> Vec<String> {
    let of_program = |(nth, path): (usize, String)| {
        let on = |(memory, set): (usize, &Vec<&str>)| {
            let schemes = product.of(nth + memory, schemes_of(&path, product));
            schemes.iter().flat_map(|scheme| unexpected(&path, scheme, set)).collect::<Vec<_>>()
        };
        memories.iter().enumerate().flat_map(on).collect::<Vec<_>>()
    };
    programs().into_par_iter().enumerate().flat_map_iter(of_program).collect()
}

/// Rows that are written when they close or when the memory idles.
fn faults_where_open_rows_are_lost(product: Product) -> Vec<String> {
    let rows = ["persist.domain=media", "nvm.write_mode=row_buffer", "nvm.row_write_ns=320"];
    let when = ["nvm.row_write_when=idle", "nvm.row_write_when=close"];
    faults_on(&when.map(|when| [&rows[..], &[when]].concat()), product)
}

fn faults_behind_a_buffer(product: Product) -> Vec<String> {
    let lost = concat!("nvm.device=", env!("CARGO_MANIFEST_DIR"), "/tests/data/devices/lost-buffer.toml");
    faults_on(&[lost, "nvm.device=optane-100"].map(|device| vec!["persist.domain=media", device]), product)
}

fn faults_in_every_domain(product: Product) -> Vec<String> {
    let of_program = |(nth, path): (usize, String)| {
        let under = |(turn, scheme): (usize, &Arc<dyn Scheme>)| {
            // Regions need queues that survive and caches that do not; others are refused.
            let domains = match scheme.regions() {
                _ if product == Product::InTurn && is_of_trees(&path) && !OF_TREES.contains(&scheme.name()) => &[],
                Some(_) => &DOMAINS[1..2],
                None => product.of(nth + turn, &DOMAINS),
            };
            let set = domains.iter().map(|domain| format!("persist.domain={domain}"));
            set.flat_map(|set| unexpected(&path, scheme.name(), &[&set])).collect::<Vec<_>>()
        };
        catalogue::all().iter().enumerate().flat_map(under).collect::<Vec<_>>()
    };
    programs().into_par_iter().enumerate().flat_map_iter(of_program).collect()
}

#[test]
fn every_program_gives_what_it_says_where_open_rows_are_lost() {
    let faults = faults_where_open_rows_are_lost(Product::InTurn);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_program_gives_what_it_says_behind_a_buffer_lost_or_durable() {
    let faults = faults_behind_a_buffer(Product::InTurn);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_program_gives_what_it_says_under_every_scheme() {
    let faults = faults_in_every_domain(Product::InTurn);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
#[ignore = "five times as long as the three above: minutes"]
fn every_program_gives_what_it_says_under_every_scheme_in_every_domain_and_on_every_memory() {
    let of = [faults_where_open_rows_are_lost, faults_behind_a_buffer, faults_in_every_domain];
    let faults: Vec<String> = of.into_iter().flat_map(|faults| faults(Product::Whole)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
