//! What was submitted, in `slurm/submissions.json`: which job, and which cells each of its tasks runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Result};
use crate::ledger::put_whole;

/// One job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// Its number.
    pub job: String,
    /// The cells of each task.
    pub tasks: Vec<Vec<String>>,
}

/// Forgets the jobs of a study.
pub fn remove(directory: &Path) -> Result<()> {
    let path = directory.join("slurm").join("submissions.json");
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// All jobs of a directory, the last one last.
pub struct Submissions {
    path: PathBuf,
    all: Vec<Submission>,
}

impl Submissions {
    /// Those that were made so far.
    pub fn open(place: &Path) -> Result<Submissions> {
        let path = place.join("submissions.json");
        let all = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is not what a study left", path.display()))?,
            Err(_) => Vec::new(),
        };
        Ok(Submissions { path, all })
    }

    /// Takes note of a job before anything else happens.
    pub fn add(&mut self, new: Submission) -> Result<()> {
        self.all.push(new);
        let text = serde_json::to_string(&self.all).context("cannot write submissions.json")?;
        put_whole(&self.path, text + "\n")
    }

    /// The last one.
    pub fn last(&self) -> Option<&Submission> {
        self.all.last()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// How often a cell was submitted.
    pub fn times(&self, id: &str) -> usize {
        let holds = |it: &&Submission| it.tasks.iter().flatten().any(|cell| cell == id);
        self.all.iter().filter(holds).count()
    }

    /// What the last task that had this cell left behind.
    pub fn why(&self, place: &Path, id: &str) -> String {
        let found = self.all.iter().rev().find_map(|it| {
            let task = it
                .tasks
                .iter()
                .position(|cells| cells.iter().any(|cell| cell == id))?;
            Some((it.job.as_str(), task))
        });
        let Some((job, task)) = found else {
            return "it was never submitted".to_owned();
        };
        let output = place.join("out").join(format!("{job}_{task}.txt"));
        let said = fs::read_to_string(&output).unwrap_or_default();
        let mut lines: Vec<&str> = said.lines().rev().take(5).collect();
        lines.reverse();
        let said = if lines.is_empty() {
            "which wrote nothing".to_owned()
        } else {
            format!("which ended with: {}", lines.join("\n"))
        };
        format!(
            "no row after {} submissions, the last as task {job}_{task} ({}), {said}",
            self.times(id),
            output.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_knows_how_often_it_was_submitted_and_what_its_task_said() {
        let directory = tempfile::TempDir::new().unwrap();
        let place = directory.path();
        let mut all = Submissions::open(place).unwrap();
        for (job, tasks) in [
            ("7", vec![vec!["a".into(), "b".into()]]),
            ("9", vec![vec!["b".into()]]),
        ] {
            all.add(Submission {
                job: job.into(),
                tasks,
            })
            .unwrap();
        }
        let again = Submissions::open(place).unwrap();
        assert_eq!(
            (again.times("a"), again.times("b"), again.times("c")),
            (1, 2, 0)
        );
        assert_eq!(again.last().unwrap().job, "9");
        fs::create_dir_all(place.join("out")).unwrap();
        fs::write(place.join("out/9_0.txt"), "slurmstepd: error: killed\n").unwrap();
        let why = again.why(place, "b");
        assert!(
            why.contains("after 2 submissions") && why.contains("killed"),
            "{why}"
        );
        assert!(again.why(place, "a").contains("wrote nothing"));
    }
}
