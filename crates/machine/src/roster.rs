//! The components of a machine: which there are, and to which each has ports, in their order.
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
//! Another kind of requester (a DMA engine) gets a role here and the next ids. Invariants: a machine has SMs
//! or cores; each kind of role has one inbox.

use std::fmt;
use std::ops::Range;

use super::address::Interleave;
use super::gpc::Gpcs;
use super::requester::Requester;

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
    pub(super) const KINDS: usize = 15;

    pub(super) fn kind(self) -> usize {
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

    pub(super) fn slices_per_controller(self) -> u16 {
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
    pub(super) fn groups(self, owner: Endpoint) -> [(Endpoint, u16); 6] {
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
}
