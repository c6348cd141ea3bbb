//! Fences that did not wait and are not settled, and the versions that come after them: where caches keep the
//! order on, these are performed before what comes first is durable, and may not be durable yet.
//!
//! | a version waits for the open fences | of |
//! |---|---|
//! | issued before its store | its CTA; the whole launch where that uses barriers of the kernel |
//! | all | launches that come before its own, or before the part of it ([`launch_order`](super::launch_order)) |
//!
//! That is more than the program may ask for: a warp need not know of its CTA's fences, so that some states
//! that are allowed are not among those of level B. The others are: a version is released by what was durable
//! in the run. Invariant: versions of a line are released in their order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use durawarp_persist::journal::Fact;

use super::launch_order::LaunchOrder;

/// A launch and a CTA of it.
type CtaOfLaunch = (u32, u32);

/// A version that waits: its number, its store and whose that is.
#[derive(Debug)]
struct KeptVersion {
    version: u32,
    store: u32,
    cta: Option<CtaOfLaunch>,
}

/// Fences and versions.
#[derive(Debug, Default)]
pub(super) struct OpenFences {
    /// By CTA, the facts of its fences.
    open: BTreeMap<CtaOfLaunch, BTreeSet<u32>>,
    /// By line.
    kept: BTreeMap<u32, VecDeque<KeptVersion>>,
    /// A barrier of a kernel was used.
    pub(super) wide: bool,
    /// Launches so far.
    pub(super) launches: LaunchOrder,
}

impl OpenFences {
    /// A fence lets its warp go on.
    pub(super) fn opens(&mut self, at: u32, fence: &Fact) {
        if let Some(cta) = fence.author.cta() {
            self.open.entry(cta).or_default().insert(at);
        }
    }

    /// All before the fence of fact `at` is durable.
    pub(super) fn settles(&mut self, at: u32, settled: &Fact) {
        let Some(cta) = settled.author.cta() else { return };
        if let Some(fences) = self.open.get_mut(&cta) {
            fences.remove(&at);
            if fences.is_empty() {
                self.open.remove(&cta);
            }
        }
    }

    /// A version of a line is performed; true where it is kept back, as its store, or an earlier version, is
    /// behind open fences.
    pub(super) fn keep(&mut self, line: u32, version: u32, store: Option<(u32, &Fact)>) -> bool {
        let kept =
            KeptVersion { version, store: store.map_or(0, |(at, _)| at), cta: store.and_then(|(_, f)| f.author.cta()) };
        let waits = self.kept.contains_key(&line) || self.is_behind(&kept);
        if waits {
            self.kept.entry(line).or_default().push_back(kept);
        }
        waits
    }

    fn is_behind(&self, kept: &KeptVersion) -> bool {
        let Some((launch, cta)) = kept.cta else { return false };
        let earlier = |fences: &BTreeSet<u32>| fences.first().is_some_and(|&fence| fence < kept.store);
        self.has_earlier((launch, cta), kept.store)
            || self.open.get(&(launch, cta)).is_some_and(earlier)
            || self.wide && self.open.range((launch, 0)..(launch + 1, 0)).any(|(_, fences)| earlier(fences))
    }

    /// Fences of a launch that comes before a CTA's store are open.
    fn has_earlier(&self, cta: CtaOfLaunch, store: u32) -> bool {
        let mut of = self.open.keys().map(|&(of, _)| of);
        if self.launches.is_total() {
            return of.next().is_some_and(|first| first < cta.0);
        }
        let part = self.launches.part_of(cta, store);
        of.any(|earlier| self.launches.is_before(earlier, part))
    }

    /// Takes the versions that nothing keeps back any more, as line and number.
    pub(super) fn released(&mut self) -> Vec<(u32, u32)> {
        let mut released = Vec::new();
        let mut kept = std::mem::take(&mut self.kept);
        for (&line, versions) in &mut kept {
            while let Some(version) = versions.front().filter(|version| !self.is_behind(version)) {
                released.push((line, version.version));
                versions.pop_front();
            }
        }
        kept.retain(|_, versions| !versions.is_empty());
        self.kept = kept;
        released
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::{Model, RunOrder};
    use super::super::script::{Script, warp, warp_of};
    use durawarp_persist::image::PmImage;
    use durawarp_persist::journal::{Author, FactKind};
    use durawarp_persist::promises::Promises;
    use durawarp_persist::vocab::{Domain, NonTemporalOrder, PersistScope};

    const A: u64 = 0;
    const B: u64 = 128;

    /// Of lines A and B at the end: up to which version they may be durable.
    fn may(script: &Script, non_temporal: NonTemporalOrder) -> [u32; 2] {
        let initial = PmImage::new(0, vec![0; 512]);
        let promises = Promises { non_temporal, ..Promises::NONE };
        let order = RunOrder::new(&script.journal, &initial, Model { domain: Domain::Media, promises });
        let mut instant = order.instants();
        instant.advance_to(script.journal.facts().len());
        [A, B].map(|line| instant.bounds()[order.line_at(line).unwrap()].may)
    }

    fn in_caches(script: &Script) -> [u32; 2] {
        may(script, NonTemporalOrder::EpochsInCaches)
    }

    #[test]
    fn what_is_behind_an_open_fence_may_not_be_durable_until_that_is_settled() {
        let mut script = Script::default();
        script.through(warp(0), A, 1).ordered(warp(0)).through(warp(0), B, 2);
        assert_eq!((in_caches(&script), may(&script, NonTemporalOrder::Epochs)), ([1, 0], [1, 1]));
        script.through(warp_of(7, 0), B, 3);
        assert_eq!(in_caches(&script), [1, 0], "a line goes in its order");
        script.settled(warp(0));
        assert_eq!(in_caches(&script), [1, 2]);
    }

    #[test]
    fn fences_of_other_ctas_matter_where_barriers_are_the_kernels_and_all_of_earlier_launches() {
        let of = |wide: bool, by: Author| {
            let mut script = Script::default();
            if wide {
                script.fact(FactKind::PersistReached(PersistScope::Kernel), 0, warp(0));
            }
            script.through(warp(0), A, 1).ordered(warp(0)).through(by, B, 2);
            in_caches(&script)[1]
        };
        let later = Author::Warp { sm: 1, launch: 1, cta: 7, warp: 0, pc: 0 };
        assert_eq!([of(false, warp_of(7, 0)), of(true, warp_of(7, 0)), of(false, later)], [1, 0, 0]);
    }

    #[test]
    fn what_another_warp_has_waited_for_may_be_durable_all_the_same() {
        let mut script = Script::default();
        script.through(warp(0), A, 1).ordered(warp(0)).through(warp(1), B, 2).fence(warp(1));
        assert_eq!(in_caches(&script), [1, 1]);
    }
}
