//! Parameters of persistency: what survives a power failure, what ordinary fences mean for it, and how the
//! two ways to persistent memory, a store and `clwb` through the caches and a store past them, are read.
//!
//! Source: AGPM section II for the ways and where each is durable. The paper does not say what its simulator
//! did: PACT 2019's public header makes `CLWB` of a streaming store, which ends in GPGPU-Sim's L2 (`clwb =
//! "l2"`), and its `st.wt` is answered after the DRAM's queue (`past_ack = "media"`). Readings beside the
//! defaults are for experiments; the crash oracle judges each by what it leaves behind.

use durawarp_base::choice;
use durawarp_base::spec;
use durawarp_persist::vocab::Domain;

choice! {
    /// What an ordinary memory fence of PTX does for persistency.
    pub enum MembarRule {
        /// Orders accesses; durability is not its business.
        Fence = "fence",
        /// Waits for durability too, as `pm.sfence` does.
        Sfence = "sfence",
    }
}

choice! {
    /// Where `pm.clwb` and `pm.clwb.log` are done with.
    pub enum Clwb {
        /// The L2 writes the line's dirty bytes to memory and acknowledges when they are durable.
        Write = "write",
        /// The L2 acknowledges when the line's bytes have come to it, and writes nothing: what is fenced so
        /// is durable only where the L2 survives.
        L2 = "l2",
    }
}

choice! {
    /// When a non-temporal store is acknowledged, where the domain is `adr`.
    pub enum PastAck {
        /// When its controller has accepted it.
        Accept = "accept",
        /// When its cells are written.
        Media = "media",
    }
}

choice! {
    /// What a non-temporal store does to a copy of its line in the L1.
    pub enum PastL1 {
        /// The copy leaves, as it does for a store through the caches.
        Evict = "evict",
        /// The copy takes the store's bytes.
        Update = "update",
    }
}

choice! {
    /// What a non-temporal store does to a copy of its line in the L2.
    pub enum PastL2 {
        /// The copy takes the store's bytes.
        Update = "update",
        /// The copy leaves; other dirty bytes of it are written to memory.
        Invalidate = "invalidate",
    }
}

spec! {
    /// Persistency of the machine.
    pub struct PersistSpec {
        /// What survives a power failure: media, adr (and write-pending queues), eadr (and the L2).
        domain: Domain,
        /// What `membar.gl` (fence at GPU scope) means for persistency: fence or sfence.
        membar_gl: MembarRule,
        /// What `membar.sys` (fence at system scope) means for persistency: fence or sfence.
        membar_sys: MembarRule,
        /// Where a write-back that a program asks for (`pm.clwb`) is done with: write (memory) or l2.
        clwb: Clwb,
        /// When a non-temporal store is acknowledged in domain adr: accept (by its controller) or media
        /// (cells written).
        past_ack: PastAck,
        /// What a non-temporal store does to a copy in the L1: evict or update.
        past_l1: PastL1,
        /// What a non-temporal store does to a copy in the L2: update or invalidate.
        past_l2: PastL2,
    }
}
