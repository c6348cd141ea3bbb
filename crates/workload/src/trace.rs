//! Instruction traces of real GPUs, as Accel-Sim's tracer and post-processor write them: workloads without
//! values.
//!
//! ```text
//!  kernelslist.g ──list──> commands ─────────────────────────────┐
//!  kernel-N.traceg[.xz], kernel-N.tracez                         │
//!            └─file──survey──> code, CTAs, what is touched ──────┼─> TracePlan ─> host program, launches
//!  labels.toml ──labels──> persistent ranges, fences ──layout────┘        during the run: CTA by CTA ─> warps
//! ```
//! | file | what it has |
//! |---|---|
//! | `choice` | what can be chosen of a trace |
//! | `host` | the host program: copies and launches in order |
//! | `plan` | a trace ready to run, as data |
//! | `source` | CTAs of a kernel, read when they start |
//! | `survey` | a file before the run |
//! | `cta`, `cta_beside` | the walk through the lines of a CTA; through what goes on beside its warps |
//! | `beside` | what a file says of that |
//! | `layout` | addresses of the trace to addresses of the machine |
//! | `code`, `opcodes`, `products`, `opcode_table` | instructions as the machine executes them |
//! | `asynchronous`, `barrier_steps`, `sends`, `tensor_memory` | the same of those that go on beside their warp |
//! | `labels` | what a scheme needs to know |
//! | `file` | a kernel's file of whatever kind |
//! | `header`, `instruction`, `words`, `list`, `lines`, `faults` | the format as text |
//! | `tracez`, `frames` | the format as Accel-Sim 2.0 packs it |
//!
//! Every file is read twice: before the run, when all its faults are told, and CTA by CTA during it, so that
//! memory is bounded. Source: the tracer of Accel-Sim, versions up to 6 (Khairy et al., ISCA 2020; its 2.0).
//!
//! Invariant: a result follows from the files alone, whose text is a part of the workload's fingerprint; a
//! file that changes during a run fails it. Not modelled: values and all that depends on them (atomics add
//! zeros, loops are as long as in the trace), texture and surface accesses, the time of copies.

mod asynchronous;
mod barrier_steps;
mod beside;
pub(crate) mod choice;
mod code;
mod cta;
mod cta_beside;
mod faults;
mod file;
mod frames;
mod group_products;
mod header;
mod host;
mod instruction;
mod labels;
mod layout;
mod lines;
mod list;
mod opcode_table;
mod opcodes;
mod operands;
mod plan;
mod products;
mod sends;
mod source;
mod survey;
mod tensor_memory;
mod tracez;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::plan::Choice;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::TomlTable;
use durawarp_base::input;
use faults::TraceFaults;
use file::KernelFile;
use header::TraceHeader;
pub(crate) use host::TraceHost;
use labels::Labels;
pub(crate) use labels::TRACE_KEY;
use layout::{TouchedMemory, TraceLayout};
pub(crate) use list::LIST_FILE;
use list::{TraceCommand, TraceList, read_list};
use opcode_table::OpcodeTable;
pub(crate) use plan::TracePlan;
use survey::KernelSurvey;

/// A trace that was found; its kernels are read when it is resolved.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) description: String,
    list: PathBuf,
    commands: Arc<Vec<TraceCommand>>,
    ignored: BTreeMap<String, u64>,
    labels: Arc<Labels>,
    /// Points of a sweep ask for the same again.
    surveyed: Mutex<Option<LastSurvey>>,
}

/// What was surveyed last, and under which labels.
type LastSurvey = (Arc<Labels>, Result<Surveyed, Diagnostics>);

/// The commands that run, and the survey of each launch.
#[derive(Debug, Clone)]
struct Surveyed {
    commands: Arc<Vec<TraceCommand>>,
    kernels: Vec<Arc<KernelSurvey>>,
}

/// The file is the list of a trace or a traced kernel, by its name.
pub(crate) fn is_traced(path: &Path) -> bool {
    (path.extension().is_some_and(|end| end == "g") || KernelFile::is_one(path)) && path.is_file()
}

/// The list of a folder that is no other workload.
pub(crate) fn list_of(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(LIST_FILE)).filter(|list| list.is_file())
}

impl Trace {
    /// A trace by its list, or by the file of its only kernel; labels are in a file of the same name with the
    /// end `.toml`, if there is one.
    ///
    /// # Errors
    /// Everything that is wrong with the list and the labels.
    pub(crate) fn of_list(list: &Path) -> Result<Trace, Diagnostics> {
        let beside = list.with_extension("toml");
        let labels = match beside.is_file() {
            true => {
                let file = beside.display().to_string();
                let text = input::text(&beside).map_err(|error| Diagnostic::nowhere(&file, error.to_string()))?;
                Labels::read(&file, text)?
            }
            false => Labels::default(),
        };
        Self::new(list.to_owned(), labels)
    }

    /// A trace by its labels, which name its list relative to their folder.
    ///
    /// # Errors
    /// Everything that is wrong with both.
    pub(crate) fn of_document(root: TomlTable<'_>, folder: &Path) -> Result<Trace, Diagnostics> {
        let mut faults = Diagnostics::default();
        let labels = Labels::of_document(root, &mut faults);
        let list = labels.trace.as_ref().map(|trace| folder.join(trace));
        if let (Some(list), Some((_, place))) = (&list, root.text(TRACE_KEY))
            && !list.is_file()
        {
            faults.push(place.fault(format!("there is no file `{}`", list.display())));
        }
        faults.into_result(())?;
        Self::new(list.unwrap_or_default(), labels)
    }

    fn new(list: PathBuf, labels: Labels) -> Result<Trace, Diagnostics> {
        let TraceList { commands, ignored } = read_list(&list)?;
        let commands = Arc::new(commands);
        // The folder says what was traced: every list has the same name.
        let folder = list.canonicalize().ok().and_then(|list| Some(list.parent()?.file_name()?.to_owned()));
        let of_folder = || folder.map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned());
        // A kernel by itself is one of several in its folder.
        let kernel = list.file_name().and_then(|name| name.to_str()?.split('.').next()).unwrap_or_default();
        let of_file = || match KernelFile::is_one(&list) {
            true => format!("{}-{kernel}", of_folder()),
            false => of_folder(),
        };
        let name = labels.name.clone().unwrap_or_else(of_file);
        let description = labels.description.clone().unwrap_or_else(|| format!("the trace `{}`", list.display()));
        Ok(Trace { name, description, list, commands, ignored, labels: Arc::new(labels), surveyed: Mutex::default() })
    }

    /// Surveys the kernels that are chosen, and lays out what they touch.
    ///
    /// # Errors
    /// Everything that is wrong with the files and with the choice.
    pub(crate) fn plan(&self, choice: &Choice) -> Result<TracePlan, Diagnostics> {
        let labels = self.labels_under(choice)?;
        let Surveyed { commands, kernels } = self.surveyed_under(&labels)?;
        let mut touched = TouchedMemory::default();
        kernels.iter().for_each(|kernel| touched.merge(&kernel.touched));
        for command in &*commands {
            if let TraceCommand::CopyIn(range) = command {
                touched.touch_range(*range);
            }
        }
        touched.settle();
        let layout = TraceLayout::new(&touched, &labels, choice.persistent)?;
        let launches = |commands: &[TraceCommand]| commands.iter().filter(|command| command.is_launch()).count() as u64;
        Ok(TracePlan {
            list: self.list.clone(),
            skipped: launches(&self.commands) - launches(&commands),
            commands,
            ignored: self.ignored.clone(),
            labels,
            kernels,
            addresses: Arc::new(layout.addresses.clone()),
            layout: Arc::new(layout),
            warnings: self.unused(&touched),
        })
    }

    /// Persistent ranges that nothing touches.
    fn unused(&self, touched: &TouchedMemory) -> Vec<Diagnostic> {
        let unused = self.labels.persistent.iter().filter(|range| {
            let end = range.start + range.bytes;
            !touched.is_touched(range.start, end)
        });
        let warning = |range: &labels::PersistentRange| {
            let message = format!("nothing accesses the persistent range `{}` at {:#x}", range.name, range.start);
            Diagnostic::nowhere(&self.name, message).with_help("`start` is an address of the traced program")
        };
        unused.map(warning).collect()
    }

    /// The labels, with what is chosen beside them.
    fn labels_under(&self, choice: &Choice) -> Result<Arc<Labels>, Diagnostics> {
        if choice.opcodes.is_none() && choice.kernels.is_none() {
            return Ok(self.labels.clone());
        }
        let table =
            choice.opcodes.as_ref().map_or_else(|| Ok(OpcodeTable::default()), |file| OpcodeTable::read(file))?;
        let mut labels = Labels::clone(&self.labels);
        labels.opcodes = table.over(&labels.opcodes);
        labels.kernels = choice.kernels.clone().or(labels.kernels);
        Ok(Arc::new(labels))
    }

    fn surveyed_under(&self, labels: &Arc<Labels>) -> Result<Surveyed, Diagnostics> {
        let mut last = self.surveyed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, surveyed)) if of == labels => surveyed.clone(),
            _ => {
                let surveyed = self.commands_under(labels).and_then(|commands| self.survey(commands, labels));
                *last = Some((labels.clone(), surveyed.clone()));
                surveyed
            }
        }
    }

    /// The list without kernels that are not chosen: of these no more than the header is read.
    fn commands_under(&self, labels: &Labels) -> Result<Arc<Vec<TraceCommand>>, Diagnostics> {
        let Some(choice) = &labels.kernels else { return Ok(self.commands.clone()) };
        let (mut faults, mut kernels, mut chosen) = (Diagnostics::default(), Vec::new(), Vec::new());
        let mut known = BTreeMap::new();
        for command in &*self.commands {
            let TraceCommand::Kernel(path) = command else {
                chosen.push(command.clone());
                continue;
            };
            // Each file once, however often it is launched.
            let header = known
                .entry(path)
                .or_insert_with(|| header_of(path, labels).map_err(|found| faults.0.extend(found.0)).ok());
            let Some(header) = header else { continue };
            let number = header.id.unwrap_or(kernels.len() as u64 + 1);
            if choice.chooses(number, &header.name) {
                chosen.push(command.clone());
            }
            kernels.push((number, header.name.clone()));
        }
        faults = faults.into_result(Diagnostics::default())?;
        // A number that nothing has is a mistake, even where other items name kernels.
        let numbers = || kernels.iter().map(|(number, _)| *number);
        let (least, most) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
        for item in choice.idle(&kernels) {
            let message = format!("`{item}` names no kernel of the trace, whose kernels are {least} to {most}");
            faults.push(Diagnostic::nowhere("kernels", message));
        }
        faults.into_result(Arc::new(chosen))
    }

    /// Surveys every file once, however often it is launched.
    fn survey(&self, commands: Arc<Vec<TraceCommand>>, labels: &Labels) -> Result<Surveyed, Diagnostics> {
        let (mut known, mut faults) = (BTreeMap::new(), Diagnostics::default());
        let mut kernels = Vec::new();
        for command in &*commands {
            let TraceCommand::Kernel(path) = command else { continue };
            let survey = known.entry(path).or_insert_with(|| {
                input::remember(path);
                KernelSurvey::of(path, labels).map(Arc::new).map_err(|found| faults.0.extend(found.0)).ok()
            });
            kernels.extend(survey.clone());
        }
        faults.into_result(Surveyed { commands, kernels })
    }
}

/// The header of a kernel's file.
fn header_of(path: &Path, labels: &Labels) -> Result<TraceHeader, Diagnostics> {
    let mut faults = TraceFaults::new(&path.display().to_string());
    match KernelFile::open(path, &mut faults, labels) {
        Ok((_, header)) => Diagnostics(faults.into_faults()).into_result(header),
        Err(error) => {
            faults.nowhere(&format!("cannot read the file: {error}"));
            Err(Diagnostics(faults.into_faults()))
        }
    }
}
