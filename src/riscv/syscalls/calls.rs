//! What each system call does.

mod memory;
mod reply;
mod sync;

use rand_pcg::rand_core::Rng;

use super::call::{Call, CallStep, Then};
use super::files::Open;
use super::number::{self, error};
use super::state::Os;
use super::threads::FIRST_THREAD;
use reply::{Reader, Result, done, failed, value, write, write_words};

/// The most bytes that one call reads or writes: what is beyond is left to the next call, as Linux allows.
const TRANSFER_MAX_BYTES: u64 = 1 << 20;
/// The most buffers of one `readv` or `writev`, as in Linux.
const BUFFERS_MAX: u64 = 1024;

/// Performs a call. An early end is the `Err`.
pub(super) fn perform(os: &mut Os, call: &Call, read: &[Vec<u8>]) -> Result<CallStep> {
    use number::*;
    let [a0, a1, a2, a3, ..] = call.args;
    let reader = &mut Reader { read: read.iter() };
    let checked = |result: std::result::Result<u64, u64>| result.map_or_else(failed, value);
    Ok(match call.number {
        EXIT => {
            os.threads.ending(call.hart, a0 as i32);
            let writes = os.threads.clear(call.hart).map(|address| write(os, address, vec![0; 4]));
            // A word that cannot be cleared is left as it is.
            done(writes.into_iter().flatten().collect(), Then::End)
        }
        EXIT_GROUP => done(Vec::new(), Then::Exit(a0 as i32)),
        SET_TID_ADDRESS => {
            os.threads.set_clear(call.hart, a0);
            value(os.threads.number(call.hart))
        }
        GETTID => value(os.threads.number(call.hart)),
        GETPID => value(FIRST_THREAD),
        SCHED_YIELD => done(Vec::new(), Then::Yield(0)),
        FUTEX => sync::futex(os, call, reader)?,
        NANOSLEEP => sync::sleep(os, call, reader, a0, false)?,
        CLOCK_NANOSLEEP => sync::sleep(os, call, reader, a2, a1 & 1 == 1)?,
        CLONE => sync::clone(os, call)?,
        KILL | TKILL | TGKILL => {
            let (thread, signal) = if call.number == TGKILL { (a1, a2) } else { (a0, a1) };
            match signal {
                _ if !os.threads.is_alive(thread) && thread != FIRST_THREAD => failed(error::ESRCH),
                0 => value(0),
                _ => done(Vec::new(), Then::Signal(signal as u32)),
            }
        }
        BRK => memory::brk(os, a0),
        MMAP => memory::map(os, call)?,
        MUNMAP => memory::unmap(os, a0, a1),
        MREMAP => memory::remap(os, a0, a1, a2),
        MPROTECT => memory::protect(os, a0, a1, a2),
        MADVISE | SET_ROBUST_LIST | RT_SIGACTION | SCHED_SETAFFINITY => value(0),
        RT_SIGPROCMASK | PRLIMIT64 | SCHED_GETAFFINITY | CLOCK_GETTIME | CLOCK_GETRES | GETTIMEOFDAY | GETRUSAGE
        | GETCPU | UNAME | SYSINFO | GETRANDOM => told(os, call)?,
        GETUID | GETEUID | GETGID | GETEGID => value(1000),
        OPENAT => {
            let path = reader.path(os, a1)?;
            checked(os.files.open(&path))
        }
        FACCESSAT => {
            let path = reader.path(os, a1)?;
            checked(if os.files.exists(&path) { Ok(0) } else { Err(error::ENOENT) })
        }
        CLOSE => checked(os.files.close(a0)),
        READ | READV | PREAD64 => read_file(os, call, reader)?,
        WRITE => written(os, call, reader.bytes(os, a1, a2.min(TRANSFER_MAX_BYTES))?),
        WRITEV => {
            let mut bytes = Vec::new();
            for at in 0..a2.min(BUFFERS_MAX) {
                let [address, length] = reader.words(os, a1.wrapping_add(16 * at))?;
                let room = TRANSFER_MAX_BYTES - bytes.len() as u64;
                bytes.extend(reader.bytes(os, address, length.min(room))?);
            }
            written(os, call, bytes)
        }
        LSEEK => checked(seek(os, a0, a1, a2)),
        READLINKAT => {
            let path = reader.path(os, a1)?;
            // Libraries ask where the program lies, and insist on an absolute path.
            let target = if path == "/proc/self/exe" { format!("/{}", os.process.program) } else { String::new() };
            let target: Vec<u8> = target.bytes().take(usize::try_from(a3).unwrap_or(0)).collect();
            if target.is_empty() {
                failed(error::ENOENT)
            } else {
                let length = target.len() as u64;
                done(vec![write(os, a2, target)?], Then::Return(length))
            }
        }
        NEWFSTATAT => {
            let path = reader.path(os, a1)?;
            if path.is_empty() { stat(os, a0, a2)? } else { failed(error::ENOENT) }
        }
        FSTAT => stat(os, a0, a1)?,
        FTRUNCATE => checked(match os.files.get(a0) {
            Ok(Open::Persistent) if a1 <= os.process.windows.pm_bytes => Ok(0),
            Ok(_) => Err(error::EINVAL),
            Err(error) => Err(error),
        }),
        IOCTL => checked(os.files.get(a0).and(Err(error::ENOTTY))),
        // What libraries try before an older call: its absence is expected.
        RSEQ | CLONE3 | RISCV_HWPROBE | STATX => failed(error::ENOSYS),
        _ => {
            *os.unsupported.entry(call.number).or_default() += 1;
            failed(error::ENOSYS)
        }
    })
}

/// Calls that write what they are asked for: masks, limits, clocks, names, random bytes.
fn told(os: &mut Os, call: &Call) -> Result<CallStep> {
    use number::*;
    const UNLIMITED: u64 = u64::MAX;
    const RLIMIT_STACK: u64 = 3;
    const NAME_BYTES: usize = 65;
    let [a0, a1, a2, a3, ..] = call.args;
    let (seconds, rest) = (call.now_ns / 1_000_000_000, call.now_ns % 1_000_000_000);
    // Without a place to write to, nothing is written.
    let words = |os: &Os, address: u64, words: &[u64]| match address {
        0 => Ok(value(0)),
        _ => Ok(done(vec![write_words(os, address, words)?], Then::Return(0))),
    };
    match call.number {
        RT_SIGPROCMASK => words(os, a2, &[0]),
        PRLIMIT64 => {
            let limit = if a1 == RLIMIT_STACK { os.process.stack_bytes } else { UNLIMITED };
            words(os, a3, &[limit, limit])
        }
        SCHED_GETAFFINITY => {
            let harts = os.threads.harts();
            let mask: Vec<u64> = (0..harts.div_ceil(64)).map(|i| u64::MAX >> (64 - (harts - 64 * i).min(64))).collect();
            let bytes = 8 * mask.len() as u64;
            if a1 < bytes {
                return Err(failed(error::EINVAL));
            }
            Ok(done(vec![write_words(os, a2, &mask)?], Then::Return(bytes)))
        }
        CLOCK_GETTIME => words(os, a1, &[seconds, rest]),
        CLOCK_GETRES => words(os, a1, &[0, 1]),
        GETTIMEOFDAY => words(os, a0, &[seconds, rest / 1000]),
        GETRUSAGE => {
            // `struct rusage`: user time, system time, 14 counts. All time is user time.
            let mut usage = [0; 18];
            (usage[0], usage[1]) = (seconds, rest / 1000);
            words(os, a1, &usage)
        }
        GETCPU => {
            let places = [(a0, call.hart), (a1, 0)].into_iter().filter(|(address, _)| *address != 0);
            let writes = places.map(|(address, value)| write(os, address, value.to_le_bytes().to_vec()));
            Ok(done(writes.collect::<Result<_>>()?, Then::Return(0)))
        }
        SYSINFO => {
            let memory = os.process.windows.memory_bytes;
            // `struct sysinfo`: uptime, three loads, total and free memory, ...; at byte 104 the unit of
            // memory.
            let mut info = [0; 14];
            (info[0], info[4], info[5], info[13]) = (seconds, memory, memory, 1);
            words(os, a0, &info)
        }
        UNAME => {
            let fields = ["Linux", "durawarp", "6.1.0", "#1", "riscv64", ""];
            let mut bytes = vec![0; fields.len() * NAME_BYTES];
            for (at, field) in fields.iter().enumerate() {
                bytes[at * NAME_BYTES..][..field.len()].copy_from_slice(field.as_bytes());
            }
            Ok(done(vec![write(os, a0, bytes)?], Then::Return(0)))
        }
        _ => {
            let mut bytes = vec![0; a1.min(TRANSFER_MAX_BYTES) as usize];
            // Only a call that goes through draws from the sequence.
            write(os, a0, bytes.clone())?;
            os.random.fill_bytes(&mut bytes);
            let length = bytes.len() as u64;
            Ok(done(vec![write(os, a0, bytes)?], Then::Return(length)))
        }
    }
}

/// `read`, `readv` and `pread64`.
fn read_file(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    let [descriptor, address, count, at, ..] = call.args;
    let (file, offset) = match os.files.get(descriptor).map_err(failed)? {
        Open::File(file, offset) => (*file, if call.number == number::PREAD64 { at } else { *offset }),
        Open::Stdin => return Ok(value(0)),
        _ => return Err(failed(error::EINVAL)),
    };
    let buffers = if call.number == number::READV {
        (0..count.min(BUFFERS_MAX)).map(|at| reader.words(os, address.wrapping_add(16 * at))).collect::<Result<_>>()?
    } else {
        vec![[address, count]]
    };
    let (mut writes, mut length) = (Vec::new(), 0);
    for [address, count] in buffers {
        let room = TRANSFER_MAX_BYTES - length;
        let bytes = os.files.content(file, offset.saturating_add(length), count.min(room)).to_vec();
        length += bytes.len() as u64;
        writes.push(write(os, address, bytes)?);
    }
    if call.number != number::PREAD64 {
        os.files.seek(descriptor, offset + length);
    }
    Ok(done(writes, Then::Return(length)))
}

/// Keeps what was written to standard output or standard error.
fn written(os: &mut Os, call: &Call, bytes: Vec<u8>) -> CallStep {
    let thread = os.threads.number(call.hart);
    match os.files.get(call.args[0]) {
        Ok(Open::Stdout) => os.files.output.write(thread, false, &bytes),
        Ok(Open::Stderr) => os.files.output.write(thread, true, &bytes),
        Ok(_) => return failed(error::EINVAL),
        Err(error) => return failed(error),
    }
    value(bytes.len() as u64)
}

fn seek(os: &mut Os, descriptor: u64, offset: u64, whence: u64) -> std::result::Result<u64, u64> {
    let (from, end) = match os.files.get(descriptor)? {
        Open::File(file, offset) => (*offset, os.files.bytes(*file)),
        Open::Persistent => (0, os.process.windows.pm_bytes),
        _ => return Err(error::ESPIPE),
    };
    let base = *[0, from, end].get(whence as usize).ok_or(error::EINVAL)?;
    let to = base.wrapping_add(offset);
    if to > i64::MAX as u64 {
        return Err(error::EINVAL);
    }
    os.files.seek(descriptor, to);
    Ok(to)
}

/// `fstat`: streams are pipes, so that libraries buffer what they write.
fn stat(os: &Os, descriptor: u64, address: u64) -> Result<CallStep> {
    const PIPE: u32 = 0o010_600;
    const REGULAR: u32 = 0o100_600;
    let (mode, bytes) = match os.files.get(descriptor).map_err(failed)? {
        Open::File(file, _) => (REGULAR, os.files.bytes(*file)),
        Open::Persistent => (REGULAR, os.process.windows.pm_bytes),
        _ => (PIPE, 0),
    };
    // `struct stat` of the generic ABI: 128 bytes.
    let mut stat = [0; 128];
    stat[8..16].copy_from_slice(&(descriptor + 1).to_le_bytes());
    stat[16..20].copy_from_slice(&mode.to_le_bytes());
    stat[20..24].copy_from_slice(&1u32.to_le_bytes());
    stat[48..56].copy_from_slice(&bytes.to_le_bytes());
    stat[56..60].copy_from_slice(&4096u32.to_le_bytes());
    stat[64..72].copy_from_slice(&bytes.div_ceil(512).to_le_bytes());
    Ok(done(vec![write(os, address, stat.to_vec())?], Then::Return(0)))
}
