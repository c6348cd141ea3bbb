//! Which request a controller serves first: the schedulers by name, and the ranks of those that look at who
//! sent a read.
//!
//! | scheduler | a request comes first | bound of a wait |
//! |---|---|---|
//! | `fcfs` | columns as they came; rows of other banks are opened ahead, each for its oldest | the queue |
//! | `frfcfs` | whose row is open, then the oldest | `row_hit_cap` hits |
//! | `frfcfs_row_hit` | the same: no precharge while a hit waits for the bank | 1024 hits |
//! | `bliss` | of a source that is not blacklisted, then as `frfcfs` | `starvation_cycles` |
//! | `atlas` | of the source with the least attained service, then as `frfcfs` | `starvation_cycles` |
//!
//! `bliss`: a source of which `blacklist_streak` reads are served in a row is blacklisted; all are cleared
//! every `blacklist_clear_cycles`. `atlas`: at the end of each `service_quantum_cycles` a source is ranked by
//! what it has had, `TotalAS = h TotalAS + (1 - h) AS`, where `h` is `service_history_permille` thousandths.
//! A read has service while a row command or a transfer of its own is under way. Both rank reads alone:
//! writes are of caches, and drain as under `frfcfs`. A read that has waited for `starvation_cycles` (at the
//! second look after it came, looks being that far apart) goes before all that have not.
//!
//! Source: gem5's `fcfs`, which books the rows of the next while a burst is under way; FR-FCFS after Rixner
//! et al., ISCA 2000; Ramulator's row-hit variant, whose cap here is the highest of `row_hit_cap`; BLISS
//! (Subramanian et al., ICCD 2014), whose bound is ATLAS's; ATLAS (Kim et al., HPCA 2010). Invariants: state
//! is of one controller; nothing is woken for a clearing or a quantum: it is made up for at the next edge.
//! Not modelled: ATLAS's exchange of service among controllers, threads within a core or warps in an SM.

use durawarp_checkpoint::{state, value};
use durawarp_engine::{Clock, Time};

use crate::request_queue::{NO_SOURCE, QueueOrder, RequestQueue};

use super::parameters::{ControllerSpec, MemoryScheduler};

/// Hits that pass an older request under `frfcfs_row_hit`: the highest `row_hit_cap`.
const ROW_HIT_CAP: u32 = 1024;

impl ControllerSpec {
    /// How reads are ordered, or writes.
    pub(super) fn order(&self, reads: bool) -> QueueOrder {
        match self.scheduler {
            MemoryScheduler::Fcfs => QueueOrder::Arrival,
            MemoryScheduler::Bliss | MemoryScheduler::Atlas if reads => QueueOrder::Ranked,
            _ => QueueOrder::HitsFirst,
        }
    }

    /// Hits that may pass an older request of their bank.
    pub(super) fn hit_cap(&self) -> u32 {
        if self.scheduler == MemoryScheduler::FrfcfsRowHit { ROW_HIT_CAP } else { self.row_hit_cap }
    }
}

/// What a source has had.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    /// In this quantum.
    now: Time,
    /// Before, older quanta the less.
    total: Time,
}

value!(record Service { now, total });

/// What ranks the sources of a channel's reads.
#[derive(Debug)]
pub(super) struct Ranking {
    /// By attained service; else by a blacklist.
    by_service: bool,
    streak_cap: u32,
    history_permille: u64,
    /// From one clearing or quantum to the next.
    every: Time,
    starvation: Time,
    /// The source of the last read, and how many of it were served in a row.
    last: u16,
    streak: u32,
    services: Vec<Service>,
    /// When the next clearing or quantum is due.
    next: Time,
    /// The age of the next read at the last look, and when the next look is due.
    age_at_look: u64,
    next_look: Time,
}

state!(Ranking {
    saved: last, streak, services, next, age_at_look, next_look;
    kept: by_service, streak_cap, history_permille, every, starvation
});

impl Ranking {
    /// That of a controller whose scheduler has one.
    pub(super) fn of(spec: &ControllerSpec, clock: Clock) -> Option<Box<Ranking>> {
        let every_cycles = match spec.scheduler {
            MemoryScheduler::Bliss => spec.blacklist_clear_cycles,
            MemoryScheduler::Atlas => spec.service_quantum_cycles,
            _ => return None,
        };
        let (every, starvation) = (clock.cycles(every_cycles.into()), clock.cycles(spec.starvation_cycles.into()));
        Some(Box::new(Ranking {
            by_service: spec.scheduler == MemoryScheduler::Atlas,
            streak_cap: spec.blacklist_streak,
            history_permille: spec.service_history_permille.into(),
            every,
            starvation,
            last: NO_SOURCE,
            streak: 0,
            services: Vec::new(),
            next: every,
            age_at_look: 0,
            next_look: starvation,
        }))
    }

    /// At an edge: clears the blacklist, ends a quantum, favours reads that have waited too long.
    #[inline]
    pub(super) fn look<T>(&mut self, reads: &mut RequestQueue<T>, now: Time) {
        if now >= self.next {
            self.end_interval(reads, now);
        }
        if now >= self.next_look {
            let age = std::mem::replace(&mut self.age_at_look, reads.next_age());
            reads.ranks_mut().favour_before(age);
            self.next_look = now + self.starvation;
        }
    }

    fn end_interval<T>(&mut self, reads: &mut RequestQueue<T>, now: Time) {
        let passed = (now - self.next) / self.every + 1;
        self.next += passed * self.every;
        if !self.by_service {
            return reads.ranks_mut().clear();
        }
        for _ in 0..passed {
            for own in &mut self.services {
                let of_before = own.total * self.history_permille;
                *own = Service { now: 0, total: (of_before + own.now * (1000 - self.history_permille)) / 1000 };
            }
            // What passed without a read changes nothing any more.
            if self.services.iter().all(|own| own.total == 0) {
                break;
            }
        }
        let ranks = reads.ranks_mut();
        for (source, own) in self.services.iter().enumerate() {
            let rank = self.services.iter().filter(|other| other.total < own.total).count();
            ranks.put(source as u16, rank as u16);
        }
    }

    /// A read of a source is served.
    pub(super) fn served<T>(&mut self, reads: &mut RequestQueue<T>, source: u16) {
        if self.by_service || source == NO_SOURCE {
            return;
        }
        self.streak = if source == self.last { self.streak + 1 } else { 1 };
        self.last = source;
        if self.streak >= self.streak_cap {
            self.streak = 0;
            reads.ranks_mut().put(source, 1);
        }
    }

    /// A source has service for so long.
    pub(super) fn serve(&mut self, source: u16, duration: Time) {
        if !self.by_service || source == NO_SOURCE {
            return;
        }
        let source = usize::from(source);
        if source >= self.services.len() {
            self.services.resize(source + 1, Service::default());
        }
        self.services[source].now += duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::Direction;

    fn ranking(scheduler: MemoryScheduler) -> (Ranking, RequestQueue<()>) {
        let spec = ControllerSpec {
            scheduler,
            blacklist_clear_cycles: 100,
            service_quantum_cycles: 100,
            starvation_cycles: 1000,
            ..ControllerSpec::small()
        };
        let ranking = Ranking::of(&spec, Clock::of_period(1)).expect("it ranks");
        (*ranking, RequestQueue::new(Direction::Read, spec.order(true), 1))
    }

    fn ranks(queue: &mut RequestQueue<()>, sources: [u16; 3]) -> [u64; 3] {
        sources.map(|source| queue.ranks_mut().rank_of(source))
    }

    #[test]
    fn four_reads_in_a_row_blacklist_their_source_until_it_is_cleared() {
        let (mut ranking, mut queue) = ranking(MemoryScheduler::Bliss);
        for source in [7, 7, 7, 2, 7, 7, 7] {
            ranking.served(&mut queue, source);
        }
        assert_eq!(ranks(&mut queue, [2, 7, 9]), [1; 3], "three, and three");
        // What is of no source is not between them.
        ranking.served(&mut queue, NO_SOURCE);
        ranking.served(&mut queue, 7);
        assert_eq!(ranks(&mut queue, [2, 7, 9]), [1, 2, 1]);
        ranking.look(&mut queue, 99);
        assert_eq!(ranks(&mut queue, [2, 7, 9]), [1, 2, 1], "a cycle early");
        ranking.look(&mut queue, 350);
        assert_eq!((ranks(&mut queue, [2, 7, 9]), ranking.next), ([1; 3], 400));
    }

    #[test]
    fn the_source_with_least_service_comes_first_and_older_quanta_count_less() {
        let (mut ranking, mut queue) = ranking(MemoryScheduler::Atlas);
        ranking.serve(0, 800);
        ranking.serve(2, 80);
        assert_eq!(ranks(&mut queue, [0, 1, 2]), [1; 3], "before the first quantum ends");
        ranking.look(&mut queue, 100);
        assert_eq!(ranks(&mut queue, [0, 1, 2]), [3, 1, 2]);
        // 100 and 10 of before are 87 and 8; 720 more are 90.
        ranking.serve(2, 720);
        ranking.look(&mut queue, 200);
        assert_eq!(ranking.services.iter().map(|own| own.total).collect::<Vec<_>>(), [87, 0, 98]);
        assert_eq!(ranks(&mut queue, [0, 1, 2]), [2, 1, 3]);
        // A long time without reads forgets all.
        ranking.look(&mut queue, 1_000_000);
        assert_eq!((ranks(&mut queue, [0, 1, 2]), ranking.next), ([1; 3], 1_000_100));
    }
}
