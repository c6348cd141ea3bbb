//! Parameters and counters of clients.

use crate::verbs::NetworkSpec;
use durawarp_base::choice;
use durawarp_base::counters;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

choice! {
    /// How a client persists the epochs of a transaction.
    pub enum Protocol {
        /// The next epoch is posted when the one before it is acknowledged.
        Sync = "sync",
        /// All epochs are posted at once; the last alone is acknowledged.
        Bsp = "bsp",
    }
}

choice! {
    /// When a client begins its next transaction.
    pub enum Arrivals {
        /// So long after the last one is committed.
        Closed = "closed",
        /// So long after the last one has begun, whether or not it is committed.
        Open = "open",
    }
}

choice! {
    /// Where a client's epochs lie in its memory.
    pub enum Addresses {
        /// One behind the other, from the start again at the end.
        Log = "log",
        /// Drawn.
        Random = "random",
    }
}

spec! {
    /// Parameters of clients, which all do the same with other draws.
    pub struct ClientSpec {
        /// How the epochs of a transaction are persisted: sync or bsp.
        protocol: Protocol,
        /// Transactions of each client; 0 for as many as it begins before the server's program is over.
        transactions: u32 where 0..=100000000,
        /// Of 100 transactions, those that write; the others do not come to the server.
        write_percent: u32 where 0..=100,
        /// Epochs of a transaction that writes: verbs.
        epochs_per_tx: u32 where 1..=1024,
        /// Of these, from the first on, that are written without being made durable (rdma_write).
        plain_epochs: u32 where 0..=1024,
        /// Bytes of an epoch.
        bytes_per_epoch: u32 where 64..=1048576,
        /// Where epochs lie in a client's memory, at multiples of their size: one behind the other, or drawn.
        addresses: Addresses,
        /// What a client computes before each transaction.
        compute_ns: Nanos,
        /// From when on it computes: from the commit of the one before (closed), or from its begin (open).
        arrivals: Arrivals,
        /// A client that has waited so long for an acknowledgement aborts the log and persists the
        /// transaction again; 0 for never.
        retry_us: u32 where 0..=1000000000,
        /// Persistent memory of a client at the server, in KiB.
        region_kb: u32 where 4..=1048576,
        /// Seed of what is written, and where.
        seed: u32,
    }
}

impl ClientSpec {
    /// Bytes of a client's persistent memory at the server.
    pub fn region_bytes(&self) -> u64 {
        u64::from(self.region_kb) << 10
    }

    /// Epochs that are posted together.
    pub(crate) fn epochs_at_once(&self) -> u32 {
        if self.protocol == Protocol::Sync { 1 } else { self.epochs_per_tx }
    }

    /// What a network takes from the first of these to an acknowledgement of the last, in ps.
    pub(crate) fn network_ps(&self, network: &NetworkSpec) -> u64 {
        let bytes = u64::from(self.epochs_at_once()) * u64::from(self.bytes_per_epoch);
        2 * network.latency_ns.ps + bytes * 1_000_000 / u64::from(network.mb_s)
    }
}

counters! {
    /// What a client counted.
    pub struct ClientCounters {
        /// Transactions committed (transactions)
        transactions,
        /// Of these, that wrote (transactions)
        writes,
        /// Transactions that were persisted again, as no acknowledgement had come (retries)
        retries,
        /// Acknowledgements that came when nobody waited for them any more (acknowledgements)
        late_acks,
        /// Verbs posted (verbs)
        verbs,
        /// Bytes posted (B)
        bytes,
        /// Time from the first verb of a transaction to its commit, summed (ns)
        latency_ns,
        /// Time until the last transaction was committed, summed (ns)
        busy_ns,
    }
}
