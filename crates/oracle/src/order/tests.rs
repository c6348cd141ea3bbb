//! Tests of the reference model: each rule by hand, and all of them against a naive recomputation.

use durawarp_persist::promises::Promises;
use proptest::prelude::*;

use super::super::script::{Script, warp, warp_of};
use super::*;

fn model(domain: Domain) -> Model {
    Model { domain, promises: Promises::NONE }
}

fn blank() -> PmImage {
    PmImage::new(0, vec![0; 1024])
}

/// (must, through, may) of the line at 0 when all facts are noted.
fn end(script: &Script, domain: Domain) -> (u32, u32, u32) {
    let order = RunOrder::new(&script.journal, &blank(), model(domain));
    assert_eq!(order.faults(), []);
    let mut instant = order.instants();
    instant.advance_to(script.journal.facts().len());
    let Bounds { must, through, may } = instant.bounds()[0];
    (must, through, may)
}

#[test]
fn a_store_is_guaranteed_by_write_back_and_then_fence_of_its_own_warp() {
    let check = |build: &dyn Fn(&mut Script), must: u32| {
        let mut script = Script::default();
        build(&mut script);
        assert_eq!(end(&script, Domain::Adr), (must, 0, 1));
        assert_eq!(end(&script, Domain::Media), (must, 0, 1));
        assert_eq!(end(&script, Domain::Eadr), (1, 0, 1));
    };
    check(
        &|s| {
            s.store(warp(0), 0, 1).write_back(warp(0), 0).fence(warp(0));
        },
        1,
    );
    check(
        &|s| {
            s.store(warp(0), 0, 1).write_back(warp(0), 0);
        },
        0,
    );
    check(
        &|s| {
            s.store(warp(0), 0, 1).fence(warp(0)).write_back(warp(0), 0);
        },
        0,
    );
    // A write-back before the store does not cover it.
    check(
        &|s| {
            s.write_back(warp(0), 0).store(warp(0), 0, 1).fence(warp(0));
        },
        0,
    );
    // Nor does one of another line, or another warp's, or another warp's fence.
    check(
        &|s| {
            s.store(warp(0), 0, 1).write_back(warp(0), 128).fence(warp(0));
        },
        0,
    );
    check(
        &|s| {
            s.store(warp(0), 0, 1).write_back(warp(1), 0).fence(warp(1));
        },
        0,
    );
    check(
        &|s| {
            s.store(warp(0), 0, 1).write_back(warp(0), 0).fence(warp(1));
        },
        0,
    );
}

#[test]
fn a_guarantee_holds_for_all_earlier_versions_of_the_line_and_for_no_later_one() {
    let mut script = Script::default();
    script.store(warp(1), 4, 1).store(warp(0), 0, 1).store(warp(2), 8, 1).write_back(warp(0), 0).fence(warp(0));
    assert_eq!(end(&script, Domain::Adr), (2, 0, 3));
}

#[test]
fn an_interval_changes_with_the_fence_and_not_before() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).write_back(warp(0), 0).fence(warp(0));
    let order = RunOrder::new(&script.journal, &blank(), model(Domain::Adr));
    let mut instant = order.instants();
    let mut seen = Vec::new();
    for at in 0..=4 {
        let changed = instant.advance_to(at);
        seen.push((changed.len(), instant.bounds()[0].must, instant.bounds()[0].may));
    }
    assert_eq!(seen, [(0, 0, 0), (0, 0, 0), (1, 0, 1), (0, 0, 1), (1, 1, 1)]);
}

#[test]
fn a_walk_knows_how_many_facts_are_noted_and_never_goes_back() {
    let mut script = Script::default();
    script.store(warp(0), 0, 1).write_back(warp(0), 0).fence(warp(0));
    let order = RunOrder::new(&script.journal, &blank(), model(Domain::Adr));
    let mut instant = order.instants();
    let mut seen = vec![(instant.at(), instant.bounds()[0].may)];
    for at in [0, 3, 2, 4] {
        instant.advance_to(at);
        seen.push((instant.at(), instant.bounds()[0].may));
    }
    assert_eq!(seen, [(0, 0), (0, 0), (3, 1), (3, 1), (4, 1)]);
}

#[test]
fn a_line_ends_where_the_next_begins_or_after_128_bytes() {
    let mut journal = Journal::default();
    for line in [32, 64, 192] {
        journal.note_data(1, FactKind::Accepted, line, 1, Author::default(), &[7; 128]);
    }
    let order = RunOrder::new(&journal, &blank(), model(Domain::Adr));
    assert_eq!([0, 1, 2].map(|line| order.extent(line)), [32, 128, 128]);
    assert_eq!(
        [31, 32, 63, 64, 191].map(|address| order.line_with(address)),
        [None, Some(0), Some(0), Some(1), Some(1)]
    );
    assert_eq!([192, 319, 320].map(|address| order.line_with(address)), [Some(2), Some(2), None]);
    assert_eq!([32, 33, 192].map(|address| order.line_at(address)), [Some(0), None, Some(2)]);
}

#[test]
fn bytes_outside_of_an_image_that_begins_in_a_line_are_0() {
    let image = PmImage::new(40, (40..140).collect());
    let line = read_line(&image, 0);
    assert_eq!((line[39], line[40], line[127]), (0, 40, 127));
    let line = read_line(&image, 128);
    assert_eq!((line[0], line[11], line[12]), (128, 139, 0));
    // Bytes 8 to 15, the lowest first.
    assert_eq!(word_of(&std::array::from_fn(|at| at as u8), 1), 0x0f0e_0d0c_0b0a_0908);
    assert_eq!(
        [byte_mask(0b1000_0001 << 8, 1), byte_mask(0b10, 0), byte_mask(0b10, 1)],
        [0xff00_0000_0000_00ff, 0xff00, 0]
    );
    let mut script = Script::default();
    script.store(warp(0), 44, 1);
    let order = RunOrder::new(&script.journal, &image, model(Domain::Adr));
    let bytes = order.content(0, 1, 0);
    assert_eq!((bytes[39], bytes[40], &bytes[44..50]), (0, 40, &[1, 0, 0, 0, 48, 49][..]));
}

#[test]
fn a_store_past_the_caches_leaves_behind_what_lies_in_them() {
    let mut script = Script::default();
    script.through(warp(0), 8, 7).store(warp(1), 0, 1).through(warp(2), 4, 2).fence(warp(2));
    assert_eq!(end(&script, Domain::Adr), (1, 3, 3));
    let order = RunOrder::new(&script.journal, &blank(), model(Domain::Adr));
    let words = |prefix| {
        let bytes = order.content(0, prefix, 3);
        [bytes[0], bytes[4], bytes[8]]
    };
    assert_eq!((words(1), words(2)), ([0, 2, 7], [1, 2, 7]));
    // The write-back of what was left behind closes the gap.
    script.write_back(warp(1), 0).fence(warp(1));
    assert_eq!(end(&script, Domain::Adr), (3, 3, 3));
}

#[test]
fn an_atomic_is_a_version_whose_bytes_come_from_its_performance() {
    let mut script = Script::default();
    script.fact(FactKind::Updated, 0, warp(0)).performed(Author::Sm(0), 0, 5).write_back(warp(0), 0).fence(warp(0));
    assert_eq!(end(&script, Domain::Adr), (1, 0, 1));
    let order = RunOrder::new(&script.journal, &blank(), model(Domain::Adr));
    assert_eq!(order.content(0, 1, 0)[0], 5);
    assert_eq!(order.author(0, 1), Some(warp(0)));
}

#[test]
fn ends_of_ctas_and_kernels_guarantee_what_the_scheme_says() {
    let (cta, kernel) = (Author::Cta { sm: 0, launch: 0, cta: 0 }, Author::Launch(0));
    let other = Author::Warp { sm: 1, launch: 0, cta: 1, warp: 0, pc: 0 };
    let mut script = Script::default();
    script.store(warp(0), 0, 1).store(other, 0, 2).fact(FactKind::CtaEnded, 0, cta);
    script.fact(FactKind::KernelEnded, 0, kernel);
    for (cta_end, kernel_end, expected) in [(false, false, (0, 0)), (true, false, (1, 1)), (true, true, (1, 2))] {
        let promises = Promises { cta_end, kernel_end, ..Promises::NONE };
        let order = RunOrder::new(&script.journal, &blank(), Model { promises, ..model(Domain::Adr) });
        let mut instant = order.instants();
        instant.advance_to(5);
        let after_cta = instant.bounds()[0].must;
        instant.advance_to(6);
        assert_eq!((after_cta, instant.bounds()[0].must), expected);
    }
}

/// (must, through, may) of the lines at 0 and 128 after a number of facts, where the machine orders
/// non-temporal stores.
fn ordered(script: &Script, past: NonTemporalOrder, facts: usize) -> [(u32, u32, u32); 2] {
    let promises = Promises { non_temporal: past, ..Promises::NONE };
    let order = RunOrder::new(&script.journal, &blank(), Model { promises, ..model(Domain::Adr) });
    assert_eq!(order.faults(), []);
    let mut instant = order.instants();
    instant.advance_to(facts);
    [0, 1].map(|line| instant.bounds()[line]).map(|bounds| (bounds.must, bounds.through, bounds.may))
}

#[test]
fn a_store_past_the_caches_is_guaranteed_when_a_later_one_through_them_is_performed() {
    let mut script = Script::default();
    script.through(warp(0), 0, 1).data(FactKind::Stored, 128, &2u32.to_le_bytes(), warp(1));
    script.performed(Author::Sm(0), 128, 2);
    let bounds = |past, facts| ordered(&script, past, facts)[0].1;
    assert_eq!((bounds(NonTemporalOrder::BeforeCached, 3), bounds(NonTemporalOrder::BeforeCached, 4)), (0, 1));
    assert_eq!(bounds(NonTemporalOrder::Fifo, 4), 1);
    assert_eq!(bounds(NonTemporalOrder::ByFences, 4), 0);
    // Of another CTA, where the order is a CTA's, it is not.
    for (cta, expected) in [(0, 1), (1, 0)] {
        let mut script = Script::default();
        script.through(warp_of(cta, 0), 0, 1).data(FactKind::Stored, 128, &2u32.to_le_bytes(), warp(1));
        script.performed(Author::Sm(0), 128, 2);
        assert_eq!(ordered(&script, NonTemporalOrder::BeforeCachedOfCta, 4)[0].1, expected);
        assert_eq!(ordered(&script, NonTemporalOrder::BeforeCached, 4)[0].1, 1);
    }
    // One that was issued later, or by another SM, is not.
    let far = Author::Warp { sm: 1, launch: 0, cta: 0, warp: 0, pc: 0 };
    for late in [warp(0), far] {
        let mut script = Script::default();
        script.data(FactKind::Stored, 128, &2u32.to_le_bytes(), warp(1)).through(late, 0, 1).performed(
            Author::Sm(0),
            128,
            2,
        );
        assert_eq!(ordered(&script, NonTemporalOrder::Fifo, 4), [(0, 0, 1), (0, 0, 1)]);
    }
}

#[test]
fn a_fence_that_did_not_wait_guarantees_write_backs_and_the_rest_when_it_is_settled() {
    let mut script = Script::default();
    script.through(warp(0), 0, 1).store(warp(0), 128, 3).write_back(warp(0), 128).ordered(warp(0));
    let ordered_at = script.journal.facts().len();
    script.through(warp(0), 4, 2).ordered(warp(0)).settled(warp(1)).settled(warp(0));
    let settled_at = script.journal.facts().len();
    script.settled(warp(0)).fence(warp(0));
    let bounds = |facts| ordered(&script, NonTemporalOrder::ByFences, facts);
    assert_eq!(bounds(ordered_at - 1), [(0, 0, 1), (0, 0, 1)]);
    assert_eq!(bounds(ordered_at), [(0, 0, 1), (1, 0, 1)]);
    assert_eq!(bounds(settled_at - 1), [(0, 0, 2), (1, 0, 1)], "another warp's");
    assert_eq!(bounds(settled_at), [(1, 1, 2), (1, 0, 1)], "what the first fence left");
    assert_eq!(bounds(settled_at + 1), [(2, 2, 2), (1, 0, 1)]);
    // A fence that waits covers what others left.
    let mut script = Script::default();
    script.through(warp(0), 0, 1).ordered(warp(0)).through(warp(1), 128, 2).fence(warp(0));
    assert_eq!(ordered(&script, NonTemporalOrder::BeforeCached, 5), [(0, 0, 1), (0, 0, 1)]);
    assert_eq!(ordered(&script, NonTemporalOrder::BeforeCached, 6), [(1, 1, 1), (0, 0, 1)]);
}

#[test]
fn a_fifo_orders_instructions_and_neither_lanes_nor_one_line() {
    let past = NonTemporalOrder::Fifo;
    let mut script = Script::default();
    script.through(warp(0), 0, 1).through(warp(1), 128, 2).through(warp(1), 132, 3);
    assert_eq!(ordered(&script, past, 4), [(1, 1, 1), (0, 0, 1)]);
    assert_eq!(ordered(&script, past, 6), [(1, 1, 1), (0, 0, 2)], "coherence orders the two of a line");
    let mut lanes = Script::default();
    for line in [0, 128] {
        lanes.journal.note_data(1, FactKind::StoredNonTemporal, line, 1, warp(0), &[7; 128]);
    }
    lanes.time = 1;
    lanes.data(FactKind::Performed, 0, &[7], Author::Sm(0)).data(FactKind::Performed, 128, &[7], Author::Sm(0));
    assert_eq!(ordered(&lanes, past, 4), [(0, 0, 1), (0, 0, 1)]);
}

#[test]
fn performances_are_matched_to_stores_by_sm_and_line_in_order() {
    let far = Author::Warp { sm: 1, launch: 0, cta: 0, warp: 0, pc: 0 };
    let mut script = Script::default();
    script.data(FactKind::Stored, 0, &[1, 0, 0, 0], warp(0));
    script.data(FactKind::Stored, 0, &[2, 0, 0, 0], far);
    script.data(FactKind::Stored, 0, &[3, 0, 0, 0], warp(1));
    script.performed(Author::Sm(1), 0, 2).performed(Author::Sm(0), 0, 1).performed(Author::Sm(0), 0, 3);
    let order = RunOrder::new(&script.journal, &blank(), model(Domain::Adr));
    assert_eq!(order.faults(), []);
    let authors: Vec<_> = (1..=3).map(|version| order.author(0, version).and_then(Author::thread)).collect();
    assert_eq!(authors, [far, warp(0), warp(1)].map(Author::thread));
    assert_eq!(order.version_of(1), Some((0, 1)));
}

/// One step of a random program.
#[derive(Debug, Clone, Copy)]
enum Step {
    Store { warp: u8, word: u64 },
    Through { warp: u8, word: u64 },
    Host { word: u64 },
    WriteBack { warp: u8, line: u64 },
    Fence { warp: u8 },
    Kernel,
}

fn step() -> impl Strategy<Value = Step> {
    let word = || (0u64..2, 0u64..3).prop_map(|(line, word)| line * 128 + word * 4);
    prop_oneof![
        4 => (0u8..3, word()).prop_map(|(warp, word)| Step::Store { warp, word }),
        2 => (0u8..3, word()).prop_map(|(warp, word)| Step::Through { warp, word }),
        1 => word().prop_map(|word| Step::Host { word }),
        3 => (0u8..3, 0u64..2).prop_map(|(warp, line)| Step::WriteBack { warp, line: line * 128 }),
        2 => (0u8..3).prop_map(|warp| Step::Fence { warp }),
        1 => Just(Step::Kernel),
    ]
}

/// Whether by the rules, read off the facts one by one, the store `store` is guaranteed after `noted` facts.
fn covered(facts: &[Fact], store: usize, noted: usize) -> bool {
    let author = facts[store].author;
    let own = |fact: &Fact| fact.author.thread() == author.thread();
    (store + 1..noted).any(|at| match facts[store].kind {
        FactKind::Performed => facts[at].kind == FactKind::KernelStarted,
        FactKind::StoredNonTemporal => facts[at].kind == FactKind::FencePassed && own(&facts[at]),
        _ => {
            facts[at].kind == FactKind::FencePassed
                && own(&facts[at])
                && (store + 1..at).any(|between| {
                    let fact = &facts[between];
                    fact.kind == FactKind::WroteBack && fact.line == facts[store].line && own(fact)
                })
        }
    })
}

proptest! {
    #[test]
    fn must_may_and_content_are_those_of_a_naive_recomputation(
        steps in prop::collection::vec(step(), 0..40),
        instant in 0usize..100,
    ) {
        let mut script = Script::default();
        for (nth, &step) in steps.iter().enumerate() {
            let value = nth as u32 + 1;
            match step {
                Step::Store { warp: who, word } => { script.store(warp(who), word, value); }
                Step::Through { warp: who, word } => { script.through(warp(who), word, value); }
                Step::Host { word } => { script.performed(Author::Host, word, value); }
                Step::WriteBack { warp: who, line } => { script.write_back(warp(who), line); }
                Step::Fence { warp: who } => { script.fence(warp(who)); }
                Step::Kernel => {
                    script.launch(0);
                }
            }
        }
        let facts = script.journal.facts();
        let noted = instant.min(facts.len());
        let order = RunOrder::new(&script.journal, &blank(), model(Domain::Adr));
        prop_assert_eq!(order.faults(), &[]);
        let mut walk = order.instants();
        walk.advance_to(noted / 2);
        walk.advance_to(noted);
        for (number, line) in order.lines().iter().enumerate() {
            // (store, non-temporal, performed), in the order of coherence.
            let versions: Vec<(usize, bool, usize)> = (0..facts.len())
                .filter(|&at| facts[at].kind == FactKind::Performed && facts[at].line == line.address)
                .map(|at| if facts[at].author == Author::Host { (at, true, at) } else {
                    (at - 1, facts[at - 1].kind == FactKind::StoredNonTemporal, at)
                })
                .collect();
            let may = versions.iter().filter(|version| version.2 < noted).count();
            let sure = |version: &(usize, bool, usize)| covered(facts, version.0, noted);
            let prefix = versions.iter().rposition(|version| !version.1 && sure(version)).map_or(0, |at| at + 1);
            let through = versions.iter().rposition(|version| version.1 && sure(version)).map_or(0, |at| at + 1);
            // The bytes that the rules make durable, version by version.
            let mut bytes = [0; LINE];
            let kept = |at: usize| at < prefix || versions[at].1 && at < through;
            for (at, version) in versions.iter().enumerate().filter(|&(at, _)| kept(at)) {
                copy(&mut bytes, facts[version.2].mask, script.journal.data(&facts[version.2]));
                prop_assert!(at < may);
            }
            let bounds = walk.bounds()[number];
            prop_assert_eq!(bounds.may as usize, may);
            prop_assert_eq!(order.content(number, bounds.must, bounds.through), bytes);
            prop_assert_eq!((0..).take_while(|&at| at < versions.len() && kept(at)).count(), bounds.must as usize);
        }
    }
}
