//! Undo logging in persistent memory: where a transaction keeps its flag and its log, and the recovery that runs at boot.
//!
//! ```text
//!   flag 0 ──log written──> 1 (in the transaction) ──data written──> 2 (complete)
//!   recovery: flag 1 -> every logged element back to its old value, made durable; then flag 0, made durable
//! ```
//! Recovery is software that writes persistent memory itself, hence can be cut off by another power failure: it is a list
//! of durable steps, in order, and starting it again after any prefix comes to the same image.
//!
//! Source: AGPM section II-B and Fig. 1 (CTA-level undo logging); the values of the flag are those of the public PACT 2019
//! kernels. Not modelled: re-execution of what was rolled back, which is a launch like any other.

use super::image::{OutsideImage, PmImage};

/// The flag of a transaction that has not begun, or was rolled back.
pub const IDLE: u32 = 0;
/// The flag of a transaction whose log is complete and whose data may be half written.
pub const IN_TX: u32 = 1;
/// The flag of a transaction whose data is complete.
pub const COMPLETE: u32 = 2;

/// A logged element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSlot {
    /// Address of the element.
    pub home: u64,
    /// Address of its old value in the log.
    pub log: u64,
    /// Bytes of either.
    pub bytes: u32,
}

/// One transaction: a CTA's, or a whole kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Launch it belongs to, from 0.
    pub launch: u32,
    /// CTA of the launch, when a CTA is a transaction.
    pub cta: Option<u32>,
    /// Address of its flag, a 32-bit word.
    pub flag: u64,
    /// Every element that it may change, in the order in which recovery restores them.
    pub slots: Vec<LogSlot>,
}

/// All transactions of a program, in the order of their launches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoLog {
    /// The transactions.
    pub transactions: Vec<Transaction>,
}

/// One durable step of recovery: `data` is written at `address` and made durable before the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryStep {
    /// First address.
    pub address: u64,
    /// What is written.
    pub data: Vec<u8>,
}

impl UndoLog {
    /// The steps that recovery of `image` takes. The youngest transaction is rolled back first.
    ///
    /// # Errors
    /// A flag, an element or its log is outside the image.
    pub fn recovery(&self, image: &PmImage) -> Result<Vec<RecoveryStep>, OutsideImage> {
        let mut steps = Vec::new();
        for transaction in self.transactions.iter().rev() {
            if image.word(transaction.flag)? != IN_TX {
                continue;
            }
            for slot in &transaction.slots {
                let old = image.read(slot.log, slot.bytes as usize)?;
                steps.push(RecoveryStep { address: slot.home, data: old.to_vec() });
            }
            steps.push(RecoveryStep { address: transaction.flag, data: IDLE.to_le_bytes().to_vec() });
        }
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data at 0 and 4, log at 8 and 12, flag at 16.
    fn undo() -> UndoLog {
        let slots = vec![LogSlot { home: 0, log: 8, bytes: 4 }, LogSlot { home: 4, log: 12, bytes: 4 }];
        UndoLog { transactions: vec![Transaction { launch: 0, cta: Some(0), flag: 16, slots }] }
    }

    fn image(words: [u32; 5]) -> PmImage {
        PmImage::new(0, words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    fn recover(mut image: PmImage, steps: usize) -> PmImage {
        for step in undo().recovery(&image).unwrap().into_iter().take(steps) {
            image.write(step.address, &step.data).unwrap();
        }
        image
    }

    #[test]
    fn only_a_transaction_that_had_begun_and_not_ended_is_rolled_back() {
        assert_eq!(recover(image([10, 2, 1, 2, IN_TX]), 99), image([1, 2, 1, 2, IDLE]));
        assert_eq!(recover(image([10, 20, 1, 2, COMPLETE]), 99), image([10, 20, 1, 2, COMPLETE]));
        assert_eq!(recover(image([1, 2, 1, 0, IDLE]), 99), image([1, 2, 1, 0, IDLE]));
    }

    #[test]
    fn recovery_cut_off_anywhere_can_start_again() {
        let failed = image([10, 20, 1, 2, IN_TX]);
        for steps in 0..4 {
            assert_eq!(recover(recover(failed.clone(), steps), 99), image([1, 2, 1, 2, IDLE]), "cut after {steps}");
        }
    }
}
