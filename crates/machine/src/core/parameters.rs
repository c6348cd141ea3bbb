//! Parameters of a core and of its L1 data cache.

use durawarp_base::choice;
use durawarp_base::spec;

use crate::replacement::Replacement;

choice! {
    /// Which orders of memory accesses other cores may see.
    pub enum Consistency {
        /// Total store order: loads seem to bind in program order, stores become visible in it.
        Tso = "tso",
        /// RISC-V's weak memory order: loads bind as lines come; stores become visible in program order.
        Rvwmo = "rvwmo",
    }
}

spec! {
    /// Parameters of every core. With several harts each has its even share of window and queues.
    pub struct CoreSpec {
        /// Cores.
        count: u32 where 1..=64,
        /// Threads that a core runs at once.
        harts: u32 where 1..=2,
        /// Instructions dispatched, and retired, in a cycle.
        width: u32 where 1..=16,
        /// Entries of the reorder buffer.
        rob_entries: u32 where 4..=1024,
        /// Entries of the issue queue: instructions whose operands memory has yet to bring.
        iq_entries: u32 where 4..=1024,
        /// Entries of the load queue: loads that have not retired.
        lq_entries: u32 where 4..=1024,
        /// Entries of the store queue: stores that are not in the L1 yet.
        sq_entries: u32 where 4..=1024,
        /// Lines under way to the L1.
        mshr_entries: u32 where 1..=256,
        /// Two-bit counters of the branch predictor (gshare).
        predictor_entries: u32 where 16..=1048576,
        /// Cycles from a resolved branch that was predicted wrongly to the dispatch of the right instruction.
        redirect_cycles: u32 where 1..=100,
        /// Cycles of an atomic operation on a line in the L1.
        amo_cycles: u32 where 1..=1000,
        /// Cycles for which an `lr` keeps its line from others, unless its `sc` comes first.
        lr_hold_cycles: u32 where 1..=10000,
        /// Cycles from a store's bytes to a load that takes them from the store queue.
        forward_cycles: u32 where 1..=100,
        /// Cycles of an integer multiplication.
        mul_cycles: u32 where 1..=100,
        /// Cycles of a division or square root.
        div_cycles: u32 where 1..=1000,
        /// Cycles of other floating-point operations.
        fp_cycles: u32 where 1..=100,
        /// Memory order that other cores see: tso or rvwmo.
        consistency: Consistency,
        /// Every `fence` is a `pm.ofence`, too.
        fence_persists: bool,
        /// Cycles of execution that one event of the simulation covers; at most llc.request_cycles.
        batch_cycles: u32 where 1..=64,
    }
}

spec! {
    /// Parameters of every core's L1 data cache.
    pub struct L1dSpec {
        /// Capacity, in KiB.
        kb: u32 where 1..=4096,
        /// Ways of a set.
        ways: u32 where 1..=64,
        /// Which line of a full set leaves for another: lru, fifo, random, srrip (2 bits, hit priority) or
        /// tree_plru.
        replacement: Replacement,
        /// Seed of random replacement.
        replacement_seed: u32,
        /// Cycles from a load's address to its value, when the line is there.
        hit_cycles: u32 where 1..=100,
    }
}
