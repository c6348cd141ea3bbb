//! Persistent programs after a power failure: `--recover` on what may be left finds every invariant kept, and
//! finds it broken when a fence is missing.

use std::collections::BTreeSet;

use durawarp::riscv::functional::{self, End, Options};
use durawarp::riscv::memory::PM_START;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use crate::common::executable;
use crate::power_failure::{DRAWS, Draw, PowerFailures};
use crate::workloads::{BTREE, HASH, KVLOG, RBTREE, SPS, SSCA2};

const HASH_WITHOUT_FENCE: &[u8] = include_bytes!("samples/missing_fence/hash.elf");
const RBTREE_WITHOUT_FENCE: &[u8] = include_bytes!("samples/missing_fence/rbtree.elf");
const KVLOG_WITHOUT_FENCE: &[u8] = include_bytes!("samples/missing_fence/kvlog.elf");

/// What came of the recoveries of a program.
#[derive(Debug, Default)]
struct Recoveries {
    images: usize,
    /// Lines that recovery printed.
    lines: BTreeSet<String>,
    /// Event, draw, and what recovery said, of each that failed.
    failed: Vec<(u64, Draw, End, String)>,
}

/// Where power fails.
enum Instants {
    /// After this many events, drawn.
    Drawn(u64),
    /// After every event.
    All,
}

/// Runs a program with power failures, and recovers from each image that they may leave.
fn recoveries(name: &str, bytes: &[u8], args: &str, threads: u32, instants: Instants) -> Recoveries {
    let threads_text = threads.to_string();
    let args: Vec<&str> = args.split(' ').chain(["--threads", &threads_text]).collect();
    let process = executable(name, bytes, &args);
    let pm_bytes = process.start.windows.pm_bytes;
    let options = Options { harts: threads, ..Options::default() };
    let run = |fails_after: Vec<u64>, image_taken: &mut dyn FnMut(u64, Draw, &[u8])| {
        let mut observer = PowerFailures::new(pm_bytes, fails_after, 11, image_taken);
        let outcome = functional::run_observed(&process, process.memory(), &options, &mut observer);
        assert_eq!(outcome.end, End::Exited(0), "{name}: {}", String::from_utf8_lossy(&outcome.stdout));
        observer.events()
    };
    let events = run(Vec::new(), &mut |_, _, _| ());
    let mut random = Pcg64::new(5, threads.into());
    let fails_after = match instants {
        // The first event, too: a pool that is not initialised.
        Instants::Drawn(count) => (0..count).map(|i| 1 + i.min(1) * (random.next_u64() % events)).collect(),
        Instants::All => (1..=events).collect(),
    };
    let mut recoveries = Recoveries::default();
    let recovery = executable(name, bytes, &["--recover"]);
    run(fails_after, &mut |event, draw, image| {
        let mut memory = recovery.memory();
        memory.persistent_mut().copy_from_slice(image);
        let outcome = functional::run(&recovery, memory, &Options::default());
        let line = String::from_utf8_lossy(&outcome.stdout).into_owned();
        if outcome.end != End::Exited(0) {
            recoveries.failed.push((event, draw, outcome.end, line.clone()));
        }
        recoveries.lines.insert(line);
        recoveries.images += 1;
    });
    recoveries
}

const PROGRAMS: [(&str, &[u8], &str); 6] = [
    ("hash", HASH, "--ops 60 --keys 64 --buckets 16"),
    ("rbtree", RBTREE, "--ops 60 --keys 64 --trees 2"),
    ("btree", BTREE, "--ops 60 --keys 64 --trees 2"),
    ("sps", SPS, "--ops 40 --items 32"),
    ("ssca2", SSCA2, "--scale 4 --edges 48 --sources 1"),
    ("kvlog", KVLOG, "--ops 60 --keys 24 --buckets 8"),
];

#[test]
fn recovery_finds_every_invariant_kept_wherever_power_fails() {
    for (name, bytes, args) in PROGRAMS {
        for threads in [1, 3] {
            let recoveries = recoveries(name, bytes, args, threads, Instants::Drawn(40));
            assert_eq!(recoveries.failed, [], "{name}, {threads} threads");
            // Some instants were drawn twice.
            assert!(recoveries.images >= 30 * DRAWS.len(), "{name}: {} images", recoveries.images);
            // Without a pool, and after several numbers of operations.
            assert!(recoveries.lines.contains(&format!("{name}: no pool\n")), "{name}");
            assert!(recoveries.lines.len() > 10, "{name}: {:?}", recoveries.lines);
        }
    }
}

#[test]
fn recovery_finds_a_missing_fence_between_log_and_data() {
    let programs = [("hash", HASH_WITHOUT_FENCE), ("rbtree", RBTREE_WITHOUT_FENCE), ("kvlog", KVLOG_WITHOUT_FENCE)];
    for (name, bytes) in programs {
        let recoveries = recoveries(name, bytes, "--ops 60 --keys 64", 1, Instants::Drawn(60));
        assert!(!recoveries.failed.is_empty(), "{name}: {} images", recoveries.images);
        // What is sure to be durable is consistent still, and so is all that was stored.
        assert!(recoveries.failed.iter().all(|(_, draw, ..)| [Draw::Words, Draw::Lines].contains(draw)), "{name}");
        // The program says which invariant does not hold.
        assert!(recoveries.failed.iter().all(|(.., line)| line.starts_with("wrong: ")), "{name}");
    }
}

#[test]
#[ignore = "minutes: every event of every program"]
fn recovery_finds_every_invariant_kept_after_every_event() {
    for (name, bytes, args) in PROGRAMS {
        for threads in [1, 2, 4] {
            let recoveries = recoveries(name, bytes, args, threads, Instants::All);
            println!("{name}, {threads} threads: {} images, {} failed", recoveries.images, recoveries.failed.len());
            assert_eq!(recoveries.failed.first(), None, "{name}, {threads} threads");
        }
    }
}

#[test]
fn recovery_says_what_is_wrong_with_a_pool_that_something_else_wrote_to() {
    let process = executable("hash", HASH, &["--keys", "64", "--ops", "0"]);
    let memory = functional::run(&process, process.memory(), &Options::default()).memory;
    let recover = |at: u64, flip: u64| {
        let process = executable("hash", HASH, &["--recover"]);
        let mut image = process.memory();
        image.persistent_mut().copy_from_slice(memory.persistent());
        let word = u64::from_le_bytes(image.load(PM_START + at).unwrap());
        image.store(PM_START + at, (word ^ flip).to_le_bytes()).unwrap();
        let outcome = functional::run(&process, image, &Options::default());
        (outcome.end, String::from_utf8(outcome.stdout).unwrap())
    };
    // The log of the one thread ends at 256 + 16 KiB, the page after; then its heap's line, 64 buckets, nodes
    // of a line: key, next, 5 words of value, link of free nodes.
    let (heap, buckets) = (20480, 20480 + 64);
    let nodes = (buckets + 64 * 8u64).next_multiple_of(256);
    assert_eq!(recover(nodes + 56, 1).0, End::Exited(0));
    for (at, flip, code, text) in [
        (0, 1, 10, "magic word"),
        (24, 1 << 40, 10, "header"),
        (256, 1, 13, "count of transactions"),
        (heap, 64, 12, "heap"),
        (nodes, 1 << 60, 22, "item in a wrong bucket"),
        (nodes + 16, 1 << 60, 21, "torn value"),
    ] {
        assert_eq!(recover(at, flip), (End::Exited(code), format!("wrong: {text}\n")), "at {at}");
    }
}
