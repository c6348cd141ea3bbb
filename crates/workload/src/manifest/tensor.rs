//! `{tensor_map = "A", ..}`: an argument that is a tensor's map, by which a kernel copies tiles.
//!
//! Source: CUDA driver API, `cuTensorMapEncodeTiled`, whose arguments the keys are: `sizes` its `globalDim`,
//! `strides_bytes` its `globalStrides`, `box` its `boxDim`, `steps` its `elementStrides`, `fill` its
//! `oobFill`. Dimension 0, the innermost one, comes first. Not offered: interleaved layouts, `im2col`,
//! promotion in the L2, elements of less than 8 bits.

use super::buffers::BufferStart;
use crate::expr::Expr;
use durawarp_base::document::Shape::{Expression, OneOrMany, Text, Words};
use durawarp_base::document::{KeyRule, Place, optional, required};
use durawarp_kernel::tensor_map::{Fill, Swizzle, TensorElem};

/// The first names of a list of names and what they mean.
const fn names<T, const N: usize>(all: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = all[i].0;
        i += 1;
    }
    names
}

const TYPES: [&str; 10] = names(&TensorElem::ALL);
const SWIZZLES: [&str; 4] = names(&Swizzle::ALL);
const FILLS: [&str; 2] = names(&Fill::ALL);

/// The keys of the table.
pub(crate) const KEYS: &[KeyRule] = &[
    required("tensor_map", Text),
    required("sizes", OneOrMany(&Expression)),
    required("box", OneOrMany(&Expression)),
    optional("strides_bytes", OneOrMany(&Expression)),
    optional("steps", OneOrMany(&Expression)),
    optional("type", Words(&TYPES)),
    optional("swizzle", Words(&SWIZZLES)),
    optional("fill", Words(&FILLS)),
    optional("index", Expression),
];

/// The table as a shape.
#[cfg(test)]
pub(crate) static SHAPE: durawarp_base::document::Shape = durawarp_base::document::Shape::Table(KEYS);

/// A map in the making.
#[derive(Debug, Clone)]
pub(crate) struct TensorForm {
    pub(crate) place: Place,
    /// Its first element.
    pub(crate) to: BufferStart,
    pub(crate) elem: TensorElem,
    pub(crate) swizzle: Swizzle,
    pub(crate) fill: Fill,
    /// Elements of each dimension.
    pub(crate) sizes: Vec<Expr>,
    /// Of each dimension but the first; none where the elements lie as densely as they can.
    pub(crate) strides_bytes: Option<Vec<Expr>>,
    /// Elements of a box.
    pub(crate) box_sizes: Vec<Expr>,
    /// Every how many-th of these is copied; none where all are.
    pub(crate) steps: Option<Vec<Expr>>,
}

impl TensorForm {
    /// All expressions.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let lists = self.sizes.iter().chain(&self.box_sizes);
        let optional = self.strides_bytes.iter().chain(&self.steps).flatten();
        lists.chain(optional).chain(&self.to.index)
    }
}
