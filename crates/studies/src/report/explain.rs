//! What a scheme did in a run, and why: for each scheme that can be explained a renderer, found by the
//! scheme's name, and for some a drawing. Of a program of CPUs: where its time went, whatever the scheme, and
//! what persist buffers and their queues, held registers or recoverable regions did, where the scheme has
//! them.

mod core_regions;
mod explanation;
mod held_registers;
mod markers;
mod persist_queues;
mod processes;
mod regions;
mod selection;

use durawarp_base::diagnostic::Diagnostic;
use durawarp_persist::storage::StorageCost;
use durawarp_plot::Figure;
use durawarp_simulation::outcome::Outcome;

pub use explanation::Explanation;
pub(super) use selection::REASONS;
pub use selection::reasons;

/// A scheme that can be explained.
struct Explained {
    scheme: &'static str,
    explain: fn(&Outcome, &[StorageCost]) -> Option<Explanation>,
    draw: Option<fn(&Outcome) -> Option<Figure>>,
}

/// Schemes that can be explained, by name.
const EXPLAINED: [Explained; 3] = [
    Explained { scheme: "agpm", explain: selection::explain, draw: Some(selection::draw) },
    Explained { scheme: "nvw-fifo", explain: markers::explain, draw: None },
    Explained { scheme: "light-wsp", explain: regions::explain, draw: None },
];

fn of(scheme: &str) -> Option<&'static Explained> {
    EXPLAINED.iter().find(|explained| explained.scheme == scheme)
}

/// Names of the schemes whose runs can be explained.
pub fn explained() -> impl Iterator<Item = &'static str> {
    EXPLAINED.iter().map(|explained| explained.scheme)
}

/// A scheme of kernels without anything to explain is refused before a run; `typed` is what it was called.
///
/// # Errors
/// It is one, with those that are not.
pub fn can_be_explained(scheme: &str, typed: &str) -> Result<(), Diagnostic> {
    if of(scheme).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = explained().collect();
    let message = format!("scheme `{typed}` does nothing that could be explained; {} can be", names.join(", "));
    Err(Diagnostic::nowhere("explain", message))
}

/// Names of the schemes whose explanation has a drawing.
pub fn drawn() -> impl Iterator<Item = &'static str> {
    EXPLAINED.iter().filter(|explained| explained.draw.is_some()).map(|explained| explained.scheme)
}

/// What a run's scheme did, if it can be told; `storage` is what the scheme adds to the machine. Of a program
/// of CPUs: where its time went, and what the scheme did.
pub fn explanation(outcome: &Outcome, storage: &[StorageCost]) -> Option<Explanation> {
    if outcome.is_of_a_cpu() {
        let Explanation { mut text, mut data } = processes::explain(outcome)?;
        let own = persist_queues::explain(outcome).or_else(|| held_registers::explain(outcome));
        let own = own.or_else(|| regions::of_cores(outcome)).or_else(|| core_regions::explain(outcome));
        if let Some((own, of_scheme)) = own {
            text += &own;
            data["scheme"] = of_scheme;
        }
        return Some(Explanation { text, data });
    }
    (of(&outcome.scheme)?.explain)(outcome, storage)
}

/// The same as a drawing, where there is one of the scheme; it may be of nothing.
pub fn drawing(outcome: &Outcome) -> Option<Figure> {
    of(&outcome.scheme)?.draw?(outcome)
}
