//! What the host offers to runs: its memory, as the system and its control groups (a container's, a job's)
//! limit it.
//!
//! Source: the system itself, asked each time. It decides which runs begin and when, never what comes of
//! them.

use sysinfo::System;

use crate::run::AnyExperiment;

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

/// Bytes that a run takes, as estimated before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Caches, and what buffers hold before the run.
    pub least_bytes: u64,
    /// The same when every zeroed buffer is written to.
    pub most_bytes: u64,
}

/// A run that fits is told of from this share of the host's memory on.
const SHARE_TOLD: u64 = 4;

fn gib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 30))
}

/// A running simulation holds its image, the controllers' shares of it, and the final memory.
const COPIES_OF_IMAGE: u64 = 3;

/// Bytes that a simulation needs, by the bytes of its buffers.
pub fn memory_of(buffers: u64) -> u64 {
    COPIES_OF_IMAGE.saturating_mul(buffers)
}

impl Need {
    /// That of an experiment's run.
    pub fn of(experiment: &AnyExperiment) -> Self {
        let (caches, (filled, all)) = (experiment.cache_bytes(), experiment.content_bytes());
        let with = |content: u64| memory_of(content).saturating_add(caches);
        Need { least_bytes: with(filled), most_bytes: with(all) }
    }

    /// In words: "3.0 GiB", or "0.1 to 18.0 GiB".
    fn amount(self) -> String {
        match [gib(self.least_bytes), gib(self.most_bytes)] {
            [least, most] if least == most => format!("about {least} GiB of memory,"),
            [least, most] => {
                format!("{least} to {most} GiB of memory, by how much it writes to buffers that begin as zeros,")
            }
        }
    }
}

/// What is to be said of a run that needs more bytes than are available.
pub fn shortage(need: Need, memory: Memory) -> Option<String> {
    (need.most_bytes > memory.available_bytes).then(|| {
        format!(
            "this run needs {} and {} GiB of the host's {} are available: it may be slow, or be ended by the system",
            need.amount(),
            gib(memory.available_bytes),
            gib(memory.total_bytes)
        )
    })
}

/// What is to be said of a run that fits, and takes much.
pub fn large(need: Need, memory: Memory) -> Option<String> {
    let told = need.most_bytes <= memory.available_bytes && need.least_bytes > memory.total_bytes / SHARE_TOLD;
    told.then(|| format!("this run needs {}", need.amount().trim_end_matches(',')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_told_from_the_first_byte_that_is_missing() {
        let memory = Memory { total_bytes: 8 << 30, available_bytes: 3 << 30 };
        let of = |least_bytes, most_bytes| Need { least_bytes, most_bytes };
        assert_eq!(shortage(of(3 << 30, 3 << 30), memory), None);
        let told = shortage(of((3 << 30) + 1, (3 << 30) + 1), memory).unwrap();
        assert!(told.contains("about 3.0 GiB of memory, and 3.0 GiB of the host's 8.0 are available"), "{told}");
        // What is not written to is not there.
        let told = shortage(of(1 << 26, 18 << 30), memory).unwrap();
        assert!(told.contains("needs 0.1 to 18.0 GiB of memory, by how much it writes to buffers"), "{told}");
    }

    #[test]
    fn a_run_that_takes_much_is_told_of() {
        let memory = Memory { total_bytes: 8 << 30, available_bytes: 7 << 30 };
        let of = |bytes| Need { least_bytes: bytes, most_bytes: bytes };
        assert_eq!(large(of(2 << 30), memory), None);
        assert_eq!(large(of((2 << 30) + 1), memory).unwrap(), "this run needs about 2.0 GiB of memory");
        assert_eq!(large(of((7 << 30) + 1), memory), None, "a shortage says it");
    }

    #[test]
    fn a_host_has_memory_and_not_all_of_it_is_taken() {
        let Memory { total_bytes, available_bytes } = Memory::of_host();
        assert!(total_bytes > 64 << 20, "{total_bytes}");
        assert!((1 << 20..=total_bytes).contains(&available_bytes), "{available_bytes} of {total_bytes}");
    }
}
