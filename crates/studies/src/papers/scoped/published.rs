//! What the paper publishes: `published.csv`. Overheads are shares of the time of the baseline (8 % is 0.08).
//! The paper's Table 3 has no row three levels above the leaves; the bars of its figures are in no text.

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

    #[test]
    fn table_3_has_the_ratios_of_its_text() {
        let ratio = |level: &str| {
            let of = |scope| PUBLISHED.number("table3", level, scope).unwrap();
            of("kr") / of("wg")
        };
        let ratios = ["Leaf", "Leaf-1", "Leaf-2", "Leaf-4", "Leaf-5"].map(ratio);
        assert!(ratios.is_sorted_by(|above, below| above > below), "{ratios:?}");
        assert_eq!(ratios.map(|ratio| ratio.round()), [57.0, 17.0, 11.0, 9.0, 4.0]);
    }
}
