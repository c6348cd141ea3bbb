//! Executables: an ELF file as an [`Executable`], or all that is wrong with it.
//!
//! Taken: ET_EXEC and static PIE of 64-bit little-endian RISC-V, with their segments, entry, program headers
//! and the symbols of functions. A static PIE is put at [`PIE_BASE`]; it relocates itself when it starts.
//! Sections other than the symbol table are not read.

use elf::ElfBytes;
use elf::abi::{DT_NEEDED, EM_RISCV, ET_DYN, ET_EXEC, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_PHDR};
use elf::abi::{STT_FUNC, STT_NOTYPE, STT_OBJECT};
use elf::endian::AnyEndian;
use elf::file::Class;

use super::memory::{MAIN_START, PAGE_BYTES};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;

/// Where a static PIE is put.
pub const PIE_BASE: u64 = 0x1_0000;

/// Bytes that are in memory when the program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub address: u64,
    /// What the file has for it.
    pub bytes: Vec<u8>,
    /// Bytes in memory; those that the file does not have are zeros.
    pub memory_bytes: u64,
    /// It holds code. It holds no data that are written, then.
    pub executable: bool,
}

/// A function, a label of assembly, or an object of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its first address.
    pub address: u64,
    /// Its bytes; 0 when the file does not say.
    pub bytes: u64,
    /// Its name, as the linker has it.
    pub name: String,
}

/// A program as its file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// Where hart 0 begins.
    pub entry: u64,
    /// Loadable segments, by address.
    pub segments: Vec<Segment>,
    /// Functions, by address; none when the file is stripped.
    pub functions: Vec<Function>,
    /// Objects of data that have a size, by address; none when the file is stripped.
    pub objects: Vec<Function>,
    /// Address of the program headers in memory, if a segment has them.
    pub headers: Option<u64>,
    /// Number of program headers.
    pub header_count: u64,
}

impl Executable {
    /// Address after the last segment.
    pub fn end(&self) -> u64 {
        self.segments.iter().map(|segment| segment.address + segment.memory_bytes).max().unwrap_or(MAIN_START)
    }

    /// The function that an address lies in, and the bytes from its start.
    pub fn symbol(&self, address: u64) -> Option<(String, u64)> {
        let code = |s: &&Segment| s.executable && address.wrapping_sub(s.address) < s.memory_bytes;
        let segment = self.segments.iter().find(code)?;
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        let function = &self.functions[at];
        (function.address >= segment.address).then(|| (function.name.clone(), address - function.address))
    }

    /// An instruction's address in words: function and offset, or the number.
    pub fn code_name(&self, address: u64) -> String {
        named(self.symbol(address), address)
    }

    /// The address of data in words: object and offset with the number, or the number.
    pub fn data_name(&self, address: u64) -> String {
        let before = self.objects.partition_point(|object| object.address <= address);
        let object = before.checked_sub(1).map(|at| &self.objects[at]);
        match object.filter(|object| address - object.address < object.bytes) {
            Some(object) => {
                let name = named(Some((object.name.clone(), address - object.address)), address);
                format!("`{name}` ({address:#x})")
            }
            None => format!("{address:#x}"),
        }
    }
}

fn named(symbol: Option<(String, u64)>, address: u64) -> String {
    match symbol {
        Some((name, 0)) => name,
        Some((name, offset)) => format!("{name}+{offset:#x}"),
        None => format!("{address:#x}"),
    }
}

/// Reads an executable that is to lie below `memory_bytes`. `file` is its name in diagnostics.
///
/// # Errors
/// Everything that keeps it from being run, at once.
pub fn load(file: &str, bytes: &[u8], memory_bytes: u64) -> Result<Executable, Diagnostics> {
    let mut faults = Faults { file, found: Vec::new() };
    let image = read(bytes, memory_bytes, &mut faults);
    match image {
        Some(image) if faults.found.is_empty() => Ok(image),
        _ => Err(Diagnostics(faults.found)),
    }
}

struct Faults<'a> {
    file: &'a str,
    found: Vec<Diagnostic>,
}

impl Faults<'_> {
    fn push(&mut self, message: impl Into<String>, help: &str) {
        let fault = Diagnostic::nowhere(self.file, message);
        self.found.push(if help.is_empty() { fault } else { fault.with_help(help) });
    }
}

const COMPILE: &str = "riscv64-linux-gnu-gcc -O2 -static makes one that runs";

fn read(bytes: &[u8], memory_bytes: u64, faults: &mut Faults<'_>) -> Option<Executable> {
    if !bytes.starts_with(b"\x7fELF") {
        faults.push("not an ELF executable", COMPILE);
        return None;
    }
    let damaged = |error: elf::ParseError| format!("a damaged ELF file: {error}");
    let file = match ElfBytes::<AnyEndian>::minimal_parse(bytes) {
        Ok(file) => file,
        Err(error) => {
            faults.push(damaged(error), "");
            return None;
        }
    };
    if !right_kind(&file, faults) {
        return None;
    }
    let headers: Vec<_> = match file.segments() {
        Some(table) => table.iter().collect(),
        None => Vec::new(),
    };
    let needs_libraries = file.dynamic().ok().flatten().is_some_and(|table| table.iter().any(|d| d.d_tag == DT_NEEDED));
    if needs_libraries || headers.iter().any(|header| header.p_type == PT_INTERP) {
        faults.push("dynamically linked: there is no loader of libraries", "link with -static");
    } else if file.ehdr.e_type == ET_DYN && !headers.iter().any(|header| header.p_type == PT_DYNAMIC) {
        faults.push("a shared object without a way to relocate itself", "link with -static or -static-pie");
    }
    let base = if file.ehdr.e_type == ET_DYN { PIE_BASE } else { 0 };
    let mut segments = Vec::new();
    for header in headers.iter().filter(|header| header.p_type == PT_LOAD && header.p_memsz > 0) {
        let content = match file.segment_data(header) {
            Ok(content) => content,
            Err(error) => {
                faults.push(damaged(error), "");
                continue;
            }
        };
        let address = header.p_vaddr.wrapping_add(base);
        let memory = header.p_memsz.max(header.p_filesz);
        let end = address.checked_add(memory);
        if address < MAIN_START || end.is_none_or(|end| end > memory_bytes) {
            let last = address.wrapping_add(memory - 1);
            let range = format!("{MAIN_START:#x} to {:#x}", memory_bytes.saturating_sub(1));
            let message = format!("a segment at {address:#x} to {last:#x} is outside memory, {range}");
            faults.push(message, "raise memory_mb, or link for a lower address");
            continue;
        }
        let executable = header.p_flags & PF_X != 0;
        if executable && header.p_flags & PF_W != 0 {
            faults.push(
                format!("the segment at {address:#x} holds code and is writable"),
                "link with -z separate-code and without -N",
            );
        }
        if executable && address % 2 == 1 {
            faults.push(format!("a segment of code begins at the odd address {address:#x}"), "");
        }
        segments.push(Segment { address, bytes: content.to_vec(), memory_bytes: memory, executable });
    }
    segments.sort_by_key(|segment| segment.address);
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].address + pair[0].memory_bytes > pair[1].address) {
        faults.push(format!("segments overlap at {:#x}", pair[1].address), "");
    }
    let entry = file.ehdr.e_entry.wrapping_add(base);
    let has_entry = |s: &Segment| s.executable && entry.wrapping_sub(s.address) < s.bytes.len() as u64;
    if faults.found.is_empty() && (entry % 2 == 1 || !segments.iter().any(has_entry)) {
        faults.push(format!("the entry point {entry:#x} is not in code"), "");
    }
    let in_memory = |offset: u64| {
        let within = |h: &elf::segment::ProgramHeader| offset.checked_sub(h.p_offset).filter(|at| *at < h.p_filesz);
        let mut loaded = headers.iter().filter(|h| h.p_type == PT_LOAD);
        loaded.find_map(|h| within(h).map(|at| h.p_vaddr.wrapping_add(at).wrapping_add(base)))
    };
    let own = headers.iter().find(|h| h.p_type == PT_PHDR).map(|h| h.p_vaddr.wrapping_add(base));
    Some(Executable {
        entry,
        segments,
        functions: functions(&file, base),
        objects: objects(&file, base),
        headers: own.or_else(|| in_memory(file.ehdr.e_phoff)),
        header_count: headers.len() as u64,
    })
}

/// Class, byte order, machine and type are those that run. Names every one that is not.
fn right_kind(file: &ElfBytes<'_, AnyEndian>, faults: &mut Faults<'_>) -> bool {
    let header = &file.ehdr;
    let bits = if header.class == Class::ELF32 { "32-bit" } else { "64-bit" };
    let order = if header.endianness == AnyEndian::Big { "big-endian " } else { "" };
    if header.e_machine != EM_RISCV || header.class != Class::ELF64 || !order.is_empty() {
        let machine = machine(header.e_machine);
        faults.push(format!("a program for {bits} {order}{machine}, not for 64-bit RISC-V"), COMPILE);
    } else if ![ET_EXEC, ET_DYN].contains(&header.e_type) {
        let kind = if header.e_type == elf::abi::ET_REL { "an object file" } else { "not an executable" };
        faults.push(format!("{kind}: it was not linked"), COMPILE);
    }
    faults.found.is_empty()
}

fn machine(number: u16) -> String {
    let name = match number {
        3 | 62 => "x86",
        8 => "MIPS",
        20 | 21 => "PowerPC",
        22 => "S/390",
        40 | 183 => "Arm",
        190 => "CUDA GPUs",
        224 => "AMD GPUs",
        243 => "RISC-V",
        247 => "BPF",
        258 => "LoongArch",
        _ => return format!("machine {number}"),
    };
    name.to_owned()
}

fn functions(file: &ElfBytes<'_, AnyEndian>, base: u64) -> Vec<Function> {
    let Ok(Some((symbols, names))) = file.symbol_table() else {
        return Vec::new();
    };
    let mut found: Vec<Function> = symbols
        .iter()
        .filter(|symbol| [STT_FUNC, STT_NOTYPE].contains(&symbol.st_symtype()) && !symbol.is_undefined())
        .filter_map(|symbol| {
            let name = names.get(symbol.st_name as usize).ok()?;
            // The psABI's marks of what is code, and labels of the compiler.
            let a_name = !name.is_empty() && !name.starts_with('$') && !name.starts_with(".L");
            let address = symbol.st_value.wrapping_add(base);
            a_name.then(|| Function { address, bytes: symbol.st_size, name: name.to_owned() })
        })
        .collect();
    // Of several names for one place the one with a size, else the first by the alphabet, is the last here:
    // it is found.
    found.sort_by(|a, b| (a.address, a.bytes, &b.name).cmp(&(b.address, b.bytes, &a.name)));
    found
}

/// Objects do not overlap but for aliases, of which the first by the alphabet is found.
fn objects(file: &ElfBytes<'_, AnyEndian>, base: u64) -> Vec<Function> {
    let Ok(Some((symbols, names))) = file.symbol_table() else {
        return Vec::new();
    };
    let mut found: Vec<Function> = symbols
        .iter()
        .filter(|symbol| symbol.st_symtype() == STT_OBJECT && symbol.st_size > 0 && !symbol.is_undefined())
        .filter_map(|symbol| {
            let (name, address) = (names.get(symbol.st_name as usize).ok()?, symbol.st_value.wrapping_add(base));
            (!name.is_empty()).then(|| Function { address, bytes: symbol.st_size, name: name.to_owned() })
        })
        .collect();
    found.sort_by(|a, b| (a.address, &b.name).cmp(&(b.address, &a.name)));
    found
}

/// An address rounded up to the next page.
pub(crate) fn page_up(address: u64) -> u64 {
    address.next_multiple_of(PAGE_BYTES)
}
