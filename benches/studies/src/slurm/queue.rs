//! Asks Slurm: submits a script, and tells whether a job is still alive.

use std::path::Path;
use std::process::{Command, Output};

use crate::error::{Context, Result, bail};

/// Slurm's commands, which are there.
pub struct Queue {
    sbatch: &'static str,
    squeue: &'static str,
}

/// A job that is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Tasks that run, or end.
    pub running: usize,
    /// Tasks that wait.
    pub waiting: usize,
    /// Why the last of those waits.
    pub reason: String,
}

impl Queue {
    /// Expects the commands to be there.
    pub fn find() -> Result<Queue> {
        let queue = Queue {
            sbatch: "sbatch",
            squeue: "squeue",
        };
        for name in [queue.sbatch, queue.squeue] {
            if Command::new(name).arg("--version").output().is_err() {
                bail!(
                    "--on slurm needs {name} on the PATH: run it on a machine from which jobs are submitted (a login node)"
                );
            }
        }
        Ok(queue)
    }

    /// Submits a script and returns the job's number.
    pub fn submit(&self, script: &Path) -> Result<String> {
        let output = Command::new(self.sbatch)
            .arg("--parsable")
            .arg(script)
            .output()
            .context("cannot start sbatch")?;
        let said = String::from_utf8_lossy(&output.stdout);
        // With several clusters the answer is `job;cluster`.
        let job = said.trim().split(';').next().unwrap_or_default();
        if !output.status.success() || job.is_empty() {
            bail!(
                "sbatch refused {}: {}",
                script.display(),
                complaint(&output)
            );
        }
        Ok(job.to_owned())
    }

    /// What is still alive of a job; `None` if nothing is.
    pub fn alive(&self, job: &str) -> Result<Option<Alive>> {
        let output = Command::new(self.squeue)
            .args(["--noheader", "--array", "--jobs", job, "--format", "%T %r"])
            .output()
            .context("cannot start squeue")?;
        if output.status.success() {
            return Ok(read(&String::from_utf8_lossy(&output.stdout)));
        }
        let words = complaint(&output);
        // A job that ended long ago is forgotten.
        if words.contains("Invalid job id") {
            return Ok(None);
        }
        bail!("squeue gave no answer: {words}");
    }
}

fn complaint(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.trim();
    if words.is_empty() {
        output.status.to_string()
    } else {
        words.to_owned()
    }
}

fn read(listing: &str) -> Option<Alive> {
    let mut alive = Alive::default();
    for line in listing.lines() {
        let (state, reason) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match state {
            "" | "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "NODE_FAIL"
            | "OUT_OF_MEMORY" | "PREEMPTED" | "REVOKED" | "TIMEOUT" => {}
            "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" | "SUSPENDED" | "STOPPED" => {
                alive.waiting += 1;
                reason.clone_into(&mut alive.reason);
            }
            _ => alive.running += 1,
        }
    }
    (alive.running + alive.waiting > 0).then_some(alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_tells_what_is_alive() {
        let listing = "RUNNING None\nCOMPLETING None\nPENDING Resources\nFAILED NonZeroExitCode\n";
        let alive = read(listing).unwrap();
        assert_eq!((alive.running, alive.waiting), (2, 1));
        assert_eq!(alive.reason, "Resources");
        assert_eq!(read(""), None);
        assert_eq!(read("COMPLETED None\nCANCELLED None\n"), None);
    }
}
