//! Beginnings of runs as files in a folder of results: processes that share it make each of them once.
//!
//! ```text
//! beginnings/HASH.ckpt       a checkpoint; HASH is of its key and of the simulator's sources
//! beginnings/HASH.making     host and process that make it, and a count that grows while they do
//! ```
//! | found | what a process does |
//! |---|---|
//! | a whole checkpoint of the key | takes it |
//! | a damaged one, or nothing | claims it (`create_new`), makes it, and renames it into place |
//! | a claim of a living process, of this host or by its count | waits |
//! | a claim of a process of this host that is gone | takes it over at once |
//! | a claim whose count stands still for [`STALE`] | takes it over |
//!
//! No locks, as with [results](super::store): two that take over one claim both make the beginning, which is
//! the same bytes. Invariant: a run comes to the same whoever made its beginning. A folder that cannot be
//! written to shares nothing. Left out: the removal of beginnings, which anybody may do at any time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::store::Author;
use crate::run::Recipe;
use crate::run::checkpoint::Checkpoint;

/// The folder of beginnings in that of results.
const FOLDER: &str = "beginnings";

/// Between two looks at a claim, and between two counts of who makes.
const AGAIN: Duration = Duration::from_millis(100);
const COUNT: Duration = Duration::from_secs(1);

/// A claim whose count stands still for so long is of a process that is gone. Chosen: many counts, as a host
/// may be busy. Who reads a claim opens it, which asks the server of a network file system.
const STALE: Duration = Duration::from_secs(30);

/// Beginnings of a folder of results.
#[derive(Debug)]
pub(super) struct BeginningFiles<'a> {
    folder: PathBuf,
    author: Author,
    stop: Option<&'a AtomicBool>,
    stale: Duration,
}

impl<'a> BeginningFiles<'a> {
    /// Of this folder of results, for this process; `stop` ends waits.
    pub(super) fn new(results: &Path, author: Author, stop: Option<&'a AtomicBool>) -> BeginningFiles<'a> {
        BeginningFiles { folder: results.join(FOLDER), author, stop, stale: STALE }
    }

    /// The beginning of a key: that of the folder, or what `make` makes.
    pub(super) fn of(&self, key: &str, make: &mut dyn FnMut() -> Option<Checkpoint>) -> Option<Checkpoint> {
        let name = blake3::hash(format!("{key} {}", env!("DURAWARP_SOURCES")).as_bytes()).to_hex();
        let [path, claim] = ["ckpt", "making"].map(|kind| self.folder.join(format!("{name}.{kind}")));
        let found = || read(&path).filter(|found| found.is_of(key));
        // A folder that cannot be made cannot be claimed in, either.
        let _ = fs::create_dir_all(&self.folder);
        let claimed = loop {
            if let Some(found) = found() {
                return Some(found);
            }
            match self.claimed(&claim) {
                Ok(true) => break true,
                Ok(false) if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) => break false,
                // Whoever made it is done, or gone: look again.
                Ok(false) => {}
                Err(_) => break false,
            }
        };
        if !claimed {
            return make();
        }
        // It may have come between the look and the claim.
        let made = found().or_else(|| {
            let made = self.counting(&claim, make)?;
            if self.write(&path, &made).is_err() {
                let _ = fs::remove_file(self.partial(&path));
            }
            Some(made)
        });
        let _ = fs::remove_file(&claim);
        made
    }

    /// Claims a beginning; `false` when another process that claimed it is done, or the sweep was stopped.
    #[expect(clippy::disallowed_methods, reason = "how long a claim stands still; no result depends on it")]
    fn claimed(&self, claim: &Path) -> io::Result<bool> {
        match OpenOptions::new().write(true).create_new(true).open(claim) {
            Ok(mut file) => return file.write_all(self.text(0).as_bytes()).map(|()| true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let (mut seen, mut since) = (String::new(), Instant::now());
        loop {
            let now = match fs::read(claim) {
                Ok(text) => String::from_utf8_lossy(&text).into_owned(),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Ok(false);
            }
            // What changed is what counts: clocks of two hosts, and times of files, are not compared.
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            let mut words = seen.split(' ');
            let (host, pid) = (words.next().unwrap_or_default(), words.next().and_then(|pid| pid.parse().ok()));
            let gone = pid.is_some_and(|pid| self.author.is_gone(host, pid));
            if gone || since.elapsed() >= self.stale {
                fs::write(claim, self.text(0))?;
                return Ok(true);
            }
            thread::sleep(AGAIN);
        }
    }

    /// What a claim says.
    fn text(&self, count: u64) -> String {
        format!("{} {} {count}", self.author.host(), std::process::id())
    }

    /// Makes a beginning, and counts in its claim meanwhile.
    fn counting(&self, claim: &Path, make: &mut dyn FnMut() -> Option<Checkpoint>) -> Option<Checkpoint> {
        let (done, end) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut count = 0;
                while end.recv_timeout(COUNT) == Err(RecvTimeoutError::Timeout) {
                    count += 1;
                    // What cannot be written stands still: others make it, too.
                    let _ = fs::write(claim, self.text(count));
                }
            });
            let made = make();
            drop(done);
            made
        })
    }

    /// Where a file is written before it is whole.
    fn partial(&self, path: &Path) -> PathBuf {
        path.with_extension(format!("{}-{}", self.author.host(), std::process::id()))
    }

    /// Writes a checkpoint, whole or not at all.
    fn write(&self, path: &Path, made: &Checkpoint) -> io::Result<()> {
        let partial = self.partial(path);
        let mut file = File::create(&partial)?;
        // Its key says what it is of; a recipe would be for people.
        made.write(&Recipe::of(""), &mut file)?;
        file.sync_data()?;
        fs::rename(partial, path)
    }
}

/// A checkpoint that is there and whole.
fn read(path: &Path) -> Option<Checkpoint> {
    Some(Checkpoint::read(&fs::read(path).ok()?).ok()?.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::checkpoint::of_zeros;
    use crate::sweep::store::{Store, Writer};

    const KEY: &str = "it 1 false";

    /// Beginnings of a folder, as a process of this host has them that waits so long for those that are gone.
    fn files(results: &Path, stale: Duration) -> BeginningFiles<'static> {
        Store::open(results).unwrap();
        let author = Writer::new(results).unwrap().author().clone();
        BeginningFiles { stale, ..BeginningFiles::new(results, author, None) }
    }

    /// How often the beginning of [`KEY`] is made when each of these asks for it.
    fn made(all: &[&BeginningFiles<'_>]) -> usize {
        let mut made = 0;
        for files in all {
            let mut make = || {
                made += 1;
                Some(of_zeros("it", 10))
            };
            assert_eq!(files.of(KEY, &mut make), Some(of_zeros("it", 10)));
        }
        made
    }

    /// The files of beginnings with this end.
    fn ending(results: &Path, end: &str) -> Vec<PathBuf> {
        let all = fs::read_dir(results.join(FOLDER)).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|extension| extension == end)).collect()
    }

    #[test]
    fn a_beginning_is_made_once_and_a_damaged_one_again() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = [files(folder.path(), STALE), files(folder.path(), STALE)];
        assert_eq!(made(&[&one, &two, &one]), 1);
        let all = ending(folder.path(), "ckpt");
        assert_eq!((all.len(), fs::read_dir(folder.path().join(FOLDER)).unwrap().count()), (1, 1), "no claim is left");
        for bytes in [&b"no checkpoint"[..], &fs::read(&all[0]).unwrap()[1..], &[]] {
            fs::write(&all[0], bytes).unwrap();
            assert_eq!(made(&[&one, &two]), 1);
        }
        // A whole one of something else under this name.
        of_zeros("another", 10).write(&Recipe::of(""), &mut File::create(&all[0]).unwrap()).unwrap();
        assert_eq!(made(&[&two, &one]), 1);
    }

    #[test]
    fn what_cannot_be_made_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), STALE);
        assert_eq!(files.of(KEY, &mut || None), None);
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
        assert_eq!(made(&[&files]), 1);
    }

    #[test]
    fn a_claim_is_waited_for_while_it_counts_and_taken_over_when_it_stands_still() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), Duration::from_millis(700));
        assert_eq!(made(&[&files]), 1);
        let claim = ending(folder.path(), "ckpt")[0].with_extension("making");
        fs::remove_file(&ending(folder.path(), "ckpt")[0]).unwrap();
        // A process of another host counts for longer than a claim may stand still, and is then gone.
        fs::write(&claim, "elsewhere 1 0").unwrap();
        thread::scope(|scope| {
            let claim = &claim;
            scope.spawn(move || {
                for count in 1..=10 {
                    thread::sleep(AGAIN);
                    assert!(claim.exists(), "it was taken over at count {count}");
                    fs::write(claim, format!("elsewhere 1 {count}")).unwrap();
                }
            });
            assert_eq!(made(&[&files]), 1);
        });
        assert!(!claim.exists());
    }

    #[test]
    fn a_claim_of_a_process_of_this_host_that_is_gone_is_taken_over_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), Duration::MAX);
        assert_eq!(made(&[&files]), 1);
        let claim = ending(folder.path(), "ckpt")[0].with_extension("making");
        fs::remove_file(&ending(folder.path(), "ckpt")[0]).unwrap();
        let gone = std::process::Command::new("true").spawn().and_then(|mut child| {
            child.wait()?;
            Ok(child.id())
        });
        fs::write(&claim, format!("{} {} 7", files.author.host(), gone.unwrap())).unwrap();
        assert_eq!(made(&[&files]), 1);
        assert!(!claim.exists());
    }

    #[test]
    fn a_sweep_that_is_stopped_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let files = BeginningFiles { stop: Some(&stop), ..files(folder.path(), Duration::MAX) };
        assert_eq!(made(&[&files]), 1);
        let path = ending(folder.path(), "ckpt").remove(0);
        fs::rename(&path, path.with_extension("kept")).unwrap();
        fs::write(path.with_extension("making"), "elsewhere 1 0").unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(made(&[&files]), 1);
        assert!(path.with_extension("making").exists(), "it is another's");
    }
}
