//! Schemes from names and files, in an experiment and in its outcome. What is wrong with files and overrides is tested beside
//! the reading (`config::scheme`), on a scheme with parameters that is not built in.

use durawarp::config::{Override, SchemeConfig};
use durawarp::outcome::Outcome;
use durawarp::run::{Conduct, Experiment};
use durawarp::schemes::catalogue;
use durawarp::spec::Kind;

fn outcome(scheme: SchemeConfig) -> Outcome {
    let recipe = Experiment::of("vecadd").scheme(scheme).profile("ci").param("N", 200).set("sm.count", 2);
    recipe.reference(false).run().unwrap()
}

fn outcome_on_cores(scheme: SchemeConfig) -> Outcome {
    let recipe = Experiment::of("spin_counter").scheme(scheme).profile("ci").param("OPS", 10).param("THREADS", 1);
    // One controller and one hart, as some schemes need.
    recipe.machine("broi-cpu").set("core.harts", 1).build_any().unwrap().run(&Conduct::default()).outcome
}

#[test]
fn an_outcome_holds_the_schemes_parameters_with_their_sources_and_survives_json() {
    let mut scheme = SchemeConfig::load("strict", &[]).unwrap();
    for (key, value, source) in [("lines", 3, "user: --set"), ("words", 4, "a paper"), ("pages", 5, "chosen: why not")]
    {
        scheme.values.insert(format!("strict.{key}"), value.into());
        scheme.sources.insert(format!("strict.{key}"), source.to_owned());
    }
    scheme.name = "mine".to_owned();
    let outcome = outcome(scheme);
    assert_eq!((outcome.scheme.as_str(), outcome.scheme_name()), ("strict", "mine"));
    let words = &outcome.scheme_parameters["strict.words"];
    assert_eq!((words.value.clone(), words.source.as_str()), (4.into(), "a paper"));
    let assumed: Vec<&str> = outcome.assumptions().into_iter().map(|(key, _)| key).collect();
    assert!(assumed.contains(&"strict.lines") && assumed.contains(&"strict.pages"), "{assumed:?}");
    assert!(!assumed.contains(&"strict.words") && assumed.contains(&"sm.count"), "{assumed:?}");
    let mut json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(serde_json::from_value::<Outcome>(json.clone()).unwrap(), outcome);
    // Written before schemes had parameters.
    json.as_object_mut().unwrap().retain(|key, _| !key.starts_with("scheme_"));
    let old: Outcome = serde_json::from_value(json).unwrap();
    assert_eq!((old.scheme_name(), old.scheme_parameters.len()), ("strict", 0));
}

#[test]
fn a_scheme_by_its_own_name_is_no_variant() {
    for entry in catalogue::entries() {
        let scheme = SchemeConfig::load(entry.name(), &[]).unwrap();
        assert_eq!(scheme.table(), entry.table());
        let outcome = if scheme.built.machines().gpu { outcome(scheme) } else { outcome_on_cores(scheme) };
        assert_eq!((outcome.scheme.as_str(), &outcome.scheme_variant), (entry.name(), &None));
        assert_eq!(
            outcome.scheme_parameters.len(),
            entry.parameters.as_ref().map_or(0, |parameters| parameters.keys.len())
        );
    }
}

#[test]
fn every_parameter_of_every_scheme_can_be_set_to_what_it_may_be() {
    for entry in catalogue::entries() {
        for key in entry.parameters.iter().flat_map(|parameters| parameters.keys) {
            let value = match key.kind {
                Kind::Sizes => "0,8".to_owned(),
                Kind::Whole { min, .. } => min.to_string(),
                Kind::Nanos | Kind::Megahertz | Kind::Picojoules => "1.5".to_owned(),
                Kind::Flag => "true".to_owned(),
                Kind::Text => "a text".to_owned(),
                Kind::Choice(names) => names[names.len() - 1].to_owned(),
            };
            let name = format!("{}.{}", entry.table(), key.name);
            let set = Override::parse(&format!("{name}={value}")).unwrap();
            // Values may not go with the others: then the fault names the key, or the one that it contradicts.
            match SchemeConfig::load(entry.name(), &[set]) {
                Ok(scheme) => assert_eq!(scheme.sources[&name], "user: --set"),
                Err(faults) => assert!(faults.0.iter().all(|fault| fault.message.contains(&entry.table())), "{faults}"),
            }
        }
    }
}
