//! A warp scheduler: which ready warp issues next.
//!
//! Warps hold *ranks* in the order of their age, so a mask of ranks is a priority queue: the oldest is the
//! lowest bit. Ready warps are kept in one mask a unit, so that a busy unit hides its warps without touching
//! them.
//!
//! Source: AGPM Table IV (4 GTO schedulers); GTO as in Rogers et al., MICRO'12: the warp that issued last
//! goes on until it cannot, then the oldest. LRR as in GPGPU-Sim: the next ready one after the last, in slot
//! order. GTY: greedy, then the youngest, as Huerta et al. (MICRO 2025) found it on cards of Turing, Ampere
//! and Blackwell; their CGGTY heeds the compiler's stall counters, for which scoreboards stand here: PTX has
//! none. Invariants: a warp is in at most one ready mask; ranks keep their order over compaction.

use durawarp_base::choice;
use durawarp_checkpoint::{state, value};
use durawarp_kernel::ir::Class;

choice! {
    /// How a scheduler picks among ready warps.
    pub enum Policy {
        /// Greedy then oldest.
        Gto = "gto",
        /// Greedy then youngest.
        Gty = "gty",
        /// Loose round robin.
        Lrr = "lrr",
    }
}

/// What executes an instruction: the units that one scheduler issues to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Unit {
    /// Single-precision and integer pipes, moves, branches ("INT goes to SP" in SM6).
    Core = 0,
    /// Double precision.
    Fp64 = 1,
    /// Special functions.
    Sfu = 2,
    /// Load-store unit: memory, shuffles excluded.
    Memory = 3,
    /// Tensor cores.
    Tensor = 4,
}

value!(choice Unit { Core, Fp64, Sfu, Memory, Tensor });

/// Places for units: a power of two, so that to find one takes no division.
pub const UNITS: usize = 8;

impl Unit {
    /// The unit of an instruction class.
    pub const fn of(class: Class) -> Unit {
        match class {
            Class::Fp64 | Class::Fp64Div => Unit::Fp64,
            Class::Sfu => Unit::Sfu,
            Class::Mem => Unit::Memory,
            Class::Matrix | Class::MatrixHalf => Unit::Tensor,
            Class::Int
            | Class::IntMul
            | Class::IntDiv
            | Class::Logic
            | Class::Compare
            | Class::MinMax
            | Class::Convert
            | Class::Fp32
            | Class::Fp32Div
            | Class::Shuffle
            | Class::Vote
            | Class::Const
            | Class::Control => Unit::Core,
        }
    }
}

/// Takes the first unit out of a mask that is not empty.
#[inline]
pub fn next_unit(mask: &mut u8) -> usize {
    let unit = u32::from(*mask).trailing_zeros() as usize % UNITS;
    *mask &= *mask - 1;
    unit
}

/// A warp's place in the age order of its scheduler.
pub type Rank = u8;

/// Places in that order.
const RANKS: usize = 64;

/// What a scheduler may pick from in a cycle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Candidates {
    /// Ranks of the ready warps that may issue.
    pub mask: u64,
    /// How many they are.
    pub count: u32,
    /// Ready warps that a busy unit keeps back; of the load-store unit, all that it keeps back.
    pub on_unit: u32,
    pub on_memory: u32,
}

/// One scheduler of an SM.
#[derive(Debug, Clone)]
pub struct Scheduler {
    policy: Policy,
    slot_of_rank: [u8; RANKS],
    /// The unit that a warp's next instruction goes to, while it is ready.
    unit_of_rank: [u8; RANKS],
    held: u64,
    next_rank: u32,
    ready: [u64; UNITS],
    /// Warps in each of these masks: kept, as to count them at every cycle takes longer than all else here.
    waiting: [u32; UNITS],
    /// Units with ready warps, one bit each.
    wanted: u8,
    /// Cycle from which each unit takes another instruction.
    pub free_at: [u32; UNITS],
    last: Option<Rank>,
}

state!(Scheduler { saved: slot_of_rank, unit_of_rank, held, next_rank, ready, waiting, wanted, free_at, last; kept: policy });

impl Scheduler {
    /// A scheduler without warps.
    pub fn new(policy: Policy) -> Self {
        Scheduler {
            policy,
            slot_of_rank: [0; RANKS],
            unit_of_rank: [0; RANKS],
            held: 0,
            next_rank: 0,
            ready: [0; UNITS],
            waiting: [0; UNITS],
            wanted: 0,
            free_at: [0; UNITS],
            last: None,
        }
    }

    /// Takes in a warp as the youngest; `moved` hears of every warp whose rank changes to make room.
    ///
    /// # Panics
    /// When 64 warps are held already.
    pub fn admit(&mut self, slot: u8, mut moved: impl FnMut(u8, Rank)) -> Rank {
        if self.next_rank == 64 {
            self.compact(&mut moved);
        }
        let rank = self.next_rank as Rank;
        assert!(rank < 64, "a scheduler holds at most 64 warps");
        self.next_rank += 1;
        self.held |= 1 << rank;
        self.slot_of_rank[usize::from(rank)] = slot;
        rank
    }

    fn compact(&mut self, moved: &mut impl FnMut(u8, Rank)) {
        let old = self.clone();
        self.held = 0;
        self.ready = [0; UNITS];
        self.next_rank = 0;
        self.last = None;
        let mut left = old.held;
        while left != 0 {
            let from = left.trailing_zeros();
            left &= left - 1;
            let to = self.next_rank;
            self.next_rank += 1;
            self.held |= 1 << to;
            for (new, old) in self.ready.iter_mut().zip(old.ready) {
                *new |= (old >> from & 1) << to;
            }
            if old.last == Some(from as Rank) {
                self.last = Some(to as Rank);
            }
            self.slot_of_rank[to as usize] = old.slot_of_rank[from as usize];
            self.unit_of_rank[to as usize] = old.unit_of_rank[from as usize];
            moved(self.slot_of_rank[to as usize], to as Rank);
        }
    }

    /// Lets a warp go.
    pub fn release(&mut self, rank: Rank) {
        self.held &= !(1 << rank);
        if self.last == Some(rank) {
            self.last = None;
        }
        if self.held == 0 {
            self.next_rank = 0;
        }
    }

    /// A warp's next instruction can go to `unit`.
    #[inline]
    pub fn set_ready(&mut self, rank: Rank, unit: Unit) {
        let ready = &mut self.ready[unit as usize];
        self.waiting[unit as usize] += u32::from(*ready >> rank & 1 == 0);
        *ready |= 1 << rank;
        self.unit_of_rank[usize::from(rank) % RANKS] = unit as u8;
        self.wanted |= 1 << unit as u8;
    }

    /// Units that have ready warps, one bit each.
    #[inline]
    pub fn wanted(&self) -> u8 {
        self.wanted
    }

    /// How many ready warps a unit has.
    #[inline]
    pub fn waiting(&self, unit: usize) -> u32 {
        self.waiting[unit]
    }

    /// Ready warps whose unit takes an instruction at `cycle`, and how many others there are.
    #[inline]
    pub fn candidates(&self, cycle: u32, memory_open: bool) -> Candidates {
        let mut found = Candidates::default();
        let mut wanted = self.wanted;
        while wanted != 0 {
            let unit = next_unit(&mut wanted);
            let waiting = self.waiting[unit];
            let memory = unit == Unit::Memory as usize;
            if self.free_at[unit] <= cycle && (!memory || memory_open) {
                found.mask |= self.ready[unit];
                found.count += waiting;
            } else if memory {
                found.on_memory = waiting;
            } else {
                found.on_unit += waiting;
            }
        }
        found
    }

    /// Picks among the `candidates` (not empty), takes it out of its ready mask, and returns its slot.
    #[inline]
    pub fn pick(&mut self, candidates: u64) -> u8 {
        debug_assert!(candidates != 0);
        let rank = match (self.policy, self.last) {
            (Policy::Gto | Policy::Gty, Some(last)) if candidates >> last & 1 == 1 => last,
            (Policy::Gty, _) => 63 - candidates.leading_zeros() as Rank,
            (Policy::Lrr, Some(last)) => {
                let after = candidates & !(u64::MAX >> (63 - last));
                (if after != 0 { after } else { candidates }).trailing_zeros() as Rank
            }
            _ => candidates.trailing_zeros() as Rank,
        };
        self.last = Some(rank);
        self.take_out(rank, usize::from(self.unit_of_rank[usize::from(rank) % RANKS]) % UNITS);
        self.slot_of_rank[usize::from(rank) % RANKS]
    }

    /// Nothing issues before `cycle`.
    pub fn hold(&mut self, cycle: u32) {
        self.free_at.iter_mut().for_each(|free_at| *free_at = cycle.max(*free_at));
    }

    /// Takes a warp out of the ready masks.
    #[inline]
    pub fn unready(&mut self, rank: Rank) {
        let unit = usize::from(self.unit_of_rank[usize::from(rank) % RANKS]) % UNITS;
        if self.ready[unit] >> rank & 1 == 1 {
            self.take_out(rank, unit);
        }
    }

    /// Takes a warp out of the ready mask that it is in.
    #[inline]
    fn take_out(&mut self, rank: Rank, unit: usize) {
        debug_assert!(self.ready[unit] >> rank & 1 == 1);
        self.ready[unit] &= !(1 << rank);
        self.waiting[unit] -= 1;
        self.wanted &= !(u8::from(self.ready[unit] == 0) << unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_warps(policy: Policy, n: u8) -> Scheduler {
        let mut s = Scheduler::new(policy);
        for slot in 0..n {
            s.admit(slot, |_, _| panic!("no warp moves"));
        }
        s
    }

    fn issue(s: &mut Scheduler, cycle: u32) -> Option<u8> {
        let candidates = s.candidates(cycle, true).mask;
        (candidates != 0).then(|| s.pick(candidates))
    }

    #[test]
    fn gto_stays_with_a_warp_until_it_stalls_then_takes_the_oldest() {
        let mut s = with_warps(Policy::Gto, 4);
        for rank in [3, 2, 1] {
            s.set_ready(rank, Unit::Core);
        }
        assert_eq!(issue(&mut s, 0), Some(1));
        s.set_ready(0, Unit::Core);
        s.set_ready(1, Unit::Core);
        assert_eq!(issue(&mut s, 1), Some(1), "greedy");
        assert_eq!(issue(&mut s, 2), Some(0), "stalled: the oldest");
    }

    #[test]
    fn gty_stays_with_a_warp_until_it_stalls_then_takes_the_youngest() {
        let mut s = with_warps(Policy::Gty, 4);
        for rank in [0, 1, 2] {
            s.set_ready(rank, Unit::Core);
        }
        assert_eq!(issue(&mut s, 0), Some(2));
        s.set_ready(3, Unit::Core);
        s.set_ready(2, Unit::Core);
        assert_eq!(issue(&mut s, 1), Some(2), "greedy");
        assert_eq!([issue(&mut s, 2), issue(&mut s, 3), issue(&mut s, 4)], [Some(3), Some(1), Some(0)]);
    }

    #[test]
    fn lrr_goes_round() {
        let mut s = with_warps(Policy::Lrr, 3);
        let mut order = Vec::new();
        for cycle in 0..6 {
            for rank in 0..3 {
                s.set_ready(rank, Unit::Core);
            }
            order.extend(issue(&mut s, cycle));
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_busy_unit_hides_its_warps_until_its_interval_is_over() {
        let mut s = with_warps(Policy::Gto, 2);
        s.set_ready(0, Unit::Sfu);
        s.free_at[Unit::Sfu as usize] = 8;
        assert_eq!(issue(&mut s, 7), None, "early");
        assert_eq!(issue(&mut s, 8), Some(0), "on time");
    }

    #[test]
    fn ranks_keep_their_order_when_they_are_compacted() {
        let mut s = Scheduler::new(Policy::Gto);
        let mut rank_of = [None; 8];
        for slot in 0..8u8 {
            rank_of[usize::from(slot)] = Some(s.admit(slot, |_, _| ()));
        }
        for round in 0..100u32 {
            let slot = (round * 3 % 8) as u8;
            s.release(rank_of[usize::from(slot)].unwrap());
            let mut moves = Vec::new();
            let rank = s.admit(slot, |slot, rank| moves.push((slot, rank)));
            for (slot, rank) in moves {
                rank_of[usize::from(slot)] = Some(rank);
            }
            rank_of[usize::from(slot)] = Some(rank);
            assert!(rank_of.iter().flatten().all(|&r| r <= rank), "the newest is the youngest");
        }
    }
}
