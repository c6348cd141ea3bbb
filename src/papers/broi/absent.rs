//! What of the paper is not made here, each with its reason: the network, and all that is over it.
//! Published values stand alone; nothing of it is measured, and nothing of it is asked.

use super::published::PUBLISHED;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};

const NETWORK: &str =
    "no clients are run here: the machine broi-cluster has them, the remote mixes of the paper are not planned";
const HYBRID: &str = "no clients are run here beside the local programs";

/// Experiment, of what, quantity, and why there is none of ours.
const ABSENT: [(&str, &str, &str, &str); 9] = [
    ("fig4", "6 epochs of 512 B", "round trips fewer", NETWORK),
    ("fig9", "mean", "hybrid", HYBRID),
    ("fig10", "mean", "hybrid", HYBRID),
    ("fig12", "tpcc", "BSP over Sync", NETWORK),
    ("fig12", "ycsb", "BSP over Sync", NETWORK),
    ("fig12", "hashmap", "BSP over Sync", NETWORK),
    ("fig12", "ctree", "BSP over Sync", NETWORK),
    ("fig12", "memcached", "BSP over Sync", NETWORK),
    ("fig13", "hashmap", "elements for which BSP is effective", NETWORK),
];

/// Everything that is absent.
pub(super) fn listed(_: &Request, _: &Runs<'_>) -> Finding {
    let columns = ["of", "for", "what", "published", "why it does not exist here"];
    let mut table = FigureTable::new("absent", "published, and not to be had here", &columns);
    for (experiment, program, quantity, why) in ABSENT {
        let value = PUBLISHED.text(experiment, program, quantity).map_or(Cell::None, Cell::from);
        table.push(vec![Cell::from(experiment), Cell::from(program), Cell::from(quantity), value, Cell::from(why)]);
    }
    Finding { tables: vec![table], unmeasured: Some("none of it is run here"), ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_published_and_what_is_published_of_the_network_is_listed() {
        for (experiment, program, quantity, _) in ABSENT {
            assert!(PUBLISHED.text(experiment, program, quantity).is_some(), "{experiment}: {quantity}");
        }
        let of_network = |row: &crate::papers::published::Value| {
            ["fig4", "fig12", "fig13"].contains(&row.experiment) || row.quantity == "hybrid"
        };
        for row in PUBLISHED.all().filter(of_network) {
            let listed = ABSENT.iter().any(|of| (of.0, of.1, of.2) == (row.experiment, row.kernel, row.quantity));
            assert!(listed, "{}: {}", row.experiment, row.kernel);
        }
    }
}
