//! Makes cargo rebuild the crate when a built-in workload is added, changed or removed, and hashes the sources: a
//! checkpoint fits the sources that wrote it, and no others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=workloads");
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files)?;
    files.sort();
    // FNV-1a.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        let content = fs::read(&file)?;
        for byte in file.to_string_lossy().bytes().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=DURAWARP_SOURCES={hash:016x}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
