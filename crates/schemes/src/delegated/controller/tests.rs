//! The two schedulers, request by request. Lines are numbered by bank: bank b has the lines 256 b, 256 b + 64
//! ...

use super::super::parameters::DependencyTracking;
use super::*;
use durawarp_base::spec::Nanos;
use durawarp_persist::journal::Author;

fn spec(barrier_scope: BarrierScope) -> BroiSpec {
    BroiSpec {
        pb_entries: 8,
        coalesce: true,
        dependency: DependencyTracking::Exact,
        pb_path_ns: Nanos { ps: 4400 },
        units: 8,
        barrier_registers: 2,
        sigma_thousandths: 100,
        barrier_scope,
        remote_low_entries: 16,
        remote_starvation_ns: Nanos { ps: 10_000_000 },
    }
}

fn epoch(units: u32) -> Delegated {
    let BroiSpec { pb_entries, coalesce, dependency, pb_path_ns, .. } = spec(BarrierScope::Entry);
    Delegated::Epoch(EpochSpec { pb_entries, coalesce, dependency, pb_path_ns, units })
}

/// Queues of three harts, and what was handed over and drained since the last look.
struct Rig {
    queues: PersistQueues,
    outbox: Outbox,
}

impl Rig {
    fn new(scheme: Delegated) -> Rig {
        Rig::of(scheme, 0, 8)
    }

    /// With channels, numbered from 3. A tick is a ns.
    fn of(scheme: Delegated, channels: u16, banks: u16) -> Rig {
        let place = HandlerPlace { cores: 3, harts: 1, channels, tick_khz: 1_000_000, ..HandlerPlace::default() };
        let mut queues = PersistQueues::new(scheme, place);
        queues.banks(Banks { count: banks, of: Box::new(move |line| (line / 256 % u64::from(banks)) as u16) });
        Rig { queues, outbox: Outbox::default() }
    }

    fn broi(scope: BarrierScope) -> Rig {
        Rig::new(Delegated::Broi(spec(scope)))
    }

    /// Requests and barriers come without the scheduler's having its turn.
    fn fill(&mut self, hart: u16, items: &[Option<(u64, u64)>]) {
        for item in items {
            match *item {
                Some((id, line)) => self.queues.receive(persist(hart, id, line), self.outbox.now()),
                None => self.queues.queues[usize::from(hart)].push_barrier(),
            }
        }
    }

    fn schedule(&mut self) -> Vec<u64> {
        self.queues.schedule(&mut self.outbox);
        self.handed_over()
    }

    /// Lines that were handed over to the write queue.
    fn handed_over(&mut self) -> Vec<u64> {
        self.outbox.flushes().drain(..).map(|flush| flush.line).collect()
    }

    /// The request of a hart's line is durable. The entries that are drained, and the lines handed over then.
    fn durable(&mut self, hart: u16, line: u64) -> (Vec<(u16, u64, u32)>, Vec<u64>) {
        let of = |request: &&PersistRequest| request.persist.line == line && request.under_way;
        let number = self.queues.queues[usize::from(hart)].requests().find(of).unwrap().number;
        self.queues.event(&ControllerEvent::Persisted(u64::from(hart) << 48 | number), &mut self.outbox);
        let drained = self.outbox.take().into_iter().map(|(to, message)| match opened(message) {
            DelegatedMessage::Drained { hart, id, persists } => {
                assert_eq!(to, if hart < 3 { Peer::Core(hart) } else { Peer::Nic });
                (hart, id, persists)
            }
            other => panic!("{other:?}"),
        });
        (drained.collect(), self.handed_over())
    }
}

fn persist(hart: u16, id: u64, line: u64) -> Persist {
    let author = Author::Entry { core: hart, hart: 0, entry: id as u32, stores: 1 };
    Persist { hart, id, author, line, mask: 0xff, bytes: Box::new([id as u8; 128]) }
}

/// Fig. 6(c): entry 1 has 1.1 and 1.2 in bank 0, then 1.3 in bank 1 (read from the printed priorities); entry
/// 2 has 2.1 in bank 0, then 2.2 in bank 1; entry 3 has 3.1 and, behind a barrier, 3.2 in bank 0.
fn figure_6(scope: BarrierScope) -> Rig {
    let mut rig = Rig::broi(scope);
    rig.fill(0, &[Some((1, 0)), Some((2, 64)), None, Some((4, 256))]);
    rig.fill(1, &[Some((1, 2048)), None, Some((3, 2304))]);
    rig.fill(2, &[Some((1, 4096)), None, Some((3, 4160))]);
    rig
}

#[test]
fn priorities_are_those_of_the_papers_example() {
    let rig = figure_6(BarrierScope::Entry);
    let choice = Choice { spec: &spec(BarrierScope::Entry), local: 3, starvation: 0 };
    assert_eq!(choice.priorities(&rig.queues.queues), [1800, 1900, 900]);
}

/// An entry of two units does not know of the third request of its set.
#[test]
fn a_sets_size_is_what_its_entry_shows() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    rig.fill(0, &[Some((1, 0)), Some((2, 64)), Some((3, 128))]);
    rig.fill(1, &[Some((1, 256))]);
    let priorities = |units| {
        let spec = BroiSpec { units, ..spec(BarrierScope::Entry) };
        Choice { spec: &spec, local: 2, starvation: 0 }.priorities(&rig.queues.queues[..2])
    };
    // A bank each for the other, less a tenth of a bank for each request.
    assert_eq!((priorities(8), priorities(2)), (vec![700, 900], vec![800, 900]));
}

#[test]
fn request_2_1_goes_first_and_then_2_2_has_a_bank_of_its_own() {
    let mut rig = figure_6(BarrierScope::Entry);
    assert_eq!(rig.schedule(), [2048], "2.1, and nothing else in bank 0");
    assert_eq!(rig.schedule(), [0; 0], "the bank serves one at a time");
    assert_eq!(rig.durable(1, 2048), (vec![(1, 1, 1)], vec![4096, 2304]), "3.1 (1.9 to 1.8) in bank 0, 2.2 in bank 1");
}

#[test]
fn a_set_goes_on_when_its_last_request_is_durable_and_not_before() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    rig.fill(0, &[Some((1, 0)), Some((2, 256)), None, Some((4, 512))]);
    assert_eq!(rig.schedule(), [0, 256]);
    assert_eq!(rig.durable(0, 256).1, [0; 0], "one of two is durable");
    assert_eq!(rig.durable(0, 0).1, [512]);
}

#[test]
fn a_global_barrier_lets_nothing_leave_until_all_under_way_is_durable() {
    for (scope, at_once) in [(BarrierScope::Entry, vec![512, 768]), (BarrierScope::Global, vec![])] {
        let mut rig = Rig::broi(scope);
        rig.fill(0, &[Some((1, 0)), None, Some((3, 512))]);
        rig.fill(1, &[Some((1, 256)), Some((2, 256 + 2048))]);
        assert_eq!(rig.schedule(), [0, 256]);
        rig.fill(2, &[Some((1, 768))]);
        assert_eq!(rig.durable(0, 0).1, at_once, "{scope:?}");
        let rest = if scope == BarrierScope::Global { vec![2304, 512, 768] } else { vec![2304] };
        let mut then = rig.durable(1, 256).1;
        then.sort_unstable_by_key(|line| rest.iter().position(|of| of == line));
        assert_eq!(then, rest, "{scope:?}");
    }
}

#[test]
fn an_epoch_ends_when_the_first_sets_of_all_harts_are_durable() {
    let mut rig = Rig::new(epoch(8));
    assert_eq!((rig.schedule(), rig.queues.tally.epochs), (vec![], 0), "nothing to begin one with");
    rig.fill(0, &[Some((1, 0)), None, Some((3, 64))]);
    rig.fill(1, &[Some((1, 256)), Some((2, 320)), None, Some((4, 384))]);
    assert_eq!(rig.schedule(), [0, 256, 320], "in the order of arrival, whatever their banks");
    assert_eq!(rig.durable(0, 0).1, [0; 0], "the hart's set has ended, the epoch has not");
    rig.fill(2, &[Some((1, 512))]);
    assert_eq!(rig.durable(1, 320).1, [512], "another hart's first set joins the epoch");
    assert_eq!(rig.durable(1, 256).1, [0; 0]);
    assert_eq!(rig.durable(2, 512).1, [64, 384], "the next epoch");
    assert_eq!(rig.queues.tally.epochs, 2);
}

#[test]
fn a_hart_adds_no_more_than_its_units_to_an_epoch() {
    let mut rig = Rig::new(epoch(2));
    rig.fill(0, &[Some((1, 0)), Some((2, 64)), Some((3, 128))]);
    assert_eq!(rig.schedule(), [0, 64]);
    assert_eq!(rig.durable(0, 0).1, [0; 0]);
    assert_eq!(rig.durable(0, 64).1, [128]);
}

#[test]
fn bytes_join_their_entry_until_it_is_handed_over() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    rig.fill(0, &[Some((1, 0))]);
    let author = Author::Entry { core: 0, hart: 0, entry: 1, stores: 2 };
    let more = Persist { mask: 0xff00, author, ..persist(0, 1, 0) };
    rig.queues.receive(more.clone(), 0);
    rig.queues.schedule(&mut rig.outbox);
    let flush = rig.outbox.flushes().pop_front().unwrap();
    assert_eq!((flush.mask, flush.author), (0xffff, author));
    rig.queues.receive(Persist { mask: 0xff_0000, ..more }, 0);
    assert_eq!(rig.schedule(), [0; 0], "it is under way: the rest is a request of its own, in a bank that is busy");
    assert_eq!(rig.durable(0, 0), (vec![(0, 1, 2)], vec![0]));
    assert_eq!(rig.durable(0, 0), (vec![(0, 1, 1)], vec![]));
}

#[test]
fn reads_see_what_has_not_been_handed_over() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    rig.fill(0, &[Some((7, 0)), None, Some((9, 0))]);
    rig.schedule();
    let mut bytes = [0; 128];
    assert!(rig.queues.overlay(0, 0xff, &mut bytes) && rig.queues.holds(0) && !rig.queues.holds(64));
    assert_eq!((bytes[0], bytes[8]), (9, 0));
    assert_eq!(rig.queues.lines(), BTreeMap::from([(0, 0xff)]));
    rig.durable(0, 0);
    assert!(!rig.queues.holds(0), "it is in the write queue now");
}

#[test]
fn of_two_harts_stores_of_a_line_a_read_sees_the_one_that_came_later() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    // The bank is busy, so that both wait.
    rig.fill(2, &[Some((1, 64))]);
    assert_eq!(rig.schedule(), [64]);
    rig.fill(1, &[Some((5, 0))]);
    rig.fill(0, &[Some((6, 0))]);
    let mut bytes = [0; 128];
    assert!(rig.queues.overlay(0, 0xff, &mut bytes));
    assert_eq!(bytes[0], 6);
    rig.fill(1, &[None, Some((7, 0))]);
    assert!(rig.queues.overlay(0, 0xff, &mut bytes));
    assert_eq!(bytes[0], 7);
}

#[test]
fn an_epoch_hands_over_in_the_order_of_arrival_over_all_harts() {
    let mut rig = Rig::new(epoch(8));
    rig.fill(0, &[Some((1, 0)), None]);
    rig.fill(2, &[Some((1, 512)), None]);
    assert_eq!(rig.schedule(), [0, 512]);
    rig.fill(2, &[Some((3, 576))]);
    rig.fill(0, &[Some((3, 64))]);
    assert_eq!(rig.durable(2, 512).1, [0; 0]);
    assert_eq!(rig.durable(0, 0).1, [576, 64], "hart 2's came first");
}

#[test]
fn a_barrier_with_nothing_before_it_is_none() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    rig.fill(0, &[None, None, Some((1, 0)), None, None, Some((2, 256))]);
    assert_eq!(rig.schedule(), [0]);
    assert_eq!(rig.durable(0, 0).1, [256]);
}

#[test]
fn the_next_set_is_seen_as_far_as_units_and_barrier_registers_go() {
    let mut rig = Rig::broi(BarrierScope::Entry);
    rig.fill(0, &[Some((1, 0)), Some((2, 64)), None, Some((4, 256)), Some((5, 512)), Some((6, 768))]);
    let seen = |units, registers| rig.queues.queues[0].next(units, registers).map(|of| of.persist.line).collect();
    let all: [Vec<u64>; 4] = [seen(8, 2), seen(4, 2), seen(2, 2), seen(8, 1)];
    assert_eq!(all, [vec![256, 512, 768], vec![256, 512], vec![], vec![]]);
}

#[test]
fn requests_of_clients_wait_while_harts_have_some_for_the_bank_and_at_most_10_us() {
    for (time, next) in [(9_999, 128), (10_000, 0x1_0000)] {
        let mut rig = Rig::of(Delegated::Broi(spec(BarrierScope::Entry)), 1, 8);
        // A channel's request comes first, and is not known to be there before the scheduler has its turn.
        rig.fill(3, &[Some((1, 0x1_0000)), Some((2, 0x1_0100))]);
        rig.fill(0, &[Some((1, 0)), Some((2, 64)), Some((3, 128))]);
        assert_eq!(rig.schedule(), [0, 0x1_0100], "the hart's in bank 0, the channel's in bank 1");
        assert_eq!(rig.durable(0, 0).1, [64]);
        rig.outbox.at(time);
        assert_eq!(rig.durable(0, 64).1, [next], "at {time} ns");
    }
}

#[test]
fn requests_of_clients_go_while_fewer_than_16_are_under_way() {
    for (of_harts, remote) in [(15, vec![0x1_0000 + 256 * 20]), (16, vec![])] {
        let mut rig = Rig::of(Delegated::Broi(BroiSpec { units: 32, ..spec(BarrierScope::Entry) }), 1, 32);
        let items: Vec<_> = (0..of_harts).map(|at| Some((at + 1, at * 256))).collect();
        rig.fill(0, &items);
        assert_eq!(rig.schedule().len() as u64, of_harts);
        rig.fill(3, &[Some((1, 0x1_0000 + 256 * 20))]);
        assert_eq!(rig.schedule(), remote, "{of_harts} under way");
        let (drained, next) = rig.durable(0, 0);
        assert_eq!((drained, next.len() + remote.len()), (vec![(0, 1, 1)], 1));
    }
}

#[test]
fn what_is_durable_of_a_channel_goes_to_the_nic() {
    for scheme in [epoch(8), Delegated::Broi(spec(BarrierScope::Entry))] {
        let mut rig = Rig::of(scheme, 2, 8);
        rig.fill(4, &[Some((7, 256)), None, Some((8, 512))]);
        assert_eq!(rig.schedule(), [256]);
        assert_eq!(rig.durable(4, 256), (vec![(4, 7, 1)], vec![512]));
    }
}
