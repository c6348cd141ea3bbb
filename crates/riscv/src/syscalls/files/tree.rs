//! Folders and files by their paths, in memory: given data files, and what the program writes.
//!
//! A path is cut at `/`; empty parts and `.` are dropped, `..` takes the part before it away. The working
//! folder is `/`, so that `out.txt` and `/out.txt` are one file. At first there are `/`, `/tmp` and the
//! folders of given files. A file that is deleted while it is open keeps its content, as on Linux. Not
//! modelled: links, rights, owners, times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::syscalls::call::File;
use crate::syscalls::number::error::{EEXIST, EFBIG, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY};
use durawarp_checkpoint::value;

/// The most bytes that all files have together.
const ALL_MAX_BYTES: u64 = 1 << 30;

/// A file, whatever its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TreeFile {
    /// As it was named when it was made, without what says nothing.
    named: String,
    content: Arc<Vec<u8>>,
    /// The program has made or changed it.
    written: bool,
}

value!(record TreeFile { named, content, written });

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// A file, by its number.
    File(usize),
    Folder,
}

/// All folders and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    nodes: Vec<TreeFile>,
    /// By path, without the first `/`.
    files: BTreeMap<String, usize>,
    folders: BTreeSet<String>,
    bytes: u64,
}

value!(record Tree { nodes, files, folders, bytes });

/// A path without what says nothing, and without the first `/`.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The folder that a cleaned path lies in.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Tree {
    pub(super) fn new(given: Vec<File>) -> Tree {
        let folders = ["", "tmp"].map(str::to_owned).into();
        let mut tree = Tree { nodes: Vec::new(), files: BTreeMap::new(), folders, bytes: 0 };
        for File { path, content } in given {
            let key = clean(&path);
            let mut folder = folder_of(&key);
            while !folder.is_empty() {
                tree.folders.insert(folder.to_owned());
                folder = folder_of(folder);
            }
            // Of two of one path the first is it.
            if !tree.files.contains_key(&key) {
                tree.bytes += content.len() as u64;
                tree.files.insert(key, tree.nodes.len());
                tree.nodes.push(TreeFile { named: path, content, written: false });
            }
        }
        tree
    }

    /// What a path names.
    pub(crate) fn find(&self, path: &str) -> Result<PathTarget, u64> {
        let key = clean(path);
        match self.files.get(&key) {
            Some(_) if path.ends_with('/') => Err(ENOTDIR),
            Some(&node) => Ok(PathTarget::File(node)),
            None if self.folders.contains(&key) => Ok(PathTarget::Folder),
            None => Err(if self.files.contains_key(folder_of(&key)) { ENOTDIR } else { ENOENT }),
        }
    }

    /// A place for something new: its folder is there, and the name is free.
    fn free(&self, path: &str) -> Result<String, u64> {
        match self.find(path) {
            Ok(_) => Err(EEXIST),
            Err(ENOENT) => {
                let key = clean(path);
                if self.folders.contains(folder_of(&key)) { Ok(key) } else { Err(ENOENT) }
            }
            Err(error) => Err(error),
        }
    }

    /// Makes an empty file. Its number.
    pub(super) fn make(&mut self, path: &str) -> Result<usize, u64> {
        if path.ends_with('/') {
            return Err(EISDIR);
        }
        let key = self.free(path)?;
        let named = if path.starts_with('/') { format!("/{key}") } else { key.clone() };
        self.files.insert(key, self.nodes.len());
        Ok(self.push(named))
    }

    /// Makes an empty file without a name. Its number.
    pub(super) fn make_unnamed(&mut self) -> usize {
        self.push(String::new())
    }

    fn push(&mut self, named: String) -> usize {
        self.nodes.push(TreeFile { named, content: Arc::new(Vec::new()), written: true });
        self.nodes.len() - 1
    }

    pub(crate) fn make_folder(&mut self, path: &str) -> Result<u64, u64> {
        let key = self.free(path)?;
        self.folders.insert(key);
        Ok(0)
    }

    /// Takes a name away: of a file, or with `folder` of a folder.
    pub(crate) fn remove(&mut self, path: &str, folder: bool) -> Result<u64, u64> {
        let key = clean(path);
        match (self.find(path)?, folder) {
            (PathTarget::File(_), true) => return Err(ENOTDIR),
            (PathTarget::Folder, false) => return Err(EISDIR),
            (PathTarget::File(_), false) => {
                self.files.remove(&key);
            }
            (PathTarget::Folder, true) if key.is_empty() => return Err(EINVAL),
            (PathTarget::Folder, true) if !self.entries(&key).is_empty() => return Err(ENOTEMPTY),
            (PathTarget::Folder, true) => {
                self.folders.remove(&key);
            }
        }
        Ok(0)
    }

    /// Gives a file another name, in place of a file that has it; a folder with all in it, where nothing is.
    pub(crate) fn rename(&mut self, from: &str, to: &str, replaces: bool) -> Result<u64, u64> {
        let (old, new) = (clean(from), clean(to));
        let found = self.find(from)?;
        match self.find(to) {
            Ok(_) if !replaces => return Err(EEXIST),
            Ok(there) if there == found && old == new => return Ok(0),
            Ok(PathTarget::Folder) if matches!(found, PathTarget::File(_)) => return Err(EISDIR),
            Ok(PathTarget::File(_)) if found == PathTarget::Folder => return Err(ENOTDIR),
            Ok(PathTarget::Folder) => return Err(ENOTEMPTY),
            Ok(PathTarget::File(_)) => {}
            Err(ENOENT) if self.folders.contains(folder_of(&new)) => {}
            Err(error) => return Err(error),
        }
        let moved = |path: &str| format!("{new}{}", &path[old.len()..]);
        match found {
            PathTarget::File(_) => self.name(&old, new.clone(), to),
            PathTarget::Folder => {
                let inside = format!("{old}/");
                if new.starts_with(&inside) || old.is_empty() {
                    return Err(EINVAL);
                }
                let below = |path: &String| path.starts_with(&inside) || *path == old;
                let folders: Vec<String> = self.folders.iter().filter(|path| below(path)).cloned().collect();
                for folder in folders {
                    self.folders.remove(&folder);
                    self.folders.insert(moved(&folder));
                }
                let files: Vec<String> = self.files.keys().filter(|path| below(path)).cloned().collect();
                for file in files {
                    let name = moved(&file);
                    self.name(&file, name.clone(), if to.starts_with('/') { "/" } else { &name });
                }
            }
        }
        Ok(0)
    }

    /// Moves a file from one cleaned path to another; `typed` is how the new one was named.
    fn name(&mut self, from: &str, to: String, typed: &str) {
        let Some(node) = self.files.remove(from) else { return };
        self.nodes[node].named = if typed.starts_with('/') { format!("/{to}") } else { to.clone() };
        self.nodes[node].written = true;
        self.files.insert(to, node);
    }

    /// What lies in a folder, by its cleaned path: names, and whether each is a folder, in their order.
    pub(super) fn entries(&self, folder: &str) -> Vec<(String, bool)> {
        let within = |path: &String| (folder_of(path) == folder && !path.is_empty()).then(|| path.clone());
        let name = |path: String| path.rsplit_once('/').map_or(path.clone(), |(_, name)| name.to_owned());
        let files = self.files.keys().filter_map(within).map(|path| (name(path), false));
        let folders = self.folders.iter().filter_map(within).map(|path| (name(path), true));
        let mut all: Vec<_> = files.chain(folders).collect();
        all.sort();
        all
    }

    /// Bytes of a file from an offset on: up to `count`, fewer at its end.
    pub(super) fn content(&self, node: usize, offset: u64, count: u64) -> &[u8] {
        let content = &self.nodes[node].content;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(content.len() - from);
        &content[from..from + count]
    }

    pub(crate) fn bytes(&self, node: usize) -> u64 {
        self.nodes[node].content.len() as u64
    }

    /// Makes a file this long: cuts it, or appends zeros.
    pub(super) fn resize(&mut self, node: usize, bytes: u64) -> Result<(), u64> {
        let old = self.bytes(node);
        let all = self.bytes - old;
        if bytes > ALL_MAX_BYTES - all.min(ALL_MAX_BYTES) {
            return Err(EFBIG);
        }
        self.bytes = all + bytes;
        let node = &mut self.nodes[node];
        node.written = true;
        if bytes != old {
            Arc::make_mut(&mut node.content).resize(bytes as usize, 0);
        }
        Ok(())
    }

    /// Writes into a file.
    pub(super) fn write(&mut self, node: usize, offset: u64, bytes: &[u8]) -> Result<(), u64> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(EFBIG)?;
        self.resize(node, end.max(self.bytes(node)))?;
        Arc::make_mut(&mut self.nodes[node].content)[offset as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    /// What the program has made or changed and not deleted, by path.
    pub(super) fn written(&self) -> impl Iterator<Item = File> + '_ {
        let nodes = self.files.values().map(|&node| &self.nodes[node]).filter(|node| node.written);
        nodes.map(|node| File { path: node.named.clone(), content: Arc::clone(&node.content) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::new(vec![File { path: "in/data.txt".to_owned(), content: Arc::new(b"abc".to_vec()) }])
    }

    #[test]
    fn a_path_has_one_name_whatever_it_is_written_with() {
        for path in ["a/b", "/a/b", "./a//b", "a/c/../b", "../a/./b"] {
            assert_eq!(clean(path), "a/b");
        }
        let tree = tree();
        assert_eq!(
            (tree.find("in/data.txt"), tree.find("/in/../in/data.txt")),
            (Ok(PathTarget::File(0)), Ok(PathTarget::File(0)))
        );
        assert_eq!((tree.find("in"), tree.find("/")), (Ok(PathTarget::Folder), Ok(PathTarget::Folder)));
        assert_eq!((tree.find("other"), tree.find("in/data.txt/x")), (Err(ENOENT), Err(ENOTDIR)));
    }

    #[test]
    fn a_file_is_made_in_a_folder_that_is_there() {
        let mut tree = tree();
        assert_eq!((tree.make("out/x"), tree.make("in/data.txt")), (Err(ENOENT), Err(EEXIST)));
        assert_eq!((tree.make_folder("out"), tree.make_folder("out"), tree.make("out/x")), (Ok(0), Err(EEXIST), Ok(1)));
        assert_eq!(tree.write(1, 3, b"yz"), Ok(()));
        assert_eq!(tree.content(1, 0, 9), b"\0\0\0yz");
        assert_eq!(tree.write(1, ALL_MAX_BYTES, b"z"), Err(EFBIG));
        assert_eq!(tree.entries(""), [("in".to_owned(), true), ("out".to_owned(), true), ("tmp".to_owned(), true)]);
        assert_eq!((tree.remove("out", true), tree.remove("out/x", false)), (Err(ENOTEMPTY), Ok(0)));
        // A file that is open keeps its content.
        assert_eq!((tree.remove("out", true), tree.written().count()), (Ok(0), 0));
        assert_eq!(tree.content(1, 3, 9), b"yz");
    }

    #[test]
    fn what_is_renamed_takes_the_place_of_another_file_and_a_folder_all_in_it() {
        let mut tree = tree();
        let made = tree.make("/tmp/new").unwrap();
        assert_eq!(
            (tree.rename("/tmp/new", "in/data.txt", false), tree.rename("/tmp/new", "in", true)),
            (Err(EEXIST), Err(EISDIR))
        );
        assert_eq!(
            (tree.rename("/tmp/new", "in/data.txt", true), tree.find("in/data.txt")),
            (Ok(0), Ok(PathTarget::File(made)))
        );
        assert_eq!((tree.rename("in", "in/deeper", true), tree.rename("in", "/away", true)), (Err(EINVAL), Ok(0)));
        let written: Vec<String> = tree.written().map(|file| file.path).collect();
        assert_eq!((written, tree.find("in")), (vec!["/away/data.txt".to_owned()], Err(ENOENT)));
    }
}
