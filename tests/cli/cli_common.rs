//! The program as a user meets it: started in a folder, with what it printed and the exit code that it ended with.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this one")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder of one test, below the target folder; `name` is its own among all tests.
pub fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Left from an earlier run.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the target folder is writable");
    path
}

/// Makes the workload `wrong` in a folder: `vecadd`, whose check fails where it has so many elements or more.
pub fn wrong_from(folder: &Path, elements: u64) {
    let vecadd = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/vecadd");
    let manifest = std::fs::read_to_string(vecadd.join("workload.toml")).unwrap();
    let sum = "a[idx] + b[idx]\"";
    assert!(manifest.contains(sum));
    let manifest = manifest.replace(sum, &format!("a[idx] + b[idx] + float(N >= {elements})\""));
    std::fs::create_dir_all(folder.join("wrong")).unwrap();
    std::fs::write(folder.join("wrong/workload.toml"), manifest).unwrap();
    std::fs::copy(vecadd.join("kernel.ptx"), folder.join("wrong/kernel.ptx")).unwrap();
}

/// Such a folder with a sweep file `spec.toml`.
pub fn sweep_folder(name: &str, spec: &str) -> PathBuf {
    let path = folder(name);
    std::fs::write(path.join("spec.toml"), spec).unwrap();
    path
}

/// The program, to be started in a folder.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durawarp"));
    command.current_dir(folder).args(arguments);
    command
}

/// Runs it in a folder.
pub fn durawarp_in(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the binary starts")
}

/// Runs it here.
pub fn durawarp(arguments: &[&str]) -> Output {
    durawarp_in(Path::new("."), arguments)
}

/// A browser that is installed; without one it says so.
pub fn browser() -> Option<&'static str> {
    const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let found = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let browser = BROWSERS.into_iter().find(found);
    if browser.is_none() {
        println!("skipped: no browser of {}", BROWSERS.join(", "));
    }
    browser
}

/// What was printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs and expects an exit code and words on standard error.
#[track_caller]
pub fn fails(arguments: &[&str], code: i32, words: &[&str]) -> String {
    let output = durawarp(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    for word in words {
        assert!(error.contains(word), "{arguments:?}: no `{word}` in:\n{error}");
    }
    assert!(!error.contains("panicked") && !error.contains("backtrace"), "{error}");
    error
}

/// It ended with this exit code and these words on either of its outputs; standard output.
#[track_caller]
pub fn ended(output: &Output, code: i32, words: &[&str]) -> String {
    let out = text(&output.stdout);
    let all = format!("{out}{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{all}");
    for word in words {
        assert!(all.contains(word), "no `{word}` in:\n{all}");
    }
    out
}
