//! What was judged of a server, and of several servers together.
//!
//! Servers have nothing in common: each has a journal, and is judged as one alone would be. Here their
//! numbers are added up, and failures are told with their server, those of the first one first.

use super::found::Found;
use super::report::{Channels, Judgement};

/// What was judged of a server.
#[derive(Debug)]
pub(super) struct JudgedServer {
    /// Changes of what is durable.
    pub(super) changes: u64,
    /// Fences waited.
    pub(super) fences: bool,
    pub(super) history: Judgement,
    pub(super) actual: Option<Judgement>,
    pub(super) allowed: Option<Judgement>,
    pub(super) channels: Option<Channels>,
}

/// All servers together; keeps the first `keep` failures of each judgement.
///
/// # Panics
/// Without a server.
pub(super) fn together(judged: Vec<JudgedServer>, keep: usize) -> JudgedServer {
    let several = judged.len() > 1;
    let named = judged.into_iter().zip(0..).map(|(mut of, server)| {
        if several {
            of.judgements()
                .flat_map(|judgement| &mut judgement.found)
                .for_each(|found: &mut Found| found.server = Some(server));
        }
        of
    });
    let Some(all) = named.reduce(|one, other| one.with(other, keep)) else { panic!("no machine is without a server") };
    all
}

impl JudgedServer {
    /// Each of its judgements.
    fn judgements(&mut self) -> impl Iterator<Item = &mut Judgement> {
        let of_channels = self.channels.iter_mut().flat_map(|of| [&mut of.history].into_iter().chain(&mut of.allowed));
        [&mut self.history].into_iter().chain(&mut self.actual).chain(&mut self.allowed).chain(of_channels)
    }

    fn with(self, other: JudgedServer, keep: usize) -> JudgedServer {
        let both = |one: Option<Judgement>, other: Option<Judgement>| match (one, other) {
            (Some(one), Some(other)) => Some(added(one, other, keep)),
            (one, other) => one.or(other),
        };
        let channels = match (self.channels, other.channels) {
            (Some(one), Some(other)) => Some(Channels {
                channels: one.channels + other.channels,
                verbs: one.verbs + other.verbs,
                acknowledgements: one.acknowledgements + other.acknowledgements,
                history: added(one.history, other.history, keep),
                allowed: both(one.allowed, other.allowed),
            }),
            (one, other) => one.or(other),
        };
        JudgedServer {
            changes: self.changes + other.changes,
            fences: self.fences || other.fences,
            history: added(self.history, other.history, keep),
            actual: both(self.actual, other.actual),
            allowed: both(self.allowed, other.allowed),
            channels,
        }
    }
}

/// Two judgements of the same kind. Failures stay beside what was found of them.
fn added(mut one: Judgement, other: Judgement, keep: usize) -> Judgement {
    let (verdict, of) = (&mut one.verdict, other.verdict);
    verdict.points += of.points;
    verdict.distinct += of.distinct;
    verdict.judged += of.judged;
    verdict.passed += of.passed;
    verdict.left_out += of.left_out;
    verdict.failed += of.failed;
    verdict.exhaustive &= of.exhaustive;
    verdict.stopped |= of.stopped;
    verdict.failures.extend(of.failures);
    verdict.failures.truncate(keep);
    one.found.extend(other.found);
    one.found.truncate(keep);
    one
}
