//! When a region counts as persisted: all controllers have its boundary, and those of all regions before it.

use super::*;
use durawarp_persist::promises::Promises;

/// The crash points from which on regions count as persisted. `boundaries` are (time, controller, region).
fn persisted(controllers: usize, regions: u32, boundaries: &[(u64, u16, u32)]) -> Vec<u32> {
    let mut journal = Journal::default();
    let mut note = |time: u64, step: RegionStep, author: Author| {
        journal.note(time, FactKind::Region(step), 0, 0, author);
    };
    for region in 0..regions {
        note(0, RegionStep::Ended, Machine::author(0, 0).in_region(region));
    }
    for &(time, controller, region) in boundaries {
        note(time, RegionStep::Bounded, held(controller, region));
    }
    let (initial, promises) = (initial(), Promises::NONE);
    let order = RunOrder::new(&journal, &initial, Model { domain: Domain::Adr, promises });
    let facts = RegionFacts::new(&order, &initial, controllers, false).unwrap();
    facts.regions[0].iter().map(|region| region.persisted).collect()
}

#[test]
fn a_region_counts_as_persisted_when_the_last_controller_has_its_boundary() {
    let boundaries = [(5, 2, 0), (6, 0, 0), (9, 1, 0)];
    assert_eq!(persisted(3, 1, &boundaries[..2]), [NONE], "one early");
    assert_eq!(persisted(3, 1, &boundaries), [3], "on time");
    assert_eq!(persisted(1, 1, &boundaries[1..2]), [1], "one controller is all");
    assert_eq!(persisted(2, 1, &[(5, 0, 0), (5, 1, 0)]), [1], "facts of one time are one crash point");
}

#[test]
fn a_region_counts_as_persisted_when_all_before_it_do() {
    let boundaries = [(1, 0, 1), (2, 1, 1), (3, 0, 0), (4, 0, 2), (5, 1, 0), (6, 1, 2)];
    assert_eq!(persisted(2, 3, &boundaries[..4]), [NONE; 3]);
    assert_eq!(persisted(2, 3, &boundaries[..5]), [5, 5, NONE], "region 1 waited for region 0");
    assert_eq!(persisted(2, 3, &boundaries), [5, 5, 6]);
}

#[test]
fn the_host_may_write_over_a_region_when_the_last_controller_has_its_boundary() {
    let faults = |host_writes_at: usize| {
        let mut run = critical_sections([0, 1, 2]);
        let mut journal = Journal::default();
        let mut note = |kind: FactKind, author: Author, value: u8| {
            let time = journal.facts().len() as u64;
            match value {
                0 => journal.note(time, kind, 0, 0, author),
                _ => journal.note_data(time, kind, 0, 1, author, &[value; 128]),
            }
        };
        let warp = Machine::author(0, 0);
        note(FactKind::Stored, warp, 1);
        note(FactKind::Performed, Author::Sm(0), 1);
        note(FactKind::Region(RegionStep::Stored), warp.in_region(0), 1);
        note(FactKind::Region(RegionStep::Ended), warp.in_region(0), 0);
        note(FactKind::Region(RegionStep::Buffered), held(0, 0), 1);
        for controller in 0..=2 {
            if usize::from(controller) == host_writes_at {
                note(FactKind::Performed, Author::Host, 2);
                note(FactKind::Accepted, Author::Unknown, 2);
            }
            if controller < 2 {
                note(FactKind::Region(RegionStep::Bounded), held(controller, 0), 0);
            }
        }
        (run.journal, run.controllers) = (journal, 2);
        let failures = judge(&run, &AsPublished).history.failures;
        failures.iter().filter(|failure| failure.what.contains("the host writes 0x0 when region 0")).count()
    };
    assert_eq!([0, 1, 2].map(faults), [1, 1, 0], "no boundary, one early, on time");
}
