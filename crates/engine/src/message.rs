//! Messages, the ids of components, and ports.

use std::fmt;

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, value};

/// A component's index in its topology, dense from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentId(pub u32);

/// An output of a component: the index of a link in the component's own list, dense from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(pub u16);

value!(wrapper Port);

/// What travels over links: plain data, moved and never cloned.
pub trait Message: Send + 'static {
    /// A number that stands for the content in the run's digest; equal contents give equal numbers.
    fn digest(&self) -> u64 {
        0
    }

    /// Writes all of it; without this, a simulation with such messages under way cannot be saved.
    fn save(&self, out: &mut StateWriter) {
        out.refuse("a message is under way that cannot be saved");
    }

    /// Reads what [`Message::save`] wrote.
    ///
    /// # Errors
    /// The bytes are of something else.
    fn read(_from: &mut StateReader<'_>) -> Result<Self, LoadFault>
    where
        Self: Sized,
    {
        Err(LoadFault::new("messages of this kind cannot be read"))
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
