//! Races of bulk copies, and of products of four warps (`wgmma`), with what warps did before.
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
//! A product reads shared memory as a copy out of it does; all of its chunks are looked at for each warp of
//! the group, as each has a part of a and all of b.
//!
//! Not found: what a warp accesses behind a copy, or a product, that it has not waited for.

use smallvec::SmallVec;

use super::super::ir::Space;
use super::super::warp::lanes_of;
use super::interface::{AccessKind, WarpAccess};
use super::races::{Lack, OfCta, PastAccess, RaceWatch, WORD};

impl RaceWatch<'_> {
    /// A bulk copy accesses one end of its bytes, or a product a chunk a lane.
    pub(super) fn copied(&mut self, access: &WarpAccess<'_>) {
        // The shared memory may be another CTA's.
        let (cta, owner) = (access.cta, access.owner);
        self.cta(cta);
        self.cta(owner);
        let (Some(OfCta { warps, .. }), Some(OfCta { shared, .. })) = (self.ctas.get(&cta), self.ctas.get(&owner))
        else {
            return;
        };
        let shadow = if access.space == Space::Shared { shared } else { &self.global };
        let known = &warps[access.warp as usize];
        let proxied = &known.proxied[usize::from(access.space != Space::Shared)];
        let (warp, pc, kind) = (access.warp, access.pc, access.kind);
        let clock = known.seen.of(cta, warp);
        let reads = kind == AccessKind::Read;
        let own = PastAccess { cta, warp, clock, pc, bytes: 15, strong: false, kind, changes: !reads };
        let mut found: SmallVec<[(u64, PastAccess, Lack); 2]> = SmallVec::new();
        for lane in lanes_of(access.lanes) {
            let at = access.addresses[lane];
            let Some(end) = at.checked_add(u64::from(access.bytes)) else { continue };
            // Rows of tiles may begin or end within a word.
            for word in at / WORD..end.div_ceil(WORD) {
                let Some(past) = shadow.cells.get(&word) else { continue };
                let before = past.writes.iter().chain(past.reads.iter().filter(|_| !reads));
                found.extend(before.filter_map(|other| {
                    let is_own = (other.cta, other.warp) == (cta, warp);
                    let lack = if !is_own && known.seen.of(other.cta, other.warp) < other.clock {
                        Lack::Order
                    } else if reads && proxied.of(other.cta, other.warp) < other.clock {
                        Lack::Proxy
                    } else {
                        return None;
                    };
                    Some((word, *other, lack))
                }));
            }
        }
        found.into_iter().for_each(|(word, other, lack)| self.race(access.space, word, [other, own], lack));
    }
}
