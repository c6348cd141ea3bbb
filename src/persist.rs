//! What machine, schemes and oracle share about persistency: words, the seam between a scheme and its hosts, and the
//! journal of physical facts.
//!
//! Invariants: nothing here knows a component, a scheme or the judge; everything is plain data or a trait.

pub mod image;
pub mod journal;
pub mod kernel_order;
pub mod past;
pub mod path;
pub mod post;
pub mod regions;
pub mod selection;
pub mod site;
pub mod storage;
pub mod undo;
pub mod vocab;

pub use image::PmImage;
pub use journal::{Fact, FactKind, Journal, Notebook};
pub use site::{
    Access, AccessKind, ControllerSite, Flush, FrontEnd, GateSpec, HostSite, HubSite, Joining, KernelFacts, Letter,
    Load, Marker, PathLinks, PathStore, Peer, Post, Salvage, Scheme, Seat, SliceSite, SmSite, Store, WriteBack, opened,
};
pub use vocab::{
    Boundary, CommitRule, Domain, FenceKind, FenceRule, PastOrder, PersistScope, RegionRule, RegionStep, Route,
    StoreClass, StoreRule, WriteBackClass, WriteBackRule,
};
