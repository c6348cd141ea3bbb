//! How full a component's queues are, for who watches a run. The model reads none of it.

/// Entries of a queue, or of a table of what is under way, that are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLevel {
    /// Its name, the same for all components of a kind.
    pub name: &'static str,
    /// Entries in use; more than the capacity where what waits to get in is counted, too.
    pub entries: u64,
    /// Entries that there are.
    pub capacity: u64,
}

impl QueueLevel {
    /// So many entries of so many.
    pub(super) fn new(name: &'static str, entries: usize, capacity: usize) -> QueueLevel {
        QueueLevel { name, entries: entries as u64, capacity: capacity as u64 }
    }
}
