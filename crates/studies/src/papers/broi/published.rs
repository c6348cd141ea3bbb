//! What the paper publishes in its text and tables: `published.csv`. Ratios are of BROI to Epoch. In no text:
//! bars of figures, the picture of the better schedule in Figure 3, Figure 11's table of queue sizes.

use crate::papers::published::Published;

/// The values.
pub(crate) const PUBLISHED: Published = Published { csv: include_str!("published.csv") };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_whole_and_none_is_there_twice() {
        PUBLISHED.check();
    }
}
