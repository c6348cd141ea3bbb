//! Races of bulk copies, and of products of four warps (`wgmma`) and in tensor memory (`tcgen05`), with what
//! warps do before and after them.
//!
//! A bulk copy accesses memory by the asynchronous proxy (PTX ISA, "Proxies"). What warps stored with plain
//! instructions is before it only behind a `fence.proxy.async` of the warp that stored, or of the one that
//! copies, with everything else that orders the two:
//!
//! ```text
//!   warp 0:  st.shared  fence.proxy.async  bar.sync
//!   warp 1:                                bar.sync  cp.async.bulk.global.shared::cta
//! ```
//! | what was before | the copy | must be |
//! |---|---|---|
//! | a store, an atomic | reads the word | ordered, and behind a fence between proxies |
//! | any access | writes the word | ordered: barriers in shared memory are enough for programs in practice |
//!
//! A copy goes on beside its warp: it is a party of its own ([`Party`]), with clocks as a warp has them, and
//! what comes after it must know of its end:
//!
//! | | who knows of its end |
//! |---|---|
//! | to shared memory | each warp that tests its `mbarrier` afterwards |
//! | out of shared memory: its reads | the warp behind `wait_group.read` or `wait_group` |
//! | its writes | the warp behind `wait_group` |
//! | a product of four warps | each warp of the four behind `wgmma.wait_group` |
//! | a product in tensor memory, a copy to it | each warp that tests the `mbarrier` of a later `tcgen05.commit` |
//!
//! and who is ordered after these. A product reads shared memory as a copy out of it does; all of its chunks
//! are looked at for each warp of the group, as each has a part of a and all of b. Tensor memory itself is
//! not looked at.
//!
//! Not found: an access behind a copy whose barrier nobody has tested, where a later copy of the same warp
//! was waited for; that a barrier's phase was tested before the copy of that phase was complete.

use smallvec::SmallVec;

use super::super::ir::{BulkStep, GroupStep, Op, Space};
use super::super::warp::lanes_of;
use super::clocks::{Clocks, PastAccess, WORD};
use super::interface::{AccessKind, WarpAccess};
use super::races::{Lack, OfCta, RaceWatch};
use super::under_way::{Party, waited};

impl RaceWatch<'_> {
    /// A warp issues a copy or a product, or counts groups of them.
    pub(super) fn goes_on(&mut self, cta: u64, warp: u32, op: Op) {
        let (warps, parties) = (self.warps, self.parties);
        let OfCta { warps: known, under_way, .. } = self.cta(cta);
        let (seen, under_way) = (&mut known[warp as usize].seen, &mut under_way[warp as usize]);
        let mut know = |party: Party, clock: Option<u32>| {
            if let Some(clock) = clock {
                seen.raise(cta, party.of(warp, warps), clock, parties);
            }
        };
        match op {
            Op::Bulk(_) => under_way.copies += 1,
            Op::BulkGroups(BulkStep::Commit) => under_way.committed.push(under_way.copies),
            Op::BulkGroups(BulkStep::WaitRead(left)) => know(Party::Reads, waited(&under_way.committed, left)),
            Op::BulkGroups(BulkStep::Wait(left)) => {
                let last = waited(&under_way.committed, left);
                know(Party::Reads, last);
                know(Party::Writes, last);
            }
            // One way of the tensor cores: a copy to their memory counts as a product.
            Op::Tensor(step) if step.multiplies().is_some() || step.copies().is_some() => {
                under_way.tensor_products += 1;
            }
            Op::WarpGroup(GroupStep::Multiply) => under_way.products += 1,
            Op::WarpGroup(GroupStep::Commit) => under_way.committed_products.push(under_way.products),
            Op::WarpGroup(GroupStep::Wait(left)) => {
                know(Party::Products, waited(&under_way.committed_products, left));
            }
            _ => {}
        }
    }

    /// A copy to shared memory completes bytes at a barrier: who tests that knows of its end.
    pub(super) fn completes(&mut self, cta: u64, warp: u32, owner: u64, barrier: u64) {
        let copies = self.cta(cta).under_way[warp as usize].copies;
        self.ends_at(cta, (Party::Loads.of(warp, self.warps), copies), owner, barrier);
    }

    /// A warp arrives at a barrier behind its products in tensor memory: who tests that knows of their end.
    pub(super) fn commits(&mut self, cta: u64, warp: u32, owner: u64, barrier: u64) {
        let products = self.cta(cta).under_way[warp as usize].tensor_products;
        self.ends_at(cta, (Party::TensorProducts.of(warp, self.warps), products), owner, barrier);
    }

    /// The same, and of what the warp knows, as of any arrival.
    pub(super) fn commits_to(&mut self, cta: u64, warp: u32, owner: u64, barrier: u64) {
        self.commits(cta, warp, owner, barrier);
        let known = self.cta(cta).warps[warp as usize].clone();
        let flag = self.cta(owner).shared.flags.entry(barrier / WORD).or_default();
        flag.device.join(&known.seen);
        flag.proxied.iter_mut().zip(&known.proxied).for_each(|(all, own)| all.join(own));
        let parties = self.parties;
        self.cta(cta).warps[warp as usize].seen.advance(cta, warp, parties);
    }

    /// Who tests a barrier knows of what a party has done up to a clock.
    fn ends_at(&mut self, cta: u64, (party, clock): (u32, u32), owner: u64, barrier: u64) {
        let parties = self.parties;
        let mut clocks = Clocks::default();
        clocks.raise(cta, party, clock, parties);
        let flag = self.cta(owner).shared.flags.entry(barrier / WORD).or_default();
        flag.device.join(&clocks);
        flag.phases = true;
    }

    /// A bulk copy accesses one end of its bytes, or a product a chunk a lane.
    pub(super) fn copied(&mut self, access: &WarpAccess<'_>) {
        let (cta, owner, warps) = (access.cta, access.owner, self.warps);
        self.cta(cta);
        let op = self.launch.kernel.code[access.pc as usize].op;
        // The shared memory may be another CTA's: it is taken out while it is looked at.
        let mut theirs = std::mem::take(&mut self.cta(owner).shared);
        let Some(OfCta { warps: known, under_way, .. }) = self.ctas.get(&cta) else { return };
        let shadow = if access.space == Space::Shared { &mut theirs } else { &mut self.global };
        let known = &known[access.warp as usize];
        let proxied = &known.proxied[usize::from(access.space != Space::Shared)];
        let (warp, pc, kind) = (access.warp, access.pc, access.kind);
        let under_way = &under_way[warp as usize];
        let (party, clock) = match (op, access.space) {
            (Op::WarpGroup(_), _) => (Party::Products, under_way.products),
            (Op::Tensor(_), _) => (Party::TensorProducts, under_way.tensor_products),
            (Op::Bulk(bulk), _) if bulk.kind.completes() => (Party::Loads, under_way.copies),
            (_, Space::Shared) => (Party::Reads, under_way.copies),
            _ => (Party::Writes, under_way.copies),
        };
        let reads = kind == AccessKind::Read;
        // Reductions are atomic, element by element.
        let (strong, changes, party) = (kind == AccessKind::Atomic, !reads, party.of(warp, warps));
        let own = PastAccess { cta, warp: party, clock, pc, bytes: 15, strong, kind, changes };
        let mut found: SmallVec<[(u64, PastAccess, Lack); 2]> = SmallVec::new();
        let beside = if access.space == Space::Shared { &[] } else { &self.beside[..] };
        for lane in lanes_of(access.lanes) {
            let at = access.addresses[lane];
            let Some(end) = at.checked_add(u64::from(access.bytes)) else { continue };
            // Rows of tiles may begin or end within a word.
            for word in at / WORD..end.div_ceil(WORD) {
                let past = shadow.cells.entry(word).or_default();
                found.extend(past.conflicts(own).filter_map(|other| {
                    // An older copy of the warp may still be under way.
                    let is_own =
                        other.cta == cta && (other.warp == warp || (other.warp, other.clock) == (party, clock));
                    let beside = other.warp as usize >= warps;
                    let lack = if !is_own && known.seen.of(other.cta, other.warp) < other.clock {
                        if beside { Lack::Wait } else { Lack::Order }
                    } else if reads && !beside && proxied.of(other.cta, other.warp) < other.clock {
                        Lack::Proxy
                    } else {
                        return None;
                    };
                    Some((word, *other, lack))
                }));
                // What it lacks was told above.
                past.take(own, &known.seen, &mut |_| {});
                for other in beside {
                    let lack = Lack::End(other.past.number);
                    other.against(word, &own, &known.seen, |first| found.push((word, first, lack)));
                }
            }
        }
        self.cta(owner).shared = theirs;
        found.into_iter().for_each(|(word, other, lack)| self.race(access.space, word, [other, own], lack));
    }
}
