//! Names that a shell completes: of workloads, machines, schemes and papers, as they are built in, and files
//! beside them.
//!
//! `durawarp completions SHELL` prints a script that asks this program, by [`VARIABLE`], for what fits what
//! was typed so far (clap_complete's dynamic engine): names are those of the program that is installed.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use durawarp::config::{device, presets};
use durawarp::papers::PAPERS;
use durawarp::schemes::catalogue;
use durawarp::workload::Workload;

/// The variable by which a shell asks; its value is the shell.
pub(super) const VARIABLE: &str = "DURAWARP_COMPLETE";

/// Workloads and litmus programs, folders, manifests.
pub(super) fn workloads(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = [Workload::builtin(), Workload::builtin_of_cpus(), Workload::litmus(), Workload::litmus_of_cpus()];
    let names = all.into_iter().flatten().map(|listed| listed.name);
    with_paths(starting(typed, names), typed, |_| true)
}

/// Machines and their files.
pub(super) fn machines(typed: &OsStr) -> Vec<CompletionCandidate> {
    with_paths(starting(typed, presets::names()), typed, is_toml)
}

/// Schemes and their files.
pub(super) fn schemes(typed: &OsStr) -> Vec<CompletionCandidate> {
    with_paths(starting(typed, scheme_names()), typed, is_toml)
}

/// The same, or all of them.
pub(super) fn all_schemes(typed: &OsStr) -> Vec<CompletionCandidate> {
    with_paths(starting(typed, scheme_names().chain(["all"])), typed, is_toml)
}

/// Machines, schemes and files of either.
pub(super) fn configurations(typed: &OsStr) -> Vec<CompletionCandidate> {
    with_paths(starting(typed, presets::names().chain(scheme_names())), typed, is_toml)
}

/// Memory devices and their files.
pub(super) fn devices(typed: &OsStr) -> Vec<CompletionCandidate> {
    with_paths(starting(typed, device::names()), typed, is_toml)
}

/// Papers.
pub(super) fn papers(typed: &OsStr) -> Vec<CompletionCandidate> {
    starting(typed, PAPERS.iter().map(|paper| paper.name))
}

fn scheme_names() -> impl Iterator<Item = &'static str> {
    catalogue::entries().iter().map(|entry| entry.name())
}

fn starting(typed: &OsStr, names: impl Iterator<Item = impl Into<String>>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fitting = names.map(Into::into).filter(|name: &String| name.starts_with(&*typed));
    fitting.map(CompletionCandidate::new).collect()
}

fn with_paths(
    mut names: Vec<CompletionCandidate>,
    typed: &OsStr,
    fits: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> Vec<CompletionCandidate> {
    // Where a name was begun, files are no help; a path is begun with a folder of its own.
    if names.is_empty() || typed.is_empty() {
        names.extend(PathCompleter::any().filter(fits).complete(typed));
    }
    names
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml")
}
