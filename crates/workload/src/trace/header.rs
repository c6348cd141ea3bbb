//! The header of a kernel's file: `-key = value` lines before the first line that begins with `#`.
//!
//! ```text
//!   -kernel name = _Z6vecAddPdS_S_i      -shmem = 0                       -cuda stream id = 0
//!   -kernel id = 1                       -nregs = 18                      -shmem base_addr = 0x00007f2b00000000
//!   -grid dim = (98,1,1)                 -binary version = 70             -local mem base_addr = 0x00007f2b01000000
//!   -block dim = (1024,1,1)              -accelsim tracer version = 5     -enable lineinfo = 0
//! ```
//! Source: Accel-Sim's tracer. Keys are in any order; those that are not known are passed over.

use std::collections::BTreeMap;

use super::faults::TraceFaults;
use super::instruction::LineFormat;
use super::labels::Labels;
use super::lines::TraceLines;
use super::words::hexadecimal;
use durawarp_kernel::launch::MAX_THREADS;

/// Architectures whose opcodes are known. Those of 62 (Tegra X2), 72 (Xavier), 87 (Orin) and 89 (Ada) have no
/// opcode beyond those of 61, 70 and 80; of Hopper and Blackwell (90 and above) most are known ("CUDA Binary
/// Utilities", instruction set reference).
const ARCHITECTURES: [u32; 16] = [35, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120];

/// Limits of the CUDA C++ Programming Guide: CTAs of a grid in y and z, registers of a thread.
const MOST_CTAS_IN_Y: u32 = 65_535;
const MOST_REGISTERS: u32 = 255;

/// Versions of the tracer that are known.
const LAST_VERSION: u32 = 6;

/// What is known of a kernel before its instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TraceHeader {
    /// The number of the launch in the traced program, from 1; none where the header has none.
    pub(crate) id: Option<u64>,
    /// Mangled.
    pub(crate) name: String,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Static and dynamic, in bytes.
    pub(crate) shared_bytes: u32,
    pub(crate) registers_per_thread: u32,
    pub(crate) stream: u64,
    /// First generic addresses of shared and of local memory; none where the header has none, or 0.
    pub(crate) shared_base: Option<u64>,
    pub(crate) local_base: Option<u64>,
    pub(crate) format: LineFormat,
}

impl TraceHeader {
    /// Threads of a CTA.
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Lanes of a warp of a CTA.
    pub(crate) fn lanes(&self, warp: u32) -> u32 {
        let lanes = self.threads().saturating_sub(32 * warp).min(32);
        if lanes == 0 { 0 } else { u32::MAX >> (32 - lanes) }
    }

    /// Reads a header, with the line that ends it. What comes back counts only if no fault was pushed. Labels
    /// with a table of opcodes allow architectures whose own opcodes are not known.
    pub(crate) fn read(lines: &mut TraceLines, faults: &mut TraceFaults, labels: &Labels) -> TraceHeader {
        let mut values = BTreeMap::new();
        // Keys are in any order: their values are looked at when all are there.
        loop {
            match lines.next() {
                Ok(Some((_, line))) if line.starts_with(b"#") => break,
                Ok(Some((number, line))) => {
                    let text = String::from_utf8_lossy(line).into_owned();
                    match text.strip_prefix('-').and_then(|text| text.split_once(" = ")) {
                        Some((key, value)) => {
                            values.insert(key.trim().to_owned(), (number, value.trim().to_owned(), text.clone()));
                        }
                        None => {
                            let expected = "expected `-KEY = VALUE`, or `#` at the header's end";
                            faults.at(number, line, 0..line.len(), expected);
                        }
                    }
                }
                Ok(None) => {
                    faults.nowhere("the file ends within its header: no line begins with `#`");
                    return TraceHeader::default();
                }
                Err(error) => {
                    faults.nowhere(&format!("cannot read the file: {error}"));
                    return TraceHeader::default();
                }
            }
        }
        HeaderReader { values, faults, any_architecture: !labels.opcodes.is_empty() }.header()
    }
}

struct HeaderReader<'a> {
    /// Line, value and text of each key.
    values: BTreeMap<String, (u32, String, String)>,
    faults: &'a mut TraceFaults,
    any_architecture: bool,
}

impl HeaderReader<'_> {
    fn header(mut self) -> TraceHeader {
        let name = self.value("kernel name", "a name", true, |name| Some(name.to_owned()));
        let dim = |text: &str| {
            let mut sizes = text.strip_prefix('(')?.strip_suffix(')')?.split(',').map(|size| size.trim().parse().ok());
            let dim = [sizes.next()??, sizes.next()??, sizes.next()??];
            (sizes.next().is_none() && dim.iter().all(|&size: &u32| size > 0)).then_some(dim)
        };
        let grid = |text: &str| dim(text).filter(|&[x, y, z]| x <= i32::MAX as u32 && y.max(z) <= MOST_CTAS_IN_Y);
        let grid = self.value("grid dim", "(x,y,z) of 1 to 2147483647, 65535 and 65535 CTAs", true, grid);
        let block = |text: &str| {
            let threads = |dim: &[u32; 3]| dim.iter().map(|&size| u64::from(size)).fold(1, u64::saturating_mul);
            dim(text).filter(|dim| threads(dim) <= u64::from(MAX_THREADS))
        };
        let block = self.value("block dim", "(x,y,z) of 1 to 1024 threads", true, block);
        // What is not needed has a value that says so: 0, or none.
        let number = |text: &str| text.parse().ok();
        let shared_bytes = self.value("shmem", "bytes", false, number);
        let registers = |text: &str| number(text).filter(|&registers: &u32| registers <= MOST_REGISTERS);
        let registers_per_thread = self.value("nregs", "registers of a thread, 255 at most", false, registers);
        let id = self.value("kernel id", "a number", false, |text| text.parse().ok());
        let any = self.any_architecture;
        let known = |text: &str| text.parse().ok().filter(|version| any || ARCHITECTURES.contains(version));
        let architectures = ARCHITECTURES.map(|version| version.to_string()).join(", ");
        self.value("binary version", &format!("one of {architectures}"), true, known);
        let stream = self.value("cuda stream id", "a number", false, |text| text.parse().ok());
        let address = |text: &str| hexadecimal(text.as_bytes());
        let shared_base = self.value("shmem base_addr", "an address in base 16", false, address);
        let local_base = self.value("local mem base_addr", "an address in base 16", false, address);
        // Without a version the tracer is older than its first.
        let version = |text: &str| text.parse().ok().filter(|&version: &u32| version <= LAST_VERSION);
        let version = self.value("accelsim tracer version", "a version of the tracer, 6 at most", false, version);
        let lineinfo = |text: &str| ["0", "1"].contains(&text).then(|| text == "1");
        let lineinfo = self.value("enable lineinfo", "0 or 1", false, lineinfo);
        TraceHeader {
            id,
            name: name.unwrap_or_default(),
            grid: grid.unwrap_or([1; 3]),
            block: block.unwrap_or([1; 3]),
            shared_bytes: shared_bytes.unwrap_or(0),
            registers_per_thread: registers_per_thread.unwrap_or(0),
            stream: stream.unwrap_or(0),
            shared_base: shared_base.filter(|&base| base != 0),
            local_base: local_base.filter(|&base| base != 0),
            format: LineFormat { version: version.unwrap_or(0), lineinfo: lineinfo.unwrap_or(false) },
        }
    }

    fn value<T>(&mut self, key: &str, what: &str, needed: bool, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let Some((number, value, line)) = self.values.get(key) else {
            if needed {
                self.faults.nowhere(&format!("the header has no `-{key}`: expected {what}"));
            }
            return None;
        };
        let read = read(value);
        if read.is_none() {
            let at = line.rfind(value.as_str()).unwrap_or(0)..line.len();
            self.faults.at(*number, line.as_bytes(), at, &format!("`-{key}`: expected {what}; got `{value}`"));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (TraceHeader, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.traceg");
        std::fs::write(&path, text).unwrap();
        let mut faults = TraceFaults::new("k.traceg");
        let header = TraceHeader::read(&mut TraceLines::open(&path).unwrap(), &mut faults, &Labels::default());
        (header, faults.into_faults().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn keys_come_in_any_order_and_unknown_ones_are_passed_over() {
        let text = "-block dim = (48,1,1)\n-kernel name = k(int)\n\n-colour = red\n-grid dim = (3,2,1)\n\
            -binary version = 70\n-shmem = 1024\n-nregs = 18\n-cuda stream id = 7\n\
            -shmem base_addr = 0x00007f2b00000000\n-local mem base_addr = 0x0\n\
            -accelsim tracer version = 5\n-enable lineinfo = 1\n#traces format = x\n#BEGIN_TB\n";
        let (header, faults) = read(text);
        assert_eq!(faults, [""; 0]);
        assert_eq!((header.name.as_str(), header.grid, header.block), ("k(int)", [3, 2, 1], [48, 1, 1]));
        assert_eq!((header.shared_bytes, header.registers_per_thread, header.stream), (1024, 18, 7));
        assert_eq!((header.shared_base, header.local_base), (Some(0x7f2b_0000_0000), None));
        assert_eq!(header.format, LineFormat { version: 5, lineinfo: true });
        assert_eq!([0, 1, 2].map(|warp| header.lanes(warp)), [u32::MAX, 0xffff, 0]);
    }

    #[test]
    fn an_architecture_without_opcodes_of_its_own_is_known() {
        for version in [35, 62, 72, 87, 89] {
            let text = format!(
                "-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-binary version = {version}\n#\n"
            );
            assert_eq!(read(&text).1, [""; 0], "{version}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let text = "-grid dim = (3,2)\n-block dim = (2000,1,1)\n-binary version = 99\nkernel\n-accelsim tracer version = 7\n#\n";
        let (_, faults) = read(text);
        assert_eq!(
            faults,
            [
                "k.traceg:4:1: expected `-KEY = VALUE`, or `#` at the header's end",
                "k.traceg: the header has no `-kernel name`: expected a name",
                "k.traceg:1:13: `-grid dim`: expected (x,y,z) of 1 to 2147483647, 65535 and 65535 CTAs; got `(3,2)`",
                "k.traceg:2:14: `-block dim`: expected (x,y,z) of 1 to 1024 threads; got `(2000,1,1)`",
                "k.traceg:3:19: `-binary version`: expected one of 35, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120; got `99`",
                "k.traceg:5:28: `-accelsim tracer version`: expected a version of the tracer, 6 at most; got `7`",
            ]
        );
    }
}
