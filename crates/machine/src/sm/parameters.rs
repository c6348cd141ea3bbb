//! Parameters of an SM, and what it counts.
//!
//! Units are last in a name. Source of the shape: AGPM Table IV and GPGPU-Sim's configuration; every preset
//! says where its values are from. Invariant: all warp-slot accounts together are the resident warp cycles.

use crate::coalescer::Rule;
use crate::remote::RemoteKind;
use crate::scheduler::Policy;
use durawarp_base::counters;
use durawarp_base::spec;
use durawarp_kernel::ir::{Bulk, BulkKind, Class, GroupElements};
use durawarp_kernel::warp::TensorWork;

spec! {
    /// Parameters of a streaming multiprocessor.
    pub struct SmSpec {
        /// Streaming multiprocessors of the machine.
        count: u32 where 1..=1024,
        /// GPCs, which SMs are dealt out to in pairs; the CTAs of a cluster lie in one. 0: no clusters.
        gpcs: u32 where 0..=64,
        /// Lanes of a warp: 32 or 64.
        warp_size: u32 where 32..=64,
        /// Warps resident at once.
        warps: u32 where 1..=64,
        /// CTAs resident at once.
        ctas: u32 where 1..=64,
        /// Threads resident at once.
        threads: u32 where 32..=4096,
        /// 32-bit registers.
        registers: u32 where 1024..=1048576,
        /// Registers are given to a warp in multiples of this.
        register_unit: u32 where 1..=4096,
        /// Equal parts of the registers; those of a warp lie in one part.
        register_partitions: u32 where 1..=16,
        /// Warp schedulers; warp slot `i` belongs to scheduler `i` modulo their number.
        schedulers: u32 where 1..=16,
        /// How a scheduler picks among ready warps.
        policy: Policy,
        /// Instructions that a scheduler issues from its warp in a cycle, to different units.
        issue_width: u32 where 1..=2,
        /// Memory instructions that wait for the load-store unit.
        lsu_entries: u32 where 1..=256,
        /// Memory instructions that a scheduler has places for, from their issue until they have left. 0:
        /// only those that wait for the load-store unit are bounded.
        memory_entries: u32 where 0..=64,
        /// Banks of a scheduler's registers, each with a port that reads one register of a warp a cycle. Of
        /// traces alone. 0: an instruction always finds its operands.
        register_banks: u32 where 0..=4,
        /// How lanes are merged into memory accesses.
        coalescer: Rule,
    }
}

/// Declares a Spec with a key for each class of arithmetic, then its own keys, and all of them by class.
macro_rules! spec_by_class {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        spec! {
            $(#[$meta])*
            pub struct $name {
                /// Integer addition, subtraction.
                int_cycles: u32 where 1..=10000,
                /// Integer multiply, multiply-add.
                int_mul_cycles: u32 where 1..=10000,
                /// Integer division, remainder.
                int_div_cycles: u32 where 1..=10000,
                /// Moves, selects, logic, shifts, bit operations, signs of floats.
                logic_cycles: u32 where 1..=10000,
                /// Comparisons.
                compare_cycles: u32 where 1..=10000,
                /// `min`, `max` of integers, single and half precision.
                min_max_cycles: u32 where 1..=10000,
                /// Conversions.
                convert_cycles: u32 where 1..=10000,
                /// Single- and half-precision add, multiply, fused multiply-add.
                fp32_cycles: u32 where 1..=10000,
                /// Single-precision IEEE division, reciprocal, square root.
                fp32_div_cycles: u32 where 1..=10000,
                /// Double-precision add, multiply, fused multiply-add.
                fp64_cycles: u32 where 1..=10000,
                /// Double-precision division, reciprocal, square root.
                fp64_div_cycles: u32 where 1..=10000,
                /// Special functions.
                sfu_cycles: u32 where 1..=10000,
                /// Shuffles, `match`, `redux`.
                shuffle_cycles: u32 where 1..=10000,
                /// Votes.
                vote_cycles: u32 where 1..=10000,
                $($own)*
            }
        }

        impl $name {
            /// The classes of arithmetic, then these others.
            fn then(&self, others: [u32; Class::COUNT - 14]) -> [u32; Class::COUNT] {
                let [reads, memory, control, matrix, half] = others;
                [
                    self.int_cycles,
                    self.int_mul_cycles,
                    self.int_div_cycles,
                    self.logic_cycles,
                    self.compare_cycles,
                    self.min_max_cycles,
                    self.convert_cycles,
                    self.fp32_cycles,
                    self.fp32_div_cycles,
                    self.fp64_cycles,
                    self.fp64_div_cycles,
                    self.sfu_cycles,
                    self.shuffle_cycles,
                    self.vote_cycles,
                    reads,
                    memory,
                    control,
                    matrix,
                    half,
                ]
            }
        }
    };
}

spec_by_class! {
    /// Cycles from the issue of an instruction to the issue of one that uses its result, by class.
    pub struct LatencySpec {
        /// Reads of parameters and constants; each further address of a warp adds a cycle.
        const_cycles: u32 where 1..=10000,
        /// Branches and other control: to the warp's next instruction.
        control_cycles: u32 where 1..=10000,
        /// From a memory instruction's last request until its place (`sm.memory_entries`) is free.
        place_cycles: u32 where 0..=1000,
        /// Cycles in which an instruction of fixed latency reads its operands, where registers lie in banks
        /// (`sm.register_banks`).
        read_cycles: u32 where 1..=8,
    }
}

spec_by_class! {
    /// Cycles for which an instruction holds its unit of the scheduler, by class.
    pub struct IntervalSpec {
        /// Reads of parameters and constants.
        const_cycles: u32 where 1..=10000,
        /// Memory accesses.
        memory_cycles: u32 where 1..=10000,
        /// Of a memory instruction's addresses to the next one's, where a scheduler has places for them
        /// (`sm.memory_entries`).
        address_cycles: u32 where 1..=1000,
        /// Of a request to the L1 to the next one of the SM; the passes of an instruction through the banks
        /// of shared memory take as long at least.
        request_cycles: u32 where 1..=1000,
        /// Branches and other control.
        control_cycles: u32 where 1..=10000,
    }
}

spec! {
    /// Tensor cores of a machine. Four registers of a: m16n8k16 of 16-bit elements, m16n8k8 of `tf32`,
    /// m16n8k32 of bytes; these are the same work for a tensor core.
    pub struct TensorSpec {
        /// Products of matrices with four registers of a: to the issue of what uses it; 0 without any.
        matrix_cycles: u32 where 0..=10000,
        /// These: cycles for which one holds the tensor cores of its scheduler.
        matrix_interval_cycles: u32 where 1..=10000,
        /// Products of matrices with two registers of a, half as deep: to the issue of what uses it.
        half_cycles: u32 where 1..=10000,
        /// These: cycles for which one holds the tensor cores of its scheduler.
        half_interval_cycles: u32 where 1..=10000,
        /// Products of four warps (`wgmma`) of 16-bit elements: multiplications and additions a cycle and SM;
        /// 0 without any.
        group_half_rate: u32 where 0..=1048576,
        /// These of `tf32`.
        group_tf32_rate: u32 where 0..=1048576,
        /// These of 8-bit floats.
        group_fp8_rate: u32 where 0..=1048576,
        /// These of bytes.
        group_byte_rate: u32 where 0..=1048576,
        /// These of single bits.
        group_bit_rate: u32 where 0..=1048576,
        /// These of 4-bit floats with scale factors, in tensor memory; 0 without any.
        group_fp4_rate: u32 where 0..=1048576,
        /// From the issue of one to the warp's next instruction, for each 64 columns.
        group_issue_cycles: u32 where 1..=10000,
        /// From the end of its work to the end of a wait for it: of floats.
        group_tail_cycles: u32 where 0..=10000,
        /// The same of integers and bits.
        group_integer_tail_cycles: u32 where 0..=10000,
        /// By how much that is sooner where a is in registers.
        group_registers_cycles: u32 where 0..=10000,
        /// Products of a warp to the same registers that may be under way.
        group_depth: u32 where 1..=1024,
        /// Columns of tensor memory, in which products of one thread (`tcgen05`) sum at the rates and with
        /// the tails above, those of four warps being no instructions then; 0 without any.
        memory_columns: u32 where 0..=512,
        /// Bytes a cycle and SM that a copy from shared to tensor memory (`tcgen05.cp`) reads, between the
        /// products before and behind it; 0 without tensor memory.
        memory_copy_bytes: u32 where 0..=4096,
    }
}

/// The times of a product of four warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupTimes {
    /// From its issue to the warp's next instruction.
    pub(super) issue: u32,
    /// What the tensor cores of a scheduler take for a warp's part.
    pub(super) work: u32,
    /// From its start to that of the next there.
    pub(super) interval: u32,
    /// From the end of its work to the end of a wait for it.
    pub(super) tail: u32,
}

/// The times of a product in tensor memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TensorTimes {
    /// For which it holds the tensor cores of the SM.
    pub(super) work: u32,
    /// From the end of its work until it is done.
    pub(super) tail: u32,
}

impl TensorSpec {
    /// The times of a product in tensor memory.
    pub(super) fn tensor_times(&self, of: TensorWork) -> TensorTimes {
        let (rate, tail) = self.rate_and_tail(of.elements);
        TensorTimes { work: of.operations.div_ceil(rate), tail }
    }

    /// The times of a copy from shared memory, of this latency, to tensor memory.
    pub(super) fn copy_times(&self, bytes: u32, latency: u32) -> TensorTimes {
        assert!(self.memory_copy_bytes > 0, "a machine without such copies has refused the kernel");
        TensorTimes { work: bytes.div_ceil(self.memory_copy_bytes), tail: latency }
    }

    /// The rate of products of four warps, or in tensor memory, and the tail behind their work.
    pub(super) fn rate_and_tail(&self, elements: GroupElements) -> (u32, u32) {
        let rate = self.group_rate(elements);
        assert!(rate > 0, "a machine without such products has refused the kernel");
        let of_integers = matches!(elements, GroupElements::Bytes | GroupElements::Bits);
        (rate, if of_integers { self.group_integer_tail_cycles } else { self.group_tail_cycles })
    }

    /// The machine has tensor cores.
    pub fn is_present(&self) -> bool {
        self.matrix_cycles > 0
    }

    /// The machine has products of four warps.
    pub fn has_groups(&self) -> bool {
        self.is_present() && self.group_half_rate > 0 && !self.has_memory()
    }

    /// The machine has tensor memory.
    pub fn has_memory(&self) -> bool {
        self.memory_columns > 0
    }

    /// Multiplications and additions a cycle and SM of products of four warps.
    pub fn group_rate(&self, elements: GroupElements) -> u32 {
        match elements {
            GroupElements::Half => self.group_half_rate,
            GroupElements::Tf32 => self.group_tf32_rate,
            GroupElements::Fp8 => self.group_fp8_rate,
            GroupElements::Bytes => self.group_byte_rate,
            GroupElements::Bits => self.group_bit_rate,
            GroupElements::Fp4 => self.group_fp4_rate,
        }
    }
}

impl LatencySpec {
    /// Cycles from issue to result, in the order of [`Class`]; memory instructions have their own ways.
    pub(super) fn by_class(&self, tensor: &TensorSpec) -> [u32; Class::COUNT] {
        self.then([self.const_cycles, 1, self.control_cycles, tensor.matrix_cycles, tensor.half_cycles])
    }
}

impl IntervalSpec {
    /// Cycles for which an instruction keeps its unit, in the order of [`Class`].
    pub(super) fn by_class(&self, tensor: &TensorSpec) -> [u32; Class::COUNT] {
        let TensorSpec { matrix_interval_cycles, half_interval_cycles, .. } = *tensor;
        let &IntervalSpec { const_cycles, memory_cycles, control_cycles, .. } = self;
        self.then([const_cycles, memory_cycles, control_cycles, matrix_interval_cycles, half_interval_cycles])
    }
}

impl SmCounters {
    /// Counts a load or store of global memory by the line accesses that the coalescer made of it.
    pub(super) fn count_degree(&mut self, accesses: usize) {
        *match accesses {
            0..=1 => &mut self.degree_1,
            2 => &mut self.degree_2,
            3..=4 => &mut self.degree_3_4,
            5..=8 => &mut self.degree_5_8,
            9..=16 => &mut self.degree_9_16,
            _ => &mut self.degree_17_more,
        } += 1;
    }
}

counters! {
    /// What one SM counted of tensor cores and asynchronous copies.
    pub struct TensorCounters {
        /// Warp instructions: products of matrices with four registers of a (warp instructions)
        matrix_instructions,
        /// Warp instructions: products of matrices with two registers of a (warp instructions)
        matrix_half_instructions,
        /// Warp instructions: products of four warps, a warp's part each (warp instructions)
        group_products,
        /// Warp instructions: products in tensor memory (warp instructions)
        tensor_products,
        /// Loads of matrices from shared memory (warp instructions)
        matrix_loads,
        /// Asynchronous copies from global to shared memory (warp instructions)
        async_copies,
        /// Bytes that these wrote to shared memory (bytes)
        async_copy_bytes,
    }
}

counters! {
    /// What one SM counted of bulk copies.
    pub struct BulkCounters {
        /// Bulk copies from global to shared memory (copies)
        bulk_loads,
        /// Bulk copies from shared to global memory (copies)
        bulk_stores,
        /// Bulk reductions of shared into global memory (copies)
        bulk_reductions,
        /// Bulk prefetches to the L2 (copies)
        bulk_prefetches,
        /// Bulk copies from shared memory to that of another CTA of the cluster (copies)
        bulk_sends,
        /// Bulk loads to several CTAs of the cluster (copies)
        bulk_multicasts,
        /// Bytes of all these, once for each copy (bytes)
        bulk_bytes,
        /// Bytes that went to shared memory of other CTAs, once for each CTA (bytes)
        bulk_peer_bytes,
        /// Parts of other SMs' copies, lines or counts, that came to shared memory of this one (messages)
        bulk_parts_served,
        /// Reads of the L2 by bulk loads and prefetches, a line or a part of it each (reads)
        bulk_reads,
        /// Reads of tensor maps in global memory, a line or a part of it each (reads)
        bulk_map_reads,
        /// Requests for a cluster that has not begun (requests)
        cancel_requests,
        /// Clusters that such a request has taken from the grid (clusters)
        clusters_cancelled,
    }
}

impl BulkCounters {
    /// Counts a copy that goes to `peers` other CTAs.
    pub(super) fn count(&mut self, bulk: Bulk, bytes: u32, peers: usize) {
        // An answer of the grid is no copy.
        if bulk.kind != BulkKind::Cancel {
            self.bulk_multicasts += u64::from(bulk.multicast);
            self.count_bytes(bytes, peers);
        }
        *match bulk.kind {
            BulkKind::Load => &mut self.bulk_loads,
            BulkKind::Store => &mut self.bulk_stores,
            BulkKind::Reduce => &mut self.bulk_reductions,
            BulkKind::Prefetch => &mut self.bulk_prefetches,
            BulkKind::Send => &mut self.bulk_sends,
            BulkKind::Cancel => &mut self.cancel_requests,
        } += 1;
    }

    /// Counts the bytes of a copy, which are known later where its map is.
    pub(super) fn count_bytes(&mut self, bytes: u32, peers: usize) {
        self.bulk_bytes += u64::from(bytes);
        self.bulk_peer_bytes += u64::from(bytes) * peers as u64;
    }

    /// There were some.
    pub fn any(&self) -> bool {
        let own = self.bulk_loads + self.bulk_stores + self.bulk_reductions + self.bulk_prefetches;
        own + self.bulk_sends + self.bulk_parts_served + self.cancel_requests > 0
    }
}

counters! {
    /// What one SM counted of clusters of CTAs.
    pub struct ClusterCounters {
        /// Loads of shared memory of another CTA, one for each CTA that an instruction reaches (requests)
        cluster_loads,
        /// The same: stores (requests)
        cluster_stores,
        /// The same: atomics and reductions (requests)
        cluster_atomics,
        /// Bytes of all these (bytes)
        cluster_bytes,
        /// Requests of other SMs that were served in the shared memory of this one (requests)
        cluster_served,
        /// Phases of a cluster's barrier that its CTAs here saw end (phases)
        cluster_phases,
    }
}

impl ClusterCounters {
    /// Counts a request.
    pub(super) fn count(&mut self, kind: RemoteKind, bytes: u32) {
        *match kind {
            RemoteKind::Load => &mut self.cluster_loads,
            RemoteKind::Store => &mut self.cluster_stores,
            RemoteKind::Atomic(_) => &mut self.cluster_atomics,
        } += 1;
        self.cluster_bytes += u64::from(bytes);
    }

    /// There were some.
    pub fn any(&self) -> bool {
        self.cluster_loads + self.cluster_stores + self.cluster_atomics + self.cluster_phases > 0
    }
}

counters! {
    /// What one SM counted.
    pub struct SmCounters {
        /// Instructions issued, one a warp (warp instructions)
        warp_instructions,
        /// Lanes that executed them (thread instructions)
        thread_instructions,
        /// Warp instructions: integer addition (warp instructions)
        int_instructions,
        /// Warp instructions: integer multiply (warp instructions)
        int_mul_instructions,
        /// Warp instructions: integer division (warp instructions)
        int_div_instructions,
        /// Warp instructions: moves, selects, logic, shifts, bit operations (warp instructions)
        logic_instructions,
        /// Warp instructions: comparisons (warp instructions)
        compare_instructions,
        /// Warp instructions: minimum and maximum (warp instructions)
        min_max_instructions,
        /// Warp instructions: conversions (warp instructions)
        convert_instructions,
        /// Warp instructions: single precision (warp instructions)
        fp32_instructions,
        /// Warp instructions: single-precision division and square root (warp instructions)
        fp32_div_instructions,
        /// Warp instructions: double precision (warp instructions)
        fp64_instructions,
        /// Warp instructions: double-precision division and square root (warp instructions)
        fp64_div_instructions,
        /// Warp instructions: special functions (warp instructions)
        sfu_instructions,
        /// Warp instructions: shuffles (warp instructions)
        shuffle_instructions,
        /// Warp instructions: votes (warp instructions)
        vote_instructions,
        /// Warp instructions: parameter and constant reads (warp instructions)
        const_instructions,
        /// Warp instructions: memory (warp instructions)
        memory_instructions,
        /// Warp instructions: control (warp instructions)
        control_instructions,
        /// Branches whose lanes went both ways (warp instructions)
        divergent_branches,
        /// Line accesses of loads looked up in the L1 (accesses)
        l1_loads,
        /// Of these, hits (accesses)
        l1_hits,
        /// Of these, joined a fill under way (accesses)
        l1_merges,
        /// Line accesses of loads past the L1 (accesses)
        l1_bypasses,
        /// Of these, because the scheme steered the load past it (accesses)
        l1_loads_steered,
        /// Of these, because every way of the set was waiting for a fill (accesses)
        l1_stalls_past,
        /// Line accesses of stores and atomics (accesses)
        l1_stores,
        /// Of these, evicted a line of the L1 (accesses)
        l1_store_evictions,
        /// Of these, joined bytes of their line that a write-combining L1 held already (accesses)
        l1_stores_combined,
        /// Lines whose combined bytes left the L1 in one write (lines)
        l1_cleanings,
        /// Of these, because the S-FIFO was full (lines)
        l1_cleanings_early,
        /// Global loads, stores and log updates of one line access, atomics apart (warp instructions)
        degree_1,
        /// The same: two line accesses (warp instructions)
        degree_2,
        /// The same: 3 or 4 (warp instructions)
        degree_3_4,
        /// The same: 5 to 8 (warp instructions)
        degree_5_8,
        /// The same: 9 to 16 (warp instructions)
        degree_9_16,
        /// The same: 17 or more (warp instructions)
        degree_17_more,
        /// Atomic operations on global memory, one a lane (operations)
        atomic_lanes,
        /// Accesses to shared memory (warp instructions)
        shared_accesses,
        /// Passes through its banks that conflicts added (passes)
        shared_conflict_passes,
        /// Bytes sent into the crossbar, headers included (bytes)
        bytes_out,
        /// Bytes received from the crossbar, headers included (bytes)
        bytes_in,
        /// Stores to persistent memory, atomics apart (warp instructions)
        pm_stores,
        /// Of these, log updates (warp instructions)
        pm_log_stores,
        /// Of these, sent non-temporally (warp instructions)
        pm_log_stores_past,
        /// Log updates that the scheme has no use for, and that were left out (warp instructions)
        pm_log_stores_dropped,
        /// Write-backs and flushes issued (warp instructions)
        pm_write_backs,
        /// Line accesses of stores and atomics to persistent memory: log, data and flags (accesses)
        pm_store_accesses,
        /// Of these, log updates (accesses)
        pm_log_store_accesses,
        /// Line accesses of write-backs and flushes that were done, as coalesced (accesses)
        pm_write_back_accesses,
        /// Of these, of log updates (accesses)
        pm_log_write_back_accesses,
        /// Persistency fences issued (warp instructions)
        pm_fences,
        /// Of these and others, passed before non-temporal stores were durable (warp instructions)
        pm_fences_ordered,
        /// Markers of persist barriers that this SM sent to the slices (markers)
        pm_markers,
        /// Passes of persist barriers of thread scope, and of fences, behind a marker (warp instructions)
        pm_barriers_wi,
        /// From issue to pass of these (warp cycles)
        pm_barriers_wi_stall,
        /// Passes of persist barriers of CTA scope behind a marker (warp instructions)
        pm_barriers_wg,
        /// From issue to pass of these, the wait for other warps included (warp cycles)
        pm_barriers_wg_stall,
        /// Passes of persist barriers of kernel scope behind a marker (warp instructions)
        pm_barriers_kr,
        /// From issue to pass of these, the wait for other CTAs included (warp cycles)
        pm_barriers_kr_stall,
        /// Warps that waited for a front-end buffer (warp cycles)
        path_wait_cycles,
        /// Of these, for room in it: not for an atomic's turn (warp cycles)
        path_full_cycles,
        /// Line accesses that were held until earlier non-temporal stores were durable (accesses)
        pm_held,
        /// Persistency operations and stores on DRAM: of their plain meaning (warp instructions)
        pm_on_dram,
        /// Write-throughs and write-backs sent, a line each (requests)
        persists,
        /// CTAs run to their end (CTAs)
        ctas,
        /// Cycles with at least one resident warp (cycles)
        active_cycles,
        /// Resident warps summed over cycles: all accounts below together (warp cycles)
        slots_resident,
        /// Warp-cycles: issued (warp cycles)
        slots_issued,
        /// Warp-cycles: ready, another warp was picked (warp cycles)
        slots_not_selected,
        /// Warp-cycles: ready, the unit was busy (warp cycles)
        slots_unit_busy,
        /// Warp-cycles: ready, the load-store unit was full (warp cycles)
        slots_memory_full,
        /// Warp-cycles: waiting for a result of fixed latency (warp cycles)
        slots_execution,
        /// Warp-cycles: waiting for memory data (warp cycles)
        slots_memory,
        /// Warp-cycles: waiting at a barrier (warp cycles)
        slots_barrier,
        /// Warp-cycles: waiting at a fence for stores to be performed (warp cycles)
        slots_fence,
        /// Warp-cycles: waiting for persists to be durable (warp cycles)
        slots_persist,
        /// Warp-cycles: exited, loads or stores under way (warp cycles)
        slots_draining,
    }
}
