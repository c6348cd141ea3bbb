//! Tests of how a run ends.

use super::*;
use crate::workload::{Choice, Workload};

#[test]
fn a_run_that_is_stopped_before_it_could_be_judged_has_not_failed() {
    let (machine, scheme) = (MachineConfig::load("titan-x", &[]).unwrap(), SchemeConfig::load("base", &[]).unwrap());
    let workload = Workload::load("vecadd").unwrap();
    let experiment = Experiment::new(machine, &workload, &Choice::default(), scheme).unwrap();
    let mut finished = run(&experiment, &Conduct::default());
    assert!(finished.outcome.verification.take().unwrap().passed);
    let stop = AtomicBool::new(true);
    judge(&experiment, &Conduct { stop: Some(&stop), ..Conduct::default() }, &mut finished);
    assert_eq!((finished.outcome.end, finished.outcome.verification), (End::Stopped, None));
}
