//! Log updates that stay known to the program's end: what an SM's selector and a slice's bank count of them,
//! and what the SM learns from the slice.

use super::*;

/// The reading of Table II's arithmetic.
fn arithmetic() -> Vec<(&'static str, Value)> {
    let words =
        [("key", "slot"), ("hit", "cache"), ("known", "program"), ("temporal", "transaction"), ("flags", "untracked")];
    let words = words.map(|(key, word)| (key, json!(word)));
    [&words[..], &[("statistics", json!("hits")), ("l1_buffers", json!("each"))]].concat()
}

/// Bytes of a half-warp's store: the first half of a line, or the second.
const HALVES: [u128; 2] = [u64::MAX as u128, (u64::MAX as u128) << 64];

fn stored(line: u64, bytes: u128, hit: bool) -> Access {
    Access { hit, by: (1, 0), ..access(AccessKind::Store, line, bytes) }
}

fn loaded(line: u64, bytes: u128, hit: bool) -> Access {
    Access { hit, ..access(AccessKind::Load, line, bytes) }
}

fn bank() -> (Bank, Outbox) {
    (Bank::new(&AgpmSpec::with(&arithmetic()), place(0)), Outbox::default())
}

/// What a bank has counted since it was asked last.
fn of(bank: &mut Bank, outbox: &mut Outbox) -> Locality {
    outbox.take();
    bank.message(Peer::Hub, Box::new(AgpmMessage::Count(0)), outbox);
    counted(written(outbox)).0
}

#[test]
fn what_does_not_hit_is_not_counted_and_is_known_all_the_same() {
    let (mut bank, mut outbox) = bank();
    bank.access(&stored(0, HALVES[0], false), &mut outbox);
    bank.access(&stored(0, HALVES[0], false), &mut outbox);
    assert_eq!(of(&mut bank, &mut outbox), Locality::default());
    bank.access(&stored(0, HALVES[0], true), &mut outbox);
    assert_eq!(of(&mut bank, &mut outbox), Locality { t_all: 1, t_log: 1, s_all: 1, s_log: 1 });
}

#[test]
fn evictions_write_backs_and_ends_of_kernels_leave_it_known() {
    let (mut bank, mut outbox) = bank();
    bank.access(&stored(0, HALVES[0], false), &mut outbox);
    bank.access(&access(AccessKind::WriteBack, 0, 0), &mut outbox);
    bank.event(&SliceEvent::Replaced(0), &mut outbox);
    assert_eq!(of(&mut bank, &mut outbox), Locality::default(), "a write-back is no re-hit");
    bank.access(&loaded(0, HALVES[0], true), &mut outbox);
    // The upper half of the transaction's 64 bytes is the same line, and another address.
    bank.access(&loaded(0, 0xffff_ffff << 32, true), &mut outbox);
    assert_eq!(of(&mut bank, &mut outbox), Locality { t_all: 1, t_log: 0, s_all: 2, s_log: 0 });
}

#[test]
fn flags_are_left_alone_where_the_hub_says_that_they_are() {
    let (mut bank, mut outbox) = bank();
    bank.message(Peer::Hub, Box::new(AgpmMessage::Flags { launch: 0, addresses: [256, 300] }), &mut outbox);
    for line in [128, 256, 384] {
        [false, true].into_iter().for_each(|hit| bank.access(&stored(line, 1, hit), &mut outbox));
    }
    assert_eq!(of(&mut bank, &mut outbox).s_log, 2, "lines 128 and 384");
    let mut sm = Sm::new(&arithmetic());
    let facts = KernelFacts { flags: [256, 300], ..KernelFacts::default() };
    sm.handler.event(&SmEvent::KernelStarts(&facts), &mut sm.outbox);
    for line in [128, 256, 384] {
        [false, true].into_iter().for_each(|hit| drop(sm.access(stored(line, 1, hit))));
    }
    assert_eq!(counted(sm.message(AgpmMessage::Count(0))).0.s_log, 2);
}

#[test]
fn an_sm_that_fetches_a_line_learns_what_others_have_logged_of_it() {
    let (mut bank, mut outbox) = bank();
    bank.access(&Access { from: 1, ..stored(0, HALVES[1], false) }, &mut outbox);
    assert!(written(&mut outbox).is_empty(), "a store teaches nobody");
    bank.access(&Access { from: 2, ..loaded(0, 1, true) }, &mut outbox);
    bank.access(&Access { from: 2, ..loaded(128, 1, true) }, &mut outbox);
    let told = written(&mut outbox);
    let [(Peer::Sm(2), AgpmMessage::Known { line: 0, addresses })] = told[..] else { panic!("{told:?}") };
    assert_eq!(addresses, 1 << 64, "where the transaction begins");
    let mut sm = Sm::at(2, &arithmetic());
    sm.message(AgpmMessage::Known { line: 0, addresses });
    for (bytes, hit) in [(HALVES[1], false), (HALVES[1], true), (1, true)] {
        sm.access(loaded(0, bytes, hit));
    }
    let (locality, ..) = counted(sm.message(AgpmMessage::Count(0)));
    assert_eq!(locality, Locality { t_all: 1, t_log: 0, s_all: 2, s_log: 0 });
}

#[test]
fn only_sms_with_a_buffer_are_told() {
    let spec = AgpmSpec::with(&[&arithmetic()[..], &[("l1_buffers", json!("one")), ("sampled_sm", json!(1))]].concat());
    let (mut bank, mut outbox) = (Bank::new(&spec, place(0)), Outbox::default());
    bank.access(&stored(0, 1, false), &mut outbox);
    (0..3).for_each(|from| bank.access(&Access { from, ..loaded(0, 1, true) }, &mut outbox));
    let told: Vec<Peer> = written(&mut outbox).into_iter().map(|(to, _)| to).collect();
    assert_eq!(told, [Peer::Sm(1)]);
}
