//! Calls that map memory.

use super::reply::{Result, done, failed, value, write};
use crate::memory::{PAGE_BYTES, PM_START};
use crate::syscalls::call::{Call, CallStep, Data, Then, Write};
use crate::syscalls::files::Open;
use crate::syscalls::number::{self, error};
use crate::syscalls::space::PageRun;
use crate::syscalls::state::Os;

/// Flags of `mmap` and `mprotect`.
mod flag {
    pub(super) const PROT_WRITE: u64 = 2;
    pub(super) const PROT_EXEC: u64 = 4;
    pub(super) const MAP_SHARED: u64 = 1;
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
        let open = os.files.get(descriptor).map_err(failed)?;
        match open.what {
            Open::Persistent => {
                let pm_bytes = os.process.windows.pm_bytes;
                let fits = offset.checked_add(bytes).is_some_and(|end| end <= pm_bytes);
                let fixed = flags & flag::MAP_FIXED != 0 && address != PM_START.wrapping_add(offset);
                return if fits && !fixed { Ok(value(PM_START + offset)) } else { Err(failed(error::ENOMEM)) };
            }
            // What is stored there would have to reach the file.
            Open::File(_) if flags & flag::MAP_SHARED != 0 && protection & flag::PROT_WRITE != 0 => {
                os.note_missing(number::MMAP);
                return Err(failed(error::ENODEV));
            }
            Open::File(file) => Some(os.files.content(file, offset, bytes).to_vec()),
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

/// `mincore`: all memory is there.
pub(super) fn resident(os: &Os, address: u64, bytes: u64, to: u64) -> Result<CallStep> {
    if !address.is_multiple_of(PAGE_BYTES) {
        return Err(failed(error::EINVAL));
    }
    if bytes > 0 && os.process.windows.place(address, bytes).is_none() {
        return Err(failed(error::ENOMEM));
    }
    let pages = bytes.div_ceil(PAGE_BYTES) as usize;
    Ok(done(vec![write(os, to, vec![1; pages])?], Then::Return(0)))
}
