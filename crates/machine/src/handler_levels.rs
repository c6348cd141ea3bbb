//! How much a scheme's handler holds, over time and lane by lane: entries of the persist buffers of a core's
//! harts, or of the NIC's channels; requests that a controller has of each hart. Nothing here is read by the
//! model.

use durawarp_base::timeline::Level;
use durawarp_engine::Time;
use durawarp_persist::handler::Handler;

/// What a handler held, for a timeline.
#[derive(Debug)]
pub struct HandlerLevels {
    spans: usize,
    last: Time,
    levels: Vec<Level>,
}

impl HandlerLevels {
    /// Empty levels of at most `spans` values each.
    pub(super) fn new(spans: usize) -> HandlerLevels {
        HandlerLevels { spans, last: 0, levels: Vec::new() }
    }

    /// What it holds now. A core may be ahead of what it hears next: levels do not go back in time.
    pub(super) fn note(&mut self, handler: &(impl Handler + ?Sized), now: Time) {
        self.last = self.last.max(now);
        for lane in 0.. {
            let Some(held) = handler.occupancy(lane) else { return };
            if lane == self.levels.len() {
                self.levels.push(Level::new(self.spans));
            }
            let level = &mut self.levels[lane];
            if level.samples().last().map_or(0, |sample| sample.1) != held {
                level.note(self.last, held);
            }
        }
    }

    /// By lane: what it held since when.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Holds(Vec<u64>);

    impl Handler for Holds {
        fn occupancy(&self, lane: usize) -> Option<u64> {
            self.0.get(lane).copied()
        }
    }

    #[test]
    fn a_level_has_a_value_where_it_changes_and_none_before_the_last() {
        let mut levels = HandlerLevels::new(16);
        for (now, held) in [(5, [0, 1]), (9, [2, 1]), (7, [2, 3]), (20, [0, 3])] {
            levels.note(&Holds(held.to_vec()), now);
        }
        let samples: Vec<_> = levels.levels().iter().map(Level::samples).collect();
        assert_eq!(samples, [&[(9, 2), (20, 0)][..], &[(5, 1), (9, 3)]]);
    }
}
