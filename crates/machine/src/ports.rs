//! Which port of a component leads to which other: the one place that numbers ports, and that names
//! requesters.
//!
//! Ports of a component are dense from 0, group by group in this order; groups in brackets exist under their
//! condition:
//!
//! | owner | its ports lead to |
//! |---|---|
//! | SM, core | slices, command processor or OS, \[hub\], \[controllers: paths\], \[request switch, poster\] |
//! | command processor, OS | slices, SMs or cores, \[hub\], \[switch of requests\] |
//! | slice | SMs or cores, command processor or OS, its controller, \[hub, reply switch, poster, NIC: DDIO\] |
//! | controller | its slices, \[SMs or cores: paths\], \[other controllers: paths\], \[hub: paths\], \[NIC\] |
//! | hub | SMs or cores, slices, \[controllers: paths\] |
//! | switch of requests | slices, SMs and command processor (their credits) |
//! | switch of replies | SMs, command processor |
//! | NIC | clients, controllers, \[slices: DDIO\], \[posters of other servers\] |
//! | poster | slices, cores, NICs of other servers |
//! | client | NIC |
//!
//! `assemble` connects every port that this table has, and a host asks it for the port to a [`Endpoint`], so
//! that the two cannot disagree. A *requester* is a component that sends requests to slices. Its id is dense
//! over all requesters: SMs, then the command processor; in a machine of cores these, then the OS, then a
//! NIC that writes to the shared cache, then the poster. Only [`Ports`] knows that, and another kind of
//! requester (a DMA engine) gets a role and the next ids here. Invariants: a machine has SMs or cores; no two
//! roles of one owner share a port; a role without a port is refused.

use std::fmt;

use durawarp_checkpoint::value;
use durawarp_engine::Port;
use durawarp_persist::handler::Peer;

use super::address::Interleave;

/// A component that sends requests to the L2: its id, dense from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requester(u16);

value!(wrapper Requester);

impl Requester {
    /// The id of an SM.
    pub fn sm(index: u16) -> Requester {
        Requester(index)
    }

    /// The id of a core.
    pub fn core(index: u16) -> Requester {
        Requester(index)
    }

    /// The id of the OS of a machine with `cores` cores.
    pub fn os(cores: u16) -> Requester {
        Requester(cores)
    }

    /// The id of the NIC of a machine with `cores` cores.
    pub fn nic(cores: u16) -> Requester {
        Requester(cores + 1)
    }

    /// The id of the command processor of a machine with `sms` SMs.
    pub fn command_processor(sms: u16) -> Requester {
        Requester(sms)
    }

    /// The id as schemes and digests have it.
    #[inline]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The id as an index into a table of all requesters.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A component, by what it is and its number among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// A streaming multiprocessor.
    Sm(u16),
    CommandProcessor,
    /// An L2 slice, by its number in the machine; in a machine of cores a home slice.
    Slice(u16),
    /// The memory controller of a channel.
    Controller(u16),
    /// The scheme's own component.
    Hub,
    /// The crossbar's switch of requests.
    RequestSwitch,
    /// The crossbar's switch of replies.
    ReplySwitch,
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
    const KINDS: usize = 13;

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
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Sm(index) => write!(f, "sm{index}"),
            Endpoint::CommandProcessor => write!(f, "command_processor"),
            Endpoint::Slice(index) => write!(f, "l2.{index}"),
            Endpoint::Controller(channel) => write!(f, "mc{channel}"),
            Endpoint::Hub => write!(f, "hub"),
            Endpoint::RequestSwitch => write!(f, "switch of requests"),
            Endpoint::ReplySwitch => write!(f, "switch of replies"),
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
        Roster { sms, cores: 0, map, hub: false, paths: false, switched: false, clients: 0, ddio: false, peers: 0 }
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

    /// Every slice.
    pub fn slices(self) -> impl Iterator<Item = Endpoint> {
        (0..self.map.slices() as u16).map(Endpoint::Slice)
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
            (Endpoint::Controller(channel), Endpoint::Slice(slice)) => slice / self.slices_per_controller() == channel,
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
            Endpoint::Poster => Some(Requester(self.cores + 1 + u16::from(self.nic_requests()))),
            _ => None,
        }
    }

    /// The groups of a component's ports in their order: a role of the kind, and how many ports.
    fn groups(self, owner: Endpoint) -> [(Endpoint, u16); 6] {
        let if_any = |exists: bool, count: u16| if exists { count } else { 0 };
        let slices = (Endpoint::Slice(0), self.map.slices() as u16);
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
        let replies = (Endpoint::ReplySwitch, u16::from(self.switched));
        let none = (Endpoint::Hub, 0);
        let if_ddio = |(role, count)| (role, if_any(self.nic_requests(), count));
        match owner {
            Endpoint::Sm(_) | Endpoint::Core(_) => [slices, host, hub, controllers, or_poster(requests), none],
            Endpoint::CommandProcessor | Endpoint::Os => [slices, compute, hub, requests, nic, none],
            Endpoint::Slice(_) => [compute, host, (Endpoint::Controller(0), 1), hub, or_poster(replies), if_ddio(nic)],
            Endpoint::Controller(_) => [
                (Endpoint::Slice(0), self.slices_per_controller()),
                (compute.0, if_any(self.paths, compute.1)),
                (Endpoint::Controller(0), if_any(self.paths, self.channels() - 1)),
                (Endpoint::Hub, u16::from(self.paths && self.hub)),
                nic,
                none,
            ],
            Endpoint::Hub => [compute, slices, controllers, none, none, none],
            Endpoint::RequestSwitch => [slices, compute, host, none, none, none],
            Endpoint::ReplySwitch => [compute, host, none, none, none, none],
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
        let switch = [Endpoint::RequestSwitch, Endpoint::ReplySwitch].map(|role| groups[role.kind()]);
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
    pub fn map(&self) -> Interleave {
        self.roster.map
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
        (requester.0 < self.roster.sms).then_some(requester.0)
    }

    /// The port to a component. O(1).
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
            (Endpoint::Controller(own), Endpoint::Slice(slice)) => {
                slice.wrapping_sub(own * self.roster.slices_per_controller())
            }
            (Endpoint::Slice(own), Endpoint::Controller(channel)) => {
                u16::from(channel != own / self.roster.slices_per_controller())
            }
            (
                _,
                Endpoint::Sm(index)
                | Endpoint::Core(index)
                | Endpoint::Slice(index)
                | Endpoint::Controller(index)
                | Endpoint::Client(index)
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

    /// The port to a requester, of an owner that replies to all of them. O(1).
    #[inline]
    pub fn to_requester(&self, requester: Requester) -> Port {
        let computes = self.roster.sms + self.roster.cores;
        if requester.0 < computes {
            self.to(self.roster.compute(requester.0))
        } else if requester.0 == computes {
            self.to(self.roster.host())
        } else if requester.0 == computes + 1 && self.roster.nic_requests() {
            self.to(Endpoint::Nic)
        } else {
            self.to(Endpoint::Poster)
        }
    }

    /// A slice's port to its controller.
    #[inline]
    pub fn to_memory(&self) -> Port {
        Port(self.groups[Endpoint::Controller(0).kind()].first)
    }

    /// A controller's port to the slice at a place among its own.
    #[inline]
    pub fn to_own_slice(&self, place: u8) -> Port {
        Port(u16::from(place))
    }

    /// The port to the switch that the owner's packets go through, where the crossbar has switches.
    #[inline]
    pub fn to_switch(&self) -> Option<Port> {
        self.switch
    }

    /// The port to a handler of the scheme, and whom it leads to.
    ///
    /// # Panics
    /// When the owner's handler may not write to it.
    pub fn to_peer(&self, peer: Peer) -> Port {
        let slice = |address| self.roster.map.slice_of(address) as u16;
        let role = match peer {
            Peer::Sm(index) => self.roster.compute(index),
            Peer::Slice(index) => Endpoint::Slice(index),
            Peer::SliceOf(address) => Endpoint::Slice(slice(address)),
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
            (Endpoint::Slice(_), Endpoint::Controller(_)) => false,
            (Endpoint::CommandProcessor | Endpoint::Os, role) => role == Endpoint::Hub,
            _ => true,
        };
        match self.find(role) {
            Some(port) if may_write => port,
            _ => no_link(self.owner, &peer),
        }
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
        assert_eq!(ports.to_switch(), Some(Port(8)));
        let ports = roster(false, false, false).ports(Endpoint::Sm(1));
        assert_eq!((ports.to(Endpoint::CommandProcessor), ports.to_switch()), (Port(4), None));
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
        let home = roster.ports(Endpoint::Slice(3));
        let to = [Endpoint::Core(2), Endpoint::Os, Endpoint::Controller(1)].map(|role| home.to(role).0);
        assert_eq!((to, home.find(Endpoint::Sm(0))), ([2, 3, 4], None));
        assert_eq!([Requester::core(1), Requester::os(3)].map(|who| home.to_requester(who).0), [1, 3]);
        // With another server there is a poster, behind the OS.
        let linked = Roster { peers: 2, paths: true, ..roster };
        let of = |owner, to: &[Endpoint]| to.iter().map(|&role| linked.ports(owner).to(role).0).collect::<Vec<_>>();
        assert_eq!(of(Endpoint::Core(0), &[Endpoint::Os, Endpoint::Controller(1), Endpoint::Poster]), [4, 6, 7]);
        assert_eq!(of(Endpoint::Slice(3), &[Endpoint::Os, Endpoint::Controller(1), Endpoint::Poster]), [3, 4, 5]);
        assert_eq!(of(Endpoint::Poster, &[Endpoint::Slice(3), Endpoint::Core(2), Endpoint::Server(1)]), [3, 6, 8]);
        assert_eq!(of(Endpoint::Os, &[Endpoint::Slice(0), Endpoint::Core(2), Endpoint::Nic]), [0, 6, 7]);
        assert_eq!(of(Endpoint::Nic, &[Endpoint::Controller(0), Endpoint::Server(0)]), [0, 2]);
        assert_eq!(linked.ports(Endpoint::Slice(3)).to_requester(Requester(4)).0, 5);
        assert_eq!(linked.ports(Endpoint::Poster).requester(), Requester(4));
        let os = roster.ports(Endpoint::Os);
        assert_eq!((os.requester(), os.to(Endpoint::Core(0)).0), (Requester::os(3), 4));
        let core = roster.ports(Endpoint::Core(0));
        assert_eq!((core.to(Endpoint::Slice(1)).0, core.to(Endpoint::Os).0), (1, 4));
    }

    #[test]
    fn a_nic_reaches_home_slices_where_it_writes_to_them_and_is_a_requester_then() {
        let roster = Roster { clients: 2, paths: true, ..Roster::of_cores(3, Interleave::new(4, 2, 256)) };
        assert_eq!((roster.requester(Endpoint::Nic), roster.requesters()), (None, 4));
        assert_eq!(roster.ports(Endpoint::Nic).find(Endpoint::Slice(0)), None);
        let ddio = Roster { ddio: true, ..roster };
        assert_eq!((ddio.requester(Endpoint::Nic), ddio.requesters()), (Some(Requester::nic(3)), 5));
        let (nic, home) = (ddio.ports(Endpoint::Nic), ddio.ports(Endpoint::Slice(3)));
        assert_eq!(
            [Endpoint::Client(1), Endpoint::Controller(1), Endpoint::Slice(3)].map(|to| nic.to(to).0),
            [1, 3, 7]
        );
        let requesters = [Requester::core(2), Requester::os(3), Requester::nic(3)];
        assert_eq!(requesters.map(|who| home.to_requester(who).0), [2, 3, 5]);
        assert_eq!(home.to_peer(Peer::Nic), home.to(Endpoint::Nic));
    }

    #[test]
    fn requesters_are_the_sms_and_then_the_command_processor() {
        let roster = roster(false, false, false);
        let ports = roster.ports(Endpoint::Slice(0));
        let host = roster.ports(Endpoint::CommandProcessor).requester();
        assert_eq!((host, roster.requesters()), (Requester::command_processor(3), 4));
        assert_eq!((ports.sm_of(Requester::sm(2)), ports.sm_of(host)), (Some(2), None));
        assert_eq!((ports.to_requester(Requester::sm(2)), ports.to_requester(host)), (Port(2), Port(3)));
        assert_eq!((ports.to_memory(), ports.to(Endpoint::Controller(0))), (Port(4), Port(4)));
        assert_eq!(ports.find(Endpoint::Controller(1)), None, "another channel's");
    }

    #[test]
    fn a_peer_is_found_by_number_or_by_an_address() {
        let roster = roster(true, true, false);
        let ports = roster.ports(Endpoint::Sm(0));
        for chunk in 0..16 {
            let address = durawarp_kernel::memory::NVM_BASE + 256 * chunk;
            let slice = roster.map.slice_of(address) as u16;
            assert_eq!(ports.to_peer(Peer::SliceOf(address)), ports.to_peer(Peer::Slice(slice)));
            assert_eq!(ports.to_peer(Peer::ControllerOf(address)), ports.to_peer(Peer::Controller(slice / 2)));
        }
    }

    #[test]
    #[should_panic(expected = "no link leads from l2.0 to Controller(0)")]
    fn a_slices_handler_does_not_write_to_its_controller() {
        roster(true, true, false).ports(Endpoint::Slice(0)).to_peer(Peer::Controller(0));
    }

    #[test]
    #[should_panic(expected = "no link leads from hub to Host")]
    fn nobody_writes_to_the_hosts_handler() {
        roster(true, true, false).ports(Endpoint::Hub).to_peer(Peer::Host);
    }
}
