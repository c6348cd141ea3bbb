//! The list of a traced program's commands, `kernelslist.g`: what was copied to the device, which kernels
//! were launched, in order.
//!
//! ```text
//!   MemcpyHtoD,0x00007f0000000000,4096
//!   kernel-1.traceg.xz             or .traceg, .tracez
//! ```
//! Source: Accel-Sim's tracer and its post-processor. Copies in the other direction have no effect; the
//! tracer notes no copies within the device, and nothing asynchronous. Accel-Sim passes over a line that it
//! does not know, as newer and changed tracers write them (`cudaMalloc,...`); so does this reader, which
//! counts them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{ENDS, KernelFile};
use super::words::hexadecimal;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::input;
use durawarp_kernel::host::GlobalRange;

/// The name that the post-processor gives the list.
pub(crate) const LIST_FILE: &str = "kernelslist.g";

/// Most bytes of a copy: 1 TiB is more than any GPU has. Chosen.
const MOST_BYTES: u64 = 1 << 40;

/// A command of the traced program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TraceCommand {
    /// The host copied to these bytes of the device's memory.
    CopyIn(GlobalRange),
    /// A kernel was launched: its file.
    Kernel(PathBuf),
}

impl TraceCommand {
    /// It launches a kernel.
    pub(crate) fn is_launch(&self) -> bool {
        matches!(self, TraceCommand::Kernel(_))
    }
}

/// What a list says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceList {
    pub(crate) commands: Vec<TraceCommand>,
    /// Lines that are no command, by their first word.
    pub(crate) ignored: BTreeMap<String, u64>,
}

/// Reads a list. Files of kernels are looked for in its folder. The file of a kernel is a list of that one.
///
/// # Errors
/// Every line that is wrong, and every file that is missing; a list without a kernel.
pub(crate) fn read_list(path: &Path) -> Result<TraceList, Diagnostics> {
    if KernelFile::is_one(path) {
        return Ok(TraceList { commands: vec![TraceCommand::Kernel(path.to_owned())], ignored: BTreeMap::new() });
    }
    let file = path.display().to_string();
    let text =
        input::text(path).map_err(|error| Diagnostic::nowhere(&file, format!("cannot read the list: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut list, mut faults) = (TraceList::default(), Diagnostics::default());
    // To its end, so that every line that is wrong is told at once.
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bytes = start..start + line.trim_end().len();
        start += line.len();
        match command(line.trim_end(), folder) {
            Ok(ListLine::Command(command)) => list.commands.push(command),
            Ok(ListLine::Nothing) => {}
            Ok(ListLine::Unknown(word)) => *list.ignored.entry(word).or_default() += 1,
            Err((message, help)) => {
                let fault = Diagnostic::at(&file, &text, bytes, message);
                faults.push(help.into_iter().fold(fault, Diagnostic::with_help));
            }
        }
    }
    if faults.0.is_empty() && !list.commands.iter().any(TraceCommand::is_launch) {
        faults.push(Diagnostic::nowhere(&file, "the list has no kernel"));
    }
    faults.into_result(list)
}

/// What a line is.
enum ListLine {
    Command(TraceCommand),
    /// It has no effect: an empty line, a copy that nobody on the device sees.
    Nothing,
    /// It is not known; its first word.
    Unknown(String),
}

/// Most letters of a word that is told of. Chosen.
const WORD_LETTERS: usize = 24;

/// What a line is; what is wrong with it, and what to do.
fn command(line: &str, folder: &Path) -> Result<ListLine, (String, Option<String>)> {
    let fault = |message: String| Err((message, None));
    if line.starts_with("kernel") {
        // The whole line is the name, blanks included.
        let path = folder.join(line);
        if line.ends_with(".trace") || line.ends_with(".trace.xz") {
            let help = "the tracer's own files become such by Accel-Sim's post-processor: `post-traces-processing`";
            let message =
                format!("`{line}` is not grouped by CTA: expected a file of `.traceg`, `.traceg.xz` or `.tracez`");
            return Err((message, Some(help.to_owned())));
        }
        if !ENDS.iter().any(|end| line.ends_with(end)) {
            return fault(format!("`{line}` is no file of `.traceg`, `.traceg.xz` or `.tracez`"));
        }
        if !path.is_file() {
            return fault(format!("there is no file `{}`", path.display()));
        }
        return Ok(ListLine::Command(TraceCommand::Kernel(path)));
    }
    if let Some(copy) = line.strip_prefix("MemcpyHtoD,") {
        let range = copy.split_once(',').and_then(|(start, bytes)| {
            let start = hexadecimal(start.trim().as_bytes())?;
            let bytes: u64 = bytes.trim().parse().ok().filter(|&bytes| bytes <= MOST_BYTES)?;
            start.checked_add(bytes).filter(|&end| end <= i64::MAX as u64)?;
            Some(GlobalRange { start, bytes })
        });
        let Some(range) = range else {
            return fault(format!("expected MemcpyHtoD,0xADDRESS,BYTES; got `{line}`"));
        };
        return Ok(if range.bytes > 0 { ListLine::Command(TraceCommand::CopyIn(range)) } else { ListLine::Nothing });
    }
    if line.is_empty() || line.starts_with("Memcpy") {
        return Ok(ListLine::Nothing);
    }
    // A launch must not get lost: its file has another name than the tracer gives.
    if ENDS.iter().chain(&[".trace", ".trace.xz"]).any(|end| line.ends_with(end)) {
        return fault(format!("the name of a kernel's file begins with `kernel`; got `{line}`"));
    }
    let word = line.split([',', ' ', '\t']).next().unwrap_or_default();
    Ok(ListLine::Unknown(word.chars().take(WORD_LETTERS).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TraceList, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kernel-1.traceg"), "").unwrap();
        let list = folder.path().join(LIST_FILE);
        std::fs::write(&list, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        read_list(&list).map_err(|faults| faults.to_string().replace(&shown, ""))
    }

    #[test]
    fn copies_to_the_device_and_kernels_are_commands() {
        let list = read("MemcpyHtoD,0x00007f0000001000,4096\n\nkernel-1.traceg\nMemcpyDtoH,0x10,4\nkernel-1.traceg\n");
        let list = list.unwrap().commands;
        assert_eq!(list[0], TraceCommand::CopyIn(GlobalRange { start: 0x7f00_0000_1000, bytes: 4096 }));
        assert!(list.len() == 3 && list[1] == list[2]);
    }

    #[test]
    fn a_kernel_by_itself_is_a_list_of_one() {
        for path in ["a/kernel-1.tracez", "kernel-2.traceg", "k.traceg.xz"].map(Path::new) {
            assert_eq!(read_list(path).unwrap().commands, [TraceCommand::Kernel(path.to_owned())]);
        }
    }

    #[test]
    fn a_line_that_is_not_known_is_passed_over_and_counted() {
        let list = read("cudaMalloc,0x7f00,64\nkernel-1.traceg\ncudaMalloc,0x8f00,64\nMemcpyDtoH,0x10,4\nstream 3\n");
        let list = list.unwrap();
        assert_eq!(list.commands.len(), 1);
        assert_eq!(list.ignored, BTreeMap::from([("cudaMalloc".to_owned(), 2), ("stream".to_owned(), 1)]));
    }

    #[test]
    fn every_wrong_line_is_told() {
        let faults =
            read("MemcpyHtoD,0x10\nkernel-1.trace\nkernel-2.traceg.xz\nkernl-1.traceg\nkernel-1.txt\n").unwrap_err();
        let lines: Vec<&str> = faults.lines().collect();
        assert_eq!(lines.len(), 5, "{faults}");
        assert!(lines[0].starts_with("kernelslist.g:1:1: expected MemcpyHtoD,0xADDRESS,BYTES"), "{faults}");
        assert!(lines[1].contains("post-traces-processing"), "{faults}");
        assert_eq!(lines[2], "kernelslist.g:3:1: there is no file `kernel-2.traceg.xz`");
        assert!(
            lines[3].contains("begins with `kernel`; got `kernl-1.traceg`")
                && lines[4].contains("`kernel-1.txt` is no file of")
        );
        assert_eq!(
            read("cudaMalloc,0x10,4\nMemcpyDtoH,0x10,4\n").unwrap_err(),
            "kernelslist.g: the list has no kernel"
        );
    }
}
