//! A look at a kernel's file before the run: its code, what it touches, how long it is, and all that is wrong
//! with it. The instructions themselves are read again when their CTA starts: no file is held in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::beside::{BesideWalk, ClusterSurvey};
use super::code::{Beside, KernelNeeds, Template, TraceCode, TraceVariant};
use super::cta::{AddedExits, AddressPlaces, CodeAccess, CtaWalk};
use super::faults::TraceFaults;
use super::file::KernelFile;
use super::header::TraceHeader;
use super::labels::Labels;
use super::layout::TouchedMemory;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_kernel::host::GlobalRange;
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::traced::WarpTrace;

/// Most local memory of a thread in bytes (CUDA C++ Programming Guide, "Technical Specifications").
const MOST_LOCAL_BYTES: u64 = 512 << 10;

/// A kernel of a trace, as its file has it.
#[derive(Debug)]
pub(crate) struct KernelSurvey {
    pub(crate) path: PathBuf,
    pub(crate) header: TraceHeader,
    pub(crate) code: TraceCode,
    pub(crate) kernel: Arc<Kernel>,
    /// The index of each CTA in its grid: a CTA without instructions is not in the file.
    pub(crate) ctas: Vec<[u32; 3]>,
    pub(crate) touched: TouchedMemory,
    /// The address of the thread's local memory that is its first byte.
    pub(crate) local_start: u64,
    /// Warp instructions, with those that labels add.
    pub(crate) instructions: u64,
    /// Warp instructions that are timed as others, for want of a unit or a time: `NAME as OTHER`.
    pub(crate) stood_in: BTreeMap<String, u64>,
    /// Warp instructions that the user's table has timed as another opcode: `NAME as KNOWN`.
    pub(crate) renamed: BTreeMap<String, u64>,
    /// Warps that end with an exit that the trace does not have.
    pub(crate) added: AddedExits,
    /// How what goes on beside warps is read.
    pub(crate) beside: BesideWalk,
    /// Barriers in shared memory, which the kernel has, order nothing; its clusters are taken apart.
    pub(crate) unknown: BesideUnknown,
    /// Of the file's text.
    pub(crate) hash: [u8; 32],
}

/// What a kernel's accesses touch.
#[derive(Debug, Default)]
struct Touches {
    global: TouchedMemory,
    shared_end: u64,
    local: Option<(u64, u64)>,
}

/// An access lies in addresses that memory can have.
fn in_memory(address: u64, bytes: u64) -> Result<(), String> {
    match address.checked_add(bytes) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(format!("address {address:#x} is that of no memory")),
    }
}

impl AddressPlaces for &mut Touches {
    fn global(&mut self, addresses: &mut [u64], bytes: u32) -> Result<(), String> {
        for &address in &*addresses {
            in_memory(address, bytes.into())?;
            self.global.touch(address, u64::from(bytes));
        }
        Ok(())
    }

    fn stretch(&mut self, range: GlobalRange, piece: &mut dyn FnMut(GlobalRange)) -> Result<(), String> {
        in_memory(range.start, range.bytes)?;
        self.global.touch_range(range);
        piece(range);
        Ok(())
    }

    fn shared(&mut self, addresses: &mut [u64], bytes: u32) {
        let end = addresses.iter().map(|address| address.saturating_add(u64::from(bytes))).max();
        self.shared_end = self.shared_end.max(end.unwrap_or(0));
    }

    fn local(&mut self, addresses: &mut [u64], bytes: u32) {
        for &address in &*addresses {
            let end = address.saturating_add(u64::from(bytes));
            let (low, high) = self.local.unwrap_or((address, end));
            self.local = Some((low.min(address), high.max(end)));
        }
    }
}

impl KernelSurvey {
    /// Surveys a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, of very many faults the first.
    pub(crate) fn of(path: &Path, labels: &Labels) -> Result<KernelSurvey, Diagnostics> {
        let file = path.display().to_string();
        let mut faults = TraceFaults::new(&file);
        match Self::read(path, &file, labels, &mut faults) {
            Ok(survey) if faults.is_empty() => return Ok(survey),
            Ok(_) => {}
            Err(error) => faults.nowhere(&format!("cannot read the file: {error}")),
        }
        Err(Diagnostics(faults.into_faults()))
    }

    fn read(path: &Path, file: &str, labels: &Labels, faults: &mut TraceFaults) -> io::Result<KernelSurvey> {
        let (text, header) = KernelFile::open(path, faults, labels)?;
        let knows = if header.format.version >= 6 { Beside::All } else { Beside::Nothing };
        let mut look = KernelLook::through(text, &header, labels, TraceCode::new(knows, false), faults)?;
        if knows == Beside::All && look.code.has_arrivals() && faults.is_empty() {
            // Arrivals wait for copies past the registers: now these are looked at one by one.
            let (text, header) = KernelFile::open(path, faults, labels)?;
            look = KernelLook::through(text, &header, labels, TraceCode::new(knows, true), faults)?;
        }
        // Barriers of CTAs that do not begin together cannot be counted.
        let clusters = look.clusters.are_there() && look.clusters.shape(header.grid).is_none();
        let first_has_all = look.beside.bytes.first_has_all().filter(|_| !clusters);
        if knows != Beside::All || first_has_all.is_some() || !look.beside.bytes.any() || !faults.is_empty() {
            let unknown = BesideUnknown { barriers: false, clusters };
            return Ok(look.survey((path, file), header, labels, (first_has_all, unknown), faults));
        }
        // A second look is one at a kernel without barriers.
        let (text, header) = KernelFile::open(path, faults, labels)?;
        let look = KernelLook::through(text, &header, labels, TraceCode::new(Beside::Copies, false), faults)?;
        let unknown = BesideUnknown { barriers: true, clusters };
        Ok(look.survey((path, file), header, labels, (None, unknown), faults))
    }
}

/// What goes on beside the warps of a kernel and is not known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BesideUnknown {
    /// Its barriers in shared memory order nothing.
    pub(crate) barriers: bool,
    /// CTAs of its clusters begin one by one.
    pub(crate) clusters: bool,
}

/// A look through a kernel's file.
struct KernelLook {
    code: TraceCode,
    touches: Touches,
    ctas: Vec<[u32; 3]>,
    /// How often each instruction is executed.
    steps: Vec<u64>,
    instructions: u64,
    added: AddedExits,
    clusters: ClusterSurvey,
    beside: BesideWalk,
    hash: blake3::Hasher,
}

impl KernelLook {
    fn through(
        mut text: KernelFile,
        header: &TraceHeader,
        labels: &Labels,
        code: TraceCode,
        faults: &mut TraceFaults,
    ) -> io::Result<KernelLook> {
        let mut look = KernelLook {
            code,
            touches: Touches::default(),
            ctas: Vec::new(),
            steps: Vec::new(),
            instructions: 0,
            added: AddedExits::default(),
            clusters: ClusterSurvey::default(),
            beside: BesideWalk::default(),
            hash: blake3::Hasher::new(),
        };
        look.hash.update(format!("{header:?}").as_bytes());
        // A header that is wrong makes every line look wrong.
        let sound = faults.is_empty();
        while sound && !faults.is_full() {
            let mut seen = |line: &[u8]| {
                look.hash.update(line).update(b"\n");
            };
            let Some(cta) = text.next(faults, &mut seen)? else { break };
            // Each CTA adds to the code, and to what is counted of barriers.
            let code = CodeAccess::Growing(&mut look.code);
            let (places, beside) = (&mut look.touches, look.beside);
            let mut walk = CtaWalk { header, labels, code, places, faults, beside, added: look.added };
            let (index, warps) = walk.walk(&cta);
            look.added = walk.added;
            look.beside = walk.beside;
            look.clusters.takes(index, look.beside.place);
            look.ctas.push(index);
            look.instructions += warps.iter().map(|warp| warp.steps() as u64).sum::<u64>();
            warps.iter().for_each(|warp| count(warp, &mut look.steps));
        }
        let most: u64 = header.grid.iter().map(|&size| u64::from(size)).product();
        if faults.is_empty() && look.ctas.is_empty() {
            faults.nowhere("the kernel has no CTA");
        } else if sound && look.ctas.len() as u64 > most {
            faults.nowhere(&format!("the file has {} CTAs, and the grid {most}", look.ctas.len()));
        }
        Ok(look)
    }

    /// What comes of the whole file, by whether the first number of a copy has the bytes outside, and by what
    /// is not known.
    fn survey(
        mut self,
        (path, file): (&Path, &str),
        header: TraceHeader,
        labels: &Labels,
        (first_has_all, unknown): (Option<bool>, BesideUnknown),
        faults: &mut TraceFaults,
    ) -> KernelSurvey {
        // Nothing is touched any more.
        self.touches.global.settle();
        let cluster = self.clusters.shape(header.grid);
        let needs = KernelNeeds { cluster, ..needs_of(&header, &self.touches, faults) };
        let kernel = Arc::new(self.code.kernel(&header, labels, file, needs));
        let local_start = self.touches.local.map_or(0, |(low, _)| low - low % 16);
        let stood_in = counted(&self.code, &self.steps, |template, variant| {
            let multiplies = matches!(variant, TraceVariant::Multiply { .. });
            template.stood_in.as_deref().filter(|_| !multiplies)
        });
        let renamed = counted(&self.code, &self.steps, |template, _| template.renamed.as_deref());
        // What the run reads of copies and clusters, which the look has found out.
        let beside = BesideWalk {
            in_clusters: cluster.is_some(),
            first_has_all: first_has_all.unwrap_or(true),
            ..BesideWalk::default()
        };
        KernelSurvey {
            path: path.to_owned(),
            header,
            code: self.code,
            kernel,
            ctas: self.ctas,
            touched: self.touches.global,
            local_start,
            instructions: self.instructions,
            stood_in,
            renamed,
            added: self.added,
            beside,
            unknown,
            hash: *self.hash.finalize().as_bytes(),
        }
    }
}

/// Shared memory as the header says, or as far as accesses go beyond it; local memory from the lowest address
/// on.
fn needs_of(header: &TraceHeader, touches: &Touches, faults: &mut TraceFaults) -> KernelNeeds {
    let shared_bytes = u64::from(header.shared_bytes).max(touches.shared_end);
    if shared_bytes > u64::from(durawarp_kernel::launch::MAX_SHARED) {
        faults.nowhere(&format!("an access to shared memory ends at byte {shared_bytes}, beyond what an SM can have"));
    }
    let local_bytes = touches.local.map_or(0, |(low, high)| high - (low - low % 16));
    if local_bytes > MOST_LOCAL_BYTES {
        let (low, high) = touches.local.unwrap_or_default();
        faults
            .nowhere(&format!("local memory is accessed from {low:#x} to {high:#x}, and a thread has 512 KiB at most"));
    }
    KernelNeeds { shared_bytes: shared_bytes as u32, local_bytes: local_bytes as u32, cluster: None }
}

/// Adds a warp's steps to how often each instruction is executed.
fn count(warp: &WarpTrace, steps: &mut Vec<u64>) {
    for instruction in warp.instructions() {
        let at = instruction as usize;
        if steps.len() <= at {
            steps.resize(at + 1, 0);
        }
        steps[at] += 1;
    }
}

/// Instructions by the name that `name` gives to their template; those to which it gives none are left out.
fn counted<'a>(
    code: &'a TraceCode,
    steps: &[u64],
    name: impl Fn(&'a Template, TraceVariant) -> Option<&'a str>,
) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for ((template, variant), &count) in code.executed().zip(steps) {
        if let Some(name) = name(template, variant) {
            *counted.entry(name.to_owned()).or_default() += count;
        }
    }
    counted
}
