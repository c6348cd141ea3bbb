//! Hashes the sources that a run follows from: a checkpoint fits those that wrote it, and no others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Beside this one. Figures and papers are not among them: they only read outcomes.
const CRATES: [&str; 10] =
    ["base", "checkpoint", "engine", "kernel", "machine", "oracle", "persist", "riscv", "schemes", "workload"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for folder in CRATES.map(|name| format!("../{name}/src")).iter().map(String::as_str).chain(["src"]) {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files)?;
    }
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
