//! Which port of a component leads to which other: the one place that numbers ports.
//!
//! A component's ports are numbered group by group, as its [`Roster`] has them. `assemble` connects every
//! port of that table to the [`Endpoint`] that it leads to, and a component sends through the same table, so
//! that the two cannot disagree. A component sends by [`To`] alone, a port with the inbox at its far end:
//! what that inbox does not take does not compile. Invariants: no two roles of one owner share a port; a role
//! without a port is refused.

use std::fmt;
use std::marker::PhantomData;

use durawarp_engine::{Ctx, Port, Time};
use durawarp_persist::handler::{Peer, SchemeMessage};

use super::address::Interleave;
use super::coherence::{CoreMsg, HomeMsg, LineData, OsMsg};
use super::gpc::Gpcs;
use super::msg::{CommandProcessorMsg, ControllerMsg, Msg, PeerMessage, SliceMsg, SmMsg, SwitchMsg};
use super::verbs::{ClientMsg, NicMsg, PosterMsg};

pub use super::requester::Requester;
pub use super::roster::{Endpoint, Roster};

/// Ports that lead to components of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    first: u16,
    count: u16,
}

/// A port, by the inbox `I` at its far end.
///
/// ```
/// use durawarp_engine::Ctx;
/// use durawarp_machine::msg::{Msg, Request, SliceMsg};
/// use durawarp_machine::ports::Ports;
///
/// fn ask(request: Request, ports: &Ports, cx: &mut Ctx<'_, Msg>) {
///     ports.to_slice(0).send(SliceMsg::Request(request), 0, cx);
/// }
/// ```
/// An SM takes no request:
/// ```compile_fail,E0277
/// use durawarp_engine::Ctx;
/// use durawarp_machine::msg::{Msg, Request, SliceMsg};
/// use durawarp_machine::ports::Ports;
///
/// fn ask(request: Request, ports: &Ports, cx: &mut Ctx<'_, Msg>) {
///     ports.to_sm(0).send(SliceMsg::Request(request), 0, cx);
/// }
/// ```
#[derive(Debug)]
pub struct To<I> {
    port: Port,
    inbox: PhantomData<fn(I)>,
}

impl<I> Clone for To<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I> Copy for To<I> {}

impl<I: Into<Msg>> To<I> {
    #[inline]
    fn new(port: Port) -> To<I> {
        To { port, inbox: PhantomData }
    }

    /// Sends a message; it leaves `delay` from now.
    #[inline]
    pub fn send(self, message: impl Into<I>, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let message: I = message.into();
        cx.send(self.port, message.into(), delay);
    }
}

/// A port to one of two kinds of component.
#[derive(Debug)]
pub enum ToEither<A, B> {
    One(To<A>),
    Other(To<B>),
}

impl<A: Into<Msg>, B: Into<Msg>> ToEither<A, B> {
    /// Sends a message that both kinds take; it leaves `delay` from now.
    #[inline]
    pub fn send<M: Into<A> + Into<B>>(self, message: M, delay: Time, cx: &mut Ctx<'_, Msg>) {
        match self {
            ToEither::One(to) => to.send(message, delay, cx),
            ToEither::Other(to) => to.send(message, delay, cx),
        }
    }
}

/// The ports of one component.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    owner: Endpoint,
    roster: Roster,
    /// By kind of role.
    groups: [Group; Endpoint::KINDS],
    switch: Option<Port>,
}

impl Ports {
    /// The component whose ports these are.
    pub fn owner(&self) -> Endpoint {
        self.owner
    }

    /// The components of the machine.
    pub fn roster(&self) -> Roster {
        self.roster
    }

    /// The address mapping of the machine.
    #[inline]
    pub fn map(&self) -> &Interleave {
        &self.roster.map
    }

    /// The owner's id as a requester.
    ///
    /// # Panics
    /// When it is none.
    #[inline]
    pub fn requester(&self) -> Requester {
        match self.roster.requester(self.owner) {
            Some(requester) => requester,
            None => panic!("{} is no requester", self.owner),
        }
    }

    /// The SM that a requester is; none for another kind of requester.
    #[inline]
    pub fn sm_of(&self, requester: Requester) -> Option<u16> {
        (requester.number() < self.roster.sms).then_some(requester.number())
    }

    /// The port to a component, for who connects it. O(1).
    ///
    /// # Panics
    /// When no link leads there.
    #[inline]
    pub fn to(&self, role: Endpoint) -> Port {
        match self.find(role) {
            Some(port) => port,
            None => no_link(self.owner, &role),
        }
    }

    #[inline]
    fn find(&self, role: Endpoint) -> Option<Port> {
        let group = self.groups[role.kind()];
        let place = match (self.owner, role) {
            // A controller has no port to itself, and only to its own slices; a slice has one to its own
            // controller.
            (Endpoint::Controller(own), Endpoint::Controller(other)) if other == own => return None,
            (Endpoint::Controller(own), Endpoint::Controller(other)) => other - u16::from(other > own),
            (Endpoint::Controller(own), Endpoint::Slice(slice) | Endpoint::Home(slice)) => {
                slice.wrapping_sub(own * self.roster.slices_per_controller())
            }
            (Endpoint::Slice(own) | Endpoint::Home(own), Endpoint::Controller(channel)) => {
                u16::from(channel != own / self.roster.slices_per_controller())
            }
            (Endpoint::Sm(own), Endpoint::Sm(other)) => {
                let around = self.roster.neighbours(own)?;
                other.wrapping_sub(around.start)
            }
            (Endpoint::GpcPort(gpc), Endpoint::Sm(sm)) => sm.wrapping_sub(self.roster.sms_behind(gpc).start),
            (
                _,
                Endpoint::Sm(index)
                | Endpoint::Core(index)
                | Endpoint::Slice(index)
                | Endpoint::Home(index)
                | Endpoint::Controller(index)
                | Endpoint::Client(index)
                | Endpoint::GpcPort(index)
                | Endpoint::Server(index),
            ) => index,
            (
                _,
                Endpoint::CommandProcessor
                | Endpoint::Os
                | Endpoint::Hub
                | Endpoint::RequestSwitch
                | Endpoint::ReplySwitch
                | Endpoint::Nic
                | Endpoint::Poster,
            ) => 0,
        };
        (place < group.count).then(|| Port(group.first + place))
    }

    /// The port to an SM.
    #[inline]
    pub fn to_sm(&self, index: u16) -> To<SmMsg> {
        To::new(self.to(Endpoint::Sm(index)))
    }

    /// The ports to all SMs.
    pub fn to_sms(self) -> impl Iterator<Item = To<SmMsg>> {
        (0..self.roster.sms).map(move |index| self.to_sm(index))
    }

    /// The port to the command processor.
    #[inline]
    pub fn to_command_processor(&self) -> To<CommandProcessorMsg> {
        To::new(self.to(Endpoint::CommandProcessor))
    }

    /// The port to an L2 slice.
    #[inline]
    pub fn to_slice(&self, index: u16) -> To<SliceMsg> {
        To::new(self.to(Endpoint::Slice(index)))
    }

    /// The ports to all L2 slices.
    pub fn to_slices(self) -> impl Iterator<Item = To<SliceMsg>> {
        (0..self.roster.map.slices() as u16).map(move |index| self.to_slice(index))
    }

    /// The port to the requester of a GPU that a slice or a switch answers. O(1).
    #[inline]
    pub fn to_requester(&self, requester: Requester) -> ToEither<SmMsg, CommandProcessorMsg> {
        match self.sm_of(requester) {
            Some(index) => ToEither::One(self.to_sm(index)),
            None => ToEither::Other(self.to_command_processor()),
        }
    }

    /// The port to the switch that the owner's packets go through, where the crossbar has switches.
    #[inline]
    pub fn to_switch(&self) -> Option<To<SwitchMsg>> {
        self.switch.map(To::new)
    }

    /// A slice's port to what its reply to a requester goes through: the switch of replies, or the port of
    /// the SM's GPC. O(1).
    #[inline]
    pub fn to_stage_of(&self, requester: Requester) -> Option<To<SwitchMsg>> {
        self.switch.and_then(|first| self.stage_of(requester, first))
    }

    fn stage_of(&self, requester: Requester, first: Port) -> Option<To<SwitchMsg>> {
        let gpcs = Gpcs::new(self.roster.sms, self.roster.gpc_ports);
        match self.sm_of(requester) {
            _ if gpcs.count() == 0 => Some(To::new(first)),
            Some(sm) => Some(To::new(Port(first.0 + gpcs.of(sm)))),
            // The command processor is in no GPC.
            None => None,
        }
    }

    /// A slice's port to its controller.
    #[inline]
    pub fn to_memory(&self) -> To<ControllerMsg> {
        To::new(Port(self.groups[Endpoint::Controller(0).kind()].first))
    }

    /// A controller's port to the slice at a place among its own, or to the home slice there.
    #[inline]
    pub fn to_own(&self, place: u8) -> ToEither<SliceMsg, HomeMsg> {
        let port = Port(u16::from(place));
        if self.roster.cores > 0 { ToEither::Other(To::new(port)) } else { ToEither::One(To::new(port)) }
    }

    /// A controller's port to the L2 slice at a place among its own.
    ///
    /// # Panics
    /// When it is a home slice.
    pub fn to_own_slice(&self, place: u8) -> To<SliceMsg> {
        match self.to_own(place) {
            ToEither::One(to) => to,
            ToEither::Other(_) => no_link(self.owner, &"an L2 slice"),
        }
    }

    /// The port to a core.
    #[inline]
    pub fn to_core(&self, index: u16) -> To<CoreMsg> {
        To::new(self.to(Endpoint::Core(index)))
    }

    /// The ports to all cores.
    pub fn to_cores(self) -> impl Iterator<Item = To<CoreMsg>> {
        (0..self.roster.cores).map(move |index| self.to_core(index))
    }

    /// The port to the OS.
    pub fn to_os(&self) -> To<OsMsg> {
        To::new(self.to(Endpoint::Os))
    }

    /// The port to the home slice of a line.
    #[inline]
    pub fn to_home_of(&self, line: u64) -> To<HomeMsg> {
        To::new(self.to(Endpoint::Home(self.roster.map.slice_of(line) as u16)))
    }

    /// A home slice sends a line to the core, the OS or the poster that has asked for it.
    #[inline]
    pub fn send_line(&self, to: Requester, line: LineData, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let cores = self.roster.cores;
        if to.number() < cores {
            self.to_core(to.number()).send(line, delay, cx);
        } else if to.number() == cores {
            self.to_os().send(line, delay, cx);
        } else {
            self.to_poster().send(line, delay, cx);
        }
    }

    /// The port to the server's own NIC.
    pub fn to_nic(&self) -> To<NicMsg> {
        To::new(self.to(Endpoint::Nic))
    }

    /// A poster's port to the NIC of the server at a distance.
    pub fn to_nic_at(&self, distance: u32) -> To<NicMsg> {
        debug_assert_eq!(self.owner, Endpoint::Poster);
        To::new(self.to(Endpoint::Server(distance as u16 - 1)))
    }

    /// The port to the server's own poster.
    pub fn to_poster(&self) -> To<PosterMsg> {
        To::new(self.to(Endpoint::Poster))
    }

    /// A NIC's port to the poster of the server at a distance.
    pub fn to_poster_at(&self, distance: u32) -> To<PosterMsg> {
        debug_assert_eq!(self.owner, Endpoint::Nic);
        To::new(self.to(Endpoint::Server(distance as u16 - 1)))
    }

    /// The port to a client.
    pub fn to_client(&self, index: u16) -> To<ClientMsg> {
        To::new(self.to(Endpoint::Client(index)))
    }

    /// The component of a peer, and the port to it.
    ///
    /// # Panics
    /// When the owner's handler may not write to it.
    fn peer(&self, peer: Peer) -> (Endpoint, Port) {
        let slice = |address| self.roster.map.slice_of(address) as u16;
        let role = match peer {
            Peer::Sm(index) => Endpoint::Sm(index),
            Peer::Core(index) => Endpoint::Core(index),
            Peer::Slice(index) => Endpoint::Slice(index),
            Peer::SliceOf(address) => Endpoint::Slice(slice(address)),
            Peer::Home(index) => Endpoint::Home(index),
            Peer::HomeOf(address) => Endpoint::Home(slice(address)),
            Peer::Controller(channel) => Endpoint::Controller(channel),
            Peer::ControllerOf(address) => Endpoint::Controller(slice(address) / self.roster.slices_per_controller()),
            Peer::Hub => Endpoint::Hub,
            Peer::Host => self.roster.host(),
            Peer::Nic => Endpoint::Nic,
        };
        // The other links of a slice and of the command processor carry traffic that a message would
        // overtake.
        let may_write = match (self.owner, role) {
            (_, Endpoint::CommandProcessor | Endpoint::Os) => false,
            (Endpoint::Slice(_) | Endpoint::Home(_), Endpoint::Controller(_)) => false,
            (Endpoint::CommandProcessor | Endpoint::Os, role) => role == Endpoint::Hub,
            _ => true,
        };
        match self.find(role) {
            Some(port) if may_write => (role, port),
            _ => no_link(self.owner, &peer),
        }
    }

    /// The owner, as its handler's peers know it.
    fn as_peer(&self) -> Peer {
        match self.owner {
            Endpoint::Sm(index) => Peer::Sm(index),
            Endpoint::Core(index) => Peer::Core(index),
            Endpoint::Slice(index) => Peer::Slice(index),
            Endpoint::Home(index) => Peer::Home(index),
            Endpoint::Controller(channel) => Peer::Controller(channel),
            Endpoint::Hub => Peer::Hub,
            Endpoint::CommandProcessor | Endpoint::Os => Peer::Host,
            Endpoint::Nic => Peer::Nic,
            owner => panic!("{owner} hosts no handler"),
        }
    }

    /// Sends a message of the owner's handler to a peer; it leaves `delay` from now.
    ///
    /// # Panics
    /// When the handler may not write to it.
    pub fn tell(&self, peer: Peer, message: Box<dyn SchemeMessage>, delay: Time, cx: &mut Ctx<'_, Msg>) {
        let (role, port) = self.peer(peer);
        let message = PeerMessage { from: self.as_peer(), message };
        let message = match role {
            Endpoint::Sm(_) => SmMsg::Peer(message).into(),
            Endpoint::Slice(_) => SliceMsg::Peer(message).into(),
            Endpoint::Controller(_) => ControllerMsg::Peer(message).into(),
            Endpoint::Hub => message.into(),
            Endpoint::Core(_) => CoreMsg::Peer(message).into(),
            Endpoint::Home(_) => HomeMsg::Peer(message).into(),
            Endpoint::Nic => NicMsg::Peer(message).into(),
            _ => no_link(self.owner, &peer),
        };
        cx.send(port, message, delay);
    }
}

impl Roster {
    /// The ports of a component.
    pub fn ports(self, owner: Endpoint) -> Ports {
        let mut groups = [Group::default(); Endpoint::KINDS];
        let mut first = 0;
        for (role, count) in self.groups(owner) {
            if count > 0 {
                groups[role.kind()] = Group { first, count };
                first += count;
            }
        }
        let stages = [Endpoint::RequestSwitch, Endpoint::ReplySwitch, Endpoint::GpcPort(0)];
        let switch = stages.map(|role| groups[role.kind()]);
        let switch = switch.into_iter().find(|group| group.count > 0).map(|group| Port(group.first));
        Ports { owner, roster: self, groups, switch }
    }
}

#[cold]
fn no_link(owner: Endpoint, to: &dyn fmt::Debug) -> ! {
    panic!("no link leads from {owner} to {to:?}")
}

#[cfg(test)]
mod tests;
