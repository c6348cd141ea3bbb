//! What persists depend on among harts, as coherence messages and handlers carry it.
//!
//! Source: persistence parallelism (BROI), section IV-B, after delegated persist ordering: a reply of the
//! coherence protocol brings the requester the persists that whoever had the line has not made durable. Plain
//! data; who keeps, passes on and drops dependencies is the scheme's (`schemes/delegated.rs`).

use durawarp_checkpoint::value;
use smallvec::SmallVec;

/// Everything in a persist buffer up to an entry has to be durable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// Whose buffer, by its number among all harts of the machine.
    pub hart: u16,
    /// The entry. Entries of a buffer are numbered from 1.
    pub id: u64,
}

value!(record Dependency { hart, id });

/// At most one of a buffer.
pub type Dependencies = SmallVec<[Dependency; 2]>;

/// Adds a dependency: of two on one buffer the later entry counts.
pub fn depend(on: &mut Dependencies, dependency: Dependency) {
    match on.iter_mut().find(|known| known.hart == dependency.hart) {
        Some(known) => known.id = known.id.max(dependency.id),
        None => on.push(dependency),
    }
}

/// A number that stands for them, in any order.
pub fn digest(dependencies: &[Dependency]) -> u64 {
    dependencies.iter().fold(0, |sum, of| sum ^ (u64::from(of.hart) << 48 ^ of.id).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_on_one_buffer_the_later_entry_counts() {
        let mut on = Dependencies::new();
        for (hart, id) in [(1, 5), (2, 1), (1, 4), (2, 7)] {
            depend(&mut on, Dependency { hart, id });
        }
        assert_eq!(on[..], [Dependency { hart: 1, id: 5 }, Dependency { hart: 2, id: 7 }]);
        let turned: Vec<Dependency> = on.iter().rev().copied().collect();
        assert_eq!(digest(&on), digest(&turned));
    }
}
