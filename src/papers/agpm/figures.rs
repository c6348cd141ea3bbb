//! What each figure shows: its tables, its asks, what to know.

pub mod counts;
pub mod hardware;
pub mod reasons;
pub mod times;
pub mod traffic;
