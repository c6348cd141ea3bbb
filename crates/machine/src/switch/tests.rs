//! A switch by itself: who is granted, in whose turn, how long a packet takes, what queues at the inputs
//! cost.

use super::super::address::Interleave;
use super::super::crossbar::SwitchKind;
use super::super::msg::{CommandProcessorMsg, Line, Payload, Request, RequestKind, SmMsg};
use super::super::ports::{Requester, Roster};
use super::*;
use durawarp_engine::{Link, RunEnd, RunOptions, Simulation, Topology};
use durawarp_kernel::memory::DRAM_BASE;

/// Shares of the time that outputs are busy, when every input always has packets of one flit for outputs that
/// `next` draws.
fn throughput(ports: usize, mut next: impl FnMut(usize) -> usize) -> f64 {
    let mut matching = Matching::new(ports, ports);
    let mut heads: Vec<usize> = (0..ports).map(&mut next).collect();
    let (rounds, mut moved) = (20_000, 0);
    for _ in 0..rounds {
        (0..ports).for_each(|input| matching.ask(input, heads[input]));
        while let Some((input, _)) = matching.grant() {
            heads[input] = next(input);
            moved += 1;
        }
    }
    f64::from(moved) / (rounds as f64 * ports as f64)
}

/// Numbers below `below` that look random.
fn draws(below: usize) -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    }
}

#[test]
fn random_outputs_lose_to_head_of_line_blocking_what_karol_et_al_computed() {
    // Their Table I: 0.7500, 0.6553, 0.6184, and 2 - sqrt 2 = 0.5858 for many ports.
    for (ports, expected) in [(2, 0.7500), (4, 0.6553), (8, 0.6184), (64, 0.5858)] {
        let found = throughput(ports, draws(ports));
        assert!((found - expected).abs() < 0.01, "{ports} ports: {found:.4}, expected {expected}");
    }
}

#[test]
fn inputs_with_outputs_of_their_own_lose_nothing() {
    assert_eq!(throughput(16, |input| (input + 5) % 16), 1.0);
}

#[test]
fn inputs_that_want_one_output_have_it_in_turns() {
    let mut matching = Matching::new(4, 2);
    let mut turn = |inputs: &[usize]| {
        inputs.iter().for_each(|&input| matching.ask(input, 1));
        matching.grant()
    };
    let granted: Vec<_> = (0..6).filter_map(|_| turn(&[0, 1, 3])).map(|(input, _)| input).collect();
    assert_eq!(granted, [0, 1, 3, 0, 1, 3]);
    assert_eq!(turn(&[2, 3]), Some((2, 1)), "none is asked before its turn, from 0 on");
    assert_eq!(turn(&[]), None);
}

/// Notes when requests and credits come.
#[derive(Debug, Default)]
struct Sink {
    lines: Vec<(Time, u64)>,
    credits: Vec<Time>,
}

impl Component<Msg> for Sink {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        match message {
            Msg::Slice(SliceMsg::Request(request)) => self.lines.push((cx.now(), request.line)),
            Msg::Sm(SmMsg::Credit(Credit { slice: 2, packets: 1 }))
            | Msg::CommandProcessor(CommandProcessorMsg::Credit(Credit { slice: 2, packets: 1 })) => {
                self.credits.push(cx.now());
            }
            other => panic!("{other:?}"),
        }
    }

    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

/// When requests for slices came, and for which.
type Arrivals = Vec<(Time, u64)>;

/// Times at which requests that come to a switch at such times, from the SM (0) or the command processor (1),
/// of so many bytes, for these of two slices, reach them; and when each input gets credits. A cycle is 10
/// ticks, links take one.
fn switched(requests: &[(Time, usize, u32, u64)], speedup: u32) -> ([Arrivals; 2], [Vec<Time>; 2], SwitchCounters) {
    let spec = CrossbarSpec {
        flit_bytes: 32,
        latency_cycles: 2,
        buffer_packets: 8,
        injection_flits: 8,
        switch: SwitchKind::InputQueued,
        switch_packets: 8,
        switch_speedup: speedup,
        gpcs: 0,
        gpc_bytes: 0,
        partitions: 1,
        far_cycles: 0,
    };
    let (clock, map) = (Clock::of_period(10), Interleave::new(2, 1, 256));
    let end = PortEnd::new(clock, 32);
    let roster = Roster { switched: true, ..Roster::new(1, map) };
    let ports = roster.ports(Endpoint::RequestSwitch);
    let requesters = [Requester::sm(0), Requester::command_processor(1)];
    let mut t = Topology::new();
    let switch = t.add("switch", Box::new(Switch::new(&spec, clock, end, ports)));
    let sinks: Vec<_> = (0..4).map(|_| t.add("sink", Box::new(Sink::default()))).collect();
    let sides = [Endpoint::Slice(0), Endpoint::Slice(1), Endpoint::Sm(0), Endpoint::CommandProcessor];
    for (side, &sink) in sides.into_iter().zip(&sinks) {
        t.connect(switch, ports.to(side), sink, Link { latency: 1, phase: 0 });
    }
    for &(time, from, bytes, slice) in requests {
        let line = DRAM_BASE + 256 * slice;
        let room = Box::new(Line { mask: u128::MAX >> (128 - bytes), ..Line::default() });
        let payload = Payload::Line(room);
        let request = Request { line, tag: 0, from: requesters[from], kind: RequestKind::Write, sectors: 0, payload };
        t.post(switch, time, SwitchMsg::Request(request).into());
    }
    let mut simulation = Simulation::new(t).unwrap();
    assert!(matches!(simulation.run(&RunOptions::default()), RunEnd::Finished { .. }));
    let sink = |at: usize| (simulation.component(sinks[at]) as &dyn std::any::Any).downcast_ref::<Sink>().unwrap();
    let lines = [0, 1].map(|at| sink(at).lines.iter().map(|&(time, line)| (time, (line - DRAM_BASE) / 256)).collect());
    let counters = (simulation.component(switch) as &dyn std::any::Any).downcast_ref::<Switch>().unwrap().counters;
    (lines, [2, 3].map(|at| sink(at).credits.clone()), counters)
}

#[test]
fn a_packet_alone_goes_at_the_next_edge_and_its_room_comes_back() {
    let (slices, credits, counters) = switched(&[(95, 0, 24, 1)], 1);
    assert_eq!((slices, credits), ([vec![], vec![(101, 1)]], [vec![101], vec![]]));
    assert_eq!(counters, SwitchCounters { packets: 1, flits: 1, head_wait_ticks: 0 });
}

#[test]
fn an_output_takes_the_next_packet_when_it_has_the_flits_of_the_one_before() {
    // A header of 8 B and 120 B are 4 flits: 40 ticks, or 20 at twice the speed.
    let times = |speedup: u32| {
        let (slices, _, counters) = switched(&[(0, 0, 120, 0), (0, 1, 120, 0)], speedup);
        (slices[0].iter().map(|(time, _)| *time).collect::<Vec<_>>(), counters.head_wait_ticks)
    };
    assert_eq!((times(1), times(2), times(3)), ((vec![1, 41], 40), (vec![1, 21], 20), (vec![1, 21], 20)));
}

#[test]
fn a_head_that_waits_keeps_those_behind_it_from_an_output_that_is_free() {
    let requests = [(0, 0, 120, 0), (5, 1, 24, 0), (6, 1, 24, 1)];
    let (slices, _, _) = switched(&requests, 1);
    assert_eq!(slices, [vec![(1, 0), (41, 0)], vec![(51, 1)]], "head of line: output 1 is free all the time");
    let alone = switched(&requests[2..], 1).0;
    assert_eq!(alone[1], [(11, 1)]);
}
