//! Files that a command writes when it is done, looked at before it begins.
//!
//! | what a path names | how it is written |
//! |---|---|
//! | `-` | standard output; the table of the command then goes to standard error |
//! | a regular file, directly or by links, or nothing yet | whole or not at all: to a neighbour, then renamed |
//! | a FIFO, a device, a link to nothing | in place; a FIFO and `>(...)` are opened before the command begins |
//! | a folder, a read-only file, an input of this command, the file of another output | refused, before anything runs |

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use durawarp::diagnostic::{Diagnostic, Diagnostics};
use durawarp::input;
use same_file::Handle;
use serde::Serialize;
use tempfile::{Builder, NamedTempFile};

use super::exit::Stop;
use super::terminal;

/// The outputs of a command: asked for one by one, then all faults at once.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    taken: Vec<PathBuf>,
    stdout: bool,
    faults: Diagnostics,
}

/// A file that will be written.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    /// A regular file, with links followed, or one that is not there yet.
    Replaced(PathBuf),
    InPlace(File),
}

impl Outputs {
    /// The file that `option` names, where it is given. Call it when all inputs have been read.
    pub(super) fn open(&mut self, option: &str, path: Option<&Path>) -> Option<Output> {
        let path = path?;
        match self.target(path) {
            Ok(to) => Some(Output { path: path.to_owned(), to }),
            Err(why) => {
                let message = format!("cannot write `{}`: {why}", path.display());
                self.faults.push(Diagnostic::nowhere(option, message));
                None
            }
        }
    }

    /// Whether one of them is standard output, which is not for tables then.
    ///
    /// # Errors
    /// Everything that is wrong with what was asked for.
    pub(super) fn ready(self) -> Result<bool, Diagnostics> {
        self.faults.into_result(self.stdout)
    }

    fn stdout(&mut self) -> Result<To, String> {
        match std::mem::replace(&mut self.stdout, true) {
            true => Err("another output goes to standard output".to_owned()),
            false => Ok(To::Stdout),
        }
    }

    fn target(&mut self, path: &Path) -> Result<To, String> {
        let told = |fault: io::Error| fault.to_string();
        if is_stdout(path) {
            return self.stdout();
        }
        let target = match fs::metadata(path) {
            Ok(about) if about.is_dir() => return Err("it is a folder".to_owned()),
            Ok(about) if about.is_file() => {
                if input::was_read(path) {
                    return Err("it is an input of this command".to_owned());
                }
                // Root may write to a read-only file; that it is one is a wish all the same.
                if about.permissions().readonly() {
                    return Err("it is read-only".to_owned());
                }
                OpenOptions::new().write(true).open(path).map_err(told)?;
                path.canonicalize().map_err(told)?
            }
            Ok(_) => return OpenOptions::new().write(true).open(path).map(To::InPlace).map_err(told),
            // A link to nothing: what it leads to is made.
            Err(_) if fs::symlink_metadata(path).is_ok() => {
                return OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(path)
                    .map(To::InPlace)
                    .map_err(told);
            }
            Err(_) => folder_of(path).canonicalize().map_err(told)?.join(path.file_name().ok_or("it has no name")?),
        };
        if self.taken.contains(&target) {
            return Err("another output goes to the same file".to_owned());
        }
        neighbour(&target).map_err(told)?;
        self.taken.push(target.clone());
        Ok(To::Replaced(target))
    }
}

/// `-`, and the file that standard output was redirected to: it has tables in it already.
fn is_stdout(path: &Path) -> bool {
    let is_regular = || fs::metadata(path).is_ok_and(|about| about.is_file());
    let same = || Some(Handle::stdout().ok()? == Handle::from_path(path).ok()?);
    path == Path::new("-") || (is_regular() && same() == Some(true))
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file beside another, which goes unless it is renamed. Its permissions are those of the other, or of any
/// new file.
fn neighbour(target: &Path) -> io::Result<NamedTempFile> {
    let name = target.file_name().unwrap_or(OsStr::new("durawarp"));
    let mut builder = Builder::new();
    let mut prefix = name.to_owned();
    prefix.push(".");
    builder.prefix(&prefix).suffix(".partial");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let made = builder.tempfile_in(folder_of(target))?;
    if let Ok(about) = fs::metadata(target) {
        made.as_file().set_permissions(about.permissions())?;
    }
    Ok(made)
}

impl Output {
    /// One that nothing else is known of: a file in a folder of outputs.
    ///
    /// # Errors
    /// It cannot be written, or is an input.
    pub(super) fn at(path: &Path) -> Result<Self, Stop> {
        let mut outputs = Outputs::default();
        let output = outputs.open("", Some(path));
        outputs.ready()?;
        output.ok_or_else(|| Stop::File(format!("cannot write `{}`", path.display())))
    }

    /// The path as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of it.
    pub(super) fn write(self, bytes: &[u8]) -> Result<(), Stop> {
        self.stream(|file| file.write_all(bytes))
    }

    /// Writes a value as JSON.
    pub(super) fn write_json(self, value: &impl Serialize) -> Result<(), Stop> {
        let mut text = serde_json::to_string_pretty(value).map_err(|fault| Stop::File(fault.to_string()))?;
        text.push('\n');
        self.write(text.as_bytes())
    }

    /// Writes it piece by piece.
    pub(super) fn stream(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
        let written = match self.to {
            To::Stdout => return terminal::print_by(write),
            // Read since the command began.
            To::Replaced(target) if input::was_read(&target) => Err(io::Error::other("it is an input of this command")),
            To::Replaced(target) => neighbour(&target).and_then(|mut file| {
                write(&mut file)?;
                // What has its name is on the disk.
                file.as_file().sync_all()?;
                file.persist(&target).map(drop).map_err(|fault| fault.error)
            }),
            To::InPlace(mut file) => write(&mut file).and_then(|()| file.flush()),
        };
        match written {
            // A reader that has seen enough, as at standard output.
            Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|fault| Stop::File(format!("cannot write `{}`: {fault}", self.path.display()))),
        }
    }
}
