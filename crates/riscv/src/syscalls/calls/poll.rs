//! `ppoll`. Every open file is ready for reading and writing at all times: files are in memory, and standard
//! input is at its end.

use super::reply::{Reader, Result, done, failed, value, write};
use super::sync::nanoseconds;
use crate::syscalls::call::{Call, CallStep, Then};
use crate::syscalls::number::error;
use crate::syscalls::state::Os;

/// Events of `struct pollfd`.
mod event {
    /// `POLLIN`, `POLLOUT`, `POLLRDNORM`, `POLLWRNORM`.
    pub(super) const READY: u16 = 0x1 | 0x4 | 0x40 | 0x100;
    pub(super) const NOT_OPEN: u16 = 0x20;
}

/// Bytes of `struct pollfd`: descriptor (4), events that are asked for (2), events that are found (2).
const ENTRY_BYTES: u64 = 8;
/// The most entries of a call.
const ENTRIES_MAX: u64 = 1024;

pub(super) fn poll(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    let [address, count, timeout, ..] = call.args;
    if count > ENTRIES_MAX {
        return Err(failed(error::EINVAL));
    }
    let timeout = reader.words_if_any(os, timeout)?.map(nanoseconds);
    let mut entries = reader.bytes(os, address, count * ENTRY_BYTES)?;
    let mut ready = 0;
    let (all, _) = entries.as_chunks_mut::<8>();
    for [d0, d1, d2, d3, e0, e1, found @ ..] in all {
        let descriptor = i32::from_le_bytes([*d0, *d1, *d2, *d3]);
        let wanted = u16::from_le_bytes([*e0, *e1]);
        let events = match u64::try_from(descriptor) {
            // Entries of negative numbers are left out.
            Err(_) => 0,
            Ok(descriptor) if os.files.get(descriptor).is_err() => event::NOT_OPEN,
            Ok(_) => wanted & event::READY,
        };
        *found = events.to_le_bytes();
        ready += u64::from(events != 0);
    }
    let writes = if entries.is_empty() { Vec::new() } else { vec![write(os, address, entries)?] };
    match timeout {
        _ if ready > 0 => Ok(done(writes, Then::Return(ready))),
        Some(0) if writes.is_empty() => Ok(value(0)),
        Some(0) => Ok(done(writes, Then::Return(0))),
        // Nothing will ever be ready: only time goes by.
        timeout => {
            let deadline = timeout.map(|ns| (call.now_ns.saturating_add(ns), 0));
            os.threads.wait(call.hart, None, 0, deadline);
            Ok(done(writes, Then::Wait))
        }
    }
}
