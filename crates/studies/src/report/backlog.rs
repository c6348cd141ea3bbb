//! What a program left to be written when it was over, in words.

use super::numbers::{count, percent, seconds};
use durawarp_simulation::outcome::{Backlog, ratio};

/// What the program left behind, in words; the time that it took over that of the run.
pub(super) fn backlog(left: &Backlog, of_ticks: u64) -> String {
    let gated = match left.gated_stores {
        0 => String::new(),
        stores => format!("{} gated stores in {} entries, ", count(stores), count(left.gated_entries)),
    };
    format!(
        "{gated}{} writes in write-pending queues; written {} later ({} of the run's time){}",
        count(left.queued_writes),
        seconds(left.drain.ps as f64 * 1e-12),
        percent(ratio(left.drain.ticks, of_ticks)),
        if left.kept_writes > 0 {
            format!(", but for {} that stay there", count(left.kept_writes))
        } else {
            String::new()
        }
    )
}
