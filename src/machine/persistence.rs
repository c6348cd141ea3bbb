//! Parameters of persistency: what survives a power failure, and what ordinary fences mean for it.

use crate::choice;
use crate::persist::vocab::Domain;
use crate::spec;

use crate::spec::{Kind, Parameter};

choice! {
    /// What an ordinary memory fence of PTX does for persistency.
    pub enum MembarRule {
        /// Orders accesses; durability is not its business.
        Fence = "fence",
        /// Waits for durability too, as `pm.sfence` does.
        Sfence = "sfence",
    }
}

impl Parameter for Domain {
    const KIND: Kind = Kind::Choice(&["media", "adr", "eadr"]);
}

spec! {
    /// Persistency of the machine.
    pub struct PersistSpec {
        /// What survives a power failure: media, adr (and write-pending queues), eadr (and the L2).
        domain: Domain,
        /// What `membar.gl` (fence at GPU scope) means for persistency: fence or sfence.
        membar_gl: MembarRule,
        /// What `membar.sys` (fence at system scope) means for persistency: fence or sfence.
        membar_sys: MembarRule,
    }
}
