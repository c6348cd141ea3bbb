//! What persist barriers order: of each scope instance, the stores by epochs.
//!
//! ```text
//!   warp 0:  a  b  | c        epoch 0: a b x      a store of epoch 1 is durable  =>  all of epoch 0 is
//!   warp 1:  x     | y        epoch 1: c y        (| a barrier of a scope that both are in)
//! ```
//! Equations 1 to 3 of Gope et al. (section 5): M ≤prog barrier ≤prog M' implies M ≤persist M' where both are of one
//! instance of the barrier's scope. A barrier of a wider scope orders what narrower ones would. With a *claim*, every barrier counts
//! as one of that scope: what a program would need that uses a narrower one.
//!
//! Invariants: warps of an instance come to its barriers in the same order, so the n-th epochs of all belong together.

use std::collections::BTreeMap;

use super::order::{Order, WarpKey, instance, is_store, warp_key};
use crate::persist::journal::FactKind;
use crate::persist::vocab::PersistScope;

/// An instance of a scope: its stores by epochs, and how many epochs are known to be durable; none once a fault was
/// reported.
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
    pub(super) fn new(order: &Order<'_>, claim: Option<PersistScope>) -> Scopes {
        let mut scopes = Scopes::default();
        let as_counted = |scope: PersistScope| claim.unwrap_or(scope);
        for fact in order.journal.facts() {
            if let FactKind::PersistReached(scope) = fact.kind {
                scopes.used[as_counted(scope) as usize] = true;
            }
        }
        let mut numbers: BTreeMap<(PersistScope, (u32, u32, u32)), u32> = BTreeMap::new();
        let mut epochs: BTreeMap<WarpKey, [u32; 3]> = BTreeMap::new();
        for (at, fact) in order.journal.facts().iter().enumerate() {
            if let FactKind::PersistReached(scope) = fact.kind {
                let of_warp = epochs.entry(warp_key(fact.author)).or_default();
                for epoch in &mut of_warp[..=as_counted(scope) as usize] {
                    *epoch += 1;
                }
            }
            if !is_store(fact.kind) || !scopes.used.contains(&true) {
                continue;
            }
            let of_warp = *epochs.entry(warp_key(fact.author)).or_default();
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
    pub(super) fn of(&self, store: u32) -> impl Iterator<Item = (usize, usize)> {
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
