//! The CTAs of a kernel's file, read when they start.
//!
//! The file is opened when its first CTA starts. Which thread reads a CTA does not matter to what it gets.

use std::sync::{Arc, Mutex, PoisonError};

use super::cta::{AddedExits, AddressPlaces, CodeAccess, CtaText, CtaWalk};
use super::faults::TraceFaults;
use super::file::KernelFile;
use super::labels::Labels;
use super::layout::TraceLayout;
use super::survey::KernelSurvey;
use durawarp_kernel::host::GlobalRange;
use durawarp_kernel::traced::{CtaSource, TraceFault, WarpTrace};

/// A kernel's file, followed by a run.
#[derive(Debug)]
pub(crate) struct CtaFile {
    survey: Arc<KernelSurvey>,
    labels: Arc<Labels>,
    layout: Arc<TraceLayout>,
    /// None before its first CTA.
    reading: Mutex<Option<KernelFile>>,
}

/// AddressPlaces of a trace's addresses in the machine.
struct Mapped<'a> {
    layout: &'a TraceLayout,
    local_start: u64,
}

impl AddressPlaces for Mapped<'_> {
    fn global(&mut self, addresses: &mut [u64], _: u32) -> Result<(), String> {
        for address in addresses {
            *address = self.layout.of(*address).ok_or_else(|| format!("{address:#x} was not there before the run"))?;
        }
        Ok(())
    }

    fn stretch(&mut self, range: GlobalRange, piece: &mut dyn FnMut(GlobalRange)) -> Result<(), String> {
        let GlobalRange { start, bytes } = range;
        let [first, last] = [start, start + bytes - 1].map(|address| self.layout.of(address));
        let (Some(first), Some(last)) = (first, last) else {
            return Err(format!("{start:#x} was not there before the run"));
        };
        // As a rule it is one piece.
        if last.wrapping_sub(first) == bytes - 1 {
            piece(GlobalRange { start: first, bytes });
        } else {
            self.layout.pieces(range).into_iter().for_each(piece);
        }
        Ok(())
    }

    fn shared(&mut self, _: &mut [u64], _: u32) {}

    fn local(&mut self, addresses: &mut [u64], _: u32) {
        addresses.iter_mut().for_each(|address| *address = address.wrapping_sub(self.local_start));
    }
}

impl CtaFile {
    /// A file that was surveyed, from its first CTA on.
    pub(crate) fn new(survey: Arc<KernelSurvey>, labels: Arc<Labels>, layout: Arc<TraceLayout>) -> CtaFile {
        CtaFile { survey, labels, layout, reading: Mutex::default() }
    }

    /// The text of a CTA.
    fn text(&self, cta: u64, faults: &mut TraceFaults) -> std::io::Result<Option<CtaText>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *reading {
            Some(file) => file,
            none => none.insert(KernelFile::open(&self.survey.path, faults, &self.labels)?.0),
        };
        file.cta(cta, faults)
    }
}

impl CtaSource for CtaFile {
    fn ctas(&self) -> u64 {
        self.survey.ctas.len() as u64
    }

    fn index(&self, cta: u64) -> [u32; 3] {
        self.survey.ctas.get(cta as usize).copied().unwrap_or_default()
    }

    fn warps(&self, cta: u64) -> Result<Vec<WarpTrace>, TraceFault> {
        let survey = &*self.survey;
        let mut faults = TraceFaults::new(&survey.path.display().to_string());
        // Only the text is read under the lock; what it says is found out beside others.
        let text = self.text(cta, &mut faults).unwrap_or_else(|error| {
            faults.nowhere(&format!("cannot read the file: {error}"));
            None
        });
        let mut warps = Vec::new();
        if let Some(text) = &text {
            let mut walk = CtaWalk {
                header: &survey.header,
                labels: &self.labels,
                code: CodeAccess::Fixed(&survey.code),
                places: Mapped { layout: &self.layout, local_start: survey.local_start },
                faults: &mut faults,
                beside: survey.beside,
                added: AddedExits::default(),
            };
            warps = walk.walk(text).1;
        }
        match (faults.first(), text) {
            (None, Some(_)) => Ok(warps),
            (fault, _) => {
                let file = survey.path.display();
                let why = fault.map_or_else(|| format!("{file}: CTA {cta} is missing"), ToString::to_string);
                Err(TraceFault(format!("{why}; the file has changed since the run began")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::layout::TraceLayout;
    use super::*;

    /// A file with two CTAs, surveyed.
    fn file(path: &Path) -> CtaFile {
        let labels = Arc::new(Labels::default());
        let survey = KernelSurvey::of(path, &labels).unwrap_or_else(|faults| panic!("{faults}"));
        let layout = TraceLayout::new(&survey.touched, &labels, false).unwrap();
        CtaFile::new(Arc::new(survey), labels, Arc::new(layout))
    }

    #[test]
    fn the_order_in_which_ctas_are_asked_for_does_not_matter() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/small/kernel-1.traceg"));
        let (in_order, reversed) = (file(path), file(path));
        let expected = [0, 1].map(|cta| in_order.warps(cta).unwrap());
        assert_eq!(expected.each_ref().map(|warps| [warps[0].steps(), warps[1].steps()]), [[21, 5]; 2]);
        assert_ne!(expected[0], expected[1]);
        let found = [1, 0].map(|cta| reversed.warps(cta).unwrap());
        assert!(found[0] == expected[1] && found[1] == expected[0]);
        assert_eq!(
            reversed.reading.lock().unwrap().as_ref().map(KernelFile::kept),
            Some(0),
            "what was given is not kept"
        );
        assert_eq!((in_order.ctas(), in_order.index(1)), (2, [2, 0, 0]), "the second of the grid is not in the file");
    }

    #[test]
    fn a_file_that_changes_during_the_run_fails_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel-1.traceg");
        let text =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/small/kernel-1.traceg"))
                .unwrap();
        for (from, to, why) in [
            (" IADD3 ", " IMAD ", "the file is not what it was"),
            ("0x00007f2b00002000", "0x00007f2c00002000", "was not there before the run"),
            ("thread block = 0,0,0", "thread block", "expected `thread block = X,Y,Z`"),
        ] {
            std::fs::write(&path, &text).unwrap();
            let source = file(&path);
            std::fs::write(&path, text.replace(from, to)).unwrap();
            let fault = source.warps(0).unwrap_err().to_string();
            assert!(fault.contains(why) && fault.ends_with("has changed since the run began"), "{fault}");
        }
        std::fs::write(&path, &text).unwrap();
        let source = file(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(source.warps(0).unwrap_err().to_string().contains("cannot read the file"));
    }
}
