//! Ids of requesters: components that send requests to slices.
//!
//! Dense from 0 over all requesters: SMs, then the command processor; in a machine of cores these, then the
//! OS, then a NIC that writes to the shared cache, then the poster. Which component has which is known to
//! [`super::ports`] alone.

use durawarp_checkpoint::value;

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

    /// The id of the poster of a machine with `cores` cores, beside a NIC that is a requester or alone.
    pub fn poster(cores: u16, beside_nic: bool) -> Requester {
        Requester(cores + 1 + u16::from(beside_nic))
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
