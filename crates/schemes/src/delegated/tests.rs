//! Persist buffers and homes together: who waits for whom, entry by entry.

use super::messages::{DelegatedMessage, Persist};
use super::parameters::{BufferSpec, DependencyTracking};
use super::*;
use durawarp_persist::journal::Author;
use durawarp_persist::{
    Admission, CoreEvent, CoreFences, CoreOffer, CorePolicy, Dependency, Handler, HomeEvent, NicEvent, Outbox,
    PathStore, Peer, opened,
};

const SPEC: BufferSpec = BufferSpec { pb_entries: 4, coalesce: true, dependency: DependencyTracking::Exact };

/// A core's buffers, or a home, with its outbox.
struct Rig<H> {
    handler: H,
    outbox: Outbox,
}

/// Two cores of so many harts.
fn place(index: u16, harts: u16) -> HandlerPlace {
    HandlerPlace { index, cores: 2, slices: 1, controllers: 1, harts, ..HandlerPlace::default() }
}

fn core(index: u16, harts: u16, spec: BufferSpec) -> Rig<PersistBuffers> {
    Rig { handler: PersistBuffers::of_harts(spec, place(index, harts)), outbox: Outbox::default() }
}

fn home() -> Rig<DependentLines> {
    Rig { handler: DependentLines::new(place(0, 1)), outbox: Outbox::default() }
}

/// What a message says, in short.
#[derive(Debug, PartialEq)]
enum Said {
    Persist(u16, u64, u64, u128),
    Barrier(u16),
    Resolved(u16, u64),
}

impl<H: Handler> Rig<H> {
    fn hear(&mut self, from: Peer, message: DelegatedMessage) -> Vec<(Peer, Said)> {
        self.handler.message(from, Box::new(message), &mut self.outbox);
        self.said()
    }

    fn said(&mut self) -> Vec<(Peer, Said)> {
        let of = |(to, message)| match opened(message) {
            DelegatedMessage::Persist(Persist { hart, id, line, mask, .. }) => {
                (to, Said::Persist(hart, id, line, mask))
            }
            DelegatedMessage::Barrier { hart } => (to, Said::Barrier(hart)),
            DelegatedMessage::Resolved { hart, id } => (to, Said::Resolved(hart, id)),
            DelegatedMessage::Drained { .. } => panic!("nobody here drains"),
        };
        self.outbox.take().into_iter().map(of).collect()
    }

    /// What goes with a line.
    fn given(&mut self) -> Vec<(u16, u64)> {
        let on = self.outbox.take_dependencies().unwrap_or_default();
        on.iter().map(|on| (on.hart, on.id)).collect()
    }
}

fn dependencies(on: &[(u16, u64)]) -> Vec<Dependency> {
    on.iter().map(|&(hart, id)| Dependency { hart, id }).collect()
}

impl Rig<DependentLines> {
    fn takes(&mut self, line: u64, on: &[(u16, u64)]) {
        self.handler.event(&HomeEvent::Taken { line, dependencies: &dependencies(on) }, &mut self.outbox);
        assert_eq!(self.said(), []);
    }

    fn gives(&mut self, line: u64, to: u16) -> Vec<(u16, u64)> {
        self.handler.event(&HomeEvent::Given { line, to }, &mut self.outbox);
        self.given()
    }
}

impl Rig<PersistBuffers> {
    fn tell(&mut self, event: &CoreEvent<'_>) -> Vec<Said> {
        CoreHandler::event(&mut self.handler, event, &mut self.outbox);
        self.said().into_iter().map(|(_, said)| said).collect()
    }

    fn takes(&mut self, line: u64, on: &[(u16, u64)]) {
        assert_eq!(self.tell(&CoreEvent::Taken { line, dependencies: &dependencies(on) }), []);
    }

    fn gives(&mut self, line: u64) -> Vec<(u16, u64)> {
        self.tell(&CoreEvent::Given(line));
        self.given()
    }

    fn store(&mut self, hart: u8, line: u64) -> Vec<Said> {
        let author = Author::Hart { core: 0, hart, pc: 0 };
        let bytes = [1; 128];
        self.tell(&CoreEvent::Stored(&PathStore {
            by: hart,
            author,
            line,
            mask: 0xff,
            bytes: &bytes,
            checkpoint: false,
        }))
    }

    fn fence(&mut self, hart: u8) -> Vec<Said> {
        self.tell(&CoreEvent::Fenced(hart))
    }

    fn drained(&mut self, hart: u16, id: u64) -> Vec<(Peer, Said)> {
        self.hear(Peer::Controller(0), DelegatedMessage::Drained { hart, id, persists: 1 })
    }

    fn has_room(&mut self, hart: u8) -> bool {
        self.handler.offer(&CoreOffer::Issue(hart), &mut self.outbox) == Admission::Goes
    }

    fn is_durable(&mut self, hart: u8) -> bool {
        self.handler.offer(&CoreOffer::Durable(hart), &mut self.outbox) == Admission::Goes
    }
}

#[test]
fn stores_and_fences_leave_in_order_and_the_buffer_is_full_at_its_entries() {
    let mut core = core(0, 1, SPEC);
    let policy = CorePolicy { fences: CoreFences::Order, dependencies: true, ..CorePolicy::default() };
    assert_eq!(core.handler.policy(), policy);
    assert_eq!(core.fence(0), [], "nothing is before it");
    assert_eq!(core.store(0, 64), [Said::Persist(0, 1, 64, 0xff)]);
    assert_eq!(core.fence(0), [Said::Barrier(0)]);
    assert_eq!(core.fence(0), [], "nothing is between the two");
    assert_eq!(core.store(0, 64), [Said::Persist(0, 3, 64, 0xff)], "behind a fence a line has a new entry");
    assert!(core.has_room(0));
    assert_eq!(core.store(0, 128), [Said::Persist(0, 4, 128, 0xff)]);
    assert!(!core.has_room(0), "four of four");
    assert_eq!(core.drained(0, 4), []);
    assert!(!core.has_room(0) && !core.is_durable(0), "it is not the oldest");
    assert_eq!(core.drained(0, 1), [], "and the fence with it");
    assert!(core.has_room(0) && !core.is_durable(0));
    core.drained(0, 3);
    assert!(core.is_durable(0));
}

#[test]
fn stores_to_a_line_share_an_entry_in_an_epoch() {
    let mut with = core(0, 1, SPEC);
    let mut without = core(0, 1, BufferSpec { coalesce: false, ..SPEC });
    with.store(0, 64);
    without.store(0, 64);
    assert_eq!(with.store(0, 64), [Said::Persist(0, 1, 64, 0xff)]);
    assert_eq!(without.store(0, 64), [Said::Persist(0, 2, 64, 0xff)]);
    with.drained(0, 1);
    assert!(!with.is_durable(0), "one of two messages is");
    with.drained(0, 1);
    assert!(with.is_durable(0));
}

#[test]
fn a_store_does_not_join_an_entry_of_its_line_past_one_that_waits() {
    let mut core = core(1, 1, SPEC);
    assert_eq!(core.store(0, 64), [Said::Persist(1, 1, 64, 0xff)]);
    core.takes(128, &[(0, 3)]);
    assert_eq!(core.store(0, 128), [], "it follows from what core 0 stored");
    assert_eq!(core.store(0, 64), [], "and so does what comes behind it, of whatever line");
    let said = core.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 0, id: 3 });
    let said: Vec<Said> = said.into_iter().map(|(_, said)| said).collect();
    assert_eq!(said, [Said::Persist(1, 2, 128, 0xff), Said::Persist(1, 3, 64, 0xff)]);
    // Past one that does not wait it does.
    assert_eq!(core.store(0, 128), [Said::Persist(1, 2, 128, 0xff)]);
}

#[test]
fn a_store_joins_none_that_is_durable_nor_what_it_depends_on_came_behind() {
    let mut core = core(1, 1, SPEC);
    core.store(0, 64);
    core.store(0, 128);
    assert_eq!(core.drained(1, 2), [], "durable, and in the buffer still: 1 is not");
    assert_eq!(core.store(0, 128), [Said::Persist(1, 3, 128, 0xff)], "a new entry");
    core.takes(192, &[(0, 3)]);
    assert_eq!(core.store(0, 128), [], "of its own, which waits");
}

#[test]
fn what_a_line_brings_holds_for_every_hart_of_the_core() {
    // Core 1 has harts 2 and 3.
    let mut core = core(1, 2, SPEC);
    core.takes(64, &[(0, 3)]);
    assert_eq!(core.store(1, 128), [], "the second hart may have asked for it");
    assert_eq!(core.store(0, 192), []);
    assert!(!core.is_durable(0) && !core.is_durable(1));
    let said = core.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 0, id: 3 });
    let said: Vec<Said> = said.into_iter().map(|(_, said)| said).collect();
    assert_eq!(said, [Said::Persist(2, 1, 192, 0xff), Said::Persist(3, 1, 128, 0xff)]);
}

#[test]
fn a_line_that_is_passed_on_makes_the_next_entry_wait_until_its_giver_is_durable() {
    // Core 0 stores A and passes it on to core 1 by way of the home, which stores B.
    let (mut giver, mut home, mut taker) = (core(0, 1, SPEC), home(), core(1, 1, SPEC));
    giver.store(0, 64);
    let on = giver.gives(64);
    assert_eq!(on, [(0, 1)]);
    home.takes(64, &on);
    assert_eq!(home.gives(64, 0), [], "one's own are left out");
    let on = home.gives(64, 1);
    assert_eq!(on, [(0, 1)]);
    taker.takes(64, &on);
    assert_eq!(taker.store(0, 128), [], "it waits");
    assert_eq!(taker.store(0, 192), [], "and so does what comes after it");
    let resolved = giver.drained(0, 1);
    assert_eq!(resolved, [(Peer::HomeOf(64), Said::Resolved(0, 1))]);
    let passed = home.hear(Peer::Core(0), DelegatedMessage::Resolved { hart: 0, id: 1 });
    assert_eq!(passed, [(Peer::Core(1), Said::Resolved(0, 1))], "to whom it was passed, and to nobody else");
    let released = taker.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 0, id: 1 });
    let expected = [Said::Persist(1, 1, 128, 0xff), Said::Persist(1, 2, 192, 0xff)];
    assert_eq!(released.into_iter().map(|(_, said)| said).collect::<Vec<_>>(), expected);
    assert_eq!((giver.gives(64), home.gives(64, 1)), (vec![], vec![]), "all is durable");
}

#[test]
fn a_lock_passes_on_what_is_before_the_last_fence_and_not_what_is_behind_it() {
    let (lock, mut core) = (1 << 20, core(0, 1, SPEC));
    core.store(0, 64);
    core.tell(&CoreEvent::StoredVolatile { hart: 0, line: lock });
    assert_eq!(core.gives(lock), [], "no fence is before the store to the lock");
    core.fence(0);
    core.store(0, 128);
    core.tell(&CoreEvent::StoredVolatile { hart: 0, line: lock });
    assert_eq!(core.gives(lock), [(0, 2)], "the fence, not the entry behind it");
    core.drained(0, 1);
    assert_eq!(core.gives(lock), []);
}

#[test]
fn an_answer_may_come_before_the_line_that_asks() {
    let mut taker = core(1, 1, SPEC);
    taker.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 0, id: 5 });
    taker.takes(64, &[(0, 5)]);
    assert_eq!(taker.store(0, 128), [Said::Persist(1, 1, 128, 0xff)], "5 is durable");
    taker.takes(64, &[(0, 6)]);
    assert_eq!(taker.store(0, 192), [], "6 is not");
    let mut home = home();
    home.hear(Peer::Core(0), DelegatedMessage::Resolved { hart: 0, id: 5 });
    home.takes(64, &[(0, 5)]);
    assert_eq!(home.gives(64, 1), []);
}

#[test]
fn a_fence_takes_an_entry_for_what_has_accumulated_so_that_chains_hold() {
    // A to B to C, where B stores nothing persistent of its own.
    let (lock, mut middle) = (1 << 20, core(1, 1, SPEC));
    middle.takes(64, &[(0, 3)]);
    assert_eq!(middle.fence(0), [], "it waits for core 0");
    middle.tell(&CoreEvent::StoredVolatile { hart: 0, line: lock });
    assert_eq!(middle.gives(lock), [(1, 1)], "C depends on B's fence, which waits for A");
    let said = middle.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 0, id: 3 });
    assert_eq!(said[0].1, Said::Barrier(1));
    assert_eq!(said[1], (Peer::HomeOf(lock), Said::Resolved(1, 1)));
}

#[test]
fn a_fence_that_waits_waits_for_what_its_hart_has_seen_too() {
    let mut core = core(1, 1, SPEC);
    core.takes(64, &[(0, 3)]);
    assert!(!core.is_durable(0));
    core.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 0, id: 3 });
    assert!(core.is_durable(0));
}

#[test]
fn harts_of_a_core_follow_each_other_without_a_message() {
    let mut core = core(0, 2, SPEC);
    core.store(0, 64);
    core.tell(&CoreEvent::Observed { hart: 1, line: 64 });
    assert_eq!(core.store(1, 128), [], "hart 1 has seen what hart 0 stored");
    assert_eq!(core.store(0, 192), [Said::Persist(0, 2, 192, 0xff)], "its own loads hold nobody up");
    let said = core.drained(0, 1);
    assert_eq!(said, [(Peer::ControllerOf(128), Said::Persist(1, 1, 128, 0xff))]);
}

#[test]
fn harts_of_a_core_follow_each_other_by_what_they_overwrite() {
    let (lock, mut core) = (1 << 20, core(0, 2, SPEC));
    core.store(0, 64);
    assert_eq!(core.store(1, 64), [], "the second store of a line is after the first");
    core.fence(0);
    core.tell(&CoreEvent::StoredVolatile { hart: 0, line: lock });
    core.drained(0, 1);
    core.drained(1, 1);
    // A lock of which one hart's last store is before the other's next.
    core.store(0, 128);
    core.fence(0);
    core.tell(&CoreEvent::StoredVolatile { hart: 0, line: lock });
    core.tell(&CoreEvent::StoredVolatile { hart: 1, line: lock });
    assert_eq!(core.store(1, 192), [], "it has the lock after what hart 0 fenced");
    let said = core.drained(0, 3);
    assert!(said.contains(&(Peer::ControllerOf(192), Said::Persist(1, 2, 192, 0xff))), "{said:?}");
}

#[test]
fn a_line_of_two_harts_depends_on_the_one_that_is_not_durable_alone() {
    let mut core = core(0, 2, SPEC);
    core.store(0, 64);
    core.store(1, 128);
    core.store(1, 64);
    assert_eq!(core.gives(64), [(0, 1), (1, 2)]);
    core.drained(0, 1);
    assert_eq!(core.gives(64), [(1, 2)], "hart 0's is durable, hart 1's is not");
    core.drained(1, 1);
    core.drained(1, 2);
    assert_eq!(core.gives(64), []);
}

#[test]
fn a_home_keeps_the_later_of_two_entries_of_a_hart_when_the_earlier_is_durable() {
    let mut home = home();
    home.takes(64, &[(0, 2)]);
    home.takes(64, &[(0, 7)]);
    home.hear(Peer::Core(0), DelegatedMessage::Resolved { hart: 0, id: 2 });
    assert_eq!(home.gives(64, 1), [(0, 7)]);
    assert!(home.handler.keeps(64));
}

#[test]
fn of_stores_that_share_an_entry_the_last_is_its_author() {
    let mut core = core(1, 1, SPEC);
    core.takes(192, &[(0, 3)]);
    let author = |pc: u8| Author::Hart { core: 1, hart: 0, pc: pc.into() };
    for byte in [1, 2] {
        let (author, bytes) = (author(byte), [byte; 128]);
        let store = PathStore { by: 0, author, line: 64, mask: 0xff, bytes: &bytes, checkpoint: false };
        assert_eq!(core.tell(&CoreEvent::Stored(&store)), []);
    }
    core.handler.message(Peer::Home(0), Box::new(DelegatedMessage::Resolved { hart: 0, id: 3 }), &mut core.outbox);
    let sent: Vec<DelegatedMessage> = core.outbox.take().into_iter().map(|(_, message)| opened(message)).collect();
    let [DelegatedMessage::Persist(persist)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((persist.author, persist.bytes[0]), (author(2).in_entry(1, 2), 2), "the second of two");
}

#[test]
fn a_full_buffer_is_counted_once_however_often_it_is_asked() {
    let mut core = core(0, 1, BufferSpec { pb_entries: 1, ..SPEC });
    let waits = |core: &Rig<PersistBuffers>| {
        let mut report = durawarp_persist::HandlerReport::default();
        core.handler.report(&mut report);
        report.counters.iter().find(|(name, _)| *name == "persist_full_waits").map(|(_, count)| *count)
    };
    core.store(0, 64);
    assert_eq!([core.has_room(0), core.has_room(0), core.has_room(0)], [false; 3]);
    assert_eq!(waits(&core), Some(1));
    core.drained(0, 1);
    assert!(core.has_room(0));
    core.store(0, 64);
    assert_eq!((core.has_room(0), waits(&core)), (false, Some(2)));
}

#[test]
fn a_line_stays_at_its_home_until_memory_has_it() {
    let mut home = home();
    assert!(!home.handler.keeps(64));
    home.takes(64, &[(0, 2), (1, 7)]);
    home.hear(Peer::Core(0), DelegatedMessage::Resolved { hart: 0, id: 2 });
    assert!(home.handler.keeps(64), "hart 1's is not");
    home.hear(Peer::Core(1), DelegatedMessage::Resolved { hart: 1, id: 9 });
    assert!(!home.handler.keeps(64));
}

#[test]
fn filters_order_at_least_what_exact_tracking_does() {
    let (lock, bloom) = (1 << 20, BufferSpec { dependency: DependencyTracking::Bloom, ..SPEC });
    let mut core = core(0, 1, bloom);
    core.store(0, 64);
    core.fence(0);
    core.tell(&CoreEvent::StoredVolatile { hart: 0, line: lock });
    assert_eq!(core.gives(lock), [(0, 2)]);
    assert_eq!(core.gives(64), [(0, 1)], "the entry of the line itself");
    let others = (0..256).filter(|n| !core.gives((2 << 20) + n * 64).is_empty()).count();
    assert!(others < 32, "{others} of 256 lines that nobody stored");
}

fn epoch() -> Delegated {
    let values = crate::entry::values_of::<EpochSpec>(EPOCH_DEFAULTS);
    Delegated::Epoch(serde_json::from_value(values.into()).unwrap())
}

#[test]
fn one_controller_orders_all_and_more_do_not_fit() {
    let two = HandlerPlace { controllers: 2, ..place(0, 1) };
    let (key, why) = epoch().unfit(two).unwrap();
    assert!(key == "controller.channels" && why.contains("one controller"), "{why}");
    assert!(epoch().unfit(place(0, 1)).is_none());
}

/// A NIC of two channels beside two cores of a hart each: channels are harts 2 and 3.
fn nic() -> Rig<PersistBuffers> {
    let place = HandlerPlace { channels: 2, ..place(0, 1) };
    Rig { handler: PersistBuffers::of_channels(SPEC, place), outbox: Outbox::default() }
}

impl Rig<PersistBuffers> {
    fn hears(&mut self, event: &NicEvent<'_>) -> Vec<Said> {
        NicHandler::event(&mut self.handler, event, &mut self.outbox);
        self.said().into_iter().map(|(_, said)| said).collect()
    }

    /// A channel's line goes to its home; what the home is told that it depends on.
    fn post(&mut self, channel: u8, line: u64) -> Vec<(u16, u64)> {
        let author = Author::Verb { channel: channel.into(), sequence: 1 };
        let bytes = [1; 128];
        let of = PathStore { by: channel, author, line, mask: 0xff, bytes: &bytes, checkpoint: false };
        assert_eq!(self.hears(&NicEvent::Posted(&of)), [], "its home has not answered");
        self.given()
    }

    fn answered(&mut self, channel: u8, on: &[(u16, u64)]) -> Vec<Said> {
        self.hears(&NicEvent::Answered { channel, dependencies: &dependencies(on) })
    }

    fn verb_ends(&mut self, channel: u8) -> Vec<Said> {
        self.hears(&NicEvent::VerbEnds(channel))
    }
}

#[test]
fn a_channels_line_leaves_when_its_home_has_answered_and_what_it_depends_on_is_durable() {
    let mut nic = nic();
    assert_eq!(nic.post(0, 64), [(2, 1)], "others that get the line depend on its entry");
    assert_eq!(nic.verb_ends(0), [], "the end of the verb stays behind it");
    assert_eq!(nic.answered(0, &[]), [Said::Persist(2, 1, 64, 0xff), Said::Barrier(2)]);
    assert_eq!(nic.post(0, 128), [(2, 3)]);
    assert_eq!(nic.answered(0, &[(1, 5)]), [], "core 1 stored there before");
    let released = nic.hear(Peer::Home(0), DelegatedMessage::Resolved { hart: 1, id: 5 });
    assert_eq!(released, [(Peer::ControllerOf(128), Said::Persist(2, 3, 128, 0xff))]);
    // The home of each line is told when it is durable.
    assert_eq!(nic.drained(2, 1), [(Peer::HomeOf(64), Said::Resolved(2, 2))]);
    assert_eq!(nic.drained(2, 3), [(Peer::HomeOf(128), Said::Resolved(2, 3))]);
}

#[test]
fn a_line_of_two_channels_is_durable_in_the_order_in_which_they_posted_it() {
    let mut nic = nic();
    nic.post(0, 64);
    assert_eq!(nic.post(1, 64), [(2, 1), (3, 1)]);
    assert_eq!(nic.answered(1, &[]), [], "the other's is not durable");
    assert_eq!(nic.answered(0, &[]), [Said::Persist(2, 1, 64, 0xff)]);
    let said = nic.drained(2, 1);
    assert!(said.contains(&(Peer::ControllerOf(64), Said::Persist(3, 1, 64, 0xff))), "{said:?}");
}

#[test]
fn a_home_keeps_the_nics_lines_and_tells_it_of_what_it_follows() {
    let place = HandlerPlace { channels: 2, ..place(0, 1) };
    let mut home = Rig { handler: DependentLines::new(place), outbox: Outbox::default() };
    home.takes(64, &[(1, 4)]);
    assert_eq!(home.gives(64, 2), [(1, 4)], "2 is the NIC, behind two cores");
    home.takes(64, &[(3, 7)]);
    assert_eq!(home.gives(64, 2), [(1, 4)], "the NIC knows of its channels");
    assert_eq!(home.gives(64, 0), [(1, 4), (3, 7)]);
    let told = home.hear(Peer::Core(1), DelegatedMessage::Resolved { hart: 1, id: 4 });
    assert_eq!(told, [(Peer::Core(0), Said::Resolved(1, 4)), (Peer::Nic, Said::Resolved(1, 4))]);
    assert!(home.handler.keeps(64));
    let told = home.hear(Peer::Nic, DelegatedMessage::Resolved { hart: 3, id: 7 });
    assert_eq!((told, home.handler.keeps(64)), (vec![(Peer::Core(0), Said::Resolved(3, 7))], false));
}

#[test]
fn every_verb_whose_end_is_durable_is_settled_also_where_several_are_at_once() {
    let mut nic = nic();
    for line in [64, 128] {
        nic.post(0, line);
        nic.answered(0, &[]);
        nic.verb_ends(0);
    }
    assert_eq!(nic.drained(2, 3), []);
    assert_eq!(nic.outbox.settled().len(), 0, "the first verb is not durable, so that the second is not");
    nic.drained(2, 1);
    assert_eq!(*nic.outbox.settled(), [Author::Channel(0); 2]);
}
