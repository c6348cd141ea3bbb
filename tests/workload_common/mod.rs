//! Workload folders for tests, and faults without the folder's path.

use std::path::PathBuf;

use durawarp::diagnostic::Diagnostics;
use durawarp::workload::{Choice, Resolved, Workload};

/// A folder with these files, new for each test.
pub(crate) fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("workload-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
    folder
}

/// The workload in a folder.
#[allow(dead_code, reason = "each test file uses a part of this one")]
pub(crate) fn load(folder: &std::path::Path) -> Result<Workload, String> {
    Workload::load(&folder.display().to_string()).map_err(|faults| shown(folder, &faults))
}

/// The workload in a folder with its default profile.
#[allow(dead_code, reason = "each test file uses a part of this one")]
pub(crate) fn resolve(folder: &std::path::Path) -> Result<Resolved, String> {
    load(folder)?.resolve(&Choice::default()).map_err(|faults| shown(folder, &faults))
}

/// Faults as text, `line:column: message`, without the path of the test's folder.
pub(crate) fn shown(folder: &std::path::Path, faults: &Diagnostics) -> String {
    let manifest = format!("{}:", folder.join("workload.toml").display());
    faults.to_string().replace(&manifest, "").replace(&folder.display().to_string(), "FOLDER")
}
