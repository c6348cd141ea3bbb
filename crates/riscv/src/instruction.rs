//! One decoded instruction of RV64IMAFDC, of Zba, Zbb, Zbs and Zicond, and of the persistency words: what
//! every driver and every core executes.
//!
//! Source: The RISC-V Instruction Set Manual, volume I, 20191213; Zicbom 1.0.1; Zihintpause 2.0;
//! Bit-Manipulation 1.0.0; Zicond 1.0. Compressed words expand to the same form; only their length tells them
//! apart.
//!
//! Registers have one number space: x0 to x31 are 0 to 31, f0 to f31 are 32 to 63. Invariants: a source that
//! an instruction does not have is [`X0`], whose value is 0 and never pending; a destination that it does not
//! have (x0 among them) is [`NOWHERE`].

use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Storable, value};

/// Number of the register that is always 0.
pub const X0: u8 = 0;
/// Number of the return address register.
pub const RA: u8 = 1;
/// Number of the stack pointer.
pub const SP: u8 = 2;
/// Number of the thread pointer.
pub const TP: u8 = 4;
/// Number of the first argument register, which holds results, too.
pub const A0: u8 = 10;
/// Number of the register that holds the number of a system call.
pub const A7: u8 = 17;
/// Number of f0.
pub const F0: u8 = 32;
/// Registers that an instruction may name.
pub const REGISTERS: usize = 64;
/// Destination of an instruction that writes no register.
pub const NOWHERE: u8 = 64;

/// What programmers call a register, by the psABI.
pub fn register_name(register: u8) -> &'static str {
    const NAMES: [&str; REGISTERS] = [
        "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
        "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "ft0", "ft1", "ft2",
        "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs2",
        "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
    ];
    NAMES.get(usize::from(register)).copied().unwrap_or("none")
}

/// What kind of work an instruction is: which unit of a core executes it and what it may do besides writing a
/// register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Integer operation of one cycle.
    Alu,
    /// Integer multiplication.
    Mul,
    /// Integer division or remainder.
    Div,
    /// Conditional branch.
    Branch,
    /// Unconditional jump, with a link or without.
    Jump,
    /// Load to an integer or floating-point register.
    Load,
    /// Store from an integer or floating-point register.
    Store,
    /// Read-modify-write of memory.
    Amo,
    /// `lr`: a load that makes a reservation.
    LoadReserved,
    /// `sc`: a store that needs the reservation, and says whether it was made.
    StoreConditional,
    /// Floating-point addition, multiplication, both in one.
    Fp,
    /// Floating-point division or square root.
    FpDiv,
    /// Floating-point sign, minimum, comparison, classification, move.
    FpMove,
    /// Conversion between formats.
    FpConvert,
    /// `fence`.
    Fence,
    /// Operation on a cache line.
    CacheLine,
    /// Access of a control and status register.
    Csr,
    /// Call of the system or breakpoint.
    System,
    /// Word of persistency.
    Persist,
    /// Word of remote memory.
    Remote,
    /// No effect beyond time.
    Hint,
    /// Not an instruction that is executed.
    Illegal,
}

macro_rules! operations {
    ($($class:ident { $($op:ident $name:literal)+ })+) => {
        /// An operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Op {
            $($(#[doc = concat!("`", $name, "`.")] $op,)+)+
        }

        impl Op {
            /// Every operation, those of a class together.
            pub const ALL: &'static [Op] = &[$($(Op::$op),+),+];
            const CLASSES: &'static [Class] = &[$($({ let _ = Op::$op; Class::$class }),+),+];
            const NAMES: &'static [&'static str] = &[$($($name),+),+];

            /// What kind of work it is.
            #[inline]
            pub const fn class(self) -> Class {
                Op::CLASSES[self as usize]
            }

            /// Its mnemonic.
            pub const fn name(self) -> &'static str {
                Op::NAMES[self as usize]
            }
        }

        macro_rules! of_class {
            $(($class) => { $($crate::instruction::Op::$op)|+ };)+
        }
        pub(crate) use of_class;
    };
}

/// The pattern of every operation of these classes. A match with an arm for each operation of its own
/// classes, and this for all others, does not compile when one is missing.
macro_rules! of_classes {
    ($($class:ident)+) => { $($crate::instruction::of_class!($class))|+ };
}
pub(crate) use of_classes;

operations! {
    Alu {
        Lui "lui" Auipc "auipc" Addi "addi" Slti "slti" Sltiu "sltiu" Xori "xori" Ori "ori" Andi "andi" Slli "slli"
        Srli "srli" Srai "srai" Addiw "addiw" Slliw "slliw" Srliw "srliw" Sraiw "sraiw" Add "add" Sub "sub" Sll "sll"
        Slt "slt" Sltu "sltu" Xor "xor" Srl "srl" Sra "sra" Or "or" And "and" Addw "addw" Subw "subw" Sllw "sllw"
        Srlw "srlw" Sraw "sraw"
        AddUw "add.uw" Sh1add "sh1add" Sh2add "sh2add" Sh3add "sh3add" Sh1addUw "sh1add.uw" Sh2addUw "sh2add.uw"
        Sh3addUw "sh3add.uw" SlliUw "slli.uw"
        Andn "andn" Orn "orn" Xnor "xnor" Clz "clz" Clzw "clzw" Ctz "ctz" Ctzw "ctzw" Cpop "cpop" Cpopw "cpopw"
        Max "max" Maxu "maxu" Min "min" Minu "minu" SextB "sext.b" SextH "sext.h" ZextH "zext.h" Rol "rol" Rolw "rolw"
        Ror "ror" Rorw "rorw" Rori "rori" Roriw "roriw" OrcB "orc.b" Rev8 "rev8"
        Bclr "bclr" Bclri "bclri" Bext "bext" Bexti "bexti" Binv "binv" Binvi "binvi" Bset "bset" Bseti "bseti"
        CzeroEqz "czero.eqz" CzeroNez "czero.nez"
    }
    Mul { Mul "mul" Mulh "mulh" Mulhsu "mulhsu" Mulhu "mulhu" Mulw "mulw" }
    Div {
        Div "div" Divu "divu" Rem "rem" Remu "remu" Divw "divw" Divuw "divuw" Remw "remw" Remuw "remuw"
    }
    Branch { Beq "beq" Bne "bne" Blt "blt" Bge "bge" Bltu "bltu" Bgeu "bgeu" }
    Jump { Jal "jal" Jalr "jalr" }
    Load { Lb "lb" Lh "lh" Lw "lw" Ld "ld" Lbu "lbu" Lhu "lhu" Lwu "lwu" Flw "flw" Fld "fld" }
    Store { Sb "sb" Sh "sh" Sw "sw" Sd "sd" Fsw "fsw" Fsd "fsd" }
    LoadReserved { LrW "lr.w" LrD "lr.d" }
    StoreConditional { ScW "sc.w" ScD "sc.d" }
    Amo {
        AmoswapW "amoswap.w" AmoaddW "amoadd.w" AmoxorW "amoxor.w" AmoandW "amoand.w" AmoorW "amoor.w"
        AmominW "amomin.w" AmomaxW "amomax.w" AmominuW "amominu.w" AmomaxuW "amomaxu.w"
        AmoswapD "amoswap.d" AmoaddD "amoadd.d" AmoxorD "amoxor.d" AmoandD "amoand.d" AmoorD "amoor.d"
        AmominD "amomin.d" AmomaxD "amomax.d" AmominuD "amominu.d" AmomaxuD "amomaxu.d"
    }
    Fp {
        FaddS "fadd.s" FsubS "fsub.s" FmulS "fmul.s" FmaddS "fmadd.s" FmsubS "fmsub.s" FnmsubS "fnmsub.s"
        FnmaddS "fnmadd.s" FaddD "fadd.d" FsubD "fsub.d" FmulD "fmul.d" FmaddD "fmadd.d" FmsubD "fmsub.d"
        FnmsubD "fnmsub.d" FnmaddD "fnmadd.d"
    }
    FpDiv { FdivS "fdiv.s" FsqrtS "fsqrt.s" FdivD "fdiv.d" FsqrtD "fsqrt.d" }
    FpMove {
        FsgnjS "fsgnj.s" FsgnjnS "fsgnjn.s" FsgnjxS "fsgnjx.s" FminS "fmin.s" FmaxS "fmax.s" FeqS "feq.s" FltS "flt.s"
        FleS "fle.s" FclassS "fclass.s" FmvXW "fmv.x.w" FmvWX "fmv.w.x"
        FsgnjD "fsgnj.d" FsgnjnD "fsgnjn.d" FsgnjxD "fsgnjx.d" FminD "fmin.d" FmaxD "fmax.d" FeqD "feq.d" FltD "flt.d"
        FleD "fle.d" FclassD "fclass.d" FmvXD "fmv.x.d" FmvDX "fmv.d.x"
    }
    FpConvert {
        FcvtWS "fcvt.w.s" FcvtWuS "fcvt.wu.s" FcvtLS "fcvt.l.s" FcvtLuS "fcvt.lu.s"
        FcvtSW "fcvt.s.w" FcvtSWu "fcvt.s.wu" FcvtSL "fcvt.s.l" FcvtSLu "fcvt.s.lu"
        FcvtWD "fcvt.w.d" FcvtWuD "fcvt.wu.d" FcvtLD "fcvt.l.d" FcvtLuD "fcvt.lu.d"
        FcvtDW "fcvt.d.w" FcvtDWu "fcvt.d.wu" FcvtDL "fcvt.d.l" FcvtDLu "fcvt.d.lu"
        FcvtSD "fcvt.s.d" FcvtDS "fcvt.d.s"
    }
    Fence { Fence "fence" }
    CacheLine { CboClean "cbo.clean" CboFlush "cbo.flush" }
    Csr { Csrrw "csrrw" Csrrs "csrrs" Csrrc "csrrc" Csrrwi "csrrwi" Csrrsi "csrrsi" Csrrci "csrrci" }
    System { Ecall "ecall" Ebreak "ebreak" }
    Persist {
        PmOfence "pm.ofence" PmDfence "pm.dfence" PmRegion "pm.region" PmTx "pm.tx" PmOp "pm.op" PmNt "pm.nt"
    }
    Remote { RdmaPost "rdma.post" RdmaPoll "rdma.poll" }
    Hint { Pause "pause" FenceI "fence.i" }
    Illegal { Illegal "illegal instruction" }
}

/// A decoded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// The register that it writes, or [`NOWHERE`].
    pub rd: u8,
    /// First source: the address of a memory operation.
    pub rs1: u8,
    /// Second source: the value that a store or atomic writes.
    pub rs2: u8,
    /// Third source, of fused multiply-adds.
    pub rs3: u8,
    /// Rounding mode of a floating-point operation: 0 to 4, or 7 for that in `fcsr`. Of atomics 1 for release
    /// plus 2 for acquire.
    pub rm: u8,
    /// Bytes in memory, 2 or 4.
    pub length: u8,
    /// Immediate, sign-extended; of branches and jumps relative to the instruction. Of `fence` the bits of
    /// its word from 20 on; of CSR instructions the register's number, plus the immediate in bits 12 to 16;
    /// of [`Op::Illegal`] the word.
    pub imm: i32,
}

impl Storable for Op {
    fn save(&self, out: &mut StateWriter) {
        out.bytes(&[*self as u8]);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let number = from.bytes(1)?[0];
        let found = Op::ALL.get(usize::from(number)).copied();
        found.ok_or_else(|| LoadFault::new(format!("{number} names no operation")))
    }
}

value!(record Inst { op, rd, rs1, rs2, rs3, rm, length, imm });

const _: () = assert!(size_of::<Inst>() <= 16);

impl Inst {
    /// The operation on no registers, of four bytes.
    pub const fn new(op: Op) -> Inst {
        Inst { op, rd: NOWHERE, rs1: X0, rs2: X0, rs3: X0, rm: 0, length: 4, imm: 0 }
    }

    /// A word that is no instruction that is executed.
    pub const fn illegal(word: u32, length: u8) -> Inst {
        Inst { length, imm: word as i32, ..Inst::new(Op::Illegal) }
    }

    /// What kind of work it is.
    #[inline]
    pub const fn class(&self) -> Class {
        self.op.class()
    }

    /// The registers that it reads. One that it does not have is [`X0`].
    #[inline]
    pub const fn sources(&self) -> [u8; 3] {
        [self.rs1, self.rs2, self.rs3]
    }

    /// The register that it writes.
    #[inline]
    pub const fn destination(&self) -> Option<u8> {
        if self.rd == NOWHERE { None } else { Some(self.rd) }
    }

    /// What a `fence` orders: the accesses before it, and those after it that wait for them, each as bits: 1
    /// writes, 2 reads, 4 output, 8 input. `fence.tso` does not have writes before it order reads after it.
    ///
    /// ```
    /// use durawarp_riscv::decode::decode;
    /// assert_eq!(decode(0x0310_000f).ordered(), (0b0011, 0b0001)); // fence rw, w
    /// ```
    #[inline]
    pub const fn ordered(&self) -> (u8, u8) {
        ((self.imm >> 4 & 15) as u8, (self.imm & 15) as u8)
    }

    /// Bytes that it reads or writes in memory; 0 when it does not. Cache-line operations name a line and
    /// have 0.
    #[inline]
    pub const fn width(&self) -> u8 {
        use Op::*;
        match self.op {
            Lb | Lbu | Sb => 1,
            Lh | Lhu | Sh => 2,
            Lw | Lwu | Sw | Flw | Fsw => 4,
            Ld | Sd | Fld | Fsd => 8,
            op => match op.class() {
                Class::LoadReserved | Class::StoreConditional | Class::Amo => {
                    if matches!(op, LrD | ScD) || (op as u8) >= (AmoswapD as u8) && (op as u8) <= (AmomaxuD as u8) {
                        8
                    } else {
                        4
                    }
                }
                _ => 0,
            },
        }
    }
}
