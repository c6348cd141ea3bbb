//! What machine, schemes and oracle share about persistency: words, the seam between a scheme and its hosts,
//! and the journal of physical facts.
//!
//! | module | what it has |
//! |---|---|
//! | [`handler`] | the seam: traits of handlers, and of the scheme that makes them |
//! | [`event`], [`cpu_event`] | what hosts of GPUs and of CPUs offer, tell and ask |
//! | [`outbox`] | what a handler does |
//! | [`vocab`], [`access`] | the words of both: classes of stores, fences, boundaries, rules |
//! | [`journal`], [`image`] | facts of a run, what is durable after them |
//! | [`undo`] | layout of undo logs, and recovery by them |
//! | [`dependency`], [`sequence`], [`non_temporal`] | dependencies of stores, completion windows, their order |
//! | [`selection`], [`regions`], [`storage`] | what a scheme reports: paths, regions, hardware |
//!
//! A host asks a handler by three verbs ([`event`]): an *offer* is about to happen, an *event* has happened,
//! a *report* is asked at the end. A handler says once what it wants to hear of, so that a host does not pay
//! for what no handler wants.
//!
//! Invariants: nothing here knows a component, a scheme or the judge; everything is plain data or a trait.

#![warn(missing_docs)]

pub mod access;
mod author;
pub mod bytes;
pub mod cpu_event;
pub mod dependency;
pub mod event;
pub mod handler;
pub mod image;
pub mod journal;
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
    Access, AccessKind, Admission, Banks, ControllerEvent, ControllerHandler, CoreEvent, CoreFences, CoreHandler,
    CoreOffer, CorePolicy, Departure, Dependencies, Dependency, Flush, Handler, HandlerPlace, HandlerReport, Held,
    HomeEvent, HomeHandler, HostHandler, Idle, Joining, KernelFacts, LaunchSet, Load, Marker, NicEvent, NicHandler,
    Outbox, PathLinks, PathStore, Peer, Scheme, SchemeMessage, SliceEvent, SliceHandler, SliceInterests, SmEvent,
    SmHandler, SmInterests, SmOffer, Store, Synchronisation, SynchronisationRule, VictimSearch, WriteBack, opened,
};
pub use image::PmImage;
pub use journal::{Author, Fact, FactKind, Journal, Notebook};
pub use part::Part;
pub use promises::{Fences, Promises, Survives};
pub use storage::StorageCost;
pub use vocab::{
    Boundary, BoundaryAt, CommitRule, Domain, FenceKind, FenceRule, IssueOrder, NonTemporalOrder, PersistScope,
    RegionEnd, RegionRule, RegionStep, Route, StoreClass, StoreRule, WriteBackClass, WriteBackRule,
};
