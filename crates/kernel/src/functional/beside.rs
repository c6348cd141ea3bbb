//! Races between launches that may run at once: launches of different streams, and a programmatic launch
//! beside those before it in its stream until it has waited for them.
//!
//! | a launch comes after | |
//! |---|---|
//! | the launches before it in its stream | of a programmatic one, what follows a `griddepcontrol.wait` alone |
//! | the launches that it waits for by events | and what is over with these |
//! | what every other step of the host stands behind | such a step waits for all launches |
//!
//! The functional driver runs launches one by one. What each has accessed in global memory is kept, and an
//! access of a later launch that is not ordered behind it is held against that. The wait is a clock of its
//! own, which warps pass on as they pass on all that they know: by barriers, by flags. What an earlier launch
//! has published by a flag is known to who reads it here.
//!
//! Not found: races with launches further back than `MOST_KEPT` and `MOST_WORDS` keep; with what comes before
//! the `pm.barrier.kr` of an earlier launch.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::launch::Launch;
use super::clocks::{Clocks, PastAccess, Shadow};

/// Launches whose accesses are kept at a time.
const MOST_KEPT: usize = 32;
/// Words that they have accessed, all together: some 500 MB.
const MOST_WORDS: usize = 1 << 22;

/// In clocks, the launches before in the stream: its first party's clock is 1 for who has waited for them.
pub(super) const WAITED: u64 = u64::MAX;

/// A launch that has ended here, as launches that may run beside it see it.
#[derive(Debug)]
pub(super) struct PastLaunch {
    pub(super) launch: Launch,
    pub(super) number: u32,
    /// Warps of a CTA.
    pub(super) warps: usize,
    pub(super) global: Shadow,
    /// A CTA lets the next launch begin, or ends, before it has waited for the launches before it.
    pub(super) lets_go_early: bool,
}

impl PastLaunch {
    /// The name of one of its CTAs in clocks of later launches.
    fn cta(&self, cta: u64) -> u64 {
        1 << 63 | u64::from(self.number) << 40 | cta
    }

    /// A later launch reads a word by which this one may have published something.
    pub(super) fn acquire(&self, word: u64, seen: &mut Clocks) {
        if let Some(flag) = self.global.flags.get(&word) {
            seen.join(&flag.device.renamed(|cta| self.cta(cta)));
        }
    }
}

/// A launch that another may run beside.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    pub(super) past: Arc<PastLaunch>,
    /// Only until it waits for those before it in its stream.
    pub(super) until_wait: bool,
}

impl Beside {
    /// Accesses of that launch that race with one of this, whose warp knows so much.
    #[inline]
    pub(super) fn against(&self, word: u64, own: &PastAccess, seen: &Clocks, race: impl FnMut(PastAccess)) {
        if self.until_wait && seen.of(WAITED, 0) > 0 {
            return;
        }
        let ordered = |other: &&PastAccess| seen.of(self.past.cta(other.cta), other.warp) >= other.clock;
        let past = self.past.global.cells.get(&word);
        past.into_iter().flat_map(|past| past.conflicts(*own)).filter(|other| !ordered(other)).copied().for_each(race);
    }
}

/// When a launch begins and ends, by the numbers of launches.
#[derive(Debug)]
struct Ordered {
    stream: u64,
    /// They are over when all its CTAs have let the next launch begin, or have ended.
    over_before_next: BTreeSet<u32>,
    /// They are over when it is.
    over_with: BTreeSet<u32>,
}

/// The launches of a program since all were over.
#[derive(Debug, Default)]
pub(super) struct LaunchOrder {
    /// Number of the first.
    first: u32,
    launches: Vec<Ordered>,
    kept: Vec<Arc<PastLaunch>>,
}

impl LaunchOrder {
    /// All launches before this number are over.
    pub(super) fn gathered(&mut self, number: u32) {
        *self = LaunchOrder { first: number, ..LaunchOrder::default() };
    }

    /// The next launch begins: beside which it may run.
    pub(super) fn begin(&mut self, launch: &Launch) -> Vec<Beside> {
        let (mut begins_after, mut waited) = (BTreeSet::new(), BTreeSet::new());
        let with = |number: u32| {
            let ordered = number.checked_sub(self.first).and_then(|at| self.launches.get(at as usize));
            ordered.into_iter().flat_map(move |ordered| ordered.over_with.iter().copied().chain([number]))
        };
        launch.after.iter().for_each(|&number| begins_after.extend(with(number)));
        if let Some(at) = self.launches.iter().rposition(|before| before.stream == launch.stream) {
            let over = with(self.first + at as u32);
            if launch.programmatic {
                waited.extend(over);
                begins_after.extend(&self.launches[at].over_before_next);
            } else {
                begins_after.extend(over);
            }
        }
        let beside = self.kept.iter().filter(|past| !begins_after.contains(&past.number));
        let beside = beside.map(|past| Beside { past: past.clone(), until_wait: waited.contains(&past.number) });
        let beside = beside.collect();
        let over_with = begins_after.union(&waited).copied().collect();
        self.launches.push(Ordered { stream: launch.stream, over_before_next: begins_after, over_with });
        beside
    }

    /// It has ended here.
    pub(super) fn end(&mut self, past: PastLaunch) {
        if let Some(ordered) = self.launches.last_mut().filter(|_| !past.lets_go_early) {
            ordered.over_before_next = ordered.over_with.clone();
        }
        self.kept.push(Arc::new(past));
        let words = |kept: &[Arc<PastLaunch>]| kept.iter().map(|past| past.global.cells.len()).sum::<usize>();
        while self.kept.len() > MOST_KEPT || self.kept.len() > 1 && words(&self.kept) > MOST_WORDS {
            self.kept.remove(0);
        }
    }
}
