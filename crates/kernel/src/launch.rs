//! A kernel with everything a launch fixes: grid, block, parameters, constant pools, address map.
//!
//! Limits are those of the CUDA programming guide, compute capability 6.0 and later. What a particular
//! machine can hold (shared memory and registers of an SM) is checked by the machine.

use std::ops::Range;
use std::sync::Arc;

use durawarp_checkpoint::{LoadFault, SharedState, StateReader, StateWriter, Storable as _};

use super::cluster::{MAX_CLUSTER, NO_RANK};
use super::ir::{ConstSource, Inst, Kernel, LANES, Mem, MemKind, Module, SurfaceSize, element, relocate};
use super::memory::AddressMap;
use super::traced::CtaSource;

/// Threads of a CTA, at most.
pub const MAX_THREADS: u32 = 1024;
/// Shared memory of a CTA in bytes, at most (the size of its address window).
pub const MAX_SHARED: u32 = 1 << 24;

/// What the host gives a launch.
#[derive(Debug, Clone)]
pub struct Binding<'a> {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameter block (see [`ParamBlock`]).
    pub params: &'a [u8],
    /// Addresses of the module's `.global` variables, in their order.
    pub globals: &'a [u64],
    /// Content of the constant bank where it differs from the module's (`cudaMemcpyToSymbol`).
    pub const_bank: Option<&'a [u8]>,
    /// Textures by name.
    pub textures: &'a [(String, Texture)],
    /// Surfaces by name.
    pub surfaces: &'a [(String, Surface)],
    /// Hardware registers a thread, instead of the kernel's estimate.
    pub registers: Option<u32>,
    /// CTAs of a cluster in x, y, z, where the launch says so.
    pub cluster: Option<[u32; 3]>,
    /// What is allocated in global memory.
    pub addresses: Arc<AddressMap>,
}

/// Why a launch is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A grid without CTAs, or with too many.
    #[error("the grid {0:?} must have 1 to 2147483647 CTAs in x and 1 to 65535 in y and z")]
    Grid([u32; 3]),
    /// A block without threads, or with too many.
    #[error("the block {block:?} must have 1 to {limit} threads")]
    Block {
        /// Threads in x, y, z.
        block: [u32; 3],
        /// The most that the kernel allows.
        limit: u32,
    },
    /// A block other than the one that the kernel asks for.
    #[error("the block {block:?} is not that of `.reqntid`, which kernel `{kernel}` asks for: {required:?}")]
    RequiredBlock {
        kernel: String,
        /// Threads in x, y, z.
        block: [u32; 3],
        /// What `.reqntid` says.
        required: [u32; 3],
    },
    /// A grid that is no multiple of the kernel's clusters.
    #[error("the grid {grid:?} is no multiple of the clusters of kernel `{kernel}`: {cluster:?}")]
    Cluster {
        kernel: String,
        /// CTAs in x, y, z.
        grid: [u32; 3],
        /// CTAs of a cluster.
        cluster: [u32; 3],
    },
    /// Clusters other than those that the kernel asks for.
    #[error("clusters of {cluster:?} are not those of `.reqnctapercluster`, which kernel `{kernel}` has: {required:?}")]
    RequiredCluster {
        kernel: String,
        /// CTAs of a cluster.
        cluster: [u32; 3],
        /// What `.reqnctapercluster` says.
        required: [u32; 3],
    },
    /// A cluster without CTAs, or with too many.
    #[error("a cluster of kernel `{kernel}` has 1 to {limit} CTAs, not {cluster:?}")]
    ClusterSize {
        kernel: String,
        /// CTAs of a cluster.
        cluster: [u32; 3],
        /// The most that there may be.
        limit: u32,
    },
    /// A kernel of pairs of CTAs whose clusters have no pairs.
    #[error(
        "kernel `{kernel}` has instructions of two CTAs (`.cta_group::2`), and clusters of {ctas}: pairs take an even number"
    )]
    NoPairs {
        /// The kernel.
        kernel: String,
        /// CTAs of a cluster.
        ctas: u32,
    },
    /// The kernel leaves the size of clusters to the launch, which does not state it.
    #[error("kernel `{0}` has `.explicitcluster`: its launch states `cluster`")]
    NoCluster(String),
    /// A parameter block of the wrong size.
    #[error("kernel `{kernel}` takes {expected} bytes of parameters ({names}), not {found}")]
    Params {
        kernel: String,
        /// Size of its parameter block.
        expected: u32,
        /// Bytes given.
        found: usize,
        /// Its parameters.
        names: String,
    },
    /// Too much shared memory.
    #[error("{0} bytes of shared memory exceed what can be addressed")]
    Shared(u64),
    /// A texture that the kernel fetches from was not given.
    #[error("texture `{0}` is not bound")]
    Texture(String),
    /// A surface that the kernel uses was not given.
    #[error("surface `{0}` is not bound")]
    Surface(String),
    /// A `.global` variable of the module has no address.
    #[error("variable `{0}` has no address")]
    Global(String),
}

/// Builds the parameter block of a kernel.
///
/// # Example: a pointer and a count
/// ```
/// # use durawarp_kernel::{launch::ParamBlock, ptx};
/// # let text = ".version 8.0 .visible .entry k(.param .u64 a, .param .u32 n) { ret; }";
/// let module = ptx::parse("k.ptx", text).unwrap();
/// let bytes = ParamBlock::new(&module.kernels[0]).u64(0x1000).u32(7).finish();
/// assert_eq!(bytes.len(), 12);
/// ```
#[derive(Debug)]
pub struct ParamBlock<'a> {
    kernel: &'a Kernel,
    next: usize,
    bytes: Vec<u8>,
}

impl<'a> ParamBlock<'a> {
    /// A block of zeros.
    pub fn new(kernel: &'a Kernel) -> Self {
        ParamBlock { kernel, next: 0, bytes: vec![0; kernel.param_bytes as usize] }
    }

    /// Gives the next parameter its bytes; a shorter value is padded with zeros.
    ///
    /// # Panics
    /// No parameter is left, or the value is longer than the next one.
    #[must_use]
    pub fn bytes(mut self, value: &[u8]) -> Self {
        let param = &self.kernel.params[self.next];
        assert!(value.len() <= param.bytes as usize, "`{}` has {} bytes", param.name, param.bytes);
        let at = param.offset as usize;
        self.bytes[at..at + value.len()].copy_from_slice(value);
        self.next += 1;
        self
    }

    /// The next parameter, 32 bits.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// The next parameter, 64 bits (a pointer).
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// The next parameter, single precision.
    #[must_use]
    pub fn f32(self, value: f32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// A bound launch, immutable and shared by every SM that runs a CTA of it.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub kernel: Arc<Kernel>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// CTAs of a cluster in x, y, z; one where there are no clusters.
    pub cluster: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Shared memory of a CTA in bytes, static and dynamic.
    pub shared_bytes: u32,
    /// Hardware registers a thread occupies (the kernel's estimate, or the manifest's override).
    pub registers_per_thread: u32,
    /// 32-bit constants, one value in every lane.
    pub consts32: Vec<[u32; LANES]>,
    /// 64-bit constants, one value in every lane, but descriptors of surfaces.
    pub consts64: Vec<[u64; LANES]>,
    /// Content of the constant bank.
    pub const_bank: Arc<[u8]>,
    /// Textures, in the order of the kernel's texture names.
    pub textures: Vec<Texture>,
    /// What is allocated in global memory.
    pub addresses: Arc<AddressMap>,
    /// Its threads communicate through shared memory, or not, where that is stated: a scheme may use it, no
    /// value depends on it.
    pub communicates: Option<bool>,
    /// Addresses of the buffer of its transactions' flags, where it has some: a scheme may use them, no value
    /// depends on them.
    pub flags: Option<Range<u64>>,
    /// The share of the array of L1 and shared memory that the program would have as shared memory, of the
    /// most that may be: `cudaFuncAttributePreferredSharedMemoryCarveout`. None leaves it to the machine.
    pub carveout_percent: Option<u32>,
    /// What its warps execute in place of the kernel from its entry, where it comes from a trace.
    pub traced: Option<Arc<dyn CtaSource>>,
    /// Its stream: it begins after all launches of that stream before it.
    pub stream: u64,
    /// Launches of other streams that it begins after, by their numbers in the program from 0.
    pub after: Vec<u32>,
    /// It begins when every CTA of the launch before it in its stream has let it, by
    /// `griddepcontrol.launch_dependents`, or has ended (CUDA's attribute
    /// `cudaLaunchAttributeProgrammaticStreamSerialization`).
    pub programmatic: bool,
}

/// The launches of a host program that still run, by their numbers: what a saved machine says of a launch.
#[derive(Debug, Clone, Default)]
pub struct LiveLaunches(pub Vec<(u32, Arc<Launch>)>);

/// By its number among [`LiveLaunches`], as the host program makes it again.
impl SharedState for Launch {
    fn save_shared(this: &Arc<Self>, out: &mut StateWriter) {
        let launches = out.known::<LiveLaunches>();
        match launches.and_then(|known| known.0.iter().find(|(_, launch)| Arc::ptr_eq(launch, this))) {
            Some(&(number, _)) => number.save(out),
            None => out.refuse("a kernel runs that its host program does not know"),
        }
    }

    fn read_shared(from: &mut StateReader<'_>) -> Result<Arc<Self>, LoadFault> {
        let number = u32::read(from)?;
        let launches = from.known::<LiveLaunches>();
        let found = launches.and_then(|known| known.0.iter().find(|(of, _)| *of == number));
        found.map(|(_, launch)| launch.clone()).ok_or_else(|| LoadFault::new(format!("launch {number} is not there")))
    }
}

/// A texture bound to a launch: a pitched array in global memory, point-sampled, clamped at its edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texture {
    /// First address.
    pub address: u64,
    /// Texels in x.
    pub width: u32,
    /// Rows (1 for a 1D texture).
    pub height: u32,
    /// Slices of a 3D texture, layers of an array.
    pub depth: u32,
    /// Bytes from row to row. Slices are `height` rows apart.
    pub pitch: u32,
    /// Channels a texel, 1, 2 or 4.
    pub channels: u8,
    /// Type of a channel in memory.
    pub elem: super::ir::Elem,
    /// Integer channels are returned as floats in [0, 1] (`cudaReadModeNormalizedFloat`).
    pub normalized_read: bool,
}

impl Texture {
    /// Bytes of one texel.
    pub fn texel_bytes(&self) -> u32 {
        self.elem.bytes() * u32::from(self.channels)
    }
}

/// A surface bound to a launch: an array of elements in global memory, addressed by bytes in x, by rows in y
/// and by slices (or layers) in z. Elements only give the width in bytes.
///
/// # Example: 3 elements of 4 bytes a row, rows 16 bytes apart, 2 rows a slice
/// ```
/// use durawarp_kernel::launch::Surface;
/// let surface = Surface { address: 0x1000, width: 3, height: 2, depth: 1, pitch: 16, element: 4 };
/// assert_eq!(surface.bytes(), 28);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surface {
    /// First address, aligned to 16 bytes.
    pub address: u64,
    /// Elements in x.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Slices of a 3D surface, layers of an array.
    pub depth: u32,
    /// Bytes from row to row. Slices are `height` rows apart.
    pub pitch: u32,
    /// Bytes of an element.
    pub element: u32,
}

impl Surface {
    /// Bytes from its first byte through its last.
    pub fn bytes(&self) -> u64 {
        let rows = u64::from(self.height) * u64::from(self.depth);
        rows.saturating_sub(1) * u64::from(self.pitch) + u64::from(self.width) * u64::from(self.element)
    }

    /// What an address computation reads: address, bytes of a row, rows, slices, bytes from row to row, from
    /// slice to slice, one a lane.
    pub fn descriptor(&self) -> [u64; LANES] {
        let pitch = u64::from(self.pitch);
        let row = u64::from(self.width) * u64::from(self.element);
        let (height, depth) = (u64::from(self.height), u64::from(self.depth));
        let mut lanes = [0; LANES];
        lanes[..6].copy_from_slice(&[self.address, row, height, depth, pitch, pitch * height]);
        lanes
    }

    fn size(&self, size: SurfaceSize) -> u32 {
        match size {
            SurfaceSize::Width => self.width,
            SurfaceSize::Height => self.height,
            SurfaceSize::Depth => self.depth,
        }
    }
}

/// What is wrong with the clusters of a launch.
fn cluster_faults(kernel: &Kernel, binding: &Binding<'_>) -> Option<LaunchError> {
    let (name, bounds) = (|| kernel.name.clone(), &kernel.bounds);
    let ctas = binding.cluster.or(bounds.cluster).map_or(1, |of| of.iter().product());
    if ctas % 2 == 1 && kernel.is_of_pairs() {
        return Some(LaunchError::NoPairs { kernel: name(), ctas });
    }
    let Some(cluster) = binding.cluster.or(bounds.cluster) else {
        return bounds.explicit_cluster.then(|| LaunchError::NoCluster(name()));
    };
    if let Some(required) = bounds.cluster.filter(|&required| required != cluster) {
        return Some(LaunchError::RequiredCluster { kernel: name(), cluster, required });
    }
    let limit = bounds.most_cluster.map_or(MAX_CLUSTER, |most| most.min(MAX_CLUSTER));
    let ctas = cluster.iter().fold(1u32, |ctas, &of| ctas.saturating_mul(of));
    if ctas == 0 || ctas > limit {
        return Some(LaunchError::ClusterSize { kernel: name(), cluster, limit });
    }
    let whole = binding.grid.iter().zip(&cluster).all(|(grid, of)| grid.is_multiple_of(*of));
    (!whole).then(|| LaunchError::Cluster { kernel: name(), grid: binding.grid, cluster })
}

impl Launch {
    /// Checks a launch and fixes everything about it.
    ///
    /// # Errors
    /// Everything that makes the launch impossible.
    pub fn bind(module: &Module, kernel: &Arc<Kernel>, binding: &Binding<'_>) -> Result<Launch, Vec<LaunchError>> {
        // Errors are gathered, so that a caller sees all of them at once.
        let mut errors = Vec::new();
        let [gx, gy, gz] = binding.grid;
        if gx == 0 || gx > i32::MAX as u32 || !(1..=65535).contains(&gy) || !(1..=65535).contains(&gz) {
            errors.push(LaunchError::Grid(binding.grid));
        }
        let limit = kernel.bounds.most_threads.map_or(MAX_THREADS, |most| most.min(MAX_THREADS));
        let threads: u64 = binding.block.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul);
        if threads == 0 || threads > u64::from(limit) {
            errors.push(LaunchError::Block { block: binding.block, limit });
        }
        if let Some(required) = kernel.bounds.block.filter(|&required| required != binding.block) {
            let kernel = kernel.name.clone();
            errors.push(LaunchError::RequiredBlock { kernel, block: binding.block, required });
        }
        let cluster = binding.cluster.or(kernel.bounds.cluster);
        errors.extend(cluster_faults(kernel, binding));
        if binding.params.len() != kernel.param_bytes as usize {
            let names: Vec<String> = kernel.params.iter().map(|p| format!("{} {}", p.ptx_type, p.name)).collect();
            errors.push(LaunchError::Params {
                kernel: kernel.name.clone(),
                expected: kernel.param_bytes,
                found: binding.params.len(),
                names: names.join(", "),
            });
        }
        let shared = u64::from(kernel.shared_bytes) + u64::from(binding.dynamic_shared);
        if shared > u64::from(MAX_SHARED) {
            errors.push(LaunchError::Shared(shared));
        }
        let mut textures = Vec::new();
        for name in &kernel.textures {
            match binding.textures.iter().find(|(n, _)| n == name) {
                Some((_, texture)) => textures.push(texture.clone()),
                None => errors.push(LaunchError::Texture(name.clone())),
            }
        }
        let mut surfaces = Vec::new();
        for name in &kernel.surfaces {
            match binding.surfaces.iter().find(|(n, _)| n == name) {
                Some((_, surface)) => surfaces.push(surface),
                None => errors.push(LaunchError::Surface(name.clone())),
            }
        }
        for missing in module.globals.iter().skip(binding.globals.len()) {
            errors.push(LaunchError::Global(missing.name.clone()));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        // From here on every texture, surface and global that the kernel may name is bound: no index below
        // can miss.
        let value = |source: &ConstSource| -> u64 {
            match *source {
                ConstSource::Literal(v) => v,
                ConstSource::Param { offset, elem } => {
                    // Reading past the block gives zeros, as reading past a parameter does.
                    let mut bytes = [0; 8];
                    let from = binding.params.get(offset as usize..).unwrap_or(&[]);
                    let n = from.len().min(elem.bytes() as usize);
                    bytes[..n].copy_from_slice(&from[..n]);
                    element(elem, &bytes)
                }
                ConstSource::Global { index, offset } => binding.globals[index as usize].wrapping_add_signed(offset),
                ConstSource::GridWorkspace { index, high } => {
                    binding.globals[index as usize] >> if high { 32 } else { 0 } & 0xffff_ffff
                }
                ConstSource::BlockDim(axis) => u64::from(binding.block[usize::from(axis)]),
                ConstSource::GridDim(axis) => u64::from(binding.grid[usize::from(axis)]),
                ConstSource::ClusterDim(axis) => u64::from(cluster.map_or(1, |cluster| cluster[usize::from(axis)])),
                ConstSource::ClusterCtas => u64::from(cluster.map_or(1, |cluster| cluster.iter().product())),
                ConstSource::OtherRank if cluster.is_some_and(|cluster| cluster != [1; 3]) => NO_RANK.into(),
                ConstSource::OtherRank => 0,
                ConstSource::ClusterGrid(axis) => {
                    let axis = usize::from(axis);
                    u64::from(binding.grid[axis] / cluster.map_or(1, |cluster| cluster[axis]))
                }
                ConstSource::ExplicitCluster => u64::from(cluster.is_some()),
                ConstSource::TotalShared => shared,
                ConstSource::DynamicShared => u64::from(binding.dynamic_shared),
                ConstSource::Surface(index) => surfaces[index as usize].address,
                ConstSource::SurfaceSize { index, size } => u64::from(surfaces[index as usize].size(size)),
            }
        };
        let lanes64 = |source: &ConstSource| match *source {
            ConstSource::Surface(index) => surfaces[index as usize].descriptor(),
            _ => [value(source); LANES],
        };
        // A bank that the caller gives is final. The module's own still lacks the addresses of globals, which
        // only this launch knows.
        let mut bank = binding.const_bank.unwrap_or(&module.const_bank).to_vec();
        if binding.const_bank.is_none() {
            relocate(&mut bank, &module.const_relocations, binding.globals);
        }
        // Parameters whose address is taken lie in the bank, at a place after the module's constants that was
        // fixed when the kernel was lowered.
        if let Some(at) = kernel.param_bank {
            bank.resize(at as usize, 0);
            bank.extend_from_slice(binding.params);
        }
        Ok(Launch {
            kernel: kernel.clone(),
            grid: binding.grid,
            cluster: cluster.unwrap_or([1; 3]),
            block: binding.block,
            shared_bytes: shared as u32,
            registers_per_thread: binding.registers.unwrap_or(kernel.registers_per_thread),
            consts32: kernel.consts32.iter().map(|c| [value(c) as u32; LANES]).collect(),
            consts64: kernel.consts64.iter().map(lanes64).collect(),
            const_bank: bank.into(),
            textures,
            addresses: binding.addresses.clone(),
            communicates: None,
            flags: None,
            carveout_percent: None,
            traced: None,
            stream: 0,
            after: Vec::new(),
            programmatic: false,
        })
    }

    /// A launch of a kernel whose warps follow a trace: it takes no parameters, and its constants are those
    /// that the kernel states.
    pub fn of_trace(kernel: Arc<Kernel>, [grid, block]: [[u32; 3]; 2], addresses: Arc<AddressMap>) -> Launch {
        let stated = |source: &ConstSource| match *source {
            ConstSource::Literal(value) => value,
            _ => 0,
        };
        Launch {
            grid,
            cluster: kernel.bounds.cluster.unwrap_or([1; 3]),
            block,
            shared_bytes: kernel.shared_bytes,
            registers_per_thread: kernel.registers_per_thread,
            consts32: kernel.consts32.iter().map(|source| [stated(source) as u32; LANES]).collect(),
            consts64: kernel.consts64.iter().map(|source| [stated(source); LANES]).collect(),
            const_bank: Arc::default(),
            textures: Vec::new(),
            addresses,
            communicates: None,
            flags: None,
            carveout_percent: None,
            traced: None,
            stream: 0,
            after: Vec::new(),
            programmatic: false,
            kernel,
        }
    }

    /// Bytes that one lane of a memory access moves.
    pub fn access_bytes(&self, inst: &Inst, mem: Mem) -> u32 {
        match mem.kind {
            MemKind::Texture(_) => self.textures[inst.imm as usize].texel_bytes(),
            _ => mem.bytes(),
        }
    }

    /// CTAs of the grid.
    #[inline]
    pub fn ctas(&self) -> u64 {
        match &self.traced {
            None => self.grid.iter().map(|&n| u64::from(n)).product(),
            Some(traced) => traced.ctas(),
        }
    }

    /// Threads of a CTA.
    #[inline]
    pub fn threads_per_cta(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a CTA at a warp size.
    #[inline]
    pub fn warps_per_cta(&self, warp_size: u32) -> u32 {
        self.threads_per_cta().div_ceil(warp_size)
    }

    /// Number in the grid of the first group of 32 threads of a CTA (see [`super::ir::Special::Group`]).
    pub fn first_group(&self, cta: u64) -> u32 {
        (cta * u64::from(self.threads_per_cta().div_ceil(LANES as u32))) as u32
    }

    /// The index of CTA number `linear` (x fastest).
    #[inline]
    pub fn cta_index(&self, linear: u64) -> [u32; 3] {
        if let Some(traced) = &self.traced {
            return traced.index(linear);
        }
        let [gx, gy, _] = self.grid.map(u64::from);
        [(linear % gx) as u32, (linear / gx % gy) as u32, (linear / (gx * gy)) as u32]
    }

    /// CTAs of a cluster.
    #[inline]
    pub fn cluster_ctas(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// Clusters in x, y, z.
    fn clusters(&self) -> [u64; 3] {
        std::array::from_fn(|axis| u64::from(self.grid[axis] / self.cluster[axis]))
    }

    /// The index of a CTA's cluster (`%clusterid`).
    pub fn cluster_id(&self, cta: u64) -> [u32; 3] {
        let index = self.cta_index(cta);
        std::array::from_fn(|axis| index[axis] / self.cluster[axis])
    }

    /// The index of a CTA in its cluster (`%cluster_ctaid`).
    pub fn cluster_ctaid(&self, cta: u64) -> [u32; 3] {
        let index = self.cta_index(cta);
        std::array::from_fn(|axis| index[axis] % self.cluster[axis])
    }

    /// The number of a CTA's cluster in the grid, and its rank in it (x fastest, both).
    pub fn cluster_of(&self, cta: u64) -> (u64, u32) {
        let (of, at) = (self.cluster_id(cta).map(u64::from), self.cluster_ctaid(cta));
        let ([nx, ny, _], [cx, cy, _]) = (self.clusters(), self.cluster);
        (of[0] + nx * (of[1] + ny * of[2]), at[0] + cx * (at[1] + cy * at[2]))
    }

    /// The number in the grid of the CTA of a rank of a cluster.
    pub fn cta_of(&self, cluster: u64, rank: u32) -> u64 {
        let ([nx, ny, _], [cx, cy, cz]) = (self.clusters(), self.cluster);
        let of = [cluster % nx, cluster / nx % ny, cluster / (nx * ny)];
        let at = [rank % cx, rank / cx % cy, rank / (cx * cy)];
        let [x, y, z] = std::array::from_fn(|axis| of[axis] * u64::from([cx, cy, cz][axis]) + u64::from(at[axis]));
        let [gx, gy, _] = self.grid.map(u64::from);
        x + gx * (y + gy * z)
    }

    /// The CTA at a place of the order in which CTAs begin: cluster by cluster, by rank.
    #[inline]
    pub fn cta_at(&self, place: u64) -> u64 {
        match u64::from(self.cluster_ctas()) {
            1 => place,
            ctas => self.cta_of(place / ctas, (place % ctas) as u32),
        }
    }

    /// The index of thread number `linear` of a CTA (x fastest).
    pub fn thread_index(&self, linear: u32) -> [u32; 3] {
        let [bx, by, _] = self.block;
        [linear % bx, linear / bx % by, linear / (bx * by)]
    }
}
