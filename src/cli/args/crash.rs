//! Arguments of a crash test: which states are judged, by which rules.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;
use durawarp::crash::Basis;
use durawarp::oracle::crash::Plan;
use durawarp::persist::PersistScope;

use super::common::{OneScheme, Subject, jobs};
use crate::cli::names;

#[derive(Debug, Args)]
pub(crate) struct CrashArgs {
    /// Workload: a built-in name, a folder, or a manifest; profile `ci` unless another is named
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) scheme: OneScheme,
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Crash points of the states that the run leaves: auto, all, boundaries (of flags), or so many
    #[arg(long, default_value = "auto", value_name = "auto|all|boundaries|N", value_parser = points)]
    pub(crate) points: Plan,
    /// Let power fail in recovery too, at each of its steps
    #[arg(long)]
    pub(crate) double: bool,
    /// Judge only states that the run really leaves, not those that the model allows
    #[arg(long)]
    pub(crate) actual_only: bool,
    /// Judge the order of persist barriers as if all were of this scope: shows what a program lacks that uses
    /// a narrower one
    #[arg(long, value_name = "wi|wg|kr", value_parser = scope)]
    pub(crate) claim: Option<PersistScope>,
    /// Take persist barriers for what this machine makes of them, or for what their definition says, by which
    /// they order persists and wait for nothing
    #[arg(long, default_value = "machine", value_name = "machine|definition", value_parser = basis)]
    #[arg(conflicts_with = "claim")]
    pub(crate) by: Basis,
    /// Resume the program from this many of the states that hardware recovers (light-wsp); 0 for none
    #[arg(long, default_value_t = 24, value_name = "N")]
    pub(crate) resume: u64,
    /// Take output of a resumed program that is not that of the run without a failure for wrong, even where
    /// threads may write in another order
    #[arg(long)]
    pub(crate) strict_output: bool,
    /// Judge one state again, by the name that a failure was reported with
    #[arg(long, value_name = "A:..|B:..|C:..", value_parser = state, conflicts_with = "points")]
    pub(crate) only: Option<State>,
    /// Threads of the simulation: 0 for one a core; judging takes every core
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = jobs)]
    pub(crate) threads: usize,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Failures of each kind of state to keep for the JSON
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) keep: usize,
    /// No progress and no report
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// One state of a crash test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A crash point.
    Actual(u64),
    /// An instant and one of the images that the model allows there.
    Allowed(u64, u64),
    /// A store of a warp that ran ahead.
    Overtaking(u64),
}

fn scope(text: &str) -> Result<PersistScope, String> {
    let found = PersistScope::ALL.into_iter().find(|scope| scope.name() == text);
    found.ok_or_else(|| "expected wi, wg or kr".to_owned())
}

fn basis(text: &str) -> Result<Basis, String> {
    match text {
        "machine" => Ok(Basis::Machine),
        "definition" => Ok(Basis::Definition),
        _ => Err("expected machine or definition".to_owned()),
    }
}

fn points(text: &str) -> Result<Plan, String> {
    match text {
        "auto" => Ok(Plan::Auto),
        "all" => Ok(Plan::All),
        "boundaries" => Ok(Plan::Boundaries),
        number => match number.parse() {
            Ok(0) | Err(_) => Err("expected auto, all, boundaries or a number from 1".to_owned()),
            Ok(number) => Ok(Plan::Count(number)),
        },
    }
}

fn state(text: &str) -> Result<State, String> {
    let wrong = || "expected A:POINT, B:INSTANT:CHOICE or C:STORE, as a failure is reported".to_owned();
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).ok_or_else(wrong);
    let mut parts = text.split(':');
    let state = match parts.next() {
        Some("A") => State::Actual(number(parts.next())?),
        Some("C") => State::Overtaking(number(parts.next())?),
        Some("B") => State::Allowed(number(parts.next())?, number(parts.next())?),
        _ => return Err(wrong()),
    };
    if parts.next().is_some() { Err(wrong()) } else { Ok(state) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn states_are_named_as_they_are_reported() {
        assert_eq!(super::state("A:17"), Ok(super::State::Actual(17)));
        assert_eq!(super::state("B:17:3"), Ok(super::State::Allowed(17, 3)));
        assert_eq!(super::state("C:5"), Ok(super::State::Overtaking(5)));
        for wrong in ["", "A", "A:x", "A:1:2", "B:1", "C:1:2", "D:1", "B:1:2:3"] {
            assert!(super::state(wrong).is_err(), "{wrong}");
        }
    }
}
