//! The batch script, `slurm/job.sh`, and the list of cells that its tasks read.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Needs;
use crate::error::{Context, Result, bail};
use crate::ledger::put_whole;

/// What a process takes besides what its check was allowed: the driver of the task, and the allocator's slack.
const SLACK: u64 = 256 << 20;
/// What a cell may take besides its time limit: to start, to read, and to be stopped.
const GRACE: Duration = Duration::from_secs(40);

/// A script to be written.
pub struct JobScript<'a> {
    /// The directory of everything that is Slurm's.
    pub place: &'a Path,
    /// Which submission it is, from one on.
    pub number: usize,
    /// What the tasks need.
    pub needs: &'a Needs,
    /// Cells per task.
    pub each: usize,
    /// Tasks.
    pub n_tasks: usize,
    /// The user's further arguments of sbatch.
    pub arguments: &'a [String],
}

impl JobScript<'_> {
    /// Writes the script and the list, and returns the script's place.
    pub fn write(&self, tasks: &[Vec<String>]) -> Result<PathBuf> {
        let place = std::path::absolute(self.place).context("cannot find the directory")?;
        let list = place.join(format!("tasks-{}.txt", self.number));
        let lines: Vec<String> = tasks.iter().map(|cells| cells.join(",")).collect();
        put_whole(&list, lines.join("\n") + "\n")?;
        let path = place.join("job.sh");
        put_whole(&path, self.text(&place, &list)?)?;
        Ok(path)
    }

    fn text(&self, place: &Path, list: &Path) -> Result<String> {
        let needs = self.needs;
        let here = std::env::current_dir().context("cannot find the working directory")?;
        let output = place.join("out").join("%A_%a.txt");
        let mut text = String::from("#!/bin/bash\n");
        let directives = [
            format!("--job-name=kingsnake-{}", needs.study),
            format!("--array=0-{}", self.n_tasks - 1),
            format!("--chdir={}", here.display()),
            format!("--output={}", output.display()),
            "--open-mode=append".to_owned(),
            "--requeue".to_owned(),
            format!("--mem={}M", megabytes(needs.memory)),
            format!("--cpus-per-task={}", needs.processors),
        ];
        let limit = needs.timeout.map(|limit| minutes(limit, self.each));
        let time = limit.map(|minutes| format!("--time={minutes}"));
        for directive in directives.iter().chain(&time).chain(self.arguments) {
            let _ = writeln!(text, "#SBATCH {}", quoted(directive)?);
        }
        let _ = write!(
            text,
            "\n# Each task runs the cells on its line of the list. A cell that has its row already is left alone.\n\
             cells=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {list})\n\
             exec {command} --cell \"$cells\"\n",
            list = quoted(&list.display().to_string())?,
            command = needs
                .command
                .iter()
                .map(|word| quoted(word))
                .collect::<Result<Vec<_>>>()?
                .join(" "),
        );
        Ok(text)
    }
}

fn quoted(word: &str) -> Result<String> {
    if word.contains('\n') {
        bail!("sbatch cannot be told {word:?}: it has a line break");
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return Ok(word.to_owned());
    }
    let quoted = shlex::try_quote(word).with_context(|| format!("cannot quote {word:?}"))?;
    Ok(quoted.into_owned())
}

/// The memory of a task: the check's limit, a tenth more, and the overhead.
fn megabytes(limit: u64) -> u64 {
    (limit + limit / 10 + SLACK).div_ceil(1 << 20)
}

/// Whole minutes for this many cells, one after the other.
fn minutes(timeout: Duration, each: usize) -> u64 {
    let all = (timeout + GRACE).as_secs_f64() * each as f64;
    (all / 60.0).ceil() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_says_what_the_tasks_need_and_quotes_what_it_is_given() {
        let directory = tempfile::TempDir::new().unwrap();
        let needs = Needs {
            study: "sizes".to_owned(),
            timeout: Some(Duration::from_secs(300)),
            memory: 4 << 30,
            processors: 2,
            command: ["/bin/kingsnake", "ablate", "my study.toml"]
                .map(str::to_owned)
                .to_vec(),
        };
        let script = JobScript {
            place: directory.path(),
            number: 1,
            needs: &needs,
            each: 3,
            n_tasks: 2,
            arguments: &["--partition=gpu".to_owned()],
        };
        let path = script
            .write(&[vec!["a".into(), "b".into(), "c".into()], vec!["d".into()]])
            .unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        for part in [
            "#SBATCH --array=0-1\n",
            "#SBATCH --mem=4762M\n",
            "#SBATCH --cpus-per-task=2\n",
            // Three cells of 340 s.
            "#SBATCH --time=18\n",
            "#SBATCH --partition=gpu\n",
            "exec /bin/kingsnake ablate 'my study.toml' --cell \"$cells\"\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let list = std::fs::read_to_string(directory.path().join("tasks-1.txt")).unwrap();
        assert_eq!(list, "a,b,c\nd\n");
    }
}
