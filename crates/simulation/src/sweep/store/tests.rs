//! What a store takes from files that others write while it reads.

use std::io::Write as _;

use super::*;
use crate::sweep::record::Record;

/// A folder of results and a store of it.
fn folder() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

fn append(folder: &Path, name: &str, bytes: &[u8]) {
    let mut file = File::options().create(true).append(true).open(folder.join(name)).unwrap();
    file.write_all(bytes).unwrap();
}

/// A failed point's record of so many ms.
fn failed(key: &str, unix_ms: u64, why: &str) -> Vec<u8> {
    Record { state: State::Failed, unix_ms, why: Some(why), ..Record::begun(key) }.line().unwrap()
}

fn why<'a>(store: &'a Store, key: &str) -> Option<&'a str> {
    store.result(key)?.head.why.as_deref()
}

#[test]
fn a_line_that_is_half_written_is_read_when_it_is_whole() {
    let (folder, mut store) = folder();
    let (first, second) = (failed("a", 1, "one"), failed("b", 2, "two"));
    for cut in [1, second.len() / 2, second.len() - 1] {
        let name = format!("{cut}.jsonl");
        append(folder.path(), &name, &first);
        append(folder.path(), &name, &second[..cut]);
        store.refresh().unwrap();
        store.refresh().unwrap();
        assert_eq!((why(&store, "a"), why(&store, "b")), (Some("one"), None), "{cut} bytes of the second");
        append(folder.path(), &name, &second[cut..]);
        append(folder.path(), &name, &failed("c", 3, "three"));
        store.refresh().unwrap();
        assert_eq!((why(&store, "b"), why(&store, "c")), (Some("two"), Some("three")), "the rest came");
        assert_eq!(store.notes(), [""; 0]);
        // Each entry knows where its line lies: its checksum fits there.
        assert!(["a", "b", "c"].iter().all(|key| store.outcome(store.result(key).unwrap()) == Ok(None)));
        std::fs::remove_file(folder.path().join(name)).unwrap();
        store = Store::open(folder.path()).unwrap();
    }
}

#[test]
fn nothing_is_read_twice() {
    let (folder, mut store) = folder();
    for nth in 1..=3 {
        append(folder.path(), "a.jsonl", &Record::begun("k").line().unwrap());
        append(folder.path(), "a.jsonl", b"no record\n");
        store.refresh().unwrap();
        store.refresh().unwrap();
        assert_eq!((store.begun("k").len(), store.notes().len()), (nth, nth));
    }
    let lines = Record::begun("k").line().unwrap().len() + b"no record\n".len();
    let place = format!("a.jsonl` at byte {}: no record", 2 * lines + Record::begun("k").line().unwrap().len());
    assert!(store.notes()[2].contains(&place), "{:?}", store.notes());
    assert_eq!(store.begun("other").len(), 0);
}

#[test]
fn of_a_keys_records_the_newest_counts_and_of_two_of_one_moment_the_one_read_last() {
    let (folder, mut store) = folder();
    append(folder.path(), "a.jsonl", &[failed("k", 5, "five"), failed("k", 4, "four")].concat());
    store.refresh().unwrap();
    assert_eq!(why(&store, "k"), Some("five"));
    append(folder.path(), "b.jsonl", &failed("k", 6, "six"));
    append(folder.path(), "a.jsonl", &failed("k", 5, "five again"));
    store.refresh().unwrap();
    assert_eq!(why(&store, "k"), Some("six"));
    append(folder.path(), "c.jsonl", &failed("k", 6, "six again"));
    store.refresh().unwrap();
    assert_eq!((why(&store, "k"), store.results().count()), (Some("six again"), 1));
}

#[test]
fn other_files_are_no_results() {
    let (folder, mut store) = folder();
    append(folder.path(), "a.json", &failed("k", 1, "json"));
    append(folder.path(), "notes.txt", b"no record\n");
    std::fs::create_dir(folder.path().join("d.jsonl")).unwrap();
    store.refresh().unwrap();
    assert_eq!((store.results().count(), store.notes().len()), (0, 0));
}

#[test]
fn what_a_writer_of_this_process_writes_is_left_out_while_there_is_one() {
    let (folder, mut store) = folder();
    let writer = Writer::new(folder.path()).unwrap();
    store.leave_out(Some(&writer));
    append(folder.path(), &writer.file_name().unwrap(), &failed("own", 1, "its own"));
    append(folder.path(), "other.jsonl", &failed("other", 1, "another's"));
    store.refresh().unwrap();
    assert_eq!((why(&store, "own"), why(&store, "other")), (None, Some("another's")));
    store.leave_out(None);
    store.refresh().unwrap();
    assert_eq!(why(&store, "own"), Some("its own"));
}
