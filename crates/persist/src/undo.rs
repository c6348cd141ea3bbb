//! Undo logging in persistent memory: where a transaction keeps its flag and its log, and the recovery that
//! runs at boot.
//!
//! ```text
//!   flag 0 ──log written──> 1 (in the transaction) ──data written──> 2 (complete)
//!   recovery: flag 1 -> every logged element back to its old value, made durable; then flag 0, made durable
//! ```
//! Recovery is software that writes persistent memory itself, hence can be cut off by another power failure:
//! it is a list of durable steps, in order, and starting it again after any prefix comes to the same image.
//!
//! Source: AGPM section II-B and Fig. 1 (CTA-level undo logging); the values of the flag are those of the
//! public PACT 2019 kernels. Not modelled: re-execution of what was rolled back, which is a launch like any
//! other.

use smallvec::SmallVec;

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
    /// What is written: a word, mostly.
    pub data: SmallVec<[u8; 8]>,
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
                steps.push(RecoveryStep { address: slot.home, data: SmallVec::from_slice(old) });
            }
            steps.push(RecoveryStep { address: transaction.flag, data: SmallVec::from_slice(&IDLE.to_le_bytes()) });
        }
        Ok(steps)
    }

    /// The same log in fewer, larger slots: those that follow each other in both places are one. Its recovery
    /// comes to the same image, in other steps.
    pub fn joined(&self) -> UndoLog {
        let mut joined = self.clone();
        for transaction in &mut joined.transactions {
            transaction.slots.dedup_by(|next, slot| {
                let bytes = u64::from(slot.bytes);
                let follows = (slot.home + bytes, slot.log + bytes) == (next.home, next.log);
                let together = slot.bytes.checked_add(next.bytes).filter(|_| follows);
                slot.bytes = together.unwrap_or(slot.bytes);
                together.is_some()
            });
        }
        joined
    }

    /// Takes these steps, without telling them.
    ///
    /// # Errors
    /// As [`UndoLog::recovery`].
    pub fn recover(&self, image: &mut PmImage) -> Result<(), OutsideImage> {
        // As there, all is read before anything is written: slots may overlap in a log that is wrong.
        let mut begun = Vec::new();
        let mut old = Vec::new();
        for transaction in self.transactions.iter().rev() {
            if image.word(transaction.flag)? == IN_TX {
                begun.push(transaction);
                for slot in &transaction.slots {
                    old.extend_from_slice(image.read(slot.log, slot.bytes as usize)?);
                }
            }
        }
        let mut at = 0;
        for transaction in begun {
            for slot in &transaction.slots {
                let end = at + slot.bytes as usize;
                image.write(slot.home, &old[at..end])?;
                at = end;
            }
            image.write(transaction.flag, &IDLE.to_le_bytes())?;
        }
        Ok(())
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
    fn steps_that_are_not_told_come_to_the_same_image_even_where_slots_overlap() {
        // The second slot's log is the first one's element.
        let slots = vec![LogSlot { home: 0, log: 8, bytes: 4 }, LogSlot { home: 4, log: 0, bytes: 4 }];
        let wrong = UndoLog { transactions: vec![Transaction { launch: 0, cta: Some(0), flag: 16, slots }] };
        for log in [undo(), wrong.clone()] {
            for flag in [IDLE, IN_TX, COMPLETE] {
                let [mut told, mut image] = [(); 2].map(|()| image([10, 20, 1, 2, flag]));
                for step in log.recovery(&told).unwrap() {
                    told.write(step.address, &step.data).unwrap();
                }
                let mut joined = image.clone();
                log.recover(&mut image).unwrap();
                assert_eq!(image, told);
                log.joined().recover(&mut joined).unwrap();
                assert_eq!(joined, told);
            }
        }
        assert_eq!(undo().joined().transactions[0].slots, [LogSlot { home: 0, log: 8, bytes: 8 }]);
        assert_eq!(wrong.joined(), wrong);
        let short = PmImage::new(0, vec![0; 12]);
        assert_eq!(undo().recover(&mut short.clone()), undo().recovery(&short).map(drop));
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

    #[test]
    fn the_youngest_transaction_is_rolled_back_first_step_by_step() {
        let transaction = |launch, flag, log| Transaction {
            launch,
            cta: None,
            flag,
            slots: vec![LogSlot { home: 0, log, bytes: 4 }],
        };
        let log = UndoLog { transactions: vec![transaction(0, 12, 4), transaction(1, 16, 8)] };
        let mut failed = image([30, 10, 20, IN_TX, IN_TX]);
        let steps = log.recovery(&failed).unwrap();
        let told: Vec<(u64, u8, usize)> =
            steps.iter().map(|step| (step.address, step.data[0], step.data.len())).collect();
        assert_eq!(told, [(0, 20, 4), (16, 0, 4), (0, 10, 4), (12, 0, 4)]);
        log.recover(&mut failed).unwrap();
        assert_eq!(failed, image([10, 10, 20, IDLE, IDLE]));
    }

    #[test]
    fn slots_are_joined_where_elements_and_logs_both_follow_and_their_bytes_can_be_counted() {
        let joined = |slots: &[(u64, u64, u32)]| {
            let slots = slots.iter().map(|&(home, log, bytes)| LogSlot { home, log, bytes }).collect();
            let log = UndoLog { transactions: vec![Transaction { launch: 0, cta: None, flag: 0, slots }] };
            let slots = log.joined().transactions.remove(0).slots;
            slots.into_iter().map(|slot| (slot.home, slot.log, slot.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(joined(&[(0, 64, 4), (4, 68, 8), (12, 76, 2)]), [(0, 64, 14)]);
        for apart in [[(0, 64, 4), (4, 69, 4)], [(0, 64, 4), (5, 68, 4)], [(4, 68, 4), (0, 64, 4)]] {
            assert_eq!(joined(&apart), apart);
        }
        let large = [(0, 1 << 40, u32::MAX), (u64::from(u32::MAX), (1 << 40) + u64::from(u32::MAX), 1)];
        assert_eq!(joined(&large), large);
    }
}
