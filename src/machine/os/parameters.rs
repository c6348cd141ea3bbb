//! Parameters and counters of the operating system.

use crate::counters;
use crate::spec;
use crate::spec::Nanos;

spec! {
    /// Parameters of the operating system.
    pub struct OsSpec {
        /// What a system call costs its hart, beside its way and what it reads.
        syscall_ns: Nanos,
        /// From a core to the OS, and back.
        link_ns: Nanos,
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
        /// Harts woken from a futex or from sleep (wakes)
        wakes,
        /// Of these, by a deadline (wakes)
        timeouts,
        /// Time that calls and ends of threads waited for those before them, summed (ns)
        turn_ns,
        /// Time that harts waited until a wake, summed (ns)
        wait_ns,
    }
}
