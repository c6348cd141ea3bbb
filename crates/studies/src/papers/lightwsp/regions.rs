//! Section V-G3: how long regions are and what they cost in instructions. A count of the formed kernels on
//! the functional driver, with the scheme's parameters; no machine has a part in it.

use super::ask;
use super::published::{LABEL, told};
use super::runs;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_kernel::functional::Limits;
use durawarp_kernel::regions::RegionOptions;
use durawarp_simulation::run::region_options;
use durawarp_workload::{Choice, RegionRun, Workload};

/// What a workload's regions came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    original: u64,
    instructions: u64,
    regions: u64,
    stores: u64,
}

impl Counts {
    fn of(run: &RegionRun) -> Counts {
        let mut sums = Counts::default();
        for kernel in &run.kernels {
            sums.add(Counts {
                original: kernel.original,
                instructions: kernel.instructions,
                regions: kernel.regions,
                stores: kernel.stores,
            });
        }
        sums
    }

    fn add(&mut self, other: Counts) {
        self.original += other.original;
        self.instructions += other.instructions;
        self.regions += other.regions;
        self.stores += other.stores;
    }

    /// Instructions more, instructions a region, stores a region.
    fn statistics(&self) -> [Option<f64>; 3] {
        let by = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        [
            by(self.instructions, self.original).map(|ratio| ratio - 1.0),
            by(self.instructions, self.regions),
            by(self.stores, self.regions),
        ]
    }
}

/// How the scheme forms regions, where it is there; else as the compiler's own defaults, which are the
/// paper's.
fn options(request: &Request) -> RegionOptions {
    let rule = runs::scheme(request).and_then(|scheme| scheme.built.regions());
    rule.map_or_else(RegionOptions::default, region_options)
}

fn counted(request: &Request, kernel: &str) -> Result<Counts, String> {
    let choice = Choice { profile: Some(request.profile.clone()), seed: request.seed, ..Choice::default() };
    let workload = Workload::load(kernel).and_then(|workload| workload.resolve(&choice));
    let workload = workload.map_err(|faults| faults.to_string())?;
    let run =
        workload.run_regions(&Limits::default(), &options(request)).map_err(|fault| format!("{kernel}: {fault}"))?;
    if run.same_memory { Ok(Counts::of(&run)) } else { Err(format!("{kernel}: regions changed what it computes")) }
}

/// Section V-G3.
pub(super) fn statistics(request: &Request, _: &Runs<'_>) -> Finding {
    let columns = ["kernel", "regions", "more instructions", "instructions a region", "stores a region"];
    let mut table = FigureTable::new("regions", "regions of the formed kernels, on the functional driver", &columns);
    let (mut sums, mut faults) = (Counts::default(), Vec::new());
    let row = |name: &str, counts: &Counts| {
        let [more, instructions, stores] = counts.statistics();
        let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 2));
        let more = more.map_or(Cell::None, Cell::Share);
        vec![Cell::from(name), Cell::Count(counts.regions), more, number(instructions), number(stores)]
    };
    // A kernel that could not be counted is in no sum; the ask and the notes say why.
    for kernel in &request.kernels {
        match counted(request, kernel) {
            Ok(counts) => {
                table.push(row(kernel, &counts));
                sums.add(counts);
            }
            Err(why) => faults.push(why),
        }
    }
    table.push(row("all", &sums));
    let [more, instructions, stores] = sums.statistics();
    let ours = [("more instructions", more), ("instructions a region", instructions), ("stores a region", stores)];
    let mut notes = vec![
        LABEL.to_owned(),
        "a store is a word of 8 bytes a lane; checkpoints and boundaries count, a boundary as one instruction"
            .to_owned(),
    ];
    if !request.has_paper_sizes() {
        notes.push(format!("sizes are those of profile `{}`", request.profile));
    }
    let mut asks = vec![ask::whole(&faults)];
    asks.extend(ask::regions(sums.statistics()));
    notes.extend(faults);
    Finding { tables: vec![table, told("regions", &ours)], asks, notes, ..Finding::default() }
}
