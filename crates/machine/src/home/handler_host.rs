//! The scheme in a home slice: what lines depend on, and which must stay.
//!
//! A handler hears of every line that a core or the NIC brings, and says what a line that a core gets, or the
//! NIC overwrites, depends on. It may keep a line of persistent memory here whose bytes are not in memory
//! yet.

use crate::msg::Msg;
use crate::ports::Ports;
use durawarp_checkpoint::state;
use durawarp_engine::Ctx;
use durawarp_persist::handler::{
    Dependencies, HandlerReport, HomeEvent, HomeHandler, Outbox, Peer, SchemeMessage, report_of,
};

/// A handler and its outbox.
#[derive(Debug)]
pub(super) struct HomeHost {
    handler: Box<dyn HomeHandler>,
    outbox: Outbox,
    ports: Ports,
}

state!(HomeHost { parts: handler, outbox; kept: ports });

impl HomeHost {
    pub(super) fn new(handler: Box<dyn HomeHandler>, ports: Ports) -> HomeHost {
        HomeHost { handler, outbox: Outbox::default(), ports }
    }

    /// What the handler has to tell.
    pub(super) fn report(&self) -> HandlerReport {
        report_of(&*self.handler)
    }

    /// A core brings a line or its bytes, or the NIC.
    pub(super) fn taken(&mut self, line: u64, dependencies: &Dependencies, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        self.handler.event(&HomeEvent::Taken { line, dependencies }, &mut self.outbox);
        self.send(cx);
    }

    /// What a line depends on that a core gets, or the NIC overwrites.
    pub(super) fn given(&mut self, line: u64, to: u16) -> Option<Box<Dependencies>> {
        self.handler.event(&HomeEvent::Given { line, to }, &mut self.outbox);
        self.outbox.take_dependencies()
    }

    /// Of the ways of a set, how many are looked at for a line that may leave.
    pub(super) fn searched_ways(&self, ways: usize) -> usize {
        self.handler.search().ways(ways)
    }

    /// A line must stay.
    pub(super) fn keeps(&mut self, line: u64) -> bool {
        self.handler.keeps(line)
    }

    /// A peer has written.
    pub(super) fn receive(&mut self, from: Peer, message: Box<dyn SchemeMessage>, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        self.handler.message(from, message, &mut self.outbox);
        self.send(cx);
    }

    fn send(&mut self, cx: &mut Ctx<'_, Msg>) {
        for (to, message) in self.outbox.take() {
            self.ports.tell(to, message, 0, cx);
        }
    }
}
