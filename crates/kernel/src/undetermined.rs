//! What a kernel's results may follow from that its text does not determine: the order of floating-point
//! additions, numbers that only a machine knows, registers that nobody has written.
//!
//! One pass of dataflow a source (see `dataflow.rs`): a register follows from a source if an instruction that
//! reads one that does writes it. What counts is whether anything seen from outside follows: what is stored
//! or where, and which way a branch goes. Values that go through memory have been stored then.
//!
//! Over-approximate on purpose: some path is enough, and a subroutine returns to every call. Nothing follows
//! from a source unless it is listed here.

use std::sync::Arc;

use super::cfg::{BitSet, Flow};
use super::dataflow::{Edges, flow_of, live};
use super::ir::{AtomOp, Bulk, Elem, Guard, Inst, Kernel, MachineRead, Mem, MemKind, Op};

/// Facts of a pass, instructions times registers, at most. A pass holds two sets of them (`Edges::forward`),
/// of 128 MiB of bits each. In larger kernels all is taken to follow from what the machine knows, and
/// registers are not looked at.
const MOST_FACTS: usize = 1 << 30;

/// The first atomic that adds floating-point numbers: sums depend on the order of additions.
pub fn float_atomic(kernel: &Kernel) -> Option<u32> {
    kernel.code.iter().position(|inst| adds_floats(&inst.op)).map(|pc| pc as u32)
}

/// What only a machine knows and something follows from, each with the first instruction that reads it.
///
/// # Example: a kernel that stores the clock, and one that reads it in vain
/// ```
/// # use durawarp_kernel::{ir::MachineRead, ptx, undetermined::machine_reads};
/// let of = |body: &str| {
///     let text = format!(".version 8.0 .visible .entry k(.param .u64 a) {{ .reg .b32 %r<3>; .reg .b64 %d;
///         ld.param.u64 %d, [a]; mov.u32 %r1, %clock; {body} ret; }}");
///     machine_reads(&ptx::parse("k.ptx", &text).unwrap().kernels[0])
/// };
/// let stored = of("add.u32 %r2, %r1, 1; st.global.u32 [%d], %r2;");
/// assert_eq!(stored, [(MachineRead::Clock, 1)]);
/// assert_eq!(of("add.u32 %r2, %r1, 1; st.global.u32 [%d], 7;"), []);
/// ```
pub fn machine_reads(kernel: &Kernel) -> Vec<(MachineRead, u32)> {
    let mut reads: Vec<(MachineRead, u32)> = Vec::new();
    for (pc, inst) in (0..).zip(&kernel.code) {
        if let Op::Machine(what) = inst.op
            && !reads.iter().any(|(known, _)| *known == what)
        {
            reads.push((what, pc));
        }
    }
    // Nearly every kernel reads none.
    if reads.is_empty() || is_too_large(kernel) {
        return reads;
    }
    let (edges, nothing) = (edges(&kernel.code), BitSet::new(usize::from(kernel.no_register())));
    reads.retain(|(what, _)| follows(kernel, &edges, &nothing, |inst| inst.op == Op::Machine(*what), is_seen));
    reads
}

/// Scoreboard indices of registers that may be read before they are written; none if nothing follows.
pub fn unwritten(kernel: &Kernel) -> Vec<u16> {
    if is_too_large(kernel) {
        return Vec::new();
    }
    let (edges, registers) = (edges(&kernel.code), usize::from(kernel.no_register()));
    // What is alive at the entry is read before it is written on some path, but for special registers.
    let mut begin = BitSet::new(registers);
    if let Some(alive) = live(&edges, &kernel.code, &kernel.hazards, registers).first() {
        begin.join(alive);
    }
    kernel.specials.iter().for_each(|&(_, slot)| begin.remove(u32::from(slot)));
    let uses = |inst: &Inst| is_seen(inst) || matches!(inst.op, Op::Mem(_));
    let found: Vec<u16> = begin.iter().map(|register| register as u16).collect();
    if !found.is_empty() && follows(kernel, &edges, &begin, |_| false, uses) { found } else { Vec::new() }
}

fn is_too_large(kernel: &Kernel) -> bool {
    kernel.code.len() * usize::from(kernel.no_register()) > MOST_FACTS
}

/// A kernel's instruction by its place, as texts name it.
pub fn place(kernel: &Arc<Kernel>, pc: u32) -> String {
    let pos = kernel.pos.get(pc as usize).copied().unwrap_or_default();
    format!("{}:{}:{}", kernel.file, pos.line, pos.column)
}

/// What a register of the machine is called.
pub fn name_of(what: MachineRead) -> &'static str {
    match what {
        MachineRead::Clock => "%clock",
        MachineRead::ClockHigh => "%clock_hi",
        MachineRead::Clock64 => "%clock64",
        MachineRead::GlobalTimer => "%globaltimer",
        MachineRead::SmId => "%smid",
        MachineRead::NSmId => "%nsmid",
        MachineRead::WarpId => "%warpid",
        MachineRead::NWarpId => "%nwarpid",
    }
}

fn adds_floats(op: &Op) -> bool {
    let (atom, elem) = match op {
        Op::Mem(Mem { kind: MemKind::Atomic | MemKind::Reduction, atom, elem, .. })
        | Op::Bulk(Bulk { atom, elem, .. }) => (atom, elem),
        _ => return false,
    };
    match atom {
        AtomOp::Add => matches!(elem, Elem::F32 | Elem::F64),
        AtomOp::AddHalf(_) => true,
        _ => false,
    }
}

/// What an instruction reads is seen from outside: stored, or stored at, or decided by.
pub(super) fn is_seen(inst: &Inst) -> bool {
    match inst.op {
        Op::Mem(mem) => !matches!(mem.kind, MemKind::Load | MemKind::Texture(_) | MemKind::Matrix(_)),
        Op::Branch { .. } | Op::Exit | Op::Trap(_) | Op::Barrier(_) | Op::Call { .. } | Op::Return | Op::Pm(_) => true,
        Op::Bulk(_) => true,
        Op::Cluster(_) | Op::Grid(_) => true,
        Op::Alu(_)
        | Op::Fence(_)
        | Op::Nop
        | Op::Registers(_)
        | Op::Machine(_)
        | Op::Copies(_)
        | Op::BulkGroups(_)
        | Op::Matrix(_)
        | Op::WarpGroup(_)
        | Op::AwaitPhase(_)
        | Op::Tensor(_) => false,
    }
}

/// Something that is `seen` follows from the registers of `begin` at the entry, or from what `is_source`
/// writes.
fn follows(
    kernel: &Kernel,
    edges: &Edges,
    begin: &BitSet,
    is_source: impl Fn(&Inst) -> bool,
    seen: impl Fn(&Inst) -> bool,
) -> bool {
    let reads = |pc: usize, facts: &BitSet| {
        kernel.hazards[pc].read().iter().any(|&register| facts.contains(u32::from(register)))
    };
    // `forward_some` starts from what holds at the entry.
    let before = edges.forward_some(begin, |pc, facts| {
        let inst = &kernel.code[pc];
        let follows = is_source(inst) || reads(pc, facts);
        for &register in kernel.hazards[pc].written() {
            if follows {
                facts.insert(u32::from(register));
            } else if inst.guard == Guard::ALWAYS {
                facts.remove(u32::from(register));
            }
        }
    });
    before.iter().enumerate().any(|(pc, facts)| seen(&kernel.code[pc]) && reads(pc, facts))
}

/// Where control goes after each instruction. A return goes to every call.
fn edges(code: &[Inst]) -> Edges {
    let flow = |inst: &Inst| match inst.op {
        Op::Call { target } => Flow { falls: false, jumps: Some(target) },
        Op::Return => Flow { falls: false, jumps: None },
        _ => flow_of(inst),
    };
    let mut edges = Edges::new(&code.iter().map(flow).collect::<Vec<_>>());
    let places = |of: fn(&Inst) -> bool| (0u32..).zip(code).filter(move |(_, inst)| of(inst)).map(|(pc, _)| pc);
    for from in places(|inst| inst.op == Op::Return) {
        let behind_calls = places(|inst| matches!(inst.op, Op::Call { .. })).map(|call| call + 1);
        for to in behind_calls.filter(|&to| (to as usize) < code.len()) {
            edges.after[from as usize].push(to);
            edges.before[to as usize].push(from);
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::super::ptx;
    use super::*;

    fn of(body: &str) -> Arc<Kernel> {
        let text = format!(
            ".version 8.0 .target sm_90 .visible .entry k(.param .u64 a) {{ .reg .b32 %r<9>; .reg .b64 %d<9>;\n\
             .reg .f32 %f<9>; .reg .pred %p<9>; .shared .align 8 .b8 s[64];\nld.param.u64 %d1, [a];\n{body}\nret; }}"
        );
        let module = ptx::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
        module.kernels[0].clone()
    }

    /// The names of what only the machine knows and something follows from.
    fn known_to_machines(body: &str) -> Vec<&'static str> {
        machine_reads(&of(body)).iter().map(|(what, _)| name_of(*what)).collect()
    }

    #[test]
    fn what_follows_from_a_machine_is_stored_or_decides() {
        let cases: [(&str, &[&str]); 9] = [
            ("mov.u32 %r1, %clock; st.global.u32 [%d1], %r1;", &["%clock"]),
            ("mov.u64 %d2, %globaltimer; add.u64 %d3, %d2, %d2; st.global.u64 [%d1], %d3;", &["%globaltimer"]),
            // An address.
            ("mov.u32 %r1, %smid; mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], 1;", &["%smid"]),
            // A value that is loaded from there and stored.
            (
                "mov.u32 %r1, %warpid; mad.wide.u32 %d2, %r1, 4, %d1; ld.global.u32 %r2, [%d2]; st.global.u32 [%d1], %r2;",
                &["%warpid"],
            ),
            // A branch, by what follows from the difference of two reads.
            (
                "mov.u64 %d2, %clock64;\nL: mov.u64 %d3, %clock64; sub.u64 %d4, %d3, %d2; setp.lt.u64 %p1, %d4, 99;\n@%p1 bra L;",
                &["%clock64"],
            ),
            ("mov.u32 %r1, %nsmid; setp.eq.u32 %p1, %r1, 5; @%p1 st.global.u32 [%d1], 1;", &["%nsmid"]),
            // Overwritten first.
            ("mov.u32 %r1, %clock; mov.u32 %r1, 5; st.global.u32 [%d1], %r1;", &[]),
            ("mov.u32 %r1, %clock; ld.global.u32 %r2, [%d1]; st.global.u32 [%d1], %r2;", &[]),
            ("mov.u32 %r1, %tid.x; st.global.u32 [%d1], %r1;", &[]),
        ];
        for (body, expected) in cases {
            assert_eq!(known_to_machines(body), expected, "{body}");
        }
    }

    #[test]
    fn what_a_subroutine_returns_follows_from_it() {
        // `f` calls itself, so it is no part of its callers' code.
        let of = |stored: &str| {
            let text = format!(
                ".version 8.0 .target sm_90 .func (.reg .u32 r) f(.reg .u32 n) {{ .reg .pred p; .reg .u32 m;\n\
                 mov.u32 r, %clock; setp.eq.u32 p, n, 0; @p ret; sub.u32 m, n, 1; call (r), f, (m); ret; }}\n\
                 .visible .entry k(.param .u64 a) {{ .reg .u32 r; .reg .u64 d; ld.param.u64 d, [a]; call (r), f, (3);\n\
                 st.global.u32 [d], {stored}; ret; }}"
            );
            let module = ptx::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
            machine_reads(&module.kernels[0]).len()
        };
        assert_eq!((of("r"), of("7")), (1, 0));
    }

    #[test]
    fn sums_of_floats_by_atomics_are_found() {
        assert!(float_atomic(&of("atom.global.add.f32 %f1, [%d1], 0f3F800000;")).is_some());
        assert!(float_atomic(&of("red.shared.add.f64 [s], 0d3FF0000000000000;")).is_some());
        assert!(float_atomic(&of("red.global.add.noftz.f16x2 [%d1], %r1;")).is_some());
        assert!(float_atomic(&of("atom.global.add.u32 %r1, [%d1], 1; atom.global.exch.b32 %r2, [%d1], 1;")).is_none());
    }

    #[test]
    fn a_register_is_unwritten_where_something_follows_from_it() {
        let unwritten = |body: &str| unwritten(&of(body)).len();
        assert_eq!(unwritten("st.global.u32 [%d1], %r1;"), 1);
        assert_eq!(unwritten("add.u32 %r2, %r1, %r3; st.global.u32 [%d1], %r2;"), 2);
        assert_eq!(unwritten("ld.global.u32 %r1, [%d2];"), 1, "an address");
        assert_eq!(unwritten("@%p1 st.global.u32 [%d1], 1;"), 1, "a guard");
        assert_eq!(unwritten("add.u32 %r2, %r1, 1;"), 0, "nothing follows");
        assert_eq!(unwritten("mov.u32 %r1, %tid.x; st.global.u32 [%d1], %r1;"), 0);
        // Written under a guard: whether it is written where it is read is for the run to say.
        let guarded = "setp.eq.u32 %p1, 1, 2; @%p1 mov.u32 %r1, 3; @%p1 st.global.u32 [%d1], %r1;";
        assert_eq!(unwritten(guarded), 1);
    }
}
