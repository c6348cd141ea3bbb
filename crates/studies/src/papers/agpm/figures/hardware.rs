//! Table III and section IV-C: rules and arithmetic on published numbers. Nothing here is a measurement.

use crate::papers::agpm::kernels::KERNELS;
use crate::papers::agpm::published::PUBLISHED;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_persist::selection::Locality;
use durawarp_schemes::agpm::reason::{Evidence, Reason, Rules};
use durawarp_simulation::config::SchemeConfig;

/// Log updates that leave every rule but e open.
const MANY_LOGS: u64 = 1000;

/// A published row of Table II. The paper itself labels SGEMM and NW by their shared memory.
fn evidence(kernel: &str) -> Evidence {
    let n = |quantity: &str| PUBLISHED.number("table2", kernel, quantity).unwrap_or(0.0) as u64;
    let at = |level: &str| {
        let n = |kind: &str| n(&format!("{level}_{kind}"));
        Locality { t_all: n("t_all"), t_log: n("t_log"), s_all: n("s_all"), s_log: n("s_log") }
    };
    Evidence { l1: at("l1d"), l2: at("l2"), logs: n("log"), shared_memory: ["SGEMM", "NW"].contains(&kernel) }
}

/// Patterns of zeros in both caches that can be, and how many of them no rule covers: temporal accesses are
/// among the spatial ones, log updates among all.
fn patterns() -> (usize, usize) {
    let one = || {
        (0..16u64)
            .map(|bits| Locality { t_all: bits & 1, t_log: bits >> 1 & 1, s_all: bits >> 2 & 1, s_log: bits >> 3 })
            .filter(|l| l.t_log <= l.t_all && l.s_log <= l.s_all && l.t_all <= l.s_all && l.t_log <= l.s_log)
    };
    let both = one().flat_map(|l1| one().map(move |l2| Evidence { l1, l2, logs: MANY_LOGS, shared_memory: false }));
    let all: Vec<Evidence> = both.collect();
    (all.iter().filter(|evidence| Rules::PAPER.reason(evidence) == Reason::None).count(), all.len())
}

/// Table III.
pub(crate) fn rules(_: &Request, _: &Runs<'_>) -> Finding {
    let columns = ["kernel", "reason by our rules", "published", "rules that hold"];
    let mut table =
        FigureTable::new("table3", "reasons that our rules give to the published rows of Table II", &columns);
    let mut right = 0;
    for kernel in KERNELS {
        let evidence = evidence(kernel.name);
        let found = Rules::PAPER.reason(&evidence).letter();
        let printed = PUBLISHED.text("table2", kernel.name, "reason").unwrap_or("-");
        right += usize::from(found == printed);
        let hold: Vec<&str> = Rules::PAPER.holding(&evidence).map(Reason::letter).collect();
        table.push(vec![Cell::from(kernel.name), Cell::from(found), Cell::from(printed), Cell::Text(hold.join(" "))]);
    }
    let (uncovered, all) = patterns();
    let notes = vec![
        "the paper gives no precedence; h, then e before the others is what its rows ask for".to_owned(),
        format!("our rules give {right} of {} published rows their published reason", KERNELS.len()),
        format!("{uncovered} of {all} patterns of zeros are covered by no rule"),
    ];
    let unmeasured = "the counts are the published ones, no measurement of ours: what our runs count is in table2";
    Finding { tables: vec![table], unmeasured: Some(unmeasured), notes, ..Finding::default() }
}

/// AGPM's buffers: from the scheme's parameters as they are by default, and the address and the line that
/// section IV-C names.
pub(crate) fn sizes(_: &Request, _: &Runs<'_>) -> Finding {
    let scheme = SchemeConfig::load("agpm", &[]).ok();
    let parameter = |key: &str| scheme.as_ref().and_then(|scheme| scheme.values.get(key)?.as_u64()).unwrap_or(0);
    let (address_bits, line_bytes) = (64u64, 128u64);
    let (counter_bits, entries) = (parameter("agpm.counter_bits"), parameter("agpm.entries"));
    let tag = address_bits - u64::from(line_bytes.ilog2());
    let counters = line_bytes + 2;
    let bits = tag + counters * counter_bits;
    let entry_bytes = bits.div_ceil(8);
    let buffer_kb = entries * entry_bytes / 1024;
    let both_kb = 2 * buffer_kb;
    let mut table = FigureTable::new("overheads", "AGPM's hardware", &["quantity", "by arithmetic", "published"]);
    let mut row = |name: &str, ours: u64, published: Option<f64>| {
        table.push(vec![Cell::from(name), Cell::Count(ours), Cell::count(published.map(|value| value as u64))]);
    };
    let printed = |quantity| PUBLISHED.number("overheads", "AGPM", quantity);
    row("tag of an entry (bits)", tag, None);
    row("counters of an entry: one a byte, the block's, the mark's", counters, None);
    row("entry (bits)", bits, printed("entry_bits"));
    row("entry (bytes, rounded up)", entry_bytes, None);
    row("entries of a buffer", entries, printed("entries"));
    row("buffer (KiB)", buffer_kb, printed("buffer_kb"));
    row("buffers of one L1 and of the L2 (KiB)", both_kb, printed("both_kb"));
    let unmeasured = "sizes follow from the scheme's default parameters by arithmetic, no measurement of ours";
    Finding { tables: vec![table], unmeasured: Some(unmeasured), ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request::new(crate::papers::find("agpm").unwrap())
    }

    #[test]
    fn sizes_by_arithmetic_are_the_published_ones() {
        let found = sizes(&request(), &Runs::default());
        let published: Vec<_> = found.tables[0].rows.iter().filter(|row| row[2] != Cell::None).collect();
        assert_eq!(published.len(), 4);
        assert!(published.iter().all(|row| row[1] == row[2]), "{published:?}");
        assert!(found.asks.is_empty() && found.unmeasured.is_some());
    }

    #[test]
    fn the_rules_give_every_published_row_its_published_reason() {
        let found = rules(&request(), &Runs::default());
        let rows = &found.tables[0].rows;
        assert!(rows.len() == 22 && rows.iter().all(|row| row[1] == row[2]), "{rows:?}");
        assert!(found.notes.iter().any(|note| note.starts_with("16 of 36 patterns")), "{:?}", found.notes);
        assert!(found.asks.is_empty() && found.unmeasured.is_some());
    }
}
