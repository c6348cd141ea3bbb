//! System calls by themselves: numbers, bytes that they read, stores that they ask for.

use std::sync::Arc;

use durawarp::riscv::memory::PM_START;
use durawarp::riscv::syscalls::{Call, CallStep, Data, File, Os, Reply, Then, WaitingThread, Wake, Write, number};

use proptest::prelude::*;

use crate::common::{CODE, DATA, WINDOWS, program};

/// A process with a hart more than it has threads, one file, and memory of zeros but for some places.
struct Calls {
    os: Os,
    memory: Vec<(u64, Vec<u8>)>,
    now_ns: u64,
}

impl Calls {
    fn new() -> Calls {
        let file = File { path: "data.txt".to_owned(), content: Arc::new(b"0123456789".to_vec()) };
        Calls { os: Os::new(&program(&[0x13]), 2, vec![file]), memory: Vec::new(), now_ns: 0 }
    }

    /// Puts words in memory.
    fn put(&mut self, address: u64, words: &[u64]) {
        self.memory.push((address, words.iter().flat_map(|word| word.to_le_bytes()).collect()));
    }

    /// Puts a text with its end in memory. Its address.
    fn text(&mut self, address: u64, text: &str) -> u64 {
        self.memory.push((address, text.bytes().chain([0]).collect()));
        address
    }

    fn word(&self, address: u64) -> u64 {
        u64::from_le_bytes(self.bytes(address, 8).try_into().unwrap())
    }

    /// Opens a path with flags.
    fn open(&mut self, path: &str, flags: u64) -> i64 {
        let at = self.text(PATH, path);
        self.result(number::OPENAT, &[AT_FDCWD, at, flags, 0o644])
    }

    /// Files that were written: path and text.
    fn written(&self) -> Vec<(String, String)> {
        let text = |file: File| (file.path, String::from_utf8_lossy(&file.content).into_owned());
        self.os.written_files().map(text).collect()
    }

    /// Bytes of memory: at each address what was put there last.
    fn bytes(&self, address: u64, bytes: u64) -> Vec<u8> {
        let at = |address: u64| {
            let held = self.memory.iter().rev().find(|(start, held)| address.wrapping_sub(*start) < held.len() as u64);
            held.map_or(0, |(start, held)| held[(address - start) as usize])
        };
        (address..address + bytes).map(at).collect()
    }

    fn reply(&mut self, hart: u32, number: u64, args: &[u64]) -> Reply {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        let call = Call { hart, number, args: all, now_ns: self.now_ns };
        let mut read = Vec::new();
        loop {
            match self.os.perform(&call, &read) {
                CallStep::Read { address, bytes } => read.push(self.bytes(address, bytes)),
                CallStep::Done(reply) => {
                    for write in &reply.writes {
                        if let Data::Bytes(bytes) = &write.data {
                            self.memory.push((write.address, bytes.clone()));
                        }
                    }
                    return reply;
                }
            }
        }
    }

    /// The result of a call of hart 0, an error as its negative number.
    fn result(&mut self, number: u64, args: &[u64]) -> i64 {
        match self.reply(0, number, args).then {
            Then::Return(value) => value as i64,
            then => panic!("{then:?}"),
        }
    }
}

/// Where tests put a path.
const PATH: u64 = DATA + 3072;

/// Flags of `openat`.
const WRITE_ONLY: u64 = 1;
const READ_WRITE: u64 = 2;
const CREATE: u64 = 0o100;
const TRUNCATE: u64 = 0o1000;
const APPEND: u64 = 0o2000;

const ENOENT: i64 = -2;
const EINVAL: i64 = -22;
const EBADF: i64 = -9;
const EAGAIN: i64 = -11;
const ENOMEM: i64 = -12;
const EACCES: i64 = -13;
const EFAULT: i64 = -14;
const ENOSYS: i64 = -38;
const AT_FDCWD: u64 = -100i64 as u64;

#[test]
fn standard_input_reads_a_file_and_is_at_its_end_without_one() {
    let mut calls = Calls::new();
    assert_eq!(calls.result(number::READ, &[0, DATA, 4]), 0);
    let file = File { path: "data.txt".to_owned(), content: Arc::new(b"0123456789".to_vec()) };
    let mut process = program(&[0x13]);
    process.start.stdin = Some("data.txt".to_owned());
    calls.os = Os::new(&process, 2, vec![file]);
    assert_eq!([6, 6, 6].map(|bytes| calls.result(number::READ, &[0, DATA, bytes])), [6, 4, 0]);
    assert_eq!(calls.bytes(DATA, 4), b"6789");
    // It is a file: it can be read again, and not be written.
    assert_eq!(calls.result(number::LSEEK, &[0, 2, 0]), 2);
    assert_eq!(calls.result(number::READ, &[0, DATA, 1]), 1);
    assert_eq!(calls.bytes(DATA, 1), b"2");
    assert_eq!(calls.result(number::WRITE, &[0, DATA, 1]), EBADF);
}

#[test]
fn a_call_that_is_not_modelled_fails_and_is_counted() {
    let mut calls = Calls::new();
    assert_eq!([198, 9999, 198].map(|number| calls.result(number, &[])), [ENOSYS; 3]);
    // What libraries only try is not named.
    assert_eq!(calls.result(number::RSEQ, &[]), ENOSYS);
    assert_eq!(calls.os.unsupported().collect::<Vec<_>>(), [(198, 2), (9999, 1)]);
    assert_eq!((number::name(198), number::name(9999)), (Some("socket"), None));
    assert_eq!(
        (number::described(21), number::described(9999)),
        ("`epoll_ctl` (21)".to_owned(), "number 9999".to_owned())
    );
}

#[test]
fn text_is_kept_by_stream() {
    let mut calls = Calls::new();
    calls.memory.push((DATA, b"out err".to_vec()));
    assert_eq!(calls.result(number::WRITE, &[1, DATA, 4]), 4);
    // Two buffers: "err", "out".
    let buffers: Vec<u8> = [DATA + 4, 3, DATA, 3].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    calls.memory.push((DATA + 64, buffers));
    assert_eq!(calls.result(number::WRITEV, &[2, DATA + 64, 2]), 6);
    assert_eq!(calls.os.output(), (&b"out "[..], &b"errout"[..]));
    assert_eq!(calls.result(number::WRITE, &[7, DATA, 4]), EBADF);
    assert_eq!(calls.result(number::WRITE, &[1, WINDOWS.memory_bytes - 2, 4]), EFAULT);
}

#[test]
fn given_files_are_read_and_others_do_not_exist() {
    let mut calls = Calls::new();
    calls.memory.push((DATA, b"data.txt\0other\0".to_vec()));
    assert_eq!(calls.result(number::OPENAT, &[AT_FDCWD, DATA + 9]), -2);
    assert_eq!(calls.result(number::OPENAT, &[AT_FDCWD, DATA]), 3);
    assert_eq!([4, 4, 4].map(|count| calls.result(number::READ, &[3, DATA + 64, count])), [4, 4, 2]);
    assert_eq!(calls.bytes(DATA + 64, 4), b"8967");
    assert_eq!(calls.result(number::LSEEK, &[3, -3i64 as u64, 2]), 7);
    assert_eq!(calls.result(number::READ, &[3, CODE, 1]), EFAULT);
    assert_eq!(calls.result(number::WRITE, &[3, DATA, 1]), EBADF);
    // Two buffers of two bytes, of which the second is filled by half: "78", "9".
    let buffers: Vec<u8> = [DATA + 64, 2, DATA + 80, 2].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    calls.memory.push((DATA + 128, buffers));
    assert_eq!([3, 0].map(|count| calls.result(number::READV, &[3, DATA + 128, 2]) - count), [0, 0]);
    assert_eq!((calls.bytes(DATA + 64, 3), calls.bytes(DATA + 80, 2)), (b"786".to_vec(), b"9\0".to_vec()));
    assert_eq!((calls.result(number::CLOSE, &[3]), calls.result(number::READ, &[3, DATA, 1])), (0, EBADF));
}

#[test]
fn what_a_program_writes_is_read_back_and_is_part_of_the_state() {
    let mut calls = Calls::new();
    assert_eq!((calls.open("out.txt", 0), calls.open("no/out.txt", CREATE | WRITE_ONLY)), (ENOENT, ENOENT));
    assert_eq!(calls.open("./out.txt", CREATE | READ_WRITE), 3);
    calls.memory.push((DATA, b"hello, world".to_vec()));
    assert_eq!(calls.result(number::WRITE, &[3, DATA, 12]), 12);
    // In the middle, without moving: "hello, World".
    calls.memory.push((DATA + 64, b"W".to_vec()));
    assert_eq!(calls.result(number::PWRITE64, &[3, DATA + 64, 1, 7]), 1);
    assert_eq!((calls.result(number::LSEEK, &[3, 0, 1]), calls.result(number::LSEEK, &[3, 4, 0])), (12, 4));
    assert_eq!(
        (calls.result(number::READ, &[3, DATA + 128, 64]), calls.bytes(DATA + 128, 8)),
        (8, b"o, World".to_vec())
    );
    // Another descriptor of the same file has a place of its own; a duplicate has the same.
    assert_eq!((calls.open("/out.txt", APPEND | WRITE_ONLY), calls.result(number::DUP, &[3])), (4, 5));
    assert_eq!((calls.result(number::WRITE, &[4, DATA, 2]), calls.result(number::LSEEK, &[5, 0, 1])), (2, 12));
    assert_eq!(calls.result(number::READ, &[4, DATA, 1]), EBADF);
    assert_eq!(calls.written(), [("out.txt".to_owned(), "hello, Worldhe".to_owned())]);
    assert_eq!((calls.result(number::FTRUNCATE, &[3, 5]), calls.written()[0].1.as_str()), (0, "hello"));
    assert_eq!((calls.open("out.txt", TRUNCATE | WRITE_ONLY), calls.written()[0].1.as_str()), (6, ""));
    // A given file that is changed is one that was written; the user's is as it was.
    assert_eq!((calls.open("data.txt", READ_WRITE), calls.result(number::WRITE, &[7, DATA, 1])), (7, 1));
    assert_eq!(calls.written()[0], ("data.txt".to_owned(), "h123456789".to_owned()));
}

#[test]
fn files_are_named_listed_and_deleted() {
    let mut calls = Calls::new();
    let path = calls.text(PATH + 512, "d");
    let (a, b) = (calls.text(PATH + 64, "d/a"), calls.text(PATH + 128, "/tmp/b"));
    assert_eq!(calls.result(number::MKDIRAT, &[AT_FDCWD, path, 0o755]), 0);
    assert_eq!(calls.open("d/a", CREATE | WRITE_ONLY), 3);
    assert_eq!(calls.result(number::NEWFSTATAT, &[AT_FDCWD, a, DATA, 0]), 0);
    assert_eq!((calls.bytes(DATA + 16, 4), calls.word(DATA + 48)), (0o100_644u32.to_le_bytes().to_vec(), 0));
    assert_eq!(calls.result(number::STATX, &[AT_FDCWD, path, 0, 0xfff, DATA]), 0);
    assert_eq!(calls.bytes(DATA + 28, 2), 0o040_755u16.to_le_bytes());
    // "." ".." "a", each of 24 bytes; two have room at first.
    let path = calls.open("d", 0o200_000) as u64;
    let list = |calls: &mut Calls, room| calls.result(number::GETDENTS64, &[path, DATA, room]);
    assert_eq!((list(&mut calls, 10), list(&mut calls, 71), list(&mut calls, 71)), (EINVAL, 48, 24));
    assert_eq!((calls.bytes(DATA + 18, 3), list(&mut calls, 71)), (b"\x08a\0".to_vec(), 0));
    // Seen from the folder.
    let name = calls.text(PATH + 256, "a");
    assert_eq!(calls.result(number::FACCESSAT, &[path, name, 0]), 0);
    assert_eq!(calls.result(number::RENAMEAT2, &[AT_FDCWD, a, AT_FDCWD, b, 0]), 0);
    assert_eq!((calls.written()[0].0.as_str(), calls.result(number::FACCESSAT, &[AT_FDCWD, a, 0])), ("/tmp/b", ENOENT));
    assert_eq!(calls.result(number::UNLINKAT, &[AT_FDCWD, b, 0]), 0);
    assert_eq!(calls.written(), []);
}

#[test]
fn clocks_of_the_date_begin_at_one_and_waits_until_a_date_end_then() {
    const BEGIN: u64 = 1_735_689_600;
    let mut calls = Calls::new();
    calls.now_ns = 2_000_000_300;
    let [date, monotonic] = [0, 1].map(|clock| {
        assert_eq!(calls.result(number::CLOCK_GETTIME, &[clock, DATA]), 0);
        (calls.word(DATA), calls.word(DATA + 8))
    });
    assert_eq!((date, monotonic), ((BEGIN + 2, 300), (2, 300)));
    assert_eq!(calls.result(number::GETTIMEOFDAY, &[DATA, 0]), 0);
    assert_eq!((calls.word(DATA), calls.result(number::CLOCK_GETTIME, &[77, DATA])), (BEGIN + 2, EINVAL));
    // Until 500 ns after the clock's instant: a futex by the date (256), and a sleep.
    calls.put(DATA + 64, &[BEGIN + 2, 500]);
    calls.reply(0, number::CLONE, &[0x3d_0f00, DATA + 1024, DATA + 512, 0, 0]);
    assert_eq!(calls.reply(0, number::FUTEX, &[DATA + 128, 9 | 256, 0, DATA + 64, 0, 1]).then, Then::Wait);
    assert_eq!(calls.reply(1, number::CLOCK_NANOSLEEP, &[0, 1, DATA + 64, 0]).then, Then::Wait);
    assert_eq!((calls.os.expired(2_000_000_499), calls.os.expired(2_000_000_500).len()), (vec![], 2));
    // A date that is over.
    calls.put(DATA + 64, &[BEGIN - 1, 0]);
    assert_eq!(calls.result(number::CLOCK_NANOSLEEP, &[0, 1, DATA + 64, 0]), 0);
}

#[test]
fn the_start_of_a_rust_program_is_served() {
    let mut calls = Calls::new();
    // Are the standard streams open? One that is not is told.
    let entry = |descriptor: u64, events: u64| descriptor & 0xffff_ffff | events << 32;
    calls.put(DATA, &[entry(0, 0), entry(1, 4), entry(9, 1), entry(u64::MAX, 1)]);
    calls.put(DATA + 64, &[0, 0]);
    assert_eq!(calls.result(number::PPOLL, &[DATA, 4, DATA + 64, 0]), 2);
    let found = [0, 1, 2, 3].map(|at| calls.word(DATA + 8 * at) >> 48);
    assert_eq!(found, [0, 4, 0x20, 0]);
    assert_eq!(calls.result(number::PPOLL, &[DATA, 1, DATA + 64, 0]), 0);
    // SIGPIPE is ignored, and told so.
    calls.put(DATA, &[1, 7, 0]);
    assert_eq!(calls.result(number::RT_SIGACTION, &[13, DATA, 0, 8]), 0);
    assert_eq!(calls.result(number::RT_SIGACTION, &[13, 0, DATA + 64, 8]), 0);
    assert_eq!([64, 72].map(|at| calls.word(DATA + at)), [1, 7]);
    assert_eq!((calls.result(number::TKILL, &[100, 13]), calls.result(number::TKILL, &[100, 23])), (0, 0));
    assert_eq!(calls.reply(0, number::TKILL, &[100, 6]).then, Then::Signal(6));
    // No stack for signals; then one.
    assert_eq!((calls.result(number::SIGALTSTACK, &[0, DATA]), calls.word(DATA + 8)), (0, 2));
    calls.put(DATA, &[0x5000, 0, 8192]);
    assert_eq!(calls.result(number::SIGALTSTACK, &[DATA, 0]), 0);
    assert_eq!((calls.result(number::SIGALTSTACK, &[0, DATA + 64]), calls.word(DATA + 64)), (0, 0x5000));
    assert_eq!(calls.result(number::MINCORE, &[0x1000, 4097, DATA]), 0);
    assert_eq!(calls.bytes(DATA, 3), [1, 1, 0]);
    assert_eq!((calls.result(number::MINCORE, &[0x1001, 1, DATA]), calls.os.unsupported().count()), (EINVAL, 0));
}

#[test]
fn a_poll_of_nothing_ends_at_its_time() {
    let mut calls = Calls::new();
    calls.put(DATA + 64, &[0, 700]);
    assert_eq!(calls.reply(0, number::PPOLL, &[0, 0, DATA + 64, 0]).then, Then::Wait);
    assert_eq!((calls.os.expired(699), calls.os.expired(700)), (vec![], vec![Wake { hart: 0, result: 0 }]));
}

#[test]
fn clocks_resources_and_the_hart_are_told() {
    let mut calls = Calls::new();
    calls.now_ns = 3_000_007_000;
    let word = |calls: &Calls, at: u64| u64::from_le_bytes(calls.bytes(DATA + 8 * at, 8).try_into().unwrap());
    assert_eq!(calls.result(number::CLOCK_GETRES, &[1, DATA]), 0);
    assert_eq!([0, 1].map(|at| word(&calls, at)), [0, 1]);
    assert_eq!(calls.result(number::GETRUSAGE, &[0, DATA]), 0);
    assert_eq!([0, 1, 2, 17].map(|at| word(&calls, at)), [3, 7, 0, 0]);
    calls.memory.push((DATA, vec![0xff; 16]));
    assert_eq!(calls.reply(1, number::GETCPU, &[DATA, DATA + 8, 0]).then, Then::Return(0));
    assert_eq!([0, 1].map(|at| word(&calls, at)), [0xffff_ffff_0000_0001, 0xffff_ffff_0000_0000]);
    assert_eq!((calls.result(number::GETCPU, &[0, 0]), calls.result(number::GETCPU, &[8, 0])), (0, EFAULT));
}

#[test]
fn persistent_memory_is_one_file_that_is_mapped() {
    let mut calls = Calls::new();
    calls.memory.push((DATA, b"/pm/pool\0/pm/other\0".to_vec()));
    let map = |calls: &mut Calls, bytes, offset| calls.result(number::MMAP, &[0, bytes, 3, 1, 3, offset]);
    assert_eq!(calls.result(number::OPENAT, &[AT_FDCWD, DATA]), 3);
    assert_eq!(map(&mut calls, 8192, 4096), (PM_START + 4096) as i64);
    assert_eq!(map(&mut calls, WINDOWS.pm_bytes, 4096), ENOMEM);
    assert_eq!(calls.result(number::MUNMAP, &[PM_START + 4096, 8192]), 0);
    assert_eq!(calls.result(number::OPENAT, &[AT_FDCWD, DATA + 9]), -28);
}

#[test]
fn memory_is_mapped_zeroed_and_never_executable() {
    let mut calls = Calls::new();
    let anonymous =
        |calls: &mut Calls, bytes, protection| calls.result(number::MMAP, &[0, bytes, protection, 0x22, u64::MAX, 0]);
    let first = anonymous(&mut calls, 8192, 3);
    assert!(first > DATA as i64 && first < WINDOWS.memory_bytes as i64);
    assert_eq!((anonymous(&mut calls, 1 << 40, 3), anonymous(&mut calls, 4096, 7)), (ENOMEM, EACCES));
    assert_eq!(calls.result(number::MPROTECT, &[first as u64, 4096, 5]), EACCES);
    assert_eq!(calls.result(number::MUNMAP, &[first as u64, 8192]), 0);
    // All that is left, the used pages among it.
    let end = calls.result(number::BRK, &[0]);
    let rest = (first + 8192 - end) as u64;
    let reply = calls.reply(0, number::MMAP, &[0, rest, 3, 0x22, u64::MAX, 0]);
    assert_eq!(reply.then, Then::Return(end as u64));
    assert_eq!(reply.writes, [Write { address: first as u64, data: Data::Zeros(8192) }]);
}

#[test]
fn a_futex_waits_only_if_its_word_is_as_expected() {
    let mut calls = Calls::new();
    calls.memory.push((DATA, 5u32.to_le_bytes().to_vec()));
    // Private, as libraries ask: 128.
    assert_eq!(calls.result(number::FUTEX, &[DATA, 128, 4, 0]), EAGAIN);
    assert_eq!(calls.reply(0, number::FUTEX, &[DATA, 128, 5, 0]).then, Then::Wait);
    assert_eq!(calls.os.waiting(), [WaitingThread { thread: 100, hart: Some(0), futex: Some(DATA) }]);
    let woken = calls.reply(1, number::FUTEX, &[DATA, 129, 7]);
    assert_eq!((woken.then, woken.wakes), (Then::Return(1), vec![Wake { hart: 0, result: 0 }]));
    assert_eq!(calls.result(number::FUTEX, &[DATA + 2, 1, 1]), -22);
}

#[test]
fn waiting_and_sleeping_end_at_their_deadline() {
    let mut calls = Calls::new();
    calls.now_ns = 1000;
    // 500 ns.
    calls.memory.push((DATA + 64, [0, 500u64].iter().flat_map(|word| word.to_le_bytes()).collect()));
    calls.reply(0, number::CLONE, &[0x3d_0f00, DATA + 1024, DATA + 512, 0, 0]);
    assert_eq!(calls.reply(0, number::FUTEX, &[DATA, 0, 0, DATA + 64]).then, Then::Wait);
    assert_eq!(calls.reply(1, number::NANOSLEEP, &[DATA + 64, 0]).then, Then::Wait);
    assert_eq!((calls.os.next_deadline(), calls.os.expired(1499)), (Some(1500), vec![]));
    let timed_out = -110i64 as u64;
    assert_eq!(calls.os.expired(1500), [Wake { hart: 0, result: timed_out }, Wake { hart: 1, result: 0 }]);
    assert_eq!(calls.result(number::CLOCK_GETTIME, &[1, DATA]), 0);
    assert_eq!(calls.bytes(DATA, 16)[8..10], 1000u16.to_le_bytes());
}

#[test]
fn a_thread_begins_on_a_free_hart_and_clears_its_word_when_it_ends() {
    let mut calls = Calls::new();
    const FLAGS: u64 = 0x3d_0f00;
    let started = calls.reply(0, number::CLONE, &[FLAGS, DATA + 1024, DATA, 77, DATA]);
    let begins = Then::Spawn { hart: Some(1), stack: DATA + 1024, thread: Some(77), result: 101, clear: Some(DATA) };
    assert_eq!(started.then, begins);
    assert_eq!(calls.bytes(DATA, 4), 101u32.to_le_bytes());
    assert_eq!(calls.reply(0, number::CLONE, &[FLAGS, DATA + 1024, DATA, 77, DATA]).then, Then::NoFreeHart);
    assert_eq!(calls.reply(0, number::FUTEX, &[DATA, 0, 101, 0]).then, Then::Wait);
    let ended = calls.reply(1, number::EXIT, &[0]);
    assert_eq!((ended.then, calls.bytes(DATA, 4)), (Then::End, vec![0; 4]));
    assert_eq!(calls.os.ended(1), Ok(vec![Wake { hart: 0, result: 0 }]));
    assert_eq!(calls.reply(0, number::EXIT, &[4]).then, Then::End);
    assert_eq!(calls.os.ended(0), Err(4));
    // Another process is not supported.
    assert_eq!(calls.result(number::CLONE, &[17, 0]), ENOSYS);
}

#[test]
fn random_bytes_follow_from_the_seed() {
    let [mut one, mut other] = [Calls::new(), Calls::new()];
    assert_eq!((one.result(number::GETRANDOM, &[DATA, 16]), other.result(number::GETRANDOM, &[DATA, 16])), (16, 16));
    assert_eq!(one.bytes(DATA, 16), other.bytes(DATA, 16));
    assert_eq!(one.result(number::GETRANDOM, &[DATA + 16, 16]), 16);
    assert_ne!(one.bytes(DATA, 16), one.bytes(DATA + 16, 16));
}

#[test]
fn programs_are_told_their_harts_and_their_stack() {
    let mut calls = Calls::new();
    assert_eq!(calls.result(number::SCHED_GETAFFINITY, &[0, 128, DATA]), 8);
    assert_eq!(calls.bytes(DATA, 8), 3u64.to_le_bytes());
    assert_eq!(calls.result(number::PRLIMIT64, &[0, 3, 0, DATA]), 0);
    assert_eq!(calls.bytes(DATA, 8), (64u64 << 10).to_le_bytes());
    assert_eq!(calls.result(number::PRLIMIT64, &[0, 3, 0, 8]), EFAULT);
    assert_eq!(calls.result(number::SYSINFO, &[DATA]), 0);
    assert_eq!(
        (calls.bytes(DATA + 32, 8), calls.bytes(DATA + 104, 4)),
        (WINDOWS.memory_bytes.to_le_bytes().to_vec(), vec![1, 0, 0, 0])
    );
}

/// Arguments that programs give, wrong ones among them.
fn arguments() -> impl Strategy<Value = u64> {
    let pages = (0..1100u64).prop_map(|page| page * 4096);
    let edges =
        prop::sample::select(vec![0, 1, 2, 3, 8, 16, DATA, DATA + 1, CODE, PM_START, 1 << 40, 1 << 63, u64::MAX]);
    prop_oneof![3 => edges, 2 => pages, 1 => any::<u64>(), 2 => 0..64u64]
}

proptest! {
    #[test]
    fn any_calls_are_answered_and_ask_for_stores_in_memory(
        calls in prop::collection::vec((0..300u64, prop::array::uniform6(arguments()), 0..2u32), 1..80)
    ) {
        let mut all = Calls::new();
        all.memory.push((DATA, b"/pm/pool\0".to_vec()));
        for (number, args, hart) in calls {
            // Memory and threads more often than the rest.
            let often = [number::BRK, number::MMAP, number::MUNMAP, number::MPROTECT, number::MREMAP, number::FUTEX, number::CLONE];
            let number = if number < 140 { often[number as usize % often.len()] } else { number - 100 };
            let reply = all.reply(hart, number, &args);
            for write in &reply.writes {
                let bytes = match &write.data {
                    Data::Bytes(bytes) => bytes.len() as u64,
                    Data::Zeros(bytes) => *bytes,
                };
                prop_assert!(bytes == 0 || WINDOWS.place(write.address, bytes).is_some(), "{number}: {write:?}");
                let in_code = write.address < CODE + 4 && write.address + bytes > CODE;
                prop_assert!(bytes == 0 || !in_code, "{number}: {write:?}");
            }
            if reply.then == Then::End && all.os.ended(hart).is_err() {
                break;
            }
        }
    }
}
