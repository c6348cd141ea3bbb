//! What machine, schemes and oracle share about persistency: words, the seam between a scheme and its hosts,
//! and the journal of physical facts.
//!
//! | module | what it has |
//! |---|---|
//! | [`handler`] | the seam: traits of handlers, and of the scheme that makes them |
//! | [`event`], [`outbox`] | what a host offers, tells and asks; what a handler does |
//! | [`vocab`], [`access`] | the words of both: classes of stores, fences, boundaries, rules |
//! | [`journal`], [`image`], [`kernel_order`] | facts of a run, what is durable after them, order of kernels |
//! | [`undo`] | layout of undo logs, and recovery by them |
//! | [`dependency`], [`sequence`], [`non_temporal`] | dependencies of stores, completion windows, their order |
//! | [`selection`], [`regions`], [`storage`] | what a scheme reports: paths, regions, hardware |
//!
//! A host asks a handler by three verbs ([`event`]): an *offer* is about to happen, an *event* has happened,
//! a *report* is asked at the end. A handler says in its [`Interests`] what it wants to hear of, so that a
//! host does not pay for what no handler wants.
//!
//! Invariants: nothing here knows a component, a scheme or the judge; everything is plain data or a trait.

#![warn(missing_docs)]

pub mod access;
mod author;
pub mod bytes;
pub mod dependency;
pub mod event;
pub mod handler;
pub mod image;
pub mod journal;
pub mod kernel_order;
pub mod non_temporal;
pub mod outbox;
mod part;
pub mod promises;
pub mod regions;
pub mod selection;
pub mod sequence;
pub mod storage;
pub mod undo;
pub mod vocab;

pub use handler::{
    Access, AccessKind, Admission, Banks, ControllerHandler, Departure, Dependencies, Dependency, Event, Flush,
    Handler, HandlerPlace, HandlerReport, Held, Idle, Interests, Joining, KernelFacts, Load, Marker, Offer, Outbox,
    PathLinks, PathStore, Peer, Scheme, SchemeMessage, SmHandler, Store, Synchronisation, SynchronisationRule,
    VictimSearch, WriteBack, opened,
};
pub use image::PmImage;
pub use journal::{Author, Fact, FactKind, Journal, Notebook};
pub use part::Part;
pub use promises::{Fences, Promises, Survives};
pub use storage::StorageCost;
pub use vocab::{
    Boundary, CommitRule, Domain, FenceKind, FenceRule, IssueOrder, NonTemporalOrder, PersistScope, RegionEnd,
    RegionRule, RegionStep, Route, StoreClass, StoreRule, WriteBackClass, WriteBackRule,
};
