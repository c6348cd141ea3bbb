//! What is simulated: components, the links between them, and what starts them.
//!
//! ```text
//!   sm0 --Port(0)-- latency 120, phase 0 -->  l2.0         a link goes one way; a reply needs a link of its own
//!   sm0 --Port(1)-- latency 120, phase 0 -->  l2.1         ports of a component are dense from 0
//!   l2.0 -Port(0)-- latency 1 ---------------> l2.0        a link to itself may be short: it limits no window
//! ```
//! Components may be dealt into *tiers*, each with windows of its own (see `tiers.rs`), and *fused*, which
//! keeps them in one partition whatever the placement, so that a link between them may be shorter than a
//! round.
//!
//! Invariant: a topology that became a simulation has only links of latency >= 1, to components that exist,
//! from ports without gaps or doubles. All faults are reported at once, each naming both components.

use std::fmt;

use super::component::Component;
use super::event::{MAX_COMPONENTS, MAX_PHASE, NEVER};
use super::message::{ComponentId, Message, Port};
use super::placement::Blocks;
use super::tiers::{MAX_TIERS, Tiers};
use super::time::Time;
use super::wires::{Wire, Wires};

/// Longer latencies are refused, so that a time plus a latency does not overflow.
const MAX_LATENCY: Time = 1 << 62;

/// How messages travel from a port to a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Ticks from sending to arrival, at least 1. The least latency between two different components is the
    /// width of a round, so constant delays belong here and not into `extra_delay`.
    pub latency: Time,
    /// 0 to 14: of messages that arrive at the same instant, those of the lower phase are handled first.
    pub phase: u8,
}

/// Components and links, to be run as a [`Simulation`](super::Simulation).
///
/// # Example: faults name both ends
/// ```
/// # use durawarp_engine::*;
/// # struct Echo;
/// # #[derive(Debug)]
/// # struct Ping;
/// # impl Message for Ping {}
/// # impl Component<Ping> for Echo {
/// #     fn handle(&mut self, _: Ping, cx: &mut Ctx<'_, Ping>) { cx.send(Port(0), Ping, 0) }
/// #     fn wake(&mut self, _: &mut Ctx<'_, Ping>) {}
/// # }
/// let mut t = Topology::new();
/// let left = t.add("left", Box::new(Echo));
/// let right = t.add("right", Box::new(Echo));
/// t.connect(left, Port(0), right, Link { latency: 120, phase: 0 });
/// t.connect(right, Port(0), left, Link { latency: 0, phase: 0 });
/// let error = Simulation::new(t).unwrap_err();
/// assert_eq!(error.to_string(), "link from right (port 0) to left: a latency of 0 ticks, where at least 1 is needed");
/// ```
pub struct Topology<M> {
    parts: Vec<Part<M>>,
    connections: Vec<Connection>,
    together: Vec<Vec<ComponentId>>,
    fused: Vec<Vec<ComponentId>>,
    answering: Option<usize>,
    wakes: Vec<(ComponentId, Time)>,
    posts: Vec<(ComponentId, Time, M)>,
}

struct Part<M> {
    name: String,
    component: Box<dyn Component<M>>,
    tier: u8,
}

#[derive(Debug, Clone, Copy)]
struct Connection {
    from: ComponentId,
    port: Port,
    to: ComponentId,
    link: Link,
}

/// A checked topology, taken apart for a driver.
pub(crate) struct Assembly<M> {
    pub(crate) names: Vec<String>,
    pub(crate) components: Vec<Box<dyn Component<M>>>,
    pub(crate) wires: Vec<Wires>,
    /// By component.
    pub(crate) tier_of: Vec<u8>,
    pub(crate) together: Vec<Vec<ComponentId>>,
    pub(crate) fused: Vec<Vec<ComponentId>>,
    pub(crate) tiers: Tiers,
    pub(crate) longest_latency: Time,
    pub(crate) wakes: Vec<(ComponentId, Time)>,
    pub(crate) posts: Vec<(ComponentId, Time, M)>,
}

impl<M: Message> Topology<M> {
    /// No components, no links.
    pub fn new() -> Self {
        Topology {
            parts: Vec::new(),
            connections: Vec::new(),
            together: Vec::new(),
            fused: Vec::new(),
            answering: None,
            wakes: Vec::new(),
            posts: Vec::new(),
        }
    }

    /// Adds a component. Its name is for reports; it need not be unique.
    pub fn add(&mut self, name: impl Into<String>, component: Box<dyn Component<M>>) -> ComponentId {
        self.parts.push(Part { name: name.into(), component, tier: 0 });
        ComponentId(self.parts.len() as u32 - 1)
    }

    /// Joins an output port of `from` to `to`. Several ports may lead to one component, also to `from`
    /// itself.
    pub fn connect(&mut self, from: ComponentId, port: Port, to: ComponentId, link: Link) {
        self.connections.push(Connection { from, port, to, link });
    }

    /// Asks for these components to share a partition, hence a thread: for pairs that talk much.
    pub fn keep_together(&mut self, components: &[ComponentId]) {
        self.together.push(components.to_vec());
    }

    /// Puts components into a tier: 0 (where all are at first), 1 or 2. Worth it when a link from one tier to
    /// another is long and the way back is short: each tier then runs as far as the others let it, instead of
    /// all as far as the shortest link lets anybody. Results do not depend on it.
    ///
    /// # Panics
    /// The tier does not exist, or a component was not added.
    pub fn put_in_tier(&mut self, tier: usize, components: &[ComponentId]) {
        assert!(tier < MAX_TIERS, "tier {tier}, where at most {} is possible", MAX_TIERS - 1);
        for id in components {
            assert!((id.0 as usize) < self.parts.len(), "there is no component {id} to put in a tier");
            self.parts[id.0 as usize].tier = tier as u8;
        }
    }

    /// The components of this tier may promise to answer senders only
    /// ([`Component::answers_sender_only`](super::Component)): while all of them do, other tiers run further.
    /// Results do not depend on it.
    pub fn let_answer(&mut self, tier: usize) {
        self.answering = Some(tier);
    }

    /// Fuses components of one tier: they are always in one partition, whatever the placement, and links
    /// between them do not limit how far their tier may run.
    pub fn fuse(&mut self, components: &[ComponentId]) {
        self.fused.push(components.to_vec());
    }

    /// Wakes a component at `time`, to start it. The earlier one is kept, as with
    /// [`Ctx::wake_at`](super::Ctx::wake_at).
    pub fn wake_at(&mut self, component: ComponentId, time: Time) {
        self.wakes.push((component, time));
    }

    /// Has a message arrive at `time` from outside, after the messages of phase 0 of that instant from
    /// components. Several arrive in the order in which they were posted.
    pub fn post(&mut self, to: ComponentId, time: Time, message: M) {
        self.posts.push((to, time, message));
    }

    /// How many components were added.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether no component was added.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Checks everything and takes the topology apart.
    pub(crate) fn assemble(self) -> Result<Assembly<M>, TopologyError> {
        let faults = self.faults();
        if !faults.is_empty() {
            return Err(TopologyError { faults });
        }
        let mut lists: Vec<Vec<(Port, Wire, ComponentId)>> = (0..self.parts.len()).map(|_| Vec::new()).collect();
        for &Connection { from, port, to, link } in &self.connections {
            let Link { latency, phase } = link;
            let end = self.parts[to.0 as usize].tier | if from == to { Wire::TO_SELF } else { 0 };
            let wire = Wire { latency, index: to.0, partition: 0, phase, end };
            lists[from.0 as usize].push((port, wire, to));
        }
        // Without faults the ports of a component are dense from 0, so a port's place in the sorted list is
        // its number.
        let wires = lists.into_iter().map(|mut list| {
            list.sort_by_key(|(port, ..)| *port);
            let ends = list.iter().map(|(.., to)| *to).collect();
            Wires { wires: list.into_iter().map(|(_, wire, _)| wire).collect(), ends }
        });
        let tiers = self.tiers();
        Ok(Assembly {
            wires: wires.collect(),
            tiers,
            tier_of: self.parts.iter().map(|part| part.tier).collect(),
            fused: self.fused,
            longest_latency: self.connections.iter().map(|c| c.link.latency).max().unwrap_or(0),
            names: self.parts.iter().map(|part| part.name.clone()).collect(),
            components: self.parts.into_iter().map(|part| part.component).collect(),
            together: self.together,
            wakes: self.wakes,
            posts: self.posts,
        })
    }

    fn tiers(&self) -> Tiers {
        let tier = |id: ComponentId| usize::from(self.parts[id.0 as usize].tier);
        let mut block_of: Vec<u32> = vec![u32::MAX; self.parts.len()];
        let ids: Vec<Vec<u32>> = self.fused.iter().map(|fused| fused.iter().map(|id| id.0).collect()).collect();
        let blocks = Blocks::new(self.parts.len(), &[], &ids);
        blocks.each(|block, component| block_of[component as usize] = block);
        let mut inner = [NEVER; MAX_TIERS];
        let between = || self.connections.iter().filter(|c| c.from != c.to);
        let fused = |c: &Connection| block_of[c.from.0 as usize] == block_of[c.to.0 as usize];
        for c in between().filter(|c| fused(c)) {
            inner[tier(c.from)] = inner[tier(c.from)].min(c.link.latency);
        }
        let count = self.parts.iter().map(|part| usize::from(part.tier) + 1).max().unwrap_or(1);
        let apart = between().filter(|c| !fused(c));
        Tiers::new(count, apart.map(|c| (tier(c.from), tier(c.to), c.link.latency)), inner, self.answering)
    }

    fn faults(&self) -> Vec<TopologyFault> {
        let mut faults = Vec::new();
        if self.parts.len() > MAX_COMPONENTS {
            faults.push(TopologyFault::TooManyComponents { components: self.parts.len() });
        }
        // Ids come from the caller and may belong to another topology. All kinds of faults are looked for, so
        // what follows must not index with an id that may be unknown.
        let known = |id: ComponentId| (id.0 as usize) < self.parts.len();
        let mentioned = self.together.iter().chain(&self.fused).flatten().copied();
        let mentioned = mentioned.chain(self.wakes.iter().map(|(id, _)| *id));
        for id in mentioned.chain(self.posts.iter().map(|(id, ..)| *id)) {
            if !known(id) {
                faults.push(TopologyFault::UnknownComponent { id, place: "a start or a hint".to_owned() });
            }
        }
        for fused in &self.fused {
            let tier = |id: &ComponentId| self.parts.get(id.0 as usize).map_or(0, |part| part.tier);
            for pair in fused.windows(2).filter(|pair| tier(&pair[0]) != tier(&pair[1])) {
                faults.push(TopologyFault::FusedAcrossTiers { components: [self.name(pair[0]), self.name(pair[1])] });
            }
        }
        // `NEVER` stands for no time at all: nothing can start then.
        for &(id, time) in &self.wakes {
            if time == NEVER {
                faults.push(TopologyFault::NoSuchTime { component: self.name(id) });
            }
        }
        for &(id, time, _) in &self.posts {
            if time == NEVER {
                faults.push(TopologyFault::NoSuchTime { component: self.name(id) });
            }
        }
        for c in &self.connections {
            let place = || format!("link from {} (port {}) to {}", self.name(c.from), c.port.0, self.name(c.to));
            for id in [c.from, c.to] {
                if !known(id) {
                    faults.push(TopologyFault::UnknownComponent { id, place: place() });
                }
            }
            // Latencies bound how far components run without each other: a latency of 0 would leave them no
            // window. The phase has to fit its bits of the tie.
            if c.link.latency == 0 || c.link.latency > MAX_LATENCY {
                faults.push(TopologyFault::Latency { link: place(), latency: c.link.latency });
            }
            if c.link.phase > MAX_PHASE {
                faults.push(TopologyFault::Phase { link: place(), phase: c.link.phase });
            }
        }
        self.port_faults(&mut faults);
        faults
    }

    fn port_faults(&self, faults: &mut Vec<TopologyFault>) {
        let mut ports: Vec<(ComponentId, Port, ComponentId)> =
            self.connections.iter().map(|c| (c.from, c.port, c.to)).collect();
        ports.sort_by_key(|&(from, port, _)| (from, port));
        for (i, &(from, port, to)) in ports.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| ports[i]).filter(|(other, ..)| *other == from);
            let expected = before.map_or(0, |(_, Port(port), _)| u32::from(port) + 1);
            let found = u32::from(port.0);
            if found + 1 == expected {
                let other = before.map_or_else(String::new, |(.., to)| self.name(to));
                faults.push(TopologyFault::PortTwice { from: self.name(from), port, to: [other, self.name(to)] });
            } else if found != expected {
                let missing = Port(expected as u16);
                faults.push(TopologyFault::PortGap { from: self.name(from), missing, found: port, to: self.name(to) });
            }
        }
    }

    fn name(&self, id: ComponentId) -> String {
        self.parts.get(id.0 as usize).map_or_else(|| id.to_string(), |part| part.name.clone())
    }
}

impl<M: Message> Default for Topology<M> {
    fn default() -> Self {
        Topology::new()
    }
}

impl<M> fmt::Debug for Topology<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parts.iter().map(|part| &part.name[..]).collect();
        f.debug_struct("Topology").field("components", &names).field("links", &self.connections.len()).finish()
    }
}

/// Why a topology cannot be simulated: every fault that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyError {
    faults: Vec<TopologyFault>,
}

impl TopologyError {
    /// The faults; never empty.
    pub fn faults(&self) -> &[TopologyFault] {
        &self.faults
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TopologyError {}

/// One thing that is wrong with a topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyFault {
    /// A link, hint or start names a component that was not added.
    #[error("{place}: there is no component {id}")]
    UnknownComponent {
        /// The id.
        id: ComponentId,
        /// Where it is named.
        place: String,
    },
    /// A latency is 0, which no window allows, or over 2^62.
    #[error("{link}: a latency of {latency} ticks, where {} is needed", if *.latency == 0 { "at least 1" } else { "at most 2^62" })]
    Latency {
        /// Both ends.
        link: String,
        /// In ticks.
        latency: Time,
    },
    /// A phase is over 14.
    #[error("{link}: phase {phase}, where at most 14 is possible")]
    Phase {
        /// Both ends.
        link: String,
        /// The phase.
        phase: u8,
    },
    /// Two links leave from one port.
    #[error("port {} of {from} leads to both {} and {}", .port.0, .to[0], .to[1])]
    PortTwice {
        /// The component that has the port.
        from: String,
        /// The port.
        port: Port,
        /// Where the two links go.
        to: [String; 2],
    },
    /// The ports of a component are not dense from 0.
    #[error("{from} has no port {}, but a port {} to {to}", .missing.0, .found.0)]
    PortGap {
        /// The component that has the ports.
        from: String,
        /// The first port that is missing.
        missing: Port,
        /// The port found instead.
        found: Port,
        /// Where that one goes.
        to: String,
    },
    /// Fused components are in different tiers.
    #[error("{} and {} are fused, but in different tiers", .components[0], .components[1])]
    FusedAcrossTiers {
        /// Two of them.
        components: [String; 2],
    },
    /// A start at a time that stands for never.
    #[error("a start of {component} at the end of time")]
    NoSuchTime {
        /// The component.
        component: String,
    },
    /// More components than ids.
    #[error("{components} components, where at most {MAX_COMPONENTS} are possible")]
    TooManyComponents {
        /// How many were added.
        components: usize,
    },
}
