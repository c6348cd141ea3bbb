//! The write-back of every dirty line of persistent memory, at the head of the input.
//!
//! It goes on from place to place, as far as write credits and fills under way allow; the requests after it
//! wait. Source: what a kernel boundary does under schemes that cache persistent memory in the L2. Not
//! modelled: a walk that looks at tags in parallel takes time; this one takes that of the data port.

use durawarp_checkpoint::state;

/// Where the write-back under way goes on; at the first place between two.
#[derive(Debug, Default)]
pub(super) struct WriteBackAll {
    next: usize,
}

state!(WriteBackAll { saved: next });

impl WriteBackAll {
    /// The place to look at now; none after the last of `places`, with which the next write-back begins anew.
    pub(super) fn place(&mut self, places: usize) -> Option<usize> {
        if self.next == places {
            self.next = 0;
            return None;
        }
        Some(self.next)
    }

    /// That place is clean.
    pub(super) fn advance(&mut self) {
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_where_it_stopped_and_begins_anew_after_the_last() {
        let mut all = WriteBackAll::default();
        assert_eq!([all.place(2), all.place(2)], [Some(0); 2], "held up");
        all.advance();
        assert_eq!(all.place(2), Some(1));
        all.advance();
        assert_eq!([all.place(2), all.place(2)], [None, Some(0)]);
    }
}
