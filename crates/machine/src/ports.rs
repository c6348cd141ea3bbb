//! Which port of a component leads to which other: the one place that numbers ports, and that names
//! requesters.
//!
//! Ports of a component are dense from 0, group by group in this order; groups in brackets exist under their
//! condition:
//!
//! | owner | its ports lead to |
//! |---|---|
//! | SM, core | slices, command processor or OS, \[hub, controllers: paths, request switch, poster, SMs of its GPC\] |
//! | command processor, OS | slices, SMs or cores, \[hub\], \[switch of requests\] |
//! | slice | SMs or cores, command processor or OS, its controller, \[hub, reply switch, poster, NIC: DDIO\] |
//! | slice, where GPCs have ports | those in place of the reply switch |
//! | controller | its slices, \[SMs or cores: paths\], \[other controllers: paths\], \[hub: paths\], \[NIC\] |
//! | hub | SMs or cores, slices, \[controllers: paths\] |
//! | switch of requests | slices, SMs and command processor (their credits) |
//! | switch of replies | SMs, command processor |
//! | port of a GPC | the SMs of the GPC |
//! | NIC | clients, controllers, \[slices: DDIO\], \[posters of other servers\] |
//! | poster | slices, cores, NICs of other servers |
//! | client | NIC |
//!
//! `assemble` connects every port that this table has to the [`Endpoint`] that it leads to, and a component
//! sends through the same table, so that the two cannot disagree. A component sends by [`To`] alone, a port
//! with the inbox at its far end: what that inbox does not take does not compile. Another kind of requester
//! (a DMA engine) gets a role and the next ids here. Invariants: a machine has SMs or cores; no two roles of
//! one owner share a port; a role without a port is refused; each kind of role has one inbox.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use durawarp_engine::{Ctx, Port, Time};
use durawarp_persist::handler::{Peer, SchemeMessage};

use super::address::Interleave;
use super::coherence::{CoreMsg, HomeMsg, LineData, OsMsg};
use super::gpc::Gpcs;
use super::msg::{CommandProcessorMsg, ControllerMsg, Msg, PeerMessage, SliceMsg, SmMsg, SwitchMsg};
use super::verbs::{ClientMsg, NicMsg, PosterMsg};

pub use super::requester::Requester;

/// A component, by what it is and its number among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// A streaming multiprocessor.
    Sm(u16),
    CommandProcessor,
    /// An L2 slice, by its number in the machine.
    Slice(u16),
    /// A home slice, by its number in the machine: what a machine of cores has for slices.
    Home(u16),
    /// The memory controller of a channel.
    Controller(u16),
    /// The scheme's own component.
    Hub,
    /// The crossbar's switch of requests.
    RequestSwitch,
    /// The crossbar's switch of replies.
    ReplySwitch,
    /// What the SMs of a GPC share of the crossbar, by the number of the GPC.
    GpcPort(u16),
    /// A CPU core.
    Core(u16),
    /// The operating system of a machine of cores.
    Os,
    /// The network interface of a server with clients.
    Nic,
    /// A client of the server.
    Client(u16),
    /// What posts the verbs of a server's harts.
    Poster,
    /// Another server, by its distance less 1: of a poster the NIC of a server further on, of a NIC the
    /// poster of a server further back.
    Server(u16),
}

impl Endpoint {
    /// Kinds of roles.
    const KINDS: usize = 15;

    fn kind(self) -> usize {
        match self {
            Endpoint::Sm(_) => 0,
            Endpoint::CommandProcessor => 1,
            Endpoint::Slice(_) => 2,
            Endpoint::Controller(_) => 3,
            Endpoint::Hub => 4,
            Endpoint::RequestSwitch => 5,
            Endpoint::ReplySwitch => 6,
            Endpoint::Core(_) => 7,
            Endpoint::Os => 8,
            Endpoint::Nic => 9,
            Endpoint::Client(_) => 10,
            Endpoint::Poster => 11,
            Endpoint::Server(_) => 12,
            Endpoint::Home(_) => 13,
            Endpoint::GpcPort(_) => 14,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Sm(index) => write!(f, "sm{index}"),
            Endpoint::CommandProcessor => write!(f, "command_processor"),
            Endpoint::Slice(index) | Endpoint::Home(index) => write!(f, "l2.{index}"),
            Endpoint::Controller(channel) => write!(f, "mc{channel}"),
            Endpoint::Hub => write!(f, "hub"),
            Endpoint::RequestSwitch => write!(f, "switch of requests"),
            Endpoint::ReplySwitch => write!(f, "switch of replies"),
            Endpoint::GpcPort(gpc) => write!(f, "gpc{gpc}"),
            Endpoint::Core(index) => write!(f, "core{index}"),
            Endpoint::Os => write!(f, "os"),
            Endpoint::Nic => write!(f, "nic"),
            Endpoint::Client(index) => write!(f, "client{index}"),
            Endpoint::Poster => write!(f, "poster"),
            Endpoint::Server(index) => write!(f, "server at distance {}", index + 1),
        }
    }
}

/// The components of a machine, as far as ports depend on them.
#[derive(Debug, Clone, Copy)]
pub struct Roster {
    pub sms: u16,
    /// CPU cores: none beside SMs.
    pub cores: u16,
    /// Address mapping: slices, and how many share a controller.
    pub map: Interleave,
    /// The scheme has a component of its own.
    pub hub: bool,
    /// SMs, controllers and the hub are linked for a scheme with handlers in controllers.
    pub paths: bool,
    /// The crossbar has switches.
    pub switched: bool,
    /// GPCs whose SMs share a port of the crossbar; on a machine without switches.
    pub gpc_ports: u16,
    /// GPCs, whose SMs are linked; 0 where no program needs it.
    pub gpcs: u16,
    /// Clients, behind a NIC; without any, and without other servers, there is none.
    pub clients: u16,
    /// The NIC writes to home slices.
    pub ddio: bool,
    /// Other servers that its harts post verbs to, and they to it; without any there is no poster.
    pub peers: u16,
}

impl Roster {
    /// A machine without a scheme's links and without switches.
    pub fn new(sms: u16, map: Interleave) -> Roster {
        Roster {
            sms,
            cores: 0,
            map,
            hub: false,
            paths: false,
            switched: false,
            gpc_ports: 0,
            gpcs: 0,
            clients: 0,
            ddio: false,
            peers: 0,
        }
    }

    /// A machine of cores without a scheme's links.
    pub fn of_cores(cores: u16, map: Interleave) -> Roster {
        Roster { cores, ..Roster::new(0, map) }
    }

    fn slices_per_controller(self) -> u16 {
        self.map.slices_per_channel() as u16
    }

    fn channels(self) -> u16 {
        self.map.slices() as u16 / self.slices_per_controller()
    }

    /// Every SM.
    pub fn sms(self) -> impl Iterator<Item = Endpoint> {
        (0..self.sms).map(Endpoint::Sm)
    }

    /// Every core.
    pub fn cores(self) -> impl Iterator<Item = Endpoint> {
        (0..self.cores).map(Endpoint::Core)
    }

    /// What the program's steps come from: the command processor, or the OS.
    pub fn host(self) -> Endpoint {
        if self.cores > 0 { Endpoint::Os } else { Endpoint::CommandProcessor }
    }

    /// An SM, or a core, by its number.
    fn compute(self, index: u16) -> Endpoint {
        if self.cores > 0 { Endpoint::Core(index) } else { Endpoint::Sm(index) }
    }

    /// An L2 slice, or a home slice, by its number.
    fn slice(self, index: u16) -> Endpoint {
        if self.cores > 0 { Endpoint::Home(index) } else { Endpoint::Slice(index) }
    }

    /// Every slice.
    pub fn slices(self) -> impl Iterator<Item = Endpoint> {
        (0..self.map.slices() as u16).map(move |index| self.slice(index))
    }

    /// Every memory controller.
    pub fn controllers(self) -> impl Iterator<Item = Endpoint> {
        (0..self.channels()).map(Endpoint::Controller)
    }

    /// Every client.
    pub fn clients(self) -> impl Iterator<Item = Endpoint> {
        (0..self.clients).map(Endpoint::Client)
    }

    /// Every other server, by its distance.
    pub fn servers(self) -> impl Iterator<Item = Endpoint> {
        (0..self.peers).map(Endpoint::Server)
    }

    /// There is a NIC.
    pub fn has_nic(self) -> bool {
        self.clients > 0 || self.peers > 0
    }

    /// Every requester, in the order of their ids.
    pub fn requester_roles(self) -> impl Iterator<Item = Endpoint> {
        let nic = self.nic_requests().then_some(Endpoint::Nic);
        let poster = (self.peers > 0).then_some(Endpoint::Poster);
        self.sms().chain(self.cores()).chain([self.host()]).chain(nic).chain(poster)
    }

    /// There is a NIC, and it writes to home slices.
    fn nic_requests(self) -> bool {
        self.ddio && self.has_nic()
    }

    /// A controller is the one of a slice.
    pub fn serves(self, controller: Endpoint, slice: Endpoint) -> bool {
        match (controller, slice) {
            (Endpoint::Controller(channel), Endpoint::Slice(slice) | Endpoint::Home(slice)) => {
                slice / self.slices_per_controller() == channel
            }
            _ => false,
        }
    }

    /// Requesters: SMs or cores, and the command processor or the OS; a NIC that writes to home slices; a
    /// poster.
    pub fn requesters(self) -> u16 {
        self.sms + self.cores + 1 + u16::from(self.nic_requests()) + u16::from(self.peers > 0)
    }

    /// The requester that a component is; none for those that send no requests.
    pub fn requester(self, role: Endpoint) -> Option<Requester> {
        match role {
            Endpoint::Sm(index) => Some(Requester::sm(index)),
            Endpoint::Core(index) => Some(Requester::core(index)),
            Endpoint::CommandProcessor => Some(Requester::command_processor(self.sms)),
            Endpoint::Os => Some(Requester::os(self.cores)),
            Endpoint::Nic if self.nic_requests() => Some(Requester::nic(self.cores)),
            Endpoint::Poster => Some(Requester::poster(self.cores, self.nic_requests())),
            _ => None,
        }
    }

    /// The SMs that are linked with an SM, itself included; none where there are no GPCs.
    pub fn neighbours(self, sm: u16) -> Option<Range<u16>> {
        Gpcs::new(self.sms, self.gpcs).around(sm)
    }

    /// The SMs behind the port of a GPC.
    pub fn sms_behind(self, gpc: u16) -> Range<u16> {
        Gpcs::new(self.sms, self.gpc_ports).sms_of(gpc)
    }

    /// The groups of a component's ports in their order: a role of the kind, and how many ports.
    fn groups(self, owner: Endpoint) -> [(Endpoint, u16); 6] {
        let if_any = |exists: bool, count: u16| if exists { count } else { 0 };
        let slices = (self.slice(0), self.map.slices() as u16);
        let compute = (self.compute(0), self.sms + self.cores);
        let host = (self.host(), 1);
        let hub = (Endpoint::Hub, u16::from(self.hub));
        let controllers = (Endpoint::Controller(0), if_any(self.paths, self.channels()));
        // Of a server, which has no switches.
        let nic = (Endpoint::Nic, u16::from(self.has_nic()));
        let servers = (Endpoint::Server(0), self.peers);
        let poster = (Endpoint::Poster, u16::from(self.peers > 0));
        let or_poster = |switch| if self.peers > 0 { poster } else { switch };
        let requests = (Endpoint::RequestSwitch, u16::from(self.switched));
        let replies = match self.gpc_ports {
            0 => (Endpoint::ReplySwitch, u16::from(self.switched)),
            gpcs => (Endpoint::GpcPort(0), gpcs),
        };
        let none = (Endpoint::Hub, 0);
        let if_ddio = |(role, count)| (role, if_any(self.nic_requests(), count));
        match owner {
            // The SMs of its GPC, itself too: CTAs of a cluster may share an SM.
            Endpoint::Sm(index) => {
                let around = self.neighbours(index).map_or(0, |sms| sms.len() as u16);
                [slices, host, hub, controllers, or_poster(requests), (Endpoint::Sm(0), around)]
            }
            Endpoint::Core(_) => [slices, host, hub, controllers, or_poster(requests), none],
            Endpoint::CommandProcessor | Endpoint::Os => [slices, compute, hub, requests, nic, none],
            Endpoint::Slice(_) | Endpoint::Home(_) => {
                [compute, host, (Endpoint::Controller(0), 1), hub, or_poster(replies), if_ddio(nic)]
            }
            Endpoint::Controller(_) => [
                (slices.0, self.slices_per_controller()),
                (compute.0, if_any(self.paths, compute.1)),
                (Endpoint::Controller(0), if_any(self.paths, self.channels() - 1)),
                (Endpoint::Hub, u16::from(self.paths && self.hub)),
                nic,
                none,
            ],
            Endpoint::Hub => [compute, slices, controllers, none, none, none],
            Endpoint::RequestSwitch => [slices, compute, host, none, none, none],
            Endpoint::ReplySwitch => [compute, host, none, none, none, none],
            Endpoint::GpcPort(gpc) => {
                let own = self.sms_behind(gpc).len() as u16;
                [(Endpoint::Sm(0), own), none, none, none, none, none]
            }
            Endpoint::Nic => [(Endpoint::Client(0), self.clients), controllers, servers, if_ddio(slices), none, none],
            Endpoint::Poster => [slices, compute, servers, none, none, none],
            Endpoint::Server(_) => [none; 6],
            Endpoint::Client(_) => [nic, none, none, none, none, none],
        }
    }

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

#[cold]
fn no_link(owner: Endpoint, to: &dyn fmt::Debug) -> ! {
    panic!("no link leads from {owner} to {to:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(hub: bool, paths: bool, switched: bool) -> Roster {
        Roster { hub, paths, switched, ..Roster::new(3, Interleave::new(4, 2, 256)) }
    }

    /// The number of a home's port to a requester.
    fn to_requester(home: Ports, who: Requester) -> u16 {
        let role = home.roster.requester_roles().nth(who.index());
        home.to(role.unwrap()).0
    }

    fn roles() -> Vec<Endpoint> {
        let sms = (0..3).map(Endpoint::Sm);
        let slices = (0..4).map(Endpoint::Slice);
        let controllers = (0..2).map(Endpoint::Controller);
        let others = [Endpoint::CommandProcessor, Endpoint::Hub, Endpoint::RequestSwitch, Endpoint::ReplySwitch];
        sms.chain(slices).chain(controllers).chain(others).collect()
    }

    #[test]
    fn ports_are_dense_and_no_two_roles_share_one() {
        for bits in 0..8 {
            let roster = roster(bits & 1 == 1, bits & 2 == 2, bits & 4 == 4);
            for owner in roles() {
                let ports = roster.ports(owner);
                let mut found: Vec<u16> =
                    roles().iter().filter_map(|&role| ports.find(role)).map(|port| port.0).collect();
                found.sort_unstable();
                let dense: Vec<u16> = (0..found.len() as u16).collect();
                assert_eq!(found, dense, "{owner} of {roster:?}");
                let counted: u16 = roster.groups(owner).iter().map(|(_, count)| count).sum();
                assert_eq!(found.len(), usize::from(counted), "{owner} of {roster:?}");
            }
        }
    }

    #[test]
    fn a_slice_reaches_sms_through_the_ports_of_their_gpcs_and_the_command_processor_without() {
        let roster = Roster { gpc_ports: 2, ..Roster::new(7, Interleave::new(4, 2, 256)) };
        let slice = roster.ports(Endpoint::Slice(1));
        // Behind seven SMs, the command processor and the controller. Of four TPCs each GPC has two.
        let stage = |requester| slice.to_stage_of(requester).map(|to| to.port);
        let of_sms = [0, 3, 4, 6].map(|sm| stage(Requester::sm(sm)));
        assert_eq!(of_sms, [Some(Port(9)), Some(Port(9)), Some(Port(10)), Some(Port(10))]);
        assert_eq!(stage(roster.requester(Endpoint::CommandProcessor).unwrap()), None);
        let gpc = roster.ports(Endpoint::GpcPort(1));
        assert_eq!([4, 6].map(|sm| gpc.to(Endpoint::Sm(sm)).0), [0, 2]);
        assert_eq!((gpc.find(Endpoint::Sm(3)), gpc.find(Endpoint::Slice(0))), (None, None));
        assert_eq!(roster.ports(Endpoint::Sm(0)).to_switch().map(|to| to.port), None);
    }

    #[test]
    fn an_sm_reaches_slices_command_processor_hub_controllers_and_switch_in_this_order() {
        let ports = roster(true, true, true).ports(Endpoint::Sm(1));
        let to = [
            Endpoint::Slice(3),
            Endpoint::CommandProcessor,
            Endpoint::Hub,
            Endpoint::Controller(1),
            Endpoint::RequestSwitch,
        ];
        assert_eq!(to.map(|role| ports.to(role).0), [3, 4, 5, 7, 8]);
        assert_eq!(ports.to_switch().map(|to| to.port), Some(Port(8)));
        let ports = roster(false, false, false).ports(Endpoint::Sm(1));
        assert_eq!((ports.to(Endpoint::CommandProcessor), ports.switch), (Port(4), None));
    }

    #[test]
    fn a_controller_has_no_port_to_itself_and_reaches_its_own_slices_only() {
        let ports = roster(true, true, false).ports(Endpoint::Controller(1));
        assert_eq!([2, 3].map(|slice| ports.to(Endpoint::Slice(slice)).0), [0, 1]);
        assert_eq!(
            (ports.to(Endpoint::Sm(2)), ports.to(Endpoint::Controller(0)), ports.to(Endpoint::Hub)),
            (Port(4), Port(5), Port(6))
        );
        for role in [Endpoint::Slice(1), Endpoint::Slice(4), Endpoint::Controller(1), Endpoint::Controller(2)] {
            assert_eq!(ports.find(role), None, "{role}");
        }
    }

    #[test]
    fn a_machine_of_cores_has_its_cores_and_its_os_where_others_have_sms_and_a_command_processor() {
        let roster = Roster::of_cores(3, Interleave::new(4, 2, 256));
        let home = roster.ports(Endpoint::Home(3));
        let to = [Endpoint::Core(2), Endpoint::Os, Endpoint::Controller(1)].map(|role| home.to(role).0);
        assert_eq!((to, home.find(Endpoint::Sm(0))), ([2, 3, 4], None));
        assert_eq!([Requester::core(1), Requester::os(3)].map(|who| to_requester(home, who)), [1, 3]);
        // With another server there is a poster, behind the OS.
        let linked = Roster { peers: 2, paths: true, ..roster };
        let of = |owner, to: &[Endpoint]| to.iter().map(|&role| linked.ports(owner).to(role).0).collect::<Vec<_>>();
        assert_eq!(of(Endpoint::Core(0), &[Endpoint::Os, Endpoint::Controller(1), Endpoint::Poster]), [4, 6, 7]);
        assert_eq!(of(Endpoint::Home(3), &[Endpoint::Os, Endpoint::Controller(1), Endpoint::Poster]), [3, 4, 5]);
        assert_eq!(of(Endpoint::Poster, &[Endpoint::Home(3), Endpoint::Core(2), Endpoint::Server(1)]), [3, 6, 8]);
        assert_eq!(of(Endpoint::Os, &[Endpoint::Home(0), Endpoint::Core(2), Endpoint::Nic]), [0, 6, 7]);
        assert_eq!(of(Endpoint::Nic, &[Endpoint::Controller(0), Endpoint::Server(0)]), [0, 2]);
        assert_eq!(to_requester(linked.ports(Endpoint::Home(3)), Requester::poster(3, false)), 5);
        assert_eq!(linked.ports(Endpoint::Poster).requester(), Requester::poster(3, false));
        let os = roster.ports(Endpoint::Os);
        assert_eq!((os.requester(), os.to(Endpoint::Core(0)).0), (Requester::os(3), 4));
        let core = roster.ports(Endpoint::Core(0));
        assert_eq!((core.to(Endpoint::Home(1)).0, core.to(Endpoint::Os).0), (1, 4));
    }

    #[test]
    fn a_nic_reaches_home_slices_where_it_writes_to_them_and_is_a_requester_then() {
        let roster = Roster { clients: 2, paths: true, ..Roster::of_cores(3, Interleave::new(4, 2, 256)) };
        assert_eq!((roster.requester(Endpoint::Nic), roster.requesters()), (None, 4));
        assert_eq!(roster.ports(Endpoint::Nic).find(Endpoint::Home(0)), None);
        let ddio = Roster { ddio: true, ..roster };
        assert_eq!((ddio.requester(Endpoint::Nic), ddio.requesters()), (Some(Requester::nic(3)), 5));
        let (nic, home) = (ddio.ports(Endpoint::Nic), ddio.ports(Endpoint::Home(3)));
        assert_eq!([Endpoint::Client(1), Endpoint::Controller(1), Endpoint::Home(3)].map(|to| nic.to(to).0), [1, 3, 7]);
        let requesters = [Requester::core(2), Requester::os(3), Requester::nic(3)];
        assert_eq!(requesters.map(|who| to_requester(home, who)), [2, 3, 5]);
        assert_eq!(home.peer(Peer::Nic).1, home.to(Endpoint::Nic));
    }

    #[test]
    fn requesters_are_the_sms_and_then_the_command_processor() {
        let roster = roster(false, false, false);
        let ports = roster.ports(Endpoint::Slice(0));
        let host = roster.ports(Endpoint::CommandProcessor).requester();
        assert_eq!((host, roster.requesters()), (Requester::command_processor(3), 4));
        assert_eq!((ports.sm_of(Requester::sm(2)), ports.sm_of(host)), (Some(2), None));
        assert!(matches!(ports.to_requester(Requester::sm(2)), ToEither::One(to) if to.port == Port(2)));
        assert!(matches!(ports.to_requester(host), ToEither::Other(to) if to.port == Port(3)));
        assert_eq!((ports.to_memory().port, ports.to(Endpoint::Controller(0))), (Port(4), Port(4)));
        assert_eq!(ports.find(Endpoint::Controller(1)), None, "another channel's");
    }

    #[test]
    fn a_peer_is_found_by_number_or_by_an_address() {
        let roster = roster(true, true, false);
        let ports = roster.ports(Endpoint::Sm(0));
        for chunk in 0..16 {
            let address = durawarp_kernel::memory::NVM_BASE + 256 * chunk;
            let slice = roster.map.slice_of(address) as u16;
            assert_eq!(ports.peer(Peer::SliceOf(address)), ports.peer(Peer::Slice(slice)));
            assert_eq!(ports.peer(Peer::ControllerOf(address)), ports.peer(Peer::Controller(slice / 2)));
        }
    }

    #[test]
    #[should_panic(expected = "no link leads from l2.0 to Controller(0)")]
    fn a_slices_handler_does_not_write_to_its_controller() {
        roster(true, true, false).ports(Endpoint::Slice(0)).peer(Peer::Controller(0));
    }

    #[test]
    fn a_peer_of_the_other_machine_is_not_found() {
        let gpu = roster(true, true, false);
        let cpu = Roster { hub: true, paths: true, ..Roster::of_cores(3, Interleave::new(4, 2, 256)) };
        let finds = |roster: Roster, peer| std::panic::catch_unwind(|| roster.ports(Endpoint::Hub).peer(peer)).is_ok();
        for peer in [Peer::Sm(0), Peer::Slice(1), Peer::SliceOf(0)] {
            assert!(finds(gpu, peer) && !finds(cpu, peer), "{peer:?}");
        }
        for peer in [Peer::Core(0), Peer::Home(1), Peer::HomeOf(0)] {
            assert!(finds(cpu, peer) && !finds(gpu, peer), "{peer:?}");
        }
    }

    #[test]
    #[should_panic(expected = "no link leads from hub to Host")]
    fn nobody_writes_to_the_hosts_handler() {
        roster(true, true, false).ports(Endpoint::Hub).peer(Peer::Host);
    }
}
