//! What is told of files: `newfstatat`, `fstat` and `statx`. Times are the date at which the process begins.

use super::clock::BEGIN_S;
use super::reply::{Reader, Result, done, failed, write};
use crate::syscalls::call::{Call, CallStep, Then};
use crate::syscalls::files::{Files, Open, PathTarget};
use crate::syscalls::number;
use crate::syscalls::state::Os;

/// Kinds of files, with their rights.
mod mode {
    pub(super) const REGULAR: u32 = 0o100_644;
    pub(super) const FOLDER: u32 = 0o040_755;
    pub(super) const DEVICE: u32 = 0o020_666;
    pub(super) const PIPE: u32 = 0o010_600;
}

/// The user that owns all files.
const OWNER: u32 = 1000;
/// Bytes that are best read at once.
const BLOCK_BYTES: u32 = 4096;
/// Files of the tree have these numbers on.
const FIRST_NODE: u64 = 16;
/// `STATX_BASIC_STATS` and `STATX_BTIME`: all that is told.
const STATX_ALL: u32 = 0xfff;

/// What is told of a file.
struct Told {
    mode: u32,
    bytes: u64,
    node: u64,
}

fn of(os: &Os, what: &Open) -> Told {
    let (mode, bytes, node) = match what {
        Open::File(file) => (mode::REGULAR, os.files.tree.bytes(*file), FIRST_NODE + *file as u64),
        Open::Persistent => (mode::REGULAR, os.process.windows.pm_bytes, 1),
        Open::Folder(_) => (mode::FOLDER, 0, 2),
        Open::Null | Open::Random => (mode::DEVICE, 0, 3),
        Open::Stdin => (mode::PIPE, 0, 4),
        Open::Stdout => (mode::PIPE, 0, 5),
        Open::Stderr => (mode::PIPE, 0, 6),
    };
    Told { mode, bytes, node }
}

/// `newfstatat`, `fstat` and `statx`.
pub(super) fn stat(os: &mut Os, call: &Call, reader: &mut Reader<'_>) -> Result<CallStep> {
    use number::*;
    let [a0, a1, a2, _, a4, _] = call.args;
    let of_descriptor = |os: &Os| os.files.get(a0).map(|open| of(os, &open.what));
    let found = if call.number == FSTAT {
        of_descriptor(os)
    } else {
        let path = reader.path(os, a1)?;
        if path.is_empty() {
            of_descriptor(os)
        } else {
            os.files.resolve(a0, path).and_then(|path| match Files::special(&path) {
                Some(special) => Ok(of(os, &special)),
                None => os.files.tree.find(&path).map(|found| match found {
                    PathTarget::File(node) => of(os, &Open::File(node)),
                    PathTarget::Folder => of(os, &Open::Folder(String::new())),
                }),
            })
        }
    };
    let told = found.map_err(failed)?;
    let (address, bytes) = match call.number {
        STATX => (a4, extended(&told)),
        FSTAT => (a1, classic(&told)),
        _ => (a2, classic(&told)),
    };
    Ok(done(vec![write(os, address, bytes)?], Then::Return(0)))
}

/// Fields of a structure, each at its offset.
fn structure(bytes: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut all = vec![0; bytes];
    for &(at, field) in fields {
        all[at..at + field.len()].copy_from_slice(field);
    }
    all
}

/// `struct stat` of the generic ABI.
fn classic(told: &Told) -> Vec<u8> {
    let owner = OWNER.to_le_bytes();
    let date = BEGIN_S.to_le_bytes();
    structure(
        128,
        &[
            (8, &told.node.to_le_bytes()),
            (16, &told.mode.to_le_bytes()),
            (20, &1u32.to_le_bytes()),
            (24, &owner),
            (28, &owner),
            (48, &told.bytes.to_le_bytes()),
            (56, &BLOCK_BYTES.to_le_bytes()),
            (64, &told.bytes.div_ceil(512).to_le_bytes()),
            (72, &date),
            (88, &date),
            (104, &date),
        ],
    )
}

/// `struct statx`.
fn extended(told: &Told) -> Vec<u8> {
    let owner = OWNER.to_le_bytes();
    let date = BEGIN_S.to_le_bytes();
    structure(
        256,
        &[
            (0, &STATX_ALL.to_le_bytes()),
            (4, &BLOCK_BYTES.to_le_bytes()),
            (16, &1u32.to_le_bytes()),
            (20, &owner),
            (24, &owner),
            (28, &(told.mode as u16).to_le_bytes()),
            (32, &told.node.to_le_bytes()),
            (40, &told.bytes.to_le_bytes()),
            (48, &told.bytes.div_ceil(512).to_le_bytes()),
            (64, &date),
            (80, &date),
            (96, &date),
            (112, &date),
        ],
    )
}
