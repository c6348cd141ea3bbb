//! Against another implementation: single instructions, as qemu-riscv64 executes them.
//! `samples/instructions.txt` is made by `expected.py`.

use std::collections::BTreeSet;

use durawarp::riscv::decode::decode;
use durawarp::riscv::instruction::{Class, NOWHERE};
use durawarp::riscv::semantics;

#[test]
fn every_instruction_gives_what_qemu_gives() {
    let mut operations = BTreeSet::new();
    for line in include_str!("samples/instructions.txt").lines() {
        let numbers: Vec<u64> =
            line.split_whitespace().rev().take(5).map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        let [result, c, b, a, word] = numbers[..] else { panic!("{line}") };
        let inst = decode(word as u32);
        // The registers that the rows were made with.
        let value = |register: u8| match register {
            10 | 11 | 43 => a,
            12 | 44 => b,
            45 => c,
            _ => 0,
        };
        let [a, b, c] = inst.sources().map(value);
        let ours = match inst.class() {
            Class::Fp | Class::FpDiv | Class::FpMove | Class::FpConvert => {
                semantics::float(&inst, a, b, c, 0).unwrap_or_else(|mode| panic!("{line}: {mode:?}"))
            }
            _ => semantics::integer(&inst, 0, a, b),
        };
        assert_ne!(inst.rd, NOWHERE, "{line}");
        assert_eq!(ours, result, "{line}: ours is {ours:x}");
        operations.insert(inst.op);
    }
    assert_eq!(operations.len(), 100);
}
