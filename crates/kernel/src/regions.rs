//! LightWSP's compiler over the kernel IR: recoverable regions with their live-out registers checkpointed.
//!
//! ```text
//! kernel ─ items ─ unroll ─ code ─┬─ place boundaries ─ plan checkpoints ─┐ until nothing is missing
//!                                 └──────────────<────────────────────────┘ then merge, then emit ─> Formed
//! ```
//! Source: Zhou, Zeng, Jung, "LightWSP: Whole-System Persistence on the Cheap", sections III-C and IV-A (the
//! compiler), IV-C (boundaries at synchronisation), IV-F (recovery). The paper works on CPU code after
//! register allocation; this is its port to GPU kernels, after slot allocation. What is stored where is in
//! `regions/layout.rs`, how code looks in `regions/emit.rs`, where checkpoint stores stand in
//! `regions/plan.rs`, pruning in `regions/values.rs`.
//!
//! # Boundaries
//! A boundary is a store of the next program counter, and `pm.region`.
//!
//! | boundary at | because |
//! |---|---|
//! | the entry | the first region begins there |
//! | exits (before) | a thread's last program counter then says that it is done |
//! | a loop with stores | a region holds at most the threshold |
//! | waits for other warps | their stores may stay in a queue until this region ends (`regions/waits.rs`) |
//! | fences, barriers, atomics (before) | the paper's rule |
//! | barriers, atomics (after) | the next region draws its number once they have happened |
//! | the program's `pm.region` | the program asks for it |
//! | too many stores in a row | a region holds at most the threshold |
//!
//! The boundaries after barriers and atomics are ours ([`RegionOptions::after_sync`]): with the paper's
//! boundary before them alone, the stores of a critical section may persist in the wrong order. Calls have
//! been inlined; a kernel with recursive functions is refused.
//!
//! Merging then removes, in program order, every boundary without which all of these rules still hold: the
//! one at the header of a loop that has another, for example. The threshold counts words of 8 bytes a lane,
//! checkpoints and the boundary's own store included.
//!
//! # Divergence
//! A region is a warp's: its stores persist all or none, whichever lanes made them. Each *thread* has its own
//! checkpoint and program counter, and a boundary renews those of the active lanes. Lanes that wait elsewhere
//! keep an older one, and a restart repeats what they did since. So a lane that waits must not have stored,
//! read other lanes or gone round a loop since its own last boundary: some lanes alone would repeat that with
//! another result, or out of step with the rest. For every branch that may split the warp
//! (`regions/uniform.rs`) and has a boundary on one of its paths, there is one before the branch and one at
//! the end of each path, wherever something of this kind may have happened since the last. The SIMT stack is
//! then no part of the checkpoint: a restart groups lanes by their program counters and lets them meet at the
//! nearest post-dominator they have in common (`regions/resume.rs`).
//!
//! A register with one value in all lanes may have one word instead of one a lane
//! ([`RegionOptions::uniform_once`], ours): `regions/homes.rs` says where that is sound.
//!
//! # Memory that does not persist, and barriers
//! The paper's whole system has only memory that persists. Here shared and local memory get a *shadow* in the
//! checkpoint area ([`RegionOptions::scratch`]): each store is repeated there as a store of the region, and a
//! restart fills the memory from it. Atomics on shared memory are repeated too (`emit.rs` says how, and which
//! cannot be). That is this port's way; what it costs is in the counts.
//!
//! A warp counts the barriers that it has passed, and stores the count after each. Boundaries stand on both
//! sides, and the region after a barrier gets its number when all have arrived, so that what any warp stored
//! before it persists before what any stores after it. When a restart finds a warp in front of a barrier
//! that another has passed, all have arrived there: it goes on after it.
//!
//! # What a restart needs beyond the area
//! The launch (constants, special registers), and memory as the persisted regions left it.
//! [`Formed::obstacles`] says why a kernel cannot be resumed in its middle: it is formed, and its regions
//! persist as others do.
//!
//! Invariants: forming the same boundaries again changes nothing; the formed kernel writes what the kernel
//! writes, plus the checkpoint area; a region holds at most the threshold, or is in `Report::oversize`. A
//! region here is a warp's; hardware may commit those of a CTA's warps together. Not modelled: I/O. Shared
//! and local memory that was never written holds what an earlier launch left in the shadow when it is
//! resumed, not zeros: a program has no right to either.

mod code;
mod emit;
mod homes;
mod layout;
mod plan;
mod resume;
mod terms;
mod uniform;
mod unroll;
mod values;
mod waits;

use std::sync::Arc;

use serde::Serialize;

use super::ir::{ConstSource, Gathering, Kernel, LANES, Op, Slot, SourcePos, Space};
use super::launch::Launch;
use code::{Code, OrderingNeed, items_of, order_of};
use emit::{Added, CONSTS32, CONSTS64};
use homes::Homes;
use plan::{BOUNDARY_STORES, CheckpointPlan, Ground};
use values::Values;
use waits::Waits;

pub use layout::{Area, Layout};
pub use resume::{Restart, ResumeError, ResumePoint};
pub use terms::{Reason, RegionError, RegionOptions, Role};
pub use values::Restore;

/// A region: from a boundary to the next ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Its first instruction in the formed kernel: what the boundary stores as program counter.
    pub entry: u32,
    /// Where that is in the PTX text.
    pub pos: SourcePos,
    /// Why it starts there.
    pub reason: Reason,
    /// Most words a lane stores until the next boundary, that one's included.
    pub stores: u32,
    /// How a restart gets the registers alive at the entry.
    pub restore: Restore,
}

/// What came of forming a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormReport {
    /// Instructions before.
    pub instructions: u32,
    /// Instructions after.
    pub formed_instructions: u32,
    /// Checkpoint stores in the code.
    pub checkpoints: u32,
    /// Of those, stores of one word for all lanes.
    pub once: u32,
    /// Writes to shared and local memory that are repeated at a shadow.
    pub shadows: u32,
    /// Registers that restarts of all regions compute instead of loading them.
    pub pruned: u32,
    /// Boundaries that merging took away.
    pub merged: u32,
    /// Counted loops unrolled.
    pub unrolled: u32,
    /// Other loops unrolled.
    pub speculatively_unrolled: u32,
    /// Regions of more stores than the threshold that cannot be split: lines of the PTX text.
    pub oversize: Vec<u32>,
}

/// A kernel in regions.
#[derive(Debug, Clone)]
pub struct Formed {
    /// The kernel with boundaries and checkpoint stores. Its last parameter is the address of the checkpoint
    /// area.
    pub kernel: Arc<Kernel>,
    /// Regions, by entry; the `pm.region` of number `i` has it as `imm`.
    pub regions: Vec<Region>,
    /// Where checkpoints lie.
    pub checkpoint: Layout,
    /// Figures.
    pub report: FormReport,
    /// What each instruction is there for.
    pub roles: Vec<Role>,
    /// Why it cannot be resumed in its middle; empty when it can.
    pub obstacles: Vec<&'static str>,
    /// How it was formed.
    pub options: RegionOptions,
    /// The immediate post-dominator of each instruction.
    meets: Vec<u32>,
    /// Constants of the kernel as it was: 32 and 64 bits.
    consts: [usize; 2],
    /// The 64-bit slots that count barriers, of the CTA and of the grid.
    counts: [Option<Slot>; 2],
    /// The 64-bit slot with the address of a group, to which words of all lanes are stored.
    words: Option<Slot>,
}

/// Forms the regions of a kernel.
///
/// # Errors
/// A threshold that is too small, or a kernel beyond the IR's limits.
///
/// # Example: a loop that stores, in regions of at most 8 stores
/// ```
/// use durawarp_kernel::{ptx, regions};
/// let text = ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 n) {\n\
///     .reg .u32 %r<3>; .reg .u64 %d<2>; .reg .pred %p<2>;\nld.param.u64 %d1, [out];\nld.param.u32 %r1, [n];\n\
///     mov.u32 %r2, 0;\nL:\nst.global.u32 [%d1], %r2;\nadd.s64 %d1, %d1, 4;\nadd.u32 %r2, %r2, 1;\n\
///     setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra L;\nret;\n}\n";
/// let kernel = &ptx::parse("k.ptx", text).unwrap().kernels[0];
/// let options = regions::RegionOptions { threshold_stores: 8, ..Default::default() };
/// let formed = regions::form(kernel, &options).unwrap();
/// assert!(formed.regions.iter().all(|region| region.stores <= 8));
/// assert_eq!(formed.report.speculatively_unrolled, 1);
/// ```
pub fn form(kernel: &Kernel, options: &RegionOptions) -> Result<Formed, RegionError> {
    if options.threshold_stores <= BOUNDARY_STORES {
        return Err(RegionError::Threshold(options.threshold_stores));
    }
    if kernel.code.is_empty() {
        return Err(RegionError::Empty);
    }
    if kernel.code.iter().any(|inst| matches!(inst.op, Op::Call { .. })) {
        return Err(RegionError::Recursion);
    }
    // A store to shared memory may be to another CTA's, of which its own CTA's shadow has nothing.
    let options = &RegionOptions { scratch: options.scratch && !code::has_clusters(kernel), ..*options };
    // Which loops may be unrolled depends on where lanes part. Unrolling moves every instruction, so all that
    // is known about the code is found again.
    let mut code = Code::new(items_of(kernel), kernel);
    let mut divergence = uniform::divergence(&code, kernel);
    let (items, unrolled) = unroll::unroll(&code, kernel, &divergence.forks, options);
    if unrolled != unroll::Unrolled::default() {
        code = Code::new(items, kernel);
        divergence = uniform::divergence(&code, kernel);
    }
    let values = Values::new(&code);
    let waits = Waits::new(&code, kernel);
    let ground = Ground {
        code: &code,
        forks: &divergence.forks,
        values: &values,
        waits: &waits,
        threshold: options.threshold_stores,
        scratch: options.scratch,
        prune: options.prune,
        draws_at_boundary: !options.after_sync,
    };
    // Boundaries before homes: what is stored at all, and where, is known only with the plan.
    let fixed = fixed(&code, options);
    let Placed { reasons, plan, merged } = place(&ground, &fixed);
    let homes = match options.uniform_once {
        true => Homes::once(&code, &plan, &divergence),
        false => Homes::of_lanes(&code),
    };
    let [registers, once] = homes.stored(&plan);
    let shadows = code.shadows(options.scratch);
    let gathers = |kind| options.scratch && code.items.iter().any(|item| code::gathering(&item.inst) == Some(kind));
    let in_shadow = |space: Space| {
        let is =
            |pc: usize| shadows[pc].is_some() && matches!(code.items[pc].inst.op, Op::Mem(mem) if mem.space == space);
        (0..code.len()).any(is)
    };
    // What is added to the kernel depends on this layout, and numbers of registers on what is added. So the
    // layout is made with the old numbers, and renumbered after.
    let mut checkpoint = Layout {
        registers,
        once,
        counts: [Gathering::Cta, Gathering::Grid].map(gathers),
        shared: in_shadow(Space::Shared),
        local_bytes: if in_shadow(Space::Local) { kernel.local_bytes } else { 0 },
    };
    let added = Added::new(&checkpoint);
    let new = |r: u16| added.renumbered(kernel, r);
    checkpoint.registers.iter_mut().chain(&mut checkpoint.once).for_each(|r| *r = new(*r));
    let emitted = emit::emit(&code, (&plan, &homes), &checkpoint, &shadows, kernel)?;
    let region = |&(entry, pc): &(u32, u32)| {
        let restore = plan.restore[pc as usize].clone().expect("a boundary");
        let all = |list: Vec<u16>| list.into_iter().map(new).collect();
        // `homes` knows the old numbers, so loads are dealt out by those and renumbered last. Steps are
        // instructions, hence name slots, which stay.
        let is_once = |r: &u16| homes.loads[pc as usize].contains(u32::from(*r));
        let (once, loads) = restore.loads.into_iter().partition(is_once);
        Region {
            entry,
            pos: code.items[pc as usize].pos,
            reason: reasons[pc as usize].expect("a boundary has a reason"),
            stores: ground.most_from(&plan, pc),
            restore: Restore { loads: all(loads), once: all(once), steps: restore.steps, pruned: all(restore.pruned) },
        }
    };
    let regions: Vec<Region> = emitted.entries.iter().map(region).collect();
    let count = |role: Role| emitted.roles.iter().filter(|r| **r == role).count() as u32;
    let report = FormReport {
        instructions: kernel.code.len() as u32,
        formed_instructions: emitted.kernel.code.len() as u32,
        checkpoints: count(Role::Checkpoint),
        once: homes.stores(),
        shadows: shadows.iter().flatten().count() as u32,
        pruned: regions.iter().map(|region| region.restore.pruned.len() as u32).sum(),
        merged,
        unrolled: unrolled.counted,
        speculatively_unrolled: unrolled.speculative,
        oversize: ground.oversize(&plan).iter().map(|&pc| code.items[pc as usize].pos.line).collect(),
    };
    Ok(Formed {
        obstacles: code.obstacles(kernel, &shadows, options.scratch),
        options: *options,
        kernel: Arc::new(emitted.kernel),
        regions,
        checkpoint,
        report,
        roles: emitted.roles,
        meets: emitted.meets,
        consts: [kernel.consts32.len(), kernel.consts64.len()],
        counts: emitted.counts,
        words: emitted.words,
    })
}

/// Boundaries that stay whatever else is done.
fn fixed(code: &Code, options: &RegionOptions) -> Vec<Option<Reason>> {
    let mut fixed: Vec<Option<Reason>> = vec![None; code.len()];
    for pc in 0..code.len() {
        let item = &code.items[pc];
        if item.asked {
            fixed[pc].get_or_insert(Reason::Asked);
        }
        if item.inst.op == Op::Exit {
            fixed[pc].get_or_insert(Reason::Exit);
        }
        match order_of(&item.inst, options.scratch) {
            None => {}
            Some(order) => {
                fixed[pc].get_or_insert(Reason::Order);
                if order == OrderingNeed::Meeting && options.after_sync && pc + 1 < code.len() {
                    fixed[pc + 1].get_or_insert(Reason::AfterOrder);
                }
            }
        }
    }
    fixed[0] = Some(Reason::Entry);
    fixed
}

/// Boundaries, found.
struct Placed {
    reasons: Vec<Option<Reason>>,
    plan: CheckpointPlan,
    merged: u32,
}

/// Adds boundaries until nothing is missing, then takes away those without which nothing is.
fn place(ground: &Ground<'_>, fixed: &[Option<Reason>]) -> Placed {
    let mut reasons = fixed.to_vec();
    let set = |reasons: &[Option<Reason>]| reasons.iter().map(Option::is_some).collect::<Vec<bool>>();
    let mut plan = ground.plan(&set(&reasons));
    while let Some((reason, places)) = ground.missing(&plan) {
        for pc in places {
            reasons[pc as usize].get_or_insert(reason);
        }
        plan = ground.plan(&set(&reasons));
    }
    let merged = merge(ground, fixed, &mut reasons, &mut plan);
    Placed { reasons, plan, merged }
}

/// Takes away, in program order and as long as some can go, boundaries without which nothing is missing. How
/// many.
fn merge(
    ground: &Ground<'_>,
    fixed: &[Option<Reason>],
    reasons: &mut [Option<Reason>],
    plan: &mut CheckpointPlan,
) -> u32 {
    let mut merged = 0;
    loop {
        let before = merged;
        for pc in 0..fixed.len() {
            if fixed[pc].is_some() || reasons[pc].is_none() {
                continue;
            }
            // Some regions may be over the threshold whatever is done; to take a boundary away must not add
            // one.
            let without = reasons[pc].take();
            let candidate = ground.plan(&reasons.iter().map(Option::is_some).collect::<Vec<bool>>());
            let sound = ground.missing(&candidate).is_none()
                && ground.oversize(&candidate).len() <= ground.oversize(plan).len();
            if sound {
                *plan = candidate;
                merged += 1;
            } else {
                reasons[pc] = without;
            }
        }
        if merged == before {
            return merged;
        }
    }
}

impl Formed {
    /// Words of 8 bytes that a lane stores to persistent memory at an instruction, as the threshold counts
    /// them.
    pub fn stores_of(&self, pc: u32) -> u32 {
        code::words(&self.kernel.code[pc as usize], false)
    }

    /// Bytes that a checkpoint store of these lanes of a warp writes: once where all lanes store one word,
    /// which each group of 32 has.
    pub fn checkpoint_bytes(&self, pc: u32, lanes: u64) -> u64 {
        let inst = &self.kernel.code[pc as usize];
        let Op::Mem(mem) = inst.op else { return 0 };
        let groups = u64::from(lanes as u32 != 0) + u64::from(lanes >> LANES != 0);
        let once = self.words == Some(inst.src[0]);
        u64::from(mem.bytes()) * if once { groups } else { u64::from(lanes.count_ones()) }
    }

    /// The launch of the formed kernel that does what `launch` does, with its checkpoints in `area`. The area
    /// lies in persistent memory, has at least [`Layout::bytes`] bytes, and holds zeros or checkpoints of
    /// launches of other numbers.
    ///
    /// # Panics
    /// When `launch` is of another kernel than the one that was formed, or the area's groups are too small.
    pub fn bind(&self, launch: &Launch, area: &Area) -> Launch {
        let (kernel, layout) = (&self.kernel, &self.checkpoint);
        let consts = [launch.consts32.len(), launch.consts64.len()];
        assert!(launch.kernel.name == kernel.name && consts == self.consts, "a launch of that kernel");
        assert!(layout.group_bytes() <= area.group_bytes, "room for a group");
        let literal = |source: &ConstSource| match source {
            ConstSource::Literal(value) => *value,
            _ => 0,
        };
        let mut formed = launch.clone();
        let given = [area.group_bytes, layout.shared_stride(launch) as u32];
        debug_assert_eq!(given.len(), CONSTS32.len());
        let rest = kernel.consts32[consts[0] + given.len()..].iter().map(|source| literal(source) as u32);
        formed.consts32.extend(given.into_iter().chain(rest).map(|value| [value; LANES]));
        let shadows = [layout.shared_shadow(launch, area, 0), layout.local_shadows(launch, area)];
        let given = [area.address, area.tag(), shadows[0], shadows[1]];
        debug_assert_eq!(given.len(), CONSTS64.len());
        let (first, regions) = (consts[1] + given.len(), self.regions.len());
        let counters = kernel.consts64[first..first + regions].iter().map(|source| literal(source) | area.tag());
        let rest = kernel.consts64[first + regions..].iter().map(literal);
        formed.consts64.extend(given.into_iter().chain(counters).chain(rest).map(|value| [value; LANES]));
        formed.kernel = kernel.clone();
        let more = Added::new(layout).hardware();
        formed.registers_per_thread = (launch.registers_per_thread + more).min(255);
        formed
    }
}

#[cfg(test)]
mod tests {
    use super::super::ptx;
    use super::*;

    /// The boundaries of a kernel of `stores` stores of a word in a row, and the words of each region.
    fn regions_of(stores: u32, threshold_stores: u32) -> (Vec<Reason>, Vec<u32>) {
        let row: String = (0..stores).map(|at| format!("st.global.u64 [%d1+{}], 1;\n", 8 * at)).collect();
        let text = format!(
            ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n.reg .u64 %d<2>;\n\
             ld.param.u64 %d1, [out];\n{row}ret;\n}}\n"
        );
        let kernel = ptx::parse("k.ptx", &text).unwrap().kernels[0].clone();
        let formed = form(&kernel, &RegionOptions { threshold_stores, ..RegionOptions::default() }).unwrap();
        assert!(formed.report.oversize.is_empty());
        formed.regions.iter().map(|region| (region.reason, region.stores)).unzip()
    }

    #[test]
    fn a_region_holds_the_threshold_with_the_store_of_its_boundary() {
        use Reason::{Entry, Exit, Threshold};
        // Of eight words, one is the program counter at the boundary. After the exit nothing is stored.
        assert_eq!(regions_of(6, 8), (vec![Entry, Exit], vec![7, 0]));
        assert_eq!(regions_of(7, 8), (vec![Entry, Exit], vec![8, 0]), "on time");
        assert_eq!(regions_of(8, 8), (vec![Entry, Threshold, Exit], vec![8, 2, 0]), "one more");
        assert_eq!(regions_of(14, 8), (vec![Entry, Threshold, Exit], vec![8, 8, 0]));
        assert_eq!(regions_of(15, 8), (vec![Entry, Threshold, Threshold, Exit], vec![8, 8, 2, 0]));
        assert_eq!(regions_of(2, 2), (vec![Entry, Threshold, Exit], vec![2, 2, 0]), "the least threshold");
    }

    #[test]
    fn placing_again_what_was_placed_changes_nothing() {
        for text in [
            include_str!("../../../workloads/gemm/kernel.ptx"),
            include_str!("../../../workloads/nw/kernel.ptx"),
            include_str!("../../../workloads/bfs/kernel.ptx"),
        ] {
            for kernel in &ptx::parse("kernel.ptx", text).unwrap().kernels {
                for threshold in [8, 32] {
                    let options = RegionOptions { threshold_stores: threshold, ..RegionOptions::default() };
                    let code = Code::new(items_of(kernel), kernel);
                    let (divergence, values) = (uniform::divergence(&code, kernel), Values::new(&code));
                    let waits = Waits::new(&code, kernel);
                    let ground = Ground {
                        code: &code,
                        forks: &divergence.forks,
                        values: &values,
                        waits: &waits,
                        threshold,
                        scratch: options.scratch,
                        prune: options.prune,
                        draws_at_boundary: false,
                    };
                    let fixed = fixed(&code, &options);
                    let once = place(&ground, &fixed);
                    assert!(ground.missing(&once.plan).is_none());
                    // From the result: nothing is missing, and nothing can go.
                    let mut again = once.reasons.clone();
                    assert_eq!(merge(&ground, &fixed, &mut again, &mut ground.plan(&once.plan.boundary)), 0);
                    assert_eq!(again, once.reasons);
                }
            }
        }
    }
}
