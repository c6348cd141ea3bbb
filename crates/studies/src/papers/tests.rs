//! Papers are found by their names, and what tests of their asks have in common.

pub(super) mod pairs;

use super::*;

#[test]
fn a_paper_is_found_by_its_name_or_the_nearest_is_told() {
    for paper in PAPERS {
        assert_eq!(find(paper.name).unwrap().title, paper.title);
    }
    assert!(find("agmp").unwrap_err().to_string().contains("did you mean `agpm`?"));
}

#[test]
fn names_of_figures_kernels_and_papers_tell_them_apart() {
    for paper in PAPERS {
        for names in [paper.kernels.to_vec(), paper.figures.iter().map(|figure| figure.name).collect()] {
            let lower = |name: &str| name.to_lowercase();
            let mut all: Vec<String> = names.iter().map(|name| lower(name)).chain(["all".to_owned()]).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), names.len() + 1, "{}: {names:?}", paper.name);
        }
    }
}
