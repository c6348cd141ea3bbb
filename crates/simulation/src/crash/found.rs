//! A failure in the terms of the program: kernel, line and buffer of what the oracle found.

use serde::Serialize;

use durawarp_oracle::verdict::{Failure, Persist};

/// A persist of a witness, with its place in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// What the oracle says of it.
    #[serde(flatten)]
    pub persist: Persist,
    /// Kernel, where a warp did it.
    pub kernel: Option<String>,
    /// Function and bytes from its start, where a core did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Channel, where a client posted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u16>,
    /// PTX file, line.
    pub source: Option<(String, u32)>,
    /// What is at the address: buffer and byte offset in it.
    pub buffer: Option<(String, u64)>,
}

impl Placed {
    /// What the oracle says alone.
    pub(super) fn nowhere(persist: &Persist) -> Placed {
        let (kernel, function, channel, source, buffer) = (None, None, None, None, None);
        Placed { persist: persist.clone(), kernel, function, channel, source, buffer }
    }
}

/// A failure, with the two persists whose order is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What the oracle found.
    #[serde(flatten)]
    pub failure: Failure,
    /// The one that should have been durable first.
    pub missing: Option<Placed>,
    /// The one that is durable.
    pub present: Option<Placed>,
    /// When, in core cycles.
    pub core_cycle: u64,
    /// In which server, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<u32>,
}

impl Found {
    /// A failure whose witnesses `place` finds in the program.
    pub(super) fn new(failure: Failure, ticks_a_cycle: u64, place: &dyn Fn(&Persist) -> Placed) -> Found {
        let witness = failure.witness.as_ref();
        let missing = witness.and_then(|witness| witness.missing.as_ref()).map(place);
        let present = witness.and_then(|witness| witness.present.as_ref()).map(place);
        Found { missing, present, core_cycle: failure.time / ticks_a_cycle, server: None, failure }
    }
}
