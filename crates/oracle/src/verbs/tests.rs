//! Verbs fact by fact: what a channel may leave, and what is found where a machine forgot a rule.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::states::ChannelMemory;
use super::*;
use crate::allowed::Budget;
use crate::judge::Watch;
use durawarp_persist::journal::Author;

const BASE: u64 = 1 << 40;
const MASK: u128 = (1 << 64) - 1;

/// A run of channels, fact by fact.
#[derive(Default)]
struct Facts {
    journal: Journal,
    time: u64,
}

fn author(channel: u16, verb: u32) -> Author {
    Author::Verb { channel, sequence: verb }
}

/// What a verb writes to a line.
fn content(verb: u32) -> LineBytes {
    [verb as u8; 128]
}

impl Facts {
    /// A verb of these lines, by their numbers.
    fn posts(&mut self, channel: u16, transaction: u32, verb: u32, lines: &[u64]) -> &mut Self {
        self.time += 10;
        let by = Author::PostedVerb { channel, transaction, sequence: verb };
        for line in lines {
            let line = BASE + 64 * line;
            self.journal.note_data(self.time, FactKind::VerbPosted, line, MASK, by, &content(verb));
        }
        self
    }

    /// Lines of verbs reach the media, each at a time of its own.
    fn durable(&mut self, channel: u16, lines: &[(u32, u64)]) -> &mut Self {
        for &(verb, line) in lines {
            self.time += 10;
            self.durable_now(channel, verb, line, verb);
        }
        self
    }

    fn durable_now(&mut self, channel: u16, verb: u32, line: u64, bytes: u32) -> &mut Self {
        let (by, line) = (author(channel, verb), BASE + 64 * line);
        self.journal.note_data(self.time, FactKind::AtMedia, line, MASK, by, &content(bytes));
        self
    }

    /// A verb that is not persistent.
    fn writes(&mut self, channel: u16, transaction: u32, verb: u32, line: u64) -> &mut Self {
        self.time += 10;
        let by = Author::PostedVerb { channel, transaction, sequence: verb };
        self.journal.note_data(self.time, FactKind::VerbWritten, BASE + 64 * line, MASK, by, &content(verb));
        self
    }

    /// A cache writes what that verb wrote to a line.
    fn leaves(&mut self, line: u64, verb: u32) -> &mut Self {
        self.time += 10;
        let by = Author::Unknown;
        self.journal.note_data(self.time, FactKind::AtMedia, BASE + 64 * line, MASK, by, &content(verb));
        self
    }

    fn acknowledged(&mut self, channel: u16, verb: u32) -> &mut Self {
        self.time += 10;
        self.acknowledged_now(channel, verb)
    }

    fn acknowledged_now(&mut self, channel: u16, verb: u32) -> &mut Self {
        self.journal.note(self.time, FactKind::VerbAcknowledged, 0, 0, author(channel, verb));
        self
    }

    fn verdict(&self) -> Verdict {
        VerbOrder::new(&self.journal, Domain::Media).judge_history(10)
    }

    /// What is wrong, and what is missing: the verb and the line's number.
    fn found(&self) -> Vec<(Property, Option<(String, u64)>)> {
        let missing = |failure: &Failure| {
            let missing = failure.witness.as_ref().and_then(|witness| witness.missing.clone())?;
            Some((missing.role, (missing.line - BASE) / 64))
        };
        self.verdict().failures.iter().map(|failure| (failure.property.clone(), missing(failure))).collect()
    }
}

fn missing(verb: u32, line: u64) -> Option<(String, u64)> {
    Some((format!("verb {verb}"), line))
}

/// Verbs 1 and 2 of a transaction, of two lines each.
fn two_verbs() -> Facts {
    let mut run = Facts::default();
    run.posts(0, 0, 1, &[0, 1]).posts(0, 0, 2, &[2, 3]);
    run
}

#[test]
fn lines_of_a_verb_are_in_no_order_and_verbs_are_in_theirs() {
    let mut run = two_verbs();
    run.durable(0, &[(1, 1), (1, 0), (2, 3), (2, 2)]).acknowledged(0, 2);
    assert_eq!(run.found(), []);
    assert_eq!((run.verdict().points, run.verdict().passed), (5, 5));
    let mut early = two_verbs();
    early.durable(0, &[(1, 1), (2, 2), (1, 0), (2, 3)]);
    assert_eq!(early.found(), [(Property::Verbs, missing(1, 0))]);
    assert_eq!(early.verdict().failures[0].point, 2);
}

#[test]
fn what_is_durable_at_one_time_is_so_together() {
    let mut run = two_verbs();
    run.durable(0, &[(1, 1)]);
    run.time += 10;
    run.durable_now(0, 2, 2, 2).durable_now(0, 1, 0, 1).durable_now(0, 2, 3, 2).acknowledged_now(0, 2);
    assert_eq!(run.found(), []);
}

#[test]
fn channels_are_in_no_order() {
    let mut run = two_verbs();
    run.posts(1, 0, 1, &[64]).durable(1, &[(1, 64)]).acknowledged(1, 1).durable(0, &[(1, 0)]);
    assert_eq!(run.found(), []);
}

#[test]
fn an_acknowledgement_speaks_for_all_verbs_up_to_it() {
    let mut run = two_verbs();
    run.durable(0, &[(1, 0), (1, 1), (2, 2)]).acknowledged(0, 2).durable(0, &[(2, 3)]);
    assert_eq!(run.found(), [(Property::Acknowledged, missing(2, 3))], "one tick of many before the last line");
    let mut other = two_verbs();
    // The verb itself is durable, and one before it is not: two things are wrong.
    other.durable(0, &[(1, 0), (2, 2), (2, 3)]).acknowledged(0, 2);
    let property = |nth: usize| other.found()[nth].0.clone();
    assert_eq!((other.found().len(), property(0), property(2)), (3, Property::Verbs, Property::Acknowledged));
    assert!(other.found().iter().all(|(_, of)| *of == missing(1, 1)));
}

#[test]
fn what_is_durable_is_what_was_posted() {
    let mut other_bytes = two_verbs();
    other_bytes.time += 10;
    other_bytes.durable_now(0, 1, 0, 7);
    assert_eq!(other_bytes.found(), [(Property::Value, None)]);
    let of = |channel, verb, line| two_verbs().durable(channel, &[(verb, line)]).found();
    assert_eq!(of(0, 3, 0), [(Property::Facts, None)], "there is no verb 3");
    assert_eq!(of(0, 1, 2), [(Property::Facts, None)], "the line is another verb's");
    assert_eq!(of(1, 1, 0), [(Property::Facts, None)], "there is no channel 1");
    let mut before = Facts::default();
    before.durable(0, &[(1, 0)]).posts(0, 0, 1, &[0]);
    assert_eq!(before.found(), [(Property::Facts, None)]);
    let mut foreign = two_verbs();
    foreign.time += 10;
    let posted = Author::PostedVerb { channel: 0, transaction: 0, sequence: 1 };
    foreign.journal.note(foreign.time, FactKind::VerbAcknowledged, 0, 0, posted);
    assert_eq!(foreign.found(), [(Property::Facts, None)], "a server does not know transactions");
}

#[test]
fn a_line_that_goes_back_after_its_transaction_is_over_is_not_written_again() {
    let run = |again: bool| {
        let mut run = Facts::default();
        run.posts(0, 0, 1, &[0]).durable(0, &[(1, 0)]).acknowledged(0, 1);
        run.posts(0, 1, 2, &[0]).durable(0, &[(2, 0)]);
        if again {
            run.acknowledged(0, 2);
        }
        // The first verb is written once more.
        run.durable(0, &[(1, 0)]);
        run.found()
    };
    assert_eq!(run(true), [(Property::Verbs, None)]);
    assert_eq!(run(false), [], "the second transaction is not over: its client writes the line again");
}

#[test]
fn a_verb_that_is_not_persistent_is_promised_nothing_and_takes_nothing_back() {
    let run = |then: &dyn Fn(&mut Facts)| {
        let mut run = Facts::default();
        // Line 0 is written by both kinds, line 1 last by one that is not persistent.
        run.writes(0, 0, 1, 0).posts(0, 0, 2, &[0, 1]).durable(0, &[(2, 0), (2, 1)]).acknowledged(0, 2);
        run.writes(0, 1, 3, 1);
        then(&mut run);
        let order = VerbOrder::new(&run.journal, Domain::Media);
        let (stop, show) = (AtomicBool::new(false), |_, _| {});
        let watch = Watch { stop: &stop, progress: &show };
        let states = judge_states(&VerbStates::new(&order, Budget::default()), 8, &watch);
        assert!(states.holds() && states.judged > 10, "{states:?}");
        assert_eq!(order.verbs(), 1);
        run.found()
    };
    assert_eq!(run(&|_| ()), [], "never durable");
    assert_eq!(
        run(&|run| {
            run.leaves(1, 3);
        }),
        [],
        "durable, over a persistent one before it"
    );
    assert_eq!(
        run(&|run| {
            run.leaves(0, 1);
        }),
        [(Property::Verbs, None)],
        "what was acknowledged goes back"
    );
    assert_eq!(
        run(&|run| {
            run.leaves(1, 9);
        }),
        [(Property::Value, None)],
        "nobody wrote that"
    );
    assert_eq!(
        run(&|run| {
            run.leaves(7, 3);
        }),
        [(Property::Facts, None)],
        "nor there"
    );
}

/// States of a choice of instants, as the verbs that lines 0 to 3 are of.
fn states(run: &Facts, instant: usize) -> BTreeSet<[u8; 4]> {
    let order = VerbOrder::new(&run.journal, Domain::Media);
    let budget = Budget { singles: 32, random: 64, torn: 0, ..Budget::default() };
    let states = VerbStates::new(&order, budget);
    let of = |memory: ChannelMemory| [0, 1, 2, 3].map(|line| memory.get(&(BASE + 64 * line)).map_or(0, |line| line[0]));
    (0..2 + 32 + 64).map(|choice| of(states.memory(0, instant, choice))).collect()
}

#[test]
fn states_are_all_prefixes_with_all_parts_of_the_next_verb() {
    let run = two_verbs();
    let expected: BTreeSet<[u8; 4]> =
        [[0; 4], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 2, 0], [1, 1, 0, 2], [1, 1, 2, 2]].into();
    assert_eq!(states(&run, 1), expected);
    let first: BTreeSet<[u8; 4]> = expected.iter().copied().filter(|lines| lines[2] + lines[3] == 0).collect();
    assert_eq!(states(&run, 0), first, "the second is not posted");
}

#[test]
fn what_is_acknowledged_is_in_every_state() {
    let mut run = Facts::default();
    run.posts(0, 0, 1, &[0, 1]).durable(0, &[(1, 0), (1, 1)]).acknowledged(0, 1).posts(0, 1, 2, &[2, 3]);
    assert_eq!(states(&run, 1), [[1, 1, 0, 0]].into());
    assert!(states(&run, 2).iter().all(|lines| lines[..2] == [1, 1]));
}

#[test]
fn words_of_eight_bytes_are_not_torn() {
    let run = two_verbs();
    let order = VerbOrder::new(&run.journal, Domain::Media);
    let budget = Budget { singles: 0, random: 0, torn: 64, ..Budget::default() };
    let states = VerbStates::new(&order, budget);
    let all: Vec<ChannelMemory> = (2..66).map(|choice| states.memory(0, 1, choice)).collect();
    let lines = || all.iter().flat_map(ChannelMemory::values).map(|line| &line[..64]);
    assert!(lines().all(|line| line.chunks(8).all(|word| word.iter().all(|byte| *byte == word[0]))));
    assert!(lines().any(|line| line.contains(&0) && line.iter().any(|byte| *byte != 0)), "lines are");
}

#[test]
fn a_client_writes_again_whole_transactions_and_has_the_same_memory() {
    let mut run = Facts::default();
    // Two verbs each; the second transaction writes a line of the first, and one verb of it is acknowledged.
    run.posts(0, 0, 1, &[0, 1]).posts(0, 0, 2, &[2]).acknowledged(0, 2);
    run.posts(0, 1, 3, &[1]).acknowledged(0, 3).posts(0, 1, 4, &[3]).posts(1, 0, 1, &[64]);
    let order = VerbOrder::new(&run.journal, Domain::Media);
    let states = VerbStates::new(&order, Budget::default());
    let again: Vec<_> = (0..7).map(|instant| states.again(0, instant)).collect();
    assert_eq!(again, [0..4, 0..4, 2..4, 2..4, 2..4, 2..4, 2..4]);
    let (stop, show) = (AtomicBool::new(false), |_, _| {});
    let watch = Watch { stop: &stop, progress: &show };
    let verdict = judge_states(&states, 8, &watch);
    assert!(verdict.holds() && verdict.judged == verdict.points && verdict.points > 100, "{verdict:?}");
}
