//! What is promised of what a power failure leaves, and what a test says of its own limits.
//!
//! Source: the properties P0 to P9 of the oracle's design. Invariant: promises stand in the order in which
//! reports list them, and a report lists each once.

use std::fmt;

use serde::{Serialize, Serializer};

use durawarp_persist::vocab::PersistScope;

/// Makes the promises of their names and texts.
macro_rules! promises {
    ($($name:ident => $text:literal,)*) => {
        /// A promise that was judged, or a sentence on what was not.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Promise {
            $(#[doc = $text] $name,)*
            /// Why the program was not resumed.
            NotResumed(String),
        }

        impl fmt::Display for Promise {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Promise::$name => f.write_str($text),)*
                    Promise::NotResumed(why) => write!(f, "resuming is not judged: {why}"),
                }
            }
        }
    };
}

promises! {
    Values => "durable bytes are bytes that were stored, and never go back (P0)",
    ProgramOrder => "a warp's stores become durable in program order (P1)",
    CtaEnd => "all stores of a CTA are durable when it ends (P2)",
    KernelEnd => "all stores of a kernel are durable when it ends (P2)",
    ClaimedThread => "claimed: every persist barrier orders as pm.barrier.wi would (P2)",
    ClaimedCta => "claimed: every persist barrier orders as pm.barrier.wg would (P2)",
    ClaimedKernel => "claimed: every persist barrier orders as pm.barrier.kr would (P2)",
    Scopes => "what a scope stored before a persist barrier is durable before what it stored after (P2)",
    WarpEpochs => "what a warp stored before a fence is durable before what the program orders behind it (P5)",
    CachedEpochs =>
        "what a warp stored before a fence, and all that earlier launches stored, is durable before what the program \
         orders behind it is durable (P5)",
    PastCachesOfCta =>
        "stores past the caches are durable before later ones of their CTA through them are performed (P5)",
    PastCaches => "stores past the caches are durable before later ones through them are performed (P5)",
    Transactions => "after recovery, a transaction's data is all old or all new (P3)",
    RecoveryEnds => "recovery comes to its end without a fault",
    RecoveryExits => "the program's own recovery exits with 0",
    ThreadEpochs => "what a thread stored before a fence is durable before what follows from it (P5)",
    Verbs =>
        "of what a client, or a hart of another server, posted a prefix of verbs is durable, with all that is \
         acknowledged (P6)",
    Replayed => "after the replay memory has all stores that have retired, at every instant (P4')",
    GoesOn => "from the retired pc of each hart the program goes on to its end and its result (P4')",
    Performed => "a store is durable when it is performed; those of a hart are performed in program order",
    Surviving =>
        "caches, messages, queues and memory together hold all that was performed, at crash points of the plan",
    AllMemory => "all of the program's memory is persistent, and no DRAM cache lies before it",
    WindowAlone => "the program's persistent window is judged; its main memory is lost",
    WholeRegions =>
        "after recovery, memory has the stores of exactly the regions before one, the same at all controllers (P4)",
    RegionOrder => "regions commit in an order that program order, barriers, launches and coherence allow (P4)",
    Resumes => "resumed from there, twice too, the program comes to its result (P4)",
    SameOutput => "its result is its exit code and its output, byte for byte (--strict-output)",
    SameOutputByThread =>
        "its result is its exit code and its output, in any order of threads, each thread's in its own",
    RecoveryAgain => "recovery cut off anywhere can start again (P8)",
    ActualRecoveryAgain => "recovery of level A, cut off after a durable step, ends well when it starts again (P8)",
    ReplayAgain => "a replay cut off anywhere can begin anew (P8)",
    Fences => "what a fence let pass is durable (P9)",
    Definition =>
        "level C is judged by the equations of persist barriers alone, whatever barriers and fences of this machine \
         wait for; level B has no such states (--by definition)",
    NoRecovery =>
        "the program has no recovery: it is not resumed, and whether it could go on with that memory is not judged",
    NothingToCut => "nothing recovers, so that nothing is cut off (--double)",
    NoStatesOfReplay => "levels A and B do not apply: the replay sets right what the write-backs leave open",
    NoStatesOfRegions =>
        "levels B and C do not apply: the hardware commits whole regions in one order, fences leave nothing open",
}

impl Promise {
    /// That barriers order as those of a scope would.
    pub(super) fn claimed(scope: PersistScope) -> Promise {
        match scope {
            PersistScope::Thread => Promise::ClaimedThread,
            PersistScope::Cta => Promise::ClaimedCta,
            PersistScope::Kernel => Promise::ClaimedKernel,
        }
    }
}

impl Serialize for Promise {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
