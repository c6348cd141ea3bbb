//! Table 3: what a barrier of a workgroup and one of the kernel persist, by level of the tree.
//!
//! A count of the program, not of a machine: stores to the persistent tree between a scope's barriers, one a
//! lane ("committed stores", section 6), from the functional driver. Behind its first epoch (keys find their
//! leaves) the program has an epoch a level, from the leaves up. A kernel's barrier persists what all
//! workgroups have written; a workgroup's what it has itself, as a mean over those that have written at all.
//! From depth d up both algorithms wait for the kernel.
//!
//! The ratio of the two is the number of workgroups that write at the level, as both algorithms write the
//! same. A second table says on what of the program that depends: keys a workgroup, and room in the nodes
//! above the leaves.

use std::collections::BTreeMap;

use super::ask;
use super::published::PUBLISHED;
use super::runs::{BarrierScope, WORKLOADS, sizes};
use crate::papers::Runs;
use crate::papers::{Cell, FigureTable, Finding, Request};
use durawarp_kernel::functional::Limits;
use durawarp_workload::{Choice, EpochWrites, Workload};

/// Epochs before that of the leaves: the keys'.
const BEFORE_LEAVES: u32 = 1;

/// CTAs at profile `paper`: the tree of 13.25 MB, next to that of Table 3.
const PAPER_CTAS: u32 = 53;

/// Shares of a workgroup's keys in the experiment about the ratio: one of so many.
const SHARES: [u64; 4] = [1, 8, 64, 256];

/// Writes of a level, by writer.
#[derive(Debug, Clone, Default, PartialEq)]
struct TreeLevel {
    workgroups: Vec<u64>,
}

impl TreeLevel {
    fn all(&self) -> u64 {
        self.workgroups.iter().sum()
    }

    /// Mean of those that wrote.
    fn mean(&self) -> f64 {
        self.all() as f64 / self.workgroups.len().max(1) as f64
    }
}

/// Levels from the leaves up.
fn by_level(epochs: &[EpochWrites]) -> Vec<TreeLevel> {
    let mut levels: BTreeMap<u32, TreeLevel> = BTreeMap::new();
    for entry in epochs.iter().filter(|entry| entry.writer.epoch >= BEFORE_LEAVES) {
        levels.entry(entry.writer.epoch - BEFORE_LEAVES).or_default().workgroups.push(entry.writes);
    }
    let last = levels.keys().last().map_or(0, |last| last + 1);
    (0..last).map(|level| levels.remove(&level).unwrap_or_default()).collect()
}

/// What a run of the program wrote.
struct Counted {
    levels: Vec<TreeLevel>,
    /// Depth d, as levels above the leaves.
    depth: usize,
    /// Keys that a workgroup inserts.
    keys: u64,
    /// Entries of a node, at most.
    order: u64,
}

/// The levels with barriers of a scope, with other parameters of the program where there are some.
fn counted(request: &Request, scope: BarrierScope, ctas: u32, other: &[(&str, u64)]) -> Result<Counted, String> {
    let params = [("CTAS", u64::from(ctas)), ("BARRIER", u64::from(scope.barrier())), ("LOGS", 0)];
    let params = params.iter().chain(other).map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    let choice = Choice { profile: Some(request.profile.clone()), seed: request.seed, params, ..Choice::default() };
    let workload = Workload::load(WORKLOADS[0]).and_then(|workload| workload.resolve(&choice));
    let workload = workload.map_err(|faults| faults.to_string())?;
    let description = serde_json::to_value(workload.describe()).unwrap_or_default();
    let param = |name: &str| description["params"][name].as_u64().unwrap_or_default();
    // Wavefronts of 64, as the paper's machine has; it is of no effect on what is written.
    let limits = Limits { warp_size: 64, ..Limits::default() };
    let epochs = workload.persistent_writes(&limits).map_err(|fault| fault.to_string())?;
    Ok(Counted {
        levels: by_level(&epochs),
        depth: param("BELOW") as usize,
        keys: param("KEYS"),
        order: param("ORDER"),
    })
}

fn name(level: usize) -> String {
    if level == 0 { "Leaf".to_owned() } else { format!("Leaf-{level}") }
}

/// Why the ratio falls or does not: the workgroups that write at a level, by keys that each inserts, and by
/// room in nodes above the leaves, which the program loads with as many children as they hold.
fn writers(request: &Request, ctas: u32, own: &Counted) -> Result<FigureTable, String> {
    let names: Vec<String> = (0..own.depth).map(name).collect();
    let columns = ["keys a workgroup", "entries a node"].into_iter().chain(names.iter().map(String::as_str));
    let title = "workgroups that write at a level: the ratio above; more entries a node leave room above the leaves";
    let mut table = FigureTable::new("table3_writers", title, &columns.collect::<Vec<_>>());
    let mut keys: Vec<u64> = SHARES.iter().map(|share| (own.keys / share).max(1)).collect();
    keys.dedup();
    for order in [own.order, own.order + 1] {
        for &keys in &keys {
            let params = [("KEYS", keys), ("ORDER", order)];
            let counted = counted(request, BarrierScope::Workgroup, ctas, &params)?;
            let writers = |level: usize| counted.levels.get(level).map_or(0, |level| level.workgroups.len() as u64);
            let levels = (0..own.depth).map(writers);
            table.push([keys, order].into_iter().chain(levels).map(Cell::Count).collect());
        }
    }
    Ok(table)
}

/// Table 3.
pub(super) fn levels(request: &Request, _: &Runs<'_>) -> Finding {
    let ctas = if request.has_paper_sizes() { PAPER_CTAS } else { sizes(request).last().copied().unwrap_or_default() };
    let all = |scope| counted(request, scope, ctas, &[]);
    let both = all(BarrierScope::Workgroup).and_then(|wg| Ok((wg, all(BarrierScope::Kernel)?)));
    let (wg, kr) = match both {
        Ok(both) => both,
        Err(why) => return Finding { asks: ask::ratios(&[]), notes: vec![why], ..Finding::default() },
    };
    let depth = wg.depth;
    let columns = ["level", "workgroups", "wg", "kr", "ratio", "wg, published", "kr, published", "ratio, published"];
    let mut table = FigureTable::new("table3", "NV writes that a barrier persists", &columns);
    let mut ratios = Vec::new();
    for (level, (wg, kr)) in wg.levels.iter().zip(&kr.levels).enumerate() {
        let name = name(level);
        let published = |scope| PUBLISHED.number("table3", &name, scope);
        let (own, all) = (wg.mean(), kr.all());
        // From `depth` up a workgroup has no nodes of its own: there is no ratio.
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
    // What a reader must know before he compares the ratios with the published ones.
    let mut notes = vec![
        format!(
            "{ctas} workgroups, each with a subtree of {depth} levels; from there up algorithm 2 waits for the kernel too"
        ),
        "counted on the functional driver: stores of lanes, a mean over the workgroups that wrote at that level"
            .to_owned(),
        "the paper's table has no row Leaf-3; the counts are of its own keys and nodes, and only ratios are asked for"
            .to_owned(),
        "both algorithms write the same, so the ratio is the number of workgroups that write at a level. It does not fall because \
         keys are spread evenly over equal subtrees, and because nodes above the leaves are loaded full: a leaf that splits, splits \
         every node above it. With fewer keys, or with room in those nodes (table3_writers), it falls. The published one (57, 17, 11, 9, \
         4) falls while a workgroup's own writes stay in the thousands, so that there few workgroups must have most of the splits: \
         neither keys nor subtrees are equal"
            .to_owned(),
    ];
    if !request.has_paper_sizes() {
        notes.push(format!("sizes are those of profile `{}`, not the paper's", request.profile));
    }
    let writers = writers(request, ctas, &wg).map_err(|why| notes.push(why)).ok();
    let tables = [table].into_iter().chain(writers).collect();
    Finding { tables, asks: ask::ratios(&ratios), notes, ..Finding::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_kernel::functional::Writer;

    #[test]
    fn writes_are_told_apart_by_level_and_workgroup() {
        let of = |cta, epoch, writes| EpochWrites { launch: 0, writer: Writer { cta, epoch }, writes };
        let levels = by_level(&[of(0, 0, 99), of(0, 1, 10), of(0, 3, 4), of(1, 0, 99), of(1, 1, 20)]);
        assert_eq!(levels.iter().map(TreeLevel::all).collect::<Vec<_>>(), [30, 0, 4]);
        assert_eq!(levels.iter().map(TreeLevel::mean).collect::<Vec<_>>(), [15.0, 0.0, 4.0]);
    }
}
