//! Section V-G4: bytes of hardware by arithmetic on the scheme's parameters, beside the paper's. What is
//! counted is said in [`crate::papers::lightwsp::cost`]; of Capri and PPA there is what the paper prints.

use super::runs::{self, LABEL};
use crate::papers::lightwsp::cost::{ARITHMETIC, Hardware, table};
use crate::papers::{Finding, Request, Runs};
use durawarp_simulation::config::{AnyMachine, Compute, SchemeConfig};

fn hardware(request: &Request) -> Option<Hardware> {
    let AnyMachine::Cpu(machine) = AnyMachine::load(&request.machine, &request.set).ok()? else { return None };
    let scheme = SchemeConfig::load_on(Compute::Cpu, runs::SCHEME, &request.scheme_set).ok()?;
    let value = |key: &str| scheme.values.get(&format!("{}.{key}", scheme.table())).and_then(|value| value.as_u64());
    Some(Hardware {
        hosts: ("cores", machine.spec.core.count.into()),
        controllers: machine.spec.controller.channels.into(),
        feb_entries: value("feb_entries")?,
        wpq_entries: value("wpq_entries")?,
        entry_bytes: value("entry_bytes")?,
        id_bits: value("id_bits")?,
        orders: 1,
    })
}

/// Section V-G4.
pub(super) fn bytes(request: &Request, _: &Runs<'_>) -> Finding {
    let table = table("g4", "bytes of hardware", hardware(request));
    Finding { tables: vec![table], unmeasured: Some(ARITHMETIC), notes: vec![LABEL.to_owned()], ..Finding::default() }
}
