//! How much counters grew in each window of time, in bounded memory: rates over time.
//!
//! A component notes its totals when something happens. What it *counted* grew at the instant of the note
//! before, since a note comes first in an event; what it *spent* (warp cycles) grew evenly since then, as
//! nothing changed in between. Windows are as long as [`FIRST_WINDOW`] times a power of two, from time 0 on,
//! so that those of several components fall together.

/// Windows that are kept, at most.
const WINDOWS: usize = 1024;

/// Ticks of a window at first.
const FIRST_WINDOW: u64 = 1024;

/// Growth of some counters, counted ones first.
#[derive(Debug, Clone)]
pub struct Growth {
    /// How many of the totals are counted; the others are spent.
    counted: usize,
    totals: Vec<u64>,
    since: u64,
    window: u64,
    /// Window by window, counter by counter.
    grown: Vec<u64>,
}

impl Growth {
    /// Of so many counted and spent totals, all 0 at time 0.
    pub fn new(counted: usize, spent: usize) -> Self {
        Growth { counted, totals: vec![0; counted + spent], since: 0, window: FIRST_WINDOW, grown: Vec::new() }
    }

    /// The totals are these at the beginning of an event at `now`, which is not before the last.
    ///
    /// # Panics
    /// When they are not as many as there are counters.
    pub fn note(&mut self, now: u64, totals: &[u64]) {
        assert_eq!(totals.len(), self.totals.len(), "as many totals as counters");
        // A run's end may be before its last event: writes that are left go on.
        let now = now.max(self.since);
        while now / self.window >= WINDOWS as u64 {
            self.widen();
        }
        let width = totals.len();
        let (first, last) = (self.since / self.window, now / self.window);
        if self.grown.len() < (last as usize + 1) * width {
            self.grown.resize((last as usize + 1) * width, 0);
        }
        for (at, &total) in totals.iter().enumerate() {
            let grew = total.saturating_sub(self.totals[at]);
            self.totals[at] += grew;
            if grew == 0 {
                continue;
            }
            if at < self.counted || first == last {
                self.grown[first as usize * width + at] += grew;
                continue;
            }
            // By the share of the time up to each window's end: parts add up to the whole.
            let share =
                |time: u64| (u128::from(grew) * u128::from(time - self.since) / u128::from(now - self.since)) as u64;
            let mut before = 0;
            for window in first..=last {
                let until = share(((window + 1) * self.window).min(now));
                self.grown[window as usize * width + at] += until - before;
                before = until;
            }
        }
        self.since = now;
    }

    fn widen(&mut self) {
        let width = self.totals.len();
        let pairs = self.grown.chunks(2 * width);
        self.grown =
            pairs.flat_map(|pair| (0..width).map(move |at| pair.iter().skip(at).step_by(width).sum())).collect();
        self.window *= 2;
    }

    /// Ticks of a window.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// What a counter grew by in each of the windows of `ticks`, which is a window's length or a power of two
    /// times as much.
    pub fn of(&self, counter: usize, ticks: u64) -> Vec<u64> {
        let each = (ticks / self.window).max(1) as usize;
        let grown: Vec<u64> = self.grown.iter().skip(counter).step_by(self.totals.len()).copied().collect();
        grown.chunks(each).map(|windows| windows.iter().sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_grew_at_the_note_before_and_what_is_spent_grew_evenly() {
        let mut growth = Growth::new(1, 1);
        growth.note(1000, &[0, 0]);
        // 5 were counted in the event at 1000; 2000 ticks have passed since, 24 of them in the first window.
        growth.note(3000, &[5, 2000]);
        growth.note(3001, &[7, 2001]);
        assert_eq!(growth.of(0, 1024), [5, 0, 2]);
        assert_eq!(growth.of(1, 1024), [24, 1024, 953]);
        assert_eq!(growth.of(1, 2048), [1048, 953]);
    }

    #[test]
    fn windows_grow_with_time_and_lose_nothing() {
        let mut growth = Growth::new(1, 1);
        for time in 0..5000u64 {
            growth.note(time * 997, &[time, time * 997]);
        }
        let (counted, spent) = (growth.of(0, growth.window()), growth.of(1, growth.window()));
        assert_eq!(growth.window(), 8192);
        assert!(counted.len() <= WINDOWS);
        assert_eq!(counted.iter().sum::<u64>(), 4999);
        assert_eq!(spent.iter().sum::<u64>(), 4999 * 997);
        assert!(spent[..spent.len() - 1].iter().all(|&ticks| ticks == growth.window()), "{spent:?}");
    }
}
