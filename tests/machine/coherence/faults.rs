//! Faults of a home, or of a core, made of their messages: a component between a core and its homes. The
//! random test finds each.

use std::collections::BTreeMap;

use durawarp::engine::{Component, Ctx, Port, RunEnd};
use durawarp::kernel::memory::NVM_BASE;
use durawarp::machine::address::Interleave;
use durawarp::machine::coherence::{CoreMsg, HomeMsg, OsMsg};
use durawarp::machine::msg::{Line, Msg};
use durawarp::machine::ports::Requester;

use super::bench::{Bench, line_of};
use super::core::Act;
use super::random::{check, lines};

/// What goes wrong, at every tenth message that it concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A core is not asked to give its copy up.
    DropsProbe,
    /// The home grants a line before a core has given it up.
    GrantsEarly,
    /// The home takes bytes that a core had put there before, and owned no more.
    TakesStaleBytes,
    /// The home drops the bytes that a probe brings.
    DropsProbedBytes,
    /// The home drops the bytes of a Put.
    DropsPut,
    /// The home acknowledges a clean when it comes.
    CleansEarly,
    /// A clean leaves its core late: answers to probes overtake it.
    OvertakesCleans,
    /// A core never answers.
    LosesProbe,
}

#[derive(Debug)]
pub(crate) struct Tamper {
    fault: Fault,
    core: Requester,
    map: Interleave,
    concerned: u64,
    /// By line: what the core put there last.
    put: BTreeMap<u64, Line>,
    /// Lines whose next acknowledgement is kept from the home.
    acknowledged: Vec<u64>,
    /// Tags of cleans whose acknowledgement is kept from the core.
    cleaned: Vec<u16>,
}

impl Tamper {
    pub(crate) fn new(fault: Fault, core: Requester, map: Interleave) -> Tamper {
        Tamper { fault, core, map, concerned: 0, put: BTreeMap::new(), acknowledged: Vec::new(), cleaned: Vec::new() }
    }

    fn strikes(&mut self) -> bool {
        self.concerned += 1;
        self.concerned.is_multiple_of(10)
    }

    fn up(&self, message: HomeMsg, delay: u64, cx: &mut Ctx<'_, Msg>) {
        cx.send(Port(self.map.slice_of(line_of(&message)) as u16), message.into(), delay);
    }

    fn down(&self, message: CoreMsg, delay: u64, cx: &mut Ctx<'_, Msg>) {
        cx.send(Port(self.map.slices() as u16), message.into(), delay);
    }

    fn pass_down(&mut self, message: CoreMsg, cx: &mut Ctx<'_, Msg>) {
        let (mut delay, from) = (0, self.core);
        match &message {
            CoreMsg::Probe { line, invalidate: true, .. } => {
                let line = *line;
                let struck = match self.fault {
                    Fault::LosesProbe => return,
                    Fault::DropsProbe | Fault::GrantsEarly => self.strikes(),
                    _ => false,
                };
                if struck {
                    self.up(
                        HomeMsg::ProbeAck { line, from, dirty: false, room: Box::default(), dependencies: None },
                        0,
                        cx,
                    );
                    if self.fault == Fault::DropsProbe {
                        return;
                    }
                    self.acknowledged.push(line);
                    delay = 100;
                }
            }
            CoreMsg::Cleaned { tag, .. } => {
                if let Some(at) = self.cleaned.iter().position(|of| of == tag) {
                    self.cleaned.remove(at);
                    return;
                }
            }
            _ => {}
        }
        self.down(message, delay, cx);
    }

    fn pass_up(&mut self, mut message: HomeMsg, cx: &mut Ctx<'_, Msg>) {
        let mut delay = 0;
        match &mut message {
            HomeMsg::ProbeAck { line, dirty, room, .. } => {
                if let Some(at) = self.acknowledged.iter().position(|of| of == line) {
                    self.acknowledged.remove(at);
                    return;
                }
                match (self.fault, *dirty, self.put.get(line).cloned()) {
                    (Fault::TakesStaleBytes, false, Some(stale)) if self.strikes() => (*dirty, **room) = (true, stale),
                    (Fault::DropsProbedBytes, true, _) => *dirty = !self.strikes(),
                    _ => {}
                }
            }
            HomeMsg::Put { line, data, .. } => {
                self.put.insert(*line, (**data).clone());
                if self.fault == Fault::DropsPut && self.strikes() {
                    let line = *line;
                    self.down(CoreMsg::PutAck { line, room: Box::default() }, 0, cx);
                    return;
                }
            }
            HomeMsg::Clean { tag, .. } => {
                let tag = *tag;
                if self.fault == Fault::OvertakesCleans {
                    delay = 12;
                }
                if self.fault == Fault::CleansEarly && self.strikes() {
                    self.cleaned.push(tag);
                    self.down(CoreMsg::Cleaned { tag, room: Box::default() }, 0, cx);
                }
            }
            _ => {}
        }
        self.up(message, delay, cx);
    }
}

impl Component<Msg> for Tamper {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::Core(message) => self.pass_down(message, cx),
            // To the OS nothing happens.
            Msg::Os(message @ OsMsg::Data(_)) => cx.send(Port(self.map.slices() as u16), message.into(), 0),
            Msg::Home(message) => self.pass_up(message, cx),
            other => panic!("between a core and its home: {other:?}"),
        }
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {
        unreachable!("asks for no wake-up")
    }
}

/// What the random test says of a home with a fault.
fn found(fault: Fault) -> String {
    let ran = Bench { fault: Some(fault), ..Bench::drawn(4, 500, &lines(12), 1) }.run();
    check(&ran).expect_err("the fault shows")
}

#[test]
fn a_probe_that_is_dropped_leaves_an_old_copy() {
    assert!(found(Fault::DropsProbe).contains("has copies"), "{}", found(Fault::DropsProbe));
}

#[test]
fn a_line_that_is_granted_early_has_two_owners() {
    assert!(found(Fault::GrantsEarly).contains("has copies"), "{}", found(Fault::GrantsEarly));
}

#[test]
fn stale_bytes_and_bytes_that_come_too_late_are_seen() {
    let faults = [Fault::TakesStaleBytes, Fault::DropsProbedBytes, Fault::DropsPut, Fault::OvertakesCleans];
    for fault in faults {
        let found = found(fault);
        let says = ["sees", "memory has"].into_iter().any(|says| found.contains(says));
        assert!(says, "{fault:?}: {found}");
    }
}

#[test]
fn a_clean_that_is_acknowledged_early_covers_what_is_not_durable() {
    assert!(found(Fault::CleansEarly).contains("is durable"), "{}", found(Fault::CleansEarly));
}

#[test]
fn a_core_that_does_not_answer_is_named_with_who_waits_for_it() {
    let stores = |at| [(at, Act::Store(NVM_BASE, at))];
    let scripts = [stores(0), stores(1000), stores(1100)];
    let bench = Bench { fault: Some(Fault::LosesProbe), ..Bench::scripts(&scripts.each_ref().map(|s| &s[..])) };
    let RunEnd::Deadlock { waits, .. } = bench.run().end else { panic!("a deadlock") };
    let of_home: Vec<_> = waits.iter().filter(|(_, name, _)| name == "home0").map(|(_, _, wait)| wait).collect();
    let told: Vec<_> = of_home.iter().map(|wait| (wait.who.as_str(), wait.what.as_str(), wait.since)).collect();
    // A link of 14, and one of 1 at the component between.
    assert_eq!(
        told,
        [
            ("a get of core1", "core0 to answer a probe of line 0x10000000000", 1015),
            ("a get of core2", "its turn for line 0x10000000000", 1115),
        ]
    );
}
