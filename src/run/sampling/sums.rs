//! What all stretches of a sampled run counted together, and the same scaled up to the whole program.
//!
//! Counters are of everything that was simulated, warm-ups included. They are scaled by warp instructions:
//! those of the whole program on the functional driver over those of the stretches. So they are estimates,
//! whose error is not known.

use std::collections::BTreeMap;

use super::super::simulated::Simulated;
use super::super::tables::{counters, warnings};
use crate::outcome::{Engine, Warning};
use crate::stats::Table;

/// Sums over stretches.
#[derive(Debug, Default)]
pub(super) struct Sums {
    tables: Vec<Table>,
    scheme: BTreeMap<String, u64>,
    pub(super) warnings: Vec<Warning>,
    pub(super) engine: Option<Engine>,
    pub(super) digest: u64,
    pub(super) stretches: u64,
    pub(super) threads: usize,
}

impl Sums {
    /// Takes in a stretch.
    pub(super) fn add(&mut self, ran: &Simulated) {
        let tables = counters(&ran.machine);
        if self.tables.is_empty() {
            self.tables = tables;
        } else {
            for (sum, more) in self.tables.iter_mut().zip(&tables) {
                let cells = sum.rows.iter_mut().flatten().zip(more.rows.iter().flatten());
                cells.for_each(|(sum, more)| *sum = sum.saturating_add(*more));
            }
        }
        for (name, count) in ran.scheme_counters() {
            *self.scheme.entry(name).or_default() += count;
        }
        // Stretches that repeat a launch tell of it again.
        for warning in warnings(&ran.machine) {
            let same = |known: &Warning| {
                (&known.kernel, &known.file, known.line) == (&warning.kernel, &warning.file, warning.line)
            };
            if !self.warnings.iter().any(same) {
                self.warnings.push(warning);
            }
        }
        // Bounds do not add up, but the critical paths behind them do.
        let own = ran.engine();
        self.engine = Some(match self.engine {
            None => own,
            Some(sum) => {
                let path = |of: Engine| of.events as f64 / of.parallelism_bound.max(1.0);
                let events = sum.events + own.events;
                Engine {
                    events,
                    messages: sum.messages + own.messages,
                    rounds: sum.rounds + own.rounds,
                    parallelism_bound: events as f64 / (path(sum) + path(own)).max(1.0),
                    ..own
                }
            }
        });
        self.digest = (self.digest ^ ran.machine.simulation.digest()).wrapping_mul(0x100_0000_01b3).rotate_left(23);
        self.stretches += 1;
        self.threads = self.threads.max(ran.machine.simulation.stats().workers);
    }

    /// A counter's sum.
    pub(super) fn total(&self, kind: &str, name: &str) -> u64 {
        self.tables.iter().find(|table| table.kind == kind).map_or(0, |table| table.total(name))
    }

    /// Counters of components and of the scheme, scaled by `factor`.
    pub(super) fn scaled(mut self, factor: f64) -> (Vec<Table>, BTreeMap<String, u64>) {
        let scale = |count: &mut u64| *count = (*count as f64 * factor).round() as u64;
        self.tables.iter_mut().flat_map(|table| table.rows.iter_mut().flatten()).for_each(scale);
        self.scheme.values_mut().for_each(scale);
        (self.tables, self.scheme)
    }
}
