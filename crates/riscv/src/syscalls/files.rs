//! Open files: standard streams, files in memory ([`tree`]), persistent memory as `/pm/NAME`, and of `/dev`
//! the streams, `null`, `random` and `urandom`.
//!
//! ```text
//!  descriptor ──> description (offset, how it was opened) ──> file of the tree
//!       `dup` makes another descriptor of one description
//! ```

mod tree;

use super::call::File;
use super::number::error::{EBADF, EEXIST, EINVAL, EISDIR, EMFILE, ENOENT, ENOSPC, ENOTDIR, ESPIPE};
use super::output::Output;
use durawarp_checkpoint::value;

pub(super) use tree::{PathTarget, Tree, clean};

/// The folder whose one file is persistent memory.
const PM_FOLDER: &str = "/pm/";
/// `AT_FDCWD`: paths are of the working folder.
const WORKING_FOLDER: u64 = 100u64.wrapping_neg();
/// The most descriptors that are open at a time.
const DESCRIPTORS_MAX: usize = 1024;

/// Flags of `openat`.
mod flag {
    pub(super) const ACCESS: u64 = 3;
    pub(super) const READ_ONLY: u64 = 0;
    pub(super) const WRITE_ONLY: u64 = 1;
    pub(super) const CREATE: u64 = 0o100;
    pub(super) const EXCLUSIVE: u64 = 0o200;
    pub(super) const TRUNCATE: u64 = 0o1000;
    pub(super) const APPEND: u64 = 0o2000;
    pub(super) const FOLDER: u64 = 0o200_000;
    pub(super) const UNNAMED: u64 = 0o20_000_000;
}

/// What a file descriptor stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Open {
    Stdin,
    Stdout,
    Stderr,
    /// A file of the tree, by its number.
    File(usize),
    /// A folder, by its cleaned path.
    Folder(String),
    Persistent,
    /// `/dev/null`.
    Null,
    /// `/dev/urandom`.
    Random,
}

value!(choice Open { Stdin, Stdout, Stderr, File(file), Folder(path), Persistent, Null, Random });

/// Something that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) what: Open,
    /// Of the next read or write; of a folder, entries that were listed.
    pub(super) offset: u64,
    /// As `openat` was given them.
    pub(super) flags: u64,
}

value!(record Description { what, offset, flags });

impl Description {
    fn of(what: Open, flags: u64) -> Description {
        Description { what, offset: 0, flags }
    }

    fn reads(&self) -> bool {
        self.flags & flag::ACCESS != flag::WRITE_ONLY
    }

    fn writes(&self) -> bool {
        self.flags & flag::ACCESS != flag::READ_ONLY
    }
}

/// The files of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) tree: Tree,
    descriptions: Vec<Description>,
    /// By descriptor.
    open: Vec<Option<usize>>,
    /// The name under which persistent memory was opened: there is one pool.
    pool: Option<String>,
    pub(super) output: Output,
}

value!(record Files { tree, descriptions, open, pool, output });

impl Files {
    /// Given files, and which of them standard input reads: it is that file, opened, as a shell's `<` has it.
    pub(super) fn new(given: Vec<File>, stdin: Option<&str>) -> Files {
        let tree = Tree::new(given);
        let input = match stdin.map(|path| tree.find(path)) {
            Some(Ok(PathTarget::File(node))) => Open::File(node),
            _ => Open::Stdin,
        };
        let streams = [(input, 0), (Open::Stdout, 1), (Open::Stderr, 1)];
        let open: Vec<_> = (0..streams.len()).map(Some).collect();
        Files {
            tree,
            descriptions: streams.map(|(what, flags)| Description::of(what, flags)).to_vec(),
            open,
            pool: None,
            output: Output::default(),
        }
    }

    /// A path as a call names it, seen from a folder's descriptor.
    pub(super) fn resolve(&self, folder: u64, path: String) -> Result<String, u64> {
        if path.starts_with('/') || folder & 0xffff_ffff == WORKING_FOLDER & 0xffff_ffff {
            return Ok(path);
        }
        match &self.get(folder)?.what {
            Open::Folder(folder) => Ok(format!("/{folder}/{path}")),
            _ => Err(ENOTDIR),
        }
    }

    /// Opens a path. The descriptor, the lowest free one.
    pub(super) fn open(&mut self, path: &str, flags: u64) -> Result<u64, u64> {
        if path.is_empty() {
            return Err(ENOENT);
        }
        let what = match Self::special(path) {
            Some(Open::Persistent) => {
                let name = &path[PM_FOLDER.len()..];
                if self.pool.as_ref().is_some_and(|pool| pool != name) {
                    return Err(ENOSPC);
                }
                self.pool = Some(name.to_owned());
                Open::Persistent
            }
            Some(device) => device,
            None => self.of_tree(path, flags)?,
        };
        self.descriptions.push(Description::of(what, flags));
        self.describe(self.descriptions.len() - 1, 0)
    }

    fn of_tree(&mut self, path: &str, flags: u64) -> Result<Open, u64> {
        let has = |flag: u64| flags & flag == flag;
        let writes = flags & flag::ACCESS != flag::READ_ONLY;
        match self.tree.find(path) {
            Ok(PathTarget::Folder) if has(flag::UNNAMED) && writes => Ok(Open::File(self.tree.make_unnamed())),
            Ok(_) if has(flag::CREATE | flag::EXCLUSIVE) => Err(EEXIST),
            Ok(PathTarget::Folder) if writes || has(flag::CREATE) => Err(EISDIR),
            Ok(PathTarget::Folder) => Ok(Open::Folder(clean(path))),
            Ok(PathTarget::File(_)) if has(flag::FOLDER) => Err(ENOTDIR),
            Ok(PathTarget::File(node)) => {
                if has(flag::TRUNCATE) && writes {
                    self.tree.resize(node, 0)?;
                }
                Ok(Open::File(node))
            }
            Err(ENOENT) if has(flag::CREATE) => Ok(Open::File(self.tree.make(path)?)),
            Err(error) => Err(error),
        }
    }

    /// The lowest free descriptor from `from` on stands for a description.
    fn describe(&mut self, description: usize, from: u64) -> Result<u64, u64> {
        let from = usize::try_from(from).ok().filter(|from| *from < DESCRIPTORS_MAX).ok_or(EINVAL)?;
        let free = (from..DESCRIPTORS_MAX).find(|&at| self.open.get(at).is_none_or(Option::is_none)).ok_or(EMFILE)?;
        self.put(free, description);
        Ok(free as u64)
    }

    fn put(&mut self, at: usize, description: usize) {
        if self.open.len() <= at {
            self.open.resize(at + 1, None);
        }
        self.open[at] = Some(description);
    }

    /// Another descriptor of what one stands for, the lowest free one from `from` on.
    pub(super) fn duplicate(&mut self, descriptor: u64, from: u64) -> Result<u64, u64> {
        let description = self.description(descriptor)?;
        self.describe(description, from)
    }

    /// The same, with this number; what it stood for is closed.
    pub(super) fn duplicate_to(&mut self, descriptor: u64, to: u64) -> Result<u64, u64> {
        let description = self.description(descriptor)?;
        let at = usize::try_from(to).ok().filter(|at| *at < DESCRIPTORS_MAX).ok_or(EBADF)?;
        if to == descriptor {
            return Err(EINVAL);
        }
        self.put(at, description);
        Ok(to)
    }

    /// What a path names that is no file of the tree: persistent memory, or a device.
    pub(super) fn special(path: &str) -> Option<Open> {
        match path {
            "/dev/stdin" => Some(Open::Stdin),
            "/dev/stdout" => Some(Open::Stdout),
            "/dev/stderr" => Some(Open::Stderr),
            "/dev/null" => Some(Open::Null),
            "/dev/urandom" | "/dev/random" => Some(Open::Random),
            path => path.strip_prefix(PM_FOLDER).filter(|name| !name.is_empty()).map(|_| Open::Persistent),
        }
    }

    /// A path names something that can be opened.
    pub(super) fn exists(&self, path: &str) -> Result<u64, u64> {
        if Self::special(path).is_some() || path == PM_FOLDER { Ok(0) } else { self.tree.find(path).map(|_| 0) }
    }

    pub(super) fn close(&mut self, descriptor: u64) -> Result<u64, u64> {
        let open = usize::try_from(descriptor).ok().and_then(|at| self.open.get_mut(at));
        open.and_then(Option::take).map(|_| 0).ok_or(EBADF)
    }

    fn description(&self, descriptor: u64) -> Result<usize, u64> {
        usize::try_from(descriptor).ok().and_then(|at| *self.open.get(at)?).ok_or(EBADF)
    }

    pub(super) fn get(&self, descriptor: u64) -> Result<&Description, u64> {
        self.description(descriptor).map(|at| &self.descriptions[at])
    }

    /// Moves the place of the next read or write.
    pub(super) fn seek(&mut self, descriptor: u64, to: u64) {
        if let Ok(at) = self.description(descriptor) {
            self.descriptions[at].offset = to;
        }
    }

    /// Flags of an open file that may change: whether it appends.
    pub(super) fn set_flags(&mut self, descriptor: u64, flags: u64) -> Result<u64, u64> {
        let at = self.description(descriptor)?;
        let of = &mut self.descriptions[at].flags;
        *of = *of & !flag::APPEND | flags & flag::APPEND;
        Ok(0)
    }

    /// The file of the tree that a descriptor reads from, by its number.
    pub(super) fn read_from(&self, descriptor: u64) -> Result<&Description, u64> {
        self.get(descriptor).and_then(|of| match &of.what {
            Open::Folder(_) => Err(EISDIR),
            Open::Stdout | Open::Stderr => Err(EBADF),
            _ if of.reads() => Ok(of),
            _ => Err(EBADF),
        })
    }

    /// Bytes of a file from an offset on: up to `count`, fewer at its end.
    pub(super) fn content(&self, file: usize, offset: u64, count: u64) -> &[u8] {
        self.tree.content(file, offset, count)
    }

    /// A thread writes bytes where a descriptor stands, or at an offset.
    pub(super) fn write(
        &mut self,
        thread: u64,
        descriptor: u64,
        offset: Option<u64>,
        bytes: &[u8],
    ) -> Result<u64, u64> {
        let at = self.description(descriptor)?;
        let of = &self.descriptions[at];
        match (&of.what, offset) {
            (Open::Stdout | Open::Stderr, Some(_)) => return Err(ESPIPE),
            (Open::Stdout, None) => self.output.write(thread, false, bytes),
            (Open::Stderr, None) => self.output.write(thread, true, bytes),
            (Open::Null | Open::Random, _) => {}
            // Persistent memory is mapped.
            (Open::Persistent, _) => return Err(EINVAL),
            (Open::File(node), _) if of.writes() => {
                let node = *node;
                let end = if of.flags & flag::APPEND != 0 { Some(self.tree.bytes(node)) } else { None };
                let to = end.or(offset).unwrap_or(of.offset);
                self.tree.write(node, to, bytes)?;
                if offset.is_none() {
                    self.descriptions[at].offset = to + bytes.len() as u64;
                }
            }
            _ => return Err(EBADF),
        }
        Ok(bytes.len() as u64)
    }

    /// `ftruncate`: of persistent memory only what it is already.
    pub(super) fn resize(&mut self, descriptor: u64, bytes: u64, pm_bytes: u64) -> Result<u64, u64> {
        let of = self.get(descriptor)?;
        match of.what {
            Open::Persistent if bytes <= pm_bytes => Ok(0),
            Open::File(node) if of.writes() && bytes <= i64::MAX as u64 => self.tree.resize(node, bytes).map(|()| 0),
            _ => Err(EINVAL),
        }
    }

    /// Entries of a folder that were not listed yet: names, and whether each is a folder.
    pub(super) fn listed(&self, descriptor: u64) -> Result<Vec<(String, bool)>, u64> {
        let of = self.get(descriptor)?;
        let Open::Folder(folder) = &of.what else { return Err(ENOTDIR) };
        let own = [".", ".."].map(|name| (name.to_owned(), true));
        Ok(own.into_iter().chain(self.tree.entries(folder)).skip(of.offset as usize).collect())
    }

    /// Files that the program has made or changed, and not deleted, by path.
    pub(super) fn written(&self) -> impl Iterator<Item = File> + '_ {
        self.tree.written()
    }
}
