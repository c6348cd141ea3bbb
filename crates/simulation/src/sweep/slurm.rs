//! A sweep as an array job of Slurm: each task is a shard of the points, all write to one folder of results.
//!
//! Invariant: handing in the same sweep again runs what is missing and nothing else, whatever became of the
//! tasks before. Left out: what a cluster needs beyond a name, an array and a place for logs, which
//! `--sbatch-arg` says.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::batch::quoted;

/// An array job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Name of the sweep.
    pub name: String,
    /// This program.
    pub program: PathBuf,
    /// The sweep file.
    pub spec: PathBuf,
    /// The folder of results, which every node must see.
    pub results: PathBuf,
    /// Where the tasks run.
    pub folder: PathBuf,
    /// Shards.
    pub tasks: u32,
    /// Points at a time in a task; 0 for one a core that Slurm gives it.
    pub jobs: usize,
    /// Points that failed before are not run again.
    pub keep_failed: bool,
    /// More arguments of `sbatch`.
    pub sbatch: Vec<String>,
}

impl Job {
    /// The script.
    pub fn script(&self) -> String {
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let last = self.tasks.saturating_sub(1);
        let mut head = format!("#!/bin/bash\n#SBATCH --job-name={}\n", quoted(&self.name));
        // `%` starts a pattern of sbatch here.
        let logs = self.results.to_string_lossy().replace('%', "%%");
        head += &format!("#SBATCH --array=0-{last}\n#SBATCH --output={}\n", quoted(&format!("{logs}/slurm-%A_%a.out")));
        for argument in &self.sbatch {
            head += &format!("#SBATCH {argument}\n");
        }
        let jobs = match self.jobs {
            0 => "${SLURM_CPUS_PER_TASK:-1}".to_owned(),
            jobs => jobs.to_string(),
        };
        let keep = if self.keep_failed { " --keep-failed" } else { "" };
        format!(
            "{head}# Hand it in again, or start the sweep again, to run what is missing.\ncd {} || exit 2\nexec {} sweep run {} \
             --results {} --shard $((SLURM_ARRAY_TASK_ID + 1))/{} --jobs {jobs}{keep}\n",
            path(&self.folder),
            path(&self.program),
            path(&self.spec),
            path(&self.results),
            self.tasks
        )
    }
}

/// Hands a script in; what `sbatch` answers.
///
/// # Errors
/// There is no `sbatch`, or it refuses.
pub fn submit(script: &Path) -> Result<String, String> {
    let shown = script.display();
    let output = Command::new("sbatch")
        .arg(script)
        .output()
        .map_err(|error| format!("cannot start sbatch: {error}; the script is `{shown}`, hand it in where Slurm is"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("sbatch refused `{shown}`: {}", text(&output.stderr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_runs_one_shard_a_task() {
        let job = Job {
            name: "l2".to_owned(),
            program: "/opt/dura warp/durawarp".into(),
            spec: "/home/me/l2.toml".into(),
            results: "/home/me/results".into(),
            folder: "/home/me".into(),
            tasks: 8,
            jobs: 0,
            keep_failed: false,
            sbatch: vec!["--cpus-per-task=4".to_owned()],
        };
        let script = job.script();
        for line in [
            "#!/bin/bash",
            "#SBATCH --array=0-7",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --output=/home/me/results/slurm-%A_%a.out",
            "cd /home/me || exit 2",
            "exec '/opt/dura warp/durawarp' sweep run /home/me/l2.toml --results /home/me/results \
             --shard $((SLURM_ARRAY_TASK_ID + 1))/8 --jobs ${SLURM_CPUS_PER_TASK:-1}",
        ] {
            assert!(script.lines().any(|own| own == line), "no `{line}` in\n{script}");
        }
    }
}
