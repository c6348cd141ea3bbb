//! Products with a sparse factor beside a plain model: which elements a row has, where its registers and its metadata
//! lie (PTX ISA 9.7.14.6), shape by shape; selectors; what metadata are refused.

use crate::products::{
    Lane, Matrix, Product, fp8, half_value, integer, matrix, nearest_half, place_c16, sequence, single, sum_of, wrapped,
};

/// Lane and lowest bit of the metadata of a row's chunk, by the selector.
type MetadataPlace = fn(row: usize, chunk: usize, selector: usize) -> (usize, usize);

/// A shape of these types.
struct Shape {
    name: &'static str,
    /// Types of a, b and the sums.
    types: [&'static str; 3],
    depth: usize,
    /// Columns from which a register of a has its elements.
    reach: usize,
    /// Elements that a has of a chunk, and columns of a chunk.
    chunk: (usize, usize),
    /// How many selectors the shape takes.
    selectors: usize,
    metadata: MetadataPlace,
}

/// One thread in four, each half of whose word is of one row.
fn one_thread(row: usize, chunk: usize, selector: usize) -> (usize, usize) {
    (4 * (row % 8) + selector, if row < 8 { 4 * chunk } else { 16 + 4 * chunk })
}

/// Two threads in four: the first has four chunks, the second the others.
fn pair_by_columns(row: usize, chunk: usize, selector: usize) -> (usize, usize) {
    let thread = [[0, 1], [2, 3]][selector][chunk / 4];
    (4 * (row % 8) + thread, if row < 8 { 4 * (chunk % 4) } else { 16 + 4 * (chunk % 4) })
}

/// Two threads in four: the first has the upper row, the second the lower one.
fn pair_by_rows(row: usize, chunk: usize, selector: usize) -> (usize, usize) {
    (4 * (row % 8) + [[0, 1], [2, 3]][selector][row / 8], 4 * chunk)
}

/// All four: the first two have the first half of the columns.
fn all_threads(row: usize, chunk: usize, _: usize) -> (usize, usize) {
    (4 * (row % 8) + [[0, 1], [2, 3]][chunk / 8][row / 8], 4 * (chunk % 8))
}

const fn shape(name: &'static str, types: [&'static str; 3], depth: usize) -> Shape {
    let (reach, chunk, halves) = match types[0].as_bytes() {
        b"f16" | b"bf16" => (4, (2, 4), depth == 16),
        b"tf32" => (2, (1, 2), depth == 8),
        b"s4" | b"u4" => (16, (4, 8), depth == 64),
        _ => (8, (2, 4), depth == 32),
    };
    let of_floats = reach < 8;
    let (selectors, metadata): (usize, MetadataPlace) = match (of_floats, halves) {
        (true, true) => (4, one_thread),
        (true, false) => (2, pair_by_columns),
        (false, true) => (2, pair_by_rows),
        (false, false) => (1, all_threads),
    };
    Shape { name, types, depth, reach, chunk, selectors, metadata }
}

const SHAPES: [Shape; 17] = [
    shape("m16n8k16.row.col.f32.f16.f16.f32", ["f16", "f16", "f32"], 16),
    shape("m16n8k32.row.col.f32.f16.f16.f32", ["f16", "f16", "f32"], 32),
    shape("m16n8k16.row.col.f16.f16.f16.f16", ["f16", "f16", "f16"], 16),
    shape("m16n8k32.row.col.f16.f16.f16.f16", ["f16", "f16", "f16"], 32),
    shape("m16n8k16.row.col.f32.bf16.bf16.f32", ["bf16", "bf16", "f32"], 16),
    shape("m16n8k32.row.col.f32.bf16.bf16.f32", ["bf16", "bf16", "f32"], 32),
    shape("m16n8k8.row.col.f32.tf32.tf32.f32", ["tf32", "tf32", "f32"], 8),
    shape("m16n8k16.row.col.f32.tf32.tf32.f32", ["tf32", "tf32", "f32"], 16),
    shape("m16n8k64.row.col.f32.e4m3.e5m2.f32", ["e4m3", "e5m2", "f32"], 64),
    shape("m16n8k64.row.col.kind::f8f6f4.f16.e5m2.e5m2.f16", ["e5m2", "e5m2", "f16"], 64),
    shape("m16n8k32.row.col.s32.s8.u8.s32", ["s8", "u8", "s32"], 32),
    shape("m16n8k32.row.col.satfinite.s32.u8.u8.s32", ["u8", "u8", "s32"], 32),
    shape("m16n8k64.row.col.satfinite.s32.s8.s8.s32", ["s8", "s8", "s32"], 64),
    shape("m16n8k64.row.col.s32.s4.s4.s32", ["s4", "s4", "s32"], 64),
    shape("m16n8k64.row.col.satfinite.s32.u4.s4.s32", ["u4", "s4", "s32"], 64),
    shape("m16n8k128.row.col.s32.u4.u4.s32", ["u4", "u4", "s32"], 128),
    shape("m16n8k128.row.col.satfinite.s32.s4.u4.s32", ["s4", "u4", "s32"], 128),
];

/// Bits of an element of a type.
fn width(ty: &str) -> usize {
    match ty {
        "f16" | "bf16" => 16,
        "tf32" => 32,
        "s4" | "u4" => 4,
        _ => 8,
    }
}

/// A number of a type, not far from 1.
fn element(ty: &str, next: &mut impl FnMut() -> u32) -> u32 {
    match ty {
        "f16" => next() & 0x83ff | (10 + next() % 10) << 10,
        "bf16" => next() & 0x807f | (120 + next() % 14) << 7,
        "tf32" => next() << 13 & 0x807f_e000 | (120 + next() % 14) << 23,
        "e4m3" | "e5m2" => next() & 0x80 | (0x20 + next() % 0x30),
        _ => next() & (u32::MAX >> (32 - width(ty))),
    }
}

fn value(ty: &str, bits: u32) -> f64 {
    match ty {
        "f16" => half_value(bits),
        "bf16" => f64::from(f32::from_bits(bits << 16)),
        "tf32" => f64::from(f32::from_bits(bits)),
        _ => fp8(ty, bits),
    }
}

/// A sparse matrix: of each row the columns that it has, in the order in which registers have them, and the bits there;
/// and the metadata of each chunk.
struct Sparse {
    columns: Vec<Vec<usize>>,
    bits: Matrix,
    metadata: Matrix,
}

impl Shape {
    fn product(&self, variant: &str, selector: usize) -> Product {
        let leak = |text: String| &*Box::leak(text.into_boxed_str());
        let bits = width(self.types[0]);
        let registers = self.depth / self.reach / 2;
        let place_b = match bits {
            16 => |i, t, g| (2 * t + (i & 1) + 8 * (i / 2), g),
            32 => |i, t, g| (t + 4 * i, g),
            8 => |i, t, g| (4 * t + (i & 3) + 16 * (i / 4), g),
            _ => |i, t, g| (8 * t + (i & 7) + 32 * (i / 8), g),
        };
        Product {
            name: leak(format!("{variant}.sync.aligned.{}", self.name)),
            after: leak(format!(", e0, {selector}")),
            registers: [registers, registers, if self.types[2] == "f16" { 2 } else { 4 }],
            bits,
            rows: 16,
            depth: self.depth,
            place_a: |_, _, _| (0, 0),
            place_b,
            place_c: place_c16,
        }
    }

    /// A matrix with this seed, whose indices ascend or stand in any order.
    fn sparse(&self, ascending: bool, next: &mut impl FnMut() -> u32) -> Sparse {
        let (has, of) = self.chunk;
        let mut sparse =
            Sparse { columns: vec![Vec::new(); 16], bits: vec![Vec::new(); 16], metadata: vec![Vec::new(); 16] };
        for row in 0..16 {
            for chunk in 0..self.depth / of {
                let mut pair = match has {
                    // Of two elements one: these two codes are all.
                    1 => [[0, 1], [2, 3]][next() as usize % 2],
                    _ => [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]][next() as usize % 6],
                };
                if !ascending && has > 1 && next().is_multiple_of(2) {
                    pair.swap(0, 1);
                }
                sparse.metadata[row].push((pair[0] | pair[1] << 2) as u32);
                let columns = match has {
                    1 => vec![pair[0] / 2],
                    2 => pair.to_vec(),
                    _ => pair.iter().flat_map(|pair| [2 * pair, 2 * pair + 1]).collect(),
                };
                for column in columns {
                    sparse.columns[row].push(of * chunk + column);
                    sparse.bits[row].push(element(self.types[0], next));
                }
            }
        }
        sparse
    }

    /// What lanes hold: registers of a by the columns that they reach over, metadata where the selector says and
    /// zeros elsewhere, which name nothing.
    fn lanes(&self, product: &Product, selector: usize, a: &Sparse, b: &Matrix, c: &Matrix) -> [Lane; 32] {
        let mut lanes = product.fragments(&matrix(1, 1, |_, _| 0), b, c);
        for (lane, registers) in lanes.iter_mut().enumerate() {
            for (register, held) in registers.iter_mut().enumerate().take(product.registers[0]) {
                let row = lane / 4 + 8 * (register % 2);
                let first = self.reach * (lane % 4) + 4 * self.reach * (register / 2);
                let inside =
                    a.columns[row].iter().zip(&a.bits[row]).filter(|(at, _)| (first..first + self.reach).contains(at));
                for (n, (_, bits)) in inside.enumerate() {
                    *held |= bits << (n * product.bits);
                }
            }
        }
        for (row, chunks) in a.metadata.iter().enumerate() {
            for (chunk, bits) in chunks.iter().enumerate() {
                let (lane, shift) = (self.metadata)(row, chunk, selector);
                lanes[lane][12] |= bits << shift;
            }
        }
        lanes
    }

    fn expected(&self, name: &str, a: &Sparse, b: &Matrix, c: &Matrix, row: usize, column: usize) -> u32 {
        let terms = a.columns[row].iter().zip(&a.bits[row]).map(|(&k, &bits)| (bits, b[k][column]));
        let start = c[row][column];
        let [of_a, of_b, sums] = self.types;
        if sums == "s32" {
            return wrapped(name, start, terms.map(|(a, b)| integer(of_a, a) * integer(of_b, b)).sum());
        }
        let products = terms.map(|(a, b)| value(of_a, a) * value(of_b, b));
        match sums {
            "f16" => nearest_half(f64::from(sum_of(half_value(start) as f32, products))),
            _ => single(sum_of(f32::from_bits(start), products)),
        }
    }
}

#[test]
fn sparse_products_are_those_of_a_plain_model_for_every_selector() {
    for (number, shape) in SHAPES.iter().enumerate() {
        for selector in 0..shape.selectors {
            for (variant, ascending) in [("sp", false), ("sp::ordered_metadata", true)] {
                let mut next = sequence((100 * number + 10 * selector) as u64 + u64::from(ascending));
                let product = shape.product(variant, selector);
                let a = shape.sparse(ascending, &mut next);
                let b = matrix(shape.depth, 8, |_, _| element(shape.types[1], &mut next));
                let c = matrix(16, 8, |row, _| match shape.types[2] {
                    "f16" => element("f16", &mut next),
                    "f32" => element("tf32", &mut next),
                    _ => [next() % 1000, i32::MAX as u32 - next() % 100, i32::MIN as u32 + next() % 100][row % 3],
                });
                let d = product.run(&shape.lanes(&product, selector, &a, &b, &c));
                for (row, sums) in d.iter().enumerate() {
                    for (column, &sum) in sums.iter().enumerate() {
                        let expected = shape.expected(product.name, &a, &b, &c, row, column);
                        assert_eq!(sum, expected, "{} {selector} ({row}, {column})", product.name);
                    }
                }
            }
        }
    }
}

/// An infinity in b whose row no element of a stands for is not multiplied, where zeros of a dense a would be.
#[test]
fn what_a_sparse_factor_lacks_is_not_looked_at() {
    let shape = &SHAPES[0];
    let product = shape.product("sp::ordered_metadata", 2);
    let a = Sparse {
        columns: vec![vec![0, 2, 4, 6, 8, 10, 12, 14]; 16],
        bits: vec![vec![0x3c00; 8]; 16],
        metadata: vec![vec![0b1000; 4]; 16],
    };
    let b = matrix(16, 8, |k, _| if k % 2 == 0 { 0x4000 } else { 0x7c00 });
    let c = matrix(16, 8, |_, _| (-0.5f32).to_bits());
    let d = product.run(&shape.lanes(&product, 2, &a, &b, &c));
    assert!(d.iter().flatten().all(|&bits| bits == 15.5f32.to_bits()), "{d:x?}");
}

#[test]
fn metadata_that_name_no_elements_are_faults_at_their_lane() {
    let fault = |shape: &Shape, variant: &str, bits: u32| {
        let product = shape.product(variant, 0);
        let mut next = sequence(3);
        let mut a = shape.sparse(true, &mut next);
        // Row 9 is of the lanes from 4 on.
        a.metadata[9][1] = bits;
        let zeros = matrix(shape.depth, 8, |_, _| 0);
        product.try_run(&shape.lanes(&product, 0, &a, &zeros, &zeros)).err()
    };
    let [halves, tf32, bytes, nibbles] = [0, 7, 12, 15].map(|number| &SHAPES[number]);
    for shape in [halves, bytes, nibbles] {
        for bits in 0..16 {
            let (first, second) = (bits & 3, bits >> 2);
            let told = fault(shape, "sp", bits);
            assert_eq!(told.is_none(), first != second, "{} {bits:#06b}: {told:?}", shape.name);
            assert_eq!(
                fault(shape, "sp::ordered_metadata", bits).is_none(),
                first < second,
                "{} {bits:#06b}",
                shape.name
            );
        }
    }
    for bits in 0..16 {
        assert_eq!(fault(tf32, "sp", bits).is_none(), [0b0100, 0b1110].contains(&bits), "{bits:#06b}");
    }
    let told = fault(halves, "sp::ordered_metadata", 0b0010).unwrap();
    let wanted =
        "thread (4,0,0): metadata 0b0010 of row 9, chunk 1, name no elements of a sparse matrix in ascending order";
    assert!(told.contains(wanted), "{told}");
    // Of bytes with four registers the second lane of a group has the lower row.
    assert!(fault(bytes, "sp", 0b0101).unwrap().contains("thread (5,0,0): metadata 0b0101 of row 9, chunk 1,"));
}
