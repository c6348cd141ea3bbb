//! Refresh: when a rank's next one is due, which banks it is for, and how it gets its turn.
//!
//! | state of a rank | next |
//! |---|---|
//! | idle | a refresh falls due: it is pending, or put off while requests wait for its banks and it may be |
//! | pending | rows of its banks are closed as soon as they can be; then it is issued, and the rank is idle |
//!
//! Requests to banks of a pending refresh wait; others do not. Nothing is done between edges of the
//! controller: an idle one is not woken, and at its next edge refreshes that have passed are made up for at
//! the times at which they were due, so that they cost nothing and are as if they had been issued then.
//!
//! Source: JESD79-4 (postponing), JESD235 (per bank), JESD79-5 (same bank). Invariant: the times of a rank's
//! refreshes rise. A refresh's commands take no slot of the command bus: two of a few thousand.

use durawarp_checkpoint::value;
use durawarp_engine::{Clock, Time};

use crate::device::{Device, Effect, RefreshPolicy};

use super::parameters::MediaSpec;

/// Where a rank is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rank {
    /// When the next refresh falls due.
    pub(super) due: Time,
    /// Since when one is pending.
    pub(super) pending: Option<Time>,
    /// Which of its targets is next.
    pub(super) turn: u16,
    /// Refreshes that were put off.
    pub(super) owed: u32,
}

value!(record Rank { due, pending, turn, owed });

/// Refreshes of a device.
#[derive(Debug, Clone, Default)]
pub(super) struct Refreshing {
    every: Time,
    postpone: u32,
    /// Banks of each target, by rank: those of `turn` lie at `rank * targets + turn`.
    targets: Vec<Vec<u16>>,
    per_rank: usize,
    pub(super) ranks: Vec<Rank>,
    /// When something falls due next, or may go on.
    pub(super) next: Time,
    /// When a pending one may go on; `Time::MAX` where none is pending.
    pub(super) pending_at: Time,
}

durawarp_checkpoint::state!(Refreshing { sized: ranks; saved: next, pending_at; kept: every, postpone, targets, per_rank });

impl Refreshing {
    /// Of a device that needs none.
    pub(super) fn none() -> Self {
        Refreshing { next: Time::MAX, pending_at: Time::MAX, ..Refreshing::default() }
    }

    /// Of a device as the keys of `dram` say.
    pub(super) fn new(device: Option<&Device>, spec: &MediaSpec, clock: Clock) -> Self {
        let own = device.and_then(|device| {
            let refresh = device.refreshes.iter().find(|own| own.policy == spec.refresh)?;
            Some((device, refresh))
        });
        let Some((device, refresh)) = own else { return Refreshing::none() };
        let counts: Vec<usize> = device.organisation.levels.iter().map(|(_, count)| *count as usize).collect();
        let banks: usize = counts.iter().product();
        let target = usize::from(device.commands[usize::from(refresh.command)].target);
        // A rank is what an all-bank refresh is for: the outermost level, or as the file says.
        let whole = device.commands.iter().filter(|own| own.effect == Effect::Refresh).map(|own| own.target).min();
        let rank_level = usize::from(whole.unwrap_or(0)).min(counts.len().saturating_sub(2));
        let ranks: usize = counts[..=rank_level].iter().product();
        let of_rank = banks / ranks;
        let last = counts.last().copied().unwrap_or(1);
        let per_rank = match refresh.policy {
            RefreshPolicy::None => return Refreshing::none(),
            RefreshPolicy::AllBank => 1,
            RefreshPolicy::PerBank => counts[rank_level + 1..=target].iter().product(),
            RefreshPolicy::SameBank => last,
        };
        // Which banks the refreshes of a rank are for, one after another.
        let banks_of = |at: usize| {
            let (rank, turn) = (at / per_rank, at % per_rank);
            let all = (0..of_rank).filter(|bank| match refresh.policy {
                RefreshPolicy::SameBank => bank % last == turn,
                _ => bank / (of_rank / per_rank) == turn,
            });
            all.map(|bank| (rank * of_rank + bank) as u16).collect()
        };
        let every = clock.cycles(u64::from(refresh.every_cycles));
        let staggered = |rank: usize| {
            let share = u64::from(refresh.every_cycles) * (rank as u64 + 1) / ranks as u64;
            if spec.refresh_stagger { clock.cycles(share) } else { every }
        };
        let ranks: Vec<Rank> = (0..ranks).map(|rank| Rank { due: staggered(rank), ..Rank::default() }).collect();
        Refreshing {
            every,
            postpone: spec.refresh_postpone,
            targets: (0..ranks.len() * per_rank).map(banks_of).collect(),
            per_rank,
            next: ranks.iter().map(|rank| rank.due).min().unwrap_or(Time::MAX),
            pending_at: Time::MAX,
            ranks,
        }
    }

    /// Each refresh is for all banks of its rank.
    pub(super) fn is_of_all(&self) -> bool {
        self.per_rank == 1
    }

    /// The banks of a rank's next refresh.
    pub(super) fn target(&self, rank: usize) -> &[u16] {
        &self.targets[rank * self.per_rank + usize::from(self.ranks[rank].turn)]
    }

    /// Passes over whole rounds of a rank's targets that an idle controller slept through, but for the last
    /// two, which leave rows and times as all of them would. Returns how many refreshes that were.
    pub(super) fn skip_rounds(&mut self, rank: usize, now: Time) -> u64 {
        let round = self.every * self.per_rank as u64;
        let own = &mut self.ranks[rank];
        let rounds = (now.saturating_sub(own.due) / round).saturating_sub(2);
        if own.pending.is_some() || own.owed > 0 || rounds == 0 {
            return 0;
        }
        own.due += rounds * round;
        rounds * self.per_rank as u64
    }

    /// Makes a refresh pending that is due by `now`, unless it may be put off while `wanted`; true where one
    /// is pending.
    pub(super) fn is_pending(&mut self, rank: usize, now: Time, wanted: bool) -> bool {
        let (every, postpone) = (self.every, self.postpone);
        let own = &mut self.ranks[rank];
        while own.pending.is_none() {
            if own.due <= now {
                let due = own.due;
                own.due += every;
                if wanted && own.owed < postpone {
                    own.owed += 1;
                } else {
                    own.pending = Some(due);
                }
            } else if own.owed > 0 && !wanted {
                own.owed -= 1;
                own.pending = Some(now);
            } else {
                return false;
            }
        }
        true
    }

    /// The pending refresh of a rank was issued.
    pub(super) fn done(&mut self, rank: usize) {
        let per_rank = self.per_rank as u16;
        let own = &mut self.ranks[rank];
        own.pending = None;
        own.turn = (own.turn + 1) % per_rank;
    }
}
