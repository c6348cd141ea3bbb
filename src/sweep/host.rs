//! What the host offers to runs: its memory, as the system and its control groups (a container's, a job's)
//! limit it.
//!
//! Source: the system itself, asked each time. It decides which runs begin and when, never what comes of
//! them.

use sysinfo::System;

/// Memory of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All there is, in bytes.
    pub total_bytes: u64,
    /// What programs can have of it now, in bytes.
    pub available_bytes: u64,
}

impl Memory {
    /// This host's.
    pub fn of_host() -> Self {
        let mut system = System::new();
        system.refresh_memory();
        let (total, available) = (system.total_memory(), system.available_memory());
        let limits = system.cgroup_limits();
        let (group_total, group_free) = limits.map_or((u64::MAX, u64::MAX), |l| (l.total_memory, l.free_memory));
        Memory { total_bytes: total.min(group_total), available_bytes: available.min(group_free) }
    }
}

/// What is to be said of a run that needs more bytes than are available.
pub fn shortage(needed_bytes: u64, memory: Memory) -> Option<String> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    (needed_bytes > memory.available_bytes).then(|| {
        format!(
            "this run needs up to {:.1} GiB of memory, if it touches all of its buffers, and {:.1} GiB of the host's {:.1} \
             are available: it may be slow, or be ended by the system",
            gib(needed_bytes),
            gib(memory.available_bytes),
            gib(memory.total_bytes)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_told_from_the_first_byte_that_is_missing() {
        let memory = Memory { total_bytes: 8 << 30, available_bytes: 3 << 30 };
        assert_eq!(shortage(3 << 30, memory), None);
        let told = shortage((3 << 30) + 1, memory).unwrap();
        assert!(
            told.contains(
                "up to 3.0 GiB of memory, if it touches all of its buffers, and 3.0 GiB of the host's 8.0 are"
            ),
            "{told}"
        );
    }

    #[test]
    fn a_host_has_memory_and_not_all_of_it_is_taken() {
        let Memory { total_bytes, available_bytes } = Memory::of_host();
        assert!(total_bytes > 64 << 20, "{total_bytes}");
        assert!((1 << 20..=total_bytes).contains(&available_bytes), "{available_bytes} of {total_bytes}");
    }
}
