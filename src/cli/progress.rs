//! Progress bars, only on a terminal, and that of a sweep. That of a run is `run_progress`.

use durawarp::report;
use durawarp::sweep::Progress as Progressed;
use indicatif::{ProgressBar, ProgressStyle};

use super::terminal;

/// A bar of this form, which is hidden where nobody looks.
pub(super) fn bar(template: &str, length: Option<u64>, quiet: bool) -> ProgressBar {
    let bar = if quiet || !terminal::can_redraw() { ProgressBar::hidden() } else { ProgressBar::no_length() };
    if let Some(length) = length {
        bar.set_length(length);
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// A bar over the points of a sweep.
#[derive(Debug)]
pub(super) struct SweepProgress {
    bar: ProgressBar,
    /// Points that were done before.
    cached: usize,
}

impl SweepProgress {
    /// A bar for a sweep of so many points, of which some are done.
    pub(super) fn new(points: usize, cached: usize, quiet: bool) -> Self {
        let bar = bar("[{bar:30}] {pos}/{len} runs  {msg}", Some(points as u64), quiet);
        SweepProgress { bar, cached }
    }

    /// Nobody sees it.
    pub(super) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows how far the sweep is.
    pub(super) fn show(&self, now: &Progressed) {
        self.bar.set_message(self.message(now));
        self.bar.set_position((self.cached + now.done) as u64);
    }

    /// How far the sweep is, in a line.
    pub(super) fn line(&self, now: &Progressed) -> String {
        format!("{}/{} runs  {}", self.cached + now.done, self.cached + now.points, self.message(now))
    }

    fn message(&self, now: &Progressed) -> String {
        let cached = if self.cached > 0 { format!("{} cached  ", self.cached) } else { String::new() };
        let left = now.left_s.map_or_else(String::new, |left| format!("  ETA {}", minutes(left)));
        let failed = if now.failed > 0 { format!("  {} FAILED", now.failed) } else { String::new() };
        let speed = report::rate(now.warp_instructions_per_s);
        let points = report::count((now.done as f64 / now.elapsed_s.max(1e-9) * 3600.0) as u64);
        format!("{cached}{} at work  {points} points/h  {speed}warp instr/s{failed}{left}", now.running)
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Seconds as hours, minutes and seconds.
pub(super) fn minutes(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole / 3600 {
        0 => format!("{}:{:02}", whole / 60, whole % 60),
        hours => format!("{hours}:{:02}:{:02}", whole / 60 % 60, whole % 60),
    }
}
