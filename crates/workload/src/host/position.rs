//! The position of a host program as plain words. With the device's memory and its next reads it decides the
//! next steps.

/// A position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The next operation.
    pub(crate) at: u64,
    /// Flags of transactions that are over.
    pub(crate) flags: u64,
    /// Iterations done and to do, by loop.
    pub(crate) loops: Vec<(i64, i64)>,
    /// The allocation that each buffer's name stands for.
    pub(crate) bindings: Vec<u64>,
    /// Extents of the last launch.
    pub(crate) extents: [u64; 6],
    /// Values that reductions left.
    pub(crate) variables: Vec<u64>,
}

impl Position {
    /// Words of 8 bytes that it takes.
    pub(crate) fn words(&self) -> Vec<u64> {
        let loops = self.loops.iter().flat_map(|&(done, most)| [done as u64, most as u64]);
        [self.at, self.flags]
            .into_iter()
            .chain(loops)
            .chain(self.bindings.iter().copied())
            .chain(self.extents)
            .chain(self.variables.iter().copied())
            .collect()
    }

    /// The reverse, for a host program with loops, bindings and variables as `like` has them; none of other
    /// words.
    pub(crate) fn of_words(words: &[u64], like: &Position) -> Option<Position> {
        let (head, rest) = words.split_at_checked(2)?;
        let (loops, rest) = rest.split_at_checked(2 * like.loops.len())?;
        let (bindings, rest) = rest.split_at_checked(like.bindings.len())?;
        let (extents, variables) = rest.split_at_checked(like.extents.len())?;
        // Names exchange what they stand for, and no two stand for the same.
        let mut sorted = bindings.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..bindings.len() as u64).then_some(())?;
        (variables.len() == like.variables.len()).then_some(())?;
        Some(Position {
            at: head[0],
            flags: head[1],
            loops: loops.chunks_exact(2).map(|pair| (pair[0] as i64, pair[1] as i64)).collect(),
            bindings: bindings.to_vec(),
            extents: extents.try_into().ok()?,
            variables: variables.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_the_position_back_and_other_words_do_not() {
        let (loops, bindings) = (vec![(2, 7), (-1, 3)], vec![1, 0]);
        let position =
            Position { at: 9, flags: 4, loops, bindings, extents: [1, 2, 3, 4, 5, 6], variables: vec![42, 1 << 63] };
        let words = position.words();
        assert_eq!(Position::of_words(&words, &position), Some(position.clone()));
        assert_eq!(Position::of_words(&words[1..], &position), None);
        let same_twice: Vec<u64> = words.iter().enumerate().map(|(at, word)| if at == 6 { 0 } else { *word }).collect();
        assert_eq!(Position::of_words(&same_twice, &position), None);
    }
}
