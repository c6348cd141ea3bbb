//! Plans of changed numbers, and effects of a few that are run.

use super::*;
use durawarp_simulation::sweep::{Workers, campaign};

fn request(keys: &[&str]) -> Request {
    let over = |text: &str| Override::parse(text).unwrap();
    Request {
        machine: "titan-x".to_owned(),
        machine_set: ["sm.count=2", "l2.slices=12"].map(over).to_vec(),
        scheme: "base".to_owned(),
        scheme_set: Vec::new(),
        workloads: vec!["vecadd".to_owned()],
        profile: "ci".to_owned(),
        seed: 0,
        all: false,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
    }
}

fn told(request: &Request) -> Vec<String> {
    Plan::new(request).unwrap_err().0.into_iter().map(|fault| fault.to_string()).collect()
}

#[test]
fn whole_numbers_stay_whole_and_what_has_no_half_is_not_halved() {
    let both = |value: Value| Factor::ALL.map(|factor| factor.of(&value).unwrap_or_default());
    assert_eq!(both(64.into()), ["32", "128"]);
    assert_eq!(both(5.into()), ["2", "10"]);
    assert_eq!(both(1.into()), ["", "2"]);
    assert_eq!(both(0.into()), ["", ""]);
    assert_eq!(both(0.8.into()), ["0.4", "1.6"]);
    assert_eq!(both(0.833.into()), ["0.416", "1.666"], "whole picoseconds");
    assert_eq!(both(0.0.into()), ["", ""]);
}

#[test]
fn a_plan_varies_what_has_no_source_what_is_asked_for_or_everything() {
    let keys = |request: &Request| {
        let plan = Plan::new(request).unwrap();
        plan.numbers.iter().map(|number| number.key.clone()).collect::<Vec<_>>()
    };
    let unsourced = keys(&request(&[]));
    assert!(unsourced.contains(&"dispatch.command_ns".to_owned()), "chosen");
    assert!(unsourced.contains(&"sm.count".to_owned()), "set by the user");
    assert!(!unsourced.contains(&"dram.banks".to_owned()), "SM6_TITANX's");
    assert!(!unsourced.contains(&"l2.inclusive".to_owned()), "a word");
    assert_eq!(keys(&request(&["dram.banks", "l2.ways"])), ["dram.banks", "l2.ways"]);
    let all = keys(&Request { all: true, ..request(&[]) });
    assert!(all.len() > unsourced.len() && all.contains(&"dram.banks".to_owned()));
}

#[test]
fn keys_that_are_not_there_and_words_are_told_together() {
    let [missing, word] = &told(&request(&["l2.way", "crossbar.switch"]))[..] else { panic!("two faults") };
    assert!(missing.contains("no parameter `l2.way`") && missing.contains("l2.ways"), "{missing}");
    assert!(word.contains("`crossbar.switch` is not a number"), "{word}");
    let wrong = Request { workloads: vec!["vecad".to_owned()], machine: "titan".to_owned(), ..request(&[]) };
    assert_eq!(told(&wrong).len(), 2);
}

#[test]
fn effects_are_of_cycles_the_largest_first_and_what_a_machine_does_not_take_is_told() {
    let plan = Plan::new(&request(&["nvm.banks", "sm.warp_size", "l2.pipeline_cycles"])).unwrap();
    let results = campaign::without_store(plan.batch(), &Workers { jobs: 1, bytes: 1 << 30, ..Workers::default() });
    let found = Sensitivity::of(&plan, &results);
    let of = |key: &str| found.effects.iter().find(|effect| effect.key == key).unwrap();
    let shares = |key: &str| of(key).spreads.each_ref().map(|spread| spread.median());
    let [Some(halved), Some(doubled)] = shares("l2.pipeline_cycles") else { panic!("both were run") };
    assert!(halved < 0.0 && doubled > 0.0, "{halved} {doubled}");
    assert_eq!(shares("nvm.banks"), [Some(0.0); 2], "vecadd has nothing in NVM");
    assert_eq!(
        of("sm.warp_size").spreads[0],
        Spread::Not("16: `warp_size` expects a whole number from 32 to 64; got 16".to_owned())
    );
    assert_eq!(found.effects.last().unwrap().key, "nvm.banks");

    let text = found.text();
    assert!(text.contains("sm.warp_size: 16: `warp_size` expects"), "{text}");
    let csv = found.csv();
    let rows: Vec<&str> = csv.lines().filter(|line| line.starts_with("l2.pipeline_cycles,120,")).collect();
    let Spread::Of(_, changes) = &of("l2.pipeline_cycles").spreads[1] else { panic!("it was run") };
    let last = format!(",doubled,240,vecadd,{},{}", changes[0].base_cycles, changes[0].cycles);
    assert!(rows.len() == 2 && rows[1].ends_with(&last), "{csv}");
    let table = found.table();
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
}

#[test]
fn a_spread_tells_its_median_and_the_first_of_its_largest_changes() {
    let change = |workload: &str, cycles: u64| Change { workload: workload.to_owned(), base_cycles: 100, cycles };
    let spread =
        Spread::Of("2".to_owned(), vec![change("a", 101), change("b", 80), change("c", 120), change("d", 100)]);
    assert_eq!(spread.most().map(|change| change.workload.as_str()), Some("b"));
    assert!((spread.median().unwrap() - 0.01).abs() < 1e-9);
    assert_eq!((Spread::Not(String::new()).median(), Spread::Of(String::new(), vec![]).most()), (None, None));
}
