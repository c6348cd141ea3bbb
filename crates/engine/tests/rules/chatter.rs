//! A random model: any number of components, any links, and components that send, delay and wake as their dice say.
//!
//! What a component does depends on the order in which it handled events, so any change of order changes everything
//! after it.

use durawarp_engine::{
    Component, ComponentId, Ctx, Link, Message, Port, Reference, RunEnd, RunOptions, Simulation, Topology,
};
use proptest::prelude::*;

/// What travels: a number, and how many more messages it may cause in a row.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) value: u64,
    pub(crate) left: u32,
}

impl Message for Word {
    fn digest(&self) -> u64 {
        self.value ^ u64::from(self.left)
    }
}

#[derive(Debug)]
pub(crate) struct Chatter {
    pub(crate) state: u64,
    pub(crate) wakes_left: u32,
    /// (time, value) of every message, when asked for.
    pub(crate) log: Option<Vec<(u64, u64)>>,
}

pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

impl Chatter {
    fn dice(&mut self) -> u64 {
        self.state = mix(self.state, 0x1234_5678);
        self.state
    }

    fn talk(&mut self, left: u32, cx: &mut Ctx<'_, Word>) {
        let dice = self.dice();
        let ports = cx.ports() as u64;
        // On average a little more than one follow-up, until the allowance is used up.
        let many = if left == 0 || ports == 0 { 0 } else { [0, 1, 1, 1, 1, 1, 2, 2][(dice & 7) as usize] };
        for i in 0..many {
            let port = Port(((dice >> 8 >> (8 * i)) % ports) as u16);
            let extra = match dice >> 30 & 7 {
                0..=3 => 0,
                4 | 5 => dice >> 40 & 31,
                6 => dice >> 40 & 1023,
                _ => dice >> 40 & 0xf_ffff,
            };
            cx.send(port, Word { value: self.state.wrapping_add(i), left: left - 1 }, extra);
        }
        if self.wakes_left > 0 && dice >> 35 & 3 != 0 {
            self.wakes_left -= 1;
            let delay = match dice >> 37 & 7 {
                0 => 0,
                1..=5 => dice >> 40 & 15,
                _ => dice >> 40 & 0xffff,
            };
            cx.wake_at(cx.now() + delay);
        }
    }
}

impl Component<Word> for Chatter {
    fn handle(&mut self, word: Word, cx: &mut Ctx<'_, Word>) {
        self.state = mix(self.state, word.value ^ cx.now());
        if let Some(log) = &mut self.log {
            log.push((cx.now(), word.value));
        }
        self.talk(word.left, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Word>) {
        self.state = mix(self.state, !cx.now());
        self.talk(3, cx);
    }

    fn digest(&self) -> u64 {
        self.state
    }
}

/// A topology of chatters, as plain data.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) components: u32,
    /// (from, to, latency, phase), taken modulo the number of components.
    pub(crate) links: Vec<(u32, u32, u64, u8)>,
    pub(crate) wakes: Vec<(u32, u64)>,
    pub(crate) posts: Vec<(u32, u64)>,
    pub(crate) together: Vec<Vec<u32>>,
    /// By component; those past the end are in tier 0.
    pub(crate) tiers: Vec<usize>,
    /// Of each set, those in the tier of its first are fused.
    pub(crate) fused: Vec<Vec<u32>>,
    pub(crate) wakes_left: u32,
    pub(crate) talk: u32,
}

impl Model {
    /// Any model; small enough to run in a millisecond or so.
    pub(crate) fn any() -> impl Strategy<Value = Model> {
        let latency = prop_oneof![1u64..4, 1u64..60, 90u64..120, 1000u64..5000];
        let link = (0u32..16, 0u32..16, latency, 0u8..=14);
        let start = (0u32..16, prop_oneof![0u64..50, 0u64..100_000]);
        (
            1u32..16,
            proptest::collection::vec(link, 1..40),
            proptest::collection::vec(start.clone(), 1..12),
            proptest::collection::vec(start, 0..8),
            proptest::collection::vec(proptest::collection::vec(0u32..16, 0..4), 0..3),
            prop_oneof![Just(vec![]), proptest::collection::vec(0usize..3, 16)],
            proptest::collection::vec(proptest::collection::vec(0u32..16, 0..4), 0..3),
            0u32..60,
            1u32..24,
        )
            .prop_map(|(components, links, wakes, posts, together, tiers, fused, wakes_left, talk)| Model {
                components,
                links,
                wakes,
                posts,
                together,
                tiers,
                fused,
                wakes_left,
                talk,
            })
    }

    pub(crate) fn topology(&self) -> Topology<Word> {
        let n = self.components;
        let id = |i: u32| ComponentId(i % n);
        let mut topology = Topology::new();
        for i in 0..n {
            let chatter = Chatter { state: u64::from(i), wakes_left: self.wakes_left, log: None };
            topology.add(format!("chatter{i}"), Box::new(chatter));
        }
        let mut ports = vec![0u16; n as usize];
        for &(from, to, latency, phase) in &self.links {
            let port = &mut ports[(from % n) as usize];
            topology.connect(id(from), Port(*port), id(to), Link { latency, phase });
            *port += 1;
        }
        for &(i, time) in &self.wakes {
            topology.wake_at(id(i), time);
        }
        for (value, &(to, time)) in self.posts.iter().enumerate() {
            topology.post(id(to), time, Word { value: value as u64, left: self.talk });
        }
        let tier = |i: u32| self.tiers.get((i % n) as usize).copied().unwrap_or(0);
        for i in 0..n {
            topology.put_in_tier(tier(i), &[id(i)]);
        }
        for set in &self.fused {
            let fused = set.iter().filter(|&&i| tier(i) == tier(set[0]));
            topology.fuse(&fused.map(|&i| id(i)).collect::<Vec<_>>());
        }
        for hint in &self.together {
            topology.keep_together(&hint.iter().map(|&i| id(i)).collect::<Vec<_>>());
        }
        topology
    }

    pub(crate) fn simulation(&self) -> Simulation<Word> {
        Simulation::new(self.topology()).expect("a sound topology")
    }

    pub(crate) fn reference(&self) -> Reference<Word> {
        Reference::new(self.topology()).expect("a sound topology")
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, options: &RunOptions<'_>) -> Simulation<Word> {
        let mut simulation = self.simulation();
        let end = simulation.run(options);
        assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
        simulation
    }
}
