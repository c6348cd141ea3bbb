//! Initial contents: from an `init` to bytes, the same on every host for the same seeds.
//!
//! Each field of a buffer is filled on its own, in element order. Floats come from IEEE operations and the
//! `libm` crate only.

use super::data_file;
use super::graph::Csr;
use super::random::{Lcg, Random, Seeds};
use crate::expr::{Expr, LANES, NoElements, Value};
use crate::manifest::buffers::{Field, GraphPart, Init};
use crate::manifest::element::{elem_name, store};
use crate::manifest::source::Folder;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::Place;
use durawarp_kernel::ir::Elem;

/// What generators need to know of the run.
pub(crate) struct Generation<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) seeds: Seeds,
    /// Variables, lengths and sizes included.
    pub(crate) frame: &'a [u64],
    /// Slots of `idx`, `i`, `j`.
    pub(crate) indices: [usize; 3],
    pub(crate) graphs: &'a [Csr],
}

/// Where a field's values go.
struct Target<'b> {
    bytes: &'b mut [u8],
    elem: Elem,
    offset: usize,
    stride: usize,
}

impl Target<'_> {
    fn len(&self) -> u64 {
        (self.bytes.len() / self.stride) as u64
    }

    /// Sets every element, in their order.
    fn set_all(&mut self, value: impl FnMut(u64) -> Result<Value, String>) -> Result<(), String> {
        // A loop of its own for the usual types: what a value becomes is not asked for each of them.
        match self.elem {
            Elem::F32 => self.set_all_of(Elem::F32, value),
            Elem::U32 => self.set_all_of(Elem::U32, value),
            Elem::S32 => self.set_all_of(Elem::S32, value),
            elem => self.set_all_of(elem, value),
        }
    }

    #[inline(always)]
    fn set_all_of(&mut self, elem: Elem, mut value: impl FnMut(u64) -> Result<Value, String>) -> Result<(), String> {
        let (offset, size) = (self.offset, elem.bytes() as usize);
        for (to, index) in self.bytes.chunks_exact_mut(self.stride).zip(0..) {
            store(elem, value(index)?, &mut to[offset..offset + size])
                .map_err(|error| format!("element {index}: {error}"))?;
        }
        Ok(())
    }

    /// Sets every element of a float type, in their order; `values` fills in the next ones.
    fn set_floats(&mut self, mut values: impl FnMut(&mut [f64])) -> Result<(), String> {
        let (elem, offset, stride) = (self.elem, self.offset, self.stride);
        let mut block = [0.0; LANES];
        let mut first = 0;
        for to in self.bytes.chunks_mut(LANES * stride) {
            let block = &mut block[..to.len() / stride];
            values(block);
            let plain = elem == Elem::F32 && stride == 4;
            if !(plain && narrowed(block, to)) {
                for ((to, value), index) in to.chunks_exact_mut(stride).zip(&*block).zip(first..) {
                    store(elem, Value::Float(*value), &mut to[offset..])
                        .map_err(|error| format!("element {index}: {error}"))?;
                }
            }
            first += block.len() as u64;
        }
        Ok(())
    }

    /// Sets the first elements to these values, those that are left to 0.
    fn set_to(&mut self, values: impl IntoIterator<Item = i64>) -> Result<(), String> {
        let mut values = values.into_iter();
        self.set_all(|_| Ok(Value::Int(values.next().unwrap_or(0))))
    }
}

/// Stores floats as `f32`; whether all that are finite stayed so.
fn narrowed(values: &[f64], to: &mut [u8]) -> bool {
    let mut fit = true;
    for (to, &value) in to.as_chunks_mut::<4>().0.iter_mut().zip(values) {
        let narrow = value as f32;
        fit &= narrow.is_finite() | !value.is_finite();
        *to = narrow.to_le_bytes();
    }
    fit
}

impl Generation<'_> {
    /// Fills `field` of every element of `bytes`, the content of the buffer `name`, which lies at `place`.
    ///
    /// # Errors
    /// An expression's fault, or a value that the field's type cannot hold.
    pub(crate) fn fill(
        &self,
        name: &str,
        place: &Place,
        field: &Field,
        stride: u64,
        bytes: &mut [u8],
    ) -> Result<(), Diagnostic> {
        let mut to = Target { bytes, elem: field.elem, offset: field.offset as usize, stride: stride as usize };
        // Each field draws from a stream of its own, named after it: a change of one leaves the others as
        // they are.
        let unique =
            if field.name.is_empty() { format!("buffer {name}") } else { format!("buffer {name}.{}", field.name) };
        let random = |seed: u64| Random::new(self.seeds, seed, &unique);
        match &field.init {
            // The bytes come as zeros. Files are copied in by the caller.
            Init::Zero | Init::File { .. } => Ok(()),
            Init::Const(value) => {
                // Of all elements the same: one evaluation, and one place to blame.
                let constant = value.value(&mut self.frame.to_vec())?;
                to.set_all(|_| Ok(constant)).map_err(|error| value.place().fault(error))
            }
            Init::Iota { start, step } => self.iota(start.as_ref(), step.as_ref(), place, &mut to),
            Init::Uniform { lo, hi, seed } => self.uniform(lo, hi, &mut random(*seed), &mut to),
            Init::Lcg { modulo, seed } => self.lcg(modulo.as_ref(), *seed, place, &mut to),
            Init::Expr { expr, cols } => self.expr(expr, cols.as_ref(), &mut to),
            Init::Graph { graph, part, place } => {
                let values = part_of(&self.graphs[*graph], *part);
                to.set_to(values).map_err(|error| place.fault(error))
            }
            Init::BplusTree(tree) => {
                let words = tree.words(self.frame, to.len())?;
                to.set_to(words.iter().copied()).map_err(|error| place.fault(error))
            }
            Init::Permutation { seed, place } => {
                let order = shuffled(to.len(), &mut random(*seed));
                to.set_to(order.iter().map(|value| *value as i64)).map_err(|error| place.fault(error))
            }
            Init::Chase { stride, seed, place } => {
                let next = match stride {
                    None => random_ring(to.len(), &mut random(*seed)),
                    Some(stride) => {
                        let step = stride.integer(&mut self.frame.to_vec(), "`stride`")?;
                        strided_ring(to.len(), step).map_err(|error| stride.place().fault(error))?
                    }
                };
                to.set_to(next.iter().map(|value| *value as i64)).map_err(|error| place.fault(error))
            }
        }
    }

    /// start + index * step.
    fn iota(
        &self,
        start: Option<&Expr>,
        step: Option<&Expr>,
        place: &Place,
        to: &mut Target<'_>,
    ) -> Result<(), Diagnostic> {
        let frame = &mut self.frame.to_vec();
        let start = start.map_or(Ok(Value::Int(0)), |start| start.value(frame))?;
        let step = step.map_or(Ok(Value::Int(1)), |step| step.value(frame))?;
        let at = |index: u64| match (start, step) {
            (Value::Int(start), Value::Int(step)) => {
                let value = (index as i64).checked_mul(step).and_then(|offset| offset.checked_add(start));
                value.map(Value::Int).ok_or_else(|| format!("element {index}: integer overflow"))
            }
            _ => Ok(Value::Float(start.as_f64() + index as f64 * step.as_f64())),
        };
        to.set_all(at).map_err(|error| place.fault(error))
    }

    /// From `lo` (included) to `hi` (excluded).
    fn uniform(&self, lo: &Expr, hi: &Expr, random: &mut Random, to: &mut Target<'_>) -> Result<(), Diagnostic> {
        let frame = &mut self.frame.to_vec();
        let (low, high) = (lo.value(frame)?, hi.value(frame)?);
        let in_order = low.as_f64() < high.as_f64() && (high.as_f64() - low.as_f64()).is_finite();
        if !in_order {
            return Err(hi.place().fault(format!("`hi` ({high}) must be above `lo` ({low})")));
        }
        let float = matches!(to.elem, Elem::F32 | Elem::F64);
        let (least, span) = (low.as_f64(), high.as_f64() - low.as_f64());
        if float {
            let draw = |block: &mut [f64]| {
                random.units(block);
                block.iter_mut().for_each(|value| *value = least + *value * span);
            };
            return to.set_floats(draw).map_err(|error| lo.place().fault(error));
        }
        let mut draw = || match (low, high) {
            (Value::Int(low), Value::Int(high)) => {
                Value::Int(low.wrapping_add_unsigned(random.below(high.wrapping_sub(low) as u64)))
            }
            _ => Value::Float(least + random.unit() * span),
        };
        to.set_all(|_| Ok(draw())).map_err(|error| lo.place().fault(error))
    }

    /// Integers: 32 random bits modulo `modulo` (2^31, or the type's range if that is smaller). Floats: in
    /// [0, 1).
    fn lcg(&self, modulo: Option<&Expr>, seed: u64, place: &Place, to: &mut Target<'_>) -> Result<(), Diagnostic> {
        let mut lcg = Lcg::new(seed);
        let largest = 1_i64 << (8 * to.elem.bytes() - u32::from(to.elem == Elem::S8 || to.elem == Elem::S16)).min(31);
        let modulo = match modulo {
            None => largest,
            Some(modulo) => match modulo.integer(&mut self.frame.to_vec(), "`modulo`")? {
                found @ 1..=0x1_0000_0000 => found,
                found => {
                    return Err(modulo.place().fault(format!("`modulo` must be 1 to 2^32, found {found}")));
                }
            },
        };
        let float = matches!(to.elem, Elem::F32 | Elem::F64);
        let mut draw = || match float {
            // 24 bits: exact in either float type.
            true => Value::Float(f64::from(lcg.next() >> 8) / 16_777_216.0),
            false => Value::Int(i64::from(lcg.next()) % modulo),
        };
        to.set_all(|_| Ok(draw())).map_err(|error| place.fault(error))
    }

    /// An expression of `idx`, and of row `i` and column `j` where there are columns.
    fn expr(&self, expr: &Expr, cols: Option<&Expr>, to: &mut Target<'_>) -> Result<(), Diagnostic> {
        let frame = &mut self.frame.to_vec();
        let cols = match cols {
            None => 1,
            Some(cols) => match cols.integer(frame, "`cols`")? {
                found @ 1.. => found as u64,
                found => return Err(cols.place().fault(format!("`cols` must be positive, found {found}"))),
            },
        };
        let [idx, i, j] = self.indices;
        // Hours of work are told at once.
        expr.bound_terms(frame, &NoElements, to.len(), |frame, index| {
            (frame[idx], frame[i], frame[j]) = (index, index / cols, index % cols);
        })?;
        let mut fault = None;
        // Rows and columns are counted, as a division costs more than the rest of an element.
        let (mut row, mut column) = (0, 0);
        let mut indices = [[0; LANES]; 3];
        let (mut batch, mut has_values) = (expr.batch(frame, self.indices), false);
        let set = to.set_all(|index| {
            let lane = index as usize % LANES;
            if lane == 0 {
                let [numbers, rows, columns] = &mut indices;
                for (nth, ((number, i), j)) in (index..).zip(numbers.iter_mut().zip(rows).zip(columns)) {
                    (*number, *i, *j) = (nth, row, column);
                    column += 1;
                    if column == cols {
                        (row, column) = (row + 1, 0);
                    }
                }
                has_values = batch.as_mut().is_some_and(|batch| batch.run(&indices));
            }
            if let Some(batch) = batch.as_ref().filter(|_| has_values) {
                return Ok(batch.value(lane));
            }
            (frame[idx], frame[i], frame[j]) = (indices[0][lane], indices[1][lane], indices[2][lane]);
            expr.evaluate(frame, &NoElements).map_err(|stop| {
                fault = Some(stop);
                String::new()
            })
        });
        match (fault, set) {
            (Some(stop), _) => Err(expr.fault(stop)),
            (None, set) => set.map_err(|error| expr.place().fault(error)),
        }
    }

    /// The bytes of a file that initialises a field of `elem`s.
    ///
    /// # Errors
    /// A file that is not there or has another type, at `place`.
    pub(crate) fn file(&self, file: &str, place: &Place, elem: Elem) -> Result<Vec<u8>, Diagnostic> {
        let content = self.folder.read(file).map_err(|error| place.fault(error))?;
        data_file::elements(content, elem).map_err(|error| place.fault(format!("`{file}`: {error}")))
    }
}

/// Copies a file's elements into a field.
///
/// # Errors
/// How many elements there are and how many there should be.
pub(crate) fn scatter(data: &[u8], field: &Field, stride: u64, bytes: &mut [u8]) -> Result<(), String> {
    let size = field.elem.bytes() as usize;
    let (found, wanted) = (data.len() / size, bytes.len() / stride as usize);
    if found != wanted {
        let short = if found < wanted { "too short" } else { "too long" };
        return Err(format!("{short}: {found} elements of {}, expected {wanted}", elem_name(field.elem)));
    }
    for (element, to) in data.chunks_exact(size).zip(bytes.chunks_exact_mut(stride as usize)) {
        to[field.offset as usize..][..size].copy_from_slice(element);
    }
    Ok(())
}

/// Elements of a part of a graph.
pub(crate) fn part_len(graph: &Csr, part: GraphPart) -> u64 {
    match part {
        GraphPart::RowPtr => graph.nodes() + 1,
        GraphPart::Degree => graph.nodes(),
        GraphPart::Col | GraphPart::Weight | GraphPart::Source => graph.edges(),
    }
}

fn part_of(graph: &Csr, part: GraphPart) -> Box<dyn Iterator<Item = i64> + '_> {
    let rows = || graph.row_ptr.windows(2);
    match part {
        GraphPart::RowPtr => Box::new(graph.row_ptr.iter().map(|v| *v as i64)),
        GraphPart::Col => Box::new(graph.col.iter().map(|v| i64::from(*v))),
        GraphPart::Weight => Box::new(graph.weight.iter().map(|v| i64::from(*v))),
        GraphPart::Degree => Box::new(rows().map(|w| (w[1] - w[0]) as i64)),
        GraphPart::Source => {
            let edges = |(node, w): (usize, &[u64])| std::iter::repeat_n(node as i64, (w[1] - w[0]) as usize);
            Box::new(rows().enumerate().flat_map(edges))
        }
    }
}

/// 0 to `len` - 1 in random order (Fisher-Yates).
fn shuffled(len: u64, random: &mut Random) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len).collect();
    for last in (1..len).rev() {
        order.swap(last as usize, random.below(last + 1) as usize);
    }
    order
}

/// A successor for each element such that following them visits all: one random cycle (Sattolo's algorithm).
fn random_ring(len: u64, random: &mut Random) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len).collect();
    for last in (1..len).rev() {
        order.swap(last as usize, random.below(last) as usize);
    }
    order
}

/// Element i leads to i + `step` (modulo `len`); the steps must visit every element whose number is a
/// multiple of the greatest common divisor, which is all of them only if that is 1: with a larger stride the
/// other elements are padding.
fn strided_ring(len: u64, step: i64) -> Result<Vec<u64>, String> {
    let step = u64::try_from(step).ok().filter(|step| *step >= 1 && *step <= len.max(1));
    let step = step.ok_or_else(|| format!("`stride` must be 1 to the buffer's {len} elements"))?;
    Ok((0..len).map(|index| (index + step) % len).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> Random {
        Random::new(Seeds { manifest: 1, run: 0 }, 0, "buffer r")
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        let mut order = shuffled(100, &mut random());
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_random_ring_is_one_cycle() {
        for len in [1, 2, 3, 64, 101] {
            let next = random_ring(len, &mut random());
            let (mut at, mut steps) = (0, 0);
            loop {
                (at, steps) = (next[at as usize], steps + 1);
                if at == 0 {
                    break;
                }
            }
            assert_eq!(steps, len);
        }
    }

    #[test]
    fn a_strided_ring_wraps_around() {
        assert_eq!(strided_ring(4, 3), Ok(vec![3, 0, 1, 2]));
        assert!(strided_ring(4, 0).is_err());
        assert!(strided_ring(4, 5).is_err());
    }
}
