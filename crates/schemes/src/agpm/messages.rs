//! What AGPM's selectors, banks and hub tell each other.
//!
//! Letters are few: one for so many log updates of an SM, one a period and place, one for a line that leaves
//! the sampled L1.

use super::buffer::BufferEntry;
use durawarp_checkpoint::{StateWriter, Storable, value};
use durawarp_persist::selection::Locality;
use durawarp_persist::{KernelFacts, Route, SchemeMessage, opened};

/// What an SM counted since it reported last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogReport {
    /// Log updates, by the reading of what counts as one.
    pub(super) logs: u64,
    /// Persists acknowledged, and core cycles they took.
    pub(super) requests: u64,
    pub(super) wait_cycles: u64,
    /// Log-update instructions by their way.
    pub(super) temporal: u64,
    pub(super) non_temporal: u64,
    pub(super) dropped_write_backs: u64,
    /// Reads in shared memory of what another warp wrote (instructions).
    pub(super) exchanges: u64,
}

value!(record LogReport { logs, requests, wait_cycles, temporal, non_temporal, dropped_write_backs, exchanges });

/// A message.
#[derive(Debug)]
pub(super) enum AgpmMessage {
    /// Host to hub.
    KernelStart(KernelFacts),
    /// Host to hub: the launch in this place.
    KernelEnd(u8),
    /// SM to hub.
    Report { launch: u8, report: LogReport },
    /// Hub to selectors and banks: tell what was counted for the launch in this place, and forget it.
    Count(u8),
    /// The answer.
    Counts { launch: u8, locality: Locality, saturated: u64, spills: u64, refills: u64 },
    /// Hub to SMs: the way of a kernel's log updates from now on.
    Path { kernel: String, route: Route },
    /// SM to slice: an entry whose line has left the L1.
    Moved { launch: u8, entry: Box<BufferEntry> },
    /// Slice to SM: what is known of a line that the SM fetches, an address a bit.
    Known { line: u64, addresses: u128 },
    /// Hub to slices: addresses of the flags of the kernel's transactions, from the first, and past the last.
    Flags { launch: u8, addresses: [u64; 2] },
}

value!(choice AgpmMessage {
    KernelStart(facts), KernelEnd(launch), Report { launch, report }, Count(launch),
    Counts { launch, locality, saturated, spills, refills }, Path { kernel, route }, Moved { launch, entry },
    Known { line, addresses }, Flags { launch, addresses },
});

impl AgpmMessage {
    /// What a message of this scheme says.
    pub(super) fn of(message: Box<dyn SchemeMessage>) -> AgpmMessage {
        opened(message)
    }
}

impl SchemeMessage for AgpmMessage {
    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn digest(&self) -> u64 {
        let of = |launch: &u8| u64::from(*launch) << 50;
        match self {
            AgpmMessage::KernelStart(facts) => facts.warps ^ u64::from(facts.launch) << 40,
            AgpmMessage::KernelEnd(launch) => 1 ^ of(launch),
            AgpmMessage::Report { launch, report } => 2 << 56 ^ report.logs << 32 ^ report.wait_cycles ^ of(launch),
            AgpmMessage::Count(launch) => 3 << 56 ^ of(launch),
            AgpmMessage::Counts { launch, locality, spills, refills, .. } => {
                let counts = locality.s_all ^ locality.t_all << 20 ^ locality.s_log << 40 ^ spills ^ refills << 8;
                4 << 56 ^ counts ^ of(launch)
            }
            AgpmMessage::Path { route, .. } => 5 << 56 | u64::from(*route == Route::Temporal),
            AgpmMessage::Moved { launch, entry } => 6 << 56 ^ entry.line ^ of(launch),
            AgpmMessage::Known { line, addresses } => 7 << 56 ^ line ^ (addresses ^ addresses >> 64) as u64,
            AgpmMessage::Flags { launch, addresses: [from, to] } => 8 << 56 ^ from ^ to << 20 ^ of(launch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_say_something_else_have_digests_of_their_own() {
        let facts = |launch, warps| AgpmMessage::KernelStart(KernelFacts { launch, warps, ..KernelFacts::default() });
        let report_of = |launch, logs, wait_cycles| {
            let report = LogReport { logs, wait_cycles, ..LogReport::default() };
            AgpmMessage::Report { launch, report }
        };
        let report = |logs, wait_cycles| report_of(0, logs, wait_cycles);
        let counts = |[t_all, s_all, s_log, spills, refills]: [u64; 5]| {
            let locality = Locality { t_all, s_all, s_log, ..Locality::default() };
            AgpmMessage::Counts { launch: 0, locality, saturated: 0, spills, refills }
        };
        let path = |route| AgpmMessage::Path { kernel: "k".to_owned(), route };
        let mut messages = vec![facts(0, 64), facts(1, 64), facts(0, 65)];
        let of_places = |launch| [AgpmMessage::KernelEnd(launch), AgpmMessage::Count(launch), report_of(launch, 9, 9)];
        messages.extend([0, 1, 2].into_iter().flat_map(of_places));
        messages.extend([report(64, 7), report(65, 7), report(64, 8)]);
        let known = |line, addresses| AgpmMessage::Known { line, addresses };
        messages.extend([known(128, 1), known(256, 1), known(128, 1 << 96)]);
        let flags = |launch, to| AgpmMessage::Flags { launch, addresses: [256, to] };
        messages.extend([flags(0, 260), flags(0, 264), flags(1, 260)]);
        messages.extend([path(Route::Temporal), path(Route::NonTemporal), counts([0; 5])]);
        for nth in 0..5 {
            let mut numbers = [0; 5];
            numbers[nth] = 1 << nth;
            messages.push(counts(numbers));
        }
        let mut digests: Vec<u64> = messages.iter().map(SchemeMessage::digest).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), messages.len(), "{messages:?}");
    }
}
