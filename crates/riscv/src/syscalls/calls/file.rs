//! Calls on files: open, read, write, list, name and delete.

use super::reply::{Reader, Result, TRANSFER_MAX_BYTES, checked, done, failed, missing, value, write};
use super::told;
use crate::syscalls::call::{Call, CallStep, Then};
use crate::syscalls::files::{Open, clean};
use crate::syscalls::number::{self, error};
use crate::syscalls::state::Os;

/// The most buffers of one `readv` or `writev`, as in Linux.
const BUFFERS_MAX: u64 = 1024;

/// Commands of `fcntl`.
mod command {
    pub(super) const DUPLICATE: u64 = 0;
    pub(super) const GET_DESCRIPTOR_FLAGS: u64 = 1;
    pub(super) const SET_DESCRIPTOR_FLAGS: u64 = 2;
    pub(super) const GET_FLAGS: u64 = 3;
    pub(super) const SET_FLAGS: u64 = 4;
    pub(super) const GET_LOCK: u64 = 5;
    pub(super) const SET_LOCK: u64 = 6;
    pub(super) const WAIT_LOCK: u64 = 7;
    pub(super) const DUPLICATE_CLOSED_AT_EXEC: u64 = 1030;
}

/// `F_UNLCK`: nobody else has a lock.
const UNLOCKED: u16 = 2;
/// `AT_REMOVEDIR`.
const REMOVE_FOLDER: u64 = 0x200;
/// `RENAME_NOREPLACE`.
const NO_REPLACE: u64 = 1;

/// Calls on an open file, and `openat`.
pub(super) fn of_descriptor(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    use number::*;
    let [a0, a1, a2, a3, ..] = call.args;
    let thread = os.threads.number(call.hart);
    Ok(match call.number {
        OPENAT => {
            let path = reader.path(os, a1)?;
            checked(os.files.resolve(a0, path).and_then(|path| os.files.open(&path, a2)))
        }
        CLOSE => checked(os.files.close(a0)),
        READ | READV | PREAD64 => read_file(os, call, reader)?,
        WRITE | PWRITE64 => {
            let bytes = reader.bytes(os, a1, a2.min(TRANSFER_MAX_BYTES))?;
            let offset = (call.number == PWRITE64).then_some(a3);
            checked(os.files.write(thread, a0, offset, &bytes))
        }
        WRITEV => {
            let mut bytes = Vec::new();
            for at in 0..a2.min(BUFFERS_MAX) {
                let [address, length] = reader.words(os, a1.wrapping_add(16 * at))?;
                let room = TRANSFER_MAX_BYTES - bytes.len() as u64;
                bytes.extend(reader.bytes(os, address, length.min(room))?);
            }
            checked(os.files.write(thread, a0, None, &bytes))
        }
        LSEEK => checked(seek(os, a0, a1, a2)),
        DUP => checked(os.files.duplicate(a0, 0)),
        DUP3 => checked(os.files.duplicate_to(a0, a1)),
        FCNTL => control(os, call)?,
        FTRUNCATE => {
            let pm_bytes = os.process.windows.pm_bytes;
            checked(os.files.resize(a0, a1, pm_bytes))
        }
        // Memory is where files are.
        FSYNC | FDATASYNC | FADVISE64 => checked(os.files.get(a0).map(|_| 0)),
        SYNC => value(0),
        SENDFILE => checked(send(os, thread, [a0, a1], a2, a3)),
        GETDENTS64 => list(os, a0, a1, a2)?,
        _ => checked(os.files.get(a0).and(Err(error::ENOTTY))),
    })
}

/// Calls on what a path names.
pub(super) fn of_path(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    use number::*;
    let [a0, a1, a2, a3, a4, _] = call.args;
    let path = |os: &Os, reader: &mut Reader<'_>, folder: u64, address: u64| {
        let path = reader.path(os, address)?;
        if path.is_empty() { Err(failed(error::ENOENT)) } else { os.files.resolve(folder, path).map_err(failed) }
    };
    Ok(match call.number {
        // Of the open file itself.
        UTIMENSAT if a1 == 0 => checked(os.files.get(a0).map(|_| 0)),
        FCHMOD => checked(os.files.get(a0).map(|_| 0)),
        FACCESSAT | FACCESSAT2 | FCHMODAT | UTIMENSAT => {
            let path = path(os, reader, a0, a1)?;
            checked(os.files.exists(&path))
        }
        MKDIRAT => {
            let path = path(os, reader, a0, a1)?;
            checked(os.files.tree.make_folder(&path))
        }
        UNLINKAT => {
            let path = path(os, reader, a0, a1)?;
            checked(os.files.tree.remove(&path, a2 & REMOVE_FOLDER != 0))
        }
        RENAMEAT2 if a4 & !NO_REPLACE != 0 => failed(error::EINVAL),
        RENAMEAT2 => {
            let (from, to) = (path(os, reader, a0, a1)?, path(os, reader, a2, a3)?);
            checked(os.files.tree.rename(&from, &to, a4 & NO_REPLACE == 0))
        }
        READLINKAT => {
            let path = path(os, reader, a0, a1)?;
            // Libraries ask where the program lies, and insist on an absolute path.
            let target = if path == "/proc/self/exe" { format!("/{}", os.process.program) } else { String::new() };
            let target: Vec<u8> = target.bytes().take(usize::try_from(a3).unwrap_or(0)).collect();
            if target.is_empty() {
                checked(os.files.exists(&path).and(Err(error::EINVAL)))
            } else {
                let length = target.len() as u64;
                done(vec![write(os, a2, target)?], Then::Return(length))
            }
        }
        GETCWD if a1 < 2 => failed(error::EINVAL),
        GETCWD => done(vec![write(os, a0, b"/\0".to_vec())?], Then::Return(2)),
        // The working folder is always the first one.
        _ => {
            let path = reader.path(os, a0)?;
            if clean(&path).is_empty() { value(0) } else { missing(os, CHDIR) }
        }
    })
}

/// `read`, `readv` and `pread64`.
fn read_file(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    let [descriptor, address, count, at, ..] = call.args;
    let by_place = call.number == number::PREAD64;
    let open = os.files.read_from(descriptor).map_err(failed)?;
    let (file, offset) = match open.what {
        Open::File(file) => (Some(file), if by_place { at } else { open.offset }),
        Open::Random => (None, 0),
        Open::Stdin | Open::Null => return Ok(value(0)),
        _ => return Err(failed(error::EINVAL)),
    };
    let buffers = if call.number == number::READV {
        (0..count.min(BUFFERS_MAX)).map(|at| reader.words(os, address.wrapping_add(16 * at))).collect::<Result<_>>()?
    } else {
        vec![[address, count]]
    };
    let (mut writes, mut length) = (Vec::new(), 0);
    for [address, count] in buffers {
        let count = count.min(TRANSFER_MAX_BYTES - length);
        let Some(file) = file else {
            writes.push(told::random(os, address, count)?);
            length += count;
            continue;
        };
        let bytes = os.files.content(file, offset.saturating_add(length), count).to_vec();
        length += bytes.len() as u64;
        writes.push(write(os, address, bytes)?);
    }
    if !by_place && file.is_some() {
        os.files.seek(descriptor, offset + length);
    }
    Ok(done(writes, Then::Return(length)))
}

fn seek(os: &mut Os, descriptor: u64, offset: u64, whence: u64) -> std::result::Result<u64, u64> {
    let open = os.files.get(descriptor)?;
    let (from, end) = match open.what {
        Open::File(file) => (open.offset, os.files.tree.bytes(file)),
        Open::Folder(_) => (open.offset, 0),
        Open::Persistent => (0, os.process.windows.pm_bytes),
        Open::Null | Open::Random => return Ok(0),
        Open::Stdin | Open::Stdout | Open::Stderr => return Err(error::ESPIPE),
    };
    let base = *[0, from, end].get(whence as usize).ok_or(error::EINVAL)?;
    let to = base.wrapping_add(offset);
    if to > i64::MAX as u64 {
        return Err(error::EINVAL);
    }
    os.files.seek(descriptor, to);
    Ok(to)
}

/// `fcntl`. A process has no other that could hold a lock.
fn control(os: &mut Os, call: &Call) -> Result<CallStep> {
    let [descriptor, command, argument, ..] = call.args;
    let open = os.files.get(descriptor).map_err(failed)?;
    Ok(match command {
        command::DUPLICATE | command::DUPLICATE_CLOSED_AT_EXEC => checked(os.files.duplicate(descriptor, argument)),
        command::GET_FLAGS => value(open.flags),
        command::SET_FLAGS => checked(os.files.set_flags(descriptor, argument)),
        command::GET_LOCK => done(vec![write(os, argument, UNLOCKED.to_le_bytes().to_vec())?], Then::Return(0)),
        command::GET_DESCRIPTOR_FLAGS | command::SET_DESCRIPTOR_FLAGS | command::SET_LOCK | command::WAIT_LOCK => {
            value(0)
        }
        _ => failed(error::EINVAL),
    })
}

/// `sendfile` from where the other descriptor stands.
fn send(os: &mut Os, thread: u64, [to, from]: [u64; 2], place: u64, count: u64) -> std::result::Result<u64, u64> {
    let open = os.files.read_from(from)?;
    let (Open::File(file), 0) = (&open.what, place) else { return Err(error::EINVAL) };
    let offset = open.offset;
    let bytes = os.files.content(*file, offset, count.min(TRANSFER_MAX_BYTES)).to_vec();
    let sent = os.files.write(thread, to, None, &bytes)?;
    os.files.seek(from, offset + sent);
    Ok(sent)
}

/// `getdents64`: as many entries of a folder as have room.
fn list(os: &mut Os, descriptor: u64, address: u64, room: u64) -> Result<CallStep> {
    /// Kinds of entries.
    const FOLDER: u8 = 4;
    const REGULAR: u8 = 8;
    let entries = os.files.listed(descriptor).map_err(failed)?;
    let first = os.files.get(descriptor).map_err(failed)?.offset;
    let (mut bytes, mut listed) = (Vec::new(), first);
    for (name, is_folder) in &entries {
        // `struct linux_dirent64`: number, offset of the next one, length, kind, name.
        let length = (19 + name.len() + 1).next_multiple_of(8);
        if (bytes.len() + length) as u64 > room {
            break;
        }
        listed += 1;
        let end = bytes.len() + length;
        bytes.extend(listed.to_le_bytes());
        bytes.extend(listed.to_le_bytes());
        bytes.extend((length as u16).to_le_bytes());
        bytes.push(if *is_folder { FOLDER } else { REGULAR });
        bytes.extend(name.as_bytes());
        bytes.resize(end, 0);
    }
    if bytes.is_empty() {
        return if entries.is_empty() { Ok(value(0)) } else { Err(failed(error::EINVAL)) };
    }
    let length = bytes.len() as u64;
    let writes = vec![write(os, address, bytes)?];
    os.files.seek(descriptor, listed);
    Ok(done(writes, Then::Return(length)))
}
