//! Instructions of Hopper and Blackwell that go on beside their warp, or wait for what does: the copy engine,
//! barriers in shared memory, clusters. What a trace of version 6 has of them, and what the machine makes of
//! copies; of barriers that is in `barrier_steps`, of stores to shared memory of other CTAs in `sends`.
//!
//! ```text
//!   UTMALDG UBLKCP.S.G     a bulk load, which completes at a barrier      UTMAPF UBLKPF     a prefetch
//!   UTMASTG UBLKCP.G.S     a bulk store, in a group                       UTMAREDG UBLKRED  a reduction, in a group
//!   UTMACMDFLUSH, DEPBAR   ends a group; waits for groups
//!   SYNCS, ARRIVES, UTCBAR arrivals at a barrier, waits for it (`barrier_steps`)
//!   UCGABAR_ARV, UCGABAR_WAIT     the barrier of the cluster
//!   STAS, REDAS            registers to shared memory of a CTA (`sends`)
//!   others                 tensor memory (`super::tensor_memory`)
//! ```
//! Source: Accel-Sim 2.0, `trace_driven.cc`; what `ptxas` 12.9 makes of the PTX instructions.
//!
//! Not modelled: what a trace does not say of itself. A kernel of whose barriers not all is known
//! ([`is_unknown`]) has none that order anything, which is told.

use durawarp_kernel::ir::{AtomOp, Bulk, BulkBytes, BulkKind, BulkStep, ClusterStep, Elem, Op, TileMode};

use super::barrier_steps::BarrierUse;
use super::sends::SendKind;
use super::tensor_memory::TensorUse;

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsyncStep {
    /// The copy engine moves something; a load completes at a barrier.
    Copy(BulkKind),
    /// The stores of the copy engine so far are a group.
    CommitCopies,
    /// At a barrier in shared memory.
    Barrier(BarrierUse),
    /// At the barrier of the cluster.
    Cluster(ClusterStep),
    /// Registers go to shared memory of a CTA of the cluster, and complete at a barrier there.
    Send(SendKind),
    /// In tensor memory.
    Tensor(TensorUse),
}

impl AsyncStep {
    /// What an opcode does, with its modifiers; none where it does nothing of this kind.
    pub(crate) fn of(opcode: &str) -> Option<AsyncStep> {
        use AsyncStep::{Barrier, Cluster, Copy};
        let name = opcode.split('.').next().unwrap_or_default();
        let has = |tokens: &str| opcode[name.len()..].starts_with(tokens);
        Some(match name {
            "UTMALDG" => Copy(BulkKind::Load),
            "UTMASTG" => Copy(BulkKind::Store),
            "UTMAREDG" => Copy(BulkKind::Reduce),
            "UTMAPF" | "UBLKPF" => Copy(BulkKind::Prefetch),
            // To shared memory: from global memory, or from shared memory, of which the trace has no address.
            "UBLKCP" if has(".S.") => Copy(BulkKind::Load),
            "UBLKCP" if has(".G.S") => Copy(BulkKind::Store),
            "UBLKRED" if has(".G.S") => Copy(BulkKind::Reduce),
            "UTMACMDFLUSH" => AsyncStep::CommitCopies,
            "SYNCS" => Barrier(BarrierUse::of(&opcode[name.len()..])?),
            "ARRIVES" if has(".LDGSTSBAR.64.ARVCNT") || has(".LDGSTSBAR.64.TRANSCNT") => {
                Barrier(BarrierUse::ArriveBehindCopies)
            }
            "STAS" | "REDAS" => AsyncStep::Send(SendKind::of(opcode)?),
            "UTCBAR" if ["", ".2CTA"].contains(&&opcode[name.len()..]) => Barrier(BarrierUse::ArriveBehindProducts),
            "UCGABAR_ARV" => Cluster(ClusterStep::Arrive),
            "UCGABAR_WAIT" => Cluster(ClusterStep::Wait),
            _ => AsyncStep::Tensor(TensorUse::of(opcode)?),
        })
    }
}

/// An opcode changes barriers in a way that is not known here, so that those who wait would wait for ever.
pub(crate) fn is_unknown(opcode: &str) -> bool {
    let mut tokens = opcode.split('.');
    match tokens.next().unwrap_or_default() {
        // A test asks and goes on; what is invalidated is at its end.
        "SYNCS" => match tokens.next() {
            Some("PHASECHK" | "CCTL") => false,
            _ => AsyncStep::of(opcode).is_none(),
        },
        // The bytes of the first two complete at a barrier, of which is not known which.
        "STAS" | "REDAS" | "ARRIVES" | "UTCBAR" | "SYNCSU" | "USYNCS" => true,
        _ => false,
    }
}

/// The instruction of a copy. Elements of a reduction are words: which, the trace does not say.
pub(crate) fn copy_instruction(kind: BulkKind, opcode: &str) -> Op {
    let multicast = kind == BulkKind::Load && opcode.split('.').any(|token| token == "MULTICAST");
    let atom = if kind == BulkKind::Reduce { AtomOp::Add } else { AtomOp::None };
    let (elem, mode, moves) = (Elem::U32, TileMode::Box, BulkBytes::All);
    Op::Bulk(Bulk { kind, atom, elem, dimensions: 0, mode, multicast, moves, paired: false })
}

/// The wait for all groups of stores but the last ones.
pub(crate) fn copy_wait(kept: u8) -> Op {
    Op::BulkGroups(BulkStep::Wait(kept.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opcode_says_what_goes_on_beside_its_warp() {
        use AsyncStep::{Barrier, Copy};
        for (opcode, step) in [
            ("UTMALDG.3D.MULTICAST", Copy(BulkKind::Load)),
            ("UBLKCP.S.G", Copy(BulkKind::Load)),
            ("UBLKCP.G.S", Copy(BulkKind::Store)),
            ("SYNCS.EXCH.64", Barrier(BarrierUse::Begin)),
            ("SYNCS.ARRIVE.TRANS64", Barrier(BarrierUse::ArriveExpecting)),
            ("SYNCS.ARRIVE.TRANS64.RED", Barrier(BarrierUse::ArriveExpecting)),
            ("SYNCS.ARRIVE.TRANS64.A1T0", Barrier(BarrierUse::ArriveOnce)),
            ("SYNCS.ARRIVE.TRANS64.RED.A1T0", Barrier(BarrierUse::ArriveOnce)),
            ("SYNCS.ARRIVE.TRANS64.ART0", Barrier(BarrierUse::ArriveMany)),
            ("SYNCS.ARRIVE.TRANS64.RED.A0TR", Barrier(BarrierUse::Expect)),
            ("SYNCS.ARRIVE.TRANS64.A0TX", Barrier(BarrierUse::Complete)),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Barrier(BarrierUse::Wait)),
        ] {
            assert_eq!(AsyncStep::of(opcode), Some(step), "{opcode}");
            assert!(!is_unknown(opcode), "{opcode}");
        }
        for opcode in ["SYNCS.PHASECHK.TRANS64", "SYNCS.CCTL.IV", "UBLKCP", "FENCE.VIEW.ASYNC.S", "LDG.E", "BAR.SYNC"] {
            assert_eq!((AsyncStep::of(opcode), is_unknown(opcode)), (None, false), "{opcode}");
        }
        // As long as it is not known what it arrives behind.
        let products = AsyncStep::of("UTCBAR.2CTA");
        assert_eq!((products, is_unknown("UTCBAR")), (Some(Barrier(BarrierUse::ArriveBehindProducts)), true));
        let behind = "ARRIVES.LDGSTSBAR.64.ARVCNT";
        assert_eq!((AsyncStep::of(behind), is_unknown(behind)), (Some(Barrier(BarrierUse::ArriveBehindCopies)), true));
        for (opcode, kind) in [
            ("STAS", SendKind::Store),
            ("STAS.128", SendKind::Store),
            ("REDAS.ADD.64", SendKind::Reduce),
            ("REDAS.MIN.S32", SendKind::Reduce),
        ] {
            assert_eq!((AsyncStep::of(opcode), is_unknown(opcode)), (Some(AsyncStep::Send(kind)), true), "{opcode}");
        }
        for opcode in
            ["SYNCS.ARRIVE.TRANS64.A2T0", "SYNCS.CAS.64", "ARRIVES.LDGSTSBAR.32", "STAS.U8", "REDAS", "UTCBAR.FLUSH"]
        {
            assert_eq!((AsyncStep::of(opcode), is_unknown(opcode)), (None, true), "{opcode}");
        }
    }
}
