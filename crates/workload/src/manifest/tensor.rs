//! `{tensor_map = "A", ..}`: an argument that is a tensor's map, by which a kernel copies tiles.
//!
//! Source: CUDA driver API, `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`, whose arguments the keys
//! are: `sizes` their `globalDim`, `strides_bytes` their `globalStrides`, `steps` their `elementStrides`,
//! `fill` their `oobFill`; `box` the `boxDim` of the one, `channels` (`channelsPerPixel`), `pixels`
//! (`pixelsPerColumn`), `lower_corner` and `upper_corner` (`pixelBox...Corner`) those of the other. Dimension
//! 0, the innermost one, comes first; corners begin with dimension 1, as CUTLASS passes them. Not offered:
//! interleaved layouts, `cuTensorMapEncodeIm2colWide`, promotion in the L2, elements of less than 8 bits.

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

const TYPES: [&str; 11] = names(&TensorElem::ALL);
const SWIZZLES: [&str; 4] = names(&Swizzle::ALL);
const FILLS: [&str; 2] = names(&Fill::ALL);

/// The keys of the table.
pub(crate) const KEYS: &[KeyRule] = &[
    required("tensor_map", Text),
    required("sizes", OneOrMany(&Expression)),
    optional("box", OneOrMany(&Expression)),
    optional("channels", Expression),
    optional("pixels", Expression),
    optional("lower_corner", OneOrMany(&Expression)),
    optional("upper_corner", OneOrMany(&Expression)),
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
    /// What a copy has of the tensor.
    pub(crate) part: PartForm,
    /// Every how many-th element of each dimension is copied; none where all are.
    pub(crate) steps: Option<Vec<Expr>>,
}

/// What copies by a map have of the tensor.
#[derive(Debug, Clone)]
pub(crate) enum PartForm {
    /// Boxes: elements of each dimension.
    Box(Vec<Expr>),
    /// Pixels in the order of a convolution.
    Pixels(Box<PixelForm>),
}

/// The pixels of a copy.
#[derive(Debug, Clone)]
pub(crate) struct PixelForm {
    pub(crate) channels: Expr,
    pub(crate) pixels: Expr,
    /// Where their box begins and ends in each dimension of pixels; none: where the tensor does.
    pub(crate) lower: Option<Vec<Expr>>,
    pub(crate) upper: Option<Vec<Expr>>,
}

impl TensorForm {
    /// All expressions.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (box_sizes, pixels) = match &self.part {
            PartForm::Box(sizes) => (&sizes[..], None),
            PartForm::Pixels(pixels) => (&[][..], Some(pixels)),
        };
        let optional = self.strides_bytes.iter().chain(&self.steps).flatten();
        let corners = pixels.into_iter().flat_map(|form| form.lower.iter().chain(&form.upper).flatten());
        let pixels = pixels.into_iter().flat_map(|form| [&form.channels, &form.pixels]);
        let of_pixels = pixels.chain(corners);
        self.sizes.iter().chain(box_sizes).chain(optional).chain(of_pixels).chain(&self.to.index)
    }
}
