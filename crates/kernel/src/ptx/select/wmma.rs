//! `wmma.load`, `wmma.mma` and `wmma.store` (PTX ISA 9.7.14.4): lowered to `mma`'s products, and to loads and
//! stores of registers.
//!
//! The ISA leaves open which lane holds which element of a fragment. Here fragments are those of `mma`: 16
//! rows of one factor times 8 columns of the other, as often as the shape has them. That fills the registers
//! that the ISA gives a fragment, but for `.f16`, whose fragments have 8 registers whatever the shape; those
//! left over are zeros.
//!
//! | shape | products | rows of | columns of |
//! |---|---|---|---|
//! | m16n16k16 (`tf32`: k8) | 1 x 2 | a | b |
//! | m32n8k16 | 2 x 1 | a | b |
//! | m8n32k16 | 2 x 1, transposed: d' = b' a' | b | a |
//! | m8n8k4 (`f64`), m8n8k32 (`s4`, `u4`), m8n8k128 (`b1`) | 1 x 1, of 8 rows | a | b |
//!
//! ```text
//! lane = 4 g + t     a register holds w elements: line `line + g`, and w from `along + w t` on along it
//! factors            lines are rows of the one and columns of the other, along is k
//! c, d               lines are rows of the products, along are their columns, w = 2
//! ```
//! Where memory has the elements of a line side by side, a register (of c and d: two) is one access; else
//! each element is one, packed afterwards. Real hardware transposes there (`LDSM.T`, `MOVM`), which is not
//! modelled.
//!
//! Elements of less than a byte lie in words of 32 bits, each of which counts as one here.
//!
//! Not supported, and refused: c and d of different types.

use super::super::super::alu::{AluOp, BitProduct, HalfFormat, IntOp, MatrixFactors, MatrixOp, MatrixSums, Split};
use super::super::super::ir::{AddressIn, Class, Elem, Mem, MemKind, Op, Space, Special};
use super::super::ast::{Instruction, Operand};
use super::super::draft::{Arg, plain_access};
use super::super::lower::{Lower, Lowered};
use super::super::types::{Bank, Ty};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] = &[(&["wmma"], |l, i, m| l.wmma(i, m))];

/// Rows, columns and depth of a product.
type Shape = [u64; 3];

const SHAPES: [(&str, Shape); 7] = [
    ("m16n16k16", [16, 16, 16]),
    ("m32n8k16", [32, 8, 16]),
    ("m8n32k16", [8, 32, 16]),
    ("m16n16k8", [16, 16, 8]),
    ("m8n8k4", [8, 8, 4]),
    ("m8n8k32", [8, 8, 32]),
    ("m8n8k128", [8, 8, 128]),
];

const SPACES: [(&str, Space); 3] =
    [("global", Space::Global), ("shared", Space::Shared), ("shared::cta", Space::Shared)];

/// What a fragment is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatrixPart {
    A,
    B,
    /// c or d.
    Sums,
}

/// Types of elements: name, bytes, elements of a register along a line.
const TYPES: [(&str, Element); 11] = [
    ("f16", Element { name: "f16", bytes: 2, packed: 2, of_unit: 1 }),
    ("bf16", Element { name: "bf16", bytes: 2, packed: 2, of_unit: 1 }),
    ("tf32", Element { name: "tf32", bytes: 4, packed: 1, of_unit: 1 }),
    ("s8", Element { name: "s8", bytes: 1, packed: 4, of_unit: 1 }),
    ("u8", Element { name: "u8", bytes: 1, packed: 4, of_unit: 1 }),
    ("s4", Element { name: "s4", bytes: 4, packed: 1, of_unit: 8 }),
    ("u4", Element { name: "u4", bytes: 4, packed: 1, of_unit: 8 }),
    ("b1", Element { name: "b1", bytes: 4, packed: 1, of_unit: 32 }),
    ("f32", Element { name: "f32", bytes: 4, packed: 1, of_unit: 1 }),
    ("s32", Element { name: "s32", bytes: 4, packed: 1, of_unit: 1 }),
    ("f64", Element { name: "f64", bytes: 8, packed: 1, of_unit: 1 }),
];

#[derive(Clone, Copy, PartialEq, Eq)]
struct Element {
    name: &'static str,
    /// Of a unit of memory: an element, or a word of smaller ones.
    bytes: u64,
    /// Units in one register.
    packed: u64,
    /// Elements of a unit.
    of_unit: u64,
}

impl Element {
    fn bank(self) -> Bank {
        if self.bytes == 8 { Bank::R64 } else { Bank::R32 }
    }

    fn in_memory(self) -> Elem {
        match self.bytes {
            1 => Elem::U8,
            2 => Elem::U16,
            4 => Elem::U32,
            _ => Elem::U64,
        }
    }
}

/// Some elements of a fragment: those of lane 4 g + t lie in line `line + g`, from `along + w t` on.
#[derive(Clone, Copy)]
struct FragmentCell {
    line: u64,
    along: u64,
}

/// Which elements a fragment's registers hold, and how memory has them.
struct Layout {
    element: Element,
    cells: Vec<FragmentCell>,
    /// Elements of a cell.
    width: u64,
    /// Registers of the fragment, those that hold nothing included.
    registers: usize,
}

impl Layout {
    /// The fragment of a part; `None` if the ISA has none of this type and shape.
    fn of(part: MatrixPart, [m, n, k]: Shape, element: Element) -> Option<Layout> {
        let small = (m, n) == (8, 8);
        let depth = match element.name {
            "tf32" => 8,
            _ => 16,
        };
        // The depth of sums' type does not say that of the factors.
        let sums = part == MatrixPart::Sums;
        let sound = match element.name {
            "f64" => small && k == 4,
            "s4" | "u4" => small && k == 32 && !sums,
            "b1" => small && k == 128 && !sums,
            "f32" => sums && !small,
            "s32" => sums && (if small { k > 4 } else { k == 16 }),
            "f16" if sums => !small && k == 16,
            _ => !sums && k == depth,
        };
        if !sound {
            return None;
        }
        // The side that is a multiple of 16 gives the rows: b's where a has only 8.
        let transposed = m == 8 && !small;
        let (rows, columns) = if transposed { (n, m) } else { (m, n) };
        let of_rows = sums || (part == MatrixPart::A) != transposed;
        let width = if sums { 2 } else { element.packed };
        let lines = if of_rows { rows } else { columns };
        let along = if sums { columns } else { k / element.of_unit };
        let mut cells = Vec::new();
        // As `mma` numbers them: a's registers by blocks of 16 rows, steps along k, halves; b's by columns,
        // steps; the sums by blocks, columns, halves.
        for block in 0..lines.div_ceil(if of_rows { 16 } else { 8 }) {
            for step in 0..along / (4 * width) {
                for half in 0..if of_rows && !small { 2 } else { 1 } {
                    let line = if of_rows { 16 * block + 8 * half } else { 8 * block };
                    cells.push(FragmentCell { line, along: 4 * width * step });
                }
            }
        }
        let used = cells.len() * (width / element.packed) as usize;
        let registers = if element.name == "f16" && !sums { 8 } else { used };
        Some(Layout { element, cells, width, registers })
    }

    /// Registers of a cell.
    fn each(&self) -> usize {
        (self.width / self.element.packed) as usize
    }
}

/// Pointers of a lane to the elements of its fragment.
struct Lane {
    /// The first element of the first cell.
    first: Arg,
    /// Bytes from line to line (elements side by side), or from element to element along one.
    stride: Arg,
    /// The elements of a line lie side by side.
    together: bool,
    space: Space,
    offset: i32,
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn wmma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let what = m.one_of(&[("load", 0), ("store", 1), ("mma", 2)]);
        if !(m.take("sync") && m.take("aligned")) {
            return Err(self.fault(i.opcode.at.clone(), "`wmma` needs `.sync.aligned`"));
        }
        match what {
            Some(0) => self.wmma_load(i, m),
            Some(1) => self.wmma_store(i, m),
            Some(_) => self.wmma_mma(i, m),
            None => Err(self.fault(i.opcode.at.clone(), "`wmma` is `.load`, `.mma` or `.store`")),
        }
    }

    fn unsupported_wmma<T>(&mut self, i: &'a Instruction<'a>) -> Lowered<T> {
        let message = "this `wmma` is not supported: supported are m16n16k16, m32n8k16 and m8n32k16 of f16, bf16, s8 and u8, \
                       m16n16k8 of tf32, m8n8k4 of f64, m8n8k32 of s4 and u4 and m8n8k128 of b1 with `.and.popc` or \
                       `.xor.popc`, with c and d of one type";
        Err(self.fault(i.opcode.at.clone(), message))
    }

    /// The part, the order of memory, the fragment and the state space of a load or store, and its stride by
    /// default.
    fn accessed(
        &mut self,
        i: &'a Instruction<'a>,
        m: &mut Mods<'_, 'a>,
        parts: &[(&str, MatrixPart)],
    ) -> Lowered<(Layout, bool, Space, u64)> {
        let part = m.one_of(parts);
        let by_rows = m.one_of(&[("row", true), ("col", false)]);
        let shape = m.one_of(&SHAPES);
        let space = m.one_of(&SPACES).unwrap_or(Space::Generic);
        let element = m.one_of(&TYPES);
        let (Some(part), Some(by_rows), Some(shape), Some(element)) = (part, by_rows, shape, element) else {
            return self.unsupported_wmma(i);
        };
        let Some(layout) = Layout::of(part, shape, element) else {
            return self.unsupported_wmma(i);
        };
        let [rows, columns, depth] = shape;
        let (height, width) = match part {
            MatrixPart::A => (rows, depth),
            MatrixPart::B => (depth, columns),
            MatrixPart::Sums => (rows, columns),
        };
        // Lines are rows of a, columns of b; of sums rows, or columns where the product is transposed.
        let lines_are_rows = match part {
            MatrixPart::A => true,
            MatrixPart::B => false,
            MatrixPart::Sums => rows != 8 || columns == 8,
        };
        let stride = if by_rows { width } else { height };
        let together = by_rows == lines_are_rows;
        // Words of small elements are of one line.
        if element.of_unit > 1 && !together {
            return self.unsupported_wmma(i);
        }
        Ok((layout, together, space, stride))
    }

    /// The number of a lane within its group of eight, and of the group.
    fn quarter(&mut self) -> [Arg; 2] {
        let lane = self.body.special(Special::LaneOfGroup);
        let [three, two] = [3, 2].map(|number| self.body.literal(Bank::R32, number));
        let [t, g] = [Arg::Reg(self.body.register(Bank::R32)), Arg::Reg(self.body.register(Bank::R32))];
        self.emit(Op::Alu(AluOp::Int32(IntOp::And)), Class::Logic, &[t], &[lane, three], 0);
        self.emit(Op::Alu(AluOp::Int32(IntOp::ShrU)), Class::Logic, &[g], &[lane, two], 0);
        [t, g]
    }

    /// Where a lane's elements begin: base + (g stride + w t) elements, or base + (w t stride + g) elements.
    fn lane_pointers(
        &mut self,
        layout: &Layout,
        together: bool,
        space: Space,
        place: &Operand<'a>,
        stride: Option<&Operand<'a>>,
        default: u64,
    ) -> Lowered<Lane> {
        let address = self.address(place, space)?;
        let base = if address.wide {
            address.base
        } else {
            let (wide, zero) = (Arg::Reg(self.body.register(Bank::R64)), self.body.literal(Bank::R32, 0));
            self.emit(Op::Alu(AluOp::Split(Split::Pack2x32)), Class::Logic, &[wide], &[address.base, zero], 0);
            wide
        };
        let stride = match stride {
            None => self.body.literal(Bank::R32, default),
            Some(stride) => self.src(stride, Ty::U32)?,
        };
        // Counted in elements.
        let stride = match layout.element.of_unit {
            1 => stride,
            elements => {
                let units = Arg::Reg(self.body.register(Bank::R32));
                let by = self.body.literal(Bank::R32, elements.ilog2().into());
                self.emit(Op::Alu(AluOp::Int32(IntOp::ShrU)), Class::Logic, &[units], &[stride, by], 0);
                units
            }
        };
        let [t, g] = self.quarter();
        let bytes = self.body.literal(Bank::R32, layout.element.bytes);
        let step = Arg::Reg(self.body.register(Bank::R64));
        self.emit(Op::Alu(AluOp::MulWide32(false)), Class::IntMul, &[step], &[stride, bytes], 0);
        // The line's number times what lies between lines, and the element's times what lies between
        // elements.
        let (far, near) = if together { (g, t) } else { (t, g) };
        let (scale, distance) = (layout.width * layout.element.bytes, layout.element.bytes);
        let apart = self.body.literal(Bank::R32, if together { scale } else { distance });
        let [at_near, at_far, wide] = [(); 3].map(|()| Arg::Reg(self.body.register(Bank::R64)));
        self.emit(Op::Alu(AluOp::MadWide32(false)), Class::IntMul, &[at_near], &[near, apart, base], 0);
        let lines = self.body.literal(Bank::R32, if together { 1 } else { layout.width });
        self.emit(Op::Alu(AluOp::MulWide32(false)), Class::IntMul, &[wide], &[far, lines], 0);
        self.emit(Op::Alu(AluOp::Int64(IntOp::MadLo)), Class::IntMul, &[at_far], &[wide, step, at_near], 0);
        Ok(Lane { first: at_far, stride: step, together, space, offset: address.offset })
    }

    /// The pointer and the offset of element `e` of a cell.
    fn element_at(&mut self, lane: &Lane, layout: &Layout, cell: FragmentCell, e: u64) -> (Arg, i32) {
        let (far, near) = if lane.together { (cell.line, cell.along + e) } else { (cell.along + e, cell.line) };
        let mut pointer = lane.first;
        if far > 0 {
            let times = self.body.literal(Bank::R64, far);
            pointer = Arg::Reg(self.body.register(Bank::R64));
            let op = Op::Alu(AluOp::Int64(IntOp::MadLo));
            self.emit(op, Class::IntMul, &[pointer], &[lane.stride, times, lane.first], 0);
        }
        (pointer, lane.offset.wrapping_add((near * layout.element.bytes) as i32))
    }

    fn wmma_access(&mut self, kind: MemKind, lane: &Lane, elem: Elem, vec: u8, data: &[Arg], at: (Arg, i32)) {
        let wide = elem == Elem::U64;
        let mem = Mem { vec, wide, address: AddressIn::Wide, ..plain_access(kind, lane.space, elem) };
        self.emit(Op::Mem(mem), Class::Mem, data, &[at.0], at.1);
    }

    /// Loads or stores the registers of a fragment as they lie in memory: those of a cell side by side.
    fn wmma_whole_registers(&mut self, kind: MemKind, lane: &Lane, layout: &Layout, registers: &[Arg]) {
        // As many bytes as a register has.
        let elem = if layout.element.bytes == 8 { Elem::U64 } else { Elem::U32 };
        for (cell, registers) in layout.cells.iter().zip(registers.chunks(layout.each())) {
            let at = self.element_at(lane, layout, *cell, 0);
            self.wmma_access(kind, lane, elem, registers.len() as u8, registers, at);
        }
    }

    fn wmma_load(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let parts = [("a", MatrixPart::A), ("b", MatrixPart::B), ("c", MatrixPart::Sums)];
        let (layout, together, space, default) = self.accessed(i, m, &parts)?;
        let (d, place, stride) = match i.operands.as_slice() {
            [d, place] => (d, place, None),
            [d, place, stride] => (d, place, Some(stride)),
            _ => return self.operands::<3>(i).map(|_| ()),
        };
        let registers = self.wmma_registers(d, &layout)?;
        let lane = self.lane_pointers(&layout, together, space, place, stride, default)?;
        match lane.together {
            true => self.wmma_whole_registers(MemKind::Load, &lane, &layout, &registers),
            false => self.wmma_load_elements(&lane, &layout, &registers),
        }
        // Programs may copy and scale a fragment as a whole: what is left over holds something, too.
        let used = layout.cells.len() * layout.each();
        for register in &registers[used..] {
            let zero = self.body.literal(Bank::R32, 0);
            self.emit(Op::Alu(AluOp::Mov32), Class::Logic, &[*register], &[zero], 0);
        }
        Ok(())
    }

    /// The elements of a register come one by one, and are packed when all are there.
    fn wmma_load_elements(&mut self, lane: &Lane, layout: &Layout, registers: &[Arg]) {
        let element = layout.element;
        for (cell, registers) in layout.cells.iter().zip(registers.chunks(layout.each())) {
            let mut parts = [Arg::None; 4];
            for e in 0..layout.width {
                let at = self.element_at(lane, layout, *cell, e);
                let part = match element.packed {
                    1 => registers[e as usize],
                    _ => Arg::Reg(self.body.register(Bank::R32)),
                };
                self.wmma_access(MemKind::Load, lane, element.in_memory(), 1, &[part], at);
                parts[e as usize] = part;
            }
            let pack = match element.packed {
                1 => continue,
                2 => Split::Pack2x16,
                _ => Split::Pack4x8,
            };
            self.emit(Op::Alu(AluOp::Split(pack)), Class::Logic, &[registers[0]], &parts, 0);
        }
    }

    fn wmma_store(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let (layout, together, space, default) = self.accessed(i, m, &[("d", MatrixPart::Sums)])?;
        let (place, d, stride) = match i.operands.as_slice() {
            [place, d] => (place, d, None),
            [place, d, stride] => (place, d, Some(stride)),
            _ => return self.operands::<3>(i).map(|_| ()),
        };
        let element = layout.element;
        let registers = self.wmma_sources(d, &layout)?;
        let lane = self.lane_pointers(&layout, together, space, place, stride, default)?;
        if lane.together {
            self.wmma_whole_registers(MemKind::Store, &lane, &layout, &registers);
            return Ok(());
        }
        for (cell, registers) in layout.cells.iter().zip(registers.chunks(layout.each())) {
            for e in 0..layout.width {
                let at = self.element_at(&lane, &layout, *cell, e);
                let mut value = registers[(e / element.packed) as usize];
                // The upper half of a register is stored from the lower half of another.
                if e % element.packed > 0 {
                    let (half, by) = (Arg::Reg(self.body.register(Bank::R32)), self.body.literal(Bank::R32, 16));
                    self.emit(Op::Alu(AluOp::Int32(IntOp::ShrU)), Class::Logic, &[half], &[value, by], 0);
                    value = half;
                }
                self.wmma_access(MemKind::Store, &lane, element.in_memory(), 1, &[value], at);
            }
        }
        Ok(())
    }

    /// The registers of a fragment that is written.
    fn wmma_registers(&mut self, operand: &'a Operand<'a>, layout: &Layout) -> Lowered<Vec<Arg>> {
        let mut registers = vec![Arg::None; layout.registers];
        self.results(operand, layout.element.bank(), &mut registers)?;
        Ok(registers)
    }

    /// The registers of a fragment that is read.
    fn wmma_sources(&mut self, operand: &'a Operand<'a>, layout: &Layout) -> Lowered<Vec<Arg>> {
        let ty = if layout.element.bytes == 8 { Ty::B64 } else { Ty::B32 };
        let mut registers = vec![Arg::None; layout.registers];
        self.fragment(operand, ty, &mut registers)?;
        Ok(registers)
    }

    fn wmma_mma(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        // Memory's order of a and b does not matter any more.
        let orders = [m.one_of(&[("row", ()), ("col", ())]), m.one_of(&[("row", ()), ("col", ())])];
        let shape = m.one_of(&SHAPES);
        let bits = m.one_of(&[("and", BitProduct::And), ("xor", BitProduct::Xor)]);
        let counts = m.take("popc");
        m.take("rn");
        let saturates = m.take("satfinite");
        let types: [Option<Element>; 4] = std::array::from_fn(|_| m.one_of(&TYPES));
        let (Some(shape), [Some(()), Some(())]) = (shape, orders) else { return self.unsupported_wmma(i) };
        // Of halves only the types of d and c are named.
        let half = TYPES[0].1;
        let [d, a, b, c] = match types {
            [Some(d), Some(c), None, None] => [d, half, half, c],
            [Some(d), Some(a), Some(b), Some(c)] => [d, a, b, c],
            _ => return self.unsupported_wmma(i),
        };
        let factors = match (a.name, b.name) {
            ("f16", "f16") => Some(MatrixFactors::Half(HalfFormat::F16)),
            ("bf16", "bf16") => Some(MatrixFactors::Half(HalfFormat::Bf16)),
            ("tf32", "tf32") => Some(MatrixFactors::Tf32),
            ("f64", "f64") => Some(MatrixFactors::Double),
            ("s8" | "u8", "s8" | "u8") => Some(MatrixFactors::Bytes(a.name == "s8", b.name == "s8")),
            ("s4" | "u4", "s4" | "u4") => Some(MatrixFactors::Nibbles(a.name == "s4", b.name == "s4")),
            ("b1", "b1") => bits.map(MatrixFactors::Bits),
            _ => None,
        };
        let sums = match (factors, d.name, c.name) {
            (Some(MatrixFactors::Half(HalfFormat::F16)), "f16", "f16") => Some(MatrixSums::F16),
            (Some(MatrixFactors::Half(_) | MatrixFactors::Tf32), "f32", "f32") => Some(MatrixSums::F32),
            (Some(MatrixFactors::Bytes(..) | MatrixFactors::Nibbles(..)), "s32", "s32") => {
                Some(MatrixSums::S32(saturates))
            }
            (Some(MatrixFactors::Bits(_)), "s32", "s32") => Some(MatrixSums::S32(false)),
            (Some(MatrixFactors::Double), "f64", "f64") => Some(MatrixSums::F64),
            _ => None,
        };
        let layouts = [
            Layout::of(MatrixPart::A, shape, a),
            Layout::of(MatrixPart::B, shape, b),
            Layout::of(MatrixPart::Sums, shape, c),
        ];
        let (Some(factors), Some(sums), [Some(a), Some(b), Some(c)]) = (factors, sums, layouts) else {
            return self.unsupported_wmma(i);
        };
        let is_bits = matches!(factors, MatrixFactors::Bits(_));
        if saturates && (is_bits || !matches!(sums, MatrixSums::S32(_))) || [bits.is_some(), counts] != [is_bits; 2] {
            return self.unsupported_wmma(i);
        }
        let [d_operand, a_operand, b_operand, c_operand] = self.operands(i)?;
        let left = self.wmma_sources(a_operand, &a)?;
        let right = self.wmma_sources(b_operand, &b)?;
        let start = self.wmma_sources(c_operand, &c)?;
        let results = self.wmma_registers(d_operand, &c)?;
        // Rows come from b where the product is transposed, and signs with them.
        let small = shape[..2] == [8, 8];
        let transposed = shape[0] == 8 && !small;
        let (rows, columns) = if transposed { (right, left) } else { (left, right) };
        let factors = match factors {
            MatrixFactors::Bytes(of_a, of_b) if transposed => MatrixFactors::Bytes(of_b, of_a),
            factors => factors,
        };
        let deep = !small && !matches!(factors, MatrixFactors::Bytes(..));
        // Registers of one product: of rows, of columns, of sums.
        let (of_rows, of_columns, of_sums) = match small {
            true => (1, 1, 2),
            false => (if deep { 4 } else { 2 }, if deep { 2 } else { 1 }, if sums == MatrixSums::F16 { 2 } else { 4 }),
        };
        let (row_blocks, column_blocks) = match (small, shape[0]) {
            (true, _) => (1, 1),
            (_, 16) => (1, 2),
            _ => (2, 1),
        };
        let products = row_blocks * column_blocks;
        let bank = c.element.bank();
        let targets = self.targets(&results, bank, of_sums, [&rows, &columns, &start]);
        for product in 0..products {
            let (row, column) = (product / column_blocks, product % column_blocks);
            let op = MatrixOp::dense(factors, sums, deep);
            self.product(
                op,
                &targets[of_sums * product..][..of_sums],
                &rows[of_rows * row..][..of_rows],
                &columns[of_columns * column..][..of_columns],
                &start[of_sums * product..][..of_sums],
            );
        }
        self.bring_back(&results, &targets, bank);
        Ok(())
    }
}
