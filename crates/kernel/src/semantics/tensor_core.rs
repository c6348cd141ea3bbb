//! Products that sum in tensor memory (`tcgen05.mma`, PTX ISA 9.7.16.10): d = a b + d of 64 or 128 rows of a
//! CTA. What an instruction's descriptor says is in `tensor_shape`, where a and b come from in
//! `tensor_operands`, what a pair of CTAs makes of it in `tensor_pair`, scaled blocks in `scaled`.
//!
//! A product is one of [`matrix`](super::matrix) for each 16 rows and 8 columns, and sums are taken as there.
//! A column of d is one of tensor memory, of `f16` its lower half.
//!
//! Source: PTX ISA 9.7.16.10, 9.7.16.10.5 (layouts of d). Chosen as for other products: order and precision
//! of sums. Invariant: d is written at once, although a program may count on it only behind an arrival. Not
//! modelled: how a tensor core cuts a product; what it takes is the timed machine's.

use super::super::alu::{HalfFormat, MatrixSums, Round};
use super::super::ir::LANES;
use super::super::tensor_memory::TensorMemory;
use super::matrix::{MatrixTile, product};
use super::matrix_group::signs_of;
use super::tensor_operands::{TensorMisfit, TensorOperands, TensorValues};
use super::tensor_shape::{ProductShape, ROWS};
use super::{V32, half};

/// d = a b + d of one CTA.
///
/// # Errors
/// What is not supported, or not there.
pub(crate) fn multiply_in_tensor_memory(
    values: &TensorValues,
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    let operands = TensorOperands::of(values)?;
    operands.place(operands.d, operands.shape.columns, memory)?;
    // All of b is brought into registers once, and 16 rows of a at a time.
    let b = operands.load_b(shared)?;
    let [masks @ .., _, _, _, _] = values.disabled;
    multiply_rows(&operands, values, masks, b.iter(), memory, shared)
}

/// The rows of a CTA, by all of b, of which eight columns come at a time.
///
/// # Errors
/// What is not supported, or not there.
pub(super) fn multiply_rows<'b>(
    operands: &TensorOperands,
    values: &TensorValues,
    disabled: [u32; 4],
    b: impl Iterator<Item = &'b [V32; 2]> + Clone,
    memory: &mut TensorMemory,
    shared: &[u8],
) -> Result<(), TensorMisfit> {
    let shape = operands.shape;
    let d = operands.place(operands.d, shape.columns_of_sums(), memory)?;
    let signs = if shape.negates { signs_of(shape.op.factors) } else { 0 };
    // The signs of products are those of a.
    for first in (0..shape.rows).step_by(ROWS as usize) {
        let (mut a, mut of) = ([[0; LANES]; 4], None);
        for (tile, b) in (0..).zip(b.clone()) {
            let [below, column] = shape.fold(8 * tile);
            // Sums in the upper half of the lanes have their a there, too.
            if of != Some(below) {
                of = Some(below);
                a = operands.load_a(first, below, memory, shared)?;
                a.iter_mut().flatten().for_each(|word| *word ^= signs);
            }
            let mut sums = Sums { shape, at: [d[0] + below, d[1]], first, column, memory, disabled };
            let c = if values.adds { sums.read(values.scale) } else { [[0; LANES]; 4] };
            let tile =
                MatrixTile { a: a.each_ref().map(Some), b: [Some(&b[0]), Some(&b[1]), None, None], c, metadata: None };
            let Ok(out) = product(shape.op, &tile) else { unreachable!("a dense product has no metadata") };
            sums.write(&out);
        }
    }
    Ok(())
}

/// 16 rows and 8 columns of d.
struct Sums<'m> {
    shape: ProductShape,
    at: [u32; 2],
    first: u32,
    column: u32,
    memory: &'m mut TensorMemory,
    disabled: [u32; 4],
}

impl Sums<'_> {
    /// Calls `f` with each cell, the register that has its value, and which half of it; lanes that stay as
    /// they are left out where it `writes`.
    fn each(&mut self, writes: bool, mut f: impl FnMut(&mut u32, usize, usize, u32)) {
        let of_halves = self.shape.op.sums == MatrixSums::F16;
        let [lane, column] = self.at;
        for thread in 0..LANES as u32 {
            for n in 0..4 {
                let row = self.first + thread / 4 + 8 * (n / 2);
                let lane = lane + self.shape.lane(row);
                if writes && self.disabled[lane as usize / 32] >> (lane % 32) & 1 == 1 {
                    continue;
                }
                let cell = self.memory.cell(lane, column + self.column + 2 * (thread % 4) + n % 2);
                let (register, half) = if of_halves { (n / 2, n % 2) } else { (n, 0) };
                f(cell, register as usize, thread as usize, half);
            }
        }
    }

    /// Its registers, as those of `mma`, by 2 to the power of minus `scale`.
    fn read(&mut self, scale: u8) -> [V32; 4] {
        let mut registers = [[0; LANES]; 4];
        let sums = self.shape.op.sums;
        self.each(false, |cell, register, thread, half| {
            let value = match sums {
                MatrixSums::F16 => u32::from(scaled_half(*cell as u16, scale)) << (16 * half),
                MatrixSums::F32 if scale > 0 => (f32::from_bits(*cell) * power(scale)).to_bits(),
                MatrixSums::F32 | MatrixSums::F64 | MatrixSums::S32(_) => *cell,
            };
            registers[register][thread] |= value;
        });
        registers
    }

    fn write(&mut self, registers: &[V32; 4]) {
        let of_halves = self.shape.op.sums == MatrixSums::F16;
        self.each(true, |cell, register, thread, half| {
            let word = registers[register][thread];
            *cell = if of_halves { word >> (16 * half) & 0xffff } else { word };
        });
    }
}

/// 2 to the power of minus `scale`, which is 15 at most.
fn power(scale: u8) -> f32 {
    f32::from_bits((127 - u32::from(scale)) << 23)
}

fn scaled_half(bits: u16, scale: u8) -> u16 {
    if scale == 0 {
        return bits;
    }
    let scaled = half::to_single(HalfFormat::F16, bits, false) * power(scale);
    half::convert(scaled.into(), HalfFormat::F16, Round::Nearest, false)
}
