//! Launches that overlap the one that they depend on, as the warps of an SM see them.
//!
//! | instruction | effect |
//! |---|---|
//! | `griddepcontrol.launch_dependents` | the first of a CTA tells the command processor |
//! | `griddepcontrol.wait` | a warp waits while a launch runs that its own depends on |
//!
//! Source: PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent Launch".
//! Invariant: a CTA tells once. Not modelled: what either instruction costs beyond its issue.

use crate::msg::{CommandProcessorMsg, Msg};
use durawarp_checkpoint::value;
use durawarp_engine::Ctx;
use durawarp_kernel::ir::{Class, GridStep};
use durawarp_persist::handler::{LaunchSet, SmEvent};
use durawarp_persist::journal::FactKind;

use super::core::IssueCore;
use super::memory_side::MemorySide;
use super::moment::Moment;
use super::wait::Wait;

/// Launches by their places, and CTAs by these and their numbers.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    /// Launches that depend on one that runs.
    depending: Vec<u8>,
    /// CTAs here that have let the launch begin that depends on theirs.
    let_go: Vec<(u8, u64)>,
}

value!(record Dependents { depending, let_go });

impl Dependents {
    /// A launch begins, or what it depended on is over.
    pub(super) fn begin(&mut self, place: u8, depends: bool) {
        self.depending.retain(|other| *other != place);
        if depends {
            self.depending.push(place);
        }
    }

    /// A warp lets the launch begin that depends on its own, or comes to a wait for those that its own
    /// depends on; true where it waits.
    pub(super) fn step(
        &mut self,
        warp: usize,
        step: GridStep,
        core: &IssueCore,
        m: &mut Moment<'_>,
        cx: &mut Ctx<'_, Msg>,
    ) -> bool {
        let slot = &core.slots[warp];
        let place = slot.launch;
        match step {
            GridStep::Wait => {
                let waits = self.depends(place);
                if !waits {
                    m.record.note(slot, FactKind::PrerequisitesPassed, 0);
                }
                waits
            }
            GridStep::LaunchDependents => {
                if self.let_go(place, core.ctas[usize::from(slot.cta)].cta) {
                    m.w.ports.to_command_processor().send(CommandProcessorMsg::LetsGo { place }, 0, cx);
                }
                false
            }
        }
    }

    /// What a launch depended on is over: its warps see in memory what that has written.
    pub(super) fn prerequisites_over(
        &mut self,
        (place, beside): (u8, LaunchSet),
        core: &mut IssueCore,
        memory: &mut MemorySide,
        m: &mut Moment<'_>,
    ) {
        self.begin(place, false);
        memory.l1.invalidate_all();
        if let Some(order) = &memory.leaving.order {
            let number = order.issued();
            m.host.tell(&SmEvent::LaunchStarts { number, launch: place, beside, again: true });
        }
        for warp in 0..core.slots.len() {
            let slot = &mut core.slots[warp];
            if slot.wait == Wait::Prerequisites && slot.launch == place {
                m.record.note(slot, FactKind::PrerequisitesPassed, 0);
                slot.not_before = slot.not_before.max(m.cycle + core.latency[Class::Control as usize]);
                core.settle(warp, m.cycle, m.launches.at(place));
            }
        }
    }

    /// A launch depends on one that runs.
    fn depends(&self, place: u8) -> bool {
        self.depending.contains(&place)
    }

    /// A warp of a CTA lets the next launch begin; true for the first.
    fn let_go(&mut self, place: u8, cta: u64) -> bool {
        let first = !self.let_go.contains(&(place, cta));
        if first {
            self.let_go.push((place, cta));
        }
        first
    }

    /// A CTA has ended: whether it had let the next launch begin.
    pub(super) fn end(&mut self, place: u8, cta: u64) -> bool {
        let at = self.let_go.iter().position(|own| *own == (place, cta));
        at.map(|at| self.let_go.swap_remove(at)).is_some()
    }
}
