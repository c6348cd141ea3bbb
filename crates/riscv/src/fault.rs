//! What a simulated CPU program did wrong, told so that its author can find the place.

use std::fmt;

use super::decode::unsupported;
use super::verbs::VerbFault;
use durawarp_checkpoint::value;

/// A fault of a program: which hart, where, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuFault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Number of the hart.
    pub hart: u32,
    /// Address of the instruction.
    pub pc: u64,
    /// The function that it lies in and the bytes from its start, if the file has symbols.
    pub symbol: Option<(String, u64)>,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A word that is not executed: no instruction, or one of an extension that is not supported.
    Unsupported {
        /// The word, in its low 16 bits when it is compressed.
        word: u32,
        bytes: u8,
    },
    /// A jump to where no code is.
    NoCode,
    /// An access outside the memory of the process.
    Unmapped {
        /// First address.
        address: u64,
        bytes: u64,
        /// It was to be written.
        write: bool,
    },
    /// A store to code.
    CodeWrite {
        /// First address.
        address: u64,
    },
    /// An atomic whose address is not a multiple of its size.
    MisalignedAtomic { address: u64, bytes: u8 },
    /// Floating-point arithmetic in a rounding mode that is reserved.
    Rounding {
        /// The mode, as encoded.
        mode: u8,
    },
    /// `ebreak`: a trap that the program contains.
    Breakpoint,
    /// The program sent itself a signal that ends it, as `abort` does.
    Signal(
        /// Its number.
        u32,
    ),
    /// A thread was started, every hart has one, and threads do not share harts.
    NoFreeHart {
        /// Harts that there are.
        harts: u32,
    },
    /// A verb to another server that cannot be posted.
    Verb(
        /// Why.
        VerbFault,
    ),
}

value!(choice FaultKind {
    Unsupported { word, bytes }, NoCode, Unmapped { address, bytes, write }, CodeWrite { address },
    MisalignedAtomic { address, bytes }, Rounding { mode }, Breakpoint, Signal(number), NoFreeHart { harts },
    Verb(why),
});

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FaultKind::Unsupported { word, bytes } => {
                let digits = 2 + 2 * usize::from(bytes);
                write!(f, "unsupported instruction {word:#0digits$x}")?;
                unsupported(word).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            FaultKind::NoCode => write!(f, "a jump to an address without code"),
            FaultKind::Unmapped { address, bytes, write } => {
                let access = if write { "store" } else { "load" };
                write!(f, "a {access} of {bytes} bytes at {address:#x}, outside the memory of the process")?;
                if address < super::memory::MAIN_START { write!(f, " (a null pointer?)") } else { Ok(()) }
            }
            FaultKind::CodeWrite { address } => write!(f, "a store to code at {address:#x}"),
            FaultKind::MisalignedAtomic { address, bytes } => {
                write!(f, "an atomic of {bytes} bytes at {address:#x}, which is not a multiple of {bytes}")
            }
            FaultKind::Rounding { mode } => {
                write!(f, "floating-point arithmetic in rounding mode {mode}, which is reserved (0 to 4 are modes)")
            }
            FaultKind::Breakpoint => write!(f, "a breakpoint"),
            FaultKind::Signal(6) => write!(f, "signal 6 (abort)"),
            FaultKind::Signal(number) => write!(f, "signal {number}"),
            FaultKind::Verb(fault) => write!(f, "{fault}"),
            FaultKind::NoFreeHart { harts } => {
                write!(
                    f,
                    "a thread was started, but each of the {harts} harts has one, and threads do not share harts here: \
                     set core.count"
                )
            }
        }
    }
}

impl fmt::Display for CpuFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", self.kind, self.pc)?;
        match &self.symbol {
            Some((name, 0)) => write!(f, " ({name})")?,
            Some((name, offset)) => write!(f, " ({name}+{offset:#x})")?,
            None => {}
        }
        write!(f, ", hart {}", self.hart)
    }
}

impl std::error::Error for CpuFault {}
