//! Persistency schemes: each a factory of handlers (see [`persist::handler`](durawarp_persist::handler)).
//!
//! A scheme lives in a file of its own, knows no other scheme and no component, and has one line in
//! [`catalogue`]. What two of them share is a module of its own ([`core_regions`]).

pub mod agpm;
pub mod baseline;
pub mod bucl;
pub mod capri;
pub mod catalogue;
pub mod core_regions;
pub mod cwsp;
pub mod delegated;
pub mod entry;
pub mod epoch_tag;
pub mod light_wsp;
pub mod nvw_fifo;
pub mod pmem_spec;
pub mod ppa;
pub mod psp_ideal;
pub mod sbrp;
pub mod store_order;
pub mod sync;
pub mod themis;
