//! Properties that no single image shows, judged along the whole run: values that were never stored, versions
//! that go back, program order, ends of epochs, and acknowledgements that came too early.
//!
//! Durable bytes are matched to versions by value, word by word: a word that changes takes the *earliest*
//! version not older than its last one that has these bytes. So "this version is durable" is claimed only
//! when no older version explains the bytes, and "that version is not durable" only when neither it nor a
//! later one does: equal values can hide a fault, never make one. Under ADR and eADR what becomes durable
//! comes from one content of its word; where the media alone survives, the queue merges writes of several, so
//! bytes are matched one by one there.
//!
//! Persist barriers are judged by their definition (`scopes`), whatever a scheme makes of them.
//!
//! Source: properties P0, P1, P2, P5, P9 of the oracle's design; strict and epoch persistency as in Pelley et
//! al. (ISCA'14). Over 500 lines; nearly half are tests, one case a property, each a few facts of a script.
//! Invariants: cost is linear in facts and bytes, as matches only go forward. Not modelled: P1 for the lanes
//! of one instruction, which have no order among each other.

use super::authors::ShownAuthor;
use super::crash::{CrashStates, Hashed};
use super::order::{Effect, RunOrder, VersionEntry, byte_mask};
use super::scopes::Scopes;
use super::verdict::{Failure, Level, Persist, Property, Verdict, Witness, WrongValue};
use super::{LINE, WORDS, runs};
use durawarp_persist::journal::{Fact, FactKind};
use durawarp_persist::vocab::{Domain, PersistScope};

/// Judges the history of a run: the facts' agreement, P0 and P9, and what the promises of `order` name of P1,
/// P2 (ends of CTAs and kernels) and P5. Keeps the first `keep` failures.
///
/// # Panics
/// When states and order are not of the same journal.
pub fn judge_history(states: &CrashStates<'_>, order: &RunOrder<'_>, keep: usize) -> Verdict {
    judge(states, order, None, keep)
}

/// The same, but for persist barriers: each counts as one of scope `claim`, which shows what a program lacks
/// that relies on that scope and uses a narrower one.
///
/// # Panics
/// When states and order are not of the same journal.
pub fn judge_claim(states: &CrashStates<'_>, order: &RunOrder<'_>, claim: PersistScope, keep: usize) -> Verdict {
    judge(states, order, Some(claim), keep)
}

fn judge(states: &CrashStates<'_>, order: &RunOrder<'_>, claim: Option<PersistScope>, keep: usize) -> Verdict {
    assert!(std::ptr::eq(states.journal(), order.journal), "states and order of different journals");
    let mut history = History {
        states,
        order,
        durable: Hashed::new(states.initial().clone()),
        reached: vec![[0; WORDS]; order.lines.len()],
        confirmed: vec![Some(0); order.warps.len()],
        scopes: Scopes::new(order, claim),
        point: 0,
        bad_points: 0,
        last_bad: None,
        keep,
        verdict: Verdict { points: states.changes(), exhaustive: true, ..Verdict::default() },
    };
    // Every change of the durable state is judged, whether or not another left the same image: what is judged
    // here is how a state came about. A claim is about persist barriers alone.
    history.run(order.promises.strict && claim.is_none());
    let History { mut verdict, bad_points, .. } = history;
    verdict.distinct = states.changes();
    verdict.judged = verdict.distinct;
    verdict.passed = verdict.judged.saturating_sub(bad_points);
    verdict.settle(keep)
}

struct History<'s, 'a> {
    states: &'s CrashStates<'a>,
    order: &'s RunOrder<'a>,
    durable: Hashed,
    /// By line and word: the entry of its history that it has surely come to.
    reached: Vec<[u32; WORDS]>,
    /// By warp: how many of its stores are known to be durable; none once it was reported.
    confirmed: Vec<Option<usize>>,
    /// What persist barriers order.
    scopes: Scopes,
    point: u64,
    /// Points with a failure, and the last of them.
    bad_points: u64,
    last_bad: Option<u64>,
    keep: usize,
    verdict: Verdict,
}

impl History<'_, '_> {
    fn run(&mut self, strict: bool) {
        let facts = self.states.journal().facts();
        let change = super::crash::change_kind(self.states.domain());
        let (mut next_event, mut next_fault) = (0, 0);
        // The faults of one fact are noted as facts are read, hence in order.
        let (events, faults) = (&self.order.events, self.order.faults());
        for (at, fact) in facts.iter().enumerate() {
            if fact.kind == change && fact.mask != 0 {
                self.point += 1;
                self.change(at, fact, strict);
            }
            while let Some(fault) = faults.get(next_fault).filter(|fault| fault.fact == at) {
                self.fail(Property::Facts, at, fault.what.clone(), None);
                next_fault += 1;
            }
            while let Some(event) = events.get(next_event).filter(|event| event.fact as usize == at) {
                // What is performed is durable where the L2 survives: nothing to judge.
                let promises = event.effect != Effect::May && fact.kind != FactKind::Performed;
                if promises || event.effect == Effect::NonTemporal {
                    self.guaranteed(at, fact, event.line as usize, event.version, event.effect);
                }
                next_event += 1;
            }
        }
    }

    fn fail(&mut self, property: Property, at: usize, what: String, witness: Option<Witness>) {
        self.fail_with(property, at, what, Vec::new(), witness);
    }

    fn fail_with(
        &mut self,
        property: Property,
        at: usize,
        what: String,
        values: Vec<WrongValue>,
        witness: Option<Witness>,
    ) {
        self.verdict.failed += 1;
        // Points come in their order.
        self.bad_points += u64::from(self.last_bad != Some(self.point));
        self.last_bad = Some(self.point);
        if self.verdict.failures.len() < self.keep {
            let (point, time) = (self.point, self.states.journal().facts()[at].time);
            let (level, choice) = (Level::Actual, None);
            self.verdict.failures.push(Failure { property, level, point, choice, time, what, values, witness });
        }
    }

    /// A change of the durable state: P0, and what follows for P1.
    fn change(&mut self, at: usize, fact: &Fact, strict: bool) {
        let Some(line) = self.order.line_at(fact.line) else { return };
        let data = self.states.journal().data(fact);
        let bytes = spread(fact.mask, data);
        // Before any word is judged by what else is durable, all are in place.
        self.durable.write_masked(fact.line, fact.mask, data);
        for word in 0..WORDS {
            let mask = byte_mask(fact.mask, word);
            if mask == 0 {
                continue;
            }
            let value = super::order::word_of(&bytes, word);
            let before = self.reached[line][word];
            let entries = &self.order.lines[line].words[word];
            let performed = |entry: &VersionEntry| entry.version == 0 || self.performed(line, entry.version) <= at;
            let matches = |entries: &[VersionEntry], from: u32, mask: u64| {
                let ahead = entries.iter().enumerate().skip(from as usize).take_while(|(_, entry)| performed(entry));
                ahead.filter(|(_, entry)| (entry.value ^ value) & mask == 0).map(|(nth, _)| nth as u32).next()
            };
            // The search begins at the version that the word has: words only go forward, and of two versions
            // with these bytes the earlier is taken, which claims less.
            let whole = matches(entries, before, mask);
            let found = whole.or_else(|| {
                let merged = self.states.domain() == Domain::Media;
                let byte = |byte: usize| match 0xff_u64 << (byte * 8) & mask {
                    0 => Some(u32::MAX),
                    bits => matches(entries, before, bits),
                };
                // Bytes may come from several versions; the least of them is all that is certainly reached.
                let bytes = (0..8).map(byte).try_fold(u32::MAX, |least, found| Some(least.min(found?)));
                bytes.filter(|_| merged)
            });
            match found {
                Some(reached) => {
                    let version = entries[reached as usize].version;
                    self.reached[line][word] = reached;
                    if strict && reached != before {
                        self.program_order(at, line, version);
                    }
                    if self.scopes.any() && reached != before {
                        self.scope_order(at, line, version);
                    }
                }
                // No version from here on has these bytes. An older one tells a step back from a value that
                // was never stored.
                None => {
                    let older = matches(&entries[..before as usize], 0, mask).map(|nth| entries[nth as usize].version);
                    let newer = entries[before as usize].version;
                    self.value_fault(at, line, word, older, newer);
                }
            }
        }
    }

    fn performed(&self, line: usize, version: u32) -> usize {
        self.order.lines[line].versions[version as usize - 1].performed as usize
    }

    fn value_fault(&mut self, at: usize, line: usize, word: usize, older: Option<u32>, newer: u32) {
        let address = self.order.lines[line].address + word as u64 * 8;
        let (what, missing) = match older {
            Some(older) => (
                format!("the word at {address:#x} goes back from version {newer} of its line to version {older}"),
                self.persist(line, newer, address),
            ),
            None => (format!("the word at {address:#x} is durable with bytes that no version has"), None),
        };
        let present = older.and_then(|older| self.persist(line, older, address));
        let witness = (missing.is_some() || present.is_some()).then_some(Witness { missing, present });
        let mut value = self.wrong_word(line, newer, address);
        if let (None, Some(bytes)) = (older, &mut value.bytes) {
            bytes.expected = None;
        }
        self.fail_with(Property::Value, at, what, vec![value], witness);
    }

    /// The word at an address, which lacks a version's bytes.
    fn wrong_word(&self, line: usize, version: u32, address: u64) -> WrongValue {
        let history = &self.order.lines[line];
        let word = (address - history.address) as usize / 8;
        let entries = &history.words[word];
        let value = entries[entries.partition_point(|entry| entry.version <= version) - 1].value;
        let start = history.address + word as u64 * 8;
        WrongValue::of_bytes(start, self.durable.image.read(start, 8).unwrap_or_default(), &value.to_le_bytes())
    }

    fn persist(&self, line: usize, version: u32, address: u64) -> Option<Persist> {
        let author = self.order.author(line, version)?;
        Some(Persist::new("store", author, self.order.lines[line].address, address))
    }

    /// P1: a version is durable, so all that its warp stored before must be.
    fn program_order(&mut self, at: usize, line: usize, version: u32) {
        let Some(author) = self.order.author(line, version) else { return };
        let Some(program) = self.order.lines[line].versions[version as usize - 1].program else { return };
        let Ok(warp) = self.order.warps.binary_search_by_key(&author.thread(), |warp| warp.thread) else { return };
        let facts = self.states.journal().facts();
        let stores = &self.order.warps[warp].stores;
        let mut before = stores.partition_point(|&store| store < program);
        // The lanes of one instruction have no order.
        let instruction = |store: u32| (facts[store as usize].time, facts[store as usize].author.pc());
        while before > 0 && instruction(stores[before - 1]) == instruction(program) {
            before -= 1;
        }
        let Some(mut confirmed) = self.confirmed[warp] else { return };
        while confirmed < before {
            let store = stores[confirmed] as usize;
            let place = self.order.version_of(store);
            if place.is_none_or(|(line, version)| self.lacks(at, line, version, false).is_some()) {
                let earlier = facts[store];
                let missing = Persist::new("store", earlier.author, earlier.line, earlier.line);
                let present = self.persist(line, version, self.order.lines[line].address);
                let ShownAuthor { cta, warp: number, pc, .. } = author.into();
                let what = format!(
                    "warp {number} of CTA {cta}: pc {pc} is durable before pc {}, which it stored earlier",
                    missing.pc
                );
                self.confirmed[warp] = None;
                self.fail(Property::Strict, at, what, Some(Witness { missing: Some(missing), present }));
                return;
            }
            confirmed += 1;
        }
        self.confirmed[warp] = Some(confirmed);
    }

    /// P2 of scopes: a version is durable, so all that its instances stored in earlier epochs must be.
    fn scope_order(&mut self, at: usize, line: usize, version: u32) {
        let facts = self.states.journal().facts();
        let programs: Vec<u32> = self.order.programs(&self.order.lines[line].versions[version as usize - 1]).collect();
        for program in programs {
            let standing: Vec<(usize, usize)> = self.scopes.epochs_of(program).collect();
            for (number, epoch) in standing {
                let Some((mut behind, mut next)) = self.scopes.instances[number].confirmed else { continue };
                // The search resumes after the last store that was found durable, since what is durable
                // remains so: every store is looked at once in the whole run.
                let mut lacking = None;
                while behind < epoch && lacking.is_none() {
                    match self.scopes.instances[number].epochs[behind].get(next) {
                        None => (behind, next) = (behind + 1, 0),
                        Some(&store) => {
                            let place = self.order.version_of(store as usize);
                            if place.is_none_or(|(line, version)| self.lacks(at, line, version, false).is_some()) {
                                lacking = Some(store as usize);
                            }
                            next += 1;
                        }
                    }
                }
                self.scopes.instances[number].confirmed = lacking.is_none().then_some((behind, next));
                // One fault is enough: an instance whose promise is broken is not judged again.
                let Some(store) = lacking else { continue };
                let (earlier, later) = (facts[store], ShownAuthor::from(facts[program as usize].author));
                let missing = Persist::new("store", earlier.author, earlier.line, earlier.line);
                let present = self.persist(line, version, self.order.lines[line].address);
                let name = self.scopes.instances[number].scope.map_or("", PersistScope::name);
                let what = format!(
                    "warp {} of CTA {}: pc {} is durable before pc {} of warp {} of CTA {}, which pm.barrier.{name} orders \
                     before it",
                    later.warp, later.cta, later.pc, missing.pc, missing.warp, missing.cta
                );
                self.fail(Property::Scope, at, what, Some(Witness { missing: Some(missing), present }));
            }
        }
    }

    /// P2, P5 and P9: what counts as durable from here on is.
    fn guaranteed(&mut self, at: usize, fact: &Fact, line: usize, version: u32, effect: Effect) {
        let Some(address) = self.lacks(at, line, version, effect == Effect::Prefix) else { return };
        let missing = self.persist(line, version, address);
        // From here on there is a fault. Its property is that of the fact which gave the guarantee.
        let ShownAuthor { sm, launch, cta, warp, .. } = fact.author.into();
        let (property, what) = match fact.kind {
            FactKind::CtaEnded => (Property::Epoch, format!("CTA {cta} ended")),
            FactKind::KernelEnded => (Property::Epoch, format!("launch {launch} ended")),
            FactKind::KernelStarted => (Property::Acknowledged, format!("launch {launch} began")),
            FactKind::FenceSettled => {
                (Property::Acknowledged, format!("what warp {warp} of CTA {cta} fenced was settled"))
            }
            FactKind::PersistPassed(scope) => {
                let name = scope.name();
                (Property::Acknowledged, format!("warp {warp} of CTA {cta} passed pm.barrier.{name}"))
            }
            FactKind::Performed => {
                let store = format!("a later store of SM {sm} to line {:#x} was performed", fact.line);
                (Property::Ordered, store)
            }
            _ => (Property::Acknowledged, format!("warp {warp} of CTA {cta} passed its fence")),
        };
        let what = format!("{what} while bytes at {address:#x} were not durable");
        let present = match (&property, self.order.version_of(at)) {
            (Property::Ordered, Some((line, version))) => self.persist(line, version, fact.line),
            _ => None,
        };
        let values = vec![self.wrong_word(line, version, address)];
        let witness = missing.map(|missing| Witness { missing: Some(missing), present });
        self.fail_with(property, at, what, values, witness);
    }

    /// The address of a word that is surely older than a version: of the version's own words, or of those of
    /// all versions before as well.
    fn lacks(&self, at: usize, line: usize, version: u32, prefix: bool) -> Option<u64> {
        let history = &self.order.lines[line];
        let own = self.states.journal().facts()[self.performed(line, version)].mask;
        let image = &self.durable.image;
        (0..WORDS).find_map(|word| {
            let address = history.address + word as u64 * 8;
            let mask = if prefix { u64::MAX } else { byte_mask(own, word) };
            let entries = &history.words[word];
            let from = entries.partition_point(|entry| entry.version <= version) - 1;
            if mask == 0 || entries[from].version == 0 {
                return None;
            }
            let later = || entries[from..].iter().take_while(|entry| self.performed(line, entry.version) <= at);
            let byte = |byte: u64| {
                let value = image.read(address + byte, 1).ok()?[0];
                let bits = 0xff << (byte * 8) & mask;
                let fits = |entry: &VersionEntry| (entry.value ^ u64::from(value) << (byte * 8)) & bits == 0;
                (bits != 0 && !later().any(fits)).then_some(address + byte)
            };
            (0..8).find_map(byte)
        })
    }
}

/// The bytes of a line that a mask names, in their places.
fn spread(mask: u128, data: &[u8]) -> [u8; LINE] {
    let mut bytes = [0; LINE];
    let mut at = 0;
    for (start, count) in runs(mask) {
        bytes[start..start + count].copy_from_slice(&data[at..at + count]);
        at += count;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::order::Model;
    use super::super::script::{Script, at_pc, warp, warp_of};
    use super::*;
    use durawarp_persist::image::PmImage;
    use durawarp_persist::journal::Author;
    use durawarp_persist::promises::Promises;
    use durawarp_persist::vocab::NonTemporalOrder;
    use durawarp_persist::vocab::RegionStep;

    fn judge(script: &Script, domain: Domain, promises: Promises) -> Vec<Failure> {
        let initial = PmImage::new(0, vec![0; 1024]);
        let states = CrashStates::new(&script.journal, &initial, domain).unwrap();
        let order = RunOrder::new(&script.journal, &initial, Model { domain, promises });
        judge_history(&states, &order, 100).failures
    }

    fn properties(script: &Script, strict: bool) -> Vec<Property> {
        let all = Promises { strict, cta_end: true, kernel_end: true, ..Promises::NONE };
        judge(script, Domain::Adr, all).into_iter().map(|failure| failure.property).collect()
    }

    #[test]
    fn an_older_cached_copy_must_not_overwrite_what_went_past_the_caches() {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).through(warp(1), 0, 2).accepted(0, 2);
        assert_eq!(properties(&script, false), []);
        script.accepted(0, 1);
        let failures = judge(&script, Domain::Adr, Promises::NONE);
        assert_eq!(failures.len(), 1);
        let witness = failures[0].witness.as_ref().unwrap();
        assert_eq!((&failures[0].property, failures[0].point, failures[0].time), (&Property::Value, 2, 6));
        assert_eq!(witness.missing.as_ref().unwrap().warp, 1);
        assert_eq!(witness.present.as_ref().unwrap().warp, 0);
    }

    #[test]
    fn bytes_that_no_version_has_are_found_and_those_not_performed_yet() {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).accepted(0, 9);
        assert_eq!(properties(&script, false), [Property::Value]);
        let mut script = Script::default();
        script.store(warp(0), 0, 1).accepted(0, 2).store(warp(0), 0, 2);
        assert_eq!(properties(&script, false), [Property::Value]);
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(0), 4, 2).accepted(0, 1).accepted(4, 2);
        assert_eq!(properties(&script, false), []);
    }

    #[test]
    fn a_word_of_two_writes_is_a_fault_only_where_queues_do_not_merge_them() {
        // The low half as of version 1, the high half as of version 3: no version has both.
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(0), 0, 2).through(warp(0), 4, 3);
        let merged = [1, 0, 0, 0, 3, 0, 0, 0];
        script.data(FactKind::AtMedia, 0, &merged, Author::Unknown);
        script.data(FactKind::Accepted, 0, &merged, Author::Unknown);
        assert_eq!(judge(&script, Domain::Media, Promises::NONE), []);
        assert_eq!(judge(&script, Domain::Adr, Promises::NONE).len(), 1);
    }

    #[test]
    fn of_a_word_merged_at_the_media_each_byte_is_that_of_some_version() {
        let judged = |value: u32| {
            let mut script = Script::default();
            script.store(warp(0), 0, 0x0101_0101).store(warp(0), 0, 0x0202_0202).at_media(0, value);
            judge(&script, Domain::Media, Promises::NONE).len()
        };
        assert_eq!([0x0202_0101, 0x0102_0102, 0x0202_0202].map(judged), [0; 3]);
        assert_eq!([0x0202_0901, 0x0902_0102, 0x0209_0202].map(judged), [1; 3], "whichever byte it is");
    }

    #[test]
    fn strict_persistency_is_broken_when_a_later_store_is_durable_first() {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(0), 128, 2).accepted(128, 2).accepted(0, 1);
        assert_eq!(properties(&script, false), []);
        let failures = judge(&script, Domain::Adr, Promises { strict: true, ..Promises::NONE });
        assert_eq!(failures.len(), 1);
        assert_eq!((&failures[0].property, failures[0].point), (&Property::Strict, 1));
        let Some(Witness { missing: Some(missing), present: Some(present) }) = &failures[0].witness else { panic!() };
        assert_eq!((missing.line, present.line), (0, 128));
        // Another warp's order is its own business.
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(1), 128, 2).accepted(128, 2).accepted(0, 1);
        assert_eq!(properties(&script, true), []);
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(0), 128, 2).accepted(0, 1).accepted(128, 2);
        assert_eq!(properties(&script, true), []);
    }

    #[test]
    fn the_lanes_of_one_instruction_have_no_order() {
        let mut script = Script::default();
        for line in [0, 128] {
            let author = at_pc(warp(0), 3);
            script.journal.note_data(1, FactKind::Stored, line, 1, author, &[7; 128]);
        }
        script.time = 1;
        let sm = Author::Sm(0);
        script.data(FactKind::Performed, 0, &[7], sm).data(FactKind::Performed, 128, &[7], sm);
        script.data(FactKind::Accepted, 128, &[7], Author::Unknown).data(FactKind::Accepted, 0, &[7], Author::Unknown);
        assert_eq!(properties(&script, true), []);
    }

    #[test]
    fn a_fence_must_not_pass_before_its_write_back_is_durable() {
        let mut early = Script::default();
        early.store(warp(0), 0, 1).write_back(warp(0), 0).fence(warp(0)).accepted(0, 1);
        assert_eq!(properties(&early, false), [Property::Acknowledged]);
        let mut on_time = Script::default();
        on_time.store(warp(0), 0, 1).write_back(warp(0), 0).accepted(0, 1).fence(warp(0));
        assert_eq!(properties(&on_time, false), []);
        // Without a write-back, or by another warp, the fence promises nothing.
        let mut other = Script::default();
        other.store(warp(0), 0, 1).fence(warp(0)).write_back(warp(0), 0).fence(warp(1));
        assert_eq!(properties(&other, false), []);
        // Under media, acceptance is not enough.
        assert_eq!(judge(&on_time, Domain::Media, Promises::NONE).len(), 1);
        assert_eq!(judge(&early, Domain::Eadr, Promises::NONE), []);
    }

    #[test]
    fn a_store_past_the_caches_must_be_durable_at_the_fence_but_not_what_lies_in_the_cache() {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).through(warp(0), 4, 2).accepted(4, 2).fence(warp(0));
        assert_eq!(properties(&script, false), []);
        let mut script = Script::default();
        script.store(warp(0), 0, 1).through(warp(0), 4, 2).fence(warp(0)).accepted(4, 2);
        assert_eq!(properties(&script, false), [Property::Acknowledged]);
    }

    #[test]
    fn a_store_must_not_be_performed_before_what_the_machine_orders_before_it_is_durable() {
        let ordered = Promises { non_temporal: NonTemporalOrder::BeforeCached, ..Promises::NONE };
        for domain in [Domain::Adr, Domain::Media] {
            let mut early = Script::default();
            early.through(warp(0), 0, 1).store(warp(1), 128, 2).accepted(0, 1).at_media(0, 1);
            let failures = judge(&early, domain, ordered);
            assert_eq!(failures.iter().map(|f| f.property.clone()).collect::<Vec<_>>(), [Property::Ordered]);
            let witness = failures[0].witness.as_ref().unwrap();
            let lines = [&witness.missing, &witness.present].map(|persist| persist.as_ref().unwrap().line);
            assert_eq!(lines, [0, 128]);
            assert_eq!(judge(&early, domain, Promises::NONE), []);
            let mut on_time = Script::default();
            on_time.through(warp(0), 0, 1).accepted(0, 1).at_media(0, 1).store(warp(1), 128, 2);
            assert_eq!(judge(&on_time, domain, ordered), []);
        }
    }

    #[test]
    fn a_durable_version_of_a_line_includes_earlier_stores_to_its_other_words() {
        let kernel = Author::Launch(0);
        for (kind, author) in [(FactKind::FencePassed, warp(1)), (FactKind::KernelEnded, kernel)] {
            // The younger word alone is durable; the older one is another warp's.
            let mut early = Script::default();
            early.store(warp(0), 0, 1).store(warp(1), 8, 2).write_back(warp(1), 8).accepted(8, 2);
            let mut on_time = early.clone();
            early.fact(kind, 0, author).accepted(0, 1);
            let all = Promises { kernel_end: true, ..Promises::NONE };
            let failures = judge(&early, Domain::Adr, all);
            assert_eq!(failures.len(), 1, "{kind:?}");
            assert!(failures[0].what.ends_with("while bytes at 0x0 were not durable"), "{}", failures[0].what);
            on_time.accepted(0, 1).fact(kind, 0, author);
            assert_eq!(judge(&on_time, Domain::Adr, all), []);
        }
    }

    #[test]
    fn order_among_a_warps_stores_concerns_no_other_words_of_their_lines() {
        let durable = |lines: [(u64, u32); 2]| {
            let mut script = Script::default();
            script.store(warp(0), 0, 1).store(warp(1), 8, 2).fact(
                FactKind::PersistReached(PersistScope::Thread),
                0,
                warp(1),
            );
            script.store(warp(1), 128, 3);
            lines.into_iter().for_each(|(address, value)| _ = script.accepted(address, value));
            properties(&script, true)
        };
        assert_eq!(durable([(8, 2), (128, 3)]), [], "the word at 0 is another warp's");
        assert_eq!(durable([(0, 1), (128, 3)]), [Property::Strict, Property::Scope]);
    }

    #[test]
    fn a_newer_version_of_the_line_is_as_good_as_the_one_waited_for() {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).write_back(warp(0), 0).store(warp(1), 0, 2).accepted(0, 2).fence(warp(0));
        assert_eq!(properties(&script, false), []);
    }

    #[test]
    fn all_of_an_epoch_is_durable_when_it_ends() {
        let (cta, kernel) = (Author::Cta { sm: 0, launch: 0, cta: 0 }, Author::Launch(0));
        for (end, author) in [(FactKind::CtaEnded, cta), (FactKind::KernelEnded, kernel)] {
            let mut early = Script::default();
            early.store(warp(0), 0, 1).fact(end, 0, author).accepted(0, 1);
            assert_eq!(properties(&early, false), [Property::Epoch]);
            assert_eq!(judge(&early, Domain::Adr, Promises::NONE), []);
            let mut on_time = Script::default();
            on_time.store(warp(0), 0, 1).accepted(0, 1).fact(end, 0, author);
            assert_eq!(properties(&on_time, false), []);
        }
    }

    /// Two warps store a line each, come to a barrier of a scope, and warp 1 stores a third; durable in the
    /// order given.
    fn after_a_barrier(scope: PersistScope, durable: [u64; 3]) -> Script {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(1), 128, 1);
        for who in [0, 1] {
            script.fact(FactKind::PersistReached(scope), 0, warp(who));
        }
        script.store(warp(1), 256, 1);
        for line in durable {
            script.accepted(line, 1);
        }
        script
    }

    #[test]
    fn a_persist_barrier_orders_what_its_scope_stored_and_nothing_else() {
        use PersistScope::{Cta, Kernel, Thread};
        // Own store last: nobody may have the later one before it. The other warp's last: only a wider scope
        // minds.
        for (durable, faulty) in [([0, 256, 128], &[Thread, Cta, Kernel][..]), ([128, 256, 0], &[Cta, Kernel])] {
            for scope in PersistScope::ALL {
                let expected = vec![Property::Scope; usize::from(faulty.contains(&scope))];
                assert_eq!(properties(&after_a_barrier(scope, durable), false), expected, "{scope:?} {durable:?}");
            }
        }
        assert_eq!(properties(&after_a_barrier(Kernel, [0, 128, 256]), false), []);
    }

    #[test]
    fn a_claim_shows_what_a_narrower_barrier_lacks() {
        let script = after_a_barrier(PersistScope::Thread, [128, 256, 0]);
        let initial = PmImage::new(0, vec![0; 1024]);
        let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
        let model = Model { domain: Domain::Adr, promises: Promises::NONE };
        let order = RunOrder::new(&script.journal, &initial, model);
        let found = judge_claim(&states, &order, PersistScope::Cta, 100).failures;
        assert_eq!(found.len(), 1);
        let witness = found[0].witness.as_ref().unwrap();
        let lines = [&witness.missing, &witness.present].map(|persist| persist.as_ref().unwrap().line);
        assert_eq!(lines, [0, 256]);
    }

    #[test]
    fn who_passes_a_persist_barrier_finds_its_scope_durable() {
        for (scope, others) in [(PersistScope::Thread, false), (PersistScope::Cta, true)] {
            let mut script = Script::default();
            script.store(warp(0), 0, 1).store(warp(1), 128, 1);
            for who in [0, 1] {
                script.fact(FactKind::PersistReached(scope), 0, warp(who));
            }
            script.accepted(128, 1).fact(FactKind::PersistPassed(scope), 0, warp(1));
            let expected = vec![Property::Acknowledged; usize::from(others)];
            assert_eq!(properties(&script, false), expected, "{scope:?}");
        }
    }

    #[test]
    fn what_an_l1_combined_is_performed_together() {
        let write = |script: &mut Script, who: u8, value: u8| {
            script.data(FactKind::Stored, 4 * u64::from(who), &[value], warp(who));
        };
        let combined = |performed: &[u8]| {
            let mut script = Script::default();
            write(&mut script, 0, 1);
            write(&mut script, 1, 2);
            let sm = Author::Sm(0);
            script.fact(FactKind::Merged, 0, sm).fact(FactKind::Merged, 0, sm).fact(FactKind::Cleaned, 0, sm);
            let mut bytes = [0; 128];
            bytes[0] = performed[0];
            bytes[4] = performed[1];
            script.journal.note_data(9, FactKind::Performed, 0, 0x11, sm, &bytes);
            script
        };
        assert_eq!(properties(&combined(&[1, 2]), false), []);
        assert_eq!(properties(&combined(&[1, 3]), false), [Property::Facts]);
    }

    #[test]
    fn a_fact_of_an_author_that_cannot_have_done_it_is_reported_and_not_read() {
        let (hart, region) = (Author::Hart { core: 0, hart: 0, pc: 0 }, warp(0).in_region(3));
        let cta = Author::Cta { sm: 0, launch: 0, cta: 0 };
        let verb = Author::PostedVerb { channel: 0, transaction: 1, sequence: 1 };
        for (kind, foreign) in [
            (FactKind::Stored, region),
            (FactKind::Performed, warp(0)),
            (FactKind::Accepted, hart),
            (FactKind::AtMedia, verb),
            (FactKind::FencePassed, Author::Sm(0)),
            (FactKind::WroteBack, Author::Unknown),
            (FactKind::Retired, warp(0)),
            (FactKind::Merged, warp(0)),
            (FactKind::CtaEnded, warp(0)),
            (FactKind::KernelStarted, cta),
            (FactKind::Buffered, hart),
            (FactKind::Forgotten, hart),
            (FactKind::VerbAcknowledged, verb),
            (FactKind::Region(RegionStep::Stored), warp(0)),
            (FactKind::Region(RegionStep::Bounded), region),
        ] {
            let mut script = Script::default();
            script.fact(kind, 0, foreign);
            let failures = judge(&script, Domain::Adr, Promises::NONE);
            let found: Vec<_> = failures.iter().map(|failure| (&failure.property, failure.what.as_str())).collect();
            let foreign = script.journal.facts()[0].author;
            let what = format!("{kind:?} is noted of {foreign:?}, which cannot have done it");
            assert_eq!(found, [(&Property::Facts, what.as_str())]);
        }
    }

    #[test]
    fn facts_that_contradict_each_other_are_reported() {
        let mut unissued = Script::default();
        unissued.performed(Author::Sm(0), 0, 1);
        assert_eq!(properties(&unissued, false), [Property::Facts]);
        let mut different = Script::default();
        different.data(FactKind::Stored, 0, &[1, 0, 0, 0], warp(0)).performed(Author::Sm(0), 0, 2);
        assert_eq!(properties(&different, false), [Property::Facts]);
        let mut never = Script::default();
        never.data(FactKind::StoredNonTemporal, 0, &[1], warp(0)).fence(warp(0));
        assert_eq!(properties(&never, false), [Property::Facts]);
        let mut host = Script::default();
        host.performed(Author::Host, 0, 1);
        assert_eq!(properties(&host, false), []);
    }

    #[test]
    fn the_hosts_writes_are_durable_when_a_kernel_begins() {
        let kernel = Author::Launch(0);
        let mut early = Script::default();
        early.performed(Author::Host, 0, 1).fact(FactKind::KernelStarted, 0, kernel).accepted(0, 1);
        assert_eq!(properties(&early, false), [Property::Acknowledged]);
        let mut on_time = Script::default();
        on_time.performed(Author::Host, 0, 1).accepted(0, 1).fact(FactKind::KernelStarted, 0, kernel);
        assert_eq!(properties(&on_time, false), []);
    }

    /// The failures' texts, where all that can be promised is.
    fn messages(script: &Script, strict: bool) -> Vec<String> {
        let non_temporal = NonTemporalOrder::BeforeCached;
        let promises = Promises { strict, cta_end: true, kernel_end: true, non_temporal, ..Promises::NONE };
        judge(script, Domain::Adr, promises).into_iter().map(|failure| failure.what).collect()
    }

    #[test]
    fn what_is_found_of_values_and_order_names_the_word_or_the_stores() {
        let mut back = Script::default();
        back.store(warp(0), 136, 1).through(warp(1), 136, 2).accepted(136, 2).accepted(136, 1);
        assert_eq!(messages(&back, false), ["the word at 0x88 goes back from version 2 of its line to version 1"]);
        let mut unknown = Script::default();
        unknown.store(warp(0), 136, 1).accepted(136, 9);
        assert_eq!(messages(&unknown, false), ["the word at 0x88 is durable with bytes that no version has"]);
        let mut strict = Script::default();
        strict.store(warp(3), 0, 1).store(warp(3), 128, 2).accepted(128, 2);
        let what = "warp 3 of CTA 0: pc 2 is durable before pc 0, which it stored earlier";
        assert_eq!(messages(&strict, true), [what]);
        let scoped = after_a_barrier(PersistScope::Cta, [128, 256, 0]);
        let what =
            "warp 1 of CTA 0: pc 6 is durable before pc 0 of warp 0 of CTA 0, which pm.barrier.wg orders before it";
        assert_eq!(messages(&scoped, false), [what]);
    }

    #[test]
    fn what_counted_as_durable_too_early_is_told_with_its_reason_and_first_byte() {
        let late = "while bytes at 0x84 were not durable";
        let check = |script: &Script, why: &str| assert_eq!(messages(script, false), [format!("{why} {late}")]);
        let who = warp_of(5, 2);
        let stored = || {
            let mut script = Script::default();
            script.store(who, 132, 1);
            script
        };
        check(stored().write_back(who, 132).fence(who), "warp 2 of CTA 5 passed its fence");
        check(stored().fact(FactKind::CtaEnded, 0, Author::Cta { sm: 0, launch: 0, cta: 5 }), "CTA 5 ended");
        check(stored().fact(FactKind::KernelEnded, 0, Author::Launch(0)), "launch 0 ended");
        check(Script::default().performed(Author::Host, 132, 1).launch(3), "launch 3 began");
        let mut settled = Script::default();
        settled.through(who, 132, 1).ordered(who).settled(who);
        check(&settled, "what warp 2 of CTA 5 fenced was settled");
        let barrier = [FactKind::PersistReached(PersistScope::Cta), FactKind::PersistPassed(PersistScope::Cta)];
        check(stored().fact(barrier[0], 0, who).fact(barrier[1], 0, who), "warp 2 of CTA 5 passed pm.barrier.wg");
        let mut ordered = Script::default();
        ordered.through(who, 132, 1).store(warp_of(6, 2), 256, 2);
        check(&ordered, "a later store of SM 0 to line 0x100 was performed");
    }

    #[test]
    fn a_history_counts_its_points_and_those_with_failures() {
        let verdict = |script: &Script, keep| {
            let initial = PmImage::new(0, vec![0; 1024]);
            let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
            let model = Model { domain: Domain::Adr, promises: Promises::NONE };
            let order = RunOrder::new(&script.journal, &initial, model);
            judge_history(&states, &order, keep)
        };
        let mut script = Script::default();
        script.store(warp(0), 0, 1).accepted(0, 9).accepted(0, 1).accepted(0, 8).accepted(0, 1);
        let found = verdict(&script, 10);
        assert_eq!((found.points, found.distinct, found.judged, found.passed, found.failed), (4, 4, 4, 2, 2));
        assert_eq!((found.left_out, found.exhaustive, found.stopped), (0, true, false));
        let places: Vec<_> = found.failures.iter().map(|failure| (failure.point, failure.time)).collect();
        assert_eq!(places, [(1, 3), (3, 5)]);
        let kept = verdict(&script, 1);
        assert_eq!((kept.failed, kept.failures.len(), kept.passed), (2, 1, 2), "also those that are not kept");
        // Two words of one change, and a change that is right.
        let mut two = Script::default();
        two.store(warp(0), 0, 1).data(FactKind::Accepted, 0, &[7; 16], Author::Unknown).accepted(0, 1);
        let found = verdict(&two, 10);
        assert_eq!((found.points, found.passed, found.failed), (2, 1, 2));
    }
}
