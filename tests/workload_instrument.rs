//! Undo logging added to plain kernels: the same results, complete flags, old values in the logs, and the text itself.
//!
//! Every built-in workload with an `[instrument]` runs here, and small ones that a test writes itself.

mod workload_common;

use std::collections::BTreeSet;

use durawarp::kernel::functional::Limits;
use durawarp::persist::undo::{COMPLETE, UndoLog};
use durawarp::workload::{Choice, Evidence, FlagBarrier, FunctionalRun, Mode, Outcome, Overrides, Resolved, Workload};
use workload_common::{folder, load, shown};

fn resolved(workload: &Workload, choice: &Choice) -> Resolved {
    workload.resolve(choice).unwrap_or_else(|faults| panic!("{faults}"))
}

fn run(resolved: &Resolved) -> FunctionalRun {
    resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn undo(resolved: &Resolved) -> std::sync::Arc<UndoLog> {
    resolved.undo().unwrap_or_else(|fault| panic!("{fault}")).expect("it keeps logs")
}

/// The instrumented run ends as the plain one, with complete flags and the old values in the logs.
fn check_sound(workload: &Workload, choice: &Choice) {
    let name = workload.name();
    let plain = resolved(workload, &Choice { logs: false, ..choice.clone() });
    let with = resolved(workload, &Choice { logs: true, ..choice.clone() });
    let (reference, found) = (run(&plain), run(&with));
    let verdict =
        with.verify(found.memory(), found.bindings(), Evidence { functional: Some(&reference), metrics: None });
    assert!(verdict.passed(), "{name}: {verdict:#?}");
    assert!(verdict.checks.iter().all(|check| check.outcome == Outcome::Passed));
    assert!(plain.undo().unwrap().is_none(), "{name}: a plain run has no transactions");
    let same = |one: &Resolved| one.describe().buffers.into_iter().map(|b| (b.name, b.address)).collect::<Vec<_>>();
    assert_eq!(same(&plain), same(&with), "{name}: addresses");

    let undo = undo(&with);
    assert!(!undo.transactions.is_empty(), "{name}");
    assert!(undo.transactions.is_sorted_by_key(|transaction| (transaction.launch, transaction.cta)));
    let flags: BTreeSet<u64> = undo.transactions.iter().map(|transaction| transaction.flag).collect();
    assert_eq!(flags.len(), undo.transactions.len(), "{name}: a flag a transaction");
    let expected = with.expected(&Limits::default()).unwrap();
    let last = undo.transactions.last().unwrap().launch;
    for (transaction, (old, new)) in undo.transactions.iter().zip(&expected) {
        assert_eq!(found.memory().read_u32s(transaction.flag, 1).unwrap(), [COMPLETE], "{name}: {transaction:?}");
        let mut at = 0;
        for slot in &transaction.slots {
            let bytes = slot.bytes as usize;
            // A log serves every launch: what an earlier one kept there may be overwritten.
            let shared = undo.transactions.iter().any(|other| {
                other.launch > transaction.launch && other.slots.iter().any(|later| later.log == slot.log)
            });
            if transaction.launch == last || !shared {
                assert_eq!(found.memory().read(slot.log, bytes).unwrap(), &old[at..at + bytes], "{name}: {slot:?}");
                assert_eq!(found.memory().read(slot.home, bytes).unwrap(), &new[at..at + bytes], "{name}: {slot:?}");
            }
            at += bytes;
        }
        assert_eq!((old.len(), new.len()), (at, at));
    }
}

fn ci() -> Choice {
    Choice { profile: Some("ci".to_owned()), ..Choice::default() }
}

#[test]
fn every_instrumented_workload_ends_as_the_plain_one_with_its_flags_and_logs_complete() {
    let mut modes = BTreeSet::new();
    for listing in Workload::builtin() {
        let workload = Workload::load(&listing.name).unwrap();
        if workload.instrument() != Mode::None {
            check_sound(&workload, &ci());
            modes.insert((workload.instrument().name(), listing.name));
        }
    }
    assert!(modes.len() >= 7, "{modes:?}");
}

#[test]
fn every_choice_of_instrumentation_gives_the_same_results() {
    for name in ["vecadd", "gemm_tiled", "histogram"] {
        let workload = Workload::load(name).unwrap();
        for mode in [Mode::CtaUndo, Mode::KernelUndo, Mode::IdempotentCta] {
            // Which elements a CTA of the histogram updates, nobody knows.
            if (name, mode) == ("histogram", Mode::CtaUndo) {
                continue;
            }
            for (barrier, loop_log) in
                [(FlagBarrier::Paper, true), (FlagBarrier::Safe, true), (FlagBarrier::Paper, false)]
            {
                let instrument = Overrides { mode: Some(mode), flag_barrier: Some(barrier), loop_log: Some(loop_log) };
                check_sound(&workload, &Choice { instrument, ..ci() });
            }
        }
    }
}
