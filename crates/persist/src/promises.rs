//! What a scheme promises of a power failure: data that it declares, by which the oracle judges what its
//! handlers do.
//!
//! Source: each scheme's own, named where it declares its promises. Invariant: nothing here is asked of a
//! handler, so that a handler that forgets a write-back or a wait breaks a promise and does not withdraw it.
//!
//! Not here: what every machine owes (durable bytes were stored; what a fence has waited for is durable);
//! what the program owes (its undo log, its conditions); how regions commit
//! ([`RegionRule`](super::vocab::RegionRule)).

use super::vocab::NonTemporalOrder;

/// The promises of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises {
    /// A warp's stores become durable in program order.
    pub strict: bool,
    /// All stores of a CTA are durable when it ends.
    pub cta_end: bool,
    /// All stores of a kernel are durable when it ends.
    pub kernel_end: bool,
    /// Which fences of a warp make durable what it stored before. Asked of a scheme of GPUs: a fence that a
    /// core does not wait at is not noted.
    pub fences: Fences,
    /// In which order non-temporal stores become durable.
    pub non_temporal: NonTemporalOrder,
    /// Persists of harts become durable by epochs and by what harts saw of each other, without a fence that
    /// waits. Handlers in cores follow dependencies.
    pub epochs: bool,
    /// What a power failure leaves. Asked of a scheme of CPUs.
    pub survives: Survives,
}

impl Promises {
    /// No promise.
    pub const NONE: Promises = Promises {
        strict: false,
        cta_end: false,
        kernel_end: false,
        fences: Fences::None,
        non_temporal: NonTemporalOrder::ByFences,
        epochs: false,
        survives: Survives::Domain,
    };
}

/// Which fences of a warp make durable what it stored past the caches, and wrote back, before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fences {
    /// None.
    None,
    /// `pm.dfence`. The others do that for what the warp wrote back, and leave the rest to
    /// [`Promises::non_temporal`].
    Dfence,
    /// All of them.
    All,
}

/// What a power failure leaves of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// The domain of the machine, `persist.domain`.
    Domain,
    /// The caches too, whatever the machine's domain is.
    Caches,
    /// The domain, and the registers and stores that are not durable: they are saved when power fails, and
    /// execution goes on where it was. All memory is persistent.
    Registers,
}
