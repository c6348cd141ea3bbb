//! The port of a GPC: what its SMs share of the crossbar, on the way of replies.
//!
//! ```text
//!   slices ──> [port of the GPC: `crossbar.gpc_bytes` a cycle] ──> ejection port of the SM
//! ```
//! A reply that finds the port idle passes at once; others follow one another. Time is counted in parts of a
//! tick, as a wide port moves several packets in a cycle.
//!
//! Source: Jin et al., "Uncovering Real GPU NoC Characteristics", MICRO 2024, figure 10 and its published
//! results (GPUNetBench): all SMs of a GPC read from the L2 8.4 (A100) and 9.1 times (H100) as fast as one of
//! them; the two of a TPC read twice as fast. Invariants: replies keep their order; in no time does it move
//! more than its bytes. Not modelled: requests; links of a GPC to single memory partitions; TPCs and CPCs,
//! which bound no reads; a bound on what waits, which is no more than the SMs asked for.

use durawarp_base::counters;
use durawarp_checkpoint::{state, state_methods};
use durawarp_engine::{Clock, Component, Ctx, StateDigest, Time};

use super::msg::{HEADER_BYTES, Msg, Receiver, SwitchMsg, deliver};
use super::network::reply_bytes;
use super::ports::Ports;

counters! {
    /// What the port of one GPC counted.
    pub struct GpcPortCounters {
        /// Replies that went through (packets)
        packets,
        /// Bytes of these, headers included (bytes)
        bytes,
        /// Time that replies waited for those before them (ticks)
        wait_ticks,
    }
}

/// The port of one GPC.
#[derive(Debug)]
pub struct GpcPort {
    ports: Ports,
    /// Bytes that it moves in a cycle.
    width: u64,
    cycle_ticks: u64,
    /// When it is free, in parts of a tick: a tick has `width` of them.
    free_at: u64,
    counters: GpcPortCounters,
}

state!(GpcPort { saved: free_at, counters; kept: ports, width, cycle_ticks });

impl GpcPort {
    /// An idle port. It moves `bytes` in a cycle of `clock`.
    pub fn new(ports: Ports, clock: Clock, bytes: u32) -> Self {
        let counters = GpcPortCounters::default();
        GpcPort { ports, width: u64::from(bytes), cycle_ticks: clock.cycles(1), free_at: 0, counters }
    }

    /// What it counted.
    pub fn counters(&self) -> &GpcPortCounters {
        &self.counters
    }

    /// When the tail of a packet that arrives at `now` is through.
    fn pass(&mut self, now: Time, bytes: u64) -> Time {
        self.free_at = (now * self.width).max(self.free_at + bytes * self.cycle_ticks);
        self.free_at.div_ceil(self.width)
    }
}

impl Receiver for GpcPort {
    type Inbox = SwitchMsg;

    fn receive(&mut self, message: SwitchMsg, cx: &mut Ctx<'_, Msg>) {
        let SwitchMsg::Switched { to, reply, .. } = message else { panic!("a request at {}", self.ports.owner()) };
        let bytes = u64::from(HEADER_BYTES + reply_bytes(&reply));
        let wait = self.pass(cx.now(), bytes) - cx.now();
        self.counters.packets += 1;
        self.counters.bytes += bytes;
        self.counters.wait_ticks += wait;
        self.ports.to_requester(to).send(reply, wait, cx);
    }
}

impl Component<Msg> for GpcPort {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        digest.word(self.free_at);
        digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Interleave;
    use crate::ports::{Endpoint, Roster};

    fn port(bytes: u32) -> GpcPort {
        let roster = Roster { gpc_ports: 2, ..Roster::new(4, Interleave::new(4, 2, 256)) };
        GpcPort::new(roster.ports(Endpoint::GpcPort(1)), Clock::of_period(18), bytes)
    }

    #[test]
    fn a_packet_passes_an_idle_port_at_once_and_the_next_after_the_bytes_of_it() {
        let mut early = port(34);
        assert_eq!(early.pass(900, 136), 900);
        assert_eq!(early.pass(900, 136), 900 + 4 * 18, "four cycles after it");
        let mut on_time = port(34);
        assert_eq!((on_time.pass(900, 136), on_time.pass(900 + 4 * 18, 136)), (900, 900 + 4 * 18));
    }

    #[test]
    fn a_wide_port_moves_several_packets_in_a_cycle_and_never_more_than_its_bytes() {
        let mut wide = port(619);
        let last = (0..619).map(|_| wide.pass(18, 136)).last();
        // 618 packets behind the first, 136 B each: 135.78 cycles, of which no part is lost to rounding.
        assert_eq!(last, Some(18 + (618 * 136 * 18u64).div_ceil(619)));
    }
}
