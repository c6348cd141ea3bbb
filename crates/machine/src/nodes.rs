//! The nodes of a machine of cores: servers, clients, and who is whose client.
//!
//! ```text
//!  servers = 2, clients = 5:   client 0 ── channel 0 ┐          client 1 ── channel 0 ┐
//!                              client 2 ── channel 1 ┼ s0       client 3 ── channel 1 ┴ s1
//!                              client 4 ── channel 2 ┘
//! ```
//! Client i is one of server i mod `servers`, by its channel i / `servers`. Every server is a full copy of
//! the machine and runs the program in memory of its own. A component knows nothing of other nodes: this is
//! the one place that numbers clients over all of them.
//!
//! Where harts post verbs to other servers (`peer_log_kb`), peer d of a server is the one d further on, and
//! round. Behind the channels of its clients a NIC has those of other servers' harts, by their distance and
//! number, each with a log. All servers have them at the same place: those that have one client more than
//! others say where.
//!
//! Not modelled: clients of several servers, links between servers of different latencies.

use durawarp_base::spec;
use durawarp_engine::MAX_COMPONENTS;

/// Channels of a server's NIC: the most clients of one.
pub const MAX_CHANNELS: u32 = 64;

spec! {
    /// Servers and clients.
    pub struct NodesSpec {
        /// Servers: copies of everything but the clients, each of which runs the program.
        servers: u32 where 0..=1048575,
        /// Clients of all servers together, dealt out in turns; 0 leaves out their network.
        clients: u32 where 0..=65535,
        /// Persistent memory that each hart of each other server has at a server for its verbs, in KiB; 0
        /// leaves out the network between servers.
        peer_log_kb: u32 where 0..=1048576,
    }
}

/// Channels of other servers' harts at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerChannels {
    /// The first of them, behind those of clients.
    pub first: u16,
    /// Harts of a server.
    pub harts: u16,
}

impl PeerChannels {
    /// That of a hart at its peer, by its distance from 1.
    pub fn channel(self, hart: u32, peer: u32) -> u16 {
        self.first + (peer as u16 - 1) * self.harts + hart as u16
    }

    /// The hart, and at which distance the server is its peer; none where the channel is a client's.
    pub fn of(self, channel: u16) -> Option<(u32, u32)> {
        let at = u32::from(channel.checked_sub(self.first)?);
        Some((at % u32::from(self.harts), at / u32::from(self.harts) + 1))
    }
}

impl NodesSpec {
    /// Other servers that a server's harts post to.
    pub fn peers(&self) -> u32 {
        if self.peer_log_kb == 0 { 0 } else { self.servers.saturating_sub(1) }
    }

    /// Channels of other servers' harts, where a server has so many.
    pub fn peer_channels(&self, harts: u32) -> PeerChannels {
        PeerChannels { first: self.clients_of(0), harts: harts as u16 }
    }

    /// Channels of a server's NIC, where a server has so many harts.
    pub fn channels_of(&self, server: u32, harts: u32) -> u16 {
        match self.peers() {
            0 => self.clients_of(server),
            peers => self.peer_channels(harts).channel(harts - 1, peers) + 1,
        }
    }

    /// Clients of a server.
    pub fn clients_of(&self, server: u32) -> u16 {
        let (each, more) = (self.clients / self.servers, self.clients % self.servers);
        (each + u32::from(server < more)) as u16
    }

    /// The number of a server's client by its channel.
    pub fn client(&self, server: u32, channel: u16) -> u16 {
        (u32::from(channel) * self.servers + server) as u16
    }

    /// What begins the names of a server's components: nothing where there is one.
    pub fn prefix(&self, server: u32) -> String {
        if self.servers == 1 { String::new() } else { format!("s{server}.") }
    }

    /// Faults of these numbers, where a server has `components` components and `harts` harts: the key to
    /// blame, and why.
    pub(super) fn faults(&self, components: u32, harts: u32) -> Vec<(&'static str, String)> {
        let NodesSpec { servers, clients, peer_log_kb } = *self;
        let mut faults = Vec::new();
        let all = u64::from(servers) * u64::from(components) + u64::from(clients);
        if servers == 0 {
            let what =
                if clients > 0 { format!("{clients} clients have none") } else { "nothing runs the program".into() };
            faults.push(("nodes.servers", format!("no server: {what}")));
        } else if clients.div_ceil(servers) > MAX_CHANNELS {
            let each = clients.div_ceil(servers);
            faults.push((
                "nodes.clients",
                format!(
                    "{clients} clients of {servers} servers are {each} of one, whose NIC has {MAX_CHANNELS} channels"
                ),
            ));
        }
        // Harts of other servers need channels as clients do.
        let of_peers = u64::from(self.peers()) * u64::from(harts);
        if servers == 1 && peer_log_kb > 0 {
            faults.push(("nodes.peer_log_kb", "one server has no other to post verbs to (nodes.servers)".into()));
        } else if servers > 0 && of_peers > 0 && u64::from(clients.div_ceil(servers)) + of_peers > MAX_CHANNELS.into() {
            faults.push((
                "nodes.peer_log_kb",
                format!(
                    "{of_peers} harts of {} other servers and {} clients are more than the {MAX_CHANNELS} channels of a NIC",
                    self.peers(),
                    clients.div_ceil(servers)
                ),
            ));
        }
        if all > MAX_COMPONENTS as u64 {
            faults.push((
                "nodes.servers",
                format!("{servers} servers of {components} components and {clients} clients are {all} components, where at most {MAX_COMPONENTS} are possible"),
            ));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_dealt_out_in_turns_and_each_has_a_channel_of_its_own() {
        let nodes = NodesSpec { servers: 3, clients: 8, peer_log_kb: 0 };
        assert_eq!([0, 1, 2].map(|server| nodes.clients_of(server)), [3, 3, 2]);
        let of =
            |server| (0..nodes.clients_of(server)).map(|channel| nodes.client(server, channel)).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(of), [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
        assert_eq!((nodes.prefix(2), NodesSpec { servers: 1, ..nodes }.prefix(0)), ("s2.".into(), String::new()));
    }

    #[test]
    fn a_server_has_64_channels_and_all_components_are_numbered() {
        let keys = |servers, clients, components| -> Vec<&str> {
            NodesSpec { servers, clients, peer_log_kb: 0 }
                .faults(components, 8)
                .into_iter()
                .map(|(key, _)| key)
                .collect()
        };
        assert_eq!((keys(2, 128, 11), keys(2, 129, 11)), (vec![], vec!["nodes.clients"]));
        // 95,325 * 11 = 1,048,575.
        assert_eq!((keys(95_325, 0, 11), keys(95_325, 1, 11)), (vec![], vec!["nodes.servers"]));
        assert_eq!((keys(0, 0, 11), keys(0, 4, 11)), (vec!["nodes.servers"], vec!["nodes.servers"]));
    }

    #[test]
    fn harts_of_other_servers_have_channels_behind_the_clients() {
        // 2 clients of the first server, 1 of the others: channel 1 is nobody's there.
        let nodes = NodesSpec { servers: 3, clients: 4, peer_log_kb: 4 };
        let channels = nodes.peer_channels(8);
        assert_eq!((nodes.peers(), channels.first, nodes.channels_of(2, 8)), (2, 2, 18));
        assert_eq!((channels.channel(0, 1), channels.channel(7, 2)), (2, 17));
        assert_eq!(
            [1, 2, 9, 10, 17].map(|at| channels.of(at)),
            [None, Some((0, 1)), Some((7, 1)), Some((0, 2)), Some((7, 2))]
        );
        let keys = |servers, clients, harts| -> Vec<&str> {
            let nodes = NodesSpec { servers, clients, peer_log_kb: 4 };
            nodes.faults(12, harts).into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(
            (keys(9, 0, 8), keys(9, 1, 8), keys(10, 0, 8)),
            (vec![], vec!["nodes.peer_log_kb"], vec!["nodes.peer_log_kb"])
        );
        assert_eq!(keys(1, 0, 8), vec!["nodes.peer_log_kb"]);
    }
}
