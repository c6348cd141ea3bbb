//! A look at a kernel's file before the run: its code, what it touches, how long it is, and all that is wrong
//! with it. The instructions themselves are read again when their CTA starts: no file is held in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::code::{KernelMemory, Template, TraceCode};
use super::cta::{AddressPlaces, CodeAccess, CtaWalk};
use super::faults::TraceFaults;
use super::file::KernelFile;
use super::header::TraceHeader;
use super::labels::Labels;
use super::layout::TouchedMemory;
use durawarp_base::diagnostic::Diagnostics;
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
    /// Warps without instructions: each ends with an exit that the trace does not have.
    pub(crate) empty_warps: u64,
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

impl AddressPlaces for &mut Touches {
    fn global(&mut self, addresses: &mut [u64], bytes: u32) -> Result<(), String> {
        for &address in &*addresses {
            if address.checked_add(u64::from(bytes)).is_none_or(|end| end > i64::MAX as u64) {
                return Err(format!("address {address:#x} is that of no memory"));
            }
            self.global.touch(address, u64::from(bytes));
        }
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
        let (mut text, header) = KernelFile::open(path, faults, labels)?;
        let mut hash = blake3::Hasher::new();
        hash.update(format!("{header:?}").as_bytes());
        let (mut code, mut touches, mut ctas, mut instructions) = (TraceCode::default(), Touches::default(), vec![], 0);
        let (mut steps, mut empty_warps) = (Vec::new(), 0);
        // A header that is wrong makes every line look wrong.
        let sound = faults.is_empty();
        while sound && !faults.is_full() {
            let mut seen = |line: &[u8]| {
                hash.update(line).update(b"\n");
            };
            let Some(cta) = text.next(faults, &mut seen)? else { break };
            let code = CodeAccess::Growing(&mut code);
            let mut walk = CtaWalk { header: &header, labels, code, places: &mut touches, faults, empty_warps: 0 };
            let (index, warps) = walk.walk(&cta);
            empty_warps += walk.empty_warps;
            ctas.push(index);
            instructions += warps.iter().map(|warp| warp.steps() as u64).sum::<u64>();
            warps.iter().for_each(|warp| count(warp, &mut steps));
        }
        let most: u64 = header.grid.iter().map(|&size| u64::from(size)).product();
        if faults.is_empty() && ctas.is_empty() {
            faults.nowhere("the kernel has no CTA");
        } else if sound && ctas.len() as u64 > most {
            faults.nowhere(&format!("the file has {} CTAs, and the grid {most}", ctas.len()));
        }
        // What comes of the whole file follows from all that was touched.
        touches.global.settle();
        let memory = memory_of(&header, &touches, faults);
        let kernel = Arc::new(code.kernel(&header, labels, file, memory));
        let local_start = touches.local.map_or(0, |(low, _)| low - low % 16);
        let stood_in = counted(&code, &steps, |template| template.stood_in.as_deref());
        let renamed = counted(&code, &steps, |template| template.renamed.as_deref());
        let hash = *hash.finalize().as_bytes();
        let touched = touches.global;
        Ok(KernelSurvey {
            path: path.to_owned(),
            header,
            code,
            kernel,
            ctas,
            touched,
            local_start,
            instructions,
            stood_in,
            renamed,
            empty_warps,
            hash,
        })
    }
}

/// Shared memory as the header says, or as far as accesses go beyond it; local memory from the lowest address
/// on.
fn memory_of(header: &TraceHeader, touches: &Touches, faults: &mut TraceFaults) -> KernelMemory {
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
    KernelMemory { shared_bytes: shared_bytes as u32, local_bytes: local_bytes as u32 }
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
    name: impl Fn(&'a Template) -> Option<&'a str>,
) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for (template, &count) in code.executed().zip(steps) {
        if let Some(name) = name(template) {
            *counted.entry(name.to_owned()).or_default() += count;
        }
    }
    counted
}
