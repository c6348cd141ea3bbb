//! The manifest as data: what the readers make of a well-formed document.
//!
//! Every expression is compiled, every name is a number: buffers, parameters and graphs are indexed in file order.
//! Names of variables and their slots are laid out by `names`.

use std::sync::Arc;

use super::bplus_tree::LoadedTree;
use super::expr::{Expr, Type, Value};
use super::instrument::{FlagBarrier, Generated, Instrument, Undo};
use super::names::Names;
use crate::document::Place;
use crate::kernel::ir::{Elem, Kernel};
use crate::kernel::reduction::Fold;

/// A manifest, read.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) seed: u64,
    pub(crate) params: Vec<Param>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) graphs: Vec<Graph>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) steps: Vec<Step>,
    pub(crate) checks: Vec<Check>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) instrument: Option<Instrument>,
    pub(crate) recovery: RecoveryForm,
    pub(crate) conditions: Vec<CrashForm>,
    pub(crate) names: Names,
}

/// `[params]`: a name and its base value.
#[derive(Debug, Clone)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// `[profile.NAME]`: values of some parameters.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) name: String,
    /// Parameter number and value, already of the parameter's kind.
    pub(crate) values: Vec<(usize, Value)>,
}

/// `[graph.NAME]`.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) kind: GraphKind,
    pub(crate) max_weight: Option<Expr>,
    pub(crate) seed: u64,
}

/// How a graph is made.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there are a handful of them a manifest")]
pub(crate) enum GraphKind {
    /// Recursive matrix (Chakrabarti, Zhan, Faloutsos, SDM 2004), with the probabilities of three quadrants.
    Rmat { nodes: Expr, edges: Expr, quadrants: [Option<Expr>; 3] },
    /// Both ends of every edge uniform.
    Uniform { nodes: Expr, edges: Expr },
    /// A grid of crossings, each joined to its neighbours in both directions.
    RoadGrid { width: Expr, height: Expr },
    /// DIMACS `.gr` or Matrix Market `.mtx`.
    File { file: String, place: Place },
}

/// `[buffer.NAME]`.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// One unnamed field for a buffer of plain elements.
    pub(crate) fields: Vec<Field>,
    /// Bytes from element to element.
    pub(crate) stride: u64,
    pub(crate) len: Option<Expr>,
    pub(crate) space: Space,
    pub(crate) role: Role,
    /// The buffer that this undo log protects.
    pub(crate) of: Option<usize>,
    /// The module's variable that a `const` buffer fills.
    pub(crate) symbol: Option<(String, Place)>,
    pub(crate) texture: Option<TextureForm>,
    pub(crate) surface: Option<SurfaceForm>,
    /// Bytes on each side that stay unallocated.
    pub(crate) guard: Option<Expr>,
    /// Elements on each side that are allocated and part of no buffer.
    pub(crate) padding: Option<Expr>,
}

impl Buffer {
    /// Whether its elements are structures.
    pub(crate) fn is_structured(&self) -> bool {
        self.fields.len() != 1 || !self.fields[0].name.is_empty()
    }
}

/// A field of a buffer's elements.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) elem: Elem,
    /// Byte offset in the element.
    pub(crate) offset: u64,
    pub(crate) init: Init,
}

/// Kind of the values of an element type.
pub(crate) fn type_of(elem: Elem) -> Type {
    match elem {
        Elem::F32 | Elem::F64 => Type::Float,
        _ => Type::Int,
    }
}

/// An element type by its name in the manifest.
pub(crate) fn elem_of(name: &str) -> Option<Elem> {
    Some(match name {
        "u8" => Elem::U8,
        "i8" | "s8" => Elem::S8,
        "u16" => Elem::U16,
        "i16" | "s16" => Elem::S16,
        "u32" => Elem::U32,
        "i32" | "s32" => Elem::S32,
        "u64" => Elem::U64,
        "i64" | "s64" => Elem::S64,
        "f32" => Elem::F32,
        "f64" => Elem::F64,
        _ => return None,
    })
}

/// The name of an element type in the manifest.
pub(crate) fn elem_name(elem: Elem) -> &'static str {
    match elem {
        Elem::U8 => "u8",
        Elem::S8 => "i8",
        Elem::U16 => "u16",
        Elem::S16 => "i16",
        Elem::U32 => "u32",
        Elem::S32 => "i32",
        Elem::U64 => "u64",
        Elem::S64 => "i64",
        Elem::F32 => "f32",
        Elem::F64 => "f64",
    }
}

/// Where a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// Volatile device memory.
    Dram,
    /// Persistent memory.
    Pm,
    /// The kernel's constant bank.
    Const,
    /// Volatile device memory, fetched through a texture.
    Texture,
}

/// What a buffer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read only: verification checks that it is unchanged.
    Input,
    /// A result.
    Output,
    /// Its final content depends on timing or means nothing: never compared.
    Scratch,
    /// An undo log of another buffer: its content depends on the persistency scheme, so it is never compared.
    UndoLog,
    /// Transaction flags: never compared.
    TxFlag,
    /// Anything else.
    Data,
}

impl Role {
    /// Whether the final content is compared with the functional run's.
    pub fn is_compared(self) -> bool {
        matches!(self, Role::Input | Role::Output | Role::Data)
    }
}

/// How a field's initial content is made.
#[derive(Debug, Clone)]
pub(crate) enum Init {
    Const(Expr),
    Iota { start: Option<Expr>, step: Option<Expr> },
    Uniform { lo: Expr, hi: Expr, seed: u64 },
    Lcg { modulo: Option<Expr>, seed: u64 },
    Expr { expr: Expr, cols: Option<Expr> },
    File { file: String, place: Place },
    Graph { graph: usize, part: GraphPart, place: Place },
    Permutation { seed: u64, place: Place },
    Chase { stride: Option<Expr>, seed: u64, place: Place },
    BplusTree(Box<LoadedTree>),
    Zero,
}

impl Init {
    /// Every expression of it.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Init::Const(value) => vec![value],
            Init::Iota { start, step } => start.iter().chain(step).collect(),
            Init::Uniform { lo, hi, .. } => vec![lo, hi],
            Init::Lcg { modulo, .. } => modulo.iter().collect(),
            Init::Expr { expr, cols } => cols.iter().chain([expr]).collect(),
            Init::Chase { stride, .. } => stride.iter().collect(),
            Init::BplusTree(tree) => tree.sizes.iter().collect(),
            Init::File { .. } | Init::Graph { .. } | Init::Permutation { .. } | Init::Zero => Vec::new(),
        }
    }
}

/// A vector of a graph in compressed sparse rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraphPart {
    /// First edge of each node, and the number of edges: nodes + 1 elements.
    RowPtr,
    /// Target of each edge.
    Col,
    /// Weight of each edge.
    Weight,
    /// Edges of each node.
    Degree,
    /// Source of each edge.
    Source,
}

/// `texture = {..}`.
#[derive(Debug, Clone)]
pub(crate) struct TextureForm {
    /// Name in the PTX text.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) width: Expr,
    pub(crate) height: Option<Expr>,
    pub(crate) pitch: Option<Expr>,
    pub(crate) channels: Option<Expr>,
    pub(crate) normalized: bool,
}

impl TextureForm {
    /// Every expression of it.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        [Some(&self.width), self.height.as_ref(), self.pitch.as_ref(), self.channels.as_ref()].into_iter().flatten()
    }
}

/// `surface = {..}`.
#[derive(Debug, Clone)]
pub(crate) struct SurfaceForm {
    /// Its names in the PTX text: a variable, and parameters of kernels that get it as an object.
    pub(crate) names: Vec<(String, Place)>,
    pub(crate) place: Place,
    pub(crate) width: Expr,
    pub(crate) height: Option<Expr>,
    /// Slices, or layers of an array.
    pub(crate) depth: Option<Expr>,
    pub(crate) pitch: Option<Expr>,
    pub(crate) channels: Option<Expr>,
}

impl SurfaceForm {
    /// Every expression of it.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let optional = [&self.height, &self.depth, &self.pitch, &self.channels];
        std::iter::once(&self.width).chain(optional.into_iter().flatten())
    }
}

/// A host step.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Launch(Box<LaunchStep>),
    Copy {
        from: Span,
        to: Span,
        count: Option<Expr>,
        place: Place,
    },
    Fill {
        to: Span,
        value: Expr,
        count: Option<Expr>,
        place: Place,
    },
    Swap(usize, usize),
    Reduce(Box<ReduceStep>),
    /// Buffers whose lines the L2 is filled with.
    Warm(Vec<usize>),
    /// A host-side flush: nothing to do as long as host writes are durable at once.
    Persist,
    Loop(Box<LoopStep>),
    /// The host sets the flag of the next launch's transaction; `ends` the transaction.
    Flag {
        buffer: usize,
        value: u32,
        ends: bool,
    },
}

/// A reduction of elements to a variable of the host program.
#[derive(Debug, Clone)]
pub(crate) struct ReduceStep {
    pub(crate) place: Place,
    pub(crate) from: Span,
    pub(crate) field: usize,
    /// Elements; all from the first on by default.
    pub(crate) count: Option<Expr>,
    pub(crate) fold: Fold,
    /// Slot of the variable.
    pub(crate) slot: u16,
}

/// A buffer and the element where something starts.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) buffer: usize,
    pub(crate) index: Option<Expr>,
}

/// A kernel launch.
#[derive(Debug, Clone)]
pub(crate) struct LaunchStep {
    pub(crate) place: Place,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) module: usize,
    pub(crate) grid: Vec<Expr>,
    pub(crate) block: Vec<Expr>,
    pub(crate) shared: Option<Expr>,
    pub(crate) regs: Option<Expr>,
    /// One a parameter of the kernel.
    pub(crate) args: Vec<Arg>,
    /// `[kernel.NAME]`: its threads communicate through shared memory, or not.
    pub(crate) communicates: Option<bool>,
    /// The transactions of an instrumented launch.
    pub(crate) undo: Option<Arc<Undo>>,
}

/// A kernel argument.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    /// The address of an element of a buffer, and so many bytes behind it.
    Address { to: Span, bytes: Option<Expr> },
    /// A number, stored as an element type.
    Number { value: Expr, elem: Elem },
    /// A texture object over a buffer in space `texture`.
    Texture(usize),
    /// A structure: byte offset and part.
    Struct(Vec<(u32, Arg)>),
    /// What instrumentation adds.
    Generated(Generated),
}

/// A loop of host steps.
#[derive(Debug, Clone)]
pub(crate) struct LoopStep {
    pub(crate) place: Place,
    pub(crate) kind: LoopKind,
    /// Steps before each iteration's body.
    pub(crate) before: Vec<Step>,
    pub(crate) body: Vec<Step>,
    /// Slot that holds the number of the iteration, from 0.
    pub(crate) slot: u16,
}

/// When a loop ends.
#[derive(Debug, Clone)]
pub(crate) enum LoopKind {
    /// After this many iterations.
    Count(Expr),
    /// After the first iteration at whose end the condition holds; more than `max` iterations are a fault.
    Until { condition: Expr, max: Expr },
    /// Before the first iteration at whose start the condition fails; more than `max` iterations are a fault.
    While { condition: Expr, max: Expr },
}

impl LoopKind {
    /// The number of iterations is computed when the loop begins.
    pub(crate) fn counted(&self) -> bool {
        matches!(self, LoopKind::Count(_))
    }
}

/// A check of the result.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) kind: CheckKind,
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
    pub(crate) sample: Option<Expr>,
}

impl Check {
    /// Every expression of it.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        let of_kind: Vec<&Expr> = match &self.kind {
            CheckKind::Expr { expr, .. } | CheckKind::Invariant(expr) => vec![expr],
            CheckKind::Reference { args, .. } => args.iter().filter_map(ReferenceArg::expr).collect(),
            CheckKind::File { .. } | CheckKind::Functional { .. } => Vec::new(),
        };
        self.sample.iter().chain(of_kind).collect()
    }
}

/// What a check compares with.
#[derive(Debug, Clone)]
pub(crate) enum CheckKind {
    /// Each element of a field equals an expression of `idx`.
    Expr { buffer: usize, field: usize, expr: Expr },
    /// Each element of a buffer equals that of a file.
    File { buffer: usize, field: usize, file: String, place: Place },
    /// Buffers equal the functional run's, bit by bit.
    Functional { buffers: Vec<usize> },
    /// Each element of a field equals that of a reference written in Rust.
    Reference { buffer: usize, field: usize, name: &'static str, args: Vec<ReferenceArg> },
    /// An expression is not 0.
    Invariant(Expr),
}

/// An argument of a reference.
#[derive(Debug, Clone)]
pub(crate) enum ReferenceArg {
    Buffer(usize),
    Number(Expr),
}

impl ReferenceArg {
    fn expr(&self) -> Option<&Expr> {
        match self {
            ReferenceArg::Number(expr) => Some(expr),
            ReferenceArg::Buffer(_) => None,
        }
    }
}

/// `[[recovery]]`: what runs at boot after a power failure.
#[derive(Debug, Clone)]
pub(crate) struct RecoveryForm {
    /// Empty where nothing of the program's own runs.
    pub(crate) steps: Vec<Step>,
    /// Warp instructions, and host steps, that it may take.
    pub(crate) limit: u64,
}

/// `[[crash]]`: a condition on what a power failure leaves.
#[derive(Debug, Clone)]
pub(crate) struct CrashForm {
    pub(crate) name: String,
    pub(crate) holds: Expr,
    /// On what survived, not on what recovery made of it.
    pub(crate) on_survived: bool,
    pub(crate) source: Option<String>,
    /// Where it must hold.
    pub(crate) binding: Setting,
    /// Where a violation must be found.
    pub(crate) violated_by: Vec<Setting>,
}

/// Schemes, domains and kinds of instrumentation; where nothing is said, all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    pub(crate) schemes: Option<Vec<(String, Place)>>,
    pub(crate) domains: Option<Vec<String>>,
    pub(crate) flag_barrier: Option<FlagBarrier>,
}

/// `[expect]`: a figure that a run should come near.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    pub(crate) metric: String,
    pub(crate) value: Expr,
    pub(crate) tolerance: f64,
    pub(crate) source: Option<String>,
    /// The profiles it holds for; all if empty.
    pub(crate) profiles: Vec<String>,
}
