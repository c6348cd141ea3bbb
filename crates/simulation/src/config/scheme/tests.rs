//! Schemes with parameters, read from names, files and overrides: here with AGPM's parameters and a scheme
//! that only keeps them, so that nothing depends on what AGPM does with them.

use super::*;
use durawarp_persist::{HandlerPlace, HostHandler, SmHandler};
use durawarp_schemes::agpm::parameters::{AgpmSpec, DEFAULTS, Decision, Hit, ThresholdRule};
use durawarp_schemes::baseline::{BASE, NT_STORE};

/// A scheme that is its parameters, with the handlers of another.
#[derive(Debug, Clone, PartialEq)]
struct Probe(AgpmSpec);

impl Scheme for Probe {
    fn name(&self) -> &'static str {
        "agpm"
    }

    fn description(&self) -> &'static str {
        "a probe"
    }

    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        NT_STORE.sm_handler(place)
    }

    fn host_handler(&self) -> Box<dyn HostHandler> {
        NT_STORE.host_handler()
    }

    fn logs(&self) -> bool {
        true
    }
}

fn catalogue() -> Vec<Entry> {
    let probe = Entry::parametrised(DEFAULTS, AgpmSpec::faults, |spec| Arc::new(Probe(spec)));
    vec![Entry::fixed(BASE), probe, Entry::fixed(NT_STORE)]
}

fn load_each(names: &[&str], sets: &[&str]) -> Result<Vec<SchemeConfig>, Diagnostics> {
    let overrides: Vec<Override> = sets.iter().map(|text| Override::parse(text).unwrap()).collect();
    load_of(&catalogue(), Compute::Gpu, names, &overrides)
}

fn load(name: &str, sets: &[&str]) -> Result<SchemeConfig, Diagnostics> {
    load_each(&[name], sets).map(|mut all| all.swap_remove(0))
}

/// Loads a scheme file with this text.
fn load_text(file: &str, text: &str, sets: &[&str]) -> Result<SchemeConfig, Diagnostics> {
    load(&written(file, text), sets)
}

fn written(file: &str, text: &str) -> String {
    let folder = std::env::temp_dir().join(format!("durawarp-scheme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(file);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// `line:column message (help)` of each fault.
fn faults<T: std::fmt::Debug>(result: Result<T, Diagnostics>) -> Vec<String> {
    let shown = |fault: Diagnostic| {
        let help = fault.help.map_or_else(String::new, |help| format!(" ({help})"));
        format!("{}:{} {}{help}", fault.span.line, fault.span.column, fault.message)
    };
    result.unwrap_err().0.into_iter().map(shown).collect()
}

/// The parameters that a scheme was built of.
fn spec(scheme: &SchemeConfig) -> AgpmSpec {
    let values = scheme.values.iter().map(|(key, value)| (key.trim_start_matches("agpm.").to_owned(), value.clone()));
    let spec = serde_json::from_value(Value::Object(values.collect())).unwrap();
    assert_eq!(format!("{:?}", scheme.built), format!("{:?}", Probe(AgpmSpec::clone(&spec))));
    spec
}

#[test]
fn a_name_is_its_defaults_and_every_one_has_a_source() {
    let scheme = load("agpm", &[]).unwrap();
    assert_eq!((scheme.name.as_str(), scheme.description.as_str()), ("agpm", "a probe"));
    let spec = spec(&scheme);
    assert_eq!((spec.threshold_logs, spec.entries, spec.counter_bits, spec.reservation_bytes), (10_000, 1024, 5, 89));
    assert_eq!((spec.hit, spec.threshold_rule, spec.charge_reservation), (Hit::Shadow, ThresholdRule::Clamped, false));
    assert_eq!(format!("{:?}", scheme.built), format!("{:?}", catalogue()[1].scheme), "the catalogue has the same");
    assert_eq!(scheme.sources.len(), scheme.values.len());
    assert_eq!(scheme.sources["agpm.threshold_logs"], "AGPM section IV-A");
    assert!(scheme.sources.values().all(|source| source.starts_with("AGPM") || source.starts_with("chosen: ")));
    let chosen = scheme.sources.values().filter(|source| source.starts_with("chosen")).count();
    assert_eq!(scheme.assumptions().len(), chosen);
}

#[test]
fn overrides_win_and_are_the_users() {
    let scheme = load("agpm", &["agpm.threshold_logs=5000", "agpm.hit=cache", "agpm.charge_reservation=true"]).unwrap();
    let spec = spec(&scheme);
    assert_eq!((spec.threshold_logs, spec.hit, spec.charge_reservation), (5000, Hit::Cache, true));
    assert!(scheme.assumptions().contains(&("agpm.threshold_logs", "user: --set")));
}

#[test]
fn a_file_starts_from_its_scheme_and_may_start_from_a_file() {
    let own = "scheme = \"agpm\"\nname = \"each\"\n[agpm]\nl1_buffers = \"each\"\nfew_logs = { value = 7, source = \"mine\" }\n";
    let each = load_text("each.toml", own, &["agpm.few_logs_over=period"]).unwrap();
    assert_eq!(
        (each.name.as_str(), each.built.name(), each.sources["agpm.few_logs"].as_str()),
        ("each", "agpm", "mine")
    );
    assert!(each.assumptions().contains(&("agpm.l1_buffers", "scheme file without a source")));
    let heir = load_text("heir.toml", "scheme = \"each.toml\"\n[agpm]\ndecision = \"sm\"\n", &[]).unwrap();
    let spec = spec(&heir);
    assert_eq!((spec.few_logs, spec.decision, spec.threshold_logs), (7, Decision::Sm, 10_000));
    let fixed = load_text("fixed.toml", "scheme = \"nt-store\"\nname = \"mine\"\n", &[]).unwrap();
    assert_eq!((fixed.name.as_str(), fixed.built.name(), fixed.values.len()), ("mine", "nt-store", 0));
}

#[test]
fn what_is_shown_is_a_scheme_file_that_means_the_same() {
    for (name, sets) in [("agpm", &["agpm.entries=64", "agpm.path=alternate"][..]), ("base", &[])] {
        let scheme = load(name, sets).unwrap();
        let again = load_text(&format!("again-{name}.toml"), &scheme.to_toml(), &[]).unwrap();
        assert_eq!(again.to_toml(), scheme.to_toml());
        assert_eq!(format!("{:?}", again), format!("{:?}", scheme));
    }
    assert!(load("agpm", &[]).unwrap().to_toml().contains("few_logs = { value = 100, source = \"AGPM Table III"));
}

#[test]
fn all_faults_of_a_file_come_at_once_with_their_places() {
    let text = "scheme = \"agpm\"\nnam = 1\n[agpm]\ntreshold_logs = 1\nhit = \"shade\"\ncounter_bits = 9\nfew_logs = true\n[nt_store]\nx = 1\n";
    let found = faults(load_text("bad.toml", text, &[]));
    let expected = [
        "2:1 unknown key `nam` in a scheme file (did you mean `name`?)",
        "4:1 unknown key `agpm.treshold_logs` (did you mean `agpm.threshold_logs`?)",
        "5:7 `hit` expects one of shadow, cache; got \"shade\"",
        "6:16 `counter_bits` expects a whole number from 1 to 8; got 9",
        "7:12 `few_logs` expects a whole number from 0 to 1000000000; got true",
        "8:2 `[nt_store]` has the parameters of scheme `nt-store`; this is `agpm`",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\nshould start with\n{expected}");
    }
}

#[test]
fn values_that_do_not_go_together_are_blamed_where_they_stand() {
    let text = "scheme = \"agpm\"\n[agpm]\nthreshold_min_logs = 200000\nentries = 33\n";
    let found = faults(load_text("together.toml", text, &["agpm.decision=sm"]));
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("0:0 `agpm.decision`: "), "{found:#?}");
    assert_eq!(found[1], "3:22 `agpm.threshold_min_logs`: 200000 is more than threshold_max_logs (100000)");
    assert_eq!(found[2], "4:11 `agpm.entries`: 33 entries do not divide evenly over 2 ways");
}

#[test]
fn overrides_report_unknown_keys_and_wrong_values() {
    let found = faults(load("agpm", &["agpm.treshold_logs=1", "agpm.key=hom", "agpm.step_percent=0", "l2.slices=1"]));
    assert_eq!(found.len(), 4, "{found:#?}");
    for part in [
        "unknown key `agpm.treshold_logs` (did you mean `agpm.threshold_logs`?)",
        "(did you mean \"home\"?)",
        "`step_percent` expects a whole number from 1 to 99; got 0",
        "there is no table `l2` in a scheme (it is a machine's)",
    ] {
        assert!(found.iter().any(|fault| fault.contains(part)), "no `{part}` in {found:#?}");
    }
}

#[test]
fn an_override_of_a_scheme_that_is_not_run_is_a_fault_and_of_one_among_several_is_not() {
    let found = faults(load("nt-store", &["agpm.entries=64"]));
    assert_eq!(found, ["0:0 `agpm.entries` is of scheme `agpm`, but the scheme is `nt-store`"]);
    let found = faults(load_each(&["base", "nt-store"], &["agpm.entries=64"]));
    assert_eq!(found, ["0:0 `agpm.entries` is of scheme `agpm`, which is none of the schemes base, nt-store"]);
    let found = faults(load("nt-store", &["nt_store.x=1"]));
    assert_eq!(found, ["0:0 unknown key `nt_store.x`: scheme `nt-store` has no parameters"]);
    let small = written("small.toml", "scheme = \"agpm\"\nname = \"small\"\n[agpm]\nentries = 32\nfew_logs = 5\n");
    let all = load_each(&["base", "agpm", &small], &["agpm.entries=64"]).unwrap();
    assert_eq!(all.iter().map(|scheme| scheme.name.as_str()).collect::<Vec<_>>(), ["base", "agpm", "small"]);
    assert_eq!((spec(&all[1]).entries, spec(&all[1]).few_logs), (64, 100));
    assert_eq!((spec(&all[2]).entries, spec(&all[2]).few_logs), (64, 5));
    assert_eq!(faults(load_each(&["agpm", &small], &["agpm.entires=64"])).len(), 1, "one override, one fault");
}

#[test]
fn a_file_without_a_scheme_and_unknown_names_are_told() {
    let found = faults(load_text("none.toml", "[agpm]\nentries = 2\n", &[]));
    assert!(found[0].contains("a scheme file says what it starts from: scheme = \"NAME\""), "{found:#?}");
    let found = faults(load_text("wrong.toml", "scheme = \"agmp\"\n[agpm]\nentires = 2\n", &["agpm.key=slot"]));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("1:10 there is no scheme `agmp`") && found[0].contains("`agpm`?"), "{found:#?}");
    assert!(faults(load("nowhere.toml", &[]))[0].contains("cannot read scheme file `nowhere.toml`"));
    assert!(faults(load("agmp", &[]))[0].contains("did you mean `agpm`?"));
    assert!(faults(load_text("circle.toml", "scheme = \"circle.toml\"\n", &[]))[0].contains("circle"));
}

#[test]
fn every_scheme_of_the_catalogue_is_its_defaults_and_survives_being_written_out() {
    for entry in catalogue::entries() {
        let scheme = SchemeConfig::load(entry.name(), &[]).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(format!("{:?}", scheme.built), format!("{:?}", entry.scheme));
        let keys = entry.parameters.as_ref().map_or(0, |parameters| parameters.keys.len());
        assert_eq!((scheme.values.len(), scheme.sources.len()), (keys, keys));
        let file = written(&format!("all-{}.toml", entry.scheme.name()), &scheme.to_toml());
        let again = SchemeConfig::load(&file, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(again.to_toml(), scheme.to_toml());
    }
}
