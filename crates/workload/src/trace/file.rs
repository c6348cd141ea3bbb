//! A kernel's file of whatever kind: plain or compressed text, or packed. Its name says which.
//!
//! CTAs are asked for nearly in the order of the file, in which they are dispatched. Of a text, which is read
//! from its beginning on, one that is asked for early has those before it read and kept; so the text of a few
//! CTAs is in memory, however long the file is. A packed file gives every CTA at once.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::cta::CtaText;
use super::faults::TraceFaults;
use super::header::TraceHeader;
use super::labels::Labels;
use super::lines::TraceLines;
use super::tracez::PackedTrace;

/// What names of kernels' files end with.
pub(crate) const ENDS: [&str; 3] = [".traceg", ".traceg.xz", ".tracez"];

/// How a file has its text.
#[derive(Debug)]
enum FileForm {
    /// Line by line, and CTAs that were read and not asked for yet.
    Lines(TraceLines, BTreeMap<u64, CtaText>),
    Packed(Box<PackedTrace>),
}

/// A kernel's file that is open, behind its header.
#[derive(Debug)]
pub(crate) struct KernelFile {
    form: FileForm,
    /// The CTA that comes next.
    next: u64,
}

impl KernelFile {
    /// The file is one of a kernel, by its name.
    pub(crate) fn is_one(path: &Path) -> bool {
        path.to_str().is_some_and(|path| ENDS.iter().any(|end| path.ends_with(end)))
    }

    /// Opens a file and reads its header. What comes back counts only if no fault was pushed.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn open(
        path: &Path,
        faults: &mut TraceFaults,
        labels: &Labels,
    ) -> io::Result<(KernelFile, TraceHeader)> {
        let (form, header) = if PackedTrace::is_packed(path) {
            let packed = PackedTrace::open(path)?;
            let header = TraceHeader::read(&mut packed.header(), faults, labels);
            (FileForm::Packed(Box::new(packed)), header)
        } else {
            let mut lines = TraceLines::open(path)?;
            let header = TraceHeader::read(&mut lines, faults, labels);
            (FileForm::Lines(lines, BTreeMap::new()), header)
        };
        Ok((KernelFile { form, next: 0 }, header))
    }

    /// The next CTA of the file; none at its end, or at a fault. `seen` gets every line.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn next(
        &mut self,
        faults: &mut TraceFaults,
        seen: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Option<CtaText>> {
        let text = match &mut self.form {
            FileForm::Lines(lines, _) => {
                let read = CtaText::next(lines, faults, seen);
                read.map_err(|error| io::Error::new(error.kind(), format!("after line {}: {error}", lines.number())))?
            }
            FileForm::Packed(packed) => {
                let text = packed.cta(self.next)?;
                text.iter().flat_map(CtaText::lines).for_each(|(_, line)| seen(line));
                text
            }
        };
        self.next += 1;
        Ok(text)
    }

    /// The text of a CTA; none when there is none, or at a fault. A CTA is asked for once.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn cta(&mut self, cta: u64, faults: &mut TraceFaults) -> io::Result<Option<CtaText>> {
        match &mut self.form {
            FileForm::Packed(packed) => return packed.cta(cta),
            FileForm::Lines(_, kept) => {
                if let Some(kept) = kept.remove(&cta) {
                    return Ok(Some(kept));
                }
            }
        }
        loop {
            let (number, text) = (self.next, self.next(faults, &mut |_| {})?);
            match (text, &mut self.form) {
                (Some(text), FileForm::Lines(_, kept)) if number != cta => {
                    kept.insert(number, text);
                }
                (text, _) => return Ok(text),
            }
        }
    }

    /// CTAs that were read and not asked for yet.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        match &self.form {
            FileForm::Lines(_, kept) => kept.len(),
            FileForm::Packed(_) => 0,
        }
    }
}
