//! The order that hardware promises behind the program's back: epochs of a hart, with what harts saw of each
//! other (P5').
//!
//! ```text
//!  hart 0:  persist A ─ ofence ─ unlock ─┐                        A must be durable before C
//!  hart 1:                               └─ sees the lock ─ persist C
//! ```
//! | a persist must be durable before another | because |
//! |---|---|
//! | of the same hart | an ordering fence is between them |
//! | of another hart | the other hart saw, before, what its hart stored behind a fence after it |
//! | of another hart | the other hart saw, before, the line itself |
//! | of the same line | it was performed before it |
//!
//! and all that follows from these. To see a line is to load bytes of it. A store is seen with what its hart
//! had before its last fence. Two persists of a hart without a fence between them, to two lines, are in no
//! order.
//!
//! The graph has a node for each persist, and nodes between: the end of an epoch, what a hart has seen, what
//! a store hands on. What must be durable before a persist is every persist that is reached from it.
//!
//! Source: persistence parallelism, sections II and IV-B (buffered strict persistence, by which the paper
//! means epochs with the order of coherence); `hosts` of the design notes, section 5. Invariants: nodes point
//! to earlier ones; it reads facts and images only. Not modelled: order by messages of the operating system.

mod states;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::crash::change_kind;
use super::verdict::{Failure, Level, Persist, Property, Verdict, Witness};
use durawarp_persist::journal::{Author, Fact, FactKind, Journal, Thread};
use durawarp_persist::vocab::Domain;

pub use states::EpochStates;

/// A node's number.
type Node = u32;

/// The persists of a run, and what must be durable before each.
#[derive(Debug, Clone)]
pub struct PersistOrder<'a> {
    journal: &'a Journal,
    /// Earlier nodes, by node.
    before: Vec<Vec<Node>>,
    /// The persist that a node is, if it is one: its fact.
    fact: Vec<Option<u32>>,
    /// Nodes of persists, in the order in which they were performed.
    persists: Vec<Node>,
    /// Facts that a fence waited for durability, with what had to be durable.
    fences: Vec<(u32, Node)>,
    /// Persists of an entry of a persist buffer, in its order.
    entries: BTreeMap<(Thread, u32), Vec<Node>>,
}

/// What a hart is at while the graph is made.
#[derive(Debug, Default)]
struct HartState {
    /// The end of its last epoch.
    epoch: Option<Node>,
    /// Persists since.
    open: Vec<Node>,
    /// What it has seen.
    seen: Option<Node>,
    /// Its last persist, whose entry is not known yet.
    last: Option<Node>,
}

/// What stores left at a line.
#[derive(Debug, Default)]
struct LineState {
    /// The last persist.
    last: Option<Node>,
    /// By hart: what its last store there hands on.
    left: BTreeMap<Thread, Option<Node>>,
    /// Counts stores.
    version: u32,
    /// The version that harts saw last.
    seen: BTreeMap<Thread, u32>,
}

impl<'a> PersistOrder<'a> {
    /// The order that a journal's facts come to.
    pub fn new(journal: &'a Journal) -> PersistOrder<'a> {
        let mut order = PersistOrder {
            journal,
            before: Vec::new(),
            fact: Vec::new(),
            persists: Vec::new(),
            fences: Vec::new(),
            entries: BTreeMap::new(),
        };
        let (mut harts, mut lines) = (BTreeMap::new(), BTreeMap::new());
        for (at, fact) in journal.facts().iter().enumerate() {
            let Some(own) = fact.author.thread() else { continue };
            let hart: &mut HartState = harts.entry(own).or_default();
            match fact.kind {
                FactKind::Performed => order.perform(at as u32, own, hart, lines.entry(fact.line).or_default()),
                FactKind::PerformedVolatile => {
                    let line: &mut LineState = lines.entry(fact.line).or_default();
                    let before = hart.epoch.into_iter().chain(line.of_others(own)).collect();
                    let left = order.node(before);
                    line.leave(own, left);
                }
                FactKind::Observed => {
                    if let Some(line) = lines.get_mut(&fact.line) {
                        order.observe(own, hart, line);
                    }
                }
                FactKind::EpochEnded => order.end_epoch(hart),
                FactKind::FencePassed => {
                    order.end_epoch(hart);
                    order.fences.extend(hart.epoch.map(|node| (at as u32, node)));
                }
                FactKind::Buffered => {
                    if let (Some(node), Author::Entry { entry, .. }) = (hart.last.take(), fact.author) {
                        order.entries.entry((own, entry)).or_default().push(node);
                    }
                }
                _ => {}
            }
        }
        order
    }

    /// A node behind others; none where there is nothing, and no new one where there is one.
    fn node(&mut self, before: Vec<Node>) -> Option<Node> {
        match before[..] {
            [] => None,
            [only] => Some(only),
            _ => Some(self.push(before, None)),
        }
    }

    fn push(&mut self, mut before: Vec<Node>, fact: Option<u32>) -> Node {
        before.sort_unstable();
        before.dedup();
        self.before.push(before);
        self.fact.push(fact);
        (self.fact.len() - 1) as Node
    }

    fn perform(&mut self, at: u32, own: Thread, hart: &mut HartState, line: &mut LineState) {
        let before = hart.epoch.into_iter().chain(hart.seen).chain(line.last).collect();
        let node = self.push(before, Some(at));
        self.persists.push(node);
        hart.open.push(node);
        hart.last = Some(node);
        line.last = Some(node);
        line.leave(own, Some(node));
    }

    fn observe(&mut self, key: Thread, hart: &mut HartState, line: &mut LineState) {
        if line.seen.insert(key, line.version) == Some(line.version) {
            return;
        }
        hart.seen = self.node(hart.seen.into_iter().chain(line.of_others(key)).collect());
    }

    fn end_epoch(&mut self, hart: &mut HartState) {
        let before: Vec<Node> = hart.epoch.into_iter().chain(hart.seen).chain(hart.open.drain(..)).collect();
        hart.epoch = self.node(before);
    }

    /// A persist, by its node.
    fn persist(&self, node: Node) -> Option<&'a Fact> {
        self.fact[node as usize].map(|at| &self.journal.facts()[at as usize])
    }

    fn named(&self, node: Node) -> Option<Persist> {
        self.persist(node).map(|fact| named("store", fact))
    }

    /// Judges every change of what is durable, in a domain: nothing comes before what must, and what a fence
    /// waited for is durable when it lets its hart go on.
    pub fn judge_history(&self, domain: Domain, keep: usize) -> Verdict {
        let mut verdict = Verdict { exhaustive: true, ..Verdict::default() };
        // What caches hold survives there: the order is that of performance.
        if domain == Domain::Eadr {
            return verdict;
        }
        let mut durable =
            Durable { order: self, is: vec![false; self.fact.len()], closed: vec![false; self.fact.len()] };
        let (change, facts) = (change_kind(domain), self.journal.facts());
        let mut fences = self.fences.iter().peekable();
        let mut at = 0;
        while at < facts.len() {
            // Writes that are durable at one time are so together.
            let end = at + facts[at..].iter().take_while(|fact| fact.time == facts[at].time).count();
            let new: Vec<Node> = (at..end)
                .filter(|&at| facts[at].kind == change)
                .flat_map(|at| self.of_write(&facts[at]))
                .copied()
                .filter(|&node| !std::mem::replace(&mut durable.is[node as usize], true))
                .collect();
            for node in new {
                verdict.points += 1;
                let found = durable.missing_before(node).map(|missing| {
                    let what = "a persist is durable, and one that the program ordered before it is not".to_owned();
                    self.failure((Property::Epochs, what), at as u64, facts[at].time, (missing, Some(node)))
                });
                verdict.add(found, keep);
            }
            while let Some(&(fence, node)) = fences.next_if(|&&(fence, _)| (fence as usize) < end) {
                verdict.points += 1;
                let found = durable.missing_of(node).map(|missing| {
                    let what = "a fence let its thread go on before a store of the thread was durable".to_owned();
                    let time = facts[fence as usize].time;
                    self.failure((Property::Acknowledged, what), fence.into(), time, (missing, None))
                });
                verdict.add(found, keep);
            }
            at = end;
        }
        verdict.distinct = verdict.points;
        verdict.settle(keep)
    }

    /// Persists that a write brings: those of its entry up to its last store.
    fn of_write(&self, fact: &Fact) -> &[Node] {
        let Author::Entry { core, hart, entry, stores } = fact.author else { return &[] };
        let nodes = self.entries.get(&(Thread::Hart { core, hart }, entry));
        nodes.map(|nodes| &nodes[..nodes.len().min(stores as usize)]).unwrap_or_default()
    }

    fn failure(
        &self,
        (property, what): (Property, String),
        point: u64,
        time: u64,
        (missing, present): (Node, Option<Node>),
    ) -> Failure {
        let witness =
            Witness { missing: self.named(missing), present: present.and_then(|present| self.named(present)) };
        let (level, choice, values) = (Level::Actual, None, Vec::new());
        Failure { property, level, point, choice, time, what, values, witness: Some(witness) }
    }
}

fn named(role: &str, fact: &Fact) -> Persist {
    Persist::new(role, fact.author, fact.line, fact.line + u64::from(fact.mask.trailing_zeros()))
}

impl LineState {
    fn of_others(&self, hart: Thread) -> impl Iterator<Item = Node> {
        self.left.iter().filter(move |(of, _)| **of != hart).filter_map(|(_, left)| *left)
    }

    fn leave(&mut self, hart: Thread, left: Option<Node>) {
        self.left.insert(hart, left);
        self.version += 1;
    }
}

/// What is durable while a history is judged.
struct Durable<'o, 'a> {
    order: &'o PersistOrder<'a>,
    is: Vec<bool>,
    /// All before the node is durable, and so is the node if it is a persist.
    closed: Vec<bool>,
}

impl Durable<'_, '_> {
    /// A persist before a node that is not durable.
    fn missing_before(&mut self, node: Node) -> Option<Node> {
        let order = self.order;
        order.before[node as usize].iter().find_map(|&before| self.missing_of(before))
    }

    /// The same, the node among them.
    fn missing_of(&mut self, node: Node) -> Option<Node> {
        let mut stack = vec![node];
        while let Some(&top) = stack.last() {
            let at = top as usize;
            if self.order.fact[at].is_some() && !self.is[at] {
                return Some(top);
            }
            let open = self.order.before[at].iter().copied().filter(|&before| !self.closed[before as usize]);
            let before = stack.len();
            // Those that are closed stay so: what is durable stays durable.
            stack.extend(open);
            if stack.len() == before {
                self.closed[at] = true;
                stack.pop();
            }
        }
        None
    }
}
