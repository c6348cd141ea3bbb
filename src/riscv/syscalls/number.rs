//! Numbers and names of system calls (Linux's generic table, which RISC-V has), and of errors.

macro_rules! calls {
    ($($constant:ident $number:literal $name:literal)+) => {
        $(#[doc = concat!("`", $name, "`.")] pub const $constant: u64 = $number;)+
        const NAMES: &[(u64, &str)] = &[$(($number, $name)),+];
    };
}

calls! {
    IOCTL 29 "ioctl" FTRUNCATE 46 "ftruncate" FACCESSAT 48 "faccessat" OPENAT 56 "openat" CLOSE 57 "close"
    LSEEK 62 "lseek" READ 63 "read" WRITE 64 "write" READV 65 "readv" WRITEV 66 "writev" PREAD64 67 "pread64"
    READLINKAT 78 "readlinkat" NEWFSTATAT 79 "newfstatat" FSTAT 80 "fstat" EXIT 93 "exit"
    EXIT_GROUP 94 "exit_group" SET_TID_ADDRESS 96 "set_tid_address" FUTEX 98 "futex"
    SET_ROBUST_LIST 99 "set_robust_list" NANOSLEEP 101 "nanosleep" CLOCK_GETTIME 113 "clock_gettime" CLOCK_GETRES 114 "clock_getres"
    CLOCK_NANOSLEEP 115 "clock_nanosleep" SCHED_SETAFFINITY 122 "sched_setaffinity"
    SCHED_GETAFFINITY 123 "sched_getaffinity" SCHED_YIELD 124 "sched_yield" KILL 129 "kill" TKILL 130 "tkill"
    TGKILL 131 "tgkill" RT_SIGACTION 134 "rt_sigaction" RT_SIGPROCMASK 135 "rt_sigprocmask" UNAME 160 "uname"
    GETRUSAGE 165 "getrusage" GETCPU 168 "getcpu" GETTIMEOFDAY 169 "gettimeofday" GETPID 172 "getpid" GETUID 174 "getuid" GETEUID 175 "geteuid" GETGID 176 "getgid"
    GETEGID 177 "getegid" GETTID 178 "gettid" SYSINFO 179 "sysinfo" SOCKET 198 "socket" BRK 214 "brk" MUNMAP 215 "munmap"
    MREMAP 216 "mremap" CLONE 220 "clone" EXECVE 221 "execve" MMAP 222 "mmap" MPROTECT 226 "mprotect" MSYNC 227 "msync"
    MADVISE 233 "madvise" WAIT4 260 "wait4" PRLIMIT64 261 "prlimit64" GETRANDOM 278 "getrandom" STATX 291 "statx"
    RSEQ 293 "rseq" RISCV_HWPROBE 258 "riscv_hwprobe" CLONE3 435 "clone3"
}

/// The name of a call, for messages; none for those that programs rarely make.
pub fn name(number: u64) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Errors, as Linux numbers them.
pub(super) mod error {
    pub(in super::super) const ENOENT: u64 = 2;
    pub(in super::super) const ESRCH: u64 = 3;
    pub(in super::super) const EBADF: u64 = 9;
    pub(in super::super) const EAGAIN: u64 = 11;
    pub(in super::super) const ENOMEM: u64 = 12;
    pub(in super::super) const EACCES: u64 = 13;
    pub(in super::super) const EFAULT: u64 = 14;
    pub(in super::super) const EINVAL: u64 = 22;
    pub(in super::super) const ENOTTY: u64 = 25;
    pub(in super::super) const ENOSPC: u64 = 28;
    pub(in super::super) const ESPIPE: u64 = 29;
    pub(in super::super) const ENOSYS: u64 = 38;
    pub(in super::super) const ETIMEDOUT: u64 = 110;
}
