//! Barriers in shared memory as a trace has them (`mbarrier`): what an instruction does at one, with the
//! number that its register has, and what the machine makes of it.
//!
//! ```text
//!   SYNCS.EXCH.64          begins a barrier of n arrivals       .PHASECHK.TRANS64.TRYWAIT  waits for a phase
//!        .ARRIVE.TRANS64          one arrival, with bytes to come      .ARRIVE...A0TR      bytes to come
//!               ...A1T0, ART0     one arrival, many                           ...A0TX      bytes that came
//!   ARRIVES.LDGSTSBAR.64.ARVCNT   an arrival behind copies past the registers; of .TRANSCNT, A0T1 awaits it
//!   UTCBAR                 an arrival behind products in tensor memory (`super::tensor_memory` has these)
//! ```
//! Source: what `ptxas` 12.9 makes of the PTX instructions. Its encodings: a barrier of n arrivals is
//! initialised to a word whose lower half is (0x10_0000 - n) << 1; the parity that a wait names is in bit 31,
//! and so is the phase of a state. Invariant: lanes with one number are one step. Not modelled: states of
//! phases that a program keeps; a wait names a parity.

use durawarp_kernel::ir::{
    AddressIn, AtomOp, CONST, CacheOp, Class, Elem, Mem, MemKind, NONE, Op, PhaseOp, Slot, Space, StoreHint,
};

use super::words::RegisterValues;

/// A barrier expects fewer arrivals than this.
const MOST_ARRIVALS: u32 = 1 << 20;

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

impl BarrierUse {
    /// What the modifiers of `SYNCS` say.
    pub(super) fn of(modifiers: &str) -> Option<BarrierUse> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
