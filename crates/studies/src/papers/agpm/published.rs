//! What AGPM publishes: `published.csv`. Times are over those of `base` (203.39 % is 2.0339).

use super::super::published::Published;

/// The values.
pub(crate) const PUBLISHED: Published = Published { csv: include_str!("published.csv") };

#[cfg(test)]
mod tests {
    use super::super::kernels::KERNELS;
    use super::*;

    #[test]
    fn every_row_is_whole_and_none_is_there_twice() {
        PUBLISHED.check();
    }

    #[test]
    fn table_2_is_that_of_the_tests() {
        let copy = include_str!("../../../../../tests/data/agpm_table2.csv");
        let columns: Vec<&str> = copy.lines().next().unwrap().split(',').collect();
        for line in copy.lines().skip(1).filter(|line| !line.is_empty()) {
            let cells: Vec<&str> = line.split(',').collect();
            for (column, cell) in columns.iter().zip(&cells).skip(1) {
                assert_eq!(PUBLISHED.text("table2", cells[0], column), Some(*cell), "{} {column}", cells[0]);
            }
        }
    }

    #[test]
    fn the_types_of_table_1_are_nine_nine_and_four() {
        let of = |ty| KERNELS.iter().filter(move |k| PUBLISHED.text("table1", k.name, "type") == Some(ty)).count();
        assert_eq!((of("I"), of("II"), of("III")), (9, 9, 4));
    }
}
