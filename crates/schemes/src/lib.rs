//! Persistency schemes: each a factory of handlers ([`persist::handler`](durawarp_persist::handler)).
//!
//! A scheme lives in a file of its own, knows no other scheme and no component, and has one line in
//! [`catalogue`], with its parameters if it has any ([`entry`]). What two of them share is a module of its
//! own.
//!
//! The mechanisms, and what each hears from its hosts:
//!
//! * [`baseline`], [`sync`], [`bucl`], [`psp_ideal`]: policy alone (ways of stores, fences, boundaries).
//! * [`store_order`], of [`themis`], [`pmem_spec`], [`epoch_tag`], [`sbrp`]: the order of stores without
//!   waiting at fences, from departures, acknowledgements, held requests.
//! * [`epoch_tag`], [`sbrp`]: the order in which dirty lines leave a combining L1, from stores that join
//!   lines and lines that must leave.
//! * [`nvw_fifo`]: FIFOs of what is not durable, from markers, lines cleaned by name, lines durable.
//! * [`agpm`]: path selection by a hub that decides once a period, from accesses and acknowledgements.
//! * [`delegated`]: persist buffers, dependencies of lines, queues by bank, from stores and fences that leave
//!   the store buffer of a core, loads, lines at cores and homes, writes that are durable.
//! * [`core_regions`], of [`capri`], [`cwsp`]: regions that each core orders, from stores performed, ends of
//!   regions, lines, atomics, fences, calls.
//! * [`ppa`]: registers of stores that are not durable, from instructions that retire or need a register,
//!   stores, write-backs acknowledged.
//! * [`light_wsp`]: front-end buffers, gated WPQs and a sequencer of regions, from stores as they are issued,
//!   copies of them, flushes, reads over held bytes, ends of regions.
//!
//! Handlers move no data: they name lines, and hosts write these back. A scheme without a hub has no such
//! component: the machine is wired, and its digests are, as if there were none.
//!
//! Invariant: a scheme has no state but its handlers, and no way to act but their outboxes.

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
