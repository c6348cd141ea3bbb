//! The operating system of a machine of cores, as a component.

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
