//! A workload whose kernels run formed into regions ([`durawarp_kernel::regions`]): the host program that a
//! machine under a scheme of recoverable regions is given, and memory with a checkpoint area in it.
//!
//! ```text
//! Host ─ actions ─> FormedHost ─ launches of formed kernels, the host's own record ─> a machine or functional driver
//! area, after everything in persistent memory:   host record | groups of 32 threads | shadows
//! ```
//! One area serves all launches: it fits the largest, and its words carry the number of the launch
//! (`regions/layout.rs`). `record.rs` has the host's record of itself; `resume.rs` resumes a program after a
//! power failure.
//!
//! Invariants: the program's own buffers get what they get without formation; the area is outside of them.
//! The same program gives the same launches on every driver, as far as it has no races.

mod record;
pub(crate) mod regions;
pub(crate) mod resume;

use std::collections::VecDeque;
use std::sync::Arc;

use super::host::WorkloadHost;
use super::plan::image::image;
use super::plan::{FormedKernel, RunPlan};
use crate::host::functional::{Action, FunctionalError, drive};
use crate::host::position::Position;
use crate::host::view::{Bindings, View};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::functional::{self, Limits};
use durawarp_kernel::host::{HostAction, HostProgram};
use durawarp_kernel::ir::{Kernel, LANES};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::{AddressMap, CHECKPOINT_AREA, FlatMemory, Medium};
use durawarp_kernel::regions::{Area, Formed, Layout, RegionOptions, form};
use record::{HostRecord, RecordEntry};

/// A program of formed kernels. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FormedProgram {
    pub(crate) plan: Arc<RunPlan>,
    pub(crate) kernels: Arc<[FormedKernel]>,
    pub(crate) addresses: Arc<AddressMap>,
    pub(crate) record: HostRecord,
    /// As launch 0 has it.
    pub(crate) area: Area,
    /// Groups of 32 threads that fit into it.
    pub(crate) groups: u64,
    /// First address and bytes of everything that is added to memory.
    pub(crate) range: (u64, u64),
}

/// Every kernel that the host program may launch, formed.
///
/// # Errors
/// All kernels that cannot be formed.
pub(crate) fn formed_kernels(plan: &RunPlan, options: &RegionOptions) -> Result<Arc<[FormedKernel]>, Diagnostics> {
    if let Some((_, known)) = plan.formed.get().filter(|(of, _)| of == options) {
        return Ok(known.clone());
    }
    let kernels: Arc<[FormedKernel]> = form_anew(plan, options)?.into();
    // The kernels of the first options are kept; other options are formed anew each time, for comparisons.
    let _ = plan.formed.set((*options, kernels.clone()));
    Ok(kernels)
}

fn form_anew(plan: &RunPlan, options: &RegionOptions) -> Result<Vec<FormedKernel>, Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut kernels: Vec<FormedKernel> = Vec::new();
    for kernel in plan.program.kernels() {
        // Launched from several steps, it is one; kernels of several files may share a name.
        if kernels.iter().any(|(known, _)| Arc::ptr_eq(known, kernel)) {
            continue;
        }
        match form(kernel, options) {
            Ok(formed) => kernels.push((kernel.clone(), Arc::new(formed))),
            Err(error) => {
                let message = format!("kernel `{}` cannot be formed into regions: {error}", kernel.name);
                faults.push(Diagnostic::nowhere(&kernel.file, message));
            }
        }
    }
    faults.into_result(kernels)
}

/// Grows `room` to fit every launch with extents known before the run. Returns whether all are.
fn fixed_room(plan: &Arc<RunPlan>, kernels: &[FormedKernel], room: &mut Room) -> bool {
    let mut view = View::new(plan.clone());
    plan.program.launches().all(|step| {
        let Some((grid, block, shared)) = view.fixed_extents(step) else { return false };
        let formed = formed_of(kernels, &step.kernel);
        let ctas: u64 = grid.iter().map(|&n| u64::from(n)).product();
        let groups = ctas * u64::from(block.iter().product::<u32>().div_ceil(LANES as u32));
        let shared = u64::from(step.kernel.shared_bytes) + u64::from(shared);
        room.groups = room.groups.max(groups);
        room.shadow_bytes = room.shadow_bytes.max(formed.checkpoint.shadow_bytes_of(ctas, groups, shared));
        true
    })
}

/// Room for all launches of a host program that does not read the device; whether it is one.
fn walked_room(plan: &Arc<RunPlan>, kernels: &[FormedKernel], room: &mut Room) -> bool {
    let mut host = WorkloadHost::new(plan.clone());
    loop {
        match host.next(None) {
            Ok(HostAction::Launch(launch)) => room.include(kernels, &launch),
            Ok(HostAction::Read { .. } | HostAction::Reduce(_)) => return false,
            Ok(HostAction::Write { .. } | HostAction::Copy { .. } | HostAction::Warm(_) | HostAction::Sample(_)) => {}
            // What the host program cannot do, the run will tell.
            Ok(HostAction::Done) | Err(_) => return true,
        }
    }
}

/// How large an area must be.
#[derive(Debug, Default)]
struct Room {
    groups: u64,
    group_bytes: u32,
    shadow_bytes: u64,
}

impl Room {
    fn include(&mut self, kernels: &[FormedKernel], launch: &Launch) {
        self.groups = self.groups.max(Layout::groups(launch));
        let shadows = formed_of(kernels, &launch.kernel).checkpoint.shadow_bytes(launch);
        self.shadow_bytes = self.shadow_bytes.max(shadows);
    }
}

fn formed_of<'k>(kernels: &'k [FormedKernel], kernel: &Arc<Kernel>) -> &'k Arc<Formed> {
    let of = |(known, _): &&FormedKernel| Arc::ptr_eq(known, kernel);
    &kernels.iter().find(of).expect("every kernel of the program is formed").1
}

impl FormedProgram {
    /// The program of formed kernels. Where the extents of a launch follow from what the host reads from the
    /// device, it runs on the functional driver first, under `limits`, to see how large the checkpoint area
    /// must be.
    ///
    /// # Errors
    /// All kernels that cannot be formed; a functional run that fails.
    pub(crate) fn new(
        plan: &Arc<RunPlan>,
        options: &RegionOptions,
        limits: &Limits<'_>,
    ) -> Result<FormedProgram, Diagnostics> {
        let kernels = formed_kernels(plan, options)?;
        let mut room = Room::default();
        for (_, formed) in &*kernels {
            room.group_bytes = room.group_bytes.max(formed.checkpoint.group_bytes());
        }
        // The cheapest way to know all extents goes first: from the plan, by a walk of the host program, by a
        // functional run.
        if !fixed_room(plan, &kernels, &mut room) && !walked_room(plan, &kernels, &mut room) {
            let ran = drive(&mut WorkloadHost::new(plan.clone()), &mut image(plan), &mut |action, memory| {
                let Action::Launch(launch) = action else { return Ok(()) };
                room.include(&kernels, launch);
                functional::run(launch, memory, limits)?;
                Ok(())
            });
            let name = || plan.manifest.name.clone();
            ran.map_err(|fault| {
                Diagnostic::nowhere(&name(), format!("functional run, for the size of the {CHECKPOINT_AREA}: {fault}"))
            })?;
        }
        let mut addresses = (*plan.addresses).clone();
        let position = WorkloadHost::new(plan.clone()).position();
        let record_bytes = HostRecord::new(0, position.clone()).bytes().next_multiple_of(u64::from(Layout::ROW_BYTES));
        let groups_bytes = room.groups * u64::from(room.group_bytes);
        let bytes = record_bytes + groups_bytes + room.shadow_bytes;
        let start = addresses.allocate(CHECKPOINT_AREA, bytes, Medium::Nvm);
        let address = start + record_bytes;
        let area = Area { address, group_bytes: room.group_bytes, shadows: address + groups_bytes, launch: 0 };
        Ok(FormedProgram {
            plan: plan.clone(),
            kernels,
            addresses: Arc::new(addresses),
            record: HostRecord::new(start, position),
            area,
            groups: room.groups,
            range: (start, bytes),
        })
    }

    /// What is allocated in global memory, the checkpoint area included.
    pub fn addresses(&self) -> &Arc<AddressMap> {
        &self.addresses
    }

    /// Global memory before the first step.
    pub fn image(&self) -> FlatMemory {
        let mut memory = image(&self.plan);
        memory.place(self.range.0, vec![0; self.range.1 as usize]);
        memory
    }

    /// The host program, at its start.
    pub fn host(&self) -> FormedHost {
        FormedHost {
            program: self.clone(),
            host: {
                let mut host = WorkloadHost::new(self.plan.clone());
                host.note_positions();
                host
            },
            launches: 0,
            entries: 0,
            begun: None,
            replies: VecDeque::new(),
            noted: Vec::new(),
            asked: false,
            unsure: false,
            queue: VecDeque::new(),
        }
    }

    /// The kernels as they were, and as they are formed.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Formed>> {
        self.kernels.iter().map(|(_, formed)| formed)
    }

    /// First address and bytes of what is added to memory: the host's record, checkpoints and shadows.
    pub fn area(&self) -> (u64, u64) {
        self.range
    }

    /// Where instruction `pc` of a formed kernel stands: PTX file, line.
    pub fn source_of(&self, kernel: &str, pc: u32) -> Option<(String, u32)> {
        let formed = self.kernels().find(|formed| formed.kernel.name == kernel)?;
        Some((formed.kernel.file.to_string(), formed.kernel.pos.get(pc as usize)?.line))
    }

    /// The area of a launch.
    pub(crate) fn area_of(&self, launch: u32) -> Area {
        Area { launch, ..self.area }
    }

    /// What a launch's kernel became.
    fn formed(&self, launch: &Launch) -> &Arc<Formed> {
        formed_of(&self.kernels, &launch.kernel)
    }

    /// A launch of the program, the one of this number, as one of its formed kernel.
    fn bind(&self, launch: &Launch, number: u32) -> Result<Launch, String> {
        let (formed, area) = (self.formed(launch), self.area_of(number));
        let shadows = formed.checkpoint.shadow_bytes(launch);
        if Layout::groups(launch) > self.groups || area.shadows + shadows > self.range.0 + self.range.1 {
            return Err(format!(
                "launch {number}, of kernel `{}`, needs more room for checkpoints than any launch of the functional run",
                launch.kernel.name
            ));
        }
        let mut bound = formed.bind(launch, &area);
        bound.addresses = self.addresses.clone();
        Ok(bound)
    }
}

/// The host program of formed kernels.
#[derive(Debug)]
pub struct FormedHost {
    program: FormedProgram,
    host: WorkloadHost,
    /// Launches asked for.
    launches: u32,
    /// Entries of the host's record.
    entries: u64,
    /// The latest launch that had begun before a power failure: what comes before it has been done.
    begun: Option<u32>,
    /// What reads returned before a power failure.
    replies: VecDeque<u64>,
    /// What reads returned since the last step that changed memory, and for which operation.
    noted: Vec<(u64, u64)>,
    asked: bool,
    /// The next step that changes memory may change what the host has seen since its last entry.
    unsure: bool,
    queue: VecDeque<HostAction>,
}

impl FormedHost {
    /// Which memory each buffer's name stands for, now and later.
    pub fn bindings(&self) -> Bindings {
        self.host.bindings()
    }

    /// Launches asked for so far; the last one's number is one less.
    pub(crate) fn launches(&self) -> u32 {
        self.launches
    }

    /// Goes on where memory says that a power failure ended it; `begun` is the latest launch that had begun.
    ///
    /// # Errors
    /// A record that is none of this program's.
    pub(crate) fn go_on(&mut self, begun: Option<u32>, memory: &FlatMemory) -> Result<(), FunctionalError> {
        self.begun = begun;
        let latest = self.program.record.latest(memory).map_err(FunctionalError::Record)?;
        if let Some((number, RecordEntry { position, launches, replies })) = latest {
            self.host.go_to(&position);
            (self.entries, self.launches, self.replies) = (number, launches, replies.into());
        }
        Ok(())
    }

    /// What comes next had been done before the power failure.
    fn is_past(&self) -> bool {
        self.begun.is_some_and(|begun| self.launches <= begun)
    }

    /// A step that changes memory: the record's entry comes first if one is due.
    fn step(&mut self, action: HostAction, position: Position) -> Result<HostAction, String> {
        let replies = self.noted.drain(..).filter(|(at, _)| *at == position.at).map(|(_, value)| value).collect();
        if std::mem::take(&mut self.unsure) {
            self.entries += 1;
            let launches = self.launches - u32::from(matches!(action, HostAction::Launch(_)));
            let entry = RecordEntry { position, launches, replies };
            self.queue.extend(self.program.record.writes(self.entries, &entry)?);
        }
        // Done again, a copy could find another source.
        self.unsure = matches!(action, HostAction::Copy { .. });
        self.queue.push_back(action);
        Ok(self.queue.pop_front().expect("there is the step"))
    }
}

impl HostProgram for FormedHost {
    fn has_clusters(&self) -> bool {
        self.host.has_clusters()
    }

    fn next(&mut self, read: Option<u64>) -> Result<HostAction, String> {
        if let Some(action) = self.queue.pop_front() {
            return Ok(action);
        }
        let mut read = read;
        loop {
            if std::mem::take(&mut self.asked) {
                let value = read.ok_or("the device did not return what the host program read")?;
                self.noted.push((self.host.position().at, value));
                self.unsure = true;
            }
            let action = self.host.next(read.take())?;
            let position = self.host.before().clone();
            match action {
                HostAction::Read { .. } | HostAction::Reduce(_) => {
                    self.asked = true;
                    // What the record has is not read again: a launch that had begun may have changed it.
                    match self.replies.pop_front() {
                        Some(value) => read = Some(value),
                        None if self.is_past() => {
                            return Err(
                                "the host's record misses what was read before a launch that has begun".to_owned()
                            );
                        }
                        None => return Ok(action),
                    }
                }
                HostAction::Launch(launch) => {
                    self.launches += 1;
                    let number = self.launches - 1;
                    if self.begun.is_some_and(|begun| number < begun) {
                        self.noted.clear();
                        self.unsure = false;
                        continue;
                    }
                    let bound = HostAction::Launch(Arc::new(self.program.bind(&launch, number)?));
                    if self.begun == Some(number) {
                        // Its entry was written before it began.
                        self.noted.clear();
                        self.unsure = false;
                        return Ok(bound);
                    }
                    return self.step(bound, position);
                }
                HostAction::Write { .. } | HostAction::Copy { .. } if self.is_past() => {
                    self.noted.clear();
                    self.unsure = false;
                }
                HostAction::Write { .. } | HostAction::Copy { .. } => return self.step(action, position),
                HostAction::Warm(_) if self.is_past() => {}
                HostAction::Warm(_) | HostAction::Sample(_) | HostAction::Done => return Ok(action),
            }
        }
    }
}
