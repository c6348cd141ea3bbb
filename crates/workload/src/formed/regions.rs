//! A workload whose kernels are formed into regions ([`durawarp_kernel::regions`]), on the functional driver:
//! how long regions are when they run, what they store, and that memory comes out the same.
//!
//! Every launch gets a checkpoint area of its own, of zeros, after everything that is allocated in
//! persistent memory. Instructions are those of warps. A boundary counts as one instruction, its store, as in
//! the paper: the `pm.region` after it stands for what the paper's hardware does at that store.

use std::sync::Arc;

use crate::host::WorkloadHost;
use crate::host::functional::{Action, FunctionalError, drive, run};
use crate::plan::RunPlan;
use crate::plan::image::image;
use durawarp_kernel::functional::scrutiny::Scrutiny;
use durawarp_kernel::functional::{Event, Limits, Observer, Wanted, run_observed};
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::memory::Medium;
use durawarp_kernel::regions::{Formed, RegionOptions, Role, form};

/// What one kernel came to, over all its launches.
#[derive(Debug, Clone)]
pub struct KernelRegions {
    /// Kernel name.
    pub kernel: String,
    /// The kernel in regions.
    pub formed: Arc<Formed>,
    pub launches: u64,
    /// Warp instructions of the kernel as it was.
    pub original: u64,
    /// Warp instructions of the formed kernel, `pm.region` left out.
    pub instructions: u64,
    /// Regions that ran.
    pub regions: u64,
    /// Words of 8 bytes a lane stored: the program's, checkpoints and boundaries.
    pub stores: u64,
    /// Checkpoint stores among them.
    pub checkpoints: u64,
    /// Bytes that these wrote, over all lanes.
    pub checkpoint_bytes: u64,
    /// Words stored to shadows of shared and local memory, and counts of barriers, among them.
    pub shadows: u64,
}

/// A run of formed kernels.
#[derive(Debug, Clone)]
pub struct RegionRun {
    /// Kernels, in the order of their first launches.
    pub kernels: Vec<KernelRegions>,
    /// The formed kernels left the memory that the kernels leave.
    pub same_memory: bool,
}

/// Runs the host program with its kernels formed into regions, and as it is.
///
/// # Errors
/// A fault of the run; a kernel that cannot be formed.
pub(crate) fn run_regions(
    plan: &Arc<RunPlan>,
    limits: &Limits<'_>,
    options: &RegionOptions,
) -> Result<RegionRun, FunctionalError> {
    let reference = run(plan, limits, Scrutiny::default())?;
    let mut original = reference.launches().iter().map(|launch| launch.counts.warp_instructions);
    let (mut host, mut memory) = (WorkloadHost::new(plan.clone()), image(plan));
    // Kernels of several files may share a name.
    let mut originals: Vec<Arc<Kernel>> = Vec::new();
    let mut kernels: Vec<KernelRegions> = Vec::new();
    drive(&mut host, &mut memory, &mut |action, memory| {
        let Action::Launch(launch) = action else { return Ok(()) };
        let name = &launch.kernel.name;
        let at = match originals.iter().position(|known| Arc::ptr_eq(known, &launch.kernel)) {
            Some(at) => at,
            None => {
                let formed = form(&launch.kernel, options);
                let formed = formed.map_err(|error| FunctionalError::Regions(name.clone(), error))?;
                originals.push(launch.kernel.clone());
                kernels.push(KernelRegions::new(name, formed));
                kernels.len() - 1
            }
        };
        let kernel = &mut kernels[at];
        // The formed program launches what the reference did, in the same order.
        kernel.launches += 1;
        kernel.original += original.next().unwrap_or_default();
        let formed = kernel.formed.clone();
        let mut addresses = (*plan.addresses).clone();
        let bytes = formed.checkpoint.bytes(launch);
        let area = addresses.allocate("checkpoint area", bytes, Medium::Nvm);
        memory.place(area, vec![0; bytes as usize]);
        let mut bound = formed.bind(launch, &formed.checkpoint.alone(launch, area));
        bound.addresses = Arc::new(addresses);
        let mut count = |event: Event<'_>| {
            if let Event::Issued { pc, lanes, .. } = event {
                kernel.count(pc, lanes);
            }
        };
        let wanted = Wanted { issued: true, ..Wanted::default() };
        run_observed(&bound, memory, limits, Some(Observer { wanted, tell: &mut count }), None)?;
        Ok(())
    })?;
    let same = |(start, bytes): (u64, &[u8])| memory.slice(start, bytes.len()) == Some(bytes);
    Ok(RegionRun { kernels, same_memory: reference.memory().ranges().all(same) })
}

impl KernelRegions {
    fn new(name: &str, formed: Formed) -> KernelRegions {
        let (kernel, formed) = (name.to_owned(), Arc::new(formed));
        KernelRegions {
            kernel,
            formed,
            launches: 0,
            original: 0,
            instructions: 0,
            regions: 0,
            stores: 0,
            checkpoints: 0,
            checkpoint_bytes: 0,
            shadows: 0,
        }
    }

    fn count(&mut self, pc: u32, lanes: u64) {
        let stores = u64::from(self.formed.stores_of(pc));
        match self.formed.roles[pc as usize] {
            Role::Marker => {
                self.regions += 1;
                return;
            }
            Role::Checkpoint => {
                self.checkpoints += 1;
                self.checkpoint_bytes += self.formed.checkpoint_bytes(pc, lanes);
            }
            Role::Shadow | Role::Count => self.shadows += stores,
            _ => {}
        }
        self.instructions += 1;
        self.stores += stores;
    }
}
