//! Table II and section IV-E: bytes of hardware by arithmetic on parameters, beside the paper's. No run has a
//! part in it.
//!
//! The paper contradicts itself twice: its 8 units of 4 bits are 4 B an entry and 32 B in 8 entries, where
//! Table II has "32B per core"; two remote entries of 8 units of 4 bits are 8 B and the text gives each one
//! register, where Table II has "4B overall" and two. Area and power of control logic are the paper's alone:
//! nothing was synthesised.

use super::published::PUBLISHED;
use super::runs::SCHEMES;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_simulation::config::{AnyMachine, SchemeConfig};

/// Bits of an index into a persist buffer, as printed.
const INDEX_BITS: u64 = 4;
/// Bits of a barrier index register: of 8 units.
const REGISTER_BITS: u64 = 3;
/// Bytes of an entry of a persist buffer: a line of 64 and 8 for its address, type, number and dependencies.
const ENTRY_BYTES: u64 = 72;
/// Bits of a fence's filter, and bytes of accumulated dependencies of an entry.
const FILTER_BITS: u64 = 256;
const ACCUMULATED_BYTES: u64 = 8;
/// Remote entries: channels of RDMA, all together.
const REMOTE_ENTRIES: u64 = 2;

/// Sizes of the hardware.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hardware {
    harts: u64,
    pb_entries: u64,
    units: u64,
    registers: u64,
}

impl Hardware {
    fn of(request: &Request) -> Option<Hardware> {
        let AnyMachine::Cpu(machine) = AnyMachine::load(&request.machine, &request.set).ok()? else { return None };
        let own: Vec<_> = request.scheme_set.iter().filter(|over| over.table() == SCHEMES[1]).cloned().collect();
        let scheme = SchemeConfig::load(SCHEMES[1], &own).ok()?;
        let value = |name: &str| scheme.values.get(&format!("broi.{name}")).and_then(|value| value.as_u64());
        Some(Hardware {
            harts: u64::from(machine.spec.core.count) * u64::from(machine.spec.core.harts),
            pb_entries: value("pb_entries")?,
            units: value("units")?,
            registers: value("barrier_registers")?,
        })
    }

    /// What, as the published values call it, ours, and how it is made.
    fn rows(&self) -> Vec<(&'static str, &'static str, f64, String)> {
        let Hardware { harts, pb_entries, units, registers } = *self;
        let (dependencies, entry_bits) = (pb_entries * (FILTER_BITS / 8 + ACCUMULATED_BYTES), units * INDEX_BITS);
        let local =
            format!("{harts} entries of {units} units of {INDEX_BITS} bits: {} B each", entry_bits as f64 / 8.0);
        let registers = |entries: u64| (registers * REGISTER_BITS) as f64 * entries as f64 / 8.0;
        let filters = format!(
            "{pb_entries} filters of {} B, and {pb_entries} x {ACCUMULATED_BYTES} B (inferred)",
            FILTER_BITS / 8
        );
        let entries = format!("{pb_entries} entries of {ENTRY_BYTES} B: a line of 64 B and 8 B beside it");
        // Entries of clients are counted though none runs here: the paper's number is one of two.
        let remote = format!("{REMOTE_ENTRIES} entries of {units} units of {INDEX_BITS} bits, for all clients");
        // In the order of Table II.
        vec![
            ("dependency tracking", "B a buffer", dependencies as f64, filters),
            ("persist buffer entry", "B", ENTRY_BYTES as f64, "a line of 64 B and 8 B beside it".to_owned()),
            ("persist buffer", "B", (pb_entries * ENTRY_BYTES) as f64, entries),
            (
                "persist buffers",
                "B in all",
                (harts * pb_entries * ENTRY_BYTES) as f64,
                format!("one for each of {harts} harts"),
            ),
            ("local BROI queues", "B in all", (harts * entry_bits) as f64 / 8.0, local),
            (
                "local BROI queues",
                "B of index registers in all",
                registers(harts),
                format!("{REGISTER_BITS} bits each"),
            ),
            ("remote BROI queues", "B overall", (REMOTE_ENTRIES * entry_bits) as f64 / 8.0, remote),
        ]
    }
}

/// Table II.
pub(super) fn table2(request: &Request, _: &Runs<'_>) -> Finding {
    let ours: Vec<_> = Hardware::of(request).iter().flat_map(Hardware::rows).collect();
    let mut own =
        FigureTable::new("table2", "hardware by arithmetic on parameters", &["what", "quantity", "ours", "ours is"]);
    for (what, quantity, bytes, meaning) in &ours {
        own.push(vec![Cell::from(*what), Cell::from(*quantity), Cell::Number(*bytes, 1), Cell::from(meaning.as_str())]);
    }
    // As printed, beside it: a row of ours is seldom one of the paper's.
    let mut printed = FigureTable::new(
        "table2_told",
        "what Table II and section IV-E print",
        &["what", "quantity", "published", "source"],
    );
    for row in PUBLISHED.all().filter(|row| row.experiment == "table2") {
        printed.push([row.kernel, row.quantity, row.value, row.source].map(Cell::from).to_vec());
    }
    let notes = [
        "the paper disagrees with itself: 8 units of 4 bits in each of 8 entries are 4 B an entry and 32 B in all, Table II has 32 B \
         per core",
        "the paper disagrees with itself: two remote entries of 8 units of 4 bits are 8 B with one index register each in the text, \
         Table II has 4 B overall and two registers",
        "area and power of the control logic are the paper's: nothing was synthesised here",
    ];
    Finding {
        tables: vec![own, printed],
        unmeasured: Some("arithmetic on parameters: no measurement of ours"),
        notes: notes.map(str::to_owned).to_vec(),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_papers_sizes() {
        let hardware = Hardware::of(&Request::new(&super::super::PAPER)).unwrap();
        assert_eq!(hardware, Hardware { harts: 8, pb_entries: 8, units: 8, registers: 2 });
        let of = |what, quantity| hardware.rows().into_iter().find(|row| (row.0, row.1) == (what, quantity)).unwrap().2;
        assert_eq!([of("dependency tracking", "B a buffer"), of("persist buffer", "B")], [320.0, 576.0]);
        assert_eq!([of("local BROI queues", "B in all"), of("remote BROI queues", "B overall")], [32.0, 8.0]);
        assert_eq!(of("local BROI queues", "B of index registers in all"), 6.0, "8 x 2 x 3 bits");
        let finding = table2(&Request::new(&super::super::PAPER), &Runs::default());
        assert_eq!(finding.notes.iter().filter(|note| note.contains("disagrees with itself")).count(), 2);
        assert!(finding.unmeasured.is_some() && finding.asks.is_empty());
    }
}
