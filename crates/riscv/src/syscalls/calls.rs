//! What each system call does.
//!
//! A call that Linux has and nobody here serves gives ENOSYS and is counted: an outcome names it. Silent is
//! ENOSYS only of calls that libraries try before an older one.

mod clock;
mod file;
mod memory;
mod poll;
mod reply;
mod signal;
mod stat;
mod sync;
mod told;

use super::call::{Call, CallStep, Then};
use super::state::Os;
use super::threads::FIRST_THREAD;
use reply::{Reader, Result, done, failed, missing, value, write};

/// Performs a call. An early end is the `Err`.
pub(super) fn perform(os: &mut Os, call: &Call, read: &[Vec<u8>]) -> Result<CallStep> {
    use super::number::*;
    let [a0, a1, a2, ..] = call.args;
    let reader = &mut Reader { read: read.iter() };
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
        GETPPID => value(1),
        SCHED_YIELD => {
            os.threads.yields(call.hart, call.now_ns);
            done(Vec::new(), Then::Yield(0))
        }
        FUTEX => sync::futex(os, call, reader)?,
        NANOSLEEP => sync::sleep(os, call, reader, a0, call.now_ns)?,
        CLOCK_NANOSLEEP => {
            let from = if a1 & 1 == 1 { clock::absolute(a0)? } else { call.now_ns };
            sync::sleep(os, call, reader, a2, from)?
        }
        CLONE => sync::clone(os, call)?,
        KILL | TKILL | TGKILL => signal::send(os, call),
        RT_SIGACTION => signal::action(os, call, reader)?,
        SIGALTSTACK => signal::stack(os, call, reader)?,
        PPOLL => poll::poll(os, call, reader)?,
        BRK => memory::brk(os, a0),
        MMAP => memory::map(os, call)?,
        MUNMAP => memory::unmap(os, a0, a1),
        MREMAP => memory::remap(os, a0, a1, a2),
        MPROTECT => memory::protect(os, a0, a1, a2),
        MINCORE => memory::resident(os, a0, a1, a2)?,
        MADVISE | SET_ROBUST_LIST | SCHED_SETAFFINITY => value(0),
        CLOCK_GETTIME | CLOCK_GETRES | GETTIMEOFDAY | GETRUSAGE | TIMES => clock::told(os, call)?,
        RT_SIGPROCMASK | PRLIMIT64 | SCHED_GETAFFINITY | GETCPU | UNAME | SYSINFO | GETRANDOM | PRCTL | UMASK => {
            told::told(os, call)?
        }
        GETUID | GETEUID | GETGID | GETEGID => value(1000),
        OPENAT | CLOSE | READ | READV | PREAD64 | WRITE | WRITEV | PWRITE64 | LSEEK | DUP | DUP3 | FCNTL
        | FTRUNCATE | FSYNC | FDATASYNC | SYNC | FADVISE64 | SENDFILE | GETDENTS64 | IOCTL => {
            file::of_descriptor(os, call, reader)?
        }
        FACCESSAT | FACCESSAT2 | UNLINKAT | MKDIRAT | RENAMEAT2 | READLINKAT | GETCWD | CHDIR | UTIMENSAT
        | FCHMODAT | FCHMOD => file::of_path(os, call, reader)?,
        NEWFSTATAT | FSTAT | STATX => stat::stat(os, call, reader)?,
        // What libraries try before an older call: its absence is expected.
        RSEQ | CLONE3 | RISCV_HWPROBE | OPENAT2 | COPY_FILE_RANGE | MEMBARRIER | MBIND | GET_MEMPOLICY
        | SET_MEMPOLICY => failed(error::ENOSYS),
        _ => missing(os, call.number),
    })
}
