//! The regions of a program as a table by pc, and how it is made.

use super::bounds::{Ground, Solver};
use super::graph::{Flow, Graph, NONE};
use super::liveness::live_in;
use super::place::Boundaries;
use super::places::PcMap;
use super::terms::{ALL, BoundaryReason, RegionError, RegionOptions, RegisterSet, THRESHOLD_MIN, UNROLL_MAX, written};
use super::units::{Unit, units};
use super::values::{KnownValues, Recipe, one_global_pointer};
use crate::code::CodeTable;
use crate::elf::Executable;
use crate::instruction::Inst;

/// A boundary before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// The instruction.
    pub pc: u64,
    /// Why it is there.
    pub reason: BoundaryReason,
    /// Registers that are stored if they were written since they were stored last.
    pub stored: RegisterSet,
    /// Those of them that may have been written, as far as its function tells: where a call or an indirect
    /// jump leads here, others may have been, too.
    pub written: RegisterSet,
    /// Registers that recovery computes ([`RegionTable::restore`]). They count as written still.
    pub computed: RegisterSet,
    /// It is executed once `every` - 1 boundaries were passed without being executed since the hart's last
    /// one; 1: always.
    pub every: u8,
}

/// The boundary before each instruction of unknown code.
const UNKNOWN: Boundary =
    Boundary { pc: 0, reason: BoundaryReason::Unknown, stored: ALL, written: ALL, computed: 0, every: 1 };

impl Boundary {
    /// The one that a core executes behind a jump to where the table has none.
    pub const fn at_a_jump() -> Boundary {
        Boundary { reason: BoundaryReason::Indirect, ..UNKNOWN }
    }
}

/// How recovery gets the registers that a boundary did not store, but for those that were not written.
pub type Restore = Vec<(u8, Recipe)>;

/// A function, for those who read about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionRegions {
    pub name: String,
    /// Its first address.
    pub address: u64,
    pub instructions: u32,
    /// Its boundaries: a range of [`RegionTable::boundaries`].
    pub boundaries: std::ops::Range<u32>,
}

/// The regions of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionTable {
    places: PcMap,
    boundaries: Vec<Boundary>,
    restores: Vec<Restore>,
    functions: Vec<FunctionRegions>,
    options: RegionOptions,
    merged: u32,
    /// The program reads accrued exceptions of floating point.
    exceptions: bool,
}

/// Marks in a place of the table, above the number of a boundary.
const NO_BOUNDARY: u32 = (1 << 30) - 1;
/// The instruction is a jump to anywhere.
const JUMPS_ANYWHERE: u32 = 1 << 30;

/// All that keeps a program from being formed: a threshold that is too small, a factor out of range, no
/// symbols. Costs a look at each instruction; forming solves for sets of registers.
pub fn check(image: &Executable, code: &CodeTable, options: &RegionOptions) -> Vec<RegionError> {
    faults(&Graph::of(image, code), options)
}

fn faults(graph: &Graph, options: &RegionOptions) -> Vec<RegionError> {
    let RegionOptions { threshold_stores, unroll_factor, .. } = *options;
    let few = (threshold_stores < THRESHOLD_MIN).then_some(RegionError::Threshold(threshold_stores));
    let often = (!(1..=UNROLL_MAX).contains(&unroll_factor)).then_some(RegionError::Unroll(unroll_factor));
    let stripped = graph.nodes.is_empty().then_some(RegionError::Stripped);
    [few, often, stripped].into_iter().flatten().collect()
}

/// Forms the regions of a program.
///
/// # Errors
/// The first of what [`check`] finds.
pub fn form(image: &Executable, code: &CodeTable, options: &RegionOptions) -> Result<RegionTable, RegionError> {
    let graph = Graph::of(image, code);
    if let Some(fault) = faults(&graph, options).into_iter().next() {
        return Err(fault);
    }
    let live = live_in(&graph);
    let units = units(&graph);
    let global = one_global_pointer(&graph, image.entry);
    let mut found = Boundaries::asked(&graph, &units, image, options);
    let mut computed = vec![0; graph.nodes.len()];
    let mut written = vec![0; graph.nodes.len()];
    let mut restores = vec![Restore::new(); graph.nodes.len()];
    let ground = Ground { graph: &graph, live: &live, threshold: options.threshold_stores };
    let (mut solver, mut merged) = (Solver::default(), 0);
    for unit in &units {
        let known = if options.prune { KnownValues::of(&graph, unit, global) } else { KnownValues::default() };
        for (at, &node) in unit.nodes.iter().enumerate() {
            let crosses = matches!(found.reasons[node as usize], Some(BoundaryReason::Entry | BoundaryReason::Exit));
            let set = if crosses { 0 } else { live[node as usize] };
            computed[node as usize] = known.recipes(at, set).fold(0, |set, (register, _)| set | 1 << register);
        }
        let asked = found.of(unit);
        let mut taken = shape(&ground, unit, options, &mut solver, &mut found, &mut computed);
        // What recovery computes takes room in every region, what is stored only in one: a unit whose loops
        // have more turns to a region without is left as it is.
        if options.prune && !unit.headers.is_empty() {
            let with =
                (found.of(unit), unit.nodes.iter().map(|node| computed[*node as usize]).collect::<Vec<_>>(), taken);
            let ends = found.loop_ends(unit);
            found.set(unit, &asked);
            unit.nodes.iter().for_each(|node| computed[*node as usize] = 0);
            taken = shape(&ground, unit, options, &mut solver, &mut found, &mut computed);
            if found.loop_ends(unit) >= ends {
                found.set(unit, &with.0);
                unit.nodes.iter().zip(with.1).for_each(|(node, set)| computed[*node as usize] = set);
                taken = with.2;
            }
        }
        merged += taken;
        // The last boundaries that were tried may not be these: the solver's states are to be of these.
        found.hold_threshold(&ground, unit, &mut solver, &mut computed);
        keep_what_is_written(unit, &solver, &known, &found, &mut computed, &mut written, &mut restores);
    }
    Ok(RegionTable::of(&graph, &live, found, [&computed, &written], restores, merged, options))
}

/// Adds to a unit's boundaries what the threshold asks for, and takes away and lengthens what it allows. How
/// many were taken away.
fn shape(
    ground: &Ground<'_>,
    unit: &Unit,
    options: &RegionOptions,
    solver: &mut Solver,
    found: &mut Boundaries,
    computed: &mut [RegisterSet],
) -> u32 {
    found.hold_threshold(ground, unit, solver, computed);
    // Turns come first: they are worth more than a call's boundary. Merging may leave room for more.
    found.unroll(ground, unit, solver, computed, options.unroll_factor);
    if !options.merge {
        return 0;
    }
    let merged = found.merge(ground, unit, solver, computed);
    found.unroll(ground, unit, solver, computed, options.unroll_factor);
    merged
}

/// What may have been written before each boundary. Recovery computes only of that: everything else is in its
/// slot.
fn keep_what_is_written(
    unit: &Unit,
    solver: &Solver,
    known: &KnownValues,
    found: &Boundaries,
    computed: &mut [RegisterSet],
    written: &mut [RegisterSet],
    restores: &mut [Restore],
) {
    for (at, &node) in unit.nodes.iter().enumerate() {
        let of = node as usize;
        written[of] = if found.reasons[of].is_some() { solver.dirty(node) } else { 0 };
        computed[of] &= written[of];
        restores[of] = known.recipes(at, computed[of]).collect();
    }
}

impl RegionTable {
    fn of(
        graph: &Graph,
        live: &[RegisterSet],
        found: Boundaries,
        [computed, written]: [&[RegisterSet]; 2],
        mut restores: Vec<Restore>,
        merged: u32,
        options: &RegionOptions,
    ) -> RegionTable {
        let mut table = RegionTable {
            places: graph.places.emptied(),
            boundaries: Vec::new(),
            restores: Vec::new(),
            functions: Vec::new(),
            options: *options,
            merged,
            exceptions: graph.exceptions,
        };
        for function in &graph.functions {
            let first = table.boundaries.len() as u32;
            for at in function.nodes.clone() {
                let (at, node) = (at as usize, &graph.nodes[at as usize]);
                let mut place = NO_BOUNDARY;
                if let Some(reason) = found.reasons[at] {
                    place = table.boundaries.len() as u32;
                    let (stored, computed) = (live[at] & !computed[at], computed[at]);
                    let (pc, every, written) = (node.pc, found.every[at], stored & written[at]);
                    table.boundaries.push(Boundary { pc, reason, stored, written, computed, every });
                    table.restores.push(std::mem::take(&mut restores[at]));
                }
                if matches!(node.flow, Flow::CallAny | Flow::JumpAny) {
                    place |= JUMPS_ANYWHERE;
                }
                table.places.set(node.pc, place);
            }
            let address = graph.nodes.get(function.nodes.start as usize).map_or(0, |node| node.pc);
            table.functions.push(FunctionRegions {
                name: function.name.clone(),
                address,
                instructions: function.nodes.len() as u32,
                boundaries: first..table.boundaries.len() as u32,
            });
        }
        table
    }

    /// The boundary before an instruction. One of unknown code stores everything.
    #[inline]
    pub fn at(&self, pc: u64) -> Option<&Boundary> {
        match self.places.get(pc) {
            NONE => Some(&UNKNOWN),
            place => self.boundaries.get((place & NO_BOUNDARY) as usize),
        }
    }

    /// The number of the boundary before an instruction, in [`RegionTable::boundaries`].
    #[inline]
    pub fn number(&self, pc: u64) -> Option<usize> {
        let number = (self.places.get(pc) & NO_BOUNDARY) as usize;
        (number < self.boundaries.len()).then_some(number)
    }

    /// Whether a boundary follows this instruction if none is where it goes: it may go anywhere.
    #[inline]
    pub fn jumps_anywhere(&self, pc: u64) -> bool {
        let place = self.places.get(pc);
        place == NONE || place & JUMPS_ANYWHERE != 0
    }

    /// How recovery gets the registers that the boundary before an instruction leaves to be computed.
    pub fn restore(&self, pc: u64) -> &[(u8, Recipe)] {
        let place = self.places.get(pc);
        if place == NONE { &[] } else { self.restores.get((place & NO_BOUNDARY) as usize).map_or(&[], Vec::as_slice) }
    }

    /// All boundaries, function by function.
    pub fn boundaries(&self) -> &[Boundary] {
        &self.boundaries
    }

    /// Functions, by address.
    pub fn functions(&self) -> &[FunctionRegions] {
        &self.functions
    }

    /// The registers that an instruction of the program writes, as far as boundaries store them.
    #[inline]
    pub fn written(&self, inst: &Inst) -> RegisterSet {
        written(inst, self.exceptions)
    }

    /// How it was formed.
    pub fn options(&self) -> &RegionOptions {
        &self.options
    }

    /// Boundaries that merging took away.
    pub fn merged(&self) -> u32 {
        self.merged
    }

    /// Loops with more than one turn between boundaries.
    pub fn unrolled(&self) -> u32 {
        self.boundaries.iter().filter(|boundary| boundary.every > 1).count() as u32
    }
}
