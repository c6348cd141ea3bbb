//! What an instruction of a trace reads of the register file, and whether its latency is fixed.
//!
//! A line names the registers that are read in the order of the operands, without immediates and constants:
//! `FFMA R5, R2, c[0x0][0x160], R8` is `1 R5 FFMA 2 R2 R8`. As the format says no more, these are readings:
//!
//! | of a trace | reading |
//! |---|---|
//! | slot of an operand | its place among the sources but predicates: R8 has the second, not the third |
//! | `R255`, a uniform register | has a slot, and reads nothing of the register file |
//! | a register that two operands name | is read for each |
//! | an operand of a product of matrices | has the registers of its shape, four at most |
//! | the third of three sources of `IMAD.WIDE` | has two registers |
//! | a fourth source | is not read: three are the most in the paper below |
//!
//! Which latencies are fixed is chosen: those for which NVIDIA's compiler counts stall cycles. It guards all
//! others by counters: memory, special functions, conversions. Double precision is one of these, as on cards
//! whose sub-cores share its unit. Source: Huerta et al., "Dissecting and Modeling the Architecture of Modern
//! GPU Cores" (MICRO 2025), sections 4, 5.3 and 6. Published traces have no `.reuse`.

use smallvec::SmallVec;

use super::opcodes::Operation;
use super::words::REUSE;
use durawarp_kernel::ir::{Class, OPERAND_SLOTS, OperandReads, SourceOperand};

/// The vector register that reads as zero.
const ZERO: u8 = 255;

/// Opcodes of variable latency among classes whose others have a fixed one.
const VARIABLE: [&str; 20] = [
    "B2R",
    "BREV",
    "CCTL",
    "CCTLL",
    "CCTLT",
    "ERRBAR",
    "FCHK",
    "FLO",
    "GETLMEMBASE",
    "LEPC",
    "MOVM",
    "POPC",
    "QSPC",
    "R2B",
    "RRO",
    "S2R",
    "S2UR",
    "UBREV",
    "UFLO",
    "UPOPC",
];

/// Conversions of fixed latency: those of the integer units.
const PACKS: [&str; 6] = ["F2FP", "F2IP", "I2FP", "I2IP", "UF2FP", "UI2FP"];

fn is_fixed(name: &str, operation: Operation) -> bool {
    use Class::{Compare, Convert, Fp32, Int, IntMul, Logic, MinMax, Vote};
    match operation {
        Operation::Compute(Int | IntMul | Logic | Compare | MinMax | Fp32 | Vote) => !VARIABLE.contains(&name),
        Operation::Compute(Convert) => PACKS.contains(&name),
        Operation::Product(_) | Operation::Branch | Operation::Exit => true,
        _ => false,
    }
}

/// What an instruction reads, by its text from `ND` to `W`.
pub(super) fn operand_reads(text: &[u8], opcode: &str, operation: Operation) -> OperandReads {
    let name = opcode.split('.').next().unwrap_or_default();
    let words: Vec<&str> = std::str::from_utf8(text).unwrap_or_default().split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
    // How many are written, these, the opcode, how many are read, these.
    let at: usize = number(0) + 2;
    let is_predicate = |word: &&&str| word.starts_with('P') || word.starts_with("UP");
    let sources = words.iter().skip(at + 1).take(number(at)).filter(|word| !is_predicate(word));
    let sources: SmallVec<[&str; OPERAND_SLOTS]> = sources.take(OPERAND_SLOTS).copied().collect();
    let wide = name == "IMAD" && opcode.split('.').any(|token| token == "WIDE");
    let counts = match operation {
        Operation::Product(product) => [product.factors[0], product.factors[1], product.sums],
        _ if wide && sources.len() == OPERAND_SLOTS => [1, 1, 2],
        _ => [1; OPERAND_SLOTS],
    };
    let mut reads = OperandReads { fixed: is_fixed(name, operation), ..OperandReads::default() };
    for ((slot, word), count) in reads.slots.iter_mut().zip(sources).zip(counts) {
        let (register, reuse) = word.strip_suffix(REUSE).map_or((word, false), |register| (register, true));
        let number = register.strip_prefix('R').and_then(|number| number.parse().ok());
        let vector = number.filter(|&register| register != ZERO);
        *slot = vector.map(|register| SourceOperand { register, count, reuse });
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::super::opcodes::operation_of;
    use super::super::products::MatrixProduct;
    use super::*;

    fn of(text: &str) -> OperandReads {
        let opcode = text.split(' ').find(|word| word.len() > 2 && !word.contains("reuse")).unwrap();
        let operation = match operation_of(opcode.split('.').next().unwrap()).unwrap() {
            Operation::Product(_) => Operation::Product(MatrixProduct::of(opcode)),
            operation => operation,
        };
        operand_reads(text.as_bytes(), opcode, operation)
    }

    /// Registers by slot: the first of each and how many.
    fn slots(text: &str) -> [Option<(u8, u8)>; 3] {
        of(text).slots.map(|slot| slot.map(|operand| (operand.register, operand.count)))
    }

    #[test]
    fn an_operand_has_the_slot_of_its_place_among_the_sources() {
        assert_eq!(slots("1 R5 FFMA 3 R2 R7 R8 0"), [Some((2, 1)), Some((7, 1)), Some((8, 1))]);
        assert_eq!(slots("1 R5 FFMA 3 R2 R255 R8 0"), [Some((2, 1)), None, Some((8, 1))]);
        assert_eq!(slots("1 R5 IADD3 3 R2 UR7 R8 0"), [Some((2, 1)), None, Some((8, 1))]);
        assert_eq!(slots("1 P0 ISETP.NE 3 P1 R2 R2 0"), [Some((2, 1)), Some((2, 1)), None]);
        assert_eq!(slots("0 NOP 0 0"), [None; 3]);
        let reuse = of("1 R5 FFMA 3 R2.reuse R7 R8.reuse 0").slots.map(|slot| slot.unwrap().reuse);
        assert_eq!(reuse, [true, false, true]);
    }

    #[test]
    fn operands_of_several_registers_are_those_of_wide_sums_and_of_products() {
        assert_eq!(slots("1 R4 IMAD.WIDE 3 R2 R3 R6 0"), [Some((2, 1)), Some((3, 1)), Some((6, 2))]);
        assert_eq!(slots("1 R4 IMAD.WIDE 2 R2 R3 0"), [Some((2, 1)), Some((3, 1)), None]);
        assert_eq!(slots("1 R4 HMMA.16816.F32 3 R8 R12 R4 0"), [Some((8, 4)), Some((12, 2)), Some((4, 4))]);
    }

    #[test]
    fn latencies_of_memory_special_functions_and_conversions_are_not_fixed() {
        let fixed = |text: &str| of(text).fixed;
        for text in ["1 R4 IADD3 1 R2 0", "1 R4 MOV 1 R2 0", "0 BRA 0 0", "1 R4 HMMA.1688 0 0", "1 R4 I2FP 1 R2 0"] {
            assert!(fixed(text), "{text}");
        }
        for text in ["1 R4 LDG 1 R2 4", "1 R4 MUFU 1 R2 0", "1 R4 I2F 1 R2 0", "1 R4 S2R 0 0", "1 R4 DADD 1 R2 0"] {
            assert!(!fixed(text), "{text}");
        }
    }
}
