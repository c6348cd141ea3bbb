//! Parameters of a server's network interface, and what it counts.

use durawarp_base::counters;
use durawarp_base::spec;

spec! {
    /// Parameters of the network interface of a server.
    pub struct NicSpec {
        /// Data direct I/O: lines go to the shared cache, and persist from there. Else they go past it.
        ddio: bool,
    }
}

counters! {
    /// What the NIC counted.
    pub struct NicCounters {
        /// Packets of verbs received (packets)
        packets,
        /// Verbs received to their last byte (verbs)
        verbs,
        /// Bytes received (B)
        bytes,
        /// Lines that went to persist buffers (lines)
        lines,
        /// Verbs that are durable (verbs)
        durable_verbs,
        /// Acknowledgements sent (acknowledgements)
        acks,
        /// Packets after which lines waited for room in a buffer, or for the shared cache (packets)
        full_buffers,
        /// Lines that the shared cache got (lines)
        cached_lines,
        /// Of these, of verbs that are not persistent (lines)
        plain_lines,
        /// Replies to verbs that are not persistent (replies)
        replies,
    }
}
