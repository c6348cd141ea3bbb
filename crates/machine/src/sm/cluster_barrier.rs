//! The barrier of a cluster, as the SM of one of its CTAs sees it.
//!
//! | event | effect |
//! |---|---|
//! | lanes arrive | their warp goes on; once all lanes of the CTA have arrived, each CTA of the cluster hears of it |
//! | all lanes exit | the same, by a word that says so |
//! | a word of the last CTA comes | the phase ends: warps that wait go on a control latency later |
//!
//! Every CTA counts arrivals in its own [`Seat`], by words that all of them get, so that no SM has the
//! barrier. Source: PTX ISA, "barrier.cluster". Invariant: every CTA of a cluster ends a phase by the same
//! words. The order of memory is a fence's, before or after the instruction.

use crate::msg::{Msg, SmMsg};
use crate::remote::ClusterWord;
use durawarp_engine::Ctx;
use durawarp_kernel::fault::FaultKind;
use durawarp_kernel::ir::{Class, ClusterStep};

use super::core::IssueCore;
use super::moment::Moment;
use super::parameters::ClusterCounters;
use super::seat::Seat;
use super::slots::Fault;
use super::wait::Wait;

/// Lanes of a warp come to the barrier of their cluster; true where the warp goes on.
///
/// # Errors
/// What the ISA leaves undefined.
pub(super) fn step(
    warp: usize,
    (step, lanes): (ClusterStep, u64),
    core: &mut IssueCore,
    counted: &mut ClusterCounters,
    m: &Moment<'_>,
    cx: &mut Ctx<'_, Msg>,
) -> Result<bool, Fault> {
    let slots = core.slots.len();
    let slot = &mut core.slots[warp];
    let cta = usize::from(slot.cta);
    // A CTA of a launch without clusters is one by itself.
    let seat = core.ctas[cta].seat.get_or_insert_with(|| Seat::alone(slots));
    let passes = match step {
        ClusterStep::Arrive => seat.arrivals.arrive(warp, lanes).map(|()| true),
        ClusterStep::Wait => seat.arrivals.wait(warp, lanes),
    };
    match passes {
        Ok(true) => slot.warp.advance(),
        Ok(false) => {
            seat.waiting |= 1 << warp;
            core.enter(warp, Wait::Cluster, m.cycle);
            return Ok(false);
        }
        Err(misuse) => {
            let kind = FaultKind::Asynchronous(misuse.to_string());
            return Err(Box::new(slot.fault(lanes.trailing_zeros(), kind, m.launch(slot))));
        }
    }
    if step == ClusterStep::Arrive {
        tell(cta, core, counted, m, cx);
    }
    Ok(true)
}

/// Tells the CTAs of a cluster when all lanes of one have come to its barrier that have not exited, or all
/// have exited.
#[inline(never)]
pub(super) fn tell(
    cta: usize,
    core: &mut IssueCore,
    counted: &mut ClusterCounters,
    m: &Moment<'_>,
    cx: &mut Ctx<'_, Msg>,
) {
    let (slots, slot) = (&core.slots, &mut core.ctas[cta]);
    let Some(seat) = &mut slot.seat else { return };
    let (ends, live) = (slot.live == 0, slot.live);
    let lanes = |warp: usize| if live >> warp & 1 == 1 { slots[warp].warp.live() } else { 0 };
    if !ends && !seat.arrivals.complete(lanes) {
        return;
    }
    let (launch, number, rank) = (m.launches.at(slot.launch), m.record.launch(slot.launch), seat.rank);
    if seat.sms.is_empty() {
        // A cluster by itself needs no words.
        if !ends {
            seat.phases.arrive(rank);
            open(cta, core, counted, m);
        }
        return;
    }
    // A word for each CTA, the own one too: all of them count alike.
    for (other, &sm) in (0..).zip(&seat.sms) {
        let to = seat.peer(launch, number, slot.cta, other);
        m.w.ports.to_sm(sm).send(SmMsg::Cluster(ClusterWord { to, rank, ends }), 0, cx);
    }
}

/// A CTA of a cluster has come to the cluster's barrier, or has ended. One that has ended here hears nothing.
pub(super) fn receive(word: ClusterWord, core: &mut IssueCore, counted: &mut ClusterCounters, m: &Moment<'_>) {
    let Some(cta) = core.find_cta(word.to, m.record) else { return };
    let Some(seat) = &mut core.ctas[cta].seat else { unreachable!("a CTA of a cluster has its seat") };
    if word.ends {
        seat.phases.end(word.rank)
    } else {
        seat.phases.arrive(word.rank)
    }
    open(cta, core, counted, m);
}

/// Ends the phase of a cluster's barrier to which all have come: warps of a CTA that waited go on.
fn open(cta: usize, core: &mut IssueCore, counted: &mut ClusterCounters, m: &Moment<'_>) {
    let Some(seat) = &mut core.ctas[cta].seat else { return };
    if !seat.phases.end_phase() {
        return;
    }
    counted.cluster_phases += 1;
    seat.arrivals.end_phase();
    let mut waiting = std::mem::take(&mut seat.waiting);
    while waiting != 0 {
        let warp = waiting.trailing_zeros() as usize;
        waiting &= waiting - 1;
        let slot = &mut core.slots[warp];
        let launch = m.launch(slot);
        let inst = &launch.kernel.code[slot.warp.pc() as usize];
        let lanes = slot.warp.guarded(inst);
        let Some(seat) = &mut core.ctas[cta].seat else { return };
        let passes = seat.arrivals.wait(warp, lanes);
        assert_eq!(passes, Ok(true), "warp {warp} waits for a phase that is over");
        slot.warp.advance();
        slot.not_before = slot.not_before.max(m.cycle + core.latency[Class::Control as usize]);
        core.settle(warp, m.cycle, launch);
    }
}
