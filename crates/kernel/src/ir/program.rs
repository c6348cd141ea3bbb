//! Kernels and modules: what a text of PTX becomes, its parameters, constants and variables (PTX ISA 5, 11).
//!
//! Invariants of a kernel's code are at the head of [`super`].

use std::sync::Arc;

use durawarp_base::diagnostic::Diagnostic;

use super::{Class, Elem, Fragments, GroupProduct, Hazards, Inst, Op, OperandReads, Slot, SourcePos, TensorTables};

/// A kernel parameter as declared.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Param {
    /// Name in the PTX text.
    pub name: String,
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// PTX type as written: `.u64`, `.f32`, or `.b8` for a by-value struct.
    pub ptx_type: String,
}

/// What the directives of a kernel ask of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchBounds {
    /// Threads of a CTA at most: the product of `.maxntid`.
    pub most_threads: Option<u32>,
    /// `.reqntid`: the block, exactly.
    pub block: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the CTAs of a cluster, exactly.
    pub cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: a launch says how large clusters are, where `.reqnctapercluster` does not.
    pub explicit_cluster: bool,
    /// `.maxclusterrank`: CTAs of a cluster at most.
    pub most_cluster: Option<u32>,
}

impl LaunchBounds {
    /// Its launches have clusters of more than one CTA.
    pub fn has_clusters(&self) -> bool {
        self.explicit_cluster || self.cluster.is_some_and(|cluster| cluster != [1; 3])
    }
}

/// Where a constant-pool entry's value comes from; resolved once a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstSource {
    Literal(u64),
    /// Bytes of the parameter block, read as an element and extended like a load.
    Param {
        /// Byte offset in the block.
        offset: u32,
        /// How to read it.
        elem: Elem,
    },
    /// The address of a module-scope `.global` variable plus an offset.
    Global {
        /// Index in [`Module::globals`].
        index: u32,
        /// Byte offset.
        offset: i64,
    },
    /// `%ntid`, component 0 to 2.
    BlockDim(u8),
    /// `%nctaid`, component 0 to 2.
    GridDim(u8),
    /// `%cluster_nctaid`, component 0 to 2.
    ClusterDim(u8),
    /// `%cluster_nctarank`.
    ClusterCtas,
    /// A rank that no CTA has, in a launch with clusters; else 0, the own one.
    OtherRank,
    /// `%nclusterid`, component 0 to 2.
    ClusterGrid(u8),
    /// `%is_explicit_cluster`, 0 or 1.
    ExplicitCluster,
    /// Bytes of dynamic shared memory of the launch plus the static ones (`%total_smem_size`).
    TotalShared,
    /// Bytes of dynamic shared memory (`%dynamic_smem_size`).
    DynamicShared,
    /// A half of the address of the workspace of `grid.sync()`, [`GRID_WORKSPACE`]: `%envreg2`, `%envreg1`.
    GridWorkspace {
        /// Index in [`Module::globals`].
        index: u32,
        /// The upper 32 bits.
        high: bool,
    },
    /// The descriptor of a surface by its index in [`Kernel::surfaces`], one field a lane
    /// ([`crate::launch::Surface::descriptor`]).
    Surface(u32),
    /// A size of a surface in elements.
    SurfaceSize {
        /// Index in [`Kernel::surfaces`].
        index: u32,
        /// Which size.
        size: SurfaceSize,
    },
}

/// The variable that a module has for `grid.sync()` where a kernel of it asks for one: `{u32 size, u32
/// barrier}` as the workspace of CUDA's cooperative launches (CCCL, `cuda/experimental/__hierarchy`).
pub const GRID_WORKSPACE: &str = "%grid_workspace";

/// What `suq` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SurfaceSize {
    /// Elements in x.
    Width,
    /// Rows.
    Height,
    /// Slices, or layers of an array.
    Depth,
}

/// What a special register holds when a warp starts; written into a 32-bit slot then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Special {
    /// `%tid`, component 0 to 2.
    Tid(u8),
    /// `%ctaid`, component 0 to 2.
    Ctaid(u8),
    /// `%cluster_ctaid`, component 0 to 2.
    ClusterCtaid(u8),
    /// `%cluster_ctarank`.
    ClusterRank,
    /// `%clusterid`, component 0 to 2.
    ClusterId(u8),
    /// `%laneid`.
    LaneId,
    /// `%lanemask_{eq,lt,le,gt,ge}`, in this order 0 to 4.
    LaneMask(u8),
    /// Number of the lane's group of 32 threads in the grid; every CTA starts with a group of its own. No PTX
    /// name: region formation addresses checkpoints with it (`regions.rs`).
    Group,
    /// Number of the lane in that group, 0 to 31.
    LaneOfGroup,
    /// Number of the CTA in the grid, x fastest; no PTX name either.
    Cta,
}

/// A kernel, ready to be launched.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// `.entry` name.
    pub name: String,
    /// File it came from.
    pub file: Arc<str>,
    /// Instructions; the program counter indexes them.
    pub code: Vec<Inst>,
    /// Timing class of each.
    pub class: Vec<Class>,
    /// Scoreboard needs of each.
    pub hazards: Vec<Hazards>,
    /// Source operands of each, where they lie in registers of the hardware; empty of PTX.
    pub operand_reads: Vec<OperandReads>,
    /// Place of each in the PTX text.
    pub pos: Vec<SourcePos>,
    /// 32-bit register slots.
    pub slots32: u16,
    /// 64-bit register slots.
    pub slots64: u16,
    /// Predicate slots.
    pub predicates: u16,
    /// 32-bit constant pool.
    pub consts32: Vec<ConstSource>,
    /// 64-bit constant pool.
    pub consts64: Vec<ConstSource>,
    /// What matrix instructions read besides their own operands.
    pub fragments: Vec<Fragments>,
    /// Products of four warps.
    pub group_products: Vec<GroupProduct>,
    /// Registers and operands of `tcgen05`.
    pub tensor: TensorTables,
    /// Special registers to write when a warp starts: what, and the 32-bit slot.
    pub specials: Vec<(Special, Slot)>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes.
    pub param_bytes: u32,
    /// Static shared memory in bytes, padded so that dynamic shared memory starts aligned after it.
    pub shared_bytes: u32,
    /// Declares `.extern .shared` memory.
    pub dynamic_shared: bool,
    /// Local memory a thread, in bytes.
    pub local_bytes: u32,
    /// Bytes of it for the stack of recursive functions, 0 without any.
    pub stack_bytes: u32,
    /// Estimate of hardware 32-bit registers a thread: most values live at once, a 64-bit one counted twice.
    pub registers_per_thread: u32,
    /// What its directives ask of a launch.
    pub bounds: LaunchBounds,
    /// Names of textures it fetches from, in the order of `imm` of texture fetches.
    pub textures: Vec<String>,
    /// Names of surfaces that it loads from, stores to or asks for sizes.
    pub surfaces: Vec<String>,
    /// Stores and atomics that release (`.release`, `.acq_rel`), ascending.
    pub releases: Vec<u32>,
    /// Fences that order plain accesses before copies of the asynchronous proxy, ascending.
    pub proxy_fences: Vec<u32>,
    /// Where the parameter block lies in the launch's constant bank, if the kernel takes its address.
    pub param_bank: Option<u32>,
    /// Virtual registers of the PTX text that the code uses: 32-bit, 64-bit, predicates.
    pub virtual_registers: [u32; 3],
}

impl Kernel {
    /// Its CTAs wait for each other by `grid.sync()`: all of them must be resident at once.
    pub fn is_cooperative(&self) -> bool {
        let mut sources = self.consts32.iter().chain(&self.consts64);
        sources.any(|source| matches!(source, ConstSource::GridWorkspace { .. }))
    }

    /// It has instructions of pairs of CTAs (`.cta_group::2`).
    pub fn is_of_pairs(&self) -> bool {
        self.code.iter().any(|inst| match inst.op {
            Op::Tensor(step) => step.is_of_pairs(),
            Op::Bulk(bulk) => bulk.paired,
            _ => false,
        })
    }

    /// Scoreboard entries a warp needs: every register and the always-ready one.
    pub fn scoreboard_entries(&self) -> usize {
        usize::from(self.no_register()) + 1
    }

    /// The scoreboard index of a predicate slot.
    pub fn predicate_register(&self, slot: u16) -> u16 {
        self.slots32 + self.slots64 + slot
    }

    /// The scoreboard index that stands for no register and is always ready.
    pub fn no_register(&self) -> u16 {
        self.predicate_register(self.predicates)
    }
}

/// A module-scope variable in global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalVar {
    /// Name in the PTX text.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Initial bytes; shorter than `bytes` means zeros follow.
    pub init: Vec<u8>,
    /// Addresses to write into the initial bytes once the variables have theirs.
    pub relocations: Vec<Relocation>,
}

/// A 64-bit address inside an initialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset of the address in the initialised variable (or in the constant bank).
    pub at: u32,
    /// Index in [`Module::globals`].
    pub index: u32,
    /// Added to that variable's address.
    pub addend: i64,
}

/// A module-scope variable in the constant bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstVar {
    /// Name in the PTX text.
    pub name: String,
    /// Byte offset in the bank.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
}

/// A PTX file, decoded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// Kernels in file order.
    pub kernels: Vec<Arc<Kernel>>,
    /// `.global` variables.
    pub globals: Vec<GlobalVar>,
    /// `.const` variables; their initial bytes are in `const_bank`.
    pub consts: Vec<ConstVar>,
    /// Initial content of the constant bank.
    pub const_bank: Vec<u8>,
    /// Addresses of `.global` variables inside the constant bank.
    pub const_relocations: Vec<Relocation>,
    /// Accepted, but worth a word: `vprintf` calls that print nothing, say.
    pub warnings: Vec<Diagnostic>,
}

impl Module {
    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// The initial bytes of global variable `index`, all of them, when the variables lie at `addresses`.
    ///
    /// # Panics
    /// When `addresses` is shorter than [`Module::globals`].
    pub fn initial_bytes(&self, index: usize, addresses: &[u64]) -> Vec<u8> {
        let var = &self.globals[index];
        let mut bytes = var.init.clone();
        bytes.resize(var.bytes as usize, 0);
        relocate(&mut bytes, &var.relocations, addresses);
        bytes
    }
}

/// Writes the addresses that `relocations` ask for into `bytes`.
pub(crate) fn relocate(bytes: &mut [u8], relocations: &[Relocation], addresses: &[u64]) {
    for r in relocations {
        let value = addresses[r.index as usize].wrapping_add_signed(r.addend);
        bytes[r.at as usize..r.at as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
}
