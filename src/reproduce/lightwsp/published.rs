//! What LightWSP publishes in its text and tables: `published.csv`. Overheads and rates are shares (9.0 % is 0.09). The bars of
//! its figures are in no text.

use crate::reproduce::published::Published;

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
