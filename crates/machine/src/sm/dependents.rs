//! Launches that overlap the one that they depend on, as the warps of an SM see them.
//!
//! | instruction | effect |
//! |---|---|
//! | `griddepcontrol.launch_dependents` | the first of a CTA tells the command processor |
//! | `griddepcontrol.wait` | a warp waits while a launch runs that its own depends on |
//!
//! Source: PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent Launch".
//! Invariant: a CTA tells once. Not modelled: what either instruction costs beyond its issue.

use durawarp_checkpoint::value;

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

    /// A launch depends on one that runs.
    pub(super) fn depends(&self, place: u8) -> bool {
        self.depending.contains(&place)
    }

    /// A warp of a CTA lets the next launch begin; true for the first.
    pub(super) fn let_go(&mut self, place: u8, cta: u64) -> bool {
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
