//! The regions of a program as a table by pc, and how it is made.

use super::bounds::{Ground, Solver};
use super::graph::{Flow, Graph};
use super::liveness::live_in;
use super::place::Boundaries;
use super::places::PcMap;
use super::terms::{ALL, BoundaryReason, RegionError, RegionOptions, RegisterSet, THRESHOLD_MIN, UNROLL_MAX, written};
use super::units::{Unit, predecessors, units};
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

    /// The one that a core executes where the registers of boundaries that it left out would take the next
    /// one over the threshold. These are live.
    pub(super) const fn at_the_threshold(live: RegisterSet) -> Boundary {
        Boundary { reason: BoundaryReason::Threshold, stored: live, written: live, ..UNKNOWN }
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
    /// By instruction, in the order of functions.
    code: Vec<CodePlace>,
    boundaries: Vec<Boundary>,
    restores: Vec<Restore>,
    functions: Vec<FunctionRegions>,
    options: RegionOptions,
    merged: u32,
    /// The program reads accrued exceptions of floating point.
    exceptions: bool,
}

/// What the table says of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodePlace {
    /// The number of the boundary before it, or [`NO_BOUNDARY`].
    boundary: u32,
    /// It is a jump to anywhere.
    jumps_anywhere: bool,
    /// Registers that a boundary before it, or one where it leads, may store.
    live: RegisterSet,
}

/// No boundary's number.
const NO_BOUNDARY: u32 = u32::MAX;

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
    let (live, before, units) = (live_in(&graph), predecessors(&graph), units(&graph));
    let global = one_global_pointer(&graph, image.entry);
    let found = Boundaries::asked(&graph, &units, &before, image, options);
    let (none, no_restores) = (vec![0; graph.nodes.len()], vec![Restore::new(); graph.nodes.len()]);
    let mut forming = Forming {
        options,
        solver: Solver::default(),
        found,
        computed: none.clone(),
        written: none,
        restores: no_restores,
        merged: 0,
    };
    let threshold = options.threshold_stores;
    for unit in &units {
        let known = if options.prune { KnownValues::of(&graph, unit, global) } else { KnownValues::default() };
        let asked = forming.found.of(unit);
        let ground = Ground { graph: &graph, live: &live, threshold, before: &before, tight: false };
        if forming.unit(&ground, unit, &known).is_none() {
            forming.found.set(unit, &asked);
            let formed = forming.unit(&Ground { tight: true, ..ground }, unit, &known);
            assert!(formed.is_some(), "a boundary can be added before any node");
        }
    }
    let Forming { found, computed, written, restores, merged, .. } = forming;
    Ok(RegionTable::of(&graph, &live, found, [&computed, &written], restores, merged, options))
}

/// Regions that are being formed, unit by unit.
struct Forming<'a> {
    options: &'a RegionOptions,
    solver: Solver,
    found: Boundaries,
    /// By node: registers that recovery computes, and those that may have been written.
    computed: Vec<RegisterSet>,
    written: Vec<RegisterSet>,
    restores: Vec<Restore>,
    /// Boundaries that merging took away.
    merged: u32,
}

impl Forming<'_> {
    /// Forms a unit. None where boundaries have to be so that one can be added before any node.
    fn unit(&mut self, ground: &Ground<'_>, unit: &Unit, known: &KnownValues) -> Option<()> {
        for (at, &node) in unit.nodes.iter().enumerate() {
            let reason = self.found.reasons[node as usize];
            let crosses = matches!(reason, Some(BoundaryReason::Entry | BoundaryReason::Exit));
            let set = if crosses { 0 } else { ground.live[node as usize] };
            self.computed[node as usize] = known.recipes(at, set).fold(0, |set, (register, _)| set | 1 << register);
        }
        let asked = self.found.of(unit);
        let mut taken = self.shape(ground, unit)?;
        // What recovery computes takes room in every region, what is stored only in one: a unit whose loops
        // have more turns to a region without is left as it is.
        if self.options.prune && !unit.headers.is_empty() {
            let computed: Vec<RegisterSet> = unit.nodes.iter().map(|node| self.computed[*node as usize]).collect();
            let with = (self.found.of(unit), computed, taken);
            let ends = self.found.loop_ends(unit);
            self.found.set(unit, &asked);
            unit.nodes.iter().for_each(|node| self.computed[*node as usize] = 0);
            let without = self.shape(ground, unit);
            if without.is_none() || self.found.loop_ends(unit) >= ends {
                self.found.set(unit, &with.0);
                unit.nodes.iter().zip(with.1).for_each(|(node, set)| self.computed[*node as usize] = set);
                taken = with.2;
            } else {
                taken = without?;
            }
        }
        self.merged += taken;
        // The last boundaries that were tried may not be these: the solver's states are to be of these.
        self.found.hold_threshold(ground, unit, &mut self.solver, &mut self.computed)?;
        self.keep_what_is_written(unit, known);
        Some(())
    }

    /// Adds to a unit's boundaries what the threshold asks for, and takes away and lengthens what it allows.
    /// How many were taken away.
    fn shape(&mut self, ground: &Ground<'_>, unit: &Unit) -> Option<u32> {
        let Forming { options, solver, found, computed, .. } = self;
        found.hold_threshold(ground, unit, solver, computed)?;
        // Turns come first: they are worth more than a call's boundary. Merging may leave room for more.
        found.unroll(ground, unit, solver, computed, options.unroll_factor);
        if !options.merge {
            return Some(0);
        }
        let merged = found.merge(ground, unit, solver, computed);
        found.unroll(ground, unit, solver, computed, options.unroll_factor);
        Some(merged)
    }

    /// What may have been written before each boundary. Recovery computes only of that: everything else is in
    /// its slot.
    fn keep_what_is_written(&mut self, unit: &Unit, known: &KnownValues) {
        for (at, &node) in unit.nodes.iter().enumerate() {
            let of = node as usize;
            self.written[of] = if self.found.reasons[of].is_some() { self.solver.dirty(node) } else { 0 };
            self.computed[of] &= self.written[of];
            self.restores[of] = known.recipes(at, self.computed[of]).collect();
        }
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
            code: Vec::with_capacity(graph.nodes.len()),
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
                let mut boundary = NO_BOUNDARY;
                if let Some(reason) = found.reasons[at] {
                    boundary = table.boundaries.len() as u32;
                    let (stored, computed) = (live[at] & !computed[at], computed[at]);
                    let (pc, every, written) = (node.pc, found.every[at], stored & written[at]);
                    table.boundaries.push(Boundary { pc, reason, stored, written, computed, every });
                    table.restores.push(std::mem::take(&mut restores[at]));
                }
                let jumps_anywhere = matches!(node.flow, Flow::CallAny | Flow::JumpAny);
                let live = if jumps_anywhere || node.enters_unknown_code() { ALL } else { live[at] };
                table.places.set(node.pc, table.code.len() as u32);
                table.code.push(CodePlace { boundary, jumps_anywhere, live });
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

    /// What is known of an instruction; none of unknown code.
    #[inline]
    fn place(&self, pc: u64) -> Option<&CodePlace> {
        self.code.get(self.places.get(pc) as usize)
    }

    /// The boundary before an instruction. One of unknown code stores everything.
    #[inline]
    pub fn at(&self, pc: u64) -> Option<&Boundary> {
        match self.place(pc) {
            None => Some(&UNKNOWN),
            Some(place) => self.boundaries.get(place.boundary as usize),
        }
    }

    /// The number of the boundary before an instruction, in [`RegionTable::boundaries`].
    #[inline]
    pub fn number(&self, pc: u64) -> Option<usize> {
        let number = self.place(pc)?.boundary;
        (number != NO_BOUNDARY).then_some(number as usize)
    }

    /// Whether a boundary follows this instruction if none is where it goes: it may go anywhere.
    #[inline]
    pub fn jumps_anywhere(&self, pc: u64) -> bool {
        self.place(pc).is_none_or(|place| place.jumps_anywhere)
    }

    /// Registers that a boundary before an instruction, or one where it leads, may store.
    #[inline]
    pub(super) fn live(&self, pc: u64) -> RegisterSet {
        self.place(pc).map_or(ALL, |place| place.live)
    }

    /// How recovery gets the registers that the boundary before an instruction leaves to be computed.
    pub fn restore(&self, pc: u64) -> &[(u8, Recipe)] {
        self.number(pc).map_or(&[], |number| &self.restores[number])
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
