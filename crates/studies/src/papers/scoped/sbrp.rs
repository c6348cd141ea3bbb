//! SBRP beside the waiting implementation, on Table 2's machine and on that of SBRP's artifact.
//!
//! Source: SBRP (ASPLOS 2023), its public artifact for GPGPU-Sim: 30 SMs, persist buffers of 256 entries, a
//! window of 6 lines in a sweep from 2 to 12, persistent memory near and far, and a model beside it that
//! waits at every fence. The paper's numbers are not at hand: what is asked are orders. The scoped paper,
//! five years older, says nothing of it. Not modelled: the artifact's bandwidths of persistent memory, its 12
//! partitions, its programs (the insertion stands for them).

#[cfg(test)]
pub(super) mod tests;

use super::runs::{self, BarrierScope, KERNEL, SCHEMES};
use crate::papers::{Ask, Cell, FigureTable, Finding, Request, Run, Runs};

/// Windows: the least of the artifact's sweep, the one of its evaluation, the widest of its sweep; and as
/// many lines for 4 CUs, within a fifth, as 6 are for 30 SMs.
pub(crate) const WINDOWS: [u32; 4] = [2, 6, 12, 48];
/// Rounding, where an order is asked that equal values meet.
const EQUAL: f64 = 1e-9;
/// What a wider window may gain over one that suffices. Ours: the artifact chose 6 of a sweep that went on.
const SUFFICES: f64 = 0.05;

/// A machine and its persistent memory.
#[derive(Debug)]
pub(crate) struct SbrpMachine {
    name: &'static str,
    set: &'static [&'static str],
}

/// Table 2's, and the artifact's SMs with its near and far memory (300 and 900 cycles of 1365 MHz).
pub(crate) const MACHINES: [SbrpMachine; 3] = [
    SbrpMachine { name: "4 CUs, 75/250 ns", set: &[] },
    SbrpMachine {
        name: "30 SMs, near",
        set: &["sm.count=30", "nvm.t_rcd_ns=210", "nvm.t_ras_ns=210", "nvm.cell_write_ns=210"],
    },
    SbrpMachine {
        name: "30 SMs, far",
        set: &["sm.count=30", "nvm.t_rcd_ns=649", "nvm.t_ras_ns=649", "nvm.cell_write_ns=649"],
    },
];

/// The largest tree, which fills the most SMs.
fn ctas(request: &Request) -> u32 {
    runs::sizes(request).last().copied().unwrap_or(1)
}

/// Barriers of the workgroup that wait.
pub(crate) fn waits(machine: &SbrpMachine, ctas: u32) -> Run {
    runs::tree(SCHEMES[0], BarrierScope::Workgroup, ctas).with(machine.name, machine.set.iter().copied())
}

/// The same under SBRP, with a window.
pub(crate) fn buffers(machine: &SbrpMachine, window: u32, ctas: u32) -> Run {
    let run = runs::tree("sbrp", BarrierScope::Workgroup, ctas).with(machine.name, machine.set.iter().copied());
    run.with(&format!("window {window}"), [format!("sbrp.window={window}").as_str()])
}

/// Its runs.
pub(super) fn runs(request: &Request) -> Vec<Run> {
    let ctas = ctas(request);
    let of = |machine| [vec![waits(machine, ctas)], WINDOWS.map(|window| buffers(machine, window, ctas)).to_vec()];
    MACHINES.iter().flat_map(|machine| of(machine).concat()).collect()
}

/// Times under SBRP over the waiting implementation's on the same machine, by window.
type WindowTimes = [f64; WINDOWS.len()];

/// What may be asked of the times on [`MACHINES`].
pub(crate) fn asks(times: &[Option<WindowTimes>; MACHINES.len()]) -> Vec<Ask> {
    const MISSING: &str = "not all of it was run";
    let [table2, near, far] = *times;
    let words = |times: &WindowTimes| {
        let word = |(window, time): (&u32, &f64)| format!("{window}: {time:.3}");
        WINDOWS.iter().zip(times).map(word).collect::<Vec<_>>().join(", ")
    };
    let both = near.zip(far);
    // Fails where the window limits what the memory could take.
    let suffices = |text, of: Option<WindowTimes>| {
        Ask::about(text, of, MISSING, |times| (times[1] - times[2] < SUFFICES * times[1], words(&times)))
    };
    // One ask about each machine alone, and three about several.
    let all = table2.zip(both).map(|(table2, (near, far))| [table2, near, far]);
    vec![
        Ask::about(
            // Fails where barriers that wait are faster.
            "on 30 SMs the artifact's window of 6 is not slower than waiting at barriers, near and far",
            both,
            MISSING,
            |(near, far)| {
                let evidence = format!("time over waiting, near {:.3}, far {:.3}", near[1], far[1]);
                (near[1] <= 1.0 + EQUAL && far[1] <= 1.0 + EQUAL, evidence)
            },
        ),
        Ask::about("on 30 SMs the gain over waiting is greater far than near", both, MISSING, |(near, far)| {
            (far[1] < near[1] - EQUAL, format!("time over waiting, near {:.3}, far {:.3}", near[1], far[1]))
        }),
        // Fails where lines under way keep others from the banks.
        Ask::about("a wider window never costs time, on any of the machines", all, MISSING, |all| {
            let falls = |times: &WindowTimes| times.is_sorted_by(|narrow, wide| wide - narrow <= EQUAL);
            (all.iter().all(falls), all.iter().map(words).collect::<Vec<_>>().join("; "))
        }),
        suffices("near, a window of 6 suffices for 30 SMs: 12 gains less than 5 %", near),
        suffices("far, a window of 6 suffices for 30 SMs: 12 gains less than 5 %", far),
        suffices("a window of 6 suffices for Table 2's 4 CUs: 12 gains less than 5 %", table2),
    ]
}

/// The figure.
pub(super) fn finding(request: &Request, runs: &Runs<'_>) -> Finding {
    let (ctas, columns) = (ctas(request), WINDOWS.map(|window| format!("window {window}")));
    let title = format!("time under sbrp over that under nvw-fifo on the same machine, wg, {ctas} CTAs, by window");
    let names: Vec<&str> = ["machine", "nvw-fifo (us)"].into_iter().chain(columns.iter().map(String::as_str)).collect();
    let mut table = FigureTable::new("sbrp", &title, &names);
    let ps = |run: &Run| Some(runs.outcome(run)?.kernel(KERNEL)?.time.ps as f64);
    let times = MACHINES.each_ref().map(|machine| {
        let below = ps(&waits(machine, ctas));
        let times = WINDOWS.map(|window| Some(ps(&buffers(machine, window, ctas))? / below?));
        let mut row = vec![Cell::from(machine.name), Cell::number(below.map(|ps| ps / 1e6))];
        row.extend(times.map(Cell::number));
        table.push(row);
        times.iter().copied().collect::<Option<Vec<f64>>>().and_then(|times| WindowTimes::try_from(times).ok())
    });
    let notes = [
        "SBRP's paper (ASPLOS 2023) is not at hand: the asks are of its artifact, whose evaluation has 30 SMs and a window of 6 \
         out of 2 to 12, near and far memory, beside a model that waits at fences; that 12 may gain 5 % is ours",
        "the scoped paper is older and says nothing of SBRP",
        "left out: the artifact's bandwidths of persistent memory and its 12 partitions; the SMs, the L2 and the banks are Table 2's",
    ];
    let notes = notes.map(str::to_owned).to_vec();
    Finding { tables: vec![table], asks: asks(&times), notes, ..Finding::default() }
}
