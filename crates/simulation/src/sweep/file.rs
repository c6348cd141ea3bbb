//! A sweep file: what is the same in all runs, what varies, what is left out, and what to make of the
//! results.
//!
//! ```toml
//! schema = 1
//! name = "l2-size"
//! metrics = ["cycles", "memory_controller.nvm_written_bytes"]
//! baseline = { scheme = "base" }
//! [base]
//! workloads = ["atax", "bicg"]
//! profile = "ci"
//! set = { "sm.count" = 4, "params.NX" = 256 }
//! [[axis]]
//! key = "l2.slice_kb"
//! range = { from = 64, to = 512, times = 2 }
//! [[axis]]                                  # several keys at once
//! keys = ["scheme", "seed"]
//! values = [["base", 0], ["agpm", 1]]
//! [[exclude]]
//! scheme = "base"
//! "l2.slice_kb" = [64, 128]
//! [[figure]]                                # what to draw, see [`figure`]
//! kind = "lines"
//! x = "l2.slice_kb"
//! y = "cycles"
//! group = ["workload", "scheme"]
//! ```
//! A key is a word ([`WORDS`], `LOGGING`), a parameter of the machine or of a scheme (`table.key`) or of
//! the workload (`params.NAME`), or the file that fills a buffer of it (`inputs.BUFFER`). Invariant: every
//! fault of the text is found before any is told; what needs machines, schemes and workloads to be read is
//! found by [`plan`](super::plan).

mod axis;
pub mod figure;
mod keys;
mod selection;
mod shape;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

pub use axis::{Axis, Row};
pub use figure::FigureSpec;
pub(crate) use keys::LOGGING;
pub use keys::{WORDS, text_of};
pub(super) use keys::{is_of_a_scheme, same};
pub use selection::{Selection, Setting};

use super::metrics;
use crate::config::presets;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Place, SourceText, TomlTable, check_keys, parse};

/// Version of sweep files.
pub(crate) const SCHEMA: i64 = 1;

/// A sweep file, read.
#[derive(Debug, Clone)]
pub struct SweepFile {
    pub name: String,
    /// What it is about, in its author's words.
    pub description: Option<String>,
    /// Where it lies: machines, schemes and workloads that it names by paths are looked for there first.
    pub folder: PathBuf,
    /// What every run has unless an axis says otherwise: key and value.
    pub base: BTreeMap<String, Setting>,
    /// What varies.
    pub axes: Vec<Axis>,
    /// Points that are left out.
    pub exclude: Vec<Selection>,
    /// What to relate results to.
    pub baseline: Option<Selection>,
    /// What to make tables of.
    pub metrics: Vec<String>,
    /// What to draw.
    pub figures: Vec<FigureSpec>,
    /// Compare the final memory of each run with the functional driver's.
    pub reference: bool,
    /// Count by launch, too.
    pub launches: bool,
    /// Stop each run after this many core cycles: it has failed then.
    pub max_cycles: Option<u64>,
    /// Sample each run: so many samples of a launch of many waves of CTAs.
    pub sample: Option<u32>,
    /// Axes of parameters that may change on the way act from this core cycle on: what is before is run once.
    pub fork_at_cycle: Option<u64>,
    pub(super) place: Place,
}

impl SweepFile {
    /// Reads a sweep file.
    ///
    /// # Errors
    /// Everything that is wrong with its text, each with file, line and column.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        let shown = path.display().to_string();
        let text = durawarp_base::input::text(path).map_err(|error| {
            durawarp_base::diagnostic::Diagnostic::nowhere(&shown, format!("cannot read the sweep file: {error}"))
        })?;
        Self::read(&shown, text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of a sweep file.
    ///
    /// # Errors
    /// As [`SweepFile::load`].
    pub fn read(file: &str, text: String, folder: &Path) -> Result<Self, Diagnostics> {
        let source = Arc::new(SourceText::new(file, text));
        let mut faults = Diagnostics::default();
        let parsed = parse(&source, &mut faults);
        // What follows a broken line can mean anything: the faults of the syntax come alone.
        faults = faults.into_result(Diagnostics::default())?;
        let root = TomlTable::root(&source, &parsed);
        check_keys(shape::FILE, root, "the sweep file", &mut faults);
        if let Some(item) = root.get("schema")
            && item.number().is_some_and(|found| found != durawarp_workload::Value::Int(SCHEMA))
        {
            faults.push(item.place().fault(format!("this program reads sweep files of schema {SCHEMA}")));
        }
        // Base and axes come before the rest: selections and figures are checked against the keys that these
        // two set.
        let base = base(root, &mut faults);
        let axes = axis::axes(root, &mut faults);
        let select = |table: TomlTable<'_>, faults: &mut Diagnostics| selection::selection(table, &base, &axes, faults);
        let exclude = root.tables("exclude").into_iter().map(|table| select(table, &mut faults)).collect();
        let baseline = root.table("baseline").map(|table| select(table, &mut faults));
        let metrics = metric_names(root, &mut faults);
        let options = root.table("base");
        let flag = |key: &str| options.and_then(|table| table.get(key)?.boolean());
        let whole = |key: &str| match options.and_then(|table| table.get(key)?.number()) {
            Some(durawarp_workload::Value::Int(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        if let Some(item) = options.and_then(|table| table.get("max_cycles"))
            && item.number() == Some(durawarp_workload::Value::Int(0))
        {
            faults.push(item.place().fault("`max_cycles` must be an integer from 1: no cycle is no run"));
        }
        let name = root.text("name").map_or("", |(name, _)| name).to_owned();
        if let Some((_, place)) = root.text("name")
            && (name.is_empty() || name.contains(|c: char| c.is_control() || "/\\\"".contains(c)))
        {
            faults.push(place.fault("a sweep's name is a part of file names: no slash, no quote, not empty"));
        }
        let known = figure::Known { sweep: &name, base: &base, axes: &axes, baseline: baseline.is_some() };
        let figures = figure::figures(root, &known, &mut faults);
        faults.into_result(SweepFile {
            name,
            description: root.text("description").map(|(text, _)| text.to_owned()),
            folder: folder.to_owned(),
            base,
            axes,
            exclude,
            baseline,
            metrics,
            figures,
            reference: flag("reference").unwrap_or(true),
            launches: flag("launches").unwrap_or(false),
            max_cycles: whole("max_cycles"),
            sample: whole("sample").map(|windows| u32::try_from(windows).unwrap_or(u32::MAX)),
            fork_at_cycle: whole("fork_at_cycle"),
            place: Place::new(&source, 0..0),
        })
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        self.place.text()
    }
}

/// `[base]`: words, and `set`. Of lists an axis is made, see [`axis`].
fn base(root: TomlTable<'_>, faults: &mut Diagnostics) -> BTreeMap<String, Setting> {
    let nowhere = || Place::new(root.source, 0..0);
    let default = |key: &str, value: Value| (key.to_owned(), Setting { value, place: nowhere() });
    // The defaults are set like words of the file, so that every point has these keys.
    let mut base = BTreeMap::from([
        default("machine", presets::DEFAULT_MACHINE.into()),
        default("scheme", "base".into()),
        default("profile", "default".into()),
        default("seed", 0.into()),
    ]);
    let Some(table) = root.table("base") else { return base };
    for (key, _, item) in table.entries() {
        if keys::is_word(key)
            && let Some(value) = keys::value_of(item)
        {
            base.insert(key.to_owned(), Setting { value, place: item.place() });
        }
    }
    if let Some(set) = table.table("set") {
        for (key, place, item) in keys::flattened(set) {
            if keys::is_word(&key) {
                faults.push(place.fault(format!("`{key}` is said in [base] itself, not in `set`")));
                continue;
            }
            let Some(value) = keys::plain(item, &key, faults) else { continue };
            if let Some(value) = keys::check(&key, &place, [(value, item.place())], faults).pop() {
                base.insert(key, Setting { value, place: item.place() });
            }
        }
    }
    base
}

fn metric_names(root: TomlTable<'_>, faults: &mut Diagnostics) -> Vec<String> {
    let Some(items) = root.get("metrics").and_then(|item| item.list()) else {
        return metrics::DEFAULT.iter().map(|name| (*name).to_owned()).collect();
    };
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let Some(name) = item.text() else { continue };
        if metrics::find(name).is_none() {
            faults.push(metrics::unknown(item.place().fault(format!("there is no metric `{name}`")), name));
        } else if names.iter().any(|other| other == name) {
            faults.push(item.place().fault(format!("metric `{name}` is here twice")));
        } else {
            names.push(name.to_owned());
        }
    }
    names
}
