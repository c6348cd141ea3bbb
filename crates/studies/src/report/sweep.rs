//! What a sweep came to, to look at: the figures that its file asks for, and a page with everything.
//!
//! ```text
//! plan (points, grids) ─┐
//! store (outcomes) ─────┴─> readings ─┬─> draw ─> figures with notes ─┐
//!                                     └──────────────> page <─────────┘
//! ```
//! Outcomes are read once, one at a time; what is kept of each is small. Invariants: what a figure or table
//! shows is in an outcome of the store, or follows from such by a division or a geometric mean; a point that
//! is missing, failed, or lacks its baseline is a gap with a note, and so is a mean with such a point in it;
//! the same store gives the same bytes.

mod draw;
mod label;
mod notes;
mod page;
mod reading;

use super::page::Page;

pub use draw::Drawn;
pub use reading::Showing;

impl Showing<'_> {
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
