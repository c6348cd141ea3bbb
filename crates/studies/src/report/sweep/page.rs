//! The page of a sweep: what was asked, what came of each point, figures, tables, configuration, digests, and
//! what to be careful about.
//!
//! The configuration is that of one point in full, the baseline's first; of the others what differs.
//! Invariant: nothing of the host that drew it is on the page: the same store gives the same bytes.

mod configuration;
mod points;
mod tables;

use super::draw::{self, Drawn};
use super::reading::{Facts, PointState, Showing};
use crate::report::count;
use crate::report::page::{Drawing, Page};

pub(super) fn page(showing: &Showing<'_>) -> Result<Page, String> {
    let file = &showing.plan.file;
    let mut page = Page::new(&file.name);
    if let Some(description) = &file.description {
        page.paragraph(description);
    }
    page.paragraph(&overview(showing));
    let cautions = cautions(showing);
    if !cautions.is_empty() {
        page.note(&format!("Warnings: {}, below the figures.", cautions.len()));
    }
    let figures = draw::all(showing);
    if !figures.is_empty() {
        page.heading("Figures");
        for figure in &figures {
            add_figure(&mut page, figure)?;
        }
    }
    if !cautions.is_empty() {
        page.heading("Warnings");
        cautions.iter().for_each(|warning| page.warning(warning));
    }
    // From pictures to numbers to what repeats them: a reader may stop anywhere.
    page.heading("Results");
    points::results(&mut page, showing);
    page.heading("Points");
    points::states(&mut page, showing);
    page.heading("Configuration");
    configuration::of(&mut page, showing);
    page.heading("Digests");
    points::digests(&mut page, showing);
    page.heading("Sweep file");
    page.listing("What was asked", file.text());
    Ok(page)
}

fn add_figure(page: &mut Page, figure: &Drawn) -> Result<(), String> {
    match &figure.figure {
        Ok(drawn) => {
            let drawing = Drawing::new(&figure.name, &figure.caption, drawn).map_err(|fault| fault.to_string())?;
            page.figure(drawing);
        }
        Err(why) => page.warning(&format!("no figure `{}`: {why}", figure.name)),
    }
    for note in &figure.notes {
        page.note(&format!("{}: {note}.", figure.name));
    }
    Ok(())
}

/// Points with results, and how many of the others there are.
fn tally(showing: &Showing<'_>) -> [usize; 3] {
    let count =
        |wanted: fn(&PointState) -> bool| showing.readings.iter().filter(|reading| wanted(&reading.state)).count();
    [
        count(|state| matches!(state, PointState::Good | PointState::Cut)),
        count(|state| matches!(state, PointState::Failed(_))),
        count(|state| *state == PointState::Missing),
    ]
}

fn overview(showing: &Showing<'_>) -> String {
    let [good, failed, missing] = tally(showing).map(|n| count(n as u64));
    let all = count(showing.plan.points.len() as u64);
    let mut versions: Vec<String> = showing.facts().map(|(_, facts)| versioned(facts)).collect();
    versions.sort_unstable();
    versions.dedup();
    let by = if versions.is_empty() { String::new() } else { format!(" Simulated by {}.", versions.join(", ")) };
    format!("{all} points: {good} done, {failed} failed, {missing} missing.{by}")
}

fn versioned(facts: &Facts) -> String {
    format!("durawarp {} (schema {} of results)", facts.version, facts.schema)
}

/// What to know before anything on the page is believed, each once with how many points it is about.
fn cautions(showing: &Showing<'_>) -> Vec<String> {
    let [_, failed, missing] = tally(showing);
    let mut all = Vec::new();
    if failed > 0 {
        all.push(format!("{failed} points failed: figures and tables have gaps there, and `Points` says why."));
    }
    if missing > 0 {
        all.push(format!("{missing} points were not run: figures and tables have gaps there."));
    }
    // A warning that many points share is said once, in the order of its first point.
    let mut known: Vec<(&str, Vec<usize>)> = Vec::new();
    for (point, facts) in showing.facts() {
        for warning in &facts.warnings {
            match known.iter_mut().find(|(other, _)| other == warning) {
                Some((_, points)) => points.push(point),
                None => known.push((warning, vec![point])),
            }
        }
    }
    for (warning, points) in known {
        let label = &showing.plan.points[points[0]].label;
        let more = if points.len() > 1 { format!(" and {} more points", points.len() - 1) } else { String::new() };
        all.push(format!("{warning} ({label}{more})"));
    }
    let unchecked = showing.facts().filter(|(_, facts)| !facts.checked).count();
    if unchecked > 0 {
        all.push(format!("the results of {unchecked} points were not checked."));
    }
    all
}
