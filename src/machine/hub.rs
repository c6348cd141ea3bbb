//! The component that hosts a scheme's hub: a role that all its sites write to (AGPM's path selector, a sequencer).
//!
//! It exists only under schemes that have one. It answers letters at once; its links have the latency of the command
//! processor's unless the scheme says otherwise. Not modelled: what the hub's own logic takes, and the wires' bandwidth: few
//! letters come here, never one an access. Ports: SMs, slices, controllers.

use crate::engine::{Component, Ctx, Port, StateDigest};
use crate::persist::site::{HubSite, Peer, Post};

use super::msg::Msg;

/// A scheme's own component.
#[derive(Debug)]
pub struct Hub {
    site: Box<dyn HubSite>,
    sms: u16,
    slices: u16,
    post: Post,
}

impl Hub {
    /// A hub beside so many SMs and slices.
    pub fn new(site: Box<dyn HubSite>, sms: u16, slices: u16) -> Self {
        Hub { site, sms, slices, post: Post::default() }
    }

    /// What the scheme tells about the run.
    pub fn report(&self) -> serde_json::Value {
        self.site.report()
    }
}

impl Component<Msg> for Hub {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Letter { from, letter } = message else { panic!("a scheme's hub received {message:?}") };
        self.post.at(cx.now());
        self.site.letter(from, letter, &mut self.post);
        for (to, letter) in self.post.take() {
            let port = match to {
                Peer::Sm(sm) => sm,
                Peer::Slice(slice) => self.sms + slice,
                Peer::Controller(controller) => self.sms + self.slices + controller,
                Peer::SliceOf(_) | Peer::ControllerOf(_) | Peer::Hub | Peer::Host => {
                    panic!("no link leads from a hub to {to:?}")
                }
            };
            cx.send(Port(port), Msg::Letter { from: Peer::Hub, letter }, 0);
        }
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        self.site.state(&mut |word| digest.word(word));
        digest.value()
    }
}
