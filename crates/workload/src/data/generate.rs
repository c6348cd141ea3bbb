//! Initial contents: from an `init` to bytes, the same on every host for the same seeds.
//!
//! Each field of a buffer is filled on its own, in element order. Floats come from IEEE operations and the
//! `libm` crate only.

use super::data_file;
use super::graph::Csr;
use super::random::{Lcg, Random, Seeds, below_of, unit_of};
use crate::expr::{Expr, LANES, Lanes, NoElements, Type, Value};
use crate::manifest::buffers::{Field, GraphPart, Init};
use crate::manifest::element::{elem_name, store, type_of};
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
    /// The elements so far, if the field is all of an element; else all of them, zeros at first.
    bytes: &'b mut Vec<u8>,
    len: u64,
    elem: Elem,
    offset: usize,
    stride: usize,
}

impl Target<'_> {
    /// Sets every element, in their order. `values` gets the number of the next one and fills in the bits of
    /// some, which are of type `ty`. It says for how many it has values; with fewer than asked for, it ends.
    fn set_all(&mut self, ty: Type, mut values: impl FnMut(u64, &mut [u64]) -> usize) -> Result<(), String> {
        let size = self.elem.bytes() as usize;
        let (mut block, mut bytes) = ([0; LANES], [0; 8 * LANES]);
        for first in (0..self.len).step_by(LANES) {
            let asked = (self.len - first).min(LANES as u64) as usize;
            let found = values(first, &mut block[..asked]);
            let (block, bytes) = (&block[..found], &mut bytes[..found * size]);
            if !narrowed(self.elem, ty, block, bytes) {
                for ((bits, index), to) in block.iter().zip(first..).zip(bytes.chunks_exact_mut(size)) {
                    store(self.elem, Value::of_bits(*bits, ty), to)
                        .map_err(|error| format!("element {index}: {error}"))?;
                }
            }
            if size == self.stride {
                self.bytes.extend_from_slice(bytes);
            } else {
                let elements = self.bytes[first as usize * self.stride..].chunks_exact_mut(self.stride);
                for (to, from) in elements.zip(bytes.chunks_exact(size)) {
                    to[self.offset..][..size].copy_from_slice(from);
                }
            }
            if found < asked {
                break;
            }
        }
        Ok(())
    }

    /// Sets the first elements to these values, those that are left to 0.
    fn set_to<T: Copy>(&mut self, values: &[T], bits: impl Fn(T) -> u64) -> Result<(), String> {
        self.set_all(Type::Int, |first, block| {
            let values = &values[values.len().min(first as usize)..];
            let (set, rest) = block.split_at_mut(values.len().min(block.len()));
            set.iter_mut().zip(values).for_each(|(to, value)| *to = bits(*value));
            rest.fill(0);
            block.len()
        })
    }
}

/// Stores values of a type, by their bits, as elements; false where some may not fit.
fn narrowed(elem: Elem, ty: Type, values: &[u64], to: &mut [u8]) -> bool {
    match (elem, ty) {
        (Elem::F32, Type::Float) => {
            let mut all_finite = true;
            for (to, bits) in to.as_chunks_mut::<4>().0.iter_mut().zip(values) {
                let narrow = f64::from_bits(*bits) as f32;
                all_finite &= narrow.is_finite();
                *to = narrow.to_le_bytes();
            }
            all_finite
        }
        (Elem::F64, Type::Float) | (Elem::S64, Type::Int) => {
            low_bytes::<8>(values, 0, to);
            true
        }
        (Elem::F32, Type::Int) => {
            let floats = values.iter().map(|bits| *bits as i64 as f64 as f32);
            to.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(to, float)| *to = float.to_le_bytes());
            true
        }
        (Elem::F64, Type::Int) => {
            let floats = values.iter().map(|bits| *bits as i64 as f64);
            to.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(to, float)| *to = float.to_le_bytes());
            true
        }
        (_, Type::Float) => values.is_empty(),
        // No value above the largest `i64` exists.
        (Elem::U64, Type::Int) => low_bytes::<8>(values, 0, to) >> 63 == 0,
        (Elem::U8, Type::Int) => low_bytes::<1>(values, 0, to) >> 8 == 0,
        (Elem::S8, Type::Int) => low_bytes::<1>(values, 1 << 7, to) >> 8 == 0,
        (Elem::U16, Type::Int) => low_bytes::<2>(values, 0, to) >> 16 == 0,
        (Elem::S16, Type::Int) => low_bytes::<2>(values, 1 << 15, to) >> 16 == 0,
        (Elem::U32, Type::Int) => low_bytes::<4>(values, 0, to) >> 32 == 0,
        (Elem::S32, Type::Int) => low_bytes::<4>(values, 1 << 31, to) >> 32 == 0,
    }
}

/// Stores the lower bytes of each value. Returns the bits of all values together, `bias` added to each:
/// values of a type with this many negative numbers have no bits above the type's own.
fn low_bytes<const N: usize>(values: &[u64], bias: u64, to: &mut [u8]) -> u64 {
    let mut all = 0;
    for (to, value) in to.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        all |= value.wrapping_add(bias);
        to.copy_from_slice(&value.to_le_bytes()[..N]);
    }
    all
}

impl Generation<'_> {
    /// Fills `field` of all elements of `bytes`, the content of the buffer `name`, which lies at `place`. A
    /// field that is all of an element is appended; for others the bytes are there, zeros at first.
    ///
    /// # Errors
    /// An expression's fault, or a value that the field's type cannot hold.
    pub(crate) fn fill(
        &self,
        name: &str,
        place: &Place,
        field: &Field,
        [len, stride]: [u64; 2],
        bytes: &mut Vec<u8>,
    ) -> Result<(), Diagnostic> {
        let mut to = Target { bytes, len, elem: field.elem, offset: field.offset as usize, stride: stride as usize };
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
                let set = to.set_all(constant.ty(), |_, block| {
                    block.fill(constant.bits());
                    block.len()
                });
                set.map_err(|error| value.place().fault(error))
            }
            Init::Iota { start, step } => self.iota(start.as_ref(), step.as_ref(), place, &mut to),
            Init::Uniform { lo, hi, seed } => self.uniform(lo, hi, &mut random(*seed), &mut to),
            Init::Lcg { modulo, seed } => self.lcg(modulo.as_ref(), *seed, place, &mut to),
            Init::Expr { expr, cols } => self.expr(expr, cols.as_ref(), &mut to),
            Init::Graph { graph, part, place } => {
                set_to_part(&mut to, &self.graphs[*graph], *part).map_err(|error| place.fault(error))
            }
            Init::BplusTree(tree) => {
                let words = tree.words(self.frame, to.len)?;
                to.set_to(&words, |word| word as u64).map_err(|error| place.fault(error))
            }
            Init::Permutation { seed, place } => {
                let order = shuffled(to.len, &mut random(*seed));
                to.set_to(&order, |value| value).map_err(|error| place.fault(error))
            }
            Init::Chase { stride, seed, place } => {
                let next = match stride {
                    None => random_ring(to.len, &mut random(*seed)),
                    Some(stride) => {
                        let step = stride.integer(&mut self.frame.to_vec(), "`stride`")?;
                        strided_ring(to.len, step).map_err(|error| stride.place().fault(error))?
                    }
                };
                to.set_to(&next, |value| value).map_err(|error| place.fault(error))
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
        // If one is a float, all are; floats do not overflow.
        let (Value::Int(first), Value::Int(each)) = (start, step) else {
            let set = to.set_all(Type::Float, |nth, block| {
                let value = |index: u64| start.as_f64() + index as f64 * step.as_f64();
                block.iter_mut().zip(nth..).for_each(|(to, index)| *to = value(index).to_bits());
                block.len()
            });
            return set.map_err(|error| place.fault(error));
        };
        let mut beyond = None;
        let set = to.set_all(Type::Int, |nth, block| {
            let value = |index: u64| (index as i64).checked_mul(each).and_then(|offset| offset.checked_add(first));
            for (at, to) in block.iter_mut().enumerate() {
                let index = nth + at as u64;
                let Some(value) = value(index) else {
                    beyond = Some(format!("element {index}: integer overflow"));
                    return at;
                };
                *to = value as u64;
            }
            block.len()
        });
        set.and(beyond.map_or(Ok(()), Err)).map_err(|error| place.fault(error))
    }

    /// From `lo` (included) to `hi` (excluded).
    fn uniform(&self, lo: &Expr, hi: &Expr, random: &mut Random, to: &mut Target<'_>) -> Result<(), Diagnostic> {
        let frame = &mut self.frame.to_vec();
        let (low, high) = (lo.value(frame)?, hi.value(frame)?);
        let in_order = low.as_f64() < high.as_f64() && (high.as_f64() - low.as_f64()).is_finite();
        if !in_order {
            return Err(hi.place().fault(format!("`hi` ({high}) must be above `lo` ({low})")));
        }
        let (least, span) = (low.as_f64(), high.as_f64() - low.as_f64());
        let set = match (low, high) {
            (Value::Int(low), Value::Int(high)) if type_of(to.elem) == Type::Int => {
                let count = high.wrapping_sub(low) as u64;
                to.set_all(Type::Int, |_, block| {
                    random.fill(block, |bits| low.wrapping_add_unsigned(below_of(bits, count)) as u64);
                    block.len()
                })
            }
            _ => to.set_all(Type::Float, |_, block| {
                random.fill(block, |bits| (least + unit_of(bits) * span).to_bits());
                block.len()
            }),
        };
        set.map_err(|error| lo.place().fault(error))
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
        let ty = type_of(to.elem);
        let mut draw = || match ty {
            // 24 bits: exact in either float type.
            Type::Float => (f64::from(lcg.next() >> 8) / 16_777_216.0).to_bits(),
            Type::Int => (i64::from(lcg.next()) % modulo) as u64,
        };
        let set = to.set_all(ty, |_, block| {
            block.iter_mut().for_each(|to| *to = draw());
            block.len()
        });
        set.map_err(|error| place.fault(error))
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
        let enter = |frame: &mut [u64], index| {
            (frame[idx], frame[i], frame[j]) = (index, index / cols, index % cols);
        };
        // Hours of work are told at once.
        expr.bound_terms(frame, &NoElements, to.len, |frame, index| enter(frame, index))?;
        let mut fault = None;
        let mut batch = expr.batch(frame, self.indices);
        let set = to.set_all(expr.ty(), |first, block| {
            if let Some(batch) = &mut batch
                && batch.run(|index, to| fill_index(index, first, cols, to))
            {
                block.copy_from_slice(&batch.values()[..block.len()]);
                return block.len();
            }
            for (at, to) in block.iter_mut().enumerate() {
                enter(frame, first + at as u64);
                match expr.evaluate(frame, &NoElements) {
                    Ok(value) => *to = value.bits(),
                    Err(stop) => {
                        fault = Some(stop);
                        return at;
                    }
                }
            }
            block.len()
        });
        set.map_err(|error| expr.place().fault(error))?;
        fault.map_or(Ok(()), |stop| Err(expr.fault(stop)))
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

fn set_to_part(to: &mut Target<'_>, graph: &Csr, part: GraphPart) -> Result<(), String> {
    let degrees = || graph.row_ptr.windows(2).map(|row| row[1] - row[0]);
    match part {
        GraphPart::RowPtr => to.set_to(&graph.row_ptr, |first| first),
        GraphPart::Col => to.set_to(&graph.col, u64::from),
        GraphPart::Weight if graph.weight.is_empty() => to.set_to(&graph.col, |_| 1),
        GraphPart::Weight => to.set_to(&graph.weight, u64::from),
        GraphPart::Degree => to.set_to(&degrees().collect::<Vec<_>>(), |degree| degree),
        GraphPart::Source => {
            let edges = (0..).zip(degrees()).flat_map(|(node, degree)| std::iter::repeat_n(node, degree as usize));
            to.set_to(&edges.collect::<Vec<u32>>(), u64::from)
        }
    }
}

/// The indices of a batch from element `first` on: numbers, rows or columns. The last two are counted, as a
/// division costs more than the rest of an element.
fn fill_index(index: usize, first: u64, cols: u64, to: &mut Lanes) {
    let (mut row, mut column) = (first / cols, first % cols);
    match index {
        0 => to.iter_mut().zip(first..).for_each(|(to, number)| *to = number),
        _ => {
            for to in to {
                *to = if index == 1 { row } else { column };
                column += 1;
                if column == cols {
                    (row, column) = (row + 1, 0);
                }
            }
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
    use crate::manifest::element::{elem_of, load};

    fn random() -> Random {
        Random::new(Seeds { manifest: 1, run: 0 }, 0, "buffer r")
    }

    #[test]
    fn many_elements_are_those_that_are_stored_one_by_one() {
        let elems =
            ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"].map(|name| elem_of(name).unwrap());
        let ints = [0, -1, 1, 127, 128, -128, -129, 255, 256, 32_767, 32_768, -32_768, -32_769, 65_535, 65_536]
            .into_iter()
            .chain([i64::from(i32::MAX), 1 << 31, i64::from(i32::MIN), -(1 << 31) - 1, (1 << 32) - 1, 1 << 32])
            .chain([i64::MAX, i64::MIN])
            .map(Value::Int);
        let floats = [0.0, -0.0, 0.1, 1e39, -1e39, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE].map(Value::Float);
        for (elem, value) in
            elems.into_iter().flat_map(|elem| ints.clone().chain(floats).map(move |value| (elem, value)))
        {
            let (size, mut one) = (elem.bytes() as usize, [0; 8]);
            let stored = store(elem, value, &mut one);
            // Neighbours that fit, whichever the type.
            let neighbour = if value.ty() == Type::Int { Value::Int(1) } else { Value::Float(1.0) };
            for (stride, mut bytes) in [(size, Vec::new()), (size + 8, vec![0; 300 * (size + 8)])] {
                let offset = if stride == size { 0 } else { 5 };
                let mut to = Target { bytes: &mut bytes, len: 300, elem, offset, stride };
                let set = to.set_all(value.ty(), |first, block| {
                    let of = |index: u64| if index == 200 { value } else { neighbour };
                    block.iter_mut().zip(first..).for_each(|(to, index)| *to = of(index).bits());
                    block.len()
                });
                // A float is no integer, and that is so of the first one already.
                let first = if type_of(elem) == Type::Int && value.ty() == Type::Float { 0 } else { 200 };
                match &stored {
                    Ok(()) => {
                        assert_eq!(set, Ok(()));
                        assert_eq!(bytes.len(), 300 * stride);
                        assert_eq!(bytes[200 * stride + offset..][..size], one[..size], "{elem:?} {value}");
                        assert_eq!(load(elem, &bytes[299 * stride + offset..]).unwrap().as_f64(), 1.0);
                    }
                    Err(why) if first == 200 => assert_eq!(set, Err(format!("element 200: {why}"))),
                    Err(_) => {
                        let why = store(elem, neighbour, &mut one).unwrap_err();
                        assert_eq!(set, Err(format!("element 0: {why}")));
                    }
                }
            }
        }
    }

    #[test]
    fn elements_beyond_the_values_are_zeros() {
        for count in [0, 1, LANES, LANES + 1, 299, 300] {
            let (mut bytes, values) = (Vec::new(), (1..=count as u32).collect::<Vec<_>>());
            let mut to = Target { bytes: &mut bytes, len: 300, elem: elem_of("u32").unwrap(), offset: 0, stride: 4 };
            to.set_to(&values, u64::from).unwrap();
            let expected = (0..300).map(|at| values.get(at).copied().unwrap_or(0));
            assert!(expected.flat_map(u32::to_le_bytes).eq(bytes), "{count} values");
        }
    }

    #[test]
    fn indices_of_a_batch_are_those_of_its_elements() {
        for (first, cols) in [(0, 1), (128, 1), (0, 7), (640, 100), (256, 1000)] {
            let mut found = [[0; LANES]; 3];
            found.iter_mut().enumerate().for_each(|(index, to)| fill_index(index, first, cols, to));
            for (lane, number) in (0..LANES).zip(first..) {
                assert_eq!(found.map(|lanes| lanes[lane]), [number, number / cols, number % cols]);
            }
        }
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
