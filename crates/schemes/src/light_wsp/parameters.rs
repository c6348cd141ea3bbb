//! Parameters of LightWSP, what is wrong with their values together, and what follows from them.
//!
//! Source: Table I and sections III and IV of the paper; the readings L1 to L14 are in the head of
//! [`light_wsp`](super). The defaults, with the source of each, are in `schemes/light_wsp.toml`.

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;
use durawarp_persist::handler::VictimSearch;
use durawarp_persist::vocab::BoundaryAt;

use super::messages::Tag;

choice! {
    /// Among whom regions are ordered (L1).
    pub enum RegionOrder {
        /// All of the machine: one order.
        Global = "global",
        /// Those of an SM: an order each. Sound where CTAs of different SMs do not communicate in a kernel;
        /// CTAs end when their regions have committed.
        Sm = "sm",
    }
}

choice! {
    /// Whose stores a region has (L14).
    pub enum RegionOwner {
        /// A warp's.
        Warp = "warp",
        /// Those of a CTA's warps between boundaries that they pass together.
        Cta = "cta",
    }
}

choice! {
    /// When a controller goes on to the next region ("What a power failure leaves" in `light_wsp/gate.rs`).
    pub enum Commit {
        /// When all controllers have written this one's stores: flush-ACKs of all others have come.
        Acked = "acked",
        /// When it has written this one's stores itself: exchanges of ACKs overlap. Ours.
        Pipelined = "pipelined",
        /// The same, and the first controller alone gathers bdry-ACKs and tells the others. Ours.
        Sequencer = "sequencer",
    }
}

choice! {
    /// When a region's ID is drawn (L2).
    pub enum IdDraw {
        /// When it stores first; of an atomic's region, in the order in which atomics are performed.
        AtSyncCompletion = "at_sync_completion",
        /// At the boundary before it, as the paper says.
        Paper = "paper",
    }
}

choice! {
    /// Which cache keeps a dirty line while copies of it are on their way.
    pub enum Snoop {
        /// The L2, or the home slice of a line: it counts copies. Ours: a line that another core has taken is
        /// kept, too.
        Count = "count",
        /// The L1 that the line would leave for room: it searches its core's own buffer. The paper's. What
        /// leaves by a probe is not searched for, and homes drop what they have.
        Feb = "feb",
    }
}

choice! {
    /// At how many lines of its set one is looked for that may leave, where copies of the first are on their
    /// way.
    pub enum Victims {
        /// At all.
        Full = "full",
        /// At half of them.
        Half = "half",
        /// At the first: it waits.
        Zero = "zero",
        /// Buffers are not snooped: loads may be stale (the paper's Fig. 6).
        Stale = "stale",
    }
}

choice! {
    /// What a read does that finds some of its bytes in a WPQ (L4).
    pub enum WpqHit {
        /// It takes them from there.
        Merge = "merge",
        /// It waits until they are written, and is repeated, where that is sure to come; else it takes them.
        Wait = "wait",
    }
}

choice! {
    /// How many words a checkpoint store of a warp writes. Ours: the paper's registers are 8 bytes of one
    /// thread.
    pub enum Checkpoints {
        /// One for each lane.
        Lanes = "lanes",
        /// One for all lanes where they share the register's value, as far as that is sound; else one for
        /// each lane.
        UniformOnce = "uniform_once",
    }
}

spec! {
    /// Parameters of LightWSP.
    pub struct LightWspSpec {
        /// Entries of an SM's front-end buffer.
        feb_entries: u32 where 1..=65536,
        /// Entries of a controller's gated write-pending queue.
        wpq_entries: u32 where 1..=1048576,
        /// Bytes of an entry of either, on the persist path too: a power of two.
        entry_bytes: u32 where 8..=128,
        /// From an SM to a controller, and back.
        path_latency_ns: Nanos,
        /// Bandwidth of an SM's persist path, in MB/s.
        path_mb_s: u32 where 1..=100_000_000,
        /// From a controller to another.
        ack_latency_ns: Nanos,
        /// More for each controller that lies between: they stand in a row, SMs before the first.
        controller_step_ns: Nanos,
        /// Between the sequencer and SMs, one way.
        sequencer_latency_ns: Nanos,
        /// Among whom regions are ordered.
        order: RegionOrder,
        /// Whose stores a region has.
        owner: RegionOwner,
        /// When a controller goes on to the next region.
        commit: Commit,
        /// When a region's ID is drawn.
        id_draw: IdDraw,
        /// Where threads of CPU cores that synchronise end regions, beside atomics. GPUs have no such choice.
        boundary_at: BoundaryAt,
        /// Bits of a region's ID: half of all IDs may be in use.
        id_bits: u32 where 4..=16,
        /// Most words of 8 bytes that a lane stores in a region.
        threshold_stores: u32 where 2..=65536,
        /// Who looks whether a line that leaves has copies on their way. On GPUs: count.
        snoop: Snoop,
        /// Where a line without copies on their way is looked for.
        victims: Victims,
        /// What a read does that finds some of its bytes in a WPQ.
        wpq_hit: WpqHit,
        /// Unroll loops whose number of turns is known.
        unroll: bool,
        /// Unroll other loops with their exit conditions.
        speculative_unroll: bool,
        /// Most copies of a loop's body.
        unroll_factor: u32 where 1..=64,
        /// Leave out checkpoints of what can be computed.
        prune: bool,
        /// How many words a checkpoint store of a warp writes.
        checkpoints: Checkpoints,
    }
}

impl LightWspSpec {
    /// What is wrong with the values together: the key to blame, and why.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if !self.entry_bytes.is_power_of_two() {
            faults.push(("entry_bytes", format!("{} is not a power of two", self.entry_bytes)));
        }
        if self.order == RegionOrder::Sm && self.id_draw == IdDraw::Paper {
            let why = "the paper's draw is from one counter: order = \"global\"".to_owned();
            faults.push(("id_draw", why));
        }
        if self.owner == RegionOwner::Cta && self.id_draw == IdDraw::Paper {
            faults.push(("id_draw", "the paper's draw is a thread's at its boundary: owner = \"warp\"".to_owned()));
        }
        for (key, link) in [
            ("path_latency_ns", self.path_latency_ns),
            ("ack_latency_ns", self.ack_latency_ns),
            ("sequencer_latency_ns", self.sequencer_latency_ns),
        ] {
            if link.ps == 0 {
                faults.push((key, "a link takes time".to_owned()));
            }
        }
        faults
    }

    /// How many ways are searched by caches that look in this way; none where they do not.
    pub(super) fn search(&self, snoop: Snoop) -> Option<VictimSearch> {
        let search = match self.victims {
            Victims::Full => Some(VictimSearch::Full),
            Victims::Half => Some(VictimSearch::Half),
            Victims::Zero => Some(VictimSearch::First),
            Victims::Stale => None,
        };
        search.filter(|_| self.snoop == snoop)
    }

    /// Entries that bytes of a line take.
    pub(super) fn entries_of(&self, mask: u128) -> u32 {
        let bytes = self.entry_bytes;
        let entry = if bytes == 128 { u128::MAX } else { (1 << bytes) - 1 };
        (0..128 / bytes).filter(|at| mask >> (at * bytes) & entry != 0).count() as u32
    }

    /// IDs that may be in use at a controller, in an order: half of all, so that serial numbers compare.
    pub(super) fn window(&self) -> u32 {
        1 << (self.id_bits - 1)
    }

    /// IDs that an SM of so many may have in use.
    pub(super) fn share(&self, sms: u16) -> u32 {
        // SMs hear of commits from the first controller: another may be one region behind.
        let ids = self.window() - 1;
        match self.order {
            RegionOrder::Global => ids / u32::from(sms.max(1)),
            RegionOrder::Sm => ids,
        }
    }

    /// The ID of a region by its number in its order.
    pub(super) fn id(&self, number: u32) -> u16 {
        (number & ((1 << self.id_bits) - 1)) as u16
    }

    /// A region by its order and its number there.
    pub(super) fn tag(&self, order: u16, number: u32) -> Tag {
        Tag { order, id: self.id(number), number }
    }
}
