//! The seam between a persistency scheme and the components that host it.
//!
//! A scheme is a factory of *sites*: one for each SM, and one for the command processor. A site belongs to its host, hence
//! to one partition, and decides only what the schemes differ in: the way of a store, what a fence waits for, what a
//! boundary brings to durability. The host does the rest: traffic, acknowledgements, credits. A scheme has no other
//! state and no other way to act, so it cannot break the engine's order.
//!
//! A host asks a site about accesses to persistent memory only; everything else never comes here.

use std::fmt::Debug;

use super::image::PmImage;
use super::vocab::{Boundary, FenceKind, FenceRule, Route, StoreClass, StoreRule, WriteBackClass, WriteBackRule};

/// A scheme's handler in an SM.
pub trait SmSite: Send + Debug {
    /// A warp stores to persistent memory (atomics too, as [`StoreClass::Data`]; their way is not asked for).
    fn store(&mut self, class: StoreClass) -> StoreRule {
        let route = if class == StoreClass::NonTemporal { Route::NonTemporal } else { Route::Temporal };
        StoreRule { route, wait: false }
    }

    /// A warp asks for the write-back of a line of persistent memory.
    fn write_back(&mut self, _class: WriteBackClass) -> WriteBackRule {
        WriteBackRule::Done
    }

    /// A warp issues a fence.
    fn fence(&mut self, _kind: FenceKind) -> FenceRule {
        FenceRule::WaitDurable
    }

    /// The last warp of a CTA has exited and all its stores are performed.
    fn cta_end(&mut self) -> Boundary {
        Boundary::None
    }
}

/// A scheme's handler in the command processor.
pub trait HostSite: Send + Debug {
    /// The last CTA of a kernel is done.
    fn kernel_end(&mut self) -> Boundary {
        Boundary::None
    }
}

/// What a scheme's hardware makes of the bytes that survived, at boot and before any software runs. Pure: the same bytes
/// give the same result, whatever the run before them was.
pub type Salvage = fn(&mut PmImage);

/// A persistency scheme: what it is called, and a site for every host.
pub trait Scheme: Send + Sync + Debug {
    /// Its name, as typed.
    fn name(&self) -> &'static str;

    /// What it is, in a sentence, with its source.
    fn description(&self) -> &'static str;

    /// The handler of an SM.
    fn sm_site(&self, sm: u16) -> Box<dyn SmSite>;

    /// The handler of the command processor.
    fn host_site(&self) -> Box<dyn HostSite>;

    /// What its hardware does at boot; nothing, unless a scheme says so.
    fn salvage(&self) -> Option<Salvage> {
        None
    }

    /// Programs keep undo logs under it: automatic instrumentation applies, and log updates are performed.
    fn logs(&self) -> bool;
}
