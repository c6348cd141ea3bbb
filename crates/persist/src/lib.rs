//! What machine, schemes and oracle share about persistency: words, the seam between a scheme and its hosts,
//! and the journal of physical facts.
//!
//! Invariants: nothing here knows a component, a scheme or the judge; everything is plain data or a trait.

#![warn(missing_docs)]

pub mod access;
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
pub use journal::{Fact, FactKind, Journal, Notebook};
pub use part::Part;
pub use storage::StorageCost;
pub use vocab::{
    Boundary, CommitRule, Domain, FenceKind, FenceRule, IssueOrder, NonTemporalOrder, PersistScope, RegionEnd,
    RegionRule, RegionStep, Route, StoreClass, StoreRule, WriteBackClass, WriteBackRule,
};
