//! What persist barriers order: of each scope instance, the stores by epochs.
//!
//! ```text
//!   warp 0:  a  b  | c        epoch 0: a b x      a store of epoch 1 is durable  =>  all of epoch 0 is
//!   warp 1:  x     | y        epoch 1: c y        (| a barrier of a scope that both are in)
//! ```
//! Equations 1 to 3 of Gope et al. (section 5): M ≤prog barrier ≤prog M' implies M ≤persist M' where both are
//! of one instance of the barrier's scope. A barrier of a wider scope orders what narrower ones would. With a
//! *claim*, every barrier counts as one of that scope: what a program would need that uses a narrower one.
//!
//! Invariants: warps of an instance come to its barriers in the same order, so the n-th epochs of all belong
//! together.

use std::collections::BTreeMap;

use super::order::{self, RunOrder, instance, is_store};
use durawarp_persist::journal::{FactKind, Thread};
use durawarp_persist::vocab::PersistScope;

/// An instance of a scope: its stores by epochs, and how many epochs are known to be durable; none once a
/// fault was reported.
#[derive(Debug, Default)]
pub(super) struct Instance {
    pub(super) scope: Option<PersistScope>,
    pub(super) epochs: Vec<Vec<u32>>,
    pub(super) confirmed: Option<(usize, usize)>,
}

/// Where a store stands: for each scope that is used, its instance's number and its epoch.
type Standing = [(u32, u32); 3];

/// The epochs of a run.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) instances: Vec<Instance>,
    standings: BTreeMap<u32, Standing>,
    used: [bool; 3],
}

impl Scopes {
    /// Reads the barriers of a journal, each as it is or all as of one scope.
    pub(super) fn new(order: &RunOrder<'_>, claim: Option<PersistScope>) -> Scopes {
        let mut scopes = Scopes::default();
        let as_counted = |scope: PersistScope| claim.unwrap_or(scope);
        for fact in order.journal.facts() {
            if let FactKind::PersistReached(scope) = fact.kind {
                scopes.used[as_counted(scope) as usize] = true;
            }
        }
        // Only scopes that occur are followed; hence the pass before this one.
        let mut numbers: BTreeMap<(PersistScope, order::Instance), u32> = BTreeMap::new();
        let mut epochs: BTreeMap<Option<Thread>, [u32; 3]> = BTreeMap::new();
        for (at, fact) in order.journal.facts().iter().enumerate() {
            if let FactKind::PersistReached(scope) = fact.kind {
                let of_warp = epochs.entry(fact.author.thread()).or_default();
                // A wider barrier ends the epochs of narrower scopes as well.
                for epoch in &mut of_warp[..=as_counted(scope) as usize] {
                    *epoch += 1;
                }
            }
            if !is_store(fact.kind) || !scopes.used.contains(&true) {
                continue;
            }
            let of_warp = *epochs.entry(fact.author.thread()).or_default();
            let mut standing = Standing::default();
            for scope in PersistScope::ALL.into_iter().filter(|&scope| scopes.used[scope as usize]) {
                let next = scopes.instances.len() as u32;
                let number = *numbers.entry((scope, instance(scope, fact.author))).or_insert(next);
                if number == next {
                    let confirmed = Some((0, 0));
                    scopes.instances.push(Instance { scope: Some(scope), epochs: Vec::new(), confirmed });
                }
                let epoch = of_warp[scope as usize];
                let of_instance = &mut scopes.instances[number as usize].epochs;
                of_instance.resize_with(of_instance.len().max(epoch as usize + 1), Vec::new);
                of_instance[epoch as usize].push(at as u32);
                standing[scope as usize] = (number, epoch);
            }
            scopes.standings.insert(at as u32, standing);
        }
        scopes
    }

    /// The instances that a store is of, and its epoch in each.
    pub(super) fn epochs_of(&self, store: u32) -> impl Iterator<Item = (usize, usize)> {
        let standing = self.standings.get(&store).copied().unwrap_or_default();
        let used = self.used;
        (0..3)
            .filter(move |&scope| used[scope])
            .map(move |scope| (standing[scope].0 as usize, standing[scope].1 as usize))
    }

    /// A scope is used.
    pub(super) fn any(&self) -> bool {
        self.used.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Model;
    use super::super::script::{Script, warp, warp_of};
    use super::*;
    use durawarp_persist::image::PmImage;
    use durawarp_persist::promises::Promises;
    use durawarp_persist::vocab::Domain;

    /// Of each store, by its fact, where it stands; and each instance's scope and epochs.
    type Found = (Vec<Vec<(usize, usize)>>, Vec<(PersistScope, Vec<Vec<u32>>)>);

    fn scopes(script: &Script, claim: Option<PersistScope>, stores: &[u32]) -> Found {
        let initial = PmImage::new(0, vec![0; 512]);
        let model = Model { domain: Domain::Adr, promises: Promises::NONE };
        let scopes = Scopes::new(&RunOrder::new(&script.journal, &initial, model), claim);
        assert_eq!(scopes.any(), !scopes.instances.is_empty());
        assert!(scopes.instances.iter().all(|instance| instance.confirmed == Some((0, 0))));
        let standings = stores.iter().map(|&store| scopes.epochs_of(store).collect()).collect();
        (standings, scopes.instances.into_iter().map(|instance| (instance.scope.unwrap(), instance.epochs)).collect())
    }

    /// Warp 0: a | c, after a barrier of the CTA; warp 1: | b, after one of its own; another CTA: d. Stores
    /// are the facts 0, 3, 6, 8.
    fn run() -> Script {
        let reached = FactKind::PersistReached;
        let mut script = Script::default();
        script.store(warp(0), 0, 1).fact(reached(PersistScope::Cta), 0, warp(0)).store(warp(0), 128, 3);
        script.fact(reached(PersistScope::Thread), 0, warp(1)).store(warp(1), 256, 2);
        script.store(warp_of(7, 0), 384, 4);
        script
    }

    #[test]
    fn a_barrier_begins_an_epoch_of_its_scope_and_of_narrower_ones() {
        use PersistScope::{Cta, Thread};
        let (standings, instances) = scopes(&run(), None, &[0, 3, 6, 8]);
        assert_eq!(standings, [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(2, 1), (1, 0)], [(3, 0), (4, 0)]]);
        let expected = [
            (Thread, vec![vec![0], vec![3]]),
            (Cta, vec![vec![0, 6], vec![3]]),
            (Thread, vec![vec![], vec![6]]),
            (Thread, vec![vec![8]]),
            (Cta, vec![vec![8]]),
        ];
        assert_eq!(instances, expected);
    }

    #[test]
    fn a_claim_counts_every_barrier_as_one_of_its_scope() {
        let (standings, instances) = scopes(&run(), Some(PersistScope::Kernel), &[0, 3, 6, 8]);
        assert_eq!(standings, [[(0, 0)], [(0, 1)], [(0, 1)], [(0, 0)]]);
        assert_eq!(instances, [(PersistScope::Kernel, vec![vec![0, 8], vec![3, 6]])]);
        let (standings, instances) = scopes(&run(), Some(PersistScope::Thread), &[0, 3, 6]);
        assert_eq!(standings, [[(0, 0)], [(0, 1)], [(1, 1)]]);
        assert_eq!(instances.len(), 3);
    }

    #[test]
    fn without_a_barrier_no_scope_is_used() {
        let mut script = Script::default();
        script.store(warp(0), 0, 1).fence(warp(0));
        assert_eq!(scopes(&script, Some(PersistScope::Cta), &[0]), (vec![vec![]], vec![]));
    }
}
