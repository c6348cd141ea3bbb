//! The figures and tables of AGPM that can be reproduced, by name.

use crate::diagnostic::{Diagnostic, Diagnostics};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Time under the two static ways of log updates.
    Fig3,
    /// How many line accesses loads and stores come to.
    Fig4,
    /// Bytes between L1 and L2.
    Fig5,
    /// Time under every scheme.
    Fig7,
    /// Log updates and all accesses.
    Table2,
    /// The rules of the reasons.
    Table3,
    /// Sizes of the hardware.
    Overheads,
}

impl Figure {
    /// All of them: name, which, what it shows.
    pub const ALL: [(&'static str, Figure, &'static str); 7] = [
        ("fig3", Figure::Fig3, "normalised execution time with static paths of log updates"),
        ("fig4", Figure::Fig4, "distribution of loads and stores by un-coalescing degree"),
        ("fig5", Figure::Fig5, "bytes between L1 and L2, by reason"),
        ("fig7", Figure::Fig7, "normalised execution time under every scheme"),
        ("table2", Figure::Table2, "memory accesses of log updates, and of all"),
        ("table3", Figure::Table3, "rules of the reasons, on the published Table II"),
        ("overheads", Figure::Overheads, "bits and bytes of AGPM's hardware"),
    ];

    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, figure, _)| *figure == self).map_or("", |(name, ..)| name)
    }

    /// What it shows.
    pub fn title(self) -> &'static str {
        Self::ALL.iter().find(|(_, figure, _)| *figure == self).map_or("", |(.., title)| title)
    }

    /// The figures of a list of names; `all` is every one.
    ///
    /// # Errors
    /// Every name that there is not, with the nearest.
    pub fn parse(names: &[String]) -> Result<Vec<Figure>, Diagnostics> {
        let valid = || Self::ALL.iter().map(|(name, ..)| *name).chain(["all"]);
        let (mut figures, mut faults) = (Vec::new(), Diagnostics::default());
        for name in names {
            if name == "all" {
                figures.extend(Self::ALL.iter().map(|(_, figure, _)| *figure));
                continue;
            }
            match Self::ALL.iter().find(|(known, ..)| known == name) {
                Some((_, figure, _)) => figures.push(*figure),
                None => {
                    let all: Vec<&str> = valid().collect();
                    let message = format!("there is no figure `{name}`; there are {}", all.join(", "));
                    faults.push(Diagnostic::nowhere("--figure", message).with_nearest(name, valid()));
                }
            }
        }
        figures.sort_unstable();
        figures.dedup();
        faults.into_result(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Result<Vec<Figure>, Diagnostics> {
        Figure::parse(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_figure_has_its_name_and_all_is_every_one_once() {
        for (name, figure, _) in Figure::ALL {
            assert_eq!((names(&[name]).unwrap(), figure.name()), (vec![figure], name));
        }
        assert_eq!(names(&["fig7", "all", "fig3"]).unwrap().len(), Figure::ALL.len());
    }

    #[test]
    fn an_unknown_name_is_told_with_the_nearest() {
        let faults = names(&["fig3", "figg5"]).unwrap_err().to_string();
        assert!(faults.contains("`figg5`") && faults.contains("did you mean `fig5`?"), "{faults}");
    }
}
