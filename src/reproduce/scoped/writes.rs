//! Table 3: what a barrier of a workgroup and one of the kernel persist, by level of the tree.
//!
//! A count of the program, not of a machine: stores to the persistent tree between a scope's barriers, one a lane ("committed
//! stores", section 6), from the functional driver. Behind its first epoch (keys find their leaves) the program has an epoch a
//! level, from the leaves up. A kernel's barrier persists what all workgroups have written; a workgroup's what it has
//! itself, as a mean over those that have written at all. From depth d up both algorithms wait for the kernel.

use std::collections::BTreeMap;

use super::ask;
use super::published::PUBLISHED;
use super::runs::{Scope, WORKLOADS, sizes};
use crate::kernel::functional::Limits;
use crate::reproduce::Runs;
use crate::reproduce::{Cell, Finding, Request, Table};
use crate::workload::{Choice, EpochWrites, Workload};

/// Epochs before that of the leaves: the keys'.
const BEFORE_LEAVES: u32 = 1;

/// CTAs at profile `paper`: the tree of 13.25 MB, next to that of Table 3.
const PAPER_CTAS: u32 = 53;

/// Writes of a level, by writer.
#[derive(Debug, Clone, Default, PartialEq)]
struct Level {
    workgroups: Vec<u64>,
}

impl Level {
    fn all(&self) -> u64 {
        self.workgroups.iter().sum()
    }

    /// Mean of those that wrote.
    fn mean(&self) -> f64 {
        self.all() as f64 / self.workgroups.len().max(1) as f64
    }
}

/// Levels from the leaves up.
fn by_level(epochs: &[EpochWrites]) -> Vec<Level> {
    let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
    for entry in epochs.iter().filter(|entry| entry.writer.epoch >= BEFORE_LEAVES) {
        levels.entry(entry.writer.epoch - BEFORE_LEAVES).or_default().workgroups.push(entry.writes);
    }
    let last = levels.keys().last().map_or(0, |last| last + 1);
    (0..last).map(|level| levels.remove(&level).unwrap_or_default()).collect()
}

/// The levels with barriers of a scope, and depth d as levels above the leaves.
fn counted(request: &Request, scope: Scope, ctas: u32) -> Result<(Vec<Level>, usize), String> {
    let params = [("CTAS", ctas), ("BARRIER", scope.barrier()), ("LOGS", 0)];
    let params = params.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
    let choice = Choice { profile: Some(request.profile.clone()), seed: request.seed, params, ..Choice::default() };
    let workload = Workload::load(WORKLOADS[0]).and_then(|workload| workload.resolve(&choice));
    let workload = workload.map_err(|faults| faults.to_string())?;
    let description = serde_json::to_value(workload.describe()).unwrap_or_default();
    let depth = description["params"]["BELOW"].as_u64().unwrap_or_default();
    // Wavefronts of 64, as the paper's machine has; it is of no effect on what is written.
    let limits = Limits { warp_size: 64, ..Limits::default() };
    let epochs = workload.persistent_writes(&limits).map_err(|fault| fault.to_string())?;
    Ok((by_level(&epochs), depth as usize))
}

fn name(level: usize) -> String {
    if level == 0 { "Leaf".to_owned() } else { format!("Leaf-{level}") }
}

/// Table 3.
pub(super) fn levels(request: &Request, _: &Runs<'_>) -> Finding {
    let ctas = if request.has_paper_sizes() { PAPER_CTAS } else { sizes(request).last().copied().unwrap_or_default() };
    let both =
        counted(request, Scope::Workgroup, ctas).and_then(|wg| Ok((wg, counted(request, Scope::Kernel, ctas)?.0)));
    let ((wg, depth), kr) = match both {
        Ok(both) => both,
        Err(why) => return Finding { asks: ask::ratios(&[]), notes: vec![why], ..Finding::default() },
    };
    let columns = ["level", "workgroups", "wg", "kr", "ratio", "wg, published", "kr, published", "ratio, published"];
    let mut table = Table::new("table3", "NV writes that a barrier persists", &columns);
    let mut ratios = Vec::new();
    for (level, (wg, kr)) in wg.iter().zip(&kr).enumerate() {
        let name = name(level);
        let published = |scope| PUBLISHED.number("table3", &name, scope);
        let (own, all) = (wg.mean(), kr.all());
        let below = level < depth && wg.all() > 0;
        let ratio = below.then(|| all as f64 / own);
        ratios.extend(ratio.map(|ratio| (name.clone(), ratio)));
        let whole = |value: Option<f64>| Cell::count(value.map(|value| value as u64));
        table.push(vec![
            Cell::Text(name.clone()),
            Cell::Count(wg.workgroups.len() as u64),
            if below { Cell::Number(own, 1) } else { Cell::None },
            Cell::Count(all),
            ratio.map_or(Cell::None, |ratio| Cell::Number(ratio, 1)),
            whole(published("wg")),
            whole(published("kr")),
            published("kr").zip(published("wg")).map_or(Cell::None, |(kr, wg)| Cell::Number(kr / wg, 1)),
        ]);
    }
    let mut notes = vec![
        format!(
            "{ctas} workgroups, each with a subtree of {depth} levels; from there up algorithm 2 waits for the kernel too"
        ),
        "counted on the functional driver: stores of lanes, a mean over the workgroups that wrote at that level"
            .to_owned(),
        "the paper's table has no row Leaf-3; the counts are of its own keys and nodes, and only ratios are asked for"
            .to_owned(),
    ];
    if !request.has_paper_sizes() {
        notes.push(format!("sizes are those of profile `{}`, not the paper's", request.profile));
    }
    Finding { tables: vec![table], asks: ask::ratios(&ratios), notes, ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::functional::Writer;

    #[test]
    fn writes_are_told_apart_by_level_and_workgroup() {
        let of = |cta, epoch, writes| EpochWrites { launch: 0, writer: Writer { cta, epoch }, writes };
        let levels = by_level(&[of(0, 0, 99), of(0, 1, 10), of(0, 3, 4), of(1, 0, 99), of(1, 1, 20)]);
        assert_eq!(levels.iter().map(Level::all).collect::<Vec<_>>(), [30, 0, 4]);
        assert_eq!(levels.iter().map(Level::mean).collect::<Vec<_>>(), [15.0, 0.0, 4.0]);
    }
}
