//! What of the paper does not exist here, each with its reason: Figures 9, 10 and 14, the DRAM cache, and the
//! schemes that the paper compares with. Published values stand alone; nothing of it is measured, and nothing
//! of it is asked.

use super::published::{LABEL, PUBLISHED};
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};

const CAPRI: &str = "not modelled: proxy buffers of 64 B lines in each core, with undo and redo, whose path stops at a region's end \
     until controllers have its stores; nothing of an SM stands for them";
const PPA: &str =
    "not modelled: stores are replayed from physical registers that renaming has not reused; an SM does not rename";
const CWSP: &str =
    "not modelled: idempotent regions of another compiler, and controllers that speculate with undo logs of all stores";
const DRAM_CACHE: &str = "no DRAM cache: DRAM and NVM lie beside each other by address, in the base and under every scheme; the paper's \
     base is a memory mode whose DRAM caches NVM, and its ideal PSP is one that may not use it";
const MISSES: &str = "the port's L1s hold no dirty lines and evict nothing that a buffer has to be searched for: victims are those of the \
     L2 (fig13)";

/// Experiment and quantity as published, and why there is none of ours.
const ABSENT: [(&str, &str, &str); 11] = [
    ("fig7", "Capri", CAPRI),
    ("fig7", "PPA", PPA),
    ("efficiency", "PPA", PPA),
    ("fig9", "ideal PSP", DRAM_CACHE),
    ("fig9", "ideal PSP of libquantum", DRAM_CACHE),
    ("fig9", "light-wsp", DRAM_CACHE),
    ("fig10", "cWSP", CWSP),
    ("fig10", "light-wsp", "compared with cWSP, without a suite that cWSP's authors did not run"),
    ("fig14", "full: misses fewer by at most", MISSES),
    ("fig14", "half: misses fewer by at most", MISSES),
    ("fig14", "zero: misses fewer by at most", MISSES),
];

/// Everything that is absent.
pub(super) fn listed(_: &Request, _: &Runs<'_>) -> Finding {
    let mut table = FigureTable::new(
        "absent",
        "published, and not to be had here",
        &["of", "what", "published", "why it does not exist here"],
    );
    for (experiment, quantity, why) in ABSENT {
        let value = PUBLISHED.text(experiment, "mean", quantity).map_or(Cell::None, Cell::from);
        table.push(vec![Cell::from(experiment), Cell::from(quantity), value, Cell::from(why)]);
    }
    Finding {
        tables: vec![table],
        unmeasured: Some("none of it is modelled"),
        notes: vec![LABEL.to_owned()],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_published_and_what_is_published_of_its_figures_is_listed() {
        for (experiment, quantity, _) in ABSENT {
            assert!(PUBLISHED.text(experiment, "mean", quantity).is_some(), "{experiment}: {quantity}");
        }
        for row in PUBLISHED.all().filter(|row| ["fig9", "fig10", "fig14"].contains(&row.experiment)) {
            let listed = ABSENT
                .iter()
                .any(|(experiment, quantity, _)| (*experiment, *quantity) == (row.experiment, row.quantity));
            assert!(listed, "{}: {}", row.experiment, row.quantity);
        }
    }
}
