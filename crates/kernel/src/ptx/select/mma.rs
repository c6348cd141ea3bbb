//! Products of matrices (PTX ISA 9.7.14.5 and 9.7.14.6): `mma.sync` and `mma.sp`, with a by rows and b by
//! columns; m8n8k4 of `.f16` in any order.
//!
//! [`factors_of`] has the types of a and b, and a k for each. A product is one instruction of the IR, whose
//! registers follow from m and k:
//!
//! | m | k | registers of a, b | of c, d |
//! |---|---|---|---|
//! | 16 | that of the type | 4, 2 | 4, of `.f16` 2 |
//! | 16 | half of it | 2, 1 | 4, of `.f16` 2 |
//! | 8, of integers and bits | half of it | 1, 1 | 2 |
//!
//! Products of `.f64` are as many of m8n8k4 as they have: along k one after another. Of `.f16`, m8n8k4 with
//! sums in `.f32` is two. Products whose a is sparse (`mma.sp`) have the registers of a as above, at twice
//! the k, and as many of b. Floats of less than 8 bits, and scaled blocks, are in `scaled.rs`.

use super::super::super::alu::{
    AluOp, BitProduct, Fp8, HalfFormat, MatrixFactors, MatrixOp, MatrixSums, QuadFactors, Sparsity,
};
use super::super::super::ir::{Class, Op};
use super::super::ast::{Instruction, Operand};
use super::super::draft::Arg;
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

mod scaled;

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["mma"], |l, i, m| l.mma(i, m))];

/// Types of elements.
pub(super) const TYPES: [(&str, &str); 13] = [
    ("f16", "f16"),
    ("f32", "f32"),
    ("bf16", "bf16"),
    ("tf32", "tf32"),
    ("e4m3", "e4m3"),
    ("e5m2", "e5m2"),
    ("s8", "s8"),
    ("u8", "u8"),
    ("s32", "s32"),
    ("s4", "s4"),
    ("u4", "u4"),
    ("b1", "b1"),
    ("f64", "f64"),
];

/// Rows of a, and k.
const SHAPES: [(&str, (usize, u32)); 11] = [
    ("m8n8k16", (8, 16)),
    ("m8n8k32", (8, 32)),
    ("m8n8k128", (8, 128)),
    ("m16n8k4", (16, 4)),
    ("m16n8k8", (16, 8)),
    ("m16n8k16", (16, 16)),
    ("m16n8k32", (16, 32)),
    ("m16n8k64", (16, 64)),
    ("m16n8k128", (16, 128)),
    ("m16n8k256", (16, 256)),
    ("m8n8k4", (8, 4)),
];

/// The factors of these types, and k of a product whose a has four registers; of bits, what stands for their
/// product.
pub(super) fn factors_of(a: &str, b: &str, bits: Option<BitProduct>) -> Option<(MatrixFactors, u32)> {
    let fp8 = |name: &str| match name {
        "e4m3" => Some(Fp8::E4m3),
        "e5m2" => Some(Fp8::E5m2),
        _ => None,
    };
    match (a, b) {
        ("f16", "f16") => Some((MatrixFactors::Half(HalfFormat::F16), 16)),
        ("bf16", "bf16") => Some((MatrixFactors::Half(HalfFormat::Bf16), 16)),
        ("tf32", "tf32") => Some((MatrixFactors::Tf32, 8)),
        ("s8" | "u8", "s8" | "u8") => Some((MatrixFactors::Bytes(a == "s8", b == "s8"), 32)),
        ("s4" | "u4", "s4" | "u4") => Some((MatrixFactors::Nibbles(a == "s4", b == "s4"), 64)),
        ("b1", "b1") => Some((MatrixFactors::Bits(bits?), 256)),
        _ => Some((MatrixFactors::Fp8(fp8(a)?, fp8(b)?), 32)),
    }
}

/// The sums of these types of d and c, where the factors have such.
pub(super) fn sums_of(d: &str, c: &str, factors: MatrixFactors, saturates: bool) -> Option<MatrixSums> {
    use MatrixFactors::{Bits, Bytes, Fp8, Half, Nibbles, Tf32};
    match (d, c, factors) {
        ("s32", "s32", Bytes(..) | Nibbles(..)) => Some(MatrixSums::S32(saturates)),
        _ if saturates => None,
        ("s32", "s32", Bits(_)) => Some(MatrixSums::S32(false)),
        ("f16", "f16", Half(HalfFormat::F16) | Fp8(..)) => Some(MatrixSums::F16),
        ("f32", "f32", Half(_) | Tf32 | Fp8(..)) => Some(MatrixSums::F32),
        _ => None,
    }
}

/// Whether a has four registers, else two, or one of 8 rows; `None` where there is no such product. Of two
/// depths of a type the greater, `k`, has twice the registers; a sparse a has half of the elements of its
/// rows.
fn is_deep(
    factors: MatrixFactors,
    k: u32,
    sums: MatrixSums,
    (rows, depth): (usize, u32),
    sparse: bool,
) -> Option<bool> {
    let elements = if sparse { depth / 2 } else { depth };
    let fits = match (rows, sparse, factors) {
        (8, true, _) | (_, true, MatrixFactors::Bits(_)) => false,
        // The ISA has one shape of these.
        (_, true, MatrixFactors::Fp8(..)) => elements == k,
        (8, false, _) => elements == k / 2 && matches!(sums, MatrixSums::S32(_)),
        _ => elements == k || elements == k / 2,
    };
    fits.then_some(elements == k)
}

/// How many selectors there are of the lanes that have metadata, by the factors and the registers of a.
fn selectors_of(factors: MatrixFactors, deep: bool) -> u32 {
    match (factors, deep) {
        (MatrixFactors::Half(_) | MatrixFactors::Tf32, false) => 4,
        (MatrixFactors::Half(_) | MatrixFactors::Tf32, true) | (_, false) => 2,
        (_, true) => 1,
    }
}

impl<'a> Lower<'_, 'a> {
    fn mma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let ascending = m.one_of(&[("sp", false), ("sp::ordered_metadata", true)]);
        for word in ["sync", "aligned"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`mma` needs `.{word}`")));
            }
        }
        let Some((rows, depth)) = m.one_of(&SHAPES) else { return self.unsupported_product(i) };
        if ascending.is_none() && scaled::is_of(i) {
            return self.scaled_fragments(i, m, (rows, depth));
        }
        if (rows, depth) == (8, 4) && ascending.is_none() {
            return self.small_product(i, m);
        }
        for word in ["row", "col"] {
            if !m.take(word) {
                return Err(self.fault(i.opcode.at.clone(), format!("`mma` needs `.{word}`")));
            }
        }
        let saturates = m.take("satfinite");
        // The types of d, a, b and c, in this order: what is taken once is not found again.
        let [d, a, b, c] = std::array::from_fn(|_| m.one_of(&TYPES).unwrap_or_default());
        if [d, a, b, c] == ["f64"; 4] && rows == 16 && depth <= 16 && !saturates && ascending.is_none() {
            return self.product_of_doubles(i, rows, depth);
        }
        // What `sm_120a` calls these of 8-bit floats.
        let named = m.take("kind::f8f6f4");
        let bits = m.one_of(&[("and", BitProduct::And), ("xor", BitProduct::Xor)]);
        let counts = m.take("popc");
        let Some((factors, deep)) = factors_of(a, b, bits) else { return self.unsupported_product(i) };
        let Some(sums) = sums_of(d, c, factors, saturates) else { return self.unsupported_product(i) };
        let is_fp8 = matches!(factors, MatrixFactors::Fp8(..));
        let is_bits = matches!(factors, MatrixFactors::Bits(_));
        let Some(deep) = is_deep(factors, deep, sums, (rows, depth), ascending.is_some()) else {
            return self.unsupported_product(i);
        };
        if named && !is_fp8 || counts != is_bits || bits.is_some() != is_bits {
            return self.unsupported_product(i);
        }
        self.product_of_fragments(i, rows, MatrixOp::dense(factors, sums, deep), ascending)
    }

    /// A product whose elements have 32 bits or less. Of a sparse a: whether its metadata ascend.
    fn product_of_fragments(
        &mut self,
        i: &'a Instruction<'a>,
        rows: usize,
        mut op: MatrixOp,
        ascending: Option<bool>,
    ) -> Lowered {
        // The table at the head of this file.
        let of_a = if op.deep { 4 } else { rows / 8 };
        let sums = if op.sums == MatrixSums::F32 { Ty::F32 } else { Ty::B32 };
        let of_b = if ascending.is_some() { of_a } else { of_a.div_ceil(2) };
        let of_c = if op.sums == MatrixSums::F16 || rows == 8 { 2 } else { 4 };
        let mut metadata = Arg::None;
        // Metadata come behind the four fragments, and the selector of the lanes that have them is a number.
        let (d, a, b, c) = match ascending {
            None => {
                let [d, a, b, c] = self.operands(i)?;
                (d, a, b, c)
            }
            Some(ascending) => {
                let [d, a, b, c, words, selector] = self.operands(i)?;
                (metadata, op.sparsity) = self.metadata(words, selector, op, ascending)?;
                (d, a, b, c)
            }
        };
        let (mut left, mut right, mut start) = ([Arg::None; 4], [Arg::None; 4], [Arg::None; 4]);
        let mut dst = [Arg::None; 4];
        self.fragment(a, Ty::B32, &mut left[..of_a])?;
        self.fragment(b, Ty::B32, &mut right[..of_b])?;
        self.fragment(c, sums, &mut start[..of_c])?;
        self.results(d, Bank::R32, &mut dst[..of_c])?;
        self.product(op, &dst, &left, &right, &start);
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[8] = metadata;
        }
        Ok(())
    }

    /// The metadata of a sparse a, and the lanes that have them, by a number.
    pub(super) fn metadata(
        &mut self,
        words: &'a Operand<'a>,
        selector: &'a Operand<'a>,
        op: MatrixOp,
        ascending: bool,
    ) -> Lowered<(Arg, Sparsity)> {
        let (number, of) = (self.number(selector)?, selectors_of(op.factors, op.deep));
        if number >= of {
            let message = format!("the selector of this product's metadata is less than {of}");
            return Err(self.fault(selector.at.clone(), message));
        }
        let lanes = number as u8;
        let sparsity = if ascending { Sparsity::Ascending(lanes) } else { Sparsity::AnyOrder(lanes) };
        Ok((self.src(words, Ty::B32)?, sparsity))
    }

    /// Products of doubles: those of m8n8k4 that they consist of, along k one after another.
    fn product_of_doubles(&mut self, i: &'a Instruction<'a>, rows: usize, depth: u32) -> Lowered {
        let (halves, steps) = (rows / 8, depth as usize / 4);
        let [d, a, b, c] = self.operands(i)?;
        let (mut left, mut right) = (vec![Arg::None; halves * steps], vec![Arg::None; steps]);
        let (mut start, mut results) = (vec![Arg::None; 2 * halves], vec![Arg::None; 2 * halves]);
        self.fragment(a, Ty::B64, &mut left)?;
        self.fragment(b, Ty::B64, &mut right)?;
        self.fragment(c, Ty::B64, &mut start)?;
        self.results(d, Bank::R64, &mut results)?;
        // Results go elsewhere first where a later product reads a factor or a summand that they overwrite.
        let factors = [left.as_slice(), right.as_slice()].concat();
        let clashes = results.iter().any(|result| factors.contains(result))
            || results[..2].iter().any(|result| start[2..].contains(result));
        let targets: Vec<Arg> = match clashes && (halves, steps) != (1, 1) {
            true => results.iter().map(|_| Arg::Reg(self.body.register(Bank::R64))).collect(),
            false => results.clone(),
        };
        let op = MatrixOp::dense(MatrixFactors::Double, MatrixSums::F64, false);
        for half in 0..halves {
            let target = &targets[2 * half..][..2];
            for step in 0..steps {
                let from = if step == 0 { &start[2 * half..][..2] } else { target };
                self.product(op, target, &[left[halves * step + half]], &[right[step]], from);
            }
        }
        self.bring_back(&results, &targets, Bank::R64);
        Ok(())
    }

    /// Appends one product: registers of d, a, b and c, four of each at most.
    pub(super) fn product(&mut self, op: MatrixOp, d: &[Arg], a: &[Arg], b: &[Arg], c: &[Arg]) {
        let class = if op.deep { Class::Matrix } else { Class::MatrixHalf };
        self.emit(Op::Matrix(op), class, d, a, 0);
        // The rest of the sources: an instruction has room for those of a only.
        if let Some(draft) = self.body.code.last_mut() {
            draft.more[..b.len()].copy_from_slice(b);
            draft.more[4..4 + c.len()].copy_from_slice(c);
        }
    }

    /// `mma.m8n8k4` of doubles, and of halves by quads of lanes in any order of rows and columns.
    fn small_product(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        const ORDERS: [(&str, bool); 2] = [("row", true), ("col", false)];
        let orders = (m.one_of(&ORDERS), m.one_of(&ORDERS));
        m.take("rn");
        // Those of d, a, b and c, in this order.
        let types: [Option<&str>; 4] =
            std::array::from_fn(|_| m.one_of(&[("f16", "f16"), ("f32", "f32"), ("f64", "f64")]));
        let (sums, deep) = match (types.map(Option::unwrap_or_default), orders) {
            (["f64", "f64", "f64", "f64"], (Some(true), Some(false))) => return self.product_of_doubles(i, 8, 4),
            (["f32", "f16", "f16", "f32"], _) => (MatrixSums::F32, false),
            (["f16", "f16", "f16", "f16"], _) => (MatrixSums::F16, false),
            _ => return self.unsupported_product(i),
        };
        let (Some(a_by_rows), Some(b_by_rows)) = orders else {
            return Err(self.fault(i.opcode.at.clone(), "`mma.m8n8k4` needs `.row` or `.col` of a and of b"));
        };
        let [d, a, b, c] = self.operands(i)?;
        // Eight sums a lane: singles one a register, halves two.
        let registers = if sums == MatrixSums::F32 { 8 } else { 4 };
        let sum_ty = if sums == MatrixSums::F32 { Ty::F32 } else { Ty::B32 };
        let (mut left, mut right, mut start) = ([Arg::None; 2], [Arg::None; 2], [Arg::None; 8]);
        let mut dst = [Arg::None; 8];
        self.fragment(a, Ty::B32, &mut left)?;
        self.fragment(b, Ty::B32, &mut right)?;
        self.fragment(c, sum_ty, &mut start[..registers])?;
        self.results(d, Bank::R32, &mut dst[..registers])?;
        let results = &dst[..registers];
        let targets = self.targets(results, Bank::R32, 4, [&left, &right, &start[..registers]]);
        for half in 0..registers / 4 {
            let of = QuadFactors { a_by_columns: !a_by_rows, b_by_rows, upper: half == 1 };
            let op = MatrixOp::dense(MatrixFactors::Quads(of), sums, deep);
            self.product(op, &targets[4 * half..][..4], &left, &right, &start[4 * half..][..4]);
        }
        self.bring_back(results, &targets, Bank::R32);
        Ok(())
    }

    /// Where products leave their results, `of_one` registers each, one product after another: in `results`,
    /// or in others, if a later product reads what an earlier one would overwrite. `read` has the registers
    /// of both factors and of the sums.
    pub(super) fn targets(&mut self, results: &[Arg], bank: Bank, of_one: usize, read: [&[Arg]; 3]) -> Vec<Arg> {
        let [rows, columns, sums] = read;
        let overwritten = &results[..results.len() - of_one];
        let read_later = [rows, columns, &sums[of_one..]].concat();
        if !overwritten.iter().any(|register| read_later.contains(register)) {
            return results.to_vec();
        }
        results.iter().map(|_| Arg::Reg(self.body.register(bank))).collect()
    }

    /// Moves results from where [`Self::targets`] had them left.
    pub(super) fn bring_back(&mut self, results: &[Arg], targets: &[Arg], bank: Bank) {
        if results == targets {
            return;
        }
        for (to, from) in results.chunks(4).zip(targets.chunks(4)) {
            self.emit(Op::Alu(AluOp::MovVec(bank == Bank::R64)), Class::Logic, to, from, 0);
        }
    }

    fn unsupported_product(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let message = "this `mma` is not supported: supported are m16n8k16 and m16n8k8 of f16 and bf16, m16n8k8 and \
                       m16n8k4 of tf32 (c and d f32, of f16 also f16), m16n8k32 and m16n8k16 of e4m3 and e5m2 (c and d f32 or f16), \
                       m16n8k32, m16n8k16 and m8n8k16 of s8 and u8, m16n8k64, m16n8k32 and m8n8k32 of s4 and u4, m16n8k256, \
                       m16n8k128 and m8n8k128 of b1 with `.and.popc` or `.xor.popc` (c and d s32), m16n8k16, m16n8k8, m16n8k4 and \
                       m8n8k4 of f64, m8n8k4 of f16 (c and d both f16 or both f32); with `.sp` m16n8k32 and m16n8k16 of f16 and bf16, \
                       m16n8k16 and m16n8k8 of tf32, m16n8k64 of e4m3 and e5m2, m16n8k64 and m16n8k32 of s8 and u8, m16n8k128 and \
                       m16n8k64 of s4 and u4; with `.kind::f8f6f4` and `.block_scale` those of floats of 8 bits and fewer (sm_120a)";
        Err(self.fault(i.opcode.at.clone(), message))
    }
}
