//! Restart from a checkpoint: a warp at the entries of its threads' regions, from the launch and the
//! checkpoint area alone.
//!
//! Lanes are grouped by their program counters. Groups meet at the nearest post-dominator that they have in
//! common: the one that comes first where some of them are already there waits for the others. Nested
//! recursively, that is a SIMT stack on which each group goes on alone and joins the others no later than it
//! did before the failure. Lanes repeat what they did since their own last boundary; that may be repeated
//! (`regions.rs`, "Divergence"). Lanes whose last boundary is that of their exit are done. Lanes in front of
//! a barrier that others have passed go on after it.

use super::super::functional::Start;
use super::super::ir::{Gathering, NEVER, Op};
use super::super::launch::Launch;
use super::super::memory::{FlatMemory, Unmapped};
use super::super::warp::{Path, Warp, lanes_of};
use super::layout::{Area, Layout};
use super::{Formed, Role, code};

/// Lanes of a warp that resume at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    pub lanes: u64,
    /// The region at whose entry they start; none when they never passed a boundary and start with the
    /// kernel.
    pub region: Option<usize>,
}

/// Why an area says nothing of where to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// It is not all allocated.
    #[error("checkpoint area: {0}")]
    Unmapped(#[from] Unmapped),
    /// A word that no boundary stores.
    #[error("the checkpoint of thread {thread} of CTA {cta} has the program counter {counter}, where no region starts")]
    Counter {
        /// CTA number.
        cta: u64,
        /// Thread of the CTA.
        thread: u32,
        /// The program counter.
        counter: u32,
    },
}

/// A launch of a formed kernel on the way back from a power failure: what its area said then.
#[derive(Debug)]
pub struct Restart<'a> {
    formed: &'a Formed,
    launch: &'a Launch,
    area: Area,
    /// Most barriers that a thread of each CTA has passed, and most barriers of the grid of all threads.
    passed: Vec<u32>,
    passed_grid: u32,
}

impl<'a> Restart<'a> {
    /// Reads the area. `launch` is that of [`Formed::bind`].
    ///
    /// # Errors
    /// An area that is not all allocated or holds a program counter that no boundary stores.
    pub fn new(
        formed: &'a Formed,
        launch: &'a Launch,
        area: &Area,
        memory: &FlatMemory,
    ) -> Result<Restart<'a>, ResumeError> {
        let mut restart =
            Restart { formed, launch, area: *area, passed: vec![0; launch.ctas() as usize], passed_grid: 0 };
        for cta in 0..launch.ctas() {
            for thread in 0..launch.threads_per_cta() {
                restart.region(cta, thread, memory)?;
                let count = |kind| restart.count(kind, cta, thread, memory);
                let (of_cta, of_grid) = (count(Gathering::Cta)?, count(Gathering::Grid)?);
                let most = &mut restart.passed[cta as usize];
                *most = (*most).max(of_cta);
                restart.passed_grid = restart.passed_grid.max(of_grid);
            }
        }
        Ok(restart)
    }

    /// The region at which a thread resumes.
    fn region(&self, cta: u64, thread: u32, memory: &FlatMemory) -> Result<Option<usize>, ResumeError> {
        let word = memory.read_u64s(Layout::address(self.launch, &self.area, cta, thread), 1)?[0];
        if word >> 32 != self.area.tag() >> 32 {
            return Ok(None);
        }
        let counter = word as u32;
        let known = self.formed.regions.binary_search_by_key(&counter, |region| region.entry);
        known.map(Some).map_err(|_| ResumeError::Counter { cta, thread, counter })
    }

    /// How many barriers of a kind a thread has passed.
    fn count(&self, kind: Gathering, cta: u64, thread: u32, memory: &FlatMemory) -> Result<u32, ResumeError> {
        let Some(row) = self.formed.checkpoint.count_of(kind) else { return Ok(0) };
        let word = memory.read_u64s(Layout::address(self.launch, &self.area, cta, thread) + u64::from(row), 1)?[0];
        Ok(if word >> 32 == self.area.tag() >> 32 { word as u32 } else { 0 })
    }

    /// Where the live lanes of a fresh warp resume, in the order of the places.
    ///
    /// # Errors
    /// As [`Restart::new`].
    pub fn points(&self, warp: &Warp, memory: &FlatMemory) -> Result<Vec<ResumePoint>, ResumeError> {
        let mut points: Vec<ResumePoint> = Vec::new();
        for lane in lanes_of(warp.live()) {
            let (cta, thread) = warp.thread_of(lane as u32);
            let region = self.region(cta, thread, memory)?;
            match points.iter_mut().find(|point| point.region == region) {
                Some(point) => point.lanes |= 1 << lane,
                None => points.push(ResumePoint { lanes: 1 << lane, region }),
            }
        }
        points.sort_by_key(|point| point.region);
        Ok(points)
    }

    /// No thread has anything left to do.
    ///
    /// # Errors
    /// As [`Restart::new`].
    pub fn is_done(&self, warp_size: u32, memory: &FlatMemory) -> Result<bool, ResumeError> {
        let mut warp = Warp::default();
        for cta in 0..self.launch.ctas() {
            for number in 0..self.launch.warps_per_cta(warp_size) {
                warp.start(self.launch, cta, number, warp_size);
                self.warp(&mut warp, memory)?;
                if !warp.is_done() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Sets up what a driver starts ([`super::super::functional::run_observed`]). CTAs read their own part of
    /// the area, which no other CTA changes.
    ///
    /// # Errors
    /// As [`Restart::new`].
    pub fn start(&self, start: Start<'_>, memory: &FlatMemory) -> Result<(), ResumeError> {
        match start {
            Start::Memory { cta, shared, local } => self.scratch(cta, shared, local, memory),
            Start::Warp(warp) => self.warp(warp, memory),
        }
    }

    /// Fills shared and local memory of a CTA from their shadows.
    fn scratch(&self, cta: u64, shared: &mut [u8], local: &mut [u8], memory: &FlatMemory) -> Result<(), ResumeError> {
        let layout = &self.formed.checkpoint;
        if layout.shared && !shared.is_empty() {
            let from = layout.shared_shadow(self.launch, &self.area, cta);
            shared.copy_from_slice(memory.read(from, shared.len())?);
        }
        if layout.local_bytes > 0 {
            let bytes = layout.local_bytes as usize;
            for (thread, own) in local.chunks_exact_mut(bytes).enumerate().take(self.launch.threads_per_cta() as usize)
            {
                let from = layout.local_shadow(self.launch, &self.area, cta, thread as u32);
                own.copy_from_slice(memory.read(from, bytes)?);
            }
        }
        Ok(())
    }

    /// Makes a fresh warp ([`Warp::start`]) continue from the checkpoint. It has no lanes left when all are
    /// done.
    fn warp(&self, warp: &mut Warp, memory: &FlatMemory) -> Result<(), ResumeError> {
        let (formed, launch) = (self.formed, self.launch);
        let points = self.points(warp, memory)?;
        // The prologue computes its registers from the launch alone, so they are in no checkpoint: it runs
        // again.
        let prologue = formed.roles.iter().take_while(|role| **role == Role::Address).count();
        for inst in &formed.kernel.code[..prologue] {
            warp.alu(inst, launch, warp.live());
        }
        let mut groups = Vec::new();
        for point in &points {
            let Some(region) = point.region.map(|region| &formed.regions[region]) else {
                // Nothing was stored for these lanes yet: they begin at the beginning, the prologue included.
                groups.push((0, point.lanes));
                continue;
            };
            let (layout, restore) = (&formed.checkpoint, &region.restore);
            type Base = fn(&Launch, &Area, u64, u32) -> u64;
            let of_lanes = restore.loads.iter().map(|&r| (r, layout.offset_of(r), Layout::address as Base));
            let of_groups = restore.once.iter().map(|&r| (r, layout.word_of(r), Layout::group_address as Base));
            for (register, offset, base) in of_lanes.chain(of_groups) {
                let offset = u64::from(offset.expect("what is loaded has a place"));
                for lane in lanes_of(point.lanes) {
                    let (cta, thread) = warp.thread_of(lane as u32);
                    let value = memory.read_u64s(base(launch, &self.area, cta, thread) + offset, 1)?[0];
                    formed.write(warp, register, lane, value);
                }
            }
            // After the loads, from which the steps compute the registers that were not stored.
            for step in &region.restore.steps {
                debug_assert!(matches!(step.op, Op::Alu(_)));
                warp.alu(step, launch, point.lanes);
            }
            for (slot, kind) in formed.counts.into_iter().zip([Gathering::Cta, Gathering::Grid]) {
                let Some(slot) = slot else { continue };
                for lane in lanes_of(point.lanes) {
                    let (cta, thread) = warp.thread_of(lane as u32);
                    let count = self.area.tag() | u64::from(self.count(kind, cta, thread, memory)?);
                    formed.write(warp, formed.kernel.slots32 + slot, lane, count);
                }
            }
            // Last: `entered` reads the guard of the entry, and the count of barriers passed.
            let (pc, lanes) = self.entered(region.entry, point.lanes, warp);
            if lanes != 0 {
                groups.push((pc, lanes));
            }
        }
        let mut paths = Vec::new();
        formed.stack(&groups, NEVER, &mut paths);
        warp.continue_on(paths);
        Ok(())
    }

    /// Where lanes at an entry go on, and which of them: those that exit there are done, and a barrier that
    /// others have passed is passed.
    fn entered(&self, entry: u32, lanes: u64, warp: &mut Warp) -> (u32, u64) {
        let code = &self.formed.kernel.code;
        let inst = &code[entry as usize];
        let holds = match inst.guard.parts() {
            None => lanes,
            Some((slot, negated)) => {
                let predicate = warp.predicate(slot);
                lanes & if negated { !predicate } else { predicate }
            }
        };
        if inst.op == Op::Exit {
            return (entry, lanes & !holds);
        }
        let Some(kind) = code::gathering(inst) else { return (entry, lanes) };
        let grid = kind == Gathering::Grid;
        let Some(slot) = self.formed.counts[usize::from(grid)].filter(|_| holds != 0) else { return (entry, lanes) };
        let first = holds.trailing_zeros();
        let (cta, _) = warp.thread_of(first);
        let most = if grid { self.passed_grid } else { self.passed[cta as usize] };
        if warp.read64(slot, first) as u32 >= most {
            return (entry, lanes);
        }
        // Behind the barrier it is counted, and the count stored: its next boundary will do that.
        warp.alu(&code[entry as usize + 1], self.launch, holds);
        (entry + 2, lanes)
    }
}

impl Formed {
    fn write(&self, warp: &mut Warp, register: u16, lane: usize, value: u64) {
        let (n32, n64) = (self.kernel.slots32, self.kernel.slots64);
        let lanes = super::super::ir::LANES;
        let group = &mut warp.groups_mut()[lane / lanes];
        let lane = lane % lanes;
        if register < n32 {
            group.r32[usize::from(register)][lane] = value as u32;
        } else if register < n32 + n64 {
            group.r64[usize::from(register - n32)][lane] = value;
        } else {
            let p = &mut group.predicates[usize::from(register - n32 - n64)];
            *p = *p & !(1 << lane) | u32::from(value as u32 != 0) << lane;
        }
    }

    /// The post-dominators of an instruction from itself on, [`NEVER`] left out.
    fn chain(&self, pc: u32) -> Vec<u32> {
        let mut chain = vec![pc];
        let mut at = pc;
        while let Some(&next) = self.meets.get(at as usize)
            && next != NEVER
            && !chain.contains(&next)
        {
            chain.push(next);
            at = next;
        }
        chain
    }

    /// Appends the paths of groups that meet at `reconverge` at the latest.
    fn stack(&self, groups: &[(u32, u64)], reconverge: u32, paths: &mut Vec<Path>) {
        let mask = groups.iter().fold(0, |mask, group| mask | group.1);
        let [(first, _), others @ ..] = groups else { return };
        if others.is_empty() {
            paths.push(Path { pc: *first, reconverge, mask });
            return;
        }
        let chains: Vec<Vec<u32>> = groups.iter().map(|group| self.chain(group.0)).collect();
        let common = chains[0].iter().copied().find(|pc| chains.iter().all(|chain| chain.contains(pc)));
        let meet = common.unwrap_or(NEVER);
        paths.push(Path { pc: meet, reconverge, mask });
        // Those that come to the meeting place by the same way may meet earlier.
        let mut ways: Vec<(u32, Vec<(u32, u64)>)> = Vec::new();
        for (group, chain) in groups.iter().zip(&chains) {
            let before = chain.iter().take_while(|&&pc| pc != meet).last();
            // Already there.
            let Some(&way) = before else { continue };
            match ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, members)) => members.push(*group),
                None => ways.push((way, vec![*group])),
            }
        }
        for (_, members) in ways {
            self.stack(&members, meet, paths);
        }
    }
}
