//! Labels of a trace: which of its memory is persistent, and what its stores, fences and barriers are to a
//! persistency scheme. A TOML file, since a trace of a real GPU says nothing of it.
//!
//! ```text
//!   trace = "kernelslist.g"            the list, relative to this file
//!   copies = "warm"                    what the host copied in lies in the L2 ("none": it does not)
//!   barriers = "pm.barrier.wg"         what a barrier of a CTA is ("bar.sync")
//!   [fences]                           what MEMBAR of a scope is: "fence", or a fence of persistency behind it
//!   sys = "sfence"
//!   kernels = "3,5-8,@gemm"            which kernels run: the others are skipped
//!   [opcodes]                          which known opcode another is timed as
//!   VIMNMX3 = "VIMNMX"
//!   [[persistent]]                     a range of the traced program's addresses
//!   name = "table"
//!   start = 0x7f2b00000000
//!   bytes = 4194304
//!   stores = "write-back"              "plain", "non-temporal", "log"
//! ```
//! Invariants: ranges do not overlap; they begin and end at multiples of 256 bytes, so that no line is of two
//! media.

use std::sync::Arc;

use super::opcode_table::OpcodeTable;
use crate::plan::KernelChoice;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{KeyRule, Shape, SourceText, TomlTable, Value, check_keys, optional, parse, required};
use durawarp_kernel::ir::{PmOp, Scope};
use durawarp_kernel::memory::BUFFER_ALIGN;

/// The key that makes a manifest one of a trace.
pub(crate) const TRACE_KEY: &str = "trace";

const FENCES: Shape = Shape::Words(&["fence", "sfence", "ofence", "dfence"]);

const KEYS: &[KeyRule] = &[
    optional(TRACE_KEY, Shape::Text),
    optional("name", Shape::Text),
    optional("description", Shape::Text),
    optional("copies", Shape::Words(&["warm", "none"])),
    optional("barriers", Shape::Words(&["bar.sync", "pm.barrier.wg"])),
    optional("fences", Shape::Table(&[optional("cta", FENCES), optional("gpu", FENCES), optional("sys", FENCES)])),
    optional("kernels", Shape::Text),
    optional("opcodes", Shape::Any),
    optional("persistent", Shape::OneOrMany(&Shape::Table(RANGE))),
];

const RANGE: &[KeyRule] = &[
    required("name", Shape::Text),
    required("start", Shape::Whole),
    required("bytes", Shape::Whole),
    optional("stores", Shape::Words(&["plain", "write-back", "non-temporal", "log"])),
];

/// Most bytes of a range: 1 TiB. Chosen.
const MOST_BYTES: u64 = 1 << 40;

/// What stores to a persistent range are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StoresAre {
    /// As they are; some other instruction makes them durable, or the scheme does.
    Plain,
    /// `pm.clwb` of the stored lines follows each.
    WriteBack,
    /// `pm.st.nt`.
    NonTemporal,
    /// `pm.st.log`.
    Log,
}

/// A range of persistent memory, by the traced program's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersistentRange {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) stores: StoresAre,
}

/// The labels of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    /// The list, as the file names it.
    pub(crate) trace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// What the host copied in lies in the L2.
    pub(crate) warms: bool,
    /// A barrier of a CTA is `pm.barrier.wg`.
    pub(crate) persists_at_barriers: bool,
    /// What follows a fence of scope cta, gpu and sys.
    fences: [Option<PmOp>; 3],
    /// Which kernels run; all of them without.
    pub(crate) kernels: Option<KernelChoice>,
    /// What opcodes are timed as.
    pub(crate) opcodes: OpcodeTable,
    /// By address.
    pub(crate) persistent: Vec<PersistentRange>,
}

impl Default for Labels {
    /// Nothing is persistent.
    fn default() -> Self {
        Labels {
            trace: None,
            name: None,
            description: None,
            warms: true,
            persists_at_barriers: false,
            fences: [None; 3],
            kernels: None,
            opcodes: OpcodeTable::default(),
            persistent: Vec::new(),
        }
    }
}

impl Labels {
    /// Reads the labels of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(file: &str, text: String) -> Result<Labels, Diagnostics> {
        let source = Arc::new(SourceText::new(file, text));
        let mut faults = Diagnostics::default();
        let document = parse(&source, &mut faults);
        faults = faults.into_result(Diagnostics::default())?;
        let labels = Labels::of_document(TomlTable::root(&source, &document), &mut faults);
        faults.into_result(labels)
    }

    /// Reads a document. What comes back counts only if no fault was pushed.
    pub(crate) fn of_document(root: TomlTable<'_>, faults: &mut Diagnostics) -> Labels {
        check_keys(KEYS, root, "labels of a trace", faults);
        let text = |key| root.text(key).map(|(text, _)| text.to_owned());
        let fence = |scope| match root.table("fences").and_then(|fences| fences.text(scope))?.0 {
            "sfence" => Some(PmOp::Sfence),
            "ofence" => Some(PmOp::Ofence),
            "dfence" => Some(PmOp::Dfence),
            _ => None,
        };
        // Ranges are compared with each other as they come: the later one is at fault.
        let mut persistent: Vec<PersistentRange> = Vec::new();
        for table in root.tables("persistent") {
            let Some(range) = range(table, faults) else { continue };
            let overlaps = |other: &&PersistentRange| {
                other.start < range.start + range.bytes && range.start < other.start + other.bytes
            };
            if let Some(other) = persistent.iter().find(overlaps) {
                faults.push(table.place().fault(format!("`{}` overlaps `{}`", range.name, other.name)));
            }
            if persistent.iter().any(|other| other.name == range.name) {
                faults.push(table.place().fault(format!("`{}` is the name of two ranges", range.name)));
            }
            persistent.push(range);
        }
        persistent.sort_by_key(|range| range.start);
        // What the trace alone has beside persistency: which kernels run, and what opcodes are timed as.
        let kernels = root
            .text("kernels")
            .and_then(|(text, place)| text.parse().map_err(|message: String| faults.push(place.fault(message))).ok());
        let opcodes = match (root.get("opcodes"), root.table("opcodes")) {
            (_, Some(table)) => OpcodeTable::of_document(table, faults),
            (Some(item), None) => {
                faults.push(item.place().fault(format!("`opcodes` expects a table, found {}", item.described())));
                OpcodeTable::default()
            }
            (None, None) => OpcodeTable::default(),
        };
        Labels {
            trace: text(TRACE_KEY),
            name: text("name"),
            description: text("description"),
            warms: root.text("copies").is_none_or(|(word, _)| word == "warm"),
            persists_at_barriers: root.text("barriers").is_some_and(|(word, _)| word == "pm.barrier.wg"),
            fences: ["cta", "gpu", "sys"].map(fence),
            kernels,
            opcodes,
            persistent,
        }
    }

    /// The persistent range of an address.
    pub(crate) fn range_of(&self, address: u64) -> Option<&PersistentRange> {
        let at = self.persistent.partition_point(|range| range.start <= address).checked_sub(1)?;
        Some(&self.persistent[at]).filter(|range| address - range.start < range.bytes)
    }

    /// The fence of persistency that follows a fence of a scope.
    pub(crate) fn behind_fence(&self, scope: Scope) -> Option<PmOp> {
        self.fences[scope as usize]
    }
}

/// A range, if it is whole.
fn range(table: TomlTable<'_>, faults: &mut Diagnostics) -> Option<PersistentRange> {
    let mut whole = |key: &str| {
        let item = table.get(key)?;
        let Some(Value::Int(number @ 0..)) = item.number() else { return None };
        if !(number as u64).is_multiple_of(BUFFER_ALIGN) {
            let message = format!("`{key}` must be a multiple of {BUFFER_ALIGN}, found {number:#x}");
            let fault = item.place().fault(message);
            faults.push(fault.with_help("allocations of a GPU begin so; no line is in two kinds of memory then"));
            return None;
        }
        Some((number as u64, item))
    };
    let (start, bytes) = (whole("start"), whole("bytes"));
    let ((start, _), (bytes, item)) = (start?, bytes?);
    if !(1..=MOST_BYTES).contains(&bytes) {
        let fault: Diagnostic = item.place().fault(format!("`bytes` must be 256 to 2^40, found {bytes}"));
        faults.push(fault);
        return None;
    }
    let stores = match table.text("stores").map(|(word, _)| word) {
        Some("write-back") => StoresAre::WriteBack,
        Some("non-temporal") => StoresAre::NonTemporal,
        Some("log") => StoresAre::Log,
        _ => StoresAre::Plain,
    };
    Some(PersistentRange { name: table.text("name")?.0.to_owned(), start, bytes, stores })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Labels, String> {
        Labels::read("l.toml", text.to_owned()).map_err(|faults| faults.to_string())
    }

    #[test]
    fn without_a_word_nothing_is_persistent() {
        assert_eq!(read("").unwrap(), Labels::default());
    }

    #[test]
    fn ranges_fences_and_barriers_have_their_meaning() {
        let labels = read(
            "copies = \"none\"\nbarriers = \"pm.barrier.wg\"\nfences = { sys = \"sfence\", gpu = \"fence\" }\n\
             [[persistent]]\nname = \"b\"\nstart = 0x2000\nbytes = 512\nstores = \"log\"\n\
             [[persistent]]\nname = \"a\"\nstart = 0x1000\nbytes = 4096\n",
        )
        .unwrap();
        assert!(!labels.warms && labels.persists_at_barriers);
        let behind = [Scope::Cta, Scope::Gpu, Scope::Sys].map(|scope| labels.behind_fence(scope));
        assert_eq!(behind, [None, None, Some(PmOp::Sfence)]);
        let of = |address| labels.range_of(address).map(|range| (range.name.as_str(), range.stores));
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x21ff, 0x2200].map(of),
            [None, Some(("a", StoresAre::Plain)), Some(("a", StoresAre::Plain)), Some(("b", StoresAre::Log)), None]
        );
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let faults = read(
            "memcpy = \"warm\"\n[[persistent]]\nname = \"a\"\nstart = 0x1000\nbytes = 100\n\
             [[persistent]]\nname = \"b\"\nstart = 0x1000\nbytes = 4096\nstores = \"logs\"\n\
             [[persistent]]\nname = \"b\"\nstart = 0x1f00\nbytes = 0x200\n[[persistent]]\nstart = 256\nbytes = 0\n",
        )
        .unwrap_err();
        for expected in [
            "l.toml:1:1: ",
            "l.toml:5:9: `bytes` must be a multiple of 256, found 0x64",
            "did you mean `log`?",
            "`b` overlaps `b`",
            "`b` is the name of two ranges",
            "`bytes` must be 256 to 2^40, found 0",
            "name",
        ] {
            assert!(faults.contains(expected), "{expected}: {faults}");
        }
    }
}
