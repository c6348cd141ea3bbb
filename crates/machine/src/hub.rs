//! The component that hosts a scheme's hub: a role that all its handlers write to (AGPM's path selector, a
//! sequencer).
//!
//! It exists only under schemes that have one. It answers messages at once; its links have the latency of the
//! command processor's unless the scheme says otherwise. Not modelled: what the hub's own logic takes, and
//! the wires' bandwidth: few messages come here, never one an access.

use durawarp_checkpoint::{state, state_methods};
use durawarp_engine::{Component, Ctx, StateDigest};
use durawarp_persist::handler::{Handler, Outbox, report_of};

use super::msg::{Msg, PeerMessage, Receiver, deliver};
use super::ports::Ports;

/// A scheme's own component.
#[derive(Debug)]
pub struct Hub {
    handler: Box<dyn Handler>,
    ports: Ports,
    outbox: Outbox,
}

state!(Hub { parts: handler, outbox; kept: ports });

impl Hub {
    /// A hub that hosts a handler.
    pub fn new(handler: Box<dyn Handler>, ports: Ports) -> Self {
        Hub { handler, ports, outbox: Outbox::default() }
    }

    /// What the scheme tells about the run.
    pub fn report(&self) -> serde_json::Value {
        report_of(&*self.handler).results
    }
}

impl Receiver for Hub {
    type Inbox = PeerMessage;

    fn receive(&mut self, PeerMessage { from, message }: PeerMessage, cx: &mut Ctx<'_, Msg>) {
        self.outbox.at(cx.now());
        self.handler.message(from, message, &mut self.outbox);
        for (to, message) in self.outbox.take() {
            self.ports.tell(to, message, 0, cx);
        }
    }
}

impl Component<Msg> for Hub {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        self.handler.state(&mut |word| digest.word(word));
        digest.value()
    }
}
