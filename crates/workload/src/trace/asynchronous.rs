//! Instructions of Hopper and Blackwell that go on beside their warp, or wait for what does: the copy engine,
//! barriers in shared memory, clusters. What a trace of version 6 has of them, and what the machine makes of
//! it.
//!
//! ```text
//!   UTMALDG UBLKCP.S.G     a bulk load, which completes at a barrier      UTMAPF UBLKPF     a prefetch
//!   UTMASTG UBLKCP.G.S     a bulk store, in a group                       UTMAREDG UBLKRED  a reduction, in a group
//!   UTMACMDFLUSH, DEPBAR   ends a group; waits for groups
//!   SYNCS.EXCH.64          begins a barrier of n arrivals       .PHASECHK.TRANS64.TRYWAIT  waits for a phase
//!        .ARRIVE.TRANS64          one arrival, with bytes to come      .ARRIVE...A0TR      bytes to come
//!               ...A1T0, ART0     one arrival, many                           ...A0TX      bytes that came
//!   ARRIVES.LDGSTSBAR.64.ARVCNT   an arrival behind copies past the registers; of .TRANSCNT, A0T1 awaits it
//!   UCGABAR_ARV, UCGABAR_WAIT     the barrier of the cluster
//!   UTCBAR                 an arrival behind products in tensor memory (`super::tensor_memory` has these)
//!   STAS, REDAS            registers to shared memory of a CTA, which complete at a barrier there
//! ```
//! Source: Accel-Sim 2.0, `trace_driven.cc`; what `ptxas` 12.9 makes of the PTX instructions. Its encodings:
//! a barrier of n arrivals is initialised to a word whose lower half is (0x10_0000 - n) << 1; the parity that
//! a wait names is in bit 31, and so is the phase of a state. An address of shared memory has the rank of the
//! CTA in its cluster from bit 24 on.
//!
//! Not modelled: what a trace does not say of itself. A kernel of whose barriers not all is known
//! ([`is_unknown`]) has none that order anything, which is told.

use durawarp_kernel::cluster::map_address;
use durawarp_kernel::ir::{
    AddressIn, AtomOp, Bulk, BulkBytes, BulkKind, BulkStep, CONST, CacheOp, Class, ClusterStep, Elem, Mem, MemKind,
    NONE, Op, PhaseOp, Slot, Space, StoreHint, TileMode,
};

use super::tensor_memory::TensorUse;
use super::words::RegisterValues;

/// A barrier expects fewer arrivals than this.
const MOST_ARRIVALS: u32 = 1 << 20;

/// Where the rank of a CTA begins in an address of shared memory.
const RANK: u32 = 24;

/// Operations of `REDAS`.
const REDUCTIONS: [&str; 8] = [".ADD", ".INC", ".DEC", ".MIN", ".MAX", ".AND", ".OR", ".XOR"];

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsyncStep {
    /// The copy engine moves something; a load completes at a barrier.
    Copy(BulkKind),
    /// The stores of the copy engine so far are a group.
    CommitCopies,
    /// At a barrier in shared memory.
    Barrier(BarrierUse),
    /// At the barrier of the cluster.
    Cluster(ClusterStep),
    /// Registers go to shared memory of a CTA of the cluster, and complete at a barrier there.
    Send(SendKind),
    /// In tensor memory.
    Tensor(TensorUse),
}

/// What registers do to the elements where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendKind {
    Store,
    Reduce,
}

/// What an instruction does at a barrier in shared memory. Its number is in a register, but where
/// [`BarrierUse::has_number`] says that it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierUse {
    Begin,
    ArriveOnce,
    ArriveMany,
    ArriveExpecting,
    Expect,
    Complete,
    /// One arrival more is awaited.
    AwaitOne,
    /// An arrival when the copies past the registers that came before are there.
    ArriveBehindCopies,
    /// An arrival when the products in tensor memory that came before are done.
    ArriveBehindProducts,
    Wait,
}

/// A step at a barrier, with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BarrierStep {
    Begin(u32),
    Arrive(u32),
    ArriveExpecting(u32),
    Expect(u32),
    Complete(u32),
    AwaitOne,
    ArriveBehindCopies,
    ArriveBehindProducts,
    /// For the end of the phase of this parity.
    Wait(bool),
}

impl AsyncStep {
    /// What an opcode does, with its modifiers; none where it does nothing of this kind.
    pub(crate) fn of(opcode: &str) -> Option<AsyncStep> {
        use AsyncStep::{Barrier, Cluster, Copy};
        let name = opcode.split('.').next().unwrap_or_default();
        let has = |tokens: &str| opcode[name.len()..].starts_with(tokens);
        Some(match name {
            "UTMALDG" => Copy(BulkKind::Load),
            "UTMASTG" => Copy(BulkKind::Store),
            "UTMAREDG" => Copy(BulkKind::Reduce),
            "UTMAPF" | "UBLKPF" => Copy(BulkKind::Prefetch),
            // To shared memory: from global memory, or from shared memory, of which the trace has no address.
            "UBLKCP" if has(".S.") => Copy(BulkKind::Load),
            "UBLKCP" if has(".G.S") => Copy(BulkKind::Store),
            "UBLKRED" if has(".G.S") => Copy(BulkKind::Reduce),
            "UTMACMDFLUSH" => AsyncStep::CommitCopies,
            "SYNCS" => Barrier(BarrierUse::of(&opcode[name.len()..])?),
            "ARRIVES" if has(".LDGSTSBAR.64.ARVCNT") || has(".LDGSTSBAR.64.TRANSCNT") => {
                Barrier(BarrierUse::ArriveBehindCopies)
            }
            "STAS" if ["", ".64", ".128"].contains(&&opcode[name.len()..]) => AsyncStep::Send(SendKind::Store),
            "REDAS" if REDUCTIONS.iter().any(|operation| has(operation)) => AsyncStep::Send(SendKind::Reduce),
            "UTCBAR" if ["", ".2CTA"].contains(&&opcode[name.len()..]) => Barrier(BarrierUse::ArriveBehindProducts),
            "UCGABAR_ARV" => Cluster(ClusterStep::Arrive),
            "UCGABAR_WAIT" => Cluster(ClusterStep::Wait),
            _ => AsyncStep::Tensor(TensorUse::of(opcode)?),
        })
    }
}

/// An opcode changes barriers in a way that is not known here, so that those who wait would wait for ever.
pub(crate) fn is_unknown(opcode: &str) -> bool {
    let mut tokens = opcode.split('.');
    match tokens.next().unwrap_or_default() {
        // A test asks and goes on; what is invalidated is at its end.
        "SYNCS" => match tokens.next() {
            Some("PHASECHK" | "CCTL") => false,
            _ => AsyncStep::of(opcode).is_none(),
        },
        // The bytes of the first two complete at a barrier, of which is not known which.
        "STAS" | "REDAS" | "ARRIVES" | "UTCBAR" | "SYNCSU" | "USYNCS" => true,
        _ => false,
    }
}

impl BarrierUse {
    /// What the modifiers of `SYNCS` say.
    fn of(modifiers: &str) -> Option<BarrierUse> {
        let has = |token: &str| modifiers.split('.').any(|own| own == token);
        match modifiers {
            ".EXCH.64" => return Some(BarrierUse::Begin),
            ".PHASECHK.TRANS64.TRYWAIT" => return Some(BarrierUse::Wait),
            _ if !modifiers.starts_with(".ARRIVE.TRANS64") => return None,
            _ => {}
        }
        let counts = ["A1T0", "ART0", "A0TR", "A0TX", "A0T1"];
        match counts.into_iter().find(|token| has(token)) {
            Some("A1T0") => Some(BarrierUse::ArriveOnce),
            Some("ART0") => Some(BarrierUse::ArriveMany),
            Some("A0TR") => Some(BarrierUse::Expect),
            // It is followed by an arrival behind copies, which counts a transaction as hardware has it.
            Some("A0T1") => Some(BarrierUse::AwaitOne),
            Some("A0TX") => Some(BarrierUse::Complete),
            _ if [".ARRIVE.TRANS64", ".ARRIVE.TRANS64.RED"].contains(&modifiers) => Some(BarrierUse::ArriveExpecting),
            _ => None,
        }
    }

    /// It has a number of a register.
    fn has_number(self) -> bool {
        use BarrierUse::{ArriveBehindCopies, ArriveBehindProducts, ArriveOnce, AwaitOne};
        !matches!(self, ArriveOnce | AwaitOne | ArriveBehindCopies | ArriveBehindProducts)
    }

    /// The step with a register's value. None where no such barrier can be.
    fn with(self, value: u64) -> Option<BarrierStep> {
        let low = value as u32;
        Some(match self {
            BarrierUse::Begin => {
                let count = MOST_ARRIVALS.wrapping_sub(low >> 1);
                BarrierStep::Begin(Some(count).filter(|count| (1..MOST_ARRIVALS).contains(count))?)
            }
            BarrierUse::ArriveOnce => BarrierStep::Arrive(1),
            BarrierUse::ArriveMany => BarrierStep::Arrive(low),
            BarrierUse::ArriveExpecting => BarrierStep::ArriveExpecting(low),
            BarrierUse::Expect => BarrierStep::Expect(low),
            BarrierUse::AwaitOne => BarrierStep::AwaitOne,
            BarrierUse::ArriveBehindCopies => BarrierStep::ArriveBehindCopies,
            BarrierUse::ArriveBehindProducts => BarrierStep::ArriveBehindProducts,
            BarrierUse::Complete => BarrierStep::Complete(low),
            BarrierUse::Wait => BarrierStep::Wait(low >> 31 == 1),
        })
    }

    /// The steps of an instruction: lanes of `mask` that do the same, and what. None where the trace has no
    /// values of registers, or one that cannot be. The number is that of the second source.
    pub(crate) fn steps(
        self,
        mask: u32,
        values: RegisterValues<'_>,
        results: usize,
    ) -> Option<Vec<(u32, BarrierStep)>> {
        let numbers = if self.has_number() { values.of(results + 1)? } else { [0; 32] };
        // A uniform instruction is one, whatever its lanes.
        let of_warp = self == BarrierUse::ArriveBehindProducts;
        let (mut left, mut steps) = (if of_warp { mask & mask.wrapping_neg() } else { mask }, Vec::new());
        while left != 0 {
            let number = numbers[left.trailing_zeros() as usize];
            let alike = (0..32).filter(|&lane| left >> lane & 1 == 1 && numbers[lane as usize] == number);
            let lanes = alike.fold(0, |lanes, lane| lanes | 1 << lane);
            steps.push((lanes, self.with(number)?));
            left &= !lanes;
        }
        Some(steps)
    }
}

impl BarrierStep {
    /// Bytes that are awaited from this step on.
    pub(crate) fn expects(self) -> u64 {
        match self {
            BarrierStep::ArriveExpecting(bytes) | BarrierStep::Expect(bytes) => bytes.into(),
            _ => 0,
        }
    }

    /// Bytes that this step completes.
    pub(crate) fn completes(self) -> u64 {
        match self {
            BarrierStep::Complete(bytes) => bytes.into(),
            _ => 0,
        }
    }

    /// The instruction, with its number as a constant of the kernel.
    pub(crate) fn instruction(self, constants: &mut Vec<u64>) -> (Op, Class, [Slot; 4]) {
        let (op, number) = match self {
            BarrierStep::Wait(parity) => return (Op::AwaitPhase(parity), Class::Control, [NONE; 4]),
            BarrierStep::Begin(count) => (PhaseOp::Begin, count),
            BarrierStep::Arrive(count) => (PhaseOp::Arrive, count),
            BarrierStep::ArriveExpecting(bytes) => (PhaseOp::ArriveExpecting, bytes),
            BarrierStep::Expect(bytes) => (PhaseOp::Expect, bytes),
            BarrierStep::Complete(bytes) => (PhaseOp::Complete, bytes),
            BarrierStep::AwaitOne => (PhaseOp::Await, 1),
            BarrierStep::ArriveBehindCopies => (PhaseOp::ArriveBehindCopies, 1),
            BarrierStep::ArriveBehindProducts => (PhaseOp::ArriveBehindProducts, 1),
        };
        let at = CONST | place_of(constants, number.into());
        let mem = Mem {
            kind: MemKind::Reduction,
            space: Space::Shared,
            elem: Elem::U64,
            vec: 1,
            cache: CacheOp::Volatile,
            hint: StoreHint::Plain,
            atom: AtomOp::Phase(op),
            wide: true,
            address: AddressIn::Trace,
            whole: 0,
        };
        (Op::Mem(mem), Class::Mem, [NONE, at, NONE, NONE])
    }
}

/// The place of a constant among those of a kernel, to which it comes where it is not there: instructions
/// share it.
pub(crate) fn place_of<T: PartialEq>(constants: &mut Vec<T>, constant: T) -> Slot {
    let known = constants.iter().position(|known| *known == constant);
    let at = known.unwrap_or_else(|| {
        constants.push(constant);
        constants.len() - 1
    });
    at as Slot
}

/// The instruction of a copy. Elements of a reduction are words: which, the trace does not say.
pub(crate) fn copy_instruction(kind: BulkKind, opcode: &str) -> Op {
    let multicast = kind == BulkKind::Load && opcode.split('.').any(|token| token == "MULTICAST");
    let atom = if kind == BulkKind::Reduce { AtomOp::Add } else { AtomOp::None };
    let (elem, mode, moves) = (Elem::U32, TileMode::Box, BulkBytes::All);
    Op::Bulk(Bulk { kind, atom, elem, dimensions: 0, mode, multicast, moves, paired: false })
}

/// The instruction of an asynchronous store or reduction of `bytes` a lane. Its addresses are those of
/// [`send_address`].
pub(crate) fn send_instruction(kind: SendKind, bytes: u32) -> (Op, [Slot; 4], [Slot; 4]) {
    let (kind, atom) = match kind {
        SendKind::Store => (MemKind::Store, AtomOp::None),
        SendKind::Reduce => (MemKind::Reduction, AtomOp::Add),
    };
    let (elem, vec) = match (kind, bytes) {
        (MemKind::Reduction, 8) => (Elem::U64, 1),
        (_, 4) => (Elem::U32, 1),
        _ => (Elem::U32, bytes as u8 / 4),
    };
    let mem = Mem {
        kind,
        space: Space::Shared,
        elem,
        vec,
        cache: if kind == MemKind::Reduction { CacheOp::Volatile } else { CacheOp::All },
        hint: StoreHint::Plain,
        atom,
        wide: elem == Elem::U64,
        address: AddressIn::TraceWithBarrier,
        whole: 0,
    };
    // Zeros are stored, and added; that it completes anywhere shows by its last source.
    (Op::Mem(mem), [CONST; 4], [NONE, NONE, NONE, CONST])
}

/// The address of registers that go to shared memory, and that of the barrier at which they complete, as
/// kernels name both ([`shared_address`]).
pub(crate) fn send_address(data: u64, barrier: u64, own: Option<u32>) -> u64 {
    shared_address(barrier, own) << 32 | shared_address(data, own)
}

/// Both addresses of a lane: `STAS [R12.64], R4` has that of its data in R12 and that of its barrier in R13.
/// The tracer writes what both come to, or that of the data alone, which leaves the barrier to the values of
/// registers. None where neither has it: no barrier is at byte 0, where the system has its own.
pub(crate) fn sent_to(address: u64, register: Option<u64>) -> Option<[u64; 2]> {
    let barrier = [address >> 32, register.unwrap_or(0) >> 32].into_iter().find(|&barrier| barrier != 0)?;
    Some([u64::from(address as u32), barrier])
}

/// The wait for all groups of stores but the last ones.
pub(crate) fn copy_wait(kept: u8) -> Op {
    Op::BulkGroups(BulkStep::Wait(kept.into()))
}

/// Where an address of shared memory lies for a CTA of this rank, as the kernel names it: the rank that the
/// address names counts where the CTA is of a cluster.
pub(crate) fn shared_address(address: u64, own: Option<u32>) -> u64 {
    let (rank, byte) = rank_and_byte(address);
    own.map_or(byte, |own| map_address(byte as u32, rank, own).into())
}

/// The rank of the CTA that an address of shared memory names, and the byte there.
pub(crate) fn rank_and_byte(address: u64) -> (u32, u64) {
    ((address as u32) >> RANK, address & ((1 << RANK) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opcode_says_what_goes_on_beside_its_warp() {
        use AsyncStep::{Barrier, Copy};
        for (opcode, step) in [
            ("UTMALDG.3D.MULTICAST", Copy(BulkKind::Load)),
            ("UBLKCP.S.G", Copy(BulkKind::Load)),
            ("UBLKCP.G.S", Copy(BulkKind::Store)),
            ("SYNCS.EXCH.64", Barrier(BarrierUse::Begin)),
            ("SYNCS.ARRIVE.TRANS64", Barrier(BarrierUse::ArriveExpecting)),
            ("SYNCS.ARRIVE.TRANS64.RED", Barrier(BarrierUse::ArriveExpecting)),
            ("SYNCS.ARRIVE.TRANS64.A1T0", Barrier(BarrierUse::ArriveOnce)),
            ("SYNCS.ARRIVE.TRANS64.RED.A1T0", Barrier(BarrierUse::ArriveOnce)),
            ("SYNCS.ARRIVE.TRANS64.ART0", Barrier(BarrierUse::ArriveMany)),
            ("SYNCS.ARRIVE.TRANS64.RED.A0TR", Barrier(BarrierUse::Expect)),
            ("SYNCS.ARRIVE.TRANS64.A0TX", Barrier(BarrierUse::Complete)),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Barrier(BarrierUse::Wait)),
        ] {
            assert_eq!(AsyncStep::of(opcode), Some(step), "{opcode}");
            assert!(!is_unknown(opcode), "{opcode}");
        }
        for opcode in ["SYNCS.PHASECHK.TRANS64", "SYNCS.CCTL.IV", "UBLKCP", "FENCE.VIEW.ASYNC.S", "LDG.E", "BAR.SYNC"] {
            assert_eq!((AsyncStep::of(opcode), is_unknown(opcode)), (None, false), "{opcode}");
        }
        // As long as it is not known what it arrives behind.
        let products = AsyncStep::of("UTCBAR.2CTA");
        assert_eq!((products, is_unknown("UTCBAR")), (Some(Barrier(BarrierUse::ArriveBehindProducts)), true));
        let behind = "ARRIVES.LDGSTSBAR.64.ARVCNT";
        assert_eq!((AsyncStep::of(behind), is_unknown(behind)), (Some(Barrier(BarrierUse::ArriveBehindCopies)), true));
        for (opcode, kind) in [
            ("STAS", SendKind::Store),
            ("STAS.128", SendKind::Store),
            ("REDAS.ADD.64", SendKind::Reduce),
            ("REDAS.MIN.S32", SendKind::Reduce),
        ] {
            assert_eq!((AsyncStep::of(opcode), is_unknown(opcode)), (Some(AsyncStep::Send(kind)), true), "{opcode}");
        }
        for opcode in
            ["SYNCS.ARRIVE.TRANS64.A2T0", "SYNCS.CAS.64", "ARRIVES.LDGSTSBAR.32", "STAS.U8", "REDAS", "UTCBAR.FLUSH"]
        {
            assert_eq!((AsyncStep::of(opcode), is_unknown(opcode)), (None, true), "{opcode}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_second_source() {
        // A result, the address, the number: of all lanes, or of each.
        let of_all = RegisterValues { text: Some(b"1 0 1 400 1 2000") };
        let expecting = BarrierUse::ArriveExpecting.steps(0b11, of_all, 1);
        assert_eq!(expecting, Some(vec![(0b11, BarrierStep::ArriveExpecting(0x2000))]));
        let each: String = (0..32).map(|lane| format!(" {:x}", lane / 2)).collect();
        let text = format!("1 400 32{each}");
        let of_each = RegisterValues { text: Some(text.as_bytes()) };
        let steps = BarrierUse::ArriveMany.steps(0b11_0110, of_each, 0).unwrap();
        let [first, second, third] = [0b10, 0b100, 0b11_0000];
        let arrive = BarrierStep::Arrive;
        assert_eq!(steps, [(first, arrive(0)), (second, arrive(1)), (third, arrive(2))]);
        assert_eq!(BarrierUse::ArriveMany.steps(1, RegisterValues::default(), 0), None, "no values");
        assert_eq!(BarrierUse::ArriveMany.steps(1, RegisterValues { text: Some(b"1 400") }, 0), None, "too few");
        let once = BarrierUse::ArriveOnce.steps(0b101, RegisterValues::default(), 0);
        assert_eq!(once, Some(vec![(0b101, arrive(1))]), "it needs none");
        let behind = BarrierUse::ArriveBehindProducts.steps(0b1100, RegisterValues::default(), 0);
        assert_eq!(behind, Some(vec![(0b100, BarrierStep::ArriveBehindProducts)]), "once for the warp");
    }

    #[test]
    fn a_word_of_hardware_says_how_many_arrive_and_bit_31_the_parity() {
        // What `ptxas` computes of 5: (0x10_0000 - 5) << 1, and the same << 11 in the upper half.
        let word = |count: u64| ((0x10_0000 - count) << 11 & 0xffff_ffff) << 32 | (0x10_0000 - count) << 1;
        assert_eq!(BarrierUse::Begin.with(word(5)), Some(BarrierStep::Begin(5)));
        assert_eq!((BarrierUse::Begin.with(0), BarrierUse::Begin.with(word(0))), (None, None));
        assert_eq!(BarrierUse::Wait.with(0x8000_0000), Some(BarrierStep::Wait(true)));
        assert_eq!(BarrierUse::Wait.with(0x7fff_ffff), Some(BarrierStep::Wait(false)));
    }

    #[test]
    fn an_address_names_the_rank_of_its_cta() {
        assert_eq!(shared_address(0x0100_0400, Some(1)), 0x400, "the own one");
        assert_eq!(shared_address(0x0100_0400, Some(0)), 0x1100_0400, "the other one's, as kernels name it");
        assert_eq!(shared_address(0x0100_0400, None), 0x400, "there are no clusters");
        assert_eq!(rank_and_byte(0x0300_0408), (3, 0x408));
        // What goes to the other CTA, by a pair of registers or by one whose neighbour has the barrier.
        let both = Some([0x0100_0400, 0x0100_0800]);
        assert_eq!(sent_to(0x0100_0800_0100_0400, None), both);
        assert_eq!(sent_to(0x0100_0400, Some(0x0100_0800_0100_0400)), both);
        assert_eq!((sent_to(0x0100_0400, Some(0x0100_0400)), sent_to(0x400, None)), (None, None));
        assert_eq!(send_address(0x0100_0400, 0x0100_0800, Some(0)), 0x1100_0800_1100_0400);
        assert_eq!(send_address(0x0100_0400, 0x0100_0800, None), 0x800_0000_0400);
    }
}
