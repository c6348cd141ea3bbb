//! A home slice under delegated ordering: the dependencies of its lines, and whom they were passed to: cores,
//! or the NIC, which counts as the one behind the last of them.
//!
//! | what comes | what follows |
//! |---|---|
//! | a line with dependencies | they are the line's, beside those it has |
//! | a request that is granted | the line's dependencies go along, and who got them is noted |
//! | `Resolved` of a hart | lines lose what has ended; those that got it are told |
//!
//! A line of persistent memory with a dependency must stay: memory may lack its bytes.
//!
//! Source: persistence parallelism, section IV-B; that the home keeps them and passes the answer on is ours
//! (the paper says that a buffer updates the dependent field). Invariant: whoever was told of a dependency is
//! told of its end, once, after that. No broadcast.

use hashbrown::HashMap;

use durawarp_checkpoint::{state, state_methods};
use durawarp_persist::dependency::{Dependencies, Dependency, depend};
use durawarp_persist::{
    Handler, HandlerPlace, HandlerReport, HomeEvent, HomeHandler, Outbox, Peer, SchemeMessage, opened,
};

use super::ends::LinesByEntry;
use super::messages::DelegatedMessage;

/// Dependencies of the lines of a slice.
#[derive(Debug)]
pub(super) struct DependentLines {
    /// Looked up alone, never gone through.
    lines: HashMap<u64, Dependencies>,
    /// The same by hart.
    by_hart: Vec<LinesByEntry>,
    /// By hart: entry, and the core or NIC that got a line that depends on it.
    passed: Vec<Vec<(u64, u16)>>,
    resolved: Vec<u64>,
    harts_a_core: u16,
    cores: u16,
    dependent_grants: u64,
}

state!(DependentLines {
    sized: by_hart, passed, resolved; saved: lines, dependent_grants; kept: harts_a_core, cores
});

impl DependentLines {
    /// No lines.
    pub(super) fn new(place: HandlerPlace) -> DependentLines {
        let harts_a_core = place.harts.max(1);
        let harts = usize::from(place.cores * harts_a_core + place.channels);
        DependentLines {
            lines: HashMap::new(),
            by_hart: vec![LinesByEntry::default(); harts],
            passed: vec![Vec::new(); harts],
            resolved: vec![0; harts],
            harts_a_core,
            cores: place.cores,
            dependent_grants: 0,
        }
    }

    fn take(&mut self, line: u64, on: Dependency) {
        let hart = usize::from(on.hart);
        if on.id <= self.resolved[hart] {
            return;
        }
        depend(self.lines.entry(line).or_default(), on);
        self.by_hart[hart].insert(on.id, line);
    }

    fn give(&mut self, line: u64, to: u16, outbox: &mut Outbox) {
        let Some(dependencies) = self.lines.get(&line) else { return };
        for &on in dependencies {
            // A core knows of its own harts, the NIC of its channels.
            if (on.hart / self.harts_a_core).min(self.cores) == to {
                continue;
            }
            outbox.depend(on);
            self.passed[usize::from(on.hart)].push((on.id, to));
            self.dependent_grants += 1;
        }
    }

    fn resolve(&mut self, hart: u16, id: u64, outbox: &mut Outbox) {
        let at = usize::from(hart);
        if id <= self.resolved[at] {
            return;
        }
        self.resolved[at] = id;
        while let Some(line) = self.by_hart[at].pop_up_to(id) {
            if let Some(dependencies) = self.lines.get_mut(&line) {
                dependencies.retain(|on| on.hart != hart || on.id > id);
                if dependencies.is_empty() {
                    self.lines.remove(&line);
                }
            }
        }
        let mut to: Vec<u16> = self.passed[at].extract_if(.., |passed| passed.0 <= id).map(|(_, core)| core).collect();
        to.sort_unstable();
        to.dedup();
        for core in to {
            let to = if core < self.cores { Peer::Core(core) } else { Peer::Nic };
            outbox.send(to, DelegatedMessage::Resolved { hart, id });
        }
    }
}

impl Handler for DependentLines {
    state_methods!();

    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        match opened(message) {
            DelegatedMessage::Resolved { hart, id } => self.resolve(hart, id, outbox),
            other => panic!("a home slice received {other:?} from {from:?}"),
        }
    }

    fn report(&self, report: &mut HandlerReport) {
        report.count("dependent_grants", self.dependent_grants);
    }
}

impl HomeHandler for DependentLines {
    fn event(&mut self, event: &HomeEvent<'_>, outbox: &mut Outbox) {
        match *event {
            HomeEvent::Taken { line, dependencies } => dependencies.iter().for_each(|&on| self.take(line, on)),
            HomeEvent::Given { line, to } => self.give(line, to, outbox),
        }
    }

    fn keeps(&mut self, line: u64) -> bool {
        self.lines.contains_key(&line)
    }
}
