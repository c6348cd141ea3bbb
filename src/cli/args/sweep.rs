//! What can be typed after `durawarp sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::{RESULTS, Work};

#[derive(Debug, Subcommand)]
pub(crate) enum SweepCommand {
    /// Run the points of a sweep file, or those that are missing, into a folder of results
    Run(SweepRunArgs),
    /// Show which points of a sweep file are done, failed or missing, by value of each axis
    Status(SweepStatusArgs),
    /// Write the results of a sweep file as a table: CSV, JSON or Parquet
    Table(SweepTableArgs),
    /// Draw the figures that a sweep file asks for: SVG with a CSV beside each
    Figures(SweepFiguresArgs),
    /// Write what a sweep came to as one HTML page: figures, tables, configuration, digests, warnings
    Report(SweepReportArgs),
    /// Warn of axes of a sweep file that change more than they name, or nothing
    Lint(SweepLintArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SweepRunArgs {
    /// Sweep file
    pub(crate) spec: PathBuf,
    /// Folder of results: made if it is not there; many sweeps and processes may share one
    #[arg(long, default_value = RESULTS, value_name = "DIR")]
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) work: Work,
    /// Run one of N parts of the points: those of the others are left to other processes
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(crate) shard: Option<(u32, u32)>,
    /// Say what would be run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not run points again that failed before
    #[arg(long)]
    pub(crate) keep_failed: bool,
    /// Hand the sweep to Slurm as an array job of N shards; with --dry-run print the script
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "shard")]
    pub(crate) slurm: Option<u32>,
    /// An argument for sbatch (--sbatch-arg=--time=2:00:00); repeatable
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, requires = "slurm")]
    pub(crate) sbatch_arg: Vec<String>,
    /// No progress and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepStatusArgs {
    /// Sweep file
    pub(crate) spec: PathBuf,
    /// Folder of results
    #[arg(long, default_value = RESULTS, value_name = "DIR")]
    pub(crate) results: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SweepTableArgs {
    /// Sweep file
    #[arg(required_unless_present = "columns")]
    pub(crate) spec: Option<PathBuf>,
    /// Folder of results
    #[arg(long, default_value = RESULTS, value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Write CSV; - for standard output, which is the default
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write JSON, a list of rows; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write Parquet (in programs that were built with the feature `parquet`)
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// One row a point, with a column for each metric, instead of one row a point and metric
    #[arg(long)]
    pub(crate) wide: bool,
    /// One row a launch of each point: when it was, and every counter of it where the sweep file says
    /// `launches = true`
    #[arg(long, conflicts_with_all = ["wide", "metrics", "columns"])]
    pub(crate) launches: bool,
    /// These metrics instead of those that the sweep file names
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub(crate) metrics: Vec<String>,
    /// List columns and all metrics with their units instead
    #[arg(long)]
    pub(crate) columns: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepFiguresArgs {
    /// Sweep file
    pub(crate) spec: PathBuf,
    /// Folder of results
    #[arg(long, default_value = RESULTS, value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Folder for the figures; NAME-figures unless named, of the sweep's name
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Only the figure of this name, or all that it comes to
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Write PNG too (in programs that were built with the feature `png`)
    #[arg(long)]
    pub(crate) png: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepReportArgs {
    /// Sweep file
    pub(crate) spec: PathBuf,
    /// Folder of results
    #[arg(long, default_value = RESULTS, value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// File for the page; NAME.html unless named, of the sweep's name
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepLintArgs {
    /// Sweep file
    pub(crate) spec: PathBuf,
    /// Exit code 1 when there are warnings
    #[arg(long)]
    pub(crate) strict: bool,
}

/// `i/n`: a shard from 1 and how many there are.
fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/').and_then(|(nth, of)| Some((nth.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
    match parts {
        Some((nth, of)) if (1..=of).contains(&nth) => Ok((nth - 1, of)),
        _ => Err("expected I/N with I from 1 to N, for example 2/8".to_owned()),
    }
}
