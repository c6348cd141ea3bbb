//! The branch predictor of a hart: gshare, two-bit counters chosen by address and recent outcomes.
//!
//! Source: McFarling, *Combining Branch Predictors*, WRL TN-36. The history holds outcomes as they were
//! predicted, and is put right when a prediction was wrong. Targets of direct branches are always known;
//! those of indirect jumps are known where their register is (a perfect return stack and target buffer).

use durawarp_checkpoint::{state, value};

/// A hart's predictor.
#[derive(Debug)]
pub(super) struct Predictor {
    counters: Vec<u8>,
    /// Outcomes of earlier branches, the last in the lowest bit.
    history: u32,
    /// Bits of history and index.
    mask: u32,
}

state!(Predictor { sized: counters; saved: history; kept: mask });

/// A prediction, as it must be known when the branch resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prediction {
    pub(super) taken: bool,
    /// Its counter.
    index: u32,
    /// Outcomes before it.
    history: u32,
}

value!(record Prediction { taken, index, history });

impl Predictor {
    /// Counters that predict "not taken", weakly.
    pub(super) fn new(entries: u32) -> Predictor {
        Predictor { counters: vec![1; entries as usize], history: 0, mask: entries - 1 }
    }

    /// Predicts the branch at an address, and takes the outcome as it is predicted for the next ones.
    #[inline]
    pub(super) fn predict(&mut self, pc: u64) -> Prediction {
        let (index, history) = (((pc >> 1) as u32 ^ self.history) & self.mask, self.history);
        let taken = self.counters[index as usize] >= 2;
        self.note(taken);
        Prediction { taken, index, history }
    }

    #[inline]
    fn note(&mut self, taken: bool) {
        self.history = (self.history << 1 | u32::from(taken)) & self.mask;
    }

    /// A branch resolves. True when it was predicted rightly; else what was predicted after it is forgotten.
    #[inline]
    pub(super) fn resolve(&mut self, prediction: Prediction, taken: bool) -> bool {
        let counter = &mut self.counters[prediction.index as usize];
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        let right = prediction.taken == taken;
        if !right {
            self.history = prediction.history;
            self.note(taken);
        }
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_alternates_is_learnt_by_its_history() {
        let mut predictor = Predictor::new(4096);
        let mut wrong = 0;
        for round in 0..200 {
            let prediction = predictor.predict(0x1_0000);
            let right = predictor.resolve(prediction, round % 2 == 0);
            wrong += u32::from(!right && round >= 100);
        }
        assert_eq!(wrong, 0);
    }

    #[test]
    fn a_wrong_prediction_puts_the_history_right() {
        let mut predictor = Predictor::new(16);
        let first = predictor.predict(0);
        assert!(!first.taken);
        predictor.predict(2);
        predictor.predict(4);
        assert!(!predictor.resolve(first, true));
        assert_eq!(predictor.history, 1);
    }
}
