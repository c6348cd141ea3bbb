//! Outcomes as something to read: tables for the terminal, figures, pages. Nothing here knows a component; it
//! reads plain data.

mod accelsim;
mod backlog;
mod compare;
mod console;
mod cores;
mod crash;
mod difference;
mod energy;
mod explain;
mod markdown;
mod numbers;
mod page;
mod persists;
mod program;
mod summary;
pub mod sweep;
mod table;
mod timeline;
mod title;

pub use accelsim::accelsim;
pub use compare::{comparison, comparison_figure};
pub use console::{align_right, legend, lines, plain_table};
pub use crash::{crash_summary, state_name};
pub use difference::{Count, Differences, Differing};
pub use explain::{Explanation, can_be_explained, drawing, drawn, explained, explanation, reasons};
pub use markdown::{Markdown, Span};
pub use numbers::{bandwidth, count, group_digits, joules, percent, rate, seconds};
pub use page::{Drawing, Page, PageError};
pub use persists::{no_stalls_of_cpus, stalls_figure, stalls_table};
pub use program::programs;
pub use summary::summary;
pub use table::{Column, Table};
pub use timeline::{Kept, chrome_trace, write_timeline};
pub(crate) use title::origin_of;
