//! Arguments of commands on numbers of threads: equal results, speed, predicted speed.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::common::{OneScheme, Subject, jobs};
use crate::cli::names;

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Workloads: built-in names, folders or manifests; none for all that are built in
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(crate) workloads: Vec<String>,
    #[command(flatten)]
    pub(crate) scheme: OneScheme,
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Thread counts to try, each under several placements of components
    #[arg(long, value_delimiter = ',', default_value = "1,2,4", value_name = "N,...", value_parser = jobs)]
    pub(crate) threads: Vec<usize>,
    /// Length of an epoch in core cycles
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epoch_cycles: u64,
    /// Stop every run after so many core cycles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_cycles: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Workloads: built-in names, folders or manifests; a few of different kinds unless named
    #[arg(long, value_delimiter = ',', value_name = "NAME|FOLDER,...",
          add = ArgValueCompleter::new(names::workloads))]
    pub(crate) workloads: Vec<String>,
    #[command(flatten)]
    pub(crate) scheme: OneScheme,
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Thread counts to measure, beside one thread; powers of two up to the cores unless named
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = jobs)]
    pub(crate) threads: Vec<usize>,
    /// Runs at each number of threads, whose median counts
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = repeats)]
    pub(crate) repeats: usize,
    /// Write everything as JSON (- is standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No table
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScalingArgs {
    /// Workload: a built-in name, a folder, or a manifest
    #[arg(add = ArgValueCompleter::new(names::workloads))]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) scheme: OneScheme,
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Thread counts to predict
    #[arg(long, value_delimiter = ',', default_value = "2,4,8,16,32,64", value_name = "N,...", value_parser = counts)]
    pub(crate) threads: Vec<usize>,
    /// Stop after so many core cycles and predict from the part that ran
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_cycles: Option<u64>,
    /// Write everything as JSON (- is standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// No progress and no table
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Threads of a prediction: no host is asked for them.
fn counts(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    number.ok_or_else(|| "expected a number from 1 to 1024".to_owned())
}

/// Runs at each number of threads.
fn repeats(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|repeats| (1..=1000).contains(repeats));
    number.ok_or_else(|| "expected a number from 1 to 1000".to_owned())
}
