//! Calls that tell a program about itself and its machine: masks, limits, names, random bytes.

use super::reply::{Result, TRANSFER_MAX_BYTES, done, failed, value, write, write_words, write_words_if_any};
use crate::syscalls::call::{Call, CallStep, Data, Then, Write};
use crate::syscalls::number;
use crate::syscalls::state::Os;

const UNLIMITED: u64 = u64::MAX;
const RLIMIT_STACK: u64 = 3;
/// Bytes of a name of `uname`.
const NAME_BYTES: usize = 65;
/// `prctl`: names a thread.
const PR_SET_NAME: u64 = 15;
/// Rights that new files do not get.
const MASK: u64 = 0o022;

/// Performs one of these calls.
pub(super) fn told(os: &mut Os, call: &Call) -> Result<CallStep> {
    use number::*;
    let [a0, a1, a2, a3, ..] = call.args;
    let words =
        |os: &Os, address: u64, words: &[u64]| Ok(done(write_words_if_any(os, address, words)?, Then::Return(0)));
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
            (info[0], info[4], info[5], info[13]) = (call.now_ns / 1_000_000_000, memory, memory, 1);
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
        UMASK => Ok(value(MASK)),
        PRCTL if a0 == PR_SET_NAME => Ok(value(0)),
        PRCTL => Err(failed(error::EINVAL)),
        _ => {
            let length = a1.min(TRANSFER_MAX_BYTES);
            Ok(done(vec![random(os, a0, length)?], Then::Return(length)))
        }
    }
}

/// A store of random bytes, if it may be made: only then they are drawn from the sequence.
pub(super) fn random(os: &mut Os, address: u64, count: u64) -> Result<Write> {
    let mut write = write(os, address, vec![0; count as usize])?;
    if let Data::Bytes(bytes) = &mut write.data {
        os.random.fill(bytes);
    }
    Ok(write)
}
