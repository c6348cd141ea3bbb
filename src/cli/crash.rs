//! `durawarp crash`.

use durawarp::crash::conditions::Condition;
use durawarp::crash::{CPU_BUDGET, CrashRequest, Phase, Watching, crash as judge, crash_cpu};
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::outcome::End;
use durawarp::report;
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::workload::Expected;

use super::args::{CrashArgs, State, typed};
use super::exit::{Exit, Stop};
use super::output::Outputs;
use super::recipe::{SMALL, experiment};
use super::simulate::{told_of, warn_of};
use super::{progress, terminal};

pub(super) fn crash(args: &CrashArgs) -> Result<Exit, Stop> {
    let experiment = experiment(&args.workload, args.scheme.scheme.as_deref(), &args.subject, Some(SMALL))?;
    // Outputs are looked at once all inputs are read and before the run: a path that cannot be written must
    // not cost a simulation.
    let mut outputs = Outputs::default();
    let json = outputs.open("--json", args.json.as_deref());
    let stdout_is_taken = outputs.ready()?;
    if let Some(experiment) = experiment.gpu() {
        terminal::warn(experiment.workload.warnings());
    }
    // `--only` names one state. At level A it is a plan; a state of another level has a field of its own,
    // which goes before the plan.
    let request = CrashRequest {
        plan: match args.only {
            Some(State::Actual(point)) => Plan::Only(point),
            _ => args.points,
        },
        double: args.double,
        claim: args.claim,
        by: args.by,
        allowed: (!args.actual_only).then(|| if experiment.gpu().is_some() { Budget::default() } else { CPU_BUDGET }),
        only_allowed: match args.only {
            Some(State::Allowed(instant, choice)) => Some((instant, choice)),
            _ => None,
        },
        only_overtaking: match args.only {
            Some(State::Overtaking(store)) => Some(store),
            _ => None,
        },
        seed: args.subject.seed,
        keep: args.keep.max(1),
        resume: args.resume,
        strict_output: args.strict_output,
        ..CrashRequest::default()
    };
    let stop = terminal::stop_flag();
    let bar = progress::bar("{prefix} [{bar:30}] {human_pos} of {human_len}  ETA {eta}", None, args.quiet);
    let conduct = Conduct { threads: args.threads, stop: Some(stop), ..Conduct::default() };
    let observer = |phase: Phase, done: u64, total: u64| {
        bar.set_prefix(match phase {
            Phase::Actual => "states left",
            Phase::Allowed => "states allowed",
            Phase::Overtaking => "overtaking warps",
            Phase::Resume => "states resumed",
        });
        bar.set_length(total);
        bar.set_position(done);
    };
    let watching = Watching { conduct: &conduct, stop, progress: &observer };
    let report = match &experiment {
        AnyExperiment::Gpu(experiment) => judge(experiment, &request, &watching),
        AnyExperiment::Cpu(experiment) => crash_cpu(experiment, &request, &watching),
    }?;
    bar.finish_and_clear();
    // The report is shown and written before any verdict: it is what explains a failure.
    if !args.quiet {
        terminal::show(&report::crash_summary(&report, &replay), stdout_is_taken);
    }
    if let Some(output) = json {
        output.write_json(&report)?;
    }
    let outcome = &report.outcome;
    warn_of(outcome);
    // How the run itself ended comes first: a panic of the simulator is a defect, whatever was judged.
    match &outcome.end {
        End::Panicked { message } => {
            terminal::error(&format!("the simulator failed, which is a defect: {message}"));
            return Ok(Exit::Defect);
        }
        End::Failed { error } => terminal::error(&format!("the simulated program failed: {error}")),
        End::Repeats(repeats) => terminal::error(&told_of(repeats, true)),
        End::Deadlock { waits } => terminal::error(&format!("deadlock: {}", waits.join("\n  "))),
        _ => {}
    }
    if outcome.end == End::Finished
        && let Some(check) = outcome.verification.as_ref().filter(|check| !check.passed)
    {
        terminal::error(&format!("the result without a failure is wrong: {}", check.failures.join("\n  ")));
    }
    // An interrupted test has judged a part only, so that neither verdict below is its own.
    if terminal::interrupted() {
        return Ok(terminal::interrupted_exit());
    }
    if let Some(output) = report.output.as_ref().filter(|output| output.differs > 0) {
        terminal::note(&format!(
            "output differs from that of the run without a failure {} times, and both may be right: threads may see \
             each other in another order (--strict-output takes it for a failure)",
            output.differs
        ));
    }
    // `holds` is also true where nothing was judged, which must not pass for a success.
    if report.holds() {
        let Some(why) = &report.unjudged else { return Ok(Exit::Good) };
        terminal::error(&format!("nothing was judged: {why}"));
        return Ok(Exit::BadInput);
    }
    // Only of a run that ended well are the images what is wrong.
    if report.ended_well() {
        let unseen = |condition: &Condition| condition.expected == Expected::Violated && !condition.as_expected;
        match report.conditions.iter().find(|condition| unseen(condition)) {
            Some(condition) => terminal::error(&format!(
                "the manifest says that `{}` is violated under {} and {}, and no image shows it",
                condition.name,
                outcome.scheme_name(),
                report.domain.name()
            )),
            None => terminal::error("a power failure can leave what recovery does not make right"),
        }
    }
    Ok(Exit::ProgramFailed)
}

/// The command that judges one state again: this one, asked for that state.
fn replay(state: &str) -> String {
    replay_of(typed().skip(1), state)
}

/// The command with these arguments, asked for one state. What stands behind `--` is the program's.
fn replay_of(mut args: impl Iterator<Item = String>, state: &str) -> String {
    let mut out = String::from("durawarp");
    let mut skip = false;
    let mut of_program = false;
    for arg in args.by_ref() {
        of_program = arg == "--" && !skip;
        if of_program {
            break;
        }
        let named = |names: &[&str]| names.iter().any(|name| arg == *name || arg.starts_with(&format!("{name}=")));
        if std::mem::take(&mut skip) {
            continue;
        }
        if named(&["--points", "--json", "--only", "--keep"]) {
            skip = !arg.contains('=');
        } else {
            out += &format!(" {}", quoted(&arg));
        }
    }
    out += &format!(" --only {state}");
    if of_program {
        out += " --";
        args.for_each(|arg| out += &format!(" {}", quoted(&arg)));
    }
    out
}

/// An argument as a shell reads it.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-_=./,:".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_asked_for_before_the_arguments_of_the_program() {
        let of = |args: &str| replay_of(args.split(' ').map(str::to_owned), "A:7");
        assert_eq!(of("crash x.elf --points all --keep=2"), "durawarp crash x.elf --only A:7");
        let told = of("crash x.elf --scheme capri --only A:1 -- --points 3 -- --only it's");
        assert_eq!(told, r"durawarp crash x.elf --scheme capri --only A:7 -- --points 3 -- --only 'it'\''s'");
    }

    #[test]
    fn an_empty_argument_stays_one() {
        let args = ["crash", "x.elf", "--", "", "a b"].map(str::to_owned);
        assert_eq!(replay_of(args.into_iter(), "A:0"), "durawarp crash x.elf --only A:0 -- '' 'a b'");
    }
}
