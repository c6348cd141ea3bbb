//! What SASS opcodes are to the machine: one row an opcode, of all architectures from Kepler to Blackwell.
//!
//! Source: NVIDIA, "CUDA Binary Utilities", instruction set reference; what is a load, a store, an atomic, a
//! barrier is as Accel-Sim's trace parser has it (`ISA_Def/*_opcode.h`). Which of this simulator's timing
//! classes an arithmetic opcode has was chosen by us: the class of the PTX instruction that compiles to it. A
//! trace that has an opcode of no row is refused.
//!
//! Not modelled: the uniform datapath (its instructions have the class of their vector counterparts), texture
//! and surface units; before version 6 of a trace the copy engine (`UBLK*`, `UTMA*`), barriers in shared
//! memory (`SYNCS`), clusters and tensor memory, for which later ones have rows of their own ([`AsyncStep`]).
//! What is [`Unserved`] is counted and told.

use super::asynchronous::AsyncStep;
use super::group_products::GroupShape;
use super::products::MatrixProduct;
use durawarp_kernel::ir::{Class, Space};

/// What an opcode does, as far as a machine must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Registers to registers.
    Compute(Class),
    /// On tensor cores.
    Product(MatrixProduct),
    /// On tensor cores, of four warps; its opcode names the shape.
    GroupProduct(Option<GroupShape>),
    /// Orders registers around such products, or waits for them (`WARPGROUP`).
    GroupStep,
    /// Of a unit that the machine lacks: issued as this opcode, and nothing of memory is accessed.
    Unserved(&'static str),
    /// Memory to registers.
    Load(Space),
    /// Registers to memory.
    Store(Space),
    /// Read-modify-write, at the L2 or in shared memory.
    Atomic(Space),
    /// Read-modify-write without a result.
    Reduction,
    /// Beside the warp, as traces from version 6 on have it.
    Beside(AsyncStep),
    /// Global to shared memory, past the registers (`LDGSTS`).
    AsyncCopy,
    /// The copies so far are a group (`LDGDEPBAR`).
    AsyncGroup,
    /// Waits for groups of copies (`DEPBAR`).
    AsyncWait,
    /// A memory fence.
    Fence,
    /// A barrier of the CTA.
    Barrier,
    /// A branch, a call, a reconvergence: where it leads is in the trace.
    Branch,
    /// Lanes end.
    Exit,
}

use Class::{Compare, Const, Control, Convert, Fp32, Fp64, Int, IntMul, Logic, MinMax, Sfu, Shuffle, Vote};
use Operation::{
    AsyncCopy, AsyncGroup, AsyncWait, Atomic, Barrier, Branch, Compute, Exit, Fence, Load, Reduction, Store, Unserved,
};

const TEXTURE: Operation = Unserved("MOV");
const COPY_ENGINE: Operation = Unserved("NOP");
const BARRIER_IN_SHARED_MEMORY: Operation = Unserved("NOP");
const CLUSTER: Operation = Unserved("NOP");
const GROUP_OF_WARPS: Operation = Unserved("NOP");
const TENSOR_MEMORY: Operation = Unserved("NOP");

/// Of which shape a product is, its modifiers say.
const TENSOR: Operation = Operation::Product(MatrixProduct::UNKNOWN);

/// Rows of opcodes that do the same.
const ROWS: &[(Operation, &[&str])] = &[
    (
        Compute(Fp32),
        &["FADD", "FADD32I", "FCHK", "FFMA", "FFMA32I", "FMUL", "FMUL32I", "FSWZADD", "FSWZ", "RRO", "HADD2"],
    ),
    (Compute(Fp32), &["HADD2_32I", "HFMA2", "HFMA2_32I", "HMUL2", "HMUL2_32I"]),
    (
        Compute(Fp32),
        &["FADD2", "FFMA2", "FHADD", "FHADD2", "FHFMA", "FHFMA2", "FHMUL2", "FMUL2", "UFADD", "UFFMA", "UFMUL"],
    ),
    (Compute(MinMax), &["FMNMX", "HMNMX2", "IMNMX", "VMNMX", "UIMNMX", "VIMNMX", "VIADDMNMX"]),
    (Compute(MinMax), &["FMNMX3", "UFMNMX", "UVIMNMX", "VHMNMX", "VIMNMX3"]),
    (Compute(Compare), &["FSET", "FSETP", "FCMP", "HSET2", "HSETP2", "ISET", "ISETP", "ICMP", "UISETP"]),
    (Compute(Compare), &["UFSET", "UFSETP", "VISET"]),
    (Compute(Logic), &["FSEL", "SEL", "USEL", "MOV", "MOV32I", "UMOV", "PRMT", "UPRMT", "SGXT", "USGXT", "MOVM"]),
    (
        Compute(Logic),
        &["LOP", "LOP3", "LOP32I", "ULOP", "ULOP3", "ULOP32I", "SHF", "SHL", "SHR", "USHF", "USHL", "USHR"],
    ),
    (Compute(Logic), &["BMSK", "UBMSK", "BREV", "UBREV", "BFE", "BFI", "FLO", "UFLO", "POPC", "UPOPC"]),
    (Compute(Logic), &["PLOP3", "UPLOP3", "PSET", "PSETP", "UPSETP", "CSET", "CSETP", "P2R", "R2P", "UP2UR", "UR2UP"]),
    (Compute(Logic), &["R2UR", "S2R", "S2UR", "CS2R", "B2R", "R2B", "CSMTEST", "LEPC", "NOP", "PMTRIG", "QSPC"]),
    (Compute(Logic), &["GETLMEMBASE", "SETCTAID", "SETLMEMBASE", "CCTL", "CCTLL", "CCTLT", "ERRBAR", "UCLEA"]),
    (Compute(Int), &["IADD", "IADD3", "IADD32I", "UIADD3", "ISUB", "ISAD", "IABS", "VADD", "VABSDIFF", "VABSDIFF4"]),
    (Compute(Logic), &["CS2UR", "MOV64IUR", "UFSEL", "ULEPC"]),
    (Compute(Int), &["VIADD", "UVIADD", "UIABS"]),
    (Compute(Int), &["ISCADD", "ISCADD32I", "LEA", "ULEA"]),
    (Compute(IntMul), &["IMAD", "UIMAD", "IMADSP", "IMUL", "IMUL32I", "XMAD", "IDP", "IDP4A"]),
    (Compute(Convert), &["F2F", "F2FP", "UF2FP", "F2I", "I2F", "I2I", "I2IP", "I2FP", "F2IP", "FRND"]),
    (Compute(Convert), &["UF2F", "UF2I", "UF2IP", "UFRND", "UI2F", "UI2FP", "UI2I", "UI2IP"]),
    (Compute(Fp64), &["DADD", "DFMA", "DMUL", "DMNMX", "DSET", "DSETP"]),
    (Compute(Sfu), &["MUFU"]),
    (Compute(Shuffle), &["SHFL", "MATCH", "REDUX", "CREDUX"]),
    (Compute(Vote), &["VOTE", "VOTEU", "VOTE_VTG", "ELECT"]),
    (Compute(Const), &["LDC", "ULDC", "LDCU"]),
    (Compute(Control), &["NANOSLEEP", "YIELD", "KILL"]),
    // Ends of collectives and errors of clusters; kernels that depend on others do not overlap them here.
    (Compute(Control), &["CGAERRBAR", "ENDCOLLECTIVE", "UVIRTCOUNT", "ACQBULK", "ACQSHMINIT", "PREEXIT"]),
    (TENSOR, &["HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"]),
    (TEXTURE, &["TEX", "TEXS", "TLD", "TLDS", "TLD4", "TLD4S", "TMML", "TXD", "TXQ"]),
    (TEXTURE, &["SUATOM", "SULD", "SUQUERY", "SURED", "SUST", "SUCLAMP", "SUBFM", "SUEAU", "SULDGA", "SUSTGA"]),
    (COPY_ENGINE, &["UTMALDG", "UTMASTG", "UTMAPF", "UTMAREDG", "UTMACCTL", "UTMACMDFLUSH", "UTMAL2CCTL"]),
    (COPY_ENGINE, &["UBLKCP", "UBLKPF", "UBLKRED", "UBLKL2CCTL"]),
    // What waits for one is in the trace as often as it asked. `ARRIVES` is in no list of NVIDIA's.
    (BARRIER_IN_SHARED_MEMORY, &["SYNCS", "SYNCSU", "USYNCS", "UTCBAR", "FENCE", "UMEMSETS", "ARRIVES"]),
    (CLUSTER, &["UCGABAR_ARV", "UCGABAR_WAIT", "STAS", "REDAS", "LDGMC", "UGETNEXTWORKID", "UREDGR", "USTGR"]),
    (Operation::GroupProduct(None), &["BGMMA", "HGMMA", "IGMMA", "QGMMA"]),
    (Operation::GroupStep, &["WARPGROUP"]),
    (GROUP_OF_WARPS, &["WARPGROUPSET", "USETMAXREG"]),
    (TENSOR_MEMORY, &["LDT", "LDTM", "STT", "STTM", "UTCATOMSWS", "UTCCP", "UTCSHIFT", "DECOMPRESS", "SPARSIFY"]),
    (TENSOR_MEMORY, &["UTCHMMA", "UTCIMMA", "UTCOMMA", "UTCQMMA"]),
    (Load(Space::Generic), &["LD"]),
    (Load(Space::Global), &["LDG"]),
    (Load(Space::Local), &["LDL"]),
    (Load(Space::Shared), &["LDS", "LDSM", "LDSLK"]),
    (Store(Space::Generic), &["ST"]),
    (Store(Space::Global), &["STG"]),
    (Store(Space::Local), &["STL"]),
    (Store(Space::Shared), &["STS", "STSCUL", "STSM"]),
    (Atomic(Space::Generic), &["ATOM"]),
    (Atomic(Space::Global), &["ATOMG"]),
    (Atomic(Space::Shared), &["ATOMS", "REDS"]),
    (Reduction, &["RED", "REDG"]),
    (AsyncCopy, &["LDGSTS"]),
    (AsyncGroup, &["LDGDEPBAR"]),
    (AsyncWait, &["DEPBAR"]),
    (Fence, &["MEMBAR"]),
    (Barrier, &["BAR"]),
    (Branch, &["BMOV", "BPT", "BRA", "BREAK", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "CAL", "JCAL", "JMP", "JMX"]),
    (
        Branch,
        &["JMXU", "RET", "RPCMOV", "RTT", "WARPSYNC", "SSY", "SYNC", "PRET", "BRK", "PBK", "CONT", "PCNT", "PEXIT"],
    ),
    (Exit, &["EXIT"]),
];

/// What an opcode does, by its name before the first dot.
pub(crate) fn operation_of(name: &str) -> Option<Operation> {
    ROWS.iter().find(|(_, names)| names.contains(&name)).map(|(operation, _)| *operation)
}

/// Every opcode that is known.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Bytes that a lane accesses, as its modifiers say; none where they do not.
pub(crate) fn width_of(opcode: &str) -> Option<u32> {
    // A row of an 8x8 matrix of 16-bit elements a lane.
    if opcode.starts_with("LDSM") || opcode.starts_with("STSM") {
        return Some(16);
    }
    let bits = |token: &str| {
        let digits = token.trim_start_matches(['U', 'S', 'F', 'B']);
        // Two halves in a word.
        let digits = digits.strip_suffix("x2").or_else(|| digits.strip_suffix("X2")).map_or(digits, |_| "32");
        match digits.parse() {
            Ok(bits @ (8 | 16 | 32 | 64 | 128)) if token.len() <= 6 => Some(bits),
            _ => None,
        }
    };
    opcode.split('.').skip(1).find_map(bits).map(|bits: u32| bits / 8)
}

/// Registers that an instruction writes from the named one on.
pub(crate) fn registers_written(opcode: &str, operation: Operation, bytes: u32) -> u8 {
    let has = |token: &str| opcode.split('.').any(|own| own == token);
    match operation {
        Operation::Load(_) if opcode.starts_with("LDSM") => match (has("4"), has("2")) {
            (true, _) => 4,
            (_, true) => 2,
            _ => 1,
        },
        Operation::Load(_) | Operation::Atomic(_) => bytes.div_ceil(4) as u8,
        Operation::Compute(Class::Fp64) => 2,
        Operation::Compute(Class::Convert) if opcode.split('.').nth(1) == Some("F64") => 2,
        Operation::Compute(Class::IntMul) if has("WIDE") => 2,
        Operation::Product(product) => product.sums,
        // Waited for by `WARPGROUP.DEPBAR`, not by the scoreboard.
        Operation::GroupProduct(_) => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opcode_has_one_row() {
        let mut all: Vec<&str> = names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(operation_of("LDG"), Some(Operation::Load(Space::Global)));
        assert_eq!(operation_of("FFMA"), Some(Operation::Compute(Class::Fp32)));
        assert_eq!(operation_of("FMA"), None);
    }

    #[test]
    fn the_width_is_that_of_the_modifiers() {
        for (opcode, bytes) in [
            ("LDG.E.64.SYS", Some(8)),
            ("LDG.E.U8", Some(1)),
            ("LDG.E.S16.CONSTANT", Some(2)),
            ("LDGSTS.E.BYPASS.LTC128B.128", Some(16)),
            ("RED.E.ADD.F32.FTZ.RN", Some(4)),
            ("ATOMG.E.ADD.F16x2.RN", Some(4)),
            ("LDSM.16.M88.4", Some(16)),
            ("STSM.16.M88.4", Some(16)),
            ("LDG.E.SYS", None),
        ] {
            assert_eq!(width_of(opcode), bytes, "{opcode}");
        }
    }

    #[test]
    fn results_of_more_than_a_word_are_several_registers() {
        let of = |opcode: &str, bytes| {
            registers_written(opcode, operation_of(opcode.split('.').next().unwrap()).unwrap(), bytes)
        };
        assert_eq!((of("LDG.E.128", 16), of("LDS.U.64", 8), of("LDG.E.U8", 1)), (4, 2, 1));
        assert_eq!((of("DFMA", 0), of("IMAD.WIDE.U32", 0), of("IMAD", 0), of("I2F.F64.S32", 0)), (2, 2, 1, 2));
        assert_eq!(of("LDSM.16.M88.2", 16), 2);
    }
}
