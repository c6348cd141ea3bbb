//! Tests of how a run ends.

use super::*;
use crate::workload::{Choice, Workload};

#[test]
fn a_run_that_is_stopped_before_it_could_be_judged_has_not_failed() {
    let experiment = Experiment {
        machine: MachineConfig::load("titan-x", &[]).unwrap(),
        workload: Workload::load("vecadd").unwrap().resolve(&Choice::default()).unwrap(),
        scheme: SchemeConfig::load("base", &[]).unwrap(),
        max_cycles: None,
        reference: true,
    };
    let mut finished = run(&experiment, &Conduct::default());
    assert!(finished.outcome.verification.take().unwrap().passed);
    let stop = AtomicBool::new(true);
    judge(&experiment, &Conduct { stop: Some(&stop), ..Conduct::default() }, &mut finished);
    assert_eq!((finished.outcome.end, finished.outcome.verification), (End::Stopped, None));
}
