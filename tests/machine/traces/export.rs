//! A tracer of our own kernels: it writes what Accel-Sim's tracer and post-processor would write of them.
//!
//! Warps execute one by one, without memory: only of kernels whose ways and addresses do not depend on what is loaded.
//! An instruction gets the SASS opcode that has its timing class, and its operands get registers of their own, predicates
//! too. So the trace has the dependencies of the kernel, which a real one lacks in part.

use std::fmt::Write as _;
use std::path::Path;

use durawarp::kernel::host::{HostAction, HostProgram};
use durawarp::kernel::ir::{CacheOp, Class, Inst, Mem, MemKind, Op, PmOp, Scope, Space};
use durawarp::kernel::launch::Launch;
use durawarp::kernel::memory::{Medium, NVM_BASE};
use durawarp::kernel::warp::Warp;
use durawarp::workload::Resolved;

/// Added to every address: traces have those of a real GPU. A multiple of 2 MiB.
pub(super) const SHIFT: u64 = 0x7e00_0000_0000;

/// Writes the list, a file for each launch, and labels of the buffers in persistent memory, with further lines.
pub(super) fn export(workload: &Resolved, folder: &Path, stores: &str, labels: &str) {
    let (mut host, mut list) = (workload.host(), String::new());
    loop {
        match host.next(None).unwrap() {
            HostAction::Launch(launch) => {
                let name = format!("kernel-{}.traceg", list.lines().count() + 1);
                std::fs::write(folder.join(&name), trace(&launch)).unwrap();
                list += &format!("{name}\n");
            }
            HostAction::Done => break,
            other => panic!("not in a trace: {other:?}"),
        }
    }
    std::fs::write(folder.join("kernelslist.g"), list).unwrap();
    let mut text = labels.to_owned();
    let persistent = workload.addresses().ranges().iter().filter(|range| Medium::of(range.start) == Medium::Nvm);
    for range in persistent {
        let (start, bytes) = (range.start + SHIFT, range.bytes.next_multiple_of(256));
        writeln!(text, "[[persistent]]\nname = \"{}\"\nstart = {start}\nbytes = {bytes}", range.name).unwrap();
        writeln!(text, "stores = \"{stores}\"").unwrap();
    }
    assert!(NVM_BASE.is_multiple_of(2 << 20));
    std::fs::write(folder.join("kernelslist.toml"), text).unwrap();
}

/// The file of a launch.
fn trace(launch: &Launch) -> String {
    let dim = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let mut text = format!(
        "-kernel name = {}\n-kernel id = 1\n-grid dim = {}\n-block dim = {}\n-shmem = {}\n-nregs = {}\n\
         -binary version = 70\n-cuda stream id = 0\n-shmem base_addr = 0x00007f0000000000\n\
         -local mem base_addr = 0x00007f0001000000\n-nvbit version = none\n-accelsim tracer version = 5\n\
         -enable lineinfo = 0\n\n#traces format = as of version 5\n\n",
        launch.kernel.name,
        dim(launch.grid),
        dim(launch.block),
        launch.shared_bytes,
        launch.registers_per_thread
    );
    for cta in 0..launch.ctas() {
        let [x, y, z] = launch.cta_index(cta);
        write!(text, "#BEGIN_TB\n\nthread block = {x},{y},{z}\n\n").unwrap();
        for warp in 0..launch.warps_per_cta(32) {
            let lines = lines(launch, cta, warp);
            write!(text, "warp = {warp}\ninsts = {}\n{}\n\n", lines.len(), lines.join("\n")).unwrap();
        }
        text += "#END_TB\n\n";
    }
    text
}

/// What a warp executes.
fn lines(launch: &Launch, cta: u64, number: u32) -> Vec<String> {
    let (mut warp, mut lines) = (Warp::default(), Vec::new());
    warp.start(launch, cta, number, 32);
    while !warp.is_done() {
        let pc = warp.pc() as usize;
        let inst = &launch.kernel.code[pc];
        let lanes = warp.guarded(inst);
        if let Some(opcode) = opcode(launch, pc) {
            let mut addresses = [0; 64];
            let width = match inst.op {
                Op::Mem(mem) => mem.bytes(),
                _ => 0,
            };
            if width > 0 {
                warp.addresses(inst, launch, lanes, &mut addresses);
            }
            lines.push(line(launch, pc, &opcode, lanes as u32, width, &addresses, lines.len()));
        }
        match inst.op {
            Op::Alu(_) => {
                warp.alu(inst, launch, lanes);
                warp.advance();
            }
            Op::Branch { target, reconverge } => warp.branch(lanes, target, reconverge),
            Op::Exit => warp.exit(lanes),
            Op::Mem(_) | Op::Barrier(_) | Op::Fence(_) | Op::Nop | Op::Pm(_) => warp.advance(),
            other => panic!("not in a trace: {other:?}"),
        }
    }
    lines
}

/// The opcode of an instruction; none of a write-back, which labels say.
fn opcode(launch: &Launch, pc: usize) -> Option<String> {
    let inst: &Inst = &launch.kernel.code[pc];
    let name = match inst.op {
        Op::Mem(mem) => return Some(opcode_of(mem)),
        Op::Branch { .. } => "BRA",
        Op::Barrier(_) => "BAR.SYNC.DEFER_BLOCKING",
        Op::Fence(Scope::Cta) => "MEMBAR.SC.CTA",
        Op::Fence(Scope::Gpu) => "MEMBAR.SC.GPU",
        // Labels make one of scope sys a fence of persistency, too.
        Op::Fence(Scope::Sys) => "MEMBAR.SC.SYS",
        Op::Pm(PmOp::Clwb | PmOp::Sfence) => return None,
        Op::Exit => "EXIT",
        Op::Nop => "NOP",
        Op::Alu(_) => match launch.kernel.class[pc] {
            Class::Int => "IADD3",
            Class::IntMul => "IMAD",
            Class::Logic => "LOP3.LUT",
            Class::Compare => "ISETP.GE.AND",
            Class::MinMax => "IMNMX",
            Class::Convert => "I2F",
            Class::Fp32 => "FFMA",
            Class::Sfu => "MUFU.RCP",
            Class::Shuffle => "SHFL.IDX",
            Class::Vote => "VOTE.ANY",
            Class::Const => "LDC",
            other => panic!("no opcode of {other:?}"),
        },
        other => panic!("not in a trace: {other:?}"),
    };
    Some(name.to_owned())
}

fn opcode_of(mem: Mem) -> String {
    let name = match (mem.kind, mem.space) {
        (MemKind::Load, Space::Global) => "LDG.E",
        (MemKind::Load, Space::Shared) => "LDS",
        (MemKind::Store, Space::Global) => "STG.E",
        (MemKind::Store, Space::Shared) => "STS",
        (MemKind::Atomic, Space::Global) => "ATOMG.E.ADD",
        (MemKind::Reduction, Space::Global) => "RED.E.ADD",
        other => panic!("no opcode of {other:?}"),
    };
    let width = match mem.bytes() {
        1 => ".U8",
        2 => ".U16",
        8 => ".64",
        16 => ".128",
        _ => "",
    };
    let cache = match mem.cache {
        CacheOp::ReadOnly => ".CONSTANT",
        CacheOp::All => "",
        other => panic!("no modifier of {other:?}"),
    };
    format!("{name}{width}{cache}")
}

/// A line, with addresses in the mode that the tracer picks; every other one that it would compress is listed.
fn line(
    launch: &Launch,
    pc: usize,
    opcode: &str,
    lanes: u32,
    width: u32,
    addresses: &[u64; 64],
    number: usize,
) -> String {
    let hazards = &launch.kernel.hazards[pc];
    let names = |registers: &[u16], most: usize| {
        let of_real = registers.iter().filter(|&&register| register != launch.kernel.no_register()).take(most);
        let names: Vec<String> = of_real.map(|register| format!("R{register}")).collect();
        [vec![names.len().to_string()], names].concat().join(" ")
    };
    assert!(launch.kernel.no_register() < 250, "as many registers as SASS has");
    let (dst, src) = (names(hazards.written(), 2), names(hazards.read(), 8));
    let mut text = format!("{:04x} {lanes:08x} {dst} {opcode} {src} {width}", 16 * pc);
    if width > 0 {
        let global = matches!(launch.kernel.code[pc].op, Op::Mem(mem) if mem.space == Space::Global);
        let shift = if global { SHIFT } else { 0 };
        let set: Vec<u64> = (0..32).filter(|lane| lanes >> lane & 1 == 1).map(|lane| addresses[lane] + shift).collect();
        text += &in_a_mode(lanes, &set, number);
    }
    text + " 0"
}

fn in_a_mode(lanes: u32, set: &[u64], number: usize) -> String {
    let deltas: Vec<i64> = set.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) as i64).collect();
    let side_by_side = lanes != 0 && (lanes >> lanes.trailing_zeros()).wrapping_add(1).count_ones() <= 1;
    let even = deltas.windows(2).all(|pair| pair[0] == pair[1]);
    if set.is_empty() {
        return " 1 0x0 0".to_owned();
    }
    if set.len() > 1 && side_by_side && even && !number.is_multiple_of(3) {
        return format!(" 1 {:#018x} {}", set[0], deltas[0]);
    }
    if number.is_multiple_of(2) {
        return format!(" 0{}", set.iter().map(|address| format!(" {address:#018x}")).collect::<String>());
    }
    format!(" 2 {:#018x}{}", set[0], deltas.iter().map(|delta| format!(" {delta}")).collect::<String>())
}
