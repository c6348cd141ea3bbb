//! Sweeps: results in the order of the points, independent of how many run at a time; failures and a stop keep what is done.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durawarp::config::{MachineConfig, Override};
use durawarp::run::{Conduct, Experiment, run as simulate};
use durawarp::schemes::catalogue;
use durawarp::sweep::runner::{Came, Need, Turn, run_each, run_with};
use durawarp::sweep::{Done, Point, Progress, Sweep, run};
use durawarp::workload::{Choice, Workload};

fn experiment(workload: &str, elements: &str, scheme: &str) -> Experiment {
    let overrides = [Override::parse("sm.count=2").unwrap()];
    let scheme = catalogue::find(scheme).unwrap();
    let params = vec![("N".to_owned(), elements.to_owned())];
    let choice = Choice { profile: Some("ci".to_owned()), params, logs: scheme.logs(), ..Choice::default() };
    Experiment {
        machine: MachineConfig::load("agpm-table4", &overrides).unwrap(),
        workload: Workload::load(workload).unwrap().resolve(&choice).unwrap_or_else(|faults| panic!("{faults}")),
        scheme: scheme.into(),
        max_cycles: None,
        reference: false,
    }
}

/// Points of different lengths, the shortest first.
fn points() -> Vec<Point> {
    let sizes = [("300", "base"), ("900", "nt-store"), ("600", "store+clwb"), ("1500", "base"), ("1200", "strict")];
    let point = |(size, scheme): (&str, &str)| {
        Point::new(format!("{scheme} {size}"), experiment("vecadd", size, scheme), size.parse().unwrap())
    };
    sizes.into_iter().map(point).collect()
}

fn digests(results: &[Done]) -> Vec<String> {
    results.iter().map(|done| done.good().map_or_else(|| format!("{done:?}"), |good| good.digest.clone())).collect()
}

#[test]
fn results_are_those_of_single_runs_in_the_order_of_the_points() {
    let points = points();
    let conduct = Conduct::default();
    let alone: Vec<String> = points.iter().map(|p| simulate(&p.experiment, &conduct).outcome.digest).collect();
    for jobs in [1, 2, 4] {
        assert_eq!(digests(&run(&points, &Sweep { jobs, ..Sweep::default() })), alone, "{jobs} at a time");
    }
    // Room for one at a time, and for none at all.
    for bytes in [points[3].bytes, 0] {
        assert_eq!(digests(&run(&points, &Sweep { jobs: 4, bytes, ..Sweep::default() })), alone, "{bytes} bytes");
    }
}

#[test]
fn the_longest_begins_first_and_memory_bounds_how_many_run() {
    let points = points();
    let order = Mutex::new(Vec::new());
    run_with(&points, &Sweep { jobs: 1, ..Sweep::default() }, |point, _| {
        order.lock().unwrap().push(point.work);
        Done::NotRun
    });
    assert_eq!(order.into_inner().unwrap(), [1500, 1200, 900, 600, 300]);

    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let bytes = 2 * points.iter().map(|point| point.bytes).max().unwrap();
    let equal: Vec<Point> = points.iter().map(|point| Point { bytes: bytes / 2, ..point.clone() }).collect();
    run_with(&equal, &Sweep { jobs: 4, bytes, ..Sweep::default() }, |_, _| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(20));
        now.fetch_sub(1, Ordering::SeqCst);
        Done::NotRun
    });
    assert_eq!(most.into_inner(), 2, "two fit");
}

#[test]
fn a_point_that_fails_or_panics_is_its_own_result() {
    let mut points = points();
    points[1].experiment.max_cycles = Some(10);
    let seen: Mutex<Option<Progress>> = Mutex::new(None);
    let observer = |now: &Progress| *seen.lock().unwrap() = Some(*now);
    let sweep = Sweep { jobs: 2, observer: Some(&observer), ..Sweep::default() };
    let results = run_with(&points, &sweep, |point, _| {
        assert!(point.work != 600, "made up");
        Done::of(simulate(&point.experiment, &Conduct::default()).outcome)
    });
    let why = |done: &Done| match done {
        Done::Failed { why, outcome } => format!("{why} {}", outcome.is_some()),
        other => panic!("{other:?}"),
    };
    assert!(why(&results[1]).contains("cycle limit") && why(&results[1]).ends_with("true"));
    assert!(why(&results[2]).contains("made up") && why(&results[2]).ends_with("false"));
    assert!([0, 3, 4].iter().all(|&at| results[at].good().is_some()));
    let last = seen.into_inner().unwrap().unwrap();
    assert_eq!((last.points, last.done, last.running, last.failed), (5, 5, 0, 2));
    assert!(last.warp_instructions > 0 && last.left_s == Some(0.0));
}

#[test]
fn a_stop_keeps_what_is_done_and_begins_nothing() {
    let points = points();
    let stop = AtomicBool::new(false);
    let begun = AtomicUsize::new(0);
    let sweep = Sweep { jobs: 1, stop: Some(&stop), ..Sweep::default() };
    let results = run_with(&points, &sweep, |point, _| {
        if begun.fetch_add(1, Ordering::SeqCst) == 1 {
            stop.store(true, Ordering::SeqCst);
        }
        let conduct = Conduct { stop: sweep.stop, ..Conduct::default() };
        Done::of(simulate(&point.experiment, &conduct).outcome)
    });
    assert_eq!(begun.into_inner(), 2);
    // The two longest had begun: one was done before the stop, one was cut off.
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
        run_each(&needs, &Sweep { jobs, ..Sweep::default() }, came, |why| panic!("{why}"));
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
    let results = run_each(&needs, &Sweep { jobs: 1, ..Sweep::default() }, came, |why| panic!("{why}"));
    assert_eq!(order.into_inner().unwrap(), [(3, false), (2, false), (1, false), (0, false), (3, true)]);
    assert_eq!(results, [0, 1, 2, 3].map(Some));
}
