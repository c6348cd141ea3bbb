//! Sweeps: results in the order of the points, independent of how many run at a time; failures and a stop keep what is done.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durawarp::run::{Conduct, run as simulate};
use durawarp::sweep::campaign::without_store;
use durawarp::sweep::host::memory_of;
use durawarp::sweep::runner::{Came, Need, Turn, run_each};
use durawarp::sweep::{Batch, Done, Progress, Workers};
use durawarp::{Experiment, Recipe};

fn recipe(elements: &str, scheme: &str) -> Recipe {
    let recipe = Experiment::of("vecadd").scheme(scheme).profile("ci").param("N", elements);
    recipe.set("sm.count", 2).reference(false)
}

const SIZES: [(&str, &str); 5] =
    [("300", "base"), ("900", "nt-store"), ("600", "store+clwb"), ("1500", "base"), ("1200", "strict")];

/// Points of different lengths, the shortest first.
fn batch(change: impl Fn(usize, Recipe) -> Recipe) -> Batch {
    let mut batch = Batch::default();
    for (at, (size, scheme)) in SIZES.into_iter().enumerate() {
        let recipe = change(at, recipe(size, scheme));
        let label = format!("{scheme} {size}");
        batch.add(&label, size.parse().unwrap(), recipe).unwrap_or_else(|faults| panic!("{faults}"));
    }
    batch
}

fn digests(results: &[Done]) -> Vec<String> {
    results.iter().map(|done| done.good().map_or_else(|| format!("{done:?}"), |good| good.digest.clone())).collect()
}

#[test]
fn points_that_share_a_reference_are_judged_as_single_runs_are() {
    let mut batch = Batch::default();
    for scheme in ["base", "nt-store", "strict", "base"] {
        batch.add(scheme, 1, recipe("600", scheme).reference(true)).unwrap_or_else(|faults| panic!("{faults}"));
    }
    for jobs in [1, 3] {
        let results = without_store(&batch, &Workers { jobs, ..Workers::default() });
        for (at, done) in results.iter().enumerate() {
            let alone = batch.experiment(at).unwrap().run(&Conduct::default()).outcome;
            let judged = |of: &durawarp::Outcome| of.verification.clone().map(|found| (found.passed, found.checks));
            let together = done.good().unwrap_or_else(|| panic!("{done:?}"));
            assert_eq!(judged(together), judged(&alone));
            assert!(judged(&alone).unwrap().1.to_string().contains("functional"));
        }
    }
}

#[test]
fn results_are_those_of_single_runs_in_the_order_of_the_points() {
    let batch = batch(|_, recipe| recipe);
    let alone = |at| simulate(batch.experiment(at).unwrap().gpu().unwrap(), &Conduct::default()).outcome.digest;
    let alone: Vec<String> = (0..SIZES.len()).map(alone).collect();
    for jobs in [1, 2, 4] {
        assert_eq!(digests(&without_store(&batch, &Workers { jobs, ..Workers::default() })), alone, "{jobs} at a time");
    }
    // Room for one at a time, and for none at all.
    for bytes in [memory_of(batch.content(3).2), 0] {
        assert_eq!(
            digests(&without_store(&batch, &Workers { jobs: 4, bytes, ..Workers::default() })),
            alone,
            "{bytes} bytes"
        );
    }
}

#[test]
fn what_comes_to_the_same_is_one_point() {
    let mut batch = batch(|_, recipe| recipe);
    let twin = recipe("1500", "base").changes(["sm.count = \"2\""]);
    assert_eq!(batch.add("the same, said otherwise", 0, twin).unwrap(), 3);
    assert_eq!(batch.add("another", 0, recipe("1500", "base").max_cycles(9)).unwrap(), 5);
    let faults = batch.add("wrong", 0, recipe("x", "strikt").machine("titan-y")).unwrap_err();
    let told = faults.to_string();
    assert!(["titan-y", "strikt", "`x`"].iter().all(|word| told.contains(word)), "{told}");
    assert_eq!(batch.points().len(), 6);
}

#[test]
fn the_longest_begins_first_and_memory_bounds_how_many_run() {
    let needs: Vec<Need> = [300, 900, 600, 1500, 1200].map(|work| Need { work, bytes: 10 }).to_vec();
    let order = Mutex::new(Vec::new());
    let none = |_: &Turn<'_>| Came::Of { result: (), failed: false, instructions: None };
    let came = |turn: &Turn<'_>| {
        order.lock().unwrap().push(needs[turn.point].work);
        none(turn)
    };
    run_each(&needs, &Workers { jobs: 1, ..Workers::default() }, came, |why| panic!("{why}"));
    assert_eq!(order.into_inner().unwrap(), [1500, 1200, 900, 600, 300]);

    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let came = |turn: &Turn<'_>| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(20));
        now.fetch_sub(1, Ordering::SeqCst);
        none(turn)
    };
    run_each(&needs, &Workers { jobs: 4, bytes: 20, ..Workers::default() }, came, |why| panic!("{why}"));
    assert_eq!(most.into_inner(), 2, "two fit");
}

#[test]
fn the_longest_of_a_batch_begins_first() {
    let batch = batch(|_, recipe| recipe);
    // With one at a time, the first that is done is the first that began: warp instructions tell which it was.
    let first: Mutex<Option<u64>> = Mutex::new(None);
    let observer = |now: &Progress| {
        let mut first = first.lock().unwrap();
        if now.done == 1 && first.is_none() {
            *first = Some(now.warp_instructions);
        }
    };
    let results = without_store(&batch, &Workers { jobs: 1, observer: Some(&observer), ..Workers::default() });
    assert_eq!(first.into_inner().unwrap(), Some(results[3].good().unwrap().warp_instructions()));
}

#[test]
fn a_point_that_fails_or_panics_is_its_own_result() {
    let folder = crate::cli_common::folder("sweep/wrong");
    crate::cli_common::wrong_from(&folder, 0);
    let wrong = folder.join("wrong").to_str().unwrap().to_owned();
    let batch = batch(|at, recipe| if at == 1 { recipe.set("workload", &wrong) } else { recipe });
    let seen: Mutex<Option<Progress>> = Mutex::new(None);
    let observer = |now: &Progress| *seen.lock().unwrap() = Some(*now);
    let sweep = Workers { jobs: 2, observer: Some(&observer), ..Workers::default() };
    let results = without_store(&batch, &sweep);
    let Done::Failed { why, outcome: Some(_) } = &results[1] else { panic!("{:?}", results[1]) };
    assert!(why.contains("the result is wrong"), "{why}");
    assert!([0, 2, 3, 4].iter().all(|&at| results[at].good().is_some()));
    let last = seen.into_inner().unwrap().unwrap();
    assert_eq!((last.points, last.done, last.running, last.failed), (5, 5, 0, 1));
    assert!(last.warp_instructions > 0 && last.left_s == Some(0.0));

    let needs = vec![Need { work: 1, bytes: 0 }; 3];
    let came = |turn: &Turn<'_>| {
        assert!(turn.point != 1, "made up");
        Came::Of { result: "good".to_owned(), failed: false, instructions: None }
    };
    let results = run_each(&needs, &Workers { jobs: 2, ..Workers::default() }, came, |why| why);
    let results: Vec<String> = results.into_iter().flatten().collect();
    assert_eq!((results[0].as_str(), results[2].as_str()), ("good", "good"));
    assert!(results[1].contains("defect: made up"), "{results:?}");
}

#[test]
fn a_stop_keeps_what_is_done_and_begins_nothing() {
    let batch = batch(|_, recipe| recipe);
    let stop = AtomicBool::new(false);
    // Stopped while the second longest runs.
    let observer = |now: &Progress| {
        if now.done == 1 && now.running == 1 {
            stop.store(true, Ordering::SeqCst);
        }
    };
    let sweep = Workers { jobs: 1, stop: Some(&stop), observer: Some(&observer), ..Workers::default() };
    let results = without_store(&batch, &sweep);
    let good: Vec<usize> = (0..5).filter(|&at| results[at].good().is_some()).collect();
    assert_eq!(good, [3]);
    assert!([0, 1, 2, 4].iter().all(|&at| results[at] == Done::NotRun));
}

#[test]
fn cores_that_would_be_idle_go_to_the_last_points() {
    let threads = |points: usize, jobs: usize| -> Vec<usize> {
        let needs = vec![Need { work: 1, bytes: 0 }; points];
        let seen = Mutex::new(Vec::new());
        let came = |turn: &Turn<'_>| {
            seen.lock().unwrap().push(turn.threads);
            Came::Of { result: (), failed: false, instructions: None }
        };
        run_each(&needs, &Workers { jobs, ..Workers::default() }, came, |why| panic!("{why}"));
        seen.into_inner().unwrap()
    };
    let many = threads(40, 1);
    assert!(many == [1; 40], "{many:?}");
    let few = threads(2, 8);
    // The second began beside the first, or after it.
    assert!(few.len() == 2 && few.iter().all(|&threads| threads == 4 || threads == 8) && few.contains(&4), "{few:?}");
    assert_eq!(threads(1, 8), [8]);
}

#[test]
fn a_point_that_is_put_off_comes_again_after_all_others() {
    let needs: Vec<Need> = (1..5).map(|work| Need { work, bytes: 0 }).collect();
    let order = Mutex::new(Vec::new());
    let came = |turn: &Turn<'_>| {
        order.lock().unwrap().push((turn.point, turn.again));
        match (turn.point, turn.again) {
            (3, false) => Came::Later,
            (point, _) => Came::Of { result: point, failed: false, instructions: None },
        }
    };
    let results = run_each(&needs, &Workers { jobs: 1, ..Workers::default() }, came, |why| panic!("{why}"));
    assert_eq!(order.into_inner().unwrap(), [(3, false), (2, false), (1, false), (0, false), (3, true)]);
    assert_eq!(results, [0, 1, 2, 3].map(Some));
}
