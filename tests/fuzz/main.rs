//! Whatever a file holds, its reader ends: with what the file means or with what is wrong with it, within
//! seconds and without much memory.
//!
//! Inputs are valid files that were changed: bytes flipped, lines doubled, numbers made extreme, brackets
//! nested. Input `n` of a reader is the same at any time and on any host. `DURAWARP_FUZZ_INPUTS` says how many
//! there are of all readers together (10,000 unless it is set), `DURAWARP_FUZZ_ONLY=READER` or `READER:N` which
//! of them. `.ci/fuzz` runs a million. What an input broke has a test of its own beside its reader.
//!
//! Not here: what a run makes of a valid input.

#![expect(clippy::disallowed_methods, reason = "that a reader ends soon is what is tested; variables say how much")]

mod mutate;
mod readers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mutate::Mutator;
use readers::Reader;

/// The longest that an input may take. The slowest take some tenths of a second in a test build.
const MOST_TIME: Duration = Duration::from_secs(20);

/// An input that takes so long ends the test: it is taken for one that never ends.
const HANGS: Duration = Duration::from_secs(120);

/// The most that the process may have had in memory.
const MOST_RESIDENT_KB: u64 = 2 << 20;

const INPUTS: u64 = 10_000;

/// Readers share folders: one test has them.
static READERS: Mutex<()> = Mutex::new(());

/// What is read now, since when.
static NOW: Mutex<Option<(&'static str, u64, Instant)>> = Mutex::new(None);

fn watch(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(200));
        if let Some((reader, number, since)) = *NOW.lock().unwrap()
            && since.elapsed() > HANGS
        {
            eprintln!("reader {reader}, input {number}: not read after {HANGS:?}");
            std::process::exit(101);
        }
    }
}

/// The most that was resident, where the system tells it.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    most.and_then(|most| most.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Reads input `number`; what is wrong with how it went.
fn read(reader: &Reader, number: u64) -> Result<(), String> {
    let input = Mutator::new(reader.name, number).input(&reader.samples);
    let began = Instant::now();
    *NOW.lock().unwrap() = Some((reader.name, number, began));
    let ended = catch_unwind(AssertUnwindSafe(|| (reader.read)(&input)));
    *NOW.lock().unwrap() = None;
    let took = began.elapsed();
    let told = |what: String| {
        let file = std::env::temp_dir().join(format!("durawarp-fuzz-{}-{number}", reader.name));
        let kept = std::fs::write(&file, &input).map_or(String::new(), |()| format!(", in {}", file.display()));
        Err(format!("{}:{number} ({} bytes{kept}): {what}", reader.name, input.len()))
    };
    match ended {
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            told(format!("panics: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
        }
        Ok(()) if took > MOST_TIME => told(format!("took {took:?}")),
        Ok(()) if resident_kb() > MOST_RESIDENT_KB => told(format!("{} MiB are resident", resident_kb() >> 10)),
        Ok(()) => Ok(()),
    }
}

#[test]
fn every_reader_ends_whatever_it_reads() {
    let _one = READERS.lock().unwrap_or_else(PoisonError::into_inner);
    let readers = readers::all();
    let setting = |name: &str| std::env::var(name).ok();
    let inputs = setting("DURAWARP_FUZZ_INPUTS").map_or(INPUTS, |text| text.parse().expect("a number of inputs"));
    let only = setting("DURAWARP_FUZZ_ONLY");
    let only = only.as_deref().map(|only| only.split_once(':').map_or((only, None), |(name, n)| (name, Some(n))));
    if let Some((name, _)) = only {
        assert!(readers.iter().any(|reader| reader.name == name), "there is no reader `{name}`");
    }
    let weights: u64 = readers.iter().map(|reader| reader.weight).sum();
    let over = AtomicBool::new(false);
    let mut failures = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&over));
        for reader in readers.iter().filter(|reader| only.is_none_or(|(name, _)| name == reader.name)) {
            for sample in &reader.samples {
                (reader.read)(sample);
            }
            let began = Instant::now();
            let numbers = match only.and_then(|(_, number)| number) {
                Some(number) => number.parse().map(|number: u64| number..number + 1).expect("the number of an input"),
                None => 0..(inputs * reader.weight).div_ceil(weights),
            };
            let count = numbers.end - numbers.start;
            let found: Vec<String> = numbers.filter_map(|number| read(reader, number).err()).take(5).collect();
            println!(
                "{:<12} {count:>7} inputs, {:>6.2} s, {} failures",
                reader.name,
                began.elapsed().as_secs_f64(),
                found.len()
            );
            failures.extend(found);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Inputs that once made a reader panic, or take minutes or gigabytes.
#[test]
fn what_once_broke_a_reader_does_not_any_more() {
    let _one = READERS.lock().unwrap_or_else(PoisonError::into_inner);
    let readers = readers::all();
    let nested = "[".repeat(60_000);
    let cases: [(&str, Vec<u8>); 7] = [
        ("gpgpu-sim", b"-gpgpu_cache:dl1 S:9223372036854775807:128:96,L:L:s:N:L,A:256:8,16:0,32\n".to_vec()),
        ("gpgpu-sim", b"-gpgpu_cache:dl2 S:4294967296:4294967296:1,L:L:s:N:L,A:256:8,16:0,32\n".to_vec()),
        ("gpgpu-sim", b"-gpgpu_dram_timing_opt nbk=nan:CCD=inf\n-gpgpu_n_clusters nan\n".to_vec()),
        ("set", format!("sm.co{nested}unt=20").into_bytes()),
        ("machine", format!("inherits = \"agpm-table4\"\n[sm]\n\"{nested}\" = 1\n").into_bytes()),
        ("machine", b"inherits = \"agpm-table4\"\n[dram]\nbanks = nan\n".to_vec()),
        ("machine", "1+".repeat(60_000).into_bytes()),
    ];
    for (name, input) in cases {
        let reader = readers.iter().find(|reader| reader.name == name).expect("a reader");
        let began = Instant::now();
        (reader.read)(&input);
        assert!(began.elapsed() < MOST_TIME, "{name}: {:?}", began.elapsed());
    }
}
