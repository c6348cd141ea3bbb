//! Reading the files that a user names: machines, schemes, manifests, PTX, data, sweep files.
//!
//! Invariants: a file that is read ends: what is no regular file (a device, a pipe) is refused, since inputs
//! are read more than once, and text is bounded; a file that was read is remembered, so that no command
//! overwrites its own inputs ([`was_read`]). It lies on the ground floor and knows no other module.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Most bytes of a text file: far more than the PTX of the largest libraries.
pub const MAX_TEXT_BYTES: u64 = 256 << 20;

static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Content of a text file.
///
/// # Errors
/// It cannot be opened, is no regular file, has over 256 MiB, or is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes = bytes(path, MAX_TEXT_BYTES)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("not UTF-8 text: {error}")))
}

/// Content of a file of up to `most` bytes.
///
/// # Errors
/// It cannot be opened, is no regular file, or has more bytes.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    let kind = about.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    if !kind.is_file() {
        let message = "it is a device or a pipe; inputs are read more than once: name a regular file";
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    let too_large = || {
        let message =
            format!("it has {} bytes, and {most} at most are expected", about.len().max(most.saturating_add(1)));
        io::Error::new(ErrorKind::FileTooLarge, message)
    };
    if about.len() > most {
        return Err(too_large());
    }
    remember(path);
    let mut content = Vec::new();
    let room = content.try_reserve_exact(about.len() as usize);
    room.map_err(|_| io::Error::new(ErrorKind::OutOfMemory, format!("no memory for its {} bytes", about.len())))?;
    // It may grow while it is read; the files of some file systems (/proc) say that they are empty.
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most { Err(too_large()) } else { Ok(content) }
}

/// Remembers that a file is an input.
pub fn remember(path: &Path) {
    if let Ok(path) = path.canonicalize() {
        READ.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
    }
}

/// Whether this process has read the file, under whatever name.
pub fn was_read(path: &Path) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    path.canonicalize().is_ok_and(|path| read.contains(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_read_is_known_under_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        fs::write(&file, "x = 1\n").unwrap();
        fs::write(&other, "").unwrap();
        assert!(!was_read(&file));
        assert_eq!(text(&file).unwrap(), "x = 1\n");
        assert!(was_read(&file) && !was_read(&other));
        assert!(was_read(&folder.path().join(".").join("a.toml")));
    }

    #[test]
    fn what_is_too_long_or_does_not_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data");
        fs::write(&file, [1, 2, 3]).unwrap();
        assert_eq!(bytes(&file, 3).unwrap(), [1, 2, 3]);
        assert_eq!(bytes(&file, 2).unwrap_err().to_string(), "it has 3 bytes, and 2 at most are expected");
        assert_eq!(bytes(folder.path(), 9).unwrap_err().to_string(), "it is a folder");
        fs::write(&file, [0xff]).unwrap();
        assert!(text(&file).unwrap_err().to_string().starts_with("not UTF-8 text"));
        if cfg!(unix) {
            assert!(text(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device or a pipe"));
        }
    }
}
