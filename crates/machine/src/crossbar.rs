//! The crossbar as its two ends: an injection port at the sender, an ejection port at the receiver.
//!
//! ```text
//!   sender ──[injection: 1 flit a cycle]── link of constant latency ──[ejection: 1 flit a cycle]── receiver
//!      ▲                                                                                              │
//!      └──────────────────────── credits: room in the receiver's input buffer ◄───────────────────────┘
//! ```
//! Cut-through: an uncontended packet pays its serialisation once. A message's arrival is the arrival of its
//! tail; the ejection port then delays it by what earlier packets still occupy.
//!
//! Source: AGPM Table IV (32 B flits, 1.4 GHz); the buffers of `SM6_TITANX`. With `switch = "ports"`
//! contention is at the ports only, as in a full crossbar with enough internal speed-up; with
//! `"input_queued"` packets also go through a [`switch`](super::switch). Where SMs of a GPC share a port,
//! replies go through [that](super::gpc_port). Slices of another [partition](super::partitions) are further.

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_checkpoint::state;
use durawarp_engine::{Clock, Time};

use super::msg::HEADER_BYTES;

choice! {
    /// What is between the ports.
    pub enum SwitchKind {
        /// Nothing that anybody waits for.
        Ports = "ports",
        /// A switch with a FIFO at each input, matched by iSLIP.
        InputQueued = "input_queued",
    }
}

spec! {
    /// Parameters of the crossbar between requesters (SMs, command processor) and L2 slices.
    pub struct CrossbarSpec {
        /// Bytes that one port moves in one crossbar cycle.
        flit_bytes: u32 where 8..=256,
        /// Crossbar cycles from one side to the other, serialisation apart.
        latency_cycles: u32 where 1..=1000,
        /// Packets of one requester that one slice's input buffer holds: the requester's credits for that
        /// slice.
        buffer_packets: u32 where 1..=1024,
        /// Flits that may wait in an injection port before its sender is held back.
        injection_flits: u32 where 1..=4096,
        /// What is between the ports: nothing that anybody waits for, or switches of requests and of replies
        /// with a FIFO at each input.
        switch: SwitchKind,
        /// Packets of a requester that its FIFO at the switch holds.
        switch_packets: u32 where 1..=1024,
        /// Flits that the switch moves from an input to an output in one crossbar cycle.
        switch_speedup: u32 where 1..=16,
        /// GPCs whose SMs share a port on the way of replies; 0: SMs share none.
        gpcs: u32 where 0..=64,
        /// Bytes of replies, headers included, that the port of a GPC moves in one crossbar cycle.
        gpc_bytes: u32 where 0..=8192,
        /// Partitions of the chip: each has as many slices, and SMs of its own.
        partitions: u32 where 1..=8,
        /// Crossbar cycles that the way to a slice of another partition takes more, and the way back.
        far_cycles: u32 where 0..=1000,
    }
}

/// One end of the crossbar: a port that moves one flit a cycle.
#[derive(Debug, Clone)]
pub struct PortEnd {
    clock: Clock,
    flit_bytes: u32,
    /// Its logarithm, when it is a power of two.
    flit_shift: Option<u32>,
    free_at: Time,
    flits: u64,
}

state!(PortEnd { saved: free_at, flits; kept: clock, flit_bytes, flit_shift });

impl PortEnd {
    /// A port with nothing in it.
    pub fn new(clock: Clock, flit_bytes: u32) -> Self {
        let flit_shift = flit_bytes.is_power_of_two().then(|| flit_bytes.trailing_zeros());
        PortEnd { clock, flit_bytes, flit_shift, free_at: 0, flits: 0 }
    }

    /// Crossbar cycles that a packet with `payload_bytes` behind its header takes.
    pub fn flits_of(&self, payload_bytes: u32) -> u64 {
        let bytes = HEADER_BYTES + payload_bytes;
        u64::from(match self.flit_shift {
            Some(shift) => (bytes + self.flit_bytes - 1) >> shift,
            None => bytes.div_ceil(self.flit_bytes),
        })
    }

    /// Injects a packet that is ready at `now`: returns when its tail has left, from which the link's latency
    /// counts.
    pub fn inject(&mut self, now: Time, payload_bytes: u32) -> Time {
        let flits = self.flits_of(payload_bytes);
        let start = self.clock.edge_at_or_after(now.max(self.free_at));
        self.free_at = start + self.clock.cycles(flits);
        self.flits += flits;
        self.free_at
    }

    /// The first time at which no more than `flits` flits are left in the port.
    pub fn backlog_at_most(&self, flits: u32) -> Time {
        self.free_at.saturating_sub(self.clock.cycles(u64::from(flits)))
    }

    /// Ejects a packet whose tail arrives at `tail`: returns when all of it is out, `tail` itself when the
    /// port was free for it.
    pub fn eject(&mut self, tail: Time, payload_bytes: u32) -> Time {
        let flits = self.flits_of(payload_bytes);
        let length = self.clock.cycles(flits);
        self.free_at = tail.max(self.free_at + length);
        self.flits += flits;
        self.free_at
    }

    /// Flits moved so far.
    pub fn flits(&self) -> u64 {
        self.flits
    }
}

/// A requester's credits: one counter a slice, and one of the switch behind these.
#[derive(Debug, Clone)]
pub struct Credits {
    left: Vec<u16>,
}

state!(Credits { sized: left });

impl Credits {
    /// Credits for each of `slices` slices, and for the switch, where there is one.
    pub fn new(slices: u32, spec: &CrossbarSpec) -> Self {
        let mut left = vec![spec.buffer_packets as u16; slices as usize];
        left.push(if spec.switch == SwitchKind::InputQueued { spec.switch_packets as u16 } else { u16::MAX });
        Credits { left }
    }

    /// A packet to this slice may be sent.
    pub fn has(&self, slice: u32) -> bool {
        self.left[slice as usize] > 0
    }

    /// One packet was sent.
    ///
    /// # Panics
    /// When there was no credit.
    pub fn take(&mut self, slice: u32) {
        let left = &mut self.left[slice as usize];
        assert!(*left > 0, "a packet to slice {slice} without credit");
        *left -= 1;
    }

    /// Credits came back.
    pub fn give(&mut self, slice: u16, packets: u16) {
        self.left[usize::from(slice)] += packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> PortEnd {
        PortEnd::new(Clock::of_period(18), 32)
    }

    #[test]
    fn a_header_is_one_flit_and_a_full_line_five() {
        assert_eq!(port().flits_of(0), 1);
        assert_eq!(port().flits_of(24), 1);
        assert_eq!(port().flits_of(25), 2);
        assert_eq!(port().flits_of(128), 5);
    }

    #[test]
    fn a_packet_starts_on_the_next_edge_and_the_one_behind_it_follows_its_tail() {
        let mut p = port();
        assert_eq!(p.inject(1, 128), 18 + 5 * 18);
        assert_eq!(p.inject(20, 0), 18 + 6 * 18);
        assert_eq!(p.backlog_at_most(2), 18 + 4 * 18);
    }

    #[test]
    fn an_uncontended_tail_is_not_delayed_and_a_contended_one_pays_its_length() {
        let mut p = port();
        assert_eq!(p.eject(900, 128), 900, "on time");
        assert_eq!(p.eject(900 + 5 * 18, 128), 900 + 5 * 18, "just behind: on time");
        assert_eq!(p.eject(900 + 5 * 18 + 18, 128), 900 + 10 * 18, "four flits early: delayed");
    }

    #[test]
    fn no_port_moves_more_than_a_flit_a_cycle() {
        let mut p = port();
        let mut last = 0;
        for i in 0..1000u64 {
            last = p.eject(i * 7, 32);
        }
        assert!(last >= p.flits() * 18 - 18 * 2);
    }
}
