//! What each figure shows: its tables, its asks, what to know.

pub(crate) mod counts;
pub(crate) mod hardware;
pub(crate) mod reasons;
pub(crate) mod times;
pub(crate) mod traffic;
