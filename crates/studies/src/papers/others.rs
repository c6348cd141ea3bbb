//! Programs of others: manifests of programs of CPUs in a folder of the user's, which some figures show
//! beside the programs of this project, as a group of its own.
//!
//! A program is known by the name of its manifest or of the manifest's folder. It runs with the profile of
//! the request, or with `default` where its manifest has none of that name. Not here: which runs a figure
//! makes of it.

use std::path::Path;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_workload::Workload;

/// What the group is called.
pub(crate) const GROUP: &str = "programs of others";

/// The programs of a folder: paths of their manifests, by name.
///
/// # Errors
/// The folder holds none; everything that is wrong with a manifest, or it has kernels.
pub(super) fn paths(folder: &Path) -> Result<Vec<&'static str>, Diagnostics> {
    let (mut paths, mut faults) = (Vec::new(), Diagnostics::default());
    for path in Workload::paths_in(folder)? {
        let path = path.display().to_string();
        match Workload::load(&path) {
            Ok(found) if found.is_of_a_cpu() => {
                // Figures key their runs by names that live as long as the process, as those of our programs.
                paths.push(&*path.leak());
            }
            Ok(_) => faults.push(Diagnostic::nowhere(&path, "the workload is no program of CPUs")),
            Err(found) => faults.0.extend(found.0),
        }
    }
    faults.into_result(paths)
}

/// What a program is called; a built-in workload has its own name.
pub(crate) fn name(path: &str) -> &str {
    let path = path.strip_suffix(".toml").unwrap_or(path);
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_as_its_manifest_or_the_folder_of_it() {
        let names = ["programs/lu.toml", "/a/b.c/fft", "is", "./x/sqlite-3.40.toml"].map(name);
        assert_eq!(names, ["lu", "fft", "is", "sqlite-3.40"]);
    }
}
