//! What a core counts. Every dispatch slot (the width, in each cycle) is in exactly one account.

use durawarp_base::counters;

counters! {
    /// What one core counted.
    pub struct CoreCounters {
        /// Cycles until its process ended (core cycles)
        cycles,
        /// Instructions that retired (instructions)
        instructions,
        /// Slots in which an instruction was dispatched (slots)
        used_slots,
        /// Slots lost while the oldest instruction waited for memory, or a jump for its target (slots)
        memory_slots,
        /// Slots lost while the window was full of instructions under execution (slots)
        execution_slots,
        /// Slots lost while the store queue was full (slots)
        store_slots,
        /// Slots lost behind branches that were predicted wrongly (slots)
        redirect_slots,
        /// Slots lost at atomic operations (slots)
        atomic_slots,
        /// Slots lost at fences of visibility, control registers and verbs (slots)
        fence_slots,
        /// Slots lost at fences of durability (slots)
        persist_slots,
        /// Slots lost in system calls that do not wait (slots)
        call_slots,
        /// Slots of harts without a thread, or whose thread waits in a system call (slots)
        idle_slots,
        /// Loads dispatched, also behind wrong predictions (instructions)
        loads,
        /// Loads that had all bytes from the store queue (instructions)
        forwarded_loads,
        /// Loads whose line was not in the L1 (instructions)
        l1_load_misses,
        /// Stores performed (instructions)
        stores,
        /// Stores whose line the core could not write when they were to be performed (instructions)
        l1_store_misses,
        /// Atomic operations, and loads and stores of reservations (instructions)
        atomics,
        /// Stores of reservations that failed (instructions)
        failed_conditionals,
        /// Time from the `lr` of these until they had failed, summed (core cycles)
        failed_conditional_cycles,
        /// Conditional branches resolved (instructions)
        branches,
        /// Of these, predicted wrongly (instructions)
        mispredictions,
        /// Squashes since a load had bound before an older one and lost its line (squashes)
        order_squashes,
        /// Lines asked for, to read (requests)
        gets_shared,
        /// Lines asked for, to write (requests)
        gets_exclusive,
        /// Modified lines that left the L1 for lack of room (lines)
        puts,
        /// Probes answered (messages)
        probes,
        /// Line operations that went to a home (requests)
        cleans,
        /// Line operations that were dropped by the scheme, or concern DRAM (instructions)
        dropped_cleans,
        /// Fences of durability that waited (instructions)
        durable_fences,
        /// Time that these stood at the head of dispatch, stores before them included, summed (core cycles)
        durable_fence_cycles,
        /// Fences that ordered without waiting (instructions)
        ordering_fences,
        /// Words of persistency without effect here: regions, transactions, hints (instructions)
        persistency_hints,
        /// Operations of the workload (operations)
        operations,
        /// System calls (calls)
        calls,
        /// Stores of checkpoints and of program counters that regions inserted (stores)
        inserted,
        /// Regions that ended (regions)
        regions,
        /// Waits of harts' oldest stores and atomics for the front-end buffer or a region's ID (core cycles)
        path_full_cycles,
    }
}
