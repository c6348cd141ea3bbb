//! What a core's handler does, event by event.

use durawarp_persist::handler::report_of;
use durawarp_persist::journal::Author;
use durawarp_persist::vocab::RegionEnd;
use durawarp_persist::{
    Admission, CoreEvent, CoreHandler, CoreOffer, FactKind, HandlerPlace, Journal, Notebook, Outbox, PathStore,
};

use super::parameters::PpaSpec;
use super::stores::CoreStores;

/// A line, and another one.
const LINE: u64 = 0x40;
const OTHER: u64 = 0x80;

struct Host {
    handler: CoreStores,
    outbox: Outbox,
}

impl Host {
    fn new() -> Host {
        let spec = PpaSpec { prf_int: 180, prf_fp: 168 };
        let place = HandlerPlace { cores: 1, harts: 1, ..HandlerPlace::default() };
        Host { handler: CoreStores::new(&spec, place), outbox: Outbox::of_host(true) }
    }

    fn tell(&mut self, event: &CoreEvent<'_>) {
        self.handler.event(event, &mut self.outbox);
    }

    fn offer(&mut self, offer: &CoreOffer) -> Admission {
        self.handler.offer(offer, &mut self.outbox)
    }

    fn rename(&mut self, register: u8, in_flight: u32) -> Admission {
        self.offer(&CoreOffer::Rename { hart: 0, register, in_flight })
    }

    /// A store of a register retires, and the register is overwritten.
    fn hold(&mut self, register: u8) {
        self.tell(&CoreEvent::Retired { hart: 0, register: None, stored: 1 << register });
        self.tell(&CoreEvent::Retired { hart: 0, register: Some(register), stored: 0 });
    }

    fn store(&mut self, line: u64) {
        let author = Author::default();
        let store = PathStore { by: 0, author, line, mask: 1, bytes: &[0; 128], checkpoint: false };
        self.tell(&CoreEvent::Stored(&store));
    }

    fn written_back(&mut self, line: u64) {
        self.tell(&CoreEvent::WrittenBack { line, cycles: 100 });
    }

    /// Lines that it has written back since.
    fn left(&mut self) -> Vec<u64> {
        std::mem::take(self.outbox.cleans())
    }

    fn is_durable(&mut self) -> bool {
        self.offer(&CoreOffer::Durable(0)) == Admission::Goes
    }

    fn count(&self, name: &str) -> u64 {
        report_of(&self.handler).counters.iter().find(|(of, _)| *of == name).unwrap().1
    }
}

#[test]
fn the_148th_register_is_renamed_and_the_149th_ends_the_region() {
    let mut host = Host::new();
    for _ in 0..100 {
        host.hold(5);
    }
    // 100 are held: with 47 in flight this is the 148th.
    assert_eq!([47, 48].map(|in_flight| host.rename(5, in_flight)), [Admission::Goes, Admission::Waits]);
    for _ in 100..148 {
        host.hold(5);
    }
    assert_eq!(host.rename(5, 0), Admission::Waits);
    // Registers of floating-point are others: 168 less 32.
    assert_eq!([135, 136].map(|in_flight| host.rename(40, in_flight)), [Admission::Goes, Admission::Held]);
    host.tell(&CoreEvent::RegionPersisted { hart: 0, reason: RegionEnd::Registers, waited: 30 });
    assert_eq!([147, 148].map(|in_flight| host.rename(5, in_flight)), [Admission::Goes, Admission::Held]);
    assert_eq!(["regions", "region_instructions", "region_stores"].map(|name| host.count(name)), [1, 296, 148]);
    assert_eq!((host.count("register_region_ends"), host.count("region_wait_cycles")), (1, 30));
}

#[test]
fn a_register_is_held_once_and_only_if_a_store_of_the_region_read_it() {
    let mut host = Host::new();
    host.tell(&CoreEvent::Retired { hart: 0, register: Some(5), stored: 0 });
    assert_eq!(host.rename(5, 148), Admission::Held, "none is held");
    host.hold(5);
    host.tell(&CoreEvent::Retired { hart: 0, register: Some(5), stored: 0 });
    assert_eq!([146, 147].map(|in_flight| host.rename(5, in_flight)), [Admission::Goes, Admission::Waits]);
    // What an atomic wrote is in one more.
    host.tell(&CoreEvent::AtomicPerformed(0));
    assert_eq!([145, 146].map(|in_flight| host.rename(5, in_flight)), [Admission::Goes, Admission::Waits]);
}

#[test]
fn a_store_joins_the_next_write_back_of_its_line() {
    let mut host = Host::new();
    host.store(LINE);
    host.store(LINE);
    host.store(OTHER);
    assert_eq!(host.left(), [LINE, OTHER]);
    host.written_back(LINE);
    assert_eq!((host.left(), host.is_durable()), (vec![LINE], false));
    assert!(host.left().is_empty(), "it has left");
    host.written_back(OTHER);
    assert!(!host.is_durable());
    host.written_back(LINE);
    assert!(host.is_durable() && host.left().is_empty());
    let mut notes = Notebook::default();
    host.outbox.write_notes(Some(&mut notes), 0);
    let journal = Journal::merged(&[&notes]);
    let forgotten: Vec<_> = journal.facts().iter().map(|fact| (fact.kind, fact.line, fact.author)).collect();
    let forgets = |(line, stores)| (FactKind::Forgotten, line, Author::Core { core: 0, stores });
    assert_eq!(forgotten, [(LINE, 1), (OTHER, 3), (LINE, 3)].map(forgets));
    assert_eq!(["store_write_backs", "joined_stores", "write_back_cycles"].map(|name| host.count(name)), [3, 1, 300]);
}

#[test]
fn at_the_end_of_a_region_no_store_waits_to_leave() {
    let mut host = Host::new();
    host.store(LINE);
    host.store(LINE);
    assert_eq!(host.left(), [LINE]);
    assert_eq!((host.is_durable(), host.left()), (false, vec![LINE]));
    assert_eq!((host.is_durable(), host.left()), (false, vec![]));
    host.written_back(LINE);
    assert!(!host.is_durable());
    host.written_back(LINE);
    assert!(host.is_durable());
}

#[test]
fn a_line_is_given_up_when_its_stores_are_acknowledged() {
    let mut host = Host::new();
    assert_eq!(host.offer(&CoreOffer::GiveUp(LINE)), Admission::Goes);
    host.store(LINE);
    host.store(LINE);
    assert_eq!(host.left(), [LINE]);
    // The second store leaves at once, behind the first.
    assert_eq!((host.offer(&CoreOffer::GiveUp(LINE)), host.left()), (Admission::Waits, vec![LINE]));
    host.written_back(LINE);
    assert_eq!((host.offer(&CoreOffer::GiveUp(LINE)), host.left()), (Admission::Waits, vec![]));
    host.written_back(LINE);
    assert_eq!(host.offer(&CoreOffer::GiveUp(LINE)), Admission::Goes);
}
