//! Figure 5: bytes between L1 and L2 under the two static ways, by published reason.
//!
//! Bytes are of the links between SMs and slices, headers included, over those of `base` in the same
//! direction. The paper does not say what it normalises by.

use crate::papers::agpm::ask::traffic;
use crate::papers::agpm::kernels;
use crate::papers::agpm::kernels::{KERNELS, PaperKernel};
use crate::papers::agpm::measured::measured;
use crate::papers::agpm::published::PUBLISHED;
use crate::papers::agpm::runs::timed;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};

/// From the L1s, and to them.
const DIRECTIONS: [&str; 2] = ["bytes_out", "bytes_in"];
const SCHEMES: [&str; 2] = ["store+clwb", "nt-store"];

/// A kernel's bytes over those of `base`: by scheme, then by direction.
fn of_kernel<'a>(kernel: &'a PaperKernel, runs: &Runs<'a>) -> Option<[[f64; 2]; 2]> {
    let base = measured(runs, kernel, &timed(kernel, "base"))?;
    let mut bytes = [[0.0; 2]; 2];
    for (of_scheme, scheme) in bytes.iter_mut().zip(SCHEMES) {
        let run = measured(runs, kernel, &timed(kernel, scheme))?;
        *of_scheme = DIRECTIONS.map(|name| run.counter(name) as f64 / base.counter(name).max(1) as f64);
    }
    Some(bytes)
}

/// Means over kernels.
fn mean(all: &[[[f64; 2]; 2]]) -> [[f64; 2]; 2] {
    let sum = |scheme: usize, direction: usize| all.iter().map(|bytes| bytes[scheme][direction]).sum::<f64>();
    [0, 1].map(|scheme| [0, 1].map(|direction| sum(scheme, direction) / all.len() as f64))
}

/// Figure 5.
pub(crate) fn bytes(request: &Request, runs: &Runs<'_>) -> Finding {
    let columns = ["reason", "kernels", "s2m, T", "s2m, nt", "m2s, T", "m2s, nt"];
    let mut table = FigureTable::new(
        "fig5",
        "mean bytes L1 to L2 (s2m) and L2 to L1 (m2s) over those of base, by reason",
        &columns,
    );
    let [mut strong, mut without] = [None; 2];
    for reason in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let has = |kernel: &&PaperKernel| PUBLISHED.text("table2", kernel.name, "reason") == Some(reason);
        let found: Vec<(&str, [[f64; 2]; 2])> = kernels::of(request)
            .filter(has)
            .filter_map(|kernel| Some((kernel.name, of_kernel(kernel, runs)?)))
            .collect();
        if found.is_empty() {
            continue;
        }
        let bytes: Vec<[[f64; 2]; 2]> = found.iter().map(|(_, bytes)| *bytes).collect();
        let [t, nt] = mean(&bytes);
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        let mut row = vec![Cell::from(reason), Cell::Text(names.join(" "))];
        row.extend([t[0], nt[0], t[1], nt[1]].map(|value| Cell::Number(value, 3)));
        table.push(row);
        // An ask about a reason is about all of its kernels: with one left out, there is no verdict.
        let whole = (found.len() == KERNELS.iter().filter(has).count()).then_some([t, nt]);
        match reason {
            "b" => strong = whole,
            "f" => without = whole,
            _ => {}
        }
    }
    let notes = vec!["reasons are those that the paper gives the kernels".to_owned()];
    Finding { tables: vec![table], asks: traffic(strong, without), notes, ..Finding::default() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn means_are_by_scheme_and_direction() {
        let mean = super::mean(&[[[1.0, 2.0], [3.0, 4.0]], [[3.0, 4.0], [5.0, 8.0]]]);
        assert_eq!(mean, [[2.0, 3.0], [4.0, 6.0]]);
    }
}
