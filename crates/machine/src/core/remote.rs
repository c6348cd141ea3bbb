//! What a core knows of the verbs that its harts posted to other servers.

use crate::ports::{Ports, To};
use crate::verbs::PosterMsg;
use durawarp_checkpoint::state;
use durawarp_riscv::verbs::Peers;

/// What harts of a core know of the verbs that they posted.
#[derive(Debug)]
pub(super) struct Remote {
    /// How many there are; their logs are the poster's.
    pub(super) peers: Peers,
    pub(super) to_poster: Option<To<PosterMsg>>,
    /// Verbs that are acknowledged: by hart of the core, then by peer.
    acknowledged: Vec<u64>,
}

state!(Remote { sized: acknowledged; kept: peers, to_poster });

impl Remote {
    /// Nothing was posted.
    pub(super) fn new(ports: Ports, harts: u32) -> Remote {
        let count = u32::from(ports.roster().peers);
        Remote {
            peers: Peers { count, log_bytes: 0 },
            to_poster: (count > 0).then(|| ports.to_poster()),
            acknowledged: vec![0; (count * harts) as usize],
        }
    }

    fn place(&self, hart: usize, peer: u32) -> usize {
        hart * self.peers.count as usize + peer as usize - 1
    }

    /// How many verbs of a hart of the core to a peer are acknowledged, as it was told last.
    pub(super) fn acknowledged(&self, hart: usize, peer: u32) -> u64 {
        self.acknowledged[self.place(hart, peer)]
    }

    /// So many verbs of a hart of the core to a peer are acknowledged.
    pub(super) fn told(&mut self, hart: usize, peer: u32, acknowledged: u64) {
        let place = self.place(hart, peer);
        self.acknowledged[place] = acknowledged;
    }
}
