//! What every component cost in every round of a traced run: plain data, from which
//! [`scaling`](super::scaling) is predicted.
//!
//! Bounded: when it is full, every second round is dropped and from then on only half of the rounds are
//! taken, so that those that are kept stay evenly spread over the run.
//!
//! Invariant: a trace changes no result; times of the wall clock lie here and in nothing that the model
//! reads.

use super::message::ComponentId;

/// Records at most: 12 bytes each.
const MOST_RECORDS: usize = 8 << 20;

/// A component in a round. With inner rounds it may have several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ComponentRound {
    pub(crate) component: u32,
    pub(crate) events: u32,
    /// With its share of what the engine did between components.
    pub(crate) ns: f32,
}

/// The component-rounds of a run.
#[derive(Debug, Clone)]
pub(crate) struct RoundTrace {
    records: Vec<ComponentRound>,
    /// By round: where its records end.
    ends: Vec<usize>,
    most: usize,
    /// Each round stands for so many.
    stride: u64,
    /// Rounds seen.
    seen: u64,
    /// What a reading of the clock takes, once that was measured.
    pub(crate) clock_ns: Option<u64>,
}

impl Default for RoundTrace {
    fn default() -> Self {
        RoundTrace::of_most(MOST_RECORDS)
    }
}

impl RoundTrace {
    fn of_most(most: usize) -> Self {
        RoundTrace { records: Vec::new(), ends: Vec::new(), most, stride: 1, seen: 0, clock_ns: None }
    }

    /// Whether the next round is to be traced; counts it.
    #[inline]
    pub(crate) fn takes_next(&mut self) -> bool {
        let taken = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        taken
    }

    /// A component ran in the round.
    #[inline]
    pub(crate) fn add(&mut self, component: ComponentId, events: u64, ns: u64) {
        let events = events.min(u64::from(u32::MAX)) as u32;
        self.records.push(ComponentRound { component: component.0, events, ns: ns as f32 });
    }

    /// The round took `ns` as a whole, what it did between components included.
    pub(crate) fn end_round(&mut self, ns: u64) {
        let begin = self.ends.last().copied().unwrap_or(0);
        let round = &mut self.records[begin..];
        if round.is_empty() {
            return;
        }
        let own: f32 = round.iter().map(|record| record.ns).sum();
        let events: u64 = round.iter().map(|record| u64::from(record.events)).sum();
        // Each component cost a reading of the clock, which is not the engine's.
        let clock = self.clock_ns.unwrap_or(0) * round.len() as u64;
        let between = (ns.saturating_sub(clock) as f32 - own).max(0.0);
        for record in round {
            record.ns += between * record.events as f32 / events.max(1) as f32;
        }
        self.ends.push(self.records.len());
        if self.records.len() >= self.most {
            self.thin();
        }
    }

    /// Drops every second round.
    fn thin(&mut self) {
        self.stride *= 2;
        let (records, ends) = (std::mem::take(&mut self.records), std::mem::take(&mut self.ends));
        let mut begin = 0;
        for (round, end) in ends.into_iter().enumerate() {
            if round % 2 == 0 {
                self.records.extend_from_slice(&records[begin..end]);
                self.ends.push(self.records.len());
            }
            begin = end;
        }
    }

    /// The rounds, in order.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = &[ComponentRound]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.records[begin..end])
    }

    /// Every component-round.
    pub(crate) fn records(&self) -> &[ComponentRound] {
        &self.records[..self.ends.last().copied().unwrap_or(0)]
    }

    /// How many rounds of the run each of these stands for.
    pub(crate) fn stride(&self) -> u64 {
        self.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_did_between_components_is_shared_out_by_events() {
        let mut trace = RoundTrace { clock_ns: Some(5), ..RoundTrace::default() };
        trace.add(ComponentId(3), 1, 100);
        trace.add(ComponentId(0), 3, 60);
        trace.end_round(210); // 160 of components, 10 of the clock, 40 between
        assert_eq!(trace.records().iter().map(|record| record.ns).collect::<Vec<_>>(), [110.0, 90.0]);
        assert_eq!(trace.rounds().map(<[ComponentRound]>::len).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_full_trace_keeps_every_second_round_and_goes_on_so() {
        let mut trace = RoundTrace::of_most(8);
        for round in 0..20 {
            if trace.takes_next() {
                trace.add(ComponentId(round), 1, 1);
                trace.end_round(1);
            }
        }
        let kept: Vec<u32> = trace.records().iter().map(|record| record.component).collect();
        assert_eq!((kept, trace.stride()), (vec![0, 4, 8, 12, 16], 4));
    }
}
