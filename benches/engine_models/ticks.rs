//! A load shaped like a GPU: cores that wake every cycle, memory slices that answer what some cycles send.
//!
//! ```text
//!   core i ──Port(k)── latency 120 ──> slice k     64-byte requests, in 1 of 10 wakes
//!   slice k ──Port(i)── latency 120 ──> core i     replies, after U[0, 256) ticks in the slice
//! ```

use durawarp::engine::{Component, Ctx, Link, Message, Port, Simulation, Topology};

use super::phold::spin;

/// A core cycle, in ticks.
pub(crate) const CYCLE: u64 = 14;

/// A run of the load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    /// Cores.
    pub(crate) cores: u64,
    /// Slices.
    pub(crate) slices: u64,
    /// From core to slice and back; at least one tick.
    pub(crate) latency: u64,
    /// Dependent multiplications a wake.
    pub(crate) work: u32,
    /// The last wake.
    pub(crate) until: u64,
}

/// What travels: as large as a message of the machine.
#[derive(Debug)]
pub(crate) struct Packet {
    port: u16,
    data: [u64; 7],
}

impl Message for Packet {
    fn digest(&self) -> u64 {
        self.data[0]
    }
}

struct Core {
    id: u16,
    random: u64,
    slices: u64,
    work: u32,
    until: u64,
    sum: u64,
}

struct Slice {
    random: u64,
    sum: u64,
}

fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

impl Component<Packet> for Core {
    fn handle(&mut self, reply: Packet, _: &mut Ctx<'_, Packet>) {
        self.sum = self.sum.wrapping_add(reply.data[0]);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Packet>) {
        let random = next_random(&mut self.random);
        self.sum = spin(self.sum ^ random, self.work);
        if (random & 1023) < 102 {
            let slice = ((random >> 32) * self.slices) >> 32;
            cx.send(Port(slice as u16), Packet { port: self.id, data: [self.sum; 7] }, 0);
        }
        if cx.now() < self.until {
            cx.wake_at(cx.now() + CYCLE);
        }
    }

    fn digest(&self) -> u64 {
        self.sum
    }
}

impl Component<Packet> for Slice {
    fn handle(&mut self, request: Packet, cx: &mut Ctx<'_, Packet>) {
        let random = next_random(&mut self.random);
        self.sum = self.sum.wrapping_add(request.data[0]);
        let mut data = request.data;
        data[0] = self.sum;
        cx.send(Port(request.port), Packet { port: 0, data }, random & 255);
    }

    fn wake(&mut self, _: &mut Ctx<'_, Packet>) {}

    fn digest(&self) -> u64 {
        self.sum
    }
}

impl Ticks {
    /// The simulation of it.
    pub(crate) fn simulation(&self) -> Simulation<Packet> {
        let mut topology = Topology::new();
        let seed = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let cores: Vec<_> = (0..self.cores)
            .map(|i| {
                let (slices, work, until) = (self.slices, self.work, self.until);
                let core = Core { id: i as u16, random: seed(i), slices, work, until, sum: i };
                topology.add(format!("core{i}"), Box::new(core))
            })
            .collect();
        let slices: Vec<_> = (0..self.slices)
            .map(|i| topology.add(format!("slice{i}"), Box::new(Slice { random: seed(1000 + i), sum: i })))
            .collect();
        let link = Link { latency: self.latency, phase: 0 };
        for (i, &core) in cores.iter().enumerate() {
            for (k, &slice) in slices.iter().enumerate() {
                topology.connect(core, Port(k as u16), slice, link);
                topology.connect(slice, Port(i as u16), core, link);
            }
            topology.wake_at(core, (i as u64 % 4) * CYCLE);
        }
        Simulation::new(topology).expect("a sound topology")
    }
}
