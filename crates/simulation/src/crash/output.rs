//! What a program wrote that goes on after a power failure, beside what the run without a failure wrote.
//!
//! | compared | found | judged |
//! |---|---|---|
//! | all of standard output and standard error | equal | right |
//! | the same, by thread | each thread wrote the same in its order, threads in another | right |
//! | a program of one thread | other bytes | wrong |
//! | of several threads | other bytes of a thread | either may be right: what a thread sees has an order |
//!
//! Output of a committed region is part of the system that the program goes on with; what was not committed
//! is written again. So the two are compared whole, but for lines of standard output with a text of `except`
//! of the program's checks (times, rates): those differ from run to run of a program that is right. All else
//! that is not equal is wrong with [`CrashRequest::strict_output`](super::CrashRequest). Invariant: counts do
//! not depend on the order in which states are judged.

use std::borrow::Cow;
use std::sync::Mutex;

use serde::Serialize;

use durawarp_riscv::syscalls::{Os, Written};

/// Bytes of output that a message shows.
const SHOWN: usize = 80;

/// How output compared, over all times that the program came to its end again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OutputCounts {
    /// It was what the run without a failure wrote.
    pub same: u64,
    /// Each thread wrote the same, and threads in another order.
    pub other_order: u64,
    /// A thread wrote something else: either may be right.
    pub differs: u64,
    /// Of those that differ, or come in another order, one in words.
    pub example: Option<String>,
}

/// What the run without a failure wrote.
#[derive(Debug)]
pub(super) struct ExpectedOutput {
    streams: [Vec<u8>; 2],
    by_thread: Vec<(bool, Vec<u8>)>,
    /// Several threads ran.
    threads: bool,
    strict: bool,
    /// A line of standard output with one of these texts counts on neither side.
    except: Vec<String>,
    counts: Mutex<OutputCounts>,
}

/// Standard output but for lines that contain a text of `except`.
fn but_for<'a>(bytes: &'a [u8], except: &[String]) -> Cow<'a, [u8]> {
    if except.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let counts = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line);
        !except.iter().any(|text| line.contains(text.as_str()))
    };
    Cow::Owned(bytes.split_inclusive(|&byte| byte == b'\n').filter(counts).flatten().copied().collect())
}

/// What each thread wrote. Threads are numbered in the order in which they begin, which may be another.
fn by_thread(written: &[Written], except: &[String]) -> Vec<(bool, Vec<u8>)> {
    let judged = |of: &Written| but_for(&of.bytes, if of.to_stderr { &[] } else { except }).into_owned();
    let mut all: Vec<_> = written.iter().map(|of| (of.to_stderr, judged(of))).collect();
    all.sort_unstable();
    all
}

fn shown(bytes: &[u8]) -> String {
    let end = bytes.len().min(SHOWN);
    format!("{:?}{}", String::from_utf8_lossy(&bytes[..end]), if end < bytes.len() { " ..." } else { "" })
}

impl ExpectedOutput {
    /// Of a run that ended with this system. Lines of standard output with a text of `except` do not count.
    pub(super) fn new(os: &Os, strict: bool, except: Vec<String>) -> ExpectedOutput {
        let (stdout, stderr) = os.output();
        ExpectedOutput {
            streams: [but_for(stdout, &except).into_owned(), stderr.to_vec()],
            by_thread: by_thread(&os.written(), &except),
            threads: os.threads_begun() > 1,
            strict,
            except,
            counts: Mutex::default(),
        }
    }

    /// Compares what was written to standard output and standard error, and by threads.
    ///
    /// # Errors
    /// It is wrong.
    pub(super) fn compare(&self, streams: [&[u8]; 2], written: &[Written]) -> Result<(), String> {
        let Ok(mut counts) = self.counts.lock() else { unreachable!("nobody panics while counting") };
        let stdout = but_for(streams[0], &self.except);
        let streams = [&*stdout, streams[1]];
        let differs = (0..2).find(|&at| streams[at] != self.streams[at]);
        let Some(differs) = differs else {
            counts.same += 1;
            return Ok(());
        };
        let other_order = by_thread(written, &self.except) == self.by_thread;
        let what = ["standard output", "standard error"][differs];
        let (found, expected) = (streams[differs], &self.streams[differs]);
        let from = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
        let text = format!(
            "{what} from byte {from} on is {}, without a failure {}",
            shown(&found[from..]),
            shown(&expected[from..])
        );
        if self.strict || !(self.threads || other_order) {
            return Err(text);
        }
        *(if other_order { &mut counts.other_order } else { &mut counts.differs }) += 1;
        // The least of all texts: the same one, in whatever order states are judged.
        if counts.example.as_ref().is_none_or(|example| text < *example) {
            counts.example = Some(text);
        }
        Ok(())
    }

    /// What it came to.
    pub(super) fn into_counts(self) -> OutputCounts {
        self.counts.into_inner().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(threads: bool, strict: bool) -> ExpectedOutput {
        let by_thread = by_thread(&[written(100, "a\n"), written(101, "b\n")], &[]);
        let streams = [b"a\nb\n".to_vec(), Vec::new()];
        ExpectedOutput { streams, by_thread, threads, strict, except: Vec::new(), counts: Mutex::default() }
    }

    #[test]
    fn lines_that_the_programs_check_leaves_out_count_on_neither_side_and_other_lines_do() {
        let text = |seconds: &str, sum: &str| format!("Total time (secs): {seconds}\nsum {sum}\nticks {seconds}");
        let except = || vec!["(secs)".to_owned(), "ticks".to_owned()];
        let first = text("0.5", "7");
        let expected = |except: Vec<String>| ExpectedOutput {
            streams: [but_for(first.as_bytes(), &except).into_owned(), b"Total (secs) 1\n".to_vec()],
            by_thread: by_thread(&[written(100, &first)], &except),
            threads: false,
            strict: true,
            except,
            counts: Mutex::default(),
        };
        let compare = |of: &ExpectedOutput, stdout: &str, stderr: &str| {
            of.compare([stdout.as_bytes(), stderr.as_bytes()], &[written(100, stdout)]).is_ok()
        };
        let stderr = "Total (secs) 1\n";
        let found = |of: &ExpectedOutput| {
            [text("0.5", "7"), text("0.7", "7"), text("0.7", "8"), "sum 7\n".to_owned()]
                .map(|out| compare(of, &out, stderr))
        };
        assert_eq!(found(&expected(except())), [true, true, false, true]);
        assert_eq!(found(&expected(Vec::new())), [true, false, false, false]);
        // What the manifest leaves out is of standard output: standard error is compared whole.
        assert!(!compare(&expected(except()), &first, "Total (secs) 2\n"));
    }

    fn written(thread: u64, text: &str) -> Written {
        Written { thread, to_stderr: false, bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn another_order_of_threads_is_right_and_other_bytes_are_wrong_of_one_thread_alone() {
        let equal = (&b"a\nb\n"[..], [written(100, "a\n"), written(101, "b\n")]);
        let order = (&b"b\na\n"[..], [written(100, "b\n"), written(101, "a\n")]);
        let other = (&b"a\nc\n"[..], [written(100, "a\n"), written(101, "c\n")]);
        let compare = |of: &ExpectedOutput, (stdout, by): &(&[u8], [Written; 2])| of.compare([stdout, b""], by);
        for (threads, strict, right) in
            [(true, false, [true, true, true]), (false, false, [true, true, false]), (true, true, [true, false, false])]
        {
            let expected = expected(threads, strict);
            let found = [&equal, &order, &other].map(|of| compare(&expected, of).is_ok());
            assert_eq!(found, right, "several threads: {threads}, strict: {strict}");
        }
        let expected = expected(true, false);
        for of in [&equal, &order, &other, &other] {
            compare(&expected, of).unwrap();
        }
        let counts = expected.into_counts();
        assert_eq!((counts.same, counts.other_order, counts.differs), (1, 1, 2));
        let example = "standard output from byte 0 on is \"b\\na\\n\", without a failure \"a\\nb\\n\"";
        assert_eq!(counts.example.as_deref(), Some(example));
    }
}
