//! Against another implementation: single instructions at their edges and in every rounding mode, with the
//! exceptions that they raise, as qemu-riscv64 executes them. `samples/instructions.txt` is made by
//! `expected.py`.

use std::collections::BTreeSet;

use durawarp::riscv::decode::decode;
use durawarp::riscv::instruction::{Class, Inst, NOWHERE, Op};
use durawarp::riscv::semantics::{self, Flagged};

/// What a line of operands is.
struct Row {
    operands: [u64; 3],
    fcsr: u8,
    result: u64,
    after: u8,
}

impl Row {
    fn of(line: &str) -> Row {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).unwrap_or_else(|_| panic!("{line}")))
            .collect();
        let [a, b, c, fcsr, result, after] = numbers[..] else { panic!("{line}") };
        Row { operands: [a, b, c], fcsr: fcsr as u8, result, after: after as u8 }
    }

    /// What an instruction gives here.
    fn ours(&self, inst: &Inst) -> Flagged {
        // The registers that the rows were made with.
        let value = |register: u8| match register {
            10 | 11 | 43 => self.operands[0],
            12 | 44 => self.operands[1],
            45 => self.operands[2],
            _ => 0,
        };
        let [a, b, c] = inst.sources().map(value);
        match inst.class() {
            Class::Fp | Class::FpDiv | Class::FpMove | Class::FpConvert => {
                semantics::float(inst, a, b, c, self.fcsr).unwrap()
            }
            _ => Flagged { value: semantics::integer(inst, 0, a, b), flags: 0 },
        }
    }
}

#[test]
fn every_instruction_gives_what_qemu_gives_and_raises_what_it_raises() {
    let (mut text, mut inst, mut operations) = ("", None, BTreeSet::new());
    let mut wrong = Vec::new();
    for line in include_str!("samples/instructions.txt").lines() {
        if let Some(head) = line.strip_prefix(": ") {
            let (name, word) = head.rsplit_once(' ').unwrap();
            let decoded = decode(u32::from_str_radix(word, 16).unwrap());
            assert_ne!(decoded.rd, NOWHERE, "{line}");
            operations.insert(decoded.op);
            (text, inst) = (name, Some(decoded));
            continue;
        }
        let (row, inst) = (Row::of(line), inst.unwrap());
        let ours = row.ours(&inst);
        if (ours.value, row.fcsr | ours.flags) != (row.result, row.after) {
            wrong.push(format!("{text}: {line}: ours is {:x} with exceptions {:x}", ours.value, ours.flags));
        }
    }
    assert!(wrong.is_empty(), "{} rows: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    // All that compute, but for those that qemu-riscv64 7.2 does not have, and `auipc`.
    let computes = |op: &&Op| {
        use Class::*;
        matches!(op.class(), Alu | Mul | Div | Fp | FpDiv | FpMove | FpConvert)
    };
    let missing: Vec<&str> =
        Op::ALL.iter().filter(computes).filter(|op| !operations.contains(op)).map(|op| op.name()).collect();
    assert_eq!(missing, ["auipc", "czero.eqz", "czero.nez"]);
}
