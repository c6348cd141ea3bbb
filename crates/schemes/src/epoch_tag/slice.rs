//! The tags of an L2 slice: in which order dirty lines are written to memory.
//!
//! ```text
//!   line of an L1, with its tag ──> joins the slice's line, of the same epoch ─┐
//!                               └─> waits at the input, of another            ├─wanted─> all before it
//!   a way is needed, a flush, a line behind it is wanted ─────────────────────┘          durable ──> written
//! ```
//! | a version is | until |
//! |---|---|
//! | expected: its tag has come | its bytes are stored |
//! | dirty | its line is written; what is dirty of a line is of one instance and one epoch |
//! | leaving | no write of its line is under way |
//!
//! A wanted line leaves when no version of its instance up to its barrier id is there, and none behind fewer
//! barriers of the kernel (but for those of launches in flight together with its own), here and in the other
//! slices: these are asked through the hub. Where the L2 is one
//! slice all of it is decided here, without a message.
//!
//! Source: `epoch_tag.rs`. Invariants: what comes before a version that is here has arrived in the L2 before;
//! a line waits for lines of a lower place or of a lower barrier only, so that there is no cycle. Not
//! modelled: time of tag walks.

use std::collections::{BTreeMap, BTreeSet};

use durawarp_checkpoint::{state, state_methods, value};
use durawarp_persist::{
    Access, AccessKind, Handler, HandlerPlace, HandlerReport, Outbox, Peer, SchemeMessage, SliceEvent, SliceHandler,
    SliceInterests, VictimSearch, opened,
};

use super::message::{Earlier, LineTag, TagMessage};

/// A version: its SM, the slot of its CTA, its name there.
type VersionKey = (u16, u8, u64);

/// A version that is not durable.
#[derive(Debug, Clone, Copy)]
struct TaggedVersion {
    line: u64,
    after: u64,
    kernel: u64,
    leaving: bool,
}

value!(record TaggedVersion { line, after, kernel, leaving });

#[derive(Debug, Default)]
struct TagTally {
    versions: u64,
    joined: u64,
    conflicts: u64,
    kept: u64,
    evicted: u64,
    forced: u64,
    asked: u64,
}

value!(record TagTally { versions, joined, conflicts, kept, evicted, forced, asked });

/// The tags of a slice.
#[derive(Debug)]
pub(super) struct EpochTagSlice {
    /// Slices of the L2.
    slices: u16,
    /// Tags whose lines are on their way.
    expected: BTreeMap<(u16, u64), LineTag>,
    versions: BTreeMap<VersionKey, TaggedVersion>,
    /// Those of a line, the first to come first.
    lines: BTreeMap<u64, Vec<VersionKey>>,
    /// How many versions are here, by the number of barriers of the kernel that they are behind.
    kernels: BTreeMap<u64, u32>,
    /// Of barriers at which launches began beside others: which versions do not come before what is behind.
    beside: BTreeMap<u64, Vec<u64>>,
    /// Versions that are to be written.
    wanted: BTreeSet<VersionKey>,
    /// Of each instance, up to which number versions are wanted as they come.
    flushed: BTreeMap<(u16, u8), u64>,
    /// What other slices are known to have written: up to which number of an instance, and what is behind
    /// fewer barriers than this.
    open: BTreeMap<(u16, u8), u64>,
    open_kernel: u64,
    /// What they were asked for and have not written.
    asked: BTreeSet<Earlier>,
    /// What the hub waits for.
    owed: Vec<Earlier>,
    tally: TagTally,
}

state!(EpochTagSlice {
    saved: expected, versions, lines, kernels, beside, wanted, flushed, open, open_kernel, asked, owed, tally; kept: slices
});

impl EpochTagSlice {
    /// No line is dirty.
    pub(super) fn new(place: HandlerPlace) -> Self {
        EpochTagSlice {
            slices: place.slices,
            expected: BTreeMap::new(),
            versions: BTreeMap::new(),
            lines: BTreeMap::new(),
            kernels: BTreeMap::new(),
            beside: BTreeMap::new(),
            wanted: BTreeSet::new(),
            flushed: BTreeMap::new(),
            open: BTreeMap::new(),
            open_kernel: 0,
            asked: BTreeSet::new(),
            owed: Vec::new(),
            tally: TagTally::default(),
        }
    }

    /// The versions in a line's dirty bytes.
    fn dirty(&self, line: u64) -> impl Iterator<Item = VersionKey> {
        let keys = self.lines.get(&line).map(Vec::as_slice).unwrap_or_default();
        keys.iter().copied().filter(|key| !self.versions[key].leaving)
    }

    /// The versions of an instance up to a number.
    fn up_to(&self, (sm, cta): (u16, u8), number: u64) -> impl Iterator<Item = (&VersionKey, &TaggedVersion)> {
        self.versions.range((sm, cta, 0)..=(sm, cta, number))
    }

    /// A version behind `earlier` barriers comes before one behind `kernel`.
    fn comes_first(&self, earlier: u64, kernel: u64) -> bool {
        earlier < kernel && !self.beside.get(&kernel).is_some_and(|with| with.contains(&earlier))
    }

    /// A version is here that comes before those behind `kernel` barriers.
    fn has_before(&self, kernel: u64) -> bool {
        self.kernels.range(..kernel).any(|(&earlier, _)| self.comes_first(earlier, kernel))
    }

    /// Something that comes before a version is not known to be durable.
    fn is_behind((sm, cta, _): VersionKey, of: &EpochTagSlice, version: &TaggedVersion) -> bool {
        let TaggedVersion { after, kernel, .. } = *version;
        let here = || of.has_before(kernel);
        let elsewhere = || {
            let open = of.open.get(&(sm, cta)).copied().unwrap_or_default();
            of.slices > 1 && (open < after || of.open_kernel < kernel)
        };
        of.up_to((sm, cta), after).next().is_some() || here() || elsewhere()
    }

    /// A line may be written now.
    fn may_leave(&self, line: u64) -> bool {
        self.dirty(line).all(|key| !EpochTagSlice::is_behind(key, self, &self.versions[&key]))
    }

    /// A version is to be written, and what comes before it: that waits for nothing else, as lower places
    /// and lower barriers are among it. False where it was to be already.
    fn want(&mut self, key: VersionKey, outbox: &mut Outbox) -> bool {
        if !self.wanted.insert(key) {
            return false;
        }
        let ((sm, cta, _), TaggedVersion { after, kernel, .. }) = (key, self.versions[&key]);
        let mut before: Vec<VersionKey> = self.up_to((sm, cta), after).map(|(&key, _)| key).collect();
        if self.has_before(kernel) {
            let first = |version: &TaggedVersion| self.comes_first(version.kernel, kernel);
            before.extend(self.versions.iter().filter(|(_, version)| first(version)).map(|(&key, _)| key));
        }
        for key in before {
            if !self.versions[&key].leaving && self.wanted.insert(key) {
                self.tally.forced += 1;
                self.ask(key, outbox);
            }
        }
        self.ask(key, outbox);
        true
    }

    /// Asks the other slices for what comes before a wanted version. Each barrier id by itself: what they
    /// have of one may wait for an earlier one's here.
    fn ask(&mut self, key: VersionKey, outbox: &mut Outbox) {
        if self.slices == 1 {
            return;
        }
        let ((sm, cta, _), TaggedVersion { after, kernel, .. }) = (key, self.versions[&key]);
        let open = self.open.get(&(sm, cta)).copied().unwrap_or_default();
        let of_cta = (after > open).then_some(Earlier::Cta { sm, cta, number: after });
        let of_kernel = (kernel > self.open_kernel).then_some(Earlier::Kernel(kernel));
        for earlier in of_cta.into_iter().chain(of_kernel) {
            if self.asked.insert(earlier) {
                self.tally.asked += 1;
                outbox.send(Peer::Hub, TagMessage::Ask(earlier));
            }
        }
    }

    /// A line is to be written. False where it was to be already.
    fn want_line(&mut self, line: u64, outbox: &mut Outbox) -> bool {
        let dirty: Vec<VersionKey> = self.dirty(line).collect();
        let mut any = false;
        for key in dirty {
            any |= self.want(key, outbox);
        }
        if any {
            self.pump(outbox);
        }
        any
    }

    /// Has every wanted line written that may be.
    fn pump(&mut self, outbox: &mut Outbox) {
        let lines: Vec<u64> = self.wanted.iter().map(|key| self.versions[key].line).collect();
        // A line of several wanted versions has left when its second comes.
        for line in lines {
            if self.dirty(line).next().is_some() && self.may_leave(line) {
                self.leave(line);
                outbox.clean(line);
            }
        }
    }

    /// What is dirty of a line leaves.
    fn leave(&mut self, line: u64) {
        let dirty: Vec<VersionKey> = self.dirty(line).collect();
        for key in dirty {
            self.wanted.remove(&key);
            self.versions.entry(key).and_modify(|version| version.leaving = true);
        }
    }
}

impl EpochTagSlice {
    /// A line of an L1 is stored.
    fn stored(&mut self, from: u16, id: u64, outbox: &mut Outbox) {
        let Some(LineTag { line, cta, after, kernel, .. }) = self.expected.remove(&(from, id)) else { return };
        let key = (from, cta, id);
        self.tally.versions += 1;
        let joins: Vec<VersionKey> = self.dirty(line).collect();
        self.tally.joined += u64::from(!joins.is_empty());
        let is_wanted = self.flushed.get(&(from, cta)).is_some_and(|&number| id <= number)
            || joins.iter().any(|key| self.wanted.contains(key));
        self.versions.insert(key, TaggedVersion { line, after, kernel, leaving: false });
        self.lines.entry(line).or_default().push(key);
        *self.kernels.entry(kernel).or_default() += 1;
        if is_wanted {
            self.want_line(line, outbox);
        }
    }

    /// A store with a tag may join what is dirty of its line. It must be of the same instance and epoch.
    fn joins(&self, from: u16, tag: &LineTag) -> bool {
        self.dirty(tag.line).all(|key| {
            (key.0, key.1) == (from, tag.cta) && tag.after < key.2 && self.versions[&key].kernel == tag.kernel
        })
    }

    /// No write of a line is under way.
    fn durable(&mut self, line: u64, outbox: &mut Outbox) {
        let Some(keys) = self.lines.remove(&line) else { return };
        let (gone, left): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| self.versions[key].leaving);
        if !left.is_empty() {
            self.lines.insert(line, left);
        }
        for key in &gone {
            let TaggedVersion { kernel, .. } = self.versions.remove(key).expect("a version of a line is there");
            let of_kernel = self.kernels.entry(kernel).or_default();
            *of_kernel -= 1;
            if *of_kernel == 0 {
                self.kernels.remove(&kernel);
            }
            outbox.send(Peer::Sm(key.0), TagMessage::Durable(key.2));
        }
        if !gone.is_empty() {
            self.settle(outbox);
        }
    }

    /// Something is durable: what waited for it goes on.
    fn settle(&mut self, outbox: &mut Outbox) {
        self.pump(outbox);
        let owed = std::mem::take(&mut self.owed);
        let (open, drained): (Vec<_>, Vec<_>) = owed.into_iter().partition(|&earlier| self.has(earlier));
        self.owed = open;
        drained.into_iter().for_each(|earlier| outbox.send(Peer::Hub, TagMessage::Drained(earlier)));
    }

    /// Some of this is here.
    fn has(&self, earlier: Earlier) -> bool {
        match earlier {
            Earlier::Cta { sm, cta, number } => self.up_to((sm, cta), number).next().is_some(),
            Earlier::Kernel(kernel) => self.has_before(kernel),
        }
    }

    /// These versions are to be written.
    fn want_all(&mut self, of: impl Fn(&VersionKey, &TaggedVersion) -> bool, outbox: &mut Outbox) {
        let keys: Vec<VersionKey> = self
            .versions
            .iter()
            .filter(|(key, version)| !version.leaving && of(key, version))
            .map(|(&key, _)| key)
            .collect();
        keys.into_iter().for_each(|key| {
            self.want(key, outbox);
        });
        self.settle(outbox);
    }
}

impl Handler for EpochTagSlice {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match (from, opened(message)) {
            (Peer::Sm(sm), TagMessage::Tag(tag)) => {
                self.expected.insert((sm, tag.id), tag);
            }
            (Peer::Sm(sm), TagMessage::Flush { cta, number }) => {
                self.flushed.insert((sm, cta), number);
                self.want_all(|key, _| (key.0, key.1) == (sm, cta) && key.2 <= number, outbox);
            }
            (Peer::Sm(_), TagMessage::Beside { kernel, with }) => {
                self.beside.insert(kernel, with);
            }
            // The hub is answered when all of this is durable here, perhaps at once.
            (_, TagMessage::Want(earlier)) => {
                self.owed.push(earlier);
                match earlier {
                    Earlier::Cta { sm, cta, number } => {
                        self.want_all(|key, _| (key.0, key.1) == (sm, cta) && key.2 <= number, outbox);
                    }
                    Earlier::Kernel(kernel) => {
                        let beside = self.beside.get(&kernel).cloned().unwrap_or_default();
                        let first = |earlier: u64| earlier < kernel && !beside.contains(&earlier);
                        self.want_all(|_, version| first(version.kernel), outbox);
                    }
                }
            }
            (_, TagMessage::Open(earlier)) => {
                self.asked.remove(&earlier);
                let (known, new) = match earlier {
                    Earlier::Cta { sm, cta, number } => (self.open.entry((sm, cta)).or_default(), number),
                    Earlier::Kernel(kernel) => (&mut self.open_kernel, kernel),
                };
                *known = new.max(*known);
                self.pump(outbox);
            }
            (from, message) => panic!("a slice received {message:?} of {from:?}"),
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        let TagTally { versions, joined, conflicts, kept, evicted, forced, asked } = self.tally;
        report.count("l2_tagged_versions", versions);
        report.count("l2_joined_versions", joined);
        report.count("l2_conflicting_requests", conflicts);
        report.count("l2_kept_victims", kept);
        report.count("l2_evicted_versions", evicted);
        report.count("l2_forced_versions", forced);
        report.count("l2_asked_slices", asked);
    }
}

impl SliceHandler for EpochTagSlice {
    fn interests(&self) -> SliceInterests {
        SliceInterests { durability: true, admissions: true, victims: Some(VictimSearch::Full) }
    }

    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        match *event {
            SliceEvent::Accessed(access) if access.kind == AccessKind::Store && access.mark != 0 => {
                self.stored(access.from, access.mark, outbox);
            }
            SliceEvent::Replaced(line) => {
                self.tally.evicted += self.dirty(line).count() as u64;
                self.leave(line);
            }
            SliceEvent::Durable(line) => self.durable(line, outbox),
            SliceEvent::Accessed(_) | SliceEvent::Drain(_) => {}
        }
    }

    fn keeps(&mut self, line: u64, outbox: &mut Outbox) -> bool {
        if self.may_leave(line) {
            return false;
        }
        self.tally.kept += u64::from(self.want_line(line, outbox));
        true
    }

    fn admits(&mut self, access: &Access, outbox: &mut Outbox) -> bool {
        let admits = if access.mark != 0 && access.kind == AccessKind::Store {
            let Some(tag) = self.expected.get(&(access.from, access.mark)) else { return false };
            self.joins(access.from, tag)
        } else {
            self.dirty(access.line).next().is_none()
        };
        if !admits {
            self.tally.conflicts += u64::from(self.want_line(access.line, outbox));
        }
        admits
    }
}

#[cfg(test)]
mod tests;
