//! Which requests of a queue come first where their sources matter: numbers by which a ranked queue orders.
//!
//! | of two requests | comes first |
//! |---|---|
//! | 1 | the one that has waited too long |
//! | 2 | the one whose source has the lower rank |
//! | 3 | within a bank: the one whose row is open |
//! | 4 | the older one |
//!
//! Source: the lists of BLISS (Subramanian et al., ICCD 2014) and ATLAS (Kim et al., HPCA 2010); BLISS has no
//! rule 1. Invariant: one number for each request, so that a scheduler's look at banks costs what it does
//! without ranks.

use durawarp_checkpoint::value;

/// The source of requests that are of no requester: those of the controller itself, and all writes.
pub(crate) const NO_SOURCE: u16 = u16::MAX;

/// Where a number of a request has its rank.
const RANK_SHIFT: u32 = 48;

/// Ranks of sources.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// By source, the lowest first; a source that is not here has rank 0.
    of: Vec<u16>,
    /// Requests before this one have waited too long.
    too_old_before: u64,
}

value!(record Ranks { of, too_old_before });

impl Ranks {
    /// Gives a source its rank.
    pub(crate) fn put(&mut self, source: u16, rank: u16) {
        if usize::from(source) >= self.of.len() {
            self.of.resize(usize::from(source) + 1, 0);
        }
        self.of[usize::from(source)] = rank;
    }

    /// Gives every source the same rank.
    pub(crate) fn clear(&mut self) {
        self.of.fill(0);
    }

    /// Requests that are older than this come first.
    pub(crate) fn favour_before(&mut self, age: u64) {
        self.too_old_before = age;
    }

    /// The rank of a request: 0 where it has waited too long.
    pub(super) fn rank(&self, source: u16, age: u64) -> u64 {
        let rank = self.of.get(usize::from(source)).copied().unwrap_or(0);
        if age < self.too_old_before { 0 } else { u64::from(rank) + 1 }
    }

    /// The rank of a source's next request.
    #[cfg(test)]
    pub(crate) fn rank_of(&self, source: u16) -> u64 {
        self.rank(source, u64::MAX)
    }

    /// What a request is ordered by: its rank, then its age.
    pub(super) fn number(&self, source: u16, age: u64) -> u64 {
        self.rank(source, age) << RANK_SHIFT | age
    }
}
