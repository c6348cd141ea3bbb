//! Messages, the ids of components, and ports.

use std::fmt;

/// A component's index in its topology, dense from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentId(pub u32);

/// An output of a component: the index of a link in the component's own list, dense from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(pub u16);

/// What travels over links: plain data, moved and never cloned.
pub trait Message: Send + 'static {
    /// A number that stands for the content in the run's digest; equal contents give equal numbers.
    fn digest(&self) -> u64 {
        0
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
