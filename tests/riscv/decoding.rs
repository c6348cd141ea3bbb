//! Words that are instructions and words that are not.

use durawarp::riscv::decode::{decode, unsupported};
use durawarp::riscv::instruction::{Class, Inst, NOWHERE, Op, REGISTERS};
use proptest::prelude::*;

use crate::encoding::expansion;

#[test]
fn every_compressed_word_is_an_instruction_or_refused() {
    let (mut instructions, mut hash) = (0, 0xcbf2_9ce4_8422_2325u64);
    for half in (0..=u16::MAX).filter(|half| half & 3 != 3) {
        let inst = decode(u32::from(half) | 0xabcd_0000);
        assert_eq!(inst.length, 2, "{half:#06x}");
        assert_eq!(decode(u32::from(half)), inst, "{half:#06x}: what follows it does not count");
        instructions += u32::from(inst.op != Op::Illegal);
        let fields = format!("{half:04x} {} {} {:?} {}\n", inst.op.name(), inst.rd, inst.sources(), inst.imm);
        for byte in fields.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    // All 49,152 were compared with what binutils 2.40 disassembles when this was pinned.
    assert_eq!((instructions, hash), (46_743, 16_032_747_126_425_399_535));
}

#[test]
fn a_compressed_word_is_the_word_that_it_stands_for() {
    for half in (0..=u16::MAX).filter(|half| half & 3 != 3) {
        let short = decode(u32::from(half));
        match expansion(half) {
            Some(word) => assert_eq!(short, Inst { length: 2, ..decode(word) }, "{half:#06x}: {word:#010x}"),
            None => assert_eq!(short, Inst::illegal(u32::from(half), 2), "{half:#06x}"),
        }
    }
}

#[test]
fn any_first_half_of_a_word_is_decoded_with_any_second_one() {
    // All first halves; second halves of all functions, and of registers, immediates and modes at their ends.
    for half in (0..=u16::MAX).filter(|half| half & 3 == 3) {
        for high in (0..128).flat_map(|function| [0, 1, 0x1f, 0x155].map(|low| function << 9 | low)) {
            let word = u32::from(half) | high << 16;
            let inst = decode(word);
            assert_eq!(inst.length, 4, "{word:#010x}");
            assert!(inst.op != Op::Illegal || inst == Inst::illegal(word, 4), "{word:#010x}");
        }
    }
}

#[test]
fn words_that_are_not_executed_are_refused() {
    for (word, what) in [
        (0x0000_0000, "zeros"),
        (0xffff_ffff, "ones"),
        (0x0001_a00f & !0x1000 | 0x2000, "cbo.inval"),
        (0x0045_200f, "cbo.zero"),
        (0x3050_2573, "csrr a0, mtvec"),
        (0xc005_1573, "csrw cycle, a0"),
        (0xc020_6073, "csrsi instret, 0 is a read, of no register"),
        (0x1050_0073, "wfi"),
        (0x3020_0073, "mret"),
        (0x0000_7057, "vsetvli"),
        (0x0205_5533 | 0x7000_0000, "an undefined function"),
        (0x5425_8553 | 0x0600_0000, "quad precision"),
        (0x00c5_d553, "rounding mode 5"),
        (0x0000_008b, "pm.ofence with a destination"),
        (0x0030_300b, "pm.tx 3"),
    ] {
        let expected = if what.contains("is a read") { Op::Csrrsi } else { Op::Illegal };
        assert_eq!(decode(word).op, expected, "{word:#010x}: {what}");
    }
}

#[test]
fn what_is_not_executed_is_told_by_its_extension() {
    for (word, name) in [
        (0x0000_7057, Some("vectors: V")),
        (0x0205_0507, Some("vectors: V")),
        (0x0ac5_9533, Some("carry-less multiplication: Zbc")),
        (0x0045_200f, Some("cbo.zero: Zicboz")),
        (0x0005_200f, Some("cbo.inval, which would lose data")),
        (0x04c5_f553, Some("half precision: Zfh")),
        (0x2cb5_252f, Some("compare-and-swap: Zacas")),
        (0x3405_252f, Some("load-acquire or store-release: Zalasr")),
        (0x00c5_d553, Some("a reserved rounding mode")),
        (0xf010_0553, Some("more of floating point: Zfa")),
        (0x1050_0073, Some("wfi, which is privileged")),
        (0x3050_2573, Some("a privileged control register")),
        (0xc030_2573, Some("a counter of performance: Zihpm")),
        (0x0000_9c61, Some("loads, stores and operations of bytes: Zcb")),
        (0x0000_0000, Some("zeros, which are no instruction")),
        (0xffff_ffff, None),
    ] {
        assert_eq!(decode(word).op, Op::Illegal, "{word:#010x}");
        assert_eq!(unsupported(word), name, "{word:#010x}");
    }
}

#[test]
fn words_of_persistency_and_cache_lines_are_known() {
    for (word, op, rs1) in [
        (0x0000_000b, Op::PmOfence, 0),
        (0x0000_100b, Op::PmDfence, 0),
        (0x0000_200b, Op::PmRegion, 0),
        (0x0010_300b, Op::PmTx, 0),
        (0x0020_300b, Op::PmTx, 0),
        (0x0000_400b, Op::PmOp, 0),
        (0x0005_500b, Op::PmNt, 10),
        (0x0005_e00b, Op::RdmaPost, 11),
        (0x0015_200f, Op::CboClean, 10),
        (0x0025_200f, Op::CboFlush, 10),
        (0x0100_000f, Op::Pause, 0),
        (0x0ff0_000f, Op::Fence, 0),
        (0x8330_000f, Op::Fence, 0),
        (0x0000_100f, Op::FenceI, 0),
    ] {
        let inst = decode(word);
        assert_eq!((inst.op, inst.rs1, inst.rd), (op, rs1, NOWHERE), "{word:#010x}");
    }
    let poll = decode(0x0005_f50b);
    assert_eq!((poll.op, poll.rd, poll.rs1), (Op::RdmaPoll, 10, 11));
}

#[test]
fn atomics_say_how_they_order() {
    // amoadd.w, .aq, .rl, .aqrl
    let orders = [0x00b5_252f, 0x04b5_252f, 0x02b5_252f, 0x06b5_252f].map(|word| decode(word).rm);
    assert_eq!(orders, [0, 2, 1, 3]);
}

#[test]
fn every_operation_has_a_class_a_name_and_a_width_that_agree() {
    for &op in Op::ALL {
        let inst = crate::common::operation(op);
        let touches = matches!(
            op.class(),
            Class::Load | Class::Store | Class::Amo | Class::LoadReserved | Class::StoreConditional
        );
        assert_eq!(inst.width() != 0, touches, "{}", op.name());
        let suffix = op.name().rsplit('.').next().unwrap();
        if touches && op.name().contains('.') {
            assert_eq!(inst.width(), if suffix == "w" { 4 } else { 8 }, "{}", op.name());
        }
    }
    let names: std::collections::BTreeSet<&str> = Op::ALL.iter().map(|op| op.name()).collect();
    assert_eq!(names.len(), Op::ALL.len());
}

proptest! {
    #[test]
    fn any_word_names_registers_that_there_are(word: u32) {
        let inst = decode(word);
        prop_assert!(inst.sources().iter().all(|register| usize::from(*register) < REGISTERS));
        prop_assert!(inst.rd != 0 && inst.rd <= NOWHERE);
        let writes = !matches!(
            inst.class(),
            Class::Branch | Class::Store | Class::Fence | Class::CacheLine | Class::System | Class::Persist | Class::Hint
                | Class::Illegal
        );
        prop_assert!(writes || inst.rd == NOWHERE);
        prop_assert_eq!(inst.length == 4, word & 3 == 3);
    }
}
