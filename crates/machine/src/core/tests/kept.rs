//! Lines that a scheme has stay in the L1, to the cycle.

use super::*;
use durawarp_persist::handler::{Admission, CoreOffer, Handler, Outbox, Peer, SchemeMessage, VictimSearch};

/// From a line to the next one of its set.
const WAYS_APART: u64 = 8192;
/// Long after all that a program does before it.
const LATE: u64 = 1000;

/// Has every dirty line stay until it is told.
#[derive(Debug)]
struct Keeps(Option<VictimSearch>, bool);

impl Handler for Keeps {
    fn message(&mut self, _: Peer, _: Box<dyn SchemeMessage>, _: &mut Outbox) {
        self.1 = true;
    }
}

impl CoreHandler for Keeps {
    fn policy(&self) -> CorePolicy {
        CorePolicy { victims: self.0, ..CorePolicy::default() }
    }

    fn offer(&mut self, offer: &CoreOffer, _: &mut Outbox) -> Admission {
        Admission::goes_if(!matches!(offer, CoreOffer::Victim(_)) || self.1)
    }
}

#[derive(Debug)]
struct Told;

impl SchemeMessage for Told {
    fn digest(&self) -> u64 {
        0
    }
}

/// Stores to a line, then loads `others` lines of its set. The program's end, and when changed lines came home;
/// the handler is told in cycle `told`, and the line recalled in another one.
fn run(search: Option<VictimSearch>, others: u64, told: u64, recalled: Option<u64>) -> (u64, Vec<(u64, u64)>) {
    let clock = Timebase::of_khz(&[2_000_000]).unwrap().clock(2_000_000);
    let line = NVM_BASE + DATA;
    let telling = (told, CoreMsg::Peer(PeerMessage { from: Peer::Home(0), message: Box::new(Told) }));
    let recall = |at| (at, CoreMsg::Probe { line, invalidate: true, recall: true, room: Box::default() });
    let sends = recalled.map(recall).into_iter().chain([telling]).map(|(at, message)| (clock.cycles(at), message));
    let mut sends: Vec<(Time, CoreMsg)> = sends.collect();
    sends.sort_by_key(|&(at, _)| at);
    let registers: Vec<(usize, u64)> = (0..=others).map(|at| (5 + at as usize, DATA + at * WAYS_APART)).collect();
    let loads: Vec<u32> = (1..=others).map(|at| ld(20, 5 + at as u32, 0)).collect();
    let words = program(&[&[sd(5, 5, 0), FENCE], &loads, &[FENCE], &exit()]);
    let world = World::under(Box::new(Keeps(search, false)), NVM_BASE, spec(), &words, &registers, sends.into());
    let home: &FlatHome = world.component(1);
    let came = home.came.iter().map(|&(at, line)| (clock.cycle_at_or_after(at), line - NVM_BASE - DATA)).collect();
    (world.exit_cycle(), came)
}

#[test]
fn a_dirty_line_leaves_when_the_scheme_lets_it_go_and_the_line_in_its_place_waits() {
    let (early, came) = run(Some(VictimSearch::First), 8, LATE, None);
    assert_eq!(came, [(LATE + REPLY + REQUEST, 0)], "it leaves in the event of the message");
    let (late, came) = run(Some(VictimSearch::First), 8, LATE + 1, None);
    assert_eq!((late, came), (early + 1, vec![(LATE + 1 + REPLY + REQUEST, 0)]));
    let (free, came) = run(None, 8, LATE, None);
    assert!(free < LATE && came.len() == 1, "nobody asks: {free}, {came:?}");
}

#[test]
fn another_line_of_the_set_leaves_where_more_than_one_is_looked_at() {
    for search in [VictimSearch::Half, VictimSearch::Full] {
        let (end, came) = run(Some(search), 8, LATE, None);
        assert!(end < LATE && came.is_empty(), "a clean one went: {end}, {came:?}");
    }
}

#[test]
fn a_recall_is_answered_when_the_scheme_lets_the_line_go() {
    let search = Some(VictimSearch::Full);
    assert_eq!(run(search, 0, LATE, Some(LATE - 1)).1, [(LATE + REPLY + REQUEST, 0)]);
    assert_eq!(run(search, 0, LATE, Some(LATE + 1)).1, [(LATE + 1 + REPLY + REQUEST, 0)], "at once");
    assert_eq!(run(None, 0, LATE, Some(LATE - 1)).1, [(LATE - 1 + REPLY + REQUEST, 0)], "it is not asked");
}
