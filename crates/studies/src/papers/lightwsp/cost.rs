//! Section V-G4: bytes of hardware, the port's beside the paper's. Arithmetic on parameters; no run has a
//! part in it.
//!
//! Counted as the paper counts: data bytes of buffers, without tags; what a core is there is an SM here. The
//! paper adds the flush IDs alone, since a core has a write-combining buffer and a controller a WPQ of those
//! sizes anyway: a GPU's controller has no WPQ of the port's size. Not counted on either side: region IDs of
//! entries, and here the sequencer's table of lines under atomics and the slices' counts of copies on their
//! way.

use super::published::{LABEL, PUBLISHED};
use super::runs;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_simulation::config::MachineConfig;

/// Sizes of the hardware.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hardware {
    /// What has a front-end buffer: its name, and how many there are.
    pub(crate) hosts: (&'static str, u64),
    pub(crate) controllers: u64,
    pub(crate) feb_entries: u64,
    pub(crate) wpq_entries: u64,
    pub(crate) entry_bytes: u64,
    pub(crate) id_bits: u64,
    /// Orders of regions, each with a flush ID.
    pub(crate) orders: u64,
}

impl Hardware {
    fn of(request: &Request) -> Option<Hardware> {
        let spec = MachineConfig::load(&request.machine, &request.set).ok()?.spec;
        let names = ["feb_entries", "wpq_entries", "entry_bytes", "id_bits"];
        let [feb_entries, wpq_entries, entry_bytes, id_bits] = runs::parameters(request, names)?;
        let (sms, controllers) = (u64::from(spec.sm.count), u64::from(spec.controller.channels));
        let order = runs::scheme(request)?.values.get("light_wsp.order").cloned()?;
        let orders = if order == "global" { 1 } else { sms };
        Some(Hardware { hosts: ("SMs", sms), controllers, feb_entries, wpq_entries, entry_bytes, id_bits, orders })
    }

    fn flush_ids_bytes(&self) -> u64 {
        self.id_bits.div_ceil(8) * self.orders
    }

    /// What, as the published values call it, how many bytes, and of what.
    fn rows(&self) -> [(&'static str, f64, String); 5] {
        let (feb, wpq) = (self.feb_entries * self.entry_bytes, self.wpq_entries * self.entry_bytes);
        let entries = |entries: u64| format!("{entries} entries of {} B", self.entry_bytes);
        let flush_ids = self.flush_ids_bytes() * self.controllers;
        [
            ("front-end buffer (B a core)", feb as f64, entries(self.feb_entries)),
            ("gated WPQ (B a controller)", wpq as f64, entries(self.wpq_entries)),
            (
                "flush IDs (B a controller)",
                self.flush_ids_bytes() as f64,
                format!("{} of {} bits", self.orders, self.id_bits),
            ),
            (
                "added (B a core)",
                flush_ids as f64 / self.hosts.1 as f64,
                format!("flush IDs of {} controllers over {} {}", self.controllers, self.hosts.1, self.hosts.0),
            ),
            (
                "battery-backed in all (B)",
                (wpq * self.controllers + flush_ids) as f64,
                format!("WPQs and flush IDs of {} controllers", self.controllers),
            ),
        ]
    }
}

/// Bytes of hardware, those of some machine beside the paper's.
pub(crate) fn table(name: &str, title: &str, hardware: Option<Hardware>) -> FigureTable {
    let columns = ["scheme", "what", "published", "ours", "ours is", "source"];
    let mut table = FigureTable::new(name, title, &columns);
    let ours: Vec<_> = hardware.iter().flat_map(Hardware::rows).collect();
    let published = |what: &str| {
        PUBLISHED.all().find(|row| (row.experiment, row.kernel, row.quantity) == ("cost", runs::SCHEME, what))
    };
    for (what, bytes, meaning) in &ours {
        let row = published(what);
        let cells =
            [row.map(|row| row.value), row.map(|row| row.source)].map(|cell| cell.map_or(Cell::None, Cell::from));
        let [value, source] = cells;
        table.push(vec![
            Cell::from(runs::SCHEME),
            Cell::from(*what),
            value,
            Cell::Number(*bytes, 1),
            Cell::from(meaning.as_str()),
            source,
        ]);
    }
    // Of other schemes there is only what the paper prints.
    for row in PUBLISHED.all().filter(|row| row.experiment == "cost" && row.kernel != runs::SCHEME) {
        let [name, what, value, source] = [row.kernel, row.quantity, row.value, row.source].map(Cell::from);
        table.push(vec![name, what, value, Cell::None, Cell::None, source]);
    }
    table
}

/// Why nothing of it is asked.
pub(crate) const ARITHMETIC: &str = "arithmetic on parameters: no measurement of ours";

/// Section V-G4.
pub(super) fn hardware(request: &Request, _: &Runs<'_>) -> Finding {
    let table = table("cost", "bytes of hardware: a core is an SM here", Hardware::of(request));
    Finding {
        tables: vec![table],
        unmeasured: Some(ARITHMETIC),
        notes: vec![
            LABEL.to_owned(),
            "the paper counts flush IDs alone as added: its buffers are those that a CPU has; no GPU controller is known to \
             have a battery-backed WPQ of the port's size"
                .to_owned(),
        ],
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_sizes_give_the_papers_bytes() {
        let paper = Hardware {
            hosts: ("cores", 8),
            controllers: 2,
            feb_entries: 64,
            wpq_entries: 64,
            entry_bytes: 8,
            id_bits: 16,
            orders: 1,
        };
        let bytes = paper.rows().map(|(what, bytes, _)| (what, bytes));
        assert_eq!(bytes.map(|(_, bytes)| bytes), [512.0, 512.0, 2.0, 0.5, 1028.0]);
        for (what, bytes) in &bytes[..4] {
            let row = PUBLISHED.all().find(|row| row.kernel == runs::SCHEME && row.quantity == *what).unwrap();
            assert_eq!(row.value.parse(), Ok(*bytes), "{what}");
        }
        let port =
            Hardware { hosts: ("SMs", 20), controllers: 8, wpq_entries: 4096, entry_bytes: 128, orders: 20, ..paper };
        assert_eq!(port.rows().map(|(_, bytes, _)| bytes), [8192.0, 524_288.0, 40.0, 16.0, 4_194_624.0]);
    }
}
