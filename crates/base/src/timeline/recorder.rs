//! One component's timeline, in bounded memory.

use super::slice::{Label, Slice};

/// Spans by lane; a lane has one span under way at a time.
#[derive(Debug, Clone)]
pub struct Recorder {
    limit: usize,
    under_way: Vec<Option<(u64, Label)>>,
    kept: Vec<(u32, Slice)>,
    /// Spans that were over.
    over: u64,
    /// Of this many spans one is kept, the first.
    every: u64,
}

impl Recorder {
    /// An empty one that keeps up to `limit` spans, 2 at least.
    pub fn new(limit: usize) -> Self {
        Recorder { limit: limit.max(2), under_way: Vec::new(), kept: Vec::new(), over: 0, every: 1 }
    }

    /// A span begins, unless the lane's last is still under way.
    #[inline]
    pub fn begin(&mut self, lane: usize, time: u64, label: Label) {
        if self.under_way.len() <= lane {
            self.under_way.resize(lane + 1, None);
        }
        self.under_way[lane].get_or_insert((time, label));
    }

    /// The lane's span, if it has one under way, is over.
    #[inline]
    pub fn end(&mut self, lane: usize, time: u64) {
        if let Some((start, label)) = self.under_way.get_mut(lane).and_then(Option::take) {
            self.whole(lane, start, time, label);
        }
    }

    /// A span of which both ends are known.
    #[inline]
    pub fn whole(&mut self, lane: usize, start: u64, end: u64, label: Label) {
        if self.over.is_multiple_of(self.every) {
            if self.kept.len() == self.limit {
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.every *= 2;
            }
            if self.over.is_multiple_of(self.every) {
                self.kept.push((lane as u32, Slice { start, end: end.max(start), label, cut: false }));
            }
        }
        self.over += 1;
    }

    /// How many spans were noted.
    pub fn noted(&self) -> u64 {
        self.over + self.under_way.iter().flatten().count() as u64
    }

    /// What was kept, with the lane of each, and what was under way at `now`.
    pub fn slices(&self, now: u64) -> impl Iterator<Item = (usize, Slice)> {
        let over = self.kept.iter().map(|&(lane, slice)| (lane as usize, slice));
        let cut = self.under_way.iter().enumerate().filter_map(move |(lane, span)| {
            span.map(|(start, label)| (lane, Slice { start, end: now.max(start), label, cut: true }))
        });
        over.chain(cut)
    }

    /// The same lane by lane, by time.
    pub fn lanes(&self, now: u64) -> Vec<(usize, Vec<Slice>)> {
        let mut all: Vec<(usize, Slice)> = self.slices(now).collect();
        all.sort_by_key(|(lane, slice)| (*lane, slice.start, slice.end));
        let runs = all.chunk_by(|a, b| a.0 == b.0);
        runs.map(|run| (run[0].0, run.iter().map(|(_, slice)| *slice).collect())).collect()
    }
}

/// A number over time.
#[derive(Debug, Clone)]
pub struct Level {
    limit: usize,
    samples: Vec<(u64, u64)>,
    noted: u64,
    /// Ticks of a stretch; the last value in each is kept.
    stretch: u64,
}

impl Level {
    /// An empty one that keeps up to `limit` values, 2 at least.
    pub fn new(limit: usize) -> Self {
        Level { limit: limit.max(2), samples: Vec::new(), noted: 0, stretch: 1 }
    }

    /// The number is `value` from `time` on, which is not before the last.
    #[inline]
    pub fn note(&mut self, time: u64, value: u64) {
        // Values of one instant are one.
        self.noted += u64::from(self.samples.last().is_none_or(|last| last.0 != time));
        if let Some(last) = self.samples.last_mut()
            && last.0 / self.stretch == time / self.stretch
        {
            *last = (time, value);
            return;
        }
        while self.samples.len() >= self.limit {
            self.stretch *= 2;
            self.samples = last_of_stretches(&self.samples, self.stretch);
        }
        match self.samples.last_mut() {
            Some(last) if last.0 / self.stretch == time / self.stretch => *last = (time, value),
            _ => self.samples.push((time, value)),
        }
    }

    /// How many values were noted.
    pub fn noted(&self) -> u64 {
        self.noted
    }

    /// What was kept: since when, and what.
    pub fn samples(&self) -> &[(u64, u64)] {
        &self.samples
    }
}

/// The last value in each stretch of `ticks` ticks.
pub fn last_of_stretches(samples: &[(u64, u64)], ticks: u64) -> Vec<(u64, u64)> {
    let stretches = samples.chunk_by(|a, b| a.0 / ticks == b.0 / ticks);
    stretches.filter_map(|stretch| stretch.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label::Kernel { launch: 0 };

    #[test]
    fn a_full_recorder_keeps_every_second_span_and_counts_all() {
        let mut recorder = Recorder::new(8);
        for i in 0..100 {
            recorder.begin(i % 3, 10 * i as u64, LABEL);
            recorder.end(i % 3, 10 * i as u64 + 5);
        }
        recorder.begin(0, 2000, LABEL);
        assert_eq!(recorder.noted(), 101);
        let mut starts: Vec<(u64, bool)> = recorder.slices(2500).map(|(_, slice)| (slice.start, slice.cut)).collect();
        starts.sort_unstable();
        assert_eq!(starts.last(), Some(&(2000, true)));
        let over: Vec<u64> = starts[..starts.len() - 1].iter().map(|(start, _)| *start).collect();
        assert!((4..=8).contains(&over.len()));
        let step = over[1] - over[0];
        assert!(over.windows(2).all(|pair| pair[1] - pair[0] == step), "{over:?}");
        assert_eq!(over[0], 0, "the first is kept");
    }

    #[test]
    fn a_span_under_way_is_not_begun_again() {
        let mut recorder = Recorder::new(8);
        recorder.begin(1, 3, LABEL);
        recorder.begin(1, 5, LABEL);
        recorder.end(1, 9);
        recorder.end(1, 12);
        let slices: Vec<_> = recorder.slices(20).map(|(lane, slice)| (lane, slice.start, slice.end)).collect();
        assert_eq!(slices, [(1, 3, 9)]);
    }

    #[test]
    fn a_full_level_is_never_wrong_for_longer_than_a_stretch() {
        let mut level = Level::new(16);
        let value = |time: u64| if time > 600 { 0 } else { time % 7 };
        for time in (0..=601).filter(|time| time % 3 != 2) {
            level.note(time, value(time));
        }
        assert!(level.samples().len() <= 16 && level.noted() > 300);
        assert_eq!(level.samples().last(), Some(&(601, 0)), "after the last change it is exact");
        assert!(level.samples().iter().all(|&(time, kept)| value(time) == kept));
        let gaps = level.samples().windows(2).map(|pair| pair[1].0 - pair[0].0);
        assert!(gaps.max().unwrap() < 2 * level.stretch);
    }

    #[test]
    fn values_of_one_instant_are_one() {
        let mut level = Level::new(16);
        for value in [1, 2, 3] {
            level.note(4, value);
        }
        assert_eq!((level.samples(), level.noted()), (&[(4, 3)][..], 1));
    }
}
