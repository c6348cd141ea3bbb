//! What runs came to beside the bounds of their own parameters.
//!
//! Rates of controllers are until the last region was written, those of cores until the program ended. A
//! core's instructions a cycle are those of the program, without what regions insert, over the cores that
//! have a thread.

use super::bounds::{BusyCores, MeanRegion, RateBound};
use super::numbers::ProtocolNumbers;
use crate::papers::Cell;
use crate::papers::lightwsp::counts::scheme_count;
use durawarp_simulation::outcome::Outcome;

/// A program's run under the scheme, beside `base`.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) program: &'static str,
    pub(super) commit: String,
    pub(super) cores: BusyCores,
    pub(super) region: MeanRegion,
    /// What ACKs allow it.
    pub(super) acks: RateBound,
    pub(super) ipc_of_base: f64,
    pub(super) ipc: f64,
    /// Regions begun.
    pub(super) regions: f64,
    /// Committed in a ns.
    regions_ns: f64,
    /// Of what serial ACKs, the paths of its cores and persistent memory allow; none where one is no bound.
    pub(super) shares: [Option<f64>; 3],
}

impl Measured {
    /// None where nothing ran, or no region.
    pub(super) fn of(program: &'static str, base: &Outcome, outcome: &Outcome) -> Option<Measured> {
        let numbers = ProtocolNumbers::of_run(outcome)?;
        let count = |name: &str| scheme_count(outcome, name).map(|count| count as f64);
        let threads = 1 + outcome.count_of("os", "threads").unwrap_or_default();
        let cores = BusyCores { count: (threads as f64).min(numbers.cores.count), ..numbers.cores };
        // Controllers go on when the program is over; cores do not.
        let ran_ns = outcome.time.ps as f64 / 1e3;
        let wrote_ns = ran_ns + outcome.backlog.as_ref().map_or(0.0, |left| left.drain.ps as f64 / 1e3);
        let regions = count("regions")?;
        if regions == 0.0 {
            return None;
        }
        let ipc = |of: &Outcome| of.warp_instructions() as f64 / (of.time.core_cycles.max(1) as f64 * cores.count);
        let committed = count("regions_committed_summed")? / numbers.controllers;
        // What still waits in front-end buffers has not been on the path.
        let sent = (count("feb_entries")? - numbers.feb_entries * cores.count).max(0.0);
        let path = sent * numbers.entry_bytes / (numbers.path_bytes_ns * cores.count * ran_ns);
        let written = outcome.total("memory_controller", "nvm_written_bytes") as f64 / wrote_ns;
        Some(Measured {
            program,
            commit: parameter_text(outcome, "light_wsp.commit"),
            cores,
            region: MeanRegion {
                instructions: outcome.warp_instructions() as f64 / regions,
                stores: count("feb_entries")? / regions,
            },
            acks: numbers.acks(),
            ipc_of_base: ipc(base),
            ipc: ipc(outcome),
            regions,
            regions_ns: committed / wrote_ns,
            shares: [
                (numbers.acks() != RateBound::OverlappedAcks).then(|| committed * numbers.ack_ns / wrote_ns),
                Some(path),
                numbers.all_write_bytes_ns().map(|most| written / most),
            ],
        })
    }

    pub(super) fn row(&self) -> Vec<Cell> {
        let share = |share: Option<f64>| share.map_or(Cell::None, |share| Cell::Number(share * 100.0, 1));
        let mut row = vec![
            Cell::from(self.program),
            Cell::from(self.commit.as_str()),
            Cell::Count(self.cores.count as u64),
            Cell::Number(self.region.instructions, 1),
            Cell::Number(self.region.stores, 2),
            Cell::Number(self.ipc_of_base, 2),
            Cell::Number(self.ipc, 2),
            Cell::Number(self.regions_ns * 1e3, 1),
        ];
        row.extend(self.shares.map(share));
        row
    }
}

fn parameter_text(outcome: &Outcome, key: &str) -> String {
    let text = outcome.scheme_parameters.get(key).and_then(|parameter| parameter.value.as_str());
    text.unwrap_or_default().to_owned()
}
