//! What each figure shows: its tables, its asks, what to know.

pub(super) mod counts;
pub(super) mod hardware;
pub(super) mod reasons;
pub(super) mod times;
pub(super) mod traffic;
