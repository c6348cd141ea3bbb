//! What can be chosen of a trace: that all of its memory is persistent, and nothing else. The plan of a
//! workload that has neither kernels nor buffers of its own.

use std::sync::Arc;

use super::Trace;
use crate::manifest::Manifest;
use crate::manifest::instrument::Overrides;
use crate::manifest::source::{Folder, Programs};
use crate::plan::{Choice, Demands, RunPlan, resolve};
use crate::read;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{SourceText, TomlTable, parse};

/// Faults of a choice that a trace does not have.
pub(crate) fn check(trace: &Trace, choice: &Choice, demands: Demands) -> Result<(), Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut refuse = |place: &str, what: &str| {
        faults.push(Diagnostic::nowhere(place, format!("workload `{}` is a trace: {what}", trace.name)));
    };
    if demands.persistent {
        let what = "schemes of recoverable regions form a program's code, and recover its registers; a trace has \
            neither";
        refuse("--scheme", what);
    }
    if let Some(profile) = choice.profile.as_ref().filter(|profile| *profile != "default") {
        refuse("--profile", &format!("it is as long as it was traced, and has no profile `{profile}`"));
    }
    for (name, _) in &choice.params {
        refuse(&format!("params.{name}"), "it has no parameters");
    }
    for (buffer, _) in &choice.inputs {
        refuse(&format!("inputs.{buffer}"), "it has no buffers, and no values");
    }
    if let Some(first) = choice.args.first() {
        refuse(first, "it takes no arguments");
    }
    if choice.instrument != Overrides::default() {
        refuse("--instrument", "its instructions are those of the traced program, and cannot be instrumented");
    }
    faults.into_result(())
}

/// The plan of a workload of this name without kernels, buffers and checks.
///
/// # Errors
/// None that a caller can cause.
pub(crate) fn empty_plan(name: &str, choice: &Choice, demands: Demands) -> Result<RunPlan, Diagnostics> {
    let source = Arc::new(SourceText::new(name, String::new()));
    // An empty document lacks steps: the trace has them.
    let mut ignored = Diagnostics::default();
    let document = parse(&source, &mut ignored);
    let programs = Arc::new(Programs::default());
    let manifest = read::manifest(TomlTable::root(&source, &document), &programs, &mut ignored);
    let manifest = Manifest { name: name.to_owned(), ..manifest };
    let choice = Choice { seed: choice.seed, ..Choice::default() };
    let plan = resolve::resolve(&Arc::new(manifest), &programs, &Folder::Text("".into()), &choice, demands)?;
    // Titles and tables show the profile: a reader sees what it is.
    Ok(RunPlan { profile: "trace".to_owned(), ..plan })
}
