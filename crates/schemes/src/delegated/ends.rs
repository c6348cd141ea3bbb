//! Lines by the entry of a persist buffer that ends something about them, in the order of entries.

use std::collections::VecDeque;

use durawarp_checkpoint::value;

/// Entry and line, in the order of entries.
#[derive(Debug, Default, Clone)]
pub(super) struct LinesByEntry(VecDeque<(u64, u64)>);

value!(wrapper LinesByEntry);

impl LinesByEntry {
    /// A line until this entry is durable.
    pub(super) fn insert(&mut self, entry: u64, line: u64) {
        let place = self.0.partition_point(|&(other, _)| other <= entry);
        self.0.insert(place, (entry, line));
    }

    /// The first line, if it is of an entry up to this one.
    pub(super) fn pop_up_to(&mut self, entry: u64) -> Option<u64> {
        if self.0.front()?.0 <= entry { self.0.pop_front().map(|(_, line)| line) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_the_order_of_entries_whatever_the_order_in_which_they_came() {
        let mut lines = LinesByEntry::default();
        [(5, 64), (2, 128), (5, 192), (9, 256)].into_iter().for_each(|(entry, line)| lines.insert(entry, line));
        let mut up_to = |entry| std::iter::from_fn(|| lines.pop_up_to(entry)).collect::<Vec<_>>();
        assert_eq!([up_to(1), up_to(5), up_to(8), up_to(9)], [vec![], vec![128, 64, 192], vec![], vec![256]]);
    }
}
