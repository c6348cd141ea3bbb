//! Parameters, profiles, graphs and buffers as a manifest declares them.

use crate::expr::{Expr, Value};
use durawarp_base::document::Place;
use durawarp_kernel::ir::Elem;

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
    /// All expressions of this value.
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
    /// Slices, or layers of an array.
    pub(crate) depth: Option<Expr>,
    pub(crate) pitch: Option<Expr>,
    pub(crate) channels: Option<Expr>,
    pub(crate) normalized: bool,
}

impl TextureForm {
    /// All expressions of this value.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let optional = [&self.height, &self.depth, &self.pitch, &self.channels];
        std::iter::once(&self.width).chain(optional.into_iter().flatten())
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
    /// All expressions of this value.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let optional = [&self.height, &self.depth, &self.pitch, &self.channels];
        std::iter::once(&self.width).chain(optional.into_iter().flatten())
    }
}

/// `init = {kind = "bplus_tree"}`.
#[derive(Debug, Clone)]
pub(crate) struct LoadedTree {
    /// Leaves, children a node, entries a node at most, keys a leaf has to itself.
    pub(crate) sizes: [Expr; 4],
    pub(crate) place: Place,
}

/// A new value of a parameter in the parameter's kind, or what is wrong with it.
pub(crate) fn param_value(param: &Param, value: Value) -> Result<Value, String> {
    match (param.value, value) {
        (Value::Float(_), Value::Int(value)) => Ok(Value::Float(value as f64)),
        (Value::Float(_), Value::Float(float)) if !float.is_finite() => {
            Err(format!("parameter `{}` must be a finite number", param.name))
        }
        (Value::Int(_), Value::Float(found)) => {
            Err(format!("parameter `{}` is an integer, found the float {found:?}", param.name))
        }
        (_, value) => Ok(value),
    }
}

/// The buffers whose final content does not depend on timing.
pub(crate) fn determined(buffers: &[Buffer]) -> Vec<usize> {
    let is = |n: &usize| buffers[*n].role.is_compared() && buffers[*n].space != Space::Const;
    (0..buffers.len()).filter(is).collect()
}

/// A buffer and the element where something starts.
#[derive(Debug, Clone)]
pub(crate) struct BufferStart {
    pub(crate) buffer: usize,
    pub(crate) index: Option<Expr>,
}
