//! Tensor memory in SASS of Blackwell: what an opcode, and the values of registers, say of the time that an
//! instruction takes, as `tcgen05` of PTX.
//!
//! ```text
//!   UTCHMMA gdesc[UR6], gdesc[UR8], tmem[UR15], tmem[UR12], idesc[UR13], UP0
//!           a           b           d           sparse a    its descriptor
//!   UTCQMMA, UTCIMMA, UTCOMMA       the same of 8-bit floats, bytes, 4-bit floats; scaled blocks have a sixth
//!          .2CTA                    of a pair of CTAs
//!   UTCCP.T.S[.2CTA].SHAPE          shared memory to tensor memory
//!   LDTM.SHAPE.xN, STTM.SHAPE.xN    registers from there, and to there
//!   FENCE.VIEW.ASYNC.T              waits for the warp's stores to there
//!   UTCBAR[.2CTA][.MULTICAST]       an arrival behind products, at the barriers of a mask of CTAs
//! ```
//! How large a product is, no opcode says: its descriptor does (PTX ISA 9.7.16.4.2), which is the value of
//! the fifth uniform register of the line. A line without values, or whose value cannot be such a descriptor,
//! has no shape, and takes no time, which is reported. Neither has `.WS`, whose rate nobody has published. A
//! product of 4-bit floats is 64 elements deep, or 96 (`sm_103a`), by the uppermost bit of its descriptor.
//!
//! A sparse product has the time of the elements that are there. A uniform instruction is executed once for
//! its warp, whatever its mask. Nothing waits for a load but who reads its registers: `ptxas` makes a `NOP`
//! of `tcgen05.wait::ld`. A load of `.16x32bx2` is two, each of half of the threads and, chosen, of half the
//! cycles; what reads its registers waits for the second.
//!
//! Source: what `ptxas` 12.9 makes of the PTX instructions. Accel-Sim 2.0 has no opcodes of Blackwell: which
//! registers its tracer names of `gdesc[..]`, `tmem[..]`, `idesc[..]` we have not seen; each in its place is
//! taken for granted. It has room for a result and five sources. Not modelled: columns that CTAs wait for
//! (`UTCATOMSWS`), shifts (`UTCSHIFT`).

use durawarp_kernel::ir::{GroupElements, Op, TensorStep, TracedTensor};

use super::instruction::TraceLine;

/// Elements of a row of a product of 4-bit floats whose descriptor has its uppermost bit set.
const LONG_DEPTH: u32 = 96;

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TensorUse {
    Multiply(CoreProduct),
    Copy {
        bytes: u16,
        paired: bool,
    },
    Transfer(Transfer),
    /// Waits for the warp's stores.
    WaitStores,
    /// An arrival behind products, in each CTA of a mask.
    CommitTo,
}

/// A product, as far as its opcode says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoreProduct {
    factors: Factors,
    pub(crate) paired: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Factors {
    /// 16 bits, or those of `tf32`.
    Halves,
    /// Floats of 8 bits and fewer.
    Eights,
    Bytes,
    /// Floats of 4 bits.
    Fours,
}

/// Registers of each thread from tensor memory, or to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) loads: bool,
    pub(crate) registers: u8,
    /// Of the lower or the upper half of the threads alone.
    half: Option<bool>,
}

impl Transfer {
    /// Registers that are waited for.
    pub(crate) fn awaited(self) -> u8 {
        if self.loads && self.half != Some(false) { self.registers } else { 0 }
    }

    /// Cycles of the port.
    fn cycles(self) -> u8 {
        if self.half.is_some() { self.registers.div_ceil(2) } else { self.registers }
    }
}

impl TensorUse {
    /// What an opcode does, with its modifiers; none where it does nothing of this kind.
    pub(crate) fn of(opcode: &str) -> Option<TensorUse> {
        let name = opcode.split('.').next()?;
        let modifiers = || opcode.split('.').skip(1);
        let has = |token: &str| modifiers().any(|own| own == token);
        let paired = has("2CTA");
        let product = |factors| (!has("WS")).then_some(TensorUse::Multiply(CoreProduct { factors, paired }));
        match name {
            "UTCHMMA" => product(Factors::Halves),
            "UTCQMMA" => product(Factors::Eights),
            "UTCIMMA" => product(Factors::Bytes),
            "UTCOMMA" => product(Factors::Fours),
            "UTCCP" if opcode.starts_with("UTCCP.T.S") => {
                let shape = modifiers().skip(2).find(|token| token.contains("dp"));
                Some(TensorUse::Copy { bytes: copied_bytes(shape)?, paired })
            }
            "LDTM" | "STTM" => {
                let mut transfer = Transfer { loads: name == "LDTM", registers: 1, half: None };
                let mut times = 1;
                for token in modifiers() {
                    match token {
                        "16dp64bit" => {}
                        "16dp128bit" => transfer.registers = 2,
                        "16dp256bit" => transfer.registers = 4,
                        // Threads 0 to 15, and then the others.
                        "16dp32bit_t0_t15" => transfer.half = Some(false),
                        "16dp32bit_t16_t31" => transfer.half = Some(true),
                        "PACK16BIT" | "EXPAND16BIT" => {}
                        _ => times = token.strip_prefix('x')?.parse::<u8>().ok().filter(|times| *times <= 128)?,
                    }
                }
                transfer.registers = transfer.registers.checked_mul(times)?;
                Some(TensorUse::Transfer(transfer))
            }
            "FENCE" if opcode == "FENCE.VIEW.ASYNC.T" => Some(TensorUse::WaitStores),
            "UTCBAR" if ["UTCBAR.MULTICAST", "UTCBAR.2CTA.MULTICAST"].contains(&opcode) => Some(TensorUse::CommitTo),
            _ => None,
        }
    }

    /// The instruction, and its immediate, where the opcode says all of it; `pairs` of CTAs are known.
    pub(crate) fn instruction(self, pairs: bool) -> Option<(Op, i32)> {
        let (step, count) = match self {
            TensorUse::Copy { bytes, paired } => (TracedTensor::Copy { paired: paired && pairs }, bytes.into()),
            TensorUse::Transfer(of) => (TracedTensor::Transfer { loads: of.loads }, of.cycles().into()),
            TensorUse::WaitStores => (TracedTensor::WaitStores, 0),
            TensorUse::Multiply(_) | TensorUse::CommitTo => return None,
        };
        Some((Op::Tensor(TensorStep::Traced(step)), count))
    }
}

/// Bytes of shared memory that a copy of a shape reads.
fn copied_bytes(shape: Option<&str>) -> Option<u16> {
    Some(match shape {
        None => 128 * 32,
        Some("4dp256bit") => 4 * 32,
        Some("128dp128bit") => 128 * 16,
        Some("2x64dp128bit_lw02_lw13" | "2x64dp128bit_lw01_lw23") => 64 * 16,
        Some("4x32dp128bit") => 32 * 16,
        Some(_) => return None,
    })
}

impl CoreProduct {
    /// Elements, multiplications and additions of a CTA, by the descriptor in a line's values.
    pub(crate) fn work(self, line: &TraceLine<'_>) -> Option<(GroupElements, u32)> {
        self.described(uniform_value(line, 4)? as u32)
    }

    fn described(self, descriptor: u32) -> Option<(GroupElements, u32)> {
        let bits = |from: u32, count: u32| descriptor >> from & ((1 << count) - 1);
        let (a, b, d) = (bits(7, 3), bits(10, 3), bits(4, 2));
        let is_sparse = bits(2, 1) == 1;
        let is_long = self.factors == Factors::Fours && bits(31, 1) == 1;
        let elements = match self.factors {
            Factors::Halves if a == b && a < 2 && d < 2 => GroupElements::Half,
            Factors::Halves if a == 2 && b == 2 && d == 1 => GroupElements::Tf32,
            Factors::Eights if [a, b].iter().all(|of| matches!(of, 0 | 1 | 3..=5)) => GroupElements::Fp8,
            Factors::Bytes if a < 2 && b < 2 && d == 2 => GroupElements::Bytes,
            // The ISA reserves a sparse product with the uppermost bit.
            Factors::Fours if !(is_long && is_sparse) => GroupElements::Fp4,
            _ => return None,
        };
        let ctas = if self.paired { 2 } else { 1 };
        let (rows, columns) = (16 * bits(24, 5) / ctas, 8 * bits(17, 6));
        let fits = matches!(rows, 64 | 128) && (8 * ctas..=256).contains(&columns);
        let depth = if is_long { LONG_DEPTH } else { elements.depth() };
        fits.then_some((elements, 2 * rows * columns * depth))
    }
}

/// Every register that a line names, in the order of its values: results first.
fn registers<'a>(line: &TraceLine<'a>) -> impl Iterator<Item = &'a str> {
    let mut words = std::str::from_utf8(line.text).unwrap_or_default().split_ascii_whitespace();
    let results: usize = words.next().and_then(|count| count.parse().ok()).unwrap_or(0);
    let is_register = move |(at, _): &(usize, &str)| ![results, results + 1].contains(at);
    // Behind the results are the opcode and the number of sources, and behind these the width.
    words.enumerate().filter(is_register).map(|(_, word)| word).filter(|word| word.starts_with(['R', 'U', 'P']))
}

/// The value of a line's uniform register with this number.
fn uniform_value(line: &TraceLine<'_>, number: usize) -> Option<u64> {
    let mut uniform = registers(line).enumerate().filter(|(_, register)| register.starts_with("UR"));
    let (at, _) = uniform.nth(number)?;
    Some(line.values.of(at)?[line.mask.trailing_zeros() as usize % 32])
}

/// The mask of CTAs at whose barriers an arrival is: the last register of the line.
pub(crate) fn committed_to(line: &TraceLine<'_>) -> Option<u16> {
    let at = registers(line).count().checked_sub(1)?;
    let mask = line.values.of(at)?[line.mask.trailing_zeros() as usize % 32];
    // Only the lower 16 bits count.
    Some(mask as u16).filter(|&mask| mask != 0)
}

#[cfg(test)]
mod tests {
    use super::super::instruction::{LineFormat, read_line};
    use super::*;

    fn line(text: &str) -> TraceLine<'_> {
        read_line(text.as_bytes(), LineFormat { version: 6, lineinfo: false }, &mut Vec::new()).unwrap()
    }

    /// 128 rows of this number of columns, with the types of a, b and d.
    fn descriptor(types: u32, rows: u32, columns: u32) -> u32 {
        types | (columns / 8) << 17 | (rows / 16) << 24
    }

    const F16: u32 = 1 << 4;
    const TF32: u32 = 1 << 4 | 2 << 7 | 2 << 10;

    #[test]
    fn a_descriptor_says_how_much_work_a_product_is() {
        let of = |opcode: &str, descriptor: u32| match TensorUse::of(opcode) {
            Some(TensorUse::Multiply(product)) => product.described(descriptor),
            other => panic!("{opcode}: {other:?}"),
        };
        let work = |rows: u32, columns: u32, depth: u32| 2 * rows * columns * depth;
        for (opcode, descriptor, elements, operations) in [
            ("UTCHMMA", descriptor(F16, 128, 256), GroupElements::Half, work(128, 256, 16)),
            ("UTCHMMA", descriptor(F16 | 1 << 7 | 1 << 10, 64, 8), GroupElements::Half, work(64, 8, 16)),
            // Sparse: of the elements that are there.
            ("UTCHMMA", descriptor(F16 | 1 << 2, 128, 64), GroupElements::Half, work(128, 64, 16)),
            ("UTCHMMA", descriptor(TF32, 128, 64), GroupElements::Tf32, work(128, 64, 8)),
            ("UTCHMMA.2CTA", descriptor(F16, 256, 256), GroupElements::Half, work(128, 256, 16)),
            ("UTCHMMA.2CTA", descriptor(F16, 128, 32), GroupElements::Half, work(64, 32, 16)),
            ("UTCQMMA", descriptor(F16 | 1 << 10, 128, 64), GroupElements::Fp8, work(128, 64, 32)),
            ("UTCIMMA", descriptor(2 << 4 | 1 << 7 | 1 << 10, 128, 64), GroupElements::Bytes, work(128, 64, 32)),
            ("UTCOMMA.4X", descriptor(1 << 7 | 1 << 10, 128, 128), GroupElements::Fp4, work(128, 128, 64)),
            ("UTCOMMA", descriptor(1 << 2, 128, 128), GroupElements::Fp4, work(128, 128, 64)),
            ("UTCOMMA.4X", descriptor(1 << 31, 128, 128), GroupElements::Fp4, work(128, 128, 96)),
            ("UTCOMMA.2CTA", descriptor(1 << 31, 256, 64), GroupElements::Fp4, work(128, 64, 96)),
        ] {
            assert_eq!(of(opcode, descriptor), Some((elements, operations)), "{opcode}, {descriptor:#x}");
        }
        for (opcode, descriptor) in [
            ("UTCHMMA", 0),
            ("UTCHMMA", descriptor(F16 | 1 << 7, 128, 256)),
            ("UTCHMMA", descriptor(2 << 4, 128, 256)),
            ("UTCHMMA", descriptor(F16, 32, 256)),
            ("UTCHMMA", descriptor(F16, 256, 256)),
            ("UTCHMMA", descriptor(F16, 128, 264)),
            ("UTCHMMA.2CTA", descriptor(F16, 64, 64)),
            ("UTCQMMA", descriptor(2 << 7, 128, 64)),
            ("UTCIMMA", descriptor(F16, 128, 64)),
            ("UTCOMMA", descriptor(1 << 31 | 1 << 2, 128, 128)),
        ] {
            assert_eq!(of(opcode, descriptor), None, "{opcode}, {descriptor:#x}");
        }
        assert_eq!(TensorUse::of("UTCHMMA.WS"), None);
    }

    #[test]
    fn the_fifth_uniform_register_is_the_descriptor_wherever_the_first_is_named() {
        let product = CoreProduct { factors: Factors::Halves, paired: false };
        let idesc = descriptor(F16, 128, 64);
        let values = format!("1 6 1 8 1 f 1 0 1 {idesc:x} 1 1");
        let sources = format!("0010 00000001 0 UTCHMMA 6 UR6 UR8 UR15 UR12 UR13 UP0 0 0 Val {values}");
        // The first operand of an instruction may be taken for its result.
        let result = format!("0010 00000100 1 UR6 UTCHMMA 5 UR8 UR15 UR12 UR13 UP0 0 0 Val {values}");
        let expected = Some((GroupElements::Half, 2 * 128 * 64 * 16));
        assert_eq!([sources, result].map(|text| product.work(&line(&text))), [expected; 2]);
        for text in [
            "0010 00000001 0 UTCHMMA 6 UR6 UR8 UR15 UR12 UR13 UP0 0 0 NoVal",
            "0010 00000001 0 UTCHMMA 2 UR6 UR8 0 0 Val 1 4200490 1 4200490",
            "0010 00000001 0 UTCHMMA 6 UR6 UR8 UR15 UR12 UR13 UP0 0 0 Val 1 6 1 8 1 f 1 0 1 0 1 1",
        ] {
            assert_eq!(product.work(&line(text)), None, "{text}");
        }
    }

    #[test]
    fn an_arrival_s_mask_is_the_last_register() {
        let of = |text: &str| committed_to(&line(text));
        let multicast = "0010 00000002 0 UTCBAR.MULTICAST 3 UR20 UR255 UR18 8 0 0x400 0 Val 1 400 1 0 1 10003";
        assert_eq!(of(multicast), Some(3));
        assert_eq!(of("0010 00000002 0 UTCBAR.MULTICAST 2 UR20 UR18 8 0 0x400 0 Val 1 400 1 1"), Some(1));
        assert_eq!(of("0010 00000002 0 UTCBAR.MULTICAST 3 UR20 UR255 UR18 8 0 0x400 0 NoVal"), None);
        for (opcode, is) in [("UTCBAR", false), ("UTCBAR.2CTA.MULTICAST", true), ("UTCBAR.FLUSH", false)] {
            assert_eq!(TensorUse::of(opcode) == Some(TensorUse::CommitTo), is, "{opcode}");
        }
    }

    #[test]
    fn a_transfer_has_the_registers_of_its_shape_and_a_copy_its_bytes() {
        for (opcode, loads, registers, cycles, awaited) in [
            ("LDTM.x8", true, 8, 8, 8),
            ("LDTM", true, 1, 1, 1),
            ("LDTM.16dp256bit.x2", true, 8, 8, 8),
            ("LDTM.16dp128bit", true, 2, 2, 2),
            ("LDTM.16dp64bit.x128", true, 128, 128, 128),
            ("LDTM.x2.PACK16BIT", true, 2, 2, 2),
            ("LDTM.16dp32bit_t0_t15.x4", true, 4, 2, 0),
            ("LDTM.16dp32bit_t16_t31.x4", true, 4, 2, 4),
            ("STTM.x4", false, 4, 4, 0),
            ("STTM.16dp64bit.EXPAND16BIT", false, 1, 1, 0),
        ] {
            let Some(TensorUse::Transfer(of)) = TensorUse::of(opcode) else { panic!("{opcode}") };
            let found = (of.loads, of.registers, of.cycles(), of.awaited());
            assert_eq!(found, (loads, registers, cycles, awaited), "{opcode}");
        }
        for (opcode, bytes, paired) in [
            ("UTCCP.T.S", 4096, false),
            ("UTCCP.T.S.U4x16P64", 4096, false),
            ("UTCCP.T.S.2CTA.4x32dp128bit", 512, true),
            ("UTCCP.T.S.128dp128bit", 2048, false),
            ("UTCCP.T.S.2x64dp128bit_lw02_lw13", 1024, false),
            ("UTCCP.T.S.4dp256bit", 128, false),
        ] {
            assert_eq!(TensorUse::of(opcode), Some(TensorUse::Copy { bytes, paired }), "{opcode}");
        }
        for opcode in
            ["LDTM.16dp32bit", "LDTM.MIN.x8", "LDTM.x200", "UTCCP", "UTCCP.T.S.8dp64bit", "FENCE.VIEW.ASYNC.S"]
        {
            assert_eq!(TensorUse::of(opcode), None, "{opcode}");
        }
    }
}
