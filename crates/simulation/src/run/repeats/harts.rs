//! What the harts of a machine of cores repeat: each is executed alone on what memory has.

use crate::assemble::{Assembly, Peek};
use crate::outcome::Repeating;
use durawarp_machine::core::{Core, SavedThread, Standing};
use durawarp_machine::cpu::CpuMemory;
use durawarp_machine::os::OperatingSystem;
use durawarp_riscv::elf::Executable;
use durawarp_riscv::instruction::{Class, SP};
use durawarp_riscv::repeat::{Loop, Read, low, repeats};

/// Who repeats what, and who waits in the OS; none where a hart may get on. A hart whose `sc` fails is
/// taken to repeat itself where nothing has changed for `long`.
pub(in crate::run) fn of_harts(
    machine: &Assembly,
    image: &Executable,
    long: bool,
) -> Option<(Vec<Repeating>, Vec<String>)> {
    let mut repeating = Vec::new();
    for server in 0..machine.servers() {
        let peek = machine.peek(server);
        let os = machine.systems().nth(server);
        for core in machine.cores_of(server) {
            let (first, ..) = core.executes();
            for hart in 0..core.harts() {
                let saved = core.saved(hart);
                match saved.standing {
                    Standing::Idle | Standing::Waits => continue,
                    Standing::Calls => return None,
                    Standing::Runs => {}
                }
                let found = repeated(core, &saved, &peek)?;
                if found.conditionals > 0 && !long {
                    return None;
                }
                let who = who(first + hart as u32, server, machine.servers(), os);
                let stack_pointer = saved.state.registers[usize::from(SP)];
                repeating.push(told(who, &found, stack_pointer, core, image));
            }
        }
    }
    // Without a hart that runs the engine finds the deadlock itself.
    let waits = machine.simulation.waits();
    let in_os = waits.iter().filter(|(_, name, _)| name.rsplit('.').next() == Some("os"));
    let in_os = in_os.map(|(_, _, wait)| format!("{} waits for {}", wait.who, wait.what)).collect();
    (!repeating.is_empty()).then_some((repeating, in_os))
}

/// What a hart repeats; none where it may get on, or a store of it is still to change something.
fn repeated(core: &Core, saved: &SavedThread, peek: &Peek<'_>) -> Option<Loop> {
    let (_, code, memory) = core.executes();
    let is_there = |&(address, value, width): &(u64, u64, u8)| peek.word(address, width) == low(value, width);
    if !saved.stores.iter().all(is_there) {
        return None;
    }
    repeats(code, &saved.state, &|address, width| at(memory, peek, address, width)).ok()
}

fn at(memory: CpuMemory, peek: &Peek<'_>, address: u64, width: u8) -> Option<u64> {
    Some(peek.word(memory.physical(address, width.into())?, width))
}

fn who(hart: u32, server: usize, servers: usize, os: Option<&OperatingSystem>) -> String {
    let thread = os.and_then(OperatingSystem::idle).map_or(0, |calls| calls.thread(hart));
    let thread = if thread == 0 { String::new() } else { format!(" (thread {thread})") };
    let server = if servers > 1 { format!(" of server {server}") } else { String::new() };
    format!("hart {hart}{server}{thread}")
}

/// Bytes around the stack pointer that are taken for the hart's own variables.
const STACK_BYTES: u64 = 4096;

/// The read whose word the hart waits for: one that a branch follows from. Of several an atomic, then one of
/// a named object, then one that is not of its stack.
fn awaited<'a>(found: &'a Loop, stack_pointer: u64, core: &Core, image: &Executable) -> Option<&'a Read> {
    let (_, code, _) = core.executes();
    let rank = |read: &&Read| {
        let class = code.at(read.pc).map(|inst| inst.class());
        let atomic = matches!(class, Some(Class::Amo | Class::LoadReserved));
        let named = image.data_name(read.address).starts_with('`');
        (!read.decides, !atomic, !named, read.address.abs_diff(stack_pointer) < STACK_BYTES)
    };
    found.reads.iter().min_by_key(rank)
}

fn told(who: String, found: &Loop, stack_pointer: u64, core: &Core, image: &Executable) -> Repeating {
    let (_, code, _) = core.executes();
    let [first, last] = [found.pcs.first(), found.pcs.last()].map(|pc| pc.copied().unwrap_or_default());
    let place = match first == last {
        true => image.code_name(first),
        false => format!("{} to {}", image.code_name(first), image.code_name(last)),
    };
    // What the word is that it waits for, where one can be told.
    let name = |pc: u64| code.at(pc).map_or("", |inst| inst.op.name());
    let read = awaited(found, stack_pointer, core, image);
    let mut notes = Vec::new();
    let conditional =
        found.pcs.iter().find(|&&pc| code.at(pc).is_some_and(|inst| inst.class() == Class::StoreConditional));
    let failed = core.counters().failed_conditionals;
    if let (Some(&pc), 1..) = (conditional, found.conditionals) {
        notes.push(format!("its {} at {} fails each time, {failed} times so far", name(pc), image.code_name(pc)));
    }
    let others = found.reads.iter().filter(|other| other.decides && Some(*other) != read).count();
    if others > 0 {
        notes.push(format!("its branches follow from {others} more reads"));
    }
    let instruction = |read: &Read| format!("{} at {}", name(read.pc), image.code_name(read.pc));
    Repeating {
        who,
        count: 1,
        place,
        pcs: [first, last],
        instruction: read.map(instruction).unwrap_or_default(),
        address: read.map(|read| read.address),
        object: read.map(|read| image.data_name(read.address)).unwrap_or_default(),
        value: read.map(|read| read.value),
        failed_conditionals: if found.conditionals > 0 { failed } else { 0 },
        notes,
    }
}
