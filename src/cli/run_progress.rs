//! How far a run is: its instructions over those that the functional driver counts, and the time left.
//!
//! A program's length is not known before it runs. Where a run lasts longer than [`COUNTING_BEGINS`] (without
//! a terminal: [`COUNTING_BEGINS_UNSEEN`]), a thread of its own counts it; until then, and where it cannot be
//! counted, the bar is one of CTAs, or none. A run that takes longer than [`LONG_S`] says so once, on a
//! terminal or not. A page of `--monitor` shows the same. Nothing of this changes a result.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use durawarp::engine::Snapshot;
use durawarp::report;
use durawarp::run::{AnyExperiment, Conduct, Finished};
use durawarp::sweep::counting::{COUNTING_BEGINS, run_counted};
use indicatif::{ProgressBar, ProgressStyle};

use super::monitor::Monitor;
use super::progress::{bar, minutes};
use super::terminal;

/// When counting begins where no bar is drawn, and only a long run says how long it is.
const COUNTING_BEGINS_UNSEEN: Duration = Duration::from_secs(10);

/// Seconds of a run that says how long it will take.
const LONG_S: f64 = 30.0;

/// The share of a run from which on its rate says how long it takes.
const RATE_IS_KNOWN: f64 = 0.01;

/// What is done of what there is, and in which time.
#[derive(Debug, Clone, Copy)]
struct Share {
    done: u64,
    total: u64,
    elapsed_s: f64,
}

impl Share {
    /// From 0 to 1; less than 1 until the end, also where a program does more than was counted.
    fn fraction(self) -> f64 {
        (self.done as f64 / self.total.max(1) as f64).min(0.99)
    }

    /// Seconds that are left, as soon as the rate is known, and as long as less was done than counted.
    fn left_s(self) -> Option<f64> {
        let known = self.fraction() >= RATE_IS_KNOWN && self.done < self.total;
        known.then(|| self.elapsed_s * (self.total - self.done) as f64 / self.done as f64)
    }
}

/// A bar over the work of a run.
#[derive(Debug)]
struct RunProgress {
    bar: ProgressBar,
    /// Instructions that the functional driver counted; 0 until then.
    instructions: AtomicU64,
    /// CTAs of all launches, where that is known before the run.
    ctas: Option<u64>,
    cycle_ticks: u64,
    /// Of what the instructions are: "warp ", or nothing.
    of_warps: &'static str,
    announced: AtomicBool,
    quiet: bool,
}

impl RunProgress {
    fn new(experiment: &AnyExperiment, name: &str, quiet: bool) -> Self {
        let gpu = experiment.gpu();
        let bar = bar("{prefix} {spinner}  {msg}  {elapsed}", None, quiet);
        bar.set_prefix(name.to_owned());
        RunProgress {
            bar,
            instructions: AtomicU64::new(0),
            ctas: gpu.and_then(|of| of.workload.total_ctas()).filter(|&ctas| ctas > 0),
            cycle_ticks: experiment.cycle_ticks(),
            of_warps: if gpu.is_some() { "warp " } else { "" },
            announced: AtomicBool::new(false),
            quiet,
        }
    }

    /// What is done, by instructions where they are counted, else by CTAs where one has ended.
    fn share(&self, now: &Snapshot) -> Option<Share> {
        let elapsed_s = now.elapsed.as_secs_f64();
        let of = |done, total| Share { done, total, elapsed_s };
        match (self.instructions.load(Ordering::Relaxed), self.ctas) {
            (0, Some(ctas)) => Some(of(now.progress.steps_done, ctas)).filter(|share| share.done > 0),
            (0, None) => None,
            (instructions, _) => Some(of(now.progress.work, instructions)),
        }
    }

    fn show(&self, now: &Snapshot, monitor: Option<&Monitor>) {
        let speed = now.progress.work as f64 / now.elapsed.as_secs_f64().max(1e-9);
        let cycles = report::count(now.time / self.cycle_ticks);
        let told = format!("{cycles} cycles  {}{}instr/s", report::rate(speed), self.of_warps);
        let share = self.share(now);
        let left = share.and_then(Share::left_s);
        if let Some(monitor) = monitor {
            monitor.progress(share.map(Share::fraction), left);
        }
        if let Some(share) = share
            && self.bar.length().is_none()
            && let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3} %  {msg}")
        {
            self.bar.set_style(style.progress_chars("=> "));
            self.bar.set_length(1000);
            self.bar.set_position((share.fraction() * 1000.0) as u64);
        }
        if let Some(share) = share {
            self.bar.set_position((share.fraction() * 1000.0) as u64);
        }
        self.bar.set_message(left.map_or_else(|| told.clone(), |left| format!("{told}  ETA {}", minutes(left))));
        self.bar.tick();
        if let (Some(share), Some(left)) = (share, left) {
            self.announce(share, left);
        }
    }

    /// Says once how long a long run takes: by instructions, as the first CTAs end late.
    fn announce(&self, share: Share, left_s: f64) {
        let counted = self.instructions.load(Ordering::Relaxed) > 0;
        let long = share.elapsed_s + left_s > LONG_S;
        if self.quiet || !counted || !long || self.announced.swap(true, Ordering::Relaxed) {
            return;
        }
        let (total, all) = (report::count(share.total), minutes(share.elapsed_s + left_s));
        let line = format!("this run takes about {all}: it has {total} {}instructions", self.of_warps);
        self.bar.suspend(|| terminal::say(&line));
    }
}

/// Simulates; says how far it is, under a name, unless it is to be quiet, and heeds Ctrl-C.
pub(super) fn with_progress(experiment: &AnyExperiment, name: &str, conduct: &Conduct<'_>, quiet: bool) -> Finished {
    monitored(experiment, name, conduct, quiet, None)
}

/// The same, and shows it on a page if there is one.
pub(super) fn monitored(
    experiment: &AnyExperiment,
    name: &str,
    conduct: &Conduct<'_>,
    quiet: bool,
    monitor: Option<&Monitor>,
) -> Finished {
    let progress = RunProgress::new(experiment, name, quiet);
    let observer = |now: &Snapshot| progress.show(now, monitor);
    let on_page = monitor.map(|monitor| |state| monitor.show(state));
    let conduct = Conduct {
        stop: Some(terminal::stop_flag()),
        observer: Some(&observer),
        monitor: on_page.as_ref().map(|on_page| on_page as _),
        ..conduct.clone()
    };
    // Nobody sees how far a quiet run is, but on its page.
    let begins = match (monitor, progress.bar.is_hidden()) {
        (None, _) if quiet => None,
        (None, true) => Some(COUNTING_BEGINS_UNSEEN),
        _ => Some(COUNTING_BEGINS),
    };
    let counted = |instructions| progress.instructions.store(instructions, Ordering::Relaxed);
    let finished = run_counted(experiment, &conduct, begins, &counted);
    progress.bar.finish_and_clear();
    monitor.into_iter().for_each(|monitor| monitor.finish(&finished.outcome));
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_told_from_one_percent_on_and_not_beyond_what_was_counted() {
        let share = |done| Share { done, total: 1000, elapsed_s: 2.0 };
        assert_eq!(
            [0, 9, 10, 500, 1000, 2000].map(|done| share(done).left_s()),
            [None, None, Some(198.0), Some(2.0), None, None]
        );
        assert_eq!([0, 250, 1000, 2000].map(|done| share(done).fraction()), [0.0, 0.25, 0.99, 0.99]);
    }
}
