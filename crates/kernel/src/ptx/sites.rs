//! The places at which a pass rewrites a kernel's text: its parameter list, its braces, its exits, and every
//! store to an output. The flow of pointers (`flow`) decides which stores these are.
//!
//! Invariants: every store is known to be to an output, known not to be, or reported as a fault; none is
//! guessed. Places are byte ranges of the file's text.
//!
//! Not modelled: stores by called functions through a pointer argument, or by targets of indirect calls (both
//! refused); indirect branches.

use std::ops::Range;

use super::ast::{Function, Instruction, Operand, OperandKind, Statement};
use super::flow::{Flow, LOADED, MAX_POINTERS, POINTERS, Pointers, VARIABLE};
use super::functions::Call;
use super::parser;
use super::reloads::reloads;
use super::size::size_of;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

/// A pointer in a kernel's parameter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// Byte offset.
    pub offset: u32,
    /// The output that it points to, by number; `None` for what is not an output.
    pub output: Option<usize>,
}

/// A store, reduction or atomic to an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSite {
    /// From its guard through its semicolon.
    pub at: Range<usize>,
    /// `@%p1 ` or nothing.
    pub guard: String,
    /// Register that holds the address.
    pub base: String,
    /// What is added to it.
    pub offset: i64,
    /// `.v2.f32`: form of the data.
    pub form: String,
    /// The data operand as written.
    pub data: String,
    /// It may be to any of these outputs.
    pub outputs: Vec<usize>,
    /// It overwrites its own address register.
    pub clobbers: bool,
    /// First bytes of the instructions before which the thread would load again what it has stored, if it
    /// could keep no value of memory in a register.
    pub reloads: Vec<usize>,
}

/// Everything about one kernel's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sites {
    /// First byte of the `)` after the parameters.
    pub close: usize,
    /// From `{` through `}`.
    pub braces: Range<usize>,
    /// Each `ret` and `exit` without its guard, up to its semicolon.
    pub exits: Vec<Range<usize>>,
    /// Every store to an output, in the order of the text.
    pub stores: Vec<StoreSite>,
    /// Some threads may end while others still meet at a barrier of the kernel's own.
    pub may_leave_early: bool,
}

/// Parameters by name, and the pointers in them.
struct Parameters<'a> {
    /// Name, first byte, bytes.
    all: Vec<(&'a str, u32, u32)>,
    pointers: &'a [Pointer],
}

impl Pointers for Parameters<'_> {
    fn at(&self, name: &str, offset: i64) -> Option<Option<usize>> {
        let (_, start, _) = self.all.iter().find(|(param, ..)| *param == name)?;
        let at = i64::from(*start) + offset;
        Some(self.pointers.iter().position(|pointer| i64::from(pointer.offset) == at))
    }
}

fn parameters<'a>(function: &'a Function<'a>, pointers: &'a [Pointer]) -> Parameters<'a> {
    let (mut all, mut end) = (Vec::new(), 0u32);
    for formal in &function.params {
        // The file was decoded before: sizes are sound.
        let (size, align) = size_of(&formal.var).unwrap_or((8, 8));
        let start = end.next_multiple_of(align as u32);
        end = start + size as u32;
        all.push((formal.var.name.text, start, size as u32));
    }
    Parameters { all, pointers }
}

fn any(statements: &[Statement<'_>], holds: &dyn Fn(&Instruction<'_>) -> bool) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Block(inner) => any(inner, holds),
        Statement::Instruction(inst) => holds(inst),
        _ => false,
    })
}

/// Whether a call may reach a function that stores to global memory. What an indirect call reaches is not
/// known here.
fn call_stores<'a>(call: &Instruction<'a>, called: &[&Function<'a>]) -> bool {
    let to_memory = |inst: &Instruction<'_>| {
        let apart = ["shared", "local", "param"];
        let space = |word: &super::ast::PtxWord<'_>| word.text.split("::").next().is_some_and(|w| apart.contains(&w));
        let of_matrix = inst.opcode.text == "wmma" && inst.mods.iter().any(|word| word.text == "store");
        (of_matrix || inst.opcode.text == "sust" || is_store(inst)) && !inst.mods.iter().any(space)
    };
    let callee = |call: &Instruction<'a>| Call::parse(call).and_then(|call| call.name());
    // Functions reached, each once: they may call themselves.
    let (mut reached, mut next) = (vec![callee(call)], 0);
    while let Some(&name) = reached.get(next) {
        next += 1;
        let mut declared = called.iter().filter(|function| Some(function.name.text) == name).peekable();
        if declared.peek().is_none() {
            return true;
        }
        for body in declared.filter_map(|function| function.body.as_deref()) {
            if any(body, &|inst| to_memory(inst)) {
                return true;
            }
            each_call(body, &mut |call| {
                let name = callee(call);
                if !reached.contains(&name) {
                    reached.push(name);
                }
            });
        }
    }
    false
}

fn each_call<'s, 'a>(statements: &'s [Statement<'a>], tell: &mut dyn FnMut(&'s Instruction<'a>)) {
    for statement in statements {
        match statement {
            Statement::Block(inner) => each_call(inner, tell),
            Statement::Instruction(inst) if inst.opcode.text == "call" => tell(inst),
            _ => {}
        }
    }
}

/// Examines kernel `name` of a file that was decoded before.
///
/// # Errors
/// Every store whose target is unknown, and every other construct that cannot be rewritten, at its place.
pub fn sites(file: &str, text: &str, name: &str, pointers: &[Pointer]) -> Result<Sites, Diagnostics> {
    let (tree, faults) = parser::parse(file, text);
    if !faults.is_empty() {
        return Err(Diagnostics(faults));
    }
    let entry = tree.functions().find(|f| f.entry && f.body.is_some() && f.name.text == name);
    let Some(function) = entry else {
        return Err(Diagnostic::nowhere(file, format!("there is no kernel `{name}`")).into());
    };
    let mut faults = Diagnostics::default();
    let fault = |at: Range<usize>, message: String| Diagnostic::at(file, text, at, message);
    let Some(close) = function.close.filter(|_| pointers.len() <= MAX_POINTERS) else {
        let message = format!("kernel `{name}` must have 1 to {MAX_POINTERS} pointer parameters to be instrumented");
        return Err(fault(function.name.at.clone(), message).into());
    };
    // Whether a call reaches a function that waits or ends is not asked: one such function in the file counts
    // for every call.
    let called: Vec<&Function<'_>> = tree.functions().filter(|f| !f.entry).collect();
    let in_calls = |holds: &dyn Fn(&Instruction<'_>) -> bool| {
        called.iter().any(|f| any(f.body.as_deref().unwrap_or_default(), holds))
    };
    let calls_may_wait = in_calls(&|inst| matches!(inst.opcode.text, "bar" | "barrier"));
    let calls_may_end = in_calls(&|inst| inst.opcode.text == "exit");
    let parameters = parameters(function, pointers);
    let flow = Flow::new(function, &parameters, calls_may_wait);
    let (mut exits, mut stores, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let outputs = |origins: u64| -> Vec<usize> {
        let held = pointers.iter().enumerate().filter(|(number, _)| origins >> number & 1 == 1);
        let mut outputs: Vec<usize> = held.filter_map(|(_, pointer)| pointer.output).collect();
        outputs.sort_unstable();
        outputs.dedup();
        outputs
    };
    for (number, step) in flow.code.iter().enumerate() {
        let inst = step.inst;
        let whole = inst.opcode.at.start..inst.at.end - 1;
        let space = |word: &str| inst.mods.iter().any(|m| m.text.split("::").next() == Some(word));
        match inst.opcode.text {
            // First what ends the transaction or cannot be logged, then calls, then stores. A call that may
            // store is refused before one that may only end.
            "ret" | "exit" => exits.push(whole),
            "pm" | "clwb" | "clflushopt" | "sfence" | "ofence" | "dfence" => {
                let message = "the kernel has persistent-memory instructions of its own".to_owned();
                let help = "`mode = \"manual\"` declares the log of a kernel that keeps one by itself";
                faults.push(fault(whole, message).with_help(help));
            }
            "sust" => {
                let message = "a store to a surface: undo logging follows pointers, and knows no surfaces".to_owned();
                faults.push(fault(whole, message).with_help("`mode = \"manual\"` needs none"));
            }
            "wmma" if space("store") && !["shared", "shared::cta"].into_iter().any(space) => {
                let message = "a store of a matrix: undo logging follows the stores of a thread".to_owned();
                faults.push(fault(whole, message).with_help("`mode = \"manual\"` declares the log of such a kernel"));
            }
            "call" if call_stores(inst, &called) || !outputs(flow.read_by(number)).is_empty() => {
                let message = "what this function stores, and where, cannot be followed";
                faults.push(fault(whole, message.to_owned()).with_help("have the function inlined"));
            }
            "call" if calls_may_end => {
                faults.push(fault(whole, "a called function may `exit` past the end of the transaction".to_owned()));
            }
            "st" if space("param") && !outputs(flow.read_by(number)).is_empty() => {
                let message = "a pointer to an output goes into a function call: what it stores cannot be followed";
                faults.push(fault(whole, message.to_owned()).with_help("have the function inlined"));
            }
            // A store without a space may be to global memory; one to another space is to no output.
            _ if is_store(inst) && !["shared", "local", "const", "param"].into_iter().any(space) => {
                let origins = flow.address_of(number);
                let found = outputs(origins);
                let others = pointers.iter().enumerate().any(|(n, p)| origins >> n & 1 == 1 && p.output.is_none());
                if !found.is_empty() && others {
                    let message = "this address may be in an output or in another buffer: it cannot be told which";
                    faults.push(fault(whole, message.to_owned()));
                } else if !found.is_empty() {
                    match store(text, inst, found) {
                        Some(site) => {
                            numbers.push(number);
                            stores.push(site);
                        }
                        None => {
                            faults.push(fault(whole, "a store to an output in a form that is not known".to_owned()))
                        }
                    }
                } else if origins & (POINTERS | VARIABLE) == 0 {
                    // A pointer to another buffer, or a variable, is no output. An address that comes from
                    // neither may be anywhere.
                    let what = if origins & LOADED == 0 { "computed from no pointer" } else { "loaded from memory" };
                    let message = format!("it cannot be told which buffer this stores to: the address is {what}");
                    let help = "undo logging follows pointers from kernel parameters; `mode = \"manual\"` needs none";
                    faults.push(fault(whole, message).with_help(help));
                }
            }
            _ => {}
        }
    }
    // Only a store to the same output may change what another has left in memory.
    let sharing =
        |site: &StoreSite, other: &StoreSite| site.outputs.iter().any(|output| other.outputs.contains(output));
    let found: Vec<Vec<usize>> = stores
        .iter()
        .zip(&numbers)
        .map(|(site, &number)| {
            let others = stores.iter().zip(&numbers).filter(|(other, _)| sharing(site, other));
            let others: Vec<usize> = others.map(|(_, &other)| other).collect();
            if flow.code[number].inst.opcode.text == "st" { reloads(&flow, number, &others) } else { Vec::new() }
        })
        .collect();
    stores.iter_mut().zip(found).for_each(|(site, reloads)| site.reloads = reloads);
    let may_leave_early = flow.may_leave_early();
    faults.into_result(Sites { close, braces: function.braces.clone(), exits, stores, may_leave_early })
}

/// A store, `red` or `atom`, of multicast memory too.
fn is_store(inst: &Instruction<'_>) -> bool {
    match inst.opcode.text {
        "st" | "red" | "atom" => true,
        "multimem" => inst.mods.first().is_some_and(|word| word.text != "ld_reduce"),
        _ => false,
    }
}

/// The parts of a store, `red` or `atom`; `None` if its form is not known.
fn store(text: &str, inst: &Instruction<'_>, outputs: Vec<usize>) -> Option<StoreSite> {
    let returns = inst.opcode.text == "atom";
    let operands = &inst.operands[usize::from(returns).min(inst.operands.len())..];
    let [Operand { kind: OperandKind::Address(address), .. }, data @ ..] = operands else {
        return None;
    };
    let [Operand { kind: OperandKind::Name { name, component: None, offset }, .. }] = address.as_slice() else {
        return None;
    };
    let hinted = inst.mods.iter().any(|word| word.text == "L2::cache_hint");
    let data = data.get(..data.len().checked_sub(usize::from(hinted))?)?.last()?;
    let vector = inst.mods.iter().find(|word| matches!(word.text, "v2" | "v4"));
    let ty = inst.mods.last()?;
    let form = format!("{}.{}", vector.map_or_else(String::new, |v| format!(".{}", v.text)), ty.text);
    let guard = inst.guard.as_ref().map(|(word, not)| format!("@{}{} ", if *not { "!" } else { "" }, word.text));
    let clobbers = returns && matches!(&inst.operands[0].kind, OperandKind::Name { name: to, .. } if to == name);
    // Where its value is used again, only the flow of the whole kernel tells.
    Some(StoreSite {
        at: inst.at.clone(),
        guard: guard.unwrap_or_default(),
        base: (*name).to_owned(),
        offset: *offset,
        form,
        data: text.get(data.at.clone())?.to_owned(),
        outputs,
        clobbers,
        reloads: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 7.0\n.target sm_60\n.address_size 64\n.shared .align 4 .b8 tile[64];\n\
        .visible .entry k(.param .u64 y, .param .u64 x, .param .u32 n, .param .align 16 .b8 both[16])\n{\n\
        .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;\n";

    /// `y` and the second half of `both` are outputs 0 and 1; `x` and the first half are not.
    fn examine(body: &str) -> Result<Sites, String> {
        let text = format!("{HEAD}{body}}}\n");
        super::super::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let pointer = |offset, output| Pointer { offset, output };
        let pointers = [pointer(0, Some(0)), pointer(8, None), pointer(32, None), pointer(40, Some(1))];
        sites("k.ptx", &text, "k", &pointers).map_err(|faults| faults.to_string())
    }

    fn outputs(body: &str) -> Vec<Vec<usize>> {
        let sites = examine(body).unwrap_or_else(|faults| panic!("{faults}"));
        sites.stores.into_iter().map(|store| store.outputs).collect()
    }

    #[test]
    fn a_pointer_is_followed_through_arithmetic_structures_and_loops() {
        let body = "ld.param.u64 %rd1, [y];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, %tid.x;\n\
            mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd2, %rd3;\nL:\nst.global.u32 [%rd4+8], %r1;\n\
            add.s64 %rd4, %rd4, 64;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\n\
            ld.param.v2.u64 {%rd5, %rd6}, [both];\n@!%p1 red.global.add.u32 [%rd6], 1;\nst.global.u32 [%rd5], 1;\nret;\n";
        assert_eq!(outputs(body), [vec![0], vec![1]]);
        let sites = examine(body).unwrap();
        assert_eq!((sites.stores[0].base.as_str(), sites.stores[0].offset), ("%rd4", 8));
        assert_eq!((sites.stores[0].form.as_str(), sites.stores[0].data.as_str()), (".u32", "%r1"));
        assert_eq!((sites.stores[1].guard.as_str(), sites.stores[1].data.as_str()), ("@!%p1 ", "1"));
    }

    #[test]
    fn a_register_used_again_for_another_pointer_is_the_other_pointer() {
        let body = "ld.param.u64 %rd1, [y];\nst.u32 [%rd1], 1;\nld.param.u64 %rd1, [x];\nst.u32 [%rd1], 1;\nret;\n";
        assert_eq!(outputs(body), [vec![0]]);
    }

    #[test]
    fn what_a_barrier_returns_replaces_what_its_register_held() {
        // The store is to `x`, at an offset that was an address in `y` until the barrier.
        let body = "ld.param.u64 %rd1, [y];\ncvt.u32.u64 %r1, %rd1;\nsetp.ne.u32 %p1, %r2, 0;\n\
            bar.red.popc.u32 %r1, 0, %p1;\ncvt.u64.u32 %rd2, %r1;\nld.param.u64 %rd3, [x];\n\
            add.s64 %rd3, %rd3, %rd2;\nst.u32 [%rd3], 1;\nret;\n";
        assert_eq!(outputs(body), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_register_of_an_inner_block_is_not_the_outer_one() {
        let body = "ld.param.u64 %rd1, [y];\n{ .reg .b64 %rd1; mov.u64 %rd1, 7; }\nst.u32 [%rd1], 1;\nret;\n";
        assert_eq!(outputs(body), [vec![0]]);
    }

    #[test]
    fn stores_to_shared_memory_and_variables_are_none() {
        let body = "mov.u64 %rd1, tile;\nst.shared.u32 [%rd1], 1;\nst.shared.u32 [tile], 1;\nret;\n";
        assert_eq!(outputs(body), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_store_that_cannot_be_told_is_reported_with_its_line() {
        let either = "ld.param.u64 %rd1, [y];\nld.param.u64 %rd2, [x];\nsetp.eq.u64 %p1, %rd1, 0;\n\
            selp.b64 %rd3, %rd1, %rd2, %p1;\nst.global.u32 [%rd3], 1;\nret;\n";
        let said = "k.ptx:12:1: this address may be in an output or in another buffer: it cannot be told which";
        assert_eq!(examine(either), Err(said.to_owned()));
        let loaded = "ld.param.u64 %rd1, [x];\nld.global.u64 %rd2, [%rd1];\nst.global.u32 [%rd2], 1;\nret;\n";
        let said = examine(loaded).unwrap_err();
        assert!(said.starts_with("k.ptx:10:1: it cannot be told which buffer this stores to: the address is loaded"));
        let own = examine("pm.sfence;\nret;\n").unwrap_err();
        assert!(own.starts_with("k.ptx:8:1: the kernel has persistent-memory instructions of its own"), "{own}");
    }

    #[test]
    fn a_call_of_a_function_that_stores_is_reported_and_one_that_does_not_is_none() {
        let with = |function: &str| {
            let head = ".version 7.0\n.target sm_60\n.address_size 64\n.func f(.param .u64 p)\n{\n.reg .b64 %rd<2>; \
                .reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\n";
            let body = "ret;\n}\n.visible .entry k(.param .u64 y)\n{\n.reg .b64 %rd<2>;\n{\n.param .u64 p0;\n\
                mov.u64 %rd1, 64;\nst.param.u64 [p0], %rd1;\ncall f, (p0);\n}\nret;\n}\n";
            let text = format!("{head}{function}{body}");
            super::super::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
            let y = Pointer { offset: 0, output: Some(0) };
            sites("k.ptx", &text, "k", &[y]).map(|found| found.stores.len()).map_err(|faults| faults.to_string())
        };
        let said = "k.ptx:18:1: what this function stores, and where, cannot be followed (have the function inlined)";
        assert_eq!(with("st.global.u32 [%rd1], 1;\n"), Err(said.to_owned()));
        assert_eq!(with("ld.global.u32 %r1, [%rd1];\n"), Ok(0));
        let indirect = "mov.u64 %rd1, g;\nt: .calltargets g;\ncall %rd1, (p), t;\n";
        let said = "k.ptx:24:1: what this function stores, and where, cannot be followed (have the function inlined)";
        assert_eq!(with(&format!("{indirect}ret;\n}}\n.func g(.param .u64 p)\n{{\n")), Err(said.to_owned()));
    }

    #[test]
    fn threads_leave_early_only_where_a_varying_branch_goes_around_a_barrier() {
        let around = |predicate: &str| {
            let body = format!(
                "ld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n{predicate};\n@%p1 bra END;\nbar.sync 0;\nEND:\nret;\n"
            );
            examine(&body).unwrap().may_leave_early
        };
        assert!(around("setp.lt.u32 %p1, %r2, %r1"), "some threads skip it");
        assert!(!around("setp.lt.u32 %p1, %r1, 5"), "all skip it or none");
        let early = "mov.u32 %r2, %tid.x;\nsetp.lt.u32 %p1, %r2, 5;\n@%p1 ret;\nbar.sync 0;\nret;\n";
        assert!(examine(early).unwrap().may_leave_early);
        let before = "mov.u32 %r2, %tid.x;\nsetp.lt.u32 %p1, %r2, 5;\nbar.sync 0;\n@%p1 ret;\nret;\n";
        assert!(!examine(before).unwrap().may_leave_early);
        // The same value in every thread, but written where only some threads came.
        let forked = "mov.u32 %r2, %tid.x;\nsetp.lt.u32 %p1, %r2, 5;\nmov.u32 %r3, 0;\n@%p1 bra A;\nmov.u32 %r3, 1;\nA:\n\
            setp.eq.u32 %p2, %r3, 1;\n@%p2 bra END;\nbar.sync 0;\nEND:\nret;\n";
        assert!(examine(forked).unwrap().may_leave_early);
    }
}
