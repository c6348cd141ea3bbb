//! What a sweep came to, to look at: the figures that its file asks for, and a page with everything.
//!
//! ```text
//! plan (points, grids) ─┐
//! store (outcomes) ─────┴─> readings ─┬─> draw ─> figures with notes ─┐
//!                                     └──────────────> page <─────────┘
//! ```
//! Outcomes are read once, one at a time; what is kept of each is small. Invariants: what a figure or table shows is in an
//! outcome of the store, or follows from such by a division or a geometric mean; a point that is missing, failed, or lacks
//! its baseline is a gap with a note, and so is a mean with such a point in it; the same store gives the same bytes.

mod draw;
mod label;
mod notes;
mod page;
mod reading;

use super::page::Page;
use crate::plot::Figure;
use crate::sweep::Plan;
use crate::sweep::Store;

use reading::Reading;

/// A figure of a sweep.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// What its files are called, without an ending.
    pub name: String,
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// The figure, or why there is none.
    pub figure: Result<Figure, String>,
    /// What is missing in it, and why.
    pub notes: Vec<String>,
}

/// What a sweep came to, ready to be shown.
#[derive(Debug)]
pub struct Showing<'a> {
    plan: &'a Plan,
    readings: Vec<Reading>,
    baselines: Vec<Option<usize>>,
}

impl<'a> Showing<'a> {
    /// Reads the results of a plan's points.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn read(plan: &'a Plan, store: &Store) -> Result<Self, String> {
        let readings = (0..plan.points.len()).map(|point| reading::read(plan, store, point));
        Ok(Showing { plan, readings: readings.collect::<Result<_, _>>()?, baselines: plan.baselines() })
    }

    /// The figures that the sweep file asks for, in its order.
    pub fn figures(&self) -> Vec<Drawn> {
        draw::all(self)
    }

    /// A page that holds everything.
    ///
    /// # Errors
    /// A figure that was drawn cannot be put into it.
    pub fn page(&self) -> Result<Page, String> {
        page::page(self)
    }
}

#[cfg(test)]
mod tests;
