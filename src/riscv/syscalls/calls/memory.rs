//! Calls that map memory.

use super::reply::{Result, done, failed, value};
use crate::riscv::memory::PM_START;
use crate::riscv::syscalls::call::{Call, CallStep, Data, Then, Write};
use crate::riscv::syscalls::files::Open;
use crate::riscv::syscalls::number::error;
use crate::riscv::syscalls::space::PageRun;
use crate::riscv::syscalls::state::Os;

/// Flags of `mmap` and `mprotect`.
mod flag {
    pub(super) const PROT_EXEC: u64 = 4;
    pub(super) const MAP_FIXED: u64 = 0x10;
    pub(super) const MAP_ANONYMOUS: u64 = 0x20;
}

fn zeros(runs: Vec<PageRun>) -> Vec<Write> {
    runs.into_iter().map(|(address, bytes)| Write { address, data: Data::Zeros(bytes) }).collect()
}

pub(super) fn brk(os: &mut Os, address: u64) -> CallStep {
    let (end, runs) = os.space.brk(address);
    done(zeros(runs), Then::Return(end))
}

/// `mmap`: memory, a copy of a file, or persistent memory.
pub(super) fn map(os: &mut Os, call: &Call) -> Result<CallStep> {
    let [address, bytes, protection, flags, descriptor, offset] = call.args;
    if protection & flag::PROT_EXEC != 0 {
        return Err(failed(error::EACCES));
    }
    if bytes == 0 {
        return Err(failed(error::EINVAL));
    }
    let file = if flags & flag::MAP_ANONYMOUS != 0 {
        None
    } else {
        match os.files.get(descriptor).map_err(failed)? {
            Open::Persistent => {
                let pm_bytes = os.process.windows.pm_bytes;
                let fits = offset.checked_add(bytes).is_some_and(|end| end <= pm_bytes);
                let fixed = flags & flag::MAP_FIXED != 0 && address != PM_START.wrapping_add(offset);
                return if fits && !fixed { Ok(value(PM_START + offset)) } else { Err(failed(error::ENOMEM)) };
            }
            Open::File(file, _) => Some(os.files.content(*file, offset, bytes).to_vec()),
            _ => return Err(failed(error::EACCES)),
        }
    };
    let access = protection != 0;
    let (start, runs) = if flags & flag::MAP_FIXED != 0 {
        (address, os.space.map_at(address, bytes, access).ok_or(failed(error::ENOMEM))?)
    } else {
        os.space.map(bytes, access).ok_or(failed(error::ENOMEM))?
    };
    let mut writes = zeros(runs);
    if let Some(content) = file.filter(|content| !content.is_empty()) {
        writes.push(Write { address: start, data: Data::Bytes(content) });
    }
    Ok(done(writes, Then::Return(start)))
}

pub(super) fn unmap(os: &mut Os, address: u64, bytes: u64) -> CallStep {
    // Persistent memory stays where it is.
    let persistent = os.process.windows.pm_bytes > address.wrapping_sub(PM_START);
    if persistent || os.space.unmap(address, bytes) { value(0) } else { failed(error::EINVAL) }
}

pub(super) fn remap(os: &mut Os, address: u64, old: u64, new: u64) -> CallStep {
    match os.space.resize(address, old, new) {
        Some(runs) => done(zeros(runs), Then::Return(address)),
        None => failed(error::ENOMEM),
    }
}

pub(super) fn protect(os: &mut Os, address: u64, bytes: u64, protection: u64) -> CallStep {
    if protection & flag::PROT_EXEC != 0 {
        return failed(error::EACCES);
    }
    if protection != 0 {
        os.space.open(address, bytes);
    }
    value(0)
}
