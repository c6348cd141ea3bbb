//! Files that a simulated program wrote, written below a folder of the host: each by its path, without the
//! first `/`. No path leads out of the folder, and no input of the command is overwritten.

use std::fs;
use std::path::{Path, PathBuf};

use durawarp::diagnostic::Diagnostic;
use durawarp::riscv::syscalls::File;
use durawarp::run::AnyExperiment;

use super::exit::Stop;
use super::output::Output;

/// A folder that is there and can be written to.
#[derive(Debug)]
pub(super) struct WrittenFiles {
    folder: PathBuf,
}

impl WrittenFiles {
    /// Makes the folder, before the run.
    ///
    /// # Errors
    /// It cannot be made; a program of GPUs, which writes no files.
    pub(super) fn below(folder: &Path, experiment: &AnyExperiment) -> Result<Self, Stop> {
        if experiment.gpu().is_some() {
            return Err(Diagnostic::nowhere("--file-out", "a program of GPUs writes no files").into());
        }
        let made = fs::create_dir_all(folder);
        made.map_err(|fault| {
            Diagnostic::nowhere("--file-out", format!("cannot make folder `{}`: {fault}", folder.display()))
        })?;
        Ok(WrittenFiles { folder: folder.to_owned() })
    }

    /// Writes all of them: what came of each.
    pub(super) fn write(&self, files: &[File]) -> Vec<Result<(), Stop>> {
        files.iter().map(|file| self.write_one(file)).collect()
    }

    fn write_one(&self, file: &File) -> Result<(), Stop> {
        // Paths of the model have no `..`; this is for what the host may take for one.
        let parts = file.path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
        let name = |part: &str| if cfg!(windows) { part.replace(['\\', ':'], "_") } else { part.to_owned() };
        let path = parts.fold(self.folder.clone(), |path, part| path.join(name(part)));
        if let Some(folder) = path.parent() {
            let made = fs::create_dir_all(folder);
            made.map_err(|fault| Stop::File(format!("cannot make folder `{}`: {fault}", folder.display())))?;
        }
        Output::at(&path)?.write(&file.content)
    }
}
