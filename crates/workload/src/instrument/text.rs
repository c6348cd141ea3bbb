//! PTX text with undo logging from PTX text without.
//!
//! ```text
//! CTA:    { log old values; sfence; bar.sync; thread 0: flag 1; (bar.sync) | body, each exit a branch to the end |
//!           bar.sync; thread 0: flag 2; ret; }
//! body:   (log update); store; ... use  ->  store; clwb; sfence; ... (load) use
//! ```
//! Everything goes into existing lines: after `{`, around stores, before `}`. So an instruction keeps its
//! line, and what is generated has the line of what it is for. Generated names begin with a stem that is not
//! in the file.
//!
//! A kernel in which some threads may end while others meet at a barrier of its own cannot have one more
//! barrier at its end: threads would meet at the wrong one. There the CTA's last thread, known by a count in
//! shared memory, completes the transaction. Each thread's data is durable before it counts, so the order is
//! the same.
//!
//! With a loop log, every update is first stored to a second area that mirrors the buffer. Recovery never
//! reads it: the log proper must keep the values from before the transaction. It gives each update the log
//! store that AGPM counts.
//!
//! With a reload, a thread loads again what it has stored before it uses that: in the kernels of PACT'19
//! `clwb` is inline assembly that clobbers memory, over which a compiler keeps no value of memory in a
//! register. The compiled kernels here have no such assembly.

use std::fmt::Write as _;
use std::ops::Range;

use crate::expr::{Condition, Emit, Expr};
use crate::manifest::instrument::{FlagBarrier, Generated, Mode, Output, THREAD_VARIABLES};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::ptx::sites::{Pointer, Sites, StoreSite, sites};
use durawarp_persist::undo::{COMPLETE, IN_TX};

/// What is done to one kernel.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) kernel: &'a str,
    /// Pointers of its parameters; outputs are numbered as `homes`.
    pub(crate) pointers: &'a [Pointer],
    pub(crate) mode: Mode,
    pub(crate) barrier: FlagBarrier,
    /// What a thread keeps of an update is loaded again.
    pub(crate) reload: bool,
    /// The parameters to append and what they hold.
    pub(crate) params: &'a [(String, Generated)],
    /// Buffers that it changes, and the area of their loop logs.
    pub(crate) homes: &'a [Home],
    /// Which elements each thread changes: number of the home, and the manifest's words.
    pub(crate) outputs: &'a [(usize, &'a Output)],
    /// Values of what is known before the run.
    pub(crate) frame: &'a [u64],
    /// Slots of the variables of a thread.
    pub(crate) threads: Range<usize>,
    /// Slot of `idx`.
    pub(crate) element: usize,
    pub(crate) stem: &'a str,
}

/// A buffer that a kernel changes.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) name: String,
    /// Bytes of an element.
    pub(crate) stride: u64,
    /// Names of the parameters that hold its address and the ways to its log and its loop log.
    pub(crate) home: String,
    pub(crate) shift: String,
    pub(crate) loop_shift: Option<String>,
}

/// A beginning of names that the text does not contain.
pub(crate) fn stem(text: &str) -> String {
    let names = (0..).map(|number| if number == 0 { "undo_".to_owned() } else { format!("undo{number}_") });
    names.into_iter().find(|name| !text.contains(name)).unwrap_or_default()
}

/// Carries out the jobs on the text of `file`, whose kernels they name.
///
/// # Errors
/// What the flow of pointers cannot tell, and expressions that no thread can compute.
pub(crate) fn instrument(file: &str, text: &str, jobs: &[Job<'_>]) -> Result<String, Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for job in jobs {
        match sites(file, text, job.kernel, job.pointers).and_then(|sites| job.edits(file, text, &sites)) {
            Ok(found) => edits.extend(found),
            Err(found) => faults.0.extend(found.0),
        }
    }
    faults.into_result(())?;
    edits.sort_by_key(|(at, _)| at.start);
    let (mut out, mut next) = (String::with_capacity(text.len() * 2), 0);
    for (at, new) in edits {
        out.push_str(&text[next..at.start]);
        out.push_str(&new);
        next = at.end;
    }
    out.push_str(&text[next..]);
    Ok(out)
}

/// Code in the making, on one line.
struct Code<'a> {
    stem: &'a str,
    threads: Range<usize>,
    text: String,
    counts: [u32; 4],
    /// Registers of the thread's variables.
    variables: Vec<Option<String>>,
    /// Slot of `idx`, and the register of the element that is being logged.
    element: (usize, Option<String>),
    /// What was computed since the last label, and the registers that hold it.
    computed: Vec<(String, String)>,
}

impl Emit for Code<'_> {
    fn long(&mut self) -> String {
        self.name(0, "%", "l")
    }

    fn predicate(&mut self) -> String {
        self.name(1, "%", "p")
    }

    fn push(&mut self, instruction: String) {
        self.text.push(' ');
        self.text.push_str(&instruction);
        self.text.push(';');
    }

    fn computed(&self, operation: &str) -> Option<String> {
        self.computed.iter().find(|(known, _)| known == operation).map(|(_, register)| register.clone())
    }

    fn remember(&mut self, operation: String, register: &str) {
        self.computed.push((operation, register.to_owned()));
    }

    fn variable(&self, slot: u16) -> Option<String> {
        if usize::from(slot) == self.element.0 {
            return self.element.1.clone();
        }
        let number = usize::from(slot).checked_sub(self.threads.start)?;
        self.variables.get(number)?.clone()
    }
}

impl Code<'_> {
    fn name(&mut self, kind: usize, mark: &str, letter: &str) -> String {
        self.counts[kind] += 1;
        format!("{mark}{}{letter}{}", self.stem, self.counts[kind] - 1)
    }

    fn word(&mut self) -> String {
        self.name(2, "%", "w")
    }

    fn label(&mut self) -> String {
        self.name(3, "", "L")
    }

    /// Code may come here by several ways: nothing is known to be computed.
    fn place(&mut self, label: &str) {
        self.computed.clear();
        let _ = write!(self.text, " {label}:");
    }

    /// A special register in a new one.
    fn special(&mut self, name: &str) -> String {
        let word = self.word();
        self.push(format!("mov.u32 {word}, %{name}"));
        word
    }

    fn param(&mut self, name: &str) -> String {
        let long = self.long();
        self.push(format!("ld.param.u64 {long}, [{name}]"));
        long
    }

    /// A predicate that holds in thread 0.
    fn first_thread(&mut self) -> String {
        let [x, y, z] = ["tid.x", "tid.y", "tid.z"].map(|name| self.special(name));
        self.push(format!("or.b32 {x}, {x}, {y}"));
        self.push(format!("or.b32 {x}, {x}, {z}"));
        let first = self.predicate();
        self.push(format!("setp.eq.u32 {first}, {x}, 0"));
        first
    }

    /// The thread in which predicate `who` is true sets the CTA's flag and makes it durable.
    fn set_flag(&mut self, who: &str, value: u32) {
        let [z, ny, y, nx, x] =
            ["ctaid.z", "nctaid.y", "ctaid.y", "nctaid.x", "ctaid.x"].map(|name| self.special(name));
        self.push(format!("mad.lo.u32 {z}, {z}, {ny}, {y}"));
        self.push(format!("mad.lo.u32 {z}, {z}, {nx}, {x}"));
        let flag = self.param(&format!("{}flag", self.stem));
        self.push(format!("mad.wide.u32 {flag}, {z}, 4, {flag}"));
        self.push(format!("@{who} st.global.u32 [{flag}], {value}"));
        self.push(format!("@{who} pm.clwb [{flag}]"));
        self.push(format!("@{who} pm.sfence"));
    }

    /// Declarations of everything that was named.
    fn declarations(&self) -> String {
        let mut out = String::new();
        for (count, (ty, letter)) in self.counts.iter().zip([("b64", "l"), ("pred", "p"), ("b32", "w")]) {
            if *count > 0 {
                let _ = write!(out, " .reg .{ty} %{}{letter}<{count}>;", self.stem);
            }
        }
        out
    }
}

impl Job<'_> {
    fn edits(&self, file: &str, text: &str, sites: &Sites) -> Result<Vec<(Range<usize>, String)>, Diagnostics> {
        let mut faults = Diagnostics::default();
        for (number, home) in self.homes.iter().enumerate() {
            if !sites.stores.iter().any(|store| store.outputs.contains(&number)) {
                let message = format!("kernel `{}` never stores to `{}`", self.kernel, home.name);
                let at = sites.braces.start..sites.braces.start + 1;
                let fault = Diagnostic::at(file, text, at, message);
                faults.push(fault.with_help("an output is a buffer that the kernel updates"));
            }
        }
        let variables = vec![None; THREAD_VARIABLES.len()];
        let (stem, threads) = (self.stem, self.threads.clone());
        let element = (self.element, None);
        let mut code =
            Code { stem, threads, text: String::new(), counts: [0; 4], variables, element, computed: Vec::new() };
        let mut edits = Vec::new();
        let end = self.mode.by_cta().then(|| code.label());
        if let Some(end) = &end {
            if let Err(fault) = self.prologue(&mut code, sites.may_leave_early) {
                faults.push(*fault);
            }
            edits.extend(sites.exits.iter().map(|exit| (exit.clone(), format!("bra {end}"))));
        }
        // The text is taken and the counts of registers stay, so that no name is used twice in a kernel.
        let prologue = std::mem::take(&mut code.text);
        // Before what goes around a store that uses the value.
        if self.reload {
            edits.extend(reloads_before(sites));
        }
        for store in &sites.stores {
            match self.around(&mut code, store) {
                Ok([before, after]) => {
                    edits.push((store.at.start..store.at.start, before));
                    edits.push((store.at.end..store.at.end, after));
                }
                Err(message) => {
                    faults.push(Diagnostic::at(file, text, store.at.clone(), message));
                }
            }
        }
        if let Some(end) = &end {
            self.epilogue(&mut code, end, sites.may_leave_early);
            let epilogue = std::mem::take(&mut code.text);
            let brace = sites.braces.end - 1;
            edits.push((brace..brace, format!("{} ", epilogue.trim_start())));
        }
        let behind = sites.braces.start + 1;
        // Before what goes around a store that follows the brace at once.
        edits.insert(0, (behind..behind, format!("{}{prologue}", code.declarations())));
        let params: String = self.params.iter().map(|(name, _)| format!(", .param .u64 {name}")).collect();
        edits.push((sites.close..sites.close, params));
        faults.into_result(edits)
    }

    fn prologue(&self, code: &mut Code<'_>, last_thread: bool) -> Result<(), Box<Diagnostic>> {
        if self.mode == Mode::CtaUndo {
            let exprs = || self.outputs.iter().flat_map(|(_, output)| output.exprs());
            for (number, name) in THREAD_VARIABLES.iter().enumerate().take(THREAD_VARIABLES.len() - 1) {
                if exprs().any(|expr| expr.names(self.threads.start + number)) {
                    let word = code.special(name);
                    let long = code.long();
                    code.push(format!("cvt.u64.u32 {long}, {word}"));
                    code.variables[number] = Some(long);
                }
            }
            for (home, output) in self.outputs {
                self.log_elements(code, &self.homes[*home], output)?;
            }
            code.push("pm.sfence".to_owned());
        }
        let first = code.first_thread();
        if last_thread {
            let _ = write!(code.text, " .shared .align 4 .b32 {}left;", self.stem);
            code.push(format!("@{first} st.shared.u32 [{}left], 0", self.stem));
        }
        // Every thread has passed the fence after its log before the first thread sets the flag.
        if self.mode == Mode::CtaUndo {
            code.push("bar.sync 0".to_owned());
        }
        code.set_flag(&first, IN_TX);
        if self.mode == Mode::IdempotentCta || self.barrier == FlagBarrier::Safe {
            code.push("bar.sync 0".to_owned());
        }
        Ok(())
    }

    /// Each thread logs the old values of its elements of one output.
    fn log_elements(&self, code: &mut Code<'_>, home: &Home, output: &Output) -> Result<(), Box<Diagnostic>> {
        let mut repeated = None;
        if let Some(repeat) = &output.repeat {
            let limit = repeat.emit(self.frame, code)?;
            let (count, over) = (code.long(), code.predicate());
            let (again, end) = (code.label(), code.label());
            code.push(format!("mov.u64 {count}, 0"));
            code.place(&again);
            code.push(format!("setp.ge.s64 {over}, {count}, {limit}"));
            code.push(format!("@{over} bra {end}"));
            *code.variables.last_mut().expect("`r` is a variable") = Some(count.clone());
            repeated = Some((count, again, end));
        }
        // A guard that no thread changes is decided now: all of the code, or none.
        let guard = match output.guard.as_ref().map(|guard| guard.emit_condition(self.frame, code)).transpose()? {
            None | Some(Condition::Known(true)) => Some(String::new()),
            Some(Condition::Known(false)) => None,
            Some(Condition::Register(p)) => Some(format!("@{p} ")),
        };
        if let (Some(guard), Some(index)) = (guard, &output.index) {
            let index = index.emit(self.frame, code)?;
            let (from, to) = (code.param(&home.home), code.param(&home.shift));
            if let Some(log_index) = &output.log_index {
                code.element.1 = Some(index.clone());
                let slot = log_index.emit(self.frame, code)?;
                code.element.1 = None;
                code.push(format!("add.s64 {to}, {from}, {to}"));
                code.push(format!("mad.lo.s64 {to}, {slot}, {}, {to}", home.stride));
                code.push(format!("mad.lo.s64 {from}, {index}, {}, {from}", home.stride));
            } else {
                // Without an index of its own a slot is where the element is: one offset for both.
                code.push(format!("mad.lo.s64 {from}, {index}, {}, {from}", home.stride));
                code.push(format!("add.s64 {to}, {from}, {to}"));
            }
            let bytes = piece_bytes(home.stride);
            for at in (0..home.stride).step_by(bytes as usize) {
                let (form, value) = match bytes {
                    16 => (".v2.u64".to_owned(), format!("{{{}, {}}}", code.long(), code.long())),
                    8 => (".u64".to_owned(), code.long()),
                    _ => (format!(".u{}", 8 * bytes), code.word()),
                };
                let (from, to) = (offset(&from, at as i64), offset(&to, at as i64));
                code.push(format!("{guard}pm.ld.log.global{form} {value}, [{from}]"));
                code.push(format!("{guard}pm.st.log.global{form} [{to}], {value}"));
                code.push(format!("{guard}pm.clwb.log [{to}]"));
            }
        }
        if let Some((count, again, end)) = repeated {
            code.push(format!("add.s64 {count}, {count}, 1"));
            code.push(format!("bra {again}"));
            code.place(&end);
        }
        Ok(())
    }

    /// What goes before and after a store.
    fn around(&self, code: &mut Code<'_>, store: &StoreSite) -> Result<[String; 2], String> {
        let mut base = store.base.clone();
        if store.clobbers {
            base = code.long();
            code.push(format!("mov.u64 {base}, {}", store.base));
        }
        let guard = &store.guard;
        if self.homes.iter().any(|home| home.loop_shift.is_some()) {
            let [number] = store.outputs[..] else {
                return Err("this store may be to several outputs: their loop logs cannot be told apart".to_owned());
            };
            if let Some(shift) = &self.homes[number].loop_shift {
                let to = code.param(shift);
                code.push(format!("add.s64 {to}, {to}, {base}"));
                self.shift_to_slot(code, number, &base, store.offset, &to)?;
                let to = offset(&to, store.offset);
                code.push(format!("{guard}pm.st.log.global{} [{to}], {}", store.form, store.data));
                code.push(format!("{guard}pm.clwb.log [{to}]"));
            }
        }
        let before = std::mem::take(&mut code.text);
        let before = if before.is_empty() { before } else { format!("{} ", before.trim_start()) };
        let at = offset(&base, store.offset);
        Ok([before, format!(" {guard}pm.clwb [{at}]; {guard}pm.sfence;")])
    }

    /// Adds to the register `to` how far the slot of the element at `base` and `offset` is from where it
    /// would be by itself.
    fn shift_to_slot(&self, code: &mut Code<'_>, home: usize, base: &str, offset: i64, to: &str) -> Result<(), String> {
        let of_home = self.outputs.iter().filter(|(other, _)| *other == home);
        let Some(log_index) = of_home.into_iter().find_map(|(_, output)| output.log_index.as_ref()) else {
            return Ok(());
        };
        let Home { home, stride, .. } = &self.homes[home];
        let (element, start) = (code.long(), code.param(home));
        code.push(format!("add.s64 {element}, {base}, {offset}"));
        code.push(format!("sub.s64 {element}, {element}, {start}"));
        code.push(format!("div.s64 {element}, {element}, {stride}"));
        // What another store's way has computed may not be there on this one's.
        code.computed.clear();
        code.element.1 = Some(element.clone());
        let slot = log_index.emit(self.frame, code).map_err(|fault| fault.message)?;
        code.element.1 = None;
        code.computed.clear();
        code.push(format!("sub.s64 {element}, {slot}, {element}"));
        code.push(format!("mad.lo.s64 {to}, {element}, {stride}, {to}"));
        Ok(())
    }

    fn epilogue(&self, code: &mut Code<'_>, end: &str, last_thread: bool) {
        code.place(end);
        let who = if last_thread {
            let [x, y, z] = ["ntid.x", "ntid.y", "ntid.z"].map(|name| code.special(name));
            let count = code.word();
            code.push(format!("mul.lo.u32 {x}, {x}, {y}"));
            code.push(format!("mul.lo.u32 {x}, {x}, {z}"));
            code.push(format!("atom.shared.add.u32 {count}, [{}left], 1", self.stem));
            code.push(format!("add.u32 {count}, {count}, 1"));
            let last = code.predicate();
            code.push(format!("setp.eq.u32 {last}, {count}, {x}"));
            last
        } else {
            code.push("bar.sync 0".to_owned());
            code.first_thread()
        };
        code.set_flag(&who, COMPLETE);
        code.push("ret".to_owned());
    }
}

/// The loads before uses of what was stored, each once: several stores may come to the same use.
fn reloads_before(sites: &Sites) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    for store in &sites.stores {
        let at = offset(&store.base, store.offset);
        let load = format!("ld.global{} {}, [{at}]; ", store.form, store.data);
        for &at in &store.reloads {
            let edit = (at..at, load.clone());
            if !found.contains(&edit) {
                found.push(edit);
            }
        }
    }
    found
}

/// Bytes of a log update of an element of `stride` bytes: as many as one access moves, as kernels store
/// structures. Buffers begin at multiples of 256 bytes, so every element is aligned to what divides its size.
fn piece_bytes(stride: u64) -> u64 {
    (stride & stride.wrapping_neg()).min(16)
}

/// An address in a register with an offset.
fn offset(base: &str, offset: i64) -> String {
    match offset {
        0 => base.to_owned(),
        _ => format!("{base}+{offset}"),
    }
}

impl Output {
    /// All expressions of this value.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let all = [self.index.as_ref(), self.guard.as_ref(), self.repeat.as_ref(), self.log_index.as_ref()];
        all.into_iter().flatten()
    }
}

/// The kernel that logs a whole buffer, a word a thread: `bytes` is 1 or 4.
pub(crate) fn copy_kernel() -> String {
    let kernel = |bytes: u32| {
        format!(
            ".visible .entry {name}(.param .u64 home, .param .u64 shift, .param .u64 words)\n{{\n\
             .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<6>;\n\
             mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n\
             cvt.u64.u32 %rd1, %r3;\nmad.wide.u32 %rd1, %r1, %r2, %rd1;\n\
             ld.param.u64 %rd2, [words];\nsetp.ge.u64 %p1, %rd1, %rd2;\n@%p1 bra END;\n\
             ld.param.u64 %rd3, [home];\nld.param.u64 %rd4, [shift];\n\
             mad.lo.s64 %rd3, %rd1, {bytes}, %rd3;\nadd.s64 %rd4, %rd3, %rd4;\n\
             pm.ld.log.global.u{bits} %r4, [%rd3];\npm.st.log.global.u{bits} [%rd4], %r4;\npm.clwb.log [%rd4];\npm.sfence;\n\
             END:\nret;\n}}\n",
            name = copy_kernel_name(bytes),
            bits = 8 * bytes,
        )
    };
    format!(".version 7.0\n.target sm_60\n.address_size 64\n{}{}", kernel(1), kernel(4))
}

/// Its name.
pub(crate) fn copy_kernel_name(bytes: u32) -> String {
    format!("undo_log_copy_u{}", 8 * bytes)
}
