//! A crossbar switch with queues at its inputs: one of requests, one of replies, between requesters and L2
//! slices.
//!
//! ```text
//!   injection port ──> [FIFO of input 0] ─┐            ┌─> output 0 ──> ejection port
//!   injection port ──> [FIFO of input 1] ─┼── iSLIP ───┼─> output 1 ──> ejection port
//!        ▲                                ┘            └─> ...
//!        └── a credit for each packet that has left its FIFO (requesters only)
//! ```
//! At an edge of the crossbar's clock the head of each FIFO asks for its output. An output that is free
//! grants the input at or after its pointer, and moves the pointer beyond that. The packet then holds input
//! and output for its flits over the internal speed-up. A head that gets nothing blocks its FIFO:
//! with one-flit packets to random outputs, 1 - (2 - sqrt 2) = 41 % of the throughput of many ports is lost
//! to that.
//!
//! Source: McKeown, "The iSLIP Scheduling Algorithm for Input-Queued Switches" (1999), with one queue an
//! input, so that one iteration matches all that can be; Karol, Hluchyj, Morgan, "Input Versus Output
//! Queueing" (1987) for the loss; BookSim's single-stage fly as GPGPU-Sim's SM6_TITANX has it. Invariants: an
//! output takes one packet at a time, packets of one input to one output keep their order, a head waits for
//! as many others at most as there are inputs. Not modelled: several virtual channels, iterations beyond the
//! first, a bound on the FIFOs of replies (requesters take every reply).

use std::collections::VecDeque;

use durawarp_base::counters;
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::{Clock, Component, Ctx, StateDigest, Time, Wait};

use super::crossbar::{CrossbarSpec, PortEnd};
use super::msg::{Credit, Msg, Receiver, SliceMsg, SwitchMsg, deliver};
use super::network::reply_bytes;
use super::ports::{Endpoint, Ports};

counters! {
    /// What one switch counted.
    pub struct SwitchCounters {
        /// Packets that went through (packets)
        packets,
        /// Flits of these packets (flits)
        flits,
        /// Time that packets at the heads of their queues waited for their outputs (ticks)
        head_wait_ticks,
    }
}

/// Matches the heads of input queues with outputs.
#[derive(Debug, Clone)]
struct Matching {
    inputs: usize,
    /// By output: the input that it looks at first.
    pointers: Vec<usize>,
    /// By output: the input granted so far.
    granted: Vec<Option<usize>>,
    touched: Vec<usize>,
}

state!(Matching { sized: pointers, granted; saved: touched; kept: inputs });

impl Matching {
    fn new(inputs: usize, outputs: usize) -> Self {
        Matching { inputs, pointers: vec![0; outputs], granted: vec![None; outputs], touched: Vec::new() }
    }

    /// An input's head asks for an output that is free.
    fn ask(&mut self, input: usize, output: usize) {
        let behind = |input: usize| (input + self.inputs - self.pointers[output]) % self.inputs;
        match self.granted[output] {
            None => self.touched.push(output),
            Some(other) if behind(other) < behind(input) => return,
            Some(_) => {}
        }
        self.granted[output] = Some(input);
    }

    /// The next pair of input and output; each once.
    fn grant(&mut self) -> Option<(usize, usize)> {
        let output = self.touched.pop()?;
        let input = self.granted[output].take()?;
        self.pointers[output] = (input + 1) % self.inputs;
        Some((input, output))
    }
}

#[derive(Debug)]
struct Packet {
    arrived: Time,
    output: usize,
    flits: u64,
    message: SwitchMsg,
}

value!(record Packet { arrived, output, flits, message });

/// One switch: of requests, from requesters to slices by address, or of replies, from slices to requesters.
#[derive(Debug)]
pub struct Switch {
    ports: Ports,
    clock: Clock,
    speedup: u64,
    end: PortEnd,
    queues: Vec<VecDeque<Packet>>,
    input_free_at: Vec<Time>,
    output_free_at: Vec<Time>,
    matching: Matching,
    counters: SwitchCounters,
}

state!(Switch {
    sized: queues, input_free_at, output_free_at; parts: matching, end; saved: counters; kept: ports, clock, speedup
});

impl Switch {
    /// An empty switch, of requests or of replies as its ports say. `end` is any port of the crossbar.
    pub fn new(spec: &CrossbarSpec, clock: Clock, end: PortEnd, ports: Ports) -> Self {
        let slices = ports.map().slices() as usize;
        let requesters = usize::from(ports.roster().requesters());
        let (inputs, outputs) = match ports.owner() {
            Endpoint::RequestSwitch => (requesters, slices),
            Endpoint::ReplySwitch => (slices, requesters),
            owner => panic!("{owner} is no switch"),
        };
        Switch {
            ports,
            clock,
            speedup: u64::from(spec.switch_speedup),
            end,
            queues: (0..inputs).map(|_| VecDeque::new()).collect(),
            input_free_at: vec![0; inputs],
            output_free_at: vec![0; outputs],
            matching: Matching::new(inputs, outputs),
            counters: SwitchCounters::default(),
        }
    }

    /// What it counted.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Decides at an edge: heads whose input and output are free request their outputs; those that are
    /// granted leave.
    fn decide(&mut self, cx: &mut Ctx<'_, Msg>) {
        let now = cx.now();
        // A packet still on its way holds both of its ends: a head there does not compete.
        for (input, queue) in self.queues.iter().enumerate() {
            if let Some(head) = queue.front()
                && self.input_free_at[input] <= now
                && self.output_free_at[head.output] <= now
            {
                self.matching.ask(input, head.output);
            }
        }
        while let Some((input, output)) = self.matching.grant() {
            let Some(packet) = self.queues[input].pop_front() else { unreachable!("its head has asked") };
            let first = self.clock.edge_at_or_after(packet.arrived.max(self.input_free_at[input]));
            self.counters.head_wait_ticks += now - first;
            let free_at = now + self.clock.cycles(packet.flits.div_ceil(self.speedup));
            self.input_free_at[input] = free_at;
            self.output_free_at[output] = free_at;
            self.counters.packets += 1;
            self.counters.flits += packet.flits;
            match packet.message {
                SwitchMsg::Request(request) => {
                    let requester = self.ports.to_requester(request.from);
                    self.ports.to_slice(output as u16).send(SliceMsg::Request(request), 0, cx);
                    // The place in its FIFO is free again; replies have no credits here.
                    requester.send(Credit { slice: self.ports.map().slices() as u16, packets: 1 }, 0, cx);
                }
                SwitchMsg::Switched { to, reply, .. } => self.ports.to_requester(to).send(reply, 0, cx),
            }
        }
        let may_ask = |(input, queue): (usize, &VecDeque<Packet>)| {
            queue.front().map(|head| self.input_free_at[input].max(self.output_free_at[head.output]))
        };
        if let Some(next) = self.queues.iter().enumerate().filter_map(may_ask).min() {
            cx.wake_at(self.clock.edge_at_or_after(next.max(now + 1)));
        }
    }
}

impl Receiver for Switch {
    type Inbox = SwitchMsg;

    fn receive(&mut self, message: SwitchMsg, cx: &mut Ctx<'_, Msg>) {
        let (input, output, bytes) = match &message {
            SwitchMsg::Request(request) => {
                (request.from.index(), self.ports.map().slice_of(request.line) as usize, request.payload_bytes())
            }
            SwitchMsg::Switched { from, to, reply } => (usize::from(*from), to.index(), reply_bytes(reply)),
        };
        let packet = Packet { arrived: cx.now(), output, flits: self.end.flits_of(bytes), message };
        self.queues[input].push_back(packet);
        if self.queues[input].len() == 1 {
            let free = self.input_free_at[input].max(self.output_free_at[output]);
            cx.wake_at(self.clock.edge_at_or_after(free.max(cx.now())));
        }
    }
}

impl Component<Msg> for Switch {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.decide(cx);
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        for (input, queue) in self.queues.iter().enumerate() {
            if let Some(head) = queue.front() {
                let what = format!("output {}", head.output);
                out.push(Wait { who: format!("input {input}, {} packets", queue.len()), what, on: None, since: 0 });
            }
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        self.queues.iter().for_each(|queue| digest.word(queue.len() as u64));
        self.matching.pointers.iter().for_each(|&pointer| digest.word(pointer as u64));
        digest.value()
    }
}

#[cfg(test)]
mod tests;
