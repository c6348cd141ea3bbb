//! Figure 7's second group: programs of others ([`others`]), under the same systems and cWSP.
//!
//! Their mean is apart from that of our programs, and no ask is about them: the paper's means are of its own
//! 38 programs. What they show is whether a finding rests on how our programs were written.

use super::runs::{self, SCHEME};
use crate::papers::lightwsp::counts::scheme_count;
use crate::papers::lightwsp::relative::Times;
use crate::papers::others::{self, GROUP};
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_plot::{Bar, BarSeries, GroupedBars, Mean};
use durawarp_simulation::outcome::{Outcome, ratio};

/// Names of the tables.
const TIMES: &str = "fig7_others";
const REGIONS: &str = "fig7_others_regions";
/// The rows of means, as a picture of both groups names them.
const MEANS: [&str; 2] = ["mean", "mean of others"];

/// Adds the group, with its times, to what was found of our programs.
pub(super) fn add(request: &Request, runs: &Runs<'_>, times: &Times, finding: &mut Finding) {
    if request.programs.is_empty() {
        return;
    }
    let mut table = times.table(TIMES);
    table.title = format!("{GROUP}: {}", table.title);
    finding.tables.extend([table, regions(request, runs)]);
    finding.notes.push(format!("{GROUP} are in no ask and in no mean of ours"));
}

/// What regions of the programs came to under the scheme as it is, as in section V-G3.
fn regions(request: &Request, runs: &Runs<'_>) -> FigureTable {
    let columns = [
        "program",
        "profile",
        "threads",
        "instructions",
        "regions",
        "instructions a region",
        "stores a region",
        "% checkpoints of stores",
    ];
    let mut table = FigureTable::new(REGIONS, &format!("{GROUP}: regions as they ran under {SCHEME}"), &columns);
    for &program in &request.programs {
        let Some(outcome) = runs.outcome(&runs::default().run(program)) else { continue };
        let mut row = vec![
            Cell::from(others::name(program)),
            Cell::from(outcome.workload["profile"].as_str().unwrap_or_default()),
        ];
        row.extend(counts(outcome));
        table.push(row);
    }
    table
}

fn counts(outcome: &Outcome) -> [Cell; 6] {
    let core = |name| outcome.total("core", name);
    let [instructions, inserted, regions] = ["instructions", "inserted", "regions"].map(core);
    let by = |part: u64, whole: u64, digits| match whole {
        0 => Cell::None,
        whole => Cell::Number(ratio(part, whole), digits),
    };
    let stores = scheme_count(outcome, "feb_stores");
    [
        Cell::Count(1 + outcome.count_of("os", "threads").unwrap_or_default()),
        Cell::Count(instructions),
        Cell::Count(regions),
        by(instructions + inserted, regions, 2),
        stores.map_or(Cell::None, |stores| by(stores, regions, 2)),
        by(100 * inserted, core("stores") + inserted, 1),
    ]
}

/// Both groups in one picture: ours with its mean, then that of others with its own.
pub(super) fn draw(tables: &[FigureTable], mut ours: GroupedBars) -> GroupedBars {
    let Some(table) = tables.iter().find(|table| table.name == TIMES) else { return ours };
    let value = |cell: &Cell| if let Cell::Number(value, _) = cell { Some(*value) } else { None };
    let mean_of = |table: &FigureTable, at: usize| {
        let row = table.rows.iter().find(|row| row[0] == Cell::from(MEANS[0]));
        row.and_then(|row| value(&row[at]))
    };
    let others: Vec<_> = table.rows.iter().filter(|row| row[0] != Cell::from(MEANS[0])).collect();
    let own_groups = ours.groups.len();
    ours.groups.push(MEANS[0].to_owned());
    ours.groups.extend(others.iter().map(|row| row[0].shown()));
    ours.groups.push(MEANS[1].to_owned());
    ours.groups_name = format!("behind the first mean: {GROUP}");
    ours.mean = Mean::None;
    for (at, column) in table.columns.iter().enumerate().skip(1) {
        // A system that our programs were not run under has no bars of theirs.
        let place = ours.series.iter().position(|series| series.name == *column).unwrap_or(ours.series.len());
        if place == ours.series.len() {
            ours.series.push(BarSeries::new(column, vec![Bar::default(); own_groups]));
        }
        let series = &mut ours.series[place];
        let own_mean = tables[0].columns.iter().position(|own| own == column).and_then(|at| mean_of(&tables[0], at));
        let published = series.published_mean.take();
        series.bars.push(Bar { value: own_mean, published, ..Bar::default() });
        series.bars.extend(others.iter().map(|row| Bar { value: value(&row[at]), ..Bar::default() }));
        series.bars.push(Bar { value: mean_of(table, at), ..Bar::default() });
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::lightwsp::picture;

    fn table(name: &str, columns: &[&str], rows: &[(&str, f64)]) -> FigureTable {
        let mut table = FigureTable::new(name, "", columns);
        for (row, time) in rows {
            table.push(
                std::iter::once(Cell::from(*row)).chain(columns[1..].iter().map(|_| Cell::Number(*time, 3))).collect(),
            );
        }
        table
    }

    #[test]
    fn a_picture_has_both_groups_each_with_its_own_mean() {
        let ours =
            table("fig7", &["program", SCHEME], &[("is", 2.0), ("cg", 8.0), ("mean", 4.0), ("mean, published", 1.1)]);
        let alone = draw(std::slice::from_ref(&ours), picture::bars_of(&ours, "time"));
        assert_eq!((alone.groups.len(), alone.mean), (2, Mean::Geometric));
        let others = table(TIMES, &["program", SCHEME, "cWSP"], &[("fft", 3.0), ("lu", 12.0), ("mean", 6.0)]);
        let both = draw(&[ours.clone(), others], picture::bars_of(&ours, "time"));
        assert_eq!(both.groups, ["is", "cg", "mean", "fft", "lu", "mean of others"]);
        let values = |at: usize| both.series[at].bars.iter().map(|bar| bar.value).collect::<Vec<_>>();
        assert_eq!(values(0), [2.0, 8.0, 4.0, 3.0, 12.0, 6.0].map(Some));
        assert_eq!(values(1), [None, None, None, Some(3.0), Some(12.0), Some(6.0)], "ours were not run under cWSP");
        assert_eq!((both.series[0].bars[2].published, both.mean), (Some(1.1), Mean::None));
        assert!(durawarp_plot::Figure::from(both).svg().unwrap().contains("mean of others"));
    }
}
