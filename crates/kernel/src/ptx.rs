//! The PTX front end: text to [`Module`], or every fault in it with its line and column.
//!
//! ```text
//! text -> token -> parser -> ast -> lower + select (virtual registers; calls inlined, recursion as subroutines)
//!                                     -> params -> stack -> cfg -> allocate -> finish -> ir::Kernel
//! ```
//! Source: PTX ISA 8.x. Two ways in: [`parse`] wants everything to be supported; [`check`] lists every kernel
//! of a file and what stands in its way. An unused `.func` is parsed but never lowered, so it may contain
//! anything.
//!
//! Not modelled: modules of several files, `.common`, 32-bit addresses, tensor memory (`tcgen05`).

mod allocate;
mod ast;
mod body_flow;
mod bounds;
mod calls;
mod constant;
mod draft;
mod finish;
mod flow;
mod functions;
mod layout;
mod lower;
mod operand;
mod params;
mod parser;
mod recursion;
mod reloads;
mod select;
pub mod sites;
mod size;
mod stack;
mod token;
mod types;

use std::sync::Arc;

use hashbrown::HashMap;

use super::ir::{Kernel, Module, Param, SourcePos};
use ast::Function;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics, Span};
use functions::Functions;
use layout::LaidOut;
use lower::{Env, Inlining, Lower};

/// Bytes of a thread's stack for recursive functions, unless the caller wants another: the default of CUDA's
/// `cudaLimitStackSize`.
pub const STACK_BYTES: u32 = 1024;

/// Alignment of the parameter block in the constant bank.
const PARAM_BANK_ALIGN: u32 = 16;

/// Decodes a PTX file.
///
/// # Errors
/// Every fault of the file: syntax, undeclared names, instructions that are not supported.
///
/// # Example: a kernel that stores its thread number
/// ```
/// let text = ".version 7.0\n.target sm_60\n.address_size 64\n\
///     .visible .entry store(.param .u64 out) {\n\
///     .reg .u32 %r<2>; .reg .u64 %rd<4>;\n\
///     ld.param.u64 %rd1, [out];\n\
///     mov.u32 %r1, %tid.x;\n\
///     mul.wide.u32 %rd2, %r1, 4;\n\
///     add.s64 %rd3, %rd1, %rd2;\n\
///     st.global.u32 [%rd3], %r1;\n\
///     ret;\n}\n";
/// let module = durawarp_kernel::ptx::parse("store.ptx", text).unwrap();
/// assert_eq!(module.kernels[0].code.len(), 6);
/// ```
pub fn parse(file: &str, text: &str) -> Result<Module, Diagnostics> {
    parse_with_stack(file, text, STACK_BYTES)
}

/// The same with a stack of this many bytes a thread, which kernels with recursive functions have in local
/// memory.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_stack(file: &str, text: &str, stack_bytes: u32) -> Result<Module, Diagnostics> {
    let decoded = decode(file, text, stack_bytes);
    let mut faults = Diagnostics::default();
    for fault in decoded.faults.into_iter().chain(decoded.kernels.into_iter().flat_map(|k| k.unsupported)) {
        // A function called from several kernels has its faults once.
        if !faults.0.contains(&fault) {
            faults.push(fault);
        }
    }
    faults.into_result(decoded.module)
}

/// What a PTX file holds and what of it is supported.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct PtxReport {
    /// Every `.entry` of the file, in file order.
    pub kernels: Vec<KernelReport>,
    /// Module-scope `.const` variables, in bytes.
    pub const_bytes: u32,
    /// Module-scope `.global` variables, in bytes.
    pub global_bytes: u64,
    /// Faults, in the order of their places: of the file as a whole, and of its kernels.
    pub unsupported: Vec<Diagnostic>,
    /// Accepted, but worth a word.
    pub warnings: Vec<Diagnostic>,
    /// It begins as a PTX file does. One without a kernel is what `nvcc` makes of source without any.
    pub versioned: bool,
}

/// One kernel of a file. Numbers are 0 when the kernel has faults.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KernelReport {
    /// `.entry` name.
    pub name: String,
    /// It can be executed.
    pub supported: bool,
    /// Virtual registers used: 32-bit, 64-bit, predicates.
    pub virtual_registers: [u32; 3],
    /// Slots that they share after allocation.
    pub slots: [u32; 3],
    /// Estimated hardware registers a thread.
    pub registers_per_thread: u32,
    /// Static shared memory in bytes.
    pub shared_bytes: u32,
    /// Uses dynamic shared memory too.
    pub dynamic_shared: bool,
    /// Local memory a thread in bytes, the stack of recursive functions included.
    pub local_bytes: u32,
    /// Parameters.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes.
    pub param_bytes: u32,
    /// Instructions, with calls inlined, those of every function that an indirect call may reach included.
    pub instructions: u32,
    /// Textures that it fetches from.
    pub textures: Vec<String>,
    /// Surfaces that it loads from, stores to or asks for sizes.
    pub surfaces: Vec<String>,
    /// What stands in its way.
    pub unsupported: Vec<Diagnostic>,
}

/// Examines a PTX file: every kernel is listed, even if others contain what is not supported.
///
/// # Example: one kernel of two can run
/// ```
/// let text = ".version 8.0 .entry good() { ret; }\n.entry bad() {\n  retrn;\n}";
/// let report = durawarp_kernel::ptx::check("k.ptx", text);
/// assert!(report.kernels[0].supported && !report.kernels[1].supported);
/// assert_eq!(
///     report.unsupported[0].to_string(),
///     "k.ptx:3:3: unknown instruction `retrn` (did you mean `ret`?)"
/// );
/// ```
pub fn check(file: &str, text: &str) -> PtxReport {
    let decoded = decode(file, text, STACK_BYTES);
    let mut unsupported = decoded.faults;
    for fault in decoded.kernels.iter().flat_map(|k| &k.unsupported) {
        if !unsupported.contains(fault) {
            unsupported.push(fault.clone());
        }
    }
    unsupported.sort_by_key(|fault| fault.span);
    let module = decoded.module;
    PtxReport {
        kernels: decoded.kernels,
        const_bytes: module.const_bank.len() as u32,
        global_bytes: module.globals.iter().map(|g| g.bytes).sum(),
        unsupported,
        warnings: module.warnings,
        versioned: decoded.versioned,
    }
}

/// A module of the kernels that are supported, and a report on all.
struct Decoded {
    module: Module,
    kernels: Vec<KernelReport>,
    /// Faults outside kernels.
    faults: Vec<Diagnostic>,
    versioned: bool,
}

fn decode(file: &str, text: &str, stack_bytes: u32) -> Decoded {
    let (tree, mut faults) = parser::parse(file, text);
    let mut module = Module::default();
    if let Some(version) = &tree.newer {
        let (major, minor) = parser::NEWEST;
        let message = format!(
            "PTX version {} is newer than {major}.{minor}, the newest known here; what it added is not known",
            version.text
        );
        module.warnings.push(Diagnostic::at(file, text, version.at.clone(), message));
    }
    let functions = Functions::collect(&tree);
    let statics = tree.statics();
    let laid_out = layout::lay_out(tree.variables(), &statics, &functions, &mut module);
    let LaidOut { symbols, statics, faults: bad } = laid_out;
    faults.extend(bad.into_iter().map(|(at, message)| Diagnostic::at(file, text, at, message)));
    faults.extend(defined_twice(tree.functions(), file, text));
    let kernels = tree.functions().filter(|f| f.entry).map(|f| f.name.text).collect();
    // Parameters follow the module's constants in the bank, so that these lie at the same place for every
    // kernel.
    let param_bank = (module.const_bank.len() as u32).next_multiple_of(PARAM_BANK_ALIGN);
    let grid_workspace = layout::grid_workspace(text, tree.opencl, &mut module);
    let names_ranks = text.contains(".cta_group::2");
    let env =
        Env { file, text, names_ranks, symbols, statics, functions, kernels, param_bank, grid_workspace, stack_bytes };
    let lines = LineStarts::new(text);
    let name: Arc<str> = file.into();
    let mut kernels = Vec::new();
    for function in tree.functions().filter(|f| f.entry && f.body.is_some()) {
        let mut report = KernelReport::unknown(function.name.text);
        // Faults of a kernel stay with it: the others of the file may be sound.
        match kernel(function, &env, &lines, &name, &mut module.warnings) {
            Ok(kernel) => {
                report.fill(&kernel);
                module.kernels.push(Arc::new(kernel));
            }
            Err(faults) => report.unsupported = faults,
        }
        kernels.push(report);
    }
    module.warnings.dedup();
    // Of these the first place of the file is enough.
    for message in lower::TOLD_ONCE {
        let mut told = false;
        module.warnings.retain(|of| of.message != message || !std::mem::replace(&mut told, true));
    }
    if !faults.is_empty() && file.ends_with(".cu") {
        // Of its lines nothing is worth a word.
        let fault = Diagnostic::nowhere(file, "this is CUDA source, and PTX is expected");
        faults = vec![fault.with_help(format!("`workloads/compile.sh {file}` makes PTX of it"))];
    }
    Decoded { module, kernels, faults, versioned: tree.versioned }
}

/// Kernels and functions whose names have a body already.
fn defined_twice<'a>(functions: impl Iterator<Item = &'a Function<'a>>, file: &str, text: &str) -> Vec<Diagnostic> {
    let mut first: HashMap<&str, &Function<'_>> = HashMap::new();
    let mut faults = Vec::new();
    for function in functions.filter(|function| function.body.is_some()) {
        let name = &function.name;
        if let Some(known) = first.insert(name.text, function) {
            let line = Span::of_bytes(text, known.name.at.clone()).line;
            let message = format!("`{}` is defined already, on line {line}", name.text);
            faults.push(Diagnostic::at(file, text, name.at.clone(), message));
        }
    }
    faults
}

fn kernel<'a>(
    function: &'a Function<'a>,
    env: &Env<'a>,
    lines: &LineStarts<'_>,
    file: &Arc<str>,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Kernel, Vec<Diagnostic>> {
    let mut of = lower_kernel(function, env, Inlining::All);
    // What inlined is too large calls the larger functions instead; only then, as a call costs time.
    if of.lower.inlining == Inlining::TooMuch {
        of = lower_kernel(function, env, Inlining::Small);
    }
    let LoweredKernel { lower, params, bytes, bounds } = of;
    let (body, mut faults) = (lower.body, lower.faults);
    if !faults.is_empty() {
        faults.sort_by_key(|fault| fault.span);
        faults.dedup();
        return Err(faults);
    }
    warnings.extend(body.warnings.iter().cloned());
    let frame = finish::Frame {
        name: function.name.text.to_owned(),
        file: file.clone(),
        params,
        param_bytes: bytes,
        param_bank: env.param_bank,
        stack_bytes: env.stack_bytes,
        bounds,
    };
    finish::finish(body, frame, |at| lines.position(at)).map_err(|message| {
        let message = format!("kernel `{}` {message}", function.name.text);
        vec![Diagnostic::at(env.file, env.text, function.name.at.clone(), message)]
    })
}

/// A kernel whose body was lowered, or has faults.
struct LoweredKernel<'e, 'a> {
    lower: Lower<'e, 'a>,
    params: Vec<Param>,
    /// Of the parameters.
    bytes: u32,
    bounds: bounds::Bounds,
}

fn lower_kernel<'e, 'a>(function: &'a Function<'a>, env: &'e Env<'a>, inlining: Inlining) -> LoweredKernel<'e, 'a> {
    let mut lower = Lower::new(env, inlining);
    let (mut params, mut bytes) = (Vec::new(), 0u32);
    for formal in &function.params {
        let var = &formal.var;
        match size::size_of(var) {
            Ok((size, align)) if size <= 1 << 16 => {
                let offset = bytes.next_multiple_of(align as u32);
                bytes = offset + size as u32;
                let ptx_type = format!(".{}", var.ty.text);
                let name = var.name.text.to_owned();
                params.push(Param { name, offset, bytes: size as u32, align: align as u32, ptx_type });
            }
            Ok(_) => {
                lower.fault(var.name.at.clone(), format!("parameter `{}` is too large", var.name.text));
            }
            // A texture or surface parameter of independent mode: an opaque handle.
            Err((at, message)) => {
                lower.fault(at, message);
            }
        }
    }
    let bounds = lower.bounds(&function.limits);
    lower.body.most_registers = bounds.registers;
    // A body is not lowered when parameters have faults: every use of such a parameter would be one more.
    if lower.faults.is_empty() {
        lower.entry(function, &params);
    }
    LoweredKernel { lower, params, bytes, bounds }
}

impl KernelReport {
    fn unknown(name: &str) -> Self {
        KernelReport {
            name: name.to_owned(),
            supported: false,
            virtual_registers: [0; 3],
            slots: [0; 3],
            registers_per_thread: 0,
            shared_bytes: 0,
            dynamic_shared: false,
            local_bytes: 0,
            params: Vec::new(),
            param_bytes: 0,
            instructions: 0,
            textures: Vec::new(),
            surfaces: Vec::new(),
            unsupported: Vec::new(),
        }
    }

    fn fill(&mut self, kernel: &Kernel) {
        self.supported = true;
        self.virtual_registers = kernel.virtual_registers;
        self.slots = [kernel.slots32, kernel.slots64, kernel.predicates].map(u32::from);
        self.registers_per_thread = kernel.registers_per_thread;
        self.shared_bytes = kernel.shared_bytes;
        self.dynamic_shared = kernel.dynamic_shared;
        self.local_bytes = kernel.local_bytes;
        self.params = kernel.params.clone();
        self.param_bytes = kernel.param_bytes;
        self.instructions = kernel.code.len() as u32;
        self.textures = kernel.textures.clone();
        self.surfaces = kernel.surfaces.clone();
    }
}

/// The first byte of each line of a text.
struct LineStarts<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        LineStarts { text, starts }
    }

    fn position(&self, at: usize) -> SourcePos {
        let line = self.starts.partition_point(|&s| s <= at);
        let start = self.starts[line - 1];
        SourcePos { line: line as u32, column: self.text[start..at].chars().count() as u32 + 1 }
    }
}
