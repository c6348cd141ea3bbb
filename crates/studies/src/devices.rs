//! Memory devices beside what two other simulators take for the same requests.

pub mod reference;
pub mod streams;
