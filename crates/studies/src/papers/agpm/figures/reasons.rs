//! The selector's decisions: its reasons by period beside Table II's, and by which way log updates went.
//!
//! The published way is that of the published type (Table II): type I through the caches, types II and III
//! past them. 2DCONV is of type I in Table I and of type III here. The way found is the one that follows from
//! the most frequent reason.

use crate::papers::agpm::ask::{Judged, reasons as ask_reasons};
use crate::papers::agpm::decisions::{Decisions, way};
use crate::papers::agpm::kernels;
use crate::papers::agpm::measured::measured;
use crate::papers::agpm::published::PUBLISHED;
use crate::papers::agpm::runs::timed;
use crate::papers::{Cell, FigureTable, Finding, Request, Runs};
use durawarp_schemes::agpm::reason::Reason;

const COLUMNS: [&str; 11] = [
    "kernel",
    "type",
    "reason, published",
    "way, published",
    "periods by reason",
    "most frequent",
    "way",
    "as published",
    "log updates through",
    "log updates past",
    "share through",
];

/// The way of a published type.
fn way_of(ty: &str) -> &'static str {
    if ty == "I" { "through" } else { "past" }
}

/// The decisions.
pub(crate) fn found(request: &Request, runs: &Runs<'_>) -> Finding {
    let mut table = FigureTable::new("reasons", "what the selector found, by kernel", &COLUMNS);
    let mut columns = vec!["kernel", "published", "periods"];
    columns.extend(Reason::ALL.map(Reason::letter));
    let mut counts = FigureTable::new("reasons_periods", "periods by reason", &columns);
    let (mut judged, mut cut) = (Vec::new(), Vec::new());
    for kernel in kernels::of(request) {
        let periods = measured(runs, kernel, &timed(kernel, "agpm")).and_then(|run| run.periods());
        let Some(periods) = periods else { continue };
        let decisions = Decisions::of(&periods);
        let published = |quantity| PUBLISHED.text("table2", kernel.name, quantity).unwrap_or("-");
        let (letter, ty) = (published("reason"), published("type"));
        let most = decisions.most();
        let (reason, found_way) = most.map_or(("-", "-"), |reason| (reason.letter(), way(reason.route())));
        // What the selector found beside what the paper gives, then the same periods counted by reason.
        table.push(vec![
            Cell::from(kernel.name),
            Cell::from(ty),
            Cell::from(letter),
            Cell::from(way_of(ty)),
            Cell::Text(decisions.shown()),
            Cell::Text(decisions.most_shown()),
            Cell::from(found_way),
            Cell::from(if reason == letter { "yes" } else { "no" }),
            Cell::Count(decisions.logs()[0]),
            Cell::Count(decisions.logs()[1]),
            decisions.share_through().map_or(Cell::None, |share| Cell::Number(share, 3)),
        ]);
        let mut row = vec![Cell::from(kernel.name), Cell::from(letter)];
        row.push(Cell::from(if decisions.is_decided() { "complete" } else { "cut short" }));
        row.extend(Reason::ALL.map(|reason| Cell::Count(decisions.periods(reason))));
        counts.push(row);
        judged.push(Judged { kernel: kernel.name, reason: [reason, letter], way: [found_way, way_of(ty)] });
        if periods.cut {
            cut.push(kernel.name);
        }
    }
    // The notes say what the tables leave out: periods in brackets, and periods that were not kept.
    let mut notes = vec![
        "periods that their kernel's end cut short decide nothing: they stand in brackets, and count where none is complete"
            .to_owned(),
        "log updates are instructions, with those of launches that log whole buffers for the kernel".to_owned(),
    ];
    if !cut.is_empty() {
        notes.push(format!(
            "the run had more periods than are kept, the first of which are counted: {}",
            cut.join(", ")
        ));
    }
    Finding { tables: vec![table, counts], asks: ask_reasons(&judged), notes, ..Finding::default() }
}
