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
//! Not modelled: links between servers, clients of several servers.

use crate::engine::MAX_COMPONENTS;
use crate::spec;

/// Channels of a server's NIC: the most clients of one.
pub const MAX_CHANNELS: u32 = 64;

spec! {
    /// Servers and clients.
    pub struct NodesSpec {
        /// Servers: copies of everything but the clients, each of which runs the program.
        servers: u32 where 0..=1048575,
        /// Clients of all servers together, dealt out in turns; 0 leaves out the network.
        clients: u32 where 0..=65535,
    }
}

impl NodesSpec {
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

    /// Faults of these numbers, where a server has `components` components: the key to blame, and why.
    pub(super) fn faults(&self, components: u32) -> Vec<(&'static str, String)> {
        let NodesSpec { servers, clients } = *self;
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
        let nodes = NodesSpec { servers: 3, clients: 8 };
        assert_eq!([0, 1, 2].map(|server| nodes.clients_of(server)), [3, 3, 2]);
        let of =
            |server| (0..nodes.clients_of(server)).map(|channel| nodes.client(server, channel)).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(of), [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
        assert_eq!((nodes.prefix(2), NodesSpec { servers: 1, clients: 8 }.prefix(0)), ("s2.".into(), String::new()));
    }

    #[test]
    fn a_server_has_64_channels_and_all_components_are_numbered() {
        let keys = |servers, clients, components| -> Vec<&str> {
            NodesSpec { servers, clients }.faults(components).into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!((keys(2, 128, 11), keys(2, 129, 11)), (vec![], vec!["nodes.clients"]));
        // 95,325 * 11 = 1,048,575.
        assert_eq!((keys(95_325, 0, 11), keys(95_325, 1, 11)), (vec![], vec!["nodes.servers"]));
        assert_eq!((keys(0, 0, 11), keys(0, 4, 11)), (vec!["nodes.servers"], vec!["nodes.servers"]));
    }
}
