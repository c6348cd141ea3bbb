//! The buffer of a core by itself, message by message; 1 tick an ns. What tests of controllers share.

use super::buffer::{CoreBuffer, PathRule};
use super::lines::{HomeLines, copies, stored_by};
use super::messages::{Copied, CoreRegion, CoreRegionMessage};
use durawarp_persist::handler::{
    Admission, CoreEvent, CoreHandler, CoreOffer, Handler, HandlerPlace, HomeEvent, HomeHandler, Outbox, PathStore,
    Peer, opened,
};
use durawarp_persist::journal::Author;

/// Three cores and two controllers.
pub(crate) const PLACE: HandlerPlace = HandlerPlace {
    index: 0,
    sms: 0,
    cores: 3,
    harts: 1,
    slices: 2,
    controllers: 2,
    tick_khz: 1_000_000,
    l1_combines: false,
    channels: 0,
};

/// What was sent: to whom, what, and in how many ticks.
pub(crate) fn sent(outbox: &mut Outbox) -> Vec<(Peer, CoreRegionMessage, u64)> {
    outbox.take_timed().map(|(to, word, delay)| (to, opened(word), delay)).collect()
}

/// A store to a word of a line.
pub(crate) fn copied(line: u64) -> Copied {
    Copied { line, mask: 0xff, bytes: Box::new([7; 128]) }
}

fn buffer(stops: bool, feb_entries: u32) -> (CoreBuffer, Outbox) {
    // 16 ns a line.
    (CoreBuffer::new(PathRule { feb_entries, entry_bytes: 64, path_mb_s: 4000, stops }, PLACE), Outbox::default())
}

fn store(core: &mut CoreBuffer, line: u64, outbox: &mut Outbox) {
    let bytes = [7; 128];
    let author = Author::default();
    let store = PathStore { by: 0, author, line, mask: 0xff, bytes: &bytes, checkpoint: false };
    core.event(&CoreEvent::Stored(&store), outbox);
}

fn end(core: &mut CoreBuffer, outbox: &mut Outbox) {
    core.event(&CoreEvent::RegionEnds { hart: 0, author: Author::default(), last: false }, outbox);
}

fn hears(core: &mut CoreBuffer, controller: u16, word: CoreRegionMessage, outbox: &mut Outbox) {
    core.message(Peer::Controller(controller), Box::new(word), outbox);
}

/// Numbers of the regions of stores that left, with their delays.
fn left(outbox: &mut Outbox) -> Vec<(u32, u64)> {
    let of_store = |(_, word, delay)| match word {
        CoreRegionMessage::Store(region, _) => Some((region.number, delay)),
        _ => None,
    };
    sent(outbox).into_iter().filter_map(of_store).collect()
}

#[test]
fn a_store_takes_a_line_of_the_path_and_a_boundary_stops_it_until_all_controllers_have_persisted() {
    let (mut core, mut outbox) = buffer(true, 64);
    let mine = |number| CoreRegion { core: 0, number };
    store(&mut core, 0, &mut outbox);
    store(&mut core, 64, &mut outbox);
    end(&mut core, &mut outbox);
    let delays: Vec<u64> = sent(&mut outbox).iter().map(|(.., delay)| *delay).collect();
    assert_eq!(delays, [16, 32, 48, 48], "two lines, and a boundary for each controller");
    store(&mut core, 0, &mut outbox);
    outbox.at(199);
    hears(&mut core, 0, CoreRegionMessage::Persisted(mine(0)), &mut outbox);
    assert_eq!(left(&mut outbox), [], "one controller is early");
    outbox.at(200);
    hears(&mut core, 1, CoreRegionMessage::Persisted(mine(0)), &mut outbox);
    assert_eq!(left(&mut outbox), [(1, 16)], "on time");
    // A path that does not stop.
    let (mut core, mut outbox) = buffer(false, 64);
    store(&mut core, 0, &mut outbox);
    end(&mut core, &mut outbox);
    store(&mut core, 0, &mut outbox);
    assert_eq!(left(&mut outbox), [(0, 16), (1, 48)]);
}

#[test]
fn a_full_buffer_takes_a_store_when_a_controller_has_taken_one() {
    let (mut core, mut outbox) = buffer(true, 2);
    let admits = |core: &mut CoreBuffer| core.offer(&CoreOffer::Issue(0), &mut Outbox::default());
    store(&mut core, 0, &mut outbox);
    assert_eq!(admits(&mut core), Admission::Goes);
    store(&mut core, 0, &mut outbox);
    assert_eq!(admits(&mut core), Admission::Waits);
    hears(&mut core, 1, CoreRegionMessage::Taken, &mut outbox);
    assert_eq!(admits(&mut core), Admission::Goes);
}

#[test]
fn a_hart_waits_for_a_line_s_region_until_all_controllers_have_told_and_asks_once() {
    let (mut core, mut outbox) = buffer(true, 64);
    let other = |number| CoreRegion { core: 2, number };
    let mut taken = |core: &mut CoreBuffer, region: CoreRegion| {
        let dependencies = [stored_by(region, PLACE.cores), copies(2, 5)];
        core.event(&CoreEvent::Taken { line: 0, dependencies: &dependencies }, &mut outbox);
        sent(&mut outbox).len()
    };
    let goes = |core: &mut CoreBuffer| core.offer(&CoreOffer::Durable(0), &mut Outbox::default()) == Admission::Goes;
    assert!(taken(&mut core, CoreRegion { core: 0, number: 9 }) == 0 && goes(&mut core), "it is its own");
    assert_eq!((taken(&mut core, other(4)), taken(&mut core, other(3))), (2, 0));
    assert!(!goes(&mut core));
    let outbox = &mut Outbox::default();
    hears(&mut core, 0, CoreRegionMessage::Told(other(4)), outbox);
    assert!(!goes(&mut core), "one controller is early");
    hears(&mut core, 1, CoreRegionMessage::Told(other(4)), outbox);
    assert!(goes(&mut core), "on time");
    assert!(taken(&mut core, other(4)) == 0 && goes(&mut core), "that is known");
}

#[test]
fn a_line_brings_home_its_copies_and_a_region_that_has_not_persisted() {
    let (mut core, mut outbox) = buffer(true, 64);
    let gives = |core: &mut CoreBuffer, outbox: &mut Outbox| {
        core.event(&CoreEvent::Given(64), outbox);
        outbox.take_dependencies().map(|on| on.to_vec()).unwrap_or_default()
    };
    let region = CoreRegion { core: 0, number: 0 };
    store(&mut core, 64, &mut outbox);
    store(&mut core, 64, &mut outbox);
    let home = gives(&mut core, &mut outbox);
    assert_eq!(home, [copies(0, 2), stored_by(region, 3)]);
    assert_eq!(gives(&mut core, &mut outbox), [], "nothing was stored since");
    store(&mut core, 64, &mut outbox);
    end(&mut core, &mut outbox);
    for controller in [0, 1] {
        hears(&mut core, controller, CoreRegionMessage::Persisted(region), &mut outbox);
    }
    assert_eq!(gives(&mut core, &mut outbox), [copies(0, 1)]);
    // The home keeps it until both copies have come, and tells another core of the region.
    let (mut slice, mut outbox) = (HomeLines::new(PLACE), Outbox::default());
    slice.event(&HomeEvent::Taken { line: 64, dependencies: &home }, &mut outbox);
    for stays in [true, true, false] {
        assert_eq!(slice.keeps(64), stays);
        if stays {
            slice.message(Peer::Controller(0), Box::new(CoreRegionMessage::Arrived(64)), &mut outbox);
        }
    }
    for (to, told) in [(0, vec![]), (1, vec![stored_by(region, 3)])] {
        slice.event(&HomeEvent::Given { line: 64, to }, &mut outbox);
        assert_eq!(outbox.take_dependencies().map(|on| on.to_vec()).unwrap_or_default(), told);
    }
}
