//! Tests of the allowed states: which belong to them, which do not, and that a number gives the same image
//! again.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::crash::{CrashStates, hash_of};
use super::super::history::judge_history;
use super::super::order::Model;
use super::super::script::{Script, warp};
use super::*;
use durawarp_persist::journal::Author;
use durawarp_persist::promises::Promises;
use durawarp_persist::vocab::Domain;

fn order<'a>(script: &'a Script, initial: &PmImage) -> RunOrder<'a> {
    let model = Model { domain: Domain::Adr, promises: Promises::NONE };
    RunOrder::new(&script.journal, initial, model)
}

fn blank() -> PmImage {
    PmImage::new(0, vec![0; 4096])
}

/// Only whole lines, and the words at the given addresses in every image at the end.
fn at_end(script: &Script, budget: Budget, addresses: &[u64]) -> BTreeSet<Vec<u32>> {
    let initial = blank();
    let order = order(script, &initial);
    let allowed = Allowed::new(&order, &initial, Regions::default(), budget);
    let mut walk = allowed.walk();
    walk.advance_to(script.journal.facts().len());
    let choices = walk.choices();
    let words = |image: &PmImage| addresses.iter().map(|&address| image.word(address).unwrap()).collect();
    (0..choices.count()).map(|choice| walk.with(&choices, choice, words)).collect()
}

const WHOLE: Budget =
    Budget { instants: 256, boundaries: 4096, product: 4096, singles: 512, pairs: 1024, random: 256, torn: 0, seed: 7 };

#[test]
fn without_a_fence_any_line_may_be_behind_and_with_one_only_later_ones() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).store(warp(0), 128, 2);
    let all = BTreeSet::from([vec![0, 0], vec![0, 2], vec![1, 0], vec![1, 2]]);
    assert_eq!(at_end(&script, WHOLE, &[0, 128]), all);
    let mut script = Script::default();
    script.persist(warp(0), 0, 1).store(warp(0), 128, 2);
    assert_eq!(at_end(&script, WHOLE, &[0, 128]), BTreeSet::from([vec![1, 0], vec![1, 2]]));
}

/// What a buffered barrier asks of a machine: the later epoch's store is performed when the earlier one is
/// settled. Then every allowed image is closed under the order; a machine that lets it go before shows in
/// images that are not.
#[test]
fn images_are_closed_under_a_buffered_order_where_what_is_behind_waits_for_what_is_settled() {
    let images = |waits: bool| {
        let mut script = Script::default();
        script.through(warp(0), 0, 1).through(warp(0), 128, 2).ordered(warp(0));
        if waits {
            script.accepted(0, 1).accepted(128, 2).settled(warp(0));
        }
        script.through(warp(0), 256, 3);
        let initial = blank();
        let order = order(&script, &initial);
        let allowed = Allowed::new(&order, &initial, Regions::default(), WHOLE);
        let mut found = BTreeSet::new();
        let mut walk = allowed.walk();
        for at in 0..=script.journal.facts().len() {
            walk.advance_to(at);
            let choices = walk.choices();
            let words = |image: &PmImage| [0, 128, 256].map(|address| image.word(address).unwrap());
            found.extend((0..choices.count()).map(|choice| walk.with(&choices, choice, words)));
        }
        found
    };
    let closed = BTreeSet::from([[0, 0, 0], [1, 0, 0], [0, 2, 0], [1, 2, 0], [1, 2, 3]]);
    assert_eq!(images(true), closed);
    assert!(images(false).contains(&[0, 2, 3]));
}

#[test]
fn a_whole_line_is_a_prefix_of_its_versions_and_a_torn_one_is_not() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).store(warp(0), 8, 2);
    let whole = BTreeSet::from([vec![0, 0], vec![1, 0], vec![1, 2]]);
    assert_eq!(at_end(&script, WHOLE, &[0, 8]), whole);
    let torn = at_end(&script, Budget { torn: 64, ..WHOLE }, &[0, 8]);
    assert!(torn.contains(&vec![0, 2]) && torn.len() == 4, "{torn:?}");
    // Two halves of one word never part.
    let mut script = Script::default();
    script.store(warp(0), 0, 1).store(warp(0), 4, 2);
    let torn = at_end(&script, Budget { torn: 64, ..WHOLE }, &[0, 4]);
    assert_eq!(torn, BTreeSet::from([vec![0, 0], vec![1, 0], vec![1, 2]]));
}

#[test]
fn a_torn_line_keeps_what_must_be_durable() {
    let mut script = Script::default();
    script.persist(warp(0), 0, 1).store(warp(0), 8, 2).through(warp(1), 16, 3).fence(warp(1)).store(warp(0), 24, 4);
    let found = at_end(&script, Budget { torn: 64, ..WHOLE }, &[0, 16]);
    assert_eq!(found, BTreeSet::from([vec![1, 3]]));
    assert_eq!(at_end(&script, Budget { torn: 64, ..WHOLE }, &[8, 24]).len(), 4);
}

#[test]
fn when_combinations_are_too_many_each_line_is_alone_once_and_pairs_of_roles_too() {
    let mut script = Script::default();
    let lines: Vec<u64> = (0..13).map(|line| line * 128).collect();
    for &line in &lines {
        script.store(warp(0), line, 1);
    }
    let initial = blank();
    let order = order(&script, &initial);
    let regions = Regions::new(vec![0..4], vec![128..132], vec![256..260]);
    let allowed = Allowed::new(&order, &initial, regions, Budget { random: 0, ..WHOLE });
    let mut walk = allowed.walk();
    walk.advance_to(24);
    assert!(walk.choices().is_exhaustive() && walk.choices().count() == 4096);
    walk.advance_to(26);
    let choices = walk.choices();
    assert!(!choices.is_exhaustive());
    let read = |image: &PmImage| lines.iter().map(|&line| image.word(line).unwrap()).collect::<Vec<_>>();
    let found: BTreeSet<Vec<u32>> = (0..choices.count()).map(|choice| walk.with(&choices, choice, read)).collect();
    let but = |lines: &[usize], value: u32| {
        let mut all = vec![value; 13];
        lines.iter().for_each(|&line| all[line] = 1 - value);
        all
    };
    let mut expected = BTreeSet::from([but(&[], 0), but(&[], 1)]);
    expected.extend((0..13).flat_map(|line| [but(&[line], 0), but(&[line], 1)]));
    expected.extend([[0, 1], [0, 2], [1, 2]].iter().flat_map(|pair| [but(pair, 0), but(pair, 1)]));
    assert_eq!(found, expected);
    assert_eq!(read(&allowed.image(26, 0).unwrap()), but(&[], 0));
    assert_eq!(allowed.image(26, choices.count()), None);
}

#[test]
fn a_hash_is_that_of_its_image_for_every_choice() {
    for product in [4096, 1] {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).store(warp(0), 8, 2).store(warp(1), 128, 3).through(warp(2), 132, 4).fence(warp(2));
        script.store(warp(1), 256, 5).store(warp(1), 256, 6);
        // The last line is cut by the end of the image.
        let initial = PmImage::new(0, (0..260).map(|byte| byte as u8).collect());
        let order = order(&script, &initial);
        let budget = Budget { product, torn: 8, random: 16, ..WHOLE };
        let allowed = Allowed::new(&order, &initial, Regions::default(), budget);
        let mut walk = allowed.walk();
        for at in 0..=script.journal.facts().len() {
            walk.advance_to(at);
            let choices = walk.choices();
            let hashes = walk.hashes(&choices);
            assert_eq!(hashes.len() as u64, choices.count());
            for (choice, hash) in hashes.into_iter().enumerate() {
                let image = walk.with(&choices, choice as u64, PmImage::clone);
                assert_eq!(hash, hash_of(&image), "instant {at}, choice {choice}");
                assert_eq!(Some(image), allowed.image(at, choice as u64));
            }
        }
    }
}

#[test]
fn an_image_that_begins_and_ends_in_a_line_has_its_own_bytes_and_no_others() {
    for (base, bytes) in [(40, 200), (44, 93), (37, 100)] {
        let initial = PmImage::new(base, (0..bytes).map(|byte| byte as u8).collect());
        let end = base + bytes;
        let mut script = Script::default();
        // Before the image, its first and last whole words of 4 bytes, and after it.
        let (first, last) = (base.next_multiple_of(4), (end - 4) / 4 * 4);
        script.store(warp(0), 32, 1).store(warp(0), first, 2).store(warp(0), last, 3).store(
            warp(1),
            end.next_multiple_of(4),
            4,
        );
        let order = order(&script, &initial);
        for product in [4096, 1] {
            let budget = Budget { product, torn: 8, random: 16, ..WHOLE };
            let allowed = Allowed::new(&order, &initial, Regions::default(), budget);
            let mut walk = allowed.walk();
            walk.advance_to(8);
            let choices = walk.choices();
            let mut found = BTreeSet::new();
            for (choice, hash) in (0..).zip(walk.hashes(&choices)) {
                let image = walk.with(&choices, choice, PmImage::clone);
                assert_eq!(hash, hash_of(&image), "choice {choice}");
                assert_eq!(Some(&image), allowed.image(8, choice).as_ref());
                let word = |at| image.word(at).unwrap();
                let old = |at| initial.word(at).unwrap();
                found.insert((word(first) != old(first), word(last) != old(last)));
                let changed: Vec<u64> = (base..end).filter(|&at| image.read(at, 1) != initial.read(at, 1)).collect();
                assert!(changed.iter().all(|at| (first..first + 4).contains(at) || (last..last + 4).contains(at)));
            }
            assert!(found.contains(&(false, false)) && found.contains(&(true, true)), "{found:?}");
            // What was looked at is as it was.
            assert_eq!(walk.with(&choices, 0, PmImage::clone), initial);
        }
    }
}

#[test]
fn what_must_be_durable_is_in_every_image_that_begins_in_a_line() {
    let initial = PmImage::new(40, vec![0; 200]);
    let mut script = Script::default();
    script.persist(warp(0), 44, 7).store(warp(0), 48, 8).persist(warp(0), 132, 9);
    let order = order(&script, &initial);
    let allowed = Allowed::new(&order, &initial, Regions::default(), WHOLE);
    let end = script.journal.facts().len();
    let words = |image: PmImage| [44, 48, 132].map(|at| image.word(at).unwrap());
    let found: Vec<_> = (0..allowed.count(end).unwrap()).map(|nth| words(allowed.image(end, nth).unwrap())).collect();
    assert_eq!(found, [[7, 0, 9], [7, 8, 9]]);
    assert_eq!((allowed.count(end + 1), allowed.image(end, 2)), (None, None));
}

#[test]
fn a_number_counts_the_states_of_the_first_line_first() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).store(warp(0), 0, 2).store(warp(0), 128, 3);
    let initial = blank();
    let order = order(&script, &initial);
    let allowed = Allowed::new(&order, &initial, Regions::default(), WHOLE);
    let words = |nth| allowed.image(6, nth).map(|image| [0, 128].map(|at| image.word(at).unwrap()));
    let expected = [[0, 0], [1, 0], [2, 0], [0, 3], [1, 3], [2, 3]];
    assert_eq!((0..6).map(words).collect::<Vec<_>>(), expected.map(Some));
    assert_eq!((allowed.count(6), words(6)), (Some(6), None));
    assert_eq!([0, 2, 4, 6].map(|at| allowed.count(at)), [1, 2, 3, 6].map(Some));
}

#[test]
fn every_instant_draws_for_itself() {
    let mut script = Script::default();
    for line in 0..8 {
        script.store(warp(0), line * 128, 1);
    }
    // Nothing is durable by these, but instants go by.
    script.write_back(warp(0), 0).write_back(warp(0), 0);
    let initial = blank();
    let order = order(&script, &initial);
    let of_seed = |seed, at| {
        let budget = Budget { product: 1, singles: 0, pairs: 0, random: 8, seed, ..WHOLE };
        let allowed = Allowed::new(&order, &initial, Regions::default(), budget);
        let mut walk = allowed.walk();
        walk.advance_to(at);
        let choices = walk.choices();
        assert_eq!((choices.count(), choices.is_exhaustive()), (10, false));
        walk.hashes(&choices)
    };
    assert_eq!(of_seed(1, 17), of_seed(1, 17));
    let (one, next, other) = (of_seed(1, 17), of_seed(1, 18), of_seed(2, 17));
    // The oldest and the newest are the same everywhere.
    assert!(one[..2] == next[..2] && one[..2] == other[..2]);
    assert!(one[2..] != next[2..] && one[2..] != other[2..]);
}

#[test]
fn an_instant_has_the_time_of_the_last_fact_before_it_and_the_launches_that_began_by_then() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).launch(0).launch(1);
    let initial = blank();
    let order = order(&script, &initial);
    let allowed = Allowed::new(&order, &initial, Regions::default(), WHOLE);
    assert_eq!([0, 1, 2, 3, 4, 9].map(|at| allowed.time(at)), [0, 1, 2, 3, 4, 4]);
    assert_eq!([0, 2, 3, 4].map(|at| allowed.launches_begun(at)), [0, 0, 1, 2]);
    // Before and after each launch, which are the performance's instant and the end, too.
    assert_eq!(allowed.instants(), (vec![2, 3, 4], 0));
}

#[test]
fn thinned_instants_keep_those_around_fences_and_flags() {
    let mut script = Script::default();
    for nth in 0..100 {
        script.store(warp(0), nth * 4, 1);
    }
    script.fence(warp(0)).store(warp(0), 4000, 1);
    for nth in 0..100 {
        script.store(warp(0), nth * 4, 2);
    }
    let initial = blank();
    let order = order(&script, &initial);
    let regions = Regions::new(vec![4000..4004], Vec::new(), Vec::new());
    let allowed = Allowed::new(&order, &initial, regions, Budget { instants: 10, ..WHOLE });
    let (instants, left_out) = allowed.instants();
    assert!(instants.is_sorted());
    // The fence is fact 200, the flag's performance fact 202; 403 facts in all.
    for at in [200, 201, 202, 203, 403] {
        assert!(instants.binary_search(&at).is_ok(), "{at}");
    }
    // The flag's own change, and the fence without a guarantee, are among the boundaries; the 200 others
    // change lines.
    assert_eq!((instants.len(), left_out), (15, 188));
}

#[test]
fn a_store_past_the_caches_may_be_durable_before_what_lies_in_them() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).through(warp(0), 8, 2).store(warp(0), 16, 3).through(warp(0), 24, 4);
    let found = at_end(&script, WHOLE, &[0, 8, 16, 24]);
    let prefixes = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 2, 0, 0], [1, 2, 3, 0], [1, 2, 3, 4]];
    let ahead = [[0, 2, 0, 0], [0, 2, 0, 4], [1, 2, 0, 4]];
    assert_eq!(found, prefixes.into_iter().chain(ahead).map(Vec::from).collect());
}

/// One step of a machine with two lines, each with a copy in a cache.
#[derive(Debug, Clone, Copy)]
enum ScriptStep {
    Store { warp: u8, address: u64 },
    Through { warp: u8, address: u64 },
    WriteBack { warp: u8, line: u64 },
    Evict { line: u64 },
    Fence { warp: u8 },
}

fn step() -> impl Strategy<Value = ScriptStep> {
    let address = || (0u64..2, 0u64..3).prop_map(|(line, word)| line * 128 + word * 4);
    prop_oneof![
        4 => (0u8..2, address()).prop_map(|(warp, address)| ScriptStep::Store { warp, address }),
        2 => (0u8..2, address()).prop_map(|(warp, address)| ScriptStep::Through { warp, address }),
        2 => (0u8..2, 0u64..2).prop_map(|(warp, line)| ScriptStep::WriteBack { warp, line: line * 128 }),
        1 => (0u64..2).prop_map(|line| ScriptStep::Evict { line: line * 128 }),
        2 => (0u8..2).prop_map(|warp| ScriptStep::Fence { warp }),
    ]
}

proptest! {
    #[test]
    fn whatever_a_right_machine_leaves_is_allowed_and_its_history_is_without_fault(
        steps in prop::collection::vec(step(), 0..14),
        late in any::<bool>(),
    ) {
        let mut script = Script::default();
        let (mut content, mut dirty) = ([[0_u8; 128]; 2], [0_u128; 2]);
        let mut ends = Vec::new();
        let accept = |script: &mut Script, line: u64, mask: u128, bytes: &[u8; 128]| {
            script.time += 1;
            let kind = FactKind::Accepted;
            script.journal.note_data(script.time, kind, line, mask, Author::Unknown, bytes);
        };
        for (nth, &step) in steps.iter().enumerate() {
            let value = nth as u32 + 1;
            let write = |content: &mut [[u8; 128]; 2], address: u64| {
                let at = (address & 127) as usize;
                content[address as usize / 128][at..at + 4].copy_from_slice(&value.to_le_bytes());
                0xf_u128 << at
            };
            match step {
                ScriptStep::Store { warp: who, address } => {
                    script.store(warp(who), address, value);
                    dirty[address as usize / 128] |= write(&mut content, address);
                }
                ScriptStep::Through { warp: who, address } => {
                    let mask = write(&mut content, address);
                    dirty[address as usize / 128] &= !mask;
                    script.through(warp(who), address, value);
                    accept(&mut script, address & !127, mask, &content[address as usize / 128]);
                }
                ScriptStep::WriteBack { line, .. } | ScriptStep::Evict { line } => {
                    if let ScriptStep::WriteBack { warp: who, .. } = step {
                        script.write_back(warp(who), line);
                    }
                    let mask = std::mem::take(&mut dirty[line as usize / 128]);
                    if mask != 0 {
                        accept(&mut script, line, mask, &content[line as usize / 128]);
                    }
                }
                ScriptStep::Fence { warp: who } => {
                    script.fence(warp(who));
                }
            }
            ends.push(script.journal.facts().len());
        }
        if late {
            // What was never written back stays in the cache.
            script.fence(warp(0));
        }
        let initial = blank();
        let order = order(&script, &initial);
        let states = CrashStates::new(&script.journal, &initial, Domain::Adr).unwrap();
        prop_assert_eq!(judge_history(&states, &order, 10).failures, []);
        let allowed = Allowed::new(&order, &initial, Regions::default(), Budget { torn: 8, ..WHOLE });
        let (mut walk, mut cursor) = (allowed.walk(), states.cursor(0).unwrap());
        for end in ends {
            walk.advance_to(end);
            let accepted = script.journal.facts()[..end].iter().filter(|fact| fact.kind == FactKind::Accepted).count();
            cursor.advance_to(accepted as u64);
            let choices = walk.choices();
            let hashes = walk.hashes(&choices);
            prop_assert!(choices.is_exhaustive());
            prop_assert!(hashes.contains(&cursor.hash()), "after {} facts", end);
        }
    }
}

#[test]
fn every_draw_has_torn_lines_beside_all_whole_states_and_every_second_one_else() {
    let mut script = Script::default();
    for line in 0..16 {
        script.store(warp(0), 128 * line, 1);
    }
    let initial = blank();
    let order = order(&script, &initial);
    let allowed = Allowed::new(&order, &initial, Regions::default(), Budget { torn: 8, ..WHOLE });
    let mut walk = allowed.walk();
    walk.advance_to(script.journal.facts().len());
    let choices = walk.choices();
    // A draw of sixteen lines is without a torn one by chance once in 65,536 times.
    let torn = |number, whole_too| choices.drawn(number, whole_too).iter().any(|pick| matches!(pick, Pick::Torn(_)));
    for number in 0..40 {
        assert!(torn(number, false), "{number}");
        assert_eq!(torn(number, true), number % 2 == 1, "{number}");
    }
}
