//! Parameters and counters of the operating system.

use durawarp_base::counters;
use durawarp_base::spec;
use durawarp_base::spec::Nanos;

spec! {
    /// Parameters of the operating system.
    pub struct OsSpec {
        /// What a system call costs its hart, beside its way and what it reads.
        syscall_ns: Nanos,
        /// From a core to the OS, and back.
        link_ns: Nanos,
        /// How long a thread keeps a hart that other threads wait for, in us.
        quantum_us: u32 where 1..=1000000,
        /// What a hart pays to go on with another thread, beside os.syscall_ns and its way.
        switch_ns: Nanos,
    }
}

counters! {
    /// What the operating system counted.
    pub struct OsCounters {
        /// System calls that arrived (calls)
        calls,
        /// Lines read for system calls (lines)
        read_lines,
        /// Threads started beside the first (threads)
        threads,
        /// Threads that went on on a hart that others had before them (switches)
        switches,
        /// Threads that lost their hart at the end of a quantum, or by yielding (threads)
        preemptions,
        /// Threads woken from a futex or from sleep that had a hart (wakes)
        wakes,
        /// Of these, by a deadline (wakes)
        timeouts,
        /// Time that calls and ends of threads waited for those before them, summed (ns)
        turn_ns,
        /// Time that harts waited until a wake, summed (ns)
        wait_ns,
    }
}
