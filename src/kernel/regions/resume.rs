//! Restart from a checkpoint: a warp at the entries of its threads' regions, from the launch and the checkpoint alone.
//!
//! Lanes are grouped by their program counters. Groups meet at the nearest post-dominator that they have in common: the
//! one that comes first where some of them are already there waits for the others. Nested recursively, that is a SIMT
//! stack on which each group goes on alone and joins the others no later than it did before the failure. Lanes repeat
//! what they did since their own last boundary; that may be repeated (`regions.rs`, "Divergence").

use super::super::ir::{NEVER, Op};
use super::super::launch::Launch;
use super::super::memory::{FlatMemory, Unmapped};
use super::super::warp::{Path, Warp, lanes_of};
use super::{Formed, Role};

/// Lanes of a warp that resume at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// The lanes.
    pub lanes: u64,
    /// The region at whose entry they start; none when they never passed a boundary and start with the kernel.
    pub region: Option<usize>,
}

impl Formed {
    /// Where the live lanes of a fresh warp resume by what the checkpoint says, in the order of the places.
    ///
    /// # Errors
    /// When the area is not all allocated.
    ///
    /// # Panics
    /// When the checkpoint holds a program counter that no boundary stores.
    pub fn resume_points(
        &self,
        launch: &Launch,
        area: u64,
        warp: &Warp,
        memory: &FlatMemory,
    ) -> Result<Vec<ResumePoint>, Unmapped> {
        let mut points: Vec<ResumePoint> = Vec::new();
        for lane in lanes_of(warp.live()) {
            let (cta, thread) = warp.thread_of(lane as u32);
            let pc = memory.read_u32s(self.checkpoint.address(launch, area, cta, thread), 1)?[0];
            let known = |pc: u32| self.regions.iter().position(|r| r.entry == pc).expect("the entry of a region");
            let region = (pc != 0).then(|| known(pc));
            match points.iter_mut().find(|point| point.region == region) {
                Some(point) => point.lanes |= 1 << lane,
                None => points.push(ResumePoint { lanes: 1 << lane, region }),
            }
        }
        points.sort_by_key(|point| point.region);
        Ok(points)
    }

    /// Makes a fresh warp ([`Warp::start`]) continue from the checkpoint at `area`. `launch` is that of
    /// [`Formed::bind`].
    ///
    /// # Errors
    /// When the area is not all allocated.
    ///
    /// # Panics
    /// When the checkpoint holds a program counter that no boundary stores.
    pub fn resume(&self, launch: &Launch, area: u64, warp: &mut Warp, memory: &FlatMemory) -> Result<(), Unmapped> {
        let points = self.resume_points(launch, area, warp, memory)?;
        let live = warp.live();
        let prologue = self.roles.iter().take_while(|role| **role == Role::Address).count();
        for inst in &self.kernel.code[..prologue] {
            warp.alu(inst, launch, live);
        }
        let mut groups = Vec::new();
        for point in &points {
            let pc = point.region.map_or(0, |region| self.regions[region].entry);
            groups.push((pc, point.lanes));
            let Some(region) = point.region.map(|region| &self.regions[region]) else { continue };
            for &register in &region.restore.loads {
                let offset = u64::from(self.checkpoint.offset_of(register).expect("what is loaded has a slot"));
                for lane in lanes_of(point.lanes) {
                    let (cta, thread) = warp.thread_of(lane as u32);
                    let at = self.checkpoint.address(launch, area, cta, thread) + offset;
                    let value = memory.read_u64s(at, 1)?[0];
                    self.write(warp, register, lane, value);
                }
            }
            for step in &region.restore.steps {
                debug_assert!(matches!(step.op, Op::Alu(_)));
                warp.alu(step, launch, point.lanes);
            }
        }
        let mut paths = Vec::new();
        self.stack(&groups, NEVER, &mut paths);
        warp.continue_on(paths);
        Ok(())
    }

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
