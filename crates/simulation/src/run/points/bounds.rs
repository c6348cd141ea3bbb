//! Where a region of interest begins and ends, in instructions: found by a run on the functional driver.

use durawarp_riscv::functional::{FunctionalRun, Observer, Options};
use durawarp_riscv::instruction::{Class, Inst, RA};
use durawarp_riscv::process::Process;

use crate::run::region_of_interest::{Marker, RegionOfInterest};

/// Instructions between two looks whether both bounds are known.
const LOOK: u64 = 1 << 20;

/// What of a region is known. Instructions count from 0.
#[derive(Debug, Default)]
struct Bounds {
    /// Address of the function; none where markers are looked for.
    entry: Option<u64>,
    executed: u64,
    from: Option<u64>,
    to: Option<u64>,
    /// Where the call returns to, and how many calls from there are open.
    returns_to: Option<u64>,
    calls: u64,
    /// Where the instruction before returns to, if it is a call.
    called: Option<u64>,
}

impl Bounds {
    fn function(&mut self, entry: u64, pc: u64) {
        if pc == entry && self.from.is_none() {
            (self.from, self.returns_to, self.calls) = (Some(self.executed), self.called, 1);
        } else if pc == entry && self.returns_to.is_some() && self.called == self.returns_to {
            self.calls += 1;
        } else if self.from.is_some() && self.returns_to == Some(pc) {
            self.calls -= 1;
            if self.calls == 0 {
                (self.to, self.returns_to) = (Some(self.executed), None);
            }
        }
    }
}

impl Observer for Bounds {
    fn executes(&mut self, _hart: u32, pc: u64, inst: &Inst, _base: u64) {
        if self.to.is_none() {
            match (self.entry, Marker::of(inst)) {
                (Some(entry), _) => self.function(entry, pc),
                (None, Some(Marker::Begin)) if self.from.is_none() => self.from = Some(self.executed + 1),
                (None, Some(Marker::End)) if self.from.is_some() => self.to = Some(self.executed),
                (None, _) => {}
            }
        }
        let calls = inst.class() == Class::Jump && inst.rd == RA;
        self.called = calls.then(|| pc.wrapping_add(u64::from(inst.length)));
        self.executed += 1;
    }
}

/// The first instruction of the region, and the first one after it; none where it ends with the program.
///
/// # Errors
/// The program never comes to the region.
pub(super) fn find(
    region: &RegionOfInterest,
    process: &Process,
    options: &Options<'_>,
) -> Result<(u64, Option<u64>), String> {
    let (entry, never) = match region {
        &RegionOfInterest::Instructions(from, to) => return Ok((from, to)),
        RegionOfInterest::Markers => {
            (None, "the program never executes the marker that begins a region, `slti x0, x0, 1`".to_owned())
        }
        RegionOfInterest::Function(name) => {
            let function = process.image.functions.iter().find(|function| function.name == *name);
            let function = function.ok_or_else(|| format!("the program has no function `{name}`"))?;
            (Some(function.address), format!("the program never calls `{name}`"))
        }
    };
    let observer = Bounds { entry, ..Bounds::default() };
    let mut run = FunctionalRun::new(process, process.memory(), options, observer);
    while run.advance(LOOK) && run.observer().to.is_none() {}
    let Bounds { from, to, .. } = run.observer();
    Ok((from.ok_or(never)?, *to))
}
