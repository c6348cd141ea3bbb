//! Verdicts: the final memory of a run, the figures of a run, the images that power failures leave.

pub(crate) mod conditions;
pub(crate) mod elements;
pub(crate) mod reasons;
pub(crate) mod verdict;
pub(crate) mod verify;
