//! The simulated CPU: out-of-order cores with private L1s, a shared cache in home slices, memory controllers,
//! and the operating system as a component.
//!
//! ```text
//!  OS ──calls──> core 0..n  [window, store buffer, L1D]
//!                  │ Get, Put, Clean        ▲ Data, Probe
//!                  ▼                        │
//!              home slices 0..m [shared cache, directory] ──reads/writes──> memory controllers (DRAM and NVM)
//! ```
//! With clients ([`super::client`]) the machine is a server with a NIC ([`super::nic`]), or several of them
//! ([`super::nodes`]). Controllers, media
//! and links of schemes are those of the GPU ([`crate`]). A machine has one kind of compute: SMs or
//! cores. Source: the machines of LightWSP (Table I) and of persistence parallelism (Table III).

use durawarp_base::machine_spec;
use durawarp_base::spec;
use durawarp_base::spec::Megahertz;
use durawarp_engine::Timebase;
use durawarp_riscv::memory::{MemoryPlace, Windows};
use durawarp_riscv::verbs::Peers;

use super::client::{Arrivals, ClientSpec, Protocol};
use super::coherence::CPU_LINE_BYTES;
use super::core::{CoreSpec, L1dSpec};
use super::device::Device;
use super::energy::CpuEnergySpec;
use super::home::LlcSpec;
use super::mapping::AddressMap;
use super::media::{BusSpec, MediaSpec, NvmSpec};
use super::memory_controller::{ControllerSpec, DramCacheSpec, LINK_WITHOUT_LATENCY};
use super::nic::NicSpec;
use super::nodes::NodesSpec;
use super::os::OsSpec;
use super::persistence::PersistSpec;
use super::verbs::NetworkSpec;

spec! {
    /// Clock domains.
    pub struct CpuClockSpec {
        /// Cores and home slices.
        core_mhz: Megahertz,
        /// Memory controllers: command clock and data bus.
        memory_mhz: Megahertz,
    }
}

machine_spec! {
    /// Every parameter of a machine of CPU cores, one table a component.
    pub struct CpuSpec {
        /// Clock domains.
        clock: CpuClockSpec,
        /// Cores.
        core: CoreSpec,
        /// L1 data caches.
        l1d: L1dSpec,
        /// The shared cache: home slices.
        llc: LlcSpec,
        /// The operating system.
        os: OsSpec,
        /// Memory controllers.
        controller: ControllerSpec,
        /// The cache in DRAM in front of persistent memory.
        dram_cache: DramCacheSpec,
        /// A channel's data bus.
        bus: BusSpec,
        /// DRAM devices.
        dram: MediaSpec,
        /// NVM devices.
        nvm: NvmSpec,
        /// Persistency.
        persist: PersistSpec,
        /// Servers and clients.
        nodes: NodesSpec,
        /// The network between servers and their clients.
        network: NetworkSpec,
        /// The network interfaces of servers.
        nic: NicSpec,
        /// Clients.
        client: ClientSpec,
        /// Energy of events.
        energy: CpuEnergySpec,
    }
}

impl CpuSpec {
    /// The machine's tick rate; `None` when the clocks have no common multiple that fits.
    pub fn timebase(&self) -> Option<Timebase> {
        Timebase::of_khz(&self.clocks().map(|(_, khz)| khz))
    }

    fn clocks(&self) -> [(&'static str, u64); 2] {
        [("clock.core_mhz", self.clock.core_mhz.khz), ("clock.memory_mhz", self.clock.memory_mhz.khz)]
    }

    /// Peak bandwidth of the data buses of all channels of a server, in bytes per second.
    pub fn peak_memory_bandwidth(&self) -> u64 {
        let per_channel = u64::from(self.bus.bytes_per_cycle) * self.clock.memory_mhz.khz * 1000;
        per_channel * u64::from(self.controller.channels)
    }

    /// Bytes that caches of all servers take of the host: data, tags and states of full ones. Measured: 16 MB
    /// a server whose caches have 8 MB (`broi-cluster`).
    pub fn cache_bytes(&self) -> u64 {
        let [l1s, shared] = [(self.core.count, self.l1d.kb), (self.llc.slices, self.llc.slice_kb)]
            .map(|(count, kb)| u64::from(count).saturating_mul(u64::from(kb) << 10));
        l1s.saturating_add(shared).saturating_mul(2).saturating_mul(u64::from(self.nodes.servers))
    }

    /// Threads that a server runs at once.
    pub fn harts(&self) -> u32 {
        self.core.count * self.core.harts
    }

    /// Bytes of persistent memory that clients have at a server. A server with one client less than others
    /// has as much.
    pub fn client_bytes(&self) -> u64 {
        self.client.region_bytes() * u64::from(self.nodes.clients_of(0))
    }

    /// Other servers that a program may post verbs to.
    pub fn peers(&self) -> Peers {
        Peers { count: self.nodes.peers(), log_bytes: u64::from(self.nodes.peer_log_kb) << 10 }
    }

    /// Bytes of persistent memory at a server that are written over the network: of clients, then logs of
    /// other servers' harts.
    pub fn remote_bytes(&self) -> u64 {
        let logs = u64::from(self.nodes.peers()) * u64::from(self.harts());
        self.client_bytes() + logs * self.peers().log_bytes
    }

    /// Components of a server: cores, home slices, controllers, the OS, a NIC, a poster, and perhaps a hub.
    fn server_components(&self) -> u32 {
        self.core.count + self.llc.slices + self.controller.channels + 3 + u32::from(self.nodes.peers() > 0)
    }

    /// What is wrong with the values together, each being valid by itself: the key to blame, and why.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, key: &'static str, why: String| {
            if !holds {
                faults.push((key, why));
            }
        };
        // All rules are looked at, also after one is broken: the user sees every fault at once.
        let (core, l1d, llc, mc) = (&self.core, &self.l1d, &self.llc, &self.controller);
        let untimed = super::clocks::without_timebase(&self.clocks());
        require(untimed.is_none(), "clock.core_mhz", untimed.unwrap_or_default());
        let line = CPU_LINE_BYTES as u32;
        for (key, kb, ways) in [("l1d.ways", l1d.kb, l1d.ways), ("llc.ways", llc.slice_kb, llc.ways)] {
            let sets = kb * 1024 / line / ways;
            let exact = sets.is_power_of_two() && sets * ways * line == kb * 1024;
            require(exact, key, format!("{kb} KiB in {ways} ways of {line} B lines is not a power of two of sets"));
        }
        require(
            core.predictor_entries.is_power_of_two(),
            "core.predictor_entries",
            format!("{} is not a power of two", core.predictor_entries),
        );
        // Each hart has its share of the window, and an instruction needs a place of each kind.
        for (key, entries) in [
            ("core.rob_entries", core.rob_entries),
            ("core.iq_entries", core.iq_entries),
            ("core.lq_entries", core.lq_entries),
            ("core.sq_entries", core.sq_entries),
        ] {
            require(
                entries.is_multiple_of(core.harts) && entries / core.harts >= 4,
                key,
                format!("{entries} do not divide evenly over {} harts, 4 each at least", core.harts),
            );
        }
        require(
            core.batch_cycles <= llc.request_cycles,
            "core.batch_cycles",
            format!(
                "{} cycles are more than the {} that a message takes to a home slice (llc.request_cycles): others \
                 would see what a core does before they can",
                core.batch_cycles, llc.request_cycles
            ),
        );
        require(
            llc.slices.is_multiple_of(mc.channels) && llc.slices / mc.channels <= 254,
            "llc.slices",
            format!("{} slices do not divide evenly over {} channels", llc.slices, mc.channels),
        );
        require(
            llc.interleave_bytes.is_power_of_two() && llc.interleave_bytes >= line,
            "llc.interleave_bytes",
            format!("{} is not a power of two of at least a line ({line})", llc.interleave_bytes),
        );
        // What clients send are whole lines.
        let (network, client) = (&self.network, &self.client);
        require(network.latency_ns.ps > 0, "network.latency_ns", LINK_WITHOUT_LATENCY.into());
        for (key, bytes) in
            [("network.packet_bytes", network.packet_bytes), ("client.bytes_per_epoch", client.bytes_per_epoch)]
        {
            require(bytes.is_multiple_of(line), key, format!("{bytes} B are not whole lines of {line} B"));
        }
        require(
            u64::from(client.bytes_per_epoch) <= client.region_bytes(),
            "client.bytes_per_epoch",
            format!(
                "an epoch of {} B does not fit a client's memory at the server, {} KiB (client.region_kb)",
                client.bytes_per_epoch, client.region_kb
            ),
        );
        require(
            client.transactions > 0 || client.compute_ns.ps > 0 || client.write_percent == 100,
            "client.compute_ns",
            "transactions that are not counted (client.transactions=0) take time: they compute, or all write".into(),
        );
        // A limit below what an idle server takes has every transaction tried again.
        let of_network = client.network_ps(network);
        require(
            client.retry_us == 0 || u64::from(client.retry_us) * 1_000_000 > of_network,
            "client.retry_us",
            format!(
                "no acknowledgement comes within {} us: the network alone takes {} us ({} epochs of {} B, there and back)",
                client.retry_us,
                of_network as f64 / 1e6,
                client.epochs_at_once(),
                client.bytes_per_epoch
            ),
        );
        // Of several that are under way only BSP says which is acknowledged: the one that began first.
        require(
            client.arrivals == Arrivals::Closed || (client.protocol == Protocol::Bsp && client.retry_us == 0),
            "client.arrivals",
            "transactions that do not wait for each other need client.protocol=bsp and client.retry_us=0".into(),
        );
        require(
            client.arrivals == Arrivals::Closed || client.compute_ns.ps > 0,
            "client.compute_ns",
            "transactions that do not wait for each other (client.arrivals=open) have time between them".into(),
        );
        // Past the cache nothing would order them with what persists of the same line.
        require(
            client.plain_epochs == 0 || self.nic.ddio,
            "client.plain_epochs",
            "a write that is not persistent goes to the shared cache: nic.ddio=true".into(),
        );
        require(
            client.plain_epochs <= client.epochs_per_tx,
            "client.plain_epochs",
            format!("{} of {} epochs (client.epochs_per_tx)", client.plain_epochs, client.epochs_per_tx),
        );
        require(self.os.link_ns.ps > 0, "os.link_ns", LINK_WITHOUT_LATENCY.into());
        faults.extend(self.nodes.faults(self.server_components(), self.harts()));
        faults.extend(mc.faults(line, self.dram.row_bytes, self.nvm.row_bytes));
        faults
    }

    /// Where addresses lie; devices of DRAM and of NVM are those of tables, where there are any.
    ///
    /// # Errors
    /// The machine cannot have this mapping.
    pub fn address_map(&self, tables: [Option<&Device>; 2]) -> Result<AddressMap, String> {
        let sizes = [self.llc.slices, self.llc.interleave_bytes];
        self.controller.address_map(sizes, [&self.dram, &self.nvm.rows()], tables)
    }
}

/// Where the windows of a process lie in physical memory: a translation is two comparisons and an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuMemory {
    pub windows: Windows,
    /// Physical address of the main window's address 0: of DRAM, or of NVM where all memory is persistent.
    pub main: u64,
    /// Physical address of the persistent window's first byte.
    pub persistent: u64,
}

impl CpuMemory {
    /// The physical address of `bytes` bytes; `None` unless one window has all of them.
    #[inline]
    pub fn physical(&self, address: u64, bytes: u64) -> Option<u64> {
        Some(match self.windows.place(address, bytes)? {
            MemoryPlace::Main(offset) => self.main + offset,
            MemoryPlace::Persistent(offset) => self.persistent + offset,
        })
    }
}
